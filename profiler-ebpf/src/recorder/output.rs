//! The stream of events.
//!
//! The parent may be slow, and the recorder must not wait for it: while it does, programs start whose mappings
//! nobody reads. So what can't be written at once is kept, and when that becomes too much samples are
//! dropped, and counted. Definitions are always kept; they are few.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use crate::protocol::{Event, event, write_frame, write_magic};

/// Most bytes that are kept for a slow parent.
const MAX_KEPT: usize = 16 << 20;
/// What a pipe that says it can be written to takes without waiting.
const CHUNK: usize = 4096;
/// How long a parent that takes nothing is waited for at the end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Writes events; after a failure it writes nothing more.
pub(super) struct Output<W> {
    to: W,
    kept: VecDeque<u8>,
    buffer: Vec<u8>,
    dropped: u64,
    broken: bool,
}

impl<W: io::Write + AsFd> Output<W> {
    /// Begins a stream.
    pub(super) fn new(to: W) -> Self {
        let mut kept = VecDeque::new();
        let broken = write_magic(&mut kept).is_err();
        Self { to, kept, buffer: Vec::new(), dropped: 0, broken }
    }

    /// Adds an event. Samples may be dropped.
    pub(super) fn send(&mut self, kind: event::Kind) {
        if self.broken {
            return;
        }
        if matches!(kind, event::Kind::Sample(_)) && self.kept.len() > MAX_KEPT {
            self.dropped += 1;
            return;
        }
        self.broken = write_frame(&Event { kind: Some(kind) }, &mut self.buffer, &mut self.kept).is_err();
    }

    /// How many samples were dropped because the parent was slow.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Whether something waits for the parent.
    pub(super) fn is_waiting(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Hands over what can be taken without waiting; `false` when nobody is there to take it.
    pub(super) fn flush(&mut self) -> bool {
        while !self.kept.is_empty() && !self.broken && self.is_writable(Duration::ZERO) {
            self.write();
        }
        !self.broken
    }

    /// Hands over everything, for as long as somebody takes it.
    pub(super) fn finish(&mut self) {
        let mut last = Instant::now();
        while !self.kept.is_empty() && !self.broken && last.elapsed() < PATIENCE {
            if self.is_writable(Duration::from_millis(100)) {
                self.write();
                last = Instant::now();
            }
        }
    }

    fn is_writable(&self, wait: Duration) -> bool {
        let mut fds = [PollFd::new(&self.to, PollFlags::OUT)];
        let timeout = Timespec::try_from(wait).unwrap_or_default();
        poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0)
    }

    fn write(&mut self) {
        let (front, _) = self.kept.as_slices();
        match self.to.write(&front[..front.len().min(CHUNK)]) {
            Ok(0) => self.broken = true,
            Ok(written) => {
                self.kept.drain(..written);
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            Err(_) => self.broken = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;
    use crate::protocol::{Note, Reader, Sample};

    #[test]
    fn a_parent_that_reads_nothing_costs_samples_and_no_wait() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut output = Output::new(writer);
        let sample = Sample { user: vec![1; 500], ..Sample::default() };
        let rounds = 8_000;
        for _ in 0..rounds {
            output.send(event::Kind::Sample(sample.clone()));
            assert!(output.flush());
        }
        output.send(event::Kind::Note(Note { sentence: "kept".into() }));
        assert!(output.dropped() > 0 && output.is_waiting());
        let dropped = output.dropped();

        let all = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).unwrap();
            bytes
        });
        output.finish();
        drop(output);
        let bytes = all.join().unwrap();
        let mut events = Reader::with_magic(bytes.as_slice()).unwrap();
        let (mut samples, mut last) = (0, None);
        while let Some(event) = events.read::<Event>().unwrap() {
            samples += u64::from(matches!(event.kind, Some(event::Kind::Sample(_))));
            last = event.kind;
        }
        assert_eq!(samples + dropped, rounds);
        assert!(matches!(last, Some(event::Kind::Note(_))), "definitions are kept");
    }

    #[test]
    fn a_parent_that_is_gone_is_noticed() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut output = Output::new(writer);
        assert!(!output.flush());
        output.finish();
    }
}
