//! Base and new version in turns: in which order they run, and what their recordings must be to be judged as pairs.
//!
//! A set of turns is known by a name that all its recordings have beside them; the first one of the new version is the
//! user's, the others are there to judge by. What is not here: making a recording, which the editor's session and the
//! tool server do each in its own way.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::bases::{self, Before};
use crate::loader::RunPair;
use crate::runnable::{InTurn, Kind, Order};

/// Which of the two versions runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The program of before an edit.
    Base,
    /// What is built now.
    New,
}

impl Side {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::New => "new",
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Base => Self::New,
            Self::New => Self::Base,
        }
    }
}

/// A run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The pair that it is of, from 1.
    pub pair: u32,
    /// Which version.
    pub side: Side,
}

/// All runs of so many pairs. First the one begins, then the other: what grows over time favours neither.
pub fn order(pairs: u32, first: Side) -> impl Iterator<Item = Turn> {
    (1..=pairs).flat_map(move |pair| {
        let begins = if pair % 2 == 1 { first } else { first.other() };
        [begins, begins.other()].map(|side| Turn { pair, side })
    })
}

/// The recordings of a set, as they come.
#[derive(Debug)]
pub struct Turns {
    before: Before,
    recordings: Option<PathBuf>,
    base: Order,
    new: Order,
    base_runs: Vec<PathBuf>,
    new_runs: Vec<PathBuf>,
}

impl Turns {
    /// For what was ordered, and its program of before. Both do the work that this did.
    ///
    /// # Errors
    /// Why they can't be judged; a sentence without a full stop.
    pub fn new(before: Before, order: &Order, recordings: Option<PathBuf>) -> Result<Self, String> {
        let name = &order.runnable.name;
        check_work(&before, order.runnable.kind).map_err(|why| format!("{name} can't run in turns: {why}"))?;
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let set = format!("{:x}-{:x}", since.as_nanos(), std::process::id());
        let of = |earlier| Order {
            work: Some(before.work),
            turn: Some(InTurn { set: set.clone(), earlier }),
            ..order.clone()
        };
        let (base, new) = (of(Some(before.earlier.clone())), of(None));
        Ok(Self { before, recordings, base, new, base_runs: Vec::new(), new_runs: Vec::new() })
    }

    /// What is ordered for a run.
    pub fn ordered(&self, side: Side) -> &Order {
        match side {
            Side::Base => &self.base,
            Side::New => &self.new,
        }
    }

    /// Takes in the recording of a run. Reads and writes what is beside it.
    ///
    /// # Errors
    /// Why it can't be judged; a sentence without a full stop.
    pub fn take(&mut self, side: Side, recording: PathBuf) -> Result<(), String> {
        let work = bases::work_of(&recording).ok_or("what belongs to the recording could not be kept")?;
        if let Some(why) = work.unknown(self.new.runnable.kind) {
            return Err(why.to_owned());
        }
        match side {
            Side::Base => {
                let (all, root) = (self.recordings.as_deref(), &self.base.root);
                bases::mark_base_run(all, root, &recording, &self.before)
                    .map_err(|error| format!("{}: {error}", name(&recording)))?;
                self.base_runs.push(recording);
            }
            Side::New if bases::is_same_program(&recording, &self.before) => {
                return Err("not rebuilt: base and new are the same program, byte for byte; save your edit".to_owned());
            }
            Side::New => self.new_runs.push(recording),
        }
        Ok(())
    }

    /// The pairs that there are.
    pub fn pairs(self) -> Vec<RunPair> {
        self.base_runs.into_iter().zip(self.new_runs).map(|(base, new)| RunPair { base, new }).collect()
    }
}

fn check_work(before: &Before, kind: Kind) -> Result<(), &'static str> {
    before.work.unknown(kind).map_or(Ok(()), Err)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_begin_equally_often_and_each_runs_once_in_a_pair() {
        let words = |pairs, first| {
            let all: Vec<String> =
                order(pairs, first).map(|turn| format!("{}{}", turn.pair, turn.side.word())).collect();
            all.join(" ")
        };
        assert_eq!(words(3, Side::Base), "1base 1new 2new 2base 3base 3new");
        assert_eq!(words(2, Side::New), "1new 1base 2base 2new");
        assert_eq!(words(0, Side::New), "");
    }
}
