//! The processed format of the Firefox profiler, which samply and others write too.
//!
//! Tables of columns, in each thread or, in later versions, shared by all: samples refer to
//! stacks, those to their caller's stack and a frame, frames to functions. Names of columns
//! are what changed over the versions, so each is looked for where it was and where it is.
//!
//! samply's profiles of native code hold addresses only. Then a frame is an address in a
//! library with its build id, to be named later; or here already, where names were put into
//! the file.
//!
//! What is not here: Gecko's own raw format, and the list of names that samply can write beside
//! the file, which is a matter of [`symbolize`](crate::symbolize).

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use serde::Deserialize;

use super::fraction;
use super::json;
use super::sink::Sink;
use super::{Confidence, Context, DecodeError, DecodeErrorKind, Format, Input, text};
use crate::profile::{Label, Line, LineNo, LocId, MapId, Mapping, Profile, ValueType};

pub(super) const FORMAT: Format = Format { name: "firefox", sniff, decode };

fn sniff(prefix: &[u8]) -> Confidence {
    let Some(content) = json::beginning(prefix, &['{']) else { return Confidence::No };
    let has = |word: &str| content.contains(word);
    if has("\"preprocessedProfileVersion\"") {
        Confidence::Certain
    } else if has("\"meta\"") && (has("\"libs\"") || has("\"threads\"")) && has("\"interval\"") {
        Confidence::Likely
    } else {
        Confidence::No
    }
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    meta: Meta<'a>,
    #[serde(borrow, default)]
    libs: Vec<Lib<'a>>,
    #[serde(borrow)]
    threads: Vec<Thread<'a>>,
    #[serde(borrow)]
    shared: Option<Tables<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta<'a> {
    /// Milliseconds.
    #[serde(default)]
    interval: f64,
    #[serde(default)]
    start_time: f64,
    preprocessed_profile_version: Option<u32>,
    #[serde(borrow, default)]
    product: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Lib<'a> {
    #[serde(borrow, default)]
    path: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    code_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    breakpad_id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Thread<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    process_name: Option<Cow<'a, str>>,
    #[serde(default)]
    pid: Id,
    #[serde(default)]
    tid: Id,
    #[serde(borrow)]
    samples: Samples<'a>,
    #[serde(borrow, flatten)]
    tables: Tables<'a>,
}

#[derive(Default, Deserialize)]
#[serde(untagged)]
enum Id {
    Number(u64),
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Samples<'a> {
    stack: Vec<Option<u32>>,
    #[serde(default)]
    weight: Option<Vec<f64>>,
    #[serde(borrow)]
    weight_type: Option<Cow<'a, str>>,
    #[serde(default)]
    time: Vec<f64>,
    /// Distances in time, where times themselves were left out.
    #[serde(default)]
    time_deltas: Vec<f64>,
}

/// What moved from the threads to a shared place with version 60; a thread of an older one has
/// all of it.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tables<'a> {
    stack_table: Option<StackTable>,
    frame_table: Option<FrameTable>,
    func_table: Option<FuncTable>,
    resource_table: Option<ResourceTable>,
    #[serde(borrow)]
    string_array: Option<Vec<Cow<'a, str>>>,
    sources: Option<Sources>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StackTable {
    #[serde(default)]
    prefix: Vec<Option<u32>>,
    /// Since version 66: how far back the caller is, 0 = nobody.
    #[serde(default)]
    prefix_offset: Vec<u32>,
    frame: Vec<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameTable {
    #[serde(default)]
    address: Vec<i64>,
    #[serde(default)]
    inline_depth: Vec<u32>,
    func: Vec<u32>,
    #[serde(default)]
    line: Vec<Option<i64>>,
    #[serde(default)]
    column: Vec<Option<i64>>,
    /// Since version 70.
    #[serde(default)]
    lib: Vec<Option<i64>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FuncTable {
    name: Vec<u32>,
    #[serde(default)]
    resource: Vec<i64>,
    #[serde(default)]
    file_name: Vec<Option<u32>>,
    /// Since version 58.
    #[serde(default)]
    source: Vec<Option<u32>>,
    #[serde(default)]
    line_number: Vec<Option<i64>>,
    #[serde(default)]
    column_number: Vec<Option<i64>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceTable {
    #[serde(default)]
    lib: Vec<Option<i64>>,
}

#[derive(Deserialize)]
struct Sources {
    #[serde(default)]
    filename: Vec<u32>,
}

fn at<T: Copy>(column: &[T], row: u32) -> Option<T> {
    column.get(row as usize).copied()
}

fn decode(input: &mut Input<'_>, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let bytes = input.read_all()?;
    let all = text::decode(&bytes).ok_or_else(|| DecodeError::invalid("it is not text"))?;
    let file: File<'_> = json::parse(&all)?;
    if file.meta.preprocessed_profile_version.is_none() {
        return Err(DecodeError::new(
            DecodeErrorKind::Unsupported,
            "it is a raw profile of Gecko; open it in the Firefox profiler and save it there, which makes one that \
             can be read",
        ));
    }
    let shared = file.shared.unwrap_or_default();
    let types = value_types(&file.threads);
    let mut sink = Sink::new(FORMAT.name, types.clone(), context);
    let meta = sink.builder.meta();
    meta.default_value_type = 0;
    meta.time_ns = fraction::nearest(file.meta.start_time * 1e6).filter(|&time| time > 0);
    if let Some(period) = fraction::nearest(file.meta.interval * 1e6).filter(|&period| period > 0) {
        meta.period = period;
        meta.period_type = Some(ValueType::new("wall", "nanoseconds"));
    }
    if !file.meta.product.is_empty() {
        meta.comments.push(file.meta.product.clone().into_owned());
    }
    let mut mappings = Vec::new();
    for lib in &file.libs {
        let file = if lib.path.is_empty() { &lib.name } else { &lib.path };
        let id = lib.code_id.as_ref().or(lib.breakpad_id.as_ref()).map_or("", |id| id);
        let builder = &mut sink.builder;
        let mapping = Mapping { file: builder.string(file)?, build_id: builder.string(id)?, ..Mapping::default() };
        mappings.push(builder.push_mapping(mapping)?);
    }
    let mut span = (f64::MAX, f64::MIN);
    let mut missing = 0;
    for thread in &file.threads {
        context.cancel.check()?;
        let tables = Whole::of(&thread.tables, &shared)?;
        missing += add_thread(thread, &tables, &mappings, &types, &mut sink)?;
        let mut time = 0.0;
        for (index, &value) in thread.samples.time.iter().chain(&thread.samples.time_deltas).enumerate() {
            time = if thread.samples.time.is_empty() && index > 0 { time + value } else { value };
            span = (span.0.min(time), span.1.max(time));
        }
    }
    sink.builder.meta().duration_ns = fraction::nearest((span.1 - span.0) * 1e6).filter(|&duration| duration > 0);
    sink.note_count(missing, "frames or stacks are not there; they count as unresolved");
    sink.finish()
}

/// One value type per kind of weight.
fn value_types(threads: &[Thread<'_>]) -> Vec<ValueType> {
    let mut types = Vec::new();
    for thread in threads.iter().filter(|thread| !thread.samples.stack.is_empty()) {
        let kind = thread.value_type();
        if !types.contains(&kind) {
            types.push(kind);
        }
    }
    if types.is_empty() {
        types.push(ValueType::new("samples", "count"));
    }
    types
}

impl Thread<'_> {
    fn value_type(&self) -> ValueType {
        match self.samples.weight_type.as_deref() {
            Some("tracing-ms") => ValueType::new("time", "nanoseconds"),
            Some("bytes") => ValueType::new("space", "bytes"),
            _ => ValueType::new("samples", "count"),
        }
    }
}

/// The tables of a thread, wherever they are.
struct Whole<'t, 'a> {
    stacks: &'t StackTable,
    frames: &'t FrameTable,
    functions: &'t FuncTable,
    resources: Option<&'t ResourceTable>,
    strings: &'t [Cow<'a, str>],
    sources: Option<&'t Sources>,
}

impl<'t, 'a> Whole<'t, 'a> {
    fn of(own: &'t Tables<'a>, shared: &'t Tables<'a>) -> Result<Self, DecodeError> {
        let missing = |what: &str| DecodeError::invalid(format!("it has no table of {what}"));
        Ok(Self {
            stacks: own.stack_table.as_ref().or(shared.stack_table.as_ref()).ok_or_else(|| missing("stacks"))?,
            frames: own.frame_table.as_ref().or(shared.frame_table.as_ref()).ok_or_else(|| missing("frames"))?,
            functions: own.func_table.as_ref().or(shared.func_table.as_ref()).ok_or_else(|| missing("functions"))?,
            resources: own.resource_table.as_ref().or(shared.resource_table.as_ref()),
            strings: own.string_array.as_ref().or(shared.string_array.as_ref()).ok_or_else(|| missing("strings"))?,
            sources: own.sources.as_ref().or(shared.sources.as_ref()),
        })
    }

    fn string(&self, index: Option<u32>) -> &str {
        index.and_then(|index| self.strings.get(index as usize)).map_or("", |text| text)
    }

    /// The stack of the caller. Callers come before what they call, so this ends.
    fn caller(&self, stack: u32) -> Option<u32> {
        let caller = match at(&self.stacks.prefix_offset, stack) {
            Some(0) => None,
            Some(offset) => stack.checked_sub(offset),
            None => at(&self.stacks.prefix, stack).flatten(),
        };
        caller.filter(|&caller| caller < stack)
    }

    fn line(&self, frame: u32, sink: &mut Sink<'_>) -> Result<Option<Line>, DecodeError> {
        let Some(function) = at(&self.frames.func, frame) else { return Ok(None) };
        let name = self.string(at(&self.functions.name, function));
        let file = match at(&self.functions.source, function).flatten() {
            Some(source) => self.string(self.sources.and_then(|sources| at(&sources.filename, source))),
            None => self.string(at(&self.functions.file_name, function).flatten()),
        };
        // Nobody knows the name: it stands for the address.
        if name.starts_with("0x") && file.is_empty() {
            return Ok(None);
        }
        let position = |column: &[Option<i64>], row| at(column, row).flatten().unwrap_or(0);
        let start = LineNo::from_pprof(position(&self.functions.line_number, function), 0).0;
        let row = sink.builder.function(name, "", file, start)?;
        sink.builder.set_start_column(row, LineNo::from_pprof(1, position(&self.functions.column_number, function)).1);
        let (line, column) =
            LineNo::from_pprof(position(&self.frames.line, frame), position(&self.frames.column, frame));
        Ok(Some(Line { function: row, line, column }))
    }

    fn mapping(&self, frame: u32, mappings: &[MapId]) -> MapId {
        let by_function = || {
            let resource = at(&self.functions.resource, at(&self.frames.func, frame)?)?;
            at(&self.resources?.lib, u32::try_from(resource).ok()?).flatten()
        };
        let lib = at(&self.frames.lib, frame).flatten().or_else(by_function);
        lib.and_then(|lib| mappings.get(usize::try_from(lib).ok()?)).copied().unwrap_or(MapId::NONE)
    }

    /// The location of a frame that is no inlined call, with those inlined into it.
    fn location(&self, inlined_first: &[u32], mappings: &[MapId], sink: &mut Sink<'_>) -> Result<LocId, DecodeError> {
        let Some(&outer) = inlined_first.last() else { return Ok(LocId::NONE) };
        let mut lines = Vec::with_capacity(inlined_first.len());
        for &frame in inlined_first {
            lines.extend(self.line(frame, sink)?);
        }
        let address = at(&self.frames.address, outer).and_then(|address| u64::try_from(address).ok()).unwrap_or(0);
        Ok(sink.builder.location(self.mapping(outer, mappings), address, &lines)?)
    }
}

fn add_thread(
    thread: &Thread<'_>,
    tables: &Whole<'_, '_>,
    mappings: &[MapId],
    types: &[ValueType],
    sink: &mut Sink<'_>,
) -> Result<u64, DecodeError> {
    let kind = thread.value_type();
    let column = types.iter().position(|known| *known == kind).unwrap_or(0);
    let labels = labels(thread, sink)?;
    let mut values = vec![0; types.len()];
    let mut known: FxHashMap<Vec<u32>, LocId> = FxHashMap::default();
    let (mut stack, mut group) = (Vec::new(), Vec::new());
    let mut missing = 0;
    for (row, &leaf) in thread.samples.stack.iter().enumerate() {
        let weight = match &thread.samples.weight {
            Some(weights) => weights.get(row).copied().unwrap_or(0.0),
            None => 1.0,
        };
        let weight = if kind.unit == "nanoseconds" { weight * 1e6 } else { weight };
        let value = sink.rounding.nearest(weight);
        values[column] = value.ok_or_else(|| DecodeError::invalid("the weight of a sample is out of range"))?;
        stack.clear();
        group.clear();
        let mut next = leaf;
        while let Some(at_stack) = next {
            next = tables.caller(at_stack);
            let Some(frame) = at(&tables.stacks.frame, at_stack) else {
                missing += 1;
                continue;
            };
            group.push(frame);
            // Inlined calls have the address of what they are inlined into, and follow it.
            if at(&tables.frames.inline_depth, frame).unwrap_or(0) == 0 {
                let location = if let Some(&location) = known.get(&group) {
                    location
                } else {
                    let location = tables.location(&group, mappings, sink)?;
                    known.insert(group.clone(), location);
                    location
                };
                stack.push(location);
                group.clear();
            }
        }
        sink.sample(&stack, &values, &labels)?;
    }
    Ok(missing)
}

fn labels(thread: &Thread<'_>, sink: &mut Sink<'_>) -> Result<Vec<Label>, DecodeError> {
    let (pid, tid) = (thread.pid.to_string(), thread.tid.to_string());
    let labels = [
        sink.label("process", thread.process_name.as_deref().unwrap_or_default())?,
        sink.label("thread", &thread.name)?,
        sink.label("pid", &pid)?,
        sink.label("tid", &tid)?,
    ];
    Ok(labels.into_iter().flatten().collect())
}
