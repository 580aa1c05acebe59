//! The Firefox profiler's processed format, of several versions.

use serde_json::{Value, json};

use crate::{Costs, assert_note, bytes, error, functions, labels, lines, profile, types};

#[test]
fn a_recording_of_samply_reads_like_the_independent_reader_says() {
    let profile = profile(bytes("public/ls.samply.json"));
    let expected = crate::json("public/oracle/ls.samply.json.json");
    let weight: i64 = expected["threads"].as_array().unwrap().iter().map(|t| t["weight_total"].as_i64().unwrap()).sum();
    assert_eq!(profile.sum(0).total, weight);
    let binaries: Vec<(&str, &str)> = profile
        .mappings()
        .iter()
        .skip(1)
        .map(|mapping| (profile.text(mapping.file), profile.text(mapping.build_id)))
        .collect();
    for (lib, (path, id)) in expected["libs"].as_array().unwrap().iter().zip(&binaries) {
        let name = lib[0].as_str().unwrap().trim_matches(['[', ']']);
        assert!(path.contains(name), "{path}");
        assert_eq!(*id, lib[2].as_str().or(lib[1].as_str()).unwrap());
    }
    // Not symbolised: every frame is an address in a binary.
    assert!(functions(&profile, 0).is_empty());
    let locations = profile.locations();
    assert!(locations.ids().all(|id| locations.address(id) != 0 && !locations.mapping(id).is_none()));
    assert_eq!(labels(&profile, 0), ["process=ls", "thread=GeckoMain", "pid=18693", "tid=18693"]);
    assert_eq!(profile.meta().period, 250_000);
}

/// main.js:2 `main` calls what is inlined, `hot` (main.js:9) in `warm` (main.js:5).
fn tables() -> Value {
    json!({
        "stackTable": {"prefix": [null, 0, 1], "frame": [0, 1, 2]},
        "frameTable": {"address": [-1, 64, 64], "inlineDepth": [0, 0, 1], "func": [0, 1, 2], "line": [2, 5, 9], "column": [1, null, 3]},
        "funcTable": {"name": [1, 2, 3], "resource": [-1, -1, -1], "fileName": [4, 4, 4], "lineNumber": [1, 4, 8], "columnNumber": [1, 1, 1]},
        "resourceTable": {"lib": []},
        "stringArray": ["", "main", "warm", "hot", "main.js"],
    })
}

fn merge(mut into: Value, from: &Value) -> Value {
    for (key, value) in from.as_object().unwrap() {
        into[key] = value.clone();
    }
    into
}

fn samples(weights: Value, kind: &str) -> Value {
    json!({"stack": [2, 0, null], "weight": weights, "weightType": kind, "time": [1.0, 2.0, 4.5]})
}

#[test]
fn tables_are_found_where_each_version_has_them() {
    let thread = json!({"name": "T", "pid": "5", "tid": 6, "processName": "app", "samples": samples(json!([3, 2, 1]), "samples")});
    let meta = |version: u32| json!({"interval": 1, "startTime": 1000.5, "preprocessedProfileVersion": version, "product": "x"});
    let old = json!({"meta": meta(41), "libs": [], "threads": [merge(thread.clone(), &tables())]});
    let mut shared = tables();
    shared["stackTable"] = json!({"prefixOffset": [0, 1, 1], "frame": [0, 1, 2]});
    shared["funcTable"] = json!({"name": [1, 2, 3], "source": [0, 0, 0], "lineNumber": [1, 4, 8]});
    shared["sources"] = json!({"filename": [4]});
    let new = json!({"meta": meta(67), "libs": [], "shared": shared, "threads": [thread]});
    for file in [old, new] {
        let profile = profile(file.to_string());
        assert_eq!(
            lines(&profile, 0),
            Costs::from([("main.js:2".into(), (2, 5)), ("main.js:5".into(), (0, 3)), ("main.js:9".into(), (3, 3))])
        );
        assert_eq!(profile.sum(0).total, 6);
        assert_eq!(labels(&profile, 0), ["process=app", "thread=T", "pid=5", "tid=6"]);
        // The inlined call is part of the location it is inlined into.
        assert_eq!(profile.samples().stack(0).len(), 2);
        assert_eq!(profile.meta().duration_ns, Some(3_500_000));
        assert_eq!(profile.meta().time_ns, Some(1_000_500_000));
        assert_eq!(profile.notes(), [""; 0]);
    }
}

/// A file for tests that break it.
pub(crate) fn small() -> Vec<u8> {
    let thread = merge(json!({"name": "T", "samples": samples(json!([3, 2, 1]), "samples")}), &tables());
    json!({"meta": {"interval": 1, "preprocessedProfileVersion": 50}, "libs": [], "threads": [thread]})
        .to_string()
        .into_bytes()
}

#[test]
fn each_kind_of_weight_is_a_value_type() {
    let thread = |kind: &str| merge(json!({"name": kind, "samples": samples(json!([0.5, 2, 1]), kind)}), &tables());
    let file = json!({"meta": {"interval": 1, "preprocessedProfileVersion": 50}, "threads": [thread("tracing-ms"), thread("bytes")]});
    let profile = profile(file.to_string());
    assert_eq!(types(&profile), ["time/nanoseconds", "space/bytes"]);
    assert_eq!(profile.sum(0).total, 3_500_000);
    assert_eq!(profile.sum(1).total, 4);
}

#[test]
fn raw_profiles_are_refused_with_advice() {
    let refused = error(json!({"meta": {"interval": 1, "version": 30}, "libs": [], "threads": []}).to_string());
    assert!(refused.contains("raw profile of Gecko"), "{refused}");
}

#[test]
fn indexes_that_lead_nowhere_are_unresolved_frames() {
    let mut broken = tables();
    broken["stackTable"]["frame"] = json!([0, 77]);
    broken["stackTable"]["prefix"] = json!([null, 1, 0]);
    let thread = merge(json!({"name": "T", "samples": samples(json!([3, 2, 1]), "samples")}), &broken);
    let file = json!({"meta": {"interval": 1, "preprocessedProfileVersion": 50}, "threads": [thread]});
    let profile = profile(file.to_string());
    assert_eq!(profile.sum(0).total, 6);
    assert_note(&profile, "frames or stacks are not there");
}
