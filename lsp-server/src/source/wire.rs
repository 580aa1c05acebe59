//! Messages of profiling servers, compiled from `proto/` by the build script.

#![allow(missing_docs, unreachable_pub, clippy::pedantic, reason = "generated; the .proto files have the comments")]

use super::time::Instant;

include!(concat!(env!("OUT_DIR"), "/messages.rs"));

/// A point in time as protocol buffers have it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct Timestamp {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// A length of time as protocol buffers have it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct Duration {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

impl From<Instant> for Timestamp {
    fn from(time: Instant) -> Self {
        let nanos = i32::try_from(time.0.rem_euclid(1_000_000_000)).unwrap_or(0);
        Self { seconds: time.0.div_euclid(1_000_000_000), nanos }
    }
}

impl From<Timestamp> for Instant {
    fn from(time: Timestamp) -> Self {
        Self(time.seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(time.nanos)))
    }
}
