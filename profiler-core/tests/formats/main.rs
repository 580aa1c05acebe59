//! All decoders but that of pprof, through the front door, against what other tools say about
//! the same files.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "what oracles say is far from any bound"
)]
#![expect(clippy::needless_pass_by_value, reason = "values of JSON are made where they are used")]

mod bad_input;
mod callgrind;
mod firefox;
mod folded;
mod heaps;
mod java;
mod legacy;
mod otlp;
mod perf_data;
mod perf_script;
mod python;
mod raw;
mod ruby;
mod source_maps;
mod speedscope;
mod tools;
mod v8;

use std::collections::BTreeMap;
use std::path::Path;

use profiler_core::attribute::FileGroups;
use profiler_core::attribute::analysis::Analysis;
use profiler_core::cancel::CancelFlag;
use profiler_core::decode::{DecodeError, Limits, decode};
use profiler_core::profile::Profile;

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data").join(name)).unwrap()
}

fn text(name: &str) -> String {
    String::from_utf8(bytes(name)).unwrap()
}

fn json(name: &str) -> serde_json::Value {
    serde_json::from_slice(&bytes(name)).unwrap()
}

fn read(bytes: impl AsRef<[u8]>) -> Result<Profile, DecodeError> {
    decode(bytes.as_ref(), &Limits::default(), &CancelFlag::new())
}

#[track_caller]
fn profile(bytes: impl AsRef<[u8]>) -> Profile {
    read(bytes).unwrap()
}

#[track_caller]
fn error(bytes: impl AsRef<[u8]>) -> String {
    read(bytes).unwrap_err().to_string()
}

#[track_caller]
fn assert_note(profile: &Profile, part: &str) {
    assert!(profile.notes().iter().any(|note| note.contains(part)), "no note has `{part}`: {:#?}", profile.notes());
}

/// Flat and cumulative value of each key.
type Costs = BTreeMap<String, (i64, i64)>;

/// `path:line` of every line with a cost.
fn lines(profile: &Profile, value_type: usize) -> Costs {
    let analysis = Analysis::new(
        std::sync::Arc::new(profile.clone()),
        FileGroups::by_path(profile),
        value_type,
        &[],
        &CancelFlag::new(),
    )
    .unwrap();
    let path = |row: &profiler_core::attribute::LineRow| analysis.groups.path(profile, row.file).to_owned();
    analysis
        .costs
        .lines
        .iter()
        .map(|row| (format!("{}:{}", path(row), row.line.0), (row.cost.flat, row.cost.cumulative)))
        .collect()
}

/// The labels of a sample as `key=value`.
fn labels(profile: &Profile, sample: usize) -> Vec<String> {
    use profiler_core::profile::LabelValue;
    let text = |id| profile.text(id);
    let label = |label: &profiler_core::profile::Label| match label.value {
        LabelValue::Text(value) => format!("{}={}", text(label.key), text(value)),
        LabelValue::Number(number, unit) => format!("{}={number}{}", text(label.key), text(unit)),
    };
    profile.samples().labels(sample).iter().map(label).collect()
}

/// The value types as `type/unit`.
fn types(profile: &Profile) -> Vec<String> {
    profile.value_types().iter().map(ToString::to_string).collect()
}

/// Every row of an oracle is a row of ours; the oracle may list the first ones only.
#[track_caller]
fn assert_has(ours: &Costs, expected: &Costs, what: &str) {
    for (row, cost) in expected {
        assert_eq!(ours.get(row), Some(cost), "{what}: {row}");
    }
    assert!(!expected.is_empty(), "{what}: the oracle is empty");
}

/// The name of every function with a cost.
fn functions(profile: &Profile, value_type: usize) -> Costs {
    let analysis = Analysis::new(
        std::sync::Arc::new(profile.clone()),
        FileGroups::by_path(profile),
        value_type,
        &[],
        &CancelFlag::new(),
    )
    .unwrap();
    analysis.costs.functions.iter().map(|row| (row.name.clone(), (row.cost.flat, row.cost.cumulative))).collect()
}

/// Rows `[name…, flat, cumulative]` of an oracle, each value times `scale`; rows without a
/// name are left out.
fn oracle(rows: &serde_json::Value, scale: f64) -> Costs {
    let value = |row: &serde_json::Value| (row.as_f64().unwrap() * scale).round() as i64;
    rows.as_array()
        .unwrap()
        .iter()
        .filter_map(|row| {
            let (name, values) = row.as_array().unwrap().split_last_chunk::<2>().unwrap();
            let name: Vec<String> = match name {
                [serde_json::Value::Null, ..] => return None,
                [text] => vec![text.as_str().unwrap().to_owned()],
                [text, line] => vec![text.as_str().unwrap().to_owned(), line.to_string()],
                other => panic!("a row of {other:?}"),
            };
            Some((name.join(":"), (value(&values[0]), value(&values[1]))))
        })
        .collect()
}
