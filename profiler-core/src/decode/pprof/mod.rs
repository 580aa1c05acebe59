//! pprof's protocol buffer (`profile.proto`, package `perftools.profiles`).
//!
//! The generated structs of the whole message would take several times the memory of the
//! profile, so only the small messages are structs ([`wire`]); the top message is read
//! field by field, each row goes straight into the profile's columns, and nothing waits for
//! the whole file. Fields may come in any order: everything that refers to something else
//! is kept as the file's number and resolved at the end ([`finish`]).
//!
//! How odd files are read:
//! * the `has_…` flags of mappings are ignored: Go's own profiles set them wrong;
//! * a mapping that isn't there is no mapping, a location that isn't there an unresolved
//!   frame, a line without function a nameless one; all are counted in a note;
//! * a sample whose number of values is not the number of value types is dropped, since
//!   there's no telling what its values are;
//! * a string that isn't there, or a second profile behind the first, is an error.

mod finish;
mod ids;
pub(crate) mod wire;

use prost::Message;
use prost::bytes::Buf;
use prost::encoding::{WireType, decode_key, decode_varint};

use super::{Confidence, Context, DecodeError, DecodeErrorKind, Format, Input};
use crate::profile::{LineNo, Profile, Strings};
use ids::RawIds;

pub(super) const FORMAT: Format = Format { name: "pprof", sniff, decode };

/// Field numbers of the top message.
pub(crate) mod field {
    pub(crate) const SAMPLE_TYPE: u32 = 1;
    pub(crate) const SAMPLE: u32 = 2;
    pub(crate) const MAPPING: u32 = 3;
    pub(crate) const LOCATION: u32 = 4;
    pub(crate) const FUNCTION: u32 = 5;
    pub(crate) const STRING: u32 = 6;
    pub(crate) const DROP_FRAMES: u32 = 7;
    pub(crate) const KEEP_FRAMES: u32 = 8;
    pub(crate) const TIME: u32 = 9;
    pub(crate) const DURATION: u32 = 10;
    pub(crate) const PERIOD_TYPE: u32 = 11;
    pub(crate) const PERIOD: u32 = 12;
    pub(crate) const COMMENT: u32 = 13;
    pub(crate) const DEFAULT_SAMPLE_TYPE: u32 = 14;

    pub(crate) fn name(number: u32) -> &'static str {
        match number {
            SAMPLE_TYPE => "sample type",
            SAMPLE => "sample",
            MAPPING => "mapping",
            LOCATION => "location",
            FUNCTION => "function",
            STRING => "string table",
            PERIOD_TYPE => "period type",
            _ => "header",
        }
    }
}

/// Everything read so far, with references as the file has them.
#[derive(Default)]
struct Raw {
    value_types: Vec<wire::ValueType>,
    frames: Vec<u32>,
    frame_ids: RawIds,
    frame_ends: Vec<u32>,
    values: Vec<i64>,
    value_ends: Vec<u32>,
    labels: Vec<wire::Label>,
    label_ends: Vec<u32>,
    mappings: Vec<wire::Mapping>,
    location_ids: Vec<u64>,
    location_mappings: Vec<u64>,
    addresses: Vec<u64>,
    line_ends: Vec<u32>,
    lines: Vec<RawLine>,
    functions: Vec<wire::Function>,
    strings: Strings,
    has_strings: bool,
    /// A sample type came after the last string.
    types_since_string: bool,
    bad_utf8: u64,
    drop_frames: i64,
    keep_frames: i64,
    time: Option<i64>,
    duration: i64,
    period_type: Option<wire::ValueType>,
    period: i64,
    comments: Vec<i64>,
    default_sample_type: i64,
}

#[derive(Clone, Copy)]
struct RawLine {
    function: u64,
    line: LineNo,
    column: u32,
}

/// Nothing in the first bytes contradicts a pprof message: known fields of the right wire
/// type, and value types that are value types.
fn sniff(prefix: &[u8]) -> Confidence {
    let mut rest = prefix;
    let (mut known, mut unknown, mut has_own_fields) = (0u32, 0u32, false);
    while !rest.is_empty() {
        let Ok((number, wire_type)) = decode_key(&mut rest) else { break };
        let length = match wire_type {
            WireType::Varint | WireType::LengthDelimited => {
                let Ok(value) = decode_varint(&mut rest) else { break };
                if wire_type == WireType::Varint { 0 } else { usize::try_from(value).unwrap_or(usize::MAX) }
            }
            WireType::ThirtyTwoBit => 4,
            WireType::SixtyFourBit => 8,
            WireType::StartGroup | WireType::EndGroup => return Confidence::No,
        };
        let Some(body) = rest.get(..length) else { break };
        let is_right = match number {
            field::SAMPLE_TYPE => wire_type == WireType::LengthDelimited && wire::is_value_type(body),
            2..=6 | field::PERIOD_TYPE => wire_type == WireType::LengthDelimited,
            field::COMMENT => matches!(wire_type, WireType::Varint | WireType::LengthDelimited),
            7..=15 => wire_type == WireType::Varint,
            // A field of a later version of the format.
            _ => {
                unknown += 1;
                rest.advance(length);
                continue;
            }
        };
        if !is_right {
            return Confidence::No;
        }
        known += 1;
        // OTLP profiles start alike, but have the fields 1 and 2 only.
        has_own_fields |= number > field::SAMPLE;
        rest.advance(length);
    }
    if known <= unknown {
        Confidence::No
    } else if known > 1 && has_own_fields {
        Confidence::Likely
    } else {
        Confidence::Possible
    }
}

/// A key and a length are varints of at most 10 bytes each.
const HEADER: usize = 20;

fn decode(input: &mut Input<'_>, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let mut raw = Raw::default();
    let mut sample = wire::Sample::default();
    let mut location = wire::Location::default();
    loop {
        let offset = input.offset();
        let available = input.ensure(HEADER)?;
        if available.is_empty() {
            break;
        }
        let mut rest = available;
        let (number, wire_type) = decode_key(&mut rest).map_err(|_| bad_field(offset, &raw))?;
        let number_or_length = match wire_type {
            WireType::Varint | WireType::LengthDelimited => {
                decode_varint(&mut rest).map_err(|_| bad_field(offset, &raw))?
            }
            WireType::ThirtyTwoBit => 4,
            WireType::SixtyFourBit => 8,
            WireType::StartGroup | WireType::EndGroup => return Err(bad_field(offset, &raw)),
        };
        let header = available.len() - rest.len();
        input.consume(header);
        if wire_type == WireType::Varint {
            raw.scalar(number, number_or_length.cast_signed())?;
            continue;
        }
        let length = usize::try_from(number_or_length).unwrap_or(usize::MAX);
        let Some(body) = input.ensure(length)?.get(..length) else {
            return Err(DecodeError::truncated(format!(
                "it ends inside a field ({}), at byte {}; samples before it: {}",
                field::name(number),
                input.offset(),
                raw.frame_ends.len(),
            )));
        };
        if wire_type == WireType::LengthDelimited {
            raw.message(number, body, &mut sample, &mut location, context).map_err(|error| match error {
                FieldError::Wire => DecodeError::invalid(format!(
                    "a {} near byte {} is no valid message",
                    field::name(number),
                    input.offset()
                )),
                FieldError::Decode(error) => error,
            })?;
        }
        input.consume(length);
    }
    finish::finish(raw, context)
}

fn bad_field(offset: u64, raw: &Raw) -> DecodeError {
    DecodeError::invalid(format!(
        "the bytes at {} are no field of a pprof message; samples before them: {}",
        offset,
        raw.frame_ends.len()
    ))
}

/// Why a field of the top message can't be taken.
enum FieldError {
    /// Its bytes are no message of that kind.
    Wire,
    Decode(DecodeError),
}

impl From<prost::DecodeError> for FieldError {
    fn from(_: prost::DecodeError) -> Self {
        Self::Wire
    }
}

impl From<DecodeError> for FieldError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

fn joined() -> DecodeError {
    DecodeError::invalid("two profiles are joined in this file; split them and open one")
}

fn too_many(what: &str) -> DecodeError {
    DecodeError::new(DecodeErrorKind::Limit, format!("it has too many {what}"))
}

fn row_end(length: usize, what: &str) -> Result<u32, DecodeError> {
    u32::try_from(length).map_err(|_| too_many(what))
}

impl Raw {
    fn scalar(&mut self, number: u32, value: i64) -> Result<(), DecodeError> {
        match number {
            field::DROP_FRAMES => self.drop_frames = value,
            field::KEEP_FRAMES => self.keep_frames = value,
            field::TIME if self.time.is_some() => return Err(joined()),
            field::TIME => self.time = Some(value),
            field::DURATION => self.duration = value,
            field::PERIOD => self.period = value,
            field::COMMENT => self.comments.push(value),
            field::DEFAULT_SAMPLE_TYPE => self.default_sample_type = value,
            _ => {}
        }
        Ok(())
    }

    fn message(
        &mut self,
        number: u32,
        body: &[u8],
        sample: &mut wire::Sample,
        location: &mut wire::Location,
        context: &Context<'_>,
    ) -> Result<(), FieldError> {
        match number {
            field::SAMPLE => {
                sample.clear();
                sample.merge(body)?;
                self.push_sample(sample, context)?;
            }
            field::LOCATION => {
                location.clear();
                location.merge(body)?;
                self.push_location(location)?;
            }
            field::SAMPLE_TYPE => {
                self.value_types.push(wire::ValueType::decode(body)?);
                self.types_since_string = true;
            }
            field::MAPPING => self.mappings.push(wire::Mapping::decode(body)?),
            field::FUNCTION => self.functions.push(wire::Function::decode(body)?),
            field::STRING => self.push_string(body)?,
            field::PERIOD_TYPE => self.period_type = Some(wire::ValueType::decode(body)?),
            field::COMMENT => {
                let mut packed = body;
                while !packed.is_empty() {
                    self.comments.push(decode_varint(&mut packed)?.cast_signed());
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn push_sample(&mut self, sample: &wire::Sample, context: &Context<'_>) -> Result<(), DecodeError> {
        let ids = &mut self.frame_ids;
        self.frames.extend(sample.location_ids.iter().map(|&id| ids.number(id)));
        if self.frames.len() > context.limits.max_frames {
            return Err(too_many("frames"));
        }
        self.frame_ends.push(row_end(self.frames.len(), "frames")?);
        self.values.extend_from_slice(&sample.values);
        self.value_ends.push(row_end(self.values.len(), "values")?);
        self.labels.extend(sample.labels.iter().filter(|label| !label.is_empty()));
        self.label_ends.push(row_end(self.labels.len(), "labels")?);
        Ok(())
    }

    fn push_location(&mut self, location: &wire::Location) -> Result<(), DecodeError> {
        self.location_ids.push(location.id);
        self.location_mappings.push(location.mapping_id);
        self.addresses.push(location.address);
        self.lines.extend(location.lines.iter().map(|line| {
            let (number, column) = LineNo::from_pprof(line.line, line.column);
            RawLine { function: line.function, line: number, column }
        }));
        self.line_ends.push(row_end(self.lines.len(), "lines")?);
        Ok(())
    }

    fn push_string(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        if !self.has_strings {
            // Row 0 of our table is "" as well, so the file's indexes are ours.
            if !body.is_empty() {
                return Err(DecodeError::invalid("its string table does not start with the empty string"));
            }
            self.has_strings = true;
        } else if body.is_empty() && self.types_since_string && self.strings.len() > 1 {
            return Err(joined());
        } else {
            let text = String::from_utf8_lossy(body);
            self.bad_utf8 += u64::from(matches!(text, std::borrow::Cow::Owned(_)));
            self.strings.push(&text).ok_or_else(|| too_many("strings"))?;
        }
        self.types_since_string = false;
        Ok(())
    }
}
