//! Text from a profile or a source file is data: what people are shown of it must not move
//! the cursor, change the direction of the line, hide, or fill the screen.
//!
//! Every view passes foreign text through here, once, when it makes a
//! [`Span`](super::document::Span) of it; renderers rely on that.

use std::borrow::Cow;
use std::fmt::Write;

/// Most characters of a name, path or label that are shown.
pub const MAX_CHARS: usize = 200;

/// The text for people: harmful characters escaped, and cut in the middle beyond
/// [`MAX_CHARS`].
///
/// ```
/// use profiler_core::view::data::shown;
/// assert_eq!(shown("std::vec::Vec<T>"), "std::vec::Vec<T>");
/// assert_eq!(shown("\u{1b}[31m\nred"), "\\u{1b}[31m\\nred");
/// assert_eq!(shown(&"x".repeat(10_000)).chars().count(), 200);
/// ```
pub fn shown(text: &str) -> Cow<'_, str> {
    shown_within(text, MAX_CHARS)
}

/// The same, for a text that may have so many characters.
pub fn shown_within(text: &str, max_chars: usize) -> Cow<'_, str> {
    let escaped = escaped(text);
    // A character is one byte at least, so most texts are short without counting.
    if escaped.len() <= max_chars {
        return escaped;
    }
    let length = escaped.chars().count();
    if length <= max_chars {
        return escaped;
    }
    let head = max_chars / 2;
    let tail = max_chars.saturating_sub(head + 1);
    Cow::Owned(escaped.chars().take(head).chain(['…']).chain(escaped.chars().skip(length - tail)).collect())
}

/// The text with harmful characters escaped as in a Rust literal, whatever its length.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_harmful(c) => {
                // Writing to a string can't fail.
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Control characters (the terminal obeys them), line separators, and what is invisible or
/// reorders its surroundings. The joiners U+200C and U+200D stay: scripts need them.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
