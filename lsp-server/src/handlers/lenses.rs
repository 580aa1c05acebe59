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
    placed(snapshot)
        .into_iter()
        .map(|Placed { line, name, text }| {
            let arguments = serde_json::json!({ "file": snapshot.document.uri, "line": line + 1, "name": name });
            CodeLens {
                range: Range::new(Position::new(line, 0), Position::new(line, 0)),
                command: Some(Command {
                    title: text,
                    command: "perflens.showActions".to_owned(),
                    arguments: Some(vec![arguments]),
                }),
                data: None,
            }
        })
        .collect()
}

/// A lens about costs, as it is in the document now.
struct Placed {
    /// From 0.
    line: u32,
    /// The function that it is about.
    name: String,
    text: String,
}

fn placed(snapshot: &Snapshot) -> Vec<Placed> {
    let Some(view) = &snapshot.view else { return Vec::new() };
    let min_basis_points = super::basis_points(snapshot.config.lens.min_share.get());
    let settings = Settings { min_basis_points, ..super::base_settings(&snapshot.config) };
    let buffer_lines = snapshot.document.map.buffer_lines();
    let lenses = rows(snapshot, &settings).into_iter();
    lenses
        .filter_map(|lens| {
            let line = u32::try_from(buffer_lines.get(lens.line)?).ok()?;
            let name = view.analysis.costs.functions[*lens.functions.first()?].name.clone();
            Some(Placed { line, name, text: lens.text })
        })
        .collect()
}

/// The line (from 0) of the lens about a function, of several the nearest to a line: what was shown for that may be
/// clicked after it has moved. `None` if there is no such lens any more.
pub(super) fn line_of(snapshot: &Snapshot, name: &str, near: u32) -> Option<u32> {
    let named = placed(snapshot).into_iter().filter(|lens| lens.name == name);
    named.map(|lens| lens.line).min_by_key(|line| line.abs_diff(near))
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
