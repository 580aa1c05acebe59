//! Asking the editor to look again at hints and lenses, where it can be asked.
//!
//! At most one question is open per kind. What changes meanwhile leads to one more.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::client::Editor;
use crate::state::capabilities::Capabilities;

/// The questions of a session.
#[derive(Debug, Default)]
pub struct Refresh {
    hints: Arc<Round>,
    lenses: Arc<Round>,
}

#[derive(Debug, Default)]
struct Round {
    is_open: AtomicBool,
    is_due: AtomicBool,
}

type Question = fn(Editor) -> Pin<Box<dyn Future<Output = ()> + Send>>;

impl Refresh {
    /// Asks for everything that the editor can look at again.
    pub fn run(&self, editor: &Editor, capabilities: Capabilities) {
        if capabilities.refreshes_hints {
            self.hints.ask(editor, |editor| Box::pin(async move { editor.refresh_hints().await }));
        }
        if capabilities.refreshes_lenses {
            self.lenses.ask(editor, |editor| Box::pin(async move { editor.refresh_lenses().await }));
        }
    }
}

impl Round {
    fn ask(self: &Arc<Self>, editor: &Editor, question: Question) {
        self.is_due.store(true, Ordering::SeqCst);
        if self.is_open.swap(true, Ordering::SeqCst) {
            return;
        }
        let (own, editor) = (Arc::clone(self), editor.clone());
        tokio::spawn(async move {
            loop {
                while own.is_due.swap(false, Ordering::SeqCst) {
                    question(editor.clone()).await;
                }
                own.is_open.store(false, Ordering::SeqCst);
                // Whatever came between the last look and the closing is ours, unless a new
                // round has begun.
                if !own.is_due.load(Ordering::SeqCst) || own.is_open.swap(true, Ordering::SeqCst) {
                    return;
                }
            }
        });
    }
}
