//! The view of `perflens check`: what became of every function between two versions, judged from one or
//! more pairs of runs, for a pull request.
//!
//! Values are means over the pairs. Where the versions did not do the same work, as far as is known,
//! and their totals differ, shares of each side's total are compared instead, as everywhere.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::compare::{PARTS, Sides, as_shares, drift_in_words};
use super::document::{Document, Role, Sentence, Span};
use super::hotspots;
use super::summary::{self, Numbers};
use super::table::{Column, Table};
use crate::attribute::analysis::{Analysis, ComparedTo};
use crate::attribute::compare::total_pair;
use crate::measure::{Allowance, Judged, PointChange, RunPair, Verdict};

/// Changes below a tenth of a point are not listed.
const SHOWN: f64 = 0.001;
/// The schema of [`Report`].
const SCHEMA: u32 = 1;

/// A pair of runs: the new version, and what it is compared with.
pub type Pair = (Analysis, ComparedTo);

/// How to judge and what to list.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// From which part of the base's total on a change matters: 0.1 for ten points.
    pub matters: f64,
    /// Rows of the table; 0 means all.
    pub top: usize,
}

/// Every function, judged.
#[derive(Debug)]
pub struct Check<'a> {
    pairs: &'a [Pair],
    /// What everything costs, judged by value; `None` where that says nothing.
    pub total: Option<Judged>,
    /// By falling size of the change.
    pub rows: Vec<Row>,
    whole: f64,
    is_by_share: bool,
}

/// A function, judged.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its file, as it is shown.
    pub file: String,
    /// Where it starts, a line of the profile, 1-based; 0 when unknown.
    pub line: u32,
    /// What became of it.
    pub judged: Judged,
    /// The change as part of the base's total.
    pub points: f64,
    /// Every pair of runs has the change by itself, beyond its own noise.
    pub is_in_every_pair: bool,
}

/// What the pairs say of a function.
struct Runs {
    /// Where it starts; 0 when unknown.
    line: u32,
    /// By pair; `None` where it is on neither side, or not counted.
    pairs: Vec<Option<RunPair>>,
}

/// A profile that counts no samples: what of it is chance can't be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the profiles don't count samples, so chance can't be told from a change; `perflens report NEW --base OLD` shows \
     the differences"
)]
pub struct Uncounted;

/// Judges all functions of all pairs, at least one; with a workspace its own ones.
pub fn check<'a>(pairs: &'a [Pair], options: &Options) -> Result<Check<'a>, Uncounted> {
    let sides: Vec<Sides<'_>> = pairs.iter().map(|(new, compared)| Sides::of(new, compared)).collect();
    let counts = |analysis: &Analysis| analysis.profile.sample_count_type().is_some();
    if !sides.iter().all(|sides| counts(sides.new) && counts(sides.base)) {
        return Err(Uncounted);
    }
    let is_by_share = sides.iter().any(Sides::is_by_share);
    let whole = if is_by_share {
        PARTS as f64
    } else {
        sides.iter().map(|sides| sides.base.costs.total as f64).sum::<f64>() / sides.len().max(1) as f64
    };
    let mut named: FxHashMap<(&str, &str), Runs> = FxHashMap::default();
    for (at, (pair, sides)) in pairs.iter().zip(&sides).enumerate() {
        for row in &pair.1.comparison.functions {
            let (side, index) = match (row.new.row, row.base.row) {
                (Some(index), _) => (sides.new, index),
                (None, Some(index)) => (sides.base, index),
                (None, None) => continue,
            };
            let function = &side.costs.functions[index];
            if !hotspots::is_listed(side, function.file) {
                continue;
            }
            let key = (function.name.as_str(), side.groups.display(&side.profile, function.file));
            let runs = named.entry(key).or_insert_with(|| Runs { line: 0, pairs: vec![None; pairs.len()] });
            runs.line = function.start_line.0.max(runs.line);
            runs.pairs[at] = row.run_pair().map(|run| {
                if is_by_share { as_shares(run, &total_pair(&sides.new.costs, &sides.base.costs)) } else { run }
            });
        }
    }
    let drift = sides.iter().map(|sides| sides.allowance(options.matters).drift).fold(0.0, f64::max);
    let allowance = Allowance { matters: options.matters * whole, drift };
    let mut rows: Vec<Row> = named
        .into_iter()
        .filter_map(|((name, file), Runs { line, pairs })| {
            // A pair without the function has nothing of it on both sides.
            let absent = RunPair { new: 0, new_samples: 0, base: 0, base_samples: 0 };
            let runs: Vec<RunPair> = pairs.into_iter().map(|run| run.unwrap_or(absent)).collect();
            let judged = Judged::of(&runs, allowance)?;
            let direction = judged.difference().total_cmp(&0.0);
            let is_in_every_pair = runs.iter().all(|&run| {
                let alone = Judged::of(&[run], allowance);
                alone.is_some_and(|alone| {
                    alone.difference().abs() > alone.noise && alone.difference().total_cmp(&0.0) == direction
                })
            });
            let points = if whole > 0.0 { judged.difference() / whole } else { 0.0 };
            Some(Row { name: name.to_owned(), file: file.to_owned(), line, judged, points, is_in_every_pair })
        })
        .collect();
    rows.sort_by(|a, b| {
        b.points.abs().total_cmp(&a.points.abs()).then_with(|| (&a.name, &a.file).cmp(&(&b.name, &b.file)))
    });
    let totals: Vec<RunPair> = sides.iter().map(|sides| total_pair(&sides.new.costs, &sides.base.costs)).collect();
    let total = if is_by_share { None } else { Judged::of(&totals, allowance) };
    Ok(Check { pairs, total, rows, whole, is_by_share })
}

impl Check<'_> {
    /// Functions that regressed by so much of the base's total at least, in every pair of runs.
    pub fn regressions(&self, at_least: f64) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| {
            row.judged.verdict == Verdict::Regressed && row.is_in_every_pair && row.points >= at_least
        })
    }

    fn numbers(&self) -> Numbers {
        Numbers::of(&self.pairs[0].0)
    }

    /// A mean for people.
    fn value(&self, value: f64) -> String {
        if self.is_by_share {
            return format!("{:.1}%", value / self.whole * 100.0);
        }
        #[expect(clippy::cast_possible_truncation, reason = "means of values that fit; a cast saturates")]
        let value = value.round() as i128;
        self.numbers().value(value)
    }

    /// The report. Origins name the two versions.
    pub fn document(&self, origins: (&str, &str), options: &Options) -> Document {
        let mut document = Document::default();
        document.paragraph(self.head(origins));
        document.paragraph([self.verdicts()]);
        let listed: Vec<&Row> = self.rows.iter().filter(|row| row.points.abs() >= SHOWN).collect();
        if listed.is_empty() {
            document.paragraph([Sentence::new("No function has changed by 0.1pp or more.")]);
        } else {
            let limit = if options.top == 0 { usize::MAX } else { options.top };
            let shown = &listed[..listed.len().min(limit)];
            let caption = Sentence::default()
                .strong("Functions by change of cost with calls")
                .text(if self.is_by_share { ", share of each side's total" } else { ", of base" });
            let hidden = listed.len() - shown.len();
            let more = summary::more(hidden, if hidden == 1 { "function" } else { "functions" });
            document.table(caption, self.table(shown), more.into_iter().collect());
        }
        let drift = self.rows.iter().any(|row| row.judged.may_be_drift).then(|| {
            Sentence::default().faint(format!(
                "Inconclusive is also what may be how fast the machine was: so few pairs can't tell {}.",
                drift_in_words()
            ))
        });
        document.paragraph(std::iter::once(Sentence::default().faint(format!(
            "± is the 95 % confidence interval, by the numbers of samples{}: what is beyond it is a change; what is not is \
             unchanged, or inconclusive where ± is more than {:.0}pp.",
            if self.pairs.len() > 1 { " and by how much runs differ" } else { "" },
            options.matters * 100.0
        ))).chain(drift));
        document
    }

    fn head(&self, (new, base): (&str, &str)) -> Vec<Sentence> {
        let sides = Sides::of(&self.pairs[0].0, &self.pairs[0].1);
        let mut first = Sentence::default()
            .span(Span::data(new).with_role(Role::Strong))
            .text(" against ")
            .span(Span::data(base).with_role(Role::Strong))
            .text(" (base)");
        if self.pairs.len() > 1 {
            first = first.text(format!(", {} pairs of runs; of the first: ", self.pairs.len())).then(sides.amounts());
            vec![first, sides.mode()]
        } else {
            vec![first, sides.amounts(), sides.mode()]
        }
    }

    /// `Everything: 2.00s → 1.50s ±88.0ms, improved. 1 function improved, 12 unchanged, …`
    fn verdicts(&self) -> Sentence {
        let mut sentence = Sentence::default();
        if let Some(total) = &self.total {
            sentence = sentence.text("Everything: ").strong(format!(
                "{} → {} ±{}, {}",
                self.value(total.base),
                self.value(total.new),
                self.value(total.noise),
                total.verdict.word()
            ));
            sentence = sentence.text(". ");
        }
        let counts: Vec<String> = [Verdict::Regressed, Verdict::Improved, Verdict::Unchanged, Verdict::Inconclusive]
            .into_iter()
            .map(|verdict| (verdict, self.rows.iter().filter(|row| row.judged.verdict == verdict).count()))
            .filter(|&(_, count)| count > 0)
            .map(|(verdict, count)| format!("{count} {}", verdict.word()))
            .collect();
        if counts.is_empty() {
            return sentence.text("No function has samples on both sides that can be judged.");
        }
        sentence.text(format!("Functions: {}.", counts.join(", ")))
    }

    fn table(&self, rows: &[&Row]) -> Table {
        let mut table = Table::new(vec![
            Column::glyph(),
            Column::number("change").after(1),
            Column::number("±"),
            Column::number("base"),
            Column::words("→new").after(0),
            Column::words("verdict"),
            Column::name("function"),
            Column::name("place"),
        ]);
        table.rows = rows
            .iter()
            .map(|row| {
                let (glyph, role) = match row.judged.verdict {
                    Verdict::Regressed => ("▲", Role::More),
                    Verdict::Improved => ("▼", Role::Less),
                    Verdict::Unchanged => ("≈", Role::Faint),
                    Verdict::Inconclusive => ("?", Role::Faint),
                };
                let mut place = Span::data(&row.file);
                if row.line > 0 {
                    place = place.followed_by(&format!(":{}", row.line));
                }
                vec![
                    Span::new(glyph, role),
                    Span::new(points(row.points), role),
                    Span::new(format!("{:.1}", row.judged.noise / self.whole * 100.0), Role::Faint),
                    Span::new(self.value(row.judged.base), Role::Plain),
                    Span::new(format!("→{}", self.value(row.judged.new)), Role::Plain),
                    Span::new(row.judged.verdict.word(), role),
                    Span::data(&row.name),
                    place.with_role(Role::Faint),
                ]
            })
            .collect();
        table
    }

    /// The report as plain data.
    pub fn report(&self, options: &Options) -> Report {
        let limit = if options.top == 0 { usize::MAX } else { options.top };
        Report {
            schema: SCHEMA,
            pairs: self.pairs.len(),
            mode: if self.is_by_share { "share" } else { "value" },
            unit: self.pairs[0].0.selected().unit.clone(),
            total: self.total.as_ref().map(|total| Numbered::of(total, self.whole)),
            functions: self
                .rows
                .iter()
                .take(limit)
                .map(|row| Function {
                    name: row.name.clone(),
                    file: row.file.clone(),
                    line: (row.line > 0).then_some(row.line),
                    in_every_pair: row.is_in_every_pair,
                    numbers: Numbered::of(&row.judged, self.whole),
                })
                .collect(),
        }
    }
}

/// `+7.7pp`, as everywhere.
fn points(part: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "a part of a whole; a cast saturates")]
    let parts = (part * PARTS as f64).round() as i128;
    let whole = i64::try_from(PARTS).unwrap_or(i64::MAX);
    PointChange::of_base(parts, whole).map_or_else(String::new, |points| points.to_string())
}

/// What `perflens check --format json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Of this structure.
    pub schema: u32,
    /// How many pairs of runs.
    pub pairs: usize,
    /// `value`: numbers are of [`unit`](Self::unit); `share`: they are parts of each side's total.
    pub mode: &'static str,
    /// The unit of the value type.
    pub unit: String,
    /// Everything, when compared by value.
    pub total: Option<Numbered>,
    /// By falling size of the change.
    pub functions: Vec<Function>,
}

/// A function of a [`Report`].
#[derive(Clone, Debug, Serialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its file.
    pub file: String,
    /// Where it starts; `None` when unknown.
    pub line: Option<u32>,
    /// Every pair of runs has the change by itself.
    pub in_every_pair: bool,
    /// What became of it.
    #[serde(flatten)]
    pub numbers: Numbered,
}

/// A judgement as numbers: means over the pairs.
#[derive(Clone, Debug, Serialize)]
pub struct Numbered {
    /// `improved`, `unchanged`, `regressed`, `inconclusive`.
    pub verdict: &'static str,
    /// The base.
    pub base: f64,
    /// The new version.
    pub new: f64,
    /// Half the width of the 95 % confidence interval around their difference.
    pub noise: f64,
    /// The difference in percentage points of the base's total.
    pub points: f64,
}

impl Numbered {
    fn of(judged: &Judged, whole: f64) -> Self {
        Self {
            verdict: judged.verdict.word(),
            base: judged.base,
            new: judged.new,
            noise: judged.noise,
            points: if whole > 0.0 { judged.difference() / whole * 100.0 } else { 0.0 },
        }
    }
}
