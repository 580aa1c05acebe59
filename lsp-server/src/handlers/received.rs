//! What came by OTLP, in words: for the status and for `perflens otlp`.

use std::time::Duration;

use profiler_core::view::data::shown;

use crate::otlp::Counts;
use crate::otlp::window::Extent;

/// Names that are told.
const NAMES: usize = 3;

/// Sentences about a receiver: where it listens, what is in its window, what is not.
pub fn words(grpc_port: u16, http_port: u16, length: Duration, counts: &Counts, extent: Extent) -> Vec<String> {
    let mut words = vec![format!(
        "OTLP profiles are received on the ports {grpc_port} (gRPC) and {http_port} (HTTP) of this machine: {}.",
        if counts.requests == 0 {
            "nothing has come yet".to_owned()
        } else {
            let length = match length.as_secs() {
                seconds if seconds < 120 => format!("{seconds} s"),
                seconds => format!("{} min", seconds / 60),
            };
            format!("{} in the last {length}{}", records(extent.samples), from(counts))
        }
    )];
    words.extend(losses(counts, extent));
    words
}

/// What did not get into the window.
pub fn losses(counts: &Counts, extent: Extent) -> Vec<String> {
    let mut words = Vec::new();
    if counts.dropped > 0 {
        words.push(format!(
            "{} were dropped before their time, as they took more memory than otlp.memoryMebibytes; what is left \
             reaches back {} min.",
            records(counts.dropped),
            extent.age.as_secs().div_ceil(60)
        ));
    }
    if counts.rejected > 0 {
        words.push(format!("{} profiles were left out, as there was no room for their kind.", counts.rejected));
    }
    if !counts.refused.is_empty() {
        let reasons: Vec<String> = counts.refused.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        words.push(format!("Requests that were refused: {}.", reasons.join(", ")));
    }
    words
}

/// What comes is counted as it is written: a record may stand for many samples, and says so in its value.
pub fn records(count: u64) -> String {
    format!("{count} record{}", if count == 1 { "" } else { "s" })
}

/// Who samples are from, the most first.
pub fn from(counts: &Counts) -> String {
    let mut named: Vec<(&String, &u64)> = counts.from.iter().filter(|(name, _)| !name.is_empty()).collect();
    named.sort_by_key(|(_, samples)| std::cmp::Reverse(**samples));
    let more = named.len().saturating_sub(NAMES);
    let names: Vec<String> = named.iter().take(NAMES).map(|(name, _)| shown(name).into_owned()).collect();
    let others = if more > 0 || counts.from_others > 0 { " and others" } else { "" };
    if names.is_empty() { String::new() } else { format!(" from {}{others}", names.join(", ")) }
}
