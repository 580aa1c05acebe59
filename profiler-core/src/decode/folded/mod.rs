//! Folded stacks: one line per stack, root first, with a count behind the last space.
//!
//! ```text
//! main;work (demo.py:33);std::vector<int, A>::push_back 42
//! ```
//!
//! The form is a habit of many tools, not a standard: counts may be fractions, frames may
//! hold spaces and positions ([`frame`]), files may be UTF-16 and have comments. A line that
//! is no stack is left out and counted; only a file without any stack is an error.
//!
//! What is not here: Austin's text ([`austin`](super::austin)), which looks the same and counts
//! microseconds.

mod frame;

use rustc_hash::FxHashMap;

use super::fraction::Rounding;
use super::{Confidence, Context, DecodeError, DecodeErrorKind, Format, Input, text};
use crate::profile::{BuildError, Line, LineNo, LocId, MapId, Profile, ProfileBuilder, ValueType};

pub(super) const FORMAT: Format = Format { name: "folded", sniff, decode };

/// There is no signature, so this asks for a clear majority of stacks among the first lines,
/// and is sure only of stacks with several frames: lines of tables and of other text may end
/// with a number, too.
fn sniff(prefix: &[u8]) -> Confidence {
    let Some(content) = text::decode(prefix) else { return Confidence::No };
    if content.trim_start().starts_with(['{', '[']) {
        return Confidence::No;
    }
    let is_whole = prefix.len() < Input::SNIFF_LENGTH;
    let complete = if is_whole { &*content } else { content.rsplit_once('\n').map_or("", |(lines, _)| lines) };
    let (mut all, mut stacks, mut deep_stacks) = (0usize, 0, 0);
    for line in complete.lines().filter(|line| !is_blank_or_comment(line)) {
        all += 1;
        if let Some((stack, _)) = split(line)
            && stack.contains(char::is_alphabetic)
        {
            stacks += 1;
            deep_stacks += usize::from(stack.contains(';'));
        }
    }
    if stacks == 0 || stacks * 3 < all * 2 {
        Confidence::No
    } else if deep_stacks * 2 < stacks {
        Confidence::Possible
    } else {
        Confidence::Likely
    }
}

fn is_blank_or_comment(line: &str) -> bool {
    let line = line.trim_start();
    // `#<Class:0x1>` is how Ruby writes an object.
    line.is_empty() || (line.starts_with('#') && !line.starts_with("#<"))
}

/// Takes a line apart: the stack, and the count as it is written.
fn split(line: &str) -> Option<(&str, &str)> {
    let (stack, count) = line.trim_end().rsplit_once([' ', '\t'])?;
    // Without this `nan` and `inf` would be numbers.
    let is_number = count.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E'))
        && count.parse::<f64>().is_ok_and(f64::is_finite);
    (is_number && frames(stack).next().is_some()).then_some((stack, count))
}

/// A sample that has nothing but its count, as py-spy writes for threads that run no Python.
fn without_frames(line: &str) -> Option<(&str, &str)> {
    let count = line.trim_end().strip_prefix([' ', ';'])?.trim_start_matches([' ', ';']);
    (!count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit())).then_some(("", count))
}

/// The frames of a stack, root first.
fn frames(stack: &str) -> impl DoubleEndedIterator<Item = &str> {
    stack.split(';').map(str::trim).filter(|frame| !frame.is_empty())
}

fn decode(input: &mut Input<'_>, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let (bytes, cut) = input.read_available()?;
    let all = text::decode(&bytes).ok_or_else(|| DecodeError::invalid("it is not text"))?;
    let whole = match cut {
        Some(_) => all.rsplit_once('\n').map_or("", |(lines, _)| lines),
        None => &*all,
    };
    let mut stacks = Stacks::new(context);
    for (index, line) in whole.lines().enumerate() {
        if index.is_multiple_of(4096) {
            context.cancel.check()?;
        }
        stacks.add_line(index + 1, line)?;
    }
    if let Some(cut) = cut {
        stacks.builder.note(format!("the file is incomplete: {cut}; what came before was kept"));
    }
    stacks.finish()
}

/// Everything read so far.
struct Stacks<'a> {
    context: &'a Context<'a>,
    builder: ProfileBuilder,
    /// Frames repeat far more often than not, so each spelling is taken apart once.
    locations: FxHashMap<&'a str, LocId>,
    /// Frames of the current stack, leaf first.
    stack: Vec<LocId>,
    frame_count: usize,
    rounding: Rounding,
    others: usize,
    first_other: usize,
}

impl<'a> Stacks<'a> {
    fn new(context: &'a Context<'a>) -> Self {
        Self {
            context,
            builder: ProfileBuilder::new(FORMAT.name, vec![ValueType::new("samples", "count")]),
            locations: FxHashMap::default(),
            stack: Vec::new(),
            frame_count: 0,
            rounding: Rounding::default(),
            others: 0,
            first_other: 0,
        }
    }

    fn add_line(&mut self, number: usize, line: &'a str) -> Result<(), DecodeError> {
        if is_blank_or_comment(line) {
            return Ok(());
        }
        let parsed =
            split(line).or_else(|| without_frames(line)).and_then(|(stack, count)| Some((stack, self.whole(count)?)));
        let Some((stack, count)) = parsed else {
            if self.others == 0 {
                self.first_other = number;
            }
            self.others += 1;
            return Ok(());
        };
        self.stack.clear();
        for frame in frames(stack).rev() {
            let location = self.location(frame)?;
            self.stack.push(location);
        }
        self.frame_count += self.stack.len();
        if self.frame_count > self.context.limits.max_frames {
            let message = format!("it holds more than {} frames", self.context.limits.max_frames);
            return Err(DecodeError::new(DecodeErrorKind::Limit, message));
        }
        Ok(self.builder.push_sample(&self.stack, &[count], &[])?)
    }

    /// The count as a whole number; `None` when it is out of range.
    fn whole(&mut self, count: &str) -> Option<i64> {
        match count.parse() {
            Ok(whole) => Some(whole),
            Err(_) => self.rounding.nearest(count.parse().ok()?),
        }
    }

    fn location(&mut self, spelling: &'a str) -> Result<LocId, BuildError> {
        if let Some(&known) = self.locations.get(spelling) {
            return Ok(known);
        }
        let frame = frame::parse(spelling);
        let function = self.builder.function(frame.name, "", frame.file, LineNo::UNKNOWN)?;
        let line = Line { function, line: frame.line, column: frame.column };
        let location = self.builder.location(MapId::NONE, 0, &[line])?;
        self.locations.insert(spelling, location);
        Ok(location)
    }

    fn finish(mut self) -> Result<Profile, DecodeError> {
        let Self { others, first_other, .. } = self;
        if self.builder.sample_count() == 0 {
            return Err(DecodeError::invalid("none of its lines is a stack with a count"));
        }
        if others > 0 {
            self.builder
                .note(format!("lines left out because they are no stacks: {others}, the first is line {first_other}"));
        }
        if let Some(note) = self.rounding.note() {
            self.builder.note(note);
        }
        Ok(self.builder.finish()?)
    }
}
