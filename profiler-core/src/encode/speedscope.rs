//! speedscope's JSON: one profile per thread, all of one value type.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::folded::unnamed;
use crate::profile::{LabelValue, LocId, Profile, ValueType};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: String,
    exporter: &'static str,
    active_profile_index: usize,
    shared: Shared<'a>,
    profiles: Vec<Part<'a>>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    col: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    unit: &'static str,
    start_value: i64,
    end_value: i64,
    samples: Vec<Vec<usize>>,
    weights: Vec<i64>,
}

/// Writes the stacks of one value type.
pub fn write(profile: &Profile, value_type: usize, mut to: impl Write) -> io::Result<()> {
    let locations = profile.locations();
    let mut frames = Vec::new();
    // Root first, by location.
    let mut of_location: FxHashMap<LocId, Vec<usize>> = FxHashMap::default();
    let mut parts: BTreeMap<&str, Part<'_>> = BTreeMap::new();
    let unit = unit(&profile.value_types()[value_type]);
    let samples = profile.samples();
    for (row, &value) in samples.values(value_type).iter().enumerate() {
        if value == 0 {
            continue;
        }
        let mut stack = Vec::new();
        for &id in samples.stack(row).iter().rev() {
            let known = of_location.entry(id).or_insert_with(|| {
                let first = frames.len();
                let lines = locations.lines(id);
                if lines.is_empty() {
                    frames.push(Frame { name: unnamed(profile, id), file: "", line: None, col: None });
                }
                for line in lines.iter().rev() {
                    let function = profile.function(line.function);
                    frames.push(Frame {
                        name: match profile.text(function.name) {
                            "" => "[unknown]".to_owned(),
                            name => name.to_owned(),
                        },
                        file: profile.path(function.file),
                        line: line.line.is_known().then_some(line.line.0),
                        col: (line.column != 0).then_some(line.column),
                    });
                }
                (first..frames.len()).collect()
            });
            stack.extend_from_slice(known);
        }
        let part = parts.entry(thread(profile, row)).or_insert_with_key(|name| Part {
            kind: "sampled",
            name,
            unit,
            start_value: 0,
            end_value: 0,
            samples: Vec::new(),
            weights: Vec::new(),
        });
        part.end_value = part.end_value.saturating_add(value.saturating_abs());
        part.samples.push(stack);
        part.weights.push(value);
    }
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        name: profile.value_types()[value_type].to_string(),
        exporter: concat!("perflens ", env!("CARGO_PKG_VERSION")),
        active_profile_index: 0,
        shared: Shared { frames },
        profiles: parts.into_values().collect(),
    };
    serde_json::to_writer(&mut to, &file)?;
    to.flush()
}

/// The format's word for a unit.
fn unit(value_type: &ValueType) -> &'static str {
    match value_type.unit.as_str() {
        "nanoseconds" => "nanoseconds",
        "microseconds" => "microseconds",
        "milliseconds" => "milliseconds",
        "seconds" => "seconds",
        "bytes" => "bytes",
        _ => "none",
    }
}

/// The name of the sample's thread, where the profile has it.
fn thread(profile: &Profile, row: usize) -> &str {
    let labels = profile.samples().labels(row);
    let named = labels.iter().find(|label| matches!(profile.text(label.key), "thread" | "thread_name"));
    match named.map(|label| label.value) {
        Some(LabelValue::Text(name)) => profile.text(name),
        _ => "",
    }
}
