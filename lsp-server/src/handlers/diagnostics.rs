//! Costs as information diagnostics, for editors with neither hints nor lenses: one per hot
//! function, only when the user asks for it.

use std::path::Path;
use std::sync::Arc;

use lsp_types::{Diagnostic, DiagnosticSeverity, Url};
use profiler_core::view::hint::{Mode, Settings};

use super::lenses;
use crate::session::Session;
use crate::state::Snapshot;

/// Publishes the diagnostics of all open documents; nothing where they are off.
pub fn publish(session: &Arc<Session>) {
    let documents: Vec<(Url, i32, Vec<Diagnostic>)> = {
        let state = session.state();
        // Runs whenever a document is opened, so what is off must cost nothing.
        let is_wanted = |path: &Path| state.view_of(path).is_some_and(|folder| folder.config().diagnostics.enabled);
        let wanted = state.documents.iter().filter(|document| is_wanted(&document.path));
        wanted
            .filter_map(|document| {
                let snapshot = state.snapshot(&document.uri)?;
                Some((document.uri.clone(), document.version, diagnostics(&snapshot)))
            })
            .collect()
    };
    for (uri, version, diagnostics) in documents {
        session.editor.publish(uri, diagnostics, Some(version));
    }
}

fn diagnostics(snapshot: &Snapshot) -> Vec<Diagnostic> {
    let settings = Settings { mode: Mode::Hot, ..super::base_settings(&snapshot.config) };
    let document = &snapshot.document;
    let buffer_lines = document.map.buffer_lines();
    lenses::rows(snapshot, &settings)
        .into_iter()
        .filter_map(|lens| {
            let line = buffer_lines.get(lens.line)?;
            let end = document.text.end_of_line(line, snapshot.capabilities.encoding);
            let start = lsp_types::Position::new(end.line, 0);
            Some(Diagnostic {
                range: lsp_types::Range::new(start, end),
                severity: Some(DiagnosticSeverity::INFORMATION),
                source: Some("perflens".to_owned()),
                message: lens.text,
                ..Diagnostic::default()
            })
        })
        .collect()
}
