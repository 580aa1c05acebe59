//! Filters to choose from, and what they say they leave out.

use std::sync::Arc;

use expect_test::expect;
use profiler_core::attribute::FileGroups;
use profiler_core::attribute::analysis::{Analysis, Compare};
use profiler_core::attribute::calls::Target;
use profiler_core::cancel::CancelFlag;
use profiler_core::profile::{Label, LabelValue, Line, LineNo, MapId, Profile, ProfileBuilder, ValueType};
use profiler_core::view::filters;

/// Samples: stack (leaf first, parted by ` < `), labels `KEY=VALUE`, value.
fn profile(samples: &[(&str, &str, i64)]) -> Arc<Profile> {
    let mut builder = ProfileBuilder::new("test", vec![ValueType::new("cpu", "nanoseconds")]);
    for &(stack, labels, value) in samples {
        let frames: Vec<_> = stack
            .split(" < ")
            .map(|name| {
                let function = builder.function(name, "", "src/a.rs", LineNo(1)).unwrap();
                builder.location(MapId::NONE, 0, &[Line { function, line: LineNo(2), column: 0 }]).unwrap()
            })
            .collect();
        let labels: Vec<Label> = labels
            .split_whitespace()
            .map(|label| {
                let (key, text) = label.rsplit_once('=').unwrap();
                let (key, text) = (builder.string(key).unwrap(), builder.string(text).unwrap());
                Label { key, value: LabelValue::Text(text) }
            })
            .collect();
        builder.push_sample(&frames, &[value * 1_000_000_000], &labels).unwrap();
    }
    Arc::new(builder.finish().unwrap())
}

fn analyze(profile: &Arc<Profile>, filters: &[&str]) -> Analysis {
    let filters: Vec<_> = filters.iter().map(|filter| filter.parse().unwrap()).collect();
    Analysis::new(Arc::clone(profile), FileGroups::by_path(profile), 0, &filters, &CancelFlag::new()).unwrap()
}

fn offered(analysis: &Analysis) -> String {
    let offers = filters::offers(analysis, &CancelFlag::new()).unwrap();
    let line = |offer: &filters::Offer| {
        let texts: Vec<String> = offer.filters.iter().map(ToString::to_string).collect();
        format!("{:?} {} <- {}\n", offer.kind, offer.title, texts.join(" "))
    };
    offers.iter().map(line).collect()
}

fn shop() -> Arc<Profile> {
    profile(&[
        (
            "parse < poll < tokio::runtime::task::raw::poll < main",
            "thread=worker-1 service=shop route=/a version=2",
            50,
        ),
        (
            "parse < poll < tokio::runtime::task::raw::poll < main",
            "thread=worker-2 service=shop route=/b version=2",
            30,
        ),
        ("render < main", "thread=main service=page route=/a version=2", 20),
    ])
}

#[test]
fn every_choice_says_what_it_leaves_out() {
    expect![[r#"
        Service service shop: leaves out 20% <- label.service=shop
        Service service page: leaves out 80% <- label.service=page
        Thread thread worker-1: leaves out 50% <- thread=worker-1
        Thread thread worker-2: leaves out 70% <- thread=worker-2
        Thread thread main: leaves out 80% <- thread=main
        Label route /a: leaves out 30% <- label.route=/a
        Label route /b: leaves out 70% <- label.route=/b
        Executors hide executor frames: 80% passes them, and goes to their callers <- frame.fn!^tokio::runtime::
    "#]]
    .assert_eq(&offered(&analyze(&shop(), &[])));
}

#[test]
fn choices_are_of_what_is_counted_and_are_what_they_say() {
    let shop = shop();
    let analysis = analyze(&shop, &["label.service=shop"]);
    expect![[r#"
        Thread thread worker-1: leaves out 38% <- thread=worker-1
        Thread thread worker-2: leaves out 63% <- thread=worker-2
        Label route /a: leaves out 38% <- label.route=/a
        Label route /b: leaves out 63% <- label.route=/b
        Executors hide executor frames: 100% passes them, and goes to their callers <- frame.fn!^tokio::runtime::
    "#]]
    .assert_eq(&offered(&analysis));
    // Taken, it leaves out what it said; and is not offered again.
    let taken = analyze(&shop, &["label.service=shop", "thread=worker-1"]);
    assert_eq!(taken.costs.total * 8, analysis.costs.total * 5);
    let hidden = analyze(&shop, &["frame.fn!^tokio::runtime::"]);
    assert_eq!(hidden.costs.total, 100_000_000_000);
    assert!(!offered(&hidden).contains("Executors"));
}

/// Costs are multiplied there; what stacks say is not by itself.
#[test]
fn a_normalized_comparison_changes_no_share() {
    let base = profile(&[("parse < main", "", 10)]);
    let mut analysis = analyze(&shop(), &[]);
    let before = offered(&analysis);
    let groups = FileGroups::by_path(&base);
    analysis.compare_to(base, groups, Compare::Normalized, &CancelFlag::new()).unwrap();
    assert_eq!(analysis.costs.total, 10_000_000_000);
    assert_eq!(offered(&analysis), before);
    let row = analysis.costs.functions.iter().find(|row| row.name == "parse").unwrap();
    let calls = analysis.calls(&Target::Function(row.name.clone(), row.file), &CancelFlag::new()).unwrap();
    assert_eq!((calls.cumulative, calls.callers[0].value), (row.cost.cumulative, 8_000_000_000));
}

/// `label.x!=1` leaves out what `x!` = `1` would keep.
#[test]
fn what_the_grammar_reads_otherwise_is_not_offered() {
    let profile = profile(&[("a < main", "x!=1", 1), ("b < main", "x!=2", 1)]);
    assert_eq!(profile.text(profile.samples().labels(0)[0].key), "x!");
    assert_eq!(offered(&analyze(&profile, &[])), "");
}

#[test]
fn a_function_says_what_is_not_under_it() {
    let analysis = analyze(&shop(), &[]);
    let at = analysis.costs.functions.iter().position(|row| row.name == "parse").unwrap();
    let offer = filters::under(&analysis, at).unwrap();
    assert_eq!(offer.title, "only under this function: leaves out 20%");
    assert_eq!(offer.filters[0].to_string(), "fn=parse");
    let taken = analyze(&shop(), &["fn=parse"]);
    assert_eq!(taken.costs.total, 80_000_000_000);
    let at = taken.costs.functions.iter().position(|row| row.name == "parse").unwrap();
    assert_eq!(filters::under(&taken, at), None);
}
