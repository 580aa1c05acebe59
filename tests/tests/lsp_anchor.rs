//! Lines of a profile in files that have changed since: costs stand where the measured line is
//! now, or say that they may not, or are nowhere.
//!
//! What is not here: comparing texts (`profiler-core/tests/anchor`), and edits in a buffer without
//! any change before ([`lsp_documents`](../lsp_documents/index.html)).

use std::fs;
use std::path::Path;
use std::process::Command;

use perflens_tests::cli::Run;
use perflens_tests::lsp::{Client, DEMO, Scene, editor};
use perflens_tests::mini::Mini;
use serde_json::{Value, json};

const MAIN: &str = "\
fn main() {
    prepare_everything();
    for round in 0..1000 {
        hot_work(round);
    }
    report_results();
}

fn hot_work(round: u64) {
    spin(round);
    spin(round);
    store_result(round);
}
";

/// One sample for each line that does something.
const PROFILE: &str = "
    cpu/nanoseconds
    src/main.rs:2 main #1 = 10_000_000
    src/main.rs:4 main #1; src/main.rs:10 hot_work #9 = 300_000_000
    src/main.rs:4 main #1; src/main.rs:11 hot_work #9 = 200_000_000
    src/main.rs:4 main #1; src/main.rs:12 hot_work #9 = 400_000_000
    src/main.rs:6 main #1 = 90_000_000
";

/// A workspace with a recording, as `perflens record` leaves it, of this text.
struct Recorded {
    scene: Scene,
}

impl Recorded {
    fn new(files: &[(&str, &str)], profile: &str) -> Self {
        let scene = Scene::new("cpu/nanoseconds\n");
        for (path, text) in files {
            scene.write(path, text);
        }
        let recorded = Self { scene };
        recorded.record("run", files, profile);
        recorded
    }

    /// Another recording, of what the files held then.
    fn record(&self, name: &str, files: &[(&str, &str)], profile: &str) {
        let root = self.scene.path("").canonicalize().expect("it is there");
        let absolute = profile.replace(" src/", &format!(" {}/src/", root.display()));
        self.scene.write(&format!(".state/{name}.pb.gz"), Mini::parse(&absolute).gzip());
        let texts: Vec<Value> = files
            .iter()
            .map(|(path, text)| {
                let hash = sha256(&self.scene.path(""), text);
                self.scene.write(&format!(".state/texts/{hash}"), text);
                json!({ "path": path, "hash": hash, "isKept": true })
            })
            .collect();
        let about = json!({ "workspace": root, "command": ["run"], "files": texts });
        self.scene.write(&format!(".state/{name}.json"), about.to_string());
    }

    fn open(&self, name: &str) -> (Client, String) {
        let options = json!({ "source": { "file": ".state/run.pb.gz" }, "workspaceTrusted": true });
        let mut client = self.scene.editor(editor("neovim 0.11")).options(options).start();
        let uri = client.open(&self.scene.path(name));
        client.hints_soon(&uri);
        (client, uri)
    }

    fn report(&self, arguments: &[&str]) -> Value {
        let output = Run::new(["report"])
            .arg(self.scene.path(".state/run.pb.gz"))
            .args(["--format", "json", "--top", "0", "--workspace"])
            .arg(self.scene.path(""))
            .args(arguments)
            .output();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        serde_json::from_str(&output.stdout).expect("it is JSON")
    }
}

/// The hash of a text in hex, by the system's own tool.
fn sha256(folder: &Path, text: &str) -> String {
    let path = folder.join(".hashed");
    fs::write(&path, text).expect("writing");
    let output = Command::new("sha256sum").arg(&path).output().expect("sha256sum is there");
    String::from_utf8_lossy(&output.stdout)[..64].to_owned()
}

fn close(client: &Client, uri: &str) {
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
}

/// Waits for hints to be these.
fn wait_for(client: &mut Client, uri: &str, hints: &[&str]) {
    let uri = uri.to_owned();
    let mut seen = Vec::new();
    client.until(&format!("hints {hints:?}"), |client| {
        seen = client.hints(&uri);
        (seen == hints).then_some(())
    });
}

const AS_MEASURED: [&str; 5] = [
    "1:25 ▂ 1.0% 10.0ms here",
    "3:24 █ 90.0% 900ms",
    "5:21 ▄ 9.0% 90.0ms here",
    "9:16 █ 30.0% 300ms here",
    "10:16 ▆ 20.0% 200ms here",
];

#[test]
fn a_recording_keeps_its_lines_through_edits_branches_and_back() {
    let recorded = Recorded::new(&[("src/main.rs", MAIN)], PROFILE);
    let licence = "// one\n// two\n// three\n";
    // Edited before the profile is opened.
    let edited = format!("{licence}{MAIN}").replace("store_result(round);", "store_result(round, 1);");
    recorded.scene.write("src/main.rs", &edited);
    let (mut client, uri) = recorded.open("src/main.rs");
    let moved = [
        "4:25 ▂ 1.0% 10.0ms here",
        "6:24 █ 90.0% 900ms",
        "8:21 ▄ 9.0% 90.0ms here",
        "12:16 █ ~30.0% 300ms here",
        "13:16 ▆ ~20.0% 200ms here",
        "14:27 █ ~40.0% 400ms here",
    ];
    wait_for(&mut client, &uri, &moved);
    let hover = client.hover(&uri, 6, 8);
    assert!(
        hover.contains("Measured before your edit, as line 4; found by the copy kept with the recording."),
        "{hover}"
    );
    let hover = client.hover(&uri, 14, 8);
    assert!(hover.contains("may be another line: the line itself was edited"), "{hover}");
    let lenses = client.lenses(&uri);
    assert!(lenses.iter().any(|lens| lens.starts_with("11 ") && lens.contains("function 90.0% 900ms")), "{lenses:?}");

    // Going back to what was measured brings back what was exact.
    recorded.scene.write("src/main.rs", MAIN);
    close(&client, &uri);
    let uri = client.open(&recorded.scene.path("src/main.rs"));
    let all: Vec<&str> = AS_MEASURED.iter().copied().chain(["11:24 █ 40.0% 400ms here"]).collect();
    wait_for(&mut client, &uri, &all);
    assert!(!client.hover(&uri, 3, 8).contains("Measured before"), "nothing has changed");

    // A line that is gone has no hint; its function has its cost all the same.
    recorded.scene.write("src/main.rs", MAIN.replace("    store_result(round);\n", ""));
    close(&client, &uri);
    let uri = client.open(&recorded.scene.path("src/main.rs"));
    wait_for(&mut client, &uri, &AS_MEASURED);
    let lenses = client.lenses(&uri);
    assert!(lenses.iter().any(|lens| lens.starts_with("8 ") && lens.contains("function 90.0% 900ms")), "{lenses:?}");

    // The command line says the same.
    let report = recorded.report(&[]);
    let file = &report["files"][0];
    assert_eq!(file["anchor"]["basis"], "copy");
    assert_eq!(file["anchor"]["gone_flat"], 400_000_000);
    assert_eq!(report["accounting"]["with_line"], 1_000_000_000);
    assert_eq!(report["accounting"]["workspace"]["shown"], 1_000_000_000);
    let lines: Vec<i64> = report["lines"].as_array().unwrap().iter().map(|row| row["line"].as_i64().unwrap()).collect();
    assert!(!lines.contains(&12), "{lines:?}");
    let hot = report["functions"].as_array().unwrap().iter().find(|row| row["name"] == "hot_work").unwrap();
    assert_eq!(hot["direct"], 900_000_000, "what is gone is still its function's own");
}

#[test]
fn unsaved_edits_come_on_top_and_saving_them_changes_nothing() {
    let recorded = Recorded::new(&[("src/main.rs", MAIN)], PROFILE);
    recorded.scene.write("src/main.rs", format!("// top\n{MAIN}"));
    let options = json!({ "source": { "file": ".state/run.pb.gz" }, "workspaceTrusted": true });
    let mut client = recorded.scene.editor(editor("neovim 0.11")).options(options).start();
    let mut document = client.open_document(&recorded.scene.path("src/main.rs"));
    let uri = document.uri.clone();
    client.hints_soon(&uri);
    client.edit(&mut document, (10, 0), (10, 0), "    spin(round);\n");
    let expected = [
        "2:25 ▂ 1.0% 10.0ms here",
        "4:24 █ 90.0% 900ms",
        "6:21 ▄ 9.0% 90.0ms here",
        // A third equal line went before them, and who was typed is known.
        "11:16 █ 30.0% 300ms here",
        "12:16 ▆ 20.0% 200ms here",
        "13:24 █ 40.0% 400ms here",
    ];
    assert_eq!(client.hints(&uri), expected);
    recorded.scene.write("src/main.rs", &document.text);
    // Whoever would look at the file again would not know any more.
    std::thread::sleep(std::time::Duration::from_millis(800));
    assert_eq!(client.hints(&uri), expected);
}

#[test]
fn a_block_that_is_cut_and_pasted_is_found_again() {
    let recorded = Recorded::new(&[("src/main.rs", MAIN)], PROFILE);
    let options = json!({ "source": { "file": ".state/run.pb.gz" }, "workspaceTrusted": true });
    let mut client = recorded.scene.editor(editor("neovim 0.11")).options(options).start();
    let mut document = client.open_document(&recorded.scene.path("src/main.rs"));
    let uri = document.uri.clone();
    client.hints_soon(&uri);
    client.edit(&mut document, (1, 0), (6, 0), "");
    let block: Vec<&str> = MAIN.split_inclusive('\n').skip(1).take(5).collect();
    client.edit(&mut document, (1, 0), (1, 0), &format!("    // pasted\n{}", block.concat()));
    let soon = [
        "2:25 ▂ 1.0% 10.0ms here",
        "4:24 █ 90.0% 900ms",
        "6:21 ▄ 9.0% 90.0ms here",
        "10:16 █ 30.0% 300ms here",
        "11:16 ▆ 20.0% 200ms here",
        "12:24 █ 40.0% 400ms here",
    ];
    wait_for(&mut client, &uri, &soon);
}

#[test]
fn a_file_that_was_renamed_keeps_its_costs() {
    let other = "fn other() {\n    something_else();\n    entirely_different();\n}\n";
    let recorded = Recorded::new(&[("src/main.rs", MAIN), ("src/other.rs", other)], PROFILE);
    fs::remove_file(recorded.scene.path("src/main.rs")).expect("removing");
    recorded.scene.write("src/entry/start.rs", format!("// top\n{MAIN}"));
    recorded.scene.write("src/unlike.rs", other.replace("other", "unlike"));
    let (mut client, uri) = recorded.open("src/entry/start.rs");
    let hints = client.hints(&uri);
    assert_eq!(hints.len(), 6, "{hints:?}");
    assert_eq!(hints[1], "4:24 █ 90.0% 900ms");
    let hover = client.hover(&uri, 4, 8);
    assert!(hover.contains("as line 4 in src/main.rs"), "{hover}");
    let report = recorded.report(&[]);
    assert_eq!(report["files"][0]["workspace_file"], "src/entry/start.rs");
    assert_eq!(report["files"][0]["anchor"]["renamed_from"], "src/main.rs");
}

#[test]
fn both_sides_of_a_comparison_are_brought_to_the_text_of_now() {
    let recorded = Recorded::new(&[("src/main.rs", MAIN)], PROFILE);
    let edited = MAIN.replace("    prepare_everything();\n", "    prepare_everything();\n    prepare_more();\n");
    recorded.scene.write("src/main.rs", &edited);
    // The same lines, one further down, of which one is faster.
    let faster = "
        cpu/nanoseconds
        src/main.rs:2 main #1 = 10_000_000
        src/main.rs:5 main #1; src/main.rs:11 hot_work #10 = 300_000_000
        src/main.rs:5 main #1; src/main.rs:12 hot_work #10 = 200_000_000
        src/main.rs:5 main #1; src/main.rs:13 hot_work #10 = 340_000_000
        src/main.rs:7 main #1 = 90_000_000
    ";
    recorded.record("later", &[("src/main.rs", &edited)], faster);
    let before = recorded.scene.path(".state/run.pb.gz");
    let output = Run::new(["report"])
        .arg(recorded.scene.path(".state/later.pb.gz"))
        .args(["--format", "json", "--top", "0", "--workspace"])
        .arg(recorded.scene.path(""))
        .arg("--base")
        .arg(&before)
        .output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    let rows: Vec<(i64, i64)> = report["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["line"].as_i64().unwrap(), row["diff_flat"].as_i64().unwrap()))
        .filter(|(_, difference)| *difference != 0)
        .collect();
    assert_eq!(rows, [(13, -60_000_000)], "only the line that is faster differs");
}

/// Like a profile of a tool's own test data, whose source got a licence of 14 lines later.
#[test]
fn functions_tell_how_far_lines_have_moved_when_nothing_else_does() {
    let source = "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfor i := 0; i < 10; i++ {\n\t\tbusyLoop(i)\n\t}\n}\n\n\
                  func busyLoop(n int) {\n\tx := 0\n\tfor x < n {\n\t\tx += 1\n\t}\n\tfmt.Println(x)\n}\n\n\
                  func idle() {\n\tx := 0\n\tfor x < 10 {\n\t\tx += 2\n\t}\n}\n";
    let licence = "// licence\n".repeat(14);
    let scene = Scene::new(
        "
        cpu/nanoseconds
        sample/sample.go:7 main.main #5; sample/sample.go:14 main.busyLoop #11 = 900_000_000
        sample/sample.go:21 main.idle #19 = 100_000_000
        ",
    );
    scene.write("sample/sample.go", format!("{licence}{source}"));
    scene.write("go.mod", "module example.com/sample\n");
    let mut client = scene.editor(editor("neovim 0.11")).start();
    let uri = client.open(&scene.path("sample/sample.go"));
    let hints = client.hints_soon(&uri);
    assert_eq!(hints, ["20:13 █ ~90.0% 900ms", "27:8 █ ~90.0% 900ms here", "34:13 ▆ ~10.0% 100ms here"]);
    let hover = client.hover(&uri, 27, 2);
    assert!(hover.contains("as line 14; may be another line: found by where its function starts"), "{hover}");
    // What it was when it was opened goes on to count, whatever becomes of the functions.
    scene.write("sample/sample.go", format!("{licence}{}", source.replace("func idle", "// more\nfunc idle")));
    close(&client, &uri);
    let uri = client.open(&scene.path("sample/sample.go"));
    let moved = ["20:13 █ ~90.0% 900ms", "27:8 █ ~90.0% 900ms here", "35:13 ▆ ~10.0% 100ms here"];
    wait_for(&mut client, &uri, &moved);
}

#[test]
fn where_nothing_tells_what_was_measured_that_is_said_once() {
    let scene = Scene::demo();
    let (mut client, _) = scene.open(editor("neovim 0.11"), "src/main.rs");
    assert!(!client.request("perflens/status", json!({})).to_string().contains("lines unverified"));
    let without_starts =
        DEMO.split("//-").next().expect("the profile").replace("#1", "").replace("#6", "").replace("#5", "");
    scene.rewrite(&without_starts.replace("#9", ""));
    client.until("the status to say so", |client| {
        let status = client.request("perflens/status", json!({})).to_string();
        (status.matches("lines unverified").count() == 1).then_some(())
    });
}

/// When the first commit of a repository was made, in seconds, and when the second was.
const FIRST: i64 = 1_700_000_000;
const SECOND: i64 = FIRST + 100_000;

fn git(folder: &Path, arguments: &[&str]) -> String {
    git_at(FIRST, folder, arguments)
}

fn git_at(seconds: i64, folder: &Path, arguments: &[&str]) -> String {
    let date = format!("@{seconds} +0000");
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgSign=false"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_DATE", &date)
        .env("GIT_COMMITTER_DATE", &date)
        .output()
        .expect("git is installed");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A repository whose first commit was measured; since then three lines were put before it.
fn repository(profile: impl Fn(&str) -> String) -> (Scene, String) {
    let scene = Scene::new("cpu/nanoseconds\n");
    scene.write("src/main.rs", MAIN);
    scene.write(".gitignore", "*.pb.gz\n");
    git(&scene.path(""), &["init", "-q", "-b", "main"]);
    git(&scene.path(""), &["add", "."]);
    git(&scene.path(""), &["commit", "-q", "-m", "first"]);
    let commit = git(&scene.path(""), &["rev-parse", "HEAD"]);
    scene.write("src/main.rs", format!("// one\n// two\n// three\n{MAIN}"));
    git_at(SECOND, &scene.path(""), &["commit", "-q", "-a", "-m", "second"]);
    scene.write("p.pb.gz", Mini::parse(&profile(&commit)).gzip());
    (scene, commit)
}

#[test]
fn a_label_that_names_a_commit_tells_the_measured_text() {
    let (scene, commit) = repository(|commit| {
        let labels = format!(" {{service_git_ref={commit}}}\n");
        PROFILE
            .lines()
            .map(|line| if line.contains('=') { format!("{line}{labels}") } else { format!("{line}\n") })
            .collect()
    });
    let (mut client, uri) = scene.open(editor("neovim 0.11"), "src/main.rs");
    let hints = client.hints(&uri);
    assert_eq!(hints[1], "6:24 █ 90.0% 900ms", "{hints:?}");
    assert_eq!(hints.len(), 6, "{hints:?}");
    let hover = client.hover(&uri, 6, 8);
    let words = format!("as line 4; found by commit {}, label service_git_ref", &commit[..10]);
    assert!(hover.replace('\\', "").contains(&words), "{hover}");
}

#[test]
fn the_newest_commit_before_the_profile_is_a_guess_unless_functions_confirm_it() {
    let timed = |profile: &str| format!("{profile}\n!time {}\n", (FIRST + 50_000) * 1_000_000_000);
    let (scene, commit) = repository(|_| timed(PROFILE));
    let (mut client, uri) = scene.open(editor("neovim 0.11"), "src/main.rs");
    assert_eq!(client.hints(&uri)[1], "6:24 █ 90.0% 900ms");
    let hover = client.hover(&uri, 6, 8);
    let words = format!("found by commit {}, the newest before the profile's time", &commit[..10]);
    assert!(hover.contains(&words), "{hover}");

    let (scene, _) = repository(|_| timed(&PROFILE.replace(" #1", "").replace(" #9", "")));
    let (mut client, uri) = scene.open(editor("neovim 0.11"), "src/main.rs");
    assert_eq!(client.hints(&uri)[1], "6:24 █ ~90.0% 900ms");
    let hover = client.hover(&uri, 6, 8);
    assert!(hover.contains("may be another line: which commit was measured is a guess"), "{hover}");
}

/// Sums, and writes the profile of that to the file that is named.
const GO: &str = r#"package main

import (
	"os"
	"runtime/pprof"
)

func hot(rounds int) int {
	sum := 1
	for round := range rounds { sum = sum*31 ^ round } // hot
	return sum
}

func main() {
	file, _ := os.Create(os.Args[1])
	pprof.StartCPUProfile(file)
	sum := 0
	for range 40 { sum += hot(20_000_000) }
	pprof.StopCPUProfile()
	file.Close()
	os.Exit(sum & 1 >> 1)
}
"#;

/// Nothing but the program knows it: no label, and a newer commit was there when it ran.
#[test]
fn a_go_program_tells_which_commit_it_was_built_from() {
    let scene = Scene::new("cpu/nanoseconds\n");
    let (folder, programs) = (scene.path(""), tempfile::tempdir().expect("a folder"));
    let program = programs.path().join("sums");
    scene.write("go.mod", "module example.com/sums\n\ngo 1.22\n");
    scene.write("main.go", GO);
    scene.write(".gitignore", "*.pb.gz\n");
    git(&folder, &["init", "-q", "-b", "main"]);
    git(&folder, &["add", "."]);
    git(&folder, &["commit", "-q", "-m", "first"]);
    let commit = git(&folder, &["rev-parse", "HEAD"]);
    let build = Command::new("go").args(["build", "-buildvcs=true", "-o"]).arg(&program).current_dir(&folder).output();
    let build = build.expect("go is installed");
    assert!(build.status.success(), "{}", String::from_utf8_lossy(&build.stderr));
    scene.write("main.go", GO.replace("func hot", "// one\n// two\n// three\nfunc hot"));
    git_at(SECOND, &folder, &["commit", "-q", "-a", "-m", "second"]);
    let run = Command::new(&program).arg(scene.path("p.pb.gz")).status().expect("it runs");
    assert!(run.success(), "{run}");

    let (mut client, uri) = scene.open(editor("neovim 0.11"), "main.go");
    client.until("the hot line where it is now", |client| {
        client.hints(&uri).iter().any(|hint| hint.starts_with("12:")).then_some(())
    });
    let hover = client.hover(&uri, 12, 8);
    let words = format!("as line 10; found by commit {}, of which the Go program was built", &commit[..10]);
    assert!(hover.replace('\\', "").contains(&words), "{hover}");
}

/// The text of now speaks against the file: functions are elsewhere, one after the other.
#[test]
fn a_file_that_changed_too_much_is_known_by_the_text_of_its_commit() {
    let (scene, commit) = repository(|commit| {
        let sample = |line: &str| format!("{} {{service_git_ref={commit}}}", line.replace(" src/", " /build/app/src/"));
        PROFILE.lines().map(|line| if line.contains('=') { sample(line) } else { line.to_owned() } + "\n").collect()
    });
    let far = "// far\n".repeat(40);
    scene.write("src/main.rs", format!("{far}{}", MAIN.replace("fn hot_work", &format!("{far}fn hot_work"))));
    let (mut client, uri) = scene.open(editor("neovim 0.11"), "src/main.rs");
    let hints = client.hints(&uri);
    assert_eq!(hints[1], "43:24 █ 90.0% 900ms", "{hints:?}");
    assert_eq!(hints.len(), 6, "{hints:?}");
    let hover = client.hover(&uri, 43, 8);
    assert!(hover.contains(&format!("by commit {}", &commit[..10])), "{hover}");
}

#[test]
fn nothing_that_a_repository_names_is_run() {
    let (scene, _) = repository(|_| format!("{PROFILE}\n!time 1700000000000000000\n"));
    let canary = scene.path("canary");
    let script = scene.path("run-me");
    scene.write("run-me", format!("#!/bin/sh\necho \"$0 $@\" >> {}\n", canary.display()));
    assert!(Command::new("chmod").arg("+x").arg(&script).status().unwrap().success());
    let run = script.display().to_string();
    let settings = [
        ("core.fsmonitor", run.clone()),
        ("core.pager", run.clone()),
        ("core.sshCommand", run.clone()),
        ("core.alternateRefsCommand", run.clone()),
        ("core.hooksPath", scene.path("hooks").display().to_string()),
        ("diff.external", run.clone()),
        ("diff.odd.textconv", run.clone()),
        ("filter.odd.smudge", run.clone()),
        ("filter.odd.clean", run.clone()),
        ("filter.odd.process", run.clone()),
        ("gpg.program", run.clone()),
        ("log.showSignature", "true".to_owned()),
        ("credential.helper", format!("!{run}")),
        ("alias.rev-parse", format!("!{run}")),
        ("alias.cat-file", format!("!{run}")),
    ];
    for (key, value) in settings {
        git(&scene.path(""), &["config", key, &value]);
    }
    scene.write(".gitattributes", "* filter=odd diff=odd\n");
    for hook in ["post-checkout", "reference-transaction", "fsmonitor-watchman", "post-index-change"] {
        scene.write(&format!("hooks/{hook}"), format!("#!/bin/sh\necho {hook} >> {}\n", canary.display()));
        assert!(Command::new("chmod").arg("+x").arg(scene.path(&format!("hooks/{hook}"))).status().unwrap().success());
    }
    let (mut client, uri) = scene.open(editor("neovim 0.11"), "src/main.rs");
    assert!(!client.hints(&uri).is_empty());
    let output = Run::report(&scene.path("p.pb.gz")).arg("--workspace").arg(scene.path("")).output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(!canary.exists(), "{}", fs::read_to_string(&canary).unwrap_or_default());
}
