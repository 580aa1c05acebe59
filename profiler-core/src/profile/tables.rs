//! The columns of a profile. Rows are addressed by the ids of [`ids`](super::ids).
//!
//! Variable-length parts (the frames of a sample, the lines of a location) are stored in
//! compressed rows: one array with everything, one with where each row starts.

use super::ids::{FileId, FuncId, LocId, MapId, StrId};

/// All text of a profile in one buffer. Row 0 is `""`.
#[derive(Clone, Debug)]
pub struct Strings {
    buffer: String,
    ends: Vec<u32>,
}

impl Default for Strings {
    fn default() -> Self {
        Self { buffer: String::new(), ends: vec![0] }
    }
}

impl Strings {
    /// Appends a row. Does not look for an equal one.
    ///
    /// `None` when the table would pass 4 GiB of text or 2³² rows.
    pub fn push(&mut self, text: &str) -> Option<StrId> {
        let end = u32::try_from(self.buffer.len() + text.len()).ok()?;
        let row = u32::try_from(self.ends.len()).ok()?;
        self.buffer.push_str(text);
        self.ends.push(end);
        Some(StrId(row))
    }

    /// The text of a row; `""` for [`StrId::NONE`].
    ///
    /// # Panics
    /// When the id comes from another profile and is out of range.
    #[inline]
    pub fn get(&self, id: StrId) -> &str {
        let end = self.ends[id.index()] as usize;
        let start = if id.0 == 0 { 0 } else { self.ends[id.index() - 1] as usize };
        &self.buffer[start..end]
    }

    /// Number of rows, row 0 included; never 0.
    #[expect(clippy::len_without_is_empty, reason = "row 0 always exists")]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn heap_size(&self) -> usize {
        self.buffer.len() + size_of_val(&self.ends[..])
    }
}

/// A line number of a source file, 1-based; 0 means unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineNo(pub u32);

impl LineNo {
    /// No usable line number.
    pub const UNKNOWN: Self = Self(0);

    /// Whether there is a usable number.
    #[inline]
    pub fn is_known(self) -> bool {
        self.0 != 0
    }

    /// Reads the two numbers of a pprof `Line`: valid are 1 to 2³¹−1. Some producers pack the
    /// column into the high half of the line; anything else is unknown.
    ///
    /// Returns the line and the column (0 = unknown).
    ///
    /// ```
    /// use profiler_core::profile::LineNo;
    /// assert_eq!(LineNo::from_pprof(12, 3), (LineNo(12), 3));
    /// assert_eq!(LineNo::from_pprof((7 << 32) | 12, 0), (LineNo(12), 7));
    /// assert_eq!(LineNo::from_pprof(-1, 0), (LineNo::UNKNOWN, 0));
    /// ```
    pub fn from_pprof(line: i64, column: i64) -> (Self, u32) {
        const MAX: i64 = i32::MAX as i64;
        let column = u32::try_from(column).unwrap_or(0);
        if (1..=MAX).contains(&line) {
            return (Self(u32::try_from(line).unwrap_or(0)), column);
        }
        let low = line & 0xffff_ffff;
        if line > 1 << 32 && (1..=MAX).contains(&low) {
            let packed = u32::try_from(line >> 32).unwrap_or(0);
            return (Self(u32::try_from(low).unwrap_or(0)), packed);
        }
        (Self::UNKNOWN, 0)
    }
}

/// One source position of a location. A location has several when calls were inlined there:
/// the innermost callee first, the real function last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// The function the position is in.
    pub function: FuncId,
    /// The line in the function's file.
    pub line: LineNo,
    /// The column, 1-based; 0 when unknown.
    pub column: u32,
}

/// A function as the profile names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Function {
    /// Name for people; may still be mangled, depending on the producer.
    pub name: StrId,
    /// Name as the linker knows it; empty when the producer does not say.
    pub system_name: StrId,
    /// The file it is declared in.
    pub file: FileId,
    /// The line its declaration starts on.
    pub start_line: LineNo,
}

/// A binary or library, as it was mapped into the profiled process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// First address in memory.
    pub memory_start: u64,
    /// Address after the last; 0 or `u64::MAX` when unknown.
    pub memory_limit: u64,
    /// Offset in the file of `memory_start`.
    pub file_offset: u64,
    /// Path of the binary on the machine that was profiled.
    pub file: StrId,
    /// Build id, in hex for GNU build ids.
    pub build_id: StrId,
}

/// The value of a label of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LabelValue {
    /// Text.
    Text(StrId),
    /// A number with its unit (empty when the file names none).
    Number(i64, StrId),
}

/// Something the producer attached to a sample: a thread name, a request route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label {
    /// The label's name.
    pub key: StrId,
    /// Its value.
    pub value: LabelValue,
}

/// Locations, column by column. Row 0 is the undefined location: no address, no lines.
#[derive(Clone, Debug)]
pub struct Locations {
    pub(crate) mappings: Vec<MapId>,
    pub(crate) addresses: Vec<u64>,
    pub(crate) line_ends: Vec<u32>,
    pub(crate) lines: Vec<Line>,
}

impl Default for Locations {
    fn default() -> Self {
        Self { mappings: vec![MapId::NONE], addresses: vec![0], line_ends: vec![0], lines: Vec::new() }
    }
}

impl Locations {
    /// Appends a row; `None` when a table would pass 2³² rows.
    pub fn push(&mut self, mapping: MapId, address: u64, lines: impl IntoIterator<Item = Line>) -> Option<LocId> {
        let row = u32::try_from(self.mappings.len()).ok()?;
        self.lines.extend(lines);
        let end = u32::try_from(self.lines.len()).ok()?;
        self.mappings.push(mapping);
        self.addresses.push(address);
        self.line_ends.push(end);
        Some(LocId(row))
    }

    /// Number of rows, row 0 included; never 0.
    #[expect(clippy::len_without_is_empty, reason = "row 0 always exists")]
    pub fn len(&self) -> usize {
        self.mappings.len()
    }

    /// Where the lines of a location stand in [`all_lines`](Self::all_lines).
    #[inline]
    pub fn line_range(&self, id: LocId) -> std::ops::Range<usize> {
        let end = self.line_ends[id.index()] as usize;
        let start = if id.0 == 0 { 0 } else { self.line_ends[id.index() - 1] as usize };
        start..end
    }

    /// The source positions of a location, innermost first; empty when it has none.
    #[inline]
    pub fn lines(&self, id: LocId) -> &[Line] {
        &self.lines[self.line_range(id)]
    }

    /// The source positions of all locations, in the order of the locations.
    pub fn all_lines(&self) -> &[Line] {
        &self.lines
    }

    /// The instruction's address as the file gives it; 0 when it gives none.
    pub fn address(&self, id: LocId) -> u64 {
        self.addresses[id.index()]
    }

    /// The binary the address belongs to.
    pub fn mapping(&self, id: LocId) -> MapId {
        self.mappings[id.index()]
    }

    /// All rows but row 0.
    pub fn ids(&self) -> impl Iterator<Item = LocId> + use<> {
        (1..u32::try_from(self.len()).unwrap_or(u32::MAX)).map(LocId)
    }
}

/// Samples, column by column: stacks leaf first, one value per value type, labels.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    pub(crate) frame_ends: Vec<u32>,
    pub(crate) frames: Vec<LocId>,
    pub(crate) values: Vec<Vec<i64>>,
    pub(crate) label_ends: Vec<u32>,
    pub(crate) labels: Vec<Label>,
}

impl Samples {
    /// Number of samples.
    pub fn len(&self) -> usize {
        self.frame_ends.len()
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.frame_ends.is_empty()
    }

    /// The locations of a sample, leaf first.
    #[inline]
    pub fn stack(&self, sample: usize) -> &[LocId] {
        let start = if sample == 0 { 0 } else { self.frame_ends[sample - 1] as usize };
        &self.frames[start..self.frame_ends[sample] as usize]
    }

    /// The values of one value type, one per sample.
    pub fn values(&self, value_type: usize) -> &[i64] {
        &self.values[value_type]
    }

    /// The labels of a sample, in the order of the file.
    pub fn labels(&self, sample: usize) -> &[Label] {
        if self.labels.is_empty() {
            return &[];
        }
        let start = if sample == 0 { 0 } else { self.label_ends[sample - 1] as usize };
        &self.labels[start..self.label_ends[sample] as usize]
    }
}

/// What calls cost with everything below them, for formats that know that without knowing
/// stacks: columns of a caller's place, who was called (or nobody knows), and one value per
/// value type. It adds to what the caller's line and function cost with calls, and to nothing
/// else: the value itself is that of samples elsewhere. Calls within recursion are left out,
/// since they would count twice.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    pub(crate) callers: Vec<LocId>,
    pub(crate) callees: Vec<LocId>,
    pub(crate) values: Vec<Vec<i64>>,
}

impl Calls {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.callers.len()
    }

    /// Whether there is none, as in every format that has stacks.
    pub fn is_empty(&self) -> bool {
        self.callers.is_empty()
    }

    /// Where the call is.
    pub fn caller(&self, call: usize) -> LocId {
        self.callers[call]
    }

    /// What is called; [`LocId::NONE`] when that is not known.
    pub fn callee(&self, call: usize) -> LocId {
        self.callees[call]
    }

    /// The values of one value type, one per call.
    pub fn values(&self, value_type: usize) -> &[i64] {
        self.values.get(value_type).map_or(&[], Vec::as_slice)
    }
}
