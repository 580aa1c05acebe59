//! What the samples' stacks consist of after `drop_frames` and filters, and which row of
//! costs each frame counts for. Everything that can be decided once per location is decided
//! here, so that the pass over the samples only adds.

use rustc_hash::FxHashMap;

use super::accounting::{Bucket, LeafReason, Standing};
use super::files::{FileGroups, GroupId, Place};
use super::filter::{Field, Filter, FrameField, Scope};
use super::prune::Pruning;
use crate::demangle::demangle;
use crate::profile::{FileId, FuncId, Line, LineDetail, LineNo, LocId, MapId, Profile};

/// The rows of costs a frame counts for. Row 0 of each table takes what has no row of its own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FrameRows {
    pub(super) line: u32,
    /// The function's row; its file follows from it. The highest bit says that the line
    /// belongs to several functions, so that the pair counts as well.
    function: u32,
}

/// See [`FrameRows::function`]. There are fewer functions than this.
const HAS_PAIR: u32 = 1 << 31;

impl FrameRows {
    #[inline]
    pub(super) fn function(self) -> u32 {
        self.function & !HAS_PAIR
    }

    #[inline]
    pub(super) fn has_pair(self) -> bool {
        self.function & HAS_PAIR != 0
    }
}

/// A location as the pass sees it: 16 bytes, since the pass reads one per frame of the
/// profile, in no order.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocationRows {
    /// Its only frame, or the innermost of several.
    pub(super) first: FrameRows,
    /// Its further frames: index + 1 into [`Frames::inlined`]; 0 = it has none.
    pub(super) inlined: u32,
    pub(super) facts: Facts,
}

/// The further frames of a location with inlined calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Inlined {
    /// From the second innermost outwards.
    pub(super) frames: Vec<FrameRows>,
    /// Which frame of the location is the innermost own one, 0 the innermost of all.
    pub(super) own: usize,
}

/// What is known about the frames of a location or of a whole stack, one bit per fact, so
/// that the best of a stack is the lowest bit of all facts together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts(u32);

impl Facts {
    const STANDING: u32 = 4;
    const LEAF: u32 = 13;
    const OWN: u32 = 1 << 17;
    const EMPTY: u32 = 1 << 18;

    fn of(reason: LeafReason, standing: Standing) -> Self {
        Self(1 << reason.bucket() as u32 | 1 << (Self::STANDING + standing as u32))
    }

    /// Facts about more frames.
    #[inline]
    pub(super) fn and(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }

    fn with_leaf(self, leaf: LeafReason) -> Self {
        Self(self.0 | (leaf as u32) << Self::LEAF)
    }

    fn with_own(self) -> Self {
        Self(self.0 | Self::OWN)
    }

    /// What its innermost frame is; only of a single location.
    #[inline]
    pub(super) fn leaf(self) -> LeafReason {
        LeafReason::ALL[(self.0 >> Self::LEAF & 0xf) as usize]
    }

    /// Whether there is hand-written workspace code with a line.
    #[inline]
    pub(super) fn has_own(self) -> bool {
        self.0 & Self::OWN != 0
    }

    /// Whether filters left no frame of the location.
    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.0 & Self::EMPTY != 0
    }

    /// The best frame.
    #[inline]
    pub(super) fn reach(self) -> Bucket {
        let best = (self.0 & 0xf).trailing_zeros();
        Bucket::ALL.get(best as usize).copied().unwrap_or(Bucket::Unresolved)
    }

    /// The best frame, as the workspace sees it.
    #[inline]
    pub(super) fn standing(self) -> Standing {
        let best = (self.0 >> Self::STANDING & 0x1ff).trailing_zeros();
        Standing::ALL.get(best as usize).copied().unwrap_or(Standing::Unresolved)
    }
}

/// A line that costs something, or might; without a number, all lines of the file that are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LineKey {
    pub(super) file: GroupId,
    pub(super) line: LineNo,
}

/// A function, merged over binaries.
#[derive(Clone, Debug)]
pub(super) struct FunctionKey {
    pub(super) name: Box<str>,
    pub(super) file: GroupId,
    pub(super) start_line: LineNo,
}

/// Which functions a line belongs to.
#[derive(Clone, Debug, Default)]
pub(super) enum LineFunctions {
    #[default]
    None,
    One(u32),
    /// (function row, pair row).
    Several(Vec<(u32, u32)>),
}

pub(super) struct Frames {
    pub(super) locations: Vec<LocationRows>,
    pub(super) inlined: Vec<Inlined>,
    /// Row 0 is unused, here and below.
    pub(super) lines: Vec<LineKey>,
    pub(super) line_functions: Vec<LineFunctions>,
    pub(super) functions: Vec<FunctionKey>,
    /// Per function the row of its file; 0 when that is no source file.
    pub(super) function_files: Vec<u32>,
    /// (line row, function row) → pair row, for lines of several functions.
    pub(super) pairs: FxHashMap<(u32, u32), u32>,
    /// Per location: which of the stack filters one of its frames matches.
    pub(super) filter_bits: Vec<u64>,
}

/// The frames of a location before they have rows.
struct Frame {
    function: FuncId,
    line: LineNo,
}

impl Frames {
    pub(super) fn new(profile: &Profile, groups: &FileGroups, filters: &[Filter], pruning: Option<&Pruning>) -> Self {
        let mut tables = Tables::new(profile, groups);
        let locations = profile.locations();
        let names = FunctionNames { profile };
        let frame_filters: Vec<&Filter> = filters.iter().filter(|filter| filter.scope() == Scope::Frames).collect();
        let stack_filters: Vec<&Filter> = filters
            .iter()
            .filter(|filter| filter.scope() == Scope::Samples && matches!(filter.field(), Field::Frame(_)))
            .collect();
        let mut location_rows = Vec::with_capacity(locations.len());
        let mut all_inlined: Vec<Inlined> = Vec::new();
        let mut filter_bits = if stack_filters.is_empty() { Vec::new() } else { vec![0; locations.len()] };
        let nameless = [Line { function: FuncId::NONE, line: LineNo::UNKNOWN, column: 0 }];
        for location in std::iter::once(LocId::NONE).chain(locations.ids()) {
            let lines = match locations.lines(location) {
                [] => &nameless[..],
                lines => &lines[pruning.map_or(0, |pruning| pruning.lines_to_skip(location))..],
            };
            let mut first = None;
            let mut inlined = Inlined::default();
            let mut facts = Facts::default();
            for line in lines {
                let subject = Subject { profile, names: &names, location, line: *line };
                for (bit, filter) in stack_filters.iter().enumerate() {
                    filter_bits[location.index()] |= u64::from(subject.matches(filter)) << bit;
                }
                if !frame_filters.iter().all(|filter| subject.matches(filter) != filter.is_negated()) {
                    continue;
                }
                let frame = Frame { function: line.function, line: line.line };
                let (rows, reason) = tables.rows_of(&frame, location);
                let standing = tables.standing(&frame, reason);
                if standing == Standing::Shown && !facts.has_own() {
                    inlined.own = first.map_or(0, |_| inlined.frames.len() + 1);
                    facts = facts.with_own();
                }
                facts = facts.and(Facts::of(reason, standing));
                if first.is_none() {
                    first = Some(rows);
                    facts = facts.with_leaf(reason);
                } else {
                    inlined.frames.push(rows);
                }
            }
            let index = if inlined.frames.is_empty() {
                0
            } else {
                all_inlined.push(inlined);
                to_u32(all_inlined.len())
            };
            location_rows.push(LocationRows {
                first: first.unwrap_or_default(),
                inlined: index,
                facts: if first.is_some() { facts } else { Facts(Facts::EMPTY) },
            });
        }
        let function_files = (tables.functions.iter())
            .map(|function| if groups.get(function.file).is_source { function.file.0 } else { 0 })
            .collect();
        let mut frames = Self {
            locations: location_rows,
            inlined: all_inlined,
            lines: tables.lines,
            line_functions: tables.line_functions,
            function_files,
            functions: tables.functions,
            pairs: tables.pairs,
            filter_bits,
        };
        frames.mark_pairs();
        frames
    }

    /// The frames of a location, innermost first.
    pub(super) fn of(&self, location: LocId) -> impl Iterator<Item = FrameRows> + '_ {
        let rows = &self.locations[location.index()];
        let inlined: &[FrameRows] = match rows.inlined {
            0 => &[],
            index => &self.inlined[index as usize - 1].frames,
        };
        (!rows.facts.is_empty()).then_some(rows.first).into_iter().chain(inlined.iter().copied())
    }

    /// Only when all frames are known is it clear which lines have several functions.
    fn mark_pairs(&mut self) {
        if self.pairs.is_empty() {
            return;
        }
        let first = self.locations.iter_mut().map(|location| &mut location.first);
        let inlined = self.inlined.iter_mut().flat_map(|inlined| &mut inlined.frames);
        for rows in first.chain(inlined) {
            if self.pairs.contains_key(&(rows.line, rows.function)) {
                rows.function |= HAS_PAIR;
            }
        }
    }
}

/// Row numbers fit: every one belongs to a line of the profile, of which there are < 2³².
fn to_u32(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}

struct FunctionNames<'a> {
    profile: &'a Profile,
}

impl FunctionNames<'_> {
    fn display(&self, function: FuncId) -> std::borrow::Cow<'_, str> {
        let row = self.profile.function(function);
        let name = if row.name.is_none() { row.system_name } else { row.name };
        demangle(self.profile.text(name))
    }
}

/// A frame, as filters see it.
struct Subject<'a> {
    profile: &'a Profile,
    names: &'a FunctionNames<'a>,
    location: LocId,
    line: Line,
}

impl Subject<'_> {
    /// Without regard to negation.
    fn matches(&self, filter: &Filter) -> bool {
        let Field::Frame(field) = filter.field() else { return false };
        let function = self.profile.function(self.line.function);
        match field {
            FrameField::Function => filter.matches(&self.names.display(self.line.function)),
            FrameField::SystemName => {
                let name = if function.system_name.is_none() { function.name } else { function.system_name };
                filter.matches(self.profile.text(name))
            }
            FrameField::File => filter.matches(self.profile.path(function.file)),
            FrameField::Binary => {
                let mapping = self.profile.locations().mapping(self.location);
                let path = self.profile.text(self.profile.mapping(mapping).file);
                filter.matches(path) || filter.matches(path.rsplit(['/', '\\']).next().unwrap_or(path))
            }
            FrameField::Address => {
                let address = self.profile.locations().address(self.location);
                address != 0 && filter.matches(&format!("{address:#x}"))
            }
            FrameField::Line => self.line.line.is_known() && filter.matches(&self.line.line.0.to_string()),
        }
    }
}

/// Hands out rows for lines, functions and (line, function) pairs.
struct Tables<'a> {
    profile: &'a Profile,
    groups: &'a FileGroups,
    /// Per function of the profile: its row (0 = none), computed at first use.
    function_rows: Vec<Option<u32>>,
    functions: Vec<FunctionKey>,
    function_by_key: FxHashMap<(Box<str>, GroupId), u32>,
    lines: Vec<LineKey>,
    line_by_key: FxHashMap<(GroupId, LineNo), u32>,
    line_functions: Vec<LineFunctions>,
    /// (line row, function row) → pair row, for lines of several functions.
    pairs: FxHashMap<(u32, u32), u32>,
    is_function_only: bool,
}

impl<'a> Tables<'a> {
    fn new(profile: &'a Profile, groups: &'a FileGroups) -> Self {
        Self {
            profile,
            groups,
            function_rows: vec![None; profile.functions().len()],
            functions: vec![FunctionKey { name: "".into(), file: GroupId::NONE, start_line: LineNo::UNKNOWN }],
            function_by_key: FxHashMap::default(),
            lines: vec![LineKey { file: GroupId::NONE, line: LineNo::UNKNOWN }],
            line_by_key: FxHashMap::default(),
            line_functions: vec![LineFunctions::None],
            pairs: FxHashMap::default(),
            is_function_only: profile.meta().line_detail == LineDetail::FunctionOnly,
        }
    }

    fn rows_of(&mut self, frame: &Frame, location: LocId) -> (FrameRows, LeafReason) {
        let function = self.function_row(frame.function);
        let group = self.groups.of(self.profile.function(frame.function).file);
        let is_source = self.groups.get(group).is_source;
        let is_nameless = self.functions[function as usize].name.is_empty();
        let reason = if is_nameless && group == GroupId::NONE {
            if location.is_none() { LeafReason::UndefinedLocation } else { LeafReason::AddressOnly }
        } else if !is_source {
            if group == GroupId::NONE { LeafReason::NoFileName } else { LeafReason::PseudoFile }
        } else if !frame.line.is_known() {
            if self.is_function_only { LeafReason::FunctionLevelFormat } else { LeafReason::NoLineNumber }
        } else {
            LeafReason::WithLine
        };
        // A line that is gone is no line of today's text, but it was one: its row has no number.
        let line = match reason {
            LeafReason::WithLine => {
                let now = self.groups.line(group, frame.line).unwrap_or(LineNo::UNKNOWN);
                self.line_row(group, now, function)
            }
            _ => 0,
        };
        (FrameRows { line, function }, reason)
    }

    fn function_row(&mut self, function: FuncId) -> u32 {
        if let Some(row) = self.function_rows[function.index()] {
            return row;
        }
        let names = FunctionNames { profile: self.profile };
        let name = names.display(function);
        let own = self.profile.function(function);
        let file = self.groups.of(own.file);
        let start_line = self.groups.line(file, own.start_line).unwrap_or(LineNo::UNKNOWN);
        let row = if name.is_empty() && file == GroupId::NONE {
            0
        } else {
            let next = to_u32(self.functions.len());
            let name: Box<str> = name.into();
            let row = *self.function_by_key.entry((name.clone(), file)).or_insert(next);
            if row == next {
                self.functions.push(FunctionKey { name, file, start_line });
            } else {
                let start = &mut self.functions[row as usize].start_line;
                if start_line.is_known() && (!start.is_known() || start_line < *start) {
                    *start = start_line;
                }
            }
            row
        };
        self.function_rows[function.index()] = Some(row);
        row
    }

    fn line_row(&mut self, file: GroupId, line: LineNo, function: u32) -> u32 {
        let next = to_u32(self.lines.len());
        let row = *self.line_by_key.entry((file, line)).or_insert(next);
        if row == next {
            self.lines.push(LineKey { file, line });
            self.line_functions.push(LineFunctions::None);
        }
        match &mut self.line_functions[row as usize] {
            functions @ LineFunctions::None => *functions = LineFunctions::One(function),
            LineFunctions::One(first) if *first == function => {}
            LineFunctions::One(first) => {
                let first = *first;
                self.line_functions[row as usize] = LineFunctions::Several(Vec::new());
                self.add_pair(row, first);
                self.add_pair(row, function);
            }
            LineFunctions::Several(_) => self.add_pair(row, function),
        }
        row
    }

    fn add_pair(&mut self, line: u32, function: u32) {
        let next = to_u32(self.pairs.len() + 1);
        if *self.pairs.entry((line, function)).or_insert(next) == next
            && let LineFunctions::Several(functions) = &mut self.line_functions[line as usize]
        {
            functions.push((function, next));
        }
    }

    fn standing(&self, frame: &Frame, reason: LeafReason) -> Standing {
        match reason.bucket() {
            Bucket::NoLine => Standing::NoLine,
            Bucket::NoFile => Standing::NoFile,
            Bucket::Unresolved => Standing::Unresolved,
            Bucket::WithLine => {
                let group = self.groups.of(self.profile.function(frame.function).file);
                match self.groups.get(group).placement.as_ref().map(|placement| placement.place) {
                    Some(Place::Workspace) => Standing::Shown,
                    Some(Place::Ambiguous) => Standing::Ambiguous,
                    Some(Place::Generated) => Standing::Generated,
                    Some(Place::Dependency) => Standing::Dependency,
                    Some(Place::Toolchain) => Standing::Toolchain,
                    Some(Place::NoMatch) | None => Standing::NoMatch,
                }
            }
        }
    }
}

/// The packages and binaries of leaves, for value that is in no workspace line.
pub(super) struct Owners {
    /// Per location; index into `names`.
    pub(super) of_location: Vec<u32>,
    /// The last is the owner of samples without a stack.
    pub(super) names: Vec<String>,
}

impl Owners {
    pub(super) fn new(profile: &Profile, groups: &FileGroups) -> Self {
        let locations = profile.locations();
        let mut by_key: FxHashMap<(Option<&str>, MapId, FileId), u32> = FxHashMap::default();
        let mut by_name: FxHashMap<String, u32> = FxHashMap::default();
        let mut names = Vec::new();
        let mut intern = |name: String| {
            *by_name.entry(name).or_insert_with_key(|name| {
                names.push(name.clone());
                to_u32(names.len() - 1)
            })
        };
        let of_location = std::iter::once(LocId::NONE)
            .chain(locations.ids())
            .map(|location| {
                let file =
                    locations.lines(location).first().map_or(FileId::NONE, |line| profile.function(line.function).file);
                let placement = groups.get(groups.of(file)).placement.as_ref();
                let package = placement.and_then(|placement| placement.package.as_deref());
                let mapping = locations.mapping(location);
                // Where a package or binary is known the file doesn't matter.
                let is_known = package.is_some() || !profile.mapping(mapping).file.is_none();
                let key = (package, mapping, if is_known { FileId::NONE } else { file });
                *by_key
                    .entry(key)
                    .or_insert_with(|| intern(package.map_or_else(|| binary(profile, mapping, file), str::to_owned)))
            })
            .collect();
        intern("no stack".to_owned());
        Self { of_location, names }
    }
}

fn binary(profile: &Profile, mapping: MapId, file: FileId) -> String {
    let path = profile.text(profile.mapping(mapping).file);
    match path.rsplit(['/', '\\']).next() {
        Some(name) if name.starts_with("[kernel") || name.starts_with("[guest.kernel") => "kernel".to_owned(),
        Some(name) if !name.is_empty() => name.to_owned(),
        _ if file.is_none() => "unknown".to_owned(),
        _ => profile.path(file).to_owned(),
    }
}
