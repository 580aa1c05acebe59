//! Values that are fractions in a file; those of a profile are whole.

/// The nearest whole number, halves away from zero. `None` beyond an `i64`.
#[expect(clippy::cast_possible_truncation, reason = "the range has been checked")]
pub(super) fn nearest(exact: f64) -> Option<i64> {
    // 2^63 is the first that does not fit.
    const END: f64 = 9_223_372_036_854_775_808.0;
    let rounded = exact.round();
    (-END < rounded && rounded < END).then_some(rounded as i64)
}

/// Keeps account of what rounding changed.
#[derive(Default)]
pub(super) struct Rounding {
    count: u64,
    /// Σ (rounded − exact).
    change: f64,
}

impl Rounding {
    /// Like [`nearest`], and remembers the difference.
    pub(super) fn nearest(&mut self, exact: f64) -> Option<i64> {
        let rounded = nearest(exact)?;
        let change = rounded as f64 - exact;
        if change != 0.0 {
            self.count += 1;
            self.change += change;
        }
        Some(rounded)
    }

    /// What to tell the user; nothing when all values were whole.
    pub(super) fn note(&self) -> Option<String> {
        let Self { count, change } = self;
        (*count > 0)
            .then(|| format!("values rounded to whole numbers: {count}, which changed their sum by {change:+.3}"))
    }
}
