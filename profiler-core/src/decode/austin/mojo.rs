//! MOJO, Austin's binary form: a stream of events of one byte and their arguments.
//!
//! Numbers have six bits in their first byte, with a sign, and seven in each further one.
//! Texts end with a zero byte; those of frames are written once and referred to. Stacks are
//! root first, and what was measured follows its stack.

use rustc_hash::FxHashMap;

use super::{Metrics, Mode, labels, set_meta};
use crate::decode::sink::Sink;
use crate::decode::{Confidence, Context, DecodeError, DecodeErrorKind, Format, Input};
use crate::profile::{Label, LocId, Profile};

pub(in crate::decode) const FORMAT: Format = Format { name: "mojo", sniff, decode };

fn sniff(prefix: &[u8]) -> Confidence {
    if prefix.starts_with(b"MOJ") && prefix.len() > 3 { Confidence::Certain } else { Confidence::No }
}

/// Newer versions may mean anything.
const NEWEST: i64 = 3;

mod event {
    pub(super) const METADATA: u8 = 1;
    pub(super) const STACK: u8 = 2;
    pub(super) const FRAME: u8 = 3;
    pub(super) const INVALID_FRAME: u8 = 4;
    pub(super) const FRAME_REF: u8 = 5;
    pub(super) const KERNEL_FRAME: u8 = 6;
    pub(super) const GC: u8 = 7;
    pub(super) const IDLE: u8 = 8;
    pub(super) const TIME: u8 = 9;
    pub(super) const MEMORY: u8 = 10;
    pub(super) const STRING: u8 = 11;
    pub(super) const STRING_REF: u8 = 12;
}

struct Bytes<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Bytes<'a> {
    fn byte(&mut self) -> Result<u8, DecodeError> {
        let byte = self.bytes.get(self.position).ok_or_else(|| DecodeError::truncated("it ends inside an event"))?;
        self.position += 1;
        Ok(*byte)
    }

    fn number(&mut self) -> Result<i64, DecodeError> {
        let first = self.byte()?;
        let mut value = u64::from(first & 0x3f);
        let (mut shift, mut last) = (6, first);
        while last & 0x80 != 0 {
            last = self.byte()?;
            if shift > 63 {
                return Err(DecodeError::invalid(format!("a number at byte {} is too large", self.position)));
            }
            value |= u64::from(last & 0x7f) << shift;
            shift += 7;
        }
        // Keys are addresses and use all bits.
        let value = value.cast_signed();
        Ok(if first & 0x40 == 0 { value } else { value.wrapping_neg() })
    }

    fn text(&mut self) -> Result<&'a [u8], DecodeError> {
        let rest = &self.bytes[self.position..];
        let end = rest.iter().position(|&byte| byte == 0);
        let end = end.ok_or_else(|| DecodeError::truncated("it ends inside a text"))?;
        self.position += end + 1;
        Ok(&rest[..end])
    }
}

/// The stack that is being described, until its measurements are complete.
#[derive(Default)]
struct Open {
    frames: Vec<LocId>,
    metrics: Metrics,
    has_metrics: bool,
    labels: Vec<Label>,
}

struct Reader<'c, 'a> {
    bytes: Bytes<'a>,
    version: i64,
    mode: Option<Mode>,
    /// Made when the mode is known.
    sink: Option<Sink<'c>>,
    context: &'c Context<'c>,
    meta: Vec<(String, String)>,
    strings: FxHashMap<i64, &'a [u8]>,
    frames: FxHashMap<i64, LocId>,
    open: Option<Open>,
    unknown: u64,
}

fn decode(input: &mut Input<'_>, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let (bytes, mut cut) = input.read_available()?;
    let mut reader = Reader {
        bytes: Bytes { bytes: &bytes, position: 3 },
        version: 0,
        mode: None,
        sink: None,
        context,
        meta: Vec::new(),
        strings: FxHashMap::default(),
        frames: FxHashMap::default(),
        open: None,
        unknown: 0,
    };
    reader.version = reader.bytes.number()?;
    if !(1..=NEWEST).contains(&reader.version) {
        let message = format!("it is of version {} of MOJO; known are 1 to {NEWEST}", reader.version);
        return Err(DecodeError::new(DecodeErrorKind::Unsupported, message));
    }
    while reader.bytes.position < bytes.len() {
        let start = reader.bytes.position;
        match reader.event() {
            Ok(()) => {}
            Err(error) if error.kind() == DecodeErrorKind::Truncated && start > 4 => {
                cut = Some(error);
                reader.open = None;
                break;
            }
            Err(error) => return Err(error),
        }
    }
    reader.close()?;
    let mut sink = reader.take_sink();
    sink.note_cut(cut.as_ref());
    sink.note_count(reader.unknown, "frames refer to others that are not there; they count as unresolved");
    sink.finish()
}

impl<'c> Reader<'c, '_> {
    fn take_sink(&mut self) -> Sink<'c> {
        self.sink();
        let mode = self.mode.unwrap_or_default();
        self.sink.take().unwrap_or_else(|| Sink::new(FORMAT.name, mode.value_types(), self.context))
    }

    fn sink(&mut self) -> &mut Sink<'c> {
        let (mode, context) = (*self.mode.get_or_insert_default(), self.context);
        let meta = &self.meta;
        self.sink.get_or_insert_with(|| {
            let mut sink = Sink::new(FORMAT.name, mode.value_types(), context);
            sink.builder.meta().default_value_type = 0;
            for (key, value) in meta {
                set_meta(&mut sink, key, value);
            }
            sink
        })
    }

    fn event(&mut self) -> Result<(), DecodeError> {
        let at = self.bytes.position;
        match self.bytes.byte()? {
            event::METADATA => {
                let key = String::from_utf8_lossy(self.bytes.text()?).into_owned();
                let value = String::from_utf8_lossy(self.bytes.text()?).into_owned();
                if key == "mode" && self.mode.is_none() {
                    self.mode = Some(Mode::read(&value));
                }
                match &mut self.sink {
                    // The duration comes at the end.
                    Some(sink) => set_meta(sink, &key, &value),
                    None => self.meta.push((key, value)),
                }
            }
            event::STACK => {
                self.close()?;
                let process = self.bytes.number()?.to_string();
                if self.version > 2 {
                    self.bytes.number()?;
                }
                let thread = String::from_utf8_lossy(self.bytes.text()?).into_owned();
                let labels = labels(self.sink(), &process, &thread)?;
                self.open = Some(Open { labels, ..Open::default() });
            }
            event::FRAME => self.define_frame()?,
            event::INVALID_FRAME => {
                let frame = self.sink().frame("(invalid)", "", 0, 0)?;
                self.push(frame);
            }
            event::FRAME_REF => {
                let key = self.bytes.number()?;
                let frame = self.frames.get(&key).copied();
                self.unknown += u64::from(frame.is_none());
                self.push(frame.unwrap_or(LocId::NONE));
            }
            event::KERNEL_FRAME => {
                let name = String::from_utf8_lossy(self.bytes.text()?).into_owned();
                let frame = self.sink().frame(&name, "[kernel]", 0, 0)?;
                self.push(frame);
            }
            event::GC => {
                let frame = self.sink().frame("GC", "", 0, 0)?;
                self.push(frame);
            }
            event::IDLE => self.metrics(|metrics| metrics.is_idle = true),
            event::TIME => {
                let micros = self.bytes.number()?;
                self.metrics(|metrics| metrics.micros = micros);
            }
            event::MEMORY => {
                let bytes = self.bytes.number()?;
                self.metrics(|metrics| metrics.bytes = bytes);
            }
            event::STRING => {
                let key = self.bytes.number()?;
                let text = self.bytes.text()?;
                self.strings.insert(key, text);
            }
            event::STRING_REF => {
                let key = self.bytes.number()?;
                let name = self.string(key);
                let frame = self.sink().frame(&name, "", 0, 0)?;
                self.push(frame);
            }
            other => return Err(DecodeError::invalid(format!("an event {other} at byte {at} is not known"))),
        }
        Ok(())
    }

    fn string(&self, key: i64) -> String {
        String::from_utf8_lossy(self.strings.get(&key).copied().unwrap_or_default()).into_owned()
    }

    fn define_frame(&mut self) -> Result<(), DecodeError> {
        let key = self.bytes.number()?;
        let (file, name) = (self.bytes.number()?, self.bytes.number()?);
        let line = self.bytes.number()?;
        let mut column = 0;
        if self.version > 1 {
            self.bytes.number()?;
            column = self.bytes.number()?;
            self.bytes.number()?;
        }
        let (file, name) = (self.string(file), self.string(name));
        let frame = self.sink().frame(&name, &file, line, column)?;
        self.frames.insert(key, frame);
        Ok(())
    }

    fn push(&mut self, frame: LocId) {
        if let Some(open) = &mut self.open {
            open.frames.push(frame);
        }
    }

    fn metrics(&mut self, set: impl FnOnce(&mut Metrics)) {
        if let Some(open) = &mut self.open {
            set(&mut open.metrics);
            open.has_metrics = true;
        }
    }

    /// The stack is complete when the next one begins.
    fn close(&mut self) -> Result<(), DecodeError> {
        let Some(mut open) = self.open.take().filter(|open| open.has_metrics) else { return Ok(()) };
        open.frames.reverse();
        let mode = self.mode.unwrap_or_default();
        self.sink().sample(&open.frames, &open.metrics.values(mode), &open.labels)
    }
}
