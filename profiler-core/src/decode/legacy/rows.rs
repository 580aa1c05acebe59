//! The part all text kinds share: rows of numbers and addresses up to the next section, with
//! Go's comments below them.

use std::collections::BTreeMap;

use super::super::{Context, DecodeError};
use super::go_comments::Comments;
use super::lines::{Lines, is_blank_or_comment};
use super::maps::{self, Maps};
use super::samples::{Samples, Surroundings};

/// One row after parsing; its addresses are in the buffer handed to the parser.
pub(super) struct Row<const N: usize> {
    pub(super) values: [i64; N],
    /// Size of one object in bytes, for rows that count objects.
    pub(super) size: Option<i64>,
}

/// Reads rows until a line that starts a section, then the memory map if there is one.
///
/// All addresses of these kinds are return addresses, so each less one is in the call. Rows
/// that `parse` refuses are left out with a note; it is an error only when all are.
pub(super) fn read<const N: usize>(
    mut lines: Lines<'_>,
    context: &Context<'_>,
    parse: impl Fn(&str, &mut Vec<u64>) -> Option<Row<N>>,
) -> Result<(Samples, Surroundings), DecodeError> {
    let mut samples = Samples::default();
    let mut comments = Comments::default();
    let mut refused = Refused::default();
    let mut ends_in_row = false;
    let mut stack = Vec::new();
    let maps = loop {
        let Some(line) = lines.next() else { break Maps::default() };
        let text = line.text.trim();
        if maps::is_header(text) {
            break Maps::read(lines);
        }
        if text.starts_with("---") {
            break Maps::find(lines);
        }
        if is_blank_or_comment(text) {
            if let Some(labels) = text.strip_prefix("# labels: ") {
                add_labels(labels, &mut samples);
            } else if line.is_whole {
                comments.add(text);
            }
            continue;
        }
        comments.end_row(samples.last_stack());
        match parse(text, &mut stack) {
            Some(row) => {
                for address in &mut stack {
                    *address = address.wrapping_sub(1);
                }
                samples.push(&stack, &row.values, context)?;
                ends_in_row = !line.is_whole;
                if let Some(size) = row.size {
                    samples.set_size(size);
                }
            }
            None => refused.add(line.number),
        }
    };
    comments.end_row(samples.last_stack());
    let mut notes = refused.into_notes(samples.len())?;
    if ends_in_row {
        notes.push("the file ends inside a line; the outermost frame of its last sample may be wrong".to_owned());
    }
    Ok((samples, Surroundings { names: comments.into_names(), maps, notes }))
}

/// Labels of goroutines, written as a JSON object.
fn add_labels(text: &str, samples: &mut Samples) {
    let labels: BTreeMap<String, String> = serde_json::from_str(text).unwrap_or_default();
    for (key, value) in labels {
        samples.add_label(key, value);
    }
}

/// Rows that could not be read.
#[derive(Default)]
pub(super) struct Refused {
    count: usize,
    first: usize,
}

impl Refused {
    /// Counts the row in line `number`.
    pub(super) fn add(&mut self, number: usize) {
        if self.count == 0 {
            self.first = number;
        }
        self.count += 1;
    }

    /// What to tell the user, given how many rows could be read.
    pub(super) fn into_notes(self, read: usize) -> Result<Vec<String>, DecodeError> {
        let Self { count, first } = self;
        match (count, read) {
            (0, _) => Ok(Vec::new()),
            (_, 0) => Err(DecodeError::invalid(format!("no row of it can be read, from line {first} on"))),
            _ => Ok(vec![format!("rows left out because they can't be read: {count}, the first is line {first}")]),
        }
    }
}
