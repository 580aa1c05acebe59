//! Heap profiles of jemalloc:
//!
//! ```text
//! heap_v2/524288
//!   t*: 28106: 56637512 [0: 0]
//! @ 0x55e0c1a2 0x55e0c0ff
//!   t*: 13: 6688 [0: 0]
//!   t3: 13: 6688 [0: 0]
//! MAPPED_LIBRARIES:
//! ```
//!
//! A stack of return addresses, then objects and bytes in use and, in brackets, allocated
//! since the start (zero unless that was asked for): of all threads together, and of each.
//! They hold what was sampled; what was allocated is estimated as for other heap profiles.

use super::super::{Context, DecodeError};
use super::heap::{self, Amount};
use super::lines::{self, Lines};
use super::maps::{self, Maps};
use super::rows::Refused;
use super::samples::{Samples, Surroundings};
use super::{HEAP, Text};
use crate::profile::{Profile, ProfileBuilder, ValueType};

/// Functions of the allocator, below what asked for memory.
const ALLOCATOR_FRAMES: &str = concat!(
    r"(_?rjem_)?(je_)?(_rjem_je_)?(prof_backtrace.*|prof_alloc_prep.*|imalloc.*|malloc_default|do_rallocx|ialloc.*)",
    r"|(_rjem_|je_)?(malloc|calloc|realloc|rallocx|mallocx|posix_memalign|aligned_alloc|memalign|valloc)",
    r"|prof_.*|.*alloc::alloc::(alloc|__rust_alloc|Global).*|__rust_(alloc|realloc|alloc_zeroed)|__rg_.*|operator new(\[\])?",
);

/// Whether a first line is the header: the version and the mean distance of two samples.
pub(super) fn is_header(line: &str) -> bool {
    line.strip_prefix("heap_v2/").is_some_and(|rate| !rate.is_empty() && rate.bytes().all(|byte| byte.is_ascii_digit()))
}

pub(super) fn decode(
    header: &str,
    mut lines: Lines<'_>,
    text: &Text,
    context: &Context<'_>,
) -> Result<Profile, DecodeError> {
    let rate = header.rsplit_once('/').and_then(|(_, rate)| rate.parse::<i64>().ok());
    let rate = rate.ok_or_else(|| DecodeError::invalid("its sampling rate is out of range"))?;
    let mut samples = Samples::default();
    let mut refused = Refused::default();
    let mut stack = Vec::new();
    let mut has_stack = false;
    let mut has_allocations = false;
    let mut rows: Vec<[Amount; 2]> = Vec::new();
    let maps = loop {
        let Some(line) = lines.next() else { break Maps::default() };
        let row = line.text.trim();
        if maps::is_header(row) {
            break Maps::read(lines);
        }
        if lines::is_blank_or_comment(row) {
            continue;
        }
        if let Some(addresses) = row.strip_prefix('@') {
            has_stack = lines::addresses(addresses, &mut stack).is_some();
            if !has_stack {
                refused.add(line.number);
            }
            for address in &mut stack {
                *address = address.wrapping_sub(1);
            }
            continue;
        }
        // Above the first stack there are the sums of all.
        let Some(amounts) = row.strip_prefix("t*:").filter(|_| has_stack) else {
            if !row.starts_with('t') {
                refused.add(line.number);
            }
            continue;
        };
        match amounts_of(amounts) {
            Some(amounts) => {
                has_allocations |= amounts[0].objects != 0;
                rows.push(amounts);
                samples.push(&stack, &[], context)?;
            }
            None => refused.add(line.number),
        }
        has_stack = false;
    };
    let pair = |prefix: &str| {
        [ValueType::new(format!("{prefix}_objects"), "count"), ValueType::new(format!("{prefix}_space"), "bytes")]
    };
    let types = if has_allocations { [pair("alloc"), pair("inuse")].concat() } else { pair("inuse").to_vec() };
    let mut builder = ProfileBuilder::new(HEAP.name, types);
    let meta = builder.meta();
    meta.period = rate;
    meta.period_type = Some(ValueType::new("space", "bytes"));
    ALLOCATOR_FRAMES.clone_into(&mut meta.drop_frames);
    for [allocated, used] in &rows {
        if has_allocations {
            samples.add_values(&heap::unsampled(allocated.objects, allocated.bytes, rate));
        }
        samples.add_values(&heap::unsampled(used.objects, used.bytes, rate));
        samples.set_size(used.size().or(allocated.size()).unwrap_or(0));
    }
    let mut notes = refused.into_notes(samples.len())?;
    notes.extend(text.note());
    samples.into_profile(builder, Surroundings { maps, notes, ..Surroundings::default() }, context)
}

/// Reads `objects: bytes [objects: bytes]`: allocated, in use.
fn amounts_of(text: &str) -> Option<[Amount; 2]> {
    let (used, allocated) = text.split_once('[')?;
    Some([Amount::parse(allocated.trim_end().strip_suffix(']')?)?, Amount::parse(used)?])
}
