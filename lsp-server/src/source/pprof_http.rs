//! A profile at an address: `http://localhost:6060/debug/pprof/profile?seconds=10` and its
//! like, or a file that is offered for download.
//!
//! Go's programs record while the request waits, so the deadline is the time they were asked to
//! record for, and half a minute. No secret is ever sent.

use std::time::Duration;

use futures_util::future::BoxFuture;
use url::Url;

use super::connection::Connection;
use super::error::{SourceError, SourceErrorKind as Kind};
use super::http::{Http, is_page, words};
use super::progress::Progress;
use super::query::{ProfileQuery, ProfileType};
use super::{Description, Fetched, ProfileSource};

/// What an answer may take beyond the time that is recorded.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest recording that is waited for.
const MAX_SECONDS: u64 = 3600;

/// A profile at an address.
#[derive(Debug)]
pub(super) struct PprofHttp {
    address: Url,
    http: Http,
}

impl PprofHttp {
    pub(super) fn new(connection: &Connection) -> Result<Self, SourceError> {
        Ok(Self { address: complete(&connection.address), http: Http::new(connection)? })
    }
}

impl ProfileSource for PprofHttp {
    fn describe(&self) -> Description {
        Description { kind: "HTTP", server: self.http.server().to_owned(), has_queries: false }
    }

    fn profile_types<'a>(&'a self, _: &'a Progress) -> BoxFuture<'a, Result<Vec<ProfileType>, SourceError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn labels<'a>(&'a self, _: &'a ProfileQuery) -> BoxFuture<'a, Result<Vec<String>, SourceError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn values<'a>(&'a self, _: &'a str, _: &'a ProfileQuery) -> BoxFuture<'a, Result<Vec<String>, SourceError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn fetch<'a>(
        &'a self,
        _: Option<&'a ProfileQuery>,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Fetched, SourceError>> {
        Box::pin(async move {
            let seconds = seconds(&self.address).unwrap_or_else(|| usual_seconds(&self.address));
            if seconds > MAX_SECONDS {
                return Err(SourceError::input(format!("{seconds} s is too long to wait; record for an hour at most")));
            }
            match seconds {
                0 => progress.step("waiting for the answer"),
                _ => progress.step(&format!("recording for {seconds} s")),
            }
            let request = self.http.client().get(self.address.clone());
            let deadline = Duration::from_secs(seconds) + PATIENCE;
            let reply = self.http.send(request, deadline, progress).await?;
            if let Some(refusal) = self.http.refusal(&reply) {
                return Err(refusal);
            }
            if is_page(&reply) {
                return Err(self.http.error(Kind::Protocol, format!("it sent {}, not a profile", words(&reply))));
            }
            if reply.body.is_empty() {
                return Err(self.http.error(Kind::Protocol, "it sent nothing"));
            }
            Ok(Fetched::new(name(&self.address), vec![reply.body]))
        })
    }

    fn push(&self, _: super::Push) -> BoxFuture<'_, Result<(), SourceError>> {
        Box::pin(async move { Err(SourceError::input(format!("{} takes no profiles", self.http.server()))) })
    }
}

/// The address of the index stands for the commonest profile.
fn complete(address: &Url) -> Url {
    let mut address = address.clone();
    if matches!(address.path(), "/debug/pprof" | "/debug/pprof/") && address.query().is_none() {
        address.set_path("/debug/pprof/profile");
        address.set_query(Some("seconds=10"));
    }
    address
}

fn seconds(address: &Url) -> Option<u64> {
    address.query_pairs().find(|(name, _)| name == "seconds").and_then(|(_, value)| value.parse().ok())
}

/// What Go's endpoints record for when they are not told.
fn usual_seconds(address: &Url) -> u64 {
    match address.path().rsplit('/').next() {
        Some("profile" | "fgprof") => 30,
        Some("trace") => 1,
        _ => 0,
    }
}

/// `localhost:6060/profile`.
fn name(address: &Url) -> String {
    let last = address.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    format!("{}/{last}", super::connection::server(address))
}
