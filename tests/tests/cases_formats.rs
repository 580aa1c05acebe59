//! What OpenTelemetry's profiles and text of perf are like in the field, each case reduced to the smallest file that
//! shows it. The comments name where another tool got it wrong.

use perflens_tests::cli::{Report, Run, report_bytes};
use perflens_tests::mini::Mini;
use perflens_tests::otlp::request;
use serde_json::{Value, json};

fn report(text: &str) -> Report {
    report_bytes(text, &[])
}

fn otlp(text: &str) -> Value {
    request(&Mini::parse(text).profile, &[])
}

fn report_of(request: &Value) -> Report {
    report_bytes(request.to_string().into_bytes(), &[])
}

/// parca-dev/parca#5897
#[test]
fn attributes_that_are_not_in_the_table_are_counted_and_cost_no_sample() {
    let mut request = otlp("samples/count\n src/main.rs:10 main = 5");
    request["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]["samples"][0]["attributeIndices"] = json!([2]);
    request["dictionary"]["attributeTable"] = json!([]);
    let report = report_of(&request);
    assert_eq!(report.line_costs(), ["src/main.rs:10 5 5"]);
    assert_eq!(report.profile.notes.len(), 1, "{:?}", report.profile.notes);
    assert!(report.profile.notes[0].contains("1 attributes are not there"), "{:?}", report.profile.notes);
}

/// open-telemetry/opentelemetry-collector-contrib#49449
#[test]
fn a_text_and_a_list_of_that_text_are_one_filter_value() {
    let text = json!({ "stringValue": "123" });
    let list = json!({ "arrayValue": { "values": [text] } });
    for value in [text, list, json!({ "intValue": "123" })] {
        let mut request = otlp("samples/count\n src/main.rs:10 main = 5\n src/main.rs:20 other = 2");
        let key = request["dictionary"]["stringTable"].as_array().unwrap().len();
        request["dictionary"]["stringTable"].as_array_mut().unwrap().push(json!("thread.id"));
        let attributes = request["dictionary"]["attributeTable"].as_array_mut().unwrap();
        attributes.push(json!({ "keyStrindex": key, "value": value }));
        let attribute = attributes.len() - 1;
        let samples = &mut request["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]["samples"];
        samples[0]["attributeIndices"] = json!([attribute]);
        let report = report_bytes(request.to_string().into_bytes(), &["--filter", "thread=123"]);
        assert_eq!(report.line_costs(), ["src/main.rs:10 5 5"], "{request}");
    }
}

/// open-telemetry/opentelemetry-ebpf-profiler#1718
#[test]
fn frames_of_which_nothing_is_known_leave_their_callers_their_cost() {
    let mut request = otlp("samples/count\n src/main.rs:10 main; src/lib.rs:3 gone = 5");
    let locations = request["dictionary"]["locationTable"].as_array_mut().unwrap();
    let gone =
        locations.iter().position(|location| location["lines"][0]["line"] == "3" || location["lines"][0]["line"] == 3);
    locations[gone.expect("the leaf")] = json!({});
    let report = report_of(&request);
    assert_eq!(report.line_costs(), ["src/main.rs:10 0 5"]);
    assert_eq!(report.profile.total, 5);
    assert_eq!(report.accounting.unresolved, 5);
}

/// async-profiler/async-profiler#1742
#[test]
fn functions_without_lines_are_shown_and_why_there_are_no_lines() {
    let mut request = otlp("samples/count\n src/Main.java:10 Main.main; src/Main.java:3 Main.work = 5");
    for location in request["dictionary"]["locationTable"].as_array_mut().unwrap() {
        for line in location.get_mut("lines").and_then(Value::as_array_mut).into_iter().flatten() {
            line.as_object_mut().unwrap().remove("line");
        }
    }
    let report = report_of(&request);
    assert_eq!(report.line_costs(), [""; 0]);
    assert_eq!(report.function("Main.work").costs.flat, 5);
    assert_eq!(report.function("Main.main").costs.cumulative, 5);
    assert_eq!(report.accounting.no_line, 5);
    let words = Run::new(["explain", "-"]).stdin(request.to_string()).output();
    assert!(words.stdout.contains("No line number"), "{}", words.stdout);
}

/// brendangregg/FlameGraph#57
#[test]
fn commands_may_have_spaces() {
    let text = "CUPSManager cup 11320 186448.846888:    1008373 cycles:\n\t12 a (/bin/a)\n  a.c:3\n\n\
                DOM Worker 21528 [003] 186448.846999:    1000 cycles:\n\t12 b (/bin/a)\n  a.c:5\n\n";
    assert_eq!(report(text).line_costs(), ["a.c:3 1008373 1008373", "a.c:5 1000 1000"]);
    let of_one = report_bytes(text, &["--filter", "label.process=DOM Worker"]);
    assert_eq!(of_one.line_costs(), ["a.c:5 1000 1000"]);
}

/// brendangregg/FlameGraph#262
#[test]
fn binaries_may_have_spaces_and_names_parentheses() {
    let text = "app 1 2.0: 5 cycles:\n\t9c51fd34 java.lang.String.hashCode ([JIT app cache])\n\
                \tff (anonymous namespace)::run(int) (/a b/c (1).so)\n\n";
    let report = report(text);
    assert_eq!(report.function("java.lang.String.hashCode").costs.flat, 5);
    assert_eq!(report.function("(anonymous namespace)::run(int)").costs.cumulative, 5);
    let one = report_bytes(text, &["--filter", "bin~[JIT app cache]"]);
    assert_eq!(one.profile.total, 5);
}

/// jonhoo/inferno#168
#[test]
fn the_last_sample_counts_without_an_empty_line_behind_it() {
    let text = "app 1 2.0: 5 cycles:\n\t12 a (/bin/a)\n\napp 1 2.1: 7 cycles:\n\t12 b (/bin/a)";
    let report = report(text);
    assert_eq!((report.function("a").costs.flat, report.function("b").costs.flat), (5, 7));
    let nothing = Run::new(["report", "-"]).stdin("").output();
    assert_eq!(nothing.code, Some(1));
    assert_eq!(nothing.stderr.lines().count(), 1, "{}", nothing.stderr);
}

/// jlfwong/speedscope#336
#[test]
fn comments_among_folded_stacks_are_passed_over_and_what_is_no_stack_is_counted() {
    let report = report("# interval: 100\nmain;a 3\nmain;b 2\n# end\nmain;c 1\nmain;d\n");
    assert_eq!(report.profile.total, 6);
    assert_eq!(
        report.profile.notes,
        [
            "lines left out because they are no stacks: 1, the first is line 6",
            "no frame has a line; costs are shown for functions only"
        ]
        .map(str::to_owned)[..report.profile.notes.len()]
    );
}

/// t-troebst/perfanno.nvim#23
#[test]
fn frames_without_a_file_stand_beside_those_with_one() {
    let text = "app 1 2.0: 5 cycles:\n\t0x1231232\n\t13 __foo_bar (/bin/a)\n\t12 main (/bin/a)\n  a.c:3\n\n";
    let report = report(text);
    assert_eq!(report.line_costs(), ["a.c:3 0 5"]);
    assert_eq!(report.function("__foo_bar").costs.cumulative, 5);
    assert_eq!(report.accounting.unresolved, 5);
}

/// JuliaPerf/PProf.jl#27
#[test]
fn inlined_frames_at_one_address_are_told_apart() {
    let text = "app 1 2.0: 5 cycles:\n\t12 hot (inlined)\n  a.c:3\n\t12 warm (inlined)\n  a.c:9\n\t12 main+0x3 (/bin/app)\n  b.c:1\n\n";
    assert_eq!(report(text).line_costs(), ["a.c:3 5 5", "a.c:9 0 5", "b.c:1 0 5"]);
}

/// Files that hold several profiles, processes or threads say so, and a filter takes one of them.
#[test]
fn what_a_file_holds_several_of_is_offered_and_can_be_chosen() {
    let span = |pid: u32, name: &str, start: u32, length: u32| json!({ "name": name, "ph": "X", "pid": pid, "tid": 1, "ts": start, "dur": length, "args": { "file": "a.js", "line": 3 } });
    let named = |pid: u32, name: &str| json!({ "name": "process_name", "ph": "M", "pid": pid, "tid": 1, "args": { "name": name } });
    let trace = json!([named(7, "Browser"), named(8, "Renderer"), span(7, "a", 0, 30), span(8, "a", 0, 50)]);
    let speedscope = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": { "frames": [{ "name": "a", "file": "a.js", "line": 3 }] },
        "profiles": [
            { "type": "sampled", "name": "first", "unit": "none", "startValue": 0, "endValue": 3, "samples": [[0]], "weights": [3] },
            { "type": "sampled", "name": "second", "unit": "none", "startValue": 0, "endValue": 5, "samples": [[0]], "weights": [5] },
        ],
    });
    let resource = |service: &str, value: i64| {
        let mini = Mini::parse(&format!("samples/count\n a.js:3 a = {value}"));
        request(&mini.profile, &[("service.name", service)])
    };
    let mut otlp = resource("cart", 3);
    let more = resource("mail", 5)["resourceProfiles"][0].clone();
    otlp["resourceProfiles"].as_array_mut().unwrap().push(more);
    let firefox = |name: &str, process: &str| {
        json!({
            "name": name, "processName": process, "pid": process, "tid": 1,
            "samples": { "stack": [0], "weight": [if name == "GeckoMain" { 5 } else { 3 }], "weightType": "samples", "time": [0] },
            "stackTable": { "prefix": [null], "frame": [0] },
            "frameTable": { "address": [-1], "func": [0], "line": [3] },
            "funcTable": { "name": [0], "fileName": [1], "resource": [-1] },
            "resourceTable": { "lib": [] }, "stringArray": ["a", "a.js"],
        })
    };
    let firefox = json!({
        "meta": { "interval": 1, "preprocessedProfileVersion": 50 }, "libs": [],
        "threads": [firefox("GeckoMain", "Web Content"), firefox("Compositor", "GPU")],
    });
    let perf =
        "web 1 2.0: 3 cycles:\n\t12 a (/bin/a)\n  a.js:3\n\ncron 2 2.1: 5 cycles:\n\t12 a (/bin/a)\n  a.js:3\n\n";
    let austin = "P1;T0:1;a.js:a:3 3\nP2;T0:2;a.js:a:3 5\n";
    // Of eight.
    for (what, file, offered, filter) in [
        ("a trace", trace.to_string(), "By process: Renderer", "label.process=Browser"),
        ("speedscope", speedscope.to_string(), "By thread: second", "thread=first"),
        ("otlp", otlp.to_string(), "By service.name: mail", "label.service.name=cart"),
        ("firefox", firefox.to_string(), "By process: Web Content", "label.process=GPU"),
        ("firefox, threads", firefox.to_string(), "By thread: GeckoMain", "thread=Compositor"),
        ("perf", perf.to_owned(), "By process: cron", "label.process=web"),
        ("austin", austin.to_owned(), "By process: 2", "label.process=1"),
    ] {
        let words = Run::new(["explain", "-"]).stdin(&file).output();
        assert_eq!(words.code, Some(0), "{what}: {}", words.stderr);
        let text = words.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(offered) && text.contains("--filter"), "{what}: {text}");
        let one = report_bytes(&file, &["--filter", filter]);
        assert_eq!(one.profile.total * 8, one.profile.total_unfiltered * 3, "{what}");
    }
}

/// Tools that run in a file's folder name it by its last name alone.
#[test]
fn bare_names_are_files_of_the_workspace_where_their_functions_are() {
    let workspace = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = workspace.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        std::fs::write(path, text).expect("it can be written");
    };
    write("app.c", "int work(int n) {\n  return n * 3;\n}\n");
    let perf = "app 1 2.0: 5 cycles:\n\t12 work+0x3 (/bin/app)\n  app.c:2\n\n";
    let root = workspace.path().to_str().expect("it is text");
    let report = report_bytes(perf, &["--workspace", root]);
    assert_eq!(report.lines[0].place.workspace_file.as_deref(), Some("app.c"), "{:?}", report.lines);
    // Another one that fits as well: neither.
    write("copy/app.c", "int work(int n) {\n  return n * 3;\n}\n");
    let report = report_bytes(perf, &["--workspace", root]);
    assert_eq!(report.lines[0].place.workspace_file.as_deref(), None, "{:?}", report.lines);
}
