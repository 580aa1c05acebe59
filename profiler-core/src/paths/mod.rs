//! Which workspace file a path of a profile means.

pub mod clean;
