//! What recorder and parent say to each other.
//!
//! The recorder may hold privileges and knows addresses; the parent is the user, knows names
//! and files. Everything between them goes through these messages, so that one can be tested
//! without the other, and so that a stream kept in a file (`perflens-record -p PID > x.plp`) is
//! the same as one from a pipe.
//!
//! # Shape
//! A stream is [`MAGIC`], then frames: a message's length as a base-128 varint, then the
//! message in protobuf. Fields may be added; a reader skips what it doesn't know. A change that
//! old readers would misread raises [`VERSION`], which [`Hello`] carries.
//!
//! * Recorder to parent, on its standard output: [`Event`]s. The first is [`Hello`] or
//!   [`Failure`]. Definitions come before their uses: a process before its mappings, mappings,
//!   kernel symbols and code objects before the samples that need them. The last is [`End`];
//!   a stream without one was cut off.
//! * Parent to recorder, on its standard input, a Unix stream socket: [`Command`]s without
//!   magic. The first is [`Start`]; the bytes of it carry one `pidfd` per target, in their order, as
//!   `SCM_RIGHTS`, since neither `sudo` nor `pkexec` lets other descriptors through. End of
//!   file means stop.
//!
//! Kernel addresses never appear: the kernel's part of a stack is names.
//!
//! What is not here: how either side does its work, and any reading or writing beyond a frame.

mod frame;

use prost::{Enumeration, Message};

pub use frame::{FrameError, MAX_FRAME, Reader, write_frame, write_magic};

/// What a stream begins with.
pub const MAGIC: [u8; 8] = *b"plrec\0\x01\n";

/// The version of the messages below.
pub const VERSION: u32 = 1;

/// One message of the recorder.
#[derive(Clone, PartialEq, Message)]
pub struct Event {
    /// What it says; `None` for something that a newer recorder knows and we don't.
    #[prost(oneof = "event::Kind", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14")]
    pub kind: Option<event::Kind>,
}

/// The kinds of [`Event`].
pub mod event {
    use prost::Oneof;

    use super::{
        Attached, Code, End, Exit, Failure, Hello, KernelSymbol, Lost, Mapping, Note, Process, Progress, Sample, Thread,
    };

    /// What an [`Event`](super::Event) says.
    #[derive(Clone, PartialEq, Oneof)]
    pub enum Kind {
        /// The recorder is there.
        #[prost(message, tag = "1")]
        Hello(Hello),
        /// It can't do what was asked.
        #[prost(message, tag = "2")]
        Failure(Failure),
        /// Everything is in place; a held command may run.
        #[prost(message, tag = "3")]
        Attached(Attached),
        /// A process came in sight or became another program.
        #[prost(message, tag = "4")]
        Process(Process),
        /// A mapping of executable memory.
        #[prost(message, tag = "5")]
        Mapping(Mapping),
        /// The name of a thread, whenever it changes.
        #[prost(message, tag = "6")]
        Thread(Thread),
        /// A name for frames of the kernel.
        #[prost(message, tag = "7")]
        KernelSymbol(KernelSymbol),
        /// A code object of an interpreter.
        #[prost(message, tag = "8")]
        Code(Code),
        /// A sample.
        #[prost(message, tag = "9")]
        Sample(Sample),
        /// Samples that were lost.
        #[prost(message, tag = "10")]
        Lost(Lost),
        /// A process ended.
        #[prost(message, tag = "11")]
        Exit(Exit),
        /// Something to tell the user that stops nothing.
        #[prost(message, tag = "12")]
        Note(Note),
        /// Counters, about once a second.
        #[prost(message, tag = "13")]
        Progress(Progress),
        /// The recording is over.
        #[prost(message, tag = "14")]
        End(End),
    }
}

/// How stacks are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum Method {
    /// Not said.
    Unknown = 0,
    /// In the kernel, by tables made from `.eh_frame`.
    BpfTables = 1,
    /// In the kernel, by frame pointers alone.
    BpfFramePointers = 2,
    /// Copied stacks, unwound by the recorder; own processes only.
    StackCopies = 3,
}

/// What is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum EventKind {
    /// Not said.
    Unknown = 0,
    /// Time on a CPU; a sample's value is the period in nanoseconds.
    Cpu = 1,
    /// Time waiting, from when the thread gave up its CPU until it ran again, in nanoseconds.
    Blocked = 2,
    /// Time runnable without a CPU, in nanoseconds.
    Preempted = 3,
    /// Memory allocated, in bytes that the sample stands for; `count` has the objects.
    Alloc = 4,
    /// Sampled memory given back, as the `Alloc` sample of the same `allocation`.
    Free = 5,
    /// Page faults: first touches of memory; a sample's value is the period in faults.
    PageFault = 6,
}

/// The recorder's first words.
#[derive(Clone, PartialEq, Message)]
pub struct Hello {
    /// [`VERSION`] of the recorder.
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// The recorder's own version, for people.
    #[prost(string, tag = "2")]
    pub recorder: String,
    /// How it takes stacks.
    #[prost(enumeration = "Method", tag = "3")]
    pub method: i32,
    /// Why not by a better method, in one sentence with the command that would help; empty when there is none
    /// better.
    #[prost(string, tag = "4")]
    pub limited_because: String,
    /// The kernel's release.
    #[prost(string, tag = "5")]
    pub kernel: String,
    /// The clock that samples: `cpu-clock` or `cycles`.
    #[prost(string, tag = "6")]
    pub clock: String,
    /// Samples per second and CPU that were granted.
    #[prost(uint32, tag = "7")]
    pub frequency: u32,
    /// When it began, in nanoseconds since 1970.
    #[prost(int64, tag = "8")]
    pub realtime_ns: i64,
    /// The same moment on the clock of the samples (`CLOCK_MONOTONIC`).
    #[prost(uint64, tag = "9")]
    pub monotonic_ns: u64,
    /// The machine's processor, `x86_64` or `aarch64`.
    #[prost(string, tag = "10")]
    pub architecture: String,
}

/// Why there is no recording.
#[derive(Clone, PartialEq, Message)]
pub struct Failure {
    /// Of what kind.
    #[prost(enumeration = "FailureKind", tag = "1")]
    pub kind: i32,
    /// One sentence for the user.
    #[prost(string, tag = "2")]
    pub sentence: String,
    /// The command or setting that would help; empty when there is none.
    #[prost(string, tag = "3")]
    pub remedy: String,
    /// What the system said, for a log.
    #[prost(string, tag = "4")]
    pub detail: String,
}

/// Kinds of [`Failure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum FailureKind {
    /// Not said.
    Unknown = 0,
    /// A right is missing.
    NotPermitted = 1,
    /// The kernel can't do it.
    Kernel = 2,
    /// The target is gone, or may not be recorded by this user.
    Target = 3,
    /// The command made no sense.
    BadCommand = 4,
    /// Memory or another resource ran out.
    Resources = 5,
}

/// Everything is in place.
#[derive(Clone, PartialEq, Message)]
pub struct Attached {
    /// When, on the clock of the samples.
    #[prost(uint64, tag = "1")]
    pub time_ns: u64,
}

/// A process, from now on, until it is defined anew (its mappings are gone then, and told again) or ends. It is defined
/// anew after `exec`, and with the same `time_ns` when its runtime shows late.
#[derive(Clone, PartialEq, Message)]
pub struct Process {
    /// Its number where the recorder is.
    #[prost(uint32, tag = "1")]
    pub pid: u32,
    /// Its number in its own pid namespace, which names its perf map.
    #[prost(uint32, tag = "2")]
    pub namespace_pid: u32,
    /// The process that started it; 0 when not known.
    #[prost(uint32, tag = "3")]
    pub parent: u32,
    /// The program's name, without arguments.
    #[prost(string, tag = "4")]
    pub name: String,
    /// The path of the program as the process sees it; empty when it can't be read.
    #[prost(string, tag = "5")]
    pub executable: String,
    /// When it came in sight, on the clock of the samples.
    #[prost(uint64, tag = "6")]
    pub time_ns: u64,
    /// The interpreter or runtime that was recognised: `cpython 3.12`, `node`, `jvm`, `go`; empty for none.
    #[prost(string, tag = "7")]
    pub runtime: String,
}

/// A mapping of executable memory.
#[derive(Clone, PartialEq, Message)]
pub struct Mapping {
    /// The process.
    #[prost(uint32, tag = "1")]
    pub pid: u32,
    /// First address.
    #[prost(uint64, tag = "2")]
    pub start: u64,
    /// Address after the last.
    #[prost(uint64, tag = "3")]
    pub end: u64,
    /// Offset into the file of the first address.
    #[prost(uint64, tag = "4")]
    pub file_offset: u64,
    /// The file's path as the process sees it, `[vdso]` and the like, or empty for memory without a file.
    #[prost(string, tag = "5")]
    pub path: String,
    /// Device (major << 32 | minor) and inode, to know the file again; 0 without a file.
    #[prost(uint64, tag = "6")]
    pub device: u64,
    /// See `device`.
    #[prost(uint64, tag = "7")]
    pub inode: u64,
    /// GNU build id in bytes; empty when the file has none.
    #[prost(bytes = "vec", tag = "8")]
    pub build_id: Vec<u8>,
    /// Runtime address minus the address in the file's own terms (its `p_vaddr`s).
    #[prost(uint64, tag = "9")]
    pub bias: u64,
    /// Whether the file's name is gone.
    #[prost(bool, tag = "10")]
    pub deleted: bool,
    /// Go's own build id, as text; empty when there is none.
    #[prost(string, tag = "11")]
    pub go_build_id: String,
}

/// The name of a thread.
#[derive(Clone, PartialEq, Message)]
pub struct Thread {
    /// The process.
    #[prost(uint32, tag = "1")]
    pub pid: u32,
    /// The thread.
    #[prost(uint32, tag = "2")]
    pub tid: u32,
    /// Its name.
    #[prost(string, tag = "3")]
    pub name: String,
}

/// A name for frames of the kernel.
#[derive(Clone, PartialEq, Message)]
pub struct KernelSymbol {
    /// What samples call it; from 1.
    #[prost(uint32, tag = "1")]
    pub id: u32,
    /// The function; empty when names are hidden from the recorder.
    #[prost(string, tag = "2")]
    pub name: String,
    /// The module it belongs to; empty for the kernel itself.
    #[prost(string, tag = "3")]
    pub module: String,
}

/// A code object of an interpreter: a function as the interpreter knows it.
#[derive(Clone, PartialEq, Message)]
pub struct Code {
    /// What samples call it; from 1.
    #[prost(uint32, tag = "1")]
    pub id: u32,
    /// The source file as the interpreter has it.
    #[prost(string, tag = "2")]
    pub file: String,
    /// The qualified name.
    #[prost(string, tag = "3")]
    pub name: String,
    /// The line of its definition; 0 when not known.
    #[prost(uint32, tag = "4")]
    pub first_line: u32,
}

/// A frame of an interpreter.
#[derive(Clone, PartialEq, Message)]
pub struct InterpreterFrame {
    /// Its [`Code`].
    #[prost(uint32, tag = "1")]
    pub code: u32,
    /// The line; 0 when not known.
    #[prost(uint32, tag = "2")]
    pub line: u32,
    /// Whether the interpreter was entered anew for it: the next frame belongs to the next native evaluation loop.
    #[prost(bool, tag = "3")]
    pub entry: bool,
}

/// Why a stack ends where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum StackEnd {
    /// Not said.
    Unknown = 0,
    /// At the outermost frame of its thread.
    Complete = 1,
    /// The address has no mapping that is known.
    NoMapping = 2,
    /// No rule for the address, and no frame pointer to go by.
    NoRule = 3,
    /// A rule that is not supported.
    Unsupported = 4,
    /// The stack's memory could not be read.
    Unreadable = 5,
    /// More frames than are taken.
    TooDeep = 6,
    /// Kernel threads and the like: no user part.
    NoUserPart = 7,
    /// The copied part of the stack was too short.
    CopyTooShort = 8,
}

/// A sample. Frames are leaf first.
#[derive(Clone, PartialEq, Message)]
pub struct Sample {
    /// When, on the clock of the samples (`CLOCK_MONOTONIC`).
    #[prost(fixed64, tag = "1")]
    pub time_ns: u64,
    /// The process.
    #[prost(uint32, tag = "2")]
    pub pid: u32,
    /// The thread.
    #[prost(uint32, tag = "3")]
    pub tid: u32,
    /// What it measures.
    #[prost(enumeration = "EventKind", tag = "4")]
    pub kind: i32,
    /// How much, in the unit of `kind`.
    #[prost(uint64, tag = "5")]
    pub value: u64,
    /// Ids of [`KernelSymbol`]s.
    #[prost(uint32, repeated, tag = "6")]
    pub kernel: Vec<u32>,
    /// Addresses in the process. The first is where it was interrupted (or where the kernel was entered); the
    /// others are return addresses, unless `exact` says otherwise.
    #[prost(fixed64, repeated, tag = "7")]
    pub user: Vec<u64>,
    /// Indexes into `user`, rising, of further addresses that are not return addresses: below a signal frame.
    #[prost(uint32, repeated, tag = "8")]
    pub exact: Vec<u32>,
    /// Why `user` ends.
    #[prost(enumeration = "StackEnd", tag = "9")]
    pub end: i32,
    /// The interpreter's frames.
    #[prost(message, repeated, tag = "10")]
    pub interpreter: Vec<InterpreterFrame>,
    /// Objects that an `Alloc` sample stands for.
    #[prost(uint64, tag = "11")]
    pub count: u64,
    /// What an `Alloc` and its `Free` have in common; 0 for other kinds.
    #[prost(uint64, tag = "12")]
    pub allocation: u64,
}

/// Ways to lose samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum Loss {
    /// Not said.
    Unknown = 0,
    /// The ring buffer was full.
    RingFull = 1,
    /// The kernel held sampling back.
    Throttled = 2,
    /// The task belongs to another user, or became privileged.
    OtherUser = 3,
    /// A map of the kernel program was full.
    MapFull = 4,
    /// The parent did not keep up.
    ParentSlow = 5,
    /// The program could not take the sample.
    NotTaken = 6,
}

/// Samples that were lost since the last message of the same reason.
#[derive(Clone, PartialEq, Message)]
pub struct Lost {
    /// Why.
    #[prost(enumeration = "Loss", tag = "1")]
    pub reason: i32,
    /// How many.
    #[prost(uint64, tag = "2")]
    pub samples: u64,
}

/// A process ended.
#[derive(Clone, PartialEq, Message)]
pub struct Exit {
    /// The process.
    #[prost(uint32, tag = "1")]
    pub pid: u32,
    /// When, on the clock of the samples.
    #[prost(uint64, tag = "2")]
    pub time_ns: u64,
}

/// Something to tell the user that stops nothing.
#[derive(Clone, PartialEq, Message)]
pub struct Note {
    /// One sentence.
    #[prost(string, tag = "1")]
    pub sentence: String,
}

/// Counters since the start.
#[derive(Clone, PartialEq, Message)]
pub struct Progress {
    /// Samples sent.
    #[prost(uint64, tag = "1")]
    pub samples: u64,
    /// Samples whose user part was complete.
    #[prost(uint64, tag = "2")]
    pub complete: u64,
    /// CPU time of the recorder in nanoseconds.
    #[prost(uint64, tag = "3")]
    pub recorder_ns: u64,
    /// Memory of the recorder and its maps, in bytes.
    #[prost(uint64, tag = "4")]
    pub memory: u64,
    /// Time spent taking samples, in nanoseconds: it is taken from the programs recorded, and the processor's own cost of
    /// the interrupt comes on top. 0 where the kernel copies stacks and does not tell.
    #[prost(uint64, tag = "5")]
    pub sampling_ns: u64,
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum EndReason {
    /// Not said.
    Unknown = 0,
    /// The parent asked for it, or is gone.
    Stopped = 1,
    /// The time asked for is over.
    Duration = 2,
    /// All targets ended.
    TargetsEnded = 3,
    /// A bound on memory was reached.
    MemoryBound = 4,
}

/// The recording is over; every sample taken has been sent or counted as lost.
#[derive(Clone, PartialEq, Message)]
pub struct End {
    /// Why.
    #[prost(enumeration = "EndReason", tag = "1")]
    pub reason: i32,
    /// When, on the clock of the samples.
    #[prost(uint64, tag = "2")]
    pub time_ns: u64,
    /// Last counters.
    #[prost(message, optional, tag = "3")]
    pub progress: Option<Progress>,
}

/// One message of the parent.
#[derive(Clone, PartialEq, Message)]
pub struct Command {
    /// What it says; `None` for something that a newer parent knows and we don't.
    #[prost(oneof = "command::Kind", tags = "1, 2")]
    pub kind: Option<command::Kind>,
}

/// The kinds of [`Command`].
pub mod command {
    use prost::Oneof;

    use super::{Start, Stop};

    /// What a [`Command`](super::Command) says.
    #[derive(Clone, PartialEq, Oneof)]
    pub enum Kind {
        /// Begin.
        #[prost(message, tag = "1")]
        Start(Start),
        /// End, and send what is left.
        #[prost(message, tag = "2")]
        Stop(Stop),
    }
}

/// What to record. The recorder refuses what is out of its bounds rather than bend it.
#[derive(Clone, PartialEq, Message)]
pub struct Start {
    /// [`VERSION`] of the parent.
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// The processes, one `pidfd` each.
    #[prost(uint32, repeated, tag = "2")]
    pub targets: Vec<u32>,
    /// Samples per second and CPU: 1 to 1 999.
    #[prost(uint32, tag = "3")]
    pub frequency: u32,
    /// What to sample.
    #[prost(enumeration = "EventKind", repeated, tag = "4")]
    pub events: Vec<i32>,
    /// How long at most, in nanoseconds; 0 = until told to stop, at most an hour.
    #[prost(uint64, tag = "5")]
    pub duration_ns: u64,
    /// Whether processes that targets start are recorded as well.
    #[prost(bool, tag = "6")]
    pub children: bool,
    /// Whether the kernel's part of stacks is wanted.
    #[prost(bool, tag = "7")]
    pub kernel: bool,
    /// Shortest wait that is reported, in nanoseconds.
    #[prost(uint64, tag = "8")]
    pub off_cpu_threshold_ns: u64,
    /// Root only: also processes of other users.
    #[prost(bool, tag = "9")]
    pub any_user: bool,
    /// Use this method or fail; `Unknown` = the best there is.
    #[prost(enumeration = "Method", tag = "10")]
    pub method: i32,
    /// Paths of programs that targets are about to become. Their unwind tables are made before they run.
    #[prost(string, repeated, tag = "11")]
    pub programs: Vec<String>,
}

/// End, and send what is left.
#[derive(Clone, PartialEq, Message)]
pub struct Stop {}
