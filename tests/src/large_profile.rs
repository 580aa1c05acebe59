//! A made pprof profile of any size, for benchmarks.
//!
//! The budgets are about profiles of production services, which can't be published, and
//! which are larger than anything a repository should hold. So this writes one that has
//! their shape, the same bytes on every machine:
//!
//! * stacks are walks through one call graph: every call site leads to one callee, so the
//!   same site has the same callers and callees in every stack; a few sites near the root
//!   are in most stacks, a few leaves in many, most of the graph is visited rarely;
//! * at its [`FULL`] size about 28 million frames in 1.1 million samples on 390 000 lines,
//!   114 MB before compression;
//! * some locations hold an inlined call, some functions recurse, some samples have labels.
//!
//! Messages stand in the order in which Go writes them: samples before the tables they refer
//! to, strings last. Only one message at a time is in memory.

use std::io::{self, Write};

/// The number of samples for which the budgets are stated.
pub const FULL: u32 = 1_100_000;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Samples.
    pub samples: u64,
    /// Locations in the stacks of all samples together.
    pub frames: u64,
    /// Locations in the table, each at a source line of its own.
    pub locations: u64,
    /// Bytes before compression.
    pub bytes: u64,
}

/// Writes a profile of this many samples, uncompressed. The call graph grows with it.
pub fn write(out: impl Write, samples: u32) -> io::Result<Summary> {
    let graph = Graph::of_size(samples);
    let mut out = Fields { out, written: 0 };
    let mut frames = 0;

    for (kind, unit) in [(SAMPLES, COUNT), (CPU, NANOSECONDS)] {
        out.message(1, |value_type| {
            value_type.number(1, kind).number(2, unit);
        })?;
    }
    let mut random = Random(1);
    let mut stack = Vec::new();
    for _ in 0..samples {
        graph.walk(&mut random, &mut stack);
        frames += stack.len() as u64;
        out.message(2, |sample| write_sample(sample, &stack, &mut random))?;
    }
    for (id, binary) in (1..).zip(BINARIES) {
        let start = binary_start(id);
        out.message(3, |mapping| {
            mapping.number(1, id).number(2, start).number(3, start + (1 << 30)).number(5, binary.name);
        })?;
    }
    for site in 0..graph.sites() {
        out.message(4, |location| graph.write_location(location, site))?;
    }
    for function in 0..graph.functions {
        out.message(5, |message| {
            message
                .number(1, function + 1)
                .number(2, graph.name_string(function))
                .number(3, graph.name_string(function) + 1)
                .number(4, file_string(function / FUNCTIONS_PER_FILE))
                .number(5, start_line(function));
        })?;
    }
    for text in STRINGS {
        out.text(6, text)?;
    }
    for file in 0..graph.files() {
        let (package, word) = words(file);
        out.text(
            6,
            &format!("/build/src/github.com/example/shop/services/{package}/internal/{package}_{word}_{file}.go"),
        )?;
    }
    for function in 0..graph.functions {
        let (package, word) = words(function);
        let module = format!("github.com/example/shop/services/{package}/internal");
        out.text(6, &format!("{module}.(*{word}[...]).handle{function}"))?;
        out.text(6, &format!("{module}.(*{word}[go.shape.struct {{ ID uint64; Name string }}]).handle{function}"))?;
    }
    out.number(9, 1_790_000_000_000_000_000)?;
    out.number(10, 60_000_000_000)?;
    out.message(11, |period_type| {
        period_type.number(1, CPU).number(2, NANOSECONDS);
    })?;
    out.number(12, PERIOD_NS)?;
    out.out.flush()?;
    Ok(Summary { samples: samples.into(), frames, locations: graph.sites(), bytes: out.written })
}

const PERIOD_NS: u64 = 10_000_000;

/// The fixed part of the string table; its indexes are named below.
const STRINGS: [&str; 13] = [
    "",
    "samples",
    "count",
    "cpu",
    "nanoseconds",
    "route",
    "/cart",
    "/checkout",
    "bytes",
    "/usr/bin/shop",
    "/usr/lib/x86_64-linux-gnu/libc.so.6",
    "[vdso]",
    "[kernel.kallsyms]",
];
const SAMPLES: u64 = 1;
const COUNT: u64 = 2;
const CPU: u64 = 3;
const NANOSECONDS: u64 = 4;
const ROUTE: u64 = 5;
const ROUTES: [u64; 2] = [6, 7];
const BYTES: u64 = 8;

/// A mapped binary, and how many of 100 functions are in it or one of those before it.
struct Binary {
    name: u64,
    functions_until: u64,
}

const BINARIES: [Binary; 4] = [
    Binary { name: 9, functions_until: 85 },
    Binary { name: 10, functions_until: 93 },
    Binary { name: 11, functions_until: 94 },
    Binary { name: 12, functions_until: 100 },
];

fn binary_start(mapping: u64) -> u64 {
    mapping << 40
}

fn write_sample(sample: &mut Message, stack: &[u64], random: &mut Random) {
    let count = 1 + u64::from(random.below(16) == 0) * random.below(8);
    sample.packed(1, stack).packed(2, &[count, count * PERIOD_NS]);
    if random.below(4) == 0 {
        let route = ROUTES[usize::from(random.below(4) == 0)];
        sample.nested(3, |label| {
            label.number(1, ROUTE).number(2, route);
        });
        sample.nested(3, |label| {
            label.number(1, BYTES).number(3, 64 << random.below(12)).number(4, BYTES);
        });
    }
}

/// Call sites of a function. A site is a line, and a location.
pub(crate) const SITES_PER_FUNCTION: u64 = 13;
pub(crate) const FUNCTIONS_PER_FILE: u64 = 10;
/// Lines between the starts of two functions of a file.
const LINES_PER_FUNCTION: u64 = 45;

/// A call graph that is computed where it is looked at, never stored.
pub(crate) struct Graph {
    pub(crate) functions: u64,
}

impl Graph {
    /// As many functions for each sample as a large profile has.
    fn of_size(samples: u32) -> Self {
        Self { functions: (u64::from(samples) * 30_000 / u64::from(FULL)).max(100) }
    }

    pub(crate) fn sites(&self) -> u64 {
        self.functions * SITES_PER_FUNCTION
    }

    fn files(&self) -> u64 {
        self.functions.div_ceil(FUNCTIONS_PER_FILE)
    }

    /// The function a site calls. One call in 50 is recursive.
    pub(crate) fn callee(&self, site: u64) -> u64 {
        let mut random = Random(site);
        if random.below(50) == 0 {
            return site / SITES_PER_FUNCTION;
        }
        self.skewed(&mut random)
    }

    /// A function, high numbers preferred: the density falls with the root of the distance
    /// from the last. So hot locations don't have the short ids: tables that went through a
    /// server are in no order of heat.
    fn skewed(&self, random: &mut Random) -> u64 {
        const RESOLUTION: u64 = 1 << 20;
        let position = random.below(RESOLUTION);
        self.functions - 1 - position * position * self.functions / (RESOLUTION * RESOLUTION)
    }

    /// Fills `stack` with the location ids of a walk, leaf first.
    pub(crate) fn walk(&self, random: &mut Random, stack: &mut Vec<u64>) {
        const THREAD_STARTS: u64 = 8;
        const SHARED_DEPTH: u64 = 8;
        const HOT_LEAVES: u64 = 64;

        stack.clear();
        // The sum of three has a middle and two tails: 6 to 45 frames, 25.5 on average.
        let depth = 6 + random.below(14) + random.below(14) + random.below(14);
        let mut function = random.below(THREAD_STARTS);
        for level in 0..depth {
            // The smaller of two: early sites of a function are taken more often than late
            // ones. Loops of servers near the root have little choice.
            let choices = if level < SHARED_DEPTH { 2 } else { SITES_PER_FUNCTION };
            let site = function * SITES_PER_FUNCTION + random.below(choices).min(random.below(choices));
            stack.push(site + 1);
            function = self.callee(site);
        }
        // Much time is spent in the same few places: allocation, copying, locks.
        if random.below(3) == 0 {
            let hot = Random(random.below(HOT_LEAVES)).below(self.sites());
            if let Some(leaf) = stack.last_mut() {
                *leaf = hot + 1;
            }
        }
        stack.reverse();
    }

    fn write_location(&self, location: &mut Message, site: u64) {
        let function = site / SITES_PER_FUNCTION;
        let percent = function * 100 / self.functions;
        let mapping = (1..).zip(BINARIES).find(|(_, binary)| percent < binary.functions_until).map_or(0, |(id, _)| id);
        let mut random = Random(!site);
        location.number(1, site + 1).number(2, mapping);
        location.number(3, binary_start(mapping) + site * 64 + random.below(64));
        if random.below(4) == 0 {
            let inlined = self.skewed(&mut random) * SITES_PER_FUNCTION + random.below(SITES_PER_FUNCTION);
            write_line(location, inlined);
        }
        write_line(location, site);
    }

    /// The string that names a function; its name for the linker is the next one.
    fn name_string(&self, function: u64) -> u64 {
        file_string(self.files()) + 2 * function
    }
}

fn file_string(file: u64) -> u64 {
    STRINGS.len() as u64 + file
}

pub(crate) fn start_line(function: u64) -> u64 {
    1 + function % FUNCTIONS_PER_FILE * LINES_PER_FUNCTION
}

fn write_line(location: &mut Message, site: u64) {
    let (function, nth) = (site / SITES_PER_FUNCTION, site % SITES_PER_FUNCTION);
    location.nested(4, |line| {
        line.number(1, function + 1).number(2, start_line(function) + 1 + 3 * nth);
    });
}

/// Two words for a name, so that names differ in more than a number.
pub(crate) fn words(seed: u64) -> (&'static str, &'static str) {
    const PACKAGES: [&str; 12] = [
        "billing",
        "cart",
        "catalog",
        "checkout",
        "fulfilment",
        "http2",
        "inventory",
        "ledger",
        "pricing",
        "search",
        "session",
        "storage",
    ];
    const WORDS: [&str; 12] = [
        "Batch", "Cache", "Codec", "Cursor", "Encoder", "Index", "Journal", "Planner", "Pool", "Router", "Session",
        "Writer",
    ];
    let mut random = Random(seed);
    let mut pick = |from: [&'static str; 12]| from[usize::try_from(random.below(12)).unwrap_or(0)];
    (pick(PACKAGES), pick(WORDS))
}

/// `SplitMix64`: the same numbers everywhere, from any seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number from 0 to below `bound`, which is small enough that the bias of a remainder
    /// does not matter.
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// The outermost message, whose fields are written as they come.
pub(crate) struct Fields<W> {
    pub(crate) out: W,
    pub(crate) written: u64,
}

impl<W: Write> Fields<W> {
    pub(crate) fn message(&mut self, field: u64, fill: impl FnOnce(&mut Message)) -> io::Result<()> {
        let mut message = Message::default();
        message.nested(field, fill);
        self.write(&message)
    }

    fn text(&mut self, field: u64, text: &str) -> io::Result<()> {
        let mut message = Message::default();
        message.bytes(field, text.as_bytes());
        self.write(&message)
    }

    fn number(&mut self, field: u64, number: u64) -> io::Result<()> {
        let mut message = Message::default();
        message.number(field, number);
        self.write(&message)
    }

    fn write(&mut self, message: &Message) -> io::Result<()> {
        self.written += message.0.len() as u64;
        self.out.write_all(&message.0)
    }
}

/// An encoded protobuf message. Numbers that are 0 are left out, as in any proto3 encoder.
#[derive(Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    const VARINT: u64 = 0;
    const FIXED64: u64 = 1;
    const LENGTH_DELIMITED: u64 = 2;

    pub(crate) fn number(&mut self, field: u64, number: u64) -> &mut Self {
        if number != 0 {
            self.varint(field << 3 | Self::VARINT);
            self.varint(number);
        }
        self
    }

    pub(crate) fn fixed64(&mut self, field: u64, number: u64) -> &mut Self {
        self.varint(field << 3 | Self::FIXED64);
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    pub(crate) fn packed(&mut self, field: u64, numbers: &[u64]) -> &mut Self {
        let mut encoded = Self::default();
        for &number in numbers {
            encoded.varint(number);
        }
        self.bytes(field, &encoded.0);
        self
    }

    pub(crate) fn nested(&mut self, field: u64, fill: impl FnOnce(&mut Self)) {
        let mut message = Self::default();
        fill(&mut message);
        self.bytes(field, &message.0);
    }

    pub(crate) fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | Self::LENGTH_DELIMITED);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.0.push(number.to_le_bytes()[0]);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use profiler_core::cancel::CancelFlag;
    use profiler_core::decode::{Limits, decode};
    use profiler_core::profile::{LocId, Profile};

    use super::*;

    fn made(samples: u32) -> (Vec<u8>, Summary) {
        let mut bytes = Vec::new();
        let summary = write(&mut bytes, samples).unwrap();
        (bytes, summary)
    }

    fn decoded(bytes: &[u8]) -> Profile {
        decode(bytes, &Limits::default(), &CancelFlag::new()).unwrap()
    }

    #[test]
    fn the_same_bytes_come_out_every_time() {
        assert_eq!(made(2_000).0, made(2_000).0);
    }

    #[test]
    fn the_summary_is_what_a_decoder_finds() {
        let (bytes, summary) = made(2_000);
        let profile = decoded(&bytes);
        assert_eq!(profile.notes(), [""; 0]);
        let samples = profile.samples();
        let frames: usize = (0..samples.len()).map(|sample| samples.stack(sample).len()).sum();
        assert_eq!(samples.len() as u64, summary.samples);
        assert_eq!(frames as u64, summary.frames);
        assert_eq!(profile.locations().len() as u64 - 1, summary.locations);
        assert_eq!(bytes.len() as u64, summary.bytes);
    }

    #[test]
    fn stacks_have_the_shape_of_real_ones() {
        let profile = decoded(&made(20_000).0);
        let samples = profile.samples();
        let depths = (0..samples.len()).map(|sample| samples.stack(sample).len());
        assert_eq!((depths.clone().min(), depths.clone().max()), (Some(6), Some(45)));
        let mean = depths.sum::<usize>() as f64 / samples.len() as f64;
        assert!((25.0..26.0).contains(&mean), "{mean}");

        let distinct = |frame: fn(&[LocId]) -> LocId| {
            let frames: BTreeSet<_> = (0..samples.len()).map(|sample| frame(samples.stack(sample))).collect();
            frames.len()
        };
        let (roots, leaves) = (distinct(|stack| stack[stack.len() - 1]), distinct(|stack| stack[0]));
        assert!(roots <= 16, "{roots}");
        assert!((1_000..10_000).contains(&leaves), "{leaves}");

        let recursive = |stack: &[LocId]| {
            let functions: Vec<_> =
                stack.iter().filter_map(|&id| profile.locations().lines(id).last()).map(|line| line.function).collect();
            functions.windows(2).any(|pair| pair[0] == pair[1])
        };
        assert!((0..samples.len()).any(|sample| recursive(samples.stack(sample))));
        assert!((0..samples.len()).any(|sample| !samples.labels(sample).is_empty()));
        assert!(profile.locations().ids().any(|id| profile.locations().lines(id).len() == 2));
        assert_eq!(profile.sum(1).total, profile.sum(0).total * 10_000_000);
    }
}
