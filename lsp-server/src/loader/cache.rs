//! Profiles that were read lately, so that another value type, filter or comparison of the
//! same file costs no second reading. With each goes what its source files held when it was
//! first read: that is what was profiled, as far as anyone knows, whatever happens to them later.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use profiler_core::cancel::CancelFlag;
use profiler_core::decode::{DecodeError, Limits, decode};
use profiler_core::profile::Profile;

use crate::state::text::Text;

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

/// Texts of source files, by path.
pub type Texts = HashMap<PathBuf, Arc<Text>>;

/// A profile, and its source files as they were when it was first read.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) profile: Arc<Profile>,
    pub(super) texts: Arc<Mutex<Texts>>,
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
        let stamp = Stamp { path: path.to_owned(), bytes: metadata.len(), modified: metadata.modified().ok() };
        let known = match self.take(&stamp) {
            Some(known) => known,
            None => Known {
                profile: Arc::new(decode(file, limits, cancel).map_err(ReadError::Decode)?),
                texts: Arc::default(),
            },
        };
        self.keep(stamp, known.clone());
        Ok(known)
    }

    fn take(&self, stamp: &Stamp) -> Option<Known> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| known == stamp)?;
        Some(kept.remove(at).1)
    }

    fn keep(&self, stamp: Stamp, known: Known) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(other, _)| other.path != stamp.path);
        kept.insert(0, (stamp, known));
        kept.truncate(KEPT);
    }
}
