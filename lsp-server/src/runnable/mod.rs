//! What of a source file can be run and profiled: tests, benchmarks, examples and programs, and how.
//!
//! ```text
//! text ─▶ tokens ─▶ find, per language ─▶ lenses, code actions
//!                                  └────▶ Order ─▶ plan, per language ─▶ Plan ─▶ record::profile_test
//! ```
//!
//! Finding looks at the text alone, as it is in the editor, and at its tokens rather than its grammar:
//! tables of grammars for these languages take 3.6 MB, and text that is being typed has no tree.
//! What macros make is not found; `[tasks]` in `perflens.toml` names a command for it. Planning is done when
//! somebody asks for a profile: it looks at the disk and runs the language's own tools.
//!
//! A language is a file here and a line in [`LANGUAGES`]. What is not here: recording, and whether the
//! workspace may run anything at all (the session asks its trust).

mod c;
mod go;
mod javascript;
mod python;
mod rust;
mod tokens;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use profiler_core::attribute::Filter;
use serde::{Deserialize, Serialize};

use crate::config::Task;

/// Longer texts are not looked through.
const MAX_TEXT: usize = 4 << 20;

/// A language.
#[derive(Debug)]
pub struct Language {
    /// Its name.
    pub name: &'static str,
    /// How names of its files end, without the dot.
    pub endings: &'static [&'static str],
    /// What can be run, in the order of the text.
    pub find: fn(&Path, &str) -> Vec<Runnable>,
    /// How one of them is built and run.
    pub plan: fn(&Order, &mut dyn Steps) -> Result<Plan, String>,
    /// The plan of a program that [`plan`](Self::plan) has built before, with what of it holds for one run alone:
    /// what is told in a folder that goes with the run, and the language's own profiler.
    pub again: fn(&Order, Plan, &Path) -> Plan,
}

/// All languages.
pub const LANGUAGES: &[Language] = &[c::LANGUAGE, go::LANGUAGE, javascript::LANGUAGE, python::LANGUAGE, rust::LANGUAGE];

/// What it is that can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// A test.
    Test,
    /// A benchmark.
    Benchmark,
    /// An example that is checked like a test.
    Example,
    /// A whole program.
    Main,
    /// A function that nothing runs by itself; a task may.
    Function,
}

impl Kind {
    /// As lenses and titles call it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Benchmark => "benchmark",
            Self::Example => "example",
            Self::Main => "program",
            Self::Function => "function",
        }
    }
}

/// By what it is run, where a language has several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Runner {
    /// The language's own.
    #[default]
    Own,
    /// Criterion, for benchmarks in Rust.
    Criterion,
    /// pytest.
    Pytest,
}

/// Something that can be run. Lines count from 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Runnable {
    /// What it is.
    pub kind: Kind,
    /// As its language names it within the file: `tests::parses`, `Suite::test_parse`.
    pub name: String,
    /// By what it is run.
    pub runner: Runner,
    /// The line with its name.
    pub line: u32,
    /// The first line that is part of it.
    pub first: u32,
    /// The last one.
    pub last: u32,
    /// Where the code begins that is measured; elsewhere than `line` where a test is an argument.
    pub begins: u32,
}

/// The language of a file.
pub fn language_of(path: &Path) -> Option<&'static Language> {
    let ending = path.extension()?.to_str()?;
    LANGUAGES.iter().find(|language| language.endings.contains(&ending))
}

/// What can be run of a text.
pub fn find(path: &Path, text: &str) -> Vec<Runnable> {
    match language_of(path) {
        Some(language) if text.len() <= MAX_TEXT => (language.find)(path, text),
        _ => Vec::new(),
    }
}

/// Something that is offered, and the task that runs it if it is not run as its language does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// What.
    pub runnable: Runnable,
    /// How, when that is configured.
    pub task: Option<Task>,
}

/// What is offered for a file of a workspace folder: what was found in it, and its tasks.
pub fn offers(found: &[Runnable], tasks: &BTreeMap<String, Task>, root: &Path, path: &Path) -> Vec<Offer> {
    let own: Vec<(&String, &Task)> = tasks.iter().filter(|(_, task)| root.join(&task.file) == path).collect();
    let mut offers: Vec<Offer> = found
        .iter()
        .map(|runnable| {
            let task = own.iter().find(|(_, task)| task.function.as_deref().is_some_and(|name| runnable.is(name)));
            Offer { runnable: runnable.clone(), task: task.map(|(_, task)| (*task).clone()) }
        })
        .filter(|offer| offer.runnable.kind != Kind::Function || offer.task.is_some())
        .collect();
    for (name, task) in own {
        if offers.iter().any(|offer| offer.task.as_ref() == Some(task)) {
            continue;
        }
        // About no function, or one that is not in sight: it is the file's.
        let runnable = Runnable {
            kind: Kind::Main,
            name: task.function.clone().unwrap_or_else(|| name.clone()),
            runner: Runner::Own,
            line: 0,
            first: 0,
            last: 0,
            begins: 0,
        };
        offers.insert(0, Offer { runnable, task: Some(task.clone()) });
    }
    offers
}

impl Runnable {
    /// Whether this is its name, with or without what it is in.
    fn is(&self, name: &str) -> bool {
        self.name == name || self.name.rsplit("::").next() == Some(name)
    }
}

/// The one that a line belongs to: whose lines it is among, the innermost.
pub fn at_line(offers: &[Offer], line: u32) -> Option<&Offer> {
    let around = offers.iter().filter(|offer| (offer.runnable.first..=offer.runnable.last).contains(&line));
    around.min_by_key(|offer| offer.runnable.last - offer.runnable.first)
}

/// What somebody asked to be profiled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// The workspace folder, which is trusted.
    pub root: PathBuf,
    /// The source file.
    pub file: PathBuf,
    /// What of it.
    pub runnable: Runnable,
    /// How, when that is configured.
    pub task: Option<Task>,
    /// The work that the last recording of it did, to be done again.
    pub work: Option<Work>,
    /// Of a run of several in turns, what makes it one.
    #[serde(default)]
    pub turn: Option<InTurn>,
}

/// A run of base or new version, which take turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InTurn {
    /// By what the runs that belong together are told from others.
    pub set: String,
    /// Of the base: what is run instead of what would be built now.
    pub earlier: Option<Earlier>,
}

/// A program that was built before an edit and kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Earlier {
    /// Where it is kept.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// What was added to its environment, as `NAME=VALUE`.
    pub environment: Vec<String>,
    /// Where it ran.
    pub folder: PathBuf,
    /// The filter that kept the samples that counted.
    pub under: Option<String>,
}

/// How much was done in a recording: what makes two of them comparable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Work {
    /// How often it was run.
    pub runs: u32,
    /// Iterations of a benchmark in each run; 0 where it has none, or chooses them itself.
    pub iterations: u64,
}

impl Work {
    /// The same for the profile, under a name that only recordings of the same thing have; `None`
    /// where nobody knows how much was done: by a benchmark that chooses its iterations, or a program
    /// that may well run until somebody stops it. In turns nobody does, so one that ends has done its work.
    pub fn of(self, key: &str, kind: Kind, is_in_turns: bool) -> Option<profiler_core::profile::Work> {
        if self.unknown(kind).is_some() || (kind == Kind::Main && !is_in_turns) {
            return None;
        }
        let amount = u64::from(self.runs).saturating_mul(self.iterations.max(1));
        Some(profiler_core::profile::Work { amount, name: key.to_owned() })
    }

    /// Why nobody knows how much was done, so that two recordings don't compare by value; a clause without a
    /// full stop.
    pub fn unknown(self, kind: Kind) -> Option<&'static str> {
        if kind == Kind::Benchmark && self.iterations == 0 {
            return Some(
                "it chooses its iterations by itself and does not tell how many they were; profile a test that does \
                 the same",
            );
        }
        let has_not_ended =
            "it did not come to its end within a recording, so how much it did is not known; give it less work";
        (self.runs == 0).then_some(has_not_ended)
    }
}

impl Order {
    /// By what recordings of the same thing are told: file and name.
    pub fn key(&self) -> String {
        let file = self.file.strip_prefix(&self.root).unwrap_or(&self.file);
        format!("{} {}", file.display(), self.runnable.name)
    }
}

/// A command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// What is added to its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it is run.
    pub folder: PathBuf,
}

impl Words {
    /// A program to be run in a folder.
    pub fn new(program: impl Into<OsString>, folder: &Path) -> Self {
        Self { program: program.into(), folder: folder.to_owned(), ..Self::default() }
    }

    /// The same with one argument more.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// The same with more arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// The same with a variable in its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let name = name.into();
        self.environment.retain(|(known, _)| *known != name);
        self.environment.push((name, value.into()));
        self
    }

    /// For people.
    pub fn in_words(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.arguments);
        words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }
}

/// What a command that was not recorded brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Its output, up to a bound.
    pub stdout: String,
    /// The end of its errors.
    pub stderr: String,
    /// Whether it did what it should.
    pub is_success: bool,
}

impl Output {
    /// The line of its errors that says most: the first that names one, else the last.
    pub fn why(&self) -> &str {
        let lines = || self.stderr.lines().map(str::trim).filter(|line| !line.is_empty());
        let is_error = |line: &&str| line.starts_with("error") || line.contains(": error") || line.contains("Error:");
        lines().find(is_error).or_else(|| lines().next_back()).unwrap_or("it says nothing")
    }
}

/// What a plan may do on its way: run commands that are not recorded.
pub trait Steps {
    /// Runs a command to its end. The error says that it could not be started, or that somebody cancelled.
    fn run(&mut self, command: &Words) -> Result<Output, String>;

    /// Runs a command that builds, which is shown to the user; its failure is one.
    fn build(&mut self, command: &Words) -> Result<Output, String>;

    /// Something the user should know.
    fn note(&mut self, sentence: String);

    /// A folder for what is built, until the recording is over.
    fn scratch(&self) -> &Path;

    /// Whether a program has lines to show: else what to change.
    fn lines_advice(&self, program: &Path) -> Option<String>;
}

/// How something is run to be recorded.
#[derive(Debug)]
pub struct Plan {
    /// The command: the process to record, without anything that builds.
    pub command: Words,
    /// What keeps the samples that count: the first of these that keeps any. How a function is called
    /// depends on how much debug info there is. None: all count.
    pub under: Vec<Filter>,
    /// Whether it may be run again for more samples.
    pub repeats: bool,
    /// Iterations of a benchmark in each run.
    pub iterations: Iterations,
    /// Whether the program is built from sources of the workspace, so that another text of them makes it another.
    pub is_built: bool,
    /// Whether only eBPF sees its lines.
    pub needs_bpf: bool,
    /// The language's own profiler.
    pub own: Option<OwnProfiler>,
    /// What its output says when it found nothing to run.
    pub ran_nothing: &'static [&'static str],
}

impl Plan {
    /// A command that is recorded, whatever it does.
    pub fn new(command: Words) -> Self {
        Self {
            command,
            under: Vec::new(),
            repeats: true,
            iterations: Iterations::default(),
            is_built: false,
            needs_bpf: false,
            own: None,
            ran_nothing: &[],
        }
    }
}

/// How many iterations of a benchmark a run has.
#[derive(Clone, Debug)]
pub enum Iterations {
    /// So many; 0 where it has none, or nobody knows.
    Held(u64),
    /// As the benchmark chooses; how many it were is in files that it leaves in a folder.
    Told(PathBuf, fn(&Path) -> Option<u64>),
}

impl Default for Iterations {
    fn default() -> Self {
        Self::Held(0)
    }
}

impl Iterations {
    /// How many they were, after the run; 0 where nobody knows.
    pub fn count(&self) -> u64 {
        match self {
            Self::Held(count) => *count,
            Self::Told(folder, read) => read(folder).unwrap_or(0),
        }
    }
}

/// A language's own profiler.
#[derive(Clone, Debug)]
pub struct OwnProfiler {
    /// What it is called.
    pub name: &'static str,
    /// Why it is used although there is ours; `None` where it is used when ours can't be.
    pub because: Option<&'static str>,
    /// Whether its profiles are of samples, so that they can be added up and filtered by stack.
    pub has_samples: bool,
    /// The command under this profiler, which leaves its files in the folder.
    pub command: fn(&Words, &Path) -> Words,
    /// A function without a name to give one to: the end of its file, its line (from 0), the name.
    pub name_at: Option<(String, u32, String)>,
}

/// Filters that are well-formed by how they are made.
fn filters(texts: impl IntoIterator<Item = String>) -> Vec<Filter> {
    texts.into_iter().filter_map(|text| text.parse().ok()).collect()
}

/// The folder at or above a file, up to the workspace's, that has one of these files.
fn folder_with(order: &Order, names: &[&str]) -> Option<PathBuf> {
    let folders = order.file.ancestors().skip(1).take_while(|folder| folder.starts_with(&order.root));
    folders.into_iter().find(|folder| names.iter().any(|name| folder.join(name).is_file())).map(Path::to_owned)
}

/// What to do where guessing fails.
fn name_a_task(order: &Order, why: &str) -> String {
    let file = order.file.strip_prefix(&order.root).unwrap_or(&order.file).display();
    let name = order.runnable.name.rsplit("::").next().unwrap_or_default();
    format!(
        "{why}; name its command in perflens.toml: [tasks.NAME] with file = \"{file}\", function = \"{name}\", \
         run = [\"PROGRAM\", \"ARGUMENT\"]"
    )
}

/// The plan of a task.
pub fn task_plan(order: &Order, task: &Task, steps: &mut dyn Steps) -> Result<Plan, String> {
    let folder = task.folder.as_ref().map_or_else(|| order.root.clone(), |folder| order.root.join(folder));
    if let Some((program, arguments)) = task.build.split_first() {
        let output = steps.build(&Words::new(program, &folder).args(arguments))?;
        if !output.is_success {
            return Err(format!("it does not build: {}", output.why()));
        }
    }
    let Some((program, arguments)) = task.run.split_first() else {
        return Err("the task has no `run`: name its command as a list of words".to_owned());
    };
    let command = Words::new(program, &folder).args(arguments);
    let path = folder.join(program);
    if path.is_file()
        && let Some(advice) = steps.lines_advice(&path)
    {
        return Err(advice);
    }
    let names =
        task.function.iter().flat_map(|name| [format!("fn={name}"), format!("fn^{name}"), format!("fn~{name}")]);
    Ok(Plan { under: filters(names), is_built: !task.build.is_empty() && path.is_file(), ..Plan::new(command) })
}

/// The plan of a program that was built before an edit. `scratch` is a folder until the recording is over.
pub fn earlier_plan(order: &Order, earlier: &Earlier, scratch: &Path) -> Plan {
    let Earlier { program, arguments, environment, folder, under } = earlier;
    let mut command = Words::new(program, folder).args(arguments);
    for (name, value) in environment.iter().filter_map(|variable| variable.split_once('=')) {
        command = command.env(name, value);
    }
    let iterations = Iterations::Held(order.work.map_or(0, |work| work.iterations));
    let plan = Plan { under: filters(under.clone()), iterations, ..Plan::new(command) };
    match language_of(&order.file) {
        Some(language) if order.task.is_none() => (language.again)(order, plan, scratch),
        _ => plan,
    }
}

/// For languages whose programs run again as they did.
fn as_it_was(_: &Order, plan: Plan, _: &Path) -> Plan {
    plan
}

/// What is found, a line each: for tests of languages. Lines as people count them.
#[cfg(test)]
fn listed(path: &Path, text: &str) -> String {
    let line = |runnable: &Runnable| {
        let runner = match runnable.runner {
            Runner::Own => String::new(),
            other => format!(" ({other:?})"),
        };
        let Runnable { line, first, last, name, .. } = runnable;
        let kind = runnable.kind.word();
        format!("{}: {kind} {name}{runner} at {}-{}\n", line + 1, first + 1, last + 1)
    };
    find(path, text).iter().map(line).collect()
}
