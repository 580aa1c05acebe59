//! When something was measured, for people: in their time zone, and how long ago.

use std::time::SystemTime;

use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};
use profiler_core::profile::Meta;

/// Now, where the user is.
pub(crate) fn now() -> ZonedDateTime {
    ZonedDateTime::now()
}

/// `14:02–14:17, 3h ago`; the day as well when it was not today. `None` when the profile does not
/// say when it was taken.
pub(crate) fn measured(meta: &Meta, now: &ZonedDateTime) -> Option<String> {
    let start = at(meta.time_ns.filter(|&time| time > 0)?, now.time_zone())?;
    let end = at(meta.time_ns?.checked_add(meta.duration_ns.unwrap_or(0).max(0))?, now.time_zone())?;
    let day = |time: &ZonedDateTime, other: &ZonedDateTime| {
        if time.date() == other.date() { String::new() } else { time.strftime("%Y-%m-%d ").to_string() }
    };
    let clock = |time: &ZonedDateTime| time.strftime("%H:%M").to_string();
    let mut text = day(&start, now) + &clock(&start);
    let last = day(&end, &start) + &clock(&end);
    if last != clock(&start) {
        text = format!("{text}–{last}");
    }
    Some(format!("{text}, {}", ago(&end, now)))
}

/// How long ago a file was written: `3h ago`.
pub(crate) fn written(time: SystemTime, now: &ZonedDateTime) -> Option<String> {
    let time = Timestamp::try_from(time).ok()?.to_zoned_datetime(now.time_zone().clone());
    Some(ago(&time, now))
}

fn at(nanoseconds: i64, zone: &TimeZone) -> Option<ZonedDateTime> {
    Some(Timestamp::from_nanosecond(nanoseconds.into()).ok()?.to_zoned_datetime(zone.clone()))
}

/// The largest unit only; clocks of two machines differ, so the future counts as now.
fn ago(time: &ZonedDateTime, now: &ZonedDateTime) -> String {
    let seconds = now.timestamp().as_second().saturating_sub(time.timestamp().as_second());
    match seconds {
        ..60 => "just now".to_owned(),
        60..3_600 => format!("{}min ago", seconds / 60),
        3_600..172_800 => format!("{}h ago", seconds / 3_600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(start: &str, seconds: i64, want: &str) {
        let now: ZonedDateTime = "2026-11-29T18:00:00[Europe/Berlin]".parse().unwrap();
        let start: Timestamp = start.parse().unwrap();
        let meta = Meta {
            time_ns: Some(start.as_nanosecond().try_into().unwrap()),
            duration_ns: (seconds > 0).then_some(seconds * 1_000_000_000),
            ..Meta::default()
        };
        assert_eq!(measured(&meta, &now).as_deref(), Some(want));
    }

    #[test]
    fn a_span_is_told_in_the_users_time_with_its_age() {
        check("2026-11-29T13:02:10Z", 15 * 60, "14:02–14:17, 3h ago");
        check("2026-11-29T16:40:00Z", 5, "17:40, 19min ago");
        check("2026-11-29T16:59:50Z", 0, "17:59, just now");
        check("2026-11-29T17:30:00Z", 0, "18:30, just now");
        check("2026-11-28T17:00:00Z", 60, "2026-11-28 18:00–18:01, 23h ago");
        check("2026-11-27T22:50:00Z", 20 * 60, "2026-11-27 23:50–2026-11-28 00:10, 41h ago");
        check("2025-11-29T17:00:00Z", 0, "2025-11-29 18:00, 365 days ago");
    }

    #[test]
    fn a_profile_without_a_time_has_no_age() {
        let now: ZonedDateTime = "2026-11-29T18:00:00[UTC]".parse().unwrap();
        for time_ns in [None, Some(0), Some(-1)] {
            assert_eq!(measured(&Meta { time_ns, ..Meta::default() }, &now), None);
        }
        let far = Meta { time_ns: Some(i64::MAX), duration_ns: Some(i64::MAX), ..Meta::default() };
        assert_eq!(measured(&far, &now), None);
    }
}
