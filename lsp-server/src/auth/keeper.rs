//! What goes with a request: looks up the secret of its origin, and sees to it that it is good.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Deserialize;

use super::cloud;
use super::oauth::{self, Refreshed};
use super::store::{Grant, Lock, Store};
use crate::config::places::Places;
use crate::source::connection::{Origin, parse_address};
use crate::source::time::Instant;
use crate::source::{Connection, Credentials, Pass, Secret, SourceError, SourceErrorKind};

/// A token that ends within this is refreshed before it is used, if it lasts longer at all.
const MARGIN: i64 = 300;
/// A login of psctl that ends within this is not used.
const LEEWAY: Duration = Duration::from_mins(1);

/// The user's secrets, for sources.
#[derive(Clone, Debug)]
pub struct Keeper {
    store: Store,
    psctl: Option<PathBuf>,
}

/// Where a secret is from, for the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// `PERFLENS_TOKEN`.
    Environment,
    /// `perflens login`.
    Store,
    /// The login of psctl.
    Psctl,
}

impl Keeper {
    /// With the store of this user.
    pub fn of_this_process() -> Self {
        let places = Places::of_this_process();
        Self::new(Store::new(places.secrets()), places.psctl())
    }

    /// With a store, and the file of psctl's login.
    pub fn new(store: Store, psctl: Option<PathBuf>) -> Self {
        Self { store, psctl }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What there is for an origin, and where it is from. Blocks for moments.
    pub fn grant(&self, origin: &Origin) -> Option<(Grant, From)> {
        environment(origin)
            .map(|grant| (grant, From::Environment))
            .or_else(|| self.store.get(origin).map(|grant| (grant, From::Store)))
            .or_else(|| self.psctl(origin).map(|grant| (grant, From::Psctl)))
    }

    /// psctl's login while it is valid. Refreshing would sign psctl out, so it is not done.
    fn psctl(&self, origin: &Origin) -> Option<Grant> {
        #[derive(Deserialize)]
        struct Login {
            access_token: String,
            expiry: Option<String>,
        }
        if cloud().as_ref() != Some(origin) {
            return None;
        }
        let login: Login = serde_json::from_slice(&std::fs::read(self.psctl.as_ref()?).ok()?).ok()?;
        let expiry: Instant = login.expiry?.parse().ok()?;
        let is_valid = !login.access_token.is_empty() && expiry > Instant::now().after(LEEWAY);
        is_valid.then(|| Grant { access_token: login.access_token, ..Grant::default() })
    }

    /// Refreshes under the lock, unless another process has done so or the server has refused
    /// before.
    async fn refresh(&self, to: &Connection, old: &Grant) -> Result<Grant, SourceError> {
        let origin = to.origin();
        let store = self.store.clone();
        let (lock, current) = blocking(move || {
            let lock = store.lock()?;
            let current = store.get(&origin);
            Ok::<(Lock, Option<Grant>), SourceError>((lock, current))
        })
        .await?;
        let Some(current) = current else { return Err(ended(to, "it was signed out meanwhile")) };
        if current.access_token != old.access_token {
            return Ok(current);
        }
        if current.is_dead {
            return Err(ended(to, "the sign-in has ended"));
        }
        let (new, result) = match oauth::refresh(to, &current).await? {
            Refreshed::Grant(new) => (*new.clone(), Ok(*new)),
            Refreshed::Dead(words) => {
                (Grant { is_dead: true, ..current }, Err(ended(to, &format!("the sign-in has ended ({words})"))))
            }
        };
        let (store, origin) = (self.store.clone(), to.origin());
        blocking(move || store.set(&lock, &origin, &new)).await?;
        result
    }
}

fn ended(to: &Connection, why: &str) -> SourceError {
    SourceError::new(SourceErrorKind::SignIn, to.server(), why)
}

/// The environment's token, if it is for this origin.
fn environment(origin: &Origin) -> Option<Grant> {
    let token = std::env::var("PERFLENS_TOKEN").ok().filter(|token| !token.trim().is_empty())?;
    let meant = match std::env::var("PERFLENS_TOKEN_FOR") {
        Ok(address) => parse_address(&address).ok().map(|url| Origin::of(&url)),
        Err(_) => cloud(),
    };
    (meant.as_ref() == Some(origin)).then(|| Grant { access_token: token.trim().to_owned(), ..Grant::default() })
}

/// Files and locks are waited for outside of the loop.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SourceError> + Send + 'static,
) -> Result<T, SourceError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|_| Err(SourceError::input("secrets can't be read: perflens failed inside")))
}

impl Credentials for Keeper {
    fn authorization<'a>(&'a self, to: &'a Connection) -> BoxFuture<'a, Result<Option<Pass>, SourceError>> {
        Box::pin(async move {
            let (keeper, origin) = (self.clone(), to.origin());
            let Some((mut grant, from)) = blocking(move || Ok(keeper.grant(&origin))).await? else { return Ok(None) };
            if grant.is_dead {
                return Err(ended(to, "the sign-in has ended"));
            }
            let now = Instant::now().0 / 1_000_000_000;
            let ends_soon = grant.expires_at.is_some_and(|ends| ends - now < MARGIN);
            if from == From::Store && ends_soon && grant.refresh_token.is_some() {
                let is_over = grant.expires_at.is_some_and(|ends| ends <= now);
                match self.refresh(to, &grant).await {
                    Ok(new) => grant = new,
                    // As long as it is good it is used; whether it is, the server knows best.
                    Err(error) if error.kind == SourceErrorKind::SignIn || is_over => return Err(error),
                    Err(_) => {}
                }
            }
            let header = match &to.user {
                Some(user) => format!("Basic {}", base64(format!("{user}:{}", grant.access_token).as_bytes())),
                None => format!("Bearer {}", grant.access_token),
            };
            Ok(Some(Pass { header: Secret(header), project: grant.project }))
        })
    }

    fn renew<'a>(&'a self, to: &'a Connection, refused: &'a Pass) -> BoxFuture<'a, Result<bool, SourceError>> {
        Box::pin(async move {
            let (keeper, origin) = (self.clone(), to.origin());
            let Some((grant, From::Store)) = blocking(move || Ok(keeper.grant(&origin))).await? else {
                return Ok(false);
            };
            if refused.header.0 != format!("Bearer {}", grant.access_token) {
                return Ok(true);
            }
            if grant.refresh_token.is_none() {
                return Ok(false);
            }
            self.refresh(to, &grant).await.map(|_| true)
        })
    }
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = [chunk[0], chunk.get(1).copied().unwrap_or(0), chunk.get(2).copied().unwrap_or(0)];
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for place in 0..4 {
            let six = (bits >> (18 - 6 * place)) & 63;
            text.push(if place > chunk.len() { '=' } else { char::from(ALPHABET[six as usize]) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use url::Url;

    #[test]
    fn base64_is_base64() {
        for (text, encoded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob\u{ff}", "Zm9vYsO/")] {
            assert_eq!(base64(text.as_bytes()), encoded);
        }
    }

    #[test]
    fn the_login_of_psctl_counts_for_its_cloud_and_while_it_is_valid() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("default_cred");
        let keeper = Keeper::new(Store::new(None), Some(file.clone()));
        let cloud = cloud().unwrap();
        let other = Origin::of(&Url::parse("https://api.polarsignals.com.evil.example").unwrap());
        let write = |expiry: &str| {
            let login = serde_json::json!({ "access_token": "t", "refresh_token": "r", "expiry": expiry });
            std::fs::write(&file, login.to_string()).unwrap();
        };
        assert!(keeper.psctl(&cloud).is_none());
        write("2099-01-01T00:00:00.123456789+02:00");
        assert_eq!(keeper.psctl(&cloud).unwrap().access_token, "t");
        assert_eq!(keeper.psctl(&cloud).unwrap().refresh_token, None);
        assert!(keeper.psctl(&other).is_none());
        write("2020-01-01T00:00:00Z");
        assert!(keeper.psctl(&cloud).is_none());
        std::fs::write(&file, "{").unwrap();
        assert!(keeper.psctl(&cloud).is_none());
    }
}
