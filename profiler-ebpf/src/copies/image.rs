//! What is needed of a mapped file: unwind sections, build ids, where its segments go.
//!
//! The file belongs to the process that is recorded, so nothing of it is trusted: sizes are bounded
//! before memory is taken.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use flate2::read::ZlibDecoder;
use object::elf::PF_X;
use object::{
    CompressedData, CompressionFormat, Object, ObjectSection, ObjectSegment, ReadCache, ReadRef, SegmentFlags,
};

/// Largest section that is taken.
const MAX_SECTION: u64 = 256 << 20;

/// A section's address in the file's own terms, and its bytes.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) range: Range<u64>,
    pub(super) data: Arc<[u8]>,
}

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct Image {
    pub(super) eh_frame: Option<Section>,
    pub(super) eh_frame_hdr: Option<Section>,
    pub(super) debug_frame: Option<Section>,
    pub(super) text: Option<Range<u64>>,
    pub(super) got: Option<Range<u64>>,
    pub(super) build_id: Vec<u8>,
    pub(super) go_build_id: String,
    segments: Vec<Segment>,
}

/// A piece of the file that is loaded.
#[derive(Clone, Copy, Debug)]
struct Segment {
    address: u64,
    file_offset: u64,
    file_size: u64,
    is_executable: bool,
}

impl Image {
    /// Reads a file.
    pub(super) fn read(file: File) -> Option<Self> {
        let cache = ReadCache::new(file);
        Self::parse(&cache)
    }

    /// Reads an image in memory, such as the one that the kernel maps into every process.
    pub(super) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        Self::parse(bytes)
    }

    fn parse<'a>(data: impl ReadRef<'a>) -> Option<Self> {
        let file = object::File::parse(data).ok()?;
        let section = |name: &str| {
            let section = file.section_by_name(name)?;
            if section.size() == 0 || section.size() > MAX_SECTION {
                return None;
            }
            let data = plain(section.compressed_data().ok()?)?;
            let range = section.address()..section.address().checked_add(section.size())?;
            Some(Section { range, data })
        };
        let range = |name: &str| {
            let section = file.section_by_name(name)?;
            Some(section.address()..section.address().checked_add(section.size())?)
        };
        let segments = file
            .segments()
            .map(|segment| {
                let (file_offset, file_size) = segment.file_range();
                let is_executable =
                    matches!(segment.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags & PF_X == PF_X);
                Segment { address: segment.address(), file_offset, file_size, is_executable }
            })
            .collect();
        let eh_frame = section(".eh_frame");
        let go_build_id = section(".note.go.buildid").and_then(|note| go_build_id(&note.data)).unwrap_or_default();
        Some(Self {
            eh_frame_hdr: eh_frame.as_ref().and_then(|_| section(".eh_frame_hdr")),
            // Only where there is nothing better: it is large, and has to be indexed.
            debug_frame: if eh_frame.is_none() { section(".debug_frame") } else { None },
            eh_frame,
            text: range(".text"),
            got: range(".got"),
            build_id: file.build_id().ok().flatten().filter(|id| id.len() <= 64).unwrap_or_default().to_vec(),
            go_build_id,
            segments,
        })
    }

    /// What addresses of a mapping are above those of the file; `None` when no segment is mapped there.
    ///
    /// Segments share pages in the file, so the offset alone may fit two of them: the executable one is meant.
    pub(super) fn bias(&self, start: u64, file_offset: u64, page: u64) -> Option<u64> {
        let covers = |segment: &&Segment| {
            let first = segment.file_offset & !(page - 1);
            let end = segment.file_offset.saturating_add(segment.file_size);
            segment.is_executable && (first..end.max(first + 1)).contains(&file_offset)
        };
        let segment = self.segments.iter().find(covers)?;
        // The same distance in memory as in the file.
        let address = segment.address.wrapping_sub(segment.file_offset).wrapping_add(file_offset);
        Some(start.wrapping_sub(address))
    }
}

/// The bytes of a section. Go packs its unwind information.
fn plain(packed: CompressedData<'_>) -> Option<Arc<[u8]>> {
    match packed.format {
        CompressionFormat::None => Some(Arc::from(packed.data)),
        CompressionFormat::Zlib if packed.uncompressed_size <= MAX_SECTION => {
            let mut data = Vec::new();
            // What it says of its size need not be true.
            ZlibDecoder::new(packed.data).take(MAX_SECTION).read_to_end(&mut data).ok()?;
            (data.len() as u64 == packed.uncompressed_size).then(|| Arc::from(data))
        }
        _ => None,
    }
}

/// The text in the note of Go's linker.
fn go_build_id(note: &[u8]) -> Option<String> {
    let word = |at: usize| Some(u32::from_ne_bytes(note.get(at..at + 4)?.try_into().ok()?) as usize);
    let (name, length) = (word(0)?, word(4)?);
    let start = 12_usize.checked_add(name.checked_next_multiple_of(4)?)?;
    let text = note.get(start..start.checked_add(length)?)?;
    (length <= 256).then(|| String::from_utf8_lossy(text).trim_end_matches('\0').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_segment_is_chosen_where_two_share_a_page() {
        let segment =
            |address, file_offset, file_size, is_executable| Segment { address, file_offset, file_size, is_executable };
        // As lld lays programs out: a page of the file belongs to both.
        let image = Image {
            segments: vec![segment(0, 0, 0x1234, false), segment(0x2240, 0x1240, 0x800, true)],
            ..Image::default()
        };
        assert_eq!(image.bias(0x7000_2000, 0x1000, 0x1000), Some(0x7000_0000));
        assert_eq!(image.bias(0x7000_2000, 0x9000, 0x1000), None);
    }

    #[test]
    fn this_program_can_be_read() {
        let file = File::open("/proc/self/exe").expect("we are running");
        let image = Image::read(file).expect("it is an executable");
        assert!(image.eh_frame.is_some() && image.eh_frame_hdr.is_some() && !image.build_id.is_empty());
    }

    #[test]
    fn a_broken_note_has_no_id() {
        for length in 0..16 {
            assert_eq!(go_build_id(&vec![0xff; length]), None);
        }
    }
}
