//! What is kept beside a recording about the texts of its files.

use std::path::{Path, PathBuf};

use profiler_core::anchor::{Basis, FileAnchor, LineMap};

/// The texts of one recording.
#[derive(Debug)]
pub(super) struct Recorded {
    workspace: PathBuf,
    files: Vec<File>,
}

#[derive(Debug)]
struct File {
    /// Relative to the workspace.
    path: PathBuf,
    hash: String,
    copy: Option<PathBuf>,
}

impl Recorded {
    /// What is kept beside a profile; `None` where it is none of our recordings.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    pub(super) fn of(profile: &Path) -> Option<Self> {
        let about = crate::record::store::About::read(profile)?;
        let folder = profile.parent()?;
        let files = about.files.into_iter().filter(|file| is_hash(&file.hash)).map(|file| File {
            copy: file.is_kept.then(|| folder.join(crate::record::store::TEXTS).join(&file.hash)),
            path: file.path,
            hash: file.hash,
        });
        Some(Self { workspace: about.workspace, files: files.collect() })
    }

    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    pub(super) fn of(_: &Path) -> Option<Self> {
        None
    }

    fn at(&self, path: &Path) -> Option<&File> {
        let relative = |path: &Path| path.strip_prefix(&self.workspace).map(Path::to_owned).ok();
        let wanted = relative(path).or_else(|| relative(&path.canonicalize().ok()?))?;
        self.files.iter().find(|file| file.path == wanted)
    }

    /// Whether the recording has a file at a path.
    pub(super) fn knows(&self, path: &Path) -> bool {
        self.at(path).is_some()
    }

    /// Where the lines of a file are in its text of now; `None` when the recording doesn't know.
    pub(super) fn anchor(&self, path: &Path, now: &str) -> Option<FileAnchor> {
        let file = self.at(path)?;
        if hash(now.as_bytes()) == file.hash {
            return Some(FileAnchor::same(Basis::SameText));
        }
        let before = file.text()?;
        // Bytes that are no text hash to something else, and read alike.
        if before == now {
            return Some(FileAnchor::same(Basis::SameText));
        }
        Some(FileAnchor::new(Basis::Copy, LineMap::between(&before, now)))
    }

    /// The text of a file as it was, and its name relative to the workspace.
    pub(super) fn text(&self, path: &Path) -> Option<(String, String)> {
        let file = self.at(path)?;
        Some((file.text()?, file.path.to_string_lossy().into_owned()))
    }
}

impl File {
    fn text(&self) -> Option<String> {
        let content = read(self.copy.as_ref()?)?;
        // Whatever lies there under that name, it is the text only if it is the text.
        (hash(&content) == self.hash).then(|| String::from_utf8_lossy(&content).into_owned())
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use crate::record::store::read_kept as read;

/// Nothing is recorded here.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn read(_: &Path) -> Option<Vec<u8>> {
    None
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn hash(bytes: &[u8]) -> String {
    use sha2::Digest;
    use std::fmt::Write as _;
    sha2::Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
