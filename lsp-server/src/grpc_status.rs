//! How a call of gRPC went, as it is written down: words in a header, details as messages. Read where we
//! ask servers, and written where we are one. What a code means to the user is the asking side's matter.

use std::fmt::Write as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use prost::Message;

use crate::source::wire::Duration as WireDuration;

/// What the details of a status are the fields of; the body of a refusal by OTLP over HTTP, too.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Status {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
    #[prost(string, tag = "2")]
    pub(crate) message: String,
    #[prost(message, repeated, tag = "3")]
    pub(crate) details: Vec<Any>,
}

/// A message of any type.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Any {
    #[prost(string, tag = "1")]
    pub(crate) type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) value: Vec<u8>,
}

/// When the same call may go well.
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<WireDuration>,
}

/// More than a server's plan for a client can be.
pub(crate) const MAX_DELAY: Duration = Duration::from_hours(24);

/// The last part of the type's name.
const RETRY_INFO: &str = "/google.rpc.RetryInfo";

impl Any {
    /// Says to come again after so many seconds.
    pub(crate) fn retry(seconds: i64) -> Self {
        let value = RetryInfo { retry_delay: Some(WireDuration { seconds, nanos: 0 }) }.encode_to_vec();
        Self { type_url: format!("type.googleapis.com{RETRY_INFO}"), value }
    }
}

impl Status {
    /// When its details say to come back; no longer than [`MAX_DELAY`].
    pub(crate) fn retry_delay(&self) -> Option<Duration> {
        let info = self.details.iter().find(|any| any.type_url.ends_with(RETRY_INFO))?;
        let delay = RetryInfo::decode(&info.value[..]).ok()?.retry_delay?;
        let seconds = Duration::from_secs(u64::try_from(delay.seconds).ok()?);
        let nanos = Duration::from_nanos(u64::try_from(delay.nanos).ok()?);
        Some(seconds.saturating_add(nanos).min(MAX_DELAY))
    }

    /// The value of `grpc-status-details-bin`.
    pub(crate) fn header(&self) -> String {
        STANDARD_NO_PAD.encode(self.encode_to_vec())
    }
}

/// The bytes of `grpc-status-details-bin`, padded or not.
pub(crate) fn decode_details(text: &str) -> Vec<u8> {
    const ANY_PADDING: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engine = GeneralPurpose::new(&base64::alphabet::STANDARD, ANY_PADDING);
    engine.decode(text.trim()).unwrap_or_default()
}

/// The text of `grpc-message`: percent-encoded UTF-8; what is not stays as it is.
pub(crate) fn decode_message(text: &str) -> String {
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

/// A text for `grpc-message`.
pub(crate) fn encode_message(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(char::from(byte)),
            _ => drop(write!(encoded, "%{byte:02X}")),
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_when_to_come_back() {
        let status = |type_url: &str, seconds: i64, nanos: i32| {
            let value = RetryInfo { retry_delay: Some(WireDuration { seconds, nanos }) }.encode_to_vec();
            let other = Any { type_url: "type.googleapis.com/google.rpc.ErrorInfo".to_owned(), value: vec![10, 1, 65] };
            let any = Any { type_url: type_url.to_owned(), value };
            Status { code: 14, message: String::new(), details: vec![other, any] }
        };
        let info = "type.googleapis.com/google.rpc.RetryInfo";
        for (status, after) in [
            (status(info, 3, 500_000_000), Some(Duration::from_millis(3500))),
            (status(info, 1, 0), Some(Duration::from_secs(1))),
            (status(info, i64::MAX, 999_999_999), Some(MAX_DELAY)),
            (status(info, -1, 0), None),
            (status(info, 1, -1), None),
            (status("type.googleapis.com/google.rpc.Help", 1, 0), None),
            (Status { code: 14, message: String::new(), details: vec![Any::retry(2)] }, Some(Duration::from_secs(2))),
        ] {
            let again = Status::decode(&decode_details(&status.header())[..]).unwrap();
            assert_eq!((again.retry_delay(), &again), (after, &status));
        }
    }

    #[test]
    fn details_may_be_padded() {
        for (text, bytes) in
            [("AAEC", &[0, 1, 2][..]), ("AAE=", &[0, 1]), ("AAE", &[0, 1]), (" AAE ", &[0, 1]), ("?", &[])]
        {
            assert_eq!(decode_details(text), bytes, "{text}");
        }
    }

    #[test]
    fn messages_are_plain_ascii() {
        assert_eq!(encode_message("50% of é\n"), "50%25 of %C3%A9%0A");
        for text in ["", "50% of é\n", "%41", "a\u{202e}b"] {
            assert_eq!(decode_message(&encode_message(text)), text);
        }
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
