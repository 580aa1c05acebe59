//! For those who wrote a name that does not exist: which there are, and which was meant.

use std::fmt::Display;

/// The candidate that the name is most likely a slip of; `None` when none is near.
///
/// Case and the signs between words don't count: `min_share` is `minShare`. Otherwise a third
/// of the letters may differ, at least one.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let name = plain(name);
    let allowed = (name.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&name, &plain(candidate)), candidate))
        .filter(|&(distance, _)| distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// The names as part of a sentence: "`a`, `b` or `c`".
pub(crate) fn one_of(names: &[impl Display]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_what_was_meant() {
        let known = ["mode", "minShare", "perFile", "glyphs", "lead"];
        for (name, want) in [
            ("min_share", Some("minShare")),
            ("MINSHARE", Some("minShare")),
            ("minShares", Some("minShare")),
            ("glpyhs", Some("glyphs")),
            ("led", Some("lead")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known), want, "{name}");
        }
    }
}
