//! The Firefox profiler's processed format, of several versions.

use profiler_core::cancel::CancelFlag;
use profiler_core::profile::Profile;
use profiler_core::symbolize::{name_by_sidecar, wants_sidecar};
use proptest::prelude::*;
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

const CODE_ID: &str = "4321abcd4321abcd4321abcd4321abcd4321abcd";
const BREAKPAD_ID: &str = "CDAB2143CDAB2143ABCD4321ABCD43210";

/// A recording of samply: three samples at three addresses of one binary, none named.
fn bare() -> Value {
    json!({
        "meta": {"interval": 1, "preprocessedProfileVersion": 50, "product": "app"},
        "libs": [{"name": "app", "path": "/build/app", "debugName": "app", "breakpadId": BREAKPAD_ID, "codeId": CODE_ID}],
        "threads": [{
            "name": "main", "pid": "7", "tid": 8,
            "samples": {"stack": [0, 1, 2], "weightType": "samples", "time": [0, 1, 2]},
            "stackTable": {"prefix": [null, null, null], "frame": [0, 1, 2]},
            "frameTable": {"address": [4100, 4120, 4200], "inlineDepth": [0, 0, 0], "func": [0, 1, 2], "line": [null, null, null]},
            "funcTable": {"name": [0, 1, 2], "resource": [0, 0, 0], "fileName": [null, null, null], "lineNumber": [null, null, null]},
            "resourceTable": {"lib": [0]},
            "stringArray": ["0x1004", "0x1018", "0x1068"],
        }],
    })
}

/// Names for them: two addresses in `work`, one of them in `hot`, which is inlined; one in `main`.
fn names() -> Value {
    let frames =
        |line: u32| json!([{"function": 2, "file": 3, "line": line + 50}, {"function": 1, "file": 3, "line": line}]);
    json!({
        "string_table": ["UNKNOWN", "work", "hot", "/src/a.c", "main"],
        "data": [{
            "debug_name": "app", "debug_id": "cdab2143-cdab-2143-abcd-4321abcd4321", "code_id": CODE_ID,
            "symbol_table": [
                {"rva": 4096, "size": 64, "symbol": 1, "frames": frames(7)},
                {"rva": 4096, "size": 64, "symbol": 1, "frames": [{"function": 1, "file": 3, "line": 9}]},
                {"rva": 4192, "size": 64, "symbol": 4, "frames": null},
            ],
            "known_addresses": [[4100, 0], [4120, 1], [4200, 2]],
        }],
    })
}

fn named(profile: &Value, beside: Option<&[u8]>) -> Profile {
    let profile = crate::profile(profile.to_string());
    assert!(wants_sidecar(&profile));
    let mut beside = beside;
    let read = beside.as_mut().map(|bytes| bytes as &mut dyn std::io::Read);
    name_by_sidecar(profile, "app.syms.json", read, &CancelFlag::new()).unwrap()
}

#[test]
fn names_beside_the_file_are_those_of_its_addresses() {
    let with = |names: &Value| named(&bare(), Some(names.to_string().as_bytes()));
    let profile = with(&names());
    assert_eq!(
        lines(&profile, 0),
        Costs::from([("/src/a.c:57".into(), (1, 1)), ("/src/a.c:7".into(), (0, 1)), ("/src/a.c:9".into(), (1, 1))])
    );
    assert_eq!(
        functions(&profile, 0),
        Costs::from([("hot".into(), (1, 1)), ("work".into(), (1, 2)), ("main".into(), (1, 1))])
    );
    assert_eq!(profile.notes(), [""; 0]);

    // The ids in their other forms.
    for (key, value) in [("code_id", json!("")), ("code_id", Value::Null), ("code_id", json!(CODE_ID.to_uppercase()))] {
        let mut other = names();
        other["data"][0][key] = value;
        let mut by_breakpad = bare();
        by_breakpad["libs"][0].as_object_mut().unwrap().remove("codeId");
        assert_eq!(functions(&named(&by_breakpad, Some(other.to_string().as_bytes())), 0)["work"], (1, 2), "{other}");
    }
}

/// Earlier versions of samply keep the lines of one address for the whole function.
#[test]
fn a_line_that_may_be_of_another_address_is_left_out() {
    let mut old = names();
    old["data"][0]["symbol_table"].as_array_mut().unwrap().remove(1);
    old["data"][0]["known_addresses"] = json!([[4100, 0], [4120, 0], [4200, 1]]);
    let profile = named(&bare(), Some(old.to_string().as_bytes()));
    assert_eq!(
        lines(&profile, 0),
        Costs::from([("/src/a.c:57".into(), (1, 1)), ("/src/a.c:7".into(), (0, 1))]),
        "the second address has no line"
    );
    assert_eq!(functions(&profile, 0)["work"], (1, 2));
}

#[test]
fn names_that_are_missing_damaged_or_of_others_are_told_and_change_nothing() {
    let text = |change: &dyn Fn(&mut Value)| {
        let mut names = names();
        change(&mut names);
        names.to_string().into_bytes()
    };
    let whole = names().to_string().into_bytes();
    let other = |names: &mut Value| {
        names["data"][0]["code_id"] = json!("00");
        names["data"][0]["debug_id"] = json!("11");
    };
    let cases: [(&str, Option<Vec<u8>>, &str); 8] = [
        ("missing", None, "there is no app.syms.json beside it"),
        ("cut", Some(whole[..whole.len() / 2].to_vec()), "damaged"),
        ("no JSON", Some(b"\x7fELF".to_vec()), "damaged"),
        ("no text", Some(vec![0xff; 9]), "it is not text"),
        ("empty", Some(Vec::new()), "damaged"),
        ("of another program", Some(text(&other)), "of other programs"),
        (
            "no texts",
            Some(text(&|names| names["string_table"] = json!([]))),
            "3 entries of app.syms.json refer to what is not in it",
        ),
        ("no entries", Some(text(&|names| names["data"][0]["symbol_table"] = json!([]))), "3 entries of app.syms.json"),
    ];
    for (what, beside, note) in cases {
        let profile = named(&bare(), beside.as_deref());
        assert!(functions(&profile, 0).is_empty(), "{what}");
        assert_eq!(profile.sum(0).total, 3, "{what}");
        assert_note(&profile, note);
        assert_eq!(profile.notes().len(), 1, "{what}: {:?}", profile.notes());
    }
}

#[test]
fn names_take_no_more_memory_than_there_is_for_them() {
    let mut large = names();
    let place = json!({"function": 1, "file": 3, "line": 7});
    large["data"][0]["symbol_table"][0]["frames"] = vec![place; 100_000].into();
    let profile = named(&bare(), Some(large.to_string().as_bytes()));
    let locations = profile.locations();
    assert!(locations.ids().all(|id| locations.lines(id).len() <= 256));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_names_are_taken_or_told(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6)) {
        let mut bytes = names().to_string().into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        prop_assert_eq!(named(&bare(), Some(&bytes)).sum(0).total, 3);
    }
}
