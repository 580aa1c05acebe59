//! Records of a ring buffer, from bytes. Pure: the kernel's layout and nothing else.
//!
//! What is not understood, or shorter than it says, is no record; nothing here panics.

use super::perf::sample;

/// What a record says, with when it happened (on the clock of the event).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) time_ns: u64,
    pub(super) body: Body,
}

/// The kinds of records that matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// Executable memory was mapped.
    Mapped { pid: u32, mapped: Mapped },
    /// A thread has another name; after `exec` another program.
    Named { pid: u32, tid: u32, name: String, is_exec: bool },
    /// A thread was made; another process when the pids differ.
    Forked { pid: u32, parent: u32, tid: u32, parent_tid: u32 },
    /// A thread ended.
    Exited { pid: u32, tid: u32 },
    /// This many records were lost.
    Lost(u64),
    /// Sampling of an event was held back, or goes on.
    Throttled(bool),
    /// A sample.
    Sample(Box<Sample>),
}

/// A mapping as the kernel tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapped {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) file_offset: u64,
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) is_executable: bool,
    pub(super) path: String,
}

/// A sample: registers, a piece of the stack, and the kernel's part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) period: u64,
    /// Addresses in the kernel, leaf first. They never leave the recorder.
    pub(super) kernel: Vec<u64>,
    /// The registers of user space, in the order of their bits; empty when there is no user part.
    pub(super) registers: Vec<u64>,
    /// The bytes from the stack pointer on.
    pub(super) stack: Vec<u8>,
    /// How many were asked for.
    pub(super) stack_asked: usize,
}

/// What of a sample was asked for, besides what always is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) with_kernel: bool,
    pub(super) registers: u32,
}

impl Layout {
    /// Bits for `sample_type`.
    pub(super) fn sample_type(self) -> u64 {
        let kernel = if self.with_kernel { sample::CALLCHAIN } else { 0 };
        sample::IP | sample::TID | sample::TIME | sample::PERIOD | kernel | sample::REGS_USER | sample::STACK_USER
    }
}

/// Reads from the front of bytes.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.take(8)?.try_into().ok()?))
    }

    /// A text that ends with a zero byte.
    fn text(&mut self) -> String {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        String::from_utf8_lossy(&self.0[..end]).into_owned()
    }
}

/// What follows every record but samples, with `SAMPLE_ID_ALL`: pid and tid, then the time.
const TRAILER: usize = 16;

const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const THROTTLE: u32 = 5;
const UNTHROTTLE: u32 = 6;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const LOST_SAMPLES: u32 = 13;

/// Reads one record; `None` for kinds that don't matter here.
pub(super) fn parse(bytes: &[u8], layout: Layout) -> Option<Record> {
    let mut cursor = Cursor(bytes);
    let kind = cursor.u32()?;
    let misc = u16::from_ne_bytes(cursor.take(2)?.try_into().ok()?);
    cursor.take(2)?;
    if kind == SAMPLE {
        return parse_sample(cursor, layout);
    }
    let (body, trailer) = cursor.0.split_at_checked(cursor.0.len().checked_sub(TRAILER)?)?;
    let time_ns = Cursor(&trailer[8..]).u64()?;
    let mut cursor = Cursor(body);
    let body = match kind {
        LOST => {
            cursor.u64()?;
            Body::Lost(cursor.u64()?)
        }
        LOST_SAMPLES => Body::Lost(cursor.u64()?),
        COMM => {
            let (pid, tid) = (cursor.u32()?, cursor.u32()?);
            Body::Named { pid, tid, name: cursor.text(), is_exec: misc & (1 << 13) != 0 }
        }
        FORK | EXIT => {
            let (pid, parent, tid, parent_tid) = (cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.u32()?);
            if kind == FORK { Body::Forked { pid, parent, tid, parent_tid } } else { Body::Exited { pid, tid } }
        }
        THROTTLE | UNTHROTTLE => Body::Throttled(kind == THROTTLE),
        MMAP2 => {
            let pid = cursor.u32()?;
            cursor.u32()?;
            let (start, length, file_offset) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
            let (major, minor, inode) = (cursor.u32()?, cursor.u32()?, cursor.u64()?);
            cursor.u64()?;
            let protection = cursor.u32()?;
            cursor.u32()?;
            let mapped = Mapped {
                start,
                end: start.saturating_add(length),
                file_offset,
                device: u64::from(major) << 32 | u64::from(minor),
                inode,
                is_executable: protection & 4 != 0,
                path: cursor.text(),
            };
            Body::Mapped { pid, mapped }
        }
        _ => return None,
    };
    Some(Record { time_ns, body })
}

fn parse_sample(mut cursor: Cursor<'_>, layout: Layout) -> Option<Record> {
    /// Marks in a call chain stand where addresses can't.
    const MARKS: u64 = u64::MAX - 4095;
    const KERNEL_MARK: u64 = u64::MAX - 127;
    let _address = cursor.u64()?;
    let (pid, tid, time_ns) = (cursor.u32()?, cursor.u32()?, cursor.u64()?);
    let mut sample = Sample { pid, tid, period: cursor.u64()?, ..Sample::default() };
    if layout.with_kernel {
        let count = usize::try_from(cursor.u64()?).ok()?;
        let mut chain = Cursor(cursor.take(count.checked_mul(8)?)?);
        let mut in_kernel = false;
        while let Some(address) = chain.u64() {
            if address >= MARKS {
                in_kernel = address == KERNEL_MARK;
            } else if in_kernel {
                sample.kernel.push(address);
            }
        }
    }
    let abi = cursor.u64()?;
    if abi != 0 {
        for _ in 0..layout.registers {
            sample.registers.push(cursor.u64()?);
        }
    }
    let asked = usize::try_from(cursor.u64()?).ok()?;
    if asked > 0 {
        let stack = cursor.take(asked)?;
        let valid = usize::try_from(cursor.u64()?).ok()?.min(asked);
        sample.stack = stack[..valid].to_vec();
        sample.stack_asked = asked;
    }
    Some(Record { time_ns, body: Body::Sample(Box::new(sample)) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LAYOUT: Layout = Layout { with_kernel: true, registers: 3 };

    fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(8 + body.len()).expect("it is short");
        [&kind.to_ne_bytes()[..], &misc.to_ne_bytes(), &length.to_ne_bytes(), body].concat()
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_sample_is_taken_apart() {
        let pair = |low: u64, high: u64| low | high << 32;
        let mut body =
            words(&[0x40_1000, pair(7, 8), 99, 1_000, 4, u64::MAX - 127, 0xffff_8000, 1 << 63, u64::MAX - 511]);
        body.extend(words(&[2, 1, 2, 3, 16, 0x11, 0x22, 8]));
        let parsed = parse(&record(SAMPLE, 0, &body), LAYOUT).expect("it is a sample");
        let expected = Sample {
            pid: 7,
            tid: 8,
            period: 1_000,
            kernel: vec![0xffff_8000, 1 << 63],
            registers: vec![1, 2, 3],
            stack: 0x11_u64.to_ne_bytes().to_vec(),
            stack_asked: 16,
        };
        assert_eq!(parsed, Record { time_ns: 99, body: Body::Sample(Box::new(expected)) });
    }

    #[test]
    fn a_name_after_exec_is_told_from_others() {
        let mut body = words(&[7 | 8 << 32]);
        body.extend(b"worker\0\0");
        body.extend(words(&[0, 99]));
        for (misc, is_exec) in [(0, false), (1 << 13, true)] {
            let parsed = parse(&record(COMM, misc, &body), LAYOUT);
            let body = Body::Named { pid: 7, tid: 8, name: "worker".into(), is_exec };
            assert_eq!(parsed, Some(Record { time_ns: 99, body }));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_record_or_none(
            kind in 0_u32..20,
            body in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let whole = record(kind, 0, &body);
            for length in 0..whole.len() {
                let _ = parse(&whole[..length], LAYOUT);
            }
        }
    }
}
