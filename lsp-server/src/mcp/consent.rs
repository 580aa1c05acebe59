//! Which workspaces' server data the user lets assistants have: a file of the user's, outside of every
//! workspace, that only `perflens mcp consent` writes.
//!
//! What is damaged, unreadable or writable by others is no consent.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::config::trust::{create_private, others_can_write};

/// The user's consents.
#[derive(Clone, Debug)]
pub struct Consents {
    path: Option<PathBuf>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Content {
    /// Canonical roots.
    server_data: BTreeSet<PathBuf>,
}

impl Consents {
    /// In this file, which need not exist; `None` is no consent to anything.
    pub fn new(path: Option<PathBuf>) -> Self {
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Whether assistants may have what servers gave for a workspace.
    pub fn has(&self, root: &Path) -> bool {
        let Ok(root) = root.canonicalize() else { return false };
        self.read().is_ok_and(|content| content.server_data.contains(&root))
    }

    /// The workspaces that are consented to, in order.
    pub fn roots(&self) -> io::Result<Vec<PathBuf>> {
        Ok(self.read()?.server_data.into_iter().collect())
    }

    /// Consents for a workspace, or takes that back; whether that changed anything. A folder that is gone
    /// is looked for as it is written.
    pub fn set(&self, root: &Path, is_given: bool) -> io::Result<bool> {
        let path = self.path.as_ref().ok_or_else(|| io::Error::other("there is no folder to keep it in; set HOME"))?;
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let mut content = self.read()?;
        let is_changed = if is_given { content.server_data.insert(root) } else { content.server_data.remove(&root) };
        if is_changed {
            let folder = path.parent().unwrap_or(Path::new("."));
            create_private(folder)?;
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            serde_json::to_writer_pretty(&mut file, &content)?;
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            file.persist(path)?;
        }
        Ok(is_changed)
    }

    fn read(&self) -> io::Result<Content> {
        let Some(path) = &self.path else { return Ok(Content::default()) };
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Content::default()),
            Err(error) => return Err(error),
        };
        if others_can_write(path)? {
            return Err(io::Error::other("others can write it, so nothing in it counts; make it yours with chmod 600"));
        }
        Ok(serde_json::from_slice(&bytes).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consent_is_per_folder_and_damage_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let (state, a, b) = (folder.path().join("s/assistants.json"), folder.path().join("a"), folder.path().join("b"));
        fs::create_dir(&a).unwrap();
        fs::create_dir(&b).unwrap();
        let consents = Consents::new(Some(state.clone()));
        assert!(!consents.has(&a));
        assert!(consents.set(&a, true).unwrap() && !consents.set(&a, true).unwrap());
        assert!(consents.has(&a) && !consents.has(&b) && !consents.has(&a.join("nowhere")));
        fs::write(&state, "{").unwrap();
        assert!(!consents.has(&a));
        consents.set(&a, true).unwrap();
        assert!(consents.set(&a, false).unwrap() && !consents.has(&a));
    }

    #[cfg(unix)]
    #[test]
    fn what_others_can_write_is_no_consent() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("assistants.json");
        let consents = Consents::new(Some(state.clone()));
        consents.set(folder.path(), true).unwrap();
        fs::set_permissions(&state, fs::Permissions::from_mode(0o622)).unwrap();
        assert!(!consents.has(folder.path()));
    }
}
