//! Open documents: their text, and which line of the profiled text each of their lines is.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use lsp_types::{TextDocumentContentChangeEvent, Url};

use super::line_map::LineMap;
use super::text::{Encoding, Text};
use crate::runnable::{self, Runnable};

/// An open document.
#[derive(Clone, Debug)]
pub struct Document {
    /// As the editor names it.
    pub uri: Url,
    /// Where it is on disk.
    pub path: PathBuf,
    /// Which file of the profile it is, where links lead to one file by two paths.
    pub file: PathBuf,
    /// The editor's counter.
    pub version: i32,
    /// What it holds now.
    pub text: Text,
    /// Its lines in the text that was profiled.
    pub map: LineMap,
    /// That text, if it is known.
    pub profiled: Option<Arc<Text>>,
    /// What of this text can be run; found when it is first asked for.
    pub runnables: Arc<OnceLock<Vec<Runnable>>>,
}

impl Document {
    /// Starts over with the lines, against the text that a newly loaded profile is of.
    pub fn remap(&mut self, profiled: Option<Arc<Text>>) {
        self.map = match &profiled {
            Some(profiled) => LineMap::between(profiled, &self.text),
            None => LineMap::identity(&self.text),
        };
        self.profiled = profiled;
    }

    /// What of it can be run, as it is now.
    pub fn runnables(&self) -> &[Runnable] {
        self.runnables.get_or_init(|| runnable::find(&self.path, self.text.content()))
    }

    /// Applies changes in their order, each to the result of the one before. Costs what the
    /// touched lines cost.
    pub fn change(&mut self, version: i32, changes: Vec<TextDocumentContentChangeEvent>, encoding: Encoding) {
        for change in changes {
            if let Some(range) = change.range {
                self.map.edit(self.text.replace(range, &change.text, encoding));
            } else {
                let old = std::mem::replace(&mut self.text, Text::new(change.text));
                self.map = self.map.after(&LineMap::between(&old, &self.text));
            }
        }
        // Taking edits back makes it the profiled text again.
        if let Some(profiled) = self.profiled.as_ref().filter(|_| self.map.differs())
            && profiled.content() == self.text.content()
        {
            self.map = LineMap::identity(&self.text);
        }
        self.version = version;
        self.runnables = Arc::default();
    }
}

/// All open documents, by the file they are of: editors spell the address of one file in
/// several ways.
#[derive(Clone, Debug, Default)]
pub struct Documents {
    by_path: HashMap<PathBuf, Arc<Document>>,
}

/// The file an address names; `None` for what is no file of this machine.
pub fn file_path(uri: &Url) -> Option<PathBuf> {
    (uri.scheme() == "file").then(|| uri.to_file_path().ok()).flatten()
}

impl Documents {
    /// The document at an address.
    pub fn get(&self, uri: &Url) -> Option<&Arc<Document>> {
        self.by_path.get(&file_path(uri)?)
    }

    /// The document of a file.
    pub fn at(&self, path: &Path) -> Option<&Arc<Document>> {
        self.by_path.get(path)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Document>> {
        self.by_path.values()
    }

    /// Adds or replaces.
    pub fn open(&mut self, document: Document) {
        self.by_path.insert(document.path.clone(), Arc::new(document));
    }

    /// Applies changes; whether the document is open.
    pub fn change(
        &mut self,
        uri: &Url,
        version: i32,
        changes: Vec<TextDocumentContentChangeEvent>,
        encoding: Encoding,
    ) -> bool {
        let document = file_path(uri).and_then(|path| self.by_path.get_mut(&path));
        let is_open = document.is_some();
        if let Some(document) = document {
            Arc::make_mut(document).change(version, changes, encoding);
        }
        is_open
    }

    /// Forgets a document.
    pub fn close(&mut self, uri: &Url) {
        if let Some(path) = file_path(uri) {
            self.by_path.remove(&path);
        }
    }
}
