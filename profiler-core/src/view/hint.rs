//! The costs of lines as an editor writes them behind the code.
//!
//! What is not here: tooltips ([`hover`](super::hover)), and where in an edited document a
//! line of the profile is.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use super::by_file::{FileChanges, FileCosts};
use super::compare::{Change, Sides};
use super::label::{self, Style};
use super::summary::Numbers;
use crate::attribute::LineRow;
use crate::measure::Share;

/// Which lines get a hint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// All that cost enough.
    #[default]
    All,
    /// Only those from heat level 2 on, 3 % of what was placed: those that have a mark in the
    /// overview ruler. In a comparison, those that changed by more than 3 pp
    /// and more than chance.
    Hot,
}

/// How hints are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Lines below this part of what was placed in the workspace get none; in hundredths of a
    /// percent, so 10 is 0.1 %.
    pub min_basis_points: u32,
    /// Most hints of a file; those of the largest costs are kept.
    pub max_per_file: usize,
    /// Which lines get one.
    pub mode: Mode,
    /// How labels are written.
    pub style: Style,
}

impl Default for Settings {
    fn default() -> Self {
        Self { min_basis_points: 10, max_per_file: 500, mode: Mode::default(), style: Style::default() }
    }
}

/// A text behind a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The line of the profile, 1-based.
    pub line: u32,
    /// The text, at most [`label::MAX_COLUMNS`] wide.
    pub label: String,
    /// The text with `~`, for where the line of a document may be another.
    pub doubtful: String,
    /// Only the base of a comparison has the line, and its number is that of the base.
    pub is_gone: bool,
}

/// The hints of a range of lines, in the order of the file.
pub fn hints(file: FileCosts<'_>, lines: RangeInclusive<u32>, settings: &Settings) -> Vec<Hint> {
    let numbers = Numbers::of(file.analysis);
    // The limit is one for the file, so that scrolling never changes which lines have a hint.
    let is_hot = |row: &LineRow| settings.mode == Mode::All || numbers.heat(row.cost.cumulative).level() >= 2;
    let mut rows: Vec<&LineRow> =
        file.all_lines().filter(|row| is_worth_it(&numbers, row.cost.cumulative, settings) && is_hot(row)).collect();
    let size = |row: &LineRow| row.cost.cumulative.unsigned_abs();
    keep_first(&mut rows, settings.max_per_file, |a, b| size(b).cmp(&size(a)).then(a.line.cmp(&b.line)));
    rows.retain(|row| lines.contains(&row.line.0));
    rows.sort_unstable_by_key(|row| row.line);
    rows.into_iter()
        .map(|row| {
            let label = |is_uncertain| label::cost(file.analysis, &numbers, row.cost, is_uncertain, settings.style);
            let is_uncertain = file.analysis.groups.is_uncertain(file.file, row.line);
            Hint { line: row.line.0, label: label(is_uncertain), doubtful: label(true), is_gone: false }
        })
        .collect()
}

/// Whether a cost reaches the threshold.
pub(super) fn is_worth_it(numbers: &Numbers, cumulative: i64, settings: &Settings) -> bool {
    cumulative != 0
        && Share::of(cumulative, numbers.placed())
            .is_some_and(|share| share.is_at_least(settings.min_basis_points, 10_000))
}

/// The hints of a comparison: what changed by 0.1 pp or more, in the order of the file.
/// Thresholds of costs don't apply.
pub fn change_hints(file: FileChanges<'_>, lines: RangeInclusive<u32>, settings: &Settings) -> Vec<Hint> {
    let sides = Sides::of(file.analysis, file.compared);
    let mut rows: Vec<(u32, Change<'_>)> = file
        .all_lines()
        .map(|(line, pair)| (line, sides.change(pair)))
        .filter(|(_, change)| change.is_shown() && (settings.mode == Mode::All || change.is_much()))
        .collect();
    keep_first(&mut rows, settings.max_per_file, |(a_line, a), (b_line, b)| b.cmp_size(a).then(a_line.cmp(b_line)));
    rows.retain(|(line, _)| lines.contains(line));
    rows.sort_unstable_by_key(|&(line, _)| line);
    rows.into_iter()
        .map(|(line, change)| {
            let label = |is_uncertain| label::change(&sides, &change, is_uncertain, settings.style);
            let is_gone = change.pair.new.row.is_none();
            Hint { line, label: label(sides.is_uncertain(change.pair)), doubtful: label(true), is_gone }
        })
        .collect()
}

/// Keeps the first rows of an order, and not their order.
fn keep_first<T>(rows: &mut Vec<T>, count: usize, order: impl FnMut(&T, &T) -> Ordering) {
    if rows.len() > count {
        rows.select_nth_unstable_by(count, order);
        rows.truncate(count);
    }
}
