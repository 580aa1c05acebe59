//! CPU and heap profiles of V8, and Chrome's traces.

use profiler_core::decode::DecodeErrorKind;
use profiler_core::profile::LineDetail;
use serde_json::{Value, json};

use crate::{Costs, assert_note, bytes, error, functions, labels, lines, profile, read, types};

/// A path of the oracle as it is after cleaning; `None` for what is no file.
fn file(url: &str) -> Option<&str> {
    let path = url.strip_prefix("file://").unwrap_or(url);
    (!path.is_empty() && !path.starts_with("node:")).then_some(path)
}

#[test]
fn ticks_of_lines_are_those_of_the_file() {
    for name in ["made/node/bundle.cpuprofile", "made/node/minified.cpuprofile", "public/chrome65.cpuprofile"] {
        let profile = profile(bytes(name));
        let oracle = name.replace("made/node/", "made/oracle/").replace("public/", "public/oracle/");
        let expected = crate::json(&format!("{oracle}.json"));
        let ours = lines(&profile, 0);
        let mut listed = 0;
        for row in expected["line_ticks"].as_array().unwrap() {
            let Some(file) = file(row[0].as_str().unwrap()) else { continue };
            let ticks = row[2].as_i64().unwrap();
            // A caller's line is unknown, so a line costs what ends there and nothing else.
            assert_eq!(ours[&format!("{file}:{}", row[1])], (ticks, ticks), "{name}: {row}");
            listed += 1;
        }
        assert_eq!(ours.len(), listed, "{name}");
        assert_eq!(profile.sum(0).total, expected["hit_count_sum"].as_i64().unwrap(), "{name}");
        let span = expected["span_us"].as_i64().unwrap();
        assert_eq!(profile.meta().duration_ns, Some(span * 1000), "{name}");
        assert_eq!(profile.meta().line_detail, LineDetail::LeafOnly, "{name}");
        assert_note(&profile, "self only for lines");
    }
}

#[test]
fn functions_have_a_cost_with_calls() {
    let profile = profile(bytes("public/chrome65.cpuprofile"));
    // `d` is called by `b` and by `c`, 14 times each.
    let functions = functions(&profile, 0);
    assert_eq!(functions["d"], (28, 28));
    assert_eq!(functions["a"], (0, 28));
    assert_eq!(functions["b"], (0, 14));
}

#[test]
fn the_older_form_is_a_tree_of_functions() {
    let node = |name: &str, line: i64, hits: i64, children: Value, ticks: Value| {
        json!({"functionName": name, "url": "/srv/app.js", "lineNumber": line, "hitCount": hits, "id": line,
               "children": children, "lineTicks": ticks})
    };
    let leaf = node("leaf", 7, 3, json!([]), json!([{"line": 8, "hitCount": 2}]));
    let main = node("main", 2, 1, json!([leaf]), Value::Null);
    let file = json!({"typeId": "CPU", "head": node("(root)", 0, 0, json!([main]), Value::Null),
                      "startTime": 10, "endTime": 12, "samples": [2, 7, 7, 7]});
    let profile = profile(file.to_string());
    assert_eq!(lines(&profile, 0), Costs::from([("/srv/app.js:8".into(), (2, 2))]));
    assert_eq!(functions(&profile, 0)["main"], (1, 4));
    assert_eq!(profile.meta().duration_ns, Some(2_000_000_000));
    let leaf = profile.functions().iter().find(|function| profile.text(function.name) == "leaf").unwrap();
    assert_eq!(leaf.start_line.0, 7);
}

#[test]
fn trees_may_be_as_deep_as_a_stack() {
    let open = |depth: u32| {
        format!(
            "{{\"callFrame\":{{\"functionName\":\"f{depth}\",\"url\":\"a.js\",\"lineNumber\":{depth}}},\"selfSize\":1,\"children\":["
        )
    };
    let nodes: Vec<String> = (0..3_000).map(open).collect();
    let file = format!("{{\"head\":{}{}}}", nodes.concat(), "]}".repeat(3_000));
    let whole = profile(&file);
    assert_eq!(functions(&whole, 0)["f0"], (1, 3_000));
}

#[test]
fn nodes_that_call_each_other_in_a_circle_end_somewhere() {
    let node = |id: i64, child: i64| {
        json!({"id": id, "callFrame": {"functionName": format!("f{id}"), "url": "a.js", "lineNumber": 1}, "hitCount": 1,
               "children": [child]})
    };
    let file = json!({"nodes": [node(1, 2), node(2, 3), node(3, 1)], "startTime": 0, "endTime": 3});
    assert_eq!(profile(file.to_string()).sum(0).total, 3);
}

#[test]
fn heaps_are_the_sizes_of_the_tree() {
    for (name, oracle) in [
        ("made/node/bundle.heapprofile", "made/oracle/bundle.heapprofile.json"),
        ("public/node10.heapprofile", "public/oracle/node10.heapprofile.json"),
    ] {
        let profile = profile(bytes(name));
        let expected = crate::json(oracle);
        assert_eq!(profile.sum(0).total, expected["self_size_sum"].as_i64().unwrap(), "{name}");
        assert_eq!(types(&profile), ["inuse_space/bytes"]);
        assert!(lines(&profile, 0).is_empty(), "{name}");
        assert_note(&profile, "function level");
        let ours = functions(&profile, 0);
        for row in expected["top"].as_array().unwrap() {
            let function = row[0].as_str().unwrap();
            // Nameless functions are many.
            if !function.is_empty() {
                assert!(ours[function].0 >= row[3].as_i64().unwrap(), "{name}: {row}");
            }
        }
    }
}

#[test]
fn idle_time_is_named_so_that_it_can_be_left_out() {
    let node = |id: i64, name: &str| json!({"id": id, "callFrame": {"functionName": name, "url": "", "lineNumber": -1}, "hitCount": 4});
    let file = json!({"nodes": [node(1, "(idle)"), node(2, "(program)")], "startTime": 0, "endTime": 3});
    assert_note(&profile(file.to_string()), "4 samples are of an idle engine");
}

#[test]
fn traces_with_cpu_profiles_are_read_as_those() {
    let frame = |name: &str, line: i64| json!({"functionName": name, "url": "https://app.test/main.js", "lineNumber": line, "columnNumber": 2});
    let chunk = |nodes: Value, samples: Value, deltas: Value, lines: Value| {
        json!({"ph": "P", "name": "ProfileChunk", "id": "0x1", "pid": 7, "tid": 9, "ts": 2,
               "args": {"data": {"cpuProfile": {"nodes": nodes, "samples": samples}, "timeDeltas": deltas, "lines": lines}}})
    };
    let events = json!([
        {"ph": "M", "name": "thread_name", "pid": 7, "tid": 8, "args": {"name": "CrRendererMain"}},
        {"ph": "P", "name": "Profile", "id": "0x1", "pid": 7, "tid": 8, "ts": 1, "args": {"data": {"startTime": 1}}},
        chunk(json!([{"id": 1, "callFrame": {"functionName": "(root)"}}, {"id": 2, "parent": 1, "callFrame": frame("main", 3)}]),
              json!([2, 2]), json!([1000, 1000]), json!([5, 5])),
        chunk(json!([{"id": 3, "parent": 2, "callFrame": frame("work", 9)}]), json!([3, 2]), json!([1000, 1000]), json!([11, 0])),
        {"ph": "X", "name": "RunTask", "pid": 7, "tid": 8, "ts": 1, "dur": 10},
    ]);
    for file in [events.to_string(), json!({"traceEvents": events, "metadata": {}}).to_string()] {
        let profile = profile(&file);
        assert_eq!(profile.format(), "chrome-trace");
        assert_eq!(profile.samples().values(0).iter().sum::<i64>(), 4);
        assert_eq!(functions(&profile, 0)["main"], (3, 4));
        let lines = lines(&profile, 0);
        let cost = |line: &str| lines.iter().find(|(key, _)| key.ends_with(line)).map(|(_, cost)| *cost);
        assert_eq!((cost("main.js:5"), cost("main.js:11")), (Some((2, 2)), Some((1, 1))), "{lines:?}");
        assert_eq!(labels(&profile, 0), ["process=7", "thread=CrRendererMain"]);
        assert_eq!(profile.meta().period, 1_000_000);
    }
    // Chrome writes the end of the list when the trace is stopped properly.
    let cut = profile(events.to_string().trim_end_matches(']'));
    assert_eq!(cut.sum(0).total, 4);
    assert_note(&cut, "the file is incomplete");
}

/// A trace for tests that break it.
pub(crate) fn small_trace() -> Vec<u8> {
    json!([
        {"ph": "P", "name": "Profile", "id": "0x1", "pid": 7, "tid": 8, "ts": 1, "args": {"data": {"startTime": 1}}},
        {"ph": "P", "name": "ProfileChunk", "id": "0x1", "pid": 7, "tid": 9, "ts": 2, "args": {"data": {
            "cpuProfile": {"nodes": [{"id": 1, "callFrame": {"functionName": "f", "url": "a.js", "lineNumber": 1}},
                                     {"id": 2, "parent": 1, "callFrame": {"functionName": "g", "url": "a.js", "lineNumber": 4}}],
                           "samples": [1, 2, 2]}, "timeDeltas": [5, 5, 5], "lines": [2, 6, 6]}}},
        {"ph": "X", "name": "task", "pid": 7, "tid": 8, "ts": 1, "dur": 10},
    ])
    .to_string()
    .into_bytes()
}

#[test]
fn traces_of_spans_are_stacks_over_time() {
    let event = |ph: &str, name: &str, ts: f64, dur: f64| json!({"ph": ph, "name": name, "pid": 1, "tid": "main", "ts": ts, "dur": dur, "args": {"filename": "a.py", "line": 3}});
    let pairs = json!([
        event("B", "outer", 0.0, 0.0),
        event("B", "inner", 2.0, 0.0),
        event("E", "", 5.0, 0.0),
        event("E", "", 9.0, 0.0)
    ]);
    // Complete events are written when they end, so callees come first.
    let complete = json!([event("X", "inner", 2.0, 3.0), event("X", "outer", 0.0, 9.0), event("X", "same", 0.0, 9.0)]);
    let read = profile(pairs.to_string());
    assert_eq!(types(&read), ["time/nanoseconds"]);
    assert_eq!(functions(&read, 0), Costs::from([("inner".into(), (3000, 3000)), ("outer".into(), (6000, 9000))]));
    assert_eq!(lines(&read, 0), Costs::from([("a.py:3".into(), (9000, 9000))]));
    let read = profile(complete.to_string());
    assert_eq!(functions(&read, 0)["inner"], (3000, 3000));
    assert_eq!(functions(&read, 0)["outer"].1, 9000);
    assert_eq!(functions(&read, 0)["same"].1, 9000);
}

#[test]
fn py_spys_trace_is_read_with_lines() {
    let profile = profile(bytes("made/python/py-spy.chrometrace.json"));
    let lines = lines(&profile, 0);
    let main = lines["/home/dev/src/py/demo.py:38"];
    assert_eq!(main, (0, profile.sum(0).total));
    assert!(lines["/home/dev/src/py/demo.py:14"].0 > 0);
    assert_eq!(profile.notes(), [""; 0]);
}

#[test]
fn json_of_other_kinds_is_refused() {
    for file in ["{\"nodes\": []}", "{\"traceEvents\": []}", "[{\"ph\":\"M\",\"ts\":1,\"pid\":1}]", "[1,2]"] {
        assert_eq!(read(file).unwrap_err().kind(), DecodeErrorKind::NotAProfile, "{file}");
    }
    assert!(error("{\"head\":{\"callFrame\":{\"functionName\":\"a\"},\"selfSize\":1").contains("ends in the middle"));
}
