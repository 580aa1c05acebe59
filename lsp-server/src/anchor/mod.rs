//! Which text the lines of a profile refer to, and where those lines are in today's files.
//!
//! ```text
//! recording ──▶ hash, private copy ─┐
//! label, time ──▶ commit (git) ─────┼─▶ measured text ──▶ profiler_core::anchor ──▶ FileGroups
//! first look at the profile ────────┘
//! ```
//!
//! The surest source that has the file counts. Runs where profiles are loaded, never while
//! somebody types: what an edit does to a line is followed by `state::line_map`.
//!
//! What is not here: comparing texts (`profiler_core::anchor`).

pub mod commit;
pub(crate) mod git;
mod recorded;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use profiler_core::anchor::{Basis, Declarations, FileAnchor, Functions, LineMap, MAX_CANDIDATES, Renames};
use profiler_core::attribute::{FileGroups, GroupId, Place, Placement};
use profiler_core::cancel::{CancelFlag, Cancelled};
use profiler_core::paths::{NoMatchReason, Rule, Workspace};
use profiler_core::profile::Profile;

use crate::state::text::Text;
use commit::Commits;
use recorded::Recorded;

/// Texts of source files, by path.
pub type Texts = HashMap<PathBuf, Arc<Text>>;

/// Texts of files with costs are kept up to this many bytes.
const MAX_TEXT_BYTES: usize = 64 << 20;
/// A larger source file is not read.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// What was known when a profile was first opened here.
#[derive(Clone, Debug, Default)]
pub struct Opened {
    /// Texts of its files.
    texts: Texts,
    /// Which file each of its paths was taken for, under each of the terms it was shown under. A
    /// file that is edited stays the file it is, also where its text would not be taken for it any
    /// more.
    places: Vec<(Terms, HashMap<String, Placement>)>,
}

/// What decides, besides the files themselves, which file a path means. A profile is shown under
/// several: each service of a monorepo takes its paths for its own files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The folders whose files count.
    pub roots: Vec<PathBuf>,
    /// The user's path rules.
    pub rules: Vec<Rule>,
    /// Of files that a path could mean, those below this folder are meant.
    pub preferred: Option<PathBuf>,
}

impl Opened {
    fn places_under(&mut self, terms: &Terms) -> &mut HashMap<String, Placement> {
        let at = self.places.iter().position(|(known, _)| known == terms).unwrap_or_else(|| {
            self.places.push((terms.clone(), HashMap::new()));
            self.places.len() - 1
        });
        &mut self.places[at].1
    }
}

/// What there is to find measured texts by.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The profile's file, where it is one.
    pub file: Option<&'a Path>,
    /// What was known when the profile was first opened, to which is added what is new, and under
    /// which terms it is shown now.
    pub opened: Option<(&'a Mutex<Opened>, &'a Terms)>,
    /// Where to look for commits: folders of the workspace.
    pub roots: &'a [PathBuf],
    /// What the user says about commits.
    pub rule: &'a commit::Rule,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Anchored {
    /// Texts of the files with costs as they are now: those that lines were mapped to.
    pub texts: Texts,
    /// What to tell; sentences.
    pub notes: Vec<String>,
    /// That nobody knows the measured text of some files; a sentence.
    pub unverified: Option<String>,
}

/// Says of every workspace file of a profile where its lines are now.
pub fn anchor(
    profile: &Profile,
    groups: &mut FileGroups,
    workspace: &Workspace,
    evidence: &Evidence<'_>,
    cancel: &CancelFlag,
) -> Result<Anchored, Cancelled> {
    let mut work = Work {
        profile,
        workspace,
        recorded: evidence.file.and_then(Recorded::of),
        commits: None,
        functions: None,
        evidence,
        bytes: 0,
        anchored: Anchored::default(),
        unverified: 0,
    };
    let used = used(profile, groups);
    for group in used {
        cancel.check()?;
        work.file(groups, group);
    }
    if work.unverified > 0 {
        let count = work.unverified;
        let files = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
        work.anchored.unverified = Some(format!(
            "lines unverified: the text that was measured is not known for {files}, so costs stand at the profile's \
             numbers; a label with the commit (service_git_ref, version) or a recording of perflens tells more"
        ));
    }
    work.anchored.notes.extend(work.commits.iter().filter_map(Commits::note));
    Ok(work.anchored)
}

/// The files that have lines.
fn used(profile: &Profile, groups: &FileGroups) -> Vec<GroupId> {
    let mut is_used = vec![false; groups.all().len()];
    for line in profile.locations().all_lines() {
        let group = groups.of(profile.function(line.function).file);
        is_used[group.index()] |= line.line.is_known();
    }
    (1u32..).map(GroupId).take(is_used.len().saturating_sub(1)).filter(|group| is_used[group.index()]).collect()
}

struct Work<'a> {
    profile: &'a Profile,
    workspace: &'a Workspace,
    recorded: Option<Recorded>,
    /// Made at the first file that needs it.
    commits: Option<Commits>,
    functions: Option<Functions>,
    evidence: &'a Evidence<'a>,
    bytes: usize,
    anchored: Anchored,
    /// Files whose measured text is unknown.
    unverified: usize,
}

impl Work<'_> {
    fn file(&mut self, groups: &mut FileGroups, group: GroupId) {
        let placement = groups.get(group).placement.clone();
        let is_own = |placement: &Placement| matches!(placement.place, Place::Workspace | Place::Generated);
        let path = match placement {
            Some(Placement { path: Some(path), .. }) if !path.exists() => None,
            Some(placement) if is_own(&placement) => placement.path,
            // Code of others is shown for exactly the same version only, and never changes.
            Some(Placement { place: Place::Dependency | Place::Toolchain, .. }) | None => return,
            Some(_) => None,
        };
        match path {
            Some(path) => self.at(groups, group, &path),
            None => self.missing(groups, group),
        }
    }

    /// A file that is there.
    fn at(&mut self, groups: &mut FileGroups, group: GroupId, path: &Path) {
        let Some(now) = self.read(path) else { return };
        self.anchored.texts.insert(path.to_owned(), Arc::clone(&now));
        let opened = self.opened(groups, group, path, &now);
        if let Some(anchor) = self.measured(groups, group, path, &now, opened.as_ref()) {
            groups.anchor(group, Arc::new(anchor));
        }
    }

    /// A file's text as it is now, within bounds.
    fn read(&mut self, path: &Path) -> Option<Arc<Text>> {
        let metadata = std::fs::metadata(path).ok()?;
        if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES || self.bytes > MAX_TEXT_BYTES {
            return None;
        }
        let content = std::fs::read(path).ok()?;
        self.bytes += content.len();
        Some(Arc::new(Text::new(String::from_utf8_lossy(&content).into_owned())))
    }

    /// The text when the profile was first opened here.
    fn opened(&self, groups: &FileGroups, group: GroupId, path: &Path, now: &Arc<Text>) -> Option<Arc<Text>> {
        let (opened, terms) = self.evidence.opened?;
        let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
        let group = groups.get(group);
        for &file in &group.files {
            if let Some(placement) = &group.placement {
                opened
                    .places_under(terms)
                    .entry(self.profile.path(file).to_owned())
                    .or_insert_with(|| placement.clone());
            }
        }
        Some(Arc::clone(opened.texts.entry(path.to_owned()).or_insert_with(|| Arc::clone(now))))
    }

    /// The file that a path of the profile was taken for when it was first opened, and its text.
    fn earlier(&self, path: &str) -> Option<(Placement, Option<Arc<Text>>)> {
        let (opened, terms) = self.evidence.opened?;
        let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
        let placement = opened.places_under(terms).get(path)?.clone();
        let text = placement.path.as_ref().and_then(|path| opened.texts.get(path)).cloned();
        Some((placement, text))
    }

    /// The anchor of a file that is where it was.
    fn measured(
        &mut self,
        groups: &FileGroups,
        group: GroupId,
        path: &Path,
        now: &Text,
        opened: Option<&Arc<Text>>,
    ) -> Option<FileAnchor> {
        if let Some(anchor) = self.recorded.as_ref().and_then(|recorded| recorded.anchor(path, now.content())) {
            return Some(anchor);
        }
        let before = opened.filter(|opened| opened.content() != now.content());
        let opened = || {
            let before = before?;
            Some(FileAnchor::new(Basis::Opened, LineMap::between(before.content(), now.content())))
        };
        if self.recorded.is_some() {
            // A recording is of this machine, so what was here when it was opened is what ran.
            return opened();
        }
        // What functions say, they say of the text that is there.
        let at_first = before.map_or(now.content(), |before| before.content());
        let functions = self.functions.get_or_insert_with(|| Functions::of(self.profile, groups));
        let found = functions.in_text(group, at_first);
        let commits =
            self.commits.get_or_insert_with(|| Commits::of(self.profile, self.evidence.roots, self.evidence.rule));
        if let Some((basis, text, is_supposed)) = commits.text(path, functions, group, &found) {
            if text == now.content() {
                return Some(FileAnchor::same(basis));
            }
            let map = LineMap::between(&text, now.content());
            return Some(FileAnchor::new(basis, if is_supposed { map.supposed() } else { map }));
        }
        match found {
            Declarations::Shifted(map) => {
                let map = match before {
                    Some(before) => map.then(&LineMap::between(before.content(), now.content())),
                    None => map,
                };
                Some(FileAnchor::new(Basis::Functions, map))
            }
            Declarations::There => opened(),
            Declarations::Unknown => {
                self.unverified += 1;
                opened()
            }
        }
    }

    /// A file whose text of now speaks against it: the text of the profile's commit may speak for it.
    fn refused(&mut self, groups: &mut FileGroups, group: GroupId, old: &Path) {
        let refusals = [NoMatchReason::FunctionsElsewhere, NoMatchReason::TooShort].map(|reason| reason.to_string());
        let evidence = groups.get(group).placement.as_ref().map_or("", |placement| &placement.evidence);
        let Some(name) = old.file_name().and_then(|name| name.to_str()) else { return };
        if !refusals.iter().any(|refusal| evidence.starts_with(refusal)) {
            return;
        }
        let end = format!("/{name}");
        let shared = |path: &Path| old.iter().rev().zip(path.iter().rev()).take_while(|(a, b)| a == b).count();
        let files = self.workspace.files_ending(name).filter(|file| format!("/{}", file.relative).ends_with(&end));
        let mut files: Vec<_> = files.map(|file| (shared(&file.path), file)).collect();
        files.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
        // A name alone says little, and of two that fit as well neither is taken.
        let is_tie = files.len() > 1 && files[0].0 == files[1].0;
        let Some((_, file)) = files.into_iter().next().filter(|(shared, _)| *shared > 1 && !is_tie) else { return };
        let functions = self.functions.get_or_insert_with(|| Functions::of(self.profile, groups));
        let commits =
            self.commits.get_or_insert_with(|| Commits::of(self.profile, self.evidence.roots, self.evidence.rule));
        let text = commits.text(&file.path, functions, group, &Declarations::Unknown);
        let Some((basis, text, false)) = text else { return };
        if functions.in_text(group, &text) != Declarations::There {
            return;
        }
        let Some(now) = self.read(&file.path) else { return };
        self.anchored.texts.insert(file.path.clone(), Arc::clone(&now));
        let placement = Placement {
            place: Place::Workspace,
            workspace_file: Some(self.workspace.display_name(&file)),
            path: Some(file.path),
            evidence: format!("by suffix; its functions were there {basis}"),
            package: None,
        };
        groups.place(group, placement);
        groups.anchor(group, Arc::new(FileAnchor::new(basis, LineMap::between(&text, now.content()))));
    }

    /// A file that is not where the profile says: it may have another name by now.
    fn missing(&mut self, groups: &mut FileGroups, group: GroupId) {
        let Some(&first) = groups.get(group).files.first() else { return };
        let old = PathBuf::from(self.profile.path(first));
        let earlier = self.earlier(self.profile.path(first));
        // What it was taken for when its text spoke for it, it is.
        if let Some((placement, _)) = &earlier
            && let Some(path) = placement.path.clone().filter(|path| path.is_file())
        {
            groups.place(group, placement.clone());
            self.at(groups, group, &path);
            return;
        }
        let recorded = self.recorded.as_ref().and_then(|recorded| recorded.text(&old));
        let recorded = recorded.map(|(text, name)| (text, name, Basis::Copy));
        let opened = earlier
            .and_then(|(placement, text)| Some((text?.content().to_owned(), placement.workspace_file?, Basis::Opened)));
        let Some((text, old_name, basis)) = recorded.or(opened) else {
            self.refused(groups, group, &old);
            return;
        };
        let is_taken = |path: &Path| {
            let placed = groups.all().iter().filter_map(|group| group.placement.as_ref());
            placed.filter_map(|placement| placement.path.as_deref()).any(|other| other == path)
        };
        // The path itself is there when only its text spoke against it.
        let is_there = self.workspace.file_at(&old).filter(|file| file.path.is_file());
        let (file, evidence, renamed_from) = if let Some(file) = is_there {
            (file, "exact path".to_owned(), None)
        } else {
            let mut renames = Renames::of(&text);
            if !renames.is_findable() {
                return;
            }
            let extension = old.extension().map_or_else(String::new, |end| format!(".{}", end.to_string_lossy()));
            let is_new = |path: &Path| !is_taken(path) && !self.recorded.as_ref().is_some_and(|own| own.knows(path));
            // Of too many files, those of the same name come first.
            let mut files: Vec<_> = self.workspace.files_ending(&extension).filter(|it| is_new(&it.path)).collect();
            files.sort_by_key(|file| file.path.file_name() != old.file_name());
            files.truncate(MAX_CANDIDATES);
            for (number, file) in files.iter().enumerate() {
                let is_small = std::fs::metadata(&file.path).is_ok_and(|it| it.is_file() && it.len() <= MAX_FILE_BYTES);
                if let Some(text) = is_small.then(|| std::fs::read(&file.path).ok()).flatten() {
                    renames.offer(number, &String::from_utf8_lossy(&text));
                }
            }
            let Some(found) = renames.found() else { return };
            (files.swap_remove(found), format!("renamed from {old_name}"), Some(old_name))
        };
        let Some(now) = self.read(&file.path) else { return };
        self.anchored.texts.insert(file.path.clone(), Arc::clone(&now));
        let anchor = FileAnchor::new(basis, LineMap::between(&text, now.content()));
        let anchor = match renamed_from {
            Some(old) => anchor.renamed_from(old),
            None => anchor,
        };
        groups.place(
            group,
            Placement {
                place: Place::Workspace,
                workspace_file: Some(self.workspace.display_name(&file)),
                path: Some(file.path),
                evidence,
                package: None,
            },
        );
        groups.anchor(group, Arc::new(anchor));
    }
}
