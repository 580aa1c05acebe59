//! A loaded profile as assistants see it: names made harmless, paths without people, what a place is called,
//! and whether its text is still what was measured.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use profiler_core::attribute::analysis::Analysis;
use profiler_core::attribute::{Cost, FunctionRow, GroupId, Place};
use profiler_core::encode::share::Private;
use profiler_core::profile::LineNo;
use profiler_core::view::data::shown;
use profiler_core::view::source::Source;
use profiler_core::view::summary::Numbers;
use serde::Serialize;

use super::Refusal;
use super::answer::{About, Cursor, FileNote, Named};
use crate::current::digest;
use crate::state::view::View;

/// A larger file is not read.
const MAX_SOURCE: u64 = 4 << 20;
/// Filters that are told.
const MAX_FILTERS: usize = 5;
/// Candidates that a sentence names.
const NAMED: usize = 5;

/// What was loaded.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) view: View,
    /// The workspace.
    pub(super) root: PathBuf,
    /// Whose files are its own, without links.
    pub(super) roots: Vec<PathBuf>,
    pub(super) id: String,
    pub(super) base_id: Option<String>,
    pub(super) from: &'static str,
    pub(super) name: Option<String>,
    pub(super) measured: BTreeMap<PathBuf, String>,
    pub(super) private: Private,
}

/// The hash of what was measured.
struct Measured<'a>(&'a str);

impl Measured<'_> {
    /// Whether that was this. Editors know texts, recordings know bytes.
    fn is(&self, bytes: &[u8]) -> bool {
        digest(bytes) == self.0 || digest(String::from_utf8_lossy(bytes).as_bytes()) == self.0
    }
}

/// What a place costs.
#[derive(Debug, Serialize)]
pub(super) struct Costs {
    /// Σv that the place causes, libraries included; only in a workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) direct: Option<i64>,
    pub(super) flat: i64,
    pub(super) cumulative: i64,
    pub(super) text: String,
}

impl Seen {
    pub(super) fn analysis(&self) -> &Analysis {
        &self.view.analysis
    }

    pub(super) fn numbers(&self) -> Numbers {
        Numbers::of(self.analysis())
    }

    /// The profile in short.
    pub(super) fn about(&self) -> About {
        let name = self.name.as_deref().unwrap_or(&self.view.origin);
        self.about_side(self.analysis(), &self.id, name)
    }

    /// The base in short.
    pub(super) fn about_base(&self) -> Option<About> {
        let base = &self.view.comparison.as_ref()?.compared.base;
        let name = self.view.base_origin.as_deref().unwrap_or_default();
        Some(self.about_side(base, self.base_id.as_deref().unwrap_or_default(), name))
    }

    fn about_side(&self, analysis: &Analysis, id: &str, name: &str) -> About {
        let costs = &analysis.costs;
        let selected = analysis.selected();
        let more = analysis.filters.len().saturating_sub(MAX_FILTERS);
        let filters = analysis.filters.iter().take(MAX_FILTERS).map(|filter| self.text(&filter.to_string()));
        About {
            profile_id: id.to_owned(),
            name: self.text(name),
            from: self.from,
            value_type: shown(&selected.kind).into_owned(),
            unit: shown(&selected.unit).into_owned(),
            total: costs.total,
            total_text: Numbers::of(analysis).value(costs.total),
            placed_in_workspace: costs.accounting.shown(),
            samples: costs.samples,
            filters: filters.chain((more > 0).then(|| format!("and {more} more"))).collect(),
        }
    }

    /// Where a question about it goes on.
    pub(super) fn cursor(&self, tool: &str, arguments: &impl Serialize) -> Result<Cursor, Refusal> {
        Cursor::of(tool, arguments, &[&self.id, self.base_id.as_deref().unwrap_or_default()])
    }

    /// What was odd.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        self.view.notes.iter().map(|note| self.private.clean(note))
    }

    /// Foreign text, made harmless and without people.
    pub(super) fn text(&self, text: &str) -> String {
        shown(&self.private.clean(text)).into_owned()
    }

    /// What a file is called: relative to the workspace where it is of it.
    pub(super) fn file(&self, analysis: &Analysis, file: GroupId) -> String {
        match analysis.groups.workspace_file(file) {
            Some(name) => shown(name).into_owned(),
            None => self.text(analysis.groups.path(&analysis.profile, file)),
        }
    }

    /// A file, and what it is now; that only of the workspace.
    pub(super) fn named<'a>(&'a self, analysis: &'a Analysis, file: GroupId) -> Named<'a> {
        Named { name: self.file(analysis, file), note: Box::new(move || self.note(analysis, file)) }
    }

    fn note(&self, analysis: &Analysis, file: GroupId) -> Option<FileNote> {
        let path = self.source_path(analysis, file)?;
        let placed = analysis.groups.get(file).placement.as_ref()?.path.as_deref()?;
        let bytes = read(&path)?;
        let anchor = analysis.groups.get(file).anchor.as_ref();
        let is_opened =
            self.view.texts.get(placed).is_none_or(|text| text.content() == String::from_utf8_lossy(&bytes));
        let stale = if anchor.is_some_and(|anchor| anchor.is_changed()) && is_opened {
            Some("measured before your edit; lines are those of the text on disk, found again as far as they are in it")
        } else if let Some(measured) = self.measured(placed, &path) {
            (!measured.is(&bytes)).then_some(
                "measured before your edit: the text on disk is not the one that was measured, so lines below the \
                 change have moved; measure again",
            )
        } else if !is_opened {
            Some("measured before your edit: the text on disk has changed since the profile was opened")
        } else {
            self.is_older_than(&path).then_some(
                "perhaps measured before your edit: the file was written after the profile, and what it was then is not \
                 known",
            )
        };
        Some(FileNote { text_sha256: digest(&bytes)[..16].to_owned(), stale })
    }

    /// What a file was when it was measured, as far as that is known.
    fn measured(&self, placed: &Path, real: &Path) -> Option<Measured<'_>> {
        self.measured.get(placed).or_else(|| self.measured.get(real)).map(|hash| Measured(hash))
    }

    /// Whether the profile was written before a file.
    fn is_older_than(&self, path: &Path) -> bool {
        let edited = fs::metadata(path).and_then(|metadata| metadata.modified());
        edited.is_ok_and(|edited| self.view.written.is_some_and(|written| edited > written))
    }

    /// Where the source of a file is, if it is one of the workspace and no link leads out of it.
    fn source_path(&self, analysis: &Analysis, file: GroupId) -> Option<PathBuf> {
        let placement = analysis.groups.get(file).placement.as_ref()?;
        let is_own = matches!(placement.place, Place::Workspace | Place::Generated);
        let real = fs::canonicalize(placement.path.as_ref().filter(|_| is_own)?).ok()?;
        self.roots.iter().any(|root| real.starts_with(root)).then_some(real)
    }

    /// The text that line numbers are of, as far as it is at hand: what was measured, else what it was when the
    /// profile was loaded, else what it is.
    pub(super) fn source(&self, file: GroupId) -> Option<Source> {
        /// Characters of a line that are shown.
        const MAX_LINE: usize = 200;
        let path = self.source_path(self.analysis(), file)?;
        let placed = self.analysis().groups.get(file).placement.as_ref()?.path.as_ref()?;
        let is_found_again = self.analysis().groups.get(file).anchor.as_ref().is_some_and(|anchor| anchor.is_changed());
        let opened = self.view.texts.get(placed).map(|text| text.content().to_owned());
        let on_disk = || read(&path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let text = match self.measured(placed, &path) {
            Some(measured) if !is_found_again => opened.filter(|text| measured.is(text.as_bytes())).or_else(on_disk)?,
            _ => opened.or_else(on_disk)?,
        };
        let whole = Source::new(text.as_bytes());
        let line = |number: usize| -> Cow<'_, str> {
            let line = whole.line(number).unwrap_or_default();
            match line.char_indices().nth(MAX_LINE) {
                Some((end, _)) => Cow::Owned(format!("{}…", &line[..end])),
                None => Cow::Borrowed(line),
            }
        };
        let cut: Vec<Cow<'_, str>> = (1..=whole.len()).map(line).collect();
        Some(Source::new((cut.join("\n") + "\n").as_bytes()))
    }

    /// What a cost is, exact and in words.
    pub(super) fn costs(&self, cost: Cost) -> Costs {
        let numbers = self.numbers();
        let part = |value: i64| format!("{} {}", numbers.share(value), numbers.value(value)).trim().to_owned();
        let has_direct = self.analysis().groups.has_workspace();
        let own = if has_direct { format!("{} here", part(cost.direct)) } else { format!("{} self", part(cost.flat)) };
        Costs {
            direct: has_direct.then_some(cost.direct),
            flat: cost.flat,
            cumulative: cost.cumulative,
            text: format!("{own} · {} with calls", part(cost.cumulative)),
        }
    }

    /// First and last line of a function that samples are on, its declaration included where it is known.
    pub(super) fn span(&self, function: usize) -> Option<[u32; 2]> {
        let row = &self.analysis().costs.functions[function];
        let lines = self.view.group(row.file).all_lines().filter(|line| line.functions.contains(&function));
        let lines = lines.map(|line| line.line).chain(Some(row.start_line)).filter(|line| line.is_known());
        let (first, last) = lines.fold((u32::MAX, 0), |(first, last), LineNo(line)| (first.min(line), last.max(line)));
        (first <= last).then_some([first, last])
    }

    /// The file that an assistant means.
    pub(super) fn find_file(&self, name: &str) -> Result<GroupId, Refusal> {
        let (analysis, index) = (self.analysis(), &self.view.index);
        let as_path = || index.at(analysis, &fs::canonicalize(self.root.join(name)).ok()?);
        let relative = name.trim_start_matches("./");
        if let Some(file) = index.named(analysis, relative).or_else(as_path) {
            return Ok(file);
        }
        let all: Vec<(GroupId, String)> =
            analysis.costs.files.iter().map(|row| (row.file, self.file(analysis, row.file))).collect();
        let is_end =
            |file: &str| file == relative || file.strip_suffix(relative).is_some_and(|rest| rest.ends_with('/'));
        let found: Vec<&(GroupId, String)> = all.iter().filter(|(_, file)| is_end(file)).collect();
        match found[..] {
            [(file, _)] => Ok(*file),
            [] => {
                let others: Vec<&str> = all.iter().take(NAMED).map(|(_, file)| file.as_str()).collect();
                Err(Refusal::Arguments(match others[..] {
                    [] => "the profile names no source files".to_owned(),
                    _ => format!("nothing of the profile is in {}; it is in {}", shown(name), others.join(", ")),
                }))
            }
            _ => {
                let names: Vec<&str> = found.iter().take(NAMED).map(|(_, file)| file.as_str()).collect();
                Err(Refusal::Arguments(format!(
                    "{} files are called {}, give more of the path: {}",
                    found.len(),
                    shown(name),
                    names.join(", ")
                )))
            }
        }
    }

    /// The function that an assistant means: its whole name, or the end of it.
    pub(super) fn find_function(&self, name: &str, file: Option<GroupId>) -> Result<usize, Refusal> {
        let analysis = self.analysis();
        let functions = &analysis.costs.functions;
        let is_there = |row: &FunctionRow| file.is_none_or(|file| row.file == file);
        let is_whole = |row: &FunctionRow| row.name == name || self.text(&row.name) == name;
        let is_end = |row: &FunctionRow| {
            row.name.strip_suffix(name).is_some_and(|rest| rest.ends_with([':', '.', '/', ' ', '$']))
        };
        let find = |is_meant: &dyn Fn(&FunctionRow) -> bool| -> Vec<usize> {
            (0..functions.len()).filter(|&at| is_there(&functions[at]) && is_meant(&functions[at])).collect()
        };
        let mut found = find(&is_whole);
        if found.is_empty() {
            found = find(&is_end);
        }
        let place =
            |at: &usize| format!("{} in {}", self.text(&functions[*at].name), self.file(analysis, functions[*at].file));
        match found[..] {
            [function] => Ok(function),
            [] => {
                let others: Vec<String> =
                    functions.iter().filter(|row| is_there(row)).take(NAMED).map(|row| self.text(&row.name)).collect();
                Err(Refusal::Arguments(format!(
                    "the profile has no function {}; it has {}",
                    shown(name),
                    if others.is_empty() { "none there".to_owned() } else { others.join(", ") }
                )))
            }
            _ => {
                let places: Vec<String> = found.iter().take(NAMED).map(place).collect();
                Err(Refusal::Arguments(format!(
                    "{} functions are called {}, give the whole name and the `file`: {}",
                    found.len(),
                    shown(name),
                    places.join("; ")
                )))
            }
        }
    }
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let metadata = fs::metadata(path).ok()?;
    (metadata.is_file() && metadata.len() <= MAX_SOURCE).then(|| fs::read(path).ok())?
}
