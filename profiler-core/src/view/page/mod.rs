//! A profile as one HTML page that stands for itself: flame graph, hot lines, their source with
//! costs beside it. It can be mailed, attached to a ticket, or kept.
//!
//! The page loads nothing and asks nobody: its policy allows one script and two styles, by their
//! hashes, and no network. Without scripts everything but the flame graph is there. Text from
//! the profile and from source is escaped ([`html`](super::html)) or stands in a block of data
//! that can't be closed from inside. What is private is left out by the caller's rule; what is
//! left is said at the end of the page.
//!
//! `flamegraph.js` and `flamegraph-style.css` are made of the sources that the page beside the
//! code has: `npm run page` in `editors/vscode`.
//!
//! What is not here: reading files, and deciding which may be read or what is private.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::annotate::{self, Subject};
use super::compare;
use super::document::{Block, Document};
use super::flame::{self, Flame};
use super::hotspots::{self, By, Options};
use super::html::{RowLinks, Writer, escaped};
use super::source::Source;
use super::summary::{self, Numbers};
use crate::attribute::GroupId;
use crate::attribute::analysis::{Analysis, ComparedTo};
use crate::cancel::{CancelFlag, Cancelled};

const SCRIPT: &str = include_str!("flamegraph.js");
const STYLE: &str = include_str!("page.css");
const FLAME_STYLE: &str = include_str!("flamegraph-style.css");

/// Boxes of the flame graph; narrower ones are no pixel wide.
const BOXES: usize = 10_000;
/// Files whose source is shown, and lines of each.
const FILES: usize = 20;
const LINES: usize = 2_000;
/// Lines of source around what costs.
const AROUND: usize = 3;
/// Files named as part of the page.
const NAMED: usize = 12;

/// What a page is made of, besides the costs.
pub struct Content<'a> {
    /// Name of the profile for people, and of the base in a comparison.
    pub origins: (&'a str, &'a str),
    /// The base, in a comparison.
    pub compared: Option<&'a ComparedTo>,
    /// What a row of the table is, and how many there are.
    pub options: Options<'a>,
    /// The source of a file that may be shown.
    pub source: &'a dyn Fn(GroupId) -> Option<Source>,
    /// Text without what is private.
    pub clean: &'a dyn Fn(&str) -> String,
}

/// Makes the page.
pub fn page(analysis: &Analysis, content: &Content<'_>, cancel: &CancelFlag) -> Result<String, Cancelled> {
    let sources = Sources::of(analysis, content);
    let flame = flame::flame(analysis, BOXES, cancel)?;
    let mut body = Writer::new(content.clean);
    let mut head = Document::default();
    head.paragraph(match content.compared {
        Some(compared) => compare::Sides::of(analysis, compared).title(content.origins.0, content.origins.1),
        None => summary::title(content.origins.0, analysis),
    });
    head.paragraph(summary::accounting(analysis, None));
    body.out.push_str("<header>\n");
    body.document(&head);
    body.out.push_str("</header>\n");
    let flame_json = flame_json(analysis, content, &sources, flame);
    section(&mut body, "Flame graph", "flame", |body| {
        body.out.push_str("<div id=\"flamegraph\"><noscript>The flame graph needs scripts.</noscript></div>\n");
        if content.compared.is_some() {
            body.out.push_str("<p class=\"faint\">Of the new profile.</p>\n");
        }
    });
    section(&mut body, "Hot spots", "hot", |body| tables(body, analysis, content, &sources));
    if !sources.shown.is_empty() {
        section(&mut body, "Source", "source", |body| {
            for shown in &sources.shown {
                source(body, analysis, content, shown);
            }
        });
    }
    section(&mut body, "About this page", "about", |body| about(body, analysis, &sources));
    let title = escaped(&(content.clean)(&format!("{} · {}", content.origins.0, heading(analysis))));
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{}' '{}'; \
         script-src '{}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n<style>{FLAME_STYLE}</style>\n</head>\n<body>\n{}\
         <script type=\"application/json\" id=\"flamegraph-data\">{flame_json}</script>\n\
         <script>{SCRIPT}</script>\n</body>\n</html>\n",
        hash(STYLE),
        hash(FLAME_STYLE),
        hash(SCRIPT),
        body.out,
    ))
}

/// `1.86s cpu`.
fn heading(analysis: &Analysis) -> String {
    let numbers = Numbers::of(analysis);
    format!("{} {}", numbers.value(analysis.costs.total), analysis.selected().kind)
}

/// How a policy names a script or style.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

fn section(body: &mut Writer<'_>, title: &str, class: &str, content: impl FnOnce(&mut Writer<'_>)) {
    let _ = write!(body.out, "<section class=\"{class}\">\n<h2>{title}</h2>\n");
    content(body);
    body.out.push_str("</section>\n");
}

/// A file whose source is on the page.
struct Shown {
    file: GroupId,
    /// Position in the page.
    at: usize,
    source: Source,
    /// Which of its lines, from 1, rising and apart.
    ranges: Vec<RangeInclusive<usize>>,
}

/// The source on the page.
struct Sources {
    shown: Vec<Shown>,
    by_file: FxHashMap<GroupId, usize>,
    /// Files that would be there if there were fewer.
    omitted: usize,
}

impl Sources {
    /// The files that the dearest lines are in, in that order.
    fn of(analysis: &Analysis, content: &Content<'_>) -> Self {
        let mut result = Self { shown: Vec::new(), by_file: FxHashMap::default(), omitted: 0 };
        let mut seen = FxHashSet::default();
        for row in hotspots::listed(analysis, By::Line) {
            if !seen.insert(row.file) {
                continue;
            }
            if result.shown.len() == FILES {
                result.omitted += 1;
                continue;
            }
            let Some(source) = (content.source)(row.file) else { continue };
            let ranges = ranges(analysis, row.file, source.len());
            if ranges.is_empty() {
                continue;
            }
            let at = result.shown.len();
            result.by_file.insert(row.file, at);
            result.shown.push(Shown { file: row.file, at, source, ranges });
        }
        result
    }

    /// The name in the page of a line, if it is there.
    fn anchor(&self, file: GroupId, line: usize) -> Option<String> {
        let shown = &self.shown[*self.by_file.get(&file)?];
        shown.ranges.iter().any(|range| range.contains(&line)).then(|| format!("f{}-{line}", shown.at))
    }
}

/// Lines with a cost and some around them, and where functions begin.
fn ranges(analysis: &Analysis, file: GroupId, length: usize) -> Vec<RangeInclusive<usize>> {
    let costs = &analysis.costs;
    let lines = costs.lines.iter().filter(|row| row.file == file && row.cost.cumulative != 0).map(|row| row.line);
    let starts = costs.functions.iter().filter(|row| row.file == file).map(|row| row.start_line);
    let known = lines.chain(starts).filter(|line| line.is_known()).map(|line| line.0 as usize);
    let mut lines: Vec<usize> = known.filter(|&line| line <= length).collect();
    lines.sort_unstable();
    let mut ranges: Vec<RangeInclusive<usize>> = Vec::new();
    let mut left = LINES;
    for line in lines {
        let (from, to) = (line.saturating_sub(AROUND).max(1), (line + AROUND).min(length));
        let start = match ranges.last() {
            // A gap of one line is no shorter than the mark of a gap.
            Some(last) if from <= last.end() + 2 => *last.end() + 1,
            _ => from,
        };
        let new = (to + 1).saturating_sub(start);
        if new > left {
            break;
        }
        left -= new;
        match ranges.last_mut() {
            Some(last) if start == last.end() + 1 => *last = *last.start()..=to.max(*last.end()),
            _ => ranges.push(start..=to),
        }
    }
    ranges
}

fn tables(body: &mut Writer<'_>, analysis: &Analysis, content: &Content<'_>, sources: &Sources) {
    if let Some(compared) = content.compared {
        let comparison = compare::comparison(analysis, compared, content.origins.1, &content.options);
        for block in comparison.blocks.iter().filter(|block| matches!(block, Block::Table { .. })) {
            body.block(block, |_| RowLinks::default());
        }
        return;
    }
    let options = &content.options;
    match hotspots::table(analysis, options) {
        None => body.out.push_str("<p>There is nothing.</p>\n"),
        Some(block) => {
            let has_lines = !analysis.costs.lines.is_empty();
            let by = if options.by == By::Line && !has_lines { By::Function } else { options.by };
            let rows = hotspots::listed(analysis, by);
            body.block(&block, |at| {
                let target = rows.get(at).and_then(|row| sources.anchor(row.file, row.line.0 as usize));
                RowLinks { id: None, target }
            });
        }
    }
    if let Some(block) = hotspots::elsewhere(analysis, options) {
        body.block(&block, |_| RowLinks::default());
    }
}

fn source(body: &mut Writer<'_>, analysis: &Analysis, content: &Content<'_>, shown: &Shown) {
    let subject =
        Subject { origin: content.origins.0, base_origin: content.origins.1, file: shown.file, source: &shown.source };
    body.out.push_str(if shown.at == 0 { "<details open>\n" } else { "<details>\n" });
    for (position, range) in shown.ranges.iter().enumerate() {
        let start = *range.start();
        let Block::Table { caption, table, footers } =
            annotate::listing(analysis, content.compared, &subject, range.clone())
        else {
            continue;
        };
        if position == 0 {
            body.out.push_str("<summary>");
            body.sentence(&caption);
            body.out.push_str("</summary>\n");
        }
        body.table(&table, |row| RowLinks { id: Some(format!("f{}-{}", shown.at, start + row)), target: None });
        if position + 1 == shown.ranges.len() {
            body.paragraphs(&footers);
        } else {
            body.out.push_str("<p class=\"gap\">⋯</p>\n");
        }
    }
    body.out.push_str("</details>\n");
}

/// What the numbers mean, what was odd, and what of a private kind is still in here.
fn about(body: &mut Writer<'_>, analysis: &Analysis, sources: &Sources) {
    let own = if summary::knows_own(analysis) {
        "“here” is what a line causes: itself, and the libraries it calls"
    } else {
        "“self” is what is spent on a line itself"
    };
    let _ = writeln!(body.out, "<p>“with calls” is everything spent while a line was running; {own}.</p>");
    body.paragraphs(&summary::notes(analysis).collect::<Vec<_>>());
    let names: Vec<&str> =
        sources.shown.iter().take(NAMED).map(|shown| analysis.groups.display(&analysis.profile, shown.file)).collect();
    let functions = analysis.costs.functions.len();
    let _ = write!(body.out, "<p>Look through it before you pass it on. It holds the names of {functions} functions, ");
    if names.is_empty() {
        body.out.push_str("no source text");
    } else {
        body.out.push_str("source text of ");
        body.text(&names.join(", "));
        let more = sources.shown.len().saturating_sub(names.len());
        if more > 0 {
            let _ = write!(body.out, " and {more} more files");
        }
    }
    body.out.push_str(
        ", and paths of other files. Home folders, names of user and machine, labels, addresses and commands were \
         left out.</p>\n",
    );
    if sources.omitted > 0 {
        let _ = writeln!(body.out, "<p>Source of {} more files with less cost is not here.</p>", sources.omitted);
    }
    let _ = writeln!(body.out, "<p class=\"faint\">Made by perflens {}.</p>", env!("CARGO_PKG_VERSION"));
}

/// The flame graph as its script reads it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Graph {
    title: String,
    origin: String,
    total: i64,
    functions: Vec<GraphFunction>,
    boxes: Vec<GraphBox>,
    omitted: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GraphFunction {
    name: String,
    place: String,
    /// Its name in the page.
    uri: Option<String>,
    is_own: bool,
}

#[derive(Serialize)]
struct GraphBox {
    parent: Option<usize>,
    function: usize,
    value: i64,
    label: String,
}

fn flame_json(analysis: &Analysis, content: &Content<'_>, sources: &Sources, flame: Flame) -> String {
    let has_own = analysis.groups.has_workspace();
    let functions = flame.functions.into_iter().map(|function| GraphFunction {
        uri: function.line.and_then(|line| sources.anchor(function.file, line as usize)).map(|name| format!("#{name}")),
        name: (content.clean)(&function.name),
        place: (content.clean)(&function.place),
        // Where nobody knows what is one's own, everything has its heat.
        is_own: function.is_own || !has_own,
    });
    let boxes = flame.boxes.into_iter().map(|each| GraphBox {
        parent: each.parent,
        function: each.function,
        value: each.value,
        label: each.label,
    });
    let graph = Graph {
        title: flame.title,
        origin: (content.clean)(content.origins.0),
        total: flame.total,
        functions: functions.collect(),
        boxes: boxes.collect(),
        omitted: flame.omitted,
    };
    // Numbers and texts always serialise. Without `<` no text can end the block it stands in.
    serde_json::to_string(&graph).unwrap_or_default().replace('<', "\\u003c")
}
