//! Costs as plain data and text, for people and machines.
//!
//! A view is a pure function of an [`Analysis`](crate::attribute::analysis::Analysis) and
//! its settings. Numbers become text in [`measure`](crate::measure) only.
//!
//! ```text
//!                 ┌▶ report, annotate ──────────▶ JSON
//! Analysis ──view─┤                          ┌──▶ text ──────▶ terminal, pipe
//!                 ├▶ hotspots, … ─▶ Document ┼──▶ markdown ──▶ chat, pull request
//!                 │                          └──▶ html, page ▶ browser
//!                 └▶ FileIndex ─▶ hint, lens, hover, heat ───▶ editor
//! ```
//!
//! What editors show is plain data in the words of the profile: its lines, 1-based, and
//! texts. Documents, their columns and edits, and the protocol are the server's.

pub mod annotate;
pub mod assistant;
pub mod by_file;
pub mod check;
pub mod compare;
pub mod data;
pub mod document;
pub mod explain;
pub mod filters;
pub mod flame;
pub mod heat;
pub mod hint;
pub mod hot_list;
pub mod hotspots;
pub mod hover;
pub mod html;
pub mod label;
pub mod lens;
pub mod markdown;
pub mod page;
pub mod report;
pub mod source;
pub mod status;
pub mod summary;
pub mod table;
pub mod text;
