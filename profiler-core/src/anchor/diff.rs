//! From two texts to a map of lines.
//!
//! A difference of two texts is a guess wherever lines repeat. What is certain rests on lines
//! that are once in either text, its *landmarks*, and the beginnings and ends of both:
//!
//! * a landmark, in the order of the text, is certain, and so is what stands unchanged between
//!   two landmarks;
//! * what adjoins only one is certain when the whole stretch up to the next landmark has no
//!   other line like it, before or after;
//! * blocks that moved are certain when their landmarks say enough to be no coincidence;
//! * anything else with a partner is uncertain, be it that it was edited, or broken into other
//!   lines, or that there is more than one like it.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, Token};
use rustc_hash::{FxHashMap, FxHashSet};

use super::similar;
use super::text::{self, Numbers};

/// Longer texts are mapped where they begin and end alike, and nowhere else.
const MAX_LINES: usize = 200_000;
/// Letters and digits of the landmarks of a block that make it certain that it moved.
const MOVED_WEIGHT: usize = 20;
/// Letters and digits that make a line more than a brace.
const TELLING: usize = 3;
/// No line.
const NONE: u32 = u32::MAX;

/// What became of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// It stands where it stood.
    Exact,
    /// It stands elsewhere.
    Shifted,
    /// It may be another line.
    Uncertain(Doubt),
    /// Its text is nowhere.
    #[default]
    Gone,
}

/// Why a line may be another one. Displays as the rest of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Other lines nearby read the same.
    Alike,
    /// It was edited.
    Edited,
    /// Its statement was broken into other lines.
    Rebroken,
    /// It stands in another place, alone.
    Moved,
    /// Nobody knows the text that was measured, but functions were found by name.
    ByFunction,
    /// Which text was measured is a guess.
    Guess,
}

impl std::fmt::Display for Doubt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Alike => "other lines nearby read the same",
            Self::Edited => "the line itself was edited",
            Self::Rebroken => "the code was broken into other lines",
            Self::Moved => "a line like it stands in another place now",
            Self::ByFunction => "found by where its function starts",
            Self::Guess => "which commit was measured is a guess",
        })
    }
}

/// Where a line of the measured text is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mapped {
    /// Its number now, from 1; 0 when it is gone.
    pub line: u32,
    /// How that is known.
    pub fate: Fate,
}

/// Where each line of a text is in a later one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineMap {
    lines: Vec<Mapped>,
    is_same: bool,
}

impl LineMap {
    /// Compares two texts.
    pub fn between(old: &str, new: &str) -> Self {
        if old == new {
            let count = text::lines(old).len();
            return Self::identity(count);
        }
        let (old, new) = (text::lines(old), text::lines(new));
        let mut numbers = Numbers::default();
        let (old_numbers, new_numbers) = (numbers.all(&old), numbers.all(&new));
        let comparison = Comparison { old: &old, new: &new, old_numbers, new_numbers, kinds: numbers.len() };
        let lines = if old.len().max(new.len()) > MAX_LINES { comparison.ends() } else { comparison.lines() };
        let is_same = lines.len() == new.len() && lines.iter().all(|line| line.fate == Fate::Exact);
        Self { lines, is_same }
    }

    /// For a text that has not changed.
    pub fn identity(count: usize) -> Self {
        Self { lines: (1..).take(count).map(|line| Mapped { line, fate: Fate::Exact }).collect(), is_same: true }
    }

    /// From what is known of each line.
    pub fn of(lines: Vec<Mapped>) -> Self {
        let is_same = lines.iter().all(|line| line.fate == Fate::Exact);
        Self { lines, is_same }
    }

    /// Where a line is, from 1. Lines that the measured text did not have are gone.
    pub fn get(&self, line: u32) -> Mapped {
        let at = line.checked_sub(1).map(|at| at as usize);
        at.and_then(|at| self.lines.get(at)).copied().unwrap_or_default()
    }

    /// All lines of the measured text, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Mapped)> + '_ {
        (1u32..).zip(self.lines.iter().copied())
    }

    /// Whether every line is where it was, and no others are there.
    pub fn is_same(&self) -> bool {
        self.is_same
    }

    /// This map, where the older text is only supposed to be the measured one: nothing that moved
    /// is certain.
    #[must_use]
    pub fn supposed(mut self) -> Self {
        for mapped in self.lines.iter_mut().filter(|mapped| mapped.fate == Fate::Shifted) {
            mapped.fate = Fate::Uncertain(Doubt::Guess);
        }
        self
    }

    /// This map, followed by one of a later change.
    #[must_use]
    pub fn then(&self, later: &Self) -> Self {
        let through = |(number, mapped): (u32, Mapped)| {
            let next = later.get(mapped.line);
            match (mapped.fate, next.fate) {
                (Fate::Gone, _) | (_, Fate::Gone) => Mapped::default(),
                (Fate::Uncertain(doubt), _) | (_, Fate::Uncertain(doubt)) => {
                    Mapped { line: next.line, fate: Fate::Uncertain(doubt) }
                }
                _ => Mapped { line: next.line, fate: certain(number, next.line) },
            }
        };
        let lines = self.iter().map(through).collect();
        Self { lines, is_same: self.is_same && later.is_same }
    }
}

fn certain(old: u32, new: u32) -> Fate {
    if old == new { Fate::Exact } else { Fate::Shifted }
}

/// Two texts in lines.
struct Comparison<'t> {
    old: &'t [String],
    new: &'t [String],
    old_numbers: Vec<u32>,
    new_numbers: Vec<u32>,
    kinds: usize,
}

/// What is known so far of the lines of both texts.
struct State {
    /// Per old line its partner.
    partner: Vec<u32>,
    /// Per new line its partner.
    back: Vec<u32>,
    /// Per old line, whether the partner is certain.
    is_certain: Vec<bool>,
    /// Per old line, whether it left its neighbours.
    is_moved: Vec<bool>,
    doubts: Vec<Doubt>,
}

impl State {
    fn pair(&mut self, old: usize, new: usize) {
        self.partner[old] = to_u32(new);
        self.back[new] = to_u32(old);
    }
}

fn to_u32(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(NONE)
}

/// Unchanged lines one after the other, in both texts.
struct Run {
    old: usize,
    new: usize,
    length: usize,
    /// What is between its first and last landmark, as offsets. Beginning and end of the texts are
    /// landmarks as well, before the first line and behind the last.
    held: Option<Range<usize>>,
}

impl Comparison<'_> {
    /// Beginning and end, where they agree.
    fn ends(&self) -> Vec<Mapped> {
        let common = self.old.len().min(self.new.len());
        let front = (0..common).take_while(|&at| self.old_numbers[at] == self.new_numbers[at]).count();
        let (old, new) = (self.old.len(), self.new.len());
        let back =
            (1..=common - front).take_while(|&at| self.old_numbers[old - at] == self.new_numbers[new - at]).count();
        let place = |at: usize| {
            let line = if at < front {
                at + 1
            } else if at >= old - back {
                at + new - old + 1
            } else {
                return Mapped::default();
            };
            Mapped { line: to_u32(line), fate: certain(to_u32(at + 1), to_u32(line)) }
        };
        (0..old).map(place).collect()
    }

    fn lines(&self) -> Vec<Mapped> {
        let (old_counts, new_counts) = (self.counts(&self.old_numbers), self.counts(&self.new_numbers));
        let is_landmark = |old: usize| {
            let number = self.old_numbers[old] as usize;
            old_counts[number] == 1 && new_counts[number] == 1 && !self.old[old].is_empty()
        };
        let mut state = State {
            partner: vec![NONE; self.old.len()],
            back: vec![NONE; self.new.len()],
            is_certain: vec![false; self.old.len()],
            is_moved: vec![false; self.old.len()],
            doubts: vec![Doubt::Alike; self.old.len()],
        };
        let runs = self.runs(&is_landmark);
        for run in &runs {
            for at in 0..run.length {
                state.pair(run.old + at, run.new + at);
            }
        }
        self.judge(&runs, &is_landmark, &mut state);
        self.find_moved(&is_landmark, &mut state);
        self.find_alike(&new_counts, &mut state);
        self.find_edited(&mut state);
        (0..self.old.len())
            .map(|at| match state.partner[at] {
                NONE => Mapped::default(),
                new if state.is_certain[at] => Mapped { line: new + 1, fate: certain(to_u32(at), new) },
                new => Mapped { line: new + 1, fate: Fate::Uncertain(state.doubts[at]) },
            })
            .collect()
    }

    fn counts(&self, numbers: &[u32]) -> Vec<u32> {
        let mut counts = vec![0; self.kinds];
        for &number in numbers {
            counts[number as usize] += 1;
        }
        counts
    }

    /// What the longest common subsequence leaves unchanged.
    fn runs(&self, is_landmark: &dyn Fn(usize) -> bool) -> Vec<Run> {
        let tokens = |numbers: &[u32]| numbers.iter().map(|&number| Token(number)).collect::<Vec<_>>();
        let (old, new) = (tokens(&self.old_numbers), tokens(&self.new_numbers));
        let mut diff = Diff::default();
        diff.compute_with(Algorithm::Histogram, &old, &new, to_u32(self.kinds));
        let mut runs = Vec::new();
        let (mut at_old, mut at_new) = (0, 0);
        let mut add = |at_old: usize, at_new: usize, end_old: usize, end_new: usize| {
            let length = end_old - at_old;
            if length == 0 {
                return;
            }
            debug_assert_eq!(end_new - at_new, length, "unchanged lines are as many on both sides");
            let marks = |at: &usize| is_landmark(at_old + at);
            let is_first = at_old == 0 && at_new == 0;
            let is_last = end_old == self.old.len() && end_new == self.new.len();
            let first = if is_first { Some(0) } else { (0..length).find(marks).or(is_last.then_some(length)) };
            let last = (0..length).rev().find(marks).map(|last| last + 1);
            let end = if is_last { Some(length) } else { last.or(is_first.then_some(0)) };
            let held = first.zip(end).map(|(first, end)| first..end);
            runs.push(Run { old: at_old, new: at_new, length, held });
        };
        for hunk in diff.hunks() {
            add(at_old, at_new, hunk.before.start as usize, hunk.after.start as usize);
            (at_old, at_new) = (hunk.before.end as usize, hunk.after.end as usize);
        }
        add(at_old, at_new, self.old.len(), self.new.len());
        runs
    }

    /// Decides which unchanged lines are certain.
    fn judge(&self, runs: &[Run], is_landmark: &dyn Fn(usize) -> bool, state: &mut State) {
        // Stretches between landmarks, with what adjoins the one before and the one after.
        let (mut from_old, mut from_new) = (0, 0);
        let mut before = 0;
        for run in runs {
            let Some(held) = run.held.clone() else { continue };
            for at in held.clone() {
                state.is_certain[run.old + at] = true;
            }
            let (to_old, to_new) = (run.old + held.start, run.new + held.start);
            self.judge_stretch(from_old..to_old, from_new..to_new, before, held.start, state);
            (from_old, from_new) = (run.old + held.end, run.new + held.end);
            before = run.length - held.end;
        }
        self.judge_stretch(from_old..self.old.len(), from_new..self.new.len(), before, 0, state);
        self.judge_copies(runs, is_landmark, state);
    }

    /// A block that was copied beside itself, and edited in one of its places: who of both is the
    /// copy no text tells. What is held together by landmarks, and stands in the lines beside as well, is
    /// uncertain, as far from there as a copy could reach.
    fn judge_copies(&self, runs: &[Run], is_landmark: &dyn Fn(usize) -> bool, state: &mut State) {
        let (mut old_end, mut new_end) = (0, 0);
        let ends = runs.iter().map(|run| (run.old, run.new)).chain([(self.old.len(), self.new.len())]);
        for (at, (old, new)) in ends.enumerate() {
            for (numbers, gap) in [(&self.old_numbers, old_end..old), (&self.new_numbers, new_end..new)] {
                let reach = gap.len();
                if reach == 0 {
                    continue;
                }
                let words: FxHashSet<u32> = numbers[gap.clone()].iter().copied().collect();
                let pairs: FxHashSet<(u32, u32)> =
                    numbers[gap.clone()].iter().copied().zip(numbers[gap].iter().skip(1).copied()).collect();
                let mut doubt = |line: usize, run: &Run| {
                    if is_landmark(line) {
                        return;
                    }
                    let number = |line: usize| self.old_numbers[line];
                    let is_there = if text::weight(&self.old[line]) >= TELLING {
                        words.contains(&number(line))
                    } else {
                        // Braces are everywhere; two lines in a row are not.
                        line > run.old && pairs.contains(&(number(line - 1), number(line)))
                            || line + 1 < run.old + run.length && pairs.contains(&(number(line), number(line + 1)))
                    };
                    state.is_certain[line] &= !is_there;
                };
                if let Some(run) = at.checked_sub(1).map(|at| &runs[at]) {
                    let end = run.old + run.length;
                    (end - reach.min(run.length)..end).for_each(|line| doubt(line, run));
                }
                if let Some(run) = runs.get(at) {
                    (run.old..run.old + reach.min(run.length)).for_each(|line| doubt(line, run));
                }
            }
            if let Some(run) = runs.get(at) {
                (old_end, new_end) = (run.old + run.length, run.new + run.length);
            }
        }
    }

    /// Of a stretch between landmarks: `before` lines adjoin the one before, `after` lines the
    /// one after.
    fn judge_stretch(&self, old: Range<usize>, new: Range<usize>, before: usize, after: usize, state: &mut State) {
        if before + after == 0 {
            return;
        }
        let mut counts: FxHashMap<u32, (u32, u32)> = FxHashMap::default();
        for &number in &self.old_numbers[old.clone()] {
            counts.entry(number).or_default().0 += 1;
        }
        for &number in &self.new_numbers[new] {
            counts.entry(number).or_default().1 += 1;
        }
        let adjoining = (old.start..old.start + before).chain(old.end - after..old.end);
        for at in adjoining {
            state.is_certain[at] = counts[&self.old_numbers[at]] == (1, 1);
        }
    }

    /// Finds blocks that stand elsewhere, by their landmarks.
    fn find_moved(&self, is_landmark: &dyn Fn(usize) -> bool, state: &mut State) {
        let mut place = vec![NONE; self.kinds];
        for (at, &number) in self.new_numbers.iter().enumerate() {
            place[number as usize] = to_u32(at);
        }
        let mut is_seen = vec![false; self.old.len()];
        for start in 0..self.old.len() {
            if state.partner[start] != NONE || is_seen[start] || !is_landmark(start) {
                continue;
            }
            let new = place[self.old_numbers[start] as usize] as usize;
            let is_equal = |old: Option<usize>, new: Option<usize>| match (old, new) {
                (Some(old), Some(new)) => {
                    old < self.old.len() && new < self.new.len() && self.old_numbers[old] == self.new_numbers[new]
                }
                _ => false,
            };
            let is_free = |state: &State, old: usize, new: usize| state.partner[old] == NONE && state.back[new] == NONE;
            let back = (1..=start)
                .take_while(|&by| {
                    let (old, new) = (start.checked_sub(by), new.checked_sub(by));
                    is_equal(old, new) && is_free(state, old.unwrap_or(0), new.unwrap_or(0))
                })
                .count();
            let on = (1..self.old.len())
                .take_while(|&by| is_equal(Some(start + by), Some(new + by)) && is_free(state, start + by, new + by))
                .count();
            let (first, last) = (start - back, start + on);
            let offset = |old: usize| old + new - start;
            let marks: Vec<usize> = (first..=last).filter(|&at| is_landmark(at)).collect();
            let weight: usize = marks.iter().map(|&at| text::weight(&self.old[at])).sum();
            let is_certain = marks.len() > 1 && weight >= MOVED_WEIGHT;
            is_seen[first..=last].fill(true);
            for at in first..=last {
                state.is_moved[at] = true;
                state.pair(at, offset(at));
                let is_held =
                    marks.first().is_some_and(|&mark| mark <= at) && marks.last().is_some_and(|&mark| at <= mark);
                state.is_certain[at] = is_certain && is_held;
                state.doubts[at] = if is_held { Doubt::Moved } else { Doubt::Alike };
            }
            // What goes on alike beyond the block was taken for something else: neither is sure.
            let mut doubt = |old: Option<usize>, new: Option<usize>| {
                let (Some(old), Some(new)) = (old, new) else { return false };
                if !is_equal(Some(old), Some(new)) || is_landmark(old) {
                    return false;
                }
                state.is_certain[old] = false;
                if let Some(other) = state.back.get(new).filter(|&&other| other != NONE) {
                    state.is_certain[*other as usize] = false;
                }
                true
            };
            let mut by = 1;
            while doubt(first.checked_sub(by), offset(first).checked_sub(by)) {
                by += 1;
            }
            by = 1;
            while doubt(Some(last + by), Some(offset(last) + by)) {
                by += 1;
            }
        }
    }

    /// Lines whose text is still there, in places that are not certainly another line's.
    fn find_alike(&self, new_counts: &[u32], state: &mut State) {
        let mut places: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        let is_wanted =
            |old: usize, state: &State| state.partner[old] == NONE && new_counts[self.old_numbers[old] as usize] > 0;
        let wanted: Vec<usize> = (0..self.old.len()).filter(|&old| is_wanted(old, state)).collect();
        if wanted.is_empty() {
            return;
        }
        for &old in &wanted {
            places.entry(self.old_numbers[old]).or_default();
        }
        for (new, number) in self.new_numbers.iter().enumerate() {
            let is_taken = state.back[new] != NONE && state.is_certain[state.back[new] as usize];
            if let Some(places) = places.get_mut(number).filter(|_| !is_taken) {
                places.push(new);
            }
        }
        // Where a line would be if it had stayed with the certain one before it.
        let mut expected = 0;
        let mut at = 0;
        for old in wanted {
            while at < old {
                if state.is_certain[at] {
                    expected = state.partner[at] as usize + (old - at);
                } else {
                    expected += usize::from(expected > 0);
                }
                at += 1;
            }
            let places = &places[&self.old_numbers[old]];
            let behind = places.partition_point(|&place| place < expected);
            let around = [behind.checked_sub(1), Some(behind)].into_iter().flatten().filter_map(|at| places.get(at));
            if let Some(&nearest) = around.min_by_key(|place| place.abs_diff(expected)) {
                state.partner[old] = to_u32(nearest);
                state.doubts[old] = Doubt::Alike;
                if state.back[nearest] == NONE {
                    state.back[nearest] = to_u32(old);
                }
            }
        }
    }

    /// Lines that were edited where they stand, between lines that are certain.
    fn find_edited(&self, state: &mut State) {
        let mut certain: Vec<(usize, usize)> = (0..self.old.len())
            .filter(|&at| state.is_certain[at] && !state.is_moved[at])
            .map(|at| (at, state.partner[at] as usize))
            .collect();
        certain.push((self.old.len(), self.new.len()));
        let (mut from_old, mut from_new) = (0, 0);
        for (to_old, to_new) in certain {
            if from_old < to_old && from_new < to_new {
                self.find_edited_in(from_old..to_old, from_new..to_new, state);
            }
            (from_old, from_new) = (to_old + 1, to_new + 1);
        }
    }

    fn find_edited_in(&self, old: Range<usize>, new: Range<usize>, state: &mut State) {
        let lost = |state: &State| {
            let is_lost = |&at: &usize| state.partner[at] == NONE && !self.old[at].is_empty();
            old.clone().filter(is_lost).collect::<Vec<_>>()
        };
        if lost(state).is_empty() {
            return;
        }
        // Where breaks are all that changed, every line begins somewhere.
        if let Some(pairs) = similar::rebroken(self.old, old.clone(), self.new, new.clone()) {
            for (old, new) in pairs {
                if state.partner[old] == NONE {
                    state.partner[old] = to_u32(new);
                    state.doubts[old] = Doubt::Rebroken;
                }
            }
            return;
        }
        let lost: Vec<(usize, &str)> = lost(state).into_iter().map(|at| (at, self.old[at].as_str())).collect();
        let fresh: Vec<(usize, &str)> = new
            .filter(|&at| state.back[at] == NONE && !self.new[at].is_empty())
            .map(|at| (at, self.new[at].as_str()))
            .collect();
        for (old, new) in similar::edited(&lost, &fresh) {
            state.partner[old] = to_u32(new);
            state.doubts[old] = Doubt::Edited;
        }
    }
}
