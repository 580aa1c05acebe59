//! Where debug info is, and whether it is the right one.
//!
//! A file that lies where it is looked for proves nothing: it may be of another build, or be
//! planted. So every candidate is opened once, without waiting for pipes, and must be a regular
//! file with the build id, or the checksum, that the binary names. What was tried and why it was
//! not taken is kept, for people.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use super::elf::{BuildId, Elf};
use super::reason::{Refusal, Tried};

/// Larger files are not looked at.
const MAX_FILE: u64 = 32 << 30;
/// Most places that are noted for one file.
const MAX_TRIED: usize = 24;

/// Which file of a build is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// The program or library itself.
    Executable,
    /// Its separate debug info.
    DebugInfo,
}

/// A way to get files that are not on this machine, such as a debuginfod server. The core asks
/// nobody; whoever may use the network implements this.
pub trait Fetch: Send {
    /// Gets a file of a build and returns where it was put; `None` when there is none.
    fn fetch(&mut self, build_id: &BuildId, kind: FileKind) -> Option<PathBuf>;
}

/// Where files are looked for.
#[derive(Default)]
pub struct DebugFiles {
    /// Folders with debug info: `.build-id/xx/yyyy.debug`, or files beside each other.
    pub debug_dirs: Vec<PathBuf>,
    /// Folders with binaries, by file name. What is there counts only by its build id.
    pub binary_dirs: Vec<PathBuf>,
    /// Caches of debuginfod.
    pub debuginfod_caches: Vec<PathBuf>,
    /// Asked when nothing is found here.
    pub fetch: Option<Box<dyn Fetch>>,
}

impl std::fmt::Debug for DebugFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DebugFiles")
            .field("debug_dirs", &self.debug_dirs)
            .field("binary_dirs", &self.binary_dirs)
            .field("debuginfod_caches", &self.debuginfod_caches)
            .finish_non_exhaustive()
    }
}

/// A binary that is looked for.
#[derive(Clone, Debug)]
pub(super) struct Wanted<'a> {
    /// Its path where it ran.
    pub(super) path: &'a Path,
    /// The folder that is `/` there: `/proc/PID/root`.
    pub(super) root: Option<&'a Path>,
    /// Its build, as the profile has it; empty: unknown.
    pub(super) build: &'a str,
    /// When nothing says which build it was, a file that is younger than this is another one.
    pub(super) not_after: Option<SystemTime>,
}

/// A search: what was found wrong so far.
#[derive(Debug, Default)]
pub(super) struct Search {
    pub(super) tried: Vec<Tried>,
}

impl Search {
    /// Opens a candidate and checks it; notes why not.
    fn take(&mut self, path: &Path, check: impl FnOnce(&Elf) -> Result<(), Refusal>) -> Option<Elf> {
        match open(path).and_then(|file| Elf::open(&file)).and_then(|elf| check(&elf).map(|()| elf)) {
            Ok(elf) => Some(elf),
            Err(refusal) => {
                self.refuse(path, refusal);
                None
            }
        }
    }

    pub(super) fn refuse(&mut self, path: &Path, refusal: Refusal) {
        let is_known = self.tried.iter().any(|tried| tried.path == path);
        if !is_known && self.tried.len() < MAX_TRIED {
            self.tried.push(Tried { path: path.to_owned(), refusal });
        }
    }

    /// The reason that tells most: a file that is there and wrong, over one that is not there.
    pub(super) fn refusal(&self) -> Refusal {
        let there = self.tried.iter().find(|tried| tried.refusal != Refusal::Missing);
        there.map_or(Refusal::Missing, |tried| tried.refusal.clone())
    }
}

/// Opens a regular file. Never waits, whatever is there.
pub(super) fn open(path: &Path) -> Result<File, Refusal> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC);
    let file = options.open(path).map_err(|error| Refusal::from(&error))?;
    let metadata = file.metadata().map_err(|error| Refusal::from(&error))?;
    if !metadata.is_file() {
        return Err(Refusal::NotRegular);
    }
    if metadata.len() > MAX_FILE {
        return Err(Refusal::TooLarge);
    }
    Ok(file)
}

fn is_build(id: &BuildId) -> impl FnOnce(&Elf) -> Result<(), Refusal> {
    move |elf| {
        if elf.build_id() == Some(id) { Ok(()) } else { Err(Refusal::OtherBuild { found: elf.build_id().cloned() }) }
    }
}

/// `xx/yyyy`, as folders of build ids have it.
fn by_build_id(id: &BuildId) -> Option<String> {
    let hex = id.to_string();
    (hex.len() > 2).then(|| format!("{}/{}", &hex[..2], &hex[2..]))
}

/// The path below a folder, without climbing out of it.
fn below(root: &Path, path: &Path) -> PathBuf {
    let inside = path.components().filter(|part| matches!(part, Component::Normal(_)));
    inside.fold(root.to_owned(), |joined, part| joined.join(part))
}

fn path_of(bytes: &[u8]) -> PathBuf {
    #[cfg(unix)]
    return PathBuf::from(<OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes));
    #[cfg(not(unix))]
    return PathBuf::from(String::from_utf8_lossy(bytes).into_owned());
}

/// Paths of mappings that are no files.
pub(super) fn is_pseudo(text: &str) -> bool {
    let prefixes = ["[", "//anon", "/dev/", "/memfd:", "/SYSV", "anon_inode:", "linux-vdso", "linux-gate"];
    text.is_empty() || prefixes.iter().any(|prefix| text.starts_with(prefix))
}

impl DebugFiles {
    /// Finds the binary.
    pub(super) fn binary(&mut self, wanted: &Wanted<'_>, search: &mut Search) -> Option<Elf> {
        if is_pseudo(&wanted.path.to_string_lossy()) && wanted.build.is_empty() {
            search.refuse(wanted.path, Refusal::NoPath);
            return None;
        }
        let is_wanted = |elf: &Elf| {
            if wanted.build.is_empty() || elf.is_build(wanted.build) {
                Ok(())
            } else {
                Err(Refusal::OtherBuild { found: elf.build_id().cloned() })
            }
        };
        // A build that nobody named can only be looked for by its whole path.
        let own = wanted.root.map_or_else(|| wanted.path.to_owned(), |root| below(root, wanted.path));
        if wanted.path.is_absolute() && !is_pseudo(&wanted.path.to_string_lossy()) {
            let is_old_enough = |_: &Elf| match (wanted.build.is_empty(), wanted.not_after) {
                (true, Some(limit)) if is_younger(&own, limit) => Err(Refusal::Younger),
                _ => Ok(()),
            };
            if let Some(elf) = search.take(&own, |elf| is_wanted(elf).and_then(|()| is_old_enough(elf))) {
                return Some(elf);
            }
        }
        if wanted.build.is_empty() {
            return None;
        }
        let name = wanted.path.file_name();
        for folder in name.into_iter().flat_map(|_| &self.binary_dirs) {
            let path = folder.join(name.unwrap_or_default());
            if let Some(elf) = search.take(&path, is_wanted) {
                return Some(elf);
            }
        }
        let id = BuildId::from_hex(wanted.build)?;
        let hex = id.to_string();
        let by_id = by_build_id(&id).into_iter().flat_map(|name| {
            self.debug_dirs.iter().flat_map(move |folder| [folder.join(".build-id").join(&name), folder.join(&name)])
        });
        let by_name = name.into_iter().flat_map(|name| self.debug_dirs.iter().map(move |folder| folder.join(name)));
        let cached = self.debuginfod_caches.iter().map(|cache| cache.join(&hex).join("executable"));
        let candidates: Vec<PathBuf> = by_id.chain(by_name).chain(cached).collect();
        for path in candidates {
            if let Some(elf) = search.take(&path, is_wanted) {
                return Some(elf);
            }
        }
        let path = self.fetch.as_mut()?.fetch(&id, FileKind::Executable)?;
        search.take(&path, is_wanted)
    }

    /// Finds separate debug info by build id alone or, for a binary that is at hand, by its link.
    pub(super) fn debug_info(
        &mut self,
        binary: Option<&Elf>,
        build: Option<&BuildId>,
        wanted: &Wanted<'_>,
        search: &mut Search,
    ) -> Option<Elf> {
        let system = system_debug_dir(wanted.root);
        if let Some(id) = build {
            let file = by_build_id(id)?;
            let hex = id.to_string();
            let folders = self.debug_dirs.iter().chain(std::iter::once(&system));
            let by_id = folders.flat_map(|folder| {
                [folder.join(".build-id").join(format!("{file}.debug")), folder.join(format!("{file}.debug"))]
            });
            let cached = self.debuginfod_caches.iter().map(|cache| cache.join(&hex).join("debuginfo"));
            let candidates: Vec<PathBuf> = by_id.chain(cached).collect();
            for path in candidates {
                if let Some(elf) = search.take(&path, |elf| is_build(id)(elf).and_then(|()| has_debug_info(elf))) {
                    return Some(elf);
                }
            }
        }
        if let Some((name, checksum)) = binary.and_then(Elf::debug_link)
            && let Some(name) = path_of(name).file_name()
        {
            let own = wanted.root.map_or_else(|| wanted.path.to_owned(), |root| below(root, wanted.path));
            let folder = own.parent().unwrap_or(Path::new(""));
            let original = wanted.path.parent().unwrap_or(Path::new(""));
            let beside = [folder.join(name), folder.join(".debug").join(name), below(&system, original).join(name)];
            let configured = self.debug_dirs.iter().flat_map(|dir| [below(dir, original).join(name), dir.join(name)]);
            let candidates: Vec<PathBuf> = beside.into_iter().chain(configured).collect();
            for path in candidates {
                // A link may lead back to the binary itself.
                let check = |elf: &Elf| {
                    match build {
                        Some(id) if elf.build_id().is_some() => is_build(id)(elf)?,
                        _ if crc32(elf.bytes()) != checksum => return Err(Refusal::OtherChecksum),
                        _ => {}
                    }
                    has_debug_info(elf)
                };
                if let Some(elf) = search.take(&path, check) {
                    return Some(elf);
                }
            }
        }
        let id = build?;
        let path = self.fetch.as_mut()?.fetch(id, FileKind::DebugInfo)?;
        search.take(&path, |elf| is_build(id)(elf).and_then(|()| has_debug_info(elf)))
    }

    /// Finds the file with the entries that several debug files share.
    pub(super) fn shared(&self, debug: &Elf, wanted: &Wanted<'_>, search: &mut Search) -> Option<Elf> {
        let (name, id) = debug.alt_link()?;
        let system = system_debug_dir(wanted.root);
        let folders = self.debug_dirs.iter().chain(std::iter::once(&system));
        let by_id = by_build_id(id)
            .into_iter()
            .flat_map(|file| folders.clone().map(move |folder| folder.join(".build-id").join(format!("{file}.debug"))));
        let name = path_of(name);
        let named = name
            .file_name()
            .into_iter()
            .flat_map(|file| folders.clone().map(move |folder| folder.join(".dwz").join(file)));
        let stated = name.is_absolute().then(|| wanted.root.map_or_else(|| name.clone(), |root| below(root, &name)));
        let candidates: Vec<PathBuf> = by_id.chain(stated).chain(named).collect();
        candidates.iter().find_map(|path| search.take(path, is_build(id)))
    }

    /// Finds the package of split units, which has the name of the binary and lies beside it.
    pub(super) fn package(&self, binary: &Path, search: &mut Search) -> Option<Elf> {
        let mut name = binary.file_name()?.to_owned();
        name.push(".dwp");
        let beside = binary.with_file_name(&name);
        // Of `libx.so` some tools make `libx.dwp`.
        let shorter = binary.with_extension("dwp");
        let configured = self.debug_dirs.iter().map(|dir| dir.join(&name));
        let candidates: Vec<PathBuf> = [beside, shorter].into_iter().chain(configured).collect();
        candidates.iter().find_map(|path| {
            search.take(path, |elf| {
                if elf.has_section(".debug_cu_index") {
                    Ok(())
                } else {
                    Err(Refusal::NotElf("no package of debug info"))
                }
            })
        })
    }

    /// Finds a split unit: where it was compiled, else beside the binary.
    pub(super) fn split_unit(
        &self,
        unit: &super::dwarf::SplitUnit,
        binary: &Path,
        root: Option<&Path>,
        search: &mut Search,
    ) -> Option<Elf> {
        let path = path_of(&unit.path);
        let stated = path_of(&unit.folder).join(&path);
        let stated = root.map_or_else(|| stated.clone(), |root| below(root, &stated));
        let name = path.file_name().unwrap_or_default();
        let beside = binary.with_file_name(name);
        let configured = self.debug_dirs.iter().map(|dir| dir.join(name));
        let candidates: Vec<PathBuf> = [stated, beside].into_iter().chain(configured).collect();
        candidates.iter().find_map(|path| {
            let mut elf = search.take(path, |_| Ok(()))?;
            elf.inflate(".debug_");
            if super::dwarf::holds_split_unit(&elf, unit.id) {
                return Some(elf);
            }
            search.refuse(path, Refusal::OtherBuild { found: None });
            None
        })
    }
}

fn has_debug_info(elf: &Elf) -> Result<(), Refusal> {
    let is_useful = elf.has_section(".debug_info") || elf.has_section(".symtab");
    if is_useful { Ok(()) } else { Err(Refusal::NotElf("no debug info in it")) }
}

fn system_debug_dir(root: Option<&Path>) -> PathBuf {
    let dir = Path::new("/usr/lib/debug");
    root.map_or_else(|| dir.to_owned(), |root| below(root, dir))
}

fn is_younger(path: &Path, limit: SystemTime) -> bool {
    std::fs::metadata(path).and_then(|metadata| metadata.modified()).is_ok_and(|modified| modified > limit)
}

/// The checksum of `.gnu_debuglink`: that of gzip, over the whole file.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}
