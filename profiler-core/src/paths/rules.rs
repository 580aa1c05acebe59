//! The user's own rules: this prefix stands for that folder.
//!
//! A rule applies only where its prefix matches by whole components *and* the file it leads
//! to is in the workspace, so one rule can't break the paths it was not written for.

use super::How;
use super::clean::clean;
use super::index::Index;
use super::resolution::WorkspaceFile;
use super::source_path::SourcePath;
use super::workspace::Note;

/// A prefix of paths in profiles, and the folder that it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The prefix, or a whole path. Matched by components after cleaning.
    pub from: String,
    /// A folder of the workspace (or a file, when `from` is a whole path): an absolute path
    /// below a root, or a path relative to any root; `.` is the root.
    pub to: String,
}

pub(super) struct Rules(Vec<Prepared>);

struct Prepared {
    from: SourcePath,
    /// `None` stands for the root itself.
    to: Option<SourcePath>,
    rule: Rule,
}

impl Rules {
    pub(super) fn new(rules: &[Rule], notes: &mut Vec<Note>) -> Self {
        let mut prepared = Vec::new();
        for rule in rules {
            match SourcePath::parse(&clean(&rule.from)) {
                Some(from) => {
                    prepared.push(Prepared { from, to: SourcePath::parse(&clean(&rule.to)), rule: rule.clone() });
                }
                None => notes.push(Note::EmptyRule),
            }
        }
        prepared.sort_by_key(|rule| std::cmp::Reverse(rule.from.parts().len()));
        Self(prepared)
    }

    /// The file that the rule with the longest prefix leads to, among those that lead to one.
    pub(super) fn apply(&self, path: &SourcePath, index: &Index) -> Option<(WorkspaceFile, How)> {
        self.0.iter().find_map(|Prepared { from, to, rule }| {
            let length = from.parts().len();
            let matches = from.is_absolute() == path.is_absolute()
                && path.parts().len() >= length
                && from.parts().iter().zip(path.parts()).all(|(a, b)| index.case().equal(a, b));
            if !matches {
                return None;
            }
            let mut parts = to.as_ref().map(SourcePath::strs).unwrap_or_default();
            parts.extend(path.parts()[length..].iter().map(String::as_str));
            let file = match to {
                Some(to) if to.is_absolute() => index.below(&parts)?,
                _ => match &index.at_any(&parts)[..] {
                    [file] => file.clone(),
                    // In none of the roots, or in several.
                    _ => return None,
                },
            };
            Some((file, How::Rule { from: rule.from.clone(), to: rule.to.clone() }))
        })
    }
}
