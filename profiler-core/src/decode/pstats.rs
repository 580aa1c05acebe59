//! What Python's `cProfile` and `profile` save: a marshalled dictionary.
//!
//! ```text
//! {(file, first line, name): (primitive calls, calls, own time, time with calls, {caller: …})}
//! ```
//!
//! Functions only. Their time with calls is right in recursion, since Python counts it once
//! per outermost call. Built-ins are in the file `~`, on line 0.
//!
//! The dictionary may hold the same text or tuple many times by reference, so tuples are
//! shared here as well: a file could otherwise ask for more memory than there is.

use std::rc::Rc;

use super::sink::Sink;
use super::{Confidence, Context, DecodeError, DecodeErrorKind, Format, Input};
use crate::profile::{Line, LineDetail, LineNo, LocId, MapId, Profile, ValueType};

pub(super) const FORMAT: Format = Format { name: "pstats", sniff, decode };

/// A bit of the type that says that the value will be referred to.
const IS_SHARED: u8 = 0x80;
/// Real files need four.
const MAX_DEPTH: usize = 32;

/// A dictionary that begins with a tuple of three.
fn sniff(prefix: &[u8]) -> Confidence {
    let [dictionary, tuple, rest @ ..] = prefix else { return Confidence::No };
    if dictionary & !IS_SHARED != b'{' {
        return Confidence::No;
    }
    let is_empty = prefix == [b'{', b'0'] || prefix == [b'{' | IS_SHARED, b'0'];
    let is_key = match tuple & !IS_SHARED {
        b')' => rest.first() == Some(&3),
        b'(' => rest.starts_with(&[3, 0, 0, 0]),
        _ => false,
    };
    if is_key || is_empty { Confidence::Certain } else { Confidence::No }
}

#[derive(Clone, Debug)]
enum Value {
    Int(i64),
    Float(f64),
    Text(Rc<str>),
    Tuple(Rc<[Value]>),
    Dictionary(Rc<[(Value, Value)]>),
    Other,
    /// Ends a dictionary.
    Null,
}

impl Value {
    fn number(&self) -> Option<f64> {
        match self {
            Self::Int(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            _ => None,
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    shared: Vec<Value>,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) =
            self.bytes.split_at_checked(length).ok_or_else(|| DecodeError::truncated("it ends inside a value"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        Ok(*self.take(N)?.first_chunk().unwrap_or(&[0; N]))
    }

    fn byte(&mut self) -> Result<u8, DecodeError> {
        Ok(self.array::<1>()?[0])
    }

    fn length(&mut self) -> Result<usize, DecodeError> {
        usize::try_from(i32::from_le_bytes(self.array()?)).map_err(|_| DecodeError::invalid("a length is negative"))
    }

    fn value(&mut self, depth: usize) -> Result<Value, DecodeError> {
        if depth > MAX_DEPTH {
            return Err(DecodeError::invalid("its values are nested too deeply"));
        }
        let code = self.byte()?;
        // References count in the order in which values begin.
        let slot = (code & IS_SHARED != 0).then(|| {
            self.shared.push(Value::Other);
            self.shared.len() - 1
        });
        let value = self.body(code & !IS_SHARED, depth)?;
        if let Some(slot) = slot {
            self.shared[slot] = value.clone();
        }
        Ok(value)
    }

    fn body(&mut self, code: u8, depth: usize) -> Result<Value, DecodeError> {
        Ok(match code {
            b'0' => Value::Null,
            b'N' | b'F' | b'T' | b'S' | b'.' => Value::Other,
            b'i' => Value::Int(i32::from_le_bytes(self.array()?).into()),
            b'I' => Value::Int(i64::from_le_bytes(self.array()?)),
            b'l' => self.long()?,
            b'g' => Value::Float(f64::from_le_bytes(self.array()?)),
            b'f' => {
                let length = self.byte()?;
                let text = String::from_utf8_lossy(self.take(length.into())?).into_owned();
                Value::Float(text.parse().map_err(|_| DecodeError::invalid("a number is none"))?)
            }
            b's' | b't' | b'u' | b'a' | b'A' => {
                let length = self.length()?;
                self.text(length)?
            }
            b'z' | b'Z' => {
                let length = self.byte()?;
                self.text(length.into())?
            }
            b'r' => {
                let index = self.length()?;
                let value = self.shared.get(index).cloned();
                value.ok_or_else(|| DecodeError::invalid("it refers to a value that is not there"))?
            }
            b')' => {
                let length = self.byte()?;
                self.tuple(length.into(), depth)?
            }
            b'(' | b'[' | b'<' | b'>' => {
                let length = self.length()?;
                self.tuple(length, depth)?
            }
            b'{' => {
                let mut pairs = Vec::new();
                loop {
                    match self.value(depth + 1)? {
                        Value::Null => break,
                        key => pairs.push((key, self.value(depth + 1)?)),
                    }
                }
                Value::Dictionary(pairs.into())
            }
            _ => return Err(DecodeError::invalid(format!("a value of the type {code:#x} is none of a profile"))),
        })
    }

    fn text(&mut self, length: usize) -> Result<Value, DecodeError> {
        Ok(Value::Text(String::from_utf8_lossy(self.take(length)?).into()))
    }

    /// Digits of 15 bits, least first; the sign is that of their number.
    fn long(&mut self) -> Result<Value, DecodeError> {
        let count = i32::from_le_bytes(self.array()?);
        let mut value: i128 = 0;
        for digit in 0..count.unsigned_abs() {
            let bits = i128::from(u16::from_le_bytes(self.array()?) & 0x7fff);
            if digit < 8 {
                value |= bits << (15 * digit);
            }
        }
        let value = if count < 0 { -value } else { value };
        Ok(i64::try_from(value).map_or(Value::Other, Value::Int))
    }

    fn tuple(&mut self, length: usize, depth: usize) -> Result<Value, DecodeError> {
        let mut items = Vec::new();
        for _ in 0..length {
            items.push(self.value(depth + 1)?);
        }
        Ok(Value::Tuple(items.into()))
    }
}

fn decode(input: &mut Input<'_>, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let bytes = input.read_all()?;
    let mut reader = Reader { bytes: &bytes, shared: Vec::new() };
    let Value::Dictionary(rows) = reader.value(0)? else {
        return Err(DecodeError::new(DecodeErrorKind::NotAProfile, "it is marshalled, but no table of functions"));
    };
    let types = vec![ValueType::new("calls", "count"), ValueType::new("time", "nanoseconds")];
    let mut sink = Sink::new(FORMAT.name, types, context);
    sink.builder.meta().line_detail = LineDetail::FunctionOnly;
    let mut others = 0;
    for (index, (key, value)) in rows.iter().enumerate() {
        if index.is_multiple_of(4096) {
            context.cancel.check()?;
        }
        let Some(row) = row(key, value) else {
            others += 1;
            continue;
        };
        let start = LineNo::from_pprof(row.line, 0).0;
        let function = sink.builder.function(row.name, "", row.file, start)?;
        let line = Line { function, line: LineNo::UNKNOWN, column: 0 };
        let location = sink.builder.location(MapId::NONE, 0, &[line])?;
        sink.sample(&[location], &[row.calls, row.own], &[])?;
        if row.cumulative != row.own {
            sink.builder.push_call(location, LocId::NONE, &[0, row.cumulative.saturating_sub(row.own)])?;
        }
    }
    sink.note_count(others, "rows are of another shape; they were left out");
    if others > 0 && sink.builder.sample_count() == 0 {
        return Err(DecodeError::new(DecodeErrorKind::NotAProfile, "it is marshalled, but no table of functions"));
    }
    sink.finish()
}

struct Row<'a> {
    file: &'a str,
    line: i64,
    name: &'a str,
    calls: i64,
    own: i64,
    cumulative: i64,
}

fn row<'a>(key: &'a Value, value: &'a Value) -> Option<Row<'a>> {
    let (Value::Tuple(key), Value::Tuple(value)) = (key, value) else { return None };
    let [Value::Text(file), Value::Int(line), Value::Text(name)] = &key[..] else { return None };
    let [_, Value::Int(calls), own, cumulative, ..] = &value[..] else { return None };
    let ns = |seconds: &Value| super::fraction::nearest(seconds.number()? * 1e9);
    Some(Row { file, line: *line, name, calls: *calls, own: ns(own)?, cumulative: ns(cumulative)? })
}
