//! Where the units of a file are, and which addresses they cover.

use gimli::{DebugInfoOffset, DwarfFileType, Section, UnitRef, UnitType};

use super::super::ranges::RangeMap;
use super::Dwarf;
use super::limits::Reader;

/// Most ranges of all units. They can be named again and again, so their number is not bounded by
/// the size of the file.
const MAX_RANGES: usize = 8 << 20;

/// The units of a file.
#[derive(Debug)]
pub(super) struct Units {
    /// Offsets of their headers, ascending.
    offsets: Vec<usize>,
    by_address: RangeMap,
}

impl Units {
    /// The units of a file; `lines` has the ranges that the unit at an offset has lines for.
    pub(super) fn new(dwarf: &Dwarf<'_>, has_code_at_zero: bool, lines: impl Fn(usize) -> Vec<(u64, u64)>) -> Self {
        let (offsets, has_code) = headers(dwarf);
        let mut ranges = Vec::new();
        let is_stated = address_table(dwarf, &offsets, &mut ranges);
        for (index, &offset) in offsets.iter().enumerate() {
            // The table is complete for the units it has. For others, their first entry tells.
            if is_stated[index] || !has_code[index] || ranges.len() > MAX_RANGES {
                continue;
            }
            let row = row(index);
            let Ok(header) = dwarf.debug_info.header_from_offset(DebugInfoOffset(offset)) else { continue };
            let Ok(unit) = dwarf.unit(header) else { continue };
            let before = ranges.len();
            if let Ok(mut own) = dwarf.unit_ranges(&unit) {
                while let Ok(Some(range)) = own.next() {
                    ranges.push((range.begin, range.end, row));
                    if ranges.len() > MAX_RANGES {
                        break;
                    }
                }
            }
            if unit.line_program.is_some() && ranges[before..].iter().all(|&(begin, end, _)| begin >= end) {
                // Some producers state no range at all; their lines do.
                ranges.extend(lines(offset).into_iter().map(|(begin, end)| (begin, end, row)));
            }
        }
        let ranges = ranges.into_iter().filter(|&(begin, _, _)| begin != 0 || has_code_at_zero);
        Self { offsets, by_address: RangeMap::new(ranges) }
    }

    pub(super) fn len(&self) -> usize {
        self.offsets.len()
    }

    pub(super) fn heap_size(&self) -> usize {
        self.offsets.len() * 24 + self.by_address.len() * 32
    }

    /// Units that may cover an address.
    pub(super) fn find(&self, address: u64) -> impl Iterator<Item = u32> + '_ {
        self.by_address.find(address)
    }

    /// Where a unit's header is.
    pub(super) fn offset(&self, unit: u32) -> Option<usize> {
        self.offsets.get(unit as usize).copied()
    }

    /// Which unit of the file a parsed one is; `None` for split units, which are in other files.
    pub(super) fn of(&self, unit: UnitRef<'_, Reader<'_>>) -> Option<u32> {
        let offset = unit.header.debug_info_offset()?.0;
        let is_here = unit.dwarf.file_type == DwarfFileType::Main;
        self.offsets.binary_search(&offset).ok().filter(|_| is_here).map(row)
    }
}

fn row(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Offsets of all units but those of types, and whether they may have code. What follows a
/// damaged header can't be found.
fn headers(dwarf: &Dwarf<'_>) -> (Vec<usize>, Vec<bool>) {
    let (mut offsets, mut has_code) = (Vec::new(), Vec::new());
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        let Some(offset) = header.debug_info_offset() else { continue };
        match header.type_() {
            UnitType::Type { .. } | UnitType::SplitType { .. } => continue,
            UnitType::Partial => has_code.push(false),
            _ => has_code.push(true),
        }
        offsets.push(offset.0);
    }
    (offsets, has_code)
}

/// Reads `.debug_aranges`; tells which units it has anything about. It has an entry for every
/// function of a program, and is read before anything is known: so by hand, in one go.
fn address_table(dwarf: &Dwarf<'_>, offsets: &[usize], ranges: &mut Vec<(u64, u64, u32)>) -> Vec<bool> {
    let mut is_stated = vec![false; offsets.len()];
    let mut rest = dwarf.debug_aranges.reader().bytes();
    while let Some(set) = Set::take(&mut rest) {
        // Sets are in the order of the units, as a rule.
        let Ok(index) = offsets.binary_search(&set.unit) else { continue };
        let row = row(index);
        if ranges.len() > MAX_RANGES {
            break;
        }
        for entry in set.entries.chunks_exact(16) {
            let word = |at: usize| entry[at..at + 8].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
            let (begin, length) = (word(0), word(8));
            // The last one is nothing but zeros; ranges that wrap around are errors.
            let Some(end) = begin.checked_add(length).filter(|_| length != 0) else { continue };
            match ranges.last_mut() {
                // One function after the other.
                Some(last) if last.1 == begin && last.2 == row => last.1 = end,
                _ => ranges.push((begin, end, row)),
            }
            is_stated[index] = true;
        }
    }
    is_stated
}

/// What `.debug_aranges` says about one unit.
struct Set<'a> {
    unit: usize,
    /// Pairs of addresses and lengths.
    entries: &'a [u8],
}

impl<'a> Set<'a> {
    /// The next set that can be read.
    fn take(rest: &mut &'a [u8]) -> Option<Self> {
        loop {
            let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | usize::from(byte));
            // The number that says that all numbers are longer.
            let is_long = rest.get(..4)? == [0xff; 4];
            let (start, size) = if is_long { (12, 8) } else { (4, 4) };
            let length = number(rest.get(start - size..start)?);
            let end = start.checked_add(length)?;
            let set = rest.get(..end)?;
            *rest = &rest[end..];
            // Version, unit, bytes of an address, bytes of a segment's number.
            let header = start + 2 + size + 2;
            let Some(kind) = set.get(header - 2..header) else { continue };
            // Pairs are where a multiple of their size is, from where the set begins.
            let Some(entries) = set.get(header.next_multiple_of(16)..) else { continue };
            if kind == [8, 0] {
                return Some(Self { unit: number(&set[start + 2..start + 2 + size]), entries });
            }
        }
    }
}
