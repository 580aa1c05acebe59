//! How hot each line of a file is, for marks beside the code: bars, signs, an overview ruler,
//! and a column of numbers before it.
//!
//! What is not here: colours, and which levels a client draws.

use super::by_file::{FileChanges, FileCosts};
use super::compare::{Change, Sides};
use super::document::Role;
use super::hint::{self, Settings};
use super::summary::Numbers;

/// The mark of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineHeat {
    /// The line of the profile, 1-based.
    pub line: u32,
    /// What is drawn.
    pub mark: Mark,
    /// Share of the total, or how much that changed: `34.0%`, `+7.7pp`.
    pub share: String,
    /// The value, in a comparison the new one: `1.20s`.
    pub value: String,
}

/// What is drawn at a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A level: of a cost 0 (nothing) to 4; of what became more, 4 by more than 3 pp, 2 by
    /// less, and 0 when it may well be chance.
    Level(u8),
    /// It became less.
    Better,
}

/// The marks of a file, by line. Lines below the threshold have none; the limit of hints and
/// their mode don't apply.
pub fn heat(file: FileCosts<'_>, settings: &Settings) -> Vec<LineHeat> {
    let numbers = Numbers::of(file.analysis);
    file.all_lines()
        .filter(|row| hint::is_worth_it(&numbers, row.cost.cumulative, settings))
        .map(|row| LineHeat {
            line: row.line.0,
            mark: Mark::Level(numbers.heat(row.cost.cumulative).level()),
            share: numbers.share(row.cost.cumulative),
            value: numbers.value(row.cost.cumulative),
        })
        .collect()
}

/// The marks of a comparison, by line: where it changed by 0.1 pp or more. A line that is gone
/// has the number it has in the base.
pub fn change_heat(file: FileChanges<'_>) -> Vec<LineHeat> {
    let sides = Sides::of(file.analysis, file.compared);
    file.all_lines()
        .map(|(line, pair)| (line, sides.change(pair)))
        .filter(|(_, change)| change.is_shown())
        .map(|(line, change)| LineHeat {
            line,
            mark: mark(&change),
            share: change.points.map_or_else(String::new, |points| points.to_string()),
            value: sides.new_numbers.value(change.pair.new.cost.cumulative),
        })
        .collect()
}

/// What is drawn for a change.
pub(super) fn mark(change: &Change<'_>) -> Mark {
    match change.role() {
        Role::MuchMore => Mark::Level(4),
        Role::More => Mark::Level(2),
        Role::Less => Mark::Better,
        _ => Mark::Level(0),
    }
}
