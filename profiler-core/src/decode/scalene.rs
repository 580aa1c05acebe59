//! Scalene's JSON, a profiler for Python: shares of the whole run for each line.
//!
//! ```text
//! {"elapsed_time_sec": 2.5, "files": {"/srv/app.py": {"lines": [
//!    {"lineno": 12, "n_cpu_percent_python": 40.2, "n_cpu_percent_c": 1, "n_sys_percent": 0.3, "n_malloc_mb": 3, …}
//! ]}}}
//! ```
//!
//! Lines have a cost of their own and nothing else is known: no functions, no callers. Shares
//! are turned into time by the length of the run.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

use super::json;
use super::sink::Sink;
use super::{Confidence, Context, DecodeError, Format, Input, text};
use crate::profile::{LineDetail, Profile, ValueType};

pub(super) const FORMAT: Format = Format { name: "scalene", sniff, decode };

fn sniff(prefix: &[u8]) -> Confidence {
    let Some(content) = json::beginning(prefix, &['{']) else { return Confidence::No };
    let has = |word: &str| content.contains(word);
    if has("\"n_cpu_percent_python\"") || (has("\"elapsed_time_sec\"") && has("\"alloc_samples\"")) {
        Confidence::Certain
    } else {
        Confidence::No
    }
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(default)]
    elapsed_time_sec: f64,
    #[serde(borrow, default)]
    files: BTreeMap<Cow<'a, str>, Source>,
}

#[derive(Deserialize)]
struct Source {
    #[serde(default)]
    lines: Vec<Line>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line {
    lineno: i64,
    n_cpu_percent_python: f64,
    n_cpu_percent_c: f64,
    n_sys_percent: f64,
    n_malloc_mb: f64,
}

fn decode(input: &mut Input<'_>, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let bytes = input.read_all()?;
    let all = text::decode(&bytes).ok_or_else(|| DecodeError::invalid("it is not text"))?;
    let file: File<'_> = json::parse(&all)?;
    let time = |kind: &str| ValueType::new(kind, "nanoseconds");
    let types =
        vec![time("time"), time("python"), time("native"), time("system"), ValueType::new("alloc_space", "bytes")];
    let mut sink = Sink::new(FORMAT.name, types, context);
    let meta = sink.builder.meta();
    meta.default_value_type = 0;
    meta.line_detail = LineDetail::FlatOnly;
    meta.duration_ns = super::fraction::nearest(file.elapsed_time_sec * 1e9).filter(|&duration| duration > 0);
    let ns_per_percent = file.elapsed_time_sec * 1e9 / 100.0;
    let out_of_range = || DecodeError::invalid("the cost of a line is out of range");
    for (path, source) in &file.files {
        context.cancel.check()?;
        for line in &source.lines {
            let ns = |percent: f64| super::fraction::nearest(percent * ns_per_percent).ok_or_else(out_of_range);
            let parts = [ns(line.n_cpu_percent_python)?, ns(line.n_cpu_percent_c)?, ns(line.n_sys_percent)?];
            let sum = parts.iter().try_fold(0i64, |sum, &part| sum.checked_add(part)).ok_or_else(out_of_range)?;
            let bytes = super::fraction::nearest(line.n_malloc_mb * 1_048_576.0).ok_or_else(out_of_range)?;
            let place = sink.frame("", path, line.lineno, 0)?;
            sink.sample(&[place], &[sum, parts[0], parts[1], parts[2], bytes], &[])?;
        }
    }
    sink.finish()
}
