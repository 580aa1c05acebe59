use profiler_core::decode::DecodeErrorKind;
use profiler_core::profile::{LabelValue, Profile};
use serde_json::{Value, json};

use crate::{Costs, assert_note, bytes, error, functions, lines, oracle, profile, read};

fn file(frames: &Value, profiles: &Value) -> String {
    json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": { "frames": frames },
        "profiles": profiles,
    })
    .to_string()
}

fn frames() -> Value {
    json!([{"name": "a", "file": "a.rs", "line": 1}, {"name": "b", "file": "./a.rs", "line": 2, "col": 7}])
}

/// The text of the label `thread`, sample by sample.
fn threads(profile: &Profile) -> Vec<&str> {
    (0..profile.samples().len())
        .flat_map(|sample| profile.samples().labels(sample))
        .map(|label| match label.value {
            LabelValue::Text(text) => profile.text(text),
            LabelValue::Number(..) => panic!("a number"),
        })
        .collect()
}

#[test]
fn files_read_like_the_independent_reader_says() {
    for (name, oracle_name, scale) in [
        ("public/simple.evented.speedscope.json", "public/oracle/simple.evented.speedscope.json.json", 1.0),
        ("public/two.sampled.speedscope.json", "public/oracle/two.sampled.speedscope.json.json", 1e9),
        ("made/python/py-spy.speedscope.json", "made/oracle/py-spy.speedscope.json.json", 1e9),
    ] {
        let profile = profile(bytes(name));
        let expected = crate::json(oracle_name);
        let parts = expected["profiles"].as_array().unwrap();
        // What several profiles hold adds up.
        let sum = |key: &str| {
            let mut sum = Costs::new();
            for (name, (flat, cumulative)) in parts.iter().flat_map(|part| oracle(&part[key], scale)) {
                let row = sum.entry(name).or_default();
                *row = (row.0 + flat, row.1 + cumulative);
            }
            sum
        };
        assert_eq!(lines(&profile, 0), sum("lines"), "{name}");
        assert_eq!(functions(&profile, 0), sum("functions"), "{name}");
        let total: f64 = parts.iter().map(|part| part["total"].as_f64().unwrap() * scale).sum();
        assert_eq!(profile.sum(0).total, total.round() as i64, "{name}");
        assert_eq!(profile.notes(), [""; 0], "{name}");
    }
}

#[test]
fn profiles_become_one_with_their_names_as_threads() {
    let profile = profile(bytes("public/two.sampled.speedscope.json"));
    assert_eq!(profile.value_types().len(), 1);
    assert_eq!(profile.value_types()[0].to_string(), "time/nanoseconds");
    assert_eq!(threads(&profile), ["one", "one", "one", "one", "one", "two", "two", "two", "two", "two"]);
    assert_eq!(profile.meta().duration_ns, Some(14_000_000_000));
}

#[test]
fn each_kind_of_unit_is_a_value_type_and_the_active_one_is_first_shown() {
    let sampled = |name: &str, unit: &str, weight: f64| {
        json!({"type": "sampled", "name": name, "unit": unit, "startValue": 0, "endValue": 1,
               "samples": [[0, 1]], "weights": [weight]})
    };
    let mut value: Value = serde_json::from_str(&file(
        &frames(),
        &json!([
            sampled("t", "milliseconds", 1.5),
            sampled("m", "bytes", 10.0),
            sampled("u", "microseconds", 0.0005),
            sampled("n", "none", 2.5),
        ]),
    ))
    .unwrap();
    value["activeProfileIndex"] = json!(1);
    let profile = profile(value.to_string());
    let types: Vec<String> = profile.value_types().iter().map(ToString::to_string).collect();
    assert_eq!(types, ["time/nanoseconds", "space/bytes", "weight/count"]);
    assert_eq!(profile.meta().default_value_type, 1);
    assert_eq!(profile.samples().values(0), [1_500_000, 0, 1, 0]);
    assert_eq!(profile.samples().values(1), [0, 10, 0, 0]);
    assert_eq!(profile.samples().values(2), [0, 0, 0, 3]);
    assert_note(&profile, "values rounded to whole numbers: 1, which changed their sum by +0.500");
}

#[test]
fn an_empty_list_of_profiles_holds_0_samples() {
    let profile = profile(file(&frames(), &json!([])));
    assert_eq!(profile.samples().len(), 0);
    assert_eq!(profile.notes(), ["the profile holds 0 samples"]);
    assert_eq!(read("").unwrap_err().kind(), DecodeErrorKind::Empty);
}

#[test]
fn a_broken_profile_is_left_out_by_name_and_the_others_are_read() {
    let good = json!({"type": "sampled", "name": "good", "unit": "none", "samples": [[0, 1], [0]], "weights": [3, -1]});
    let sampled = |samples: Value, weights: Value| json!({"type": "sampled", "name": "bad", "unit": "none", "samples": samples, "weights": weights});
    let evented = |events: Value| json!({"type": "evented", "name": "bad", "unit": "none", "events": events});
    for (bad, reason) in [
        (sampled(json!([[0]]), json!([1, 2])), "it has 1 samples and 2 weights"),
        (sampled(json!([[0], [0, 2]]), json!([1, 2])), "it refers to frame 2, but there are only 2"),
        (sampled(json!([[-1]]), json!([1])), "it can't be read (invalid value: integer `-1`"),
        (sampled(json!([[0]]), json!([1e300])), "is out of range"),
        (
            evented(json!([{"type": "O", "at": 0, "frame": 0}, {"type": "C", "at": 1, "frame": 1}])),
            "its event 2 closes frame 1, which is not the last opened",
        ),
        (evented(json!([{"type": "C", "at": 1, "frame": 1}])), "its event 1 closes frame 1"),
        (
            evented(json!([{"type": "O", "at": 5, "frame": 0}, {"type": "C", "at": 4, "frame": 0}])),
            "its time runs backwards at event 2, from 5 to 4",
        ),
        (json!({"type": "tree", "name": "bad"}), "unknown variant `tree`"),
    ] {
        let profile = profile(file(&frames(), &json!([bad, good])));
        assert_eq!(lines(&profile, 0)["a.rs:2"], (3, 3), "{reason}");
        assert_eq!(profile.sum(0).net, 2, "{reason}");
        assert_note(&profile, "the profile \"bad\" was left out");
        assert_note(&profile, reason);
        let only = error(file(&frames(), &json!([bad])));
        assert!(only.contains(reason), "{only}");
    }
}

#[test]
fn frames_left_open_last_until_the_end() {
    let events = json!([{"type": "O", "at": 1, "frame": 0}, {"type": "O", "at": 2, "frame": 1}]);
    let profile = profile(file(
        &frames(),
        &json!([{"type": "evented", "name": "x", "unit": "none", "startValue": 0, "endValue": 10, "events": events}]),
    ));
    assert_eq!(lines(&profile, 0)["a.rs:2"], (8, 8));
    assert_eq!(profile.sum(0).total, 9);
    assert_note(&profile, "ends with 2 frames open");
}

#[test]
fn lines_that_are_none_are_unknown() {
    let frames = json!([
        {"name": "a", "file": "a.rs", "line": 0}, {"name": "b", "file": "a.rs", "line": -1},
        {"name": "c", "file": "a.rs", "line": 1e300}, {"name": "d", "file": null, "line": null}, {"name": "e"},
    ]);
    let profile = profile(file(
        &frames,
        &json!([{"type": "sampled", "name": "", "unit": "none", "samples": [[0, 1, 2, 3, 4]], "weights": [1]}]),
    ));
    assert!(lines(&profile, 0).is_empty());
    assert_eq!(functions(&profile, 0)["c"], (0, 1));
    assert_eq!(threads(&profile), [""; 0]);
}

#[test]
fn it_is_recognised_without_its_schema() {
    let with_schema = file(&frames(), &json!([]));
    let without = with_schema.replace("\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",", "");
    assert_ne!(with_schema, without);
    assert_eq!(profile(without).format(), "speedscope");
    assert_eq!(read("{\"nodes\": []}").unwrap_err().kind(), DecodeErrorKind::NotAProfile);
}

#[test]
fn a_file_that_is_cut_off_says_so() {
    let whole = file(&frames(), &json!([]));
    let error = read(&whole[..whole.len() - 2]).unwrap_err();
    assert_eq!(error.kind(), DecodeErrorKind::Truncated);
}
