//! What DWARF says about an address: the functions that are inlined there, and their lines.
//!
//! Reading it is the work of the crate addr2line. Ours is what that crate leaves to others:
//!
//! * which unit an address is in ([`units`]), and how much of the file is read for it ([`Scope`]):
//!   as a rule that unit alone, when the first of its addresses is asked for, so that damage stays
//!   where it is;
//! * what a file may make us do ([`limits`]);
//! * an answer where a unit is damaged: its lines, and the name of the symbol;
//! * split units, and where to look for them;
//! * which line an address is on, for most units, as that crate takes too long to find out ([`lines`]);
//! * the line that a function is declared on ([`declared`]).
//!
//! Parsed units borrow from the files that they were read from; both are kept together in
//! [`Index`].

mod declared;
mod limits;
mod lines;
mod units;

use std::cell::OnceCell;
use std::sync::Arc;

use addr2line::{LookupContinuation, LookupResult, SplitDwarfLoad};
use gimli::{DebugInfoOffset, DwarfFileType, Section, SectionId, UnitOffset, UnitRef};
use rustc_hash::{FxHashMap, FxHashSet};
use typed_arena::Arena;

use declared::{Declared, Told};
use limits::{Limits, Reader};
use lines::{Lines, Place};
use units::Units;

use super::elf::Elf;
use super::{Frame, Svma, line_and_column};
use crate::demangle::demangle;
use crate::profile::LineNo;

type Dwarf<'a> = gimli::Dwarf<Reader<'a>>;
type Context<'a> = addr2line::Context<Reader<'a>>;

/// Abbreviations kept for units that share them.
const MAX_ABBREVIATIONS: usize = 256;
/// Units that are asked about one address. Their ranges may be too wide, so several may claim it.
const MAX_CLAIMS: usize = 4;
/// About what is held per byte that was read of a unit.
const GROWTH: usize = 3;

/// The DWARF of a module: its files, and what was parsed of them so far.
pub(super) struct Index(FilesAndParsed);

self_cell::self_cell!(
    struct FilesAndParsed {
        owner: Files,
        #[not_covariant]
        dependent: Parsed,
    }
);

/// The files of a module that have DWARF.
struct Files {
    main: Arc<Elf>,
    /// Holds entries that several programs have in common.
    shared: Option<Elf>,
    /// Holds split units of this program.
    package: Option<Elf>,
    /// One split unit each, as they were found.
    split: Arena<Elf>,
    limits: Limits,
}

/// What was parsed.
struct Parsed<'a> {
    main: Dwarf<'a>,
    units: Units,
    /// By unit, once it was asked for.
    scopes: Vec<Option<Scope>>,
    /// `None` when nothing can be read.
    contexts: FxHashMap<Scope, Option<Box<Context<'a>>>>,
    /// By unit, of those whose context has no lines.
    lines: FxHashMap<u32, Lines<'a>>,
    package: Option<gimli::DwarfPackage<Reader<'a>>>,
    abbreviations: FxHashMap<usize, Arc<gimli::Abbreviations>>,
    known: FxHashMap<Function, Known<'a>>,
    texts: Texts,
    /// Bytes held by what was parsed, about.
    held: usize,
}

/// What has to be read to know all about the functions of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Scope {
    /// The unit.
    Unit(u32),
    /// Units with the same table of abbreviations: optimisers that look at a whole program write
    /// all its units at once, and let them refer to each other.
    Relatives(usize),
    /// All units, and the file that several programs share.
    All,
}

impl Scope {
    /// The unit, if there is one only.
    fn alone(self) -> Option<u32> {
        match self {
            Self::Unit(unit) => Some(unit),
            Self::Relatives(_) | Self::All => None,
        }
    }
}

/// A function, as far as its name and where it is declared are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Function {
    /// By its name, as the linker knows it: where that is in memory.
    Named(usize),
    /// By its unit, and its entry in that.
    Entry(u32, usize),
}

/// What is known about a function apart from its code.
#[derive(Clone)]
struct Known<'a> {
    /// As the linker knows it, where that is said; else as the source has it; empty: nameless.
    name: Arc<str>,
    declared: Option<Declared<'a>>,
}

/// Texts that occur again and again, each kept once.
#[derive(Default)]
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

/// Who is asked for what DWARF doesn't have.
pub(super) struct Helpers<'h> {
    /// The name of the symbol at an address.
    pub(super) symbol: &'h mut dyn FnMut(u64) -> Option<Arc<str>>,
    /// The file of a split unit.
    pub(super) split: &'h mut dyn FnMut(&SplitUnit) -> Option<Elf>,
}

/// Where the other half of a unit is.
pub(super) struct SplitUnit {
    /// What both halves have in common.
    pub(super) id: u64,
    /// The file it was written to, when it was compiled.
    pub(super) path: Vec<u8>,
    /// The folder that the path is relative to.
    pub(super) folder: Vec<u8>,
}

/// Whether a file holds the split unit of this id.
pub(super) fn holds_split_unit(file: &Elf, id: u64) -> bool {
    let limits = Limits::new(0);
    split_unit(&split_sections(file, &limits), id).is_some()
}

/// The bytes of the split unit of this id.
fn split_unit<'a>(dwarf: &Dwarf<'a>, id: u64) -> Option<Reader<'a>> {
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        if dwarf.unit(header).is_ok_and(|unit| unit.dwo_id.is_some_and(|found| found.0 == id)) {
            return unit_bytes(dwarf, header.debug_info_offset()?.0);
        }
    }
    None
}

/// The bytes of the unit at an offset.
fn unit_bytes<'a>(dwarf: &Dwarf<'a>, offset: usize) -> Option<Reader<'a>> {
    let header = dwarf.debug_info.header_from_offset(DebugInfoOffset(offset)).ok()?;
    let end = offset.checked_add(header.length_including_self())?;
    dwarf.debug_info.reader().part(offset..end)
}

fn sections<'a>(file: &'a Elf, limits: &'a Limits) -> Dwarf<'a> {
    load(|id| Some(id.name()), file, limits)
}

fn split_sections<'a>(file: &'a Elf, limits: &'a Limits) -> Dwarf<'a> {
    load(SectionId::dwo_name, file, limits)
}

fn load<'a>(name: impl Fn(SectionId) -> Option<&'static str>, file: &'a Elf, limits: &'a Limits) -> Dwarf<'a> {
    let section = |id| -> Result<Reader<'a>, gimli::Error> { Ok(reader(name(id), id, file, limits)) };
    // The closure never fails.
    gimli::Dwarf::load(section).unwrap_or_else(|_| sections(file, limits))
}

fn reader<'a>(name: Option<&str>, id: SectionId, file: &'a Elf, limits: &'a Limits) -> Reader<'a> {
    Reader::new(name.and_then(|name| file.section(name)).unwrap_or_default(), id, limits)
}

/// Bytes of a file that lists of ranges may be in.
fn range_bytes(file: &Elf) -> usize {
    let lists = [".debug_ranges", ".debug_rnglists", ".debug_rnglists.dwo"];
    lists.iter().filter_map(|name| file.section(name)).map(<[u8]>::len).sum()
}

/// Whether a symbol says more about a function than its plain name, and doesn't contradict it.
/// Compilers that are asked for line tables only leave out in which module or class it is. For C
/// the plain name is better: symbols of clones have suffixes. And the linker may have merged the
/// function with another one, whose symbol it then is.
fn is_full_name_of(symbol: &str, plain: &str) -> bool {
    let word = plain.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
    plain.is_empty() || is_mangled(symbol.as_bytes()) && symbol.contains(word)
}

/// The name of what Rust makes of `async` code. Linkers know it as a closure like any other, and the source's own
/// name, `{async_fn#0}`, is without what it is in.
fn coroutine(linkage: &str, plain: &[u8]) -> Option<String> {
    let plain = std::str::from_utf8(plain).ok().filter(|plain| plain.starts_with("{async_"))?;
    let name = is_mangled(linkage.as_bytes()).then(|| demangle(linkage))?;
    let (around, inner) = name.rsplit_once("::{")?;
    inner.ends_with('}').then(|| format!("{around}::{plain}"))
}

fn is_mangled(name: &[u8]) -> bool {
    name.starts_with(b"_Z") || name.starts_with(b"_R")
}

impl Index {
    /// Finds the units of a file; `None` when it has no DWARF. `shared` has entries that the file
    /// refers to, `package` its split units.
    pub(super) fn new(main: Arc<Elf>, shared: Option<Elf>, package: Option<Elf>) -> Option<Self> {
        if !main.has_section(".debug_info") {
            return None;
        }
        let lists = [Some(&*main), shared.as_ref(), package.as_ref()].into_iter().flatten().map(range_bytes).sum();
        let files = Files { main, shared, package, split: Arena::new(), limits: Limits::new(lists) };
        Some(Self(FilesAndParsed::new(files, |files| Parsed::new(files))))
    }

    /// About how many bytes it holds.
    pub(super) fn heap_size(&self) -> usize {
        self.0.with_dependent(|files, parsed| {
            let others = [files.shared.as_ref(), files.package.as_ref()].into_iter().flatten().map(Elf::heap_size);
            parsed.held + parsed.units.heap_size() + parsed.texts.0.len() * 96 + others.sum::<usize>()
        })
    }

    /// The frames at an address, innermost first; none when nothing is known.
    pub(super) fn frames(&mut self, address: Svma, helpers: &mut Helpers<'_>) -> Vec<Frame> {
        // The last address of all has none after it, which addr2line relies on.
        if address.0 == u64::MAX {
            return Vec::new();
        }
        self.0.with_dependent_mut(|files, parsed| parsed.frames(files, address.0, helpers))
    }
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").finish_non_exhaustive()
    }
}

impl<'a> Parsed<'a> {
    fn new(files: &'a Files) -> Self {
        files.limits.begin();
        let mut main = sections(&files.main, &files.limits);
        if let Some(shared) = &files.shared {
            main.set_sup(sections(shared, &files.limits));
        }
        let package = files.package.as_ref().and_then(|package| {
            let section = |id: SectionId| -> Result<Reader<'a>, gimli::Error> {
                Ok(reader(id.dwo_name(), id, package, &files.limits))
            };
            gimli::DwarfPackage::load(section, Reader::new(&[], SectionId::DebugInfo, &files.limits)).ok()
        });
        let units = Units::new(&main, files.main.has_code_at_zero(), |unit| ranges_with_lines(files, &main, unit));
        Self {
            main,
            scopes: vec![None; units.len()],
            units,
            contexts: FxHashMap::default(),
            lines: FxHashMap::default(),
            package,
            abbreviations: FxHashMap::default(),
            known: FxHashMap::default(),
            texts: Texts::default(),
            held: 0,
        }
    }

    fn frames(&mut self, files: &'a Files, address: u64, helpers: &mut Helpers<'_>) -> Vec<Frame> {
        files.limits.begin();
        let mut claims = [0; MAX_CLAIMS];
        let mut count = 0;
        for unit in self.units.find(address).take(MAX_CLAIMS) {
            claims[count] = unit;
            count += 1;
        }
        let mut best = Vec::new();
        for &unit in &claims[..count] {
            let frames = self.frames_of(files, unit, address, helpers);
            if frames.last().is_some_and(|frame| !frame.name.is_empty()) {
                return frames;
            }
            if best.is_empty() {
                best = frames;
            }
        }
        best
    }

    /// The frames that a unit has for an address.
    fn frames_of(&mut self, files: &'a Files, unit: u32, address: u64, helpers: &mut Helpers<'_>) -> Vec<Frame> {
        let scope = self.scope(files, unit);
        self.read(files, scope);
        let Self { main, units, contexts, lines, package, known, texts, .. } = self;
        let Some(Some(context)) = contexts.get(&scope) else { return Vec::new() };
        let source = Source { context, main, package: package.as_ref(), files };
        let found = match source.frames(address, helpers) {
            Ok(found) => found,
            // What an entry refers to is in another unit.
            Err(gimli::Error::NoEntryAtGivenOffset(_)) if scope != Scope::All => {
                self.scopes[unit as usize] = Some(match scope {
                    Scope::Unit(_) => self.relatives(unit),
                    _ => Scope::All,
                });
                return self.frames_of(files, unit, address, helpers);
            }
            Err(_) => {
                let place = match lines.get_mut(&unit) {
                    Some(lines) => lines.find(main, address, texts),
                    None => source.line(address).map(|place| Place::of(&place, texts)),
                };
                return place.map(Frame::from).into_iter().collect();
            }
        };
        // The innermost function's place; the others' are where calls are.
        let mut place = lines.get_mut(&unit).and_then(|lines| lines.find(main, address, texts));
        if found.is_empty() {
            return place.map(Frame::from).into_iter().collect();
        }
        let unit_of = UnitOf { source, address, units, known: OnceCell::new(), alone: scope.alone() };
        let depth = found.len();
        let mut frames = Vec::with_capacity(depth);
        for function in found {
            let place = place.take().or_else(|| Some(Place::of(function.location.as_ref()?, texts)));
            let mut answer = place.map(Frame::from).unwrap_or_default();
            let name = name_of(&function);
            let is_linkage = is_mangled(name);
            let key = match function.dw_die_offset {
                _ if is_linkage => Some(Function::Named(name.as_ptr().addr())),
                Some(entry) => unit_of.row(helpers).map(|unit| Function::Entry(unit, entry.0)),
                None => None,
            };
            let about = if let Some(known) = key.and_then(|key| known.get(&key)) {
                known.clone()
            } else {
                let told = function.dw_die_offset.and_then(|entry| unit_of.told(entry, helpers)).unwrap_or_default();
                let mut about = Known { name: texts.keep(&String::from_utf8_lossy(name)), declared: told.declared };
                let is_outermost = frames.len() + 1 == depth;
                if is_outermost && !is_linkage {
                    let symbol = (helpers.symbol)(address).filter(|symbol| is_full_name_of(symbol, &about.name));
                    about.name = symbol.unwrap_or(about.name);
                }
                if let Some(name) = told.name.and_then(|name| coroutine(&about.name, name)) {
                    about.name = texts.keep(&name);
                }
                if let Some(key) = key {
                    known.insert(key, about.clone());
                }
                about
            };
            let declared = about.declared.filter(|declared| declared.is_in(&answer.file));
            answer.start_line = declared.map_or(LineNo::UNKNOWN, |declared| LineNo(declared.line));
            answer.name = about.name;
            frames.push(answer);
        }
        frames
    }

    /// What is read for a unit.
    fn scope(&mut self, files: &Files, unit: u32) -> Scope {
        if let Some(scope) = self.scopes[unit as usize] {
            return scope;
        }
        let scope = if files.shared.is_some() {
            Scope::All
        } else if self.abbreviations(unit).is_some_and(|(_, read)| refers_to_others(&read)) {
            self.relatives(unit)
        } else {
            Scope::Unit(unit)
        };
        self.scopes[unit as usize] = Some(scope);
        let bytes = self.units.offset(unit).and_then(|offset| unit_bytes(&self.main, offset));
        self.held += bytes.map_or(0, |bytes| bytes.bytes().len() * GROWTH);
        scope
    }

    fn relatives(&mut self, unit: u32) -> Scope {
        self.abbreviations(unit).map_or(Scope::All, |(offset, _)| Scope::Relatives(offset.0))
    }

    /// The abbreviations of a unit, and where they are.
    fn abbreviations(&mut self, unit: u32) -> Option<(gimli::DebugAbbrevOffset, Arc<gimli::Abbreviations>)> {
        let header = self.main.debug_info.header_from_offset(DebugInfoOffset(self.units.offset(unit)?)).ok()?;
        let offset = header.debug_abbrev_offset();
        if let Some(known) = self.abbreviations.get(&offset.0) {
            return Some((offset, Arc::clone(known)));
        }
        let read = self.main.abbreviations(&header).ok()?;
        if self.abbreviations.len() >= MAX_ABBREVIATIONS {
            self.abbreviations.clear();
        }
        self.abbreviations.insert(offset.0, Arc::clone(&read));
        Some((offset, read))
    }

    /// Makes the context of a scope, unless it is there.
    fn read(&mut self, files: &'a Files, scope: Scope) {
        if self.contexts.contains_key(&scope) {
            return;
        }
        let context = self.sections_of(files, scope).and_then(|dwarf| Context::from_dwarf(dwarf).ok());
        self.contexts.insert(scope, context.map(Box::new));
    }

    /// The sections of a file, with no more units than a scope has.
    fn sections_of(&mut self, files: &'a Files, scope: Scope) -> Option<Dwarf<'a>> {
        let mut dwarf = sections(&files.main, &files.limits);
        match scope {
            Scope::Unit(unit) => {
                let (offset, abbreviations) = self.abbreviations(unit)?;
                dwarf.abbreviations_cache.set::<Reader<'a>>(offset, abbreviations);
                let offset = self.units.offset(unit)?;
                dwarf.debug_info = unit_bytes(&self.main, offset)?.into();
                if let Some((lines, begin)) = Lines::read(&self.main, offset)
                    && let Some(head) = dwarf.debug_line.reader().without_program(begin)
                {
                    dwarf.debug_line = head.into();
                    self.held += lines.heap_size();
                    self.lines.insert(unit, lines);
                }
            }
            Scope::Relatives(offset) => {
                // Units whose abbreviations are not to be had are passed over.
                let offset = gimli::DebugAbbrevOffset(offset);
                let abbreviations = self.main.debug_abbrev.abbreviations(offset).ok()?;
                dwarf.abbreviations_cache.set::<Reader<'a>>(offset, Arc::new(abbreviations));
                dwarf.debug_abbrev = Reader::new(&[], SectionId::DebugAbbrev, &files.limits).into();
            }
            Scope::All => {
                if let Some(shared) = &files.shared {
                    dwarf.set_sup(sections(shared, &files.limits));
                }
                dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
                return Some(dwarf);
            }
        }
        // It says where units are among all of them; what they say themselves is enough.
        dwarf.debug_aranges = Reader::new(&[], SectionId::DebugAranges, &files.limits).into();
        Some(dwarf)
    }
}

/// Ranges of addresses that a unit has lines for.
fn ranges_with_lines<'a>(files: &'a Files, main: &Dwarf<'a>, offset: usize) -> Vec<(u64, u64)> {
    let context = unit_bytes(main, offset).and_then(|bytes| {
        let mut dwarf = sections(&files.main, &files.limits);
        dwarf.debug_info = bytes.into();
        dwarf.debug_aranges = Reader::new(&[], SectionId::DebugAranges, &files.limits).into();
        Context::from_dwarf(dwarf).ok()
    });
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    let Some(lines) = context.as_ref().and_then(|context| context.find_location_range(0, u64::MAX).ok()) else {
        return ranges;
    };
    for (begin, length, _) in lines {
        let end = begin.saturating_add(length);
        match ranges.last_mut() {
            Some(last) if last.1 == begin => last.1 = end,
            _ => ranges.push((begin, end)),
        }
    }
    ranges
}

/// Whether entries may refer to other units.
fn refers_to_others(abbreviations: &gimli::Abbreviations) -> bool {
    let mut all = (1..).map_while(|code| abbreviations.get(code));
    all.any(|entry| entry.attributes().iter().any(|attribute| attribute.form() == gimli::DW_FORM_ref_addr))
}

/// Where addresses are looked up.
#[derive(Clone, Copy)]
struct Source<'p, 'a> {
    context: &'p Context<'a>,
    main: &'p Dwarf<'a>,
    package: Option<&'p gimli::DwarfPackage<Reader<'a>>>,
    files: &'a Files,
}

impl<'p, 'a> Source<'p, 'a> {
    /// The functions at an address, innermost first.
    fn frames(
        self,
        address: u64,
        helpers: &mut Helpers<'_>,
    ) -> Result<Vec<addr2line::Frame<'p, Reader<'a>>>, gimli::Error> {
        let mut frames = self.with_split(self.context.find_frames(address), helpers)?;
        let mut found = Vec::with_capacity(4);
        while let Some(frame) = frames.next()? {
            found.push(frame);
        }
        Ok(found)
    }

    /// The unit that knows an address.
    fn unit(self, address: u64, helpers: &mut Helpers<'_>) -> Option<UnitRef<'p, Reader<'a>>> {
        self.with_split(self.context.find_dwarf_and_unit(address), helpers)
    }

    /// The place that the table of lines has for an address.
    fn line(self, address: u64) -> Option<addr2line::Location<'p>> {
        self.context.find_location(address).ok().flatten()
    }

    /// Goes on with a look-up that needs split units.
    fn with_split<L: LookupContinuation<Buf = Reader<'a>>>(
        self,
        mut result: LookupResult<L>,
        helpers: &mut Helpers<'_>,
    ) -> L::Output {
        loop {
            match result {
                LookupResult::Output(output) => return output,
                LookupResult::Load { load, continuation } => {
                    result = continuation.resume(self.split(&load, helpers).map(Arc::new));
                }
            }
        }
    }

    /// The other half of a unit.
    fn split(self, wanted: &SplitDwarfLoad<Reader<'a>>, helpers: &mut Helpers<'_>) -> Option<Dwarf<'a>> {
        let id = wanted.dwo_id;
        if let Some(found) = self.package.and_then(|package| package.find_cu(id, &wanted.parent).ok().flatten()) {
            return Some(found);
        }
        let bytes = |text: Option<Reader<'a>>| text.map(|text| text.bytes().to_vec()).unwrap_or_default();
        let unit = SplitUnit { id: id.0, path: bytes(wanted.path), folder: bytes(wanted.comp_dir) };
        let file = &*self.files.split.alloc((helpers.split)(&unit)?);
        self.files.limits.allow(range_bytes(file));
        let mut dwarf = split_sections(file, &self.files.limits);
        dwarf.make_dwo(&wanted.parent);
        // Of several units in the file this one is wanted.
        dwarf.debug_info = split_unit(&dwarf, id.0)?.into();
        Some(dwarf)
    }
}

/// The unit of an address, found out when somebody wants to know.
struct UnitOf<'p, 'a> {
    source: Source<'p, 'a>,
    address: u64,
    units: &'p Units,
    known: OnceCell<Option<UnitRef<'p, Reader<'a>>>>,
    /// The only one there is.
    alone: Option<u32>,
}

impl<'a> UnitOf<'_, 'a> {
    fn entries(&self, helpers: &mut Helpers<'_>) -> Option<UnitRef<'_, Reader<'a>>> {
        *self.known.get_or_init(|| self.source.unit(self.address, helpers))
    }

    /// Which one of the file it is.
    fn row(&self, helpers: &mut Helpers<'_>) -> Option<u32> {
        self.alone.or_else(|| self.units.of(self.entries(helpers)?))
    }

    /// What the source says of a function.
    fn told(&self, entry: UnitOffset, helpers: &mut Helpers<'_>) -> Option<Told<'a>> {
        let (main, unit) = (self.source.main, self.entries(helpers)?);
        if unit.dwarf.file_type != DwarfFileType::Dwo {
            return Told::read(unit, unit, entry);
        }
        // Names of files are in the half that is in the file itself.
        let offset = self.alone.and_then(|row| self.units.offset(row))?;
        let lines = main.unit(main.debug_info.header_from_offset(DebugInfoOffset(offset)).ok()?).ok()?;
        Told::read(unit, UnitRef::new(main, &lines), entry)
    }
}

/// The name of a function; empty when it has none.
fn name_of<'a>(function: &addr2line::Frame<'_, Reader<'a>>) -> &'a [u8] {
    function.function.as_ref().map_or(&[], |function| function.name.bytes())
}

impl Place {
    /// A place that addr2line found.
    fn of(place: &addr2line::Location<'_>, texts: &mut Texts) -> Self {
        let (line, column) = line_and_column(place.line.unwrap_or(0).into(), place.column.unwrap_or(0).into());
        Self { file: place.file.map(|file| texts.keep(file)), line, column }
    }
}

impl From<Place> for Frame {
    /// A frame of which no more is known than where it is.
    fn from(Place { file, line, column }: Place) -> Self {
        let frame = Self { line: LineNo(line), column, ..Self::default() };
        Self { file: file.unwrap_or_else(|| Arc::clone(&frame.file)), ..frame }
    }
}
