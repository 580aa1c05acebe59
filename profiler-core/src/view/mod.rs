//! Costs as plain data and text, for people and machines.
//!
//! A view is a pure function of an [`Analysis`](crate::attribute::analysis::Analysis) and
//! its settings. Numbers become text in [`measure`](crate::measure) only.

pub mod report;
