//! Call hierarchy: who calls a function and what it calls, as far as samples saw it.

use lsp_types::{CallHierarchyIncomingCall, CallHierarchyItem, CallHierarchyOutgoingCall, Position, Range, SymbolKind};
use profiler_core::attribute::GroupId;
use profiler_core::attribute::calls::{Calls, Neighbour, Target};
use profiler_core::cancel::CancelFlag;
use profiler_core::profile::LineNo;
use profiler_core::view::summary::Numbers;
use serde::{Deserialize, Serialize};

use super::places;
use crate::state::view::View;
use crate::state::{Snapshot, State};

/// A function of the view, by what stays the same between requests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FunctionData {
    /// Its demangled name.
    pub name: String,
    /// The profile's path of its file; empty when it has none.
    pub file: String,
}

impl FunctionData {
    fn target(&self, view: &View) -> Option<Target> {
        let analysis = &view.analysis;
        let row = analysis
            .costs
            .functions
            .iter()
            .find(|row| row.name == self.name && analysis.groups.path(&analysis.profile, row.file) == self.file)?;
        Some(Target::Function(row.name.clone(), row.file))
    }
}

/// The function at a position.
pub fn prepare(snapshot: &Snapshot, state: &State, position: Position) -> Option<Vec<CallHierarchyItem>> {
    let view = snapshot.view.as_ref()?;
    let function = places::function_around(snapshot, position.line)?;
    let row = &view.analysis.costs.functions[function];
    let neighbour = Neighbour {
        name: row.name.clone(),
        file: row.file,
        start_line: row.start_line,
        line: LineNo(position.line + 1),
        value: row.cost.cumulative,
    };
    item(view, state, &neighbour).map(|item| vec![item])
}

/// Looks through the samples; slow.
pub fn calls(view: &View, item: &CallHierarchyItem, cancel: &CancelFlag) -> Option<Calls> {
    let data: FunctionData = serde_json::from_value(item.data.clone()?).ok()?;
    let target = data.target(view)?;
    view.analysis.calls(&target, cancel).ok()
}

/// The callers as the protocol wants them.
pub fn incoming(view: &View, state: &State, calls: &Calls) -> Vec<CallHierarchyIncomingCall> {
    calls
        .callers
        .iter()
        .filter_map(|caller| {
            let from = item(view, state, caller)?;
            let range = call_range(view, state, caller).unwrap_or(from.selection_range);
            Some(CallHierarchyIncomingCall { from, from_ranges: vec![range] })
        })
        .collect()
}

/// The callees as the protocol wants them. `item` is the caller.
pub fn outgoing(
    view: &View,
    state: &State,
    item_of: &CallHierarchyItem,
    calls: &Calls,
) -> Vec<CallHierarchyOutgoingCall> {
    calls
        .callees
        .iter()
        .filter_map(|callee| {
            let to = item(view, state, callee)?;
            Some(CallHierarchyOutgoingCall { to, from_ranges: vec![item_of.selection_range] })
        })
        .collect()
}

fn call_range(view: &View, state: &State, neighbour: &Neighbour) -> Option<Range> {
    let path = places::path_of(view, neighbour.file)?;
    neighbour.line.is_known().then(|| places::range_of(state, &path, neighbour.line))
}

/// `None` for what has no file: an editor can't show it. Its cost is in the hover.
fn item(view: &View, state: &State, neighbour: &Neighbour) -> Option<CallHierarchyItem> {
    let analysis = &view.analysis;
    let line = if neighbour.start_line.is_known() { neighbour.start_line } else { neighbour.line };
    let (uri, range) = if let Some(path) = places::path_of(view, neighbour.file) {
        (places::uri_of(state, &path)?, places::range_of(state, &path, line))
    } else {
        // Not on this machine: named, and nowhere to go.
        let path = analysis.groups.path(&analysis.profile, neighbour.file);
        let uri = lsp_types::Url::parse("perflens:/").and_then(|base| base.join(path.trim_start_matches('/'))).ok()?;
        (uri, Range::default())
    };
    let numbers = Numbers::of(analysis);
    let data = FunctionData {
        name: neighbour.name.clone(),
        file: analysis.groups.path(&analysis.profile, neighbour.file).to_owned(),
    };
    Some(CallHierarchyItem {
        name: if neighbour.name.is_empty() { "unknown".to_owned() } else { neighbour.name.clone() },
        kind: SymbolKind::FUNCTION,
        tags: None,
        detail: Some(format!("{} {}", numbers.share(neighbour.value), numbers.value(neighbour.value))),
        uri,
        range,
        selection_range: range,
        data: serde_json::to_value(data).ok(),
    })
}

/// The group of a document's file, for targets that are lines.
pub fn line_target(snapshot: &Snapshot, line: u32) -> Option<Target> {
    let (file, line): (GroupId, LineNo) = places::costly_line(snapshot, line)?;
    Some(Target::Line(file, line))
}
