//! Two profiles, row by row: new − base.
//!
//! Rows are matched by what they mean (workspace file or cleaned path, line, function name),
//! so builds at other addresses compare. Values must be of one type and unit.

use rustc_hash::FxHashMap;

use super::{Cost, Costs, FileGroups, GroupId, Ratio};
use crate::profile::{LineNo, Profile, ValueType};

/// One of the two profiles.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// Its files.
    pub groups: &'a FileGroups,
    /// Its costs for the compared type.
    pub costs: &'a Costs,
    /// Its costs for the type that counts samples, for judging noise.
    pub counts: Option<&'a Costs>,
}

/// What a row costs on one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SideCost {
    /// The costs; all 0 when the row is not there.
    pub cost: Cost,
    /// Samples that pass here; `None` when the profile does not count samples.
    pub samples: Option<i64>,
    /// Index of the row in that side's [`Costs`]; `None` when it is not there.
    pub row: Option<usize>,
}

/// One line, function or file on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The new profile.
    pub new: SideCost,
    /// The base.
    pub base: SideCost,
}

impl Pair {
    /// new − base of flat.
    pub fn diff_flat(&self) -> i128 {
        i128::from(self.new.cost.flat) - i128::from(self.base.cost.flat)
    }

    /// new − base of cumulative.
    pub fn diff_cumulative(&self) -> i128 {
        i128::from(self.new.cost.cumulative) - i128::from(self.base.cost.cumulative)
    }

    /// new − base of direct.
    pub fn diff_direct(&self) -> i128 {
        i128::from(self.new.cost.direct) - i128::from(self.base.cost.direct)
    }
}

/// All rows of either side; by falling |difference of cumulative|, then by name.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Lines.
    pub lines: Vec<Pair>,
    /// Functions.
    pub functions: Vec<Pair>,
    /// Files.
    pub files: Vec<Pair>,
}

/// Two profiles can't be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// The base has no such type and unit.
    #[error("the base has no value type {wanted}; it has {known}")]
    TypesDiffer {
        /// The type of the new profile.
        wanted: ValueType,
        /// All types of the base.
        known: String,
    },
    /// Normalising needs something to divide by.
    #[error("the values of the new profile add up to 0, so they can't be normalised to the base")]
    NothingToNormalize,
    /// Normalising needs something to multiply with.
    #[error("the values of the base add up to 0, so the new profile can't be normalised to it")]
    NothingToNormalizeTo,
    /// The factor would carry the total beyond an `i64`.
    #[error("normalised to the base, the values of the new profile add up to more than 2^63 − 1")]
    Overflow,
}

/// The base's value type to compare with.
pub fn matching_type(base: &Profile, wanted: &ValueType) -> Result<usize, CompareError> {
    base.value_types().iter().position(|value_type| value_type == wanted).ok_or_else(|| CompareError::TypesDiffer {
        wanted: wanted.clone(),
        known: base.value_types().iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    })
}

/// The factor that gives the new profile the base's net.
pub fn normalization(new: &Costs, base: &Costs) -> Result<Ratio, CompareError> {
    let ratio = Ratio::new(base.net, new.net).ok_or(CompareError::NothingToNormalize)?;
    if base.net == 0 {
        return Err(CompareError::NothingToNormalizeTo);
    }
    // Half a unit per record is the most that rounding adds.
    let scaled = i128::from(new.total) * i128::from(base.net).abs() / i128::from(new.net).abs();
    if scaled + i128::from(new.records) > i128::from(i64::MAX) {
        return Err(CompareError::Overflow);
    }
    Ok(ratio)
}

/// Matches the rows of two sides.
pub fn compare(new: Side<'_>, base: Side<'_>) -> Comparison {
    Comparison {
        lines: pair_up(new, base, lines),
        functions: pair_up(new, base, functions),
        files: pair_up(new, base, files),
    }
}

/// What a row is called: the same in both profiles. Displays in the order of reports.
type Key<'a> = (&'a str, &'a str, LineNo);
type Row<'a> = (Key<'a>, Cost);

fn lines<'a>(side: Side<'a>, costs: &'a Costs) -> Vec<Row<'a>> {
    costs.lines.iter().map(|row| (("", file(side, row.file), row.line), row.cost)).collect()
}

fn functions<'a>(side: Side<'a>, costs: &'a Costs) -> Vec<Row<'a>> {
    costs.functions.iter().map(|row| ((row.name.as_str(), file(side, row.file), LineNo::UNKNOWN), row.cost)).collect()
}

fn files<'a>(side: Side<'a>, costs: &'a Costs) -> Vec<Row<'a>> {
    costs.files.iter().map(|row| (("", file(side, row.file), LineNo::UNKNOWN), row.cost)).collect()
}

fn file(side: Side<'_>, group: GroupId) -> &str {
    side.groups.display(side.profile, group)
}

fn pair_up<'a>(new: Side<'a>, base: Side<'a>, rows: impl Fn(Side<'a>, &'a Costs) -> Vec<Row<'a>>) -> Vec<Pair> {
    let absent = |side: Side<'_>| SideCost { samples: side.counts.map(|_| 0), ..SideCost::default() };
    let blank = Pair { new: absent(new), base: absent(base) };
    let mut pairs: FxHashMap<Key<'a>, Pair> = FxHashMap::default();
    for (side, pick) in [(new, pick_new as fn(&mut Pair) -> &mut SideCost), (base, pick_base)] {
        for (index, (key, cost)) in rows(side, side.costs).into_iter().enumerate() {
            let at = pick(pairs.entry(key).or_insert(blank));
            at.cost = cost;
            at.row = Some(index);
        }
        for (key, count) in side.counts.map(|counts| rows(side, counts)).into_iter().flatten() {
            if let Some(pair) = pairs.get_mut(&key) {
                pick(pair).samples = Some(count.cumulative);
            }
        }
    }
    let mut rows: Vec<(Key<'a>, Pair)> = pairs.into_iter().collect();
    rows.sort_by(|(a_key, a), (b_key, b)| {
        (b.diff_cumulative().unsigned_abs().cmp(&a.diff_cumulative().unsigned_abs())).then_with(|| a_key.cmp(b_key))
    });
    rows.into_iter().map(|(_, pair)| pair).collect()
}

fn pick_new(pair: &mut Pair) -> &mut SideCost {
    &mut pair.new
}

fn pick_base(pair: &mut Pair) -> &mut SideCost {
    &mut pair.base
}
