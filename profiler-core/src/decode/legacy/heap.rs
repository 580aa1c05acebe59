//! Heap profiles as text, of tcmalloc and gperftools, of Go (`debug=1`), of Java:
//!
//! ```text
//! heap profile:    144:  8498176 [   144:  8498176] @ heapz_v2/524288
//!      7:   114688 [     7:   114688] @ 0xc635c8 0x42ecc3
//! ```
//!
//! Objects and bytes in use, in brackets objects and bytes allocated since the start. The word
//! behind `@` is the kind, the number behind it the mean distance of two samples in bytes,
//! which Go writes doubled. All but `heapprofile` hold what was sampled and not what was
//! allocated; [`unsampled`] estimates that. `growth` and `fragmentation` look the same.

use std::sync::LazyLock;

use regex::Regex;

use super::super::{Context, DecodeError, DecodeErrorKind};
use super::rows::{self, Row};
use super::{HEAP, Text, java, jemalloc, lines};
use crate::profile::{Profile, ProfileBuilder, ValueType};

const JAVA_HEADER: &str = "--- heapz 1 ---";

/// Functions of allocators: who called them is of interest.
pub(super) const ALLOCATOR_FRAMES: &str = concat!(
    r"(tc_)?([cm]alloc|p?valloc|realloc|memalign|posix_memalign|c?free)|__posix_memalign|do_memalign|__libc_malloc",
    r"|malloc_zone_([cmv]alloc|realloc|memalign|free)|(::)?do_malloc(_no_errno|_pages)?",
    r"|tc_(new|delete)(array)?|tc_new(array)?_nothrow|tcmalloc::.*|operator new(\[\])?|__builtin_(vec_)?(new|delete)",
    r"|allocate|_M_allocate|cpp_alloc|(simple_alloc|__malloc_alloc_template|__gnu_cxx::new_allocator)::allocate",
    r"|BaseArena::.*|DoSampledAllocation|MallocedMemBlock::MallocedMemBlock|runtime\..*",
);
/// Functions of Go's runtime that lead back into the program.
pub(super) const NO_ALLOCATOR_FRAMES: &str = r"runtime\.(panic|reflectcall|call[0-9]*)";

/// Whether a first line is that of a heap profile.
pub(super) fn is_header(line: &str) -> bool {
    line.starts_with("heap profile:") || line == JAVA_HEADER
}

/// What the first line says about the rows.
struct Header {
    /// Mean distance of two samples in bytes when rows hold what was sampled.
    rate: Option<i64>,
    period: i64,
    /// The numbers in brackets differ from those in front of them.
    has_allocations: bool,
}

impl Header {
    fn read(line: &str) -> Result<Self, DecodeError> {
        static PATTERN: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(
                r"^heap profile: *(-?[0-9]+): *(-?[0-9]+) *\[ *(-?[0-9]+): *(-?[0-9]+) *\] *@ *([a-z0-9_]*)/?([0-9]*)",
            )
            .expect("a constant pattern is valid")
        });
        let captures =
            PATTERN.captures(line).ok_or_else(|| DecodeError::invalid("its heap profile header is damaged"))?;
        let [objects, bytes, all_objects, all_bytes, kind, rate] = captures.extract().1;
        let differs = |used: &str, all: &str| all != used && all != "0";
        let has_allocations = differs(objects, all_objects) || differs(bytes, all_bytes);
        let rate = match rate {
            "" => 0,
            digits => digits.parse().map_err(|_| DecodeError::invalid("its sampling rate is out of range"))?,
        };
        let (rate, period) = match kind {
            "heapz_v2" | "heap_v2" => (Some(rate), rate),
            "heap" => (Some(rate / 2), rate / 2),
            "heapprofile" | "growth" | "growthz" | "fragmentation" | "fragmentationz" => (None, 1),
            _ => {
                let message = format!("it is a heap profile of the kind `{kind}`, which is not known");
                return Err(DecodeError::new(DecodeErrorKind::Unsupported, message));
            }
        };
        let has_allocations = has_allocations && kind.starts_with("heap");
        Ok(Self { rate, period, has_allocations })
    }
}

pub(super) fn decode(text: &Text, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let (first, lines) = text.header();
    if jemalloc::is_header(first) {
        return jemalloc::decode(first, lines, text, context);
    }
    if first == JAVA_HEADER {
        return java::decode(java::Kind::Heap, text, lines, context);
    }
    let header = Header::read(first)?;
    let value_type = |prefix: &str, kind, unit| ValueType::new(format!("{prefix}{kind}"), unit);
    let pair = |prefix| [value_type(prefix, "objects", "count"), value_type(prefix, "space", "bytes")];
    let value_types =
        if header.has_allocations { [pair("alloc_"), pair("inuse_")].concat() } else { pair("").to_vec() };
    let mut builder = ProfileBuilder::new(HEAP.name, value_types);
    let meta = builder.meta();
    meta.period = header.period;
    meta.period_type = Some(ValueType::new("space", "bytes"));
    ALLOCATOR_FRAMES.clone_into(&mut meta.drop_frames);
    NO_ALLOCATOR_FRAMES.clone_into(&mut meta.keep_frames);

    let (samples, mut around) = if header.has_allocations {
        rows::read(lines, context, |row, stack| {
            let [allocated, used] = parse(row, stack)?;
            let size = used.size().or(allocated.size()).unwrap_or(0);
            let ([objects, bytes], [used_objects, used_bytes]) = (allocated.values(&header), used.values(&header));
            Some(Row { values: [objects, bytes, used_objects, used_bytes], size: Some(size) })
        })?
    } else {
        rows::read(lines, context, |row, stack| {
            let [_, used] = parse(row, stack)?;
            Some(Row { values: used.values(&header), size: Some(used.size().unwrap_or(0)) })
        })?
    };
    around.notes.extend(text.note());
    samples.into_profile(builder, around, context)
}

/// A number of objects and their bytes.
#[derive(Clone, Copy)]
pub(super) struct Amount {
    pub(super) objects: i64,
    pub(super) bytes: i64,
}

impl Amount {
    /// Reads `objects: bytes`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (objects, bytes) = text.split_once(':')?;
        let (objects, bytes) = (objects.trim().parse().ok()?, bytes.trim().parse().ok()?);
        // Bytes of no object can't be.
        (objects != 0 || bytes == 0).then_some(Self { objects, bytes })
    }

    /// Bytes of one object, as far as there are objects.
    pub(super) fn size(self) -> Option<i64> {
        self.bytes.checked_div(self.objects)
    }

    fn values(self, header: &Header) -> [i64; 2] {
        match header.rate {
            Some(rate) => unsampled(self.objects, self.bytes, rate),
            None => [self.objects, self.bytes],
        }
    }
}

/// Reads a row: allocated, in use.
fn parse(row: &str, stack: &mut Vec<u64>) -> Option<[Amount; 2]> {
    let (amounts, addresses) = row.split_once('@')?;
    let (used, allocated) = amounts.split_once('[')?;
    let allocated = allocated.trim_end().strip_suffix(']')?;
    lines::addresses(addresses, stack)?;
    Some([Amount::parse(allocated)?, Amount::parse(used)?])
}

/// Estimates what was allocated from what was sampled.
///
/// Bytes are picked at random, one in `rate` on average, so an object of size s is seen with
/// the probability 1 − exp(−s ÷ rate), and stands for the inverse of that. A rate of 1 or
/// less means that everything was seen, or nothing is known.
pub(super) fn unsampled(objects: i64, bytes: i64, rate: i64) -> [i64; 2] {
    if objects == 0 || bytes == 0 {
        return [0, 0];
    }
    if rate <= 1 {
        return [objects, bytes];
    }
    let size = bytes as f64 / objects as f64;
    let stands_for = 1.0 / (1.0 - (-size / rate as f64).exp());
    [scaled(objects, stands_for), scaled(bytes, stands_for)]
}

/// The whole part of the product, like pprof.
#[expect(clippy::cast_possible_truncation, reason = "casts of floats saturate, and the whole part is what is wanted")]
pub(super) fn scaled(value: i64, factor: f64) -> i64 {
    (value as f64 * factor) as i64
}
