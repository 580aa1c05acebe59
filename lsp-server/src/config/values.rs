//! Values of settings whose range is part of their type, so that what was read is in range.
//!
//! Their schemas carry the same bounds, for editors that complete and check configuration.

use std::borrow::Cow;
use std::time::Duration;

use profiler_core::attribute::Filter;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A percentage from 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64")]
pub struct Percent(f64);

impl Percent {
    /// The percentage as it is written: 0.1 is a thousandth.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// For defaults; what users write goes through `TryFrom`.
    pub(super) const fn literal(percent: f64) -> Self {
        assert!(percent >= 0.0 && percent <= 100.0, "a percentage");
        Self(percent)
    }
}

impl TryFrom<f64> for Percent {
    type Error = &'static str;

    fn try_from(percent: f64) -> Result<Self, Self::Error> {
        if (0.0..=100.0).contains(&percent) { Ok(Self(percent)) } else { Err("a percentage is from 0 to 100") }
    }
}

impl JsonSchema for Percent {
    fn schema_name() -> Cow<'static, str> {
        "Percent".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": 100 })
    }
}

/// A whole number from `MIN` to `MAX`.
///
/// Read from `200` and from `200.0`: some editors know only one kind of number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Whole<const MIN: u32, const MAX: u32>(u32);

impl<const MIN: u32, const MAX: u32> Whole<MIN, MAX> {
    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// For defaults; what users write is deserialised.
    pub(super) const fn literal(number: u32) -> Self {
        assert!(number >= MIN && number <= MAX, "in range");
        Self(number)
    }
}

impl<const MIN: u32, const MAX: u32> Serialize for Whole<MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.0)
    }
}

impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for Whole<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = f64::deserialize(deserializer)?;
        if number.fract() != 0.0 || number < f64::from(MIN) || number > f64::from(MAX) {
            let expected = format!("a whole number from {MIN} to {MAX}");
            return Err(D::Error::invalid_value(Unexpected::Float(number), &expected.as_str()));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between MIN and MAX")]
        Ok(Self(number as u32))
    }
}

impl<const MIN: u32, const MAX: u32> JsonSchema for Whole<MIN, MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("Whole_{MIN}_{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
}

/// A length of time in whole seconds, from `MIN` to `MAX`; 0 stands for never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Whole<0, MAX>", into = "Whole<0, MAX>")]
pub struct Interval<const MIN: u32, const MAX: u32>(Whole<0, MAX>);

impl<const MIN: u32, const MAX: u32> Interval<MIN, MAX> {
    /// Never.
    pub const NEVER: Self = Self(Whole(0));

    /// The time; `None` is never.
    pub fn get(self) -> Option<Duration> {
        (self != Self::NEVER).then(|| Duration::from_secs(self.0.get().into()))
    }
}

impl<const MIN: u32, const MAX: u32> TryFrom<Whole<0, MAX>> for Interval<MIN, MAX> {
    type Error = String;

    fn try_from(seconds: Whole<0, MAX>) -> Result<Self, Self::Error> {
        match seconds.get() {
            0 => Ok(Self(seconds)),
            enough if enough >= MIN => Ok(Self(seconds)),
            few => Err(format!("{few} is too few; it is 0, or a whole number from {MIN} to {MAX}")),
        }
    }
}

impl<const MIN: u32, const MAX: u32> From<Interval<MIN, MAX>> for Whole<0, MAX> {
    fn from(interval: Interval<MIN, MAX>) -> Self {
        interval.0
    }
}

impl<const MIN: u32, const MAX: u32> JsonSchema for Interval<MIN, MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("Interval_{MIN}_{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let too_few = json_schema!({ "exclusiveMinimum": 0, "exclusiveMaximum": MIN });
        json_schema!({ "type": "integer", "minimum": 0, "maximum": MAX, "not": too_few })
    }
}

/// A filter about a label, written without saying so: `service=checkout`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matcher(Filter);

impl Matcher {
    /// The same as a filter: `label.service=checkout`.
    pub fn filter(&self) -> &Filter {
        &self.0
    }
}

impl Serialize for Matcher {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.0.to_string();
        serializer.serialize_str(text.strip_prefix(LABEL).unwrap_or(&text))
    }
}

/// What filters about labels begin with.
const LABEL: &str = "label.";

impl<'de> Deserialize<'de> for Matcher {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let text = text.trim_start();
        let filter = if text.starts_with(LABEL) { text.to_owned() } else { format!("{LABEL}{text}") };
        let wrong = |_| D::Error::custom(format!("matcher `{text}` is not LABEL=VALUE, or with one of != ~ !~ ^ !^"));
        filter.parse().map(Self).map_err(wrong)
    }
}

impl JsonSchema for Matcher {
    fn schema_name() -> Cow<'static, str> {
        "Matcher".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// Reads and writes filters as the text that the command line takes.
pub(crate) mod filters {
    use super::{Deserialize, Deserializer, Error, Filter, Serializer};

    pub(crate) fn serialize<S: Serializer>(filters: &[Filter], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(filters.iter().map(ToString::to_string))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Filter>, D::Error> {
        Vec::<String>::deserialize(deserializer)?.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
    }

    /// For what may be left out, where that is something else than none.
    pub(crate) fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Filter>>, D::Error> {
        deserialize(deserializer).map(Some)
    }
}

/// Reads and writes headers as people write them: `NAME: VALUE`.
pub(crate) mod headers {
    use super::{Deserialize, Deserializer, Error, Serializer};

    pub(crate) fn serialize<S: Serializer>(headers: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(headers.iter().map(|(name, value)| format!("{name}: {value}")))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, String)>, D::Error> {
        let is_name = |name: &str| !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
        let header = |text: &String| {
            let (name, value) = text.split_once(':').filter(|(name, _)| is_name(name))?;
            Some((name.to_owned(), value.trim().to_owned()))
        };
        let read = |text: &String| header(text).ok_or_else(|| D::Error::custom("a header is written `NAME: VALUE`"));
        Vec::<String>::deserialize(deserializer)?.iter().map(read).collect()
    }
}

/// A text that may be left empty. An empty one is none: forms have no other way to say so.
pub(super) fn non_empty<'de, D: Deserializer<'de>, T: From<String>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.filter(|text| !text.is_empty()).map(T::from))
}
