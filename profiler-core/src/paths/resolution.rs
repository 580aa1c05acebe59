//! Questions and answers of path resolution, as plain data.
//!
//! Every answer carries its reason in one short human phrase (its `Display`), which hovers
//! and reports show as they are.

use std::fmt;
use std::path::PathBuf;

use crate::profile::LineNo;

/// One file of a profile, and what the profile knows about it.
#[derive(Clone, Debug, Default)]
pub struct PathQuery<'a> {
    /// The path, [cleaned](super::clean::clean).
    pub path: &'a str,
    /// Functions that the profile places in the file. More of them mean better evidence.
    pub functions: Vec<FunctionEvidence<'a>>,
    /// The greatest line the profile names in the file, 1-based; 0 when it names none.
    pub max_line: u32,
    /// The binary the code was mapped from, as the profiled machine spells it.
    pub binary: Option<&'a str>,
}

/// A function that the profile places in a file.
#[derive(Clone, Copy, Debug)]
pub struct FunctionEvidence<'a> {
    /// Its name, demangled.
    pub name: &'a str,
    /// Where its declaration starts.
    pub start_line: LineNo,
    /// One sampled line in it.
    pub line: LineNo,
}

/// A file of the workspace. Equal values are one file, however it was spelled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspaceFile {
    /// Which root it is under: an index into the roots that the workspace was opened with.
    pub root: usize,
    /// Its path relative to that root, separated by `/`.
    pub relative: String,
    /// Its path under the root as the root was given.
    pub path: PathBuf,
}

/// What a path of a profile is to the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// A file of the workspace.
    File {
        /// The file.
        file: WorkspaceFile,
        /// What it was found by.
        how: How,
        /// How sure that is; at least [`Score::SHOWN`].
        score: Score,
        /// Whether a program wrote it.
        generated: bool,
    },
    /// Several files of the workspace fit equally well.
    Ambiguous {
        /// They, sorted; at least two, and only the first of very many.
        candidates: Vec<WorkspaceFile>,
    },
    /// Code that is known not to be written in this workspace.
    Outside {
        /// Whose it is.
        kind: OutsideKind,
        /// Where it is on this machine, if that is inside a root (a vendored copy).
        file: Option<PathBuf>,
    },
    /// Nothing in the workspace can be shown for it.
    NoMatch {
        /// Why.
        reason: NoMatchReason,
        /// Files that it could be, sorted, with too little evidence to say so.
        possible: Vec<WorkspaceFile>,
    },
}

/// How sure a match is, in hundredths: 0 is a wild guess, 100 is certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Score(pub u8);

impl Score {
    /// Costs are shown from here on.
    pub const SHOWN: Self = Self(70);
    /// From here on a file is worth listing as a possible match.
    pub const POSSIBLE: Self = Self(40);

    pub(super) fn adjusted(self, by: i8) -> Self {
        Self(self.0.saturating_add_signed(by).min(100))
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

/// What a file was found by, the surest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// A rule of the user.
    Rule {
        /// The prefix that was replaced.
        from: String,
        /// What it was replaced by.
        to: String,
    },
    /// The path is that of the file on this machine.
    Exact,
    /// What the language's build system says: a module, crate or package of the workspace.
    Ecosystem {
        /// Kind and name of it: `module example.com/demo`.
        by: String,
    },
    /// A prefix that other files of the same profile have shown to stand for a folder.
    LearnedPrefix {
        /// The prefix, with a slash at its end; empty for relative paths.
        from: String,
        /// The folder, relative to its root; `.` is the root.
        to: String,
    },
    /// The end of the path, folders included.
    Suffix {
        /// How many components agree; at least 2.
        components: usize,
        /// Those of them that are inside the root.
        suffix: String,
    },
    /// The only file of that name, with the functions where the profile says they are.
    UniqueName,
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule { from, to } => write!(f, "rule {from} → {to}"),
            Self::Exact => f.write_str("exact path"),
            Self::Ecosystem { by } => f.write_str(by),
            Self::LearnedPrefix { from, to } if from.is_empty() => write!(f, "relative to {to}"),
            Self::LearnedPrefix { from, to } => write!(f, "prefix {from} → {to}"),
            Self::Suffix { suffix, .. } => write!(f, "by suffix {suffix}"),
            Self::UniqueName => f.write_str("only file of that name, functions agree"),
        }
    }
}

/// Whose code it is, when it is not the workspace's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutsideKind {
    /// A library.
    Dependency {
        /// The package's name in its ecosystem.
        name: String,
        /// Its version, if the path says so.
        version: Option<String>,
    },
    /// A language's own library or run time, or the C library.
    Toolchain {
        /// The language or library.
        name: String,
        /// Its version, in the form that the path has it.
        version: Option<String>,
    },
    /// Written by a program during the build, and not to be found in the workspace.
    Generated {
        /// The tool, or what is known of it.
        by: String,
    },
}

impl fmt::Display for OutsideKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name, version) = match self {
            Self::Dependency { name, version } => ("dependency", name, version.as_deref()),
            Self::Toolchain { name, version } => ("toolchain", name, version.as_deref()),
            Self::Generated { by } => ("generated by", by, None),
        };
        write!(f, "{kind} {name}")?;
        version.map_or(Ok(()), |version| write!(f, " {version}"))
    }
}

/// Why nothing can be shown for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoMatchReason {
    /// It names no file, as `<string>` or `[kernel]`.
    NotAFile,
    /// No file of the workspace has its name.
    UnknownName,
    /// Files have its name, but their folders differ.
    OnlyTheName,
    /// A file fits by its name, but belongs to another package than the functions.
    OtherPackage,
    /// A file fits by its name, but does not contain the functions.
    FunctionsElsewhere,
    /// A file fits by its name, but is shorter than the lines of the profile.
    TooShort,
    /// A file fits by its name, but this path exists outside the workspace.
    ExistsOutside,
    /// A file fits by its name, but the path leads elsewhere in the workspace, to nothing.
    Gone,
    /// Another path of the profile is a better match for the file that fits.
    Rival,
    /// A file fits, but not all files of the workspace are known, so others might too.
    IndexIncomplete,
}

impl fmt::Display for NoMatchReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAFile => "not a file",
            Self::UnknownName => "no file of that name in the workspace",
            Self::OnlyTheName => "only the file name agrees",
            Self::OtherPackage => "files of that name belong to other packages",
            Self::FunctionsElsewhere => "the functions are not there in the file that fits",
            Self::TooShort => "the file that fits is shorter than the profile's lines",
            Self::ExistsOutside => "the file itself is on this machine, outside the workspace",
            Self::Gone => "the path is in the workspace, but there is no such file any more",
            Self::Rival => "another path of the profile is a better match for the file that fits",
            Self::IndexIncomplete => "not all files of the workspace are known",
        })
    }
}
