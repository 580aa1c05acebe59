//! The view of `perflens annotate`: a source file with its costs in the margin.
//!
//! What is not here: reading files, and deciding which may be read.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::compare::{self, Change, Sides};
use super::data;
use super::document::{Block, Document, Role, Sentence, Span};
use super::report::{self, Head, Line, Location, Rows, Values};
use super::source::{self, Source};
use super::summary::{self, Numbers, number_columns};
use super::table::{Column, Table};
use crate::attribute::analysis::{Analysis, ComparedTo};
use crate::attribute::{GroupId, LineRow};

/// The file that is asked for.
pub struct Wanted<'a> {
    /// Where it is: absolute, with `/`, without links.
    pub path: &'a str,
    /// Whether a path of this machine is the file.
    pub is_at: &'a dyn Fn(&Path) -> bool,
}

/// Why a file has no costs. Displays as one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoCosts {
    /// Another file, or several, has the cost of every path that could be this one.
    Elsewhere {
        /// The path of the profile.
        path: String,
        /// What became of it.
        evidence: String,
    },
    /// The profile names no such file.
    NotInProfile {
        /// Files that cost most.
        others: Vec<String>,
    },
    /// The profile names it, but no sample that counts passes it.
    NoSamples {
        /// The value type.
        kind: String,
        /// Whether filters might be why.
        is_filtered: bool,
    },
}

impl fmt::Display for NoCosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elsewhere { path, evidence } => {
                write!(f, "the profile's {} was not taken for it: {}", data::shown(path), data::shown(evidence))
            }
            Self::NotInProfile { others } if others.is_empty() => f.write_str("the profile names no source files"),
            Self::NotInProfile { others } => {
                let others: Vec<_> = others.iter().map(|other| data::shown(other)).collect();
                write!(f, "the profile names no file like it; it spends most in {}", others.join(", "))
            }
            Self::NoSamples { kind, is_filtered } => {
                let filters = if *is_filtered { ", under these filters" } else { "" };
                write!(f, "the profile names it, but holds nothing of type {} there{filters}", data::shown(kind))
            }
        }
    }
}

/// The group of the profile's paths that are the file.
pub fn find(analysis: &Analysis, wanted: &Wanted<'_>) -> Result<GroupId, NoCosts> {
    let (profile, groups) = (&analysis.profile, &analysis.groups);
    let all = || (1u32..).map(GroupId).zip(&groups.all()[1..]);
    let matched = all().find(|(_, group)| {
        let placement = group.placement.as_ref();
        placement.and_then(|placement| placement.path.as_deref()).is_some_and(|path| (wanted.is_at)(path))
    });
    // Files of dependencies and the toolchain are not the workspace's, but theirs is the path.
    let spelled = || all().find(|(_, group)| group.files.iter().any(|&file| profile.path(file) == wanted.path));
    if let Some((group, _)) = matched.or_else(spelled) {
        return if analysis.costs.files.iter().any(|row| row.file == group) {
            Ok(group)
        } else {
            let kind = analysis.selected().kind.clone();
            Err(NoCosts::NoSamples { kind, is_filtered: !analysis.filters.is_empty() })
        };
    }
    let file_name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let namesake = analysis.costs.files.iter().find_map(|row| {
        let path = groups.path(profile, row.file);
        (file_name(path) == file_name(wanted.path)).then(|| {
            let placement = groups.get(row.file).placement.as_ref();
            let evidence = placement.map_or("its path is another", |placement| &placement.evidence).to_owned();
            let taken = groups.workspace_file(row.file).map(|file| format!("it is {file} ({evidence})"));
            NoCosts::Elsewhere { path: path.to_owned(), evidence: taken.unwrap_or(evidence) }
        })
    });
    Err(namesake.unwrap_or_else(|| {
        let mut files: Vec<_> = analysis.costs.files.iter().collect();
        files.sort_by_key(|row| std::cmp::Reverse(row.cost.cumulative.unsigned_abs()));
        let others = files.iter().take(3).map(|row| groups.display(profile, row.file).to_owned()).collect();
        NoCosts::NotInProfile { others }
    }))
}

/// What is annotated.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// Name of the profile for people.
    pub origin: &'a str,
    /// Name of the base, in a comparison.
    pub base_origin: &'a str,
    /// The file, as [`find`] has found it.
    pub file: GroupId,
    /// Its text.
    pub source: &'a Source,
}

/// The file as plain data. Lines are in the order of the file.
#[derive(Clone, Debug, Serialize)]
pub struct Annotation {
    /// [`report::SCHEMA`].
    pub schema: u32,
    /// What was measured.
    pub profile: Head,
    /// The file, and what it costs.
    pub file: report::File,
    /// Its lines with a cost.
    pub lines: Vec<Line>,
    /// How many of them are past the end of the file.
    pub past_end: usize,
}

/// Makes the plain data.
pub fn annotation<'a>(analysis: &'a Analysis, compared: Option<&'a ComparedTo>, subject: &Subject<'_>) -> Annotation {
    let report = match compared {
        Some(compared) => report::comparison(subject.origin, subject.base_origin, analysis, compared, 0),
        None => report::report(subject.origin, analysis, 0),
    };
    let rows = Rows::of(analysis);
    let location = rows.location(subject.file);
    let is_here = |other: &Location| other.display() == location.display();
    let mut lines: Vec<Line> = report.lines.into_iter().filter(|line| is_here(&line.location)).collect();
    lines.sort_by_key(|line| line.line);
    let past_end = lines.iter().filter(|line| line.line as usize > subject.source.len()).count();
    let file = report.files.into_iter().find(|file| is_here(&file.location));
    let file = file.unwrap_or(report::File { location, values: Values::default(), anchor: None });
    Annotation { schema: report::SCHEMA, profile: report.profile, file, lines, past_end }
}

/// Makes the view: the whole file, each line with its costs.
pub fn annotate<'a>(analysis: &'a Analysis, compared: Option<&'a ComparedTo>, subject: &Subject<'_>) -> Document {
    let mut document = Document::default();
    document.paragraph(match compared {
        Some(compared) => Sides::of(analysis, compared).title(subject.origin, subject.base_origin),
        None => summary::title(subject.origin, analysis),
    });
    document.blocks.push(listing(analysis, compared, subject, 1..=subject.source.len()));
    document.paragraph(changed(analysis, subject));
    document.paragraph(past_end(analysis, subject));
    document.paragraph(summary::notes(analysis));
    document
}

/// Some lines of the file with their costs.
pub fn listing<'a>(
    analysis: &'a Analysis,
    compared: Option<&'a ComparedTo>,
    subject: &Subject<'_>,
    lines: RangeInclusive<usize>,
) -> Block {
    let margin = match compared {
        Some(compared) => change_margin(&Sides::of(analysis, compared), compared, subject.file),
        None => cost_margin(analysis, subject.file),
    };
    let mut columns = margin.columns;
    let width = columns.len();
    columns.extend([Column::number(""), Column::words("").after(1), Column::code()]);
    let mut table = Table::new(columns);
    for number in lines {
        let Some(line) = subject.source.line(number) else { break };
        let mut row = margin.cells.get(&number).cloned().unwrap_or_else(|| vec![Span::default(); width]);
        row.extend([
            Span::new(number.to_string(), Role::Faint),
            Span::new("│", Role::Faint),
            Span::new(source::shown_line(line), Role::Plain),
        ]);
        table.rows.push(row);
    }
    Block::Table { caption: caption(analysis, subject.file), table, footers: margin.legend }
}

/// What stands beside the lines of one file.
struct Margin {
    columns: Vec<Column>,
    /// By line number.
    cells: FxHashMap<usize, Vec<Span>>,
    /// What marks in the cells mean.
    legend: Vec<Sentence>,
}

fn cost_margin(analysis: &Analysis, file: GroupId) -> Margin {
    let numbers = Numbers::of(analysis);
    let mut columns = vec![Column::glyph()];
    columns.extend(number_columns("with calls", 1));
    columns.push(Column::number(summary::own_heading(analysis)));
    let rows = analysis.costs.lines.iter().filter(|row| row.file == file);
    let cells = rows.map(|row| {
        let heat = numbers.heat(row.cost.cumulative);
        let own = summary::own(analysis, row.cost);
        let mut cells = vec![Numbers::block(heat)];
        let [mut share, value] = numbers.cells(row.cost.cumulative, Role::Heat(heat));
        if analysis.groups.is_uncertain(file, row.line) {
            share.text.insert(0, '~');
        }
        cells.extend([share, value]);
        cells.push(if own == 0 { Span::default() } else { Span::new(numbers.share(own), Role::Plain) });
        (row.line.0 as usize, cells)
    });
    Margin { columns, cells: cells.collect(), legend: Vec::new() }
}

fn change_margin(sides: &Sides<'_>, compared: &ComparedTo, file: GroupId) -> Margin {
    let name = sides.new.groups.display(&sides.new.profile, file);
    let changes = compared.comparison.lines.iter().filter_map(|pair| {
        let (side, row) = match (pair.new.row, pair.base.row) {
            (Some(row), _) => (sides.new, row),
            (None, row) => (sides.base, row?),
        };
        let row = &side.costs.lines[row];
        let change = sides.change(pair);
        (side.groups.display(&side.profile, row.file) == name && change.is_shown())
            .then_some((row.line.0 as usize, change))
    });
    let changes: Vec<(usize, Change<'_>)> = changes.collect();
    Margin {
        columns: Sides::change_columns(),
        cells: changes.iter().map(|(line, change)| (*line, sides.change_cells(change))).collect(),
        legend: compare::legend(changes.iter().map(|(_, change)| change)),
    }
}

/// The file, what it costs, and why it was taken for the profile's.
fn caption(analysis: &Analysis, file: GroupId) -> Sentence {
    let numbers = Numbers::of(analysis);
    let (profile, groups, costs) = (&analysis.profile, &analysis.groups, &analysis.costs);
    let mut sentence =
        Sentence::default().span(Span::data(groups.display(profile, file)).with_role(Role::Strong)).text(": ");
    if let Some(row) = costs.files.iter().find(|row| row.file == file) {
        sentence = sentence.then(numbers.part_of_whole(row.cost.cumulative)).text(format!(
            " with calls, {} {}",
            numbers.whole_percent(summary::own(analysis, row.cost)),
            summary::own_heading(analysis)
        ));
    }
    let functions = costs.functions.iter().filter(|row| row.file == file).count();
    sentence = sentence.text(format!(" · {functions} function{}", if functions == 1 { "" } else { "s" }));
    match groups.get(file).placement.as_ref() {
        Some(placement) if !placement.evidence.is_empty() => sentence.text(" · matched: ").data(&placement.evidence),
        _ => sentence,
    }
}

/// How lines were found, when the file is another by now.
fn changed(analysis: &Analysis, subject: &Subject<'_>) -> Vec<Sentence> {
    let Some(anchor) = analysis.groups.get(subject.file).anchor.as_ref() else { return Vec::new() };
    let mut sentences = Vec::new();
    if let Some(old) = anchor.old_name() {
        sentences.push(Sentence::new("The file was ").data(old).text(" when it was measured."));
    }
    if anchor.is_changed() {
        sentences.push(
            Sentence::new("The file has changed since it was measured; lines were found ")
                .data(&anchor.basis().to_string())
                .text("."),
        );
        let is_marked = |row: &&LineRow| row.file == subject.file && analysis.groups.is_uncertain(row.file, row.line);
        if analysis.costs.lines.iter().any(|row| is_marked(&row)) {
            sentences.push(Sentence::new("~ may be another line than the one that was measured."));
        }
    }
    sentences.extend(gone(analysis, subject.file));
    sentences
}

/// What was on lines that are gone.
fn gone(analysis: &Analysis, file: GroupId) -> Option<Sentence> {
    let row = analysis.costs.gone.iter().find(|row| row.file == file)?;
    let numbers = Numbers::of(analysis);
    let share = numbers.share(row.cost.cumulative);
    let value = numbers.value(row.cost.cumulative);
    Some(Sentence::new(format!("{share} {value} was on lines that are gone; it counts for their functions only.")))
}

fn past_end(analysis: &Analysis, subject: &Subject<'_>) -> Option<Sentence> {
    let length = subject.source.len();
    let is_past = |row: &&LineRow| row.file == subject.file && row.line.0 as usize > length;
    let (count, verb) = match analysis.costs.lines.iter().filter(is_past).count() {
        0 => return None,
        1 => ("1 line".to_owned(), "is"),
        count => (format!("{count} lines"), "are"),
    };
    Some(Sentence::new(format!(
        "{count} of the profile {verb} past the end of this file: it has changed since, so the costs above may stand \
         on wrong lines."
    )))
}
