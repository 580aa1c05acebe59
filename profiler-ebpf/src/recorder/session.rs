//! One recording, from the first look at its targets to its end.

use std::fs::File;
use std::io::{self, BufReader};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use rustc_hash::FxHashMap;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, Timespec, clock_gettime};

use super::Refusal;
use super::allocations::Allocations;
use super::command::{Orders, Parent, Wanted};
use super::output::Output;
use super::processes::Processes;
use crate::privilege::{Caller, Restriction, Target, TargetError, become_caller};
use crate::protocol::{
    Attached, End, EndReason, EventKind, FailureKind, Hello, KernelSymbol, Loss, Lost, Method, Note, Progress, Sample,
    StackEnd, VERSION, event,
};
use crate::sampler::kallsyms::KernelSymbols;
use crate::sampler::{
    Clock, Counters, Event, Kernel, KernelError, Notice, NoticeKind, PythonFrame, Record, SampleRecord, Settings,
    Sources, Tables, Unwinding,
};

/// Rows of unwind tables there is room for: 16 MiB, several times what a large program with its libraries has.
const ROWS: u32 = 4 << 20;
/// Its "nice" value.
const PRIORITY: i32 = -10;
/// How often samples are fetched.
const ROUND: u64 = 50_000_000;
/// How often, while the parent has not taken everything.
const SLOW_ROUND: u64 = 10_000_000;
/// How often counters are sent.
const REPORT: u64 = 1_000_000_000;
/// The pid namespace that Linux starts with.
const FIRST_PID_NAMESPACE: u64 = 0xefff_fffc;

/// Records until something ends it.
pub(super) fn record(
    orders: &Orders,
    caller: Caller,
    parent: Option<Parent>,
    stdin: BorrowedFd<'_>,
    end: BorrowedFd<'_>,
    output: &mut Output<File>,
) -> Result<(), Refusal> {
    if orders.any_user && !caller.root {
        return Err(Refusal {
            kind: FailureKind::NotPermitted,
            sentence: "Only root may record processes of other users.".into(),
            remedy: String::new(),
            detail: String::new(),
        });
    }
    proc_is_ours()?;
    let symbols = if orders.kernel { kernel_symbols() } else { KernelSymbols::default() };
    let settings = Settings {
        unwinding: orders.unwinding.unwrap_or(Unwinding::Tables),
        sources: orders.sources,
        off_cpu_threshold: orders.off_cpu_threshold,
        caller: (!orders.any_user).then_some(caller.uid),
        children: orders.children,
        kernel: orders.kernel,
        frequency: orders.frequency,
        pid_namespace: pid_namespace()?,
        rows: ROWS,
    };
    let (kernel, tables, unwinding) = load(orders, settings)?;
    // It does little, and must do that in time however busy the machine is. Where that is not permitted it waits its turn.
    let _ = rustix::process::setpriority_process(None, PRIORITY);
    become_caller(caller, orders.any_user, orders.sources.alloc).map_err(|error| Refusal {
        kind: FailureKind::NotPermitted,
        sentence: "The recorder could not give up its rights, so it does not go on.".into(),
        remedy: String::new(),
        detail: error.to_string(),
    })?;
    Session {
        processes: Processes::new(caller, orders.any_user, tables),
        kernel,
        unwinding,
        symbols,
        symbol_ids: FxHashMap::default(),
        allocations: Allocations::default(),
        counted: Counters::default(),
        dark: 0,
        dark_reported: 0,
        slow_reported: 0,
        samples: 0,
        complete: 0,
        started: 0,
        output,
    }
    .run(orders, caller, parent, stdin, end)
}

/// Loads the kernel program, or what an older kernel takes instead.
fn load(orders: &Orders, settings: Settings) -> Result<(Kernel, Tables, Unwinding), Refusal> {
    let only_cpu = orders.sources == Sources { cpu: true, ..Sources::default() };
    match Kernel::load(&settings) {
        Err(KernelError::Refused(_)) if orders.unwinding.is_none() && only_cpu => {
            let unwinding = Unwinding::FramePointers;
            let (kernel, tables) = Kernel::load(&Settings { unwinding, ..settings })?;
            Ok((kernel, tables, unwinding))
        }
        other => {
            let (kernel, tables) = other?;
            Ok((kernel, tables, settings.unwinding))
        }
    }
}

struct Session<'a> {
    kernel: Kernel,
    unwinding: Unwinding,
    processes: Processes,
    symbols: KernelSymbols,
    /// Numbers given to kernel functions; those without a name share the last possible key.
    symbol_ids: FxHashMap<usize, u32>,
    allocations: Allocations,
    /// Counters as last reported.
    counted: Counters,
    /// Samples of processes that are not the caller's any more, and how many of them were reported.
    dark: u64,
    dark_reported: u64,
    /// Samples dropped because the parent was slow, as reported.
    slow_reported: u64,
    /// Times that the clock should have struck and did not, as reported.
    samples: u64,
    complete: u64,
    started: u64,
    output: &'a mut Output<File>,
}

impl Session<'_> {
    fn run(
        mut self,
        orders: &Orders,
        caller: Caller,
        mut parent: Option<Parent>,
        stdin: BorrowedFd<'_>,
        end: BorrowedFd<'_>,
    ) -> Result<(), Refusal> {
        let targets = orders
            .targets
            .iter()
            .map(|wanted| Target::open(wanted.pid, caller, orders.any_user).map_err(|error| refused(wanted, error)))
            .collect::<Result<Vec<_>, _>>()?;
        let clock = self.kernel.start()?;
        self.started = now();
        self.hello(orders, clock);
        for (wanted, target) in orders.targets.iter().zip(targets) {
            self.processes.add_target(wanted.pid, target, now(), &mut self.kernel, self.output)?;
            // It was this process all along only if it still is.
            if has_ended(wanted) {
                self.kernel.remove_process(wanted.pid);
            }
        }
        if orders.children {
            let targets = orders.targets.iter().map(|wanted| wanted.pid).collect();
            self.processes.add_children(targets, now(), &mut self.kernel, self.output);
        }
        for program in &orders.programs {
            self.processes.expect(program, &mut self.kernel, self.output);
        }
        self.output.send(event::Kind::Attached(Attached { time_ns: now() }));
        self.output.flush();

        let parent_process = rustix::process::getppid();
        let until = self.started.saturating_add(u64::try_from(orders.duration.as_nanos()).unwrap_or(u64::MAX));
        let mut next_report = self.started + REPORT;
        let reason = loop {
            let round = if self.output.is_waiting() { SLOW_ROUND } else { ROUND };
            let wake = [Some(now() + round), Some(until), self.processes.next_due()].into_iter().flatten().min();
            let timeout = Duration::from_nanos(wake.unwrap_or_default().saturating_sub(now()));
            let wishes = self.wait(timeout, end, parent.as_ref().map(|_| stdin));
            self.drain();
            self.processes.look_again(now(), &mut self.kernel, self.output);
            let asked = wishes.parent && parent.as_mut().is_some_and(|parent| parent.wants_end(stdin));
            if wishes.end || asked || rustix::process::getppid() != parent_process {
                break EndReason::Stopped;
            }
            if now() >= until {
                break EndReason::Duration;
            }
            if orders.targets.iter().all(has_ended) && self.processes.len() == 0 {
                break EndReason::TargetsEnded;
            }
            if now() >= next_report {
                next_report += REPORT;
                self.report();
                self.follow_cpus();
            }
            if !self.output.flush() {
                break EndReason::Stopped;
            }
        };
        // What was sampled up to now still counts.
        self.drain();
        if orders.sources.off_cpu {
            self.end_waits(orders.off_cpu_threshold);
        }
        if let Some(error) = self.processes.probes_refused() {
            let sentence = format!("Allocations can be seen by root only, for example with sudo ({error}).");
            self.output.send(event::Kind::Note(Note { sentence }));
        } else if orders.sources.alloc && !self.processes.sees_allocations() {
            let sentence = "No program had the allocation library: static programs, Go, and programs that were running \
                            already show their memory through their own profiler, or by page faults.";
            self.output.send(event::Kind::Note(Note { sentence: sentence.into() }));
        }
        self.report_losses();
        let progress = Some(self.progress());
        self.output.send(event::Kind::End(End { reason: reason as i32, time_ns: now(), progress }));
        self.output.finish();
        Ok(())
    }

    fn hello(&mut self, orders: &Orders, clock: Clock) {
        let real = clock_gettime(ClockId::Realtime);
        self.output.send(event::Kind::Hello(Hello {
            version: VERSION,
            recorder: env!("CARGO_PKG_VERSION").into(),
            method: match self.unwinding {
                Unwinding::Tables => Method::BpfTables,
                Unwinding::FramePointers => Method::BpfFramePointers,
            } as i32,
            limited_because: match self.unwinding {
                Unwinding::FramePointers if orders.unwinding.is_none() => {
                    "This kernel is older than Linux 5.17, so only programs built with frame pointers have whole stacks."
                }
                _ => "",
            }
            .into(),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            clock: match clock {
                Clock::Cycles => "cycles",
                Clock::CpuClock => "cpu-clock",
            }
            .into(),
            frequency: orders.frequency,
            realtime_ns: real.tv_sec.saturating_mul(1_000_000_000).saturating_add(real.tv_nsec),
            monotonic_ns: self.started,
            architecture: std::env::consts::ARCH.into(),
        }));
        if orders.kernel && self.symbols.is_empty() {
            let sentence = "The kernel hides its functions' names from the recorder, so its part of stacks has none.";
            self.output.send(event::Kind::Note(Note { sentence: sentence.into() }));
        }
    }

    /// Waits for something to do.
    fn wait(&self, timeout: Duration, end: BorrowedFd<'_>, stdin: Option<BorrowedFd<'_>>) -> Wishes {
        let ring = self.kernel.as_fd();
        let mut waiting =
            vec![PollFd::from_borrowed_fd(ring, PollFlags::IN), PollFd::from_borrowed_fd(end, PollFlags::IN)];
        waiting.extend(stdin.map(|stdin| PollFd::from_borrowed_fd(stdin, PollFlags::IN)));
        let timeout = Timespec::try_from(timeout).unwrap_or_default();
        // An interrupted wait is a short one.
        let _ = poll(&mut waiting, Some(&timeout));
        let ready = |at: usize| waiting.get(at).is_some_and(|fd: &PollFd<'_>| !fd.revents().is_empty());
        Wishes { end: ready(1), parent: ready(2) }
    }

    /// Takes everything out of the ring.
    fn drain(&mut self) {
        /// A record that outlives its place in the ring.
        enum Next {
            Sample(Box<Sampled>),
            Notice(Notice),
            Nothing,
        }
        self.processes.next_round();
        loop {
            let next = self.kernel.next_record(|record| match record {
                Some(Record::Sample(record)) => Next::Sample(Box::new(Sampled::new(&record))),
                Some(Record::Notice(notice)) => Next::Notice(notice),
                None => Next::Nothing,
            });
            match next {
                None => return,
                Some(Next::Nothing) => {}
                Some(Next::Notice(notice)) => self.notice(notice),
                Some(Next::Sample(sampled)) => self.sample(*sampled),
            }
        }
    }

    fn sample(&mut self, sampled: Sampled) {
        let Sampled { mut sample, event, kernel, python, interval, comm } = sampled;
        let known = self.processes.prepare(sample.pid, sample.tid, &comm, now(), &mut self.kernel, self.output);
        if !known {
            self.dark += 1;
            return;
        }
        match event {
            Event::Alloc => self.allocations.allocated(&mut sample, interval),
            // Of what was allocated before anybody looked there is nothing to take back.
            Event::Free if !self.allocations.freed(&mut sample) => return,
            _ => {}
        }
        if !python.is_empty() {
            sample.interpreter = self.processes.interpreter_frames(sample.pid, &python, self.output);
        }
        let (symbols, ids) = (&self.symbols, &mut self.symbol_ids);
        let frames = kernel.iter().enumerate();
        sample.kernel =
            frames.map(|(i, pc)| name(pc.wrapping_sub(u64::from(i > 0)), symbols, ids, self.output)).collect();
        self.samples += 1;
        self.complete += u64::from(sample.end == StackEnd::Complete as i32);
        self.output.send(event::Kind::Sample(sample));
    }

    /// Threads that still wait: up to now is what is known of their waits.
    fn end_waits(&mut self, threshold: u64) {
        let now = now();
        let mut waiting = Vec::new();
        self.kernel.waiting(|record| waiting.push(Sampled::new(record)));
        for mut sampled in waiting {
            let sample = &mut sampled.sample;
            sample.value = now.saturating_sub(sample.time_ns);
            sample.time_ns = now;
            if sample.value >= threshold {
                self.sample(sampled);
            }
        }
    }

    fn notice(&mut self, notice: Notice) {
        let Notice { kind, tgid, time } = notice;
        match kind {
            NoticeKind::Fork { parent, first } => {
                self.processes.forked(tgid, parent, first, time, &mut self.kernel);
            }
            NoticeKind::Exec => {
                self.allocations.forget(tgid);
                self.processes.executed(tgid, now(), &mut self.kernel, self.output);
            }
            NoticeKind::Exit => {
                self.allocations.forget(tgid);
                self.processes.exited(tgid, time, self.output);
            }
            NoticeKind::Unmapped { address } => {
                self.processes.unmapped(tgid, address, now(), &mut self.kernel, self.output);
            }
            NoticeKind::Mapped { range, offset, file } => {
                self.processes.mapped(tgid, range, offset, file, self.output);
            }
        }
    }

    fn report(&mut self) {
        self.report_losses();
        let progress = self.progress();
        self.output.send(event::Kind::Progress(progress));
    }

    fn report_losses(&mut self) {
        let counters = self.kernel.counters();
        let old = std::mem::replace(&mut self.counted, counters);
        for (reason, samples) in [
            (Loss::RingFull, counters.ring_full - old.ring_full),
            (Loss::OtherUser, counters.other_user - old.other_user + self.dark - self.dark_reported),
            (Loss::MapFull, counters.map_full - old.map_full),
            (Loss::NotTaken, counters.not_taken - old.not_taken),
            (Loss::ParentSlow, self.output.dropped() - self.slow_reported),
            (Loss::Throttled, counters.held_back - old.held_back),
        ] {
            if samples > 0 {
                self.output.send(event::Kind::Lost(Lost { reason: reason as i32, samples }));
            }
        }
        self.dark_reported = self.dark;
        self.slow_reported = self.output.dropped();
    }

    fn progress(&self) -> Progress {
        let used = clock_gettime(ClockId::ProcessCPUTime);
        let used = used.tv_sec.saturating_mul(1_000_000_000).saturating_add(used.tv_nsec);
        let resident = std::fs::read_to_string("/proc/self/statm")
            .ok()
            .and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok())
            .unwrap_or_default();
        Progress {
            samples: self.samples,
            complete: self.complete,
            recorder_ns: u64::try_from(used).unwrap_or_default(),
            sampling_ns: self.kernel.counters().nanoseconds,
            memory: resident * 4096 + self.kernel.memory(),
        }
    }

    /// CPUs come and go.
    fn follow_cpus(&mut self) {
        if let Err(error) = self.kernel.attach_clock() {
            let sentence = format!("A CPU came online that can't be sampled: {error}.");
            self.output.send(event::Kind::Note(Note { sentence }));
        }
    }
}

/// What asks for attention.
struct Wishes {
    end: bool,
    parent: bool,
}

/// The number of a kernel function, told to the parent once.
fn name(address: u64, symbols: &KernelSymbols, ids: &mut FxHashMap<usize, u32>, output: &mut Output<File>) -> u32 {
    let found = symbols.find(address);
    let next = u32::try_from(ids.len() + 1).unwrap_or(u32::MAX);
    *ids.entry(found.map_or(usize::MAX, |(at, _)| at)).or_insert_with(|| {
        let (name, module) = found.map_or(("", ""), |(_, name)| (name.function, name.module));
        output.send(event::Kind::KernelSymbol(KernelSymbol { id: next, name: name.into(), module: module.into() }));
        next
    })
}

/// A sample that outlives its place in the ring, and what is not part of the message.
struct Sampled {
    sample: Sample,
    event: Event,
    kernel: Vec<u64>,
    python: Vec<PythonFrame>,
    interval: u64,
    comm: Vec<u8>,
}

impl Sampled {
    fn new(record: &SampleRecord<'_>) -> Self {
        Self {
            sample: sample(record),
            event: record.event,
            kernel: record.kernel().collect(),
            python: record.python().collect(),
            interval: record.interval,
            comm: record.comm().to_vec(),
        }
    }
}

fn sample(record: &SampleRecord<'_>) -> Sample {
    // The kernel's own walk along frame pointers may end with nothing.
    let user: Vec<(u64, bool)> = record.user().take_while(|frame| frame.0 != 0).collect();
    let exact = user.iter().enumerate().filter(|(_, frame)| frame.1);
    Sample {
        time_ns: record.time,
        pid: record.tgid,
        tid: record.tid,
        kind: match record.event {
            Event::Cpu => EventKind::Cpu,
            Event::Blocked => EventKind::Blocked,
            Event::Preempted => EventKind::Preempted,
            Event::Alloc => EventKind::Alloc,
            Event::Free => EventKind::Free,
            Event::PageFault => EventKind::PageFault,
        } as i32,
        value: record.value,
        allocation: record.allocation,
        exact: exact.filter_map(|(at, _)| u32::try_from(at).ok()).collect(),
        user: user.iter().map(|frame| frame.0).collect(),
        end: i32::from(record.end),
        ..Sample::default()
    }
}

/// Now, on the clock of the samples.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or_default() * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or_default()
}

fn has_ended(wanted: &Wanted) -> bool {
    // A pidfd is readable when its process ended.
    let mut fds = [PollFd::new(&wanted.pidfd, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

fn kernel_symbols() -> KernelSymbols {
    File::open("/proc/kallsyms").and_then(|file| KernelSymbols::parse(BufReader::new(file))).unwrap_or_default()
}

/// Our pid namespace; `None` when it is the first.
fn pid_namespace() -> Result<Option<u32>, Refusal> {
    let inode = std::fs::metadata("/proc/self/ns/pid").map_err(|error| no_proc(&error))?.ino();
    Ok((inode != FIRST_PID_NAMESPACE).then(|| u32::try_from(inode).unwrap_or_default()))
}

/// `/proc` must show our own numbers, or we would look at others than we were told.
fn proc_is_ours() -> Result<(), Refusal> {
    let link = std::fs::read_link("/proc/self").map_err(|error| no_proc(&error))?;
    let own = rustix::process::getpid().as_raw_nonzero().to_string();
    if link.as_os_str() == own.as_str() {
        return Ok(());
    }
    Err(no_proc(&io::Error::other(format!("it calls us {} where we are {own}", link.display()))))
}

fn no_proc(error: &dyn std::error::Error) -> Refusal {
    Refusal {
        kind: FailureKind::Kernel,
        sentence: "/proc is missing or belongs to another pid namespace.".into(),
        remedy: "mount -t proc proc /proc".into(),
        detail: error.to_string(),
    }
}

fn refused(wanted: &Wanted, error: TargetError) -> Refusal {
    let pid = wanted.pid;
    let sentence = match error {
        TargetError::Gone => format!("There is no process {pid} any more."),
        TargetError::NotCallers => {
            format!("Process {pid} belongs to another user, or holds more rights than its user.")
        }
        TargetError::Kernel => format!("{pid} is a part of the kernel."),
        TargetError::Proc(error) => format!("/proc can't be read for process {pid}: {error}."),
    };
    // Another way of recording may do without looking into the program.
    let (kind, remedy) = match error {
        TargetError::NotCallers if Restriction::of_this_system() != Restriction::None => (
            FailureKind::NotPermitted,
            "this system shows programs to their parents only: sudo sysctl kernel.yama.ptrace_scope=0",
        ),
        TargetError::NotCallers => (FailureKind::Target, "as root: --any-user"),
        _ => (FailureKind::Target, ""),
    };
    Refusal { kind, sentence, remedy: remedy.into(), detail: String::new() }
}

impl From<KernelError> for Refusal {
    fn from(error: KernelError) -> Self {
        let (kind, sentence, remedy) = match &error {
            KernelError::NotPermitted(_) => (
                FailureKind::NotPermitted,
                "Sampling with eBPF needs the capabilities CAP_BPF and CAP_PERFMON.",
                "sudo setcap cap_bpf,cap_perfmon+ep $(command -v perflens-record)",
            ),
            KernelError::NoBtf => (
                FailureKind::Kernel,
                "This kernel was built without BTF (CONFIG_DEBUG_INFO_BTF), which sampling with eBPF needs.",
                "",
            ),
            KernelError::Processor => (FailureKind::Kernel, "Sampling with eBPF runs on x86-64 only so far.", ""),
            KernelError::Refused(_) => {
                (FailureKind::Kernel, "This kernel does not accept the sampler; it needs Linux 5.17 or newer.", "")
            }
            KernelError::Memory => (FailureKind::Resources, "The system has no memory for a recording.", ""),
            KernelError::Other(_) => (FailureKind::Kernel, "This kernel does not run the sampler.", ""),
        };
        let detail = error.to_string();
        Self { kind, sentence: sentence.into(), remedy: remedy.into(), detail }
    }
}
