//! `CPython`, from its structures to files and lines.
//!
//! The kernel program walks an interpreter's frames and sends pointers. What they point at is read here, once per
//! code object, while the process is there. Layouts are those of the public headers of each version; from
//! 3.13 on the interpreter describes itself (`_Py_DebugOffsets`).
//!
//! What is not here: free-threaded builds, and versions before 3.11, whose frames are objects on the heap.

use rustc_hash::FxHashMap;

use crate::protocol::{Code, InterpreterFrame};
use crate::sampler::PythonFrame;
use crate::unwind_table::Memory;

/// Symbols that say where an interpreter is, and which.
pub(super) const RUNTIME: &str = "_PyRuntime";
pub(super) const VERSION: &str = "Py_Version";

/// Longest name or path, in characters.
const MAX_TEXT: u64 = 4096;
/// Longest line table, in bytes.
const MAX_TABLE: u64 = 1 << 20;
/// Most code objects of a process that are kept.
const MAX_CODES: usize = 1 << 17;
/// There is no such offset.
const NONE: u32 = u32::MAX;

/// How a version lays out its structures, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    /// For the kernel program, in the order of `struct python`.
    frames: [u32; 10],
    filename: u32,
    qualname: u32,
    linetable: u32,
    first_line: u32,
    bytecode: u32,
    /// Where the characters of an ASCII string and of another one are.
    ascii: u32,
    compact: u32,
    /// First bit of a string's kind in its state.
    kind_bit: u32,
    /// Owner of frames that stand for an entry from C; `None` where frames say so themselves.
    entry_owner: Option<u8>,
}

const V3_11: Layout = Layout {
    frames: [40, 16, 8, 160, 56, 8, 32, 56, 48, 68],
    filename: 112,
    qualname: 128,
    linetable: 136,
    first_line: 72,
    bytecode: 184,
    ascii: 48,
    compact: 72,
    kind_bit: 2,
    entry_owner: None,
};
const V3_12: Layout = Layout {
    frames: [40, 72, 8, 144, 56, 0, 0, 56, 8, 70],
    first_line: 68,
    bytecode: 192,
    ascii: 40,
    compact: 56,
    entry_owner: Some(3),
    ..V3_11
};

/// An interpreter in a process.
#[derive(Clone)]
pub(super) struct Python {
    /// `3.12`, for people.
    pub(super) version: String,
    /// Where `_PyRuntime` is.
    pub(super) runtime: u64,
    layout: Layout,
    codes: FxHashMap<u64, Known>,
}

/// Why an interpreter is not walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsupported {
    /// Before 3.11.
    Old,
    /// Without a global lock.
    FreeThreaded,
    /// Newer than anything known here, or unreadable.
    Unknown,
}

/// A code object.
#[derive(Clone)]
struct Known {
    id: u32,
    identity: Identity,
    /// In which round it was seen to be the same.
    checked: u64,
    first_line: u32,
    table: Vec<u8>,
    bytecode: u64,
}

/// What tells a code object from another that was given its place: importing a module leaves one free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    filename: u64,
    qualname: u64,
    linetable: u64,
    first_line: i32,
}

fn word(memory: &impl Memory, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    memory.read(address, &mut bytes).ok()?;
    Some(u64::from_le_bytes(bytes))
}

impl Python {
    /// The interpreter whose symbols lie at these addresses; `version` is absent before 3.11.
    pub(super) fn find(memory: &impl Memory, runtime: u64, version: Option<u64>) -> Result<Self, Unsupported> {
        let version = version.ok_or(Unsupported::Old)?;
        let version = word(memory, version).ok_or(Unsupported::Unknown)?;
        let (major, minor) = (version >> 24 & 0xff, version >> 16 & 0xff);
        let layout = match (major, minor) {
            (3, 11) => V3_11,
            (3, 12) => V3_12,
            (3, 13 | 14) => described(memory, runtime, minor)?,
            (3, ..11) => return Err(Unsupported::Old),
            _ => return Err(Unsupported::Unknown),
        };
        Ok(Self { version: format!("{major}.{minor}"), runtime, layout, codes: FxHashMap::default() })
    }

    /// What the kernel program needs to know.
    pub(super) fn frames(&self) -> [u32; 10] {
        self.layout.frames
    }

    /// Frames as code objects and lines. `define` is handed what the parent does not know yet, and says its number. Once a
    /// `round` it is looked whether objects still are what they were.
    pub(super) fn resolve(
        &mut self,
        memory: Option<&impl Memory>,
        round: u64,
        frames: impl Iterator<Item = PythonFrame>,
        mut define: impl FnMut(Code) -> u32,
    ) -> Vec<InterpreterFrame> {
        let mut out: Vec<InterpreterFrame> = Vec::new();
        for frame in frames {
            if self.layout.entry_owner == Some(frame.owner) {
                // A frame that only says that C called the interpreter here.
                if let Some(last) = out.last_mut() {
                    last.entry = true;
                }
                continue;
            }
            // The lowest bits are tags in newer versions; objects are aligned.
            let code = frame.code & !7;
            let offset = |known: &Known| frame.instruction.wrapping_sub(known.bytecode);
            if let Some(memory) = memory
                && self.codes.get(&code).is_none_or(|known| known.checked != round)
                && let Some(identity) = self.layout.identity(memory, code)
            {
                let full = self.codes.len() >= MAX_CODES;
                match self.codes.get_mut(&code) {
                    Some(known) if known.identity == identity => known.checked = round,
                    None if full => {}
                    _ => {
                        if let Some(known) = self.layout.read(memory, code, identity, round, &mut define) {
                            self.codes.insert(code, known);
                        }
                    }
                }
            }
            let Some(known) = self.codes.get(&code) else { continue };
            let line = line(&known.table, known.first_line, offset(known)).unwrap_or_default();
            let entry = self.layout.entry_owner.is_none() && frame.owner != 0;
            out.push(InterpreterFrame { code: known.id, line, entry });
        }
        out
    }
}

/// The layout as the interpreter describes it.
fn described(memory: &impl Memory, runtime: u64, minor: u64) -> Result<Layout, Unsupported> {
    let mut cookie = [0; 8];
    memory.read(runtime, &mut cookie).map_err(|_| Unsupported::Unknown)?;
    if cookie != *b"xdebugpy" {
        return Err(Unsupported::Unknown);
    }
    let at = |index: u64| {
        let offset = word(memory, runtime + index * 8).ok_or(Unsupported::Unknown)?;
        // Nothing that is looked for lies far into its structure.
        u32::try_from(offset).ok().filter(|&offset| offset < 1 << 20).ok_or(Unsupported::Unknown)
    };
    if at(2)? != 0 {
        return Err(Unsupported::FreeThreaded);
    }
    // Fields were added in front of some: which number of the table is what.
    let [next, frame, native_id, previous, code, instruction, owner, filename, qualname, linetable, first, bytecode] =
        match minor {
            13 => [21, 23, 25, 29, 30, 31, 33, 35, 37, 38, 39, 43],
            _ => [24, 26, 28, 32, 33, 34, 36, 40, 42, 43, 44, 48],
        };
    Ok(Layout {
        frames: [
            at(5)?,
            at(9)?,
            at(next)?,
            at(native_id)?,
            at(frame)?,
            NONE,
            at(code)?,
            at(instruction)?,
            at(previous)?,
            at(owner)?,
        ],
        filename: at(filename)?,
        qualname: at(qualname)?,
        linetable: at(linetable)?,
        first_line: at(first)?,
        bytecode: at(bytecode)?,
        kind_bit: if minor >= 14 { 16 } else { 2 },
        ..V3_12
    })
}

impl Layout {
    /// Reads what a code object refers to, at once.
    fn identity(&self, memory: &impl Memory, code: u64) -> Option<Identity> {
        let end = [self.filename, self.qualname, self.linetable, self.first_line].into_iter().max()? + 8;
        let mut head = [0; 512];
        let head = head.get_mut(..end as usize)?;
        memory.read(code, head).ok()?;
        let pointer = |offset: u32| {
            let bytes = head.get(offset as usize..offset as usize + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        let first = head.get(self.first_line as usize..self.first_line as usize + 4)?;
        Some(Identity {
            filename: pointer(self.filename)?,
            qualname: pointer(self.qualname)?,
            linetable: pointer(self.linetable)?,
            first_line: i32::from_le_bytes(first.try_into().ok()?),
        })
    }

    /// Reads a code object.
    fn read(
        &self,
        memory: &impl Memory,
        code: u64,
        identity: Identity,
        round: u64,
        define: &mut impl FnMut(Code) -> u32,
    ) -> Option<Known> {
        let first_line = u32::try_from(identity.first_line).unwrap_or_default();
        let file = self.text(memory, identity.filename)?;
        let name = self.text(memory, identity.qualname)?;

        let bytes = identity.linetable;
        let size = word(memory, bytes.checked_add(16)?).filter(|&size| size <= MAX_TABLE)?;
        let mut table = vec![0; usize::try_from(size).ok()?];
        memory.read(bytes.checked_add(32)?, &mut table).ok()?;

        let id = define(Code { id: 0, file, name, first_line });
        let bytecode = code.checked_add(u64::from(self.bytecode))?;
        Some(Known { id, identity, checked: round, first_line, table, bytecode })
    }

    /// Reads a string object, in whichever of its forms it is.
    fn text(&self, memory: &impl Memory, object: u64) -> Option<String> {
        let length = word(memory, object.checked_add(16)?).filter(|&length| length <= MAX_TEXT)?;
        let mut state = [0; 4];
        memory.read(object.checked_add(32)?, &mut state).ok()?;
        let state = u32::from_le_bytes(state) >> self.kind_bit;
        let (kind, compact, ascii) = (state & 7, state >> 3 & 1 == 1, state >> 4 & 1 == 1);
        if !compact || !matches!(kind, 1 | 2 | 4) {
            return None;
        }
        let at = object.checked_add(u64::from(if ascii { self.ascii } else { self.compact }))?;
        let mut bytes = vec![0; usize::try_from(length * u64::from(kind)).ok()?];
        memory.read(at, &mut bytes).ok()?;
        let character = |number: u32| char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
        Some(match kind {
            1 => bytes.iter().map(|&byte| char::from(byte)).collect(),
            2 => bytes.as_chunks().0.iter().map(|&pair| character(u16::from_le_bytes(pair).into())).collect(),
            _ => bytes.as_chunks().0.iter().map(|&word| character(u32::from_le_bytes(word))).collect(),
        })
    }
}

/// An entry of a line table: how many bytes of instructions it is about, and how far its line is from the last one's.
struct LineEntry {
    length: u64,
    /// `None`: these instructions belong to no line.
    lines: Option<i64>,
}

/// The entries of a line table (`co_linetable` since 3.11).
struct Entries<'a> {
    rest: &'a [u8],
}

impl<'a> Entries<'a> {
    fn new(table: &'a [u8]) -> Self {
        Self { rest: table }
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    fn number(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.byte()?;
            number |= u64::from(byte & 63) << shift;
            shift += 6;
            if byte & 64 == 0 || shift > 36 {
                return Some(number);
            }
        }
    }

    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        let value = i64::try_from(number >> 1).ok()?;
        Some(if number & 1 == 1 { -value } else { value })
    }
}

impl Iterator for Entries<'_> {
    type Item = LineEntry;

    fn next(&mut self) -> Option<LineEntry> {
        let first = self.byte()?;
        let length = (u64::from(first & 7) + 1) * 2;
        let lines = match first >> 3 & 15 {
            15 => None,
            // The line, then three numbers about columns.
            14 => {
                let lines = self.signed()?;
                for _ in 0..3 {
                    self.number()?;
                }
                Some(lines)
            }
            13 => Some(self.signed()?),
            code @ 10..=12 => {
                self.byte()?;
                self.byte()?;
                Some(i64::from(code) - 10)
            }
            _ => {
                self.byte()?;
                Some(0)
            }
        };
        Some(LineEntry { length, lines })
    }
}

/// The line of the instruction at `offset`; `None` when it has none.
fn line(table: &[u8], first_line: u32, offset: u64) -> Option<u32> {
    let (mut line, mut end) = (i64::from(first_line), 0);
    for entry in Entries::new(table) {
        line += entry.lines.unwrap_or_default();
        end += entry.length;
        if offset < end {
            return entry.lines.and_then(|_| u32::try_from(line).ok());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_instruction() {
        // As `dis` shows a function of 3.12: no line, short forms, one line on, a long form back and forth.
        let table = [
            0x80 | 15 << 3 | 1, // 4 bytes without a line
            0x80 | 2,
            0x00, // 6 bytes on the first line
            0x80 | 11 << 3,
            4,
            9, // 2 bytes, one line on
            0x80 | 14 << 3 | 3,
            5,
            0,
            1,
            2, // 8 bytes, two lines back
            0x80 | 13 << 3 | 7,
            0x40 | 0x28,
            1, // 16 bytes, 52 lines on
        ];
        let lines: Vec<_> = (0..40).step_by(2).map(|offset| line(&table, 10, offset)).collect();
        let mut expected = vec![None; 2];
        expected.extend([Some(10); 3]);
        expected.push(Some(11));
        expected.extend([Some(9); 4]);
        expected.extend([Some(61); 8]);
        expected.extend([None; 2]);
        assert_eq!(lines, expected);
    }

    proptest::proptest! {
        #[test]
        fn any_table_gives_a_line_or_none(
            table in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..64),
            first in proptest::prelude::any::<u32>(),
            offset in 0_u64..200,
        ) {
            let _ = line(&table, first, offset);
        }
    }
}
