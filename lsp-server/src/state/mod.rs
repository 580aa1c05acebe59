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
pub mod view;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsp_types::{Command, Url};

use crate::config::trust::TrustStore;
use crate::config::{Config, Layers};
use crate::loader::Stop;
use capabilities::Capabilities;
use documents::{Document, Documents, file_path};
use folder::{Folder, Shown};
use text::Text;
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
    /// The place in the list of hot spots that was gone to last.
    pub hotspot: Option<usize>,
    /// What stops the work that each progress is about.
    pub progress: HashMap<String, Stop>,
    /// Choices that a dialog could not offer, as commands; shown as code actions until one is
    /// taken.
    pub offers: Vec<Command>,
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
            hotspot: None,
            progress: HashMap::new(),
            offers: Vec::new(),
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
        let latest = self.latest.and_then(|at| self.folders.get(at)).map(|folder| folder.root.clone());
        if let Some(at) = self.folders.iter().position(|folder| folder.root == root) {
            let folder = self.folders.remove(at);
            if let Some(load) = folder.load {
                load.stop();
            }
        }
        self.latest = latest.and_then(|root| self.folders.iter().position(|folder| folder.root == root));
    }

    /// The folder a file belongs to: the closest above it, else the first.
    pub fn folder_of(&self, path: &Path) -> Option<usize> {
        (0..self.folders.len())
            .filter_map(|at| Some((self.folders[at].depth_above(path)?, at)))
            .max_by_key(|&(depth, at)| (depth, std::cmp::Reverse(at)))
            .map(|(_, at)| at)
            .or_else(|| (!self.folders.is_empty()).then_some(0))
    }

    /// What is shown for a file: its folder's view, else the one that was opened last.
    pub fn view_of(&self, path: &Path) -> Option<&Folder> {
        let own = self.folder_of(path).map(|at| &self.folders[at]);
        own.filter(|folder| folder.view().is_some())
            .or_else(|| self.latest_folder().filter(|folder| folder.view().is_some()))
            .or(own)
    }

    /// The folder whose profile was opened last.
    pub fn latest_folder(&self) -> Option<&Folder> {
        self.latest.and_then(|at| self.folders.get(at)).or_else(|| self.folders.first())
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
        })
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
        let document = Document { uri, file: path.clone(), path, version, text, map, profiled: None };
        let document = self.placed(document);
        self.documents.open(document);
    }

    /// Finds out which file of the profile a document is, and which lines its lines are.
    fn placed(&self, mut document: Document) -> Document {
        if let Some(folder) = self.view_of(&document.path)
            && let Shown::View(view, workspace) = &folder.shown
        {
            document.file = workspace.file_at(&document.path).map_or_else(|| document.path.clone(), |file| file.path);
            document.remap(view.profiled_text(&document.file).cloned());
        }
        document
    }

    /// Shows a view for a folder.
    pub fn show(&mut self, folder: usize, shown: Shown) {
        self.folders[folder].shown = shown;
        self.hotspot = None;
        // Beside what there is: should this fail, no document is lost.
        let placed: Vec<Document> =
            self.documents.iter().map(|document| self.placed(Document::clone(document))).collect();
        for document in placed {
            self.documents.open(document);
        }
    }
}
