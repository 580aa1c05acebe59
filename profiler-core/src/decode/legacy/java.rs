//! What Java profiles have instead of a memory map, a list of names:
//!
//! ```text
//!  0x00000003 GC
//!  0x0000006 com.example.Main.run (Main.java:12)
//!  0x0000007 read (/lib/libc.so.6)
//! ```
//!
//! and Java's text profiles, which start like those of C++ but have `format = java` in their
//! header. The addresses are numbers of methods: nothing is subtracted from them.

use rustc_hash::FxHashMap;

use super::super::{Context, DecodeError};
use super::lines::{self, Lines, is_blank_or_comment};
use super::rows::Refused;
use super::samples::{Name, Names, Samples, Surroundings};
use super::{CONTENTION, HEAP, Text, contention, heap};
use crate::profile::{LineNo, Profile, ProfileBuilder, ValueType};

/// Mean distance of two samples of the heap in bytes; the file does not say.
const HEAP_RATE: i64 = 512 << 10;

/// Which text profile it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Heap,
    Contention,
}

/// Reads the list of names.
pub(super) fn names(lines: Lines<'_>) -> FxHashMap<u64, Vec<Name>> {
    let mut names = FxHashMap::default();
    for line in lines.filter(|line| line.is_whole) {
        if let Some((method, rest)) = line.text.trim().split_once(char::is_whitespace)
            && let Some(method) = lines::address(method)
        {
            names.entry(method).or_insert_with(|| vec![name(rest.trim())]);
        }
    }
    names
}

/// Reads `function (File.java:LINE)`, `function (library)`, or a state of the machine.
fn name(text: &str) -> Name {
    let function_only =
        |function: &str| Name { function: function.to_owned(), file: String::new(), line: LineNo::UNKNOWN };
    let in_parentheses = text.strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
    let Some((function, place)) = in_parentheses else {
        return function_only(if text.contains("generated stub/JIT") { "STUB" } else { text });
    };
    match place.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse::<i64>().ok()?))) {
        Some((file, line)) => Name {
            function: function.trim_end().to_owned(),
            file: file.to_owned(),
            line: LineNo::from_pprof(line, 0).0,
        },
        // The library's folder says nothing about the source.
        None => {
            Name { file: place.rsplit('/').next().unwrap_or(place).to_owned(), ..function_only(function.trim_end()) }
        }
    }
}

/// The lines between the first and the rows.
struct Header {
    unit: String,
    period: i64,
    duration_ns: Option<i64>,
}

impl Header {
    fn read(kind: Kind, lines: &mut Lines<'_>) -> Result<Self, DecodeError> {
        let unit = if kind == Kind::Heap { "bytes" } else { "nanoseconds" };
        let mut header = Self { unit: unit.to_owned(), period: 0, duration_ns: None };
        while let Some(line) = lines.peek() {
            if !is_blank_or_comment(line.text) {
                let Some((key, value)) = line.text.split_once('=') else { break };
                let (key, value) = (key.trim(), value.trim());
                let number =
                    || value.parse::<i64>().map_err(|_| DecodeError::invalid(format!("its `{key}` is not a number")));
                match (kind, key) {
                    (_, "resolution") => value.clone_into(&mut header.unit),
                    (Kind::Contention, "sampling period") => header.period = number()?,
                    (Kind::Contention, "ms since reset") => header.duration_ns = number()?.checked_mul(1_000_000),
                    _ => {}
                }
            }
            lines.next();
        }
        Ok(header)
    }
}

/// Reads a text profile from behind its first line.
pub(super) fn decode(
    kind: Kind,
    text: &Text,
    mut lines: Lines<'_>,
    context: &Context<'_>,
) -> Result<Profile, DecodeError> {
    let header = Header::read(kind, &mut lines)?;
    let (format, count, amount, drop) = match kind {
        Kind::Heap => (HEAP.name, "inuse_objects", "inuse_space", heap::ALLOCATOR_FRAMES),
        Kind::Contention => (CONTENTION.name, "contentions", "delay", contention::LOCK_FRAMES),
    };
    let value_types = vec![ValueType::new(count, "count"), ValueType::new(amount, header.unit.as_str())];
    let mut builder = ProfileBuilder::new(format, value_types);
    let meta = builder.meta();
    meta.period = header.period;
    meta.period_type = (kind == Kind::Contention).then(|| ValueType::new("contentions", "count"));
    meta.duration_ns = header.duration_ns;
    drop.clone_into(&mut meta.drop_frames);
    if kind == Kind::Heap {
        heap::NO_ALLOCATOR_FRAMES.clone_into(&mut meta.keep_frames);
    }

    let mut samples = Samples::default();
    let mut refused = Refused::default();
    let mut stack = Vec::new();
    // Names begin with an address; rows never do.
    while let Some(line) = lines.peek().filter(|line| !line.text.trim_start().starts_with("0x")) {
        lines.next();
        if is_blank_or_comment(line.text) {
            continue;
        }
        let Some([amount, count]) = parse(line.text, &mut stack).filter(|row| kind != Kind::Heap || row[1] != 0) else {
            refused.add(line.number);
            continue;
        };
        let values = match kind {
            Kind::Heap => heap::unsampled(count, amount, HEAP_RATE),
            Kind::Contention if header.period != 0 => [count, amount].map(|value| value.saturating_mul(header.period)),
            Kind::Contention => [count, amount],
        };
        samples.push(&stack, &values, context)?;
        if kind == Kind::Heap {
            samples.set_size(amount.wrapping_div(count));
        }
    }
    let mut around = Surroundings {
        names: Names { of: names(lines), are_method_numbers: true },
        notes: refused.into_notes(samples.len())?,
        ..Surroundings::default()
    };
    around.notes.extend(text.note());
    samples.into_profile(builder, around, context)
}

/// Reads `amount count @ methods`.
fn parse(row: &str, stack: &mut Vec<u64>) -> Option<[i64; 2]> {
    let (numbers, methods) = row.split_once('@')?;
    lines::addresses(methods, stack)?;
    let mut numbers = numbers.split_ascii_whitespace();
    let values = [numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?];
    numbers.next().is_none().then_some(values)
}
