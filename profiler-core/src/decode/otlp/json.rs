//! OTLP's JSON, as the collector's file exporter writes it, rewritten into the protocol's
//! newest binary form. Fields have names here, so versions need no guessing; some were
//! renamed on the way, and both names are read.
//!
//! Numbers of 64 bits are texts in JSON, though not everyone does that.

use std::fmt;

use base64::Engine;
use opentelemetry_proto::tonic::common::v1 as common;
use opentelemetry_proto::tonic::profiles::v1development as newest;
use opentelemetry_proto::tonic::resource::v1::Resource as NewestResource;
use prost::Message;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{DecodeError, DecodeErrorKind};

/// Objects become structs that are larger than the smallest object.
const MIN_BYTES_PER_OBJECT: usize = 12;
const FREE_OBJECTS: usize = 1 << 16;

/// Rewrites one request.
pub(super) fn to_protobuf(text: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let objects = text.split(|&byte| byte == b'{').count();
    if objects > FREE_OBJECTS && objects * MIN_BYTES_PER_OBJECT > text.len() {
        return Err(DecodeError::new(DecodeErrorKind::Limit, "it consists of empty objects"));
    }
    let request: Request = serde_json::from_slice(text).map_err(|error| {
        if error.is_eof() {
            DecodeError::truncated(format!("its JSON ends in the middle, at line {}", error.line()))
        } else {
            DecodeError::invalid(format!("its JSON is not what it should be: {error}"))
        }
    })?;
    Ok(request.newest().encode_to_vec())
}

/// Bytes in base 64 of either alphabet; none where it is damaged, as the profile itself may do.
fn base64(text: &str) -> Vec<u8> {
    let standard: String = text
        .trim_end_matches('=')
        .chars()
        .map(|c| {
            if c == '-' {
                '+'
            } else if c == '_' {
                '/'
            } else {
                c
            }
        })
        .collect();
    base64::engine::general_purpose::STANDARD_NO_PAD.decode(standard).unwrap_or_default()
}

/// A number, or a number as a text; what is neither is 0.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    Ok(Number::deserialize(from)?.value())
}

fn unsigned<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    Ok(Number::deserialize(from)?.value().cast_unsigned())
}

fn numbers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<i64>, D::Error> {
    Ok(Vec::<Number>::deserialize(from)?.into_iter().map(Number::value).collect())
}

/// Read at once into eight bytes, whatever it is: lists of them may be long.
#[derive(Clone, Copy)]
struct Number(i64);

impl Number {
    fn value(self) -> i64 {
        self.0
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(NumberVisitor).map(Self)
    }
}

struct NumberVisitor;

impl<'de> Visitor<'de> for NumberVisitor {
    type Value = i64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_i64<E>(self, number: i64) -> Result<i64, E> {
        Ok(number)
    }

    fn visit_u64<E>(self, number: u64) -> Result<i64, E> {
        Ok(number.cast_signed())
    }

    fn visit_f64<E>(self, _: f64) -> Result<i64, E> {
        Ok(0)
    }

    fn visit_bool<E>(self, _: bool) -> Result<i64, E> {
        Ok(0)
    }

    fn visit_unit<E>(self) -> Result<i64, E> {
        Ok(0)
    }

    fn visit_str<E>(self, text: &str) -> Result<i64, E> {
        Ok(text.parse().or_else(|_| text.parse::<u64>().map(u64::cast_signed)).unwrap_or_default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<i64, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(0)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<i64, A::Error> {
        while items.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(0)
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Request {
    resource_profiles: Vec<ResourceProfiles>,
    dictionary: Dictionary,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceProfiles {
    resource: Attributes,
    scope_profiles: Vec<ScopeProfiles>,
}

/// What a resource and a scope have in common.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Attributes {
    attributes: Vec<Attribute>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ScopeProfiles {
    scope: Attributes,
    profiles: Vec<Profile>,
}

/// Named and numbered forms of attributes together.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Attribute {
    key: String,
    key_strindex: i32,
    unit_strindex: i32,
    value: Value,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_field_names, reason = "the names are the protocol's")]
struct Value {
    string_value: Option<String>,
    bool_value: Option<bool>,
    int_value: Option<Number>,
    double_value: Option<f64>,
    array_value: Option<Array>,
    string_value_strindex: Option<i32>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Array {
    values: Vec<Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_field_names, reason = "the names are the protocol's")]
struct Dictionary {
    mapping_table: Vec<Mapping>,
    location_table: Vec<Location>,
    function_table: Vec<Function>,
    string_table: Vec<String>,
    attribute_table: Vec<Attribute>,
    stack_table: Vec<Stack>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Mapping {
    #[serde(deserialize_with = "unsigned")]
    memory_start: u64,
    #[serde(deserialize_with = "unsigned")]
    memory_limit: u64,
    #[serde(deserialize_with = "unsigned")]
    file_offset: u64,
    filename_strindex: i32,
    attribute_indices: Vec<i32>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Location {
    mapping_index: i32,
    #[serde(deserialize_with = "unsigned")]
    address: u64,
    #[serde(alias = "line")]
    lines: Vec<Line>,
    attribute_indices: Vec<i32>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_field_names, reason = "the names are the protocol's")]
struct Line {
    function_index: i32,
    #[serde(deserialize_with = "number")]
    line: i64,
    #[serde(deserialize_with = "number")]
    column: i64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Function {
    name_strindex: i32,
    system_name_strindex: i32,
    filename_strindex: i32,
    #[serde(deserialize_with = "number")]
    start_line: i64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Stack {
    location_indices: Vec<i32>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ValueType {
    type_strindex: i32,
    unit_strindex: i32,
}

/// One value type, or several up to 1.7.
enum ValueTypes {
    One(ValueType),
    Several(Vec<ValueType>),
}

impl<'de> Deserialize<'de> for ValueTypes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Kinds;
        impl<'de> Visitor<'de> for Kinds {
            type Value = ValueTypes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value type, or a list of some")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<ValueTypes, A::Error> {
                ValueType::deserialize(MapAccessDeserializer::new(fields)).map(ValueTypes::One)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<ValueTypes, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(items)).map(ValueTypes::Several)
            }
        }
        from.deserialize_any(Kinds)
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Profile {
    sample_type: Option<ValueTypes>,
    #[serde(alias = "sample")]
    samples: Vec<Sample>,
    #[serde(alias = "timeNanos", deserialize_with = "unsigned")]
    time_unix_nano: u64,
    #[serde(alias = "durationNanos", deserialize_with = "unsigned")]
    duration_nano: u64,
    period_type: ValueType,
    #[serde(deserialize_with = "number")]
    period: i64,
    location_indices: Vec<i32>,
    original_payload_format: String,
    /// In base 64.
    original_payload: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Sample {
    stack_index: i32,
    locations_start_index: i32,
    locations_length: i32,
    #[serde(alias = "value", deserialize_with = "numbers")]
    values: Vec<i64>,
    attribute_indices: Vec<i32>,
    #[serde(deserialize_with = "numbers")]
    timestamps_unix_nano: Vec<i64>,
}

impl Request {
    fn newest(self) -> newest::ProfilesData {
        let Self { resource_profiles, mut dictionary } = self;
        let mut stacks: Vec<newest::Stack> = dictionary
            .stack_table
            .drain(..)
            .map(|stack| newest::Stack { location_indices: stack.location_indices })
            .collect();
        let resource_profiles = resource_profiles.into_iter().map(|resource| resource.newest(&mut stacks)).collect();
        newest::ProfilesData { resource_profiles, dictionary: Some(dictionary.newest(stacks)) }
    }
}

impl ResourceProfiles {
    fn newest(self, stacks: &mut Vec<newest::Stack>) -> newest::ResourceProfiles {
        newest::ResourceProfiles {
            resource: Some(NewestResource { attributes: key_values(self.resource.attributes), ..Default::default() }),
            scope_profiles: self.scope_profiles.into_iter().map(|scope| scope.newest(stacks)).collect(),
            schema_url: String::new(),
        }
    }
}

impl ScopeProfiles {
    fn newest(self, stacks: &mut Vec<newest::Stack>) -> newest::ScopeProfiles {
        let scope =
            common::InstrumentationScope { attributes: key_values(self.scope.attributes), ..Default::default() };
        newest::ScopeProfiles {
            scope: Some(scope),
            profiles: self.profiles.into_iter().flat_map(|profile| profile.newest(stacks)).collect(),
            schema_url: String::new(),
        }
    }
}

fn key_values(attributes: Vec<Attribute>) -> Vec<common::KeyValue> {
    let key_value = |attribute: Attribute| common::KeyValue {
        key: attribute.key,
        value: Some(attribute.value.newest()),
        key_strindex: attribute.key_strindex,
    };
    attributes.into_iter().map(key_value).collect()
}

impl Value {
    fn newest(self) -> common::AnyValue {
        use common::any_value::Value as Any;
        let value = if let Some(text) = self.string_value {
            Some(Any::StringValue(text))
        } else if let Some(number) = self.int_value {
            Some(Any::IntValue(number.value()))
        } else if let Some(flag) = self.bool_value {
            Some(Any::BoolValue(flag))
        } else if let Some(number) = self.double_value {
            Some(Any::DoubleValue(number))
        } else if let Some(index) = self.string_value_strindex {
            Some(Any::StringValueStrindex(index))
        } else {
            self.array_value.map(|array| {
                Any::ArrayValue(common::ArrayValue { values: array.values.into_iter().map(Self::newest).collect() })
            })
        };
        common::AnyValue { value }
    }
}

impl Dictionary {
    fn newest(self, stack_table: Vec<newest::Stack>) -> newest::ProfilesDictionary {
        let mut string_table = self.string_table;
        let attributes = self.attribute_table.into_iter().map(|attribute| {
            // Up to 1.7 keys were texts.
            let key_strindex = if attribute.key.is_empty() {
                attribute.key_strindex
            } else {
                string_table.push(attribute.key);
                i32::try_from(string_table.len() - 1).unwrap_or(0)
            };
            let value = Some(attribute.value.newest());
            newest::KeyValueAndUnit { key_strindex, value, unit_strindex: attribute.unit_strindex }
        });
        let attribute_table = attributes.collect();
        let line =
            |line: Line| newest::Line { function_index: line.function_index, line: line.line, column: line.column };
        newest::ProfilesDictionary {
            mapping_table: (self.mapping_table.into_iter())
                .map(|mapping| newest::Mapping {
                    memory_start: mapping.memory_start,
                    memory_limit: mapping.memory_limit,
                    file_offset: mapping.file_offset,
                    filename_strindex: mapping.filename_strindex,
                    attribute_indices: mapping.attribute_indices,
                })
                .collect(),
            location_table: (self.location_table.into_iter())
                .map(|location| newest::Location {
                    mapping_index: location.mapping_index,
                    address: location.address,
                    lines: location.lines.into_iter().map(line).collect(),
                    attribute_indices: location.attribute_indices,
                })
                .collect(),
            function_table: (self.function_table.into_iter())
                .map(|function| newest::Function {
                    name_strindex: function.name_strindex,
                    system_name_strindex: function.system_name_strindex,
                    filename_strindex: function.filename_strindex,
                    start_line: function.start_line,
                })
                .collect(),
            link_table: Vec::new(),
            string_table,
            attribute_table,
            stack_table,
        }
    }
}

impl Profile {
    /// One profile per value type.
    fn newest(self, stacks: &mut Vec<newest::Stack>) -> Vec<newest::Profile> {
        let types = match &self.sample_type {
            None => vec![ValueType::default()],
            Some(ValueTypes::One(kind)) => vec![*kind],
            Some(ValueTypes::Several(kinds)) => kinds.clone(),
        };
        let kind = |kind: ValueType| newest::ValueType {
            type_strindex: kind.type_strindex,
            unit_strindex: kind.unit_strindex,
        };
        let stack_of = |sample: &Sample, stacks: &mut Vec<newest::Stack>| {
            if sample.locations_length <= 0 {
                return sample.stack_index;
            }
            let start = usize::try_from(sample.locations_start_index).unwrap_or(usize::MAX);
            let length = usize::try_from(sample.locations_length).unwrap_or(0);
            let indices = self.location_indices.get(start..start.saturating_add(length));
            stacks.push(newest::Stack { location_indices: indices.unwrap_or_default().to_vec() });
            i32::try_from(stacks.len() - 1).unwrap_or(0)
        };
        let stack_indices: Vec<i32> = self.samples.iter().map(|sample| stack_of(sample, stacks)).collect();
        let profile = |(column, own): (usize, &ValueType)| newest::Profile {
            sample_type: Some(kind(*own)),
            samples: (self.samples.iter().zip(&stack_indices))
                .map(|(sample, &stack_index)| newest::Sample {
                    stack_index,
                    attribute_indices: sample.attribute_indices.clone(),
                    link_index: 0,
                    values: match types.len() {
                        1 => sample.values.clone(),
                        _ => sample.values.get(column).copied().into_iter().collect(),
                    },
                    timestamps_unix_nano: sample.timestamps_unix_nano.iter().map(|time| time.cast_unsigned()).collect(),
                })
                .collect(),
            time_unix_nano: self.time_unix_nano,
            duration_nano: self.duration_nano,
            period_type: Some(kind(self.period_type)),
            period: self.period,
            ..newest::Profile::default()
        };
        let mut profiles: Vec<newest::Profile> = types.iter().enumerate().map(profile).collect();
        // Of several types the original holds all at once; it would be counted for each.
        if let [first] = &mut profiles[..] {
            first.original_payload = base64(&self.original_payload);
            first.original_payload_format = self.original_payload_format;
        }
        profiles
    }
}
