//! What became of lines and functions, and how sure that is: by the samples of one recording each, and by
//! several pairs of runs.

use std::sync::Arc;

use expect_test::expect;
use profiler_core::profile::Profile;
use profiler_core::view::hint::{Settings, change_hints};
use profiler_core::view::hover::{Context, Subject, change_hover};
use profiler_core::view::lens::change_lenses;

use crate::profiles::{Changed, sampled};

/// Two lines of one function, with a sample every millisecond; of one and the same work.
fn run(hot: u32, steady: u32) -> Arc<Profile> {
    let profile = sampled(1, &format!("work@1 src/a.rs:2 = {hot}\n work@1 src/a.rs:3 = {steady}"));
    Arc::new((*profile).clone().with_comment("work: 100 × src/a.rs work".to_owned()))
}

/// The new version's and the base's.
type Runs = (Arc<Profile>, Arc<Profile>);

/// Compares the sums of runs, and has each row judged by all pairs.
fn in_pairs(pairs: &[Runs]) -> Changed {
    let sum = |side: fn(&Runs) -> &Arc<Profile>| {
        let all = pairs.iter().map(|pair| (**side(pair)).clone()).collect();
        Arc::new(Profile::merge(all).unwrap().unwrap())
    };
    let mut changed = Changed::new(&sum(|(new, _)| new), &sum(|(_, base)| base));
    let runs: Vec<_> = pairs
        .iter()
        .map(|(new, base)| {
            let Changed { new, compared, .. } = Changed::new(new, base);
            (new.analysis, compared)
        })
        .collect();
    changed.new.analysis.judge_by(&mut changed.compared, &runs);
    changed
}

/// Hints and lenses, then what the hover of a line says of the change.
fn told(changed: &Changed, line: u32) -> String {
    let (file, settings) = ("src/a.rs", Settings::default());
    let hints = change_hints(changed.file(file), 1..=u32::MAX, &settings);
    let hints = hints.iter().map(|hint| format!("{} {}\n", hint.line, hint.label));
    let lenses = change_lenses(changed.new.file(file), changed.file(file), &settings);
    let lenses = lenses.iter().map(|lens| format!("{} {}\n", lens.line, lens.text));
    let hover = change_hover(changed.file(file), Subject::Line(line), &Context::default()).unwrap();
    let prose = hover.prose.to_string();
    let (_, verdict) = prose.split_once("cpu. ").unwrap();
    hints.chain(lenses).chain([format!("{verdict}\n")]).collect()
}

#[test]
fn one_recording_each_is_judged_by_its_samples() {
    // Halved, and from enough samples.
    expect![[r#"
        2 ▼ −33.3pp 1.00s→500ms
        1 function ▼ −33.3pp ±6.5 1.50s→1.00s
        Improved, ±5.1pp (95 %): 1000→500 samples here.
    "#]]
    .assert_eq(&told(&Changed::new(&run(500, 500), &run(1000, 500)), 2));
    expect![[r#"
        2 ≈ +1.3pp 1.00s→1.02s
        1 function ≈ +1.3pp ±7.2 1.50s→1.52s
        Unchanged, within ±5.9pp (95 %): 1000→1020 samples here.
    "#]]
    .assert_eq(&told(&Changed::new(&run(1020, 500), &run(1000, 500)), 2));
    // The same from so few samples that a change of ten points would not be seen.
    expect![[r#"
        2 ≈ +3.1pp inconclusive
        1 function ≈ +3.1pp ±49.4 inconclusive
        Inconclusive, ±40.2pp (95 %) is too wide to see a change: 21→22 samples here; more samples or runs would tell.
    "#]]
    .assert_eq(&told(&Changed::new(&run(22, 11), &run(21, 11)), 2));
    expect![[r#"
        2 ≈ −25.0pp inconclusive
        1 function ≈ −25.0pp ±58.0 inconclusive
        8→3 samples here: too few to trust.
    "#]]
    .assert_eq(&told(&Changed::new(&run(3, 12), &run(8, 12)), 2));
}

#[test]
fn several_pairs_are_judged_by_how_much_they_differ_too() {
    let pairs = [(run(500, 500), run(1000, 500)), (run(520, 490), run(990, 505)), (run(490, 510), run(1010, 495))];
    expect![[r#"
        2 ▼ −33.1pp 3.00s→1.51s
        1 function ▼ −33.1pp ±3.8 4.50s→3.01s
        Improved, ±4.2pp (95 %): 3000→1510 samples here in 3 pairs of runs that differ by ±4.2pp.
    "#]]
    .assert_eq(&told(&in_pairs(&pairs), 2));
    // More than the chance of its samples, but one pair says something else.
    let moody = [(run(700, 500), run(1000, 500)), (run(1050, 500), run(1000, 500)), (run(690, 500), run(1000, 500))];
    expect![[r#"
        2 ≈ −12.4pp inconclusive
        1 function ≈ −12.4pp ±34.0 inconclusive
        Inconclusive, ±34.0pp (95 %) is too wide to see a change: 3000→2440 samples here in 3 pairs of runs that differ by ±34.0pp; more samples or runs would tell.
    "#]].assert_eq(&told(&in_pairs(&moody), 2));
}

#[test]
fn without_counted_samples_nothing_is_claimed() {
    let uncounted = |value: i64| {
        use profiler_core::profile::{Line, LineNo, MapId, ProfileBuilder, ValueType};
        let mut builder = ProfileBuilder::new("test", vec![ValueType::new("wall", "nanoseconds")]);
        let function = builder.function("work", "", "src/a.rs", LineNo(1)).unwrap();
        let line = Line { function, line: LineNo(2), column: 0 };
        let location = builder.location(MapId::NONE, 0, &[line]).unwrap();
        builder.push_sample(&[location], &[value], &[]).unwrap();
        Arc::new(builder.finish().unwrap())
    };
    let changed = Changed::of_type(&uncounted(1_000_000_000), &uncounted(950_000_000), 0);
    let hover = change_hover(changed.file("src/a.rs"), Subject::Line(2), &Context::default()).unwrap();
    let prose = hover.prose.to_string();
    assert!(
        prose.ends_with("Samples are not counted on both sides, so a change can't be told from chance."),
        "{prose}"
    );
}
