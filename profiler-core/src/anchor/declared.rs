//! Without the measured text: whether functions start where the profile says, or all of them
//! the same number of lines further.

use rustc_hash::{FxHashMap, FxHashSet};

use super::diff::{Doubt, Fate, LineMap, Mapped};
use crate::attribute::{FileGroups, GroupId};
use crate::demangle::demangle;
use crate::paths::simple_name;
use crate::profile::{LineNo, Profile};

/// More functions than this say nothing new.
const MAX_FUNCTIONS: usize = 200;
/// Lines around a start where the name of a function may stand, as for a wrapped return type.
const AROUND: u32 = 3;

/// The functions of a profile, by file.
#[derive(Debug, Default)]
pub struct Functions {
    files: FxHashMap<GroupId, OfFile>,
}

#[derive(Debug, Default)]
struct OfFile {
    /// Names as a person wrote them, and where they start.
    functions: FxHashSet<(String, LineNo)>,
    /// The greatest line.
    greatest: u32,
}

impl Functions {
    /// Collects them.
    pub fn of(profile: &Profile, groups: &FileGroups) -> Self {
        let mut all = Self::default();
        let mut is_seen = vec![false; profile.functions().len()];
        for line in profile.locations().all_lines() {
            let row = profile.function(line.function);
            let file = all.files.entry(groups.of(row.file)).or_default();
            file.greatest = file.greatest.max(line.line.0);
            if std::mem::replace(&mut is_seen[line.function.index()], true)
                || !row.start_line.is_known()
                || file.functions.len() >= MAX_FUNCTIONS
            {
                continue;
            }
            let name = demangle(profile.text(if row.name.is_none() { row.system_name } else { row.name }));
            // A closure starts elsewhere than the function that it is named after.
            let is_inner =
                ["closure", "lambda", ".func", "<locals>", "{{", "async "].iter().any(|mark| name.contains(mark));
            if let Some(name) = simple_name(&name).filter(|_| !is_inner) {
                file.functions.insert((name.to_owned(), row.start_line));
            }
        }
        all
    }

    /// What the functions of a file say about a text of it.
    pub fn in_text(&self, file: GroupId, text: &str) -> Declarations {
        let Some(file) = self.files.get(&file) else { return Declarations::Unknown };
        let mut functions: Vec<(&str, LineNo)> =
            file.functions.iter().map(|(name, line)| (name.as_str(), *line)).collect();
        functions.sort_unstable();
        declarations(&functions, file.greatest, text)
    }
}

/// What the functions of a file say about its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Declarations {
    /// They are where the profile has them.
    There,
    /// They are all the same number of lines away.
    Shifted(LineMap),
    /// They say nothing, or different things.
    Unknown,
}

/// How far functions are from where the profile has them.
enum Distance {
    None,
    Same(i64),
    Different,
}

/// Compares functions with a text. `greatest` is the greatest line of the profile in the file.
fn declarations(functions: &[(&str, LineNo)], greatest: u32, text: &str) -> Declarations {
    let lines: Vec<&str> = text.lines().collect();
    let shift = match distance(functions, &lines) {
        Distance::None => return Declarations::There,
        Distance::Different => return Declarations::Unknown,
        Distance::Same(shift) => shift,
    };
    let place = |line: u32| {
        let now = u32::try_from(i64::from(line) + shift).ok().filter(|&now| now > 0 && now as usize <= lines.len());
        now.map_or_else(Mapped::default, |line| Mapped { line, fate: Fate::Uncertain(Doubt::ByFunction) })
    };
    // Functions say nothing about what was edited inside of them, so no line is more than likely.
    Declarations::Shifted(LineMap::of((1..=greatest.min(1 << 22)).map(place).collect()))
}

/// By how many lines all functions have moved, when that is the same number, and not 0.
pub(crate) fn shift(functions: &[(&str, LineNo)], lines: &[&str]) -> Option<i64> {
    match distance(functions, lines) {
        Distance::Same(shift) => Some(shift),
        Distance::None | Distance::Different => None,
    }
}

fn distance(functions: &[(&str, LineNo)], lines: &[&str]) -> Distance {
    let mut shifts: Vec<i64> = Vec::new();
    let mut missing = 0;
    for &(name, start) in functions {
        if !start.is_known() {
            continue;
        }
        let start = i64::from(start.0);
        let found: Vec<i64> =
            (1i64..).zip(lines).filter(|(_, line)| declares(line, name)).map(|(number, _)| number).collect();
        // Of several the nearest could be a wrong one; only a single one says where it went.
        match found[..] {
            [] => missing += 1,
            [one] => shifts.push(one - start),
            _ if found.iter().any(|line| (line - start).abs() <= i64::from(AROUND)) => shifts.push(0),
            _ => {}
        }
    }
    let Some(&first) = shifts.first().filter(|_| missing <= shifts.len()) else { return Distance::Different };
    let is_near = |shift: i64| (0..=i64::from(AROUND)).contains(&shift);
    if shifts.iter().any(|&shift| shift != first) {
        return if shifts.iter().all(|&shift| is_near(shift)) { Distance::None } else { Distance::Different };
    }
    // Some languages count a function from the decorators before it.
    let mut at_starts = functions.iter().filter_map(|(_, start)| lines.get((start.0 as usize).checked_sub(1)?));
    let is_decorated = at_starts.any(|line| {
        let line = line.trim_start();
        line.starts_with('@') || line.starts_with("#[") || line.starts_with("template")
    });
    if first == 0 || is_near(first) && is_decorated { Distance::None } else { Distance::Same(first) }
}

/// Whether a line could declare a function: it has the name as a word, a word before it or
/// nothing, and no call of it.
fn declares(line: &str, name: &str) -> bool {
    const WORDS: [&str; 12] =
        ["fn", "func", "def", "function", "fun", "sub", "void", "int", "static", "public", "private", "async"];
    let trimmed = line.trim_start();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let Some(at) = trimmed
        .match_indices(name)
        .map(|(at, _)| at)
        .find(|&at| !trimmed[..at].ends_with(is_word) && !trimmed[at + name.len()..].starts_with(is_word))
    else {
        return false;
    };
    let before = &trimmed[..at];
    let has_word = before.split(|c: char| !is_word(c)).any(|word| WORDS.contains(&word));
    let is_comment = ["//", "#", "*", "/*", "--"].iter().any(|mark| trimmed.starts_with(mark));
    let is_braced = trimmed.trim_end().ends_with('{') && !before.contains('=') && !before.contains('(');
    !is_comment && (has_word || is_braced)
}
