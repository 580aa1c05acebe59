//! A process that may be looked at, and files as it sees them.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt as _;

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, major, minor, openat, openat2, readlinkat};
use rustix::io::Errno;

use super::Caller;
use crate::unwind_table::Memory;

/// How folders are opened.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Most threads of a process that are looked at for one that lives.
const MAX_THREADS: usize = 256;
/// Longest file of `/proc` that is read.
const MAX_PROC_FILE: u64 = 64 << 20;

/// A process that the caller may look at.
///
/// Everything goes through the process's own folder in `/proc`, opened once: when the process ends and its number is
/// given to another, it answers with errors, not with the other.
pub struct Target {
    folder: OwnedFd,
    root: Option<OwnedFd>,
    /// `None` where the system keeps it from everybody but a process's ancestors.
    memory: Option<File>,
}

/// Why a process is not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// There is none of that number.
    #[error("there is no such process")]
    Gone,
    /// The caller may not look at it.
    #[error("it belongs to another user, or holds more rights than its user")]
    NotCallers,
    /// It has no user's part.
    #[error("it is a part of the kernel")]
    Kernel,
    /// `/proc` could not be read.
    #[error("/proc can't be read: {0}")]
    Proc(Errno),
}

impl Target {
    /// Opens a process if the caller may look at it: if its memory opens with the caller's rights.
    pub fn open(pid: u32, caller: Caller, any_user: bool) -> Result<Self, TargetError> {
        let refuse = |error: Errno| match error {
            Errno::NOENT | Errno::SRCH => TargetError::Gone,
            Errno::ACCESS | Errno::PERM => TargetError::NotCallers,
            other => TargetError::Proc(other),
        };
        let folder = openat(CWD, format!("/proc/{pid}"), FOLDER, Mode::empty()).map_err(refuse)?;
        let target = match Self::of_task(folder.try_clone().map_err(|_| TargetError::Gone)?) {
            // The first thread may have ended before the others; then one of those has what it has not.
            Err(Errno::NOENT | Errno::SRCH) => Self::of_threads(&folder)?,
            other => other.map_err(refuse)?,
        };
        // Root opens everything; what may be looked at is the same as for everybody else.
        if caller.root && !any_user && !target.belongs_to(caller.uid).map_err(|_| TargetError::Gone)? {
            return Err(TargetError::NotCallers);
        }
        Ok(target)
    }

    /// Opens a process that one which may be looked at has started.
    ///
    /// Yama may keep its memory to its ancestors, and we are none. Whoever may look at the one that started it could have
    /// that look at it, so here it is enough that the caller may read what it is: the kernel asks for the same user, and
    /// for no more rights than the caller's, as it does for memory. Without memory its interpreters stay unknown.
    pub fn open_started(pid: u32, caller: Caller, any_user: bool) -> Result<Self, TargetError> {
        match Self::open(pid, caller, any_user) {
            Err(TargetError::NotCallers) if Restriction::of_this_system() == Restriction::Ancestors => {
                Self::without_memory(pid, caller, any_user).ok_or(TargetError::NotCallers)
            }
            other => other,
        }
    }

    fn without_memory(pid: u32, caller: Caller, any_user: bool) -> Option<Self> {
        let folder = openat(CWD, format!("/proc/{pid}"), FOLDER, Mode::empty()).ok()?;
        let root = openat(&folder, "root", FOLDER, Mode::empty()).ok()?;
        readlinkat(&folder, "exe", Vec::new()).ok()?;
        let target = Self { folder, root: Some(root), memory: None };
        let is_callers = any_user || target.belongs_to(caller.uid).ok()?;
        is_callers.then_some(target)
    }

    /// By the folder of a process or of one of its threads. `NOENT` when that has no program: it ended, or is a part of the
    /// kernel.
    fn of_task(folder: OwnedFd) -> Result<Self, Errno> {
        let memory = openat(&folder, "mem", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let root = openat(&folder, "root", FOLDER, Mode::empty()).ok();
        readlinkat(&folder, "exe", Vec::new())?;
        Ok(Self { folder, root, memory: Some(memory.into()) })
    }

    fn of_threads(folder: &OwnedFd) -> Result<Self, TargetError> {
        let gone = |_| TargetError::Gone;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let tasks = openat(folder, "task", flags, Mode::empty()).map_err(gone)?;
        let names = Dir::read_from(&tasks).map_err(gone)?;
        let threads = names
            .flatten()
            .filter(|entry| entry.file_name().to_bytes() != b"." && entry.file_name().to_bytes() != b"..");
        let mut seen = 0;
        for thread in threads.take(MAX_THREADS) {
            seen += 1;
            let task = openat(&tasks, thread.file_name(), FOLDER, Mode::empty());
            if let Ok(target) = task.and_then(Self::of_task) {
                return Ok(target);
            }
        }
        // A part of the kernel is alive and has no program. So has a process in its last moments, of which there is
        // nothing to be seen either.
        Err(if seen > 0 { TargetError::Kernel } else { TargetError::Gone })
    }

    fn belongs_to(&self, uid: u32) -> io::Result<bool> {
        let status = self.read("status")?;
        Ok(status_numbers(&status, "Uid:").is_some_and(|uids| uids.iter().all(|&one| one == uid)))
    }

    /// Its number in its own pid namespace.
    pub fn namespace_pid(&self) -> Option<u32> {
        status_numbers(&self.read("status").ok()?, "NSpid:")?.last().copied()
    }

    /// A file of its folder in `/proc`.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let file = openat(&self.folder, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut bytes = Vec::new();
        File::from(file).take(MAX_PROC_FILE).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Its mappings, if it still may be looked at.
    ///
    /// Newer kernels (6.13 and later) show the mappings of anybody's processes to whoever has `CAP_PERFMON`, so it says nothing
    /// that the file opens. The process may have become another program meanwhile, so what counts is asked afterwards.
    pub fn mappings(&self) -> io::Result<Vec<u8>> {
        let maps = self.read("maps")?;
        if self.memory.is_some() {
            openat(&self.folder, "mem", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        } else {
            readlinkat(&self.folder, "exe", Vec::new())?;
        }
        Ok(maps)
    }

    /// The path of its program, as it sees it.
    pub fn executable(&self) -> Option<String> {
        let path = readlinkat(&self.folder, "exe", Vec::new()).ok()?;
        Some(path.to_string_lossy().into_owned())
    }

    /// A mapped file, if it still is the one that is mapped.
    pub fn open_mapped(&self, path: &[u8], device: (u32, u32), inode: u64) -> Option<File> {
        open_mapped(self.root.as_ref()?, path, device, inode)
    }
}

impl Memory for Target {
    fn read(&self, address: u64, to: &mut [u8]) -> io::Result<()> {
        self.memory.as_ref().ok_or(io::ErrorKind::PermissionDenied)?.read_exact_at(to, address)
    }
}

/// To whom the system shows a process beyond what users and rights say (Yama, `kernel.yama.ptrace_scope`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restriction {
    /// To everybody.
    None,
    /// To those that have started it, and whom it names.
    Ancestors,
    /// To nobody but the administrator, or to nobody at all.
    Everybody,
}

impl Restriction {
    /// What this system says.
    pub fn of_this_system() -> Self {
        Self::of_setting(std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok().as_deref())
    }

    fn of_setting(scope: Option<&str>) -> Self {
        match scope.map(str::trim) {
            None | Some("0") => Self::None,
            Some("1") => Self::Ancestors,
            Some(_) => Self::Everybody,
        }
    }
}

/// Opens `path` below `root` as a process with that root would, but only a regular file, and only if it is the one that
/// device and inode say. Links can't lead out of `root`, and nothing is waited for.
pub fn open_mapped(root: impl AsFd, path: &[u8], device: (u32, u32), inode: u64) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let file = openat2(root, path, flags, Mode::empty(), resolve).ok()?;
    let status = fstat(&file).ok()?;
    let same = status.st_ino == inode && (major(status.st_dev), minor(status.st_dev)) == device;
    (same && FileType::from_raw_mode(status.st_mode) == FileType::RegularFile).then(|| file.into())
}

/// The numbers of a line of `/proc/PID/status`.
fn status_numbers(status: &[u8], name: &str) -> Option<Vec<u32>> {
    let line = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(name.as_bytes()))?;
    str::from_utf8(line).ok()?.split_ascii_whitespace().map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, symlink};

    use super::*;

    #[test]
    fn lines_of_status_are_read() {
        let status = b"Name:\ta\nUid:\t1000\t1000\t1000\t1000\nNSpid:\t4711\t12\t1\nBad:\tx\n";
        assert_eq!(status_numbers(status, "Uid:"), Some(vec![1000; 4]));
        assert_eq!(status_numbers(status, "NSpid:").unwrap().last(), Some(&1));
        assert_eq!(status_numbers(status, "Bad:"), None);
        assert_eq!(status_numbers(status, "None:"), None);
    }

    #[test]
    fn only_the_mapped_file_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("lib"), "x").unwrap();
        std::fs::write(at("other"), "y").unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        symlink("/lib", at("inside")).unwrap();
        symlink("/etc/passwd", at("outside")).unwrap();
        symlink("../../../../../../etc/passwd", at("up")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap();
        assert!(made.success());

        let root = File::open(folder.path()).unwrap();
        let identity = |path: &std::path::Path| {
            let data = std::fs::metadata(path).unwrap();
            ((major(data.dev()), minor(data.dev())), data.ino())
        };
        let opens = |path: &str, of: &std::path::Path| {
            let (device, inode) = identity(of);
            open_mapped(&root, path.as_bytes(), device, inode).is_some()
        };
        assert!(opens("/lib", &at("lib")));
        assert!(opens("/inside", &at("lib")), "links are followed as the process would");
        assert!(!opens("/other", &at("lib")), "another file under the name");
        assert!(!opens("/gone", &at("lib")));
        assert!(!opens("/folder", &at("folder")));
        assert!(!opens("/pipe", &at("pipe")), "and opening it does not wait");
        let passwd = std::path::Path::new("/etc/passwd");
        assert!(!opens("/outside", passwd));
        assert!(!opens("/up", passwd));
    }

    #[test]
    fn yama_is_understood() {
        for (scope, restriction) in [
            (None, Restriction::None),
            (Some("0\n"), Restriction::None),
            (Some("1\n"), Restriction::Ancestors),
            (Some("2\n"), Restriction::Everybody),
            (Some("3\n"), Restriction::Everybody),
        ] {
            assert_eq!(Restriction::of_setting(scope), restriction, "{scope:?}");
        }
    }

    /// What is asked for where memory is kept from us is asked of the kernel, with the caller's rights.
    #[test]
    fn without_memory_it_is_known_what_a_process_is_and_others_are_refused() {
        let caller = Caller { uid: rustix::process::getuid().as_raw(), gid: 0, root: false };
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let target = Target::without_memory(child.id(), caller, false).unwrap();
        assert!(target.executable().unwrap().ends_with("sleep"));
        // Its parent goes on before it has mapped its program.
        let is_mapped = || String::from_utf8_lossy(&target.mappings().unwrap()).contains("/sleep");
        let patience = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !is_mapped() {
            assert!(std::time::Instant::now() < patience, "it is not mapped");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(Memory::read(&target, 0x1000, &mut [0; 8]).is_err());
        let other = Caller { uid: caller.uid + 1, ..caller };
        assert!(Target::without_memory(child.id(), other, false).is_none(), "of another user");
        if caller.uid == 0 {
            // The rights of one thread are its own.
            let pid = child.id();
            let nobody = std::thread::spawn(move || {
                let uid = rustix::process::Uid::from_raw(65534);
                rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
                (Target::without_memory(pid, caller, true).is_some(), target.mappings().is_ok())
            });
            assert_eq!(nobody.join().unwrap(), (false, false), "the kernel refuses");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn this_process_may_be_looked_at_and_nobody_not() {
        let caller = Caller { uid: rustix::process::getuid().as_raw(), gid: 0, root: false };
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let target = Target::open(child.id(), caller, false).unwrap();
        assert_eq!(target.namespace_pid(), Some(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(target.mappings().is_err(), "an ended process answers with errors");
        assert_eq!(Target::open(child.id(), caller, false).err(), Some(TargetError::Gone));
    }
}
