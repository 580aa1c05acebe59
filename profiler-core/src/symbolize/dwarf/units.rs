//! Where the units of a file are, and which addresses they cover.

use gimli::{DebugInfoOffset, UnitType};
use rustc_hash::FxHashMap;

use super::super::ranges::RangeMap;
use super::lines::Lines;
use super::{Dwarf, MAX_RANGES};

/// The units of a file.
#[derive(Debug)]
pub(super) struct Units {
    /// Offsets of their headers, ascending.
    offsets: Vec<usize>,
    by_address: RangeMap,
}

impl Units {
    pub(super) fn new(dwarf: &Dwarf<'_>, has_code_at_zero: bool) -> Self {
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
            if ranges[before..].iter().all(|&(begin, end, _)| begin >= end) {
                // Some producers state no range at all; their lines do.
                let lines = Lines::parse(unit.unit_ref(dwarf), has_code_at_zero);
                ranges.extend(lines.ranges().map(|(begin, end)| (begin, end, row)));
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

    /// The unit that an entry is in.
    pub(super) fn holding(&self, offset: usize) -> Option<u32> {
        holding(&self.offsets, offset).map(row)
    }
}

/// Index of the unit that an entry is in.
pub(super) fn holding(offsets: &[usize], offset: usize) -> Option<usize> {
    offsets.partition_point(|&start| start <= offset).checked_sub(1)
}

fn row(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Offsets of all units that can be referred to, and whether they may have code. What follows a
/// damaged header can't be found.
pub(super) fn headers(dwarf: &Dwarf<'_>) -> (Vec<usize>, Vec<bool>) {
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

/// Reads `.debug_aranges`; tells which units it has anything about.
fn address_table(dwarf: &Dwarf<'_>, offsets: &[usize], ranges: &mut Vec<(u64, u64, u32)>) -> Vec<bool> {
    let mut is_stated = vec![false; offsets.len()];
    let by_offset: FxHashMap<usize, usize> =
        offsets.iter().enumerate().map(|(index, &offset)| (offset, index)).collect();
    let mut sets = dwarf.debug_aranges.headers();
    while let Ok(Some(set)) = sets.next() {
        let Some(&index) = by_offset.get(&set.debug_info_offset().0) else { continue };
        let mut entries = set.entries();
        // Ranges that wrap around are errors that the iterator survives; others end it.
        for _ in 0..MAX_RANGES {
            match entries.next() {
                Ok(None) => break,
                Ok(Some(entry)) if entry.length() != 0 => {
                    ranges.push((entry.range().begin, entry.range().end, row(index)));
                    is_stated[index] = true;
                }
                Ok(Some(_)) | Err(_) => {}
            }
        }
    }
    is_stated
}
