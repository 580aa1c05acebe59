//! Profiles of Go that count stacks (`debug=1`): goroutines, threads created, and those a
//! program defines itself.
//!
//! ```text
//! goroutine profile: total 8
//! 7 @ 0x47e52a 0x41520e 0x414d32 0x4ec679 0x4846e1
//! # labels: {"route":"/"}
//! #  0x4ec678  main.waiter+0x18  /home/dev/src/demo/main.go:109
//! ```

use super::super::{Context, DecodeError};
use super::rows::{self, Row};
use super::{GO_COUNT, Text, lines};
use crate::profile::{Profile, ProfileBuilder, ValueType};

/// The name of the profile, if a first line is of this kind.
pub(super) fn kind_in_header(line: &str) -> Option<&str> {
    let (kind, total) = line.split_once(" profile: total ")?;
    let is_own = !kind.is_empty() && !kind.contains(char::is_whitespace) && total.parse::<u64>().is_ok();
    is_own.then_some(kind)
}

pub(super) fn decode(text: &Text, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let (first, lines) = text.header();
    let kind = kind_in_header(first).ok_or_else(|| DecodeError::invalid("its first line is damaged"))?;
    let value_type = ValueType::new(kind, "count");
    let mut builder = ProfileBuilder::new(GO_COUNT.name, vec![value_type.clone()]);
    let meta = builder.meta();
    meta.period = 1;
    meta.period_type = Some(value_type);

    let (samples, mut around) = rows::read(lines, context, |row, stack| {
        let (count, addresses) = row.split_once('@')?;
        lines::addresses(addresses, stack)?;
        Some(Row { values: [count.trim().parse().ok()?], size: None })
    })?;
    around.notes.extend(text.note());
    samples.into_profile(builder, around, context)
}
