//! pprof's protocol buffer in gzip (`profile.proto`).
//!
//! Rows become messages in the order of the tables, ids are row numbers. A frame of no known
//! location (row 0) becomes a location without address and lines, since others refuse files
//! with dangling references. All of it is written in one pass; only one message is in memory.

use std::io::{self, Write};

use super::interner::Interner;
use crate::decode::pprof::{field, wire};
use crate::profile::{LabelValue, LocId, MapId, Profile, ValueType};
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};

/// Writes a profile.
///
/// ```
/// use profiler_core::cancel::CancelFlag;
/// use profiler_core::decode::{Limits, decode};
/// use profiler_core::encode::pprof;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let profile = decode(&b"main;work 3\n"[..], &Limits::default(), &CancelFlag::new())?;
/// let mut bytes = Vec::new();
/// pprof::write(&profile, &mut bytes)?;
/// let again = decode(bytes.as_slice(), &Limits::default(), &CancelFlag::new())?;
/// assert_eq!(again.sum(0).total, 3);
/// # Ok(()) }
/// ```
pub fn write(profile: &Profile, to: impl Write) -> io::Result<()> {
    let mut to = GzEncoder::new(to, Compression::default());
    write_plain(profile, &mut to)?;
    to.finish().and_then(|mut to| to.flush())
}

/// Writes a profile without compressing it.
pub fn write_plain(profile: &Profile, to: impl Write) -> io::Result<()> {
    let mut out = Out { to, buffer: Vec::new(), strings: Interner::default() };
    let meta = profile.meta();
    // Row 0 is the empty text in both.
    out.strings.of("");

    for value_type in profile.value_types() {
        let message = out.value_type(value_type);
        out.message(field::SAMPLE_TYPE, &message)?;
    }
    let uses_nothing = samples(profile, &mut out)?;
    mappings(profile, &mut out)?;
    locations(profile, uses_nothing, &mut out)?;
    functions(profile, &mut out)?;

    for (number, text) in [(field::DROP_FRAMES, &meta.drop_frames), (field::KEEP_FRAMES, &meta.keep_frames)] {
        let index = out.strings.of(text);
        out.number(number, index)?;
    }
    out.number(field::TIME, meta.time_ns.unwrap_or(0))?;
    out.number(field::DURATION, meta.duration_ns.unwrap_or(0))?;
    if let Some(period_type) = &meta.period_type {
        let message = out.value_type(period_type);
        out.message(field::PERIOD_TYPE, &message)?;
    }
    out.number(field::PERIOD, meta.period)?;
    for comment in &meta.comments {
        let index = out.strings.of(comment);
        out.number(field::COMMENT, index)?;
    }
    if let Some(default) = profile.value_types().get(meta.default_value_type) {
        let index = out.strings.of(&default.kind);
        out.number(field::DEFAULT_SAMPLE_TYPE, index)?;
    }
    out.string_table()
}

struct Out<W> {
    to: W,
    buffer: Vec<u8>,
    strings: Interner,
}

impl<W: Write> Out<W> {
    fn message(&mut self, number: u32, message: &impl Message) -> io::Result<()> {
        self.buffer.clear();
        encode_key(number, WireType::LengthDelimited, &mut self.buffer);
        // A growing buffer takes any message.
        message.encode_length_delimited(&mut self.buffer).map_err(io::Error::other)?;
        self.to.write_all(&self.buffer)
    }

    /// A number of the top message; 0 is what is not there.
    fn number(&mut self, number: u32, value: i64) -> io::Result<()> {
        if value == 0 {
            return Ok(());
        }
        self.buffer.clear();
        encode_key(number, WireType::Varint, &mut self.buffer);
        encode_varint(value.cast_unsigned(), &mut self.buffer);
        self.to.write_all(&self.buffer)
    }

    fn value_type(&mut self, value_type: &ValueType) -> wire::ValueType {
        wire::ValueType { kind: self.strings.of(&value_type.kind), unit: self.strings.of(&value_type.unit) }
    }

    fn string_table(&mut self) -> io::Result<()> {
        for text in std::mem::take(&mut self.strings.in_order) {
            self.buffer.clear();
            encode_key(field::STRING, WireType::LengthDelimited, &mut self.buffer);
            encode_varint(text.len() as u64, &mut self.buffer);
            self.buffer.extend_from_slice(text.as_bytes());
            self.to.write_all(&self.buffer)?;
        }
        Ok(())
    }
}

/// What stands for row 0 of the locations: the number after the last.
fn location_id(profile: &Profile, id: LocId) -> u64 {
    if id.is_none() { profile.locations().len() as u64 } else { u64::from(id.0) }
}

/// Writes the samples; returns whether any of them has a frame of no known location.
fn samples(profile: &Profile, out: &mut Out<impl Write>) -> io::Result<bool> {
    let samples = profile.samples();
    let columns: Vec<&[i64]> = (0..profile.value_types().len()).map(|column| samples.values(column)).collect();
    let mut uses_nothing = false;
    let mut message = wire::Sample::default();
    for row in 0..samples.len() {
        let stack = samples.stack(row);
        uses_nothing |= stack.iter().any(|id| id.is_none());
        message.location_ids.clear();
        message.location_ids.extend(stack.iter().map(|&id| location_id(profile, id)));
        message.values.clear();
        message.values.extend(columns.iter().map(|column| column[row]));
        message.labels.clear();
        for label in samples.labels(row) {
            let mut written = wire::Label { key: out.strings.row(profile, label.key), ..wire::Label::default() };
            match label.value {
                LabelValue::Text(text) => written.text = out.strings.row(profile, text),
                LabelValue::Number(number, unit) => {
                    written.number = number;
                    written.unit = out.strings.row(profile, unit);
                }
            }
            message.labels.push(written);
        }
        out.message(field::SAMPLE, &message)?;
    }
    Ok(uses_nothing)
}

fn mappings(profile: &Profile, out: &mut Out<impl Write>) -> io::Result<()> {
    let mut messages = vec![wire::Mapping::default(); profile.mappings().len()];
    let locations = profile.locations();
    for id in locations.ids() {
        let message = &mut messages[locations.mapping(id).index()];
        let lines = locations.lines(id);
        message.has_functions |= !lines.is_empty();
        message.has_filenames |= lines.iter().any(|line| !profile.function(line.function).file.is_none());
        message.has_line_numbers |= lines.iter().any(|line| line.line.is_known());
        message.has_inline_frames |= lines.len() > 1;
    }
    for (row, (mapping, message)) in profile.mappings().iter().zip(&mut messages).enumerate().skip(1) {
        message.id = row as u64;
        message.memory_start = mapping.memory_start;
        message.memory_limit = mapping.memory_limit;
        message.file_offset = mapping.file_offset;
        message.file = out.strings.row(profile, mapping.file);
        message.build_id = out.strings.row(profile, mapping.build_id);
        out.message(field::MAPPING, message)?;
    }
    Ok(())
}

fn locations(profile: &Profile, with_nothing: bool, out: &mut Out<impl Write>) -> io::Result<()> {
    let locations = profile.locations();
    let mut message = wire::Location::default();
    for id in locations.ids() {
        message.id = location_id(profile, id);
        let mapping: MapId = locations.mapping(id);
        message.mapping_id = u64::from(mapping.0);
        message.address = locations.address(id);
        message.lines.clear();
        message.lines.extend(locations.lines(id).iter().map(|line| wire::Line {
            function: u64::from(line.function.0),
            line: i64::from(line.line.0),
            column: i64::from(line.column),
        }));
        out.message(field::LOCATION, &message)?;
    }
    if with_nothing {
        let message = wire::Location { id: location_id(profile, LocId::NONE), ..wire::Location::default() };
        out.message(field::LOCATION, &message)?;
    }
    Ok(())
}

fn functions(profile: &Profile, out: &mut Out<impl Write>) -> io::Result<()> {
    for (row, function) in profile.functions().iter().enumerate().skip(1) {
        let message = wire::Function {
            id: row as u64,
            name: out.strings.row(profile, function.name),
            system_name: out.strings.row(profile, function.system_name),
            file: {
                let path = profile.file(function.file).path;
                out.strings.row(profile, path)
            },
            start_line: i64::from(function.start_line.0),
        };
        out.message(field::FUNCTION, &message)?;
    }
    Ok(())
}
