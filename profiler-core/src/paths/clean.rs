//! Lexical cleaning: two spellings of one path become one, without looking at the disk.

use std::borrow::Cow;

/// The lexically cleaned form of a path as a profile spells it.
///
/// * `\` becomes `/`, a drive letter upper case, `/C:/…` loses its first slash;
/// * an absolute path in the middle wins over what stands before it, as some tools join
///   the folder of compilation to names that are absolute already;
/// * `file://` URLs become paths; other URLs and pseudo files are left alone;
/// * empty and `.` components go, `..` takes the component before it.
///
/// ```
/// use profiler_core::paths::clean::clean;
/// assert_eq!(clean("./a//b/../c.rs"), "a/c.rs");
/// assert_eq!(clean("../../base/x.cc"), "../../base/x.cc");
/// assert_eq!(clean(r"c:\src\bin\main.rs"), "C:/src/bin/main.rs");
/// assert_eq!(clean("/c/git/build/C:/git/src/main.cpp"), "C:/git/src/main.cpp");
/// assert_eq!(clean("file:///home/dev/a%20b.js"), "/home/dev/a b.js");
/// ```
pub fn clean(path: &str) -> Cow<'_, str> {
    if path.is_empty() || is_pseudo(path) {
        return Cow::Borrowed(path);
    }
    let mut text = Cow::Borrowed(path);
    if let Some(rest) = path.strip_prefix("file://") {
        let local = rest.strip_prefix("localhost").unwrap_or(rest);
        text = Cow::Owned(percent_decode(local));
    } else if has_scheme(path) {
        return text;
    }
    if text.contains('\\') {
        text = Cow::Owned(text.replace('\\', "/"));
    }
    // `\\?\C:\x` and `\\?\UNC\server\share`.
    if let Some(rest) = text.strip_prefix("//?/").or_else(|| text.strip_prefix("//./")) {
        let rest = rest.strip_prefix("UNC/").map_or_else(|| rest.to_owned(), |share| format!("//{share}"));
        text = Cow::Owned(rest);
    }
    if let Some(at) = drive_start(&text) {
        let mut tail = text[at..].to_owned();
        if let Some(first) = tail.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        text = Cow::Owned(tail);
    }
    if is_clean(&text) {
        return text;
    }
    Cow::Owned(clean_components(&text))
}

/// Whether a path names no file: empty, `<string>`, `[kernel.kallsyms]`, `~`, `?`, `??`,
/// `node:fs`, `Unknown`.
pub fn is_pseudo(path: &str) -> bool {
    let bracketed = |open, close| path.starts_with(open) && path.ends_with(close);
    path.is_empty()
        || bracketed('<', '>')
        || bracketed('[', ']')
        || matches!(path, "~" | "?" | "??" | "Unknown")
        || path.starts_with("node:")
}

/// `scheme://…` or `webpack:/…`, but not a drive letter.
fn has_scheme(path: &str) -> bool {
    path.split_once(":/").is_some_and(|(scheme, _)| {
        scheme.len() > 1
            && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    })
}

/// Where the last `X:/` of the text starts, if it stands at the start of a component.
fn drive_start(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    (0..bytes.len().saturating_sub(2)).rev().find(|&i| {
        bytes[i].is_ascii_alphabetic()
            && bytes[i + 1] == b':'
            && bytes[i + 2] == b'/'
            && (i == 0 || bytes[i - 1] == b'/')
    })
}

fn is_clean(text: &str) -> bool {
    let body = text.strip_prefix('/').unwrap_or(text);
    body.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

fn clean_components(text: &str) -> String {
    let (root, body) = if let Some(share) = text.strip_prefix("//") {
        ("//", share)
    } else if let Some(rest) = text.strip_prefix('/') {
        ("/", rest)
    } else if text.as_bytes().get(1) == Some(&b':') && text.as_bytes().get(2) == Some(&b'/') {
        text.split_at(3)
    } else {
        ("", text)
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in body.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.last().is_some_and(|last| *last != "..") {
                    parts.pop();
                } else if root.is_empty() {
                    parts.push("..");
                }
            }
            _ => parts.push(part),
        }
    }
    format!("{root}{}", parts.join("/"))
}

fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let escaped = (bytes[i] == b'%')
            .then(|| text.get(i + 1..i + 3))
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        if let Some(byte) = escaped {
            out.push(byte);
            i += 3;
        } else {
            out.push(bytes[i]);
            i += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_path_become_one() {
        for (given, want) in [
            ("a.rs", "a.rs"),
            ("./a.rs", "a.rs"),
            ("/a/./b//c/../d.rs", "/a/b/d.rs"),
            ("/../a.rs", "/a.rs"),
            ("../a/../../b.c", "../../b.c"),
            ("./csu/../sysdeps/x86/start.S", "sysdeps/x86/start.S"),
            (r"src\bin\main.rs", "src/bin/main.rs"),
            (r"C:\Users\x\.cargo\registry/src\a\lib.rs", "C:/Users/x/.cargo/registry/src/a/lib.rs"),
            (r"/C:\Folder\File.cpp", "C:/Folder/File.cpp"),
            (r"\\?\C:\ws\a.cpp", "C:/ws/a.cpp"),
            (r"\\server\share\..\a.cpp", "//server/a.cpp"),
            ("file:///c%3A/proj/go/a.go", "C:/proj/go/a.go"),
            ("file://localhost/a.js", "/a.js"),
            ("file:///tmp/100%/a.js", "/tmp/100%/a.js"),
            ("webpack://name/./src/x.ts?hash", "webpack://name/./src/x.ts?hash"),
            ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>"),
            ("node:internal/fs", "node:internal/fs"),
            ("", ""),
            ("é/%/../ü.rs", "é/ü.rs"),
        ] {
            assert_eq!(clean(given), want, "{given}");
        }
    }

    #[test]
    fn cleaning_twice_changes_nothing() {
        for path in ["//a/b", "a/..", "/..", "C:/../x", r"\\?\UNC\s\x", "./.", "/c/C:/d:/e"] {
            let once = clean(path).into_owned();
            assert_eq!(clean(&once), once, "{path}");
        }
    }
}
