//! What languages and build systems say about paths: which module, crate or package a file
//! belongs to, and whether that is the workspace's own.
//!
//! Each ecosystem is one file of this folder and one line of [`ECOSYSTEMS`]. It knows path
//! habits and reads its manifests once. Its word is law: a path that it claims as a dependency
//! is never matched with a file of the workspace by mere similarity.

mod bazel;
mod go;
mod javascript;
mod jvm;
mod native;
mod php;
mod python;
mod ruby;
mod rust;

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
    /// Whose a path is, if its folders alone show that a copy of other people's code or the
    /// output of a build is kept there. Asked for paths below a root, too.
    foreign: fn(&[&str]) -> Option<OutsideKind>,
    /// Reads the manifests of the workspace.
    read: fn(&Index, &mut Vec<Note>) -> Box<dyn Ecosystem>,
}

/// In the order they are asked: those that recognise their own paths by much, first.
const ECOSYSTEMS: &[Entry] = &[
    go::ENTRY,
    rust::ENTRY,
    python::ENTRY,
    javascript::ENTRY,
    jvm::ENTRY,
    ruby::ENTRY,
    php::ENTRY,
    bazel::ENTRY,
    native::ENTRY,
];

/// Manifests beyond this many bytes are not read.
const MAX_MANIFEST: u64 = 1 << 20;

/// All ecosystems of a workspace, its manifests read.
pub(super) struct Ecosystems(Vec<Box<dyn Ecosystem>>);

impl Ecosystems {
    pub(super) fn read(index: &Index, notes: &mut Vec<Note>) -> Self {
        Self(ECOSYSTEMS.iter().map(|entry| (entry.read)(index, notes)).collect())
    }

    /// What the first ecosystem that knows the path says.
    pub(super) fn claim(&self, query: &Query<'_>, index: &Index) -> Option<Claim> {
        self.0.iter().find_map(|ecosystem| ecosystem.claim(query, index)).or_else(|| {
            let kind = foreign(&query.path.strs())?;
            // A copy in the workspace is known by its name, never by likeness.
            let (length, files) = index.at_tail(query.path);
            let tail = &query.path.strs()[query.path.parts().len() - length..];
            let file = files.into_iter().next().filter(|_| foreign(tail).is_some()).map(|file| file.path);
            Some(Claim::Outside { kind, file })
        })
    }
}

/// Whether a path is that of a copy of other people's code or of a build's output, and whose.
pub(super) fn foreign(parts: &[&str]) -> Option<OutsideKind> {
    ECOSYSTEMS.iter().find_map(|entry| (entry.foreign)(parts))
}

/// What follows the first occurrence of some components.
fn after<'p, 's>(parts: &'p [&'s str], sequence: &[&str]) -> Option<&'p [&'s str]> {
    let at = parts.windows(sequence.len()).position(|window| window == sequence)?;
    Some(&parts[at + sequence.len()..])
}

/// `serde-1.0.200` → `("serde", "1.0.200")`; a version begins with a number and a dot.
fn split_version(package: &str) -> Option<(&str, &str)> {
    let begins = |rest: &str| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && rest[digits..].starts_with('.')
    };
    let (at, _) = package.match_indices('-').find(|(at, _)| *at > 0 && begins(&package[at + 1..]))?;
    Some((&package[..at], &package[at + 1..]))
}
