//! A profile without what its reader needs not know: folders of people, names of the machine and
//! its user, labels.
//!
//! Paths of the home folder (this user's or anybody's, as in `/home/NAME`) start with `~` in the
//! result; names of user and host are cut out where they stand as words; only labels on the allow
//! list stay; comments and addresses go. What is left is listed ([`Remains`]), since nobody can tell
//! by rule whether the name of a function is a secret.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::profile::{
    BuildError, FuncId, Function, Label, LabelValue, Line, LocId, MapId, Mapping, Profile, ProfileBuilder,
};

/// What to leave out, and what not.
#[derive(Clone, Debug, Default)]
pub struct Private {
    /// The user's home folder; empty when there is none.
    pub home: String,
    /// The user's name.
    pub user: String,
    /// The machine's name.
    pub host: String,
    /// Labels that stay besides [`LABELS`].
    pub labels: Vec<String>,
}

/// Labels that always stay.
pub const LABELS: &[&str] = &["thread", "thread_name", "service", "service_name", "version"];

/// What a shared profile still says, most frequent first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remains {
    /// Labels, with the number of different values.
    pub labels: Vec<(String, usize)>,
    /// First folders of paths of source files, with the number of files.
    pub folders: Vec<(String, usize)>,
    /// Names of binaries.
    pub binaries: Vec<String>,
    /// Number of different functions.
    pub functions: usize,
    /// Labels that were left out.
    pub left_out: Vec<String>,
}

/// The same profile without what is private.
pub fn share(profile: &Profile, private: &Private) -> Result<(Profile, Remains), BuildError> {
    let mut shared = Sharing {
        private,
        builder: ProfileBuilder::new("pprof", profile.value_types().to_vec()),
        texts: FxHashMap::default(),
        remains: Remains::default(),
    };
    let meta = shared.builder.meta();
    meta.clone_from(profile.meta());
    meta.comments.clear();

    let mut functions = vec![FuncId::NONE; profile.functions().len()];
    for (row, function) in profile.functions().iter().enumerate().skip(1) {
        functions[row] = shared.function(profile, *function)?;
    }
    let mut mappings = vec![MapId::NONE; profile.mappings().len()];
    for (row, mapping) in profile.mappings().iter().enumerate().skip(1) {
        mappings[row] = shared.mapping(profile, *mapping)?;
    }
    let source = profile.locations();
    let mut locations = vec![LocId::NONE; source.len()];
    for id in source.ids() {
        let lines: Vec<Line> =
            source.lines(id).iter().map(|line| Line { function: functions[line.function.index()], ..*line }).collect();
        // Without its address a location is its lines.
        locations[id.index()] = shared.builder.location(mappings[source.mapping(id).index()], 0, &lines)?;
    }
    shared.samples(profile, &locations)?;
    let Sharing { mut remains, builder, .. } = shared;
    let result = builder.finish()?;
    remains.functions = result.functions().len() - 1;
    remains.folders = folders(&result);
    remains.binaries.sort();
    remains.binaries.dedup();
    Ok((result, remains))
}

struct Sharing<'a> {
    private: &'a Private,
    builder: ProfileBuilder,
    texts: FxHashMap<String, String>,
    remains: Remains,
}

impl Sharing<'_> {
    fn clean(&mut self, text: &str) -> String {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let cleaned = self.private.clean(text);
        self.texts.insert(text.to_owned(), cleaned.clone());
        cleaned
    }

    fn function(&mut self, profile: &Profile, function: Function) -> Result<FuncId, BuildError> {
        let name = self.clean(profile.text(function.name));
        let system_name = self.clean(profile.text(function.system_name));
        let path = self.clean(profile.path(function.file));
        self.builder.function(&name, &system_name, &path, function.start_line)
    }

    fn mapping(&mut self, profile: &Profile, mapping: Mapping) -> Result<MapId, BuildError> {
        let path = self.clean(profile.text(mapping.file));
        let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
        if !name.is_empty() {
            self.remains.binaries.push(name.to_owned());
        }
        let file = self.builder.string(&path)?;
        let build_id = self.builder.string(profile.text(mapping.build_id))?;
        // Where it was in memory tells how the machine's memory was laid out.
        self.builder.push_mapping(Mapping { file, build_id, ..Mapping::default() })
    }

    fn samples(&mut self, profile: &Profile, locations: &[LocId]) -> Result<(), BuildError> {
        let samples = profile.samples();
        let types = profile.value_types().len();
        let mut kept: BTreeMap<String, std::collections::BTreeSet<String>> = BTreeMap::new();
        let mut left_out = std::collections::BTreeSet::new();
        for row in 0..samples.len() {
            let stack: Vec<LocId> = samples.stack(row).iter().map(|id| locations[id.index()]).collect();
            let values: Vec<i64> = (0..types).map(|column| samples.values(column)[row]).collect();
            let mut labels = Vec::new();
            for label in samples.labels(row) {
                let key = profile.text(label.key);
                if !self.private.keeps(key) {
                    left_out.insert(key.to_owned());
                    continue;
                }
                let (value, text) = match label.value {
                    LabelValue::Text(id) => {
                        let text = self.clean(profile.text(id));
                        (LabelValue::Text(self.builder.string(&text)?), text)
                    }
                    LabelValue::Number(number, unit) => {
                        (LabelValue::Number(number, self.builder.string(profile.text(unit))?), number.to_string())
                    }
                };
                kept.entry(key.to_owned()).or_default().insert(text);
                labels.push(Label { key: self.builder.string(key)?, value });
            }
            self.builder.push_sample(&stack, &values, &labels)?;
        }
        self.remains.labels = kept.into_iter().map(|(key, values)| (key, values.len())).collect();
        self.remains.left_out = left_out.into_iter().collect();
        Ok(())
    }
}

impl Private {
    fn keeps(&self, label: &str) -> bool {
        LABELS.contains(&label) || self.labels.iter().any(|kept| kept == label)
    }

    /// A text without what is private.
    pub fn clean(&self, text: &str) -> String {
        let mut text = text.to_owned();
        let home = self.home.trim_end_matches('/');
        // A home of `/` or `/root/..` would turn every path into `~`.
        if home.len() > 1 {
            text = replace_words(&text, home, "~");
        }
        for folder in ["/home/", "/Users/", "\\Users\\"] {
            text = without_homes(&text, folder);
        }
        for (name, instead) in [(&self.user, "user"), (&self.host, "host")] {
            // Short names are words of everybody's code, `root` is everybody's name.
            if name.len() > 2 && name != "root" && name != "localhost" {
                text = replace_words(&text, name, instead);
            }
        }
        text
    }
}

/// `/home/NAME/x` becomes `~/x`.
fn without_homes(text: &str, folder: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(folder) {
        let (before, after) = (&rest[..at], &rest[at + folder.len()..]);
        let end = after.find(['/', '\\']).unwrap_or(after.len());
        let before = if folder == "/home/" { before } else { without_drive(before) };
        let is_start = !before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '~'));
        result.push_str(before);
        if is_start && end > 0 {
            result.push('~');
            rest = &after[end..];
        } else {
            result.push_str(folder);
            rest = after;
        }
    }
    result + rest
}

/// A text without the drive that it ends with.
fn without_drive(text: &str) -> &str {
    let Some(rest) = text.strip_suffix(':') else { return text };
    match rest.char_indices().next_back() {
        Some((at, letter))
            if letter.is_ascii_alphabetic()
                && !rest[..at].ends_with(char::is_alphanumeric)
                && !rest[..at].ends_with('.') =>
        {
            &rest[..at]
        }
        _ => text,
    }
}

/// Replaces a text where it is not part of a longer word.
fn replace_words(text: &str, word: &str, instead: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        result.push_str(before);
        let starts = !before.ends_with(is_word) || word.starts_with('/');
        result.push_str(if starts && !after.starts_with(is_word) { instead } else { word });
        rest = after;
    }
    result + rest
}

/// The first two components of paths, with the number of files below.
fn folders(profile: &Profile) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for file in profile.files().iter().skip(1) {
        let path = profile.text(file.path);
        let Some((folder, _)) = path.rsplit_once('/') else { continue };
        let components: Vec<&str> = folder.split('/').collect();
        let length = if folder.starts_with('/') { 3 } else { 2 };
        *counts.entry(components[..components.len().min(length)].join("/")).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_private_goes_and_words_that_look_alike_stay() {
        let private =
            Private { home: "/srv/people/ada".into(), user: "ada".into(), host: "engine".into(), labels: Vec::new() };
        for (text, clean) in [
            ("/srv/people/ada/src/main.rs", "~/src/main.rs"),
            ("/srv/people/adamant/src/main.rs", "/srv/people/adamant/src/main.rs"),
            ("/home/eve/x.c", "~/x.c"),
            ("/data/home/eve/x.c", "/data/home/eve/x.c"),
            ("/Users/eve/x.c:/Users/bob/y.c", "~/x.c:~/y.c"),
            ("C:/Users/eve/x.c", "~/x.c"),
            (r"d:\Users\eve\x.c", r"~\x.c"),
            ("/home/", "/home/"),
            ("/var/tmp/ada-build/x.c", "/var/tmp/user-build/x.c"),
            ("load_metadata", "load_metadata"),
            ("engine.example", "host.example"),
            ("search_engine::run", "search_engine::run"),
        ] {
            assert_eq!(private.clean(text), clean, "{text}");
        }
    }

    #[test]
    fn names_that_are_everybodys_stay() {
        let private = Private { home: "/".into(), user: "root".into(), host: "localhost".into(), labels: Vec::new() };
        for text in ["/root/x.c", "tree::root", "/usr/lib/x.c"] {
            assert_eq!(private.clean(text), text);
        }
    }
}
