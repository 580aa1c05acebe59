//! Asks the workspace about all files of a profile at once.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::files::{FileGroups, Place, Placement};
use crate::cancel::{CancelFlag, Cancelled};
use crate::demangle::demangle;
use crate::paths::{FunctionEvidence, OutsideKind, PathQuery, Resolution, Workspace};
use crate::profile::{FileId, FileKind, FuncId, LineNo, MapId, Profile};

/// More functions than this say nothing new about a file.
const MAX_FUNCTIONS: usize = 64;

impl FileGroups {
    /// The files of a profile as a workspace knows them.
    pub fn in_workspace(profile: &Profile, workspace: &Workspace, cancel: &CancelFlag) -> Result<Self, Cancelled> {
        let facts = collect(profile, cancel)?;
        let asked: Vec<FileId> = (0u32..)
            .map(FileId)
            .zip(profile.files())
            .filter(|(_, file)| file.kind == FileKind::Source)
            .map(|(id, _)| id)
            .collect();
        let queries: Vec<PathQuery<'_>> = asked
            .iter()
            .map(|&file| {
                let facts = &facts[file.index()];
                PathQuery {
                    path: profile.path(file),
                    functions: facts
                        .functions
                        .iter()
                        .map(|(&(ref name, start_line), &line)| FunctionEvidence { name, start_line, line })
                        .collect(),
                    max_line: facts.max_line,
                    binary: Some(profile.text(profile.mapping(facts.binary).file)).filter(|path| !path.is_empty()),
                }
            })
            .collect();
        let mut placements: Vec<Option<Placement>> = vec![None; profile.files().len()];
        for (file, resolution) in asked.into_iter().zip(workspace.resolve(&queries)) {
            placements[file.index()] = Some(placement(workspace, resolution));
        }
        Ok(Self::placed(profile, |file| placements[file.index()].take()))
    }
}

/// What the profile knows about one file.
#[derive(Default)]
struct Facts<'p> {
    functions: BTreeMap<(Cow<'p, str>, LineNo), LineNo>,
    max_line: u32,
    binary: MapId,
}

fn collect<'p>(profile: &'p Profile, cancel: &CancelFlag) -> Result<Vec<Facts<'p>>, Cancelled> {
    let mut facts: Vec<Facts<'p>> = Vec::new();
    facts.resize_with(profile.files().len(), Facts::default);
    let locations = profile.locations();
    let mut is_seen = vec![false; profile.functions().len()];
    for location in locations.ids() {
        if location.0.is_multiple_of(4096) {
            cancel.check()?;
        }
        for line in locations.lines(location) {
            let function = profile.function(line.function);
            let facts = &mut facts[function.file.index()];
            facts.max_line = facts.max_line.max(line.line.0).max(function.start_line.0);
            if facts.binary.is_none() {
                facts.binary = locations.mapping(location);
            }
            let seen = &mut is_seen[line.function.index()];
            // Formats without lines still say where functions start.
            let is_told = line.line.is_known() || function.start_line.is_known();
            if !*seen && is_told && line.function != FuncId::NONE && facts.functions.len() < MAX_FUNCTIONS {
                *seen = line.line.is_known();
                let name = match profile.text(function.name) {
                    "" => profile.text(function.system_name),
                    name => name,
                };
                let known = facts.functions.entry((demangle(name), function.start_line)).or_insert(line.line);
                if !known.is_known() {
                    *known = line.line;
                }
            }
        }
    }
    Ok(facts)
}

fn placement(workspace: &Workspace, resolution: Resolution) -> Placement {
    match resolution {
        Resolution::File { file, how, generated, .. } => Placement {
            place: if generated { Place::Generated } else { Place::Workspace },
            workspace_file: Some(workspace.display_name(&file)),
            path: Some(file.path),
            evidence: how.to_string(),
            package: generated.then(|| "generated code".to_owned()),
        },
        Resolution::Ambiguous { candidates } => {
            let names: Vec<String> = candidates.iter().map(|file| workspace.display_name(file)).collect();
            Placement {
                place: Place::Ambiguous,
                workspace_file: None,
                path: None,
                evidence: format!("ambiguous: {}", names.join(", ")),
                package: None,
            }
        }
        Resolution::Outside { kind, file } => {
            let (place, package) = match &kind {
                OutsideKind::Dependency { name, version } => (Place::Dependency, versioned(name, version.as_deref())),
                OutsideKind::Toolchain { name, version } => (Place::Toolchain, versioned(name, version.as_deref())),
                OutsideKind::Generated { .. } => (Place::Generated, "generated code".to_owned()),
            };
            Placement { place, workspace_file: None, path: file, evidence: kind.to_string(), package: Some(package) }
        }
        Resolution::NoMatch { reason, possible } => {
            let names: Vec<String> = possible.iter().take(3).map(|file| workspace.display_name(file)).collect();
            let evidence = if names.is_empty() {
                reason.to_string()
            } else {
                format!("{reason} (possible: {})", names.join(", "))
            };
            Placement { place: Place::NoMatch, workspace_file: None, path: None, evidence, package: None }
        }
    }
}

fn versioned(name: &str, version: Option<&str>) -> String {
    version.map_or_else(|| name.to_owned(), |version| format!("{name} {version}"))
}
