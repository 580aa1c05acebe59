//! What was last asked for in each workspace, so that it can be asked for again.
//!
//! Only the query is kept. Where it goes is the settings' word each time: a file of state must
//! not lead anybody to a server.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::ProfileQuery;
use super::settings;

/// As many workspaces as anybody comes back to.
const MAX: usize = 200;

/// The file of last queries.
#[derive(Clone, Debug)]
pub struct LastQueries {
    path: Option<PathBuf>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Last {
    selector: String,
    range: String,
}

type Content = BTreeMap<String, Last>;

impl LastQueries {
    /// In this file, which need not exist.
    pub fn new(path: Option<PathBuf>) -> Self {
        Self { path }
    }

    /// The last query of a workspace folder. What can't be read is not there.
    pub fn get(&self, folder: &Path) -> Option<ProfileQuery> {
        let last = self.read().remove(folder.to_str()?)?;
        settings::query(&last.selector, &last.range).ok()
    }

    /// Keeps a query. What can't be kept is lost, which is no great harm.
    pub fn set(&self, folder: &Path, query: &ProfileQuery) {
        let (Some(path), Some(root)) = (&self.path, folder.to_str()) else { return };
        let mut content = self.read();
        content.insert(root.to_owned(), Last { selector: query.selector.to_string(), range: query.range.to_string() });
        while content.len() > MAX {
            content.pop_first();
        }
        let replace = || -> std::io::Result<()> {
            let parent = path.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(parent)?;
            let mut file = tempfile::NamedTempFile::new_in(parent)?;
            file.write_all(serde_json::to_string(&content)?.as_bytes())?;
            file.persist(path)?;
            Ok(())
        };
        if let Err(error) = replace() {
            tracing::debug!("the last query is not kept: {error}");
        }
    }

    fn read(&self) -> Content {
        let bytes = self.path.as_ref().and_then(|path| fs::read(path).ok()).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }
}
