//! Two profiles, row by row: new − base.
//!
//! Rows are matched by what they mean (workspace file or cleaned path, line, function name),
//! so builds at other addresses compare. Values must be of one type and unit.
//!
//! Where the two are sums of several pairs of runs, each row also knows what every pair says of it.

use rustc_hash::FxHashMap;

use super::{Cost, Costs, FileGroups, GroupId, Ratio};
use crate::measure::RunPair;
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
    /// Where its pairs of runs begin in [`Comparison::runs`]; `None` when it was not compared in several.
    runs: Option<u32>,
}

impl Pair {
    /// Both sides of anything that was compared once.
    pub fn new(new: SideCost, base: SideCost) -> Self {
        Self { new, base, runs: None }
    }

    /// new − base of flat.
    pub fn diff_flat(&self) -> i128 {
        i128::from(self.new.cost.flat) - i128::from(self.base.cost.flat)
    }

    /// new − base of cumulative.
    pub fn diff_cumulative(&self) -> i128 {
        i128::from(self.new.cost.cumulative) - i128::from(self.base.cost.cumulative)
    }

    /// Both costs with calls and the samples behind them; `None` where samples are not counted.
    pub fn run_pair(&self) -> Option<RunPair> {
        let samples = |side: &SideCost| u64::try_from(side.samples?).ok();
        Some(RunPair {
            new: self.new.cost.cumulative.into(),
            new_samples: samples(&self.new)?,
            base: self.base.cost.cumulative.into(),
            base_samples: samples(&self.base)?,
        })
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
    /// What pairs of runs say, row by row.
    runs: Vec<RunPair>,
    /// What each pair of runs has altogether.
    totals: Vec<RunPair>,
}

/// A pair of runs: both sides, and their rows.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// The new version's.
    pub new: Side<'a>,
    /// The base's.
    pub base: Side<'a>,
    /// Their rows.
    pub comparison: &'a Comparison,
    /// What brings its values to as much work as the mean of all runs, where they say how much they did.
    pub scale: Option<Ratio>,
}

impl Run<'_> {
    fn scaled(&self, pair: RunPair) -> RunPair {
        let Some(scale) = self.scale else { return pair };
        let scaled = |value: i128| i64::try_from(value).map_or(value, |value| scale.apply(value).into());
        RunPair { new: scaled(pair.new), base: scaled(pair.base), ..pair }
    }
}

impl Comparison {
    /// What each pair of runs that this is the sum of has altogether; empty for a single pair.
    pub fn run_totals(&self) -> &[RunPair] {
        &self.totals
    }

    /// What each pair of runs says of a row, in the order of [`run_totals`](Self::run_totals); empty
    /// when there are none, or one of them does not count its samples.
    pub fn runs_of(&self, pair: &Pair) -> &[RunPair] {
        pair.runs.and_then(|at| self.runs.get(at as usize..at as usize + self.totals.len())).unwrap_or_default()
    }

    /// Takes in what pairs of runs say, of whose sides this compares the sums.
    pub fn judge_by(&mut self, new: Side<'_>, base: Side<'_>, runs: &[Run<'_>]) {
        self.totals = runs.iter().map(|run| run.scaled(total_pair(run.new.costs, run.base.costs))).collect();
        self.runs.clear();
        let whole = (new, base);
        take_in(&mut self.lines, &mut self.runs, whole, runs, |of| &of.lines, line_key);
        take_in(&mut self.functions, &mut self.runs, whole, runs, |of| &of.functions, function_key);
        take_in(&mut self.files, &mut self.runs, whole, runs, |of| &of.files, file_key);
    }
}

/// What two sides have altogether. Samples that are not counted are 0, so that nothing can be judged by them.
pub fn total_pair(new: &Costs, base: &Costs) -> RunPair {
    let samples = |costs: &Costs| costs.samples.and_then(|samples| u64::try_from(samples).ok()).unwrap_or(0);
    RunPair { new: new.total.into(), new_samples: samples(new), base: base.total.into(), base_samples: samples(base) }
}

/// What a row of a side is called.
type Naming = for<'s> fn(Side<'s>, usize) -> Key<'s>;

/// Takes in what pairs of runs say of rows of one kind, which are matched by what they are called.
fn take_in(
    pairs: &mut [Pair],
    all: &mut Vec<RunPair>,
    (new, base): (Side<'_>, Side<'_>),
    runs: &[Run<'_>],
    rows: fn(&Comparison) -> &[Pair],
    name: Naming,
) {
    let mut said: FxHashMap<Key<'_>, Vec<Option<RunPair>>> = FxHashMap::default();
    for (at, run) in runs.iter().enumerate() {
        for pair in rows(run.comparison) {
            let Some(key) = key_of(pair, run.new, run.base, name) else { continue };
            said.entry(key).or_insert_with(|| vec![Some(NOTHING); runs.len()])[at] =
                pair.run_pair().map(|pair| run.scaled(pair));
        }
    }
    for pair in pairs {
        let said = key_of(pair, new, base, name).and_then(|key| said.get(&key));
        let Some(said) = said.and_then(|said| said.iter().copied().collect::<Option<Vec<_>>>()) else { continue };
        pair.runs = u32::try_from(all.len()).ok();
        all.extend(said);
    }
}

/// What a pair of runs says of a row that neither has.
const NOTHING: RunPair = RunPair { new: 0, new_samples: 0, base: 0, base_samples: 0 };

fn key_of<'s>(pair: &Pair, new: Side<'s>, base: Side<'s>, key: Naming) -> Option<Key<'s>> {
    match (pair.new.row, pair.base.row) {
        (Some(row), _) => Some(key(new, row)),
        (None, row) => Some(key(base, row?)),
    }
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
        ..Comparison::default()
    }
}

/// What a row is called: the same in both profiles. Displays in the order of reports.
type Key<'a> = (&'a str, &'a str, LineNo);
type Row<'a> = (Key<'a>, Cost);

fn lines<'a>(side: Side<'a>, costs: &'a Costs) -> Vec<Row<'a>> {
    (costs.lines.iter().enumerate()).map(|(at, row)| (line_key(Side { costs, ..side }, at), row.cost)).collect()
}

fn functions<'a>(side: Side<'a>, costs: &'a Costs) -> Vec<Row<'a>> {
    (costs.functions.iter().enumerate()).map(|(at, row)| (function_key(Side { costs, ..side }, at), row.cost)).collect()
}

fn files<'a>(side: Side<'a>, costs: &'a Costs) -> Vec<Row<'a>> {
    (costs.files.iter().enumerate()).map(|(at, row)| (file_key(Side { costs, ..side }, at), row.cost)).collect()
}

fn line_key(side: Side<'_>, row: usize) -> Key<'_> {
    let row = &side.costs.lines[row];
    ("", file(side, row.file), row.line)
}

fn function_key(side: Side<'_>, row: usize) -> Key<'_> {
    let row = &side.costs.functions[row];
    (row.name.as_str(), file(side, row.file), LineNo::UNKNOWN)
}

fn file_key(side: Side<'_>, row: usize) -> Key<'_> {
    ("", file(side, side.costs.files[row].file), LineNo::UNKNOWN)
}

fn file(side: Side<'_>, group: GroupId) -> &str {
    side.groups.display(side.profile, group)
}

fn pair_up<'a>(new: Side<'a>, base: Side<'a>, rows: impl Fn(Side<'a>, &'a Costs) -> Vec<Row<'a>>) -> Vec<Pair> {
    let absent = |side: Side<'_>| SideCost { samples: side.counts.map(|_| 0), ..SideCost::default() };
    let blank = Pair { new: absent(new), base: absent(base), runs: None };
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
