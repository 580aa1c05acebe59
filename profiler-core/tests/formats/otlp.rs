//! OpenTelemetry's profiles, of every version and in every frame.

use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, any_value::Value as Any};
use opentelemetry_proto::tonic::profiles::v1development::{
    Function, KeyValueAndUnit, Line, Location, Mapping, Profile as Message, ProfilesData, ProfilesDictionary,
    ResourceProfiles, Sample, ScopeProfiles, Stack, ValueType,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use profiler_core::cancel::CancelFlag;
use profiler_core::decode::{DecodeErrorKind, Limits, OtlpEncoding, decode_otlp_request};
use profiler_core::profile::{Profile, combine::combine};
use prost::Message as _;

use crate::{Costs, assert_note, bytes, error, functions, json, labels, lines, oracle, profile, read, types};

fn request(bytes: &[u8]) -> Vec<Profile> {
    decode_otlp_request(bytes, OtlpEncoding::Protobuf, &Limits::default(), &CancelFlag::new()).unwrap()
}

#[test]
fn every_version_of_the_same_profile_reads_like_the_pprof_it_was_made_of() {
    let original = profile(bytes("go/profiles/cpu.pb.gz"));
    let cpu = original.find_value_type("cpu").unwrap();
    for version in ["1.7", "1.8", "1.9", "1.10"] {
        let profile = profile(bytes(&format!("otlp/cpu.v{version}.otlp.pb")));
        let selected = profile.find_value_type("cpu").unwrap();
        assert_eq!(profile.format(), "otlp");
        assert_eq!(lines(&profile, selected), lines(&original, cpu), "{version}");
        assert_eq!(functions(&profile, selected), functions(&original, cpu), "{version}");
        assert_eq!(profile.sum(selected), original.sum(cpu), "{version}");
        assert_eq!(profile.meta().time_ns, original.meta().time_ns, "{version}");
        assert_eq!(profile.meta().duration_ns, original.meta().duration_ns, "{version}");
        assert_eq!(profile.meta().period, 10_000_000, "{version}");
        assert_eq!(profile.notes(), [""; 0], "{version}");
        assert!((0..profile.samples().len()).any(|sample| labels(&profile, sample).contains(&"phase=main".to_owned())));
        assert!(labels(&profile, 0).contains(&"service.name=demo".to_owned()), "{:?}", labels(&profile, 0));
    }
}

#[test]
fn values_are_told_from_attributes_where_samples_have_only_two_fields() {
    let profile = profile(bytes("otlp/mutex.v1.9.otlp.pb"));
    let original = crate::profile(bytes("go/profiles/mutex.pb.gz"));
    let delay = original.find_value_type("delay").unwrap();
    assert_eq!(profile.sum(0), original.sum(delay));
    assert_eq!(lines(&profile, 0), lines(&original, delay));
}

#[test]
fn recordings_of_whole_machines_read_like_the_independent_reader_says() {
    for (name, requests) in [("profile.otlp", 1), ("k8s.otlp", 2)] {
        let profile = profile(bytes(&format!("public/{name}")));
        let expected = json(&format!("public/oracle/{name}.json"));
        let expected = expected.as_array().unwrap();
        assert_eq!(expected.len(), requests);
        let profiles = expected.iter().flat_map(|request| request["profiles"].as_array().unwrap());
        let total: i64 = profiles.clone().map(|part| part["totals"][0].as_i64().unwrap()).sum();
        assert_eq!(profile.sum(0).total, total, "{name}");
        let samples: i64 = profiles.clone().map(|part| part["samples"].as_i64().unwrap()).sum();
        assert_eq!(profile.samples().len() as i64, samples, "{name}");
        // The oracle lists the costliest lines of each process, so a line may cost more in all.
        let ours = lines(&profile, 0);
        let mut listed = Costs::new();
        for (line, (flat, cumulative)) in profiles.flat_map(|part| oracle(&part["lines"], 1.0)) {
            let row = listed.entry(line).or_default();
            *row = (row.0 + flat, row.1 + cumulative);
        }
        let mut compared = 0;
        for (line, (flat, cumulative)) in &listed {
            let is_source = !line.starts_with('<') && !line.ends_with(":0");
            if !is_source {
                continue;
            }
            let line = line.strip_prefix("file://").unwrap_or(line);
            let row = ours.get(line).unwrap_or_else(|| panic!("{name}: no {line}"));
            assert!(row.0 >= *flat && row.1 >= *cumulative, "{name}: {line} {row:?} {flat} {cumulative}");
            compared += usize::from(*row == (*flat, *cumulative));
        }
        assert!(compared * 2 > listed.len(), "{name}: {compared} of {} are equal", listed.len());
    }
}

/// A request with one stack `leaf (a.rs:3) < main (a.rs:1)`, and samples made by the test.
fn data(profiles: Vec<Message>) -> ProfilesData {
    let strings = ["", "leaf", "main", "a.rs", "cpu", "nanoseconds", "samples", "count", "thread.id", "demo", "app"];
    let location = |function_index, line| Location {
        mapping_index: 1,
        lines: vec![Line { function_index, line, column: 0 }],
        ..Location::default()
    };
    let function = |name_strindex| Function { name_strindex, filename_strindex: 3, ..Function::default() };
    let attribute =
        |value| KeyValueAndUnit { key_strindex: 8, value: Some(AnyValue { value: Some(value) }), unit_strindex: 0 };
    let thread = |text: &str| Any::StringValue(text.to_owned());
    let array = Any::ArrayValue(ArrayValue { values: vec![AnyValue { value: Some(thread("123")) }] });
    let dictionary = ProfilesDictionary {
        mapping_table: vec![Mapping::default(), Mapping { filename_strindex: 10, ..Mapping::default() }],
        location_table: vec![Location::default(), location(1, 3), location(2, 1), Location::default()],
        function_table: vec![Function::default(), function(1), function(2)],
        string_table: strings.iter().map(|&text| text.to_owned()).collect(),
        attribute_table: vec![KeyValueAndUnit::default(), attribute(thread("123")), attribute(array)],
        stack_table: vec![
            Stack::default(),
            Stack { location_indices: vec![1, 2] },
            Stack { location_indices: vec![3, 2] },
            Stack { location_indices: vec![99, -1, 2] },
        ],
        ..ProfilesDictionary::default()
    };
    // Since 1.10 keys and texts may be rows of the table.
    let key_value = KeyValue {
        key: String::new(),
        value: Some(AnyValue { value: Some(Any::StringValueStrindex(9)) }),
        key_strindex: 10,
    };
    let secret = KeyValue {
        key: "process.environment_variable.TOKEN".to_owned(),
        value: Some(AnyValue { value: Some(Any::StringValue("secret".to_owned())) }),
        key_strindex: 0,
    };
    let resource = Resource { attributes: vec![key_value, secret], ..Resource::default() };
    let scope = ScopeProfiles { profiles, ..ScopeProfiles::default() };
    let resource =
        ResourceProfiles { resource: Some(resource), scope_profiles: vec![scope], ..ResourceProfiles::default() };
    ProfilesData { resource_profiles: vec![resource], dictionary: Some(dictionary) }
}

fn message(kind: (i32, i32), samples: Vec<Sample>) -> Message {
    Message {
        sample_type: Some(ValueType { type_strindex: kind.0, unit_strindex: kind.1 }),
        samples,
        time_unix_nano: 1_000,
        duration_nano: 10,
        profile_id: vec![7; 16],
        ..Message::default()
    }
}

const CPU: (i32, i32) = (4, 5);
const SAMPLES: (i32, i32) = (6, 7);

fn sample(stack_index: i32, values: &[i64], times: usize, attribute: i32) -> Sample {
    Sample {
        stack_index,
        attribute_indices: vec![attribute],
        values: values.to_vec(),
        timestamps_unix_nano: vec![1; times],
        ..Sample::default()
    }
}

/// A request for tests that break it.
pub(crate) fn small() -> Vec<u8> {
    data(vec![message(SAMPLES, vec![sample(1, &[5], 0, 1), sample(3, &[], 2, 2)])]).encode_to_vec()
}

/// The same of version 1.7, by hand: a list of locations, and ranges of it.
pub(crate) fn small_17() -> Vec<u8> {
    let field = |number: u8, body: &[u8]| [&[number << 3 | 2, u8::try_from(body.len()).unwrap()], body].concat();
    let sample = field(2, &[8, 1, 16, 2, 26, 1, 5, 34, 1, 1]);
    let profile = field(2, &[field(1, &[8, 6, 16, 7]), sample, field(3, &[0, 1, 2])].concat());
    let dictionary = data(Vec::new()).dictionary.unwrap();
    let mut old =
        ProfilesDictionary { attribute_table: Vec::new(), stack_table: Vec::new(), ..dictionary }.encode_to_vec();
    old.extend(field(6, &[]));
    old.extend(field(6, &[field(1, b"thread.id"), field(2, &field(1, b"123"))].concat()));
    let mut request = field(1, &field(2, &profile));
    request.extend([2 << 3 | 2, u8::try_from(old.len() & 0x7f).unwrap() | 0x80, u8::try_from(old.len() >> 7).unwrap()]);
    request.extend(old);
    request
}

#[test]
fn ranges_of_locations_are_stacks() {
    let profile = &request(&small_17())[0];
    assert_eq!(lines(profile, 0), Costs::from([("a.rs:1".into(), (0, 5)), ("a.rs:3".into(), (5, 5))]));
    assert_eq!(labels(profile, 0), ["thread.id=123"]);
}

#[test]
fn values_times_or_both_are_the_value_of_a_sample() {
    let samples = vec![sample(1, &[5], 0, 1), sample(1, &[], 3, 1), sample(1, &[7, 8], 2, 1)];
    let profiles = request(&data(vec![message(SAMPLES, samples)]).encode_to_vec());
    assert_eq!(profiles.len(), 1);
    assert_eq!(profiles[0].samples().values(0), [5, 3, 15]);
    assert_eq!(lines(&profiles[0], 0), Costs::from([("a.rs:1".into(), (0, 23)), ("a.rs:3".into(), (23, 23))]));
}

#[test]
fn texts_in_lists_of_one_are_texts_and_environments_are_left_out() {
    let samples = vec![sample(1, &[5], 1, 1), sample(1, &[6], 1, 2)];
    let profile = &request(&data(vec![message(SAMPLES, samples)]).encode_to_vec())[0];
    assert_eq!(labels(profile, 0), ["app=demo", "thread.id=123"]);
    assert_eq!(labels(profile, 1), ["app=demo", "thread.id=123"]);
    assert_eq!(profile.notes(), [""; 0]);
}

#[test]
fn frames_that_are_missing_or_unknown_leave_their_callers_their_cost() {
    let samples = vec![sample(2, &[5], 1, 0), sample(3, &[6], 1, 9), sample(77, &[1], 1, 0)];
    let profile = &request(&data(vec![message(SAMPLES, samples)]).encode_to_vec())[0];
    assert_eq!(lines(profile, 0), Costs::from([("a.rs:1".into(), (0, 11))]));
    assert_eq!(profile.sum(0).total, 12);
    for note in ["1 samples refer to stacks", "2 frames refer to locations", "1 attributes are not there"] {
        assert_note(profile, note);
    }
}

#[test]
fn one_profile_per_value_type_becomes_one_again_if_the_samples_are_the_same() {
    let with = |values: [i64; 2]| vec![sample(1, &values[..1], 0, 1), sample(2, &values[1..], 0, 2)];
    let counts = message(SAMPLES, with([2, 3]));
    let profiles = request(&data(vec![counts.clone(), message(CPU, with([20, 30]))]).encode_to_vec());
    assert_eq!(profiles.len(), 1);
    assert_eq!(types(&profiles[0]), ["samples/count", "cpu/nanoseconds"]);
    assert_eq!(profiles[0].samples().len(), 2);
    // Other samples are other profiles, which a file shows side by side.
    let apart = data(vec![counts, message(CPU, vec![sample(1, &[20], 0, 1)])]).encode_to_vec();
    assert_eq!(request(&apart).len(), 2);
    let both = profile(&apart);
    assert_eq!(both.value_types().len(), 2);
    assert_eq!((both.sum(0).total, both.sum(1).total), (5, 20));
}

#[test]
fn a_window_of_requests_is_one_profile() {
    let of = |value, time| {
        let mut message = message(SAMPLES, vec![sample(1, &[value], 0, 1)]);
        message.time_unix_nano = time;
        request(&data(vec![message]).encode_to_vec()).remove(0)
    };
    let window = [of(1, 1_000), of(2, 1_010), of(4, 1_020)];
    let merged = combine("otlp", &window).unwrap();
    assert_eq!(lines(&merged, 0), Costs::from([("a.rs:1".into(), (0, 7)), ("a.rs:3".into(), (7, 7))]));
    assert_eq!((merged.meta().time_ns, merged.meta().duration_ns), (Some(1_000), Some(30)));
    assert_eq!(merged.mappings().len(), 2);
    // As time goes on the first falls out.
    assert_eq!(combine("otlp", &window[1..]).unwrap().sum(0).total, 6);
}

#[test]
fn the_original_is_read_where_the_request_lost_the_lines() {
    let mut empty = message(SAMPLES, Vec::new());
    empty.original_payload_format = "pprof".to_owned();
    empty.original_payload = bytes("go/profiles/cpu.pb.gz");
    let profiles = request(&data(vec![empty.clone()]).encode_to_vec());
    assert_eq!(profiles.len(), 1);
    assert_eq!(profiles[0].sum(1).total, 1_860_000_000);
    empty.samples = vec![sample(1, &[5], 0, 1)];
    assert_eq!(request(&data(vec![empty.clone()]).encode_to_vec())[0].sum(0).total, 5);
    empty.samples = vec![sample(2, &[5], 0, 0)];
    empty.original_payload.truncate(50);
    let mut no_lines = data(vec![empty]);
    no_lines.dictionary.as_mut().unwrap().location_table[2].lines.clear();
    let profile = &request(&no_lines.encode_to_vec())[0];
    assert_eq!(profile.sum(0).total, 5);
    assert_note(profile, "the original profile inside can't be read");
}

/// What the collector's exporter makes of messages.
fn framed(messages: &[Vec<u8>]) -> Vec<u8> {
    messages
        .iter()
        .flat_map(|message| [&u32::try_from(message.len()).unwrap().to_be_bytes()[..], message].concat())
        .collect()
}

#[test]
fn files_of_the_collector_are_read_in_all_their_forms() {
    let of = |value| data(vec![message(SAMPLES, vec![sample(1, &[value], 0, 1)])]).encode_to_vec();
    let messages = [of(2), of(3)];
    let zstd = |message: &Vec<u8>| {
        ruzstd::encoding::compress_to_vec(&message[..], ruzstd::encoding::CompressionLevel::Fastest)
    };
    let compressed: Vec<Vec<u8>> = messages.iter().map(zstd).collect();
    let text = |value: i64| {
        serde_json::json!({
            "resourceProfiles": [{"resource": {"attributes": [{"key": "app", "value": {"stringValue": "demo"}}]},
              "scopeProfiles": [{"scope": {}, "profiles": [{
                "sampleType": {"typeStrindex": 1, "unitStrindex": 2}, "timeUnixNano": "1000", "durationNano": "10",
                "samples": [{"stackIndex": 1, "values": [value.to_string()], "attributeIndices": [1]}]}]}]}],
            "dictionary": {
              "mappingTable": [{}], "linkTable": [{}], "functionTable": [{}, {"nameStrindex": 3, "filenameStrindex": 4}],
              "stringTable": ["", "samples", "count", "leaf", "a.rs", "thread.id"],
              "locationTable": [{}, {"address": "4096", "lines": [{"functionIndex": 1, "line": "3"}]}],
              "attributeTable": [{}, {"keyStrindex": 5, "value": {"intValue": "7"}}],
              "stackTable": [{}, {"locationIndices": [1]}]},
        })
        .to_string()
    };
    let json = format!("{}\n{}\n", text(2), text(3));
    for (what, file) in [
        ("framed", framed(&messages)),
        ("framed, each compressed", framed(&compressed)),
        ("lines of JSON", json.clone().into_bytes()),
        ("framed JSON", framed(&[text(2).into_bytes(), text(3).into_bytes()])),
        ("all compressed", zstd(&framed(&messages))),
    ] {
        let profile = profile(&file);
        assert_eq!(profile.format(), "otlp", "{what}");
        assert_eq!(profile.samples().values(0), [2, 3], "{what}");
        assert_eq!(lines(&profile, 0)["a.rs:3"], (5, 5), "{what}");
        assert!(labels(&profile, 0)[0] == "app=demo", "{what}: {:?}", labels(&profile, 0));
    }
    let alone = decode_otlp_request(text(4).as_bytes(), OtlpEncoding::Json, &Limits::default(), &CancelFlag::new());
    assert_eq!(alone.unwrap()[0].samples().values(0), [4]);
    // A file that is still being written.
    let mut cut = framed(&messages);
    cut.truncate(cut.len() - 5);
    assert_eq!(profile(&cut).samples().values(0), [2]);
    assert_note(&profile(&cut), "the file is incomplete");
    let cut = profile(&json[..json.len() - 20]);
    assert_eq!(cut.samples().values(0), [2]);
    assert_note(&cut, "the file is incomplete");
}

#[test]
fn texts_that_are_not_utf8_are_repaired() {
    let request_bytes = data(vec![message(SAMPLES, vec![sample(1, &[5], 0, 1)])]).encode_to_vec();
    let at = request_bytes.windows(4).position(|window| window == b"leaf").unwrap();
    let mut broken = request_bytes;
    broken[at] = 0xff;
    assert!(functions(&request(&broken)[0], 0).contains_key("\u{fffd}eaf"));
}

#[test]
fn requests_of_nothing_but_empty_messages_are_refused() {
    let mut many = data(vec![message(SAMPLES, vec![Sample::default(); 300_000])]);
    let refused = read(many.encode_to_vec()).unwrap_err();
    assert_eq!(refused.kind(), DecodeErrorKind::Limit, "{refused}");
    many.resource_profiles[0].scope_profiles[0].profiles.clear();
    assert!(error(many.encode_to_vec()).contains("it holds no profile"));
    assert_eq!(request(&many.encode_to_vec()).len(), 0);
    let objects = format!("{{\"resourceProfiles\":[{}{{}}]}}", "{},".repeat(300_000));
    assert_eq!(read(objects).unwrap_err().kind(), DecodeErrorKind::Limit);
}
