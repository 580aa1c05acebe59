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
    /// The path, case folded, if it is absolute. Relative paths are other spellings of
    /// absolute ones, not their rivals, and so are those that differ in case.
    pub(super) path: Option<String>,
    /// The functions are in the file where the profile says.
    pub(super) confirmed: bool,
    /// How many files support the prefix it was found by.
    pub(super) support: usize,
}

impl Guessed {
    /// Withdraws guesses whose file has a better claimant. The order of the answers stays.
    pub(super) fn separate(guesses: Vec<Self>) -> Vec<Resolution> {
        let mut claimants: FxHashMap<&WorkspaceFile, Vec<Claim<'_>>> = FxHashMap::default();
        for guess in &guesses {
            if let (Some(claim), Resolution::File { file, .. }) = (guess.claim(), &guess.resolution) {
                claimants.entry(file).or_default().push(claim);
            }
        }
        // The strongest first: one that beats a guess is found at once, however many there are.
        for claims in claimants.values_mut() {
            claims.sort_by_key(|claim| std::cmp::Reverse(claim.merit()));
        }
        let yields = |guess: &Self| match (guess.claim(), &guess.resolution) {
            (Some(claim), Resolution::File { file, .. }) if !claim.certain && !claim.confirmed => {
                claimants[file].iter().any(|other| other.path != claim.path && other.merit() >= claim.merit())
            }
            _ => false,
        };
        let withdrawn: Vec<bool> = guesses.iter().map(yields).collect();
        let answer = |(guess, withdrawn): (Self, bool)| match guess.resolution {
            Resolution::File { file, .. } if withdrawn => {
                Resolution::NoMatch { reason: NoMatchReason::Rival, possible: vec![file] }
            }
            resolution => resolution,
        };
        guesses.into_iter().zip(withdrawn).map(answer).collect()
    }

    fn claim(&self) -> Option<Claim<'_>> {
        let Resolution::File { how, score, .. } = &self.resolution else { return None };
        let certain = matches!(how, How::Rule { .. } | How::Exact | How::Ecosystem { .. });
        let path = self.path.as_deref()?;
        Some(Claim { path, certain, confirmed: self.confirmed, score: *score, support: self.support })
    }
}

/// What a path has to say for itself.
struct Claim<'a> {
    path: &'a str,
    certain: bool,
    confirmed: bool,
    score: Score,
    support: usize,
}

impl Claim<'_> {
    /// The greater the better.
    fn merit(&self) -> (bool, bool, Score, usize) {
        (self.certain, self.confirmed, self.score, self.support)
    }
}
