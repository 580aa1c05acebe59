//! An export request of OpenTelemetry, in the newest version of its protocol.
//!
//! There every value type is a profile of its own; they share all tables, and samples and their
//! order are the same, by which a receiver can put them together again. Rows of the tables are
//! those of the profile, as row 0 means "nothing" in both.

use opentelemetry_proto::tonic::common::v1 as common;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::profiles::v1development as newest;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use rustc_hash::FxHashMap;

use super::interner::Interner;
use crate::profile::{BuildError, Label, LabelValue, LocId, Profile, ValueType};

/// The request with all of a profile; `service` is the name of what was measured.
///
/// What calls cost without stacks, comments and rules about frames have no place in it.
///
/// ```
/// use profiler_core::cancel::CancelFlag;
/// use profiler_core::decode::{Limits, decode};
/// use profiler_core::encode::otlp;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let profile = decode(&b"main;work 3\n"[..], &Limits::default(), &CancelFlag::new())?;
/// let request = otlp::request(&profile, "app")?;
/// let again = decode(request.as_slice(), &Limits::default(), &CancelFlag::new())?;
/// assert_eq!((again.format(), again.sum(0).total), ("otlp", 3));
/// # Ok(()) }
/// ```
pub fn request(profile: &Profile, service: &str) -> Result<Vec<u8>, BuildError> {
    let mut tables = Tables::default();
    // Row 0 is nothing in every table.
    tables.strings.of("");
    tables.stacks.push(newest::Stack::default());
    tables.attributes.push(newest::KeyValueAndUnit::default());

    let samples = tables.samples(profile)?;
    let meta = profile.meta();
    let unsigned = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
    let mut profiles = Vec::with_capacity(profile.value_types().len());
    for (column, kind) in profile.value_types().iter().enumerate() {
        let values = profile.samples().values(column);
        let samples =
            samples.iter().zip(values).map(|(sample, &value)| newest::Sample { values: vec![value], ..sample.clone() });
        profiles.push(newest::Profile {
            sample_type: Some(tables.value_type(kind)?),
            samples: samples.collect(),
            time_unix_nano: unsigned(meta.time_ns),
            duration_nano: unsigned(meta.duration_ns),
            period_type: meta.period_type.as_ref().map(|kind| tables.value_type(kind)).transpose()?,
            period: meta.period,
            ..newest::Profile::default()
        });
    }
    let default = profile.value_types().get(meta.default_value_type).filter(|_| profiles.len() > 1);
    let scope = common::InstrumentationScope {
        name: "perflens".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        attributes: default.map(|kind| text("pprof.scope.default_sample_type", &kind.kind)).into_iter().collect(),
        ..common::InstrumentationScope::default()
    };
    let resource = Resource { attributes: vec![text("service.name", service)], ..Resource::default() };
    let request = newest::ProfilesData {
        resource_profiles: vec![newest::ResourceProfiles {
            resource: Some(resource),
            scope_profiles: vec![newest::ScopeProfiles { scope: Some(scope), profiles, schema_url: String::new() }],
            schema_url: String::new(),
        }],
        dictionary: Some(tables.dictionary(profile)?),
    };
    Ok(request.encode_to_vec())
}

/// An attribute outside of the tables.
fn text(key: &str, value: &str) -> common::KeyValue {
    let value = common::AnyValue { value: Some(Value::StringValue(value.to_owned())) };
    common::KeyValue { key: key.to_owned(), value: Some(value), ..common::KeyValue::default() }
}

/// Tables that a profile does not have in this form.
#[derive(Default)]
struct Tables {
    strings: Interner,
    stacks: Vec<newest::Stack>,
    known_stacks: FxHashMap<Box<[LocId]>, i32>,
    attributes: Vec<newest::KeyValueAndUnit>,
    known_labels: FxHashMap<Label, i32>,
}

fn index(number: impl TryInto<i32>, of: &'static str) -> Result<i32, BuildError> {
    number.try_into().map_err(|_| BuildError::TooMany(of))
}

fn row(id: u32) -> Result<i32, BuildError> {
    index(id, "rows")
}

impl Tables {
    fn text(&mut self, text: &str) -> Result<i32, BuildError> {
        index(self.strings.of(text), "strings")
    }

    fn value_type(&mut self, kind: &ValueType) -> Result<newest::ValueType, BuildError> {
        Ok(newest::ValueType { type_strindex: self.text(&kind.kind)?, unit_strindex: self.text(&kind.unit)? })
    }

    /// The samples without their values.
    fn samples(&mut self, profile: &Profile) -> Result<Vec<newest::Sample>, BuildError> {
        let samples = profile.samples();
        let mut all = Vec::with_capacity(samples.len());
        for sample in 0..samples.len() {
            let mut attribute_indices = Vec::new();
            for &label in samples.labels(sample) {
                attribute_indices.push(self.label(profile, label)?);
            }
            let stack_index = self.stack(samples.stack(sample))?;
            all.push(newest::Sample { stack_index, attribute_indices, ..newest::Sample::default() });
        }
        Ok(all)
    }

    fn stack(&mut self, stack: &[LocId]) -> Result<i32, BuildError> {
        if stack.is_empty() {
            return Ok(0);
        }
        if let Some(&known) = self.known_stacks.get(stack) {
            return Ok(known);
        }
        let row = index(self.stacks.len(), "stacks")?;
        let location_indices = stack.iter().map(|location| self::row(location.0)).collect::<Result<_, _>>()?;
        self.stacks.push(newest::Stack { location_indices });
        self.known_stacks.insert(stack.into(), row);
        Ok(row)
    }

    fn label(&mut self, profile: &Profile, label: Label) -> Result<i32, BuildError> {
        if let Some(&known) = self.known_labels.get(&label) {
            return Ok(known);
        }
        let (value, unit) = match label.value {
            LabelValue::Text(text) => (Value::StringValue(profile.text(text).to_owned()), ""),
            LabelValue::Number(number, unit) => (Value::IntValue(number), profile.text(unit)),
        };
        let row = self.attribute(profile.text(label.key), value, unit)?;
        self.known_labels.insert(label, row);
        Ok(row)
    }

    fn attribute(&mut self, key: &str, value: Value, unit: &str) -> Result<i32, BuildError> {
        let row = index(self.attributes.len(), "labels")?;
        let (key_strindex, unit_strindex) = (self.text(key)?, self.text(unit)?);
        let value = Some(common::AnyValue { value: Some(value) });
        self.attributes.push(newest::KeyValueAndUnit { key_strindex, value, unit_strindex });
        Ok(row)
    }

    fn dictionary(mut self, profile: &Profile) -> Result<newest::ProfilesDictionary, BuildError> {
        let mut mapping_table = vec![newest::Mapping::default()];
        for mapping in profile.mappings().iter().skip(1) {
            let build = profile.text(mapping.build_id);
            let named = match build.strip_prefix("htlhash:") {
                _ if build.is_empty() => None,
                Some(hash) => Some(("htlhash", hash)),
                None if build.bytes().all(|byte| byte.is_ascii_hexdigit()) => Some(("gnu", build)),
                None => Some(("go", build)),
            };
            let mut attribute_indices = Vec::new();
            if let Some((kind, build)) = named {
                let value = Value::StringValue(build.to_owned());
                attribute_indices.push(self.attribute(&format!("process.executable.build_id.{kind}"), value, "")?);
            }
            mapping_table.push(newest::Mapping {
                memory_start: mapping.memory_start,
                memory_limit: mapping.memory_limit,
                file_offset: mapping.file_offset,
                filename_strindex: self.text(profile.text(mapping.file))?,
                attribute_indices,
            });
        }
        let mut location_table = vec![newest::Location::default()];
        let locations = profile.locations();
        for id in locations.ids() {
            let mut lines = Vec::new();
            for line in locations.lines(id) {
                lines.push(newest::Line {
                    function_index: row(line.function.0)?,
                    line: i64::from(line.line.0),
                    column: i64::from(line.column),
                });
            }
            location_table.push(newest::Location {
                mapping_index: row(locations.mapping(id).0)?,
                address: locations.address(id),
                lines,
                attribute_indices: Vec::new(),
            });
        }
        let mut function_table = vec![newest::Function::default()];
        for function in profile.functions().iter().skip(1) {
            function_table.push(newest::Function {
                name_strindex: self.text(profile.text(function.name))?,
                system_name_strindex: self.text(profile.text(function.system_name))?,
                filename_strindex: self.text(profile.path(function.file))?,
                start_line: i64::from(function.start_line.0),
            });
        }
        Ok(newest::ProfilesDictionary {
            mapping_table,
            location_table,
            function_table,
            link_table: vec![newest::Link::default()],
            string_table: self.strings.in_order.into_iter().map(String::from).collect(),
            attribute_table: self.attributes,
            stack_table: self.stacks,
        })
    }
}
