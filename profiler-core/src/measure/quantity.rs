//! The text of one value: three significant digits and a unit.

use std::fmt;

use super::{MINUS, Unit};

/// One value in the unit it is shown in. Displays with three significant digits and the unit
/// joined to it, so that it is one word: `1.20s`, `70.0ms`, `2.87MiB`, `15.6k`, `910`.
///
/// * Values below the second unit are whole, and written so: `910ns`, `7B`.
/// * A value moves to the next unit as soon as three digits would show 1000 of it, at 999.5;
///   seconds and minutes as soon as they would show 60, at 59.95.
/// * There are never more than two decimals: 1000 KiB are `0.98MiB`.
/// * In the largest unit the number is whole, however long.
/// * Zero is `0`, without a unit.
///
/// A positive value is at most seven columns wide (up to a million hours). Width and
/// alignment of the format string apply.
///
/// ```
/// use profiler_core::measure::{Quantity, Unit};
/// let value = Quantity::new(1_204_000_000, &Unit::Nanoseconds);
/// assert_eq!(format!("{value:>8}"), "   1.20s");
/// assert_eq!(value.exact(), "1204000000ns");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity<'a> {
    value: i128,
    unit: &'a Unit,
}

/// One unit of a family, and from how many hundredths of it on the next unit is shown.
struct Step {
    symbol: &'static str,
    size: u128,
    until: u128,
}

/// Where three digits would show 1000.
const THOUSAND: u128 = 99_950;
/// Where three digits would show 60.
const SIXTY: u128 = 5_995;

const fn step(symbol: &'static str, size: u128, until: u128) -> Step {
    Step { symbol, size, until }
}

const TIME: &[Step] = &[
    step("ns", 1, THOUSAND),
    step("\u{b5}s", 1_000, THOUSAND),
    step("ms", 1_000_000, THOUSAND),
    step("s", 1_000_000_000, SIXTY),
    step("min", 60_000_000_000, SIXTY),
    step("h", 3_600_000_000_000, u128::MAX),
];

const BYTES: &[Step] = &[
    step("B", 1, THOUSAND),
    step("KiB", 1 << 10, THOUSAND),
    step("MiB", 1 << 20, THOUSAND),
    step("GiB", 1 << 30, THOUSAND),
    step("TiB", 1 << 40, THOUSAND),
    step("PiB", 1 << 50, THOUSAND),
    step("EiB", 1 << 60, u128::MAX),
];

const COUNTS: &[Step] = &[
    step("", 1, THOUSAND),
    step("k", 1_000, THOUSAND),
    step("M", 1_000_000, THOUSAND),
    step("G", 1_000_000_000, THOUSAND),
    step("T", 1_000_000_000_000, THOUSAND),
    step("P", 1_000_000_000_000_000, THOUSAND),
    step("E", 1_000_000_000_000_000_000, u128::MAX),
];

impl<'a> Quantity<'a> {
    /// A number of nanoseconds, bytes or things, as the unit says.
    pub fn new(value: i128, unit: &'a Unit) -> Self {
        Self { value, unit }
    }

    /// The number, in the unit's base: nanoseconds, bytes, things.
    pub fn value(self) -> i128 {
        self.value
    }

    /// The text without rounding, for tooltips: all digits, no separators, so that it can be
    /// searched for and pasted. `1204000000ns`, `51485081B`, `910`, `910 cycles`.
    ///
    /// The word of an [`Other`](Unit::Other) unit is the file's: escape it like any other
    /// text of a profile.
    pub fn exact(self) -> String {
        let sign = self.sign();
        let number = self.value.unsigned_abs();
        match self.unit {
            Unit::Nanoseconds => format!("{sign}{number}ns"),
            Unit::Bytes => format!("{sign}{number}B"),
            Unit::Count => format!("{sign}{number}"),
            Unit::Other(word) => format!("{sign}{number} {word}"),
        }
    }

    fn sign(self) -> &'static str {
        if self.value < 0 { MINUS } else { "" }
    }
}

impl fmt::Display for Quantity<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.value.unsigned_abs();
        if number == 0 {
            return f.pad("0");
        }
        let steps = match self.unit {
            Unit::Nanoseconds => TIME,
            Unit::Bytes => BYTES,
            Unit::Count | Unit::Other(_) => COUNTS,
        };
        let fits = |step: &&Step| number.saturating_mul(100) < step.size.saturating_mul(step.until);
        let step = steps.iter().find(fits).unwrap_or(&steps[steps.len() - 1]);
        f.pad(&format!("{}{}{}", self.sign(), three_digits(number, step.size), step.symbol))
    }
}

/// `number ÷ size` with as many decimals as three digits leave room for, two at most.
fn three_digits(number: u128, size: u128) -> String {
    if size == 1 {
        return number.to_string();
    }
    let (whole, rest) = (number / size, number % size);
    // Only a quotient that still has room for decimals is multiplied, so nothing overflows.
    if whole < 100 {
        let hundredths = whole * 100 + divide_rounded(rest * 100, size);
        if hundredths < 1_000 {
            return format!("{}.{:02}", hundredths / 100, hundredths % 100);
        }
        let tenths = whole * 10 + divide_rounded(rest * 10, size);
        if tenths < 1_000 {
            return format!("{}.{}", tenths / 10, tenths % 10);
        }
    }
    (whole + divide_rounded(rest, size)).to_string()
}

/// The quotient rounded to the nearest integer, halves up.
fn divide_rounded(number: u128, by: u128) -> u128 {
    let (quotient, rest) = (number / by, number % by);
    quotient + u128::from(rest >= by - rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(value: i128, unit: &Unit) -> String {
        Quantity::new(value, unit).to_string()
    }

    #[test]
    fn times() {
        for (ns, want) in [
            (0, "0"),
            (1, "1ns"),
            (999, "999ns"),
            (1_000, "1.00µs"),
            (1_005, "1.01µs"),
            (9_994, "9.99µs"),
            (9_995, "10.0µs"),
            (99_949, "99.9µs"),
            (99_950, "100µs"),
            (999_499, "999µs"),
            (999_500, "1.00ms"),
            (31_000_000, "31.0ms"),
            (70_000_000, "70.0ms"),
            (148_700_000, "149ms"),
            (724_000_000, "724ms"),
            (999_499_999, "999ms"),
            (999_500_000, "1.00s"),
            (1_204_000_000, "1.20s"),
            (1_450_000_000, "1.45s"),
            (59_900_000_000, "59.9s"),
            (59_949_999_999, "59.9s"),
            (59_950_000_000, "1.00min"),
            (60_000_000_000, "1.00min"),
            (90_000_000_000, "1.50min"),
            (3_596_999_999_999, "59.9min"),
            (3_597_000_000_000, "1.00h"),
            (3_600_000_000_000, "1.00h"),
            (147_600_000_000_000, "41.0h"),
            (3_598_200_000_000_000, "1000h"),
            (31_536_000_000_000_000, "8760h"),
            (i128::from(i64::MAX), "2562048h"),
            (-1_204_000_000, "−1.20s"),
            (-1, "−1ns"),
        ] {
            assert_eq!(text(ns, &Unit::Nanoseconds), want, "{ns}");
        }
    }

    #[test]
    fn bytes() {
        const KIB: i128 = 1 << 10;
        const MIB: i128 = 1 << 20;
        for (bytes, want) in [
            (0, "0"),
            (7, "7B"),
            (999, "999B"),
            (1000, "0.98KiB"),
            (1023, "1.00KiB"),
            (KIB, "1.00KiB"),
            (15 * KIB + 600, "15.6KiB"),
            (999 * KIB + 511, "999KiB"),
            (999 * KIB + 512, "0.98MiB"),
            (3_009_413, "2.87MiB"),
            (6_406_800, "6.11MiB"),
            (51_485_081, "49.1MiB"),
            (999 * MIB + MIB / 2, "0.98GiB"),
            (1 << 40, "1.00TiB"),
            (999 << 40, "999TiB"),
            (1 << 50, "1.00PiB"),
            (i128::from(i64::MAX), "8.00EiB"),
            (-51_485_081, "−49.1MiB"),
        ] {
            assert_eq!(text(bytes, &Unit::Bytes), want, "{bytes}");
        }
    }

    #[test]
    fn counts_and_unknown_units() {
        for (count, want) in [
            (0, "0"),
            (910, "910"),
            (999, "999"),
            (1000, "1.00k"),
            (1_940, "1.94k"),
            (15_600, "15.6k"),
            (999_499, "999k"),
            (999_500, "1.00M"),
            (2_500_000_000, "2.50G"),
            (i128::from(i64::MAX), "9.22E"),
            (-910, "−910"),
        ] {
            assert_eq!(text(count, &Unit::Count), want, "{count}");
            assert_eq!(text(count, &Unit::Other("cycles".into())), want, "{count}");
        }
    }

    #[test]
    fn exact_text_has_every_digit() {
        for (value, unit, want) in [
            (1_860_000_000, Unit::Nanoseconds, "1860000000ns"),
            (-51_485_081, Unit::Bytes, "−51485081B"),
            (15_600, Unit::Count, "15600"),
            (15_600, Unit::Other("cycles".into()), "15600 cycles"),
            (0, Unit::Nanoseconds, "0ns"),
        ] {
            assert_eq!(Quantity::new(value, &unit).exact(), want);
        }
    }

    #[test]
    fn width_and_alignment_are_kept() {
        let value = Quantity::new(-402_000_000, &Unit::Nanoseconds);
        assert_eq!(format!("[{value:>8}] [{value:<8}]"), "[  −402ms] [−402ms  ]");
    }

    #[test]
    fn the_largest_numbers_have_a_text() {
        for unit in [Unit::Nanoseconds, Unit::Bytes, Unit::Count] {
            for value in [i128::MIN, i128::MAX] {
                assert!(!text(value, &unit).is_empty());
            }
        }
    }

    /// The number and the position of its unit in the family.
    fn read(text: &str, steps: &[Step]) -> (f64, usize) {
        let digits = text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len());
        let unit = steps.iter().position(|step| step.symbol == &text[digits..]).unwrap();
        (text[..digits].parse().unwrap(), unit)
    }

    /// Values of every order of magnitude that have a text of bounded width.
    fn any_value() -> impl Strategy<Value = i128> {
        (0..62_u32, any::<i64>()).prop_map(|(shift, bits)| i128::from((bits & i64::MAX) >> shift))
    }

    proptest! {
        #[test]
        fn a_larger_value_never_has_a_smaller_text(a in any_value(), b in any_value(), near in 0..2000_i128) {
            for (unit, steps) in [(Unit::Nanoseconds, TIME), (Unit::Bytes, BYTES), (Unit::Count, COUNTS)] {
                for (a, b) in [(a, b), (a, a + near)] {
                    let (small, large) = (a.min(b).max(1), a.max(b).max(1));
                    let (small, large) = (read(&text(small, &unit), steps), read(&text(large, &unit), steps));
                    prop_assert!(small.1 < large.1 || small.1 == large.1 && small.0 <= large.0);
                }
            }
        }

        #[test]
        fn a_text_is_within_half_of_its_last_digit(value in any_value()) {
            for (unit, steps) in [(Unit::Nanoseconds, TIME), (Unit::Bytes, BYTES), (Unit::Count, COUNTS)] {
                let value = value.max(1);
                let text = text(value, &unit);
                let (number, at) = read(&text, steps);
                let decimals = text.split_once('.').map_or(0, |(_, tail)| tail.bytes().take_while(u8::is_ascii_digit).count());
                let last_digit = steps[at].size as f64 / [1.0, 10.0, 100.0][decimals];
                let error = (number * steps[at].size as f64 - value as f64).abs();
                prop_assert!(error <= last_digit / 2.0 * (1.0 + 1e-9), "{value} {text}");
            }
        }

        #[test]
        fn a_value_is_at_most_seven_columns_wide(value in any_value()) {
            const MILLION_HOURS: i128 = 3_600_000_000_000 * 999_999;
            for (value, unit) in [(value % MILLION_HOURS, Unit::Nanoseconds), (value, Unit::Bytes), (value, Unit::Count)] {
                let text = text(value, &unit);
                prop_assert!(text.chars().count() <= 7, "{text}");
            }
        }

        #[test]
        fn the_sign_is_the_only_difference_of_a_negative_value(value in any_value()) {
            let value = value.max(1);
            prop_assert_eq!(text(-value, &Unit::Bytes), format!("−{}", text(value, &Unit::Bytes)));
        }
    }
}
