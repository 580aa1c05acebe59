//! C and C++: there are no modules, but distributions build in folders with telling names, and
//! a library of the system says what it is by where it was loaded from.

use super::{Claim, Ecosystem, Entry, Index, Query, after, split_version};
use crate::paths::source_path::extension;

pub(super) const ENTRY: Entry = Entry { foreign: |_| None, read: |_, _| Box::new(Native) };

struct Native;

impl Ecosystem for Native {
    fn claim(&self, query: &Query<'_>, _: &Index) -> Option<Claim> {
        let parts = query.path.strs();
        if let Some(claim) = distribution(&parts) {
            return Some(claim);
        }
        if !is_native(query.path.name()) {
            return None;
        }
        // glibc is built with relative names: `../sysdeps/x86_64/memcpy.S`, `./csu/libc-start.c`.
        if !query.path.is_absolute() && matches!(parts[..], ["sysdeps" | "csu", _, ..]) {
            return Some(Claim::toolchain("glibc", None));
        }
        system_header(&parts).or_else(|| system_library(query.asked.binary?))
    }
}

/// Folders in which Debian, Fedora and Nix build packages or keep their source.
fn distribution(parts: &[&str]) -> Option<Claim> {
    let (name, version) = match parts {
        // `/build/glibc-B9XyZc/glibc-2.35/…`
        ["build", build, package, _, ..] => {
            let (name, version) = split_version(package)?;
            build.strip_prefix(name)?.strip_prefix('-')?;
            (name, version)
        }
        ["usr", "src", "debug", package, _, ..] | ["usr", "src", package, _, ..] => split_version(package)?,
        ["nix", "store", package, _, ..] => split_version(package.split_once('-')?.1)?,
        _ => return None,
    };
    Some(match name {
        "glibc" | "gcc" | "musl" => Claim::toolchain(name, Some(version)),
        _ => Claim::dependency(name, Some(version)),
    })
}

fn system_header(parts: &[&str]) -> Option<Claim> {
    if let Some([_, version, "include", _, ..]) = after(parts, &["lib", "gcc"]) {
        return Some(Claim::toolchain("gcc", Some(version)));
    }
    match parts {
        ["usr", "include", "c++", version, _, ..] => Some(Claim::toolchain("libstdc++", Some(version))),
        ["usr", "include", library, _, ..] | ["usr", "local", "include", library, _, ..] => {
            Some(Claim::dependency(*library, None))
        }
        ["usr", "include", _] | ["usr", "local", "include", _] => Some(Claim::dependency("system headers", None)),
        _ => None,
    }
}

/// `/usr/lib/x86_64-linux-gnu/libz.so.1`: nothing in it was built here.
fn system_library(binary: &str) -> Option<Claim> {
    let library = ["/usr/lib/", "/usr/lib64/", "/lib/", "/lib64/"].into_iter().any(|folder| binary.starts_with(folder));
    let name = binary.rsplit('/').next().filter(|_| library)?;
    let of_libc = ["libc.", "libc-", "libm.", "libm-", "libpthread", "librt.", "libdl.", "ld-"];
    Some(if of_libc.into_iter().any(|prefix| name.starts_with(prefix)) {
        Claim::toolchain("glibc", None)
    } else {
        Claim::dependency(name, None)
    })
}

fn is_native(name: &str) -> bool {
    matches!(
        extension(name).to_ascii_lowercase().as_str(),
        "c" | "cc" | "cpp" | "cxx" | "c++" | "h" | "hh" | "hpp" | "hxx" | "inl" | "tcc" | "ipp" | "s" | "asm"
    )
}
