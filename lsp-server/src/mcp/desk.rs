//! From what an assistant names to what was loaded: who may have it, where it is, what was measured.
//!
//! What is decided here is decided anew with every call, so that a consent, a policy and the editor's view
//! count at once.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use profiler_core::attribute::{Filter, MAX_FILTERS};
use profiler_core::cancel::CancelFlag;
use profiler_core::encode::share::Private;
use profiler_core::view::data::{shown, shown_within};
use sha2::{Digest, Sha256};

use super::arguments::Question;
use super::consent::Consents;
use super::journal::Journal;
use super::policy::{self, Data};
use super::reach::Reach;
use super::seen::Seen;
use super::{Options, Refusal};
use crate::cli::{convert, roots};
use crate::config::Layers;
use crate::config::places::Places;
use crate::config::toml_file::TomlFile;
use crate::config::trust::TrustStore;
use crate::current::{Current, hex};
use crate::loader::{self, Failure, Given, Input, Profiles, RunPair, Wish};
use crate::state::folder::Folder;

/// How many loaded profiles are kept.
const KEPT: usize = 3;
/// How many profiles can be named by their ids.
const MAX_IDS: usize = 100;
/// Most characters of a sentence of the loader.
const MAX_SENTENCE: usize = 1000;
/// The words for what the editor shows.
const CURRENT: &str = "current";
/// Starts the name of a recording.
const RECORDING: &str = "recording:";
/// Starts an id.
const ID: &str = "p-";

/// What the tools share.
#[derive(Debug)]
pub(super) struct Desk {
    options: Options,
    /// Where to look for a workspace.
    start: PathBuf,
    places: Places,
    consents: Consents,
    pub(super) journal: Journal,
    /// What answers leave out.
    pub(super) private: Private,
    profiles: Profiles,
    seen: Mutex<Vec<(Key, Arc<Seen>)>>,
    ids: Mutex<BTreeMap<String, Subject>>,
    hashes: Mutex<HashMap<PathBuf, (Stamp, String)>>,
}

/// What tells one content of a file from another, as far as the system says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

#[derive(Debug, PartialEq, Eq)]
struct Key {
    wish: Wish,
    ids: [Option<String>; 2],
}

/// A profile that was named, before anything of it is read.
#[derive(Clone, Debug)]
struct Subject {
    /// How to load it.
    wish: Wish,
    data: Data,
    /// In words.
    from: &'static str,
    /// What the editor calls it, where that is not the file's name.
    name: Option<String>,
    /// What the workspace's files were, as far as that is known: path and SHA-256.
    measured: BTreeMap<PathBuf, String>,
}

impl Desk {
    pub(super) fn new(options: Options) -> Result<Self, String> {
        let start = options.workspace.clone().map_or_else(std::env::current_dir, Ok);
        let start = start.and_then(fs::canonicalize).ok().filter(|start| start.is_dir()).ok_or_else(|| {
            let name = options.workspace.as_deref().unwrap_or(Path::new("the current folder"));
            format!("{}: there is no such folder", name.display())
        })?;
        let places = Places::of_this_process();
        Ok(Self {
            start,
            consents: Consents::new(places.consents()),
            journal: Journal::new(places.calls()),
            places,
            options,
            private: convert::private(Vec::new()),
            profiles: Profiles::default(),
            seen: Mutex::default(),
            ids: Mutex::default(),
            hashes: Mutex::default(),
        })
    }

    /// Whether tools that run or change something are left out.
    pub(super) fn is_read_only(&self) -> bool {
        self.options.is_read_only
    }

    /// The workspace: the one that was named, else the closest at or above the current folder that an editor
    /// has shown something of, else the project.
    pub(super) fn workspace(&self) -> PathBuf {
        if self.options.workspace.is_some() {
            return self.start.clone();
        }
        let is_shown = |folder: &&Path| self.current(folder).is_some();
        let shown = self.start.ancestors().find(is_shown);
        shown.or_else(|| roots::project(&self.start).map(|(folder, _)| folder)).unwrap_or(&self.start).to_owned()
    }

    /// What the editor shows.
    pub(super) fn current(&self, root: &Path) -> Option<Current> {
        Current::read(&self.places.shown()?, root)
    }

    /// The workspace's recordings, the newest first; without those of programs from before an edit.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn recordings(&self, root: &Path) -> Vec<PathBuf> {
        use crate::record::store::{About, Store};
        let Some(all) = &self.places.recordings else { return Vec::new() };
        let is_of_now = |path: &PathBuf| !About::read(path).is_some_and(|about| about.is_base_run);
        Store::new(all, root).list().into_iter().map(|(path, _)| path).filter(is_of_now).collect()
    }

    /// The folder of all recordings.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    pub(super) fn all_recordings(&self) -> Option<PathBuf> {
        self.places.recordings.clone()
    }

    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    fn recordings(&self, _: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    /// How to name the workspace's recordings, the newest first.
    pub(super) fn recording_names(&self, root: &Path) -> Vec<String> {
        let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.recordings(root).iter().map(|path| format!("{RECORDING}{}", name(path))).collect()
    }

    /// Which profile a question means.
    fn subject(&self, root: &Path, name: Option<&str>) -> Result<Subject, Refusal> {
        let subject = match name {
            None | Some(CURRENT) => self.current_subject(root)?,
            Some(name) if name.starts_with(ID) => {
                let ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
                ids.get(name).cloned().ok_or_else(|| {
                    Refusal::Arguments(format!("no earlier answer had the profile_id {}", shown(name)))
                })?
            }
            Some(name) => {
                if let Some(name) = name.strip_prefix(RECORDING) {
                    self.recording(root, name)?
                } else {
                    let reach = Reach { workspace: root.to_owned(), more: self.options.allow.clone() };
                    self.file(root, &reach.file(name)?, "file")?
                }
            }
        };
        self.check(root, subject.data)?;
        Ok(subject)
    }

    /// Whether assistants may have such data of a workspace.
    pub(super) fn check(&self, root: &Path, data: Data) -> Result<(), Refusal> {
        policy::check(data)?;
        if data == Data::Local || self.consents.has(root) {
            return Ok(());
        }
        Err(Refusal::Forbidden(
            "this came from a profiling server or the receiver, which the user has not consented to give to assistants for this \
             workspace; they can with `perflens mcp consent .` in a terminal"
                .to_owned(),
        ))
    }

    fn current_subject(&self, root: &Path) -> Result<Subject, Refusal> {
        let Some(current) = self.current(root) else {
            let recordings = self.recordings(root).len();
            let some = if recordings > 0 { ", such as `recording:latest`" } else { "" };
            return Err(Refusal::Failed(format!(
                "no editor has shown a profile of this workspace yet: open one there, or name one as `profile`{some}"
            )));
        };
        let data = if current.is_of_server() { Data::Server } else { Data::Local };
        self.check(root, data)?;
        // A local side beside one of a server needs its own leave.
        if current.is_local() {
            self.check(root, Data::Local)?;
        }
        let wish = self.places.shown().and_then(|shown| current.wish(&shown));
        let wish = wish.ok_or_else(|| {
            Refusal::Failed(if data == Data::Server {
                "the editor shows data of a profiling server that was not kept for assistants; run perflens.refresh \
                 in the editor"
                    .to_owned()
            } else {
                "what the editor shows was written by another version of perflens; open the profile there again"
                    .to_owned()
            })
        })?;
        let name = (data == Data::Server).then(|| current.profile.name());
        // A recording knows what its files were; else it is what they were when it was opened.
        let measured = wish.profile.file().map(|path| self.measured(root, path)).unwrap_or_default();
        let measured = if measured.is_empty() { current.texts.clone() } else { measured };
        Ok(Subject { wish, data, from: "what the editor shows", name, measured })
    }

    fn recording(&self, root: &Path, name: &str) -> Result<Subject, Refusal> {
        let recordings = self.recordings(root);
        let is_named = |path: &&PathBuf| path.file_name().is_some_and(|file| file.to_string_lossy() == name);
        let path = if name == "latest" { recordings.first() } else { recordings.iter().find(is_named) };
        let path = path.ok_or_else(|| {
            Refusal::Arguments(if recordings.is_empty() {
                "there are no recordings of this workspace; `perflens record -- COMMAND` makes one".to_owned()
            } else {
                format!("there is no recording {}; `overview` lists them", shown(name))
            })
        })?;
        self.file(root, path, "recording")
    }

    fn file(&self, root: &Path, path: &Path, from: &'static str) -> Result<Subject, Refusal> {
        let measured = self.measured(root, path);
        Ok(Subject { wish: self.wish(root, path)?, data: Data::Local, from, name: None, measured })
    }

    /// How a file is loaded for a workspace: with the user's settings, and the workspace's when it is trusted.
    fn wish(&self, root: &Path, path: &Path) -> Result<Wish, Refusal> {
        let mut folder = self.folder(root);
        folder.chosen.profile = Some(Some(Input::File(path.to_owned())));
        folder.chosen.base = Some(None);
        let wish = folder.new_wish(&[]).ok_or_else(|| Refusal::Failed("there is nothing to load".to_owned()))?;
        Ok(Wish { value_type: None, filters: self.under(path), services: Vec::new(), ..wish })
    }

    /// What keeps the samples of a recording that its test itself costs.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn under(&self, profile: &Path) -> Vec<Filter> {
        if !crate::record::store::is_recording(self.places.recordings.as_deref(), profile) {
            return Vec::new();
        }
        let about = crate::record::store::About::read(profile).unwrap_or_default();
        about.under.and_then(|filter| filter.parse().ok()).into_iter().collect()
    }

    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    fn under(&self, _: &Path) -> Vec<Filter> {
        Vec::new()
    }

    /// A workspace folder with its settings, as far as it is trusted.
    pub(super) fn folder(&self, root: &Path) -> Folder {
        let user_file = self.places.config.as_deref().and_then(TomlFile::read);
        let store = TrustStore::new(self.places.trust.clone());
        Folder::new(root.to_owned(), &Layers { user_file, ..Layers::default() }, &store)
    }

    /// The work of the newest recording of a test.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    pub(super) fn newest_work(&self, root: &Path, test: &str) -> Option<crate::runnable::Work> {
        crate::record::store::newest_of_test(self.places.recordings.as_deref()?, root, test).map(|(_, work)| work)
    }

    /// What is known of the recording of a test that is named as a base.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    pub(super) fn recorded(&self, root: &Path, name: &str) -> Result<super::laboratory::Base, Refusal> {
        use crate::record::store::{About, is_recording};
        let subject = self.subject(root, Some(name))?;
        let path = subject.wish.profile.file().filter(|path| is_recording(self.places.recordings.as_deref(), path));
        let base = path.and_then(|path| {
            let recorded = fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
            Some(super::laboratory::Base { path: path.to_owned(), about: About::read(path)?, recorded })
        });
        base.filter(|base| !base.about.test.is_empty()).ok_or_else(|| {
            Refusal::Arguments(format!(
                "{} is no recording of a test, so what to run again is not known; `record` makes one",
                shown(name)
            ))
        })
    }

    /// The program of a base, to run again.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    pub(super) fn before(&self, root: &Path, base: &super::laboratory::Base) -> Result<crate::bases::Before, Refusal> {
        crate::bases::before_of(self.places.recordings.as_deref(), root, &base.path).map_err(Refusal::Failed)
    }

    /// What a recording says the workspace's files were.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn measured(&self, root: &Path, profile: &Path) -> BTreeMap<PathBuf, String> {
        if !crate::record::store::is_recording(self.places.recordings.as_deref(), profile) {
            return BTreeMap::new();
        }
        let about = crate::record::store::About::read(profile).unwrap_or_default();
        about.files.into_iter().map(|text| (root.join(text.path), text.hash)).collect()
    }

    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    fn measured(&self, _: &Path, _: &Path) -> BTreeMap<PathBuf, String> {
        BTreeMap::new()
    }

    /// Loads what a question is about.
    pub(super) fn open(&self, question: &Question, cancel: &CancelFlag) -> Result<Arc<Seen>, Refusal> {
        let root = self.workspace();
        let subject = self.subject(&root, question.profile.as_deref())?;
        let wish = Wish { base: None, normalize: false, ..subject.wish.clone() };
        self.load(&root, &Subject { wish, ..subject }, question, cancel)
    }

    /// Loads it next to a base; without a name, next to what the editor compares it with.
    pub(super) fn open_compared(
        &self,
        question: &Question,
        base: Option<&str>,
        normalize: Option<bool>,
        cancel: &CancelFlag,
    ) -> Result<Arc<Seen>, Refusal> {
        let root = self.workspace();
        let mut subject = self.subject(&root, question.profile.as_deref())?;
        if let Some(name) = base {
            let base = self.subject(&root, Some(name))?;
            if base.wish.parts.len() > 1 {
                return Err(Refusal::Arguments("the sum of several services can't be a `base`".to_owned()));
            }
            let turned: Vec<RunPair> = base.wish.runs.iter().map(RunPair::turned).collect();
            if subject.wish.runs != turned {
                return Err(Refusal::Arguments(
                    "runs in turns compare only with the runs that they took turns with: both `profile_id` are in the \
                     answer of `verify`; for another comparison name a `recording:NAME`"
                        .to_owned(),
                ));
            }
            subject.wish.base = Some(base.wish.profile);
            subject.wish.normalize = false;
        }
        if subject.wish.base.is_none() {
            return Err(Refusal::Arguments(
                "`base` is missing, and the editor compares with nothing: name a profile file, `recording:NAME` or a \
                 `profile_id`; `overview` lists recordings"
                    .to_owned(),
            ));
        }
        subject.wish.normalize = normalize.unwrap_or(subject.wish.normalize);
        self.load(&root, &subject, question, cancel)
    }

    /// Loads recordings that were made in turns: the sums of both sides.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    pub(super) fn open_in_turns(
        &self,
        question: &Question,
        runs: Vec<RunPair>,
        cancel: &CancelFlag,
    ) -> Result<Arc<Seen>, Refusal> {
        let root = self.workspace();
        let Some(first) = runs.first() else { return Err(Refusal::Failed("nothing was recorded".to_owned())) };
        let mut subject = self.file(&root, &first.new, "recording")?;
        subject.wish.base = Some(Input::File(first.base.clone()));
        subject.wish.normalize = false;
        let (name, count) = (subject.wish.profile.name(), runs.len());
        subject.name = Some(format!("{name} and {} more runs", count.saturating_sub(1))).filter(|_| count > 1);
        subject.wish.runs = runs;
        self.load(&root, &subject, question, cancel)
    }

    fn load(
        &self,
        root: &Path,
        subject: &Subject,
        question: &Question,
        cancel: &CancelFlag,
    ) -> Result<Arc<Seen>, Refusal> {
        let mut wish = subject.wish.clone();
        if question.value_type.is_some() {
            wish.value_type.clone_from(&question.value_type);
        }
        for filter in &question.filters {
            let filter: Filter = filter.parse().map_err(|error| Refusal::Arguments(format!("`filters`: {error}")))?;
            if !wish.filters.contains(&filter) {
                wish.filters.push(filter);
            }
        }
        if wish.filters.len() > MAX_FILTERS {
            return Err(Refusal::Arguments(format!("`filters` takes no more than {MAX_FILTERS}")));
        }
        let (id, base_id) = self.identify(&wish, cancel)?;
        if let Some(wanted) = question.profile.as_ref().filter(|name| name.starts_with(ID))
            && *wanted != id
        {
            return Err(Refusal::Failed(format!(
                "the file of {} holds another profile by now; ask again without `profile`, or name the file",
                shown(wanted)
            )));
        }
        let key = Key { wish: wish.clone(), ids: [Some(id.clone()), base_id.clone()] };
        // Held while loading: who asks the same meanwhile waits for it.
        let mut kept = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = kept.iter().position(|(known, _)| *known == key) {
            let found = kept.remove(at);
            let seen = Arc::clone(&found.1);
            kept.insert(0, found);
            return Ok(seen);
        }
        let failed = |failure: Failure| match failure {
            Failure::Cancelled => Refusal::Failed("it was cancelled".to_owned()),
            Failure::Failed(why) => Refusal::Failed(shown_within(&self.clean(root, &why), MAX_SENTENCE).into_owned()),
        };
        let (view, _) = loader::load(&wish, &Given::default(), &self.profiles, cancel).map_err(failed)?;
        if self.identify(&wish, cancel)? != (id.clone(), base_id.clone()) {
            return Err(Refusal::Failed("the profile was written again just now; ask again".to_owned()));
        }
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if ids.len() >= MAX_IDS {
            ids.clear();
        }
        let plain =
            |wish: &Wish, profile: Input, parts, runs| Wish { profile, parts, runs, base: None, ..wish.clone() };
        let (parts, runs) = (subject.wish.parts.clone(), subject.wish.runs.clone());
        let own = plain(&subject.wish, subject.wish.profile.clone(), parts, runs);
        ids.insert(id.clone(), Subject { wish: own, ..subject.clone() });
        if let (Some(id), Some(base)) = (&base_id, &wish.base) {
            let measured = base.file().map(|path| self.measured(root, path)).unwrap_or_default();
            let data = if base.file().is_some() { Data::Local } else { Data::Server };
            let turned = subject.wish.runs.iter().map(RunPair::turned).collect();
            let wish = plain(&subject.wish, base.clone(), Vec::new(), turned);
            ids.entry(id.clone()).or_insert_with(|| Subject { wish, data, measured, name: None, ..subject.clone() });
        }
        drop(ids);
        let seen = Arc::new(Seen {
            root: root.to_owned(),
            roots: wish.roots.iter().filter_map(|root| fs::canonicalize(root).ok()).collect(),
            id,
            base_id,
            from: subject.from,
            name: subject.name.clone(),
            measured: subject.measured.clone(),
            private: self.private.clone(),
            view,
        });
        kept.insert(0, (key, Arc::clone(&seen)));
        kept.truncate(KEPT);
        Ok(seen)
    }

    /// A text as an assistant may have it: without people, and with files of the workspace named as they are there.
    pub(super) fn clean(&self, root: &Path, text: &str) -> String {
        self.private.clean(&text.replace(&format!("{}/", root.display()), ""))
    }

    /// The ids of a profile and its base.
    fn identify(&self, wish: &Wish, cancel: &CancelFlag) -> Result<(String, Option<String>), Refusal> {
        let hash = |path: &Path| -> Result<String, Refusal> {
            self.hash(path, cancel).map_err(|error| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let why = match error.kind() {
                    io::ErrorKind::NotFound => "there is no such file any more".to_owned(),
                    io::ErrorKind::PermissionDenied => "there is no permission to read it".to_owned(),
                    _ => error.to_string(),
                };
                Refusal::Failed(format!("{}: {why}", shown(&name)))
            })
        };
        let named = |hash: &str| format!("{ID}{}", &hash[..16]);
        let of = |input: &Input| input.file().map(|path| hash(path).map(|hash| named(&hash))).transpose();
        let of_all = |paths: &mut dyn Iterator<Item = &PathBuf>| -> Result<String, Refusal> {
            let hashes: Vec<String> = paths.map(|path| hash(path)).collect::<Result<_, _>>()?;
            Ok(named(&hex(&Sha256::digest(hashes.concat()))))
        };
        if !wish.runs.is_empty() {
            let id = of_all(&mut wish.runs.iter().map(|pair| &pair.new))?;
            let base = wish.base.as_ref().map(|_| of_all(&mut wish.runs.iter().map(|pair| &pair.base)));
            return Ok((id, base.transpose()?));
        }
        let id = if wish.parts.len() > 1 {
            of_all(&mut wish.parts.iter().map(|part| &part.profile))?
        } else {
            of(&wish.profile)?.unwrap_or_default()
        };
        Ok((id, wish.base.as_ref().map(of).transpose()?.flatten()))
    }

    fn hash(&self, path: &Path, cancel: &CancelFlag) -> io::Result<String> {
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        let stamp = Stamp { bytes: metadata.len(), modified: metadata.modified().ok() };
        let lock = || self.hashes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, hash)) = lock().get(path).filter(|(known, _)| *known == stamp) {
            return Ok(hash.clone());
        }
        let mut hash = Sha256::new();
        let mut chunk = vec![0; 1 << 16];
        loop {
            let count = file.read(&mut chunk)?;
            if count == 0 {
                break;
            }
            if cancel.is_cancelled() {
                return Err(io::Error::other("it was cancelled"));
            }
            hash.update(&chunk[..count]);
        }
        let hash = hex(&hash.finalize());
        let mut hashes = lock();
        if hashes.len() >= MAX_IDS {
            hashes.clear();
        }
        hashes.insert(path.to_owned(), (stamp, hash.clone()));
        Ok(hash)
    }
}
