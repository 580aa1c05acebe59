//! The end of a pprof file: references become rows, and what can't be right is said.

use std::sync::Arc;

use super::super::{Context, DecodeError};
use super::ids::Rows;
use super::{Raw, wire};
use crate::profile::{
    FuncId, Function, Label, LabelValue, Line, LineDetail, LineNo, LocId, MapId, Mapping, Profile, ProfileBuilder,
    StrId, ValueType,
};

pub(super) fn finish(mut raw: Raw, context: &Context<'_>) -> Result<Profile, DecodeError> {
    if raw.value_types.is_empty() {
        return Err(DecodeError::invalid("it names no value type, so its values mean nothing"));
    }
    if !raw.has_strings {
        return Err(DecodeError::invalid("it has no string table"));
    }
    let strings = Strings { count: raw.strings.len() };
    let mut builder = ProfileBuilder::new(super::FORMAT.name, Vec::new());
    builder.profile.strings = std::mem::take(&mut raw.strings);

    let value_types: Vec<ValueType> = raw
        .value_types
        .iter()
        .map(|value_type| strings.value_type(&builder, *value_type, "sample_type"))
        .collect::<Result<_, _>>()?;
    builder.set_value_types(value_types);
    header(&raw, strings, &mut builder)?;

    let is_function_only = has_one_line_per_function(&raw, &builder);
    let (mapping_rows, unusable_mappings) = Rows::new(raw.mappings.iter().map(|mapping| mapping.id));
    for mapping in std::mem::take(&mut raw.mappings) {
        builder.push_mapping(Mapping {
            memory_start: mapping.memory_start,
            memory_limit: mapping.memory_limit,
            file_offset: mapping.file_offset,
            file: strings.row(mapping.file, "Mapping.filename")?,
            build_id: strings.row(mapping.build_id, "Mapping.build_id")?,
        })?;
    }

    let (function_rows, unusable_functions) = Rows::new(raw.functions.iter().map(|function| function.id));
    push_functions(std::mem::take(&mut raw.functions), strings, &mut builder)?;
    context.cancel.check()?;

    let (location_rows, unusable_locations) = Rows::new(raw.location_ids.iter().copied());
    let dangling = push_locations(&mut raw, &mapping_rows, &function_rows, &mut builder)?;
    context.cancel.check()?;

    let missing_locations = raw.frame_ids.resolve(&mut raw.frames, &location_rows);
    let mismatched = push_samples(&mut raw, strings, &mut builder)?;

    if is_function_only {
        for line in &mut builder.profile.locations.lines {
            line.line = LineNo::UNKNOWN;
        }
        builder.meta().line_detail = LineDetail::FunctionOnly;
    }
    for (count, what) in [
        (mismatched, "samples were dropped: their number of values is not the number of value types"),
        (missing_locations, "frames refer to locations the file does not define; they count as unresolved"),
        (dangling.functions, "lines refer to functions the file does not define; they count as unresolved"),
        (dangling.mappings, "locations refer to binaries the file does not define"),
        (unusable_locations, "locations were ignored: their id is 0 or taken"),
        (unusable_functions, "functions were ignored: their id is 0 or taken"),
        (unusable_mappings, "binaries were ignored: their id is 0 or taken"),
        (raw.bad_utf8, "texts are not valid UTF-8; their broken bytes were replaced"),
    ] {
        if count > 0 {
            builder.note(format!("{count} {what}"));
        }
    }
    if builder.sample_count() == 0 {
        builder.note("the profile holds 0 samples");
    }
    Ok(builder.finish()?)
}

/// Checks indexes into the file's string table, whose rows are ours.
#[derive(Clone, Copy)]
struct Strings {
    count: usize,
}

impl Strings {
    fn row(self, index: i64, field: &str) -> Result<StrId, DecodeError> {
        match u32::try_from(index) {
            Ok(row) if (row as usize) < self.count => Ok(StrId(row)),
            _ => Err(DecodeError::invalid(format!(
                "{field} is string {index}, but the file has only {} strings",
                self.count
            ))),
        }
    }

    fn text(self, builder: &ProfileBuilder, index: i64, field: &str) -> Result<String, DecodeError> {
        Ok(builder.profile.text(self.row(index, field)?).to_owned())
    }

    fn value_type(
        self,
        builder: &ProfileBuilder,
        value_type: wire::ValueType,
        field: &str,
    ) -> Result<ValueType, DecodeError> {
        Ok(ValueType {
            kind: self.text(builder, value_type.kind, field)?,
            unit: self.text(builder, value_type.unit, field)?,
        })
    }
}

fn header(raw: &Raw, strings: Strings, builder: &mut ProfileBuilder) -> Result<(), DecodeError> {
    let default = strings.text(builder, raw.default_sample_type, "default_sample_type")?;
    let drop_frames = strings.text(builder, raw.drop_frames, "drop_frames")?;
    let keep_frames = strings.text(builder, raw.keep_frames, "keep_frames")?;
    let comments =
        raw.comments.iter().map(|&index| strings.text(builder, index, "comment")).collect::<Result<Vec<_>, _>>()?;
    let period_type = raw
        .period_type
        .map(|value_type| strings.value_type(builder, value_type, "period_type"))
        .transpose()?
        .filter(|value_type| !value_type.kind.is_empty() || !value_type.unit.is_empty());
    let default = builder.profile.value_types.iter().position(|value_type| value_type.kind == default);
    let meta = builder.meta();
    if let Some(default) = default {
        meta.default_value_type = default;
    }
    meta.time_ns = raw.time.filter(|&time| time != 0);
    meta.duration_ns = Some(raw.duration).filter(|&duration| duration > 0);
    meta.period = raw.period;
    meta.period_type = period_type;
    meta.drop_frames = drop_frames;
    meta.keep_frames = keep_frames;
    meta.comments = comments;
    Ok(())
}

fn push_functions(
    functions: Vec<wire::Function>,
    strings: Strings,
    builder: &mut ProfileBuilder,
) -> Result<(), DecodeError> {
    for function in functions {
        let path = strings.text(builder, function.file, "Function.filename")?;
        let file = builder.file(&path)?;
        builder.push_function(Function {
            name: strings.row(function.name, "Function.name")?,
            system_name: strings.row(function.system_name, "Function.system_name")?,
            file,
            start_line: LineNo::from_pprof(function.start_line, 0).0,
        })?;
    }
    Ok(())
}

/// References that led nowhere.
#[derive(Default)]
struct Dangling {
    functions: u64,
    mappings: u64,
}

fn push_locations(
    raw: &mut Raw,
    mapping_rows: &Rows,
    function_rows: &Rows,
    builder: &mut ProfileBuilder,
) -> Result<Dangling, DecodeError> {
    let mut dangling = Dangling::default();
    let raw_lines = std::mem::take(&mut raw.lines);
    let mut lines = Vec::new();
    let mut start = 0;
    for (row, &end) in raw.line_ends.iter().enumerate() {
        let mapping_id = raw.location_mappings[row];
        let mapping = MapId(mapping_rows.row(mapping_id));
        dangling.mappings += u64::from(mapping_id != 0 && mapping.is_none());
        lines.clear();
        for line in &raw_lines[start..end as usize] {
            let function = FuncId(function_rows.row(line.function));
            dangling.functions += u64::from(function.is_none());
            // A line of no function's file is a line of no file.
            let number = if function.is_none() { LineNo::UNKNOWN } else { line.line };
            lines.push(Line { function, line: number, column: line.column });
        }
        builder.push_location(mapping, raw.addresses[row], &lines)?;
        start = end as usize;
    }
    raw.location_mappings = Vec::new();
    raw.addresses = Vec::new();
    raw.line_ends = Vec::new();
    Ok(dangling)
}

/// Turns the rows of values into columns; returns how many samples had to be dropped.
fn push_samples(raw: &mut Raw, strings: Strings, builder: &mut ProfileBuilder) -> Result<u64, DecodeError> {
    let labels = raw.labels.iter().map(|label| resolve_label(label, strings)).collect::<Result<Vec<_>, _>>()?;
    raw.labels = Vec::new();
    let width = builder.profile.value_types.len();
    let count = raw.frame_ends.len();
    let is_regular = (1..=count).zip(&raw.value_ends).all(|(row, &end)| row * width == end as usize);
    let frames: Vec<LocId> = std::mem::take(&mut raw.frames).into_iter().map(LocId).collect();
    if is_regular {
        let samples = Arc::make_mut(&mut builder.profile.samples);
        samples.values =
            (0..width).map(|column| raw.values.iter().skip(column).step_by(width).copied().collect()).collect();
        raw.values = Vec::new();
        samples.frames = frames;
        samples.frame_ends = std::mem::take(&mut raw.frame_ends);
        samples.labels = labels;
        samples.label_ends = std::mem::take(&mut raw.label_ends);
        return Ok(0);
    }
    let mut dropped = 0;
    let range = |ends: &[u32], row: usize| {
        let start = if row == 0 { 0 } else { ends[row - 1] as usize };
        start..ends[row] as usize
    };
    for row in 0..count {
        let values = &raw.values[range(&raw.value_ends, row)];
        if values.len() == width {
            let stack = &frames[range(&raw.frame_ends, row)];
            builder.push_sample(stack, values, &labels[range(&raw.label_ends, row)])?;
        } else {
            dropped += 1;
        }
    }
    Ok(dropped)
}

fn resolve_label(label: &wire::Label, strings: Strings) -> Result<Label, DecodeError> {
    let key = strings.row(label.key, "Label.key")?;
    let value = if label.text == 0 {
        LabelValue::Number(label.number, strings.row(label.unit, "Label.num_unit")?)
    } else {
        LabelValue::Text(strings.row(label.text, "Label.str")?)
    };
    Ok(Label { key, value })
}

/// Whether the file has the marks of the Rust crate `pprof` (0.15): it keys locations by
/// function, so every sample of a function carries the line of the first one seen. No
/// mappings, no addresses, and locations and functions are one to one.
fn has_one_line_per_function(raw: &Raw, builder: &ProfileBuilder) -> bool {
    let types = &builder.profile.value_types;
    let is_its_types = types[..] == [ValueType::new("samples", "count"), ValueType::new("cpu", "nanoseconds")];
    let has_thread_label = raw.labels.iter().any(|label| {
        u32::try_from(label.key).is_ok_and(|key| {
            (key as usize) < builder.profile.strings.len() && builder.profile.text(StrId(key)) == "thread"
        })
    });
    let has_marks = is_its_types
        && has_thread_label
        && raw.mappings.is_empty()
        && !raw.location_ids.is_empty()
        && raw.lines.len() == raw.location_ids.len()
        && raw.functions.len() == raw.location_ids.len()
        && (1..).zip(&raw.line_ends).all(|(row, &end)| row == end)
        && raw.addresses.iter().all(|&address| address == 0)
        && raw.functions.iter().all(|function| function.start_line == 0);
    let mut seen = rustc_hash::FxHashSet::default();
    has_marks && raw.lines.iter().all(|line| seen.insert(line.function))
}
