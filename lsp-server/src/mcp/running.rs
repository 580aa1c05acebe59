//! Running what an assistant asks for: a test, a benchmark, a program or a task that was detected in a trusted
//! workspace, by the same child that records for an editor.
//!
//! An assistant names something that is there; it gives no command, no argument and no process. The child
//! ends with the call, however that ends: its input is closed.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant, SystemTime};

use profiler_core::cancel::CancelFlag;
use profiler_core::paths::{Workspace, WorkspaceOptions};
use profiler_core::view::data::shown;

use super::Refusal;
use super::turn::Turn;
use crate::config::Task;
use crate::nearest::nearest;
use crate::record::Commission;
use crate::record::held::THIS_PROGRAM;
use crate::runnable::{LANGUAGES, Offer, Order, find, language_of, offers};
use crate::watched::{Done, Line, QUEUE, Report, follow};

/// A longer source file has no tests that are found.
const MAX_SOURCE: u64 = 4 << 20;
/// How many files are looked through for something that can be run.
const MAX_FILES: usize = 20_000;
/// How long building and recording may take together.
const LONGEST: Duration = Duration::from_mins(10);
/// How long a child may take to end when it is told to.
const END_PATIENCE: Duration = Duration::from_secs(10);
/// How often the wish to cancel is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Candidates that a sentence names.
const NAMED: usize = 5;

/// Something that can be run, and where it is.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The source file, relative to the workspace.
    pub(super) file: String,
    path: PathBuf,
    pub(super) offer: Offer,
}

impl Found {
    pub(super) fn name(&self) -> &str {
        &self.offer.runnable.name
    }

    pub(super) fn order(&self, root: &Path) -> Order {
        let Offer { runnable, task } = self.offer.clone();
        Order { root: root.to_owned(), file: self.path.clone(), runnable, task, work: None, turn: None }
    }
}

/// What can be run in a workspace, or in one file of it, in the order of files and lines.
pub(super) fn all(
    root: &Path,
    file: Option<&str>,
    tasks: &BTreeMap<String, Task>,
    cancel: &CancelFlag,
) -> Result<Vec<Found>, Refusal> {
    let paths = match file {
        Some(file) => vec![source(root, file, tasks)?],
        None => sources(root, tasks, cancel),
    };
    let mut all = Vec::new();
    for path in paths {
        if cancel.is_cancelled() {
            return Err(Refusal::Failed("it was cancelled".to_owned()));
        }
        let is_small = fs::metadata(&path).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_SOURCE);
        let Some(text) = is_small.then(|| fs::read(&path).ok()).flatten() else { continue };
        let found = find(&path, &String::from_utf8_lossy(&text));
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        all.extend(offers(&found, tasks, root, &path).into_iter().map(|offer| Found {
            file: name.clone(),
            path: path.clone(),
            offer,
        }));
    }
    Ok(all)
}

/// The source file of a name.
fn source(root: &Path, name: &str, tasks: &BTreeMap<String, Task>) -> Result<PathBuf, Refusal> {
    let path = root.join(name);
    let real = fs::canonicalize(&path)
        .map_err(|_| Refusal::Arguments(format!("there is no source file {} in the workspace", shown(name))))?;
    if !fs::canonicalize(root).is_ok_and(|root| real.starts_with(root)) {
        return Err(Refusal::Forbidden(format!("{} is outside of the workspace; nothing there is run", shown(name))));
    }
    let has_task = tasks.values().any(|task| root.join(&task.file) == path);
    if language_of(&real).is_none() && !has_task {
        let names: Vec<&str> = LANGUAGES.iter().map(|language| language.name).collect();
        return Err(Refusal::Arguments(format!(
            "{} is in no language whose tests are found ({}); a task in perflens.toml can name its command",
            shown(name),
            names.join(", ")
        )));
    }
    Ok(real)
}

/// All source files that may have something to run, and those of tasks.
fn sources(root: &Path, tasks: &BTreeMap<String, Task>, cancel: &CancelFlag) -> Vec<PathBuf> {
    let listed = Workspace::open(&[root.to_owned()], &WorkspaceOptions::default(), cancel);
    let endings: Vec<String> =
        LANGUAGES.iter().flat_map(|language| language.endings).map(|ending| format!(".{ending}")).collect();
    let real_root = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    // Trust in a folder says nothing about what a link in it leads to.
    let is_inside = |path: &PathBuf| fs::canonicalize(path).is_ok_and(|real| real.starts_with(&real_root));
    let mut paths: Vec<PathBuf> =
        endings.iter().flat_map(|end| listed.files_ending(end)).map(|file| file.path).collect();
    paths.extend(tasks.values().map(|task| root.join(&task.file)));
    paths.retain(is_inside);
    paths.sort();
    paths.dedup();
    paths.truncate(MAX_FILES);
    paths
}

/// Whether a source file of the same language was written after a time.
pub(super) fn is_newer(root: &Path, file: &str, than: SystemTime) -> bool {
    let Some(language) = language_of(Path::new(file)) else { return true };
    let listed = Workspace::open(&[root.to_owned()], &WorkspaceOptions::default(), &CancelFlag::new());
    let endings: Vec<String> = language.endings.iter().map(|ending| format!(".{ending}")).collect();
    let mut paths = endings.iter().flat_map(|end| listed.files_ending(end)).map(|file| file.path);
    paths.any(|path| fs::metadata(path).and_then(|metadata| metadata.modified()).is_ok_and(|time| time > than))
}

/// The one that an assistant means: by its whole name, the end of it, or the name of its task.
pub(super) fn named(all: &[Found], name: &str, tasks: &BTreeMap<String, Task>) -> Result<Found, Refusal> {
    let task = tasks.get(name);
    let is_end = |found: &&Found| found.name().rsplit("::").next() == Some(name);
    let pick = |is_it: &dyn Fn(&&Found) -> bool| -> Vec<&Found> { all.iter().filter(is_it).collect() };
    let mut meant = pick(&|found| task.is_some() && found.offer.task.as_ref() == task);
    if meant.is_empty() {
        meant = pick(&|found| found.name() == name);
    }
    if meant.is_empty() {
        meant = pick(&is_end);
    }
    match meant.as_slice() {
        [only] => Ok((*only).clone()),
        [] => {
            let near: Vec<String> = candidates(all, name).iter().map(|near| format!("`{}`", shown(near))).collect();
            let near = if near.is_empty() { String::new() } else { format!(", the nearest are {}", near.join(", ")) };
            Err(Refusal::Arguments(format!(
                "no test, benchmark, program or task is called {}{near}; record {{}} lists all",
                shown(name)
            )))
        }
        several => {
            let places: Vec<String> = several
                .iter()
                .take(NAMED)
                .map(|found| format!("{} in {}", shown(found.name()), shown(&found.file)))
                .collect();
            Err(Refusal::Arguments(format!(
                "{} are called {}, give the whole name and the `file`: {}",
                several.len(),
                shown(name),
                places.join("; ")
            )))
        }
    }
}

/// Names like one that nothing has.
fn candidates<'a>(all: &'a [Found], name: &str) -> Vec<&'a str> {
    let last = |name: &'a str| name.rsplit("::").next().unwrap_or(name);
    let lower = name.to_lowercase();
    let mut near: Vec<&str> = nearest(name, all.iter().map(Found::name)).into_iter().collect();
    near.extend(nearest(name, all.iter().map(|found| last(found.name()))));
    near.extend(all.iter().map(Found::name).filter(|other| {
        let other = other.to_lowercase();
        other.contains(&lower) || lower.contains(&other)
    }));
    near.extend(all.iter().map(Found::name));
    let mut unique = Vec::new();
    for name in near {
        if !unique.contains(&name) {
            unique.push(name);
        }
    }
    unique.truncate(NAMED);
    unique
}

/// What a recording of a test brought.
#[derive(Debug)]
pub(super) struct Recorded {
    /// The recording; `None` when it failed.
    pub(super) done: Result<Done, String>,
    /// How the test ended, where it began.
    pub(super) report: Option<Report>,
    /// What else was said.
    pub(super) notes: Vec<String>,
}

/// Builds and records, until it is done, cancelled or has taken too long. When this returns, nothing of it
/// runs any more.
pub(super) fn run(commission: &Commission, turn: &Turn) -> Result<Recorded, Refusal> {
    let failed = |error: std::io::Error| Refusal::Failed(format!("starting the recorder: {error}"));
    let line = serde_json::to_string(commission).map_err(|error| Refusal::Failed(error.to_string()))? + "\n";
    let mut command = Command::new(THIS_PROGRAM);
    command.args(["record", "--watch", "--order"]).current_dir(&commission.order.root);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(failed)?;
    let mut input = child.stdin.take();
    let lines = child.stdout.take().map(lines_of);
    if let Some(input) = &mut input {
        input.write_all(line.as_bytes()).map_err(failed)?;
    }
    let start = Instant::now();
    let mut recorded = Recorded { done: Err(String::new()), report: None, notes: Vec::new() };
    let mut why_ended = None;
    let mut told_to_end = None;
    while let Some(lines) = &lines {
        match lines.recv_timeout(LOOK_EVERY) {
            Ok(line) => recorded.take(line, turn),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let is_too_long = start.elapsed() > LONGEST;
        if why_ended.is_none() && (turn.cancel.is_cancelled() || is_too_long) {
            why_ended = Some(if is_too_long {
                format!("building and recording took longer than {} minutes and were ended", LONGEST.as_secs() / 60)
            } else {
                "it was cancelled".to_owned()
            });
            // The end of its input is how the child is told.
            input = None;
            told_to_end = Some(Instant::now());
        }
        if told_to_end.is_some_and(|told| told.elapsed() > END_PATIENCE) {
            break;
        }
    }
    drop(input);
    end(&mut child);
    match why_ended {
        Some(why) => Err(Refusal::Failed(why)),
        None if recorded.done.as_ref().is_err_and(String::is_empty) => {
            Err(Refusal::Failed("the recording broke off; try again".to_owned()))
        }
        None => Ok(recorded),
    }
}

/// Waits for the child, and makes it end if it does not: what it has started ends with it.
fn end(child: &mut Child) {
    let start = Instant::now();
    while start.elapsed() < END_PATIENCE {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// What the child says, read on a thread of its own.
fn lines_of(output: std::process::ChildStdout) -> Receiver<Line> {
    let (sender, lines) = sync_channel(QUEUE);
    // When nobody reads any more, the end is all that is waited for.
    std::thread::spawn(move || follow(output, |line| drop(sender.send(line))));
    lines
}

impl Recorded {
    fn take(&mut self, line: Line, turn: &Turn) {
        match line {
            Line::Note(sentence) => self.notes.push(sentence),
            Line::Building(command) => turn.tell(format!("building: {command}")),
            Line::Begun(how) => turn.tell(format!("recording {how}")),
            Line::Progress { elapsed_ms, samples } => {
                turn.tell(format!("recording: {} s, {samples} samples", elapsed_ms / 1000));
            }
            Line::Written(_) | Line::Under(_) => {}
            Line::Ended(report) => self.report = Some(report),
            Line::Done(done) => self.done = Ok(done),
            Line::Failed(why) => self.done = Err(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str, text: &str) -> Vec<Found> {
        let path = Path::new("/w").join(file);
        let offers = offers(&find(&path, text), &BTreeMap::new(), Path::new("/w"), &path);
        offers.into_iter().map(|offer| Found { file: file.to_owned(), path: path.clone(), offer }).collect()
    }

    #[test]
    fn what_is_meant_is_one_or_a_refusal_that_helps() {
        let text = "mod tests {\n#[test]\nfn sums() {}\n#[test]\nfn parses_all() {}\n}\n";
        let mut all = found("src/a.rs", text);
        all.extend(found("src/b.rs", "mod tests {\n#[test]\nfn sums() {}\n#[test]\nfn other() {}\n}\n"));
        let said = |name: &str| match named(&all, name, &BTreeMap::new()) {
            Ok(found) => format!("{} {}", found.file, found.name()),
            Err(refusal) => refusal.to_string(),
        };
        assert_eq!(said("tests::parses_all"), "src/a.rs tests::parses_all");
        assert_eq!(said("other"), "src/b.rs tests::other");
        assert_eq!(
            said("sums"),
            "2 are called sums, give the whole name and the `file`: tests::sums in src/a.rs; tests::sums in src/b.rs"
        );
        let near = said("parse_all");
        assert!(
            near.starts_with("no test, benchmark, program or task is called parse_all, the nearest are `parses_all`")
        );
        assert!(near.ends_with("; record {} lists all"), "{near}");
    }
}
