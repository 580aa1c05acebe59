//! The loop that an assistant closes: a hot spot, a change of the code, and whether that helped; and all that is
//! refused on the way. Played by the protocol's own client in real projects of `tests/projects`.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use perflens_tests::assistant::Assistant;
use perflens_tests::cli::Run;
use perflens_tests::projects::{self, line_of};
use perflens_tests::record::{descendants, is_alive, is_root, until};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Held while a project is worked on: what is recorded at the same time makes each other's lines slower.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A project that an assistant works on.
struct Work {
    _turn: MutexGuard<'static, ()>,
    assistant: Assistant,
    folder: TempDir,
    home: TempDir,
}

impl Work {
    /// In a copy of a project, which its user trusts.
    fn in_project(name: &str) -> Self {
        let work = Self::untrusted(name);
        work.trust();
        work
    }

    fn untrusted(name: &str) -> Self {
        Self::untrusted_with(name, &[])
    }

    fn untrusted_with(name: &str, environment: &[(&str, &Path)]) -> Self {
        let (turn, folder, home) = (turn(), temporary(), temporary());
        projects::copy(name, folder.path());
        let assistant = start_with(folder.path(), home.path(), &[], environment);
        Self { _turn: turn, assistant, folder, home }
    }

    /// In a copy of a project, with the server started through another program.
    fn through(program: &Path, name: &str) -> Self {
        let (turn, folder, home) = (turn(), temporary(), temporary());
        projects::copy(name, folder.path());
        let tools = projects::tools();
        let tools: Vec<(&str, &Path)> = tools.iter().map(|(variable, value)| (*variable, Path::new(value))).collect();
        let assistant = Assistant::start_through(program, folder.path(), home.path(), &tools);
        let work = Self { _turn: turn, assistant, folder, home };
        work.trust();
        work
    }

    fn trust(&self) {
        let trusted = Run::new(["trust", "."])
            .folder(self.folder.path())
            .env("XDG_STATE_HOME", self.home.path().join("state"))
            .output();
        assert_eq!(trusted.code, Some(0), "{}", trusted.stderr);
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn replace(&self, file: &str, from: &str, to: &str) {
        let path = self.path(file);
        let text = fs::read_to_string(&path).expect("it is there");
        assert!(text.contains(from), "{file} has {from:?}");
        fs::write(&path, text.replace(from, to)).expect("it can be written");
    }
}

fn temporary() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn start(folder: &Path, home: &Path, arguments: &[&str]) -> Assistant {
    start_with(folder, home, arguments, &[])
}

fn start_with(folder: &Path, home: &Path, arguments: &[&str], more: &[(&str, &Path)]) -> Assistant {
    let tools = projects::tools();
    let tools = tools.iter().map(|(variable, value)| (*variable, Path::new(value)));
    let environment: Vec<(&str, &Path)> = tools.chain(more.iter().copied()).collect();
    Assistant::start_with(folder, home, arguments, &environment)
}

fn id(answer: &Value) -> Value {
    answer["profile"]["profile_id"].clone()
}

fn word<'a>(answer: &'a Value, key: &str) -> &'a str {
    answer[key].as_str().unwrap_or_else(|| panic!("no {key}: {answer:#}"))
}

/// The row of a function whose name ends so, or of a line.
fn row(answer: &Value, is_it: impl Fn(&Value) -> bool) -> Option<&Value> {
    answer["rows"].as_array().and_then(|rows| rows.iter().find(|row| is_it(row)))
}

/// `≈` elsewhere: a row that is not there has not changed by a tenth of a point.
fn is_unchanged(row: Option<&Value>) -> bool {
    row.is_none_or(|row| row["verdict"] == "unchanged" || row["verdict"] == "inconclusive")
}

#[test]
fn a_hot_spot_is_made_faster_and_that_is_verified() {
    if !is_root() {
        return;
    }
    let work = Work::in_project("rust");
    let there = work.assistant.ask("record", &json!({}));
    assert!(there.to_string().contains("tests::sums") && there.to_string().contains("sums_from_outside"), "{there:#}");

    // The hot spot.
    let before = work.assistant.ask("record", &json!({ "name": "tests::sums" }));
    let recording = &before["recording"];
    assert_eq!(recording["exit_code"], 0, "{before:#}");
    assert!(word(recording, "how").starts_with("with eBPF"), "{recording}");
    assert!(word(recording, "set_up_left_out").contains('%') && word(recording, "command").contains("tests::sums"));
    assert!(recording["samples"].as_u64() >= Some(900), "{recording}");
    let hot = line_of(&work.path("src/lib.rs"), "// hot") + 1;
    assert_eq!((&before["rows"][0]["file"], &before["rows"][0]["line"]), (&json!("src/lib.rs"), &json!(hot)));
    assert!(work.assistant.progress().iter().any(|step| step.starts_with("building: cargo")));
    assert!(work.assistant.progress().iter().any(|step| step.starts_with("recording: ")));
    let code = work.assistant.ask("code", &json!({ "profile": id(&before), "file": "src/lib.rs" }));
    assert!(word(&code, "code").contains("// hot"), "{code:#}");

    // Nothing was changed yet.
    let said = work.assistant.refused("verify", &json!({ "base": id(&before) }));
    assert!(said.starts_with("not rebuilt: ") && said.contains("verify again"), "{said}");

    // The hot line becomes twice as fast: as cheap as the steady one.
    work.replace("src/lib.rs", "0..2 * rounds", "0..1 * rounds");
    let after = work.assistant.ask("verify", &json!({ "base": id(&before), "by": "line" }));
    assert_eq!(after["verdict"], "improved", "{after:#}");
    assert_eq!(after["recording"]["exit_code"], 0);
    assert_eq!(after["recording"]["runs"], recording["runs"], "the same work");
    let line = |text: &str| {
        let line = json!(line_of(&work.path("src/lib.rs"), text) + 1);
        row(&after, |row| row["line"] == line && row["file"] == "src/lib.rs")
    };
    assert_eq!(line("// hot").map(|row| &row["verdict"]), Some(&json!("improved")), "{after:#}");
    assert!(is_unchanged(line("// steady")), "{after:#}");
    assert_ne!(id(&after), id(&before));
    assert_eq!(after["base"]["profile_id"], id(&before));
    // The same is said without measuring again.
    let compared = work.assistant.ask("compare", &json!({ "profile": id(&after), "base": id(&before), "by": "line" }));
    assert_eq!(compared["rows"], after["rows"]);

    // Another type than the base has.
    work.replace("src/lib.rs", "0..1 * rounds", "0..3 * rounds");
    let said = work.assistant.refused("verify", &json!({ "base": id(&before), "type": "alloc_space" }));
    assert!(said.contains("alloc_space"), "{said}");

    // The next change breaks the test.
    work.replace("src/lib.rs", "assert_ne!(hot(rounds), steady(rounds))", "assert_eq!(hot(rounds), steady(rounds))");
    let broken = work.assistant.ask("verify", &json!({ "base": id(&before) }));
    assert_eq!((&broken["recording"]["exit_code"], broken.get("verdict")), (&json!(101), None), "{broken:#}");
    assert!(broken["recording"]["output"].to_string().contains("assertion"), "{broken:#}");
    work.replace("src/lib.rs", "assert_eq!(hot(rounds), steady(rounds))", "assert_eq!(hot(rounds) steady(rounds))");
    let said = work.assistant.refused("verify", &json!({ "base": id(&before) }));
    assert!(said.contains("it does not build") && said.contains("src/lib.rs:"), "{said}");
    // And the one after that takes it away.
    work.replace("src/lib.rs", "fn sums()", "fn summed()");
    let said = work.assistant.refused("verify", &json!({ "base": id(&before) }));
    assert!(said.starts_with("another command: ") && said.contains("not there any more"), "{said}");
}

#[test]
fn go_is_verified_by_function_with_its_set_up_left_out() {
    if !is_root() {
        return;
    }
    let work = Work::in_project("go");
    let before = work.assistant.ask("record", &json!({ "name": "TestSums" }));
    assert!(word(&before["recording"], "set_up_left_out").contains('%'), "{before:#}");
    assert!(word(&before["rows"][0], "file").ends_with("sums.go"), "{before:#}");
    let said = work.assistant.refused("verify", &json!({ "base": "recording:latest" }));
    assert!(said.starts_with("not rebuilt: "), "{said}");
    work.replace("sums.go", "2*rounds", "1*rounds");
    let after = work.assistant.ask("verify", &json!({ "base": id(&before) }));
    let function = |end: &str| row(&after, |row| row["function"].as_str().is_some_and(|name| name.ends_with(end)));
    assert_eq!(function(".Hot").map(|row| &row["verdict"]), Some(&json!("improved")), "{after:#}");
    assert!(is_unchanged(function(".Steady")), "{after:#}");
    assert_eq!(after["verdict"], "improved", "{after:#}");
    // What is on another machine is another matter.
    let beside =
        recordings(work.home.path()).pop().expect("there are some").to_string_lossy().replace(".pb.gz", ".json");
    let text = fs::read_to_string(&beside).expect("it is there");
    let mut about: Value = serde_json::from_str(&text).expect("JSON");
    about["ran"]["machine"] = json!("0123456789abcdef");
    fs::write(&beside, about.to_string()).expect("it can be written");
    let said = work.assistant.refused("verify", &json!({ "base": "recording:latest" }));
    assert!(said.starts_with("another machine: ") && said.contains("record a new base"), "{said}");
    // And another command is.
    about["ran"] = serde_json::from_str::<Value>(&text).expect("JSON")["ran"].clone();
    about["ran"]["command"] = json!(["go.test", "-test.run=^TestOther$"]);
    fs::write(&beside, about.to_string()).expect("it can be written");
    let said = work.assistant.refused("verify", &json!({ "base": "recording:latest" }));
    assert!(said.starts_with("another command: ") && said.contains("TestOther"), "{said}");
}

/// What is not built has no program to tell: its sources are.
#[test]
fn python_is_verified_by_its_sources() {
    if !is_root() {
        return;
    }
    let work = Work::in_project("python");
    let test = json!({ "name": "test_sums", "file": "test_sums.py" });
    let before = work.assistant.ask("record", &test);
    let said = work.assistant.refused("verify", &json!({ "base": id(&before) }));
    assert!(said.starts_with("not changed: "), "{said}");
    work.replace("sums.py", "2 * rounds", "1 * rounds");
    let said = work.assistant.refused("verify", &json!({ "base": id(&before), "pairs": 3 }));
    assert!(said.contains("runs from its source") && said.ends_with("leave out `pairs`"), "{said}");
    work.replace("sums.py", "1 * rounds", "2 * rounds");
    assert_halves(&work, &test, "sums.py");
    let failed = work.assistant.ask("record", &json!({ "name": "test_fails" }));
    assert_eq!(failed["recording"]["exit_code"], 1, "{failed:#}");
    assert!(failed["recording"]["output"].to_string().contains("never seven"), "{failed:#}");
}

#[test]
fn node_is_verified_by_the_profiler_of_v8() {
    if !is_root() {
        return;
    }
    let work = Work::in_project("node");
    let after = assert_halves(&work, &json!({ "name": "take time" }), "sums.js");
    assert!(word(&after["recording"], "how").contains("node --cpu-prof"), "{after:#}");
}

#[test]
fn a_task_in_c_is_verified() {
    if !is_root() {
        return;
    }
    let work = Work::in_project("c");
    // By the name of the task, or of its function.
    let before = work.assistant.ask("record", &json!({ "name": "sums" }));
    assert_eq!(word(&before["recording"], "test"), "test_sums");
    let said = work.assistant.refused("verify", &json!({ "base": id(&before) }));
    assert!(said.starts_with("not rebuilt: "), "{said}");
    work.replace("sums.c", "2 * rounds", "1 * rounds");
    let after = work.assistant.ask("verify", &json!({ "base": id(&before) }));
    assert_halved(&after, "hot", "steady");
    // Both run again in turns, which knows how much runs differ as well.
    assert!(work.assistant.refused("verify", &json!({ "base": id(&before), "pairs": 6 })).contains("takes 1 to 5"));
    let judged = work.assistant.ask("verify", &json!({ "base": id(&before), "pairs": 2 }));
    let hot = row(&judged, |row| row["function"] == "hot");
    assert_eq!(hot.map(|row| &row["verdict"]), Some(&json!("improved")), "{judged:#}");
    let said = word(&judged, "summary");
    assert!(said.contains("Judged by 2 pairs of runs in turns, the first: test_sums: "), "{said}");
    let samples = |answer: &Value| {
        row(answer, |row| row["function"] == "hot").and_then(|row| row["samples"].as_i64()).expect("samples")
    };
    assert!(samples(&judged) > samples(&after) * 3 / 2, "it is of both runs: {judged:#}");
    // What does not build is no old program.
    work.replace("sums.c", "1 * rounds", "1 * * rounds;");
    let said = work.assistant.refused("verify", &json!({ "base": id(&before) }));
    assert!(said.contains("it does not build") && said.contains("error"), "{said}");
    // A changed perflens.toml has to be trusted anew, as it names what is run.
    work.replace("perflens.toml", "-O2", "-O1");
    assert!(work.assistant.refused("record", &json!({ "name": "sums" })).contains("is not trusted"));
}

/// Criterion chooses its iterations by itself, and says how many they were.
#[test]
fn a_benchmark_of_criterion_is_verified_per_iteration() {
    if !is_root() {
        return;
    }
    let temporary = temporary();
    let environment = [("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR"))), ("TMPDIR", temporary.path())];
    let work = Work::untrusted_with("criterion", &environment);
    work.trust();
    let before = work.assistant.ask("record", &json!({ "name": "sums/both" }));
    let iterations = |answer: &Value| answer["recording"]["iterations_per_run"].as_u64().unwrap_or_default();
    assert!(iterations(&before) > 100, "{before:#}");
    assert_eq!(before["rows"][0]["file"], "src/lib.rs", "{before:#}");
    work.replace("src/lib.rs", "0..2 * rounds", "0..1 * rounds");
    let after = work.assistant.ask("verify", &json!({ "base": id(&before) }));
    // As many as there was time for, on a machine that may be busier by now; what counts is the cost of one.
    assert!(iterations(&after) > 100 && iterations(&after) != iterations(&before), "{after:#}");
    assert!(word(&after, "summary").contains("set-up"), "{after:#}");
    assert_halved(&after, "hot", "steady");
    // In turns as well, each run with iterations of its own; and what it keeps of them goes with the run.
    let judged = work.assistant.ask("verify", &json!({ "base": id(&before), "pairs": 3 }));
    assert_halved_in_turns(&judged, "hot", "steady", "sums/both");
    let left: Vec<PathBuf> =
        fs::read_dir(temporary.path()).expect("it is there").flatten().map(|at| at.path()).collect();
    assert!(!left.iter().any(|path| path.join("criterion").exists()), "{left:?}");
}

#[test]
fn a_benchmark_of_go_is_verified_with_the_same_iterations() {
    if !is_root() {
        return;
    }
    let work = Work::in_project("go");
    let before = work.assistant.ask("record", &json!({ "name": "BenchmarkSums" }));
    assert!(before["recording"]["iterations_per_run"].as_u64() > Some(1), "{before:#}");
    work.replace("sums.go", "2*rounds", "1*rounds");
    let after = work.assistant.ask("verify", &json!({ "base": id(&before) }));
    assert_eq!(after["recording"]["iterations_per_run"], before["recording"]["iterations_per_run"]);
    assert_halved(&after, "Hot", "Steady");
}

/// What a benchmark or a program does is judged by value when it is run in turns as well: that everything became
/// faster is no change of anything's share.
#[test]
fn benchmarks_and_programs_in_turns_are_judged_by_value() {
    if !is_root() {
        return;
    }
    let benchmark = Work::in_project("go");
    let before = benchmark.assistant.ask("record", &json!({ "name": "BenchmarkSums" }));
    benchmark.replace("sums.go", "2*rounds", "1*rounds");
    let judged = benchmark.assistant.ask("verify", &json!({ "base": id(&before), "pairs": 3 }));
    assert_halved_in_turns(&judged, "Hot", "Steady", "BenchmarkSums");
    let sum = id(&judged);
    // An id is of all runs: who asks by it gets what `verify` was about, and not the first pair.
    let again = benchmark.assistant.ask("compare", &json!({ "profile": sum, "base": judged["base"]["profile_id"] }));
    assert_eq!([&again["profile"], &again["base"]], [&judged["profile"], &judged["base"]], "{again:#}");
    assert!(
        row(&again, |row| row["function"].as_str().is_some_and(|name| name.ends_with(".Hot")))
            .is_some_and(|row| row["verdict"] == "improved"),
        "{again:#}"
    );
    let spots = benchmark.assistant.ask("hot_spots", &json!({ "profile": sum }));
    // By itself it is not brought to the base's amount of work, which may be another where a run was cut off.
    assert_eq!((id(&spots), &spots["profile"]["samples"]), (sum, &judged["profile"]["samples"]), "{spots:#}");
    // The last run was the base's; what is the latest is what there is now.
    let latest = benchmark.assistant.ask("overview", &json!({ "profile": "recording:latest" }));
    let names: Vec<String> = recordings(benchmark.home.path())
        .into_iter()
        .filter(|path| about(path)["isBaseRun"] == false)
        .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    assert_eq!(latest["profile"]["name"].as_str(), names.last().map(String::as_str), "{names:?}");
    drop(benchmark);

    let program = Work::in_project("rust");
    let main = "fn main() {\n    let rounds = std::hint::black_box(300_000_000);\n    \
                assert_ne!(hot_sums::hot(rounds), hot_sums::steady(rounds));\n}\n";
    fs::write(program.path("src/main.rs"), main).expect("it can be written");
    let before = program.assistant.ask("record", &json!({ "name": "main", "file": "src/main.rs" }));
    program.replace("src/lib.rs", "0..2 * rounds", "0..1 * rounds");
    let judged = program.assistant.ask("verify", &json!({ "base": id(&before), "pairs": 3 }));
    assert_halved_in_turns(&judged, "hot", "steady", "main");
}

/// What is beside a recording.
fn about(recording: &Path) -> Value {
    let beside = recording.to_string_lossy().replace(".pb.gz", ".json");
    serde_json::from_slice(&fs::read(beside).expect("it is there")).expect("JSON")
}

/// The same as [`assert_halved`], of several pairs, and all of it became faster.
#[track_caller]
fn assert_halved_in_turns(answer: &Value, hot: &str, steady: &str, name: &str) {
    assert_halved(answer, hot, steady);
    let said = word(answer, "summary");
    assert!(said.starts_with("Everything improved: ") && !said.contains("can't be judged"), "{said}");
    assert!(said.contains(&format!("Judged by 3 pairs of runs in turns, the first: {name}: ")), "{said}");
}

/// What a recorder, a program or a test says of this machine goes on without its user.
#[test]
fn what_is_said_of_a_recording_names_nobodys_home() {
    if !is_root() {
        return;
    }
    let work = Work::in_project("go");
    work.replace(
        "sums_test.go",
        "t.Fatal(\"it is never seven\")",
        "t.Fatal(\"not in \" + os.Getenv(\"HOME\") + \"/x\")",
    );
    let home = work.home.path().to_string_lossy().into_owned();
    let answer = work.assistant.ask("record", &json!({ "name": "TestFails" }));
    assert!(word(&answer, "summary").contains("not in ~/x"), "{answer:#}");
    assert!(answer["recording"]["output"].to_string().contains("not in ~/x"), "{answer:#}");
    assert!(!answer.to_string().contains(&home), "{answer:#}");
}

/// Where nothing can be recorded, the languages' own profilers are used, and that is said.
#[test]
fn without_any_right_the_languages_own_profilers_are_used() {
    let folder = temporary();
    let program = folder.path().join("no-perf");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/no-perf.c");
    let built = std::process::Command::new("gcc").arg("-o").arg(&program).arg(source).status();
    assert!(built.expect("gcc, which tests need").success());
    for (project, name, own, file) in [
        ("go", "TestSums", "with go test -cpuprofile, as ", "sums.go"),
        ("python", "Sums::test_sums_in_a_class", "with cProfile, as ", "sums.py"),
    ] {
        let work = Work::through(&program, project);
        let answer = work.assistant.ask("record", &json!({ "name": name }));
        assert!(word(&answer["recording"], "how").starts_with(own), "{answer:#}");
        assert!(answer["notes"].to_string().contains("instead: "), "{answer:#}");
        let spots = work.assistant.ask("hot_spots", &json!({ "profile": id(&answer), "by": "function" }));
        assert!(word(&spots["rows"][0], "file").ends_with(file), "{answer:#} {spots:#}");
        // What cProfile knows is of functions alone.
        let is_there = |name: &str| {
            let is_it = |own: &str| own.to_lowercase().ends_with(name);
            row(&spots, |row| row["function"].as_str().is_some_and(is_it)).is_some()
        };
        assert!(is_there("hot") && is_there("steady"), "{spots:#}");
    }
}

/// One function costs half of what it did, and the other what it did.
#[track_caller]
fn assert_halved(answer: &Value, hot: &str, steady: &str) {
    let function = |end: &str| {
        let is_it =
            |name: &str| name == end || name.ends_with(&format!("::{end}")) || name.ends_with(&format!(".{end}"));
        row(answer, |row| row["function"].as_str().is_some_and(is_it))
    };
    assert_eq!(function(hot).map(|row| &row["verdict"]), Some(&json!("improved")), "{answer:#}");
    assert!(is_unchanged(function(steady)), "{answer:#}");
    assert_eq!((&answer["verdict"], &answer["recording"]["exit_code"]), (&json!("improved"), &json!(0)), "{answer:#}");
}

/// Records, halves the hot function's work in a file, and verifies; the last answer. What runs from its source can't
/// run in turns with what it was, and of one recording each other work of the machine takes the steady function for
/// changed about once in ten times (docs/benchmarks.md), so that may be tried three times. The hot one never is
/// anything but improved.
#[track_caller]
fn assert_halves(work: &Work, test: &Value, file: &str) -> Value {
    let mut tries = 0;
    loop {
        tries += 1;
        let before = work.assistant.ask("record", test);
        work.replace(file, "2 * rounds", "1 * rounds");
        let after = work.assistant.ask("verify", &json!({ "base": id(&before) }));
        let function = |name: &str| row(&after, |row| row["function"].as_str().is_some_and(|it| it.ends_with(name)));
        assert_eq!(function("hot").map(|row| &row["verdict"]), Some(&json!("improved")), "{after:#}");
        if is_unchanged(function("steady")) || tries == 3 {
            assert_halved(&after, "hot", "steady");
            return after;
        }
        work.replace(file, "1 * rounds", "2 * rounds");
    }
}

/// The recordings of a home, the oldest first.
fn recordings(home: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(home.join("state/perflens/recordings")).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
    let mut all: Vec<PathBuf> = files.map(|file| file.path()).filter(|path| is_profile(path)).collect();
    all.sort();
    all
}

fn is_profile(path: &Path) -> bool {
    path.to_string_lossy().ends_with(".pb.gz")
}

#[test]
fn nothing_of_an_untrusted_workspace_runs_for_an_assistant() {
    let work = Work::untrusted("go");
    for (tool, arguments) in
        [("record", json!({ "name": "TestSums" })), ("verify", json!({ "base": "recording:latest" }))]
    {
        let said = work.assistant.refused(tool, &arguments);
        assert!(said.contains("is not trusted") && said.contains("perflens trust "), "{said}");
        assert_eq!(descendants(work.assistant.pid()), Vec::<u32>::new());
    }
    // To know what there is runs nothing.
    assert!(work.assistant.ask("record", &json!({ "file": "sums_test.go" })).to_string().contains("TestSums"));
    work.trust();
    let policy = work.home.path().join("policy.toml");
    fs::write(&policy, "[assistants]\nlocal = false\n").expect("it can be written");
    let bound =
        Assistant::start_with(work.folder.path(), work.home.path(), &[], &[("PERFLENS_POLICY", policy.as_path())]);
    assert!(bound.refused("record", &json!({ "name": "TestSums" })).contains("forbids giving local profiles"));
    // Who may only read is not even offered them.
    let reading = start(work.folder.path(), work.home.path(), &["--read-only"]);
    let names: Vec<String> = reading.tools().iter().map(|tool| tool.name.to_string()).collect();
    assert!(!names.iter().any(|name| name == "record" || name == "verify"), "{names:?}");
    assert!(reading.refused("record", &json!({ "name": "TestSums" })).contains("there is no tool `record`"));
}

#[test]
fn only_what_was_detected_is_run() {
    let work = Work::in_project("rust");
    fs::write(work.path("p.pb.gz"), "no profile").expect("it can be written");
    for (tool, arguments, sentence) in [
        ("record", json!({ "name": "tests::sumz" }), "is called tests::sumz, the nearest are `tests::sums`"),
        ("record", json!({ "name": "rm -rf /" }), "no test, benchmark, program or task is called rm -rf /"),
        ("record", json!({ "name": "tests::sums", "file": "src/none.rs" }), "there is no source file src/none.rs"),
        ("record", json!({ "name": "x", "file": "/etc/passwd" }), "/etc/passwd is outside of the workspace"),
        ("record", json!({ "name": "x", "file": "Cargo.toml" }), "Cargo.toml is in no language whose tests are found"),
        ("record", json!({ "command": "ls" }), "there is no argument `command`"),
        ("record", json!({ "pid": 1 }), "there is no argument `pid`"),
        ("verify", json!({}), "verify: `base` is missing"),
        ("verify", json!({ "base": "p.pb.gz" }), "p.pb.gz is no recording of a test"),
        ("verify", json!({ "base": "recording:latest" }), "there are no recordings"),
        ("verify", json!({ "base": "p-0123456789abcdef" }), "no earlier answer"),
        ("verify", json!({ "base": "x", "by": "file" }), "`by` takes `line` or `function`, not \"file\""),
    ] {
        let said = work.assistant.refused(tool, &arguments);
        assert!(said.contains(sentence), "{said}\nshould have: {sentence}");
    }
    assert_eq!(descendants(work.assistant.pid()), Vec::<u32>::new());
}

#[test]
fn a_call_that_is_cancelled_leaves_no_process() {
    if !is_root() {
        return;
    }
    let work = Work::in_project("rust");
    let arguments = json!({ "name": "never_ends" });
    for moment in ["building", "recording: "] {
        let before = work.assistant.progress().len();
        let mut children = Vec::new();
        work.assistant.cancel_when("record", &arguments, || {
            let is_time = work.assistant.progress().iter().skip(before).any(|step| step.starts_with(moment));
            children = descendants(work.assistant.pid());
            is_time && !children.is_empty()
        });
        until("all it started is gone", || !children.iter().any(|&pid| is_alive(pid)));
        until("nothing is left", || descendants(work.assistant.pid()).is_empty());
    }
    // Nobody has to wait for it, and the server goes on.
    work.assistant.ask("record", &json!({ "file": "src/lib.rs" }));
}
