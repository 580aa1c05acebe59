//! From addresses to functions, files and lines.
//!
//! ```text
//! FrameAddress ──lookup──▶ Avma ──mapping──▶ FileOffset ──ELF──▶ Svma ──DWARF, symbols──▶ frames
//! ```
//!
//! * A [`Symbolizer`] knows modules (programs and libraries) and answers batches of addresses,
//!   in order, with frames or with the [`Reason`] why there are none. It never gives up on a
//!   batch because of one address.
//! * [`DebugFiles`] finds the files, and checks that they are of the build that ran.
//! * [`symbolize_profile`] fills in a profile that came with bare addresses.
//! * [`PerfMap`], [`JitDump`] and [`KernelSymbols`] name code that is in no file.
//!
//! Names stay as the linker knows them; [`demangle`](crate::demangle) is for whoever shows them.
//!
//! Everything read here is hostile: files may be damaged or made to hurt. Sizes are checked
//! before memory is taken, nothing recurses, damage costs what it hits and no more.
//!
//! What is not here: processes, unwinding, network. Who may ask a server for debug info
//! implements [`Fetch`].

mod address;
mod debug_files;
mod dwarf;
mod elf;
mod mapped;
mod mini_symbols;
mod profile;
mod ranges;
mod reason;
mod symbolizer;
mod symbols;

pub use address::{Avma, FileOffset, FrameAddress, MappedRange, ModuleAddress, Svma};
pub use debug_files::{DebugFiles, Fetch, FileKind};
pub use elf::{BuildId, Elf};
pub use profile::{ProfileError, ProfileOptions, SymbolizedProfile, Which, needs_symbols, symbolize_profile};
pub use reason::{Reason, Refusal, Tried};
pub use symbolizer::{Lines, Module, ModuleId, ModuleReport, SymbolOptions, Symbolizer};

use std::sync::Arc;

use crate::profile::LineNo;

/// A function that an address is in. An address has several when calls were inlined there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The name as the linker knows it, else as the source has it; empty when nothing names it.
    pub name: Arc<str>,
    /// Path of the source file; empty when unknown.
    pub file: Arc<str>,
    /// The line that is executing, or that the inlined call is on.
    pub line: LineNo,
    /// The column of it, 1-based; 0 when unknown.
    pub column: u32,
    /// The line that the function starts on, when that is in the same file.
    pub start_line: LineNo,
}

impl Default for Frame {
    fn default() -> Self {
        static EMPTY: std::sync::LazyLock<Arc<str>> = std::sync::LazyLock::new(|| "".into());
        Self {
            name: Arc::clone(&EMPTY),
            file: Arc::clone(&EMPTY),
            line: LineNo::UNKNOWN,
            column: 0,
            start_line: LineNo::UNKNOWN,
        }
    }
}

/// Frames of an address, innermost first and never none; or why there are none.
pub type Symbolized = Result<Arc<[Frame]>, Reason>;
