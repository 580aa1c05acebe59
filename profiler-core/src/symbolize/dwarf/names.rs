//! Names of functions. An entry with code refers to the entry that declares it, which may be in
//! another unit or in a file shared by several programs.

use std::rc::Rc;
use std::sync::Arc;

use gimli::{AttributeValue, UnitOffset, UnitRef, constants as dw};

use super::units::{headers, holding};
use super::{Index, Place, Reader, Session, SplitUnit};

/// References are followed this often.
const MAX_HOPS: usize = 16;

/// An entry that may have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NameKey {
    place: Place,
    /// Offset in the section; in split units, in the unit.
    offset: usize,
}

impl NameKey {
    /// An entry of a unit.
    pub(super) fn in_unit(place: Place, unit: UnitRef<'_, Reader<'_>>, entry: UnitOffset) -> Self {
        Self { place, offset: start(unit).wrapping_add(entry.0) }
    }

    /// The entry that an attribute refers to.
    pub(super) fn referred(
        place: Place,
        unit: UnitRef<'_, Reader<'_>>,
        value: AttributeValue<Reader<'_>>,
    ) -> Option<Self> {
        match value {
            AttributeValue::UnitRef(entry) => Some(Self::in_unit(place, unit, entry)),
            AttributeValue::DebugInfoRef(offset) => Some(Self { place, offset: offset.0 }),
            AttributeValue::DebugInfoRefSup(offset) => Some(Self { place: Place::Shared, offset: offset.0 }),
            _ => None,
        }
    }
}

/// Where a unit starts in its section.
fn start(unit: UnitRef<'_, Reader<'_>>) -> usize {
    unit.header.debug_info_offset().map_or(0, |offset| offset.0)
}

/// What is known about a function apart from its code.
#[derive(Clone, Debug)]
pub(super) struct Named {
    /// As the linker knows it, where that is said; else as the source has it; empty: nameless.
    pub(super) name: Arc<str>,
    /// Whether that is the name as the linker knows it.
    pub(super) is_linkage: bool,
    /// The file it is declared in, when that is in the unit that names it.
    pub(super) path: Option<Arc<str>>,
    /// The line it is declared on; 0 = unknown.
    pub(super) line: u32,
}

/// What was found along the references so far.
#[derive(Default)]
struct Found<'a> {
    linkage: Option<Reader<'a>>,
    plain: Option<Reader<'a>>,
    file: Option<u64>,
    line: Option<u64>,
}

impl<'a> Found<'a> {
    /// Reads an entry; returns what it refers to.
    fn read(&mut self, place: Place, unit: UnitRef<'_, Reader<'a>>, entry: UnitOffset) -> Option<NameKey> {
        let mut next = None;
        let mut entries = unit.entries_raw(Some(entry)).ok()?;
        let abbreviation = entries.read_abbreviation().ok()??;
        for &specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(specification).ok()?;
            let text = || unit.attr_string(attribute.value()).ok().filter(|text| !text.is_empty());
            match attribute.name() {
                dw::DW_AT_linkage_name | dw::DW_AT_MIPS_linkage_name => self.linkage = self.linkage.or_else(text),
                dw::DW_AT_name => self.plain = self.plain.or_else(text),
                dw::DW_AT_abstract_origin | dw::DW_AT_specification => {
                    next = NameKey::referred(place, unit, attribute.value());
                }
                dw::DW_AT_decl_line => self.line = self.line.or_else(|| attribute.udata_value()),
                dw::DW_AT_decl_file => {
                    let file = match attribute.value() {
                        AttributeValue::FileIndex(file) => Some(file),
                        _ => attribute.udata_value(),
                    };
                    self.file = self.file.or(file);
                }
                _ => {}
            }
        }
        next
    }
}

impl Index {
    /// Finds out the name of an entry; `unit` is the one that it was met in. Also the number, in
    /// that unit's line table plus one, of the file that declares it.
    pub(super) fn name(
        &mut self,
        session: &mut Session<'_>,
        unit: u32,
        key: NameKey,
    ) -> Result<(Named, Option<u32>), SplitUnit> {
        let mut found = Found::default();
        let mut next = Some(key);
        let mut is_local = true;
        for _ in 0..MAX_HOPS {
            let Some(key) = next.take() else { break };
            if found.linkage.is_some() {
                break;
            }
            // Most references stay in the unit.
            if let Some(open) = session.open(&self.units, unit)? {
                let (place, half) = open.functions(session);
                let inside =
                    key.offset.checked_sub(start(half)).filter(|&inside| inside < half.header.length_including_self());
                if let Some(entry) = inside.filter(|_| place == key.place) {
                    next = found.read(place, half, UnitOffset(entry));
                    continue;
                }
            }
            is_local = false;
            next = self.read_foreign(session, key, &mut found);
        }
        let is_linkage = found.linkage.is_some();
        let name = found.linkage.or(found.plain).map(|name| name.to_string_lossy());
        let name = self.texts.keep(&name.unwrap_or_default());
        let number = |number: u64| u32::try_from(number).ok().filter(|&number| number <= i32::MAX.unsigned_abs());
        let line = found.line.and_then(number).unwrap_or(0);
        // Files are numbered per unit.
        let file = found.file.filter(|_| is_local).and_then(number).map(|file| file + 1);
        Ok((Named { name, is_linkage, path: None, line }, file))
    }

    fn read_foreign<'a>(&self, session: &mut Session<'a>, key: NameKey, found: &mut Found<'a>) -> Option<NameKey> {
        let offset = match key.place {
            Place::Main => self.units.holding(key.offset).and_then(|unit| self.units.offset(unit))?,
            Place::Shared => {
                if session.shared_units.is_none() {
                    session.shared_units = Some(headers(session.main.sup()?).0);
                }
                let units = session.shared_units.as_deref()?;
                units[holding(units, key.offset)?]
            }
            Place::Split(_) => return None,
        };
        let unit = match &session.foreign {
            Some((place, unit))
                if *place == key.place && unit.header.debug_info_offset().is_some_and(|known| known.0 == offset) =>
            {
                Rc::clone(unit)
            }
            _ => {
                let unit = Rc::new(session.unit(key.place, offset)?);
                session.foreign = Some((key.place, Rc::clone(&unit)));
                unit
            }
        };
        let dwarf = if key.place == Place::Shared { session.main.sup()? } else { &session.main };
        found.read(key.place, UnitRef::new(dwarf, &unit), UnitOffset(key.offset.checked_sub(offset)?))
    }
}
