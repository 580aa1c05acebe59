//! From a [`Profile`] to bytes that other tools read.
//!
//! pprof keeps everything that a profile holds and is what perflens itself stores. The others
//! are for viewers: they know one value per stack, so they get one value type.
//!
//! [`otlp`] is for receivers rather than for files. [`share`] makes a profile that may leave the machine. What is not here: opening files.

pub mod folded;
mod interner;
pub mod otlp;
pub mod pprof;
pub mod share;
pub mod speedscope;

use std::io::{self, Write};

use crate::profile::Profile;

/// The formats that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// pprof's protocol buffer in gzip.
    Pprof,
    /// Folded stacks.
    Folded,
    /// speedscope's JSON.
    Speedscope,
}

impl Target {
    /// The format that a file's name asks for; `None` when it says nothing.
    ///
    /// ```
    /// use profiler_core::encode::Target;
    /// assert_eq!(Target::of_name("cpu.pb.gz"), Some(Target::Pprof));
    /// assert_eq!(Target::of_name("cpu.speedscope.json"), Some(Target::Speedscope));
    /// assert_eq!(Target::of_name("cpu"), None);
    /// ```
    pub fn of_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        if ends(&[".pb.gz", ".pprof", ".pprof.gz", ".pb", ".prof"]) {
            Some(Self::Pprof)
        } else if ends(&[".folded", ".collapsed", ".txt"]) {
            Some(Self::Folded)
        } else if ends(&[".json"]) {
            Some(Self::Speedscope)
        } else {
            None
        }
    }

    /// Writes a profile; `value_type` is the one to keep where there can be only one.
    pub fn write(self, profile: &Profile, value_type: usize, to: impl Write) -> io::Result<()> {
        match self {
            Self::Pprof => pprof::write(profile, to),
            Self::Folded => folded::write(profile, value_type, to),
            Self::Speedscope => speedscope::write(profile, value_type, to),
        }
    }
}
