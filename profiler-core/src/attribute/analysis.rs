//! A profile, the question asked of it, and the answer, kept together: what every view
//! starts from.

use super::compare::{self, CompareError, Comparison, Side};
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
}

/// A profile measured against a base.
#[derive(Clone, Debug)]
pub struct ComparedTo {
    /// The base, under the same filters.
    pub base: Analysis,
    /// Rows of both sides.
    pub comparison: Comparison,
    /// The new profile's values were brought to the base's net by this factor.
    pub normalized_by: Option<Ratio>,
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
        let mut analysis = Self { profile, groups, value_type, filters, stacks, costs: Costs::default() };
        analysis.costs = analysis.count(value_type, None, cancel)?;
        Ok(analysis)
    }

    /// The selected value type.
    pub fn selected(&self) -> &ValueType {
        &self.profile.value_types()[self.value_type]
    }

    /// Measures this profile against a base, under the same filters. With `normalize`, this
    /// profile's values are first brought to the base's net, and stay so.
    pub fn compare_to(
        &mut self,
        base: Arc<Profile>,
        base_groups: FileGroups,
        normalize: bool,
        cancel: &CancelFlag,
    ) -> Result<ComparedTo, CompareFailure> {
        let value_type = compare::matching_type(&base, self.selected())?;
        let base = Self::new(base, base_groups, value_type, &self.filters, cancel)?;
        let normalized_by = if normalize { Some(compare::normalization(&self.costs, &base.costs)?) } else { None };
        if normalized_by.is_some() {
            self.costs = self.count(self.value_type, normalized_by, cancel)?;
        }
        let counts = self.sample_counts(cancel)?;
        let base_counts = base.sample_counts(cancel)?;
        let comparison = compare::compare(self.side(counts.as_ref()), base.side(base_counts.as_ref()));
        Ok(ComparedTo { base, comparison, normalized_by })
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
