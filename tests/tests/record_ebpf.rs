//! Recording with eBPF, through the whole of `perflens record`. On the machine that must run all
//! tests they run as root; elsewhere there is nothing to try.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use perflens_tests::cli::Guard;
use perflens_tests::cli::{Report, wait_for};
use perflens_tests::record::{Ground, User, is_root, percent};

/// Sampling error of shares, in percentage points, for a few hundred samples.
const ERROR: f64 = 10.0;

/// Records with eBPF or fails. `None` where no user may do so.
fn record(ground: &Ground, args: &[&str]) -> Option<(Report, String)> {
    if !is_root() {
        return None;
    }
    let profile = ground.profile();
    let all = ["--method", "bpf", "-o", profile.to_str().expect("a plain path")];
    let output = ground.record(User::Same, all.iter().chain(args));
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("with eBPF and unwind tables"), "{}", output.stdout);
    Some((ground.report(&[]), output.stdout))
}

fn share(ground: &Ground, report: &Report, file: &str, text: &str) -> f64 {
    percent(ground.row(report, file, text).costs.cumulative, report.profile.total)
}

#[track_caller]
fn assert_near(share: f64, expected: f64) {
    assert!((share - expected).abs() < ERROR, "{share} %, expected {expected} %");
}

#[test]
fn c_without_frame_pointers_has_its_lines_and_shares() {
    let (ground, _) = Ground::c("hot");
    let Some((report, _)) = record(&ground, &["--frequency", "499", "--", "./hot", "3000"]) else { return };
    assert_near(share(&ground, &report, "hot.c", "/* three quarters */"), 75.0);
    assert_near(share(&ground, &report, "hot.c", "/* one quarter */"), 25.0);
    assert!(percent(report.function("main").costs.cumulative, report.profile.total) > 95.0);
    ground.assert_nothing_lost();
    ground.assert_whole(&report, 99, 1);
    assert_eq!(
        report.profile.notes.first().map(String::as_str),
        Some("hot: with eBPF and unwind tables"),
        "how it was recorded"
    );
    assert_eq!(report.profile.notes, ground.comments());
}

/// The peers: `perf` says where the program was, `addr2line -i` what lines that is.
#[test]
fn hot_lines_are_those_of_perf_and_addr2line() {
    let ground = Ground::new();
    ground.compile("inlined.c", "inlined", "gcc", &["-O2", "-g", "-no-pie"]);
    let Some((report, _)) = record(&ground, &["--frequency", "999", "--", "./inlined", "80000000"]) else { return };
    let peers = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(ground.work()).output();
        let output = output.unwrap_or_else(|error| panic!("{program}, which tests need: {error}"));
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("it is text")
    };
    peers("perf", &["record", "-q", "-F", "999", "-e", "cpu-clock:u", "-o", "perf.data", "./inlined", "80000000"]);
    let addresses = peers("perf", &["script", "-i", "perf.data", "-F", "ip"]);
    let addresses: Vec<&str> = addresses.split_whitespace().filter(|address| address.len() <= 6).collect();
    assert!(addresses.len() > 300, "{addresses:?}");
    let looked_up = peers("addr2line", &[&["-a", "-i", "-e", "inlined"], &addresses[..]].concat());
    let mut by_perf: BTreeMap<i64, f64> = BTreeMap::new();
    let lines: Vec<&str> = looked_up.lines().collect();
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("0x")) {
        let innermost = lines[at + 1].split(' ').next().and_then(|line| line.rsplit_once(':'));
        if let Some((file, line)) = innermost.filter(|(file, _)| file.ends_with("inlined.c")) {
            *by_perf.entry(line.parse().expect("a line")).or_default() += 100.0 / addresses.len() as f64;
            assert!(file.starts_with('/') || file == "inlined.c", "{file}");
        }
    }
    let ours = |line: i64| {
        let row = report.lines.iter().find(|row| row.line == line && row.file.ends_with("inlined.c"));
        row.map_or(0.0, |row| percent(row.costs.flat, report.profile.total))
    };
    for (&line, &share) in &by_perf {
        assert!((ours(line) - share).abs() < ERROR, "line {line}: {} %, by perf {share} %: {by_perf:?}", ours(line));
    }
    assert!(by_perf.keys().map(|&line| ours(line)).sum::<f64>() > 95.0, "{:#?}", report.line_costs());
    let hottest = |line: i64| *by_perf.get(&line).unwrap_or(&0.0) > 20.0;
    assert!(["/* mixes */", "/* calls */"].iter().all(|text| hottest(ground.line("inlined.c", text))), "{by_perf:?}");
}

#[test]
fn rust_has_shares_of_threads() {
    let (ground, _) = Ground::rust("hot");
    let Some((report, _)) = record(&ground, &["--frequency", "499", "--", "./hot", "1500"]) else { return };
    for thread in 1..=3 {
        let filtered = ground.report(&["--filter", &format!("thread=share-{thread}")]);
        assert_near(percent(filtered.profile.total, report.profile.total), 100.0 * f64::from(thread) / 6.0);
    }
}

#[test]
fn waiting_has_its_lines() {
    let (ground, _) = Ground::c("waits");
    let Some((report, _)) = record(&ground, &["--event", "off-cpu", "--", "./waits"]) else { return };
    assert_eq!(report.profile.selected.kind, "off_cpu");
    assert_near(share(&ground, &report, "waits.c", "/* two thirds */"), 66.7);
    assert_near(share(&ground, &report, "waits.c", "/* one third */"), 33.3);
    // 60 × 20 ms and 60 × 10 ms, and what the scheduler adds.
    let seconds = report.profile.total as f64 / 1e9;
    assert!((1.75..4.0).contains(&seconds), "{seconds} s");
}

#[test]
fn allocations_have_their_lines() {
    let (ground, _) = Ground::c("allocates");
    let Some((report, _)) = record(&ground, &["--event", "alloc", "--", "./allocates"]) else { return };
    assert_eq!(report.profile.selected.kind, "alloc_space");
    assert_near(share(&ground, &report, "allocates.c", "/* three quarters */"), 75.0);
    // 400 MB in all, of which the first few may be missed.
    let megabytes = report.profile.total / 1_000_000;
    assert!((280..=480).contains(&megabytes), "{megabytes} MB");
    let kept = ground.report(&["--type", "inuse_space"]);
    assert_near(share(&ground, &kept, "allocates.c", "/* one quarter */"), 100.0);
}

#[test]
fn a_stream_in_a_file_is_a_profile() {
    if !is_root() {
        return;
    }
    let (ground, program) = Ground::c("hot");
    let target = Guard(Command::new(program).arg("1000000").stdout(Stdio::null()).spawn().unwrap());
    let stream = std::fs::File::create(ground.home().join("x.plp")).unwrap();
    // Alone in a shell it takes its orders from the command line.
    let mut recorder = ground.perflens(User::Same);
    recorder.args([
        "__recorder",
        "--method",
        "bpf",
        "--",
        "-p",
        &target.0.id().to_string(),
        "--duration",
        "2",
        "--frequency",
        "499",
    ]);
    recorder.stdin(Stdio::null()).stdout(stream).stderr(Stdio::piped());
    let status = recorder.status().unwrap();
    assert!(status.success());
    let mut report = ground.perflens(User::Same);
    report.arg("report").arg(ground.home().join("x.plp")).args(["--workspace", ".", "--format", "json"]);
    let output = wait_for(
        report.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap(),
        std::time::Duration::from_mins(1),
    );
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let report: Report = serde_json::from_str(&output.stdout).unwrap();
    assert_near(share(&ground, &report, "hot.c", "/* three quarters */"), 75.0);
}

#[test]
fn python_has_its_lines_and_what_they_call() {
    let ground = Ground::new();
    ground.source("hot.py");
    // What is first on the PATH may be a script that finds it by the home folder.
    let python = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    let python = String::from_utf8(python.stdout).unwrap();
    let Some((report, _)) = record(&ground, &["--frequency", "499", "--", python.trim(), "hot.py", "2"]) else {
        return;
    };
    let burn = report.function("burn").costs.cumulative;
    let native = report.function("native").costs.cumulative;
    // Sorting is done by the interpreter itself, and its cost is on the line that calls it.
    let called = share(&ground, &report, "hot.py", "# native");
    assert_near(called, percent(native, report.profile.total));
    assert!(percent(burn + native, report.profile.total) > 80.0, "{:#?}", report.function_costs());
    let hot = ground.row(&report, "hot.py", "# hot").costs.direct.expect("there is a workspace");
    assert!(percent(hot, burn) > 60.0, "{:#?}", report.line_costs());
}
