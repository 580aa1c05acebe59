//! Every profile type that agents and Go programs are known to send: pushed with values that are
//! known, asked for again, and shown with the right total in the right unit. What covers a time adds
//! up, what is the state of a moment does not. The same of the server in `perflens_tests::parca`
//! and of the real one, which is the judge of it.

use std::path::Path;

use expect_test::expect;
use perflens_tests::cli::Run;
use perflens_tests::fetch::{fetch, seconds_ago};
use perflens_tests::mini::Mini;
use perflens_tests::parca::{FakeParca, RealParca, wait_for};

/// A type, the period of its samples, what two profiles of it have, the older first, and what is right.
type Row = (&'static str, i64, [i64; 2], (&'static str, i64));

const NS: &str = "nanoseconds";

const TYPES: &[Row] = &[
    // Samples times their period, which is different for every agent.
    ("parca_agent:samples:count:cpu:nanoseconds:delta", 52_631_578, [3, 4], (NS, 368_421_046)),
    ("parca_agent_cpu:samples:count:cpu:nanoseconds:delta", 10_000_000, [5, 6], (NS, 110_000_000)),
    ("otel_profiling_agent_on_cpu:samples:count:cpu:nanoseconds:delta", 50_000_000, [7, 8], (NS, 750_000_000)),
    ("go_opentelemetry_io_ebpf_profiler:samples:count:cpu:nanoseconds:delta", 50_000_000, [9, 1], (NS, 500_000_000)),
    ("process_cpu:samples:count:cpu:nanoseconds:delta", 10_000_000, [11, 12], (NS, 230_000_000)),
    ("fgprof:samples:count:wallclock:nanoseconds:delta", 10_101_010, [13, 14], (NS, 272_727_270)),
    // Values as they are.
    ("process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta", 10_000_000, [110_000_000, 120_000_000], (NS, 230_000_000)),
    ("fgprof:time:nanoseconds:wallclock:nanoseconds:delta", 10_101_010, [131, 142], (NS, 273)),
    ("parca_agent:wallclock:nanoseconds:samples:count:delta", 1, [2_000_000_000, 500], (NS, 2_000_000_500)),
    ("parca_agent:gpu_time:nanoseconds:gpu_time:nanoseconds:delta", 1, [151, 160], (NS, 311)),
    ("parca_agent:gpu_kernel_time:nanoseconds:gpu_kernel_time:nanoseconds:delta", 1, [171, 180], (NS, 351)),
    ("parca_agent:cuda:nanoseconds:cuda:nanoseconds:delta", 1, [191, 200], (NS, 391)),
    ("parca_agent:gpu_pcsample:count:gpu_pcsample:nanoseconds:delta", 1_000, [21, 22], ("count", 43)),
    ("memory:alloc_objects:count:space:bytes:delta", 524_288, [23, 24], ("count", 47)),
    ("memory:alloc_space:bytes:space:bytes:delta", 524_288, [2_048, 1_024], ("bytes", 3_072)),
    // The state of a moment: the newer alone, though it is the same name as above.
    ("memory:alloc_objects:count:space:bytes", 524_288, [27, 28], ("count", 28)),
    ("memory:alloc_space:bytes:space:bytes", 524_288, [4_096, 5_120], ("bytes", 5_120)),
    ("memory:inuse_objects:count:space:bytes", 524_288, [31, 30], ("count", 30)),
    ("memory:inuse_space:bytes:space:bytes", 524_288, [33, 2_097_152], ("bytes", 2_097_152)),
    ("goroutine:goroutine:count:goroutine:count", 1, [35, 36], ("count", 36)),
    ("mutex:contentions:count:contentions:count", 1, [37, 38], ("count", 38)),
    ("mutex:delay:nanoseconds:contentions:count", 1, [39, 40], (NS, 40)),
    ("block:contentions:count:contentions:count", 1, [41, 42], ("count", 42)),
    ("block:delay:nanoseconds:contentions:count", 1, [43, 44], (NS, 44)),
];

/// Pushes the two profiles of each type, as a user would.
fn push_all(server: &str, folder: &Path) {
    let times = [200, 100].map(seconds_ago);
    for (profile_type, period, values, _) in TYPES {
        let words: Vec<&str> = profile_type.split(':').collect();
        let [name, sample_type, unit, period_type, period_unit, ..] = words[..] else { unreachable!("all have five") };
        let duration = if profile_type.ends_with(":delta") { "!duration 10_000_000_000" } else { "" };
        for ((time, value), line) in times.iter().zip(values).zip(["main.go:11", "main.go:12"]) {
            let file = folder.join("pushed.pb.gz");
            Mini::parse(&format!(
                "{sample_type}/{unit}\n!period {period_type}/{period_unit} {period}\n!time {time}\n{duration}\n\
                 main.go:10 main.main; {line} main.work = {value}\n"
            ))
            .write_to(&file);
            let file = file.to_str().expect("it is text");
            let output = Run::new(["push", file, "--server", server, "--name", name, "--label", "job=types"]).output();
            assert_eq!(output.code, Some(0), "{profile_type}: {}", output.stderr);
            assert!(output.stderr.contains(profile_type), "{profile_type} is not what it became: {}", output.stderr);
        }
    }
}

/// Asks for each type; what is shown of it, in words.
fn ask_all(server: &str, folder: &Path, more: &[&str]) -> String {
    let file = folder.join("fetched.pb.gz");
    let path = file.to_str().expect("it is text");
    let mut words = String::new();
    for (profile_type, _, _, (unit, total)) in TYPES {
        let output = fetch(server, &[&[*profile_type, "-o", path], more].concat());
        assert_eq!(output.code, Some(0), "{profile_type}: {}", output.stderr);
        let report = Run::report(&file).json();
        assert_eq!((report.profile.selected.unit.as_str(), report.profile.total), (*unit, *total), "{profile_type}");
        // A moment has no duration; what adds up is of the time that was asked for.
        let is_delta = profile_type.ends_with(":delta");
        assert_eq!(report.profile.duration_ns, is_delta.then_some(900_000_000_000), "{profile_type}");
        assert_eq!(output.stderr.contains("the newest snapshots of 1 instance"), !is_delta, "{}", output.stderr);
        let text = Run::new(["report", path, "--top", "1"]).output().stdout;
        let head = text.lines().next().and_then(|line| line.strip_prefix("fetched.pb.gz · ")).expect("it has a head");
        words.extend([profile_type, " = ", head, "\n"]);
    }
    words
}

fn check(server: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    push_all(server, folder.path());
    let last = TYPES[TYPES.len() - 1].0;
    wait_for("what was pushed is there", &|| fetch(server, &["--list"]).stdout.contains(last));
    expect![[r#"
        parca_agent:samples:count:cpu:nanoseconds:delta = cpu 368ms · 2 records over 15.0min
        parca_agent_cpu:samples:count:cpu:nanoseconds:delta = cpu 110ms · 2 records over 15.0min
        otel_profiling_agent_on_cpu:samples:count:cpu:nanoseconds:delta = cpu 750ms · 2 records over 15.0min
        go_opentelemetry_io_ebpf_profiler:samples:count:cpu:nanoseconds:delta = cpu 500ms · 2 records over 15.0min
        process_cpu:samples:count:cpu:nanoseconds:delta = cpu 230ms · 2 records over 15.0min
        fgprof:samples:count:wallclock:nanoseconds:delta = wallclock 273ms · 2 records over 15.0min
        process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta = cpu 230ms · 2 records over 15.0min
        fgprof:time:nanoseconds:wallclock:nanoseconds:delta = time 273ns · 2 records over 15.0min
        parca_agent:wallclock:nanoseconds:samples:count:delta = wallclock 2.00s · 2 records over 15.0min
        parca_agent:gpu_time:nanoseconds:gpu_time:nanoseconds:delta = gpu_time 311ns · 2 records over 15.0min
        parca_agent:gpu_kernel_time:nanoseconds:gpu_kernel_time:nanoseconds:delta = gpu_kernel_time 351ns · 2 records over 15.0min
        parca_agent:cuda:nanoseconds:cuda:nanoseconds:delta = cuda 391ns · 2 records over 15.0min
        parca_agent:gpu_pcsample:count:gpu_pcsample:nanoseconds:delta = gpu_pcsample 43 · 2 records over 15.0min
        memory:alloc_objects:count:space:bytes:delta = alloc_objects 47 · 2 records over 15.0min
        memory:alloc_space:bytes:space:bytes:delta = alloc_space 3.00KiB · 2 records over 15.0min
        memory:alloc_objects:count:space:bytes = alloc_objects 28 · 1 record
        memory:alloc_space:bytes:space:bytes = alloc_space 5.00KiB · 1 record
        memory:inuse_objects:count:space:bytes = inuse_objects 30 · 1 record
        memory:inuse_space:bytes:space:bytes = inuse_space 2.00MiB · 1 record
        goroutine:goroutine:count:goroutine:count = goroutine 36 · 1 record
        mutex:contentions:count:contentions:count = contentions 38 · 1 record
        mutex:delay:nanoseconds:contentions:count = delay 40ns · 1 record
        block:contentions:count:contentions:count = contentions 42 · 1 record
        block:delay:nanoseconds:contentions:count = delay 44ns · 1 record
    "#]].assert_eq(&ask_all(server, folder.path(), &[]));
}

#[test]
fn totals_and_units_are_right() {
    check(&FakeParca::start().http.url(""));
}

#[test]
fn the_real_server_says_the_same() {
    let Some(parca) = RealParca::start(&[]) else { return };
    check(&parca.url());
    let folder = tempfile::tempdir().unwrap();
    ask_all(&parca.url(), folder.path(), &["--grpc"]);
}
