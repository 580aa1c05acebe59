//! Types that are the state of a moment: heap in use, goroutines, totals since the start.
//!
//! Adding up a time of them counts everything once per scrape: a quarter of an hour would show
//! ninety times the heap. So the newest state of each series is taken, and only those are added
//! up, as parts of one service:
//!
//! 1. The server tells the points of every series.
//! 2. A series whose newest point is more than three scrape intervals old has ended, and is
//!    left out.
//! 3. Each of the newest points is fetched alone. Where other series have a point at the very
//!    same time that is not their newest, the labels of the series are asked for, too.
//!
//! How many there are, and how old, is said. How a server is asked is its [`Snapshots`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use prost::bytes::Bytes;

use super::Fetched;
use super::error::SourceError;
use super::progress::Progress;
use super::query::{Matcher, ProfileQuery, Selector, TimeRange};
use super::time::{self, Instant};

/// Most requests for one profile.
const MAX_MERGES: usize = 50;
/// Requests at the same time.
const AT_ONCE: usize = 4;
/// A series without a point for this many intervals has ended.
const MISSED: u32 = 3;
/// Instances that are named.
const NAMED: usize = 4;

/// A server that can be asked for single points.
pub(super) trait Snapshots: Sync {
    /// The points of every series; none where there is nothing.
    fn series<'a>(
        &'a self,
        selector: &'a Selector,
        range: (Instant, Instant),
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Vec<Series>, SourceError>>;

    /// What the selected series have at a point.
    fn point<'a>(
        &'a self,
        selector: Selector,
        at: Instant,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Bytes, SourceError>>;
}

/// The points of a series, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Series {
    labels: BTreeMap<String, String>,
    points: Vec<Instant>,
}

impl Series {
    pub(super) fn new(
        labels: impl IntoIterator<Item = (String, String)>,
        points: impl IntoIterator<Item = Instant>,
    ) -> Self {
        let points: BTreeSet<Instant> = points.into_iter().collect();
        Self { labels: labels.into_iter().collect(), points: points.into_iter().collect() }
    }

    fn newest(&self) -> Option<Instant> {
        self.points.last().copied()
    }

    /// The usual distance of two points; `None` when there are less.
    fn interval(&self) -> Option<Duration> {
        let mut gaps: Vec<Duration> =
            self.points.windows(2).map(|pair| pair[1].since(pair[0])).filter(|gap| !gap.is_zero()).collect();
        gaps.sort();
        gaps.get(gaps.len() / 2).copied()
    }

    fn name(&self) -> String {
        let named = ["instance", "pod", "hostname", "node"].iter().find_map(|label| self.labels.get(*label));
        named.cloned().unwrap_or_else(|| {
            let all: Vec<String> = self.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
            all.join(",")
        })
    }
}

/// One MERGE.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    at: Instant,
    /// Beyond those of the query.
    matchers: Vec<Matcher>,
    /// How many series it gives.
    series: usize,
}

/// What is asked for, and what is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Plan {
    parts: Vec<Part>,
    /// Series with a newest point, the newest first.
    alive: Vec<Series>,
    ended: usize,
    /// Alive, but beyond the most requests.
    too_many: usize,
}

/// The newest state of each series of a range; `no_data` is the failure when there is none.
pub(super) async fn fetch(
    server: &dyn Snapshots,
    query: &ProfileQuery,
    (start, end): (Instant, Instant),
    no_data: SourceError,
    progress: &Progress,
) -> Result<Fetched, SourceError> {
    progress.step("looking for the newest snapshots");
    let series = server.series(&query.selector, (start, end), progress).await?;
    let plan = plan(&series, end);
    if plan.parts.is_empty() {
        return Err(no_data);
    }
    let count = plan.parts.len();
    let fetch_part = |at: usize, part: &Part| -> BoxFuture<'_, Result<Bytes, SourceError>> {
        let mut selector = query.selector.clone();
        selector.matchers.extend(part.matchers.iter().cloned());
        let time = part.at;
        Box::pin(async move {
            if count > 1 {
                progress.step(&format!("fetching snapshot {at} of {count}"));
            }
            server.point(selector, time, progress).await
        })
    };
    let fetches: Vec<BoxFuture<'_, _>> = (1..).zip(&plan.parts).map(|(at, part)| fetch_part(at, part)).collect();
    let parts = stream::iter(fetches).buffered(AT_ONCE).try_collect().await?;
    let newest = plan.parts.iter().map(|part| part.at).max().unwrap_or(end);
    Ok(Fetched {
        // A moment has no duration.
        times: Some((newest, newest)),
        notes: vec![in_words(&plan, end)],
        when_empty: Some(no_data.to_string()),
        ..Fetched::new(name(query, end), parts)
    })
}

/// A snapshot has no range; a query that ends in the past is of then.
fn name(query: &ProfileQuery, end: Instant) -> String {
    let text = query.to_string();
    let without = text.strip_suffix(&format!(" {}", query.range)).unwrap_or(&text).to_owned();
    match query.range {
        TimeRange::Last(_) => format!("{without} now"),
        _ => format!("{without} at {end}"),
    }
}

fn plan(series: &[Series], end: Instant) -> Plan {
    let mut intervals: Vec<Duration> = series.iter().filter_map(Series::interval).collect();
    intervals.sort();
    let usual = intervals.get(intervals.len() / 2).copied();
    // Without two points of anything nothing is known about intervals, and nothing is left out.
    let is_alive = |series: &Series| {
        let Some(newest) = series.newest() else { return false };
        series.interval().or(usual).is_none_or(|interval| end.since(newest) <= interval * MISSED)
    };
    let (mut alive, ended): (Vec<Series>, Vec<Series>) = series.iter().cloned().partition(is_alive);
    alive.sort_by_key(|series| (std::cmp::Reverse(series.newest()), series.labels.clone()));
    let all_labels: BTreeSet<&String> = series.iter().flat_map(|series| series.labels.keys()).collect();

    let mut plan = Plan { ended: ended.len(), ..Plan::default() };
    let mut rest = &alive[..];
    while let Some(at) = rest.first().and_then(Series::newest) {
        let count = rest.iter().take_while(|series| series.newest() == Some(at)).count();
        let (together, later) = rest.split_at(count);
        rest = later;
        // Is there a series with a point here that is not its newest?
        let others = series.iter().any(|other| other.newest() != Some(at) && other.points.binary_search(&at).is_ok());
        let parts: Vec<Part> = if others {
            let exactly = |series: &Series| {
                let matcher =
                    |name: &&String| Matcher::equal(*name, series.labels.get(*name).cloned().unwrap_or_default());
                all_labels.iter().map(matcher).collect()
            };
            together.iter().map(|series| Part { at, matchers: exactly(series), series: 1 }).collect()
        } else {
            vec![Part { at, matchers: Vec::new(), series: count }]
        };
        for part in parts {
            if plan.parts.len() < MAX_MERGES {
                plan.parts.push(part);
            } else {
                plan.too_many += part.series;
            }
        }
    }
    plan.alive = alive;
    plan
}

/// `the newest snapshots of 2 instances: api-1 (3s old), api-2 (7s old); 1 instance has ended`
fn in_words(plan: &Plan, end: Instant) -> String {
    let instances = |count: usize| if count == 1 { "1 instance".to_owned() } else { format!("{count} instances") };
    let shown = plan.alive.len() - plan.too_many;
    let named: Vec<String> = plan
        .alive
        .iter()
        .take(NAMED.min(shown))
        .map(|series| {
            let age = series.newest().map_or(Duration::ZERO, |newest| end.since(newest));
            format!("{} ({} old)", series.name(), time::age(age))
        })
        .collect();
    let mut words = vec![format!("the newest snapshots of {}: {}", instances(shown), named.join(", "))];
    if shown > named.len() {
        let oldest = plan.alive[..shown].last().and_then(Series::newest).map_or(Duration::ZERO, |it| end.since(it));
        words.push(format!("{} more are up to {} old", shown - named.len(), time::age(oldest)));
    }
    if plan.too_many > 0 {
        words.push(format!("{} more are left out, choose labels to see them", plan.too_many));
    }
    if plan.ended > 0 {
        words.push(format!("{} ended meanwhile and left out", instances(plan.ended)));
    }
    words.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn series(instance: &str, seconds: &[i64]) -> Series {
        let labels = [("instance".to_owned(), instance.to_owned())];
        Series::new(labels, seconds.iter().map(|second| Instant(second * SECOND)))
    }

    fn parts(plan: &Plan) -> Vec<(i64, String)> {
        let text = |part: &Part| super::super::query::braces(&part.matchers);
        plan.parts.iter().map(|part| (part.at.0 / SECOND, text(part))).collect()
    }

    #[test]
    fn the_newest_point_of_each_instance_is_fetched_once() {
        let plan = plan(&[series("a", &[10, 20, 30]), series("b", &[14, 24, 34])], Instant(38 * SECOND));
        assert_eq!(parts(&plan), [(34, "{}".to_owned()), (30, "{}".to_owned())]);
        let words = in_words(&plan, Instant(38 * SECOND));
        assert_eq!(words, "the newest snapshots of 2 instances: b (4s old), a (8s old)");
    }

    #[test]
    fn one_request_serves_instances_of_the_same_time() {
        let plan = plan(&[series("a", &[10, 20]), series("b", &[10, 20])], Instant(21 * SECOND));
        assert_eq!(parts(&plan), [(20, "{}".to_owned())]);
        assert_eq!(plan.parts[0].series, 2);
    }

    #[test]
    fn another_instance_with_an_older_point_at_that_time_is_kept_out() {
        let plan = plan(&[series("a", &[10, 20]), series("b", &[20, 30])], Instant(31 * SECOND));
        assert_eq!(parts(&plan), [(30, "{}".to_owned()), (20, "{instance=\"a\"}".to_owned())]);
    }

    #[test]
    fn what_has_ended_is_left_out_and_said() {
        let plan = plan(&[series("a", &[10, 20]), series("b", &[90, 100])], Instant(101 * SECOND));
        assert_eq!(parts(&plan), [(100, "{}".to_owned())]);
        assert!(in_words(&plan, Instant(101 * SECOND)).ends_with("; 1 instance ended meanwhile and left out"));
    }

    #[test]
    fn a_single_point_is_taken_whatever_its_age() {
        assert_eq!(parts(&plan(&[series("a", &[10])], Instant(900 * SECOND))), [(10, "{}".to_owned())]);
        assert!(plan(&[], Instant(0)).parts.is_empty());
        assert!(plan(&[series("a", &[])], Instant(0)).parts.is_empty());
    }

    #[test]
    fn requests_are_bounded_and_the_rest_is_counted() {
        let many: Vec<Series> = (0..60).map(|at| series(&format!("i{at:02}"), &[at, 1000 + at])).collect();
        let plan = plan(&many, Instant(1100 * SECOND));
        assert_eq!((plan.parts.len(), plan.too_many), (50, 10));
        let words = in_words(&plan, Instant(1100 * SECOND));
        assert!(words.starts_with("the newest snapshots of 50 instances: i59 (41s old)"), "{words}");
        assert!(words.contains("; 46 more are up to 90s old; 10 more are left out"), "{words}");
    }
}
