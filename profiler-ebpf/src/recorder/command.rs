//! What to record: from the parent over a socket, or from a shell's command line.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::Refusal;
use crate::protocol::{Command, EventKind, FailureKind, FrameError, Method, Reader, Start, VERSION, command};
use crate::sampler::{Sources, Unwinding};

/// Most processes that a recording begins with.
pub const MAX_TARGETS: usize = 64;
/// Most samples per second and CPU.
pub const MAX_FREQUENCY: u32 = 1999;
/// Longest recording.
pub const MAX_DURATION: Duration = Duration::from_hours(1);

/// Most programs that targets are about to become.
const MAX_PROGRAMS: usize = 4;
/// Longest path of one.
const MAX_PATH: usize = 4096;
/// Longest command: without paths the longest that makes sense has a few hundred bytes.
const MAX_COMMAND: usize = (MAX_PROGRAMS + 1) * MAX_PATH;
/// How long a parent may take to say what it wants.
const PATIENCE: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 30, tv_nsec: 0 };

/// A process to record, and what holds on to it.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) pid: u32,
    pub(super) pidfd: OwnedFd,
}

/// What is asked for, checked.
#[derive(Debug)]
pub(super) struct Orders {
    pub(super) targets: Vec<Wanted>,
    pub(super) frequency: u32,
    pub(super) duration: Duration,
    /// `None`: the best that works.
    pub(super) unwinding: Option<Unwinding>,
    pub(super) sources: Sources,
    /// Nanoseconds.
    pub(super) off_cpu_threshold: u64,
    pub(super) children: bool,
    pub(super) kernel: bool,
    pub(super) any_user: bool,
    /// What targets are about to become.
    pub(super) programs: Vec<PathBuf>,
}

/// The parent's side of a socket.
#[derive(Default)]
pub(super) struct Parent {
    bytes: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl Parent {
    /// Waits for [`Start`].
    pub(super) fn start(&mut self, socket: impl AsFd) -> Result<Orders, Refusal> {
        loop {
            if let Some(command) = self.take()? {
                let Some(command::Kind::Start(start)) = command.kind else {
                    return Err(bad("the first command was not to start"));
                };
                return check(&start, std::mem::take(&mut self.descriptors));
            }
            let mut waiting = [PollFd::new(&socket, PollFlags::IN)];
            if poll(&mut waiting, Some(&PATIENCE)).map_err(|error| bad(&error.to_string()))? == 0 {
                return Err(bad("no command came"));
            }
            if !self.receive(&socket).map_err(|error| bad(&format!("standard input is no socket: {error}")))? {
                return Err(bad("the parent went away without a command"));
            }
        }
    }

    /// Reads what has come; `true` when the recording shall end.
    pub(super) fn wants_end(&mut self, socket: impl AsFd) -> bool {
        if !self.receive(socket).unwrap_or(false) {
            return true;
        }
        loop {
            match self.take() {
                Ok(Some(Command { kind: Some(command::Kind::Stop(_)) })) | Err(_) => return true,
                Ok(Some(_)) => {}
                Ok(None) => return false,
            }
        }
    }

    /// Reads once; `false` at the end.
    fn receive(&mut self, socket: impl AsFd) -> io::Result<bool> {
        let mut bytes = [0; 1024];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_TARGETS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let received = match recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags) {
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(true),
            other => other?,
        };
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                for descriptor in descriptors {
                    if self.descriptors.len() < MAX_TARGETS {
                        self.descriptors.push(descriptor);
                    }
                }
            }
        }
        self.bytes.extend(&bytes[..received.bytes]);
        Ok(received.bytes > 0)
    }

    /// The next whole command.
    fn take(&mut self) -> Result<Option<Command>, Refusal> {
        let mut rest = self.bytes.as_slice();
        match Reader::new(&mut rest).read::<Command>() {
            Ok(Some(command)) => {
                let used = self.bytes.len() - rest.len();
                self.bytes.drain(..used);
                Ok(Some(command))
            }
            Ok(None) | Err(FrameError::Truncated { .. }) if self.bytes.len() < MAX_COMMAND => Ok(None),
            _ => Err(bad("the command can't be read")),
        }
    }
}

fn bad(detail: &str) -> Refusal {
    Refusal {
        kind: FailureKind::BadCommand,
        sentence: "The recorder was asked for something that it doesn't understand.".into(),
        remedy: String::new(),
        detail: detail.into(),
    }
}

fn out_of_bounds(sentence: String) -> Refusal {
    Refusal { kind: FailureKind::BadCommand, sentence, remedy: String::new(), detail: String::new() }
}

/// Refuses what is out of bounds.
pub(super) fn check(start: &Start, pidfds: Vec<OwnedFd>) -> Result<Orders, Refusal> {
    if start.version != VERSION {
        return Err(bad(&format!("version {} is not {VERSION}", start.version)));
    }
    if start.targets.is_empty() || start.targets.len() > MAX_TARGETS {
        return Err(out_of_bounds(format!("A recording has 1 to {MAX_TARGETS} processes.")));
    }
    if start.targets.len() != pidfds.len() {
        return Err(bad("a pidfd is needed for every target"));
    }
    if !(1..=MAX_FREQUENCY).contains(&start.frequency) {
        return Err(out_of_bounds(format!("The frequency must be 1 to {MAX_FREQUENCY} samples a second.")));
    }
    let duration = Duration::from_nanos(start.duration_ns);
    if duration > MAX_DURATION {
        return Err(out_of_bounds("A recording takes an hour at most.".into()));
    }
    let mut sources = Sources::default();
    for &event in &start.events {
        match EventKind::try_from(event) {
            Ok(EventKind::Cpu) => sources.cpu = true,
            Ok(EventKind::Blocked | EventKind::Preempted) => sources.off_cpu = true,
            Ok(EventKind::Alloc) => sources.alloc = true,
            Ok(EventKind::PageFault) => sources.page_faults = true,
            _ => return Err(bad(&format!("there is no event {event} to sample"))),
        }
    }
    if sources == Sources::default() {
        return Err(bad("no event is asked for"));
    }
    let unwinding = match Method::try_from(start.method) {
        Ok(Method::Unknown) => None,
        Ok(Method::BpfTables) => Some(Unwinding::Tables),
        Ok(Method::BpfFramePointers) => Some(Unwinding::FramePointers),
        _ => return Err(out_of_bounds("This recorder takes stacks with eBPF only.".into())),
    };
    if start.programs.len() > MAX_PROGRAMS || start.programs.iter().any(|path| path.len() > MAX_PATH) {
        return Err(bad("more programs are named than are taken"));
    }
    let targets = start.targets.iter().zip(pidfds).map(|(&pid, pidfd)| {
        if pid == 0 || pidfd_pid(&pidfd) != Some(pid) {
            return Err(bad(&format!("the pidfd is not one of process {pid}")));
        }
        Ok(Wanted { pid, pidfd })
    });
    Ok(Orders {
        targets: targets.collect::<Result<_, _>>()?,
        frequency: start.frequency,
        duration: if duration.is_zero() { MAX_DURATION } else { duration },
        unwinding,
        sources,
        off_cpu_threshold: start.off_cpu_threshold_ns,
        children: start.children,
        kernel: start.kernel,
        any_user: start.any_user,
        programs: start.programs.iter().map(PathBuf::from).collect(),
    })
}

/// A pidfd of a process by its number, for a shell's user.
pub(super) fn open_pid(pid: u32) -> Result<OwnedFd, rustix::io::Errno> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(rustix::io::Errno::SRCH)?;
    pidfd_open(pid, PidfdFlags::empty())
}

/// Which process a pidfd holds on to; `None` when it is none, or the process is gone.
fn pidfd_pid(pidfd: &OwnedFd) -> Option<u32> {
    use std::os::fd::AsRawFd as _;
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    text.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()
}
