//! Points in time and lengths of it, as people and servers write them.
//!
//! Only what queries need: nanoseconds since 1970, RFC 3339 in UTC or with an offset, and
//! lengths such as `15m`. A length that can't be read is refused, not guessed.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub i64);

const SECOND: i64 = 1_000_000_000;

impl Instant {
    /// The clock of this machine.
    pub fn now() -> Self {
        Self(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, nanos))
    }

    /// Of whole milliseconds.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// In whole milliseconds.
    pub fn millis(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Earlier by this.
    #[must_use]
    pub fn before(self, length: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(length)))
    }

    /// Later by this.
    #[must_use]
    pub fn after(self, length: Duration) -> Self {
        Self(self.0.saturating_add(nanos(length)))
    }

    /// How long this is after another; zero when it is not.
    pub fn since(self, other: Self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(other.0)).unwrap_or(0))
    }
}

fn nanos(length: Duration) -> i64 {
    i64::try_from(length.as_nanos()).unwrap_or(i64::MAX)
}

/// A text that is no time; displays as a clause about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no time; write one like 2026-01-31T12:00:00Z")]
pub struct NoTime(String);

impl FromStr for Instant {
    type Err = NoTime;

    fn from_str(text: &str) -> Result<Self, NoTime> {
        parse(text).ok_or_else(|| NoTime(text.to_owned()))
    }
}

/// RFC 3339, with `T` or a space, a fraction or none, and a zone.
fn parse(text: &str) -> Option<Instant> {
    if !text.is_ascii() || text.len() < 20 || text.len() > 40 {
        return None;
    }
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let marks = |at: usize, allowed: &[u8]| text.as_bytes().get(at).is_some_and(|mark| allowed.contains(mark));
    if !(marks(4, b"-") && marks(7, b"-") && marks(10, b"Tt ") && marks(13, b":") && marks(16, b":")) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !(1..=12).contains(&month)
        || day < 1
        || day > days_in_month(year, month)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    let mut rest = &text[19..];
    let mut fraction = 0;
    if let Some(after) = rest.strip_prefix('.') {
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return None;
        }
        fraction = format!("{:0<9}", &after[..digits.min(9)]).parse().ok()?;
        rest = &after[digits..];
    }
    let offset = match rest.as_bytes() {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let part = |range: std::ops::Range<usize>| -> Option<i64> { rest.get(range)?.parse().ok() };
            let seconds = part(1..3)? * 3600 + part(4..6)? * 60;
            if *sign == b'-' { -seconds } else { seconds }
        }
        _ => return None,
    };
    let seconds = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
    seconds.checked_mul(SECOND)?.checked_add(fraction).map(Instant)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970 of a date of the proleptic calendar. Years begin in March here, so that the
/// leap day is the last of a year.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// `2026-01-31T12:00:00Z`; a fraction only where there is one.
impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.0.div_euclid(SECOND), self.0.rem_euclid(SECOND));
        let (year, month, day) = civil_from_days(seconds.div_euclid(86_400));
        let time = seconds.rem_euclid(86_400);
        let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if nanos != 0 {
            write!(f, ".{}", format!("{nanos:09}").trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

/// A length of time as people write it: `90s`, `15m`, `24h`, `7d`.
pub fn parse_length(text: &str) -> Option<Duration> {
    let unit = text.chars().next_back()?;
    let seconds_each = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return None,
    };
    let digits = &text[..text.len() - 1];
    if digits.is_empty() || digits.len() > 9 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let seconds = digits.parse::<u64>().ok()?.checked_mul(seconds_each)?;
    (seconds > 0 && seconds <= 366 * 86_400).then(|| Duration::from_secs(seconds))
}

/// The shortest way to write a length in one unit: `15m`, `90s`.
pub fn length(length: Duration) -> String {
    let seconds = length.as_secs();
    match seconds {
        0 => format!("{}ms", length.as_millis()),
        _ if seconds.is_multiple_of(86_400) => format!("{}d", seconds / 86_400),
        _ if seconds.is_multiple_of(3600) => format!("{}h", seconds / 3600),
        _ if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

/// How long ago something was, in one unit, rounded down: `3s`, `2m`, `5h`, `4d`.
pub fn age(length: Duration) -> String {
    let seconds = length.as_secs();
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7199 => format!("{}m", seconds / 60),
        7200..=172_799 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        for (text, seconds, back) in [
            ("1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00Z"),
            ("2000-02-29T23:59:59Z", 951_868_799, "2000-02-29T23:59:59Z"),
            ("2026-11-29T17:47:26Z", 1_795_974_446, "2026-11-29T17:47:26Z"),
            ("2026-11-29 18:47:26+01:00", 1_795_974_446, "2026-11-29T17:47:26Z"),
            ("1969-12-31T23:59:59Z", -1, "1969-12-31T23:59:59Z"),
        ] {
            let time: Instant = text.parse().unwrap();
            assert_eq!((time.0, time.to_string().as_str()), (seconds * SECOND, back), "{text}");
        }
        assert_eq!("2026-11-29T17:47:26.25Z".parse::<Instant>().unwrap().to_string(), "2026-11-29T17:47:26.25Z");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "now", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-01T25:00:00Z", "2026-01-01"] {
            let error = text.parse::<Instant>().unwrap_err();
            assert!(error.to_string().contains("is no time"), "{text}");
        }
    }

    #[test]
    fn lengths_are_read_or_refused() {
        for (text, seconds) in [("90s", 90), ("15m", 900), ("24h", 86_400), ("7d", 604_800), ("2w", 1_209_600)] {
            assert_eq!(parse_length(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "15", "m", "15 m", "-5m", "1.5h", "0s", "99999999d", "15min", "5\u{b5}"] {
            assert_eq!(parse_length(text), None, "{text}");
        }
        for (seconds, text) in [(900, "15m"), (90, "90s"), (3600, "1h"), (86_400, "1d")] {
            assert_eq!(length(Duration::from_secs(seconds)), text);
        }
    }
}
