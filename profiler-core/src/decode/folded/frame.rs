//! One frame of a folded stack: what is name, and what is position.

use crate::profile::LineNo;

/// A frame, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub(super) name: &'a str,
    /// Empty when there is none.
    pub(super) file: &'a str,
    pub(super) line: LineNo,
    /// 0 when unknown.
    pub(super) column: u32,
}

/// Reads the spellings of a position that are in use: `name (path:line)`, `path:name:line`
/// and `name at path:line`. Marks of the kind of a frame (`_[k]` for the kernel, `_[j]` for
/// compiled code and so on) and offsets (`name+0x1f`) are not part of the name.
pub(super) fn parse(text: &str) -> Frame<'_> {
    let text = without_kind(text);
    if let Some((name, place)) = text.strip_suffix(')').and_then(|text| text.rsplit_once(" ("))
        && let Some((file, line, column)) = position(place)
    {
        return Frame { name, file, line, column };
    }
    if let Some((name, place)) = text.rsplit_once(" at ")
        && let Some((file, line, column)) = position(place)
    {
        return Frame { name, file, line, column };
    }
    if let Some((rest, line)) = number(text)
        && let Some(colon) = lone_colon(rest)
    {
        let (file, name) = (&rest[..colon], &rest[colon + 1..]);
        if !file.is_empty() && !name.is_empty() {
            return Frame { name, file, line: LineNo::from_pprof(line, 0).0, column: 0 };
        }
    }
    Frame { name: without_offset(text), file: "", line: LineNo::UNKNOWN, column: 0 }
}

fn without_kind(text: &str) -> &str {
    ["_[k]", "_[j]", "_[i]", "_[0]", "_[1]"].iter().find_map(|kind| text.strip_suffix(kind)).unwrap_or(text)
}

fn without_offset(text: &str) -> &str {
    match text.rsplit_once("+0x") {
        Some((name, offset)) if !name.is_empty() && u64::from_str_radix(offset, 16).is_ok() => name,
        _ => text,
    }
}

/// Reads `path:line` or `path:line:column`.
fn position(text: &str) -> Option<(&str, LineNo, u32)> {
    let (file, last) = number(text)?;
    if let Some((file, line)) = number(file).filter(|(file, _)| !file.is_empty()) {
        let (line, column) = LineNo::from_pprof(line, last);
        return Some((file, line, column));
    }
    (!file.is_empty()).then(|| (file, LineNo::from_pprof(last, 0).0, 0))
}

/// Splits `…:number`.
fn number(text: &str) -> Option<(&str, i64)> {
    let (rest, number) = text.rsplit_once(':')?;
    Some((rest, number.parse().ok()?))
}

/// The first colon that ends a path: not one of `::`, not that of a drive, a URL or a module
/// of Node.js.
fn lone_colon(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_colon = |at: Option<usize>| at.and_then(|at| bytes.get(at)) == Some(&b':');
    let is_drive = |at: usize| at == 1 && matches!(bytes.get(2), Some(b'/' | b'\\'));
    text.match_indices(':').map(|(at, _)| at).find(|&at| {
        let is_scheme = text[at + 1..].starts_with("//") || &text[..at] == "node";
        !is_colon(at.checked_sub(1)) && !is_colon(Some(at + 1)) && !is_drive(at) && !is_scheme
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_told_from_names() {
        for (text, name, file, line, column) in [
            ("<module> (demo.py:38)", "<module>", "demo.py", 38, 0),
            ("table.<locals>.<lambda> (a b/demo.py:15)", "table.<locals>.<lambda>", "a b/demo.py", 15, 0),
            ("run (/srv/app.js:10:5)", "run", "/srv/app.js", 10, 5),
            ("/home/dev/demo.py:fib:8", "fib", "/home/dev/demo.py", 8, 0),
            (r"C:\src\demo.py:fib:8", "fib", r"C:\src\demo.py", 8, 0),
            ("src/main.rs:demo::run:12", "demo::run", "src/main.rs", 12, 0),
            ("<frozen zipimport>:zipimporter.__init__:75", "zipimporter.__init__", "<frozen zipimport>", 75, 0),
            ("demo::run at src/main.rs:12", "demo::run", "src/main.rs", 12, 0),
            ("demo::run at src/main.rs:12:9", "demo::run", "src/main.rs", 12, 9),
            ("fib (demo.py:-1)", "fib", "demo.py", 0, 0),
            ("do_syscall_64_[k]", "do_syscall_64", "", 0, 0),
            ("start_thread+0xd9", "start_thread", "", 0, 0),
            ("java.util.HashMap.get_[j]", "java.util.HashMap.get", "", 0, 0),
            // Nothing of these is a position.
            ("ns::Type::method", "ns::Type::method", "", 0, 0),
            ("ns::f:12", "ns::f:12", "", 0, 0),
            ("operator()(int) const", "operator()(int) const", "", 0, 0),
            ("f (anonymous namespace)", "f (anonymous namespace)", "", 0, 0),
            ("look at me", "look at me", "", 0, 0),
            ("-[NSView drawRect:]", "-[NSView drawRect:]", "", 0, 0),
            ("a+0xb+zz", "a+0xb+zz", "", 0, 0),
            ("+0x12", "+0x12", "", 0, 0),
        ] {
            assert_eq!(parse(text), Frame { name, file, line: LineNo(line), column }, "{text}");
        }
    }
}
