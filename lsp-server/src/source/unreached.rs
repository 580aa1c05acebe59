//! Why there was no answer at all, in words: who speaks TLS to whom, whose certificate is not
//! believed, and what to do about it.
//!
//! TLS that only one side speaks shows in many ways, and some of them only in texts of libraries;
//! `tests/tests/sources_tls.rs` has them all. What TLS itself has to say comes with its type.

use std::error::Error;
use std::io;

use rustls::{AlertDescription, CertificateError, Error as TlsError, InvalidMessage};

use super::connection::Connection;
use super::error::{SourceError, SourceErrorKind as Kind};
use super::http::CONNECT;
use super::time::Instant;

pub(super) const SPEAKS_TLS: &str = "it speaks TLS, the address says plain HTTP; write https instead of http";
const SPEAKS_PLAIN: &str =
    "it speaks plain HTTP, the address says TLS; write http instead of https, or use another port";

/// What servers say that don't believe a certificate.
const ABOUT_CERTIFICATES: [AlertDescription; 8] = [
    AlertDescription::BadCertificate,
    AlertDescription::UnsupportedCertificate,
    AlertDescription::CertificateRevoked,
    AlertDescription::CertificateExpired,
    AlertDescription::CertificateUnknown,
    AlertDescription::UnknownCA,
    AlertDescription::AccessDenied,
    AlertDescription::DecryptError,
];

/// What is known of a connection that failed.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    /// The host, for sentences.
    pub(super) server: String,
    /// Whether TLS was tried.
    pub(super) is_https: bool,
    /// Whether there was a certificate of ours to show.
    shows_certificate: bool,
}

impl Attempt {
    pub(super) fn at(connection: &Connection) -> Self {
        Self {
            server: connection.server(),
            is_https: connection.address.scheme() == "https",
            shows_certificate: connection.tls.certificate_file.is_some(),
        }
    }

    /// What went wrong below HTTP, as a sentence.
    pub(super) fn failure(&self, is_timeout: bool, error: &(dyn Error + 'static)) -> SourceError {
        let new = |kind, detail: String| SourceError::new(kind, &self.server, detail);
        if let Some(tls) = tls(error) {
            return new(Kind::Tls, self.tls_in_words(&tls));
        }
        let chain = chain(error);
        if let Some(alert) = chain.iter().find_map(|text| alert(text)) {
            return new(Kind::Tls, self.alert_in_words(alert));
        }
        let has = |part: &str| chain.iter().any(|text| text.contains(part));
        let detail = chain.last().cloned().unwrap_or_default();
        if self.is_https && has("corrupt message") {
            return new(Kind::Tls, SPEAKS_PLAIN.to_owned());
        }
        if self.is_https && has("tls handshake eof") {
            return new(
                Kind::Tls,
                "it broke off the handshake; perhaps it speaks plain HTTP, then write http".to_owned(),
            );
        }
        if !self.is_https
            && (has("invalid HTTP version parsed") || has("frame with invalid size") || has("HTTP_1_1_REQUIRED"))
        {
            return new(
                Kind::Tls,
                "it speaks TLS or no HTTP at all, the address says plain HTTP; try https".to_owned(),
            );
        }
        if is_timeout || has("timed out") {
            return new(Kind::Timeout, format!("{} s to connect", CONNECT.as_secs()));
        }
        new(Kind::Network, detail)
    }

    fn tls_in_words(&self, error: &TlsError) -> String {
        match error {
            TlsError::InvalidMessage(InvalidMessage::InvalidContentType) => SPEAKS_PLAIN.to_owned(),
            TlsError::InvalidCertificate(problem) => certificate_in_words(problem),
            TlsError::AlertReceived(alert) => self.alert_in_words(*alert),
            TlsError::NoApplicationProtocol => {
                "it agrees on no protocol that we speak; over gRPC that means it has no HTTP/2".to_owned()
            }
            other => other.to_string(),
        }
    }

    /// The server has refused, and says as little as it likes.
    fn alert_in_words(&self, alert: AlertDescription) -> String {
        const SET: &str = "it wants a certificate of yours; set source.certificateFile and source.keyFile";
        match alert {
            AlertDescription::CertificateRequired => SET.to_owned(),
            // What servers say before TLS 1.3 when there is none.
            AlertDescription::BadCertificate | AlertDescription::HandshakeFailure if !self.shows_certificate => {
                format!("it refused the connection ({alert:?}); perhaps {SET}")
            }
            alert if self.shows_certificate && ABOUT_CERTIFICATES.contains(&alert) => {
                format!(
                    "it does not believe the certificate of source.certificateFile ({alert:?}); ask for another one"
                )
            }
            AlertDescription::ProtocolVersion => {
                "it speaks only versions of TLS that are not secure any more (before 1.2)".to_owned()
            }
            AlertDescription::NoApplicationProtocol => {
                "it has no HTTP/2, which gRPC needs; use gRPC-web, or another port".to_owned()
            }
            AlertDescription::UnrecognisedName => "it knows no host of this name; check the address".to_owned(),
            other => format!("it broke off the handshake ({other:?})"),
        }
    }
}

fn certificate_in_words(problem: &CertificateError) -> String {
    match problem {
        CertificateError::ExpiredContext { not_after, .. } => format!(
            "its certificate has expired, at {}; whoever runs it has to renew it, unless the clock of this machine is \
             wrong",
            time(not_after.as_secs())
        ),
        CertificateError::Expired => "its certificate has expired; whoever runs it has to renew it".to_owned(),
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!(
                "its certificate is not valid before {}; is the clock of this machine right?",
                time(not_before.as_secs())
            )
        }
        CertificateError::NotValidYet => {
            "its certificate is not valid yet; is the clock of this machine right?".to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names: Vec<&str> = presented.iter().map(|name| bare(name)).collect();
            let names = if names.is_empty() { "no name".to_owned() } else { names.join(", ") };
            format!("its certificate is for {names}, not for {}; use a name that it is for", expected.to_str())
        }
        CertificateError::NotValidForName => {
            "its certificate is for another name; use the name that it is for".to_owned()
        }
        // Another authority may have the same name.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "its certificate is from an authority that is not known here; if it is \
                                            yours, set source.caFile to the authority's own certificate"
                .to_owned()
        }
        CertificateError::Revoked => "its certificate has been revoked".to_owned(),
        other => format!(
            "its certificate is not believed ({other}); set source.caFile to the certificate of the authority it is \
             from"
        ),
    }
}

fn time(seconds: u64) -> Instant {
    Instant::from_millis(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000))
}

/// `DnsName("a.example")` without what is around it.
fn bare(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
    inner.trim_matches('"')
}

/// What TLS says, wherever it is among the causes.
fn tls(error: &(dyn Error + 'static)) -> Option<TlsError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(tls) = error.downcast_ref::<TlsError>() {
            return Some(tls.clone());
        }
        // The source of such an error is that of what is in it, which would be passed over.
        let within = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(found) = within.and_then(|within| tls(within as &(dyn Error + 'static))) {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// The alert in a text, where all that is left of an error is that: HTTP/2 keeps no more.
fn alert(text: &str) -> Option<AlertDescription> {
    let (_, name) = text.split_once("received fatal alert: ")?;
    let others = [
        AlertDescription::CertificateRequired,
        AlertDescription::HandshakeFailure,
        AlertDescription::ProtocolVersion,
        AlertDescription::UnrecognisedName,
    ];
    let mut known = ABOUT_CERTIFICATES.into_iter().chain(others);
    known.find(|alert| format!("{alert:?}") == name)
}

/// An error and what is behind it, the cause last.
fn chain(error: &(dyn Error + 'static)) -> Vec<String> {
    let mut texts = vec![error.to_string()];
    let mut next = error.source();
    while let Some(error) = next {
        texts.push(error.to_string());
        next = error.source();
    }
    texts
}
