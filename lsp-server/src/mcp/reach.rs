//! Which files an assistant may have profiles read from: those of the workspace, its recordings, and what
//! the user allowed when starting the server. Links and `..` are followed first, so nothing leads out.

use std::fs;
use std::path::{Path, PathBuf};

use profiler_core::paths::clean::clean;
use profiler_core::view::data::shown;

use super::Refusal;

/// Where profiles may be.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    /// Relative names are of this.
    pub(super) workspace: PathBuf,
    /// Folders and files besides.
    pub(super) more: Vec<PathBuf>,
}

impl Reach {
    /// The file of a name that an assistant gave, without links.
    pub(super) fn file(&self, name: &str) -> Result<PathBuf, Refusal> {
        let outside = || {
            Refusal::Forbidden(format!(
                "{} is outside of the workspace; the user can allow it with `perflens mcp --allow PATH`",
                shown(name)
            ))
        };
        // Windows' own separators mean the same.
        let path = PathBuf::from(&*clean(&self.workspace.join(name).to_string_lossy()));
        let is_below = |path: &Path| self.roots().any(|root| path.starts_with(&root));
        // What is outside by its name is not even looked at.
        if !is_below(&path) && !self.named().any(|root| path.starts_with(root)) {
            return Err(outside());
        }
        let real = fs::canonicalize(&path).map_err(|_| {
            Refusal::Arguments(format!("there is no profile {} in the workspace; `overview` lists some", shown(name)))
        })?;
        if !is_below(&real) {
            return Err(outside());
        }
        if !fs::metadata(&real).is_ok_and(|metadata| metadata.is_file()) {
            return Err(Refusal::Arguments(format!("{} is not a file", shown(name))));
        }
        Ok(real)
    }

    fn named(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.workspace).chain(&self.more)
    }

    fn roots(&self) -> impl Iterator<Item = PathBuf> {
        self.named().filter_map(|root| fs::canonicalize(root).ok())
    }
}
