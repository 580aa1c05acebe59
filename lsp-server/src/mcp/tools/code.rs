//! The source of a file or function with its costs.

use std::ops::RangeInclusive;

use profiler_core::attribute::{GroupId, LineRow};
use profiler_core::view::annotate::{self, Subject};
use profiler_core::view::document::{Block, Document, Sentence};
use profiler_core::view::markdown;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Tool;
use crate::mcp::Refusal;
use crate::mcp::answer::{MAX_BYTES, Page, Row};
use crate::mcp::arguments::Question;
use crate::mcp::desk::Desk;
use crate::mcp::seen::{Costs, Seen};
use crate::mcp::turn::Turn;

/// Lines before the first and after the last that costs something.
const AROUND: usize = 3;
/// Lines of a page that are tried, the largest number that fits is taken.
const LINES: [usize; 10] = [120, 90, 60, 40, 25, 15, 8, 4, 2, 1];
/// What the exact costs of a page leave to its code.
const MAX_CODE: usize = 4200;

/// See [`Tool::DESCRIPTION`].
pub(super) struct Code;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(super) struct Arguments {
    /// A file of the workspace, such as `src/main.rs`; the end of a path will do where it is the only one.
    file: Option<String>,
    /// A function as `hot_spots` names it, such as `parse_line` or `demo::parse_line`.
    function: Option<String>,
    /// First line to show. Usually the function's, or a few before the first line with a cost.
    #[schemars(range(min = 1))]
    from_line: Option<u32>,
    /// Last line to show.
    #[schemars(range(min = 1))]
    to_line: Option<u32>,
    #[serde(flatten)]
    question: Question,
}

#[derive(Serialize)]
struct Costly {
    line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<String>,
    #[serde(flatten)]
    costs: Costs,
}

impl Tool for Code {
    type Arguments = Arguments;
    const NAME: &'static str = "code";
    const TITLE: &'static str = "Source with costs";
    const DESCRIPTION: &'static str = "Shows the source of a file or function with the cost of every line in the margin, \
        and the exact integers of each line with a cost. Give `file`, `function` or both. Example: {\"file\": \
        \"src/parser.rs\"}, {\"function\": \"parse_line\"} or {\"file\": \"src/parser.rs\", \"from_line\": 10, \"to_line\": \
        60}. Next: `callers` of the function, or change the code and measure again.";

    fn answer(desk: &Desk, arguments: &Arguments, turn: &Turn) -> Result<Page, Refusal> {
        if arguments.file.is_none() && arguments.function.is_none() {
            return Err(Refusal::Arguments(
                "code: give `file` or `function`, as `hot_spots` names them: {\"file\": \"src/main.rs\"}".to_owned(),
            ));
        }
        let seen = desk.open(&arguments.question, &turn.cancel)?;
        let file = arguments.file.as_deref().map(|file| seen.find_file(file)).transpose()?;
        let function = arguments.function.as_deref().map(|name| seen.find_function(name, file)).transpose()?;
        let analysis = seen.analysis();
        let file = function.map(|function| analysis.costs.functions[function].file).or(file).unwrap_or(GroupId::NONE);
        let cursor = seen.cursor(Self::NAME, arguments)?;
        let rows: Vec<&LineRow> = seen.view.group(file).all_lines().collect();
        let source = seen.source(file).unwrap_or_default();
        let lines = wanted(&seen, arguments, function, &rows, source.len());
        let summary = summary(&seen, file, function, &lines, source.is_empty());
        let page = || Page::new(Some(seen.about()), None, summary.clone());
        let in_page = |lines: &RangeInclusive<usize>| -> Vec<&LineRow> {
            rows.iter().filter(|row| lines.contains(&(row.line.0 as usize))).copied().collect()
        };
        if source.is_empty() {
            let rows = in_page(&lines);
            return page().rows(&cursor, rows.len(), |at| line(&seen, rows[at]));
        }
        let start = lines.start() + cursor.from;
        if start > *lines.end() {
            return Ok(page());
        }
        let name = seen.view.origin.as_str();
        let subject = Subject { origin: name, base_origin: "", file, source: &source };
        let last = LINES.len() - 1;
        for (try_number, count) in LINES.into_iter().enumerate() {
            let shown = start..=(start + count - 1).min(*lines.end());
            let Block::Table { table, .. } = annotate::listing(analysis, None, &subject, shown.clone()) else { break };
            let mut document = Document::default();
            document.table(Sentence::default(), table, Vec::new());
            let code = markdown::render(&document);
            if code.len() > MAX_CODE && try_number < last {
                continue;
            }
            let costly = in_page(&shown);
            let mut answer = page().code(code, &seen.named(analysis, file));
            if shown.end() < lines.end() {
                answer = answer.go_on(&cursor, shown.end() + 1 - lines.start(), lines.end() - shown.end());
            }
            let whole = answer.rows(&cursor.restarted(), costly.len(), |at| line(&seen, costly[at]))?;
            if whole.row_count() == costly.len() && whole.size()? <= MAX_BYTES || try_number == last {
                return Ok(whole.next("callers {\"function\": …} shows who calls it and what it calls"));
            }
        }
        Ok(page())
    }
}

/// The lines to show.
fn wanted(
    seen: &Seen,
    arguments: &Arguments,
    function: Option<usize>,
    rows: &[&LineRow],
    length: usize,
) -> RangeInclusive<usize> {
    let last_costly = rows.last().map_or(1, |row| row.line.0 as usize);
    let end = if length == 0 { last_costly } else { length };
    let (first, last) = if let Some([first, last]) = function.and_then(|function| seen.span(function)) {
        (first as usize, last as usize + AROUND)
    } else {
        let first = rows.first().map_or(1, |row| row.line.0 as usize);
        (first.saturating_sub(AROUND), last_costly + AROUND)
    };
    let first = arguments.from_line.map_or(first, |line| line as usize).clamp(1, end.max(1));
    let last = arguments.to_line.map_or(last, |line| line as usize).min(end);
    first..=last
}

fn summary(
    seen: &Seen,
    file: GroupId,
    function: Option<usize>,
    lines: &RangeInclusive<usize>,
    has_no_source: bool,
) -> String {
    let analysis = seen.analysis();
    let (what, cost) = if let Some(function) = function {
        let row = &analysis.costs.functions[function];
        (format!("{} in {}", seen.text(&row.name), seen.file(analysis, file)), Some(row.cost))
    } else {
        let row = analysis.costs.files.iter().find(|row| row.file == file);
        (seen.file(analysis, file), row.map(|row| row.cost))
    };
    let cost = cost.map_or_else(|| "no cost".to_owned(), |cost| seen.costs(cost).text);
    if has_no_source {
        return format!("{what}: {cost}. Its source is not in this workspace, so only costs are listed.");
    }
    format!(
        "{what}: {cost}. Lines {} to {}, margin: share and value with calls, then what the line causes.",
        lines.start(),
        lines.end()
    )
}

fn line<'a>(seen: &Seen, row: &LineRow) -> Result<Row<'a>, Refusal> {
    let functions = &seen.analysis().costs.functions;
    let function = row.functions.first().map(|&function| seen.text(&functions[function].name));
    Row::new(&Costly { line: row.line.0, function, costs: seen.costs(row.cost) }, None)
}
