//! The JSON of `report`: which fields there are, in which order rows come, and what the
//! options do to it. Programs read it, so none of this may change by accident.

use perflens_tests::cli::{Report, Run, report_bytes};
use perflens_tests::mini::Mini;
use serde_json::Value;
use tempfile::TempDir;

const PROFILE: &str = "
    samples/count cpu/nanoseconds
    !period cpu/nanoseconds 10000000
    !time 1795956887632312013
    !duration 4019220896
    /home/dev/src/main.rs:10 main #8; /home/dev/src/lib.rs:4 work #2 = 3, 30 {thread=main}
    /home/dev/src/main.rs:11 main #8 = 1, 10
";

/// A folder with a profile in it.
struct Folder {
    folder: TempDir,
}

impl Folder {
    fn new(profile: &str) -> Self {
        let mini = Mini::parse(profile);
        let folder = mini.workspace();
        mini.write_to(&folder.path().join("p.pb.gz"));
        Self { folder }
    }

    fn run(&self, args: &[&str]) -> perflens_tests::cli::Output {
        Run::new(["report", "p.pb.gz", "--format", "json"]).args(args).folder(self.folder.path()).output()
    }

    fn value(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        serde_json::from_str(&output.stdout).expect("it is JSON")
    }

    fn report(&self, args: &[&str]) -> Report {
        serde_json::from_value(self.value(args)).expect("it is a report")
    }
}

/// Every field is there with a value of its kind, written as an example of it. Fields may be
/// added, so others are no fault.
fn assert_shape(value: &Value, shape: &Value, at: &str) {
    match (value, shape) {
        (Value::Object(value), Value::Object(shape)) => {
            for (key, shape) in shape {
                let value = value.get(key).unwrap_or_else(|| panic!("no {at}.{key}"));
                assert_shape(value, shape, &format!("{at}.{key}"));
            }
        }
        (Value::Array(values), Value::Array(shape)) => {
            assert!(!values.is_empty() || shape.is_empty(), "{at} is empty");
            for value in values {
                assert_shape(value, &shape[0], &format!("{at}[]"));
            }
        }
        (Value::Number(number), Value::Number(_)) => assert!(number.is_i64(), "{at}: {number} is not exact"),
        (Value::String(_), Value::String(_)) | (Value::Null, Value::Null) => {}
        _ => panic!("{at} is {value}, not like {shape}"),
    }
}

#[test]
fn every_field_is_there() {
    let value = Folder::new(PROFILE).value(&[]);
    let value_type = serde_json::json!({"type": "", "unit": ""});
    let buckets = serde_json::json!({"with_line": 0, "no_line": 0, "no_file": 0, "unresolved": 0});
    let shape = serde_json::json!({
        "schema": 1,
        "profile": {
            "origin": "", "format": "", "value_types": [value_type], "selected": value_type,
            "records": 0, "samples": 0, "total": 0, "net": 0, "total_unfiltered": 0,
            "duration_ns": 0, "time_ns": 0, "period": 0, "period_type": value_type, "notes": [],
        },
        "lines": [{"file": "", "line": 0, "flat": 0, "cumulative": 0, "functions": [""]}],
        "functions": [{"name": "", "file": "", "start_line": 0, "flat": 0, "cumulative": 0}],
        "files": [{"file": "", "flat": 0, "cumulative": 0}],
        "accounting": {
            "total": 0, "with_line": 0, "no_line": 0, "no_file": 0, "unresolved": 0, "filtered": 0,
            "reach": buckets, "reasons": [],
        },
    });
    assert_shape(&value, &shape, "");
    assert_eq!(value["schema"], 1);
}

#[test]
fn values_are_exact_and_not_scaled_by_the_period() {
    let folder = Folder::new(PROFILE);
    let profile = folder.report(&[]).profile;
    assert_eq!(profile.origin, "p.pb.gz");
    assert_eq!(profile.format, "pprof");
    assert_eq!((profile.records, profile.samples, profile.total, profile.net), (2, Some(4), 40, 40));
    assert_eq!(profile.total_unfiltered, 40);
    assert_eq!(profile.time_ns, Some(1_795_956_887_632_312_013));
    assert_eq!(profile.duration_ns, Some(4_019_220_896));
    assert_eq!(profile.period, Some(10_000_000));
    assert_eq!(profile.period_type.unwrap().kind, "cpu");
    let samples = folder.report(&["--type", "samples"]).profile;
    assert_eq!((samples.samples, samples.total), (Some(4), 4));
}

#[test]
fn what_the_file_does_not_say_is_null() {
    let value = Folder::new("inuse_space/bytes\na.rs:1 f = 5").value(&[]);
    let profile = &value["profile"];
    for field in ["samples", "time_ns", "duration_ns", "period_type"] {
        assert_eq!(profile.get(field), Some(&Value::Null), "{field} is there, and null");
    }
}

#[test]
fn records_and_samples_are_those_with_a_value() {
    let report = report_bytes(Mini::parse("samples/count cpu/ns\na.rs:1 f = 1, 0\na.rs:2 g = 2, 5").gzip(), &[]);
    assert_eq!((report.profile.records, report.profile.samples), (1, Some(2)));
    assert_eq!(report.line_costs(), ["a.rs:2 5 5"]);
}

#[test]
fn rows_come_by_falling_cumulative_value_then_name_then_line() {
    let report = report_bytes(
        Mini::parse(
            "
            space/bytes
            b.rs:2 g = 5
            b.rs:1 f = 5
            a.rs:9 h = 5
            a.rs:10 h = 5
            c.rs:1 i = -20
            d.rs:1 j = 10
            ",
        )
        .gzip(),
        &[],
    );
    assert_eq!(
        report.line_costs(),
        ["c.rs:1 -20 -20", "d.rs:1 10 10", "a.rs:9 5 5", "a.rs:10 5 5", "b.rs:1 5 5", "b.rs:2 5 5"]
    );
    assert_eq!(report.function_costs(), ["i -20 -20", "h 10 10", "j 10 10", "f 5 5", "g 5 5"]);
    let files: Vec<_> = report.files.iter().map(|row| &*row.file).collect();
    assert_eq!(files, ["c.rs", "a.rs", "b.rs", "d.rs"]);
}

#[test]
fn one_name_in_two_files_is_two_functions_and_in_two_binaries_one() {
    let report = report_bytes(
        Mini::parse("cpu/ns\nx@0x1 a.rs:1 f = 1\ny@0x1 a.rs:1 f = 2\nx@0x2 b.rs:1 f = 4\n? f = 8").gzip(),
        &[],
    );
    let rows: Vec<_> = report.functions.iter().map(|row| (row.file.as_deref().unwrap_or(""), row.costs.flat)).collect();
    assert_eq!(rows, [("", 8), ("b.rs", 4), ("a.rs", 3)]);
}

#[test]
fn names_are_demangled() {
    let report = report_bytes(
        Mini::parse("cpu/ns\na.rs:1 _ZN4core3fmt5Write9write_fmt17h0123456789abcdefE = 2\nb.cc:1 _ZN2ns3fooEv = 1")
            .gzip(),
        &[],
    );
    assert_eq!(report.function_costs(), ["core::fmt::Write::write_fmt 2 2", "ns::foo() 1 1"]);
}

#[test]
fn top_applies_to_each_array_and_is_20() {
    let samples: Vec<String> = (1..=30).map(|i| format!("f{i}.rs:{i} f{i} = {i}")).collect();
    let folder = Folder::new(&format!("cpu/ns\n{}", samples.join("\n")));
    for (args, want) in [(&[][..], 20), (&["--top", "5"], 5), (&["--top", "0"], 30), (&["--top", "100"], 30)] {
        let report = folder.report(args);
        assert_eq!([report.lines.len(), report.functions.len(), report.files.len()], [want; 3], "{args:?}");
        assert_eq!(report.lines[0].line, 30, "{args:?}");
        assert_eq!(report.profile.total, 465, "{args:?}: sums are of everything");
        assert_eq!(report.accounting.with_line, 465, "{args:?}");
    }
}

#[test]
fn by_changes_nothing_in_json() {
    let folder = Folder::new(PROFILE);
    let plain = folder.value(&[]);
    for by in ["line", "function", "file"] {
        assert_eq!(folder.value(&["--by", by]), plain, "{by}");
    }
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let folder = Folder::new(PROFILE);
    let first = folder.run(&["--top", "0"]).stdout;
    for _ in 0..3 {
        assert_eq!(folder.run(&["--top", "0"]).stdout, first);
    }
}

#[test]
fn types_are_chosen_by_name_or_by_name_and_unit() {
    let folder = Folder::new("cpu/count cpu/nanoseconds space/bytes\na.rs:1 f = 1, 2, 3");
    for (name, total) in
        [("cpu/count", 1), ("cpu/nanoseconds", 2), ("space", 3), ("space/bytes", 3), ("inuse_space", 3)]
    {
        assert_eq!(folder.report(&["--type", name]).profile.total, total, "{name}");
    }
    assert_eq!(folder.report(&[]).profile.total, 3, "the last one without a name");
}

#[test]
fn an_exact_type_wins_over_the_old_name() {
    let folder = Folder::new("space/bytes inuse_space/bytes\na.rs:1 f = 1, 2");
    assert_eq!(folder.report(&["--type", "inuse_space"]).profile.total, 2);
    assert_eq!(folder.report(&["--type", "space"]).profile.total, 1);
}

#[test]
fn unknown_and_ambiguous_types_list_what_there_is() {
    let folder = Folder::new("cpu/count cpu/nanoseconds space/bytes\na.rs:1 f = 1, 2, 3");
    for (name, candidates, others) in [
        ("cpu", &["cpu/count", "cpu/nanoseconds"][..], &["space/bytes"][..]),
        ("heap", &["cpu/count", "cpu/nanoseconds", "space/bytes"], &[]),
        ("cpu/bytes", &["cpu/count", "cpu/nanoseconds", "space/bytes"], &[]),
        ("inuse_cpu_", &["cpu/count", "cpu/nanoseconds", "space/bytes"], &[]),
    ] {
        let output = folder.run(&["--type", name]);
        assert!(matches!(output.code, Some(1 | 2)), "{name}: {:?}", output.code);
        assert_eq!(output.stdout, "", "{name}");
        for candidate in candidates {
            assert!(output.stderr.contains(candidate), "{name}: {}", output.stderr);
        }
        for other in others {
            assert!(!output.stderr.contains(other), "{name}: {}", output.stderr);
        }
    }
}

#[test]
fn base_adds_its_fields() {
    let folder = Folder::new(PROFILE);
    let value = folder.value(&["--base", "p.pb.gz"]);
    let costs = serde_json::json!({
        "flat": 0, "cumulative": 0, "base_flat": 0, "base_cumulative": 0, "diff_flat": 0, "diff_cumulative": 0,
    });
    let shape = serde_json::json!({
        "profile": {"base": {"origin": "", "total": 0, "net": 0, "records": 0, "samples": 0}},
        "lines": [costs], "functions": [costs], "files": [costs],
    });
    assert_shape(&value, &shape, "");
    assert_eq!(value["profile"]["base"]["origin"], "p.pb.gz");
    let plain = folder.value(&[]);
    assert!(plain["lines"][0].get("diff_flat").is_none_or(Value::is_null), "only with a base");
}

#[test]
fn compared_rows_come_by_falling_difference() {
    let folder = Folder::new("cpu/ns\na.rs:1 f = 1000\na.rs:2 g = 10\na.rs:3 h = 7");
    let base = Mini::parse("cpu/ns\na.rs:1 f = 1001\na.rs:2 g = 30\na.rs:4 i = 7");
    base.write_to(&folder.folder.path().join("base.pb.gz"));
    let report = folder.report(&["--base", "base.pb.gz"]);
    let rows: Vec<_> = report.lines.iter().map(|row| (row.line, row.costs.diff_cumulative.unwrap())).collect();
    assert_eq!(rows, [(2, -20), (3, 7), (4, -7), (1, -1)]);
    let names: Vec<_> = report.functions.iter().map(|row| &*row.name).collect();
    assert_eq!(names, ["g", "h", "i", "f"]);
    for row in &report.lines {
        let costs = row.costs;
        assert_eq!(costs.diff_flat, Some(costs.flat - costs.base_flat.unwrap()));
        assert_eq!(costs.diff_cumulative, Some(costs.cumulative - costs.base_cumulative.unwrap()));
    }
    // The files hold both: 1017 against 1038.
    assert_eq!(report.files[0].costs.diff_cumulative, Some(-21));
}

/// Files that the paths of these profiles can be: long enough, and with the functions in them.
const WORKSPACE: &str = "
//- /src/main.rs
// 1
// 2
// 3
// 4
// 5
// 6
// 7
fn main() {
    // 9
    work();
    work();
}
//- /src/lib.rs
// 1
fn work() {
    // 3
    // 4
}
//- /a/mod.rs
fn shared() {}
//- /b/mod.rs
fn shared() {}
";

#[test]
fn workspace_adds_its_fields() {
    let folder = Folder::new(&format!("{PROFILE}{WORKSPACE}"));
    let value = folder.value(&["--workspace", "."]);
    let place = serde_json::json!({"workspace_file": "", "match": "", "direct": 0, "aliases": []});
    let shape = serde_json::json!({
        "lines": [place], "functions": [place], "files": [place],
        "accounting": {"workspace": {"shown": 0, "ambiguous": 0, "outside": 0, "no_match": 0}},
    });
    for (array, row) in [("lines", 0), ("functions", 0), ("files", 0)] {
        let fields = value[array][row].as_object().unwrap();
        for field in ["workspace_file", "match", "direct"] {
            assert!(fields.contains_key(field), "{array}: {field}");
        }
    }
    assert_shape(&value["accounting"], &shape["accounting"], "accounting");
    let report = folder.report(&["--workspace", "."]);
    let row = report.line("/home/dev/src/lib.rs", 4);
    assert!(row.place.workspace_file.as_ref().unwrap().ends_with("src/lib.rs"), "{row:?}");
    assert_eq!(row.costs.direct, Some(30));
    let plain = folder.value(&[]);
    assert!(plain["lines"][0].get("workspace_file").is_none_or(Value::is_null), "only with a workspace");
}

#[test]
fn rows_without_a_workspace_file_say_why_not() {
    let folder = Folder::new(&format!(
        "
        cpu/ns
        mod.rs:1 shared = 1
        /usr/local/go/src/runtime/proc.go:1 runtime.main = 2
        /elsewhere/unknown.rs:1 unknown = 4
        {WORKSPACE}"
    ));
    let report = folder.report(&["--workspace", "."]);
    for row in &report.lines {
        assert_eq!(row.place.workspace_file, None, "{row:?}");
        assert!(row.place.matched.as_ref().is_some_and(|matched| !matched.is_null()), "{row:?}");
        assert_eq!(row.costs.direct, Some(0), "{row:?}");
    }
    let workspace = report.accounting.workspace.unwrap();
    let bucket = |name: &str| workspace.get(name).copied().unwrap_or(0);
    assert_eq!(
        [bucket("shown"), bucket("ambiguous"), bucket("outside"), bucket("no_match")],
        [0, 1, 2, 4],
        "{workspace:?}"
    );
}

#[test]
fn buckets_of_the_workspace_add_up_and_rank_above_each_other() {
    let folder = Folder::new(&format!(
        "
        cpu/ns
        /usr/local/go/src/runtime/proc.go:1 runtime.main; mod.rs:1 shared; /home/dev/src/lib.rs:3 work; 0x1 = 1
        /elsewhere/unknown.rs:1 u; /usr/local/go/src/runtime/proc.go:1 runtime.main; mod.rs:1 shared = 10
        /elsewhere/unknown.rs:1 u; /usr/local/go/src/runtime/proc.go:1 runtime.main = 100
        src/lib.rs:? work; /elsewhere/unknown.rs:1 u = 1_000
        ? name; src/lib.rs:? work = 10_000
        0x1; ? name = 100_000
        0x1 = 1_000_000
        {WORKSPACE}"
    ));
    let report = folder.report(&["--workspace", "."]);
    let workspace = report.accounting.workspace.unwrap();
    let expected = [
        ("shown", 1),
        ("ambiguous", 10),
        ("outside", 100),
        ("no_match", 1_000),
        ("no_line", 10_000),
        ("no_file", 100_000),
        ("unresolved", 1_000_000),
    ];
    for (bucket, value) in expected {
        assert_eq!(workspace.get(bucket), Some(&value), "{bucket}: {workspace:?}");
    }
    assert_eq!(workspace.values().sum::<i64>(), report.profile.total);
}

#[test]
fn rows_with_a_workspace_come_by_falling_direct_value() {
    let folder = Folder::new(&format!(
        "
        cpu/ns
        src/main.rs:10 main; src/lib.rs:3 work = 5
        src/main.rs:10 main = 1
        src/main.rs:10 main; /elsewhere/x.rs:1 x = 2
        {WORKSPACE}"
    ));
    let report = folder.report(&["--workspace", "."]);
    let rows: Vec<_> = report.functions.iter().map(|row| (&*row.name, row.costs.direct.unwrap())).collect();
    assert_eq!(rows, [("work", 5), ("main", 3), ("x", 0)]);
    let lines: Vec<_> = report.lines.iter().map(|row| row.costs.direct.unwrap()).collect();
    assert_eq!(lines, [5, 3, 0]);
}

#[test]
fn reasons_add_up_per_bucket() {
    let report = report_bytes(
        Mini::parse("cpu/ns\na.rs:1 f = 1\na.rs:? f = 2\n? f = 4\n<x>:1 f = 8\n0x1 = 16\n= 32").gzip(),
        &[],
    );
    let accounting = report.accounting;
    for (bucket, value) in
        [("no_line", accounting.no_line), ("no_file", accounting.no_file), ("unresolved", accounting.unresolved)]
    {
        let reasons = accounting.reasons.iter().filter(|reason| reason.bucket == bucket);
        assert_eq!(reasons.map(|reason| reason.value).sum::<i64>(), value, "{bucket}");
    }
    assert_eq!((accounting.no_line, accounting.no_file, accounting.unresolved), (2, 12, 48));
    assert!(accounting.reasons.iter().all(|reason| reason.records > 0 && !reason.reason.is_empty()));
}

#[test]
fn any_text_is_valid_json() {
    let mini = Mini::parse("cpu/ns\n\"a\\b\u{1}.rs\":1 say\"hi\"\u{7f}\u{2028}\\ = 1 {k=\u{0}}");
    let report = report_bytes(mini.gzip(), &[]);
    assert_eq!(report.functions[0].name, "say\"hi\"\u{7f}\u{2028}\\");
}

#[test]
fn what_the_producer_says_is_among_the_notes_and_bounded() {
    let said = ["app: recorded by hand", "3 samples were lost"];
    let comments = |said: &[&str]| said.iter().flat_map(|comment| ["!comment ", *comment, "\n"]).collect::<String>();
    let report =
        |said: &[&str]| report_bytes(Mini::parse(&format!("cpu/ns\n{}a.rs:1 f = 1", comments(said))).gzip(), &[]);
    assert_eq!(report(&said).profile.notes, said);
    let long = "x".repeat(1023);
    assert_eq!(report(&vec![long.as_str(); 1000]).profile.notes, vec![long.as_str(); 64]);
}

#[test]
fn what_is_wrong_with_the_workspace_is_noted() {
    let mini = Mini::parse("cpu/ns\nsrc/a.rs:1 f = 1\n//- /src/a.rs\nfn f() {}\n//- /Cargo.toml\n[package\n");
    let workspace = mini.workspace();
    let (path, root) = (workspace.path().join("p.pb"), workspace.path().to_str().unwrap().to_owned());
    mini.write_to(&path);
    for more in [&[][..], &["--base", path.to_str().unwrap(), "--normalize"]] {
        let report = Run::report(&path).args(["--workspace", &root]).args(more.iter().copied()).json();
        let [note] = &report.profile.notes[..] else { panic!("{:?}", report.profile.notes) };
        assert!(note.starts_with("Cargo.toml: "), "{note}");
    }
}
