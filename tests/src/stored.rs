//! What servers of profiles have in common, for those that tests talk to: profiles with labels, types
//! that queries name, matchers, and adding up.
//!
//! What is not here: anything of a protocol.

use std::collections::BTreeMap;
use std::fmt;

use regex::Regex;

use crate::pprof::{self, Builder};

/// A stored profile.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// With `__name__`.
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) profile: pprof::Profile,
}

/// A profile type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    pub(crate) name: String,
    pub(crate) sample_type: String,
    pub(crate) sample_unit: String,
    pub(crate) period_type: String,
    pub(crate) period_unit: String,
    /// Its profiles have a duration.
    pub(crate) delta: bool,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, sample_type, sample_unit, period_type, period_unit, delta } = self;
        let end = if *delta { ":delta" } else { "" };
        write!(f, "{name}:{sample_type}:{sample_unit}:{period_type}:{period_unit}{end}")
    }
}

impl Stored {
    /// A type for each column of values.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let text = |row: i64| {
            let row = usize::try_from(row).ok().and_then(|row| self.profile.string_table.get(row));
            String::from_utf8_lossy(row.map_or(&[][..], Vec::as_slice)).into_owned()
        };
        let period = self.profile.period_type.unwrap_or_default();
        (self.profile.sample_type.iter())
            .map(|of| Kind {
                name: self.labels["__name__"].clone(),
                sample_type: text(of.r#type),
                sample_unit: text(of.unit),
                period_type: text(period.r#type),
                period_unit: text(period.unit),
                delta: self.profile.duration_nanos != 0,
            })
            .collect()
    }
}

/// One profile of the columns that are chosen, all of one type; numbers of samples are multiplied by
/// their period if that is wanted. It has neither time nor duration.
pub(crate) fn merged(selected: &[(&Stored, usize)], scales: bool) -> pprof::Profile {
    let Some(kind) = selected.first().map(|(stored, column)| stored.kinds()[*column].clone()) else {
        return Builder::new(&[]).profile;
    };
    let is_scaled = scales && (kind.sample_type.as_str(), kind.sample_unit.as_str()) == ("samples", "count");
    let value_type = if is_scaled {
        (kind.period_type.as_str(), kind.period_unit.as_str())
    } else {
        (kind.sample_type.as_str(), kind.sample_unit.as_str())
    };
    let mut builder = Builder::new(&[value_type]);
    let period_type = builder.value_type(&kind.period_type, &kind.period_unit);
    for (stored, column) in selected {
        let from = &stored.profile;
        let text = |row: i64| from.string_table[usize::try_from(row).expect("it was checked")].clone();
        let mapping: Vec<u64> = from
            .mapping
            .iter()
            .map(|mapping| builder.mapping(&String::from_utf8_lossy(&text(mapping.filename))))
            .collect();
        let functions: Vec<u64> = from
            .function
            .iter()
            .map(|function| {
                let (name, file) = (text(function.name), text(function.filename));
                builder.function(&String::from_utf8_lossy(&name), &String::from_utf8_lossy(&file), function.start_line)
            })
            .collect();
        let at = |ids: &[u64], id: u64| {
            usize::try_from(id).ok().and_then(|id| ids.get(id.checked_sub(1)?)).copied().unwrap_or(0)
        };
        let locations: Vec<u64> = from
            .location
            .iter()
            .map(|location| {
                let lines: Vec<pprof::Line> = location
                    .line
                    .iter()
                    .map(|line| pprof::Line { function_id: at(&functions, line.function_id), ..*line })
                    .collect();
                // What came with names has no address any more.
                let address = if lines.is_empty() { location.address } else { 0 };
                builder.location(at(&mapping, location.mapping_id), address, &lines)
            })
            .collect();
        let factor = if is_scaled { from.period } else { 1 };
        for sample in &from.sample {
            let stack: Vec<u64> = sample.location_id.iter().map(|id| at(&locations, *id)).collect();
            if sample.value[*column] != 0 {
                builder.sample(&stack, &[sample.value[*column] * factor]);
            }
        }
    }
    let mut profile = builder.profile;
    profile.period_type = Some(period_type);
    profile.time_nanos = 0;
    profile.period = 0;
    profile.duration_nanos = 0;
    profile
}

/// A condition on a label.
#[derive(Clone, Debug)]
pub(crate) struct Matcher {
    label: String,
    operator: String,
    value: String,
    is_anchored: bool,
}

impl Matcher {
    /// Reads what follows the opening brace, to the closing one.
    pub(crate) fn parse(labels: &str, is_anchored: bool) -> Option<Vec<Self>> {
        let one = Regex::new(r#"^([a-zA-Z_]\w*)(=~|!~|!=|=)"((?:[^"\\]|\\.)*)"(?:,|\})"#).expect("it is one");
        let (mut rest, mut matchers) = (labels, Vec::new());
        while rest != "}" && !rest.is_empty() {
            let found = one.captures(rest)?;
            let value = found[3].replace("\\n", "\n").replace("\\\"", "\"").replace("\\\\", "\\");
            if found[2].ends_with('~') && Regex::new(&value).is_err() {
                return None;
            }
            matchers.push(Self { label: found[1].to_owned(), operator: found[2].to_owned(), value, is_anchored });
            rest = &rest[found[0].len()..];
        }
        Some(matchers)
    }

    pub(crate) fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.label).map_or("", String::as_str);
        let pattern = if self.is_anchored { format!("^(?:{})$", self.value) } else { self.value.clone() };
        let matches = || Regex::new(&pattern).is_ok_and(|regex| regex.is_match(value));
        match self.operator.as_str() {
            "=" => value == self.value,
            "!=" => value != self.value,
            "=~" => matches(),
            _ => !matches(),
        }
    }
}

/// What is in gzip, or else the bytes as they are.
pub(crate) fn inflate(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(bytes), &mut out) {
        Ok(_) => out,
        Err(_) => bytes.to_vec(),
    }
}
