//! Stacks of all threads at one moment:
//!
//! ```text
//! --- threadz 1 ---
//!
//! --- Thread 7f794ab90940 (name: main/14748) stack: ---
//!   0x40be31 0x40c5d8
//! --- Thread 7f7949a7f940 (name: worker/14749) stack: ---
//!     [same as previous thread]
//! ```
//!
//! The leaf is the exact address, the others are return addresses. Each stack counts the
//! threads that had it.

use super::super::{Context, DecodeError};
use super::lines::{Lines, address, is_blank_or_comment};
use super::maps::{self, Maps};
use super::samples::{Samples, Surroundings};
use super::{THREADS, Text};
use crate::profile::{Profile, ProfileBuilder, ValueType};

/// Whether a first line is that of a list of threads.
pub(super) fn is_header(line: &str) -> bool {
    let number = line.strip_prefix("--- threadz ").and_then(|rest| rest.strip_suffix(" ---"));
    number.is_some_and(|number| number.parse::<u64>().is_ok()) || is_thread(line)
}

fn is_thread(line: &str) -> bool {
    line.strip_prefix("--- Thread ")
        .and_then(|rest| rest.strip_suffix(" stack: ---"))
        .and_then(|rest| rest.split_once(" (name: "))
        .is_some_and(|(id, name)| u64::from_str_radix(id, 16).is_ok() && name.ends_with(')'))
}

pub(super) fn decode(text: &Text, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let value_type = ValueType::new("thread", "count");
    let mut builder = ProfileBuilder::new(THREADS.name, vec![value_type.clone()]);
    let meta = builder.meta();
    meta.period = 1;
    meta.period_type = Some(value_type);

    let mut samples = Samples::default();
    let mut lines = Lines::new(&text.content);
    // Up to the first thread there is only the header and comments.
    while lines.peek().is_some_and(|line| !is_thread(line.text.trim()) && !maps::is_header(line.text)) {
        lines.next();
    }
    while lines.peek().is_some_and(|line| is_thread(line.text.trim())) {
        lines.next();
        read_thread(&mut lines, &mut samples, context)?;
    }
    samples.remove_doubled_leaves();
    let mut around = Surroundings { maps: Maps::find(lines), ..Surroundings::default() };
    around.notes.extend(text.note());
    samples.into_profile(builder, around, context)
}

/// Reads the stack behind the line that names a thread. A stack may have words besides its
/// addresses.
fn read_thread(lines: &mut Lines<'_>, samples: &mut Samples, context: &Context<'_>) -> Result<(), DecodeError> {
    let mut stack = Vec::new();
    let mut is_same = false;
    while let Some(line) = lines.peek().filter(|line| !line.text.trim_start().starts_with("---")) {
        if maps::is_header(line.text) {
            break;
        }
        lines.next();
        if line.text.contains("same as previous thread") {
            is_same = true;
        } else if !is_blank_or_comment(line.text) {
            let words = line.text.split(|c: char| c.is_whitespace() || matches!(c, '@' | '(' | ')' | ','));
            stack.extend(words.filter_map(address));
        }
    }
    if is_same || stack.is_empty() {
        samples.repeat_last();
        return Ok(());
    }
    for caller in stack.iter_mut().skip(1) {
        *caller = caller.wrapping_sub(1);
    }
    samples.push(&stack, &[1], context)
}
