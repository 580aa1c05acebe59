//! Ends of a recording, wanted and not: nothing may stay behind in the kernel.

use std::collections::HashSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use profiler_ebpf::protocol::{EndReason, Start};
use rustix::process::{Pid, Signal, kill_process};

use crate::recording::{CC, Held, Programs, Recorder, Recording, possible, recorder, start};

/// Programs and maps of the kernel that a process holds.
fn held_by(pid: u32) -> (HashSet<u32>, HashSet<u32>) {
    let (mut programs, mut maps) = (HashSet::new(), HashSet::new());
    for entry in std::fs::read_dir(format!("/proc/{pid}/fdinfo")).expect("it is there") {
        let text = std::fs::read_to_string(entry.expect("it is there").path()).unwrap_or_default();
        for line in text.lines() {
            let number = |name| line.strip_prefix(name).and_then(|rest: &str| rest.trim().parse::<u32>().ok());
            programs.extend(number("prog_id:"));
            maps.extend(number("map_id:"));
        }
    }
    (programs, maps)
}

/// Waits until none of them is there any more; the kernel takes a moment to let go.
fn assert_gone((programs, maps): &(HashSet<u32>, HashSet<u32>)) {
    assert!(programs.len() >= 4 && maps.len() >= 3, "{programs:?} {maps:?}");
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let left_programs =
            aya::programs::loaded_programs().flatten().filter(|program| programs.contains(&program.id())).count();
        let left_maps = aya::maps::loaded_maps().flatten().filter(|map| maps.contains(&map.id())).count();
        if left_programs + left_maps == 0 {
            return;
        }
        assert!(Instant::now() < until, "{left_programs} programs and {left_maps} maps stayed");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A recording that has begun to get samples.
fn under_way(programs: &Programs, start: Start) -> (Held, Recorder, Recording) {
    let program = programs.build("cases", "cases.c", CC);
    let mut held = Held::new(&program, &["burn", "60"]);
    let mut recording = Recording::default();
    let mut recorder = Recorder::new(&mut recorder(), start, &[(held.pid(), held.pidfd())]);
    recorder.attached(&mut recording);
    held.release();
    while recording.samples.len() < 20 {
        recording.add(recorder.next().expect("it goes on"));
    }
    (held, recorder, recording)
}

#[test]
fn a_killed_recorder_leaves_nothing() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let (_held, mut recorder, _) = under_way(&programs, start(999));
    let held = held_by(recorder.child.id());
    recorder.child.kill().unwrap();
    recorder.child.wait().unwrap();
    assert_gone(&held);
}

#[test]
fn a_parent_that_goes_away_ends_it() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let (_target, mut recorder, mut recording) = under_way(&programs, start(999));
    let held = held_by(recorder.child.id());
    // All that a parent's death does to us, however it died.
    recorder.socket.shutdown(std::net::Shutdown::Both).unwrap();
    recorder.rest(&mut recording);
    assert_eq!(recording.end.map(|end| end.reason), Some(EndReason::Stopped as i32));
    assert_gone(&held);
}

#[test]
fn a_signal_ends_it_with_everything_said() {
    if !possible() {
        return;
    }
    for signal in [Signal::TERM, Signal::INT] {
        let programs = Programs::new();
        let (_target, mut recorder, mut recording) = under_way(&programs, start(999));
        let held = held_by(recorder.child.id());
        let pid = Pid::from_raw(i32::try_from(recorder.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        recorder.rest(&mut recording);
        let end = recording.end.unwrap();
        assert_eq!(end.reason, EndReason::Stopped as i32);
        assert_eq!(end.progress.unwrap().samples, recording.samples.len() as u64);
        assert_gone(&held);
    }
}

#[test]
fn the_time_is_kept() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let (_target, mut recorder, mut recording) =
        under_way(&programs, Start { duration_ns: 2_000_000_000, ..start(999) });
    recorder.rest(&mut recording);
    let (hello, end) = (recording.hello.unwrap(), recording.end.unwrap());
    assert_eq!(end.reason, EndReason::Duration as i32);
    assert!(end.time_ns - hello.monotonic_ns >= 2_000_000_000);
}

/// In a shell: nobody is there to close a socket.
#[test]
fn a_shell_that_is_killed_ends_it() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("cases", "cases.c", CC);
    let file = programs.path("recording.plp");
    let mut target = Command::new(program).args(["burn", "60"]).stdout(Stdio::null()).spawn().unwrap();
    let mut shell = Command::new("sh")
        .args(["-c", "\"$0\" -p \"$1\" > \"$2\"; true"])
        .arg(env!("CARGO_BIN_EXE_perflens-record"))
        .arg(target.id().to_string())
        .arg(&file)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while std::fs::metadata(&file).map_or(0, |file| file.len()) < 1000 {
        assert!(Instant::now() < until, "it begins");
        std::thread::sleep(Duration::from_millis(20));
    }
    shell.kill().unwrap();
    shell.wait().unwrap();
    // Its last message is written when it ends.
    while Recording::read_so_far(&file).end.is_none() {
        assert!(Instant::now() < until, "it ends");
        std::thread::sleep(Duration::from_millis(50));
    }
    target.kill().unwrap();
    target.wait().unwrap();
}
