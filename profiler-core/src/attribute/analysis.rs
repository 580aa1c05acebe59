//! A profile, the question asked of it, and the answer, kept together: what every view
//! starts from.

use super::calls::{Calls, Portion, Target};
use super::compare::{self, CompareError, Comparison, Run, Side};
use super::{Costs, FileGroups, Filter, Ratio, Stacks};
use std::sync::Arc;

use crate::cancel::{CancelFlag, Cancelled};
use crate::profile::{Profile, ValueType};

/// The costs of one value type of a profile, under filters.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// The profile.
    pub profile: Arc<Profile>,
    /// Its files.
    pub groups: FileGroups,
    /// Index of the value type.
    pub value_type: usize,
    /// The filters that were applied.
    pub filters: Vec<Filter>,
    /// The stacks under those filters, for further questions.
    pub stacks: Arc<Stacks>,
    /// What everything costs.
    pub costs: Costs,
    /// What the values of the costs were multiplied by, for a comparison. Nothing that the stacks say is.
    scale: Option<Ratio>,
}

/// A profile measured against a base.
#[derive(Clone, Debug)]
pub struct ComparedTo {
    /// The base, under the same filters.
    pub base: Analysis,
    /// Rows of both sides.
    pub comparison: Comparison,
    /// What the two sides have in common.
    pub basis: Basis,
}

/// What makes values of two profiles comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Nothing that is known.
    Unknown,
    /// The new profile's values were brought to the base's net by this factor.
    Normalized(Ratio),
    /// Both did the same work.
    SameWork,
    /// Both did the same thing, the new one another number of times: its values were multiplied by
    /// this, and are of as much work as the base's.
    PerWork(Ratio),
}

impl Basis {
    /// What the new profile's values were multiplied by.
    pub fn factor(self) -> Option<Ratio> {
        match self {
            Self::Normalized(ratio) | Self::PerWork(ratio) => Some(ratio),
            Self::Unknown | Self::SameWork => None,
        }
    }

    /// What two profiles say of their work.
    fn of_work(new: &Profile, base: &Profile) -> Self {
        let (Some(new), Some(base)) = (new.meta().work(), base.meta().work()) else { return Self::Unknown };
        if new.name != base.name {
            return Self::Unknown;
        }
        if new.amount == base.amount {
            return Self::SameWork;
        }
        let amounts = i64::try_from(base.amount).ok().zip(i64::try_from(new.amount).ok());
        amounts.and_then(|(base, new)| Ratio::new(base, new)).map_or(Self::Unknown, Self::PerWork)
    }
}

/// How two profiles are to be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compare {
    /// As they are, or by their work where both tell it.
    #[default]
    AsRecorded,
    /// The new profile's values brought to the base's net.
    Normalized,
    /// Both did the same work, whatever they say.
    SameWork,
}

/// A comparison did not come about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareFailure {
    /// The profiles don't compare.
    #[error(transparent)]
    Incomparable(#[from] CompareError),
    /// Someone stopped it.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl Analysis {
    /// Counts everything; rows are in the order of reports.
    pub fn new(
        profile: Arc<Profile>,
        groups: FileGroups,
        value_type: usize,
        filters: &[Filter],
        cancel: &CancelFlag,
    ) -> Result<Self, Cancelled> {
        let stacks = Arc::new(Stacks::new(&profile, &groups, filters));
        let filters = filters.to_vec();
        let mut analysis = Self { profile, groups, value_type, filters, stacks, costs: Costs::default(), scale: None };
        analysis.costs = analysis.count(value_type, None, cancel)?;
        Ok(analysis)
    }

    /// Has a comparison of this with its base know what the pairs of runs say that both are sums of.
    ///
    /// Each pair was brought to its own base's amount of work. Where those differ, as with benchmarks that choose
    /// their iterations, pairs are brought to their mean, so that what differs is what one iteration costs.
    pub fn judge_by(&self, compared: &mut ComparedTo, runs: &[(Self, ComparedTo)]) {
        let is_of_work =
            |(_, compared): &(Self, ComparedTo)| matches!(compared.basis, Basis::SameWork | Basis::PerWork(_));
        let amount = |run: &(Self, ComparedTo)| {
            let work = run.1.base.profile.meta().work().filter(|_| is_of_work(run))?;
            i64::try_from(work.amount).ok()
        };
        let amounts: Vec<i64> = runs.iter().map_while(amount).collect();
        let count = i64::try_from(runs.len()).unwrap_or(i64::MAX).max(1);
        let mean = amounts.iter().try_fold(0_i64, |sum, &amount| sum.checked_add(amount)).map(|sum| sum / count);
        let scale = |at: usize| {
            let mean = mean.filter(|_| amounts.len() == runs.len())?;
            amounts.get(at).filter(|&&amount| amount != mean).and_then(|&amount| Ratio::new(mean, amount))
        };
        let runs: Vec<Run<'_>> = runs
            .iter()
            .enumerate()
            .map(|(at, (new, compared))| Run {
                new: new.side(None),
                base: compared.base.side(None),
                comparison: &compared.comparison,
                scale: scale(at),
            })
            .collect();
        compared.comparison.judge_by(self.side(None), compared.base.side(None), &runs);
    }

    /// The selected value type.
    pub fn selected(&self) -> &ValueType {
        &self.profile.value_types()[self.value_type]
    }

    /// Measures this profile against a base, under the same filters. Where values have to be
    /// multiplied first ([`Basis::factor`]), this profile's are, and stay so.
    pub fn compare_to(
        &mut self,
        base: Arc<Profile>,
        base_groups: FileGroups,
        how: Compare,
        cancel: &CancelFlag,
    ) -> Result<ComparedTo, CompareFailure> {
        let value_type = compare::matching_type(&base, self.selected())?;
        let base = Self::new(base, base_groups, value_type, &self.filters, cancel)?;
        let basis = match how {
            Compare::AsRecorded => Basis::of_work(&self.profile, &base.profile),
            Compare::Normalized => Basis::Normalized(compare::normalization(&self.costs, &base.costs)?),
            Compare::SameWork => Basis::SameWork,
        };
        self.scale = basis.factor();
        if self.scale.is_some() {
            self.costs = self.count(self.value_type, self.scale, cancel)?;
        }
        let counts = self.sample_counts(cancel)?;
        let base_counts = base.sample_counts(cancel)?;
        let comparison = compare::compare(self.side(counts.as_ref()), base.side(base_counts.as_ref()));
        Ok(ComparedTo { base, comparison, basis })
    }

    /// A value that the stacks say of the selected type, multiplied as the costs are.
    pub fn on_scale(&self, value: i64) -> i64 {
        self.scale.map_or(value, |scale| scale.apply(value))
    }

    /// What a target calls and is called by, of the selected type.
    pub fn calls(&self, target: &Target, cancel: &CancelFlag) -> Result<Calls, Cancelled> {
        let mut calls = self.stacks.calls(&self.profile, &self.groups, self.value_type, target, cancel)?;
        calls.each_value(|value| self.on_scale(value));
        Ok(calls)
    }

    /// Whose the samples are that pass a target: [`Stacks::owners`] of the selected type.
    pub fn owners<'o>(
        &self,
        target: &Target,
        owners: impl IntoIterator<Item = (&'o str, &'o [Filter])>,
        cancel: &CancelFlag,
    ) -> Result<Vec<Portion>, Cancelled> {
        let mut portions = self.stacks.owners(&self.profile, self.value_type, target, owners, cancel)?;
        for portion in &mut portions {
            portion.value = self.on_scale(portion.value);
        }
        Ok(portions)
    }

    fn side<'a>(&'a self, counts: Option<&'a Costs>) -> Side<'a> {
        Side { profile: &self.profile, groups: &self.groups, costs: &self.costs, counts }
    }

    fn sample_counts(&self, cancel: &CancelFlag) -> Result<Option<Costs>, Cancelled> {
        self.profile.sample_count_type().map(|column| self.count(column, None, cancel)).transpose()
    }

    /// The costs of any value type of the profile, in the order of reports.
    pub fn costs_of(&self, value_type: usize, cancel: &CancelFlag) -> Result<Costs, Cancelled> {
        self.count(value_type, None, cancel)
    }

    fn count(&self, value_type: usize, scale: Option<Ratio>, cancel: &CancelFlag) -> Result<Costs, Cancelled> {
        let mut costs = self.stacks.costs(&self.profile, &self.groups, value_type, scale, cancel)?;
        costs.sort(&self.profile, &self.groups);
        Ok(costs)
    }
}
