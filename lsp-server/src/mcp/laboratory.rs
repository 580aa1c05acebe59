//! What the tools that measure have in common: whether they may, one recording at a time, and what is told of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant, SystemTime};

use profiler_core::view::data::shown_within;
use serde::Serialize;

use super::Refusal;
use super::answer::Page;
use super::desk::Desk;
use super::policy::Data;
use super::running::{self, Found, Recorded};
use super::turn::Turn;
use crate::config::Task;
use crate::loader::RunPair;
use crate::record::Commission;
use crate::record::profile_test::OTHER_MACHINE;
use crate::record::store::{About, Ran, machine};
use crate::runnable::Order;
use crate::session::profile_test::not_trusted;
use crate::state::folder::Folder;
use crate::turns::{self, Side, Turns};
use crate::watched::{Done, Report};

/// Lines of the end of a test's output that are told, and characters of each.
const MAX_LINES: usize = 20;
const MAX_LINE: usize = 200;
/// Most characters of a command.
const MAX_COMMAND: usize = 400;
/// Most characters of a sentence of the recorder.
const MAX_SENTENCE: usize = 1000;

/// How long another recording is waited for, and how often it is looked at.
const PATIENCE: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Held while something is recorded.
static TURN: Mutex<()> = Mutex::new(());

/// What came of it.
#[derive(Debug)]
pub(super) enum Outcome {
    /// There is a recording.
    Recorded(Recording),
    /// The test failed, and left nothing: what is told of that.
    Failed(Page),
}

/// A recording that was made.
#[derive(Debug)]
pub(super) struct Recording {
    test: String,
    file: String,
    done: Done,
    about: About,
    report: Option<Report>,
    notes: Vec<String>,
}

/// A recording of a test that another one is to be measured against.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) path: PathBuf,
    pub(super) about: About,
    /// When it was written.
    pub(super) recorded: Option<SystemTime>,
}

/// What is told of it.
#[derive(Debug, Serialize)]
pub(super) struct Content {
    test: String,
    file: String,
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iterations_per_run: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded_ms: Option<u64>,
    /// eBPF, or the language's own profiler.
    #[serde(skip_serializing_if = "Option::is_none")]
    how: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    set_up_left_out: Option<String>,
    /// The end of the output of a test that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    output: Vec<String>,
}

/// Whether anything of a workspace may be run.
pub(super) fn check(desk: &Desk, root: &Path, folder: &Folder) -> Result<(), Refusal> {
    desk.check(root, Data::Local)?;
    not_trusted(folder).map_or(Ok(()), |why| Err(Refusal::Forbidden(why)))
}

/// Has the base's program and the new one take turns, so many pairs of them; the new one was recorded once.
pub(super) fn in_turns(
    desk: &Desk,
    found: &Found,
    mut turns: Turns,
    first: &Recording,
    (pairs, against): (u32, &Ran),
    turn: &Turn,
) -> Result<Vec<RunPair>, Refusal> {
    let name = found.name();
    turns.take(Side::New, first.done.path.clone()).map_err(|why| Refusal::Failed(format!("{name}: {why}")))?;
    for run in turns::order(pairs, Side::New).skip(1) {
        let (side, what) = (run.side, run.side.word());
        turn.tell(format!("pair {} of {pairs}: {what}", run.pair));
        let against = (side == Side::New).then_some(against);
        let order = turns.ordered(side).clone();
        let Outcome::Recorded(recording) = record(desk, found, order, against, turn)? else {
            return Err(Refusal::Failed(format!("{what}: it failed when it was run once more")));
        };
        if let Some(failure) = recording.failure() {
            return Err(Refusal::Failed(format!("{what}, run once more: {failure}")));
        }
        turns.take(side, recording.done.path).map_err(|why| Refusal::Failed(format!("{name}, {what}: {why}")))?;
    }
    Ok(turns.pairs())
}

/// Runs and records what is ordered.
pub(super) fn record(
    desk: &Desk,
    found: &Found,
    order: Order,
    against: Option<&Ran>,
    turn: &Turn,
) -> Result<Outcome, Refusal> {
    let _alone = alone(turn)?;
    let root = order.root.clone();
    let commission = Commission { order, against: against.cloned(), is_detailed: true };
    let Recorded { done, report, notes } = running::run(&commission, turn)?;
    // What it says is of this machine: whatever is told of it goes on without its user.
    let clean = |text: &String| shown_within(&desk.clean(&root, text), MAX_SENTENCE).into_owned();
    let report = report.map(|report| Report { output: desk.clean(&root, &report.output), ..report });
    let (test, file) = (found.name().to_owned(), found.file.clone());
    match done {
        Ok(done) => {
            let about = About::read(&done.path).unwrap_or_default();
            let (how, own) = (clean(&done.how), done.notes.iter().map(clean).collect());
            let notes = notes.iter().map(clean).collect();
            let done = Done { how, notes: own, ..done };
            Ok(Outcome::Recorded(Recording { test, file, done, about, report, notes }))
        }
        Err(why) => {
            let why = clean(&why);
            let Some(report) = report.filter(|report| report.failure.is_some()) else {
                return Err(Refusal::Failed(why));
            };
            let content = Content {
                test,
                file,
                command: String::new(),
                exit_code: report.code,
                samples: None,
                runs: Some(report.runs),
                iterations_per_run: None,
                recorded_ms: None,
                how: None,
                set_up_left_out: None,
                output: output(&report),
            };
            let summary = format!("{why}. Mend it, and call this again.");
            Ok(Outcome::Failed(Page::new(None, None, summary).recording(&content)?))
        }
    }
}

/// The right to record: two recordings at once would disturb each other. One that was cancelled takes a moment to
/// end.
fn alone(turn: &Turn) -> Result<MutexGuard<'static, ()>, Refusal> {
    let start = Instant::now();
    loop {
        match TURN.try_lock() {
            Ok(guard) => return Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if turn.cancel.is_cancelled() || start.elapsed() > PATIENCE => {
                return Err(Refusal::Failed("a recording is under way; call this again when it has ended".to_owned()));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK_EVERY),
        }
    }
}

/// What an output says of a failure, as data.
fn output(report: &Report) -> Vec<String> {
    report.telling_lines(MAX_LINES).into_iter().map(|line| shown_within(line, MAX_LINE).into_owned()).collect()
}

impl Recording {
    /// By which it can be asked about.
    pub(super) fn name(&self) -> String {
        format!("recording:{}", self.done.path.file_name().unwrap_or_default().to_string_lossy())
    }

    /// How the test failed, if it did.
    pub(super) fn failure(&self) -> Option<String> {
        self.report.as_ref()?.in_words(&self.test)
    }

    /// Why nobody knows how much was done.
    pub(super) fn unknown_work(&self, found: &Found) -> Option<&'static str> {
        self.about.work.unknown(found.offer.runnable.kind)
    }

    /// What else was said.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        self.notes.iter().chain(&self.done.notes).cloned()
    }

    fn set_up_left_out(&self) -> Option<String> {
        let tested = self.done.tested.as_ref()?;
        let all = self.done.samples;
        tested.under.as_ref().filter(|_| all > 0)?;
        let left_out = all.saturating_sub(tested.samples_under);
        Some(format!("{left_out} of {all} samples, {:.0}%", left_out as f64 * 100.0 / all as f64))
    }

    fn samples(&self) -> u64 {
        let tested = self.done.tested.as_ref().filter(|tested| tested.under.is_some());
        tested.map_or(self.done.samples, |tested| tested.samples_under)
    }

    fn runs(&self) -> u32 {
        self.done.tested.as_ref().map_or(1, |tested| tested.runs)
    }

    /// A sentence or two.
    pub(super) fn in_words(&self) -> String {
        let runs = if self.runs() == 1 { "1 run".to_owned() } else { format!("{} runs", self.runs()) };
        let begin = match self.failure() {
            Some(failure) => format!("{failure}. Until then: "),
            None => format!("{}: ", self.test),
        };
        let set_up = match self.set_up_left_out() {
            Some(left_out) => format!("set-up is left out ({left_out})"),
            None => "set-up is not told apart".to_owned(),
        };
        format!("{begin}{} samples in {runs}, {}; {set_up}.", self.samples(), self.done.how)
    }

    /// What is told of it.
    pub(super) fn content(&self, desk: &Desk) -> Content {
        let report = self.report.as_ref();
        let iterations = self.about.work.iterations;
        Content {
            test: self.test.clone(),
            file: self.file.clone(),
            command: shown_within(&desk.private.clean(&self.about.ran.command.join(" ")), MAX_COMMAND).into_owned(),
            exit_code: report.and_then(|report| report.code),
            samples: Some(self.samples()),
            runs: Some(self.runs()),
            iterations_per_run: (iterations > 0).then_some(iterations),
            recorded_ms: Some(self.done.elapsed_ms),
            how: Some(self.done.how.clone()),
            set_up_left_out: self.set_up_left_out(),
            output: report.filter(|report| report.failure.is_some()).map(output).unwrap_or_default(),
        }
    }
}

/// What a base is of, which is to be run again.
pub(super) fn again(base: &Base, root: &Path, tasks: &BTreeMap<String, Task>, turn: &Turn) -> Result<Found, Refusal> {
    let about = &base.about;
    if about.ran.machine != machine() {
        return Err(Refusal::Failed(OTHER_MACHINE.to_owned()));
    }
    // The file comes first, and either may have spaces in it.
    let is_file = |at: &usize| root.join(&about.test[..*at]).is_file();
    let ends = about.test.match_indices(' ').map(|(at, _)| at);
    for at in ends.filter(is_file) {
        let (file, name) = (&about.test[..at], &about.test[at + 1..]);
        let found = running::all(root, Some(file), tasks, &turn.cancel)?;
        if let Some(found) = found.into_iter().find(|found| found.name() == name) {
            return Ok(found);
        }
    }
    Err(Refusal::Failed(format!(
        "another command: the base is of {}, which is not there any more; `record` what there is now",
        shown_within(&about.test, MAX_LINE)
    )))
}

/// Whether every source of a program that is not built is what it was: the files that cost something by their
/// content, and all others of the language by their age.
pub(super) fn is_unchanged(base: &Base, root: &Path, found: &Found) -> bool {
    let Base { about, recorded, .. } = base;
    about.ran.program.is_none()
        && !about.files.is_empty()
        && about.files.iter().all(|text| {
            std::fs::read(root.join(&text.path)).is_ok_and(|bytes| crate::current::digest(&bytes) == text.hash)
        })
        && !recorded.is_some_and(|recorded| running::is_newer(root, &found.file, recorded))
}
