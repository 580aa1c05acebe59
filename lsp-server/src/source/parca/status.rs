//! The codes of gRPC, as failures for the user.

use std::time::Duration;

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
