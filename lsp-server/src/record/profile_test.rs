//! Profiling a test: made ready without recording, then run again and again in one recording, until there
//! are enough samples of the test itself.
//!
//! ```text
//! Order ─▶ plan: builds, finds the program ─┬─▶ repeat, recorded as any command ─┬─▶ profile, store
//!                                           └─▶ the language's own profiler ─────┘
//! ```
//!
//! The work is what is held equal between two recordings of a test: the first one runs as often as it takes,
//! the next ones as often as that. So the difference of two costs is that of the same work.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use profiler_core::attribute::Filter;
use profiler_core::cancel::CancelFlag;
use profiler_core::decode::{Limits, decode};
use profiler_core::profile::Profile;
use profiler_ebpf::protocol::{EventKind, Method};
use serde_json::Value;

use super::held::{CommandLine, THIS_PROGRAM};
use super::helper::Elevation;
use super::repeat::{self, Tail};
use super::run::{Request, Streams, Target};
use super::store::{About, Ran, Store, hash, machine, write_profile};
use super::tools::Preparation;
use super::workshop::{CANCELLED, Workshop};
use super::{Done, Job, Test, Tested, Ui, first_under, in_words, perform, touched_files};
use crate::runnable::{Order, OwnProfiler, Plan, Words, Work, earlier_plan, language_of, task_plan};
use crate::watched::Report;

/// The name of the hidden subcommand that [`repeat::run`] is.
const REPEAT: &str = "__repeat";

/// Samples that are enough.
const ENOUGH: u64 = 1000;

/// How long a recording may take.
const LONGEST: Duration = Duration::from_secs(30);

/// Samples per second: a test is short.
const FREQUENCY: u32 = 999;

/// Files of a language's own profiler are smaller.
const MAX_FILE: u64 = 256 << 20;

/// Languages whose programs hold what was written, so that the program is what was measured.
const BUILT: &[&str] = &["C", "Go", "Rust"];

/// Why what was measured elsewhere is no base.
pub(crate) const OTHER_MACHINE: &str =
    "another machine: the base was recorded on one with another name or other processors; record a new base here";

/// Programs that are no part of a test: the one that repeats it, and the shells of version managers.
const LEFT_OUT: &[&str] = &["perflens"];

/// Where things are kept.
#[derive(Clone, Debug)]
pub(crate) struct Folders {
    pub(crate) recordings: Option<PathBuf>,
    pub(crate) workspace: PathBuf,
}

/// Profiles what was ordered. `against` is what a recording ran that this one is to be measured against:
/// anything but the same command of a program that was built anew is refused.
pub(crate) fn profile(
    order: &Order,
    against: Option<&Ran>,
    folders: &Folders,
    stop: &AtomicBool,
    ui: &mut dyn Ui,
) -> Result<Done, String> {
    let scratch = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
    let earlier = order.turn.as_ref().and_then(|turn| turn.earlier.as_ref());
    let plan = {
        let mut workshop = Workshop { ui, stop, scratch: scratch.path() };
        match (earlier, &order.task, language_of(&order.file)) {
            (Some(earlier), ..) => earlier_plan(order, earlier, scratch.path()),
            (None, Some(task), _) => task_plan(order, task, &mut workshop)?,
            (None, None, Some(language)) => (language.plan)(order, &mut workshop)?,
            (None, None, None) => return Err(format!("{}: nothing of it can be profiled", order.file.display())),
        }
    };
    if stop.load(Ordering::Relaxed) {
        return Err(CANCELLED.to_owned());
    }
    let ran = ran(&plan);
    if let Some(why) = against.and_then(|base| ran.differs(base)) {
        return Err(why);
    }
    let subject = Subject { order, folders, plan: &plan, ran: &ran };
    let done = match &plan.own {
        Some(own) if own.because.is_some() => with_own(&subject, own, own.because, stop, ui),
        own => match (recorded(&subject, stop, ui), own) {
            (Err(Refused::Recorder(why)), Some(own)) if !stop.load(Ordering::Relaxed) => {
                ui.note(&format!("it is profiled with {} instead: {why}", own.name));
                with_own(&subject, own, Some(&why), stop, ui)
            }
            (Err(Refused::Recorder(why) | Refused::Program(why)), _) => Err(why),
            (Ok(done), _) => Ok(done),
        },
    }?;
    let output = done.tested.as_ref().map(|tested| tested.report.output.as_str()).unwrap_or_default();
    if plan.ran_nothing.iter().any(|words| output.contains(words)) {
        return Err(format!("{} was not found by its own runner, which ran nothing", order.runnable.name));
    }
    if earlier.is_none() {
        keep_program(order, folders, &plan, scratch.path(), &done);
    }
    Ok(done)
}

/// Keeps what was built, so that it can run again when it has been built anew. Without it there is a recording all
/// the same.
fn keep_program(order: &Order, folders: &Folders, plan: &Plan, scratch: &Path, done: &Done) {
    let is_built =
        order.task.is_some() || language_of(&order.file).is_some_and(|language| BUILT.contains(&language.name));
    if let Some(recordings) = folders.recordings.as_ref().filter(|_| is_built) {
        let store = Store::new(recordings, &folders.workspace);
        if let Err(error) = store.keep_program(&done.path, &plan.command, scratch) {
            tracing::debug!("{}: {error}", plan.command.in_words());
        }
    }
}

/// What is recorded.
#[derive(Clone, Copy)]
struct Subject<'a> {
    order: &'a Order,
    folders: &'a Folders,
    plan: &'a Plan,
    ran: &'a Ran,
}

/// What a plan runs.
fn ran(plan: &Plan) -> Ran {
    let Words { program, arguments, folder, .. } = &plan.command;
    let name = Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned();
    let arguments = arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
    Ran {
        program: plan.is_built.then(|| hash(&folder.join(program)).ok()).flatten(),
        command: std::iter::once(unhashed(&name).to_owned()).chain(arguments).collect(),
        machine: machine(),
    }
}

/// The name of a program without what Cargo puts behind it, which says nothing of what it is.
fn unhashed(name: &str) -> &str {
    let is_hash = |end: &&str| end.len() == 16 && end.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.rsplit_once('-').filter(|(_, end)| is_hash(end)).map_or(name, |(name, _)| name)
}

impl Ran {
    /// Why a recording of this can't be measured against one of that.
    fn differs(&self, base: &Self) -> Option<String> {
        if self.machine != base.machine {
            return Some(OTHER_MACHINE.to_owned());
        }
        if self.command != base.command {
            return Some(format!(
                "another command: the base ran `{}`, this would be `{}`; record a new base",
                base.command.join(" "),
                self.command.join(" ")
            ));
        }
        (self.program.is_some() && self.program == base.program).then(|| {
            "not rebuilt: the program is byte for byte the one that the base ran; change its source, save it, and \
             verify again"
                .to_owned()
        })
    }
}

/// Why there is no recording.
enum Refused {
    /// Nothing could be recorded, whatever it is.
    Recorder(String),
    /// The program is at fault.
    Program(String),
}

/// With the recorder.
fn recorded(subject: &Subject<'_>, stop: &AtomicBool, ui: &mut dyn Ui) -> Result<Done, Refused> {
    let Subject { order, folders, plan, ran } = *subject;
    let fail = |error: std::io::Error| Refused::Recorder(format!("a pipe: {error}"));
    let (input, keeps_going) = std::io::pipe().map_err(fail)?;
    let (report, tells) = std::io::pipe().map_err(fail)?;
    let runs = if plan.repeats { order.work.map(|work| work.runs).filter(|&runs| runs > 0) } else { Some(1) };
    let mut arguments: Vec<OsString> = vec![REPEAT.into()];
    arguments.extend(runs.map(|runs| OsString::from(format!("--runs={runs}"))));
    arguments.push("--".into());
    arguments.push(plan.command.program.clone());
    arguments.extend(plan.command.arguments.iter().cloned());
    let job = Job {
        request: Request {
            target: Target::Command(CommandLine {
                program: THIS_PROGRAM.into(),
                arguments,
                environment: plan.command.environment.clone(),
                folder: Some(plan.command.folder.clone()),
            }),
            duration: Some(LONGEST),
            frequency: FREQUENCY,
            events: vec![EventKind::Cpu],
            elevation: Elevation::None,
            method: plan.needs_bpf.then_some(Method::BpfTables),
            any_user: false,
            streams: Streams::Given { input: Arc::new(input.into()), output: Arc::new(tells.into()) },
        },
        test: Some(Test {
            key: order.key(),
            name: order.runnable.name.clone(),
            preparation: Preparation {
                left_out: left_out(&plan.command),
                leaves_out_first: true,
                ..Preparation::default()
            },
            under: plan.under.clone(),
            enough: ENOUGH,
            input: Some(keeps_going.into()),
            report: Some(report),
            kind: order.runnable.kind,
            iterations: plan.iterations.clone(),
            ran: ran.clone(),
            turn: order.turn.clone(),
        }),
        workspace: folders.workspace.clone(),
        recordings: folders.recordings.clone(),
        output: None,
        is_live: true,
        debug_dirs: Vec::new(),
    };
    let mut watching = Begun { ui, has_begun: false };
    let done = perform(job, stop, &mut watching);
    let has_begun = watching.has_begun;
    done.map_err(|why| if has_begun { Refused::Program(why) } else { Refused::Recorder(why) })
}

/// Who profiles perflens itself wants to see it.
fn left_out(command: &Words) -> &'static [&'static str] {
    let name = Path::new(&command.program).file_name();
    if name.is_some_and(|name| LEFT_OUT.iter().any(|own| name == *own)) { &[] } else { LEFT_OUT }
}

/// Notices whether a recording has begun.
struct Begun<'a> {
    ui: &'a mut dyn Ui,
    has_begun: bool,
}

impl Ui for Begun<'_> {
    fn under(&mut self, filter: &Filter) {
        self.ui.under(filter);
    }

    fn note(&mut self, sentence: &str) {
        self.ui.note(sentence);
    }

    fn building(&mut self, command: &str) {
        self.ui.building(command);
    }

    fn begun(&mut self, how: &str) {
        self.has_begun = true;
        self.ui.begun(how);
    }

    fn progress(&mut self, elapsed: Duration, samples: u64) {
        self.ui.progress(elapsed, samples);
    }

    fn written(&mut self, path: &Path) {
        self.ui.written(path);
    }

    fn ended(&mut self, report: &Report) {
        self.ui.ended(report);
    }
}

/// With the language's own profiler, one run after the other.
fn with_own(
    subject: &Subject<'_>,
    own: &OwnProfiler,
    because: Option<&str>,
    stop: &AtomicBool,
    ui: &mut dyn Ui,
) -> Result<Done, String> {
    let Subject { order, folders, plan, ran } = *subject;
    let how = match because {
        Some(because) => format!("with {}, as {because}", own.name),
        None => format!("with {}", own.name),
    };
    ui.begun(&how);
    let start = Instant::now();
    let runs = if plan.repeats && own.has_samples {
        order.work.map(|work| work.runs).filter(|&runs| runs > 0)
    } else {
        Some(1)
    };
    let under: &[Filter] = if own.has_samples { &plan.under } else { &[] };
    let mut report = Report::default();
    let mut parts = Vec::new();
    let (mut all, mut counted) = (0, 0);
    loop {
        let folder = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
        let command = (own.command)(&plan.command, folder.path());
        let Some(ended) = one_run(&command, start, stop, &mut report)? else { break };
        for profile in read_profiles(folder.path(), own)? {
            all += count(&profile);
            counted += match first_under(&profile, under) {
                Some((_, samples)) => samples,
                None if under.is_empty() => count(&profile),
                None => 0,
            };
            parts.push(profile);
        }
        ui.progress(start.elapsed(), all);
        let is_last = runs.map_or_else(|| counted >= ENOUGH, |runs| report.runs >= runs);
        if !ended || is_last || start.elapsed() >= LONGEST {
            break;
        }
    }
    ui.ended(&report);
    let name = &order.runnable.name;
    let period = mean_period(&parts);
    let merged = Profile::merge(parts).map_err(|error| format!("the runs of {name}: {error}"))?;
    let Some(profile) = merged.filter(|profile| !profile.samples().is_empty()) else {
        let cancelled = || stop.load(Ordering::Relaxed).then(|| CANCELLED.to_owned());
        let too_long = || {
            let seconds = LONGEST.as_secs();
            (report.runs == 0 && start.elapsed() > LONGEST).then(|| {
                format!(
                    "{name} ran for more than {seconds} s, and {} writes only at the end; give it less work",
                    own.name
                )
            })
        };
        let nothing = || format!("{} left no profile of {name}", own.name);
        return Err(report.why_nothing(name).or_else(cancelled).or_else(too_long).unwrap_or_else(nothing));
    };
    let mut tested = Tested { report, ..Tested::default() };
    tested.count(&profile, under, ui);
    let Some(recordings) = &folders.recordings else {
        return Err("no folder to keep recordings in is known; set HOME".to_owned());
    };
    let store = Store::new(recordings, &folders.workspace);
    let work = Work { runs: tested.report.runs, iterations: plan.iterations.count() };
    let profile = match work.of(&order.key(), order.runnable.kind, order.turn.is_some()) {
        Some(work) => profile.with_comment(work.to_string()),
        None => profile,
    };
    let profile = match period {
        Some((nanoseconds, clock)) => profile.with_period(nanoseconds, &clock),
        None => profile,
    };
    let fail = |error: std::io::Error| format!("{}: it can't be written to: {error}", store.folder().display());
    let path = store.new_path(&file_name(name), SystemTime::now()).map_err(fail)?;
    write_profile(&profile, &path).map_err(fail)?;
    ui.written(&path);
    let words = std::iter::once(&plan.command.program).chain(&plan.command.arguments);
    let mut about = About {
        command: words.map(|word| word.to_string_lossy().into_owned()).collect(),
        test: order.key(),
        work,
        under: tested.under.as_ref().map(ToString::to_string),
        ran: ran.clone(),
        how: how.clone(),
        ..About::default()
    };
    about.is_in(order.turn.as_ref());
    store.write_about(&path, about, &touched_files(&profile, &folders.workspace)).map_err(fail)?;
    Ok(Done {
        path,
        how,
        notes: Vec::new(),
        samples: all,
        elapsed: start.elapsed(),
        status: None,
        program: name.clone(),
        profile,
        tested: Some(tested),
    })
}

/// Runs it once; whether it did what it should. `None` when it did not come to its end.
fn one_run(words: &Words, start: Instant, stop: &AtomicBool, report: &mut Report) -> Result<Option<bool>, String> {
    let fail = |error: std::io::Error| format!("{}: {error}", words.program.to_string_lossy());
    let (reader, writer) = std::io::pipe().map_err(fail)?;
    let mut command = repeat::tied(&words.program, &words.arguments);
    command.current_dir(&words.folder).envs(words.environment.iter().cloned()).stdin(Stdio::null());
    command.stdout(writer.try_clone().map_err(fail)?).stderr(writer);
    let mut child = command.spawn().map_err(fail)?;
    drop(command);
    let tail = Tail::of(reader, repeat::MAX_OUTPUT);
    let status = loop {
        if stop.load(Ordering::Relaxed) || start.elapsed() > LONGEST {
            repeat::end_group(&mut child);
            return Ok(None);
        }
        match child.try_wait().map_err(fail)? {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    report.runs += 1;
    report.code = status.code();
    report.output = tail.text();
    report.failure = (!status.success()).then(|| in_words(status));
    if status.code() == Some(i32::from(repeat::NOT_STARTED)) {
        report.refusal =
            report.output.lines().last().and_then(|line| line.strip_prefix("perflens: ")).map(str::to_owned);
    }
    Ok(Some(status.success()))
}

/// The profiles that a run has left.
fn read_profiles(folder: &Path, own: &OwnProfiler) -> Result<Vec<Profile>, String> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut profiles = Vec::new();
    for path in paths {
        let is_small = fs::metadata(&path).is_ok_and(|metadata| metadata.len() <= MAX_FILE);
        if !is_small {
            return Err(format!("{} left a profile that is too large", own.name));
        }
        let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let bytes = match &own.name_at {
            Some((end, line, name)) => named(&bytes, end, *line, name).unwrap_or(bytes),
            None => bytes,
        };
        // What a run that failed leaves may be no profile.
        if let Ok(profile) = decode(&bytes[..], &Limits::default(), &CancelFlag::new()) {
            profiles.push(profile);
        }
    }
    Ok(profiles)
}

/// Gives the function that begins at a line of a file a name, in a profile of V8.
fn named(bytes: &[u8], file: &str, line: u32, name: &str) -> Option<Vec<u8>> {
    let mut profile: Value = serde_json::from_slice(bytes).ok()?;
    for node in profile["nodes"].as_array_mut()? {
        let frame = &mut node["callFrame"];
        let is_it = frame["lineNumber"].as_u64() == Some(u64::from(line))
            && frame["url"].as_str().is_some_and(|url| url.ends_with(file));
        if is_it && frame["functionName"] == "" {
            frame["functionName"] = Value::from(name);
        }
    }
    serde_json::to_vec(&profile).ok()
}

/// What a sample stands for on average, in nanoseconds, and of which clock. V8 knows of each run how far apart its
/// samples came to be, which differs a little. `None` where that is not known of each.
fn mean_period(runs: &[Profile]) -> Option<(i64, String)> {
    let clock = runs.first()?.meta().period_type.clone()?;
    let (mut time, mut samples) = (0_i128, 0_i128);
    for run in runs {
        let meta = run.meta();
        if clock.unit != "nanoseconds" || meta.period_type.as_ref() != Some(&clock) {
            return None;
        }
        time += i128::from(count(run)) * i128::from(meta.period);
        samples += i128::from(count(run));
    }
    Some((i64::try_from(time.checked_div(samples)?).ok()?, clock.kind))
}

/// How many samples there are.
fn count(profile: &Profile) -> u64 {
    let samples = profile.samples();
    match profile.sample_count_type() {
        Some(column) => samples.values(column).iter().map(|value| value.unsigned_abs()).sum(),
        None => samples.len() as u64,
    }
}

/// A name of a test as part of a file's.
pub(super) fn file_name(name: &str) -> String {
    name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("-")
}
