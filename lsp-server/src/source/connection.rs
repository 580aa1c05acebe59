//! How to reach a server, and who may be sent there. Holds no secret: those are looked up for
//! the [`Origin`] when a call is made, so a connection can be compared, kept and logged.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use url::{Host, Url};

use super::error::SourceError;

/// What kind of server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Whatever answers with a profile: `…/debug/pprof/…` of a running program.
    Http,
    /// Parca.
    Parca,
    /// Polar Signals Cloud.
    PolarSignals,
    /// Pyroscope, and hosted servers that speak like it.
    Pyroscope,
}

/// How a server of Parca's kind is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transport {
    /// gRPC-web: passes proxies, may be below a path.
    #[default]
    GrpcWeb,
    /// gRPC itself, on HTTP/2 from the first byte.
    Grpc,
}

/// How to reach a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Connection {
    /// What it is.
    pub kind: Kind,
    /// Where it is; for [`Kind::Http`] the whole address of the profile.
    pub address: Url,
    /// How it is spoken to, where there is a choice.
    pub transport: Transport,
    /// Whom to believe, and who we are.
    pub tls: Tls,
    /// Sent with every call.
    pub headers: Vec<(String, String)>,
    /// The user of basic authentication; without one, a secret is sent as a bearer token.
    pub user: Option<String>,
    /// The project of Polar Signals Cloud.
    pub project: Option<String>,
    /// The tenant of Pyroscope.
    pub tenant: Option<String>,
}

/// The files of a TLS connection, and whether the other side is checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tls {
    /// Certificates of authorities to believe besides the system's.
    pub ca_file: Option<PathBuf>,
    /// Our own certificate.
    pub certificate_file: Option<PathBuf>,
    /// Its key.
    pub key_file: Option<PathBuf>,
    /// Whether the server's certificate is checked.
    pub is_verified: bool,
}

impl Default for Tls {
    fn default() -> Self {
        Self { ca_file: None, certificate_file: None, key_file: None, is_verified: true }
    }
}

impl Connection {
    /// A connection to an address, with nothing else said.
    pub fn new(kind: Kind, address: Url) -> Self {
        Self {
            kind,
            address,
            transport: Transport::default(),
            tls: Tls::default(),
            headers: Vec::new(),
            user: None,
            project: None,
            tenant: None,
        }
    }

    /// Where it leads.
    pub fn origin(&self) -> Origin {
        Origin::of(&self.address)
    }

    /// The address with a path below it.
    pub fn below(&self, path: &str) -> Url {
        let mut url = self.address.clone();
        url.set_query(None);
        url.set_fragment(None);
        let base = self.address.path().trim_end_matches('/');
        url.set_path(&format!("{base}{path}"));
        url
    }

    /// The host with its port, for sentences.
    pub fn server(&self) -> String {
        server(&self.address)
    }
}

/// The host of an address, with its port where it is not the usual one.
pub fn server(address: &Url) -> String {
    let host = address.host_str().unwrap_or_default();
    match address.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Scheme, host and port: what a secret belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin(String);

impl Origin {
    /// Of an address.
    pub fn of(address: &Url) -> Self {
        Self(address.origin().ascii_serialization())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether an address leads to this machine.
pub fn is_loopback(address: &Url) -> bool {
    match address.host() {
        Some(Host::Ipv4(ip)) => IpAddr::V4(ip).is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::V6(ip).is_loopback(),
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        None => false,
    }
}

/// Secrets go over TLS, or don't leave the machine.
pub fn may_carry_secrets(address: &Url) -> Result<(), SourceError> {
    if address.scheme() == "https" || is_loopback(address) {
        return Ok(());
    }
    Err(SourceError::input(format!(
        "a token is not sent to {} in the open; use an https address, or remove the token",
        server(address)
    )))
}

/// Reads the address of a server as people type it: without a scheme it is https, or http on
/// this machine.
pub fn parse_address(text: &str) -> Result<Url, SourceError> {
    let text = text.trim();
    let wrong =
        || SourceError::input(format!("`{text}` is no address of a server; write one like http://localhost:7070"));
    if text.is_empty() || text.starts_with(['/', '.']) || text.contains(char::is_whitespace) {
        return Err(wrong());
    }
    let full = if text.contains("://") {
        text.to_owned()
    } else {
        let guess = Url::parse(&format!("http://{text}")).map_err(|_| wrong())?;
        format!("{}://{text}", if is_loopback(&guess) { "http" } else { "https" })
    };
    let url = Url::parse(&full).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(wrong());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(SourceError::input(
            "a user or password does not belong into an address, where it would be seen; run perflens login --token",
        ));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_completed_as_people_mean_them() {
        for (typed, url) in [
            ("localhost:7070", "http://localhost:7070/"),
            ("127.0.0.1:4040/x", "http://127.0.0.1:4040/x"),
            ("[::1]:7070", "http://[::1]:7070/"),
            ("parca.example.com", "https://parca.example.com/"),
            (" http://parca.example.com:80/a ", "http://parca.example.com/a"),
        ] {
            assert_eq!(parse_address(typed).unwrap().as_str(), url, "{typed}");
        }
        for typed in ["", "ftp://x", "http://", "/a/b", "http://user:secret@x"] {
            assert!(parse_address(typed).is_err(), "{typed}");
        }
        let sentence = parse_address("https://me:hunter2@x").unwrap_err().to_string();
        assert!(!sentence.contains("hunter2"), "{sentence}");
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let origin = |text: &str| Origin::of(&Url::parse(text).unwrap()).to_string();
        assert_eq!(origin("https://A.example/x?y"), "https://a.example");
        assert_eq!(origin("https://a.example:443"), origin("https://a.example"));
        assert_ne!(origin("https://a.example:444"), origin("https://a.example"));
        assert_ne!(origin("http://a.example"), origin("https://a.example"));
    }

    #[test]
    fn secrets_stay_on_tls_or_on_this_machine() {
        let may = |text: &str| may_carry_secrets(&Url::parse(text).unwrap()).is_ok();
        assert!(
            may("https://a.example") && may("http://localhost:1") && may("http://127.8.9.1") && may("http://[::1]")
        );
        assert!(!may("http://a.example") && !may("http://localhost.example") && !may("http://127.0.0.1.example"));
    }

    #[test]
    fn paths_go_below_the_address() {
        let below = |text: &str| Connection::new(Kind::Parca, Url::parse(text).unwrap()).below("/a/b").to_string();
        assert_eq!(below("http://x:1"), "http://x:1/a/b");
        assert_eq!(below("http://x:1/api/"), "http://x:1/api/a/b");
        assert_eq!(below("http://x:1/api?q#f"), "http://x:1/api/a/b");
    }
}
