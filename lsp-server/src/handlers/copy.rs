//! `perflens.copyForAI`: costs as one piece of text to be pasted into a conversation.

use std::ops::RangeInclusive;
use std::sync::Arc;

use profiler_core::attribute::analysis::Analysis;
use profiler_core::cancel::CancelFlag;
use profiler_core::view::assistant::{self, Scope};
use profiler_core::view::hover::Subject;
use profiler_core::view::source::Source;
use tower_lsp::jsonrpc::Error;

use super::{commands, hover, invalid, on_pool, places};
use crate::commands::CopyScope;
use crate::session::Session;
use crate::state::Snapshot;
use crate::state::view::View;

/// Lines around a single one.
const AROUND: usize = 8;

/// The text. What is about a place needs one, in a document that is open.
pub async fn copy(
    session: &Arc<Session>,
    scope: CopyScope,
    file: Option<&str>,
    line: Option<u32>,
) -> Result<String, Error> {
    let no_profile = || invalid("no profile is open; run perflens.openProfile first");
    if matches!(scope, CopyScope::Workspace | CopyScope::Comparison) {
        let view = session.state().latest_folder().and_then(|folder| folder.view().cloned()).ok_or_else(no_profile)?;
        if scope == CopyScope::Comparison && view.comparison.is_none() {
            return Err(invalid("nothing is compared; run perflens.compareWith first"));
        }
        return on_pool(move |_| text(&view, &Scope::Workspace)).await;
    }
    let file = file.ok_or_else(|| invalid("perflens.copyForAI needs `file` for this scope"))?;
    let snapshot = commands::snapshot(&session.state(), file)?;
    if snapshot.view.is_none() {
        return Err(no_profile());
    }
    let line = line.map_or(0, |line| line.saturating_sub(1));
    let none = || invalid("the profile has no cost there");
    on_pool(move |cancel| of_place(&snapshot, scope, line, cancel)).await?.ok_or_else(none)
}

/// Of a place in a document; `None` where nothing costs anything.
fn of_place(snapshot: &Snapshot, scope: CopyScope, line: u32, cancel: &CancelFlag) -> Option<String> {
    let view = snapshot.view.as_ref()?;
    let file = view.file(&snapshot.file)?;
    // Lines are those of the text that was measured, where that is known.
    let document = &snapshot.document;
    let measured = document.profiled.as_deref().unwrap_or(&document.text);
    let source = Source::new(measured.content().as_bytes());
    let whole = 1..=source.len();
    let (lines, subject) = match scope {
        CopyScope::File | CopyScope::Workspace | CopyScope::Comparison => (whole, None),
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
    let is_edited = document.map.differs();
    Some(text(view, &Scope::Code { file: file.file, source: &source, lines, table: table.as_deref(), is_edited }))
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

fn text(view: &View, scope: &Scope<'_>) -> String {
    let compared = view.comparison.as_ref().map(|comparison| &comparison.compared);
    let base = view.base_origin.as_deref().unwrap_or_default();
    assistant::markdown(&view.analysis, compared, (&view.origin, base), scope)
}
