//! Which paths of a profile are one file. Decided before anything is counted: a sample that
//! passes two spellings of one file must count once.

use std::path::PathBuf;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::anchor::FileAnchor;
use crate::profile::{FileId, FileKind, LineNo, Profile};

/// What a file is to the user's workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Hand-written code of the workspace.
    Workspace,
    /// Could be several files of the workspace; none is shown.
    Ambiguous,
    /// A file of the workspace that a tool wrote.
    Generated,
    /// Code of a dependency.
    Dependency,
    /// Code of the language's own library or runtime.
    Toolchain,
    /// Nothing is known about it.
    NoMatch,
}

/// What is known about one path of the profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// What it is to the workspace.
    pub place: Place,
    /// The workspace file as it is shown: relative to its root, with `/`. Equal texts are one
    /// file.
    pub workspace_file: Option<String>,
    /// Where the file is on this machine, as far as that is inside a root.
    pub path: Option<PathBuf>,
    /// How it was matched, or why not: a short phrase; empty when that goes without saying.
    pub evidence: String,
    /// The dependency or toolchain it belongs to, with its version.
    pub package: Option<String>,
}

/// Index of a [`FileGroup`]; 0 stands for "no file".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

impl GroupId {
    /// "No file".
    pub const NONE: Self = Self(0);

    /// The group as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Paths of a profile that are one file.
#[derive(Clone, Debug, Default)]
pub struct FileGroup {
    /// The paths, in the order of the profile; the first one names the group.
    pub files: Vec<FileId>,
    /// Whether it is a source file rather than a placeholder.
    pub is_source: bool,
    /// What is known about it; `None` without a workspace.
    pub placement: Option<Placement>,
    /// Where its lines are in today's text; `None` when that was not looked at.
    pub anchor: Option<Arc<FileAnchor>>,
}

/// All files of a profile, grouped.
#[derive(Clone, Debug)]
pub struct FileGroups {
    of_file: Vec<GroupId>,
    groups: Vec<FileGroup>,
    has_workspace: bool,
}

impl FileGroups {
    /// Without a workspace: every path is a file of its own.
    pub fn by_path(profile: &Profile) -> Self {
        Self::build(profile, |_| None, false)
    }

    /// With a workspace: paths placed in one workspace file are one file.
    pub fn placed(profile: &Profile, mut placement: impl FnMut(FileId) -> Option<Placement>) -> Self {
        Self::build(profile, &mut placement, true)
    }

    fn build(profile: &Profile, mut placement: impl FnMut(FileId) -> Option<Placement>, has_workspace: bool) -> Self {
        let mut groups = vec![FileGroup::default()];
        let mut of_file = vec![GroupId::NONE];
        let mut by_workspace_file: FxHashMap<String, GroupId> = FxHashMap::default();
        for (file, row) in (0u32..).map(FileId).zip(profile.files()).skip(1) {
            let is_source = row.kind == FileKind::Source;
            let placement = if is_source { placement(file) } else { None };
            let workspace_file = placement.as_ref().and_then(|placement| placement.workspace_file.clone());
            let next = GroupId(u32::try_from(groups.len()).unwrap_or(u32::MAX));
            let group = match workspace_file {
                Some(path) => *by_workspace_file.entry(path).or_insert(next),
                None => next,
            };
            if group == next {
                groups.push(FileGroup { files: Vec::new(), is_source, placement, anchor: None });
            }
            groups[group.index()].files.push(file);
            of_file.push(group);
        }
        Self { of_file, groups, has_workspace }
    }

    /// The group a path belongs to.
    pub fn of(&self, file: FileId) -> GroupId {
        self.of_file[file.index()]
    }

    /// A group.
    pub fn get(&self, group: GroupId) -> &FileGroup {
        &self.groups[group.index()]
    }

    /// Says where a file's lines are in today's text. Before anything is counted.
    pub fn anchor(&mut self, group: GroupId, anchor: Arc<FileAnchor>) {
        self.groups[group.index()].anchor = Some(anchor);
    }

    /// Says what a file is, after all. Before anything is counted.
    pub fn place(&mut self, group: GroupId, placement: Placement) {
        self.groups[group.index()].placement = Some(placement);
    }

    /// Where a line of the profile is in today's text; `None` when it is gone. What is unknown
    /// stays so.
    pub fn line(&self, group: GroupId, line: LineNo) -> Option<LineNo> {
        match &self.get(group).anchor {
            Some(anchor) if line.is_known() => anchor.line(line.0).map(LineNo),
            _ => Some(line),
        }
    }

    /// Whether a line of today's text may be another than the measured one.
    pub fn is_uncertain(&self, group: GroupId, line: LineNo) -> bool {
        self.get(group).anchor.as_ref().is_some_and(|anchor| anchor.is_uncertain(line.0))
    }

    /// All groups; the first stands for "no file".
    pub fn all(&self) -> &[FileGroup] {
        &self.groups
    }

    /// Whether paths were matched with a workspace.
    pub fn has_workspace(&self) -> bool {
        self.has_workspace
    }

    /// The path that names a group: the first of the profile's spellings, cleaned; `""` for
    /// [`GroupId::NONE`].
    pub fn path<'p>(&self, profile: &'p Profile, group: GroupId) -> &'p str {
        self.get(group).files.first().map_or("", |&file| profile.path(file))
    }

    /// The name shown to people: the workspace file where there is one, else the path.
    pub fn display<'a>(&'a self, profile: &'a Profile, group: GroupId) -> &'a str {
        self.workspace_file(group).unwrap_or_else(|| self.path(profile, group))
    }

    /// Per group, its place in the order of the names shown.
    pub fn ranks(&self, profile: &Profile) -> Vec<u32> {
        let mut order: Vec<GroupId> = (0u32..).map(GroupId).take(self.groups.len()).collect();
        order.sort_by_key(|&group| self.display(profile, group));
        let mut ranks = vec![0; order.len()];
        for (rank, group) in (0u32..).zip(order) {
            ranks[group.index()] = rank;
        }
        ranks
    }

    /// The workspace file of a group.
    pub fn workspace_file(&self, group: GroupId) -> Option<&str> {
        self.get(group).placement.as_ref()?.workspace_file.as_deref()
    }
}
