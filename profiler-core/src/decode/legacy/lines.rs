//! Lines of a text with their numbers, and whether they are whole.

/// One line.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    /// Without the line break.
    pub(super) text: &'a str,
    /// 1-based.
    pub(super) number: usize,
    /// Whether a line break ends it. Files of these formats end with one, so a last line
    /// without may have been cut anywhere.
    pub(super) is_whole: bool,
}

/// The lines of a text, with LF or CRLF.
#[derive(Clone)]
pub(super) struct Lines<'a> {
    rest: &'a str,
    number: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text, number: 0 }
    }

    /// The next line, which stays the next.
    pub(super) fn peek(&self) -> Option<Line<'a>> {
        self.clone().next()
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        self.number += 1;
        let (text, rest, is_whole) = match self.rest.split_once('\n') {
            Some((text, rest)) => (text, rest, true),
            None => (self.rest, "", false),
        };
        self.rest = rest;
        Some(Line { text: text.strip_suffix('\r').unwrap_or(text), number: self.number, is_whole })
    }
}

pub(super) fn is_blank_or_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

/// Reads `0x…` addresses that are separated by spaces. `None` when anything else is there.
pub(super) fn addresses(text: &str, into: &mut Vec<u64>) -> Option<()> {
    into.clear();
    for word in text.split_ascii_whitespace() {
        into.push(address(word)?);
    }
    Some(())
}

pub(super) fn address(word: &str) -> Option<u64> {
    let digits = word.strip_prefix("0x")?;
    // `from_str_radix` takes a sign.
    if digits.starts_with('+') { None } else { u64::from_str_radix(digits, 16).ok() }
}
