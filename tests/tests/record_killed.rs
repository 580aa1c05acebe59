//! Whoever is killed, and whenever: nothing of a recording stays, neither processes nor files nor anything in the kernel.
#![cfg(target_os = "linux")]

use std::collections::HashSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use perflens_tests::cli::{Guard, Output, wait_for};
use perflens_tests::lsp::{Client, Start, editor};
use perflens_tests::record::{Ground, User, descendants, is_alive, is_root, until};
use serde_json::json;

/// Programs of the kernel with these names are the recorder's.
const PROGRAMS: [&str; 4] = ["on_clock", "on_fork", "on_exec", "on_exit"];

/// The recorder's programs that are in the kernel.
fn loaded() -> HashSet<u32> {
    let all = aya::programs::loaded_programs().flatten();
    let ours = all.filter(|program| program.name_as_str().is_some_and(|name| PROGRAMS.contains(&name)));
    ours.map(|program| program.id()).collect()
}

/// Programs of the kernel that some process holds.
fn held() -> HashSet<u32> {
    let processes = std::fs::read_dir("/proc").expect("it is there").flatten();
    let files =
        processes.flat_map(|process| std::fs::read_dir(process.path().join("fdinfo")).into_iter().flatten().flatten());
    let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
    let number = |text: String| {
        let line = text.lines().find_map(|line| line.strip_prefix("prog_id:"))?;
        line.trim().parse::<u32>().ok()
    };
    texts.filter_map(number).collect()
}

/// Others may record at the same time; theirs are held by somebody.
fn assert_kernel_is_clean() {
    until("the kernel lets go", || loaded().difference(&held()).next().is_none());
}

fn assert_all_gone(family: &[u32]) {
    until("all are gone, zombies too", || !family.iter().any(|&pid| Path::new(&format!("/proc/{pid}")).exists()));
}

fn name_of(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
}

fn is_recorder(pid: u32) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|&byte| byte == 0).any(|word| word == b"__recorder")
}

fn kill(pid: u32, signal: &str) {
    let status = Command::new("kill").args([signal, &pid.to_string()]).stderr(Stdio::null()).status();
    status.expect("kill is everywhere");
}

/// A recording with eBPF of a program that does not end, with a folder of its own for temporary files.
fn endless(ground: &Ground) -> Guard {
    std::fs::create_dir_all(ground.home().join("tmp")).expect("a folder");
    let mut command = ground.perflens(User::Same);
    command.args(["record", "--method", "bpf", "-o"]).arg(ground.profile()).args(["--", "./hot", "1000000"]);
    command.env("TMPDIR", ground.home().join("tmp"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Guard(command.spawn().expect("starting it"))
}

fn end(mut recording: Guard) -> Output {
    let child = std::mem::replace(&mut recording.0, Command::new("true").spawn().expect("starting it"));
    wait_for(child, Duration::from_secs(40))
}

fn assert_no_files(ground: &Ground) {
    let names = |folder: &Path| -> Vec<_> {
        let entries = std::fs::read_dir(folder).expect("it is there").flatten();
        entries.map(|entry| entry.file_name().into_string().expect("a plain name")).collect()
    };
    assert_eq!(names(&ground.home().join("tmp")), [""; 0]);
    assert!(names(&ground.home()).iter().all(|name| ["tmp", "out.pb.gz", "state"].contains(&name.as_str())));
    let work = names(&ground.work());
    assert!(work.iter().all(|name| name.starts_with("hot")), "{work:?}");
}

#[test]
fn whoever_is_killed_the_kernel_keeps_nothing() {
    if !is_root() {
        return;
    }
    for victim in ["target", "recorder", "parent"] {
        let (ground, _) = Ground::c("hot");
        let recording = endless(&ground);
        let parent = recording.0.id();
        let find = |is: &dyn Fn(u32) -> bool| descendants(parent).into_iter().find(|&pid| is(pid));
        until("the command runs", || find(&|pid| name_of(pid) == "hot\n").is_some());
        std::thread::sleep(Duration::from_millis(500));
        let target = find(&|pid| name_of(pid) == "hot\n").unwrap();
        let recorder = find(&is_recorder).unwrap();
        assert!(held().intersection(&loaded()).count() >= PROGRAMS.len());
        let family = [target, recorder];
        let killed = match victim {
            "target" => target,
            "recorder" => recorder,
            _ => parent,
        };
        kill(killed, "-KILL");
        if victim == "recorder" {
            // The command is the user's and goes on until it is told to stop.
            until("it is seen", || !is_alive(recorder));
            assert!(is_alive(target));
            kill(parent, "-INT");
        }
        let output = end(recording);
        assert_eq!(output.signal, (victim == "parent").then_some(9), "{}", output.stderr);
        assert_all_gone(&family);
        assert_kernel_is_clean();
        if victim == "parent" {
            assert!(!ground.profile().exists());
        } else {
            assert!(ground.report(&[]).profile.total > 0, "{victim}");
        }
        assert_no_files(&ground);
    }
}

/// Also while it is only being set up.
#[test]
fn whenever_it_is_killed_nothing_stays() {
    if !is_root() {
        return;
    }
    let (ground, _) = Ground::c("hot");
    for victim in ["parent", "recorder"] {
        for milliseconds in [0, 10, 25, 50, 100, 200, 400] {
            let recording = endless(&ground);
            let parent = recording.0.id();
            std::thread::sleep(Duration::from_millis(milliseconds));
            let family = descendants(parent);
            if victim == "parent" {
                kill(parent, "-KILL");
            } else {
                family.iter().copied().filter(|&pid| is_recorder(pid)).for_each(|pid| kill(pid, "-KILL"));
                std::thread::sleep(Duration::from_millis(100));
                // It says what went wrong and ends, or waits for the command.
                kill(parent, "-INT");
            }
            let family: Vec<u32> = family.into_iter().chain(descendants(parent)).collect();
            end(recording);
            assert_all_gone(&family);
            assert_kernel_is_clean();
            let _ = std::fs::remove_file(ground.profile());
            assert_no_files(&ground);
        }
    }
}

/// The process that the server takes for its editor.
struct Editor(Child);

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn whoever_is_killed_of_an_editors_recording_nothing_stays() {
    let victims = ["server", "editor", "recording", "recorder", "target"];
    for victim in victims {
        let (ground, _) = Ground::c("hot");
        let mut editor_process = Editor(Command::new("sleep").arg("1000").spawn().unwrap());
        let start = Start::new(editor("vscode")).param("processId", editor_process.0.id()).folder(&ground.work());
        let mut client = start.start();
        client.open(&ground.work().join("hot.c"));
        client.command("perflens.record", json!([{ "target": "./hot 10000000" }]));
        let find = |client: &Client, is: &dyn Fn(u32) -> bool| {
            descendants(client.pid()).into_iter().find(|&pid| is(pid)).unwrap_or_default()
        };
        client.until("the program runs", |client| (find(client, &|pid| name_of(pid) == "hot\n") != 0).then_some(()));
        std::thread::sleep(Duration::from_millis(400));
        let family = descendants(client.pid());
        assert!(family.len() >= 3, "recording, recorder and program: {family:?}");
        match victim {
            "server" => client.kill(),
            "editor" => {
                editor_process.0.kill().unwrap();
                assert_eq!(client.exit_code(), Some(1));
            }
            "recording" => kill(family[0], "-KILL"),
            "recorder" => kill(find(&client, &is_recorder), "-KILL"),
            _ => kill(find(&client, &|pid| name_of(pid) == "hot\n"), "-KILL"),
        }
        if victim == "recorder" {
            client.command("perflens.stopRecording", json!([]));
        }
        assert_all_gone(&family);
        if is_root() {
            assert_kernel_is_clean();
        }
        if ["recording", "recorder", "target"].contains(&victim) {
            // The server goes on, and records again.
            client.command("perflens.record", json!([{ "target": "./hot 10" }]));
            client.until("word of another recording", |client| {
                let all = client.received("window/showMessage");
                all.iter().any(|message| message.to_string().contains("samples in")).then_some(())
            });
        }
    }
}
