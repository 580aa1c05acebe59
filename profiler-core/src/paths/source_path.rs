//! A path of a profile taken apart, and how components are compared.
//!
//! The machine that was profiled need not be of this kind: `C:/x`, `/c/x` (MSYS) and
//! `/mnt/c/x` (WSL) name one folder, and whether `A` equals `a` is a property of the volume.
//! Both are decided here, as data, so that every rule can be tried on every system.
//!
//! What is not here: the disk, and spelling ([`clean`](super::clean)), which came first.

use std::borrow::Cow;

use super::clean::is_pseudo;

/// Whether file names that differ in case only are one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// `A` and `a` are two files.
    Sensitive,
    /// `A` and `a` are one file.
    Blind,
}

impl Default for Case {
    /// What volumes of this platform usually do.
    fn default() -> Self {
        if cfg!(any(windows, target_os = "macos")) { Self::Blind } else { Self::Sensitive }
    }
}

impl Case {
    pub(super) fn equal(self, a: &str, b: &str) -> bool {
        match self {
            Self::Sensitive => a == b,
            Self::Blind if a.is_ascii() && b.is_ascii() => a.eq_ignore_ascii_case(b),
            Self::Blind => self.fold(a) == self.fold(b),
        }
    }

    /// Equal for names that are equal under this rule.
    pub(super) fn fold(self, name: &str) -> Cow<'_, str> {
        match self {
            Self::Sensitive => Cow::Borrowed(name),
            Self::Blind => Cow::Owned(name.to_lowercase()),
        }
    }
}

/// A cleaned path in components, the file's name last.
///
/// A drive is the first component (`C:`). Leading `..` are gone: where a relative path starts
/// is unknown anyway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourcePath {
    absolute: bool,
    parts: Vec<String>,
}

/// No file has a longer path, in bytes, on any system that profiles name files of.
const MAX_PATH: usize = 4096;

/// Schemes behind which bundlers and development servers put paths of source files.
const SOURCE_SCHEMES: [&str; 6] = ["http", "https", "webpack", "vite", "turbopack", "app"];

impl SourcePath {
    /// `None` when the text names no file that could be in a workspace: a pseudo file, a URL of
    /// a scheme that hides no path, or more text than a path can have.
    pub(super) fn parse(cleaned: &str) -> Option<Self> {
        if is_pseudo(cleaned) || cleaned.len() > MAX_PATH {
            return None;
        }
        if let Some((scheme, rest)) = split_scheme(cleaned) {
            let path = SOURCE_SCHEMES.contains(&scheme).then(|| path_in_url(rest))?;
            // Vite serves files outside its root under `/@fs/` and their absolute path.
            let absolute = path.strip_prefix("@fs/");
            return Self::from_parts(absolute.is_some(), absolute.unwrap_or(path).split('/'));
        }
        let absolute = is_absolute(cleaned);
        let mut parts: Vec<&str> = cleaned.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        // A Linux file as Windows sees it.
        if matches!(parts[..], ["wsl$" | "wsl.localhost", _, _, ..]) {
            parts.drain(..2);
        }
        let mut path = Self::from_parts(absolute, parts.into_iter().skip_while(|part| *part == ".."))?;
        if absolute {
            path.unify_drive();
        }
        Some(path)
    }

    /// The components of a folder on this machine, in the same form as those of a profile.
    pub(super) fn of_folder(folder: &std::path::Path) -> Vec<String> {
        let text = folder.to_string_lossy();
        Self::parse(&super::clean::clean(&text)).map_or_else(Vec::new, |path| path.parts)
    }

    fn from_parts<'a>(absolute: bool, parts: impl Iterator<Item = &'a str>) -> Option<Self> {
        let parts: Vec<String> = parts.filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect();
        (!parts.is_empty()).then_some(Self { absolute, parts })
    }

    /// `/c/x` and `/mnt/c/x` become `C:/x`.
    fn unify_drive(&mut self) {
        let letter = |part: &str| part.len() == 1 && part.as_bytes()[0].is_ascii_alphabetic();
        let taken = match &self.parts[..] {
            [drive, _, ..] if letter(drive) => 1,
            [mnt, drive, _, ..] if mnt == "mnt" && letter(drive) => 2,
            _ => return,
        };
        let drive = format!("{}:", self.parts[taken - 1].to_ascii_uppercase());
        self.parts.splice(..taken, [drive]);
    }

    pub(super) fn is_absolute(&self) -> bool {
        self.absolute
    }

    /// At least one.
    pub(super) fn parts(&self) -> &[String] {
        &self.parts
    }

    /// The same, for matching against patterns.
    pub(super) fn strs(&self) -> Vec<&str> {
        self.parts.iter().map(String::as_str).collect()
    }

    /// One text for all spellings that are equal under a rule of case.
    pub(super) fn key(&self, case: Case) -> String {
        case.fold(&self.parts.join("/")).into_owned()
    }

    /// The file's own name.
    pub(super) fn name(&self) -> &str {
        self.parts.last().map_or("", String::as_str)
    }
}

/// The extension of a file name without its dot, as written; `""` when it has none.
pub(super) fn extension(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}

fn is_absolute(text: &str) -> bool {
    text.starts_with('/') || matches!(text.as_bytes(), [drive, b':', b'/', ..] if drive.is_ascii_alphabetic())
}

/// A drive is no scheme.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(":/")?;
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    (scheme.len() > 1 && scheme.chars().all(valid)).then_some((scheme, rest))
}

/// The path of a URL, given what follows its first slash.
fn path_in_url(rest: &str) -> &str {
    // After two slashes comes an authority: the server, the bundle's or the project's name.
    let path = match rest.strip_prefix('/') {
        Some(authority) => authority.split_once('/').map_or("", |(_, path)| path),
        None => rest,
    };
    path.split(['?', '#']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_all_systems_get_one_form() {
        for (cleaned, want) in [
            ("/home/dev/a.rs", "/home/dev/a.rs"),
            ("a/b.rs", "a/b.rs"),
            ("../../base/x.cc", "base/x.cc"),
            ("C:/proj/a.go", "/C:/proj/a.go"),
            ("/c/proj/a.go", "/C:/proj/a.go"),
            ("/mnt/c/proj/a.go", "/C:/proj/a.go"),
            ("/c", "/c"),
            ("//wsl$/Ubuntu/home/dev/a.rs", "/home/dev/a.rs"),
            ("webpack://name/./src/x.ts?hash", "src/x.ts"),
            ("webpack:///src/x.ts", "src/x.ts"),
            ("http://localhost:5173/src/x.ts?t=1", "src/x.ts"),
            ("http://localhost:5173/@fs/home/dev/x.ts?t=1", "/home/dev/x.ts"),
        ] {
            let path = SourcePath::parse(cleaned).expect(cleaned);
            let text = format!("{}{}", if path.is_absolute() { "/" } else { "" }, path.parts().join("/"));
            assert_eq!(text, want, "{cleaned}");
        }
        for none in ["", "<string>", "[kernel]", "node:fs", "wasm://wasm/0123", ".."] {
            assert_eq!(SourcePath::parse(none), None, "{none}");
        }
    }
}
