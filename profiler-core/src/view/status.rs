//! What an editor's status bar says about the profile, and the longer sentence behind it.
//!
//! Two facts at most: what is shown, and either how much it is or what is wrong with it.

use super::data;
use super::document::Sentence;
use super::summary::Numbers;
use crate::attribute::analysis::Analysis;
use crate::attribute::narrow::Narrowing;
use crate::measure::Share;

/// Packages named in the sentence.
const MAX_PACKAGES: usize = 3;

/// What there is to say. `name` is what is shown in few words: `cpu 15m`.
#[derive(Clone, Copy, Debug)]
pub enum Status<'a> {
    /// Nothing is loaded.
    NoProfile,
    /// It did not work; what to do about it: `sign in`.
    Failed(&'a str),
    /// A profile is on its way.
    Loading(&'a str),
    /// A recording is running.
    Recording(&'a str),
    /// A profile is shown.
    Loaded(&'a str, &'a Analysis),
    /// A profile is compared with a base of this name.
    Comparing(&'a str, &'a str),
}

impl Status<'_> {
    /// The text: `cpu 15m · 3.52s`; `cpu 15m · 61% placed` when much of it is elsewhere.
    pub fn text(&self) -> String {
        match self {
            Self::NoProfile => "no profile".to_owned(),
            Self::Failed(text) | Self::Loading(text) | Self::Recording(text) => data::shown(text).into_owned(),
            Self::Loaded(name, analysis) => {
                let numbers = Numbers::of(analysis);
                let fact = if is_mostly_placed(analysis) {
                    numbers.value(numbers.total())
                } else {
                    format!("{} placed", numbers.whole_percent(numbers.placed()))
                };
                format!("{} · {fact}", data::shown(name))
            }
            Self::Comparing(name, base) => format!("{} vs {}", data::shown(name), data::shown(base)),
        }
    }

    /// The icon, by its name among the codicons of VS Code, with `~spin` where it turns.
    pub fn icon(&self) -> &'static str {
        match self {
            Self::Loaded(_, analysis) if !is_mostly_placed(analysis) => "warning",
            Self::NoProfile | Self::Loaded(..) => "flame",
            Self::Failed(_) => "error",
            Self::Loading(_) => "sync~spin",
            Self::Recording(_) => "record",
            Self::Comparing(..) => "diff",
        }
    }
}

/// Whether 90 % or more of the value is in lines of the workspace, or there is nothing to
/// place or nowhere to place it.
fn is_mostly_placed(analysis: &Analysis) -> bool {
    let numbers = Numbers::of(analysis);
    Share::of(numbers.placed(), numbers.total()).is_none_or(|share| share.is_at_least(90, 100))
}

/// Whose the value is: `3% of 41.0h cpu is in this workspace; 31% Go runtime, 12% kernel, 54%
/// in 7 others.` With the filter that leaves more of one's own, if that is known.
pub fn whose(analysis: &Analysis, narrowing: Option<&Narrowing>) -> Sentence {
    let numbers = Numbers::of(analysis);
    let accounting = &analysis.costs.accounting;
    let Some(shown) = accounting.shown() else {
        return numbers.whole().text("; no folder is open to find its files in.");
    };
    if analysis.costs.total == 0 {
        let filtered = accounting.filtered.value;
        return if filtered > 0 {
            Sentence::new(format!("The filters left nothing of {} ", numbers.value(filtered)))
        } else {
            Sentence::new("This profile holds nothing of the type ")
        }
        .data(numbers.kind())
        .text(".");
    }
    let mut sentence = numbers.part_of_whole(shown).text(" is in this workspace");
    // A single other one may as well be named.
    let all = accounting.unplaced.len();
    let (named, others) = accounting.unplaced.split_at(if all <= MAX_PACKAGES + 1 { all } else { MAX_PACKAGES });
    for (at, (name, weight)) in named.iter().enumerate() {
        let separator = if at == 0 { "; " } else { ", " };
        sentence = sentence.text(format!("{separator}{} ", numbers.whole_percent(weight.value))).data(name);
    }
    if !others.is_empty() {
        let rest: i64 = others.iter().map(|(_, weight)| weight.value).sum();
        sentence = sentence.text(format!(", {} in {} others", numbers.whole_percent(rest), others.len()));
    }
    sentence = sentence.text(".");
    match narrowing {
        Some(narrowing) => sentence.text(" With the filter ").command(&narrowing.filter.to_string()).text(format!(
            " it would be {} of {}.",
            Share::of(narrowing.placed, narrowing.total).map_or_else(String::new, Share::whole_percent),
            numbers.value(analysis.on_scale(narrowing.total))
        )),
        None => sentence,
    }
}
