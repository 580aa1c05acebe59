//! Profiles from where they are kept: servers, and programs that hand out their own.
//!
//! ```text
//! Request ─▶ Sources ─▶ one ProfileSource per Connection ─▶ Fetched (bytes) ─▶ loader
//!              │                    ▲
//!        cache, single flight   Credentials, by Origin
//! ```
//!
//! A source yields bytes and what the bytes don't say: of which time they are, what was left
//! out. Decoding, paths and numbers are the loader's and the core's. One answer serves a whole
//! workspace: a query is sent once, however many files are looked at, and another value type,
//! filter or file is no new query.
//!
//! | module | |
//! |---|---|
//! | [`address`] | what a text of the user leads to |
//! | [`connection`] | how a server is reached, what a secret belongs to |
//! | [`query`], [`time`] | what is asked, and its text |
//! | [`settings`] | the connection and query that settings describe |
//! | [`otlp`] | profiles to receivers of OTLP, which give none |
//! | [`links`] | addresses of pages, to and from queries |
//! | [`last`] | what was last asked for in a workspace |
//! | [`answers`] | and what the answer was, on disk |
//! | [`presets`] | the queries most people want |
//! | `snapshot` | the newest state of each instance, for what must not be added up over a time |
//! | `http`, `parca`, `pyroscope`, `pprof_http` | the wire |
//! | [`error`] | every sentence about a failure |
//! | `unreached` | what there is to say where there was no answer |
//! | [`sources`] | cache, single flight, retries |
//!
//! A new kind of server is a file with a [`ProfileSource`], a [`Kind`] and its line in [`open`].

pub mod address;
pub mod answers;
pub mod connection;
pub mod error;
pub(crate) mod http;
pub mod last;
pub mod links;
pub mod otlp;
mod parca;
mod pprof_http;
pub mod presets;
pub mod progress;
mod pyroscope;
pub mod query;
pub mod settings;
mod snapshot;
pub mod sources;
pub mod time;
mod unreached;
pub(crate) mod wire;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use prost::bytes::Bytes;

pub use connection::{Connection, Kind, Origin};
pub use error::{SourceError, SourceErrorKind};
pub use progress::Progress;
pub use query::ProfileQuery;
use query::ProfileType;
pub use sources::{Freshness, Sources};
use time::Instant;

/// What to fetch, and from where. Equality is of the whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// The server.
    pub connection: Connection,
    /// What is asked of it; `None` where the address says everything.
    pub query: Option<ProfileQuery>,
}

impl Request {
    /// For people: the query, or the address.
    pub fn name(&self) -> String {
        if let Some(query) = &self.query {
            return query.to_string();
        }
        let path = self.connection.address.path().trim_end_matches('/');
        format!("{}{path}", self.connection.server())
    }
}

/// What a source gave.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// What views call it.
    pub name: String,
    /// The profiles, as they came; together they are one.
    pub parts: Vec<Bytes>,
    /// Begin and end of the time they are of, where the source knows better than the bytes.
    pub times: Option<(Instant, Instant)>,
    /// What is to be known about them: sentences.
    pub notes: Vec<String>,
    /// The sentence for when there is no sample in them.
    pub when_empty: Option<String>,
    /// Whether the server looks up addresses itself, and gives the lines that functions start on.
    pub looks_up_lines: bool,
    /// When it came.
    pub fetched_at: Instant,
    /// Whether that was in an earlier session, and it was on disk since.
    pub is_from_disk: bool,
    /// Differs for everything that was ever fetched.
    pub serial: u64,
}

impl Fetched {
    fn new(name: String, parts: Vec<Bytes>) -> Self {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        Self {
            name,
            parts,
            times: None,
            notes: Vec::new(),
            when_empty: None,
            looks_up_lines: false,
            fetched_at: Instant::now(),
            is_from_disk: false,
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
        }
    }

    fn bytes(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum()
    }
}

/// What a source is, for the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// `Parca`, `Pyroscope`.
    pub kind: &'static str,
    /// Its host.
    pub server: String,
    /// Whether there are types and labels to choose from.
    pub has_queries: bool,
}

/// A profile on its way to a server.
#[derive(Clone, Debug)]
pub struct Push {
    /// pprof, packed with gzip.
    pub pprof: Bytes,
    /// Labels of the series, with `__name__`.
    pub labels: Vec<(String, String)>,
}

/// A project of a server that has some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// What requests name it by.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Whose it is.
    pub organization: String,
}

/// Where profiles come from. Dropping a future cancels what it does.
pub trait ProfileSource: fmt::Debug + Send + Sync {
    /// What it is.
    fn describe(&self) -> Description;

    /// What can be asked for. Also what a test of the connection calls.
    fn profile_types<'a>(&'a self, progress: &'a Progress) -> BoxFuture<'a, Result<Vec<ProfileType>, SourceError>>;

    /// Names of labels of what a query is about.
    fn labels<'a>(&'a self, of: &'a ProfileQuery) -> BoxFuture<'a, Result<Vec<String>, SourceError>>;

    /// Values of a label.
    fn values<'a>(&'a self, label: &'a str, of: &'a ProfileQuery) -> BoxFuture<'a, Result<Vec<String>, SourceError>>;

    /// Fetches what a query asks for; without one, what the address gives.
    fn fetch<'a>(
        &'a self,
        query: Option<&'a ProfileQuery>,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Fetched, SourceError>>;

    /// What a user can choose from before anything else; empty where there is no such choice.
    fn projects(&self) -> BoxFuture<'_, Result<Vec<Project>, SourceError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Stores a profile.
    fn push(&self, push: Push) -> BoxFuture<'_, Result<(), SourceError>>;
}

/// A text that is not shown in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// What goes with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The value of the header `authorization`.
    pub header: Secret,
    /// The project that was chosen when signing in.
    pub project: Option<String>,
}

/// Who we are, for a server.
pub trait Credentials: fmt::Debug + Send + Sync {
    /// What there is for the connection's origin.
    fn authorization<'a>(&'a self, to: &'a Connection) -> BoxFuture<'a, Result<Option<Pass>, SourceError>>;

    /// The server refused that: whether there is a better one now.
    fn renew<'a>(&'a self, to: &'a Connection, refused: &'a Pass) -> BoxFuture<'a, Result<bool, SourceError>>;
}

/// Nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anonymous;

impl Credentials for Anonymous {
    fn authorization<'a>(&'a self, _: &'a Connection) -> BoxFuture<'a, Result<Option<Pass>, SourceError>> {
        Box::pin(async { Ok(None) })
    }

    fn renew<'a>(&'a self, _: &'a Connection, _: &'a Pass) -> BoxFuture<'a, Result<bool, SourceError>> {
        Box::pin(async { Ok(false) })
    }
}

/// The source behind a connection. Connects to nothing yet.
pub fn open(
    connection: &Connection,
    credentials: &Arc<dyn Credentials>,
) -> Result<Arc<dyn ProfileSource>, SourceError> {
    Ok(match connection.kind {
        Kind::Http => Arc::new(pprof_http::PprofHttp::new(connection)?),
        Kind::Parca | Kind::PolarSignals => Arc::new(parca::Parca::new(connection, credentials)?),
        Kind::Pyroscope => Arc::new(pyroscope::Pyroscope::new(connection, credentials)?),
    })
}
