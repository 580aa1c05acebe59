//! Python: installed packages, the standard library, cells of notebooks.

use super::{Claim, Ecosystem, Entry, Index, Query, dependency, split_version};
use crate::paths::resolution::{NoMatchReason, OutsideKind};
use crate::paths::source_path::extension;

pub(super) const ENTRY: Entry = Entry { foreign, read: |_, _| Box::new(Python) };

struct Python;

impl Ecosystem for Python {
    fn claim(&self, query: &Query<'_>, _: &Index) -> Option<Claim> {
        let parts = query.path.strs();
        if extension(query.path.name()) != "py" || foreign(&parts).is_some() {
            return None;
        }
        // `/tmp/ipykernel_4711/1234.py` is a cell, which is no file.
        if parts.iter().any(|part| part.starts_with("ipykernel_")) {
            return Some(Claim::Refused { reason: NoMatchReason::NotAFile, possible: Vec::new() });
        }
        let version = parts.windows(2).find_map(|pair| match pair {
            ["lib" | "lib64", folder] => numbered(folder, "python").or_else(|| numbered(folder, "pypy")),
            [folder, "Lib"] => numbered(folder, "Python"),
            _ => None,
        })?;
        // Windows writes 3.11 as `Python311`.
        let version = match version.split_at_checked(1) {
            Some((major, minor)) if !minor.is_empty() && !version.contains('.') => format!("{major}.{minor}"),
            _ => version.to_owned(),
        };
        Some(Claim::toolchain("python", Some(&version)))
    }
}

fn numbered<'s>(folder: &'s str, prefix: &str) -> Option<&'s str> {
    folder.strip_prefix(prefix).filter(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}

fn foreign(parts: &[&str]) -> Option<OutsideKind> {
    let at = parts.iter().rposition(|part| matches!(*part, "site-packages" | "dist-packages"))?;
    let package = parts.get(at + 1)?;
    Some(match package.strip_suffix(".egg").and_then(split_version) {
        Some((name, version)) => dependency(name, version.split("-py").next()),
        None => dependency(package.strip_suffix(".py").unwrap_or(package), None),
    })
}
