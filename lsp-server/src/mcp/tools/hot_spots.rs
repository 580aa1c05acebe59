//! What costs most.

use profiler_core::attribute::{Cost, GroupId, Place};
use profiler_core::profile::LineNo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Tool;
use crate::mcp::Refusal;
use crate::mcp::answer::{Page, Row};
use crate::mcp::arguments::Question;
use crate::mcp::desk::Desk;
use crate::mcp::seen::{Costs, Seen};
use crate::mcp::turn::Turn;

/// See [`Tool::DESCRIPTION`].
pub(super) struct HotSpots;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(super) struct Arguments {
    /// What a row is: a line, function or file of this workspace, or a package or binary for what no line of
    /// the workspace causes. Usually `line`.
    #[serde(default)]
    by: By,
    #[serde(flatten)]
    question: Question,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum By {
    #[default]
    Line,
    Function,
    File,
    Package,
}

#[derive(Serialize)]
struct Spot {
    rank: usize,
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<String>,
    /// First and last line of the function with samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    function_lines: Option<[u32; 2]>,
    #[serde(flatten)]
    costs: Costs,
}

#[derive(Serialize)]
struct Elsewhere {
    rank: usize,
    package: String,
    value: i64,
    text: String,
}

/// A row before it is written.
#[derive(Clone, Copy)]
pub(super) struct Spotted {
    file: GroupId,
    line: Option<LineNo>,
    function: Option<usize>,
    cost: Cost,
}

impl Tool for HotSpots {
    type Arguments = Arguments;
    const NAME: &'static str = "hot_spots";
    const TITLE: &'static str = "What costs most";
    const DESCRIPTION: &'static str = "Lists what costs most, the costliest first. `direct` is what a place of this \
        workspace causes, libraries it calls included, and decides the order; `flat` is the place alone; `cumulative` \
        includes everything it calls. Example: {} for lines, {\"by\": \"function\", \"filters\": [\"label.route=/search\"]} \
        for functions serving one route. Next: `code` with the file or function of a row, or `callers`.";

    fn answer(desk: &Desk, arguments: &Arguments, turn: &Turn) -> Result<Page, Refusal> {
        let seen = desk.open(&arguments.question, &turn.cancel)?;
        let cursor = seen.cursor(Self::NAME, arguments)?;
        let analysis = seen.analysis();
        if arguments.by == By::Package {
            let rows = &analysis.costs.accounting.unplaced;
            let numbers = seen.numbers();
            let summary = "Packages and binaries, by what no line of this workspace causes in them.".to_owned();
            return Page::new(Some(seen.about()), None, summary).rows(&cursor, rows.len(), |at| {
                let (name, weight) = &rows[at];
                let text = format!("{} {}", numbers.share(weight.value), numbers.value(weight.value));
                Row::new(&Elsewhere { rank: at + 1, package: seen.text(name), value: weight.value, text }, None)
            });
        }
        let rows = rows(&seen, arguments.by);
        let noun = match arguments.by {
            By::Line => "Lines",
            By::Function => "Functions",
            By::File | By::Package => "Files",
        };
        let order = if has_direct(&seen) { "what they cause (`direct`)" } else { "their own cost (`flat`)" };
        let summary = if rows.is_empty() {
            format!("{noun} of this workspace cost nothing: `explain` says why, `hot_spots` by package where it went.")
        } else {
            format!("{noun} of this workspace by {order}: {}.", rows.len())
        };
        Page::new(Some(seen.about()), None, summary)
            .next("code {\"file\": …, \"function\": …} shows the source of a row with its costs")
            .rows(&cursor, rows.len(), |at| spot(&seen, at, rows[at]))
    }
}

/// A row as it is answered.
pub(super) fn spot(seen: &Seen, at: usize, row: Spotted) -> Result<Row<'_>, Refusal> {
    let analysis = seen.analysis();
    let spot = Spot {
        rank: at + 1,
        file: seen.file(analysis, row.file),
        line: row.line.filter(|line| line.is_known()).map(|line| line.0),
        function: row.function.map(|function| seen.text(&analysis.costs.functions[function].name)),
        function_lines: row.function.and_then(|function| seen.span(function)),
        costs: seen.costs(row.cost),
    };
    Row::new(&spot, Some(seen.named(analysis, row.file)))
}

/// Whether lines of a workspace are known to cause something; in profiles of functions alone none is.
fn has_direct(seen: &Seen) -> bool {
    seen.analysis().costs.accounting.shown().is_some_and(|shown| shown > 0)
}

/// The rows of the workspace, the costliest first.
pub(super) fn rows(seen: &Seen, by: By) -> Vec<Spotted> {
    let analysis = seen.analysis();
    let costs = &analysis.costs;
    let has_workspace = analysis.groups.has_workspace();
    let has_direct = has_direct(seen);
    let is_own = |file: GroupId| {
        let placement = analysis.groups.get(file).placement.as_ref();
        !has_workspace || placement.is_some_and(|placement| placement.place == Place::Workspace)
    };
    let own = |cost: Cost| if has_direct { cost.direct } else { cost.flat };
    let mut rows: Vec<Spotted> = match by {
        By::Line => costs
            .lines
            .iter()
            .map(|row| Spotted {
                file: row.file,
                line: Some(row.line),
                function: row.functions.first().copied(),
                cost: row.cost,
            })
            .collect(),
        By::Function => (costs.functions.iter().enumerate())
            .map(|(at, row)| Spotted { file: row.file, line: Some(row.start_line), function: Some(at), cost: row.cost })
            .collect(),
        By::File | By::Package => costs
            .files
            .iter()
            .map(|row| Spotted { file: row.file, line: None, function: None, cost: row.cost })
            .collect(),
    };
    rows.retain(|row| is_own(row.file) && own(row.cost) != 0);
    // Stable: of equals the order of reports counts.
    rows.sort_by_key(|row| std::cmp::Reverse(own(row.cost).unsigned_abs()));
    rows
}
