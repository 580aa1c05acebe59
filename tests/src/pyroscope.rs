//! A server of Pyroscope's kind: Connect with protocol buffers.
//!
//! As the real one it wants times in milliseconds, puts labels of its own on every series, anchors
//! regular expressions, says nothing of no data but an empty profile, and adds up the points of
//! series by steps: a point has what was stored in the step that ends there. Without that a client
//! would be right by chance. The real server could not be had for tests; what this one does is
//! what is published about it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prost::Message;

use crate::http::{Asked, Does, HttpServer};
use crate::mini::Mini;
use crate::pprof;
use crate::stored::{Kind, Matcher, Stored, inflate, merged};

const PROTO: &str = "application/proto";
const QUERIER: &str = "querier.v1.QuerierService";

/// What is stored, and how the server behaves.
#[derive(Debug, Default)]
pub struct Pyroscope {
    stored: Vec<Stored>,
    /// What to do with the next requests, instead of answering them.
    pub faults: VecDeque<Does>,
    /// Whose data it is; others see nothing of it.
    pub tenant: Option<String>,
    /// What has to stand in the header `authorization`, where a proxy in front asks for it.
    pub authorization: Option<String>,
}

/// A server that can be changed while it runs.
#[derive(Debug)]
pub struct FakePyroscope {
    /// Serves.
    pub http: HttpServer,
    pyroscope: Arc<Mutex<Pyroscope>>,
}

impl FakePyroscope {
    /// Starts an empty server that everybody may ask.
    pub fn start() -> Self {
        let pyroscope = Arc::<Mutex<Pyroscope>>::default();
        let own = Arc::clone(&pyroscope);
        let http = HttpServer::start(move |asked| lock(&own).answer(asked));
        Self { http, pyroscope }
    }

    /// The server, to look at or to change.
    pub fn pyroscope(&self) -> MutexGuard<'_, Pyroscope> {
        lock(&self.pyroscope)
    }

    /// Methods that were called.
    pub fn calls(&self) -> Vec<String> {
        self.http.paths().iter().filter_map(|path| Some(path.rsplit('/').next()?.to_owned())).collect()
    }
}

fn lock(pyroscope: &Mutex<Pyroscope>) -> MutexGuard<'_, Pyroscope> {
    pyroscope.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A refusal: a code of Connect and its words.
struct Refused(&'static str, String);

impl Pyroscope {
    /// Stores a profile in the small language, taken at a time.
    pub fn store(&mut self, name: &str, labels: &[(&str, &str)], time_ns: i64, profile: &str) {
        let mut profile = Mini::parse(profile).profile;
        profile.time_nanos = time_ns;
        let mut all = BTreeMap::from([("__name__".to_owned(), name.to_owned())]);
        all.extend(labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        self.stored.push(Stored { labels: all, profile });
    }

    /// What is stored: labels, and the profile.
    pub fn stored(&self) -> Vec<(BTreeMap<String, String>, pprof::Profile)> {
        self.stored.iter().map(|stored| (stored.labels.clone(), stored.profile.clone())).collect()
    }

    fn answer(&mut self, asked: &Asked) -> Does {
        if let Some(fault) = self.faults.pop_front() {
            return fault;
        }
        let header = |name: &str| asked.headers.get(name).map(String::as_str);
        if self.authorization.as_deref().is_some_and(|wanted| header("authorization") != Some(wanted)) {
            return Does::status(401, "text/plain", "Unauthorized\n");
        }
        let mut parts = asked.path().rsplit('/');
        let (method, service) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        if asked.method != "POST" {
            return Does::status(405, "text/plain", "Method Not Allowed\n");
        }
        if header("content-type") != Some(PROTO) || header("connect-protocol-version") != Some("1") {
            return Does::status(415, "text/plain", "");
        }
        let own = self.tenant.is_none() || self.tenant.as_deref() == header("x-scope-orgid");
        match self.call(service, method, &asked.body, own) {
            Ok(answer) => Does::ok(PROTO, answer),
            Err(Refused(code, message)) => {
                let status = match code {
                    "invalid_argument" => 400,
                    "unimplemented" => 404,
                    _ => 500,
                };
                let body = serde_json::json!({ "code": code, "message": message }).to_string();
                Does::status(status, "application/json", body)
            }
        }
    }

    fn call(&mut self, service: &str, method: &str, message: &[u8], own: bool) -> Result<Vec<u8>, Refused> {
        let stored: Vec<&Stored> = if own { self.stored.iter().collect() } else { Vec::new() };
        match (service, method) {
            (QUERIER, "ProfileTypes") => {
                let request: Times = read(message)?;
                let (start, end) = times(request.start, request.end)?;
                let seen = stored.iter().filter(|stored| (start..=end).contains(&millis(stored)));
                let mut kinds: Vec<Kind> = seen.flat_map(|stored| stored.kinds()).collect();
                kinds.sort();
                kinds.dedup();
                let profile_types = kinds.into_iter().map(|kind| ProfileType {
                    id: id(&kind),
                    name: kind.name,
                    sample_type: kind.sample_type,
                    sample_unit: kind.sample_unit,
                    period_type: kind.period_type,
                    period_unit: kind.period_unit,
                });
                Ok(ProfileTypes { profile_types: profile_types.collect() }.encode_to_vec())
            }
            (QUERIER, "LabelNames") => {
                let request: LabelNamesRequest = read(message)?;
                let (start, end) = times(request.start, request.end)?;
                let matchers = all_matchers(&request.matchers)?;
                let seen = stored.iter().filter(|stored| (start..=end).contains(&millis(stored)));
                let fit = seen.filter(|stored| matchers.iter().all(|matcher| matcher.holds(&stored.labels)));
                let mut names: Vec<String> = fit.flat_map(|stored| stored.labels.keys().cloned()).collect();
                names.extend(["__profile_type__", "__period_type__"].map(str::to_owned));
                names.sort();
                names.dedup();
                Ok(Names { names }.encode_to_vec())
            }
            (QUERIER, "LabelValues") => {
                let request: LabelValuesRequest = read(message)?;
                let (start, end) = times(request.start, request.end)?;
                let matchers = all_matchers(&request.matchers)?;
                let seen = stored.iter().filter(|stored| (start..=end).contains(&millis(stored)));
                let fit = seen.filter(|stored| matchers.iter().all(|matcher| matcher.holds(&stored.labels)));
                let mut names: Vec<String> =
                    fit.filter_map(|stored| stored.labels.get(&request.name).cloned()).collect();
                names.sort();
                names.dedup();
                Ok(Names { names }.encode_to_vec())
            }
            (QUERIER, "SelectMergeProfile") => {
                let request: Select = read(message)?;
                let selected = selected(&stored, &request)?;
                let mut profile = merged(&selected, false);
                profile.time_nanos = request.end * 1_000_000;
                Ok(pprof::raw(&profile))
            }
            (QUERIER, "SelectSeries") => series(&stored, &read(message)?),
            ("push.v1.PusherService", "Push") => {
                for series in read::<Push>(message)?.series {
                    let labels: BTreeMap<String, String> =
                        series.labels.into_iter().map(|label| (label.name, label.value)).collect();
                    if !labels.contains_key("__name__") || !labels.contains_key("service_name") {
                        return Err(Refused(
                            "invalid_argument",
                            "the series needs a name and a service_name".to_owned(),
                        ));
                    }
                    for sample in series.samples {
                        let profile = pprof::Profile::decode(&inflate(&sample.raw_profile)[..])
                            .map_err(|error| Refused("invalid_argument", error.to_string()))?;
                        self.stored.push(Stored { labels: labels.clone(), profile });
                    }
                }
                Ok(Vec::new())
            }
            _ => Err(Refused("unimplemented", format!("{service}.{method} is not implemented"))),
        }
    }
}

/// The sums of every series, by steps that begin at the start.
fn series(stored: &[&Stored], request: &SelectSeries) -> Result<Vec<u8>, Refused> {
    let Some(step) =
        i64::try_from(Duration::from_secs_f64(request.step.max(0.0)).as_millis()).ok().filter(|&it| it > 0)
    else {
        return Err(Refused("invalid_argument", "step must be positive".to_owned()));
    };
    let select = Select {
        profile_type_id: request.profile_type_id.clone(),
        label_selector: request.label_selector.clone(),
        start: request.start,
        end: request.end,
    };
    let mut all: BTreeMap<Vec<(String, String)>, BTreeMap<i64, f64>> = BTreeMap::new();
    for (stored, column) in selected(stored, &select)? {
        let labels = request.group_by.iter().filter_map(|name| Some((name.clone(), stored.labels.get(name)?.clone())));
        let steps = (millis(stored) - request.start + step - 1) / step;
        let point = request.start + steps * step;
        let value: i64 = stored.profile.sample.iter().map(|sample| sample.value[column]).sum();
        *all.entry(labels.collect()).or_default().entry(point).or_default() += value as f64;
    }
    let series = all.into_iter().map(|(labels, points)| Series {
        labels: labels.into_iter().map(|(name, value)| LabelPair { name, value }).collect(),
        points: points.into_iter().map(|(timestamp, value)| Point { value, timestamp }).collect(),
    });
    Ok(SelectSeriesResponse { series: series.collect() }.encode_to_vec())
}

/// Stored profiles, each with the column of the type.
fn selected<'s>(stored: &[&'s Stored], request: &Select) -> Result<Vec<(&'s Stored, usize)>, Refused> {
    let (start, end) = times(request.start, request.end)?;
    if !matches!(request.profile_type_id.split(':').count(), 5 | 6) {
        return Err(Refused("invalid_argument", format!("profile-type ID `{}` is wrong", request.profile_type_id)));
    }
    let matchers = all_matchers(std::slice::from_ref(&request.label_selector))?;
    Ok(stored
        .iter()
        .filter(|stored| (start..=end).contains(&millis(stored)))
        .filter(|stored| matchers.iter().all(|matcher| matcher.holds(&stored.labels)))
        .filter_map(|stored| {
            Some((*stored, stored.kinds().iter().position(|kind| id(kind) == request.profile_type_id)?))
        })
        .collect())
}

fn all_matchers(selectors: &[String]) -> Result<Vec<Matcher>, Refused> {
    let mut all = Vec::new();
    for selector in selectors {
        let matchers = selector.strip_prefix('{').and_then(|labels| Matcher::parse(labels, true));
        all.extend(matchers.ok_or_else(|| Refused("invalid_argument", format!("parse error in {selector}")))?);
    }
    Ok(all)
}

/// Nothing marks what adds up.
fn id(kind: &Kind) -> String {
    Kind { delta: false, ..kind.clone() }.to_string()
}

fn millis(stored: &Stored) -> i64 {
    stored.profile.time_nanos / 1_000_000
}

/// Times in other units than milliseconds are far from the years that anybody asks for.
fn times(start: i64, end: i64) -> Result<(i64, i64), Refused> {
    const YEARS: std::ops::Range<i64> = 1_000_000_000_000..5_000_000_000_000;
    if YEARS.contains(&start) && YEARS.contains(&end) && start <= end {
        Ok((start, end))
    } else {
        Err(Refused("invalid_argument", format!("{start} to {end} is no time")))
    }
}

fn read<M: Message + Default>(bytes: &[u8]) -> Result<M, Refused> {
    M::decode(bytes).map_err(|error| Refused("invalid_argument", error.to_string()))
}

#[derive(Clone, PartialEq, Message)]
struct Times {
    #[prost(int64, tag = "1")]
    start: i64,
    #[prost(int64, tag = "2")]
    end: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ProfileTypes {
    #[prost(message, repeated, tag = "1")]
    profile_types: Vec<ProfileType>,
}

#[derive(Clone, PartialEq, Message)]
struct ProfileType {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "4")]
    sample_type: String,
    #[prost(string, tag = "5")]
    sample_unit: String,
    #[prost(string, tag = "6")]
    period_type: String,
    #[prost(string, tag = "7")]
    period_unit: String,
}

#[derive(Clone, PartialEq, Message)]
struct LabelNamesRequest {
    #[prost(string, repeated, tag = "1")]
    matchers: Vec<String>,
    #[prost(int64, tag = "2")]
    start: i64,
    #[prost(int64, tag = "3")]
    end: i64,
}

#[derive(Clone, PartialEq, Message)]
struct LabelValuesRequest {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, repeated, tag = "2")]
    matchers: Vec<String>,
    #[prost(int64, tag = "3")]
    start: i64,
    #[prost(int64, tag = "4")]
    end: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Names {
    #[prost(string, repeated, tag = "1")]
    names: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Select {
    #[prost(string, tag = "1")]
    profile_type_id: String,
    #[prost(string, tag = "2")]
    label_selector: String,
    #[prost(int64, tag = "3")]
    start: i64,
    #[prost(int64, tag = "4")]
    end: i64,
}

#[derive(Clone, PartialEq, Message)]
struct SelectSeries {
    #[prost(string, tag = "1")]
    profile_type_id: String,
    #[prost(string, tag = "2")]
    label_selector: String,
    #[prost(int64, tag = "3")]
    start: i64,
    #[prost(int64, tag = "4")]
    end: i64,
    #[prost(string, repeated, tag = "5")]
    group_by: Vec<String>,
    #[prost(double, tag = "6")]
    step: f64,
}

#[derive(Clone, PartialEq, Message)]
struct SelectSeriesResponse {
    #[prost(message, repeated, tag = "1")]
    series: Vec<Series>,
}

#[derive(Clone, PartialEq, Message)]
struct Series {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<LabelPair>,
    #[prost(message, repeated, tag = "2")]
    points: Vec<Point>,
}

#[derive(Clone, PartialEq, Message)]
struct Point {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

#[derive(Clone, PartialEq, Message)]
struct LabelPair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Push {
    #[prost(message, repeated, tag = "1")]
    series: Vec<PushSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct PushSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<LabelPair>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<PushSample>,
}

#[derive(Clone, PartialEq, Message)]
struct PushSample {
    #[prost(bytes = "vec", tag = "1")]
    raw_profile: Vec<u8>,
}
