//! Rust: tests of every attribute that is called `test`, `#[bench]`, Criterion's benchmarks, `main`.
//!
//! Cargo builds, and says which program came of it; the program is then run without Cargo. Everything is
//! built as `--release`: costs of code that was not optimised say little. cargo-nextest runs tests in the same
//! way, one process each, so there is nothing to do for it.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::tokens::{self, Dialect, Token, tokens};
use super::{
    Iterations, Kind, Language, Order, Plan, Runnable, Runner, Steps, Words, filters, folder_with, name_a_task,
};

pub(super) const LANGUAGE: Language = Language { name: "Rust", endings: &["rs"], find, plan, again };

/// How Criterion runs a benchmark: long enough for a thousand samples, and with little that is not measured.
/// It chooses the iterations by itself, and tells them only where it measures, not with its `--profile-time`.
const CRITERION: &[&str] =
    &["--bench", "--noplot", "--warm-up-time=0.1", "--measurement-time=4", "--sample-size=10", "--nresamples=1000"];

/// Files of Criterion's with the iterations are smaller.
const MAX_SAMPLE: u64 = 1 << 20;

/// What an attribute makes of a function, by the last part of its name.
fn kind_of(attribute: &str) -> Option<Kind> {
    match attribute {
        "test" | "rstest" | "test_case" | "quickcheck" => Some(Kind::Test),
        "bench" => Some(Kind::Benchmark),
        _ => None,
    }
}

fn find(path: &Path, text: &str) -> Vec<Runnable> {
    let tokens = tokens(text, Dialect::Rust);
    let mut found = Vec::new();
    // Modules that are open, with the depth of their brace.
    let mut modules: Vec<(&str, u32)> = Vec::new();
    // What attributes say of the function that comes, and where they begin.
    let mut attributes: Option<(Option<Kind>, u32)> = None;
    // Groups of Criterion: variable and name.
    let mut groups: Vec<(&str, &str)> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        let next = tokens.get(at + 1);
        match token.text {
            "#" if next.is_some_and(|next| next.is_sign("[")) => {
                let end = tokens::closing(&tokens, at + 1);
                let (kind, line) = attributes.unwrap_or((None, token.line));
                attributes = Some((kind.or_else(|| kind_of(attribute(&tokens[at + 2..end.max(at + 2)]))), line));
                at = end;
            }
            "mod" => {
                if let (Some(name), Some(brace)) = (next, tokens.get(at + 2))
                    && brace.is_sign("{")
                {
                    modules.push((name.text, brace.depth));
                    at += 2;
                }
                attributes = None;
            }
            "}" => {
                modules.retain(|&(_, depth)| depth < token.depth);
                attributes = None;
            }
            "fn" => {
                let attributes = attributes.take();
                if let Some(name) = next.filter(|next| next.kind == tokens::Kind::Word) {
                    let is_main = name.text == "main"
                        && modules.is_empty()
                        && token.depth == 0
                        && path.file_name().is_some_and(|name| name != "build.rs");
                    let kind = attributes.and_then(|(kind, _)| kind).or(is_main.then_some(Kind::Main));
                    if let Some(kind) = kind {
                        let parts = modules.iter().map(|&(module, _)| module).chain([name.text]);
                        found.push(Runnable {
                            kind,
                            name: parts.collect::<Vec<_>>().join("::"),
                            runner: Runner::Own,
                            line: name.line,
                            first: attributes.map_or(token.line, |(_, line)| line),
                            last: end_of(&tokens, at),
                            begins: name.line,
                        });
                    }
                }
            }
            "benchmark_group" => {
                if let [.., variable, equals, _, dot] = &tokens[..at]
                    && dot.is_sign(".")
                    && equals.is_sign("=")
                    && let Some(name) = argument(&tokens, at)
                {
                    groups.retain(|(known, _)| *known != variable.text);
                    groups.push((variable.text, name));
                }
            }
            "bench_function" => {
                if let [.., receiver, dot] = &tokens[..at]
                    && dot.is_sign(".")
                    && let Some(name) = argument(&tokens, at)
                {
                    let group = groups.iter().find(|(variable, _)| *variable == receiver.text);
                    let name = group.map_or_else(|| name.to_owned(), |(_, group)| format!("{group}/{name}"));
                    let last = tokens[tokens::closing(&tokens, at + 1)].line;
                    let (line, runner) = (token.line, Runner::Criterion);
                    let kind = Kind::Benchmark;
                    found.push(Runnable { kind, name, runner, line, first: line, last, begins: line });
                }
            }
            ";" | "struct" | "enum" | "impl" | "trait" | "use" | "static" | "type" | "let" => attributes = None,
            _ => {}
        }
        at += 1;
    }
    found
}

/// The last part of an attribute's name: `test` of `tokio::test(flavor = "…")`.
fn attribute<'t>(inside: &[Token<'t>]) -> &'t str {
    let is_name = |token: &&Token<'_>| token.kind == tokens::Kind::Word || token.is_sign(":");
    inside.iter().take_while(is_name).last().map_or("", |token| token.text)
}

/// The text that is the first argument of the call at an index.
fn argument<'t>(tokens: &[Token<'t>], at: usize) -> Option<&'t str> {
    let text = tokens.get(at + 2).filter(|token| token.kind == tokens::Kind::Text)?;
    tokens[at + 1].is_sign("(").then_some(text.text)
}

/// The line where the function at an index ends.
fn end_of(tokens: &[Token<'_>], at: usize) -> u32 {
    let depth = tokens[at].depth;
    let body = (at..tokens.len())
        .find(|&index| tokens[index].depth == depth && (tokens[index].is_sign("{") || tokens[index].is_sign(";")));
    let end = body.map_or(at, |body| if tokens[body].is_sign("{") { tokens::closing(tokens, body) } else { body });
    tokens[end].line
}

/// What `cargo metadata` tells, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_root: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Package {
    manifest_path: PathBuf,
    targets: Vec<Target>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
}

impl Target {
    fn is(&self, kind: &str) -> bool {
        self.kind.iter().any(|own| own == kind)
    }

    fn is_library(&self) -> bool {
        self.kind.iter().any(|kind| kind.ends_with("lib") || kind == "proc-macro")
    }

    /// The name of its crate.
    fn crate_name(&self) -> String {
        self.name.replace('-', "_")
    }

    /// How Cargo is told to build it and nothing else.
    fn selection(&self) -> Vec<String> {
        let kinds = ["bin", "example", "test", "bench"];
        match kinds.iter().find(|kind| self.is(kind)) {
            Some(kind) => vec![format!("--{kind}"), self.name.clone()],
            None => vec!["--lib".to_owned()],
        }
    }
}

/// A line of Cargo's messages.
#[derive(Debug, Deserialize)]
struct Message {
    reason: String,
    target: Option<Target>,
    executable: Option<PathBuf>,
    #[serde(rename = "message")]
    told: Option<Diagnostic>,
}

#[derive(Debug, Deserialize)]
struct Diagnostic {
    level: String,
    message: String,
    spans: Vec<Span>,
}

#[derive(Debug, Deserialize)]
struct Span {
    file_name: String,
    line_start: u32,
    is_primary: bool,
}

fn plan(order: &Order, steps: &mut dyn Steps) -> Result<Plan, String> {
    let Some(folder) = folder_with(order, &["Cargo.toml"]) else {
        return Err(name_a_task(order, "there is no Cargo.toml for it in the workspace"));
    };
    let manifest = folder.join("Cargo.toml");
    let cargo = || Words::new("cargo", &folder);
    let described = steps.run(&cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: Metadata =
        serde_json::from_str(&described.stdout).map_err(|_| format!("`cargo metadata` failed: {}", described.why()))?;
    let package = metadata.packages.iter().find(|package| package.manifest_path == manifest);
    let targets = package.map(|package| targets_of(&order.file, &package.targets)).unwrap_or_default();
    if targets.is_empty() {
        return Err(name_a_task(order, &format!("no target of {} has this file", manifest.display())));
    }
    let mut seen = Vec::new();
    for target in targets {
        let is_bench = target.is("bench") || order.runnable.kind == Kind::Benchmark;
        let mut words = cargo();
        match (order.runnable.kind, is_bench) {
            (_, true) => words = words.args(["bench", "--no-run"]),
            (Kind::Main, _) if target.is("bin") || target.is("example") => words = words.args(["build", "--release"]),
            _ => words = words.args(["test", "--no-run", "--release"]),
        }
        words = words.arg("--message-format=json").args(target.selection());
        if lacks_lines(&metadata.workspace_root, is_bench) {
            // Whole names of functions as well.
            words = words.env("CARGO_PROFILE_RELEASE_DEBUG", "limited").env("CARGO_PROFILE_BENCH_DEBUG", "limited");
            steps.note(
                "it is built with debug info for this; `debug = \"limited\"` in [profile.release] of Cargo.toml gives every \
                 build its lines"
                    .to_owned(),
            );
        }
        let program = build(&words, &target, steps)?;
        if let Some(advice) = steps.lines_advice(&program) {
            return Err(advice);
        }
        let run = Words::new(&program, &folder).env("CARGO_MANIFEST_DIR", &folder);
        match order.runnable.kind {
            Kind::Main => {
                let command = if is_bench { run.arg("--bench") } else { run };
                return Ok(Plan { repeats: is_bench, is_built: true, ..Plan::new(command) });
            }
            _ if order.runnable.runner == Runner::Criterion => {
                let name = &order.runnable.name;
                let run = run.args(CRITERION).arg(pattern(name));
                // What it measures are closures without a name of their own; what runs them has one. Its
                // own statistics come after.
                let under = filters(["fn~Bencher<".to_owned(), "fn~Bencher".to_owned()]);
                let plan = Plan { under, repeats: false, is_built: true, ..Plan::new(run) };
                return Ok(telling_iterations(plan, steps.scratch()));
            }
            _ => {}
        }
        let listed = steps.run(&run.clone().args(["--list", "--format", "terse"]))?;
        let names: Vec<&str> =
            listed.stdout.lines().filter_map(|line| line.rsplit_once(": ").map(|(name, _)| name)).collect();
        let path = join(&modules_of(&order.file, &target.src_path), &order.runnable.name);
        if let Some((name, is_exact)) = choose(&names, &path, &order.runnable.name) {
            let mut command = run.arg(&name).arg("--include-ignored");
            if is_exact {
                command = command.arg("--exact");
            }
            if order.runnable.kind == Kind::Benchmark {
                command = command.arg("--bench");
            }
            // Closures that it gives to threads have its name in theirs, and so has asynchronous code. With line
            // tables alone, functions have no more than their own name.
            let name = name.trim_end_matches("::");
            let own_name = name.rsplit("::").next().unwrap_or(name);
            let under = filters([format!("fn~{}::{name}", target.crate_name()), format!("fn={own_name}")]);
            return Ok(Plan { under, is_built: true, ..Plan::new(command) });
        }
        seen.push(target.name);
    }
    let why = format!("{} is not among the tests of {}", order.runnable.name, seen.join(" and "));
    Err(name_a_task(order, &why))
}

/// What a program of Criterion's tells of its iterations is in a folder that goes with the run.
fn again(order: &Order, plan: Plan, scratch: &Path) -> Plan {
    match order.runnable.runner {
        Runner::Criterion => telling_iterations(Plan { repeats: false, ..plan }, scratch),
        Runner::Own | Runner::Pytest => plan,
    }
}

fn telling_iterations(plan: Plan, scratch: &Path) -> Plan {
    let told = scratch.join("criterion");
    let command = plan.command.env("CRITERION_HOME", &told);
    Plan { command, iterations: Iterations::Told(told, criterion_iterations), ..plan }
}

/// What Criterion has kept of a benchmark, as far as it matters here.
#[derive(Debug, Deserialize)]
struct CriterionSample {
    iters: Vec<f64>,
}

/// The iterations that Criterion has measured, from `NAME/new/sample.json` below its folder: there is one, as
/// one benchmark was run.
fn criterion_iterations(folder: &Path) -> Option<u64> {
    /// `GROUP/FUNCTION/PARAMETER/new`.
    const DEEPEST: usize = 6;
    let mut found = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in std::fs::read_dir(&folder).ok()?.flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && depth < DEEPEST {
                folders.push((path, depth + 1));
            } else if path.ends_with("new/sample.json") {
                found.push(path);
            }
        }
    }
    let [path] = found.as_slice() else { return None };
    let is_small = std::fs::metadata(path).is_ok_and(|metadata| metadata.len() <= MAX_SAMPLE);
    let text = std::fs::read_to_string(path).ok().filter(|_| is_small)?;
    let sample: CriterionSample = serde_json::from_str(&text).ok()?;
    let sum: f64 = sample.iters.iter().filter(|iterations| **iterations > 0.0).sum();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts of floats saturate")]
    Some(sum as u64).filter(|&sum| sum > 0)
}

/// The targets that a file may be part of, the likeliest first.
fn targets_of(file: &Path, targets: &[Target]) -> Vec<Target> {
    if let Some(own) = targets.iter().find(|target| target.src_path == file) {
        return vec![own.clone()];
    }
    let above = |target: &&Target| target.src_path.parent().is_some_and(|folder| file.starts_with(folder));
    let depth = |target: &Target| target.src_path.components().count();
    let mut all: Vec<Target> =
        targets.iter().filter(above).filter(|target| !target.is("custom-build")).cloned().collect();
    let deepest = all.iter().map(depth).max().unwrap_or_default();
    all.retain(|target| depth(target) == deepest);
    all.sort_by_key(|target| !target.is_library());
    all
}

/// The module that a file is, below the file of its target: `src/a/b.rs` is `a::b`.
fn modules_of(file: &Path, root: &Path) -> String {
    if file == root {
        return String::new();
    }
    let relative = root.parent().and_then(|folder| file.strip_prefix(folder).ok()).unwrap_or(file).with_extension("");
    let mut parts: Vec<String> = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    parts.join("::")
}

fn join(modules: &str, name: &str) -> String {
    if modules.is_empty() { name.to_owned() } else { format!("{modules}::{name}") }
}

/// What to ask the test program for, and whether that is the name of one test: an attribute may have made
/// several of it, and a file may be another module than its path says.
fn choose(names: &[&str], path: &str, name: &str) -> Option<(String, bool)> {
    if names.contains(&path) {
        return Some((path.to_owned(), true));
    }
    let cases = format!("{path}::");
    if names.iter().any(|listed| listed.starts_with(&cases)) {
        return Some((cases, false));
    }
    let end = format!("::{name}");
    let mut alike = names.iter().filter(|listed| listed.ends_with(&end) || **listed == name);
    match (alike.next(), alike.next()) {
        (Some(only), None) => Some(((*only).to_owned(), true)),
        _ => None,
    }
}

/// A name as a regular expression that is nothing but this name.
fn pattern(name: &str) -> String {
    let escaped = name.chars().flat_map(|letter| {
        let is_plain = letter.is_alphanumeric() || "_/ -".contains(letter);
        (!is_plain).then_some('\\').into_iter().chain([letter])
    });
    format!("^{}$", escaped.collect::<String>())
}

/// Whether the profile that is built has no lines, as far as the workspace's manifest says.
fn lacks_lines(workspace: &Path, is_bench: bool) -> bool {
    let text = std::fs::read_to_string(workspace.join("Cargo.toml")).unwrap_or_default();
    let Ok(manifest) = toml::from_str::<toml::Table>(&text) else { return false };
    let debug = |profile: &str| manifest.get("profile")?.get(profile)?.get("debug").cloned();
    let debug = is_bench.then(|| debug("bench")).flatten().or_else(|| debug("release"));
    match debug {
        None => true,
        Some(toml::Value::Boolean(has)) => !has,
        Some(toml::Value::Integer(level)) => level == 0,
        Some(value) => value.as_str() == Some("none"),
    }
}

/// Builds, and finds out which program came of it.
fn build(words: &Words, target: &Target, steps: &mut dyn Steps) -> Result<PathBuf, String> {
    let output = steps.build(words)?;
    let messages = output.stdout.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    let mut program = None;
    for message in messages {
        match message.reason.as_str() {
            "compiler-message" if !output.is_success => {
                if let Some(error) = message.told.filter(|told| told.level == "error") {
                    let place = error.spans.iter().find(|span| span.is_primary);
                    let place = place.map(|span| format!(" at {}:{}", span.file_name, span.line_start));
                    return Err(format!("it does not build: {}{}", error.message, place.unwrap_or_default()));
                }
            }
            "compiler-artifact" if message.target.as_ref().is_some_and(|built| built.src_path == target.src_path) => {
                program = message.executable.or(program);
            }
            _ => {}
        }
    }
    if !output.is_success {
        return Err(format!("`{}` failed: {}", words.in_words(), output.why()));
    }
    program.ok_or_else(|| format!("`{}` made no program", words.in_words()))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::listed;
    use super::*;

    #[test]
    fn tests_benchmarks_and_main_are_found() {
        let text = r###"
//! #[test]
use std::fmt;
#[cfg(test)]
mod tests {
    use super::*;
    mod deep {
        #[tokio::test(flavor = "multi_thread")]
        #[ignore]
        async fn waits() { let s = "} fn no() {"; }
    }
    #[test]
    pub(crate) fn plain() -> Result<(), [u8; 2]> {
        fn helper() {}
    }
    fn no_test() {}
    #[derive(Debug)]
    struct test;
    fn neither() {}
    /* #[test] fn commented() {} */
    proptest! {
        #[test]
        fn in_a_macro(x in 0..9) { }
    }
}
#[bench]
fn old(b: &mut Bencher) {}
fn criterion(c: &mut Criterion) {
    c.bench_function("alone", |b| b.iter(|| 1));
    let mut group = c.benchmark_group("sorting");
    group.bench_function("quick", |b| {
        b.iter(|| 2)
    });
}
fn main() {
"###;
        expect![[r#"
            10: test tests::deep::waits at 8-10
            13: test tests::plain at 12-15
            23: test tests::in_a_macro at 22-23
            27: benchmark old at 26-27
            29: benchmark alone (Criterion) at 29-29
            31: benchmark sorting/quick (Criterion) at 31-33
            35: program main at 35-35
        "#]]
        .assert_eq(&listed(Path::new("x.rs"), text));
        assert_eq!(listed(Path::new("build.rs"), "fn main() {}"), "");
    }

    #[test]
    fn a_test_is_told_from_others_of_the_program() {
        let names = ["a::b::x", "a::b::xy", "a::b::cases::one", "a::b::cases::two", "c::y", "d::y", "z"];
        for (path, name, want) in [
            ("a::b::x", "x", Some(("a::b::x", true))),
            ("a::b::cases", "cases", Some(("a::b::cases::", false))),
            ("other::xy", "xy", Some(("a::b::xy", true))),
            ("other::y", "y", None),
            ("other::z", "z", Some(("z", true))),
        ] {
            let want = want.map(|(name, is_exact): (&str, bool)| (name.to_owned(), is_exact));
            assert_eq!(choose(&names, path, name), want, "{path}");
        }
        assert_eq!(modules_of(Path::new("/w/src/a/mod.rs"), Path::new("/w/src/lib.rs")), "a");
        assert_eq!(modules_of(Path::new("/w/src/a/b.rs"), Path::new("/w/src/main.rs")), "a::b");
        assert_eq!(pattern("a/b (1.5)"), r"^a/b \(1\.5\)$");
    }

    #[test]
    fn a_file_belongs_to_the_closest_target() {
        let target = |name: &str, kind: &str, path: &str| Target {
            name: name.to_owned(),
            kind: vec![kind.to_owned()],
            src_path: PathBuf::from(path),
        };
        let targets = [
            target("app", "bin", "/w/src/main.rs"),
            target("app", "lib", "/w/src/lib.rs"),
            target("other", "bin", "/w/src/bin/other/main.rs"),
            target("it", "test", "/w/tests/it.rs"),
            target("build-script-build", "custom-build", "/w/build.rs"),
        ];
        for (file, want) in [
            ("/w/src/parse/mod.rs", &["app lib", "app bin"][..]),
            ("/w/src/main.rs", &["app bin"]),
            ("/w/src/bin/other/deep.rs", &["other bin"]),
            ("/w/tests/common/mod.rs", &["it test"]),
            ("/w/notes.rs", &[]),
        ] {
            let found = targets_of(Path::new(file), &targets);
            let found: Vec<String> = found.iter().map(|target| format!("{} {}", target.name, target.kind[0])).collect();
            assert_eq!(found, want, "{file}");
        }
    }
}
