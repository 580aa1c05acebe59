//! Modules, and batches of addresses in them.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustc_hash::FxHashMap;

use super::debug_files::{DebugFiles, Search, Wanted};
use super::dwarf::{Helpers, Index};
use super::elf::{BuildId, Elf};
use super::go_table::GoTable;
use super::mini_symbols;
use super::reason::{Reason, Refusal, Tried};
use super::recent::Recent;
use super::symbols::Symbols;
use super::{Frame, ModuleAddress, Svma, Symbolized};
use crate::cancel::CancelFlag;

/// About how many bytes an answer takes.
const ANSWER_SIZE: usize = 160;

/// How a [`Symbolizer`] works.
#[derive(Debug)]
pub struct SymbolOptions {
    /// Where files are looked for.
    pub files: DebugFiles,
    /// Most modules kept open.
    pub max_open: usize,
    /// Most bytes that open modules hold; what is in the page cache doesn't count.
    pub max_bytes: usize,
}

impl Default for SymbolOptions {
    fn default() -> Self {
        Self { files: DebugFiles::default(), max_open: 64, max_bytes: 1 << 30 }
    }
}

/// A program or library whose code was running.
#[derive(Debug, Default)]
pub struct Module {
    /// Its path where it ran.
    pub path: PathBuf,
    /// The folder that is `/` there, such as `/proc/PID/root`.
    pub root: Option<PathBuf>,
    /// The file itself, where the path may lead to another one by now, or to none.
    pub file: Option<File>,
    /// Its build: a GNU build id in hexadecimal digits, Go's, or OpenTelemetry's hash; empty
    /// when unknown. Where it is known, only files of this build are used.
    pub build: String,
    /// When nothing says which build it was, a file that is younger than this is another one.
    pub not_after: Option<SystemTime>,
}

/// A module of one [`Symbolizer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(u32);

/// What was found for a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleReport {
    /// Its path where it ran.
    pub path: PathBuf,
    /// Its build id, as the caller or the file has it.
    pub build: String,
    /// Where lines come from.
    pub lines: Lines,
    /// Where debug info was looked for in vain.
    pub tried: Vec<Tried>,
}

/// Where the lines of a module come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lines {
    /// From debug info.
    DebugInfo,
    /// From the table that Go keeps for its own traces.
    GoTable,
    /// There are none; symbols give names.
    NamesOnly,
    /// There is no file of this build.
    NoFile(Refusal),
}

/// Names addresses. `Send`, but not meant to be shared: give it to one thread, which has as much
/// stack as threads usually have, two MiB or more.
///
/// ```
/// use profiler_core::cancel::CancelFlag;
/// use profiler_core::symbolize::{Module, ModuleAddress, Reason, Refusal, SymbolOptions, Svma, Symbolizer};
///
/// let mut symbolizer = Symbolizer::new(SymbolOptions::default());
/// let module = symbolizer.add(Module { path: "/no/such/program".into(), ..Module::default() });
/// let addresses = [ModuleAddress::Stated(Svma(0x1000))];
/// let answers = symbolizer.symbolize(module, &addresses, &CancelFlag::new());
/// assert_eq!(answers, [Err(Reason::NoFile(Refusal::Missing))]);
/// ```
#[derive(Debug)]
pub struct Symbolizer {
    options: SymbolOptions,
    modules: Vec<State>,
    /// By what identifies them.
    known: FxHashMap<(PathBuf, Option<PathBuf>, String), ModuleId>,
    /// Open modules, the one used last at the end.
    recent: VecDeque<ModuleId>,
}

#[derive(Debug)]
struct State {
    module: Module,
    open: Option<Box<Open>>,
    /// Known once it was opened.
    report: Option<ModuleReport>,
    refusal: Option<Refusal>,
}

/// The files of a module, and what was parsed of them.
#[derive(Debug)]
struct Open {
    /// The binary; its separate debug info when that is all there is.
    binary: Arc<Elf>,
    debug: Option<Arc<Elf>>,
    index: Option<Index>,
    go: Option<GoTable>,
    symbols: Option<Symbols>,
    /// Answers that were given lately: profiles have the same addresses again and again.
    recent: Recent<Svma, Symbolized>,
    /// Where the binary was found, as split units are looked for beside it.
    place: PathBuf,
}

impl Symbolizer {
    /// Knows no module yet.
    pub fn new(options: SymbolOptions) -> Self {
        Self { options, modules: Vec::new(), known: FxHashMap::default(), recent: VecDeque::new() }
    }

    /// Adds a module; the same one twice is one.
    pub fn add(&mut self, module: Module) -> ModuleId {
        let key = (module.path.clone(), module.root.clone(), module.build.clone());
        let next = ModuleId(u32::try_from(self.modules.len()).unwrap_or(u32::MAX));
        // An opened file is itself, whatever it is called.
        if module.file.is_none() {
            if let Some(&known) = self.known.get(&key) {
                return known;
            }
            self.known.insert(key, next);
        }
        self.modules.push(State { module, open: None, report: None, refusal: None });
        next
    }

    /// The frames at each address, in the order of the addresses.
    ///
    /// After `cancel` was tripped the rest is [`Reason::Cancelled`].
    pub fn symbolize(&mut self, module: ModuleId, addresses: &[ModuleAddress], cancel: &CancelFlag) -> Vec<Symbolized> {
        let mut answers = vec![Err(Reason::Cancelled); addresses.len()];
        if cancel.is_cancelled() {
            return answers;
        }
        let open = match self.open(module) {
            Ok(open) => open,
            Err(refusal) => {
                answers.fill(Err(Reason::NoFile(refusal)));
                return answers;
            }
        };
        let mut order = Vec::with_capacity(addresses.len());
        for (index, &address) in addresses.iter().enumerate() {
            match open.binary.stated(address) {
                Some(stated) => order.push((stated, index)),
                None if matches!(address, ModuleAddress::Offset(_)) && !open.binary.has_code() => {
                    answers[index] = Err(Reason::NeedsBinary);
                }
                None => answers[index] = Err(Reason::OutsideCode),
            }
        }
        order.sort_unstable();
        let root = self.modules[module.0 as usize].module.root.clone();
        // The module is taken out while its files are borrowed, so that files can be found.
        let Some(mut open) = self.modules[module.0 as usize].open.take() else { return answers };
        open.answer(&order, &mut answers, &self.options.files, root.as_deref(), cancel);
        self.modules[module.0 as usize].open = Some(open);
        self.evict(module);
        answers
    }

    /// What was found for a module. Opens it, if it isn't open.
    pub fn report(&mut self, module: ModuleId) -> ModuleReport {
        let refusal = self.open(module).err();
        let state = &self.modules[module.0 as usize];
        state.report.clone().unwrap_or_else(|| ModuleReport {
            path: state.module.path.clone(),
            build: state.module.build.clone(),
            lines: Lines::NoFile(refusal.unwrap_or(Refusal::Missing)),
            tried: Vec::new(),
        })
    }

    fn open(&mut self, module: ModuleId) -> Result<&mut Open, Refusal> {
        let row = module.0 as usize;
        self.recent.retain(|&other| other != module);
        self.recent.push_back(module);
        let state = &mut self.modules[row];
        if let Some(refusal) = &state.refusal {
            return Err(refusal.clone());
        }
        if state.open.is_none() {
            let (open, report) = Open::find(&state.module, &mut self.options.files);
            if let Lines::NoFile(refusal) = &report.lines {
                state.refusal = Some(refusal.clone());
            }
            state.report = Some(report);
            state.open = open.map(Box::new);
        }
        state.open.as_deref_mut().ok_or(Refusal::Missing)
    }

    /// Closes what was not used for longest until all fits; the last one always stays.
    fn evict(&mut self, last: ModuleId) {
        let bytes = |module: &State| module.open.as_ref().map_or(0, |open| open.heap_size());
        let mut total: usize = self.recent.iter().map(|&module| bytes(&self.modules[module.0 as usize])).sum();
        while self.recent.len() > 1
            && (self.recent.len() > self.options.max_open || total > self.options.max_bytes)
            && let Some(oldest) = self.recent.pop_front()
        {
            if oldest == last {
                self.recent.push_back(oldest);
                continue;
            }
            let state = &mut self.modules[oldest.0 as usize];
            total -= bytes(state);
            state.open = None;
        }
        // What one module holds may itself be too much.
        let state = &mut self.modules[last.0 as usize];
        if bytes(state) > self.options.max_bytes {
            state.open = None;
            self.recent.retain(|&module| module != last);
        }
    }
}

impl Open {
    fn find(module: &Module, files: &mut DebugFiles) -> (Option<Self>, ModuleReport) {
        let wanted = Wanted {
            path: &module.path,
            root: module.root.as_deref(),
            build: &module.build,
            not_after: module.not_after,
        };
        let mut search = Search::default();
        let given = module.file.as_ref().and_then(|file| match Elf::open(file) {
            Ok(elf) if module.build.is_empty() || elf.is_build(&module.build) => Some(elf),
            Ok(elf) => {
                search.refuse(&module.path, Refusal::OtherBuild { found: elf.build_id().cloned() });
                None
            }
            Err(refusal) => {
                search.refuse(&module.path, refusal);
                None
            }
        });
        let binary = given.or_else(|| files.binary(&wanted, &mut search));
        let refusal = search.refusal();
        let build = binary.as_ref().map_or_else(|| BuildId::from_hex(&module.build), |elf| elf.build_id().cloned());
        let has_own = binary.as_ref().is_some_and(|binary| binary.has_section(".debug_info"));
        if binary.is_some() {
            // That there was a better place before is of no interest any more.
            search.tried.clear();
        }
        let mut debug = None;
        if !has_own {
            debug = files.debug_info(binary.as_ref(), build.as_ref(), &wanted, &mut search);
        }
        let mut report = ModuleReport {
            path: module.path.clone(),
            build: if module.build.is_empty() {
                build.as_ref().map(ToString::to_string).unwrap_or_default()
            } else {
                module.build.clone()
            },
            lines: Lines::NoFile(refusal),
            tried: Vec::new(),
        };
        // Debug info has the addresses of the binary, and will do without it.
        let (mut binary, mut debug) = match (binary, debug) {
            (Some(binary), debug) => (binary, debug),
            (None, Some(debug)) => (debug, None),
            (None, None) => {
                report.tried = search.tried;
                return (None, report);
            }
        };
        debug.as_mut().unwrap_or(&mut binary).inflate(".debug_");
        binary.inflate(".gnu_debugdata");
        let with_debug = debug.as_ref().unwrap_or(&binary);
        let mut shared = files.shared(with_debug, &wanted, &mut search);
        if let Some(shared) = &mut shared {
            shared.inflate(".debug_");
        }
        let place = wanted.root.map_or_else(
            || module.path.clone(),
            |root| root.join(module.path.strip_prefix("/").unwrap_or(&module.path)),
        );
        let has_split_units = with_debug.has_section(".debug_addr") || with_debug.has_section(".debug_gnu_pubnames");
        let mut package = has_split_units.then(|| files.package(&place, &mut Search::default())).flatten();
        if let Some(package) = &mut package {
            package.inflate(".debug_");
        }
        let (binary, debug) = (Arc::new(binary), debug.map(Arc::new));
        let with_debug = debug.as_ref().unwrap_or(&binary);
        let index = Index::new(Arc::clone(with_debug), shared, package);
        let has_debug_info = index.is_some() && with_debug.has_section(".debug_line");
        let mut go = if has_debug_info { None } else { GoTable::new(&binary) };
        let mut symbols = None;
        if let Some(go) = &mut go {
            go.use_symbols(symbols.insert(collect_symbols(&binary, debug.as_ref())));
        }
        report.lines = match &go {
            _ if has_debug_info => Lines::DebugInfo,
            Some(_) => Lines::GoTable,
            None => Lines::NamesOnly,
        };
        report.tried = if report.lines == Lines::NamesOnly { search.tried } else { Vec::new() };
        (Some(Self { binary, debug, index, go, symbols, recent: Recent::default(), place }), report)
    }

    fn heap_size(&self) -> usize {
        self.binary.heap_size()
            + self.debug.as_ref().map_or(0, |debug| debug.heap_size())
            + self.index.as_ref().map_or(0, Index::heap_size)
            + self.go.as_ref().map_or(0, GoTable::heap_size)
            + self.symbols.as_ref().map_or(0, Symbols::heap_size)
            + self.recent.len() * ANSWER_SIZE
    }

    /// Answers sorted addresses; equal ones share an answer.
    fn answer(
        &mut self,
        order: &[(Svma, usize)],
        answers: &mut [Symbolized],
        files: &DebugFiles,
        root: Option<&Path>,
        cancel: &CancelFlag,
    ) {
        for &(address, slot) in order {
            if let Some(answer) = self.recent.get(&address) {
                answers[slot] = answer;
                continue;
            }
            if cancel.is_cancelled() {
                return;
            }
            let answer = self.find_out(address, files, root);
            answers[slot].clone_from(&answer);
            self.recent.insert(address, answer);
        }
    }

    fn find_out(&mut self, address: Svma, files: &DebugFiles, root: Option<&Path>) -> Symbolized {
        let Self { binary, debug, index, go, symbols, place, .. } = self;
        let mut frames = Vec::new();
        let mut symbol = |address| symbols.get_or_insert_with(|| collect_symbols(binary, debug.as_ref())).find(address);
        if let Some(index) = index {
            let mut split = |unit: &_| files.split_unit(unit, place, root, &mut Search::default());
            frames = index.frames(address, &mut Helpers { symbol: &mut symbol, split: &mut split });
        }
        if let (Some(go), true) = (go.as_mut(), frames.is_empty()) {
            frames = go.frames(binary, address);
        }
        // What debug info doesn't name may still have a symbol.
        if frames.last().is_none_or(|frame| frame.name.is_empty())
            && let Some(name) = symbol(address.0)
        {
            match frames.last_mut() {
                Some(frame) => frame.name = name,
                None => frames.push(Frame { name, ..Frame::default() }),
            }
        }
        let is_nothing = frames.iter().all(|frame| frame.name.is_empty() && frame.file.is_empty());
        if is_nothing { Err(Reason::NoSymbol) } else { Ok(Arc::from(frames)) }
    }
}

fn collect_symbols(binary: &Arc<Elf>, debug: Option<&Arc<Elf>>) -> Symbols {
    let mini = mini_symbols::unpack(binary).map(Arc::new);
    Symbols::of(debug.into_iter().chain([binary]).chain(&mini).cloned())
}
