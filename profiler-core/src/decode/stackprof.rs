//! Ruby's stackprof, as JSON.
//!
//! ```text
//! {"mode": "cpu", "interval": 1000, "samples": 489,
//!  "frames": {"42": {"name": "Object#a", "file": "a.rb", "line": 4, "total_samples": 410, "samples": 0,
//!                    "lines": {"5": [410, 0]}}},
//!  "raw": [length, frame, …, count], "raw_lines": […]}
//! ```
//!
//! Where lines of whole stacks are recorded (`raw_lines`) these are the samples. Otherwise
//! every frame says for each line how many samples pass and how many end there, which is what
//! is wanted, though without stacks.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Deserialize;

use super::json;
use super::sink::Sink;
use super::{Confidence, Context, DecodeError, Format, Input, text};
use crate::profile::{FuncId, Line, LineDetail, LineNo, LocId, MapId, Profile, ValueType};

pub(super) const FORMAT: Format = Format { name: "stackprof", sniff, decode };

fn sniff(prefix: &[u8]) -> Confidence {
    let Some(content) = json::beginning(prefix, &['{']) else { return Confidence::No };
    let has = |word: &str| content.contains(word);
    let has_head = has("\"mode\"") && has("\"interval\"") && has("\"samples\"");
    if has_head && (has("\"gc_samples\"") || has("\"missed_samples\"") || has("\"total_samples\"")) {
        Confidence::Certain
    } else {
        Confidence::No
    }
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    interval: f64,
    #[serde(default)]
    missed_samples: u64,
    #[serde(borrow)]
    frames: BTreeMap<Cow<'a, str>, Frame<'a>>,
    #[serde(default)]
    raw: Vec<u64>,
    #[serde(default)]
    raw_lines: Vec<u64>,
}

/// A word; old versions wrote a number.
#[derive(Default, Deserialize)]
#[serde(untagged)]
enum Mode {
    Word(String),
    Other(serde::de::IgnoredAny),
    #[serde(skip)]
    #[default]
    None,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    file: Option<Cow<'a, str>>,
    line: Option<i64>,
    #[serde(default)]
    total_samples: i64,
    #[serde(default)]
    samples: i64,
    #[serde(default)]
    lines: BTreeMap<u32, Counts>,
}

/// What passes and what ends; one number where both are the same.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Counts {
    Both(i64, i64),
    One(i64),
}

impl Counts {
    fn total_and_own(self) -> (i64, i64) {
        match self {
            Self::Both(total, own) => (total, own),
            Self::One(own) => (own, own),
        }
    }
}

fn decode(input: &mut Input<'_>, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let bytes = input.read_all()?;
    let all = text::decode(&bytes).ok_or_else(|| DecodeError::invalid("it is not text"))?;
    let file: File<'_> = json::parse(&all)?;
    let mut sink = Sink::new(FORMAT.name, vec![ValueType::new("samples", "count")], context);
    let mode = match &file.mode {
        Mode::Word(word) => word,
        Mode::Other(_) | Mode::None => "",
    };
    let period = super::fraction::nearest(file.interval).filter(|&period| period > 0).unwrap_or(0);
    let meta = sink.builder.meta();
    match mode {
        // Every so many objects one is counted.
        "object" => {
            meta.period = period;
            meta.period_type = Some(ValueType::new("objects", "count"));
        }
        "custom" => {}
        _ => {
            meta.period = period.saturating_mul(1000);
            let kind = if mode == "wall" { "wall" } else { "cpu" };
            meta.period_type = Some(ValueType::new(kind, "nanoseconds"));
        }
    }
    let mut functions = FxHashMap::default();
    for (id, frame) in &file.frames {
        let start = LineNo::from_pprof(frame.line.unwrap_or(0), 0).0;
        let name = sink.builder.function(&frame.name, "", frame.file.as_deref().unwrap_or(""), start)?;
        functions.insert(id.parse::<u64>().unwrap_or(u64::MAX), name);
    }
    if !file.raw.is_empty() && file.raw.len() == file.raw_lines.len() {
        stacks(&file, &functions, &mut sink)?;
    } else {
        frames(&file, &functions, &mut sink)?;
    }
    sink.note_count(file.missed_samples, "samples were missed by the recorder");
    sink.finish()
}

fn place(function: FuncId, line: i64, sink: &mut Sink<'_>) -> Result<LocId, DecodeError> {
    let line = Line { function, line: LineNo::from_pprof(line, 0).0, column: 0 };
    Ok(sink.builder.location(MapId::NONE, 0, &[line])?)
}

/// Whole stacks with their lines, root first, each behind its length and before its count.
fn stacks(file: &File<'_>, functions: &FxHashMap<u64, FuncId>, sink: &mut Sink<'_>) -> Result<(), DecodeError> {
    let damaged = || DecodeError::invalid("its stacks are damaged");
    let mut at = 0;
    let mut stack = Vec::new();
    while at < file.raw.len() {
        let length = usize::try_from(file.raw[at]).map_err(|_| damaged())?;
        let end = at.checked_add(length).and_then(|end| end.checked_add(1)).ok_or_else(damaged)?;
        let frames = file.raw.get(at + 1..end).ok_or_else(damaged)?;
        let lines = file.raw_lines.get(at + 1..end).ok_or_else(damaged)?;
        let count = *file.raw.get(end).ok_or_else(damaged)?;
        stack.clear();
        for (id, &line) in frames.iter().zip(lines).rev() {
            let function = functions.get(id).copied().unwrap_or_default();
            stack.push(place(function, i64::try_from(line).unwrap_or(0), sink)?);
        }
        sink.sample(&stack, &[i64::try_from(count).map_err(|_| damaged())?], &[])?;
        at = end + 1;
    }
    Ok(())
}

/// What each frame says of itself.
fn frames(file: &File<'_>, functions: &FxHashMap<u64, FuncId>, sink: &mut Sink<'_>) -> Result<(), DecodeError> {
    if file.frames.values().all(|frame| frame.lines.is_empty()) {
        sink.builder.meta().line_detail = LineDetail::FunctionOnly;
    }
    for (id, frame) in &file.frames {
        let function = functions.get(&id.parse().unwrap_or(u64::MAX)).copied().unwrap_or_default();
        let whole = place(function, 0, sink)?;
        let (mut passing, mut ending) = (0i64, 0i64);
        for (&line, &counts) in &frame.lines {
            let (total, own) = counts.total_and_own();
            let location = place(function, line.into(), sink)?;
            sink.sample(&[location], &[own], &[])?;
            let calls = total.saturating_sub(own);
            if calls != 0 {
                sink.builder.push_call(location, LocId::NONE, &[calls])?;
            }
            passing = passing.saturating_add(total);
            ending = ending.saturating_add(own);
        }
        // Samples without a line; and a sample that passes two lines is one of the function.
        let own = frame.samples.saturating_sub(ending);
        sink.sample(&[whole], &[own], &[])?;
        let rest = frame.total_samples.saturating_sub(passing).saturating_sub(own);
        if rest != 0 {
            sink.builder.push_call(whole, LocId::NONE, &[rest])?;
        }
    }
    Ok(())
}
