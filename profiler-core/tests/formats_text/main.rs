//! The decoders of text formats and of the binary profiles from before pprof, through the
//! front door, against what other tools say about the same files.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]
#![expect(clippy::cast_possible_truncation, reason = "what oracles say is far from any bound")]

mod bad_input;
mod folded;
mod legacy;
mod raw;
mod speedscope;

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
