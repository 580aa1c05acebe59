//! From requests to profiles: one per kind of measurement, whatever the number of requests.

use rustc_hash::FxHashMap;

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::profiles::v1development::{Mapping as NewestMapping, ValueType as NewestValueType};

use super::messages::{Dictionary, Head};
use super::request::{self, Request, Row, Scalar, scalar, text};
use super::{Context, DecodeError, DecodeErrorKind, FORMAT, payload};
use crate::decode::sink::Sink;
use crate::profile::{FuncId, Label, LabelValue, Line, LineNo, LocId, MapId, Mapping, Profile, ValueType};

/// Most kinds of measurement in one input.
const MAX_PARTS: usize = 64;

/// Profiles being collected.
pub(super) struct Parts<'a> {
    context: &'a Context<'a>,
    kinds: Vec<Part<'a>>,
    /// Profiles that came whole, in another format.
    payloads: Vec<Profile>,
    notes: Vec<String>,
}

/// What must be equal for samples to be of one profile.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kind {
    types: Vec<ValueType>,
    period_type: Option<ValueType>,
    period: i64,
}

struct Part<'a> {
    kind: Kind,
    sink: Sink<'a>,
    start: u64,
    end: u64,
    missing: Missing,
}

/// References that led nowhere.
#[derive(Default)]
struct Missing {
    stacks: u64,
    locations: u64,
    attributes: u64,
}

/// The samples of one profile of a request.
#[derive(Default)]
struct Rows {
    stacks: Vec<(i32, i32)>,
    attributes: Vec<i32>,
    attribute_ends: Vec<usize>,
    values: Vec<i64>,
}

/// Profiles of a request that have the same samples and differ in what they measure.
struct Group {
    heads: Vec<Head>,
    rows: Rows,
    /// One column per value type.
    columns: Vec<Vec<i64>>,
    types: Vec<ValueType>,
}

/// What is known about the rows of a request's tables in one part.
#[derive(Default)]
struct Known {
    locations: FxHashMap<i32, LocId>,
    mappings: FxHashMap<i32, MapId>,
    labels: FxHashMap<i32, Option<Label>>,
}

impl<'a> Parts<'a> {
    pub(super) fn new(context: &'a Context<'a>) -> Self {
        Self { context, kinds: Vec::new(), payloads: Vec::new(), notes: Vec::new() }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        let request = Request::read(bytes)?;
        let mut known: Vec<Known> = Vec::new();
        for resource in &request.resources {
            for scope in &resource.scopes {
                self.context.cancel.check()?;
                let default = default_type(&scope.attributes, &request.dictionary);
                for group in self.groups(&request, &scope.profiles)? {
                    self.add_group(&request, &resource.attributes, &group, default.as_deref(), &mut known)?;
                }
            }
        }
        Ok(())
    }

    /// Profiles of one scope, those side by side that a profile of several value types was
    /// taken apart into put together again.
    fn groups(&mut self, request: &Request<'_>, profiles: &[&[u8]]) -> Result<Vec<Group>, DecodeError> {
        let mut groups: Vec<Group> = Vec::new();
        // A profile that was taken apart may have its original in every part.
        let mut original: Vec<u8> = Vec::new();
        for profile in profiles {
            let mut head = request::head(profile, request.layout)?;
            let mut types: Vec<ValueType> =
                head.types.iter().map(|kind| value_type(*kind, &request.dictionary)).collect();
            if types.is_empty() {
                types.push(ValueType::new("samples", "count"));
            }
            let mut rows = Rows::default();
            let width = types.len();
            request::for_each_sample(profile, request.layout, width, |row| {
                rows.push(row);
                Ok(())
            })?;
            if !head.payload.is_empty() && !has_lines(&rows, &head, &request.dictionary) {
                if head.payload == original {
                    continue;
                }
                match payload::decode(&head.payload_format, &head.payload, self.context) {
                    Ok(Some(profile)) => {
                        self.payloads.push(profile);
                        original = head.payload;
                        continue;
                    }
                    Ok(None) => {}
                    Err(error) if error.kind() == DecodeErrorKind::Cancelled => return Err(error),
                    Err(error) => self.notes.push(format!("the original profile inside can't be read: {error}")),
                }
            }
            head.payload = Vec::new();
            let columns = (0..width).map(|column| rows.values.iter().skip(column).step_by(width).copied().collect());
            let columns: Vec<Vec<i64>> = columns.collect();
            rows.values = Vec::new();
            match groups.last_mut() {
                Some(last) if last.fits(&head, &rows, &types) => {
                    last.heads.push(head);
                    last.columns.extend(columns);
                    last.types.extend(types);
                }
                _ => groups.push(Group { heads: vec![head], rows, columns, types }),
            }
        }
        Ok(groups)
    }

    fn add_group(
        &mut self,
        request: &Request<'_>,
        resource: &[KeyValue],
        group: &Group,
        default: Option<&str>,
        known: &mut Vec<Known>,
    ) -> Result<(), DecodeError> {
        let dictionary = &request.dictionary;
        let head = &group.heads[0];
        let period_type = head
            .period_type
            .map(|kind| value_type(kind, dictionary))
            .filter(|kind| !kind.kind.is_empty() || !kind.unit.is_empty());
        let kind = Kind { types: group.types.clone(), period_type, period: head.period };
        let index = self.part(kind, head.default_type)?;
        known.resize_with(self.kinds.len().max(known.len()), Known::default);
        let (part, known) = (&mut self.kinds[index], &mut known[index]);
        if let Some(default) = default.and_then(|name| part.kind.types.iter().position(|kind| kind.kind == name)) {
            part.sink.builder.meta().default_value_type = default;
        }
        part.extend_time(head);
        let fixed = part.resource_labels(resource, dictionary)?;
        let mut labels = Vec::new();
        let mut stack = Vec::new();
        let mut values = Vec::new();
        for (row, &(start, length)) in group.rows.stacks.iter().enumerate() {
            values.clear();
            values.extend(group.columns.iter().map(|column| column[row]));
            if values.iter().all(|&value| value == 0) {
                continue;
            }
            labels.clear();
            labels.extend_from_slice(&fixed);
            for &attribute in group.rows.attributes(row) {
                labels.extend(part.label(attribute, dictionary, known)?);
            }
            stack.clear();
            for &location in indices(start, length, head, dictionary).unwrap_or_else(|| {
                part.missing.stacks += 1;
                &[]
            }) {
                stack.push(part.location(location, dictionary, known)?);
            }
            part.sink.sample(&stack, &values, &labels)?;
        }
        Ok(())
    }

    fn part(&mut self, kind: Kind, default_type: usize) -> Result<usize, DecodeError> {
        if let Some(index) = self.kinds.iter().position(|part| part.kind == kind) {
            return Ok(index);
        }
        if self.kinds.len() == MAX_PARTS {
            let message = format!("it measures more than {MAX_PARTS} different things");
            return Err(DecodeError::new(DecodeErrorKind::Limit, message));
        }
        let mut sink = Sink::new(FORMAT.name, kind.types.clone(), self.context);
        let meta = sink.builder.meta();
        meta.period = kind.period;
        meta.period_type.clone_from(&kind.period_type);
        if (1..kind.types.len()).contains(&default_type) {
            meta.default_value_type = default_type;
        }
        self.kinds.push(Part { kind, sink, start: u64::MAX, end: 0, missing: Missing::default() });
        Ok(self.kinds.len() - 1)
    }

    /// The profiles, each of one kind.
    pub(super) fn finish(self) -> Result<Vec<Profile>, DecodeError> {
        let Self { kinds, mut payloads, notes, .. } = self;
        let mut profiles = Vec::new();
        for mut part in kinds {
            for (count, what) in [
                (part.missing.stacks, "samples refer to stacks that are not there; they have no frames"),
                (part.missing.locations, "frames refer to locations that are not there; they count as unresolved"),
                (part.missing.attributes, "attributes are not there; they were left out"),
            ] {
                part.sink.note_count(count, what);
            }
            if part.start <= part.end && part.start != 0 {
                let meta = part.sink.builder.meta();
                meta.time_ns = i64::try_from(part.start).ok();
                meta.duration_ns = i64::try_from(part.end - part.start).ok().filter(|&duration| duration > 0);
            }
            profiles.push(part.sink.finish()?);
        }
        profiles.append(&mut payloads);
        if let Some(first) = profiles.first_mut() {
            first.notes.extend(notes);
        }
        Ok(profiles)
    }
}

impl Rows {
    fn push(&mut self, row: &Row) {
        self.stacks.push((row.stack, row.length));
        self.attributes.extend_from_slice(&row.attributes);
        self.attribute_ends.push(self.attributes.len());
        self.values.extend_from_slice(&row.values);
    }

    fn attributes(&self, row: usize) -> &[i32] {
        let start = row.checked_sub(1).map_or(0, |before| self.attribute_ends[before]);
        &self.attributes[start..self.attribute_ends[row]]
    }
}

impl Group {
    /// Whether a profile has the very samples of this group.
    fn fits(&self, head: &Head, rows: &Rows, types: &[ValueType]) -> bool {
        let first = &self.heads[0];
        first.time == head.time
            && first.duration == head.duration
            && first.location_indices == head.location_indices
            && first.period == head.period
            && first.period_type == head.period_type
            && !rows.stacks.is_empty()
            && self.rows.stacks == rows.stacks
            && self.rows.attribute_ends == rows.attribute_ends
            && self.rows.attributes == rows.attributes
            && !types.iter().any(|kind| self.types.contains(kind))
    }
}

impl Part<'_> {
    fn extend_time(&mut self, head: &Head) {
        if head.time != 0 {
            self.start = self.start.min(head.time);
            self.end = self.end.max(head.time.saturating_add(head.duration));
        }
    }

    fn resource_labels(&mut self, attributes: &[KeyValue], dictionary: &Dictionary) -> Result<Vec<Label>, DecodeError> {
        let mut labels = Vec::new();
        for attribute in attributes {
            let key = request::key(attribute, &dictionary.strings);
            if is_private(&key) {
                continue;
            }
            if let Some(value) = scalar(attribute.value.as_ref(), &dictionary.strings) {
                labels.push(self.new_label(&key, &value, "")?);
            }
        }
        Ok(labels)
    }

    fn new_label(&mut self, key: &str, value: &Scalar, unit: &str) -> Result<Label, DecodeError> {
        let builder = &mut self.sink.builder;
        let key = builder.string(key)?;
        let value = match value {
            Scalar::Text(text) => LabelValue::Text(builder.string(text)?),
            Scalar::Number(number) => LabelValue::Number(*number, builder.string(unit)?),
        };
        Ok(Label { key, value })
    }

    fn label(&mut self, index: i32, dictionary: &Dictionary, known: &mut Known) -> Result<Option<Label>, DecodeError> {
        if let Some(&label) = known.labels.get(&index) {
            return Ok(label);
        }
        let label = match row(&dictionary.attributes, index) {
            _ if index == 0 => None,
            None => {
                self.missing.attributes += 1;
                None
            }
            Some(attribute) => {
                let key = text(&dictionary.strings, attribute.key_strindex);
                match scalar(attribute.value.as_ref(), &dictionary.strings) {
                    Some(value) if !key.is_empty() && !is_private(&key) => {
                        Some(self.new_label(&key, &value, &text(&dictionary.strings, attribute.unit_strindex))?)
                    }
                    _ => None,
                }
            }
        };
        known.labels.insert(index, label);
        Ok(label)
    }

    fn location(&mut self, index: i32, dictionary: &Dictionary, known: &mut Known) -> Result<LocId, DecodeError> {
        if let Some(&location) = known.locations.get(&index) {
            return Ok(location);
        }
        let location = match row(&dictionary.locations, index) {
            None => {
                self.missing.locations += 1;
                return Ok(LocId::NONE);
            }
            Some(location) => {
                let mapping = self.mapping(location.mapping_index, dictionary, known)?;
                let mut lines = Vec::with_capacity(location.lines.len());
                for line in &location.lines {
                    let function = self.function(line.function_index, dictionary)?;
                    let (line, column) = LineNo::from_pprof(line.line, line.column);
                    let line = if function.is_none() { LineNo::UNKNOWN } else { line };
                    lines.push(Line { function, line, column });
                }
                self.sink.builder.location(mapping, location.address, &lines)?
            }
        };
        known.locations.insert(index, location);
        Ok(location)
    }

    fn function(&mut self, index: i32, dictionary: &Dictionary) -> Result<FuncId, DecodeError> {
        let Some(function) = row(&dictionary.functions, index).filter(|_| index != 0) else { return Ok(FuncId::NONE) };
        let text = |index| text(&dictionary.strings, index);
        Ok(self.sink.builder.function(
            &text(function.name_strindex),
            &text(function.system_name_strindex),
            &text(function.filename_strindex),
            LineNo::from_pprof(function.start_line, 0).0,
        )?)
    }

    fn mapping(&mut self, index: i32, dictionary: &Dictionary, known: &mut Known) -> Result<MapId, DecodeError> {
        if let Some(&mapping) = known.mappings.get(&index) {
            return Ok(mapping);
        }
        let mapping = match row(&dictionary.mappings, index) {
            Some(mapping) if *mapping != NewestMapping::default() => {
                let build_id = build_id(&mapping.attribute_indices, dictionary);
                let builder = &mut self.sink.builder;
                let row = Mapping {
                    memory_start: mapping.memory_start,
                    memory_limit: mapping.memory_limit,
                    file_offset: mapping.file_offset,
                    file: builder.string(&text(&dictionary.strings, mapping.filename_strindex))?,
                    build_id: builder.string(&build_id)?,
                };
                // Every request has the table again.
                match builder.profile.mappings.iter().position(|known| *known == row) {
                    Some(at) => MapId(u32::try_from(at).unwrap_or(0)),
                    None => builder.push_mapping(row)?,
                }
            }
            _ => MapId::NONE,
        };
        known.mappings.insert(index, mapping);
        Ok(mapping)
    }
}

/// The id a binary is found by: that of its linker, else that of Go, else the hash of its head
/// and tail, which says so.
fn build_id(attributes: &[i32], dictionary: &Dictionary) -> String {
    let find = |wanted: &str| {
        attributes.iter().find_map(|&index| {
            let attribute = row(&dictionary.attributes, index)?;
            if text(&dictionary.strings, attribute.key_strindex) != wanted {
                return None;
            }
            match scalar(attribute.value.as_ref(), &dictionary.strings)? {
                Scalar::Text(text) if !text.is_empty() => Some(text),
                _ => None,
            }
        })
    };
    find("process.executable.build_id.gnu")
        .or_else(|| find("process.executable.build_id.go"))
        .or_else(|| Some(format!("htlhash:{}", find("process.executable.build_id.htlhash")?)))
        .unwrap_or_default()
}

/// Attributes that may hold secrets, and say nothing about where time goes.
fn is_private(key: &str) -> bool {
    key.starts_with("process.environment_variable") || key.starts_with("process.command") || key.starts_with("pprof.")
}

fn default_type(scope: &[KeyValue], dictionary: &Dictionary) -> Option<String> {
    let attribute = scope
        .iter()
        .find(|attribute| request::key(attribute, &dictionary.strings) == "pprof.scope.default_sample_type")?;
    match scalar(attribute.value.as_ref(), &dictionary.strings)? {
        Scalar::Text(text) => Some(text),
        Scalar::Number(_) => None,
    }
}

fn value_type(kind: NewestValueType, dictionary: &Dictionary) -> ValueType {
    ValueType::new(text(&dictionary.strings, kind.type_strindex), text(&dictionary.strings, kind.unit_strindex))
}

fn row<T>(table: &[T], index: i32) -> Option<&T> {
    table.get(usize::try_from(index).ok()?)
}

/// The locations of a stack, leaf first; `None` when there is no such stack.
fn indices<'d>(start: i32, length: i32, head: &'d Head, dictionary: &'d Dictionary) -> Option<&'d [i32]> {
    if length == 0 {
        return match row(&dictionary.stacks, start) {
            Some(stack) => Some(&stack.location_indices),
            // An empty stack needs no table.
            None if start == 0 => Some(&[]),
            None => None,
        };
    }
    let start = usize::try_from(start).ok()?;
    head.location_indices.get(start..start.checked_add(usize::try_from(length).ok()?)?)
}

/// Whether any sample has a frame with a line.
fn has_lines(rows: &Rows, head: &Head, dictionary: &Dictionary) -> bool {
    rows.stacks.iter().any(|&(start, length)| {
        indices(start, length, head, dictionary).unwrap_or(&[]).iter().any(|&location| {
            row(&dictionary.locations, location).is_some_and(|location| location.lines.iter().any(|line| line.line > 0))
        })
    })
}
