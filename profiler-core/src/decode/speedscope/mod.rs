//! speedscope's JSON, which many profilers export.
//!
//! ```text
//! {"$schema": "https://www.speedscope.app/file-format-schema.json",
//!  "shared": {"frames": [{"name": "main", "file": "main.rs", "line": 3}]},
//!  "profiles": [{"type": "sampled", "name": "Thread 1", "unit": "seconds",
//!                "samples": [[0]], "weights": [0.01], …}]}
//! ```
//!
//! A file holds several profiles, commonly one per thread. Here they become one: each
//! sample has the name of its profile as the label `thread`, and there is one value type per
//! kind of unit. Times become whole nanoseconds per sample.
//!
//! A profile that contradicts itself is left out with a note, and the others are read; the
//! faults known from the field are in [`json`].

mod json;

use super::fraction::{self, Rounding};
use super::{Confidence, Context, DecodeError, DecodeErrorKind, Format, Input, text};
use crate::profile::{BuildError, Label, LabelValue, Line, LineNo, LocId, MapId, Profile, ProfileBuilder, ValueType};
use json::{File, Flaw, Frame, Part};
use serde_json::Number;

pub(super) const FORMAT: Format = Format { name: "speedscope", sniff, decode };

fn sniff(prefix: &[u8]) -> Confidence {
    let Some(content) = text::decode(prefix).filter(|content| content.trim_start().starts_with('{')) else {
        return Confidence::No;
    };
    let has = |word: &str| content.contains(word);
    if has("\"$schema\"") && has("speedscope") {
        return Confidence::Certain;
    }
    let has_frames = has("\"shared\"") && (has("\"frames\"") || has("\"profiles\""));
    // The frames may come after more profiles than there are here.
    let has_profiles = has("\"profiles\"") && has("\"unit\"") && (has("\"sampled\"") || has("\"evented\""));
    if has_frames || has_profiles { Confidence::Likely } else { Confidence::No }
}

/// What a unit of the format means.
struct Unit {
    value_type: ValueType,
    /// Nanoseconds of one unit, if it is one of time.
    ns: Option<f64>,
}

impl Unit {
    fn read(name: &str) -> Self {
        let ns = match name {
            "nanoseconds" => Some(1.0),
            "microseconds" => Some(1e3),
            "milliseconds" => Some(1e6),
            "seconds" => Some(1e9),
            _ => None,
        };
        let value_type = match name {
            _ if ns.is_some() => ValueType::new("time", "nanoseconds"),
            "bytes" => ValueType::new("space", "bytes"),
            "none" | "" => ValueType::new("weight", "count"),
            other => ValueType::new("weight", other),
        };
        Self { value_type, ns }
    }

    /// The value of a weight as a whole number; `None` when it is out of range.
    fn value(&self, weight: f64, rounding: &mut Rounding) -> Option<i64> {
        match self.ns {
            Some(ns) => fraction::nearest(weight * ns),
            None => rounding.nearest(weight),
        }
    }
}

/// A profile of the file that has passed all checks.
struct Accepted<'a> {
    /// Its place in the file.
    index: usize,
    part: Part<'a>,
    unit: Unit,
    value_type: usize,
}

fn decode(input: &mut Input<'_>, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let bytes = input.read_all()?;
    let all = text::decode(&bytes).ok_or_else(|| DecodeError::invalid("it is not text"))?;
    let file: File<'_> = serde_json::from_str(&all).map_err(|error| {
        if error.is_eof() {
            DecodeError::truncated(format!("its JSON ends in the middle, at line {}", error.line()))
        } else {
            DecodeError::invalid(format!("its JSON is not what it should be: {error}"))
        }
    })?;

    let mut notes = Vec::new();
    let mut value_types: Vec<ValueType> = Vec::new();
    let mut accepted = Vec::new();
    for (index, raw) in file.profiles.iter().enumerate() {
        context.cancel.check()?;
        match check(raw.get(), file.shared.frames.len()) {
            Ok((part, unit)) => {
                let known = value_types.iter().position(|known| *known == unit.value_type);
                let value_type = known.unwrap_or_else(|| {
                    value_types.push(unit.value_type.clone());
                    value_types.len() - 1
                });
                accepted.push(Accepted { index, part, unit, value_type });
            }
            Err(Flaw(reason)) => notes.push(format!("{} was left out: {reason}", describe(raw.get(), index))),
        }
    }
    if accepted.is_empty() {
        // Without a profile there's nothing to show, but an empty list is no fault.
        if let Some(note) = notes.first() {
            return Err(DecodeError::invalid(note.as_str()));
        }
        value_types.push(Unit::read("none").value_type);
    }

    let mut builder = ProfileBuilder::new(FORMAT.name, value_types);
    let active = file.active.as_ref().and_then(Number::as_u64).unwrap_or(0);
    let active = accepted.iter().find(|accepted| accepted.index as u64 == active);
    builder.meta().default_value_type = active.or(accepted.first()).map_or(0, |accepted| accepted.value_type);
    builder.meta().duration_ns = duration(&accepted);
    let frames = push_frames(&file.shared.frames, &mut builder)?;
    let mut rounding = Rounding::default();
    push_samples(&accepted, &frames, &mut builder, &mut rounding, context)?;

    notes.extend(accepted.iter().filter_map(|accepted| accepted.part.note()));
    notes.extend(rounding.note());
    for note in notes {
        builder.note(note);
    }
    if builder.sample_count() == 0 {
        builder.note("the profile holds 0 samples");
    }
    Ok(builder.finish()?)
}

/// Reads one profile and walks through it once, so that nothing of a broken one gets in.
fn check(raw: &str, frame_count: usize) -> Result<(Part<'_>, Unit), Flaw> {
    let part: Part<'_> = serde_json::from_str(raw).map_err(|error| Flaw(format!("it can't be read ({error})")))?;
    let unit = Unit::read(&part.unit);
    let mut ignored = Rounding::default();
    part.for_each_sample(frame_count, |_, weight| match unit.value(weight, &mut ignored) {
        Some(_) => Ok(()),
        None => Err(Flaw(format!("its weight {weight} is out of range"))),
    })?;
    Ok((part, unit))
}

/// What to call a profile of the file that may be damaged.
fn describe(raw: &str, index: usize) -> String {
    match json::name(raw) {
        Some(name) if !name.is_empty() => format!("the profile \"{name}\""),
        _ => format!("profile number {}", index + 1),
    }
}

/// From the first start to the last end of the profiles that are in time.
fn duration(accepted: &[Accepted<'_>]) -> Option<i64> {
    let spans = accepted.iter().filter_map(|accepted| {
        let (start, end) = accepted.part.span()?;
        let ns = accepted.unit.ns?;
        Some((start * ns, end * ns))
    });
    let (start, end) = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    fraction::nearest(end - start).filter(|&ns| ns > 0)
}

fn push_frames(frames: &[Frame<'_>], builder: &mut ProfileBuilder) -> Result<Vec<LocId>, BuildError> {
    let location = |frame: &Frame<'_>| {
        let function = builder.function(&frame.name, "", frame.file(), LineNo::UNKNOWN)?;
        let (line, column) = frame.position();
        builder.location(MapId::NONE, 0, &[Line { function, line, column }])
    };
    frames.iter().map(location).collect()
}

fn push_samples(
    accepted: &[Accepted<'_>],
    frames: &[LocId],
    builder: &mut ProfileBuilder,
    rounding: &mut Rounding,
    context: &Context<'_>,
) -> Result<(), DecodeError> {
    let thread = builder.string("thread")?;
    let mut values = vec![0; builder.profile.value_types.len()];
    let mut stack = Vec::new();
    let mut frame_count = 0;
    for Accepted { part, unit, value_type, .. } in accepted {
        let name = builder.string(&part.name)?;
        let label = Label { key: thread, value: LabelValue::Text(name) };
        let labels = if name.is_none() { &[][..] } else { &[label][..] };
        part.for_each_sample(frames.len(), |root_first, weight| {
            frame_count += root_first.len();
            if frame_count > context.limits.max_frames {
                let message = format!("it holds more than {} frames", context.limits.max_frames);
                return Err(DecodeError::new(DecodeErrorKind::Limit, message));
            }
            if builder.sample_count().is_multiple_of(4096) {
                context.cancel.check()?;
            }
            stack.clear();
            stack.extend(root_first.iter().rev().map(|&frame| frames[frame as usize]));
            // Out of range is impossible here: every weight has been tried.
            values[*value_type] = unit.value(weight, rounding).unwrap_or(0);
            Ok(builder.push_sample(&stack, &values, labels)?)
        })?;
        values[*value_type] = 0;
    }
    Ok(())
}
