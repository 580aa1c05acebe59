//! Prints a profile like `pprof -raw` does, to compare the two byte for byte.

use std::fmt::Write;

use profiler_core::profile::{LabelValue, LocId, MapId, Profile};

/// Whether to print what is known about the functions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    Shown,
    Hidden,
}

/// The dump. Locations are numbered in the order in which samples use them.
pub(crate) fn dump(profile: &Profile, names: Names) -> String {
    let mut out = String::new();
    let meta = profile.meta();
    if let Some(period_type) = &meta.period_type {
        writeln!(out, "PeriodType: {} {}", period_type.kind, period_type.unit).unwrap();
    }
    writeln!(out, "Period: {}", meta.period).unwrap();
    if let Some(duration) = meta.duration_ns {
        writeln!(out, "Duration: {:.4}", go_duration(duration)).unwrap();
    }
    let types: Vec<String> = profile.value_types().iter().map(ToString::to_string).collect();
    writeln!(out, "Samples:\n{}", types.join(" ")).unwrap();

    let mut order: Vec<LocId> = Vec::new();
    for sample in 0..profile.samples().len() {
        for value_type in 0..types.len() {
            write!(out, " {:10}", profile.samples().values(value_type)[sample]).unwrap();
        }
        out.push_str(": ");
        for &location in profile.samples().stack(sample) {
            let at = order.iter().position(|&known| known == location).unwrap_or_else(|| {
                order.push(location);
                order.len() - 1
            });
            write!(out, "{} ", at + 1).unwrap();
        }
        out.push('\n');
        for label in profile.samples().labels(sample) {
            let LabelValue::Number(number, _) = label.value else { panic!("a text label") };
            writeln!(out, "                {}:[{number}]", profile.text(label.key)).unwrap();
        }
    }

    writeln!(out, "Locations").unwrap();
    let has_addresses = order.iter().any(|&id| profile.locations().address(id) != 0);
    for (i, &id) in order.iter().enumerate() {
        let mapping = profile.locations().mapping(id);
        // pprof invents a mapping for addresses that have none.
        let number = if mapping == MapId::NONE { profile.mappings().len() } else { mapping.index() };
        write!(out, "{:6}: {:#x} M={number} ", i + 1, profile.locations().address(id)).unwrap();
        let lines = if names == Names::Shown { profile.locations().lines(id) } else { &[] };
        for line in lines {
            let function = profile.function(line.function);
            let (name, path) = (profile.text(function.name), profile.path(function.file));
            write!(out, "{name} {path}:{}:{} s={}", line.line.0, line.column, function.start_line.0).unwrap();
        }
        out.push('\n');
    }

    writeln!(out, "Mappings").unwrap();
    for (i, mapping) in profile.mappings().iter().enumerate().skip(1) {
        let (start, limit, offset) = (mapping.memory_start, mapping.memory_limit, mapping.file_offset);
        let (file, build_id) = (profile.text(mapping.file), profile.text(mapping.build_id));
        writeln!(out, "{i}: {start:#x}/{limit:#x}/{offset:#x} {file} {build_id} ").unwrap();
    }
    if order.iter().any(|&id| profile.locations().mapping(id) == MapId::NONE) {
        let limit = if has_addresses { u64::MAX } else { 0 };
        writeln!(out, "{}: 0x0/{limit:#x}/0x0   ", profile.mappings().len()).unwrap();
    }
    out
}

/// Hours and minutes as Go prints them; more than four characters are never shown.
fn go_duration(ns: i64) -> String {
    let seconds = ns / 1_000_000_000;
    format!("{}h{}m{}s", seconds / 3600, seconds / 60 % 60, seconds % 60)
}
