//! Pyroscope, and hosted servers that speak like it: Connect, with protocol buffers.
//!
//! A query is one `SelectMergeProfile`, whose answer is a pprof without any wrapping. Types that
//! are the state of a moment are asked for the newest upload interval alone: servers tell no
//! points of single instances, and adding up a longer time would count the heap many times.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use prost::Message;
use prost::bytes::Bytes;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::Deserialize;

use super::connection::{Connection, may_carry_secrets};
use super::error::{SourceError, SourceErrorKind as Kind};
use super::http::{Http, is_page, words};
use super::progress::Progress;
use super::query::{ProfileQuery, ProfileType, TimeRange, braces};
use super::time::{self, Instant};
use super::wire::push::v1 as store;
use super::wire::querier::v1 as wire;
use super::{Credentials, Description, Fetched, Pass, ProfileSource, Push};

const QUERY_DEADLINE: Duration = Duration::from_secs(75);
const LOOKUP_DEADLINE: Duration = Duration::from_secs(20);
/// How often programs upload, unless they are told otherwise.
const UPLOAD_INTERVAL: Duration = Duration::from_secs(15);
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

    async fn fetch(&self, query: &ProfileQuery, progress: &Progress) -> Result<Fetched, SourceError> {
        let (mut start, mut end) = query.range.at(Instant::now());
        let selector = &query.selector;
        let no_data = || {
            let range = match query.range {
                TimeRange::Last(length) => format!("in the last {}", time::length(length)),
                other => format!("in {other}"),
            };
            self.http.error(Kind::NoData, format!("no samples of {selector} {range}"))
        };
        let mut notes = vec![format!("{}: the time from {start} to {end}", self.http.server())];
        let mut name = query.to_string();
        if selector.profile_type.is_snapshot(false) {
            progress.step("looking for the newest snapshot");
            let request = wire::SelectSeriesRequest {
                profile_type_id: selector.profile_type.to_string(),
                label_selector: braces(&selector.matchers),
                start: start.millis(),
                end: end.millis(),
                group_by: Vec::new(),
                step: UPLOAD_INTERVAL.as_secs_f64(),
            };
            let response: wire::SelectSeriesResponse =
                self.call("/querier.v1.QuerierService/SelectSeries", &request, QUERY_DEADLINE, progress).await?;
            let points = response.series.iter().flat_map(|series| &series.points);
            let newest = points.filter(|point| point.value != 0.0).map(|point| point.timestamp).max();
            let newest = Instant::from_millis(newest.ok_or_else(no_data)?);
            let age = time::age(end.since(newest));
            // A point stands for the interval that ends or begins there; one interval is fetched.
            (start, end) = (newest.before(UPLOAD_INTERVAL).after(Duration::from_millis(1)), newest);
            notes = vec![format!(
                "the newest {} of uploads, {age} old; an instance that uploads more often counts more than once",
                time::length(UPLOAD_INTERVAL)
            )];
            name = name.strip_suffix(&format!(" {}", query.range)).unwrap_or(&name).to_owned() + " now";
        }
        progress.step("waiting for the server");
        let request = wire::SelectMergeProfileRequest {
            profile_type_id: selector.profile_type.to_string(),
            label_selector: braces(&selector.matchers),
            start: start.millis(),
            end: end.millis(),
        };
        let pprof =
            self.send("/querier.v1.QuerierService/SelectMergeProfile", &request, QUERY_DEADLINE, progress).await?;
        Ok(Fetched {
            times: Some((start, end)),
            notes,
            when_empty: Some(no_data().to_string()),
            ..Fetched::new(name, vec![pprof])
        })
    }
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
            let (start, end) = of.range.at(Instant::now());
            let request = wire::LabelNamesRequest {
                matchers: vec![braces(&of.selector.matchers)],
                start: start.millis(),
                end: end.millis(),
            };
            let response: wire::LabelNamesResponse = self
                .call("/querier.v1.QuerierService/LabelNames", &request, LOOKUP_DEADLINE, &Progress::default())
                .await?;
            // What is between underscores is the server's own.
            Ok(response.names.into_iter().filter(|name| !name.starts_with("__")).collect())
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
            let query = query.ok_or_else(|| {
                SourceError::input(format!("{} has many profiles; say which with a query", self.http.server()))
            })?;
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
