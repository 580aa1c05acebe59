//! Pyroscope, and hosted servers that speak like it: Connect, with protocol buffers.
//!
//! A query is one `SelectMergeProfile`, whose answer is a pprof without any wrapping. Types that
//! are the state of a moment go by [`snapshot`]: the points of single instances are those of
//! `SelectSeries` grouped by every label that tells them apart, a second each. A point stands for
//! what was uploaded in the second that ends there.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use prost::Message;
use prost::bytes::Bytes;
use prost::encoding::{DecodeContext, decode_key, skip_field};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::Deserialize;

use super::connection::{Connection, may_carry_secrets};
use super::error::{SourceError, SourceErrorKind as Kind};
use super::http::{Http, is_page, words};
use super::progress::Progress;
use super::query::{ProfileQuery, ProfileType, Selector, braces};
use super::snapshot::{self, Series, Snapshots};
use super::time::Instant;
use super::wire::push::v1 as store;
use super::wire::querier::v1 as wire;
use super::{Credentials, Description, Fetched, Pass, ProfileSource, Push};

const QUERY_DEADLINE: Duration = Duration::from_secs(75);
const LOOKUP_DEADLINE: Duration = Duration::from_secs(20);
/// How far apart two points of a series can be told from each other.
const STEP: Duration = Duration::from_secs(1);
/// Labels that all series of a type have alike begin with this; but for the last, which tells
/// processes apart.
const INTERNAL: &str = "__";
const SESSION: &str = "__session_id__";
/// What is looked at for types and labels when the query says no time.
const RECENT: Duration = Duration::from_hours(1);

/// A server.
#[derive(Debug)]
pub(super) struct Pyroscope {
    connection: Connection,
    credentials: Arc<dyn Credentials>,
    http: Http,
}

impl Pyroscope {
    pub(super) fn new(connection: &Connection, credentials: &Arc<dyn Credentials>) -> Result<Self, SourceError> {
        let http = Http::new(connection)?;
        Ok(Self { connection: connection.clone(), credentials: Arc::clone(credentials), http })
    }

    async fn call<A: Message + Default>(
        &self,
        method: &str,
        request: &impl Message,
        deadline: Duration,
        progress: &Progress,
    ) -> Result<A, SourceError> {
        let body = self.send(method, request, deadline, progress).await?;
        A::decode(body).map_err(|_| self.http.error(Kind::Protocol, "its answer is no message of this call"))
    }

    /// Calls a method. What was refused for want of a better token is tried once more with one.
    async fn send(
        &self,
        method: &str,
        request: &impl Message,
        deadline: Duration,
        progress: &Progress,
    ) -> Result<Bytes, SourceError> {
        let pass = self.credentials.authorization(&self.connection).await?;
        let first = self.send_as(method, request, pass.as_ref(), deadline, progress).await;
        match (first, pass) {
            (Err(error), Some(pass))
                if error.kind == Kind::SignIn && self.credentials.renew(&self.connection, &pass).await? =>
            {
                let pass = self.credentials.authorization(&self.connection).await?;
                self.send_as(method, request, pass.as_ref(), deadline, progress).await
            }
            (result, _) => result,
        }
    }

    async fn send_as(
        &self,
        method: &str,
        request: &impl Message,
        pass: Option<&Pass>,
        deadline: Duration,
        progress: &Progress,
    ) -> Result<Bytes, SourceError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/proto"));
        headers.insert("connect-protocol-version", HeaderValue::from_static("1"));
        if let Some(pass) = pass {
            may_carry_secrets(&self.connection.address)?;
            if let Ok(mut value) = HeaderValue::from_str(&pass.header.0) {
                value.set_sensitive(true);
                headers.insert(AUTHORIZATION, value);
            }
        }
        if let Some(tenant) = &self.connection.tenant {
            let value = HeaderValue::from_str(tenant)
                .map_err(|_| SourceError::input(format!("source.tenant: `{tenant}` can't be sent")))?;
            headers.insert("x-scope-orgid", value);
        }
        let request =
            self.http.client().post(self.connection.below(method)).headers(headers).body(request.encode_to_vec());
        let reply = self.http.send(request, deadline, progress).await?;
        if !reply.status.is_success() {
            // Connect says why in JSON; a proxy in front says something else.
            if let Ok(refusal) = serde_json::from_slice::<Refusal>(&reply.body) {
                return Err(self.refused(&refusal, deadline));
            }
            if let Some(refusal) = self.http.refusal(&reply) {
                return Err(refusal);
            }
        }
        let is_message =
            reply.headers.get(CONTENT_TYPE).is_none_or(|kind| kind.as_bytes().starts_with(b"application/proto"));
        if is_page(&reply) || !is_message {
            return Err(self.http.error(Kind::Protocol, format!("it sent {}", words(&reply))));
        }
        Ok(reply.body)
    }

    fn refused(&self, refusal: &Refusal, deadline: Duration) -> SourceError {
        let kind = match refusal.code.as_str() {
            "invalid_argument" | "out_of_range" | "failed_precondition" => Kind::Query,
            "unauthenticated" => Kind::SignIn,
            "permission_denied" => Kind::Permission,
            "not_found" => Kind::NoData,
            "deadline_exceeded" => return self.http.error(Kind::Timeout, format!("{} s", deadline.as_secs())),
            "resource_exhausted" if refusal.message.contains("larg") || refusal.message.contains("size") => {
                Kind::TooLarge
            }
            "resource_exhausted" | "unavailable" => Kind::Busy,
            "unimplemented" => Kind::Protocol,
            _ => Kind::Server,
        };
        self.http.error(kind, refusal.message.chars().take(300).collect::<String>())
    }

    async fn merge(
        &self,
        selector: &Selector,
        (start, end): (Instant, Instant),
        progress: &Progress,
    ) -> Result<Bytes, SourceError> {
        let request = wire::SelectMergeProfileRequest {
            profile_type_id: selector.profile_type.to_string(),
            label_selector: braces(&selector.matchers),
            start: start.millis(),
            end: end.millis(),
        };
        self.send("/querier.v1.QuerierService/SelectMergeProfile", &request, QUERY_DEADLINE, progress).await
    }

    async fn fetch(&self, query: &ProfileQuery, progress: &Progress) -> Result<Fetched, SourceError> {
        let (start, end) = query.range.at(Instant::now());
        let no_data = self.http.error(Kind::NoData, query.no_samples());
        if query.selector.profile_type.is_snapshot(false) {
            return snapshot::fetch(self, query, (start, end), no_data, progress).await;
        }
        progress.step("waiting for the server");
        let pprof = self.merge(&query.selector, (start, end), progress).await?;
        if !has_samples(&pprof) {
            return Err(no_data);
        }
        Ok(Fetched {
            times: Some((start, end)),
            notes: vec![format!("as it was asked for: the time from {start} to {end}")],
            when_empty: Some(no_data.to_string()),
            ..Fetched::new(query.to_string(), vec![pprof])
        })
    }

    async fn label_names(
        &self,
        selector: &Selector,
        (start, end): (Instant, Instant),
    ) -> Result<Vec<String>, SourceError> {
        let request = wire::LabelNamesRequest {
            matchers: vec![braces(&selector.matchers)],
            start: start.millis(),
            end: end.millis(),
        };
        let response: wire::LabelNamesResponse =
            self.call("/querier.v1.QuerierService/LabelNames", &request, LOOKUP_DEADLINE, &Progress::default()).await?;
        Ok(response.names)
    }
}

impl Snapshots for Pyroscope {
    fn series<'a>(
        &'a self,
        selector: &'a Selector,
        (start, end): (Instant, Instant),
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Vec<Series>, SourceError>> {
        Box::pin(async move {
            let mut group_by = self.label_names(selector, (start, end)).await?;
            group_by.retain(|name| !name.starts_with(INTERNAL) || name == SESSION);
            let request = wire::SelectSeriesRequest {
                profile_type_id: selector.profile_type.to_string(),
                label_selector: braces(&selector.matchers),
                start: start.millis(),
                end: end.millis(),
                group_by,
                step: STEP.as_secs_f64(),
            };
            let response: wire::SelectSeriesResponse =
                self.call("/querier.v1.QuerierService/SelectSeries", &request, QUERY_DEADLINE, progress).await?;
            Ok(response.series.into_iter().map(Series::from).collect())
        })
    }

    fn point<'a>(
        &'a self,
        selector: Selector,
        at: Instant,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Bytes, SourceError>> {
        let start = at.before(STEP).after(Duration::from_millis(1));
        Box::pin(async move { self.merge(&selector, (start, at), progress).await })
    }
}

impl From<wire::Series> for Series {
    fn from(series: wire::Series) -> Self {
        let points = series.points.into_iter().filter(|point| point.value != 0.0);
        Self::new(
            series.labels.into_iter().map(|label| (label.name, label.value)),
            points.map(|point| Instant::from_millis(point.timestamp)),
        )
    }
}

/// Whether a pprof holds a sample. One of nothing may lack even its value types, and no reader would
/// know why. What is no pprof is for readers to judge.
fn has_samples(mut pprof: &[u8]) -> bool {
    const SAMPLE: u32 = 2;
    while !pprof.is_empty() {
        let Ok((field, kind)) = decode_key(&mut pprof) else { return true };
        if field == SAMPLE || skip_field(kind, field, &mut pprof, DecodeContext::default()).is_err() {
            return true;
        }
    }
    false
}

/// An error of Connect.
#[derive(Deserialize)]
struct Refusal {
    code: String,
    #[serde(default)]
    message: String,
}

impl ProfileSource for Pyroscope {
    fn describe(&self) -> Description {
        Description { kind: "Pyroscope", server: self.http.server().to_owned(), has_queries: true }
    }

    fn profile_types<'a>(&'a self, progress: &'a Progress) -> BoxFuture<'a, Result<Vec<ProfileType>, SourceError>> {
        Box::pin(async move {
            let now = Instant::now();
            let request = wire::ProfileTypesRequest { start: now.before(RECENT).millis(), end: now.millis() };
            let response: wire::ProfileTypesResponse =
                self.call("/querier.v1.QuerierService/ProfileTypes", &request, LOOKUP_DEADLINE, progress).await?;
            let mut types: Vec<ProfileType> =
                response.profile_types.iter().filter_map(|of| of.id.parse().ok()).collect();
            types.sort();
            types.dedup();
            Ok(types)
        })
    }

    fn labels<'a>(&'a self, of: &'a ProfileQuery) -> BoxFuture<'a, Result<Vec<String>, SourceError>> {
        Box::pin(async move {
            let mut names = self.label_names(&of.selector, of.range.at(Instant::now())).await?;
            names.retain(|name| !name.starts_with(INTERNAL));
            Ok(names)
        })
    }

    fn values<'a>(&'a self, label: &'a str, of: &'a ProfileQuery) -> BoxFuture<'a, Result<Vec<String>, SourceError>> {
        Box::pin(async move {
            let (start, end) = of.range.at(Instant::now());
            let request = wire::LabelValuesRequest {
                name: label.to_owned(),
                matchers: vec![braces(&of.selector.matchers)],
                start: start.millis(),
                end: end.millis(),
            };
            let response: wire::LabelValuesResponse = self
                .call("/querier.v1.QuerierService/LabelValues", &request, LOOKUP_DEADLINE, &Progress::default())
                .await?;
            Ok(response.names)
        })
    }

    fn fetch<'a>(
        &'a self,
        query: Option<&'a ProfileQuery>,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Fetched, SourceError>> {
        Box::pin(async move {
            let query = query.ok_or_else(|| SourceError::needs_query(self.http.server()))?;
            self.fetch(query, progress).await
        })
    }

    fn push(&self, push: Push) -> BoxFuture<'_, Result<(), SourceError>> {
        Box::pin(async move {
            let labels = push.labels.into_iter().map(|(name, value)| store::LabelPair { name, value }).collect();
            let samples = vec![store::RawSample { raw_profile: push.pprof }];
            let request = store::PushRequest { series: vec![store::RawProfileSeries { labels, samples }] };
            let _: store::PushResponse =
                self.call("/push.v1.PusherService/Push", &request, QUERY_DEADLINE, &Progress::default()).await?;
            Ok(())
        })
    }
}
