//! Bazel: paths are relative to the workspace, below one of several kinds of folder that are
//! gone when the build is over. Other repositories and what the build wrote have their own
//! places in there.

use super::{Claim, Ecosystem, Entry, Index, Query, after};
use crate::paths::resolution::OutsideKind;

pub(super) const ENTRY: Entry = Entry { foreign, read: |_, _| Box::new(Bazel) };

struct Bazel;

impl Ecosystem for Bazel {
    fn claim(&self, query: &Query<'_>, index: &Index) -> Option<Claim> {
        let parts = query.path.strs();
        let below = below_workspace(&parts);
        let rest = match below {
            Some(rest) => rest,
            None if query.path.is_absolute() => return None,
            None => &parts[..],
        };
        let own = |files: Vec<_>| (!files.is_empty()).then(|| Claim::Inside { files, by: BY.to_owned() });
        match rest {
            ["external", repository, _, ..] => Some(match own(index.at_any(rest)) {
                Some(claim) => claim,
                None => repository_claim(repository),
            }),
            ["bazel-out", _, "bin" | "genfiles", "external", repository, ..] => Some(repository_claim(repository)),
            ["bazel-out", _, "bin" | "genfiles", path @ ..] => Some(generated(rest, path, index)),
            // A relative path alone may come from any build.
            _ if below.is_some() => own(index.at_any(rest)),
            _ => None,
        }
    }
}

const BY: &str = "path in the Bazel workspace";

/// What follows the folder that stands for the workspace during a build or a run.
fn below_workspace<'p, 's>(parts: &'p [&'s str]) -> Option<&'p [&'s str]> {
    let rest = after(parts, &["proc", "self", "cwd"]).unwrap_or(parts);
    let below = after(rest, &["execroot"]).and_then(|rest| rest.get(1..)).or_else(|| {
        let at = rest.iter().position(|part| part.ends_with(".runfiles"))?;
        rest.get(at + 2..)
    });
    let below = below.or_else(|| (rest.len() < parts.len()).then_some(rest));
    below.filter(|rest| !rest.is_empty())
}

/// `rules_cc~1.2.3`, `rules_cc+`, `_main~deps~zlib`: the last part that is a name.
fn repository_claim(repository: &str) -> Claim {
    let mut parts = repository.split(['~', '+']).filter(|part| !part.is_empty());
    let name = parts.next().unwrap_or(repository);
    let last = parts.next_back();
    match last {
        Some(version) if version.starts_with(|c: char| c.is_ascii_digit()) => Claim::dependency(name, Some(version)),
        Some(inner) => Claim::dependency(inner, None),
        None => Claim::dependency(name, None),
    }
}

/// A path below `bazel-out/…/bin`: written by the build, or a source that was copied there.
fn generated(whole: &[&str], path: &[&str], index: &Index) -> Claim {
    let linked: Vec<&str> = std::iter::once("bazel-bin").chain(path.iter().copied()).collect();
    let written = index.at_any(whole).into_iter().chain(index.at_any(&linked)).next();
    let sources = index.at_any(path);
    if written.is_none() && !sources.is_empty() {
        return Claim::Inside { files: sources, by: BY.to_owned() };
    }
    Claim::Outside { kind: by_build(), file: written.map(|file| file.path) }
}

fn by_build() -> OutsideKind {
    OutsideKind::Generated { by: "Bazel".to_owned() }
}

fn foreign(parts: &[&str]) -> Option<OutsideKind> {
    matches!(parts, ["bazel-out" | "bazel-bin" | "bazel-genfiles", _, ..]).then(by_build)
}
