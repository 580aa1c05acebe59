//! The list of hot spots in an editor, and the way from one to the next.
//!
//! With a workspace its hand-written lines or functions, by what is spent there; packages are
//! a list of their own, for what no line of the workspace causes. The same rows as in the
//! table of [`hotspots`], as plain data.
//!
//! What is not here: opening a file, and where in an edited document a line is.

use std::cmp::Reverse;
use std::fmt;

use unicode_width::UnicodeWidthStr;

use super::compare::Sides;
use super::data;
use super::hotspots::{self, By, Row};
use super::label;
use super::summary::{self, Numbers};
use super::table::cut_name;
use crate::attribute::analysis::{Analysis, ComparedTo};
use crate::measure::Heat;
use crate::profile::LineNo;

/// As wide as a digit, also where letters are not.
const FIGURE_SPACE: &str = "\u{2007}";
/// The widest share, `99.9%`, and the widest value, `49.1MiB`.
const SHARE: usize = 5;
/// The widest change that is common, `−10.0pp`.
const CHANGE: usize = 7;
const VALUE: usize = 7;
/// Most columns of a name.
const NAME: usize = 40;

/// One row of a list. All texts are harmless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotSpot {
    /// The block of how hot it is with all it calls; in a comparison `▲`, `▼` or `≈`.
    pub glyph: Option<char>,
    /// What is spent there as a share of the total, `11.4%`; in a comparison how much its cost
    /// with calls has changed, `+7.7pp`.
    pub share: String,
    /// The value of the same: `402ms`, `925ms→1.20s`.
    pub value: String,
    /// Its share of the total with all it calls; `None` for a package and in a comparison.
    pub with_calls: Option<String>,
    /// The function, or the package.
    pub name: String,
    /// Where it is; `None` for a package.
    pub place: Option<Place>,
}

/// Where a hot spot is. Displays as `src/log_stats.rs:17`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, by the name shown to people; to be found again with
    /// [`FileIndex::named`](super::by_file::FileIndex::named).
    pub file: String,
    /// The line of the profile, 1-based; `None` when it is unknown.
    pub line: Option<u32>,
    /// Whether it may be another line than the measured one.
    pub is_uncertain: bool,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = data::shown(&self.file);
        let doubt = if self.is_uncertain { "~" } else { "" };
        match self.line {
            Some(line) => write!(f, "{file}:{doubt}{line}"),
            None => f.write_str(&file),
        }
    }
}

/// Says what is listed: `Hot spots: lines here, cpu, 3.52s`.
pub fn title(analysis: &Analysis, by: By) -> String {
    let numbers = Numbers::of(analysis);
    let (rows, own) = (by.title().to_lowercase(), summary::own_heading(analysis));
    format!("Hot spots: {rows} {own}, {}, {}", data::shown(numbers.kind()), numbers.value(numbers.total()))
}

/// What costs most, by what is spent there; at most `top` rows. This is also the order in
/// which an editor goes from one to the next.
pub fn hot_spots(analysis: &Analysis, by: By, top: usize) -> Vec<HotSpot> {
    let numbers = Numbers::of(analysis);
    let own = |row: &Row<'_>| summary::own(analysis, row.cost);
    let mut rows: Vec<Row<'_>> =
        hotspots::rows(analysis, by).filter(|row| hotspots::is_listed(analysis, row.file) && own(row) != 0).collect();
    rows.sort_by_key(|row| Reverse(own(row).unsigned_abs()));
    rows.truncate(top);
    rows.iter()
        .map(|row| HotSpot {
            glyph: numbers.heat(row.cost.cumulative).block(),
            share: numbers.share(own(row)),
            value: numbers.value(own(row)),
            with_calls: Some(numbers.share(row.cost.cumulative)),
            name: name(row),
            place: Some(place(analysis, row)),
        })
        .collect()
}

/// What no line of the workspace causes, a row per package or binary; at most `top` rows.
pub fn packages(analysis: &Analysis, top: usize) -> Vec<HotSpot> {
    let numbers = Numbers::of(analysis);
    let unplaced = analysis.costs.accounting.unplaced.iter().filter(|_| analysis.groups.has_workspace());
    unplaced
        .take(top)
        .map(|(name, weight)| HotSpot {
            glyph: Heat::of(weight.value, numbers.total()).block(),
            share: numbers.share(weight.value),
            value: numbers.value(weight.value),
            with_calls: None,
            name: data::shown(name).into_owned(),
            place: None,
        })
        .collect()
}

/// What changed most, by the size of the change; at most `top` rows, none below 0.1 pp.
pub fn changed_spots(analysis: &Analysis, compared: &ComparedTo, by: By, top: usize) -> Vec<HotSpot> {
    let sides = Sides::of(analysis, compared);
    let (rows, _) = sides.changed(by);
    rows.iter()
        .take(top)
        .map(|listed| HotSpot {
            glyph: listed.change.glyph().chars().next(),
            share: listed.change.points.map_or_else(String::new, |points| points.to_string()),
            value: label::values(&sides, &listed.change),
            with_calls: None,
            name: name(&listed.row),
            place: Some(place(listed.words, &listed.row)),
        })
        .collect()
}

fn name(row: &Row<'_>) -> String {
    let name = data::shown(row.function.unwrap_or_default());
    if row.further > 0 { format!("{name} +{}", row.further) } else { name.into_owned() }
}

fn place(analysis: &Analysis, row: &Row<'_>) -> Place {
    let line = (row.line != LineNo::UNKNOWN).then_some(row.line.0);
    let is_uncertain = analysis.groups.is_uncertain(row.file, row.line);
    Place { file: analysis.groups.display(&analysis.profile, row.file).to_owned(), line, is_uncertain }
}

impl HotSpot {
    /// The first words of its row where letters differ in width, shares below each other:
    /// `11.4%  parse_line`; a change with its verdict, `▲ +20.0pp  parse_line`, as a block's width would push
    /// the shares out of line, these three do not.
    pub fn label(&self) -> String {
        let verdict = self.glyph.filter(|glyph| matches!(glyph, '▲' | '▼' | '≈'));
        let widest = if verdict.is_some() { CHANGE } else { SHARE };
        let padding = FIGURE_SPACE.repeat(widest.saturating_sub(self.share.width()));
        let verdict = verdict.map_or_else(String::new, |glyph| format!("{glyph} "));
        format!("{verdict}{padding}{}  {}", self.share, self.name)
    }

    /// What stands behind them, fainter: `402ms · with calls 34.0% · src/log_stats.rs:17`.
    pub fn description(&self) -> String {
        let with_calls = self.with_calls.as_ref().map(|share| format!("with calls {share}"));
        let parts = [Some(self.value.clone()), with_calls, self.place.as_ref().map(ToString::to_string)];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }
}

/// The rows for terminals and editors without a list of their own, a line each:
/// `█ 11.4%    402ms  parse_line      src/log_stats.rs:17`.
pub fn text(rows: &[HotSpot]) -> String {
    let name = |row: &HotSpot| cut_name(&row.name, NAME).unwrap_or_else(|| row.name.clone());
    let widest = |text: fn(&HotSpot) -> &str, least: usize| {
        rows.iter().map(|row| text(row).width()).max().unwrap_or_default().max(least)
    };
    let (shares, values) = (widest(|row| &row.share, SHARE), widest(|row| &row.value, VALUE));
    let names = rows.iter().map(|row| name(row).width()).max().unwrap_or_default();
    let line = |row: &HotSpot| {
        let (glyph, name) = (row.glyph.unwrap_or(' '), name(row));
        let place = row.place.as_ref().map(ToString::to_string).unwrap_or_default();
        // Names may hold wide characters, which the format string would count as one.
        let padding = " ".repeat(names - name.width());
        format!("{glyph} {:>shares$}  {:>values$}  {name}{padding}  {place}", row.share, row.value)
            .trim_end()
            .to_owned()
            + "\n"
    };
    rows.iter().map(line).collect()
}
