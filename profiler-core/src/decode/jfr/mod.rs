//! Flight recordings of the JVM, of the JDK itself and of async-profiler.
//!
//! ```text
//! file  = chunk*
//! chunk = header, event*;  event = size, type, fields
//! ```
//!
//! A chunk describes its own types ([`metadata`]) and keeps what repeats in pools, which are
//! events themselves ([`pools`]). Only events that have stacks and a weight are of interest;
//! each kind is a value type.
//!
//! A recording has no names of files: they are made of the class, which is right for Java, and
//! the package tells the rest ([`class_file`]).
//!
//! What is not here: recordings that are still being written; their last chunk says nothing
//! about its types yet and is left out with a note.

mod bytes;
mod metadata;
mod pools;

use rustc_hash::FxHashMap;

use super::sink::Sink;
use super::{Confidence, Context, DecodeError, DecodeErrorKind, Format, Input, fraction};
use crate::profile::{Label, LocId, Profile, ValueType};
use bytes::Bytes;
use metadata::{Metadata, Scalar};
use pools::{Frame, Pools};

pub(super) const FORMAT: Format = Format { name: "jfr", sniff, decode };

const MAGIC: &[u8; 4] = b"FLR\0";
const HEADER: usize = 68;

fn sniff(prefix: &[u8]) -> Confidence {
    if prefix.starts_with(MAGIC) { Confidence::Certain } else { Confidence::No }
}

/// What an event measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Cpu,
    Native,
    Wall,
    Allocated,
    Live,
    Malloc,
    Lock,
    Park,
}

impl Kind {
    const ALL: [Self; 8] =
        [Self::Cpu, Self::Native, Self::Wall, Self::Allocated, Self::Live, Self::Malloc, Self::Lock, Self::Park];

    /// The kind of an event, and the field that holds its weight; without one it counts 1.
    fn of(event: &str) -> Option<(Self, &'static str)> {
        Some(match event {
            "jdk.ExecutionSample" | "jdk.CPUTimeSample" => (Self::Cpu, ""),
            "jdk.NativeMethodSample" => (Self::Native, ""),
            "profiler.WallClockSample" => (Self::Wall, "samples"),
            "jdk.ObjectAllocationInNewTLAB" => (Self::Allocated, "tlabSize"),
            "jdk.ObjectAllocationOutsideTLAB" => (Self::Allocated, "allocationSize"),
            "jdk.ObjectAllocationSample" => (Self::Allocated, "weight"),
            "profiler.LiveObject" => (Self::Live, "allocationSize"),
            "profiler.Malloc" => (Self::Malloc, "size"),
            "jdk.JavaMonitorEnter" => (Self::Lock, "duration"),
            "jdk.ThreadPark" => (Self::Park, "duration"),
            _ => return None,
        })
    }

    fn value_type(self) -> ValueType {
        match self {
            Self::Cpu => ValueType::new("samples", "count"),
            Self::Native => ValueType::new("native_samples", "count"),
            Self::Wall => ValueType::new("wall_samples", "count"),
            Self::Allocated => ValueType::new("alloc_space", "bytes"),
            Self::Live => ValueType::new("inuse_space", "bytes"),
            Self::Malloc => ValueType::new("malloc_space", "bytes"),
            Self::Lock => ValueType::new("lock", "nanoseconds"),
            Self::Park => ValueType::new("park", "nanoseconds"),
        }
    }
}

/// The part of a file that describes itself.
struct Chunk<'a> {
    bytes: &'a [u8],
    metadata: Metadata,
    pools: Pools,
    ticks_per_second: u64,
}

/// An event with a stack.
struct Event {
    kind: Kind,
    stack: u64,
    thread: u64,
    weight: i64,
}

fn decode(input: &mut Input<'_>, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let (bytes, cut) = input.read_available()?;
    let mut chunks = Vec::new();
    let mut note = cut;
    let (mut start, mut end) = (u64::MAX, 0);
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        context.cancel.check()?;
        let header = Header::read(rest)?;
        let Some((chunk, behind)) = usize::try_from(header.size).ok().and_then(|size| rest.split_at_checked(size))
        else {
            note = Some(DecodeError::truncated("its last chunk is not complete"));
            break;
        };
        if header.size < HEADER as u64 || header.metadata == 0 {
            note = Some(DecodeError::truncated("its last chunk is still being written"));
            break;
        }
        let is_compressed = header.features & 1 != 0;
        let metadata = Metadata::read(chunk, header.metadata, is_compressed)?;
        let pools = Pools::read(chunk, &metadata, context)?;
        start = start.min(header.start);
        end = end.max(header.start.saturating_add(header.duration));
        chunks.push(Chunk { bytes: chunk, metadata, pools, ticks_per_second: header.ticks_per_second.max(1) });
        rest = behind;
    }
    if chunks.is_empty() {
        return Err(note.unwrap_or_else(|| DecodeError::new(DecodeErrorKind::Empty, "it holds no chunk")));
    }
    let mut kinds = Vec::new();
    let mut period = None;
    for chunk in &chunks {
        for_each_event(chunk.bytes, |id, _| {
            let name = chunk.metadata.name(id);
            if let Some((kind, _)) = Kind::of(name)
                && !kinds.contains(&kind)
            {
                kinds.push(kind);
            }
            Ok(())
        })?;
        period = period.or(chunk.period()?);
    }
    kinds.sort_by_key(|kind| Kind::ALL.iter().position(|known| known == kind));
    if kinds.is_empty() {
        return Err(DecodeError::new(
            DecodeErrorKind::NotAProfile,
            "it is a flight recording without samples of any kind; record with settings=profile",
        ));
    }
    let types = kinds.iter().map(|kind| kind.value_type()).collect();
    let mut sink = Sink::new(FORMAT.name, types, context);
    let meta = sink.builder.meta();
    meta.default_value_type = 0;
    meta.time_ns = i64::try_from(start).ok();
    meta.duration_ns = i64::try_from(end.saturating_sub(start)).ok().filter(|&duration| duration > 0);
    if let Some(period) = period.filter(|_| kinds[0] == Kind::Cpu) {
        meta.period = period;
        meta.period_type = Some(ValueType::new("cpu", "nanoseconds"));
    }
    let (mut missing, mut truncated) = (0, 0);
    for chunk in &chunks {
        let mut rows = Rows { chunk, locations: FxHashMap::default(), threads: FxHashMap::default() };
        let mut values = vec![0; kinds.len()];
        let mut stack = Vec::new();
        for_each_event(chunk.bytes, |id, body| {
            let Some(event) = chunk.event(id, body)? else { return Ok(()) };
            let Some(column) = kinds.iter().position(|kind| *kind == event.kind) else { return Ok(()) };
            stack.clear();
            match chunk.pools.stack(event.stack) {
                Some(frames) => {
                    for frame in frames {
                        stack.push(rows.location(*frame, &mut sink)?);
                    }
                }
                None => missing += u64::from(event.stack != 0),
            }
            truncated += u64::from(chunk.pools.truncated.contains(&event.stack));
            let labels = rows.labels(event.thread, &mut sink)?;
            values.fill(0);
            values[column] = event.weight;
            sink.sample(&stack, &values, &labels)
        })?;
    }
    sink.note_count(missing, "samples have a stack that is not there; they have no frames");
    sink.note_count(truncated, "stacks are deeper than the recorder keeps; their outermost frames are missing");
    sink.note_cut(note.as_ref());
    sink.finish()
}

/// What the head of a chunk says; numbers are big-endian.
struct Header {
    size: u64,
    metadata: u64,
    start: u64,
    duration: u64,
    ticks_per_second: u64,
    features: u32,
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        if !bytes.starts_with(MAGIC) {
            return Err(DecodeError::invalid("what follows a chunk is none"));
        }
        let Some(header) = bytes.first_chunk::<HEADER>() else {
            return Err(DecodeError::truncated("it ends inside the head of a chunk"));
        };
        let long = |at: usize| u64::from_be_bytes(*header[at..].first_chunk().unwrap_or(&[0; 8]));
        let major = u16::from_be_bytes([header[4], header[5]]);
        if !(1..=2).contains(&major) {
            let message = format!("it is of version {major} of the format; known are 1 and 2");
            return Err(DecodeError::new(DecodeErrorKind::Unsupported, message));
        }
        Ok(Self {
            size: long(8),
            metadata: long(24),
            start: long(32),
            duration: long(40),
            ticks_per_second: long(56),
            features: u32::from_be_bytes([header[64], header[65], header[66], header[67]]),
        })
    }
}

/// Hands out type and fields of each event of a chunk.
fn for_each_event(
    chunk: &[u8],
    mut use_event: impl FnMut(u64, &[u8]) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let mut at = HEADER;
    while at < chunk.len() {
        let mut bytes = Bytes::new(&chunk[at..], true);
        let size = usize::try_from(bytes.long()?).unwrap_or(usize::MAX);
        let event = chunk.get(at..at.saturating_add(size)).filter(|event| !event.is_empty());
        let event = event.ok_or_else(|| DecodeError::invalid(format!("an event at byte {at} has no valid size")))?;
        let mut bytes = Bytes::new(event, true);
        bytes.long()?;
        let id = bytes.long()?.cast_unsigned();
        use_event(id, bytes.rest())?;
        at += size;
    }
    Ok(())
}

impl Chunk<'_> {
    fn event(&self, id: u64, body: &[u8]) -> Result<Option<Event>, DecodeError> {
        let Some((kind, weight_field)) = Kind::of(self.metadata.name(id)) else { return Ok(None) };
        let mut event = Event { kind, stack: 0, thread: 0, weight: 1 };
        let mut failed = false;
        self.metadata.read_fields(id, &mut self.metadata.bytes(body), &mut |field, value| match (field, value) {
            ("stackTrace", Scalar::Reference(key)) => event.stack = key,
            ("sampledThread" | "eventThread", Scalar::Reference(key)) => event.thread = key,
            // What failed says so and has no stack.
            ("failed", Scalar::Number(flag)) => failed = flag != 0,
            (field, Scalar::Number(weight)) if field == weight_field => event.weight = weight,
            _ => {}
        })?;
        if matches!(kind, Kind::Lock | Kind::Park) {
            let ns = i128::from(event.weight) * 1_000_000_000 / i128::from(self.ticks_per_second);
            event.weight = i64::try_from(ns).unwrap_or(0);
        }
        Ok((!failed).then_some(event))
    }

    /// How often threads are sampled, in nanoseconds.
    fn period(&self) -> Result<Option<i64>, DecodeError> {
        let sampler = self.metadata.id("jdk.ExecutionSample");
        let mut period = None;
        for_each_event(self.bytes, |id, body| {
            if self.metadata.name(id) != "jdk.ActiveSetting" {
                return Ok(());
            }
            let (mut of, mut name, mut value) = (0, String::new(), String::new());
            self.metadata.read_fields(
                id,
                &mut self.metadata.bytes(body),
                &mut |field, scalar| match (field, scalar) {
                    ("id", Scalar::Number(id)) => of = id.cast_unsigned(),
                    ("name", Scalar::Text(text)) => name = text,
                    ("value", Scalar::Text(text)) => value = text,
                    _ => {}
                },
            )?;
            if Some(of) == sampler && matches!(&*name, "period" | "interval") {
                period = period.or_else(|| duration(&value));
            }
            Ok(())
        })?;
        Ok(period)
    }
}

/// Reads `20 ms` or a number of nanoseconds.
fn duration(text: &str) -> Option<i64> {
    let (number, unit) = text.trim().split_once(' ').unwrap_or((text.trim(), "ns"));
    let ns = match unit.trim() {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    fraction::nearest(number.parse::<f64>().ok()? * ns).filter(|&period| period > 0)
}

/// What is known of a chunk's pools in the profile.
struct Rows<'p, 'a> {
    chunk: &'p Chunk<'a>,
    locations: FxHashMap<Frame, LocId>,
    threads: FxHashMap<u64, Vec<Label>>,
}

impl Rows<'_, '_> {
    fn location(&mut self, frame: Frame, sink: &mut Sink<'_>) -> Result<LocId, DecodeError> {
        if let Some(&known) = self.locations.get(&frame) {
            return Ok(known);
        }
        let (class, method) = self.chunk.pools.method(frame.method);
        let name = if class.is_empty() { method } else { format!("{}.{method}", class.replace('/', ".")) };
        let row = sink.frame(&name, &class_file(&class), frame.line, 0)?;
        self.locations.insert(frame, row);
        Ok(row)
    }

    fn labels(&mut self, thread: u64, sink: &mut Sink<'_>) -> Result<Vec<Label>, DecodeError> {
        if let Some(known) = self.threads.get(&thread) {
            return Ok(known.clone());
        }
        let name = self.chunk.pools.threads.get(&thread).map_or("", String::as_str);
        let labels: Vec<Label> = sink.label("thread", name)?.into_iter().collect();
        self.threads.insert(thread, labels.clone());
        Ok(labels)
    }
}

/// The file that a class is most likely from: that of its outermost class, in the folders of
/// its package. Empty where there is none: generated classes, native code.
fn class_file(class: &str) -> String {
    let class = class.replace('.', "/");
    let (package, name) = class.rsplit_once('/').unwrap_or(("", &class));
    // Names of native code have spaces, colons or a library's suffix.
    let is_name = |text: &str| text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '/' | '-'));
    let outer = name.split('$').next().unwrap_or("");
    if !outer.starts_with(|c: char| c.is_alphabetic() || c == '_') || !is_name(package) || !is_name(name) {
        return String::new();
    }
    let file = match outer.strip_suffix("Kt").filter(|facade| !facade.is_empty()) {
        Some(facade) => format!("{facade}.kt"),
        None if name.contains("$anonfun$") || name.ends_with('$') => format!("{outer}.scala"),
        None => format!("{outer}.java"),
    };
    if package.is_empty() { file } else { format!("{package}/{file}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_name_their_file() {
        for (class, file) in [
            ("com/example/Main", "com/example/Main.java"),
            ("com/example/Main$Inner$1", "com/example/Main.java"),
            ("com/example/Main$$Lambda$14", "com/example/Main.java"),
            ("com/example/ToolsKt", "com/example/Tools.kt"),
            ("com/example/Job$", "com/example/Job.scala"),
            ("Main", "Main.java"),
            ("", ""),
            ("libc.so.6", ""),
        ] {
            assert_eq!(class_file(class), file, "{class}");
        }
    }

    #[test]
    fn periods_have_units() {
        assert_eq!(duration("20 ms"), Some(20_000_000));
        assert_eq!(duration("10000000"), Some(10_000_000));
        assert_eq!(duration("everyChunk"), None);
        assert_eq!(duration("0 ns"), None);
    }
}
