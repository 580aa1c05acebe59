//! `perflens.copyForAI`: costs as one piece of text to be pasted into a conversation.

use std::fs;
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsp_types::{MessageType, Range, Url};
use profiler_core::attribute::LineRow;
use profiler_core::attribute::analysis::Analysis;
use profiler_core::cancel::CancelFlag;
use profiler_core::view::assistant::{self, CallTable, Scope, Wanted};
use profiler_core::view::by_file::FileCosts;
use profiler_core::view::hover::Subject;
use profiler_core::view::source::Source;
use tower_lsp::jsonrpc::Error;

use super::again::again;
use super::{commands, hover, invalid, on_pool, places};
use crate::commands::CopyScope;
use crate::config::Config;
use crate::session::Session;
use crate::state::Snapshot;
use crate::state::view::View;

/// Lines around a single one.
const AROUND: usize = 8;

/// What every text depends on besides its scope.
struct Terms {
    root: PathBuf,
    recordings: Option<PathBuf>,
    max_bytes: usize,
}

impl Terms {
    fn new(root: &Path, recordings: Option<&PathBuf>, config: &Config) -> Self {
        let max_bytes = (config.limits.copy_kibibytes.get() as usize) << 10;
        Self { root: root.to_owned(), recordings: recordings.cloned(), max_bytes }
    }

    fn text(&self, view: &View, scope: Scope<'_>) -> String {
        let compared = view.comparison.as_ref().map(|comparison| &comparison.compared);
        let again = again(view, &self.root, self.recordings.as_deref());
        let wanted = Wanted {
            origin: &view.origin,
            base_origin: view.base_origin.as_deref().unwrap_or_default(),
            scope,
            again: again.as_ref(),
            max_bytes: self.max_bytes,
        };
        assistant::markdown(&view.analysis, compared, &wanted)
    }
}

/// The text. What is about a place needs one, in a document that is open; lines are from 1.
pub async fn copy(
    session: &Arc<Session>,
    scope: CopyScope,
    file: Option<&str>,
    (line, end): (Option<u32>, Option<u32>),
) -> Result<String, Error> {
    let no_profile = || invalid("no profile is open; run perflens.openProfile first");
    if matches!(scope, CopyScope::Workspace | CopyScope::Comparison) {
        let (view, terms) = {
            let state = session.state();
            let folder = state.latest_folder().ok_or_else(no_profile)?;
            let view = folder.view().cloned().ok_or_else(no_profile)?;
            (view, Terms::new(&folder.root, state.recordings.as_ref(), folder.config()))
        };
        if scope == CopyScope::Comparison && view.comparison.is_none() {
            return Err(invalid("nothing is compared; run perflens.compareWith first"));
        }
        return on_pool(move |_| terms.text(&view, Scope::HOT_LINES)).await;
    }
    let file = file.ok_or_else(|| invalid("perflens.copyForAI needs `file` for this scope"))?;
    let (snapshot, terms) = {
        let state = session.state();
        let snapshot = commands::snapshot(&state, file)?;
        let terms = Terms::new(&snapshot.root, state.recordings.as_ref(), &snapshot.config);
        (snapshot, terms)
    };
    if snapshot.view.is_none() {
        return Err(no_profile());
    }
    let from = line.unwrap_or(1);
    let to = end.unwrap_or(from);
    if to < from {
        return Err(invalid("perflens.copyForAI: `endLine` is before `line`"));
    }
    let none = || invalid("the profile has no cost there");
    let lines = (from.saturating_sub(1), to.saturating_sub(1));
    on_pool(move |cancel| of_place(&snapshot, &terms, scope, lines, cancel)).await?.ok_or_else(none)
}

/// Opens a text in an editor that shows no answers of commands itself, as a file of the user's own; where it can't be
/// opened, says where it is.
pub(super) fn open(session: &Arc<Session>, text: String) {
    let Some(path) = session.places().copied() else { return };
    let session = Arc::clone(session);
    tokio::spawn(async move {
        let to = path.clone();
        let written = tokio::task::spawn_blocking(move || write(&to, &text)).await;
        let name = path.display();
        if let Ok(Err(error)) = written {
            session.editor.say(MessageType::WARNING, format!("perflens: {name} can't be written: {error}"));
            return;
        }
        let is_shown = match Url::from_file_path(&path) {
            Ok(uri) => session.editor.show(uri, Range::default()).await,
            Err(()) => false,
        };
        if !is_shown {
            session.editor.say(MessageType::INFO, format!("perflens: the text for an assistant is in {name}"));
        }
    });
}

/// As a whole or not at all; temporary files are for the user alone.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path)?;
    Ok(())
}

/// Of a place in a document, lines from 0; `None` where nothing costs anything.
fn of_place(
    snapshot: &Snapshot,
    terms: &Terms,
    scope: CopyScope,
    (line, end): (u32, u32),
    cancel: &CancelFlag,
) -> Option<String> {
    let view = snapshot.view.as_ref()?;
    let file = view.file(&snapshot.file)?;
    // Lines are those of the text that was measured, where that is known.
    let document = &snapshot.document;
    let measured = document.profiled.as_deref().unwrap_or(&document.text);
    let source = Source::new(measured.content().as_bytes());
    let whole = 1..=source.len();
    let (lines, subject) = match scope {
        CopyScope::File | CopyScope::Workspace | CopyScope::Comparison => (whole.clone(), dearest(file, &whole)),
        CopyScope::Selection => {
            let last = (end as usize).min(document.text.line_count().saturating_sub(1));
            let mut profiled = (line as usize..=last).filter_map(|line| document.map.profiled_line(line));
            // What was moved may be in another order there.
            let first = profiled.next()? as usize;
            let (from, to) =
                profiled.fold((first, first), |(from, to), line| (from.min(line as usize), to.max(line as usize)));
            (from..=to, Some(dearest(file, &(from..=to))?))
        }
        CopyScope::Line => {
            let profiled = document.map.profiled_line(line as usize)?;
            let at = profiled as usize;
            (at.saturating_sub(AROUND).max(1)..=at + AROUND, Some(Subject::at(file, profiled)?))
        }
        CopyScope::Function => {
            let function = places::function_around(snapshot, line)?;
            (span(&view.analysis, function), Some(Subject::Function(function)))
        }
    };
    let table = subject.and_then(|subject| hover::table(snapshot, subject, cancel));
    let of = subject.map(|subject| match subject {
        Subject::Line(line) => format!("line {line}"),
        Subject::Function(function) => view.analysis.costs.functions[function].name.clone(),
    });
    let calls = of.as_deref().zip(table.as_deref()).map(|(of, table)| CallTable { of, table });
    let is_edited = document.map.differs();
    Some(terms.text(view, Scope::Code { file: file.file, source: &source, lines, calls, is_edited }))
}

/// The function on the line that costs most of some, or that line.
fn dearest(file: FileCosts<'_>, lines: &RangeInclusive<usize>) -> Option<Subject> {
    let size = |row: &&LineRow| (row.cost.cumulative.unsigned_abs(), std::cmp::Reverse(row.line));
    let rows = file.analysis.costs.lines.iter();
    let row = rows.filter(|row| row.file == file.file && lines.contains(&(row.line.0 as usize))).max_by_key(size)?;
    Some(row.functions.first().map_or(Subject::Line(row.line.0), |&function| Subject::Function(function)))
}

/// The lines of a function, as far as samples tell.
fn span(analysis: &Analysis, function: usize) -> RangeInclusive<usize> {
    let row = &analysis.costs.functions[function];
    let lines = (analysis.costs.lines.iter())
        .filter(|line| line.file == row.file && line.functions.contains(&function))
        .map(|line| line.line.0 as usize);
    let start = row.start_line.0 as usize;
    let (first, last) = lines.fold((usize::MAX, start), |(first, last), line| (first.min(line), last.max(line)));
    let first = if row.start_line.is_known() { start } else { first };
    first.min(last).max(1)..=last.max(1)
}
