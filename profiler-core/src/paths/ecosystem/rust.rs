//! Rust: crates of the workspace, the registry, git checkouts, the standard library, what
//! build scripts write.

use std::path::Path;

use super::{Claim, Entry, Index, Note, Query, after, dependency, split_version};
use crate::paths::resolution::{OutsideKind, WorkspaceFile};
use crate::paths::source_path::extension;

pub(super) const ENTRY: Entry = Entry { foreign, read: |index, notes| Box::new(Rust::read(index, notes)) };

struct Rust {
    crates: Vec<Crate>,
}

struct Crate {
    name: String,
    version: Option<String>,
    /// Components of its folder on this machine.
    folder: Vec<String>,
}

/// Folders of the standard library's source.
const LIBRARY: [&str; 10] =
    ["alloc", "backtrace", "core", "panic_unwind", "portable-simd", "proc_macro", "std", "stdarch", "test", "unwind"];

impl super::Ecosystem for Rust {
    fn claim(&self, query: &Query<'_>, index: &Index) -> Option<Claim> {
        let parts = query.path.strs();
        if let Some(claim) = toolchain(&parts, query.path.is_absolute()) {
            return Some(claim);
        }
        if let Some([_, package, rest @ ..]) = after(&parts, &["registry", "src"])
            && let Some((name, version)) = split_version(package)
        {
            return Some(self.of_version(name, version, rest, index));
        }
        if let Some([repository, revision, _, ..]) = after(&parts, &["git", "checkouts"]) {
            let name = repository.rsplit_once('-').map_or(*repository, |(name, _)| name);
            return Some(Claim::dependency(name, Some(revision)));
        }
        if extension(query.path.name()) != "rs" {
            return None;
        }
        // Dependencies of the standard library, and trimmed paths.
        let trimmed = if query.path.is_absolute() { after(&parts, &["rust", "deps"]) } else { Some(&parts[..]) };
        if let Some([package, rest @ ..]) = trimmed
            && !rest.is_empty()
            && let Some((name, version)) = split_version(package)
        {
            return Some(self.of_version(name, version, rest, index));
        }
        if foreign(&parts).is_some() { None } else { self.of_function(query, &parts, index) }
    }
}

impl Rust {
    fn read(index: &Index, notes: &mut Vec<Note>) -> Self {
        let mut manifests = Vec::new();
        for &row in index.named("Cargo.toml") {
            let file = index.file(row);
            let Some((text, true)) = index.read(&file, super::MAX_MANIFEST) else { continue };
            match text.parse::<toml::Table>() {
                Ok(manifest) => manifests.push((index.folder_parts(&file), manifest)),
                Err(error) => notes.push(Note::Manifest { relative: file.relative, error: error.message().to_owned() }),
            }
        }
        // A member may take its version from the innermost workspace around it.
        let inherited = |folder: &[String]| {
            let around = manifests.iter().filter(|(root, _)| folder.starts_with(root));
            let versions = around.filter_map(|(root, manifest)| {
                let version = manifest.get("workspace")?.get("package")?.get("version")?.as_str()?;
                Some((root.len(), version.to_owned()))
            });
            versions.max().map(|(_, version)| version)
        };
        let mut crates: Vec<Crate> = manifests
            .iter()
            .filter_map(|(folder, manifest)| {
                let package = manifest.get("package")?;
                let name = package.get("name")?.as_str()?.to_owned();
                let version = match package.get("version") {
                    Some(toml::Value::String(version)) => Some(version.clone()),
                    Some(_) => inherited(folder),
                    None => None,
                };
                Some(Crate { name, version, folder: folder.clone() })
            })
            .collect();
        crates.sort_by(|a, b| (&a.name, &a.folder).cmp(&(&b.name, &b.folder)));
        Self { crates }
    }

    /// A file of a published crate: the workspace's own if the very version is here.
    fn of_version(&self, name: &str, version: &str, rest: &[&str], index: &Index) -> Claim {
        let own = self.crates.iter().filter(|own| own.name == name && own.version.as_deref() == Some(version));
        let files: Vec<WorkspaceFile> = own.filter_map(|own| own.file(rest, index)).collect();
        if files.is_empty() {
            Claim::dependency(name, Some(version))
        } else {
            Claim::Inside { files, by: format!("crate {name} {version}") }
        }
    }

    /// Names of functions begin with their crate. It tells apart the `src/lib.rs` of members.
    fn of_function(&self, query: &Query<'_>, parts: &[&str], index: &Index) -> Option<Claim> {
        let names = query.asked.functions.iter().filter_map(|function| function.name.split_once("::"));
        let mut names: Vec<&str> = names.map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        for own in &self.crates {
            if names.iter().any(|name| own.name.replace('-', "_") == *name) {
                // The longest tail of the path that leads to a file of the crate.
                let tail = (2..=parts.len()).rev().find_map(|length| own.file(&parts[parts.len() - length..], index));
                if let Some(file) = tail {
                    let twins = self.crates.iter().filter(|twin| twin.name == own.name).count();
                    let by = format!("crate {}", own.name);
                    return (twins == 1).then(|| Claim::Inside { files: vec![file], by });
                }
            }
        }
        None
    }
}

impl Crate {
    fn file(&self, rest: &[&str], index: &Index) -> Option<WorkspaceFile> {
        let target: Vec<&str> = self.folder.iter().map(String::as_str).chain(rest.iter().copied()).collect();
        index.below(&target)
    }
}

fn toolchain(parts: &[&str], absolute: bool) -> Option<Claim> {
    // `/rustc/<commit>/library/…`, as released compilers write it.
    if let Some([commit, "library" | "compiler" | "src" | "vendor", _, ..]) = after(parts, &["rustc"]) {
        return Some(Claim::toolchain("rust", Some(commit)));
    }
    if after(parts, &["rustlib", "src", "rust"]).is_some() || after(parts, &["rustlib", "rustc-src"]).is_some() {
        let version = after(parts, &["toolchains"]).and_then(|rest| rest.first().copied());
        return Some(Claim::toolchain("rust", version));
    }
    match parts {
        ["library", part, _, ..] if !absolute && LIBRARY.contains(part) => Some(Claim::toolchain("rust", None)),
        _ => None,
    }
}

fn foreign(parts: &[&str]) -> Option<OutsideKind> {
    let is_hash = |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    // `target/release/build/demo-0123456789abcdef/out/bindings.rs`
    if let Some(at) = parts.windows(3).position(|part| part[0] == "build" && part[2] == "out")
        && let Some((name, hash)) = parts[at + 1].rsplit_once('-')
        && is_hash(hash)
        && parts.len() > at + 3
    {
        return Some(OutsideKind::Generated { by: format!("the build script of {name}") });
    }
    let rust = Path::new(parts.last()?).extension().is_some_and(|extension| extension == "rs");
    match after(parts, &["vendor"]) {
        Some([package, "src" | "build.rs", ..]) if rust => Some(match split_version(package) {
            Some((name, version)) => dependency(name, Some(version)),
            None => dependency(*package, None),
        }),
        _ => None,
    }
}
