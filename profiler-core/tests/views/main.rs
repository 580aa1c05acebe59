//! What people read, as snapshots: small profiles in, whole texts out.

mod annotate;
mod compare;
mod explain;
mod hostile;
mod hotspots;
mod markdown;
mod profiles;
