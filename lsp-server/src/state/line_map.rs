//! Which line of the text that was profiled each line of a buffer is.
//!
//! Follows edits as they come, without waiting for anything: lines below an edit keep their
//! cost, lines that were edited have none. Of texts that were replaced as a whole only a common
//! beginning and end are found at once; comparing them line by line takes longer than a key press
//! may, and is done when nobody types ([`LineMap::settled`]).

use profiler_core::anchor::{self, Doubt, Fate};

use super::text::{LineEdit, Text};

/// Marks a line that may be another. There are fewer lines than this.
const DOUBTFUL: u32 = 1 << 31;

/// Who replaces more lines than this at once is no one who types.
const MAX_TYPED: usize = 20;

/// Per line of the buffer, the line of the profiled text, from 1 and as compilers count them; 0
/// when it is another line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineMap {
    lines: Vec<u32>,
    /// Every line is the one of its own number.
    is_plain: bool,
    /// The buffer is not the profiled text.
    differs: bool,
    /// Every difference was typed, and followed.
    is_followed: bool,
}

impl LineMap {
    /// For a buffer whose text is the profiled one.
    pub fn identity(text: &Text) -> Self {
        let lines = text.compiler_lines();
        let is_plain = lines.iter().zip(1..).all(|(&line, number)| line == number);
        Self { is_plain, lines, differs: false, is_followed: true }
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
        Self { lines, is_plain: false, differs: true, is_followed: false }
    }

    /// This map with the lines that following edits has lost, found by comparing texts: what was
    /// cut and pasted, or replaced as a whole by what is nearly the same. What was followed
    /// stands. Lines that were edited stay without a cost.
    #[must_use]
    pub fn settled(&self, profiled: &Text, buffer: &Text) -> Self {
        let found = anchor::LineMap::between(profiled.content(), buffer.content());
        let mut is_taken = vec![false; profiled.line_count() + 1];
        for &line in &self.lines {
            if let Some(taken) = is_taken.get_mut((line & !DOUBTFUL) as usize) {
                *taken = true;
            }
        }
        // By line of the buffer as compilers count.
        let mut before = vec![0u32; buffer.line_count() + 1];
        for (from, mapped) in found.iter() {
            let doubt = match mapped.fate {
                Fate::Gone | Fate::Uncertain(Doubt::Edited) => continue,
                Fate::Exact | Fate::Shifted => 0,
                Fate::Uncertain(_) => DOUBTFUL,
            };
            let is_free = !is_taken.get(from as usize).copied().unwrap_or(true);
            if let Some(at) = before.get_mut(mapped.line as usize).filter(|at| is_free && **at == 0) {
                *at = from | doubt;
            }
        }
        let numbers = buffer.compiler_lines();
        let lines = (self.lines.iter().zip(numbers))
            .map(|(&line, number)| if line == 0 && number != 0 { before[number as usize] } else { line })
            .collect();
        Self { lines, ..self.clone() }
    }

    /// Whether comparing texts might find more.
    pub fn is_incomplete(&self) -> bool {
        self.differs && self.lines.contains(&0)
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
        self.is_followed &= edit.old <= MAX_TYPED;
        self.lines.splice(edit.first..=last_old, lines);
    }

    /// This map, seen from a text that came after: `later` maps that text's lines to the lines
    /// this map is about.
    #[must_use]
    pub fn after(&self, later: &Self) -> Self {
        let through = |line: &u32| {
            let at = (line & !DOUBTFUL).checked_sub(1)?;
            self.lines.get(at as usize).filter(|line| **line != 0).map(|earlier| earlier | (line & DOUBTFUL))
        };
        let lines = later.lines.iter().map(|line| through(line).unwrap_or(0)).collect();
        Self {
            lines,
            is_plain: self.is_plain && later.is_plain,
            differs: self.differs || later.differs,
            is_followed: self.is_followed && later.is_followed,
        }
    }

    /// The line of the profiled text, from 1, that a line of the buffer (from 0) is.
    pub fn profiled_line(&self, line: usize) -> Option<u32> {
        self.found(line).map(|(line, _)| line)
    }

    /// The same, and whether it may be another.
    pub fn found(&self, line: usize) -> Option<(u32, bool)> {
        let line = self.lines.get(line).copied().filter(|&line| line != 0)?;
        Some((line & !DOUBTFUL, line & DOUBTFUL != 0))
    }

    /// The line of the buffer, from 0, that a line of the profiled text (from 1) is now.
    pub fn buffer_line(&self, profiled: u32) -> Option<usize> {
        if self.is_plain {
            return (profiled as usize).checked_sub(1).filter(|&line| line < self.lines.len());
        }
        self.lines.iter().position(|&line| line & !DOUBTFUL == profiled)
    }

    /// The same for many lines of the profiled text.
    pub fn buffer_lines(&self) -> BufferLines {
        if self.is_plain {
            return BufferLines::Plain(self.lines.len());
        }
        let known = self.lines.iter().enumerate().filter(|(_, line)| **line != 0);
        let mut places: Vec<(u32, usize)> = known.map(|(at, line)| (line & !DOUBTFUL, at)).collect();
        places.sort_unstable();
        BufferLines::Sorted(places)
    }

    /// Whether every difference was typed: what is known then is more than comparing texts can tell.
    pub fn is_followed(&self) -> bool {
        self.is_followed
    }

    /// Whether the buffer differs from the profiled text.
    pub fn differs(&self) -> bool {
        self.differs
    }
}

/// Where lines of the profiled text are in a buffer.
#[derive(Debug)]
pub enum BufferLines {
    /// Where they were, of so many lines.
    Plain(usize),
    /// Lines of the profiled text with their places, sorted.
    Sorted(Vec<(u32, usize)>),
}

impl BufferLines {
    /// The line of the buffer, from 0, that a line of the profiled text (from 1) is now.
    pub fn get(&self, profiled: u32) -> Option<usize> {
        match self {
            Self::Plain(count) => (profiled as usize).checked_sub(1).filter(|line| line < count),
            Self::Sorted(places) => {
                let at = places.partition_point(|(line, _)| *line < profiled);
                places.get(at).filter(|(line, _)| *line == profiled).map(|(_, place)| *place)
            }
        }
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
    fn what_following_edits_lost_is_found_when_it_has_settled() {
        let old = "fn alpha() {\n    first_thing(1);\n    second_thing(2);\n}\n\nfn omega() {\n    last_thing(3);\n}\n";
        let new = "fn omega() {\n    last_thing(3);\n}\n\nfn alpha() {\n    first_thing(1);\n    second_thing(9);\n}\n";
        let (old, new) = (Text::new(old.to_owned()), Text::new(new.to_owned()));
        let quick = LineMap::between(&old, &new);
        assert!(quick.is_incomplete());
        let settled = quick.settled(&old, &new);
        let found = |line: usize| settled.found(line);
        assert_eq!(found(1), Some((7, false)), "{settled:?}");
        assert_eq!(found(5).map(|(line, _)| line), Some(2), "{settled:?}");
        assert_eq!(found(6), None, "an edited line has no cost");
        assert_eq!(settled.buffer_lines().get(7), Some(1));
        assert_eq!(settled.buffer_lines().get(3), None);
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
