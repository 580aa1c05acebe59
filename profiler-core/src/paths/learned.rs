//! Prefixes that a profile teaches: where the build took place.
//!
//! `/build/src/store.rs` can only be `src/store.rs` here, and `/build/src/net/tcp.rs` only
//! `src/net/tcp.rs`; so `/build/main.rs` is `main.rs`, although three files have that name.
//! The prefixes can't be listed beforehand, every container and CI system has its own.

use rustc_hash::FxHashMap;

use super::How;
use super::index::Index;
use super::resolution::WorkspaceFile;
use super::source_path::{Case, SourcePath};

/// Fewest files that must agree on a prefix when each was only guessed.
const FEWEST_FILES: usize = 2;

#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Pair {
    absolute: bool,
    /// What paths of the profile begin with.
    from: Vec<String>,
    /// The folder on this machine, possibly above a root.
    to: Vec<String>,
}

#[derive(Default)]
struct Support {
    files: usize,
    certain: bool,
}

/// Collects what single files say.
#[derive(Default)]
pub(super) struct Votes(FxHashMap<Pair, Support>);

impl Votes {
    /// A path was found to be this file. `components` at their ends agree. `certain` when that
    /// is known from more than the path.
    pub(super) fn add(
        &mut self,
        path: &SourcePath,
        file: &WorkspaceFile,
        components: usize,
        certain: bool,
        index: &Index,
    ) {
        let folder = index.folder_parts(file);
        let agreeing = components.saturating_sub(1).min(folder.len());
        let pair = Pair {
            absolute: path.is_absolute(),
            from: path.parts()[..path.parts().len() - agreeing - 1].to_vec(),
            to: folder[..folder.len() - agreeing].to_vec(),
        };
        let support = self.0.entry(pair).or_default();
        support.files += 1;
        support.certain |= certain;
    }

    pub(super) fn count(self, case: Case) -> Prefixes {
        let mut pairs: Vec<(Pair, Support)> = self.0.into_iter().collect();
        // Relative paths may start from as many folders as were compiled in. They tell where
        // only if they all tell the same.
        let bare = |pair: &Pair| !pair.absolute && pair.from.is_empty();
        let contradictory = pairs.iter().filter(|(pair, _)| bare(pair)).count() > 1;
        pairs.retain(|(pair, support)| {
            let enough = support.files >= FEWEST_FILES || (support.certain && !bare(pair));
            enough && !(contradictory && bare(pair))
        });
        pairs.sort_by(|(a, x), (b, y)| y.files.cmp(&x.files).then_with(|| a.cmp(b)));
        let mut by_from: FxHashMap<String, Vec<usize>> = FxHashMap::default();
        for (row, (pair, _)) in pairs.iter().enumerate() {
            let key = pair.from.iter().fold(root_key(pair.absolute), |key, part| longer_key(key, part, case));
            by_from.entry(key).or_default().push(row);
        }
        Prefixes { pairs, by_from }
    }
}

/// Prefixes and folders.
pub(super) struct Prefixes {
    /// The best supported first.
    pairs: Vec<(Pair, Support)>,
    /// Rows of pairs by what their paths begin with; a profile may teach as many prefixes as it
    /// has files.
    by_from: FxHashMap<String, Vec<usize>>,
}

/// The key of the prefix without components; see [`longer_key`].
fn root_key(absolute: bool) -> String {
    if absolute { "/".to_owned() } else { String::new() }
}

/// The key of a prefix that has one component more.
fn longer_key(mut key: String, part: &str, case: Case) -> String {
    key.push_str(&case.fold(part));
    key.push('/');
    key
}

/// Where a prefix leads.
pub(super) struct Led {
    pub(super) file: WorkspaceFile,
    pub(super) how: How,
    /// How many files support the prefix.
    pub(super) support: usize,
}

impl Prefixes {
    /// The files that prefixes of the path lead to. Several files mean that the prefixes
    /// contradict each other; which has more support says little about a single path.
    pub(super) fn apply(&self, path: &SourcePath, index: &Index) -> Vec<Led> {
        let mut rows: Vec<usize> = Vec::new();
        let mut key = root_key(path.is_absolute());
        for part in path.parts() {
            rows.extend(self.by_from.get(&key).into_iter().flatten());
            key = longer_key(key, part, index.case());
        }
        rows.sort_unstable();
        let mut found: Vec<Led> = Vec::new();
        for (pair, support) in rows.into_iter().map(|row| &self.pairs[row]) {
            if let Some(led) = pair.lead(path, support.files, index)
                && found.iter().all(|other| other.file != led.file)
            {
                found.push(led);
            }
        }
        found
    }
}

impl Pair {
    /// The file that a path with this prefix leads to.
    fn lead(&self, path: &SourcePath, support: usize, index: &Index) -> Option<Led> {
        let parts = path.parts();
        let target: Vec<&str> = self.to.iter().chain(&parts[self.from.len()..]).map(String::as_str).collect();
        let file = index.below(&target)?;
        // Told from the root on: folders above it are no business of the reader.
        let depth = index.root_depth(file.root);
        let above = depth.saturating_sub(self.to.len());
        let prefix = &parts[..self.from.len() + above];
        let drive = prefix.first().is_some_and(|first| first.ends_with(':'));
        let mut from = if self.absolute && !drive { "/".to_owned() } else { String::new() };
        for part in prefix {
            from.push_str(part);
            from.push('/');
        }
        let below = self.to.get(depth..).unwrap_or_default().join("/");
        let to = if below.is_empty() { ".".to_owned() } else { below };
        Some(Led { file, how: How::LearnedPrefix { from, to }, support })
    }
}
