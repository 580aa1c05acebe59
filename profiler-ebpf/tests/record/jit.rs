//! Runtimes that compile while they run: stacks through code that no file has.

use std::path::{Path, PathBuf};
use std::process::Command;

use profiler_ebpf::protocol::StackEnd;

use crate::recording::{Held, Programs, Recording, possible, start};

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/programs").join(name)
}

/// How long the unwind tables of a runtime may take, from its `exec` on: 30 MB of code are a tenth of a second on a
/// machine of its own, and several on a busy one. What is sampled until then has one frame, whoever unwinds.
const TABLES: u64 = 500_000_000;

/// Share of settled samples that are complete, and of those that go through memory without a file, in percent.
fn shares(recording: &Recording) -> (f64, f64) {
    let anonymous: Vec<_> = recording.mappings.iter().filter(|mapping| mapping.path.is_empty()).collect();
    let (mut all, mut complete, mut compiled) = (0.0, 0.0, 0.0);
    let began = recording.processes.iter().map(|process| process.time_ns).max().unwrap_or_default();
    for sample in recording.settled().filter(|sample| sample.time_ns > began + TABLES) {
        all += 1.0;
        complete += f64::from(u8::from(sample.end == StackEnd::Complete as i32));
        let within = |pc: &u64| anonymous.iter().any(|mapping| (mapping.start..mapping.end).contains(pc));
        compiled += f64::from(u8::from(sample.user.iter().any(within)));
    }
    assert!(all > 300.0, "{all} samples");
    (complete * 100.0 / all, compiled * 100.0 / all)
}

#[test]
fn node() {
    if !possible() {
        return;
    }
    let program = source("busy.js");
    let held = Held::by(
        Command::new("sh").args(["-c", "read _; exec node --perf-basic-prof-only-functions \"$0\" 2.5"]).arg(program),
    );
    let recording = Recording::of_held(held, start(999));
    assert!(recording.processes.iter().any(|process| process.runtime == "node"), "{:?}", recording.processes);
    let (complete, compiled) = shares(&recording);
    // Memory becomes code all the while, and on a busy machine the recorder hears of it late.
    assert!(complete >= 95.0, "{complete} %");
    assert!(compiled > 60.0, "{compiled} %");
    let maps = recording.processes.iter().map(|process| format!("/tmp/perf-{}.map", process.namespace_pid));
    maps.for_each(|map| drop(std::fs::remove_file(map)));
}

#[test]
fn java_with_frame_pointers() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let status = Command::new("javac").arg("-d").arg(programs.path(".")).arg(source("Busy.java")).status();
    assert!(status.is_ok_and(|status| status.success()), "a Java compiler is there");
    let held = Held::by(
        Command::new("sh")
            .args(["-c", "read _; exec java -XX:+PreserveFramePointer -cp \"$0\" Busy 4"])
            .arg(programs.path(".")),
    );
    let recording = Recording::of_held(held, start(999));
    assert!(recording.processes.iter().any(|process| process.runtime == "jvm"), "{:?}", recording.processes);
    let (complete, compiled) = shares(&recording);
    assert!(complete >= 98.0, "{complete} %");
    assert!(compiled > 30.0, "{compiled} %");
}
