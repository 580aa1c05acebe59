//! The log on standard error. Nobody may be reading it, and a full pipe must not hold up the
//! server: lines that can't leave are thrown away.

use std::io::{self, Write};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

/// Lines that may wait.
const QUEUE: usize = 1024;

/// Where the log goes. Each write is one line.
#[derive(Clone, Debug)]
pub struct Lossy {
    lines: SyncSender<Vec<u8>>,
}

impl Lossy {
    /// A log that ends up on standard error, written by a thread of its own.
    pub fn stderr() -> Self {
        let (lines, waiting) = sync_channel::<Vec<u8>>(QUEUE);
        std::thread::spawn(move || {
            while let Ok(line) = waiting.recv() {
                if io::stderr().write_all(&line).is_err() {
                    return;
                }
            }
        });
        Self { lines }
    }
}

impl Write for Lossy {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self.lines.try_send(line.to_vec()) {
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Ok(line.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
