//! `drop_frames` and `keep_frames`: the producer's own wish to cut helper functions (and all
//! they call) off the stacks, such as the insides of an allocator.
//!
//! The rules are those of pprof: the expressions are anchored and see the name without a
//! leading dot and without arguments; going from the root towards the leaf, nothing is cut
//! before the first frame that does not match, so no stack becomes empty.

use regex::Regex;

use crate::demangle::demangle;
use crate::profile::{LocId, Profile};

/// What becomes of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// It stays.
    Nothing,
    /// It stays but for its `n` innermost lines, and nothing it calls is left.
    Inner(u32),
    /// It goes, with all it calls.
    Whole,
}

/// The cuts of a profile's `drop_frames`.
pub(super) struct Pruning {
    cuts: Vec<Cut>,
}

impl Pruning {
    /// `None` when the profile wants nothing dropped; a sentence when its expression can't
    /// be used.
    pub(super) fn of(profile: &Profile) -> Result<Option<Self>, String> {
        let meta = profile.meta();
        if meta.drop_frames.is_empty() {
            return Ok(None);
        }
        let drop = anchored(&meta.drop_frames, "drop_frames")?;
        let keep = match meta.keep_frames.as_str() {
            "" => None,
            expression => Some(anchored(expression, "keep_frames")?),
        };
        let is_dropped: Vec<bool> = profile
            .functions()
            .iter()
            .map(|function| {
                let full = demangle(profile.text(function.name));
                let name = bare_name(&full);
                !name.is_empty() && drop.is_match(name) && !keep.as_ref().is_some_and(|keep| keep.is_match(name))
            })
            .collect();
        let locations = profile.locations();
        let mut cuts = vec![Cut::Nothing; locations.len()];
        for id in locations.ids() {
            let lines = locations.lines(id);
            if let Some(outermost) = lines.iter().rposition(|line| is_dropped[line.function.index()]) {
                cuts[id.index()] = match u32::try_from(outermost + 1) {
                    Ok(inner) if outermost + 1 < lines.len() => Cut::Inner(inner),
                    _ => Cut::Whole,
                };
            }
        }
        Ok(Some(Self { cuts }))
    }

    /// How many of the innermost lines of a location to leave out.
    pub(super) fn lines_to_skip(&self, location: LocId) -> usize {
        match self.cuts[location.index()] {
            Cut::Inner(n) => n as usize,
            Cut::Nothing | Cut::Whole => 0,
        }
    }

    /// What is left of a stack (leaf first).
    pub(super) fn apply<'s>(&self, stack: &'s [LocId]) -> &'s [LocId] {
        let mut found_user = false;
        for (at, location) in stack.iter().enumerate().rev() {
            match self.cuts[location.index()] {
                Cut::Nothing => found_user = true,
                _ if !found_user => {}
                Cut::Inner(_) => return &stack[at..],
                Cut::Whole => return &stack[at + 1..],
            }
        }
        stack
    }
}

fn anchored(expression: &str, field: &str) -> Result<Regex, String> {
    regex::RegexBuilder::new(&format!("^(?:{expression})$")).size_limit(1 << 20).build().map_err(|_| {
        format!("{field} of the profile is no regular expression that can be used; no frames were dropped")
    })
}

/// Without a leading dot and without the argument list; a parenthesis that belongs to the
/// name (`(anonymous namespace)`, `operator()`) doesn't start one.
fn bare_name(name: &str) -> &str {
    let name = name.strip_prefix('.').unwrap_or(name);
    let mut from = 0;
    while let Some(at) = name[from..].find('(').map(|at| at + from) {
        let tail = &name[at..];
        if let Some(skip) = tail.strip_prefix("(anonymous namespace)") {
            from = name.len() - skip.len();
        } else if name[..at].ends_with("operator") && tail.starts_with("()") {
            from = at + 2;
        } else {
            return &name[..at];
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::bare_name;

    #[test]
    fn names_without_arguments() {
        for (name, want) in [
            ("malloc", "malloc"),
            (".free", "free"),
            ("operator new(unsigned long)", "operator new"),
            ("ns::(anonymous namespace)::f(int)", "ns::(anonymous namespace)::f"),
            ("F::operator()(int) const", "F::operator()"),
            ("", ""),
        ] {
            assert_eq!(bare_name(name), want);
        }
    }
}
