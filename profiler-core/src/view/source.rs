//! The text of a source file in lines, ready to be shown.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

use super::data;

/// Columns from one tab stop to the next.
const TAB: usize = 4;

/// A source file in lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    lines: Vec<String>,
}

impl Source {
    /// Reads a file's bytes; what is not UTF-8 becomes U+FFFD.
    ///
    /// Lines end at a line feed, with or without a carriage return before it, as compilers
    /// count them. Only in a file without any line feed does a carriage return end one.
    ///
    /// ```
    /// use profiler_core::view::source::Source;
    /// let source = Source::new(b"a\r\nb\n\tc");
    /// assert_eq!(source.line(3), Some("\tc"));
    /// assert_eq!(source.len(), 3);
    /// ```
    pub fn new(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let end = if text.contains('\n') { '\n' } else { '\r' };
        let text = text.strip_suffix(end).unwrap_or(text);
        if text.is_empty() && bytes.is_empty() {
            return Self::default();
        }
        Self { lines: text.split(end).map(|line| line.strip_suffix('\r').unwrap_or(line).to_owned()).collect() }
    }

    /// Number of lines.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there is no line.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// A line without its end; `None` past the end of the file. Lines count from 1.
    pub fn line(&self, number: usize) -> Option<&str> {
        self.lines.get(number.checked_sub(1)?).map(String::as_str)
    }
}

/// A line as it is shown: tabs as blanks up to the next stop, harmful characters escaped.
pub fn shown_line(line: &str) -> Cow<'_, str> {
    if !line.contains('\t') {
        return data::escaped(line);
    }
    let mut out = String::with_capacity(line.len() + TAB);
    let mut column = 0;
    for (i, piece) in line.split('\t').enumerate() {
        if i > 0 {
            let blanks = TAB - column % TAB;
            out.extend(std::iter::repeat_n(' ', blanks));
            column += blanks;
        }
        let piece = data::escaped(piece);
        column += piece.chars().map(|c| c.width().unwrap_or(0)).sum::<usize>();
        out.push_str(&piece);
    }
    Cow::Owned(out)
}
