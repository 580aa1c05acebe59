//! From a wish to what is shown: what a server has to be asked for is fetched, the rest is the loader's on a
//! thread of its own; what comes back late, when something else is wanted by then, is thrown away.
//!
//! What a server answered is kept on disk from here, where settings want that, and shown from there when the
//! user comes back.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use lsp_types::MessageType;
use profiler_core::paths::Workspace;
use tokio::sync::oneshot;

use super::{Cause, Interrupted, Session, where_to_look};
use crate::loader::{self, Failure, Given, Input, Stop, Wish};
use crate::source::answers::NotKept;
use crate::source::{Fetched, Freshness, Progress, Request, SourceError};
use crate::state::State;
use crate::state::folder::{Folder, Shown};
use crate::state::view::View;

/// A load that is under way.
#[derive(Clone)]
struct Begun {
    wish: Wish,
    cause: Cause,
    /// The folder or service that it is for.
    scope: PathBuf,
    /// The folder's, when it began.
    generation: u64,
    stop: Stop,
    /// Whether something was shown when it began.
    had_view: bool,
    /// The folder or service whose answer is on disk.
    answer: Option<PathBuf>,
    /// Whether the server may be asked where that can't be read.
    may_ask: bool,
}

impl Begun {
    /// Whether nobody asked for it, and something is there to look at meanwhile.
    fn is_unasked(&self) -> bool {
        matches!(self.cause, Cause::Received | Cause::Edited | Cause::Interval) && self.had_view
    }
}

impl Session {
    /// Loads what is wanted for a folder. After a change of settings only if that changed what
    /// is wanted.
    pub fn load(self: &Arc<Self>, folder: usize, cause: Cause) {
        let Some(begun) = self.begin(folder, cause) else { return };
        tracing::info!("opening {} ({cause:?})", begun.wish.profile.place());
        self.tell_changed();
        self.follow_files();
        tokio::spawn(Arc::clone(self).carry_out(begun));
    }

    /// Makes what is wanted for a folder the load that counts; `None` where there is nothing to load.
    fn begin(self: &Arc<Self>, folder: usize, cause: Cause) -> Option<Begun> {
        let mut state = self.state();
        let others = state.roots();
        let own = state.folders.get_mut(folder)?;
        let wish = own.new_wish(&others);
        if cause == Cause::Settings && wish == own.wish {
            return None;
        }
        own.wish.clone_from(&wish);
        if let Some(load) = own.load.take() {
            load.stop();
        }
        own.generation += 1;
        let Some(wish) = wish else {
            let had_view = own.view().is_some();
            state.show(folder, Shown::Nothing);
            drop(state);
            self.follow_files();
            if had_view {
                self.look_again();
            }
            return None;
        };
        let stop = Stop::default();
        own.load = Some(stop.clone());
        let had_view = own.view().is_some();
        if !had_view {
            let origin = wish.profile.name();
            own.shown = Shown::Loading { origin };
        }
        Some(Begun {
            wish,
            cause,
            scope: own.scope().to_owned(),
            generation: own.generation,
            stop,
            had_view,
            answer: own.has_answer.then(|| own.scope().to_owned()),
            // What was on disk is no reason to ask anybody.
            may_ask: cause != Cause::Settings || own.chosen.profile.is_some() || own.config().source.at_start,
        })
    }

    async fn carry_out(self: Arc<Self>, begun: Begun) {
        let title = format!("Opening {}", begun.wish.profile.place());
        let work = Arc::clone(&self).fetch_and_load(begun.clone());
        // What is shown stays right as far as it was, and nobody asked for anything.
        let title = (!begun.is_unasked()).then_some(title);
        let result = self.with_progress(work, title, &begun.stop).await;
        if begun.is_unasked() {
            self.until_quiet().await;
        }
        let result = match result {
            Ok(Ok(loaded)) => Ok(loaded),
            Ok(Err(Failure::Failed(why))) => Err(why),
            Ok(Err(Failure::Cancelled)) | Err(Interrupted::Stopped) => {
                Err("opening the profile was cancelled".to_owned())
            }
            Err(Interrupted::Died) => Err("opening the profile failed inside perflens".to_owned()),
        };
        let is_to_refresh = {
            let mut state = self.state();
            let Some(at) = state.folders.iter().position(|folder| folder.scope() == begun.scope) else { return };
            let own = &mut state.folders[at];
            if own.generation != begun.generation {
                return;
            }
            own.load = None;
            if own.following.ended(begun.cause, result.as_ref().err().map(String::as_str))
                && let Err(why) = &result
            {
                let told = format!("perflens: what is shown could not be fetched again: {why}");
                self.editor.say(MessageType::WARNING, told);
            }
            match result {
                Ok((view, workspace)) => {
                    self.loaded(state, at, Shown::View(Arc::new(view), workspace), &begun).then_some(at)
                }
                Err(why) => {
                    self.not_loaded(state, at, &why, &begun);
                    None
                }
            }
        };
        self.may_be_due.notify_one();
        self.look_again();
        if let Some(at) = is_to_refresh {
            self.load(at, Cause::Refresh);
        }
    }

    /// Shows what was loaded. Returns whether that is of an earlier session, and the server is to be asked.
    fn loaded(self: &Arc<Self>, mut state: MutexGuard<'_, State>, at: usize, shown: Shown, begun: &Begun) -> bool {
        let is_command = begun.cause == Cause::Command;
        state.loaded(at, is_command);
        state.folders[at].keep_choice();
        self.keep_query(&mut state.folders[at]);
        let source = &state.folders[at].config().source;
        let (at_start, keeps) = (source.at_start, source.keep_answer);
        let request = begun.wish.profile.request();
        let fetched = request.and_then(|request| self.sources.kept_of(request));
        // It is better than nothing while the server is asked.
        let is_of_before = fetched.as_ref().is_some_and(|fetched| fetched.is_from_disk);
        if let (Some(request), Some(fetched)) = (request, fetched) {
            self.keep_answer(&begun.scope, request.clone(), fetched, keeps);
        }
        state.show(at, shown);
        // Not when it is written again: whoever works with it knows.
        let hottest = (is_command || !begun.had_view).then(|| where_to_look(&state, at)).flatten();
        drop(state);
        // Before files are followed: there must be a folder to follow them in.
        self.publish();
        self.follow_files();
        self.documents_placed();
        if let Some(hottest) = hottest {
            self.editor.say(MessageType::INFO, hottest);
        }
        is_of_before && at_start && begun.cause == Cause::Settings
    }

    /// Tells why nothing was loaded.
    fn not_loaded(self: &Arc<Self>, mut state: MutexGuard<'_, State>, at: usize, why: &str, begun: &Begun) {
        if begun.had_view {
            // What is shown stays, and goes on to be what is wanted.
            let state = &mut *state;
            if matches!(begun.cause, Cause::Command | Cause::Refresh) {
                state.folders[at].restore_choice(&state.trust);
            }
        } else {
            state.show(at, Shown::Failed { why: why.to_owned() });
        }
        drop(state);
        self.follow_files();
        if !begun.stop.flag.is_cancelled() && !begun.is_unasked() {
            self.editor.say(MessageType::ERROR, format!("perflens: {why}"));
        }
    }

    /// Keeps an answer on disk where settings want that, and removes it where they don't.
    fn keep_answer(self: &Arc<Self>, scope: &Path, request: Request, fetched: Arc<Fetched>, keeps: bool) {
        if request.query.is_none() || keeps && fetched.is_from_disk {
            return;
        }
        let (session, scope) = (Arc::clone(self), scope.to_owned());
        std::thread::spawn(move || {
            if !keeps {
                return session.answers.remove(&scope);
            }
            match session.answers.write(&scope, &request, &fetched) {
                Ok(()) => {}
                Err(error @ NotKept::TooLarge(_)) => {
                    session.editor.say(MessageType::WARNING, format!("perflens: {error}"));
                }
                Err(error) => tracing::warn!("{error}"),
            }
        });
    }

    /// Looks which folders have an answer on disk to what their settings ask for, and removes those that
    /// nobody wants any more.
    pub(super) fn find_answers(&self) {
        type Wanted = (PathBuf, bool, Option<Request>);
        let (folders, are_known): (Vec<Wanted>, bool) = {
            let state = self.state();
            let wanted = |folder: &Folder| {
                let keeps = folder.config().source.keep_answer;
                let request = if keeps { folder.request_with_labels() } else { None };
                (folder.scope().to_owned(), keeps, request)
            };
            // The first settings of an editor that is not asked for any are not all.
            let are_known = state.capabilities.has_configuration || self.has_settings.load(Ordering::SeqCst);
            (state.folders.iter().map(wanted).collect(), are_known)
        };
        for (scope, keeps, request) in folders {
            let has_answer = request.is_some_and(|request| self.answers.has(&scope, &request));
            if !keeps && are_known {
                self.answers.remove(&scope);
            }
            let mut state = self.state();
            if let Some(folder) = state.folders.iter_mut().find(|folder| folder.scope() == scope) {
                folder.has_answer = has_answer;
            }
        }
    }

    /// Removes all answers on disk: nobody is signed in any more.
    pub fn forget_answers(&self) {
        self.answers.remove_all();
        for folder in &mut self.state().folders {
            folder.has_answer = false;
        }
    }

    /// Remembers what a server was asked for, for the next time the folder is opened.
    fn keep_query(&self, folder: &mut Folder) {
        let input = folder.profile();
        let Some(query) = input.as_ref().and_then(Input::request).and_then(|request| request.query.clone()) else {
            return;
        };
        // A folder's services are asked for what the folder is.
        if folder.last.as_ref() != Some(&query) {
            let (last, root, kept) = (self.last.clone(), folder.root.clone(), query.clone());
            std::thread::spawn(move || last.set(&root, &kept));
        }
        folder.last = Some(query);
    }

    /// Fetches what a wish needs, then fulfils it. Dropped, it fetches no further.
    async fn fetch_and_load(self: Arc<Self>, begun: Begun) -> Option<Result<(View, Arc<Workspace>), Failure>> {
        let Begun { wish, stop, answer, may_ask, cause, .. } = begun;
        let is_anew = matches!(cause, Cause::Refresh | Cause::Interval);
        let freshness = if is_anew { Freshness::New } else { Freshness::Kept };
        let progress = Progress::default();
        if freshness == Freshness::Kept
            && let (Some(scope), Some(request)) = (answer, wish.profile.request())
            && self.sources.kept_of(request).is_none()
        {
            let (session, request) = (Arc::clone(&self), request.clone());
            let read = move || {
                let fetched = session.answers.read(&scope, &request).map(Arc::new);
                fetched.inspect(|fetched| session.sources.keep(&request, fetched)).is_some()
            };
            if !tokio::task::spawn_blocking(read).await.ok()? && !may_ask {
                let why = "the answer that was kept on disk can't be read any more; perflens.refresh asks the server";
                return Some(Err(Failure::Failed(why.to_owned())));
            }
        }
        let fetch = async |input: Option<&Input>| match input.and_then(Input::request) {
            Some(request) => self.sources.fetch(request, freshness, &progress).await.map(Some),
            None => Ok(None),
        };
        let fetched =
            async { Ok::<_, SourceError>((fetch(Some(&wish.profile)).await?, fetch(wish.base.as_ref()).await?)) };
        let is_received = [Some(&wish.profile), wish.base.as_ref()].contains(&Some(&Input::Received));
        let window = self.state().receiving.window().cloned().filter(|_| is_received);
        let received = window.and_then(|window| window.snapshot(Instant::now()));
        let given = match fetched.await {
            Ok((profile, base)) => Given { received, profile, base },
            Err(error) => return Some(Err(Failure::Failed(error.to_string()))),
        };
        let profiles = Arc::clone(&self.profiles);
        // A thread of its own: a disk that does not answer must not take one from hovers.
        let (done, work) = oneshot::channel();
        std::thread::spawn(move || {
            let _ = done.send(loader::load(&wish, &given, &profiles, &stop.flag));
        });
        work.await.ok()
    }
}
