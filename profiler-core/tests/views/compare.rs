use expect_test::expect;
use profiler_core::profile::Profile;
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
