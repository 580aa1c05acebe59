//! What a file holds several of, and how to choose: value types, processes, threads, services.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::super::document::Sentence;
use super::super::summary::Numbers;
use crate::attribute::analysis::Analysis;
use crate::profile::{LabelValue, StrId};

/// Labels that part a profile, as the formats name them, the coarsest first.
const KEYS: [&str; 9] = [
    "service.name",
    "service",
    "process.executable.name",
    "process",
    "pid",
    "process.pid",
    "thread.name",
    "thread",
    "profile",
];
/// Most values named of one label.
const MAX_VALUES: usize = 5;

/// One sentence per thing there is a choice of.
pub(super) fn choices(analysis: &Analysis, numbers: &Numbers) -> Vec<Sentence> {
    let mut sentences: Vec<Sentence> = types(analysis).into_iter().collect();
    let mut values: BTreeMap<usize, FxHashMap<Value, i64>> = BTreeMap::new();
    let (profile, samples) = (&analysis.profile, analysis.profile.samples());
    for (sample, &value) in samples.values(analysis.value_type).iter().enumerate() {
        for label in samples.labels(sample) {
            if let Some(key) = KEYS.iter().position(|key| *key == profile.text(label.key)) {
                let text = match label.value {
                    LabelValue::Text(text) => Value::Text(text),
                    LabelValue::Number(number, _) => Value::Number(number),
                };
                *values.entry(key).or_default().entry(text).or_default() += value.abs();
            }
        }
    }
    for (key, values) in values.into_iter().filter(|(_, values)| values.len() > 1) {
        let mut rows: Vec<(String, i64)> = values.into_iter().map(|(text, value)| (text.of(analysis), value)).collect();
        rows.sort_by(|a, b| Reverse(a.1).cmp(&Reverse(b.1)).then_with(|| a.0.cmp(&b.0)));
        let mut sentence = Sentence::default().strong(format!("By {}", KEYS[key])).text(": ");
        for (index, (name, value)) in rows.iter().take(MAX_VALUES).enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            sentence = sentence.text(comma).data(name).text(format!(" {}", numbers.share(*value).trim()));
        }
        if let Some(more) = rows.len().checked_sub(MAX_VALUES).filter(|&more| more > 0) {
            sentence = sentence.text(format!(" and {more} more"));
        }
        let filter = match KEYS[key] {
            "thread" => "thread".to_owned(),
            key => format!("label.{key}"),
        };
        let example = rows.first().map_or("", |(name, _)| name.as_str());
        sentences.push(sentence.text("; one of them: ").command(&format!("--filter \"{filter}={example}\"")));
    }
    sentences
}

/// A text or number of a label.
#[derive(PartialEq, Eq, Hash)]
enum Value {
    Text(StrId),
    Number(i64),
}

impl Value {
    fn of(&self, analysis: &Analysis) -> String {
        match self {
            Self::Text(text) => analysis.profile.text(*text).to_owned(),
            Self::Number(number) => number.to_string(),
        }
    }
}

/// What else is measured, where that is more than a number of samples.
fn types(analysis: &Analysis) -> Option<Sentence> {
    let others: Vec<String> = analysis
        .profile
        .value_types()
        .iter()
        .enumerate()
        .filter(|(index, kind)| *index != analysis.value_type && !kind.is_sample_count())
        .filter(|(index, _)| analysis.profile.sum(*index).total != 0)
        .map(|(_, kind)| kind.to_string())
        .collect();
    let first = others.first()?.clone();
    let sentence = Sentence::default().strong("Also measured").text(": ").data(&others.join(", "));
    Some(sentence.text("; one of them: ").command(&format!("--type {first}")))
}
