//! `.gopclntab`: functions, files, lines and inlined calls of Go programs, which keep them for
//! their own stack traces even when stripped of everything else. Layouts of Go 1.16 and later.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::elf::Elf;
use super::symbols::Symbols;
use super::{Frame, Svma};
use crate::profile::LineNo;

/// Inlined calls that are followed; the compiler stops far earlier.
const MAX_DEPTH: usize = 64;
/// Longest name or path.
const MAX_TEXT: usize = 4096;
const PCDATA_INLINE_INDEX: usize = 2;
const FUNCDATA_INLINE_TREE: usize = 3;
/// Where the runtime's description of a module has the base of function data, in words.
const GOFUNC_WORD: usize = 40;
/// And the start of the code.
const TEXT_WORD: usize = 22;

/// The table of a program. Holds places in it, not its bytes.
#[derive(Debug)]
pub(super) struct GoTable {
    layout: Layout,
    quantum: u64,
    functions: usize,
    /// Of the code.
    text: u64,
    /// Of data that functions refer to; `None` when it can't be found: then inlined calls count
    /// for the function they were inlined into.
    data: Option<u64>,
    names: usize,
    units: usize,
    files: usize,
    values: usize,
    /// Of the functions and of the index of them.
    base: usize,
    texts: FxHashMap<(usize, bool), Arc<str>>,
}

/// What differs between versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// 1.16: addresses are whole.
    V116,
    /// 1.18: addresses count from the start of the code.
    V118,
    /// 1.20: functions say where they start, inlined calls are smaller.
    V120,
}

/// A function of the table.
struct Function<'a> {
    /// From its record on.
    record: &'a [u8],
    entry: u64,
}

impl Function<'_> {
    /// The n-th 32-bit field after the entry address.
    fn field(&self, layout: Layout, index: usize) -> Option<u32> {
        let entry_size = if layout == Layout::V116 { 8 } else { 4 };
        number32(self.record, entry_size + index * 4)
    }
}

fn number32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn number64(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

fn size(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(number64(bytes, at)?).ok()
}

impl GoTable {
    /// Finds the table; `None` when this is no Go program, or one of another layout.
    pub(super) fn new(file: &Elf) -> Option<Self> {
        let table = file.section(".gopclntab")?;
        let layout = match number32(table, 0)? {
            0xffff_fffa => Layout::V116,
            0xffff_fff0 => Layout::V118,
            0xffff_fff1 => Layout::V120,
            _ => return None,
        };
        // Programs for 32-bit machines have other sizes everywhere.
        if *table.get(7)? != 8 {
            return None;
        }
        let first = if layout == Layout::V116 { 24 } else { 32 };
        let module = module(file);
        let own_text = if layout == Layout::V116 { 0 } else { number64(table, 24)? };
        let text = match (layout, own_text) {
            (Layout::V116, _) => 0,
            // Since 1.26 it isn't there any more.
            (_, 0) => module
                .and_then(|module| number64(module, TEXT_WORD * 8))
                .filter(|&text| text != 0)
                .or_else(|| file.section_address(".text"))?,
            (_, text) => text,
        };
        Some(Self {
            layout,
            quantum: u64::from(*table.get(6)?),
            functions: size(table, 8)?.min(table.len() / 8),
            text,
            data: module.and_then(|module| number64(module, GOFUNC_WORD * 8)).filter(|&data| data != 0),
            names: size(table, first)?,
            units: size(table, first + 8)?,
            files: size(table, first + 16)?,
            values: size(table, first + 24)?,
            base: size(table, first + 32)?,
            texts: FxHashMap::default(),
        })
    }

    /// Where the data of functions is may also be told by a symbol.
    pub(super) fn use_symbols(&mut self, symbols: &Symbols) {
        self.data = self.data.or_else(|| symbols.address_of(b"go:func.*"));
    }

    pub(super) fn heap_size(&self) -> usize {
        self.texts.len() * 128
    }

    /// The frames at an address, innermost first; none when the table doesn't have it.
    pub(super) fn frames(&mut self, file: &Elf, address: Svma) -> Vec<Frame> {
        file.section(".gopclntab").and_then(|table| self.look_up(table, file, address.0)).unwrap_or_default()
    }

    fn look_up(&mut self, table: &[u8], file: &Elf, address: u64) -> Option<Vec<Frame>> {
        let function = self.function(table, address)?;
        let tree = self.inline_tree(file, &function);
        let mut frames = Vec::new();
        let mut at = address;
        let name = function.field(self.layout, 0)?;
        let start_line = if self.layout == Layout::V120 { function.field(self.layout, 8)? } else { 0 };
        let inline_index = self.inline_field(&function);
        for _ in 0..MAX_DEPTH {
            let call = tree.and_then(|tree| {
                let index = self.value(table, inline_index?, function.entry, at)?;
                let index = usize::try_from(index).ok()?;
                tree.get(index.checked_mul(16)?..)?.get(..16)
            });
            let (name, start) = match call {
                Some(call) => (number32(call, 4)?, number32(call, 12)?),
                None => (name, start_line),
            };
            frames.push(self.frame(table, &function, at, name, start)?);
            let Some(call) = call else { return Some(frames) };
            at = function.entry.checked_add(u64::from(number32(call, 8)?))?;
        }
        Some(frames)
    }

    /// The function that an address is in.
    fn function<'a>(&self, table: &'a [u8], address: u64) -> Option<Function<'a>> {
        let base = table.get(self.base..)?;
        let (width, relative) =
            if self.layout == Layout::V116 { (8, address) } else { (4, address.checked_sub(self.text)?) };
        let field = |index: usize| {
            if width == 8 { number64(base, index * 8) } else { number32(base, index * 4).map(u64::from) }
        };
        // The index is pairs of (entry, record), then the end of the code.
        let (mut low, mut high) = (0, self.functions);
        if relative >= field(self.functions.checked_mul(2)?)? {
            return None;
        }
        while low < high {
            let middle = usize::midpoint(low, high);
            if field(middle * 2)? <= relative { low = middle + 1 } else { high = middle }
        }
        let index = low.checked_sub(1)?;
        let entry = field(index * 2)?;
        let entry = if width == 8 { entry } else { entry.checked_add(self.text)? };
        let record = base.get(usize::try_from(field(index * 2 + 1)?).ok()?..)?;
        Some(Function { record, entry })
    }

    fn frame(&mut self, table: &[u8], function: &Function<'_>, at: u64, name: u32, start: u32) -> Option<Frame> {
        let line = self.value(table, function.field(self.layout, 5)?, function.entry, at);
        let line = line.and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
        let file = self.value(table, function.field(self.layout, 4)?, function.entry, at);
        let file = file.and_then(|file| {
            let unit = function.field(self.layout, 7)?;
            let index = usize::try_from(u64::from(unit).checked_add(u64::try_from(file).ok()?)?).ok()?;
            let place = number32(table, self.units.checked_add(index.checked_mul(4)?)?)?;
            self.text(table, self.files.checked_add(usize::try_from(place).ok()?)?, true)
        });
        let is_line = |line: u32| line <= i32::MAX.unsigned_abs();
        Some(Frame {
            name: self.text(table, self.names.checked_add(name as usize)?, false)?,
            line: LineNo(if file.is_some() && is_line(line) { line } else { 0 }),
            file: file.unwrap_or_else(|| Frame::default().file),
            column: 0,
            start_line: LineNo(if is_line(start) { start } else { 0 }),
        })
    }

    /// The offset of the table that says which inlined call an address is in.
    fn inline_field(&self, function: &Function<'_>) -> Option<u32> {
        let count = function.field(self.layout, 6)? as usize;
        (count > PCDATA_INLINE_INDEX).then_some(())?;
        function.field(self.layout, self.fixed_fields() + PCDATA_INLINE_INDEX).filter(|&offset| offset != 0)
    }

    /// The inlined calls of a function. Before 1.20 they are of another shape, and not read.
    fn inline_tree<'a>(&self, file: &'a Elf, function: &Function<'_>) -> Option<&'a [u8]> {
        let data = self.data?;
        if self.layout != Layout::V120 {
            return None;
        }
        let values = function.field(self.layout, 6)? as usize;
        // The last byte of the fixed part.
        let count = function.field(self.layout, self.fixed_fields() - 1)?.to_le_bytes()[3];
        (usize::from(count) > FUNCDATA_INLINE_TREE).then_some(())?;
        let field = self.fixed_fields().checked_add(values)?.checked_add(FUNCDATA_INLINE_TREE)?;
        let offset = function.field(self.layout, field).filter(|&offset| offset != u32::MAX)?;
        file.bytes_at(data.checked_add(u64::from(offset))?)
    }

    /// 32-bit fields of a record between its entry and its lists.
    fn fixed_fields(&self) -> usize {
        if self.layout == Layout::V120 { 10 } else { 9 }
    }

    /// Looks up a table of values by address: pairs of what is added to the value, and how far it
    /// holds.
    fn value(&self, table: &[u8], offset: u32, entry: u64, address: u64) -> Option<i64> {
        let mut bytes = table.get(self.values.checked_add(offset as usize)?..)?.iter().copied();
        let mut next = || {
            let (mut number, mut shift) = (0_u32, 0);
            loop {
                let byte = bytes.next()?;
                number |= u32::from(byte & 0x7f).checked_shl(shift)?;
                if byte & 0x80 == 0 {
                    return Some(number);
                }
                shift += 7;
            }
        };
        let (mut value, mut end) = (-1_i64, entry);
        loop {
            let change = next()?;
            if change == 0 && end != entry {
                return None;
            }
            value += i64::from(change >> 1) ^ -i64::from(change & 1);
            end = end.checked_add(u64::from(next()?).checked_mul(self.quantum)?)?;
            if address < end {
                return Some(value);
            }
        }
    }

    fn text(&mut self, table: &[u8], at: usize, is_file: bool) -> Option<Arc<str>> {
        if let Some(known) = self.texts.get(&(at, is_file)) {
            return Some(Arc::clone(known));
        }
        let bytes = table.get(at..)?;
        let end = bytes.iter().take(MAX_TEXT).position(|&byte| byte == 0)?;
        let text: Arc<str> = String::from_utf8_lossy(&bytes[..end]).into();
        self.texts.insert((at, is_file), Arc::clone(&text));
        Some(text)
    }
}

/// The runtime's description of the program, which starts with the address of the table.
fn module(file: &Elf) -> Option<&[u8]> {
    let address = file.section_address(".gopclntab")?;
    if let Some(module) = file.section(".go.module").filter(|module| number64(module, 0) == Some(address)) {
        return Some(module);
    }
    // Before 1.26 it is somewhere in the data. Its next words are the table's own parts.
    [".noptrdata", ".data"].into_iter().filter_map(|name| file.section(name)).find_map(|data| {
        (0..data.len() / 8).map(|word| &data[word * 8..]).find(|module| {
            number64(module, 0) == Some(address)
                && number64(module, 8).is_some_and(|names| names > address)
                && number64(module, 16).is_some()
                && number64(module, 16) == number64(module, 24)
        })
    })
}
