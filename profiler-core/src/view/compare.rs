//! The table of `perflens report --base`: what changed, and whether that is more than chance.
//!
//! Differences are percentage points of the base's total, so that small rows stay small;
//! there is no relative per cent. Where the totals or the durations of the two sides differ
//! by more than a tenth, values would mislead: then each side counts as shares of its own
//! total.

use std::cmp::Ordering;

use super::document::{Document, Role, Sentence, Span};
use super::hotspots::{self, By, Options, Row};
use super::summary::{self, Numbers};
use super::table::{Column, Table};
use crate::attribute::GroupId;
use crate::attribute::analysis::{Analysis, Basis, ComparedTo};
use crate::attribute::compare::{Comparison, Pair, SideCost, total_pair};
use crate::measure::{Allowance, Judged, PointChange, RunPair, Share, Verdict};
use crate::profile::LineNo;

/// Fewer samples on both sides are too few to trust.
const FEW_SAMPLES: i64 = 10;
/// From which part of the base's total on a change matters: what is less sure than that is inconclusive.
const MATTERS: f64 = 0.1;
/// By how much of a time recordings of the same work may differ although nothing changed, beyond what their samples
/// explain: so much was seen on a shared machine, whose other work comes and goes. Shares and amounts don't.
const DRIFT: f64 = 0.15;
/// Shares are counted in this many parts of a total, where they are judged.
pub(super) const PARTS: i128 = 1_000_000_000_000;
/// Most characters of a name in a sentence.
const MAX_NAME: usize = 60;
/// Changes below a tenth of a point are left out,
const SHOWN_TENTHS: u32 = 1;
/// and those above three points stand out.
const MUCH_TENTHS: u32 = 30;

/// How the two sides were made comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Value,
    Normalized,
    /// The same work; brought to the base's amount where that was another.
    Work {
        is_scaled: bool,
    },
    /// With what is against values.
    Share(&'static str),
}

/// Two analyses and what their differences are measured by.
pub(super) struct Sides<'a> {
    pub(super) new: &'a Analysis,
    pub(super) base: &'a Analysis,
    comparison: &'a Comparison,
    mode: Mode,
    /// Samples of the two sides stand for times that differ, and are compared by their number all the same.
    is_by_number: bool,
    pub(super) new_numbers: Numbers,
    pub(super) base_numbers: Numbers,
}

/// What became of one row.
pub(super) struct Change<'a> {
    pub(super) pair: &'a Pair,
    /// `None` when the base holds nothing to measure by.
    pub(super) points: Option<PointChange>,
    /// `None` where samples are not counted on both sides.
    pub(super) judged: Option<Judged>,
    /// What is a hundred points of what was judged.
    whole: f64,
    /// How many pairs of runs it was judged by; 1 for a recording each.
    pub(super) pairs: usize,
}

/// A row that is listed.
pub(super) struct Listed<'a> {
    pub(super) change: Change<'a>,
    pub(super) row: Row<'a>,
    /// The side the row's words come from.
    pub(super) words: &'a Analysis,
}

/// Makes the table. `options.origin` names the new profile.
pub fn comparison<'a>(
    analysis: &'a Analysis,
    compared: &'a ComparedTo,
    base_origin: &str,
    options: &Options<'_>,
) -> Document {
    let sides = Sides::of(analysis, compared);
    let (rows, count) = sides.changed(options.by);

    let mut document = Document::default();
    document.paragraph(sides.title(options.origin, base_origin));
    let left_out = count - rows.len();
    let small = (left_out > 0).then(|| {
        let verb = if left_out == 1 { "has" } else { "have" };
        Sentence::default().faint(format!("{left_out} {} {verb} changed by less than 0.1pp", options.by.noun(left_out)))
    });
    if rows.is_empty() {
        document.paragraph([Sentence::new(format!("No {} has changed by 0.1pp or more.", options.by.noun(1)))]);
    } else {
        let shown = &rows[..rows.len().min(options.limit())];
        let table = sides.table(shown, options.by);
        let more = summary::more(rows.len() - shown.len(), options.by.noun(rows.len() - shown.len()));
        let mut footers: Vec<Sentence> = more.into_iter().chain(small).collect();
        footers.extend(legend(shown.iter().map(|row| &row.change)));
        document.table(sides.caption(options.by), table, footers);
    }
    document
        .paragraph(summary::accounting(analysis, options.explain).into_iter().chain(summary::labels_there(analysis)));
    document.paragraph(summary::notes(analysis).chain(summary::notes(&compared.base)));
    document
}

/// A row that changed, as plain data.
#[derive(Clone, Debug)]
pub struct ChangedRow<'a> {
    /// The side that names its file.
    pub words: &'a Analysis,
    /// Its file.
    pub file: GroupId,
    /// Its line, or where its function starts.
    pub line: LineNo,
    /// Its function, or the first of several.
    pub function: Option<&'a str>,
    /// What it costs on both sides.
    pub pair: &'a Pair,
    /// What to think of it; `None` where samples are not counted on both sides.
    pub judged: Option<Judged>,
    /// `+7.7pp ±3.1 925ms→1.20s`.
    pub text: String,
}

/// What changed.
#[derive(Clone, Debug)]
pub struct Changes<'a> {
    /// Amounts of both sides, and how they were made comparable: sentences.
    pub how: String,
    /// The rows, the largest change first.
    pub rows: Vec<ChangedRow<'a>>,
    /// How many rows changed by less than a tenth of a point.
    pub small: usize,
    /// Everything, judged by value; `None` where that says nothing.
    pub total: Option<Judged>,
    /// `2.00s→1.50s, −25.0pp ±4.4`: everything; empty where nothing is known of it.
    pub total_text: String,
    /// How many rows, small ones too, are what.
    pub verdicts: Vec<(Verdict, usize)>,
}

/// The rows of [`comparison`] as plain data.
pub fn changes<'a>(analysis: &'a Analysis, compared: &'a ComparedTo, by: By) -> Changes<'a> {
    let sides = Sides::of(analysis, compared);
    let all = sides.listed(by);
    let judged: Vec<Verdict> = all.iter().filter_map(|listed| Some(listed.change.judged?.verdict)).collect();
    let verdicts = [Verdict::Improved, Verdict::Regressed, Verdict::Unchanged, Verdict::Inconclusive]
        .map(|verdict| (verdict, judged.iter().filter(|own| **own == verdict).count()));
    let (rows, count) = sides.changed(by);
    let small = count - rows.len();
    let rows = rows.into_iter().map(|listed| {
        let (before, after) = sides.values(listed.change.pair);
        let points = listed.change.points.map_or_else(String::new, |points| points.to_string());
        let judged = listed.change.judged;
        let noise = listed.change.interval().unwrap_or_default();
        ChangedRow {
            words: listed.words,
            file: listed.row.file,
            line: listed.row.line,
            function: listed.row.function,
            pair: listed.change.pair,
            judged,
            text: format!("{points} {noise} {before}{after}").trim().replace("  ", " "),
        }
    });
    let rows = rows.collect();
    let total = sides.total();
    let total_text = total.map_or_else(String::new, |judged| {
        let value = |numbers: &Numbers, analysis: &Analysis| numbers.value(analysis.costs.total);
        let points = sides.points(analysis.costs.total, compared.base.costs.total);
        format!(
            "{}→{}, {} {}",
            value(&sides.base_numbers, &compared.base),
            value(&sides.new_numbers, analysis),
            points.map_or_else(String::new, |points| points.to_string()),
            Judged::interval(judged.noise, sides.whole())
        )
    });
    let how = format!("{}. {}", sides.amounts(), sides.mode());
    Changes { how, rows, small, total, total_text, verdicts: verdicts.into() }
}

/// What became of the function that costs most, of those that count: `sums: improved, −33.4pp ±2.1`. `None` where
/// nothing can be judged.
pub fn headline(analysis: &Analysis, compared: &ComparedTo) -> Option<String> {
    let sides = Sides::of(analysis, compared);
    let is_listed = |pair: &&Pair| {
        pair.new.row.is_some_and(|row| hotspots::is_listed(analysis, analysis.costs.functions[row].file))
    };
    let size = |pair: &&Pair| pair.base.cost.cumulative.unsigned_abs();
    let pair = compared.comparison.functions.iter().filter(is_listed).max_by_key(size)?;
    sides.judged(pair)
}

/// The same of every function of the workspace that is wanted (a row of [`Costs::functions`]), those that cost most
/// first; so many at most.
///
/// [`Costs::functions`]: crate::attribute::Costs::functions
pub fn verdicts(
    analysis: &Analysis,
    compared: &ComparedTo,
    is_wanted: &dyn Fn(usize) -> bool,
    most: usize,
) -> Vec<String> {
    let sides = Sides::of(analysis, compared);
    let is_listed = |pair: &&Pair| {
        let row = pair.new.row.filter(|&row| is_wanted(row));
        row.is_some_and(|row| hotspots::is_listed(analysis, analysis.costs.functions[row].file))
    };
    let mut pairs: Vec<&Pair> = compared.comparison.functions.iter().filter(is_listed).collect();
    // Which of two is first where they cost the same is the comparison's order.
    pairs.sort_by_key(|pair| {
        std::cmp::Reverse(pair.base.cost.cumulative.unsigned_abs().max(pair.new.cost.cumulative.unsigned_abs()))
    });
    pairs.into_iter().filter_map(|pair| sides.judged(pair)).take(most).collect()
}

/// What a pair of runs says of a row, in [`PARTS`] of each run's total.
pub(super) fn as_shares(run: RunPair, totals: &RunPair) -> RunPair {
    let share = |value: i128, total: i128| if total == 0 { 0 } else { value * PARTS / total };
    RunPair { new: share(run.new, totals.new), base: share(run.base, totals.base), ..run }
}

impl<'a> Sides<'a> {
    pub(super) fn of(new: &'a Analysis, compared: &'a ComparedTo) -> Self {
        let base = &compared.base;
        let duration = |analysis: &Analysis| analysis.profile.meta().duration_ns.filter(|&duration| duration > 0);
        let (new_numbers, base_numbers) = (Numbers::of(new), Numbers::of(base));
        let mode = match compared.basis {
            Basis::Normalized(_) => Mode::Normalized,
            Basis::SameWork | Basis::PerWork(_) if new_numbers.has_other_rate(&base_numbers) => {
                Mode::Share("sampling periods differ")
            }
            Basis::SameWork => Mode::Work { is_scaled: false },
            Basis::PerWork(_) => Mode::Work { is_scaled: true },
            Basis::Unknown if new.costs.total == 0 || base.costs.total == 0 => Mode::Value,
            Basis::Unknown if differs_much(new.costs.total, base.costs.total) => {
                Mode::Share("totals differ by more than 10 %")
            }
            Basis::Unknown if duration(new).zip(duration(base)).is_some_and(|(new, base)| differs_much(new, base)) => {
                Mode::Share("durations differ by more than 10 %")
            }
            Basis::Unknown if new_numbers.has_other_rate(&base_numbers) => Mode::Share("sampling periods differ"),
            Basis::Unknown => Mode::Value,
        };
        // What is subtracted is samples: shown as other times, a difference would not be that of its sides.
        let is_by_value = !matches!(mode, Mode::Share(_));
        let is_by_number = is_by_value && new_numbers.period() != base_numbers.period();
        let new_numbers = if is_by_value { new_numbers.on_scale_of(&base_numbers) } else { new_numbers };
        Self { new, base, comparison: &compared.comparison, mode, is_by_number, new_numbers, base_numbers }
    }

    /// What became of a function: `sums: improved, −33.4pp ±2.1`. `None` where it can't be judged, or is gone.
    fn judged(&self, pair: &Pair) -> Option<String> {
        let change = self.change(pair);
        let (judged, interval) = (change.judged?, change.interval()?);
        let name = &self.new.costs.functions[pair.new.row?].name;
        let points = change.points.map_or_else(String::new, |points| format!(", {points} {interval}"));
        Some(format!("{}: {}{points}", super::data::shown_within(name, MAX_NAME), judged.verdict.word()))
    }

    /// Whether shares of each side's total are compared.
    pub(super) fn is_by_share(&self) -> bool {
        matches!(self.mode, Mode::Share(_))
    }

    /// Names both sides, their amounts, and how they were made comparable.
    pub(super) fn title(&self, origin: &str, base_origin: &str) -> Vec<Sentence> {
        let names = Sentence::default()
            .span(Span::data(origin).with_role(Role::Strong))
            .text(" against ")
            .span(Span::data(base_origin).with_role(Role::Strong))
            .text(" (base)");
        [names, self.amounts(), self.mode()].into_iter().chain(summary::filters(self.new)).collect()
    }

    /// `cpu 10.2s against 10.1s · 1.02k samples over 4.00s against 1.01k samples over 4.00s`.
    pub(super) fn amounts(&self) -> Sentence {
        let total = |numbers: &Numbers, analysis: &Analysis| numbers.value(analysis.costs.total);
        Sentence::default().data(&self.new.selected().kind).text(format!(
            " {} against {} · {} against {}",
            total(&self.new_numbers, self.new),
            total(&self.base_numbers, self.base),
            summary::amount(self.new),
            summary::amount(self.base),
        ))
    }

    /// `10.2s cpu against 10.1s`.
    pub(super) fn amounts_of_both(&self) -> String {
        let (new, base) =
            (self.new_numbers.value(self.new.costs.total), self.base_numbers.value(self.base.costs.total));
        format!("{new} {} against {base}", super::data::shown(self.new_numbers.kind()))
    }

    /// How the two sides were made comparable, as a sentence.
    pub(super) fn mode(&self) -> Sentence {
        let of_base = || Sentence::new("percentage points of the base's ").then(self.base_numbers.whole());
        let sentence = match self.mode {
            Mode::Value => Sentence::new("By value: changes are ").then(of_base()).text("."),
            Mode::Work { is_scaled: false } => {
                Sentence::new("By value, of the same work on both sides: changes are ").then(of_base()).text(".")
            }
            Mode::Work { is_scaled: true } => {
                Sentence::new("By value, brought to the base's amount of work: changes are ").then(of_base()).text(".")
            }
            Mode::Normalized => Sentence::new("Normalized: new values are brought to the base's sum; changes are ")
                .then(of_base())
                .text("."),
            Mode::Share(what) => Sentence::new(format!(
                "By share, as the {what}: each side counts as shares of its own total, \
                 changes are percentage points between them."
            )),
        };
        match self.base_numbers.period() {
            Some(period) if self.is_by_number => sentence.text(format!(" Every sample of both counts as {period}.")),
            _ => sentence,
        }
    }

    fn caption(&self, by: By) -> Sentence {
        let of = if let Mode::Share(_) = self.mode { "share of each side's total" } else { "of base" };
        Sentence::default().strong(format!("{} by change of cost with calls", by.title())).text(format!(", {of}"))
    }

    /// What became of everything; of shares that says nothing.
    fn total(&self) -> Option<Judged> {
        let one = [total_pair(&self.new.costs, &self.base.costs)];
        let runs = match self.comparison.run_totals() {
            [] => &one,
            runs => runs,
        };
        if self.is_by_share() { None } else { Judged::of(runs, self.allowance(MATTERS)) }
    }

    /// What judging allows for, where a change matters from such a part of the base's total on.
    pub(super) fn allowance(&self, matters: f64) -> Allowance {
        let is_of_work = matches!(self.mode, Mode::Work { .. });
        let drift = if is_of_work && self.new_numbers.is_time() { DRIFT } else { 0.0 };
        Allowance { matters: matters * self.whole(), drift }
    }

    /// The rows that changed enough, the largest change first; and how many are listed at all.
    pub(super) fn changed(&self, by: By) -> (Vec<Listed<'a>>, usize) {
        let mut listed = self.listed(by);
        let count = listed.len();
        listed.retain(|row| row.change.is_shown());
        listed.sort_by(|a, b| b.change.cmp_size(&a.change));
        (listed, count)
    }

    /// The rows that are listed at all.
    fn listed(&self, by: By) -> Vec<Listed<'a>> {
        let rows = |analysis: &'a Analysis| hotspots::rows(analysis, by).collect::<Vec<_>>();
        let (new_rows, base_rows) = (rows(self.new), rows(self.base));
        let pairs = match by {
            By::Line => &self.comparison.lines,
            By::Function => &self.comparison.functions,
            By::File => &self.comparison.files,
        };
        pairs
            .iter()
            .filter_map(|pair| {
                let (words, row) = match (pair.new.row, pair.base.row) {
                    (Some(row), _) => (self.new, new_rows[row]),
                    (None, row) => (self.base, base_rows[row?]),
                };
                hotspots::is_listed(words, row.file).then(|| Listed { change: self.change(pair), row, words })
            })
            .collect()
    }

    pub(super) fn change<'c>(&self, pair: &'c Pair) -> Change<'c> {
        let points = self.points(pair.new.cost.cumulative, pair.base.cost.cumulative);
        let runs = self.runs(pair);
        let judged = runs.as_ref().and_then(|runs| Judged::of(runs, self.allowance(MATTERS)));
        Change { pair, points, judged, whole: self.whole(), pairs: runs.map_or(1, |runs| runs.len()) }
    }

    /// What there is to judge a row by, on the scale on which both sides are compared.
    fn runs(&self, pair: &Pair) -> Option<Vec<RunPair>> {
        let scale = |run: RunPair, totals: &RunPair| if self.is_by_share() { as_shares(run, totals) } else { run };
        match self.comparison.runs_of(pair) {
            [] => Some(vec![scale(pair.run_pair()?, &total_pair(&self.new.costs, &self.base.costs))]),
            runs => {
                Some(runs.iter().zip(self.comparison.run_totals()).map(|(&run, totals)| scale(run, totals)).collect())
            }
        }
    }

    /// The base's total of one run, on the same scale.
    fn whole(&self) -> f64 {
        if self.is_by_share() {
            return PARTS as f64;
        }
        match self.comparison.run_totals() {
            [] => self.base.costs.total as f64,
            totals => totals.iter().map(|total| total.base as f64).sum::<f64>() / totals.len() as f64,
        }
    }

    pub(super) fn points(&self, new: i64, base: i64) -> Option<PointChange> {
        let (new_total, base_total) = (self.new.costs.total, self.base.costs.total);
        match self.mode {
            Mode::Share(_) => Some(PointChange::between(Share::of(new, new_total)?, Share::of(base, base_total)?)),
            Mode::Value | Mode::Normalized | Mode::Work { .. } => {
                PointChange::of_base(i128::from(new) - i128::from(base), base_total)
            }
        }
    }

    /// Whether the line of a pair may be another than the measured one, on either side.
    pub(super) fn is_uncertain(&self, pair: &Pair) -> bool {
        let of = |analysis: &Analysis, side: &SideCost| {
            let row = side.row.map(|row| &analysis.costs.lines[row]);
            row.is_some_and(|row| analysis.groups.is_uncertain(row.file, row.line))
        };
        of(self.new, &pair.new) || of(self.base, &pair.base)
    }

    fn table(&self, rows: &[Listed<'_>], by: By) -> Table {
        let mut columns = Self::change_columns();
        columns.extend([
            Column::number(summary::own_heading(self.new)),
            Column::number(""),
            Column::words("samples").after(0),
        ]);
        columns.extend(hotspots::place_columns(by));
        let mut table = Table::new(columns);
        table.rows = rows.iter().map(|row| self.cells(row, by)).collect();
        table
    }

    /// The columns of [`change_cells`](Self::change_cells): of the cost with calls.
    pub(super) fn change_columns() -> Vec<Column> {
        vec![Column::glyph(), Column::number("change").after(1), Column::number("base"), Column::words("→new").after(0)]
    }

    /// `▲ +7.7pp 925ms→1.20s`, with a star when that rests on few samples.
    pub(super) fn change_cells(&self, change: &Change<'_>) -> Vec<Span> {
        let role = change.role();
        let (before, mut after) = self.values(change.pair);
        if change.is_few() {
            after.push('*');
        }
        vec![
            Span::new(change.glyph(), role),
            Span::new(change.points.map_or_else(String::new, |points| points.to_string()), role),
            Span::new(before, Role::Plain),
            Span::new(after, Role::Plain),
        ]
    }

    fn cells(&self, row: &Listed<'_>, by: By) -> Vec<Span> {
        let Pair { new, base, .. } = row.change.pair;
        let own = |side: &SideCost| summary::own(self.new, side.cost);
        let own = self.points(own(new), own(base)).filter(|points| points.direction().is_ne());
        let (samples_before, samples_after) = match (base.samples, new.samples) {
            (Some(base), Some(new)) => (base.to_string(), format!("→{new}")),
            _ => (String::new(), String::new()),
        };
        let mut cells = self.change_cells(&row.change);
        cells.extend([
            own.map_or_else(|| Span::new("0", Role::Faint), |points| Span::new(points.to_string(), Role::Plain)),
            Span::new(samples_before, Role::Faint),
            Span::new(samples_after, Role::Faint),
        ]);
        cells.extend(hotspots::place_cells(row.words, by, &row.row));
        cells
    }

    /// `925ms` and `→1.20s`; `new` or `gone` where a side doesn't have the row.
    pub(super) fn values(&self, pair: &Pair) -> (String, String) {
        let text = |numbers: &Numbers, side: &SideCost| match self.mode {
            Mode::Share(_) => numbers.share(side.cost.cumulative),
            Mode::Value | Mode::Normalized | Mode::Work { .. } => numbers.value(side.cost.cumulative),
        };
        let (new, base) = (text(&self.new_numbers, &pair.new), text(&self.base_numbers, &pair.base));
        match (pair.new.row, pair.base.row) {
            (Some(_), None) => ("new".to_owned(), format!(" {new}")),
            (None, _) => ("gone".to_owned(), format!(" {base}")),
            _ => (base, format!("→{new}")),
        }
    }
}

impl Change<'_> {
    /// Whether it is large enough to be worth a line.
    pub(super) fn is_shown(&self) -> bool {
        self.points.is_none_or(|points| points.cmp_tenths(SHOWN_TENTHS).is_ge())
    }

    /// Orders by how much changed, in whatever direction.
    pub(super) fn cmp_size(&self, other: &Self) -> Ordering {
        match (self.points, other.points) {
            (Some(mine), Some(theirs)) => mine.cmp_size(theirs),
            _ => self.pair.diff_cumulative().unsigned_abs().cmp(&other.pair.diff_cumulative().unsigned_abs()),
        }
    }

    /// Whether it may well be chance.
    pub(super) fn is_noise(&self) -> bool {
        self.is_change() == Some(false)
    }

    /// Whether it is more than chance; `None` where that can't be told.
    fn is_change(&self) -> Option<bool> {
        self.judged.map(|judged| matches!(judged.verdict, Verdict::Improved | Verdict::Regressed))
    }

    /// Whether a change that matters could hide in it.
    pub(super) fn is_inconclusive(&self) -> bool {
        self.judged.is_some_and(|judged| judged.verdict == Verdict::Inconclusive)
    }

    /// `±3.1`, in points: half the width of its 95 % confidence interval.
    pub(super) fn interval(&self) -> Option<String> {
        self.judged.map(|judged| Judged::interval(judged.noise, self.whole))
    }

    /// The part of that which is by how much the runs differ.
    pub(super) fn interval_of_runs(&self) -> Option<String> {
        self.judged.map(|judged| Judged::interval(judged.by_runs, self.whole))
    }

    /// Whether it is no more than two recordings of the same may differ by.
    pub(super) fn may_be_drift(&self) -> bool {
        self.judged.is_some_and(|judged| judged.may_be_drift)
    }

    /// Whether it is large enough to stand out, and more than chance.
    pub(super) fn is_much(&self) -> bool {
        !self.is_noise() && self.points.is_some_and(|points| points.cmp_tenths(MUCH_TENTHS).is_gt())
    }

    /// Whether it rests on so few samples that it can't be trusted.
    pub(super) fn is_few(&self) -> bool {
        let few = |side: &SideCost| side.samples.is_some_and(|samples| samples.abs() < FEW_SAMPLES);
        few(&self.pair.new) && few(&self.pair.base)
    }

    pub(super) fn glyph(&self) -> &'static str {
        // Of shares the direction may be another than of values.
        let of_values = || self.pair.diff_cumulative().cmp(&0);
        match self.points.map_or_else(of_values, PointChange::direction) {
            _ if self.is_noise() => "≈",
            Ordering::Greater => "▲",
            Ordering::Less => "▼",
            Ordering::Equal => "",
        }
    }

    pub(super) fn role(&self) -> Role {
        if self.is_noise() {
            return Role::Faint;
        }
        match self.points.map(PointChange::direction) {
            Some(Ordering::Greater) if self.is_much() => Role::MuchMore,
            Some(Ordering::Greater) => Role::More,
            Some(Ordering::Less) => Role::Less,
            Some(Ordering::Equal) | None => Role::Plain,
        }
    }
}

/// What the marks of some changes mean.
pub(super) fn legend<'c>(changes: impl Iterator<Item = &'c Change<'c>>) -> Vec<Sentence> {
    let (mut is_noisy, mut may_be_drift, mut is_few, mut is_unknown) = (false, false, false, true);
    for change in changes {
        is_noisy |= change.is_noise() && !change.may_be_drift();
        may_be_drift |= change.may_be_drift();
        is_few |= change.is_few();
        is_unknown &= change.judged.is_none();
    }
    let drift = format!("≈ may be how fast the machine was: so few recordings can't tell {}", drift_in_words());
    [
        (is_noisy, "≈ may well be chance: within the 95 % confidence interval of the sample counts"),
        (may_be_drift, &drift),
        (is_few, "* fewer than 10 samples on both sides: too few to trust"),
        (is_unknown, "samples are not counted in both profiles, so what is chance can't be told"),
    ]
    .into_iter()
    .filter(|&(applies, _)| applies)
    .map(|(_, words)| Sentence::default().faint(words))
    .collect()
}

/// `less than 15 % of a row from that; three pairs in turns can`.
pub(super) fn drift_in_words() -> String {
    format!("less than {:.0} % of a row from that; three pairs in turns can", DRIFT * 100.0)
}

fn differs_much(new: i64, base: i64) -> bool {
    let (new, base) = (i128::from(new), i128::from(base));
    (new - base).abs() * 10 > base
}
