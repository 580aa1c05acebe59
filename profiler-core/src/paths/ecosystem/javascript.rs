//! JavaScript and TypeScript: installed packages, packages of a monorepo, Node's own files.

use super::{Claim, Ecosystem, Entry, Index, Note, Query, dependency};
use crate::paths::resolution::{OutsideKind, WorkspaceFile};
use crate::paths::source_path::extension;

pub(super) const ENTRY: Entry = Entry { foreign, read: |index, notes| Box::new(JavaScript::read(index, notes)) };

struct JavaScript {
    packages: Vec<Package>,
}

struct Package {
    name: String,
    /// Components of its folder on this machine.
    folder: Vec<String>,
}

impl Ecosystem for JavaScript {
    fn claim(&self, query: &Query<'_>, index: &Index) -> Option<Claim> {
        let parts = query.path.strs();
        if let Some(installed) = Installed::parse(&parts) {
            return self.linked(&installed, index);
        }
        if extension(query.path.name()) != "js" || query.path.is_absolute() {
            return None;
        }
        let internal = parts[0] == "internal" && parts.len() > 1 && index.at_any(&parts).is_empty();
        internal.then(|| Claim::toolchain("node", None))
    }
}

impl JavaScript {
    fn read(index: &Index, notes: &mut Vec<Note>) -> Self {
        let mut packages = Vec::new();
        for &row in index.named("package.json") {
            let file = index.file(row);
            let Some((text, true)) = index.read(&file, super::MAX_MANIFEST) else { continue };
            match serde_json::from_str::<serde_json::Value>(&text) {
                Ok(manifest) => {
                    if let Some(name) = manifest.get("name").and_then(|name| name.as_str()) {
                        packages.push(Package { name: name.to_owned(), folder: index.folder_parts(&file) });
                    }
                }
                Err(error) => notes.push(Note::Manifest { relative: file.relative, error: error.to_string() }),
            }
        }
        Self { packages }
    }

    /// Package managers link the packages of a monorepo below `node_modules`.
    fn linked(&self, installed: &Installed<'_>, index: &Index) -> Option<Claim> {
        let own = self.packages.iter().filter(|package| package.name == installed.name);
        let files: Vec<WorkspaceFile> = own
            .filter_map(|package| {
                let folder = package.folder.iter().map(String::as_str);
                index.below(&folder.chain(installed.rest.iter().copied()).collect::<Vec<_>>())
            })
            .collect();
        (!files.is_empty()).then(|| Claim::Inside { files, by: format!("package {}", installed.name) })
    }
}

/// A path below the innermost `node_modules`.
struct Installed<'p> {
    name: String,
    version: Option<&'p str>,
    rest: &'p [&'p str],
}

impl<'p> Installed<'p> {
    fn parse(parts: &'p [&'p str]) -> Option<Self> {
        let at = parts.iter().rposition(|part| *part == "node_modules")?;
        let (name, rest) = match &parts[at + 1..] {
            [scope, name, rest @ ..] if scope.starts_with('@') => (format!("{scope}/{name}"), rest),
            [name, rest @ ..] => ((*name).to_owned(), rest),
            [] => return None,
        };
        // pnpm: `node_modules/.pnpm/@scope+name@1.2.3_peers/node_modules/@scope/name/…`
        let store = at.checked_sub(1).map(|folder| parts[folder]);
        let version = store
            .and_then(|folder| folder.strip_prefix(&name.replace('/', "+"))?.strip_prefix('@'))
            .and_then(|version| version.split(['_', '(']).next());
        Some(Self { name, version, rest })
    }
}

fn foreign(parts: &[&str]) -> Option<OutsideKind> {
    Installed::parse(parts).map(|installed| dependency(installed.name, installed.version))
}
