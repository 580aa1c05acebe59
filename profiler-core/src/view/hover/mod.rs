//! What an editor shows about a line or a function when asked: a small table of what it costs,
//! what it calls and who calls it, and a line that says where the numbers are from.
//!
//! The table is text in a fence. Markdown tables are shown as raw pipes by half of the editors,
//! and lists can't align. Editors give a hover little room and several servers share it, so it
//! has at most [`MAX_LINES`] lines of [`MAX_COLUMNS`] columns.
//!
//! What is not here: the time of day (callers format it), and what edits of an open document do
//! to a line.

mod layout;
mod prose;

use super::by_file::{FileChanges, FileCosts};
use super::compare::Sides;
use super::document::Sentence;
use super::markdown;
use super::summary::{self, Numbers};
use super::text;
use crate::attribute::analysis::Analysis;
use crate::attribute::calls::{Calls, Neighbour, Portion};
use crate::attribute::compare::Pair;
use crate::attribute::{Cost, Costs, FunctionRow, GroupId, LineRow, Place};
use crate::profile::{LineNo, Profile};
use layout::{Cells, Row, name_row};

pub use layout::MAX_COLUMNS;

/// Most lines of the table. VS Code's hover is about 250 pixels high, and the hover of another
/// server often stands above ours.
pub const MAX_LINES: usize = 8;
/// Most value types besides the selected one.
const MAX_OTHERS: usize = 2;
/// Most rows of what it calls, and of who calls it.
const MAX_CALLEES: usize = 3;
const MAX_CALLERS: usize = 2;

/// What a hover is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A line of the profile, 1-based.
    Line(u32),
    /// A function, as a row of [`Costs::functions`].
    Function(usize),
}

impl Subject {
    /// What a line of the profile is about: the largest function that starts there, or else
    /// the line itself; `None` when neither costs anything.
    pub fn at(file: FileCosts<'_>, line: u32) -> Option<Self> {
        let functions = &file.analysis.costs.functions;
        let starting = file.functions().filter(|&function| functions[function].start_line.0 == line);
        let largest = starting.max_by_key(|&function| functions[function].cost.cumulative.unsigned_abs());
        largest.map(Self::Function).or_else(|| file.line(line).map(|_| Self::Line(line)))
    }
}

/// What else is known, all of it optional.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context<'a> {
    /// Costs of other value types, under the same filters; see [`other_types`].
    pub others: &'a [(usize, &'a Costs)],
    /// What the subject calls and who calls it, for the selected value type.
    pub calls: Option<&'a Calls>,
    /// Whose the cost is, where several share it.
    pub services: &'a [Portion],
    /// When the profile was taken, for people: `14:02–14:17`.
    pub measured: Option<&'a str>,
    /// The document has been edited since the profile was opened, elsewhere than on this line.
    pub is_edited: bool,
    /// Why the line may be another one, in words of ours, without a full stop:
    /// `file changed since 14:17; line moved from 15`.
    pub doubt: Option<&'a str>,
    /// The line awaits: its cost is that of polling, as far as the type is time on a processor.
    pub awaits: bool,
}

/// The value types that a hover shows besides the selected one: the first in the file that
/// say more than how many samples there were.
pub fn other_types(profile: &Profile, selected: usize) -> Vec<usize> {
    let types = profile.value_types();
    (0..types.len()).filter(|&other| other != selected && !types[other].is_sample_count()).take(MAX_OTHERS).collect()
}

/// A text for a popup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hover {
    /// The table, lines of text. Names in it are cut and harmless, but any of them may hold
    /// what markdown reads as markup.
    pub table: String,
    /// What the numbers are of and where they are from; one line.
    pub prose: Sentence,
}

impl Hover {
    /// As markdown: a fence and a line below it.
    pub fn markdown(&self) -> String {
        format!("{}\n{}\n", markdown::fenced(&self.table), markdown::inline(&self.prose))
    }

    /// As plain text, for clients that don't read markdown.
    pub fn plain(&self) -> String {
        format!("{}\n{}\n", self.table, text::plain_lines(std::slice::from_ref(&self.prose.spans)).trim_end())
    }
}

/// The hover of a line or function; `None` when it costs nothing.
pub fn hover(file: FileCosts<'_>, subject: Subject, context: &Context<'_>) -> Option<Hover> {
    let analysis = file.analysis;
    let title = match subject {
        Subject::Line(line) => Title::of_line(analysis, file.line(line)?),
        Subject::Function(row) => Title::of_function(analysis, analysis.costs.functions.get(row)?),
    };
    let numbers = Numbers::of(analysis);
    let mut rows = vec![heading(analysis, &title)];
    rows.push(cost_row(analysis, &numbers, numbers.kind(), title.cost));
    for &(value_type, costs) in context.others.iter().take(MAX_OTHERS) {
        // A type that has nothing here is not worth a line.
        if let Some(cost) = same_row(costs, &title) {
            let numbers = Numbers::of_type(&analysis.profile, value_type, costs);
            rows.push(cost_row(analysis, &numbers, numbers.kind(), cost));
        }
    }
    if let Some(calls) = context.calls {
        rows.extend(call_rows(analysis, &numbers, calls, title.place, MAX_LINES - rows.len()));
    }
    let whole = Sentence::new("Shares of ").then(prose::unmarked(&numbers.whole()));
    let parts = match context.measured {
        Some(measured) => vec![whole, Sentence::new(summary::counted(analysis)), Sentence::new(measured)],
        None => vec![whole, Sentence::new(summary::amount(analysis))],
    };
    let splits = prose::splits(&numbers, &title, &instances(analysis, &title), context);
    Some(Hover { table: layout::text(rows), prose: prose::prose(analysis, &title, parts, splits, context) })
}

/// The hover of a line or function in a comparison; `None` when it is on neither side. A
/// function is a row of the new side.
pub fn change_hover(file: FileChanges<'_>, subject: Subject, context: &Context<'_>) -> Option<Hover> {
    let pair = match subject {
        Subject::Line(line) => file.lines(line..=line).next()?.1,
        Subject::Function(row) => file.functions().find(|pair| pair.new.row == Some(row))?,
    };
    let sides = Sides::of(file.analysis, file.compared);
    // The side that has the words of the row.
    let (side, row) = match (pair.new.row, pair.base.row) {
        (Some(row), _) => (file.analysis, row),
        (None, row) => (&file.compared.base, row?),
    };
    let title = match subject {
        Subject::Line(_) => Title::of_line(side, &side.costs.lines[row]),
        Subject::Function(_) => Title::of_function(side, &side.costs.functions[row]),
    };
    let kind = sides.new_numbers.kind();
    let mut rows = vec![
        heading(side, &title),
        cost_row(sides.new, &sides.new_numbers, kind, pair.new.cost),
        cost_row(sides.base, &sides.base_numbers, "base", pair.base.cost),
        change_row(&sides, pair),
    ];
    if let Some(calls) = context.calls {
        rows.extend(call_rows(file.analysis, &sides.new_numbers, calls, title.place, MAX_LINES - rows.len()));
    }
    let sentences = prose::judgement(&sides, pair);
    let prose = prose::prose(side, &title, vec![prose::unmarked(&sides.amounts())], sentences, context);
    Some(Hover { table: layout::text(rows), prose })
}

/// What the table is about.
struct Title {
    /// The function, if it has a name.
    name: Option<String>,
    /// How many functions the line belongs to besides.
    further: usize,
    /// The line, unless it is about a function.
    line: Option<u32>,
    /// The line, or where the function starts.
    now: u32,
    file: GroupId,
    /// What the file is to the workspace; `None` without one.
    place: Option<Place>,
    cost: Cost,
}

impl Title {
    fn of_line(analysis: &Analysis, row: &LineRow) -> Self {
        Self {
            name: row.functions.first().map(|&function| analysis.costs.functions[function].name.clone()),
            further: row.functions.len().saturating_sub(1),
            line: Some(row.line.0),
            now: row.line.0,
            file: row.file,
            place: place_of(analysis, row.file),
            cost: row.cost,
        }
    }

    fn of_function(analysis: &Analysis, row: &FunctionRow) -> Self {
        let place = place_of(analysis, row.file);
        let (name, now) = (Some(row.name.clone()), row.start_line.0);
        Self { name, further: 0, line: None, now, file: row.file, place, cost: row.cost }
    }

    /// The first words of the table: `parse_line:17`, or `line 17` where that is too long. The
    /// name of a function stands there without a line.
    fn head(&self) -> (String, bool) {
        let name = self.name.as_deref().filter(|_| self.further == 0).and_then(layout::short_name);
        let (short, long) = match self.line {
            Some(line) => (name.map(|name| format!("{name}:{line}")), format!("line {line}")),
            None => (name, "function".to_owned()),
        };
        short.filter(|head| layout::fits_head(head)).map_or((long, false), |head| (head, true))
    }
}

fn heading(analysis: &Analysis, title: &Title) -> Row {
    let mut row = Row::new(&title.head().0);
    for (cells, heading) in Cells::ALL.into_iter().zip(headings(analysis)) {
        row.heading(cells, heading);
    }
    row
}

/// Without a workspace there is no `here`.
fn headings(analysis: &Analysis) -> &'static [&'static str] {
    if analysis.groups.has_workspace() { &["with calls", "here", "self"] } else { &["with calls", "self"] }
}

/// The values under [`headings`].
fn values(analysis: &Analysis, cost: Cost) -> Vec<i64> {
    if analysis.groups.has_workspace() {
        vec![cost.cumulative, cost.direct, cost.flat]
    } else {
        vec![cost.cumulative, cost.flat]
    }
}

fn cost_row(analysis: &Analysis, numbers: &Numbers, label: &str, cost: Cost) -> Row {
    let mut row = Row::new(&layout::label(label));
    for (cells, value) in Cells::ALL.into_iter().zip(values(analysis, cost)) {
        row.numbers(cells, &numbers.share(value), &numbers.value(value));
    }
    row
}

fn change_row(sides: &Sides<'_>, pair: &Pair) -> Row {
    let mut row = Row::new("change");
    let (new, base) = (values(sides.new, pair.new.cost), values(sides.new, pair.base.cost));
    for ((cells, new), base) in Cells::ALL.into_iter().zip(new).zip(base) {
        row.heading(cells, &sides.points(new, base).map_or_else(String::new, |points| points.to_string()));
    }
    row
}

/// The same line or function among the costs of another type.
fn same_row(costs: &Costs, title: &Title) -> Option<Cost> {
    if let Some(line) = title.line {
        return costs.lines.iter().find(|row| row.file == title.file && row.line.0 == line).map(|row| row.cost);
    }
    let name = title.name.as_deref()?;
    costs.functions.iter().find(|row| row.file == title.file && row.name == name).map(|row| row.cost)
}

/// What it calls, then who calls it. In code of others one's own lines that call it come first.
fn call_rows(analysis: &Analysis, numbers: &Numbers, calls: &Calls, place: Option<Place>, room: usize) -> Vec<Row> {
    let row = |label: &str, neighbour: &Neighbour, place: Option<String>| {
        let (share, value) = (numbers.share(neighbour.value), numbers.value(neighbour.value));
        name_row(label, &share, &value, &neighbour.name, place.as_deref())
    };
    // Only the first row of a kind says what it is.
    let label = |text: &'static str, at: usize| if at == 0 { text } else { "" };
    let is_foreign = place.is_some_and(|place| place != Place::Workspace);
    if is_foreign {
        let is_own = |caller: &&Neighbour| place_of(analysis, caller.file) == Some(Place::Workspace);
        let others = calls.callers.iter().filter(|caller| !is_own(caller));
        let callers = calls.own_callers.iter().chain(others).take(MAX_CALLEES).enumerate();
        let callers = callers.map(|(at, caller)| row(label("called by", at), caller, line_of(analysis, caller)));
        let callees = calls.callees.iter().take(MAX_CALLERS).enumerate();
        let callees = callees.map(|(at, callee)| row(label("calls", at), callee, None));
        return callers.chain(callees).take(room).collect();
    }
    let callees = calls.callees.iter().take(MAX_CALLEES).enumerate();
    let callees = callees.map(|(at, callee)| row(label("calls", at), callee, None));
    let callers = calls.callers.iter().take(MAX_CALLERS).enumerate();
    let callers = callers.map(|(at, caller)| row(label("called by", at), caller, None));
    callees.chain(callers).take(room).collect()
}

/// The functions that are declared where a function is, such as the instances of a generic one;
/// empty when it is the only one.
fn instances(analysis: &Analysis, title: &Title) -> Vec<Portion> {
    let functions = &analysis.costs.functions;
    let is_own = |row: &&FunctionRow| row.file == title.file && Some(&row.name) == title.name.as_ref();
    let Some(own) = functions.iter().find(is_own).filter(|own| title.line.is_none() && own.start_line.is_known())
    else {
        return Vec::new();
    };
    let is_there = |row: &&FunctionRow| row.file == own.file && row.start_line == own.start_line;
    let mut instances: Vec<Portion> = functions
        .iter()
        .filter(is_there)
        .map(|row| Portion { name: row.name.clone(), value: row.cost.cumulative })
        .collect();
    instances.sort_by(|a, b| b.value.unsigned_abs().cmp(&a.value.unsigned_abs()).then_with(|| a.name.cmp(&b.name)));
    if instances.len() > 1 { instances } else { Vec::new() }
}

fn place_of(analysis: &Analysis, file: GroupId) -> Option<Place> {
    analysis.groups.get(file).placement.as_ref().map(|placement| placement.place)
}

/// `src/log_stats.rs:31`.
fn line_of(analysis: &Analysis, caller: &Neighbour) -> Option<String> {
    let file = analysis.groups.display(&analysis.profile, caller.file);
    match caller.line {
        _ if file.is_empty() => None,
        LineNo::UNKNOWN => Some(file.to_owned()),
        line => Some(format!("{file}:{}", line.0)),
    }
}
