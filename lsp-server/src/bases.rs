//! What a profile can be compared with, by what it is to the user rather than by its file: the recording
//! before the last edit, one at the merge-base with the main branch, the last one of a branch. Each is a
//! recording that is there, or a reason why there is none.
//!
//! Only recordings of the same test or command count. Two are of the same text when the workspace's files that
//! they have costs in are: what else has changed has no part in them.
//!
//! What is not here: profiling servers, which are asked for another time or version (`handlers/bases.rs`), and
//! recording anything.

use std::path::PathBuf;

use crate::runnable::{Earlier, Work};

/// Which base is meant. What a user writes for it stands instead of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// `edit:`, the same before the last edit.
    Edit,
    /// `merge-base:`, the same at the commit where this branch left the main one.
    MergeBase,
    /// `branch:NAME`, the last one of a branch.
    Branch(String),
    /// `version:`, the version before this one, or `version:NAME`.
    Version(Option<String>),
    /// `yesterday:`, the same time a day earlier.
    Yesterday,
}

impl Which {
    /// Reads it; `None` is a file or an address.
    ///
    /// ```
    /// use perflens::bases::Which;
    /// assert_eq!(Which::read("branch:main"), Some(Which::Branch("main".to_owned())));
    /// assert_eq!(Which::read("edit:"), Some(Which::Edit));
    /// assert_eq!(Which::read("./branch:main"), None);
    /// ```
    pub fn read(text: &str) -> Option<Self> {
        let (word, rest) = text.split_once(':')?;
        match (word, rest) {
            ("edit", "") => Some(Self::Edit),
            ("merge-base", "") => Some(Self::MergeBase),
            ("branch", name) if !name.is_empty() => Some(Self::Branch(name.to_owned())),
            ("version", name) => Some(Self::Version((!name.is_empty()).then(|| name.to_owned()))),
            ("yesterday", "") => Some(Self::Yesterday),
            _ => None,
        }
    }

    /// What a user writes for it.
    pub fn word(&self) -> String {
        match self {
            Self::Edit => "edit:".to_owned(),
            Self::MergeBase => "merge-base:".to_owned(),
            Self::Branch(name) => format!("branch:{name}"),
            Self::Version(name) => format!("version:{}", name.as_deref().unwrap_or_default()),
            Self::Yesterday => "yesterday:".to_owned(),
        }
    }

    /// For people, as the end of "compare with …".
    pub fn title(&self) -> String {
        match self {
            Self::Edit => "before my edit".to_owned(),
            Self::MergeBase => "merge-base with the main branch".to_owned(),
            Self::Branch(name) => format!("last recording of branch {name}"),
            Self::Version(None) => "the version before".to_owned(),
            Self::Version(Some(name)) => format!("version {name}"),
            Self::Yesterday => "same hour yesterday".to_owned(),
        }
    }
}

/// A base that can be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The recording.
    pub path: PathBuf,
    /// What it is called where it is shown: `before my edit`, `merge-base 1a2b3c4d5e`.
    pub title: String,
    /// When, and at which commit: `12min ago, at 1a2b3c4d5e on main`.
    pub detail: String,
}

/// A base, or why there is none: a clause without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Which.
    pub which: Which,
    /// The recording.
    pub found: Result<Found, String>,
}

/// A recording from before an edit whose program was kept, to run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Before {
    /// What is kept beside the recording, which may be gone by the time that new ones have been made.
    pub beside: serde_json::Value,
    /// Its program.
    pub earlier: Earlier,
    /// SHA-256 of that, in hex.
    pub hash: String,
    /// The work that was done.
    pub work: Work,
}

/// What a recording is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ran {
    /// A test, as [`Order::key`](crate::runnable::Order::key) names it.
    Test(String),
    /// A command: its program, as it was named.
    Program(String),
    /// Processes that were there before.
    Processes,
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) use recorded::before_of;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use recorded::{before_now, find, is_recording, is_same_program, mark_base_run, offers, ran, work_of};

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub use unrecorded::{before_now, find, is_recording, is_same_program, mark_base_run, offers, ran, work_of};

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
mod unrecorded {
    use std::io;
    use std::path::Path;

    use super::{Before, Found, Offer, Ran, Which, Work};

    /// Nothing is recorded here.
    pub fn work_of(_: &Path) -> Option<Work> {
        None
    }

    /// Nothing is recorded here.
    ///
    /// # Errors
    /// Always.
    pub fn before_now(_: Option<&Path>, _: &Path, _: &str) -> Result<Before, String> {
        Err("there are no recordings on this system".to_owned())
    }

    /// Nothing is recorded here.
    pub fn is_recording(_: &Path) -> bool {
        false
    }

    /// Nothing is recorded here.
    pub fn is_same_program(_: &Path, _: &Before) -> bool {
        false
    }

    /// Nothing is recorded here.
    ///
    /// # Errors
    /// Never.
    pub fn mark_base_run(_: Option<&Path>, _: &Path, _: &Path, _: &Before) -> io::Result<()> {
        Ok(())
    }

    /// Nothing is recorded here.
    pub fn ran(_: Option<&Path>, _: &Path) -> Option<Ran> {
        None
    }

    /// Nothing is recorded here.
    pub fn offers(_: Option<&Path>, _: &Path, _: &Path) -> Vec<Offer> {
        Vec::new()
    }

    /// Nothing is recorded here.
    ///
    /// # Errors
    /// Always.
    pub fn find(_: &Which, _: Option<&Path>, _: &Path, _: &Path) -> Result<Found, String> {
        Err("there are no recordings on this system; name a profile file".to_owned())
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod recorded {
    use std::io;
    use std::path::{Path, PathBuf};
    use std::time::SystemTime;

    use sha2::{Digest, Sha256};

    use super::{Before, Earlier, Found, Offer, Ran, Which, Work};
    use crate::anchor::git::Repository;
    use crate::record::store::{About, Kept, Store, Text, hex, is_recording as is_in_store, rewrite_about};
    use crate::when;

    /// Digits by which people know a commit.
    const SHORT: usize = 10;
    /// Most branches that are offered.
    const MAX_BRANCHES: usize = 3;

    /// A recording with what is kept beside it.
    struct Recording {
        path: PathBuf,
        time: SystemTime,
        about: About,
    }

    /// What is shown, and the other recordings of the same, the newest first.
    struct Known {
        shown: Recording,
        others: Vec<Recording>,
    }

    /// What the recording that is shown can be compared with. Reads the disk and asks git.
    pub fn offers(recordings: Option<&Path>, root: &Path, shown: &Path) -> Vec<Offer> {
        let known = match Known::of(recordings, root, shown) {
            Ok(known) => known,
            Err(why) => {
                let none = |which| Offer { which, found: Err(why.clone()) };
                return [Which::Edit, Which::MergeBase].map(none).to_vec();
            }
        };
        let mut branches: Vec<&str> = Vec::new();
        for branch in known.others.iter().filter_map(|other| other.about.branch.as_deref()) {
            if !branches.contains(&branch) {
                branches.push(branch);
            }
        }
        let branches = branches.into_iter().take(MAX_BRANCHES).map(|name| Which::Branch(name.to_owned()));
        [Which::Edit, Which::MergeBase]
            .into_iter()
            .chain(branches)
            .map(|which| Offer { found: known.find(&which, root), which })
            .collect()
    }

    /// A recording that the one that is shown can be compared with. Reads the disk and asks git.
    ///
    /// # Errors
    /// Why there is none; a clause without a full stop.
    pub fn find(which: &Which, recordings: Option<&Path>, root: &Path, shown: &Path) -> Result<Found, String> {
        Known::of(recordings, root, shown)?.find(which, root)
    }

    /// The newest recording of a test whose files were other texts than they are now, with its program.
    ///
    /// # Errors
    /// Why there is none; a sentence without a full stop.
    pub fn before_now(recordings: Option<&Path>, root: &Path, test: &str) -> Result<Before, String> {
        let name = test.split_once(' ').map_or(test, |(_, name)| name);
        let store = recordings.map(|recordings| Store::new(recordings, root));
        let store = store.ok_or("no folder to keep recordings in is known; set HOME")?;
        let is_now = |text: &Text| {
            let now = std::fs::read(root.join(&text.path)).ok();
            now.is_some_and(|now| hex(&Sha256::digest(&now)) == text.hash)
        };
        let older = |about: &About| about.test == test && !about.is_base_run && !about.files.iter().all(is_now);
        let found = store.list().into_iter().find_map(|(path, _)| About::read(&path).filter(older));
        let about = found.ok_or_else(|| {
            format!("there is no recording of {name} from before an edit; profile it, edit, save, then run this")
        })?;
        kept(&about, &store)
    }

    /// The program of a recording of a test, to run again.
    ///
    /// # Errors
    /// Why it is not kept; a sentence without a full stop.
    pub(crate) fn before_of(recordings: Option<&Path>, root: &Path, recording: &Path) -> Result<Before, String> {
        let store = recordings.map(|recordings| Store::new(recordings, root));
        let store = store.ok_or("no folder to keep recordings in is known; set HOME")?;
        kept(&About::read(recording).ok_or("what is kept beside the recording is gone")?, &store)
    }

    fn kept(about: &About, store: &Store) -> Result<Before, String> {
        let name = about.test.split_once(' ').map_or(about.test.as_str(), |(_, name)| name);
        let beside = serde_json::to_value(about).map_err(|error| error.to_string())?;
        let kept = about.kept.as_ref().ok_or_else(|| {
            format!(
                "{name} runs from its source, which is another now, so its base can't run again; compare recordings"
            )
        })?;
        let program = store.program(kept).ok_or_else(|| {
            format!("the program of {name} from before the edit is not kept any more; profile its base again")
        })?;
        let Kept { hash, arguments, environment, folder } = kept.clone();
        let earlier = Earlier { program, arguments, environment, folder, under: about.under.clone() };
        Ok(Before { beside, earlier, hash, work: about.work })
    }

    /// Whether a profile is a recording of ours.
    pub fn is_recording(profile: &Path) -> bool {
        About::read(profile).is_some()
    }

    /// What a recording is of; `None` for a profile that is none.
    pub fn ran(recordings: Option<&Path>, profile: &Path) -> Option<Ran> {
        let about = About::read(profile).filter(|_| is_in_store(recordings, profile))?;
        if !about.test.is_empty() {
            return Some(Ran::Test(about.test));
        }
        Some(about.command.into_iter().next().map_or(Ran::Processes, Ran::Program))
    }

    /// Whether a recording is of the program that was kept.
    pub fn is_same_program(recording: &Path, before: &Before) -> bool {
        About::read(recording).and_then(|about| about.kept).is_some_and(|kept| kept.hash == before.hash)
    }

    /// The work that was done in a recording.
    pub fn work_of(recording: &Path) -> Option<Work> {
        About::read(recording).map(|about| about.work)
    }

    /// Says of a recording that it is of a program from before: what it ran and its texts are those of then.
    ///
    /// # Errors
    /// It can't be written.
    pub fn mark_base_run(recordings: Option<&Path>, root: &Path, recording: &Path, before: &Before) -> io::Result<()> {
        let gone = || io::Error::other("what is kept beside it is gone");
        let then: About = serde_json::from_value(before.beside.clone())?;
        let mut about = About::read(recording).ok_or_else(gone)?;
        (about.commit, about.branch, about.dirty) = (then.commit, then.branch, then.dirty);
        (about.files, about.ran, about.kept) = (then.files, then.ran, then.kept);
        rewrite_about(recording, &about)?;
        let store = recordings.map(|recordings| Store::new(recordings, root));
        store.zip(about.kept).map_or(Ok(()), |(store, kept)| store.ran_again(&kept))
    }

    impl Known {
        fn of(recordings: Option<&Path>, root: &Path, shown: &Path) -> Result<Self, String> {
            let about = About::read(shown).filter(|_| is_in_store(recordings, shown));
            let (Some(recordings), Some(about)) = (recordings, about) else {
                return Err("what is shown is no recording of this machine".to_owned());
            };
            if about.test.is_empty() && about.command.is_empty() {
                return Err("what is shown is of a process, so nobody knows what ran the same".to_owned());
            }
            let is_same =
                |other: &About| other.test == about.test && (!about.test.is_empty() || other.command == about.command);
            let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
            let own = real(shown);
            let mut time = SystemTime::now();
            let mut others = Vec::new();
            for (path, written) in Store::new(recordings, root).list() {
                if real(&path) == own {
                    time = written;
                } else if let Some(about) = About::read(&path).filter(|about| is_same(about) && !about.is_base_run) {
                    others.push(Recording { path, time: written, about });
                }
            }
            Ok(Self { shown: Recording { path: own, time, about }, others })
        }

        fn find(&self, which: &Which, root: &Path) -> Result<Found, String> {
            let name = self.name();
            let (found, title) = match which {
                Which::Edit => {
                    let mut older = self.others.iter().filter(|other| other.is_before(&self.shown)).peekable();
                    if older.peek().is_none() {
                        return Err(format!("there is no recording of {name} before this one"));
                    }
                    let differs = older.find(|other| !other.has_same_text(&self.shown));
                    let none = || format!("all recordings of {name} before this one are of the same text");
                    (differs.ok_or_else(none)?, which.title())
                }
                Which::MergeBase => self.at_merge_base(root)?,
                Which::Branch(branch) => {
                    let mut of_branch = self.others.iter();
                    let found = of_branch.find(|other| other.about.branch.as_ref() == Some(branch));
                    let none = || format!("there is no other recording of {name} on branch {branch}");
                    (found.ok_or_else(none)?, format!("branch {branch}"))
                }
                Which::Version(_) | Which::Yesterday => {
                    return Err("only a profiling server can be asked for that".to_owned());
                }
            };
            Ok(Found { path: found.path.clone(), title, detail: found.detail() })
        }

        /// The newest one of the text that the commit has where this branch left the main one.
        fn at_merge_base(&self, root: &Path) -> Result<(&Recording, String), String> {
            let mut repository = Repository::around(root).ok_or("this is no git repository")?;
            let main = repository.main_branch().ok_or("this repository has no branch main or master")?;
            let base = repository.merge_base("HEAD", &main);
            let base = base.ok_or_else(|| format!("this branch and {main} have no commit in common"))?;
            let short: String = base.chars().take(SHORT).collect();
            let mut is_of_base = |text: &Text| {
                let path = root.canonicalize().unwrap_or_else(|_| root.to_owned()).join(&text.path);
                let relative = path.strip_prefix(&repository.top).ok().and_then(Path::to_str).map(str::to_owned);
                let content = relative.and_then(|relative| repository.text(&base, &relative));
                content.is_some_and(|content| hex(&Sha256::digest(content.as_bytes())) == text.hash)
            };
            let found = self.others.iter().find(|other| {
                let about = &other.about;
                let is_clean = about.commit.as_ref() == Some(&base) && about.dirty == Some(false);
                is_clean || (!about.files.is_empty() && about.files.iter().all(&mut is_of_base))
            });
            let name = self.name();
            let none = || format!("there is no recording of {name} as it was at {short}, the merge-base with {main}");
            Ok((found.ok_or_else(none)?, format!("merge-base {short}")))
        }

        /// What the recordings are of.
        fn name(&self) -> String {
            let about = &self.shown.about;
            let of_test = about.test.split_once(' ').map(|(_, name)| name.to_owned());
            let program = || about.command.first().and_then(|program| program.rsplit('/').next()).unwrap_or_default();
            of_test.unwrap_or_else(|| program().to_owned())
        }
    }

    impl Recording {
        /// Whether it was made earlier. Names begin with the time; of one second the file's decides.
        fn is_before(&self, other: &Self) -> bool {
            (self.time, self.path.file_name()) < (other.time, other.path.file_name())
        }

        /// Whether the files that have costs were the same.
        fn has_same_text(&self, other: &Self) -> bool {
            let texts = |recording: &Self| {
                let mut texts: Vec<(PathBuf, String)> =
                    recording.about.files.iter().map(|text| (text.path.clone(), text.hash.clone())).collect();
                texts.sort();
                texts
            };
            let (mine, theirs) = (texts(self), texts(other));
            // A file with no sample in one of them says nothing of its text.
            mine.iter().all(|(path, hash)| theirs.iter().all(|(other, other_hash)| path != other || hash == other_hash))
        }

        fn detail(&self) -> String {
            let mut detail = when::written(self.time, &when::now()).unwrap_or_default();
            if let Some(commit) = &self.about.commit {
                detail += ", at ";
                detail.extend(commit.chars().take(SHORT));
                if self.about.dirty == Some(true) {
                    detail += " with edits";
                }
            }
            if let Some(branch) = &self.about.branch {
                detail += " on ";
                detail += branch;
            }
            detail
        }
    }
}
