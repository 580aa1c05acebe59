//! The line table of a unit.

use std::sync::Arc;

use gimli::{ColumnType, UnitRef};

use super::super::line_and_column;
use super::super::ranges::RangeMap;
use super::{Frame, Reader};
use crate::profile::LineNo;

/// Rows of a line table, and its files as far as anyone asked for them.
#[derive(Debug, Default)]
pub(super) struct Lines {
    sequences: RangeMap,
    /// Where the rows of each sequence end.
    ends: Vec<u32>,
    addresses: Vec<u64>,
    positions: Vec<Position>,
    files: Vec<Option<Arc<str>>>,
}

/// A place in a source file; zeros mean unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// Number of the file in the table, plus one.
    pub(super) file: u32,
    pub(super) line: u32,
    pub(super) column: u32,
}

impl Position {
    pub(super) fn new(file: Option<u64>, line: u64, column: u64) -> Self {
        let file = file.and_then(|file| u32::try_from(file).ok()?.checked_add(1)).unwrap_or(0);
        let (line, column) = line_and_column(line, column);
        Self { file, line, column }
    }

    /// A frame that is nowhere but here.
    pub(super) fn frame(self) -> Frame {
        Frame { line: LineNo(self.line), column: self.column, ..Frame::default() }
    }
}

impl Lines {
    /// Reads the rows; what follows damage is missing.
    pub(super) fn parse(unit: UnitRef<'_, Reader<'_>>, has_code_at_zero: bool) -> Self {
        let mut lines = Self::default();
        let Some(program) = unit.line_program.clone() else { return lines };
        let mut rows = program.rows();
        let mut ranges = Vec::new();
        let mut start = 0;
        while let Ok(Some((_, row))) = rows.next_row() {
            if row.end_sequence() {
                let begin = lines.addresses.get(start).copied();
                let is_kept = begin.is_some_and(|begin| begin < row.address() && (begin != 0 || has_code_at_zero));
                let (Some(begin), true) = (begin, is_kept) else {
                    lines.addresses.truncate(start);
                    lines.positions.truncate(start);
                    continue;
                };
                let (Ok(index), Ok(end)) = (u32::try_from(ranges.len()), u32::try_from(lines.addresses.len())) else {
                    break;
                };
                ranges.push((begin, row.address(), index));
                lines.ends.push(end);
                start = lines.addresses.len();
                continue;
            }
            let column = match row.column() {
                ColumnType::LeftEdge => 0,
                ColumnType::Column(column) => column.get(),
            };
            let position = Position::new(Some(row.file_index()), row.line().map_or(0, std::num::NonZero::get), column);
            // Of several rows at one address the last one counts.
            if lines.addresses.len() > start && lines.addresses.last() == Some(&row.address()) {
                if let Some(last) = lines.positions.last_mut() {
                    *last = position;
                }
                continue;
            }
            lines.addresses.push(row.address());
            lines.positions.push(position);
        }
        lines.addresses.truncate(start);
        lines.positions.truncate(start);
        lines.addresses.shrink_to_fit();
        lines.positions.shrink_to_fit();
        lines.sequences = RangeMap::new(ranges);
        lines
    }

    pub(super) fn heap_size(&self) -> usize {
        self.addresses.len() * 20 + self.ends.len() * 40 + self.files.len() * 16
    }

    /// Ranges of addresses with lines.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.sequences.ranges()
    }

    /// The row that covers an address.
    pub(super) fn find(&self, address: u64) -> Option<Position> {
        let sequence = self.sequences.find(address).next()? as usize;
        let start = if sequence == 0 { 0 } else { self.ends[sequence - 1] as usize };
        let rows = &self.addresses[start..self.ends[sequence] as usize];
        let row = rows.partition_point(|&begin| begin <= address).checked_sub(1)?;
        Some(self.positions[start + row])
    }

    /// The path of a file, if it was asked for before.
    pub(super) fn known_file(&self, file: u32) -> Option<&Arc<str>> {
        self.files.get(file as usize)?.as_ref()
    }

    pub(super) fn remember_file(&mut self, file: u32, path: Arc<str>) {
        // Numbers of files are data: a wild one must not cost memory.
        let index = file as usize;
        if index < 1 << 20 {
            if self.files.len() <= index {
                self.files.resize(index + 1, None);
            }
            self.files[index] = Some(path);
        }
    }

    /// The path of a file: absolute where the compiler's folder is known; empty when there is no
    /// such file.
    pub(super) fn render_file(unit: UnitRef<'_, Reader<'_>>, file: u32) -> String {
        let mut path = String::new();
        let Some(header) = unit.line_program.as_ref().map(gimli::IncompleteLineProgram::header) else { return path };
        // In DWARF 4 there is no file 0; gimli knows which version it has.
        let Some(entry) = file.checked_sub(1).and_then(|file| header.file(u64::from(file))) else { return path };
        if let Some(folder) = &unit.comp_dir {
            path = folder.to_string_lossy().into_owned();
        }
        if entry.directory_index() != 0
            && let Some(folder) = entry.directory(header).and_then(|folder| unit.attr_string(folder).ok())
        {
            join(&mut path, &folder.to_string_lossy());
        }
        match unit.attr_string(entry.path_name()) {
            Ok(name) if !name.is_empty() => join(&mut path, &name.to_string_lossy()),
            _ => path.clear(),
        }
        path
    }
}

/// Appends a path; one that is absolute replaces what is there.
fn join(path: &mut String, more: &str) {
    let is_drive = |path: &str, slash: char| {
        path.get(1..2) == Some(":") && path.get(2..).is_some_and(|rest| rest.starts_with(slash))
    };
    let is_windows = |path: &str| path.starts_with('\\') || is_drive(path, '\\');
    if more.starts_with('/') || is_drive(more, '/') || is_windows(more) {
        more.clone_into(path);
        return;
    }
    let slash = if is_windows(path) { '\\' } else { '/' };
    if !path.is_empty() && !path.ends_with(slash) {
        path.push(slash);
    }
    path.push_str(more);
}
