//! What the text of a candidate says about it: are the functions of the profile where the
//! profile has them, is the file long enough, did a program write it?
//!
//! This is a check of names against text, not a parser: it has to work for every language.
//! It can confirm a guess or veto it; it never finds a file.

use super::generated::{self, HEAD_BYTES};
use super::index::Index;
use super::resolution::{FunctionEvidence, NoMatchReason, PathQuery, WorkspaceFile};
use crate::profile::LineNo;

/// Larger files are not searched. Hand-written ones are far smaller.
const MAX_BYTES: u64 = 4 << 20;
/// Lines before a declaration where its name may stand, as for a wrapped return type.
const LINES_BEFORE: u32 = 2;

/// What the functions of a path say about a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Functions {
    /// Nothing: no names to look for, a file that can't be searched, or mixed findings.
    Unknown,
    /// Most are where the profile has them. `distinctive` when one of them has a name that
    /// not every program contains.
    There { distinctive: bool },
    /// The file has some of them, but none where the profile has them.
    Moved,
    /// The file has none of them.
    Absent,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Examined {
    pub(super) functions: Functions,
    /// The profile names lines behind the end of the file.
    pub(super) too_short: bool,
    pub(super) generated: bool,
}

impl Examined {
    /// What it adds to a score, in hundredths.
    pub(super) fn adjustment(self) -> i8 {
        let functions = match self.functions {
            Functions::Unknown => 0,
            Functions::There { .. } => 5,
            Functions::Moved | Functions::Absent => -20,
        };
        functions - if self.too_short { 30 } else { 0 }
    }

    pub(super) fn confirms(self) -> bool {
        matches!(self.functions, Functions::There { .. }) && !self.too_short
    }

    /// Why a candidate is refused, if its text speaks against it.
    pub(super) fn objection(self) -> Option<NoMatchReason> {
        match self.functions {
            _ if self.too_short => Some(NoMatchReason::TooShort),
            Functions::Moved | Functions::Absent => Some(NoMatchReason::FunctionsElsewhere),
            Functions::Unknown | Functions::There { .. } => None,
        }
    }
}

/// Reads a candidate and holds it against what the profile says.
pub(super) fn examine(file: &WorkspaceFile, query: &PathQuery<'_>, index: &Index) -> Examined {
    let Some((text, whole)) = index.read(file, MAX_BYTES) else {
        let generated = generated_by_name(&file.relative);
        return Examined { functions: Functions::Unknown, too_short: false, generated };
    };
    let generated = generated_by_name(&file.relative) || generated::declared(&text).is_some();
    if !whole {
        return Examined { functions: Functions::Unknown, too_short: false, generated };
    }
    let lines: Vec<&str> = text.lines().collect();
    let too_short = usize::try_from(query.max_line).is_ok_and(|line| line > lines.len());
    Examined { functions: judge(&query.functions, &lines), too_short, generated }
}

/// Whether a program wrote the file, by its name or the note at its top.
pub(super) fn is_generated(file: &WorkspaceFile, index: &Index) -> bool {
    generated_by_name(&file.relative)
        || index.read(file, HEAD_BYTES).is_some_and(|(text, _)| generated::declared(&text).is_some())
}

fn judge(functions: &[FunctionEvidence<'_>], lines: &[&str]) -> Functions {
    let (mut there, mut moved, mut absent, mut distinctive) = (0, 0, 0, false);
    for function in functions {
        let Some(name) = simple_name(function.name) else { continue };
        let found = |lines: &[&str]| lines.iter().any(|line| has_word(line, name));
        if found(window(function, lines)) {
            there += 1;
            distinctive |= !is_common(name);
        } else if found(lines) {
            moved += 1;
        } else {
            absent += 1;
        }
    }
    if there > 0 && there >= moved + absent {
        Functions::There { distinctive }
    } else if there > 0 {
        Functions::Unknown
    } else if moved > 1 && absent == 0 && moved_together(functions, lines) {
        // Something was put before them since, as a licence is.
        Functions::Unknown
    } else if moved > 0 {
        Functions::Moved
    } else if absent > 0 {
        Functions::Absent
    } else {
        Functions::Unknown
    }
}

/// Whether all functions are the same number of lines from where the profile has them.
fn moved_together(functions: &[FunctionEvidence<'_>], lines: &[&str]) -> bool {
    let names: Vec<(&str, LineNo)> =
        functions.iter().filter_map(|function| Some((simple_name(function.name)?, function.start_line))).collect();
    crate::anchor::shift(&names, lines).is_some()
}

/// The lines where a function's name should stand: from shortly before its declaration to a
/// line in it. Without a declaration, everything down to that line.
fn window<'t>(function: &FunctionEvidence<'_>, lines: &'t [&'t str]) -> &'t [&'t str] {
    let start = function.start_line.0;
    let first = start.saturating_sub(LINES_BEFORE).max(1);
    let last = if start == 0 && function.line.0 == 0 { u32::MAX } else { function.line.0.max(start + LINES_BEFORE) };
    let index = |line: u32| usize::try_from(line).unwrap_or(usize::MAX).min(lines.len());
    lines.get(index(first - 1)..index(last)).unwrap_or_default()
}

/// Names that a file of another program is as likely to have.
fn is_common(name: &str) -> bool {
    matches!(name, "main" | "init" | "new" | "run" | "start" | "get" | "set" | "next" | "drop" | "clone" | "fmt")
}

fn has_word(line: &str, word: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(part_of_name) && !line[at + word.len()..].starts_with(part_of_name))
}

/// The name a function has in its source: the last component that a person wrote. `None` when
/// there is none, as for closures alone, or when the name is still mangled.
///
/// `main.(*Store[...]).Get.func1` → `Get`, `<a::B as c::D>::run::{{closure}}` → `run`,
/// `void ns::f<int>(int) const` → `f`.
pub(crate) fn simple_name(name: &str) -> Option<&str> {
    if name.starts_with("_ZN") || name.starts_with("_R") || name.starts_with('?') {
        return None;
    }
    // Looked at from its end: brackets are skipped as a whole, what stands between
    // separators is a component.
    let mut depth = 0u32;
    let mut end = None;
    let mut components = Vec::new();
    for (at, c) in name.char_indices().rev() {
        match c {
            ')' | ']' | '}' | '>' => {
                components.extend(end.take().map(|end| &name[at + 1..end]));
                depth += 1;
            }
            '(' | '[' | '{' | '<' => {
                components.extend(end.take().map(|end| &name[at + 1..end]));
                depth = depth.saturating_sub(1);
            }
            _ if depth > 0 => {}
            _ if c.is_alphanumeric() || c == '_' => {
                end.get_or_insert(at + c.len_utf8());
            }
            _ => components.extend(end.take().map(|end| &name[at + c.len_utf8()..end])),
        }
    }
    components.extend(end.map(|end| &name[..end]));
    components.into_iter().find(|component| !is_made_up(component))
}

/// Components that compilers and run times add.
fn is_made_up(component: &str) -> bool {
    let numbered = |prefix| {
        component.strip_prefix(prefix).is_some_and(|rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let hash = component.len() == 17
        && component.starts_with('h')
        && component[1..].bytes().all(|byte| byte.is_ascii_hexdigit());
    hash || matches!(
        component,
        "const" | "volatile" | "clone" | "cold" | "isra" | "constprop" | "part" | "llvm" | "lambda" | "glob" | "fm"
    ) || ["", "func", "gowrap", "deferwrap", "lto_priv"].into_iter().any(numbered)
}

/// How tools end the names, up to the last dot, of what they write.
const GENERATED: [&str; 8] = [".pb", ".pb.gw", "_grpc.pb", "_pb2", "_pb2_grpc", ".generated", "_generated", ".g"];

fn generated_by_name(relative: &str) -> bool {
    let name = relative.rsplit('/').next().unwrap_or(relative);
    let Some((stem, _)) = name.rsplit_once('.') else { return false };
    GENERATED.iter().any(|end| stem.ends_with(end)) || stem.starts_with("zz_generated")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_a_person_wrote() {
        for (name, want) in [
            ("main.main", "main"),
            ("main.(*Store[...]).Get.func1", "Get"),
            ("main.glob..func2", "main"),
            ("example.com/demo/internal/work.Sum-fm", "Sum"),
            ("demo::work::{{closure}}", "work"),
            ("<a::B as c::D>::run::{{closure}}::h0123456789abcdef", "run"),
            ("core::ops::function::FnOnce::call_once{{vtable.shim}}", "call_once"),
            ("void ns::f<int, std::vector<int>>(int) const", "f"),
            ("(anonymous namespace)::hash(char const*) [clone .cold]", "hash"),
            ("compute.constprop.0", "compute"),
            ("com.example.Foo$Bar.lambda$main$0", "main"),
            ("com.example.Foo.<init>", "Foo"),
            ("Outer.method.<locals>.inner", "inner"),
            ("block in Foo#bar", "bar"),
            ("ns::~Foo()", "Foo"),
        ] {
            assert_eq!(simple_name(name), Some(want), "{name}");
        }
        for none in ["<module>", "{closure#0}", "_ZN4demo4workE", "", "(anonymous)"] {
            assert_eq!(simple_name(none), None, "{none}");
        }
    }
}
