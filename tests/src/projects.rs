//! Projects of `tests/projects`, whose tests are profiled: each test has a copy of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Where the languages' tools keep what they need, which they would look for in a home that is not there.
const TOOLS: &[(&str, &str, &[&str])] = &[
    ("RUSTUP_HOME", "rustup", &["show", "home"]),
    ("GOCACHE", "go", &["env", "GOCACHE"]),
    ("PYENV_ROOT", "pyenv", &["root"]),
];

/// Variables of the environment for the languages' tools.
pub fn tools() -> Vec<(&'static str, String)> {
    let found = TOOLS.iter().map(|(variable, program, arguments)| (*variable, tool(variable, program, arguments)));
    let cargo = std::env::var("CARGO_HOME").ok().or_else(|| Some(format!("{}/.cargo", std::env::var("HOME").ok()?)));
    found.chain([("CARGO_HOME", cargo)]).filter_map(|(variable, value)| Some((variable, value?))).collect()
}

fn tool(variable: &str, program: &str, arguments: &[&str]) -> Option<String> {
    std::env::var(variable).ok().or_else(|| {
        let output = Command::new(program).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
    })
}

/// Copies the project of a language into a folder.
pub fn copy(name: &str, to: &Path) {
    copy_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("projects").join(name), to);
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("the project is there") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy_folder(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("a copy");
        }
    }
}

/// The number of the line that has a text, from 0.
///
/// # Panics
/// When no line has it.
pub fn line_of(file: &Path, text: &str) -> usize {
    let source = fs::read_to_string(file).expect("it is there");
    source.lines().position(|line| line.contains(text)).unwrap_or_else(|| panic!("{} has no {text:?}", file.display()))
}
