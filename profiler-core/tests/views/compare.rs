use expect_test::expect;
use profiler_core::profile::{Line, LineNo, MapId, Profile, ProfileBuilder, ValueType, Work};
use profiler_core::view::compare::comparison;
use profiler_core::view::hotspots::By;
use profiler_core::view::text;

use crate::profiles::{compare, options, profile};

fn text(new: &Profile, base: &Profile, normalize: bool) -> String {
    let (analysis, compared) = compare(new, base, normalize);
    text::plain(&comparison(&analysis, &compared, "base.pb.gz", &options(By::Line, 0)), None)
}

fn base() -> Profile {
    profile(&[
        ("parse src/a.rs:17 < main src/main.rs:5", 92),
        ("slowest src/a.rs:42 < main src/main.rs:6", 111),
        ("sort src/a.rs:50 < main src/main.rs:6", 100),
        ("old src/a.rs:60 < main src/main.rs:7", 9),
        ("steady src/a.rs:70", 700),
    ])
}

#[test]
fn by_value_when_totals_are_alike() {
    let new = profile(&[
        ("parse src/a.rs:17 < main src/main.rs:5", 160),
        ("slowest src/a.rs:42 < main src/main.rs:6", 50),
        ("sort src/a.rs:50 < main src/main.rs:6", 104),
        ("fresh src/a.rs:61 < main src/main.rs:7", 7),
        ("steady src/a.rs:70", 700),
    ]);
    expect![[r#"
        cpu.pb.gz against base.pb.gz (base)
        cpu 10.2s against 10.1s · 1.02k samples over 4.00s against 1.01k samples over 4.00s
        By value: changes are percentage points of the base's 10.1s cpu.

        Lines by change of cost with calls, of base
          change    base→new        self     samples  function  place
        ▲ +6.7pp   920ms→1.60s    +6.7pp   92→160     parse     src/a.rs:17
        ▲ +6.7pp   920ms→1.60s         0   92→160     main      src/main.rs:5
        ▼ −6.0pp   1.11s→500ms    −6.0pp  111→50      slowest   src/a.rs:42
        ▼ −5.6pp   2.11s→1.54s         0  211→154     main      src/main.rs:6
        ▼ −0.9pp    gone 90.0ms*  −0.9pp    9→0       old       src/a.rs:60
        ▲ +0.7pp     new 70.0ms*  +0.7pp    0→7       fresh     src/a.rs:61
        ≈ +0.4pp   1.00s→1.04s    +0.4pp  100→104     sort      src/a.rs:50
        ≈ −0.2pp  90.0ms→70.0ms*       0    9→7       main      src/main.rs:7
        1 line has changed by less than 0.1pp
        ≈ may well be chance: within the 95 % confidence interval of the sample counts
        * fewer than 10 samples on both sides: too few to trust

        No workspace was given: add --workspace DIR to see what the lines of your own code cost.
    "#]]
    .assert_eq(&text(&new, &base(), false));
}

#[test]
fn by_share_when_totals_differ() {
    let new = profile(&[
        ("parse src/a.rs:17 < main src/main.rs:5", 400),
        ("slowest src/a.rs:42 < main src/main.rs:6", 120),
        ("steady src/a.rs:70", 1400),
    ]);
    expect![[r#"
        cpu.pb.gz against base.pb.gz (base)
        cpu 19.2s against 10.1s · 1.92k samples over 4.00s against 1.01k samples over 4.00s
        By share, as the totals differ by more than 10 %: each side counts as shares of its own total, changes are percentage points between them.

        Lines by change of cost with calls, share of each side's total
           change   base→new       self     samples  function  place
        ▼ −14.6pp  20.8%→6.3%         0  211→120     main      src/main.rs:6
        ▲ +11.7pp   9.1%→20.8%  +11.7pp   92→400     parse     src/a.rs:17
        ▲ +11.7pp   9.1%→20.8%        0   92→400     main      src/main.rs:5
        ▼  −9.9pp   gone 9.9%    −9.9pp  100→0       sort      src/a.rs:50
        ▼  −4.7pp  11.0%→6.3%    −4.7pp  111→120     slowest   src/a.rs:42
        ≈  +3.7pp  69.2%→72.9%   +3.7pp  700→1400    steady    src/a.rs:70
        ▼  −0.9pp   gone 0.9%*   −0.9pp    9→0       old       src/a.rs:60
        ▼  −0.9pp   gone 0.9%*        0    9→0       main      src/main.rs:7
        ≈ may well be chance: within the 95 % confidence interval of the sample counts
        * fewer than 10 samples on both sides: too few to trust

        No workspace was given: add --workspace DIR to see what the lines of your own code cost.
    "#]]
    .assert_eq(&text(&new, &base(), false));
}

/// What a profiler says of a recording of the same work.
fn of_the_same_work(profile: Profile) -> Profile {
    profile.with_comment(Work { amount: 5, name: "sums".to_owned() }.to_string())
}

#[test]
fn one_recording_of_each_does_not_tell_a_change_from_the_speed_of_the_machine() {
    let base = || profile(&[("hot src/a.rs:17", 4000), ("steady src/a.rs:70", 3000)]);
    let new = || profile(&[("hot src/a.rs:17", 3500), ("steady src/a.rs:70", 3400)]);
    expect![[r#"
        cpu.pb.gz against base.pb.gz (base)
        cpu 1.15min against 1.17min · 6.90k samples over 4.00s against 7.00k samples over 4.00s
        By value, of the same work on both sides: changes are percentage points of the base's 1.17min cpu.

        Lines by change of cost with calls, of base
          change   base→new      self      samples  function  place
        ≈ −7.1pp  40.0s→35.0s  −7.1pp  4000→3500    hot       src/a.rs:17
        ≈ +5.7pp  30.0s→34.0s  +5.7pp  3000→3400    steady    src/a.rs:70
        ≈ may be how fast the machine was: so few recordings can't tell less than 15 % of a row from that; three pairs in turns can

        No workspace was given: add --workspace DIR to see what the lines of your own code cost.
    "#]].assert_eq(&text(&of_the_same_work(new()), &of_the_same_work(base()), false));
    // What is not known to be the same work is no matter of the machine alone.
    let marks = |text: &str| text.lines().filter_map(|line| line.trim().chars().next()).collect::<String>();
    let unknown = text(&new(), &base(), false);
    assert!(marks(&unknown).contains('▲') && marks(&unknown).contains('▼'), "{unknown}");
}

/// Samples whose number is all that is known, and how far apart they are.
fn counts(samples: i64, period: i64) -> Profile {
    let mut builder = ProfileBuilder::new("test", vec![ValueType::new("samples", "count")]);
    let function = builder.function("hot", "", "src/a.js", LineNo(1)).unwrap();
    let location = builder.location(MapId::NONE, 0, &[Line { function, line: LineNo(4), column: 0 }]).unwrap();
    builder.push_sample(&[location], &[samples], &[]).unwrap();
    of_the_same_work(builder.finish().unwrap().with_period(period, "wall"))
}

/// V8 says how far apart its samples came to be, which is more where the machine is busy; the work has as many.
#[test]
fn samples_of_the_same_work_are_compared_by_their_number() {
    let head = |new: &Profile, base: &Profile| {
        let text = text(new, base, false);
        text.lines().filter(|line| !line.is_empty()).take(6).collect::<Vec<_>>().join("\n")
    };
    expect![[r#"
        cpu.pb.gz against base.pb.gz (base)
        samples 550ms against 1.10s · 500 samples × 1.90ms against 1.00k samples × 1.10ms
        By value, of the same work on both sides: changes are percentage points of the base's 1.10s samples. Every sample of both counts as 1.10ms.
        Lines by change of cost with calls, of base
           change   base→new       self      samples  function  place
        ▼ −50.0pp  1.10s→550ms  −50.0pp  1000→500     hot       src/a.js:4"#]]
    .assert_eq(&head(&counts(500, 1_900_000), &counts(1000, 1_100_000)));
    // As many samples of another rate are not as much.
    expect![[r#"
        cpu.pb.gz against base.pb.gz (base)
        samples 1.00s against 10.0s · 1.00k samples × 1.00ms against 1.00k samples × 10.0ms
        By share, as the sampling periods differ: each side counts as shares of its own total, changes are percentage points between them.
        No line has changed by 0.1pp or more.
        No workspace was given: add --workspace DIR to see what the lines of your own code cost."#]].assert_eq(&head(&counts(1000, 1_000_000), &counts(1000, 10_000_000)));
}

/// A rate that was asked for is what it says: twice as many samples are not twice as much.
#[test]
fn twice_the_rate_is_another_rate() {
    let at = |samples: i64, period: i64| {
        let mut builder = ProfileBuilder::new("test", vec![ValueType::new("samples", "count")]);
        let function = builder.function("hot", "", "a.rb", LineNo(1)).unwrap();
        let location = builder.location(MapId::NONE, 0, &[Line { function, line: LineNo(4), column: 0 }]).unwrap();
        builder.push_sample(&[location], &[samples], &[]).unwrap();
        builder.meta().period = period;
        builder.meta().period_type = Some(ValueType::new("wall", "nanoseconds"));
        of_the_same_work(builder.finish().unwrap())
    };
    let text = text(&at(2000, 500_000), &at(1000, 1_000_000), false);
    assert!(text.contains("By share, as the sampling periods differ"), "{text}");
}

#[test]
fn normalized_says_so() {
    let new = profile(&[("parse src/a.rs:17 < main src/main.rs:5", 400), ("steady src/a.rs:70", 1400)]);
    let text = text(&new, &base(), true);
    expect![[r#"
        cpu.pb.gz against base.pb.gz (base)
        cpu 10.1s against 10.1s · 1.80k samples over 4.00s against 1.01k samples over 4.00s
        Normalized: new values are brought to the base's sum; changes are percentage points of the base's 10.1s cpu."#]]
    .assert_eq(text.split("\n\n").next().unwrap());
}

#[test]
fn no_change_and_no_base_are_told() {
    let same = text(&base(), &base(), false);
    assert!(same.contains("No line has changed by 0.1pp or more."), "{same}");

    let empty = profile(&[]);
    let from_nothing = text(&profile(&[("parse src/a.rs:17", 92)]), &empty, false);
    expect![[r#"
        cpu.pb.gz against base.pb.gz (base)
        cpu 920ms against 0 · 92 samples over 4.00s against 0 samples over 4.00s
        By value: changes are percentage points of the base's 0 cpu.

        Lines by change of cost with calls, of base
        change base→new   self   samples  function  place
        ▲       new 920ms    0  0→92      parse     src/a.rs:17

        No workspace was given: add --workspace DIR to see what the lines of your own code cost.
    "#]]
    .assert_eq(&from_nothing);
}
