//! The messages as they are on the wire.

use prost::Message;

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Timestamp {
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(super) nanos: i32,
}

impl Timestamp {
    pub(super) fn nanos(self) -> i64 {
        self.seconds * 1_000_000_000 + i64::from(self.nanos)
    }

    pub(super) fn of(nanos: i64) -> Self {
        let rest = i32::try_from(nanos.rem_euclid(1_000_000_000)).expect("it is below a billion");
        Self { seconds: nanos.div_euclid(1_000_000_000), nanos: rest }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ProfileTypesResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) types: Vec<ProfileType>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ProfileType {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) sample_type: String,
    #[prost(string, tag = "3")]
    pub(super) sample_unit: String,
    #[prost(string, tag = "4")]
    pub(super) period_type: String,
    #[prost(string, tag = "5")]
    pub(super) period_unit: String,
    #[prost(bool, tag = "6")]
    pub(super) delta: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LabelsResponse {
    #[prost(string, repeated, tag = "1")]
    pub(super) label_names: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(super) warnings: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ValuesRequest {
    #[prost(string, tag = "1")]
    pub(super) label_name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ValuesResponse {
    #[prost(string, repeated, tag = "1")]
    pub(super) label_values: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(super) warnings: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct QueryRange {
    #[prost(string, tag = "1")]
    pub(super) query: String,
    #[prost(message, optional, tag = "2")]
    pub(super) start: Option<Timestamp>,
    #[prost(message, optional, tag = "3")]
    pub(super) end: Option<Timestamp>,
    #[prost(message, optional, tag = "5")]
    pub(super) step: Option<Timestamp>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct QueryRangeResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) series: Vec<MetricsSeries>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MetricsSeries {
    #[prost(message, optional, tag = "1")]
    pub(super) labelset: Option<LabelSet>,
    #[prost(message, repeated, tag = "2")]
    pub(super) samples: Vec<MetricsSample>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MetricsSample {
    #[prost(message, optional, tag = "1")]
    pub(super) timestamp: Option<Timestamp>,
    #[prost(int64, tag = "2")]
    pub(super) value: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LabelSet {
    #[prost(message, repeated, tag = "1")]
    pub(super) labels: Vec<Label>,
}

impl LabelSet {
    pub(super) fn of(labels: Vec<(String, String)>) -> Self {
        Self { labels: labels.into_iter().map(|(name, value)| Label { name, value }).collect() }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Label {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Query {
    #[prost(int32, tag = "1")]
    pub(super) mode: i32,
    #[prost(message, optional, tag = "3")]
    pub(super) merge: Option<Merge>,
    #[prost(int32, tag = "5")]
    pub(super) report_type: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Merge {
    #[prost(string, tag = "1")]
    pub(super) query: String,
    #[prost(message, optional, tag = "2")]
    pub(super) start: Option<Timestamp>,
    #[prost(message, optional, tag = "3")]
    pub(super) end: Option<Timestamp>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct QueryResponse {
    #[prost(bytes = "vec", optional, tag = "6")]
    pub(super) pprof: Option<Vec<u8>>,
    #[prost(int64, tag = "9")]
    pub(super) total: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WriteRaw {
    #[prost(message, repeated, tag = "2")]
    pub(super) series: Vec<RawSeries>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RawSeries {
    #[prost(message, optional, tag = "1")]
    pub(super) labels: Option<LabelSet>,
    #[prost(message, repeated, tag = "2")]
    pub(super) samples: Vec<RawSample>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RawSample {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) raw_profile: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct GetProjectsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) organizations: Vec<Organization>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Organization {
    #[prost(string, tag = "1")]
    pub(super) id: String,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) projects: Vec<Project>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Project {
    #[prost(string, tag = "1")]
    pub(super) id: String,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(string, tag = "3")]
    pub(super) organization_id: String,
}
