//! What a text is to the protocol: lines that end three ways, and columns that count bytes,
//! UTF-16 units or characters. Written here once more, so that the server's own count has
//! something to disagree with.

use serde_json::{Value, json};

use super::range;

/// How columns count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Encoding {
    Utf8,
    Utf16,
    Utf32,
}

impl Encoding {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Utf8, Self::Utf16, Self::Utf32];

    /// The protocol's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16 => "utf-16",
            Self::Utf32 => "utf-32",
        }
    }

    /// How many columns a text has.
    pub fn columns(self, text: &str) -> u32 {
        let columns = match self {
            Self::Utf8 => text.len(),
            Self::Utf16 => text.encode_utf16().count(),
            Self::Utf32 => text.chars().count(),
        };
        u32::try_from(columns).expect("lines are short")
    }
}

/// The lines of a text without their ends, as the protocol counts them: `\n`, `\r\n` and `\r`
/// each end a line, and after the last end there is one more, maybe empty, line.
pub fn lines(text: &str) -> Vec<&str> {
    spans(text).into_iter().map(|(start, end)| &text[start..end]).collect()
}

fn spans(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut spans = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'\n' | b'\r' => {
                spans.push((start, at));
                at += if bytes[at..].starts_with(b"\r\n") { 2 } else { 1 };
                start = at;
            }
            _ => at += 1,
        }
    }
    spans.push((start, bytes.len()));
    spans
}

/// A document as the client has it.
#[derive(Clone, Debug)]
pub struct Document {
    /// Its address.
    pub uri: String,
    /// The version that goes with the next change.
    pub version: i32,
    /// Its text.
    pub text: String,
    encoding: Encoding,
}

impl Document {
    /// A document that was opened as version 1.
    pub fn new(uri: String, text: String, encoding: Encoding) -> Self {
        Self { uri, version: 1, text, encoding }
    }

    /// The byte that a position stands for; beyond the end of a line it is that end.
    fn offset(&self, (line, character): (u32, u32)) -> usize {
        let spans = spans(&self.text);
        let Some(&(start, end)) = spans.get(line as usize) else { return self.text.len() };
        let mut columns = 0;
        for (at, char) in self.text[start..end].char_indices() {
            if columns >= character {
                return start + at;
            }
            columns += self.encoding.columns(char.encode_utf8(&mut [0; 4]));
        }
        end
    }

    /// The column behind the last character of a line.
    pub fn end_of_line(&self, line: u32) -> u32 {
        self.encoding.columns(lines(&self.text)[line as usize])
    }

    /// Replaces a range: the change to send.
    pub fn edit(&mut self, from: (u32, u32), to: (u32, u32), text: &str) -> Value {
        let span = self.offset(from)..self.offset(to);
        self.text.replace_range(span, text);
        self.version += 1;
        json!({ "range": range(from, to), "text": text })
    }

    /// Replaces the whole text: the change to send.
    pub fn replace(&mut self, text: &str) -> Value {
        text.clone_into(&mut self.text);
        self.version += 1;
        json!({ "text": text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_line_ends_and_a_last_line() {
        assert_eq!(lines("a\rb\r\nc\nd"), ["a", "b", "c", "d"]);
        assert_eq!(lines("a\n"), ["a", ""]);
        assert_eq!(lines("\r\r\n\n"), ["", "", "", ""]);
        assert_eq!(lines(""), [""]);
    }

    #[test]
    fn edits_count_columns_in_the_agreed_encoding() {
        for encoding in Encoding::ALL {
            let mut document = Document::new(String::new(), "x\né🔥é!\n".to_owned(), encoding);
            document.edit((1, encoding.columns("é🔥")), (1, encoding.columns("é🔥é")), "");
            assert_eq!(document.text, "x\né🔥!\n", "{encoding:?}");
            assert_eq!(document.end_of_line(1), encoding.columns("é🔥!"));
            document.edit((1, 99), (2, 0), " ");
            document.edit((9, 9), (9, 9), "end");
            assert_eq!((document.text.as_str(), document.version), ("x\né🔥! end", 4));
        }
        let columns = Encoding::ALL.map(|encoding| encoding.columns("é🔥!"));
        assert_eq!(columns, [7, 4, 3]);
    }
}
