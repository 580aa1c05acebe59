//! Messages that the crate of the protocol's newest version can't read: those of older
//! versions, and the tables, whose texts may be broken UTF-8.

use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::profiles::v1development as newest;
use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Dictionary {
    #[prost(message, repeated, tag = "1")]
    pub(super) mappings: Vec<newest::Mapping>,
    #[prost(message, repeated, tag = "2")]
    pub(super) locations: Vec<newest::Location>,
    #[prost(message, repeated, tag = "3")]
    pub(super) functions: Vec<newest::Function>,
    #[prost(bytes, repeated, tag = "5")]
    pub(super) strings: Vec<Vec<u8>>,
    #[prost(message, repeated, tag = "6")]
    pub(super) attributes: Vec<newest::KeyValueAndUnit>,
    #[prost(message, repeated, tag = "7")]
    pub(super) stacks: Vec<newest::Stack>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Dictionary17 {
    #[prost(message, repeated, tag = "1")]
    pub(super) mappings: Vec<newest::Mapping>,
    #[prost(message, repeated, tag = "2")]
    pub(super) locations: Vec<Location17>,
    #[prost(message, repeated, tag = "3")]
    pub(super) functions: Vec<newest::Function>,
    #[prost(bytes, repeated, tag = "5")]
    pub(super) strings: Vec<Vec<u8>>,
    #[prost(message, repeated, tag = "6")]
    pub(super) attributes: Vec<Attribute17>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Location17 {
    #[prost(int32, tag = "1")]
    pub(super) mapping_index: i32,
    #[prost(uint64, tag = "2")]
    pub(super) address: u64,
    #[prost(message, repeated, tag = "3")]
    pub(super) lines: Vec<newest::Line>,
    #[prost(int32, repeated, tag = "5")]
    pub(super) attribute_indices: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Attribute17 {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Sample17 {
    #[prost(int32, tag = "1")]
    pub(super) locations_start: i32,
    #[prost(int32, tag = "2")]
    pub(super) locations_length: i32,
    #[prost(int64, repeated, tag = "3")]
    pub(super) values: Vec<i64>,
    #[prost(int32, repeated, tag = "4")]
    pub(super) attribute_indices: Vec<i32>,
    #[prost(uint64, repeated, tag = "6")]
    pub(super) timestamps: Vec<u64>,
}

/// Of 1.8 and 1.9.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Sample18 {
    #[prost(int32, tag = "1")]
    pub(super) stack_index: i32,
    #[prost(int64, repeated, tag = "2")]
    pub(super) values: Vec<i64>,
    #[prost(int32, repeated, tag = "3")]
    pub(super) attribute_indices: Vec<i32>,
    #[prost(fixed64, repeated, tag = "5")]
    pub(super) timestamps: Vec<u64>,
}

/// The head of a profile: everything but its samples, by name instead of number.
#[derive(Clone, Debug, Default)]
pub(super) struct Head {
    pub(super) types: Vec<newest::ValueType>,
    pub(super) time: u64,
    pub(super) duration: u64,
    pub(super) period_type: Option<newest::ValueType>,
    pub(super) period: i64,
    pub(super) payload_format: String,
    pub(super) payload: Vec<u8>,
    /// Only up to 1.7.
    pub(super) location_indices: Vec<i32>,
    pub(super) default_type: usize,
}
