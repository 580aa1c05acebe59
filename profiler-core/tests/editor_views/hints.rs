use expect_test::expect;
use profiler_core::attribute::FileGroups;
use profiler_core::view::hint::{Hint, Mode, Settings, change_hints, hints};
use profiler_core::view::label::{Glyphs, Style};

use crate::profiles::{ALLOC, CPU, Changed, Loaded, SAMPLES, log_stats, profile, sampled};

fn text(hints: &[Hint]) -> String {
    let line = |hint: &Hint| format!("{} {}{}\n", hint.line, hint.label, if hint.is_gone { " (gone)" } else { "" });
    hints.iter().map(line).collect()
}

fn show(loaded: &Loaded, file: &str, settings: &Settings) -> String {
    text(&hints(loaded.file(file), 1..=u32::MAX, settings))
}

#[test]
fn lines_tell_share_value_and_what_is_spent_here() {
    let loaded = Loaded::new(&log_stats(), CPU);
    expect![[r#"
        14 ▂ 2.0% 70.0ms
        15 0.9% 31.0ms here
        16 ▄ 4.2% 149ms · here 2%
        17 █ 34.0% 1.20s · here 11%
        29 █ 41.1% 1.45s
        31 ▆ 20.6% 724ms
        40 0.9% 32.0ms
        42 ▄ 9.2% 324ms here
        61 ▂ 2.3% 80.0ms here
    "#]]
    .assert_eq(&show(&loaded, "src/log_stats.rs", &Settings::default()));
}

#[test]
fn other_units_read_alike() {
    let stacks = "
        leaf@1 src/b.rs:2 < f@1 src/a.rs:3 = 0 0 4208
        f@1 src/a.rs:3 = 0 0 2048
        f@1 src/a.rs:4 = 0 0 142711
        leaf@1 src/b.rs:2 < f@1 src/a.rs:7 = 10000
        f@1 src/a.rs:7 = 9400
        f@1 src/a.rs:8 = 442600
    ";
    let profile = profile(stacks);
    expect![[r#"
        3 ▄ 4.2% 6.11MiB · here 1%
        4 █ 95.8% 139MiB here
    "#]]
    .assert_eq(&show(&Loaded::new(&profile, ALLOC), "src/a.rs", &Settings::default()));
    expect![[r#"
        7 ▄ 4.2% 1.94k · here 2%
        8 █ 95.8% 44.3k here
    "#]]
    .assert_eq(&show(&Loaded::new(&profile, SAMPLES), "src/a.rs", &Settings::default()));
}

#[test]
fn uncertain_lines_are_marked() {
    let loaded = Loaded::new(&log_stats(), CPU);
    let hints = hints(loaded.file("src/log_stats.rs"), 31..=31, &Settings::default());
    assert_eq!((hints[0].label.as_str(), hints[0].doubtful.as_str()), ("▆ 20.6% 724ms", "▆ ~20.6% 724ms"));
}

#[test]
fn without_a_workspace_the_line_itself_is_named() {
    let profile = log_stats();
    let loaded = Loaded::with_groups(&profile, FileGroups::by_path(&profile), CPU);
    expect![[r#"
        14 ▂ 2.0% 70.0ms
        15 0.9% 31.0ms
        16 ▄ 4.2% 149ms · self 2%
        17 █ 34.0% 1.20s · self 10%
        29 █ 41.1% 1.45s
        31 ▆ 20.6% 724ms
        40 0.9% 32.0ms
        42 ▄ 9.2% 324ms self
        61 ▂ 2.3% 80.0ms self
    "#]]
    .assert_eq(&show(&loaded, "src/log_stats.rs", &Settings::default()));
}

#[test]
fn settings_decide_which_lines_and_which_characters() {
    let loaded = Loaded::new(&log_stats(), CPU);
    let file = "src/log_stats.rs";
    let hot = Settings { mode: Mode::Hot, ..Settings::default() };
    expect![[r#"
        16 ▄ 4.2% 149ms · here 2%
        17 █ 34.0% 1.20s · here 11%
        29 █ 41.1% 1.45s
        31 ▆ 20.6% 724ms
        42 ▄ 9.2% 324ms here
    "#]]
    .assert_eq(&show(&loaded, file, &hot));
    let few = Settings { max_per_file: 2, ..Settings::default() };
    expect![[r#"
        17 █ 34.0% 1.20s · here 11%
        29 █ 41.1% 1.45s
    "#]]
    .assert_eq(&show(&loaded, file, &few));
    let large = Settings { min_basis_points: 2000, ..Settings::default() };
    expect![[r#"
        17 █ 34.0% 1.20s · here 11%
        29 █ 41.1% 1.45s
        31 ▆ 20.6% 724ms
    "#]]
    .assert_eq(&show(&loaded, file, &large));
    let style = Style { glyphs: Glyphs::Ascii, has_lead: false };
    expect![[r#"
        17 34.0% 1.20s | here 11%
        29 41.1% 1.45s
        31 20.6% 724ms
    "#]]
    .assert_eq(&show(&loaded, file, &Settings { style, ..large }));
    let style = Style { glyphs: Glyphs::Unicode, has_lead: true };
    expect![[r#"
        17  █ 34.0% 1.20s · here 11%
        29  █ 41.1% 1.45s
        31  ▆ 20.6% 724ms
    "#]]
    .assert_eq(&show(&loaded, file, &Settings { style, ..large }));
}

/// The program before it was changed: alike in total.
const BASE: &str = "
    core::num::from_str@70 src/num.rs:80 < parse_line@13 src/log_stats.rs:17 < main@50 src/main.rs:52 = 925
    str::replace@20 src/text.rs:24 < Stats::add@27 src/log_stats.rs:31 < main@50 src/main.rs:52 = 1110
    sort@1 src/log_stats.rs:33 < main@50 src/main.rs:52 = 300
    parse_line@13 src/log_stats.rs:18 < main@50 src/main.rs:52 = 50
    parse_line@13 src/log_stats.rs:19 < main@50 src/main.rs:52 = 70
    left@1 src/rest.rs:2 < main@50 src/main.rs:55 = 1065
";

const NEW: &str = "
    core::num::from_str@70 src/num.rs:80 < parse_line@13 src/log_stats.rs:17 < main@50 src/main.rs:52 = 1196
    str::replace@20 src/text.rs:24 < Stats::add@27 src/log_stats.rs:31 < main@50 src/main.rs:52 = 724
    sort@1 src/log_stats.rs:33 < main@50 src/main.rs:52 = 306
    splitn@12 src/text.rs:13 < parse_line@13 src/log_stats.rs:14 < main@50 src/main.rs:52 = 70
    parse_line@13 src/log_stats.rs:18 < main@50 src/main.rs:52 = 53
    left@1 src/rest.rs:2 < main@50 src/main.rs:55 = 1065
";

#[test]
fn changes_are_points_with_both_values() {
    let changed = Changed::new(&sampled(1, NEW), &sampled(1, BASE));
    let settings = Settings::default();
    let file = "src/log_stats.rs";
    expect![[r#"
        14 ▲ +2.0pp new 70.0ms
        17 ▲ +7.7pp 925ms→1.20s
        19 ▼ −2.0pp gone 70.0ms (gone)
        31 ▼ −11.0pp 1.11s→724ms
        33 ≈ +0.2pp 300ms→306ms
    "#]]
    .assert_eq(&text(&change_hints(changed.file(file), 1..=u32::MAX, &settings)));
    let hot = Settings { mode: Mode::Hot, ..settings };
    expect![[r#"
        17 ▲ +7.7pp 925ms→1.20s
        31 ▼ −11.0pp 1.11s→724ms
    "#]]
    .assert_eq(&text(&change_hints(changed.file(file), 1..=u32::MAX, &hot)));
    let ascii = Settings { style: Style { glyphs: Glyphs::Ascii, has_lead: false }, max_per_file: 2, ..settings };
    expect![[r#"
        17 + +7.7pp 925ms->1.20s
        31 - -11.0pp 1.11s->724ms
    "#]]
    .assert_eq(&text(&change_hints(changed.file(file), 1..=u32::MAX, &ascii)));
}

#[test]
fn changes_are_shares_where_values_would_mislead() {
    let twice = NEW.replace("= 1065", "= 3000");
    let changed = Changed::new(&sampled(1, &twice), &sampled(1, BASE));
    let hints = change_hints(changed.file("src/log_stats.rs"), 1..=u32::MAX, &Settings::default());
    expect![[r#"
        14 ▲ +1.3pp new 1.3%
        17 ▼ −3.9pp 26.3%→22.4%
        18 ≈ −0.4pp 1.4%→1.0%
        19 ▼ −2.0pp gone 2.0% (gone)
        31 ▼ −18.0pp 31.5%→13.5%
        33 ▼ −2.8pp 8.5%→5.7%
    "#]]
    .assert_eq(&text(&hints));
}
