//! What the words of a command mean for recording it: a build tool in front of the program, or a
//! runtime that has to be told to name its code.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::held::CommandLine;
use super::helper::program_name;

/// What to do about a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Preparation {
    /// To be run before, unrecorded: builds the program.
    pub(crate) build: Option<Vec<OsString>>,
    /// Names of programs whose samples don't count.
    pub(crate) left_out: &'static [&'static str],
    /// Whether the first process is one of those, whatever it is called.
    pub(crate) leaves_out_first: bool,
    /// For the environment of the command.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Words to put behind the program's name.
    pub(crate) flags: Vec<OsString>,
    /// Whether files that name compiled code are made only for us.
    pub(crate) removes_maps: bool,
    /// What the user should know.
    pub(crate) notes: Vec<String>,
}

const RUST_TOOLS: &[&str] = &[
    "cargo",
    "rustc",
    "rustup",
    "rustdoc",
    "clippy-driver",
    "build-script-build",
    "build-script-bu",
    "sccache",
    "cc",
    "gcc",
    "clang",
    "collect2",
    "ld",
    "ld.lld",
    "lld",
    "rust-lld",
    "mold",
    "cc1",
    "as",
    "git",
];

const GO_TOOLS: &[&str] =
    &["go", "compile", "link", "asm", "cgo", "vet", "buildid", "pack", "cover", "gcc", "cc1", "as", "ld", "git"];

const NODE_TOOLS: &[&str] = &["sh", "dash", "bash", "npm", "npx", "yarn", "pnpm", "corepack"];

/// What a command needs.
pub(crate) fn prepare(command: &CommandLine) -> Preparation {
    let name = program_name(&command.program);
    let words: Vec<&str> = command.arguments.iter().map(|word| word.to_str().unwrap_or("")).collect();
    match name.as_str() {
        "cargo" => cargo(command, &words),
        "go" => go(command, &words),
        "npm" | "npx" | "yarn" | "pnpm" => {
            Preparation { left_out: NODE_TOOLS, leaves_out_first: true, ..node_environment() }
        }
        "node" | "nodejs" => node(),
        "java" => java(&words),
        _ if is_python(&name) => python(&name),
        _ => Preparation::default(),
    }
}

/// Libraries that a program loads itself without naming them, next to it: the recorder can get ready for them as well.
pub(crate) fn loaded_later(program: &Path) -> Option<PathBuf> {
    if program.file_name()? != "java" {
        return None;
    }
    // What is on the PATH is a link to a link.
    let program = program.canonicalize().ok()?;
    let library = program.parent()?.parent()?.join("lib/server/libjvm.so");
    library.is_file().then_some(library)
}

/// Everything before `--`.
fn own_words(arguments: &[OsString]) -> &[OsString] {
    let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    &arguments[..end]
}

fn cargo(command: &CommandLine, words: &[&str]) -> Preparation {
    // `cargo +nightly -v run …`
    let Some(at) = words.iter().position(|word| !word.starts_with(['-', '+'])) else { return Preparation::default() };
    let (subcommand, extra): (&str, &[&str]) = match words[at] {
        "run" | "r" => ("build", &[]),
        "test" | "t" => ("test", &["--no-run"]),
        "bench" => ("bench", &["--no-run"]),
        _ => return Preparation::default(),
    };
    let own = own_words(&command.arguments);
    let build = std::iter::once(&command.program)
        .chain(&own[..at])
        .cloned()
        .chain([OsString::from(subcommand)])
        .chain(own[at + 1..].iter().cloned())
        .chain(extra.iter().map(OsString::from))
        .collect();
    Preparation { build: Some(build), left_out: RUST_TOOLS, ..Preparation::default() }
}

/// Flags of `go build` whose value is a word of its own.
const WITH_VALUE: &[&str] = &[
    "-C",
    "-p",
    "-asmflags",
    "-buildmode",
    "-compiler",
    "-gccgoflags",
    "-gcflags",
    "-installsuffix",
    "-ldflags",
    "-mod",
    "-modfile",
    "-overlay",
    "-pgo",
    "-pkgdir",
    "-tags",
    "-toolexec",
    "-exec",
];

fn go(command: &CommandLine, words: &[&str]) -> Preparation {
    match words.first() {
        Some(&"run") => {}
        Some(&"test") => return Preparation { left_out: GO_TOOLS, ..Preparation::default() },
        _ => return Preparation::default(),
    }
    let mut end = 1;
    while let Some(word) = words.get(end).filter(|word| word.starts_with('-')) {
        let flag = word.strip_prefix('-').filter(|rest| rest.starts_with('-')).unwrap_or(word);
        end += if WITH_VALUE.contains(&flag) { 2 } else { 1 };
    }
    let is_file = |word: &&str| Path::new(word).extension() == Some(OsStr::new("go"));
    let files = words.iter().skip(end).take_while(|word| is_file(word)).count();
    let end = (end + files.max(1)).min(words.len());
    let mut build: Vec<OsString> = vec![command.program.clone(), "build".into(), "-o".into(), "/dev/null".into()];
    build.extend(command.arguments[1..end].iter().cloned());
    Preparation { build: Some(build), left_out: GO_TOOLS, ..Preparation::default() }
}

/// What makes Node.js name its code: functions in a perf map, lines in a jitdump. Only at its start.
const NODE_FLAGS: &[&str] = &["--perf-basic-prof", "--perf-prof", "--interpreted-frames-native-stack"];

/// And these keep it from leaving a log beside the program.
const NODE_QUIET_FLAGS: &[&str] = &["--logfile=+", "--no-logfile-per-isolate"];

fn node() -> Preparation {
    let flags = NODE_FLAGS.iter().chain(NODE_QUIET_FLAGS).map(OsString::from).collect();
    Preparation { flags, removes_maps: true, ..Preparation::default() }
}

/// By the environment, so that programs behind `npm` hear it as well; it does not take all flags.
fn node_environment() -> Preparation {
    let mut options = std::env::var("NODE_OPTIONS").unwrap_or_default();
    for option in NODE_FLAGS {
        if !options.split_whitespace().any(|known| known == *option) {
            options = format!("{options} {option}");
        }
    }
    Preparation {
        environment: vec![("NODE_OPTIONS".into(), options.trim_start().into())],
        removes_maps: true,
        ..Preparation::default()
    }
}

fn java(words: &[&str]) -> Preparation {
    let wanted = ["-XX:+PreserveFramePointer", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit"];
    let flags = wanted.iter().filter(|flag| !words.contains(flag)).map(OsString::from).collect();
    Preparation {
        flags,
        removes_maps: true,
        notes: vec![
            "Java is recorded by method; for lines record with JFR (-XX:StartFlightRecording) and open that file"
                .to_owned(),
        ],
        ..Preparation::default()
    }
}

fn is_python(name: &str) -> bool {
    name.strip_prefix("python").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

fn python(name: &str) -> Preparation {
    let minor: Option<u32> = name.strip_prefix("python3.").and_then(|minor| minor.parse().ok());
    let notes = match minor {
        Some(minor) if minor < 11 => vec![format!(
            "Python 3.{minor} shows no lines of its own here: use 3.11 or later, or py-spy record --format raw"
        )],
        _ => Vec::new(),
    };
    Preparation { notes, ..Preparation::default() }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn built(words: &str) -> String {
        let mut words = words.split_whitespace().map(OsString::from);
        let program = words.next().unwrap();
        let command = CommandLine { program, arguments: words.collect(), environment: Vec::new(), folder: None };
        let preparation = prepare(&command);
        let build = preparation.build.unwrap_or_default();
        let build: Vec<String> = build.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        format!("{} | {}", build.join(" "), preparation.left_out.first().unwrap_or(&"-"))
    }

    #[test]
    fn build_tools_build_first_with_the_same_flags() {
        let commands = [
            "cargo run --release -p app -- --fast run",
            "cargo +nightly -v r --bin x",
            "cargo test name -- --nocapture",
            "cargo bench",
            "cargo build",
            "/usr/local/go/bin/go run . -x",
            "go run -race -tags a,b ./cmd/app serve -v",
            "go run main.go util.go 7",
            "go run -ldflags=-s .",
            "go run",
            "go test ./...",
            "go version",
            "./app run",
        ];
        let text: Vec<String> = commands.iter().map(|command| format!("{command} => {}\n", built(command))).collect();
        expect![[r#"
            cargo run --release -p app -- --fast run => cargo build --release -p app | cargo
            cargo +nightly -v r --bin x => cargo +nightly -v build --bin x | cargo
            cargo test name -- --nocapture => cargo test name --no-run | cargo
            cargo bench => cargo bench --no-run | cargo
            cargo build =>  | -
            /usr/local/go/bin/go run . -x => /usr/local/go/bin/go build -o /dev/null . | go
            go run -race -tags a,b ./cmd/app serve -v => go build -o /dev/null -race -tags a,b ./cmd/app | go
            go run main.go util.go 7 => go build -o /dev/null main.go util.go | go
            go run -ldflags=-s . => go build -o /dev/null -ldflags=-s . | go
            go run => go build -o /dev/null | go
            go test ./... =>  | go
            go version =>  | -
            ./app run =>  | -
        "#]]
        .assert_eq(&text.concat());
    }

    #[test]
    fn the_library_of_java_is_found_by_its_program() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for file in ["jdk/bin/java", "jdk/lib/server/libjvm.so", "other/bin/java"] {
            std::fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            std::fs::write(at(file), "").unwrap();
        }
        std::os::unix::fs::symlink("jdk/bin/java", at("java")).unwrap();
        let library = at("jdk/lib/server/libjvm.so").canonicalize().unwrap();
        assert_eq!(loaded_later(&at("java")), Some(library.clone()));
        assert_eq!(loaded_later(&at("jdk/bin/java")), Some(library.clone()));
        assert_eq!(loaded_later(&at("other/bin/java")), None);
        assert_eq!(loaded_later(&library), None);
    }

    #[test]
    fn versions_of_python_are_told_apart() {
        for (name, has_note) in [("python3.10", true), ("python3.9", true), ("python3.12", false), ("python3", false)] {
            assert_eq!(!python(name).notes.is_empty(), has_note, "{name}");
        }
        assert!(is_python("python3.11") && is_python("python") && !is_python("pythonista"));
    }
}
