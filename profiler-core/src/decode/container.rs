//! Compression around a profile: gzip (any number of members), zlib, zstd (any number of
//! frames), or none.
//! Recognised by magic bytes, never by the file's name.

use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use flate2::bufread::{GzDecoder, ZlibDecoder};
use ruzstd::decoding::errors::FrameDecoderError;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

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
    /// Bytes after the last gzip member or zstd frame that are neither; they were left alone.
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
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Box::new(ZstdFrames::new(bytes)),
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

/// All frames of a zstd file as one stream, skippable ones passed over: joined files have
/// several, and so have those of tools that compress in parallel. What follows the last one is
/// treated as behind gzip.
struct ZstdFrames<R> {
    bytes: Lookahead<R>,
    decoder: FrameDecoder,
    is_in_frame: bool,
}

impl<R: Read> ZstdFrames<R> {
    fn new(bytes: Lookahead<R>) -> Self {
        Self { bytes, decoder: FrameDecoder::new(), is_in_frame: false }
    }

    fn read_frame(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
            let one = BlockDecodingStrategy::UptoBlocks(1);
            self.decoder.decode_blocks(&mut self.bytes, one).map_err(|error| zstd_error(&error))?;
        }
        let n = self.decoder.read(into)?;
        if n == 0 && !into.is_empty() {
            let stored = self.decoder.get_checksum_from_data();
            if stored.is_some() && stored != self.decoder.get_calculated_checksum() {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "its checksum is another"));
            }
            self.is_in_frame = false;
        }
        Ok(n)
    }

    fn skip_frame(&mut self) -> io::Result<()> {
        let mut header = [0; 8];
        self.bytes.read_exact(&mut header)?;
        let [.., a, b, c, d] = header;
        let length = u64::from(u32::from_le_bytes([a, b, c, d]));
        let skipped = io::copy(&mut self.bytes.by_ref().take(length), &mut io::sink())?;
        if skipped < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

impl<R: Read> Read for ZstdFrames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            if self.is_in_frame {
                let n = self.read_frame(into)?;
                if n > 0 {
                    return Ok(n);
                }
            }
            match self.bytes.peek(4)? {
                [] => return Ok(0),
                [0x28, 0xb5, 0x2f, 0xfd] => {
                    self.decoder.reset(&mut self.bytes).map_err(|error| zstd_error(&error))?;
                    self.is_in_frame = true;
                }
                [0x50..=0x5f, 0x2a, 0x4d, 0x18] => self.skip_frame()?,
                _ => {
                    self.bytes.facts.has_trailing_bytes.store(true, Ordering::Relaxed);
                    return Ok(0);
                }
            }
        }
    }
}

/// An end that came too early is told from other damage.
fn zstd_error(error: &FrameDecoderError) -> io::Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = cause {
        let io_kind = inner.downcast_ref::<io::Error>().map(io::Error::kind);
        if io_kind == Some(io::ErrorKind::UnexpectedEof) {
            return io::ErrorKind::UnexpectedEof.into();
        }
        cause = inner.source();
    }
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}
