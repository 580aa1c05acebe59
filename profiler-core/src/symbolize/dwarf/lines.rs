//! Which line an address is on, in a unit that is read alone.
//!
//! addr2line knows as well, from rows of three times the size, which a unit's first address has it make; of what all addresses
//! of a large program cost at first that is half. So it is given such units without their lines
//! ([`Reader::without_program`](super::limits::Reader)), and names of files, inlined calls and functions stay its work.
//! What is unusual about a unit leaves all of it to addr2line.

use std::num::NonZeroU64;
use std::sync::Arc;

use gimli::{ColumnType, DebugInfoOffset, LittleEndian, Section as _, UnitRef};
use rustc_hash::FxHashMap;

use super::super::line_and_column;
use super::limits::Reader;
use super::{Dwarf, Texts};

/// Most rows that there is room for before they come: no claim of a file is believed.
const MAX_RESERVED: usize = 1 << 18;

/// The lines of a unit.
pub(super) struct Lines<'a> {
    unit: gimli::Unit<Reader<'a>>,
    /// By address.
    sequences: Box<[Sequence]>,
    rows: Box<[Row]>,
    /// Paths that were asked for.
    files: FxHashMap<u16, Option<Arc<str>>>,
}

/// Code that lies together.
struct Sequence {
    start: u64,
    end: u64,
    first_row: usize,
    rows: usize,
}

struct Row {
    /// From the beginning of its sequence.
    distance: u32,
    /// 0 for none.
    line: u32,
    file: u16,
    /// 0 for none.
    column: u16,
}

/// A place in a source file.
pub(super) struct Place {
    pub(super) file: Option<Arc<str>>,
    /// 0 for none.
    pub(super) line: u32,
    pub(super) column: u32,
}

impl<'a> Lines<'a> {
    /// The lines of the unit at an offset, and where in the section of lines they begin. `None` where addr2line has to read
    /// them: of split units, of those that say where they are by their lines alone, and of damaged ones.
    pub(super) fn read(main: &Dwarf<'a>, offset: usize) -> Option<(Self, usize)> {
        let unit = main.unit(main.debug_info.header_from_offset(DebugInfoOffset(offset)).ok()?).ok()?;
        let mut ranges = main.unit_ranges(&unit).ok()?;
        let mut has_ranges = false;
        while let Some(range) = ranges.next().ok()? {
            has_ranges |= range.begin < range.end;
        }
        if unit.dwo_id.is_some() || !has_ranges {
            return None;
        }
        let header = unit.line_program.as_ref()?.header();
        let section = main.debug_line.reader().bytes();
        let program = header.raw_program_buf().bytes();
        let begin = program.as_ptr().addr().checked_sub(section.as_ptr().addr())?;
        let bytes = program.len();
        // Nothing of it is limited, and half of the time goes into reading it: so without the reader that limits.
        let program = gimli::DebugLine::new(section, LittleEndian)
            .program(header.offset(), header.address_size(), None, None)
            .ok()?;
        let mut sequences = Vec::<Sequence>::new();
        let mut rows = Vec::<Row>::with_capacity((bytes / 2).min(MAX_RESERVED));
        let (mut first_row, mut start) = (0, None);
        let mut program = program.rows();
        while let Some((_, row)) = program.next_row().ok()? {
            if row.end_sequence() {
                let count = rows.len() - first_row;
                match start.take().filter(|&start| start < row.address()) {
                    Some(start) => sequences.push(Sequence { start, end: row.address(), first_row, rows: count }),
                    None => rows.truncate(first_row),
                }
                first_row = rows.len();
                continue;
            }
            let start = *start.get_or_insert(row.address());
            let distance = u32::try_from(row.address().checked_sub(start)?).ok()?;
            let column = match row.column() {
                ColumnType::Column(column) => column.get(),
                ColumnType::LeftEdge => 0,
            };
            let (line, column) = line_and_column(row.line().map_or(0, NonZeroU64::get), column);
            let (file, column) = (u16::try_from(row.file_index()).ok()?, u16::try_from(column).ok()?);
            let row = Row { distance, line, file, column };
            match rows[first_row..].last_mut() {
                // Of rows of one address the last one counts.
                Some(last) if last.distance == distance => *last = row,
                _ => rows.push(row),
            }
        }
        // What no end follows is no sequence.
        rows.truncate(first_row);
        sequences.sort_unstable_by_key(|sequence| sequence.start);
        Some((Self { unit, sequences: sequences.into(), rows: rows.into(), files: FxHashMap::default() }, begin))
    }

    /// The place of an address.
    pub(super) fn find(&mut self, main: &Dwarf<'a>, address: u64, texts: &mut Texts) -> Option<Place> {
        let sequence = self.sequences.partition_point(|sequence| sequence.start <= address).checked_sub(1)?;
        let sequence = self.sequences.get(sequence).filter(|sequence| address < sequence.end)?;
        let rows = self.rows.get(sequence.first_row..)?.get(..sequence.rows)?;
        let distance = address - sequence.start;
        let row = rows.partition_point(|row| u64::from(row.distance) <= distance).checked_sub(1)?;
        let &Row { file, line, column, .. } = rows.get(row)?;
        let unit = UnitRef::new(main, &self.unit);
        let file = self.files.entry(file).or_insert_with(|| path(unit, file).map(|path| texts.keep(&path)));
        Some(Place { file: file.clone(), line, column: column.into() })
    }

    /// About how many bytes it holds.
    pub(super) fn heap_size(&self) -> usize {
        size_of_val(&*self.rows) + size_of_val(&*self.sequences)
    }
}

/// The path of a file of a unit, put together of the folder it was compiled in, its own and its name.
fn path(unit: UnitRef<'_, Reader<'_>>, file: u16) -> Option<String> {
    let header = unit.line_program.as_ref()?.header();
    let file = header.file(file.into())?;
    let mut path = String::new();
    let mut add = |part: Reader<'_>| {
        let part = gimli::Reader::to_string_lossy(&part).ok()?;
        if is_whole(&part) {
            path.clear();
        } else if !path.is_empty() {
            let separator = if has_backslashes(&path) { '\\' } else { '/' };
            if !path.ends_with(separator) {
                path.push(separator);
            }
        }
        path.push_str(&part);
        Some(())
    };
    if let Some(folder) = unit.comp_dir {
        add(folder)?;
    }
    // Folder 0 is the one that it was compiled in.
    if file.directory_index() != 0
        && let Some(folder) = file.directory(header)
    {
        add(unit.attr_string(folder).ok()?)?;
    }
    add(unit.attr_string(file.path_name()).ok()?)?;
    Some(path)
}

/// Whether a path needs no folder before it.
fn is_whole(path: &str) -> bool {
    path.starts_with('/') || path.get(1..3) == Some(":/") || has_backslashes(path)
}

fn has_backslashes(path: &str) -> bool {
    path.starts_with('\\') || path.get(1..3) == Some(":\\")
}
