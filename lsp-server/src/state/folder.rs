//! One workspace folder: its settings, and what is shown for its files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use profiler_core::cancel::CancelFlag;
use profiler_core::paths::Workspace;

use super::view::View;
use crate::config::toml_file::WorkspaceFile;
use crate::config::trust::{Trust, TrustStore};
use crate::config::{Config, Layers, Resolved};
use crate::loader::Wish;

/// A workspace folder.
#[derive(Debug)]
pub struct Folder {
    /// As the editor gave it.
    pub root: PathBuf,
    /// Where its settings come from.
    pub layers: Layers,
    /// Whether its own file may set everything.
    pub trust: Trust,
    /// The settings in force.
    pub resolved: Resolved,
    /// What the user wants to see; outlives the settings that started it.
    pub wanted: Wanted,
    /// What is shown.
    pub shown: Shown,
    /// Counts wishes; a load that comes back under another number is thrown away.
    pub generation: u64,
    /// Stops the load that is under way.
    pub load: Option<CancelFlag>,
}

/// What the user wants to see, where it differs from the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The profile.
    pub profile: Option<PathBuf>,
    /// The base.
    pub base: Option<PathBuf>,
}

/// What is shown for a folder.
#[derive(Clone, Debug, Default)]
pub enum Shown {
    /// No profile was opened.
    #[default]
    Nothing,
    /// A profile is being opened, and nothing was shown before.
    Loading {
        /// Its file name.
        origin: String,
    },
    /// A profile.
    View(Arc<View>, Arc<Workspace>),
    /// A profile could not be opened.
    Failed {
        /// Why; one sentence.
        why: String,
    },
}

impl Folder {
    /// A folder with the user's and its own settings.
    pub fn new(root: PathBuf, shared: &Layers, store: &TrustStore) -> Self {
        let mut folder = Self {
            root,
            layers: shared.clone(),
            trust: Trust::Untrusted,
            resolved: Resolved::default(),
            wanted: Wanted::default(),
            shown: Shown::Nothing,
            generation: 0,
            load: None,
        };
        folder.read_settings(store);
        folder.wanted = folder.configured();
        folder
    }

    /// Reads the folder's own file again and lays all settings over each other.
    pub fn read_settings(&mut self, store: &TrustStore) {
        self.layers.workspace_file = WorkspaceFile::read(&self.root);
        let is_trusted_by_editor = self.layers.is_trusted_by_editor();
        self.trust = Trust::of(self.layers.workspace_file.as_ref(), is_trusted_by_editor, store);
        self.resolved = self.layers.resolve(self.trust);
    }

    /// What the settings say to show.
    pub fn configured(&self) -> Wanted {
        let config = self.config();
        Wanted { profile: config.source_file(&self.root), base: config.base_file(&self.root) }
    }

    /// The settings in force.
    pub fn config(&self) -> &Config {
        &self.resolved.config
    }

    /// The wish as a whole; `None` when no profile is wanted. `others` are the other folders
    /// of the session, whose files count as well.
    pub fn wish(&self, others: &[PathBuf]) -> Option<Wish> {
        let config = self.config();
        let mut roots = config.roots(&self.root);
        roots.extend(others.iter().filter(|other| **other != self.root).cloned());
        Some(Wish {
            profile: self.wanted.profile.clone()?,
            base: self.wanted.base.clone(),
            normalize: config.query.normalize,
            value_type: config.query.value_type.clone(),
            filters: config.query.filters.clone(),
            roots,
            rules: config.path_rules(),
            max_files: usize::try_from(config.limits.workspace_files.get()).unwrap_or(usize::MAX),
            max_bytes: u64::from(config.limits.profile_mebibytes.get()) << 20,
        })
    }

    /// What is shown, if a profile is.
    pub fn view(&self) -> Option<&Arc<View>> {
        match &self.shown {
            Shown::View(view, _) => Some(view),
            _ => None,
        }
    }

    /// Whether a file is below this folder; how deep the folder is, to find the closest.
    pub fn depth_above(&self, path: &Path) -> Option<usize> {
        path.starts_with(&self.root).then(|| self.root.components().count())
    }
}
