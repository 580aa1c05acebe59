//! The table of `perflens report`: what costs most, line by line, function by function or
//! file by file.
//!
//! With a workspace, rows are its hand-written lines, by what is spent *here*; everything
//! that no line of it causes is one row per package in a table of its own. Without one, rows
//! are whatever the profile names, by what is spent there *with calls*.

use super::document::{Block, Document, Role, Sentence, Span};
use super::summary::{self, Numbers, number_columns};
use super::table::{Column, Table};
use crate::attribute::analysis::Analysis;
use crate::attribute::{Cost, GroupId, Place};
use crate::measure::Heat;
use crate::profile::LineNo;

/// What a row of a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A line of a file.
    Line,
    /// A function.
    Function,
    /// A file.
    File,
}

impl By {
    /// The word for so many of them.
    pub(super) fn noun(self, count: usize) -> &'static str {
        match (self, count) {
            (Self::Line, 1) => "line",
            (Self::Line, _) => "lines",
            (Self::Function, 1) => "function",
            (Self::Function, _) => "functions",
            (Self::File, 1) => "file",
            (Self::File, _) => "files",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Line => "Lines",
            Self::Function => "Functions",
            Self::File => "Files",
        }
    }
}

/// How a view is asked for, so that it can say how to see more.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Name of the profile for people.
    pub origin: &'a str,
    /// What rows are.
    pub by: By,
    /// Rows of each table; 0 means all.
    pub top: usize,
    /// The command that explains where everything went, if there is one.
    pub explain: Option<&'a str>,
}

impl Options<'_> {
    /// Most rows of a table.
    pub(super) fn limit(&self) -> usize {
        if self.top == 0 { usize::MAX } else { self.top }
    }
}

/// One row, still as the analysis has it.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) cost: Cost,
    /// The function, or the first of several.
    pub(super) function: Option<&'a str>,
    /// How many functions there are besides.
    pub(super) further: usize,
    pub(super) file: GroupId,
    pub(super) line: LineNo,
}

/// Makes the whole view.
pub fn hotspots(analysis: &Analysis, options: &Options<'_>) -> Document {
    let mut document = Document::default();
    document.paragraph(summary::title(options.origin, analysis));
    document.blocks.extend(table(analysis, options));
    document.blocks.extend(elsewhere(analysis, options));
    document
        .paragraph(summary::accounting(analysis, options.explain).into_iter().chain(summary::labels_there(analysis)));
    document.paragraph(summary::notes(analysis));
    document
}

/// The table of what costs most; `None` when nothing costs anything. A profile without any
/// line has functions instead.
pub fn table(analysis: &Analysis, options: &Options<'_>) -> Option<Block> {
    table_of(analysis, options, &|_| true)
}

/// The same of some rows.
pub(super) fn table_of(
    analysis: &Analysis,
    options: &Options<'_>,
    is_wanted: &dyn Fn(&Row<'_>) -> bool,
) -> Option<Block> {
    let has_no_lines = options.by == By::Line && analysis.costs.lines.is_empty();
    let options = &Options { by: if has_no_lines { By::Function } else { options.by }, ..*options };
    let numbers = Numbers::of(analysis);
    let mut rows = listed(analysis, options.by);
    rows.retain(is_wanted);
    if rows.is_empty() {
        return None;
    }
    let own = summary::own_heading(analysis);
    let (ordering, other) = if summary::knows_own(analysis) { (own, "with calls") } else { ("with calls", own) };
    let caption = Sentence::default()
        .strong(format!("{} by cost {ordering}", options.by.title()))
        .text(if has_no_lines { ", as the profile has no lines; shares of " } else { ", shares of " })
        .then(numbers.whole());
    let mut columns = vec![Column::glyph()];
    columns.extend(number_columns(ordering, 1));
    columns.extend(number_columns(other, 2));
    columns.extend(place_columns(options.by));
    let mut table = Table::new(columns);
    table.rows = rows.iter().take(options.limit()).map(|row| cells(analysis, &numbers, options.by, row)).collect();
    let hidden = rows.len().saturating_sub(options.limit());
    let more = summary::more(hidden, options.by.noun(hidden));
    Some(Block::Table { caption, table, footers: more.into_iter().collect() })
}

/// The rows of [`table`], the dearest first.
pub(super) fn listed(analysis: &Analysis, by: By) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = rows(analysis, by).filter(|row| is_listed(analysis, row.file)).collect();
    if !summary::knows_own(analysis) {
        // With a workspace rows come by what they cause, which is not known here.
        rows.sort_by_key(|row| std::cmp::Reverse(row.cost.cumulative.unsigned_abs()));
    }
    rows
}

/// Every row, in the order of reports.
pub(super) fn rows<'a>(analysis: &'a Analysis, by: By) -> Box<dyn Iterator<Item = Row<'a>> + 'a> {
    let costs = &analysis.costs;
    match by {
        By::Line => Box::new(costs.lines.iter().map(|row| Row {
            cost: row.cost,
            function: row.functions.first().map(|&function| costs.functions[function].name.as_str()),
            further: row.functions.len().saturating_sub(1),
            file: row.file,
            line: row.line,
        })),
        By::Function => Box::new(costs.functions.iter().map(|row| Row {
            cost: row.cost,
            function: Some(&row.name),
            further: 0,
            file: row.file,
            line: row.start_line,
        })),
        By::File => Box::new(costs.files.iter().map(|row| Row {
            cost: row.cost,
            function: None,
            further: 0,
            file: row.file,
            line: LineNo::UNKNOWN,
        })),
    }
}

/// With a workspace only its own code is listed: that is what can be changed.
pub(super) fn is_listed(analysis: &Analysis, file: GroupId) -> bool {
    let placement = analysis.groups.get(file).placement.as_ref();
    !analysis.groups.has_workspace() || placement.is_some_and(|placement| placement.place == Place::Workspace)
}

fn cells(analysis: &Analysis, numbers: &Numbers, by: By, row: &Row<'_>) -> Vec<Span> {
    let (own, cumulative) = (summary::own(analysis, row.cost), row.cost.cumulative);
    let heat = numbers.heat(cumulative);
    let (ordering, other) = if summary::knows_own(analysis) { (own, cumulative) } else { (cumulative, own) };
    let mut cells = vec![Numbers::block(heat)];
    cells.extend(numbers.cells(ordering, Role::Heat(heat)));
    cells.extend(numbers.cells(other, Role::Plain));
    cells.extend(place_cells(analysis, by, row));
    cells
}

/// The columns that say where a row is.
pub(super) fn place_columns(by: By) -> Vec<Column> {
    match by {
        By::Line | By::Function => vec![Column::name("function"), Column::name("place")],
        By::File => vec![Column::name("file")],
    }
}

/// The cells of [`place_columns`].
pub(super) fn place_cells(analysis: &Analysis, by: By, row: &Row<'_>) -> Vec<Span> {
    let file = analysis.groups.display(&analysis.profile, row.file);
    let mut place = Span::data(file);
    if row.line.is_known() {
        let doubt = if analysis.groups.is_uncertain(row.file, row.line) { "~" } else { "" };
        place = place.followed_by(&format!(":{doubt}{}", row.line.0));
    }
    if by == By::File {
        return vec![place];
    }
    let mut function = Span::data(row.function.unwrap_or_default());
    if row.further > 0 {
        function = function.followed_by(&format!(" +{}", row.further));
    }
    vec![function, place.with_role(Role::Faint)]
}

/// What no line of the workspace causes, a row per package or binary.
pub(super) fn elsewhere(analysis: &Analysis, options: &Options<'_>) -> Option<Block> {
    let numbers = Numbers::of(analysis);
    let accounting = &analysis.costs.accounting;
    let shown = accounting.shown()?;
    if accounting.unplaced.is_empty() {
        return None;
    }
    let caption = Sentence::default()
        .strong("Elsewhere")
        .text(": ")
        .then(numbers.part_of_whole(analysis.costs.total - shown))
        .text(" that no line of the workspace causes, by package or binary");
    let mut columns = vec![Column::glyph()];
    columns.extend(number_columns("", 1));
    columns.push(Column::name(""));
    let mut table = Table::new(columns);
    table.rows = accounting
        .unplaced
        .iter()
        .take(options.limit())
        .map(|(name, weight)| {
            let mut cells = vec![Numbers::block(Heat::of(weight.value, analysis.costs.total))];
            cells.extend(numbers.cells(weight.value, Role::Plain));
            cells.push(Span::data(name));
            cells
        })
        .collect();
    let more = summary::more(accounting.unplaced.len().saturating_sub(options.limit()), "of them");
    Some(Block::Table { caption, table, footers: more.into_iter().collect() })
}
