//! The recorder as a child: which one, how it is started, and what to say about the choice.
//!
//! ```text
//! full rights ─▶ perflens-record with capabilities ─▶ ourselves without any ─▶ one sentence
//! ```
//!
//! Only a helper whose path belongs to root all the way is ever started with more rights than we
//! have; anybody could have planted another one.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use profiler_ebpf::protocol::{self, Event, FrameError, Method, Reader, Start, Stop, command};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use super::held::THIS_PROGRAM;

/// The helper's name.
const HELPER: &str = "perflens-record";

/// Where it is looked for besides beside this program.
const FOLDERS: &[&str] = &["/usr/local/bin", "/usr/bin", "/usr/local/libexec", "/usr/libexec"];

/// A way to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// This program as a child, with the rights it has.
    Own(Method),
    /// The helper, which has file capabilities.
    Helper(PathBuf),
    /// The helper, made root by `sudo -n` or `pkexec`.
    Elevated { by: &'static str, helper: PathBuf },
}

/// What is known about recording on this machine, before trying.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chances {
    /// To be tried in this order.
    pub(crate) ways: Vec<Way>,
    /// Why the best one is not among them, with the command that would help.
    pub(crate) missing: Option<Missing>,
}

/// What full recording lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) why: String,
    pub(crate) remedy: String,
}

/// What may be used to become root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Elevation {
    /// Nothing.
    #[default]
    None,
    /// `sudo -n`: never asks.
    Sudo,
    /// `pkexec`: asks in a window.
    Pkexec,
}

/// Finds the ways.
pub(crate) fn chances(elevation: Elevation) -> Chances {
    if rustix::process::geteuid().is_root() {
        return Chances { ways: vec![Way::Own(Method::BpfTables), Way::Own(Method::StackCopies)], missing: None };
    }
    let helpers = helpers();
    let trusted = helpers.iter().find(|helper| is_roots_own(helper));
    let fallback = Way::Own(Method::StackCopies);
    match (elevation, trusted) {
        (Elevation::Sudo, Some(helper)) => {
            let helper = helper.clone();
            return Chances { ways: vec![Way::Elevated { by: "sudo", helper }, fallback], missing: None };
        }
        (Elevation::Pkexec, Some(helper)) => {
            let helper = helper.clone();
            return Chances { ways: vec![Way::Elevated { by: "pkexec", helper }, fallback], missing: None };
        }
        _ => {}
    }
    match trusted {
        Some(helper) if has_capabilities(helper) => {
            Chances { ways: vec![Way::Helper(helper.clone()), fallback], missing: None }
        }
        _ => Chances { ways: vec![fallback], missing: Some(missing(trusted, helpers.first())) },
    }
}

/// The one grant of privilege that is missing.
fn missing(trusted: Option<&PathBuf>, any: Option<&PathBuf>) -> Missing {
    let grant = |path: &Path| format!("sudo setcap cap_bpf,cap_perfmon+ep {}", path.display());
    match (trusted, any) {
        (Some(helper), _) => Missing { why: "perflens-record has no rights yet".to_owned(), remedy: grant(helper) },
        (None, Some(helper)) => {
            let target = Path::new(FOLDERS[0]).join(HELPER);
            Missing {
                why: format!("{} could be replaced by others than root, so it gets no rights", helper.display()),
                remedy: format!("sudo install {} {} && {}", helper.display(), FOLDERS[0], grant(&target)),
            }
        }
        (None, None) => Missing {
            why: "perflens-record is not installed".to_owned(),
            remedy: format!(
                "sudo install perflens-record {} && {}",
                FOLDERS[0],
                grant(&Path::new(FOLDERS[0]).join(HELPER))
            ),
        },
    }
}

/// Helpers that are there: beside this program, then at the usual places.
fn helpers() -> Vec<PathBuf> {
    let own = env::current_exe().ok().and_then(|path| Some(path.parent()?.to_owned()));
    own.into_iter()
        .chain(FOLDERS.iter().map(PathBuf::from))
        .map(|folder| folder.join(HELPER))
        .filter(|path| path.is_file())
        .collect()
}

/// Whether nobody but root can change a file, by itself or by what its path goes through.
pub(crate) fn is_roots_own(path: &Path) -> bool {
    let Ok(real) = path.canonicalize() else { return false };
    real.ancestors().all(|part| {
        std::fs::symlink_metadata(part).is_ok_and(|metadata| {
            // A folder like /tmp is open to all, but its sticky bit keeps what others own.
            metadata.uid() == 0 && metadata.mode() & 0o022 == 0
        })
    })
}

/// Whether running the file gives capabilities.
fn has_capabilities(path: &Path) -> bool {
    let mut value = [0_u8; 64];
    rustix::fs::getxattr(path, "security.capability", &mut value[..]).is_ok_and(|length| length > 0)
}

/// A recorder that runs.
#[derive(Debug)]
pub(crate) struct Recorder {
    child: Child,
    socket: UnixStream,
}

/// The recorder's words.
pub(crate) type Events = Reader<BufReader<ChildStdout>>;

impl Recorder {
    /// Starts a recorder.
    pub(crate) fn start(way: &Way) -> io::Result<(Self, ChildStdout)> {
        let (socket, theirs) = UnixStream::pair()?;
        let mut command = match way {
            Way::Own(method) => {
                let mut command = Command::new(THIS_PROGRAM);
                let method = match method {
                    Method::StackCopies => "copies",
                    _ => "bpf",
                };
                command.arg0("perflens").args(["__recorder", "--method", method]);
                command
            }
            Way::Helper(helper) => Command::new(helper),
            Way::Elevated { by: "sudo", helper } => {
                let mut command = Command::new("sudo");
                command.arg("-n").arg("--").arg(helper);
                command
            }
            Way::Elevated { by, helper } => {
                let mut command = Command::new(by);
                command.arg(helper);
                command
            }
        };
        if !matches!(way, Way::Own(_)) {
            // Nothing of the user's surroundings may bend what has more rights than they have.
            let kept: Vec<(&str, OsString)> =
                ["PATH", "DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"]
                    .into_iter()
                    .filter_map(|name| Some((name, env::var_os(name)?)))
                    .collect();
            command.env_clear().envs(kept);
        }
        // Ctrl-C in a terminal is for us and the command; the recorder ends when we say so.
        command.process_group(0).stdin(OwnedFd::from(theirs)).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let events = child.stdout.take().ok_or_else(|| io::Error::other("no pipe"))?;
        Ok((Self { child, socket }, events))
    }

    /// Says what to record, with a descriptor for each target.
    pub(crate) fn send_start(&self, start: Start, pidfds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let message = protocol::Command { kind: Some(command::Kind::Start(start)) };
        let (mut buffer, mut bytes) = (Vec::new(), Vec::new());
        protocol::write_frame(&message, &mut buffer, &mut bytes)?;
        let mut space = vec![MaybeUninit::uninit(); SendAncillaryMessage::ScmRights(pidfds).size()];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(pidfds));
        let sent = rustix::net::sendmsg(&self.socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
        io::Write::write_all(&mut &self.socket, &bytes[sent..])
    }

    /// A handle by which another thread may end it.
    pub(crate) fn stopper(&self) -> io::Result<Stopper> {
        Ok(Stopper(self.socket.try_clone()?))
    }

    /// Waits for its end; whoever does not end is ended.
    pub(crate) fn finish(mut self, patience: Duration) {
        drop(self.socket);
        let step = Duration::from_millis(10);
        let mut waited = Duration::ZERO;
        while waited < patience && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(step);
            waited += step;
        }
        if matches!(self.child.try_wait(), Ok(None)) {
            // A helper of another user can't be killed; it ends when it finds its pipe closed.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Tells a recorder to stop.
#[derive(Debug)]
pub(crate) struct Stopper(UnixStream);

impl Stopper {
    /// Asks for the end; what was taken still comes.
    pub(crate) fn stop(&self) {
        let message = protocol::Command { kind: Some(command::Kind::Stop(Stop {})) };
        let mut buffer = Vec::new();
        let _ = protocol::write_frame(&message, &mut buffer, &mut &self.0);
    }
}

/// Reads what a recorder says.
pub(crate) fn events(stdout: ChildStdout) -> Result<Events, FrameError> {
    Reader::with_magic(BufReader::with_capacity(256 << 10, stdout))
}

/// The next message; what newer recorders say is skipped.
pub(crate) fn next(events: &mut Reader<impl io::Read>) -> Result<Option<protocol::event::Kind>, FrameError> {
    loop {
        match events.read::<Event>()? {
            None => return Ok(None),
            Some(Event { kind: Some(kind) }) => return Ok(Some(kind)),
            Some(Event { kind: None }) => {}
        }
    }
}

/// What came of trying a way for a moment.
pub(crate) type Probe = Result<Method, String>;

/// Tries all ways on ourselves, until one works; what did not work comes before it.
pub(crate) fn probe(chances: &Chances) -> Vec<Probe> {
    let mut tried = Vec::new();
    for way in &chances.ways {
        let probe = probe_one(way);
        let works = probe.is_ok();
        tried.push(probe);
        if works {
            break;
        }
    }
    tried
}

fn probe_one(way: &Way) -> Probe {
    let pid = std::process::id();
    let pidfds = pidfds(&[pid])?;
    let start = Start {
        version: protocol::VERSION,
        targets: vec![pid],
        frequency: 99,
        events: vec![protocol::EventKind::Cpu.into()],
        duration_ns: 20_000_000,
        ..Start::default()
    };
    let fail = |error: io::Error| format!("starting the recorder: {error}");
    let (recorder, stdout) = Recorder::start(way).map_err(fail)?;
    let sent = recorder.send_start(start, &borrowed(&pidfds));
    let mut method = Err(sent.err().map_or_else(|| "the recorder ended at once".to_owned(), fail));
    if let Ok(mut events) = events(stdout) {
        while let Ok(Some(kind)) = next(&mut events) {
            match kind {
                protocol::event::Kind::Hello(hello) => method = Ok(hello.method()),
                protocol::event::Kind::Failure(failure) => {
                    method = Err(in_words(&failure));
                    break;
                }
                protocol::event::Kind::End(_) => break,
                _ => {}
            }
        }
    }
    recorder.finish(Duration::from_secs(1));
    method
}

/// A failure as a part of a sentence, with what would help.
pub(crate) fn in_words(failure: &protocol::Failure) -> String {
    let sentence = clause(&failure.sentence);
    if failure.remedy.is_empty() { sentence } else { format!("{sentence}: {}", failure.remedy) }
}

/// A sentence as a part of a longer one.
pub(crate) fn clause(sentence: &str) -> String {
    let sentence = sentence.trim_end_matches('.');
    let mut letters = sentence.chars();
    match (letters.next(), letters.next()) {
        // Not where it begins with an abbreviation.
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            format!("{}{}", first.to_lowercase(), &sentence[first.len_utf8()..])
        }
        _ => sentence.to_owned(),
    }
}

/// How stacks are taken, in words.
pub(crate) fn method_in_words(method: Method) -> &'static str {
    match method {
        Method::BpfTables => "eBPF and unwind tables",
        Method::BpfFramePointers => "eBPF by frame pointers: only code that keeps them has whole stacks",
        Method::StackCopies => "copied stacks, own processes only",
        Method::Unknown => "a method of a newer recorder",
    }
}

/// Descriptors that stand for processes, so that a number that is used again means nobody else.
pub(crate) fn pidfds(pids: &[u32]) -> Result<Vec<OwnedFd>, String> {
    pids.iter()
        .map(|&pid| {
            let number = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
            let number = number.ok_or_else(|| format!("{pid} is no process"))?;
            rustix::process::pidfd_open(number, rustix::process::PidfdFlags::empty()).map_err(|error| match error {
                rustix::io::Errno::SRCH => format!("there is no process {pid}"),
                error => format!("process {pid}: {error}"),
            })
        })
        .collect()
}

/// As descriptors to be sent.
pub(crate) fn borrowed(descriptors: &[OwnedFd]) -> Vec<BorrowedFd<'_>> {
    descriptors.iter().map(AsFd::as_fd).collect()
}

/// The file name of a program.
pub(crate) fn program_name(program: &OsStr) -> String {
    Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned()
}
