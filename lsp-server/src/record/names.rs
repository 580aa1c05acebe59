//! Names and lines for frames, found out once per address.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use profiler_core::cancel::CancelFlag;
use profiler_core::profile::LineNo;
use profiler_core::symbolize::{
    Avma, DebugFiles, Frame as Named, FrameAddress, JitDump, Module, ModuleAddress, ModuleId, ModuleReport, PerfMap,
    Svma, SymbolOptions, Symbolizer,
};
use rustc_hash::FxHashMap;

use super::stacks::{Frame, Stacks};

/// The frames of an address, innermost first; none when nothing is known.
pub(crate) type Frames = Arc<[Named]>;

/// What is known so far.
#[derive(Debug)]
pub(crate) struct Names {
    symbolizer: Symbolizer,
    /// By row of the module.
    modules: Vec<ModuleId>,
    known: FxHashMap<Frame, Frames>,
    /// By row of the process.
    compiled: FxHashMap<u32, Compiled>,
}

/// What a process has told of code that it compiled.
#[derive(Debug, Default)]
struct Compiled {
    map: Option<PerfMap>,
    dump: Option<JitDump>,
    /// How long the files were when they were read: they grow.
    lengths: (u64, u64),
}

/// Most bytes that are read of a perf map or a jitdump.
const MAX_JIT_FILE: u64 = 512 << 20;

impl Names {
    /// Knows nothing yet.
    pub(crate) fn new(files: DebugFiles) -> Self {
        let options = SymbolOptions { files, ..SymbolOptions::default() };
        Self {
            symbolizer: Symbolizer::new(options),
            modules: Vec::new(),
            known: FxHashMap::default(),
            compiled: FxHashMap::default(),
        }
    }

    /// Looks up everything on the stacks that is not known yet.
    pub(crate) fn look_up(&mut self, stacks: &Stacks, cancel: &CancelFlag) {
        self.add_modules(stacks);
        self.read_compiled(stacks);
        let mut wanted: Vec<Vec<u64>> = vec![Vec::new(); stacks.modules.len()];
        for (stack, _) in &stacks.rows {
            for frame in stack.frames.iter() {
                if let Frame::Native { module, address } = *frame
                    && !self.known.contains_key(frame)
                {
                    wanted[module as usize].push(address);
                }
            }
        }
        for (row, mut addresses) in wanted.into_iter().enumerate() {
            if addresses.is_empty() {
                continue;
            }
            addresses.sort_unstable();
            addresses.dedup();
            let asked: Vec<ModuleAddress> =
                addresses.iter().map(|&address| ModuleAddress::Stated(Svma(address))).collect();
            let answers = self.symbolizer.symbolize(self.modules[row], &asked, cancel);
            let module = u32::try_from(row).unwrap_or(u32::MAX);
            for (address, answer) in addresses.into_iter().zip(answers) {
                if cancel.is_cancelled() {
                    return;
                }
                self.known.insert(Frame::Native { module, address }, answer.unwrap_or_default());
            }
        }
    }

    fn read_compiled(&mut self, stacks: &Stacks) {
        for process in stacks.jit.processes() {
            let compiled = self.compiled.entry(process).or_default();
            let length = |file: Option<&File>| file.and_then(|file| file.metadata().ok()).map_or(0, |it| it.len());
            let (map, dump) = (stacks.jit.map(process), stacks.jit.dump(process));
            if length(map) > compiled.lengths.0 {
                compiled.lengths.0 = length(map);
                let text = map.and_then(read).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                compiled.map = text.map(|text| PerfMap::parse(&text));
            }
            if length(dump) > compiled.lengths.1 {
                compiled.lengths.1 = length(dump);
                compiled.dump = dump.and_then(read).and_then(|bytes| JitDump::parse(&bytes).ok());
            }
        }
    }

    /// The function that was compiled to an address; with its line, if anything tells it.
    fn compiled(&self, process: u32, address: u64) -> Option<Named> {
        let compiled = self.compiled.get(&process)?;
        // Its caller has taken one off return addresses.
        let address = FrameAddress::Instruction(Avma(address));
        let dumped = compiled.dump.as_ref().and_then(|dump| dump.find(address));
        let mapped = || compiled.map.as_ref().and_then(|map| map.find(address));
        match dumped {
            Some(frame) if frame.line.is_known() && !is_garbled(&frame.file) => Some(frame),
            // Some versions of V8 write names of files from memory that is in use for something else by then: the
            // end may be right. The line is good where it is the same file.
            Some(frame) if frame.line.is_known() => match mapped() {
                Some(named) if !named.file.is_empty() && frame.file.ends_with(file_name(&named.file)) => {
                    Some(Named { file: Arc::clone(&named.file), ..frame })
                }
                named => named.or(Some(Named { file: "".into(), line: LineNo::UNKNOWN, ..frame })),
            },
            dumped => mapped().or(dumped),
        }
    }

    fn add_modules(&mut self, stacks: &Stacks) {
        for module in &stacks.modules[self.modules.len()..] {
            let root = PathBuf::from(format!("/proc/{}/root", module.pid));
            let id = self.symbolizer.add(Module {
                path: PathBuf::from(&module.key.path),
                // In another file system the path means another file.
                root: root.exists().then_some(root),
                file: module.file.as_ref().and_then(|file| file.try_clone().ok()),
                build: module.key.build_id.clone(),
                not_after: None,
            });
            self.modules.push(id);
        }
    }

    /// The frames of an address.
    pub(crate) fn frames(&self, stacks: &Stacks, frame: Frame) -> Frames {
        match frame {
            Frame::Kernel(id) => stacks.kernel.get(&id).map_or_else(Frames::default, |symbol| {
                let name = if symbol.name.is_empty() { "[kernel]" } else { &symbol.name };
                Arc::from([Named { name: name.into(), file: "".into(), ..empty() }])
            }),
            Frame::Jit { process, address } => {
                self.compiled(process, address).map_or_else(Frames::default, |frame| Arc::from([frame]))
            }
            Frame::Native { .. } => self.known.get(&frame).cloned().unwrap_or_default(),
            Frame::Unknown => Frames::default(),
        }
    }

    /// What was found for modules that have frames, with the number of samples that pass them.
    pub(crate) fn reports(&mut self, stacks: &Stacks) -> Vec<ModuleReport> {
        let mut used = vec![false; stacks.modules.len()];
        for (stack, _) in &stacks.rows {
            for frame in stack.frames.iter() {
                if let Frame::Native { module, .. } = frame {
                    used[*module as usize] = true;
                }
            }
        }
        let used = used.into_iter().enumerate().filter(|(_, is_used)| *is_used);
        used.filter_map(|(row, _)| self.modules.get(row).copied()).map(|id| self.symbolizer.report(id)).collect()
    }
}

fn is_garbled(path: &str) -> bool {
    path.is_empty() || path.chars().any(|c| c.is_control() || c == '\u{fffd}')
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Reads a file from its beginning, wherever others have read to.
fn read(file: &File) -> Option<Vec<u8>> {
    use std::os::unix::fs::FileExt;
    let length = file.metadata().ok()?.len().min(MAX_JIT_FILE);
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    file.read_exact_at(&mut bytes, 0).ok()?;
    Some(bytes)
}

fn empty() -> Named {
    Named { name: "".into(), file: "".into(), line: LineNo::UNKNOWN, column: 0, start_line: LineNo::UNKNOWN }
}
