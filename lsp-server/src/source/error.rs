//! Why a source gave no profile: a kind that decides what happens next, and the sentence for
//! the user. Every sentence is made here.

use std::fmt;
use std::time::Duration;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceErrorKind {
    /// What the user gave is no address or query; the detail is the sentence.
    Input,
    /// The server can't make sense of the query.
    Query,
    /// The server does not know who is asking.
    SignIn,
    /// It knows, and refuses.
    Permission,
    /// There is no such thing at the address.
    NotFound,
    /// The query is fine, and there is nothing.
    NoData,
    /// The answer is beyond a bound.
    TooLarge,
    /// It took too long.
    Timeout,
    /// The server can't be reached, or the connection broke.
    Network,
    /// It is reached, and there is no agreement on TLS.
    Tls,
    /// It answers something else than what such a server answers.
    Protocol,
    /// It asks to come back later.
    Busy,
    /// It failed.
    Server,
}

/// A source gave no profile. Displays as one sentence without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError {
    /// What is wrong.
    pub kind: SourceErrorKind,
    /// Whose fault it is: the host, for the sentence.
    pub server: String,
    /// What it said, or what is known beyond the kind. Foreign text.
    pub detail: String,
    /// When it wants to be asked again.
    pub retry_after: Option<Duration>,
}

impl SourceError {
    /// An error of a server.
    pub fn new(kind: SourceErrorKind, server: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind, server: server.into(), detail: detail.into(), retry_after: None }
    }

    /// What the user gave is at fault: the whole sentence.
    pub fn input(sentence: impl Into<String>) -> Self {
        Self::new(SourceErrorKind::Input, "", sentence)
    }

    /// A server that has many profiles was asked for none of them.
    pub(super) fn needs_query(server: &str) -> Self {
        Self::input(format!("{server} has many profiles; say which with a query"))
    }

    /// Whether asking again soon may help.
    pub fn is_transient(&self) -> bool {
        matches!(self.kind, SourceErrorKind::Network | SourceErrorKind::Busy)
    }
}

impl std::error::Error for SourceError {}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use SourceErrorKind as Kind;
        let Self { kind, server, detail, retry_after } = self;
        let because = |f: &mut fmt::Formatter<'_>| if detail.is_empty() { Ok(()) } else { write!(f, ": {detail}") };
        match kind {
            Kind::Input => f.write_str(detail),
            Kind::Query => {
                write!(f, "{server} can't make sense of the query")?;
                because(f)
            }
            Kind::SignIn => {
                write!(f, "{server} wants you to sign in")?;
                because(f)?;
                f.write_str("; run perflens login")
            }
            Kind::Permission => {
                write!(f, "{server} does not let you see this")?;
                because(f)?;
                f.write_str("; check the project and what your account or token may do")
            }
            Kind::NotFound => {
                write!(f, "{server} has nothing at this address")?;
                because(f)
            }
            Kind::NoData => {
                write!(f, "{server} has no data for this")?;
                because(f)?;
                f.write_str("; choose a longer time, or fewer labels")
            }
            Kind::TooLarge => {
                write!(f, "the answer of {server} is too large")?;
                because(f)?;
                f.write_str("; choose a shorter time, or more labels")
            }
            Kind::Timeout => write!(f, "{server} did not answer in time ({detail})"),
            Kind::Network => {
                write!(f, "{server} can't be reached")?;
                because(f)
            }
            Kind::Tls => write!(f, "{server} and TLS: {detail}"),
            Kind::Protocol => {
                write!(f, "{server} does not answer as such a server does")?;
                because(f)
            }
            Kind::Busy => {
                write!(f, "{server} is too busy")?;
                because(f)?;
                match retry_after {
                    Some(after) => write!(f, "; it wants to be asked again in {} s", after.as_secs().max(1)),
                    None => f.write_str("; try again later"),
                }
            }
            Kind::Server => {
                write!(f, "{server} failed")?;
                because(f)
            }
        }
    }
}
