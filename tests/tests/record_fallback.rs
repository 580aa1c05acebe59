//! Recording without any right: copied stacks, as an ordinary user.
#![cfg(target_os = "linux")]

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use expect_test::expect;
use perflens_tests::cli::{Guard, Report, wait_for};
use perflens_tests::record::{Ground, User, descendants, is_alive, is_root, percent, until};

/// Sampling error of shares, in percentage points, for a few hundred samples.
const ERROR: f64 = 10.0;

/// The line and all it calls have this share of the time, in percent.
fn assert_share(ground: &Ground, report: &Report, file: &str, text: &str, expected: f64) {
    let row = ground.row(report, file, text);
    let share = percent(row.costs.cumulative, report.profile.total);
    assert!((share - expected).abs() < ERROR, "{file}, {text}: {share} %, expected {expected} %");
}

/// What a line causes itself, in percent.
fn direct(ground: &Ground, report: &Report, file: &str, text: &str) -> f64 {
    let line = ground.line(file, text);
    let row = report.lines.iter().find(|row| row.line == line && row.file.ends_with(file));
    percent(row.map_or(0, |row| row.costs.direct.expect("there is a workspace")), report.profile.total)
}

/// Records into the ground's file and reports it.
fn record(ground: &Ground, command: &[&str]) -> Report {
    let profile = ground.profile();
    let args = ["-o", profile.to_str().expect("a plain path"), "--method", "copies", "--frequency", "499", "--"];
    let output = ground.record(User::ordinary(), args.iter().chain(command));
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    ground.report(&[])
}

#[test]
fn c_without_frame_pointers_has_its_lines_and_shares() {
    let (ground, _) = Ground::c("hot");
    let report = record(&ground, &["./hot", "3000"]);
    let hot = direct(&ground, &report, "hot.c", "/* hot */") + direct(&ground, &report, "hot.c", "/* loop */");
    assert!(hot > 90.0, "{:#?}", report.line_costs());
    assert_share(&ground, &report, "hot.c", "/* three quarters */", 75.0);
    assert_share(&ground, &report, "hot.c", "/* one quarter */", 25.0);
    // The stacks reach the program's first function.
    let main = report.function("main").costs.cumulative;
    assert!(percent(main, report.profile.total) > 95.0, "{main} of {}", report.profile.total);
}

#[test]
fn rust_has_inlined_lines_and_shares_of_threads() {
    let (ground, _) = Ground::rust("hot");
    let report = record(&ground, &["./hot", "1500"]);
    // Of the loop, this is the part that is inlined from another function.
    assert!(direct(&ground, &report, "hot.rs", "// hot") > 10.0, "{:#?}", report.line_costs());
    assert_share(&ground, &report, "hot.rs", "// each thread", 100.0);
    for share in 1..=3 {
        let filtered = ground.report(&["--filter", &format!("thread=share-{share}")]);
        let percent = percent(filtered.profile.total, report.profile.total);
        assert!((percent - 100.0 * f64::from(share) / 6.0).abs() < ERROR, "thread {share} has {percent} %");
    }
}

#[test]
fn go_has_inlined_lines() {
    let (ground, _) = Ground::go("hot");
    let report = record(&ground, &["./hot", "1"]);
    let hot = direct(&ground, &report, "hot.go", "// hot") + direct(&ground, &report, "hot.go", "// calls");
    assert!(hot > 60.0, "{:#?}", report.line_costs());
    assert_share(&ground, &report, "hot.go", "burn(400000)", 95.0);
}

#[test]
fn a_running_process_is_recorded_for_a_time_and_left_alone() {
    let (ground, program) = Ground::c("hot");
    let mut command = match User::ordinary() {
        User::Ordinary => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]).arg(&program);
            command
        }
        User::Same => Command::new(&program),
    };
    let target = Guard(command.arg("1000000").stdout(Stdio::null()).spawn().unwrap());
    let pid = target.0.id().to_string();
    until("the target runs", || std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path == program));
    let profile = ground.profile();
    let args = ["-p", &pid, "--duration", "1500ms", "--method", "copies", "-o", profile.to_str().unwrap()];
    let begin = Instant::now();
    let output = ground.record(User::ordinary(), args);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(begin.elapsed() >= Duration::from_millis(1500));
    assert!(is_alive(target.0.id()));
    let report = ground.report(&[]);
    assert_share(&ground, &report, "hot.c", "/* three quarters */", 75.0);
    let duration = Duration::from_nanos(u64::try_from(report.profile.duration_ns.unwrap()).unwrap());
    assert!(duration >= Duration::from_millis(1400) && duration < begin.elapsed(), "{duration:?}");
}

#[test]
fn what_was_recorded_is_kept_for_the_user_alone_and_says_no_arguments() {
    let (ground, _) = Ground::c("hot");
    let output = ground.record(User::ordinary(), ["--method", "copies", "--", "./hot", "800", "0", "s3cret"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let all = ground.home().join("state/perflens/recordings");
    let folder = std::fs::read_dir(&all).unwrap().next().unwrap().unwrap().path();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        let ending = name.split_once("-hot").map_or(name.as_str(), |(_, ending)| ending);
        names.push(format!("{ending} {mode:o}"));
        if name.ends_with(".pb.gz") {
            let mut plain = Vec::new();
            let packed = std::fs::File::open(entry.path()).unwrap();
            std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed), &mut plain).unwrap();
            assert!(!String::from_utf8_lossy(&plain).contains("s3cret"));
        } else if entry.path().extension().is_some_and(|it| it == "json") {
            let about = std::fs::read_to_string(entry.path()).unwrap();
            assert!(about.contains("s3cret"), "{about}");
            assert!(about.contains("hot.c"), "{about}");
        }
    }
    names.sort();
    expect![[r#"
        [
            ".json 600",
            ".pb.gz 600",
            "texts 700",
        ]
    "#]]
    .assert_debug_eq(&names);
    assert_eq!(std::fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn the_way_it_was_recorded_is_said_in_one_line() {
    let (ground, _) = Ground::c("hot");
    let output = ground.record(User::ordinary(), ["--", "./hot", "800"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let how = output.stdout.lines().find(|line| line.contains("samples in")).unwrap();
    let how = how.split_once(", ").unwrap().1;
    let helper = ground.path().join("perflens-record").display().to_string();
    expect!["with copied stacks, own processes only; eBPF is not used: perflens-record is not installed; this grants it once: sudo install perflens-record /usr/local/bin && sudo setcap cap_bpf,cap_perfmon+ep /usr/local/bin/perflens-record"].assert_eq(&how.replace(&helper, "HELPER"));
}

#[test]
fn failures_are_one_sentence() {
    let (ground, _) = Ground::c("hot");
    let mut said = String::new();
    let mut record = |args: &[&str]| {
        let output = ground.record(User::ordinary(), args);
        said += &[format!("{:?} ", output.code), output.stderr].concat();
    };
    record(&[]);
    record(&["--", "./missing"]);
    record(&["--", "./hot.c"]);
    record(&["-p", "4194304"]);
    record(&["--method", "copies", "--event", "off-cpu", "--", "./hot"]);
    record(&["--frequency", "2000", "--", "./hot"]);
    record(&["--", "./hot", "500", "3"]);
    record(&["--method", "copies", "--", "/bin/true"]);
    expect![[r#"
        Some(2) perflens: what is to be recorded? Give a command behind --, or a process with -p; for example: perflens record -- ./app
        Some(1) perflens: ./missing: there is no such program
        Some(1) perflens: ./hot.c: it may not be run
        Some(1) perflens: there is no process 4194304
        Some(1) perflens: waiting and allocations can't be recorded without eBPF; perflens-record is not installed; this grants it once: sudo install perflens-record /usr/local/bin && sudo setcap cap_bpf,cap_perfmon+ep /usr/local/bin/perflens-record
        Some(2) error: invalid value '2000' for '--frequency <N>': 2000 is not in 1..=1999

        For more information, try '--help'.
        Some(1) perflens: hot ended with code 3; what was recorded until then is kept
        Some(1) perflens: the program used no time that could be sampled in its 0.0 s; a higher --frequency, or more work, would help; time in the kernel is not recorded, since kernel.perf_event_paranoid is above 1; `sudo sysctl kernel.perf_event_paranoid=1` allows it
    "#]].assert_eq(&said);
}

#[test]
fn processes_of_others_are_refused() {
    if !is_root() {
        // Only root has processes of two users; the machine that must run all tests does so as root.
        return;
    }
    let (ground, program) = Ground::c("hot");
    let target = Guard(Command::new(program).arg("1000000").stdout(Stdio::null()).spawn().unwrap());
    let output = ground.record(User::Ordinary, ["-p", &target.0.id().to_string(), "--duration", "1s"]);
    let said = output.stderr.replace(&target.0.id().to_string(), "PID");
    assert_eq!(output.code, Some(1));
    expect![[r#"
        perflens: process PID belongs to another user
    "#]]
    .assert_eq(&said);
}

/// A recording of a program that does not end by itself.
fn endless(ground: &Ground) -> (Guard, u32) {
    endless_by(ground, &["./hot", "1000000"])
}

fn endless_by(ground: &Ground, words: &[&str]) -> (Guard, u32) {
    let mut command = ground.perflens(User::ordinary());
    command.args(["record", "--method", "copies", "-o"]).arg(ground.profile()).arg("--").args(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let recording = Guard(command.spawn().expect("starting it"));
    let pid = recording.0.id();
    let name = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let mut target = 0;
    until("the command runs", || {
        target = descendants(pid).into_iter().find(|pid| name(pid) == "hot\n").unwrap_or(0);
        target != 0
    });
    std::thread::sleep(Duration::from_millis(700));
    (recording, target)
}

fn signal(pid: u32, signal: &str) {
    let status = Command::new("kill").args([signal, &pid.to_string()]).status().expect("running kill");
    assert!(status.success());
}

fn end(mut recording: Guard) -> perflens_tests::cli::Output {
    let child = std::mem::replace(&mut recording.0, Command::new("true").spawn().expect("starting it"));
    wait_for(child, Duration::from_secs(30))
}

#[test]
fn interrupting_keeps_what_was_taken() {
    let (ground, _) = Ground::c("hot");
    let (recording, target) = endless(&ground);
    signal(recording.0.id(), "-INT");
    let output = end(recording);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout.contains("hot was ended with the recording"), "{}", output.stdout);
    assert!(!is_alive(target));
    assert!(ground.report(&[]).profile.total > 0);
}

#[test]
fn what_the_command_has_started_ends_with_it() {
    let (ground, _) = Ground::c("hot");
    // The shell ends at once when it is told to, and tells nobody.
    let (recording, target) = endless_by(&ground, &["sh", "-c", "./hot 1000000 & ./hot 1000000 & wait"]);
    let family = descendants(recording.0.id());
    assert!(family.contains(&target) && family.len() > 3, "{family:?}");
    signal(recording.0.id(), "-INT");
    let output = end(recording);
    assert!(output.stdout.contains("sh was ended with the recording"), "{}", output.stdout);
    until("all are gone", || !family.iter().any(|&pid| is_alive(pid)));
}

#[test]
fn whatever_is_killed_nothing_stays_behind() {
    for victim in ["target", "recorder", "parent"] {
        let (ground, _) = Ground::c("hot");
        let (recording, target) = endless(&ground);
        let parent = recording.0.id();
        let family = descendants(parent);
        let recorder = *family.iter().find(|&&pid| pid != target).expect("there is a recorder");
        signal(
            match victim {
                "target" => target,
                "recorder" => recorder,
                _ => parent,
            },
            "-KILL",
        );
        if victim == "recorder" {
            // The command is the user's and goes on until it is told to stop.
            until("it is said", || !is_alive(recorder));
            assert!(is_alive(target));
            signal(parent, "-INT");
        }
        let output = end(recording);
        match victim {
            "target" => {
                assert_eq!(output.code, Some(1), "{}", output.stderr);
                assert!(output.stderr.contains("ended with signal 9"), "{}", output.stderr);
            }
            "recorder" => assert!(output.stdout.contains("the recorder ended before its time"), "{}", output.stdout),
            _ => assert_eq!(output.signal, Some(9)),
        }
        until("all are gone", || !family.iter().any(|&pid| std::path::Path::new(&format!("/proc/{pid}")).exists()));
        if victim != "parent" {
            assert!(ground.report(&[]).profile.total > 0, "{victim}");
        }
        let left: Vec<_> = std::fs::read_dir(ground.home()).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert!(left.iter().all(|name| name == "out.pb.gz" || name == "state"), "{victim}: {left:?}");
    }
}

#[test]
fn node_has_its_functions_and_leaves_no_files() {
    let ground = Ground::new();
    ground.source("hot.js");
    let before = perf_maps();
    let report = record(&ground, &["node", "hot.js", "2"]);
    let burn = report.functions.iter().find(|row| row.name == "burn").expect("the function has its name");
    assert!(percent(burn.costs.cumulative, report.profile.total) > 60.0, "{:#?}", report.function_costs());
    // What names the code was made for the recording alone.
    let left: Vec<_> = std::fs::read_dir(ground.work()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["hot.js"]);
    let new: Vec<_> = perf_maps().into_iter().filter(|map| !before.contains(map)).collect();
    assert!(new.is_empty(), "{new:?}");
}

fn perf_maps() -> Vec<std::ffi::OsString> {
    let names = std::fs::read_dir("/tmp").into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_string_lossy().starts_with("perf-")).collect()
}

/// A repository can name programs that git runs to compare its files.
#[test]
fn what_a_repository_names_is_not_run() {
    let (ground, _) = Ground::c("hot");
    let canary = ground.path().join("canary");
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"];
        let status = Command::new("git").args(identity).args(args).current_dir(ground.work()).output().unwrap().status;
        assert!(status.success(), "{args:?}");
    };
    git(&["init", "--quiet"]);
    std::fs::write(ground.work().join(".gitattributes"), "*.c filter=odd\n").unwrap();
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "all"]);
    git(&["config", "filter.odd.clean", &format!("touch {}; cat", canary.display())]);
    // Of the same size, so that only the text tells.
    let source = ground.work().join("hot.c");
    let text = std::fs::read_to_string(&source).unwrap();
    std::fs::write(&source, text.replacen("hot", "HOT", 1)).unwrap();
    let output = ground.record(User::Same, ["--method", "copies", "--", "./hot", "300"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(!canary.exists());
    // That it is a repository, and changed, is known all the same.
    let kept = std::fs::read_dir(ground.home().join("state/perflens/recordings")).unwrap().flatten().next().unwrap();
    let mut files = std::fs::read_dir(kept.path()).unwrap().flatten().map(|entry| entry.path());
    let about = files.find(|path| path.extension().is_some_and(|end| end == "json")).unwrap();
    let about = std::fs::read_to_string(about).unwrap();
    assert!(about.contains("\"dirty\": true"), "{about}");
}
