//! What stands above and below the numbers of every view: which profile this is, what was
//! counted, what shares are of, what is not shown and how to see it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::data;
use super::document::{Role, Sentence, Span};
use super::table::Column;
use crate::attribute::accounting::{Bucket, Standing, Weight};
use crate::attribute::analysis::Analysis;
use crate::attribute::{Cost, Costs, Field, Filter};
use crate::measure::{Heat, Quantity, Scale, Share};
use crate::profile::{LabelValue, Profile, StrId};

/// Periods that differ by no more than this, a part of so many, are the same one: what a frequency comes to.
const ROUNDING: i128 = 50;
/// Where periods are averages, those that differ by less than this factor may be the same one: V8's is longer on a
/// busy machine, though it has no more samples of the same work.
const JITTER: i128 = 3;
/// Most characters of a note.
const MAX_NOTE: usize = 600;

/// The numbers of one analysis as spans.
pub struct Numbers {
    scale: Scale,
    kind: String,
    total: i64,
    placed: i64,
    has_average_period: bool,
}

impl Numbers {
    /// The numbers of an analysis, for its selected value type.
    pub fn of(analysis: &Analysis) -> Self {
        Self::of_type(&analysis.profile, analysis.value_type, &analysis.costs)
    }

    /// Of the costs of any value type.
    pub(super) fn of_type(profile: &Profile, value_type: usize, costs: &Costs) -> Self {
        Self {
            scale: Scale::for_people(profile.value_types(), profile.meta(), value_type),
            kind: profile.value_types()[value_type].kind.clone(),
            total: costs.total,
            placed: costs.accounting.shown().unwrap_or(costs.total),
            has_average_period: profile.meta().has_average_period(),
        }
    }

    /// The same numbers on the scale of others, of the same value type.
    pub(super) fn on_scale_of(self, other: &Self) -> Self {
        Self { scale: other.scale.clone(), ..self }
    }

    /// What a sample is shown as, where samples are shown as times.
    pub(super) fn period(&self) -> Option<Quantity<'_>> {
        self.scale.period()
    }

    /// Whether they are shown as times.
    pub(super) fn is_time(&self) -> bool {
        self.scale.unit().is_time()
    }

    /// Whether samples of both are shown as times, and were taken at rates that are not the same.
    pub(super) fn has_other_rate(&self, other: &Self) -> bool {
        let (Some(mine), Some(others)) = (self.scale.period_value(), other.scale.period_value()) else {
            return false;
        };
        let (short, long) = (mine.min(others), mine.max(others));
        if self.has_average_period && other.has_average_period {
            long > short.saturating_mul(JITTER)
        } else {
            long - short > short / ROUNDING
        }
    }

    /// `1.20s`.
    pub fn value(&self, value: impl Into<i128>) -> String {
        self.scale.quantity(value).to_string()
    }

    /// `34.0%` of the total; nothing when the total is.
    pub fn share(&self, value: i64) -> String {
        Share::of(value, self.total).map_or_else(String::new, |share| share.to_string())
    }

    /// `34%` of the total, for sentences.
    pub fn whole_percent(&self, value: i64) -> String {
        Share::of(value, self.total).map_or_else(|| "0%".to_owned(), Share::whole_percent)
    }

    /// `1.86s cpu`: what shares are of.
    pub(super) fn whole(&self) -> Sentence {
        Sentence::new(format!("{} ", self.value(self.total))).data(&self.kind)
    }

    /// `34% of 3.52s cpu`, for sentences.
    pub(super) fn part_of_whole(&self, value: i64) -> Sentence {
        Sentence::new(format!("{} of ", self.whole_percent(value))).then(self.whole())
    }

    /// `34% (1.20s)`, where the whole has been named.
    pub(super) fn part(&self, value: i64) -> String {
        format!("{} ({})", self.whole_percent(value), self.value(value))
    }

    /// What is measured, as the profile calls it.
    pub(super) fn kind(&self) -> &str {
        &self.kind
    }

    pub(super) fn total(&self) -> i64 {
        self.total
    }

    /// The value placed in the workspace; the total without one.
    pub(super) fn placed(&self) -> i64 {
        self.placed
    }

    /// How hot a cumulative value is, next to what is placed in the workspace.
    pub fn heat(&self, cumulative: i64) -> Heat {
        Heat::of(cumulative, self.placed)
    }

    /// The block of a level, the cell of [`Column::glyph`].
    pub(super) fn block(heat: Heat) -> Span {
        Span::new(heat.block().map_or_else(String::new, String::from), Role::Heat(heat))
    }

    /// Share and value of a cost, the cells of [`number_columns`].
    pub(super) fn cells(&self, value: i64, role: Role) -> [Span; 2] {
        let role = if value == 0 { Role::Faint } else { role };
        [Span::new(self.share(value), role), Span::new(self.value(value), role)]
    }
}

/// Columns for share and value under one heading.
pub(super) fn number_columns(heading: &str, gap: usize) -> [Column; 2] {
    [Column::number("").after(gap), Column::number(heading).after(1)]
}

/// What a row is to blame for: with a workspace what is spent `here`, libraries it calls
/// included; without one, what the row itself spends.
pub(super) fn own_heading(analysis: &Analysis) -> &'static str {
    if knows_own(analysis) { "here" } else { "self" }
}

/// The value under [`own_heading`].
pub(super) fn own(analysis: &Analysis, cost: Cost) -> i64 {
    if knows_own(analysis) { cost.direct } else { cost.flat }
}

/// Whether it can be said what code of the workspace causes: that takes lines.
pub(super) fn knows_own(analysis: &Analysis) -> bool {
    analysis.groups.has_workspace() && !analysis.costs.lines.is_empty()
}

/// Which profile this is and how much it holds.
pub(super) fn title(origin: &str, analysis: &Analysis) -> Vec<Sentence> {
    let numbers = Numbers::of(analysis);
    let costs = &analysis.costs;
    let mut line = Sentence::default()
        .span(Span::data(origin).with_role(Role::Strong))
        .text(" · ")
        .data(&numbers.kind)
        .strong(format!(" {}", numbers.value(costs.total)));
    if costs.net != costs.total {
        line = line.text(format!(", net {}", numbers.value(costs.net)));
    }
    line = line.text(format!(" · {}", amount(analysis)));
    if let Some(shown) = costs.accounting.shown() {
        line = line.text(format!(" · {} placed in the workspace", numbers.whole_percent(shown)));
    }
    [line].into_iter().chain(filters(analysis)).collect()
}

/// `186 samples over 4.02s`; `186 samples × 10.0ms` where that is how values came about.
pub fn amount(analysis: &Analysis) -> String {
    match analysis.profile.meta().duration_ns {
        Some(duration) if duration > 0 => {
            format!("{} over {}", counted(analysis), Scale::of_unit("ns").quantity(duration))
        }
        _ => counted(analysis),
    }
}

/// The same without the time it took.
pub(super) fn counted(analysis: &Analysis) -> String {
    let count = Scale::of_unit("count");
    let costs = &analysis.costs;
    let amount = match costs.samples {
        // Events of their own, as allocations beside samples of the processor, are none of those.
        Some(samples) if samples != 0 || costs.total == 0 => plural(samples.unsigned_abs(), "sample", &count),
        _ => plural(costs.records, "record", &count),
    };
    match Numbers::of(analysis).scale.period() {
        Some(period) => format!("{amount} × {period}"),
        None => amount,
    }
}

fn plural(number: u64, what: &str, scale: &Scale) -> String {
    format!("{} {what}{}", scale.quantity(number), if number == 1 { "" } else { "s" })
}

/// The filters, and what they left out.
pub fn filters(analysis: &Analysis) -> Option<Sentence> {
    let numbers = Numbers::of(analysis);
    let (first, rest) = analysis.filters.split_first()?;
    let mut line = Sentence::new("Filtered by ").data(&first.to_string());
    for filter in rest {
        line = line.text(" and ").data(&filter.to_string());
    }
    let filtered = analysis.costs.accounting.filtered.value;
    Some(line.text(format!(
        ": {} of {} left out",
        numbers.value(filtered),
        numbers.value(i128::from(filtered) + i128::from(analysis.costs.total))
    )))
}

/// Where the value is that no line shows, and what to do next; nothing when every line is
/// there.
pub(super) fn accounting(analysis: &Analysis, explain: Option<&str>) -> Vec<Sentence> {
    let numbers = Numbers::of(analysis);
    let costs = &analysis.costs;
    if costs.total == 0 {
        return vec![nothing(analysis, &numbers)];
    }
    let placed = match &costs.accounting.workspace {
        Some(standings) => placed(standings, &numbers),
        None => with_line(costs.accounting.leaf_bucket(Bucket::WithLine), &numbers),
    };
    let reasons =
        explain.filter(|_| placed.is_some()).map(|command| Sentence::new("For the reasons: ").command(command));
    let workspace = (!analysis.groups.has_workspace()).then(workspace_hint);
    placed.into_iter().chain(reasons).chain(workspace).collect()
}

/// What to do to see one's own code.
pub(super) fn workspace_hint() -> Sentence {
    Sentence::new("No workspace was given: add ")
        .command("--workspace DIR")
        .text(" to see what the lines of your own code cost.")
}

fn with_line(with_line: i64, numbers: &Numbers) -> Option<Sentence> {
    let rest = numbers.total - with_line;
    (rest != 0).then(|| {
        numbers.part_of_whole(with_line).text(format!(" ends on a source line, {} does not.", numbers.part(rest)))
    })
}

fn placed(standings: &[Weight; 9], numbers: &Numbers) -> Option<Sentence> {
    let of = |standing: Standing| standings[standing as usize].value;
    let rest: Vec<String> = [
        (Standing::Ambiguous, "in files that could be several of the workspace"),
        (Standing::Generated, "in generated code"),
        (Standing::Dependency, "in dependencies"),
        (Standing::Toolchain, "in the toolchain"),
        (Standing::NoMatch, "in files not found in the workspace"),
        (Standing::NoLine, "without a line"),
        (Standing::NoFile, "without a file"),
        (Standing::Unresolved, "unresolved"),
    ]
    .into_iter()
    .filter(|&(standing, _)| of(standing) != 0)
    .map(|(standing, words)| format!("{} {words}", numbers.part(of(standing))))
    .collect();
    (!rest.is_empty()).then(|| {
        numbers
            .part_of_whole(of(Standing::Shown))
            .text(format!(" is in lines of the workspace or called from there; {}.", rest.join(", ")))
    })
}

fn nothing(analysis: &Analysis, numbers: &Numbers) -> Sentence {
    let filtered = analysis.costs.accounting.filtered.value;
    if filtered > 0 {
        let said = Sentence::new(format!("The filters left nothing of {} ", numbers.value(filtered)));
        return said.data(&numbers.kind).text("; try fewer of them.");
    }
    let others: Vec<String> = (0..analysis.profile.value_types().len())
        .filter(|&other| analysis.profile.sum(other).total > 0)
        .map(|other| analysis.profile.value_types()[other].kind.clone())
        .collect();
    let sentence = Sentence::new("This profile holds nothing of the type ").data(&numbers.kind);
    match others.first() {
        Some(other) => sentence.text("; try ").command(&format!("--type {other}")).text("."),
        None => sentence.text(", and nothing of any other."),
    }
}

/// Most values of a label that are told, and most labels.
const MAX_TOLD: usize = 8;

/// Where the filters left nothing, what there is to choose from for those that look at labels: which labels samples
/// have, or which values. For the user's own screen: what leaves the machine has no labels.
pub(super) fn labels_there(analysis: &Analysis) -> Vec<Sentence> {
    let Analysis { profile, filters, costs, .. } = analysis;
    if costs.total != 0 || costs.accounting.filtered.value == 0 {
        return Vec::new();
    }
    let labels = || (0..profile.samples().len()).flat_map(|sample| profile.samples().labels(sample));
    let of = |filter: &Filter| {
        let Field::Label(key) = filter.field() else { return None };
        let values: FxHashSet<LabelValue> =
            labels().filter(|label| profile.text(label.key) == key).map(|label| label.value).collect();
        if !values.is_empty() {
            let values = values.into_iter().map(|of_label| value(profile, of_label));
            return Some(list(Sentence::new("Values of ").data(key).text(": "), values));
        }
        let keys: FxHashSet<StrId> = labels().map(|label| label.key).collect();
        let none = Sentence::new("No sample has the label ").data(key);
        if keys.is_empty() {
            return Some(none.text(", or any."));
        }
        Some(list(none.text("; there are "), keys.into_iter().map(|key| Cow::from(profile.text(key)))))
    };
    filters.iter().filter_map(of).collect()
}

/// The first names in the order of the alphabet, and how many there are besides. Keeps no more of them than it tells.
fn list<'a>(said: Sentence, names: impl Iterator<Item = Cow<'a, str>>) -> Sentence {
    let mut first: BTreeSet<Cow<'a, str>> = BTreeSet::new();
    let mut more = 0;
    for name in names {
        first.insert(name);
        if first.len() > MAX_TOLD {
            first.pop_last();
            more += 1;
        }
    }
    let told =
        first.iter().enumerate().fold(said, |said, (at, name)| if at == 0 { said } else { said.text(", ") }.data(name));
    if more > 0 { told.text(format!(" and {more} more.")) } else { told.text(".") }
}

fn value(profile: &Profile, value: LabelValue) -> Cow<'_, str> {
    match value {
        LabelValue::Text(text) => profile.text(text).into(),
        LabelValue::Number(number, unit) => format!("{number}{}", profile.text(unit)).into(),
    }
}

/// That a table goes on, and how to see it.
pub(super) fn more(hidden: usize, rows: &str) -> Option<Sentence> {
    (hidden > 0)
        .then(|| Sentence::default().faint(format!("… {hidden} more {rows} (")).command("--top 0").faint(" shows all)"))
}

/// What was odd about the profile, at the end of every view.
pub(super) fn notes(analysis: &Analysis) -> impl Iterator<Item = Sentence> {
    let notes = analysis.profile.notes().iter().chain(&analysis.costs.notes);
    // Sentences of ours, but they quote the file.
    notes.map(|note| Sentence::new("Note: ").text(data::shown_within(note, MAX_NOTE)))
}
