//! "Profile this", from the lens to the costs, in real projects of each language: `tests/projects`.
//! On the machine that must run all tests they run as root, with eBPF.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use perflens_tests::lsp::{Answer, Client, Start, editor};
use perflens_tests::projects::{self, line_of};
use perflens_tests::record::{descendants, is_alive, is_root, until};
use serde_json::{Value, json};

/// A project in a folder of its own, open in an editor.
struct Project {
    client: Client,
    folder: tempfile::TempDir,
    uri: String,
    file: PathBuf,
    version: i32,
    /// How many messages were taken.
    heard: usize,
}

/// Opens a project of `tests/projects`, and a file of it.
fn project(name: &str, file: &str) -> Project {
    project_with(name, file, true, false)
}

fn project_with(name: &str, file: &str, is_trusted: bool, compares: bool) -> Project {
    let folder = tempfile::tempdir().expect("it works");
    let root = folder.path().canonicalize().expect("it works");
    projects::copy(name, &root);
    let client = Start::new(editor("vscode")).folder(&root).options(json!({ "workspaceTrusted": is_trusted })).answers(
        move |method, params| {
            let is_question = method == "window/showMessageRequest" && params["message"].as_str()?.contains("compare");
            let title = if compares { "Compare" } else { "Don't" };
            is_question.then(|| Answer::Result(json!({ "title": title })))
        },
    );
    let client = projects::tools().into_iter().fold(client, |client, (variable, value)| client.env(variable, value));
    let client = client.start();
    let file = root.join(file);
    let uri = client.open(&file);
    Project { client, folder, uri, file, version: 1, heard: 0 }
}

impl Project {
    /// The command of the lens above the line that has a text.
    fn lens(&mut self, text: &str) -> Value {
        let line = line_of(&self.file, text);
        let params = json!({ "textDocument": { "uri": self.uri } });
        let lenses = self.client.request("textDocument/codeLens", params);
        let is_it = |lens: &&Value| {
            lens["range"]["start"]["line"] == line
                && lens["command"]["title"].as_str().is_some_and(|title| title.starts_with("profile this"))
        };
        let found = lenses.as_array().expect("a list").iter().find(is_it);
        found.unwrap_or_else(|| panic!("no lens at line {line}: {lenses:#}"))["command"].clone()
    }

    /// Clicks the lens, and waits for what is told in the end.
    fn profile(&mut self, text: &str) -> String {
        self.click(text);
        self.said("samples in")
    }

    /// Clicks the lens.
    fn click(&mut self, text: &str) {
        let lens = self.lens(text);
        self.client.command(lens["command"].as_str().expect("a text"), lens["arguments"].clone());
    }

    /// Waits for progress with a text, behind what there was.
    fn progress(&mut self, text: &str, before: usize) {
        self.client.until("progress", |client| {
            let steps = client.received("$/progress");
            steps.iter().skip(before).any(|step| step.to_string().contains(text)).then_some(())
        });
    }

    /// The message that has a text.
    fn said(&mut self, text: &str) -> String {
        self.said_any(&[text])
    }

    fn said_any(&mut self, texts: &[&str]) -> String {
        // Whole builds are in it.
        let deadline = Instant::now() + Duration::from_mins(4);
        loop {
            let all = messages(&self.client);
            let is_it = |message: &String| texts.iter().any(|text| message.contains(text));
            if let Some(at) = all.iter().skip(self.heard).position(is_it) {
                self.heard += at + 1;
                return all[self.heard - 1].clone();
            }
            assert!(Instant::now() < deadline && self.client.is_running(), "nothing of {texts:?} was said: {all:#?}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// The lines of a file with their shares, the costliest first: what a report of the recording has.
    fn hints(&mut self, file: &str) -> Vec<String> {
        let path = self.folder.path().canonicalize().expect("it works").join(file);
        let uri = if path == self.file { self.uri.clone() } else { self.client.open(&path) };
        self.client.hints_soon(&uri)
    }

    /// The hint of the line that has a text.
    fn hint(&mut self, file: &str, text: &str) -> String {
        let line = line_of(&self.folder.path().join(file), text);
        let hints = self.hints(file);
        let start = format!("{line}:");
        hints.iter().find(|hint| hint.starts_with(&start)).cloned().unwrap_or_else(|| panic!("{line}: {hints:#?}"))
    }

    /// What the first hot spots are, as `file:line`.
    fn hottest(&mut self) -> String {
        let rows = self.client.command("perflens.showHotspots", json!([{ "by": "line" }]));
        format!("{}:{}", rows[0]["file"].as_str().unwrap_or_default(), rows[0]["line"])
    }

    /// Replaces text in a file on disk, and in the editor where it is open.
    fn replace(&mut self, file: &str, from: &str, to: &str) {
        let path = self.folder.path().canonicalize().expect("it works").join(file);
        let text = std::fs::read_to_string(&path).expect("it works");
        assert!(text.contains(from), "{file} has {from:?}");
        let text = text.replace(from, to);
        std::fs::write(&path, &text).expect("it works");
        if path == self.file {
            self.version += 1;
            let document = json!({ "uri": self.uri, "version": self.version });
            let change = json!({ "textDocument": document, "contentChanges": [{ "text": text }] });
            self.client.notify("textDocument/didChange", change);
        }
    }

    /// What the last recording has of a line, as a part of what the first one has.
    fn ratio(&self, text: &str) -> f64 {
        let recordings = self.recordings();
        let [base, .., new] = recordings.as_slice() else { panic!("two recordings: {recordings:?}") };
        let output = Command::new(perflens_tests::cli::binary())
            .args(["report", "--format", "json", "--top", "0", "--base"])
            .args([base, new])
            .arg("--workspace")
            .arg(self.folder.path())
            .output()
            .expect("it works");
        let report: Value = serde_json::from_slice(&output.stdout).expect("it works");
        let line = line_of(&self.file, text) + 1;
        let rows = report["lines"].as_array().expect("a list");
        let row = rows
            .iter()
            .find(|row| row["line"] == line && row["file"].as_str().expect("a text").ends_with("lib.rs"))
            .expect("it works");
        row["cumulative"].as_f64().expect("a number") / row["base_cumulative"].as_f64().expect("a number")
    }

    /// The recordings there are, the oldest first.
    fn recordings(&self) -> Vec<PathBuf> {
        let all = self.client.home().join("state/perflens/recordings");
        let folders = std::fs::read_dir(all).into_iter().flatten().flatten();
        let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten().flatten());
        let files = files.map(|file| file.path());
        let mut all: Vec<PathBuf> = files.filter(|path| path.to_string_lossy().ends_with(".pb.gz")).collect();
        all.sort();
        all
    }
}

/// What is beside a recording.
fn about(recording: &Path) -> Value {
    let beside = recording.to_string_lossy().replace(".pb.gz", ".json");
    serde_json::from_slice(&std::fs::read(beside).expect("it is there")).expect("JSON")
}

fn messages(client: &Client) -> Vec<String> {
    let all = client.received("window/showMessage");
    all.iter().map(|message| message["message"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The percentage that a text has before a word, as in `7% of all samples are set-up`.
fn percent_before(text: &str, word: &str) -> f64 {
    let before = text.split(word).next().expect("it works").trim_end_matches(['%', ' ']);
    let number = before.rsplit(|c: char| !c.is_ascii_digit() && c != '.').next().expect("it works");
    number.parse().unwrap_or_else(|_| panic!("no number before {word:?} in {text:?}"))
}

/// Samples and runs that were told.
fn samples(said: &str) -> f64 {
    percent_before(said, " samples in")
}

#[track_caller]
fn assert_shares(hot: &str, steady: &str) {
    let share = |hint: &str| percent_before(hint.split_once('%').expect("it works").0, "%");
    let (hot, steady) = (share(hot), share(steady));
    assert!((58.0..76.0).contains(&hot) && (24.0..42.0).contains(&steady), "hot {hot} %, steady {steady} %");
}

#[test]
fn a_test_in_rust_has_its_lines_and_an_edit_shows() {
    if !is_root() {
        return;
    }
    let mut project = project_with("rust", "src/lib.rs", true, true);
    let said = project.profile("fn sums");
    assert!(said.contains("tests::sums: ") && said.contains("with eBPF"), "{said}");
    assert!(said.contains("of all samples are set-up"), "{said}");
    assert!(samples(&said) >= 900.0, "{said}");
    let line = line_of(&project.file, "// hot") + 1;
    assert_eq!(project.hottest(), format!("src/lib.rs:{line}"));
    assert_shares(&project.hint("src/lib.rs", "// hot"), &project.hint("src/lib.rs", "// steady"));

    // The hot line becomes as cheap as the steady one: half of what it was, and a third of all.
    project.replace("src/lib.rs", "0..2 * rounds", "0..1 * rounds");
    let again = project.profile("fn sums");
    let runs = |said: &str| said.split(" samples in ").nth(1).unwrap().split(',').next().unwrap().to_owned();
    assert_eq!(runs(&said), runs(&again), "the same work");
    let (hot, steady) = project.client.until("the comparison", |client| {
        let hints = client.hints(&project.uri);
        let at =
            |text| hints.iter().find(|hint| hint.starts_with(&format!("{}:", line_of(&project.file, text)))).cloned();
        at("// hot").filter(|hint| hint.contains('▼')).zip(Some(at("// steady")))
    });
    // The recordings tell that their work is the same, so that is a third of the base; of shares it
    // would be a sixth.
    let change = percent_before(hot.split_once("pp").unwrap().0, "pp");
    assert!((25.0..42.0).contains(&change), "{hot}");
    assert!(steady.as_ref().is_none_or(|steady| !steady.contains('▼')), "{steady:?}");
    // One halves and the other stays.
    let (hot, steady) = (project.ratio("// hot"), project.ratio("// steady"));
    assert!((0.35..0.65).contains(&hot) && (0.75..1.25).contains(&steady), "hot × {hot}, steady × {steady}");
}

#[test]
fn a_test_in_go_has_its_lines_and_its_set_up_is_left_out() {
    if !is_root() {
        return;
    }
    let mut project = project("go", "sums_test.go");
    let said = project.profile("func TestSums");
    assert!(said.contains("TestSums: ") && said.contains("with eBPF"), "{said}");
    // A quarter of what is done is in TestMain.
    let set_up = percent_before(&said, "% of all samples are set-up");
    assert!((15.0..40.0).contains(&set_up), "{said}");
    assert!(said.contains("elsewhere: ") && said.contains("sums.go"), "{said}");
    let line = line_of(&project.folder.path().join("sums.go"), "// hot") + 1;
    assert_eq!(project.hottest(), format!("sums.go:{line}"));
    assert_shares(&project.hint("sums.go", "// hot"), &project.hint("sums.go", "// steady"));
    let hints = project.hints("sums_test.go");
    assert!(
        !hints.iter().any(|hint| hint.starts_with(&format!("{}:", line_of(&project.file, "// set-up")))),
        "{hints:#?}"
    );

    // Its set-up is there when it is asked for.
    project.client.command("perflens.setFilter", json!([""]));
    let line = line_of(&project.file, "// set-up");
    let uri = project.uri.clone();
    project.client.until("set-up", |client| {
        client.hints(&uri).iter().any(|hint| hint.starts_with(&format!("{line}:"))).then_some(())
    });
}

#[test]
fn tests_in_python_have_their_lines_and_their_set_up_is_left_out() {
    if !is_root() {
        return;
    }
    let mut project = project("python", "test_sums.py");
    for (test, name) in
        [("def test_sums()", "test_sums: "), ("def test_sums_in_a_class", "Sums::test_sums_in_a_class: ")]
    {
        let said = project.profile(test);
        assert!(said.contains(name) && said.contains("with eBPF"), "{said}");
        assert!(percent_before(&said, "% of all samples are set-up") > 10.0, "{said}");
        let line = line_of(&project.folder.path().join("sums.py"), "# hot") + 1;
        assert_eq!(project.hottest(), format!("sums.py:{line}"));
        assert_shares(&project.hint("sums.py", "# hot"), &project.hint("sums.py", "# steady"));
    }
    project.click("def test_fails");
    let said = project.said("test_fails failed (code 1)");
    assert!(said.contains("it is never seven"), "{said}");
}

#[test]
fn a_test_in_javascript_has_its_lines_by_the_profiler_of_v8() {
    if !is_root() {
        return;
    }
    let mut project = project("node", "sums.test.js");
    let said = project.profile("test(\"take time\"");
    assert!(said.contains("take time: ") && said.contains("with node --cpu-prof, as V8"), "{said}");
    assert!(percent_before(&said, "% of all samples are set-up") > 5.0, "{said}");
    let line = line_of(&project.folder.path().join("sums.js"), "// hot") + 1;
    assert_eq!(project.hottest(), format!("sums.js:{line}"));
    assert_shares(&project.hint("sums.js", "// hot"), &project.hint("sums.js", "// steady"));
    project.click("test(\"fail\"");
    let said = project.said("fail failed (code 1)");
    assert!(said.contains("never seven"), "{said}");
}

/// What jest writes anew before it runs has other lines.
#[test]
fn a_test_of_jest_has_its_own_lines_or_is_refused() {
    let mut project = project("jest", "sums.test.js");
    let root = project.folder.path().canonicalize().unwrap();
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/jest/node_modules").canonicalize();
    let packages = packages.expect("tests/install-profilers puts jest there");
    std::os::unix::fs::symlink(packages, root.join("node_modules")).unwrap();
    if is_root() {
        let said = project.profile("test(\"take time\"");
        assert!(said.contains("take time: ") && said.contains("with node --cpu-prof"), "{said}");
        let line = line_of(&root.join("sums.js"), "// hot") + 1;
        assert_eq!(project.hottest(), format!("sums.js:{line}"));
        assert_shares(&project.hint("sums.js", "// hot"), &project.hint("sums.js", "// steady"));
    }
    let modules = project.client.open(&root.join("modules.test.js"));
    let lenses = project.client.request("textDocument/codeLens", json!({ "textDocument": { "uri": modules } }));
    let lens = &lenses[0]["command"];
    let params = json!({ "command": lens["command"], "arguments": lens["arguments"] });
    project.client.request("workspace/executeCommand", params);
    let said = project.said("of a module");
    assert!(said.contains("the lines of that are others") && said.contains("[tasks.NAME]"), "{said}");
}

#[test]
fn a_task_in_c_is_built_run_and_checked_for_lines() {
    if !is_root() {
        return;
    }
    let mut project = project("c", "sums.c");
    let said = project.profile("test_sums(uint64_t");
    assert!(said.contains("test_sums: ") && said.contains("with eBPF"), "{said}");
    assert!((15.0..40.0).contains(&percent_before(&said, "% of all samples are set-up")), "{said}");
    let line = line_of(&project.file, "/* hot */") + 1;
    assert_eq!(project.hottest(), format!("sums.c:{line}"));
    assert_shares(&project.hint("sums.c", "/* hot */"), &project.hint("sums.c", "/* steady */"));
    let lens = project.lens("test_without_lines(uint64_t");
    project.replace("sums.c", "#include <stdint.h>", "/* Lines\n   that move\n   others */\n#include <stdint.h>");
    let moved = project.client.command("perflens.profileTest", lens["arguments"].clone());
    assert_eq!(moved["name"], "test_without_lines", "of the lens of before the edit: {moved}");
    let said = project.said("built without line tables");
    assert!(said.contains("option -g"), "{said}");
}

#[test]
fn programs_and_other_targets_are_run_as_they_are_built() {
    if !is_root() {
        return;
    }
    let mut bench = project("rust", "benches/sums.rs");
    let said = bench.profile("fn main");
    assert!(said.contains("main: ") && !said.contains("set-up"), "{said}");
    let line = line_of(&bench.folder.path().join("src/lib.rs"), "// hot") + 1;
    assert_eq!(bench.hottest(), format!("src/lib.rs:{line}"));
    let mut outside = project("rust", "tests/outside.rs");
    let said = outside.profile("fn sums_from_outside");
    assert!(said.contains("sums_from_outside: ") && said.contains("elsewhere: "), "{said}");
    assert_eq!(outside.hottest(), format!("src/lib.rs:{line}"));
}

#[test]
fn a_benchmark_in_go_does_the_same_work_again() {
    if !is_root() {
        return;
    }
    let mut project = project("go", "sums_test.go");
    project.profile("func BenchmarkSums");
    project.profile("func BenchmarkSums");
    let works: Vec<Value> = project.recordings().iter().map(|path| about(path)["work"].clone()).collect();
    assert_eq!(works.len(), 2);
    assert!(works[0]["iterations"].as_u64() > Some(1), "{works:?}");
    assert_eq!(works[0], works[1]);
}

#[test]
fn what_fails_is_told_with_its_outcome() {
    if !is_root() {
        return;
    }
    let mut rust = project("rust", "src/lib.rs");
    rust.click("fn fails");
    let said = rust.said("failed (code 101)");
    assert!(said.contains("tests::fails failed (code 101)") && said.contains("it is never seven"), "{said}");
    rust.replace("src/lib.rs", "use std::hint::black_box;", "use std::hint::black_bocks;");
    rust.click("fn sums");
    let said = rust.said("it does not build");
    assert!(said.contains("black_bocks") && said.contains("src/lib.rs:"), "{said}");

    let mut go = project("go", "sums_test.go");
    go.click("func TestFails");
    let said = go.said("failed (code 1)");
    assert!(said.contains("TestFails failed (code 1)") && said.contains("it is never seven"), "{said}");
}

#[test]
fn nothing_of_an_untrusted_workspace_runs() {
    let mut project = project_with("go", "sums_test.go", false, false);
    let lens = project.lens("func TestSums");
    let refused = project
        .client
        .refused("workspace/executeCommand", json!({ "command": lens["command"], "arguments": lens["arguments"] }));
    let refused = refused.to_string();
    assert!(refused.contains("is not trusted") && refused.contains("perflens trust "), "{refused}");
    assert_eq!(descendants(project.client.pid()), Vec::<u32>::new());
    // Trusted, though it has no perflens.toml, it runs.
    let root = project.folder.path().canonicalize().unwrap();
    project.client.command("perflens.trustWorkspace", json!([root]));
    if is_root() {
        project.profile("func TestSums");
    }
}

/// Trust in a folder is trust in its files, not in what an editor has open besides, or a link leads to.
#[test]
fn nothing_outside_of_the_trusted_folder_runs() {
    let mut project = project("go", "sums_test.go");
    let lens = project.lens("func TestSums");
    let outside = tempfile::tempdir().unwrap();
    let elsewhere = outside.path().canonicalize().unwrap().join("go");
    projects::copy("go", &elsewhere);
    let link = project.folder.path().canonicalize().unwrap().join("link");
    std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
    for file in [elsewhere.join("sums_test.go"), link.join("sums_test.go")] {
        let uri = project.client.open(&file);
        let arguments: Value =
            serde_json::from_str(&lens["arguments"].to_string().replace(&project.uri, &uri)).unwrap();
        let params = json!({ "command": lens["command"], "arguments": arguments });
        let refused = project.client.refused("workspace/executeCommand", params).to_string();
        assert_eq!(descendants(project.client.pid()), Vec::<u32>::new(), "{refused}");
    }
}

#[test]
fn it_can_be_cancelled_at_any_time() {
    if !is_root() {
        return;
    }
    let mut project = project("rust", "src/lib.rs");
    for moment in ["building", "samples"] {
        let before = project.client.received("$/progress").len();
        project.click("fn never_ends");
        project.progress(moment, before);
        let children = descendants(project.client.pid());
        assert!(!children.is_empty());
        project.client.command("perflens.stopRecording", json!([]));
        project.said_any(&["was cancelled", "samples in", "used no time", "before it used any time"]);
        until("all it started is gone", || !children.iter().any(|&pid| is_alive(pid)));
        until("nothing is left", || descendants(project.client.pid()).is_empty());
    }
    // And when the server is killed.
    project.click("fn never_ends");
    let pid = project.client.pid();
    until("recording, recorder, repeater and test run", || descendants(pid).len() >= 4);
    let children = descendants(pid);
    project.client.kill();
    until("all it started is gone", || !children.iter().any(|&pid| is_alive(pid)));
}

fn git(folder: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgSign=false"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git is installed");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The same test before and after an edit on a branch: each base is found by what it is to the user, and lines
/// and functions say what became of them.
#[test]
fn a_recording_is_compared_with_what_its_user_means() {
    if !is_root() {
        return;
    }
    let mut project = project("c", "sums.c");
    let root = project.folder.path().canonicalize().unwrap();
    git(&root, &["init", "--quiet", "--initial-branch=main"]);
    git(&root, &["add", "sums.c", "perflens.toml"]);
    git(&root, &["commit", "--quiet", "-m", "first"]);
    project.profile("test_sums(uint64_t");
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let first = name(&project.recordings()[0]);
    // Of one recording there is nothing to compare with, and that is said.
    let nothing = json!({ "command": "perflens.compareWith", "arguments": [] });
    let refused = project.client.refused("workspace/executeCommand", nothing).to_string();
    assert!(refused.contains("before my edit: there is no recording of test_sums before this one"), "{refused}");

    git(&root, &["checkout", "--quiet", "-b", "faster"]);
    project.replace(
        "sums.c",
        "static uint64_t __attribute__((noinline)) hot",
        "\n\nstatic uint64_t __attribute__((noinline)) hot",
    );
    project.replace("sums.c", "2 * rounds", "1 * rounds");
    project.profile("test_sums(uint64_t");
    let offered = project.client.command("perflens.compareWith", json!([]));
    let bases: Vec<&str> =
        offered["choices"].as_array().unwrap().iter().map(|it| it["base"].as_str().unwrap()).collect();
    assert_eq!(bases, ["edit:", "merge-base:", "branch:main"], "{offered:#}");
    for base in bases {
        let compared = project.client.command("perflens.compareWith", json!([base]));
        assert_eq!(compared["profile"], first, "{base}");
        let title = compared["base"].as_str().unwrap().to_owned();
        let status = project.client.until("the comparison", |client| {
            let status = client.command("perflens.showStatus", json!([]));
            status[0]["text"].as_str().filter(|text| text.contains(&title))?;
            Some(status[0].clone())
        });
        assert!(status["details"].to_string().contains(&format!("Compared with {title}: {first}")), "{status:#}");
        project.client.command("perflens.stopComparing", json!([]));
    }
    project.client.command("perflens.compareWith", json!(["edit:"]));
    let uri = project.uri.clone();
    let hot = line_of(&project.file, "/* hot */");
    project.client.until("the change of the line that moved", |client| {
        client.hints(&uri).iter().any(|hint| hint.starts_with(&format!("{hot}:")) && hint.contains('▼')).then_some(())
    });
    let position = json!({ "textDocument": { "uri": uri }, "position": { "line": hot, "character": 3 } });
    let hover = project.client.request("textDocument/hover", position).to_string();
    assert!(hover.contains("Improved, ±") && hover.contains("samples here"), "{hover}");
    let lenses = project.client.request("textDocument/codeLens", json!({ "textDocument": { "uri": uri } })).to_string();
    assert!(lenses.contains("function ▼ −") && lenses.contains("pp ±"), "{lenses}");

    for (base, why) in [
        ("branch:nowhere", "there is no other recording of test_sums on branch nowhere"),
        ("yesterday:", "what is shown is not from a server"),
    ] {
        let call = json!({ "command": "perflens.compareWith", "arguments": [base] });
        let refused = project.client.refused("workspace/executeCommand", call).to_string();
        assert!(refused.contains(why), "{refused}");
    }
    project.client.command("perflens.stopComparing", json!([]));

    // What is under a function, by its action.
    let range = json!({ "start": { "line": hot, "character": 0 }, "end": { "line": hot, "character": 0 } });
    let asked = json!({ "textDocument": { "uri": uri }, "range": range, "context": { "diagnostics": [] } });
    let only = project.client.until("the function's action", |client| {
        let actions = client.request("textDocument/codeAction", asked.clone());
        let titled = |action: &&Value| {
            action["title"].as_str().is_some_and(|it| it.contains("only under this function: leaves out"))
        };
        actions.as_array()?.iter().find(titled).cloned()
    });
    project.client.command("perflens.setFilter", only["arguments"].clone());
    project.client.until("the whole is that function's", |client| {
        client
            .hints(&uri)
            .iter()
            .any(|hint| hint.starts_with(&format!("{hot}:")) && hint.contains("100%"))
            .then_some(())
    });
    let copied = project.client.command("perflens.copyForAI", json!([{ "scope": "workspace" }])).to_string();
    assert!(copied.contains("Filtered by ") && copied.contains("fn=hot"), "{copied}");
}

/// A program of before an edit is kept, and runs in turns with the one of now.
#[test]
fn base_and_new_run_in_turns_and_are_judged_by_all_pairs() {
    if !is_root() {
        return;
    }
    let mut project = project("c", "sums.c");
    let uri = project.uri.clone();
    let in_turns = |project: &Project| {
        let line = line_of(&project.file, "test_sums(uint64_t") + 1;
        json!([{ "file": uri, "line": line, "pairs": 3 }])
    };
    let call = json!({ "command": "perflens.profileInTurns", "arguments": in_turns(&project) });
    let refused = project.client.refused("workspace/executeCommand", call).to_string();
    assert!(refused.contains("there is no recording of test_sums from before an edit"), "{refused}");
    project.profile("test_sums(uint64_t");
    project.replace("sums.c", "2 * rounds", "1 * rounds");
    let arguments = in_turns(&project);
    project.client.command("perflens.profileInTurns", arguments);
    let said = project.said("pairs of runs in turns");
    assert!(said.contains("test_sums: 3 pairs of runs in turns") && said.contains("improved, −"), "{said}");
    let status = project.client.command("perflens.showStatus", json!([]));
    assert!(status[0]["text"].as_str().unwrap().ends_with("vs before my edit, 3 pairs of runs"), "{status:#}");
    assert_eq!(project.recordings().len(), 7);
    // Which of them are of one set is known beside them, so that they are no part of what the user has recorded.
    let abouts: Vec<Value> = project.recordings().iter().map(|path| about(path)).collect();
    assert_eq!(abouts[0]["set"], Value::Null);
    assert!(
        abouts[1..].iter().all(|about| about["set"].is_string() && about["set"] == abouts[1]["set"]),
        "{abouts:#?}"
    );
    assert_eq!(abouts.iter().filter(|about| about["isBaseRun"] == true).count(), 3, "{abouts:#?}");
    let hover = |project: &mut Project, text: &str| {
        let position = json!({ "line": line_of(&project.file, text), "character": 3 });
        let asked = json!({ "textDocument": { "uri": uri }, "position": position });
        project.client.request("textDocument/hover", asked).to_string()
    };
    let changed = hover(&mut project, "/* hot */");
    assert!(changed.contains("Improved, ±") && changed.contains("in 3 pairs of runs that differ by ±"), "{changed}");
    let steady = hover(&mut project, "/* steady */");
    assert!(!steady.contains("Improved") && !steady.contains("Regressed"), "{steady}");

    // Another text of the same program is no new version.
    project.replace("sums.c", "return failed;", "return failed; /* the end */");
    let arguments = in_turns(&project);
    project.client.command("perflens.profileInTurns", arguments);
    let said = project.said("in turns: ");
    assert!(said.contains("not rebuilt"), "{said}");

    // What runs from its source has no program to keep.
    let mut python = self::project("python", "test_sums.py");
    python.profile("def test_sums()");
    python.replace("sums.py", "# hot", "# still hot");
    let line = line_of(&python.file, "def test_sums()") + 1;
    let call = json!({ "command": "perflens.profileInTurns", "arguments": [{ "file": python.uri, "line": line }] });
    let refused = python.client.refused("workspace/executeCommand", call).to_string();
    assert!(refused.contains("runs from its source"), "{refused}");
}
