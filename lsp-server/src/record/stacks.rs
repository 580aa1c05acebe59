//! What a recorder has told, added up: stacks with their values, and what their frames refer to.
//!
//! Addresses become positions in files as they come in, since mappings change. So equal stacks
//! of several processes are one, and a process that is gone is forgotten, unless it ran code that is
//! in no file. What can't be kept is counted ([`Stacks::lost`]).
//!
//! What is not here: names of functions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use profiler_ebpf::mapped_file::{self, MappedFile};
use profiler_ebpf::protocol::{
    Code, End, EventKind, Failure, Hello, KernelSymbol, Loss, Mapping, Process, Sample, StackEnd, event,
};
use rustc_hash::FxHashMap;

use super::jit::{self, JitFiles};
use super::store::hex;

/// Most different stacks that are kept.
const MAX_STACKS: usize = 400_000;

/// Most frames of all of them together.
const MAX_FRAMES: usize = 24_000_000;

/// Most processes at a time, with those that are gone and ran code in no file.
const MAX_PROCESSES: usize = 200_000;

/// Most mappings of all processes that are there.
const MAX_MAPPINGS: usize = 1_000_000;

/// Most files of modules that are kept open.
const MAX_OPEN: usize = 600;

/// Most sampled allocations that are still in use.
const MAX_ALLOCATIONS: usize = 1_000_000;

/// Most names of threads, code objects and functions of the kernel, and most notes.
const MAX_NAMES: usize = 200_000;
const MAX_NOTES: usize = 50;

/// A file that was mapped, or what stands for one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ModuleKey {
    /// The path as the process saw it.
    pub(crate) path: String,
    device: u64,
    inode: u64,
    /// In hex, or Go's own.
    pub(crate) build_id: String,
}

/// A module, and where the first process that had it saw it.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) key: ModuleKey,
    /// A process that has it mapped.
    pub(crate) pid: u32,
    /// Opened when it came in sight: it may be gone when names are wanted.
    pub(crate) file: Option<File>,
    /// Its mappings in the file's own terms: address and length, and the offset in the file.
    pub(crate) first: (u64, u64, u64),
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Frame {
    /// A function of the kernel.
    Kernel(u32),
    /// An instruction of a file, in the file's own terms.
    Native { module: u32, address: u64 },
    /// An instruction in memory without a file: compiled while running.
    Jit { process: u32, address: u64 },
    /// An instruction of what nothing is known of. Its address would say nothing either, and keep equal stacks apart.
    Unknown,
}

/// A frame of an interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ScriptFrame {
    pub(crate) code: u32,
    pub(crate) line: u32,
    pub(crate) entry: bool,
}

/// A stack with the thread it was taken in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stack {
    /// Leaf first.
    pub(crate) frames: Arc<[Frame]>,
    /// Of the interpreter, leaf first.
    pub(crate) script: Arc<[ScriptFrame]>,
    /// The name of the thread.
    pub(crate) thread: Arc<str>,
    /// The name of the process.
    pub(crate) process: Arc<str>,
    /// Whether something is missing at the root.
    pub(crate) is_complete: bool,
}

/// Columns of values; which of them a profile has depends on what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Samples,
    CpuNs,
    Waits,
    BlockedNs,
    PreemptedNs,
    AllocObjects,
    AllocBytes,
    InuseObjects,
    InuseBytes,
    PageFaults,
}

/// How many there are.
const COLUMNS: usize = 10;

/// The values of a stack.
pub(crate) type Values = [i64; COLUMNS];

/// A process, from when it came in sight or became another program.
#[derive(Debug)]
struct Instance {
    process: Process,
    name: Arc<str>,
    mappings: Vec<(u64, u64, Place)>,
    /// Names of threads.
    threads: FxHashMap<u32, Arc<str>>,
    is_left_out: bool,
    /// Whether it has executable memory that is in no file, and whether it was seen to run there.
    has_anonymous: bool,
    runs_code_in_no_file: bool,
}

/// What is mapped somewhere.
#[derive(Clone, Copy, Debug)]
enum Place {
    Module { module: u32, bias: u64 },
    Anonymous,
}

/// Everything that was told.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    pub(crate) hello: Option<Hello>,
    pub(crate) failure: Option<Failure>,
    pub(crate) end: Option<End>,
    pub(crate) attached_ns: Option<u64>,
    pub(crate) notes: Vec<String>,
    /// The program that came in sight first.
    pub(crate) program: String,
    processes: Vec<Instance>,
    /// Rows of processes that are gone and forgotten.
    unused: Vec<u32>,
    /// What processes tell of code that is in no file.
    pub(crate) jit: JitFiles,
    pub(crate) modules: Vec<Module>,
    pub(crate) kernel: FxHashMap<u32, KernelSymbol>,
    pub(crate) codes: FxHashMap<u32, Code>,
    pub(crate) rows: Vec<(Stack, Values)>,
    /// Samples that were taken, in the recorder or here, and are missing.
    pub(crate) lost: BTreeMap<&'static str, u64>,
    /// Samples that are in.
    pub(crate) samples: u64,
    /// Those whose stack reaches the outermost frame.
    pub(crate) complete: u64,
    /// Why others don't.
    pub(crate) ends: BTreeMap<&'static str, u64>,
    /// Time of the last sample, on the recorder's clock.
    pub(crate) last_ns: u64,
    /// Programs whose samples don't count, and a process whose don't.
    left_out: &'static [&'static str],
    left_out_pid: Option<u32>,
    /// A process that was held until all was in place: samples before it became the command are not its.
    held: Option<u32>,
    /// The program that it was until then.
    launcher: String,
    current: FxHashMap<u32, u32>,
    module_rows: FxHashMap<ModuleKey, u32>,
    stack_rows: FxHashMap<Stack, u32>,
    /// Sampled memory that is in use: the stack that took it, objects and bytes.
    in_use: FxHashMap<u64, (u32, i64, i64)>,
    frame_count: usize,
    mapping_count: usize,
    thread_count: usize,
}

impl Stacks {
    /// Leaves out what a process did before it became another program.
    pub(crate) fn hold(&mut self, pid: u32) {
        self.held = Some(pid);
        let launcher = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        self.launcher = launcher.to_string_lossy().into_owned();
    }

    /// Leaves out programs by name, and a process whatever it becomes.
    pub(crate) fn leave_out(&mut self, names: &'static [&'static str], pid: Option<u32>) {
        self.left_out = names;
        self.left_out_pid = pid;
    }

    /// Looks for files that processes wrote at their very end.
    pub(crate) fn look_for_maps(&mut self) {
        for (row, instance) in (0..).zip(&self.processes) {
            if instance.runs_code_in_no_file {
                self.jit.look_at_the_end(row, instance.process.pid, instance.process.namespace_pid);
                let note = unnamed(&instance.process).filter(|_| !self.jit.has(row));
                self.notes.extend(note.filter(|_| self.notes.len() < MAX_NOTES));
            }
        }
    }

    /// Processes write files that name their code for us alone: they go as soon as they are open, and at the
    /// end those that never were.
    pub(crate) fn removes_maps(&mut self, removes: bool) {
        self.jit.removes = removes;
    }

    /// Removes the files that are left.
    pub(crate) fn remove_maps(&mut self, folder: &Path) {
        let pids: BTreeSet<u32> = self.processes.iter().map(|instance| instance.process.namespace_pid).collect();
        pids.iter().copied().for_each(jit::remove_map);
        jit::remove_logs(folder, &pids);
    }

    /// Whether the recorder is in place.
    pub(crate) fn is_attached(&self) -> bool {
        self.attached_ns.is_some()
    }

    /// What was sampled, by the values there are.
    pub(crate) fn kinds(&self) -> Vec<EventKind> {
        let has = |column: Column| self.rows.iter().any(|(_, values)| values[column as usize] != 0);
        let all = [
            (Column::PageFaults, EventKind::PageFault),
            (Column::AllocBytes, EventKind::Alloc),
            (Column::PreemptedNs, EventKind::Preempted),
            (Column::BlockedNs, EventKind::Blocked),
            (Column::CpuNs, EventKind::Cpu),
        ];
        let kinds: Vec<EventKind> = all.into_iter().filter(|(column, _)| has(*column)).map(|(_, kind)| kind).collect();
        if kinds.is_empty() { vec![EventKind::Cpu] } else { kinds }
    }

    /// How long it has been recording, in nanoseconds.
    pub(crate) fn duration_ns(&self) -> u64 {
        let until = self.end.as_ref().map_or(self.last_ns, |end| end.time_ns);
        until.saturating_sub(self.attached_ns.unwrap_or(until))
    }

    /// Takes in a message.
    pub(crate) fn take(&mut self, kind: event::Kind) {
        match kind {
            event::Kind::Hello(hello) => self.hello = Some(hello),
            event::Kind::Failure(failure) => self.failure = Some(failure),
            event::Kind::Attached(attached) => self.attached_ns = Some(attached.time_ns),
            event::Kind::Process(process) => self.process(process),
            event::Kind::Mapping(mapping) => self.mapping(mapping),
            event::Kind::Thread(thread) => {
                if self.thread_count < MAX_NAMES
                    && let Some(&row) = self.current.get(&thread.pid)
                {
                    let threads = &mut self.processes[row as usize].threads;
                    self.thread_count += usize::from(threads.insert(thread.tid, thread.name.into()).is_none());
                }
            }
            event::Kind::KernelSymbol(symbol) => {
                if self.kernel.len() < MAX_NAMES {
                    self.kernel.insert(symbol.id, symbol);
                }
            }
            event::Kind::Code(code) => {
                if self.codes.len() < MAX_NAMES {
                    self.codes.insert(code.id, code);
                }
            }
            event::Kind::Sample(sample) => self.sample(&sample),
            event::Kind::Lost(lost) => self.lose(loss_in_words(lost.reason()), lost.samples),
            event::Kind::Note(note) => {
                if self.notes.len() < MAX_NOTES {
                    self.notes.push(note.sentence);
                }
            }
            event::Kind::End(end) => self.end = Some(end),
            event::Kind::Exit(exit) => {
                if let Some(row) = self.current.remove(&exit.pid) {
                    self.forget(row);
                }
            }
            event::Kind::Progress(_) => {}
        }
    }

    fn lose(&mut self, why: &'static str, samples: u64) {
        *self.lost.entry(why).or_default() += samples;
    }

    fn process(&mut self, process: Process) {
        // Whoever is told of late is told of once, as what it has become by then.
        let before = self.current.remove(&process.pid);
        if self.held == Some(process.pid) && (before.is_some() || process.executable != self.launcher) {
            self.held = None;
        }
        if let Some(row) = before {
            self.forget(row);
        }
        if self.program.is_empty() {
            self.program.clone_from(&process.name);
        }
        if self.processes.len() >= MAX_PROCESSES && self.unused.is_empty() {
            return;
        }
        let file = process.executable.rsplit('/').next().unwrap_or_default();
        let instance = Instance {
            name: process.name.as_str().into(),
            mappings: Vec::new(),
            threads: FxHashMap::default(),
            is_left_out: self.left_out.iter().any(|name| *name == file || *name == process.name),
            has_anonymous: false,
            runs_code_in_no_file: false,
            process,
        };
        let pid = instance.process.pid;
        let row = if let Some(row) = self.unused.pop() {
            self.processes[row as usize] = instance;
            row
        } else {
            self.processes.push(instance);
            u32::try_from(self.processes.len() - 1).unwrap_or(u32::MAX)
        };
        self.current.insert(pid, row);
    }

    /// A process is gone, or has become another program. What is kept of it is what names of its code need.
    fn forget(&mut self, row: u32) {
        let instance = &mut self.processes[row as usize];
        self.mapping_count -= std::mem::take(&mut instance.mappings).len();
        self.thread_count -= std::mem::take(&mut instance.threads).len();
        if !instance.runs_code_in_no_file && !self.jit.removes && !self.jit.has(row) {
            self.unused.push(row);
        }
    }

    fn mapping(&mut self, mapping: Mapping) {
        if self.mapping_count >= MAX_MAPPINGS {
            return;
        }
        let Some(&row) = self.current.get(&mapping.pid) else { return };
        self.mapping_count += 1;
        let (start, end) = (mapping.start, mapping.end);
        let name = mapping.path.rsplit('/').next().unwrap_or_default();
        let is_dump = name.starts_with("jit-") && Path::new(name).extension().is_some_and(|it| it == "dump");
        let place = if mapping.path.is_empty() || is_dump || mapping.path.starts_with("[anon") {
            if is_dump {
                self.dump(row, &mapping);
            }
            Place::Anonymous
        } else {
            let bias = mapping.bias;
            Place::Module { module: self.module(mapping), bias }
        };
        let instance = &mut self.processes[row as usize];
        instance.has_anonymous |= matches!(place, Place::Anonymous);
        let mappings = &mut instance.mappings;
        let before = mappings.len();
        mappings.retain(|&(known_start, known_end, _)| known_end <= start || end <= known_start);
        self.mapping_count -= before - mappings.len();
        let at = mappings.partition_point(|&(known, ..)| known < start);
        mappings.insert(at, (start, end, place));
    }

    /// A file that a compiler writes the names of its code to; mapping it is how it is announced.
    fn dump(&mut self, row: u32, mapping: &Mapping) {
        let file = MappedFile {
            pid: mapping.pid,
            range: (mapping.start, mapping.end),
            path: &mapping.path,
            device: mapping.device,
            inode: mapping.inode,
        };
        if let Some(file) = mapped_file::open(file) {
            self.jit.keep_dump(row, file, Path::new(&mapping.path));
        }
    }

    fn module(&mut self, mapping: Mapping) -> u32 {
        let build_id = if mapping.build_id.is_empty() { mapping.go_build_id } else { hex(&mapping.build_id) };
        let key = ModuleKey { path: mapping.path, device: mapping.device, inode: mapping.inode, build_id };
        let row = u32::try_from(self.modules.len()).unwrap_or(u32::MAX);
        *self.module_rows.entry(key.clone()).or_insert_with(|| {
            let first = (mapping.start.wrapping_sub(mapping.bias), mapping.end - mapping.start, mapping.file_offset);
            let file = MappedFile {
                pid: mapping.pid,
                range: (mapping.start, mapping.end),
                path: &key.path,
                device: key.device,
                inode: key.inode,
            };
            let file = if self.modules.len() < MAX_OPEN { mapped_file::open(file) } else { None };
            self.modules.push(Module { key, pid: mapping.pid, file, first });
            row
        })
    }

    fn sample(&mut self, sample: &Sample) {
        self.last_ns = self.last_ns.max(sample.time_ns);
        if self.held == Some(sample.pid) || self.left_out_pid == Some(sample.pid) {
            return;
        }
        if sample.kind() == EventKind::Free {
            // Only what was sampled when it was taken counts when it is given back.
            if let Some((row, objects, bytes)) = self.in_use.remove(&sample.allocation) {
                let values = &mut self.rows[row as usize].1;
                values[Column::InuseObjects as usize] -= objects;
                values[Column::InuseBytes as usize] -= bytes;
            }
            return;
        }
        let Some(&process) = self.current.get(&sample.pid) else {
            return self.lose("of processes that were not told of", 1);
        };
        if self.processes[process as usize].is_left_out {
            return;
        }
        let frames = self.frames(process, sample);
        let script: Arc<[ScriptFrame]> = sample
            .interpreter
            .iter()
            .map(|frame| ScriptFrame { code: frame.code, line: frame.line, entry: frame.entry })
            .collect();
        let instance = &self.processes[process as usize];
        let thread = instance.threads.get(&sample.tid).cloned().unwrap_or_else(|| "".into());
        let process = Arc::clone(&instance.name);
        let is_complete = matches!(sample.end(), StackEnd::Complete | StackEnd::NoUserPart);
        let stack = Stack { frames, script, thread, process, is_complete };
        let row = match self.stack_rows.get(&stack) {
            Some(&row) => row,
            None if self.rows.len() >= MAX_STACKS || self.frame_count >= MAX_FRAMES => {
                return self.lose("because there were too many different stacks", 1);
            }
            None => {
                let row = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
                self.frame_count += stack.frames.len() + stack.script.len();
                self.stack_rows.insert(stack.clone(), row);
                self.rows.push((stack, Values::default()));
                row
            }
        };
        self.samples += 1;
        self.complete += u64::from(is_complete);
        if !is_complete {
            *self.ends.entry(end_in_words(sample.end())).or_default() += 1;
        }
        self.add(row, sample);
    }

    fn add(&mut self, row: u32, sample: &Sample) {
        let value = i64::try_from(sample.value).unwrap_or(i64::MAX);
        let count = i64::try_from(sample.count).unwrap_or(i64::MAX);
        let values = &mut self.rows[row as usize].1;
        let mut add = |column: Column, value: i64| {
            let sum = &mut values[column as usize];
            *sum = sum.saturating_add(value);
        };
        match sample.kind() {
            EventKind::Blocked => {
                add(Column::Waits, 1);
                add(Column::BlockedNs, value);
            }
            EventKind::Preempted => {
                add(Column::Waits, 1);
                add(Column::PreemptedNs, value);
            }
            EventKind::Alloc => {
                add(Column::AllocObjects, count);
                add(Column::AllocBytes, value);
                if self.in_use.len() < MAX_ALLOCATIONS && sample.allocation != 0 {
                    add(Column::InuseObjects, count);
                    add(Column::InuseBytes, value);
                    self.in_use.insert(sample.allocation, (row, count, value));
                }
            }
            EventKind::PageFault => {
                add(Column::Samples, 1);
                add(Column::PageFaults, value);
            }
            EventKind::Cpu | EventKind::Free | EventKind::Unknown => {
                add(Column::Samples, 1);
                add(Column::CpuNs, value);
            }
        }
    }

    fn frames(&mut self, process: u32, sample: &Sample) -> Arc<[Frame]> {
        let instance = &self.processes[process as usize];
        let mut has_jit_frames = false;
        let user = sample.user.iter().enumerate().map(|(at, &address)| {
            let is_exact = at == 0 || u32::try_from(at).is_ok_and(|at| sample.exact.binary_search(&at).is_ok());
            // A return address belongs to the instruction after the call.
            let address = if is_exact { address } else { address.saturating_sub(1) };
            match instance.place(address) {
                Some(Place::Module { module, bias }) => Frame::Native { module, address: address.wrapping_sub(bias) },
                Some(Place::Anonymous) => {
                    has_jit_frames = true;
                    Frame::Jit { process, address }
                }
                // Perhaps memory that a compiler mapped after we looked; one that compiles has some already.
                None if instance.has_anonymous => {
                    has_jit_frames = true;
                    Frame::Jit { process, address }
                }
                None => Frame::Unknown,
            }
        });
        let frames = sample.kernel.iter().map(|&id| Frame::Kernel(id)).chain(user).collect();
        if has_jit_frames {
            let instance = &mut self.processes[process as usize];
            instance.runs_code_in_no_file = true;
            self.jit.look(process, instance.process.pid, instance.process.namespace_pid);
        }
        frames
    }
}

impl Instance {
    fn place(&self, address: u64) -> Option<Place> {
        let after = self.mappings.partition_point(|&(start, ..)| start <= address);
        let &(_, end, place) = self.mappings.get(after.checked_sub(1)?)?;
        (address < end).then_some(place)
    }
}

/// What makes a runtime name the code that it compiles, where it did not.
fn unnamed(process: &Process) -> Option<String> {
    let pid = process.pid;
    match process.executable.rsplit('/').next()? {
        "java" => Some(format!(
            "Java process {pid} names its methods when it is asked: run jcmd {pid} Compiler.perfmap while it is recorded; whole \
             stacks need -XX:+PreserveFramePointer from its start"
        )),
        "node" | "nodejs" => Some(format!(
            "Node.js process {pid} names its functions when it was started with --perf-basic-prof; or use node --cpu-prof and \
             open its file"
        )),
        _ => None,
    }
}

/// `3 samples were lost because the buffer was full`.
pub(super) fn lost_in_words(count: u64, why: &str) -> String {
    let samples = if count == 1 { "sample was" } else { "samples were" };
    format!("{count} {samples} lost {why}")
}

fn loss_in_words(loss: Loss) -> &'static str {
    match loss {
        Loss::Unknown => "for an unknown reason",
        Loss::RingFull => "because the buffer was full",
        Loss::Throttled => "because the kernel held sampling back",
        Loss::OtherUser => "of programs of another user",
        Loss::MapFull => "because there were too many processes or threads",
        Loss::ParentSlow => "because they came faster than they could be read",
        Loss::NotTaken => "because they could not be taken",
    }
}

fn end_in_words(end: StackEnd) -> &'static str {
    match end {
        StackEnd::NoMapping => "an address belongs to no code that is known",
        StackEnd::NoRule => "code without unwind information",
        StackEnd::Unsupported => "unwind information that is not supported",
        StackEnd::Unreadable => "the stack's memory could not be read",
        StackEnd::TooDeep => "too many frames",
        StackEnd::CopyTooShort => "more stack than is copied",
        StackEnd::Unknown | StackEnd::Complete | StackEnd::NoUserPart => "an unknown reason",
    }
}
