//! Filters to choose from: by service, thread and label, and without the frames of executors, each with
//! how much of what is counted now it would leave.
//!
//! Values of a label are offered where they part what is counted: none that every sample has, and none that
//! is hardly there. What a frame filter takes away is no sample, so for those it is told how much passes
//! the frames.

use rustc_hash::FxHashMap;

use super::filter::THREAD_LABELS;
use super::narrow::OWNER_LABELS;
use super::{Field, Filter, FrameField, Stacks};
use crate::cancel::{CancelFlag, Cancelled};
use crate::demangle::demangle;
use crate::profile::{LabelValue, Profile, StrId};

/// Most values offered of one label, the largest first.
const MAX_VALUES: usize = 5;
/// Most labels besides those that name a service or thread.
const MAX_LABELS: usize = 5;
/// A value with less than one part in so many is not offered.
const PARTS: i128 = 100;

/// What frames belong to executors: they run others' code, and stand between it and whoever started it.
const EXECUTORS: &[&str] = &[
    "frame.fn!^tokio::runtime::",
    "frame.fn!^<tokio::runtime::",
    "frame.fn!^tokio::task::",
    "frame.fn!^<tokio::task::",
    "frame.fn!^async_executor::",
    "frame.fn!^async_std::task::",
    "frame.fn!^futures_executor::",
    "frame.fn!^futures_util::",
    "frame.fn!^<futures_util::",
    "frame.fn!~ core::future::future::Future",
    "frame.file!~/asyncio/",
    "frame.file!^node:internal/",
];

/// Tells functions of executors of asynchronous Rust by their names.
#[derive(Clone, Debug)]
pub struct ExecutorNames(Vec<Filter>);

impl ExecutorNames {
    /// All that are known.
    pub fn known() -> Self {
        let all = EXECUTORS.iter().filter_map(|text| text.parse::<Filter>().ok());
        Self(all.filter(|filter| *filter.field() == Field::Frame(FrameField::Function)).collect())
    }

    /// Whether a demangled name is one of theirs.
    pub fn have(&self, name: &str) -> bool {
        self.0.iter().any(|filter| filter.matches(name))
    }
}

/// What a choice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChoiceKind {
    /// What a service or process did.
    Service,
    /// What a thread did.
    Thread,
    /// What has a label.
    Label,
    /// All samples, without the frames of executors.
    Executors,
}

/// Filters that can be added to those that apply, and what that means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What it is about.
    pub kind: ChoiceKind,
    /// The filters; all are taken or none.
    pub filters: Vec<Filter>,
    /// Σ|v| of the samples that they keep; of [`ChoiceKind::Executors`], which keeps all, of those that pass
    /// such a frame.
    pub value: i64,
}

/// What a label is to a choice, by its key.
fn kind_of(key: &str) -> ChoiceKind {
    if THREAD_LABELS.contains(&key) {
        ChoiceKind::Thread
    } else if OWNER_LABELS.contains(&key) {
        ChoiceKind::Service
    } else {
        ChoiceKind::Label
    }
}

/// The values of a label and what has them.
#[derive(Default)]
struct Values {
    kept: FxHashMap<StrId, (i64, usize)>,
}

impl Stacks {
    /// What can be chosen for a value type, by kind, the largest first. The profile is the one the stacks were
    /// made of.
    pub fn choices(&self, profile: &Profile, value_type: usize, cancel: &CancelFlag) -> Result<Vec<Choice>, Cancelled> {
        let samples = profile.samples();
        let executors = Executors::of(profile, &self.filters);
        let mut labels: FxHashMap<StrId, Values> = FxHashMap::default();
        let (mut total, mut passing) = (0_i64, 0_i64);
        self.each_sample(profile, value_type, cancel, |sample, value, stack| {
            let value = value.saturating_abs();
            total = total.saturating_add(value);
            if stack.iter().any(|location| executors.locations[location.index()]) {
                passing = passing.saturating_add(value);
            }
            for label in samples.labels(sample) {
                let LabelValue::Text(text) = label.value else { continue };
                let (kept, stamp) = labels.entry(label.key).or_default().kept.entry(text).or_default();
                // A label may be there twice.
                if *stamp != sample + 1 {
                    *stamp = sample + 1;
                    *kept = kept.saturating_add(value);
                }
            }
        })?;
        let mut by_key: Vec<Vec<Choice>> =
            labels.iter().map(|(&key, values)| values.choices(profile, key, total)).collect();
        by_key.retain(|choices| !choices.is_empty());
        // Of labels, those first that part most.
        by_key.sort_by_key(|choices| {
            (choices[0].kind, std::cmp::Reverse(total - choices[0].value), choices[0].filters[0].to_string())
        });
        let mut labels = 0;
        by_key.retain(|choices| {
            labels += usize::from(choices[0].kind == ChoiceKind::Label);
            choices[0].kind != ChoiceKind::Label || labels <= MAX_LABELS
        });
        let mut choices: Vec<Choice> = by_key.into_iter().flatten().collect();
        if passing > 0 {
            choices.push(Choice { kind: ChoiceKind::Executors, filters: executors.filters, value: passing });
        }
        Ok(choices)
    }
}

impl Values {
    /// The values that are worth a choice, the largest first.
    fn choices(&self, profile: &Profile, key: StrId, total: i64) -> Vec<Choice> {
        let key = profile.text(key);
        let kind = kind_of(key);
        let is_worth_it = |value: i64| i128::from(value) * PARTS >= i128::from(total) && value < total;
        let mut choices: Vec<Choice> = (self.kept.iter())
            .filter(|&(_, &(value, _))| is_worth_it(value))
            .filter_map(|(&text, &(value, _))| {
                let text = profile.text(text);
                let (field, meant) = match kind {
                    ChoiceKind::Thread => ("thread".to_owned(), Field::Thread),
                    _ => (format!("label.{key}"), Field::Label(key.to_owned())),
                };
                let filter: Filter = format!("{field}={text}").parse().ok()?;
                // What the grammar reads in another way can't be asked for: a key that ends in `!`, for one.
                (filter.value() == text && *filter.field() == meant).then(|| Choice {
                    kind,
                    filters: vec![filter],
                    value,
                })
            })
            .collect();
        choices.sort_by(|a, b| {
            b.value.cmp(&a.value).then_with(|| a.filters[0].to_string().cmp(&b.filters[0].to_string()))
        });
        choices.truncate(MAX_VALUES);
        choices
    }
}

/// Which frames are of executors.
struct Executors {
    /// The filters that mean any frame and don't apply yet.
    filters: Vec<Filter>,
    /// By location, whether one of its frames is meant.
    locations: Vec<bool>,
}

impl Executors {
    fn of(profile: &Profile, applied: &[Filter]) -> Self {
        let wanted = EXECUTORS.iter().filter_map(|text| text.parse::<Filter>().ok());
        let mut filters: Vec<(Filter, bool)> =
            wanted.filter(|filter| !applied.contains(filter)).map(|filter| (filter, false)).collect();
        let functions: Vec<bool> = profile
            .functions()
            .iter()
            .map(|function| {
                let (name, file) = (demangle(profile.text(function.name)), profile.path(function.file));
                let mut is_meant = false;
                for (filter, has_any) in &mut filters {
                    let candidate = if *filter.field() == Field::Frame(FrameField::File) { file } else { &name };
                    let matches = filter.matches(candidate);
                    *has_any |= matches;
                    is_meant |= matches;
                }
                is_meant
            })
            .collect();
        let places = profile.locations();
        let mut locations = vec![false; places.len()];
        for id in places.ids() {
            locations[id.index()] = places.lines(id).iter().any(|line| functions[line.function.index()]);
        }
        Self {
            filters: filters.into_iter().filter(|(_, has_any)| *has_any).map(|(filter, _)| filter).collect(),
            locations,
        }
    }
}
