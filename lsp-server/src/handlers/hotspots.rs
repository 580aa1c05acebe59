//! What costs most in the workspace, and going from one to the next.

use std::path::PathBuf;

use lsp_types::{Range, Url};
use profiler_core::attribute::{GroupId, Place};
use profiler_core::profile::LineNo;
use profiler_core::view::data;
use profiler_core::view::hot_list::{self, HotSpot};
use profiler_core::view::hotspots::By;
use profiler_core::view::summary::Numbers;
use serde::Serialize;

use super::places;
use crate::commands::Subject;
use crate::state::State;
use crate::state::view::View;

/// A row of the list.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hotspot {
    /// Place in the list, from 1.
    pub rank: usize,
    /// The function's name.
    pub function: String,
    /// The file, relative to the workspace.
    pub file: String,
    /// Its address.
    pub uri: Option<Url>,
    /// Where that is in the document now.
    pub range: Range,
    /// The line of the profile, from 1.
    pub line: u32,
    /// What the line causes, in the unit of the selected value type; not in a comparison.
    pub direct: Option<i64>,
    /// What passes it; not in a comparison.
    pub cumulative: Option<i64>,
    /// For a list, shares below each other: `11.4%  parse_line`.
    pub title: String,
    /// What stands behind that: `402ms · with calls 34.0% · src/log_stats.rs:17`.
    pub description: String,
    /// `11.4%  402ms  parse_line  src/log_stats.rs:17`: share and value of `direct`, in a
    /// comparison of the change.
    pub label: String,
}

/// The lines or functions of the workspace that cost most by direct cost.
pub fn list(state: &State, view: &View, by: Subject, top: usize) -> Vec<Hotspot> {
    let analysis = &view.analysis;
    if let Some(comparison) = &view.comparison {
        let by = match by {
            Subject::Line => By::Line,
            Subject::Function => By::Function,
        };
        let spots = hot_list::changed_spots(analysis, &comparison.compared, by, top);
        return spots.into_iter().enumerate().map(|(at, spot)| changed(state, view, at + 1, spot)).collect();
    }
    let numbers = Numbers::of(analysis);
    let is_own = |file: GroupId| {
        let placement = analysis.groups.get(file).placement.as_ref();
        placement.is_some_and(|placement| placement.place == Place::Workspace)
    };
    let rows: Vec<(String, GroupId, LineNo, profiler_core::attribute::Cost)> = match by {
        Subject::Line => (analysis.costs.lines.iter())
            .filter(|row| is_own(row.file) && row.cost.direct != 0)
            .take(top)
            .map(|row| {
                let function = row.functions.first().map(|&at| analysis.costs.functions[at].name.clone());
                (function.unwrap_or_default(), row.file, row.line, row.cost)
            })
            .collect(),
        Subject::Function => (analysis.costs.functions.iter())
            .filter(|row| is_own(row.file) && row.cost.direct != 0)
            .take(top)
            .map(|row| (row.name.clone(), row.file, row.start_line, row.cost))
            .collect(),
    };
    rows.into_iter()
        .enumerate()
        .map(|(at, (function, file, line, cost))| {
            let path = places::path_of(view, file);
            let name = analysis.groups.display(&analysis.profile, file).to_owned();
            let is_uncertain = analysis.groups.is_uncertain(file, line);
            let label = format!(
                "{}  {}  {function}  {name}:{}{}",
                numbers.share(cost.direct),
                numbers.value(cost.direct),
                if is_uncertain { "~" } else { "" },
                line.0
            );
            let spot = HotSpot {
                glyph: None,
                share: numbers.share(cost.direct),
                value: numbers.value(cost.direct),
                with_calls: Some(numbers.share(cost.cumulative)),
                name: data::shown(&function).into_owned(),
                place: Some(hot_list::Place {
                    file: name.clone(),
                    line: line.is_known().then_some(line.0),
                    is_uncertain,
                }),
            };
            Hotspot {
                rank: at + 1,
                title: spot.label(),
                description: spot.description(),
                function,
                uri: path.as_ref().and_then(|path| places::uri_of(state, path)),
                range: path.map(|path| places::range_of(state, &path, line)).unwrap_or_default(),
                file: name,
                line: line.0,
                direct: Some(cost.direct),
                cumulative: Some(cost.cumulative),
                label,
            }
        })
        .collect()
}

fn changed(state: &State, view: &View, rank: usize, spot: HotSpot) -> Hotspot {
    let (file, line) =
        spot.place.as_ref().map_or((String::new(), 0), |place| (place.file.clone(), place.line.unwrap_or(0)));
    let group = view.index.named(&view.analysis, &file);
    let path = group.and_then(|group| places::path_of(view, group));
    Hotspot {
        rank,
        title: spot.label(),
        description: spot.description(),
        label: format!("{}  {}", spot.label().trim(), spot.description()),
        function: spot.name,
        uri: path.as_ref().and_then(|path| places::uri_of(state, path)),
        range: path.map(|path| places::range_of(state, &path, LineNo(line))).unwrap_or_default(),
        file,
        line,
        direct: None,
        cumulative: None,
    }
}

/// The place to go to from another, or from where one went last. Both ends are joined.
pub fn neighbour(state: &mut State, view: &View, from: Option<(PathBuf, u32)>, is_next: bool) -> Option<Hotspot> {
    let rows = list(state, view, Subject::Line, 500);
    let count = rows.len();
    if count == 0 {
        return None;
    }
    let at = match from {
        Some((path, line)) => rows.iter().position(|row| {
            row.range.start.line + 1 == line
                && row.uri.as_ref().and_then(crate::state::documents::file_path).as_ref() == Some(&path)
        }),
        None => state.hotspot.filter(|&at| at < count),
    };
    let to = match (at, is_next) {
        (Some(at), true) => (at + 1) % count,
        (Some(at), false) => (at + count - 1) % count,
        (None, true) => 0,
        (None, false) => count - 1,
    };
    state.hotspot = Some(to);
    rows.into_iter().nth(to)
}
