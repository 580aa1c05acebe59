//! A program in C, built and recorded on the spot.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use profiler_core::attribute::analysis::Analysis;
use profiler_core::cancel::CancelFlag;
use profiler_core::view::document::Sentence;
use profiler_core::view::source::Source;
use profiler_ebpf::protocol::EventKind;

use super::Demo;
use crate::cli::load::{groups, open_workspace};
use crate::record::held::CommandLine;
use crate::record::helper::Elevation;
use crate::record::run::{Request, Streams, Target};
use crate::record::{Job, Ui, perform};

const SOURCE: &str = include_str!("../../../demo/logstats.c");
const SOURCE_NAME: &str = "logstats.c";
/// Samples per second; the program runs for two.
const FREQUENCY: u32 = 499;
/// When the program is ended that should have ended long ago.
const DEADLINE: Duration = Duration::from_secs(30);

/// Builds, records, and counts; or why that can't be done.
pub(super) fn demo() -> Result<Demo, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("there is no temporary folder: {error}"))?;
    let program = built(folder.path())?;
    let job = Job {
        request: Request {
            target: Target::Command(CommandLine {
                program: program.into(),
                arguments: Vec::new(),
                environment: Vec::new(),
                folder: None,
            }),
            duration: Some(DEADLINE),
            frequency: FREQUENCY,
            events: vec![EventKind::Cpu],
            elevation: Elevation::None,
            method: None,
            any_user: false,
            streams: Streams::Nothing,
        },
        test: None,
        workspace: folder.path().to_owned(),
        recordings: None,
        output: Some(folder.path().join("cpu.pb.gz")),
        is_live: false,
        debug_dirs: Vec::new(),
    };
    let mut notes = Notes::default();
    let done = perform(job, &AtomicBool::new(false), &mut notes)?;
    if done.samples == 0 {
        return Err("recording gave no samples".to_owned());
    }
    let workspace = open_workspace(&[folder.path().to_owned()]).map_err(|failure| failure.to_string())?;
    let profile = Arc::new(done.profile);
    let value_type = profile.meta().default_value_type;
    let groups = groups(&profile, workspace.as_ref());
    let analysis = Analysis::new(profile, groups, value_type, &[], &CancelFlag::new())
        .map_err(|_| "counting was cancelled".to_owned())?;
    let seconds = done.elapsed.as_secs_f64();
    let how = format!("Built and recorded just now, {}: {} samples in {seconds:.1} s.", done.how, done.samples);
    let origin = [how].into_iter().chain(notes.0).chain(done.notes).map(Sentence::new).collect();
    let next = Sentence::new("  ")
        .command("perflens record -o cpu.pb.gz -- ./your-program")
        .faint("  or any other way to a profile");
    Ok(Demo { analysis, source: Source::new(SOURCE.as_bytes()), source_name: SOURCE_NAME, origin, next })
}

fn built(folder: &Path) -> Result<std::path::PathBuf, String> {
    let (source, program) = (folder.join(SOURCE_NAME), folder.join("logstats"));
    fs::write(&source, SOURCE).map_err(|error| format!("the program can't be written: {error}"))?;
    let compiler = Command::new("cc")
        .args(["-O2", "-g", "-o"])
        .args([&program, &source])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match compiler {
        Ok(status) if status.success() => Ok(program),
        Ok(_) => Err("the C compiler (cc) can't build the program".to_owned()),
        Err(_) => Err("there is no C compiler (cc) to build the program with".to_owned()),
    }
}

/// Keeps what there is to know; progress of two seconds is none.
#[derive(Default)]
struct Notes(Vec<String>);

impl Ui for Notes {
    fn note(&mut self, sentence: &str) {
        self.0.push(sentence.to_owned());
    }

    fn building(&mut self, _: &str) {}

    fn begun(&mut self, _: &str) {}

    fn progress(&mut self, _: Duration, _: u64) {}

    fn written(&mut self, _: &Path) {}
}
