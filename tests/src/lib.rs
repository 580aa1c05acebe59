//! Helpers of the black-box tests and benchmarks.

pub mod large_profile;
