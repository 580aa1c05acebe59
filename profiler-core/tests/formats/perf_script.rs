//! The text of `perf script`.

use profiler_core::demangle::demangle;

use crate::{Costs, bytes, functions, labels, lines, profile, types};

#[test]
fn a_recording_reads_like_the_independent_reader_says() {
    let profile = profile(bytes("public/simple.perf-script.txt"));
    let expected = crate::json("public/oracle/simple.perf-script.txt.json");
    let expected: Costs = crate::oracle(&expected["functions"], 1.0)
        .into_iter()
        .filter(|(name, _)| name != "[unknown]")
        .map(|(name, cost)| (demangle(&name).into_owned(), cost))
        .collect();
    assert_eq!(functions(&profile, 0), expected);
    assert_eq!(profile.samples().len(), 136);
    assert_eq!(profile.sum(0).total, 136_136_136);
    assert_eq!(types(&profile), ["cpu-clock/nanoseconds"]);
    assert_eq!(labels(&profile, 0), ["process=simple-terminat", "pid=9", "tid=9"]);
    assert_eq!(profile.notes(), [""; 0]);
}

#[test]
fn places_and_inlined_calls_belong_to_the_frame_before() {
    let text = "\
DOM Worker 21528/21530 [003] 186448.846888:    7 cycles:u: \n\
\t            12 hot (inlined)\n  /src/hot.h:3\n\
\t            12 work+0x2 (/usr/bin/app)\n  work.c:12\n\
\t            40 (anonymous namespace)::run(int) ([JIT] tid 3)\n  run.cc:4 (discriminator 1)\n\
\t            50 [unknown] (/usr/lib/libx.so)\n\
\n\
CUPSManager cup 11320 186448.846889:    1 instructions: \n\
\t            40 (anonymous namespace)::run(int) ([JIT] tid 3)\n  run.cc:5";
    let profile = profile(text);
    assert_eq!(types(&profile), ["cycles:u/count", "instructions/count"]);
    assert_eq!(
        lines(&profile, 0),
        Costs::from([("/src/hot.h:3".into(), (7, 7)), ("work.c:12".into(), (0, 7)), ("run.cc:4".into(), (0, 7))])
    );
    // Three frames: what is inlined is in the location of its caller.
    assert_eq!(profile.samples().stack(0).len(), 3);
    // The last sample has no empty line behind it.
    assert_eq!(lines(&profile, 1), Costs::from([("run.cc:5".into(), (1, 1))]));
    assert_eq!(labels(&profile, 0), ["process=DOM Worker", "pid=21528", "tid=21530"]);
    assert_eq!(labels(&profile, 1), ["process=CUPSManager cup", "pid=11320", "tid=11320"]);
}

#[test]
fn samples_without_a_period_count_one_each() {
    let profile = profile("app 1 2.0: cycles:\n\t 12 main (app)\n\napp 1 3.0: cycles:\n\t 12 main (app)\n");
    assert_eq!(types(&profile), ["samples/count"]);
    assert_eq!(functions(&profile, 0)["main"], (2, 2));
    assert_eq!(profile.meta().duration_ns, Some(1_000_000_000));
}

#[test]
fn what_is_neither_sample_nor_frame_is_counted() {
    let profile = profile("app 1 2.0: 5 cycles:\n\t 12 main (app)\n  ?\n\napp 1 PERF_RECORD_EXIT\nnonsense\n");
    assert_eq!(functions(&profile, 0)["main"], (5, 5));
    crate::assert_note(&profile, "2 lines are neither samples nor frames");
}
