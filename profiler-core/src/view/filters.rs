//! Filters to choose from, in words: each says what it would leave out before it is taken.

use super::data;
use super::summary::Numbers;
use crate::attribute::Filter;
use crate::attribute::analysis::Analysis;
use crate::attribute::choices::{Choice, ChoiceKind};
use crate::cancel::{CancelFlag, Cancelled};

/// Most characters of a value of a label.
const MAX_VALUE: usize = 40;

/// A choice for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// What it is about.
    pub kind: ChoiceKind,
    /// `thread worker-1: leaves out 34%`.
    pub title: String,
    /// What is added to the filters that apply.
    pub filters: Vec<Filter>,
}

/// What can be chosen, with the share of what is counted now that it leaves out. Looks through the samples.
pub fn offers(analysis: &Analysis, cancel: &CancelFlag) -> Result<Vec<Offer>, Cancelled> {
    let numbers = Numbers::of(analysis);
    let choices = analysis.stacks.choices(&analysis.profile, analysis.value_type, cancel)?;
    let offer = |choice: Choice| {
        let title = title(&choice, analysis.on_scale(choice.value), &numbers);
        Offer { kind: choice.kind, title, filters: choice.filters }
    };
    Ok(choices.into_iter().map(offer).collect())
}

fn title(choice: &Choice, kept: i64, numbers: &Numbers) -> String {
    let value = || choice.filters.first().map_or("", Filter::value);
    let shown = data::shown_within(value(), MAX_VALUE).into_owned();
    let name = match choice.kind {
        ChoiceKind::Executors => {
            return format!(
                "hide executor frames: {} passes them, and goes to their callers",
                numbers.whole_percent(kept)
            );
        }
        ChoiceKind::Thread => format!("thread {shown}"),
        ChoiceKind::Service | ChoiceKind::Label => {
            let text = choice.filters.first().map(ToString::to_string).unwrap_or_default();
            let key = text.strip_prefix("label.").and_then(|rest| rest.split('=').next()).unwrap_or_default();
            format!("{} {shown}", data::shown_within(key, MAX_VALUE))
        }
    };
    format!("{name}: {}", leaves_out(numbers, kept))
}

/// A choice with a name of its own, which keeps so much of what the stacks say, and what it leaves out:
/// `service checkout: leaves out 34%`.
pub fn named(analysis: &Analysis, name: &str, kept: i64) -> String {
    format!("{}: {}", data::shown_within(name, MAX_VALUE), leaves_out(&Numbers::of(analysis), analysis.on_scale(kept)))
}

/// `leaves out 34%`, of what is counted now.
fn leaves_out(numbers: &Numbers, kept: i64) -> String {
    format!("leaves out {}", numbers.whole_percent(numbers.total().saturating_sub(kept)))
}

/// The filter that keeps what passes a function (a row of [`Costs::functions`](crate::attribute::Costs)), and
/// its title: `only under this function: leaves out 34%`. `None` where the function has no name, or it applies.
pub fn under(analysis: &Analysis, function: usize) -> Option<Offer> {
    let row = analysis.costs.functions.get(function)?;
    let filter: Filter = format!("fn={}", row.name).parse().ok()?;
    if row.name.is_empty() || filter.value() != row.name || analysis.filters.contains(&filter) {
        return None;
    }
    let numbers = Numbers::of(analysis);
    let title = format!("only under this function: {}", leaves_out(&numbers, row.cost.cumulative.saturating_abs()));
    Some(Offer { kind: ChoiceKind::Label, title, filters: vec![filter] })
}
