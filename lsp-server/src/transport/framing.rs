//! Frames: a header that says how long the body is, and the body.
//!
//! Lenient where editors differ: header names in any case and order, further headers
//! ignored, `\n` for `\r\n`. What is beyond repair is skipped and told, and reading goes on.

use std::io::{BufRead, BufReader, Read};

/// One message, or why there is none.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Body(Vec<u8>),
    Unreadable(String),
}

/// No message of an editor comes near; a larger one is skipped without being held.
const MAX_BODY: u64 = 256 << 20;
/// Longest header block that is read.
const MAX_HEADER: u64 = 64 << 10;

pub(super) struct Reader<R> {
    input: BufReader<R>,
}

impl<R: Read> Reader<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input: BufReader::with_capacity(64 << 10, input) }
    }

    /// The next frame; `None` at the end of input.
    pub(super) fn next(&mut self) -> Option<Frame> {
        let mut length = None;
        let mut has_header = false;
        loop {
            let mut line = Vec::new();
            let read = (&mut self.input).take(MAX_HEADER).read_until(b'\n', &mut line).ok()?;
            if read == 0 || line.last() != Some(&b'\n') && read < usize::try_from(MAX_HEADER).unwrap_or(usize::MAX) {
                return None;
            }
            let line = line.trim_ascii();
            if line.is_empty() {
                if has_header {
                    break;
                }
                continue;
            }
            has_header = true;
            if let Some(colon) = line.iter().position(|&byte| byte == b':') {
                let (name, value) = line.split_at(colon);
                if name.trim_ascii().eq_ignore_ascii_case(b"content-length") {
                    let digits = std::str::from_utf8(value[1..].trim_ascii()).ok();
                    length = Some(digits.and_then(|digits| digits.parse::<u64>().ok()));
                }
            }
        }
        match length {
            Some(Some(length)) if length <= MAX_BODY => self.body(length),
            Some(Some(length)) => {
                let skipped = std::io::copy(&mut (&mut self.input).take(length), &mut std::io::sink()).ok()?;
                (skipped == length).then(|| Frame::Unreadable(format!("a message of {length} bytes is too large")))
            }
            Some(None) => Some(Frame::Unreadable("Content-Length is no number".to_owned())),
            None => Some(Frame::Unreadable("a message without Content-Length".to_owned())),
        }
    }

    /// Memory grows with what arrives, whatever the header promises.
    fn body(&mut self, length: u64) -> Option<Frame> {
        let mut body = Vec::new();
        let read = (&mut self.input).take(length).read_to_end(&mut body).ok()?;
        (read as u64 == length).then_some(Frame::Body(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(bytes: &[u8]) -> Vec<Frame> {
        let mut reader = Reader::new(bytes);
        std::iter::from_fn(|| reader.next()).collect()
    }

    fn body(text: &str) -> Frame {
        Frame::Body(text.as_bytes().to_vec())
    }

    #[test]
    fn headers_come_in_any_case_and_order() {
        for header in [
            "Content-Length: 2\r\n\r\n",
            "content-length:2\r\n\r\n",
            "CONTENT-LENGTH : 2\n\n",
            "Content-Type: application/vscode-jsonrpc\r\nContent-Length: 2\r\nX-More: 1\r\n\r\n",
            "\r\n\r\nContent-Length: 2\r\n\r\n",
        ] {
            assert_eq!(frames(format!("{header}{{}}").as_bytes()), [body("{}")], "{header:?}");
        }
    }

    #[test]
    fn reading_goes_on_after_a_frame_beyond_repair() {
        let input = b"Content-Length: x\r\n\r\nHello: 1\r\n\r\nContent-Length: 2\r\n\r\n{}";
        let frames = frames(input);
        assert!(matches!(frames[..], [Frame::Unreadable(_), Frame::Unreadable(_), Frame::Body(_)]), "{frames:?}");
    }

    #[test]
    fn a_length_beyond_all_reason_takes_no_memory() {
        assert_eq!(frames(b"Content-Length: 99999999999999\r\n\r\n{}"), []);
        assert_eq!(frames(b"Content-Length: 100000000\r\n\r\n{}"), []);
    }

    #[test]
    fn input_that_ends_early_ends() {
        let whole = b"Content-Length: 2\r\n\r\n{}";
        for cut in 0..whole.len() {
            assert_eq!(frames(&whole[..cut]), [], "{cut}");
        }
    }
}
