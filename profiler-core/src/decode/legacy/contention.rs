//! Waits for locks: C++'s contentionz, Go's mutex and block profiles (`debug=1`), and Java's.
//!
//! ```text
//! --- mutex:
//! cycles/second=2596132142
//! sampling period=1
//! 664964806 79 @ 0x4ec579 0x4ec578 0x4846e1
//! ```
//!
//! A row holds the cycles waited and how often; both are multiplied by the sampling period,
//! and cycles become nanoseconds when the clock's speed is known.

use super::super::{Context, DecodeError};
use super::lines::{self, Lines};
use super::rows::{self, Row};
use super::{CONTENTION, Text, heap, java};
use crate::profile::{Profile, ProfileBuilder, ValueType};

/// Functions of locks: who called them is of interest.
pub(super) const LOCK_FRAMES: &str = concat!(
    r"(base::)?(RecordLock|SubmitMutex|SubmitSpinLock)ProfileData.*",
    r"|((base::)?Mutex::)?(AwaitCommon|Unlock|UnlockSlow|ReaderUnlock).*",
    r"|((base::)?MutexLock::)?~MutexLock.*",
    r"|(SpinLock::)?(Unlock|SlowUnlock).*|(SpinLockHolder::)?~SpinLockHolder.*",
);

/// Whether a first line is that of a contention profile.
pub(super) fn is_header(line: &str) -> bool {
    ["--- contentionz ", "--- mutex:", "--- contention:"].iter().any(|header| line.starts_with(header))
}

/// The lines between the first and the rows.
#[derive(Default)]
struct Header {
    cycles_per_second: i64,
    period: i64,
    duration_ns: Option<i64>,
    is_java: bool,
}

impl Header {
    /// Reads lines as long as they are `key = value`.
    fn read(lines: &mut Lines<'_>) -> Result<Self, DecodeError> {
        let mut header = Self { period: 1, ..Self::default() };
        while let Some(line) = lines.peek() {
            let text = line.text.trim();
            if !lines::is_blank_or_comment(text) {
                let Some((key, value)) = text.split_once('=').filter(|_| !text.starts_with("---")) else { break };
                let (key, value) = (key.trim(), value.trim());
                let number = || {
                    value
                        .parse::<i64>()
                        .map_err(|_| DecodeError::invalid(format!("its `{key}` is not a number: {value}")))
                };
                match key {
                    "cycles/second" => header.cycles_per_second = number()?,
                    "sampling period" => header.period = number()?,
                    "ms since reset" => header.duration_ns = number()?.checked_mul(1_000_000),
                    "format" if value == "java" => header.is_java = true,
                    _ => {}
                }
            }
            lines.next();
        }
        Ok(header)
    }

    fn parse(&self, row: &str, stack: &mut Vec<u64>) -> Option<Row<2>> {
        let (numbers, addresses) = row.split_once('@')?;
        lines::addresses(addresses, stack)?;
        let mut numbers = numbers.split_ascii_whitespace().map(str::parse::<i64>);
        let (Some(Ok(cycles)), Some(Ok(count)), None) = (numbers.next(), numbers.next(), numbers.next()) else {
            return None;
        };
        if self.period <= 0 {
            return Some(Row { values: [count, cycles], size: None });
        }
        let delay = if self.cycles_per_second > 0 {
            let cycles_per_ns = self.cycles_per_second as f64 / 1e9;
            // Multiplied before divided, so that the last digit is the one pprof shows.
            heap::scaled(1, cycles as f64 * self.period as f64 / cycles_per_ns)
        } else {
            cycles
        };
        Some(Row { values: [count.checked_mul(self.period)?, delay], size: None })
    }
}

pub(super) fn decode(text: &Text, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let (_, mut lines) = text.header();
    let before = lines.clone();
    let header = Header::read(&mut lines)?;
    if header.is_java {
        return java::decode(java::Kind::Contention, text, before, context);
    }
    let value_types = vec![ValueType::new("contentions", "count"), ValueType::new("delay", "nanoseconds")];
    let mut builder = ProfileBuilder::new(CONTENTION.name, value_types);
    let meta = builder.meta();
    meta.period = header.period;
    meta.period_type = Some(ValueType::new("contentions", "count"));
    meta.duration_ns = header.duration_ns;
    LOCK_FRAMES.clone_into(&mut meta.drop_frames);

    let (samples, mut around) = rows::read(lines, context, |row, stack| header.parse(row, stack))?;
    around.notes.extend(text.note());
    samples.into_profile(builder, around, context)
}
