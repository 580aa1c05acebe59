//! `textDocument/hover`, and the same text as the tooltip of a hint.

use std::sync::Arc;

use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind, Position};
use profiler_core::attribute::Costs;
use profiler_core::attribute::calls::Target;
use profiler_core::cancel::CancelFlag;
use profiler_core::profile::LineNo;
use profiler_core::view::hover::{self, Subject};

use super::places;
use crate::state::Snapshot;

/// More value types than the selected one and these don't fit.
const MORE_TYPES: usize = 2;

/// What to tell about a position; slow. A line of code comes before the function that starts
/// on it.
pub fn hover(snapshot: &Snapshot, position: Position, cancel: &CancelFlag) -> Option<Hover> {
    if !snapshot.config.hover.enabled {
        return None;
    }
    let subject = match places::function_at(snapshot, position.line) {
        Some(function) => Subject::Function(function),
        None => Subject::Line(places::costly_line(snapshot, position.line)?.1.0),
    };
    let value = text(snapshot, subject, cancel)?;
    Some(Hover { contents: HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value }), range: None })
}

/// The text about a line of the profile (from 1); slow.
pub fn line_text(snapshot: &Snapshot, line: u32, cancel: &CancelFlag) -> Option<String> {
    text(snapshot, Subject::Line(line), cancel)
}

fn text(snapshot: &Snapshot, subject: Subject, cancel: &CancelFlag) -> Option<String> {
    let view = snapshot.view.as_ref()?;
    let file = view.file(&snapshot.file)?;
    let analysis = &view.analysis;
    let target = match subject {
        Subject::Line(line) => Target::Line(file.file, LineNo(line)),
        Subject::Function(function) => places::target_of(view, function),
    };
    let calls =
        analysis.stacks.calls(&analysis.profile, &analysis.groups, analysis.value_type, &target, cancel).ok()?;
    let others: Vec<(usize, Arc<Costs>)> = (0..analysis.profile.value_types().len())
        .filter(|&value_type| value_type != analysis.value_type)
        .take(MORE_TYPES)
        .filter_map(|value_type| Some((value_type, view.costs_of(value_type, cancel).ok()?)))
        .collect();
    let others: Vec<(usize, &Costs)> = others.iter().map(|(value_type, costs)| (*value_type, &**costs)).collect();
    let differs = snapshot.document.map.differs();
    Some(hover::hover(file, subject, &calls, &others, differs.then_some("the file was edited since it was profiled")))
}
