//! The workspace as path resolution knows it: roots, the list of their files, what build
//! systems say about them, and the user's rules.
//!
//! Opened once and then immutable; when files come or go, it is opened again.

use std::fmt;
use std::path::{Path, PathBuf};

use super::ecosystem::{Claim, Ecosystems, Query};
use super::index::{Index, OnDisk};
use super::resolution::{OutsideKind, PathQuery, Resolution, WorkspaceFile};
use super::rules::{Rule, Rules};
use super::source_path::{Case, SourcePath};
use super::{clean, resolver};
use crate::cancel::CancelFlag;

/// How a workspace is read.
#[derive(Clone, Debug)]
pub struct WorkspaceOptions {
    /// Whether file names that differ in case only are one file.
    pub case: Case,
    /// The most files to list. Beyond it the list is incomplete, and guesses are refused that
    /// an unlisted file could prove wrong.
    pub max_files: usize,
    /// The user's rules. Their order does not matter: the longest prefix wins.
    pub rules: Vec<Rule>,
    /// Of files that fit a path equally well, the one below this folder is meant.
    pub preferred: Option<PathBuf>,
}

impl Default for WorkspaceOptions {
    fn default() -> Self {
        Self { case: Case::default(), max_files: 200_000, rules: Vec::new(), preferred: None }
    }
}

/// Something that went wrong while a workspace was read. The rest of it works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A root is missing or closed to us.
    RootUnreadable {
        /// As it was given.
        root: PathBuf,
        /// What the system says.
        error: String,
    },
    /// There are more files than were allowed to be listed.
    TooManyFiles {
        /// How many were allowed.
        limit: usize,
    },
    /// The flag was tripped before all files were listed.
    Stopped {
        /// How many are listed.
        files: usize,
    },
    /// A manifest can't be read; its package is unknown.
    Manifest {
        /// Path of the manifest, relative to its root.
        relative: String,
        /// What is wrong with it.
        error: String,
    },
    /// A rule without a prefix would apply to every path. It is ignored.
    EmptyRule,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RootUnreadable { root, error } => write!(f, "{}: {error}", root.display()),
            Self::TooManyFiles { limit } => write!(f, "the workspace has more than {limit} files"),
            Self::Stopped { files } => write!(f, "listing files took too long; {files} are known"),
            Self::Manifest { relative, error } => write!(f, "{relative}: {error}"),
            Self::EmptyRule => f.write_str("a path rule without a prefix is ignored"),
        }
    }
}

/// Everything that paths of profiles are resolved against.
pub struct Workspace {
    pub(super) index: Index,
    pub(super) ecosystems: Ecosystems,
    pub(super) rules: Rules,
    notes: Vec<Note>,
    roots: Vec<PathBuf>,
    preferred: Option<PathBuf>,
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspace").field("roots", &self.roots).finish_non_exhaustive()
    }
}

impl Workspace {
    /// Lists the files below the roots and reads the manifests among them.
    ///
    /// Never fails: what can't be read is told by [`notes`](Self::notes), and tripping the flag
    /// ends the listing early, so that [`is_complete`](Self::is_complete) is false.
    pub fn open(roots: &[PathBuf], options: &WorkspaceOptions, stop: &CancelFlag) -> Self {
        let mut notes = Vec::new();
        let index = Index::build(roots, options, stop, &mut notes);
        let ecosystems = Ecosystems::read(&index, &mut notes);
        let rules = Rules::new(&options.rules, &mut notes);
        Self { index, ecosystems, rules, notes, roots: roots.to_vec(), preferred: options.preferred.clone() }
    }

    /// Whether a file is to be taken before others that fit as well.
    pub(super) fn prefers(&self, file: &WorkspaceFile) -> bool {
        self.preferred.as_ref().is_some_and(|folder| file.path.starts_with(folder))
    }

    /// Whether every file below the roots is known.
    pub fn is_complete(&self) -> bool {
        self.index.complete
    }

    /// The folders that listed files are in, and the roots: sorted, at most `max`. For watching
    /// them.
    pub fn folders(&self, max: usize) -> Vec<PathBuf> {
        self.index.folders(max)
    }

    /// The listed files whose names end so, in order.
    pub fn files_ending<'w>(&'w self, end: &'w str) -> impl Iterator<Item = WorkspaceFile> + 'w {
        self.index.ending(end)
    }

    /// What could not be read, in the order it was met.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// What each path is to the workspace, in the order of the queries.
    ///
    /// Pass all files of a profile at once: those that are certain teach prefixes for the rest.
    /// The answer for a path does not depend on the order of the queries.
    pub fn resolve(&self, queries: &[PathQuery<'_>]) -> Vec<Resolution> {
        resolver::resolve(self, queries)
    }

    /// The name a file is shown by: its path relative to its root. Where there are several
    /// roots, their folders' names come first; where those are equal too, the whole path.
    pub fn display_name(&self, file: &WorkspaceFile) -> String {
        let name = |root: &PathBuf| root.file_name().map(|name| name.to_string_lossy().into_owned());
        let own = self.roots.get(file.root).and_then(name);
        match own {
            _ if self.roots.len() == 1 => file.relative.clone(),
            Some(own) if self.roots.iter().filter(|root| name(root).as_ref() == Some(&own)).count() == 1 => {
                format!("{own}/{}", file.relative)
            }
            _ => file.path.display().to_string(),
        }
    }

    /// What a path is of a versioned dependency or toolchain: whose it is, and its place in
    /// there. Equal values are one file, wherever copies of it are kept. `None` for the
    /// workspace's own code, and where the path doesn't tell the version: nobody knows then
    /// whether lines are the same.
    pub fn versioned(&self, path: &str) -> Option<(OutsideKind, String)> {
        let parsed = SourcePath::parse(&clean::clean(path))?;
        let asked = PathQuery { path, ..PathQuery::default() };
        let Claim::Outside { kind, .. } =
            self.ecosystems.claim(&Query { path: &parsed, asked: &asked }, &self.index)?
        else {
            return None;
        };
        let (OutsideKind::Dependency { version: Some(version), .. }
        | OutsideKind::Toolchain { version: Some(version), .. }) = &kind
        else {
            return None;
        };
        let at = parsed.parts().iter().rposition(|part| part.contains(version.as_str()))?;
        let inner = parsed.parts()[at + 1..].join("/");
        (!inner.is_empty()).then_some((kind, inner))
    }

    /// The workspace file at a path of this machine, such as an editor's document: the key
    /// under which [`resolve`](Self::resolve) answers for it. Links lead to one key, so a file
    /// and its linked twin show the same costs, each under the path that was asked for.
    pub fn file_at(&self, path: &Path) -> Option<WorkspaceFile> {
        match self.index.look_up(path) {
            OnDisk::Inside(file) => Some(file),
            OnDisk::Outside => {
                let path = SourcePath::parse(&clean::clean(path.to_str()?))?;
                self.index.below(&path.strs())
            }
            OnDisk::Missing => None,
        }
    }
}
