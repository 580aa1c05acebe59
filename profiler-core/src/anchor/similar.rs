//! Lines that were edited in place, and statements that a formatter broke elsewhere.

use std::ops::Range;

use rustc_hash::FxHashMap;

/// More pairs of lines than this are not compared.
const MAX_PAIRS: usize = 10_000;
/// Lines with at least this many hundredths in common are one line that was edited.
const EDITED: u32 = 55;

/// Pairs of lines, old and new, that are one line before and after an edit: in order, and as
/// much alike as can be.
pub(super) fn edited(old: &[(usize, &str)], new: &[(usize, &str)]) -> Vec<(usize, usize)> {
    if old.is_empty() || new.is_empty() || old.len() * new.len() > MAX_PAIRS {
        return Vec::new();
    }
    let old_bags: Vec<Bag> = old.iter().map(|(_, line)| Bag::of(line)).collect();
    let new_bags: Vec<Bag> = new.iter().map(|(_, line)| Bag::of(line)).collect();
    // The best sum of likeness of the first lines of both sides.
    let width = new.len() + 1;
    let mut best = vec![0u32; (old.len() + 1) * width];
    let like = |row: usize, column: usize| {
        let like = old_bags[row].likeness(&new_bags[column]);
        if like >= EDITED { like } else { 0 }
    };
    let mut likes = vec![0u32; old.len() * new.len()];
    for row in 0..old.len() {
        for column in 0..new.len() {
            let like = like(row, column);
            likes[row * new.len() + column] = like;
            let both = if like > 0 { best[row * width + column] + like } else { 0 };
            best[(row + 1) * width + column + 1] =
                both.max(best[row * width + column + 1]).max(best[(row + 1) * width + column]);
        }
    }
    let (mut row, mut column) = (old.len(), new.len());
    let mut pairs = Vec::new();
    while row > 0 && column > 0 {
        let here = best[row * width + column];
        let like = likes[(row - 1) * new.len() + column - 1];
        if like > 0 && here == best[(row - 1) * width + column - 1] + like {
            pairs.push((old[row - 1].0, new[column - 1].0));
            (row, column) = (row - 1, column - 1);
        } else if here == best[(row - 1) * width + column] {
            row -= 1;
        } else {
            column -= 1;
        }
    }
    pairs.reverse();
    pairs
}

/// The pairs of characters of a line, each with how often it is there.
struct Bag {
    pairs: FxHashMap<(char, char), u32>,
    count: u32,
}

impl Bag {
    fn of(line: &str) -> Self {
        let mut pairs: FxHashMap<(char, char), u32> = FxHashMap::default();
        let mut count = 0;
        for pair in line.chars().zip(line.chars().skip(1)).take(1_000) {
            *pairs.entry(pair).or_default() += 1;
            count += 1;
        }
        Self { pairs, count }
    }

    /// What two lines have in common, in hundredths of both.
    fn likeness(&self, other: &Self) -> u32 {
        let shared: u32 =
            self.pairs.iter().map(|(pair, &count)| count.min(other.pairs.get(pair).copied().unwrap_or(0))).sum();
        (200 * shared).checked_div(self.count + other.count).unwrap_or(0)
    }
}

/// Where each of some lines begins among others that have the same code with other line breaks.
/// `None` when the code is another. Commas at the end of a list come and go with line breaks.
pub(super) fn rebroken(
    old: &[String],
    old_range: Range<usize>,
    new: &[String],
    new_range: Range<usize>,
) -> Option<Vec<(usize, usize)>> {
    let code = |lines: &[String], range: Range<usize>| -> Vec<(char, usize)> {
        let all = range.flat_map(|at| lines[at].chars().map(move |c| (c, at)).collect::<Vec<_>>());
        let mut out: Vec<(char, usize)> = Vec::new();
        for (c, at) in all {
            if matches!(c, ')' | ']' | '}') {
                while out.last().is_some_and(|(last, _)| *last == ',') {
                    out.pop();
                }
            }
            out.push((c, at));
        }
        out
    };
    if old_range.is_empty() || new_range.is_empty() {
        return None;
    }
    let (old, new) = (code(old, old_range), code(new, new_range));
    let is_same = !old.is_empty() && old.len() == new.len() && old.iter().zip(&new).all(|((a, _), (b, _))| a == b);
    if !is_same {
        return None;
    }
    let mut pairs: Vec<(usize, usize)> = old.iter().zip(&new).map(|(&(_, old), &(_, new))| (old, new)).collect();
    pairs.dedup_by_key(|(old, _)| *old);
    Some(pairs)
}
