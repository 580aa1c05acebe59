//! Two paths that claim one file.
//!
//! A workspace and a library next to it may both have `src/lib.rs`. When a profile holds both
//! paths and only one of the files is in the workspace, each path alone looks right. Several
//! spellings of one file are common too: a relative and an absolute one, or those of two build
//! machines. What tells them apart is the text: a guess that the functions in the file
//! confirm stays, any other yields to the path with the better claim, and equals refuse each
//! other.

use rustc_hash::FxHashMap;

use super::resolution::{How, NoMatchReason, Resolution, Score, WorkspaceFile};

/// An answer, and how much it would take to withdraw it.
pub(super) struct Guessed {
    pub(super) resolution: Resolution,
    /// Relative paths are other spellings of absolute ones, not their rivals.
    pub(super) absolute: bool,
    /// The functions are in the file where the profile says.
    pub(super) confirmed: bool,
    /// How many files support the prefix it was found by.
    pub(super) support: usize,
}

impl Guessed {
    /// Withdraws guesses whose file has a better claimant. The order of the answers stays.
    pub(super) fn separate(guesses: Vec<Self>) -> Vec<Resolution> {
        let mut claimants: FxHashMap<WorkspaceFile, Vec<Claim>> = FxHashMap::default();
        for guess in &guesses {
            if let (Some(claim), Resolution::File { file, .. }) = (guess.claim(), &guess.resolution) {
                claimants.entry(file.clone()).or_default().push(claim);
            }
        }
        let yields = |guess: &Self, file: &WorkspaceFile| {
            let Some(claim) = guess.claim() else { return false };
            let others = claimants.get(file).map_or(&[][..], Vec::as_slice);
            // One of them is this guess itself.
            !claim.certain && !claim.confirmed && others.iter().filter(|other| **other >= claim).count() > 1
        };
        guesses
            .into_iter()
            .map(|guess| match &guess.resolution {
                Resolution::File { file, .. } if yields(&guess, file) => {
                    Resolution::NoMatch { reason: NoMatchReason::Rival, possible: vec![file.clone()] }
                }
                _ => guess.resolution,
            })
            .collect()
    }

    fn claim(&self) -> Option<Claim> {
        let Resolution::File { how, score, .. } = &self.resolution else { return None };
        let certain = matches!(how, How::Rule { .. } | How::Exact | How::Ecosystem { .. });
        let claim = Claim { certain, confirmed: self.confirmed, score: *score, support: self.support };
        self.absolute.then_some(claim)
    }
}

/// What a path has to say for itself, the greater the better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    certain: bool,
    confirmed: bool,
    score: Score,
    support: usize,
}
