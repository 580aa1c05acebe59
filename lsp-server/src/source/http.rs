//! One way to speak HTTP with sources: bounded, never redirected, with failures in words.
//!
//! Redirects are not followed anywhere. A call may carry a token, and an address that is only
//! nearly right is better corrected than guessed at.

use std::error::Error as _;
use std::fs;
use std::path::Path;
use std::sync::Once;
use std::time::Duration;

use prost::bytes::{Bytes, BytesMut};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Certificate, Client, Identity, RequestBuilder, Response, StatusCode, redirect};

use super::connection::{Connection, is_loopback};
use super::error::{SourceError, SourceErrorKind as Kind};
use super::progress::Progress;
use super::unreached::{Attempt, SPEAKS_TLS};

/// How long connecting may take.
pub(super) const CONNECT: Duration = Duration::from_secs(10);
/// The largest certificate file.
const MAX_PEM: u64 = 1 << 20;
/// What is kept of an answer that is no profile, to look for words in it.
const MAX_WORDS: usize = 300;
/// The largest answer: what the servers themselves allow for a message, and room around it.
pub(super) const MAX_REPLY: usize = (64 << 20) + (1 << 20);

/// A client of one server.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    client: Client,
    attempt: Attempt,
}

/// An answer, with its whole body.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Http {
    /// A client for a connection. Reads the files of its TLS settings.
    pub(crate) fn new(connection: &Connection) -> Result<Self, SourceError> {
        install_ring();
        let mut builder = Client::builder()
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT)
            .user_agent(concat!("perflens/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers(connection)?);
        // A proxy can't reach what is only on this machine.
        if is_loopback(&connection.address) {
            builder = builder.no_proxy();
        }
        let tls = &connection.tls;
        if let Some(path) = &tls.ca_file {
            let certificates = Certificate::from_pem_bundle(&pem(path)?).ok().filter(|some| !some.is_empty());
            let certificates = certificates
                .ok_or_else(|| SourceError::input(format!("{}: it holds no certificates in PEM", path.display())))?;
            builder = builder.tls_certs_merge(certificates);
        }
        if let Some(identity) = identity(connection)? {
            builder = builder.identity(identity);
        }
        if !tls.is_verified {
            builder = builder.tls_danger_accept_invalid_certs(true);
        }
        let client = builder
            .build()
            .map_err(|error| SourceError::input(format!("the connection can't be set up: {}", innermost(&error))))?;
        Ok(Self { client, attempt: Attempt::at(connection) })
    }

    /// The client, to begin a request with.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The host, for sentences.
    pub(crate) fn server(&self) -> &str {
        &self.attempt.server
    }

    /// Sends a request and reads the whole answer, within a deadline and a bound.
    pub(crate) async fn send(
        &self,
        request: RequestBuilder,
        deadline: Duration,
        progress: &Progress,
    ) -> Result<Reply, SourceError> {
        let work = async {
            let response = request.send().await.map_err(|error| self.failure(&error))?;
            self.read(response, progress).await
        };
        tokio::time::timeout(deadline, work)
            .await
            .unwrap_or_else(|_| Err(self.error(Kind::Timeout, format!("{} s", deadline.as_secs()))))
    }

    async fn read(&self, mut response: Response, progress: &Progress) -> Result<Reply, SourceError> {
        let (status, headers) = (response.status(), response.headers().clone());
        let too_large = || self.error(Kind::TooLarge, format!("more than {} MiB", MAX_REPLY >> 20));
        let announced = response.content_length().unwrap_or(0);
        if announced > MAX_REPLY as u64 {
            return Err(too_large());
        }
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.failure(&error))? {
            if body.len() + chunk.len() > MAX_REPLY {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
            progress.received(body.len());
        }
        Ok(Reply { status, headers, body: body.freeze() })
    }

    /// Whom it reaches and how, for when it doesn't.
    pub(super) fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    fn failure(&self, error: &reqwest::Error) -> SourceError {
        self.attempt.failure(error.is_timeout(), error)
    }

    /// An error of this server.
    pub(crate) fn error(&self, kind: Kind, detail: impl Into<String>) -> SourceError {
        SourceError::new(kind, self.server(), detail)
    }

    /// The failure that a status stands for; `None` when it is a success.
    pub(crate) fn refusal(&self, reply: &Reply) -> Option<SourceError> {
        let status = reply.status;
        if status.is_success() {
            return None;
        }
        if status.is_redirection() {
            let to = reply.headers.get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("somewhere else");
            return Some(self.error(
                Kind::Protocol,
                format!("it sends us to {to}, and redirects are not followed; give that address if it is right"),
            ));
        }
        // Go's servers say this in plain text.
        if status == StatusCode::BAD_REQUEST
            && !self.attempt.is_https
            && reply.body.ends_with(b"HTTP request to an HTTPS server.\n")
        {
            return Some(self.error(Kind::Tls, SPEAKS_TLS));
        }
        let kind = match status {
            StatusCode::UNAUTHORIZED => Kind::SignIn,
            StatusCode::FORBIDDEN => Kind::Permission,
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => Kind::NotFound,
            StatusCode::PAYLOAD_TOO_LARGE => Kind::TooLarge,
            StatusCode::GATEWAY_TIMEOUT | StatusCode::REQUEST_TIMEOUT => Kind::Timeout,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE | StatusCode::BAD_GATEWAY => Kind::Busy,
            status if status.is_client_error() => Kind::Query,
            _ => Kind::Server,
        };
        let words = words(reply);
        let detail = if words.is_empty() { status.to_string() } else { format!("{} ({words})", status.as_u16()) };
        let retry_after = reply.headers.get(RETRY_AFTER).and_then(|it| it.to_str().ok()?.parse().ok());
        Some(SourceError { retry_after: retry_after.map(Duration::from_secs), ..self.error(kind, detail) })
    }
}

fn innermost(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(next) = cause.and_then(std::error::Error::source) {
        cause = Some(next);
    }
    cause.map_or_else(|| error.to_string(), ToString::to_string)
}

/// What an answer says that was to be something else: the first line, or a page's title.
pub(crate) fn words(reply: &Reply) -> String {
    let text = String::from_utf8_lossy(&reply.body[..reply.body.len().min(16 << 10)]).into_owned();
    if is_page(reply) {
        return match title(&text) {
            Some(title) => format!("a web page titled “{title}”"),
            None => "a web page".to_owned(),
        };
    }
    let is_text = reply
        .headers
        .get(CONTENT_TYPE)
        .and_then(|it| it.to_str().ok())
        .is_none_or(|it| it.starts_with("text/") || it.contains("json"));
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let is_readable = line.chars().all(|character| !character.is_control() && character != '\u{fffd}');
    if is_text && is_readable { line.chars().take(MAX_WORDS).collect() } else { String::new() }
}

/// Whether an answer is a page for people.
pub(crate) fn is_page(reply: &Reply) -> bool {
    let is_html = |it: &HeaderValue| it.to_str().is_ok_and(|it| it.starts_with("text/html"));
    reply.headers.get(CONTENT_TYPE).is_some_and(is_html)
}

fn title(page: &str) -> Option<String> {
    let lower = page.to_ascii_lowercase();
    let start = lower.find("<title")?;
    let start = start + lower[start..].find('>')? + 1;
    let end = start + lower[start..].find("</title")?;
    let title: Vec<&str> = page.get(start..end)?.split_whitespace().collect();
    let title: String = title.join(" ").chars().take(100).collect();
    (!title.is_empty()).then_some(title)
}

fn headers(connection: &Connection) -> Result<HeaderMap, SourceError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &connection.headers {
        let wrong = || SourceError::input(format!("source.headers: `{name}` is no header that can be sent"));
        let name: HeaderName = name.parse().map_err(|_| wrong())?;
        let mut value: HeaderValue = value.parse().map_err(|_| wrong())?;
        // It may well be a secret.
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

fn identity(connection: &Connection) -> Result<Option<Identity>, SourceError> {
    let tls = &connection.tls;
    match (&tls.certificate_file, &tls.key_file) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => {
            let mut both = pem(key)?;
            both.push(b'\n');
            both.extend(pem(certificate)?);
            let wrong =
                |_| SourceError::input(format!("{}: it is no certificate with a key in PEM", certificate.display()));
            Identity::from_pem(&both).map(Some).map_err(wrong)
        }
        _ => Err(SourceError::input("source.certificateFile and source.keyFile need each other")),
    }
}

/// A file with certificates or keys.
pub(super) fn pem(path: &Path) -> Result<Vec<u8>, SourceError> {
    let fail = |why: String| SourceError::input(format!("{}: {why}", path.display()));
    let metadata = fs::metadata(path).map_err(|error| fail(error.to_string()))?;
    if !metadata.is_file() || metadata.len() > MAX_PEM {
        return Err(fail("it is no file of certificates or keys".to_owned()));
    }
    fs::read(path).map_err(|error| fail(error.to_string()))
}

/// The library for TLS asks which cryptography to use; once per process.
pub(crate) fn install_ring() {
    static ONCE: Once = Once::new();
    // Somebody else's choice would be just as good.
    ONCE.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
}
