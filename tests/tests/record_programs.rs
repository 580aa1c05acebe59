//! Programs of every kind whose work is known, recorded with eBPF: whole stacks, and known shares on known lines.
//!
//! Waiting, memory and pid namespaces are in `record_ebpf.rs` and `record_processes.rs`; what the recorder alone says of
//! programs like these, in `profiler-ebpf/tests/record`.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Stdio};

use perflens_tests::cli::{Guard, Output, Report};
use perflens_tests::record::{Ground, User, is_root, percent, until};

/// Sampling error of shares, in percentage points, for a few hundred samples.
const ERROR: f64 = 8.0;

/// Records a command with eBPF; `code` is what it ends with. `None` where no user may.
fn record_ending(ground: &Ground, code: i32, args: &[&str]) -> Option<(Report, Output)> {
    if !is_root() {
        return None;
    }
    let profile = ground.profile();
    let all = ["--method", "bpf", "--frequency", "499", "-o", profile.to_str().expect("a plain path")];
    let output = ground.record(User::Same, all.iter().chain(args));
    assert_eq!(output.code, Some(code), "{}{}", output.stdout, output.stderr);
    let report = ground.report(&[]);
    ground.assert_nothing_lost();
    Some((report, output))
}

fn record(ground: &Ground, args: &[&str]) -> Option<Report> {
    record_ending(ground, 0, args).map(|(report, _)| report)
}

fn share(ground: &Ground, report: &Report, file: &str, text: &str) -> f64 {
    percent(ground.row(report, file, text).costs.cumulative, report.profile.total)
}

#[track_caller]
fn assert_near(what: &str, share: f64, expected: f64) {
    assert!((share - expected).abs() < ERROR, "{what}: {share} %, expected {expected} %");
}

#[track_caller]
fn assert_shares(ground: &Ground, report: &Report, file: &str, shares: &[(&str, f64)]) {
    for (text, expected) in shares {
        assert_near(text, share(ground, report, file, text), *expected);
    }
}

/// The project of `tests/projects`, built for release with line tables.
fn quarters(ground: &Ground) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("projects/tokio");
    for file in ["Cargo.toml", "Cargo.lock", "src/main.rs"] {
        let to = ground.work().join(file);
        std::fs::create_dir_all(to.parent().expect("it has a folder")).expect("a folder");
        std::fs::copy(from.join(file), to).expect("the source is there");
    }
    // Crates are compiled once for all runs.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("quarters");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--locked", "--quiet"]).current_dir(ground.work());
    let built = cargo.env("CARGO_TARGET_DIR", &target).output().expect("cargo is there");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    std::fs::copy(target.join("release/quarters"), ground.work().join("quarters")).expect("it was built");
}

#[test]
fn rust_by_recursion_closures_generics_and_tokio() {
    let ground = Ground::new();
    quarters(&ground);
    let Some(report) = record(&ground, &["--", "./quarters", "1500"]) else { return };
    ground.assert_whole(&report, 99, 1);
    let quarters = [("// recursion", 25.0), ("// closure", 25.0), ("// generic", 25.0), ("// async", 25.0)];
    assert_shares(&ground, &report, "src/main.rs", &quarters);
    // What awaits is charged with what it awaits, once, however it is polled.
    assert_shares(&ground, &report, "src/main.rs", &[("// awaits", 25.0)]);
    let inner = report.functions.iter().filter(|row| row.name.starts_with("async fn")).count();
    assert!(inner > 0, "{:#?}", report.function_costs());
    // And by the threads of tokio it is told apart.
    let workers = ground.report(&["--filter", "thread^tokio"]);
    assert_near("threads of tokio", percent(workers.profile.total, report.profile.total), 25.0);
}

#[test]
fn cpp_with_templates_and_exceptions() {
    let (ground, _) = Ground::cpp("throws");
    let Some(report) = record(&ground, &["--", "./throws", "2000"]) else { return };
    ground.assert_whole(&report, 99, 1);
    assert_shares(&ground, &report, "throws.cpp", &[("// template", 50.0), ("// handler", 50.0)]);
    let instance = "Repeat<unsigned long, 2>::run(unsigned long)";
    assert!(report.functions.iter().any(|row| row.name == instance), "{:#?}", report.function_costs());
}

#[test]
fn code_that_is_loaded_while_it_runs() {
    let (ground, _) = Ground::c("loads");
    let flags = ["-O2", "-g", "-fomit-frame-pointer", "-shared", "-fPIC", "-DLIBRARY"];
    ground.compile("loads.c", "plugin.so", "gcc", &flags);
    let Some(report) = record(&ground, &["--", "./loads", "./plugin.so", "2500"]) else { return };
    ground.assert_whole(&report, 99, 1);
    let shares = [("/* of the library */", 75.0), ("/* calls the library */", 75.0), ("/* of the program */", 25.0)];
    assert_shares(&ground, &report, "loads.c", &shares);
}

#[test]
fn children_and_the_programs_they_become() {
    let (ground, _) = Ground::c("family");
    let Some(report) = record(&ground, &["--", "./family", "1200"]) else { return };
    ground.assert_whole(&report, 99, 3);
    let third = 100.0 / 3.0;
    let shares = [("/* itself */", third), ("/* after fork */", third), ("/* after exec */", third)];
    assert_shares(&ground, &report, "family.c", &shares);
}

#[test]
fn waiting_for_a_lock_is_charged_to_who_waits() {
    let (ground, _) = Ground::c("locks");
    if !is_root() {
        return;
    }
    let profile = ground.profile();
    let args = ["--method", "bpf", "--event", "off-cpu", "-o", profile.to_str().unwrap(), "--", "./locks"];
    let output = ground.record(User::Same, args);
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    let report = ground.report(&[]);
    let seconds = |text: &str| ground.row(&report, "locks.c", text).costs.cumulative as f64 / 1e9;
    let (sleeps, waits) = (seconds("/* sleeps with the lock */"), seconds("/* waits for the lock */"));
    // Fifty times 20 ms, and what the scheduler adds.
    assert!((0.95..2.5).contains(&sleeps), "{sleeps} s");
    assert!((0.85..1.15).contains(&(waits / sleeps)), "{waits} s of waiting for {sleeps} s");
}

#[test]
fn a_program_that_dies_keeps_what_it_cost() {
    let (ground, _) = Ground::c("dies");
    let Some((report, output)) = record_ending(&ground, 1, &["--", "./dies", "2000"]) else { return };
    assert!(output.stderr.contains("dies ended with signal 11; what was recorded until then is kept"), "{output:?}");
    ground.assert_whole(&report, 99, 1);
    assert_shares(&ground, &report, "dies.c", &[("/* three quarters */", 75.0), ("/* one quarter */", 25.0)]);
}

#[test]
fn go_without_debug_info_has_its_lines() {
    let ground = Ground::new();
    ground.compile("hot.go", "hot", "go", &["build", "-ldflags=-s -w"]);
    let Some(report) = record(&ground, &["--", "./hot", "3"]) else { return };
    ground.assert_whole(&report, 99, 1);
    let hot: i64 = ["// hot", "// calls"].iter().map(|text| ground.row(&report, "hot.go", text).costs.flat).sum();
    assert!(percent(hot, report.profile.total) > 60.0, "{:#?}", report.line_costs());
    assert_shares(&ground, &report, "hot.go", &[("burn(400000)", 96.0)]);
}

#[test]
fn node_has_its_functions() {
    let ground = Ground::new();
    ground.source("hot.js");
    let Some(report) = record(&ground, &["--", "node", "hot.js", "2"]) else { return };
    ground.assert_whole(&report, 99, 1);
    assert!(percent(report.function("burn").costs.cumulative, report.profile.total) > 60.0);
    let burn = report.functions.iter().find(|row| row.name == "burn").expect("it has a row");
    assert!(burn.file.as_ref().is_some_and(|file| file.ends_with("hot.js")), "{burn:?}");
}

/// Compiles the Java program.
fn java() -> Ground {
    let ground = Ground::new();
    let source = ground.source("Hot.java");
    let compiled = Command::new("javac").arg("-d").arg(ground.work()).arg(source).status();
    assert!(compiled.is_ok_and(|status| status.success()), "a Java compiler is there");
    ground
}

#[test]
fn a_java_that_runs_already_names_its_methods_when_asked() {
    let ground = java();
    let mut target = Command::new("java");
    // By one compiler, which is done with a method once it has compiled it: the names are of that moment.
    target.args(["-XX:+PreserveFramePointer", "-XX:TieredStopAtLevel=1", "-cp", ".", "Hot", "10000000"]);
    target.current_dir(ground.work());
    let target = Guard(target.stdin(Stdio::null()).spawn().unwrap());
    let pid = target.0.id().to_string();
    until("its code is compiled", || {
        let asked = Command::new("jcmd").args([&pid, "Compiler.codelist"]).output().expect("it is beside java");
        let listed = String::from_utf8_lossy(&asked.stdout).into_owned();
        ["Hot.expensive", "Hot.cheap"].iter().all(|method| listed.contains(method))
    });
    if record(&ground, &["-p", &pid, "--duration", "1500ms"]).is_none() {
        return;
    }
    let advice = format!("run jcmd {pid} Compiler.perfmap while it is recorded");
    assert!(ground.comments().iter().any(|note| note.contains(&advice)), "{:?}", ground.comments());
    let asked = Command::new("jcmd").args([&pid, "Compiler.perfmap"]).output().unwrap();
    assert!(asked.status.success(), "{asked:?}");
    std::fs::remove_file(ground.profile()).unwrap();
    let report = record(&ground, &["-p", &pid, "--duration", "2s"]).unwrap();
    std::fs::remove_file(format!("/tmp/perf-{pid}.map")).unwrap();
    assert!(!ground.comments().iter().any(|note| note.contains("jcmd")), "{:?}", ground.comments());
    ground.assert_whole(&report, 98, 1);
    // The compiler puts one method into another as it likes.
    let own = report.functions.iter().filter(|row| row.name.contains(" Hot.")).map(|row| row.costs.flat).sum::<i64>();
    assert!(percent(own, report.profile.total) > 80.0, "{:#?}", report.function_costs());
}

#[test]
fn java_has_its_methods() {
    let ground = java();
    let Some((report, output)) = record_ending(&ground, 0, &["--", "java", "-cp", ".", "Hot", "6000"]) else { return };
    ground.assert_whole(&report, 98, 10);
    let of = |method: &str| {
        let row = report.functions.iter().find(|row| row.name.contains(&format!("Hot.{method}(")));
        let row = row.unwrap_or_else(|| panic!("{method}: {:#?}", report.function_costs()));
        row.costs.cumulative
    };
    let (expensive, cheap) = (of("expensive"), of("cheap"));
    assert_near("expensive", percent(expensive, expensive + cheap), 75.0);
    assert!(percent(of("burn"), report.profile.total) > 80.0, "{:#?}", report.function_costs());
    assert!(output.stderr.contains("for lines record with JFR"), "{}", output.stderr);
}

#[test]
fn what_numpy_costs_is_on_the_lines_that_call_it() {
    let ground = Ground::new();
    ground.source("arrays.py");
    if !is_root() {
        return;
    }
    // What is first on the PATH may be a script that finds it by the home folder.
    let python = Command::new("python3").args(["-c", "import numpy, sys; print(sys.executable)"]).output().unwrap();
    assert!(python.status.success(), "tests/install-profilers installs numpy");
    let python = String::from_utf8(python.stdout).unwrap();
    let profile = ground.profile();
    let mut command = ground.perflens(User::Same);
    command.args(["record", "--method", "bpf", "--frequency", "499", "-o"]).arg(&profile).arg("--");
    // Long enough that importing numpy, which loads one library after the other, is little of it.
    command.args([python.trim(), "arrays.py", "8"]).env("OPENBLAS_NUM_THREADS", "1").stdin(Stdio::null());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let report = ground.report(&[]);
    ground.assert_whole(&report, 99, 1);
    // The program has measured itself; what is beside its three parts is numpy being imported.
    let measured = said.lines().find(|line| line.starts_with("sort=")).expect("it says so");
    let expected = |name: &str| -> f64 {
        let part = measured.split(' ').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        part.expect("it is there").parse().expect("a number")
    };
    let cost = |text: &str| ground.row(&report, "arrays.py", text).costs.cumulative;
    let calls_own = ground.line("arrays.py", "\"own\", own)");
    let of_own = report.lines.iter().find(|row| row.line == calls_own && row.file.ends_with("arrays.py"));
    let own = of_own.map_or(0, |row| row.costs.cumulative);
    let (sort, product) = (cost("# sort"), cost("# product"));
    let all = sort + product + own;
    assert!(percent(all, report.profile.total) > 70.0, "{:#?}", report.line_costs());
    for (name, cost) in [("sort", sort), ("product", product), ("own", own)] {
        assert_near(name, percent(cost, all), expected(name));
    }
    // numpy's own frames are below that line, in a library.
    let direct = ground.row(&report, "arrays.py", "# sort").costs.direct.expect("there is a workspace");
    assert!(percent(direct, sort) > 90.0, "{direct} of {sort}");
}
