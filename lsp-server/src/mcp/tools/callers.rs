//! Who calls a function or line, and what it calls.

use profiler_core::attribute::GroupId;
use profiler_core::attribute::calls::{Neighbour, Target};
use profiler_core::profile::LineNo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Tool;
use crate::mcp::Refusal;
use crate::mcp::answer::{Page, Row};
use crate::mcp::arguments::Question;
use crate::mcp::desk::Desk;
use crate::mcp::turn::Turn;

/// See [`Tool::DESCRIPTION`].
pub(super) struct Callers;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(super) struct Arguments {
    /// A function as `hot_spots` names it, such as `parse_line`.
    function: Option<String>,
    /// The file of the function, where several are called so; or with `line`, the file of the line.
    file: Option<String>,
    /// A line of `file`, instead of a function.
    #[schemars(range(min = 1))]
    line: Option<u32>,
    /// Only callers, or only callees. Usually both.
    direction: Option<Direction>,
    #[serde(flatten)]
    question: Question,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Direction {
    Callers,
    Callees,
}

#[derive(Serialize)]
struct Call {
    is: &'static str,
    function: String,
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    starts_at: Option<u32>,
    value: i64,
    text: String,
}

impl Tool for Callers {
    type Arguments = Arguments;
    const NAME: &'static str = "callers";
    const TITLE: &'static str = "Callers and callees";
    const DESCRIPTION: &'static str = "Who calls a function or line, and what it calls, with how much of the cost goes \
        that way; samples count once per row, so rows may add up to more than the whole. For code of a library also the \
        lines of this workspace that lead to it. Example: {\"function\": \"parse_line\"}, {\"file\": \"src/parser.rs\", \
        \"line\": 17} or {\"function\": \"parse_line\", \"direction\": \"callees\"}. Next: `code` of a caller or callee.";

    fn answer(desk: &Desk, arguments: &Arguments, turn: &Turn) -> Result<Page, Refusal> {
        if arguments.function.is_none() && (arguments.file.is_none() || arguments.line.is_none()) {
            return Err(Refusal::Arguments(
                "callers: give `function`, or `file` and `line`: {\"function\": \"parse_line\"}".to_owned(),
            ));
        }
        let seen = desk.open(&arguments.question, &turn.cancel)?;
        let analysis = seen.analysis();
        let file = arguments.file.as_deref().map(|file| seen.find_file(file)).transpose()?;
        let (target, what) = match (&arguments.function, file, arguments.line) {
            (Some(name), file, _) => {
                let row = &analysis.costs.functions[seen.find_function(name, file)?];
                (Target::Function(row.name.clone(), row.file), seen.text(&row.name))
            }
            (None, Some(file), Some(line)) => {
                let name = seen.file(analysis, file);
                if seen.view.group(file).line(line).is_none() {
                    return Err(Refusal::Arguments(format!(
                        "line {line} of {name} has no cost; `code` shows the lines that have"
                    )));
                }
                (Target::Line(file, LineNo(line)), format!("{name}:{line}"))
            }
            _ => return Err(Refusal::Arguments("callers: give `function`, or `file` and `line`".to_owned())),
        };
        let calls =
            analysis.calls(&target, &turn.cancel).map_err(|_| Refusal::Failed("it was cancelled".to_owned()))?;
        let cursor = seen.cursor(Self::NAME, arguments)?;
        let has = |direction| arguments.direction.is_none_or(|wanted| wanted == direction);
        let mut rows: Vec<(&'static str, &Neighbour)> = Vec::new();
        if has(Direction::Callers) {
            rows.extend(calls.own_callers.iter().map(|row| ("line of the workspace that leads to it", row)));
            rows.extend(calls.callers.iter().map(|row| ("caller", row)));
        }
        if has(Direction::Callees) {
            rows.extend(calls.callees.iter().map(|row| ("callee", row)));
        }
        let numbers = seen.numbers();
        let part = |value: i64| format!("{} {}", numbers.share(value), numbers.value(value)).trim().to_owned();
        let root = if calls.root == 0 { String::new() } else { format!(" {} has no caller.", part(calls.root)) };
        let mut summary =
            format!("{what}: {} with calls, {} by itself.{root}", part(calls.cumulative), part(calls.flat));
        if rows.is_empty() {
            summary.push_str(" The profile has no stacks there.");
        }
        Page::new(Some(seen.about()), None, summary)
            .next("code {\"function\": …} shows the source of one of them")
            .rows(&cursor, rows.len(), |at| {
                let (is, row) = rows[at];
                let known = |line: LineNo| line.is_known().then_some(line.0);
                let call = Call {
                    is,
                    function: if row.name.is_empty() { "unknown".to_owned() } else { seen.text(&row.name) },
                    file: if row.file == GroupId::NONE { String::new() } else { seen.file(analysis, row.file) },
                    line: known(row.line),
                    starts_at: known(row.start_line),
                    value: row.value,
                    text: part(row.value),
                };
                Row::new(&call, Some(seen.named(analysis, row.file)))
            })
    }
}
