//! The text of `perf script`.
//!
//! ```text
//! DOM Worker 21528/21530 [003] 186448.846888:    1008373 cycles:
//!             7f12a4c1 _ZN3foo3barEv+0x1f (/usr/lib/libfoo.so)
//!   foo.cc:17
//!             7f12a000 main (/usr/bin/app)
//! ```
//!
//! A header line, frames leaf first, an empty line. With `-F +srcline` each frame is followed
//! by its place. Names of commands hold spaces, so headers are read from the right; names of
//! functions hold spaces and parentheses, so the binary is the last group in parentheses.
//!
//! The value of a sample is its period; without periods each counts 1. Each event is a value
//! type of its own.

use rustc_hash::FxHashMap;

use super::sink::Sink;
use super::{Confidence, Context, DecodeError, Format, Input, text};
use crate::profile::{Label, Line, LineNo, LocId, MapId, Mapping, Profile, ValueType};

pub(super) const FORMAT: Format = Format { name: "perf-script", sniff, decode };

fn sniff(prefix: &[u8]) -> Confidence {
    let Some(content) = text::decode(prefix) else { return Confidence::No };
    let mut lines = content.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    while let Some(line) = lines.next() {
        if let Some(header) = Header::read(line) {
            return match lines.next().map(frame) {
                Some(Some(_)) => Confidence::Certain,
                // Without stacks, there is only the form of the time to go by.
                _ if header.time.is_some() => Confidence::Possible,
                _ => Confidence::No,
            };
        }
        // Processes and maps may be listed among the samples.
        if !line.contains(" PERF_RECORD_") {
            break;
        }
    }
    Confidence::No
}

/// The first line of a sample.
#[derive(Debug, PartialEq)]
struct Header<'a> {
    command: &'a str,
    pid: &'a str,
    tid: &'a str,
    /// Seconds.
    time: Option<f64>,
    period: Option<i64>,
    event: &'a str,
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl<'a> Header<'a> {
    fn read(line: &'a str) -> Option<Self> {
        if line.starts_with([' ', '\t']) && !line.trim_start().contains(": ") && !line.trim_end().ends_with(':') {
            return None;
        }
        // Time is the first word like `1.5:`; command, ids and processor are before it.
        let (mut before, mut after, mut time) = ("", "", None);
        for (at, word) in words(line) {
            let number = word.strip_suffix(':').unwrap_or("");
            let (seconds, fraction) = number.split_once('.').unwrap_or(("", ""));
            if is_digits(seconds) && is_digits(fraction) {
                (before, after, time) = (&line[..at], &line[at + word.len()..], number.parse().ok());
                break;
            }
        }
        if time.is_none() {
            // Without times: the ids are followed by what was counted.
            let (at, _) = words(line).skip(1).find(|(_, word)| ids(word).is_some())?;
            let end = line[at..].find(' ').map_or(line.len(), |length| at + length);
            (before, after) = line.split_at(end);
        }
        let mut before = before.trim();
        if let Some((rest, cpu)) = before.rsplit_once(' ')
            && cpu.strip_prefix('[').and_then(|cpu| cpu.strip_suffix(']')).is_some_and(is_digits)
        {
            before = rest.trim_end();
        }
        let (command, last) = before.rsplit_once([' ', '\t'])?;
        let (pid, tid) = ids(last)?;
        let command = command.trim();
        if command.is_empty() {
            return None;
        }
        let mut words = after.split_ascii_whitespace().peekable();
        let period = words.next_if(|word| is_digits(word)).and_then(|word| word.parse().ok());
        let event = words.next()?;
        let event = event.strip_suffix(':').filter(|event| !event.starts_with('['))?;
        // What a tracepoint says follows; `cycles:u:` ends with the modifier.
        Some(Self { command, pid, tid, time, period, event })
    }
}

fn ids(word: &str) -> Option<(&str, &str)> {
    match word.split_once('/') {
        Some((pid, tid)) if is_digits(pid) && is_digits(tid) => Some((pid, tid)),
        None if is_digits(word) => Some((word, word)),
        _ => None,
    }
}

/// Words with their places.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    line.split_ascii_whitespace().map(move |word| (word.as_ptr() as usize - line.as_ptr() as usize, word))
}

/// A frame: address, name as it is written, binary.
fn frame(line: &str) -> Option<(u64, &str, &str)> {
    let line = line.trim();
    let (address, rest) = line.split_once(' ').unwrap_or((line, ""));
    let address = u64::from_str_radix(address.strip_prefix("0x").unwrap_or(address), 16).ok()?;
    let rest = rest.trim();
    let Some(inner) = rest.strip_suffix(')') else { return Some((address, rest, "")) };
    // The group that the last parenthesis closes; binaries such as `([JIT] tid 7)` have spaces.
    let mut depth = 1;
    for (at, byte) in inner.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((address, inner[..at].trim_end(), &inner[at + 1..]));
        }
    }
    Some((address, rest, ""))
}

/// A place behind a frame: `foo.cc:17`, or the same with what is inlined there.
fn place(line: &str) -> Option<(&str, i64)> {
    let line = line.trim();
    let line = line.split(" (discriminator").next().unwrap_or(line);
    let (file, number) = line.rsplit_once(':')?;
    if file.is_empty() || file.ends_with(' ') || !(is_digits(number) || number == "?") {
        return None;
    }
    Some((file, number.parse().unwrap_or(0)))
}

fn name_of(written: &str) -> &str {
    let name = match written.rsplit_once("+0x") {
        Some((name, offset)) if u64::from_str_radix(offset, 16).is_ok() => name,
        _ => written,
    };
    if name == "[unknown]" { "" } else { name }
}

/// One frame with its place, if there is one.
struct Frame<'a> {
    address: u64,
    name: &'a str,
    binary: &'a str,
    place: Option<(&'a str, i64)>,
}

/// One sample while its lines come.
struct Sample<'a> {
    header: Header<'a>,
    frames: Vec<Frame<'a>>,
}

fn decode(input: &mut Input<'_>, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let (bytes, cut) = input.read_available()?;
    let all = text::decode(&bytes).ok_or_else(|| DecodeError::invalid("it is not text"))?;
    let (mut samples, mut others) = (Vec::new(), 0u64);
    let mut open: Option<Sample<'_>> = None;
    for (index, line) in all.lines().enumerate() {
        if index.is_multiple_of(4096) {
            context.cancel.check()?;
        }
        if line.trim().is_empty() {
            samples.extend(open.take());
        } else if line.starts_with('#') && open.is_none() {
        } else if let Some(sample) = &mut open {
            if let Some((address, name, binary)) = frame(line) {
                sample.frames.push(Frame { address, name: name_of(name), binary, place: None });
            } else if let (Some(place), Some(last)) = (place(line), sample.frames.last_mut()) {
                last.place = Some(place);
            } else if let Some(header) = Header::read(line) {
                samples.extend(open.replace(Sample { header, frames: Vec::new() }));
            } else {
                others += 1;
            }
        } else if let Some(header) = Header::read(line) {
            open = Some(Sample { header, frames: Vec::new() });
        } else {
            others += u64::from(!line.contains(" PERF_RECORD_"));
        }
    }
    samples.extend(open);
    if samples.is_empty() {
        return Err(DecodeError::invalid("none of its lines begins a sample"));
    }
    let mut events: Vec<&str> = Vec::new();
    for sample in &samples {
        if !events.contains(&sample.header.event) && events.len() < MAX_EVENTS {
            events.push(sample.header.event);
        }
    }
    let has_periods = samples.iter().any(|sample| sample.header.period.is_some());
    let value_types = events.iter().map(|event| value_type(event, has_periods)).collect();
    let mut builder = Rows {
        sink: Sink::new(FORMAT.name, value_types, context),
        mappings: FxHashMap::default(),
        labels: FxHashMap::default(),
    };
    builder.sink.builder.meta().default_value_type = 0;
    for sample in &samples {
        builder.add(sample, &events)?;
    }
    let times = || samples.iter().filter_map(|sample| sample.header.time);
    let duration = times().fold(f64::MIN, f64::max) - times().fold(f64::MAX, f64::min);
    let mut sink = builder.sink;
    sink.builder.meta().duration_ns = super::fraction::nearest(duration * 1e9).filter(|&duration| duration > 0);
    sink.note_count(others, "lines are neither samples nor frames; they were left out");
    sink.note_cut(cut.as_ref());
    sink.finish()
}

/// Each event is a column, so there can't be any number of them.
const MAX_EVENTS: usize = 64;

fn value_type(event: &str, has_periods: bool) -> ValueType {
    let name = event.split(':').next().unwrap_or(event);
    match name {
        _ if !has_periods => ValueType::new("samples", "count"),
        "cpu-clock" | "task-clock" => ValueType::new(event, "nanoseconds"),
        _ => ValueType::new(event, "count"),
    }
}

struct Rows<'c, 'a> {
    sink: Sink<'c>,
    mappings: FxHashMap<&'a str, MapId>,
    labels: FxHashMap<(&'a str, &'a str, &'a str), Vec<Label>>,
}

impl<'a> Rows<'_, 'a> {
    fn add(&mut self, sample: &Sample<'a>, events: &[&str]) -> Result<(), DecodeError> {
        let Header { command, pid, tid, period, event, .. } = sample.header;
        let mut stack = Vec::with_capacity(sample.frames.len());
        let mut lines = Vec::new();
        let mut frames = sample.frames.iter().peekable();
        while let Some(frame) = frames.next() {
            if !frame.name.is_empty() || frame.place.is_some() {
                let (file, line) = frame.place.unwrap_or(("", 0));
                let builder = &mut self.sink.builder;
                let function = builder.function("", frame.name, file, LineNo::UNKNOWN)?;
                lines.push(Line { function, line: LineNo::from_pprof(line, 0).0, column: 0 });
            }
            // An inlined call has the address of its caller, which comes next.
            let is_inlined =
                frame.binary == "inlined" && frames.peek().is_some_and(|next| next.address == frame.address);
            if is_inlined {
                continue;
            }
            stack.push(self.location(frame, &lines)?);
            lines.clear();
        }
        let key = (command, pid, tid);
        if !self.labels.contains_key(&key) {
            let labels =
                [self.sink.label("process", command)?, self.sink.label("pid", pid)?, self.sink.label("tid", tid)?];
            self.labels.insert(key, labels.into_iter().flatten().collect());
        }
        let mut values = vec![0; events.len()];
        let column = events.iter().position(|known| *known == event).unwrap_or(events.len() - 1);
        values[column] = period.unwrap_or(1);
        self.sink.sample(&stack, &values, &self.labels[&key])
    }

    fn location(&mut self, frame: &Frame<'a>, lines: &[Line]) -> Result<LocId, DecodeError> {
        let mapping = match frame.binary {
            "" | "[unknown]" | "inlined" => MapId::NONE,
            binary => {
                if let Some(&known) = self.mappings.get(binary) {
                    known
                } else {
                    let file = self.sink.builder.string(binary)?;
                    let row = self.sink.builder.push_mapping(Mapping { file, ..Mapping::default() })?;
                    self.mappings.insert(binary, row);
                    row
                }
            }
        };
        // Names are known, so addresses would only keep equal places apart.
        let address = if lines.is_empty() { frame.address } else { 0 };
        Ok(self.sink.builder.location(mapping, address, lines)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_from_the_right() {
        let header = |line| Header::read(line).map(|h| (h.command, h.pid, h.tid, h.period, h.event));
        assert_eq!(
            header("CUPSManager cup 11320 186448.846888:    1008373 cycles: "),
            Some(("CUPSManager cup", "11320", "11320", Some(1_008_373), "cycles"))
        );
        assert_eq!(
            header("DOM Worker 21528/21530 [003] 1.5:  7 cycles:u: "),
            Some(("DOM Worker", "21528", "21530", Some(7), "cycles:u"))
        );
        assert_eq!(header("swapper     0 [001] 4.2: cpu-clock:"), Some(("swapper", "0", "0", None, "cpu-clock")));
        assert_eq!(header("app 12 cycles:"), Some(("app", "12", "12", None, "cycles")));
        assert_eq!(
            header("app 12 [000] 3.25: sched:sched_switch: prev_comm=app prev_pid=12"),
            Some(("app", "12", "12", None, "sched:sched_switch"))
        );
        for other in ["", "main;work 12", "  7f12 main (/usr/bin/app)", "note: something 12", "12 cycles:"] {
            assert_eq!(header(other), None, "{other}");
        }
    }

    #[test]
    fn the_last_group_is_the_binary() {
        for (line, expected) in [
            ("\t7f12 main+0x1f (/usr/bin/app)", (0x7f12, "main+0x1f", "/usr/bin/app")),
            (
                "9c51fd34 java.lang.String.hashCode ([JIT app cache])",
                (0x9c51_fd34, "java.lang.String.hashCode", "[JIT app cache]"),
            ),
            (
                "ff (anonymous namespace)::f(int) (/a b/c (1).so)",
                (0xff, "(anonymous namespace)::f(int)", "/a b/c (1).so"),
            ),
            ("0x1231232", (0x0123_1232, "", "")),
            ("12 [unknown] ([unknown])", (0x12, "[unknown]", "[unknown]")),
        ] {
            assert_eq!(frame(line), Some(expected), "{line}");
        }
        assert_eq!(frame("foo.cc:17"), None);
        assert_eq!(place("  /src/foo.cc:17 (discriminator 2)"), Some(("/src/foo.cc", 17)));
        assert_eq!(place("foo.cc:?"), Some(("foo.cc", 0)));
    }
}
