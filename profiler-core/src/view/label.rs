//! The short texts that stand beside code, in hints and lenses: `█ 34.0% 1.20s · here 11%`,
//! `▲ +7.7pp 925ms→1.20s`.
//!
//! Labels are cut by editors without asking, so they are short, and what matters most comes
//! first. What is not here: which lines get one ([`hint`](super::hint)).

use unicode_width::UnicodeWidthStr;

use super::compare::{Change, Sides};
use super::summary::{self, Numbers};
use crate::attribute::Cost;
use crate::attribute::analysis::Analysis;
use crate::measure::Share;

/// Most columns of a label, the lead included. VS Code shows 43 characters of all hints of a
/// line together, and a type hint may stand before ours.
pub const MAX_COLUMNS: usize = 27;

/// Separates a label from the code where the client draws it too close.
const LEAD: char = '\u{a0}';

/// Which characters labels are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Glyphs {
    /// Blocks, triangles, arrows and dots; nearly every font has them.
    #[default]
    Unicode,
    /// ASCII only: no blocks, `+`, `-` and `=` for `▲`, `▼` and `≈`, `->` and `|`.
    Ascii,
}

impl Glyphs {
    pub(super) fn apply(self, text: String) -> String {
        if self == Self::Unicode || text.is_ascii() {
            return text;
        }
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '▲' => out.push('+'),
                '▼' | '−' => out.push('-'),
                '≈' => out.push('='),
                '→' => out.push_str("->"),
                '±' => out.push_str("+-"),
                '·' => out.push('|'),
                'µ' => out.push('u'),
                c => out.push(c),
            }
        }
        out
    }
}

/// How labels are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Style {
    /// Which characters they are made of.
    pub glyphs: Glyphs,
    /// Whether they start with a no-break space, for clients that draw them too close.
    pub has_lead: bool,
}

impl Style {
    /// Puts parts together, as many as fit; the first always does.
    fn join(self, parts: &[&str]) -> String {
        let mut label = String::new();
        label.extend(self.has_lead.then_some(LEAD));
        for (at, &part) in parts.iter().enumerate() {
            let part = self.glyphs.apply(part.to_owned());
            if at > 0 && label.width() + part.width() > MAX_COLUMNS {
                break;
            }
            label.push_str(&part);
        }
        label
    }
}

/// The label of a line: `█ ~34.0% 1.20s · here 11%`. The block is how hot it is, `~` says
/// that the line may be another one.
pub(super) fn cost(analysis: &Analysis, numbers: &Numbers, cost: Cost, is_uncertain: bool, style: Style) -> String {
    let mut share = String::new();
    if let (Some(block), Glyphs::Unicode) = (numbers.heat(cost.cumulative).block(), style.glyphs) {
        share.extend([block, ' ']);
    }
    share.extend(is_uncertain.then_some('~'));
    share.push_str(&numbers.share(cost.cumulative));
    let value = format!(" {}", numbers.value(cost.cumulative));
    let here = here(analysis, numbers, cost).unwrap_or_default();
    style.join(&[&share, &value, &here])
}

/// How much of a cost is spent at the place itself, libraries it calls included: ` here` when
/// that is nearly all, ` · here 11%` of the total when it is some, and nothing when it is
/// little. Without a workspace what the place itself spends, as `self`.
pub(super) fn here(analysis: &Analysis, numbers: &Numbers, cost: Cost) -> Option<String> {
    let own = summary::own(analysis, cost);
    let word = summary::own_heading(analysis);
    let of_cumulative = Share::of(own, cost.cumulative.saturating_abs())?;
    if of_cumulative.is_at_least(90, 100) && own.signum() == cost.cumulative.signum() {
        Some(format!(" {word}"))
    } else if !of_cumulative.is_at_least(10, 100) || numbers.heat(own).level() == 0 {
        // Level 0 is below one percent of what was placed.
        None
    } else {
        Some(format!(" · {word} {}", numbers.whole_percent(own)))
    }
}

/// The label of a change: `▲ +7.7pp 925ms→1.20s`, `▲ +2.0pp new 70.0ms`, `▲ ~+7.7pp 925ms→1.20s`. Values
/// that nothing can be concluded from give way to that word: `≈ +2.4pp inconclusive`.
pub(super) fn change(sides: &Sides<'_>, change: &Change<'_>, is_uncertain: bool, style: Style) -> String {
    let doubt = if is_uncertain { "~" } else { "" };
    let points = change.points.map_or_else(String::new, |points| format!(" {doubt}{points}"));
    let values = format!(" {}", values(sides, change));
    let values = if change.is_inconclusive() { " inconclusive".to_owned() } else { values };
    style.join(&[change.glyph(), &points, &values])
}

/// `925ms→1.20s`, `new 70.0ms`, `gone 70.0ms`.
pub(super) fn values(sides: &Sides<'_>, change: &Change<'_>) -> String {
    let (before, after) = sides.values(change.pair);
    before + &after
}
