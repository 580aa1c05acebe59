//! Records of the kernel, as far as they say what ran and where.

use std::rc::Rc;

use super::file::Event;
use super::maps::Map;

/// Numbers of a file in its byte order; `None` where it is too short.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a> {
    pub(super) rest: &'a [u8],
    pub(super) is_big_endian: bool,
}

impl<'a> Bytes<'a> {
    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        let bytes = *self.take(2)?.first_chunk()?;
        Some(if self.is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        let bytes = *self.take(4)?.first_chunk()?;
        Some(if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        let bytes = *self.take(8)?.first_chunk()?;
        Some(if self.is_big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    fn pid(&mut self) -> Option<i32> {
        Some(self.u32()?.cast_signed())
    }

    /// Up to the first zero byte.
    pub(super) fn text(self) -> Rc<str> {
        let end = self.rest.iter().position(|&byte| byte == 0).unwrap_or(self.rest.len());
        String::from_utf8_lossy(&self.rest[..end]).into()
    }
}

pub(super) struct Sample {
    /// Index of its event.
    pub(super) event: usize,
    pub(super) pid: i32,
    pub(super) tid: i32,
    pub(super) address: u64,
    pub(super) period: Option<u64>,
    /// Addresses and contexts, innermost first.
    pub(super) chain: Box<[u64]>,
    pub(super) is_kernel: bool,
    pub(super) has_memory_stack: bool,
}

pub(super) enum Record {
    Sample(Sample),
    Map { pid: i32, map: Map },
    Command { pid: i32, tid: i32, name: Rc<str>, is_exec: bool },
    Fork { pid: i32, parent: i32, tid: i32, parent_tid: i32 },
    Lost(u64),
}

/// A record and when it happened.
pub(super) struct Timed {
    pub(super) time: u64,
    pub(super) record: Record,
}

mod kind {
    pub(super) const MMAP: u32 = 1;
    pub(super) const LOST: u32 = 2;
    pub(super) const COMM: u32 = 3;
    pub(super) const FORK: u32 = 7;
    pub(super) const SAMPLE: u32 = 9;
    pub(super) const MMAP2: u32 = 10;
}

/// What a sample consists of; bits of `sample_type`.
mod part {
    pub(super) const IP: u64 = 1;
    pub(super) const TID: u64 = 1 << 1;
    pub(super) const TIME: u64 = 1 << 2;
    pub(super) const ADDR: u64 = 1 << 3;
    pub(super) const READ: u64 = 1 << 4;
    pub(super) const CALLCHAIN: u64 = 1 << 5;
    pub(super) const ID: u64 = 1 << 6;
    pub(super) const CPU: u64 = 1 << 7;
    pub(super) const PERIOD: u64 = 1 << 8;
    pub(super) const STREAM_ID: u64 = 1 << 9;
    pub(super) const STACK_USER: u64 = 1 << 13;
    pub(super) const IDENTIFIER: u64 = 1 << 16;
}

const MISC_CPU_MODE: u16 = 7;
const MISC_KERNEL: u16 = 1;
const MISC_MMAP_DATA: u16 = 1 << 13;
const MISC_COMM_EXEC: u16 = 1 << 13;
const MISC_MMAP_BUILD_ID: u16 = 1 << 14;
const PROT_EXEC: u32 = 4;

/// Reads a record of the kernel. `Ok(None)` for those of no interest, `Err` for broken ones.
pub(super) fn read(kind: u32, misc: u16, body: Bytes<'_>, events: &[Event]) -> Result<Option<Timed>, ()> {
    let record = match kind {
        kind::SAMPLE => return sample(misc, body, events).map(Some).ok_or(()),
        kind::MMAP | kind::MMAP2 => match map(misc, body, kind == kind::MMAP2) {
            Some((_, map, is_code)) if !is_code || map.start >= map.end => return Ok(None),
            Some((pid, map, _)) => Some(Record::Map { pid, map }),
            None => None,
        },
        kind::COMM => command(misc, body),
        kind::FORK => fork(body),
        kind::LOST => lost(body),
        _ => return Ok(None),
    };
    let record = record.ok_or(())?;
    Ok(Some(Timed { time: time(body, events), record }))
}

/// When something happened that is no sample: at the end of its record, if at all.
fn time(body: Bytes<'_>, events: &[Event]) -> u64 {
    let Some(event) = events.first().filter(|event| event.has_ids_everywhere) else { return 0 };
    let has = |bits: u64| event.sample_type & bits != 0;
    let behind = [part::ID, part::STREAM_ID, part::CPU, part::IDENTIFIER].iter().filter(|&&bit| has(bit)).count() * 8;
    if !has(part::TIME) {
        return 0;
    }
    let Some(start) = body.rest.len().checked_sub(behind + 8) else { return 0 };
    Bytes { rest: &body.rest[start..], ..body }.u64().unwrap_or(0)
}

/// A mapping, its process, and whether it holds code.
fn map(misc: u16, mut body: Bytes<'_>, is_second: bool) -> Option<(i32, Map, bool)> {
    let pid = body.pid()?;
    let _tid = body.pid()?;
    let (start, length, offset) = (body.u64()?, body.u64()?, body.u64()?);
    let mut build_id = None;
    let mut is_code = misc & MISC_MMAP_DATA == 0;
    if is_second {
        let id = body.take(24)?;
        if misc & MISC_MMAP_BUILD_ID != 0 {
            build_id = Some(hex(&id[4..], id[0].into()).into());
        }
        is_code &= body.u32()? & PROT_EXEC != 0;
        body.u32()?;
    }
    let map = Map { start, end: start.saturating_add(length), offset, path: body.text(), build_id };
    Some((pid, map, is_code))
}

fn command(misc: u16, mut body: Bytes<'_>) -> Option<Record> {
    let (pid, tid) = (body.pid()?, body.pid()?);
    let is_exec = misc & MISC_COMM_EXEC != 0;
    Some(Record::Command { pid, tid, name: body.text(), is_exec })
}

fn fork(mut body: Bytes<'_>) -> Option<Record> {
    let (pid, parent, tid, parent_tid) = (body.pid()?, body.pid()?, body.pid()?, body.pid()?);
    Some(Record::Fork { pid, parent, tid, parent_tid })
}

fn lost(mut body: Bytes<'_>) -> Option<Record> {
    body.u64()?;
    Some(Record::Lost(body.u64()?))
}

/// The first bytes of a build id in hex.
pub(super) fn hex(bytes: &[u8], length: usize) -> String {
    use std::fmt::Write;
    bytes.iter().take(length).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn sample(misc: u16, body: Bytes<'_>, events: &[Event]) -> Option<Timed> {
    let first = events.first()?;
    // Events differ in their samples only if these begin with the event's id.
    let identifier = if first.sample_type & part::IDENTIFIER != 0 { Some({ body }.u64()?) } else { None };
    let by_id = |id: u64| events.iter().position(|event| event.ids.contains(&id));
    let mut event = identifier.and_then(by_id).unwrap_or(0);
    let has = |bits: u64| events[event].sample_type & bits != 0;
    let mut body = body;
    if has(part::IDENTIFIER) {
        body.u64()?;
    }
    let address = if has(part::IP) { body.u64()? } else { 0 };
    let (pid, tid) = if has(part::TID) { (body.pid()?, body.pid()?) } else { (0, 0) };
    let time = if has(part::TIME) { body.u64()? } else { 0 };
    if has(part::ADDR) {
        body.u64()?;
    }
    let id = if has(part::ID) { Some(body.u64()?) } else { None };
    for bit in [part::STREAM_ID, part::CPU] {
        if has(bit) {
            body.u64()?;
        }
    }
    let period = if has(part::PERIOD) { Some(body.u64()?) } else { None };
    if has(part::READ) {
        skip_read(&mut body, events[event].read_format)?;
    }
    let mut chain = Vec::new();
    if has(part::CALLCHAIN) {
        let count = usize::try_from(body.u64()?).ok()?;
        let addresses = body.take(count.checked_mul(8)?)?;
        let mut addresses = Bytes { rest: addresses, ..body };
        while let Some(address) = addresses.u64() {
            chain.push(address);
        }
    }
    let has_memory_stack = has(part::STACK_USER);
    if identifier.is_none()
        && let Some(found) = id.and_then(by_id)
    {
        event = found;
    }
    let is_kernel = misc & MISC_CPU_MODE == MISC_KERNEL;
    let chain = chain.into_boxed_slice();
    let sample = Sample { event, pid, tid, address, period, chain, is_kernel, has_memory_stack };
    Some(Timed { time, record: Record::Sample(sample) })
}

/// Passes over counters that were read with the sample.
fn skip_read(body: &mut Bytes<'_>, format: u64) -> Option<()> {
    const TIMES: u64 = 3;
    const ID_AND_LOST: u64 = 4 | 16;
    const GROUP: u64 = 8;
    let times = (format & TIMES).count_ones() as usize;
    let each = 1 + (format & ID_AND_LOST).count_ones() as usize;
    let count = if format & GROUP == 0 { 1 } else { usize::try_from(body.u64()?).ok()? };
    let words = count.checked_mul(each)?.checked_add(times)?;
    body.take(words.checked_mul(8)?)?;
    Some(())
}
