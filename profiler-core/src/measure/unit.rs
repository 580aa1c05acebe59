//! What a unit of a profile means, and what the values of a value type are for people.

use super::Quantity;
use crate::profile::{Meta, ValueType};

/// A unit that values are shown in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Time, in nanoseconds.
    Nanoseconds,
    /// Memory, in bytes.
    Bytes,
    /// A number of things that the value type names: samples, objects, goroutines.
    Count,
    /// A unit this module knows nothing about, as the file spells it. Its values are written
    /// like counts; the word is shown where values are exact, and never interpreted.
    Other(Box<str>),
}

impl Unit {
    /// Reads the unit of a value type, and how many of the returned unit one of it is.
    ///
    /// Units are free text. Upper and lower case are the same, and a final `s` is dropped
    /// from words longer than two letters. Multiples of a byte are multiples of 1024, in
    /// either spelling: profiles say `kb` and mean KiB. No unit is a count.
    ///
    /// ```
    /// use profiler_core::measure::Unit;
    /// assert_eq!(Unit::parse("milliseconds"), (Unit::Nanoseconds, 1_000_000));
    /// assert_eq!(Unit::parse("kB"), (Unit::Bytes, 1024));
    /// assert_eq!(Unit::parse("cycles"), (Unit::Other("cycles".into()), 1));
    /// ```
    pub fn parse(text: &str) -> (Self, i64) {
        let lower = text.trim().to_lowercase();
        let word = match lower.strip_suffix('s') {
            Some(singular) if lower.chars().count() > 2 => singular,
            _ => &lower,
        };
        match word {
            "" | "count" => (Self::Count, 1),
            "b" | "byte" => (Self::Bytes, 1),
            "kb" | "kbyte" | "kilobyte" | "kib" | "kibibyte" => (Self::Bytes, 1 << 10),
            "mb" | "mbyte" | "megabyte" | "mib" | "mebibyte" => (Self::Bytes, 1 << 20),
            "gb" | "gbyte" | "gigabyte" | "gib" | "gibibyte" => (Self::Bytes, 1 << 30),
            "tb" | "tbyte" | "terabyte" | "tib" | "tebibyte" => (Self::Bytes, 1 << 40),
            "pb" | "pbyte" | "petabyte" | "pib" | "pebibyte" => (Self::Bytes, 1 << 50),
            "ns" | "nanosecond" => (Self::Nanoseconds, 1),
            // Lower case of the micro sign U+00B5 is itself; the Greek letter is U+03BC.
            "us" | "\u{b5}s" | "\u{3bc}s" | "microsecond" => (Self::Nanoseconds, 1_000),
            "ms" | "millisecond" => (Self::Nanoseconds, 1_000_000),
            "s" | "sec" | "second" => (Self::Nanoseconds, 1_000_000_000),
            "min" | "minute" => (Self::Nanoseconds, 60_000_000_000),
            "h" | "hr" | "hour" => (Self::Nanoseconds, 3_600_000_000_000),
            _ => (Self::Other(text.into()), 1),
        }
    }

    /// Whether values are a time.
    pub fn is_time(&self) -> bool {
        *self == Self::Nanoseconds
    }
}

/// How the values of one value type are shown to people. Machines get them unscaled.
///
/// ```
/// use profiler_core::measure::Scale;
/// assert_eq!(Scale::of_unit("ms").quantity(1200).to_string(), "1.20s");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    unit: Unit,
    factor: i128,
    period: Option<i128>,
}

impl Scale {
    /// The scale of values of a unit, as the file spells it.
    pub fn of_unit(text: &str) -> Self {
        let (unit, factor) = Unit::parse(text);
        Self { unit, factor: factor.into(), period: None }
    }

    /// The scale of one value type of a profile.
    ///
    /// Numbers of samples are shown as the time they stand for, value × period, if that is
    /// known and nothing better is there: the type is `samples` or `sample` in `count`, the
    /// period is a positive time, and no value type of the profile is a time already.
    ///
    /// # Panics
    /// When there is no value type `selected`.
    pub fn for_people(value_types: &[ValueType], meta: &Meta, selected: usize) -> Self {
        let value_type = &value_types[selected];
        let has_time = value_types.iter().any(|value_type| Unit::parse(&value_type.unit).0.is_time());
        if value_type.is_sample_count()
            && !has_time
            && meta.period > 0
            && let Some(period_type) = &meta.period_type
            && let (unit @ Unit::Nanoseconds, factor) = Unit::parse(&period_type.unit)
        {
            let period = i128::from(meta.period) * i128::from(factor);
            return Self { unit, factor: period, period: Some(period) };
        }
        Self::of_unit(&value_type.unit)
    }

    /// A value of the file in the unit it is shown in.
    pub fn quantity(&self, value: impl Into<i128>) -> Quantity<'_> {
        // Sums of values fit 64 bits and a period in nanoseconds 105, so only a sum that no
        // profile can have gets here too large; the largest number is then as good as any.
        Quantity::new(value.into().saturating_mul(self.factor), &self.unit)
    }

    /// The unit values are shown in.
    pub fn unit(&self) -> &Unit {
        &self.unit
    }

    /// How many of its unit a sample is shown as, if values are numbers of samples shown as a time.
    pub(crate) fn period_value(&self) -> Option<i128> {
        self.period
    }

    /// The period that every sample is shown as, if values are numbers of samples shown as a
    /// time. The tooltip then says so: "120 samples × 10.0ms".
    pub fn period(&self) -> Option<Quantity<'_>> {
        self.period.map(|period| Quantity::new(period, &self.unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_as_pprof_reads_them() {
        let time = |factor| (Unit::Nanoseconds, factor);
        let bytes = |factor| (Unit::Bytes, factor);
        let count = (Unit::Count, 1);
        for (text, want) in [
            ("nanoseconds", time(1)),
            ("NanoSecond", time(1)),
            ("ns", time(1)),
            ("us", time(1_000)),
            ("\u{b5}s", time(1_000)),
            ("\u{3bc}s", time(1_000)),
            ("microseconds", time(1_000)),
            ("ms", time(1_000_000)),
            ("s", time(1_000_000_000)),
            ("secs", time(1_000_000_000)),
            ("minutes", time(60_000_000_000)),
            ("hrs", time(3_600_000_000_000)),
            ("bytes", bytes(1)),
            ("B", bytes(1)),
            ("kb", bytes(1 << 10)),
            ("KiB", bytes(1 << 10)),
            ("kilobytes", bytes(1 << 10)),
            ("MBytes", bytes(1 << 20)),
            ("gb", bytes(1 << 30)),
            ("terabyte", bytes(1 << 40)),
            ("pb", bytes(1 << 50)),
            ("count", count.clone()),
            ("Counts", count.clone()),
            ("", count),
        ] {
            assert_eq!(Unit::parse(text), want, "{text:?}");
        }
        for text in ["cycles", "Objects", "bs", "fortnights", "%"] {
            assert_eq!(Unit::parse(text), (Unit::Other(text.into()), 1));
        }
    }

    #[test]
    fn samples_are_shown_as_time_only_where_nothing_better_is_known() {
        let samples = || ValueType::new("samples", "count");
        let sample = || ValueType::new("sample", "count");
        let cpu = || ValueType::new("cpu", "nanoseconds");
        let objects = || ValueType::new("alloc_objects", "count");
        let space = || ValueType::new("alloc_space", "bytes");
        let nanoseconds = || Some(ValueType::new("cpu", "nanoseconds"));
        let milliseconds = || Some(ValueType::new("cpu", "milliseconds"));
        let bytes = || Some(ValueType::new("space", "bytes"));
        for (value_types, selected, period, period_type, want) in [
            (vec![samples()], 0, 10_000_000, nanoseconds(), "1.20s"),
            (vec![sample()], 0, 10, milliseconds(), "1.20s"),
            (vec![samples(), space()], 0, 10_000_000, nanoseconds(), "1.20s"),
            (vec![samples(), cpu()], 0, 10_000_000, nanoseconds(), "120"),
            (vec![samples(), ValueType::new("wall", "ms")], 0, 10_000_000, nanoseconds(), "120"),
            (vec![samples()], 0, 0, nanoseconds(), "120"),
            (vec![samples()], 0, -1, nanoseconds(), "120"),
            (vec![samples()], 0, 10_000_000, None, "120"),
            (vec![samples()], 0, 524_288, bytes(), "120"),
            (vec![objects()], 0, 10_000_000, nanoseconds(), "120"),
            (vec![samples(), space()], 1, 10_000_000, nanoseconds(), "120B"),
            (vec![ValueType::new("samples", "events")], 0, 10_000_000, nanoseconds(), "120"),
        ] {
            let meta = Meta { period, period_type: period_type.clone(), ..Meta::default() };
            let scale = Scale::for_people(&value_types, &meta, selected);
            assert_eq!(scale.quantity(120).to_string(), want, "{value_types:?} {selected} {period} {period_type:?}");
            assert_eq!(scale.period().is_some(), want == "1.20s");
        }
    }

    #[test]
    fn the_period_is_shown_in_its_own_unit() {
        let meta = Meta { period: 10, period_type: Some(ValueType::new("cpu", "milliseconds")), ..Meta::default() };
        let scale = Scale::for_people(&[ValueType::new("samples", "count")], &meta, 0);
        assert_eq!(scale.period().map(|period| period.to_string()).as_deref(), Some("10.0ms"));
    }

    #[test]
    fn no_value_overflows() {
        let meta = Meta { period: i64::MAX, period_type: Some(ValueType::new("cpu", "hours")), ..Meta::default() };
        let scale = Scale::for_people(&[ValueType::new("samples", "count")], &meta, 0);
        assert!(scale.quantity(i64::MIN).to_string().ends_with('h'));
        assert!(scale.quantity(i128::MAX).exact().ends_with("ns"));
    }
}
