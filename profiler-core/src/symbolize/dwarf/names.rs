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
    pub(super) declared: Option<Declared>,
}

/// Where a function is declared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared {
    pub(super) unit: u32,
    /// In the line table of the unit, plus one.
    pub(super) file: u32,
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
    /// Finds out the name of an entry; `unit` is the one that it was met in.
    pub(super) fn name(&mut self, session: &mut Session<'_>, unit: u32, key: NameKey) -> Result<Named, SplitUnit> {
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
        let declared = match (is_local, found.file, found.line) {
            (true, Some(file), Some(line)) => Some(Declared {
                unit,
                file: u32::try_from(file).ok().and_then(|file| file.checked_add(1)).unwrap_or(0),
                line: u32::try_from(line).ok().filter(|&line| line <= i32::MAX.unsigned_abs()).unwrap_or(0),
            }),
            _ => None,
        };
        Ok(Named { name, is_linkage, declared })
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
