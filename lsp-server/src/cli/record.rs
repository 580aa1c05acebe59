//! `perflens record`: records a command or running processes, and shows what their lines cost.
//!
//! With `--watch` it is a part of the server, which starts it, reads JSON lines from its output and
//! ends it by closing its input.

use std::ffi::OsString;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum};
use profiler_core::attribute::Filter;
use profiler_core::attribute::analysis::Analysis;
use profiler_core::cancel::CancelFlag;
use profiler_core::view::data;
use profiler_core::view::document::{Document, Sentence};
use profiler_core::view::hotspots::{self, By, Options};
use profiler_ebpf::protocol::{EventKind, Method};

use super::load::{groups, open_workspace};
use super::{Failure, convert, output, roots, signals};
use crate::config::places::Places;
use crate::record::held::CommandLine;
use crate::record::helper::Elevation;
use crate::record::repeat;
use crate::record::run::{Request, Streams, Target};
use crate::record::{Commission, Done, Job, Ui, in_words, perform, profile_test};
use crate::shell;
use crate::watched::{self, Line, Report, Tested};

/// Longer orders are none.
const MAX_ORDER: u64 = 1 << 20;

/// Rows of the table at the end.
const ROWS: usize = 10;

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  perflens record -- ./target/release/app --fast
      runs a program and records it to its end
  perflens record -p 4711 --duration 10s
      ten seconds of a process that is running
  perflens record -- cargo run --release
      builds first, then records the program alone; so with go run and npm
  perflens record --event off-cpu -- ./server
      where it waits, instead of where it computes

Recordings are kept per project; the language server of an editor opens them by itself.
What full recording needs, once: perflens doctor says it.")]
pub(super) struct Arguments {
    /// A running process; may be given several times
    #[arg(short = 'p', long = "pid", value_name = "PID", conflicts_with = "command")]
    pids: Vec<u32>,

    /// How long, as 10s, 2m or 500ms [default: until the command ends, or Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,

    /// Samples per second on each processor, 1 to 1999
    #[arg(long, value_name = "N", default_value_t = 199, value_parser = clap::value_parser!(u32).range(1..=1999))]
    frequency: u32,

    /// What to record
    #[arg(long, value_enum, default_value_t = Kind::Cpu)]
    event: Kind,

    /// Write the profile here instead of keeping it with the project's recordings
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The folder that the recording belongs to [default: the project around the present one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    /// Become root by this for the recorder alone
    #[arg(long, value_enum, value_name = "PROGRAM")]
    elevate: Option<Elevate>,

    /// How to take stacks [default: the best there is]
    #[arg(long, value_enum)]
    method: Option<How>,

    /// As root: also processes of other users
    #[arg(long)]
    any_user: bool,

    /// For the language server: write JSON lines, and the profile while recording
    #[arg(long, hide = true)]
    watch: bool,

    /// For the language server: the first line of the input says which test to profile
    #[arg(long, hide = true, requires = "watch", conflicts_with_all = ["pids", "command"])]
    order: bool,

    /// The command with its arguments
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Time on a processor
    Cpu,
    /// Time waiting: for locks, input, a processor
    OffCpu,
    /// Memory, where it is allocated
    Alloc,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Elevate {
    /// `sudo -n`, which never asks for a password
    Sudo,
    /// `pkexec`, which asks in a window
    Pkexec,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum How {
    /// eBPF, unwound in the kernel
    Bpf,
    /// eBPF by frame pointers
    FramePointers,
    /// Copied stacks: own processes, no privilege
    Copies,
}

/// Reads `10s`, `2m`, `500ms`, `1h`; a bare number is seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("give a number with ms, s, m or h, like 10s".to_owned()),
    };
    let number: f64 = number.parse().map_err(|_| "give a number with ms, s, m or h, like 10s".to_owned())?;
    let duration = Duration::try_from_secs_f64(number * seconds).map_err(|_| "it is too long".to_owned())?;
    match duration {
        Duration::ZERO => Err("it must be longer than nothing".to_owned()),
        duration if duration > Duration::from_hours(1) => Err("an hour is the most".to_owned()),
        duration => Ok(duration),
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.order {
        return ordered();
    }
    if arguments.pids.is_empty() && arguments.command.is_empty() {
        return Err(Failure::Usage(
            "what is to be recorded? Give a command behind --, or a process with -p; for example: perflens record -- \
             ./app"
                .to_owned(),
        ));
    }
    let current = std::env::current_dir().map_err(|error| Failure::Input(format!("the current folder: {error}")))?;
    let workspace = match &arguments.workspace {
        Some(folder) if folder.is_dir() => folder.clone(),
        Some(folder) => return Err(Failure::Input(format!("{}: there is no such folder", folder.display()))),
        None => roots::project(&current).map_or(current.as_path(), |(folder, _)| folder).to_owned(),
    };
    let mut words = arguments.command.iter().cloned();
    let target = match words.next() {
        Some(program) => {
            Target::Command(CommandLine { program, arguments: words.collect(), environment: Vec::new(), folder: None })
        }
        None => Target::Processes(arguments.pids.clone()),
    };
    arguments.output.as_deref().map_or(Ok(()), convert::check_target)?;
    let stop = signals::stop()?;
    if arguments.watch {
        stop_at_end_of_input(Arc::clone(&stop));
    }
    let job = Job {
        request: Request {
            target,
            duration: arguments.duration,
            frequency: arguments.frequency,
            events: match arguments.event {
                Kind::Cpu => vec![EventKind::Cpu],
                Kind::OffCpu => vec![EventKind::Preempted, EventKind::Blocked],
                Kind::Alloc => vec![EventKind::Alloc],
            },
            elevation: match arguments.elevate {
                None => Elevation::None,
                Some(Elevate::Sudo) => Elevation::Sudo,
                Some(Elevate::Pkexec) => Elevation::Pkexec,
            },
            method: arguments.method.map(|method| match method {
                How::Bpf => Method::BpfTables,
                How::FramePointers => Method::BpfFramePointers,
                How::Copies => Method::StackCopies,
            }),
            any_user: arguments.any_user,
            streams: if arguments.watch { Streams::Nothing } else { Streams::Ours },
        },
        recordings: Places::of_this_process().recordings,
        output: arguments.output.clone(),
        is_live: arguments.watch,
        debug_dirs: super::server::debug_dirs(&[]),
        workspace: workspace.clone(),
        test: None,
    };
    if arguments.watch {
        watched(job, &stop);
        return Ok(());
    }
    let mut terminal = Terminal::new();
    let done = perform(job, &stop, &mut terminal);
    terminal.clear();
    let done = done.map_err(Failure::Input)?;
    report(&done, &workspace)?;
    match done.status {
        Some(status) if !status.success() => Err(Failure::Input(format!(
            "{} ended with {}; what was recorded until then is kept",
            done.program,
            in_words(status)
        ))),
        _ => Ok(()),
    }
}

/// The server closes our input to stop, and by dying.
fn stop_at_end_of_input(stop: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        let mut byte = [0; 64];
        while matches!(input.read(&mut byte), Ok(length) if length > 0) {}
        stop.store(true, Ordering::Relaxed);
    });
}

/// Prints the hottest lines and what to do next.
fn report(done: &Done, workspace: &Path) -> Result<(), Failure> {
    let never = CancelFlag::new();
    let opened = open_workspace(&[workspace.to_owned()])?;
    let profile = Arc::new(done.profile.clone());
    let value_type = profile.meta().default_value_type;
    let groups = groups(&profile, opened.as_ref());
    let analysis =
        Analysis::new(profile, groups, value_type, &[], &never).map_err(|_| Failure::Input("cancelled".to_owned()))?;
    let mut document = Document::default();
    document.paragraph([Sentence::new(format!(
        "{} samples in {:.1} s, {}",
        done.samples,
        done.elapsed.as_secs_f64(),
        done.how
    ))]);
    document.paragraph(done.notes.iter().map(Sentence::new));
    let options = Options { origin: &done.program, by: By::Line, top: ROWS, explain: None };
    document.blocks.extend(hotspots::hotspots(&analysis, &options).blocks);
    let path = shell::word(&done.path.to_string_lossy());
    let folder = shell::word(&workspace.to_string_lossy());
    document.paragraph([
        Sentence::new("  ").command(&format!("perflens report {path} --workspace {folder}")),
        Sentence::new("  ").command(&format!("perflens annotate FILE --profile {path}")),
    ]);
    output::text(&document)
}

/// Progress on a terminal, one line that is written again; nothing where there is none.
struct Terminal {
    is_terminal: bool,
    has_line: bool,
}

impl Terminal {
    fn new() -> Self {
        Self { is_terminal: io::stderr().is_terminal(), has_line: false }
    }

    fn clear(&mut self) {
        if self.has_line {
            let _ = write!(io::stderr(), "\r\x1b[K");
            self.has_line = false;
        }
    }

    fn say(&mut self, sentence: &str) {
        self.clear();
        // It may quote names, which are data.
        let _ = writeln!(io::stderr(), "perflens: {}", data::shown_within(sentence, 1000));
    }
}

impl Ui for Terminal {
    fn note(&mut self, sentence: &str) {
        self.say(sentence);
    }

    fn building(&mut self, command: &str) {
        self.say(&format!("building first: {command}"));
    }

    fn begun(&mut self, how: &str) {
        if self.is_terminal {
            self.say(&format!("recording {how}; Ctrl-C ends it and keeps what there is"));
        }
    }

    fn progress(&mut self, elapsed: Duration, samples: u64) {
        if self.is_terminal {
            let _ = write!(io::stderr(), "\r\x1b[Krecording {:.0} s, {samples} samples", elapsed.as_secs_f64());
            self.has_line = true;
        }
    }

    fn written(&mut self, _path: &Path) {}
}

/// A recording that the server watches.
fn watched(job: Job, stop: &AtomicBool) {
    tell_end(perform(job, stop, &mut Lines { is_detailed: false }));
}

/// A test that the server has profiled.
fn ordered() -> Result<(), Failure> {
    let mut line = String::new();
    io::stdin().lock().take(MAX_ORDER).read_line(&mut line).map_err(|error| Failure::Input(error.to_string()))?;
    let Commission { order, against, is_detailed } =
        serde_json::from_str(&line).map_err(|error| Failure::Usage(format!("the order: {error}")))?;
    let stop = signals::stop()?;
    stop_at_end_of_input(Arc::clone(&stop));
    let folders =
        profile_test::Folders { recordings: Places::of_this_process().recordings, workspace: order.root.clone() };
    let mut lines = Lines { is_detailed };
    tell_end(profile_test::profile(&order, against.as_ref(), &folders, &stop, &mut lines));
    Ok(())
}

/// Tells what came of it.
fn tell_end(done: Result<Done, String>) {
    match done {
        Ok(done) => {
            let tested = done.tested.as_ref().map(|tested| Tested {
                runs: tested.report.runs,
                samples_under: tested.samples_under,
                under: tested.under.as_ref().map(ToString::to_string),
                failure: tested.report.in_words(&done.program),
            });
            tell(&Line::Done(watched::Done {
                path: done.path,
                how: done.how,
                notes: done.notes,
                samples: done.samples,
                elapsed_ms: milliseconds(done.elapsed),
                program: done.program,
                status: done.status.filter(|status| !status.success()).map(in_words),
                tested,
            }));
        }
        Err(why) => tell(&Line::Failed(why)),
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn tell(line: &Line) {
    if let Ok(line) = serde_json::to_string(line) {
        // Whoever does not read any more has closed our input as well.
        let _ = writeln!(io::stdout(), "{line}");
    }
}

struct Lines {
    /// Whether it is told how a test ended, with the end of its output.
    is_detailed: bool,
}

impl Ui for Lines {
    fn under(&mut self, filter: &Filter) {
        tell(&Line::Under(filter.to_string()));
    }

    fn note(&mut self, sentence: &str) {
        tell(&Line::Note(sentence.to_owned()));
    }

    fn building(&mut self, command: &str) {
        tell(&Line::Building(command.to_owned()));
    }

    fn begun(&mut self, how: &str) {
        tell(&Line::Begun(how.to_owned()));
    }

    fn progress(&mut self, elapsed: Duration, samples: u64) {
        tell(&Line::Progress { elapsed_ms: milliseconds(elapsed), samples });
    }

    fn written(&mut self, path: &Path) {
        tell(&Line::Written(path.to_owned()));
    }

    fn ended(&mut self, report: &Report) {
        if self.is_detailed {
            tell(&Line::Ended(report.clone()));
        }
    }
}

/// Becomes the command of a recording; see `record::held`.
#[derive(Args, Debug)]
pub(super) struct Launch {
    /// The command with its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Says nothing on its own: whoever waits for the command is told over the socket.
pub(super) fn launch(arguments: &Launch) -> ExitCode {
    if let [program, arguments @ ..] = arguments.command.as_slice() {
        let _ = crate::record::held::launch(Path::new(program), arguments);
    }
    ExitCode::FAILURE
}

/// Becomes a command that ends with whoever started it; see `record::repeat`.
pub(super) fn tie(arguments: &Launch) -> ExitCode {
    if let [program, arguments @ ..] = arguments.command.as_slice() {
        let why = repeat::tie(program, arguments);
        // Whoever started it knows by this beginning that it is our word.
        let _ = writeln!(io::stderr(), "perflens: {why}");
    }
    ExitCode::from(repeat::NOT_STARTED)
}

/// Runs a command again and again; see `record::repeat`.
#[derive(Args, Debug)]
pub(super) struct Repeat {
    /// How often, instead of until the input ends
    #[arg(long, value_name = "N")]
    runs: Option<u32>,

    /// The command with its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Says how it went on its output.
pub(super) fn repeat(arguments: &Repeat) -> ExitCode {
    repeat::run(&arguments.command, arguments.runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, milliseconds) in [("10s", 10_000), ("500ms", 500), ("1.5m", 90_000), ("7", 7_000), ("1h", 3_600_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "s", "10x", "0s", "2h", "-1s", "1e99s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
