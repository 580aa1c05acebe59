//! Notices that an opened profile was written again. Many editors watch nothing for us, so
//! the server does.
//!
//! The folder is watched rather than the file, since tools replace files by new ones. Folders of
//! the workspace are watched for new files of certain names only: those the profile has costs
//! for and that were not there when files were listed.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use notify::event::ModifyKind;
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

/// A file that is written in pieces has been written when nothing came for this long.
const SETTLED: Duration = Duration::from_millis(150);

/// What to watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// Files, for being written or replaced.
    pub files: HashSet<PathBuf>,
    /// Folders, for new files of these names.
    pub folders: HashSet<PathBuf>,
    /// The names.
    pub names: HashSet<OsString>,
}

impl Watched {
    fn concerns(&self, path: &Path, is_new: bool) -> bool {
        self.files.contains(path) || is_new && path.file_name().is_some_and(|name| self.names.contains(name))
    }
}

enum Event {
    Watch(Watched),
    Changed { paths: Vec<PathBuf>, is_new: bool },
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

    /// Watches this instead of what it was before.
    pub fn set(&self, watched: Watched) {
        // The thread only ends with the process.
        let _ = self.wishes.send(Event::Watch(watched));
    }
}

fn run(events: &Receiver<Event>, sender: &Sender<Event>, changed: &impl Fn(HashSet<PathBuf>)) {
    let forward = sender.clone();
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if let Ok(event) = event
            && !event.kind.is_access()
        {
            let is_new = matches!(event.kind, EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(_)));
            let _ = forward.send(Event::Changed { paths: event.paths, is_new });
        }
    });
    let mut watcher = match watcher {
        Ok(watcher) => watcher,
        Err(error) => {
            tracing::warn!("profiles are not watched: {error}");
            return;
        }
    };
    let mut watched = Watched::default();
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
                watched = wanted;
            }
            Ok(Event::Changed { paths, is_new }) => {
                touched.extend(paths.into_iter().filter(|path| watched.concerns(path, is_new)));
            }
            Err(RecvTimeoutError::Timeout) => changed(std::mem::take(&mut touched)),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn follow(watcher: &mut RecommendedWatcher, folders: &mut HashSet<PathBuf>, watched: &Watched) {
    let of_files = watched.files.iter().filter_map(|file| file.parent().map(Path::to_owned));
    let wanted: HashSet<PathBuf> = of_files.chain(watched.folders.iter().cloned()).collect();
    for gone in folders.difference(&wanted) {
        let _ = watcher.unwatch(gone);
    }
    // A folder that is not there can't be watched; nothing can be written in it either.
    let wanted: HashSet<PathBuf> = wanted.into_iter().filter(|folder| folder.is_dir()).collect();
    for folder in wanted.difference(folders) {
        if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive) {
            tracing::warn!("{} is not watched: {error}", folder.display());
        }
    }
    *folders = wanted;
}
