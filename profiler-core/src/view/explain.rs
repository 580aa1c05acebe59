//! The view of `perflens explain`: where every sample went, in counted buckets, why, and what
//! to do about it.
//!
//! Every reason that [`accounting`](crate::attribute::accounting) knows has its sentence here
//! and nowhere else.

mod choices;

use std::cmp::Reverse;

use super::document::{Document, Role, Sentence, Span};
use super::summary::{self, Numbers, number_columns};
use super::table::{Column, Table};
use crate::attribute::Place;
use crate::attribute::accounting::{Bucket, LeafReason, Standing, Weight};
use crate::attribute::analysis::Analysis;
use crate::measure::Heat;

/// Most files listed that were not matched.
const MAX_UNMATCHED: usize = 10;
/// Most binaries whose missing lines are explained.
const MAX_BINARIES: usize = 5;
/// Most packages listed.
const MAX_PACKAGES: usize = 20;

/// Makes the view.
pub fn explain(origin: &str, analysis: &Analysis) -> Document {
    let numbers = Numbers::of(analysis);
    let accounting = &analysis.costs.accounting;
    let mut document = Document::default();
    document.paragraph(summary::title(origin, analysis));
    if analysis.costs.total == 0 {
        document.paragraph(summary::accounting(analysis, None).into_iter().chain(summary::labels_there(analysis)));
        document.paragraph(summary::notes(analysis));
        return document;
    }

    if let Some(standings) = &accounting.workspace {
        buckets(
            &mut document,
            &numbers,
            Sentence::default().strong("In the workspace").text(", by the best frame of each stack"),
            Standing::ALL.iter().map(|&standing| (standing_name(standing), standings[standing as usize])),
        );
        document.paragraph(
            Standing::ALL
                .iter()
                .filter(|&&standing| standings[standing as usize].records > 0)
                .filter_map(|&standing| Some(advice(standing_name(standing), standing_words(standing)?))),
        );
        document.paragraph(unmatched(analysis, &numbers));
    }
    buckets(
        &mut document,
        &numbers,
        Sentence::default().strong("On lines").text(", by the leaf of each stack"),
        LeafReason::ALL.iter().map(|&reason| (leaf_name(reason), accounting.leaf[reason as usize])),
    );
    document.paragraph(
        LeafReason::ALL
            .iter()
            .filter(|&&reason| accounting.leaf[reason as usize].records > 0)
            .filter_map(|&reason| Some(advice(leaf_name(reason), leaf_words(reason)?))),
    );
    document.paragraph(binaries(analysis, &numbers));
    document.paragraph(reach(analysis, &numbers));
    packages(&mut document, analysis, &numbers);
    document.paragraph(choices::choices(analysis, &numbers));
    document.paragraph(filtered(analysis, &numbers));
    document.paragraph((!analysis.groups.has_workspace()).then(summary::workspace_hint));
    document.paragraph(summary::notes(analysis));
    document
}

fn buckets(
    document: &mut Document,
    numbers: &Numbers,
    caption: Sentence,
    rows: impl Iterator<Item = (&'static str, Weight)>,
) {
    let mut columns = vec![Column::glyph()];
    columns.extend(number_columns("", 1));
    columns.extend([Column::number(""), Column::words("").after(1), Column::words("")]);
    let mut table = Table::new(columns);
    table.rows = rows
        .filter(|(_, weight)| weight.records > 0)
        .map(|(name, weight)| weight_cells(numbers, weight, Span::new(name, Role::Plain)))
        .collect();
    document.table(caption.text(", of ").then(numbers.whole()), table, Vec::new());
}

fn weight_cells(numbers: &Numbers, weight: Weight, name: Span) -> Vec<Span> {
    let mut cells = vec![Numbers::block(Heat::of(weight.value, numbers.total()))];
    cells.extend(numbers.cells(weight.value, Role::Plain));
    let records = if weight.records == 1 { "record" } else { "records" };
    cells.extend([Span::new(weight.records.to_string(), Role::Faint), Span::new(records, Role::Faint), name]);
    cells
}

fn advice(name: &str, words: &str) -> Sentence {
    Sentence::default().strong(capitalised(name)).text(format!(": {words}"))
}

/// How a bucket of leaves is called.
fn leaf_name(reason: LeafReason) -> &'static str {
    match reason {
        LeafReason::WithLine => "on a source line",
        LeafReason::NoLineNumber => "no line number",
        LeafReason::FunctionLevelFormat => "function level only",
        LeafReason::NoFileName => "no file name",
        LeafReason::PseudoFile => "not a file",
        LeafReason::AddressOnly => "address only",
        LeafReason::UndefinedLocation => "undefined location",
        LeafReason::EmptyStack => "no stack",
        LeafReason::FramesFiltered => "stack filtered away",
    }
}

/// Why leaves are there, and what to do; `None` where all is well.
fn leaf_words(reason: LeafReason) -> Option<&'static str> {
    Some(match reason {
        LeafReason::WithLine => return None,
        LeafReason::NoLineNumber => {
            "the function has a file, but the profile gives no usable line in it. Record with line tables (Rust: \
             debug = \"line-tables-only\", C and C++: -g1); the cost is on the function all the same."
        }
        LeafReason::FunctionLevelFormat => {
            "the recorder knows functions only, or keeps one line for each, which means nothing and was left out. \
             Costs of functions are right; for lines, use a recorder that keeps them."
        }
        LeafReason::NoFileName => {
            "the function has a name, but no source file: it was built without debug information, or is part of the \
             kernel or of a runtime. Build with debug information and record again."
        }
        LeafReason::PseudoFile => {
            "the code came from no file: evaluated text, generated at run time, or inside an interpreter. Look at \
             the lines that call it."
        }
        LeafReason::AddressOnly => {
            "nothing but an address is known: the binary is stripped, or its symbols were not at hand when the \
             profile was made. Keep the symbols of the binaries named below where the recorder finds them."
        }
        LeafReason::UndefinedLocation => {
            "the profile refers to places that it does not describe: it was damaged or cut by a tool. Export it again."
        }
        LeafReason::EmptyStack => {
            "the recorder could not walk the stack. Build with frame pointers or unwind tables, or record with more \
             of the stack."
        }
        LeafReason::FramesFiltered => {
            "frame filters left nothing of these stacks; their value still counts. Remove frame. filters to see them."
        }
    })
}

/// How a bucket of the workspace is called.
fn standing_name(standing: Standing) -> &'static str {
    match standing {
        Standing::Shown => "shown on your lines",
        Standing::Ambiguous => "several candidates",
        Standing::Generated => "generated code",
        Standing::Dependency => "dependencies",
        Standing::Toolchain => "toolchain",
        Standing::NoMatch => "no such file here",
        Standing::NoLine => "no line",
        Standing::NoFile => "no file",
        Standing::Unresolved => "unresolved",
    }
}

/// Why samples are there, and what to do; `None` where all is well or where the leaf says it.
fn standing_words(standing: Standing) -> Option<&'static str> {
    Some(match standing {
        Standing::Shown | Standing::NoLine | Standing::NoFile | Standing::Unresolved => return None,
        Standing::Ambiguous => {
            "several files of the workspace fit equally well, and a wrong one would be worse than none. Give a \
             narrower --workspace: the folder of the service that was profiled."
        }
        Standing::Generated => {
            "a tool wrote the code that runs, and none of yours calls it on these stacks. Look at what it is \
             generated from."
        }
        Standing::Dependency => {
            "threads of libraries that none of your lines is on the stack of. What your lines call in libraries is \
             counted on your lines."
        }
        Standing::Toolchain => {
            "the language's own work, such as garbage collection and scheduling, with none of your lines on the stack."
        }
        Standing::NoMatch => {
            "the profile has lines there, but in files that the workspace does not have. If they are yours, give their \
             folder with --workspace as well, or check out what was profiled."
        }
    })
}

/// Why the files that cost most are none of the workspace's, where that is more than a question
/// of whose they are.
fn unmatched(analysis: &Analysis, numbers: &Numbers) -> Vec<Sentence> {
    let mut rows: Vec<_> = (analysis.costs.files.iter())
        .filter_map(|row| {
            let placement = analysis.groups.get(row.file).placement.as_ref()?;
            let is_open = matches!(placement.place, Place::NoMatch | Place::Ambiguous);
            is_open.then_some((row, placement.evidence.as_str()))
        })
        .collect();
    rows.sort_by_key(|(row, _)| Reverse(row.cost.cumulative.unsigned_abs()));
    let more = rows.len().saturating_sub(MAX_UNMATCHED);
    let sentences = rows.iter().take(MAX_UNMATCHED).map(|(row, evidence)| {
        Sentence::default()
            .data(analysis.groups.path(&analysis.profile, row.file))
            .text(format!(", {} with calls: ", numbers.part(row.cost.cumulative)))
            .data(evidence)
    });
    let files = if more == 1 { "file" } else { "files" };
    let more = (more > 0).then(|| Sentence::default().faint(format!("… {more} more {files}")));
    sentences.chain(more).collect()
}

/// Why leaves have no line, by binary, and what to do about each.
fn binaries(analysis: &Analysis, numbers: &Numbers) -> Vec<Sentence> {
    let rows = analysis.costs.accounting.without_lines.iter();
    let known = rows.filter_map(|(mapping, weight)| Some((weight, analysis.profile.binary_note(*mapping)?)));
    known
        .take(MAX_BINARIES)
        .map(|(weight, note)| {
            Sentence::default()
                .strong(numbers.part(weight.value))
                .text(": ")
                .data(&note.why)
                .text(". ")
                .text(capitalised(&note.advice))
        })
        .collect()
}

fn capitalised(words: &str) -> String {
    let mut capital = words.to_owned();
    if let Some(first) = capital.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    capital
}

fn reach(analysis: &Analysis, numbers: &Numbers) -> Option<Sentence> {
    let accounting = &analysis.costs.accounting;
    let (leaf, anywhere) = (accounting.leaf_bucket(Bucket::WithLine), accounting.reach_bucket(Bucket::WithLine));
    (anywhere > leaf).then(|| {
        numbers
            .part_of_whole(anywhere)
            .text(" passes a source line somewhere on its stack and is counted there, with calls.")
    })
}

fn packages(document: &mut Document, analysis: &Analysis, numbers: &Numbers) {
    let unplaced = &analysis.costs.accounting.unplaced;
    if unplaced.is_empty() {
        return;
    }
    let words = if analysis.groups.has_workspace() {
        ", what no line of the workspace causes, of "
    } else {
        ", of the leaf of each stack, of "
    };
    let caption = Sentence::default().strong("By package or binary").text(words).then(numbers.whole());
    let mut columns = vec![Column::glyph()];
    columns.extend(number_columns("", 1));
    columns.extend([Column::number(""), Column::words("").after(1), Column::name("")]);
    let mut table = Table::new(columns);
    table.rows = unplaced
        .iter()
        .take(MAX_PACKAGES)
        .map(|(name, weight)| weight_cells(numbers, *weight, Span::data(name)))
        .collect();
    let rest = &unplaced[table.rows.len()..];
    let value = rest.iter().map(|(_, weight)| weight.value).sum();
    let more = (!rest.is_empty())
        .then(|| Sentence::default().faint(format!("… {} more, {}", rest.len(), numbers.part(value))));
    document.table(caption, table, more.into_iter().collect());
}

fn filtered(analysis: &Analysis, numbers: &Numbers) -> Option<Sentence> {
    let weight = analysis.costs.accounting.filtered;
    (weight.records > 0).then(|| {
        Sentence::new(format!(
            "Filters left out {} in {} records; it is in none of the shares above.",
            numbers.value(weight.value),
            weight.records
        ))
    })
}
