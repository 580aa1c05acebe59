//! A command that is started as the user and held until the recorder is in place.
//!
//! What is started is this program as a launcher ([`launch`]); its standard input is a socket to us.
//! Over it come the command's real standard input, as a descriptor, and then a byte that lets it go.
//! The launcher then becomes the command: same process, so the recorder is attached already, and
//! nothing of the command has run before. If we die first, the launcher sees the end of the socket
//! and ends too. The socket is closed by the launcher's `exec`, which is how we know that it worked;
//! else it says why not.
//!
//! All this without code between `fork` and `exec`, which would have to be `unsafe`.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, IsTerminal, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use rustix::process::{PTracer, Pid, Signal, kill_process, kill_process_group, test_kill_process_group};

/// This program, also when its file has been replaced meanwhile.
pub(crate) const THIS_PROGRAM: &str = "/proc/self/exe";

/// The name of the hidden subcommand that [`launch`] is.
pub(crate) const LAUNCH: &str = "__launch";

/// A command to start.
#[derive(Clone, Debug)]
pub(crate) struct CommandLine {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The folder to run it in; `None` for the present one.
    pub(crate) folder: Option<PathBuf>,
}

/// A command that waits to be let go.
#[derive(Debug)]
pub(crate) struct Held {
    child: Child,
    has_group: bool,
    socket: UnixStream,
}

/// A command that runs.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    /// Whether it and what it starts are a process group, to end together. Not where it reads from a terminal, which
    /// lets only the group in front read; there Ctrl-C reaches all of them.
    has_group: bool,
}

impl Held {
    /// Starts the launcher. The command's output goes where ours goes, or to `output`.
    pub(crate) fn start(command: &CommandLine, input: &OwnedFd, output: Option<OwnedFd>) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let mut launcher = Command::new(THIS_PROGRAM);
        launcher
            .arg0("perflens")
            .arg(LAUNCH)
            .arg("--")
            .arg(&command.program)
            .args(&command.arguments)
            .envs(command.environment.iter().cloned())
            .stdin(OwnedFd::from(theirs));
        if let Some(folder) = &command.folder {
            launcher.current_dir(folder);
        }
        if let Some(output) = output {
            launcher.stdout(output);
        }
        let has_group = !input.is_terminal();
        if has_group {
            launcher.process_group(0);
        }
        let child = launcher.spawn()?;
        let held = Self { child, has_group, socket };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [input.as_fd()];
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        rustix::net::sendmsg(&held.socket, &[IoSlice::new(b"i")], &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(held)
    }

    /// The process that will be the command.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it run. The error says why the program could not be started.
    pub(crate) fn release(mut self) -> Result<Running, String> {
        let fail = |error: io::Error| error.to_string();
        self.socket.write_all(b"g").map_err(fail)?;
        self.socket.set_read_timeout(Some(Duration::from_secs(10))).map_err(fail)?;
        let mut why = Vec::new();
        // Ends when the launcher has become the command.
        let _ = (&self.socket).take(4096).read_to_end(&mut why);
        if why.is_empty() {
            return Ok(Running { child: self.child, has_group: self.has_group });
        }
        let _ = self.child.wait();
        Err(String::from_utf8_lossy(&why).into_owned())
    }

    /// Ends the launcher without having run anything.
    pub(crate) fn abandon(mut self) {
        drop(self.socket);
        let _ = self.child.wait();
    }
}

impl Running {
    /// How it ended, if it does so in time.
    pub(crate) fn wait_for(&mut self, patience: Duration) -> io::Result<Option<ExitStatus>> {
        let step = Duration::from_millis(5);
        let mut waited = Duration::ZERO;
        loop {
            let status = self.child.try_wait()?;
            if status.is_some() || waited >= patience {
                return Ok(status);
            }
            std::thread::sleep(step);
            waited += step;
        }
    }

    /// Asks it and what it has started to end, then makes them.
    pub(crate) fn end(mut self, patience: Duration) -> io::Result<ExitStatus> {
        let pid = Pid::from_child(&self.child);
        // Where it has ended meanwhile, there is nothing to do.
        let _ = if self.has_group { kill_process_group(pid, Signal::TERM) } else { kill_process(pid, Signal::TERM) };
        let begun = Instant::now();
        let status = self.wait_for(patience)?;
        if self.has_group {
            // What it has started may take longer than it.
            while test_kill_process_group(pid).is_ok() {
                if begun.elapsed() >= patience {
                    let _ = kill_process_group(pid, Signal::KILL);
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        if let Some(status) = status {
            return Ok(status);
        }
        self.child.kill()?;
        self.child.wait()
    }
}

/// The launcher's side: waits, then becomes the command. Returns only when that failed.
pub(crate) fn launch(program: &Path, arguments: &[OsString]) -> Result<std::convert::Infallible, String> {
    let fail = |error: io::Error| format!("the launcher: {error}");
    // What runs only to be measured ends with whoever measures it, however that ends.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::TERM));
    // Where programs are shown to those above them alone (Yama), our parent's other children may look as well: the recorder
    // is one of them. Elsewhere there is nothing to say.
    let _ = rustix::process::getppid().map(|parent| rustix::process::set_ptracer(PTracer::ProcessID(parent)));
    let socket: UnixStream = io::stdin().as_fd().try_clone_to_owned().map_err(fail)?.into();
    let input = receive_input(&socket).map_err(fail)?;
    let mut go = [0];
    if (&socket).read(&mut go).map_err(fail)? == 0 {
        return Err("nobody waits for the command any more".to_owned());
    }
    rustix::stdio::dup2_stdin(&input).map_err(|error| fail(error.into()))?;
    drop(input);
    let error = Command::new(program).args(arguments).exec();
    let why = match error.kind() {
        io::ErrorKind::NotFound if program.components().count() == 1 && program.is_file() => format!(
            "{0}: there is no such program; a file of this name is here: ./{0} runs it, or give what runs it before it",
            program.display()
        ),
        io::ErrorKind::NotFound => format!("{}: there is no such program", program.display()),
        io::ErrorKind::PermissionDenied => format!("{}: it may not be run", program.display()),
        _ => format!("{}: {error}", program.display()),
    };
    let _ = (&socket).write_all(why.as_bytes());
    Err(why)
}

fn receive_input(socket: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    rustix::net::recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let descriptor = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    descriptor.ok_or_else(|| io::Error::other("no input came"))
}

/// Our own standard input, for a command that reads it.
pub(crate) fn own_input() -> io::Result<OwnedFd> {
    io::stdin().as_fd().try_clone_to_owned()
}

/// An input without anything in it.
pub(crate) fn no_input() -> io::Result<OwnedFd> {
    Ok(OwnedFd::from(std::fs::File::open("/dev/null")?))
}

/// An output that keeps nothing.
pub(crate) fn no_output() -> io::Result<OwnedFd> {
    Ok(OwnedFd::from(std::fs::File::options().write(true).open("/dev/null")?))
}
