//! A text in lines, as far as comparing them goes.

use rustc_hash::FxHashMap;

/// The lines of a text as compilers count them: they end at a line feed; only in a text without
/// any does a carriage return end one. White space is left out, so that what a formatter or
/// another editor did to it changes no line.
pub(super) fn lines(text: &str) -> Vec<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let end = if text.contains('\n') { '\n' } else { '\r' };
    let text = text.strip_suffix(end).unwrap_or(text);
    text.split(end).map(|line| line.chars().filter(|c| !c.is_whitespace()).collect()).collect()
}

/// Numbers lines so that equal ones have equal numbers.
#[derive(Default)]
pub(super) struct Numbers<'t> {
    of: FxHashMap<&'t str, u32>,
}

impl<'t> Numbers<'t> {
    /// The number of each line.
    pub(super) fn all(&mut self, lines: &'t [String]) -> Vec<u32> {
        lines
            .iter()
            .map(|line| {
                let next = u32::try_from(self.of.len()).unwrap_or(u32::MAX);
                *self.of.entry(line).or_insert(next)
            })
            .collect()
    }

    /// How many numbers there are.
    pub(super) fn len(&self) -> usize {
        self.of.len()
    }
}

/// Letters and digits of a line: what makes it different from other lines.
pub(super) fn weight(line: &str) -> usize {
    line.chars().filter(|c| c.is_alphanumeric()).count()
}
