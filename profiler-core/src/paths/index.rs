//! The files of the workspace, so that a path of a profile can be looked up without walking
//! the disk again.
//!
//! Guessing needs a list of files by name. It holds what the user would call their source:
//! what is ignored, hidden, vendored or installed is left out, or a library's `utils.py`
//! would compete with the user's. Such files are found all the same when a path *names* them,
//! that is, when the end of the path is exactly where the file is below a root.
//!
//! A file is identified by its real place when that is inside a root, else by where the root
//! shows it. Answers are spelled under the root as the user gave it, as editors know files by
//! that name.
//!
//! This module and nothing else of path resolution touches the disk.

use std::io::Read;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use rustc_hash::{FxHashMap, FxHashSet};

use super::ecosystem;
use super::resolution::WorkspaceFile;
use super::source_path::{Case, SourcePath};
use super::workspace::{Note, WorkspaceOptions};
use crate::cancel::CancelFlag;

/// Installed packages; not to be guessed at even where nobody bothered to ignore them.
const INSTALLED: &str = "node_modules";
/// Files by which tools mark folders of build output and virtual environments.
const FOLDER_MARKS: [&str; 2] = ["CACHEDIR.TAG", "pyvenv.cfg"];

struct Root {
    given: PathBuf,
    real: PathBuf,
    given_parts: Vec<String>,
    real_parts: Vec<String>,
    /// Names directly in the root, case folded, ignored ones too: most tails of a foreign
    /// path start with none of them, which saves asking the disk.
    top: FxHashSet<String>,
}

struct Entry {
    root: u32,
    relative: Box<str>,
}

/// A link in the workspace to something outside of it.
struct Link {
    target: PathBuf,
    root: usize,
    relative: String,
}

pub(super) struct Index {
    roots: Vec<Root>,
    /// Roots by depth, the deepest first: in nested roots a file belongs to the innermost.
    inner_first: Vec<usize>,
    case: Case,
    /// Sorted by root, then path.
    files: Vec<Entry>,
    by_name: Rows,
    /// By `folder/name`: some names, as `index.ts`, are those of thousands of files.
    by_pair: Rows,
    links: Vec<Link>,
    pub(super) complete: bool,
}

/// Rows of files under a key that is case folded.
type Rows = FxHashMap<Box<str>, Vec<u32>>;

fn add(rows: &mut Rows, key: &str, row: u32) {
    match rows.get_mut(key) {
        Some(known) => known.push(row),
        None => drop(rows.insert(key.into(), vec![row])),
    }
}

/// What the disk says about an absolute path.
pub(super) enum OnDisk {
    Inside(WorkspaceFile),
    Outside,
    Missing,
}

impl Index {
    pub(super) fn build(
        roots: &[PathBuf],
        options: &WorkspaceOptions,
        stop: &CancelFlag,
        notes: &mut Vec<Note>,
    ) -> Self {
        let roots: Vec<Root> = roots.iter().map(|root| Root::open(root, options.case, notes)).collect();
        let mut inner_first: Vec<usize> = (0..roots.len()).collect();
        inner_first.sort_by_key(|&i| (std::cmp::Reverse(roots[i].real_parts.len()), i));
        let mut index = Self {
            roots,
            inner_first,
            case: options.case,
            files: Vec::new(),
            by_name: Rows::default(),
            by_pair: Rows::default(),
            links: Vec::new(),
            complete: true,
        };
        if let Err(note) = index.walk(options, stop) {
            notes.push(note);
            index.complete = false;
        }
        index.files.sort_by(|a, b| (a.root, &a.relative).cmp(&(b.root, &b.relative)));
        for (row, entry) in (0u32..).zip(&index.files) {
            let mut names = entry.relative.rsplit('/');
            let name = names.next().unwrap_or_default();
            let folder =
                names.next().or_else(|| index.roots[entry.root as usize].given_parts.last().map(String::as_str));
            add(&mut index.by_name, &index.case.fold(name), row);
            add(&mut index.by_pair, &index.case.fold(&format!("{}/{name}", folder.unwrap_or_default())), row);
        }
        index
    }

    fn walk(&mut self, options: &WorkspaceOptions, stop: &CancelFlag) -> Result<(), Note> {
        let mut seen = 0usize;
        for (number, root) in self.roots.iter().enumerate() {
            if self.roots[..number].iter().any(|earlier| earlier.real == root.real) {
                continue;
            }
            let inner: Vec<PathBuf> = self.roots.iter().map(|other| other.real.clone()).collect();
            // As git does: ignore files count up to the top of the repository, no further.
            let in_repository = root.real.ancestors().any(|folder| folder.join(".git").exists());
            let walk = WalkBuilder::new(&root.real)
                .require_git(in_repository)
                .parents(in_repository)
                .git_global(false)
                .sort_by_file_name(Ord::cmp)
                .filter_entry(move |entry| {
                    entry.depth() == 0
                        || !entry.file_type().is_some_and(|kind| kind.is_dir())
                        || !(entry.file_name() == INSTALLED
                            || FOLDER_MARKS.iter().any(|mark| entry.path().join(mark).exists())
                            || inner.iter().any(|other| other == entry.path()))
                })
                .build();
            // A folder that can't be read holds nothing that could be shown.
            for entry in walk.flatten() {
                seen += 1;
                if seen.is_multiple_of(1024) && stop.is_cancelled() {
                    return Err(Note::Stopped { files: self.files.len() });
                }
                let Some(relative) = relative_text(entry.path(), &root.real) else { continue };
                // What links lead to inside a root is listed there.
                if entry.path_is_symlink() {
                    let target = entry.path().canonicalize().unwrap_or_default();
                    if target.is_absolute() && !self.roots.iter().any(|root| target.starts_with(&root.real)) {
                        self.links.push(Link { target, root: number, relative });
                    }
                    continue;
                }
                if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                    continue;
                }
                let parts: Vec<&str> = relative.split('/').collect();
                if ecosystem::foreign(&parts).is_some() {
                    continue;
                }
                if self.files.len() >= options.max_files {
                    return Err(Note::TooManyFiles { limit: options.max_files });
                }
                self.files.push(Entry { root: u32::try_from(number).unwrap_or(u32::MAX), relative: relative.into() });
            }
        }
        if stop.is_cancelled() { Err(Note::Stopped { files: self.files.len() }) } else { Ok(()) }
    }

    /// Rows of the files that have this name, in order.
    pub(super) fn named(&self, name: &str) -> &[u32] {
        self.by_name.get(&*self.case.fold(name)).map_or(&[], Vec::as_slice)
    }

    /// Rows of the files that a path is most like: those in a folder of the same name if there
    /// are any, else those of the same name.
    pub(super) fn like(&self, parts: &[&str]) -> &[u32] {
        let pair = match parts {
            [.., folder, name] => self.by_pair.get(&*self.case.fold(&format!("{folder}/{name}"))),
            _ => None,
        };
        pair.map_or_else(|| parts.last().map_or(&[][..], |name| self.named(name)), Vec::as_slice)
    }

    pub(super) fn file(&self, row: u32) -> WorkspaceFile {
        let entry = &self.files[row as usize];
        self.file_below(entry.root as usize, entry.relative.to_string())
    }

    /// The root of a file, and its path relative to it.
    pub(super) fn place(&self, row: u32) -> (usize, &str) {
        let entry = &self.files[row as usize];
        (entry.root as usize, &entry.relative)
    }

    /// The listed files whose names end so, in order.
    pub(super) fn ending<'i>(&'i self, end: &'i str) -> impl Iterator<Item = WorkspaceFile> + 'i {
        (0u32..).zip(&self.files).filter(move |(_, entry)| entry.relative.ends_with(end)).map(|(row, _)| self.file(row))
    }

    /// The folders that listed files are in, and the roots: sorted, at most `max`.
    pub(super) fn folders(&self, max: usize) -> Vec<PathBuf> {
        let mut folders = std::collections::BTreeSet::new();
        folders.extend((0..self.roots.len()).map(|root| (root, String::new())));
        for entry in &self.files {
            if folders.len() >= max {
                break;
            }
            let folder = entry.relative.rsplit_once('/').map_or("", |(folder, _)| folder);
            folders.insert((entry.root as usize, folder.to_owned()));
        }
        folders.into_iter().map(|(root, folder)| self.file_below(root, folder).path).collect()
    }

    pub(super) fn case(&self) -> Case {
        self.case
    }

    /// How many components at the end of a path agree with those of a file, the folders above
    /// its root included: a checkout is often named alike everywhere.
    pub(super) fn common_suffix(&self, root: usize, relative: &str, path: &SourcePath) -> usize {
        let above = self.roots[root].given_parts.iter().rev().map(String::as_str);
        let file = relative.rsplit('/').chain(above);
        path.parts().iter().rev().zip(file).take_while(|(a, b)| self.case.equal(a, b)).count()
    }

    /// Components of a file's folder on this machine.
    pub(super) fn folder_parts(&self, file: &WorkspaceFile) -> Vec<String> {
        let mut parts = self.roots[file.root].given_parts.clone();
        parts.extend(file.relative.split('/').map(str::to_owned));
        parts.pop();
        parts
    }

    /// How many components the path of a root has.
    pub(super) fn root_depth(&self, root: usize) -> usize {
        self.roots[root].given_parts.len()
    }

    /// The file at a path relative to a root, listed or not.
    pub(super) fn at(&self, root: usize, parts: &[&str]) -> Option<WorkspaceFile> {
        let relative = parts.join("/");
        let place = |entry: &Entry| (entry.root as usize, &*entry.relative).cmp(&(root, &relative));
        if let Ok(at) = self.files.binary_search_by(place) {
            return Some(self.file_below(root, self.files[at].relative.to_string()));
        }
        if self.case == Case::Blind {
            let same = |row: &&u32| {
                let (of, other) = self.place(**row);
                of == root && self.case.equal(other, &relative)
            };
            if let [row] = self.like(parts).iter().filter(same).collect::<Vec<_>>()[..] {
                return Some(self.file(*row));
            }
        }
        self.on_disk(root, parts)
    }

    fn on_disk(&self, root: usize, parts: &[&str]) -> Option<WorkspaceFile> {
        // A component such as `C:` would replace what it is joined to.
        let plain = |part: &&str| !matches!(*part, "" | "." | "..") && !part.contains([':', '\\']);
        let first = self.case.fold(parts.first()?);
        if !self.roots[root].top.contains(&*first) || !parts.iter().all(plain) {
            return None;
        }
        let real = self.roots[root].real.join(parts.iter().collect::<PathBuf>());
        if !real.is_file() {
            return None;
        }
        Some(self.identify(&real).unwrap_or_else(|| self.file_below(root, parts.join("/"))))
    }

    /// The file at a path relative to any of the roots; several when several roots have one.
    pub(super) fn at_any(&self, parts: &[&str]) -> Vec<WorkspaceFile> {
        unique((0..self.roots.len()).filter_map(|root| self.at(root, parts)))
    }

    /// Whether an absolute path leads below a root, to a file or not.
    pub(super) fn leads_below(&self, parts: &[&str]) -> bool {
        // Below `/`, everything is, so that says nothing.
        let prefixes = self.roots.iter().flat_map(|root| [&root.given_parts, &root.real_parts]);
        prefixes.filter(|prefix| !prefix.is_empty()).any(|prefix| self.strip(parts, prefix).is_some())
    }

    /// The file at an absolute path, if the path leads below a root, as given or as it really is.
    pub(super) fn below(&self, parts: &[&str]) -> Option<WorkspaceFile> {
        self.inner_first.iter().find_map(|&number| {
            let root = &self.roots[number];
            [&root.given_parts, &root.real_parts].into_iter().find_map(|prefix| {
                let tail = self.strip(parts, prefix)?;
                self.at(number, tail)
            })
        })
    }

    fn strip<'p, 's>(&self, parts: &'p [&'s str], prefix: &[String]) -> Option<&'p [&'s str]> {
        let matches = parts.len() > prefix.len() && prefix.iter().zip(parts).all(|(a, b)| self.case.equal(a, b));
        matches.then(|| &parts[prefix.len()..])
    }

    /// What is at a path of this machine, links followed.
    pub(super) fn look_up(&self, path: &Path) -> OnDisk {
        match path.canonicalize() {
            Ok(real) if real.is_file() => self.identify(&real).map_or(OnDisk::Outside, OnDisk::Inside),
            _ => OnDisk::Missing,
        }
    }

    /// The files that the longest tail of a path leads to on disk from any root, and the tail's
    /// length; at least two components. Finds what the list leaves out.
    pub(super) fn at_tail(&self, path: &SourcePath) -> (usize, Vec<WorkspaceFile>) {
        let parts = path.strs();
        (2..=parts.len())
            .rev()
            .map(|length| {
                let tail = &parts[parts.len() - length..];
                (length, unique((0..self.roots.len()).filter_map(|root| self.on_disk(root, tail))))
            })
            .find(|(_, files)| !files.is_empty())
            .unwrap_or_default()
    }

    /// The text of a file, at most `limit` bytes of it, if its real place is inside a root.
    /// The flag says whether that is all of it.
    pub(super) fn read(&self, file: &WorkspaceFile, limit: u64) -> Option<(String, bool)> {
        let real = file.path.canonicalize().ok()?;
        if !self.roots.iter().any(|root| real.starts_with(&root.real)) {
            return None;
        }
        let mut bytes = Vec::new();
        std::fs::File::open(real).ok()?.take(limit + 1).read_to_end(&mut bytes).ok()?;
        let whole = bytes.len() as u64 <= limit;
        bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Some((String::from_utf8_lossy(&bytes).into_owned(), whole))
    }

    /// The one name of a file in the workspace.
    fn identify(&self, path: &Path) -> Option<WorkspaceFile> {
        let real = path.canonicalize().ok()?;
        let inside = self.inner_first.iter().find_map(|&number| {
            let relative = relative_text(&real, &self.roots[number].real)?;
            Some(self.file_below(number, relative))
        });
        inside.or_else(|| {
            self.links.iter().find_map(|link| {
                let relative = match relative_text(&real, &link.target) {
                    Some(rest) => format!("{}/{rest}", link.relative),
                    None if real == link.target => link.relative.clone(),
                    None => return None,
                };
                Some(self.file_below(link.root, relative))
            })
        })
    }

    fn file_below(&self, root: usize, relative: String) -> WorkspaceFile {
        let path = self.roots[root].given.join(relative.split('/').collect::<PathBuf>());
        WorkspaceFile { root, relative, path }
    }
}

impl Root {
    fn open(given: &Path, case: Case, notes: &mut Vec<Note>) -> Self {
        let real = given.canonicalize().and_then(|real| Ok((std::fs::read_dir(&real)?, real)));
        let (top, real) = match real {
            Ok((entries, real)) => {
                let name = |entry: std::fs::DirEntry| case.fold(&entry.file_name().to_string_lossy()).into_owned();
                (entries.flatten().map(name).collect(), real)
            }
            Err(error) => {
                notes.push(Note::RootUnreadable { root: given.to_owned(), error: error.to_string() });
                (FxHashSet::default(), given.to_owned())
            }
        };
        let absolute = std::path::absolute(given);
        let given_parts = SourcePath::of_folder(absolute.as_deref().unwrap_or(&real));
        let real_parts = SourcePath::of_folder(&real);
        Self { given: given.to_owned(), real, given_parts, real_parts, top }
    }
}

fn unique(files: impl Iterator<Item = WorkspaceFile>) -> Vec<WorkspaceFile> {
    let mut files: Vec<_> = files.collect();
    files.sort();
    files.dedup();
    files
}

/// `None` when the path is not below the folder, or not text: profiles name files in text.
fn relative_text(path: &Path, folder: &Path) -> Option<String> {
    let relative = path.strip_prefix(folder).ok()?;
    let parts: Option<Vec<&str>> = relative.components().map(|part| part.as_os_str().to_str()).collect();
    let text = parts?.join("/");
    (!text.is_empty()).then_some(text)
}
