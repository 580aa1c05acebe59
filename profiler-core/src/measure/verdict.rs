//! What became of a line or function between two versions, judged from runs of both.
//!
//! One pair of runs knows how much its samples may be off by chance, and nothing of how much runs
//! differ by themselves: by the machine's other work, its clock, where memory happens to lie. Several
//! pairs, run in turns so that such things meet both versions alike, know that too.

use std::cmp::Ordering;

use super::noise::{DEVIATIONS, variance_of_difference};

/// From so many pairs on it is known how much runs differ.
pub const TELLING_PAIRS: usize = 3;

/// What one pair of runs says of a row: values on one scale, and the samples behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunPair {
    /// The value of the new version.
    pub new: i128,
    /// The samples behind it.
    pub new_samples: u64,
    /// The value of the base.
    pub base: i128,
    /// The samples behind it.
    pub base_samples: u64,
}

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It costs less, in every pair of runs and by more than chance.
    Improved,
    /// The difference may be chance, and a change that matters would have been seen.
    Unchanged,
    /// It costs more, in every pair of runs and by more than chance.
    Regressed,
    /// A change that matters could hide in what is chance: more samples or more runs would tell.
    Inconclusive,
}

impl Verdict {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Improved => "improved",
            Self::Unchanged => "unchanged",
            Self::Regressed => "regressed",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// What a verdict has to allow for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    /// A change matters from here on, on the scale of the values.
    pub matters: f64,
    /// The part of a value, 0.1 for a tenth, by which runs of the same program may differ by themselves. One
    /// or two pairs can't tell a smaller change from that; more know better, and don't use it.
    pub drift: f64,
}

/// A row, judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// Mean of the values of the new version.
    pub new: f64,
    /// Mean of the values of the base.
    pub base: f64,
    /// Half the width of the 95 % confidence interval around their difference: the larger of the next two.
    pub noise: f64,
    /// The same by the numbers of samples alone.
    pub by_samples: f64,
    /// The same by how much the runs differ; 0 for a single pair.
    pub by_runs: f64,
    /// More than chance by the numbers of samples, but no more than one or two pairs have to allow for
    /// ([`Allowance::drift`]).
    pub may_be_drift: bool,
    /// What became of it.
    pub verdict: Verdict,
}

impl Judged {
    /// Judges a row by all pairs of runs. `None` without a pair, or when samples contradict values.
    ///
    /// The mean difference `d` of `k` pairs has two estimates of its noise, and the larger one
    /// counts: from the numbers of samples, with the variances of
    /// [`difference_is_noise`](super::difference_is_noise),
    ///
    /// ```text
    /// 1.96 · √(Σ Var(dᵢ)) / k
    /// ```
    ///
    /// and from how much the differences of the pairs differ,
    ///
    /// ```text
    /// t(k−1) · s / √k      for three pairs and more
    /// |d₁ − d₂| / 2        for two, which say little of how much runs differ
    /// ```
    ///
    /// A change is one when `|d|` is beyond that, every pair has its direction, and that of one or two pairs
    /// is more than runs may differ by themselves. A difference within it is unchanged when the noise is
    /// smaller than what matters, so that such a change would have been seen; all else is inconclusive.
    pub fn of(pairs: &[RunPair], allowance: Allowance) -> Option<Self> {
        let count = pairs.len() as f64;
        if pairs.is_empty() {
            return None;
        }
        let mut variance = 0.0;
        for pair in pairs {
            variance += variance_of_difference(pair.new, pair.new_samples, pair.base, pair.base_samples)?;
        }
        let differences: Vec<f64> = pairs.iter().map(|pair| (pair.new - pair.base) as f64).collect();
        let mean = differences.iter().sum::<f64>() / count;
        let (by_samples, by_runs) = (DEVIATIONS * variance.sqrt() / count, spread(&differences, mean));
        let noise = by_samples.max(by_runs);
        let side = |value: fn(&RunPair) -> i128| pairs.iter().map(|pair| value(pair) as f64).sum::<f64>() / count;
        let (new, base) = (side(|pair| pair.new), side(|pair| pair.base));
        let may_be_drift = pairs.len() < TELLING_PAIRS
            && mean.abs() > noise
            && mean.abs() <= allowance.drift * new.abs().max(base.abs());
        let agrees = |way: Ordering| differences.iter().all(|difference| difference.total_cmp(&0.0) == way);
        let verdict = if may_be_drift {
            Verdict::Inconclusive
        } else if mean > noise && agrees(Ordering::Greater) {
            Verdict::Regressed
        } else if -mean > noise && agrees(Ordering::Less) {
            Verdict::Improved
        } else if mean.abs() <= noise && noise <= allowance.matters {
            Verdict::Unchanged
        } else {
            Verdict::Inconclusive
        };
        Some(Self { new, base, noise, by_samples, by_runs, may_be_drift, verdict })
    }

    /// Half the width of an interval as percentage points of a whole: `±3.1`.
    ///
    /// ```
    /// use profiler_core::measure::Judged;
    /// assert_eq!(Judged::interval(31.4, 1000.0), "±3.1");
    /// assert_eq!(Judged::interval(0.2, 1000.0), "±<0.1");
    /// assert_eq!(Judged::interval(0.0, 0.0), "±0");
    /// ```
    pub fn interval(half: f64, whole: f64) -> String {
        let points = if whole > 0.0 { half / whole * 100.0 } else { 0.0 };
        match points {
            0.0 => "±0".to_owned(),
            ..0.05 => "±<0.1".to_owned(),
            points => format!("±{points:.1}"),
        }
    }

    /// The mean difference.
    pub fn difference(&self) -> f64 {
        self.new - self.base
    }
}

/// Half the width of the interval by how much differences differ; 0 for a single one.
fn spread(differences: &[f64], mean: f64) -> f64 {
    match differences {
        [] | [_] => 0.0,
        [first, second] => (first - second).abs() / 2.0,
        many => {
            let count = many.len() as f64;
            let sum: f64 = many.iter().map(|difference| (difference - mean).powi(2)).sum();
            quantile(many.len() - 1) * (sum / (count - 1.0)).sqrt() / count.sqrt()
        }
    }
}

/// The 97.5 % quantile of Student's t for so many degrees of freedom, 2 at least.
fn quantile(freedom: usize) -> f64 {
    const TABLE: [f64; 29] = [
        4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110,
        2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    TABLE.get(freedom.saturating_sub(2)).copied().unwrap_or(DEVIATIONS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Judged by a change that matters, and nothing that runs differ by.
    fn judged(pairs: &[RunPair], matters: f64) -> Option<Judged> {
        Judged::of(pairs, Allowance { matters, drift: 0.0 })
    }

    /// Values that are the samples.
    fn pair(base: u64, new: u64) -> RunPair {
        RunPair { new: new.into(), new_samples: new, base: base.into(), base_samples: base }
    }

    #[test]
    fn verdicts() {
        for (pairs, matters, want) in [
            (&[pair(1000, 500)][..], 100.0, Verdict::Improved),
            (&[pair(500, 1000)], 100.0, Verdict::Regressed),
            // 1.96 · √2000 is 88.
            (&[pair(1000, 1050)], 200.0, Verdict::Unchanged),
            (&[pair(1000, 1050)], 80.0, Verdict::Inconclusive),
            (&[pair(1000, 1000)], 88.0, Verdict::Unchanged),
            (&[pair(0, 0)], 0.0, Verdict::Unchanged),
            // The same change from fewer samples.
            (&[pair(10, 5)], 1.0, Verdict::Inconclusive),
            // More than the samples' chance, but the pairs disagree by as much.
            (&[pair(1000, 1300), pair(1000, 990)], 100.0, Verdict::Inconclusive),
            (&[pair(1000, 1300), pair(1000, 1200)], 100.0, Verdict::Regressed),
            (&[pair(1000, 1300), pair(1000, 1250), pair(1000, 1280)], 100.0, Verdict::Regressed),
            (&[pair(1000, 1900), pair(1000, 1010), pair(1000, 1020)], 100.0, Verdict::Inconclusive),
        ] {
            assert_eq!(judged(pairs, matters).map(|judged| judged.verdict), Some(want), "{pairs:?}");
        }
    }

    #[test]
    fn few_pairs_allow_for_what_runs_differ_by() {
        for (pairs, drift, want) in [
            // 14 % of the larger value, 4 times what is chance.
            (&[pair(10_000, 8_600)][..], 0.15, (Verdict::Inconclusive, true)),
            (&[pair(8_600, 10_000)], 0.15, (Verdict::Inconclusive, true)),
            (&[pair(10_000, 8_600)], 0.0, (Verdict::Improved, false)),
            (&[pair(10_000, 8_400)], 0.15, (Verdict::Improved, false)),
            // What is chance is that, and no drift.
            (&[pair(1000, 1050)], 0.15, (Verdict::Unchanged, false)),
            (&[pair(10_000, 8_600), pair(10_000, 8_700)], 0.15, (Verdict::Inconclusive, true)),
            // Three know how much runs differ.
            (&[pair(10_000, 8_600), pair(10_000, 8_700), pair(10_000, 8_650)], 0.15, (Verdict::Improved, false)),
        ] {
            let judged = Judged::of(pairs, Allowance { matters: 1000.0, drift }).unwrap();
            assert_eq!((judged.verdict, judged.may_be_drift), want, "{pairs:?} {drift}");
        }
    }

    #[test]
    fn what_is_unknown_is_not_judged() {
        assert_eq!(judged(&[], 1.0), None);
        assert_eq!(judged(&[RunPair { new: 5, new_samples: 0, base: 1, base_samples: 1 }], 1.0), None);
    }

    proptest! {
        #[test]
        fn both_directions_are_judged_alike(pairs in proptest::collection::vec((1..2000_u64, 1..2000_u64), 1..8)) {
            let there: Vec<RunPair> = pairs.iter().map(|&(base, new)| pair(base, new)).collect();
            let back: Vec<RunPair> = pairs.iter().map(|&(base, new)| pair(new, base)).collect();
            let allowance = Allowance { matters: 50.0, drift: 0.1 };
            let (there, back) = (Judged::of(&there, allowance).unwrap(), Judged::of(&back, allowance).unwrap());
            let turned = match back.verdict {
                Verdict::Improved => Verdict::Regressed,
                Verdict::Regressed => Verdict::Improved,
                other => other,
            };
            prop_assert_eq!(there.verdict, turned);
        }

        /// Of runs that differ by chance alone, few are called a change.
        #[test]
        fn chance_is_seldom_called_a_change(seed in 0..64_u64) {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut toss = || {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random & 1
            };
            // Heads of 2 000 coins: a variance of 500 where Poisson would have 1 000.
            let mut run = || (0..2000).map(|_| toss()).sum::<u64>();
            let changed = (0..100)
                .filter(|_| {
                    let verdict = judged(&[pair(run(), run())], 150.0).unwrap().verdict;
                    matches!(verdict, Verdict::Improved | Verdict::Regressed)
                })
                .count();
            prop_assert!(changed <= 5, "{} of 100", changed);
        }
    }
}
