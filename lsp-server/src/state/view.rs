//! A loaded profile with everything that requests ask of it. Immutable, but for what is
//! computed when first asked for.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use profiler_core::attribute::analysis::{Analysis, ComparedTo};
use profiler_core::attribute::narrow::Narrowing;
use profiler_core::attribute::{Costs, FileGroup, Filter, GroupId, Place};
use profiler_core::cancel::{CancelFlag, Cancelled};
use profiler_core::paths::Workspace;
use profiler_core::view::by_file::{ChangeIndex, FileChanges, FileCosts, FileIndex};
use profiler_core::view::hint::{self, Hint, Settings};

use super::text::Text;
use crate::anchor::Texts;
use crate::config::ServiceScope;
use crate::loader::{Part, Wish};

/// What is shown.
#[derive(Debug)]
pub struct View {
    /// The profile's file name.
    pub origin: String,
    /// The base's file name.
    pub base_origin: Option<String>,
    /// What the base is to the user, where it was chosen by that: `before my edit`.
    pub base_title: Option<String>,
    /// Whether it is a recording of this machine.
    pub is_recording: bool,
    /// Its costs.
    pub analysis: Arc<Analysis>,
    /// Where the rows of each file are.
    pub index: FileIndex,
    /// What it is compared with.
    pub comparison: Option<Comparison>,
    /// Texts of the files with costs, as they were on disk when lines were found in them.
    pub texts: Texts,
    /// The filter that leaves most of what is in the workspace and least of the rest.
    pub narrowing: Option<Narrowing>,
    /// What could not be done; sentences.
    pub notes: Vec<String>,
    /// Whose samples hovers tell apart.
    pub services: Vec<Owner>,
    /// When the profile's file was written, as far as that is known.
    pub written: Option<SystemTime>,
    /// What was wished for.
    pub wish: Option<Wish>,
    /// Costs of other value types, once someone asked.
    others: Mutex<HashMap<usize, Arc<Costs>>>,
    /// The hints of whole files, once someone asked.
    hints: Mutex<FileHints>,
}

type FileHints = HashMap<(GroupId, Settings), Arc<[Hint]>>;

/// Hints are kept up to this many; then it starts over.
const MAX_HINTS: usize = 500_000;

/// Whether a file is of a dependency or toolchain, and no copy of it is in the workspace.
fn is_foreign(group: &FileGroup) -> bool {
    group.placement.as_ref().is_some_and(|placement| {
        matches!(placement.place, Place::Dependency | Place::Toolchain) && placement.path.is_none()
    })
}

/// Whose samples are whose.
#[derive(Clone, Debug)]
pub struct Owner {
    /// The service.
    pub name: String,
    /// All must hold.
    pub matchers: Vec<Filter>,
}

impl Owner {
    /// A service: by its matchers, and where the sum is made of its own profile, by that. `None`
    /// when neither tells its samples from others.
    pub fn new(service: &ServiceScope, parts: &[Part]) -> Option<Self> {
        let own = parts.iter().find(|part| parts.len() > 1 && part.service == service.name);
        let own = own.and_then(Part::filter);
        let matchers: Vec<Filter> = service.matchers.iter().cloned().chain(own).collect();
        (!matchers.is_empty()).then(|| Self { name: service.name.clone(), matchers })
    }
}

/// A comparison, and where the rows of each file are in it.
#[derive(Debug)]
pub struct Comparison {
    /// Rows of both sides.
    pub compared: ComparedTo,
    /// Where they are.
    pub index: ChangeIndex,
}

impl View {
    /// Puts a view together.
    pub fn new(
        origin: String,
        analysis: Analysis,
        counts: Option<&Costs>,
        comparison: Option<(String, ComparedTo)>,
        texts: Texts,
        narrowing: Option<Narrowing>,
        notes: Vec<String>,
    ) -> Self {
        let index = FileIndex::new(&analysis, counts);
        let (base_origin, comparison) = match comparison {
            Some((origin, compared)) => {
                let index = ChangeIndex::new(&analysis, &compared);
                (Some(origin), Some(Comparison { compared, index }))
            }
            None => (None, None),
        };
        Self {
            origin,
            base_origin,
            base_title: None,
            is_recording: false,
            analysis: Arc::new(analysis),
            index,
            comparison,
            texts,
            narrowing,
            notes,
            services: Vec::new(),
            written: None,
            wish: None,
            others: Mutex::default(),
            hints: Mutex::default(),
        }
    }

    /// Whether there may be something that is known to compare it with.
    pub fn may_have_bases(&self) -> bool {
        let request = self.wish.as_ref().and_then(|wish| wish.profile.request());
        self.is_recording || request.is_some_and(|request| request.query.is_some())
    }

    /// The costs of a file of this machine.
    pub fn file(&self, path: &Path) -> Option<FileCosts<'_>> {
        let file = self.index.at(&self.analysis, path)?;
        Some(self.group(file))
    }

    /// The path by which the profile names a file of a dependency or toolchain that is here on
    /// this machine. `None` unless it is of the very same version: lines of another would be
    /// other lines.
    pub fn foreign_path(&self, workspace: &Workspace, path: &Path) -> Option<PathBuf> {
        let (own, name) = (workspace.versioned(path.to_str()?)?, path.file_name()?.to_str()?);
        let profile = &self.analysis.profile;
        let groups = self.analysis.groups.all().iter().filter(|group| is_foreign(group));
        groups
            .flat_map(|group| &group.files)
            .map(|&file| profile.path(file))
            .find(|path| path.rsplit('/').next() == Some(name) && workspace.versioned(path).as_ref() == Some(&own))
            .map(PathBuf::from)
    }

    /// Whether a path is known to be of a dependency or toolchain.
    pub fn is_foreign(&self, path: &Path) -> bool {
        let group = self.index.at(&self.analysis, path);
        group.is_some_and(|group| is_foreign(self.analysis.groups.get(group)))
    }

    /// The costs of a file of the profile.
    pub fn group(&self, file: GroupId) -> FileCosts<'_> {
        FileCosts { analysis: &self.analysis, index: &self.index, file }
    }

    /// The changes in a file, in a comparison.
    pub fn changes<'a>(&'a self, file: FileCosts<'a>) -> Option<FileChanges<'a>> {
        let comparison = self.comparison.as_ref()?;
        let name = self.analysis.groups.display(&self.analysis.profile, file.file);
        Some(FileChanges { analysis: &self.analysis, compared: &comparison.compared, index: &comparison.index, name })
    }

    /// Paths of the profile with this file name that have no file here, each with the reason.
    pub fn unmatched(&self, name: &str) -> Vec<String> {
        let profile = &self.analysis.profile;
        let named = |path: &str| path.rsplit('/').next() == Some(name);
        (self.analysis.groups.all().iter())
            .filter_map(|group| Some((profile.path(*group.files.first()?), group.placement.as_ref()?)))
            .filter(|(path, placement)| placement.path.is_none() && named(path))
            .map(|(path, placement)| format!("{path}: {}", placement.evidence))
            .collect()
    }

    /// Names of files that the profile has costs for and that were not found.
    pub fn missed_names(&self) -> impl Iterator<Item = &str> {
        let profile = &self.analysis.profile;
        (self.analysis.groups.all().iter())
            .filter(|group| group.placement.as_ref().is_some_and(|placement| placement.path.is_none()))
            .filter_map(|group| profile.path(*group.files.first()?).rsplit('/').next())
    }

    /// Whether the profile has costs for a file of this name that was not found.
    pub fn misses(&self, name: &str) -> bool {
        !self.unmatched(name).is_empty()
    }

    /// The text of a file that the view's lines are of.
    pub fn profiled_text(&self, path: &Path) -> Option<&Arc<Text>> {
        self.texts.get(path)
    }

    /// The costs of another value type; computed at the first time, so not for the loop.
    pub fn costs_of(&self, value_type: usize, cancel: &CancelFlag) -> Result<Arc<Costs>, Cancelled> {
        let known = |others: &Mutex<HashMap<usize, Arc<Costs>>>| {
            others.lock().unwrap_or_else(PoisonError::into_inner).get(&value_type).cloned()
        };
        if let Some(costs) = known(&self.others) {
            return Ok(costs);
        }
        let costs = Arc::new(self.analysis.costs_of(value_type, cancel)?);
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(others.entry(value_type).or_insert(costs)))
    }

    /// The hints of a file, in its order. Which lines have one depends on all of them, so they
    /// are made for the whole file, and once: it is asked for with every keystroke.
    pub fn hints(&self, file: FileCosts<'_>, settings: &Settings) -> Arc<[Hint]> {
        let key = (file.file, *settings);
        let lock = || self.hints.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hints) = lock().get(&key) {
            return Arc::clone(hints);
        }
        let made = match self.changes(file) {
            Some(changes) => hint::change_hints(changes, 1..=u32::MAX, settings),
            None => hint::hints(file, 1..=u32::MAX, settings),
        };
        // What only the base has is no line of the document.
        let made: Arc<[Hint]> = made.into_iter().filter(|hint| !hint.is_gone).collect();
        let mut kept = lock();
        if kept.values().map(|hints| hints.len()).sum::<usize>() + made.len() > MAX_HINTS {
            kept.clear();
        }
        kept.insert(key, Arc::clone(&made));
        made
    }
}
