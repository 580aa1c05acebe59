//! Go's own table of functions (`.gopclntab`): how far the stack pointer is from the return address, at every
//! instruction.
//!
//! Go keeps frame pointers, but a function without a frame keeps none, and as the leaf it would hide its
//! caller. Layouts are those of Go 1.18 to 1.26; older ones are unwound by frame pointers alone.

use super::{Cfa, FramePointer, Rule, Section};

/// Most functions that are read.
const MAX_FUNCTIONS: usize = 2 << 20;

/// What a function says of itself.
mod flag {
    /// Nothing calls it.
    pub(super) const TOP_FRAME: u8 = 1;
    /// It sets the stack pointer in ways that no table tells.
    pub(super) const WRITES_SP: u8 = 2;
    /// It was written by hand.
    pub(super) const ASM: u8 = 4;
}

/// A stretch of instructions with one rule, in the file's own terms.
pub(super) struct Stretch {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) rule: Rule,
}

struct Header<'a> {
    data: &'a [u8],
    text: u64,
    functions: usize,
    quantum: u64,
    /// Offsets into `data`.
    counts: usize,
    table: usize,
    flag: usize,
}

fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(data.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn word_at(data: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(data.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

impl<'a> Header<'a> {
    fn parse(data: &'a [u8], text: Option<u64>) -> Option<Self> {
        // A number of the first source line was added to what a function says in 1.20.
        let flag = match u32_at(data, 0)? {
            0xffff_fff0 => 37,
            0xffff_fff1 => 41,
            _ => return None,
        };
        let (quantum, pointer) = (*data.get(6)?, *data.get(7)?);
        if pointer != 8 {
            return None;
        }
        let offset = |index: usize| usize::try_from(word_at(data, 8 + index * 8)?).ok();
        let functions = offset(0)?;
        if functions > MAX_FUNCTIONS {
            return None;
        }
        // Newer linkers leave the start of the code to the program.
        let start = word_at(data, 8 + 2 * 8)?;
        let text = if start == 0 { text? } else { start };
        Some(Self { data, text, functions, quantum: u64::from(quantum), counts: offset(6)?, table: offset(7)?, flag })
    }

    /// Start of a function, and where what it says is.
    fn function(&self, index: usize) -> Option<(u64, usize)> {
        let at = self.table.checked_add(index.checked_mul(8)?)?;
        let start = self.text.checked_add(u32_at(self.data, at)?.into())?;
        Some((start, self.table.checked_add(u32_at(self.data, at + 4)? as usize)?))
    }
}

fn number(data: &[u8], at: &mut usize) -> Option<u32> {
    let mut number = 0_u32;
    for shift in [0, 7, 14, 21, 28] {
        let byte = *data.get(*at)?;
        *at += 1;
        number |= u32::from(byte & 127) << shift;
        if byte < 128 {
            return Some(number);
        }
    }
    None
}

/// Hands out the stretches of all functions, in order; a table that is broken ends there. `text` is where code begins, if
/// the table doesn't say. Stops when `with` says so.
pub(super) fn stretches(section: &Section, text: Option<u64>, mut with: impl FnMut(Stretch) -> bool) {
    let Some(header) = Header::parse(&section.data, text) else { return };
    for index in 0..header.functions {
        let Some((start, at)) = header.function(index) else { return };
        let end = header.function(index + 1).map_or(u64::MAX, |next| next.0);
        let (Some(counts), Some(&flags)) = (u32_at(header.data, at + 16), header.data.get(at + header.flag)) else {
            return;
        };
        let whole = |cfa| Stretch { start, end, rule: Rule::plain(cfa) };
        let go_on = if flags & flag::TOP_FRAME != 0 {
            with(whole(Cfa::End))
        } else if flags & flag::WRITES_SP != 0 || counts == 0 {
            true
        } else {
            function(&header, start, end, counts as usize, flags, &mut with)
        };
        if !go_on {
            return;
        }
    }
}

/// The stretches of one function.
fn function(
    header: &Header<'_>,
    start: u64,
    end: u64,
    counts: usize,
    flags: u8,
    with: &mut impl FnMut(Stretch) -> bool,
) -> bool {
    let Some(mut at) = header.counts.checked_add(counts) else { return true };
    let (mut pc, mut depth, mut first) = (start, -1_i32, true);
    while pc < end {
        let Some(change) = number(header.data, &mut at) else { return true };
        if change == 0 && !first {
            break;
        }
        first = false;
        let half = (change >> 1).cast_signed();
        depth = depth.wrapping_add(if change & 1 == 1 { !half } else { half });
        let Some(length) = number(header.data, &mut at) else { return true };
        let next = pc.saturating_add(u64::from(length) * header.quantum).min(end);
        if next == pc {
            continue;
        }
        let rule = match depth {
            0 => Rule { fp: FramePointer::Same, ..by_stack_pointer(8) },
            // Hand-written code may have a frame and still keep nothing in it.
            8..=0x0fff_ffff if flags & flag::ASM == 0 => {
                Rule { fp: FramePointer::AtCfa, fp_offset: -16, ..by_stack_pointer(depth + 8) }
            }
            _ => Rule::plain(Cfa::None),
        };
        if !with(Stretch { start: pc, end: next, rule }) {
            return false;
        }
        pc = next;
    }
    true
}

fn by_stack_pointer(offset: i32) -> Rule {
    Rule { cfa_offset: offset, extra: -8, ..Rule::plain(Cfa::StackPointer) }
}
