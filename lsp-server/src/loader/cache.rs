//! Profiles that were read lately, so that another value type, filter or comparison of the
//! same file costs no second reading.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use profiler_core::cancel::CancelFlag;
use profiler_core::decode::{DecodeError, Limits, decode};
use profiler_core::profile::Profile;

/// How many are kept: what is shown, its base, and what was shown before.
const KEPT: usize = 4;

/// A file as it was when it was read. Any difference means to read it again.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    bytes: u64,
    modified: Option<SystemTime>,
}

/// Why a profile could not be read.
#[derive(Debug)]
pub(super) enum ReadError {
    Io(io::Error),
    Decode(DecodeError),
}

/// The last few profiles that were read, the latest first.
#[derive(Debug, Default)]
pub struct Profiles {
    kept: Mutex<Vec<(Stamp, Arc<Profile>)>>,
}

impl Profiles {
    pub(super) fn read(&self, path: &Path, limits: &Limits, cancel: &CancelFlag) -> Result<Arc<Profile>, ReadError> {
        let file = File::open(path).map_err(ReadError::Io)?;
        let metadata = file.metadata().map_err(ReadError::Io)?;
        if metadata.is_dir() {
            return Err(ReadError::Io(io::ErrorKind::IsADirectory.into()));
        }
        let stamp = Stamp { path: path.to_owned(), bytes: metadata.len(), modified: metadata.modified().ok() };
        if let Some(profile) = self.take(&stamp) {
            self.keep(stamp, Arc::clone(&profile));
            return Ok(profile);
        }
        let profile = Arc::new(decode(file, limits, cancel).map_err(ReadError::Decode)?);
        self.keep(stamp, Arc::clone(&profile));
        Ok(profile)
    }

    fn take(&self, stamp: &Stamp) -> Option<Arc<Profile>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| known == stamp)?;
        Some(kept.remove(at).1)
    }

    fn keep(&self, stamp: Stamp, profile: Arc<Profile>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| known.path != stamp.path);
        kept.insert(0, (stamp, profile));
        kept.truncate(KEPT);
    }
}
