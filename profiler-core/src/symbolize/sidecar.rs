//! Names that samply writes beside a profile (`--unstable-presymbolicate`): for each library the
//! addresses that were sampled, and what is there.
//!
//! ```text
//! {"string_table": ["UNKNOWN", "work", "/src/a.c"],
//!  "data": [{"debug_name": "app", "debug_id": "…", "code_id": "…",
//!            "symbol_table": [{"rva": 4096, "symbol": 1, "frames": [{"function": 1, "file": 2, "line": 7}]}],
//!            "known_addresses": [[4100, 0]]}]}
//! ```
//!
//! A library's list counts if it is of the build in the profile. Versions up to 0.13.1 keep one entry for all
//! addresses of a function, with the lines of the first: there the others get the function's name
//! and file, and no line, which is said. Later ones have an entry for each line, which shows as soon as two are of one function.
//!
//! What is not here: where the file is, which is for those who know where the profile came from.

use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;

use super::{Frame, profile};
use crate::cancel::{CancelFlag, Cancelled};
use crate::profile::{LineNo, LocId, Profile};

/// Larger files are not read.
const MAX_BYTES: u64 = 128 << 20;
/// Most calls that are inlined at one address.
const MAX_INLINED: usize = 256;
/// Most frames that a file may add to a profile.
const MAX_FRAMES: usize = 1 << 24;

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    string_table: Vec<Cow<'a, str>>,
    #[serde(borrow)]
    data: Vec<Library<'a>>,
}

#[derive(Deserialize)]
struct Library<'a> {
    #[serde(borrow, default)]
    debug_id: Cow<'a, str>,
    #[serde(borrow)]
    code_id: Option<Cow<'a, str>>,
    #[serde(default)]
    symbol_table: Vec<Symbol>,
    #[serde(default)]
    known_addresses: Vec<(u64, usize)>,
}

#[derive(Deserialize)]
struct Symbol {
    rva: u64,
    #[serde(rename = "symbol")]
    name: usize,
    frames: Option<Vec<Place>>,
}

#[derive(Clone, Copy, Deserialize)]
struct Place {
    function: Option<usize>,
    file: Option<usize>,
    line: Option<u32>,
}

/// Whether names beside the file are of use for a profile: it is of a kind that has them, and has
/// addresses without lines.
pub fn wants_sidecar(profile: &Profile) -> bool {
    profile.format() == "firefox" && super::needs_symbols(profile, super::Which::Incomplete)
}

/// The profile with the names of a file beside it; `name` is what that is called, and `bytes` is `None` when there is
/// no such file. What is wrong with it is said in a note, and the profile is as good without.
pub fn name_by_sidecar(
    mut profile: Profile,
    name: &str,
    bytes: Option<&mut dyn Read>,
    cancel: &CancelFlag,
) -> Result<Profile, Cancelled> {
    let said = match bytes {
        None => Err(format!(
            "functions and lines of its addresses come from the binaries on this machine: there is no {name} beside \
             it, in which samply keeps them with --unstable-presymbolicate"
        )),
        Some(bytes) => match read(bytes) {
            Err(why) => Err(format!("{name} can't be used: {why}; names come from the binaries on this machine")),
            Ok(text) => match found(&profile, name, &text, cancel)? {
                Ok((found, note)) => {
                    match profile::rebuild(profile.clone(), &found, profile.binary_notes.clone()) {
                        Ok(named) => profile = named,
                        Err(error) => profile.notes.push(format!("{name} can't be used: {error}")),
                    }
                    note.map_or(Ok(()), Err)
                }
                Err(why) => Err(why),
            },
        },
    };
    profile.notes.extend(said.err());
    Ok(profile)
}

fn read(bytes: &mut dyn Read) -> Result<String, String> {
    let mut all = Vec::new();
    bytes.take(MAX_BYTES + 1).read_to_end(&mut all).map_err(|error| error.to_string())?;
    if all.len() as u64 > MAX_BYTES {
        return Err(format!("it has more than {} MiB", MAX_BYTES >> 20));
    }
    String::from_utf8(all).map_err(|_| "it is not text".to_owned())
}

type Found = FxHashMap<LocId, Arc<[Frame]>>;

/// What the file says about the profile's addresses, and what there is to tell.
fn found(
    profile: &Profile,
    name: &str,
    text: &str,
    cancel: &CancelFlag,
) -> Result<Result<(Found, Option<String>), String>, Cancelled> {
    let file: File<'_> = match serde_json::from_str(text) {
        Ok(file) => file,
        Err(error) => {
            return Ok(Err(format!(
                "{name} can't be used, as it is damaged ({error}); names come from the binaries on this machine"
            )));
        }
    };
    let mut texts: Vec<Option<Arc<str>>> = vec![None; file.string_table.len()];
    let mut wanted: FxHashMap<&str, Vec<LocId>> = FxHashMap::default();
    let locations = profile.locations();
    for location in locations.ids().filter(|&id| profile::wanted(profile, id, super::Which::Incomplete)) {
        let build = profile.text(profile.mapping(locations.mapping(location)).build_id);
        wanted.entry(build).or_default().push(location);
    }
    let mut found = Found::default();
    let (mut is_known, mut broken, mut lineless, mut frames_left) = (false, 0_u64, 0, MAX_FRAMES);
    for library in &file.data {
        cancel.check()?;
        let Some(locations_here) = wanted.iter().find(|(build, _)| library.is(build)).map(|(_, ids)| ids) else {
            continue;
        };
        is_known = true;
        let answers = library.answers();
        for &location in locations_here {
            let Some(&(symbol, has_line)) = answers.get(&locations.address(location)) else { continue };
            let Some(symbol) = library.symbol_table.get(symbol) else {
                broken += 1;
                continue;
            };
            let Some(frames) = symbol.frames(has_line, &file.string_table, &mut texts) else {
                broken += 1;
                continue;
            };
            lineless += usize::from(!has_line && symbol.frames.as_ref().is_some_and(|places| !places.is_empty()));
            let Some(left) = frames_left.checked_sub(frames.len()) else {
                return Ok(Ok((
                    found,
                    Some(format!("{name} has more inlined calls than are kept; some are without names")),
                )));
            };
            frames_left = left;
            found.insert(location, frames);
        }
    }
    let note = if !is_known && !wanted.is_empty() {
        Some(format!("{name} is of other programs than the profile, so no names were taken from it"))
    } else if broken > 0 {
        Some(format!("{broken} entries of {name} refer to what is not in it; those addresses have no names"))
    } else {
        (lineless > 0).then(|| {
            format!(
                "{lineless} addresses have a function and no line: {name} has one line for each function; the programs \
                 themselves, in the folder of --workspace or --debug-dir, tell the others"
            )
        })
    };
    Ok(Ok((found, note)))
}

impl Library<'_> {
    /// Whether a profile that names its build so means this library.
    fn is(&self, build: &str) -> bool {
        let plain = |id: &str| id.replace('-', "").to_ascii_uppercase();
        let code = self.code_id.as_deref().unwrap_or_default();
        if build.is_empty() {
            return false;
        }
        if code.eq_ignore_ascii_case(build) {
            return true;
        }
        // Breakpad's form ends with an age, which is left out where it is 0.
        let (build, debug) = (plain(build), plain(&self.debug_id));
        !debug.is_empty() && (build == debug || build.strip_suffix('0') == Some(&*debug))
    }

    /// The entry of each address, and whether the entry's lines are of that very address.
    fn answers(&self) -> FxHashMap<u64, (usize, bool)> {
        let mut functions = FxHashSet::default();
        let is_by_line = !self.symbol_table.iter().all(|symbol| functions.insert(symbol.rva));
        let mut taken = FxHashSet::default();
        self.known_addresses
            .iter()
            .map(|&(address, symbol)| (address, (symbol, taken.insert(symbol) || is_by_line)))
            .collect()
    }
}

impl Symbol {
    /// The frames, innermost first; `None` when they refer to texts that are not there.
    fn frames(&self, has_line: bool, table: &[Cow<'_, str>], texts: &mut [Option<Arc<str>>]) -> Option<Arc<[Frame]>> {
        let mut text = |index: usize| -> Option<Arc<str>> {
            let known = texts.get_mut(index)?;
            Some(Arc::clone(known.get_or_insert_with(|| Arc::from(&*table[index]))))
        };
        let name = text(self.name)?;
        let places = self.frames.as_deref().unwrap_or_default();
        if places.is_empty() || !has_line {
            // The last is the function itself, whatever was inlined where.
            let file = places.last().and_then(|place| place.file).map(&mut text).unwrap_or_default();
            return Some([Frame { name, file: file.unwrap_or_default(), ..Frame::default() }].into());
        }
        let of = |place: &Place| -> Option<Frame> {
            let name = place.function.map_or_else(|| Some(Arc::clone(&name)), &mut text)?;
            let file = place.file.map_or_else(|| Some(Arc::default()), &mut text)?;
            let line = place.line.map_or(LineNo::UNKNOWN, |line| LineNo::from_pprof(line.into(), 0).0);
            Some(Frame { name, file, line, ..Frame::default() })
        };
        places.iter().rev().take(MAX_INLINED).rev().map(of).collect()
    }
}
