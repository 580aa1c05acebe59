//! The codes of gRPC, as failures for the user.

use std::time::Duration;

use prost::Message as _;

use super::super::error::{SourceError, SourceErrorKind as Kind};
use crate::grpc_status::Status;

/// Most characters of a server's words.
const MAX_WORDS: usize = 300;

/// The failure that a code stands for. `message` is the server's, decoded.
pub(in crate::source) fn failure(server: &str, code: u32, message: &str, deadline: Duration) -> SourceError {
    let message: String = message.chars().take(MAX_WORDS).collect();
    let kind = match code {
        2 if message.contains("parse") => Kind::Query,
        3 | 9 | 11 => Kind::Query,
        4 => return SourceError::new(Kind::Timeout, server, format!("{} s", deadline.as_secs())),
        5 => Kind::NoData,
        7 => Kind::Permission,
        // The same code stands for "too much at once" and "too large".
        8 if ["larger", "exceed", "too large", "size"].iter().any(|word| message.contains(word)) => Kind::TooLarge,
        8 | 14 => Kind::Busy,
        12 => {
            let detail = format!("it does not know this call ({message}); is it the right server and path?");
            return SourceError::new(Kind::Protocol, server, detail);
        }
        16 => Kind::SignIn,
        _ => Kind::Server,
    };
    SourceError::new(kind, server, message)
}

/// The same, for a server that may have said when it wants to be asked again; `details` are those of
/// the status.
pub(super) fn failure_with(
    server: &str,
    (code, message): (u32, &str),
    details: &[u8],
    deadline: Duration,
) -> SourceError {
    let error = failure(server, code, message, deadline);
    match retry_delay(details) {
        // Whoever says when is not asked for something too large.
        Some(delay) if matches!(error.kind, Kind::Busy | Kind::TooLarge) => {
            SourceError { kind: Kind::Busy, retry_after: Some(delay), ..error }
        }
        _ => error,
    }
}

/// When the details of a status say to come back.
fn retry_delay(details: &[u8]) -> Option<Duration> {
    Status::decode(details).ok()?.retry_delay()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc_status::{Any, MAX_DELAY};

    #[test]
    fn a_server_says_when_to_come_back() {
        let status = |seconds: i64| {
            Status { code: 14, message: String::new(), details: vec![Any::retry(seconds)] }.encode_to_vec()
        };
        for (code, details, kind, after) in [
            (14, status(3), Kind::Busy, Some(Duration::from_secs(3))),
            (8, status(1), Kind::Busy, Some(Duration::from_secs(1))),
            (14, status(i64::MAX), Kind::Busy, Some(MAX_DELAY)),
            (14, status(-1), Kind::Busy, None),
            (14, vec![0xff; 9], Kind::Busy, None),
            // What will not be better later is not asked for again.
            (3, status(1), Kind::Query, None),
        ] {
            let error = failure_with("x", (code, ""), &details, Duration::ZERO);
            assert_eq!((error.kind, error.retry_after), (kind, after));
        }
    }
}
