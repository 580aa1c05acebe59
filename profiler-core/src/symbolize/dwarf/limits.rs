//! What a file may make its reader do. Sections are handed to addr2line through a [`Reader`] that
//! refuses to go on where a file was made to hurt:
//!
//! * calls inlined into each other are followed by recursion, so reading ends where the stack
//!   would;
//! * entries may name the same list of ranges again and again, and files the same folder, so that
//!   memory would grow with the square of a file: both are counted.
//!
//! A refusal is an error like any damage, and costs what damage costs.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use gimli::{EndianSlice, LittleEndian, Reader as _, ReaderOffsetId, SectionId};

type Slice<'a> = EndianSlice<'a, LittleEndian>;
type Result<T> = std::result::Result<T, gimli::Error>;

/// How much stack a look-up may use. Threads have at least twice as much.
const STACK: usize = 1 << 20;
/// How often the lists of ranges may be read from end to end: once for the functions of a unit,
/// once for what is inlined; the rest is for lists that are shared.
const READINGS: u64 = 8;
/// Bytes of a number in lists of ranges, as a rule.
const LEB128: usize = 2;
/// Most bytes of paths that are put together for one file.
const MAX_TEXT: u64 = 1 << 30;

/// What is left of what a file may make its reader do. Only one thread ever uses it; that it is
/// made of atomics allows to hand it to another one.
#[derive(Debug)]
pub(super) struct Limits {
    /// Where the stack must not reach.
    lowest: AtomicUsize,
    /// Bytes of lists of ranges.
    ranges: AtomicU64,
    /// Bytes of text.
    text: AtomicU64,
}

impl Limits {
    /// For files whose lists of ranges have so many bytes.
    pub(super) fn new(ranges: usize) -> Self {
        Self {
            lowest: AtomicUsize::new(0),
            ranges: AtomicU64::new((ranges as u64).saturating_mul(READINGS)),
            text: AtomicU64::new(MAX_TEXT),
        }
    }

    /// Adds a file whose lists of ranges have so many bytes.
    pub(super) fn allow(&self, ranges: usize) {
        let left = self.ranges.load(Ordering::Relaxed);
        self.ranges.store(left.saturating_add((ranges as u64).saturating_mul(READINGS)), Ordering::Relaxed);
    }

    /// Begins a look-up: the stack is measured from here.
    pub(super) fn begin(&self) {
        self.lowest.store(stack_pointer().saturating_sub(STACK), Ordering::Relaxed);
    }

    fn is_deep(&self) -> bool {
        stack_pointer() < self.lowest.load(Ordering::Relaxed)
    }
}

/// Takes some of what is left; false when it isn't there.
fn take(left: &AtomicU64, amount: usize) -> bool {
    match left.load(Ordering::Relaxed).checked_sub(amount as u64) {
        Some(rest) => {
            left.store(rest, Ordering::Relaxed);
            true
        }
        None => false,
    }
}

/// About where the stack ends at present.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the caller's frame is what is measured")]
fn stack_pointer() -> usize {
    let here = std::mem::MaybeUninit::<u8>::uninit();
    here.as_ptr().addr()
}

/// Bytes of a section, read within limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    bytes: Slice<'a>,
    limits: &'a Limits,
    limited: Limited,
}

/// What is limited of a section, besides text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limited {
    /// How deep entries are.
    Depth,
    /// How much is read.
    Amount,
    Nothing,
    /// Nothing, and its end was taken away: it is as long as it is, whatever it says.
    Cut,
}

impl<'a> Reader<'a> {
    /// For a section.
    pub(super) fn new(bytes: &'a [u8], id: SectionId, limits: &'a Limits) -> Self {
        let limited = match id {
            SectionId::DebugInfo => Limited::Depth,
            SectionId::DebugRanges | SectionId::DebugRngLists => Limited::Amount,
            _ => Limited::Nothing,
        };
        Self { bytes: EndianSlice::new(bytes, LittleEndian), limits, limited }
    }

    /// A part of it.
    pub(super) fn part(&self, range: std::ops::Range<usize>) -> Option<Self> {
        let bytes = EndianSlice::new(self.bytes().get(range)?, LittleEndian);
        Some(Self { bytes, ..*self })
    }

    /// A section of lines up to where the rows of a unit begin, which has none then.
    pub(super) fn without_program(&self, begin: usize) -> Option<Self> {
        Some(Self { limited: Limited::Cut, ..self.part(0..begin)? })
    }

    /// What is left to read.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes.slice()
    }

    #[cold]
    fn refusal(&self) -> gimli::Error {
        gimli::Error::UnexpectedEof(self.bytes.offset_id())
    }
}

impl gimli::Reader for Reader<'_> {
    type Endian = LittleEndian;
    type Offset = usize;

    #[inline]
    fn endian(&self) -> LittleEndian {
        LittleEndian
    }

    #[inline]
    fn len(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    #[inline]
    fn empty(&mut self) {
        self.bytes.empty();
    }

    #[inline]
    fn truncate(&mut self, len: usize) -> Result<()> {
        self.bytes.truncate(len)
    }

    #[inline]
    fn offset_from(&self, base: &Self) -> usize {
        self.bytes.offset_from(base.bytes)
    }

    #[inline]
    fn offset_id(&self) -> ReaderOffsetId {
        self.bytes.offset_id()
    }

    #[inline]
    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        self.bytes.lookup_offset_id(id)
    }

    #[inline]
    fn find(&self, byte: u8) -> Result<usize> {
        memchr::memchr(byte, self.bytes.slice()).ok_or_else(|| self.refusal())
    }

    #[inline]
    fn skip(&mut self, len: usize) -> Result<()> {
        self.bytes.skip(len)
    }

    #[inline]
    fn split(&mut self, len: usize) -> Result<Self> {
        let len = if self.limited == Limited::Cut { len.min(self.bytes.len()) } else { len };
        Ok(Self { bytes: self.bytes.split(len)?, ..*self })
    }

    #[inline]
    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        Ok(self.bytes.slice().into())
    }

    #[inline]
    fn to_string(&self) -> Result<Cow<'_, str>> {
        gimli::Reader::to_string(&self.bytes)
    }

    /// Paths are put together of this.
    #[inline]
    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        if !take(&self.limits.text, self.bytes.len()) {
            return Err(self.refusal());
        }
        Ok(self.bytes.to_string_lossy())
    }

    #[inline]
    fn read_slice(&mut self, buffer: &mut [u8]) -> Result<()> {
        if self.limited == Limited::Amount && !take(&self.limits.ranges, buffer.len()) {
            return Err(self.refusal());
        }
        gimli::Reader::read_slice(&mut self.bytes, buffer)
    }

    #[inline]
    fn read_u8(&mut self) -> Result<u8> {
        if self.limited == Limited::Amount && !take(&self.limits.ranges, 1) {
            return Err(self.refusal());
        }
        self.bytes.read_u8()
    }

    /// Every entry begins with such a number, however deep it is. Debug info is made of them, so limits are looked at once
    /// per number and not per byte.
    #[inline]
    fn read_uleb128(&mut self) -> Result<u64> {
        let is_refused = match self.limited {
            Limited::Depth => self.limits.is_deep(),
            Limited::Amount => !take(&self.limits.ranges, LEB128),
            Limited::Nothing | Limited::Cut => false,
        };
        if is_refused {
            return Err(self.refusal());
        }
        self.bytes.read_uleb128()
    }

    #[inline]
    fn skip_leb128(&mut self) -> Result<()> {
        self.bytes.skip_leb128()
    }

    #[inline]
    fn read_uleb128_u16(&mut self) -> Result<u16> {
        self.bytes.read_uleb128_u16()
    }

    #[inline]
    fn read_uleb128_u32(&mut self) -> Result<u32> {
        self.bytes.read_uleb128_u32()
    }

    #[inline]
    fn read_sleb128(&mut self) -> Result<i64> {
        self.bytes.read_sleb128()
    }
}
