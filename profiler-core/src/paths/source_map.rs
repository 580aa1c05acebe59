//! From generated JavaScript to the source it was made of, by source maps.
//!
//! ```text
//! profile:  /srv/dist/app.js:29  ──▶  //# sourceMappingURL=app.js.map  ──▶  /srv/src/app.ts:8
//! ```
//!
//! A map is found by the last lines of the generated file: a file beside it, or the map itself
//! as a `data:` address; without either, `FILE.map`. Both files must be inside a root, like
//! everything that is read here. Files that a map names keep the spelling of their bundler
//! (`webpack://app/./src/a.ts?1f`); what they mean is up to [`resolve`](super::Workspace::resolve).
//!
//! A profile knows a line, and mostly no column. Where a generated line comes from one line of
//! source, or nearly so, that is it. In a minified file it comes from hundreds, and then the
//! line says nothing: the cost stays with the function, which is known by where it starts.
//!
//! A map that is missing, damaged, or of another build is said in a note, and the profile
//! stays as it is there. A wrong line is worse than none.

use std::path::{Path, PathBuf};

use rustc_hash::{FxHashMap, FxHashSet};
use sourcemap::{DecodedMap, SourceMap};

use super::index::OnDisk;
use super::resolution::WorkspaceFile;
use super::source_path::{SourcePath, extension};
use super::workspace::Workspace;
use crate::cancel::{CancelFlag, Cancelled};
use crate::profile::{
    BuildError, FileId, FileKind, FuncId, Function, Line, LineNo, Locations, Profile, ProfileBuilder,
};

/// Larger generated files and maps are not read.
const MAX_FILE: u64 = 64 << 20;
/// Most generated files looked at.
const MAX_FILES: usize = 2_000;
/// A generated line that comes from more lines of source than this says nothing.
const MAX_SOURCE_LINES: usize = 4;
/// A file with a line longer than this was not written by hand.
const LONG_LINE: usize = 1_000;
/// Most files named in a note.
const MAX_NAMED: usize = 3;
/// Folders that built files are served from.
const OUTPUT_FOLDERS: [&str; 6] = ["", "dist", "build", "out", "public", "www"];

/// One place that a generated file says something about.
#[derive(Clone, Copy)]
struct Token {
    line: u32,
    column: u32,
    source: u32,
    source_line: u32,
    /// 0 = none.
    name: u32,
}

/// A map, ready to be asked.
struct Map {
    tokens: Vec<Token>,
    sources: Vec<String>,
    /// Row 0 is no name.
    names: Vec<String>,
}

/// Why a file stays as it is.
enum Trouble {
    /// It names a map that is not there.
    Missing(String),
    /// It looks made, and has no map.
    None,
    /// The map can't be read.
    Damaged(String),
    /// The map speaks of lines that the file does not have.
    OtherBuild,
}

impl Workspace {
    /// The profile with generated JavaScript replaced by its source, as far as there are maps
    /// for it. `None` when there is nothing to replace or to say.
    pub fn map_sources(&self, profile: &Profile, cancel: &CancelFlag) -> Result<Option<Profile>, Cancelled> {
        let mut maps: FxHashMap<FileId, Map> = FxHashMap::default();
        let mut troubles: Vec<(String, Trouble)> = Vec::new();
        let used: FxHashSet<FileId> =
            profile.locations().all_lines().iter().map(|line| profile.function(line.function).file).collect();
        let candidates = (1..u32::try_from(profile.files().len()).unwrap_or(u32::MAX)).map(FileId);
        for file in candidates.filter(|&file| used.contains(&file) && is_generated(profile, file)).take(MAX_FILES) {
            cancel.check()?;
            match self.map_of(profile.path(file)) {
                Some(Ok(map)) => {
                    maps.insert(file, map);
                }
                Some(Err(trouble)) => troubles.push((profile.path(file).to_owned(), trouble)),
                None => {}
            }
        }
        if maps.is_empty() && troubles.is_empty() {
            return Ok(None);
        }
        // Too large a result is none: it can only be as large as the profile that is there.
        Ok(rewrite(profile.clone(), &maps, &troubles).ok())
    }

    /// The map of a generated file. `None` when the file is not here, or is no generated one.
    fn map_of(&self, path: &str) -> Option<Result<Map, Trouble>> {
        let file = self.generated_file(path)?;
        let (text, is_whole) = self.index.read(&file, MAX_FILE)?;
        if !is_whole {
            return None;
        }
        let map = match mapping_url(&text) {
            Some(data) if data.starts_with("data:") => match sourcemap::decode_data_url(data) {
                Ok(map) => map,
                Err(error) => return Some(Err(Trouble::Damaged(error.to_string()))),
            },
            url => {
                let beside = format!("{}.map", file.path.display());
                let place = url.map_or_else(|| PathBuf::from(&beside), |url| beside_file(&file, url));
                let found = match self.index.look_up(&place) {
                    OnDisk::Inside(map) => self.index.read(&map, MAX_FILE).filter(|(_, is_whole)| *is_whole),
                    OnDisk::Outside | OnDisk::Missing => None,
                };
                match (found, url) {
                    (Some((map, _)), _) => match sourcemap::decode_slice(map.as_bytes()) {
                        Ok(map) => map,
                        Err(error) => return Some(Err(Trouble::Damaged(error.to_string()))),
                    },
                    (None, Some(url)) => return Some(Err(Trouble::Missing(url.to_owned()))),
                    (None, None) => {
                        return text.lines().any(|line| line.len() > LONG_LINE).then_some(Err(Trouble::None));
                    }
                }
            }
        };
        let folder = file.path.parent().unwrap_or(Path::new(""));
        let map = match &map {
            DecodedMap::Regular(map) => Map::new(&[(0, 0, map)], folder),
            DecodedMap::Index(index) => {
                // Sections are put together here, since their offsets may be anything.
                let sections = index.sections().filter_map(|section| match section.get_sourcemap() {
                    Some(DecodedMap::Regular(map)) => Some((section.get_offset_line(), section.get_offset_col(), map)),
                    _ => None,
                });
                Map::new(&sections.collect::<Vec<_>>(), folder)
            }
            DecodedMap::Hermes(_) => return None,
        };
        let lines = text.lines().count();
        if map.tokens.last().is_some_and(|last| last.line as usize >= lines.max(1)) {
            return Some(Err(Trouble::OtherBuild));
        }
        Some(Ok(map))
    }

    /// The generated file a path of the profile means: at that place, or, when it was served or
    /// built elsewhere, by the end of its path.
    fn generated_file(&self, path: &str) -> Option<WorkspaceFile> {
        if let OnDisk::Inside(file) = self.index.look_up(Path::new(path)) {
            return Some(file);
        }
        let source = SourcePath::parse(path)?;
        let (_, mut files) = self.index.at_tail(&source);
        if files.len() == 1 {
            return files.pop();
        }
        let parts = source.strs();
        let is_served = path.starts_with("http://") || path.starts_with("https://");
        let mut found = OUTPUT_FOLDERS.iter().filter(|_| is_served).filter_map(|folder| {
            let inner: Vec<&str> =
                folder.split('/').filter(|part| !part.is_empty()).chain(parts.iter().copied()).collect();
            self.index.at_any(&inner).into_iter().next()
        });
        found.next()
    }
}

/// Whether a path of the profile could be of generated code.
fn is_generated(profile: &Profile, file: FileId) -> bool {
    if profile.file(file).kind != FileKind::Source {
        return false;
    }
    let path = profile.path(file);
    let path = path.split(['?', '#']).next().unwrap_or(path);
    matches!(extension(path), "js" | "mjs" | "cjs")
}

/// The address of the map in the last lines of a file.
fn mapping_url(text: &str) -> Option<&str> {
    text.lines().rev().take(5).find_map(|line| {
        let line = line.trim();
        let at = ["//# sourceMappingURL=", "//@ sourceMappingURL=", "/*# sourceMappingURL="]
            .iter()
            .find_map(|mark| Some(line.rfind(mark)? + mark.len()))?;
        let url = line[at..].trim().trim_end_matches("*/").trim_end();
        (!url.is_empty()).then_some(url)
    })
}

/// Where a map is: relative to its file, without query and escapes.
fn beside_file(file: &WorkspaceFile, url: &str) -> PathBuf {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let path = super::clean::clean(path.strip_prefix("file://").unwrap_or(path)).into_owned();
    file.path.parent().unwrap_or(Path::new("")).join(unescaped(&path))
}

/// `%20` and the like as what they stand for.
fn unescaped(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let hex = behind.get(..2).filter(|_| first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        if let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            out.push(byte);
            rest = &behind[2..];
        } else {
            out.push(first);
            rest = behind;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

impl Map {
    /// Puts maps together that begin at these lines and columns of one file.
    fn new(sections: &[(u32, u32, &SourceMap)], folder: &Path) -> Self {
        let mut whole = Self { tokens: Vec::new(), sources: Vec::new(), names: vec![String::new()] };
        for &(line, column, map) in sections {
            let sources = u32::try_from(whole.sources.len()).unwrap_or(u32::MAX);
            let names = u32::try_from(whole.names.len()).unwrap_or(u32::MAX);
            whole.sources.extend(map.sources().map(|source| spelled(source, folder)));
            whole.names.extend(map.names().map(str::to_owned));
            whole.tokens.extend(map.tokens().filter(sourcemap::Token::has_source).filter_map(|token| {
                let shift = if token.get_dst_line() == 0 { column } else { 0 };
                Some(Token {
                    line: token.get_dst_line().checked_add(line)?,
                    column: token.get_dst_col().checked_add(shift)?,
                    source: token.get_src_id().checked_add(sources)?,
                    source_line: token.get_src_line().checked_add(1)?,
                    name: if token.has_name() { token.get_name_id().checked_add(names)? } else { 0 },
                })
            }));
        }
        whole.tokens.sort_by_key(|token| (token.line, token.column));
        whole
    }

    /// The tokens of a generated line, counted from 1.
    fn line(&self, line: u32) -> &[Token] {
        let Some(line) = line.checked_sub(1) else { return &[] };
        let start = self.tokens.partition_point(|token| token.line < line);
        let end = self.tokens.partition_point(|token| token.line <= line);
        &self.tokens[start..end]
    }

    /// What a place comes from; the column counts from 1, 0 = unknown. `None` when a line comes
    /// from too many.
    fn look_up(&self, line: u32, column: u32) -> Option<Token> {
        let tokens = self.line(line);
        if let Some(column) = column.checked_sub(1) {
            let behind = tokens.partition_point(|token| token.column <= column);
            return tokens.get(behind.saturating_sub(1)).copied();
        }
        let mut lines: Vec<(u32, u32)> = Vec::new();
        for token in tokens {
            let place = (token.source, token.source_line);
            if !lines.contains(&place) {
                lines.push(place);
            }
            if lines.len() > MAX_SOURCE_LINES {
                return None;
            }
        }
        tokens.first().copied()
    }
}

/// A source as the profile should name it: addresses as they are, paths from where the map is.
fn spelled(source: &str, folder: &Path) -> String {
    match source.split_once("://") {
        Some(("file", path)) => unescaped(path),
        Some(_) => source.to_owned(),
        None if source.starts_with('/') || source.starts_with("webpack:") || source.starts_with("vite:") => {
            source.to_owned()
        }
        None => folder.join(unescaped(source)).display().to_string(),
    }
}

/// What has become of a function.
#[derive(Clone, Copy)]
struct Mapped {
    /// The function in its source.
    function: FuncId,
    file: FileId,
}

struct Rewriter<'m> {
    builder: ProfileBuilder,
    maps: &'m FxHashMap<FileId, Map>,
    functions: FxHashMap<FuncId, Option<Mapped>>,
    /// Functions whose lines say nothing.
    vague: FxHashSet<FuncId>,
}

fn rewrite(
    profile: Profile,
    maps: &FxHashMap<FileId, Map>,
    troubles: &[(String, Trouble)],
) -> Result<Profile, BuildError> {
    let old = profile.locations().clone();
    let mut rewriter = Rewriter {
        builder: ProfileBuilder::resume(profile),
        maps,
        functions: FxHashMap::default(),
        vague: FxHashSet::default(),
    };
    let mut locations = Locations::default();
    for location in old.ids() {
        let mut lines = Vec::new();
        for line in old.lines(location) {
            lines.push(rewriter.line(*line)?);
        }
        locations.push(old.mapping(location), old.address(location), lines).ok_or(BuildError::TooMany("locations"))?;
    }
    let Rewriter { mut builder, vague, .. } = rewriter;
    builder.set_locations(locations);
    if !vague.is_empty() {
        builder.note(format!(
            "{} functions are from minified files, of which the profile knows lines but no columns; they were found in \
             the source by where they start, their lines can't be",
            vague.len()
        ));
    }
    for note in notes(troubles) {
        builder.note(note);
    }
    builder.finish()
}

impl Rewriter<'_> {
    fn line(&mut self, line: Line) -> Result<Line, BuildError> {
        let row = self.builder.profile.function(line.function);
        let Some(map) = self.maps.get(&row.file) else { return Ok(line) };
        let mapped = self.function(line.function, row, map)?;
        if !line.line.is_known() {
            return Ok(mapped.map_or(line, |mapped| Line { function: mapped.function, ..line }));
        }
        let Some(token) = map.look_up(line.line.0, line.column) else {
            // A line that nothing is known about is generated; one of too many sources is vague.
            let Some(mapped) = mapped else { return Ok(line) };
            if map.line(line.line.0).is_empty() {
                return Ok(line);
            }
            self.vague.insert(mapped.function);
            return Ok(Line { function: mapped.function, line: LineNo::UNKNOWN, column: 0 });
        };
        let path = map.sources.get(token.source as usize).map_or("", String::as_str);
        let file = self.builder.file(path)?;
        let function = match mapped {
            Some(mapped) if mapped.file == file => mapped.function,
            // Code of another file inside the function, or a function that has no source.
            _ => {
                let name = self.builder.profile.text(row.name).to_owned();
                self.builder.function(&name, "", path, LineNo::UNKNOWN)?
            }
        };
        Ok(Line { function, line: LineNo(token.source_line), column: 0 })
    }

    /// The function by where it starts.
    fn function(&mut self, id: FuncId, row: Function, map: &Map) -> Result<Option<Mapped>, BuildError> {
        if let Some(&known) = self.functions.get(&id) {
            return Ok(known);
        }
        let column = self.builder.profile.start_column(id);
        let token = map.look_up(row.start_line.0, column);
        let mapped = match token {
            None => None,
            Some(token) => {
                let path = map.sources.get(token.source as usize).map_or("", String::as_str);
                let own = self.builder.profile.text(row.name).to_owned();
                let name = map.names.get(token.name as usize).filter(|name| !name.is_empty() && is_plain(&own));
                let name = name.map_or(own.as_str(), String::as_str);
                let function = self.builder.function(name, "", path, LineNo(token.source_line))?;
                Some(Mapped { function, file: self.builder.file(path)? })
            }
        };
        self.functions.insert(id, mapped);
        Ok(mapped)
    }
}

/// Whether a name is one that a minifier could have given. `Map.forEach` and `(anonymous)` are
/// not, and the token where they start names something else.
fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'))
}

/// What to tell about files that stay as they are.
fn notes(troubles: &[(String, Trouble)]) -> Vec<String> {
    let list = |files: Vec<String>| {
        let more = files.len().saturating_sub(MAX_NAMED);
        let named = files.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        if more > 0 { format!("{named} and {more} more") } else { named }
    };
    let of = |pick: &dyn Fn(&Trouble) -> Option<String>| -> Vec<String> {
        troubles.iter().filter_map(|(path, trouble)| pick(trouble).map(|words| format!("{path}{words}"))).collect()
    };
    let missing = of(&|trouble| match trouble {
        Trouble::Missing(url) => Some(format!(" ({url})")),
        _ => None,
    });
    let none = of(&|trouble| matches!(trouble, Trouble::None).then(String::new));
    let damaged = of(&|trouble| match trouble {
        Trouble::Damaged(error) => Some(format!(" ({error})")),
        _ => None,
    });
    let other = of(&|trouble| matches!(trouble, Trouble::OtherBuild).then(String::new));
    [
        (missing, "generated files name a source map that is not there, so costs stay in them; keep the map"),
        (none, "minified files have no source map, so costs stay in them; build with source maps"),
        (damaged, "source maps can't be read, so costs stay in the generated files"),
        (other, "source maps are of another build than the file, so costs stay in it; build again and profile that"),
    ]
    .into_iter()
    .filter(|(files, _)| !files.is_empty())
    .map(|(files, words)| format!("{} {words}: {}", files.len(), list(files)))
    .collect()
}
