//! What a recorder that is watched tells on its output, a line of JSON each: `perflens record --watch` writes it, the
//! editor's session and the tool server read it.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Lines that may wait for whoever reads them.
pub const QUEUE: usize = 64;

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Line {
    /// Something to know before it begins, or while.
    Note(String),
    /// The program is being built, by this command.
    Building(String),
    /// It records, in this way.
    Begun(String),
    /// So long and so many samples until now.
    Progress {
        /// In milliseconds.
        elapsed_ms: u64,
        /// Those that were taken.
        samples: u64,
    },
    /// This file holds what there is so far.
    Written(PathBuf),
    /// What keeps the samples that count.
    Under(String),
    /// The runs of a test have ended, so or so.
    Ended(Report),
    /// The recording is there.
    Done(Done),
    /// There is none, for this reason.
    Failed(String),
}

/// A recording that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// Its file.
    pub path: PathBuf,
    /// How it was recorded.
    pub how: String,
    /// What else there is to know, one sentence each.
    pub notes: Vec<String>,
    /// All samples.
    pub samples: u64,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
    /// The program, or the test.
    pub program: String,
    /// How the program ended, where that was no success.
    pub status: Option<String>,
    /// What is told of a test.
    pub tested: Option<Tested>,
}

/// What of a recording was the test itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tested {
    /// How often it ran.
    pub runs: u32,
    /// Its own samples.
    pub samples_under: u64,
    /// The filter that keeps them.
    pub under: Option<String>,
    /// How it failed, if it did.
    pub failure: Option<String>,
}

impl Line {
    /// The recording that it is about.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Written(path) | Self::Done(Done { path, .. }) => Some(path),
            _ => None,
        }
    }

    /// How the recording ended, where that is what it tells.
    pub fn end(self) -> Option<Result<Done, String>> {
        match self {
            Self::Done(done) => Some(Ok(done)),
            Self::Failed(why) => Some(Err(why)),
            _ => None,
        }
    }
}

/// Reads lines to the end.
pub fn follow(output: impl Read, mut take: impl FnMut(Line)) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(line) => take(line),
            Err(error) => tracing::warn!("the recorder said {line:?}: {error}"),
        }
    }
}

/// How the runs of a test went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Report {
    /// Runs that came to their end.
    pub runs: u32,
    /// How the last one ended, when that was no success.
    pub failure: Option<String>,
    /// The code that the last one ended with, unless a signal ended it.
    pub code: Option<i32>,
    /// Why there was no run at all.
    pub refusal: Option<String>,
    /// The end of the last one's output.
    pub output: String,
}

impl Report {
    /// Why there is nothing to show, if that is why.
    pub fn why_nothing(&self, name: &str) -> Option<String> {
        self.refusal.clone().or_else(|| self.in_words(name))
    }

    /// How it failed, if it did.
    pub fn in_words(&self, name: &str) -> Option<String> {
        let failure = self.failure.as_ref()?;
        let last = self.telling_line().map(|line| format!(": {line}")).unwrap_or_default();
        Some(format!("{name} failed ({failure}){last}"))
    }

    /// The line of the output that tells most of a failure.
    fn telling_line(&self) -> Option<&str> {
        let lines: Vec<&str> = self.lines().map(str::trim).collect();
        let Some(at) = telling(&lines) else { return lines.last().copied() };
        // Some say more on the line after.
        let is_heading = lines[at].ends_with([':', '-']) || lines[at].starts_with("--- FAIL");
        lines.get(at + usize::from(is_heading)).or(lines.get(at)).copied()
    }

    /// So many lines of the output: from the one that tells most of a failure, or else its end.
    pub fn telling_lines(&self, most: usize) -> Vec<&str> {
        let lines: Vec<&str> = self.lines().collect();
        let end = lines.len().saturating_sub(most);
        let from = telling(&lines).map_or(end, |at| at.min(end));
        lines.into_iter().skip(from).take(most).collect()
    }

    fn lines(&self) -> impl Iterator<Item = &str> {
        self.output.lines().filter(|line| !line.trim().is_empty())
    }
}

/// Which of these lines tells most of a failure.
fn telling(lines: &[&str]) -> Option<usize> {
    TELLING.iter().find_map(|word| lines.iter().position(|line| line.contains(word)))
}

/// What lines have in them that tell of a failure, the surest first.
const TELLING: &[&str] =
    &["panicked at", "--- FAIL", "AssertionError: ", "Error: ", "error: ", "assert", "not ok", "FAIL"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let done = Done {
            path: "/r/a.pb.gz".into(),
            how: "with eBPF".to_owned(),
            notes: vec!["a note".to_owned()],
            samples: 7,
            elapsed_ms: 1200,
            program: "sums".to_owned(),
            status: None,
            tested: Some(Tested { runs: 2, samples_under: 5, under: Some("fn=sums".to_owned()), failure: None }),
        };
        let all = [
            Line::Note("a\nb".to_owned()),
            Line::Building("cc -o a".to_owned()),
            Line::Progress { elapsed_ms: 5, samples: 2 },
            Line::Written("/r/a.pb.gz".into()),
            Line::Ended(Report { runs: 3, ..Report::default() }),
            Line::Done(done),
            Line::Failed("no".to_owned()),
        ];
        let mut text = String::from("no line of ours\n");
        for line in &all {
            text += &serde_json::to_string(line).unwrap();
            text += "\n";
        }
        let mut read = Vec::new();
        follow(text.as_bytes(), |line| read.push(line));
        assert_eq!(read, all);
        assert!(text.contains(r#"{"progress":{"elapsedMs":5,"samples":2}}"#), "{text}");
    }

    #[test]
    fn the_line_is_told_that_says_why() {
        for (output, want) in [
            (
                "running 1 test\nthread 'x' (7) panicked at src/lib.rs:3:9:\nit is never seven\nstack",
                "it is never seven",
            ),
            (
                "--- FAIL: TestFails (0.00s)\n    sums_test.go:31: it is never seven\nFAIL\n",
                "sums_test.go:31: it is never seven",
            ),
            (
                "=== FAILURES ===\n    assert hot(1) == 7\nE   AssertionError: it is never seven\n",
                "E   AssertionError: it is never seven",
            ),
            ("not ok 1 - fail\n  error: |-\n    it is never seven\n", "it is never seven"),
            ("some words\nthe last\n\n", "the last"),
        ] {
            let report = Report { output: output.to_owned(), ..Report::default() };
            assert_eq!(report.telling_line(), Some(want), "{output}");
        }
    }
}
