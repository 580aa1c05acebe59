//! The line below the table of a hover: what the numbers are of, where they are from, and how
//! far they can be believed.

use super::super::compare::{Change, Sides, drift_in_words};
use super::super::data;
use super::super::document::{Role, Sentence, Span};
use super::super::summary::Numbers;
use super::{Context, Title};
use crate::attribute::Place;
use crate::attribute::analysis::Analysis;
use crate::attribute::calls::Portion;
use crate::attribute::compare::Pair;
use crate::measure::Verdict;

/// How much a change can be believed.
pub(super) fn judgement(sides: &Sides<'_>, pair: &Pair) -> Vec<Sentence> {
    std::iter::once(unmarked(&sides.mode())).chain([Sentence::new(verdict(&sides.change(pair)))]).collect()
}

/// What became of it, with the interval and what that rests on: a sentence.
fn verdict(change: &Change<'_>) -> String {
    let counts = change.pair.base.samples.zip(change.pair.new.samples);
    let (Some((base, new)), Some(judged)) = (counts, change.judged) else {
        return "Samples are not counted on both sides, so a change can't be told from chance.".to_owned();
    };
    let counts = format!("{base}→{new} samples here");
    if change.is_few() {
        return format!("{counts}: too few to trust.");
    }
    let interval = change.interval().unwrap_or_default();
    let runs = match (change.pairs, change.interval_of_runs()) {
        (2.., Some(spread)) => format!(" in {} pairs of runs that differ by {spread}pp", change.pairs),
        _ => String::new(),
    };
    match judged.verdict {
        Verdict::Improved => format!("Improved, {interval}pp (95 %): {counts}{runs}."),
        Verdict::Regressed => format!("Regressed, {interval}pp (95 %): {counts}{runs}."),
        Verdict::Unchanged => format!("Unchanged, within {interval}pp (95 %): {counts}{runs}."),
        Verdict::Inconclusive if judged.may_be_drift => format!(
            "Inconclusive, {interval}pp (95 %) by the samples alone: {counts}. It may be how fast the machine was: so few \
             recordings can't tell {}.",
            drift_in_words()
        ),
        Verdict::Inconclusive if judged.difference().abs() > judged.noise => {
            format!("Inconclusive, {interval}pp (95 %): {counts}{runs}, and not all in the same direction.")
        }
        Verdict::Inconclusive => format!(
            "Inconclusive, {interval}pp (95 %) is too wide to see a change: {counts}{runs}; more samples or runs would \
             tell."
        ),
    }
}

/// Most portions that are told of one split.
const MAX_PORTIONS: usize = 3;
/// Most characters of the name of one.
const MAX_NAME: usize = 48;

/// Whose the cost is, where several share it: `By thread: main 30.1%, worker 9.0%.`
pub(super) fn splits(numbers: &Numbers, title: &Title, instances: &[Portion], context: &Context<'_>) -> Vec<Sentence> {
    let none: &[Portion] = &[];
    let (functions, threads) =
        context.calls.map_or((none, none), |calls| (calls.functions.as_slice(), calls.threads.as_slice()));
    let functions = if title.line.is_some() { functions } else { instances };
    [("By service: ", context.services), ("By function: ", functions), ("By thread: ", threads)]
        .into_iter()
        .filter_map(|(words, portions)| split(numbers, words, portions))
        .collect()
}

fn split(numbers: &Numbers, words: &str, portions: &[Portion]) -> Option<Sentence> {
    let mut portions: Vec<&Portion> = portions.iter().filter(|portion| portion.value != 0).collect();
    // A stable order, in which what is equal stays as it came.
    portions.sort_by_key(|portion| std::cmp::Reverse(portion.value.unsigned_abs()));
    if portions.len() < 2 {
        return None;
    }
    let told = portions.iter().take(MAX_PORTIONS).enumerate();
    let sentence = told.fold(Sentence::new(words), |line, (at, portion)| {
        let line = if at == 0 { line } else { line.text(", ") };
        let name = Sentence::default().data(&data::shown_within(&portion.name, MAX_NAME));
        // A name of several words is marked as a whole.
        let name = if portion.name.contains(' ') { name } else { unmarked(&name) };
        line.then(name).text(format!(" {}", numbers.share(portion.value)))
    });
    Some(match portions.len().saturating_sub(MAX_PORTIONS) {
        0 => sentence.text("."),
        more => sentence.text(format!(" and {more} more.")),
    })
}

/// The line below the table: the name where the head has no room for it, what the numbers
/// are of, the path and why it is this file; then sentences.
pub(super) fn prose(
    analysis: &Analysis,
    title: &Title,
    parts: Vec<Sentence>,
    sentences: Vec<Sentence>,
    context: &Context<'_>,
) -> Sentence {
    let name = title.name.as_ref().filter(|_| !title.head().1).map(|name| {
        let name = Sentence::default().data(name);
        match title.further {
            0 => name,
            1 => name.text(" and another function"),
            further => name.text(format!(" and {further} other functions")),
        }
    });
    let placement = analysis.groups.get(title.file).placement.as_ref();
    let path = placement.filter(|placement| !placement.evidence.is_empty()).map(|placement| {
        let path = Sentence::default().data(analysis.groups.path(&analysis.profile, title.file));
        path.text(" ").then(unmarked(&Sentence::default().data(&placement.evidence)))
    });
    let mut line = Sentence::default();
    for part in name.into_iter().chain(parts).chain(path) {
        line = if line.spans.is_empty() { part } else { line.text(" · ").then(part) };
    }
    let generated = (title.place == Some(Place::Generated))
        .then(|| Sentence::new("Generated code: what is spent here counts for the hand-written code that calls it."));
    let anchor = analysis.groups.get(title.file).anchor.as_ref();
    let found = anchor.and_then(|anchor| anchor.sentence(title.now)).map(Sentence::new);
    let edited = context.is_edited.then(|| Sentence::new("Measured before your edit.")).filter(|_| found.is_none());
    let doubt = context.doubt.map(|doubt| {
        let mut chars = doubt.chars();
        let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
        Sentence::new(format!("{first}{}.", chars.as_str()))
    });
    let kind = Numbers::of(analysis);
    let polling = (context.awaits && title.line.is_some() && matches!(kind.kind(), "cpu" | "samples"))
        .then(|| Sentence::new(format!("This is time spent polling; waiting is not in {}.", kind.kind())));
    let sentences: Vec<Sentence> =
        sentences.into_iter().chain(polling).chain(generated).chain(found).chain(edited).chain(doubt).collect();
    if !sentences.is_empty() && !line.to_string().ends_with('.') {
        line = line.text(".");
    }
    sentences.into_iter().fold(line, |line, sentence| line.text(" ").then(sentence))
}

/// The sentence with plain words of foreign text as words, since they can do no harm: only
/// what might be read as markup or a link stays marked as data.
pub(super) fn unmarked(sentence: &Sentence) -> Sentence {
    let is_plain = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | '→'));
    sentence.spans.iter().fold(Sentence::default(), |out, span| {
        if span.role != Role::Data {
            return out.span(span.clone());
        }
        span.text.split(' ').enumerate().fold(out, |out, (at, word)| {
            let out = if at > 0 { out.text(" ") } else { out };
            if is_plain(word) { out.text(word) } else { out.span(Span::new(word, span.role)) }
        })
    })
}
