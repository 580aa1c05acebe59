//! What a Go program knows of the source that it was built from: the revision that `go build` stamps into it.
//!
//! The linker writes `.go.buildinfo` since Go 1.18 in this form: 14 bytes `\xff Go buildinf:`, the size of a pointer,
//! flags (bit 1: strings are in place), padding up to 32 bytes; then two strings, each after its length as a
//! varint. The second is the module information between two marks of 16 bytes: lines of `KEY TAB VALUE`, and among
//! them `build TAB vcs.revision=…`.
//!
//! What is not here: the pointer form of before Go 1.18, which had no revision to tell.

use std::path::Path;
use std::time::SystemTime;

use super::debug_files::{DebugFiles, Search, Wanted};
use super::elf::Elf;

/// What the section begins with.
const MAGIC: &[u8] = b"\xff Go buildinf:";
/// Where the first string begins.
const HEADER: usize = 32;
/// The flag of strings that are in place.
const IN_PLACE: u8 = 2;
/// Bytes of each mark around the module information.
const MARK: usize = 16;
/// Digits that a pseudo-version has of its commit.
const PSEUDO: usize = 12;

/// What a Go program was built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoBuild {
    /// The commit or tag.
    pub revision: String,
    /// There were changes that no commit has.
    pub is_modified: bool,
    /// The program is of the build that the profile names, not only one that was there before.
    pub is_proven: bool,
}

impl GoBuild {
    /// Looks into the program of a mapping: its path where it ran, and its build id as the profile has it. Where
    /// that is empty, a file that is younger than `not_after` is another one.
    pub fn of_program(path: &Path, build: &str, not_after: Option<SystemTime>) -> Option<Self> {
        if build.is_empty() && not_after.is_none() {
            return None;
        }
        let wanted = Wanted { path, root: None, build, not_after };
        let elf = DebugFiles::default().binary(&wanted, &mut Search::default())?;
        Self::of_elf(&elf).map(|found| Self { is_proven: !build.is_empty(), ..found })
    }

    fn of_elf(elf: &Elf) -> Option<Self> {
        let bytes = elf.section(".go.buildinfo")?;
        let is_in_place = bytes.get(MAGIC.len() + 1).is_some_and(|flags| flags & IN_PLACE != 0);
        if !bytes.starts_with(MAGIC) || !is_in_place {
            return None;
        }
        let (_version, rest) = string(bytes.get(HEADER..)?)?;
        let (modules, _) = string(rest)?;
        let modules = std::str::from_utf8(modules.get(MARK..modules.len().checked_sub(MARK)?)?).ok()?;
        Self::of_modules(modules)
    }

    /// From the lines of the module information.
    fn of_modules(modules: &str) -> Option<Self> {
        let mut main = None;
        let (mut revision, mut is_modified) = (None, false);
        for line in modules.lines() {
            let mut words = line.split('\t');
            match (words.next(), words.next(), words.next()) {
                (Some("mod"), Some(_), Some(version)) => main = released(version),
                (Some("build"), Some(setting), _) => match setting.split_once('=') {
                    Some(("vcs.revision", value)) => revision = Some(value),
                    Some(("vcs.modified", value)) => is_modified = value == "true",
                    _ => {}
                },
                _ => {}
            }
        }
        let revision = revision.or(main)?.to_owned();
        Some(Self { revision, is_modified, is_proven: false })
    }
}

/// The tag of a version, or the commit of one that has none (`v0.0.0-20260102150405-0123456789ab`). `None` of what
/// was built from a folder (`(devel)`).
fn released(version: &str) -> Option<&str> {
    let version = version.split('+').next().filter(|version| version.starts_with('v'))?;
    let is_commit = |end: &str| end.len() == PSEUDO && end.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some(version.rsplit_once('-').map(|(_, end)| end).filter(|end| is_commit(end)).unwrap_or(version))
}

/// A string after its length, and what follows it.
fn string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut length = 0_usize;
    for (at, &byte) in bytes.iter().enumerate().take(5) {
        length |= usize::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            return bytes.get(at + 1..)?.split_at_checked(length);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions() {
        for (modules, want) in [
            (
                "path\tcommand\nbuild\tvcs=git\nbuild\tvcs.revision=0123abcd\nbuild\tvcs.modified=true",
                Some(("0123abcd", true)),
            ),
            ("mod\texample.com/a\t(devel)\t\nbuild\tvcs.revision=0123abcd", Some(("0123abcd", false))),
            ("mod\texample.com/a\tv1.2.3\th1:x=", Some(("v1.2.3", false))),
            ("mod\texample.com/a\tv0.0.0-20260102150405-0123456789ab\t", Some(("0123456789ab", false))),
            ("mod\texample.com/a\tv1.2.4-0.20260102150405-0123456789ab+dirty\t", Some(("0123456789ab", false))),
            ("mod\texample.com/a\t(devel)\t\ndep\texample.com/b\tv1.0.0\th1:x=", None),
            ("", None),
        ] {
            let found = GoBuild::of_modules(modules).map(|build| (build.revision, build.is_modified));
            assert_eq!(found, want.map(|(revision, is_modified)| (revision.to_owned(), is_modified)), "{modules}");
        }
    }

    #[test]
    fn lengths_beyond_the_end_are_refused() {
        assert_eq!(string(&[2, b'a', b'b', b'c']), Some((&b"ab"[..], &b"c"[..])));
        for bytes in [&[][..], &[3, b'a'], &[0x80, 0x80, 0x80, 0x80, 0x80, 1], &[0xff, 0xff, 0xff, 0xff, 0x7f, 1]] {
            assert_eq!(string(bytes), None, "{bytes:?}");
        }
    }
}
