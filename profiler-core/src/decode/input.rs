//! The bytes a decoder reads: decompressed on a thread of their own, handed over in chunks.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use super::Limits;
use super::container::{self, Facts};
use super::error::{DecodeError, DecodeErrorKind};
use crate::cancel::CancelFlag;

const CHUNK: usize = 256 << 10;
/// Below this much output the ratio of compression is nobody's business.
const RATIO_MATTERS_FROM: u64 = 64 << 20;

type Chunk = Result<Vec<u8>, DecodeError>;

/// Bytes of a file after decompression, in order.
pub struct Input<'a> {
    chunks: Receiver<Chunk>,
    spent: Sender<Vec<u8>>,
    buffer: Vec<u8>,
    position: usize,
    consumed: u64,
    at_end: bool,
    /// Why the bytes end where they end, if not because the file does.
    failure: Option<DecodeError>,
    facts: Option<Arc<Facts>>,
    cancel: &'a CancelFlag,
}

/// Runs `use_input` on the bytes of `reader` while another thread reads and decompresses.
pub(super) fn with_input<T>(
    reader: impl Read + Send,
    limits: &Limits,
    cancel: &CancelFlag,
    use_input: impl FnOnce(&mut Input<'_>) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    std::thread::scope(|scope| {
        let (send_chunk, chunks) = sync_channel(4);
        let (spent, take_spent) = channel();
        let (send_facts, facts) = sync_channel(1);
        scope.spawn(move || {
            let opened = container::open(reader);
            match opened {
                Ok(plain) => {
                    let _ = send_facts.send(Arc::clone(&plain.facts));
                    pump(plain, limits, cancel, &send_chunk, &take_spent);
                }
                Err(error) => {
                    let _ = send_chunk.send(Err(error));
                }
            }
        });
        let mut input = Input {
            chunks,
            spent,
            buffer: Vec::new(),
            position: 0,
            consumed: 0,
            at_end: false,
            failure: None,
            facts: facts.recv().ok(),
            cancel,
        };
        use_input(&mut input)
    })
}

/// Reads until the end, a limit, an error, or until nobody listens any more.
fn pump(
    mut plain: container::Plain<'_>,
    limits: &Limits,
    cancel: &CancelFlag,
    chunks: &SyncSender<Chunk>,
    spent: &Receiver<Vec<u8>>,
) {
    let mut produced: u64 = 0;
    loop {
        let mut chunk = spent.try_recv().unwrap_or_default();
        chunk.resize(CHUNK, 0);
        let mut filled = 0;
        let result = loop {
            match plain.reader.read(&mut chunk[filled..]) {
                Ok(0) => break Ok(false),
                Ok(n) => filled += n,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => break Err(container::io_error(&error)),
            }
            if filled == CHUNK {
                break Ok(true);
            }
        };
        chunk.truncate(filled);
        produced += filled as u64;
        let is_compressed = plain.facts.is_compressed.load(Ordering::Relaxed);
        let read = plain.facts.bytes_read.load(Ordering::Relaxed).max(1);
        let over = if produced > limits.max_bytes {
            Some(format!("it is larger than the limit of {} MiB", limits.max_bytes >> 20))
        } else if is_compressed && produced > RATIO_MATTERS_FROM && produced / read > limits.max_ratio {
            Some(format!("it expands to more than {} times its size, which no profile does", limits.max_ratio))
        } else {
            None
        };
        let outcome = match over {
            Some(message) => Err(DecodeError::new(DecodeErrorKind::Limit, message)),
            None => result,
        };
        if filled > 0 && chunks.send(Ok(chunk)).is_err() {
            return;
        }
        match outcome {
            Ok(true) if !cancel.is_cancelled() => {}
            Ok(_) => return,
            Err(error) => {
                let _ = chunks.send(Err(error));
                return;
            }
        }
    }
}

impl Input<'_> {
    /// How many bytes [`Format::sniff`](super::Format::sniff) gets to see at most.
    pub const SNIFF_LENGTH: usize = 64 << 10;

    /// The first bytes that have not been consumed: [`SNIFF_LENGTH`](Self::SNIFF_LENGTH) of
    /// them, fewer only at the end.
    pub(super) fn peek(&mut self) -> Result<&[u8], DecodeError> {
        // A file that is damaged further on is still recognised by what came before.
        if let Err(error) = self.ensure(Self::SNIFF_LENGTH)
            && (self.buffer.len() == self.position || error.kind() == DecodeErrorKind::Cancelled)
        {
            return Err(error);
        }
        let end = self.buffer.len().min(self.position + Self::SNIFF_LENGTH);
        Ok(&self.buffer[self.position..end])
    }

    /// Offset of the next byte from the beginning of the (decompressed) file.
    pub fn offset(&self) -> u64 {
        self.consumed
    }

    /// At least the next `n` bytes in one piece; fewer only at the end of the file. Memory
    /// grows with the bytes that arrive, not with `n`.
    #[inline]
    pub fn ensure(&mut self, n: usize) -> Result<&[u8], DecodeError> {
        if self.buffer.len() - self.position < n {
            self.fill(n)?;
        }
        Ok(&self.buffer[self.position..])
    }

    #[cold]
    fn fill(&mut self, n: usize) -> Result<(), DecodeError> {
        self.cancel.check()?;
        while !self.at_end && self.buffer.len() - self.position < n {
            match self.chunks.recv() {
                Ok(Ok(chunk)) if self.position == self.buffer.len() => {
                    let old = std::mem::replace(&mut self.buffer, chunk);
                    self.position = 0;
                    let _ = self.spent.send(old);
                }
                Ok(Ok(chunk)) => {
                    self.buffer.drain(..self.position);
                    self.position = 0;
                    self.buffer.extend_from_slice(&chunk);
                    let _ = self.spent.send(chunk);
                }
                Ok(Err(error)) => {
                    self.at_end = true;
                    self.failure = Some(error);
                }
                Err(_) => self.at_end = true,
            }
        }
        self.cancel.check()?;
        match &self.failure {
            Some(error) if self.buffer.len() - self.position < n => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Marks `n` bytes of what [`ensure`](Self::ensure) returned as read.
    #[inline]
    pub fn consume(&mut self, n: usize) {
        self.position += n;
        self.consumed += n as u64;
    }

    /// Everything that is left, for formats that need it in one piece.
    pub fn read_all(&mut self) -> Result<Vec<u8>, DecodeError> {
        self.ensure(usize::MAX / 2)?;
        let rest = self.buffer.split_off(self.position);
        self.consumed += rest.len() as u64;
        Ok(rest)
    }

    /// Everything that is left, and where a file that is cut off ends, why. For formats of
    /// which a part is worth having; any other trouble is an error.
    pub fn read_available(&mut self) -> Result<(Vec<u8>, Option<DecodeError>), DecodeError> {
        let cut = match self.ensure(usize::MAX / 2) {
            Ok(_) => None,
            Err(error) if error.kind() == DecodeErrorKind::Truncated => Some(error),
            Err(error) => return Err(error),
        };
        let rest = self.buffer.split_off(self.position);
        self.consumed += rest.len() as u64;
        Ok((rest, cut))
    }

    /// What the container had to say, once everything has been read.
    pub(super) fn notes(&self) -> Option<String> {
        let trailing = self.facts.as_ref()?.has_trailing_bytes.load(Ordering::Relaxed);
        trailing.then(|| "bytes after the end of the compressed data were ignored".to_owned())
    }
}
