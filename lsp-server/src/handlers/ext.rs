//! Requests that the protocol does not have; the table of them is
//! [`extensions`](crate::extensions).

use lsp_types::{TextDocumentIdentifier, Url};
use profiler_core::view::heat::{self as view_heat, Mark};
use serde::{Deserialize, Serialize};

use super::hotspots::{self, Hotspot};
use crate::commands::Subject;
use crate::state::{Snapshot, State};

/// Parameters of `perflens/heat`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeatParams {
    /// The document.
    pub text_document: TextDocumentIdentifier,
}

/// The heat of a document.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Heat {
    /// The version of the document it is of.
    pub version: i32,
    /// Lines with a cost, in the order of the document.
    pub lines: Vec<HeatLine>,
}

/// The heat of a line.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeatLine {
    /// The line of the document, from 0.
    pub line: u32,
    /// 0 to 4; in a comparison, of what became more.
    pub level: u8,
    /// In a comparison: it became less.
    pub is_better: bool,
    /// Its share, as text.
    pub share: String,
    /// Its value, as text.
    pub value: String,
}

/// The heat of a document's lines as they are now. In the order of the document.
pub fn heat(snapshot: &Snapshot) -> Heat {
    let document = &snapshot.document;
    let mut heat = Heat { version: document.version, lines: Vec::new() };
    let settings = super::base_settings(&snapshot.config);
    if let Some(view) = &snapshot.view
        && let Some(file) = view.file(&snapshot.file)
    {
        let lines = match view.changes(file) {
            Some(changes) => view_heat::change_heat(changes),
            None => view_heat::heat(file, &settings),
        };
        for row in lines {
            let line = document.map.buffer_line(row.line).and_then(|line| u32::try_from(line).ok());
            let (level, is_better) = match row.mark {
                Mark::Level(level) => (level, false),
                Mark::Better => (0, true),
            };
            heat.lines.extend(line.map(|line| HeatLine { line, level, is_better, share: row.share, value: row.value }));
        }
        heat.lines.sort_by_key(|row| row.line);
    }
    heat
}

/// Parameters of `perflens/hotspots`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HotspotsParams {
    /// Lines, or functions.
    pub by: Option<Subject>,
    /// How many; else 20.
    pub top: Option<u32>,
}

/// The list of hot spots of what was opened last.
pub fn hotspots(state: &State, parameters: &HotspotsParams) -> Vec<Hotspot> {
    let Some(view) = state.latest_folder().and_then(|folder| folder.view()) else { return Vec::new() };
    let top = parameters.top.map_or(20, |top| top.clamp(1, 10_000) as usize);
    hotspots::list(state, view, parameters.by.unwrap_or(Subject::Line), top)
}

/// Parameters of `perflens/callers`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallersParams {
    /// The document.
    pub text_document: TextDocumentIdentifier,
    /// The line of the document, from 0.
    pub line: u32,
    /// The line, or the function it is in.
    #[serde(default)]
    pub of: Option<Subject>,
}

/// Callers and callees with their costs.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Callers {
    /// Σv of samples that pass the target.
    pub cumulative: i64,
    /// Functions that call it; by falling value.
    pub callers: Vec<Neighbour>,
    /// Functions it calls.
    pub callees: Vec<Neighbour>,
}

/// A function next to the target.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Neighbour {
    /// Its name.
    pub name: String,
    /// Its file as it is shown.
    pub file: String,
    /// Its address, where it is on this machine.
    pub uri: Option<Url>,
    /// The line of the profile, from 1; `None` when unknown.
    pub line: Option<u32>,
    /// Σv of samples in which they meet.
    pub value: i64,
    /// Share and value as text.
    pub label: String,
}

/// What the view is of.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Query {
    /// The profile's file name.
    pub profile: Option<String>,
    /// The base's.
    pub base: Option<String>,
    /// The value type.
    pub value_type: Option<String>,
    /// The filters.
    pub filters: Vec<String>,
}

/// What is shown of the folder that was opened last.
pub fn query(state: &State) -> Query {
    let view = state.latest_folder().and_then(|folder| folder.view());
    Query {
        profile: view.map(|view| view.origin.clone()),
        base: view.and_then(|view| view.base_origin.clone()),
        value_type: view.map(|view| view.analysis.selected().to_string()),
        filters: view.map_or_else(Vec::new, |view| view.analysis.filters.iter().map(ToString::to_string).collect()),
    }
}
