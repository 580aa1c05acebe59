//! The line below the table of a hover: what the numbers are of, where they are from, and how
//! far they can be believed.

use super::super::compare::Sides;
use super::super::document::{Role, Sentence, Span};
use super::{Context, Title};
use crate::attribute::Place;
use crate::attribute::analysis::Analysis;
use crate::attribute::compare::Pair;

/// How much a change can be believed.
pub(super) fn judgement(sides: &Sides<'_>, pair: &Pair) -> Vec<Sentence> {
    let change = sides.change(pair);
    let samples = pair.base.samples.zip(pair.new.samples);
    let counts = samples.map(|(base, new)| format!("{base}→{new} samples here"));
    let verdict = match counts {
        Some(counts) if change.is_few() => Some(format!("{counts}: too few to trust")),
        Some(counts) if change.is_noise() => Some(format!("{counts}: may well be chance")),
        counts => counts,
    };
    std::iter::once(unmarked(&sides.mode())).chain(verdict.map(|verdict| Sentence::new(verdict + "."))).collect()
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
    let edited = context.is_edited.then(|| Sentence::new("Measured before your edit."));
    let doubt = context.doubt.map(|doubt| {
        let mut chars = doubt.chars();
        let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
        Sentence::new(format!("{first}{}.", chars.as_str()))
    });
    let sentences: Vec<Sentence> = sentences.into_iter().chain(generated).chain(edited).chain(doubt).collect();
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
