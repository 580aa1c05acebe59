//! The recording that is under way, as everybody but its own task sees it: what stops it, and what is said of it
//! in a status bar. There is one at a time.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::loader::Stop;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct UnderWay {
    /// Stops it.
    pub stop: Stop,
    /// The folder that it is for.
    root: PathBuf,
    /// What is measured, in a word.
    event: &'static str,
    /// Since when; `None` while the program is being built.
    since: Option<Instant>,
}

impl UnderWay {
    /// One that is about to begin, of an event by its word.
    pub fn new(root: PathBuf, event: &'static str) -> Self {
        Self { stop: Stop::default(), root, event, since: None }
    }

    /// It measures from now on.
    pub fn begin(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    /// `cpu 7s`, for a folder.
    pub fn in_words(&self, root: &Path) -> Option<String> {
        let time = self.since.map_or_else(String::new, |since| format!(" {}s", since.elapsed().as_secs()));
        (self.root == root).then(|| format!("{}{time}", self.event))
    }
}
