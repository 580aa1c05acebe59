//! What the samples' stacks consist of after `drop_frames` and filters, and which row of
//! costs each frame counts for. Everything that can be decided once per location is decided
//! here, so that the pass over the samples only adds.

use rustc_hash::FxHashMap;

use super::accounting::{Bucket, LeafReason, Standing};
use super::files::{FileGroups, GroupId, Place};
use super::filter::{Field, Filter, FrameField, Scope};
use super::prune::Pruning;
use crate::demangle::demangle;
use crate::profile::{FuncId, Line, LineDetail, LineNo, LocId, MapId, Profile};

/// Rows of costs a frame counts for. Row 0 of each table takes what has no row of its own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FrameRows {
    pub(super) line: u32,
    pub(super) function: u32,
    pub(super) file: u32,
    /// The (line, function) pair; only where one line belongs to several functions.
    pub(super) pair: u32,
}

/// A location as the pass sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocationRows {
    /// Its frames, as a range of [`Frames::rows`].
    pub(super) start: u32,
    pub(super) end: u32,
    /// Index + 1 of its innermost frame in hand-written workspace code with a line; 0 = none.
    pub(super) own: u32,
    pub(super) leaf: LeafReason,
    pub(super) reach: Bucket,
    pub(super) standing: Standing,
}

/// A line that costs something, or might.
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
    pub(super) rows: Vec<FrameRows>,
    /// Row 0 is unused, here and below.
    pub(super) lines: Vec<LineKey>,
    pub(super) line_functions: Vec<LineFunctions>,
    pub(super) functions: Vec<FunctionKey>,
    pub(super) pair_count: usize,
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
        let mut rows: Vec<FrameRows> = Vec::with_capacity(locations.all_lines().len());
        let mut location_rows = Vec::with_capacity(locations.len());
        let mut filter_bits = if stack_filters.is_empty() { Vec::new() } else { vec![0; locations.len()] };
        let nameless = [Line { function: FuncId::NONE, line: LineNo::UNKNOWN, column: 0 }];
        for location in std::iter::once(LocId::NONE).chain(locations.ids()) {
            let start = rows.len();
            let mut out = LocationRows {
                start: to_u32(start),
                end: 0,
                own: 0,
                leaf: LeafReason::FramesFiltered,
                reach: Bucket::Unresolved,
                standing: Standing::Unresolved,
            };
            let lines = match locations.lines(location) {
                [] => &nameless[..],
                lines => &lines[pruning.map_or(0, |pruning| pruning.lines_to_skip(location))..],
            };
            for line in lines {
                let subject = Subject { profile, names: &names, location, line: *line };
                if !stack_filters.is_empty() {
                    for (bit, filter) in stack_filters.iter().enumerate() {
                        filter_bits[location.index()] |= u64::from(subject.matches(filter)) << bit;
                    }
                }
                if !frame_filters.iter().all(|filter| subject.matches(filter) != filter.is_negated()) {
                    continue;
                }
                let frame = Frame { function: line.function, line: line.line };
                let (frame_rows, reason) = tables.rows_of(&frame, location);
                let standing = tables.standing(&frame, reason);
                if rows.len() == start {
                    out.leaf = reason;
                }
                if out.own == 0 && standing == Standing::Shown {
                    out.own = to_u32(rows.len() + 1);
                }
                out.reach = out.reach.min(reason.bucket());
                out.standing = out.standing.min(standing);
                rows.push(frame_rows);
            }
            out.end = to_u32(rows.len());
            location_rows.push(out);
        }
        tables.pair_lines(&mut rows);
        Self {
            locations: location_rows,
            rows,
            lines: tables.lines,
            line_functions: tables.line_functions,
            functions: tables.functions,
            pair_count: tables.pairs.len() + 1,
            filter_bits,
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
        let reason = if function == 0 && group == GroupId::NONE {
            if location.is_none() { LeafReason::UndefinedLocation } else { LeafReason::AddressOnly }
        } else if !is_source {
            if group == GroupId::NONE { LeafReason::NoFileName } else { LeafReason::PseudoFile }
        } else if !frame.line.is_known() {
            if self.is_function_only { LeafReason::FunctionLevelFormat } else { LeafReason::NoLineNumber }
        } else {
            LeafReason::WithLine
        };
        let mut rows = FrameRows { function, ..FrameRows::default() };
        if is_source {
            rows.file = group.0;
        }
        if reason == LeafReason::WithLine {
            rows.line = self.line_row(group, frame.line, function);
        }
        (rows, reason)
    }

    fn function_row(&mut self, function: FuncId) -> u32 {
        if let Some(row) = self.function_rows[function.index()] {
            return row;
        }
        let names = FunctionNames { profile: self.profile };
        let name = names.display(function);
        let own = self.profile.function(function);
        let file = self.groups.of(own.file);
        let row = if name.is_empty() {
            0
        } else {
            let next = to_u32(self.functions.len());
            let name: Box<str> = name.into();
            let row = *self.function_by_key.entry((name.clone(), file)).or_insert(next);
            if row == next {
                self.functions.push(FunctionKey { name, file, start_line: own.start_line });
            } else {
                let start = &mut self.functions[row as usize].start_line;
                if own.start_line.is_known() && (!start.is_known() || own.start_line < *start) {
                    *start = own.start_line;
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
        if function == 0 {
            return row;
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

    /// Only when all frames are known is it clear which lines have several functions.
    fn pair_lines(&self, rows: &mut [FrameRows]) {
        if self.pairs.is_empty() {
            return;
        }
        for row in rows {
            if let Some(&pair) = self.pairs.get(&(row.line, row.function)) {
                row.pair = pair;
            }
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

/// Names the package or binary a frame belongs to, for value that is in no workspace line.
pub(super) fn owner(profile: &Profile, groups: &FileGroups, location: Option<LocId>) -> String {
    let Some(location) = location else { return "no stack".to_owned() };
    let locations = profile.locations();
    let file = locations.lines(location).first().map(|line| profile.function(line.function).file);
    let placement = file.and_then(|file| groups.get(groups.of(file)).placement.as_ref());
    if let Some(package) = placement.and_then(|placement| placement.package.as_ref()) {
        return package.clone();
    }
    let mapping: MapId = locations.mapping(location);
    let path = profile.text(profile.mapping(mapping).file);
    match path.rsplit(['/', '\\']).next() {
        Some(name) if name.starts_with("[kernel") || name.starts_with("[guest.kernel") => "kernel".to_owned(),
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => match file.map(|file| profile.path(file)) {
            Some(path) if !path.is_empty() => path.to_owned(),
            _ => "unknown".to_owned(),
        },
    }
}
