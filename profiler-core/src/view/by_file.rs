//! Where the rows of one file are. Costs come in the order of what costs most; an editor asks
//! for one file, and for a few lines of it, many times a second.
//!
//! An index is made once per analysis and holds row numbers only, a word per row; the rows
//! stay in [`Costs`]. Finding a file or a line is a binary search.
//!
//! What is not here: lines of a document that has been edited since. All line numbers are
//! those of the profile, 1-based.

use std::ops::RangeInclusive;
use std::path::Path;

use rustc_hash::FxHashMap;

use super::summary;
use crate::attribute::analysis::{Analysis, ComparedTo};
use crate::attribute::compare::Pair;
use crate::attribute::{Costs, FunctionRow, GroupId, LineRow};

/// Functions up to this place are told it; further down it says nothing.
const MAX_RANK: usize = 50;

/// Where the rows of each file are.
#[derive(Clone, Debug)]
pub struct FileIndex {
    /// Rows of [`Costs::lines`], by line.
    lines: Grouped,
    /// Rows of [`Costs::functions`], by start line, then by name.
    functions: Grouped,
    /// Source files, by the name shown.
    by_name: Vec<GroupId>,
    /// Files found on this machine, by path.
    by_path: Vec<GroupId>,
    /// Functions by what they are to blame for, the most first.
    ranked: Vec<u32>,
    /// Samples per function, in the order of [`Costs::functions`].
    samples: Option<Vec<u32>>,
}

/// Rows by the file they belong to.
#[derive(Clone, Debug)]
struct Grouped {
    rows: Vec<u32>,
    /// Per file where its rows start, and at last where they end.
    starts: Vec<u32>,
}

impl Grouped {
    /// Sorts rows `0..count` by a key that starts with the file.
    fn new<K: Ord>(files: usize, count: usize, file: impl Fn(usize) -> GroupId, key: impl Fn(usize) -> K) -> Self {
        let mut rows: Vec<u32> = (0u32..).take(count).collect();
        rows.sort_unstable_by_key(|&row| (file(row as usize), key(row as usize)));
        let mut starts = vec![0; files + 1];
        for &row in &rows {
            starts[file(row as usize).index() + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        Self { rows, starts }
    }

    fn of(&self, file: GroupId) -> &[u32] {
        &self.rows[self.starts[file.index()] as usize..self.starts[file.index() + 1] as usize]
    }
}

impl FileIndex {
    /// Indexes an analysis. `counts` are its costs for the type that counts samples, if there
    /// is one and it is not the selected type itself.
    pub fn new(analysis: &Analysis, counts: Option<&Costs>) -> Self {
        let (profile, groups, costs) = (&analysis.profile, &analysis.groups, &analysis.costs);
        let files = groups.all().len();
        let all = || (1u32..).map(GroupId).take(files - 1);
        let mut by_name: Vec<GroupId> = all().filter(|&file| groups.get(file).is_source).collect();
        // Where a path of the profile reads like a file of the workspace, the file is meant.
        by_name.sort_by_key(|&file| (groups.display(profile, file), groups.workspace_file(file).is_none()));
        by_name.dedup_by_key(|file| groups.display(profile, *file));
        let mut by_path: Vec<GroupId> = all().filter(|&file| path(analysis, file).is_some()).collect();
        by_path.sort_by_key(|&file| path(analysis, file));
        Self {
            lines: Grouped::new(files, costs.lines.len(), |row| costs.lines[row].file, |row| costs.lines[row].line),
            functions: Grouped::new(
                files,
                costs.functions.len(),
                |row| costs.functions[row].file,
                |row| (costs.functions[row].start_line, &costs.functions[row].name),
            ),
            by_name,
            by_path,
            ranked: ranked(analysis),
            samples: samples(analysis, counts),
        }
    }

    /// The file that is shown to people under this name: relative to its root, with `/`.
    pub fn named(&self, analysis: &Analysis, name: &str) -> Option<GroupId> {
        let display = |file: GroupId| analysis.groups.display(&analysis.profile, file);
        let at = self.by_name.binary_search_by(|&file| display(file).cmp(name)).ok()?;
        Some(self.by_name[at])
    }

    /// The file that is here on this machine: where it was found, or else where the profile
    /// says it was built.
    pub fn at(&self, analysis: &Analysis, wanted: &Path) -> Option<GroupId> {
        match self.by_path.binary_search_by(|&file| path(analysis, file).cmp(&Some(wanted))) {
            Ok(at) => Some(self.by_path[at]),
            Err(_) => self.named(analysis, wanted.to_str()?),
        }
    }

    /// The place of a function (a row of [`Costs::functions`]) among all, by what it is to
    /// blame for, from 1; only of the first 50.
    pub(super) fn rank(&self, function: usize) -> Option<usize> {
        self.ranked.iter().position(|&row| row as usize == function).map(|at| at + 1)
    }

    /// The number of samples that pass a function; `None` when samples are not counted.
    pub(super) fn samples(&self, function: usize) -> Option<u32> {
        self.samples.as_ref().map(|samples| samples[function])
    }
}

fn path(analysis: &Analysis, file: GroupId) -> Option<&Path> {
    analysis.groups.get(file).placement.as_ref()?.path.as_deref()
}

fn ranked(analysis: &Analysis) -> Vec<u32> {
    let own = |row: u32| summary::own(analysis, analysis.costs.functions[row as usize].cost).unsigned_abs();
    let mut rows: Vec<u32> =
        (0u32..).take(analysis.costs.functions.len()).filter(|&function| own(function) != 0).collect();
    // Rows are in the order of reports, which decides between equals.
    rows.sort_by_key(|&row| std::cmp::Reverse(own(row)));
    rows.truncate(MAX_RANK);
    rows.shrink_to_fit();
    rows
}

/// Samples per function. Both costs are of the same profile, but a row may be in one only.
fn samples(analysis: &Analysis, counts: Option<&Costs>) -> Option<Vec<u32>> {
    let functions = &analysis.costs.functions;
    let count = |row: &FunctionRow| u32::try_from(row.cost.cumulative.unsigned_abs()).unwrap_or(u32::MAX);
    if analysis.selected().is_sample_count() {
        return Some(functions.iter().map(count).collect());
    }
    let counted: FxHashMap<_, u32> = counts?.functions.iter().map(|row| ((&row.name, row.file), count(row))).collect();
    Some(functions.iter().map(|row| counted.get(&(&row.name, row.file)).copied().unwrap_or(0)).collect())
}

/// One file of an analysis.
#[derive(Clone, Copy, Debug)]
pub struct FileCosts<'a> {
    /// What everything costs.
    pub analysis: &'a Analysis,
    /// Its index.
    pub index: &'a FileIndex,
    /// The file.
    pub file: GroupId,
}

impl<'a> FileCosts<'a> {
    /// The lines with a cost within a range, in the order of the file.
    pub fn lines(self, lines: RangeInclusive<u32>) -> impl Iterator<Item = &'a LineRow> {
        let costs = &self.analysis.costs;
        let rows = self.index.lines.of(self.file);
        let from = rows.partition_point(|&row| costs.lines[row as usize].line.0 < *lines.start());
        let end = *lines.end();
        rows[from..].iter().map(|&row| &costs.lines[row as usize]).take_while(move |row| row.line.0 <= end)
    }

    /// All lines with a cost, in the order of the file.
    pub fn all_lines(self) -> impl Iterator<Item = &'a LineRow> {
        self.lines(1..=u32::MAX)
    }

    /// A line, if it has a cost.
    pub fn line(self, line: u32) -> Option<&'a LineRow> {
        self.lines(line..=line).next()
    }

    /// The functions declared in the file, as rows of [`Costs::functions`]; by start line,
    /// those without one first.
    pub fn functions(self) -> impl Iterator<Item = usize> {
        self.index.functions.of(self.file).iter().map(|&row| row as usize)
    }
}

/// Where the changes of each file are. Files go by the name shown to people, since the file
/// may be on one side only.
#[derive(Clone, Debug)]
pub struct ChangeIndex {
    /// Indexes of [`Comparison::lines`](crate::attribute::compare::Comparison::lines), by
    /// file, then by line.
    lines: Vec<u32>,
    /// Likewise of functions.
    functions: Vec<u32>,
}

impl ChangeIndex {
    /// Indexes a comparison.
    pub fn new<'a>(analysis: &'a Analysis, compared: &'a ComparedTo) -> Self {
        let sorted = |pairs: &[Pair], place: fn(&'a Analysis, &'a ComparedTo, &Pair) -> Named<'a>| {
            let mut rows: Vec<u32> = (0u32..).take(pairs.len()).collect();
            rows.sort_by_key(|&row| place(analysis, compared, &pairs[row as usize]));
            rows
        };
        Self {
            lines: sorted(&compared.comparison.lines, line),
            functions: sorted(&compared.comparison.functions, function),
        }
    }
}

/// A file by its name, and a line.
type Named<'a> = (&'a str, u32);

/// The line that a pair is about.
fn line<'a>(analysis: &'a Analysis, compared: &'a ComparedTo, pair: &Pair) -> Named<'a> {
    let (side, row) = words(analysis, compared, pair);
    let row = &side.costs.lines[row];
    (side.groups.display(&side.profile, row.file), row.line.0)
}

/// Where the function that a pair is about starts.
fn function<'a>(analysis: &'a Analysis, compared: &'a ComparedTo, pair: &Pair) -> Named<'a> {
    let (side, row) = words(analysis, compared, pair);
    let row = &side.costs.functions[row];
    (side.groups.display(&side.profile, row.file), row.start_line.0)
}

/// The side that names a row, and the row there. Every pair has a row on one side at least.
fn words<'a>(analysis: &'a Analysis, compared: &'a ComparedTo, pair: &Pair) -> (&'a Analysis, usize) {
    match (pair.new.row, pair.base.row) {
        (Some(row), _) => (analysis, row),
        (None, row) => (&compared.base, row.unwrap_or_default()),
    }
}

/// One file of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct FileChanges<'a> {
    /// The new side.
    pub analysis: &'a Analysis,
    /// The base, and what differs.
    pub compared: &'a ComparedTo,
    /// Their index.
    pub index: &'a ChangeIndex,
    /// The file, by the name shown to people.
    pub name: &'a str,
}

impl<'a> FileChanges<'a> {
    /// The lines of either side within a range, with their numbers; a line that is gone has
    /// that of the base.
    pub fn lines(self, lines: RangeInclusive<u32>) -> impl Iterator<Item = (u32, &'a Pair)> {
        let pairs = &self.compared.comparison.lines;
        let place = move |row: u32| line(self.analysis, self.compared, &pairs[row as usize]);
        let rows = &self.index.lines;
        let from = rows.partition_point(|&row| place(row) < (self.name, *lines.start()));
        let end = *lines.end();
        rows[from..]
            .iter()
            .map(move |&row| (place(row), &pairs[row as usize]))
            .take_while(move |&((name, line), _)| name == self.name && line <= end)
            .map(|((_, line), pair)| (line, pair))
    }

    /// All lines of either side.
    pub fn all_lines(self) -> impl Iterator<Item = (u32, &'a Pair)> {
        self.lines(1..=u32::MAX)
    }

    /// The functions of either side that are declared in the file.
    pub fn functions(self) -> impl Iterator<Item = &'a Pair> {
        let pairs = &self.compared.comparison.functions;
        let place = move |row: u32| function(self.analysis, self.compared, &pairs[row as usize]);
        let rows = &self.index.functions;
        let from = rows.partition_point(|&row| place(row) < (self.name, 0));
        rows[from..].iter().take_while(move |&&row| place(row).0 == self.name).map(|&row| &pairs[row as usize])
    }
}
