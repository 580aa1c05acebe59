//! One linear pass over the samples: flat, direct and cumulative for all lines, functions
//! and files at once, and the accounting.
//!
//! Every table of costs has a stamp per row, the number of the last sample that counted
//! there, so that a sample counts once however often it passes. Samples are dealt out to
//! threads in runs; sums are integers, so the result does not depend on how.

use rustc_hash::FxHashMap;

use super::accounting::{Bucket, LeafReason, Standing, Weight};
use super::frames::Frames;
use super::prune::Pruning;
use super::{Cost, Ratio};
use crate::cancel::{CancelFlag, Cancelled};
use crate::profile::{LocId, Profile};

/// Fewer frames than this are not worth a thread.
const FRAMES_PER_THREAD: usize = 2 << 20;
/// Samples between two looks at the cancel flag.
const CHECK_EVERY: usize = 4096;

/// What the pass reads.
pub(super) struct Job<'a> {
    pub(super) profile: &'a Profile,
    pub(super) frames: &'a Frames,
    pub(super) pruning: Option<&'a Pruning>,
    pub(super) value_type: usize,
    pub(super) sample_counts: Option<usize>,
    pub(super) scale: Option<Ratio>,
    pub(super) selection: &'a Selection<'a>,
    pub(super) file_count: usize,
}

/// Decides whether a sample is kept.
pub(super) struct Selection<'a> {
    /// Stack filters that must match some frame, and those that must match none, as bits of
    /// [`Frames::filter_bits`].
    pub(super) wanted: u64,
    pub(super) unwanted: u64,
    pub(super) label_filters: Vec<&'a super::Filter>,
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
    /// Unplaced value by the location of its leaf.
    pub(super) unplaced: FxHashMap<Option<LocId>, Weight>,
}

/// What a row costs in cumulative, and the last sample that counted there (1-based).
#[derive(Clone, Copy, Default)]
pub(super) struct Cell {
    pub(super) cumulative: i64,
    pub(super) stamp: u32,
}

impl Cell {
    #[inline]
    fn add(&mut self, value: i64, stamp: u32) {
        if self.stamp != stamp {
            self.stamp = stamp;
            self.cumulative += value;
        }
    }
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
        let frames = self.frames;
        let mut sums = Sums::new(frames, self.file_count);
        for sample in range {
            if sample % CHECK_EVERY == 0 {
                cancel.check()?;
            }
            let value = match self.scale {
                None => values[sample],
                Some(ratio) => ratio.apply(values[sample]),
            };
            if value == 0 {
                continue;
            }
            let mut stack = samples.stack(sample);
            if let Some(pruning) = self.pruning {
                stack = pruning.apply(stack);
            }
            if !self.keeps(sample, stack) {
                sums.filtered += Weight { value: value.abs(), records: 1 };
                continue;
            }
            // Sample numbers fit: there are fewer than 2³² samples.
            #[expect(clippy::cast_possible_truncation, reason = "there are fewer than 2^32 samples")]
            let stamp = sample as u32 + 1;
            sums.add(frames, stack, value, stamp);
            sums.samples += counts.map_or(0, |counts| counts[sample].abs());
        }
        Ok(sums)
    }

    fn keeps(&self, sample: usize, stack: &[LocId]) -> bool {
        let selection = self.selection;
        if selection.wanted | selection.unwanted != 0 {
            let bits = stack.iter().fold(0, |bits, location| bits | self.frames.filter_bits[location.index()]);
            if bits & selection.wanted != selection.wanted || bits & selection.unwanted != 0 {
                return false;
            }
        }
        selection.label_filters.iter().all(|filter| {
            let labels = self.profile.samples().labels(sample);
            let found = labels.iter().any(|label| {
                filter.looks_at_label(self.profile.text(label.key))
                    && match label.value {
                        crate::profile::LabelValue::Text(text) => filter.matches(self.profile.text(text)),
                        crate::profile::LabelValue::Number(number, _) => filter.matches(&number.to_string()),
                    }
            });
            found != filter.is_negated()
        })
    }
}

impl Sums {
    fn new(frames: &Frames, file_count: usize) -> Self {
        Self {
            lines: Column::new(frames.lines.len()),
            functions: Column::new(frames.functions.len()),
            files: Column::new(file_count),
            pairs: vec![Cell::default(); frames.pair_count],
            total: 0,
            net: 0,
            records: 0,
            samples: 0,
            filtered: Weight::default(),
            leaf: Default::default(),
            reach: Default::default(),
            standing: Default::default(),
            unplaced: FxHashMap::default(),
        }
    }

    #[inline]
    fn add(&mut self, frames: &Frames, stack: &[LocId], value: i64, stamp: u32) {
        let weight = Weight { value: value.abs(), records: 1 };
        self.total += weight.value;
        self.net += value;
        self.records += 1;
        let mut leaf = if stack.is_empty() { LeafReason::EmptyStack } else { LeafReason::FramesFiltered };
        let mut leaf_location = None;
        let mut own = 0;
        let mut reach = Bucket::Unresolved;
        let mut standing = Standing::Unresolved;
        for &location in stack {
            let at = &frames.locations[location.index()];
            let rows = &frames.rows[at.start as usize..at.end as usize];
            if leaf_location.is_none()
                && let Some(first) = rows.first()
            {
                leaf_location = Some(location);
                leaf = at.leaf;
                self.lines.flat[first.line as usize] += value;
                self.functions.flat[first.function as usize] += value;
                self.files.flat[first.file as usize] += value;
            }
            if own == 0 {
                own = at.own;
            }
            reach = reach.min(at.reach);
            standing = standing.min(at.standing);
            for row in rows {
                self.lines.cells[row.line as usize].add(value, stamp);
                self.functions.cells[row.function as usize].add(value, stamp);
                self.files.cells[row.file as usize].add(value, stamp);
                self.pairs[row.pair as usize].add(value, stamp);
            }
        }
        if own != 0 {
            let row = &frames.rows[own as usize - 1];
            self.lines.direct[row.line as usize] += value;
            self.functions.direct[row.function as usize] += value;
            self.files.direct[row.file as usize] += value;
        }
        self.leaf[leaf as usize] += weight;
        self.reach[reach as usize] += weight;
        self.standing[standing as usize] += weight;
        if standing != Standing::Shown {
            *self.unplaced.entry(leaf_location).or_default() += weight;
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
        ] {
            for (mine, &theirs) in mine.iter_mut().zip(theirs) {
                *mine += theirs;
            }
        }
        for (&location, &weight) in &other.unplaced {
            *self.unplaced.entry(location).or_default() += weight;
        }
    }
}
