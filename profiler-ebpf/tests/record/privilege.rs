//! Whom the recorder serves, and what it refuses them.

use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use profiler_ebpf::protocol::{FailureKind, Loss, Start};

use crate::recording::{CC, Held, Programs, Recorder, Recording, possible, recorder, start, wait};

/// Somebody who owns nothing.
const NOBODY: &str = "65534";

fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]).arg(program);
    command
}

/// As `sudo` would start it for nobody.
fn by_sudo() -> Command {
    let mut command = recorder();
    command.env("SUDO_UID", NOBODY).env("SUDO_GID", NOBODY);
    command
}

/// A folder that everybody may look into, with the test program.
fn programs() -> (Programs, PathBuf) {
    let programs = Programs::new();
    std::fs::set_permissions(programs.path("."), PermissionsExt::from_mode(0o755)).expect("it is ours");
    let program = programs.build("cases", "cases.c", CC);
    (programs, program)
}

fn nobodys(program: &Path, arguments: &[&str]) -> Held {
    Held::by(as_nobody(Path::new("sh")).args(["-c", "read _; exec \"$0\" \"$@\""]).arg(program).args(arguments))
}

/// Records a held program with a recorder, until the program ends.
fn record(program: &mut Command, start: Start, held: &mut Held) -> Recording {
    // `setpriv` became what it starts only when that waits for us.
    while std::fs::read_to_string(format!("/proc/{}/comm", held.pid())).expect("it runs") != "sh\n" {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let mut recording = Recording::default();
    let mut recorder = Recorder::new(program, start, &[(held.pid(), held.pidfd())]);
    recorder.attached(&mut recording);
    if recording.failure.is_none() {
        held.release();
        wait(&mut held.child);
        recorder.stop();
    }
    recorder.rest(&mut recording);
    recording
}

fn assert_refused(recording: &Recording, kind: FailureKind) {
    let failure = recording.failure.as_ref().expect("it is refused");
    assert_eq!(failure.kind, kind as i32, "{failure:?}");
    assert!(failure.sentence.ends_with('.'), "{failure:?}");
    assert!(recording.samples.is_empty() && recording.mappings.is_empty());
}

#[test]
fn file_capabilities_are_enough_for_ones_own_processes() {
    if !possible() {
        return;
    }
    let (programs, program) = programs();
    let installed = programs.path("perflens-record");
    std::fs::copy(env!("CARGO_BIN_EXE_perflens-record"), &installed).unwrap();
    let set = Command::new("setcap").arg("cap_bpf,cap_perfmon+ep").arg(&installed).status();
    assert!(set.is_ok_and(|status| status.success()), "capabilities can be put on files");

    let mut recording = record(&mut as_nobody(&installed), start(999), &mut nobodys(&program, &["burn", "1"]));
    assert_eq!(recording.failure, None);
    recording.assert_complete();
    let burning = recording.share(|names| names.contains(&"burn".into()));
    assert!(burning > 90.0, "{burning} %");
    assert!(recording.kernel.values().all(String::is_empty), "names of the kernel are root's");

    let roots = record(&mut as_nobody(&installed), start(999), &mut Held::new(&program, &["burn", "1"]));
    assert_refused(&roots, FailureKind::Target);
    let any = Start { any_user: true, ..start(99) };
    let asked = record(&mut as_nobody(&installed), any, &mut nobodys(&program, &["burn", "1"]));
    assert_refused(&asked, FailureKind::NotPermitted);
}

#[test]
fn without_rights_it_says_which_are_missing() {
    if !possible() {
        return;
    }
    let (programs, program) = programs();
    let installed = programs.path("perflens-record");
    std::fs::copy(env!("CARGO_BIN_EXE_perflens-record"), &installed).unwrap();
    let recording = record(&mut as_nobody(&installed), start(99), &mut nobodys(&program, &["burn", "1"]));
    assert_refused(&recording, FailureKind::NotPermitted);
    assert!(recording.failure.unwrap().remedy.contains("setcap cap_bpf,cap_perfmon"));
}

#[test]
fn under_sudo_it_becomes_who_called() {
    if !possible() {
        return;
    }
    let (_programs, program) = programs();
    let mut held = nobodys(&program, &["burn", "0.8"]);
    std::thread::sleep(std::time::Duration::from_millis(200));
    let mut recording = Recording::default();
    let mut recorder = Recorder::new(&mut by_sudo(), start(999), &[(held.pid(), held.pidfd())]);
    recorder.attached(&mut recording);
    assert_eq!(recording.failure, None);
    let status = std::fs::read_to_string(format!("/proc/{}/status", recorder.child.id())).unwrap();
    let line = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
    };
    let (bpf, perfmon) = (1_u64 << 39, 1_u64 << 38);
    assert_eq!(line("Uid:"), [NOBODY; 4].join(" "));
    assert_eq!(line("Gid:"), [NOBODY; 4].join(" "));
    assert_eq!(line("Groups:"), "");
    for set in ["CapEff:", "CapPrm:"] {
        assert_eq!(u64::from_str_radix(&line(set), 16), Ok(bpf | perfmon), "{set}");
    }
    assert_eq!(line("NoNewPrivs:"), "1");
    held.release();
    assert!(wait(&mut held.child));
    recorder.stop();
    recorder.rest(&mut recording);
    recording.assert_complete();
    assert!(recording.kernel.values().any(|name| !name.is_empty()), "names were read while it was root");

    let roots = record(&mut by_sudo(), start(99), &mut Held::new(&program, &["burn", "1"]));
    assert_refused(&roots, FailureKind::Target);
    let mut recording =
        record(&mut by_sudo(), Start { any_user: true, ..start(999) }, &mut Held::new(&program, &["burn", "0.6"]));
    recording.assert_complete();
}

#[test]
fn root_records_others_only_when_asked() {
    if !possible() {
        return;
    }
    let (_programs, program) = programs();
    let recording = record(&mut recorder(), start(99), &mut nobodys(&program, &["burn", "1"]));
    assert_refused(&recording, FailureKind::Target);
    let any = Start { any_user: true, ..start(999) };
    let mut recording = record(&mut recorder(), any, &mut nobodys(&program, &["burn", "0.6"]));
    recording.assert_complete();
}

/// It may be started, but what it does is its owner's business.
#[test]
fn a_set_uid_program_goes_dark() {
    if !possible() {
        return;
    }
    let (programs, program) = programs();
    let elevated = programs.path("elevated");
    std::fs::copy(&program, &elevated).unwrap();
    std::fs::set_permissions(&elevated, PermissionsExt::from_mode(0o4755)).unwrap();
    let recording = record(&mut by_sudo(), start(999), &mut nobodys(&elevated, &["burn", "0.8"]));
    assert_eq!(recording.failure, None);
    assert!(recording.samples.len() < 20, "{} samples, all of the shell before", recording.samples.len());
    assert!(recording.mappings.iter().all(|mapping| !mapping.path.ends_with("/elevated")));
    assert!(recording.processes.iter().all(|process| !process.executable.ends_with("/elevated")));
    assert!(recording.lost(Loss::OtherUser) > 200, "{:?}", recording.lost);
}

/// The same when it runs already, below a process that may be recorded.
#[test]
fn a_set_uid_child_of_a_recorded_process_stays_dark() {
    if !possible() {
        return;
    }
    let (programs, program) = programs();
    let elevated = programs.path("elevated");
    std::fs::copy(&program, &elevated).unwrap();
    std::fs::set_permissions(&elevated, PermissionsExt::from_mode(0o4755)).unwrap();
    let mut shell = as_nobody(Path::new("sh"));
    let mut shell = shell.args(["-c", "\"$0\" burn 3; true"]).arg(&elevated).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    let pid = rustix::process::Pid::from_raw(i32::try_from(shell.id()).unwrap()).unwrap();
    let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
    let mut recording = Recording::default();
    let mut recorder = Recorder::new(&mut by_sudo(), start(999), &[(shell.id(), pidfd)]);
    recorder.rest(&mut recording);
    assert!(wait(&mut shell));
    assert_eq!(recording.failure, None);
    assert!(recording.samples.len() < 20, "{} samples, all of the shell", recording.samples.len());
    assert!(recording.processes.iter().all(|process| !process.executable.ends_with("/elevated")));
    assert!(recording.lost(Loss::OtherUser) > 200, "{:?}", recording.lost);
}

/// A file that may be run but not read: its memory is not the caller's to see either.
#[test]
fn a_program_that_may_not_be_read_goes_dark() {
    if !possible() {
        return;
    }
    let (programs, program) = programs();
    let closed = programs.path("closed");
    std::fs::copy(&program, &closed).unwrap();
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o711)).unwrap();
    let recording = record(&mut by_sudo(), start(999), &mut nobodys(&closed, &["burn", "0.8"]));
    assert!(recording.samples.len() < 20, "{} samples", recording.samples.len());
    assert!(recording.mappings.iter().all(|mapping| !mapping.path.ends_with("/closed")));
    assert!(recording.lost(Loss::OtherUser) > 200, "{:?}", recording.lost);
}

fn refused(start: Start, targets: &[(u32, OwnedFd)], kind: FailureKind) {
    let mut recording = Recording::default();
    let mut recorder = Recorder::new(&mut recorder(), start, targets);
    recorder.rest(&mut recording);
    assert_refused(&recording, kind);
}

#[test]
fn what_is_out_of_bounds_is_refused() {
    if !possible() {
        return;
    }
    let (_programs, program) = programs();
    let held = Held::new(&program, &["sleep"]);
    let this = || [(held.pid(), held.pidfd())];
    let bad = FailureKind::BadCommand;
    for frequency in [0, 2000, u32::MAX] {
        refused(start(frequency), &this(), bad);
    }
    refused(Start { duration_ns: 3_600_000_000_001, ..start(99) }, &this(), bad);
    refused(Start { version: 2, ..start(99) }, &this(), bad);
    refused(Start { events: vec![77], ..start(99) }, &this(), bad);
    refused(Start { method: 77, ..start(99) }, &this(), bad);
    refused(start(99), &[], bad);
    // A number and a pidfd that don't belong together: the number was given to another process since.
    refused(start(99), &[(held.pid(), Held::new(&program, &["sleep"]).pidfd())], bad);
    refused(start(99), &[(1, held.pidfd())], bad);
    // Something else than a pidfd.
    refused(start(99), &[(held.pid(), std::fs::File::open("/dev/null").unwrap().into())], bad);
}

#[test]
fn ended_processes_and_parts_of_the_kernel_are_no_targets() {
    if !possible() {
        return;
    }
    let (_programs, program) = programs();
    let mut held = Held::new(&program, &["sleep"]);
    let (pid, pidfd) = (held.pid(), held.pidfd());
    held.child.kill().unwrap();
    refused(start(99), &[(pid, pidfd)], FailureKind::Target);

    // Process 2 starts all threads of the kernel, where it can be seen at all.
    let name = std::fs::read_to_string("/proc/2/comm").unwrap_or_default();
    if name.trim() == "kthreadd" {
        let output = recorder().args(["-p", "2"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains("part of the kernel"), "{output:?}");
    }
}
