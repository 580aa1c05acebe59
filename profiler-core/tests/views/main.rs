//! What people read, as snapshots: small profiles in, whole texts out.

#![allow(clippy::unwrap_used, reason = "a profile that can not be made fails its test")]

mod annotate;
mod compare;
mod explain;
mod hostile;
mod hotspots;
mod markdown;
mod profiles;
