//! Profiles that were read lately, so that another value type, filter or comparison of the
//! same file costs no second reading. With each goes what its source files held when it was
//! first read: that is what was profiled, as far as anyone knows, whatever happens to them later.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use profiler_core::cancel::CancelFlag;
use profiler_core::decode::{DecodeError, Limits, decode};
use profiler_core::profile::Profile;
use profiler_core::symbolize::ProfileError;

use super::{Failure, decode_fetched};
use crate::anchor::Opened;
use crate::otlp::Snapshot;
use crate::source::Fetched;
use crate::symbols::{Places, named, sidecar};

/// How many are kept: what is shown, its base, and what was shown before.
const KEPT: usize = 4;

/// What was read, as it was when it was read. Any difference means to read it again.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stamp {
    File {
        path: PathBuf,
        bytes: u64,
        modified: Option<SystemTime>,
        /// That of the names beside it.
        names: Option<SystemTime>,
    },
    /// What is fetched anew has another number.
    Fetched { serial: u64 },
    /// What was received, as of a moment, and where its addresses were looked for.
    Received { serial: u64, places: Places },
}

impl Stamp {
    /// Whether the other is the same file, as it may have been before.
    fn replaces(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { path, .. }, Self::File { path: other, .. }) => path == other,
            (Self::Received { .. }, Self::Received { .. }) => true,
            _ => self == other,
        }
    }
}

/// Why a profile could not be read.
#[derive(Debug)]
pub(super) enum ReadError {
    Io(io::Error),
    Decode(DecodeError),
    Cancelled,
}

/// A profile, and its source files as they were when it was first read.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) profile: Arc<Profile>,
    pub(super) opened: Arc<Mutex<Opened>>,
    /// When the profile was there for certain, for files.
    pub(super) taken_here: Option<SystemTime>,
    /// The profile with what was found out about its addresses, and where that was looked for.
    pub(super) symbolised: Arc<Mutex<Option<Symbolised>>>,
}

pub(super) type Symbolised = (Places, Arc<Profile>);

impl Known {
    pub(super) fn new(profile: Profile, taken_here: Option<SystemTime>) -> Self {
        Self { profile: Arc::new(profile), opened: Arc::default(), taken_here, symbolised: Arc::default() }
    }

    /// The profile, with lines where this machine knows them.
    pub(super) fn symbolised(&self, places: &Places, cancel: &CancelFlag) -> Result<Arc<Profile>, Failure> {
        let mut symbolised = self.symbolised.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, profile)) = &*symbolised
            && known == places
        {
            return Ok(Arc::clone(profile));
        }
        let profile = match places.symbolised(Arc::clone(&self.profile), self.taken_here, cancel) {
            Ok(profile) => profile,
            Err(ProfileError::Cancelled(cancelled)) => return Err(cancelled.into()),
            // Too large to take in what was found: what there was is still there.
            Err(ProfileError::TooLarge(_)) => Arc::clone(&self.profile),
        };
        *symbolised = Some((places.clone(), Arc::clone(&profile)));
        Ok(profile)
    }
}

/// The last few profiles that were read, the latest first.
#[derive(Debug, Default)]
pub struct Profiles {
    kept: Mutex<Vec<(Stamp, Known)>>,
}

impl Profiles {
    pub(super) fn read(&self, path: &Path, limits: &Limits, cancel: &CancelFlag) -> Result<Known, ReadError> {
        let file = File::open(path).map_err(ReadError::Io)?;
        let metadata = file.metadata().map_err(ReadError::Io)?;
        if metadata.is_dir() {
            return Err(ReadError::Io(io::ErrorKind::IsADirectory.into()));
        }
        let modified = metadata.modified().ok();
        let names = fs::metadata(sidecar(path)).and_then(|metadata| metadata.modified()).ok();
        let stamp = Stamp::File { path: path.to_owned(), bytes: metadata.len(), modified, names };
        let known = if let Some(known) = self.take(&stamp) {
            known
        } else {
            let profile = decode(file, limits, cancel).map_err(ReadError::Decode)?;
            Known::new(named(profile, path, cancel).map_err(|_| ReadError::Cancelled)?, modified)
        };
        self.keep(stamp, known.clone());
        Ok(known)
    }

    pub(super) fn read_fetched(
        &self,
        fetched: &Fetched,
        limits: &Limits,
        cancel: &CancelFlag,
    ) -> Result<Known, Failure> {
        let stamp = Stamp::Fetched { serial: fetched.serial };
        let known = match self.take(&stamp) {
            Some(known) => known,
            None => Known::new(decode_fetched(fetched, limits, cancel)?, None),
        };
        self.keep(stamp, known.clone());
        Ok(known)
    }

    /// Reads what was received. As long as no binary in it is another build than before, source
    /// files are what they were then: what sends runs on as it was built, while they are edited.
    pub(super) fn read_received(
        &self,
        snapshot: &Snapshot,
        places: &Places,
        cancel: &CancelFlag,
    ) -> Result<Known, Failure> {
        let stamp = Stamp::Received { serial: snapshot.serial, places: places.clone() };
        if let Some(known) = self.take(&stamp) {
            self.keep(stamp, known.clone());
            return Ok(known);
        }
        let before = self.received();
        let profile = match snapshot.profile(places, cancel) {
            Ok(profile) => profile,
            Err(ProfileError::Cancelled(cancelled)) => return Err(cancelled.into()),
            Err(error) => return Err(Failure::Failed(format!("what came by OTLP can't be shown: {error}"))),
        };
        let known = Known::new(profile, None);
        let symbolised = (places.clone(), Arc::clone(&known.profile));
        let before = before.filter(|before| are_same_builds(&before.profile, &known.profile));
        let opened = before.map_or_else(Arc::default, |before| before.opened);
        let known = Known { symbolised: Arc::new(Mutex::new(Some(symbolised))), opened, ..known };
        self.keep(stamp, known.clone());
        Ok(known)
    }

    /// What was received, as it was read last.
    fn received(&self) -> Option<Known> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(stamp, _)| matches!(stamp, Stamp::Received { .. })).map(|(_, known)| known.clone())
    }

    fn take(&self, stamp: &Stamp) -> Option<Known> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| known == stamp)?;
        Some(kept.remove(at).1)
    }

    fn keep(&self, stamp: Stamp, known: Known) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(other, _)| !stamp.replaces(other));
        kept.insert(0, (stamp, known));
        kept.truncate(KEPT);
    }
}

/// Whether no binary of the later profile is another build than in the earlier one. Where builds
/// are not known, nobody can tell.
fn are_same_builds(before: &Profile, now: &Profile) -> bool {
    let builds = |profile: &'_ Profile| -> Vec<(String, String)> {
        let known = profile.mappings().iter().filter(|mapping| !mapping.build_id.is_none());
        known.map(|it| (profile.text(it.file).to_owned(), profile.text(it.build_id).to_owned())).collect()
    };
    let before = builds(before);
    let now = builds(now);
    let is_new = |(file, build): &(String, String)| {
        let is_known = before.iter().any(|(known, _)| known == file);
        is_known && !before.iter().any(|(known, its)| known == file && its == build)
    };
    !now.is_empty() && !now.iter().any(is_new)
}
