//! Who calls a line or function, and what it calls: found by looking through the samples when
//! asked, since most sessions never ask.
//!
//! Every sample counts once per caller and once per callee, however often they meet in its
//! stack. So a row never exceeds the target's cumulative cost, but rows may add up to more.

use rustc_hash::{FxHashMap, FxHashSet};

use super::frames::FrameRows;
use super::pass::Selection;
use super::{FileGroups, GroupId, Stacks};
use crate::cancel::{CancelFlag, Cancelled};
use crate::profile::{LineNo, Profile};

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
        let has_target: Vec<bool> = std::iter::once(crate::profile::LocId::NONE)
            .chain(profile.locations().ids())
            .map(|location| self.frames.of(location).any(|frame| is_target(&frame)))
            .collect();
        let selection = Selection::of(&self.filters);
        let samples = profile.samples();
        let mut calls = Calls::default();
        let mut callers = Counter::default();
        let mut callees = Counter::default();
        let mut frames: Vec<FrameRows> = Vec::new();
        for (sample, &value) in samples.values(value_type).iter().enumerate() {
            if sample % 4096 == 0 {
                cancel.check()?;
            }
            let mut stack = samples.stack(sample);
            if let Some(pruning) = &self.pruning {
                stack = pruning.apply(stack);
            }
            if value == 0
                || !stack.iter().any(|location| has_target[location.index()])
                || !selection.keeps(profile, &self.frames, sample, stack)
            {
                continue;
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
        }
        calls.callers = self.neighbours(profile, groups, &callers);
        calls.callees = self.neighbours(profile, groups, &callees);
        Ok(calls)
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
