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

use super::{Failure, decode_fetched};
use crate::source::Fetched;
use crate::state::text::Text;

/// How many are kept: what is shown, its base, and what was shown before.
const KEPT: usize = 4;

/// What was read, as it was when it was read. Any difference means to read it again.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stamp {
    File {
        path: PathBuf,
        bytes: u64,
        modified: Option<SystemTime>,
    },
    /// What is fetched anew has another number.
    Fetched {
        serial: u64,
    },
}

impl Stamp {
    /// Whether the other is the same file, as it may have been before.
    fn replaces(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { path, .. }, Self::File { path: other, .. }) => path == other,
            _ => self == other,
        }
    }
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
        let stamp = Stamp::File { path: path.to_owned(), bytes: metadata.len(), modified: metadata.modified().ok() };
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

    pub(super) fn read_fetched(
        &self,
        fetched: &Fetched,
        limits: &Limits,
        cancel: &CancelFlag,
    ) -> Result<Known, Failure> {
        let stamp = Stamp::Fetched { serial: fetched.serial };
        let known = match self.take(&stamp) {
            Some(known) => known,
            None => Known { profile: Arc::new(decode_fetched(fetched, limits, cancel)?), texts: Arc::default() },
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
        kept.retain(|(other, _)| !stamp.replaces(other));
        kept.insert(0, (stamp, known));
        kept.truncate(KEPT);
    }
}
