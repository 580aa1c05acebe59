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

/// No message of an editor comes near. What claims to be larger is refused at once; whether it
/// comes or not, reading goes on with the next header.
const MAX_BODY: u64 = 256 << 20;
/// Longest header block that is read.
const MAX_HEADER: u64 = 64 << 10;

pub(super) struct Reader<R> {
    input: BufReader<R>,
    /// A body was refused: nobody knows where the next header starts.
    is_lost: bool,
}

const LENGTH: &str = "content-length";

impl<R: Read> Reader<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input: BufReader::with_capacity(64 << 10, input), is_lost: false }
    }

    /// The next frame; `None` at the end of input.
    pub(super) fn next(&mut self) -> Option<Frame> {
        let mut length = if self.is_lost { Some(Some(self.find_length()?)) } else { None };
        let mut has_header = length.is_some();
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
                if name.trim_ascii().eq_ignore_ascii_case(LENGTH.as_bytes()) {
                    let digits = std::str::from_utf8(value[1..].trim_ascii()).ok();
                    length = Some(digits.and_then(|digits| digits.parse::<u64>().ok()));
                }
            }
        }
        match length {
            Some(Some(length)) if length <= MAX_BODY => self.body(length),
            Some(Some(length)) => {
                self.is_lost = true;
                Some(Frame::Unreadable(format!("a message of {length} bytes is too large")))
            }
            Some(None) => Some(Frame::Unreadable("Content-Length is no number".to_owned())),
            None => Some(Frame::Unreadable("a message without Content-Length".to_owned())),
        }
    }

    /// The length in the next header. That may start in the middle of a line, since the body
    /// before it has no line end of its own.
    fn find_length(&mut self) -> Option<u64> {
        const KEPT: usize = 64;
        let mut piece = Vec::new();
        loop {
            let read = (&mut self.input).take(MAX_HEADER).read_until(b'\n', &mut piece).ok()?;
            if read == 0 {
                return None;
            }
            if piece.last() != Some(&b'\n') {
                // The header may have begun at the end of this piece.
                piece.drain(..piece.len().saturating_sub(KEPT));
                continue;
            }
            let line = String::from_utf8_lossy(&piece).to_ascii_lowercase();
            let value = line.rsplit_once(LENGTH).and_then(|(_, rest)| rest.trim_start().strip_prefix(':'));
            if let Some(length) = value.and_then(|value| value.trim().parse().ok()) {
                self.is_lost = false;
                return Some(length);
            }
            piece.clear();
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
    fn a_length_beyond_all_reason_takes_no_memory_and_no_time() {
        let refused = |frame: &Frame| matches!(frame, Frame::Unreadable(_));
        let header = "Content-Length: 99999999999999\r\n\r\n";
        assert_eq!(frames(b"Content-Length: 100000000\r\n\r\n{}"), [], "it may still come");
        // Whether nothing of the body comes, some of it, or more than is read at once.
        for rest in [
            String::new(),
            "{}".to_owned(),
            "{\"a\":\n1}\r\n\r\n".to_owned(),
            "x".repeat(200_000),
            "x".repeat((64 << 10) - 7),
        ] {
            let input = format!("{header}{rest}content-length : 2\r\nX: 1\r\n\r\n{{}}{header}");
            let frames = frames(input.as_bytes());
            assert_eq!(frames.len(), 3, "{frames:?}");
            assert!(refused(&frames[0]) && frames[1] == body("{}") && refused(&frames[2]), "{frames:?}");
        }
    }

    #[test]
    fn input_that_ends_early_ends() {
        let whole = b"Content-Length: 2\r\n\r\n{}";
        for cut in 0..whole.len() {
            assert_eq!(frames(&whole[..cut]), [], "{cut}");
        }
    }
}
