//! What the server knows between requests.
//!
//! One [`State`] behind one lock that is held for moments: writers are few (edits, settings,
//! "a profile is ready"), and readers take `Arc`s out and let go. Notifications change it in
//! the order in which they arrive; a request takes its [`Snapshot`] before its first await,
//! so it sees exactly what came before it.

pub mod capabilities;
pub mod documents;
pub mod folder;
pub mod line_map;
pub mod text;
pub mod under_way;
pub mod view;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsp_types::{Command, Url};

use crate::config::trust::TrustStore;
use crate::config::{Config, Layers, ServiceScope};
use crate::loader::Stop;
use crate::otlp::Window;
use crate::runnable::{self, Offer};
use capabilities::Capabilities;
use documents::{Document, Documents, file_path};
use folder::{Folder, Shown};
use text::Text;
use under_way::UnderWay;
use view::View;

/// Everything that changes.
#[derive(Debug)]
pub struct State {
    /// What the editor can do.
    pub capabilities: Capabilities,
    /// The workspace folders; one without a folder on disk when the editor has none.
    pub folders: Vec<Folder>,
    /// Open documents.
    pub documents: Documents,
    /// Settings that are the same for all folders.
    pub shared: Layers,
    /// Which workspaces the user trusts.
    pub trust: TrustStore,
    /// Index of the folder whose profile was opened last.
    pub latest: Option<usize>,
    /// The document that was opened last.
    pub picked: Option<PathBuf>,
    /// The place in the list of hot spots that was gone to last.
    pub hotspot: Option<usize>,
    /// What stops the work that each progress is about.
    pub progress: HashMap<String, Stop>,
    /// Choices that a dialog could not offer, as commands; shown as code actions until one is
    /// taken.
    pub offers: Vec<Command>,
    /// The recording that is under way.
    pub recording: Option<UnderWay>,
    /// The folder of all recordings.
    pub recordings: Option<PathBuf>,
    /// Recordings that were opened already.
    pub recordings_seen: HashSet<PathBuf>,
    /// The receiver of OTLP.
    pub receiving: Receiving,
}

/// Whether profiles are received.
#[derive(Clone, Debug, Default)]
pub enum Receiving {
    /// No folder's settings want it.
    #[default]
    Off,
    /// They can't be; a sentence.
    Failed(String),
    /// They are.
    On {
        /// The port for gRPC.
        grpc_port: u16,
        /// The port for HTTP.
        http_port: u16,
        /// What came.
        window: Arc<Window>,
    },
}

impl Receiving {
    /// What came, if anything may.
    pub fn window(&self) -> Option<&Arc<Window>> {
        match self {
            Self::On { window, .. } => Some(window),
            Self::Off | Self::Failed(_) => None,
        }
    }
}

/// What a request about a document may see.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// What the editor can do.
    pub capabilities: Capabilities,
    /// The settings of the document's folder.
    pub config: Arc<Config>,
    /// The document as of now.
    pub document: Arc<Document>,
    /// What is shown for it.
    pub view: Option<Arc<View>>,
    /// Which file of the view the document is.
    pub file: PathBuf,
    /// The workspace folder that the document is in.
    pub root: PathBuf,
}

impl Snapshot {
    /// What of the document can be profiled.
    pub fn offers(&self) -> Vec<Offer> {
        // The first folder stands in for what belongs to none; nothing there is run in its name.
        if !self.document.path.starts_with(&self.root) {
            return Vec::new();
        }
        runnable::offers(self.document.runnables(), &self.config.tasks, &self.root, &self.document.path)
    }
}

impl State {
    /// Before `initialize`.
    pub fn new(trust: TrustStore) -> Self {
        Self {
            capabilities: Capabilities::default(),
            folders: Vec::new(),
            documents: Documents::default(),
            shared: Layers::default(),
            trust,
            latest: None,
            picked: None,
            hotspot: None,
            progress: HashMap::new(),
            offers: Vec::new(),
            recording: None,
            recordings: None,
            recordings_seen: HashSet::new(),
            receiving: Receiving::Off,
        }
    }

    /// Adds a folder; whether it is new.
    pub fn add_folder(&mut self, root: PathBuf) -> bool {
        let is_new = self.folders.iter().all(|folder| folder.root != root);
        if is_new {
            self.folders.push(Folder::new(root, &self.shared, &self.trust));
        }
        is_new
    }

    /// Takes a folder away, with what was shown for it.
    pub fn remove_folder(&mut self, root: &Path) {
        let latest = self.latest.and_then(|at| self.folders.get(at)).map(|folder| folder.scope().to_owned());
        for folder in self.folders.extract_if(.., |folder| folder.root == root) {
            if let Some(load) = folder.load {
                load.stop();
            }
        }
        self.latest = latest.and_then(|scope| self.folders.iter().position(|folder| folder.scope() == scope));
    }

    /// Has an entry for each service that the settings of its folder name, and no others.
    pub fn follow_services(&mut self) {
        let own = |folder: &Folder| (folder.root.clone(), folder.service.clone());
        let latest = self.latest.and_then(|at| self.folders.get(at)).map(own);
        let wanted: Vec<(PathBuf, ServiceScope)> = (self.folders.iter().filter(|folder| folder.service.is_none()))
            .flat_map(|folder| folder.config().services(&folder.root).into_iter().map(|it| (folder.root.clone(), it)))
            .collect();
        let is_wanted = |folder: &Folder| {
            let service = folder.service.as_ref();
            service.is_none_or(|service| wanted.iter().any(|(root, it)| *root == folder.root && it == service))
        };
        let gone: Vec<Folder> = self.folders.extract_if(.., |folder| !is_wanted(folder)).collect();
        for load in gone.iter().filter_map(|folder| folder.load.as_ref()) {
            load.stop();
        }
        for (root, service) in wanted {
            let is_there = |folder: &Folder| folder.root == root && folder.service.as_ref() == Some(&service);
            if !self.folders.iter().any(is_there)
                && let Some(folder) = self.folders.iter().find(|folder| folder.root == root)
            {
                let folder = folder.with_service(service);
                self.folders.push(folder);
            }
        }
        self.latest = latest.and_then(|latest| self.folders.iter().position(|folder| own(folder) == latest));
        if !gone.is_empty() {
            self.place_documents();
        }
    }

    /// The workspace folders, each once.
    pub fn roots(&self) -> Vec<PathBuf> {
        self.folders.iter().filter(|folder| folder.service.is_none()).map(|folder| folder.root.clone()).collect()
    }

    /// The folder a file belongs to: the closest above it, else the first.
    pub fn folder_of(&self, path: &Path) -> Option<usize> {
        (0..self.folders.len())
            .filter_map(|at| Some((self.folders[at].depth_above(path)?, at)))
            .max_by_key(|&(depth, at)| (depth, std::cmp::Reverse(at)))
            .map(|(_, at)| at)
            .or_else(|| (!self.folders.is_empty()).then_some(0))
    }

    /// What is shown for a file: the view of its service or folder, else the one that was
    /// opened last.
    pub fn view_of(&self, path: &Path) -> Option<&Folder> {
        let own = self.folder_of(path).map(|at| &self.folders[at]);
        let around = || {
            let root = &own?.root;
            self.folders.iter().find(|folder| folder.service.is_none() && folder.root == *root)
        };
        own.filter(|folder| folder.view().is_some())
            .or_else(|| around().filter(|folder| folder.view().is_some()))
            .or_else(|| self.latest_folder().filter(|folder| folder.view().is_some()))
            .or(own)
    }

    /// The folder whose profile was opened last.
    pub fn latest_folder(&self) -> Option<&Folder> {
        self.latest.and_then(|at| self.folders.get(at)).or_else(|| self.folders.first())
    }

    /// What is shown of each workspace folder: what commands are about, where that is of the folder.
    pub fn shown(&self) -> Vec<(PathBuf, Option<Arc<View>>)> {
        let latest = self.latest_folder();
        let of = |root: &PathBuf| {
            let whole = self.folders.iter().find(|folder| folder.service.is_none() && folder.root == *root);
            let mut folders = latest.filter(|folder| folder.root == *root).into_iter().chain(whole);
            folders.find_map(Folder::view).cloned()
        };
        self.roots().into_iter().map(|root| (root.clone(), of(&root))).collect()
    }

    /// What a request about a document may see; `None` for documents that are not open or are
    /// no files.
    pub fn snapshot(&self, uri: &Url) -> Option<Snapshot> {
        let document = self.documents.get(uri)?;
        let folder = self.view_of(&document.path)?;
        Some(Snapshot {
            capabilities: self.capabilities,
            config: Arc::new(folder.config().clone()),
            document: Arc::clone(document),
            view: folder.view().cloned(),
            file: document.file.clone(),
            root: self.folder_of(&document.path).map(|at| self.folders[at].root.clone()).unwrap_or_default(),
        })
    }

    /// A document is being looked at: in a folder with services, it picks the one that commands
    /// are about.
    pub fn pick_service(&mut self, uri: &Url) {
        self.picked = file_path(uri);
        if let Some(at) = self.picked_service() {
            self.latest = Some(at);
            self.hotspot = None;
        }
    }

    /// What is shown for the document that is being looked at, in a folder with services.
    fn picked_service(&self) -> Option<usize> {
        let at = self.folder_of(self.picked.as_ref()?)?;
        let root = &self.folders[at].root;
        let has_services = self.folders.iter().any(|folder| folder.service.is_some() && folder.root == *root);
        (has_services && self.folders[at].wish.is_some()).then_some(at)
    }

    /// A profile was loaded for a folder: commands are about that, or about what the document
    /// that is being looked at picks, unless the user asked for it.
    pub fn loaded(&mut self, folder: usize, is_asked_for: bool) {
        let picked = self.picked_service();
        if is_asked_for && picked != Some(folder) {
            self.picked = None;
        }
        match picked {
            Some(picked) if !is_asked_for => self.latest = Some(picked),
            // Services come along with their folder.
            _ if is_asked_for || self.latest.is_none() || self.folders[folder].service.is_none() => {
                self.latest = Some(folder);
            }
            _ => {}
        }
    }

    /// Opens a document.
    pub fn open_document(&mut self, uri: Url, version: i32, content: String) {
        let Some(path) = file_path(&uri) else { return };
        if self.folders.is_empty()
            && let Some(parent) = path.parent()
        {
            // A single file, without a workspace. Nothing is listed before a profile is opened.
            self.add_folder(parent.to_owned());
        }
        let text = Text::new(content);
        let map = line_map::LineMap::identity(&text);
        let document =
            Document { uri, file: path.clone(), path, version, text, map, profiled: None, runnables: Arc::default() };
        let document = self.placed(document);
        self.documents.open(document);
    }

    /// Finds out which file of the profile a document is, and which lines its lines are.
    fn placed(&self, mut document: Document) -> Document {
        if let Some(folder) = self.view_of(&document.path)
            && let Shown::View(view, workspace) = &folder.shown
        {
            document.file = match workspace.file_at(&document.path) {
                Some(file) => file.path,
                None => match view.foreign_path(workspace, &document.path) {
                    Some(path) => path,
                    // The same path, but nobody knows whether it is the same text.
                    None if view.is_foreign(&document.path) => PathBuf::new(),
                    None => document.path.clone(),
                },
            };
            document.remap(view.profiled_text(&document.file).cloned());
        }
        document
    }

    /// Shows a view for a folder.
    pub fn show(&mut self, folder: usize, shown: Shown) {
        self.folders[folder].shown = shown;
        self.hotspot = None;
        self.place_documents();
    }

    fn place_documents(&mut self) {
        // Beside what there is: should this fail, no document is lost.
        let placed: Vec<Document> =
            self.documents.iter().map(|document| self.placed(Document::clone(document))).collect();
        for document in placed {
            self.documents.open(document);
        }
    }
}
