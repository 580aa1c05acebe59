//! The functions of a unit, and the calls that were inlined into them.

use gimli::{AttributeValue, UnitOffset, UnitRef, constants as dw};

use super::super::ranges::RangeMap;
use super::lines::Position;
use super::names::NameKey;
use super::{MAX_RANGES, Place, Reader};

/// Calls that are inlined into each other more deeply are cut off.
pub(super) const MAX_DEPTH: usize = 64;

/// The functions of a unit.
#[derive(Debug)]
pub(super) struct Functions {
    ranges: RangeMap,
    functions: Vec<Function>,
}

#[derive(Debug)]
struct Function {
    key: NameKey,
    /// Offset of its entry in its unit.
    entry: usize,
    inlines: Option<Box<Inlines>>,
}

/// What was inlined into a function.
#[derive(Debug, Default)]
struct Inlines {
    calls: Vec<Call>,
    /// Sorted by depth, then by begin.
    ranges: Vec<CallRange>,
}

#[derive(Debug)]
struct Call {
    callee: NameKey,
    site: Position,
}

#[derive(Debug)]
struct CallRange {
    depth: u32,
    begin: u64,
    end: u64,
    call: u32,
}

/// What an entry says about its addresses.
#[derive(Default)]
struct Extent<'a> {
    low: Option<u64>,
    high: Option<u64>,
    size: Option<u64>,
    list: Option<AttributeValue<Reader<'a>>>,
}

impl<'a> Extent<'a> {
    /// Takes an attribute, if it is about addresses.
    fn take(&mut self, unit: UnitRef<'_, Reader<'a>>, attribute: &gimli::Attribute<Reader<'a>>) {
        match attribute.name() {
            dw::DW_AT_low_pc => self.low = unit.attr_address(attribute.value()).ok().flatten(),
            dw::DW_AT_high_pc => match attribute.value() {
                AttributeValue::Udata(size) => self.size = Some(size),
                value => match unit.attr_address(value) {
                    Ok(Some(address)) => self.high = Some(address),
                    _ => self.size = attribute.udata_value(),
                },
            },
            dw::DW_AT_ranges => self.list = Some(attribute.value()),
            _ => {}
        }
    }

    /// Calls back with each range that is one; bad ones are left out.
    fn each(&self, unit: UnitRef<'_, Reader<'a>>, budget: &mut usize, mut add: impl FnMut(u64, u64)) {
        let mut add = |begin: u64, end: u64| {
            if begin < end {
                add(begin, end);
            }
        };
        if let Some(list) = &self.list {
            let Ok(Some(mut ranges)) = unit.attr_ranges(*list) else { return };
            while *budget > 0
                && let Ok(Some(range)) = ranges.next()
            {
                *budget -= 1;
                add(range.begin, range.end);
            }
        } else if let Some(begin) = self.low {
            if let Some(end) = self.high {
                add(begin, end);
            } else if let Some(end) = self.size.and_then(|size| begin.checked_add(size)) {
                add(begin, end);
            }
        }
    }
}

impl Functions {
    /// Finds the functions with code. What follows damage is missing.
    pub(super) fn parse(place: Place, unit: UnitRef<'_, Reader<'_>>, has_code_at_zero: bool) -> Self {
        let mut functions = Vec::new();
        let mut ranges = Vec::new();
        let mut budget = MAX_RANGES;
        let _ = each_function(unit, |entry, extent| {
            let Ok(row) = u32::try_from(functions.len()) else { return };
            let before = ranges.len();
            extent.each(unit, &mut budget, |begin, end| {
                if begin != 0 || has_code_at_zero {
                    ranges.push((begin, end, row));
                }
            });
            if ranges.len() > before {
                functions.push(Function { key: NameKey::in_unit(place, unit, entry), entry: entry.0, inlines: None });
            }
        });
        functions.shrink_to_fit();
        Self { ranges: RangeMap::new(ranges), functions }
    }

    pub(super) fn heap_size(&self) -> usize {
        let inlines: usize = self
            .functions
            .iter()
            .filter_map(|function| function.inlines.as_ref())
            .map(|inlines| inlines.calls.len() * 32 + inlines.ranges.len() * 24)
            .sum();
        self.functions.len() * 40 + self.ranges.len() * 32 + inlines
    }

    /// The function at an address.
    pub(super) fn find(&self, address: u64) -> Option<u32> {
        self.ranges.find(address).next()
    }

    pub(super) fn key(&self, function: u32) -> NameKey {
        self.functions[function as usize].key
    }

    pub(super) fn has_inlines(&self, function: u32) -> bool {
        self.functions[function as usize].inlines.is_some()
    }

    /// Reads what was inlined into a function.
    pub(super) fn parse_inlines(&mut self, function: u32, place: Place, unit: UnitRef<'_, Reader<'_>>) {
        let function = &mut self.functions[function as usize];
        let mut inlines = Inlines::default();
        let _ = inlines.parse(UnitOffset(function.entry), place, unit);
        inlines.ranges.sort_by_key(|range| (range.depth, range.begin));
        inlines.calls.shrink_to_fit();
        inlines.ranges.shrink_to_fit();
        function.inlines = Some(Box::new(inlines));
    }

    /// The calls that an address is inside of, outermost first; returns how many.
    pub(super) fn inlined(&self, function: u32, address: u64, chain: &mut [u32; MAX_DEPTH]) -> usize {
        let Some(inlines) = &self.functions[function as usize].inlines else { return 0 };
        let mut rest = &inlines.ranges[..];
        for (depth, slot) in chain.iter_mut().enumerate() {
            // The last range of this depth that begins at or before the address.
            let wanted = (u32::try_from(depth).unwrap_or(u32::MAX), address);
            let end = rest.partition_point(|range| (range.depth, range.begin) <= wanted);
            let Some(range) = end.checked_sub(1).map(|last| &rest[last]) else { return depth };
            if range.depth != wanted.0 || range.end <= address {
                return depth;
            }
            *slot = range.call;
            rest = &rest[end..];
        }
        MAX_DEPTH
    }

    /// Who was called, and where.
    pub(super) fn call(&self, function: u32, call: u32) -> (NameKey, Position) {
        match self.functions[function as usize].inlines.as_ref().and_then(|inlines| inlines.calls.get(call as usize)) {
            Some(call) => (call.callee, call.site),
            None => (self.key(function), Position::default()),
        }
    }
}

/// Calls back with every function that says something about its addresses.
fn each_function<'a>(
    unit: UnitRef<'_, Reader<'a>>,
    mut each: impl FnMut(UnitOffset, &Extent<'a>),
) -> Result<(), gimli::Error> {
    let mut entries = unit.entries_raw(None)?;
    while !entries.is_empty() {
        let offset = entries.next_offset();
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        let attributes = abbreviation.attributes();
        let is_function = abbreviation.tag() == dw::DW_TAG_subprogram
            && attributes.iter().any(|attribute| matches!(attribute.name(), dw::DW_AT_low_pc | dw::DW_AT_ranges));
        if !is_function {
            entries.skip_attributes(attributes)?;
            continue;
        }
        let mut extent = Extent::default();
        for &specification in attributes {
            extent.take(unit, &entries.read_attribute(specification)?);
        }
        each(offset, &extent);
    }
    Ok(())
}

impl Inlines {
    fn parse(&mut self, function: UnitOffset, place: Place, unit: UnitRef<'_, Reader<'_>>) -> Result<(), gimli::Error> {
        let mut entries = unit.entries_raw(Some(function))?;
        let base = entries.next_depth();
        if let Some(abbreviation) = entries.read_abbreviation()? {
            entries.skip_attributes(abbreviation.attributes())?;
        }
        // How deep in the tree the calls are that enclose the entry.
        let mut enclosing: Vec<isize> = Vec::new();
        // Functions inside of functions have code of their own.
        let mut skipped: Option<isize> = None;
        let mut budget = MAX_RANGES;
        while !entries.is_empty() {
            let depth = entries.next_depth();
            if depth <= base {
                break;
            }
            let offset = entries.next_offset();
            let Some(abbreviation) = entries.read_abbreviation()? else { continue };
            while enclosing.last().is_some_and(|&outer| outer >= depth) {
                enclosing.pop();
            }
            if skipped.is_some_and(|outer| outer >= depth) {
                skipped = None;
            }
            if abbreviation.tag() == dw::DW_TAG_subprogram && skipped.is_none() {
                skipped = Some(depth);
            }
            let is_call = abbreviation.tag() == dw::DW_TAG_inlined_subroutine && skipped.is_none();
            if !is_call {
                entries.skip_attributes(abbreviation.attributes())?;
                continue;
            }
            let mut extent = Extent::default();
            let mut callee = NameKey::in_unit(place, unit, offset);
            let (mut file, mut line, mut column) = (None, 0, 0);
            for &specification in abbreviation.attributes() {
                let attribute = entries.read_attribute(specification)?;
                match attribute.name() {
                    dw::DW_AT_abstract_origin => {
                        callee = NameKey::referred(place, unit, attribute.value()).unwrap_or(callee);
                    }
                    // Version 5 has a file 0; before, it meant none.
                    dw::DW_AT_call_file => {
                        file = attribute.udata_value().or(match attribute.value() {
                            AttributeValue::FileIndex(file) => Some(file),
                            _ => None,
                        });
                        file = file.filter(|&file| file > 0 || unit.header.version() >= 5);
                    }
                    dw::DW_AT_call_line => line = attribute.udata_value().unwrap_or(0),
                    dw::DW_AT_call_column => column = attribute.udata_value().unwrap_or(0),
                    _ => extent.take(unit, &attribute),
                }
            }
            let call = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
            if enclosing.len() < MAX_DEPTH {
                let depth = u32::try_from(enclosing.len()).unwrap_or(u32::MAX);
                extent.each(unit, &mut budget, |begin, end| self.ranges.push(CallRange { depth, begin, end, call }));
            }
            self.calls.push(Call { callee, site: Position::new(file, line, column) });
            enclosing.push(depth);
        }
        Ok(())
    }
}
