//! One linear pass over the samples: flat, direct and cumulative for all lines, functions
//! and files at once, and the accounting.
//!
//! Every table of costs has a stamp per row, the number of the last sample that counted
//! there, so that a sample counts once however often it passes. Samples are dealt out to
//! threads in runs; sums are integers, so the result does not depend on how.

use super::accounting::{LeafReason, Weight};
use super::files::FileGroups;
use super::frames::{Facts, FrameRows, Frames, LocationRows, Owners};
use super::prune::Pruning;
use super::{Cost, Ratio};
use crate::cancel::{CancelFlag, Cancelled};
use crate::profile::{LabelValue, LocId, Profile};

/// Fewer frames than this are not worth a thread.
const FRAMES_PER_THREAD: usize = 2 << 20;
/// Samples between two looks at the cancel flag.
const CHECK_EVERY: usize = 4096;

/// What the pass reads.
pub(super) struct Job<'a> {
    pub(super) profile: &'a Profile,
    pub(super) frames: &'a Frames,
    pub(super) owners: &'a Owners,
    pub(super) groups: &'a FileGroups,
    pub(super) pruning: Option<&'a Pruning>,
    pub(super) value_type: usize,
    pub(super) sample_counts: Option<usize>,
    pub(super) scale: Option<Ratio>,
    pub(super) selection: &'a Selection<'a>,
}

/// Decides whether a sample is kept.
pub(super) struct Selection<'a> {
    /// Stack filters that must match some frame, and those that must match none, as bits of
    /// [`Frames::filter_bits`].
    pub(super) wanted: u64,
    pub(super) unwanted: u64,
    pub(super) label_filters: Vec<&'a super::Filter>,
}

impl super::Stacks {
    /// Hands over every sample that counts under the filters and is not 0: its number, its value and its stack as far
    /// as it counts, leaf first. The profile is the one the stacks were made of.
    pub(super) fn each_sample(
        &self,
        profile: &Profile,
        value_type: usize,
        cancel: &CancelFlag,
        mut each: impl FnMut(usize, i64, &[LocId]),
    ) -> Result<(), Cancelled> {
        let selection = Selection::of(&self.filters);
        let samples = profile.samples();
        for (sample, &value) in samples.values(value_type).iter().enumerate() {
            if sample % CHECK_EVERY == 0 {
                cancel.check()?;
            }
            let mut stack = samples.stack(sample);
            if let Some(pruning) = &self.pruning {
                stack = pruning.apply(stack);
            }
            if value != 0 && selection.keeps(profile, &self.frames, sample, stack) {
                each(sample, value, stack);
            }
        }
        Ok(())
    }
}

/// Costs by row, and everything else that is summed on the way.
pub(super) struct Sums {
    pub(super) lines: Column,
    pub(super) functions: Column,
    pub(super) files: Column,
    pub(super) pairs: Vec<Cell>,
    pub(super) total: i64,
    pub(super) net: i64,
    pub(super) records: u64,
    pub(super) samples: i64,
    pub(super) filtered: Weight,
    pub(super) leaf: [Weight; 9],
    pub(super) reach: [Weight; 4],
    pub(super) standing: [Weight; 9],
    /// Unplaced value by owner of its leaf.
    pub(super) unplaced: Vec<Weight>,
    /// Value of leaves without a line, by mapping.
    pub(super) without_lines: Vec<Weight>,
}

/// What a row costs in cumulative, and the last sample that counted there (1-based).
#[derive(Clone, Copy, Default)]
pub(super) struct Cell {
    pub(super) cumulative: i64,
    pub(super) stamp: u32,
}

impl Cell {
    /// Counts a sample once; whether this was the first time.
    #[inline]
    fn add(&mut self, value: i64, stamp: u32) -> bool {
        let is_new = self.stamp != stamp;
        if is_new {
            self.stamp = stamp;
            self.cumulative += value;
        }
        is_new
    }
}

impl Cell {
    /// Adds what is no sample; a row that has nothing else exists by it.
    fn add_call(&mut self, value: i64) {
        self.cumulative = self.cumulative.saturating_add(value);
        self.stamp = self.stamp.max(1);
    }
}

fn to_u32(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}

/// Costs of one kind of row. Flat and direct are apart from the cells: the pass touches them
/// once per sample, the cells once per frame.
pub(super) struct Column {
    cells: Vec<Cell>,
    flat: Vec<i64>,
    direct: Vec<i64>,
}

impl Column {
    fn new(rows: usize) -> Self {
        Self { cells: vec![Cell::default(); rows], flat: vec![0; rows], direct: vec![0; rows] }
    }

    /// The rows that some kept sample touched, with their costs.
    pub(super) fn touched(&self) -> impl Iterator<Item = (usize, Cost)> + '_ {
        (1..self.cells.len()).filter(|&row| self.cells[row].stamp != 0).map(|row| (row, self.cost(row)))
    }

    fn cost(&self, row: usize) -> Cost {
        Cost { flat: self.flat[row], direct: self.direct[row], cumulative: self.cells[row].cumulative }
    }

    fn merge(&mut self, other: &Self) {
        merge_cells(&mut self.cells, &other.cells);
        for (mine, theirs) in [(&mut self.flat, &other.flat), (&mut self.direct, &other.direct)] {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                *mine += theirs;
            }
        }
    }
}

fn merge_cells(mine: &mut [Cell], theirs: &[Cell]) {
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        mine.cumulative += theirs.cumulative;
        mine.stamp |= theirs.stamp;
    }
}

/// Runs the pass on as many threads as pay.
pub(super) fn run(job: &Job<'_>, cancel: &CancelFlag) -> Result<Sums, Cancelled> {
    let mut sums = run_samples(job, cancel)?;
    job.add_calls(&mut sums);
    Ok(sums)
}

fn run_samples(job: &Job<'_>, cancel: &CancelFlag) -> Result<Sums, Cancelled> {
    let samples = job.profile.samples();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = (samples.frames.len() / FRAMES_PER_THREAD).clamp(1, cores.min(8));
    if threads == 1 {
        return job.run(0..samples.len(), cancel);
    }
    let part = samples.len().div_ceil(threads);
    let parts: Vec<Result<Sums, Cancelled>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let range = (worker * part).min(samples.len())..((worker + 1) * part).min(samples.len());
                scope.spawn(move || job.run(range, cancel))
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut parts = parts.into_iter();
    let mut sums = match parts.next() {
        Some(first) => first?,
        None => return job.run(0..0, cancel),
    };
    for part in parts {
        sums.merge(&part?);
    }
    Ok(sums)
}

impl Job<'_> {
    fn run(&self, range: std::ops::Range<usize>, cancel: &CancelFlag) -> Result<Sums, Cancelled> {
        let samples = self.profile.samples();
        let values = samples.values(self.value_type);
        let counts = self.sample_counts.map(|column| samples.values(column));
        let mut sums = Sums::new(self);
        let mut rows = Vec::new();
        for sample in range {
            if sample % CHECK_EVERY == 0 {
                cancel.check()?;
            }
            // A value that is scaled to nothing is still that of a sample.
            if values[sample] == 0 {
                continue;
            }
            let value = self.scale.map_or(values[sample], |ratio| ratio.apply(values[sample]));
            let mut stack = samples.stack(sample);
            if let Some(pruning) = self.pruning {
                stack = pruning.apply(stack);
            }
            if !self.selection.keeps(self.profile, self.frames, sample, stack) {
                sums.filtered += Weight { value: value.abs(), records: 1 };
                continue;
            }
            #[expect(clippy::cast_possible_truncation, reason = "there are fewer than 2^32 samples")]
            let stamp = sample as u32 + 1;
            // First fetch, then decide: the fetches don't wait for each other, while a branch on
            // something that is still on its way from memory would stop them all.
            rows.clear();
            rows.extend(stack.iter().map(|location| self.frames.locations[location.index()]));
            self.count(&mut sums, stack, &rows, value, stamp);
            sums.samples += counts.map_or(0, |counts| counts[sample].abs());
        }
        Ok(sums)
    }

    /// Adds what calls cost to their lines and functions, for formats that know no stacks. A
    /// file's cost with calls takes only what leaves the file for good: what comes back to it is
    /// counted there.
    fn add_calls(&self, sums: &mut Sums) {
        let calls = self.profile.calls();
        if calls.is_empty() {
            return;
        }
        let rows = |location: LocId| self.frames.locations[location.index()];
        let file = |location: LocId| self.file_row(rows(location).first.function());
        let edges: Vec<(u32, u32)> = (0..calls.len())
            .filter(|&call| !calls.callee(call).is_none())
            .map(|call| (to_u32(file(calls.caller(call))), to_u32(file(calls.callee(call)))))
            .collect();
        let component = crate::cycles::components(sums.files.cells.len(), &edges);
        for (call, &value) in calls.values(self.value_type).iter().enumerate() {
            let (caller, callee) = (calls.caller(call), calls.callee(call));
            if value == 0 || rows(caller).facts.is_empty() || !self.selection.keeps_stack(self.frames, &[caller]) {
                continue;
            }
            let value = self.scale.map_or(value, |ratio| ratio.apply(value));
            for at in self.frames.of(caller) {
                sums.lines.cells[at.line as usize].add_call(value);
                sums.functions.cells[at.function() as usize].add_call(value);
                if at.has_pair()
                    && let Some(&pair) = self.frames.pairs.get(&(at.line, at.function()))
                {
                    sums.pairs[pair as usize].add_call(value);
                }
            }
            if !callee.is_none() && component[file(caller)] != component[file(callee)] {
                sums.files.cells[file(caller)].add_call(value);
            }
        }
    }

    #[inline]
    fn count(&self, sums: &mut Sums, stack: &[LocId], rows: &[LocationRows], value: i64, stamp: u32) {
        let mut leaf = None;
        let mut own = None;
        let mut facts = Facts::default();
        for (&location, at) in stack.iter().zip(rows) {
            if at.facts.is_empty() {
                continue;
            }
            if leaf.is_none() {
                leaf = Some((location, at));
            }
            if own.is_none() && at.facts.has_own() {
                own = Some(at);
            }
            facts = facts.and(at.facts);
            self.count_frame(sums, at.first, value, stamp);
            if at.inlined != 0 {
                for &rows in &self.frames.inlined[at.inlined as usize - 1].frames {
                    self.count_frame(sums, rows, value, stamp);
                }
            }
        }
        let weight = Weight { value: value.abs(), records: 1 };
        sums.total += weight.value;
        sums.net += value;
        sums.records += 1;
        let reason = match leaf {
            Some((_, at)) => at.facts.leaf(),
            None if stack.is_empty() => LeafReason::EmptyStack,
            None => LeafReason::FramesFiltered,
        };
        sums.leaf[reason as usize] += weight;
        sums.reach[facts.reach() as usize] += weight;
        sums.standing[facts.standing() as usize] += weight;
        if let Some((location, _)) = leaf.filter(|_| reason != LeafReason::WithLine) {
            sums.without_lines[self.profile.locations().mapping(location).index()] += weight;
        }
        if let Some((_, at)) = leaf {
            self.add_once(sums, at.first, value, |column| &mut column.flat);
        }
        if let Some(at) = own {
            let rows = match at.inlined {
                0 => at.first,
                inlined => {
                    let inlined = &self.frames.inlined[inlined as usize - 1];
                    inlined.own.checked_sub(1).map_or(at.first, |own| inlined.frames[own])
                }
            };
            self.add_once(sums, rows, value, |column| &mut column.direct);
        } else {
            let owner = leaf.map_or(self.owners.names.len() - 1, |(location, _)| {
                self.owners.of_location[location.index()] as usize
            });
            sums.unplaced[owner] += weight;
        }
    }

    /// Cumulative: for everything the frame belongs to that has not seen this sample yet.
    #[expect(clippy::inline_always, reason = "a call per frame costs a third of the pass")]
    #[inline(always)]
    fn count_frame(&self, sums: &mut Sums, rows: FrameRows, value: i64, stamp: u32) {
        sums.lines.cells[rows.line as usize].add(value, stamp);
        let function = rows.function();
        if sums.functions.cells[function as usize].add(value, stamp) {
            sums.files.cells[self.file_row(function)].add(value, stamp);
        }
        if rows.has_pair()
            && let Some(&pair) = self.frames.pairs.get(&(rows.line, function))
        {
            sums.pairs[pair as usize].add(value, stamp);
        }
    }

    /// Flat or direct: for the one frame that the sample counts for.
    #[inline]
    fn add_once(&self, sums: &mut Sums, rows: FrameRows, value: i64, pick: fn(&mut Column) -> &mut Vec<i64>) {
        pick(&mut sums.lines)[rows.line as usize] += value;
        pick(&mut sums.functions)[rows.function() as usize] += value;
        pick(&mut sums.files)[self.file_row(rows.function())] += value;
    }

    /// The row of a function's file; 0 when that is no source file.
    #[inline]
    fn file_row(&self, function: u32) -> usize {
        self.frames.function_files[function as usize] as usize
    }
}

impl Selection<'_> {
    /// Whether the frames of a stack are as they should be.
    fn keeps_stack(&self, frames: &Frames, stack: &[LocId]) -> bool {
        if self.wanted | self.unwanted == 0 {
            return true;
        }
        let bits = stack.iter().fold(0, |bits, location| bits | frames.filter_bits[location.index()]);
        bits & self.wanted == self.wanted && bits & self.unwanted == 0
    }

    pub(super) fn keeps(&self, profile: &Profile, frames: &Frames, sample: usize, stack: &[LocId]) -> bool {
        if !self.keeps_stack(frames, stack) {
            return false;
        }
        self.keeps_labels(profile, sample)
    }

    /// Whether the filters about labels keep a sample.
    pub(super) fn keeps_labels(&self, profile: &Profile, sample: usize) -> bool {
        self.label_filters.iter().all(|filter| {
            let found = profile.samples().labels(sample).iter().any(|label| {
                filter.looks_at_label(profile.text(label.key))
                    && match label.value {
                        LabelValue::Text(text) => filter.matches(profile.text(text)),
                        LabelValue::Number(number, _) => filter.matches(&number.to_string()),
                    }
            });
            found != filter.is_negated()
        })
    }
}

impl Sums {
    fn new(job: &Job<'_>) -> Self {
        Self {
            lines: Column::new(job.frames.lines.len()),
            functions: Column::new(job.frames.functions.len()),
            files: Column::new(job.groups.all().len()),
            pairs: vec![Cell::default(); job.frames.pairs.len() + 1],
            total: 0,
            net: 0,
            records: 0,
            samples: 0,
            filtered: Weight::default(),
            leaf: Default::default(),
            reach: Default::default(),
            standing: Default::default(),
            unplaced: vec![Weight::default(); job.owners.names.len()],
            without_lines: vec![Weight::default(); job.profile.mappings().len()],
        }
    }

    fn merge(&mut self, other: &Self) {
        self.lines.merge(&other.lines);
        self.functions.merge(&other.functions);
        self.files.merge(&other.files);
        merge_cells(&mut self.pairs, &other.pairs);
        self.total += other.total;
        self.net += other.net;
        self.records += other.records;
        self.samples += other.samples;
        self.filtered += other.filtered;
        for (mine, theirs) in [
            (&mut self.leaf[..], &other.leaf[..]),
            (&mut self.reach[..], &other.reach[..]),
            (&mut self.standing[..], &other.standing[..]),
            (&mut self.unplaced[..], &other.unplaced[..]),
            (&mut self.without_lines[..], &other.without_lines[..]),
        ] {
            for (mine, &theirs) in mine.iter_mut().zip(theirs) {
                *mine += theirs;
            }
        }
    }
}
