//! What is shown of a server, fetched again every so often where settings want that. Only while a file that
//! shows it is open, one request at a time, never while somebody types, and ever more rarely while it fails.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Cause, Session};
use crate::loader::Input;
use crate::source::query::TimeRange;
use crate::state::State;
use crate::state::folder::{Folder, Following};

/// However often it fails, it is tried again after so long, or after the interval if that is longer.
const RAREST: Duration = Duration::from_hours(1);

impl Session {
    /// Goes on until the process ends.
    pub(super) async fn keep_fresh(self: Arc<Self>) {
        loop {
            let next = next(&self.state());
            let Some((_, due)) = next else {
                self.may_be_due.notified().await;
                continue;
            };
            tokio::select! {
                () = tokio::time::sleep_until(due.into()) => {}
                () = self.may_be_due.notified() => continue,
            }
            self.until_quiet().await;
            // Meanwhile files may have been closed, or something else was asked for.
            let folder = next_at(&self.state(), Instant::now());
            if let Some(folder) = folder {
                // When it ends, that is told.
                self.load(folder, Cause::Interval);
            }
        }
    }
}

/// The folder whose turn it is, if it has come.
fn next_at(state: &State, now: Instant) -> Option<usize> {
    next(state).filter(|(_, due)| *due <= now).map(|(folder, _)| folder)
}

/// The folder that is to be fetched next, and when.
fn next(state: &State) -> Option<(usize, Instant)> {
    let shown: Vec<&Folder> = state.documents.iter().filter_map(|document| state.view_of(&document.path)).collect();
    let due = |folder: &Folder| {
        let interval = folder.config().source.refresh_seconds.get()?;
        let is_seen = shown.iter().any(|shown| std::ptr::eq(*shown, folder));
        let may = is_seen && folder.load.is_none() && folder.view().is_some() && changes(folder);
        may.then(|| folder.following.due(interval)).flatten()
    };
    let folders = state.folders.iter().enumerate();
    folders.filter_map(|(at, folder)| Some((at, due(folder)?))).min_by_key(|(_, due)| *due)
}

/// Whether the same query may have another answer later. What records while it answers is not asked unasked.
fn changes(folder: &Folder) -> bool {
    let query = folder.profile().as_ref().and_then(Input::request).and_then(|request| request.query.clone());
    query.is_some_and(|query| !matches!(query.range, TimeRange::Between(..)))
}

impl Following {
    /// When to ask again; `None` before anything was asked.
    fn due(&self, interval: Duration) -> Option<Instant> {
        let rarest = interval.max(RAREST);
        let pause = interval.saturating_mul(2u32.saturating_pow(self.failures)).min(rarest);
        Some(self.asked_at? + pause)
    }

    /// A load has ended, and failed with this sentence or went well. Returns whether the user has to be told:
    /// that nobody asked for it, and it is the first to fail.
    pub(super) fn ended(&mut self, cause: Cause, why: Option<&str>) -> bool {
        if !matches!(cause, Cause::Settings | Cause::Command | Cause::Refresh | Cause::Interval) {
            // Nobody was asked.
            return false;
        }
        let before = std::mem::take(self);
        self.asked_at = Some(Instant::now());
        match why {
            Some(why) if cause == Cause::Interval => {
                self.failures = before.failures.saturating_add(1);
                self.problem = Some(why.to_owned());
                before.problem.is_none()
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_asked_ever_more_rarely() {
        let start = Instant::now();
        let after = |failures, seconds| {
            let following = Following { asked_at: Some(start), failures, problem: None };
            following.due(Duration::from_secs(seconds)).map(|due| (due - start).as_secs())
        };
        assert_eq!((after(0, 30), after(1, 30), after(3, 30)), (Some(30), Some(60), Some(240)));
        assert_eq!((after(7, 30), after(u32::MAX, 30)), (Some(3600), Some(3600)));
        assert_eq!((after(0, 7200), after(5, 7200)), (Some(7200), Some(7200)));
        assert_eq!(Following::default().due(Duration::from_secs(30)), None);
    }

    #[test]
    fn a_failure_that_nobody_asked_for_is_told_once() {
        let mut following = Following::default();
        let mut ended = |cause, why| (following.ended(cause, why), following.failures);
        assert_eq!(ended(Cause::Command, None), (false, 0));
        assert_eq!(ended(Cause::Interval, Some("it is gone")), (true, 1));
        assert_eq!(ended(Cause::Interval, Some("it is busy")), (false, 2));
        assert_eq!(ended(Cause::Edited, None), (false, 2));
        assert_eq!(ended(Cause::Interval, None), (false, 0));
        assert_eq!(ended(Cause::Interval, Some("it is gone")), (true, 1));
        // This was told anyway.
        assert_eq!(ended(Cause::Refresh, Some("it is gone")), (false, 0));
    }
}
