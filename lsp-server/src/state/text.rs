//! The text of an open document: its lines as the protocol counts them, and edits.
//!
//! A line ends with `\n`, `\r\n` or `\r`. Edits cost as much as the lines they touch, plus
//! moving what follows.

use lsp_types::{Position, PositionEncodingKind, Range};

/// In what a position's character counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// 16-bit units; what clients mean that don't say.
    #[default]
    Utf16,
    /// Characters.
    Utf32,
}

impl Encoding {
    /// The first of the client's encodings that we know; UTF-16 when it names none.
    pub fn negotiate(offered: &[String]) -> Self {
        offered
            .iter()
            .find_map(|name| match name.as_str() {
                "utf-8" => Some(Self::Utf8),
                "utf-16" => Some(Self::Utf16),
                "utf-32" => Some(Self::Utf32),
                _ => None,
            })
            .unwrap_or_default()
    }

    /// Its name in the protocol.
    pub fn kind(self) -> PositionEncodingKind {
        match self {
            Self::Utf8 => PositionEncodingKind::UTF8,
            Self::Utf16 => PositionEncodingKind::UTF16,
            Self::Utf32 => PositionEncodingKind::UTF32,
        }
    }

    /// Length of a text in this encoding's units.
    pub fn length(self, text: &str) -> u32 {
        let length = match self {
            Self::Utf8 => text.len(),
            Self::Utf16 => text.chars().map(char::len_utf16).sum(),
            Self::Utf32 => text.chars().count(),
        };
        u32::try_from(length).unwrap_or(u32::MAX)
    }

    /// The byte offset of a column in a line; columns past its end, or inside a character,
    /// are clamped down.
    fn offset(self, line: &str, column: u32) -> usize {
        let mut units = 0;
        for (offset, character) in line.char_indices() {
            let width = match self {
                Self::Utf8 => character.len_utf8(),
                Self::Utf16 => character.len_utf16(),
                Self::Utf32 => 1,
            };
            units += u32::try_from(width).unwrap_or(1);
            if units > column {
                return offset;
            }
        }
        line.len()
    }
}

/// A text with its line starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    content: String,
    /// Byte offset of every line; never empty.
    starts: Vec<usize>,
}

/// What an edit did to the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineEdit {
    /// The first line touched, from 0.
    pub first: usize,
    /// How many lines stood there, at least 1.
    pub old: usize,
    /// How many stand there now, at least 1.
    pub new: usize,
    /// The first line's text is what it was.
    pub keeps_first: bool,
    /// The last line's text is what it was.
    pub keeps_last: bool,
}

impl Text {
    /// Finds the lines of a text.
    pub fn new(content: String) -> Self {
        let mut starts = vec![0];
        line_ends(&content, |end| starts.push(end));
        Self { content, starts }
    }

    /// The whole text.
    pub fn content(&self) -> &str {
        &self.content
    }

    /// How many lines there are; the empty text has one.
    pub fn line_count(&self) -> usize {
        self.starts.len()
    }

    /// The text of a line, from 0, without its end; `""` past the last.
    pub fn line(&self, line: usize) -> &str {
        let Some(&start) = self.starts.get(line) else { return "" };
        let end = self.starts.get(line + 1).copied().unwrap_or(self.content.len());
        self.content[start..end].trim_end_matches(['\n', '\r'])
    }

    /// Per line its number as compilers count, from 1, for whom a lone `\r` ends a line only
    /// where nothing else does; 0 for what is the rest of a line to them.
    pub fn compiler_lines(&self) -> Vec<u32> {
        let bytes = self.content.as_bytes();
        let has_line_feeds = bytes.contains(&b'\n');
        let mut number = 0;
        self.starts
            .iter()
            .map(|&start| {
                let is_rest = has_line_feeds && start > 0 && bytes[start - 1] == b'\r';
                number += u32::from(!is_rest);
                if is_rest { 0 } else { number }
            })
            .collect()
    }

    /// The end of a line, before its line break.
    pub fn end_of_line(&self, line: usize, encoding: Encoding) -> Position {
        Position::new(u32::try_from(line).unwrap_or(u32::MAX), encoding.length(self.line(line)))
    }

    fn offset(&self, position: Position, encoding: Encoding) -> usize {
        let line = position.line as usize;
        match self.starts.get(line) {
            Some(&start) => start + encoding.offset(self.line(line), position.character),
            None => self.content.len(),
        }
    }

    /// Replaces a range; positions past the end of a line or the text are clamped.
    pub fn replace(&mut self, range: Range, with: &str, encoding: Encoding) -> LineEdit {
        let (mut from, mut to) = (self.offset(range.start, encoding), self.offset(range.end, encoding));
        if from > to {
            std::mem::swap(&mut from, &mut to);
        }
        // `\r` and `\n` may meet or part at the seams, so the line before counts as touched.
        let first = self.line_at(from).saturating_sub(usize::from(self.splits_line_end(from)));
        let last = self.line_at(to);
        let old_first = self.line(first).to_owned();
        let old_last = self.line(last).to_owned();
        let region_start = self.starts[first];
        let region_end = self.starts.get(last + 1).copied();

        self.content.replace_range(from..to, with);
        let moved = |offset: usize| offset - (to - from) + with.len();
        let new_end = region_end.map_or(self.content.len(), moved);
        let mut starts = vec![region_start];
        line_ends(&self.content[region_start..new_end], |end| starts.push(region_start + end));
        if region_end.is_some() {
            // The last end found is the start of the line after the region, which is kept.
            if starts.last() == Some(&new_end) {
                starts.pop();
            }
            for start in &mut self.starts[last + 1..] {
                *start = moved(*start);
            }
        }
        let new = starts.len();
        self.starts.splice(first..=last, starts);
        LineEdit {
            first,
            old: last - first + 1,
            new,
            keeps_first: self.line(first) == old_first,
            keeps_last: self.line(first + new - 1) == old_last,
        }
    }

    fn line_at(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset).saturating_sub(1)
    }

    /// Whether an edit here could join a `\r` before it with a `\n` at it.
    fn splits_line_end(&self, offset: usize) -> bool {
        self.starts.binary_search(&offset).is_ok() && offset > 0
    }
}

/// Calls back with the offset behind every line end.
fn line_ends(text: &str, mut found: impl FnMut(usize)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\r' if bytes.get(at + 1) == Some(&b'\n') => {
                at += 1;
                found(at + 1);
            }
            b'\n' | b'\r' => found(at + 1),
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(start: (u32, u32), end: (u32, u32)) -> Range {
        Range::new(Position::new(start.0, start.1), Position::new(end.0, end.1))
    }

    #[test]
    fn lines_end_in_three_ways() {
        let text = Text::new("a\nb\r\nc\rd\n".to_owned());
        let lines: Vec<&str> = (0..text.line_count()).map(|line| text.line(line)).collect();
        assert_eq!(lines, ["a", "b", "c", "d", ""]);
    }

    #[test]
    fn compilers_count_other_lines() {
        let lines = |text: &str| Text::new(text.to_owned()).compiler_lines();
        assert_eq!(lines("a\nb\r\nc"), [1, 2, 3]);
        assert_eq!(lines("a\rb\nc"), [1, 0, 2]);
        assert_eq!(lines("a\rb\rc"), [1, 2, 3]);
    }

    #[test]
    fn columns_count_in_the_encoding() {
        let text = Text::new("// héllo 🔥\r\nx".to_owned());
        for (encoding, length) in [(Encoding::Utf8, 14), (Encoding::Utf16, 11), (Encoding::Utf32, 10)] {
            assert_eq!(text.end_of_line(0, encoding), Position::new(0, length), "{encoding:?}");
            assert_eq!(text.offset(Position::new(0, length), encoding), 14);
            assert_eq!(text.offset(Position::new(0, 999), encoding), 14);
        }
        assert_eq!(text.offset(Position::new(0, 10), Encoding::Utf16), 10, "inside a surrogate pair");
    }

    #[test]
    fn whole_lines_put_in_leave_their_neighbours_as_they_were() {
        let mut text = Text::new("a\nb\nc".to_owned());
        let edit = text.replace(range((1, 0), (1, 0)), "new\n", Encoding::Utf8);
        assert_eq!(text.content(), "a\nnew\nb\nc");
        assert!(edit.keeps_last, "{edit:?}");
        let edit = text.replace(range((0, 1), (0, 1)), "\nmore", Encoding::Utf8);
        assert_eq!(text.content(), "a\nmore\nnew\nb\nc");
        assert!(edit.keeps_first, "{edit:?}");
    }

    proptest! {
        #[test]
        fn edits_leave_the_lines_a_fresh_look_finds(
            start in "[ab\n\ré🔥]{0,20}",
            edits in prop::collection::vec(((0u32..6, 0u32..6), (0u32..6, 0u32..6), "[x\n\ré🔥]{0,6}"), 1..8),
        ) {
            let mut text = Text::new(start);
            for (from, to, with) in edits {
                let before = text.line_count();
                let edit = text.replace(range(from, to), &with, Encoding::Utf16);
                let fresh = Text::new(text.content().to_owned());
                prop_assert_eq!(&text, &fresh);
                prop_assert_eq!(before - edit.old + edit.new, text.line_count());
            }
        }
    }
}
