//! Files that have another name by now, found by what is in them.

use rustc_hash::FxHashSet;

use super::text;

/// More files than this are not looked into for one that is gone.
pub const MAX_CANDIDATES: usize = 200;
/// Lines in common, in hundredths of the larger file, that make it the same file.
const SAME: usize = 60;
/// How far any other file must be behind.
const AHEAD: usize = 20;

/// Looks for the file that one has become.
pub struct Renames {
    wanted: FxHashSet<String>,
    best: Option<(usize, usize)>,
    second: usize,
}

impl Renames {
    /// For a file whose text was this.
    pub fn of(text: &str) -> Self {
        Self { wanted: telling(text), best: None, second: 0 }
    }

    /// Whether there is enough in the file to find it by.
    pub fn is_findable(&self) -> bool {
        self.wanted.len() >= 3
    }

    /// Offers a file under a number of the caller's.
    pub fn offer(&mut self, number: usize, text: &str) {
        let lines = telling(text);
        let shared = lines.iter().filter(|line| self.wanted.contains(*line)).count();
        let likeness = (100 * shared).checked_div(lines.len().max(self.wanted.len())).unwrap_or(0);
        match self.best {
            Some((_, best)) if likeness <= best => self.second = self.second.max(likeness),
            previous => {
                self.second = self.second.max(previous.map_or(0, |(_, best)| best));
                self.best = Some((number, likeness));
            }
        }
    }

    /// The one that is meant; `None` when none is, or several could be.
    pub fn found(&self) -> Option<usize> {
        let (number, likeness) = self.best?;
        (self.is_findable() && likeness >= SAME && likeness >= self.second + AHEAD).then_some(number)
    }
}

/// The lines of a text that not every text has.
fn telling(text: &str) -> FxHashSet<String> {
    text::lines(text).into_iter().filter(|line| text::weight(line) >= 6).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_file_that_is_like_it_is_found() {
        let text = "fn alpha() {\n    first(1);\n    second(2);\n}\nfn omega() {\n    third(3);\n}\n";
        let edited = text.replace("second(2)", "second(22)");
        let other = "fn beta() {\n    something(1);\n    different(2);\n}\n";
        let find = |texts: &[&str]| {
            let mut renames = Renames::of(text);
            texts.iter().enumerate().for_each(|(number, text)| renames.offer(number, text));
            renames.found()
        };
        assert_eq!(find(&[other, &edited]), Some(1));
        assert_eq!(find(&[text, &edited]), Some(0), "the rest of it is like nothing");
        assert_eq!(find(&[&edited, &edited]), None, "two could be it");
        assert_eq!(find(&[other]), None);
        assert_eq!(find(&[]), None);
    }
}
