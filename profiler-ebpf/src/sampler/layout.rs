//! What the kernel program and we share, as `bpf/layout.h` says it.
//!
//! Records are read field by field at their offsets: nothing is cast, and a record that is shorter than it
//! should be is no record.

use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::{major, minor};

/// Counters of the kernel program, in their order.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(super) enum Counter {
    HeldBack,
    Samples,
    RingFull,
    OtherUser,
    MapFull,
    NotTaken,
    NoticesLost,
    Nanoseconds,
}

/// A mapping without unwind rules of its own.
pub(super) const NO_TABLE: u32 = u32::MAX;

/// Marks an address that is where execution goes on.
const EXACT: u64 = 1 << 63;
/// What is left of a code object's pointer beside the owner.
const OWNER_SHIFTED: u64 = (1 << 56) - 1;

/// One record from the ring.
#[derive(Debug)]
pub enum Record<'a> {
    /// A sample.
    Sample(SampleRecord<'a>),
    /// Something that happened to a process.
    Notice(Notice),
}

/// What is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The clock struck.
    Cpu,
    /// A thread waited for something.
    Blocked,
    /// A thread waited for a CPU.
    Preempted,
    /// Memory was allocated.
    Alloc,
    /// Memory that was sampled was given back.
    Free,
    /// Memory was touched for the first time.
    PageFault,
}

impl Event {
    fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Cpu,
            2 => Self::Blocked,
            3 => Self::Preempted,
            4 => Self::Alloc,
            5 => Self::Free,
            6 => Self::PageFault,
            _ => return None,
        })
    }
}

/// A sample as it comes from the kernel program.
#[derive(Clone, Copy, Debug)]
pub struct SampleRecord<'a> {
    /// The process.
    pub tgid: u32,
    /// The thread.
    pub tid: u32,
    /// What was sampled.
    pub event: Event,
    /// Why the user's part ends, as `StackEnd` of the protocol.
    pub end: u8,
    /// When, on `CLOCK_MONOTONIC`.
    pub time: u64,
    /// How much: nanoseconds, faults, or for [`Event::Alloc`] the size of this one.
    pub value: u64,
    /// Mean bytes between samples of [`Event::Alloc`].
    pub interval: u64,
    /// The pointer, for [`Event::Alloc`] and [`Event::Free`].
    pub allocation: u64,
    comm: &'a [u8],
    python: &'a [u8],
    user: &'a [u8],
    kernel: &'a [u8],
}

impl<'a> SampleRecord<'a> {
    /// Addresses of the user's part, leaf first, and whether each is where execution goes on beyond the first.
    pub fn user(&self) -> impl ExactSizeIterator<Item = (u64, bool)> + use<'a> {
        words(self.user).map(|word| (word & !EXACT, word & EXACT != 0))
    }

    /// Frames of a Python interpreter, leaf first.
    pub fn python(&self) -> impl Iterator<Item = PythonFrame> + use<'a> {
        self.python.chunks_exact(16).map(|frame| {
            let mut words = words(frame);
            let (code, instruction) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            PythonFrame { code: code & OWNER_SHIFTED, owner: u8::try_from(code >> 56).unwrap_or_default(), instruction }
        })
    }

    /// Addresses of the kernel's part, leaf first.
    pub fn kernel(&self) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        words(self.kernel)
    }

    /// The thread's name.
    pub fn comm(&self) -> &'a [u8] {
        self.comm.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

fn words(bytes: &[u8]) -> impl ExactSizeIterator<Item = u64> + use<'_> {
    bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes))
}

/// A frame of a Python interpreter, as pointers into its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonFrame {
    /// The code object.
    pub code: u64,
    /// What the interpreter says of who made the frame.
    pub owner: u8,
    /// The instruction.
    pub instruction: u64,
}

/// Something that happened to a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What.
    pub kind: NoticeKind,
    /// The process.
    pub tgid: u32,
    /// When, on `CLOCK_MONOTONIC`.
    pub time: u64,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    /// It was started, and shares its parent's mappings.
    Fork {
        /// The process that started it.
        parent: u32,
        /// The slice it was given.
        first: u32,
    },
    /// It became another program.
    Exec,
    /// It ended.
    Exit,
    /// A stack went through memory that no mapping covers.
    Unmapped {
        /// Where.
        address: u64,
    },
    /// A stack went through a file that has a table, in memory that no mapping covered.
    Mapped {
        /// Where it lies.
        range: Range<u64>,
        /// Offset into the file of its first byte.
        offset: u64,
        /// The file.
        file: FileNumbers,
    },
}

/// What the kernel knows a file by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileNumbers {
    /// In its file system.
    pub inode: u64,
    /// The file system's, as the kernel itself writes it.
    pub device: u64,
}

impl FileNumbers {
    /// Those of a file.
    pub fn of(file: &Metadata) -> Self {
        let device = u64::from(major(file.dev())) << 20 | u64::from(minor(file.dev()));
        Self { inode: file.ino(), device }
    }
}

/// Bytes of a sample before its words.
const SAMPLE_HEAD: usize = 72;
/// Bytes of a thread that waits: the beginning of a sample.
pub(super) const WAIT_SIZE: usize = SAMPLE_HEAD + 224 * 8;

impl<'a> Record<'a> {
    /// A record from its bytes; `None` for what is none.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let u16_at = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let u32_at = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let u64_at = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let tgid = u32_at(4)?;
        let notice = |kind| Some(Record::Notice(Notice { kind, tgid, time: u64_at(16)? }));
        match u32_at(0)? {
            1 => {
                let (user, kernel) = (usize::from(u16_at(12)?) * 8, usize::from(u16_at(14)?) * 8);
                let python = usize::from(u16_at(18)?) * 16;
                let (python, words) = bytes.get(SAMPLE_HEAD..)?.split_at_checked(python)?;
                Some(Record::Sample(SampleRecord {
                    tgid,
                    tid: u32_at(8)?,
                    event: Event::from_number(*bytes.get(16)?)?,
                    end: *bytes.get(17)?,
                    time: u64_at(24)?,
                    value: u64_at(32)?,
                    interval: u64_at(40)?,
                    allocation: u64_at(48)?,
                    comm: bytes.get(56..72)?,
                    python,
                    user: words.get(..user)?,
                    kernel: words.get(user..user + kernel)?,
                }))
            }
            2 => notice(NoticeKind::Fork { parent: u32_at(8)?, first: u32_at(12)? }),
            3 => notice(NoticeKind::Exec),
            4 => notice(NoticeKind::Exit),
            5 => notice(NoticeKind::Unmapped { address: u64_at(24)? }),
            6 => notice(NoticeKind::Mapped {
                range: u64_at(24)?..u64_at(32)?,
                offset: u64_at(40)?,
                file: FileNumbers { inode: u64_at(48)?, device: u64_at(56)? },
            }),
            _ => None,
        }
    }
}
