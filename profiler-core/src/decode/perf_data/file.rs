//! The sections of the file, and the sequence of records.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::records::{self, Bytes, Timed, hex};
use super::{Context, DecodeError, DecodeErrorKind, damaged};

/// Something that was counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
    /// What a sample stands for where it doesn't say so itself.
    pub(super) fixed_period: i64,
    /// Whether all records, not only samples, end with ids and time.
    pub(super) has_ids_everywhere: bool,
    pub(super) ids: Vec<u64>,
}

/// Most events; each is a column.
const MAX_EVENTS: usize = 64;

#[derive(Default)]
pub(super) struct File {
    pub(super) events: Vec<Event>,
    pub(super) records: Vec<Timed>,
    /// By path, in hex.
    pub(super) build_ids: FxHashMap<Rc<str>, String>,
    pub(super) unread: u64,
    pub(super) is_cut: bool,
}

/// Numbers of the sections behind the records.
mod feature {
    pub(super) const BUILD_ID: u64 = 2;
    pub(super) const EVENT_DESC: u64 = 12;
}

/// Records of perf itself, between those of the kernel.
mod kind {
    pub(super) const FIRST_OF_PERF: u32 = 64;
    pub(super) const ATTR: u32 = 64;
    pub(super) const BUILD_ID: u32 = 67;
    pub(super) const AUXTRACE: u32 = 71;
    pub(super) const FEATURE: u32 = 80;
    pub(super) const COMPRESSED: u32 = 81;
    pub(super) const COMPRESSED2: u32 = 83;
}

const MISC_BUILD_ID_SIZE: u16 = 1 << 15;
const HEADER: u64 = 16;

impl File {
    pub(super) fn read(bytes: &[u8], context: &Context<'_>) -> Result<Self, DecodeError> {
        let is_big_endian = bytes.starts_with(b"2ELIFREP");
        let mut head = Bytes { rest: bytes.get(8..).unwrap_or_default(), is_big_endian };
        let size = head.u64().ok_or_else(|| damaged("its head"))?;
        let mut file = Self::default();
        let mut compressed = Vec::new();
        if size == HEADER {
            let records = Bytes { rest: &bytes[16..], is_big_endian };
            file.records(records, &mut compressed, context)?;
        } else {
            let section = |offset: u64, length: u64| {
                let start = usize::try_from(offset).ok()?;
                bytes.get(start..)?.get(..usize::try_from(length).ok()?)
            };
            let mut number = || head.u64().ok_or_else(|| damaged("its head"));
            let attr_size = number()?;
            let (attrs, attrs_size, data, data_size) = (number()?, number()?, number()?, number()?);
            let _types = (number()?, number()?);
            let flags = [number()?, number()?, number()?, number()?];
            let attrs = section(attrs, attrs_size).ok_or_else(|| damaged("its list of events"))?;
            file.attrs(attrs, attr_size, is_big_endian, &section)?;
            let start = usize::try_from(data).ok().filter(|&start| start <= bytes.len());
            let start = start.ok_or_else(|| damaged("its head"))?;
            // An interrupted recording has no length.
            let end = usize::try_from(data_size).ok().filter(|&size| size > 0).and_then(|size| start.checked_add(size));
            file.is_cut |= end.is_none_or(|end| end > bytes.len());
            let end = end.unwrap_or(bytes.len()).min(bytes.len());
            file.features(Bytes { rest: &bytes[end..], is_big_endian }, flags, &section);
            file.records(Bytes { rest: &bytes[start..end], is_big_endian }, &mut compressed, context)?;
        }
        if !compressed.is_empty() {
            let plain = inflate(compressed, context)?;
            let mut again = Vec::new();
            file.records(Bytes { rest: &plain, is_big_endian }, &mut again, context)?;
        }
        Ok(file)
    }

    fn attrs<'a>(
        &mut self,
        attrs: &'a [u8],
        size: u64,
        is_big_endian: bool,
        section: &impl Fn(u64, u64) -> Option<&'a [u8]>,
    ) -> Result<(), DecodeError> {
        let size = usize::try_from(size).ok().filter(|&size| size >= 64).ok_or_else(|| damaged("its head"))?;
        for attr in attrs.chunks_exact(size).take(MAX_EVENTS) {
            let (attr, ids) = attr.split_at(size - 16);
            let mut event = event(Bytes { rest: attr, is_big_endian }).ok_or_else(|| damaged("its list of events"))?;
            let mut place = Bytes { rest: ids, is_big_endian };
            if let Some(ids) = place.u64().zip(place.u64()).and_then(|(offset, length)| section(offset, length)) {
                event.ids = numbers(Bytes { rest: ids, is_big_endian });
            }
            self.events.push(event);
        }
        Ok(())
    }

    /// Sections that are listed behind the records; what is wrong there is left out.
    fn features<'a>(&mut self, mut list: Bytes<'a>, flags: [u64; 4], section: &impl Fn(u64, u64) -> Option<&'a [u8]>) {
        for number in 0..256u64 {
            if flags[usize::try_from(number / 64).unwrap_or(0)] >> (number % 64) & 1 == 0 {
                continue;
            }
            let Some((offset, length)) = list.u64().zip(list.u64()) else { return };
            if let Some(body) = section(offset, length) {
                self.feature(number, Bytes { rest: body, ..list });
            }
        }
    }

    fn feature(&mut self, number: u64, mut body: Bytes<'_>) {
        match number {
            feature::BUILD_ID => {
                while let Some((_, misc, record)) = next_record(&mut body) {
                    self.build_id(misc, record);
                }
            }
            feature::EVENT_DESC => {
                self.event_names(body);
            }
            _ => {}
        }
    }

    /// Events in the order of the file, with their names.
    fn event_names(&mut self, mut body: Bytes<'_>) -> Option<()> {
        let (count, size) = (body.u32()?, body.u32()?);
        for index in 0..usize::try_from(count).ok()? {
            body.take(usize::try_from(size).ok()?)?;
            let ids = usize::try_from(body.u32()?).ok()?;
            let length = usize::try_from(body.u32()?).ok()?;
            let name = Bytes { rest: body.take(length)?, ..body }.text();
            let ids = numbers(Bytes { rest: body.take(ids.checked_mul(8)?)?, ..body });
            let event = self.events.get_mut(index)?;
            name.as_ref().clone_into(&mut event.name);
            if event.ids.is_empty() {
                event.ids = ids;
            }
        }
        Some(())
    }

    fn build_id(&mut self, misc: u16, mut body: Bytes<'_>) -> Option<()> {
        body.u32()?;
        let id = body.take(24)?;
        let length = if misc & MISC_BUILD_ID_SIZE != 0 { usize::from(id[20]).min(20) } else { 20 };
        self.build_ids.insert(body.text(), hex(id, length));
        Some(())
    }

    fn records(
        &mut self,
        mut bytes: Bytes<'_>,
        compressed: &mut Vec<u8>,
        context: &Context<'_>,
    ) -> Result<(), DecodeError> {
        let mut count = 0usize;
        let mut frames = 0;
        while let Some((kind, misc, mut body)) = next_record(&mut bytes) {
            count += 1;
            if count.is_multiple_of(4096) {
                context.cancel.check()?;
            }
            if kind < kind::FIRST_OF_PERF {
                match records::read(kind, misc, body, &self.events) {
                    Ok(Some(record)) => {
                        if let records::Record::Sample(sample) = &record.record {
                            frames += sample.chain.len();
                        }
                        self.records.push(record);
                    }
                    Ok(None) => {}
                    Err(()) => self.unread += 1,
                }
                if frames > context.limits.max_frames {
                    let message = format!("it holds more than {} frames", context.limits.max_frames);
                    return Err(DecodeError::new(DecodeErrorKind::Limit, message));
                }
                continue;
            }
            match kind {
                kind::ATTR => self.attr_record(body),
                kind::BUILD_ID => {
                    self.build_id(misc, body);
                }
                kind::FEATURE => {
                    if let Some(number) = body.u64() {
                        self.feature(number, body);
                    }
                }
                kind::COMPRESSED => compressed.extend_from_slice(body.rest),
                kind::COMPRESSED2 => {
                    let length = body.u64().and_then(|length| usize::try_from(length).ok());
                    if let Some(data) = length.and_then(|length| body.take(length)) {
                        compressed.extend_from_slice(data);
                    }
                }
                // Its data follow the record.
                kind::AUXTRACE => {
                    let length = body.u64().and_then(|length| usize::try_from(length).ok());
                    if length.and_then(|length| bytes.take(length)).is_none() {
                        break;
                    }
                }
                _ => {}
            }
        }
        self.is_cut |= !bytes.rest.is_empty();
        Ok(())
    }

    /// An event, where there is no list of them.
    fn attr_record(&mut self, body: Bytes<'_>) {
        let mut head = Bytes { rest: body.rest.get(4..).unwrap_or_default(), ..body };
        let size = head.u32().and_then(|size| usize::try_from(size).ok()).filter(|&size| size >= 64).unwrap_or(64);
        let Some((attr, ids)) = body.rest.split_at_checked(size) else { return };
        if let Some(mut event) = event(Bytes { rest: attr, ..body })
            && self.events.len() < MAX_EVENTS
        {
            event.ids = numbers(Bytes { rest: ids, ..body });
            self.events.push(event);
        }
    }
}

fn next_record<'a>(bytes: &mut Bytes<'a>) -> Option<(u32, u16, Bytes<'a>)> {
    let mut at = *bytes;
    let (kind, misc, size) = (at.u32()?, at.u16()?, at.u16()?);
    let body = at.take(usize::from(size).checked_sub(8)?)?;
    *bytes = at;
    Some((kind, misc, Bytes { rest: body, ..at }))
}

fn numbers(mut bytes: Bytes<'_>) -> Vec<u64> {
    std::iter::from_fn(|| bytes.u64()).collect()
}

/// The beginning of `perf_event_attr`.
fn event(mut attr: Bytes<'_>) -> Option<Event> {
    const FREQUENCY: u64 = 1 << 10;
    const SAMPLE_ID_ALL: u64 = 1 << 18;
    let (kind, _size, config, period) = (attr.u32()?, attr.u32()?, attr.u64()?, attr.u64()?);
    let (sample_type, read_format, flags) = (attr.u64()?, attr.u64()?, attr.u64()?);
    Some(Event {
        name: name(kind, config),
        sample_type,
        read_format,
        fixed_period: if flags & FREQUENCY == 0 { i64::try_from(period).unwrap_or(1).max(1) } else { 1 },
        has_ids_everywhere: flags & SAMPLE_ID_ALL != 0,
        ids: Vec::new(),
    })
}

/// What perf calls the usual events.
fn name(kind: u32, config: u64) -> String {
    let known = match (kind, config) {
        (0, 0) => "cycles",
        (0, 1) => "instructions",
        (0, 2) => "cache-references",
        (0, 3) => "cache-misses",
        (0, 4) => "branches",
        (0, 5) => "branch-misses",
        (1, 0) => "cpu-clock",
        (1, 1) => "task-clock",
        (1, 2) => "page-faults",
        (1, 3) => "context-switches",
        _ => return format!("event {kind}:{config:#x}"),
    };
    known.to_owned()
}

/// Inflates what compressed records hold together: one frame of zstd that has no end.
fn inflate(mut compressed: Vec<u8>, context: &Context<'_>) -> Result<Vec<u8>, DecodeError> {
    let limits = context.limits;
    let limit = limits.max_bytes.min((compressed.len() as u64).saturating_mul(limits.max_ratio).max(64 << 20));
    // An empty last block, so that nothing is held back for blocks to come, and a checksum.
    compressed.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0]);
    let broken = || damaged("its compressed part");
    let mut source = &compressed[..];
    let mut decoder = FrameDecoder::new();
    decoder.reset(&mut source).map_err(|_| broken())?;
    let mut plain = Vec::new();
    while !decoder.is_finished() {
        context.cancel.check()?;
        if decoder.decode_blocks(&mut source, BlockDecodingStrategy::UptoBytes(1 << 20)).is_err() {
            break;
        }
        plain.extend(decoder.collect().unwrap_or_default());
        if plain.len() as u64 > limit {
            return Err(DecodeError::new(DecodeErrorKind::Limit, "its compressed part expands beyond all bounds"));
        }
    }
    plain.extend(decoder.collect().unwrap_or_default());
    if plain.is_empty() { Err(broken()) } else { Ok(plain) }
}
