//! What else than time on a CPU is sampled: waits, allocations, page faults.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use profiler_ebpf::protocol::{EventKind, Sample, Start};

use crate::recording::{CC, Held, Programs, Recording, expecting, possible, start};

fn only(events: &[EventKind]) -> Start {
    Start { events: events.iter().map(|&event| event as i32).collect(), off_cpu_threshold_ns: 1_000_000, ..start(99) }
}

/// Sum of the values of one kind whose stacks go through a function.
fn sum(recording: &mut Recording, kind: EventKind, function: &str) -> u64 {
    let samples: Vec<Sample> = recording.samples.iter().filter(|sample| sample.kind == kind as i32).cloned().collect();
    let through = samples.iter().filter(|sample| recording.names(sample).iter().any(|name| name == function));
    through.map(|sample| sample.value).sum()
}

fn assert_near(what: &str, value: u64, expected: u64, percent: u64) {
    let range = expected * (100 - percent) / 100..=expected * (100 + percent) / 100;
    assert!(range.contains(&value), "{what}: {value}, which is not {expected} give or take {percent} %");
}

#[test]
fn waits_are_as_long_as_they_are() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("waits", "waits.c", CC);
    let held = Held::new(&program, &["off-cpu"]);
    let mut recording = Recording::of_held(held, only(&[EventKind::Blocked, EventKind::Preempted]));
    recording.assert_mostly_complete(40);
    // A sleeping thread is woken late on a busy machine, never early; the first sleep may be over before libraries are known.
    let slept = sum(&mut recording, EventKind::Blocked, "sleeps");
    assert!((340_000_000..1_200_000_000).contains(&slept), "{slept} ns");
    let locked = sum(&mut recording, EventKind::Blocked, "waits_for_lock");
    assert!((100_000_000..1_200_000_000).contains(&locked), "{locked} ns");
    let lock = sum(&mut recording, EventKind::Blocked, "pthread_mutex_lock");
    assert!(lock > 50_000_000, "{lock} ns");
    // The thread that waits to the end is in no hurry to be counted, but is counted.
    let all: u64 = recording.samples.iter().map(|sample| sample.value).sum();
    assert!(all > slept + locked);
    assert!(recording.samples.iter().all(|sample| sample.value >= 1_000_000), "nothing under the threshold");
    assert!(recording.samples.iter().all(|sample| !sample.kernel.is_empty()), "waiting happens in the kernel");
}

#[test]
fn a_wait_that_does_not_end_is_counted() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("cases", "cases.c", CC);
    let mut held = Held::new(&program, &["sleep"]);
    let mut recording = Recording::default();
    let targets = [(held.pid(), held.pidfd())];
    let start = Start { duration_ns: 3_000_000_000, ..only(&[EventKind::Blocked]) };
    let mut recorder = crate::recording::Recorder::new(&mut crate::recording::recorder(), start, &targets);
    recorder.attached(&mut recording);
    held.release();
    recorder.rest(&mut recording);
    let slept = sum(&mut recording, EventKind::Blocked, "sleep");
    assert!((500_000_000..=3_100_000_000).contains(&slept), "{slept} ns");
}

fn library() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("preload/prebuilt/libperflens_alloc.x86_64.so")
}

fn with_library(program: &Path, arguments: &[&str]) -> Held {
    Held::by(
        Command::new("sh")
            .args(["-c", "read _; exec env LD_PRELOAD=\"$0\" \"$@\""])
            .arg(library())
            .arg(program)
            .args(arguments),
    )
}

#[test]
fn memory_is_charged_to_where_it_was_allocated() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("waits", "waits.c", CC);
    let start = expecting(only(&[EventKind::Alloc]), &[&program, &library()]);
    let mut recording = Recording::of_held(with_library(&program, &["alloc"]), start);
    recording.assert_mostly_complete(200);
    // Four standard deviations of 150, 400, 6 000 samples.
    assert_near("kept", sum(&mut recording, EventKind::Alloc, "keeps"), 80_000_000, 33);
    assert_near("passed", sum(&mut recording, EventKind::Alloc, "passes"), 3200 * 65536, 20);
    assert_near("grown", sum(&mut recording, EventKind::Alloc, "grows"), (1 << 20) * 80 * 81 / 2, 6);
    // What happens before the program's own code has a few samples at most.
    let allocated: Vec<Sample> =
        recording.samples.iter().filter(|sample| sample.kind == EventKind::Alloc as i32).cloned().collect();
    let leaves = allocated.iter().filter(|sample| ["malloc", "realloc"].contains(&recording.names(sample)[0].as_str()));
    let leaves = leaves.count();
    assert!(leaves * 100 >= allocated.len() * 99, "{leaves} of {}", allocated.len());

    // What is in use at the end: all that was kept, nothing that passed.
    let mut live: HashMap<u64, &Sample> = HashMap::new();
    for sample in &recording.samples {
        assert_ne!(sample.allocation, 0);
        if sample.kind == EventKind::Alloc as i32 {
            assert!(live.insert(sample.allocation, sample).is_none(), "no number is used twice");
        } else {
            let of = live.remove(&sample.allocation).expect("it was allocated before");
            assert_eq!((of.value, of.count), (sample.value, sample.count));
        }
    }
    let in_use: Vec<Sample> = live.into_values().cloned().collect();
    let bytes = |recording: &mut Recording, function: &str| -> u64 {
        let through = in_use.iter().filter(|sample| recording.names(sample).iter().any(|name| name == function));
        through.map(|sample| sample.value).sum()
    };
    let kept = bytes(&mut recording, "keeps");
    assert_near("kept to the end", kept, 80_000_000, 33);
    assert_eq!(bytes(&mut recording, "passes"), 0);
    assert_near("grown to the end", bytes(&mut recording, "grows"), 80 << 20, 1);
    let objects: u64 = in_use
        .iter()
        .filter(|sample| recording.names(sample).contains(&"keeps".into()))
        .map(|sample| sample.count)
        .sum();
    assert_near("objects", objects, 40_000, 33);
}

#[test]
fn a_program_without_the_library_is_said_to_show_nothing() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("waits", "waits.c", CC);
    let recording = Recording::of_held(Held::new(&program, &["alloc"]), only(&[EventKind::Alloc]));
    assert!(recording.samples.is_empty());
    assert!(recording.notes.iter().any(|note| note.contains("own profiler")), "{:?}", recording.notes);
}

#[test]
fn page_faults_show_who_touches_memory_first() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("waits", "waits.c", CC);
    let mut recording = Recording::of_held(Held::new(&program, &["faults"]), only(&[EventKind::PageFault]));
    recording.assert_mostly_complete(200);
    assert_near("faults", sum(&mut recording, EventKind::PageFault, "touches"), (64 << 20) / 4096, 10);
}

#[test]
fn events_go_together() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("waits", "waits.c", CC);
    let events = [EventKind::Cpu, EventKind::Blocked, EventKind::Alloc, EventKind::PageFault];
    let start = Start { frequency: 999, ..only(&events) };
    let recording = Recording::of_held(with_library(&program, &["alloc"]), start);
    for event in [EventKind::Cpu, EventKind::Alloc, EventKind::PageFault] {
        assert!(recording.samples.iter().any(|sample| sample.kind == event as i32), "{event:?}");
    }
}
