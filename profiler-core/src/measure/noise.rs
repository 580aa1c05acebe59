//! Whether a difference of two measurements is more than chance.

/// Half the width of a 95 % confidence interval, in standard deviations.
pub(super) const DEVIATIONS: f64 = 1.96;

/// Whether `new − base` lies within its 95 % confidence interval around zero, so that it may
/// well be chance; `None` when the number of samples behind a side is unknown, or contradicts
/// its value (a value that no sample accounts for).
///
/// Values are those of one row on one scale, in any unit; for a comparison by share, pass
/// new × base total and base × new total. Samples are the numbers behind the two values.
///
/// A profiler that samples at a fixed rate sees a line `n` times where it expects `λ`; `n` is
/// nearly Poisson distributed, so its variance is `λ`, and `n` estimates it. The value is
/// `v = w·n` with a weight per sample `w = v / n`, so its variance is
///
/// ```text
/// Var(v) = w²·n = v² / n
/// ```
///
/// The two sides are independent: variances add, and the difference is noise when
///
/// ```text
/// |new − base| ≤ 1.96 · √(new² / new_samples + base² / base_samples)
/// ```
///
/// A side without samples would have no variance at all, though "none seen" does not mean
/// "never happens": it counts as if one sample of the other side's weight could have been
/// seen. Nothing on both sides is no difference, which is noise.
///
/// The weights of a side are taken to be equal. Where they differ much (sizes of
/// allocations), the true interval is wider than this one.
///
/// ```
/// use profiler_core::measure::difference_is_noise;
/// assert_eq!(difference_is_noise(120, Some(12), 100, Some(10)), Some(true));
/// assert_eq!(difference_is_noise(12_000, Some(1200), 10_000, Some(1000)), Some(false));
/// assert_eq!(difference_is_noise(12_000, None, 10_000, Some(1000)), None);
/// ```
pub fn difference_is_noise(
    new_value: impl Into<i128>,
    new_samples: Option<u64>,
    base_value: impl Into<i128>,
    base_samples: Option<u64>,
) -> Option<bool> {
    let (new, base) = (new_value.into(), base_value.into());
    let variance = variance_of_difference(new, new_samples?, base, base_samples?)?;
    // The interval is an estimate, so floating point is exact enough; the difference itself
    // is taken first, where nothing can cancel out.
    let difference = new.saturating_sub(base) as f64;
    Some(difference.powi(2) <= DEVIATIONS.powi(2) * variance)
}

/// The variance of `new − base`, as [`difference_is_noise`] has it; `None` when the samples of a
/// side contradict its value.
pub(super) fn variance_of_difference(new: i128, new_samples: u64, base: i128, base_samples: u64) -> Option<f64> {
    if (new_samples == 0 && new != 0) || (base_samples == 0 && base != 0) {
        return None;
    }
    Some(match (new_samples, base_samples) {
        (0, 0) => 0.0,
        (0, n) => variance(base, n) + weight(base, n).powi(2),
        (n, 0) => variance(new, n) + weight(new, n).powi(2),
        (n, m) => variance(new, n) + variance(base, m),
    })
}

fn weight(value: i128, samples: u64) -> f64 {
    value as f64 / samples as f64
}

fn variance(value: i128, samples: u64) -> f64 {
    (value as f64).powi(2) / samples as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::difference_is_noise;

    #[test]
    fn differences() {
        for (new, new_samples, base, base_samples, want) in [
            // √(100 + 100) · 1.96 = 27.7 samples.
            (127, 127, 100, 100, true),
            (130, 130, 100, 100, false),
            (100, 100, 130, 130, false),
            // The unit does not matter.
            (1_270_000_000, 127, 1_000_000_000, 100, true),
            (1_300_000_000, 130, 1_000_000_000, 100, false),
            // The same difference from fewer, heavier samples is less certain.
            (1300, 13, 1000, 10, true),
            // From nothing: 1.96 · √(n + 1) ≥ n up to 4.
            (40, 4, 0, 0, true),
            (50, 5, 0, 0, false),
            (0, 0, 40, 4, true),
            (0, 0, 50, 5, false),
            // Nothing at all, and no difference.
            (0, 0, 0, 0, true),
            (70, 7, 70, 9, true),
            // Values may be negative and as large as they get.
            (-100, 100, 100, 100, false),
            (i64::MAX, 1_000_000, i64::MAX / 2, 1_000_000, false),
            (i64::MAX, 1, i64::MIN, 1, true),
        ] {
            assert_eq!(
                difference_is_noise(new, Some(new_samples), base, Some(base_samples)),
                Some(want),
                "{new}/{new_samples} {base}/{base_samples}"
            );
        }
    }

    #[test]
    fn what_is_unknown_is_not_judged() {
        assert_eq!(difference_is_noise(1, None, 1, Some(1)), None);
        assert_eq!(difference_is_noise(1, Some(1), 1, None), None);
        assert_eq!(difference_is_noise(1, Some(0), 1, Some(1)), None);
        assert_eq!(difference_is_noise(1, Some(1), 1, Some(0)), None);
    }

    proptest! {
        #[test]
        fn both_directions_are_judged_alike(a in 1..10_000_u64, b in 1..10_000_u64, weight in 1..1_000_000_i64) {
            let value = |samples: u64| i64::try_from(samples).unwrap() * weight;
            prop_assert_eq!(
                difference_is_noise(value(a), Some(a), value(b), Some(b)),
                difference_is_noise(value(b), Some(b), value(a), Some(a))
            );
        }
    }
}
