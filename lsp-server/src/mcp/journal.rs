//! Which tools were called, in a file of the user's: when, by whom, about which profile, and what became
//! of it. Nothing of what was asked or answered.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use serde::Serialize;

use crate::config::trust::create_private;

/// The file is put aside beyond this, and the one before it forgotten.
const MAX_BYTES: u64 = 256 << 10;

/// One call.
#[derive(Debug, Serialize)]
pub(super) struct Call<'a> {
    pub(super) workspace: &'a Path,
    /// What the other side calls itself.
    pub(super) client: &'a str,
    pub(super) tool: &'a str,
    /// The profile that was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) profile: Option<&'a str>,
    /// `ok`, or how it failed.
    pub(super) outcome: &'a str,
    /// Of the answer.
    pub(super) bytes: usize,
}

#[derive(Serialize)]
struct Line<'a> {
    time: String,
    #[serde(flatten)]
    call: &'a Call<'a>,
}

/// The file.
#[derive(Debug)]
pub(super) struct Journal {
    path: Option<PathBuf>,
    writing: Mutex<()>,
}

impl Journal {
    pub(super) fn new(path: Option<PathBuf>) -> Self {
        Self { path, writing: Mutex::default() }
    }

    /// Adds a call. What can't be written is said in the log of the process.
    pub(super) fn note(&self, call: &Call<'_>) {
        let _turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(path) = &self.path else { return };
        if let Err(error) = append(path, call) {
            tracing::warn!("a call is not written to {}: {error}", path.display());
        }
    }
}

fn append(path: &Path, call: &Call<'_>) -> io::Result<()> {
    create_private(path.parent().unwrap_or(Path::new(".")))?;
    if fs::metadata(path).is_ok_and(|metadata| metadata.len() > MAX_BYTES) {
        fs::rename(path, path.with_extension("log.1"))?;
    }
    let mut options = fs::File::options();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut line = serde_json::to_vec(&Line { time: Timestamp::now().to_string(), call })?;
    line.push(b'\n');
    // One write: several servers may do so at once.
    options.open(path)?.write_all(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_bounded_and_holds_one_line_per_call() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/calls.log");
        let journal = Journal::new(Some(path.clone()));
        let client = "x".repeat(1000);
        let call = Call {
            workspace: Path::new("/w"),
            client: &client,
            tool: "t",
            profile: Some("p"),
            outcome: "ok",
            bytes: 1,
        };
        for _ in 0..600 {
            journal.note(&call);
        }
        let size = |path: &Path| fs::metadata(path).unwrap().len();
        assert!(size(&path) <= MAX_BYTES + 2000 && size(&path.with_extension("log.1")) <= MAX_BYTES + 2000);
        let text = fs::read_to_string(&path).unwrap();
        let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!((line["tool"].as_str(), line["outcome"].as_str()), (Some("t"), Some("ok")));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 2);
    }
}
