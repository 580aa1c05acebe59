//! `perflens mcp`: tools for assistants, over the Model Context Protocol on standard input and output.
//!
//! An assistant asks about what its user is looking at in an editor, or about a profile that it names.
//! Costs are those of the views, through the same loader; nothing is fetched or changed. Two tools measure:
//! they run what was detected in a workspace that the user trusts, through the child that records for
//! editors, and are not there with `--read-only`.
//!
//! ```text
//! assistant ─▶ rmcp ─▶ server ─▶ arguments ─▶ a tool ─▶ answer (8 KB, the rest by cursor)
//!                        │                      │
//!                     journal       desk: policy, consent, reach ─▶ loader ─▶ Seen
//!                                    ▲             ▲
//!        current.json, which the editor's session   recordings ◀── laboratory ──▶ running ──▶ perflens record
//! ```
//!
//! A tool is a file in `tools` and a line in its registry. What is not here: the numbers
//! (`profiler-core`), what the editor shows ([`current`](crate::current)).

mod answer;
mod arguments;
pub mod consent;
mod desk;
mod journal;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod laboratory;
mod policy;
mod reach;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod running;
mod seen;
mod server;
mod tools;
mod turn;

use std::path::PathBuf;
use std::sync::Arc;

use rmcp::ServiceExt;
use rmcp::transport::stdio_pipes;

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The workspace; without, the one that the current folder is in.
    pub workspace: Option<PathBuf>,
    /// Files and folders outside of the workspace that profiles may be read from.
    pub allow: Vec<PathBuf>,
    /// Leave out tools that run or change something.
    pub is_read_only: bool,
}

/// Answers until the other side closes. An error is one sentence.
pub async fn serve(options: Options) -> Result<(), String> {
    let server = server::Server::new(Arc::new(desk::Desk::new(options)?));
    let (input, output) = stdio_pipes();
    let running = match server.serve((input, output)).await {
        Ok(running) => running,
        // Who closes before anything was said has changed their mind.
        Err(error) => {
            tracing::warn!("no session came about: {error}");
            return Ok(());
        }
    };
    running.waiting().await.map(|_| ()).map_err(|error| format!("the tool server ended: {error}"))
}

/// Why a tool doesn't answer; displays as one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    /// The arguments are at fault.
    #[error("{0}")]
    Arguments(String),
    /// It is not allowed.
    #[error("{0}")]
    Forbidden(String),
    /// It could not be done.
    #[error("{0}")]
    Failed(String),
}

impl Refusal {
    /// The word of the journal.
    fn outcome(&self) -> &'static str {
        match self {
            Self::Arguments(_) => "wrong arguments",
            Self::Forbidden(_) => "refused",
            Self::Failed(_) => "failed",
        }
    }
}
