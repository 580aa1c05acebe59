//! What DWARF says about an address: the functions that are inlined there, and their lines.
//!
//! Written on gimli rather than taken from the addr2line crate, for four reasons: one bad entry
//! must not cost the rest of its unit; nesting in the input must not become nesting on our stack;
//! of what is parsed nothing may borrow from the file, so that it can be kept, counted and sent
//! between threads; and only what the addresses need is read. So:
//!
//! * [`Index`] owns what was parsed: small tables, without a reference into any file.
//! * [`Session`] is the sections of the files, for the time of one batch.
//! * Nothing recurses. Whatever an entry can refer to again and again is counted against a budget.
//!
//! Addresses should come sorted: then a unit is opened once per batch.

mod functions;
mod lines;
mod names;
mod units;

use std::rc::Rc;
use std::sync::Arc;

use gimli::{DebugInfoOffset, EndianSlice, LittleEndian, UnitRef};
use rustc_hash::{FxHashMap, FxHashSet};

use functions::Functions;
use lines::Lines;
use names::{NameKey, Named};
use units::Units;

use super::elf::Elf;
use super::{Frame, Svma};
use crate::profile::LineNo;

pub(super) type Reader<'a> = EndianSlice<'a, LittleEndian>;
type Dwarf<'a> = gimli::Dwarf<Reader<'a>>;
type Unit<'a> = gimli::Unit<Reader<'a>>;

/// Most ranges of one unit. They can be named again and again, so their number is not bounded by
/// the size of the file.
const MAX_RANGES: usize = 8 << 20;
/// Abbreviations kept for units that share them.
const MAX_ABBREVIATIONS: usize = 256;

/// Which of the files of a module a unit is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Main,
    Shared,
    Split(u32),
}

/// What was parsed so far of a module's DWARF.
#[derive(Debug)]
pub(super) struct Index {
    units: Units,
    /// By unit.
    parsed: Vec<Option<Box<Parsed>>>,
    named: FxHashMap<NameKey, Named>,
    texts: Texts,
    /// Ranges that begin at 0 belong to code that the linker threw away.
    has_code_at_zero: bool,
}

/// Texts that occur again and again, each kept once.
#[derive(Debug, Default)]
struct Texts(FxHashSet<Arc<str>>);

impl Texts {
    fn keep(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let text: Arc<str> = text.into();
        self.0.insert(Arc::clone(&text));
        text
    }
}

/// Names of the symbols at addresses.
pub(super) type SymbolSource<'a> = dyn FnMut(u64) -> Option<Arc<str>> + 'a;

/// Whether a symbol says more about a function than its plain name, and doesn't contradict it.
/// Compilers that are asked for line tables only leave out in which module or class it is. For C
/// the plain name is better: symbols of clones have suffixes. And the linker may have merged the
/// function with another one, whose symbol it then is.
fn is_full_name_of(symbol: &str, plain: &str) -> bool {
    let is_mangled = symbol.starts_with("_Z") || symbol.starts_with("_R");
    let word = plain.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
    plain.is_empty() || is_mangled && symbol.contains(word)
}

/// What was parsed of one unit.
#[derive(Debug)]
struct Parsed {
    functions: Functions,
    lines: Lines,
}

/// Where the other half of a unit is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SplitUnit {
    /// What both halves have in common.
    pub(super) id: u64,
    /// The file it was written to, when it was compiled.
    pub(super) path: Vec<u8>,
    /// The folder that the path is relative to.
    pub(super) folder: Vec<u8>,
}

/// The answer for an address.
pub(super) enum Answer {
    /// Frames, innermost first; none when nothing is known.
    Frames(Vec<Frame>),
    /// The answer depends on a file that is not in the session yet.
    Needs(SplitUnit),
}

/// Split units, by id: the file, and whether it is a package of many.
#[derive(Debug, Default)]
pub(super) struct SplitFiles {
    files: Vec<Elf>,
    package: Option<Elf>,
    /// By id: which of `files`; `None` when there is none.
    by_id: FxHashMap<u64, Option<u32>>,
}

impl SplitFiles {
    /// Adds the package beside the binary.
    pub(super) fn set_package(&mut self, package: Elf) {
        self.package = Some(package);
    }

    /// Adds what was found for a unit.
    pub(super) fn add(&mut self, id: u64, file: Option<Elf>) {
        let index = file.and_then(|file| {
            let index = u32::try_from(self.files.len()).ok()?;
            self.files.push(file);
            Some(index)
        });
        self.by_id.insert(id, index);
    }

    pub(super) fn heap_size(&self) -> usize {
        self.files.iter().chain(&self.package).map(Elf::heap_size).sum()
    }
}

/// Whether a file holds the split unit of this id.
pub(super) fn holds_split_unit(file: &Elf, id: u64) -> bool {
    let dwarf = split_sections(file);
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        if dwarf.unit(header).is_ok_and(|unit| unit.dwo_id.is_some_and(|found| found.0 == id)) {
            return true;
        }
    }
    false
}

fn sections(file: &Elf) -> Dwarf<'_> {
    load(|id| Some(id.name()), file)
}

fn split_sections(file: &Elf) -> Dwarf<'_> {
    load(gimli::SectionId::dwo_name, file)
}

fn load(name: impl Fn(gimli::SectionId) -> Option<&'static str>, file: &Elf) -> Dwarf<'_> {
    let section = |id| -> Result<Reader<'_>, gimli::Error> { Ok(reader(name(id).and_then(|name| file.section(name)))) };
    // The closure never fails.
    gimli::Dwarf::load(section).unwrap_or_default()
}

fn reader(bytes: Option<&[u8]>) -> Reader<'_> {
    EndianSlice::new(bytes.unwrap_or_default(), LittleEndian)
}

/// The files of a module, while a batch of addresses is looked up.
pub(super) struct Session<'a> {
    main: Dwarf<'a>,
    split: &'a SplitFiles,
    package: Option<gimli::DwarfPackage<Reader<'a>>>,
    abbreviations: FxHashMap<(Place, usize), Arc<gimli::Abbreviations>>,
    shared_units: Option<Vec<usize>>,
    open: Option<(u32, Rc<OpenUnit<'a>>)>,
    /// The unit that was last referred to from another one, and where it is.
    foreign: Option<(Place, Rc<Unit<'a>>)>,
}

/// A unit that is being read.
struct OpenUnit<'a> {
    /// What the addresses were found in; the half with the lines.
    unit: Unit<'a>,
    /// The half with the functions, for split DWARF.
    split: Option<(Place, Dwarf<'a>, Unit<'a>)>,
}

impl<'a> OpenUnit<'a> {
    /// The half with the lines.
    fn lines<'u>(&'u self, session: &'u Session<'a>) -> UnitRef<'u, Reader<'a>> {
        UnitRef::new(&session.main, &self.unit)
    }

    /// The half with the functions.
    fn functions<'u>(&'u self, session: &'u Session<'a>) -> (Place, UnitRef<'u, Reader<'a>>) {
        match &self.split {
            Some((place, dwarf, unit)) => (*place, UnitRef::new(dwarf, unit)),
            None => (Place::Main, self.lines(session)),
        }
    }
}

impl<'a> Session<'a> {
    /// Looks into `file`, which shares entries with `shared` and may have units in `split`.
    pub(super) fn new(file: &'a Elf, shared: Option<&'a Elf>, split: &'a SplitFiles) -> Self {
        let mut main = sections(file);
        if let Some(shared) = shared {
            main.set_sup(sections(shared));
        }
        let package = split.package.as_ref().and_then(|package| {
            let section = |id: gimli::SectionId| -> Result<Reader<'_>, gimli::Error> {
                Ok(reader(id.dwo_name().and_then(|name| package.section(name))))
            };
            gimli::DwarfPackage::load(section, reader(None)).ok()
        });
        Self {
            main,
            split,
            package,
            abbreviations: FxHashMap::default(),
            shared_units: None,
            open: None,
            foreign: None,
        }
    }

    /// A unit of a file, with its abbreviations from the cache.
    fn unit(&mut self, place: Place, offset: usize) -> Option<Unit<'a>> {
        let dwarf = match place {
            Place::Main => &self.main,
            Place::Shared => self.main.sup()?,
            Place::Split(_) => return None,
        };
        let header = dwarf.debug_info.header_from_offset(DebugInfoOffset(offset)).ok()?;
        let key = (place, header.debug_abbrev_offset().0);
        let abbreviations = if let Some(known) = self.abbreviations.get(&key) {
            Arc::clone(known)
        } else {
            let parsed = dwarf.abbreviations(&header).ok()?;
            if self.abbreviations.len() >= MAX_ABBREVIATIONS {
                self.abbreviations.clear();
            }
            self.abbreviations.insert(key, Arc::clone(&parsed));
            parsed
        };
        gimli::Unit::new_with_abbreviations(dwarf, header, abbreviations).ok()
    }

    /// Opens a unit, both halves of it.
    fn open(&mut self, units: &Units, index: u32) -> Result<Option<Rc<OpenUnit<'a>>>, SplitUnit> {
        if let Some((open, unit)) = &self.open
            && *open == index
        {
            return Ok(Some(Rc::clone(unit)));
        }
        let Some(unit) = units.offset(index).and_then(|offset| self.unit(Place::Main, offset)) else {
            return Ok(None);
        };
        let split = match unit.dwo_id {
            Some(id) => self.other_half(&unit, id)?,
            None => None,
        };
        let open = Rc::new(OpenUnit { unit, split });
        self.open = Some((index, Rc::clone(&open)));
        Ok(Some(open))
    }

    fn other_half(
        &self,
        skeleton: &Unit<'a>,
        id: gimli::DwoId,
    ) -> Result<Option<(Place, Dwarf<'a>, Unit<'a>)>, SplitUnit> {
        let in_package = self.package.as_ref().and_then(|package| package.find_cu(id, &self.main).ok().flatten());
        let (place, dwarf) = if let Some(dwarf) = in_package {
            // Units of a package have offsets of their own; the low half of the id tells them apart.
            #[expect(clippy::cast_possible_truncation, reason = "any 31 bits of a hash will do")]
            let place = Place::Split(id.0 as u32 | 1 << 31);
            (place, dwarf)
        } else {
            let index = match self.split.by_id.get(&id.0) {
                Some(Some(index)) => *index,
                Some(None) => return Ok(None),
                None => return Err(self.needed(skeleton, id)),
            };
            let Some(file) = self.split.files.get(index as usize) else { return Ok(None) };
            let mut dwarf = split_sections(file);
            dwarf.make_dwo(&self.main);
            (Place::Split(index), dwarf)
        };
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let Ok(mut unit) = dwarf.unit(header) else { continue };
            if unit.dwo_id == Some(id) {
                unit.copy_relocated_attributes(skeleton);
                return Ok(Some((place, dwarf, unit)));
            }
        }
        Ok(None)
    }

    fn needed(&self, skeleton: &Unit<'a>, id: gimli::DwoId) -> SplitUnit {
        let path = skeleton.dwo_name().ok().flatten().and_then(|name| self.main.attr_string(skeleton, name).ok());
        let bytes = |text: Option<Reader<'a>>| text.map(|text| text.slice().to_vec()).unwrap_or_default();
        SplitUnit { id: id.0, path: bytes(path), folder: bytes(skeleton.comp_dir) }
    }
}

impl Index {
    /// Finds the units of a file; `None` when it has no DWARF.
    pub(super) fn new(file: &Elf) -> Option<Self> {
        if !file.has_section(".debug_info") {
            return None;
        }
        let has_code_at_zero = file.has_code_at_zero();
        let units = Units::new(&sections(file), has_code_at_zero);
        let mut parsed = Vec::new();
        parsed.resize_with(units.len(), || None);
        Some(Self { units, parsed, named: FxHashMap::default(), texts: Texts::default(), has_code_at_zero })
    }

    /// About how many bytes it holds.
    pub(super) fn heap_size(&self) -> usize {
        let parsed: usize =
            self.parsed.iter().flatten().map(|parsed| parsed.functions.heap_size() + parsed.lines.heap_size()).sum();
        parsed + self.units.heap_size() + self.named.len() * 64 + self.texts.0.len() * 96
    }

    /// The frames at an address.
    pub(super) fn frames(
        &mut self,
        session: &mut Session<'_>,
        symbols: &mut SymbolSource<'_>,
        address: Svma,
    ) -> Answer {
        let mut candidates = [0; 4];
        let mut count = 0;
        for unit in self.units.find(address.0).take(candidates.len()) {
            candidates[count] = unit;
            count += 1;
        }
        let mut best = Vec::new();
        for &unit in &candidates[..count] {
            match self.frames_of(session, symbols, unit, address.0) {
                Err(needs) => return Answer::Needs(needs),
                // Ranges of units may be too wide; one that knows the function is right.
                Ok(frames) if frames.last().is_some_and(|frame| !frame.name.is_empty()) => {
                    return Answer::Frames(frames);
                }
                Ok(frames) if best.is_empty() => best = frames,
                Ok(_) => {}
            }
        }
        Answer::Frames(best)
    }

    fn frames_of(
        &mut self,
        session: &mut Session<'_>,
        symbols: &mut SymbolSource<'_>,
        unit: u32,
        address: u64,
    ) -> Result<Vec<Frame>, SplitUnit> {
        let row = unit as usize;
        if self.parsed[row].is_none() {
            let Some(open) = session.open(&self.units, unit)? else { return Ok(Vec::new()) };
            let (place, half) = open.functions(session);
            let functions = Functions::parse(place, half, self.has_code_at_zero);
            let lines = Lines::parse(open.lines(session), self.has_code_at_zero);
            self.parsed[row] = Some(Box::new(Parsed { functions, lines }));
        }
        let Some(mut parsed) = self.parsed[row].take() else { return Ok(Vec::new()) };
        let frames = self.assemble(session, symbols, unit, &mut parsed, address);
        self.parsed[row] = Some(parsed);
        frames
    }

    fn assemble(
        &mut self,
        session: &mut Session<'_>,
        symbols: &mut SymbolSource<'_>,
        unit: u32,
        parsed: &mut Parsed,
        address: u64,
    ) -> Result<Vec<Frame>, SplitUnit> {
        let position = parsed.lines.find(address);
        let Some(function) = parsed.functions.find(address) else {
            let Some(position) = position else { return Ok(Vec::new()) };
            let file = self.file(session, unit, &mut parsed.lines, position.file)?;
            let empty = self.texts.keep("");
            return Ok(vec![Frame { name: empty, file, ..position.frame() }]);
        };
        if !parsed.functions.has_inlines(function) {
            let Some(open) = session.open(&self.units, unit)? else { return Ok(Vec::new()) };
            let (place, half) = open.functions(session);
            parsed.functions.parse_inlines(function, place, half);
        }
        let mut frames = Vec::with_capacity(4);
        let mut position = position.unwrap_or_default();
        let mut chain = [0; functions::MAX_DEPTH];
        let depth = parsed.functions.inlined(function, address, &mut chain);
        for &call in chain[..depth].iter().rev() {
            let (key, call_site) = parsed.functions.call(function, call);
            frames.push(self.frame(session, unit, parsed, key, position, &mut |_| None)?);
            position = call_site;
        }
        let key = parsed.functions.key(function);
        frames.push(self.frame(session, unit, parsed, key, position, &mut |_| symbols(address))?);
        Ok(frames)
    }

    /// The frame of a function at a position; what its entry doesn't name may have a symbol.
    fn frame(
        &mut self,
        session: &mut Session<'_>,
        unit: u32,
        parsed: &mut Parsed,
        key: NameKey,
        position: lines::Position,
        symbols: &mut SymbolSource<'_>,
    ) -> Result<Frame, SplitUnit> {
        let file = self.file(session, unit, &mut parsed.lines, position.file)?;
        let finish = |named: &Named, file: Arc<str>| {
            // Equal texts are one.
            let declared = named.path.as_ref().filter(|path| Arc::ptr_eq(path, &file));
            let start_line = declared.map_or(LineNo::UNKNOWN, |_| LineNo(named.line));
            Frame { name: Arc::clone(&named.name), file, start_line, ..position.frame() }
        };
        if let Some(named) = self.named.get(&key) {
            return Ok(finish(named, file));
        }
        let (mut named, declared_in) = self.name(session, unit, key)?;
        if let Some(declared_in) = declared_in {
            let path = self.file(session, unit, &mut parsed.lines, declared_in)?;
            named.path = Some(path).filter(|path| !path.is_empty());
        }
        if !named.is_linkage
            && let Some(symbol) = symbols(0)
            && is_full_name_of(&symbol, &named.name)
        {
            named.name = symbol;
        }
        let frame = finish(&named, file);
        self.named.insert(key, named);
        Ok(frame)
    }

    /// The path of a file of a unit's line table.
    fn file(
        &mut self,
        session: &mut Session<'_>,
        unit: u32,
        lines: &mut Lines,
        file: u32,
    ) -> Result<Arc<str>, SplitUnit> {
        if let Some(known) = lines.known_file(file) {
            return Ok(Arc::clone(known));
        }
        let path = match session.open(&self.units, unit)? {
            Some(open) => Lines::render_file(open.lines(session), file),
            None => String::new(),
        };
        let path = self.texts.keep(&path);
        lines.remember_file(file, Arc::clone(&path));
        Ok(path)
    }
}
