//! The profile model: what every format is decoded into.
//!
//! A [`Profile`] is immutable and made of columns ([`tables`]), addressed by typed row
//! numbers ([`ids`]). A [`ProfileBuilder`] makes one.
//!
//! Invariants, established by [`ProfileBuilder::finish`]:
//! * every id points into its table; row 0 of every table means "nothing";
//! * every value column has one value per sample;
//! * Σ|v| of every value type fits an `i64`, so no partial sum can overflow one;
//! * file paths are lexically clean and distinct.
//!
//! What is not here: what a path means on this machine ([`paths`](crate::paths)), and sums
//! of any kind but the totals ([`attribute`](crate::attribute)).

mod builder;
pub mod combine;
pub mod ids;
mod merge;
pub mod tables;
mod work;

use std::sync::Arc;

pub use builder::{BuildError, ProfileBuilder};
pub use ids::{FileId, FuncId, LocId, MapId, StrId};
pub use merge::MergeError;
pub use tables::{Calls, Function, Label, LabelValue, Line, LineNo, Locations, Mapping, Samples, Strings};
pub use work::Work;

/// What a value of a sample counts, and in which unit; both words as the file has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
pub struct ValueType {
    /// What is measured: `cpu`, `inuse_space`, `samples`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The unit: `nanoseconds`, `bytes`, `count`.
    pub unit: String,
}

impl ValueType {
    /// A value type from its two words.
    pub fn new(kind: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { kind: kind.into(), unit: unit.into() }
    }

    /// Whether values are numbers of samples: the type `samples` or `sample`, counted.
    pub fn is_sample_count(&self) -> bool {
        matches!(self.kind.as_str(), "samples" | "sample") && self.unit == "count"
    }
}

impl std::fmt::Display for ValueType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.kind, self.unit)
    }
}

/// Why frames of a binary have no name or no line, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryNote {
    /// The binary.
    pub mapping: MapId,
    /// What is missing: the start of a sentence, without a full stop.
    pub why: String,
    /// What to do: a sentence.
    pub advice: String,
}

/// What the profile says about itself, apart from the samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// When the profile was taken, in nanoseconds since 1970; `None` when the file doesn't say.
    pub time_ns: Option<i64>,
    /// How long it was recorded for, in nanoseconds; `None` when the file doesn't say.
    pub duration_ns: Option<i64>,
    /// Distance of two samples, in units of `period_type`; 0 when unknown.
    pub period: i64,
    /// What `period` counts.
    pub period_type: Option<ValueType>,
    /// Index into the value types of the one to show first.
    pub default_value_type: usize,
    /// Regular expression of functions to cut off stacks, with all they call; empty = none.
    pub drop_frames: String,
    /// Regular expression of functions that `drop_frames` must spare; empty = none.
    pub keep_frames: String,
    /// Comments of the producer.
    pub comments: Vec<String>,
    /// How much of a source position the line numbers stand for.
    pub line_detail: LineDetail,
    /// Lines of locations with an address are those that functions start on: a server has looked
    /// them up, and knows no better.
    pub has_looked_up_lines: bool,
}

/// The comment of a profile whose period is not what was asked for.
const AVERAGE_PERIOD: &str = "period: what samples came to be apart on average";

impl Meta {
    /// Says how far apart samples came to be on average, in nanoseconds of whatever the profiler's clock counts.
    pub(crate) fn set_average_period(&mut self, nanoseconds: i64, clock: &str) {
        self.period = nanoseconds;
        self.period_type = Some(ValueType::new(clock, "nanoseconds"));
        self.comments.push(AVERAGE_PERIOD.to_owned());
    }

    /// Whether the period is what samples came to be apart. Busy machines make it longer, though the same work
    /// has no more samples.
    pub fn has_average_period(&self) -> bool {
        self.comments.iter().any(|comment| comment == AVERAGE_PERIOD)
    }

    /// What was done while it was recorded, where that is known.
    pub fn work(&self) -> Option<Work> {
        self.comments.iter().find_map(|comment| Work::of_comment(comment))
    }
}

/// How much the line numbers of a profile can be believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineDetail {
    /// A line is the line that was executing.
    #[default]
    Executing,
    /// A line is known of the innermost frame only: lines have a cost of their own, but none
    /// with calls. Functions have both.
    LeafOnly,
    /// Lines and functions have a cost of their own; what they cost with calls is not known.
    FlatOnly,
    /// The producer knows functions only. Where it keeps one line for each, that says nothing
    /// and was removed.
    FunctionOnly,
}

impl LineDetail {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Executing => "executing",
            Self::LeafOnly => "leaf_only",
            Self::FlatOnly => "flat_only",
            Self::FunctionOnly => "function_only",
        }
    }

    /// What a user must know before reading costs; nothing where all is known.
    pub fn note(self) -> Option<&'static str> {
        Some(match self {
            Self::Executing => return None,
            Self::LeafOnly => {
                "self only for lines: the format knows the line that was executing, but not the lines of its callers; \
                 functions have their cost with calls"
            }
            Self::FlatOnly => "self only: the format knows no callers, so nothing has a cost with calls",
            Self::FunctionOnly => "function level: the format has no lines, so costs are shown for functions only",
        })
    }
}

/// One source file of the profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// The lexically cleaned path.
    pub path: StrId,
    /// Whether it names a file at all.
    pub kind: FileKind,
}

/// Whether a path of a profile names a source file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileKind {
    /// Empty, or a placeholder such as `<string>`, `[kernel]`, `~`, `??`, `node:fs`.
    #[default]
    Pseudo,
    /// A path.
    Source,
}

/// Sums over all samples of one value type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Σ|v|.
    pub total: i64,
    /// Σv.
    pub net: i64,
}

/// A decoded profile. See the [module](self) for its invariants.
#[derive(Clone, Debug)]
pub struct Profile {
    pub(crate) strings: Strings,
    pub(crate) files: Vec<File>,
    pub(crate) functions: Vec<Function>,
    /// Columns on which functions start, 1-based; shorter than the table where unknown.
    pub(crate) start_columns: Vec<u32>,
    pub(crate) mappings: Vec<Mapping>,
    pub(crate) locations: Locations,
    /// Most of it all, and the same in profiles that only know other lines.
    pub(crate) samples: Arc<Samples>,
    pub(crate) calls: Calls,
    pub(crate) value_types: Vec<ValueType>,
    pub(crate) sums: Vec<Sum>,
    pub(crate) meta: Meta,
    pub(crate) format: &'static str,
    pub(crate) notes: Vec<String>,
    pub(crate) binary_notes: Vec<BinaryNote>,
}

impl Profile {
    /// The text of a string row.
    #[inline]
    pub fn text(&self, id: StrId) -> &str {
        self.strings.get(id)
    }

    /// A file row.
    #[inline]
    pub fn file(&self, id: FileId) -> File {
        self.files[id.index()]
    }

    /// The cleaned path of a file; `""` for [`FileId::NONE`].
    pub fn path(&self, id: FileId) -> &str {
        self.text(self.file(id).path)
    }

    /// All file rows, row 0 included.
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// A function row.
    #[inline]
    pub fn function(&self, id: FuncId) -> Function {
        self.functions[id.index()]
    }

    /// All function rows, row 0 included.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The column on which a function starts, 1-based; 0 when unknown.
    pub fn start_column(&self, id: FuncId) -> u32 {
        self.start_columns.get(id.index()).copied().unwrap_or(0)
    }

    /// A mapping row.
    pub fn mapping(&self, id: MapId) -> Mapping {
        self.mappings[id.index()]
    }

    /// All mapping rows, row 0 included.
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// The location table.
    #[inline]
    pub fn locations(&self) -> &Locations {
        &self.locations
    }

    /// The samples.
    #[inline]
    pub fn samples(&self) -> &Samples {
        &self.samples
    }

    /// What calls cost, where the format knows that without stacks.
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    /// The value types, in the order of the file; never empty.
    pub fn value_types(&self) -> &[ValueType] {
        &self.value_types
    }

    /// Σ|v| and Σv over all samples of one value type, before any filter.
    pub fn sum(&self, value_type: usize) -> Sum {
        self.sums[value_type]
    }

    /// What the profile says about itself.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Name of the format it was decoded from, as in `report`'s JSON.
    pub fn format(&self) -> &'static str {
        self.format
    }

    /// What was odd in the file and how it was read, each a sentence for the user.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What was missing when its addresses were looked up, at most one note per binary.
    pub fn binary_notes(&self) -> &[BinaryNote] {
        &self.binary_notes
    }

    /// The same for one binary.
    pub fn binary_note(&self, mapping: MapId) -> Option<&BinaryNote> {
        self.binary_notes.iter().find(|note| note.mapping == mapping)
    }

    /// How many bytes of memory it takes, nearly.
    pub fn heap_size(&self) -> usize {
        fn of<T>(rows: &[T]) -> usize {
            size_of_val(rows)
        }
        let (samples, calls, locations) = (&self.samples, &self.calls, &self.locations);
        let values = samples.values.iter().chain(&calls.values).map(|column| of(column));
        size_of::<Self>()
            + self.strings.heap_size()
            + of(&self.files)
            + of(&self.functions)
            + of(&self.start_columns)
            + of(&self.mappings)
            + of(&locations.mappings)
            + of(&locations.addresses)
            + of(&locations.line_ends)
            + of(&locations.lines)
            + of(&samples.frame_ends)
            + of(&samples.frames)
            + of(&samples.label_ends)
            + of(&samples.labels)
            + of(&calls.callers)
            + of(&calls.callees)
            + values.sum::<usize>()
            + self.notes.iter().map(String::len).sum::<usize>()
    }

    /// Index of the first value type that counts samples.
    pub fn sample_count_type(&self) -> Option<usize> {
        self.value_types.iter().position(ValueType::is_sample_count)
    }

    /// The value type a user means by `name`: a type or `type/unit`. A name that starts with
    /// `inuse_` also means the type without that prefix, which older files use.
    pub fn find_value_type(&self, name: &str) -> Result<usize, ValueTypeError> {
        let (kind, unit) = match name.split_once('/') {
            Some((kind, unit)) => (kind, Some(unit)),
            None => (name, None),
        };
        let matching = |kind: &str| -> Vec<usize> {
            (0..self.value_types.len())
                .filter(|&i| {
                    let candidate = &self.value_types[i];
                    candidate.kind == kind && unit.is_none_or(|unit| candidate.unit == unit)
                })
                .collect()
        };
        let mut found = matching(kind);
        if found.is_empty()
            && let Some(short) = kind.strip_prefix("inuse_")
        {
            found = matching(short);
        }
        match found[..] {
            [one] => Ok(one),
            [] => Err(ValueTypeError::Unknown { name: name.to_owned(), known: self.list_value_types() }),
            _ => Err(ValueTypeError::Ambiguous {
                name: name.to_owned(),
                candidates: found.iter().map(|&i| self.value_types[i].to_string()).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    fn list_value_types(&self) -> String {
        self.value_types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

/// A value type was asked for that the profile doesn't have, or has more than once.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueTypeError {
    /// No such type.
    #[error("no value type `{name}` in this profile; it has {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// All value types of the profile.
        known: String,
    },
    /// Several types have the name.
    #[error("`{name}` could be any of {candidates}; name one with its unit")]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// The types it could be.
        candidates: String,
    },
}
