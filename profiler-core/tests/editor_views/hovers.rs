use expect_test::expect;
use profiler_core::attribute::FileGroups;
use profiler_core::attribute::calls::{Calls, Target};
use profiler_core::cancel::CancelFlag;
use profiler_core::profile::LineNo;
use profiler_core::view::hover::{Context, Hover, Subject, change_hover, hover, other_types};

use crate::profiles::{CPU, Changed, LOG_STATS, Loaded, log_stats, profile, sampled};

/// The hover of a line with everything that can be asked for.
fn full(loaded: &Loaded, file: &str, line: u32, context: &Context<'_>) -> Hover {
    at(loaded, file, Subject::Line(line), context)
}

fn at(loaded: &Loaded, file: &str, subject: Subject, context: &Context<'_>) -> Hover {
    let (analysis, cancel) = (&loaded.analysis, CancelFlag::new());
    let others: Vec<_> = other_types(&analysis.profile, analysis.value_type)
        .into_iter()
        .map(|other| (other, analysis.costs_of(other, &cancel).unwrap()))
        .collect();
    let others: Vec<_> = others.iter().map(|(other, costs)| (*other, costs)).collect();
    let calls = calls(loaded, file, subject);
    hover(loaded.file(file), subject, &Context { others: &others, calls: Some(&calls), ..*context }).unwrap()
}

fn calls(loaded: &Loaded, file: &str, subject: Subject) -> Calls {
    let analysis = &loaded.analysis;
    let target = match subject {
        Subject::Line(line) => Target::Line(loaded.named(file), LineNo(line)),
        Subject::Function(row) => {
            let row = &analysis.costs.functions[row];
            Target::Function(row.name.clone(), row.file)
        }
    };
    let (profile, groups) = (&analysis.profile, &analysis.groups);
    analysis.stacks.calls(profile, groups, analysis.value_type, &target, &CancelFlag::new()).unwrap()
}

const MEASURED: Context<'static> = Context {
    measured: Some("14:02–14:17"),
    others: &[],
    calls: None,
    services: &[],
    is_edited: false,
    doubt: None,
    awaits: false,
};

#[test]
fn a_line_in_every_respect() {
    let loaded = Loaded::new(&log_stats(), CPU);
    expect![[r#"
        ```text
        parse_line:17   with calls            here            self
        cpu         34.0%    1.20s  11.4%    402ms  10.1%    356ms
        wall         9.1%    1.31s   2.9%    420ms   2.1%    304ms
        alloc       12.0%  49.1MiB      0        0      0        0
        calls       13.9%    489ms  core::num::from_str
                     6.1%    215ms  str::trim_end_matches
                     2.6%   91.0ms  str::trim_start_matches
        called by   33.1%    1.17s  Stats::add
        ```
        Shares of 3.52s cpu · 352 samples · 14:02–14:17 · `src/log_stats.rs` by suffix
    "#]]
    .assert_eq(&full(&loaded, "src/log_stats.rs", 17, &MEASURED).markdown());
}

#[test]
fn a_function_on_the_line_it_starts_at() {
    let loaded = Loaded::new(&log_stats(), CPU);
    let file = "src/log_stats.rs";
    let subject = Subject::at(loaded.file(file), 13).unwrap();
    expect![[r#"
        parse_line      with calls            here            self
        cpu         41.1%    1.45s  14.3%    503ms  12.1%    426ms
        wall         9.1%    1.31s   2.9%    420ms   2.1%    304ms
        alloc       12.0%  49.1MiB      0        0      0        0
        calls       13.9%    489ms  core::num::from_str
                     6.1%    215ms  str::trim_end_matches
                     2.6%   91.0ms  str::trim_start_matches
        called by   40.2%    1.42s  Stats::add

        Shares of 3.52s cpu · 352 samples · 14:02–14:17 · src/log_stats.rs by suffix
    "#]]
    .assert_eq(&at(&loaded, file, subject, &MEASURED).plain());
    assert_eq!(Subject::at(loaded.file(file), 17), Some(Subject::Line(17)));
    assert_eq!(Subject::at(loaded.file(file), 18), None);
}

#[test]
fn less_is_known() {
    let profile = profile("parse_line@13 src/log_stats.rs:17 = 40\n memchr@5 src/log_stats.rs:18 = 2");
    let loaded = Loaded::with_groups(&profile, FileGroups::by_path(&profile), CPU);
    let hover = hover(loaded.file("src/log_stats.rs"), Subject::Line(17), &Context::default()).unwrap();
    expect![[r#"
        ```text
        parse_line:17   with calls            self
        cpu         95.2%   40.0ms  95.2%   40.0ms
        ```
        Shares of 42.0ms cpu · 4 samples over 4.00s
    "#]]
    .assert_eq(&hover.markdown());
}

#[test]
fn what_is_doubtful_is_said_last() {
    let loaded = Loaded::new(&log_stats(), CPU);
    let doubt = Some("file changed since 14:17; line moved from 15");
    let context = Context { is_edited: true, doubt, ..MEASURED };
    let hover = full(&loaded, "src/log_stats.rs", 42, &context);
    expect![[r#"
        ```text
        line 42         with calls            here            self
        cpu          9.2%    324ms   9.2%    324ms   9.2%    324ms
        called by    9.2%    324ms  main
        ```
        `Stats::slowest` · Shares of 3.52s cpu · 352 samples · 14:02–14:17 · `src/log_stats.rs` by suffix. Measured before your edit. File changed since 14:17; line moved from 15.
    "#]].assert_eq(&hover.markdown());
}

#[test]
fn code_of_others_leads_with_my_lines_that_call_it() {
    let stacks = "
        alloc@7 dep/alloc.rs:8 < push@3 dep/vec.rs:4 < grow@90 dep/vec.rs:99 < Stats::add@27 src/log_stats.rs:31 = 500
        push@3 dep/vec.rs:4 < Stats::add@27 src/log_stats.rs:31 = 100
        push@3 dep/vec.rs:4 < Proto::merge@5 gen/proto.rs:9 < main@1 src/main.rs:2 = 50
    ";
    let loaded = Loaded::new(&profile(stacks), CPU);
    expect![[r#"
        ```text
        push:4          with calls            here            self
        cpu          100%    650ms      0        0  23.1%    150ms
        called by   92.3%    600ms  Stats::add  src/log_stats.rs:31
                     7.7%   50.0ms  main  src/main.rs:2
                    76.9%    500ms  grow  dep/vec.rs:99
        calls       76.9%    500ms  alloc
        ```
        Shares of 650ms cpu · 65 samples · 14:02–14:17 · `dep/vec.rs` fastjson `1.2.0`
    "#]]
    .assert_eq(&full(&loaded, "dep/vec.rs", 4, &MEASURED).markdown());
    expect![[r#"
        ```text
        line 9          with calls            here            self
        cpu          7.7%   50.0ms      0        0      0        0
        called by    7.7%   50.0ms  main  src/main.rs:2
        calls        7.7%   50.0ms  push
        ```
        `Proto::merge` · Shares of 650ms cpu · 65 samples · 14:02–14:17 · `gen/proto.rs` generated code. Generated code: what is spent here counts for the hand-written code that calls it.
    "#]].assert_eq(&full(&loaded, "gen/proto.rs", 9, &MEASURED).markdown());
}

#[test]
fn names_are_cut_and_harmless() {
    let name = "<alloc::vec::Vec<T> as alloc::vec::spec_from_iter::SpecFromIter<T, I>>::from_iter::<[u8; 4096]>";
    let stacks =
        format!("{name}@7 src/a.rs:12345 < evil`\u{1b}[31m```*@1 src/a.rs:1 = 500\n {name}2@7 src/a.rs:12345 = 3\n");
    let loaded = Loaded::new(&profile(&stacks), CPU);
    expect![[r#"
        ````text
        line 12345      with calls            here            self
        cpu          100%    503ms   100%    503ms   100%    503ms
        called by   99.4%    500ms  evil`\u{1b}[31m```*
        ````
        `<alloc::vec::Vec<T> as alloc::vec::spec_from_iter::SpecFromIter<T, I>>::from_iter::<[u8; 4096]>` and another function · Shares of 503ms cpu · 50 samples · 14:02–14:17 · `src/a.rs` by suffix. By function: `<alloc::vec::Vec<T> as a…from_iter::<[u8; 4096]>` 99.4%, `<alloc::vec::Vec<T> as a…rom_iter::<[u8; 4096]>2` 0.6%.
    "#]].assert_eq(&full(&loaded, "src/a.rs", 12345, &MEASURED).markdown());
    expect![[r#"
        ```text
        line 1          with calls            here            self
        cpu         99.4%    500ms      0        0      0        0
        calls       99.4%    500ms  <alloc::vec::Vec<…er<T, I>>::from_iter::<[u8; 4096]>
        ```
        ````evil`\u{1b}[31m```*```` · Shares of 503ms cpu · 50 samples · 14:02–14:17 · `src/a.rs` by suffix
    "#]]
    .assert_eq(&full(&loaded, "src/a.rs", 1, &MEASURED).markdown());
}

#[test]
fn a_change_tells_both_sides_and_how_they_compare() {
    let base = LOG_STATS.replace("= 724", "= 1000").replace("= 489", "= 213");
    let changed = Changed::new(&sampled(1, LOG_STATS), &sampled(1, &base));
    let file = "src/log_stats.rs";
    let calls = calls(&changed.new, file, Subject::Line(17));
    let context = Context { calls: Some(&calls), ..MEASURED };
    let hover = change_hover(changed.file(file), Subject::Line(17), &context).unwrap();
    expect![[r#"
        ```text
        parse_line:17   with calls            here            self
        cpu         34.0%    1.20s  11.4%    402ms  10.1%    356ms
        base        26.2%    921ms  11.4%    402ms  10.1%    356ms
        change              +7.8pp             0pp             0pp
        calls       13.9%    489ms  core::num::from_str
                     6.1%    215ms  str::trim_end_matches
                     2.6%   91.0ms  str::trim_start_matches
        called by   33.1%    1.17s  Stats::add
        ```
        cpu 3.52s against 3.52s · 3.52k samples over 4.00s against 3.52k samples over 4.00s · `src/log_stats.rs` by suffix. By value: changes are percentage points of the base's 3.52s cpu. Regressed, ±2.6pp (95 %): 921→1197 samples here.
    "#]].assert_eq(&hover.markdown());

    let changed = Changed::new(&log_stats(), &profile(&base.replace("= 80", "= 90")));
    let function = changed.new.analysis.costs.functions.iter().position(|row| row.name == "Stats::tiny").unwrap();
    let hover = change_hover(changed.file(file), Subject::Function(function), &Context::default()).unwrap();
    expect![[r#"
        ```text
        Stats::tiny     with calls            here            self
        cpu          2.3%   80.0ms   2.3%   80.0ms   2.3%   80.0ms
        base         2.5%   90.0ms   2.5%   90.0ms   2.5%   90.0ms
        change              −0.3pp          −0.3pp          −0.3pp
        ```
        cpu 3.52s against 3.53s · 352 samples over 4.00s against 353 samples over 4.00s · `src/log_stats.rs` by suffix. By value: changes are percentage points of the base's 3.53s cpu. 9→8 samples here: too few to trust.
    "#]].assert_eq(&hover.markdown());
}
