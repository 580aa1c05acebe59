//! DHAT's JSON: the heap profiles of Valgrind's tool and of the Rust crate `dhat`.
//!
//! ```text
//! {"dhatFileVersion": 2, "mode": "heap", "verb": "Allocated",
//!  "pps": [{"tb": 28000, "tbk": 16, "fs": [1, 2, 3]}],
//!  "ftbl": ["[root]", "0x48417B4: malloc (in /usr/lib/…)", "0x109234: work (demo.c:29)"]}
//! ```
//!
//! One place of allocation with its stack, leaf first, and what was allocated there: in all,
//! when the heap was largest, and when the program ended. Frames of one address next to each
//! other are inlined calls. Valgrind names files without their folders, the crate with two.

use std::borrow::Cow;

use serde::Deserialize;

use super::json;
use super::sink::Sink;
use super::{Confidence, Context, DecodeError, Format, Input, text};
use crate::profile::{FuncId, Line, LineNo, LocId, MapId, Mapping, Profile, ValueType};

pub(super) const FORMAT: Format = Format { name: "dhat", sniff, decode };

fn sniff(prefix: &[u8]) -> Confidence {
    let Some(content) = json::beginning(prefix, &['{']) else { return Confidence::No };
    if content.contains("\"dhatFileVersion\"") { Confidence::Certain } else { Confidence::No }
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow, default)]
    mode: Cow<'a, str>,
    /// Whether it is known how long blocks live, and so what was there when.
    #[serde(default)]
    bklt: bool,
    #[serde(borrow)]
    bu: Option<Cow<'a, str>>,
    #[serde(borrow)]
    bksu: Option<Cow<'a, str>>,
    #[serde(default)]
    pps: Vec<Point>,
    #[serde(borrow, default)]
    ftbl: Vec<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Point {
    #[serde(default)]
    tb: i64,
    #[serde(default)]
    tbk: i64,
    #[serde(default)]
    gb: i64,
    #[serde(default)]
    gbk: i64,
    #[serde(default)]
    eb: i64,
    #[serde(default)]
    ebk: i64,
    #[serde(default)]
    fs: Vec<usize>,
}

/// A frame as it is written.
#[derive(Debug, Default, PartialEq)]
struct Frame<'a> {
    address: u64,
    name: &'a str,
    file: &'a str,
    line: i64,
    column: i64,
    binary: &'a str,
}

/// Reads `0xADDR: name (file:line:column)`, where the place may be `in BINARY` or missing.
fn frame(text: &str) -> Frame<'_> {
    let (address, rest) = match text.split_once(": ") {
        Some((address, rest)) if address.starts_with("0x") => {
            (u64::from_str_radix(&address[2..], 16).unwrap_or(0), rest)
        }
        _ => (0, text),
    };
    let frame = Frame { address, name: rest, ..Frame::default() };
    let Some((name, place)) = rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) else {
        return Frame { name: if name_is_unknown(rest) { "" } else { rest }, ..frame };
    };
    let name = if name_is_unknown(name) { "" } else { name };
    if let Some(binary) = place.strip_prefix("in ") {
        return Frame { name, binary, ..frame };
    }
    let number = |text: &str| text.parse::<i64>().ok();
    let Some((file, last)) = place.rsplit_once(':').and_then(|(file, last)| Some((file, number(last)?))) else {
        return frame;
    };
    match file.rsplit_once(':').and_then(|(file, line)| Some((file, number(line)?))) {
        Some((file, line)) => Frame { name, file, line, column: last, ..frame },
        None => Frame { name, file, line: last, ..frame },
    }
}

fn name_is_unknown(name: &str) -> bool {
    name == "???"
}

fn value_types(file: &File<'_>) -> Vec<ValueType> {
    let unit = |unit: &Option<Cow<'_, str>>, usual: &'static str| unit.as_deref().unwrap_or(usual).to_owned();
    if file.mode == "ad-hoc" {
        return vec![
            ValueType::new("events", unit(&file.bksu, "count")),
            ValueType::new("units", unit(&file.bu, "count")),
        ];
    }
    let verb = if file.mode == "copy" { "copy" } else { "alloc" };
    let kinds: &[&str] = if file.bklt { &["peak", "inuse", verb] } else { &[verb] };
    let pair = |kind: &&str| {
        [ValueType::new(format!("{kind}_objects"), "count"), ValueType::new(format!("{kind}_space"), "bytes")]
    };
    kinds.iter().flat_map(pair).collect()
}

fn decode(input: &mut Input<'_>, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let bytes = input.read_all()?;
    let all = text::decode(&bytes).ok_or_else(|| DecodeError::invalid("it is not text"))?;
    let file: File<'_> = json::parse(&all)?;
    let mut sink = Sink::new(FORMAT.name, value_types(&file), context);
    let frames: Vec<Frame<'_>> = file.ftbl.iter().map(|text| frame(text)).collect();
    let mut missing = 0;
    let mut functions: Vec<Option<FuncId>> = vec![None; frames.len()];
    let (mut stack, mut lines) = (Vec::new(), Vec::new());
    for point in &file.pps {
        stack.clear();
        let mut indices = point.fs.iter().peekable();
        while let Some(&index) = indices.next() {
            let Some(frame) = frames.get(index) else {
                missing += 1;
                stack.push(LocId::NONE);
                continue;
            };
            if !frame.name.is_empty() || !frame.file.is_empty() {
                let function = match functions[index] {
                    Some(known) => known,
                    None => sink.builder.function(frame.name, "", frame.file, LineNo::UNKNOWN)?,
                };
                functions[index] = Some(function);
                let (line, column) = LineNo::from_pprof(frame.line, frame.column);
                lines.push(Line { function, line, column });
            }
            let next = indices.peek().and_then(|&&next| frames.get(next));
            if frame.address != 0 && next.is_some_and(|next| next.address == frame.address) {
                continue;
            }
            stack.push(location(frame, &lines, &mut sink)?);
            lines.clear();
        }
        let values: &[i64] = if file.bklt && file.mode != "ad-hoc" {
            &[point.gbk, point.gb, point.ebk, point.eb, point.tbk, point.tb]
        } else {
            &[point.tbk, point.tb]
        };
        sink.sample(&stack, values, &[])?;
    }
    sink.note_count(missing, "frames are not in the file's table; they count as unresolved");
    sink.finish()
}

fn location(frame: &Frame<'_>, lines: &[Line], sink: &mut Sink<'_>) -> Result<LocId, DecodeError> {
    let mut mapping = MapId::NONE;
    if !frame.binary.is_empty() {
        let row = Mapping { file: sink.builder.string(frame.binary)?, ..Mapping::default() };
        let known = sink.builder.profile.mappings.iter().position(|known| *known == row);
        mapping = match known {
            Some(at) => MapId(u32::try_from(at).unwrap_or(0)),
            None => sink.builder.push_mapping(row)?,
        };
    }
    Ok(sink.builder.location(mapping, frame.address, lines)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_taken_apart_from_the_right() {
        let of = |address, name, file, line, column, binary| Frame { address, name, file, line, column, binary };
        for (text, expected) in [
            ("0x48417B4: malloc (in /usr/lib/vg.so)", of(0x0484_17B4, "malloc", "", 0, 0, "/usr/lib/vg.so")),
            ("0x109234: work (demo.c:29)", of(0x10_9234, "work", "demo.c", 29, 0, "")),
            ("0x1: a::b<fn(u8)> (src/a b.rs:46:14)", of(1, "a::b<fn(u8)>", "src/a b.rs", 46, 14, "")),
            ("0x1: ???", of(1, "", "", 0, 0, "")),
            ("[root]", of(0, "[root]", "", 0, 0, "")),
        ] {
            assert_eq!(frame(text), expected, "{text}");
        }
    }
}
