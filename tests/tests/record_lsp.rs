//! Recording from an editor.
#![cfg(target_os = "linux")]

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use perflens_tests::cli::{commands_of, run_line};
use perflens_tests::lsp::{Client, Start, editor};
use perflens_tests::record::{Ground, User, descendants, is_alive, until};
use serde_json::json;

/// A session with the project of a program open.
fn session(ground: &Ground) -> (Client, String) {
    session_of(ground, "hot.c")
}

fn session_of(ground: &Ground, file: &str) -> (Client, String) {
    let client = Start::new(editor("vscode")).folder(&ground.work()).start();
    let uri = client.open(&ground.work().join(file));
    (client, uri)
}

/// What the user was told.
fn messages(client: &Client) -> Vec<String> {
    let all = client.received("window/showMessage");
    all.iter().map(|message| message["message"].as_str().unwrap_or_default().to_owned()).collect()
}

fn recordings(client: &Client) -> Vec<PathBuf> {
    let all = client.home().join("state/perflens/recordings");
    let folders = std::fs::read_dir(all).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten().flatten());
    files.map(|file| file.path()).filter(|path| path.to_string_lossy().ends_with(".pb.gz")).collect()
}

#[test]
fn costs_appear_while_the_program_runs_and_stay_when_it_is_stopped() {
    let (ground, _) = Ground::c("hot");
    let (mut client, uri) = session(&ground);
    client.command("perflens.record", json!(["./hot 10000000"]));
    client.until("costs of a program that runs", |client| {
        client.hints(&uri).iter().any(|hint| hint.contains('%')).then_some(())
    });
    let children = descendants(client.pid());
    assert!(children.len() >= 3, "recording, recorder and program: {children:?}");
    // What was recorded so far is told as progress.
    client.until("progress with samples", |client| {
        let progress = client.received("$/progress");
        progress.iter().any(|step| step.to_string().contains("samples")).then_some(())
    });
    let shown = |client: &mut Client| {
        let status = client.request("perflens/status", json!({}))[0].clone();
        (status["icon"].as_str().unwrap_or_default().to_owned(), status["text"].as_str().unwrap_or_default().to_owned())
    };
    let (icon, text) = shown(&mut client);
    let seconds = text.strip_prefix("cpu ").and_then(|text| text.strip_suffix('s')).and_then(|text| text.parse().ok());
    assert!(icon == "record" && seconds.is_some_and(|seconds: u32| seconds < 600), "{icon} {text}");
    client.command("perflens.stopRecording", json!([]));
    client.until("word of what was recorded", |client| {
        messages(client).iter().any(|message| message.contains("hot: ") && message.contains("samples in")).then_some(())
    });
    until("all it started is gone", || !children.iter().any(|&pid| is_alive(pid)));
    assert!(client.hints(&uri).iter().any(|hint| hint.contains('%')));
    assert_eq!(recordings(&client).len(), 1);
    assert_ne!(shown(&mut client).0, "record");
    // And then there is nothing to stop.
    let refused =
        client.refused("workspace/executeCommand", json!({ "command": "perflens.stopRecording", "arguments": [] }));
    assert!(refused.to_string().contains("nothing is being recorded"), "{refused}");
}

#[test]
fn a_server_that_is_killed_takes_its_recording_along() {
    let (ground, _) = Ground::c("hot");
    let (mut client, _) = session(&ground);
    client.command("perflens.record", json!([{ "target": "./hot 10000000" }]));
    let mut family = Vec::new();
    client.until("the program runs", |client| {
        family = descendants(client.pid());
        (family.len() >= 3).then_some(())
    });
    std::thread::sleep(Duration::from_millis(300));
    client.kill();
    until("all it started is gone", || !family.iter().any(|&pid| is_alive(pid)));
}

#[test]
fn what_cannot_be_recorded_is_said() {
    let (ground, _) = Ground::c("hot");
    let (mut client, _) = session(&ground);
    client.command("perflens.record", json!(["./missing"]));
    client.until("the reason", |client| {
        messages(client).iter().any(|message| message.contains("./missing: there is no such program")).then_some(())
    });
    let refused =
        client.refused("workspace/executeCommand", json!({ "command": "perflens.record", "arguments": ["'a"] }));
    assert!(refused.to_string().contains("a quote is not closed"), "{refused}");
}

#[test]
fn a_recording_made_in_a_terminal_opens_by_itself() {
    let (ground, _) = Ground::c("hot");
    let (mut client, uri) = session(&ground);
    assert!(client.hints(&uri).is_empty());
    let mut command: Command = ground.perflens(User::Same);
    // The editor's user is who records.
    command.env("XDG_STATE_HOME", client.home().join("state"));
    command.args(["record", "--method", "copies", "--", "./hot", "1500"]);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(status.success());
    client.until("its costs", |client| client.hints(&uri).iter().any(|hint| hint.contains('%')).then_some(()));
}

/// What an assistant is told to run, with arguments of its own.
#[test]
fn the_command_that_measures_again_records_the_same_kind() {
    // What only computes waits for nothing on a machine with nothing else to do.
    for (program, event, kind) in [("hot", "cpu", "cpu"), ("waits", "off-cpu", "off_cpu")] {
        let (ground, _) = Ground::c(program);
        let (mut client, _) = session_of(&ground, &format!("{program}.c"));
        client.command("perflens.record", json!([{ "target": format!("./{program} 700"), "event": event }]));
        let copied = client.until("a copy of the recording", |client| {
            let call = json!({ "command": "perflens.copyForAI", "arguments": [{ "scope": "workspace" }] });
            let id = client.send("workspace/executeCommand", call);
            let text = client.response(id).ok()?.as_str()?.to_owned();
            (text.contains(&format!("`{kind}`")) && text.contains("To measure it again")).then_some(text)
        });
        let commands = commands_of(&copied);
        assert_eq!(commands.len(), 1, "{copied}");
        assert!(commands[0].ends_with(&format!(" -- ./{program}")) && !copied.contains("700"), "{copied}");
        let output = run_line(&format!("{} 700", commands[0]), &ground.work(), client.home());
        assert_eq!(output.code, Some(0), "{}: {}", commands[0], output.stderr);
        assert!(output.stdout.contains(kind), "{}: {}", commands[0], output.stdout);
    }
}
