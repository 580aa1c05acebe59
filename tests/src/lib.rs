//! What the black-box tests stand on: profiles made to order, the built program, and a
//! second opinion on every number.
//!
//! * [`mini`] is the language most tests are written in: a profile as a few lines of text,
//!   with the workspace it belongs to.
//! * [`pprof`] writes and reads pprof messages, also in the odd ways that are legal.
//! * [`assistant`] is a client of the tool server for assistants.
//! * [`cli`] builds and runs the program, and reads the JSON of its reports.
//! * [`fetch`] runs `perflens fetch`.
//! * [`http`] is a server with faults on demand.
//! * [`otlp`] sends to the receiver of OpenTelemetry profiles.
//! * [`parca`] is a server of Parca's kind on it, one that signs people in, and the real one.
//! * [`projects`] has projects with tests to profile.
//! * [`pyroscope`] is a server of Pyroscope's kind on it.
//! * [`lsp`] is a client of the language server, and the editors it can pass for.
//! * [`record`](mod@record) has programs to record, and records them.
//! * [`reference`](mod@reference) computes the same numbers from the same bytes in the most
//!   obvious way.
//! * [`tls`] has certificates made to order, and puts TLS before servers without.
//! * [`large_profile`] makes the profile that speed is measured with, [`large_formats`] files of all formats.
//!
//! What is not here: anything of `profiler-core`. Code that is shared with the program can't
//! disagree with it.

#![expect(clippy::missing_panics_doc, reason = "a panic is how a test fails")]

pub mod assistant;
pub mod cli;
pub mod fetch;
pub mod http;
pub mod large_formats;
pub mod large_profile;
pub mod lsp;
pub mod mini;
pub mod otlp;
pub mod parca;
pub mod pprof;
pub mod projects;
pub mod pyroscope;
#[cfg(target_os = "linux")]
pub mod record;
pub mod reference;
mod stored;
pub mod tls;
