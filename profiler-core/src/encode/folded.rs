//! Folded stacks: one line per stack, root first, with its value behind the last space.
//!
//! Frames are `name (path:line)`, which [`decode`](crate::decode) and most viewers understand.
//! Equal stacks become one line. What the format can't express is lost: other value types, labels,
//! binaries; `;` and line ends in names become `,` and spaces.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::super::profile::{Line, LocId, Profile};

/// Writes the stacks of one value type, in the order of their text.
pub fn write(profile: &Profile, value_type: usize, mut to: impl Write) -> io::Result<()> {
    let samples = profile.samples();
    let mut stacks: BTreeMap<&[LocId], i128> = BTreeMap::new();
    for (row, &value) in samples.values(value_type).iter().enumerate() {
        if value != 0 {
            *stacks.entry(samples.stack(row)).or_default() += i128::from(value);
        }
    }
    // Different locations may look the same.
    let mut lines: BTreeMap<String, i128> = BTreeMap::new();
    for (stack, value) in stacks {
        let frames: Vec<String> = stack.iter().rev().flat_map(|&id| frames(profile, id)).collect();
        let text = if frames.is_empty() { "[nothing]".to_owned() } else { frames.join(";") };
        *lines.entry(text).or_default() += value;
    }
    for (text, value) in lines {
        writeln!(to, "{text} {value}")?;
    }
    to.flush()
}

/// The frames of a location, root first.
fn frames(profile: &Profile, id: LocId) -> Vec<String> {
    let lines = profile.locations().lines(id);
    if lines.is_empty() {
        return vec![unnamed(profile, id)];
    }
    lines.iter().rev().map(|line| frame(profile, *line)).collect()
}

fn frame(profile: &Profile, line: Line) -> String {
    let function = profile.function(line.function);
    let name = match profile.text(function.name) {
        "" => "[unknown]",
        name => name,
    };
    let path = profile.path(function.file);
    let text = match (path, line.line.is_known()) {
        ("", _) | (_, false) => name.to_owned(),
        (path, true) => format!("{name} ({path}:{})", line.line.0),
    };
    text.replace([';'], ",").replace(['\n', '\r', '\t'], " ")
}

/// A frame without a name: the binary, for viewers.
pub(super) fn unnamed(profile: &Profile, id: LocId) -> String {
    let mapping = profile.mapping(profile.locations().mapping(id));
    let path = profile.text(mapping.file);
    let name = path.rsplit('/').next().unwrap_or_default();
    match name {
        "" => "[unknown]".to_owned(),
        name if name.starts_with('[') => name.to_owned(),
        name => format!("[{name}]").replace(';', ","),
    }
}
