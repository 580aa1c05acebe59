//! Folders that source code lives in: the project around a file, and where toolchains and
//! package managers of this machine keep theirs.
//!
//! Nothing is executed and nothing searched for: well-known places and the environment
//! variables that move them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// What tells that a folder is the top of a project.
const MARKERS: &[&str] = &[
    ".git",
    "Cargo.toml",
    "go.mod",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "CMakeLists.txt",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "perflens.toml",
];

/// The nearest folder at or above `folder` that is the top of a project, and the marker.
pub(crate) fn project(folder: &Path) -> Option<(&Path, &'static str)> {
    folder
        .ancestors()
        .find_map(|folder| MARKERS.iter().find(|marker| folder.join(marker).exists()).map(|&marker| (folder, marker)))
}

/// A folder with sources that are not the user's own.
pub(super) struct Foreign {
    /// Whose they are.
    pub(super) name: &'static str,
    /// Where they are, if at all.
    pub(super) path: PathBuf,
    /// How to get them.
    pub(super) advice: &'static str,
}

/// Where sources of toolchains and dependencies may be on this machine.
pub(super) fn foreign() -> Vec<Foreign> {
    let home = env::home_dir();
    let at_home = |path: &str| home.as_ref().map(|home| home.join(path));
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cargo = set("CARGO_HOME").or_else(|| at_home(".cargo"));
    let go_path = set("GOPATH").or_else(|| at_home("go"));
    let go_root = set("GOROOT").unwrap_or_else(|| "/usr/local/go".into());
    let rustup = set("RUSTUP_HOME").or_else(|| at_home(".rustup"));
    [
        ("Rust's library", rustup.as_deref().map(rust_library), "rustup component add rust-src"),
        ("Rust crates", cargo.as_ref().map(|cargo| cargo.join("registry/src")), "cargo fetch"),
        ("Rust crates, git", cargo.map(|cargo| cargo.join("git/checkouts")), "cargo fetch"),
        ("Go's library", Some(go_root.join("src")), "export GOROOT=$(go env GOROOT)"),
        ("Go modules", set("GOMODCACHE").or_else(|| go_path.map(|path| path.join("pkg/mod"))), "go mod download"),
    ]
    .into_iter()
    .filter_map(|(name, path, advice)| Some(Foreign { name, path: path?, advice }))
    .collect()
}

/// The toolchains' folder if one of them has the library's sources, else where they would be.
fn rust_library(rustup: &Path) -> PathBuf {
    const LIBRARY: &str = "lib/rustlib/src/rust/library";
    let toolchains = rustup.join("toolchains");
    let has_library = |toolchain: fs::DirEntry| toolchain.path().join(LIBRARY).is_dir();
    let is_there = fs::read_dir(&toolchains).is_ok_and(|entries| entries.flatten().any(has_library));
    if is_there { toolchains } else { toolchains.join("*").join(LIBRARY) }
}
