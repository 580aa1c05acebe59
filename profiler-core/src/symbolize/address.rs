//! Kinds of address. On simple programs they coincide, which hides mistakes; so they are types.

use std::fmt;

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }
    };
}

address! {
    /// An actual address in the memory of a process: what samples, `/proc/PID/maps`, perf maps
    /// and jitdumps contain.
    Avma
}
address! {
    /// An address as the ELF file states it: what its symbols and its DWARF contain. It differs
    /// from the [`Avma`] by where the file was loaded, and from the [`FileOffset`] by the segment.
    Svma
}
address! {
    /// Where a byte is in the file, counted from its beginning.
    FileOffset
}

/// An address on a stack, and what it points at.
///
/// A return address belongs to the instruction *after* the call, which may be on another line
/// or in another function. So look-ups take the byte before it. Make this type where stacks are
/// unwound, and [`lookup`](Self::lookup) it where they are symbolised, so that nobody subtracts
/// twice, or never. pprof, OTLP and JFR files have subtracted already: theirs are instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameAddress {
    /// The instruction that was executing: the leaf of a stack, or a frame below a signal.
    Instruction(Avma),
    /// Where a callee returns to.
    Return(Avma),
}

impl FrameAddress {
    /// The address to look up.
    ///
    /// ```
    /// use profiler_core::symbolize::{Avma, FrameAddress};
    /// assert_eq!(FrameAddress::Instruction(Avma(0x1000)).lookup(), Avma(0x1000));
    /// assert_eq!(FrameAddress::Return(Avma(0x1000)).lookup(), Avma(0xfff));
    /// ```
    pub fn lookup(self) -> Avma {
        match self {
            Self::Instruction(address) => address,
            Self::Return(address) => Avma(address.0.saturating_sub(1)),
        }
    }
}

/// A part of a file in the memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedRange {
    /// First address.
    pub start: Avma,
    /// Address after the last.
    pub end: Avma,
    /// What is at `start`.
    pub offset: FileOffset,
}

impl MappedRange {
    /// Where in the file the byte at an address comes from; `None` outside of the range.
    ///
    /// ```
    /// use profiler_core::symbolize::{Avma, FileOffset, MappedRange};
    /// let text = MappedRange { start: Avma(0x7f00_0000), end: Avma(0x7f00_2000), offset: FileOffset(0x1000) };
    /// assert_eq!(text.file_offset(Avma(0x7f00_0234)), Some(FileOffset(0x1234)));
    /// assert_eq!(text.file_offset(Avma(0x7f00_2000)), None);
    /// ```
    pub fn file_offset(&self, address: Avma) -> Option<FileOffset> {
        let is_inside = self.start <= address && address < self.end;
        is_inside.then(|| FileOffset((address.0 - self.start.0).wrapping_add(self.offset.0)))
    }
}

/// An address of a module, in whichever way the caller knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ModuleAddress {
    /// As the file states it.
    Stated(Svma),
    /// By its place in the file.
    Offset(FileOffset),
}
