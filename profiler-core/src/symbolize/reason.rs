//! Why an address has no name, or no line.

use std::fmt;
use std::path::PathBuf;

use super::elf::BuildId;

/// Why nothing is known about an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The memory belongs to no file, and no perf map covers it.
    Anonymous,
    /// The file of the module could not be used.
    NoFile(Refusal),
    /// There is debug info, but without the binary it can't be told which of its addresses is meant.
    NeedsBinary,
    /// The file has no code at this address.
    OutsideCode,
    /// The file has code there, but neither debug info nor a symbol says what.
    NoSymbol,
    /// Someone stopped the work before it came to this address.
    Cancelled,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous => f.write_str("the code is in no file"),
            Self::NoFile(refusal) => refusal.fmt(f),
            Self::NeedsBinary => f.write_str("debug info alone doesn't tell where the code is in the binary"),
            Self::OutsideCode => f.write_str("the file has no code there"),
            Self::NoSymbol => f.write_str("the file has no symbol there"),
            Self::Cancelled => f.write_str("cancelled"),
        }
    }
}

/// Why a file was not used.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// There is none.
    Missing,
    /// It may not be read.
    NotPermitted,
    /// It is a directory, a pipe, a device: nothing to read code from.
    NotRegular,
    /// Following its symbolic links leads nowhere.
    LinkLoop,
    /// Another error of the system.
    Unreadable(String),
    /// It is larger than the limit.
    TooLarge,
    /// It is no ELF file, or not one of a kind that is read here.
    NotElf(&'static str),
    /// It is another build than the one that was profiled.
    OtherBuild {
        /// What it has; `None` when it has no build id at all.
        found: Option<BuildId>,
    },
    /// Its checksum is not the one that the binary names.
    OtherChecksum,
    /// The profile doesn't say which build it was, and this one is younger than the profile.
    Younger,
    /// The profile is of another machine, and doesn't say which build it was.
    Unproven,
    /// The name is none of a file: `[vdso]`, `//anon`, nothing at all.
    NoPath,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("no such file"),
            Self::NotPermitted => f.write_str("no permission to read it"),
            Self::NotRegular => f.write_str("not a regular file"),
            Self::LinkLoop => f.write_str("its symbolic links lead nowhere"),
            Self::Unreadable(error) => f.write_str(error),
            Self::TooLarge => f.write_str("larger than the limit"),
            Self::NotElf(what) => f.write_str(what),
            Self::OtherBuild { found: Some(found) } => write!(f, "another build: build id {found}"),
            Self::OtherBuild { found: None } => {
                f.write_str("no build id, so it can't be told whether it is that build")
            }
            Self::OtherChecksum => f.write_str("another build: its checksum differs"),
            Self::Younger => f.write_str("built after the profile was taken"),
            Self::Unproven => f.write_str("the profile doesn't say which build it was"),
            Self::NoPath => f.write_str("no file"),
        }
    }
}

impl From<&std::io::Error> for Refusal {
    fn from(error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => Self::Missing,
            std::io::ErrorKind::PermissionDenied => Self::NotPermitted,
            _ if is_link_loop(error) => Self::LinkLoop,
            _ => Self::Unreadable(error.to_string()),
        }
    }
}

#[cfg(unix)]
fn is_link_loop(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(libc::ELOOP)
}

#[cfg(not(unix))]
fn is_link_loop(_: &std::io::Error) -> bool {
    false
}

/// A place that was looked at, and why what is there was not used.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tried {
    /// The file.
    pub path: PathBuf,
    /// Why not.
    pub refusal: Refusal,
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.refusal)
    }
}
