//! Recording without any privilege: the kernel copies a piece of each stack, we unwind it.
//!
//! ```text
//! perf_event_open per thread and CPU ─▶ ring per CPU ─▶ records in order ─▶ framehop ─▶ Events
//! ```
//!
//! This works for the user's own processes wherever `perf_event_paranoid` is 2 or less, and costs a
//! hundred times the memory traffic of unwinding in the kernel. A sample takes 8 to 32 KiB of a ring
//! that may be no larger than what the kernel lets a user lock, so it has to be emptied often.
//!
//! Records of several CPUs come in several rings. Each round they are sorted by time, and only those
//! are used that nothing earlier can follow.
//!
//! What is not here: names of functions, files that are written, programs that are started.

mod control;
mod image;
mod kernel;
mod perf;
mod proc;
mod processes;
mod records;
mod unwind;

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::children;
use crate::protocol::{
    Attached, End, EndReason, Event, EventKind, Failure, FailureKind, Hello, Loss, Lost, Method, Note, Progress,
    Sample, StackEnd, Start, VERSION, event, write_frame, write_magic,
};
use control::{Control, MAX_TARGETS, Said};
use kernel::Kernel;
use perf::{Attributes, Ring, flag};
use processes::Processes;
use records::{Body, Layout, Record};

/// Most samples per second and CPU.
const MAX_FREQUENCY: u32 = 1_999;

/// Longest recording.
const MAX_DURATION: Duration = Duration::from_hours(1);

/// Largest ring, in bytes of data.
const MAX_RING: u64 = 8 << 20;

/// Records that other CPUs may still be writing are this young.
const SETTLING_NS: u64 = 2_000_000;

/// Why recording can't go on.
enum Broken {
    /// What the parent is told.
    Failure(Failure),
    /// Nobody listens any more.
    ParentGone,
}

impl From<io::Error> for Broken {
    fn from(_: io::Error) -> Self {
        Self::ParentGone
    }
}

fn failure(kind: FailureKind, sentence: impl Into<String>) -> Broken {
    Broken::Failure(Failure { kind: kind.into(), sentence: sentence.into(), ..Failure::default() })
}

/// Records as the parent asks, until it says stop or is gone.
///
/// `commands` is a Unix stream socket, or whatever else the parent's commands come from.
pub fn run(commands: OwnedFd, events: impl Write) -> io::Result<()> {
    let mut out = Out { events, buffer: Vec::new(), samples: 0, complete: 0 };
    write_magic(&mut out.events)?;
    match record(&mut Control::new(commands), &mut out) {
        Ok(()) => Ok(()),
        Err(Broken::Failure(failure)) => {
            out.tell(event::Kind::Failure(failure))?;
            out.events.flush()
        }
        Err(Broken::ParentGone) => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

/// The stream to the parent.
struct Out<W> {
    events: W,
    buffer: Vec<u8>,
    samples: u64,
    complete: u64,
}

impl<W: Write> Out<W> {
    fn tell(&mut self, kind: event::Kind) -> io::Result<()> {
        write_frame(&Event { kind: Some(kind) }, &mut self.buffer, &mut self.events)
    }

    fn lose(&mut self, reason: Loss, samples: u64) -> io::Result<()> {
        if samples == 0 {
            return Ok(());
        }
        self.tell(event::Kind::Lost(Lost { reason: reason.into(), samples }))
    }

    fn progress(&self) -> Progress {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Progress {
            samples: self.samples,
            complete: self.complete,
            recorder_ns: nanoseconds(time.tv_sec, time.tv_nsec),
            sampling_ns: 0,
            memory: resident_memory(),
        }
    }
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> u64 {
    let whole = u64::try_from(seconds).unwrap_or(0).saturating_mul(1_000_000_000);
    whole.saturating_add(u64::try_from(nanoseconds).unwrap_or(0))
}

fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    nanoseconds(time.tv_sec, time.tv_nsec)
}

fn resident_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Option<u64> = text.split_whitespace().nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

fn record(control: &mut Control, out: &mut Out<impl Write>) -> Result<(), Broken> {
    let start = loop {
        match control.receive().map_err(|error| failure(FailureKind::BadCommand, format!("the command: {error}")))? {
            Said::Start(start) => break start,
            Said::Stop => return Err(Broken::ParentGone),
            Said::Nothing => {}
        }
    };
    let pidfds = control.take_descriptors();
    let plan = Plan::of(&start)?;
    for &pid in &start.targets {
        check_target(pid, start.any_user)?;
    }
    raise_descriptor_limit();
    let time = clock_gettime(ClockId::Realtime);
    let (opened, layout) = open_all(&start, &plan)?;
    let processes = opened.processes;
    out.tell(event::Kind::Hello(Hello {
        version: VERSION,
        recorder: env!("CARGO_PKG_VERSION").to_owned(),
        method: Method::StackCopies.into(),
        limited_because: String::new(),
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        clock: if plan.kind == EventKind::Cpu { "cpu-clock".to_owned() } else { "page-faults".to_owned() },
        frequency: plan.frequency,
        realtime_ns: i64::try_from(nanoseconds(time.tv_sec, time.tv_nsec)).unwrap_or(i64::MAX),
        monotonic_ns: monotonic_ns(),
        architecture: std::env::consts::ARCH.to_owned(),
    }))?;
    if start.kernel && !layout.with_kernel {
        out.tell(event::Kind::Note(Note {
            sentence: "time in the kernel is not recorded, since kernel.perf_event_paranoid is above 1; `sudo sysctl \
                       kernel.perf_event_paranoid=1` allows it"
                .to_owned(),
        }))?;
    }
    if opened.refused > 0 {
        let sentence = match opened.refused {
            1 => "one process that was started before the recording can't be recorded".to_owned(),
            many => format!("{many} processes that were started before the recording can't be recorded"),
        };
        out.tell(event::Kind::Note(Note { sentence }))?;
    }
    let mut recording = Recording {
        plan,
        layout,
        rings: opened.rings,
        extra: opened.extra,
        processes: Processes::default(),
        kernel: Kernel::default(),
        pending: Vec::new(),
        throttled_since: FxHashMap::default(),
        told: Vec::new(),
    };
    recording.run(control, &start.targets, &processes, &pidfds, out)
}

/// What of a start was understood.
#[derive(Clone, Copy, Debug)]
struct Plan {
    kind: EventKind,
    frequency: u32,
    children: bool,
    kernel: bool,
    duration: Duration,
    /// Bytes of a stack that are copied.
    stack: u32,
    /// How often rings are emptied.
    round: Duration,
}

impl Plan {
    fn of(start: &Start) -> Result<Self, Broken> {
        let bad = |sentence: String| failure(FailureKind::BadCommand, sentence);
        if start.version != VERSION {
            return Err(bad(format!("the recorder speaks version {VERSION}, its parent {}", start.version)));
        }
        if start.targets.is_empty() || start.targets.len() > MAX_TARGETS {
            return Err(bad(format!("between 1 and {MAX_TARGETS} processes can be recorded at a time")));
        }
        if !(1..=MAX_FREQUENCY).contains(&start.frequency) {
            return Err(bad(format!("the frequency must be from 1 to {MAX_FREQUENCY}")));
        }
        if Duration::from_nanos(start.duration_ns) > MAX_DURATION {
            return Err(bad("a recording may take an hour at most".to_owned()));
        }
        let kind = match start.events[..] {
            [event] if event == EventKind::Cpu as i32 => EventKind::Cpu,
            [event] if event == EventKind::PageFault as i32 => EventKind::PageFault,
            _ => {
                let sentence = "waiting and allocations can't be recorded without eBPF";
                return Err(failure(FailureKind::NotPermitted, sentence));
            }
        };
        // What the ring holds must last until it is emptied, whatever the frequency.
        let (stack, milliseconds) = match start.frequency {
            ..=199 => (32 << 10, 40),
            200..=499 => (16 << 10, 20),
            _ => (8 << 10, 10),
        };
        Ok(Self {
            kind,
            frequency: start.frequency,
            children: start.children,
            kernel: start.kernel,
            duration: match start.duration_ns {
                0 => MAX_DURATION,
                duration => Duration::from_nanos(duration),
            },
            stack,
            round: Duration::from_millis(milliseconds),
        })
    }

    fn attributes(&self, layout: Layout) -> Attributes {
        let inherit = if self.children { flag::INHERIT } else { 0 };
        let kernel = if layout.with_kernel { flag::EXCLUDE_CALLCHAIN_USER } else { flag::EXCLUDE_KERNEL };
        let (config, rate, frequency) = match self.kind {
            EventKind::PageFault => (perf::PAGE_FAULTS, PAGE_FAULT_PERIOD, 0),
            _ => (perf::CPU_CLOCK, u64::from(self.frequency), flag::FREQUENCY),
        };
        Attributes {
            kind: perf::SOFTWARE,
            config,
            period_or_frequency: rate,
            sample_type: layout.sample_type(),
            flags: inherit
                | kernel
                | frequency
                | flag::EXCLUDE_HYPERVISOR
                | flag::MMAP
                | flag::MMAP2
                | flag::COMM
                | flag::COMM_EXEC
                | flag::TASK
                | flag::WATERMARK
                | flag::SAMPLE_ID_ALL
                | flag::USE_CLOCK,
            user_registers: unwind::REGISTERS,
            user_stack: self.stack,
            clock: libc::CLOCK_MONOTONIC,
            max_stack: if layout.with_kernel { 127 } else { 0 },
            ..Attributes::default()
        }
    }

    /// What one sample stands for.
    fn value(&self) -> u64 {
        match self.kind {
            EventKind::PageFault => PAGE_FAULT_PERIOD,
            _ => 1_000_000_000 / u64::from(self.frequency),
        }
    }
}

/// Page faults per sample.
const PAGE_FAULT_PERIOD: u64 = 16;

/// Only the caller's own processes, and no program that got other rights.
fn check_target(pid: u32, any_user: bool) -> Result<(), Broken> {
    let Some(status) = proc::status(pid) else {
        return Err(failure(FailureKind::Target, format!("there is no process {pid}")));
    };
    let effective = rustix::process::geteuid();
    let variable = |name: &str| std::env::var(name).ok()?.parse().ok();
    let caller = if effective.is_root() {
        variable("SUDO_UID").or_else(|| variable("PKEXEC_UID")).unwrap_or(0)
    } else {
        rustix::process::getuid().as_raw()
    };
    if status.users != [caller; 3] && !(any_user && effective.is_root()) {
        return Err(failure(FailureKind::Target, format!("process {pid} belongs to another user")));
    }
    Ok(())
}

/// One descriptor per thread and CPU may be many.
fn raise_descriptor_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    // Without it fewer threads can be recorded, which is said when it comes to that.
    let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Events and their rings.
struct Opened {
    rings: Vec<Ring>,
    /// Events of further threads, whose records go to the rings.
    extra: FxHashMap<u32, Vec<OwnedFd>>,
    /// The targets, and what they have started.
    processes: Vec<u32>,
    /// How many of the latter could not be opened.
    refused: usize,
}

/// Opens events for all threads there are, with the kernel's part if that is allowed.
fn open_all(start: &Start, plan: &Plan) -> Result<(Opened, Layout), Broken> {
    let registers = unwind::REGISTERS.count_ones();
    let layout = Layout { with_kernel: plan.kernel, registers };
    match open_layout(start, plan, layout) {
        Err(OpenError { error, .. }) if plan.kernel && is_refusal(&error) => {
            let layout = Layout { with_kernel: false, ..layout };
            open_layout(start, plan, layout).map(|opened| (opened, layout)).map_err(OpenError::into_broken)
        }
        other => other.map(|opened| (opened, layout)).map_err(OpenError::into_broken),
    }
}

struct OpenError {
    pid: u32,
    error: io::Error,
}

fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

impl OpenError {
    /// In words, with what would help.
    fn into_broken(self) -> Broken {
        let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
        Broken::Failure(self.into_failure(paranoid.ok().and_then(|text| text.trim().parse().ok())))
    }

    /// By the system's setting of who may record; `None` where it has no such events at all.
    fn into_failure(self, paranoid: Option<i32>) -> Failure {
        let Self { pid, error } = self;
        let detail = error.to_string();
        let (kind, sentence, remedy) = match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => match paranoid {
                Some(level) if level > 2 => (
                    FailureKind::NotPermitted,
                    format!("this system lets no user record programs: kernel.perf_event_paranoid is {level}"),
                    "sudo sysctl kernel.perf_event_paranoid=2",
                ),
                None => (FailureKind::Kernel, "this kernel can't record programs: perf events are off".to_owned(), ""),
                Some(_) => (
                    FailureKind::NotPermitted,
                    format!(
                        "process {pid} may not be recorded by this user (in a container, its seccomp profile may forbid it)"
                    ),
                    "",
                ),
            },
            Some(libc::ESRCH) => (FailureKind::Target, format!("process {pid} is gone"), ""),
            Some(libc::EMFILE | libc::ENFILE) => (
                FailureKind::Resources,
                format!("process {pid} has more threads than files may be open"),
                "ulimit -n unlimited",
            ),
            Some(libc::ENOSYS) => {
                (FailureKind::Kernel, "this kernel can't record programs: perf events are off".to_owned(), "")
            }
            _ => (FailureKind::Kernel, format!("the kernel refuses to sample process {pid}: {detail}"), ""),
        };
        Failure { kind: kind.into(), sentence, remedy: remedy.to_owned(), detail }
    }
}

fn open_layout(start: &Start, plan: &Plan, layout: Layout) -> Result<Opened, OpenError> {
    let mut opening = Opening {
        attributes: plan.attributes(layout),
        stack: plan.stack as usize,
        cpus: proc::online_cpus(),
        rings: Vec::new(),
        extra: FxHashMap::default(),
    };
    let (mut processes, mut refused) = (start.targets.clone(), 0);
    for &pid in &start.targets {
        opening.open(pid)?;
    }
    // What a process starts from when it has events on has them as well; the rest must be there by then.
    let mut at = 0;
    while plan.children
        && let Some(&parent) = processes.get(at)
    {
        at += 1;
        for pid in children::of(parent) {
            if processes.contains(&pid) {
                continue;
            }
            if check_target(pid, start.any_user).is_ok() && opening.open(pid).is_ok() {
                processes.push(pid);
            } else if proc::status(pid).is_some() {
                refused += 1;
            }
        }
    }
    if opening.rings.is_empty() {
        let error = io::Error::from_raw_os_error(libc::ESRCH);
        return Err(OpenError { pid: start.targets.first().copied().unwrap_or(0), error });
    }
    let rings = opening.rings.into_iter().map(|(_, ring)| ring).collect();
    Ok(Opened { rings, extra: opening.extra, processes, refused })
}

/// Events and their rings, while they are opened.
struct Opening {
    attributes: Attributes,
    stack: usize,
    cpus: Vec<u32>,
    /// By CPU.
    rings: Vec<(u32, Ring)>,
    extra: FxHashMap<u32, Vec<OwnedFd>>,
}

impl Opening {
    /// Opens events for the threads of a process.
    fn open(&mut self, pid: u32) -> Result<(), OpenError> {
        // Threads may be made meanwhile; those of threads that have an event already inherit it.
        let threads =
            proc::threads(pid).map_err(|_| OpenError { pid, error: io::Error::from_raw_os_error(libc::ESRCH) })?;
        for tid in threads {
            for &cpu in &self.cpus {
                let event = match perf::open(&self.attributes, tid, cpu) {
                    Ok(event) => event,
                    // The thread has ended, or the CPU was taken away.
                    Err(error) if error.raw_os_error() == Some(libc::ENODEV) => continue,
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) && tid != pid => break,
                    Err(error) => return Err(OpenError { pid, error }),
                };
                if let Some((_, ring)) = self.rings.iter().find(|(of, _)| *of == cpu) {
                    perf::send_to(&event, ring).map_err(|error| OpenError { pid, error })?;
                    self.extra.entry(tid).or_default().push(event);
                } else {
                    let ring = map_ring(event, ring_size(self.cpus.len()), 2 * self.stack)
                        .map_err(|error| OpenError { pid, error })?;
                    self.rings.push((cpu, ring));
                }
            }
        }
        Ok(())
    }
}

/// Maps a ring, as large as may be if it can't be as large as wanted, but for two samples at least.
fn map_ring(mut event: OwnedFd, bytes: usize, at_least: usize) -> io::Result<Ring> {
    let page = rustix::param::page_size();
    let mut pages = (bytes / page).max(1);
    loop {
        match Ring::map(event, pages) {
            Ok(ring) => return Ok(ring),
            Err((again, error)) => {
                pages /= 2;
                if pages * page < at_least {
                    return Err(error);
                }
                event = again;
            }
        }
    }
}

/// What each of so many rings may hold: their memory is locked, and users may lock only so much.
fn ring_size(rings: usize) -> usize {
    let number = |path: &str| std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let per_cpu = number("/proc/sys/kernel/perf_event_mlock_kb").unwrap_or(516) << 10;
    let shared = rustix::process::getrlimit(Resource::Memlock).current.unwrap_or(u64::MAX);
    // One page of each is not data, and other programs of the user may hold some of theirs.
    let page = rustix::param::page_size() as u64;
    let shared = if rustix::process::geteuid().is_root() { u64::MAX } else { shared / 2 };
    let size = per_cpu.saturating_sub(page).saturating_add(shared / rings.max(1) as u64).clamp(page, MAX_RING);
    usize::try_from(1 << size.ilog2()).unwrap_or(1 << 19)
}

/// A recording that runs.
struct Recording {
    plan: Plan,
    layout: Layout,
    rings: Vec<Ring>,
    extra: FxHashMap<u32, Vec<OwnedFd>>,
    processes: Processes,
    kernel: Kernel,
    /// Records that are too young to be used, with the ring they came from.
    pending: Vec<(usize, Record)>,
    throttled_since: FxHashMap<usize, u64>,
    /// What to say next; a buffer that is used again.
    told: Vec<event::Kind>,
}

impl Recording {
    fn run(
        &mut self,
        control: &mut Control,
        targets: &[u32],
        processes: &[u32],
        pidfds: &[OwnedFd],
        out: &mut Out<impl Write>,
    ) -> Result<(), Broken> {
        let now = monotonic_ns();
        for &pid in processes {
            self.processes.add(pid, now, &mut |kind| self.told.push(kind));
        }
        self.say(out)?;
        self.forget_twins(out)?;
        out.tell(event::Kind::Attached(Attached { time_ns: monotonic_ns() }))?;
        out.events.flush()?;

        let begin = Instant::now();
        let mut told_progress = Instant::now();
        let mut are_alive: Vec<bool> = vec![true; pidfds.len()];
        let reason = loop {
            let left = self.plan.duration.saturating_sub(begin.elapsed());
            let stop = self.wait(control, pidfds, &mut are_alive, left.min(self.plan.round))?;
            self.round(false, out)?;
            if told_progress.elapsed() >= Duration::from_secs(1) {
                told_progress = Instant::now();
                let progress = out.progress();
                out.tell(event::Kind::Progress(progress))?;
            }
            out.events.flush()?;
            if stop {
                break EndReason::Stopped;
            }
            let has_ended = if pidfds.is_empty() {
                !targets.iter().any(|&pid| self.processes.knows(pid))
            } else {
                !are_alive.contains(&true)
            };
            if has_ended {
                break EndReason::TargetsEnded;
            }
            if begin.elapsed() >= self.plan.duration {
                break EndReason::Duration;
            }
        };
        self.round(true, out)?;
        let progress = out.progress();
        let end = End { reason: reason.into(), time_ns: monotonic_ns(), progress: Some(progress) };
        out.tell(event::Kind::End(end))?;
        out.events.flush()?;
        Ok(())
    }

    /// Waits for a round to be over, or for something that can't wait; says whether to stop.
    fn wait(
        &self,
        control: &mut Control,
        pidfds: &[OwnedFd],
        are_alive: &mut [bool],
        time: Duration,
    ) -> Result<bool, Broken> {
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos().max(1)) };
        let watched: Vec<usize> = (0..pidfds.len()).filter(|&at| are_alive[at]).collect();
        let mut polled = vec![PollFd::new(control, PollFlags::IN)];
        polled.extend(watched.iter().map(|&at| PollFd::new(&pidfds[at], PollFlags::IN)));
        // Only what is nearly full wakes us before its time.
        let first_ring = polled.len();
        polled.extend(self.rings.iter().map(|ring| PollFd::from_borrowed_fd(ring.as_fd(), PollFlags::IN)));
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(failure(FailureKind::Resources, format!("waiting failed: {error}"))),
        }
        let hung_up = polled[first_ring..].iter().any(|ring| ring.revents().contains(PollFlags::HUP));
        let said = !polled[0].revents().is_empty();
        for (entry, &at) in polled[1..first_ring].iter().zip(&watched) {
            if !entry.revents().is_empty() {
                are_alive[at] = false;
            }
        }
        if said {
            return Ok(matches!(control.receive(), Ok(Said::Stop) | Err(_)));
        }
        // A ring whose thread has ended is always ready; without this there would be no waiting.
        if hung_up && are_alive.contains(&true) {
            std::thread::sleep(time.min(Duration::from_millis(5)));
        }
        Ok(false)
    }

    /// Empties the rings and uses what is old enough; at the end, everything.
    fn round(&mut self, is_last: bool, out: &mut Out<impl Write>) -> Result<(), Broken> {
        let settled = if is_last { u64::MAX } else { monotonic_ns().saturating_sub(SETTLING_NS) };
        self.drain();
        let (ready, young) =
            std::mem::take(&mut self.pending).into_iter().partition(|(_, record)| record.time_ns <= settled);
        self.pending = young;
        let ready: Vec<(usize, Record)> = ready;
        for (ring, record) in ready {
            self.take(ring, record, out)?;
        }
        Ok(())
    }

    fn drain(&mut self) {
        let mut buffer = Vec::new();
        for (at, ring) in self.rings.iter().enumerate() {
            ring.drain(&mut buffer, |bytes| {
                self.pending.extend(records::parse(bytes, self.layout).map(|record| (at, record)));
            });
        }
        // Stable, so records of one ring stay as they were.
        self.pending.sort_by_key(|(_, record)| record.time_ns);
    }

    /// Closes events of threads that were made after the thread that made them had an event, but
    /// before theirs was opened: they have inherited one as well.
    fn forget_twins(&mut self, out: &mut Out<impl Write>) -> Result<(), Broken> {
        self.drain();
        for (_, record) in &self.pending {
            if let Body::Forked { tid, .. } = record.body {
                self.extra.remove(&tid);
            }
        }
        self.say(out)
    }

    /// Sends what has gathered.
    fn say(&mut self, out: &mut Out<impl Write>) -> Result<(), Broken> {
        for kind in self.told.drain(..) {
            out.tell(kind)?;
        }
        Ok(())
    }

    fn take(&mut self, ring: usize, record: Record, out: &mut Out<impl Write>) -> Result<(), Broken> {
        let Record { time_ns, body } = record;
        let told = &mut self.told;
        let mut tell = |kind| told.push(kind);
        match body {
            Body::Mapped { pid, mapped } => self.processes.map(pid, &mapped, &mut tell),
            Body::Named { pid, tid, name, is_exec: true } => {
                self.processes.became(pid, tid, name, time_ns, &mut tell);
            }
            Body::Named { pid, tid, name, is_exec: false } => self.processes.renamed(pid, tid, name),
            Body::Forked { pid, parent, tid, parent_tid } => {
                self.processes.forked((parent, parent_tid), (pid, tid), time_ns, &mut tell);
            }
            Body::Exited { pid, tid } => self.processes.exited(pid, tid, time_ns, &mut tell),
            Body::Lost(count) => {
                // What was lost may have been a mapping.
                self.processes.look_again(&mut tell);
                self.say(out)?;
                out.lose(Loss::RingFull, count)?;
            }
            Body::Throttled(true) => {
                self.throttled_since.insert(ring, time_ns);
            }
            Body::Throttled(false) => {
                let since = self.throttled_since.remove(&ring).unwrap_or(time_ns);
                let missed = time_ns.saturating_sub(since).saturating_mul(u64::from(self.plan.frequency));
                out.lose(Loss::Throttled, missed / 1_000_000_000)?;
            }
            Body::Sample(sample) => return self.sample(time_ns, &sample, out),
        }
        self.say(out)
    }

    fn sample(&mut self, time_ns: u64, sample: &records::Sample, out: &mut Out<impl Write>) -> Result<(), Broken> {
        let told = &mut self.told;
        let mut tell = |kind| told.push(kind);
        let Some(unwound) = self.processes.unwind(sample, &mut tell) else {
            return Ok(out.lose(Loss::MapFull, 1)?);
        };
        let kernel = sample.kernel.iter().map(|&address| self.kernel.name(address, &mut tell)).collect();
        self.say(out)?;
        out.samples += 1;
        out.complete += u64::from(unwound.end == StackEnd::Complete);
        out.tell(event::Kind::Sample(Sample {
            time_ns,
            pid: sample.pid,
            tid: sample.tid,
            kind: self.plan.kind.into(),
            value: self.plan.value(),
            kernel,
            user: unwound.frames,
            end: unwound.end.into(),
            ..Sample::default()
        }))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

    /// pmcfadin/cqlite#3249: a setting of the system is not taken for hardware that is missing.
    #[test]
    fn a_system_that_forbids_recording_is_told_from_one_that_cannot() {
        let mut said = String::new();
        for (error, settings) in [
            (libc::EACCES, &[Some(-1), Some(2), Some(3), Some(4), None][..]),
            (libc::EPERM, &[Some(2), Some(4)]),
            (libc::ENOENT, &[Some(4)]),
            (libc::ENOSYS, &[None]),
            (libc::EMFILE, &[Some(2)]),
        ] {
            for &paranoid in settings {
                let error = OpenError { pid: 7, error: io::Error::from_raw_os_error(error) };
                let failure = error.into_failure(paranoid);
                let paranoid = paranoid.map_or("none".to_owned(), |level| level.to_string());
                let _ = writeln!(said, "{} {paranoid}: {} [{}]", failure.detail, failure.sentence, failure.remedy);
            }
        }
        expect![[r#"
            Permission denied (os error 13) -1: process 7 may not be recorded by this user (in a container, its seccomp profile may forbid it) []
            Permission denied (os error 13) 2: process 7 may not be recorded by this user (in a container, its seccomp profile may forbid it) []
            Permission denied (os error 13) 3: this system lets no user record programs: kernel.perf_event_paranoid is 3 [sudo sysctl kernel.perf_event_paranoid=2]
            Permission denied (os error 13) 4: this system lets no user record programs: kernel.perf_event_paranoid is 4 [sudo sysctl kernel.perf_event_paranoid=2]
            Permission denied (os error 13) none: this kernel can't record programs: perf events are off []
            Operation not permitted (os error 1) 2: process 7 may not be recorded by this user (in a container, its seccomp profile may forbid it) []
            Operation not permitted (os error 1) 4: this system lets no user record programs: kernel.perf_event_paranoid is 4 [sudo sysctl kernel.perf_event_paranoid=2]
            No such file or directory (os error 2) 4: the kernel refuses to sample process 7: No such file or directory (os error 2) []
            Function not implemented (os error 38) none: this kernel can't record programs: perf events are off []
            Too many open files (os error 24) 2: process 7 has more threads than files may be open [ulimit -n unlimited]
        "#]].assert_eq(&said);
    }
}
