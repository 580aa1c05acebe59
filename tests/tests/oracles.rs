//! Real profiles, and the numbers that other programs get from them: `go tool pprof` and an
//! independent reader in Python. The reference implementation of these tests is held to the
//! same numbers, so that it can be trusted where no oracle exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use perflens_tests::cli::{Report, Run};
use perflens_tests::pprof;
use perflens_tests::reference::{Numbers, Samples};
use prost::Message;

/// All Go profiles with their value types.
const PROFILES: &[(&str, &[&str])] = &[
    ("cpu", &["samples", "cpu"]),
    ("heavy-cpu", &["samples", "cpu"]),
    ("trim-cpu", &["samples", "cpu"]),
    ("heap", &["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]),
    ("allocs", &["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]),
    ("mutex", &["contentions", "delay"]),
    ("block", &["contentions", "delay"]),
    ("goroutine", &["goroutine"]),
    ("threadcreate", &["threadcreate"]),
];

/// Flat and cumulative.
type Pair = (i64, i64);

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data")
}

fn profile(name: &str) -> PathBuf {
    data().join(format!("go/profiles/{name}.pb.gz"))
}

fn report(name: &str, args: &[&str]) -> Report {
    Run::report(&profile(name)).args(args).json()
}

fn reference(path: &Path) -> Samples {
    let bytes = fs::read(path).expect("the profile is there");
    let mut raw = Vec::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        flate2::read::MultiGzDecoder::new(&*bytes).read_to_end(&mut raw).expect("it is gzip");
    } else {
        raw = bytes;
    }
    Samples::read(&pprof::Profile::decode(&*raw).expect("it is pprof"))
}

/// `-top` of pprof: flat, flat%, sum%, cum, cum% and the name per row, which ends with the
/// place when it is `-lines`.
fn rows_of_top(text: &str) -> Vec<(String, Pair)> {
    let number = |word: &str| -> i64 {
        word.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().expect("an exact number")
    };
    let rows = text.lines().skip_while(|line| !line.trim_start().starts_with("flat ")).skip(1);
    rows.filter(|line| !line.trim().is_empty())
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let name = words[5..].join(" ");
            let name = name.trim_end_matches(" (inline)").trim_end_matches(" (partial-inline)");
            (name.to_owned(), (number(words[0]), number(words[3])))
        })
        .collect()
}

/// A file of the oracle; `None` when the oracle has no such file.
fn oracle(name: &str) -> Option<String> {
    fs::read_to_string(data().join("go/oracle").join(name)).ok()
}

/// The oracle's file of a profile and a value type. CPU time has no type in its name.
fn oracle_of(name: &str, value_type: &str, kind: &str) -> Option<String> {
    match value_type {
        "cpu" | "goroutine" => oracle(&format!("{name}.{kind}")),
        _ => oracle(&format!("{name}.{value_type}.{kind}")),
    }
}

/// What `lines.json` says about one value type: total and lines.
fn lines_json(text: &str, value_type: &str) -> (i64, BTreeMap<(String, i64), Pair>) {
    let json: serde_json::Value = serde_json::from_str(text).expect("the oracle is JSON");
    let values = json["values"].as_array().expect("a list");
    let values = values.iter().find(|values| values["type"] == value_type).expect("the value type is there");
    let number = |value: &serde_json::Value| value.as_i64().expect("a number");
    let rows = values["lines"].as_array().expect("a list");
    assert_eq!(rows.len() as u64, values["n_lines"].as_u64().expect("a number"), "the oracle is complete");
    let rows = rows
        .iter()
        .map(|row| ((row[0].as_str().expect("a file").to_owned(), number(&row[1])), (number(&row[2]), number(&row[3]))))
        // A line of no file is no row, nor is a file without a line.
        .filter(|((file, line), _)| !file.is_empty() && !file.starts_with('<') && *line > 0)
        .collect();
    (number(&values["total"]), rows)
}

fn lines_of(numbers: &Numbers) -> BTreeMap<(String, i64), Pair> {
    numbers.lines.iter().map(|(key, cost)| (key.clone(), (cost.flat, cost.cumulative))).collect()
}

/// Checks one value type of one profile against all there is to compare with; returns the
/// number of tables that were compared.
fn check(name: &str, value_type: &str, numbers: &Numbers) -> usize {
    let context = format!("{name} {value_type}");
    let (total, lines) = lines_json(&oracle(&format!("{name}.lines.json")).expect("every profile has it"), value_type);
    assert_eq!(numbers.total, total, "{context}");
    assert_eq!(lines_of(numbers), lines, "{context}: lines.json");

    let mut compared = 1;
    if let Some(text) = oracle_of(name, value_type, "lines.txt") {
        compared += 1;
        // Its rows are per function as well: flat adds up, cumulative only where one function
        // has the line.
        let mut by_line: BTreeMap<(String, i64), Vec<(String, Pair)>> = BTreeMap::new();
        for (row, costs) in rows_of_top(&text) {
            let (function, place) = row.rsplit_once(' ').expect("a function and a place");
            let (file, line) = place.rsplit_once(':').expect("a file and a line");
            let key = (file.to_owned(), line.parse().expect("a line number"));
            by_line.entry(key).or_default().push((function.to_owned(), costs));
        }
        assert_eq!(by_line.len(), numbers.lines.len(), "{context}: lines.txt");
        for (key, functions) in by_line {
            let cost = numbers.lines[&key];
            assert_eq!(cost.flat, functions.iter().map(|f| f.1.0).sum::<i64>(), "{context}: {key:?}");
            let names: BTreeSet<String> = functions.iter().map(|f| f.0.clone()).collect();
            assert_eq!(numbers.functions_of_lines[&key], names, "{context}: {key:?}");
            if let [(_, (_, cumulative))] = functions[..] {
                assert_eq!(cost.cumulative, cumulative, "{context}: {key:?}");
            }
        }
    }
    if let Some(text) = oracle_of(name, value_type, "top.txt") {
        compared += 1;
        let rows = rows_of_top(&text);
        let functions: BTreeMap<String, Pair> = rows.iter().cloned().collect();
        assert_eq!(functions.len(), rows.len(), "{context}: names are unique");
        assert_eq!(by_name(numbers), functions, "{context}: top.txt");
    }
    compared
}

fn by_name(numbers: &Numbers) -> BTreeMap<String, Pair> {
    let rows: BTreeMap<_, _> =
        numbers.functions.iter().map(|((name, _), cost)| (name.clone(), (cost.flat, cost.cumulative))).collect();
    assert_eq!(rows.len(), numbers.functions.len(), "names are unique");
    rows
}

#[test]
fn reference_has_the_numbers_of_pprof() {
    let mut compared = 0;
    for (name, value_types) in PROFILES {
        let samples = reference(&profile(name));
        for value_type in *value_types {
            compared += check(name, value_type, &samples.numbers(samples.value_type(Some(value_type))));
        }
    }
    assert_eq!(compared, 48, "an oracle is missing or was not found");
}

#[test]
fn report_has_the_numbers_of_pprof() {
    for (name, value_types) in PROFILES {
        for value_type in *value_types {
            let report = report(name, &["--type", value_type]);
            assert_eq!(report.profile.selected.kind, *value_type);
            check(name, value_type, &Numbers::of_report(&report));
        }
    }
}

#[test]
fn report_has_every_number_of_the_reference() {
    for (name, value_types) in PROFILES {
        let samples = reference(&profile(name));
        for value_type in *value_types {
            let report = report(name, &["--type", value_type]);
            let want = samples.numbers(samples.value_type(Some(value_type)));
            assert_eq!(Numbers::of_report(&report), want, "{name} {value_type}");
        }
    }
}

#[test]
fn headers_say_what_the_files_say() {
    for (name, value_types) in PROFILES {
        let oracle: serde_json::Value =
            serde_json::from_str(&oracle(&format!("{name}.lines.json")).expect("every profile has it")).unwrap();
        let report = report(name, &[]).profile;
        assert_eq!(report.format, "pprof", "{name}");
        assert_eq!(report.origin, format!("{name}.pb.gz"));
        assert_eq!(report.value_types.iter().map(|t| &*t.kind).collect::<Vec<_>>(), *value_types, "{name}");
        assert_eq!(report.time_ns, oracle["time_nanos"].as_i64(), "{name}");
        // pprof writes 0 where it knows no duration.
        assert_eq!(report.duration_ns, oracle["duration_nanos"].as_i64().filter(|&ns| ns != 0), "{name}");
        let period_type = report.period_type.expect("Go always has one");
        let period = format!("{}/{} {}", period_type.kind, period_type.unit, report.period.unwrap());
        assert_eq!(period, oracle["period"], "{name}");
        let default = match oracle["default_sample_type"].as_str() {
            Some("") | None => value_types.last().unwrap(),
            Some(default) => default,
        };
        assert_eq!(report.selected.kind, default, "{name}");
        assert_eq!(report.notes, [""; 0], "{name}");
    }
}

#[test]
fn comparison_has_the_numbers_of_pprof() {
    let base = profile("cpu");
    for (table, extra) in [("base", None), ("diff_base", None), ("normalize", Some("--normalize"))] {
        let args = ["--base", base.to_str().unwrap()].into_iter().chain(extra).collect::<Vec<_>>();
        let report = report("heavy-cpu", &args);
        let want: BTreeMap<String, Pair> =
            rows_of_top(&oracle(&format!("diff.{table}.top.txt")).unwrap()).into_iter().collect();
        let mut seen = 0;
        for row in &report.functions {
            let costs = row.costs;
            let got = (costs.diff_flat.unwrap(), costs.diff_cumulative.unwrap());
            // pprof leaves rows out that cancel to nothing.
            assert_eq!(got, want.get(&row.name).copied().unwrap_or((0, 0)), "{table}: {}", row.name);
            seen += usize::from(want.contains_key(&row.name));
        }
        assert_eq!(seen, want.len(), "{table}: every row of pprof is a row here");
        let base = report.profile.base.unwrap();
        assert_eq!((base.total, base.net, base.samples), (1_860_000_000, 1_860_000_000, Some(186)), "{table}");
    }
}

#[test]
fn filter_on_a_label_has_the_numbers_of_tagfocus() {
    let report = report("cpu", &["--filter", "label.phase=main"]);
    let want: BTreeMap<String, Pair> =
        rows_of_top(&oracle("cpu.tagfocus-phase-main.top.txt").unwrap()).into_iter().collect();
    let numbers = Numbers::of_report(&report);
    assert_eq!(by_name(&numbers), want);
    assert_eq!((numbers.total, numbers.total_unfiltered), (1_190_000_000, 1_860_000_000));
    assert_eq!(report.accounting.filtered, 670_000_000);
    assert_eq!(numbers.samples, Some(119));
}

#[test]
fn pprof_rs_counts_for_functions_only() {
    let path = data().join("made/rust/pprof-rs.pb");
    let oracle: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(data().join("made/rust/pprof-rs.pb.json")).unwrap()).unwrap();
    for values in oracle["values"].as_array().unwrap() {
        let value_type = values["type"].as_str().unwrap();
        let report = Run::report(&path).args(["--type", value_type]).json();
        assert_eq!(report.lines, [], "its lines mean nothing");
        assert_eq!(report.profile.total, values["total"].as_i64().unwrap());
        assert_ne!(report.profile.notes, [""; 0], "it is said why");
        for list in ["top_functions_flat", "top_functions_cum"] {
            for row in values[list].as_array().unwrap() {
                let costs = report.function(row[0].as_str().unwrap()).costs;
                assert_eq!(
                    (costs.flat, costs.cumulative),
                    (row[1].as_i64().unwrap(), row[2].as_i64().unwrap()),
                    "{row}"
                );
            }
        }
        let accounting = &report.accounting;
        assert_eq!((accounting.with_line, accounting.reach.with_line), (0, 0));
        let reasons: Vec<_> = accounting.reasons.iter().filter(|reason| reason.bucket == "no_line").collect();
        assert_eq!(reasons.len(), 1, "{reasons:?}");
        assert_eq!(reasons[0].reason, "function_level_format");
        assert_eq!(reasons[0].value, accounting.no_line);
        assert!(accounting.no_line > 0);

        let samples = reference(&path);
        let want = samples.numbers(samples.value_type(Some(value_type)));
        assert_eq!(Numbers::of_report(&report), want);
    }
}
