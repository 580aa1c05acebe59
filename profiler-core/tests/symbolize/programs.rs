//! Building small programs, and looking addresses of them up.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use object::{Object, ObjectSection, ObjectSymbol};
use profiler_core::cancel::CancelFlag;
use profiler_core::demangle::demangle;
use profiler_core::symbolize::{
    FileOffset, Frame, Module, ModuleAddress, ModuleReport, Reason, Svma, SymbolOptions, Symbolized, Symbolizer,
};

/// Runs a tool; what it prints.
///
/// # Panics
/// When it can't be run, or fails: tools are part of the test.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; tests/run installs it"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A folder with sources and what was made of them; removed at the end of the test.
pub(crate) struct Folder {
    dir: tempfile::TempDir,
}

impl Folder {
    /// With files, as (name, content).
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        Self { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    /// Runs `program arguments…` here; the words are split at spaces.
    pub(crate) fn run(&self, line: &str) -> String {
        let words = line.split_whitespace();
        // A tool that never ends must not keep the tests from ending.
        run(Command::new("timeout").arg("120").args(words).current_dir(self.path("")))
    }
}

/// Addresses of functions by name, from the symbol table of a file.
pub(crate) fn symbols(path: &Path) -> Vec<(String, u64, u64)> {
    let bytes = std::fs::read(path).unwrap();
    let object = object::File::parse(&*bytes).unwrap();
    let symbols = object.symbols().chain(object.dynamic_symbols());
    let functions = symbols.filter(|symbol| symbol.kind() == object::SymbolKind::Text && symbol.size() > 0);
    functions.map(|symbol| (demangle(symbol.name().unwrap()).into_owned(), symbol.address(), symbol.size())).collect()
}

/// Names and addresses of functions, as the linker has them.
pub(crate) fn mangled_symbols(path: &Path) -> Vec<(String, u64)> {
    let bytes = std::fs::read(path).unwrap();
    let object = object::File::parse(&*bytes).unwrap();
    let functions = object.symbols().filter(|symbol| symbol.kind() == object::SymbolKind::Text);
    functions.map(|symbol| (symbol.name().unwrap().to_owned(), symbol.address())).collect()
}

/// Where a function of the file is.
pub(crate) fn function(path: &Path, name: &str) -> (u64, u64) {
    let found = symbols(path).into_iter().find(|(known, _, _)| known == name || known.ends_with(&format!("::{name}")));
    let (_, address, size) = found.unwrap_or_else(|| panic!("{}: no function {name}", path.display()));
    (address, size)
}

/// Address and size of `.text`.
pub(crate) fn text(path: &Path) -> (u64, u64) {
    let bytes = std::fs::read(path).unwrap();
    let object = object::File::parse(&*bytes).unwrap();
    let text = object.section_by_name(".text").unwrap();
    (text.address(), text.size())
}

/// A symbolizer with the given options and one module.
pub(crate) struct Lookup {
    symbolizer: Symbolizer,
    module: profiler_core::symbolize::ModuleId,
}

impl Lookup {
    pub(crate) fn new(options: SymbolOptions, module: Module) -> Self {
        let mut symbolizer = Symbolizer::new(options);
        let module = symbolizer.add(module);
        Self { symbolizer, module }
    }

    pub(crate) fn of(path: &Path) -> Self {
        Self::new(SymbolOptions::default(), Module { path: path.to_owned(), ..Module::default() })
    }

    pub(crate) fn report(&mut self) -> ModuleReport {
        self.symbolizer.report(self.module)
    }

    pub(crate) fn all(&mut self, addresses: &[u64]) -> Vec<Symbolized> {
        let addresses: Vec<_> = addresses.iter().map(|&address| ModuleAddress::Stated(Svma(address))).collect();
        self.symbolizer.symbolize(self.module, &addresses, &CancelFlag::new())
    }

    pub(crate) fn one(&mut self, address: u64) -> Symbolized {
        self.all(&[address]).pop().unwrap()
    }

    pub(crate) fn offset(&mut self, offset: u64) -> Symbolized {
        let addresses = [ModuleAddress::Offset(FileOffset(offset))];
        self.symbolizer.symbolize(self.module, &addresses, &CancelFlag::new()).pop().unwrap()
    }

    pub(crate) fn frames(&mut self, address: u64) -> Arc<[Frame]> {
        self.one(address).unwrap_or_else(|reason| panic!("{address:#x}: {reason}"))
    }

    /// All distinct lines of a function's code, as `file:line function`, innermost frames first,
    /// with ` < ` between frames; files without their folders.
    pub(crate) fn lines_of(&mut self, path: &Path, name: &str) -> Vec<String> {
        let (start, size) = function(path, name);
        let addresses: Vec<u64> = (start..start + size).collect();
        let mut lines: Vec<String> = Vec::new();
        for answer in self.all(&addresses) {
            let line = shown(&answer);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines
    }
}

/// `file:line:column function < …`; the reason where there are no frames.
pub(crate) fn shown(answer: &Result<Arc<[Frame]>, Reason>) -> String {
    match answer {
        Ok(frames) => frames.iter().map(shown_frame).collect::<Vec<_>>().join(" < "),
        Err(reason) => reason.to_string(),
    }
}

fn shown_frame(frame: &Frame) -> String {
    let file = frame.file.rsplit('/').next().unwrap_or_default();
    format!("{file}:{} {}", frame.line.0, demangle(&frame.name))
}
