//! The order of evidence.
//!
//! The surest kind of evidence that has anything to say decides; the functions in the file
//! then confirm or veto, and a veto ends in a refusal, not in the next best file. Among
//! candidates that fit equally well by their paths, one is taken only if the text of the
//! files clearly separates it.
//!
//! So a further file in the workspace can turn an answer into "ambiguous", but into another
//! file only by fitting the path better.

use super::ecosystem::{self, Claim, Query};
use super::evidence::{self, Examined, Functions};
use super::index::OnDisk;
use super::learned::{Led, Prefixes, Votes};
use super::resolution::{How, NoMatchReason, PathQuery, Resolution, Score, WorkspaceFile};
use super::rivals::Guessed;
use super::source_path::SourcePath;
use super::workspace::Workspace;

/// Of more candidates than this, none is read, and no more are listed.
const MAX_CANDIDATES: usize = 16;
/// How much better, in hundredths, the text of one candidate must speak for it than that of
/// the next: one of them confirms and the other one objects.
const CLEAR_MARGIN: i8 = 10;

const ECOSYSTEM: Score = Score(95);
const LEARNED: Score = Score(90);
const SUFFIX_MOST: u8 = 85;
const NAME_ONLY: Score = Score(55);
/// With the functions found, which counts once more in the end.
const NAME_CONFIRMED: Score = Score(70);
/// The path leads to another file on this machine, or to where a file of the workspace was.
const ELSEWHERE: i8 = -20;
/// Files are missing from the list: a better candidate may be among them.
const INCOMPLETE: i8 = -10;

/// What is known of a path before its profile's other paths are looked at.
enum Stage {
    Settled(Resolution),
    Open(Open),
}

/// A path that only its likeness to files can resolve.
struct Open {
    path: SourcePath,
    /// How many components the candidates share with the path; 0 when there are none.
    components: usize,
    /// The files that share that many, one more than [`MAX_CANDIDATES`] at most.
    candidates: Vec<Candidate>,
    /// Why the path may well be none of them.
    elsewhere: Option<NoMatchReason>,
}

#[derive(Clone)]
struct Candidate {
    file: WorkspaceFile,
    examined: Examined,
}

pub(super) fn resolve(workspace: &Workspace, queries: &[PathQuery<'_>]) -> Vec<Resolution> {
    let stages: Vec<Stage> = queries.iter().map(|query| workspace.settle(query)).collect();
    let prefixes = workspace.learn(queries, &stages);
    let guesses = stages.into_iter().zip(queries).map(|(stage, query)| match stage {
        Stage::Settled(resolution) => {
            let path = SourcePath::parse(query.path).and_then(|path| workspace.rival_key(&path));
            Guessed { resolution, path, confirmed: false, support: 0 }
        }
        Stage::Open(open) => workspace.guess(query, open, &prefixes),
    });
    Guessed::separate(guesses.collect())
}

impl Workspace {
    /// Answers from the path alone, where it is certain.
    fn settle(&self, query: &PathQuery<'_>) -> Stage {
        let Some(path) = SourcePath::parse(query.path) else {
            return Stage::Settled(no_match(NoMatchReason::NotAFile));
        };
        let mut elsewhere = None;
        if path.is_absolute() {
            if let Some(file) = self.index.below(&path.strs()) {
                return Stage::Settled(self.certain(file, How::Exact));
            }
            // Asking for a share would make this machine call another one, which is not for a
            // profile to decide.
            let share = query.path.starts_with("//");
            match if share { OnDisk::Missing } else { self.index.look_up(query.path.as_ref()) } {
                OnDisk::Inside(file) => return Stage::Settled(self.certain(file, How::Exact)),
                OnDisk::Outside => elsewhere = Some(NoMatchReason::ExistsOutside),
                OnDisk::Missing if self.index.leads_below(&path.strs()) => elsewhere = Some(NoMatchReason::Gone),
                OnDisk::Missing => {}
            }
        }
        if let Some((file, how)) = self.rules.apply(&path, &self.index) {
            return Stage::Settled(self.certain(file, how));
        }
        let asked = Query { path: &path, asked: query };
        match self.ecosystems.claim(&asked, &self.index) {
            Some(Claim::Inside { files, by }) => Stage::Settled(self.claimed(files, by, query)),
            Some(Claim::Outside { kind, file }) => Stage::Settled(Resolution::Outside { kind, file }),
            Some(Claim::Refused { reason, possible }) => Stage::Settled(Resolution::NoMatch { reason, possible }),
            None => Stage::Open(self.liken(path, query, elsewhere)),
        }
    }

    /// A file that is known to be the one: whether its lines still fit is for others to say.
    fn certain(&self, file: WorkspaceFile, how: How) -> Resolution {
        let generated = evidence::is_generated(&file, &self.index);
        found(file, how, Score(100), generated)
    }

    fn claimed(&self, files: Vec<WorkspaceFile>, by: String, query: &PathQuery<'_>) -> Resolution {
        match self.choose(self.examine(files, query)) {
            Ok(candidate) => candidate.accept(How::Ecosystem { by }, ECOSYSTEM, &[]),
            Err(refusal) => refusal,
        }
    }

    /// Finds the files whose paths are most like this one.
    fn liken(&self, path: SourcePath, query: &PathQuery<'_>, elsewhere: Option<NoMatchReason>) -> Open {
        let mut components = 0;
        let mut files = Vec::new();
        let mut offer = |count: usize, file: &dyn Fn() -> WorkspaceFile| {
            if count > components {
                components = count;
                files.clear();
            }
            if count == components && count > 0 && (files.len() <= MAX_CANDIDATES || self.prefers(&file())) {
                files.push(file());
            }
        };
        for &row in self.index.like(&path.strs()) {
            let (root, relative) = self.index.place(row);
            offer(self.index.common_suffix(root, relative, &path), &|| self.index.file(row));
        }
        let (length, tails) = self.index.at_tail(&path);
        for file in &tails {
            offer(length.max(self.index.common_suffix(file.root, &file.relative, &path)), &|| file.clone());
        }
        // Several files that agree in nothing but their name are refused, whatever is in them.
        let hopeless = components == 1 && files.len() > 1 && path.parts().len() > 1;
        let candidates =
            if hopeless { files.into_iter().map(Candidate::unread).collect() } else { self.examine(files, query) };
        Open { path, components, candidates, elsewhere }
    }

    fn examine(&self, mut files: Vec<WorkspaceFile>, query: &PathQuery<'_>) -> Vec<Candidate> {
        files.sort();
        files.dedup();
        if files.len() > MAX_CANDIDATES {
            // Too many to compare; but for those that are preferred.
            let preferred: Vec<WorkspaceFile> = files.iter().filter(|file| self.prefers(file)).cloned().collect();
            if preferred.is_empty() || preferred.len() > MAX_CANDIDATES {
                return files.into_iter().map(Candidate::unread).collect();
            }
            files = preferred;
        }
        let read = |file| Candidate { examined: evidence::examine(&file, query, &self.index), file };
        files.into_iter().map(read).collect()
    }

    /// What the paths that need no guessing, or little of it, say about prefixes.
    fn learn(&self, queries: &[PathQuery<'_>], stages: &[Stage]) -> Prefixes {
        let mut votes = Votes::default();
        for (query, stage) in queries.iter().zip(stages) {
            match stage {
                Stage::Settled(Resolution::File { file, how: How::Ecosystem { .. }, .. }) => {
                    let Some(path) = SourcePath::parse(query.path) else { continue };
                    let components = self.index.common_suffix(file.root, &file.relative, &path);
                    votes.add(&path, file, components, true, &self.index);
                }
                Stage::Open(Open { path, components: components @ 2.., candidates, elsewhere }) => {
                    let Ok(candidate) = self.choose(candidates.clone()) else { continue };
                    let Candidate { file, examined } = candidate;
                    let doubtful = examined.objection().is_some() || (elsewhere.is_some() && !examined.confirms());
                    if !doubtful {
                        votes.add(path, &file, *components, false, &self.index);
                    }
                }
                Stage::Settled(_) | Stage::Open(_) => {}
            }
        }
        votes.count(self.index.case())
    }

    fn rival_key(&self, path: &SourcePath) -> Option<String> {
        path.is_absolute().then(|| path.key(self.index.case()))
    }

    /// Answers by likeness, or says why not.
    fn guess(&self, query: &PathQuery<'_>, open: Open, prefixes: &Prefixes) -> Guessed {
        let led = prefixes.apply(&open.path, &self.index);
        let path = self.rival_key(&open.path);
        let mut doubts: Vec<(i8, NoMatchReason)> =
            open.elsewhere.map(|reason| (ELSEWHERE, reason)).into_iter().collect();
        if led.is_empty() && !self.index.complete {
            doubts.push((INCOMPLETE, NoMatchReason::IndexIncomplete));
        }
        let choice = match open.components {
            _ if !led.is_empty() => self.by_prefix(query, open, led),
            0 if self.index.complete => Err(no_match(NoMatchReason::UnknownName)),
            0 => Err(no_match(NoMatchReason::IndexIncomplete)),
            1 => self.by_name(open),
            _ => self.by_suffix(open),
        };
        match choice {
            Ok(Choice { candidate, how, score, support }) => {
                let confirmed = candidate.examined.confirms();
                Guessed { resolution: candidate.accept(how, score, &doubts), path, confirmed, support }
            }
            Err(refusal) => Guessed { resolution: refusal, path, confirmed: false, support: 0 },
        }
    }

    /// What a learned prefix leads to, unless another file fits the path better by its folders
    /// or text.
    fn by_prefix(&self, query: &PathQuery<'_>, open: Open, led: Vec<Led>) -> Result<Choice, Resolution> {
        let mut contenders = self.examine(led.iter().map(|led| led.file.clone()).collect(), query);
        let worse = |Candidate { file, examined }: &Candidate| {
            let fit = self.index.common_suffix(file.root, &file.relative, &open.path);
            fit < open.components || examined.objection().is_some()
        };
        if contenders.iter().all(worse) {
            let led = |candidate: &Candidate| led.iter().any(|led| led.file == candidate.file);
            contenders.extend(open.candidates.into_iter().filter(|candidate| !led(candidate)));
        }
        let candidate = self.choose(contenders)?;
        match led.into_iter().find(|led| led.file == candidate.file) {
            Some(led) => Ok(Choice { candidate, how: led.how, score: LEARNED, support: led.support }),
            None => Err(candidate.refuse(NoMatchReason::FunctionsElsewhere)),
        }
    }

    fn by_suffix(&self, open: Open) -> Result<Choice, Resolution> {
        let candidate = self.choose(open.candidates)?;
        let tenths = u8::try_from(open.components).unwrap_or(u8::MAX).saturating_mul(10);
        let score = Score(tenths.saturating_add(50).min(SUFFIX_MOST));
        // Told from the root on, as all paths are.
        let parts: Vec<&str> = candidate.file.relative.split('/').collect();
        let suffix = parts[parts.len().saturating_sub(open.components)..].join("/");
        Ok(Choice { candidate, how: How::Suffix { components: open.components, suffix }, score, support: 0 })
    }

    /// Only the name agrees: not enough by itself, however unique it is.
    fn by_name(&self, open: Open) -> Result<Choice, Resolution> {
        // Nothing of the path speaks against the file when there is nothing else in it.
        let bare = open.path.parts().len() == 1;
        if open.candidates.len() > 1 && !bare {
            let possible = open.candidates.into_iter().map(|candidate| candidate.file).collect();
            return Err(Resolution::NoMatch { reason: NoMatchReason::OnlyTheName, possible });
        }
        let candidate = self.choose(open.candidates)?;
        let telling = matches!(candidate.examined.functions, Functions::There { distinctive } if distinctive || bare);
        let score = if telling && self.index.complete { NAME_CONFIRMED } else { NAME_ONLY };
        Ok(Choice { candidate, how: How::UniqueName, score, support: 0 })
    }
}

struct Choice {
    candidate: Candidate,
    how: How,
    score: Score,
    /// How many files support the learned prefix; 0 without one.
    support: usize,
}

impl Candidate {
    fn unread(file: WorkspaceFile) -> Self {
        let examined = Examined { functions: Functions::Unknown, too_short: false, generated: false };
        Self { file, examined }
    }

    /// The answer, after everything that speaks for and against it. The first of the doubts
    /// becomes the reason of a refusal, unless the text of the file gives a better one.
    fn accept(self, how: How, score: Score, doubts: &[(i8, NoMatchReason)]) -> Resolution {
        let doubt: i8 = doubts.iter().map(|(by, _)| by).sum();
        let score = score.adjusted(self.examined.adjustment() + doubt);
        if score >= Score::SHOWN {
            return found(self.file, how, score, self.examined.generated);
        }
        let reason = doubts.first().map_or(NoMatchReason::OnlyTheName, |(_, reason)| *reason);
        let reason = self.examined.objection().unwrap_or(reason);
        if score >= Score::POSSIBLE { self.refuse(reason) } else { no_match(reason) }
    }

    fn refuse(self, reason: NoMatchReason) -> Resolution {
        Resolution::NoMatch { reason, possible: vec![self.file] }
    }
}

impl Workspace {
    /// The candidate that the texts clearly favour; the only one needs no favour. Of several
    /// that they favour alike, the one in the preferred folder. Without one, the refusal.
    fn choose(&self, mut candidates: Vec<Candidate>) -> Result<Candidate, Resolution> {
        candidates
            .sort_by(|a, b| b.examined.adjustment().cmp(&a.examined.adjustment()).then_with(|| a.file.cmp(&b.file)));
        let Some(best) = candidates.first().map(|first| first.examined.adjustment()) else {
            return Err(no_match(NoMatchReason::UnknownName));
        };
        let equals = candidates.iter().take_while(|it| best - it.examined.adjustment() < CLEAR_MARGIN).count();
        if equals == 1 {
            return Ok(candidates.swap_remove(0));
        }
        let preferred: Vec<usize> = (0..equals).filter(|&at| self.prefers(&candidates[at].file)).collect();
        if let [at] = preferred[..] {
            return Ok(candidates.swap_remove(at));
        }
        let objection = candidates[0].examined.objection();
        let mut candidates: Vec<WorkspaceFile> = candidates.into_iter().map(|candidate| candidate.file).collect();
        candidates.sort();
        Err(match objection {
            // It speaks against the best, so against all of them.
            Some(reason) => Resolution::NoMatch { reason, possible: candidates },
            None => Resolution::Ambiguous { candidates },
        })
    }
}

/// A file of the workspace, unless it is one that only happens to be stored there.
fn found(file: WorkspaceFile, how: How, score: Score, generated: bool) -> Resolution {
    let parts: Vec<&str> = file.relative.split('/').collect();
    match ecosystem::foreign(&parts) {
        Some(kind) => Resolution::Outside { kind, file: Some(file.path) },
        None => Resolution::File { file, how, score, generated },
    }
}

fn no_match(reason: NoMatchReason) -> Resolution {
    Resolution::NoMatch { reason, possible: Vec::new() }
}
