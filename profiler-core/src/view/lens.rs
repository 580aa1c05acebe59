//! The costs of functions as an editor writes them above their declarations.
//!
//! What is not here: what a click does, and lenses that have nothing to do with costs.

use rustc_hash::FxHashMap;

use super::by_file::{FileChanges, FileCosts};
use super::compare::Sides;
use super::hint::{self, Settings};
use super::label;
use super::summary::Numbers;
use crate::profile::LineNo;

/// Fewer samples than this are too few to trust.
const FEW_SAMPLES: u32 = 10;

/// A text above a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lens {
    /// The line of the profile, 1-based: where the function starts, or else its first line
    /// with a cost.
    pub line: u32,
    /// The text.
    pub text: String,
    /// The functions that start there, as rows of
    /// [`Costs::functions`](crate::attribute::Costs::functions): what differs in type
    /// parameters only, or one inside the other. The text is about the first.
    pub functions: Vec<usize>,
}

/// The lenses of a file, by line: `function 41.1% 1.45s · here 14% (#2)`. Functions below the
/// threshold of hints have none.
///
/// Costs of several functions at one line can't be added up, as one may call the other; the
/// largest stands for all, and says so.
pub fn lenses(file: FileCosts<'_>, settings: &Settings) -> Vec<Lens> {
    let numbers = Numbers::of(file.analysis);
    let functions = &file.analysis.costs.functions;
    let cost = |function: usize| functions[function].cost;
    let worth_it = file.functions().filter(|&at| hint::is_worth_it(&numbers, cost(at).cumulative, settings));
    let size = |function: usize| cost(function).cumulative.unsigned_abs();
    by_line(file, worth_it, size)
        .into_iter()
        .map(|(line, functions)| {
            let text = text(file, &numbers, functions[0], line) + &largest_of(functions.len());
            Lens { line, text: settings.style.glyphs.apply(text), functions }
        })
        .collect()
}

fn text(file: FileCosts<'_>, numbers: &Numbers, function: usize, line: u32) -> String {
    let cost = file.analysis.costs.functions[function].cost;
    let here = label::here(file.analysis, numbers, cost);
    // The rank is about what is spent here, so it needs that before it.
    let rank = here.as_ref().and_then(|_| file.index.rank(function)).map(|rank| format!(" (#{rank})"));
    let samples = file.index.samples(function).filter(|&samples| samples < FEW_SAMPLES);
    let samples = samples.map(|samples| format!(" · {samples} sample{}", if samples == 1 { "" } else { "s" }));
    let doubt = if file.analysis.groups.is_uncertain(file.file, LineNo(line)) { "~" } else { "" };
    format!(
        "function {doubt}{} {}{}{}{}",
        numbers.share(cost.cumulative),
        numbers.value(cost.cumulative),
        here.unwrap_or_default(),
        rank.unwrap_or_default(),
        samples.unwrap_or_default()
    )
}

/// The lenses of a comparison: what changed by 0.1 pp or more, with the 95 % confidence interval where
/// samples are counted: `function ▲ +7.7pp ±2.1 925ms→1.20s`. Functions that only the base has get none:
/// there may be nothing to write it above.
pub fn change_lenses(file: FileCosts<'_>, changes: FileChanges<'_>, settings: &Settings) -> Vec<Lens> {
    let sides = Sides::of(changes.analysis, changes.compared);
    let changed: FxHashMap<usize, _> = changes
        .functions()
        .map(|pair| sides.change(pair))
        .filter(super::compare::Change::is_shown)
        .filter_map(|change| Some((change.pair.new.row?, change)))
        .collect();
    let size = |function: usize| changed[&function].pair.diff_cumulative().unsigned_abs();
    by_line(file, file.functions().filter(|function| changed.contains_key(function)), size)
        .into_iter()
        .map(|(line, functions)| {
            let change = &changed[&functions[0]];
            let points = change.points.map_or_else(String::new, |points| format!(" {points}"));
            let interval = change.interval().map_or_else(String::new, |interval| format!(" {interval}"));
            let values =
                if change.is_inconclusive() { "inconclusive".to_owned() } else { label::values(&sides, change) };
            let samples = match (change.pair.base.samples, change.pair.new.samples) {
                (Some(base), Some(new)) if change.is_few() => format!(" · {base}→{new} samples"),
                _ => String::new(),
            };
            let text = format!(
                "function {}{points}{interval} {values}{samples}{}",
                change.glyph(),
                largest_of(functions.len())
            );
            Lens { line, text: settings.style.glyphs.apply(text), functions }
        })
        .collect()
}

/// Functions by the line their lens is at, the largest first.
fn by_line<K: Ord>(
    file: FileCosts<'_>,
    functions: impl Iterator<Item = usize>,
    size: impl Fn(usize) -> K,
) -> Vec<(u32, Vec<usize>)> {
    let mut placed: Vec<(u32, usize)> = Vec::new();
    let mut homeless: Vec<usize> = Vec::new();
    for function in functions {
        match file.analysis.costs.functions[function].start_line {
            LineNo::UNKNOWN => homeless.push(function),
            line => placed.push((line.0, function)),
        }
    }
    placed.extend(first_lines(file, &homeless));
    placed.sort_by_key(|&(line, function)| (line, std::cmp::Reverse(size(function)), function));
    placed
        .chunk_by(|(a, _), (b, _)| a == b)
        .map(|chunk| (chunk[0].0, chunk.iter().map(|&(_, function)| function).collect()))
        .collect()
}

/// The first line with a cost, of functions whose start is unknown. Those without any line
/// have no place.
fn first_lines(file: FileCosts<'_>, functions: &[usize]) -> impl Iterator<Item = (u32, usize)> {
    let mut first: FxHashMap<usize, u32> = FxHashMap::default();
    if !functions.is_empty() {
        for row in file.all_lines() {
            for &function in row.functions.iter() {
                first.entry(function).or_insert(row.line.0);
            }
        }
    }
    functions.iter().filter_map(move |function| Some((*first.get(function)?, *function)))
}

fn largest_of(count: usize) -> String {
    if count > 1 { format!(" · largest of {count}") } else { String::new() }
}
