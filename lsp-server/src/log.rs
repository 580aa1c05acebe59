//! The log on standard error. Nobody may be reading it, and a full pipe must not hold up the
//! server: lines that can't leave are thrown away.

use std::io::{self, Write};
use std::panic::PanicHookInfo;
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

/// Logs panics of all threads from now on, each as one line. The usual way writes to standard
/// error itself, and would wait there for somebody to read it.
pub fn log_panics() {
    std::panic::set_hook(Box::new(panicked));
}

/// One line about a panic.
pub(crate) fn panicked(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    let words = panic.payload_as_str().unwrap_or("no words").replace('\n', " ");
    tracing::error!("a bug in perflens: {words} (at {place})");
}
