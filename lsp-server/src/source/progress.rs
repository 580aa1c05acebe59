//! What a fetch is doing, for whoever waits.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

type Show = dyn Fn(&str) + Send + Sync;

/// Where steps go to: a line of the terminal, the editor's progress, nowhere.
#[derive(Clone, Default)]
pub struct Progress {
    show: Option<Arc<Show>>,
    /// What was last shown of an answer on its way, in steps of a MiB.
    shown: Arc<AtomicUsize>,
}

impl Progress {
    /// Tells steps to a function.
    pub fn new(show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { show: Some(Arc::new(show)), shown: Arc::default() }
    }

    /// Tells a step.
    pub fn step(&self, words: &str) {
        if let Some(show) = &self.show {
            show(words);
        }
    }

    /// So much of an answer has come.
    pub(super) fn received(&self, bytes: usize) {
        let mebibytes = bytes >> 20;
        if mebibytes != self.shown.swap(mebibytes, Ordering::Relaxed) && mebibytes > 0 {
            self.step(&format!("received {mebibytes} MiB"));
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}
