//! Which commit a profile was measured at.
//!
//! What the user says comes first, then what a label of the samples says, then what a Go program that is still
//! there says of itself, then the newest commit before the profile's time. That last one is a guess, as is a
//! program that changes were built into or that nothing proves to be the one; guesses are believed only as far as
//! functions start where the profile says.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use profiler_core::anchor::{Basis, Declarations, Functions};
use profiler_core::attribute::GroupId;
use profiler_core::profile::{LabelValue, Profile};
use profiler_core::symbolize::GoBuild;

use super::git::Repository;

/// Labels by which services say what they were built from, the surest first.
const LABELS: [&str; 9] = [
    "service_git_ref",
    "vcs.ref.head.revision",
    "vcs_revision",
    "git_commit",
    "git_sha",
    "commit",
    "revision",
    "service.version",
    "version",
];
/// Programs of a profile that are looked into.
const MAX_PROGRAMS: usize = 4;
/// Digits by which people know a commit.
const SHORT: usize = 10;

/// What the user says about commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The commit, tag or branch that profiles are of.
    pub commit: Option<String>,
    /// Labels that name one, before those that are known.
    pub labels: Vec<String>,
}

/// What something calls the commit.
#[derive(Clone, Debug)]
struct Name {
    revision: String,
    reason: String,
    is_guess: bool,
}

/// A commit that may be the one.
#[derive(Clone, Debug)]
struct Choice {
    commit: String,
    reason: String,
    is_guess: bool,
}

/// The commits of one profile, in every repository of the workspace.
#[derive(Debug)]
pub(super) struct Commits {
    repositories: Vec<(Repository, Vec<Choice>)>,
    /// Names that no repository knows.
    unknown: Vec<String>,
    /// When the profile was complete.
    end: Option<SystemTime>,
}

impl Commits {
    /// Looks for them.
    pub(super) fn of(profile: &Profile, roots: &[PathBuf], rule: &Rule) -> Self {
        let meta = profile.meta();
        let seconds = meta.time_ns.map(|time| time / 1_000_000_000).filter(|&seconds| seconds > 0);
        let end = meta.time_ns.and_then(|time| {
            let end = u64::try_from(time.saturating_add(meta.duration_ns.unwrap_or(0))).ok().filter(|&end| end > 0)?;
            SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(end))
        });
        let mut names = names(profile, rule);
        names.extend(built_from(profile, end));
        let mut tops = BTreeSet::new();
        let mut known = vec![false; names.len()];
        let repositories: Vec<(Repository, Vec<Choice>)> = roots
            .iter()
            .filter_map(|root| Repository::around(root))
            .filter(|repository| tops.insert(repository.top.clone()))
            .map(|repository| {
                let mut choices = Vec::new();
                for (at, Name { revision, reason, is_guess }) in names.iter().enumerate() {
                    // Versions are tagged with and without a letter.
                    let commit = repository.commit(revision).or_else(|| repository.commit(&format!("v{revision}")));
                    known[at] |= commit.is_some();
                    let choice = |commit| Choice { commit, reason: reason.clone(), is_guess: *is_guess };
                    choices.extend(commit.map(choice));
                }
                let newest = seconds.and_then(|seconds| repository.newest_before(seconds));
                choices.extend(newest.map(|commit| {
                    let reason = "the newest before the profile's time".to_owned();
                    Choice { commit, reason, is_guess: true }
                }));
                (repository, choices)
            })
            .collect();
        let is_missed = |(name, known): &(Name, bool)| !known && !name.is_guess;
        let unknown = names.into_iter().zip(known).filter(is_missed).map(|(name, _)| name.revision).collect();
        Self { repositories, unknown, end }
    }

    /// The text of a file as it was, what that rests on, and whether it is a guess. `found` is
    /// what functions say of the text that is here.
    pub(super) fn text(
        &mut self,
        path: &Path,
        functions: &Functions,
        group: GroupId,
        found: &Declarations,
    ) -> Option<(Basis, String, bool)> {
        let real = path.canonicalize().ok()?;
        let is_around = |(repository, _): &&mut (Repository, Vec<Choice>)| real.starts_with(&repository.top);
        let depth = |repository: &Repository| repository.top.components().count();
        let around = self.repositories.iter_mut().filter(is_around).max_by_key(|(repository, _)| depth(repository));
        let (repository, choices) = around?;
        let relative = real.strip_prefix(&repository.top).ok()?.to_str()?.to_owned();
        for choice in choices.iter() {
            if choice.is_guess {
                // What was not touched since is what was measured, if it was measured here.
                let modified = std::fs::metadata(&real).and_then(|metadata| metadata.modified()).ok();
                if modified.zip(self.end).is_some_and(|(modified, end)| modified < end) {
                    continue;
                }
            }
            let Some(text) = repository.text(&choice.commit, &relative) else { continue };
            let then = functions.in_text(group, &text);
            let is_guess = match (&then, found) {
                (Declarations::Shifted(_), _) => continue,
                (Declarations::There, Declarations::There) | (Declarations::Unknown, _) => choice.is_guess,
                // They are there, and are not where they are now.
                (Declarations::There, _) => false,
            };
            if choice.is_guess && then == Declarations::Unknown && *found == Declarations::There {
                continue;
            }
            let commit = choice.commit.chars().take(SHORT).collect();
            return Some((Basis::Commit { commit, reason: choice.reason.clone() }, text, is_guess));
        }
        None
    }

    /// What could not be found; a sentence.
    pub(super) fn note(&self) -> Option<String> {
        let name = self.unknown.first().filter(|_| !self.repositories.is_empty())?;
        Some(format!("the profile is of {name}, which this repository doesn't have; fetch it to have lines checked"))
    }
}

/// Names of commits, with what says so. Only what all samples agree on counts.
fn names(profile: &Profile, rule: &Rule) -> Vec<Name> {
    let sure = |name: &str, reason: String| Name { revision: name.to_owned(), reason, is_guess: false };
    let mut names: Vec<Name> = rule.commit.iter().map(|commit| sure(commit, "as configured".to_owned())).collect();
    let labels: Vec<&str> = rule.labels.iter().map(String::as_str).chain(LABELS).collect();
    let mut values: Vec<BTreeSet<&str>> = vec![BTreeSet::new(); labels.len()];
    for sample in 0..profile.samples().len() {
        for label in profile.samples().labels(sample) {
            let LabelValue::Text(value) = label.value else { continue };
            let key = profile.text(label.key);
            if let Some(at) = labels.iter().position(|label| *label == key).filter(|&at| values[at].len() < 2) {
                values[at].insert(profile.text(value));
            }
        }
    }
    for (label, values) in labels.iter().zip(values) {
        if let (1, Some(value)) = (values.len(), values.first()) {
            names.push(sure(value, format!("label {label}")));
        }
    }
    names
}

/// What the Go programs of a profile, complete at `end`, say that they were built from.
fn built_from(profile: &Profile, end: Option<SystemTime>) -> Option<Name> {
    let programs = profile.mappings().iter().filter(|mapping| !mapping.file.is_none()).take(MAX_PROGRAMS);
    let mut builds = programs.filter_map(|mapping| {
        GoBuild::of_program(Path::new(profile.text(mapping.file)), profile.text(mapping.build_id), end)
    });
    let GoBuild { revision, is_modified, is_proven } = builds.next()?;
    let changed = if is_modified { ", with changes" } else { "" };
    let reason = format!("of which the Go program was built{changed}");
    Some(Name { revision, reason, is_guess: is_modified || !is_proven })
}
