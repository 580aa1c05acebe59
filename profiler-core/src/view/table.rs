//! Tables whose columns start at one display column in every row, whatever is in them: wide
//! characters take two, combining ones none.
//!
//! On a terminal the columns of names give way so that a row fits a line; numbers never do.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::document::{Role, Span};

/// Rows in columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The columns, from left to right.
    pub columns: Vec<Column>,
    /// The rows, each with one span per column.
    pub rows: Vec<Vec<Span>>,
}

/// How a column looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    heading: String,
    gap: usize,
    least: usize,
    is_right: bool,
    fit: Fit,
}

/// What becomes of a text that is too long for its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// It is never cut.
    Whole,
    /// Its first folders are left out, or its middle.
    Name,
    /// Its end is left out.
    End,
}

/// The least a column of names is given; below that lines are left to wrap.
const LEAST_NAME: usize = 12;

impl Column {
    /// A column of single characters.
    pub fn glyph() -> Self {
        Self { heading: String::new(), gap: 0, least: 1, is_right: false, fit: Fit::Whole }
    }

    /// A column of numbers, their ends below each other. A heading may reach over columns
    /// without one to the left.
    pub fn number(heading: &str) -> Self {
        Self { heading: heading.to_owned(), gap: 2, least: 0, is_right: true, fit: Fit::Whole }
    }

    /// A column of short words of ours.
    pub fn words(heading: &str) -> Self {
        Self { heading: heading.to_owned(), gap: 2, least: 0, is_right: false, fit: Fit::Whole }
    }

    /// A column of names or paths.
    pub fn name(heading: &str) -> Self {
        Self { heading: heading.to_owned(), gap: 2, least: 0, is_right: false, fit: Fit::Name }
    }

    /// A column of source lines.
    pub fn code() -> Self {
        Self { heading: String::new(), gap: 1, least: 0, is_right: false, fit: Fit::End }
    }

    /// What stands above it; empty for columns that the heading to their right reaches over.
    pub(super) fn heading(&self) -> &str {
        &self.heading
    }

    /// Whether it holds numbers, their ends below each other.
    pub(super) fn is_number(&self) -> bool {
        self.is_right
    }

    /// Whether it holds source lines, whose blanks mean something.
    pub(super) fn is_code(&self) -> bool {
        self.fit == Fit::End
    }

    /// The same column, so many blanks away from the one before.
    #[must_use]
    pub fn after(self, gap: usize) -> Self {
        Self { gap, ..self }
    }
}

impl Table {
    /// A table without rows.
    pub fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// The lines of the table, the headings first; no wider than `width` as far as names can
    /// give way. Without a width nothing is cut.
    pub fn lay_out(&self, width: Option<usize>) -> Vec<Vec<Span>> {
        let widths = self.widths(width);
        let mut lines = Vec::with_capacity(self.rows.len() + 1);
        if self.columns.iter().any(|column| !column.heading.is_empty()) {
            lines.push(vec![self.headings(&widths)]);
        }
        lines.extend(self.rows.iter().map(|row| self.row(row, &widths)));
        lines
    }

    fn widths(&self, limit: Option<usize>) -> Vec<usize> {
        let mut widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, column)| {
                let cells = self.rows.iter().map(|row| row[i].text.width()).max().unwrap_or(0);
                // Headings of numbers reach to the left instead.
                if column.is_right { cells } else { cells.max(column.heading.width()).max(column.least) }
            })
            .collect();
        self.make_room_for_headings(&mut widths);
        let Some(limit) = limit else { return widths };
        let flexible: Vec<usize> = (0..widths.len()).filter(|&i| self.columns[i].fit != Fit::Whole).collect();
        let gaps: usize = self.columns.iter().map(|column| column.gap).sum();
        let fixed: usize = (0..widths.len()).filter(|i| !flexible.contains(i)).map(|i| widths[i]).sum();
        let mut left = limit.saturating_sub(fixed + gaps);
        let mut open = flexible;
        // Columns that need less than an equal part leave the rest to the others.
        open.sort_by_key(|&i| widths[i]);
        for (done, &i) in open.iter().enumerate() {
            let part = (left / (open.len() - done)).max(LEAST_NAME);
            widths[i] = widths[i].min(part);
            left = left.saturating_sub(widths[i]);
        }
        widths
    }

    /// Widens columns of numbers whose heading would run into the one to its left.
    fn make_room_for_headings(&self, widths: &mut [usize]) {
        let (mut end, mut taken) = (0, 0);
        for (column, width) in self.columns.iter().zip(widths) {
            end += column.gap + *width;
            let heading = column.heading.width();
            if heading == 0 {
                continue;
            }
            if column.is_right {
                let needed = if taken == 0 { heading } else { taken + 1 + heading };
                *width += needed.saturating_sub(end);
                end = end.max(needed);
            }
            taken = end;
        }
    }

    fn headings(&self, widths: &[usize]) -> Span {
        let mut line = String::new();
        let mut end = 0;
        for (column, width) in self.columns.iter().zip(widths) {
            let start = end + column.gap;
            end = start + width;
            let heading = &column.heading;
            if !heading.is_empty() {
                let at = if column.is_right { end.saturating_sub(heading.width()) } else { start };
                line.extend(std::iter::repeat_n(' ', at.saturating_sub(line.width())));
                line.push_str(heading);
            }
        }
        Span::new(line, Role::Faint)
    }

    fn row(&self, row: &[Span], widths: &[usize]) -> Vec<Span> {
        let mut line = Vec::with_capacity(row.len() * 2);
        // Blanks are written before the next text only, so no line ends in one.
        let mut blanks = 0;
        for ((column, cell), &width) in self.columns.iter().zip(row).zip(widths) {
            blanks += column.gap;
            let text = match column.fit {
                Fit::Whole => None,
                Fit::Name => cut_name(&cell.text, width),
                Fit::End => cut_end(&cell.text, width),
            };
            let text = text.unwrap_or_else(|| cell.text.clone());
            let padding = width.saturating_sub(text.width());
            if column.is_right {
                blanks += padding;
            }
            if !text.is_empty() {
                if blanks > 0 {
                    line.push(Span::new(" ".repeat(blanks), Role::Plain));
                }
                blanks = 0;
                line.push(Span { text, role: cell.role });
            }
            if !column.is_right {
                blanks += padding;
            }
        }
        line
    }
}

/// The text within a width, `…` for what is left out: whole folders at its start, or else its
/// middle. `None` when it fits. Qualified names and paths tell more at their end.
pub(super) fn cut_name(text: &str, width: usize) -> Option<String> {
    if text.width() <= width {
        return None;
    }
    let folders = text.match_indices('/').map(|(at, _)| &text[at..]).find(|rest| rest.width() < width);
    if let Some(rest) = folders {
        return Some(format!("…{rest}"));
    }
    let room = width.saturating_sub(1);
    let tail = end_of(text, room * 2 / 3);
    let head = start_of(text, room - tail.width());
    Some(format!("{head}…{tail}"))
}

fn cut_end(text: &str, width: usize) -> Option<String> {
    if text.width() <= width {
        return None;
    }
    Some(format!("{}…", start_of(text, width.saturating_sub(1))))
}

/// The longest start that is no wider.
fn start_of(text: &str, width: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|&(_, c)| {
        used += c.width().unwrap_or(0);
        used > width
    });
    end.map_or(text, |(at, _)| &text[..at])
}

/// The longest end that is no wider and starts with a character of its own.
fn end_of(text: &str, width: usize) -> &str {
    let mut used = 0;
    let mut start = text.len();
    for (at, c) in text.char_indices().rev() {
        let own = c.width().unwrap_or(0);
        used += own;
        if used > width {
            break;
        }
        // A combining character belongs to the one before it.
        if own > 0 {
            start = at;
        }
    }
    &text[start..]
}
