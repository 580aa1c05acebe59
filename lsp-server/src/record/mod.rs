//! Recording programs on this machine: the parent's side.
//!
//! ```text
//! tools ─▶ run ─┬─▶ held: the command, as the user        ┌─▶ names ─▶ build ─▶ store
//!               └─▶ helper: the recorder ──messages──▶ stacks
//! ```
//!
//! The recorder is another process, sees addresses and writes nothing; here are names, files and
//! everything people read. A recording ends with its command, with its time or when it is stopped,
//! and whatever ends it, what was taken is kept.
//!
//! What is not here: how stacks are taken (`profiler-ebpf`), and how progress is shown
//! (`cli/record.rs`, the server).

mod build;
pub(crate) mod held;
pub(crate) mod helper;
mod jit;
mod names;
pub(crate) mod profile_test;
pub(crate) mod repeat;
pub(crate) mod run;
mod stacks;
pub mod store;
pub(crate) mod stream;
pub(crate) mod tools;
mod workshop;

use std::ffi::OsString;
use std::fs;
use std::io::{PipeReader, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use profiler_core::attribute::{FileGroups, Filter, Place};
use profiler_core::cancel::CancelFlag;
use profiler_core::paths::{Workspace, WorkspaceOptions};
use profiler_core::profile::{LocId, Profile};
use profiler_core::symbolize::{DebugFiles, Lines, line_info};
use profiler_ebpf::protocol::EventKind;
use serde::{Deserialize, Serialize};

use build::Head;
use held::CommandLine;
use names::Names;
use run::{Observer, Outcome, Request, Streams, Target};
use stacks::Stacks;
use store::{About, Ran, Store, write_profile};
use tools::Preparation;

use crate::runnable::{InTurn, Iterations, Kind, Order, Work};
use crate::watched::Report;

/// How long listing a workspace's files may take, to find out which of them have costs.
const LISTING_DEADLINE: Duration = Duration::from_secs(20);

/// What to do.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) request: Request,
    /// What is special where a test is recorded.
    pub(crate) test: Option<Test>,
    /// The folder that the recording belongs to.
    pub(crate) workspace: PathBuf,
    /// The folder of all recordings.
    pub(crate) recordings: Option<PathBuf>,
    /// Write the profile here instead of into the folder of recordings.
    pub(crate) output: Option<PathBuf>,
    /// Write what there is so far, again and again, for whoever watches the file.
    pub(crate) is_live: bool,
    /// Where debug info is looked for besides the usual places.
    pub(crate) debug_dirs: Vec<PathBuf>,
}

/// A recording of a test, which is run again and again by [`repeat`].
#[derive(Debug)]
pub(crate) struct Test {
    /// By what recordings of it are told.
    pub(crate) key: String,
    /// What it is called.
    pub(crate) name: String,
    /// What is left out.
    pub(crate) preparation: Preparation,
    /// What keeps the samples that count: the first that keeps any.
    pub(crate) under: Vec<Filter>,
    /// How many of those are enough.
    pub(crate) enough: u64,
    /// Goes when there are enough: what is repeated ends with the end of its input.
    pub(crate) input: Option<OwnedFd>,
    /// Where it tells how it went.
    pub(crate) report: Option<PipeReader>,
    /// What it is.
    pub(crate) kind: Kind,
    /// Iterations of a benchmark.
    pub(crate) iterations: Iterations,
    /// What is run.
    pub(crate) ran: Ran,
    /// Of a run of several in turns.
    pub(crate) turn: Option<InTurn>,
}

impl Test {
    fn work(&self, tested: &Tested) -> Work {
        Work { runs: tested.report.runs, iterations: self.iterations.count() }
    }
}

/// What the child that records a test is given on its input, as one line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Commission {
    /// What to profile.
    #[serde(flatten)]
    pub(crate) order: Order,
    /// What a recording ran that this one is to be measured against.
    #[serde(default)]
    pub(crate) against: Option<Ran>,
    /// Tell how the test ended as well.
    #[serde(default)]
    pub(crate) is_detailed: bool,
}

/// What came of a test.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tested {
    /// How its runs went.
    pub(crate) report: Report,
    /// The filter that keeps what counts, if anything is left by it.
    pub(crate) under: Option<Filter>,
    /// How many samples that are.
    pub(crate) samples_under: u64,
}

/// Whoever is told how it goes.
pub(crate) trait Ui {
    /// What keeps the samples that count; told when the first of them is there.
    fn under(&mut self, _filter: &Filter) {}
    /// Something to know before it begins, or while.
    fn note(&mut self, sentence: &str);
    /// The program is being built.
    fn building(&mut self, command: &str);
    /// It records, in this way.
    fn begun(&mut self, how: &str);
    /// So long and so many samples until now.
    fn progress(&mut self, elapsed: Duration, samples: u64);
    /// The file holds what there is so far.
    fn written(&mut self, path: &Path);
    /// A test has come to its end, so or so.
    fn ended(&mut self, _report: &Report) {}
}

/// A finished recording.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) path: PathBuf,
    pub(crate) profile: Profile,
    pub(crate) how: String,
    /// What else there is to know, one sentence each.
    pub(crate) notes: Vec<String>,
    pub(crate) samples: u64,
    pub(crate) elapsed: Duration,
    /// How the command ended by itself.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) program: String,
    /// What is told of a test.
    pub(crate) tested: Option<Tested>,
}

/// Records, names, writes.
pub(crate) fn perform(mut job: Job, stop: &AtomicBool, ui: &mut dyn Ui) -> Result<Done, String> {
    let preload = if job.request.events.contains(&EventKind::Alloc) {
        job.recordings.as_deref().and_then(|recordings| store::preload_library(recordings).ok())
    } else {
        None
    };
    let preparation = match (&job.test, &mut job.request.target) {
        (Some(test), _) => test.preparation.clone(),
        (None, Target::Command(command)) => prepare(command, preload.as_deref(), ui)?,
        (None, Target::Processes(_)) => Preparation::default(),
    };
    let program = match (&job.test, &job.request.target) {
        (Some(test), _) => test.name.clone(),
        (None, Target::Command(command)) => helper::program_name(&command.program),
        (None, Target::Processes(pids)) => pids.first().map(|&pid| process_name(pid)).unwrap_or_default(),
    };
    let file = if job.test.is_some() { profile_test::file_name(&program) } else { program.clone() };
    let store = job.recordings.as_deref().map(|recordings| Store::new(recordings, &job.workspace));
    let path = match (&job.output, &store) {
        (Some(output), _) => output.clone(),
        (None, Some(store)) => store
            .new_path(&file, SystemTime::now())
            .map_err(|error| format!("{}: it can't be written to: {error}", store.folder().display()))?,
        (None, None) => return Err("no folder to keep recordings in is known; name a file with -o FILE".to_owned()),
    };
    let mut files = debug_files();
    files.debug_dirs.splice(..0, job.debug_dirs.iter().cloned());
    let mut watcher = Watcher {
        ui,
        counting: job.test.as_mut().map(|test| Counting {
            under: test.under.clone(),
            enough: test.enough,
            input: test.input.take(),
            is_told: false,
            part: None,
        }),
        names: Names::new(files),
        head: Head { events: job.request.events.clone(), program: program.clone(), how: String::new(), work: None },
        live: job.is_live.then(|| Live { path: path.clone(), last: Instant::now(), cost: Duration::ZERO }),
    };
    let outcome = run::record(&job.request, &preparation, stop, &mut watcher)?;
    let Watcher { ui, mut names, mut head, .. } = watcher;
    // Its end of the pipe, so that what is told there has an end.
    job.request.streams = Streams::Nothing;
    finish(&mut job, &preparation, outcome, &mut names, &mut head, Destination { path, store }, ui)
}

/// Where a recording goes.
struct Destination {
    path: PathBuf,
    store: Option<Store>,
}

fn finish(
    job: &mut Job,
    preparation: &Preparation,
    outcome: Outcome,
    names: &mut Names,
    head: &mut Head,
    place: Destination,
    ui: &mut dyn Ui,
) -> Result<Done, String> {
    let Destination { path, store } = place;
    let Outcome { mut stacks, how, events, status, was_ended, cut_off } = outcome;
    head.events = events;
    head.how.clone_from(&how);
    stacks.look_for_maps();
    if preparation.removes_maps {
        let folder = match &job.request.target {
            Target::Command(command) => command.folder.clone(),
            Target::Processes(_) => None,
        };
        stacks.remove_maps(&folder.unwrap_or_else(|| PathBuf::from(".")));
    }
    let mut tested = job.test.as_mut().map(Test::tell);
    if let Some(tested) = &tested {
        ui.ended(&tested.report);
    }
    if stacks.samples == 0 {
        let failed = tested.as_ref().and_then(|tested| tested.report.why_nothing(&head.program));
        if let Some(failed) = failed {
            return Err(failed);
        }
        let why = nothing(&stacks, &head.events, status);
        let notes = stacks.notes.iter().map(|note| helper::clause(note));
        return Err(std::iter::once(why).chain(notes).collect::<Vec<_>>().join("; "));
    }
    names.look_up(&stacks, &CancelFlag::new());
    head.work = job
        .test
        .as_ref()
        .zip(tested.as_ref())
        .and_then(|(test, tested)| test.work(tested).of(&test.key, test.kind, test.turn.is_some()));
    let profile = build::profile(&stacks, names, head).map_err(|error| format!("the recording: {error}"))?;
    if let (Some(tested), Some(test)) = (&mut tested, &job.test) {
        tested.count(&profile, &test.under, ui);
    }
    write_profile(&profile, &path).map_err(|error| format!("{}: it can't be written: {error}", path.display()))?;
    ui.written(&path);
    let mut notes = Vec::new();
    notes.extend(cut_off);
    if was_ended && tested.is_none() {
        notes.push(format!("{} was ended with the recording", head.program));
    }
    notes.extend(stacks.notes.iter().cloned());
    notes.extend(stacks.lost.iter().map(|(why, count)| stacks::lost_in_words(*count, why)));
    if stacks.complete < stacks.samples {
        let percent = profiler_core::measure::Share::of(
            i64::try_from(stacks.samples - stacks.complete).unwrap_or(i64::MAX),
            i64::try_from(stacks.samples).unwrap_or(i64::MAX),
        );
        if let Some(percent) = percent.filter(|share| share.is_at_least(1, 100)) {
            let why = stacks.ends.iter().max_by_key(|(_, count)| **count).map_or("an unknown reason", |(why, _)| why);
            notes.push(format!("{percent} of the stacks end before their root; mostly: {why}"));
        }
    }
    notes.extend(without_lines(job, names, &stacks));
    if let (Some(store), None) = (&store, &job.output) {
        let about = about(job, &how, tested.as_ref());
        if let Err(error) = store.write_about(&path, about, &touched_files(&profile, &job.workspace)) {
            notes.push(format!("what belongs to the recording could not be kept: {error}"));
        }
    }
    Ok(Done {
        samples: stacks.samples,
        elapsed: Duration::from_nanos(stacks.duration_ns()),
        status: status.filter(|_| !was_ended),
        program: head.program.clone(),
        path,
        profile,
        how,
        notes,
        tested,
    })
}

impl Test {
    /// What was told of its runs.
    fn tell(&mut self) -> Tested {
        let mut told = String::new();
        if let Some(report) = self.report.take() {
            // It has ended, so this is short and comes to an end.
            let _ = report.take(1 << 20).read_to_string(&mut told);
        }
        Tested { report: serde_json::from_str(&told).unwrap_or_default(), ..Tested::default() }
    }
}

impl Tested {
    /// Counts the samples that the first filter keeps that keeps any.
    fn count(&mut self, profile: &Profile, under: &[Filter], ui: &mut dyn Ui) {
        if let Some((filter, samples)) = first_under(profile, under) {
            self.samples_under = samples;
            self.under = Some(filter.clone());
            ui.under(filter);
        }
    }
}

/// The first filter that keeps samples, and how many.
fn first_under<'f>(profile: &Profile, under: &'f [Filter]) -> Option<(&'f Filter, u64)> {
    under.iter().map(|filter| (filter, samples_under(profile, filter))).find(|&(_, samples)| samples > 0)
}

/// How many samples have a function on their stack that a filter about functions means.
fn samples_under(profile: &Profile, filter: &Filter) -> u64 {
    let means = |name| filter.matches(profile.text(name));
    let is_meant: Vec<bool> = profile.functions().iter().map(|function| means(function.name)).collect();
    let locations = profile.locations();
    let is_under = |&location: &LocId| {
        locations.lines(location).iter().any(|line| is_meant.get(line.function.index()) == Some(&true))
    };
    let samples = profile.samples();
    let counts = profile.sample_count_type().map(|column| samples.values(column));
    let under = (0..samples.len()).filter(|&sample| samples.stack(sample).iter().any(is_under));
    under.map(|sample| counts.map_or(1, |counts| counts[sample].unsigned_abs())).sum()
}

/// Why there is not a single sample.
fn nothing(stacks: &Stacks, events: &[EventKind], status: Option<ExitStatus>) -> String {
    let lost: u64 = stacks.lost.values().sum();
    let elapsed = Duration::from_nanos(stacks.duration_ns());
    match status {
        _ if lost > 0 => format!("no sample is left: {lost} were lost"),
        Some(status) if !status.success() => {
            format!("the program ended at once ({}), before it used any time", in_words(status))
        }
        _ if events.contains(&EventKind::Alloc) => "no allocation was seen: those of jemalloc, mimalloc, Go and statically \
                                                    linked programs can't be; their own heap profiles can be opened instead"
            .to_owned(),
        _ if events.contains(&EventKind::Blocked) => "nothing waited for longer than a millisecond".to_owned(),
        Some(_) => format!(
            "the program used no time that could be sampled in its {:.1} s; a higher --frequency, or more work, would help",
            elapsed.as_secs_f64()
        ),
        None => {
            "the processes used no time while they were recorded; --event off-cpu tells what they wait for".to_owned()
        }
    }
}

/// How a program ended.
pub(crate) fn in_words(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "unknown".to_owned(),
    }
}

fn about(job: &Job, how: &str, tested: Option<&Tested>) -> About {
    let mut about = About { how: how.to_owned(), ..About::default() };
    if let (Some(test), Some(tested)) = (&job.test, tested) {
        about.test.clone_from(&test.key);
        about.work = test.work(tested);
        about.under = tested.under.as_ref().map(ToString::to_string);
        about.ran = test.ran.clone();
        about.is_in(test.turn.as_ref());
    }
    match &job.request.target {
        Target::Command(command) => {
            let words = std::iter::once(&command.program).chain(&command.arguments);
            about.command = words.map(|word| word.to_string_lossy().into_owned()).collect();
        }
        Target::Processes(pids) => about.processes.clone_from(pids),
    }
    about
}

/// Makes the command ready: builds what a build tool would build while we measure, says what is
/// missing for lines.
fn prepare(command: &mut CommandLine, preload: Option<&Path>, ui: &mut dyn Ui) -> Result<Preparation, String> {
    let preparation = tools::prepare(command);
    preparation.notes.iter().for_each(|note| ui.note(note));
    if let Some(build) = &preparation.build {
        let words: Vec<String> = build.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        ui.building(&words.join(" "));
        let mut builder = Command::new(&build[0]);
        builder.args(&build[1..]).stdin(Stdio::null());
        // What it prints is for people, and standard output may be for programs.
        builder.stdout(Stdio::null());
        if let Some(folder) = &command.folder {
            builder.current_dir(folder);
        }
        let status = builder.status().map_err(|error| format!("{}: {error}", words[0]))?;
        if !status.success() {
            return Err(format!("`{}` failed, so there is nothing to record", words.join(" ")));
        }
    }
    command.environment.extend(preparation.environment.iter().cloned());
    if let Some(library) = preload {
        // In front of what the user has there already.
        let mut all = library.as_os_str().to_owned();
        if let Some(other) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            all.push(":");
            all.push(other);
        }
        command.environment.push(("LD_PRELOAD".into(), all));
    }
    let given = std::mem::take(&mut command.arguments);
    command.arguments = preparation.flags.iter().cloned().chain(given).collect();
    if preparation.build.is_none()
        && let Some(path) = find_program(&command.program, command.folder.as_deref())
        && let Some(note) = line_advice(&path)
    {
        ui.note(&note);
    }
    Ok(preparation)
}

/// Where a command's program is.
fn find_program(program: &OsString, folder: Option<&Path>) -> Option<PathBuf> {
    let given = Path::new(program);
    if given.components().count() > 1 {
        return Some(folder.map_or_else(|| given.to_owned(), |folder| folder.join(given)))
            .filter(|path| path.is_file());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(given)).find(|path| path.is_file())
}

/// What to change so that a program has lines; `None` when it has them, or is none of the user's.
fn line_advice(program: &Path) -> Option<String> {
    if program.starts_with("/usr") || program.starts_with("/bin") {
        return None;
    }
    let info = line_info(program, &mut debug_files()).ok()?;
    info.advice().map(|advice| format!("{}: {advice}", program.display()))
}

/// The advice for programs of the workspace that turned out to have no lines.
fn without_lines(job: &Job, names: &mut Names, stacks: &Stacks) -> Option<String> {
    let workspace = job.workspace.canonicalize().ok()?;
    let reports = names.reports(stacks);
    reports
        .iter()
        .filter(|report| report.path.starts_with(&workspace) && report.lines == Lines::NamesOnly)
        .find_map(|report| line_advice(&report.path))
}

/// The usual places of debug info on this machine, also for what runs in a container.
fn debug_files() -> DebugFiles {
    DebugFiles {
        debug_dirs: vec![PathBuf::from("/usr/lib/debug")],
        debuginfod_caches: crate::symbols::debuginfod_caches(),
        ..DebugFiles::default()
    }
}

/// The workspace's files that the profile has costs for.
fn touched_files(profile: &Profile, workspace: &Path) -> Vec<PathBuf> {
    let stop = CancelFlag::new();
    let timer = stop.clone();
    // Nobody waits for the thread; it ends with the program.
    std::thread::spawn(move || {
        std::thread::sleep(LISTING_DEADLINE);
        timer.cancel();
    });
    let workspace = Workspace::open(&[workspace.to_owned()], &WorkspaceOptions::default(), &stop);
    let Ok(groups) = FileGroups::in_workspace(profile, &workspace, &CancelFlag::new()) else { return Vec::new() };
    let placed = groups.all().iter().filter_map(|group| group.placement.as_ref());
    placed
        .filter(|placement| matches!(placement.place, Place::Workspace | Place::Generated))
        .filter_map(|placement| placement.path.clone())
        .collect()
}

/// The name of a process.
pub(crate) fn process_name(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

/// Watches a recording for the user, and writes what there is so far.
struct Watcher<'a> {
    ui: &'a mut dyn Ui,
    counting: Option<Counting>,
    names: Names,
    head: Head,
    live: Option<Live>,
}

/// Counts the samples of a test until there are enough.
struct Counting {
    under: Vec<Filter>,
    enough: u64,
    input: Option<OwnedFd>,
    /// Whether it was told that there are samples.
    is_told: bool,
    /// How many of all samples count, as of the last look: looking anew takes the longer, the busier the machine.
    part: Option<f64>,
}

/// So many times the samples that are enough, and none of the test itself: there will be none.
const IN_VAIN: u64 = 5;

impl Counting {
    fn count(&mut self, profile: &Profile, all: u64, ui: &mut dyn Ui) {
        let first = first_under(profile, &self.under);
        if let Some((filter, _)) = first.filter(|_| !self.is_told) {
            self.is_told = true;
            ui.under(filter);
        }
        self.part = first.filter(|_| all > 0).map(|(_, samples)| samples as f64 / all as f64);
        let is_enough = match first {
            Some((_, samples)) => samples >= self.enough,
            None if self.under.is_empty() => all >= self.enough,
            None => all >= self.enough * IN_VAIN,
        };
        if is_enough {
            self.input = None;
        }
    }

    /// Ends it when there are enough by the part that counted so far.
    fn estimate(&mut self, all: u64) {
        if self.part.is_some_and(|part| part * all as f64 >= self.enough as f64) {
            self.input = None;
        }
    }
}

/// A file that is written again and again.
struct Live {
    path: PathBuf,
    last: Instant,
    /// How long the last time took: what grows must not take all of the time.
    cost: Duration,
}

impl Observer for Watcher<'_> {
    fn begun(&mut self, how: &str, events: &[EventKind]) {
        how.clone_into(&mut self.head.how);
        self.head.events = events.to_vec();
        self.ui.begun(how);
    }

    fn progress(&mut self, elapsed: Duration, stacks: &Stacks) {
        self.ui.progress(elapsed, stacks.samples);
        if let Some(counting) = &mut self.counting {
            counting.estimate(stacks.samples);
        }
        let Some(live) = &mut self.live else { return };
        let shortest = if self.counting.is_some() { 500 } else { 1500 };
        let pause = Duration::from_millis(shortest).max(live.cost * 8);
        if stacks.samples == 0 || live.last.elapsed() < pause {
            return;
        }
        let begin = Instant::now();
        self.names.look_up(stacks, &CancelFlag::new());
        if let Ok(profile) = build::profile(stacks, &self.names, &self.head) {
            if let Some(counting) = &mut self.counting {
                counting.count(&profile, stacks.samples, self.ui);
            }
            if write_profile(&profile, &live.path).is_ok() {
                self.ui.written(&live.path);
            }
        }
        live.last = Instant::now();
        live.cost = begin.elapsed();
    }
}
