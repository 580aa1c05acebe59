//! One export request, whatever the version: tables, resources, and profiles whose samples
//! are read one by one.

use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::profiles::v1development as newest;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

use super::layout::{self, Layout};
use super::messages::{Dictionary, Dictionary17, Head, Sample17, Sample18};
use super::wire::{Fields, Value, checked};
use super::{DecodeError, DecodeErrorKind};

/// A request, with profiles left as bytes.
pub(super) struct Request<'a> {
    pub(super) layout: Layout,
    pub(super) dictionary: Dictionary,
    pub(super) resources: Vec<ResourceProfiles<'a>>,
}

pub(super) struct ResourceProfiles<'a> {
    pub(super) attributes: Vec<KeyValue>,
    pub(super) scopes: Vec<ScopeProfiles<'a>>,
}

pub(super) struct ScopeProfiles<'a> {
    pub(super) attributes: Vec<KeyValue>,
    pub(super) profiles: Vec<&'a [u8]>,
}

/// One sample, with its values added up.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    /// Index of a stack, or the start of a range of the profile's locations.
    pub(super) stack: i32,
    /// Length of that range.
    pub(super) length: i32,
    pub(super) attributes: Vec<i32>,
    /// One per value type of the profile.
    pub(super) values: Vec<i64>,
}

/// Messages are held as structs, so the smallest ones cost many times their bytes. Real ones are
/// larger than this on average.
const MIN_BYTES_PER_ENTRY: usize = 8;
/// So many entries are always fine.
const FREE_ENTRIES: usize = 1 << 18;
/// As deep as values are read.
const MAX_DEPTH: usize = 100;

/// How many structs a request may become.
struct Budget {
    left: usize,
}

impl Budget {
    fn take(&mut self) -> Result<(), DecodeError> {
        let empty = || DecodeError::new(DecodeErrorKind::Limit, "it consists of empty messages");
        self.left = self.left.checked_sub(1).ok_or_else(empty)?;
        Ok(())
    }

    /// Takes for every message in a message that is small for what it becomes, on all levels.
    /// Texts count as well: they are structs of their own.
    fn take_all(&mut self, message: &[u8], depth: usize) -> Result<(), DecodeError> {
        if depth == 0 || Fields::of(message).any(|field| field.is_err()) {
            return Ok(());
        }
        for (_, value) in checked(message) {
            if let Some(body) = value.bytes() {
                if body.len() < MIN_BYTES_PER_ENTRY {
                    self.take()?;
                }
                self.take_all(body, depth - 1)?;
            }
        }
        Ok(())
    }
}

impl<'a> Request<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut tables = Vec::new();
        let mut resources = Vec::new();
        let mut budget = Budget { left: FREE_ENTRIES.max(bytes.len() / MIN_BYTES_PER_ENTRY) };
        for field in Fields::of(bytes) {
            budget.take()?;
            match field? {
                (1, Value::Bytes(body)) => resources.push(ResourceProfiles::read(body, &mut budget)?),
                (2, Value::Bytes(body)) => tables.push(body),
                _ => {}
            }
        }
        let profiles: Vec<&[u8]> =
            resources.iter().flat_map(|resource| &resource.scopes).flat_map(|scope| &scope.profiles).copied().collect();
        let mut attribute_count = 0;
        for table in &tables {
            for field in Fields::of(table) {
                let (number, value) = field?;
                budget.take()?;
                attribute_count += usize::from(number == 6);
                // Lines of locations, values of attributes.
                if let (2 | 6, Some(body)) = (number, value.bytes()) {
                    budget.take_all(body, MAX_DEPTH)?;
                }
            }
        }
        for profile in &profiles {
            for field in Fields::of(profile) {
                field?;
                budget.take()?;
            }
        }
        let has_own_tables = |profile: &&[u8]| {
            checked(profile).any(|(number, value)| (4..=6).contains(&number) && value.is_bytes())
                && checked(profile).any(|(number, value)| number == 3 && value.is_bytes())
        };
        if tables.is_empty() && profiles.iter().any(has_own_tables) {
            return Err(DecodeError::new(
                DecodeErrorKind::Unsupported,
                "it is of a version of the protocol before 1.7, which can't be read; update what sends it",
            ));
        }
        let layout = layout::layout(&profiles, attribute_count);
        Ok(Self { layout, dictionary: read_dictionary(layout, &tables)?, resources })
    }
}

impl<'a> ResourceProfiles<'a> {
    fn read(bytes: &'a [u8], budget: &mut Budget) -> Result<Self, DecodeError> {
        let mut resource = Self { attributes: Vec::new(), scopes: Vec::new() };
        for field in Fields::of(bytes) {
            budget.take()?;
            match field? {
                (1, Value::Bytes(body)) => {
                    budget.take_all(body, MAX_DEPTH)?;
                    resource.attributes = message::<Resource>(body)?.attributes;
                }
                (2, Value::Bytes(body)) => resource.scopes.push(ScopeProfiles::read(body, budget)?),
                _ => {}
            }
        }
        Ok(resource)
    }
}

impl<'a> ScopeProfiles<'a> {
    fn read(bytes: &'a [u8], budget: &mut Budget) -> Result<Self, DecodeError> {
        let mut scope = Self { attributes: Vec::new(), profiles: Vec::new() };
        for field in Fields::of(bytes) {
            budget.take()?;
            match field? {
                (1, Value::Bytes(body)) => {
                    budget.take_all(body, MAX_DEPTH)?;
                    scope.attributes = message::<InstrumentationScope>(body)?.attributes;
                }
                (2, Value::Bytes(body)) => scope.profiles.push(body),
                _ => {}
            }
        }
        Ok(scope)
    }
}

fn message<T: Message + Default>(bytes: &[u8]) -> Result<T, DecodeError> {
    T::decode(bytes).map_err(|error| invalid(&error))
}

fn invalid(error: &prost::DecodeError) -> DecodeError {
    DecodeError::invalid(format!("its messages are damaged ({error})"))
}

fn read_dictionary(layout: Layout, tables: &[&[u8]]) -> Result<Dictionary, DecodeError> {
    if layout != Layout::V1_7 {
        let mut dictionary = Dictionary::default();
        for table in tables {
            dictionary.merge(*table).map_err(|error| invalid(&error))?;
        }
        return Ok(dictionary);
    }
    let mut old = Dictionary17::default();
    for table in tables {
        old.merge(*table).map_err(|error| invalid(&error))?;
    }
    let mut strings = old.strings;
    let mut attributes = Vec::with_capacity(old.attributes.len());
    for attribute in old.attributes {
        let key_strindex = i32::try_from(strings.len()).unwrap_or(0);
        strings.push(attribute.key);
        attributes.push(newest::KeyValueAndUnit { key_strindex, value: attribute.value, unit_strindex: 0 });
    }
    let locations = old.locations.into_iter().map(|location| newest::Location {
        mapping_index: location.mapping_index,
        address: location.address,
        lines: location.lines,
        attribute_indices: location.attribute_indices,
    });
    Ok(Dictionary {
        mappings: old.mappings,
        locations: locations.collect(),
        functions: old.functions,
        strings,
        attributes,
        stacks: Vec::new(),
    })
}

/// Reads everything but the samples.
pub(super) fn head(profile: &[u8], layout: Layout) -> Result<Head, DecodeError> {
    let mut head = Head::default();
    // From 1.8 on only these three changed places.
    let (format, payload) = match layout {
        Layout::V1_7 => (12, 13),
        Layout::V1_8 => (10, 11),
        Layout::V1_9 | Layout::V1_10 => (9, 10),
    };
    for field in Fields::of(profile) {
        let field = field?;
        match field {
            (1, Value::Bytes(body)) => head.types.push(message(body)?),
            (number, Value::Bytes(body)) if number == format => {
                head.payload_format = String::from_utf8_lossy(body).into_owned();
            }
            (number, Value::Bytes(body)) if number == payload => head.payload = body.to_vec(),
            _ if layout == Layout::V1_7 => head_17(&mut head, field)?,
            (3, Value::Fixed64(time)) => head.time = time,
            (4, Value::Varint(duration)) => head.duration = duration,
            (5, Value::Bytes(body)) => head.period_type = Some(message(body)?),
            (6, Value::Varint(period)) => head.period = period.cast_signed(),
            _ => {}
        }
    }
    Ok(head)
}

#[expect(clippy::cast_possible_truncation, reason = "as protobuf reads an int32")]
fn head_17(head: &mut Head, field: (u32, Value<'_>)) -> Result<(), DecodeError> {
    match field {
        (3, Value::Varint(index)) => head.location_indices.push(index as i32),
        (3, Value::Bytes(mut packed)) => {
            while !packed.is_empty() {
                let index = prost::encoding::decode_varint(&mut packed).map_err(|error| invalid(&error))?;
                head.location_indices.push(index as i32);
            }
        }
        (4, Value::Varint(time) | Value::Fixed64(time)) => head.time = time,
        (5, Value::Varint(duration)) => head.duration = duration,
        (6, Value::Bytes(body)) => head.period_type = Some(message(body)?),
        (7, Value::Varint(period)) => head.period = period.cast_signed(),
        (9, Value::Varint(index)) => head.default_type = usize::try_from(index).unwrap_or(0),
        _ => {}
    }
    Ok(())
}

/// Hands out the samples of a profile one by one, in a row that is used again.
pub(super) fn for_each_sample(
    profile: &[u8],
    layout: Layout,
    type_count: usize,
    mut use_row: impl FnMut(&mut Row) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let mut row = Row::default();
    let (mut old, mut middle, mut new) = (Sample17::default(), Sample18::default(), newest::Sample::default());
    for (number, value) in checked(profile) {
        let (2, Some(body)) = (number, value.bytes()) else { continue };
        match layout {
            Layout::V1_7 => {
                old.clear();
                old.merge(body).map_err(|error| invalid(&error))?;
                (row.stack, row.length) =
                    if old.locations_length > 0 { (old.locations_start, old.locations_length) } else { (0, 0) };
                std::mem::swap(&mut row.attributes, &mut old.attribute_indices);
                row.set_values_17(&old.values, old.timestamps.len(), type_count)?;
            }
            Layout::V1_8 | Layout::V1_9 => {
                middle.clear();
                middle.merge(body).map_err(|error| invalid(&error))?;
                row.stack = middle.stack_index;
                std::mem::swap(&mut row.attributes, &mut middle.attribute_indices);
                row.set_value(&middle.values, middle.timestamps.len())?;
            }
            Layout::V1_10 => {
                new.clear();
                new.merge(body).map_err(|error| invalid(&error))?;
                row.stack = new.stack_index;
                std::mem::swap(&mut row.attributes, &mut new.attribute_indices);
                row.set_value(&new.values, new.timestamps_unix_nano.len())?;
            }
        }
        use_row(&mut row)?;
    }
    Ok(())
}

impl Row {
    /// Values of one sample add up; without any, each of its times is one sample.
    fn set_value(&mut self, values: &[i64], times: usize) -> Result<(), DecodeError> {
        let sum = if values.is_empty() { times as i128 } else { values.iter().map(|&value| i128::from(value)).sum() };
        let sum = i64::try_from(sum).map_err(|_| DecodeError::invalid("the values of a sample are out of range"))?;
        self.values.clear();
        self.values.push(sum);
        Ok(())
    }

    /// Up to 1.7 there was a value per type of the profile.
    fn set_values_17(&mut self, values: &[i64], times: usize, type_count: usize) -> Result<(), DecodeError> {
        if type_count == values.len() {
            self.values.clear();
            self.values.extend_from_slice(values);
            return Ok(());
        }
        self.set_value(values, times)?;
        self.values.resize(type_count, 0);
        Ok(())
    }
}

/// The text of an attribute's value; `None` where it is not a text or number, or a list of
/// several.
pub(super) enum Scalar {
    Text(String),
    Number(i64),
}

/// Reads a value: producers wrap texts in lists of one.
pub(super) fn scalar(value: Option<&AnyValue>, strings: &[Vec<u8>]) -> Option<Scalar> {
    use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
    match value?.value.as_ref()? {
        Any::StringValue(text) => Some(Scalar::Text(text.clone())),
        Any::BoolValue(flag) => Some(Scalar::Text(flag.to_string())),
        Any::IntValue(number) => Some(Scalar::Number(*number)),
        Any::DoubleValue(number) => Some(Scalar::Text(number.to_string())),
        Any::StringValueStrindex(index) => Some(Scalar::Text(text(strings, *index).into_owned())),
        Any::ArrayValue(array) => match &array.values[..] {
            [one] if !matches!(one.value, Some(Any::ArrayValue(_))) => scalar(Some(one), strings),
            _ => None,
        },
        Any::KvlistValue(_) | Any::BytesValue(_) => None,
    }
}

/// The key of an attribute of a resource or scope.
pub(super) fn key<'a>(attribute: &'a KeyValue, strings: &'a [Vec<u8>]) -> std::borrow::Cow<'a, str> {
    if attribute.key.is_empty() { text(strings, attribute.key_strindex) } else { attribute.key.as_str().into() }
}

/// A row of the table of strings; empty where there is none.
pub(super) fn text(strings: &[Vec<u8>], index: i32) -> std::borrow::Cow<'_, str> {
    let bytes = usize::try_from(index).ok().and_then(|index| strings.get(index));
    String::from_utf8_lossy(bytes.map_or(&[], Vec::as_slice))
}
