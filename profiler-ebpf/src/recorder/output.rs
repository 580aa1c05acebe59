//! The stream of events.

use std::io::{self, Write as _};

use crate::protocol::{Event, event, write_frame, write_magic};

/// Writes events; what it can't write it remembers, and writes nothing more.
pub(super) struct Output<W: io::Write> {
    to: io::BufWriter<W>,
    buffer: Vec<u8>,
    broken: bool,
}

impl<W: io::Write> Output<W> {
    /// Begins a stream.
    pub(super) fn new(to: W) -> Self {
        let mut to = io::BufWriter::with_capacity(1 << 16, to);
        let broken = write_magic(&mut to).is_err();
        Self { to, buffer: Vec::new(), broken }
    }

    /// Adds an event.
    pub(super) fn send(&mut self, kind: event::Kind) {
        if !self.broken {
            self.broken = write_frame(&Event { kind: Some(kind) }, &mut self.buffer, &mut self.to).is_err();
        }
    }

    /// Hands over everything so far; `false` when nobody is there to take it.
    pub(super) fn flush(&mut self) -> bool {
        self.broken |= self.to.flush().is_err();
        !self.broken
    }
}
