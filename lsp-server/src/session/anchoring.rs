//! Keeps lines right while texts change: on disk, as after a switch of branches, and in buffers.
//!
//! What is typed is followed at once (`state::line_map`). What that loses is looked for when
//! nobody has typed for a moment, on the blocking pool. When files change on disk, lines are found
//! anew from the measured text, so that going back to a branch brings back what was exact there.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lsp_types::Url;

use super::{Cause, Session};
use crate::state::text::Text;

/// Nobody types when nothing came for this long.
const SETTLED: Duration = Duration::from_millis(150);
/// Files with costs in more folders than this are not watched: systems limit how many can be.
const MAX_FOLDERS: usize = 1_024;
/// What is larger was not read for its lines either.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// What a file with costs holds now, and what lines were found in.
struct Compared {
    path: PathBuf,
    shown: Arc<Text>,
    /// The text of an open document that has followed all edits since.
    followed: Option<String>,
}

impl Session {
    /// The files whose text decides where lines are.
    pub(super) fn anchored_files(&self) -> Vec<PathBuf> {
        let state = self.state();
        let watched = state.folders.iter().filter(|folder| folder.config().refresh.watch);
        let views = watched.filter_map(|folder| folder.view());
        let mut folders: HashSet<PathBuf> = HashSet::new();
        let is_watched = |path: &&PathBuf| {
            let Some(folder) = path.parent() else { return false };
            folders.contains(folder) || folders.len() < MAX_FOLDERS && folders.insert(folder.to_owned())
        };
        views.flat_map(|view| view.texts.keys()).filter(is_watched).cloned().collect()
    }

    /// Files were written, created or removed: finds lines anew where that concerns a view.
    pub(super) fn texts_changed(self: &Arc<Self>, files: &HashSet<PathBuf>) {
        let concerned: Vec<(usize, Vec<Compared>)> = {
            let state = self.state();
            let of = |at: usize| {
                let view = state.folders[at].view()?;
                let texts = files.iter().filter_map(|path| {
                    let shown = Arc::clone(view.texts.get(path)?);
                    let document = state.documents.at(path);
                    let followed = document.filter(|document| document.map.is_followed());
                    let followed = followed.map(|document| document.text.content().to_owned());
                    Some(Compared { path: path.clone(), shown, followed })
                });
                Some((at, texts.collect()))
            };
            (0..state.folders.len()).filter_map(of).collect()
        };
        for (folder, texts) in concerned {
            if texts.iter().any(Compared::is_other) {
                self.load(folder, Cause::Edited);
            }
        }
    }

    /// A document was changed: what following the edit has lost is looked for in a moment.
    pub fn document_changed(self: &Arc<Self>, uri: &Url) {
        let version = {
            let state = self.state();
            let Some(document) = state.documents.get(uri) else { return };
            let is_lost = document.profiled.is_some() && document.map.is_incomplete();
            is_lost.then_some(document.version)
        };
        let Some(version) = version else { return };
        let (session, uri) = (Arc::downgrade(self), uri.clone());
        tokio::spawn(async move {
            tokio::time::sleep(SETTLED).await;
            if let Some(session) = session.upgrade() {
                session.settle(&uri, version).await;
            }
        });
    }

    /// All documents may have other lines now.
    pub(super) fn documents_placed(self: &Arc<Self>) {
        let open: Vec<Url> = self.state().documents.iter().map(|document| document.uri.clone()).collect();
        for uri in open {
            self.document_changed(&uri);
        }
    }

    async fn settle(self: &Arc<Self>, uri: &Url, version: i32) {
        let document = self.state().documents.get(uri).filter(|document| document.version == version).cloned();
        let Some((document, profiled)) = document.and_then(|it| Some((Arc::clone(&it), it.profiled.clone()?))) else {
            return;
        };
        let settled = {
            let (document, profiled) = (Arc::clone(&document), Arc::clone(&profiled));
            tokio::task::spawn_blocking(move || document.map.settled(&profiled, &document.text)).await
        };
        let Ok(settled) = settled else { return };
        if settled == document.map {
            return;
        }
        {
            let mut state = self.state();
            // Only what it was made for: another version, or another profile, has other lines.
            let is_same = |current: &Arc<_>| Arc::ptr_eq(current, &document);
            if !state.documents.get(uri).is_some_and(is_same) {
                return;
            }
            let mut changed = crate::state::documents::Document::clone(&document);
            changed.map = settled;
            state.documents.open(changed);
        }
        self.look_again();
    }

    /// A document was closed: from now on its file on disk counts.
    pub fn document_closed(self: &Arc<Self>, path: &Path) {
        let is_shown = {
            let state = self.state();
            state.folders.iter().filter_map(|folder| folder.view()).any(|view| view.texts.contains_key(path))
        };
        if is_shown {
            let session = Arc::clone(self);
            let path = path.to_owned();
            tokio::task::spawn_blocking(move || session.texts_changed(&HashSet::from([path])));
        }
    }
}

impl Compared {
    /// Whether the file holds something else than lines were found in, which no document has
    /// followed: comparing texts would know less.
    fn is_other(&self) -> bool {
        let is_small =
            std::fs::metadata(&self.path).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_FILE_BYTES);
        let content = is_small.then(|| std::fs::read(&self.path).ok()).flatten();
        let Some(content) = content else { return true };
        let content = String::from_utf8_lossy(&content);
        content != self.shown.content() && self.followed.as_deref() != Some(&*content)
    }
}
