//! Where the value of a profile went: every kept sample is in exactly one bucket.
//!
//! Three views of the same samples, each adding up to the total, all weighed in |v|:
//! *leaf* asks for the first frame of the stack, *reach* for the best frame anywhere,
//! *workspace* for the best frame as the user's workspace sees it.

use crate::profile::MapId;

/// What is known about a single frame, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bucket {
    /// A source file and a line.
    WithLine,
    /// A source file, but no line.
    NoLine,
    /// A name, but no source file.
    NoFile,
    /// Neither a name nor a file, or no frame at all.
    Unresolved,
}

impl Bucket {
    /// All buckets, best first.
    pub const ALL: [Self; 4] = [Self::WithLine, Self::NoLine, Self::NoFile, Self::Unresolved];

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::WithLine => "with_line",
            Self::NoLine => "no_line",
            Self::NoFile => "no_file",
            Self::Unresolved => "unresolved",
        }
    }
}

/// Why a leaf is in its bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeafReason {
    /// File and line are there.
    WithLine,
    /// The line number is missing, 0, negative or absurd.
    NoLineNumber,
    /// The producer keeps one line per function, so lines were removed.
    FunctionLevelFormat,
    /// The function has no file name.
    NoFileName,
    /// The file name is a placeholder such as `<string>`.
    PseudoFile,
    /// Only an address is known.
    AddressOnly,
    /// The stack refers to a location the file does not define.
    UndefinedLocation,
    /// The sample has no stack.
    EmptyStack,
    /// Frame filters removed the whole stack.
    FramesFiltered,
}

impl LeafReason {
    /// All reasons.
    pub const ALL: [Self; 9] = [
        Self::WithLine,
        Self::NoLineNumber,
        Self::FunctionLevelFormat,
        Self::NoFileName,
        Self::PseudoFile,
        Self::AddressOnly,
        Self::UndefinedLocation,
        Self::EmptyStack,
        Self::FramesFiltered,
    ];

    /// The bucket it leads to.
    pub fn bucket(self) -> Bucket {
        match self {
            Self::WithLine => Bucket::WithLine,
            Self::NoLineNumber | Self::FunctionLevelFormat => Bucket::NoLine,
            Self::NoFileName | Self::PseudoFile => Bucket::NoFile,
            Self::AddressOnly | Self::UndefinedLocation | Self::EmptyStack | Self::FramesFiltered => Bucket::Unresolved,
        }
    }

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::WithLine => "with_line",
            Self::NoLineNumber => "no_line_number",
            Self::FunctionLevelFormat => "function_level_format",
            Self::NoFileName => "no_file_name",
            Self::PseudoFile => "pseudo_file",
            Self::AddressOnly => "address_only",
            Self::UndefinedLocation => "undefined_location",
            Self::EmptyStack => "empty_stack",
            Self::FramesFiltered => "frames_filtered",
        }
    }
}

/// What the best frame of a sample is to the workspace, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// Hand-written workspace code with a line: it is shown.
    Shown,
    /// A line of a path that could be several workspace files.
    Ambiguous,
    /// A line of a generated file.
    Generated,
    /// A line of a dependency.
    Dependency,
    /// A line of the toolchain.
    Toolchain,
    /// A line of a file nothing is known about.
    NoMatch,
    /// No frame has a line; as in reach.
    NoLine,
    /// As in reach.
    NoFile,
    /// As in reach.
    Unresolved,
}

impl Standing {
    /// All, best first.
    pub const ALL: [Self; 9] = [
        Self::Shown,
        Self::Ambiguous,
        Self::Generated,
        Self::Dependency,
        Self::Toolchain,
        Self::NoMatch,
        Self::NoLine,
        Self::NoFile,
        Self::Unresolved,
    ];

    /// The bucket in JSON.
    pub fn bucket(self) -> &'static str {
        match self {
            Self::Shown => "shown",
            Self::Ambiguous => "ambiguous",
            Self::Generated | Self::Dependency | Self::Toolchain => "outside",
            Self::NoMatch => "no_match",
            Self::NoLine => "no_line",
            Self::NoFile => "no_file",
            Self::Unresolved => "unresolved",
        }
    }

    /// The reason in JSON, for the standings the workspace adds.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::Ambiguous => Some("several_candidates"),
            Self::Generated => Some("generated"),
            Self::Dependency => Some("dependency"),
            Self::Toolchain => Some("toolchain"),
            Self::NoMatch => Some("no_workspace_file"),
            Self::Shown | Self::NoLine | Self::NoFile | Self::Unresolved => None,
        }
    }
}

/// Value and number of samples of one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Σ|v|.
    pub value: i64,
    /// Samples with a non-zero value.
    pub records: u64,
}

impl std::ops::AddAssign for Weight {
    fn add_assign(&mut self, other: Self) {
        self.value += other.value;
        self.records += other.records;
    }
}

/// The whole accounting of one value type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounting {
    /// By reason of the leaf, in the order of [`LeafReason::ALL`].
    pub leaf: [Weight; 9],
    /// By the best frame anywhere, in the order of [`Bucket::ALL`].
    pub reach: [Weight; 4],
    /// By the best frame as the workspace sees it, in the order of [`Standing::ALL`];
    /// `None` without a workspace.
    pub workspace: Option<[Weight; 9]>,
    /// What filters left out; stands outside of the total.
    pub filtered: Weight,
    /// Value that is in no workspace line, by the package or binary of its leaf: largest
    /// first, then by name. Without a workspace, all value.
    pub unplaced: Vec<(String, Weight)>,
    /// Value whose leaf has no line, by the binary of the leaf: largest first. What is in no
    /// binary is left out.
    pub without_lines: Vec<(MapId, Weight)>,
}

impl Accounting {
    /// Σ|v| of a bucket of leaves.
    pub fn leaf_bucket(&self, bucket: Bucket) -> i64 {
        LeafReason::ALL
            .iter()
            .filter(|reason| reason.bucket() == bucket)
            .map(|&reason| self.leaf[reason as usize].value)
            .sum()
    }

    /// Σ|v| of a bucket of reach.
    pub fn reach_bucket(&self, bucket: Bucket) -> i64 {
        self.reach[bucket as usize].value
    }

    /// The value placed in the workspace; `None` without a workspace.
    pub fn shown(&self) -> Option<i64> {
        self.workspace.map(|workspace| workspace[Standing::Shown as usize].value)
    }
}
