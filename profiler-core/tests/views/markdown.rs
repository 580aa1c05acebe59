use expect_test::expect;
use profiler_core::view::hotspots::{By, hotspots};
use profiler_core::view::markdown;

use crate::profiles::{analyze, options, placed, profile};

#[test]
fn tables_stand_in_fences_and_names_in_code_spans() {
    let profile = profile(&[("work src/a.rs:2 < main src/main.rs:5", 30), ("tick dep/timer.rs:3", 9)]);
    let analysis = analyze(&profile, placed(&profile), &["fn!~nobody"]);
    expect![[r#"
        **cpu.pb.gz** · `cpu` **390ms** · 39 samples over 4.00s · 77% placed in the workspace

        Filtered by `fn!~nobody`: 0 of 390ms left out

        **Lines by cost here**, shares of 390ms `cpu`

        ```text
                 here   with calls  function  place
        █ 76.9% 300ms  76.9% 300ms  work      src/a.rs:2
        ```

        … 1 more line (`--top 0` shows all)

        **Elsewhere**: 23% of 390ms `cpu` that no line of the workspace causes, by package or binary

        ```text
        ▆ 23.1% 90.0ms  fastjson 1.2.0
        ```

        77% of 390ms `cpu` is in lines of the workspace or called from there; 23% (90.0ms) in dependencies.

        For the reasons: `perflens explain cpu.pb.gz`
    "#]]
    .assert_eq(&markdown::render(&hotspots(&analysis, &options(By::Line, 1))));
}
