//! What a `perflens.toml` that came with a repository may do.
//!
//! Opening a folder must not let its authors choose which files are read, how much memory is
//! used, or what is connected to. So until somebody says that a workspace is trusted, its file
//! may only set what changes the looks ([`allowance`]); the rest is ignored, and listed.
//!
//! Trust is given by the editor, or kept in the user's [`TrustStore`] for one folder *and* one
//! content of the file: whoever pulls a changed `perflens.toml` is asked again. Everything that
//! is damaged, unreadable or in doubt here means "not trusted".

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::PathRule;
use super::toml_file::WorkspaceFile;

/// The name in `initializationOptions` by which an editor says that its user trusts the
/// workspace.
pub const OPTION: &str = "workspaceTrusted";

/// Sections that an untrusted file may set: they decide only how costs look.
const HARMLESS: &[&str] = &["hints", "lens", "hover"];

/// May be set as far as the rules stay in the workspace.
const PATH_RULES: &str = "paths.rules";

/// May be set as far as they open nothing.
const PRESETS: &str = "presets";

/// What of a preset opens files.
const OPENS: &[&str] = &["profile", "base"];

/// Settings that decide which files are read: a value that can't be read means none, even when
/// a lower layer has one.
const FAILS_CLOSED: &[&str] = &[
    "source.file",
    "source.address",
    "source.caFile",
    "source.certificateFile",
    "source.keyFile",
    "query.base",
    "paths.roots",
    "service",
    "symbols.debugDirs",
];

/// Whether the file of a workspace may set everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// It may.
    Trusted,
    /// It may set what is harmless.
    #[default]
    Untrusted,
}

impl Trust {
    /// Decides for the file of a workspace folder.
    pub fn of(workspace: Option<&WorkspaceFile>, is_trusted_by_editor: bool, store: &TrustStore) -> Self {
        let is_trusted = is_trusted_by_editor || workspace.is_some_and(|workspace| store.trusts(workspace));
        if is_trusted { Self::Trusted } else { Self::Untrusted }
    }
}

/// How far an untrusted file may make a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// Without limits.
    All,
    /// Values that stay in the workspace.
    InsideWorkspace,
    /// Values that open no file.
    WithoutSource,
    /// Not at all.
    Nothing,
}

/// How far an untrusted file may make the setting of this name.
pub fn allowance(pointer: &str) -> Allowance {
    let section = pointer.split('.').next().unwrap_or_default();
    if HARMLESS.contains(&section) {
        Allowance::All
    } else if pointer == PATH_RULES {
        Allowance::InsideWorkspace
    } else if section == PRESETS {
        Allowance::WithoutSource
    } else {
        Allowance::Nothing
    }
}

/// What remains of a setting when the file it is from is not trusted, and what does not.
pub(super) fn allowed(workspace: &WorkspaceFile, pointer: &str, value: &Value) -> (Option<Value>, Vec<Value>) {
    match allowance(pointer) {
        Allowance::Nothing => (None, vec![value.clone()]),
        Allowance::WithoutSource if OPENS.iter().any(|key| value.get(key).is_some()) => (None, vec![value.clone()]),
        Allowance::All | Allowance::WithoutSource => (Some(value.clone()), Vec::new()),
        Allowance::InsideWorkspace => {
            // What is no list of rules is refused by name later on.
            let Ok(rules) = Vec::<PathRule>::deserialize(value) else { return (Some(value.clone()), Vec::new()) };
            let items = value.as_array().cloned().unwrap_or_default();
            let (inside, outside): (Vec<_>, Vec<_>) =
                items.into_iter().zip(rules).partition(|(_, rule)| is_inside(&workspace.root, &rule.to));
            let values = |rules: Vec<(Value, PathRule)>| rules.into_iter().map(|(value, _)| value);
            (Some(values(inside).collect()), values(outside).collect())
        }
    }
}

/// Whether a value that can't be read means none.
pub(super) fn fails_closed(pointer: &str) -> bool {
    FAILS_CLOSED.contains(&pointer)
}

/// Whether a path leads into the folder, through all symbolic links. What is not on disk yet
/// can't be a link, but can climb.
fn is_inside(root: &Path, path: &str) -> bool {
    let climbs = Path::new(path).components().any(|part| part == Component::ParentDir);
    let target = root.join(path);
    let on_disk = target.ancestors().find(|ancestor| ancestor.symlink_metadata().is_ok());
    let real = on_disk.and_then(|path| path.canonicalize().ok());
    !climbs && real.is_some_and(|real| real.starts_with(root))
}

/// The workspaces that the user trusts: a file that only `perflens trust` and the command
/// `perflens.trustWorkspace` write.
#[derive(Clone, Debug)]
pub struct TrustStore {
    path: Option<PathBuf>,
}

/// Canonical root → SHA-256 of its `perflens.toml`.
type Workspaces = BTreeMap<String, String>;

#[derive(Default, Serialize, Deserialize)]
struct Content {
    workspaces: BTreeMap<String, Value>,
}

/// Why trust can't be given, taken back or listed; displays as one sentence.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The environment has neither a home nor a folder for state.
    #[error("there is no folder to keep trust in; set HOME")]
    NoFolder,
    /// The folder's name can't be written down exactly, so trust could be for another.
    #[error("{0}: folders whose names are not Unicode can't be trusted")]
    NotUnicode(PathBuf),
    /// The workspace's file could not be read, so nobody knows what would be trusted.
    #[error("{path}: {problem}")]
    Unreadable {
        /// The workspace's file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The store can't be read or written.
    #[error("{path}: {error}")]
    Store {
        /// The store's file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

impl TrustStore {
    /// The store in this file, which need not exist; `None` trusts nobody and can't be written.
    pub fn new(path: Option<PathBuf>) -> Self {
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Whether this content of this folder's file is trusted.
    pub fn trusts(&self, workspace: &WorkspaceFile) -> bool {
        let Some(root) = workspace.root.to_str() else { return false };
        let trusted = self.read().ok().and_then(|workspaces| workspaces.get(root).cloned());
        trusted.is_some() && trusted == workspace.file.fingerprint
    }

    /// Trusts this content of this folder's file, instead of another content of it.
    pub fn trust(&self, workspace: &WorkspaceFile) -> Result<(), TrustError> {
        let unreadable =
            |problem: &str| TrustError::Unreadable { path: workspace.file.path.clone(), problem: problem.to_owned() };
        if let Some(problem) = &workspace.file.problem {
            return Err(unreadable(problem));
        }
        let fingerprint = workspace.file.fingerprint.as_ref().ok_or_else(|| unreadable("it was not read"))?;
        let root = workspace.root.to_str().ok_or_else(|| TrustError::NotUnicode(workspace.root.clone()))?;
        self.edit(|workspaces| workspaces.insert(root.to_owned(), fingerprint.clone()))?;
        Ok(())
    }

    /// Takes trust back; false when the folder was not trusted.
    ///
    /// The folder may be gone: then it is looked for as it is written.
    pub fn distrust(&self, folder: &Path) -> Result<bool, TrustError> {
        let root = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let Some(root) = root.to_str() else { return Ok(false) };
        if self.path.as_ref().is_some_and(|path| !path.exists()) {
            return Ok(false);
        }
        Ok(self.edit(|workspaces| workspaces.remove(root))?.is_some())
    }

    /// Why nobody is trusted, when that is not for want of trust; a sentence.
    pub fn problem(&self) -> Option<String> {
        self.read().err().map(|error| error.to_string())
    }

    /// Reads, changes and writes, while no other process does.
    fn edit<T>(&self, change: impl FnOnce(&mut Workspaces) -> T) -> Result<T, TrustError> {
        let _lock = self.lock()?;
        let mut workspaces = self.read()?;
        let before = workspaces.clone();
        let result = change(&mut workspaces);
        if workspaces != before {
            self.write(&workspaces)?;
        }
        Ok(result)
    }

    /// Held until it is dropped, or the process ends. It is a file of its own, as the store is
    /// replaced by a new one.
    fn lock(&self) -> Result<fs::File, TrustError> {
        const PATIENCE: Duration = Duration::from_secs(2);
        let path = self.path.as_ref().ok_or(TrustError::NoFolder)?.with_extension("lock");
        let fail = |error| TrustError::Store { path: path.clone(), error };
        create_private(path.parent().unwrap_or(Path::new("."))).map_err(fail)?;
        let file = fs::File::options().create(true).truncate(false).write(true).open(&path).map_err(fail)?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(fs::TryLockError::WouldBlock) if start.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(fs::TryLockError::WouldBlock) => {
                    return Err(fail(io::Error::other("another process has been changing it for long")));
                }
                Err(fs::TryLockError::Error(error)) => return Err(fail(error)),
            }
        }
    }

    /// Folders that were trusted with some content of their file, in order.
    pub fn roots(&self) -> Result<Vec<PathBuf>, TrustError> {
        Ok(self.read()?.into_keys().map(PathBuf::from).collect())
    }

    /// What can be made of the file. A store that does not exist, or is damaged, trusts nobody;
    /// of a store that is damaged in parts, the rest counts.
    fn read(&self) -> Result<Workspaces, TrustError> {
        let path = self.path.as_ref().ok_or(TrustError::NoFolder)?;
        let fail = |error| TrustError::Store { path: path.clone(), error };
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Workspaces::new()),
            Err(error) => return Err(fail(error)),
        };
        if others_can_write(path).map_err(fail)? {
            return Err(fail(io::Error::other(
                "others can write it, so nobody is trusted; make it yours with chmod 600",
            )));
        }
        let content: Content = serde_json::from_slice(&bytes).unwrap_or_default();
        let fingerprint = |value: Value| value.as_str().map(str::to_owned);
        Ok(content.workspaces.into_iter().filter_map(|(root, value)| Some((root, fingerprint(value)?))).collect())
    }

    /// Replaces the file as a whole: a crash leaves the old or the new one. Nobody but the user
    /// can read it, as it lists their projects.
    fn write(&self, workspaces: &Workspaces) -> Result<(), TrustError> {
        let path = self.path.as_ref().ok_or(TrustError::NoFolder)?;
        let replace = || -> io::Result<()> {
            let folder = path.parent().unwrap_or(Path::new("."));
            create_private(folder)?;
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            serde_json::to_writer_pretty(&mut file, &serde_json::json!({ "workspaces": workspaces }))?;
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            Ok(())
        };
        replace().map_err(|error| TrustError::Store { path: path.clone(), error })
    }
}

/// Creates a folder that only the user can look into, and those above it.
#[cfg(unix)]
pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Elsewhere folders inherit from that of the user's profile, which is private.
#[cfg(not(unix))]
pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

#[cfg(unix)]
pub(crate) fn others_can_write(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::metadata(path)?.permissions().mode() & 0o022 != 0)
}

/// Elsewhere the folder of the user's profile is what protects it.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature on every system")]
pub(crate) fn others_can_write(_: &Path) -> io::Result<bool> {
    Ok(false)
}
