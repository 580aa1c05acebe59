//! Which filter keeps most of what is placed in the workspace and little of the rest: a
//! profile of a whole fleet or machine is mostly about others.
//!
//! Candidates are the binaries that the workspace's code is in, and labels that name a service
//! or process.

use rustc_hash::FxHashMap;

use super::{Filter, Stacks};
use crate::cancel::{CancelFlag, Cancelled};
use crate::profile::{LabelValue, Profile, StrId};

/// Labels by which producers name what a sample belongs to.
pub(super) const OWNER_LABELS: &[&str] = &[
    "app",
    "app.kubernetes.io/name",
    "comm",
    "container",
    "deployment",
    "job",
    "process",
    "process.name",
    "service",
    "service.name",
    "service_name",
];

/// A filter, and what it would leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrowing {
    /// The filter, to be added to those that apply.
    pub filter: Filter,
    /// Σ|v| of samples with a frame in the workspace that it keeps.
    pub placed: i64,
    /// Σ|v| of all samples that it keeps.
    pub total: i64,
}

/// What the samples of a candidate add up to.
#[derive(Clone, Copy, Default)]
struct Kept {
    /// Σ|v| of samples with a frame in the workspace.
    placed: i64,
    /// Σ|v| of all.
    total: i64,
    /// The last sample that was counted, from 1.
    stamp: usize,
}

impl Kept {
    /// Counts a sample once.
    fn add(&mut self, value: i64, is_placed: bool, stamp: usize) {
        if self.stamp != stamp {
            self.stamp = stamp;
            self.total += value.abs();
            self.placed += if is_placed { value.abs() } else { 0 };
        }
    }

    /// The part of it that is placed, times what is placed.
    fn score(self) -> f64 {
        self.placed as f64 / self.total as f64 * self.placed as f64
    }
}

/// Everything a filter could ask for, and what it would keep. Texts of filters are made once;
/// samples refer to them by number.
#[derive(Default)]
struct Candidates {
    numbers: FxHashMap<String, usize>,
    kept: Vec<Kept>,
}

impl Candidates {
    fn number(&mut self, filter: String) -> usize {
        let next = self.kept.len();
        let number = *self.numbers.entry(filter).or_insert(next);
        if number == next {
            self.kept.push(Kept::default());
        }
        number
    }
}

impl Stacks {
    /// The filter that tells what is placed from the rest best. `None` when none keeps half of
    /// what is placed, or none leaves out a tenth of the total. The profile is the one the
    /// stacks were made of.
    pub fn narrowing(
        &self,
        profile: &Profile,
        value_type: usize,
        cancel: &CancelFlag,
    ) -> Result<Option<Narrowing>, Cancelled> {
        let (samples, locations) = (profile.samples(), profile.locations());
        let mut candidates = Candidates::default();
        let binaries: Vec<Option<usize>> = profile
            .mappings()
            .iter()
            .map(|mapping| base_name(profile.text(mapping.file)).map(|name| candidates.number(format!("bin={name}"))))
            .collect();
        let mut labels: FxHashMap<(StrId, StrId), Option<usize>> = FxHashMap::default();
        let mut all = Kept::default();
        self.each_sample(profile, value_type, cancel, |sample, value, stack| {
            let is_placed = stack.iter().any(|location| self.frames.locations[location.index()].facts.has_own());
            all.add(value, is_placed, sample + 1);
            for &location in stack {
                if let Some(binary) = binaries[locations.mapping(location).index()] {
                    candidates.kept[binary].add(value, is_placed, sample + 1);
                }
            }
            for label in samples.labels(sample) {
                let LabelValue::Text(text) = label.value else { continue };
                let number = labels.entry((label.key, text)).or_insert_with(|| {
                    let (key, text) = (profile.text(label.key), profile.text(text));
                    OWNER_LABELS.contains(&key).then(|| candidates.number(format!("label.{key}={text}")))
                });
                if let Some(number) = *number {
                    candidates.kept[number].add(value, is_placed, sample + 1);
                }
            }
        })?;
        Ok(candidates.best(all))
    }
}

impl Candidates {
    fn best(&self, all: Kept) -> Option<Narrowing> {
        let is_worth_it = |kept: &Kept| {
            let (placed, total) = (i128::from(kept.placed), i128::from(kept.total));
            placed > 0 && placed * 2 >= i128::from(all.placed) && total * 10 <= i128::from(all.total) * 9
        };
        let (filter, kept) = self
            .numbers
            .iter()
            .map(|(filter, &number)| (filter, self.kept[number]))
            .filter(|(_, kept)| is_worth_it(kept))
            // Of equals the first by its text.
            .max_by(|(a, a_kept), (b, b_kept)| a_kept.score().total_cmp(&b_kept.score()).then_with(|| b.cmp(a)))?;
        Some(Narrowing { filter: filter.parse().ok()?, placed: kept.placed, total: kept.total })
    }
}

fn base_name(path: &str) -> Option<&str> {
    path.rsplit(['/', '\\']).next().filter(|name| !name.is_empty())
}
