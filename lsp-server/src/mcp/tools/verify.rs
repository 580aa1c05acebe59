//! Records the same test again, and judges what a change of the code did.

use profiler_core::measure::{TELLING_PAIRS, Verdict};
use profiler_core::view::compare::{self, Changes};
use profiler_core::view::hotspots;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Tool;
use super::compare::row;
use crate::mcp::Refusal;
use crate::mcp::answer::Page;
use crate::mcp::arguments::Question;
use crate::mcp::desk::Desk;
use crate::mcp::laboratory::{self, Outcome};
use crate::mcp::turn::Turn;
use crate::runnable::{Kind, Order};
use crate::turns::{Side, Turns};

/// Rows of an answer; `compare` has the rest.
const ROWS: usize = 15;
/// Most pairs of runs of a call.
const MAX_PAIRS: u32 = 5;

/// See [`Tool::DESCRIPTION`].
pub(super) struct Verify;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(super) struct Arguments {
    /// What to measure the change against: the `profile_id` that `record` gave before the change, or
    /// `recording:NAME` of a test.
    base: String,
    /// How often base and new are measured, in turns, 1 to 5: what differs from run to run is known from 3 on, and
    /// small changes can be told from it. For what is compiled. Usually left out, which is 1.
    #[serde(default = "one")]
    pairs: u32,
    /// What a row is. Usually `function`.
    #[serde(default)]
    by: By,
    /// Value type to judge, as both recordings have it. Leave it out for the usual one.
    #[serde(rename = "type")]
    value_type: Option<String>,
}

fn one() -> u32 {
    1
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum By {
    Line,
    #[default]
    Function,
}

impl Tool for Verify {
    type Arguments = Arguments;
    const NAME: &'static str = "verify";
    const TITLE: &'static str = "Did the change help";
    const DESCRIPTION: &'static str = "Builds and records the test of an earlier recording again, doing the same work, and \
        says of everything and of each function or line whether it is improved, unchanged, regressed or inconclusive, \
        beyond chance. Refuses when the program was not rebuilt, or is of another command, type or machine. Example: \
        {\"base\": \"p-0123456789abcdef\"}. Next: `code` with the new profile_id, or the next change.";
    const ACTS: bool = true;

    fn answer(desk: &Desk, arguments: &Arguments, turn: &Turn) -> Result<Page, Refusal> {
        let root = desk.workspace();
        let folder = desk.folder(&root);
        laboratory::check(desk, &root, &folder)?;
        if !(1..=MAX_PAIRS).contains(&arguments.pairs) {
            return Err(Refusal::Arguments(format!("`pairs` takes 1 to {MAX_PAIRS}")));
        }
        let base = desk.recorded(&root, &arguments.base)?;
        let found = laboratory::again(&base, &root, &folder.config().tasks, turn)?;
        if laboratory::is_unchanged(&base, &root, &found) {
            return Err(Refusal::Failed(
                "not changed: every source file is the text that the base ran; change one, save it, and verify again"
                    .to_owned(),
            ));
        }
        // Of a program that runs until somebody stops it, shares of a time can be compared all the same.
        let kind = found.offer.runnable.kind;
        let judged = |unknown: Option<&str>| match unknown.filter(|_| kind != Kind::Main) {
            Some(why) => Err(Refusal::Failed(format!("{} can't be judged: {why}", found.name()))),
            None => Ok(unknown.is_none()),
        };
        let is_base_known = judged(base.about.work.unknown(kind))?;
        let order = Order { work: Some(base.about.work), ..found.order(&root) };
        let before = desk.before(&root, &base).map_err(|why| why.to_string());
        let turns = before.and_then(|before| Turns::new(before, &order, desk.all_recordings()));
        let (turns, can_turn) = match (arguments.pairs, turns) {
            (1, turns) => (None, turns.is_ok()),
            (_, Ok(turns)) => (Some(turns), true),
            (_, Err(why)) => return Err(Refusal::Arguments(format!("{why}; leave out `pairs`"))),
        };
        let order = turns.as_ref().map_or(&order, |turns| turns.ordered(Side::New)).clone();
        let recording = match laboratory::record(desk, &found, order, Some(&base.about.ran), turn)? {
            Outcome::Failed(page) => return Ok(page),
            Outcome::Recorded(recording) => recording,
        };
        let question = Question {
            profile: Some(recording.name()),
            value_type: arguments.value_type.clone(),
            ..Question::default()
        };
        if recording.failure().is_some() {
            let seen = desk.open(&question, &turn.cancel)?;
            let summary =
                format!("{} A test that fails is not judged: mend it, and verify again.", recording.in_words());
            return Page::new(Some(seen.about()), None, summary).recording(&recording.content(desk));
        }
        let is_work_known = judged(recording.unknown_work(&found))? && is_base_known;
        let seen = if let Some(turns) = turns {
            let pairs = (arguments.pairs, &base.about.ran);
            let runs = laboratory::in_turns(desk, &found, turns, &recording, pairs, turn)?;
            desk.open_in_turns(&Question { profile: None, ..question }, runs, &turn.cancel)?
        } else {
            desk.open_compared(&question, Some(&arguments.base), Some(false), &turn.cancel)?
        };
        let Some(comparison) = &seen.view.comparison else {
            return Err(Refusal::Failed("there is nothing to compare".to_owned()));
        };
        let by = match arguments.by {
            By::Line => hotspots::By::Line,
            By::Function => hotspots::By::Function,
        };
        let changes = compare::changes(seen.analysis(), &comparison.compared, by);
        // What it took altogether is then how long it was watched.
        let changes = Changes { total: changes.total.filter(|_| is_work_known), ..changes };
        let can_turn = would_tell_more(can_turn, arguments.pairs);
        let recorded = match arguments.pairs {
            1 => recording.in_words(),
            pairs => format!("Judged by {pairs} pairs of runs in turns, the first: {}", recording.in_words()),
        };
        let page =
            Page::new(Some(seen.about()), seen.about_base(), summary(&changes, arguments.by, can_turn, &recorded))
                .notes(recording.notes().chain(seen.notes()))
                .recording(&recording.content(desk))?
                .verdict(changes.total.map_or("unknown", |total| total.verdict.word()))
                .next("compare {\"profile\": …, \"base\": …, \"by\": \"line\"} has all rows without recording again");
        page.some_rows(changes.rows.len(), ROWS, |at| row(&seen, &changes.rows[at]))
    }
}

fn summary(changes: &Changes<'_>, by: By, can_turn: bool, recorded: &str) -> String {
    let everything = match &changes.total {
        Some(total) => format!("Everything {}: {}.", total.verdict.word(), changes.total_text),
        None => "Everything can't be judged by value.".to_owned(),
    };
    let counts: Vec<String> = changes
        .verdicts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(verdict, count)| format!("{count} {}", verdict.word()))
        .collect();
    let noun = match by {
        By::Line => "Lines",
        By::Function => "Functions",
    };
    let counts = if counts.is_empty() { String::new() } else { format!(" {noun}: {}.", counts.join(", ")) };
    let may_be_drift =
        changes.rows.iter().filter_map(|row| row.judged).chain(changes.total).any(|row| row.may_be_drift);
    let is_unclear = changes.total.is_none_or(|total| total.verdict == Verdict::Inconclusive);
    let advice = match (may_be_drift, is_unclear) {
        (false, false) => "",
        _ if can_turn => " What can't be told from this, `pairs`: 3 would tell, which runs base and new in turns.",
        (true, _) => {
            " What is inconclusive may be how fast the machine was: one recording of each can't tell so little from that."
        }
        (false, true) if changes.total.is_some() => " A test that runs longer would tell.",
        (false, true) => "",
    };
    format!("{everything}{counts}{advice} {recorded}")
}

/// Whether more pairs of runs would tell more, where there can be any: from some on it is known how much runs differ.
fn would_tell_more(can_turn: bool, pairs: u32) -> bool {
    can_turn && (pairs as usize) < TELLING_PAIRS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_pairs_are_advised_until_there_are_three() {
        let advised = |pairs| would_tell_more(true, pairs);
        assert_eq!([1, 2, 3, 5].map(advised), [true, true, false, false]);
        assert!(!would_tell_more(false, 1));
    }
}
