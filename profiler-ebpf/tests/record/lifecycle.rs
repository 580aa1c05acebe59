//! Processes that fork, become others, load code, end; threads; pid namespaces.

use std::io::{self, Write as _};
use std::process::Command;
use std::time::Duration;

use profiler_ebpf::protocol::{Loss, Start};

use crate::recording::{CC, Held, Programs, Recorder, Recording, possible, recorder, start, wait};

#[test]
fn children_are_recorded_from_their_start() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("cases", "cases.c", CC);
    let mut recording = Recording::of(&program, &["forks"], 999);
    let children = recording.processes.iter().filter(|process| process.parent != 0).count();
    assert_eq!(children, 40);
    let deep = recording.share(|names| names.iter().filter(|name| *name == "child_work").count() == 9);
    recording.assert_share("stacks through all frames", deep, 97.0);
    assert_eq!(recording.exits.len(), 41, "they and their parent");
}

#[test]
fn children_can_be_left_out() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("cases", "cases.c", CC);
    let held = Held::new(&program, &["forks"]);
    let recording = Recording::of_held(held, Start { children: false, ..start(999) });
    assert!(recording.processes.iter().all(|process| process.parent == 0));
    assert!(recording.samples.len() < 100, "{}", recording.samples.len());
}

/// Each of them lives for 30 ms: its mappings must be read at once.
#[test]
fn short_programs_have_stacks() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("cases", "cases.c", CC);
    let mut recording = Recording::of(&program, &["programs"], 999);
    recording.assert_complete();
    let burning = recording.share(|names| names[0] == "burn" && names.contains(&"main".into()));
    assert!(burning > 80.0, "{burning} %");
    let named = recording.processes.iter().filter(|process| process.executable.ends_with("/cases")).count();
    assert!(named >= 30, "{named} of them are known by name");
}

/// Each of them is over after 4 ms, before anybody can read what it has mapped: the kernel finds out which files they are.
#[test]
fn programs_that_are_over_at_once_have_whole_stacks_and_names() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("cases", "cases.c", CC);
    let shell = "read _; for i in $(seq 200); do \"$0\" burn 0.004; done";
    let mut recording = Recording::of_held(Held::by(Command::new("sh").args(["-c", shell]).arg(&program)), start(999));
    let nameless = recording.share(|names| names.iter().any(|name| name.starts_with("0x")));
    assert!(nameless < 5.0, "{nameless} % of the stacks go through unknown files");
    let burning = recording.share(|names| names[0] == "burn");
    assert!(burning > 40.0, "{burning} %");
    let whole = recording.share(|names| names[0] == "burn" && names.last().is_some_and(|name| name == "_start"));
    assert!(whole > burning * 0.97, "{whole} of {burning} % are whole");
    let named = recording.processes.iter().filter(|process| process.executable.ends_with("/cases")).count();
    assert!(named >= 150, "{named} of them are known by name");
}

#[test]
fn code_that_is_loaded_later() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("cases", "cases.c", CC);
    let library = programs.build("plugin.so", "plugin.c", &[CC, &["-shared", "-fPIC"]].concat());
    let mut recording = Recording::of(&program, &["plugin", &library.to_string_lossy()], 999);
    recording.assert_complete();
    let inner = recording.share(|names| {
        let at = |wanted: &str| names.iter().position(|name| name == wanted);
        at("plugin_inner").is_some() && at("plugin_inner") < at("plugin_work") && at("plugin_work") < at("main")
    });
    recording.assert_share("stacks through the library", inner, 100.0 / 1.3);
}

#[test]
fn a_process_lives_as_long_as_its_last_thread() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("cases", "cases.c", CC);
    let mut recording = Recording::of(&program, &["orphan"], 999);
    recording.assert_complete();
    assert!(recording.samples.len() > 500, "{}", recording.samples.len());
}

/// The file of a running program may be gone or replaced; what it has in memory is still there.
#[test]
fn a_deleted_program() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("shares", "shares.c", CC);
    let mut child = Command::new(&program).arg("1").spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(50));
    std::fs::remove_file(&program).unwrap();
    std::fs::write(&program, "another file").unwrap();
    let mut recording = Recording::default();
    let pidfd = {
        let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap()
    };
    let mut recorder = Recorder::new(&mut recorder(), start(999), &[(child.id(), pidfd)]);
    recorder.attached(&mut recording);
    assert!(wait(&mut child));
    recorder.rest(&mut recording);
    recording.assert_complete();
    let mapping = recording.mappings.iter().find(|mapping| mapping.path.ends_with("/shares")).unwrap();
    assert!(mapping.deleted && mapping.bias != 0 && !mapping.build_id.is_empty(), "{mapping:?}");
}

/// The program is process 1 of a namespace of its own; we see it by its number outside.
#[test]
fn a_program_in_its_own_pid_namespace() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("shares", "shares.c", CC);
    let held = Held::by(
        Command::new("sh").args(["-c", "read _; exec unshare --pid --fork --mount-proc \"$0\" 1"]).arg(&program),
    );
    let mut recording = Recording::of_held(held, start(999));
    recording.assert_complete();
    let inner = recording.processes.iter().find(|process| process.executable.ends_with("/shares"));
    assert_eq!(inner.map(|process| process.namespace_pid), Some(1), "{:?}", recording.processes);
    let working = recording.share(|names| names.contains(&"middle".into()));
    recording.assert_share("stacks of the program", working, 98.0);
}

/// The recorder is in a namespace, as in a container.
#[test]
fn a_recorder_in_its_own_pid_namespace() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("shares", "shares.c", CC);
    let recorded = programs.path("recording.plp");
    // It must not take numbers of its namespace for ours.
    let script = "\"$0\" 4 & sleep 0.1; exec \"$1\" -p $! --duration 2.5 --frequency 999 > \"$2\"";
    let status = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", "sh", "-c", script])
        .arg(&program)
        .arg(env!("CARGO_BIN_EXE_perflens-record"))
        .arg(&recorded)
        .status();
    assert!(status.unwrap().success());
    let mut recording = Recording::read(&recorded);
    recording.assert_complete();
    assert!(recording.samples.len() > 100, "{}", recording.samples.len());
    assert!(recording.samples.iter().all(|sample| sample.pid < 100), "numbers are those of the namespace");
}

/// A limit of the whole system, put back in the end.
struct SampleRate(String);

const SAMPLE_RATE: &str = "/proc/sys/kernel/perf_event_max_sample_rate";

impl SampleRate {
    fn limited_to(rate: u32) -> Self {
        let old = std::fs::read_to_string(SAMPLE_RATE).expect("it can be read");
        std::fs::write(SAMPLE_RATE, rate.to_string()).expect("root may");
        Self(old)
    }
}

impl Drop for SampleRate {
    fn drop(&mut self) {
        let _ = std::fs::write(SAMPLE_RATE, &self.0);
    }
}

/// The kernel throttles quietly: taken and held back together are what the clock should have struck.
#[test]
fn what_the_kernel_holds_back_is_counted() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("cases", "cases.c", CC);
    let mut held = Held::new(&program, &["burn", "2"]);
    let mut recording = Recording::default();
    let mut recorder = Recorder::new(&mut recorder(), start(999), &[(held.pid(), held.pidfd())]);
    recorder.attached(&mut recording);
    // Below what was asked for when sampling began; the kernel refuses to begin with it.
    let limited = SampleRate::limited_to(250);
    held.release();
    assert!(wait(&mut held.child));
    drop(limited);
    recorder.rest(&mut recording);
    let lost = recording.lost(Loss::Throttled);
    assert!(lost > 100, "{lost} held back, {} taken", recording.samples.len());
    let due = lost + recording.samples.len() as u64;
    assert!(due <= 2200, "{due} samples of 2 s");
}

/// Takes a CPU away from the whole system, and gives it back in the end.
struct Offline(&'static str);

const SECOND_CPU: &str = "/sys/devices/system/cpu/cpu1/online";

impl Offline {
    /// `None` where there is no second CPU, or it can't be taken away.
    fn take() -> Option<Self> {
        let taken = std::fs::write(SECOND_CPU, "0");
        taken.is_ok().then_some(Self(SECOND_CPU))
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        std::fs::write(self.0, "1").expect("it came from there");
    }
}

/// bpftrace/bpftrace#3125: as when a machine sleeps, which nobody sees while it happens.
#[test]
fn a_cpu_that_goes_away_and_comes_back_is_sampled() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("cases", "cases.c", CC);
    let by = |seconds: &str| {
        let script = "read _; exec taskset -c 1 \"$0\" burn \"$1\"";
        Held::by(Command::new("sh").args(["-c", script]).arg(&program).arg(seconds))
    };
    for away in [0, 1300] {
        let mut held = by("1");
        let mut recording = Recording::default();
        let mut recorder = Recorder::new(&mut recorder(), start(499), &[(held.pid(), held.pidfd())]);
        recorder.attached(&mut recording);
        let Some(offline) = Offline::take() else {
            let _ = writeln!(io::stderr(), "not run: no CPU can be taken away here");
            return;
        };
        std::thread::sleep(Duration::from_millis(away));
        drop(offline);
        std::thread::sleep(Duration::from_millis(3500));
        held.release();
        assert!(wait(&mut held.child));
        recorder.rest(&mut recording);
        let burning = recording.share(|names| names[0] == "burn");
        assert!(burning > 90.0, "{burning} % of {} samples", recording.samples.len());
        assert!(recording.samples.len() > 300, "away for {away} ms: {} samples of 1 s", recording.samples.len());
    }
}

/// Killed in the middle; its last moments are not lost.
#[test]
fn a_program_that_dies() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("cases", "cases.c", CC);
    let mut held = Held::new(&program, &["burn", "30"]);
    let mut recording = Recording::default();
    let mut recorder = Recorder::new(&mut recorder(), start(999), &[(held.pid(), held.pidfd())]);
    recorder.attached(&mut recording);
    held.release();
    while recording.samples.len() < 300 {
        recording.add(recorder.next().expect("it goes on"));
    }
    held.child.kill().unwrap();
    // Nobody asks for the end: it ends because there is nothing left to record.
    recorder.rest(&mut recording);
    recording.assert_complete();
    assert_eq!(recording.exits.len(), 1);
    assert_eq!(recording.lost(Loss::RingFull), 0);
    let end = recording.end.unwrap();
    assert_eq!(end.reason, profiler_ebpf::protocol::EndReason::TargetsEnded as i32);
    assert_eq!(end.progress.unwrap().samples, recording.samples.len() as u64);
}
