//! What languages and build systems say about paths: which module, crate or package a file
//! belongs to, and whether that is the workspace's own.
//!
//! Each ecosystem is one file of this folder and one line of [`ECOSYSTEMS`]. It knows path
//! habits and reads its manifests once. Its word is law: a path that it claims as a dependency
//! is never matched with a file of the workspace by mere similarity.

use std::path::PathBuf;

use super::index::Index;
use super::resolution::{NoMatchReason, OutsideKind, PathQuery, WorkspaceFile};
use super::source_path::SourcePath;
use super::workspace::Note;

/// A path under question.
pub(super) struct Query<'a> {
    pub(super) path: &'a SourcePath,
    pub(super) asked: &'a PathQuery<'a>,
}

/// What an ecosystem knows about a path.
pub(super) enum Claim {
    /// It is one of these files; never empty.
    Inside { files: Vec<WorkspaceFile>, by: String },
    /// It is not the workspace's code; the file where a copy is in the workspace all the same.
    Outside { kind: OutsideKind, file: Option<PathBuf> },
    /// It is none of the files that its name suggests.
    Refused { reason: NoMatchReason, possible: Vec<WorkspaceFile> },
}

impl Claim {
    fn dependency(name: impl Into<String>, version: Option<&str>) -> Self {
        Self::Outside { kind: dependency(name, version), file: None }
    }

    fn toolchain(name: &str, version: Option<&str>) -> Self {
        let kind = OutsideKind::Toolchain { name: name.to_owned(), version: version.map(str::to_owned) };
        Self::Outside { kind, file: None }
    }
}

fn dependency(name: impl Into<String>, version: Option<&str>) -> OutsideKind {
    OutsideKind::Dependency { name: name.into(), version: version.map(str::to_owned) }
}

/// One language or build system, its manifests read.
pub(super) trait Ecosystem: Send + Sync {
    /// `None` when it has nothing to say about the path.
    fn claim(&self, query: &Query<'_>, index: &Index) -> Option<Claim>;
}

/// How an ecosystem enters.
struct Entry {
    /// The package that a path below a root was copied or installed from, if its folders show it.
    vendored: fn(&[&str]) -> Option<OutsideKind>,
    /// Reads the manifests of the workspace.
    read: fn(&Index, &mut Vec<Note>) -> Box<dyn Ecosystem>,
}

/// In the order they are asked: build systems that wrap others first.
const ECOSYSTEMS: &[Entry] = &[];

/// All ecosystems, the workspace's manifests read.
pub(super) fn read_all(index: &Index, notes: &mut Vec<Note>) -> Vec<Box<dyn Ecosystem>> {
    ECOSYSTEMS.iter().map(|entry| (entry.read)(index, notes)).collect()
}

/// Whether a path relative to a root is a copy of other people's code, and whose.
pub(super) fn vendored(parts: &[&str]) -> Option<OutsideKind> {
    ECOSYSTEMS.iter().find_map(|entry| (entry.vendored)(parts))
}
