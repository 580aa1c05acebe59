//! Ruby: gems and the standard library.

use super::{Claim, Ecosystem, Entry, Index, Query, after, dependency, split_version};
use crate::paths::resolution::OutsideKind;

pub(super) const ENTRY: Entry = Entry { foreign, read: |_, _| Box::new(Ruby) };

struct Ruby;

impl Ecosystem for Ruby {
    fn claim(&self, query: &Query<'_>, _: &Index) -> Option<Claim> {
        let parts = query.path.strs();
        let version = after(&parts, &["lib", "ruby"]).and_then(|rest| rest.first().copied())?;
        let numbered = version.starts_with(|c: char| c.is_ascii_digit());
        (numbered && foreign(&parts).is_none()).then(|| Claim::toolchain("ruby", Some(version)))
    }
}

fn foreign(parts: &[&str]) -> Option<OutsideKind> {
    let at = parts.iter().rposition(|part| *part == "gems")?;
    let package = parts.get(at + 1).filter(|_| parts.len() > at + 2)?;
    match split_version(package) {
        Some((name, version)) => Some(dependency(name, Some(version))),
        // Checked out by Bundler: `bundler/gems/<name>-<commit>`.
        None if at > 0 && parts[at - 1] == "bundler" => {
            package.rsplit_once('-').map(|(name, commit)| dependency(name, Some(commit)))
        }
        None => None,
    }
}
