//! From the arguments of a command to a profile and its costs.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use profiler_core::attribute::analysis::{Analysis, ComparedTo};
use profiler_core::attribute::{FileGroups, Filter, MAX_FILTERS};
use profiler_core::cancel::CancelFlag;
use profiler_core::decode::{Limits, decode};
use profiler_core::paths::{Workspace, WorkspaceOptions};
use profiler_core::profile::{Profile, ValueTypeError};

use super::{Baseline, Failure, Selection, remote};
use crate::anchor::{self, Evidence, commit};
use crate::symbols::{Places, named};

/// A decoded profile and its name.
pub(super) struct Loaded {
    /// The file name, without its folders; `-` for standard input.
    pub(super) origin: String,
    pub(super) profile: Arc<Profile>,
    /// When it was there for certain, for files.
    pub(super) taken_here: Option<SystemTime>,
    /// What of it is counted on the page that it was given by.
    pub(super) filters: Vec<Filter>,
    /// Its file, where it is one of this machine.
    pub(super) file: Option<PathBuf>,
}

impl Loaded {
    /// The profile, with lines where this machine knows them.
    fn symbolised(&self, selection: &Selection) -> Result<Arc<Profile>, Failure> {
        let debug_dirs = super::server::debug_dirs(&selection.debug_dirs);
        let places = Places { debug_dirs, roots: selection.workspace.clone() };
        places
            .symbolised(Arc::clone(&self.profile), self.taken_here, &CancelFlag::new())
            .map_err(|error| Failure::Input(format!("{}: {error}", self.origin)))
    }
}

/// Reads a profile from a path, or from standard input for `-`.
pub(super) fn load(path: &Path) -> Result<Loaded, Failure> {
    let name = path.display();
    if path.as_os_str() == "-" {
        let profile = Arc::new(read(io::stdin(), "standard input")?);
        return Ok(Loaded { origin: "-".to_owned(), profile, taken_here: None, filters: Vec::new(), file: None });
    }
    let fail = |error: io::Error| {
        let what = match error.kind() {
            io::ErrorKind::NotFound => "no such file".to_owned(),
            io::ErrorKind::PermissionDenied => "no permission to read it".to_owned(),
            _ => error.to_string(),
        };
        Failure::Input(format!("{name}: {what}"))
    };
    if let Some(text) = path.to_str().filter(|text| text.contains("://")) {
        return remote::load(text);
    }
    let file = File::open(path).map_err(fail)?;
    let metadata = file.metadata().map_err(fail)?;
    if metadata.is_dir() {
        return Err(Failure::Input(format!("{name}: it is a directory; give a profile file")));
    }
    let profile = read(file, &name.to_string())?;
    let profile =
        named(profile, path, &CancelFlag::new()).map_err(|error| Failure::Input(format!("{name}: {error}")))?;
    let profile = Arc::new(profile);
    let origin = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Ok(Loaded {
        origin,
        profile,
        taken_here: metadata.modified().ok(),
        filters: Vec::new(),
        file: Some(path.to_owned()),
    })
}

fn read(mut reader: impl Read + Send, name: &str) -> Result<Profile, Failure> {
    let fail = |error: &dyn std::fmt::Display| Failure::Input(format!("{name}: {error}"));
    let mut head = Vec::new();
    reader.by_ref().take(HEAD).read_to_end(&mut head).map_err(|error| fail(&error))?;
    let is_stream = is_stream(&head);
    let whole = io::Cursor::new(head).chain(reader);
    if is_stream {
        return stream_profile(whole).map_err(|error| fail(&error));
    }
    decode(whole, &Limits::default(), &CancelFlag::new()).map_err(|error| fail(&error))
}

/// As many bytes as tell a recorder's stream from profiles.
const HEAD: u64 = 8;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use crate::record::stream::{is_stream, profile as stream_profile};

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn is_stream(_: &[u8]) -> bool {
    false
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn stream_profile(_: impl Read) -> Result<Profile, String> {
    Err("recordings are read on Linux".to_owned())
}

/// How long listing the files of a workspace may take. What is known by then counts.
const LISTING_DEADLINE: Duration = Duration::from_secs(20);

/// Opens the workspace of `--workspace`; `None` without one.
pub(super) fn open_workspace(roots: &[PathBuf]) -> Result<Option<Workspace>, Failure> {
    if roots.is_empty() {
        return Ok(None);
    }
    for root in roots {
        if !root.is_dir() {
            return Err(Failure::Input(format!("{}: there is no such folder", root.display())));
        }
    }
    let stop = CancelFlag::new();
    let timer = stop.clone();
    // Nobody waits for the thread; it ends with the program.
    std::thread::spawn(move || {
        std::thread::sleep(LISTING_DEADLINE);
        timer.cancel();
    });
    Ok(Some(Workspace::open(roots, &WorkspaceOptions::default(), &stop)))
}

/// Most notes about a workspace: all of its manifests may be broken.
const MAX_NOTES: usize = 5;

/// What of the workspace could not be read, so that files may be missing.
fn notes(workspace: &Workspace) -> Vec<String> {
    let all = workspace.notes();
    let more = all.len().saturating_sub(MAX_NOTES);
    let more = (more > 0).then(|| format!("and {more} more like it"));
    all.iter().take(MAX_NOTES).map(ToString::to_string).chain(more).collect()
}

/// The profile with generated code replaced by its source, where the workspace has maps for it.
fn in_source(profile: &Arc<Profile>, workspace: Option<&Workspace>) -> Arc<Profile> {
    let mapped = workspace.and_then(|workspace| workspace.map_sources(profile, &CancelFlag::new()).ok().flatten());
    mapped.map_or_else(|| Arc::clone(profile), Arc::new)
}

pub(super) fn groups(profile: &Profile, workspace: Option<&Workspace>) -> FileGroups {
    let never = CancelFlag::new();
    workspace
        .and_then(|workspace| FileGroups::in_workspace(profile, workspace, &never).ok())
        .unwrap_or_else(|| FileGroups::by_path(profile))
}

/// The files of a profile, with where their lines are in the workspace's files of today, and what
/// there is to tell about that.
fn anchored(
    profile: &Profile,
    file: Option<&Path>,
    workspace: Option<&Workspace>,
    roots: &[PathBuf],
) -> (FileGroups, Vec<String>) {
    let mut groups = groups(profile, workspace);
    let Some(workspace) = workspace else { return (groups, Vec::new()) };
    let evidence = Evidence { file, opened: None, roots, rule: &commit::Rule::default() };
    let anchored = anchor::anchor(profile, &mut groups, workspace, &evidence, &CancelFlag::new());
    (groups, anchored.map(|anchored| anchored.notes).unwrap_or_default())
}

/// The profiles of a command: the one asked about and the base, if any.
pub(super) struct Input {
    pub(super) new: Loaded,
    pub(super) base: Option<Loaded>,
}

impl Input {
    pub(super) fn load(path: &Path, baseline: &Baseline) -> Result<Self, Failure> {
        Ok(Self { new: load(path)?, base: baseline.base.as_deref().map(load).transpose()? })
    }

    /// Counts what was asked for.
    pub(super) fn analyze(
        &self,
        selection: &Selection,
        baseline: &Baseline,
    ) -> Result<(Analysis, Option<ComparedTo>), Failure> {
        if selection.filters.len() > MAX_FILTERS {
            return Err(Failure::Usage(format!("there may be no more than {MAX_FILTERS} filters")));
        }
        let never = CancelFlag::new();
        let workspace = open_workspace(&selection.workspace)?;
        let workspace = workspace.as_ref();
        let profile = &in_source(&self.new.symbolised(selection)?, workspace);
        let value_type = match &selection.value_type {
            Some(name) => profile
                .find_value_type(name)
                .map_err(|error: ValueTypeError| Failure::Usage(format!("{}: {error}", self.new.origin)))?,
            None => profile.meta().default_value_type,
        };
        let filters: Vec<Filter> = self.new.filters.iter().chain(&selection.filters).cloned().collect();
        let cancelled = |_| Failure::Input("cancelled".to_owned());
        let roots = &selection.workspace;
        let (own_groups, found) = anchored(profile, self.new.file.as_deref(), workspace, roots);
        let mut analysis =
            Analysis::new(Arc::clone(profile), own_groups, value_type, &filters, &never).map_err(cancelled)?;
        let compared = match &self.base {
            None => None,
            Some(base) => {
                let profile = in_source(&base.symbolised(selection)?, workspace);
                let (groups, _) = anchored(&profile, base.file.as_deref(), workspace, roots);
                let compared = analysis.compare_to(profile, groups, baseline.how(), &never);
                Some(
                    compared
                        .map_err(|error| Failure::Input(format!("{} and {}: {error}", self.new.origin, base.origin)))?,
                )
            }
        };
        // Last, as counting begins with no notes.
        analysis.costs.notes.extend(workspace.into_iter().flat_map(notes).chain(found));
        Ok((analysis, compared))
    }
}
