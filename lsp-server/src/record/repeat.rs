//! `perflens __repeat`: runs a command again and again, as the one process that a recording is of.
//!
//! A test takes milliseconds, and a recording a third of a second to begin: so there is one recording, and in
//! it this process, whose own samples don't count, with one run after the other as its child. It goes on until
//! its standard input ends, which is how whoever records says that there are enough samples; a run that
//! fails is the last. In the end it tells how it went, as a line of JSON.
//!
//! Each run is a process group of its own, so that what a test starts ends with it; and each is started
//! through [`tie`], so that it ends when this process is killed.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::held::THIS_PROGRAM;
use crate::watched::Report;
use rustix::process::{Pid, Signal};

/// The name of the hidden subcommand that [`tie`] is.
const TIE: &str = "__tie";

/// How much of the end of the output is kept.
pub(crate) const MAX_OUTPUT: usize = 16 << 10;

/// How often the wish to end is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How long a run may take to end when it is asked to.
const END_PATIENCE: Duration = Duration::from_millis(1500);

/// How long the last of an output may take to be read.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The end of an output, which others write to.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    bytes: Arc<Mutex<VecDeque<u8>>>,
    is_over: Arc<AtomicBool>,
}

impl Tail {
    /// Reads to the end on a thread of its own, and keeps the last so many bytes.
    pub(crate) fn of(mut from: impl Read + Send + 'static, most: usize) -> Self {
        let tail = Self { bytes: Arc::default(), is_over: Arc::default() };
        let Self { bytes, is_over } = tail.clone();
        std::thread::spawn(move || {
            let mut chunk = [0; 16 << 10];
            while let Ok(length @ 1..) = from.read(&mut chunk) {
                let mut bytes = bytes.lock().unwrap_or_else(PoisonError::into_inner);
                bytes.extend(&chunk[..length]);
                let surplus = bytes.len().saturating_sub(most);
                bytes.drain(..surplus);
            }
            is_over.store(true, Ordering::SeqCst);
        });
        tail
    }

    /// What there is when its writer has ended. What that has started may hold the output open for longer;
    /// nobody waits for it.
    pub(crate) fn text(&self) -> String {
        let mut waited = Duration::ZERO;
        while waited < LAST_WORDS && !self.is_over.load(Ordering::SeqCst) {
            std::thread::sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
        let bytes: Vec<u8> = self.bytes.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// A command that is a process group of its own and ends when this thread does.
pub(crate) fn tied(program: &OsString, arguments: &[OsString]) -> Command {
    let mut command = Command::new(THIS_PROGRAM);
    command.arg0("perflens").arg(TIE).arg("--").arg(program).args(arguments).process_group(0);
    command
}

/// The other side of [`tied`]: becomes the command. Returns only when that failed.
pub(crate) fn tie(program: &OsString, arguments: &[OsString]) -> String {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::TERM));
    let error = Command::new(program).args(arguments).exec();
    let program = program.to_string_lossy();
    match error.kind() {
        io::ErrorKind::NotFound => format!("{program}: there is no such program"),
        io::ErrorKind::PermissionDenied => format!("{program}: it may not be run"),
        _ => format!("{program}: {error}"),
    }
}

/// What [`tie`] ends with when it could not become the command, as shells do.
pub(crate) const NOT_STARTED: u8 = 127;

/// Ends a process group: asks, then makes it.
pub(crate) fn end_group(child: &mut Child) {
    let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return };
    let _ = rustix::process::kill_process_group(group, Signal::TERM);
    let mut waited = Duration::ZERO;
    while waited < END_PATIENCE && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(LOOK_EVERY);
        waited += LOOK_EVERY;
    }
    let _ = rustix::process::kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

/// Runs the command until the input ends, or as often as that; tells how it went.
pub(crate) fn run(command: &[OsString], runs: Option<u32>) -> ExitCode {
    let Some((program, arguments)) = command.split_first() else { return ExitCode::FAILURE };
    let mut report = Report::default();
    if let Err(error) = repeat(program, arguments, runs, &mut report) {
        report.refusal = Some(error.to_string());
    }
    let is_success = report.failure.is_none() && report.refusal.is_none();
    if let Ok(line) = serde_json::to_string(&report) {
        let _ = writeln!(io::stdout(), "{line}");
    }
    if is_success { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn repeat(program: &OsString, arguments: &[OsString], runs: Option<u32>, report: &mut Report) -> io::Result<()> {
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&is_over))?;
    }
    let is_enough = Arc::new(AtomicBool::new(false));
    let enough = Arc::clone(&is_enough);
    std::thread::spawn(move || {
        let mut byte = [0; 64];
        while matches!(io::stdin().read(&mut byte), Ok(1..)) {}
        enough.store(true, Ordering::Relaxed);
    });
    // The group that runs now; 0 between runs.
    let group = Arc::new(AtomicI32::new(0));
    let (running, over) = (Arc::clone(&group), Arc::clone(&is_over));
    std::thread::spawn(move || end_when(&over, &running));
    let tail = loop {
        let (reader, writer) = io::pipe()?;
        let mut command = tied(program, arguments);
        let mut child = command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).spawn()?;
        // With its ends of the pipe.
        drop(command);
        let tail = Tail::of(reader, MAX_OUTPUT);
        group.store(i32::try_from(child.id()).unwrap_or(0), Ordering::SeqCst);
        let status = child.wait()?;
        let ended = group.swap(0, Ordering::SeqCst);
        if let Some(ended) = Pid::from_raw(ended) {
            // What it has started and left.
            let _ = rustix::process::kill_process_group(ended, Signal::KILL);
        }
        if is_over.load(Ordering::SeqCst) {
            break tail;
        }
        report.runs += 1;
        report.code = status.code();
        if !status.success() {
            report.failure = Some(super::in_words(status));
            break tail;
        }
        let is_last = match runs {
            Some(runs) => report.runs >= runs,
            None => is_enough.load(Ordering::Relaxed),
        };
        if is_last {
            break tail;
        }
    };
    report.output = tail.text();
    if status_is_not_started(report) {
        report.refusal = report.output.lines().last().map(str::to_owned);
    }
    Ok(())
}

fn status_is_not_started(report: &Report) -> bool {
    let not_started = super::in_words(ExitStatus::from_raw(i32::from(NOT_STARTED) << 8));
    report.runs <= 1 && report.failure.as_ref() == Some(&not_started) && report.output.starts_with("perflens: ")
}

/// Ends what runs when it is time to, and makes it.
fn end_when(is_over: &AtomicBool, group: &AtomicI32) {
    let mut asked = Duration::ZERO;
    loop {
        std::thread::sleep(LOOK_EVERY);
        if !is_over.load(Ordering::SeqCst) {
            continue;
        }
        let Some(running) = Pid::from_raw(group.load(Ordering::SeqCst)) else { continue };
        let signal = if asked < END_PATIENCE { Signal::TERM } else { Signal::KILL };
        let _ = rustix::process::kill_process_group(running, signal);
        asked += LOOK_EVERY;
    }
}
