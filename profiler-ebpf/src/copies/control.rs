//! What the parent says: its first command with the descriptors that come with it, then when to stop.

use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use crate::protocol::{Command, FrameError, Reader, Start, command};

/// Most targets of one recording.
pub(super) const MAX_TARGETS: usize = 253;

/// The parent's end of the conversation.
pub(super) struct Control {
    socket: OwnedFd,
    /// Bytes that have come and are no whole command yet.
    bytes: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

/// What has come.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    /// Nothing that matters, or nothing yet.
    Nothing,
    /// Begin.
    Start(Start),
    /// End; also when nobody is there any more.
    Stop,
}

impl Control {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self { socket, bytes: Vec::new(), descriptors: Vec::new() }
    }

    /// The descriptors that came with the first command.
    pub(super) fn take_descriptors(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.descriptors)
    }

    /// Reads what there is, waiting for something when there is nothing.
    pub(super) fn receive(&mut self) -> io::Result<Said> {
        if let Some(said) = self.whole_command()? {
            return Ok(said);
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_TARGETS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut bytes = [0; 4096];
        let received = loop {
            let into = &mut [io::IoSliceMut::new(&mut bytes)];
            match rustix::net::recvmsg(&self.socket, into, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                // Something else than a socket, as of a test or of somebody who tries it by hand.
                Err(Errno::NOTSOCK) => break rustix::io::read(&self.socket, &mut bytes)?,
                other => break other?.bytes,
            }
        };
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.descriptors.extend(descriptors);
            }
        }
        if received == 0 {
            return Ok(Said::Stop);
        }
        self.bytes.extend_from_slice(&bytes[..received]);
        Ok(self.whole_command()?.unwrap_or(Said::Nothing))
    }

    fn whole_command(&mut self) -> io::Result<Option<Said>> {
        let mut rest = self.bytes.as_slice();
        let command = match Reader::new(rest.by_ref()).read::<Command>() {
            Ok(Some(command)) => command,
            Ok(None) | Err(FrameError::Truncated { .. }) => return Ok(None),
            Err(error) => return Err(io::Error::other(error)),
        };
        let used = self.bytes.len() - rest.len();
        self.bytes.drain(..used);
        Ok(Some(match command.kind {
            Some(command::Kind::Start(start)) => Said::Start(start),
            Some(command::Kind::Stop(_)) => Said::Stop,
            None => Said::Nothing,
        }))
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
