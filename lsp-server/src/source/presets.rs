//! The queries most people want, by name. Only those that a server can answer are offered.
//!
//! A preset knows kinds of profile types, not their names: who measures CPU time is called
//! differently everywhere. What holds for a time is offered for times, what is the state of a
//! moment once.

use std::time::Duration;

use super::connection::Kind;
use super::query::{Matcher, ProfileQuery, ProfileType, Selector, TimeRange};

const MINUTES_15: Duration = Duration::from_mins(15);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// A query with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    /// `on-CPU, last 15m`.
    pub title: String,
    /// What it asks for.
    pub query: ProfileQuery,
    /// What it is compared with, if it is a comparison.
    pub base: Option<TimeRange>,
}

struct Row {
    title: &'static str,
    /// Profile types that fit, the best first, as `NAME:SAMPLE_TYPE`; `*` for any name.
    types: &'static [&'static str],
    ranges: &'static [Duration],
}

const ROWS: &[Row] = &[
    Row {
        title: "on-CPU",
        types: &[
            "parca_agent:samples",
            "go_opentelemetry_io_ebpf_profiler:samples",
            "otel_profiling_agent_on_cpu:samples",
            "parca_agent_cpu:samples",
            "process_cpu:cpu",
            "process_cpu:samples",
            "*:cpu",
        ],
        ranges: &[MINUTES_15, HOUR, DAY],
    },
    Row { title: "off-CPU", types: &["parca_agent:wallclock", "*:off_cpu", "*:offcpu"], ranges: &[MINUTES_15, HOUR] },
    Row { title: "allocated bytes", types: &["memory:alloc_space", "*:alloc_space"], ranges: &[MINUTES_15, HOUR] },
    Row {
        title: "allocated objects",
        types: &["memory:alloc_objects", "*:alloc_objects"],
        ranges: &[MINUTES_15, HOUR],
    },
    Row { title: "heap in use", types: &["memory:inuse_space", "*:inuse_space"], ranges: &[MINUTES_15] },
    Row { title: "goroutines", types: &["goroutine:goroutine", "*:goroutine"], ranges: &[MINUTES_15] },
    Row { title: "mutex wait", types: &["mutex:delay"], ranges: &[MINUTES_15] },
    Row { title: "block wait", types: &["block:delay"], ranges: &[MINUTES_15] },
    Row {
        title: "wall clock",
        types: &["fgprof:time", "fgprof:samples", "wall:wall", "*:wall"],
        ranges: &[MINUTES_15],
    },
    Row {
        title: "GPU time",
        types: &["parca_agent:gpu_time", "parca_agent:gpu_kernel_time", "parca_agent:cuda"],
        ranges: &[MINUTES_15],
    },
];

/// Totals since a program started are the state of a moment as well, with another name for it.
const SINCE_START: &[&str] = &["alloc_space", "alloc_objects", "delay", "contentions"];

/// The presets that a server with these types can answer, for these labels.
pub fn offered(kind: Kind, types: &[ProfileType], matchers: &[Matcher]) -> Vec<Preset> {
    let mut presets = Vec::new();
    for row in ROWS {
        // What adds up is better than what doesn't, then the order of the row decides.
        let fits = |pattern: &&str, of: &ProfileType| {
            let (name, sample_type) = pattern.split_once(':').unwrap_or((pattern, ""));
            (name == "*" || of.name == name) && of.sample_type == sample_type
        };
        let candidates = row.types.iter().flat_map(|pattern| types.iter().filter(move |of| fits(pattern, of)));
        let is_snapshot = |of: &ProfileType| of.is_snapshot(kind != Kind::Pyroscope);
        let Some(best) = candidates.min_by_key(|of| is_snapshot(of)) else { continue };
        let query = |range| ProfileQuery {
            selector: Selector { profile_type: best.clone(), matchers: matchers.to_vec() },
            range,
        };
        if is_snapshot(best) {
            let when = if SINCE_START.contains(&best.sample_type.as_str()) { "since start" } else { "now" };
            let title = format!("{} {when}", row.title);
            presets.push(Preset { title, query: query(TimeRange::Last(MINUTES_15)), base: None });
            continue;
        }
        for &length in row.ranges {
            let title = format!("{} {}", row.title, super::time::length(length).replace("1d", "24h"));
            presets.push(Preset { title, query: query(TimeRange::Last(length)), base: None });
        }
        if row.title == "on-CPU" {
            presets.push(Preset {
                title: "compare on-CPU: this hour with the same hour yesterday".to_owned(),
                query: query(TimeRange::Last(HOUR)),
                base: Some(TimeRange::Last(HOUR).earlier(DAY)),
            });
        }
    }
    // Comparisons last: they are two queries.
    presets.sort_by_key(|preset| preset.base.is_some());
    presets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(kind: Kind, types: &[&str]) -> Vec<String> {
        let types: Vec<ProfileType> = types.iter().map(|text| text.parse().unwrap()).collect();
        offered(kind, &types, &[]).into_iter().map(|preset| preset.title).collect()
    }

    #[test]
    fn only_what_can_be_answered_is_offered() {
        assert_eq!(titles(Kind::Parca, &[]), [""; 0]);
        assert_eq!(
            titles(
                Kind::Parca,
                &[
                    "memory:inuse_space:bytes:space:bytes",
                    "memory:alloc_space:bytes:space:bytes",
                    "goroutine:goroutine:count:goroutine:count"
                ]
            ),
            ["allocated bytes since start", "heap in use now", "goroutines now"]
        );
        assert_eq!(
            titles(
                Kind::Parca,
                &["memory:alloc_space:bytes:space:bytes", "memory:alloc_space:bytes:space:bytes:delta"]
            ),
            ["allocated bytes 15m", "allocated bytes 1h"]
        );
        // Pyroscope marks nothing: what is allocated adds up there.
        assert_eq!(
            titles(Kind::Pyroscope, &["memory:alloc_space:bytes:space:bytes", "memory:inuse_space:bytes:space:bytes"]),
            ["allocated bytes 15m", "allocated bytes 1h", "heap in use now"]
        );
    }

    #[test]
    fn whoever_measures_the_cpu_best_is_asked() {
        let types =
            ["process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta", "parca_agent:samples:count:cpu:nanoseconds:delta"];
        let types: Vec<ProfileType> = types.iter().map(|text| text.parse().unwrap()).collect();
        let presets = offered(Kind::Parca, &types, &[Matcher::equal("job", "api")]);
        assert_eq!(presets.len(), 4);
        assert_eq!(
            presets[0].query.selector.to_string(),
            r#"parca_agent:samples:count:cpu:nanoseconds:delta{job="api"}"#
        );
        assert_eq!(presets[2].title, "on-CPU 24h");
        assert_eq!(presets[3].base.unwrap().to_string(), "1h@1d");
    }
}
