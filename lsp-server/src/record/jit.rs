//! Files in which a process tells the names of code it compiles while running: perf maps and
//! jitdumps.
//!
//! A perf map lies in a folder where anybody may write, under a name that is easy to guess. So it is
//! opened through the process's own root, no link is followed, and it must be a regular file with one
//! name that belongs to the user of the process. A jitdump is known by a mapping, so it is opened as
//! the file of that mapping. Both are opened while the process lives and read when names are wanted.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use rustix::fs::{Mode, OFlags, ResolveFlags};

/// How long a process without a map is not asked again.
const PAUSE: Duration = Duration::from_millis(200);

/// Most processes whose files are kept open.
const MAX_PROCESSES: usize = 256;

/// Files of processes, by row of the process.
#[derive(Debug, Default)]
pub(crate) struct JitFiles {
    maps: FxHashMap<u32, File>,
    dumps: FxHashMap<u32, File>,
    asked: FxHashMap<u32, Instant>,
    /// Whether they were made for us alone, and go as soon as they are open.
    pub(crate) removes: bool,
}

impl JitFiles {
    /// Looks for the perf map of a process that runs code in no file, unless it is known or was
    /// looked for a moment ago.
    pub(crate) fn look(&mut self, process: u32, pid: u32, namespace_pid: u32) {
        if self.maps.contains_key(&process) || self.maps.len() >= MAX_PROCESSES {
            return;
        }
        let now = Instant::now();
        if self.asked.get(&process).is_some_and(|&asked| now - asked < PAUSE) {
            return;
        }
        self.asked.insert(process, now);
        if let Some(file) = open_perf_map(Path::new("/proc"), pid, namespace_pid) {
            self.maps.insert(process, file);
            if self.removes {
                remove_map(namespace_pid);
            }
        }
    }

    /// Looks once more, also where a process that is gone by now has left its map.
    pub(crate) fn look_at_the_end(&mut self, process: u32, pid: u32, namespace_pid: u32) {
        self.asked.remove(&process);
        self.look(process, pid, namespace_pid);
        if !self.maps.contains_key(&process) && pid == namespace_pid {
            let owner = rustix::process::getuid().as_raw();
            let map = open_map_below(Path::new("/"), namespace_pid, owner);
            self.maps.extend(map.map(|file| (process, file)));
        }
    }

    /// Keeps the jitdump of a process.
    pub(crate) fn keep_dump(&mut self, process: u32, file: File, path: &Path) {
        if self.removes && is_same(&file, path) {
            let _ = std::fs::remove_file(path);
        }
        if self.dumps.len() < MAX_PROCESSES {
            self.dumps.insert(process, file);
        }
    }

    /// The processes that have files.
    pub(crate) fn processes(&self) -> BTreeSet<u32> {
        self.maps.keys().chain(self.dumps.keys()).copied().collect()
    }

    /// Whether a process has told names of its code.
    pub(crate) fn has(&self, process: u32) -> bool {
        self.maps.contains_key(&process) || self.dumps.contains_key(&process)
    }

    /// The perf map of a process, if there is one that may be trusted.
    pub(crate) fn map(&self, process: u32) -> Option<&File> {
        self.maps.get(&process)
    }

    /// The jitdump of a process.
    pub(crate) fn dump(&self, process: u32) -> Option<&File> {
        self.dumps.get(&process)
    }
}

/// Opens the perf map of a process, if it is the process's own.
fn open_perf_map(proc: &Path, pid: u32, namespace_pid: u32) -> Option<File> {
    let process = proc.join(pid.to_string());
    let owner = std::fs::metadata(&process).ok()?.uid();
    open_map_below(&process.join("root"), namespace_pid, owner)
}

fn open_map_below(root: &Path, namespace_pid: u32, owner: u32) -> Option<File> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(root, flags, Mode::empty()).ok()?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let name = format!("tmp/perf-{namespace_pid}.map");
    let file = File::from(rustix::fs::openat2(&root, name, flags, Mode::empty(), resolve).ok()?);
    let metadata = file.metadata().ok()?;
    // A second name would let somebody present a file of the user's that was made for something else.
    (metadata.is_file() && metadata.uid() == owner && metadata.nlink() == 1).then_some(file)
}

/// Whether a path leads to a file of ours.
fn is_same(file: &File, path: &Path) -> bool {
    let (Ok(open), Ok(there)) = (file.metadata(), std::fs::symlink_metadata(path)) else { return false };
    let owner = rustix::process::getuid().as_raw();
    (open.dev(), open.ino()) == (there.dev(), there.ino()) && open.uid() == owner
}

/// Removes the map that a process of ours has written, if it is ours.
pub(crate) fn remove_map(namespace_pid: u32) {
    let owner = rustix::process::getuid().as_raw();
    if open_map_below(Path::new("/"), namespace_pid, owner).is_some() {
        let _ = std::fs::remove_file(format!("/tmp/perf-{namespace_pid}.map"));
    }
}

/// Removes what Node.js has left in the folder it was started in, for processes of a recording.
pub(crate) fn remove_logs(folder: &Path, pids: &BTreeSet<u32>) {
    let owner = rustix::process::getuid().as_raw();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(log_of) else { continue };
        let is_ours = entry.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.uid() == owner);
        if is_ours && pids.contains(&pid) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The process of `jit-12.dump` or `isolate-0x1f-12-v8.log`.
fn log_of(name: &str) -> Option<u32> {
    let dump = name.strip_prefix("jit-").and_then(|rest| rest.strip_suffix(".dump"));
    let log = || name.strip_prefix("isolate-0x")?.strip_suffix("-v8.log")?.split_once('-').map(|(_, pid)| pid);
    dump.or_else(log)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `/proc` with one process of ours whose root is a folder.
    fn proc() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("7/root");
        std::fs::create_dir_all(root.join("tmp")).unwrap();
        (folder, root)
    }

    #[test]
    fn only_files_of_recorded_processes_go() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["jit-12.dump", "isolate-0x1f-12-v8.log", "jit-13.dump", "jit-12.dump.gz", "isolate-12-v8.log"];
        for name in names {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        remove_logs(folder.path(), &BTreeSet::from([12]));
        let left: Vec<&str> = names.into_iter().filter(|name| folder.path().join(name).exists()).collect();
        assert_eq!(left, names[2..]);
    }

    #[test]
    fn a_map_of_the_process_is_opened() {
        let (proc, root) = proc();
        assert!(open_perf_map(proc.path(), 7, 3).is_none());
        std::fs::write(root.join("tmp/perf-3.map"), "1000 10 f\n").unwrap();
        assert!(open_perf_map(proc.path(), 7, 3).is_some());
    }

    #[test]
    fn what_may_be_planted_is_refused() {
        for plant in ["symlink", "hard link", "pipe", "folder", "linked tmp"] {
            let (proc, root) = proc();
            let (map, other) = (root.join("tmp/perf-3.map"), root.join("other"));
            std::fs::write(&other, "1000 10 secret\n").unwrap();
            match plant {
                "symlink" => std::os::unix::fs::symlink("/other", &map).unwrap(),
                "hard link" => std::fs::hard_link(&other, &map).unwrap(),
                "folder" => std::fs::create_dir(&map).unwrap(),
                "pipe" => assert!(std::process::Command::new("mkfifo").arg(&map).status().unwrap().success()),
                _ => {
                    std::fs::rename(root.join("tmp"), root.join("real")).unwrap();
                    std::fs::write(root.join("real/perf-3.map"), "1000 10 f\n").unwrap();
                    std::os::unix::fs::symlink("real", root.join("tmp")).unwrap();
                }
            }
            assert!(open_perf_map(proc.path(), 7, 3).is_none(), "{plant}");
        }
    }
}
