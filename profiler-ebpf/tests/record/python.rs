//! `CPython`, down to the line.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;

use profiler_ebpf::protocol::{Sample, StackEnd};

use crate::recording::{Held, Recording, expecting, possible, start};

/// Interpreters here, by version.
fn interpreters() -> Vec<(String, PathBuf)> {
    let mut all = Vec::new();
    let versions = std::env::home_dir().map(|home| home.join(".pyenv/versions"));
    let installed = versions.and_then(|folder| std::fs::read_dir(folder).ok());
    let mut candidates: Vec<PathBuf> =
        installed.into_iter().flatten().flatten().map(|entry| entry.path().join("bin/python3")).collect();
    candidates.push("/usr/bin/python3".into());
    for python in candidates {
        let script = "import sys; print('%d.%d' % sys.version_info[:2])";
        let Ok(output) = Command::new(&python).args(["-c", script]).output() else { continue };
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if output.status.success() && !all.iter().any(|(known, _)| *known == version) {
            all.push((version, python));
        }
    }
    all
}

fn record(python: &std::path::Path, seconds: &str) -> Recording {
    let program = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/programs/work.py");
    let held =
        Held::by(Command::new("sh").args(["-c", "read _; exec \"$0\" \"$@\""]).arg(python).arg(program).arg(seconds));
    Recording::of_held(held, expecting(start(999), &[python]))
}

/// `function:line`, leaf first, with a `|` where C called the interpreter.
fn stack(recording: &Recording, sample: &Sample) -> Vec<String> {
    let frames = sample.interpreter.iter().map(|frame| {
        let code = &recording.codes[&frame.code];
        format!("{}:{}{}", code.name, frame.line, if frame.entry { "|" } else { "" })
    });
    frames.collect()
}

#[test]
fn python_to_the_line() {
    if !possible() {
        return;
    }
    let known = ["3.11", "3.12", "3.13", "3.14"];
    let here: Vec<_> = interpreters().into_iter().filter(|(version, _)| known.contains(&version.as_str())).collect();
    assert!(!here.is_empty(), "there is a Python to record");
    for (version, python) in here {
        let mut recording = record(&python, "1.2");
        let runtime = format!("cpython {version}");
        assert!(recording.processes.iter().any(|process| process.runtime == runtime), "{:?}", recording.processes);
        recording.assert_complete();

        // What runs before the program: the interpreter itself starting.
        let mut stacks: HashMap<String, usize> = HashMap::new();
        for sample in &recording.samples {
            let stack = stack(&recording, sample);
            if stack.iter().any(|frame| frame.starts_with("recursive:")) {
                *stacks.entry(stack.join(" ")).or_default() += 1;
            }
        }
        let total: usize = stacks.values().sum();
        assert!(total * 10 > recording.samples.len() * 8, "{version}: {total} of {}", recording.samples.len());
        let share = |is: &dyn Fn(&str) -> bool| {
            let hits: usize = stacks.iter().filter(|(stack, _)| is(stack)).map(|(_, count)| count).sum();
            hits as f64 * 100.0 / total as f64
        };

        let hot = share(&|stack| stack.starts_with("inner:8 "));
        let around = share(&|stack| stack.starts_with("inner:7 "));
        let once = share(&|stack| stack.starts_with("outer.<locals>.<genexpr>:1"));
        assert!(hot > 25.0, "{version}: {hot} % on the hot line, {around} % on its loop, {stacks:#?}");
        assert!((hot + around) / once > 1.2, "{version}: {hot} + {around} : {once}");
        // The call and what it is called with are on three lines each; it is the call's that counts.
        let chain = share(&|stack| {
            !stack.contains("inner:") || {
                let callers = stack.split_once("outer:13 Häufig.key:23| recursive:29 ").is_some();
                let rest = stack.matches("recursive:28").count() == 5 && stack.contains("main:38 <module>:44|");
                callers && rest
            }
        });
        assert!(chain > 99.0, "{version}: {chain} % {stacks:#?}");
        assert!(recording.codes.values().all(|code| code.name != "inner" || code.first_line == 5));
        assert!(recording.codes.values().any(|code| code.file.ends_with("/programs/work.py")));

        // Every run of Python frames has a native evaluation loop to belong to, in stacks that are whole.
        let mut matching = 0;
        let whole = |sample: &&Sample| !sample.interpreter.is_empty() && sample.end == StackEnd::Complete as i32;
        let with_frames: Vec<Sample> = recording.samples.iter().filter(whole).cloned().collect();
        assert!(with_frames.len() > 100, "{version}: {} whole stacks", with_frames.len());
        for sample in &with_frames {
            let entries = sample.interpreter.iter().filter(|frame| frame.entry).count();
            let loops =
                recording.names(sample).iter().filter(|name| name.starts_with("_PyEval_EvalFrameDefault")).count();
            matching += usize::from(entries == loops);
        }
        // A frame comes before its loop and goes after it: some are met in between.
        assert!(matching * 100 >= with_frames.len() * 92, "{version}: {matching} of {}", with_frames.len());
    }
}

#[test]
fn an_old_python_is_said_to_be_old() {
    if !possible() {
        return;
    }
    let old = ["3.6", "3.7", "3.8", "3.9", "3.10"];
    let Some((_, python)) = interpreters().into_iter().find(|(version, _)| old.contains(&version.as_str())) else {
        return;
    };
    let recording = record(&python, "0.2");
    assert!(recording.samples.iter().all(|sample| sample.interpreter.is_empty()));
    assert!(recording.notes.iter().any(|note| note.contains("py-spy")), "{:?}", recording.notes);
}
