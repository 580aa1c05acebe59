//! Text of any of the encodings that files of people and scripts come in.

use std::borrow::Cow;

/// The text of a file that is UTF-8, or UTF-16 with a byte order mark, without the mark.
/// Broken characters become U+FFFD. `None` when it is no text.
pub(super) fn decode(bytes: &[u8]) -> Option<Cow<'_, str>> {
    match bytes {
        [0xff, 0xfe, rest @ ..] => Some(utf16(rest, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => Some(utf16(rest, u16::from_be_bytes)),
        [0xef, 0xbb, 0xbf, rest @ ..] => utf8(rest),
        _ => utf8(bytes),
    }
}

fn utf8(bytes: &[u8]) -> Option<Cow<'_, str>> {
    (!bytes.contains(&0)).then(|| String::from_utf8_lossy(bytes))
}

/// A last odd byte is left out.
fn utf16<'a>(bytes: &[u8], unit: impl Fn([u8; 2]) -> u16) -> Cow<'a, str> {
    let units = bytes.as_chunks::<2>().0.iter().map(|&pair| unit(pair));
    char::decode_utf16(units).map(|decoded| decoded.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}
