//! Opening the file behind a mapping of another process, and no other file.
//!
//! The path is what that process sees: it may be in a container, deleted, replaced since, or be
//! made to lead somewhere else. So it is followed below that process's root only, and what is found
//! must be the regular file of the mapping's device and inode.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Mode, OFlags, ResolveFlags};

/// A mapped file, as its process and the kernel name it.
#[derive(Clone, Copy, Debug)]
pub struct MappedFile<'a> {
    /// The process.
    pub pid: u32,
    /// First address, and the one after the last.
    pub range: (u64, u64),
    /// The path as the process sees it.
    pub path: &'a str,
    /// Major number of the device << 32 | the minor one.
    pub device: u64,
    /// The inode.
    pub inode: u64,
}

/// Opens the file that is mapped, and no other.
pub fn open(mapped: MappedFile<'_>) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let (start, end) = mapped.range;
    let at = |path: String| rustix::fs::open(path, flags, Mode::empty()).ok();
    let candidates: [&dyn Fn() -> Option<OwnedFd>; 4] = [
        // The kernel's own link also leads to files that were deleted, but not everybody may follow it.
        &|| at(format!("/proc/{}/map_files/{start:x}-{end:x}", mapped.pid)),
        &|| open_in_root(mapped, flags),
        // So does this one, which everybody may follow, but it knows the program only.
        &|| at(format!("/proc/{}/exe", mapped.pid)),
        // The process may be gone already, its file not.
        &|| at(mapped.path.to_owned()),
    ];
    candidates.iter().filter_map(|open| open()).map(File::from).find(|file| is_mapped(file, mapped))
}

fn is_mapped(file: &File, mapped: MappedFile<'_>) -> bool {
    let Ok(metadata) = file.metadata() else { return false };
    let (major, minor) = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
    // Some file systems show another device in mappings than for files; those have no disk of their own.
    let is_same_device = mapped.device == u64::from(major) << 32 | u64::from(minor) || major == 0;
    metadata.is_file() && metadata.ino() == mapped.inode && is_same_device
}

/// Opens a path as the process sees it, also in a container. A link can't lead out of its root.
fn open_in_root(mapped: MappedFile<'_>, flags: OFlags) -> Option<OwnedFd> {
    let root = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(format!("/proc/{}/root", mapped.pid), root, Mode::empty()).ok()?;
    let path = mapped.path.strip_suffix(" (deleted)").unwrap_or(mapped.path);
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(&root, path.trim_start_matches('/'), flags, Mode::empty(), resolve).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_file_itself_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lib.so");
        std::fs::write(&path, "mapped").unwrap();
        let metadata = std::fs::metadata(&path).unwrap();
        let (major, minor) = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
        let text = path.to_str().unwrap().to_owned();
        let mapped = MappedFile {
            pid: std::process::id(),
            range: (0, 0),
            path: &text,
            device: u64::from(major) << 32 | u64::from(minor),
            inode: metadata.ino(),
        };
        assert!(open(mapped).is_some());
        // Another file at the same place: it was replaced, or planted.
        let other = folder.path().join("other");
        std::fs::write(&other, "planted").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert!(open(mapped).is_none());
        std::fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        assert!(open(MappedFile { inode: std::fs::metadata(&path).unwrap().ino(), ..mapped }).is_none());
    }
}
