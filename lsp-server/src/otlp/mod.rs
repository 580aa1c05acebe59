//! Receives OpenTelemetry profiles: what an eBPF profiler, a collector or an SDK on this machine
//! sends, kept for a while.
//!
//! ```text
//! sender ─▶ listener ─▶ request (checks, bounded body) ─▶ decoder ─▶ Window ─▶ loader
//!   ◀────────────────── reply ◀────────────────────────────┘
//! ```
//!
//! It listens on the loopback alone, and refuses what a web page could make a browser send: an
//! `Origin`, a `Host` that is not this machine, content types of forms. Everything is bounded
//! before memory is taken for it, and what is refused or dropped is counted. All of it runs on
//! threads of its own, so that a flood costs the editor nothing; decoding is one at a time.
//!
//! | module | |
//! |---|---|
//! | [`listener`] | ports, connections, start and end |
//! | `request` | what may come in |
//! | `reply` | what goes back |
//! | [`window`] | what came lately |
//!
//! What is not here: what a request means (the core's decoder), and when the editor looks again.

pub mod listener;
mod reply;
mod request;
pub mod window;

pub use listener::{Receiver, Settings, StartError};
pub(crate) use reply::ExportResponse;
pub use window::{Counts, Snapshot, Window};
