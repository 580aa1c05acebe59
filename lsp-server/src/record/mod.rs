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
pub(crate) mod run;
mod stacks;
pub mod store;
pub(crate) mod stream;
pub(crate) mod tools;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use profiler_core::attribute::{FileGroups, Place};
use profiler_core::cancel::CancelFlag;
use profiler_core::paths::{Workspace, WorkspaceOptions};
use profiler_core::profile::Profile;
use profiler_core::symbolize::{DebugFiles, Lines, line_info};
use profiler_ebpf::protocol::EventKind;

use build::Head;
use held::CommandLine;
use names::Names;
use run::{Observer, Outcome, Request, Target};
use stacks::Stacks;
use store::{About, Store, write_profile};
use tools::Preparation;

/// How long listing a workspace's files may take, to find out which of them have costs.
const LISTING_DEADLINE: Duration = Duration::from_secs(20);

/// What to do.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) request: Request,
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

/// Whoever is told how it goes.
pub(crate) trait Ui {
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
}

/// Records, names, writes.
pub(crate) fn perform(mut job: Job, stop: &AtomicBool, ui: &mut dyn Ui) -> Result<Done, String> {
    let preload = if job.request.events.contains(&EventKind::Alloc) {
        job.recordings.as_deref().and_then(|recordings| store::preload_library(recordings).ok())
    } else {
        None
    };
    let preparation = match &mut job.request.target {
        Target::Command(command) => prepare(command, preload.as_deref(), ui)?,
        Target::Processes(_) => Preparation::default(),
    };
    let program = match &job.request.target {
        Target::Command(command) => helper::program_name(&command.program),
        Target::Processes(pids) => pids.first().map(|&pid| process_name(pid)).unwrap_or_default(),
    };
    let store = job.recordings.as_deref().map(|recordings| Store::new(recordings, &job.workspace));
    let path = match (&job.output, &store) {
        (Some(output), _) => output.clone(),
        (None, Some(store)) => store
            .new_path(&program, SystemTime::now())
            .map_err(|error| format!("{}: it can't be written to: {error}", store.folder().display()))?,
        (None, None) => return Err("no folder to keep recordings in is known; name a file with -o FILE".to_owned()),
    };
    let files = DebugFiles { debug_dirs: job.debug_dirs.clone(), ..debug_files() };
    let mut watcher = Watcher {
        ui,
        names: Names::new(files),
        head: Head { events: job.request.events.clone(), program: program.clone(), how: String::new() },
        live: job.is_live.then(|| Live { path: path.clone(), last: Instant::now(), cost: Duration::ZERO }),
    };
    let outcome = run::record(&job.request, &preparation, stop, &mut watcher)?;
    let Watcher { ui, mut names, mut head, .. } = watcher;
    finish(&job, &preparation, outcome, &mut names, &mut head, Destination { path, store }, ui)
}

/// Where a recording goes.
struct Destination {
    path: PathBuf,
    store: Option<Store>,
}

fn finish(
    job: &Job,
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
    if stacks.samples == 0 {
        let why = nothing(&stacks, &head.events, status);
        let notes = stacks.notes.iter().map(|note| helper::clause(note));
        return Err(std::iter::once(why).chain(notes).collect::<Vec<_>>().join("; "));
    }
    names.look_up(&stacks, &CancelFlag::new());
    let profile = build::profile(&stacks, names, head).map_err(|error| format!("the recording: {error}"))?;
    write_profile(&profile, &path).map_err(|error| format!("{}: it can't be written: {error}", path.display()))?;
    ui.written(&path);
    let mut notes = Vec::new();
    notes.extend(cut_off);
    if was_ended {
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
        let about = about(job, &how);
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
    })
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

fn about(job: &Job, how: &str) -> About {
    let mut about = About { how: how.to_owned(), ..About::default() };
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

/// The usual places of debug info on this machine.
fn debug_files() -> DebugFiles {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(std::env::home_dir()?.join(".cache")));
    DebugFiles {
        debug_dirs: vec![PathBuf::from("/usr/lib/debug")],
        debuginfod_caches: cache.map(|cache| cache.join("debuginfod_client")).into_iter().collect(),
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
    names: Names,
    head: Head,
    live: Option<Live>,
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
        let Some(live) = &mut self.live else { return };
        let pause = Duration::from_millis(1500).max(live.cost * 8);
        if stacks.samples == 0 || live.last.elapsed() < pause {
            return;
        }
        let begin = Instant::now();
        self.names.look_up(stacks, &CancelFlag::new());
        if let Ok(profile) = build::profile(stacks, &self.names, &self.head)
            && write_profile(&profile, &live.path).is_ok()
        {
            self.ui.written(&live.path);
        }
        live.last = Instant::now();
        live.cost = begin.elapsed();
    }
}
