//! Binary CPU profiles: words of 32 or 64 bits in either byte order.
//!
//! ```text
//! 0, 3, 0 (1: Java), period in µs, 0
//! count, depth, address × depth      for each sample
//! 0, 1, 0                            the end; text follows
//! ```
//!
//! The text is the memory map, or the list of names of a Java profile, whose addresses are
//! method numbers. Elsewhere the leaf is the exact address and the others are return
//! addresses. The frame of the signal handler itself is taken out.

use rustc_hash::FxHashMap;

use super::super::{Confidence, Context, DecodeError, Format, Input};
use super::java;
use super::lines::Lines;
use super::maps::Maps;
use super::samples::{Names, Samples, Surroundings};
use crate::profile::{Profile, ProfileBuilder, ValueType};

pub(in super::super) const FORMAT: Format = Format {
    name: "legacy-cpu",
    sniff: |prefix| if Header::read(prefix).is_some() { Confidence::Certain } else { Confidence::No },
    decode,
};

/// Frames that the profiler itself puts on stacks, should the file or a binary name them.
const PROFILER_FRAMES: &str = "(ProfileData|CpuProfiler)::prof_handler|ProfileData::Add|__pthread_sighandler|__restore";

/// How words are laid out.
#[derive(Clone, Copy)]
struct Layout {
    size: usize,
    is_big_endian: bool,
}

struct Header {
    layout: Layout,
    is_java: bool,
    period_us: u64,
}

impl Header {
    const WORDS: usize = 5;

    fn read(bytes: &[u8]) -> Option<Self> {
        [(4, false), (4, true), (8, false), (8, true)].into_iter().find_map(|(size, is_big_endian)| {
            let layout = Layout { size, is_big_endian };
            let mut words = Words { bytes, layout };
            let [zero, version, java, period_us, padding] = [(); Self::WORDS].map(|()| words.next());
            let is_own = zero == Some(0) && version == Some(3) && java? <= 1 && period_us? > 0 && padding == Some(0);
            is_own.then_some(Self { layout, is_java: java == Some(1), period_us: period_us? })
        })
    }
}

#[derive(Clone)]
struct Words<'a> {
    bytes: &'a [u8],
    layout: Layout,
}

impl Words<'_> {
    /// Number of whole words left.
    fn left(&self) -> u64 {
        (self.bytes.len() / self.layout.size) as u64
    }
}

impl Iterator for Words<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let (word, rest) = self.bytes.split_at_checked(self.layout.size)?;
        self.bytes = rest;
        let append = |value: u64, &byte: &u8| value << 8 | u64::from(byte);
        Some(if self.layout.is_big_endian { word.iter().fold(0, append) } else { word.iter().rev().fold(0, append) })
    }
}

fn decode(input: &mut Input<'_>, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let (bytes, cut) = input.read_available()?;
    let header = Header::read(&bytes).ok_or_else(|| DecodeError::invalid("its header is damaged"))?;
    let period = i64::try_from(header.period_us)
        .ok()
        .and_then(|period| period.checked_mul(1000))
        .ok_or_else(|| DecodeError::invalid("its sampling period is out of range"))?;
    let mut words = Words { bytes: &bytes[Header::WORDS * header.layout.size..], layout: header.layout };

    let mut samples = Samples::default();
    let is_ended = read_samples(&mut words, &header, period, &mut samples, context)?;
    if !header.is_java {
        remove_signal_frames(&mut samples);
        samples.remove_doubled_leaves();
    }

    let mut around = Surroundings::default();
    if !is_ended {
        if samples.len() == 0 && !words.bytes.is_empty() {
            return Err(DecodeError::truncated("it ends inside its first sample"));
        }
        around.notes.push("the file ends before its end marker; samples behind the last whole one are lost".to_owned());
    } else if let Some(cut) = cut {
        around.notes.push(format!("the file is incomplete: {cut}; what came before was kept"));
    }
    let rest = String::from_utf8_lossy(if is_ended { words.bytes } else { &[] });
    if header.is_java {
        around.names = Names { of: java::names(Lines::new(&rest)), are_method_numbers: true };
    } else {
        around.maps = Maps::read(Lines::new(&rest));
    }

    let cpu = ValueType::new("cpu", "nanoseconds");
    let mut builder = ProfileBuilder::new(FORMAT.name, vec![ValueType::new("samples", "count"), cpu.clone()]);
    let meta = builder.meta();
    meta.period = period;
    meta.period_type = Some(cpu);
    PROFILER_FRAMES.clone_into(&mut meta.drop_frames);
    samples.into_profile(builder, around, context)
}

/// Reads samples up to the end marker, or to the end of what is whole; says which.
fn read_samples(
    words: &mut Words<'_>,
    header: &Header,
    period: i64,
    samples: &mut Samples,
    context: &Context<'_>,
) -> Result<bool, DecodeError> {
    let mut stack = Vec::new();
    loop {
        let mut ahead = words.clone();
        let (Some(count), Some(depth)) = (ahead.next(), ahead.next()) else { return Ok(false) };
        if depth > ahead.left() {
            return Ok(false);
        }
        stack.clear();
        stack.extend((0..depth).map_while(|_| ahead.next()));
        *words = ahead;
        if count == 0 && stack == [0] {
            return Ok(true);
        }
        if !header.is_java {
            for caller in stack.iter_mut().skip(1) {
                *caller = caller.wrapping_sub(1);
            }
        }
        let values = i64::try_from(count)
            .ok()
            .and_then(|count| Some([count, count.checked_mul(period)?]))
            .ok_or_else(|| DecodeError::invalid(format!("a sample was taken {count} times, which can't be")))?;
        samples.push(&stack, &values, context)?;
    }
}

/// A frame above the leaf that (nearly) all samples share is not of the program: the signal
/// handler put it there. There may be two.
fn remove_signal_frames(samples: &mut Samples) {
    let enough = samples.len() - samples.len() / 32;
    for _ in 0..2 {
        let mut callers: FxHashMap<u64, usize> = FxHashMap::default();
        for sample in 0..samples.len() {
            if let Some(&caller) = samples.stack(sample).get(1) {
                *callers.entry(caller).or_default() += 1;
            }
        }
        // More than half of all samples have it, so there's one at most.
        let Some((&handler, _)) = callers.iter().find(|(_, count)| **count >= enough) else { return };
        samples.remove_caller_of_leaf(|stack| stack[1] == handler);
    }
}
