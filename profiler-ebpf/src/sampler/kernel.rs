//! Loading and attaching the kernel program.

use std::fs::Metadata;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;

use aya::maps::{HashMap, Map, MapData, MapError, PerCpuArray, RingBuf};
use aya::programs::perf_event::{
    HardwareEvent, PerfEventConfig, PerfEventLinkId, PerfEventScope, SamplePolicy, SoftwareEvent,
};
use aya::programs::uprobe::UProbeScope;
use aya::programs::{BtfTracePoint, PerfEvent, Program, ProgramError, RawTracePoint, UProbe};
use aya::util::online_cpus;
use aya::{Btf, Ebpf, EbpfError, EbpfLoader};
use rustix::time::{ClockId, clock_gettime};

use super::layout::{Counter, FileNumbers, Record, SampleRecord, WAIT_SIZE};
use super::memory::MappedArray;
use super::tables::{Placed, Sizes, Slice, Tables};

/// The kernel program. It is aligned as an ELF file's reader wants it.
#[cfg(target_arch = "x86_64")]
static PROGRAM: &[u8] = aya::include_bytes_aligned!("../../bpf/prebuilt/sampler.x86_64.bpf.o");
#[cfg(not(target_arch = "x86_64"))]
static PROGRAM: &[u8] = &[];

const PAGES: u32 = 1 << 16;
const RULES: u32 = 1 << 16;
const MAPPINGS: u32 = 1 << 16;
/// Words of the mappings of a process that the kernel program finds by itself: `struct learned` of `bpf/layout.h`.
const LEARNED_SIZE: usize = 1 + 8 * 4;
/// Bytes of the ring, as in `bpf/sampler.bpf.c`.
const RING: u64 = 8 << 20;
/// Programs, and the tracepoints that they are for.
const TRACEPOINTS: [(&str, &str); 3] =
    [("on_fork", "sched_process_fork"), ("on_exec", "sched_process_exec"), ("on_exit", "sched_process_exit")];
/// Page faults per sample.
const FAULTS: u64 = 16;
/// Nanoseconds without a stroke of the clock after which it has stopped.
const STOPPED: u64 = 1_500_000_000;
/// Most lines of a verifier's log that are kept.
const LOG_LINES: usize = 20;

/// What to sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a source of samples of its own")]
pub struct Sources {
    /// Time on CPUs.
    pub cpu: bool,
    /// Time off CPUs.
    pub off_cpu: bool,
    /// Memory from allocators, in programs that have the allocation library.
    pub alloc: bool,
    /// First touches of memory.
    pub page_faults: bool,
}

/// How stacks are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwinding {
    /// By the tables of the files they go through.
    Tables,
    /// By frame pointers, as far as programs keep them; time on CPUs only.
    FramePointers,
}

/// How to sample.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How stacks are taken.
    pub unwinding: Unwinding,
    /// What.
    pub sources: Sources,
    /// Shortest time off a CPU that is a sample, in nanoseconds.
    pub off_cpu_threshold: u64,
    /// Tasks of this user only; `None` for any.
    pub caller: Option<u32>,
    /// Whether processes that targets start are sampled as well.
    pub children: bool,
    /// Whether the kernel's part of stacks is wanted.
    pub kernel: bool,
    /// Samples per second and CPU.
    pub frequency: u32,
    /// Inode of our pid namespace, unless it is the first.
    pub pid_namespace: Option<u32>,
    /// Rows of unwind tables there shall be room for.
    pub rows: u32,
}

/// What samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The processor's cycles.
    Cycles,
    /// A timer of the kernel.
    CpuClock,
}

/// Why the kernel program does not run.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The kernel has no description of its types.
    #[error("this kernel has no BTF (/sys/kernel/btf/vmlinux)")]
    NoBtf,
    /// There is no kernel program for this processor.
    #[error("there is no sampler for this processor yet")]
    Processor,
    /// A right is missing.
    #[error("the kernel does not permit it")]
    NotPermitted(#[source] io::Error),
    /// The kernel's checks refused the program.
    #[error("the kernel refused the sampler: {0}")]
    Refused(String),
    /// Memory ran out.
    #[error("the kernel has no memory for it")]
    Memory,
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// The end of an error's text, causes included: a verifier's log has thousands of lines.
fn tail(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

/// What the system said, somewhere among the causes.
fn system_error(error: &(dyn std::error::Error + 'static)) -> Option<i32> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(code) = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
            return Some(code);
        }
        cause = error.source();
    }
    None
}

fn classify(error: &(dyn std::error::Error + 'static)) -> KernelError {
    match system_error(error) {
        Some(code) if code == libc::EPERM || code == libc::EACCES => {
            KernelError::NotPermitted(io::Error::from_raw_os_error(code))
        }
        Some(libc::ENOMEM) => KernelError::Memory,
        _ => KernelError::Other(tail(error)),
    }
}

impl From<EbpfError> for KernelError {
    fn from(error: EbpfError) -> Self {
        classify(&error)
    }
}

impl From<MapError> for KernelError {
    fn from(error: MapError) -> Self {
        classify(&error)
    }
}

impl From<ProgramError> for KernelError {
    fn from(error: ProgramError) -> Self {
        match (&error, system_error(&error)) {
            (ProgramError::LoadError { .. }, Some(code)) if code != libc::EPERM && code != libc::ENOMEM => {
                Self::Refused(tail(&error))
            }
            _ => classify(&error),
        }
    }
}

/// The kernel program, loaded. Dropping it detaches everything.
pub struct Kernel {
    ebpf: Ebpf,
    ring: RingBuf<MapData>,
    processes: HashMap<MapData, u32, [u64; 2]>,
    waits: HashMap<MapData, u32, [u8; WAIT_SIZE]>,
    pythons: HashMap<MapData, u32, [u64; 6]>,
    files: HashMap<MapData, [u64; 2], [u64; 5]>,
    learned: HashMap<MapData, u32, [u64; LEARNED_SIZE]>,
    counters: PerCpuArray<MapData, u64>,
    /// When the clock struck last on a CPU: `struct strike` of the kernel program.
    strikes: PerCpuArray<MapData, [u64; 3]>,
    frequency: u32,
    clock_program: &'static str,
    clock: Clock,
    /// CPUs whose clock is attached.
    cpus: Vec<Clocked>,
    sources: Sources,
    memory: u64,
}

/// What the kernel program counted since it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// How often the clock should have struck while a thread ran, and did not.
    pub held_back: u64,
    /// Samples sent.
    pub samples: u64,
    /// Samples that found no room in the ring.
    pub ring_full: u64,
    /// Samples of tasks that are not the caller's.
    pub other_user: u64,
    /// Children that found no room.
    pub map_full: u64,
    /// Samples that could not be taken.
    pub not_taken: u64,
    /// Notices that found no room in the ring.
    pub notices_lost: u64,
    /// Nanoseconds spent in the sampling program.
    pub nanoseconds: u64,
}

fn taken(ebpf: &mut Ebpf, name: &str) -> Result<Map, KernelError> {
    ebpf.take_map(name).ok_or_else(|| KernelError::Other(format!("the sampler has no map {name}")))
}

fn mapped(ebpf: &mut Ebpf, name: &str, bytes: usize) -> Result<MappedArray, KernelError> {
    let Map::Array(data) = taken(ebpf, name)? else {
        return Err(KernelError::Other(format!("the sampler's map {name} is no array")));
    };
    // The mapping keeps the map alive.
    MappedArray::new(data.fd().as_fd(), bytes).map_err(|error| classify(&error))
}

fn program<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Program, KernelError> {
    ebpf.program_mut(name).ok_or_else(|| KernelError::Other(format!("the sampler has no program {name}")))
}

impl Kernel {
    /// Loads the program and attaches all of it but the clock.
    pub fn load(settings: &Settings) -> Result<(Self, Tables), KernelError> {
        if PROGRAM.is_empty() {
            return Err(KernelError::Processor);
        }
        let btf = Btf::from_sys_fs().map_err(|_| KernelError::NoBtf)?;
        let period = 1_000_000_000 / u64::from(settings.frequency.max(1));
        let sizes = Sizes { rows: settings.rows.next_multiple_of(2), pages: PAGES, rules: RULES, mappings: MAPPINGS };
        let mut ebpf = EbpfLoader::new()
            .btf(Some(&btf))
            .override_global("caller_uid", &settings.caller.unwrap_or_default(), true)
            .override_global("any_user", &u32::from(settings.caller.is_none()), true)
            .override_global("follow_children", &u32::from(settings.children), true)
            .override_global("with_kernel", &u32::from(settings.kernel), true)
            .override_global("pid_namespace", &settings.pid_namespace.unwrap_or_default(), true)
            .override_global("period_ns", &period, true)
            .override_global("off_cpu_threshold_ns", &settings.off_cpu_threshold, true)
            .map_max_entries("rows", sizes.rows / 2)
            .load(PROGRAM)?;

        // Programs first: they hold on to the maps that are taken out of the loader's hands afterwards.
        for (name, _) in TRACEPOINTS {
            let tracepoint: &mut RawTracePoint = program(&mut ebpf, name)?.try_into()?;
            tracepoint.load()?;
        }
        let Sources { cpu, off_cpu, alloc, page_faults } = settings.sources;
        let clock_program = match settings.unwinding {
            Unwinding::Tables => "on_clock",
            Unwinding::FramePointers => "on_clock_fp",
        };
        if cpu {
            let clock: &mut PerfEvent = program(&mut ebpf, clock_program)?.try_into()?;
            clock.load()?;
        }
        if page_faults {
            let fault: &mut PerfEvent = program(&mut ebpf, "on_fault")?.try_into()?;
            fault.load()?;
        }
        if off_cpu {
            let switch: &mut BtfTracePoint = program(&mut ebpf, "on_switch")?.try_into()?;
            switch.load("sched_switch", &btf)?;
        }
        if alloc {
            for name in ["on_alloc", "on_free"] {
                let probe: &mut UProbe = program(&mut ebpf, name)?.try_into()?;
                probe.load()?;
            }
        }

        let tables = Tables::new(
            mapped(&mut ebpf, "rows", sizes.rows as usize * 4)?,
            mapped(&mut ebpf, "pages", sizes.pages as usize * 8)?,
            mapped(&mut ebpf, "rules", sizes.rules as usize * crate::unwind_table::RULE_SIZE)?,
            mapped(&mut ebpf, "mappings", sizes.mappings as usize * 32)?,
            sizes,
        );
        let mut kernel = Self {
            ring: RingBuf::try_from(taken(&mut ebpf, "records")?)?,
            processes: HashMap::try_from(taken(&mut ebpf, "processes")?)?,
            pythons: HashMap::try_from(taken(&mut ebpf, "pythons")?)?,
            files: HashMap::try_from(taken(&mut ebpf, "files")?)?,
            learned: HashMap::try_from(taken(&mut ebpf, "learned")?)?,
            waits: HashMap::try_from(taken(&mut ebpf, "waits")?)?,
            counters: PerCpuArray::try_from(taken(&mut ebpf, "counters")?)?,
            strikes: PerCpuArray::try_from(taken(&mut ebpf, "strikes")?)?,
            ebpf,
            frequency: settings.frequency,
            clock_program,
            clock: Clock::CpuClock,
            cpus: Vec::new(),
            sources: settings.sources,
            memory: sizes.bytes() + RING,
        };
        for (name, event) in TRACEPOINTS {
            let tracepoint: &mut RawTracePoint = program(&mut kernel.ebpf, name)?.try_into()?;
            tracepoint.attach(event)?;
        }
        Ok((kernel, tables))
    }

    /// Starts to sample. The clock is the processor's cycles where it has them.
    pub fn start(&mut self) -> Result<Clock, KernelError> {
        if self.sources.off_cpu {
            let switch: &mut BtfTracePoint = program(&mut self.ebpf, "on_switch")?.try_into()?;
            switch.attach()?;
        }
        self.clock = Clock::Cycles;
        if !self.sources.cpu {
            self.clock = Clock::CpuClock;
        }
        if let Err(error) = self.attach_clock() {
            // A virtual machine rarely has cycles to count, and says so in many ways.
            if !self.cpus.is_empty() || matches!(error, KernelError::NotPermitted(_)) {
                return Err(error);
            }
            self.clock = Clock::CpuClock;
            self.attach_clock()?;
        }
        Ok(self.clock)
    }

    /// Attaches the clock to CPUs that came online since, and again where it has stopped.
    ///
    /// The event of a CPU that went offline is dead for good, also when the CPU is back before anybody looks: so it is
    /// when a machine sleeps.
    pub fn attach_clock(&mut self) -> Result<(), KernelError> {
        let now = now();
        let online = online_cpus().map_err(|(_, error)| classify(&error))?;
        let (kept, dead) = std::mem::take(&mut self.cpus)
            .into_iter()
            .partition(|clocked: &Clocked| online.contains(&clocked.cpu) && !self.has_stopped(clocked, now));
        self.cpus = kept;
        let dead: Vec<Clocked> = dead;
        for (name, link) in dead.into_iter().flat_map(|clocked| clocked.links) {
            let event: &mut PerfEvent = program(&mut self.ebpf, name)?.try_into()?;
            // What belongs to a CPU that is gone may be gone as well.
            let _ = event.detach(link);
        }
        let config = match self.clock {
            Clock::Cycles => PerfEventConfig::Hardware(HardwareEvent::CpuCycles),
            Clock::CpuClock => PerfEventConfig::Software(SoftwareEvent::CpuClock),
        };
        let policy = SamplePolicy::Frequency(u64::from(self.frequency));
        let new: Vec<u32> =
            online.into_iter().filter(|&cpu| self.cpus.iter().all(|clocked| clocked.cpu != cpu)).collect();
        for cpu in new {
            let scope = PerfEventScope::AllProcessesOneCpu { cpu };
            let mut links = Vec::new();
            if self.sources.page_faults {
                let faults = PerfEventConfig::Software(SoftwareEvent::PageFaults);
                let fault: &mut PerfEvent = program(&mut self.ebpf, "on_fault")?.try_into()?;
                links.push(("on_fault", fault.attach(faults, scope, SamplePolicy::Period(FAULTS), true)?));
            }
            if self.sources.cpu {
                let clock: &mut PerfEvent = program(&mut self.ebpf, self.clock_program)?.try_into()?;
                links.push((self.clock_program, clock.attach(config, scope, policy, true)?));
            }
            self.cpus.push(Clocked { cpu, since: now, links });
        }
        Ok(())
    }

    /// Whether the clock of a CPU, which strikes there all the while, has not struck for long. Where cycles are counted an
    /// idle CPU has none; there it does no harm to attach again.
    fn has_stopped(&self, clocked: &Clocked, now: u64) -> bool {
        let struck = self.strikes.get(&0, 0).ok().and_then(|strikes| Some(strikes.get(clocked.cpu as usize)?[2]));
        let quiet = now.saturating_sub(struck.unwrap_or(now).max(clocked.since));
        self.sources.cpu && quiet > STOPPED + 2_000_000_000 / u64::from(self.frequency.max(1))
    }

    /// Sees sampled allocations through a library that is mapped somewhere; `path` is where we can open it, the others are
    /// where in it the two functions begin.
    pub fn attach_alloc(&mut self, path: &str, alloc: u64, free: u64) -> Result<(), KernelError> {
        for (name, offset) in [("on_alloc", alloc), ("on_free", free)] {
            let probe: &mut UProbe = program(&mut self.ebpf, name)?.try_into()?;
            probe.attach(offset, path, UProbeScope::AllProcesses)?;
        }
        Ok(())
    }

    /// What is sampled.
    pub fn sources(&self) -> Sources {
        self.sources
    }

    /// Threads that are off their CPU now, as samples whose time is when they left.
    pub fn waiting(&self, mut with: impl FnMut(&SampleRecord<'_>)) {
        for wait in &self.waits {
            if let Ok((_, bytes)) = wait
                && let Some(Record::Sample(record)) = Record::parse(&bytes)
            {
                with(&record);
            }
        }
    }

    /// What samples.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Samples per second and CPU.
    pub fn frequency(&self) -> u32 {
        self.frequency
    }

    /// Bytes of the arrays and the ring, as far as they are fixed.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// How many CPUs are sampled.
    pub fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Samples a process from now on, or with other mappings; what lies outside of them is not worth a notice before
    /// `quiet_until` (`CLOCK_MONOTONIC`).
    pub fn set_process(&mut self, tgid: u32, slice: Slice, quiet_until: u64) -> Result<(), KernelError> {
        let value = [u64::from(slice.first) | u64::from(slice.count) << 32, quiet_until];
        Ok(self.processes.insert(tgid, value, 0)?)
    }

    /// The same for a process that is sampled already. One that ended stays away.
    pub fn replace_process(&mut self, tgid: u32, slice: Slice, quiet_until: u64) {
        const EXISTING: u64 = 2;
        let value = [u64::from(slice.first) | u64::from(slice.count) << 32, quiet_until];
        let _ = self.processes.insert(tgid, value, EXISTING);
        // What was found out in the meantime is in the slice, or is there no more.
        let _ = self.learned.remove(&tgid);
    }

    /// Makes known where the table of a file is, so that it serves every process that maps the file, from the first moment.
    /// `shift` is how far the addresses of its code are from its places in the file. Without room the recorder's own look at
    /// a process has to do.
    pub fn add_file(&mut self, file: &Metadata, shift: u64, placed: Placed) {
        let FileNumbers { inode, device } = FileNumbers::of(file);
        let value = [
            // Pages are counted from the table's base on, as in a slice.
            shift.wrapping_sub(placed.base),
            file.size(),
            file.mtime().cast_unsigned(),
            file.mtime_nsec().cast_unsigned() | u64::from(placed.first_page) << 32,
            u64::from(placed.pages),
        ];
        let _ = self.files.insert([inode, device], value, 0);
    }

    /// Walks a process's interpreter as well; `layout` as `struct python` of `bpf/layout.h`.
    pub fn set_python(&mut self, tgid: u32, runtime: u64, layout: [u32; 10]) -> Result<(), KernelError> {
        let mut value = [runtime; 6];
        for (word, pair) in value[1..].iter_mut().zip(layout.as_chunks::<2>().0) {
            *word = u64::from(pair[0]) | u64::from(pair[1]) << 32;
        }
        Ok(self.pythons.insert(tgid, value, 0)?)
    }

    /// Samples a process no more.
    pub fn remove_process(&mut self, tgid: u32) {
        // It may have ended, which removes it as well.
        let _ = self.processes.remove(&tgid);
    }

    /// Hands out the oldest record, if there is one.
    pub fn next_record<T>(&mut self, with: impl FnOnce(Option<Record<'_>>) -> T) -> Option<T> {
        let item = self.ring.next()?;
        Some(with(Record::parse(&item)))
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        let sum =
            |counter: Counter| self.counters.get(&(counter as u32), 0).map_or(0, |values| values.iter().copied().sum());
        Counters {
            held_back: sum(Counter::HeldBack),
            samples: sum(Counter::Samples),
            ring_full: sum(Counter::RingFull),
            other_user: sum(Counter::OtherUser),
            map_full: sum(Counter::MapFull),
            not_taken: sum(Counter::NotTaken),
            notices_lost: sum(Counter::NoticesLost),
            nanoseconds: sum(Counter::Nanoseconds),
        }
    }
}

/// A CPU that is sampled.
struct Clocked {
    cpu: u32,
    /// When it was attached to, on the clock of the samples.
    since: u64,
    /// The programs that are attached there.
    links: Vec<(&'static str, PerfEventLinkId)>,
}

/// Now, on the clock of the samples.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or_default() * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or_default()
}

impl AsFd for Kernel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}
