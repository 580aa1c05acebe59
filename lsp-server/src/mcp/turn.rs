//! One call of a tool, as the tool sees it: whether anybody still waits, and how to tell them how far it is.

use profiler_core::cancel::CancelFlag;
use tokio::sync::mpsc::Sender;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    /// Tripped when nobody waits any more.
    pub(super) cancel: CancelFlag,
    progress: Sender<String>,
}

impl Turn {
    pub(super) fn new(cancel: CancelFlag, progress: Sender<String>) -> Self {
        Self { cancel, progress }
    }

    /// Tells how far it is. Whoever reads slowly misses some of it.
    pub(super) fn tell(&self, how_far: String) {
        let _ = self.progress.try_send(how_far);
    }
}
