//! Where recordings are kept: a folder of the user's, by workspace, within bounds.
//!
//! ```text
//! recordings/WORKSPACE/TIME-PROGRAM.pb.gz    the profile: the program's name, no arguments
//! recordings/WORKSPACE/TIME-PROGRAM.json     beside it, for the user alone: command, commit, files
//! recordings/WORKSPACE/texts/HASH            texts of the workspace's files as they were
//! recordings/WORKSPACE/programs/HASH         programs of the last few that were built for a test
//! ```
//!
//! The texts say what the lines of the profile mean after the files were edited. Folders and files
//! are for the user alone. A file appears as a whole or not at all, so that a program that ends in
//! between leaves nothing that could be taken for a recording; what it leaves goes next time.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use profiler_core::encode::pprof;
use profiler_core::profile::Profile;
use profiler_ebpf::preload;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::anchor::git::Repository;
use crate::runnable::{InTurn, Words, Work};

/// Most recordings of one workspace.
const MAX_RECORDINGS: usize = 30;

/// Most bytes of all recordings of one workspace, texts included.
const MAX_BYTES: u64 = 256 << 20;

/// Most workspaces.
const MAX_WORKSPACES: usize = 100;

/// Larger source files are not kept.
const MAX_TEXT: u64 = 1 << 20;

/// Most bytes of texts of one recording.
const MAX_TEXTS: u64 = 32 << 20;

/// Most sets of runs in turns of one workspace, and most bytes of them; the newest stays in any case. They are
/// no part of the bounds above, or one set would take the place of what the user has recorded.
const MAX_SETS: usize = 3;
const MAX_SET_BYTES: u64 = 64 << 20;

/// Most programs of one workspace that are kept, and most bytes of them, of one, and of those of all workspaces.
const MAX_PROGRAMS: usize = 4;
const MAX_PROGRAM_BYTES: u64 = 512 << 20;
const MAX_PROGRAM: u64 = 256 << 20;
const MAX_ALL_PROGRAMS: u64 = 2 << 30;

/// What a write that was broken off leaves is removed after this.
const ABANDONED: Duration = Duration::from_hours(1);

const PROFILE: &str = "pb.gz";
/// Folder of the texts, beside the profiles.
pub(crate) const TEXTS: &str = "texts";
/// Folder of the programs, beside the profiles.
const PROGRAMS: &str = "programs";
/// What a program begins with that a processor runs, and no interpreter.
const ELF: &[u8] = b"\x7fELF";
const TEMPORARY: &str = ".writing-";

/// What is kept beside a profile, for the user alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct About {
    /// The folder it belongs to.
    pub workspace: PathBuf,
    /// The command with its arguments; empty for processes that were there before.
    pub command: Vec<String>,
    /// Numbers of those.
    pub processes: Vec<u32>,
    /// What was asked to be profiled, as [`Order::key`](crate::runnable::Order::key) names it; empty for others.
    pub test: String,
    /// The work that was done for that.
    pub work: Work,
    /// The filter that keeps what the test itself costs, where its set-up can be told from it.
    pub under: Option<String>,
    /// What was run for that.
    pub ran: Ran,
    /// How it was recorded.
    pub how: String,
    /// The commit that was checked out.
    pub commit: Option<String>,
    /// The branch that was.
    pub branch: Option<String>,
    /// Whether one of `files` was another text there; absent when unknown.
    pub dirty: Option<bool>,
    /// The workspace's files with costs, as they were.
    pub files: Vec<Text>,
    /// The program that ran, where it was kept to run again.
    pub kept: Option<Kept>,
    /// Whether it was recorded as the base of others, of a program that was kept.
    pub is_base_run: bool,
    /// The set of runs in turns that it belongs to.
    pub set: Option<String>,
}

/// A program that was kept: what was built before an edit can run again after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Kept {
    /// SHA-256 of the program, in hex, which is its name in the store.
    pub hash: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// What was added to its environment, as `NAME=VALUE`.
    pub environment: Vec<String>,
    /// Where it ran.
    pub folder: PathBuf,
}

/// What was run for a recording of a test: by what another one is told to be of the same command, on the same
/// machine, and of a program that was built anew.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Ran {
    /// The command: the program's name and its arguments.
    pub command: Vec<String>,
    /// SHA-256 of the program, in hex, where it is built from sources of the workspace.
    pub program: Option<String>,
    /// See [`machine`].
    pub machine: String,
}

/// A name of this machine for nobody but us: of what it is called and which processors it has.
pub fn machine() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let id = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let models = processors.lines().filter(|line| line.starts_with("model name")).collect::<Vec<_>>();
    hex(&Sha256::digest(format!("{name}\n{id}\n{}", models.join("\n"))))[..16].to_owned()
}

/// A source file as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Text {
    /// Relative to the workspace.
    pub path: PathBuf,
    /// SHA-256 of its bytes, in hex.
    pub hash: String,
    /// Whether there is a copy under that name.
    pub is_kept: bool,
}

/// The recordings of one workspace.
#[derive(Clone, Debug)]
pub struct Store {
    all: PathBuf,
    folder: PathBuf,
    workspace: PathBuf,
}

impl Store {
    /// The store of a workspace below the folder of all recordings. Makes nothing.
    pub fn new(recordings: &Path, workspace: &Path) -> Self {
        let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        let name = workspace.file_name().unwrap_or_default().to_string_lossy();
        let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).take(40).collect();
        let hash = hex(&Sha256::digest(workspace.as_os_str().as_encoded_bytes()));
        let folder = recordings.join(format!("{}-{}", name.trim_start_matches('.'), &hash[..16]));
        Self { all: recordings.to_owned(), folder, workspace }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A path for a new recording that nobody else uses.
    pub fn new_path(&self, program: &str, now: SystemTime) -> io::Result<PathBuf> {
        self.make()?;
        let seconds = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let program: String =
            program.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).take(40).collect();
        let program = if program.is_empty() { "program" } else { program.trim_start_matches('.') };
        (0..1000)
            .map(|number| if number == 0 { String::new() } else { format!("-{number}") })
            .map(|suffix| self.folder.join(format!("{}-{program}{suffix}.{PROFILE}", utc(seconds))))
            .find(|path| !path.exists())
            .ok_or_else(|| io::Error::other("too many recordings in one second"))
    }

    fn make(&self) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)
    }

    /// Writes what is kept beside a profile, and texts of the files, then forgets the oldest recordings.
    pub fn write_about(&self, profile: &Path, mut about: About, files: &[PathBuf]) -> io::Result<()> {
        about.workspace.clone_from(&self.workspace);
        (about.commit, about.branch, about.dirty) = git_state(&self.workspace, files);
        about.files = self.keep_texts(files)?;
        let json = serde_json::to_vec_pretty(&about)?;
        write_private(&beside(profile), |out| out.write_all(&json))?;
        self.prune(profile);
        Ok(())
    }

    /// Keeps the program that a recording is of, to run it again when it has been built anew, and forgets those
    /// that ran longest ago. Nothing where that is a script, or large.
    ///
    /// What its environment says of the folder `scratch` is left out, which goes with the recording.
    pub(crate) fn keep_program(&self, profile: &Path, words: &Words, scratch: &Path) -> io::Result<()> {
        let Some(mut about) = About::read(profile) else { return Ok(()) };
        let path = words.folder.join(&words.program);
        let metadata = fs::metadata(&path)?;
        if !metadata.is_file() || metadata.len() > MAX_PROGRAM {
            return Ok(());
        }
        let mut head = Vec::new();
        fs::File::open(&path)?.take(ELF.len() as u64).read_to_end(&mut head)?;
        if head != ELF {
            return Ok(());
        }
        let hash = hash(&path)?;
        let programs = self.folder.join(PROGRAMS);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&programs)?;
        let copy = programs.join(&hash);
        if !copy.exists() {
            write_private(&copy, |out| io::copy(&mut fs::File::open(&path)?, out).map(drop))?;
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o700))?;
        }
        touch(&copy)?;
        let text = |text: &OsString| text.to_string_lossy().into_owned();
        about.kept = Some(Kept {
            hash,
            arguments: words.arguments.iter().map(text).collect(),
            environment: words
                .environment
                .iter()
                .filter(|(_, value)| !Path::new(value).starts_with(scratch))
                .map(|(name, value)| format!("{}={}", text(name), text(value)))
                .collect(),
            folder: words.folder.clone(),
        });
        rewrite_about(profile, &about)?;
        forget(entries(&programs), &copy, MAX_PROGRAMS, MAX_PROGRAM_BYTES);
        let everywhere = entries(&self.all).flat_map(|(workspace, _)| entries(&workspace.join(PROGRAMS)));
        forget(everywhere, &copy, usize::MAX, MAX_ALL_PROGRAMS);
        Ok(())
    }

    /// Says of a program that it ran just now.
    pub(crate) fn ran_again(&self, kept: &Kept) -> io::Result<()> {
        self.program_path(kept).map_or(Ok(()), |program| touch(&program))
    }

    /// The program of a recording, if it is still there and what it was.
    pub(crate) fn program(&self, kept: &Kept) -> Option<PathBuf> {
        let path = self.program_path(kept)?;
        let metadata = fs::symlink_metadata(&path).ok().filter(|metadata| metadata.len() <= MAX_PROGRAM)?;
        (metadata.is_file() && hash(&path).ok()? == kept.hash).then_some(path)
    }

    fn program_path(&self, kept: &Kept) -> Option<PathBuf> {
        let is_hash = kept.hash.len() == 64 && kept.hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash.then(|| self.folder.join(PROGRAMS).join(&kept.hash))
    }

    fn keep_texts(&self, files: &[PathBuf]) -> io::Result<Vec<Text>> {
        let texts = self.folder.join(TEXTS);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&texts)?;
        let mut kept = Vec::new();
        let mut bytes = 0;
        for path in files {
            let relative = path.strip_prefix(&self.workspace).unwrap_or(path).to_owned();
            let length =
                fs::metadata(path).ok().filter(fs::Metadata::is_file).map_or(u64::MAX, |metadata| metadata.len());
            if length > MAX_TEXT {
                continue;
            }
            let Ok(content) = fs::read(path) else { continue };
            let hash = hex(&Sha256::digest(&content));
            let copy = texts.join(&hash);
            let mut is_kept = copy.exists();
            if !is_kept && bytes + length <= MAX_TEXTS {
                bytes += length;
                write_private(&copy, |out| out.write_all(&content))?;
                is_kept = true;
            }
            kept.push(Text { path: relative, hash, is_kept });
        }
        Ok(kept)
    }

    /// The recordings there are, the newest first, with when they were written.
    pub fn list(&self) -> Vec<(PathBuf, SystemTime)> {
        let mut all: Vec<(PathBuf, SystemTime)> = entries(&self.folder)
            .filter(|(path, _)| path.to_string_lossy().ends_with(&format!(".{PROFILE}")))
            .filter_map(|(path, metadata)| Some((path, metadata.modified().ok()?)))
            .collect();
        all.sort_by(|(path, time), (other, other_time)| other_time.cmp(time).then_with(|| other.cmp(path)));
        all
    }

    /// Keeps to the bounds. The recording at `keep` stays in any case.
    fn prune(&self, keep: &Path) {
        let with_about = |(path, _): (PathBuf, SystemTime)| {
            let about = About::read(&path).unwrap_or_default();
            (path, about)
        };
        let all: Vec<(PathBuf, About)> = self.list().into_iter().map(with_about).collect();
        let size = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
        let sets = Sets::of(&all, |path| size(path) + size(&beside(path)));
        let (mut count, mut bytes) = (0, 0);
        let (mut used, mut programs) = (BTreeSet::new(), BTreeSet::new());
        for (path, about) in all {
            let stays = if sets.has_further(&path, &about) {
                sets.stays(&about)
            } else {
                let fresh = about.files.iter().filter(|text| !used.contains(&text.hash));
                let texts: u64 = fresh.map(|text| size(&self.folder.join(TEXTS).join(&text.hash))).sum();
                count += 1;
                bytes += size(&path) + size(&beside(&path)) + texts;
                (count <= MAX_RECORDINGS && bytes <= MAX_BYTES) || sets.stays(&about)
            };
            if stays || path == keep {
                used.extend(about.files.into_iter().map(|text| text.hash));
                programs.extend(about.kept.map(|kept| kept.hash));
            } else {
                let _ = fs::remove_file(&path);
                let _ = fs::remove_file(beside(&path));
            }
        }
        for (folder, used) in [(TEXTS, used), (PROGRAMS, programs)] {
            for (path, _) in entries(&self.folder.join(folder)) {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if !used.contains(&name) && !name.starts_with(TEMPORARY) {
                    let _ = fs::remove_file(path);
                }
            }
        }
        for folder in [&self.folder, &self.folder.join(TEXTS), &self.folder.join(PROGRAMS)] {
            for (path, metadata) in entries(folder) {
                let is_temporary = path.file_name().unwrap_or_default().to_string_lossy().starts_with(TEMPORARY);
                let age = metadata.modified().ok().and_then(|time| time.elapsed().ok()).unwrap_or_default();
                if is_temporary && age > ABANDONED {
                    let _ = fs::remove_file(path);
                }
            }
        }
        self.prune_workspaces();
    }

    /// Forgets the workspaces that were recorded longest ago.
    fn prune_workspaces(&self) {
        let mut all: Vec<(PathBuf, SystemTime)> = entries(&self.all)
            .filter(|(_, metadata)| metadata.is_dir())
            .filter_map(|(path, metadata)| Some((path, metadata.modified().ok()?)))
            .collect();
        all.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        for (path, _) in all.into_iter().skip(MAX_WORKSPACES).filter(|(path, _)| *path != self.folder) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Runs in turns, by the set that they belong to. The first run of a set that is of the new version is the user's, as
/// any recording; the others are there for it alone.
struct Sets {
    /// Those that stay.
    kept: Vec<String>,
    /// The first run of each.
    firsts: BTreeMap<String, PathBuf>,
}

impl Sets {
    /// Of all recordings, the newest first.
    fn of(all: &[(PathBuf, About)], size: impl Fn(&Path) -> u64) -> Self {
        let mut sets: Vec<(String, u64)> = Vec::new();
        let mut firsts = BTreeMap::new();
        for (path, about) in all {
            let Some(set) = &about.set else { continue };
            if !about.is_base_run {
                // The last one that is met is the oldest.
                firsts.insert(set.clone(), path.clone());
            }
            match sets.iter_mut().find(|(known, _)| known == set) {
                Some((_, bytes)) => *bytes += size(path),
                None => sets.push((set.clone(), size(path))),
            }
        }
        let mut bytes = 0;
        let is_kept = |(at, (set, size)): (usize, (String, u64))| {
            bytes += size;
            (at == 0 || (at < MAX_SETS && bytes <= MAX_SET_BYTES)).then_some(set)
        };
        Self { kept: sets.into_iter().enumerate().map_while(is_kept).collect(), firsts }
    }

    /// Whether a recording is there for the set that it belongs to alone.
    fn has_further(&self, path: &Path, about: &About) -> bool {
        about.set.as_ref().is_some_and(|set| self.firsts.get(set).is_none_or(|first| first != path))
    }

    /// Whether the set that a recording belongs to stays.
    fn stays(&self, about: &About) -> bool {
        about.set.as_ref().is_some_and(|set| self.kept.contains(set))
    }
}

/// Removes files beyond these bounds, those that were written longest ago first; `keep` stays in any case.
fn forget(all: impl Iterator<Item = (PathBuf, fs::Metadata)>, keep: &Path, most: usize, most_bytes: u64) {
    let mut all: Vec<(PathBuf, fs::Metadata)> = all.filter(|(_, metadata)| metadata.is_file()).collect();
    all.sort_by_key(|(_, metadata)| std::cmp::Reverse(metadata.modified().ok()));
    let mut bytes = 0;
    for (at, (path, metadata)) in all.into_iter().enumerate() {
        bytes += metadata.len();
        if path != keep && (at >= most || bytes > most_bytes) {
            let _ = fs::remove_file(path);
        }
    }
}

fn touch(path: &Path) -> io::Result<()> {
    fs::File::open(path)?.set_modified(SystemTime::now())
}

/// SHA-256 of a file, in hex, without having all of it in memory.
pub(crate) fn hash(path: &Path) -> io::Result<String> {
    let mut file = fs::File::open(path)?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 1 << 16];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(hex(&hash.finalize())),
            count => hash.update(&chunk[..count]),
        }
    }
}

/// Writes anew what is kept beside a profile.
pub(crate) fn rewrite_about(profile: &Path, about: &About) -> io::Result<()> {
    let json = serde_json::to_vec_pretty(about)?;
    write_private(&beside(profile), |out| out.write_all(&json))
}

/// The newest recording of a test as it was then, with its work.
pub fn newest_of_test(recordings: &Path, workspace: &Path, test: &str) -> Option<(PathBuf, Work)> {
    let all = Store::new(recordings, workspace).list();
    all.into_iter().find_map(|(path, _)| {
        let about = About::read(&path).filter(|about| about.test == test && !about.is_base_run)?;
        Some((path, about.work))
    })
}

impl About {
    /// It is a run of several in turns.
    pub(crate) fn is_in(&mut self, turn: Option<&InTurn>) {
        self.set = turn.map(|turn| turn.set.clone());
        self.is_base_run = turn.is_some_and(|turn| turn.earlier.is_some());
    }

    /// What is kept beside a profile.
    pub fn read(profile: &Path) -> Option<Self> {
        serde_json::from_slice(&read_kept(&beside(profile))?).ok()
    }
}

/// Most bytes of a file that is kept with a recording.
const MAX_KEPT: u64 = 64 << 20;

/// A file of ours, unless something else lies under its name: what is no regular file may never end.
pub(crate) fn read_kept(path: &Path) -> Option<Vec<u8>> {
    let metadata = fs::symlink_metadata(path).ok()?;
    (metadata.is_file() && metadata.len() <= MAX_KEPT).then(|| fs::read(path).ok())?
}

/// Whether a profile lies among the recordings: only there is what lies beside it ours.
pub(crate) fn is_recording(recordings: Option<&Path>, profile: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    recordings.and_then(real).zip(real(profile)).is_some_and(|(all, profile)| profile.starts_with(all))
}

/// The file beside a profile.
fn beside(profile: &Path) -> PathBuf {
    let text = profile.to_string_lossy();
    PathBuf::from(format!("{}.json", text.strip_suffix(&format!(".{PROFILE}")).unwrap_or(&text)))
}

fn entries(folder: &Path) -> impl Iterator<Item = (PathBuf, fs::Metadata)> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.path(), fs::symlink_metadata(entry.path()).ok()?)))
}

/// The library that lets allocations be seen, as a file that the dynamic linker can load; written when it is
/// not there, or is another version's.
pub(crate) fn preload_library(recordings: &Path) -> io::Result<PathBuf> {
    let hash = hex(&Sha256::digest(preload::LIBRARY));
    let folder = recordings.parent().unwrap_or(recordings).join(format!("preload-{}", &hash[..16]));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let path = folder.join(preload::FILE_NAME);
    if fs::read(&path).ok().as_deref() != Some(preload::LIBRARY) {
        write_private(&path, |out| out.write_all(preload::LIBRARY))?;
    }
    Ok(path)
}

/// Writes a profile as a whole or not at all, for the user alone.
pub fn write_profile(profile: &Profile, path: &Path) -> io::Result<()> {
    write_private(path, |out| pprof::write(profile, out))
}

fn write_private(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(TEMPORARY)
        .permissions(fs::Permissions::from_mode(0o600))
        .tempfile_in(folder)?;
    {
        let mut out = BufWriter::new(file.as_file_mut());
        write(&mut out)?;
        out.flush()?;
    }
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// The commit and branch of a workspace, and whether one of these files is another text than there.
///
/// Git is not asked what differs: to find out it would run the filters that a repository names. So a file
/// that a filter changes on its way counts as different.
fn git_state(workspace: &Path, files: &[PathBuf]) -> (Option<String>, Option<String>, Option<bool>) {
    let Some(mut repository) = Repository::around(workspace) else { return (None, None, None) };
    let Some(commit) = repository.commit("HEAD") else { return (None, None, None) };
    let branch = repository.branch();
    let mut differs = |path: &PathBuf| {
        let real = path.canonicalize().ok();
        let relative = real.as_ref().and_then(|real| real.strip_prefix(&repository.top).ok());
        let Some(relative) = relative.map(|relative| relative.to_string_lossy().into_owned()) else { return false };
        let now = fs::read(path).unwrap_or_default();
        repository.text(&commit, &relative).is_none_or(|before| before != String::from_utf8_lossy(&now))
    };
    let dirty = files.iter().any(&mut differs);
    (Some(commit), branch, Some(dirty))
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Seconds since 1970 as `20261129-175100`.
fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days since the first of March of the year 0, in whose calendar leap days come last.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}{month:02}{day:02}-{:02}{:02}{:02}", rest / 3_600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates() {
        for (seconds, text) in [
            (0, "19700101-000000"),
            (951_782_399, "20000228-235959"),
            (951_782_400, "20000229-000000"),
            (1_795_974_660, "20261129-175100"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }

    fn recording(store: &Store, workspace: &Path, number: u64) -> PathBuf {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(number);
        let path = store.new_path("app", now).unwrap();
        fs::write(&path, "profile").unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(now).unwrap();
        let source = workspace.join("main.rs");
        fs::write(&source, format!("// {number}")).unwrap();
        store.write_about(&path, About::default(), &[source]).unwrap();
        path
    }

    #[test]
    fn old_recordings_go_with_their_texts_and_the_user_alone_sees_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let (state, workspace) = (folder.path().join("state"), folder.path().join("app"));
        fs::create_dir(&workspace).unwrap();
        let store = Store::new(&state, &workspace);
        let paths: Vec<PathBuf> = (1..=u64::try_from(MAX_RECORDINGS).unwrap() + 3)
            .map(|number| recording(&store, &workspace, number))
            .collect();
        let left = store.list();
        assert_eq!(left.len(), MAX_RECORDINGS);
        assert_eq!(left[0].0, *paths.last().unwrap());
        assert!(!paths[0].exists() && !beside(&paths[0]).exists());
        assert_eq!(entries(&store.folder().join(TEXTS)).count(), MAX_RECORDINGS);
        let about = About::read(&left[0].0).unwrap();
        assert_eq!((about.files.len(), about.files[0].is_kept), (1, true));
        assert_eq!(about.files[0].path, Path::new("main.rs"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(store.folder()), mode(&beside(&left[0].0))), (0o700, 0o600));
    }

    /// A recording of a set of runs in turns, of a program that was kept.
    fn run(store: &Store, number: u64, set: &str, is_base_run: bool) -> PathBuf {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(number);
        let path = store.new_path("app", now).unwrap();
        fs::write(&path, "profile").unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(now).unwrap();
        let about = About { set: Some(set.to_owned()), is_base_run, ..About::default() };
        store.write_about(&path, about, &[]).unwrap();
        path
    }

    #[test]
    fn runs_in_turns_take_no_recording_of_the_users_away_and_old_sets_go_first() {
        let folder = tempfile::tempdir().unwrap();
        let (state, workspace) = (folder.path().join("state"), folder.path().join("app"));
        fs::create_dir(&workspace).unwrap();
        let store = Store::new(&state, &workspace);
        let own: Vec<PathBuf> = (1..=25).map(|number| recording(&store, &workspace, number)).collect();
        let mut sets: Vec<Vec<PathBuf>> = Vec::new();
        for at in 0..4 {
            // Ten pairs, each base first.
            let runs = (0..20).map(|run_at| run(&store, 100 * (at + 1) + run_at, &format!("set{at}"), run_at % 2 == 0));
            sets.push(runs.collect());
        }
        assert!(own.iter().all(|path| path.exists()), "25 and the first run of four sets are 29");
        let left: Vec<usize> = sets.iter().map(|set| set.iter().filter(|path| path.exists()).count()).collect();
        assert_eq!(left, [1, 20, 20, 20]);
        assert!(sets[0][1].exists(), "it is the first run of the new version");
        // What a set is judged by is there as long as it is.
        let later: Vec<PathBuf> = (1000..1040).map(|number| recording(&store, &workspace, number)).collect();
        assert_eq!(later.iter().filter(|path| path.exists()).count(), MAX_RECORDINGS);
        assert!(own.iter().chain(&sets[0]).all(|path| !path.exists()));
        assert!(sets[1..].iter().flatten().all(|path| path.exists()));
    }

    #[test]
    fn a_program_is_kept_as_long_as_a_recording_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let (state, workspace) = (folder.path().join("state"), folder.path().join("app"));
        fs::create_dir(&workspace).unwrap();
        let store = Store::new(&state, &workspace);
        let program = workspace.join("app");
        let scratch = workspace.join("scratch");
        let built = |number: u64| {
            fs::write(&program, [ELF, &number.to_le_bytes()].concat()).unwrap();
            let path = recording(&store, &workspace, number);
            let words = Words::new("app", &workspace).env("OUT", scratch.join("out")).env("LEVEL", "3");
            store.keep_program(&path, &words, &scratch).unwrap();
            path
        };
        let (first, second) = (built(1), built(2));
        let kept = |path: &Path| About::read(path).unwrap().kept.unwrap();
        let (one, two) = (kept(&first), kept(&second));
        // A folder that goes with the recording is no part of what is run again.
        assert_eq!(one.environment, ["LEVEL=3"]);
        assert!(store.program(&one).is_some() && store.program(&two).is_some());
        fs::remove_file(&first).unwrap();
        recording(&store, &workspace, 3);
        assert_eq!((store.program(&one), store.program(&two).is_some()), (None, true));
        // A script runs from its source, which is another by then.
        fs::write(&program, "#!/bin/sh").unwrap();
        store.keep_program(&second, &Words::new("app", &workspace), &scratch).unwrap();
        assert_eq!(kept(&second), two);
    }

    #[test]
    fn two_recordings_in_a_second_have_two_files() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path(), Path::new("/x/../y"));
        let first = store.new_path("../evil name", SystemTime::UNIX_EPOCH).unwrap();
        assert!(first.starts_with(store.folder()), "{}", first.display());
        fs::write(&first, "").unwrap();
        assert_ne!(store.new_path("../evil name", SystemTime::UNIX_EPOCH).unwrap(), first);
    }
}
