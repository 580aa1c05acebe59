//! Notices that an opened profile was written again. Many editors watch nothing for us, so
//! the server does.
//!
//! The folder is watched rather than the file, since tools replace files by new ones. What is
//! not here: files of the workspace; they are listed anew whenever a profile is loaded.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};

/// A file that is written in pieces has been written when nothing came for this long.
const SETTLED: Duration = Duration::from_millis(150);

enum Event {
    Watch(HashSet<PathBuf>),
    Changed(Vec<PathBuf>),
}

/// Watches a set of files on a thread of its own.
#[derive(Debug)]
pub struct Watch {
    wishes: Sender<Event>,
}

impl Watch {
    /// Starts with no files. `changed` is called with those that were written or replaced,
    /// once they have settled.
    pub fn new(changed: impl Fn(HashSet<PathBuf>) + Send + 'static) -> Self {
        let (wishes, events) = channel();
        let sender = wishes.clone();
        std::thread::spawn(move || run(&events, &sender, &changed));
        Self { wishes }
    }

    /// Watches these files instead of the ones before.
    pub fn set(&self, files: HashSet<PathBuf>) {
        // The thread only ends with the process.
        let _ = self.wishes.send(Event::Watch(files));
    }
}

fn run(events: &Receiver<Event>, sender: &Sender<Event>, changed: &impl Fn(HashSet<PathBuf>)) {
    let forward = sender.clone();
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if let Ok(event) = event
            && !event.kind.is_access()
        {
            let _ = forward.send(Event::Changed(event.paths));
        }
    });
    let mut watcher = match watcher {
        Ok(watcher) => watcher,
        Err(error) => {
            tracing::warn!("profiles are not watched: {error}");
            return;
        }
    };
    let mut files: HashSet<PathBuf> = HashSet::new();
    let mut folders: HashSet<PathBuf> = HashSet::new();
    let mut touched: HashSet<PathBuf> = HashSet::new();
    loop {
        let event = if touched.is_empty() {
            events.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            events.recv_timeout(SETTLED)
        };
        match event {
            Ok(Event::Watch(wanted)) => {
                follow(&mut watcher, &mut folders, &wanted);
                files = wanted;
            }
            Ok(Event::Changed(paths)) => touched.extend(paths.into_iter().filter(|path| files.contains(path))),
            Err(RecvTimeoutError::Timeout) => changed(std::mem::take(&mut touched)),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn follow(watcher: &mut RecommendedWatcher, folders: &mut HashSet<PathBuf>, files: &HashSet<PathBuf>) {
    let wanted: HashSet<PathBuf> = files.iter().filter_map(|file| file.parent().map(Path::to_owned)).collect();
    for gone in folders.difference(&wanted) {
        let _ = watcher.unwatch(gone);
    }
    for folder in wanted.difference(folders) {
        if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive) {
            tracing::warn!("{} is not watched: {error}", folder.display());
        }
    }
    *folders = wanted;
}
