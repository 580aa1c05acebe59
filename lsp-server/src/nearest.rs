//! What somebody may have meant who wrote a name that does not exist.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_what_was_meant() {
        let known = ["mode", "minShare", "perFile", "hotCount", "glyphs", "lead"];
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
