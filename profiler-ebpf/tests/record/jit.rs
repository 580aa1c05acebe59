//! Runtimes that compile while they run: stacks through code that no file has.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use profiler_ebpf::protocol::StackEnd;

use crate::recording::{Held, Programs, Recording, expecting, possible, start};

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/programs").join(name)
}

/// Where a program of this name is.
fn program(name: &str) -> PathBuf {
    let folders = std::env::var_os("PATH").expect("programs are somewhere");
    let found = std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("{name} is installed; tests/run does that"))
}

/// How long the unwind tables of libraries that Java loads by itself may take, from `exec` on: a tenth of a second on a
/// machine of its own, and several on a busy one. What is sampled until then has one frame, whoever unwinds.
const LIBRARIES: u64 = 500_000_000;

/// Share of settled samples that are complete, and of those that go through memory without a file, in percent. What is
/// sampled within a time after `exec`, in nanoseconds, doesn't count.
fn shares(recording: &mut Recording, starting: u64) -> (f64, f64) {
    let anonymous: Vec<_> = recording.mappings.iter().filter(|mapping| mapping.path.is_empty()).cloned().collect();
    let (mut all, mut complete, mut compiled) = (0.0, 0.0, 0.0);
    let began = recording.processes.iter().map(|process| process.time_ns).max().unwrap_or_default();
    let settled: Vec<_> = recording.settled().filter(|sample| sample.time_ns > began + starting).cloned().collect();
    for sample in settled {
        all += 1.0;
        let is_complete = sample.end == StackEnd::Complete as i32;
        complete += f64::from(u8::from(is_complete));
        if !is_complete {
            let after = (sample.time_ns - began) / 1_000_000;
            let names = recording.names(&sample);
            let _ = writeln!(io::stderr(), "{after} ms: ended by {}: {names:?}", sample.end);
        }
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
    let script = source("busy.js");
    let held = Held::by(
        Command::new("sh").args(["-c", "read _; exec node --perf-basic-prof-only-functions \"$0\" 2.5"]).arg(script),
    );
    let mut recording = Recording::of_held(held, expecting(start(999), &[&program("node")]));
    assert!(recording.processes.iter().any(|process| process.runtime == "node"), "{:?}", recording.processes);
    let (complete, compiled) = shares(&mut recording, 0);
    assert!(complete >= 99.0, "{complete} %");
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
    let mut recording = Recording::of_held(held, expecting(start(999), &[&program("java")]));
    assert!(recording.processes.iter().any(|process| process.runtime == "jvm"), "{:?}", recording.processes);
    let (complete, compiled) = shares(&mut recording, LIBRARIES);
    assert!(complete >= 98.0, "{complete} %");
    assert!(compiled > 30.0, "{compiled} %");
}
