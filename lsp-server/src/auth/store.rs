//! Secrets on this machine, by origin.
//!
//! In the system's secret store where `secret-tool` reaches one, else in a file that only the
//! user can read. Which of both is decided when the first secret is kept, and remembered: a
//! later start without a desktop must not look in another place.
//!
//! Changes are made under a lock that holds across processes, and replace the file as a whole.
//! Whoever refreshes a token reads again under the lock: another process may have been first.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::source::{Origin, SourceError};

/// How long another process may hold the lock: as long as a token endpoint may take.
const LOCK_PATIENCE: Duration = Duration::from_secs(45);
/// How long the system's store may take to answer.
const SYSTEM_PATIENCE: Duration = Duration::from_secs(5);

/// What is kept for an origin.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Grant {
    /// What goes with requests.
    pub access_token: String,
    /// What gets a new one.
    pub refresh_token: Option<String>,
    /// When the first ends, in seconds since 1970 by this machine's clock.
    pub expires_at: Option<i64>,
    /// The client id that got them; only it can refresh.
    pub client_id: Option<String>,
    /// Where to refresh.
    pub token_endpoint: Option<String>,
    /// Where to revoke.
    pub revocation_endpoint: Option<String>,
    /// The project that was chosen.
    pub project: Option<String>,
    /// The server refused to refresh: it won't do so again, and is not asked.
    pub is_dead: bool,
}

impl std::fmt::Debug for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grant")
            .field("expires_at", &self.expires_at)
            .field("is_dead", &self.is_dead)
            .finish_non_exhaustive()
    }
}

/// Where secrets are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// In the file itself.
    #[default]
    File,
    /// In the system's secret store.
    System,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Content {
    place: Option<Place>,
    /// In the system's store only the names are here.
    origins: BTreeMap<String, Option<Grant>>,
}

/// The secrets of the user.
#[derive(Clone, Debug)]
pub struct Store {
    path: Option<PathBuf>,
}

/// Changes are made while this lives.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Store {
    /// Secrets in this file, which need not exist; `None` keeps nothing.
    pub fn new(path: Option<PathBuf>) -> Self {
        Self { path }
    }

    /// What is kept for an origin. What can't be read is not there.
    pub fn get(&self, origin: &Origin) -> Option<Grant> {
        let content = self.read().ok()?;
        match content.origins.get(&origin.to_string())? {
            Some(grant) => Some(grant.clone()),
            None => serde_json::from_str(&system::get(origin)?).ok(),
        }
    }

    /// Where secrets are kept, once one is.
    pub fn place(&self) -> Option<Place> {
        self.read().ok()?.place
    }

    /// The file.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The origins that something is kept for.
    pub fn origins(&self) -> Vec<String> {
        self.read().map(|content| content.origins.into_keys().collect()).unwrap_or_default()
    }

    /// Keeps something for an origin; tells where.
    pub fn set(&self, _: &Lock, origin: &Origin, grant: &Grant) -> Result<Place, SourceError> {
        let mut content = self.read()?;
        let text = serde_json::to_string(grant).map_err(|error| failed(&error.to_string()))?;
        let wants_system = content.place != Some(Place::File);
        let is_in_system = wants_system && system::set(origin, &text);
        if content.place == Some(Place::System) && !is_in_system {
            return Err(failed("the system's secret store does not answer; unlock it"));
        }
        let place = if is_in_system { Place::System } else { Place::File };
        content.place = Some(place);
        content.origins.insert(origin.to_string(), (!is_in_system).then(|| grant.clone()));
        self.write(&content)?;
        Ok(place)
    }

    /// Forgets an origin; what was kept for it.
    pub fn remove(&self, _: &Lock, origin: &Origin) -> Result<Option<Grant>, SourceError> {
        let grant = self.get(origin);
        let mut content = self.read()?;
        if let Some(None) = content.origins.remove(&origin.to_string()) {
            system::remove(origin);
        }
        if content.origins.is_empty() {
            content.place = None;
        }
        self.write(&content)?;
        Ok(grant)
    }

    /// Waits until no other process changes anything. Blocks.
    pub fn lock(&self) -> Result<Lock, SourceError> {
        let path = self.path.as_deref().ok_or_else(no_folder)?.with_extension("lock");
        create_private(path.parent().unwrap_or(Path::new(".")))?;
        let file = private_options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|error| cant(&path, &error))?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(TryLockError::WouldBlock) if begun.elapsed() < LOCK_PATIENCE => {
                    std::thread::sleep(Duration::from_millis(25));
                }
                Err(TryLockError::WouldBlock) => return Err(failed("another perflens holds the lock; end it")),
                Err(TryLockError::Error(error)) => return Err(cant(&path, &error)),
            }
        }
    }

    fn read(&self) -> Result<Content, SourceError> {
        let path = self.path.as_deref().ok_or_else(no_folder)?;
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Content::default()),
            Err(error) => return Err(cant(path, &error)),
        };
        if others_can_read(path) {
            return Err(failed(&format!(
                "others can read {}; make it yours with chmod 600, and sign in again",
                path.display()
            )));
        }
        // A damaged file holds nothing.
        Ok(serde_json::from_slice(&bytes).unwrap_or_default())
    }

    fn write(&self, content: &Content) -> Result<(), SourceError> {
        let path = self.path.as_deref().ok_or_else(no_folder)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        create_private(folder)?;
        let replace = || -> io::Result<()> {
            // Such files are the user's alone from their first moment.
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            serde_json::to_writer(&mut file, content)?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            Ok(())
        };
        replace().map_err(|error| cant(path, &error))
    }
}

fn failed(why: &str) -> SourceError {
    SourceError::input(format!("secrets can't be kept: {why}"))
}

fn cant(path: &Path, error: &io::Error) -> SourceError {
    failed(&format!("{}: {error}", path.display()))
}

fn no_folder() -> SourceError {
    failed("there is no folder for them; set HOME")
}

#[cfg(unix)]
fn private_options() -> fs::OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = fs::OpenOptions::new();
    options.mode(0o600);
    options
}

#[cfg(not(unix))]
fn private_options() -> fs::OpenOptions {
    fs::OpenOptions::new()
}

#[cfg(unix)]
fn create_private(folder: &Path) -> Result<(), SourceError> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| cant(folder, &error))
}

/// Elsewhere folders inherit from that of the user's profile, which is private.
#[cfg(not(unix))]
fn create_private(folder: &Path) -> Result<(), SourceError> {
    fs::create_dir_all(folder).map_err(|error| cant(folder, &error))
}

#[cfg(unix)]
fn others_can_read(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn others_can_read(_: &Path) -> bool {
    false
}

/// The system's secret store, through the program that desktops of Linux bring for it. Linking
/// a client of its protocol would be some eighty crates for three calls.
mod system {
    use super::{Command, Duration, Instant, Origin, SYSTEM_PATIENCE, Stdio, Write};

    fn run(arguments: &[&str], origin: &Origin, input: Option<&str>) -> Option<String> {
        // Without a session there is nobody to ask, and the program would try to start one.
        if !cfg!(target_os = "linux") || std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_none() {
            return None;
        }
        let name = origin.to_string();
        let mut child = Command::new("secret-tool")
            .args(arguments)
            .args(["application", "perflens", "origin", name.as_str()])
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
            stdin.write_all(input.as_bytes()).ok()?;
        }
        let begun = Instant::now();
        loop {
            match child.try_wait().ok()? {
                Some(status) if status.success() => break,
                Some(_) => return None,
                None if begun.elapsed() > SYSTEM_PATIENCE => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return None;
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
        let mut text = String::new();
        std::io::Read::read_to_string(&mut child.stdout.take()?, &mut text).ok()?;
        Some(text)
    }

    pub(super) fn get(origin: &Origin) -> Option<String> {
        run(&["lookup"], origin, None).filter(|text| !text.is_empty())
    }

    pub(super) fn set(origin: &Origin, text: &str) -> bool {
        let label = format!("--label=perflens: {origin}");
        // Some stores say yes and keep nothing.
        run(&["store", &label], origin, Some(text)).is_some() && get(origin).as_deref() == Some(text)
    }

    pub(super) fn remove(origin: &Origin) {
        let _ = run(&["clear"], origin, None);
    }
}
