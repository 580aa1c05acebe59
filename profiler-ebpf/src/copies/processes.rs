//! The processes that are recorded: their code, their threads, and what of it the parent knows.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::image::Image;
use super::proc;
use super::records::{Mapped, Sample};
use super::unwind::{Cache, Unwinder, Unwound};
use crate::mapped_file::{self, MappedFile};
use crate::protocol::{Exit, Mapping, Process, Thread, event};

/// Most processes that are told apart at one time. Samples of more are counted as lost.
const MAX_PROCESSES: usize = 4_096;

/// Most files that are kept.
const MAX_IMAGES: usize = 4_096;

/// What a file is known by.
type ImageKey = (u64, u64);

/// All processes.
#[derive(Default)]
pub(super) struct Processes {
    known: FxHashMap<u32, State>,
    images: FxHashMap<ImageKey, Option<Arc<Image>>>,
    cache: Cache,
}

/// One process.
#[derive(Clone, Default)]
struct State {
    process: Process,
    mappings: Vec<Mapping>,
    unwinder: Unwinder,
    threads: BTreeSet<u32>,
    names: FxHashMap<u32, String>,
    /// Threads whose name the parent knows.
    told: BTreeSet<u32>,
}

impl Processes {
    /// Whether a process is being recorded.
    pub(super) fn knows(&self, pid: u32) -> bool {
        self.known.contains_key(&pid)
    }

    /// Takes in a process as it is now.
    pub(super) fn add(&mut self, pid: u32, time_ns: u64, tell: &mut impl FnMut(event::Kind)) {
        if self.known.len() >= MAX_PROCESSES {
            return;
        }
        let threads: BTreeSet<u32> = proc::threads(pid).unwrap_or_default().into_iter().collect();
        let names = threads.iter().filter_map(|&tid| Some((tid, proc::thread_name(pid, tid)?))).collect();
        self.known.insert(pid, State { threads, names, ..State::default() });
        self.describe(pid, time_ns, tell);
        for mapped in proc::executable_mappings(pid) {
            self.map(pid, &mapped, tell);
        }
    }

    /// A thread was made, or a process.
    pub(super) fn forked(&mut self, of: (u32, u32), to: (u32, u32), time_ns: u64, tell: &mut impl FnMut(event::Kind)) {
        let ((parent, parent_tid), (pid, tid)) = (of, to);
        let name = self.known.get(&parent).and_then(|state| state.names.get(&parent_tid)).cloned();
        if pid == parent {
            let Some(state) = self.known.get_mut(&pid) else { return };
            state.threads.insert(tid);
            state.names.extend(name.map(|name| (tid, name)));
            return;
        }
        if self.known.len() >= MAX_PROCESSES {
            return;
        }
        let Some(origin) = self.known.get(&parent) else { return };
        // Until it becomes another program, it is a copy of its parent.
        let state = State {
            threads: BTreeSet::from([tid]),
            names: name.map(|name| (tid, name)).into_iter().collect(),
            told: BTreeSet::new(),
            process: Process { pid, parent, namespace_pid: 0, time_ns, ..origin.process.clone() },
            mappings: origin.mappings.clone(),
            unwinder: origin.unwinder.clone(),
        };
        let mut process = state.process.clone();
        process.namespace_pid = proc::status(pid).map_or(pid, |status| status.namespace_pid);
        tell(event::Kind::Process(process));
        for mapping in &state.mappings {
            tell(event::Kind::Mapping(Mapping { pid, ..mapping.clone() }));
        }
        self.known.insert(pid, state);
    }

    /// A process became another program: nothing of its code is left.
    pub(super) fn became(
        &mut self,
        pid: u32,
        tid: u32,
        name: String,
        time_ns: u64,
        tell: &mut impl FnMut(event::Kind),
    ) {
        let Some(state) = self.known.get_mut(&pid) else { return };
        *state = State { threads: BTreeSet::from([tid]), ..State::default() };
        state.names.insert(tid, name);
        self.describe(pid, time_ns, tell);
    }

    fn describe(&mut self, pid: u32, time_ns: u64, tell: &mut impl FnMut(event::Kind)) {
        let Some(state) = self.known.get_mut(&pid) else { return };
        let status = proc::status(pid).unwrap_or_default();
        let name = state.names.get(&pid).cloned().or_else(|| proc::thread_name(pid, pid)).unwrap_or_default();
        state.process = Process {
            pid,
            namespace_pid: if status.namespace_pid == 0 { pid } else { status.namespace_pid },
            parent: status.parent,
            name,
            executable: proc::executable(pid),
            time_ns,
            runtime: String::new(),
        };
        tell(event::Kind::Process(state.process.clone()));
    }

    /// Executable memory came to a process.
    pub(super) fn map(&mut self, pid: u32, mapped: &Mapped, tell: &mut impl FnMut(event::Kind)) {
        let Some(state) = self.known.get_mut(&pid) else { return };
        if !mapped.is_executable || mapped.start >= mapped.end || state.mappings.len() >= proc::MAX_MAPPINGS {
            return;
        }
        // What was there is gone, at least in part.
        let unwinder = &mut state.unwinder;
        state.mappings.retain(|known| {
            let is_apart = known.end <= mapped.start || mapped.end <= known.start;
            if !is_apart {
                unwinder.remove(known.start);
            }
            is_apart
        });
        let path = match mapped.path.as_str() {
            "//anon" => "",
            path => path,
        };
        let image = if path == "[vdso]" {
            vdso()
        } else if path.starts_with('/') && mapped.inode != 0 {
            let key = (mapped.device, mapped.inode);
            if self.images.len() >= MAX_IMAGES {
                self.images.clear();
            }
            let range = (mapped.start, mapped.end);
            let file = MappedFile { pid, range, path, device: mapped.device, inode: mapped.inode };
            let read = || mapped_file::open(file).and_then(Image::read).map(Arc::new);
            self.images.entry(key).or_insert_with(read).clone()
        } else {
            None
        };
        let page = rustix::param::page_size() as u64;
        let bias = image.as_ref().and_then(|image| {
            if path == "[vdso]" { Some(mapped.start) } else { image.bias(mapped.start, mapped.file_offset, page) }
        });
        if let (Some(image), Some(bias)) = (&image, bias) {
            state.unwinder.add(mapped.start..mapped.end, bias, image);
        }
        let mapping = Mapping {
            pid,
            start: mapped.start,
            end: mapped.end,
            file_offset: mapped.file_offset,
            path: path.strip_suffix(" (deleted)").unwrap_or(path).to_owned(),
            device: mapped.device,
            inode: mapped.inode,
            build_id: image.as_ref().map(|image| image.build_id.clone()).unwrap_or_default(),
            bias: bias.unwrap_or(0),
            deleted: path.ends_with(" (deleted)"),
            go_build_id: image.as_ref().map(|image| image.go_build_id.clone()).unwrap_or_default(),
        };
        tell(event::Kind::Mapping(mapping.clone()));
        if let Some(image) = &image
            && !image.go_build_id.is_empty()
            && state.process.runtime.is_empty()
        {
            "go".clone_into(&mut state.process.runtime);
        }
        state.mappings.push(mapping);
    }

    /// Takes in the mappings of all processes as they are now, where they were not told.
    pub(super) fn look_again(&mut self, tell: &mut impl FnMut(event::Kind)) {
        const MOST: usize = 64;
        let pids: Vec<u32> = self.known.keys().copied().take(MOST).collect();
        for pid in pids {
            for mapped in proc::executable_mappings(pid) {
                let is_known = self.known.get(&pid).is_some_and(|state| {
                    state
                        .mappings
                        .iter()
                        .any(|known| (known.start, known.end, known.inode) == (mapped.start, mapped.end, mapped.inode))
                });
                if !is_known {
                    self.map(pid, &mapped, tell);
                }
            }
        }
    }

    /// A thread has another name.
    pub(super) fn renamed(&mut self, pid: u32, tid: u32, name: String) {
        if let Some(state) = self.known.get_mut(&pid) {
            state.told.remove(&tid);
            state.names.insert(tid, name);
        }
    }

    /// A thread ended, and its process with the last one.
    pub(super) fn exited(&mut self, pid: u32, tid: u32, time_ns: u64, tell: &mut impl FnMut(event::Kind)) {
        let Some(state) = self.known.get_mut(&pid) else { return };
        state.threads.remove(&tid);
        state.names.remove(&tid);
        state.told.remove(&tid);
        if state.threads.is_empty() {
            self.known.remove(&pid);
            tell(event::Kind::Exit(Exit { pid, time_ns }));
        }
    }

    /// Walks the stack of a sample, after telling the thread's name where it is new.
    pub(super) fn unwind(&mut self, sample: &Sample, tell: &mut impl FnMut(event::Kind)) -> Option<Unwound> {
        let state = self.known.get_mut(&sample.pid)?;
        if state.told.insert(sample.tid)
            && let Some(name) = state.names.get(&sample.tid)
        {
            tell(event::Kind::Thread(Thread { pid: sample.pid, tid: sample.tid, name: name.clone() }));
        }
        Some(state.unwinder.unwind(sample, &mut self.cache))
    }
}

/// The code that the kernel maps into every process; ours is like everybody's.
fn vdso() -> Option<Arc<Image>> {
    static VDSO: OnceLock<Option<Arc<Image>>> = OnceLock::new();
    let read = || {
        use std::os::unix::fs::FileExt;
        let mapped = proc::executable_mappings(std::process::id()).into_iter().find(|it| it.path == "[vdso]")?;
        let mut bytes = vec![0; usize::try_from(mapped.end - mapped.start).ok()?];
        std::fs::File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, mapped.start).ok()?;
        Image::of_bytes(&bytes).map(Arc::new)
    };
    VDSO.get_or_init(read).clone()
}
