//! Where everything stands in the table of a hover: columns are fixed, so that hovers look
//! alike from line to line.
//!
//! ```text
//! parse_line:17   with calls            here            self
//! cpu         34.0%    1.20s  11.4%    402ms  10.1%    356ms
//! calls       13.9%    489ms  core::num::from_str
//! ```

use unicode_width::UnicodeWidthStr;

use super::super::data;
use super::super::table::cut_name;

/// Most columns of the table.
pub const MAX_COLUMNS: usize = 80;
/// Most columns of the first words of a row.
const LABEL: usize = 11;
/// Where names start, 1-based.
const NAME: usize = 29;
/// Most columns of a place behind a name.
const PLACE: usize = 28;

/// Share and value of one kind of cost.
#[derive(Clone, Copy)]
pub(super) struct Cells {
    /// The column a share ends at, 1-based.
    share: usize,
    /// The column a value ends at.
    value: usize,
}

impl Cells {
    /// From left to right.
    pub(super) const ALL: [Self; 3] =
        [Self { share: 17, value: 26 }, Self { share: 33, value: 42 }, Self { share: 49, value: 58 }];
}

/// One line, written from left to right.
pub(super) struct Row(String);

impl Row {
    pub(super) fn new(label: &str) -> Self {
        Self(label.to_owned())
    }

    pub(super) fn heading(&mut self, cells: Cells, text: &str) {
        self.end_at(cells.value, text);
    }

    pub(super) fn numbers(&mut self, cells: Cells, share: &str, value: &str) {
        self.end_at(cells.share, share);
        self.end_at(cells.value, value);
    }

    /// What is too long moves what is behind it; what no longer has room is left out. So a
    /// number is never cut.
    fn end_at(&mut self, column: usize, text: &str) {
        if !text.is_empty() {
            self.start_at((column + 1).saturating_sub(text.width()), text);
        }
    }

    /// Writes a text from a column on, 1-based; or behind a blank, if that is later.
    fn start_at(&mut self, column: usize, text: &str) {
        let used = self.0.width();
        let blanks = column.saturating_sub(used + 1).max(usize::from(used > 0));
        if used + blanks + text.width() <= MAX_COLUMNS {
            self.0.extend(std::iter::repeat_n(' ', blanks));
            self.0.push_str(text);
        }
    }
}

/// A row that ends in a name, and maybe a place.
pub(super) fn name_row(label: &str, share: &str, value: &str, name: &str, place: Option<&str>) -> Row {
    let mut row = Row::new(label);
    row.numbers(Cells::ALL[0], share, value);
    let place = place.map(|place| format!("  {}", cut(place, PLACE))).unwrap_or_default();
    let name = if name.is_empty() { "(no name)" } else { name };
    // Numbers that need more room leave less.
    let start = NAME.max(row.0.width() + 2);
    let room = (MAX_COLUMNS + 1).saturating_sub(start + place.width());
    row.start_at(start, &(cut(name, room) + &place));
    row
}

/// The rows as lines, none of which ends in a blank.
pub(super) fn text(rows: Vec<Row>) -> String {
    rows.into_iter().map(|row| row.0.trim_end().to_owned() + "\n").collect()
}

/// A foreign word for the start of a row.
pub(super) fn label(text: &str) -> String {
    cut(text, LABEL)
}

/// A name for the head, unless it is too long for it.
pub(super) fn short_name(name: &str) -> Option<String> {
    let name = data::shown(name);
    (name.width() <= LABEL).then(|| name.into_owned())
}

/// Whether the first words of the table leave the first heading alone.
pub(super) fn fits_head(head: &str) -> bool {
    head.width() + 1 + "with calls".len() <= Cells::ALL[0].value
}

/// Foreign text within a width.
fn cut(text: &str, width: usize) -> String {
    let text = data::shown(text);
    cut_name(&text, width).unwrap_or_else(|| text.into_owned())
}
