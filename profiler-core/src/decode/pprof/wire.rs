//! The small messages of `profile.proto`. Field numbers are the format's.

use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct ValueType {
    #[prost(int64, tag = "1")]
    pub(crate) kind: i64,
    #[prost(int64, tag = "2")]
    pub(crate) unit: i64,
}

/// Whether bytes are a message with nothing but the fields of [`ValueType`].
pub(crate) fn is_value_type(mut body: &[u8]) -> bool {
    while !body.is_empty() {
        match decode_key(&mut body) {
            Ok((1 | 2, WireType::Varint)) if decode_varint(&mut body).is_ok() => {}
            _ => return false,
        }
    }
    true
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    pub(crate) location_ids: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) values: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) labels: Vec<Label>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Label {
    #[prost(int64, tag = "1")]
    pub(crate) key: i64,
    #[prost(int64, tag = "2")]
    pub(crate) text: i64,
    #[prost(int64, tag = "3")]
    pub(crate) number: i64,
    #[prost(int64, tag = "4")]
    pub(crate) unit: i64,
}

impl Label {
    /// A label without any value, which producers write by accident.
    pub(crate) fn is_empty(&self) -> bool {
        self.text == 0 && self.number == 0 && self.unit == 0
    }
}

#[derive(Clone, Copy, PartialEq, Message)]
#[expect(clippy::struct_excessive_bools, reason = "they are the format's")]
pub(crate) struct Mapping {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) memory_start: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) memory_limit: u64,
    #[prost(uint64, tag = "4")]
    pub(crate) file_offset: u64,
    #[prost(int64, tag = "5")]
    pub(crate) file: i64,
    #[prost(int64, tag = "6")]
    pub(crate) build_id: i64,
    // Written for other readers, and ignored here: see the module's list of odd files.
    #[prost(bool, tag = "7")]
    pub(crate) has_functions: bool,
    #[prost(bool, tag = "8")]
    pub(crate) has_filenames: bool,
    #[prost(bool, tag = "9")]
    pub(crate) has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    pub(crate) has_inline_frames: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Location {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) address: u64,
    #[prost(message, repeated, tag = "4")]
    pub(crate) lines: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq, Message)]
#[expect(clippy::struct_field_names, reason = "the format calls the number `line`")]
pub(crate) struct Line {
    #[prost(uint64, tag = "1")]
    pub(crate) function: u64,
    #[prost(int64, tag = "2")]
    pub(crate) line: i64,
    #[prost(int64, tag = "3")]
    pub(crate) column: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Function {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(int64, tag = "2")]
    pub(crate) name: i64,
    #[prost(int64, tag = "3")]
    pub(crate) system_name: i64,
    #[prost(int64, tag = "4")]
    pub(crate) file: i64,
    #[prost(int64, tag = "5")]
    pub(crate) start_line: i64,
}
