//! callgrind, cachegrind and Xdebug.

use profiler_core::profile::LineDetail;

use crate::{assert_note, bytes, error, functions, lines, profile, types};

#[test]
fn own_costs_of_lines_are_exact_and_those_with_calls_leave_recursion_out() {
    let profile = profile(bytes("made/c/callgrind.out"));
    let expected = crate::json("made/oracle/callgrind.out.json");
    let ours = lines(&profile, 0);
    assert_eq!(types(&profile), ["Ir/count"]);
    assert_eq!(profile.sum(0).total, 374_230);
    for row in expected["demo_lines"].as_array().unwrap() {
        let (line, own, called) = (&row[1], row[2].as_i64().unwrap(), row[3].as_i64().unwrap());
        // The recursive call counts again on each level.
        let is_recursive = line == 15;
        let with_calls = if is_recursive { own } else { own + called };
        assert_eq!(ours[&format!("/home/dev/src/c/demo.c:{line}")], (own, with_calls), "{row}");
    }
    for row in expected["lines"].as_array().unwrap().iter().filter(|row| row[0] != "???") {
        let path =
            row[0].as_str().unwrap().replace("./elf/./elf/", "elf/elf/").replace("./string/../sysdeps", "sysdeps");
        let path = path.replace("./elf/../sysdeps", "sysdeps");
        assert_eq!(ours[&format!("{path}:{}", row[1])].0, row[2].as_i64().unwrap(), "{row}");
    }
    assert_note(&profile, "calls are part of a recursion");
}

#[test]
fn functions_have_what_they_call() {
    let profile = profile(bytes("made/c/callgrind.out"));
    let functions = functions(&profile, 0);
    // All levels of the recursion are one function, with its cost once.
    assert_eq!(functions["fib"], (87_784, 87_784));
    assert_eq!(functions["hash"], (140_007, 140_007));
    assert!(!functions.contains_key("fib'2"));
    let (own, with_calls) = functions["main"];
    assert!(own < 1_000 && with_calls > 249_000 && with_calls < 374_230, "{own} {with_calls}");
}

#[test]
fn xdebug_counts_time_and_memory() {
    let profile = profile(bytes("public/xdebug3.cachegrind"));
    assert_eq!(types(&profile), ["time/nanoseconds", "memory/bytes"]);
    assert_eq!(profile.meta().default_value_type, 0);
    let ours = lines(&profile, 0);
    assert_eq!(ours["file2.c:20"], (7_000, 7_000));
    assert_eq!(ours["file1.c:51"], (1_000, 4_000));
    assert_eq!(ours["file1.c:16"], (200, 8_200));
    assert_eq!(functions(&profile, 0)["main"], (200, 8_200));
    assert_eq!(functions(&profile, 1)["func1"], (15_000, 20_000));
}

#[test]
fn cachegrind_knows_no_calls_and_says_so() {
    let profile = profile(bytes("made/c/cachegrind.out"));
    assert_eq!(profile.meta().line_detail, LineDetail::FlatOnly);
    assert_note(&profile, "self only");
    let ours = lines(&profile, 0);
    assert!(ours.values().all(|(own, with_calls)| own == with_calls));
    assert_eq!(ours["/home/dev/src/c/demo.c:22"].0, 80_001);
}

#[test]
fn code_inlined_from_another_file_is_on_its_own_line_and_in_its_function() {
    let text = "events: Ir\nfl=a.c\nfn=f\n1 10\nfi=b.h\n7 5\nfe=a.c\n2 1\n+1 1\n* 1\n-2 1\n0x10 1\n";
    let profile = profile(text);
    let ours = lines(&profile, 0);
    assert_eq!((ours["a.c:1"], ours["b.h:7"], ours["a.c:3"], ours["a.c:16"]), ((11, 11), (5, 5), (2, 2), (1, 1)));
    assert_eq!(functions(&profile, 0)["f"], (15, 20));
}

#[test]
fn calls_into_other_files_count_for_a_file_once() {
    let text = "events: Ir\nfl=a.c\nfn=main\n1 1\ncfn=near\ncalls=1 5\n2 50\ncfi=b.c\ncfn=far\ncalls=1 9\n3 70\n\
                fn=near\n5 20\ncfi=b.c\ncfn=far\ncalls=1 9\n6 30\nfl=b.c\nfn=far\n9 100\n";
    let profile = profile(text);
    let analysis = profiler_core::attribute::analysis::Analysis::new(
        std::sync::Arc::new(profile.clone()),
        profiler_core::attribute::FileGroups::by_path(&profile),
        0,
        &[],
        &profiler_core::cancel::CancelFlag::new(),
    )
    .unwrap();
    let files: Vec<_> = analysis
        .costs
        .files
        .iter()
        .map(|row| (analysis.groups.path(&profile, row.file), row.cost.flat, row.cost.cumulative))
        .collect();
    assert_eq!(files, [("a.c", 21, 121), ("b.c", 100, 100)]);
    assert_eq!(functions(&profile, 0)["main"], (1, 121));
}

#[test]
fn what_counts_nothing_is_refused() {
    assert!(error("# callgrind format\nversion: 1\n").contains("does not say what it counts"));
    assert!(error("# callgrind format\nevents: Ir\nfn=a\n").contains("holds no costs"));
}
