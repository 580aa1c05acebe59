//! Whether a program has lines to show, asked before it is recorded: afterwards is too late.

use std::path::Path;

use memchr::memmem;

use super::debug_files::{DebugFiles, Search, Wanted, open};
use super::elf::Elf;
use super::reason::Refusal;

/// What a program is made of, as far as it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Rust.
    Rust,
    /// Go.
    Go,
    /// C, C++, or anything else that compiles to machine code.
    Native,
    /// A program that runs other programs: Python, Node, Java. Its own lines matter to few.
    Runtime,
}

/// Whether a program has lines, and what to do when not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineInfo {
    /// Whether lines are known: in the program, in separate debug info, in Go's own table.
    pub has_lines: bool,
    /// Whether at least functions have names.
    pub has_names: bool,
    /// What it is made of.
    pub language: Language,
}

impl LineInfo {
    /// The one thing to change so that lines are there next time; `None` when there is nothing to.
    pub fn advice(&self) -> Option<&'static str> {
        if self.has_lines {
            return None;
        }
        match self.language {
            Language::Rust => Some(
                "it was built without line tables, so costs would be per function only. Add to Cargo.toml, and build \
                 again: [profile.release] debug = \"line-tables-only\"",
            ),
            Language::Native => Some(
                "it was built without line tables, so costs would be per function only. Build it again with the \
                 compiler option -g (next to -O2; it makes nothing slower)",
            ),
            // Its lines may be gone only together with its table, which no build option does.
            Language::Go | Language::Runtime => None,
        }
    }
}

/// Looks whether a program or library has lines.
pub fn line_info(path: &Path, files: &mut DebugFiles) -> Result<LineInfo, Refusal> {
    let elf = Elf::open(&open(path)?)?;
    let wanted = Wanted { path, root: None, build: "", not_after: None };
    let separate = if elf.has_section(".debug_line") {
        None
    } else {
        let build = elf.build_id().cloned();
        files.debug_info(Some(&elf), build.as_ref(), &wanted, &mut Search::default())
    };
    let is_go = elf.has_section(".gopclntab");
    let has =
        |name: &str| elf.has_section(name) || separate.as_ref().is_some_and(|separate| separate.has_section(name));
    Ok(LineInfo {
        has_lines: is_go || has(".debug_line"),
        has_names: is_go || has(".symtab") || elf.has_section(".gnu_debugdata"),
        language: if is_go { Language::Go } else { language(&elf) },
    })
}

fn language(elf: &Elf) -> Language {
    let contains =
        |section: &str, text: &[u8]| elf.section(section).is_some_and(|bytes| memmem::find(bytes, text).is_some());
    let runtimes: [&[u8]; 4] = [b"_PyRuntime", b"v8dbg_", b"JNI_CreateJavaVM", b"rb_vm_exec"];
    if runtimes.iter().any(|name| contains(".dynstr", name)) {
        return Language::Runtime;
    }
    // Paths in messages of the standard library are there even when it is stripped.
    let is_rust = contains(".comment", b"rustc version")
        || contains(".rodata", b"/rustc/")
        || contains(".strtab", b"rust_begin_unwind");
    if is_rust { Language::Rust } else { Language::Native }
}
