//! The codes of gRPC, as failures for the user.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use prost::Message;

use super::super::error::{SourceError, SourceErrorKind as Kind};

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

/// More than a server's plan for a client can be.
const MAX_DELAY: Duration = Duration::from_hours(24);

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

#[derive(Clone, PartialEq, Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<super::super::wire::Duration>,
}

/// When the details of a status say to come back.
fn retry_delay(details: &[u8]) -> Option<Duration> {
    let details = Status::decode(details).ok()?.details;
    let info = details.iter().find(|any| any.type_url.ends_with("/google.rpc.RetryInfo"))?;
    let delay = RetryInfo::decode(&info.value[..]).ok()?.retry_delay?;
    let seconds = Duration::from_secs(u64::try_from(delay.seconds).ok()?);
    Some((seconds + Duration::from_nanos(u64::try_from(delay.nanos).ok()?)).min(MAX_DELAY))
}

/// The bytes of `grpc-status-details-bin`, padded or not.
pub(super) fn decode_details(text: &str) -> Vec<u8> {
    const ANY_PADDING: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engine = GeneralPurpose::new(&base64::alphabet::STANDARD, ANY_PADDING);
    engine.decode(text.trim()).unwrap_or_default()
}

/// The text of `grpc-message`: percent-encoded UTF-8; what is not stays as it is.
pub(super) fn decode_message(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
        if bytes[at] == b'%'
            && let (Some(high), Some(low)) = (hex(bytes.get(at + 1)), hex(bytes.get(at + 2)))
        {
            decoded.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
            at += 3;
        } else {
            decoded.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_says_when_to_come_back() {
        let status = |type_url: &str, seconds: i64, nanos: i32| {
            let value = RetryInfo { retry_delay: Some(super::super::super::wire::Duration { seconds, nanos }) };
            let any = Any { type_url: type_url.to_owned(), value: value.encode_to_vec() };
            let other = Any { type_url: "type.googleapis.com/google.rpc.ErrorInfo".to_owned(), value: vec![10, 1, 65] };
            Status { details: vec![other, any] }.encode_to_vec()
        };
        let info = "type.googleapis.com/google.rpc.RetryInfo";
        let fails = |code, details: &[u8]| failure_with("x", (code, ""), details, Duration::ZERO);
        for (code, details, kind, after) in [
            (14, status(info, 3, 500_000_000), Kind::Busy, Some(Duration::from_millis(3500))),
            (8, status(info, 1, 0), Kind::Busy, Some(Duration::from_secs(1))),
            (14, status(info, i64::MAX, 0), Kind::Busy, Some(MAX_DELAY)),
            (14, status(info, -1, 0), Kind::Busy, None),
            (14, status(info, 1, -1), Kind::Busy, None),
            (14, status("type.googleapis.com/google.rpc.Help", 1, 0), Kind::Busy, None),
            (14, vec![0xff; 9], Kind::Busy, None),
            // What will not be better later is not asked for again.
            (3, status(info, 1, 0), Kind::Query, None),
        ] {
            let error = fails(code, &details);
            assert_eq!((error.kind, error.retry_after), (kind, after));
        }
        assert_eq!(decode_details("AAEC"), [0, 1, 2]);
        assert_eq!(
            (decode_details("AAE="), decode_details("AAE"), decode_details("?")),
            (vec![0, 1], vec![0, 1], vec![])
        );
    }

    #[test]
    fn messages_are_decoded_as_far_as_they_can_be() {
        for (text, decoded) in [
            ("plain", "plain"),
            ("a%20b%C3%A4", "a b\u{e4}"),
            ("100%", "100%"),
            ("%zz%2", "%zz%2"),
            ("%ff", "\u{fffd}"),
        ] {
            assert_eq!(decode_message(text), decoded);
        }
    }
}
