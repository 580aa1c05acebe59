//! The recorder: a process that watches others and says what it sees.
//!
//! [`main`] is all of the program `perflens-record`, and of `perflens __recorder`. It takes its orders from a
//! parent over a socket or, in a shell, from its command line, and streams
//! [events](crate::protocol::Event) to standard output until it is told to stop, its parent is gone, the
//! time is up or all targets ended.
//!
//! It writes no file, opens no network, starts no program, and reads of the disk only what its targets have
//! mapped, with the caller's rights ([`privilege`](crate::privilege)).

mod allocations;
mod command;
mod maps_file;
mod output;
mod processes;
mod python;
mod session;
mod signals;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;

pub use command::{MAX_DURATION, MAX_FREQUENCY, MAX_TARGETS};
use command::{Orders, Parent, Wanted};
use output::Output;

use crate::privilege::{Caller, forget_environment};
use crate::protocol::{Failure, FailureKind, event};
use crate::sampler::Sources;

/// Why there is no recording.
#[derive(Debug)]
pub(crate) struct Refusal {
    kind: FailureKind,
    sentence: String,
    remedy: String,
    detail: String,
}

const USAGE: &str = "\
Records programs with eBPF. Meant to be started by perflens; alone it is used as

  perflens-record -p PID… [options] > FILE.plp

  -p, --pid PID          record this process; may be repeated
      --event EVENT      cpu, off-cpu, alloc or page-fault; may be repeated (default cpu)
      --frequency N      samples per second and CPU, 1 to 1999 (default 99)
      --duration SECONDS stop after this long (default: until interrupted, an hour at most)
      --no-children      not the processes that it starts
      --no-kernel        not the kernel's part of stacks
      --any-user         also processes of other users; for root only
      --version, --help
";

/// Shortest wait, in nanoseconds, that a shell's user is told of.
const OFF_CPU_THRESHOLD: u64 = 1_000_000;

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Help,
    Version,
    /// Orders come over standard input.
    Parent,
    Shell(Shell),
}

#[derive(Debug, PartialEq, Eq)]
struct Shell {
    pids: Vec<u32>,
    sources: Sources,
    frequency: u32,
    duration: Duration,
    children: bool,
    kernel: bool,
    any_user: bool,
}

/// Understands the command line; an error is a sentence about it.
fn command_line(arguments: impl IntoIterator<Item = OsString>) -> Result<Line, String> {
    let mut shell = Shell {
        pids: Vec::new(),
        sources: Sources::default(),
        frequency: 99,
        duration: MAX_DURATION,
        children: true,
        kernel: true,
        any_user: false,
    };
    let mut arguments = arguments.into_iter().map(|argument| argument.to_string_lossy().into_owned());
    let mut any = false;
    while let Some(argument) = arguments.next() {
        any = true;
        let (name, mut value) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
            _ => (argument, None),
        };
        let mut value = || value.take().or_else(|| arguments.next()).ok_or(format!("{name} needs a value"));
        match name.as_str() {
            "-h" | "--help" => return Ok(Line::Help),
            "-V" | "--version" => return Ok(Line::Version),
            "-p" | "--pid" => {
                let value = value()?;
                let pid = value.parse().ok().filter(|&pid| pid > 0);
                shell.pids.push(pid.ok_or(format!("{value} is no process's number"))?);
            }
            "--event" => match value()?.as_str() {
                "cpu" => shell.sources.cpu = true,
                "off-cpu" => shell.sources.off_cpu = true,
                "alloc" => shell.sources.alloc = true,
                "page-fault" => shell.sources.page_faults = true,
                other => return Err(format!("there is no event {other}")),
            },
            "--frequency" => {
                let frequency = value()?.parse().ok().filter(|frequency| (1..=MAX_FREQUENCY).contains(frequency));
                shell.frequency = frequency.ok_or(format!("the frequency must be 1 to {MAX_FREQUENCY}"))?;
            }
            "--duration" => {
                let text = value()?;
                let seconds = text.strip_suffix('s').unwrap_or(&text).parse().ok();
                let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                let duration = duration.filter(|duration| !duration.is_zero() && *duration <= MAX_DURATION);
                shell.duration = duration.ok_or("the duration must be more than 0 and at most 3600 seconds")?;
            }
            "--no-children" => shell.children = false,
            "--no-kernel" => shell.kernel = false,
            "--any-user" => shell.any_user = true,
            other => return Err(format!("there is no {other} here")),
        }
    }
    match (any, shell.pids.len()) {
        (false, _) => Ok(Line::Parent),
        (true, 0) => Err("which process? Say -p PID".into()),
        (true, 1..=MAX_TARGETS) => Ok(Line::Shell(shell)),
        _ => Err(format!("a recording has {MAX_TARGETS} processes at most")),
    }
}

/// Runs the recorder with the arguments after its name. Call it while the process has one thread.
///
/// Ends with 0 after a recording, 1 when there was none, 2 when the command line made no sense.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let line = match command_line(arguments) {
        Ok(line) => line,
        Err(sentence) => {
            say(&format!("perflens-record: {sentence}\n"));
            return ExitCode::from(2);
        }
    };
    let shell = match line {
        Line::Help => {
            say(USAGE);
            return ExitCode::SUCCESS;
        }
        Line::Version => {
            say(concat!("perflens-record ", env!("CARGO_PKG_VERSION"), "\n"));
            return ExitCode::SUCCESS;
        }
        Line::Parent => None,
        Line::Shell(shell) => Some(shell),
    };
    let stdout = io::stdout();
    if rustix::termios::isatty(&stdout) {
        say("perflens-record: a recording is no text; send it to a file: > FILE.plp\n");
        return ExitCode::from(2);
    }
    let Ok(stdout) = stdout.as_fd().try_clone_to_owned() else { return ExitCode::FAILURE };
    let mut output = Output::new(File::from(stdout));
    let in_shell = shell.is_some();
    match run(shell, &mut output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => {
            if in_shell {
                let Refusal { sentence, remedy, .. } = &refusal;
                let space = if remedy.is_empty() { "" } else { " " };
                say(&format!("perflens-record: {sentence}{space}{remedy}\n"));
            }
            output.send(event::Kind::Failure(Failure {
                kind: refusal.kind as i32,
                sentence: refusal.sentence,
                remedy: refusal.remedy,
                detail: refusal.detail,
            }));
            output.finish();
            ExitCode::FAILURE
        }
    }
}

/// Words for a person; standard output belongs to the recording.
fn say(text: &str) {
    // Nobody may be there to read it.
    let _ = io::stderr().write_all(text.as_bytes());
}

fn run(shell: Option<Shell>, output: &mut Output<File>) -> Result<(), Refusal> {
    let caller = Caller::of_this_process().map_err(|error| Refusal {
        kind: FailureKind::NotPermitted,
        sentence: format!("It is not clear for whom to record: {error}."),
        remedy: String::new(),
        detail: String::new(),
    })?;
    forget_environment();
    let end = signals::wishes_to_end().map_err(|error| Refusal::resources(&error))?;
    let stdin = io::stdin();
    let mut parent = Parent::default();
    let orders = match shell {
        None => parent.start(&stdin)?,
        Some(shell) => shell.orders()?,
    };
    // A terminal's input is for whoever sits there.
    let parent = (rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&stdin).map_or(0, |status| status.st_mode))
        == rustix::fs::FileType::Socket)
        .then_some(parent);
    session::record(&orders, caller, parent, stdin.as_fd(), end.as_fd(), output)
}

impl Shell {
    fn orders(self) -> Result<Orders, Refusal> {
        let targets = self.pids.into_iter().map(|pid| {
            let pidfd = command::open_pid(pid).map_err(|error| Refusal {
                kind: FailureKind::Target,
                sentence: format!("There is no process {pid}."),
                remedy: String::new(),
                detail: error.to_string(),
            })?;
            Ok(Wanted { pid, pidfd })
        });
        Ok(Orders {
            targets: targets.collect::<Result<_, Refusal>>()?,
            sources: if self.sources == Sources::default() {
                Sources { cpu: true, ..self.sources }
            } else {
                self.sources
            },
            unwinding: None,
            off_cpu_threshold: OFF_CPU_THRESHOLD,
            frequency: self.frequency,
            duration: self.duration,
            children: self.children,
            kernel: self.kernel,
            any_user: self.any_user,
            programs: Vec::new(),
        })
    }
}

impl Refusal {
    fn resources(error: &dyn std::error::Error) -> Self {
        Self {
            kind: FailureKind::Resources,
            sentence: "The system has no room for a recording.".into(),
            remedy: String::new(),
            detail: error.to_string(),
        }
    }
}
