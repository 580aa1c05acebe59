//! All sources of a process: each opened once, each query sent once.
//!
//! What was fetched is kept by the whole request, with its age; it is fetched again when that
//! is asked for, never by itself. Two that want the same at the same time share one fetch.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{Anonymous, Connection, Credentials, Fetched, ProfileSource, Progress, Request, SourceError, open};

/// How many answers are kept: what is shown, its base, and what was shown before.
const KEPT: usize = 6;
/// How many bytes of them; the latest is kept whatever its size.
const KEPT_BYTES: usize = 128 << 20;
/// How often a query is sent again when that may help.
const RETRIES: u32 = 2;

/// Whether what is kept will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Whatever its age.
    Kept,
    /// It has to be asked for anew.
    New,
}

type Flight = Arc<tokio::sync::Mutex<()>>;

/// All sources of a process.
#[derive(Debug)]
pub struct Sources {
    credentials: Arc<dyn Credentials>,
    open: Mutex<HashMap<Connection, Arc<dyn ProfileSource>>>,
    kept: Mutex<Vec<(Request, Arc<Fetched>)>>,
    flights: Mutex<HashMap<Request, Flight>>,
}

impl Default for Sources {
    fn default() -> Self {
        Self::new(Arc::new(Anonymous))
    }
}

impl Sources {
    /// None yet.
    pub fn new(credentials: Arc<dyn Credentials>) -> Self {
        Self { credentials, open: Mutex::default(), kept: Mutex::default(), flights: Mutex::default() }
    }

    /// The source of a connection.
    pub fn source(&self, connection: &Connection) -> Result<Arc<dyn ProfileSource>, SourceError> {
        let mut open_ones = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = open_ones.get(connection) {
            return Ok(Arc::clone(source));
        }
        let source = open(connection, &self.credentials)?;
        open_ones.insert(connection.clone(), Arc::clone(&source));
        Ok(source)
    }

    /// Fetches, or takes what is kept.
    pub async fn fetch(
        &self,
        request: &Request,
        freshness: Freshness,
        progress: &Progress,
    ) -> Result<Arc<Fetched>, SourceError> {
        let before = self.kept_of(request);
        if let Some(fetched) = before.as_ref().filter(|_| freshness == Freshness::Kept) {
            return Ok(Arc::clone(fetched));
        }
        let flight = {
            let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(flights.entry(request.clone()).or_default())
        };
        let _own = flight.lock().await;
        // Somebody else may have fetched it while this waited.
        if let Some(fetched) = self.kept_of(request)
            && before.is_none_or(|before| before.serial != fetched.serial)
        {
            return Ok(fetched);
        }
        let result = self.fetch_now(request, progress).await;
        self.flights.lock().unwrap_or_else(PoisonError::into_inner).remove(request);
        let fetched = Arc::new(result?);
        self.keep(request, &fetched);
        Ok(fetched)
    }

    async fn fetch_now(&self, request: &Request, progress: &Progress) -> Result<Fetched, SourceError> {
        let source = self.source(&request.connection)?;
        let mut attempt = 0;
        loop {
            let error = match source.fetch(request.query.as_ref(), progress).await {
                Ok(fetched) => return Ok(fetched),
                Err(error) => error,
            };
            // What records while it answers is not asked twice.
            let may_help = request.query.is_some() && error.is_transient() && attempt < RETRIES;
            let pause = error.retry_after.unwrap_or_else(|| jittered(Duration::from_millis(250) * 2u32.pow(attempt)));
            if !may_help || pause > Duration::from_secs(5) {
                return Err(error);
            }
            attempt += 1;
            progress.step(&format!("trying again: {error}"));
            tokio::time::sleep(pause).await;
        }
    }

    /// What is kept of a request.
    pub fn kept_of(&self, request: &Request) -> Option<Arc<Fetched>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(other, _)| other == request).map(|(_, fetched)| Arc::clone(fetched))
    }

    /// Keeps an answer, as if it had just been fetched.
    pub fn keep(&self, request: &Request, fetched: &Arc<Fetched>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(other, _)| other != request);
        kept.insert(0, (request.clone(), Arc::clone(fetched)));
        kept.truncate(KEPT);
        let mut bytes = 0;
        let fits = kept.iter().take_while(|(_, fetched)| {
            bytes += fetched.bytes();
            bytes <= KEPT_BYTES
        });
        let fits = fits.count().max(1);
        kept.truncate(fits);
    }
}

/// Half to one and a half of a time, so that many clients don't come back at once.
fn jittered(pause: Duration) -> Duration {
    // Every `RandomState` has other keys, so the hash of nothing is a random number.
    let random = RandomState::new().hash_one(()) % 1000;
    pause / 2 + pause * u32::try_from(random).unwrap_or(0) / 1000
}
