//! One session with one editor: the state, and what changes it.
//!
//! Everything slow happens in tasks that this starts; what they bring is put into the state
//! under the lock, and the editor is then asked to look again.

mod anchoring;
mod loading;
pub mod profile_test;
mod received;
pub mod recording;
mod refreshing;
pub mod turns;

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use lsp_types::{MessageType, Url};
use serde_json::Value;
use tokio::sync::Notify;

use crate::auth::Keeper;
use crate::commands::Subject;
use crate::config::Layers;
use crate::config::places::Places;
use crate::config::toml_file::{TomlFile, WORKSPACE_FILE, WorkspaceFile};
use crate::config::trust::TrustStore;
use crate::current::Publisher;
use crate::handlers::{commands, diagnostics, hotspots};
use crate::loader::watch::{Watch, Watched};
use crate::loader::{Input, Profiles, Stop};
use crate::lsp::client::Editor;
use crate::lsp::refresh::Refresh;
use crate::mcp::consent::Consents;
use crate::otlp::Receiver;
use crate::source::answers::Answers;
use crate::source::last::LastQueries;
use crate::source::{SourceError, Sources};
use crate::state::capabilities::Capabilities;
use crate::state::documents::file_path;
use crate::state::folder::{Folder, Shown};
use crate::state::{Snapshot, State};

/// Shorter work shows no progress.
const PROGRESS_AFTER: Duration = Duration::from_millis(300);

/// More folders than this are not watched: systems limit how many can be.
const MAX_WATCHED_FOLDERS: usize = 2048;

/// A session.
#[derive(Debug)]
pub struct Session {
    /// The editor.
    pub editor: Editor,
    places: Places,
    state: Mutex<State>,
    profiles: Arc<Profiles>,
    sources: Sources,
    last: LastQueries,
    answers: Answers,
    /// A load has ended, a file was opened, or settings are others: what is fetched again may be due.
    may_be_due: Notify,
    publisher: Publisher,
    watch: OnceLock<Watch>,
    refresh: Refresh,
    next_token: AtomicU64,
    /// Whether the first settings have come and are applied.
    pub has_settings: AtomicBool,
    is_started: AtomicBool,
    receiver: Mutex<Option<Receiver>>,
    start: Instant,
    /// When a buffer was last edited, in milliseconds since the start; 0 = never.
    last_edit: AtomicU64,
}

/// Why work brought no result.
enum Interrupted {
    /// Someone stopped it.
    Stopped,
    /// It panicked.
    Died,
}

/// Why a profile is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Settings were read; they need not have changed.
    Settings,
    /// The user asked for it.
    Command,
    /// The user asked for what there is by now.
    Refresh,
    /// It is time to ask the server again.
    Interval,
    /// The profile was written again.
    Written,
    /// There is a file that was not there when files were listed.
    NewFile,
    /// More came by itself.
    Received,
    /// A file with costs has another text on disk.
    Edited,
}

impl Session {
    /// Before `initialize`.
    pub fn new(editor: Editor) -> Arc<Self> {
        let places = Places::of_this_process();
        let trust = TrustStore::new(places.trust.clone());
        let last = LastQueries::new(places.queries());
        let answers = Answers::new(places.answers());
        let mut state = State::new(trust);
        state.recordings.clone_from(&places.recordings);
        let publisher = Publisher::new(places.shown(), Consents::new(places.consents()));
        Arc::new(Self {
            editor,
            state: Mutex::new(state),
            places,
            profiles: Arc::default(),
            sources: Sources::new(Arc::new(Keeper::of_this_process())),
            last,
            answers,
            may_be_due: Notify::new(),
            publisher,
            watch: OnceLock::new(),
            refresh: Refresh::default(),
            next_token: AtomicU64::new(0),
            has_settings: AtomicBool::new(false),
            is_started: AtomicBool::new(false),
            receiver: Mutex::default(),
            start: Instant::now(),
            last_edit: AtomicU64::new(0),
        })
    }

    /// The state, for a moment: nothing slow and no await while it is held.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The user's files.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Takes in the parameters of `initialize`.
    pub fn initialize(&self, parameters: &Value) {
        let mut state = self.state();
        state.capabilities = Capabilities::read(parameters);
        let options = &parameters["initializationOptions"];
        state.shared = Layers::default();
        state.shared.user_file = self.places.config.as_deref().and_then(TomlFile::read);
        state.shared.initialization_options = if options.is_object() { options.clone() } else { Value::Null };
        for root in roots(parameters) {
            state.add_folder(root);
        }
        for folder in &mut state.folders {
            folder.last = self.last.get(&folder.root);
        }
    }

    /// When the editor is ready: settings, then the profiles that they name. Once.
    pub fn start(self: &Arc<Self>) {
        if self.is_started.swap(true, Ordering::SeqCst) {
            return;
        }
        let session = Arc::clone(self);
        let weak: Weak<Self> = Arc::downgrade(self);
        let runtime = tokio::runtime::Handle::current();
        let _ = self.watch.set(Watch::new(move |files| {
            // The thread that watches is none of the runtime's.
            let _entered = runtime.enter();
            if let Some(session) = weak.upgrade() {
                session.files_changed(&files);
            }
        }));
        // Once: editors answer this with a change of settings.
        if self.state().capabilities.registers_configuration {
            self.editor.watch_settings();
        }
        tokio::spawn(Arc::clone(self).keep_fresh());
        tokio::spawn(async move {
            session.pull_settings().await;
            session.follow_files();
            session.apply_settings();
            session.has_settings.store(true, Ordering::SeqCst);
            session.follow_recordings();
        });
    }

    /// Asks the editor for its settings, where it can be asked.
    pub async fn pull_settings(&self) {
        let folders: Vec<PathBuf> = {
            let state = self.state();
            if !state.capabilities.has_configuration {
                return;
            }
            state.roots()
        };
        for root in folders {
            let Some(settings) = self.editor.settings(Url::from_directory_path(&root).ok()).await else { continue };
            let mut state = self.state();
            let state = &mut *state;
            for folder in state.folders.iter_mut().filter(|folder| folder.root == root) {
                folder.layers.editor.clone_from(&settings);
                folder.read_settings(&state.trust);
            }
        }
    }

    /// Settings came with a notification, or are to be asked for again.
    pub fn settings_changed(self: &Arc<Self>, pushed: &Value) {
        let session = Arc::clone(self);
        let is_pulled = self.state().capabilities.has_configuration;
        if !is_pulled {
            let mut state = self.state();
            let state = &mut *state;
            state.shared.editor = pushed.clone();
            for folder in &mut state.folders {
                folder.layers.editor = pushed.clone();
                folder.read_settings(&state.trust);
            }
        }
        tokio::spawn(async move {
            if is_pulled {
                session.pull_settings().await;
            }
            session.apply_settings();
        });
    }

    /// Tells the user what is wrong with the settings.
    fn report_settings(&self) {
        let issues: Vec<String> = {
            let state = self.state();
            let mut all: Vec<String> = state
                .folders
                .iter()
                .filter(|folder| folder.service.is_none())
                .flat_map(|folder| folder.resolved.issues.iter().map(ToString::to_string))
                .collect();
            all.dedup();
            all
        };
        if !issues.is_empty() {
            self.editor.say(MessageType::WARNING, format!("perflens settings: {}", issues.join("; ")));
        }
    }

    /// The sources.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Does something while the editor shows that, and may cancel it; `None` when it did.
    pub async fn shown<T>(&self, work: impl Future<Output = Option<T>>, title: String) -> Option<T> {
        self.with_progress(work, Some(title), &Stop::default()).await.ok()
    }

    /// Waits for work, and shows progress when it has a title and takes longer than a moment. Work
    /// that comes to nothing has died.
    async fn with_progress<T>(
        &self,
        work: impl Future<Output = Option<T>>,
        title: Option<String>,
        stop: &Stop,
    ) -> Result<T, Interrupted> {
        let work = async {
            tokio::select! {
                result = work => result.ok_or(Interrupted::Died),
                () = stop.stopped() => Err(Interrupted::Stopped),
            }
        };
        tokio::pin!(work);
        let title = title.filter(|_| self.state().capabilities.shows_progress);
        if let Ok(result) = tokio::time::timeout(PROGRESS_AFTER, &mut work).await {
            return result;
        }
        let Some(title) = title else { return work.await };
        let token = self.new_token();
        self.state().progress.insert(token.clone(), stop.clone());
        let editor = self.editor.clone();
        let begun = {
            let token = token.clone();
            tokio::spawn(async move { editor.begin_progress(&token, title).await })
        };
        let result = work.await;
        self.state().progress.remove(&token);
        let editor = self.editor.clone();
        // An editor that is slow to show progress must not hold up the result.
        tokio::spawn(async move {
            if begun.await.unwrap_or(false) {
                editor.end_progress(&token, None).await;
            }
        });
        result
    }

    fn new_token(&self) -> String {
        format!("perflens.{}", self.next_token.fetch_add(1, Ordering::Relaxed))
    }

    /// The user pressed cancel.
    pub fn cancel_progress(&self, token: &str) {
        if let Some(stop) = self.state().progress.get(token) {
            stop.stop();
        }
    }

    /// Watches profiles and settings, and folders for files that the profile has costs for.
    fn follow_files(&self) {
        let anchored = self.anchored_files();
        let watched = {
            let state = self.state();
            let user = [self.places.config.clone(), self.places.consents()].into_iter().flatten();
            let mut watched = Watched {
                files: state.folders.iter().flat_map(Folder::watched).chain(user).chain(anchored).collect(),
                ..Watched::default()
            };
            for folder in &state.folders {
                if let Shown::View(view, workspace) = &folder.shown {
                    let names = view.missed_names().map(OsString::from);
                    watched.names.extend(names);
                    watched.folders.extend(workspace.folders(MAX_WATCHED_FOLDERS));
                }
            }
            if watched.names.is_empty() {
                watched.folders.clear();
            }
            watched
        };
        if let Some(watch) = self.watch.get() {
            watch.set(watched);
        }
    }

    fn files_changed(self: &Arc<Self>, files: &HashSet<PathBuf>) {
        if self.places.consents().is_some_and(|path| files.contains(&path)) {
            self.publisher.forget();
            self.publish();
        }
        let mut are_settings = false;
        let written: Vec<usize> = {
            let mut state = self.state();
            let state = &mut *state;
            let user = self.places.config.as_ref().filter(|path| files.contains(*path));
            if let Some(path) = user {
                state.shared.user_file = TomlFile::read(path);
            }
            for folder in &mut state.folders {
                if user.is_some() || files.contains(&folder.root.join(WORKSPACE_FILE)) {
                    are_settings = true;
                    folder.layers.user_file.clone_from(&state.shared.user_file);
                    folder.read_settings(&state.trust);
                }
            }
            (0..state.folders.len())
                .filter(|&at| {
                    let folder = &state.folders[at];
                    folder.files().any(|file| files.contains(&file) && file.exists())
                })
                .collect()
        };
        for folder in written {
            self.load(folder, Cause::Written);
        }
        let missed: Vec<usize> = {
            let state = self.state();
            let is_missed = |at: usize| {
                let folder = &state.folders[at];
                let view = folder.view()?;
                files
                    .iter()
                    .filter(|path| path.starts_with(&folder.root))
                    .find(|path| path.file_name().is_some_and(|name| view.misses(&name.to_string_lossy())))
            };
            (0..state.folders.len()).filter(|&at| is_missed(at).is_some()).collect()
        };
        for folder in missed {
            self.load(folder, Cause::NewFile);
        }
        self.texts_changed(files);
        if are_settings {
            self.apply_settings();
        }
    }

    /// Settings have been read: tells what is wrong with them, and shows what they say.
    fn apply_settings(self: &Arc<Self>) {
        self.report_settings();
        self.follow_receiver();
        self.load_all();
        // How costs look may have changed; without any there is nothing to look at.
        let has_view = self.state().folders.iter().any(|folder| folder.view().is_some());
        if has_view {
            self.look_again();
        }
    }

    /// Loads what settings name, for each folder and service, where it is not what is shown.
    fn load_all(self: &Arc<Self>) {
        let count = {
            let mut state = self.state();
            state.follow_services();
            state.folders.len()
        };
        self.find_answers();
        self.may_be_due.notify_one();
        for folder in 0..count {
            self.load(folder, Cause::Settings);
        }
    }

    /// Folders were added, whose settings have been read.
    pub fn folders_added(self: &Arc<Self>, added: &[PathBuf]) {
        self.state().follow_services();
        self.find_answers();
        let added: Vec<usize> = {
            let state = self.state();
            (0..state.folders.len()).filter(|&at| added.contains(&state.folders[at].root)).collect()
        };
        for folder in added {
            self.load(folder, Cause::Settings);
        }
    }

    /// A document was opened. When the profile has costs for a file of its name that could not
    /// be found, the list of files may be out of date.
    pub fn document_opened(self: &Arc<Self>, uri: &Url) {
        self.state().pick_service(uri);
        self.publish();
        self.may_be_due.notify_one();
        let folder = {
            let mut state = self.state();
            let Some(document) = state.documents.get(uri) else { return };
            let path = document.path.clone();
            let is_missed = state.snapshot(uri).is_some_and(|snapshot| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                snapshot.view.is_some_and(|view| view.file(&snapshot.file).is_none() && view.misses(&name))
            });
            let Some(at) = state.folder_of(&path).filter(|_| is_missed) else { return };
            state.folders[at].listed_for.insert(path).then_some(at)
        };
        if let Some(folder) = folder {
            self.load(folder, Cause::NewFile);
        }
    }

    /// Has the editor look again at everything that may have changed.
    pub fn look_again(self: &Arc<Self>) {
        let capabilities = self.state().capabilities;
        self.refresh.run(&self.editor, capabilities);
        self.publish();
        self.tell_changed();
        diagnostics::publish(self);
    }

    /// Tells other programs of the user what is shown.
    fn publish(&self) {
        let shown = self.state().shown();
        for (root, view) in shown {
            self.publisher.publish(&root, view.as_ref());
        }
    }

    /// Tells clients of ours that the state is another.
    fn tell_changed(&self) {
        if self.state().capabilities.follows_changes {
            self.editor.tell_changed();
        }
    }

    /// Opens a profile for a folder: a file, or an address.
    pub fn open_profile(
        self: &Arc<Self>,
        folder: usize,
        path: &Path,
        value_type: Option<String>,
    ) -> Result<(), SourceError> {
        {
            let mut state = self.state();
            let state = &mut *state;
            let Some(own) = state.folders.get_mut(folder) else { return Ok(()) };
            own.chosen.profile = Some(Some(Input::of_user(path, &own.root, own.config())?));
            own.layers.set_for_session("query.type", value_type.map_or(Value::Null, Value::String));
            own.read_settings(&state.trust);
        }
        self.load(folder, Cause::Command);
        Ok(())
    }

    /// Where nothing is open or wanted, wants what the settings ask a server for.
    pub fn ask_for_settings(&self, folder: usize) -> Result<(), SourceError> {
        let mut state = self.state();
        let Some(own) = state.folders.get_mut(folder).filter(|own| own.profile().is_none()) else { return Ok(()) };
        if let Some(input) = own.request()? {
            own.chosen.profile = Some(Some(input));
        }
        Ok(())
    }

    /// Trusts a folder's file as it is now; what that allows must have been told before.
    pub fn trust(self: &Arc<Self>, folder: usize) -> Result<(), String> {
        let (store, root, file) = {
            let state = self.state();
            let Some(own) = state.folders.get(folder) else { return Ok(()) };
            // The file as it was read and listed, not as it may be by now.
            let file = own.layers.workspace_file.clone().or_else(|| WorkspaceFile::or_none(&own.root));
            let Some(file) = file else { return Err(format!("{}: there is no such folder", own.root.display())) };
            (state.trust.clone(), own.root.clone(), file)
        };
        // Another process may be writing the store, so nobody must wait for this.
        store.trust(&file).map_err(|error| error.to_string())?;
        {
            let mut state = self.state();
            let state = &mut *state;
            for own in state.folders.iter_mut().filter(|folder| folder.root == root) {
                own.read_settings(&state.trust);
            }
        }
        self.follow_receiver();
        self.load_all();
        self.look_again();
        Ok(())
    }
}

/// What costs most, for when no document that is open has a cost: silence would look like a
/// failure.
fn where_to_look(state: &State, folder: usize) -> Option<String> {
    const ROWS: usize = 3;
    let view = state.folders[folder].view()?;
    let snapshots = state.documents.iter().filter_map(|document| state.snapshot(&document.uri));
    let shown: Vec<Snapshot> =
        snapshots.filter(|it| it.view.as_ref().is_some_and(|own| Arc::ptr_eq(own, view))).collect();
    if shown.is_empty() || shown.iter().any(|snapshot| view.file(&snapshot.file).is_some()) {
        return None;
    }
    let rows = hotspots::list(state, view, Subject::Line, ROWS);
    commands::in_words(&serde_json::json!(rows)).map(|words| format!("hottest: {words}"))
}

/// The workspace folders of `initialize`: the list, else the older single root. What is no
/// folder of this machine is left out.
fn roots(parameters: &Value) -> Vec<PathBuf> {
    let path = |uri: &Value| {
        let url = Url::parse(uri.as_str()?).ok()?;
        let path = file_path(&url)?;
        (path.parent().is_some() && path.is_dir()).then_some(path)
    };
    match parameters["workspaceFolders"].as_array() {
        Some(folders) if !folders.is_empty() => folders.iter().filter_map(|folder| path(&folder["uri"])).collect(),
        _ => path(&parameters["rootUri"])
            .or_else(|| parameters["rootPath"].as_str().map(PathBuf::from).filter(|path| path.is_dir()))
            .into_iter()
            .collect(),
    }
}
