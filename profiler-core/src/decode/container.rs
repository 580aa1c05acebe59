//! Compression around a profile: gzip (any number of members), zlib, zstd, or none.
//! Recognised by magic bytes, never by the file's name.

use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use flate2::bufread::{GzDecoder, ZlibDecoder};

use super::error::{DecodeError, DecodeErrorKind};

/// A reader of plain bytes, and what can be asked about it while it is read.
pub(super) struct Plain<'a> {
    pub(super) reader: Box<dyn Read + 'a>,
    pub(super) facts: Arc<Facts>,
}

/// What the container has seen so far; shared between the reading and the decoding thread.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Whether there is compression at all.
    pub(super) is_compressed: AtomicBool,
    /// Compressed bytes read so far.
    pub(super) bytes_read: AtomicU64,
    /// Bytes after the last gzip member that are no gzip; they were left alone.
    pub(super) has_trailing_bytes: AtomicBool,
}

/// Peels one layer of compression off.
pub(super) fn open<'a>(source: impl Read + 'a) -> Result<Plain<'a>, DecodeError> {
    let facts = Arc::new(Facts::default());
    let mut bytes = Lookahead::new(source, Arc::clone(&facts));
    let magic = bytes.peek(4).map_err(|error| io_error(&error))?;
    let reader: Box<dyn Read + 'a> = match magic {
        [0x1f, 0x8b, ..] => Box::new(GzipMembers::new(bytes)),
        [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..] => Box::new(ZlibDecoder::new(bytes)),
        [0x28, 0xb5, 0x2f, 0xfd] => Box::new(
            ruzstd::decoding::StreamingDecoder::new(bytes)
                .map_err(|error| DecodeError::invalid(format!("its zstd header can't be read: {error}")))?,
        ),
        [0x04, 0x22, 0x4d, 0x18] => {
            return Err(DecodeError::new(
                DecodeErrorKind::Unsupported,
                "it is compressed with LZ4; decompress it first (`lz4 -d`)",
            ));
        }
        _ => return Ok(Plain { reader: Box::new(bytes), facts }),
    };
    facts.is_compressed.store(true, Ordering::Relaxed);
    Ok(Plain { reader, facts })
}

/// Says what an error of a reader of [`open`] means for the user.
pub(super) fn io_error(error: &io::Error) -> DecodeError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => DecodeError::truncated("it ends inside its compressed data"),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other => {
            DecodeError::invalid(format!("its compressed data is damaged ({error})"))
        }
        io::ErrorKind::IsADirectory => DecodeError::new(DecodeErrorKind::Io, "it is a directory"),
        _ => DecodeError::new(DecodeErrorKind::Io, format!("reading it failed ({error})")),
    }
}

/// A buffered reader that can look a few bytes ahead across the seams of its buffer.
struct Lookahead<R> {
    source: R,
    buffer: Vec<u8>,
    position: usize,
    facts: Arc<Facts>,
}

impl<R: Read> Lookahead<R> {
    const CAPACITY: usize = 256 << 10;

    fn new(source: R, facts: Arc<Facts>) -> Self {
        Self { source, buffer: Vec::new(), position: 0, facts }
    }

    /// The next `n` bytes, fewer only at the end.
    fn peek(&mut self, n: usize) -> io::Result<&[u8]> {
        while self.buffer.len() - self.position < n {
            if self.read_more()? == 0 {
                break;
            }
        }
        let end = self.buffer.len().min(self.position + n);
        Ok(&self.buffer[self.position..end])
    }

    fn read_more(&mut self) -> io::Result<usize> {
        self.buffer.drain(..self.position);
        self.position = 0;
        let kept = self.buffer.len();
        self.buffer.resize(kept + Self::CAPACITY, 0);
        let result = loop {
            match self.source.read(&mut self.buffer[kept..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        let n = *result.as_ref().unwrap_or(&0);
        self.buffer.truncate(kept + n);
        self.facts.bytes_read.fetch_add(n as u64, Ordering::Relaxed);
        result
    }
}

impl<R: Read> BufRead for Lookahead<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.position == self.buffer.len() {
            self.read_more()?;
        }
        Ok(&self.buffer[self.position..])
    }

    fn consume(&mut self, n: usize) {
        self.position += n;
    }
}

impl<R: Read> Read for Lookahead<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = {
            let mut available = self.fill_buf()?;
            available.read(into)?
        };
        self.consume(n);
        Ok(n)
    }
}

/// All members of a gzip file as one stream. What follows the last member and is no gzip
/// ends the stream: padding and junk there are common and harmless, so they are only noted.
struct GzipMembers<R> {
    member: Option<GzDecoder<Lookahead<R>>>,
}

impl<R: Read> GzipMembers<R> {
    fn new(bytes: Lookahead<R>) -> Self {
        Self { member: Some(GzDecoder::new(bytes)) }
    }
}

impl<R: Read> Read for GzipMembers<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(mut member) = self.member.take() {
            let n = member.read(into)?;
            if n > 0 || into.is_empty() {
                self.member = Some(member);
                return Ok(n);
            }
            let mut rest = member.into_inner();
            match rest.peek(2)? {
                [] => {}
                [0x1f, 0x8b] => self.member = Some(GzDecoder::new(rest)),
                _ => rest.facts.has_trailing_bytes.store(true, Ordering::Relaxed),
            }
        }
        Ok(0)
    }
}
