//! From a wish ("this profile, these filters") to a [`View`].
//!
//! Loading is slow and runs on a thread of the pool, with a flag that stops it. What comes
//! back carries the generation it was asked for under; whoever asked meanwhile for something
//! else throws it away.

mod cache;
mod input;
mod runs;
pub mod watch;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use profiler_core::attribute::analysis::{Analysis, Compare, CompareFailure, ComparedTo};
use profiler_core::attribute::{FileGroups, Filter};
use profiler_core::cancel::{CancelFlag, Cancelled};
use profiler_core::decode::{DecodeErrorKind, Limits};
use profiler_core::paths::{Rule, Workspace, WorkspaceOptions};
use profiler_core::profile::MergeError;
use profiler_core::profile::Profile;
use tokio::sync::Notify;

use cache::Known;
pub use cache::Profiles;
pub use input::{Given, Input, RECEIVED, decode_fetched};
pub use runs::RunPair;
use runs::Runs;

use crate::anchor::{self, Anchored, Evidence, Opened, Terms, commit};
use crate::bases;
use crate::config::ServiceScope;
use crate::source::Fetched;
use crate::state::view::{Owner, View};
use crate::symbols::Places;

/// What to show. Equality is of the whole wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The profile.
    pub profile: Input,
    /// Profiles to show the sum of; when there are any, the first is `profile`.
    pub parts: Vec<Part>,
    /// Whose samples are to be told apart in hovers.
    pub services: Vec<ServiceScope>,
    /// Of files that a path of the profile could mean, those below this folder are meant.
    pub preferred: Option<PathBuf>,
    /// The profile to compare with.
    pub base: Option<Input>,
    /// What that is to the user: `before my edit`.
    pub base_title: Option<String>,
    /// Pairs of runs that profile and base are the first of; what is shown is their sums.
    pub runs: Vec<RunPair>,
    /// Bring the values to the base's sum before comparing.
    pub normalize: bool,
    /// The value type, as users write it.
    pub value_type: Option<String>,
    /// All must hold.
    pub filters: Vec<Filter>,
    /// The folders whose files count, the most important first.
    pub roots: Vec<PathBuf>,
    /// The user's path rules.
    pub rules: Vec<Rule>,
    /// What the user says about commits.
    pub commits: commit::Rule,
    /// Folders with debug info.
    pub debug_dirs: Vec<PathBuf>,
    /// Most files of the workspace to list.
    pub max_files: usize,
    /// Most bytes of a profile.
    pub max_bytes: u64,
}

/// One of several profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The file.
    pub profile: PathBuf,
    /// The service it is of.
    pub service: String,
}

impl Wish {
    fn terms(&self) -> Terms {
        Terms { roots: self.roots.clone(), rules: self.rules.clone(), preferred: self.preferred.clone() }
    }
}

impl Part {
    /// The filter that keeps its samples.
    pub fn filter(&self) -> Option<Filter> {
        format!("label.{PART_LABEL}={}", self.service).parse().ok()
    }
}

/// The label by which samples of [parts](Part) are told apart.
const PART_LABEL: &str = "perflens.service";

/// Stops a load, and whoever waits for it, even where the load itself hangs on a disk.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// What the load looks at.
    pub flag: CancelFlag,
    stopped: Arc<Notify>,
}

impl Stop {
    /// Stops it.
    pub fn stop(&self) {
        self.flag.cancel();
        self.stopped.notify_waiters();
        self.stopped.notify_one();
    }

    /// Returns once it is stopped.
    pub async fn stopped(&self) {
        while !self.flag.is_cancelled() {
            self.stopped.notified().await;
        }
    }
}

/// A wish could not be fulfilled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Someone stopped it, or wished for something else.
    Cancelled,
    /// One sentence for the user.
    Failed(String),
}

impl From<Cancelled> for Failure {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// How long listing the files of a workspace may take; what is known by then counts.
const LISTING_DEADLINE: Duration = Duration::from_secs(20);

/// Fulfils a wish, given what had to be fetched for it. Blocks for as long as that takes.
pub fn load(
    wish: &Wish,
    given: &Given,
    profiles: &Profiles,
    cancel: &CancelFlag,
) -> Result<(View, Arc<Workspace>), Failure> {
    let limits = Limits { max_bytes: wish.max_bytes, ..Limits::default() };
    let places = Places { debug_dirs: wish.debug_dirs.clone(), roots: wish.roots.clone() };
    let runs = Runs::read(&wish.runs, profiles, &limits, &places, cancel)?;
    let sums = if wish.runs.is_empty() { None } else { Some(runs.sums()?) };
    let (sum, base_sum) = sums.unzip();
    let known = match (sum, wish.parts.len()) {
        (Some(sum), _) => sum,
        (None, 0 | 1) => match &wish.profile {
            Input::Received => read_received(given, profiles, &places, cancel)?,
            profile => read(profile, given.profile.as_deref(), profiles, &limits, cancel)?,
        },
        (None, _) => read_sum(&wish.parts, profiles, &limits, cancel)?,
    };
    let (profile, opened) = (known.symbolised(&places, cancel)?, known.opened);
    let base = match (base_sum, &wish.base) {
        (Some(sum), _) => Some((sum.profile, sum.opened)),
        (None, Some(Input::Received)) => {
            let known = read_received(given, profiles, &places, cancel)?;
            Some((known.profile, known.opened))
        }
        (None, Some(base)) => {
            let known = read(base, given.base.as_deref(), profiles, &limits, cancel)?;
            Some((known.symbolised(&places, cancel)?, known.opened))
        }
        (None, None) => None,
    };
    let workspace = open_workspace(wish, cancel);
    cancel.check()?;
    let profile = in_source(profile, &workspace, cancel)?;
    let base = match base {
        Some((base, opened)) => Some((in_source(base, &workspace, cancel)?, opened)),
        None => None,
    };

    let name = |input: &Input, given: Option<&Arc<Fetched>>| given.map_or_else(|| input.name(), |it| it.name.clone());
    let origin = match wish.parts.len() {
        0 | 1 => name(&wish.profile, given.profile.as_ref()),
        count => format!("{count} services"),
    };
    let value_type = match &wish.value_type {
        Some(name) => profile.find_value_type(name).map_err(|error| Failure::Failed(format!("{origin}: {error}")))?,
        None => profile.meta().default_value_type,
    };
    // Of several profiles each has its own texts; what was here when they were opened is what they share.
    let file = (wish.parts.len() <= 1).then_some(&wish.profile).and_then(Input::file);
    let terms = wish.terms();
    let evidence = Evidence { file, ..evidence_of(wish, &wish.profile, (&opened, &terms)) };
    let (groups, anchored) = placed(&profile, &workspace, &evidence, cancel)?;
    let mut analysis = Analysis::new(Arc::clone(&profile), groups, value_type, &wish.filters, cancel)?;
    let comparison = match (base, &wish.base) {
        (Some((base, opened)), Some(input)) => {
            let base_origin = name(input, given.base.as_ref());
            let (groups, _) = placed(&base, &workspace, &evidence_of(wish, input, (&opened, &terms)), cancel)?;
            let names = [origin.as_str(), base_origin.as_str()];
            let mut compared = compare(&mut analysis, (base, groups), wish.normalize, names, cancel)?;
            if !wish.runs.is_empty() {
                runs.judge(wish, &workspace, &analysis, &mut compared, cancel)?;
            }
            Some((base_origin, compared))
        }
        _ => None,
    };
    let counts = match profile.sample_count_type() {
        Some(counted) if counted != value_type => Some(analysis.costs_of(counted, cancel)?),
        _ => None,
    };
    let narrowing = analysis.stacks.narrowing(&analysis.profile, value_type, cancel)?;
    let notes = workspace
        .notes()
        .iter()
        .map(ToString::to_string)
        .chain(profile.notes().iter().cloned())
        .chain(analysis.costs.notes.iter().cloned())
        .chain(anchored.notes)
        .chain(anchored.unverified)
        .collect();
    let mut view = View::new(origin, analysis, counts.as_ref(), comparison, anchored.texts, narrowing, notes);
    view.services = wish.services.iter().filter_map(|service| Owner::new(service, &wish.parts)).collect();
    let written = |path: &Path| std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    view.is_recording = wish.profile.file().is_some_and(bases::is_recording);
    view.base_title.clone_from(&wish.base_title);
    view.written = wish.profile.file().and_then(written);
    view.wish = Some(wish.clone());
    Ok((view, workspace))
}

/// Reads several profiles as one, with a label for each.
fn read_sum(parts: &[Part], profiles: &Profiles, limits: &Limits, cancel: &CancelFlag) -> Result<Known, Failure> {
    let known: Vec<Known> =
        (parts.iter().map(|part| read(&Input::File(part.profile.clone()), None, profiles, limits, cancel)))
            .collect::<Result<_, _>>()?;
    let labelled: Vec<(&Profile, &str)> =
        known.iter().zip(parts).map(|(known, part)| (&*known.profile, part.service.as_str())).collect();
    let sum = Profile::labelled_sum(&labelled, PART_LABEL, cancel).map_err(|error| match error {
        MergeError::Cancelled(_) => Failure::Cancelled,
        error => Failure::Failed(format!("the profiles of the services can't be added up: {error}")),
    })?;
    // What the files were when the first of them was read.
    let opened = Arc::clone(&known[0].opened);
    Ok(Known { opened, ..Known::new(sum, None) })
}

/// The profile with generated code replaced by its source, where the workspace has maps for it.
fn in_source(profile: Arc<Profile>, workspace: &Workspace, cancel: &CancelFlag) -> Result<Arc<Profile>, Cancelled> {
    Ok(workspace.map_sources(&profile, cancel)?.map_or(profile, Arc::new))
}

/// What tells the texts that a profile was measured with.
fn evidence_of<'a>(wish: &'a Wish, input: &'a Input, opened: (&'a Mutex<Opened>, &'a Terms)) -> Evidence<'a> {
    Evidence { file: input.file(), opened: Some(opened), roots: &wish.roots, rule: &wish.commits }
}

/// The files of a profile as the workspace knows them, with where their lines are now.
fn placed(
    profile: &Profile,
    workspace: &Workspace,
    evidence: &Evidence<'_>,
    cancel: &CancelFlag,
) -> Result<(FileGroups, Anchored), Cancelled> {
    let mut groups = FileGroups::in_workspace(profile, workspace, cancel)?;
    let anchored = anchor::anchor(profile, &mut groups, workspace, evidence, cancel)?;
    Ok((groups, anchored))
}

fn compare(
    analysis: &mut Analysis,
    (base, groups): (Arc<Profile>, FileGroups),
    normalize: bool,
    [origin, base_origin]: [&str; 2],
    cancel: &CancelFlag,
) -> Result<ComparedTo, Failure> {
    let how = if normalize { Compare::Normalized } else { Compare::AsRecorded };
    analysis.compare_to(base, groups, how, cancel).map_err(|error| match error {
        CompareFailure::Cancelled(_) => Failure::Cancelled,
        CompareFailure::Incomparable(error) => Failure::Failed(format!("{origin} and {base_origin}: {error}")),
    })
}

fn read_received(given: &Given, profiles: &Profiles, places: &Places, cancel: &CancelFlag) -> Result<Known, Failure> {
    let nothing =
        || Failure::Failed("nothing has come by OTLP yet; perflens.showStatus says where it is awaited".to_owned());
    profiles.read_received(given.received.as_ref().ok_or_else(nothing)?, places, cancel)
}

fn read(
    input: &Input,
    fetched: Option<&Fetched>,
    profiles: &Profiles,
    limits: &Limits,
    cancel: &CancelFlag,
) -> Result<Known, Failure> {
    let path = match (input, fetched) {
        (Input::File(path), _) => path,
        (Input::Remote(_), Some(fetched)) => return profiles.read_fetched(fetched, limits, cancel),
        (Input::Remote(request), None) => {
            return Err(Failure::Failed(format!("{} was not fetched", request.name())));
        }
        (Input::Received, _) => return Err(Failure::Failed("what came by OTLP is read in one place only".to_owned())),
    };
    profiles.read(path, limits, cancel).map_err(|error| match error {
        cache::ReadError::Io(error) => {
            let why = match error.kind() {
                std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
                std::io::ErrorKind::PermissionDenied => "there is no permission to read it".to_owned(),
                std::io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
                _ => error.to_string(),
            };
            Failure::Failed(format!("{}: {why}", path.display()))
        }
        cache::ReadError::Cancelled => Failure::Cancelled,
        cache::ReadError::Decode(error) if error.kind() == DecodeErrorKind::Cancelled => Failure::Cancelled,
        cache::ReadError::Decode(error) => Failure::Failed(format!("{}: {error}", path.display())),
    })
}

fn open_workspace(wish: &Wish, cancel: &CancelFlag) -> Arc<Workspace> {
    let options = WorkspaceOptions {
        max_files: wish.max_files,
        rules: wish.rules.clone(),
        preferred: wish.preferred.clone(),
        ..WorkspaceOptions::default()
    };
    // The load's own flag must stop the listing too, but a late listing must not stop the load.
    let stop = CancelFlag::new();
    let (timer, load) = (stop.clone(), cancel.clone());
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let step = Duration::from_millis(50);
            let mut waited = Duration::ZERO;
            while is_done.recv_timeout(step) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                waited += step;
                if load.is_cancelled() || waited >= LISTING_DEADLINE {
                    timer.cancel();
                    return;
                }
            }
        });
        let workspace = Workspace::open(&wish.roots, &options, &stop);
        drop(done);
        Arc::new(workspace)
    })
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
