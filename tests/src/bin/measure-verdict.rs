//! Counts how often the tools for assistants judge a change as it is: a project of `tests/projects` is changed,
//! built and recorded again and again, each time against the recording before.
//!
//! ```text
//! measure-verdict TIMES plain|faster c|rust|go|python|node
//! ```
//!
//! `plain` adds a line to the source, so that the program is another one and does the same; `faster` makes
//! the hot line twice as fast, and in the next round as slow as it was. `tests/measure-verdict` builds what is needed
//! and calls it.

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use perflens_tests::assistant::Assistant;
use perflens_tests::cli::Run;
use perflens_tests::projects;
use serde_json::{Value, json};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let times: u32 = arguments.next().and_then(|times| times.parse().ok()).expect("the number of times");
    let is_plain = match arguments.next().as_deref() {
        Some("plain") => true,
        Some("faster") => false,
        _ => panic!("`plain` or `faster`"),
    };
    let (project, file, test, comment) = match arguments.next().as_deref() {
        Some("c") => ("c", "sums.c", "sums", "//"),
        Some("rust") => ("rust", "src/lib.rs", "tests::sums", "//"),
        Some("go") => ("go", "sums.go", "TestSums", "//"),
        Some("python") => ("python", "sums.py", "test_sums", "#"),
        Some("node") => ("node", "sums.js", "take time", "//"),
        _ => panic!("`c`, `rust`, `go`, `python` or `node`"),
    };
    let (folder, home) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    projects::copy(project, folder.path());
    let trusted =
        Run::new(["trust", "."]).folder(folder.path()).env("XDG_STATE_HOME", home.path().join("state")).output();
    assert_eq!(trusted.code, Some(0), "{}", trusted.stderr);
    let tools = projects::tools();
    let tools: Vec<(&str, &Path)> = tools.iter().map(|(name, value)| (*name, Path::new(value))).collect();
    let assistant = Assistant::start_with(folder.path(), home.path(), &[], &tools);
    let source = folder.path().join(file);
    let original = fs::read_to_string(&source).expect("the source");

    let id = |answer: &Value| answer["profile"]["profile_id"].clone();
    let mut base = id(&assistant.ask("record", &json!({ "name": test })));
    let mut counts: BTreeMap<(&str, String), u32> = BTreeMap::new();
    let mut as_it_is = 0;
    for time in 1..=times {
        let is_faster = !is_plain && time % 2 == 1;
        let faster = || original.replace("2 * rounds", "1 * rounds").replace("2*rounds", "1*rounds");
        let changed = if is_faster { faster() } else { original.clone() };
        fs::write(&source, format!("{comment} A line more.\n").repeat(time as usize) + &changed).expect("the source");
        let answer = assistant.ask("verify", &json!({ "base": base }));
        let everything = answer["verdict"].as_str().unwrap_or("failed").to_owned();
        let row = |name: &str| {
            let mut rows = answer["rows"].as_array().into_iter().flatten();
            rows.find(|row| row["function"].as_str().is_some_and(|own| own.to_lowercase().ends_with(name)))
        };
        // A function that is not listed has not changed by a tenth of a point.
        let function =
            |name: &str| row(name).map_or("unchanged", |row| row["verdict"].as_str().unwrap_or("failed")).to_owned();
        let text = |name: &str| row(name).map_or("", |row| row["text"].as_str().unwrap_or_default());
        let (hot, steady) = (function("hot"), function("steady"));
        let want = match (is_plain, is_faster) {
            (true, _) => "unchanged",
            (false, true) => "improved",
            (false, false) => "regressed",
        };
        // What is inconclusive is marked as what may be chance, too.
        let is_steady = steady == "unchanged" || (!is_plain && steady == "inconclusive");
        as_it_is += u32::from(everything == want && hot == want && is_steady);
        println!(
            "{time}: everything {everything}, hot {hot} {}, steady {steady} {}; {}",
            text("hot"),
            text("steady"),
            answer["summary"]
        );
        for (what, verdict) in [("everything", everything), ("hot", hot), ("steady", steady)] {
            *counts.entry((what, verdict)).or_default() += 1;
        }
        base = id(&answer);
    }
    println!("\n| of {times} | verdict | times |\n|---|---|---:|");
    for ((what, verdict), count) in counts {
        println!("| {what} | {verdict} | {count} |");
    }
    println!("| all three as it is | | {as_it_is} |");
}
