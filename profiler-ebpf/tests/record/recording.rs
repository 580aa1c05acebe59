//! Starts programs held, records them with the real recorder, and looks at what came out.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufReader, IoSlice, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use object::{Object as _, ObjectSymbol as _};
use profiler_ebpf::protocol::{
    self, Code, End, EventKind, Failure, Hello, Loss, Mapping, Process, Reader, Sample, StackEnd, Start, Stop, command,
    event,
};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// CPU time, in nanoseconds, for which a process counts as starting: its libraries are not all known yet.
const STARTING: u64 = 10_000_000;
/// What hangs for this long hangs for good.
const PATIENCE: Duration = Duration::from_mins(1);

/// Whether recordings are possible here. On machines of this project they must be; elsewhere it says why not.
pub(crate) fn possible() -> bool {
    let root = rustix::process::geteuid().is_root();
    let btf = Path::new("/sys/kernel/btf/vmlinux").exists();
    if root && btf {
        return true;
    }
    let reason = if root { "this kernel has no BTF" } else { "it needs root" };
    assert!(std::env::var_os("CI").is_none(), "recording must be possible here, but {reason}");
    let _ = writeln!(io::stderr(), "skipped: recording is not possible, because {reason}");
    false
}

/// The built recorder.
pub(crate) fn recorder() -> Command {
    Command::new(env!("CARGO_BIN_EXE_perflens-record"))
}

/// A folder with programs in it.
pub(crate) struct Programs {
    folder: tempfile::TempDir,
}

impl Programs {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("there is room for a folder") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Builds `programs/SOURCE`, as `compiler`, into `name`.
    pub(crate) fn build(&self, name: &str, source: &str, compiler: &[&str]) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/programs").join(source);
        let out = self.path(name);
        let (compiler, options) = compiler.split_first().expect("a compiler");
        let status = Command::new(compiler).arg(source).arg("-o").arg(&out).args(options).status();
        assert!(status.is_ok_and(|status| status.success()), "{compiler} builds {name}");
        out
    }
}

/// Builds C as most distributions do: optimised, without frame pointers.
pub(crate) const CC: &[&str] = &["cc", "-g", "-O2", "-fomit-frame-pointer", "-pthread"];

/// A program that does not run before it is let go.
pub(crate) struct Held {
    pub(crate) child: Child,
    gate: Option<ChildStdin>,
}

impl Held {
    pub(crate) fn new(program: &Path, arguments: &[&str]) -> Self {
        Self::by(Command::new("sh").args(["-c", "read _; exec \"$0\" \"$@\""]).arg(program).args(arguments))
    }

    /// By a command that waits for a line.
    pub(crate) fn by(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the program starts");
        let gate = child.stdin.take();
        Self { child, gate }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn pidfd(&self) -> OwnedFd {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw).expect("a pid");
        pidfd_open(pid, PidfdFlags::empty()).expect("the program is there")
    }

    pub(crate) fn release(&mut self) {
        if let Some(mut gate) = self.gate.take() {
            gate.write_all(b"\n").expect("the program waits");
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a usual recording asks for.
pub(crate) fn start(frequency: u32) -> Start {
    Start {
        version: protocol::VERSION,
        frequency,
        events: vec![EventKind::Cpu as i32],
        children: true,
        kernel: true,
        ..Start::default()
    }
}

/// The same for a target that is about to become these programs.
pub(crate) fn expecting(start: Start, programs: &[&Path]) -> Start {
    let programs = programs.iter().map(|path| path.to_str().expect("a path of the tests").to_owned()).collect();
    Start { programs, ..start }
}

/// A recorder at work.
pub(crate) struct Recorder {
    pub(crate) child: Child,
    pub(crate) socket: UnixStream,
    events: Reader<BufReader<std::process::ChildStdout>>,
}

impl Recorder {
    /// Starts a recorder and hands it its orders.
    pub(crate) fn new(program: &mut Command, start: Start, targets: &[(u32, OwnedFd)]) -> Self {
        let (ours, theirs) = UnixStream::pair().expect("a socket");
        let mut child =
            program.stdin(OwnedFd::from(theirs)).stdout(Stdio::piped()).spawn().expect("the recorder starts");
        let stdout = child.stdout.take().expect("it is piped");
        let start = Start { targets: targets.iter().map(|target| target.0).collect(), ..start };
        let pidfds: Vec<_> = targets.iter().map(|target| target.1.as_fd()).collect();
        send(&ours, &command::Kind::Start(start), &pidfds);
        let events = Reader::with_magic(BufReader::new(stdout)).expect("it sends a recording");
        Self { child, socket: ours, events }
    }

    pub(crate) fn next(&mut self) -> Option<event::Kind> {
        self.events
            .read::<protocol::Event>()
            .expect("the stream is whole")
            .map(|event| event.kind.expect("it is known"))
    }

    /// Asks for the end.
    pub(crate) fn stop(&self) {
        send(&self.socket, &command::Kind::Stop(Stop {}), &[]);
    }

    /// Reads until everything is in place.
    pub(crate) fn attached(&mut self, into: &mut Recording) {
        while let Some(event) = self.next() {
            let done = matches!(event, event::Kind::Attached(_) | event::Kind::Failure(_));
            into.add(event);
            if done {
                return;
            }
        }
        panic!("the recorder ended before it began");
    }

    /// Reads what is left.
    pub(crate) fn rest(&mut self, into: &mut Recording) {
        while let Some(event) = self.next() {
            into.add(event);
        }
        let status = self.child.wait().expect("the recorder ends");
        assert_eq!(status.success(), into.failure.is_none(), "{status}");
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn send(socket: &UnixStream, kind: &command::Kind, pidfds: &[std::os::fd::BorrowedFd<'_>]) {
    let mut bytes = Vec::new();
    let command = protocol::Command { kind: Some(kind.clone()) };
    protocol::write_frame(&command, &mut Vec::new(), &mut bytes).expect("memory takes bytes");
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !pidfds.is_empty() {
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(pidfds)));
    }
    let sent = sendmsg(socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::empty());
    // It may have ended by itself; what it said is what counts.
    assert!(sent.is_ok_and(|sent| sent == bytes.len()) || matches!(kind, command::Kind::Stop(_)));
}

/// Everything that a recorder said.
#[derive(Default)]
pub(crate) struct Recording {
    pub(crate) hello: Option<Hello>,
    pub(crate) failure: Option<Failure>,
    pub(crate) processes: Vec<Process>,
    pub(crate) mappings: Vec<Mapping>,
    pub(crate) threads: HashMap<u32, String>,
    pub(crate) kernel: HashMap<u32, String>,
    pub(crate) codes: HashMap<u32, Code>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) lost: BTreeMap<i32, u64>,
    pub(crate) notes: Vec<String>,
    pub(crate) exits: Vec<u32>,
    pub(crate) end: Option<End>,
    symbols: HashMap<String, Vec<(u64, u64, String)>>,
}

impl Recording {
    /// Runs a program under the recorder from its first instruction to its end.
    pub(crate) fn of(program: &Path, arguments: &[&str], frequency: u32) -> Self {
        Self::of_held(Held::new(program, arguments), expecting(start(frequency), &[program]))
    }

    pub(crate) fn of_held(mut held: Held, start: Start) -> Self {
        let mut recording = Self::default();
        let mut recorder = Recorder::new(&mut recorder(), start, &[(held.pid(), held.pidfd())]);
        recorder.attached(&mut recording);
        assert_eq!(recording.failure, None);
        held.release();
        let status = wait(&mut held.child);
        assert!(status, "the program does its work");
        recorder.stop();
        recorder.rest(&mut recording);
        assert!(recording.end.is_some());
        recording
    }

    /// What a recorder wrote into a file.
    pub(crate) fn read(path: &Path) -> Self {
        let file = std::fs::File::open(path).expect("the recorder wrote it");
        let mut events = Reader::with_magic(BufReader::new(file)).expect("it is a recording");
        let mut recording = Self::default();
        while let Some(event) = events.read::<protocol::Event>().expect("the stream is whole") {
            recording.add(event.kind.expect("it is known"));
        }
        recording
    }

    /// The same of a file that is still being written.
    pub(crate) fn read_so_far(path: &Path) -> Self {
        let file = std::fs::File::open(path).expect("the recorder wrote it");
        let mut recording = Self::default();
        let Ok(mut events) = Reader::with_magic(BufReader::new(file)) else { return recording };
        while let Ok(Some(event)) = events.read::<protocol::Event>() {
            recording.add(event.kind.expect("it is known"));
        }
        recording
    }

    pub(crate) fn add(&mut self, event: event::Kind) {
        match event {
            event::Kind::Hello(hello) => self.hello = Some(hello),
            event::Kind::Failure(failure) => self.failure = Some(failure),
            event::Kind::Process(process) => self.processes.push(process),
            event::Kind::Mapping(mapping) => self.mappings.push(mapping),
            event::Kind::Thread(thread) => {
                self.threads.insert(thread.tid, thread.name);
            }
            event::Kind::KernelSymbol(symbol) => {
                self.kernel.insert(symbol.id, symbol.name);
            }
            event::Kind::Sample(sample) => {
                // Definitions come first.
                assert!(self.processes.iter().any(|process| process.pid == sample.pid));
                assert!(sample.interpreter.iter().all(|frame| self.codes.contains_key(&frame.code)));
                assert!(sample.kernel.iter().all(|id| self.kernel.contains_key(id)));
                self.samples.push(sample);
            }
            event::Kind::Lost(lost) => *self.lost.entry(lost.reason).or_default() += lost.samples,
            event::Kind::Note(note) => self.notes.push(note.sentence),
            event::Kind::Exit(exit) => self.exits.push(exit.pid),
            event::Kind::End(end) => self.end = Some(end),
            event::Kind::Code(code) => {
                self.codes.insert(code.id, code);
            }
            event::Kind::Attached(_) | event::Kind::Progress(_) => {}
        }
    }

    pub(crate) fn lost(&self, reason: Loss) -> u64 {
        self.lost.get(&(reason as i32)).copied().unwrap_or_default()
    }

    /// Samples of CPU time beyond the first moments of their processes.
    pub(crate) fn settled(&self) -> impl Iterator<Item = &Sample> {
        let mut used: HashMap<(u32, usize), u64> = HashMap::new();
        self.samples.iter().filter(move |sample| {
            // A number may have been several processes, or several programs.
            let defined = self
                .processes
                .iter()
                .rposition(|process| process.pid == sample.pid && process.time_ns <= sample.time_ns);
            let used = used.entry((sample.pid, defined.unwrap_or_default())).or_default();
            *used += sample.value;
            *used > STARTING
        })
    }

    /// Asserts that at least 99 in a hundred stacks end at an outermost frame.
    pub(crate) fn assert_complete(&mut self) {
        let all = self.settled().count();
        let complete = self.settled().filter(|sample| sample.end == StackEnd::Complete as i32).count();
        assert!(all >= 100, "{all} samples");
        if complete * 100 < all * 99 {
            let bad: Vec<Sample> =
                self.settled().filter(|sample| sample.end != StackEnd::Complete as i32).take(5).cloned().collect();
            for sample in bad {
                let names = self.names(&sample);
                let _ = writeln!(io::stderr(), "ended by {}: {names:?} {:x?}", sample.end, sample.user.last());
            }
            panic!("{complete} of {all} stacks are complete");
        }
    }

    /// The same for events that don't come by the clock: without giving programs time to start.
    pub(crate) fn assert_mostly_complete(&mut self, at_least: usize) {
        let stacks = || self.samples.iter().filter(|sample| sample.kind != EventKind::Free as i32);
        let complete = stacks().filter(|sample| sample.end == StackEnd::Complete as i32).count();
        assert!(stacks().count() >= at_least, "{} samples", stacks().count());
        assert!(complete * 100 >= stacks().count() * 90, "{complete} of {} stacks are complete", stacks().count());
    }

    /// Function names of a stack, leaf first; a file's name where there is none.
    pub(crate) fn names(&mut self, sample: &Sample) -> Vec<String> {
        let frames = sample.user.iter().enumerate().map(|(at, &address)| {
            let exact = at == 0 || sample.exact.contains(&u32::try_from(at).unwrap_or(u32::MAX));
            address - u64::from(!exact)
        });
        frames.collect::<Vec<_>>().into_iter().map(|address| self.name(sample.pid, address)).collect()
    }

    fn name(&mut self, pid: u32, address: u64) -> String {
        let mapping = self
            .mappings
            .iter()
            .rev()
            .find(|mapping| mapping.pid == pid && (mapping.start..mapping.end).contains(&address));
        let Some(Mapping { path, bias, .. }) = mapping.cloned() else { return format!("{address:#x}") };
        let symbols = self.symbols.entry(path.clone()).or_insert_with(|| symbols(&path));
        let at = address.wrapping_sub(bias);
        let after = symbols.partition_point(|symbol| symbol.0 <= at);
        match after.checked_sub(1).map(|before| &symbols[before]) {
            Some((start, size, name)) if at < start + size => name.clone(),
            _ => path,
        }
    }

    /// Share of the samples that have a function as their leaf, in percent.
    pub(crate) fn leaf_share(&mut self, function: &str) -> f64 {
        self.share(|names| names.first().is_some_and(|name| name == function))
    }

    /// Share of the samples whose stack is as asked for, in percent.
    pub(crate) fn share(&mut self, is: impl Fn(&[String]) -> bool) -> f64 {
        let samples = std::mem::take(&mut self.samples);
        let hits = samples.iter().filter(|sample| is(&self.names(sample))).count();
        let share = hits as f64 * 100.0 / samples.len() as f64;
        self.samples = samples;
        share
    }

    /// Asserts that a share is what it should be, give or take four standard deviations of chance and two points
    /// for what else the machine does.
    pub(crate) fn assert_share(&self, what: &str, share: f64, expected: f64) {
        let chance = 4.0 * (expected * (100.0 - expected) / self.samples.len() as f64).sqrt();
        assert!((share - expected).abs() < chance + 2.0, "{what}: {share:.1} % instead of {expected:.1} %");
    }
}

fn symbols(path: &str) -> Vec<(u64, u64, String)> {
    let Ok(bytes) = std::fs::read(path) else { return Vec::new() };
    let Ok(file) = object::read::elf::ElfFile64::<object::LittleEndian>::parse(bytes.as_slice()) else {
        return Vec::new();
    };
    let all = file.symbols().chain(file.dynamic_symbols());
    let mut symbols: Vec<_> = all
        .filter(object::ObjectSymbol::is_definition)
        .filter_map(|symbol| Some((symbol.address(), symbol.size(), symbol.name().ok()?.to_owned())))
        .collect();
    symbols.sort();
    symbols
}

/// Waits for a process; whether it ended well.
pub(crate) fn wait(child: &mut Child) -> bool {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            return status.success();
        }
        assert!(Instant::now() < until, "a program hangs");
        std::thread::sleep(Duration::from_millis(10));
    }
}
