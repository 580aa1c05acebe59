//! Which line of the text that was profiled each line of a buffer is.
//!
//! Follows edits as they come, without waiting for anything: lines below an edit keep their
//! cost, lines that were edited have none. What is not here: finding lines again by comparing
//! texts line by line; only a common beginning and end are found.

use super::text::{LineEdit, Text};

/// Per line of the buffer, the line of the profiled text, from 1 and as compilers count them; 0
/// when it is another line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineMap {
    lines: Vec<u32>,
    /// Every line is the one of its own number.
    is_plain: bool,
    /// The buffer is not the profiled text.
    differs: bool,
}

impl LineMap {
    /// For a buffer whose text is the profiled one.
    pub fn identity(text: &Text) -> Self {
        let lines = text.compiler_lines();
        Self { is_plain: lines.iter().zip(1..).all(|(&line, number)| line == number), lines, differs: false }
    }

    /// For a buffer that may differ: lines at the beginning and the end that agree are mapped.
    pub fn between(profiled: &Text, buffer: &Text) -> Self {
        if profiled.content() == buffer.content() {
            return Self::identity(buffer);
        }
        let numbers = profiled.compiler_lines();
        let (old, new) = (profiled.line_count(), buffer.line_count());
        let common = old.min(new);
        let prefix = (0..common).take_while(|&line| profiled.line(line) == buffer.line(line)).count();
        let suffix =
            (1..=common - prefix).take_while(|&back| profiled.line(old - back) == buffer.line(new - back)).count();
        let mut lines = numbers[..prefix].to_vec();
        lines.resize(new - suffix, 0);
        lines.extend_from_slice(&numbers[old - suffix..]);
        Self { lines, is_plain: false, differs: true }
    }

    /// Follows an edit.
    pub fn edit(&mut self, edit: LineEdit) {
        let last_old = edit.first + edit.old - 1;
        let (Some(&first), Some(&last)) = (self.lines.get(edit.first), self.lines.get(last_old)) else { return };
        let mut lines = vec![0; edit.new];
        if edit.keeps_last {
            lines[edit.new - 1] = last;
        }
        if edit.keeps_first {
            lines[0] = first;
        }
        let is_same = edit.old == edit.new && edit.keeps_first && edit.keeps_last && edit.new <= 2;
        self.is_plain &= is_same;
        self.differs |= !is_same;
        self.lines.splice(edit.first..=last_old, lines);
    }

    /// This map, seen from a text that came after: `later` maps that text's lines to the lines
    /// this map is about.
    #[must_use]
    pub fn after(&self, later: &Self) -> Self {
        let through = |line: &u32| line.checked_sub(1).and_then(|line| self.lines.get(line as usize).copied());
        let lines = later.lines.iter().map(|line| through(line).unwrap_or(0)).collect();
        Self { lines, is_plain: self.is_plain && later.is_plain, differs: self.differs || later.differs }
    }

    /// The line of the profiled text, from 1, that a line of the buffer (from 0) is.
    pub fn profiled_line(&self, line: usize) -> Option<u32> {
        self.lines.get(line).copied().filter(|&line| line != 0)
    }

    /// The line of the buffer, from 0, that a line of the profiled text (from 1) is now.
    pub fn buffer_line(&self, profiled: u32) -> Option<usize> {
        if self.is_plain {
            return (profiled as usize).checked_sub(1).filter(|&line| line < self.lines.len());
        }
        self.lines.iter().position(|&line| line == profiled)
    }

    /// Whether the buffer differs from the profiled text.
    pub fn differs(&self) -> bool {
        self.differs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::text::Encoding;
    use lsp_types::{Position, Range};

    /// From line and column, to line and column, what to put there.
    type Edit = ((u32, u32), (u32, u32), &'static str);

    /// The buffer's lines with the profiled line each one is.
    fn check(edits: &[Edit], want: &[(&str, u32)]) {
        let mut text = Text::new("one\ntwo\nthree\nfour".to_owned());
        let mut map = LineMap::identity(&text);
        for &((line, column), (end_line, end_column), with) in edits {
            let range = Range::new(Position::new(line, column), Position::new(end_line, end_column));
            map.edit(text.replace(range, with, Encoding::Utf16));
        }
        let lines: Vec<(&str, u32)> =
            (0..text.line_count()).map(|line| (text.line(line), map.profiled_line(line).unwrap_or(0))).collect();
        assert_eq!(lines, want);
    }

    #[test]
    fn lines_below_an_edit_keep_their_number_and_edited_ones_lose_it() {
        check(&[((1, 1), (1, 1), "X")], &[("one", 1), ("tXwo", 0), ("three", 3), ("four", 4)]);
        check(&[((1, 0), (1, 0), "new\n")], &[("one", 1), ("new", 0), ("two", 2), ("three", 3), ("four", 4)]);
        check(&[((0, 3), (0, 3), "\nnew")], &[("one", 1), ("new", 0), ("two", 2), ("three", 3), ("four", 4)]);
        check(&[((1, 0), (2, 0), "")], &[("one", 1), ("three", 3), ("four", 4)]);
        check(&[((0, 1), (2, 1), "")], &[("ohree", 0), ("four", 4)]);
        check(&[((1, 1), (1, 1), "X"), ((1, 1), (1, 2), "")], &[("one", 1), ("two", 0), ("three", 3), ("four", 4)]);
    }

    #[test]
    fn common_beginnings_and_ends_are_found() {
        let map = |old: &str, new: &str| {
            let (old, new) = (Text::new(old.to_owned()), Text::new(new.to_owned()));
            LineMap::between(&old, &new).lines
        };
        assert_eq!(map("a\nb\nc", "a\nb\nc"), [1, 2, 3]);
        assert_eq!(map("a\nb\nc", "a\nx\ny\nc"), [1, 0, 0, 3]);
        assert_eq!(map("a\nb\nc", "a\nc"), [1, 3]);
        assert_eq!(map("a\na", "a\na\na"), [1, 2, 0]);
        assert_eq!(map("", "x"), [0]);
    }
}
