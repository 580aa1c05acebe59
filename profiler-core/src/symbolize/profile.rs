//! Fills in a profile that came with bare addresses: files of profilers that never looked at a
//! binary, replies of servers that had no debug info.

use std::path::PathBuf;
use std::time::SystemTime;

use rustc_hash::FxHashMap;

use super::looked_up;
use super::{
    Avma, FileOffset, Frame, Lines, MappedRange, Module, ModuleAddress, ModuleReport, Reason, Refusal, Svma, Symbolizer,
};
use crate::cancel::{CancelFlag, Cancelled};
use crate::profile::{
    BinaryNote, BuildError, FuncId, Line, LineDetail, LocId, MapId, Mapping, Profile, ProfileBuilder,
};

/// Which locations are looked up. None without an address and a binary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Which {
    /// Those without a name or without any line.
    #[default]
    Incomplete,
    /// All: whoever wrote the lines can't be relied on, as with servers that give the line
    /// that a function starts on. What can't be looked up stays as it is.
    All,
}

/// How a profile is symbolised.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProfileOptions {
    /// Which locations.
    pub which: Which,
    /// When the profile was there for certain, if it is of this machine. Where a profile doesn't
    /// say which build of a binary ran, the file at its path will do if it is older than that;
    /// for profiles of other machines it never will.
    pub taken_here: Option<SystemTime>,
}

/// Why a profile was not symbolised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// Someone stopped it.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The result would be too large.
    #[error(transparent)]
    TooLarge(#[from] BuildError),
}

/// A symbolised profile, and what was done.
#[derive(Clone, Debug)]
pub struct SymbolizedProfile {
    /// The profile, with everything that was found out.
    pub profile: Profile,
    /// Locations that have frames now which had none before, or better ones.
    pub resolved: usize,
    /// Locations that were looked up in vain.
    pub unresolved: usize,
}

/// Whether there is anything in a profile that [`symbolize_profile`] would look up.
pub fn needs_symbols(profile: &Profile, which: Which) -> bool {
    profile.locations().ids().any(|location| wanted(profile, location, which))
}

/// Looks up what a profile has no names or lines for.
///
/// Addresses of a profile are of instructions: whoever wrote it has subtracted one where it had
/// to be.
pub fn symbolize_profile(
    profile: Profile,
    symbolizer: &mut Symbolizer,
    options: ProfileOptions,
    cancel: &CancelFlag,
) -> Result<SymbolizedProfile, ProfileError> {
    // Lines were taken away for a reason; the addresses of such files are not reliable either.
    if profile.meta().line_detail == LineDetail::FunctionOnly {
        return Ok(SymbolizedProfile { profile, resolved: 0, unresolved: 0 });
    }
    let mut by_mapping: FxHashMap<MapId, Vec<LocId>> = FxHashMap::default();
    for location in profile.locations().ids().filter(|&location| wanted(&profile, location, options.which)) {
        by_mapping.entry(profile.locations().mapping(location)).or_default().push(location);
    }
    if by_mapping.is_empty() {
        return Ok(SymbolizedProfile { profile, resolved: 0, unresolved: 0 });
    }
    let mut mappings: Vec<_> = by_mapping.into_iter().collect();
    mappings.sort_unstable_by_key(|(mapping, _)| *mapping);

    let mut found: FxHashMap<LocId, std::sync::Arc<[Frame]>> = FxHashMap::default();
    let mut notes = Vec::new();
    let mut unresolved = 0;
    for (mapping, locations) in mappings {
        cancel.check()?;
        let row = profile.mapping(mapping);
        let build = profile.text(row.build_id).to_owned();
        if build.is_empty() && options.taken_here.is_none() {
            unresolved += locations.len();
            let report = ModuleReport {
                path: PathBuf::from(profile.text(row.file)),
                build,
                lines: Lines::NoFile(Refusal::Unproven),
                tried: Vec::new(),
            };
            notes.extend(note(&profile, mapping, &report, &[]));
            continue;
        }
        let module = symbolizer.add(Module {
            path: PathBuf::from(profile.text(row.file)),
            build,
            not_after: options.taken_here,
            ..Module::default()
        });
        let addresses: Vec<ModuleAddress> =
            locations.iter().map(|&location| module_address(&row, profile.locations().address(location))).collect();
        let answers = symbolizer.symbolize(module, &addresses, cancel);
        cancel.check()?;
        let mut reasons = Vec::new();
        for (&location, answer) in locations.iter().zip(answers) {
            match answer {
                Ok(frames) if is_better(&profile, location, &frames) => {
                    found.insert(location, frames);
                }
                Ok(_) => {}
                Err(reason) => {
                    unresolved += 1;
                    reasons.push(reason);
                }
            }
        }
        notes.extend(note(&profile, mapping, &symbolizer.report(module), &reasons));
    }
    let resolved = found.len();
    let words = if options.which == Which::All {
        looked_up::in_words(&profile, |location| found.contains_key(&location))
    } else {
        Vec::new()
    };
    let profile = match (found.is_empty(), notes.is_empty()) {
        (true, true) => profile,
        // The tables are what they were.
        (true, false) => Profile { binary_notes: notes, ..profile },
        (false, _) => rebuild(profile, &found, notes)?,
    };
    Ok(SymbolizedProfile { profile: profile.with_notes(words), resolved, unresolved })
}

pub(super) fn wanted(profile: &Profile, location: LocId, which: Which) -> bool {
    let locations = profile.locations();
    let mapping = profile.mapping(locations.mapping(location));
    if locations.address(location) == 0 || (mapping.file.is_none() && mapping.build_id.is_none()) {
        return false;
    }
    which == Which::All || !locations.lines(location).iter().any(|line| line.line.is_known())
}

/// Whether frames say more than what the profile has.
fn is_better(profile: &Profile, location: LocId, frames: &[Frame]) -> bool {
    let lines = profile.locations().lines(location);
    let is_bare = lines.iter().all(|line| {
        let function = profile.function(line.function);
        function.name.is_none() && function.system_name.is_none() && function.file.is_none()
    });
    is_bare || frames.iter().any(|frame| frame.line.is_known())
}

/// What an address of a profile is in its binary.
fn module_address(mapping: &Mapping, address: u64) -> ModuleAddress {
    let is_open = mapping.memory_limit == 0 || mapping.memory_limit == u64::MAX;
    if mapping.memory_start == 0 && mapping.file_offset == 0 && is_open {
        return ModuleAddress::Stated(Svma(address));
    }
    let range = MappedRange {
        start: Avma(mapping.memory_start),
        end: Avma(if is_open { u64::MAX } else { mapping.memory_limit }),
        offset: FileOffset(mapping.file_offset),
    };
    // An address outside of its own mapping was moved by somebody; no file has that offset.
    ModuleAddress::Offset(range.file_offset(Avma(address)).unwrap_or(FileOffset(u64::MAX)))
}

/// What to tell about a binary, when there is something to tell.
fn note(profile: &Profile, mapping: MapId, report: &ModuleReport, reasons: &[Reason]) -> Option<BinaryNote> {
    let path = profile.text(profile.mapping(mapping).file);
    if super::debug_files::is_pseudo(path) {
        return None;
    }
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let shown = if name.is_empty() { "the binary" } else { name };
    let build = if report.build.is_empty() { String::new() } else { format!(" (build id {})", report.build) };
    let tried = report.tried.iter().find(|tried| tried.refusal != Refusal::Missing);
    let tried = tried.map(|tried| format!("; {tried}")).unwrap_or_default();
    let (why, advice) = match &report.lines {
        Lines::NoFile(Refusal::NoPath) => return None,
        Lines::NoFile(refusal) => {
            let advice = if report.build.is_empty() {
                "the profile doesn't say which build it was, so only the file at that very path, older than the \
                 profile, will do. Symbolise it where it was recorded, or record with a tool that keeps build ids."
                    .to_owned()
            } else {
                "put the binary or its debug info into a folder of the setting symbols.debugDirs (--debug-dir), or \
                 build that version again with a build id."
                    .to_owned()
            };
            let is_known = report.tried.iter().any(|tried| tried.refusal == *refusal && tried.path.to_str() == Some(path));
            let why = match refusal {
                Refusal::Missing => format!("no binary and no debug info for {shown}{build}"),
                refusal if is_known => format!("{path} can't be used{build}: {refusal}"),
                _ => format!("no binary and no debug info for {shown}{build}{tried}"),
            };
            (why, advice)
        }
        Lines::NamesOnly => (
            format!("no debug info for {shown}{build}{tried}"),
            "build it with line tables (Rust: debug = \"line-tables-only\" in the profile, C and C++: -g), install the \
             debug package of the library, or name its folder in symbols.debugDirs (--debug-dir)."
                .to_owned(),
        ),
        Lines::DebugInfo | Lines::GoTable => {
            if reasons.contains(&Reason::NeedsBinary) {
                let why = format!("there is debug info for {shown}{build}, but not the binary");
                let advice = "put the binary beside it: only the binary tells which code an address in memory means.";
                return Some(BinaryNote { mapping, why, advice: advice.to_owned() });
            }
            let outside = reasons.iter().filter(|reason| **reason == Reason::OutsideCode).count();
            if outside == 0 {
                return None;
            }
            (
                format!("{shown}{build} has no code at {outside} of the addresses"),
                "the addresses were changed on the way, or belong to another file: symbolise the profile where it was \
                 recorded."
                    .to_owned(),
            )
        }
    };
    Some(BinaryNote { mapping, why, advice })
}

/// The profile with other lines for some locations.
pub(super) fn rebuild(
    profile: Profile,
    found: &FxHashMap<LocId, std::sync::Arc<[Frame]>>,
    notes: Vec<BinaryNote>,
) -> Result<Profile, BuildError> {
    let old = profile.locations().clone();
    let mut builder = ProfileBuilder::resume(profile);
    let mut locations = crate::profile::Locations::default();
    let mut functions: FxHashMap<FunctionKey, FuncId> = FxHashMap::default();
    for location in old.ids() {
        let mut lines = Vec::new();
        match found.get(&location) {
            Some(frames) => {
                for frame in frames.iter() {
                    let function = function(&mut builder, &mut functions, frame)?;
                    lines.push(Line { function, line: frame.line, column: frame.column });
                }
            }
            None => lines.extend_from_slice(old.lines(location)),
        }
        locations.push(old.mapping(location), old.address(location), lines).ok_or(BuildError::TooMany("locations"))?;
    }
    builder.set_locations(locations);
    builder.set_binary_notes(notes);
    builder.finish()
}

/// Frames share their texts, so that equal pointers are equal texts, mostly.
type FunctionKey = (*const u8, *const u8, u32);

fn function(
    builder: &mut ProfileBuilder,
    known: &mut FxHashMap<FunctionKey, FuncId>,
    frame: &Frame,
) -> Result<FuncId, BuildError> {
    let key = (frame.name.as_ptr(), frame.file.as_ptr(), frame.start_line.0);
    if let Some(&function) = known.get(&key) {
        return Ok(function);
    }
    let function = builder.function(&frame.name, "", &frame.file, frame.start_line)?;
    known.insert(key, function);
    Ok(function)
}
