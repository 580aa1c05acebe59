//! Lists over the whole workspace, marks of a file, and finding a file.

use std::fmt::Write as _;
use std::path::Path;

use expect_test::expect;
use profiler_core::attribute::FileGroups;
use profiler_core::attribute::analysis::Analysis;
use profiler_core::cancel::CancelFlag;
use profiler_core::view::by_file::FileCosts;
use profiler_core::view::flame::{Flame, change_flame, flame};
use profiler_core::view::heat::{LineHeat, change_heat, heat};
use profiler_core::view::hint::Settings;
use profiler_core::view::hot_list::{changed_spots, hot_spots, packages, text, title};
use profiler_core::view::hotspots::By;

use crate::profiles::{CPU, Changed, LOG_STATS, Loaded, log_stats, profile, sampled};

#[test]
fn files_are_found_by_name_and_by_path() {
    let Loaded { analysis, index } = Loaded::new(&log_stats(), CPU);
    let file = index.named(&analysis, "src/log_stats.rs");
    assert!(file.is_some());
    assert_eq!(index.at(&analysis, Path::new("/home/dev/ws/src/log_stats.rs")), file);
    assert!(index.at(&analysis, Path::new("dep/memchr.rs")).is_some(), "files of others are where they were built");
    assert_eq!(index.named(&analysis, "log_stats.rs"), None);
    let file = FileCosts { analysis: &analysis, index: &index, file: file.unwrap() };
    assert_eq!(file.lines(16..=31).map(|row| row.line.0).collect::<Vec<_>>(), [16, 17, 29, 31]);
    assert_eq!(file.lines(18..=28).count(), 0);
}

#[test]
fn hot_spots_are_by_what_is_spent_there() {
    let analysis = Loaded::new(&log_stats(), CPU).analysis;
    assert_eq!(title(&analysis, By::Line), "Hot spots: lines here, cpu, 3.52s");
    let lines = hot_spots(&analysis, By::Line, 6);
    expect![[r#"
        ▆ 20.6%    724ms  str::replace         src/text.rs:24
        ▆ 13.9%    489ms  core::num::from_str  src/num.rs:80
        █ 11.4%    402ms  parse_line           src/log_stats.rs:17
        ▆ 10.2%    360ms  left                 src/rest.rs:2
        ▆ 10.2%    360ms  right                src/rest.rs:12
        ▄  9.2%    324ms  Stats::slowest       src/log_stats.rs:42
    "#]]
    .assert_eq(&text(&lines));
    expect![[r#"
        ▄  5.7%    200ms  fastjson 1.2.0
           0.7%   25.0ms  std 1.95
    "#]]
    .assert_eq(&text(&packages(&analysis, 10)));
    expect![[r#"
        ▆ 20.6%    724ms  str::replace         src/text.rs:20
        █ 14.3%    503ms  parse_line           src/log_stats.rs:13
        ▆ 13.9%    489ms  core::num::from_str  src/num.rs:70
    "#]]
    .assert_eq(&text(&hot_spots(&analysis, By::Function, 3)));

    let row = lines.iter().find(|row| row.name == "parse_line").unwrap();
    assert_eq!(
        [row.label(), row.description()],
        ["11.4%  parse_line", "402ms · with calls 34.0% · src/log_stats.rs:17"]
    );
    let row = lines.iter().find(|row| row.name == "Stats::slowest").unwrap();
    assert_eq!(row.label(), "\u{2007}9.2%  Stats::slowest");
}

#[test]
fn without_a_workspace_by_what_lines_spend_themselves() {
    let profile = log_stats();
    let analysis = Loaded::with_groups(&profile, FileGroups::by_path(&profile), CPU).analysis;
    assert_eq!(title(&analysis, By::Function), "Hot spots: functions self, cpu, 3.52s");
    expect![[r#"
        ▆ 20.6%    724ms  str::replace         src/text.rs:20
        ▆ 13.9%    489ms  core::num::from_str  src/num.rs:70
        █ 12.1%    426ms  parse_line           src/log_stats.rs:13
    "#]]
    .assert_eq(&text(&hot_spots(&analysis, By::Function, 3)));
    assert!(packages(&analysis, 10).is_empty());
}

fn marks(lines: &[LineHeat]) -> String {
    let line = |mark: &LineHeat| format!("{} {:?} {} {}\n", mark.line, mark.mark, mark.share, mark.value);
    lines.iter().map(line).collect()
}

#[test]
fn marks_have_five_levels() {
    let loaded = Loaded::new(&log_stats(), CPU);
    expect![[r#"
        14 Level(1) 2.0% 70.0ms
        15 Level(0) 0.9% 31.0ms
        16 Level(2) 4.2% 149ms
        17 Level(4) 34.0% 1.20s
        29 Level(4) 41.1% 1.45s
        31 Level(3) 20.6% 724ms
        40 Level(0) 0.9% 32.0ms
        42 Level(2) 9.2% 324ms
        61 Level(1) 2.3% 80.0ms
    "#]]
    .assert_eq(&marks(&heat(loaded.file("src/log_stats.rs"), &Settings::default())));
}

#[test]
fn changes_are_marked_and_listed_by_size() {
    let base = LOG_STATS.replace("= 724", "= 1000").replace("= 489", "= 280").replace("= 149", "= 50");
    let base = base.replace("= 324\n", "= 280\n").replace("= 80", "= 191");
    let changed = Changed::new(&sampled(1, LOG_STATS), &sampled(1, &base));
    expect![[r#"
        17 Level(4) +5.7pp 1.20s
        29 Level(4) +5.7pp 1.45s
        31 Better −7.6pp 724ms
        42 Level(0) +1.2pp 324ms
        61 Better −3.0pp 80.0ms
    "#]]
    .assert_eq(&marks(&change_heat(changed.file("src/log_stats.rs"))));
    expect![[r#"
        ▼ −7.6pp   1.00s→724ms  Stats::add           src/log_stats.rs:31
        ▼ −7.6pp   1.00s→724ms  str::replace         src/text.rs:24
        ▲ +5.7pp   988ms→1.20s  parse_line           src/log_stats.rs:17
        ▲ +5.7pp   1.24s→1.45s  Stats::add           src/log_stats.rs:29
        ▲ +5.7pp   280ms→489ms  core::num::from_str  src/num.rs:80
        ▼ −3.0pp  191ms→80.0ms  Stats::tiny          src/log_stats.rs:61
    "#]]
    .assert_eq(&text(&changed_spots(&changed.new.analysis, &changed.compared, By::Line, 6)));
}

/// The boxes, indented by depth; `!` marks what is not of the workspace.
fn boxes(analysis: &Analysis, top: usize) -> String {
    listed(&flame(analysis, top, &CancelFlag::new()).unwrap())
}

fn listed(flame: &Flame) -> String {
    let depth = |at: usize| std::iter::successors(flame.boxes[at].parent, |&at| flame.boxes[at].parent).count();
    let mut text = format!("{} {}\n", flame.title, flame.total);
    for (at, each) in flame.boxes.iter().enumerate() {
        let function = &flame.functions[each.function];
        let (indent, mark) = ("  ".repeat(depth(at)), if function.is_own { "" } else { "!" });
        let change = each.change.map_or_else(String::new, |change| format!(" {change:?}"));
        writeln!(text, "{indent}{mark}{} {} {}{change}", function.name, each.label, function.place).unwrap();
    }
    writeln!(text, "omitted {}", flame.omitted).unwrap();
    text
}

#[test]
fn a_flame_graph_has_a_box_for_each_chain_of_callers() {
    // A function that calls itself, one below two callers, one without a file, negative values.
    let stacks = "
        f@2 src/a.rs:3 < f@2 src/a.rs:4 < main@1 src/a.rs:9 = 60
        f@2 src/a.rs:3 < main@1 src/a.rs:9 = 20
        memchr@5 dep/memchr.rs:9 < f@2 src/a.rs:4 < main@1 src/a.rs:9 = -10
        memchr@5 dep/memchr.rs:9 < main@1 src/a.rs:8 = 10
    ";
    let analysis = Loaded::new(&profile(stacks), CPU).analysis;
    expect![[r#"
        100ms cpu 100000000
        main 100% 100ms src/a.rs:1
          f 90.0% 90.0ms src/a.rs:2
            f 60.0% 60.0ms src/a.rs:2
            !memchr 10.0% 10.0ms dep/memchr.rs:5
          !memchr 10.0% 10.0ms dep/memchr.rs:5
        omitted 0
    "#]]
    .assert_eq(&boxes(&analysis, 10));
    expect![[r#"
        100ms cpu 100000000
        main 100% 100ms src/a.rs:1
          f 90.0% 90.0ms src/a.rs:2
        omitted 3
    "#]]
    .assert_eq(&boxes(&analysis, 2));
}

/// Frames of others alone: whoever writes an executor looks at its functions.
#[test]
fn executors_of_asynchronous_code_are_one_box_in_a_flame_graph() {
    let stacks = "
        hash@2 src/a.rs:3 < app::main::{closure#0}@1 src/a.rs:9 < tokio::runtime::task::core::poll@1 dep/core.rs:9 < tokio::runtime::task::raw::poll@1 dep/raw.rs:9 < main@7 src/a.rs:9 = 60
        app::main::{closure#0}@1 src/a.rs:9 < futures_util::join@3 dep/join.rs:4 < tokio::runtime::task::raw::poll@1 dep/raw.rs:9 < main@7 src/a.rs:9 = 30
        tokio::runtime::park@4 dep/park.rs:5 = 10
    ";
    let analysis = Loaded::new(&profile(stacks), CPU).analysis;
    expect![[r#"
        100ms cpu 100000000
        main 90.0% 90.0ms src/a.rs:7
          !async executor 90.0% 90.0ms 
            app::main::{closure#0} 90.0% 90.0ms src/a.rs:1
              hash 60.0% 60.0ms src/a.rs:2
        !async executor 10.0% 10.0ms 
        omitted 0
    "#]]
    .assert_eq(&boxes(&analysis, 10));
    let analysis = Loaded::new(&profile(&stacks.replace("dep/", "src/")), CPU).analysis;
    assert!(!boxes(&analysis, 10).contains("async executor"));
}

#[test]
fn a_flame_graph_of_a_comparison_says_per_box_what_changed() {
    let base = "
        memchr@5 dep/memchr.rs:9 < f@2 src/a.rs:4 < main@1 src/a.rs:9 = 300
        f@2 src/a.rs:3 < main@1 src/a.rs:9 = 500
        f@2 src/a.rs:3 < other@1 src/b.rs:9 = 100
        gone@7 src/a.rs:8 < main@1 src/a.rs:8 = 100
    ";
    let new = "
        memchr@5 dep/memchr.rs:9 < f@2 src/a.rs:4 < main@1 src/a.rs:9 = 600
        f@2 src/a.rs:3 < main@1 src/a.rs:9 = 200
        f@2 src/a.rs:3 < other@1 src/b.rs:9 = 100
        fresh@8 src/a.rs:9 < main@1 src/a.rs:9 = 100
    ";
    let of = |new: &str, base: &str| {
        let changed = Changed::new(&sampled(1, new), &sampled(1, base));
        listed(&change_flame(&changed.new.analysis, &changed.compared, 10, &CancelFlag::new()).unwrap())
    };
    expect![[r#"
        1.00s cpu against 1.00s 1000000000
        main ≈ 0pp 900ms→900ms src/a.rs:1 Level(0)
          f ≈ 0pp 800ms→800ms src/a.rs:2 Level(0)
            !memchr ▲ +30.0pp 300ms→600ms dep/memchr.rs:5 Level(4)
        other ≈ 0pp 100ms→100ms src/b.rs:1 Level(0)
          f ≈ 0pp 100ms→100ms src/a.rs:2 Level(0)
          fresh ▲ +10.0pp new 100ms src/a.rs:8 Level(4)
        omitted 0
    "#]]
    .assert_eq(&of(new, base));
    // Of other totals shares are compared; few samples prove nothing.
    expect![[r#"
        30.0ms cpu against 40.0ms 30000000
        g ≈ +16.7pp inconclusive src/a.rs:4 Level(0)
        f ≈ −16.7pp inconclusive src/a.rs:2 Level(0)
        omitted 0
    "#]]
    .assert_eq(&of("f@2 src/a.rs:3 = 10\n g@4 src/a.rs:5 = 20", "f@2 src/a.rs:3 = 20\n g@4 src/a.rs:5 = 20"));
}
