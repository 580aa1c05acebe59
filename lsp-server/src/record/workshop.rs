//! Where a test is made ready: commands that build or ask, which are not recorded. Each can be stopped at any
//! time, ends with us, and what it prints is bounded.

use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::repeat::{self, Tail};
use super::{Ui, line_advice};
use crate::runnable::{Output, Steps, Words};

/// Most bytes that are kept of a command's output: Cargo tells of each crate.
const MAX_OUTPUT: usize = 64 << 20;

/// How often the wish to stop is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What is told when somebody stopped it.
pub(super) const CANCELLED: &str = "it was cancelled before anything was recorded";

pub(super) struct Workshop<'a> {
    pub(super) ui: &'a mut dyn Ui,
    pub(super) stop: &'a AtomicBool,
    pub(super) scratch: &'a Path,
}

impl Steps for Workshop<'_> {
    fn run(&mut self, words: &Words) -> Result<Output, String> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(CANCELLED.to_owned());
        }
        let fail = |error: std::io::Error| format!("{}: {error}", words.program.to_string_lossy());
        let mut command = repeat::tied(&words.program, &words.arguments);
        command.current_dir(&words.folder).envs(words.environment.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(fail)?;
        let errors = Tail::of(child.stderr.take().ok_or("no pipe")?, MAX_OUTPUT);
        let output = Tail::of(child.stdout.take().ok_or("no pipe")?, MAX_OUTPUT);
        let status = loop {
            if self.stop.load(Ordering::Relaxed) {
                repeat::end_group(&mut child);
                return Err(CANCELLED.to_owned());
            }
            if let Some(status) = child.try_wait().map_err(fail)? {
                break status;
            }
            std::thread::sleep(LOOK_EVERY);
        };
        let (stdout, stderr) = (output.text(), errors.text());
        if status.code() == Some(i32::from(repeat::NOT_STARTED))
            && let Some(why) = stderr.lines().last().and_then(|line| line.strip_prefix("perflens: "))
        {
            return Err(why.to_owned());
        }
        Ok(Output { stdout, stderr, is_success: status.success() })
    }

    fn build(&mut self, words: &Words) -> Result<Output, String> {
        self.ui.building(&words.in_words());
        self.run(words)
    }

    fn note(&mut self, sentence: String) {
        self.ui.note(&sentence);
    }

    fn scratch(&self) -> &Path {
        self.scratch
    }

    fn lines_advice(&self, program: &Path) -> Option<String> {
        line_advice(program)
    }
}
