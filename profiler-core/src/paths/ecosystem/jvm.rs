//! Java, Kotlin, Scala, Groovy: profiles know the class and the bare name of the file. The
//! class's package is the folder, so it decides among files of one name.
//!
//! Kotlin and Scala may leave out folders; there the `package` line of the file decides.

use super::{Claim, Ecosystem, Entry, Index, Query};
use crate::paths::resolution::{NoMatchReason, WorkspaceFile};
use crate::paths::source_path::extension;

pub(super) const ENTRY: Entry = Entry { foreign: |_| None, read: |_, _| Box::new(Jvm) };

struct Jvm;

/// Files of one name whose `package` line is looked at.
const MAX_FILES: usize = 64;

impl Ecosystem for Jvm {
    fn claim(&self, query: &Query<'_>, index: &Index) -> Option<Claim> {
        let name = query.path.name();
        if !matches!(extension(name), "java" | "kt" | "kts" | "scala" | "groovy") {
            return None;
        }
        let parts = query.path.strs();
        let named = query.asked.functions.iter().find_map(|function| package_of(function.name));
        let package = match named {
            Some(package) => package,
            // Tools that know the class write its package as folders.
            None if !query.path.is_absolute() => {
                parts[..parts.len() - 1].iter().map(|part| (*part).to_owned()).collect()
            }
            None => return None,
        };
        if let Some(library) = own_library(&package) {
            return Some(Claim::toolchain(library, None));
        }
        if package.is_empty() { None } else { named_package(index, name, &package) }
    }
}

/// The files of a name that belong to a package.
fn named_package(index: &Index, name: &str, package: &[String]) -> Option<Claim> {
    let rows = index.named(name);
    let text = package.join(".");
    let in_folder = |relative: &str| {
        let folders: Vec<&str> = relative.split('/').rev().skip(1).collect();
        folders.len() >= package.len() && package.iter().rev().eq(folders[..package.len()].iter())
    };
    let mut files: Vec<WorkspaceFile> =
        rows.iter().filter(|row| in_folder(index.place(**row).1)).map(|row| index.file(*row)).collect();
    if files.is_empty() {
        let declared = rows.iter().take(MAX_FILES).map(|row| index.file(*row));
        files = declared.filter(|file| declares(index, file, &text)).collect();
    }
    match (files.is_empty(), rows.is_empty()) {
        (false, _) => Some(Claim::Inside { files, by: format!("package {text}") }),
        (true, false) => Some(Claim::Refused { reason: NoMatchReason::OtherPackage, possible: Vec::new() }),
        (true, true) => None,
    }
}

fn declares(index: &Index, file: &WorkspaceFile, package: &str) -> bool {
    index.read(file, super::MAX_MANIFEST).is_some_and(|(text, _)| {
        let mut lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("package "));
        lines.next().is_some_and(|rest| rest.trim().trim_end_matches(';') == package)
    })
}

/// The package of a method: `com.example.Foo$Bar.run`, `void com.example.Foo.run(int)`,
/// `com/example/Foo.run`. `None` without one.
fn package_of(method: &str) -> Option<Vec<String>> {
    let name = method.split('(').next()?.split_whitespace().last()?;
    let parts: Vec<&str> = name.split(['.', '/']).collect();
    // By convention a class is the first with a capital; without one it stands before the method.
    let class =
        parts.iter().position(|part| part.starts_with(char::is_uppercase)).or_else(|| parts.len().checked_sub(2))?;
    let package = &parts[..class];
    let valid = |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
    (!package.is_empty() && package.iter().all(valid)).then(|| package.iter().map(|part| (*part).to_owned()).collect())
}

/// Packages that come with a language.
fn own_library(package: &[String]) -> Option<&'static str> {
    let parts: Vec<&str> = package.iter().map(String::as_str).collect();
    match parts[..] {
        ["java" | "javax" | "jdk" | "sun", ..] | ["com", "sun", ..] => Some("jdk"),
        ["kotlin", ..] => Some("kotlin"),
        ["scala", ..] => Some("scala"),
        ["groovy", ..] => Some("groovy"),
        _ => None,
    }
}
