//! Who calls a line or function, what it calls, and whose its cost is: found by looking through
//! the samples when asked, since most sessions never ask.
//!
//! Every sample counts once per caller and once per callee, however often they meet in its
//! stack. So a row never exceeds the target's cumulative cost, but rows may add up to more.

use rustc_hash::{FxHashMap, FxHashSet};

use super::filter::THREAD_LABELS;
use super::frames::FrameRows;
use super::pass::Selection;
use super::{FileGroups, Filter, GroupId, Place, Stacks};
use crate::cancel::{CancelFlag, Cancelled};
use crate::profile::{Label, LabelValue, LineNo, Profile};

/// What to look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A line of a file.
    Line(GroupId, LineNo),
    /// A function, by its demangled name and its file.
    Function(String, GroupId),
}

/// The neighbours of a target in the stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Σv of samples that pass the target, each once.
    pub cumulative: i64,
    /// Σv of samples whose leaf is the target.
    pub flat: i64,
    /// Σv of samples in which the target is the outermost frame somewhere.
    pub root: i64,
    /// Functions that call it, with the line they call from; by falling |value|, then by name.
    pub callers: Vec<Neighbour>,
    /// Functions it calls; likewise.
    pub callees: Vec<Neighbour>,
    /// For a target in code of others: the lines of the workspace that lead to it, over however
    /// many frames; likewise.
    pub own_callers: Vec<Neighbour>,
    /// Σv by thread, as far as samples name one; by falling |value|, then by name.
    pub threads: Vec<Portion>,
    /// Of a line that several functions share, such as instances of a generic one: Σv by
    /// function, likewise. Samples that pass several count for each.
    pub functions: Vec<Portion>,
}

impl Calls {
    /// Changes every value, such that none becomes larger than a larger one.
    pub(super) fn each_value(&mut self, change: impl Fn(i64) -> i64) {
        let Self { cumulative, flat, root, callers, callees, own_callers, threads, functions } = self;
        let neighbours = [callers, callees, own_callers].into_iter().flatten().map(|neighbour| &mut neighbour.value);
        let portions = [threads, functions].into_iter().flatten().map(|portion| &mut portion.value);
        for value in [cumulative, flat, root].into_iter().chain(neighbours).chain(portions) {
            *value = change(*value);
        }
    }
}

/// A part of a cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Portion {
    /// Whose it is.
    pub name: String,
    /// Σv of its samples.
    pub value: i64,
}

/// Portions by falling |value|, then by name.
fn sorted(portions: impl Iterator<Item = (String, i64)>) -> Vec<Portion> {
    let mut portions: Vec<Portion> = portions.map(|(name, value)| Portion { name, value }).collect();
    portions.sort_by(|a, b| b.value.unsigned_abs().cmp(&a.value.unsigned_abs()).then_with(|| a.name.cmp(&b.name)));
    portions
}

/// A function next to the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its demangled name; empty for a frame that is an address only.
    pub name: String,
    /// Its file.
    pub file: GroupId,
    /// Where its declaration starts.
    pub start_line: LineNo,
    /// The line of it that is next to the target most: of a caller the call, of a callee the
    /// line executing. Unknown where the profile has none.
    pub line: LineNo,
    /// Σv of samples in which they meet, each once.
    pub value: i64,
}

impl Target {
    /// The file it is in.
    fn file(&self) -> GroupId {
        match self {
            Self::Line(file, _) | Self::Function(_, file) => *file,
        }
    }
}

/// What names the thread of a sample; labels that producers prefer come first.
fn thread_of(profile: &Profile, sample: usize) -> Option<LabelValue> {
    let labels = profile.samples().labels(sample);
    let rank = |label: &&Label| THREAD_LABELS.iter().position(|key| *key == profile.text(label.key));
    labels.iter().filter(|label| rank(label).is_some()).min_by_key(rank).map(|label| label.value)
}

/// Empty unless samples name threads.
fn threads_by_name(profile: &Profile, threads: FxHashMap<Option<LabelValue>, i64>) -> Vec<Portion> {
    if threads.keys().all(Option::is_none) {
        return Vec::new();
    }
    let mut by_name: FxHashMap<String, i64> = FxHashMap::default();
    for (thread, value) in threads {
        let name = match thread {
            Some(LabelValue::Text(text)) => profile.text(text).to_owned(),
            Some(LabelValue::Number(number, _)) => number.to_string(),
            None => "none named".to_owned(),
        };
        *by_name.entry(name).or_default() += value;
    }
    sorted(by_name.into_iter())
}

/// Values by (function row, line row).
type Edges = FxHashMap<(u32, u32), i64>;

impl Stacks {
    /// Looks for a target in all samples. Profile and groups are those the stacks were made of.
    pub fn calls(
        &self,
        profile: &Profile,
        groups: &FileGroups,
        value_type: usize,
        target: &Target,
        cancel: &CancelFlag,
    ) -> Result<Calls, Cancelled> {
        let is_target = self.matcher(target);
        let has_target = self.locations_with(profile, target);
        let mut calls = Calls::default();
        let mut callers = Counter::default();
        let mut callees = Counter::default();
        let mut own_callers: Edges = Edges::default();
        let mut threads: FxHashMap<Option<LabelValue>, i64> = FxHashMap::default();
        let mut of_functions: FxHashMap<u32, i64> = FxHashMap::default();
        let mut met_functions: FxHashSet<u32> = FxHashSet::default();
        let is_own = |file: GroupId| {
            groups.get(file).placement.as_ref().is_some_and(|placement| placement.place == Place::Workspace)
        };
        let is_foreign = groups.has_workspace() && !is_own(target.file());
        let mut frames: Vec<FrameRows> = Vec::new();
        self.each_sample(profile, value_type, cancel, |sample, value, stack| {
            if !stack.iter().any(|location| has_target[location.index()]) {
                return;
            }
            frames.clear();
            frames.extend(stack.iter().flat_map(|&location| self.frames.of(location)));
            calls.cumulative += value;
            if is_target(&frames[0]) {
                calls.flat += value;
            }
            if frames.last().is_some_and(&is_target) {
                calls.root += value;
            }
            *threads.entry(thread_of(profile, sample)).or_default() += value;
            met_functions.extend(frames.iter().filter(|frame| is_target(frame)).map(|frame| frame.function()));
            for function in met_functions.drain() {
                *of_functions.entry(function).or_default() += value;
            }
            if is_foreign
                && let Some(at) = frames.iter().position(&is_target)
                && let Some(own) = frames[at..].iter().find(|frame| is_own(self.frames.lines[frame.line as usize].file))
            {
                *own_callers.entry((own.function(), own.line)).or_default() += value;
            }
            for pair in frames.windows(2) {
                let [inner, outer] = pair else { continue };
                if is_target(inner) {
                    callers.meet(*outer);
                }
                if is_target(outer) {
                    callees.meet(*inner);
                }
            }
            callers.end_sample(value);
            callees.end_sample(value);
        })?;
        calls.callers = self.neighbours(profile, groups, &callers);
        calls.callees = self.neighbours(profile, groups, &callees);
        calls.own_callers = self.lines_of(profile, groups, &own_callers);
        calls.threads = threads_by_name(profile, threads);
        if matches!(target, Target::Line(..)) && of_functions.len() > 1 {
            let name = |row: u32| self.frames.functions[row as usize].name.to_string();
            calls.functions = sorted(of_functions.into_iter().map(|(row, value)| (name(row), value)));
        }
        Ok(calls)
    }

    /// Σv of the samples that pass a target, by whose they are: each by filters about labels, all
    /// of which must hold. In the order given; a sample counts for everyone whose it is.
    pub fn owners<'o>(
        &self,
        profile: &Profile,
        value_type: usize,
        target: &Target,
        owners: impl IntoIterator<Item = (&'o str, &'o [Filter])>,
        cancel: &CancelFlag,
    ) -> Result<Vec<Portion>, Cancelled> {
        let has_target = self.locations_with(profile, target);
        let mut portions: Vec<(Selection<'_>, Portion)> = owners
            .into_iter()
            .map(|(name, filters)| (Selection::of(filters), Portion { name: name.to_owned(), value: 0 }))
            .collect();
        self.each_sample(profile, value_type, cancel, |sample, value, stack| {
            if !stack.iter().any(|location| has_target[location.index()]) {
                return;
            }
            for (owner, portion) in &mut portions {
                portion.value += if owner.keeps_labels(profile, sample) { value } else { 0 };
            }
        })?;
        Ok(portions.into_iter().map(|(_, portion)| portion).collect())
    }

    /// Per location whether one of its frames is the target.
    fn locations_with(&self, profile: &Profile, target: &Target) -> Vec<bool> {
        let is_target = self.matcher(target);
        std::iter::once(crate::profile::LocId::NONE)
            .chain(profile.locations().ids())
            .map(|location| self.frames.of(location).any(|frame| is_target(&frame)))
            .collect()
    }

    fn matcher(&self, target: &Target) -> impl Fn(&FrameRows) -> bool + use<> {
        let (is_line, row) = match target {
            Target::Line(file, line) => {
                (true, self.frames.lines.iter().position(|key| key.file == *file && key.line == *line))
            }
            Target::Function(name, file) => {
                (false, self.frames.functions.iter().position(|key| *key.name == **name && key.file == *file))
            }
        };
        // Row 0 is what has no row: never a target.
        let row = row.and_then(|row| u32::try_from(row).ok()).unwrap_or(0);
        move |frame: &FrameRows| row != 0 && row == if is_line { frame.line } else { frame.function() }
    }

    /// Lines with their functions, by falling |value|.
    fn lines_of(&self, profile: &Profile, groups: &FileGroups, edges: &Edges) -> Vec<Neighbour> {
        let rows = edges.iter().map(|(&(function, line), &value)| {
            let (function, line) = (&self.frames.functions[function as usize], self.frames.lines[line as usize]);
            Neighbour {
                name: function.name.to_string(),
                file: line.file,
                start_line: function.start_line,
                line: line.line,
                value,
            }
        });
        let mut rows: Vec<Neighbour> = rows.collect();
        rows.sort_by(|a, b| {
            (b.value.unsigned_abs().cmp(&a.value.unsigned_abs()))
                .then_with(|| groups.display(profile, a.file).cmp(groups.display(profile, b.file)))
                .then_with(|| (a.line, &a.name).cmp(&(b.line, &b.name)))
        });
        rows
    }

    fn neighbours(&self, profile: &Profile, groups: &FileGroups, counter: &Counter) -> Vec<Neighbour> {
        let mut best_line: FxHashMap<u32, (u64, u32)> = FxHashMap::default();
        for (&(function, line), &value) in &counter.lines {
            let candidate = (value.unsigned_abs(), line);
            let best = best_line.entry(function).or_insert(candidate);
            // Of equally heavy lines the first one in the file.
            let key = |(weight, line): (u64, u32)| (weight, std::cmp::Reverse(self.frames.lines[line as usize].line));
            if key(candidate) > key(*best) {
                *best = candidate;
            }
        }
        let mut rows: Vec<Neighbour> = counter
            .functions
            .iter()
            .map(|(&function, &value)| {
                let key = &self.frames.functions[function as usize];
                let line = best_line.get(&function).map_or(0, |&(_, line)| line);
                Neighbour {
                    name: key.name.to_string(),
                    file: key.file,
                    start_line: key.start_line,
                    line: self.frames.lines[line as usize].line,
                    value,
                }
            })
            .collect();
        rows.sort_by(|a, b| {
            (b.value.unsigned_abs().cmp(&a.value.unsigned_abs()))
                .then_with(|| a.name.cmp(&b.name))
                .then_with(|| groups.display(profile, a.file).cmp(groups.display(profile, b.file)))
        });
        rows
    }
}

/// Sums values by neighbour, once per sample.
#[derive(Default)]
struct Counter {
    functions: FxHashMap<u32, i64>,
    lines: Edges,
    met_functions: FxHashSet<u32>,
    met_lines: FxHashSet<(u32, u32)>,
}

impl Counter {
    fn meet(&mut self, frame: FrameRows) {
        self.met_functions.insert(frame.function());
        self.met_lines.insert((frame.function(), frame.line));
    }

    fn end_sample(&mut self, value: i64) {
        for function in self.met_functions.drain() {
            *self.functions.entry(function).or_default() += value;
        }
        for line in self.met_lines.drain() {
            *self.lines.entry(line).or_default() += value;
        }
    }
}
