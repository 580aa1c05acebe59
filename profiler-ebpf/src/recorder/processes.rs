//! The processes of a recording: their mappings, the tables of their files, and what the parent knows of them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use rustix::fs::{CWD, Mode, OFlags, major, minor, openat};

use super::maps_file::{self, MapLine};
use super::output::Output;
use super::python::{self, Python, Unsupported};
use crate::children;
use crate::privilege::{Caller, Target, TargetError, with_probe_rights};
use crate::protocol::{Code, Exit, InterpreterFrame, Mapping, Note, Process, Thread, event};
use crate::sampler::{FileNumbers, Kernel, Placed, PythonFrame, Slice, Tables};
use crate::unwind_table::{Image, Rules, build};

/// Most files whose tables are kept.
const MAX_MODULES: usize = 8192;
/// What carries the probes of the allocation library, `preload/alloc.c`.
const ALLOC: &str = "perflens_alloc_sample";
const FREE: &str = "perflens_free_sample";
/// Symbols that say what a file is.
const SYMBOLS: [&str; 4] = [ALLOC, FREE, python::RUNTIME, python::VERSION];
/// Most files whose tables are made before anything runs.
const MAX_EXPECTED: usize = 64;
/// Where libraries usually are. Those that are elsewhere are found when they are mapped.
const LIBRARY_FOLDERS: [&str; 6] =
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib", "/usr/local/lib"];
/// When the mappings of a new program are looked at again, in nanoseconds: its libraries come one by one.
const SETTLING: [u64; 4] = [2_000_000, 6_000_000, 20_000_000, 100_000_000];
/// Shortest and longest time, in nanoseconds, before an unknown address is worth another look. Runtimes that compile
/// turn memory into code all the while, so the longest must not be long.
const QUIET: Range<u64> = 5_000_000..250_000_000;

/// A file, by what tells whether it changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum FileKey {
    Disk {
        device: u64,
        inode: u64,
        size: u64,
        modified: (i64, i64),
    },
    /// Read from memory.
    Memory {
        device: (u32, u32),
        inode: u64,
        build_id: Vec<u8>,
    },
}

/// A file that is mapped somewhere.
struct Module {
    image: Image,
    placed: Option<Placed>,
    /// As a process saw it; empty for what was read from memory.
    path: Vec<u8>,
    device: (u32, u32),
    inode: u64,
}

/// A mapping as the parent knows it.
#[derive(Clone)]
struct Known {
    line: MapLine,
    module: Option<Rc<Module>>,
    bias: u64,
}

/// A process.
struct Entry {
    target: Option<Target>,
    parent: u32,
    namespace_pid: u32,
    name: String,
    executable: String,
    runtime: String,
    seen_ns: u64,
    known: Rc<Vec<Known>>,
    slice: Slice,
    /// Whether the parent was told of it.
    announced: bool,
    threads: FxHashMap<u32, Vec<u8>>,
    /// How long an unknown address is no news, in nanoseconds.
    quiet: u64,
    python: Option<Python>,
    told_of_python: bool,
}

/// All processes of a recording.
pub(super) struct Processes {
    caller: Caller,
    any_user: bool,
    tables: Tables,
    rules: Rules,
    modules: FxHashMap<FileKey, Rc<Module>>,
    /// Those that the kernel program knows by its own numbers.
    by_numbers: FxHashMap<FileNumbers, Rc<Module>>,
    entries: FxHashMap<u32, Entry>,
    /// How many processes use a slice.
    users: FxHashMap<Slice, u32>,
    /// Processes to look at again, and when.
    due: BTreeSet<(u64, u32)>,
    /// Processes that turned out not to be the caller's.
    dark: FxHashSet<u32>,
    full: bool,
    sees_allocations: bool,
    probes_refused: Option<String>,
    last_code: u32,
    /// How often samples were fetched.
    round: u64,
}

impl Processes {
    pub(super) fn new(caller: Caller, any_user: bool, tables: Tables) -> Self {
        Self {
            caller,
            any_user,
            tables,
            rules: Rules::default(),
            modules: FxHashMap::default(),
            by_numbers: FxHashMap::default(),
            entries: FxHashMap::default(),
            users: FxHashMap::default(),
            due: BTreeSet::new(),
            dark: FxHashSet::default(),
            full: false,
            sees_allocations: false,
            probes_refused: None,
            last_code: 0,
            round: 0,
        }
    }

    /// Begins to sample a process that the caller may look at.
    pub(super) fn add_target<W: io::Write + AsFd>(
        &mut self,
        pid: u32,
        target: Target,
        now: u64,
        kernel: &mut Kernel,
        output: &mut Output<W>,
    ) -> Result<(), crate::sampler::KernelError> {
        self.add(pid, Entry::new(Some(target), 0, now), now, kernel, output)?;
        self.announce(pid, output);
        Ok(())
    }

    fn add<W: io::Write + AsFd>(
        &mut self,
        pid: u32,
        entry: Entry,
        now: u64,
        kernel: &mut Kernel,
        output: &mut Output<W>,
    ) -> Result<(), crate::sampler::KernelError> {
        self.entries.insert(pid, entry);
        self.describe(pid);
        self.scan(pid, now, kernel, output);
        let (slice, quiet) = self.entries.get(&pid).map_or((Slice::default(), 0), |entry| (entry.slice, entry.quiet));
        kernel.set_process(pid, slice, now + quiet)?;
        self.settle(pid, now);
        Ok(())
    }

    /// Begins to sample what processes have started before anybody looked, and so on.
    ///
    /// Each is in sight of the kernel program before it is asked for its own children: what it starts from then on
    /// makes itself known.
    pub(super) fn add_children<W: io::Write + AsFd>(
        &mut self,
        mut of: Vec<u32>,
        now: u64,
        kernel: &mut Kernel,
        output: &mut Output<W>,
    ) {
        if !children::are_known() {
            let sentence = "This kernel does not tell what a process has started, so of processes that run already \
                            only those that are named are recorded.";
            output.send(event::Kind::Note(Note { sentence: sentence.into() }));
        }
        while let Some(parent) = of.pop() {
            for pid in children::of(parent) {
                if self.entries.contains_key(&pid) || self.dark.contains(&pid) {
                    continue;
                }
                let added = match Target::open_started(pid, self.caller, self.any_user) {
                    Ok(target) => self.add(pid, Entry::new(Some(target), parent, now), now, kernel, output),
                    Err(TargetError::Gone | TargetError::Kernel) => continue,
                    Err(_) => {
                        // In sight of the kernel program, so that its samples are counted.
                        self.dark.insert(pid);
                        kernel.set_process(pid, Slice::default(), 0)
                    }
                };
                if added.is_err() {
                    self.entries.remove(&pid);
                    self.dark.remove(&pid);
                    self.note_full(output);
                    return;
                }
                of.push(pid);
            }
        }
    }

    /// How many processes are left.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// A process was started by another.
    pub(super) fn forked(&mut self, pid: u32, parent: u32, first: u32, now: u64, kernel: &mut Kernel) {
        self.dark.remove(&pid);
        let Some(of) = self.entries.get(&parent) else { return };
        let mut entry = Entry::new(None, parent, now);
        entry.name.clone_from(&of.name);
        entry.executable.clone_from(&of.executable);
        entry.runtime.clone_from(&of.runtime);
        entry.known = Rc::clone(&of.known);
        entry.python.clone_from(&of.python);
        entry.slice = of.slice;
        if of.slice.count > 0 && of.slice.first != first {
            // The parent got a new slice while it forked; the one the child copied may soon be another's.
            kernel.replace_process(pid, of.slice, 0);
        }
        *self.users.entry(entry.slice).or_default() += 1;
        if let Some(old) = self.entries.insert(pid, entry) {
            self.release(old.slice);
        }
    }

    /// A process became another program. `false` when the caller may not look at it any more.
    pub(super) fn executed<W: io::Write + AsFd>(
        &mut self,
        pid: u32,
        now: u64,
        kernel: &mut Kernel,
        output: &mut Output<W>,
    ) -> bool {
        let parent = self.entries.get(&pid).map_or(0, |entry| entry.parent);
        if let Some(old) = self.entries.remove(&pid) {
            self.release(old.slice);
        }
        match Target::open_started(pid, self.caller, self.any_user) {
            Ok(target) => {
                self.dark.remove(&pid);
                self.entries.insert(pid, Entry::new(Some(target), parent, now));
                self.describe(pid);
                self.scan(pid, now, kernel, output);
                self.settle(pid, now);
                true
            }
            Err(TargetError::Gone | TargetError::Kernel) => {
                // It ended already; its notice of that is on the way.
                self.entries.insert(pid, Entry::new(None, parent, now));
                true
            }
            Err(_) => {
                // It stays in sight of the kernel program, so that its samples are counted.
                self.dark.insert(pid);
                false
            }
        }
    }

    /// A process ended.
    pub(super) fn exited<W: io::Write + AsFd>(&mut self, pid: u32, time_ns: u64, output: &mut Output<W>) {
        self.dark.remove(&pid);
        if let Some(entry) = self.entries.remove(&pid) {
            self.release(entry.slice);
            if entry.announced {
                output.send(event::Kind::Exit(Exit { pid, time_ns }));
            }
        }
    }

    /// A stack of a process went through unknown memory.
    pub(super) fn unmapped<W: io::Write + AsFd>(
        &mut self,
        pid: u32,
        address: u64,
        now: u64,
        kernel: &mut Kernel,
        output: &mut Output<W>,
    ) {
        let changed = self.scan(pid, now, kernel, output);
        if let Some(entry) = self.entries.get_mut(&pid) {
            // Nothing there: it will not become interesting soon. The word of it may have waited while tables were
            // made, and the address be known by now.
            let known = entry.known.iter().any(|known| known.line.range.contains(&address));
            entry.quiet = if changed || known { QUIET.start } else { (entry.quiet * 2).min(QUIET.end) };
            kernel.replace_process(pid, entry.slice, now + entry.quiet);
        }
    }

    /// A stack went through a file that is known, in memory that was not known to show it. Of a process that has ended by
    /// now there is no other way to learn it.
    pub(super) fn mapped<W: io::Write + AsFd>(
        &mut self,
        pid: u32,
        range: Range<u64>,
        offset: u64,
        file: FileNumbers,
        output: &mut Output<W>,
    ) {
        let Some(entry) = self.entries.get_mut(&pid) else { return };
        let Some(module) = self.by_numbers.get(&file) else { return };
        let overlaps = |known: &Known| known.line.range.start < range.end && range.start < known.line.range.end;
        if entry.known.iter().any(overlaps) {
            return;
        }
        let bias = module.image.bias(range.start, offset).unwrap_or_default();
        let (path, device, inode) = (module.path.clone(), module.device, module.inode);
        if entry.executable.is_empty() {
            // The first that is told of a new program is itself.
            entry.executable = String::from_utf8_lossy(&path).into_owned();
            entry.name = entry.executable.rsplit('/').next().unwrap_or_default().to_owned();
        }
        let line = MapLine { range, offset, device, inode, path, deleted: false, image: None };
        let known = Known { line, module: Some(Rc::clone(module)), bias };
        if entry.announced {
            output.send(event::Kind::Mapping(known.message(pid)));
        }
        let all = Rc::make_mut(&mut entry.known);
        let at = all.partition_point(|other| other.line.range.start < known.line.range.start);
        all.insert(at, known);
    }

    /// When the next process wants to be looked at again.
    pub(super) fn next_due(&self) -> Option<u64> {
        self.due.first().map(|&(when, _)| when)
    }

    /// Looks at processes whose time has come.
    pub(super) fn look_again<W: io::Write + AsFd>(&mut self, now: u64, kernel: &mut Kernel, output: &mut Output<W>) {
        while let Some(&(when, pid)) = self.due.first()
            && when <= now
        {
            self.due.pop_first();
            self.scan(pid, now, kernel, output);
        }
    }

    fn settle(&mut self, pid: u32, now: u64) {
        for after in SETTLING {
            self.due.insert((now + after, pid));
        }
    }

    /// Makes sure that the parent knows the process and the thread of a sample; `false` when it must not.
    pub(super) fn prepare<W: io::Write + AsFd>(
        &mut self,
        pid: u32,
        tid: u32,
        comm: &[u8],
        now: u64,
        kernel: &mut Kernel,
        output: &mut Output<W>,
    ) -> bool {
        if self.dark.contains(&pid) {
            return false;
        }
        if !self.entries.contains_key(&pid) && !self.executed(pid, now, kernel, output) {
            return false;
        }
        self.announce(pid, output);
        if let Some(entry) = self.entries.get_mut(&pid)
            && entry.threads.get(&tid).is_none_or(|known| known != comm)
        {
            entry.threads.insert(tid, comm.to_vec());
            let name = String::from_utf8_lossy(comm).into_owned();
            output.send(event::Kind::Thread(Thread { pid, tid, name }));
        }
        true
    }

    /// Tells the parent of a process and its mappings, once.
    fn announce<W: io::Write + AsFd>(&mut self, pid: u32, output: &mut Output<W>) {
        let Some(entry) = self.entries.get_mut(&pid) else { return };
        if entry.announced {
            return;
        }
        entry.announced = true;
        if entry.target.is_none() {
            // A child that became nothing else: what was copied from its parent holds, but for its number.
            let target = Target::open_started(pid, self.caller, self.any_user).ok();
            entry.namespace_pid = target.as_ref().and_then(Target::namespace_pid).unwrap_or(pid);
            entry.target = target;
        }
        output.send(event::Kind::Process(Process {
            pid,
            namespace_pid: entry.namespace_pid,
            parent: entry.parent,
            name: entry.name.clone(),
            executable: entry.executable.clone(),
            time_ns: entry.seen_ns,
            runtime: entry.runtime.clone(),
        }));
        let known = Rc::clone(&entry.known);
        for known in known.iter() {
            output.send(event::Kind::Mapping(known.message(pid)));
        }
    }

    /// Reads what a process says of itself.
    fn describe(&mut self, pid: u32) {
        let Some(entry) = self.entries.get_mut(&pid) else { return };
        let Some(target) = &entry.target else { return };
        entry.namespace_pid = target.namespace_pid().unwrap_or(pid);
        let name = target.read("comm").unwrap_or_default();
        entry.name = String::from_utf8_lossy(name.trim_ascii_end()).into_owned();
        entry.executable = target.executable().unwrap_or_default();
        entry.runtime = match entry.executable.rsplit('/').next().unwrap_or_default() {
            "node" | "nodejs" => "node".into(),
            "java" => "jvm".into(),
            _ => String::new(),
        };
    }

    /// Reads a process's mappings and gives the kernel program what is new in them; whether something was.
    fn scan<W: io::Write + AsFd>(&mut self, pid: u32, now: u64, kernel: &mut Kernel, output: &mut Output<W>) -> bool {
        let Some(entry) = self.entries.get_mut(&pid) else { return false };
        if entry.target.is_none() {
            entry.target = Target::open_started(pid, self.caller, self.any_user).ok();
        }
        let Some(target) = entry.target.take() else { return false };
        // A process that ended meanwhile keeps what it had.
        let lines = target.mappings().map(|text| maps_file::parse(&text)).unwrap_or_default();
        if lines.is_empty() {
            // The thread that it was opened by ended; others may go on, and are opened the next time.
            return false;
        }
        let old = Rc::clone(&entry.known);
        let same = lines.len() == old.len() && lines.iter().zip(old.iter()).all(|(line, known)| *line == known.line);
        if same {
            entry.target = Some(target);
            return false;
        }

        let mut before: FxHashMap<u64, &Known> = FxHashMap::default();
        for known in old.iter() {
            before.insert(known.line.range.start, known);
        }
        let mut all = Vec::with_capacity(lines.len());
        let mut new = Vec::new();
        for line in lines {
            if let Some(&known) = before.get(&line.range.start).filter(|known| known.line == line) {
                all.push(known.clone());
                continue;
            }
            let module = self.module(&line, &target, kernel, output);
            let bias =
                module.as_ref().and_then(|module| module.image.bias(line.range.start, line.offset)).unwrap_or_default();
            new.push(all.len());
            all.push(Known { line, module, bias });
        }

        let rows: Vec<_> = all
            .iter()
            .map(|known| {
                let placed = known.module.as_ref().and_then(|module| module.placed);
                (known.line.range.clone(), known.bias, placed)
            })
            .collect();
        let slice = self.tables.add_slice(&rows);
        let Some(entry) = self.entries.get_mut(&pid) else { return false };
        entry.target = Some(target);
        let runtime = entry.runtime.clone();
        if entry.runtime.is_empty() && all.iter().any(Known::is_go_program) {
            entry.runtime = "go".into();
        }
        if entry.python.is_none() {
            entry.look_for_python(pid, &all, kernel, output);
        }
        // A runtime that shows late changes what the process is: it is told again, as a whole, with its next sample.
        if entry.runtime != runtime {
            entry.announced = false;
            entry.threads.clear();
        }
        if entry.announced {
            for &at in &new {
                output.send(event::Kind::Mapping(all[at].message(pid)));
            }
        }
        entry.known = Rc::new(all);
        match slice {
            Ok(slice) => {
                let old = std::mem::replace(&mut entry.slice, slice);
                kernel.replace_process(pid, slice, now + entry.quiet);
                *self.users.entry(slice).or_default() += 1;
                self.release(old);
            }
            Err(_) => self.note_full(output),
        }
        !new.is_empty()
    }

    /// Samples are being fetched once more.
    pub(super) fn next_round(&mut self) {
        self.round += 1;
    }

    /// Frames of a process's interpreter, with what they need defined.
    pub(super) fn interpreter_frames<W: io::Write + AsFd>(
        &mut self,
        pid: u32,
        frames: &[PythonFrame],
        output: &mut Output<W>,
    ) -> Vec<InterpreterFrame> {
        let Some(Entry { python: Some(python), target, .. }) = self.entries.get_mut(&pid) else { return Vec::new() };
        let last = &mut self.last_code;
        python.resolve(target.as_ref(), self.round, frames.iter().copied(), |code| {
            *last += 1;
            output.send(event::Kind::Code(Code { id: *last, ..code }));
            *last
        })
    }

    /// A slice has one user fewer.
    fn release(&mut self, slice: Slice) {
        if let Some(users) = self.users.get_mut(&slice) {
            *users -= 1;
            if *users == 0 {
                self.users.remove(&slice);
                self.tables.free_slice(slice);
            }
        }
    }

    /// The file of a mapping, and its table. `None` for memory without a file, and for files that can't be read: those
    /// are unwound by frame pointers.
    fn module<W: io::Write + AsFd>(
        &mut self,
        line: &MapLine,
        target: &Target,
        kernel: &mut Kernel,
        output: &mut Output<W>,
    ) -> Option<Rc<Module>> {
        let (key, image) = if line.is_file() {
            match target.open_mapped(&line.path, line.device, line.inode) {
                Some(file) => return self.module_of_file(&file, &line.path, kernel, output),
                // Deleted, replaced or out of reach: what the process has in memory is what counts anyway.
                None => Self::from_memory(line, target)?,
            }
        } else if line.path == b"[vdso]" {
            Self::from_memory(line, target)?
        } else {
            return None;
        };
        if let Some(module) = self.modules.get(&key) {
            return Some(Rc::clone(module));
        }
        Some(self.add_module(key, image, &[], (line.device, line.inode), output))
    }

    fn module_of_file<W: io::Write + AsFd>(
        &mut self,
        file: &File,
        path: &[u8],
        kernel: &mut Kernel,
        output: &mut Output<W>,
    ) -> Option<Rc<Module>> {
        let metadata = file.metadata().ok()?;
        let key = FileKey::Disk {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        };
        if let Some(module) = self.modules.get(&key) {
            return Some(Rc::clone(module));
        }
        let image = Image::from_file(file.try_clone().ok()?, &SYMBOLS).ok()?;
        self.look_for_allocations(file, &image, kernel);
        let numbers = ((major(metadata.dev()), minor(metadata.dev())), metadata.ino());
        let module = self.add_module(key, image, path, numbers, output);
        if let (Some(placed), Some(shift)) = (module.placed, module.image.shift())
            && self.by_numbers.len() < MAX_MODULES
        {
            kernel.add_file(&metadata, shift, placed);
            self.by_numbers.insert(FileNumbers::of(&metadata), Rc::clone(&module));
        }
        Some(module)
    }

    fn add_module<W: io::Write + AsFd>(
        &mut self,
        key: FileKey,
        image: Image,
        path: &[u8],
        (device, inode): ((u32, u32), u64),
        output: &mut Output<W>,
    ) -> Rc<Module> {
        // Without rules (Go, code of other compilers at run time) frame pointers are all there is.
        let placed = build(&image, &mut self.rules).ok().and_then(|table| {
            let placed = self.tables.add(&table, &self.rules).ok();
            if placed.is_none() {
                self.note_full(output);
            }
            placed
        });
        // What the table was made from is not needed again.
        let image = Image { eh_frame: None, debug_frame: None, gopclntab: None, ..image };
        let module = Rc::new(Module { image, placed, path: path.to_owned(), device, inode });
        if self.modules.len() < MAX_MODULES {
            self.modules.insert(key, Rc::clone(&module));
        }
        module
    }

    /// Makes the tables of a program that a target is about to become, and of the libraries that it names: once it runs
    /// there is no time. What can't be found or read is left for then.
    pub(super) fn expect<W: io::Write + AsFd>(&mut self, program: &Path, kernel: &mut Kernel, output: &mut Output<W>) {
        let mut wanted = vec![program.to_owned()];
        let mut seen = FxHashSet::default();
        while let Some(path) = wanted.pop() {
            if seen.len() >= MAX_EXPECTED || !seen.insert(path.clone()) {
                continue;
            }
            // As it will be called where it is mapped.
            let real = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            let name = real.as_os_str().as_bytes();
            let Some(module) = open_file(&path).and_then(|file| self.module_of_file(&file, name, kernel, output))
            else {
                continue;
            };
            let origin = path.parent().unwrap_or(Path::new("/"));
            let own: Vec<PathBuf> =
                module.image.library_folders.iter().filter_map(|folder| library_folder(folder, origin)).collect();
            let found = module.image.needed.iter().filter_map(|name| {
                let folders = own.iter().map(PathBuf::as_path).chain(LIBRARY_FOLDERS.iter().map(Path::new));
                folders.map(|folder| folder.join(OsStr::from_bytes(name))).find(|path| path.is_file())
            });
            wanted.extend(found);
        }
    }

    /// Puts probes on the allocation library, once for every file that is one.
    fn look_for_allocations(&mut self, file: &File, image: &Image, kernel: &mut Kernel) {
        let offset = |name| image.file_offset(image.symbol(name)?);
        if let (true, Some(alloc), Some(free)) = (kernel.sources().alloc, offset(ALLOC), offset(FREE)) {
            // By the descriptor: the file that was checked, whatever its name is by now.
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            let attached = with_probe_rights(|| kernel.attach_alloc(&path, alloc, free));
            match attached {
                Ok(Ok(())) => self.sees_allocations = true,
                Ok(Err(error)) => self.probes_refused = Some(error.to_string()),
                Err(error) => self.probes_refused = Some(error.to_string()),
            }
        }
    }

    /// Why probes could not be put on an allocation library, if so.
    pub(super) fn probes_refused(&self) -> Option<&str> {
        self.probes_refused.as_deref()
    }

    /// Whether an allocation library was seen.
    pub(super) fn sees_allocations(&self) -> bool {
        self.sees_allocations
    }

    fn from_memory(line: &MapLine, target: &Target) -> Option<(FileKey, Image)> {
        let image = Image::from_memory(target, line.image?).ok()?;
        let key = FileKey::Memory { device: line.device, inode: line.inode, build_id: image.build_id.clone() };
        Some((key, image))
    }

    fn note_full<W: io::Write + AsFd>(&mut self, output: &mut Output<W>) {
        if !std::mem::replace(&mut self.full, true) {
            let sentence = "Too many programs and libraries at once: stacks through the newest may be cut short.";
            output.send(event::Kind::Note(Note { sentence: sentence.into() }));
        }
    }
}

/// A folder as a program names it that is in `origin`; only whole paths.
fn library_folder(named: &[u8], origin: &Path) -> Option<PathBuf> {
    let own = [&b"$ORIGIN"[..], b"${ORIGIN}"].into_iter().find_map(|word| named.strip_prefix(word));
    let folder = match own {
        Some(rest) => origin.join(OsStr::from_bytes(rest.strip_prefix(b"/").unwrap_or(rest))),
        None => PathBuf::from(OsStr::from_bytes(named)),
    };
    folder.is_absolute().then_some(folder)
}

/// Opens a regular file, without waiting for anything.
fn open_file(path: &Path) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(openat(CWD, path, flags, Mode::empty()).ok()?);
    file.metadata().is_ok_and(|metadata| metadata.is_file()).then_some(file)
}

impl Entry {
    fn new(target: Option<Target>, parent: u32, seen_ns: u64) -> Self {
        Self {
            target,
            parent,
            namespace_pid: 0,
            name: String::new(),
            executable: String::new(),
            runtime: String::new(),
            seen_ns,
            known: Rc::default(),
            slice: Slice::default(),
            announced: false,
            threads: FxHashMap::default(),
            quiet: QUIET.start,
            python: None,
            told_of_python: false,
        }
    }
}

impl Entry {
    /// Finds a Python among what is mapped, and has its frames walked.
    fn look_for_python<W: io::Write + AsFd>(
        &mut self,
        pid: u32,
        all: &[Known],
        kernel: &mut Kernel,
        output: &mut Output<W>,
    ) {
        let Some(target) = &self.target else { return };
        let found = all.iter().find_map(|known| {
            let image = &known.module.as_ref()?.image;
            let at = |name| image.symbol(name).map(|address| address.wrapping_add(known.bias));
            Some((at(python::RUNTIME)?, at(python::VERSION)))
        });
        let Some((runtime, version)) = found else { return };
        let why = match Python::find(target, runtime, version) {
            Ok(python) => {
                if kernel.set_python(pid, python.runtime, python.frames()).is_ok() {
                    self.runtime = format!("cpython {}", python.version);
                    self.python = Some(python);
                }
                return;
            }
            Err(why) => why,
        };
        if !std::mem::replace(&mut self.told_of_python, true) {
            let which = match why {
                Unsupported::Old => "is older than 3.11",
                Unsupported::FreeThreaded => "has no global lock",
                Unsupported::Unknown => "is not known here",
            };
            let sentence = format!(
                "The Python of process {pid} {which}, so its own lines are missing; record it with py-spy and open that file."
            );
            output.send(event::Kind::Note(Note { sentence }));
        }
    }
}

impl Known {
    fn is_go_program(&self) -> bool {
        self.module.as_ref().is_some_and(|module| module.image.is_go)
    }

    fn message(&self, pid: u32) -> Mapping {
        let image = self.module.as_ref().map(|module| &module.image);
        let (major, minor) = self.line.device;
        Mapping {
            pid,
            start: self.line.range.start,
            end: self.line.range.end,
            file_offset: self.line.offset,
            path: String::from_utf8_lossy(&self.line.path).into_owned(),
            device: u64::from(major) << 32 | u64::from(minor),
            inode: self.line.inode,
            build_id: image.map(|image| image.build_id.clone()).unwrap_or_default(),
            bias: self.bias,
            deleted: self.line.deleted,
            go_build_id: image.map(|image| image.go_build_id.clone()).unwrap_or_default(),
        }
    }
}
