//! Between the server's own words and the protocol's.

pub mod client;
pub mod refresh;
