//! What of an ELF file is needed to symbolise: where its code is, who it is, its sections.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::Read;

use object::{CompressionFormat, Object, ObjectSection, ObjectSegment, SegmentFlags};
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};

use super::address::{Avma, FileOffset, ModuleAddress, Svma};
use super::mapped::Mapped;
use super::reason::Refusal;

/// Largest section after decompression, and the largest sum of them for one file.
const MAX_INFLATED: u64 = 4 << 30;
/// What compression can do at best; a header that claims more is wrong.
const MAX_RATIO: u64 = 1100;
const PAGE: u64 = 4096;
/// What a build begins with that is named by OpenTelemetry's hash of a file.
const HTL_HASH: &str = "htlhash:";
const PF_X: u32 = 1;

/// What identifies a build: the bytes of its `.note.gnu.build-id`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId(Box<[u8]>);

impl BuildId {
    /// From its bytes.
    pub fn new(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    /// From hexadecimal digits, as profiles have it.
    ///
    /// ```
    /// use profiler_core::symbolize::BuildId;
    /// assert_eq!(BuildId::from_hex("1A2b").unwrap().to_string(), "1a2b");
    /// assert_eq!(BuildId::from_hex("go/build/id"), None);
    /// ```
    pub fn from_hex(text: &str) -> Option<Self> {
        let is_hex =
            !text.is_empty() && text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex {
            return None;
        }
        let digit = |byte: u8| (byte as char).to_digit(16).and_then(|digit| u8::try_from(digit).ok()).unwrap_or(0);
        Some(Self(text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    address: u64,
    size: u64,
    offset: u64,
    /// 0 in files with nothing but debug info; the offset means nothing there.
    file_size: u64,
    is_code: bool,
}

impl Segment {
    fn holds_address(&self, address: u64) -> bool {
        address.checked_sub(self.address).is_some_and(|distance| distance < self.size)
    }

    fn holds_offset(&self, offset: u64) -> bool {
        offset.checked_sub(self.offset).is_some_and(|distance| distance < self.file_size)
    }

    /// Whether the pages that the loader maps for it hold the offset.
    fn pages_hold_offset(&self, offset: u64) -> bool {
        let start = self.offset / PAGE * PAGE;
        let end = self.offset.saturating_add(self.file_size).div_ceil(PAGE).saturating_mul(PAGE);
        start <= offset && offset < end
    }

    fn address_of(&self, offset: u64) -> u64 {
        offset.wrapping_sub(self.offset).wrapping_add(self.address)
    }
}

#[derive(Clone, Copy, Debug)]
struct Section {
    start: usize,
    end: usize,
    address: u64,
    format: CompressionFormat,
    inflated_size: u64,
}

/// An ELF file.
#[derive(Debug)]
pub struct Elf {
    data: Mapped,
    segments: Vec<Segment>,
    sections: FxHashMap<Box<str>, Section>,
    inflated: FxHashMap<Box<str>, Box<[u8]>>,
    build_id: Option<BuildId>,
    go_build_id: Option<Box<str>>,
    debug_link: Option<(Box<[u8]>, u32)>,
    alt_link: Option<(Box<[u8]>, BuildId)>,
}

impl Elf {
    /// Reads the headers of an opened file.
    pub fn open(file: &File) -> Result<Self, Refusal> {
        let metadata = file.metadata().map_err(|error| Refusal::from(&error))?;
        if !metadata.is_file() {
            return Err(Refusal::NotRegular);
        }
        Self::of(Mapped::of(file).map_err(|error| Refusal::from(&error))?)
    }

    /// Reads the headers of a file in memory, such as the vDSO.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, Refusal> {
        Self::of(Mapped::owned(bytes))
    }

    fn of(data: Mapped) -> Result<Self, Refusal> {
        if !data.bytes().starts_with(b"\x7fELF") {
            return Err(Refusal::NotElf("not an ELF file"));
        }
        let object = object::File::parse(data.bytes()).map_err(|_| Refusal::NotElf("a damaged ELF file"))?;
        if !object.is_little_endian() {
            return Err(Refusal::NotElf("for a big-endian machine"));
        }
        let segments = object.segments().map(|segment| {
            let (offset, file_size) = segment.file_range();
            let is_code = matches!(segment.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags.0 & PF_X != 0);
            Segment { address: segment.address(), size: segment.size(), offset, file_size, is_code }
        });
        let segments = segments.collect();
        let mut sections = FxHashMap::default();
        for section in object.sections() {
            let (Ok(name), Ok(range)) = (section.name(), section.compressed_file_range()) else { continue };
            let Some(end) = range.offset.checked_add(range.compressed_size) else { continue };
            let (Ok(start), Ok(end)) = (usize::try_from(range.offset), usize::try_from(end)) else { continue };
            if end > data.bytes().len() || start >= end {
                continue;
            }
            // The old way of GNU to say that a section is compressed.
            let name = name.strip_prefix(".z").map_or(Cow::Borrowed(name), |rest| Cow::Owned(format!(".{rest}")));
            sections.entry(name.into()).or_insert(Section {
                start,
                end,
                address: section.address(),
                format: range.format,
                inflated_size: range.uncompressed_size,
            });
        }
        let build_id = object.build_id().ok().flatten().filter(|id| !id.is_empty()).map(BuildId::new);
        let debug_link = object.gnu_debuglink().ok().flatten().map(|(name, crc)| (name.into(), crc));
        let alt_link = object.gnu_debugaltlink().ok().flatten().map(|(name, id)| (name.into(), BuildId::new(id)));
        let mut elf = Self {
            segments,
            sections,
            inflated: FxHashMap::default(),
            build_id,
            go_build_id: None,
            debug_link,
            alt_link,
            data: Mapped::default(),
        };
        elf.data = data;
        elf.go_build_id = elf.section(".note.go.buildid").and_then(go_note);
        Ok(elf)
    }

    /// The GNU build id.
    pub fn build_id(&self) -> Option<&BuildId> {
        self.build_id.as_ref()
    }

    /// Go's own build id, four hashes with slashes between them.
    pub fn go_build_id(&self) -> Option<&str> {
        self.go_build_id.as_deref()
    }

    /// The id that OpenTelemetry's profiler makes of any file: a hash of its head, tail and length.
    pub fn htl_hash(&self) -> BuildId {
        let bytes = self.data.bytes();
        let head = &bytes[..bytes.len().min(4096)];
        let tail = &bytes[bytes.len().saturating_sub(4096)..];
        let hash = Sha256::new().chain_update(head).chain_update(tail).chain_update((bytes.len() as u64).to_be_bytes());
        BuildId::new(&hash.finalize()[..16])
    }

    /// Whether a profile that names its build so means this file.
    pub fn is_build(&self, id: &str) -> bool {
        if let Some(hash) = id.strip_prefix(HTL_HASH) {
            return BuildId::from_hex(hash).is_some_and(|hash| hash == self.htl_hash());
        }
        let hex = BuildId::from_hex(id);
        if hex.is_some() && hex.as_ref() == self.build_id() {
            return true;
        }
        if self.go_build_id().is_some_and(|go| go == id || hex.as_ref().is_some_and(|hex| hex.bytes() == go.as_bytes()))
        {
            return true;
        }
        hex.is_some_and(|hex| hex.bytes().len() == 16 && hex == self.htl_hash())
    }

    /// Name and checksum of the separate debug file.
    pub(super) fn debug_link(&self) -> Option<(&[u8], u32)> {
        self.debug_link.as_ref().map(|(name, crc)| (&**name, *crc))
    }

    /// Path and build id of the debug file that this one shares with others.
    pub(super) fn alt_link(&self) -> Option<(&[u8], &BuildId)> {
        self.alt_link.as_ref().map(|(name, id)| (&**name, id))
    }

    /// The whole file.
    pub(super) fn bytes(&self) -> &[u8] {
        self.data.bytes()
    }

    /// What the address is in the file's own terms; `None` when there is no code.
    pub fn stated(&self, address: ModuleAddress) -> Option<Svma> {
        match address {
            ModuleAddress::Stated(address) => self
                .segments
                .iter()
                .any(|segment| segment.is_code && segment.holds_address(address.0))
                .then_some(address),
            ModuleAddress::Offset(offset) => {
                let segment = self.code_segment(offset)?;
                Some(Svma(segment.address_of(offset.0)))
            }
        }
    }

    /// Whether the file has the code itself, so that a place in the file means an address.
    pub(super) fn has_code(&self) -> bool {
        self.segments.iter().any(|segment| segment.is_code && segment.file_size > 0)
    }

    /// Where the file's address 0 is, when the byte at `offset` is mapped at `start`: an actual
    /// address minus this is the stated one.
    pub fn bias(&self, start: Avma, offset: FileOffset) -> Option<u64> {
        let segment = self.code_segment(offset)?;
        Some(start.0.wrapping_sub(segment.address_of(offset.0)))
    }

    /// Segments may share a page of the file, so the first one whose pages hold the offset may
    /// be the wrong one: code is in the one with code.
    fn code_segment(&self, offset: FileOffset) -> Option<&Segment> {
        let code = || self.segments.iter().filter(|segment| segment.is_code);
        code()
            .find(|segment| segment.holds_offset(offset.0))
            .or_else(|| code().find(|segment| segment.pages_hold_offset(offset.0)))
    }

    /// Whether code may be at address 0. Where not, what debug info has there was thrown away by
    /// the linker.
    pub(super) fn has_code_at_zero(&self) -> bool {
        self.segments.iter().any(|segment| segment.is_code && segment.address == 0)
    }

    /// Whether there is a section of this name with something in it.
    pub fn has_section(&self, name: &str) -> bool {
        self.sections.contains_key(name)
    }

    /// Address of a section.
    pub(super) fn section_address(&self, name: &str) -> Option<u64> {
        self.sections.get(name).map(|section| section.address)
    }

    /// The bytes at a stated address up to the end of its segment.
    pub(super) fn bytes_at(&self, address: u64) -> Option<&[u8]> {
        let segment = self.segments.iter().find(|segment| segment.holds_address(address))?;
        let distance = address - segment.address;
        let start = usize::try_from(segment.offset.checked_add(distance)?).ok()?;
        let end = usize::try_from(segment.offset.checked_add(segment.file_size)?).ok()?;
        self.data.bytes().get(start..end.min(self.data.bytes().len()))
    }

    /// Bytes of a section; `None` when it isn't there, or is compressed and was not
    /// [inflated](Self::inflate).
    pub(super) fn section(&self, name: &str) -> Option<&[u8]> {
        let section = self.sections.get(name)?;
        match section.format {
            CompressionFormat::None => self.data.bytes().get(section.start..section.end),
            _ => self.inflated.get(name).map(|bytes| &**bytes),
        }
    }

    /// Inflates the sections whose name starts with `prefix`. What can't be inflated is missing.
    pub(super) fn inflate(&mut self, prefix: &str) {
        let mut left = MAX_INFLATED.saturating_sub(self.inflated.values().map(|bytes| bytes.len() as u64).sum());
        for (name, section) in &self.sections {
            let is_wanted = name.starts_with(prefix) && !self.inflated.contains_key(name);
            if !is_wanted || matches!(section.format, CompressionFormat::None) {
                continue;
            }
            let Some(packed) = self.data.bytes().get(section.start..section.end) else { continue };
            let size = section.inflated_size;
            if size > left || size > (packed.len() as u64).saturating_mul(MAX_RATIO) {
                continue;
            }
            if let Some(bytes) = inflated(packed, section.format, size) {
                left -= size;
                self.inflated.insert(name.clone(), bytes);
            }
        }
    }

    /// Bytes on the heap.
    pub(super) fn heap_size(&self) -> usize {
        self.inflated.values().map(|bytes| bytes.len()).sum()
    }
}

/// Inflates exactly `size` bytes; anything else is damage.
fn inflated(packed: &[u8], format: CompressionFormat, size: u64) -> Option<Box<[u8]>> {
    // Room is taken as bytes come, not as the header claims.
    let mut bytes = Vec::new();
    match format {
        CompressionFormat::Zlib => flate2::read::ZlibDecoder::new(packed).take(size).read_to_end(&mut bytes).ok()?,
        CompressionFormat::Zstandard => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(packed).ok()?;
            decoder.take(size).read_to_end(&mut bytes).ok()?
        }
        _ => return None,
    };
    (bytes.len() as u64 == size).then(|| bytes.into_boxed_slice())
}

/// The text in the note of the Go linker.
fn go_note(section: &[u8]) -> Option<Box<str>> {
    let size =
        |at: usize| section.get(at..at + 4).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    let name_size = size(0)? as usize;
    let text_size = size(4)? as usize;
    let name = section.get(12..)?.get(..name_size)?;
    if name != b"Go\0\0" || size(8)? != 4 {
        return None;
    }
    let text = section.get(16..)?.get(..text_size)?;
    std::str::from_utf8(text).ok().map(Into::into)
}
