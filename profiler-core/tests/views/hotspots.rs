use expect_test::expect;
use profiler_core::attribute::FileGroups;
use profiler_core::profile::{Profile, ProfileBuilder, ValueType};
use profiler_core::view::hotspots::{By, hotspots};
use profiler_core::view::text;

use crate::profiles::{analyze, options, placed, profile};

fn log_stats() -> Profile {
    profile(&[
        ("core::num::from_str std/num.rs:80 < parse_line src/log_stats.rs:17 < main src/main.rs:5", 120),
        ("parse_line src/log_stats.rs:17 < main src/main.rs:5", 40),
        ("Stats::slowest src/log_stats.rs:42 < main src/main.rs:6", 32),
        ("alloc dep/pool.rs:9 < Stats::add src/log_stats.rs:31 < main src/main.rs:5", 9),
        ("main src/main.rs:3", 2),
        ("collect dep/gc.rs:4 < worker dep/gc.rs:70", 20),
        ("park std/park.rs:8", 8),
    ])
}

#[test]
fn without_a_workspace_rows_are_what_the_profile_names() {
    let profile = log_stats();
    let analysis = analyze(&profile, FileGroups::by_path(&profile), &[]);
    expect![[r#"
        cpu.pb.gz · cpu 2.31s · 231 samples over 4.00s

        Lines by cost with calls, shares of 2.31s cpu
           with calls         self  function             place
        █ 73.2% 1.69s      0     0  main                 src/main.rs:5
        █ 69.3% 1.60s  17.3% 400ms  parse_line           src/log_stats.rs:17
        █ 51.9% 1.20s  51.9% 1.20s  core::num::from_str  std/num.rs:80
        ▆ 13.9% 320ms  13.9% 320ms  Stats::slowest       src/log_stats.rs:42
        ▆ 13.9% 320ms      0     0  main                 src/main.rs:6
        ▄  8.7% 200ms   8.7% 200ms  collect              dep/gc.rs:4
        … 5 more lines (--top 0 shows all)

        No workspace was given: add --workspace DIR to see what the lines of your own code cost.
    "#]]
    .assert_eq(&text::plain(&hotspots(&analysis, &options(By::Line, 6)), None));
}

#[test]
fn with_a_workspace_rows_are_its_lines_and_the_rest_is_by_package() {
    let profile = log_stats();
    let analysis = analyze(&profile, placed(&profile), &[]);
    expect![[r#"
        cpu.pb.gz · cpu 2.31s · 231 samples over 4.00s · 88% placed in the workspace

        Lines by cost here, shares of 2.31s cpu
                  here    with calls  function        place
        █ 69.3%  1.60s  69.3%  1.60s  parse_line      src/log_stats.rs:17
        ▆ 13.9%  320ms  13.9%  320ms  Stats::slowest  src/log_stats.rs:42
        ▄  3.9% 90.0ms   3.9% 90.0ms  Stats::add      src/log_stats.rs:31
           0.9% 20.0ms   0.9% 20.0ms  main            src/main.rs:3
        █     0      0  73.2%  1.69s  main            src/main.rs:5
        ▆     0      0  13.9%  320ms  main            src/main.rs:6

        Elsewhere: 12% of 2.31s cpu that no line of the workspace causes, by package or binary
        ▄ 8.7%  200ms  fastjson 1.2.0
        ▄ 3.5% 80.0ms  std 1.95

        88% of 2.31s cpu is in lines of the workspace or called from there; 9% (200ms) in dependencies, 3% (80.0ms) in the toolchain.
        For the reasons: perflens explain cpu.pb.gz
    "#]]
    .assert_eq(&text::plain(&hotspots(&analysis, &options(By::Line, 0)), None));
}

#[test]
fn functions_and_files_are_rows_too() {
    let profile = log_stats();
    let analysis = analyze(&profile, placed(&profile), &[]);
    let table = |by| text::plain(&hotspots(&analysis, &options(by, 0)), None);
    let two: String = [By::Function, By::File].into_iter().map(table).collect();
    expect![[r#"
        cpu.pb.gz · cpu 2.31s · 231 samples over 4.00s · 88% placed in the workspace

        Functions by cost here, shares of 2.31s cpu
                  here    with calls  function        place
        █ 69.3%  1.60s  69.3%  1.60s  parse_line      src/log_stats.rs:1
        ▆ 13.9%  320ms  13.9%  320ms  Stats::slowest  src/log_stats.rs:1
        ▄  3.9% 90.0ms   3.9% 90.0ms  Stats::add      src/log_stats.rs:1
        █  0.9% 20.0ms  87.9%  2.03s  main            src/main.rs:1

        Elsewhere: 12% of 2.31s cpu that no line of the workspace causes, by package or binary
        ▄ 8.7%  200ms  fastjson 1.2.0
        ▄ 3.5% 80.0ms  std 1.95

        88% of 2.31s cpu is in lines of the workspace or called from there; 9% (200ms) in dependencies, 3% (80.0ms) in the toolchain.
        For the reasons: perflens explain cpu.pb.gz
        cpu.pb.gz · cpu 2.31s · 231 samples over 4.00s · 88% placed in the workspace

        Files by cost here, shares of 2.31s cpu
                  here   with calls  file
        █ 87.0%  2.01s  87.0% 2.01s  src/log_stats.rs
        █  0.9% 20.0ms  87.9% 2.03s  src/main.rs

        Elsewhere: 12% of 2.31s cpu that no line of the workspace causes, by package or binary
        ▄ 8.7%  200ms  fastjson 1.2.0
        ▄ 3.5% 80.0ms  std 1.95

        88% of 2.31s cpu is in lines of the workspace or called from there; 9% (200ms) in dependencies, 3% (80.0ms) in the toolchain.
        For the reasons: perflens explain cpu.pb.gz
    "#]]
    .assert_eq(&two);
}

#[test]
fn on_a_terminal_names_give_way_to_numbers() {
    let profile = profile(&[
        (
            "<alloc::vec::Vec<T> as alloc::vec::spec_from_iter::SpecFromIter<T, I>>::from_iter \
             /rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/alloc/src/vec/spec_from_iter.rs:18",
            50,
        ),
        ("main src/main.rs:3", 2),
    ]);
    let analysis = analyze(&profile, FileGroups::by_path(&profile), &[]);
    let text = text::plain(&hotspots(&analysis, &options(By::Line, 0)), Some(72));
    expect![[r#"
        cpu.pb.gz · cpu 520ms · 52 samples over 4.00s

        Lines by cost with calls, shares of 520ms cpu
            with calls          self  function              place
        █ 96.2%  500ms  96.2%  500ms  <alloc:…>::from_iter  /rustc/…m_iter.rs:18
        ▄  3.8% 20.0ms   3.8% 20.0ms  main                  src/main.rs:3

        No workspace was given: add --workspace DIR to see what the lines of
        your own code cost.
    "#]]
    .assert_eq(&text);
    assert!(text.lines().all(|line| unicode_width::UnicodeWidthStr::width(line) <= 72));
}

#[test]
fn filters_are_named_with_what_they_left_out() {
    let profile = log_stats();
    let analysis = analyze(&profile, placed(&profile), &["fn~parse", "file!~nothing"]);
    expect![[r#"
        cpu.pb.gz · cpu 1.60s · 160 samples over 4.00s · 100% placed in the workspace
        Filtered by fn~parse and file!~nothing: 710ms of 2.31s left out

        Files by cost here, shares of 1.60s cpu
                here  with calls  file
        █ 100% 1.60s  100% 1.60s  src/log_stats.rs
        █    0     0  100% 1.60s  src/main.rs
    "#]]
    .assert_eq(&text::plain(&hotspots(&analysis, &options(By::File, 0)), None));
}

#[test]
fn nothing_left_says_why() {
    let profile = log_stats();
    let analysis = analyze(&profile, placed(&profile), &["fn~nobody"]);
    expect![[r#"
        cpu.pb.gz · cpu 0 · 0 samples over 4.00s · 0% placed in the workspace
        Filtered by fn~nobody: 2.31s of 2.31s left out

        The filters left nothing of 2.31s cpu; try fewer of them.
    "#]]
    .assert_eq(&text::plain(&hotspots(&analysis, &options(By::Line, 0)), None));

    let types = vec![ValueType::new("alloc_space", "bytes"), ValueType::new("inuse_space", "bytes")];
    let mut builder = ProfileBuilder::new("test", types);
    builder.push_sample(&[], &[4096, 0], &[]).unwrap();
    let profile = builder.finish().unwrap();
    let analysis = analyze(&profile, FileGroups::by_path(&profile), &[]);
    expect![[r#"
        cpu.pb.gz · inuse_space 0 · 0 records

        This profile holds nothing of the type inuse_space; try --type alloc_space.
    "#]]
    .assert_eq(&text::plain(&hotspots(&analysis, &options(By::Line, 0)), None));
}

#[test]
fn functions_without_lines_come_by_cost_in_a_workspace_too() {
    let profile = profile(&[("work src/a.rs:0 < main src/a.rs:0", 3), ("main src/a.rs:0", 1)]);
    let analysis = analyze(&profile, placed(&profile), &[]);
    expect![[r#"
        cpu.pb.gz · cpu 40.0ms · 4 samples over 4.00s · 0% placed in the workspace

        Functions by cost with calls, as the profile has no lines; shares of 40.0ms cpu
            with calls          self  function  place
           100% 40.0ms  25.0% 10.0ms  main      src/a.rs:1
          75.0% 30.0ms  75.0% 30.0ms  work      src/a.rs:1

        Elsewhere: 100% of 40.0ms cpu that no line of the workspace causes, by package or binary
        █ 100% 40.0ms  src/a.rs

        0% of 40.0ms cpu is in lines of the workspace or called from there; 100% (40.0ms) without a line.
        For the reasons: perflens explain cpu.pb.gz
    "#]]
    .assert_eq(&text::plain(&hotspots(&analysis, &options(By::Line, 0)), None));
}

#[test]
fn a_profile_without_lines_has_functions() {
    let profile = profile(&[("work a.rs:0 < main a.rs:0", 3)]);
    let analysis = analyze(&profile, FileGroups::by_path(&profile), &[]);
    expect![[r#"
        cpu.pb.gz · cpu 30.0ms · 3 samples over 4.00s

        Functions by cost with calls, as the profile has no lines; shares of 30.0ms cpu
           with calls         self  function  place
        █ 100% 30.0ms     0      0  main      a.rs:1
        █ 100% 30.0ms  100% 30.0ms  work      a.rs:1

        0% of 30.0ms cpu ends on a source line, 100% (30.0ms) does not.
        For the reasons: perflens explain cpu.pb.gz
        No workspace was given: add --workspace DIR to see what the lines of your own code cost.
    "#]]
    .assert_eq(&text::plain(&hotspots(&analysis, &options(By::Line, 0)), None));
}

#[test]
fn negative_values_keep_their_sign() {
    let profile = profile(&[("grew src/a.rs:1", 30), ("shrank src/a.rs:2", -12)]);
    let analysis = analyze(&profile, FileGroups::by_path(&profile), &[]);
    expect![[r#"
        cpu.pb.gz · cpu 420ms, net 180ms · 42 samples over 4.00s

        Lines by cost with calls, shares of 420ms cpu
             with calls           self  function  place
        █  71.4%  300ms   71.4%  300ms  grew      src/a.rs:1
        ▆ −28.6% −120ms  −28.6% −120ms  shrank    src/a.rs:2

        No workspace was given: add --workspace DIR to see what the lines of your own code cost.
    "#]]
    .assert_eq(&text::plain(&hotspots(&analysis, &options(By::Line, 0)), None));
}
