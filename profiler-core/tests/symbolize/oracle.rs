//! The same addresses, asked of llvm-symbolizer.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::programs::{Folder, Lookup, mangled_symbols, text};

/// (function, file, line, column), innermost first.
type Frames = Vec<(String, String, u64, u64)>;

fn llvm(path: &Path, addresses: &[u64]) -> Vec<Frames> {
    let mut child = Command::new("llvm-symbolizer")
        .arg("--obj")
        .arg(path)
        .args(["--output-style=JSON", "--no-demangle", "--inlines"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("llvm-symbolizer is there; tests/run installs it");
    let mut input = child.stdin.take().unwrap();
    let questions: Vec<String> = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    let writer = std::thread::spawn(move || input.write_all(questions.concat().as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| {
            let answer: Value = serde_json::from_str(line).unwrap();
            let text = |frame: &Value, key: &str| frame[key].as_str().unwrap().to_owned();
            let number = |frame: &Value, key: &str| frame[key].as_u64().unwrap();
            answer["Symbol"]
                .as_array()
                .unwrap()
                .iter()
                .map(|frame| {
                    (
                        text(frame, "FunctionName"),
                        text(frame, "FileName"),
                        number(frame, "Line"),
                        number(frame, "Column"),
                    )
                })
                .collect()
        })
        .collect()
}

fn ours(path: &Path, addresses: &[u64]) -> Vec<Frames> {
    Lookup::of(path)
        .all(addresses)
        .into_iter()
        .map(|answer| match answer {
            Ok(frames) => frames
                .iter()
                .map(|frame| (frame.name.to_string(), frame.file.to_string(), frame.line.0.into(), frame.column.into()))
                .collect(),
            Err(_) => vec![(String::new(), String::new(), 0, 0)],
        })
        .collect()
}

/// All names of the symbol at each address of a file.
type Aliases = HashMap<String, u64>;

/// Why an answer may differ from theirs; `None` when it may not.
fn explained(mine: &Frames, theirs: &Frames, symbols: &Aliases) -> Option<&'static str> {
    if mine == theirs {
        return Some("equal");
    }
    let mut theirs = theirs.clone();
    for frame in theirs.iter_mut().filter(|frame| frame.2 == 0) {
        frame.3 = 0;
    }
    if *mine == theirs {
        return Some("a column without a line is no position");
    }
    let (mine_last, theirs_last) = (mine.last()?, theirs.last_mut()?);
    let is_unit = mine_last.1.is_empty() && theirs_last.2 == 0 && !theirs_last.1.contains('/');
    if is_unit {
        theirs_last.1.clear();
    }
    let is_clone = theirs_last.0.strip_prefix(&mine_last.0).is_some_and(|suffix| suffix.starts_with('.'));
    if is_clone {
        theirs_last.0.clone_from(&mine_last.0);
    }
    let address = |name: &str| symbols.get(name);
    let is_alias = address(&mine_last.0).is_some() && address(&mine_last.0) == address(&theirs_last.0);
    if is_alias {
        theirs_last.0.clone_from(&mine_last.0);
    }
    if *mine == theirs {
        return Some(if is_clone {
            "a clone of a function is that function, not one of its own"
        } else if is_alias {
            "the linker merged equal functions; any of their names is right"
        } else {
            "the name of an object file is no source file"
        });
    }
    None
}

/// Compares the answers for addresses all over the code; how many there are of each kind.
fn compare(path: &Path, count: u64) -> BTreeMap<&'static str, usize> {
    let (start, size) = text(path);
    let step = (size / count).max(1);
    let addresses: Vec<u64> = (0..size / step).map(|index| start + index * step).collect();
    let (mine, theirs) = (ours(path, &addresses), llvm(path, &addresses));
    assert_eq!(mine.len(), theirs.len());
    let symbols: Aliases = mangled_symbols(path).into_iter().collect();
    let mut kinds = BTreeMap::new();
    for ((address, mine), theirs) in addresses.iter().zip(&mine).zip(&theirs) {
        let kind = explained(mine, theirs, &symbols).unwrap_or_else(|| {
            println!("{address:#x}\n  ours   {mine:?}\n  theirs {theirs:?}");
            "unexplained"
        });
        *kinds.entry(kind).or_default() += 1;
    }
    println!("{}: {kinds:?}", path.display());
    kinds
}

/// This very test is a large program: Rust with line tables, the standard library with its own
/// debug info, parts without any, functions that the linker merged.
#[test]
fn a_large_program_reads_as_llvm_reads_it() {
    let path = std::env::var_os("PERFLENS_ORACLE").map_or_else(|| std::env::current_exe().unwrap(), Into::into);
    let kinds = compare(&path, 6000);
    assert_eq!(kinds.get("unexplained"), None);
    assert!(kinds["equal"] >= 4500, "{kinds:?}");
    assert!(kinds.values().sum::<usize>() >= 5000, "{kinds:?}");
}

/// Templates, exceptions, a great deal of inlining; with linkage names.
#[test]
fn cpp_reads_as_llvm_reads_it() {
    let source = r#"
#include <algorithm>
#include <map>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

template <typename T> static T folded(const std::vector<T>& values) {
    if (values.empty()) throw std::runtime_error("nothing to fold");
    return std::accumulate(values.begin(), values.end(), T{});
}

struct Words {
    std::map<std::string, std::vector<int>> places;
    void add(const std::string& word, int place) { places[word].push_back(place); }
    std::string longest() const {
        auto best = std::max_element(places.begin(), places.end(),
            [](const auto& a, const auto& b) { return a.first.size() < b.first.size(); });
        return best == places.end() ? "" : best->first;
    }
};

int main(int argc, char** argv) {
    Words words;
    for (int i = 0; i < argc; i++) words.add(argv[i], i);
    std::ostringstream out;
    std::vector<std::string> sorted;
    for (auto& [word, places] : words.places) sorted.push_back(word), out << word << folded(places);
    std::sort(sorted.begin(), sorted.end(), [](auto& a, auto& b) { return a > b; });
    try { folded(std::vector<double>{}); } catch (const std::exception& error) { out << error.what(); }
    return int(out.str().size() + words.longest().size() + sorted.size()) & 1;
}
"#;
    let folder = Folder::new(&[("words.cpp", source)]);
    for flags in ["-gdwarf-5", "-gdwarf-4", "-gdwarf-5 -gz=zlib"] {
        folder.run(&format!("g++ -std=c++17 -O2 {flags} -o words words.cpp"));
        let kinds = compare(&folder.path("words"), 1 << 20);
        assert_eq!(kinds.get("unexplained"), None, "{flags}");
        assert!(kinds["equal"] >= 5000, "{flags}: {kinds:?}");
    }
}

/// What was optimised as a whole: entries of one unit refer to those of others.
#[test]
fn units_that_refer_to_each_other_read_as_llvm_reads_them() {
    let one = "int twice(int x) { volatile int y = x; return y * 2; }\n";
    let two = "int twice(int);\n__attribute__((noinline)) int work(int x) { return twice(x) + twice(x + 1); }\n\
               int main(int argc, char** argv) { return work(argc); }\n";
    let folder = Folder::new(&[("one.c", one), ("two.c", two)]);
    for version in [4, 5] {
        folder.run(&format!("gcc -O2 -flto -gdwarf-{version} -o program one.c two.c"));
        let program = folder.path("program");
        let kinds = compare(&program, 1 << 20);
        assert_eq!(kinds.get("unexplained"), None);
        let lines = Lookup::of(&program).lines_of(&program, "work");
        assert!(lines.iter().any(|line| line == "one.c:1 twice < two.c:2 work"), "DWARF {version}: {lines:#?}");
    }
}
