//! One workspace folder, or a service in one: its settings, and what is shown for its files.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use profiler_core::paths::{Rule, Workspace};
use serde_json::Value;

use super::view::View;
use crate::config::toml_file::{WORKSPACE_FILE, WorkspaceFile};
use crate::config::trust::{Trust, TrustStore};
use crate::config::{Config, Layers, PathRule, Resolved, ServiceScope};
use crate::loader::{Input, Part, RunPair, Stop, Wish};
use crate::source::{ProfileQuery, Request, SourceError, settings};

/// A workspace folder, or a service in one: what has a view of its own.
#[derive(Debug)]
pub struct Folder {
    /// The workspace folder as the editor gave it.
    pub root: PathBuf,
    /// The service in it; `None` for the folder as a whole, which is the sum of its services.
    pub service: Option<ServiceScope>,
    /// Where its settings come from.
    pub layers: Layers,
    /// Whether its own file may set everything.
    pub trust: Trust,
    /// The settings in force.
    pub resolved: Resolved,
    /// What was last asked of a server here, in this session or before.
    pub last: Option<ProfileQuery>,
    /// Whether the answer to what the settings ask for is on disk.
    pub has_answer: bool,
    /// How asking again goes.
    pub following: Following,
    /// What the user chose in this session, instead of what the settings say.
    pub chosen: Chosen,
    /// What is shown, or on its way.
    pub wish: Option<Wish>,
    /// Documents whose opening has led to a new listing of files; each does once.
    pub listed_for: HashSet<PathBuf>,
    /// What is shown.
    pub shown: Shown,
    /// Counts wishes; a load that comes back under another number is thrown away.
    pub generation: u64,
    /// Stops the load that is under way.
    pub load: Option<Stop>,
    /// What was chosen when what is shown was loaded, to go back to when something else can't be.
    pub worked: Option<(Chosen, Value)>,
}

/// How asking a server again goes.
#[derive(Clone, Debug, Default)]
pub struct Following {
    /// When there was last an answer, or none.
    pub asked_at: Option<Instant>,
    /// How often it has failed since it last did not.
    pub failures: u32,
    /// How it fails; one sentence.
    pub problem: Option<String>,
}

/// What the user chose to see. The outer `None` leaves it to the settings, the inner one means
/// nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// The profile.
    pub profile: Option<Option<Input>>,
    /// The base.
    pub base: Option<Option<Input>>,
    /// What a base is called besides its name, as long as it is the base.
    pub title: Option<(Input, String)>,
    /// Pairs of runs, as long as profile and base are the first of them.
    pub runs: Vec<RunPair>,
    /// What paths mean, besides the rules of the settings; of equal prefixes these count.
    pub rules: Vec<PathRule>,
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
            service: None,
            layers: shared.clone(),
            trust: Trust::Untrusted,
            resolved: Resolved::default(),
            last: None,
            has_answer: false,
            following: Following::default(),
            chosen: Chosen::default(),
            wish: None,
            listed_for: HashSet::new(),
            shown: Shown::Nothing,
            generation: 0,
            load: None,
            worked: None,
        };
        folder.read_settings(store);
        folder
    }

    /// A service of this folder, with the folder's settings and nothing shown yet.
    #[must_use]
    pub fn with_service(&self, service: ServiceScope) -> Self {
        Self {
            root: self.root.clone(),
            service: Some(service),
            layers: self.layers.clone(),
            trust: self.trust,
            resolved: self.resolved.clone(),
            last: self.last.clone(),
            has_answer: false,
            following: Following::default(),
            chosen: Chosen::default(),
            wish: None,
            listed_for: HashSet::new(),
            shown: Shown::Nothing,
            generation: 0,
            load: None,
            worked: None,
        }
    }

    /// The folder whose files this is for.
    pub fn scope(&self) -> &Path {
        self.service.as_ref().map_or(&self.root, |service| &service.folder)
    }

    /// Reads the folder's own file again and lays all settings over each other.
    pub fn read_settings(&mut self, store: &TrustStore) {
        self.layers.workspace_file = WorkspaceFile::read(&self.root);
        let is_trusted_by_editor = self.layers.is_trusted_by_editor();
        // Programs of the folder may be run when it is trusted, also where there is no file.
        let trusted = self.layers.workspace_file.clone().or_else(|| WorkspaceFile::or_none(&self.root));
        self.trust = Trust::of(trusted.as_ref(), is_trusted_by_editor, store);
        self.resolved = self.layers.resolve(self.trust);
    }

    /// The profile to show; `None` when there is none, or several.
    pub fn profile(&self) -> Option<Input> {
        let of_settings = || {
            let own = self.service.as_ref().and_then(|service| service.profile.clone());
            let file = own.or_else(|| self.config().source_file(&self.root)).map(Input::File);
            file.or_else(|| {
                if self.config().source.at_start || self.has_answer { self.request().ok().flatten() } else { None }
            })
        };
        self.chosen.profile.clone().unwrap_or_else(of_settings)
    }

    /// The profiles whose sum is shown: those of the services of a folder that has none itself.
    fn parts(&self) -> Vec<Part> {
        if self.service.is_some() || self.chosen.profile.is_some() || self.config().source.file.is_some() {
            return Vec::new();
        }
        let services = self.config().services(&self.root).into_iter();
        services.filter_map(|service| Some(Part { profile: service.profile?, service: service.name })).collect()
    }

    /// Whether a profile is wanted.
    pub fn has_profile(&self) -> bool {
        self.profile().is_some() || !self.parts().is_empty()
    }

    /// What the settings ask a server for, whether it is fetched at start or not.
    pub fn request(&self) -> Result<Option<Input>, SourceError> {
        let of_settings = settings::request(self.config(), &self.root)?;
        // What was last asked here, if there is a server to ask.
        let last = match (&self.last, settings::connection(&self.config().source, &self.root)?) {
            (Some(query), Some(connection)) => Some(Request { connection, query: Some(query.clone()) }),
            _ => None,
        };
        Ok(last.or(of_settings).map(|request| Input::Remote(Box::new(request))))
    }

    /// What the server is sent for that: a service's own labels are part of it.
    pub fn request_with_labels(&self) -> Option<Request> {
        let input = self.request().ok().flatten()?;
        let labels = self.service.as_ref().map(|service| service.matchers.as_slice()).unwrap_or_default();
        input.of_labels(labels).request().cloned()
    }

    /// The profile to compare with.
    pub fn base(&self) -> Option<Input> {
        self.chosen.base.clone().unwrap_or_else(|| self.config().base_file(&self.root).map(Input::File))
    }

    /// The files that profile and base are read from.
    pub fn files(&self) -> impl Iterator<Item = PathBuf> + use<> {
        let inputs = self.profile().into_iter().chain(self.base());
        let parts = self.parts().into_iter().map(|part| part.profile);
        inputs.filter_map(|input| input.file().map(Path::to_owned)).chain(parts)
    }

    /// The files whose change changes what is shown.
    pub fn watched(&self) -> impl Iterator<Item = PathBuf> {
        let settings = std::iter::once(self.root.join(WORKSPACE_FILE));
        let profiles = self.config().refresh.watch.then(|| self.files());
        settings.chain(profiles.into_iter().flatten())
    }

    /// The settings in force.
    pub fn config(&self) -> &Config {
        &self.resolved.config
    }

    /// The wish as a whole; `None` when no profile is wanted. `others` are the other folders
    /// of the session, whose files count as well.
    pub fn new_wish(&self, others: &[PathBuf]) -> Option<Wish> {
        let config = self.config();
        let mut roots = config.roots(&self.root);
        roots.extend(others.iter().filter(|other| **other != self.root).cloned());
        let parts = self.parts();
        let mut filters = config.query.filters.clone();
        let (mut profile, mut base) = (self.profile(), self.base());
        let (services, preferred) = match &self.service {
            Some(service) => {
                // A server is asked for no others; its answer has no labels to tell them by. In a
                // file, a profile of its own is its own, unless it says otherwise.
                profile = profile.map(|input| input.of_labels(&service.matchers));
                base = base.map(|input| input.of_labels(&service.matchers));
                if profile.as_ref().is_none_or(|input| input.request().is_none()) {
                    filters.extend(service.matchers.iter().cloned());
                }
                (Vec::new(), Some(service.folder.clone()))
            }
            None => (config.services(&self.root), None),
        };
        let is_query = profile.as_ref().and_then(Input::request).is_some_and(|request| request.query.is_some());
        let chosen = |rule: &Rule| self.chosen.rules.iter().any(|chosen| chosen.from == rule.from);
        let rules = config.path_rules().into_iter().filter(|rule| !chosen(rule));
        let runs = self.runs(profile.as_ref(), base.as_ref());
        Some(Wish {
            profile: profile.or_else(|| Some(Input::File(parts.first()?.profile.clone())))?,
            parts,
            services,
            preferred,
            base_title: self.chosen.title.clone().filter(|(of, _)| Some(of) == base.as_ref()).map(|(_, title)| title),
            runs,
            base,
            normalize: config.query.normalize,
            // The answer to a query has the one type that was asked for.
            value_type: if is_query { None } else { config.query.value_type.clone() },
            filters,
            roots,
            rules: rules.chain(self.chosen.rules.iter().map(Rule::from)).collect(),
            commits: config.paths.commits(),
            debug_dirs: config.symbols.debug_dirs.iter().map(|dir| self.root.join(dir)).collect(),
            max_files: usize::try_from(config.limits.workspace_files.get()).unwrap_or(usize::MAX),
            max_bytes: u64::from(config.limits.profile_mebibytes.get()) << 20,
        })
    }

    /// The pairs of runs that profile and base are the first of.
    fn runs(&self, profile: Option<&Input>, base: Option<&Input>) -> Vec<RunPair> {
        let files = profile.and_then(Input::file).zip(base.and_then(Input::file));
        let is_first =
            self.chosen.runs.first().is_some_and(|pair| files == Some((pair.new.as_path(), pair.base.as_path())));
        if is_first { self.chosen.runs.clone() } else { Vec::new() }
    }

    /// What is shown, if a profile is.
    pub fn view(&self) -> Option<&Arc<View>> {
        match &self.shown {
            Shown::View(view, _) => Some(view),
            _ => None,
        }
    }

    /// Remembers what was chosen: it works.
    pub fn keep_choice(&mut self) {
        self.worked = Some((self.chosen.clone(), self.layers.session().clone()));
    }

    /// Goes back to what was chosen when it last worked.
    pub fn restore_choice(&mut self, store: &TrustStore) {
        if let Some((chosen, session)) = self.worked.clone() {
            self.chosen = chosen;
            self.layers.restore_session(session);
            self.read_settings(store);
        }
    }

    /// Whether a file is below this folder; how deep the folder is, to find the closest.
    pub fn depth_above(&self, path: &Path) -> Option<usize> {
        path.starts_with(self.scope()).then(|| self.scope().components().count())
    }
}
