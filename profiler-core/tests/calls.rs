//! Callers and callees of lines and functions.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fmt::Write;

use expect_test::{Expect, expect};
use profiler_core::attribute::calls::Target;
use profiler_core::attribute::{FileGroups, Filter, Stacks};
use profiler_core::cancel::CancelFlag;
use profiler_core::profile::{Line, LineNo, LocId, MapId, Profile, ProfileBuilder, ValueType};

/// Stacks are written root first, as `function:line function:line = value`; every function is
/// in the file `NAME.rs` named after it, and `a:1<b:2` is `a` inlined into `b`.
fn profile(stacks: &str) -> Profile {
    let mut builder = ProfileBuilder::new("test", vec![ValueType::new("cpu", "nanoseconds")]);
    for stack in stacks.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (frames, value) = stack.split_once(" = ").unwrap();
        let mut stack: Vec<LocId> = frames
            .split(' ')
            .map(|location| {
                let lines: Vec<Line> = location
                    .split('<')
                    .map(|frame| {
                        let (name, line) = frame.split_once(':').unwrap();
                        let function = builder.function(name, "", &format!("{name}.rs"), LineNo(1)).unwrap();
                        Line { function, line: LineNo(line.parse().unwrap()), column: 0 }
                    })
                    .collect();
                builder.location(MapId::NONE, 0, &lines).unwrap()
            })
            .collect();
        stack.reverse();
        builder.push_sample(&stack, &[value.parse().unwrap()], &[]).unwrap();
    }
    builder.finish().unwrap()
}

/// `target` is `function` or `function:line`.
fn check(stacks: &str, filters: &[&str], target: &str, expect: &Expect) {
    let profile = profile(stacks);
    let groups = FileGroups::by_path(&profile);
    let filters: Vec<Filter> = filters.iter().map(|filter| filter.parse().unwrap()).collect();
    let prepared = Stacks::new(&profile, &groups, &filters);
    let (name, line) = target.split_once(':').map_or((target, None), |(name, line)| (name, Some(line)));
    let file = (0u32..)
        .map(profiler_core::profile::FileId)
        .take(profile.files().len())
        .find(|&file| profile.path(file) == format!("{name}.rs"))
        .map(|file| groups.of(file))
        .unwrap_or_default();
    let target = match line {
        Some(line) => Target::Line(file, LineNo(line.parse().unwrap())),
        None => Target::Function(name.to_owned(), file),
    };
    let calls = prepared.calls(&profile, &groups, 0, &target, &CancelFlag::new()).unwrap();
    let mut text = format!("cumulative {} flat {} root {}\n", calls.cumulative, calls.flat, calls.root);
    for (kind, rows) in [("caller", &calls.callers), ("callee", &calls.callees)] {
        for row in rows {
            writeln!(text, "{kind} {} {} at line {}", row.value, row.name, row.line.0).unwrap();
        }
    }
    expect.assert_eq(&text);
}

#[test]
fn callers_of_a_function_in_its_own_stack_twice_are_both_listed() {
    check(
        "a:1 b:2 a:3 d:4 = 50",
        &[],
        "a",
        &expect![[r"
            cumulative 50 flat 0 root 50
            caller 50 b at line 2
            callee 50 b at line 2
            callee 50 d at line 4
        "]],
    );
}

#[test]
fn a_sample_counts_once_per_neighbour_however_deep_the_recursion() {
    check(
        "main:1 f:2 f:2 f:2 = 7\nmain:9 f:3 = 1",
        &[],
        "f",
        &expect![[r"
            cumulative 8 flat 8 root 0
            caller 8 main at line 1
            caller 7 f at line 2
            callee 7 f at line 2
        "]],
    );
}

#[test]
fn a_line_has_callers_and_callees_of_its_own() {
    check(
        "main:1 f:2 g:5 = 10\nmain:1 f:3 g:5 = 20\nmain:1 f:2 h:6 = 4\nf:2 = 1",
        &[],
        "f:2",
        &expect![[r"
            cumulative 15 flat 1 root 1
            caller 14 main at line 1
            callee 10 g at line 5
            callee 4 h at line 6
        "]],
    );
}

#[test]
fn inlined_calls_are_calls() {
    check(
        "main:1 a:7<b:2 = 3",
        &[],
        "b",
        &expect![[r"
            cumulative 3 flat 0 root 0
            caller 3 main at line 1
            callee 3 a at line 7
        "]],
    );
}

#[test]
fn filters_apply_to_callers_too() {
    check(
        "main:1 f:2 g:5 = 10\nother:1 f:2 g:5 = 20",
        &["fn!=other", "frame.fn!=g"],
        "f",
        &expect![[r"
            cumulative 10 flat 10 root 0
            caller 10 main at line 1
        "]],
    );
}

#[test]
fn negative_values_stay_negative() {
    check(
        "main:1 f:2 = -5\nmain:1 f:2 = 2\nother:1 f:2 = 9",
        &[],
        "f",
        &expect![[r"
            cumulative 6 flat 6 root 0
            caller 9 other at line 1
            caller -3 main at line 1
        "]],
    );
}

#[test]
fn an_unknown_target_has_no_calls() {
    check(
        "main:1 f:2 = 5",
        &[],
        "nobody",
        &expect![[r"
        cumulative 0 flat 0 root 0
    "]],
    );
}
