//! Austin, a sampler for Python: its text, and its binary form MOJO ([`mojo`]), which is all
//! that its version 4 writes.
//!
//! ```text
//! # mode: wall
//! P28060;T0:28061;/srv/app.py:<module>:38;/srv/app.py:work:12 1623
//! ```
//!
//! Process, thread, frames with the executing line, root first, and a measurement:
//! microseconds, or bytes in the mode `memory`, or in the mode `full` time, whether the thread
//! was idle, and bytes, as `1623,0,-512`.

mod mojo;

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::sink::Sink;
use super::{Confidence, Context, DecodeError, DecodeErrorKind, Format, Input, text};
use crate::profile::{Label, LocId, Profile, ValueType};

pub(super) use mojo::FORMAT as MOJO;

pub(super) const FORMAT: Format = Format { name: "austin", sniff, decode };

fn sniff(prefix: &[u8]) -> Confidence {
    let Some(content) = text::decode(prefix) else { return Confidence::No };
    if content.starts_with("# austin:") {
        return Confidence::Certain;
    }
    let first = content.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#')).unwrap_or("");
    if Stack::read(first).is_some() { Confidence::Certain } else { Confidence::No }
}

/// What is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Wall,
    Cpu,
    Memory,
    Full,
}

impl Mode {
    fn read(name: &str) -> Self {
        match name {
            "cpu" => Self::Cpu,
            "memory" => Self::Memory,
            "full" => Self::Full,
            _ => Self::Wall,
        }
    }

    fn value_types(self) -> Vec<ValueType> {
        let (wall, cpu) = (ValueType::new("wall", "nanoseconds"), ValueType::new("cpu", "nanoseconds"));
        let memory = ValueType::new("memory", "bytes");
        match self {
            Self::Wall => vec![wall],
            Self::Cpu => vec![cpu],
            Self::Memory => vec![memory],
            Self::Full => vec![wall, cpu, memory],
        }
    }
}

/// One measurement of a stack, whichever the form.
#[derive(Clone, Copy, Debug, Default)]
struct Metrics {
    micros: i64,
    is_idle: bool,
    bytes: i64,
}

impl Metrics {
    fn values(self, mode: Mode) -> Vec<i64> {
        let ns = self.micros.saturating_mul(1000);
        match mode {
            Mode::Wall | Mode::Cpu => vec![ns],
            Mode::Memory => vec![self.bytes],
            Mode::Full => vec![ns, if self.is_idle { 0 } else { ns }, self.bytes],
        }
    }
}

/// What the head of a recording says, in either form.
fn set_meta(sink: &mut Sink<'_>, key: &str, value: &str) {
    let meta = sink.builder.meta();
    match key {
        "interval" => {
            if let Some(period) = value.parse::<i64>().ok().and_then(|micros| micros.checked_mul(1000)) {
                meta.period = period;
                meta.period_type = Some(ValueType::new("wall", "nanoseconds"));
            }
        }
        "duration" => meta.duration_ns = value.parse::<i64>().ok().and_then(|micros| micros.checked_mul(1000)),
        _ => {}
    }
}

fn labels(sink: &mut Sink<'_>, process: &str, thread: &str) -> Result<Vec<Label>, DecodeError> {
    let labels = [sink.label("process", process)?, sink.label("thread", thread)?];
    Ok(labels.into_iter().flatten().collect())
}

/// One line of the text.
#[derive(Debug, PartialEq)]
struct Stack<'a> {
    process: &'a str,
    thread: &'a str,
    frames: &'a str,
    metrics: &'a str,
}

impl<'a> Stack<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let numbered = |field: &'a str, letter: char| {
            field.strip_prefix(letter).filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let (stack, metrics) = line.trim_end().rsplit_once(' ')?;
        if !metrics.split(',').all(|number| number.parse::<i64>().is_ok()) {
            return None;
        }
        let (process, rest) = stack.split_once(';')?;
        let (thread, frames) = rest.split_once(';').unwrap_or((rest, ""));
        Some(Self { process: numbered(process, 'P')?, thread: numbered(thread, 'T')?, frames, metrics })
    }
}

/// Reads `file:function:line`; what is no such thing is a mark such as `:GC:`.
fn frame(text: &str) -> (&str, &str, i64) {
    let parts = text.rsplit_once(':').and_then(|(rest, line)| {
        let (file, name) = rest.rsplit_once(':')?;
        Some((name, file, line.parse().ok()?))
    });
    parts.unwrap_or((text.trim_matches(':'), "", 0))
}

fn decode(input: &mut Input<'_>, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let (bytes, cut) = input.read_available()?;
    let all = text::decode(&bytes).ok_or_else(|| DecodeError::invalid("it is not text"))?;
    let whole = if cut.is_some() { all.rsplit_once('\n').map_or("", |(lines, _)| lines) } else { &*all };
    let head = || whole.lines().filter_map(|line| line.strip_prefix("# ")?.split_once(": "));
    let mode = head().find(|(key, _)| *key == "mode").map_or(Mode::Wall, |(_, value)| Mode::read(value));
    let mut sink = Sink::new(FORMAT.name, mode.value_types(), context);
    sink.builder.meta().default_value_type = 0;
    for (key, value) in head() {
        set_meta(&mut sink, key, value);
    }
    let mut locations: FxHashMap<&str, LocId> = FxHashMap::default();
    let mut threads: FxHashMap<(&str, &str), Vec<Label>> = FxHashMap::default();
    let mut stack = Vec::new();
    let mut others = 0;
    for (number, line) in whole.lines().enumerate() {
        if number.is_multiple_of(4096) {
            context.cancel.check()?;
        }
        if line.trim().is_empty() || line.starts_with("# ") {
            continue;
        }
        let Some(Stack { process, thread, frames, metrics }) = Stack::read(line) else {
            others += 1;
            continue;
        };
        stack.clear();
        for text in frames.split(';').rev().filter(|text| !text.is_empty()) {
            let location = if let Some(&known) = locations.get(text) {
                known
            } else {
                let (name, file, line) = frame(text);
                let row = sink.frame(name, file, line, 0)?;
                locations.insert(text, row);
                row
            };
            stack.push(location);
        }
        if let Entry::Vacant(slot) = threads.entry((process, thread)) {
            let labels = labels(&mut sink, process, thread.rsplit(':').next().unwrap_or(thread))?;
            slot.insert(labels);
        }
        let mut numbers = metrics.split(',').map(|number| number.parse().unwrap_or(0));
        let first = numbers.next().unwrap_or(0);
        let metrics = match mode {
            Mode::Memory => Metrics { bytes: first, ..Metrics::default() },
            Mode::Wall | Mode::Cpu => Metrics { micros: first, ..Metrics::default() },
            Mode::Full => {
                Metrics { micros: first, is_idle: numbers.next().unwrap_or(0) != 0, bytes: numbers.next().unwrap_or(0) }
            }
        };
        sink.sample(&stack, &metrics.values(mode), &threads[&(process, thread)])?;
    }
    if others > 0 && sink.builder.sample_count() == 0 {
        return Err(DecodeError::new(DecodeErrorKind::Invalid, "none of its lines is a stack of Austin"));
    }
    sink.note_count(others, "lines are no stacks; they were left out");
    sink.note_cut(cut.as_ref());
    sink.finish()
}
