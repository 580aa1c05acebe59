//! Addresses of the pages on which people look at profiles: what such a page shows is a query,
//! and a query is such a page.
//!
//! Known are the explorer of Parca, which Polar Signals Cloud has as well, and the two pages of
//! Pyroscope. What is shown counts before what was asked for: a selection before the expression
//! it was made in, fixed times before "the last quarter of an hour".

use std::time::Duration;

use profiler_core::attribute::Filter;
use url::Url;

use super::connection::{Connection, Kind};
use super::query::{Matcher, ProfileQuery, Selector, TimeRange, braces};
use super::time::{self, Instant};
use super::{Request, SourceError};

/// The pages of Polar Signals Cloud; its API is somewhere else.
const CLOUD_PAGES: &str = "cloud.polarsignals.com";
const CLOUD_API: &str = "https://api.polarsignals.com/api";

/// What a page shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What to fetch.
    pub request: Request,
    /// What of it is counted.
    pub filters: Vec<Filter>,
    /// The source file that is shown, as the profile has it, and its line.
    pub source: Option<(String, Option<u32>)>,
}

/// Reads the address of a page; `None` when it is none that is known.
pub fn parse(address: &Url, configured: Option<&Connection>) -> Result<Option<Link>, SourceError> {
    let parameter = |name: &str| {
        let found = address.query_pairs().find(|(key, value)| key == name && !value.is_empty());
        found.map(|(_, value)| value.into_owned())
    };
    let either = |name: &str| parameter(&format!("{name}_a")).or_else(|| parameter(name));
    let is_cloud = address.host_str() == Some(CLOUD_PAGES);
    if let Some(expression) = either("selection").or_else(|| either("expression")) {
        let kind = if is_cloud { Kind::PolarSignals } else { Kind::Parca };
        let shown = either("merge_from").zip(either("merge_to")).and_then(|(from, to)| between(&from, &to, 1));
        let selected = || either("time_selection").and_then(|text| selection(&text));
        let evaluated = || either("from").zip(either("to")).and_then(|(from, to)| between(&from, &to, 1_000_000));
        let fixed = selected().filter(|range| matches!(range, TimeRange::Between(..)));
        let range = shown.or(fixed).or_else(evaluated).or_else(selected).unwrap_or(TimeRange::DEFAULT);
        let mut connection = connection_to(kind, address, is_cloud, configured)?;
        if is_cloud && let Some(project) = project(address) {
            connection.project = Some(project);
        }
        let query = ProfileQuery { selector: read(&expression)?, range };
        let source = parameter("source_filename").map(|file| {
            let line = parameter("source_line").and_then(|line| line.split('-').next()?.parse().ok());
            (file, line)
        });
        return Ok(Some(Link {
            request: Request { connection, query: Some(query) },
            filters: parameter("profile_filters").map(|text| filters(&text)).transpose()?.unwrap_or_default(),
            source,
        }));
    }
    // Pyroscope's explorer has the parts, its older page has all in one.
    let metric = parameter("var-profileMetricId").zip(parameter("var-serviceName"));
    let selector = match (parameter("query").filter(|query| query.contains(':')), metric) {
        (Some(query), _) => read(&query)?,
        (None, Some((metric, service))) => {
            let mut selector = read(&metric)?;
            selector.matchers.push(Matcher::equal("service_name", service));
            selector
        }
        (None, None) => return Ok(None),
    };
    let point = |text: &str| grafana_time(text, Instant::now());
    let from = parameter("from");
    let until = parameter("until").or_else(|| parameter("to")).unwrap_or_else(|| "now".to_owned());
    let range = match from.as_deref() {
        Some(from) if until == "now" && from.starts_with("now-") => {
            time::parse_length(&from["now-".len()..]).map_or(TimeRange::DEFAULT, TimeRange::Last)
        }
        Some(from) => match (point(from), point(&until)) {
            (Some(from), Some(until)) if from <= until => TimeRange::Between(from, until),
            _ => return Err(SourceError::input(format!("the time of this page can't be read: {from} to {until}"))),
        },
        None => TimeRange::DEFAULT,
    };
    let connection = connection_to(Kind::Pyroscope, address, false, configured)?;
    let query = ProfileQuery { selector, range };
    Ok(Some(Link { request: Request { connection, query: Some(query) }, filters: Vec::new(), source: None }))
}

fn read(selector: &str) -> Result<Selector, SourceError> {
    selector.parse().map_err(|error: super::query::QueryError| SourceError::input(error.to_string()))
}

/// The server behind a page: the configured one when it is there, with all that is set for it.
fn connection_to(
    kind: Kind,
    page: &Url,
    is_cloud: bool,
    configured: Option<&Connection>,
) -> Result<Connection, SourceError> {
    let wrong = |_| SourceError::input("the address of the server can't be read");
    let mut address = if is_cloud { Url::parse(CLOUD_API).map_err(wrong)? } else { page.clone() };
    address.set_query(None);
    address.set_fragment(None);
    if !is_cloud && kind == Kind::Pyroscope {
        address.set_path("/");
    }
    if let Some(configured) = configured.filter(|it| it.kind == kind && it.origin() == super::Origin::of(&address)) {
        return Ok(configured.clone());
    }
    Ok(Connection::new(kind, address))
}

/// The project in the path of a page of the cloud.
fn project(address: &Url) -> Option<String> {
    let mut parts = address.path_segments()?;
    parts.find(|part| *part == "projects")?;
    let id = parts.next()?;
    let is_id = id.len() == 36 && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_id.then(|| id.to_owned())
}

fn between(from: &str, to: &str, nanos: i64) -> Option<TimeRange> {
    let point = |text: &str| text.parse::<i64>().ok()?.checked_mul(nanos).map(Instant);
    let (from, to) = (point(from)?, point(to)?);
    (from <= to).then_some(TimeRange::Between(from, to))
}

/// `relative:minute|15` or `absolute:FROM-TO` in milliseconds, where each may be `now`.
fn selection(text: &str) -> Option<TimeRange> {
    match text.split_once(':')? {
        ("relative", rest) => {
            let (unit, number) = rest.split_once('|')?;
            let seconds = match unit {
                "second" => 1,
                "minute" => 60,
                "hour" => 3600,
                "day" => 86_400,
                "week" => 7 * 86_400,
                "year" => 365 * 86_400,
                _ => return None,
            };
            let number: u64 = number.parse().ok()?;
            Some(TimeRange::Last(Duration::from_secs(number.checked_mul(seconds)?)))
        }
        ("absolute", rest) => {
            let (from, to) = rest.split_once('-')?;
            let now = Instant::now().millis().to_string();
            let point = |text: &str| if text == "now" { now.clone() } else { text.to_owned() };
            between(&point(from), &point(to), 1_000_000)
        }
        _ => None,
    }
}

/// `now`, `now-1h`, or a number of seconds or milliseconds.
fn grafana_time(text: &str, now: Instant) -> Option<Instant> {
    if text == "now" {
        return Some(now);
    }
    if let Some(length) = text.strip_prefix("now-") {
        return time::parse_length(length).map(|length| now.before(length));
    }
    let number: i64 = text.parse().ok()?;
    // Seconds reach 11 digits in the year 5138.
    let millis = if text.len() <= 11 { number.checked_mul(1000)? } else { number };
    Some(Instant::from_millis(millis))
}

/// Reads filters as pages have them: `s:fn:~:value`, separated by commas. Values are encoded once
/// more by themselves, so they are decoded last.
fn filters(text: &str) -> Result<Vec<Filter>, SourceError> {
    let mut filters = Vec::new();
    for item in text.split(',').filter(|item| !item.is_empty()) {
        let parts: Vec<&str> = item.splitn(4, ':').collect();
        let texts = match parts[..] {
            ["p", key, ..] => preset(key).iter().map(|text| (*text).to_owned()).collect(),
            [scope @ ("s" | "f"), field, operator, value] => {
                let field = match field {
                    "b" => "bin",
                    "f" => "file",
                    "a" => "addr",
                    "ln" => "line",
                    same @ ("fn" | "sn") => same,
                    _ => return Err(unreadable(item)),
                };
                let value = percent_decoded(value);
                let scope = if scope == "f" { "frame." } else { "" };
                vec![format!("{scope}{field}{operator}{value}")]
            }
            _ => return Err(unreadable(item)),
        };
        for text in texts {
            filters.push(text.parse().map_err(|_| unreadable(item))?);
        }
    }
    Ok(filters)
}

fn unreadable(item: &str) -> SourceError {
    SourceError::input(format!("the filter `{item}` of this page can't be read"))
}

fn percent_decoded(text: &str) -> String {
    // A form's decoder also takes `+` for a space, which it is not here.
    let pair = format!("x={}", text.replace('+', "%2B"));
    url::form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}

/// What the presets of pages stand for; servers don't know them.
fn preset(key: &str) -> &'static [&'static str] {
    match key {
        "go_runtime_expected_off_cpu" => &["fn!=runtime.usleep", "fn!=runtime.futex"],
        "rust_runtime_expected_off_cpu" => &[
            "fn!=parking_lot_core::thread_parker::imp::ThreadParker::futex_wait",
            "fn!=tokio::runtime::time::Driver::park_internal",
            "fn!=futex_wait",
        ],
        "hide_v8_internals" => &["frame.bin!~node", "frame.fn!~V8"],
        "hide_python_internals" => &["frame.bin!~python3", "frame.fn!=<interpreter trampoline>", "frame.fn!=<module>"],
        "hide_libc" => &["frame.bin!~libc.so"],
        "hide_cuda_internals" => &[
            "frame.bin!~libcudnn_engines_precompiled.so",
            "frame.bin!~libcupti.so",
            "frame.bin!~libcudart.so",
            "frame.bin!~libcuda.so",
            "frame.bin!~libcudnn.so",
            "frame.bin!~libcudnn_graph.so",
            "frame.bin!~libparcagpucupti.so",
            "frame.bin!^libcublas",
        ],
        "hide_tokio_frames" => &["frame.fn!^tokio::", "frame.fn!^<tokio::", "frame.fn!~tokio::runtime"],
        "hide_rust_futures" => &[
            "frame.fn!^future",
            "frame.fn!^<future",
            "frame.fn!~futures_core",
            "frame.fn!~core::future::future::Future",
        ],
        "hide_rust_panic_backtrace" => {
            &["frame.fn!^std::panic", "frame.fn!^<core::panic", "frame.fn!^std::sys::backtrace"]
        }
        // One that came later hides nothing, rather than making the page useless.
        _ => &[],
    }
}

/// The address of the page that shows a query: with fixed times, filters and a place in a source
/// file. `None` where there is no page.
pub fn build(
    request: &Request,
    (start, end): (Instant, Instant),
    filters: &[Filter],
    source: Option<(&str, u32)>,
) -> Option<Url> {
    let connection = &request.connection;
    let Some(query) = &request.query else { return Some(connection.address.clone()) };
    let mut url = connection.address.clone();
    url.set_query(None);
    let selector = query.selector.to_string();
    match connection.kind {
        Kind::Http => return Some(connection.address.clone()),
        Kind::Pyroscope => {
            let matchers = braces(&query.selector.matchers);
            url.query_pairs_mut()
                .append_pair("query", &format!("{}{matchers}", query.selector.profile_type))
                .append_pair("from", &start.millis().to_string())
                .append_pair("until", &end.millis().to_string());
        }
        Kind::Parca | Kind::PolarSignals => {
            if connection.kind == Kind::PolarSignals {
                let project = connection.project.as_deref()?;
                url = Url::parse(&format!("https://{CLOUD_PAGES}/projects/{project}")).ok()?;
            }
            let (from, to) = (start.millis().to_string(), end.millis().to_string());
            let mut pairs = url.query_pairs_mut();
            pairs
                .append_pair("expression_a", &selector)
                .append_pair("from_a", &from)
                .append_pair("to_a", &to)
                .append_pair("time_selection_a", &format!("absolute:{from}-{to}"))
                .append_pair("merge_from_a", &start.0.to_string())
                .append_pair("merge_to_a", &end.0.to_string())
                .append_pair("selection_a", &selector);
            let items: Vec<String> = filters.iter().filter_map(page_filter).collect();
            if !items.is_empty() {
                pairs.append_pair("profile_filters", &items.join(","));
            }
            if let Some((file, line)) = source {
                pairs
                    .append_pair("dashboard_items", "source")
                    .append_pair("source_filename", file)
                    .append_pair("source_line", &line.to_string());
            }
        }
    }
    Some(url)
}

/// A filter as pages have it; those of labels have no place there.
fn page_filter(filter: &Filter) -> Option<String> {
    let text = filter.to_string();
    let (scope, rest) = text.strip_prefix("frame.").map_or(("s", text.as_str()), |rest| ("f", rest));
    let at = rest.find(['=', '!', '~', '^'])?;
    let (field, rest) = rest.split_at(at);
    let field = match field {
        "bin" => "b",
        "file" => "f",
        "addr" => "a",
        "line" => "ln",
        same @ ("fn" | "sn") => same,
        _ => return None,
    };
    let operator = ["!=", "!~", "!^", "=", "~", "^"].into_iter().find(|operator| rest.starts_with(operator))?;
    let value: String = url::form_urlencoded::byte_serialize(&rest.as_bytes()[operator.len()..]).collect();
    Some(format!("{scope}:{field}:{operator}:{}", value.replace('+', "%20")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta";

    fn link(text: &str) -> Link {
        parse(&Url::parse(text).unwrap(), None).unwrap().unwrap()
    }

    fn shown(text: &str) -> String {
        let link = link(text);
        let query = link.request.query.unwrap();
        format!("{} {} {}", link.request.connection.address, query.selector, query.range)
    }

    #[test]
    fn what_is_shown_counts_before_what_was_asked_for() {
        let expression = "expression_a=process_cpu%3Acpu%3Ananoseconds%3Acpu%3Ananoseconds%3Adelta%7Bjob%3D%22a%22%7D";
        let page = |rest: &str| shown(&format!("http://localhost:7070/?{expression}{rest}"));
        let query = format!("http://localhost:7070/ {CPU}{{job=\"a\"}}");
        assert_eq!(page(""), format!("{query} 15m"));
        assert_eq!(page("&time_selection_a=relative:hour%7C2"), format!("{query} 2h"));
        let times = "&from_a=1700000000000&to_a=1700000060000";
        let range = "2023-11-14T22:13:20Z/2023-11-14T22:14:20Z";
        assert_eq!(page(times), format!("{query} {range}"));
        assert_eq!(page(&format!("{times}&time_selection_a=relative:hour|2")), format!("{query} {range}"));
        assert_eq!(
            page("&time_selection_a=absolute:1700000000000-1700000060000&from_a=1&to_a=2"),
            format!("{query} {range}")
        );
        let selected = "&merge_from_a=1700000000000000000&merge_to_a=1700000060000000000&selection_a=memory:inuse_space:bytes:space:bytes{}";
        assert_eq!(page(selected), format!("http://localhost:7070/ memory:inuse_space:bytes:space:bytes{{}} {range}"));
    }

    #[test]
    fn filters_lines_and_projects_are_kept() {
        let link = link(
            "https://cloud.polarsignals.com/projects/11111111-2222-3333-4444-555555555555?expression=a:b:c:d:e{}\
             &profile_filters=s:fn:~:std%253A%253Avec%252Cx,f:b:!^:lib,p:hide_libc:enabled,p:unknown:enabled\
             &source_filename=src/main.rs&source_line=12-14",
        );
        let filters: Vec<String> = link.filters.iter().map(ToString::to_string).collect();
        assert_eq!(filters, ["fn~std::vec,x", "frame.bin!^lib", "frame.bin!~libc.so"]);
        assert_eq!(link.source, Some(("src/main.rs".to_owned(), Some(12))));
        let connection = link.request.connection;
        assert_eq!(connection.address.as_str(), "https://api.polarsignals.com/api");
        assert_eq!(connection.project.as_deref(), Some("11111111-2222-3333-4444-555555555555"));
    }

    #[test]
    fn both_pages_of_pyroscope_are_read() {
        assert_eq!(
            shown(
                "http://localhost:4040/?query=process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name%3D%22x%22}&from=now-1h&until=now"
            ),
            "http://localhost:4040/ process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=\"x\"} 1h"
        );
        assert_eq!(
            shown(
                "http://localhost:4040/a/grafana-pyroscope-app/explore?var-serviceName=x&var-profileMetricId=process_cpu:cpu:nanoseconds:cpu:nanoseconds&from=1700000000000&to=1700000060000"
            ),
            "http://localhost:4040/ process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=\"x\"} 2023-11-14T22:13:20Z/2023-11-14T22:14:20Z"
        );
    }

    #[test]
    fn a_configured_server_is_used_with_all_that_is_set_for_it() {
        let page = Url::parse(&format!("https://parca.example/x?expression={CPU}{{}}")).unwrap();
        let mut configured = Connection::new(Kind::Parca, Url::parse("https://parca.example/api").unwrap());
        configured.user = Some("me".to_owned());
        assert_eq!(parse(&page, Some(&configured)).unwrap().unwrap().request.connection, configured);
        // Another port is another server.
        let other = Url::parse(&format!("https://parca.example:8443/x?expression={CPU}{{}}")).unwrap();
        assert_eq!(parse(&other, Some(&configured)).unwrap().unwrap().request.connection.user, None);
    }

    #[test]
    fn what_is_built_is_read_as_the_same() {
        let query = settings_query();
        let times = (Instant(1_700_000_000_123_456_789), Instant(1_700_000_060_000_000_000));
        let filters: Vec<Filter> =
            ["fn~a,b: c+d%", "frame.file=x y.rs", "line=3"].iter().map(|text| text.parse().unwrap()).collect();
        for (kind, address) in [(Kind::Parca, "http://localhost:7070/"), (Kind::Pyroscope, "http://localhost:4040/")] {
            let request =
                Request { connection: Connection::new(kind, Url::parse(address).unwrap()), query: Some(query.clone()) };
            let url = build(&request, times, &filters, Some(("src/a b.rs", 7))).unwrap();
            let back = link(url.as_str());
            assert_eq!(back.request.connection, request.connection);
            assert_eq!(back.request.query.as_ref().unwrap().selector, query.selector);
            if kind == Kind::Parca {
                assert_eq!(back.request.query.unwrap().range, TimeRange::Between(times.0, times.1));
                assert_eq!(back.filters, filters);
                assert_eq!(back.source, Some(("src/a b.rs".to_owned(), Some(7))));
            }
        }
    }

    fn settings_query() -> ProfileQuery {
        let selector = format!("{CPU}{{job=\"a b\",pod=~\"x|y\"}}");
        ProfileQuery { selector: selector.parse().unwrap(), range: TimeRange::DEFAULT }
    }

    #[test]
    fn other_addresses_are_no_pages() {
        for text in ["http://localhost:6060/debug/pprof/heap", "http://x/p.pb.gz?query=a"] {
            assert_eq!(parse(&Url::parse(text).unwrap(), None).unwrap(), None, "{text}");
        }
    }
}
