use std::sync::Arc;

use expect_test::expect;
use profiler_core::attribute::FileGroups;
use profiler_core::cancel::CancelFlag;
use profiler_core::profile::{Label, LabelValue, Line, LineNo, Mapping, Profile, ProfileBuilder, ValueType};
use profiler_core::view::status::{Status, whose};

use crate::profiles::{ALLOC, CPU, Loaded, log_stats, profile};

#[test]
fn every_state_has_a_text_and_an_icon() {
    let loaded = Loaded::new(&log_stats(), CPU);
    let elsewhere = Loaded::new(&profile("f@1 src/a.rs:2 = 61\n g@1 dep/b.rs:2 = 39"), CPU);
    let states = [
        Status::Loaded("cpu 15m", &loaded.analysis),
        Status::Loaded("cpu 15m", &elsewhere.analysis),
        Status::Loading("cpu 15m"),
        Status::Recording("cpu 7s"),
        Status::Comparing("cpu 15m", "yesterday"),
        Status::NoProfile,
        Status::Failed("sign in"),
    ];
    let line = |state: &Status<'_>| format!("$({}) {}\n", state.icon(), state.text());
    let text: String = states.iter().map(line).collect();
    expect![[r#"
        $(flame) cpu 15m · 3.52s
        $(warning) cpu 15m · 61% placed
        $(sync~spin) cpu 15m
        $(record) cpu 7s
        $(diff) cpu 15m vs yesterday
        $(flame) no profile
        $(error) sign in
    "#]]
    .assert_eq(&text);
}

/// Samples of (file, label `service`, binary, value).
fn fleet(samples: &[(&str, &str, &str, i64)]) -> Arc<Profile> {
    let mut builder = ProfileBuilder::new("test", vec![ValueType::new("cpu", "nanoseconds")]);
    let key = builder.string("service").unwrap();
    for &(file, service, binary, value) in samples {
        let service = builder.string(service).unwrap();
        let path = builder.string(&format!("/usr/bin/{binary}")).unwrap();
        let mapping = builder.push_mapping(Mapping { file: path, ..Mapping::default() }).unwrap();
        let function = builder.function("f", "", file, LineNo(1)).unwrap();
        let place = builder.push_location(mapping, 0, &[Line { function, line: LineNo(2), column: 0 }]).unwrap();
        let label = Label { key, value: LabelValue::Text(service) };
        builder.push_sample(&[place], &[value * 1_000_000_000], &[label]).unwrap();
    }
    Arc::new(builder.finish().unwrap())
}

#[test]
fn a_fleet_is_told_whose_it_is_and_how_to_see_ones_own() {
    let profile = fleet(&[
        ("src/a.rs", "checkout", "api", 3000),
        ("src/b.rs", "checkout", "worker", 1428),
        ("std/gc.rs", "checkout", "api", 500),
        ("std/gc.rs", "search", "api", 45_000),
        ("dep/x.rs", "search", "search", 70_000),
        ("other/y.rs", "ads", "ads", 20_000),
        ("other/z.rs", "mail", "mail", 7072),
        ("other/q.rs", "chat", "chat", 600),
    ]);
    let loaded = Loaded::new(&profile, 0);
    let analysis = &loaded.analysis;
    let narrowing = analysis.stacks.narrowing(&profile, 0, &CancelFlag::new()).unwrap().unwrap();
    expect!["3% of 41.0h cpu is in this workspace; 47% fastjson 1.2.0, 31% std 1.95, 14% ads, 5% in 2 others. With the filter label.service=checkout it would be 90% of 1.37h."].assert_eq(&whose(analysis, Some(&narrowing)).to_string());
    expect!["94% of 3.52s cpu is in this workspace; 6% fastjson 1.2.0, 1% std 1.95."]
        .assert_eq(&whose(&Loaded::new(&log_stats(), CPU).analysis, None).to_string());
}

#[test]
fn without_anything_to_place_that_is_said() {
    let stats = log_stats();
    let by_path = Loaded::with_groups(&stats, FileGroups::by_path(&stats), CPU);
    expect!["3.52s cpu; no folder is open to find its files in."]
        .assert_eq(&whose(&by_path.analysis, None).to_string());
    let empty = Loaded::new(&profile("f@1 src/a.rs:2 = 61"), ALLOC);
    expect!["This profile holds nothing of the type alloc."].assert_eq(&whose(&empty.analysis, None).to_string());
    assert_eq!(Status::Loaded("alloc", &empty.analysis).text(), "alloc · 0");
}

#[test]
fn no_filter_is_offered_that_would_not_help() {
    let find = |samples: &[_]| {
        let profile = fleet(samples);
        Loaded::new(&profile, 0).analysis.stacks.narrowing(&profile, 0, &CancelFlag::new()).unwrap()
    };
    assert_eq!(find(&[("src/a.rs", "one", "one", 5), ("dep/b.rs", "one", "one", 90)]), None, "keeps all");
    assert_eq!(find(&[("dep/b.rs", "one", "one", 5), ("dep/b.rs", "two", "two", 90)]), None, "nothing is placed");
    let scattered: Vec<_> = ["a", "b", "c"].map(|name| ("src/a.rs", name, name, 5)).to_vec();
    assert_eq!(find(&scattered), None, "no filter keeps half");
}
