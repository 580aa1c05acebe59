//! `textDocument/codeLens`. Lenses come with their command: some editors never ask for it.

use lsp_types::{CodeLens, Command, Position, Range};
use profiler_core::view::hint::Settings;
use profiler_core::view::lens::{self, Lens};

use super::actions;
use crate::state::Snapshot;

/// The lenses of a document.
pub fn lenses(snapshot: &Snapshot) -> Vec<CodeLens> {
    let config = &snapshot.config.lens;
    let mut lenses = if config.enabled { cost_lenses(snapshot) } else { Vec::new() };
    if config.profile_this && cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        lenses.extend(snapshot.offers().iter().map(|offer| {
            let line = offer.runnable.line;
            CodeLens {
                range: Range::new(Position::new(line, 0), Position::new(line, 0)),
                command: Some(Command {
                    title: format!("profile this {}", offer.runnable.kind.word()),
                    ..actions::profile_this(snapshot, offer)
                }),
                data: None,
            }
        }));
    }
    lenses
}

fn cost_lenses(snapshot: &Snapshot) -> Vec<CodeLens> {
    let config = &snapshot.config.lens;
    let min_basis_points = super::basis_points(config.min_share.get());
    let settings = Settings { min_basis_points, ..super::base_settings(&snapshot.config) };
    let document = &snapshot.document;
    let buffer_lines = document.map.buffer_lines();
    rows(snapshot, &settings)
        .into_iter()
        .filter_map(|lens| {
            let line = u32::try_from(buffer_lines.get(lens.line)?).ok()?;
            let arguments = serde_json::json!({ "file": document.uri, "line": line + 1 });
            Some(CodeLens {
                range: Range::new(Position::new(line, 0), Position::new(line, 0)),
                command: Some(Command {
                    title: lens.text,
                    command: "perflens.showActions".to_owned(),
                    arguments: Some(vec![arguments]),
                }),
                data: None,
            })
        })
        .collect()
}

/// The lenses of the document's file, at lines of the profile.
pub(super) fn rows(snapshot: &Snapshot, settings: &Settings) -> Vec<Lens> {
    let Some(view) = &snapshot.view else { return Vec::new() };
    let Some(file) = view.file(&snapshot.file) else { return Vec::new() };
    match view.changes(file) {
        Some(changes) => lens::change_lenses(file, changes, settings),
        None => lens::lenses(file, settings),
    }
}
