//! Profiles of servers on the command line: one fetch, with its progress on a terminal.

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use profiler_core::cancel::CancelFlag;
use profiler_core::decode::Limits;
use profiler_core::view::data;

use super::Failure;
use super::load::Loaded;
use super::server::Server;
use crate::auth::Keeper;
use crate::loader::{self, decode_fetched};
use crate::source::query::ProfileType;
use crate::source::{Connection, Fetched, Freshness, ProfileSource, Progress, Request, SourceError, Sources, address};

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        Self::Input(error.to_string())
    }
}

/// Fetches and decodes the profile at an address.
pub(super) fn load(text: &str) -> Result<Loaded, Failure> {
    let configured = Server::default().connection_if_any().ok().flatten();
    let link = address::link(text, configured.as_ref())?;
    let fetched = fetch(&link.request)?;
    Ok(Loaded { filters: link.filters, ..decoded(&fetched)? })
}

/// Decodes what was fetched.
pub(super) fn decoded(fetched: &Fetched) -> Result<Loaded, Failure> {
    match decode_fetched(fetched, &Limits::default(), &CancelFlag::new()) {
        Ok(profile) => Ok(Loaded {
            origin: fetched.name.clone(),
            profile: Arc::new(profile),
            taken_here: None,
            filters: Vec::new(),
            file: None,
        }),
        Err(loader::Failure::Failed(why)) => Err(Failure::Input(why)),
        Err(loader::Failure::Cancelled) => Err(Failure::Input("cancelled".to_owned())),
    }
}

/// Fetches with a runtime of its own.
pub(super) fn fetch(request: &Request) -> Result<Arc<Fetched>, Failure> {
    let line = Line::default();
    let progress = line.progress();
    let result = wait(async { sources().fetch(request, Freshness::New, &progress).await })?;
    line.clear();
    Ok(result?)
}

/// Asks a server something that is quick.
pub(super) fn ask<T>(
    connection: &Connection,
    question: impl AsyncFnOnce(&dyn ProfileSource) -> Result<T, SourceError>,
) -> Result<T, Failure> {
    let sources = sources();
    Ok(wait(async { question(&*sources.source(connection)?).await })??)
}

/// What a server has.
pub(super) fn profile_types(connection: &Connection) -> Result<Vec<ProfileType>, Failure> {
    ask(connection, async |source| source.profile_types(&Progress::default()).await)
}

/// The sources, for the user of this process.
fn sources() -> Sources {
    Sources::new(Arc::new(Keeper::of_this_process()))
}

/// Runs something that waits for the network.
pub(super) fn wait<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Input(format!("the network can't be used: {error}")))?;
    Ok(runtime.block_on(work))
}

/// A line of the terminal that tells what is waited for; nothing where there is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    is_terminal: bool,
}

impl Default for Line {
    fn default() -> Self {
        Self { is_terminal: std::io::stderr().is_terminal() }
    }
}

impl Line {
    /// Steps go to the line.
    pub(super) fn progress(self) -> Progress {
        if !self.is_terminal {
            return Progress::default();
        }
        Progress::new(|words| {
            let _ = write!(anstream::stderr(), "\r\x1b[K{}", data::shown_within(words, 70));
        })
    }

    /// Takes the line away.
    pub(super) fn clear(self) {
        if self.is_terminal {
            let _ = write!(anstream::stderr(), "\r\x1b[K");
        }
    }
}
