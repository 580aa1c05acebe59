//! Exact costs of lines, functions and files, and the accounting of every sample.
//!
//! Definitions, for the selected value type and the samples that filters keep; a value of 0
//! is no sample:
//! * **flat**: Σv of samples whose leaf is there;
//! * **cumulative**: Σv of samples that pass there anywhere, each sample once;
//! * **direct**: Σv of samples whose innermost frame *in hand-written workspace code with a
//!   line* is there; only with a workspace;
//! * **total** Σ|v|, **net** Σv.
//!
//! Functions and files are computed from samples like lines, never as a sum of lines.
//!
//! What is not here: percentages and text ([`measure`](crate::measure),
//! [`view`](crate::view)), and how a path is matched ([`paths`](crate::paths)).

pub mod accounting;
pub mod analysis;
pub mod calls;
pub mod choices;
pub mod compare;
mod files;
mod filter;
mod frames;
pub mod narrow;
mod pass;
mod place;
mod prune;
pub mod tree;

pub use accounting::Accounting;
pub use files::{FileGroup, FileGroups, GroupId, Place, Placement};
pub use filter::{Field, Filter, FilterError, FrameField, Scope};

use crate::cancel::{CancelFlag, Cancelled};
use crate::profile::{LineNo, MapId, Profile};
use accounting::Weight;
use frames::{Frames, LineFunctions, Owners};
use pass::{Job, Selection, Sums};
use prune::Pruning;

/// What a line, function or file costs, in the unit of the selected value type. May be
/// negative where the profile has negative values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Σv of samples whose leaf is here.
    pub flat: i64,
    /// Σv of samples whose innermost own frame is here; 0 without a workspace.
    pub direct: i64,
    /// Σv of samples that pass here, each once.
    pub cumulative: i64,
}

/// What to count.
#[derive(Clone, Debug, Default)]
pub struct Query<'a> {
    /// Index of the value type.
    pub value_type: usize,
    /// All must hold.
    pub filters: &'a [Filter],
    /// Multiplies every value before it is counted.
    pub scale: Option<Ratio>,
}

/// A factor for values, exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    numerator: i64,
    denominator: i64,
}

impl Ratio {
    /// `None` when the denominator is 0.
    pub fn new(numerator: i64, denominator: i64) -> Option<Self> {
        (denominator != 0).then_some(Self { numerator, denominator })
    }

    /// The value times the ratio, rounded half away from zero, held within an `i64`.
    ///
    /// ```
    /// use profiler_core::attribute::Ratio;
    /// let half = Ratio::new(1, 2).unwrap();
    /// assert_eq!([half.apply(3), half.apply(-3), half.apply(4)], [2, -2, 2]);
    /// ```
    pub fn apply(self, value: i64) -> i64 {
        let product = i128::from(value) * i128::from(self.numerator);
        let denominator = i128::from(self.denominator);
        let magnitude = (product.abs() * 2 + denominator.abs()) / (denominator.abs() * 2);
        let signed = if (product < 0) == (denominator < 0) { magnitude } else { -magnitude };
        i64::try_from(signed).unwrap_or(if signed < 0 { i64::MIN + 1 } else { i64::MAX })
    }
}

/// One line with a cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineRow {
    /// The file.
    pub file: GroupId,
    /// The line.
    pub line: LineNo,
    /// What it costs.
    pub cost: Cost,
    /// Functions with samples on this line, as indexes into [`Costs::functions`]; by falling
    /// |cumulative| on the line, then by name.
    pub functions: FunctionList,
}

/// Positions of functions. Nearly every line belongs to one, which takes no memory of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FunctionList {
    /// No function with a name.
    #[default]
    None,
    /// One.
    One(usize),
    /// Several.
    Several(Box<[usize]>),
}

impl std::ops::Deref for FunctionList {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        match self {
            Self::None => &[],
            Self::One(function) => std::slice::from_ref(function),
            Self::Several(functions) => functions,
        }
    }
}

impl std::ops::DerefMut for FunctionList {
    fn deref_mut(&mut self) -> &mut [usize] {
        match self {
            Self::None => &mut [],
            Self::One(function) => std::slice::from_mut(function),
            Self::Several(functions) => functions,
        }
    }
}

impl FromIterator<usize> for FunctionList {
    fn from_iter<I: IntoIterator<Item = usize>>(functions: I) -> Self {
        let functions: Vec<usize> = functions.into_iter().collect();
        match functions[..] {
            [] => Self::None,
            [one] => Self::One(one),
            _ => Self::Several(functions.into()),
        }
    }
}

/// One function with a cost; the same name in the same file is one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionRow {
    /// The demangled name.
    pub name: String,
    /// The file it is declared in.
    pub file: GroupId,
    /// Where its declaration starts.
    pub start_line: LineNo,
    /// What it costs.
    pub cost: Cost,
}

/// One source file with a cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRow {
    /// The file.
    pub file: GroupId,
    /// What it costs.
    pub cost: Cost,
}

/// All costs of one value type. Rows are in no useful order; see [`Costs::sort`].
#[derive(Clone, Debug, Default)]
pub struct Costs {
    /// Σ|v| of kept samples: what shares are of.
    pub total: i64,
    /// Σv of kept samples.
    pub net: i64,
    /// Kept samples with a value.
    pub records: u64,
    /// Σ|v| of the type that counts samples, over the same samples; `None` without such a type.
    pub samples: Option<i64>,
    /// Every line a kept sample touches, even when its values cancel out.
    pub lines: Vec<LineRow>,
    /// Every function, likewise.
    pub functions: Vec<FunctionRow>,
    /// Every source file, likewise.
    pub files: Vec<FileRow>,
    /// What was on lines that today's text does not have any more, by file. It counts for
    /// functions and files, and is in no line.
    pub gone: Vec<FileRow>,
    /// Where every sample went.
    pub accounting: Accounting,
    /// What could not be done as the profile asks; sentences for the user.
    pub notes: Vec<String>,
}

/// Most filters in one query.
pub const MAX_FILTERS: usize = 64;

/// The stacks of a profile, after `drop_frames` and filters, ready to be counted: for any
/// value type, and for callers and callees. Made once per profile and filters.
pub struct Stacks {
    frames: Frames,
    pruning: Option<Pruning>,
    owners: Owners,
    filters: Vec<Filter>,
    notes: Vec<String>,
}

impl std::fmt::Debug for Stacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stacks").field("filters", &self.filters).finish_non_exhaustive()
    }
}

/// Counts everything, in one pass.
///
/// # Panics
/// When there are more than [`MAX_FILTERS`] filters.
pub fn attribute(
    profile: &Profile,
    groups: &FileGroups,
    query: &Query<'_>,
    cancel: &CancelFlag,
) -> Result<Costs, Cancelled> {
    Stacks::new(profile, groups, query.filters).costs(profile, groups, query.value_type, query.scale, cancel)
}

impl Stacks {
    /// Decides what can be decided before anything is counted.
    ///
    /// # Panics
    /// When there are more than [`MAX_FILTERS`] filters.
    pub fn new(profile: &Profile, groups: &FileGroups, filters: &[Filter]) -> Self {
        assert!(filters.len() <= MAX_FILTERS, "too many filters");
        let mut notes = Vec::new();
        let pruning = Pruning::of(profile).unwrap_or_else(|sentence| {
            notes.push(sentence);
            None
        });
        Self {
            frames: Frames::new(profile, groups, filters, pruning.as_ref()),
            owners: Owners::new(profile, groups),
            pruning,
            filters: filters.to_vec(),
            notes,
        }
    }

    /// Counts everything, in one pass. Profile and groups are those the stacks were made of.
    pub fn costs(
        &self,
        profile: &Profile,
        groups: &FileGroups,
        value_type: usize,
        scale: Option<Ratio>,
        cancel: &CancelFlag,
    ) -> Result<Costs, Cancelled> {
        let selection = Selection::of(&self.filters);
        let job = Job {
            profile,
            frames: &self.frames,
            owners: &self.owners,
            groups,
            pruning: self.pruning.as_ref(),
            value_type,
            sample_counts: profile.sample_count_type(),
            scale,
            selection: &selection,
        };
        let sums = pass::run(&job, cancel)?;
        let (functions, function_index) = self.function_rows(&sums);
        let is_gone = |row: usize| !self.frames.lines[row].line.is_known();
        let lines = sums
            .lines
            .touched()
            .filter(|&(row, _)| !is_gone(row))
            .map(|(row, cost)| {
                let key = self.frames.lines[row];
                let functions = self.functions_of_line(row, &sums, &functions, &function_index);
                LineRow { file: key.file, line: key.line, cost, functions }
            })
            .collect();
        let gone = (sums.lines.touched().filter(|&(row, _)| is_gone(row)))
            .map(|(row, cost)| FileRow { file: self.frames.lines[row].file, cost })
            .collect();
        let files = sums
            .files
            .touched()
            .map(|(row, cost)| FileRow { file: GroupId(u32::try_from(row).unwrap_or(0)), cost })
            .collect();
        let accounting = Accounting {
            leaf: sums.leaf,
            reach: sums.reach,
            workspace: groups.has_workspace().then_some(sums.standing),
            filtered: sums.filtered,
            unplaced: unplaced(&self.owners, &sums.unplaced),
            without_lines: without_lines(&sums.without_lines),
        };
        Ok(Costs {
            total: sums.total,
            net: sums.net,
            records: sums.records,
            samples: profile.sample_count_type().map(|_| sums.samples),
            lines,
            functions,
            files,
            gone,
            accounting,
            notes: self.notes.clone(),
        })
    }

    /// The touched functions, and per row of the pass where it went. Functions without a name
    /// have no row of their own.
    fn function_rows(&self, sums: &Sums) -> (Vec<FunctionRow>, Vec<Option<usize>>) {
        let mut index = vec![None; self.frames.functions.len()];
        let mut functions = Vec::new();
        for (row, cost) in sums.functions.touched() {
            let key = &self.frames.functions[row];
            if key.name.is_empty() {
                continue;
            }
            index[row] = Some(functions.len());
            functions.push(FunctionRow {
                name: key.name.to_string(),
                file: key.file,
                start_line: key.start_line,
                cost,
            });
        }
        (functions, index)
    }

    fn functions_of_line(
        &self,
        row: usize,
        sums: &Sums,
        functions: &[FunctionRow],
        index: &[Option<usize>],
    ) -> FunctionList {
        match &self.frames.line_functions[row] {
            LineFunctions::None => FunctionList::None,
            LineFunctions::One(function) => index[*function as usize].map_or(FunctionList::None, FunctionList::One),
            LineFunctions::Several(pairs) => {
                let mut touched: Vec<_> = pairs
                    .iter()
                    .map(|&(function, pair)| (sums.pairs[pair as usize], function))
                    .filter(|(cell, _)| cell.stamp != 0)
                    .filter_map(|(cell, function)| Some((cell.cumulative.unsigned_abs(), index[function as usize]?)))
                    .collect();
                touched.sort_by(|(a, a_function), (b, b_function)| {
                    b.cmp(a).then_with(|| functions[*a_function].name.cmp(&functions[*b_function].name))
                });
                touched.into_iter().map(|(_, function)| function).collect()
            }
        }
    }
}

impl<'a> Selection<'a> {
    fn of(filters: &'a [Filter]) -> Self {
        let mut selection = Self { wanted: 0, unwanted: 0, label_filters: Vec::new() };
        let mut bit = 0;
        for filter in filters.iter().filter(|filter| filter.scope() == Scope::Samples) {
            if !matches!(filter.field(), Field::Frame(_)) {
                selection.label_filters.push(filter);
                continue;
            }
            let bits = if filter.is_negated() { &mut selection.unwanted } else { &mut selection.wanted };
            *bits |= 1 << bit;
            bit += 1;
        }
        selection
    }
}

fn without_lines(weights: &[Weight]) -> Vec<(MapId, Weight)> {
    let ids = (0..).map(MapId).zip(weights.iter().copied());
    let mut rows: Vec<_> = ids.filter(|(mapping, weight)| !mapping.is_none() && weight.records > 0).collect();
    rows.sort_by_key(|(mapping, weight)| (std::cmp::Reverse(weight.value), *mapping));
    rows
}

fn unplaced(owners: &Owners, weights: &[Weight]) -> Vec<(String, Weight)> {
    let mut rows: Vec<_> =
        owners.names.iter().cloned().zip(weights.iter().copied()).filter(|(_, weight)| weight.records > 0).collect();
    rows.sort_by(|a, b| b.1.value.cmp(&a.1.value).then_with(|| a.0.cmp(&b.0)));
    rows
}

impl Costs {
    /// Puts rows in the order of reports: |direct| falling where there is a workspace, else
    /// |cumulative|; then by file or name, then by line.
    pub fn sort(&mut self, profile: &Profile, groups: &FileGroups) {
        let by_direct = groups.has_workspace();
        let key = |cost: &Cost| {
            let first = if by_direct { cost.direct } else { cost.cumulative };
            std::cmp::Reverse(first.unsigned_abs())
        };
        let rank = groups.ranks(profile);
        let rank = |file: GroupId| rank[file.index()];
        self.lines.sort_by_key(|row| (key(&row.cost), rank(row.file), row.line));
        self.files.sort_by_key(|row| (key(&row.cost), rank(row.file)));
        // Lines refer to functions by position.
        let mut order: Vec<usize> = (0..self.functions.len()).collect();
        order.sort_by(|&a, &b| {
            let (a, b) = (&self.functions[a], &self.functions[b]);
            (key(&a.cost).cmp(&key(&b.cost)))
                .then_with(|| a.name.cmp(&b.name))
                .then_with(|| rank(a.file).cmp(&rank(b.file)))
        });
        let mut position = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            position[old] = new;
        }
        for function in self.lines.iter_mut().flat_map(|line| line.functions.iter_mut()) {
            *function = position[*function];
        }
        self.functions = order.iter().map(|&old| self.functions[old].clone()).collect();
    }
}
