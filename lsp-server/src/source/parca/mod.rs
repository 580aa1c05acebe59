//! Parca, and Polar Signals Cloud, which speaks the same.
//!
//! A query is one MERGE of the whole time, answered as one pprof. Three things are different from
//! what one would expect:
//! * **Snapshots** (heap in use, goroutines) must not be added up over a time; [`snapshot`] says
//!   what is done instead.
//! * **The header** of a merged pprof has a time that overflowed, and no duration; the times of
//!   the query are handed over beside it.
//!
//! * **Lines** of programs that came with bare addresses are those that functions start on: the
//!   server finds no others in debug info. What this machine has binaries of is looked up again.
//!
//! The unit is the answer's: servers multiply samples by their period, or don't. Comparing and
//! filters are done here on what was fetched, and not by the server: exact, and no new query.

mod call;
mod status;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use prost::bytes::Bytes;

use super::connection::{Connection, Kind};
use super::error::{SourceError, SourceErrorKind};
use super::progress::Progress;
use super::query::{ProfileQuery, ProfileType, Selector};
use super::snapshot::{self, Series, Snapshots};
use super::time::Instant;
use super::wire::Duration as WireDuration;
use super::wire::parca::profilestore::v1alpha1 as store;
use super::wire::parca::query::v1alpha1 as wire;
use super::wire::polarsignals::project::v1alpha1 as cloud;
use super::{Credentials, Description, Fetched, ProfileSource, Project, Push};
use call::Caller;

pub(super) use call::channel;
pub(super) use status::failure;

const QUERY: &str = "/parca.query.v1alpha1.QueryService/Query";
const QUERY_RANGE: &str = "/parca.query.v1alpha1.QueryService/QueryRange";
const PROFILE_TYPES: &str = "/parca.query.v1alpha1.QueryService/ProfileTypes";
const LABELS: &str = "/parca.query.v1alpha1.QueryService/Labels";
const VALUES: &str = "/parca.query.v1alpha1.QueryService/Values";
const GET_PROJECTS: &str = "/polarsignals.project.v1alpha1.ProjectService/GetProjects";
const WRITE_RAW: &str = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw";

/// Servers cut answers after a minute; what is left is for the way.
const QUERY_DEADLINE: Duration = Duration::from_secs(75);
/// What is looked up while somebody builds a query.
const LOOKUP_DEADLINE: Duration = Duration::from_secs(20);

/// A server.
#[derive(Debug)]
pub(super) struct Parca {
    kind: Kind,
    caller: Caller,
}

impl Parca {
    pub(super) fn new(connection: &Connection, credentials: &Arc<dyn Credentials>) -> Result<Self, SourceError> {
        Ok(Self { kind: connection.kind, caller: Caller::new(connection, Arc::clone(credentials))? })
    }

    async fn merge(
        &self,
        selector: &Selector,
        start: Instant,
        end: Instant,
        progress: &Progress,
    ) -> Result<Bytes, SourceError> {
        let request = wire::QueryRequest {
            mode: wire::query_request::Mode::Merge.into(),
            options: Some(wire::query_request::Options::Merge(wire::MergeProfile {
                query: selector.to_string(),
                start: Some(start.into()),
                end: Some(end.into()),
            })),
            report_type: wire::query_request::ReportType::Pprof.into(),
        };
        let response: wire::QueryResponse = self.caller.call(QUERY, &request, QUERY_DEADLINE, progress).await?;
        match response.report {
            Some(wire::query_response::Report::Pprof(pprof)) => Ok(pprof),
            None => Err(self.caller.error(SourceErrorKind::Protocol, "its answer holds no profile")),
        }
    }

    async fn fetch(&self, query: &ProfileQuery, progress: &Progress) -> Result<Fetched, SourceError> {
        let (start, end) = query.range.at(Instant::now());
        // The cloud has a symboliser of its own.
        let looks_up_lines = self.kind == Kind::Parca;
        if query.selector.profile_type.is_snapshot(true) {
            let fetched = snapshot::fetch(self, query, (start, end), self.no_data(query), progress).await?;
            return Ok(Fetched { looks_up_lines, ..fetched });
        }
        progress.step("waiting for the server");
        let pprof = self.merge(&query.selector, start, end, progress).await?;
        Ok(Fetched {
            times: Some((start, end)),
            notes: vec![format!("as it was asked for: the time from {start} to {end}")],
            when_empty: Some(self.no_data(query).to_string()),
            looks_up_lines,
            ..Fetched::new(query.to_string(), vec![pprof])
        })
    }

    fn no_data(&self, query: &ProfileQuery) -> SourceError {
        self.caller.error(SourceErrorKind::NoData, query.no_samples())
    }

    async fn profile_types(&self, progress: &Progress) -> Result<Vec<ProfileType>, SourceError> {
        let request = wire::ProfileTypesRequest { start: None, end: None };
        let response: wire::ProfileTypesResponse =
            self.caller.call(PROFILE_TYPES, &request, LOOKUP_DEADLINE, progress).await?;
        let mut types: Vec<ProfileType> = response.types.into_iter().map(ProfileType::from).collect();
        types.sort();
        types.dedup();
        Ok(types)
    }
}

impl Snapshots for Parca {
    fn series<'a>(
        &'a self,
        selector: &'a Selector,
        (start, end): (Instant, Instant),
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Vec<Series>, SourceError>> {
        Box::pin(async move {
            let request = wire::QueryRangeRequest {
                query: selector.to_string(),
                start: Some(start.into()),
                end: Some(end.into()),
                limit: 0,
                step: Some(WireDuration { seconds: 1, nanos: 0 }),
                sum_by: Vec::new(),
            };
            let answer: Result<wire::QueryRangeResponse, SourceError> =
                self.caller.call(QUERY_RANGE, &request, QUERY_DEADLINE, progress).await;
            match answer {
                Ok(response) => Ok(response.series.into_iter().map(Series::from).collect()),
                Err(error) if error.kind == SourceErrorKind::NoData => Ok(Vec::new()),
                Err(error) => Err(error),
            }
        })
    }

    fn point<'a>(
        &'a self,
        selector: Selector,
        at: Instant,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Bytes, SourceError>> {
        Box::pin(async move { self.merge(&selector, at, at, progress).await })
    }
}

impl From<wire::MetricsSeries> for Series {
    fn from(series: wire::MetricsSeries) -> Self {
        let labels = series.labelset.map(|set| set.labels).unwrap_or_default();
        Self::new(
            labels.into_iter().map(|label| (label.name, label.value)),
            series.samples.into_iter().filter_map(|sample| sample.timestamp).map(Instant::from),
        )
    }
}

impl From<wire::ProfileType> for ProfileType {
    fn from(of: wire::ProfileType) -> Self {
        let wire::ProfileType { name, sample_type, sample_unit, period_type, period_unit, delta } = of;
        Self { name, sample_type, sample_unit, period_type, period_unit, is_delta: delta }
    }
}

impl ProfileSource for Parca {
    fn describe(&self) -> Description {
        let kind = if self.kind == Kind::PolarSignals { "Polar Signals Cloud" } else { "Parca" };
        Description { kind, server: self.caller.server().to_owned(), has_queries: true }
    }

    fn profile_types<'a>(&'a self, progress: &'a Progress) -> BoxFuture<'a, Result<Vec<ProfileType>, SourceError>> {
        Box::pin(self.profile_types(progress))
    }

    fn labels<'a>(&'a self, of: &'a ProfileQuery) -> BoxFuture<'a, Result<Vec<String>, SourceError>> {
        Box::pin(async move {
            let (start, end) = of.range.at(Instant::now());
            let request = wire::LabelsRequest {
                r#match: of.selector.matchers.iter().map(ToString::to_string).collect(),
                start: Some(start.into()),
                end: Some(end.into()),
                profile_type: Some(of.selector.profile_type.to_string()),
            };
            let response: wire::LabelsResponse =
                self.caller.call(LABELS, &request, LOOKUP_DEADLINE, &Progress::default()).await?;
            Ok(response.label_names)
        })
    }

    fn values<'a>(&'a self, label: &'a str, of: &'a ProfileQuery) -> BoxFuture<'a, Result<Vec<String>, SourceError>> {
        Box::pin(async move {
            let (start, end) = of.range.at(Instant::now());
            let request = wire::ValuesRequest {
                label_name: label.to_owned(),
                r#match: Vec::new(),
                start: Some(start.into()),
                end: Some(end.into()),
                profile_type: Some(of.selector.profile_type.to_string()),
            };
            let response: wire::ValuesResponse =
                self.caller.call(VALUES, &request, LOOKUP_DEADLINE, &Progress::default()).await?;
            Ok(response.label_values)
        })
    }

    fn fetch<'a>(
        &'a self,
        query: Option<&'a ProfileQuery>,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Fetched, SourceError>> {
        Box::pin(async move {
            let query = query.ok_or_else(|| SourceError::needs_query(self.caller.server()))?;
            self.fetch(query, progress).await
        })
    }

    fn projects(&self) -> BoxFuture<'_, Result<Vec<Project>, SourceError>> {
        Box::pin(async move {
            if self.kind != Kind::PolarSignals {
                return Ok(Vec::new());
            }
            let request = cloud::GetProjectsRequest {};
            let response: cloud::GetProjectsResponse =
                self.caller.call(GET_PROJECTS, &request, LOOKUP_DEADLINE, &Progress::default()).await?;
            let of = |organization: cloud::Organization| {
                let name = organization.name;
                organization.projects.into_iter().map(move |project| Project {
                    id: project.id,
                    name: project.name,
                    organization: name.clone(),
                })
            };
            Ok(response.organizations.into_iter().flat_map(of).collect())
        })
    }

    fn push(&self, push: Push) -> BoxFuture<'_, Result<(), SourceError>> {
        Box::pin(async move {
            let labels = push.labels.into_iter().map(|(name, value)| store::Label { name, value }).collect();
            let request = store::WriteRawRequest {
                series: vec![store::RawProfileSeries {
                    labels: Some(store::LabelSet { labels }),
                    samples: vec![store::RawSample { raw_profile: push.pprof }],
                }],
            };
            let _: store::WriteRawResponse =
                self.caller.call(WRITE_RAW, &request, QUERY_DEADLINE, &Progress::default()).await?;
            Ok(())
        })
    }
}
