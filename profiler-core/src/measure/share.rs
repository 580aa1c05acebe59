//! Parts of a whole: shares, differences of shares, heat levels.

use std::cmp::Ordering;
use std::fmt;

use super::MINUS;

/// A value as part of a whole, with the sign of the value. Displays as a percentage with one
/// decimal, always: `34.0%`, `0.9%`, `−11.0%`.
///
/// * A whole is `100%` from 99.95 on (and still at 100.04); more than a whole is possible
///   where the whole is that of something else, as in a comparison: `150.3%`.
/// * What is not zero is not shown as zero: below 0.05 it is `<0.1%`, and `>−0.1%` when
///   negative. Zero is `0`.
///
/// A share from 0 to 100 % is at most five columns wide. Width and alignment of the format
/// string apply.
///
/// ```
/// use profiler_core::measure::Share;
/// let share = Share::of(1_204, 3_541).unwrap();
/// assert_eq!(format!("{share:>6}"), " 34.0%");
/// assert_eq!(share.whole_percent(), "34%");
/// assert_eq!(Share::of(5, 0), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    part: i64,
    whole: i64,
}

impl Share {
    /// `part` of `whole`, both of one value type and unscaled; `None` where the whole is
    /// nothing (or negative, which no total is).
    pub fn of(part: i64, whole: i64) -> Option<Self> {
        (whole > 0).then_some(Self { part, whole })
    }

    /// Rounded to whole percent, for use inside a label or a sentence: `11%`, `100%`.
    /// `<1%` (`>−1%`) for what would round to zero and is not; `0%` for zero.
    pub fn whole_percent(self) -> String {
        let percent = Ratio::from(self).times_rounded(100);
        match (self.part.signum(), percent) {
            (1, 0) => "<1%".to_owned(),
            (-1, 0) => format!(">{MINUS}1%"),
            (-1, _) => format!("{MINUS}{percent}%"),
            _ => format!("{percent}%"),
        }
    }

    /// Whether the share, whatever its sign, is at least so many parts of so many; exactly.
    ///
    /// ```
    /// use profiler_core::measure::Share;
    /// let share = Share::of(9, 1000).unwrap();
    /// assert!(share.is_at_least(9, 1000) && !share.is_at_least(1, 100));
    /// ```
    pub fn is_at_least(self, parts: u32, of: u32) -> bool {
        Ratio::from(self).cmp_times(of, parts.into()).is_ge()
    }

    /// The value that is the part.
    pub fn part(self) -> i64 {
        self.part
    }

    /// The value it is a part of.
    pub fn whole(self) -> i64 {
        self.whole
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = Ratio::from(*self).times_rounded(1000);
        let sign = if self.part < 0 { MINUS } else { "" };
        match (self.part.signum(), tenths) {
            (0, _) => f.pad("0"),
            (1, 0) => f.pad("<0.1%"),
            (_, 0) => f.pad(&format!(">{MINUS}0.1%")),
            (_, 1000) => f.pad(&format!("{sign}100%")),
            _ => f.pad(&format!("{sign}{}.{}%", tenths / 10, tenths % 10)),
        }
    }
}

/// The difference of two shares, in percentage points. Displays with its sign and one
/// decimal: `+7.7pp`, `−11.0pp`; what is not zero and below 0.05 as `<+0.1pp` or `>−0.1pp`;
/// zero as `0pp`.
///
/// ```
/// use profiler_core::measure::{PointChange, Share};
/// let change = PointChange::between(Share::of(1_204, 3_541).unwrap(), Share::of(925, 3_517).unwrap());
/// assert_eq!(change.to_string(), "+7.7pp");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointChange {
    sign: Ordering,
    size: Ratio,
}

impl PointChange {
    /// The share of one side of a comparison less that of the other, each of its own whole.
    pub fn between(new: Share, base: Share) -> Self {
        let product = |a: i64, b: i64| i128::from(a) * i128::from(b);
        // Each product has at most 126 bits, so their difference has at most 127.
        let difference = product(new.part, base.whole) - product(base.part, new.whole);
        Self::new(difference, product(new.whole, base.whole).unsigned_abs())
    }

    /// A difference of values as part of the base's whole; `None` where that is nothing.
    pub fn of_base(difference: i128, base_whole: i64) -> Option<Self> {
        (base_whole > 0).then(|| Self::new(difference, base_whole.unsigned_abs().into()))
    }

    fn new(difference: i128, whole: u128) -> Self {
        Self { sign: difference.cmp(&0), size: Ratio { part: difference.unsigned_abs(), whole } }
    }

    /// `Greater` when the new side has more, `Less` when it has less.
    pub fn direction(self) -> Ordering {
        self.sign
    }

    /// Compares the size of the change, whatever its direction, with a number of tenths of a
    /// percentage point: 30 for 3 pp.
    pub fn cmp_tenths(self, tenths: u32) -> Ordering {
        self.size.cmp_times(1000, tenths.into())
    }

    /// Orders by the size of the change, whatever its direction. Both must be of the same
    /// wholes, as all changes of one comparison are.
    pub fn cmp_size(self, other: Self) -> Ordering {
        debug_assert_eq!(self.size.whole, other.size.whole, "changes of different comparisons");
        self.size.part.cmp(&other.size.part)
    }
}

impl fmt::Display for PointChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = self.size.times_rounded(1000);
        let sign = match self.sign {
            Ordering::Equal => return f.pad("0pp"),
            Ordering::Less if tenths == 0 => return f.pad(&format!(">{MINUS}0.1pp")),
            Ordering::Greater if tenths == 0 => return f.pad("<+0.1pp"),
            Ordering::Less => MINUS,
            Ordering::Greater => "+",
        };
        f.pad(&format!("{sign}{}.{}pp", tenths / 10, tenths % 10))
    }
}

/// How hot a line is, in five levels, each about three times the one before: from 1, 3, 10
/// and 30 % of what was placed in the workspace.
///
/// ```
/// use profiler_core::measure::Heat;
/// assert_eq!(Heat::of(30, 100).level(), 4);
/// assert_eq!(Heat::of(30, 100).block(), Some('█'));
/// assert_eq!(Heat::of(0, 100).block(), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Heat(u8);

impl Heat {
    /// The level of a cumulative value, whatever its sign, relative to the value placed in
    /// the workspace (the total, where there is no workspace). Level 0 when that is nothing.
    pub fn of(cumulative: i64, placed: i64) -> Self {
        let Some(share) = Share::of(cumulative, placed) else { return Self(0) };
        let reached = |percent: &&u128| Ratio::from(share).cmp_times(100, **percent).is_ge();
        Self([1, 3, 10, 30].iter().take_while(reached).map(|_| 1).sum())
    }

    /// 0 (cold) to 4 (hottest).
    pub fn level(self) -> u8 {
        self.0
    }

    /// The block that stands for the level; none for level 0. Where glyphs are limited to
    /// ASCII nothing stands in for it: the share says the same.
    pub fn block(self) -> Option<char> {
        [None, Some('▂'), Some('▄'), Some('▆'), Some('█')][usize::from(self.0)]
    }
}

/// A non-negative fraction. The whole is positive and below 2¹²⁶, as a product of two totals
/// is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ratio {
    part: u128,
    whole: u128,
}

impl From<Share> for Ratio {
    fn from(share: Share) -> Self {
        Self { part: share.part.unsigned_abs().into(), whole: share.whole.unsigned_abs().into() }
    }
}

impl Ratio {
    /// The fraction times a small number: the whole part, and what is left of the fraction.
    fn times(self, factor: u32) -> (u128, u128) {
        let fraction = self.part % self.whole;
        // One binary digit of the factor at a time: the product itself may not fit, three
        // times the whole does.
        let (mut product, mut rest) = (0_u128, 0_u128);
        for bit in (0..u32::BITS - factor.leading_zeros()).rev() {
            let sum = 2 * rest + if factor >> bit & 1 == 1 { fraction } else { 0 };
            product = 2 * product + sum / self.whole;
            rest = sum % self.whole;
        }
        ((self.part / self.whole).saturating_mul(factor.into()).saturating_add(product), rest)
    }

    /// The fraction times a small number, rounded to the nearest integer, halves up.
    fn times_rounded(self, factor: u32) -> u128 {
        let (product, rest) = self.times(factor);
        product.saturating_add(u128::from(rest >= self.whole - rest))
    }

    /// Compares the fraction times a small number with an integer, exactly.
    fn cmp_times(self, factor: u32, with: u128) -> Ordering {
        let (product, rest) = self.times(factor);
        product.cmp(&with).then(rest.cmp(&0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn share(part: i64, whole: i64) -> Share {
        Share::of(part, whole).unwrap()
    }

    #[test]
    fn shares() {
        for (part, whole, want, whole_percent) in [
            (340, 1000, "34.0%", "34%"),
            (9, 1000, "0.9%", "1%"),
            (0, 1000, "0", "0%"),
            (1, 1000, "0.1%", "<1%"),
            (4_999, 10_000_000, "<0.1%", "<1%"),
            (5_000, 10_000_000, "0.1%", "<1%"),
            (49_999, 10_000_000, "0.5%", "<1%"),
            (50_000, 10_000_000, "0.5%", "1%"),
            (1, i64::MAX, "<0.1%", "<1%"),
            (4_249, 100_000, "4.2%", "4%"),
            (4_250, 100_000, "4.3%", "4%"),
            (99_949, 100_000, "99.9%", "100%"),
            (99_950, 100_000, "100%", "100%"),
            (i64::MAX, i64::MAX, "100%", "100%"),
            (i64::MAX - 1, i64::MAX, "100%", "100%"),
            (100_049, 100_000, "100%", "100%"),
            (100_050, 100_000, "100.1%", "100%"),
            (150_300, 100_000, "150.3%", "150%"),
            (-340, 1000, "−34.0%", "−34%"),
            (-1000, 1000, "−100%", "−100%"),
            (-1, 10_000, ">−0.1%", ">−1%"),
            (i64::MIN, i64::MAX, "−100%", "−100%"),
            (i64::MAX, 1, "922337203685477580700.0%", "922337203685477580700%"),
        ] {
            assert_eq!(share(part, whole).to_string(), want, "{part}/{whole}");
            assert_eq!(share(part, whole).whole_percent(), whole_percent, "{part}/{whole}");
        }
    }

    #[test]
    fn nothing_is_a_share_of_nothing() {
        assert_eq!(Share::of(1, 0), None);
        assert_eq!(Share::of(0, 0), None);
        assert_eq!(Share::of(1, -1), None);
        assert_eq!(PointChange::of_base(1, 0), None);
    }

    #[test]
    fn changes_of_shares() {
        for (new, base, want) in [
            ((340, 1000), (263, 1000), "+7.7pp"),
            ((263, 1000), (373, 1000), "−11.0pp"),
            ((20, 1000), (0, 1000), "+2.0pp"),
            ((340, 1000), (34, 100), "0pp"),
            ((1, 10_000), (0, 7), "<+0.1pp"),
            ((0, 7), (1, 10_000), ">−0.1pp"),
            ((5, 10_000), (0, 7), "+0.1pp"),
            // Rounded shares (33.3 % and 33.4 %) would say 0.1.
            ((33_349, 100_000), (33_351, 100_000), ">−0.1pp"),
            ((i64::MAX, i64::MAX), (-i64::MAX, i64::MAX), "+200.0pp"),
            ((i64::MAX - 1, i64::MAX), (0, i64::MAX - 2), "+100.0pp"),
        ] {
            let change = PointChange::between(share(new.0, new.1), share(base.0, base.1));
            assert_eq!(change.to_string(), want, "{new:?} {base:?}");
        }
        assert_eq!(PointChange::of_base(-110, 1000).unwrap().to_string(), "−11.0pp");
        assert_eq!(PointChange::of_base(i128::MAX, i64::MAX).unwrap().direction(), Ordering::Greater);
    }

    #[test]
    fn changes_are_compared_by_size() {
        let change = |difference| PointChange::of_base(difference, 1000).unwrap();
        assert_eq!(change(1).cmp_tenths(1), Ordering::Equal);
        assert_eq!(change(-1).cmp_tenths(1), Ordering::Equal);
        assert_eq!(change(30).cmp_tenths(30), Ordering::Equal);
        assert_eq!(change(-31).cmp_tenths(30), Ordering::Greater);
        assert_eq!(change(29).cmp_tenths(30), Ordering::Less);
        assert_eq!(change(-31).cmp_size(change(30)), Ordering::Greater);
        assert_eq!(change(-31).direction(), Ordering::Less);
        assert_eq!(change(0).direction(), Ordering::Equal);
    }

    #[test]
    fn heat_levels_include_their_lower_bound() {
        for (cumulative, placed, want) in [
            (0, 1000, 0),
            (9, 1000, 0),
            (9_999, 1_000_000, 0), // shown as 1.0 %
            (10, 1000, 1),
            (29_999, 1_000_000, 1),
            (30, 1000, 2),
            (99_999, 1_000_000, 2),
            (100, 1000, 3),
            (299_999, 1_000_000, 3),
            (300, 1000, 4),
            (1000, 1000, 4),
            (5000, 1000, 4),
            (-300, 1000, 4),
            (i64::MIN, i64::MAX, 4),
            (1, 0, 0),
        ] {
            assert_eq!(Heat::of(cumulative, placed).level(), want, "{cumulative}/{placed}");
        }
        let blocks: Vec<_> = [0, 1, 3, 10, 30].map(|percent| Heat::of(percent, 100).block()).into();
        assert_eq!(blocks, [None, Some('▂'), Some('▄'), Some('▆'), Some('█')]);
    }

    fn number(text: &str) -> f64 {
        match text {
            "0" => 0.0,
            "<0.1%" => 0.04,
            _ => text.strip_suffix('%').unwrap().parse().unwrap(),
        }
    }

    proptest! {
        #[test]
        fn a_larger_share_never_has_a_smaller_text(whole in 1..i64::MAX, a: i64, b: i64) {
            let (a, b) = ((a & i64::MAX) % whole, (b & i64::MAX) % whole);
            let text = |part| number(&share(part, whole).to_string());
            prop_assert!(text(a.min(b)) <= text(a.max(b)));
        }

        #[test]
        fn a_share_is_at_most_five_columns_wide(whole in 1..i64::MAX, part: i64) {
            let share = share((part & i64::MAX) % whole, whole);
            prop_assert!(share.to_string().chars().count() <= 5);
            prop_assert!(share.whole_percent().chars().count() <= 4);
        }

        #[test]
        fn rounding_is_exact_where_plain_arithmetic_has_room(part in 0..1_u128 << 90, whole in 1..1_u128 << 90) {
            let ratio = Ratio { part, whole };
            prop_assert_eq!(ratio.times_rounded(1000), (2000 * part + whole) / (2 * whole));
            prop_assert_eq!(ratio.cmp_times(1000, 30), (1000 * part).cmp(&(30 * whole)));
        }

        #[test]
        fn a_change_is_the_opposite_of_its_opposite(a in 0..1000_i64, b in 0..1000_i64, wholes: [u32; 2]) {
            let (new, base) = (share(a, i64::from(wholes[0]) + 1), share(b, i64::from(wholes[1]) + 1));
            let (there, back) = (PointChange::between(new, base), PointChange::between(base, new));
            prop_assert_eq!(there.direction(), back.direction().reverse());
            prop_assert_eq!(there.size, back.size);
        }
    }
}
