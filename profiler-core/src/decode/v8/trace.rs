//! Traces of Chrome, and of the many tools that write its format.
//!
//! ```text
//! {"traceEvents": [{"ph": "B", "name": "work", "pid": 1, "tid": 2, "ts": 3.5, …}, …]}
//! ```
//!
//! Or the list alone. A trace that holds CPU profiles of V8 (`Profile` and `ProfileChunk`
//! events) is read as those; one that doesn't is read by its spans: begin and end events and
//! complete ones are the stacks of their thread, and the time between two events belongs to
//! what is open then. Files that end in the middle are common, because Chrome writes them as
//! it goes.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::stacks::{Functions, is_idle, link_parents};
use super::tree::{CallFrame, Node};
use super::{emit, note_idle};
use crate::decode::json::{self, Token, Tokens};
use crate::decode::sink::Sink;
use crate::decode::{Confidence, Context, DecodeError, DecodeErrorKind, Format, Input, fraction, text};
use crate::profile::{Label, LineDetail, LocId, Profile, ValueType};

pub(in crate::decode) const FORMAT: Format = Format { name: "chrome-trace", sniff, decode };

fn sniff(prefix: &[u8]) -> Confidence {
    let Some(content) = json::beginning(prefix, &['{', '[']) else { return Confidence::No };
    let has = |word: &str| content.contains(word);
    let is_list = content.trim_start().starts_with('[');
    let has_events = has("\"ph\"") && has("\"ts\"") && (has("\"pid\"") || has("\"tid\""));
    if has("\"traceEvents\"") || (is_list && has_events) { Confidence::Likely } else { Confidence::No }
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default)]
    ph: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(default)]
    pid: Id,
    #[serde(default)]
    tid: Id,
    #[serde(default)]
    id: Id,
    #[serde(default)]
    ts: f64,
    #[serde(default)]
    dur: f64,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

/// A number or a text.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(untagged)]
enum Id {
    Number(i64),
    Text(String),
    #[serde(skip)]
    #[default]
    None,
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
            Self::None => Ok(()),
        }
    }
}

type Thread = (Id, Id);

/// Everything that is of use, thread by thread.
#[derive(Default)]
struct Trace {
    process_names: FxHashMap<Id, String>,
    thread_names: FxHashMap<Thread, String>,
    /// CPU profiles by process and id, in the order of the file.
    profiles: Vec<((Id, Id), CpuProfile)>,
    profile_numbers: FxHashMap<(Id, Id), usize>,
    frames: Vec<Frame>,
    frame_numbers: FxHashMap<Frame, u32>,
    spans: Vec<(Thread, Vec<Span>)>,
    span_numbers: FxHashMap<Thread, usize>,
    broken: u64,
}

#[derive(Default)]
struct CpuProfile {
    tid: Id,
    nodes: Vec<Node>,
    samples: Vec<(i64, i64)>,
    /// Microseconds that the samples took.
    time: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Frame {
    name: Box<str>,
    file: Box<str>,
    line: i64,
}

/// Something that begins or ends.
#[derive(Clone, Copy)]
struct Span {
    at: f64,
    /// Length of what begins, as far as it is known then; a longer one is outside.
    length: f64,
    /// What begins; `None` for the end of what was begun last.
    frame: Option<u32>,
    /// Whether it is the end of a complete event.
    is_end: bool,
}

fn decode(input: &mut Input<'_>, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let (bytes, cut) = input.read_available()?;
    let all = text::decode(&bytes).ok_or_else(|| DecodeError::invalid("it is not text"))?;
    let mut trace = Trace::default();
    let is_complete = trace.read(&all, context)?;
    let mut sink = if trace.profiles.iter().any(|(_, profile)| !profile.samples.is_empty()) {
        trace.cpu_profiles(context)?
    } else {
        trace.stacks(context)?
    };
    if !is_complete {
        let cut = cut.unwrap_or_else(|| DecodeError::truncated("its list of events has no end"));
        sink.note_cut(Some(&cut));
    }
    sink.note_count(trace.broken, "events can't be read; they were left out");
    sink.finish()
}

/// Where the list of events begins.
fn events(all: &str) -> Result<&str, DecodeError> {
    let mut tokens = Tokens::new(all);
    match tokens.next()? {
        Some(Token::Array) => Ok(tokens.rest()),
        Some(Token::Object) => loop {
            match tokens.next()? {
                Some(Token::Key(key)) if key == "traceEvents" => {
                    return match tokens.next()? {
                        Some(Token::Array) => Ok(tokens.rest()),
                        _ => Err(DecodeError::invalid("its events are no list")),
                    };
                }
                Some(Token::Key(_)) => tokens.skip_value()?,
                _ => return Err(DecodeError::invalid("it has no list of events")),
            }
        },
        _ => Err(DecodeError::invalid("it has no list of events")),
    }
}

impl Trace {
    /// Reads all events; whether the list has an end.
    fn read(&mut self, all: &str, context: &Context<'_>) -> Result<bool, DecodeError> {
        let mut rest = events(all)?;
        for count in 0usize.. {
            if count.is_multiple_of(4096) {
                context.cancel.check()?;
            }
            rest = rest.trim_start_matches([' ', '\t', '\r', '\n', ',']);
            if rest.is_empty() || rest.starts_with(']') {
                return Ok(!rest.is_empty());
            }
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
            let raw = match values.next() {
                Some(Ok(raw)) => raw,
                Some(Err(error)) if error.is_eof() => return Ok(false),
                Some(Err(error)) => return Err(json::error_of(&error)),
                None => return Ok(false),
            };
            rest = &rest[values.byte_offset()..];
            match serde_json::from_str::<Event<'_>>(raw.get()) {
                Ok(event) => self.add(&event),
                Err(_) => self.broken += 1,
            }
        }
        Ok(true)
    }

    fn add(&mut self, event: &Event<'_>) {
        let thread = || (event.pid.clone(), event.tid.clone());
        match (&*event.ph, &*event.name) {
            ("M", "process_name") => {
                self.process_names.extend(name_argument(event).map(|name| (event.pid.clone(), name)));
            }
            ("M", "thread_name") => self.thread_names.extend(name_argument(event).map(|name| (thread(), name))),
            (_, "Profile") => self.profile(event).tid = event.tid.clone(),
            (_, "ProfileChunk" | "CpuProfile") => self.add_chunk(event),
            ("B", _) => {
                let frame = Some(self.frame(event));
                self.span(thread(), Span { at: event.ts, length: f64::MAX, frame, is_end: false });
            }
            ("E", _) => self.span(thread(), Span { at: event.ts, length: 0.0, frame: None, is_end: false }),
            ("X", _) if event.dur > 0.0 => {
                let frame = Some(self.frame(event));
                self.span(thread(), Span { at: event.ts, length: event.dur, frame, is_end: false });
                self.span(thread(), Span { at: event.ts + event.dur, length: event.dur, frame, is_end: true });
            }
            _ => {}
        }
    }

    fn profile(&mut self, event: &Event<'_>) -> &mut CpuProfile {
        let key = (event.pid.clone(), event.id.clone());
        let next = self.profiles.len();
        let at = *self.profile_numbers.entry(key.clone()).or_insert(next);
        if at == next {
            self.profiles.push((key, CpuProfile { tid: event.tid.clone(), ..CpuProfile::default() }));
        }
        &mut self.profiles[at].1
    }

    fn add_chunk(&mut self, event: &Event<'_>) {
        let Some(chunk) = event.args.and_then(|args| serde_json::from_str::<Arguments>(args.get()).ok()) else {
            self.broken += 1;
            return;
        };
        let Data { cpu_profile, time_deltas, lines } = chunk.data;
        let profile = self.profile(event);
        let deltas = if time_deltas.is_empty() { cpu_profile.time_deltas } else { time_deltas };
        let lines = if lines.is_empty() { cpu_profile.lines } else { lines };
        profile.time += deltas.iter().map(|&delta| delta.clamp(0, 1 << 40)).sum::<i64>();
        for (index, &node) in cpu_profile.samples.iter().enumerate() {
            profile.samples.push((node, lines.get(index).copied().unwrap_or(0)));
        }
        profile.nodes.extend(cpu_profile.nodes.into_iter().map(|node| Node {
            id: node.id,
            parent_id: node.parent,
            children: node.children,
            frame: CallFrame {
                name: node.call_frame.function_name,
                url: node.call_frame.url,
                line: node.call_frame.line_number.map_or(0, |line| line.saturating_add(1)),
                column: node.call_frame.column_number.map_or(0, |column| column.saturating_add(1)),
            },
            ..Node::default()
        }));
    }

    fn frame(&mut self, event: &Event<'_>) -> u32 {
        let place = event.args.and_then(|args| serde_json::from_str::<Place>(args.get()).ok()).unwrap_or_default();
        let frame =
            Frame { name: Box::from(&*event.name), file: place.file.into(), line: place.line.unwrap_or_default() };
        let next = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        let number = *self.frame_numbers.entry(frame.clone()).or_insert(next);
        if number == next {
            self.frames.push(frame);
        }
        number
    }

    fn span(&mut self, thread: Thread, span: Span) {
        let next = self.spans.len();
        let at = *self.span_numbers.entry(thread.clone()).or_insert(next);
        if at == next {
            self.spans.push((thread, Vec::new()));
        }
        self.spans[at].1.push(span);
    }

    fn labels(&self, thread: &Thread, sink: &mut Sink<'_>) -> Result<Vec<Label>, DecodeError> {
        let (pid, tid) = (thread.0.to_string(), thread.1.to_string());
        let process = self.process_names.get(&thread.0).map_or(&*pid, String::as_str);
        let name = self.thread_names.get(thread).map_or(&*tid, String::as_str);
        let labels = [sink.label("process", process)?, sink.label("thread", name)?];
        Ok(labels.into_iter().flatten().collect())
    }

    fn cpu_profiles<'c>(&mut self, context: &'c Context<'c>) -> Result<Sink<'c>, DecodeError> {
        let mut sink = Sink::new(FORMAT.name, vec![ValueType::new("samples", "count")], context);
        sink.builder.meta().line_detail = LineDetail::LeafOnly;
        let (mut time, mut count, mut idle, mut unknown) = (0i64, 0i64, 0, 0);
        for ((pid, _), mut profile) in std::mem::take(&mut self.profiles) {
            let by_id = link_parents(&mut profile.nodes);
            let mut ticks: FxHashMap<(usize, i64), i64> = FxHashMap::default();
            for &(node, line) in &profile.samples {
                match by_id.get(&node) {
                    Some(&node) => *ticks.entry((node, line)).or_default() += 1,
                    None => unknown += 1,
                }
            }
            for (&(node, line), &count) in &ticks {
                let node = &mut profile.nodes[node];
                node.hit_count += count;
                if line > 0 {
                    node.ticks.push((line, count));
                }
                if is_idle(&node.frame) {
                    idle += count;
                }
            }
            for node in &mut profile.nodes {
                node.ticks.sort_unstable();
            }
            time = time.saturating_add(profile.time);
            count += i64::try_from(profile.samples.len()).unwrap_or(0);
            let labels = self.labels(&(pid, profile.tid.clone()), &mut sink)?;
            emit(&profile.nodes, &mut Functions::default(), &labels, &mut sink)?;
        }
        let meta = sink.builder.meta();
        meta.duration_ns = time.checked_mul(1000).filter(|&time| time > 0);
        if let Some(period) = fraction::nearest(time as f64 * 1e3 / count.max(1) as f64).filter(|&period| period > 0) {
            meta.set_average_period(period, "wall");
        }
        note_idle(&mut sink, idle);
        sink.note_count(unknown, "samples are of functions that are not there; they were left out");
        Ok(sink)
    }

    fn stacks<'c>(&mut self, context: &'c Context<'c>) -> Result<Sink<'c>, DecodeError> {
        if self.spans.is_empty() {
            return Err(DecodeError::new(
                DecodeErrorKind::NotAProfile,
                "it is a trace without CPU profiles and without spans of time",
            ));
        }
        let mut sink = Sink::new(FORMAT.name, vec![ValueType::new("time", "nanoseconds")], context);
        let mut locations = Vec::with_capacity(self.frames.len());
        for frame in &self.frames {
            locations.push(sink.frame(&frame.name, &frame.file, frame.line, 0)?);
        }
        let mut unmatched = 0;
        for (thread, mut spans) in std::mem::take(&mut self.spans) {
            let labels = self.labels(&thread, &mut sink)?;
            if spans.iter().any(|span| span.is_end) {
                // Complete events come in any order: what ends before what begins, the longer first.
                spans.sort_by(|a, b| {
                    let begins = |span: &Span| !span.is_end && span.frame.is_some();
                    let order = if begins(a) { b.length.total_cmp(&a.length) } else { a.length.total_cmp(&b.length) };
                    a.at.total_cmp(&b.at).then(begins(a).cmp(&begins(b))).then(order)
                });
            } else {
                spans.sort_by(|a, b| a.at.total_cmp(&b.at));
            }
            unmatched += walk(&spans, &locations, &labels, &mut sink)?;
        }
        sink.note_count(unmatched, "spans have no beginning; they were left out");
        Ok(sink)
    }
}

/// Adds the time between events to the stacks that are open then. Returns how many ended
/// without having begun.
fn walk(spans: &[Span], locations: &[LocId], labels: &[Label], sink: &mut Sink<'_>) -> Result<u64, DecodeError> {
    let mut open: Vec<u32> = Vec::new();
    let mut stack = Vec::new();
    let mut last = 0.0;
    let mut unmatched = 0;
    for span in spans {
        let passed = span.at - last;
        last = span.at;
        if !open.is_empty() && passed > 0.0 {
            let value = fraction::nearest(passed * 1e3)
                .ok_or_else(|| DecodeError::invalid("the times of its events are out of range"))?;
            stack.clear();
            stack.extend(open.iter().rev().map(|&frame| locations[frame as usize]));
            sink.sample(&stack, &[value], labels)?;
        }
        match (span.frame, span.is_end) {
            (Some(frame), false) => open.push(frame),
            (Some(frame), true) => {
                if let Some(at) = open.iter().rposition(|&known| known == frame) {
                    open.remove(at);
                }
            }
            (None, _) => unmatched += u64::from(open.pop().is_none()),
        }
    }
    Ok(unmatched)
}

fn name_argument(event: &Event<'_>) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    serde_json::from_str::<Named>(event.args?.get()).ok().map(|named| named.name)
}

/// Where a span is from, by the names that writers use.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Place {
    #[serde(alias = "filename", alias = ".file", alias = "url")]
    file: String,
    #[serde(alias = ".line", alias = "lineno", alias = "lineNumber")]
    line: Option<i64>,
}

#[derive(Deserialize)]
struct Arguments {
    data: Data,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Data {
    cpu_profile: Chunk,
    time_deltas: Vec<i64>,
    lines: Vec<i64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Chunk {
    nodes: Vec<ChunkNode>,
    samples: Vec<i64>,
    time_deltas: Vec<i64>,
    lines: Vec<i64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ChunkNode {
    id: i64,
    parent: Option<i64>,
    children: Vec<i64>,
    call_frame: ChunkFrame,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ChunkFrame {
    function_name: String,
    url: String,
    line_number: Option<i64>,
    column_number: Option<i64>,
}
