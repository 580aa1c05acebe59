//! Prefixes that a profile teaches: where the build took place.
//!
//! `/build/src/store.rs` can only be `src/store.rs` here, and `/build/src/net/tcp.rs` only
//! `src/net/tcp.rs`; so `/build/main.rs` is `main.rs`, although three files have that name.
//! The prefixes can't be listed beforehand, every container and CI system has its own.

use rustc_hash::FxHashMap;

use super::How;
use super::index::Index;
use super::resolution::WorkspaceFile;
use super::source_path::SourcePath;

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
    weight: u64,
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
        weight: u64,
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
        support.weight = support.weight.saturating_add(weight);
        support.certain |= certain;
    }

    pub(super) fn count(self) -> Prefixes {
        let mut pairs: Vec<(Pair, Support)> = self.0.into_iter().collect();
        pairs.retain(|(_, support)| support.certain || support.files >= FEWEST_FILES);
        pairs.sort_by(|(a, x), (b, y)| (y.files, y.weight).cmp(&(x.files, x.weight)).then_with(|| a.cmp(b)));
        Prefixes(pairs)
    }
}

/// Prefixes and folders, the best supported first.
pub(super) struct Prefixes(Vec<(Pair, Support)>);

/// Where a prefix leads.
pub(super) struct Led {
    pub(super) file: WorkspaceFile,
    pub(super) how: How,
    /// How many files support the prefix.
    pub(super) support: usize,
}

impl Prefixes {
    /// The files that the best supported prefix of the path leads to; several when several
    /// prefixes are equally well supported.
    pub(super) fn apply(&self, path: &SourcePath, index: &Index) -> Vec<Led> {
        let mut found: Vec<Led> = Vec::new();
        let mut best = None;
        for (pair, support) in &self.0 {
            if best.is_some_and(|best| best != (support.files, support.weight)) {
                break;
            }
            let Some(led) = pair.lead(path, support.files, index) else { continue };
            best = Some((support.files, support.weight));
            if found.iter().all(|other| other.file != led.file) {
                found.push(led);
            }
        }
        found
    }
}

impl Pair {
    fn lead(&self, path: &SourcePath, support: usize, index: &Index) -> Option<Led> {
        let parts = path.parts();
        let matches = self.absolute == path.is_absolute()
            && parts.len() > self.from.len()
            && self.from.iter().zip(parts).all(|(a, b)| index.case().equal(a, b));
        if !matches {
            return None;
        }
        let target: Vec<&str> = self.to.iter().chain(&parts[self.from.len()..]).map(String::as_str).collect();
        let file = index.below(&target)?;
        // Told from the root on: folders above it are no business of the reader.
        let depth = index.root_depth(file.root);
        let above = depth.saturating_sub(self.to.len());
        let mut from = if self.absolute { "/".to_owned() } else { String::new() };
        for part in parts.iter().take(self.from.len() + above) {
            from.push_str(part);
            from.push('/');
        }
        let below = self.to.get(depth..).unwrap_or_default().join("/");
        let to = if below.is_empty() { ".".to_owned() } else { below };
        Some(Led { file, how: How::LearnedPrefix { from, to }, support })
    }
}
