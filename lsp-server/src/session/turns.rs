//! Base and new version in turns: the program of before an edit, which was kept, and the one of now run alternately,
//! several times, so that whatever slows the machine down meets both alike. Each line and function is then judged
//! by all pairs.
//!
//! Each run is a recording like any other, made by a child ([`recording`](super::recording)). Those of the base have the
//! texts of the base beside them, so that their lines are found in today's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsp_types::MessageType;
use profiler_core::view::compare;
use serde_json::json;

use super::profile_test::Ordered;
use super::recording::{Target, lines_of, spawn};
use super::{Cause, Session};
use crate::bases;
use crate::commands::RecordedEvent;
use crate::handlers::on_pool;
use crate::loader::{Input, RunPair, Stop};
use crate::runnable::{Offer, Order};
use crate::state::under_way::UnderWay;
use crate::turns::{self, Side, Turns};
use crate::watched::Done;

/// Pairs when nobody says how many.
pub const PAIRS: u32 = 5;

impl Session {
    /// Runs what is offered for a file in turns with its program of before the last edit.
    pub async fn profile_in_turns(self: &Arc<Self>, file: &Path, offer: Offer, pairs: u32) -> Result<(), String> {
        let Ordered { order, .. } = self.ordered(file, offer).await?;
        let recordings = self.state().recordings.clone();
        let name = order.runnable.name.clone();
        let (key, root) = (order.key(), order.root.clone());
        // Programs are read as a whole.
        let turns = on_pool(move |_| {
            let before = bases::before_now(recordings.as_deref(), &order.root, &order.key())?;
            Turns::new(before, &order, recordings)
        });
        let turns = turns.await.map_err(|error| error.to_string())??;
        let is_same = self.has_base_of(file, &key).await;
        let stop;
        {
            let mut state = self.state();
            if state.recording.is_some() {
                return Err("a recording is under way; perflens.stopRecording ends it".to_owned());
            }
            let recording = state.recording.insert(UnderWay::new(root.clone(), RecordedEvent::Cpu.word()));
            stop = recording.stop.clone();
        }
        self.ask_anew(file, is_same);
        let session = Arc::clone(self);
        tokio::spawn(async move { session.take_turns((root, name), turns, pairs, stop).await });
        Ok(())
    }

    async fn take_turns(self: Arc<Self>, of: (PathBuf, String), turns: Turns, pairs: u32, stop: Stop) {
        let (root, name) = of;
        let token = self.show_recording(format!("Running {name} in turns with its base"), &stop).await;
        self.recording_begins();
        let done = self.turns(turns, pairs, &stop, token.as_deref()).await;
        {
            let mut state = self.state();
            state.recording = None;
            if let Some(token) = &token {
                state.progress.remove(token);
            }
        }
        self.tell_changed();
        if let Some(token) = token {
            self.editor.end_progress(&token, None).await;
        }
        match done {
            Ok((runs, under)) => self.show_turns(&root, &name, runs, under).await,
            Err(why) => self.editor.say(MessageType::ERROR, format!("perflens: {name} in turns: {why}")),
        }
    }

    /// Makes all recordings; with the filter that keeps what counts.
    async fn turns(
        &self,
        mut turns: Turns,
        pairs: u32,
        stop: &Stop,
        token: Option<&str>,
    ) -> Result<(Vec<RunPair>, Option<String>), String> {
        let mut under = None;
        for turn in turns::order(pairs, Side::Base) {
            let (side, what) = (turn.side, turn.side.word());
            self.report(token, format!("pair {} of {pairs}: {what}", turn.pair)).await;
            let done = self.run_once(turns.ordered(side), stop).await.map_err(|why| format!("{what}: {why}"))?;
            let (failure, own) = done.tested.map_or((None, None), |tested| (tested.failure, tested.under));
            if let Some(failure) = failure {
                return Err(format!("{what}: {failure}"));
            }
            if side == Side::New {
                under = own.or(under);
            }
            let taken = on_pool(move |_| turns.take(side, done.path).map(|()| turns)).await;
            turns = taken.map_err(|error| error.to_string())?.map_err(|why| format!("{what}: {why}"))?;
        }
        Ok((turns.pairs(), under))
    }

    /// Makes one recording to its end, and shows nothing of it.
    async fn run_once(&self, order: &Order, stop: &Stop) -> Result<Done, String> {
        let target = Target::Test(Box::new(order.clone()));
        let spawned = spawn(&order.root, &target, None, RecordedEvent::Cpu);
        let (child, input, output) = spawned.map_err(|error| format!("starting the recorder: {error}"))?;
        let mut lines = lines_of(child, output);
        let mut input = Some(input);
        let mut end = None;
        loop {
            let line = tokio::select! {
                line = lines.recv() => line,
                () = stop.stopped(), if input.is_some() => {
                    // The end of its input is how the child is told.
                    input = None;
                    continue;
                }
            };
            let Some(line) = line else { break };
            if let Some(path) = line.path() {
                self.state().recordings_seen.insert(path.to_owned());
            }
            end = line.end().or(end);
        }
        if input.is_none() {
            return Err("it was cancelled".to_owned());
        }
        end.unwrap_or_else(|| Err("the recording broke off".to_owned()))
    }

    /// Shows the sums, judged by all pairs, and tells what came of it.
    async fn show_turns(self: &Arc<Self>, root: &Path, name: &str, runs: Vec<RunPair>, under: Option<String>) {
        let Some(first) = runs.first().cloned() else { return };
        let count = runs.len();
        let at = {
            let mut state = self.state();
            let state = &mut *state;
            let Some(at) = state.folders.iter().position(|folder| folder.root == root) else { return };
            let own = &mut state.folders[at];
            let base = Input::File(first.base);
            own.chosen.profile = Some(Some(Input::File(first.new)));
            own.chosen.title = Some((base.clone(), format!("before my edit, {count} pairs of runs")));
            own.chosen.base = Some(Some(base));
            own.chosen.runs = runs;
            let filters: Vec<String> = under.into_iter().collect();
            own.layers.set_for_session("query.filters", json!(filters));
            own.layers.set_for_session("query.normalize", json!(false));
            own.read_settings(&state.trust);
            at
        };
        self.load(at, Cause::Command);
        self.wait_for_load(at).await;
        let (view, is_loading) = {
            let state = self.state();
            let own = state.folders.get(at);
            (own.and_then(|folder| folder.view().cloned()), own.is_some_and(|folder| folder.load.is_some()))
        };
        let headline = match view.as_ref().and_then(|view| Some((view, view.comparison.as_ref()?))) {
            _ if is_loading => Some("they are still being read".to_owned()),
            Some((view, comparison)) => compare::headline(&view.analysis, &comparison.compared),
            None => None,
        };
        let headline = headline.map_or_else(String::new, |headline| format!("; {headline}"));
        self.editor.say(MessageType::INFO, format!("perflens: {name}: {count} pairs of runs in turns{headline}"));
    }
}
