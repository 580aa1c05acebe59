//! Requests that the protocol does not have; the table of them is
//! [`extensions`](crate::extensions).

use lsp_types::{TextDocumentIdentifier, Url};
use profiler_core::attribute::Place;
use profiler_core::measure::Share;
use profiler_core::view::flame::Flame;
use profiler_core::view::heat::{self as view_heat, Mark};
use profiler_core::view::summary::Numbers;
use profiler_core::view::{data, hot_list};
use serde::{Deserialize, Serialize};

use super::hotspots::{self, Hotspot};
use super::places;
use crate::commands::Subject;
use crate::state::view::View;
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
    /// The function it is in, the costliest of several.
    pub function: Option<String>,
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
        let buffer_lines = document.map.buffer_lines();
        for row in lines {
            let line = buffer_lines.get(row.line).and_then(|line| u32::try_from(line).ok());
            let (level, is_better) = match row.mark {
                Mark::Level(level) => (level, false),
                Mark::Better => (0, true),
            };
            let function = file.line(row.line).and_then(|own| own.functions.first().copied());
            let function = function.map(|at| data::shown(&view.analysis.costs.functions[at].name).into_owned());
            let (share, value) = (row.share, row.value);
            heat.lines.extend(line.map(|line| HeatLine { line, level, is_better, share, value, function }));
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

/// What a file of a workspace costs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileCost {
    /// Its address.
    pub uri: Url,
    /// Heat of what it causes, 0 to 4.
    pub level: u8,
    /// What it causes as a whole percentage of the total: `34%`.
    pub percent: String,
    /// Share and value of what it causes, libraries included, and of what passes it.
    pub label: String,
}

/// Costs of the files of all folders that cause something; nothing in a comparison.
pub fn files(state: &State) -> Vec<FileCost> {
    let views = state.folders.iter().filter_map(|folder| folder.view()).filter(|view| view.comparison.is_none());
    views.flat_map(|view| files_of(state, view)).collect()
}

fn files_of(state: &State, view: &View) -> Vec<FileCost> {
    let analysis = &view.analysis;
    let numbers = Numbers::of(analysis);
    (analysis.costs.files.iter())
        .filter(|row| row.cost.direct != 0 && is_own(view, row.file))
        .filter_map(|row| {
            let path = places::path_of(view, row.file)?;
            let (direct, cumulative) = (row.cost.direct, row.cost.cumulative);
            let label = format!(
                "{} {} here · with calls {} {}",
                numbers.share(direct),
                numbers.value(direct),
                numbers.share(cumulative),
                numbers.value(cumulative),
            );
            let percent = Share::of(direct, analysis.costs.total).map_or_else(String::new, Share::whole_percent);
            Some(FileCost { uri: places::uri_of(state, &path)?, level: numbers.heat(direct).level(), percent, label })
        })
        .collect()
}

fn is_own(view: &View, file: profiler_core::attribute::GroupId) -> bool {
    let placement = view.analysis.groups.get(file).placement.as_ref();
    placement.is_some_and(|placement| placement.place == Place::Workspace)
}

/// Parameters of `perflens/packages`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PackagesParams {
    /// How many; else 20.
    pub top: Option<u32>,
}

/// A package or binary, and what no line of the workspace causes in it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Package {
    /// For a list, shares below each other: `31.0%  Go runtime`.
    pub title: String,
    /// What stands behind that: `402ms`.
    pub description: String,
}

/// What the workspace does not cause, of what was opened last.
pub fn packages(state: &State, parameters: &PackagesParams) -> Vec<Package> {
    let Some(view) = state.latest_folder().and_then(|folder| folder.view()) else { return Vec::new() };
    let top = parameters.top.map_or(20, |top| top.clamp(1, 10_000) as usize);
    let rows = hot_list::packages(&view.analysis, top);
    rows.iter().map(|row| Package { title: row.label(), description: row.description() }).collect()
}

/// Parameters of `perflens/flamegraph`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FlamegraphParams {
    /// How many boxes; else 5000.
    pub top: Option<u32>,
}

impl FlamegraphParams {
    /// How many boxes.
    pub fn top(&self) -> usize {
        self.top.map_or(5000, |top| top.clamp(1, 50_000) as usize)
    }
}

/// A flame graph.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Flamegraph {
    /// What everything is: `3.52s cpu`.
    pub title: String,
    /// The profile's file name.
    pub origin: String,
    /// The width of everything.
    pub total: i64,
    /// What the boxes are of.
    pub functions: Vec<FlameFunction>,
    /// Callers before callees.
    pub boxes: Vec<FlameBox>,
    /// Boxes too narrow to be listed.
    pub omitted: usize,
}

/// A function of a flame graph.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlameFunction {
    /// Its name.
    pub name: String,
    /// Its file and line as they are shown.
    pub place: String,
    /// Its file, where it is on this machine.
    pub uri: Option<Url>,
    /// Where it starts in the document now, from 0.
    pub line: Option<u32>,
    /// Whether it is code of the workspace.
    pub is_own: bool,
}

/// A function under a chain of callers.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlameBox {
    /// Its caller, by position in the list.
    pub parent: Option<usize>,
    /// Its function, by position in the list.
    pub function: usize,
    /// Its width.
    pub value: i64,
    /// Share and value as text; in a comparison what changed.
    pub label: String,
    /// In a comparison, how it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<BoxChange>,
}

/// What became of a box.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BoxChange {
    /// Of what became more, as for lines.
    pub level: u8,
    /// It became less.
    pub is_better: bool,
}

/// Puts addresses to a flame graph.
pub fn flamegraph(state: &State, view: &View, flame: Flame) -> Flamegraph {
    let function = |function: profiler_core::view::flame::FlameFunction| {
        let path = places::path_of(view, function.file);
        let line = function.line.map(profiler_core::profile::LineNo);
        FlameFunction {
            line: line.zip(path.as_ref()).map(|(line, path)| places::range_of(state, path, line).start.line),
            uri: path.and_then(|path| places::uri_of(state, &path)),
            name: function.name,
            place: function.place,
            is_own: function.is_own,
        }
    };
    let boxed = |each: profiler_core::view::flame::FlameBox| FlameBox {
        parent: each.parent,
        function: each.function,
        value: each.value,
        label: each.label,
        change: each.change.map(|mark| match mark {
            Mark::Level(level) => BoxChange { level, is_better: false },
            Mark::Better => BoxChange { level: 0, is_better: true },
        }),
    };
    Flamegraph {
        title: flame.title,
        origin: view.origin.clone(),
        total: flame.total,
        functions: flame.functions.into_iter().map(function).collect(),
        boxes: flame.boxes.into_iter().map(boxed).collect(),
        omitted: flame.omitted,
    }
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
