//! Where things of the profile are in documents and on disk.

use std::path::{Path, PathBuf};

use lsp_types::{Position, Range, Url};
use profiler_core::attribute::GroupId;
use profiler_core::attribute::calls::Target;
use profiler_core::profile::LineNo;

use crate::state::view::View;
use crate::state::{Snapshot, State};

/// The file of the profile on this machine, if it has one.
pub fn path_of(view: &View, file: GroupId) -> Option<PathBuf> {
    view.analysis.groups.get(file).placement.as_ref()?.path.clone()
}

/// A line of the profile (from 1) in a file, as a range of the editor: where it is now when
/// the file is open, else where it was.
pub fn range_of(state: &State, path: &Path, line: LineNo) -> Range {
    let number = line.0.saturating_sub(1);
    let current = state.documents.at(path).and_then(|document| document.map.buffer_line(line.0));
    let number = current.and_then(|line| u32::try_from(line).ok()).unwrap_or(number);
    Range::new(Position::new(number, 0), Position::new(number, 0))
}

/// The address of a file.
pub fn uri_of(state: &State, path: &Path) -> Option<Url> {
    // An open document is known to the editor by its own spelling.
    state.documents.at(path).map(|document| document.uri.clone()).or_else(|| Url::from_file_path(path).ok())
}

/// The line of the profile that a line of a document (from 0) is, if it has a cost.
pub fn costly_line(snapshot: &Snapshot, line: u32) -> Option<(GroupId, LineNo)> {
    let view = snapshot.view.as_ref()?;
    let file = view.file(&snapshot.file)?;
    let profiled = snapshot.document.map.profiled_line(line as usize)?;
    file.line(profiled).map(|row| (file.file, row.line))
}

/// The function whose declaration starts at a line of a document (from 0), the costliest of
/// several.
pub fn function_at(snapshot: &Snapshot, line: u32) -> Option<usize> {
    let view = snapshot.view.as_ref()?;
    let file = view.file(&snapshot.file)?;
    let profiled = snapshot.document.map.profiled_line(line as usize)?;
    let functions = &view.analysis.costs.functions;
    file.functions()
        .filter(|&function| functions[function].start_line.0 == profiled)
        .max_by_key(|&function| functions[function].cost.cumulative.unsigned_abs())
}

/// The function a line of a document (from 0) is in, as the samples on the line say.
pub fn function_around(snapshot: &Snapshot, line: u32) -> Option<usize> {
    let view = snapshot.view.as_ref()?;
    let file = view.file(&snapshot.file)?;
    let profiled = snapshot.document.map.profiled_line(line as usize)?;
    file.line(profiled).and_then(|row| row.functions.first().copied()).or_else(|| function_at(snapshot, line))
}

/// A function as a target of calls.
pub fn target_of(view: &View, function: usize) -> Target {
    let row = &view.analysis.costs.functions[function];
    Target::Function(row.name.clone(), row.file)
}
