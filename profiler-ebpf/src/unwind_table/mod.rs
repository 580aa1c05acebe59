//! Unwind rules of a file, small and flat enough for the kernel program to search.
//!
//! Compilers leave rules for leaving every function, from every instruction, in `.eh_frame` (or
//! `.debug_frame`): where the caller's frame begins and where its registers lie. They are made for
//! exceptions, compact and slow to read. Here they become two arrays:
//!
//! * **rows**, 4 bytes each: the low 16 bits of an address, and the number of the [`Rule`] in force
//!   from there on. Sorted, so that one integer comparison is a step of a binary search.
//! * **pages**, one per 64 KiB of the file's addresses: which rows belong to it. The first row of a
//!   page repeats the rule in force, so that a search never looks into another page.
//!
//! Rules are few (a few hundred in a large file) and shared by all files, see [`Rules`].
//!
//! What is not here: processes and their mappings, and any reading of files beyond what is handed in.
//! The processor's part is in `x86_64` alone.

mod go;
mod image;
mod table;
mod x86_64;

pub use image::{Image, ImageError, Load, Memory, Section};
pub use table::{Table, TableError, build};

use rustc_hash::FxHashMap;

/// How to find the canonical frame address (CFA), the value of the stack pointer in the caller.
///
/// The numbers are those of `bpf/layout.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Cfa {
    /// There is no rule: go by the frame pointer.
    #[default]
    None = 0,
    /// Stack pointer + offset.
    StackPointer = 1,
    /// Frame pointer + offset.
    FramePointer = 2,
    /// Stack pointer + 8, and 8 more from byte `offset` of a 16-byte stub on.
    Plt = 3,
    /// What lies at frame pointer + offset, plus `extra`.
    DerefFramePointer = 4,
    /// What lies at stack pointer + offset, plus `extra`.
    DerefStackPointer = 5,
    /// The stack pointer points at the registers that a signal saved.
    Signal = 6,
    /// The outermost frame.
    End = 7,
    /// A rule that can't be expressed.
    Unsupported = 8,
    /// Stack pointer + offset, the frame pointer stays: code that calls on without a frame.
    Trampoline = 9,
}

/// Where the caller's frame pointer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FramePointer {
    /// Where it was.
    #[default]
    Same = 0,
    /// In memory at CFA + offset.
    AtCfa = 1,
    /// In memory at frame pointer + offset.
    AtFramePointer = 2,
    /// Nowhere that can be said.
    Lost = 3,
}

/// How to get from a frame to its caller's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rule {
    /// What the CFA is made from.
    pub cfa: Cfa,
    /// Where the frame pointer is.
    pub fp: FramePointer,
    /// Bytes, see [`Cfa`].
    pub cfa_offset: i32,
    /// Bytes, see [`FramePointer`].
    pub fp_offset: i32,
    /// For the `Deref` kinds an addend, otherwise where the return address is, from the CFA.
    pub extra: i32,
}

/// Size of a rule in the kernel program.
pub const RULE_SIZE: usize = 16;

impl Rule {
    /// A rule without anything beyond its kind.
    pub const fn plain(cfa: Cfa) -> Self {
        Self { cfa, fp: FramePointer::Same, cfa_offset: 0, fp_offset: 0, extra: 0 }
    }

    /// As `struct rule` of `bpf/layout.h`.
    pub fn to_bytes(self) -> [u8; RULE_SIZE] {
        let mut bytes = [0; RULE_SIZE];
        bytes[0] = self.cfa as u8;
        bytes[1] = self.fp as u8;
        bytes[4..8].copy_from_slice(&self.cfa_offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.fp_offset.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.extra.to_le_bytes());
        bytes
    }
}

/// All distinct rules of all files, numbered.
///
/// Number 0 is always "no rule". There are at most 65 536; what comes after is numbered as
/// unsupported, and counted.
#[derive(Debug)]
pub struct Rules {
    all: Vec<Rule>,
    numbers: FxHashMap<Rule, u16>,
    refused: u64,
}

/// The number of [`Cfa::None`].
pub const NO_RULE: u16 = 0;
const UNSUPPORTED: u16 = 1;

impl Default for Rules {
    fn default() -> Self {
        let mut rules = Self { all: Vec::new(), numbers: FxHashMap::default(), refused: 0 };
        rules.number(Rule::plain(Cfa::None));
        rules.number(Rule::plain(Cfa::Unsupported));
        rules
    }
}

impl Rules {
    /// The number of a rule, new or not.
    pub fn number(&mut self, rule: Rule) -> u16 {
        if let Some(&number) = self.numbers.get(&rule) {
            return number;
        }
        let Ok(number) = u16::try_from(self.all.len()) else {
            self.refused += 1;
            return UNSUPPORTED;
        };
        self.all.push(rule);
        self.numbers.insert(rule, number);
        number
    }

    /// All rules, by number.
    pub fn all(&self) -> &[Rule] {
        &self.all
    }

    /// How many rules found no number.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}
