//! Names that runtimes give to the code they generate, taken apart into function and file.

use super::Frame;
use crate::profile::LineNo;

/// The frame of a name in a perf map or a jitdump.
///
/// Such a name tells at most where the function is defined. So the frame has no line: its line
/// is not the one that was executing.
pub(super) fn frame(name: &str) -> Frame {
    python(name).or_else(|| javascript(name)).unwrap_or_else(|| Frame { name: name.into(), ..Frame::default() })
}

/// `py::qualified.name:/path/file.py`
fn python(name: &str) -> Option<Frame> {
    let (function, file) = name.strip_prefix("py::")?.split_once(':')?;
    Some(Frame { name: function.into(), file: file.into(), ..Frame::default() })
}

/// `KIND:TIERname path:line:column`; TIER is one of `~ ^ + *`, and may be missing.
fn javascript(name: &str) -> Option<Frame> {
    let (kind, rest) = name.split_once(':')?;
    if !matches!(kind, "JS" | "LazyCompile" | "Function" | "Script" | "Eval") {
        return None;
    }
    let rest = rest.trim_start_matches(['~', '^', '+', '*', '\'']);
    let (function, place) = split_name(rest);
    let function = if function.is_empty() { "(anonymous)" } else { function };
    let Some((file, line)) = place.and_then(split_place) else {
        return Some(Frame { name: function.into(), ..Frame::default() });
    };
    let file = file.strip_prefix("file://").unwrap_or(file);
    Some(Frame { name: function.into(), file: file.into(), start_line: LineNo(line), ..Frame::default() })
}

/// Names may contain spaces, and so may paths; a path starts like one.
fn split_name(text: &str) -> (&str, Option<&str>) {
    let starts_path = |rest: &str| {
        rest.starts_with('/')
            || ["file:", "node:", "http:", "https:", "webpack:", "evalmachine."]
                .iter()
                .any(|scheme| rest.starts_with(scheme))
            || rest.get(1..3) == Some(":\\")
    };
    let spaces = || text.match_indices(' ').map(|(at, _)| at);
    match spaces().find(|&at| starts_path(&text[at + 1..])).or_else(|| spaces().next()) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// `path:line:column`, or `path:line`.
fn split_place(place: &str) -> Option<(&str, u32)> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|&line| line <= i32::MAX.unsigned_abs());
    let (rest, last) = place.rsplit_once(':')?;
    let last = number(last)?;
    match rest.rsplit_once(':').and_then(|(file, line)| Some((file, number(line)?))) {
        Some(found) => Some(found),
        None => Some((rest, last)),
    }
}
