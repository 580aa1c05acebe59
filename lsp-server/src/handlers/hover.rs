//! `textDocument/hover`, and the same text as the tooltip of a hint.

use std::sync::Arc;

use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind, Position};
use profiler_core::attribute::Costs;
use profiler_core::attribute::calls::Target;
use profiler_core::cancel::CancelFlag;
use profiler_core::profile::LineNo;
use profiler_core::view::hover::{self, Context, Subject};

use super::places;
use crate::state::Snapshot;
use crate::state::documents::Document;
use crate::when;

/// What to tell about a position; slow.
pub fn hover(snapshot: &Snapshot, position: Position, cancel: &CancelFlag) -> Option<Hover> {
    if !snapshot.config.hover.enabled {
        return None;
    }
    let view = snapshot.view.as_ref()?;
    let line = snapshot.document.map.profiled_line(position.line as usize)?;
    let subject = Subject::at(view.file(&snapshot.file)?, line)?;
    let value = text(snapshot, subject, cancel)?;
    Some(Hover { contents: HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value }), range: None })
}

/// The text about a line of the profile (from 1); slow.
pub fn line_text(snapshot: &Snapshot, line: u32, cancel: &CancelFlag) -> Option<String> {
    text(snapshot, Subject::Line(line), cancel)
}

fn text(snapshot: &Snapshot, subject: Subject, cancel: &CancelFlag) -> Option<String> {
    whole(snapshot, subject, cancel).map(|hover| hover.markdown())
}

/// Its table alone.
pub fn table(snapshot: &Snapshot, subject: Subject, cancel: &CancelFlag) -> Option<String> {
    whole(snapshot, subject, cancel).map(|hover| hover.table)
}

fn whole(snapshot: &Snapshot, subject: Subject, cancel: &CancelFlag) -> Option<hover::Hover> {
    let view = snapshot.view.as_ref()?;
    let file = view.file(&snapshot.file)?;
    let analysis = &view.analysis;
    let target = match subject {
        Subject::Line(line) => Target::Line(file.file, LineNo(line)),
        Subject::Function(function) => places::target_of(view, function),
    };
    let calls = analysis.calls(&target, cancel).ok()?;
    let others: Vec<(usize, Arc<Costs>)> = hover::other_types(&analysis.profile, analysis.value_type)
        .into_iter()
        .filter_map(|value_type| Some((value_type, view.costs_of(value_type, cancel).ok()?)))
        .collect();
    let others: Vec<(usize, &Costs)> = others.iter().map(|(value_type, costs)| (*value_type, &**costs)).collect();
    let owners = view.services.iter().map(|owner| (owner.name.as_str(), owner.matchers.as_slice()));
    let services = match &view.services[..] {
        [] => Vec::new(),
        _ => analysis.owners(&target, owners, cancel).ok()?,
    };
    let line = match subject {
        Subject::Line(line) => line,
        Subject::Function(function) => analysis.costs.functions[function].start_line.0,
    };
    let map = &snapshot.document.map;
    let shown_at = map.buffer_line(line);
    let is_doubtful = shown_at.and_then(|line| map.found(line)).is_some_and(|(_, is_doubtful)| is_doubtful);
    let measured = when::measured(analysis.profile.meta(), &when::now());
    let context = Context {
        others: &others,
        calls: Some(&calls),
        services: &services,
        measured: measured.as_deref(),
        is_edited: snapshot.document.map.differs(),
        doubt: is_doubtful.then_some("the text around it was replaced, and other lines there read the same"),
        awaits: shown_at.is_some_and(|line| awaits(&snapshot.document, line)),
    };
    match view.changes(file) {
        Some(changes) => hover::change_hover(changes, subject, &context),
        None => hover::hover(file, subject, &context),
    }
}

/// Whether a line of a document, counted from 0, waits for a future in Rust: what it costs is then not what it takes.
fn awaits(document: &Document, line: usize) -> bool {
    let is_rust = document.file.extension().is_some_and(|extension| extension == "rs");
    is_rust && line < document.text.line_count() && document.text.line(line).contains(".await")
}
