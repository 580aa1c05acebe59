//! Whose cost is it: cases in which other tools counted a sample twice, dropped it, or gave
//! it to the wrong line, each reduced to the smallest profile that shows it.

use perflens_tests::cli::{Report, Run, report_bytes};
use perflens_tests::mini::Mini;
use perflens_tests::pprof::{Builder, Line};
use tempfile::TempDir;

fn report(text: &str) -> Report {
    report_bytes(Mini::parse(text).gzip(), &[])
}

/// A report of `new` against `base`.
fn compare(new: &str, base: &str, args: &[&str]) -> Report {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("base.pb.gz");
    Mini::parse(base).write_to(&path);
    let args: Vec<&str> = ["--base", path.to_str().expect("a plain path")].iter().chain(args).copied().collect();
    report_bytes(Mini::parse(new).gzip(), &args)
}

/// A report against the workspace whose files follow the profile.
fn placed(text: &str) -> Report {
    let mini = Mini::parse(text);
    let workspace: TempDir = mini.workspace();
    report_bytes(mini.gzip(), &["--workspace", workspace.path().to_str().expect("a plain path")])
}

/// `file:line direct cumulative`, with the workspace file where there is one.
fn direct_costs(report: &Report) -> Vec<String> {
    let rows = report.lines.iter().map(|row| {
        let file = row.place.workspace_file.as_ref().unwrap_or(&row.file);
        format!("{file}:{} {} {}", row.line, row.costs.direct.unwrap_or(0), row.costs.cumulative)
    });
    rows.collect()
}

/// python/cpython#142374
#[test]
fn deep_recursion_counts_once() {
    let stack = vec!["fib.py:3 fib"; 500].join("; ");
    let report = report(&format!("cpu/ns\nfib.py:9 main; {stack} = 1"));
    assert_eq!(report.line_costs(), ["fib.py:3 1 1", "fib.py:9 0 1"]);
    assert_eq!(report.function_costs(), ["fib 1 1", "main 0 1"]);
    assert_eq!((report.files[0].costs.flat, report.files[0].costs.cumulative), (1, 1));
}

/// Nimblesite/Basilisk#251
#[test]
fn mutual_recursion_counts_once() {
    let report = report("cpu/ns\nt.py:1 a; t.py:2 b; t.py:1 a; t.py:2 b = 7");
    assert_eq!(report.line_costs(), ["t.py:1 0 7", "t.py:2 7 7"]);
    assert_eq!(report.function_costs(), ["a 0 7", "b 7 7"]);
}

/// parca-dev/parca#6128
#[test]
fn function_that_comes_back_further_down_counts_once() {
    let report = report("cpu/ns\nx.go:1 A; x.go:2 B; x.go:3 A; x.go:4 D = 50");
    assert_eq!(report.function_costs(), ["A 0 50", "B 0 50", "D 50 50"]);
    assert_eq!(report.line_costs(), ["x.go:1 0 50", "x.go:2 0 50", "x.go:3 0 50", "x.go:4 50 50"]);
}

#[test]
fn function_and_file_are_not_sums_of_lines() {
    let report = report("cpu/ns\nx.go:1 f; x.go:2 f = 10\nx.go:2 f = 1");
    assert_eq!(report.line_costs(), ["x.go:2 11 11", "x.go:1 0 10"]);
    assert_eq!(report.function_costs(), ["f 11 11"]);
    assert_eq!(report.files[0].costs.cumulative, 11);
}

/// google/pprof#323
#[test]
fn comparison_with_itself_is_all_zero() {
    let profile = "cpu/ns\na.rs:1 main; a.rs:2 f = 10\na.rs:3 g = 5";
    // The same lines at other addresses, in another binary.
    let moved = "cpu/ns\napp@0x99 a.rs:1 main; app@0x77 a.rs:2 f = 10\napp@0x55 a.rs:3 g = 5";
    for base in [profile, moved] {
        let report = compare(profile, base, &[]);
        assert_eq!(report.lines.len(), 3);
        let costs = report.lines.iter().map(|row| row.costs).chain(report.functions.iter().map(|row| row.costs));
        for costs in costs {
            assert_eq!((costs.diff_flat, costs.diff_cumulative), (Some(0), Some(0)));
            assert_eq!(costs.base_cumulative, Some(costs.cumulative));
        }
    }
    // Text must not divide by zero either, even if nothing is there.
    let empty = Mini::parse("cpu/ns");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.pb.gz");
    empty.write_to(&path);
    let path = path.to_str().unwrap();
    for format in ["text", "json", "markdown"] {
        let output = Run::new(["report", path, "--base", path, "--format", format]).output();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        assert!(!output.stdout.contains("NaN") && !output.stdout.contains("inf"), "{}", output.stdout);
    }
}

/// brendangregg/FlameGraph#44
#[test]
fn comparison_gives_both_values_of_each_row() {
    let new = "cpu/ns\nx.c:1 main; x.c:2 foo = 2\nx.c:1 main; x.c:2 foo; x.c:3 bar = 4";
    let base = "cpu/ns\nx.c:1 main; x.c:2 foo = 1";
    let report = compare(new, base, &[]);
    let row = |name: &str| {
        let costs = report.function(name).costs;
        [costs.base_flat, costs.base_cumulative, costs.diff_flat, costs.diff_cumulative].map(Option::unwrap)
    };
    assert_eq!(row("foo"), [1, 1, 1, 5]);
    assert_eq!(row("bar"), [0, 0, 4, 4]);
    assert_eq!(row("main"), [0, 1, 0, 5]);
    let base = report.profile.base.as_ref().unwrap();
    assert_eq!((base.total, base.net, base.records), (1, 1, 1));
}

#[test]
fn comparison_has_rows_of_either_side() {
    let report = compare("cpu/ns\na.rs:1 f = 1", "cpu/ns\nb.rs:2 g = 30", &[]);
    let rows: Vec<_> = report.lines.iter().map(|row| (&*row.file, row.line, row.costs.diff_flat.unwrap())).collect();
    assert_eq!(rows, [("b.rs", 2, -30), ("a.rs", 1, 1)], "by falling |difference|");
    assert_eq!(report.line("b.rs", 2).costs.cumulative, 0);
}

/// grafana/pyroscope#408
#[test]
fn normalizing_a_longer_run_of_the_same_leaves_no_difference() {
    let base = "cpu/ns\na.rs:1 main; a.rs:2 f = 10\na.rs:1 main; a.rs:3 g = 7";
    let new = "cpu/ns\na.rs:1 main; a.rs:2 f = 80\na.rs:1 main; a.rs:3 g = 56";
    let plain = compare(new, base, &[]);
    assert_eq!(plain.line("a.rs", 2).costs.diff_flat, Some(70));
    let normalized = compare(new, base, &["--normalize"]);
    for row in &normalized.lines {
        assert_eq!((row.costs.diff_flat, row.costs.diff_cumulative), (Some(0), Some(0)), "{row:?}");
    }
}

#[test]
fn normalizing_rounds_half_away_from_zero_per_sample() {
    let new = "cpu/ns\na.rs:1 f = 1\na.rs:1 f = 1\na.rs:2 g = -1\na.rs:3 h = 3";
    // Net is 4 against 2: every sample is halved, and 0.5 becomes 1.
    let report = compare(new, "cpu/ns\nz.rs:1 z = 2", &["--normalize"]);
    assert_eq!(report.line("a.rs", 1).costs.diff_flat, Some(2));
    assert_eq!(report.line("a.rs", 2).costs.diff_flat, Some(-1));
    assert_eq!(report.line("a.rs", 3).costs.diff_flat, Some(2));
}

/// What a sample is worth may round to nothing; that it was taken stays true, and noise is judged
/// by it.
#[test]
fn normalizing_loses_no_samples() {
    let new = format!("samples/count cpu/ns\n{}a.rs:2 g = 1, 270", "a.rs:1 f = 1, 1\n".repeat(30));
    let base = format!("samples/count cpu/ns\n{}a.rs:2 g = 1, 90", "a.rs:1 f = 1, 1\n".repeat(10));
    let report = compare(&new, &base, &["--normalize"]);
    assert_eq!((report.profile.records, report.profile.samples), (31, Some(31)));
    let row = report.line("a.rs", 1);
    assert_eq!((row.costs.cumulative, row.costs.base_cumulative), (0, Some(10)), "30 times a third of 1");
    assert_eq!((row.costs.samples, row.costs.base_samples), (Some(30), Some(10)));
}

#[test]
fn normalizing_by_an_absurd_factor_does_not_overflow() {
    // Net 1 with large values, scaled up to a large base.
    let new = "cpu/ns\na.rs:1 f = 4_000_000_000_000_000_000\na.rs:2 g = -3_999_999_999_999_999_999";
    let base = "cpu/ns\na.rs:1 f = 9_000_000_000_000_000_000";
    let folder = tempfile::tempdir().unwrap();
    let (new_path, base_path) = (folder.path().join("new.pb"), folder.path().join("base.pb"));
    Mini::parse(new).write_to(&new_path);
    Mini::parse(base).write_to(&base_path);
    let output = Run::report(&new_path).arg("--base").arg(&base_path).arg("--normalize").output();
    assert!(matches!(output.code, Some(0 | 1)), "{:?}: {}", output.code, output.stderr);
    assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
}

#[test]
fn normalizing_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.pb");
    Mini::parse("cpu/ns\na.rs:1 f = 5\na.rs:1 f = -5").write_to(&path);
    let output = Run::report(&path).arg("--base").arg(&path).arg("--normalize").output();
    assert_eq!((output.code, &*output.stdout), (Some(1), ""), "a sum of 0 scales to nothing");
    assert!(output.stderr.contains("empty.pb"), "{}", output.stderr);
}

#[test]
fn normalizing_to_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (new, base) = (folder.path().join("new.pb"), folder.path().join("base.pb"));
    Mini::parse("cpu/ns\na.rs:1 f = 5").write_to(&new);
    for values in ["a.rs:1 f = 0", "a.rs:1 f = 5\na.rs:1 f = -5"] {
        Mini::parse(&format!("cpu/ns\n{values}")).write_to(&base);
        let output = Run::report(&new).arg("--base").arg(&base).arg("--normalize").output();
        assert_eq!((output.code, &*output.stdout), (Some(1), ""), "times 0, nothing is left to compare");
        assert!(output.stderr.contains("the base add up to 0"), "{}", output.stderr);
    }
}

#[test]
fn comparing_different_types_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (cpu, heap) = (folder.path().join("cpu.pb.gz"), folder.path().join("heap.pb.gz"));
    Mini::parse("cpu/ns\na.rs:1 f = 1").write_to(&cpu);
    Mini::parse("inuse_space/bytes\na.rs:1 f = 1").write_to(&heap);
    let output = Run::report(&cpu).arg("--base").arg(&heap).output();
    assert_eq!((output.code, &*output.stdout), (Some(1), ""));
    assert!(output.stderr.contains("cpu") && output.stderr.contains("inuse_space"), "{}", output.stderr);
}

/// golang/go#41338
#[test]
fn values_stay_on_the_line_the_profile_names() {
    let report = report("cpu/ns\nmain.go:10 main.store = 100");
    assert_eq!(report.line_costs(), ["main.go:10 100 100"], "no smoothing over neighbours");
}

/// google/pprof#230
#[test]
fn inlined_function_counts_in_its_own_file_and_its_call_in_the_caller() {
    let report = report("cpu/ns\na.rs:1 main; a.rs:20 outer > b.rs:5 only_inlined = 9");
    assert_eq!(report.line_costs(), ["a.rs:1 0 9", "a.rs:20 0 9", "b.rs:5 9 9"]);
    assert_eq!(report.function("only_inlined").costs.flat, 9);
    assert_eq!(report.function("outer").costs.flat, 0);
}

/// golang/go#64641
#[test]
fn two_instances_of_a_generic_function_in_one_location_are_both_kept() {
    let report = report("cpu/ns\ng.go:20 foo > g.go:9 g[...] > g.go:5 g[...] = 3");
    assert_eq!(report.line_costs(), ["g.go:5 3 3", "g.go:9 0 3", "g.go:20 0 3"]);
    assert_eq!(report.function("g[...]").costs.cumulative, 3, "once per sample");
}

/// mstange/samply#5
#[test]
fn a_line_is_believed_even_if_its_function_lives_elsewhere() {
    let report = report("cpu/ns\nrender.rs:7 Frame::DrawPrimitive; vec/mod.rs:1200 Frame::DrawPrimitive = 4");
    assert_eq!(report.line_costs(), ["render.rs:7 0 4", "vec/mod.rs:1200 4 4"]);
    let names: Vec<_> = report.functions.iter().map(|row| (&*row.name, row.file.as_deref())).collect();
    assert_eq!(
        names,
        [("Frame::DrawPrimitive", Some("render.rs")), ("Frame::DrawPrimitive", Some("vec/mod.rs"))],
        "no file is invented"
    );
}

/// getsentry/symbolic#607
#[test]
fn one_function_may_have_lines_in_two_files() {
    let report = report("cpu/ns\nx.c:10 f #8 > y.inc:3 f = 2\nx.c:11 f #8 = 1");
    assert_eq!(report.line_costs(), ["x.c:10 0 2", "y.inc:3 2 2", "x.c:11 1 1"]);
    assert_eq!(report.function("f").start_line, Some(8));
}

/// rust-lang/rust#39153
#[test]
fn a_line_that_calls_several_functions_sums_them() {
    let report = report("cpu/ns\na.rs:4 main; a.rs:9 one = 3\na.rs:4 main; a.rs:12 two = 5\na.rs:4 main = 1");
    assert_eq!(report.line_costs(), ["a.rs:4 1 9", "a.rs:12 5 5", "a.rs:9 3 3"]);
}

#[test]
fn two_functions_on_one_line_add_up_but_a_sample_with_both_counts_once() {
    let report = report("cpu/ns\na.js:1 f; a.js:1 g = 3\na.js:1 g = 1\na.js:1 e = 1");
    assert_eq!(report.line_costs(), ["a.js:1 5 5"]);
    assert_eq!(report.lines[0].functions, ["g", "f", "e"], "by falling cumulative value, then name");
}

/// Names of functions that no kept sample has on the line do not belong to it.
#[test]
fn functions_of_a_line_are_those_with_samples_there() {
    let report = report("cpu/ns\na.js:1 f = 0\na.js:1 ? = 1\na.js:2 f = 1");
    assert_eq!(report.line("a.js", 1).functions, [""; 0]);
    assert_eq!(report.line("a.js", 2).functions, ["f"]);
    // Here `f` has no sample at all.
    let report = self::report("cpu/ns\na.js:1 f = 0\na.js:1 ? = 1");
    assert_eq!(report.line("a.js", 1).functions, [""; 0]);
    // Here it is a filter that leaves it out.
    let mini = Mini::parse("cpu/ns\na.js:1 f = 1 {k=f}\na.js:1 g = 1 {k=g}\na.js:2 f = 1 {k=g}");
    let report = report_bytes(mini.gzip(), &["--filter", "label.k=g"]);
    assert_eq!(report.line("a.js", 1).functions, ["g"]);
}

/// JuliaPerf/PProf.jl#27
#[test]
fn frames_at_one_address_are_all_kept() {
    let mut builder = Builder::new(&[("cpu", "nanoseconds")]);
    let line = |builder: &mut Builder, name: &str, line| {
        let function_id = builder.function(name, "a.jl", 0);
        [Line { function_id, line, column: 0 }]
    };
    // One location per inlined frame, all at one address.
    let stack: Vec<u64> = [("inner", 3), ("middle", 2), ("outer", 1)]
        .into_iter()
        .map(|(name, number)| {
            let line = line(&mut builder, name, number);
            builder.location(0, 0x1234, &line)
        })
        .collect();
    builder.sample(&stack, &[6]);
    let report = report_bytes(perflens_tests::pprof::gzip(&perflens_tests::pprof::raw(&builder.profile)), &[]);
    assert_eq!(report.line_costs(), ["a.jl:1 0 6", "a.jl:2 0 6", "a.jl:3 6 6"]);
    assert_eq!(report.functions.len(), 3);
}

#[test]
fn two_spellings_of_one_file_in_a_stack_count_once() {
    let report = report("cpu/ns\n./a.rs:1 main; x/../a.rs:1 main; a.rs:1 main = 5\nb//c.rs:2 f; b/./c.rs:2 f = 3");
    assert_eq!(report.line_costs(), ["a.rs:1 5 5", "b/c.rs:2 3 3"]);
    assert_eq!(report.files.len(), 2);
}

#[test]
fn two_paths_of_one_workspace_file_in_a_stack_count_once() {
    let report = placed(
        "
        cpu/ns
        ./src/only_here.rs:1 main; /build/src/only_here.rs:1 main; /build/src/only_here.rs:2 f = 5
//- /src/only_here.rs
fn main() { f() }
fn f() {}
",
    );
    assert_eq!(report.lines.len(), 2, "{:?}", report.line_costs());
    assert!(report.lines.iter().all(|row| row.costs.cumulative == 5), "{:?}", report.line_costs());
    let row = &report.lines[0];
    assert!(row.place.workspace_file.as_ref().is_some_and(|file| file.ends_with("src/only_here.rs")));
    let aliases = row.place.aliases.as_ref().unwrap();
    for path in ["src/only_here.rs", "/build/src/only_here.rs"] {
        assert!(row.file == path || aliases.iter().any(|alias| alias == path), "{path}: {row:?}");
    }
}

const WORKSPACE: &str = "
//- /src/main.rs
fn main() {
    work();
    work();
}
//- /src/work.rs
fn work() {
    library();
}
//- /src/made.rs
// Code generated by a tool. DO NOT EDIT.
fn made() {}
";

#[test]
fn direct_is_what_a_line_causes_libraries_included() {
    let report = placed(&format!(
        "
        cpu/ns
        src/main.rs:2 main; src/work.rs:2 work; /usr/lib/x.rs:9 library = 10
        src/main.rs:3 main; src/work.rs:2 work = 3
        src/main.rs:3 main; libc.so@0x1 = 2
        /usr/lib/x.rs:1 start = 1
        {WORKSPACE}"
    ));
    assert_eq!(
        direct_costs(&report),
        [
            "src/work.rs:2 13 13",
            "src/main.rs:3 2 5",
            "/usr/lib/x.rs:1 0 1",
            "/usr/lib/x.rs:9 0 10",
            "src/main.rs:2 0 10",
        ],
        "by falling |direct|, then file and line"
    );
    let workspace = report.accounting.workspace.unwrap();
    assert_eq!(workspace["shown"], 15);
    assert_eq!(workspace.values().sum::<i64>(), 16);
}

#[test]
fn direct_counts_recursion_once_and_goes_to_the_innermost_own_line() {
    let report = placed(&format!(
        "
        cpu/ns
        src/main.rs:2 main; src/work.rs:2 work; src/work.rs:2 work; /usr/lib/x.rs:9 l; src/main.rs:3 main; /usr/lib/x.rs:9 l = 7
        {WORKSPACE}"
    ));
    let rows = direct_costs(&report);
    assert_eq!(rows[0], "src/main.rs:3 7 7");
    assert_eq!(report.lines.iter().map(|row| row.costs.direct.unwrap()).sum::<i64>(), 7);
}

#[test]
fn direct_cost_of_generated_code_goes_to_the_hand_written_caller() {
    let report =
        placed(&format!("cpu/ns\nsrc/main.rs:2 main; src/made.rs:2 made = 7\nsrc/made.rs:2 made = 1{WORKSPACE}"));
    let rows = direct_costs(&report);
    assert_eq!(rows[0], "src/main.rs:2 7 7");
    assert!(rows[1].ends_with("made.rs:2 0 8"), "{rows:?}");
    let workspace = report.accounting.workspace.unwrap();
    assert_eq!((workspace["shown"], workspace["outside"]), (7, 1));
}

/// benfred/py-spy#549
#[test]
fn a_blank_line_can_have_costs() {
    let mini = Mini::parse("cpu/ns\nsrc/a.py:2 f = 5\n//- /src/a.py\ndef f(\n\n):\n");
    let workspace = mini.workspace();
    let path = workspace.path().join("p.pb.gz");
    mini.write_to(&path);
    let output = Run::new(["annotate", "src/a.py", "--profile"]).arg(&path).folder(workspace.path()).output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let lines: Vec<&str> = output.stdout.lines().collect();
    let first = lines.iter().position(|line| line.contains("def f(")).expect("the source is shown");
    assert!(lines[first + 1].contains('5'), "{}", output.stdout);
    assert_eq!(report_bytes(mini.gzip(), &[]).line("src/a.py", 2).costs.flat, 5);
}

#[test]
fn reach_asks_for_the_best_frame_and_accounting_for_the_leaf() {
    let report = report(
        "
        cpu/ns
        a.rs:1 f; a.rs:? g; ? h; 0x1 = 1000
        a.rs:? g; ? h; 0x1 = 200
        ? h; 0x1 = 30
        0x1 = 4
        ",
    );
    let accounting = report.accounting;
    assert_eq!(accounting.unresolved, 1234);
    let reach = accounting.reach;
    assert_eq!((reach.with_line, reach.no_line, reach.no_file, reach.unresolved), (1000, 200, 30, 4));
}

#[test]
fn filters_on_stacks_keep_whole_samples() {
    let profile = Mini::parse(
        "
        cpu/ns
        a.rs:1 main; b.rs:2 Work = 1 {thread=w1, phase=run}
        a.rs:1 main; app@0x10 c.rs:3 other = 10 {thread=w2, size=48 bytes}
        a.rs:1 main = 100
        ",
    );
    for (filters, total) in [
        (&["fn=work"][..], 1),
        (&["fn!=work"], 110),
        (&["fn~OR"], 1),
        (&["fn^o"], 10),
        (&["fn!^o"], 101),
        (&["fn=main", "fn!~o"], 100),
        (&["file=c.rs"], 10),
        (&["line=2"], 1),
        (&["bin~app"], 10),
        (&["addr=0x10"], 10),
        (&["thread=W1"], 1),
        (&["thread!=w1"], 110),
        (&["label.phase=run"], 1),
        (&["label.phase!~u"], 110),
        (&["label.size=48"], 10),
        (&["fn=nothing"], 0),
    ] {
        let args: Vec<&str> = filters.iter().flat_map(|filter| ["--filter", filter]).collect();
        let report = report_bytes(profile.gzip(), &args);
        assert_eq!(report.profile.total, total, "{filters:?}");
        assert_eq!(report.accounting.filtered, 111 - total, "{filters:?}");
        assert_eq!(report.profile.total_unfiltered, 111, "{filters:?}");
        if total > 0 {
            assert_eq!(report.function("main").costs.cumulative, total, "{filters:?}");
        }
    }
}

#[test]
fn filters_on_frames_cut_frames_and_keep_every_sample() {
    let profile =
        Mini::parse("cpu/ns\na.rs:1 main; b.rs:2 work > lib.rs:9 alloc; lib.rs:8 sys = 5\nlib.rs:9 alloc = 1");
    let report = report_bytes(profile.gzip(), &["--filter", "frame.file!=lib.rs"]);
    assert_eq!(report.line_costs(), ["a.rs:1 0 5", "b.rs:2 5 5"], "the cost goes to the frame that is left");
    assert_eq!((report.profile.total, report.accounting.filtered), (6, 0));
    assert_eq!(report.accounting.unresolved, 1, "nothing is left of the second stack");
}

#[test]
fn totals_of_a_filtered_comparison_are_those_of_kept_samples() {
    let report = compare(
        "cpu/ns\na.rs:1 f = 30 {k=x}\na.rs:2 g = 7",
        "cpu/ns\na.rs:1 f = 10 {k=x}\na.rs:2 g = 5",
        &["--filter", "label.k=x"],
    );
    assert_eq!(report.profile.total, 30);
    assert_eq!(report.profile.base.as_ref().unwrap().total, 10);
    assert_eq!(report.lines.len(), 1);
    assert_eq!(report.lines[0].costs.diff_flat, Some(20));
}
