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
//! * [`name_by_sidecar`] takes names from what samply writes beside a profile.
//! * [`PerfMap`], [`JitDump`] and [`KernelSymbols`] name code that is in no file.
//! * [`GoBuild`] tells which commit a Go program was built from.
//! * [`line_info`] tells before a recording whether there will be lines.
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
mod go_build;
mod go_table;
mod jit_names;
mod jitdump;
mod kernel;
mod line_info;
mod looked_up;
mod mapped;
mod mini_symbols;
mod perf_map;
mod profile;
mod ranges;
mod reason;
mod recent;
mod sidecar;
mod symbolizer;
mod symbols;

pub use address::{Avma, FileOffset, FrameAddress, MappedRange, ModuleAddress, Svma};
pub use debug_files::{DebugFiles, Fetch, FileKind};
pub use elf::{BuildId, Elf};
pub use go_build::GoBuild;
pub use jitdump::{JitDump, JitDumpError};
pub use kernel::KernelSymbols;
pub use line_info::{Language, LineInfo, line_info};
pub use perf_map::PerfMap;
pub use profile::{ProfileError, ProfileOptions, SymbolizedProfile, Which, needs_symbols, symbolize_profile};
pub use reason::{Reason, Refusal, Tried};
pub use sidecar::{name_by_sidecar, wants_sidecar};
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

/// A line and a column, or zeros for what can be neither.
fn line_and_column(line: u64, column: u64) -> (u32, u32) {
    // A line beyond what a profile can hold is none, and a column alone is no position.
    let line = u32::try_from(line).ok().filter(|&line| line <= i32::MAX.unsigned_abs()).unwrap_or(0);
    (line, if line == 0 { 0 } else { u32::try_from(column).unwrap_or(0) })
}

/// Frames of an address, innermost first and never none; or why there are none.
pub type Symbolized = Result<Arc<[Frame]>, Reason>;
