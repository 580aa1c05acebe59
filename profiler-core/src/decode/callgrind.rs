//! The format of callgrind, which Xdebug and others write too, and that of cachegrind, which
//! is the same without calls.
//!
//! ```text
//! events: Ir
//! fl=(1) main.c
//! fn=(1) main
//! 16 20
//! cfn=(2) work
//! calls=1 50
//! 16 400
//! ```
//!
//! Costs of lines, and what a call costs with everything below it; no stacks. Names are
//! written once with a number, and by number afterwards. Positions may be relative to the one
//! before.
//!
//! What is inclusive of a call can't be used within recursion: it counts the same cost again
//! on each level. Such calls are left out. callgrind's own marks for levels of recursion
//! (`fib'2`) are taken off names, for one function is one function.
//!
//! What is not here: jumps, and costs by instruction.

use rustc_hash::FxHashMap;

use super::sink::Sink;
use super::{Confidence, Context, DecodeError, DecodeErrorKind, Format, Input, text};
use crate::cycles;
use crate::profile::{FuncId, Line, LineDetail, LineNo, LocId, MapId, Mapping, Profile, ValueType};

pub(super) const FORMAT: Format = Format { name: "callgrind", sniff, decode };

fn sniff(prefix: &[u8]) -> Confidence {
    let Some(content) = text::decode(prefix) else { return Confidence::No };
    let head = content.trim_start();
    let has = |word: &str| head.starts_with(word) || head.contains(&format!("\n{word}"));
    if head.starts_with("# callgrind format") || (has("events:") && (has("fn=") || has("fl="))) {
        Confidence::Certain
    } else if has("events:") && (has("creator:") || has("desc:")) && has("cmd:") {
        Confidence::Likely
    } else {
        Confidence::No
    }
}

/// Most events; each is a column.
const MAX_EVENTS: usize = 64;

/// Names by number, as the file defines them.
#[derive(Default)]
struct Names<'a> {
    known: FxHashMap<&'a str, &'a str>,
}

impl<'a> Names<'a> {
    /// The name meant by `(3) name`, `(3)` or `name`.
    fn read(&mut self, written: &'a str) -> &'a str {
        let written = written.trim();
        let Some((number, name)) = written.strip_prefix('(').and_then(|rest| rest.split_once(')')) else {
            return written;
        };
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return written;
        }
        let name = name.trim();
        if name.is_empty() {
            return self.known.get(number).copied().unwrap_or("");
        }
        self.known.insert(number, name);
        name
    }
}

/// An event as a value type.
struct Event {
    value_type: ValueType,
    factor: i64,
}

impl Event {
    fn read(name: &str) -> Self {
        let of = |kind: &str, unit: &str, factor| Self { value_type: ValueType::new(kind, unit), factor };
        match name {
            "Time_(10ns)" => of("time", "nanoseconds", 10),
            "Time_(ns)" => of("time", "nanoseconds", 1),
            "Time_(us)" | "Time_(µs)" => of("time", "nanoseconds", 1000),
            "Memory_(bytes)" => of("memory", "bytes", 1),
            name => of(name, "count", 1),
        }
    }
}

/// A call whose cost is on the next line.
struct Call {
    callee: FuncId,
}

struct Reader<'c, 'a> {
    sink: Sink<'c>,
    events: Vec<Event>,
    files: Names<'a>,
    functions: Names<'a>,
    objects: Names<'a>,
    mappings: FxHashMap<&'a str, MapId>,
    /// How many numbers come before the costs, and which of them is the line.
    positions: usize,
    line_position: Option<usize>,
    last: Vec<i64>,
    object: MapId,
    /// File of the function, and file of the code, which differ where it was inlined.
    function_file: &'a str,
    file: &'a str,
    function: FuncId,
    called_file: Option<&'a str>,
    called_name: &'a str,
    call: Option<Call>,
    /// Caller, callee, place and costs of each call.
    calls: Vec<(FuncId, FuncId, LocId)>,
    call_costs: Vec<i64>,
    /// Dumps in the file: of several moments, or of several threads.
    parts: u64,
    others: u64,
}

fn decode(input: &mut Input<'_>, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let (bytes, cut) = input.read_available()?;
    let all = text::decode(&bytes).ok_or_else(|| DecodeError::invalid("it is not text"))?;
    let events = all
        .lines()
        .find_map(|line| line.strip_prefix("events:"))
        .ok_or_else(|| DecodeError::invalid("it does not say what it counts (`events:`)"))?;
    let events: Vec<Event> = events.split_ascii_whitespace().map(Event::read).collect();
    if events.is_empty() || events.len() > MAX_EVENTS {
        return Err(DecodeError::invalid("it counts nothing, or too much (`events:`)"));
    }
    let value_types = events.iter().map(|event| event.value_type.clone()).collect();
    let mut reader = Reader {
        sink: Sink::new(FORMAT.name, value_types, context),
        events,
        files: Names::default(),
        functions: Names::default(),
        objects: Names::default(),
        mappings: FxHashMap::default(),
        positions: 1,
        line_position: Some(0),
        last: vec![0],
        object: MapId::NONE,
        function_file: "",
        file: "",
        function: FuncId::NONE,
        called_file: None,
        called_name: "",
        call: None,
        calls: Vec::new(),
        call_costs: Vec::new(),
        parts: 0,
        others: 0,
    };
    reader.sink.builder.meta().default_value_type = 0;
    let whole = if cut.is_some() { all.rsplit_once('\n').map_or("", |(lines, _)| lines) } else { &*all };
    for (number, line) in whole.lines().enumerate() {
        if number.is_multiple_of(4096) {
            context.cancel.check()?;
        }
        reader.line(line)?;
    }
    reader.sink.note_cut(cut.as_ref());
    reader.finish()
}

/// The name without the mark of a level of recursion.
fn one_function(name: &str) -> &str {
    match name.rsplit_once('\'') {
        Some((rest, level)) if !rest.is_empty() && !level.is_empty() && level.bytes().all(|b| b.is_ascii_digit()) => {
            rest
        }
        _ => name,
    }
}

/// The file, where it is known.
fn known(file: &str) -> &str {
    if file == "???" { "" } else { file }
}

impl<'a> Reader<'_, 'a> {
    fn line(&mut self, line: &'a str) -> Result<(), DecodeError> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let first = line.as_bytes()[0];
        if first.is_ascii_digit() || matches!(first, b'+' | b'-' | b'*') {
            return self.costs(line);
        }
        if let Some((key, value)) = line.split_once('=') {
            match key {
                "fl" => {
                    self.function_file = self.files.read(value);
                    self.file = self.function_file;
                    return Ok(());
                }
                "fi" | "fe" => {
                    self.file = self.files.read(value);
                    return Ok(());
                }
                "fn" => {
                    let name = one_function(self.functions.read(value));
                    self.function_file = self.file;
                    self.function = self.sink.builder.function(name, "", known(self.file), LineNo::UNKNOWN)?;
                    return Ok(());
                }
                "ob" => {
                    self.object = self.mapping(value)?;
                    return Ok(());
                }
                "cfi" | "cfl" => {
                    self.called_file = Some(self.files.read(value));
                    return Ok(());
                }
                "cob" => {
                    self.objects.read(value);
                    return Ok(());
                }
                "cfn" => {
                    self.called_name = one_function(self.functions.read(value));
                    return Ok(());
                }
                "calls" => {
                    let file = self.called_file.take().unwrap_or(self.file);
                    let callee = self.sink.builder.function(self.called_name, "", known(file), LineNo::UNKNOWN)?;
                    self.call = Some(Call { callee });
                    return Ok(());
                }
                "jfi" => {
                    self.files.read(value);
                    return Ok(());
                }
                "jfn" => {
                    self.functions.read(value);
                    return Ok(());
                }
                "jump" | "jcnd" => return Ok(()),
                _ => {}
            }
        }
        if line.starts_with("part:") {
            self.parts += 1;
        } else if let Some(positions) = line.strip_prefix("positions:") {
            let words: Vec<&str> = positions.split_ascii_whitespace().collect();
            self.positions = words.len().clamp(1, 4);
            self.line_position = words.iter().position(|&word| word == "line").filter(|&at| at < 4);
            self.last = vec![0; self.positions];
        } else if !line.split_once(':').is_some_and(|(key, _)| key.bytes().all(|byte| byte.is_ascii_alphabetic())) {
            self.others += 1;
        }
        Ok(())
    }

    fn mapping(&mut self, written: &'a str) -> Result<MapId, DecodeError> {
        let name = self.objects.read(written);
        if let Some(&known) = self.mappings.get(name) {
            return Ok(known);
        }
        let file = self.sink.builder.string(name)?;
        let row = self.sink.builder.push_mapping(Mapping { file, ..Mapping::default() })?;
        self.mappings.insert(name, row);
        Ok(row)
    }

    /// Positions and costs; costs that are missing at the end are 0.
    fn costs(&mut self, line: &str) -> Result<(), DecodeError> {
        let mut words = line.split_ascii_whitespace();
        for at in 0..self.positions {
            let position = words.next().and_then(|word| position(word, self.last[at]));
            let Some(position) = position else {
                self.others += 1;
                return Ok(());
            };
            self.last[at] = position;
        }
        let line = self.line_position.map_or(0, |at| self.last[at]);
        let mut values = vec![0; self.events.len()];
        for ((value, event), word) in values.iter_mut().zip(&self.events).zip(words) {
            let Some(cost) = word.parse::<i64>().ok().and_then(|cost| cost.checked_mul(event.factor)) else {
                self.others += 1;
                return Ok(());
            };
            *value = cost;
        }
        let location = self.location(line)?;
        match self.call.take() {
            Some(Call { callee }) => {
                self.calls.push((self.function, callee, location));
                self.call_costs.extend(values);
            }
            None => self.sink.sample(&[location], &values, &[])?,
        }
        Ok(())
    }

    /// A line of the function; in code of another file, of something inlined into it.
    fn location(&mut self, line: i64) -> Result<LocId, DecodeError> {
        let (line, column) = LineNo::from_pprof(line, 0);
        let builder = &mut self.sink.builder;
        if self.file == self.function_file {
            let line = Line { function: self.function, line, column };
            return Ok(builder.location(self.object, 0, &[line])?);
        }
        let inlined = builder.function("", "", known(self.file), LineNo::UNKNOWN)?;
        let outer = Line { function: self.function, line: LineNo::UNKNOWN, column: 0 };
        Ok(builder.location(self.object, 0, &[Line { function: inlined, line, column }, outer])?)
    }

    fn finish(mut self) -> Result<Profile, DecodeError> {
        if self.sink.builder.sample_count() == 0 && self.calls.is_empty() {
            return Err(DecodeError::new(DecodeErrorKind::Empty, "it holds no costs"));
        }
        if self.calls.is_empty() {
            self.sink.builder.meta().line_detail = LineDetail::FlatOnly;
        }
        let edges: Vec<(u32, u32)> = self.calls.iter().map(|&(caller, callee, _)| (caller.0, callee.0)).collect();
        let component = cycles::components(self.sink.builder.profile.functions.len(), &edges);
        let (mut recursive, width) = (0, self.events.len());
        let mut callees: FxHashMap<FuncId, LocId> = FxHashMap::default();
        for (call, &(caller, callee, place)) in self.calls.iter().enumerate() {
            if component[caller.index()] == component[callee.index()] {
                recursive += 1;
                continue;
            }
            let callee = if let Some(&known) = callees.get(&callee) {
                known
            } else {
                let line = Line { function: callee, line: LineNo::UNKNOWN, column: 0 };
                let row = self.sink.builder.location(MapId::NONE, 0, &[line])?;
                callees.insert(callee, row);
                row
            };
            self.sink.builder.push_call(place, callee, &self.call_costs[call * width..(call + 1) * width])?;
        }
        self.sink.note_count(
            recursive,
            "calls are part of a recursion and left out of costs with calls, where they would count several times",
        );
        if self.parts > 1 {
            let parts = self.parts;
            self.sink
                .builder
                .note(format!("its {parts} parts, of threads or of several moments, are counted together"));
        }
        self.sink.note_count(self.others, "lines can't be read; they were left out");
        self.sink.finish()
    }
}

/// A position: absolute, relative to the last one, or the same.
fn position(word: &str, last: i64) -> Option<i64> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    };
    match word.as_bytes().first()? {
        b'*' => Some(last),
        b'+' => last.checked_add(number(&word[1..])?),
        b'-' => last.checked_sub(number(&word[1..])?),
        _ => number(word),
    }
}
