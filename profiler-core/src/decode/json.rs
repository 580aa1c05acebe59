//! JSON for files that serde can't take as they are: trees of any depth, and files that end
//! in the middle.

use std::borrow::Cow;

use super::{DecodeError, DecodeErrorKind, text};

/// Reads a whole JSON text.
pub(super) fn parse<'a, T: serde::Deserialize<'a>>(text: &'a str) -> Result<T, DecodeError> {
    serde_json::from_str(text).map_err(|error| error_of(&error))
}

/// What an error of serde means for the user.
pub(super) fn error_of(error: &serde_json::Error) -> DecodeError {
    if error.is_eof() {
        DecodeError::truncated(format!("its JSON ends in the middle, at line {}", error.line()))
    } else {
        DecodeError::invalid(format!("its JSON is not what it should be: {error}"))
    }
}

/// The beginning of a file, if it could be JSON that starts with one of these.
pub(super) fn beginning<'a>(prefix: &'a [u8], starts: &[char]) -> Option<Cow<'a, str>> {
    text::decode(prefix).filter(|content| content.trim_start().starts_with(starts))
}

/// A piece of JSON.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// `{`
    Object,
    /// `[`
    Array,
    /// `}` or `]`
    End,
    /// The name of a member; its value follows.
    Key(Cow<'a, str>),
    Text(Cow<'a, str>),
    Number(f64),
    /// `true`, `false` or `null`.
    Word,
}

/// Takes JSON apart without recursion. Commas and colons are not insisted on: a file that is
/// wrong there and right everywhere else may as well be read.
pub(super) struct Tokens<'a> {
    text: &'a str,
    position: usize,
    /// Whether each open container is an object.
    open: Vec<bool>,
}

/// No format nests like this but a stack in a tree, which is as deep as the program's.
const MAX_DEPTH: usize = 1 << 20;

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, position: 0, open: Vec::new() }
    }

    /// The next piece; `None` at the end of a complete text.
    pub(super) fn next(&mut self) -> Result<Option<Token<'a>>, DecodeError> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\t' | b'\r' | b'\n' | b',' | b':') = bytes.get(self.position) {
            self.position += 1;
        }
        let Some(&first) = bytes.get(self.position) else {
            return if self.open.is_empty() {
                Ok(None)
            } else {
                Err(DecodeError::truncated("its JSON ends in the middle"))
            };
        };
        Ok(Some(match first {
            b'{' | b'[' => {
                if self.open.len() == MAX_DEPTH {
                    return Err(DecodeError::new(DecodeErrorKind::Limit, "its JSON is nested too deeply"));
                }
                self.position += 1;
                self.open.push(first == b'{');
                if first == b'{' { Token::Object } else { Token::Array }
            }
            b'}' | b']' => {
                self.position += 1;
                if self.open.pop() != Some(first == b'}') {
                    return Err(self.unexpected());
                }
                Token::End
            }
            b'"' => {
                let text = self.text_literal()?;
                let is_key = self.open.last() == Some(&true) && self.is_before_colon();
                if is_key { Token::Key(text) } else { Token::Text(text) }
            }
            b'-' | b'0'..=b'9' => Token::Number(self.number()?),
            b'a'..=b'z' => {
                let length = bytes[self.position..].iter().take_while(|byte| byte.is_ascii_lowercase()).count();
                let word = &self.text[self.position..self.position + length];
                if !matches!(word, "true" | "false" | "null") {
                    return Err(self.unexpected());
                }
                self.position += length;
                Token::Word
            }
            _ => return Err(self.unexpected()),
        }))
    }

    /// Passes over the value that follows a key.
    pub(super) fn skip_value(&mut self) -> Result<(), DecodeError> {
        let depth = self.open.len();
        loop {
            match self.next()? {
                None => return Err(DecodeError::truncated("its JSON ends in the middle")),
                Some(Token::Key(_)) => {}
                Some(_) if self.open.len() <= depth => return Ok(()),
                Some(_) => {}
            }
        }
    }

    /// Where the next piece starts.
    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    fn is_before_colon(&self) -> bool {
        self.rest().trim_start().starts_with(':')
    }

    fn number(&mut self) -> Result<f64, DecodeError> {
        let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
        let length = self.rest().as_bytes().iter().take_while(|&byte| is_part(byte)).count();
        let number = self.text[self.position..self.position + length].parse().map_err(|_| self.unexpected())?;
        self.position += length;
        Ok(number)
    }

    fn text_literal(&mut self) -> Result<Cow<'a, str>, DecodeError> {
        let bytes = self.text.as_bytes();
        let start = self.position;
        let mut end = start + 1;
        let mut has_escapes = false;
        loop {
            match bytes.get(end) {
                None => return Err(DecodeError::truncated("its JSON ends inside a text")),
                Some(b'"') => break,
                Some(b'\\') => {
                    has_escapes = true;
                    end += 2;
                }
                Some(_) => end += 1,
            }
        }
        self.position = end + 1;
        if has_escapes {
            let literal = self.text.get(start..=end).ok_or_else(|| self.unexpected())?;
            serde_json::from_str(literal).map(Cow::Owned).map_err(|_| self.unexpected())
        } else {
            Ok(Cow::Borrowed(&self.text[start + 1..end]))
        }
    }

    fn unexpected(&self) -> DecodeError {
        DecodeError::invalid(format!("its JSON is damaged at byte {}", self.position))
    }
}
