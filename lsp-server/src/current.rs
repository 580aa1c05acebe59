//! What an editor shows of a workspace, written down for other programs of the same user: assistants are
//! asked about what their user is looking at.
//!
//! ```text
//! <state>/perflens/ws/HASH-OF-ROOT/current.json     which profile, counted how, against what
//! <state>/perflens/ws/HASH-OF-ROOT/ID.pb.gz         what a server gave, with the user's consent only
//! ```
//!
//! There is no secret in it and nothing of what a profile says: names of files, the settings that count,
//! and hashes of the texts that were there when the profile was opened. Folders and files are for the user
//! alone; a file is replaced as a whole. What an editor showed last stays when it ends.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use profiler_core::attribute::Filter;
use profiler_core::encode::pprof;
use profiler_core::paths::Rule;
use profiler_core::profile::Profile;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::anchor::commit;
use crate::config::PathRule;
use crate::config::trust::{create_private, others_can_write};
use crate::loader::{Input, Part, RunPair, Wish};
use crate::mcp::consent::Consents;
use crate::state::view::View;

/// The file in a workspace's folder.
const FILE: &str = "current.json";

/// Goes up when older programs would misread the file.
const SCHEMA: u32 = 1;

/// A larger file is none of ours.
const MAX_BYTES: u64 = 4 << 20;

/// Hashes of so many texts are kept.
const MAX_TEXTS: usize = 5000;

/// What is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Current {
    schema: u32,
    /// The workspace folder, without links.
    pub workspace: PathBuf,
    /// The profile.
    pub profile: Side,
    /// Profiles that it is the sum of.
    parts: Vec<PartFile>,
    /// What it is compared with.
    pub base: Option<Side>,
    /// Pairs of runs that both are the first of.
    #[serde(default)]
    runs: Vec<RunPair>,
    normalize: bool,
    /// The value type, `cpu/nanoseconds`.
    value_type: String,
    filters: Vec<String>,
    roots: Vec<PathBuf>,
    rules: Vec<PathRule>,
    #[serde(default)]
    commit: Option<String>,
    #[serde(default)]
    commit_labels: Vec<String>,
    preferred: Option<PathBuf>,
    debug_dirs: Vec<PathBuf>,
    max_files: usize,
    max_bytes: u64,
    /// SHA-256 of the workspace's files with costs, as they were when the profile was opened.
    pub texts: BTreeMap<PathBuf, String>,
}

/// Where a profile is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Side {
    /// In a file of the user's choice.
    File(PathBuf),
    /// From a server, or from the receiver: in no file.
    Server {
        /// What was asked, for people.
        name: String,
        /// The copy beside this file, if there is one.
        copy: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PartFile {
    file: PathBuf,
    service: String,
}

impl Current {
    /// What was last shown of a workspace; `None` when nothing was, or it can't be read or trusted.
    pub fn read(shown: &Path, root: &Path) -> Option<Self> {
        let root = root.canonicalize().ok()?;
        let path = folder(shown, &root).join(FILE);
        let is_ours = fs::metadata(&path).ok()?.len() <= MAX_BYTES && !others_can_write(&path).ok()?;
        let current: Self = serde_json::from_slice(&fs::read(&path).ok().filter(|_| is_ours)?).ok()?;
        (current.schema == SCHEMA && current.workspace == root).then_some(current)
    }

    /// The wish that it was, to be fulfilled again from files. `None` for data of a server that there is no
    /// copy of.
    pub fn wish(&self, shown: &Path) -> Option<Wish> {
        let input = |side: &Side| match side {
            Side::File(path) => Some(Input::File(path.clone())),
            Side::Server { copy, .. } => {
                let name = copy.as_ref().filter(|name| !name.contains(['/', '\\']))?;
                Some(Input::File(folder(shown, &self.workspace).join(name)))
            }
        };
        let filters: Vec<Filter> = self.filters.iter().map(|filter| filter.parse().ok()).collect::<Option<_>>()?;
        let parts = self.parts.iter();
        Some(Wish {
            profile: input(&self.profile)?,
            parts: parts.map(|part| Part { profile: part.file.clone(), service: part.service.clone() }).collect(),
            services: Vec::new(),
            preferred: self.preferred.clone(),
            base: match &self.base {
                Some(base) => Some(input(base)?),
                None => None,
            },
            base_title: None,
            runs: self.runs.clone(),
            normalize: self.normalize,
            value_type: Some(self.value_type.clone()),
            filters,
            roots: self.roots.clone(),
            rules: self.rules.iter().map(Rule::from).collect(),
            commits: commit::Rule { commit: self.commit.clone(), labels: self.commit_labels.clone() },
            debug_dirs: self.debug_dirs.clone(),
            max_files: self.max_files,
            max_bytes: self.max_bytes,
        })
    }

    /// Whether any of it is a file of this machine.
    pub fn is_local(&self) -> bool {
        [Some(&self.profile), self.base.as_ref()].into_iter().flatten().any(|side| matches!(side, Side::File(_)))
    }

    /// Whether any of it came from a server.
    pub fn is_of_server(&self) -> bool {
        [Some(&self.profile), self.base.as_ref()].into_iter().flatten().any(|side| matches!(side, Side::Server { .. }))
    }
}

impl Side {
    /// What people call it.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
            Self::Server { name, .. } => name.clone(),
        }
    }
}

/// The folder of a workspace, given without links.
fn folder(shown: &Path, root: &Path) -> PathBuf {
    shown.join(&digest(root.as_os_str().as_encoded_bytes())[..32])
}

/// SHA-256 in hex.
pub(crate) fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Removes what there is of servers' data for a workspace: nobody consents to it any more.
pub fn forget_server_data(shown: &Path, root: &Path) {
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let _ = keep_only(&folder(shown, &root), &[]);
}

/// Removes copies of profiles, except these.
fn keep_only(folder: &Path, kept: &[&str]) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_copy = name.to_string_lossy().ends_with(".pb.gz");
        if is_copy && !kept.iter().any(|kept| name == *kept) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Writes down what a session shows, on a thread of its own.
#[derive(Debug)]
pub struct Publisher {
    /// What was last published of each workspace.
    known: Mutex<HashMap<PathBuf, Weak<View>>>,
    /// Where it goes to, and who writes it.
    news: Option<(PathBuf, Sender<News>)>,
}

type News = (PathBuf, Option<Arc<View>>);

impl Publisher {
    /// Into this folder; `None` writes nothing.
    pub fn new(shown: Option<PathBuf>, consents: Consents) -> Self {
        let news = shown.map(|shown| {
            let (sender, news) = channel();
            let folder = shown.clone();
            std::thread::spawn(move || write_all(&news, &shown, &consents));
            (folder, sender)
        });
        Self { known: Mutex::default(), news }
    }

    /// Tells what is shown of a workspace now. Costs nothing when that is what it was.
    pub fn publish(&self, root: &Path, view: Option<&Arc<View>>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = match (known.get(root), view) {
            (Some(known), Some(view)) => Weak::ptr_eq(known, &Arc::downgrade(view)),
            (Some(_), None) => false,
            // A session that has shown nothing leaves what the one before showed last.
            (None, view) => view.is_none(),
        };
        if is_known {
            return;
        }
        match view {
            Some(view) => known.insert(root.to_owned(), Arc::downgrade(view)),
            None => known.remove(root),
        };
        if let Some((folder, news)) = &self.news {
            // What is in the way is told when the file is written.
            let _ = create_private(folder);
            // The thread only ends with the session.
            let _ = news.send((root.to_owned(), view.cloned()));
        }
    }

    /// What assistants may have is another matter now: the next time everything is told again.
    pub fn forget(&self) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for view in known.values_mut() {
            *view = Weak::new();
        }
    }
}

fn write_all(news: &Receiver<News>, shown: &Path, consents: &Consents) {
    while let Ok(first) = news.recv() {
        // Only the last of each workspace counts.
        let latest: HashMap<PathBuf, Option<Arc<View>>> = std::iter::once(first).chain(news.try_iter()).collect();
        for (root, view) in latest {
            if let Err(error) = write(shown, &root, view.as_deref(), consents) {
                tracing::warn!("what is shown of {} is not told to assistants: {error}", root.display());
            }
        }
    }
}

fn write(shown: &Path, root: &Path, view: Option<&View>, consents: &Consents) -> io::Result<()> {
    let root = root.canonicalize()?;
    let folder = folder(shown, &root);
    let Some((view, wish)) = view.and_then(|view| Some((view, view.wish.as_ref()?))) else {
        keep_only(&folder, &[]).and_then(|()| fs::remove_file(folder.join(FILE))).or_else(|error| {
            match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            }
        })?;
        return Ok(());
    };
    create_private(&folder)?;
    let may_copy = consents.has(&root);
    let side = |input: &Input, name: &str, profile: &Profile| -> io::Result<Side> {
        Ok(match input {
            Input::File(path) => Side::File(path.clone()),
            Input::Remote(_) | Input::Received => {
                let copy = if may_copy { Some(copy(&folder, profile)?) } else { None };
                Side::Server { name: name.to_owned(), copy }
            }
        })
    };
    let profile = side(&wish.profile, &view.origin, &view.analysis.profile)?;
    let base = match (&wish.base, &view.comparison, &view.base_origin) {
        (Some(input), Some(comparison), Some(name)) => Some(side(input, name, &comparison.compared.base.profile)?),
        _ => None,
    };
    let copies: Vec<&str> = [Some(&profile), base.as_ref()]
        .into_iter()
        .filter_map(|side| match side? {
            Side::Server { copy, .. } => copy.as_deref(),
            Side::File(_) => None,
        })
        .collect();
    keep_only(&folder, &copies)?;
    let rules = wish.rules.iter().map(|rule| PathRule { from: rule.from.clone(), to: rule.to.clone() });
    let parts = wish.parts.iter();
    let current = Current {
        schema: SCHEMA,
        workspace: root,
        parts: parts.map(|part| PartFile { file: part.profile.clone(), service: part.service.clone() }).collect(),
        runs: wish.runs.clone(),
        normalize: wish.normalize,
        value_type: view.analysis.selected().to_string(),
        filters: wish.filters.iter().map(ToString::to_string).collect(),
        roots: wish.roots.clone(),
        rules: rules.collect(),
        commit: wish.commits.commit.clone(),
        commit_labels: wish.commits.labels.clone(),
        preferred: wish.preferred.clone(),
        debug_dirs: wish.debug_dirs.clone(),
        max_files: wish.max_files,
        max_bytes: wish.max_bytes,
        texts: texts(view),
        profile,
        base,
    };
    let mut file = tempfile::NamedTempFile::new_in(&folder)?;
    serde_json::to_writer_pretty(&mut file, &current)?;
    file.persist(folder.join(FILE))?;
    Ok(())
}

fn texts(view: &View) -> BTreeMap<PathBuf, String> {
    let all: BTreeMap<_, _> = view.texts.iter().collect();
    let some = all.into_iter().take(MAX_TEXTS);
    some.map(|(path, text)| (path.clone(), digest(text.content().as_bytes()))).collect()
}

/// Keeps a profile beside the file; its name.
fn copy(folder: &Path, profile: &Profile) -> io::Result<String> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    let hash = {
        let mut out = Hashing { out: BufWriter::new(file.as_file_mut()), hash: Sha256::new() };
        pprof::write(profile, &mut out)?;
        out.flush()?;
        out.hash.finalize()
    };
    let name = format!("{}.pb.gz", &hex(&hash)[..32]);
    file.persist(folder.join(&name))?;
    Ok(name)
}

/// Hashes what passes.
struct Hashing<W> {
    out: W,
    hash: Sha256,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
