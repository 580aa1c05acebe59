use expect_test::expect;
use profiler_core::view::hint::Settings;
use profiler_core::view::label::{Glyphs, Style};
use profiler_core::view::lens::{Lens, change_lenses, lenses};

use crate::profiles::{CPU, Changed, LOG_STATS, Loaded, log_stats, profile};

fn text(lenses: &[Lens]) -> String {
    let line = |lens: &Lens| format!("{} {}\n", lens.line, lens.text);
    lenses.iter().map(line).collect()
}

#[test]
fn functions_tell_their_cost_and_rank() {
    let loaded = Loaded::new(&log_stats(), CPU);
    let lenses = lenses(loaded.file("src/log_stats.rs"), &Settings::default());
    expect![[r#"
        13 function 41.1% 1.45s · here 14% (#2)
        27 function 61.7% 2.17s
        38 function 0.9% 32.0ms · 3 samples
        41 function 9.2% 324ms here (#6)
        60 function 2.3% 80.0ms here (#9) · 8 samples
    "#]]
    .assert_eq(&text(&lenses));
    let names: Vec<_> =
        lenses[0].functions.iter().map(|&at| loaded.analysis.costs.functions[at].name.as_str()).collect();
    assert_eq!(names, ["parse_line"]);
}

#[test]
fn one_line_has_one_lens() {
    let stacks = "
        sort<u8>@7 src/a.rs:8 = 300
        sort<u16>@7 src/a.rs:8 = 500
        sort<u16>::{closure}@7 src/a.rs:9 < sort<u16>@7 src/a.rs:8 = 200
        main@20 src/a.rs:21 = 1
    ";
    let loaded = Loaded::new(&profile(stacks), CPU);
    let style = Style { glyphs: Glyphs::Ascii, has_lead: false };
    let settings = Settings { style, ..Settings::default() };
    expect![[r#"
        7 function 69.9% 700ms | here 50% (#1) | largest of 3
    "#]]
    .assert_eq(&text(&lenses(loaded.file("src/a.rs"), &settings)));
}

#[test]
fn functions_of_unknown_start_are_at_their_first_line() {
    let stacks = "
        f@0 src/a.rs:9 = 300
        f@0 src/a.rs:8 = 500
        no_line@0 src/a.rs:0 = 500
    ";
    let loaded = Loaded::new(&profile(stacks), CPU);
    expect![[r#"
        8 function 61.5% 800ms here (#1)
    "#]]
    .assert_eq(&text(&lenses(loaded.file("src/a.rs"), &Settings::default())));
}

#[test]
fn changes_of_functions() {
    let new = LOG_STATS.replace("= 724", "= 324").replace("= 489", "= 889").replace("= 80", "= 70");
    let new = new.replace("Stats::slowest@41 src/log_stats.rs:42", "Stats::fastest@44 src/log_stats.rs:45");
    let changed = Changed::new(&profile(&new), &log_stats());
    let file = "src/log_stats.rs";
    let lenses = change_lenses(changed.new.file(file), changed.file(file), &Settings::default());
    expect![[r#"
        13 function ▲ +11.4pp ±10.1 1.45s→1.85s
        44 function ▲ +9.2pp ±3.2 new 324ms
        60 function ≈ −0.3pp ±2.2 80.0ms→70.0ms · 8→7 samples
    "#]]
    .assert_eq(&text(&lenses));
}
