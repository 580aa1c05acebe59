//! Profiles that come by OTLP, in an editor: the receiver as settings want it, and views that
//! follow what comes. They are made anew at most every few seconds, take a small part of the
//! time at most, and never change while somebody types.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use lsp_types::MessageType;

use super::{Cause, Session};
use crate::loader::Input;
use crate::otlp::{Receiver, Window};
use crate::state::Receiving;

/// Between two views.
const EVERY: Duration = Duration::from_secs(2);
/// A view that took long to make is followed by a pause that is so many times as long.
const PAUSE: u32 = 10;
/// Somebody who has not typed for so long is not typing.
const QUIET: Duration = Duration::from_millis(1500);
/// Loads are looked at this often, to see whether they are done.
const LOOK_EVERY: Duration = Duration::from_millis(25);

impl Session {
    /// Starts, replaces or ends the receiver, as the settings want it.
    pub(super) fn follow_receiver(self: &Arc<Self>) {
        let session = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            // One after the other; the last one sees the last settings.
            let mut receiver = session.receiver.lock().unwrap_or_else(PoisonError::into_inner);
            let wanted = {
                let state = session.state();
                let mut folders = state.folders.iter().filter(|folder| folder.service.is_none());
                folders.find_map(|folder| folder.config().otlp.receiver())
            };
            if receiver.as_ref().map(|receiver| receiver.settings) == wanted {
                return;
            }
            // Its ports are free before the next one wants them.
            if let Some(old) = receiver.take() {
                session.state().receiving = Receiving::Off;
                old.window.changed.notify_one();
            }
            let Some(wanted) = wanted else {
                session.state().receiving = Receiving::Off;
                return;
            };
            match Receiver::start(wanted) {
                Ok(new) => {
                    let window = Arc::clone(&new.window);
                    session.state().receiving = Receiving::On {
                        grpc_port: new.grpc_port,
                        http_port: new.http_port,
                        window: Arc::clone(&window),
                    };
                    *receiver = Some(new);
                    tokio::spawn(Arc::clone(&session).follow_window(window));
                }
                Err(error) => {
                    let why = error.to_string();
                    let before = std::mem::replace(&mut session.state().receiving, Receiving::Failed(why.clone()));
                    // Settings change often; the port stays busy.
                    if !matches!(before, Receiving::Failed(known) if known == why) {
                        session.editor.say(MessageType::WARNING, format!("perflens: {why}"));
                    }
                }
            }
        });
    }

    async fn follow_window(self: Arc<Self>, window: Arc<Window>) {
        loop {
            window.changed.notified().await;
            let is_own = |receiving: &Receiving| receiving.window().is_some_and(|own| Arc::ptr_eq(own, &window));
            if !is_own(&self.state().receiving) {
                return;
            }
            self.until_quiet().await;
            let start = Instant::now();
            self.show_received().await;
            tokio::time::sleep(EVERY.max(start.elapsed() * PAUSE)).await;
        }
    }

    /// Shows what came, where it is shown already or nothing else is wanted.
    async fn show_received(self: &Arc<Self>) {
        let shown: Vec<usize> = {
            let mut state = self.state();
            for folder in &mut state.folders {
                let is_free = folder.chosen.profile.is_none() && !folder.has_profile();
                if is_free && folder.config().otlp.enabled {
                    folder.chosen.profile = Some(Some(Input::Received));
                }
            }
            let folders = state.folders.iter().enumerate();
            folders.filter(|(_, folder)| folder.profile() == Some(Input::Received)).map(|(at, _)| at).collect()
        };
        for &at in &shown {
            let is_loading = self.state().folders.get(at).is_some_and(|folder| folder.load.is_some());
            if !is_loading {
                self.load(at, Cause::Received);
            }
        }
        let is_loading = |session: &Self| {
            let state = session.state();
            shown.iter().any(|&at| state.folders.get(at).is_some_and(|folder| folder.load.is_some()))
        };
        while is_loading(self) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// A buffer was edited.
    pub fn edited(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_edit.store(now, Ordering::Relaxed);
    }

    /// Waits until nobody types.
    pub(super) async fn until_quiet(&self) {
        loop {
            let last = Duration::from_millis(self.last_edit.load(Ordering::Relaxed));
            let since = self.start.elapsed().saturating_sub(last);
            if last.is_zero() || since >= QUIET {
                return;
            }
            tokio::time::sleep(QUIET.saturating_sub(since)).await;
        }
    }
}
