//! Making a [`Profile`] row by row.
//!
//! Two styles in one type. `push_…` appends a row as it is, for formats that have tables of
//! their own (pprof); `string`, `file`, `function`, `location` look for an equal row first,
//! for formats that repeat themselves (folded stacks, speedscope).

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{
    Calls, File, FileId, FileKind, FuncId, Function, Label, Line, LocId, Locations, MapId, Mapping, Meta, Profile,
    StrId, Strings, Sum, ValueType,
};
use crate::paths::clean;

/// A profile can't be built from what a file says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A table would pass 2³² rows, or the text 4 GiB.
    #[error("too many {0}")]
    TooMany(&'static str),
    /// Σ|v| of a value type is beyond an `i64`, so no total could be trusted.
    #[error("the values of type {0} add up to more than 2^63 − 1")]
    TotalOverflow(ValueType),
}

/// Builds a [`Profile`].
///
/// ```
/// use profiler_core::profile::{LabelValue, Label, Line, LineNo, MapId, ProfileBuilder, ValueType};
/// # fn main() -> Result<(), profiler_core::profile::BuildError> {
/// let mut builder = ProfileBuilder::new("example", vec![ValueType::new("cpu", "nanoseconds")]);
/// let main = builder.function("main", "", "src/main.rs", LineNo(1))?;
/// let leaf = builder.location(MapId::NONE, 0, &[Line { function: main, line: LineNo(3), column: 0 }])?;
/// builder.push_sample(&[leaf], &[30_000_000], &[])?;
/// let profile = builder.finish()?;
/// assert_eq!(profile.sum(0).total, 30_000_000);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ProfileBuilder {
    pub(crate) profile: Profile,
    strings: FxHashMap<Box<str>, StrId>,
    files: FxHashMap<Box<str>, FileId>,
    functions: FxHashMap<Function, FuncId>,
    /// Nearly all locations are one line, and those are looked up for nearly every frame of most formats.
    lines: FxHashMap<(MapId, u64, Line), LocId>,
    locations: FxHashMap<(MapId, u64, Box<[Line]>), LocId>,
}

impl ProfileBuilder {
    /// An empty profile of a format with these value types; the last one is the default.
    pub fn new(format: &'static str, value_types: Vec<ValueType>) -> Self {
        let mut builder = Self {
            profile: Profile {
                strings: Strings::default(),
                files: vec![File::default()],
                functions: vec![Function::default()],
                start_columns: Vec::new(),
                mappings: vec![Mapping::default()],
                locations: Locations::default(),
                samples: Arc::default(),
                calls: Calls::default(),
                value_types: Vec::new(),
                sums: Vec::new(),
                meta: Meta::default(),
                format,
                notes: Vec::new(),
                binary_notes: Vec::new(),
            },
            strings: FxHashMap::default(),
            files: FxHashMap::default(),
            functions: FxHashMap::default(),
            lines: FxHashMap::default(),
            locations: FxHashMap::default(),
        };
        builder.set_value_types(value_types);
        builder
    }

    /// Goes on with a finished profile.
    pub(crate) fn resume(profile: Profile) -> Self {
        let ids = |count: usize| 1..u32::try_from(count).unwrap_or(u32::MAX);
        let strings =
            ids(profile.strings.len()).map(|row| (profile.strings.get(StrId(row)).into(), StrId(row))).collect();
        let files = ids(profile.files.len())
            .map(|row| (profile.strings.get(profile.files[row as usize].path).into(), FileId(row)))
            .collect();
        let functions =
            ids(profile.functions.len()).map(|row| (profile.functions[row as usize], FuncId(row))).collect();
        Self { profile, strings, files, functions, lines: FxHashMap::default(), locations: FxHashMap::default() }
    }

    /// Replaces all locations; there must be as many as before.
    pub(crate) fn set_locations(&mut self, locations: Locations) {
        debug_assert_eq!(locations.len(), self.profile.locations.len());
        self.profile.locations = locations;
        self.lines.clear();
        self.locations.clear();
    }

    /// Replaces what is said about binaries.
    pub(crate) fn set_binary_notes(&mut self, notes: Vec<super::BinaryNote>) {
        self.profile.binary_notes = notes;
    }

    /// Replaces the value types, for formats that name them late. Only before the first sample.
    pub fn set_value_types(&mut self, value_types: Vec<ValueType>) {
        debug_assert!(self.profile.samples.is_empty());
        Arc::make_mut(&mut self.profile.samples).values = vec![Vec::new(); value_types.len()];
        self.profile.meta.default_value_type = value_types.len().saturating_sub(1);
        self.profile.value_types = value_types;
    }

    /// What the profile says about itself.
    pub fn meta(&mut self) -> &mut Meta {
        &mut self.profile.meta
    }

    /// Records something odd about the file: one sentence for the user.
    pub fn note(&mut self, sentence: impl Into<String>) {
        self.profile.notes.push(sentence.into());
    }

    /// Number of samples so far.
    pub fn sample_count(&self) -> usize {
        self.profile.samples.len()
    }

    /// The row of a text, new or not.
    pub fn string(&mut self, text: &str) -> Result<StrId, BuildError> {
        if text.is_empty() {
            return Ok(StrId::NONE);
        }
        if let Some(&id) = self.strings.get(text) {
            return Ok(id);
        }
        let id = self.push_string(text)?;
        self.strings.insert(text.into(), id);
        Ok(id)
    }

    /// Appends a text without looking for an equal one.
    pub fn push_string(&mut self, text: &str) -> Result<StrId, BuildError> {
        self.profile.strings.push(text).ok_or(BuildError::TooMany("strings"))
    }

    /// The row of a file, by its cleaned path: `./a/../b.rs` and `b.rs` are one row.
    pub fn file(&mut self, path: &str) -> Result<FileId, BuildError> {
        let cleaned = clean::clean(path);
        if cleaned.is_empty() {
            return Ok(FileId::NONE);
        }
        if let Some(&id) = self.files.get(&*cleaned) {
            return Ok(id);
        }
        let row = FileId(u32::try_from(self.profile.files.len()).map_err(|_| BuildError::TooMany("files"))?);
        let kind = if clean::is_pseudo(&cleaned) { FileKind::Pseudo } else { FileKind::Source };
        let text = self.string(&cleaned)?;
        self.profile.files.push(File { path: text, kind });
        self.files.insert(cleaned.into(), row);
        Ok(row)
    }

    /// The row of a function, new or not.
    pub fn function(
        &mut self,
        name: &str,
        system_name: &str,
        path: &str,
        start_line: super::LineNo,
    ) -> Result<FuncId, BuildError> {
        let function = Function {
            name: self.string(name)?,
            system_name: self.string(system_name)?,
            file: self.file(path)?,
            start_line,
        };
        if let Some(&id) = self.functions.get(&function) {
            return Ok(id);
        }
        let id = self.push_function(function)?;
        self.functions.insert(function, id);
        Ok(id)
    }

    /// Appends a function without looking for an equal one.
    pub fn push_function(&mut self, function: Function) -> Result<FuncId, BuildError> {
        let row = u32::try_from(self.profile.functions.len()).map_err(|_| BuildError::TooMany("functions"))?;
        self.profile.functions.push(function);
        Ok(FuncId(row))
    }

    /// Says on which column (1-based) a function starts, for formats that tell functions of one
    /// line apart by it.
    pub fn set_start_column(&mut self, function: FuncId, column: u32) {
        if column == 0 || function.index() >= self.profile.functions.len() {
            return;
        }
        let columns = &mut self.profile.start_columns;
        columns.resize(columns.len().max(function.index() + 1), 0);
        columns[function.index()] = column;
    }

    /// Appends a mapping.
    pub fn push_mapping(&mut self, mapping: Mapping) -> Result<MapId, BuildError> {
        let row = u32::try_from(self.profile.mappings.len()).map_err(|_| BuildError::TooMany("mappings"))?;
        self.profile.mappings.push(mapping);
        Ok(MapId(row))
    }

    /// The row of a location, new or not. `lines` innermost first.
    pub fn location(&mut self, mapping: MapId, address: u64, lines: &[Line]) -> Result<LocId, BuildError> {
        if let [line] = lines {
            let key = (mapping, address, *line);
            if let Some(&id) = self.lines.get(&key) {
                return Ok(id);
            }
            let id = self.push_location(mapping, address, lines)?;
            self.lines.insert(key, id);
            return Ok(id);
        }
        let key = (mapping, address, Box::from(lines));
        if let Some(&id) = self.locations.get(&key) {
            return Ok(id);
        }
        let id = self.push_location(mapping, address, lines)?;
        self.locations.insert(key, id);
        Ok(id)
    }

    /// Appends a location without looking for an equal one.
    pub fn push_location(&mut self, mapping: MapId, address: u64, lines: &[Line]) -> Result<LocId, BuildError> {
        self.profile.locations.push(mapping, address, lines.iter().copied()).ok_or(BuildError::TooMany("locations"))
    }

    /// Appends a sample: its stack leaf first, one value per value type, its labels.
    ///
    /// # Panics
    /// When the number of values is not the number of value types.
    pub fn push_sample(&mut self, stack: &[LocId], values: &[i64], labels: &[Label]) -> Result<(), BuildError> {
        let samples = Arc::make_mut(&mut self.profile.samples);
        assert_eq!(values.len(), samples.values.len(), "one value per value type");
        samples.frames.extend_from_slice(stack);
        samples.labels.extend_from_slice(labels);
        let frame_end = u32::try_from(samples.frames.len()).map_err(|_| BuildError::TooMany("frames"))?;
        let label_end = u32::try_from(samples.labels.len()).map_err(|_| BuildError::TooMany("labels"))?;
        samples.frame_ends.push(frame_end);
        samples.label_ends.push(label_end);
        for (column, &value) in samples.values.iter_mut().zip(values) {
            column.push(value);
        }
        Ok(())
    }

    /// Says what a call costs with everything below it; see [`Calls`].
    ///
    /// # Panics
    /// When the number of values is not the number of value types.
    pub fn push_call(&mut self, caller: LocId, callee: LocId, values: &[i64]) -> Result<(), BuildError> {
        let calls = &mut self.profile.calls;
        assert_eq!(values.len(), self.profile.value_types.len(), "one value per value type");
        if calls.len() == u32::MAX as usize {
            return Err(BuildError::TooMany("calls"));
        }
        calls.values.resize_with(values.len(), Vec::new);
        calls.callers.push(caller);
        calls.callees.push(callee);
        for (column, &value) in calls.values.iter_mut().zip(values) {
            column.push(value);
        }
        Ok(())
    }

    /// Checks the totals and hands out the profile.
    pub fn finish(mut self) -> Result<Profile, BuildError> {
        if self.profile.value_types.is_empty() {
            self.set_value_types(vec![ValueType::default()]);
        }
        let profile = &mut self.profile;
        profile.sums = profile
            .samples
            .values
            .iter()
            .zip(&profile.value_types)
            .map(|(values, value_type)| {
                let total: i128 = values.iter().map(|&v| i128::from(v).abs()).sum();
                let net: i128 = values.iter().map(|&v| i128::from(v)).sum();
                match (i64::try_from(total), i64::try_from(net)) {
                    (Ok(total), Ok(net)) => Ok(Sum { total, net }),
                    _ => Err(BuildError::TotalOverflow(value_type.clone())),
                }
            })
            .collect::<Result<_, _>>()?;
        for (values, value_type) in profile.calls.values.iter().zip(&profile.value_types) {
            // With these the sums of rows stay within bounds as well.
            let total: i128 = values.iter().map(|&v| i128::from(v).abs()).sum();
            if total > i128::from(i64::MAX / 2) {
                return Err(BuildError::TotalOverflow(value_type.clone()));
            }
        }
        // Of a profile that is built again it is there already.
        if let Some(note) = profile.meta.line_detail.note()
            && !profile.notes.iter().any(|known| known == note)
        {
            profile.notes.push(note.to_owned());
        }
        debug_assert!(check_ids(profile).is_ok(), "{:?}", check_ids(profile));
        Ok(self.profile)
    }
}

/// Every id points into its table. A decoder that breaks this has a bug; files can't.
fn check_ids(profile: &Profile) -> Result<(), String> {
    let strings = profile.strings.len();
    let string = |what: &str, id: StrId| -> Result<(), String> {
        if id.index() < strings { Ok(()) } else { Err(format!("{what}: no string {}", id.0)) }
    };
    for function in &profile.functions {
        string("function name", function.name)?;
        string("function system name", function.system_name)?;
        if function.file.index() >= profile.files.len() {
            return Err(format!("function: no file {}", function.file.0));
        }
    }
    for mapping in &profile.mappings {
        string("mapping file", mapping.file)?;
        string("mapping build id", mapping.build_id)?;
    }
    for line in &profile.locations.lines {
        if line.function.index() >= profile.functions.len() {
            return Err(format!("line: no function {}", line.function.0));
        }
    }
    for &mapping in &profile.locations.mappings {
        if mapping.index() >= profile.mappings.len() {
            return Err(format!("location: no mapping {}", mapping.0));
        }
    }
    for &location in profile.samples.frames.iter().chain(&profile.calls.callers).chain(&profile.calls.callees) {
        if location.index() >= profile.locations.len() {
            return Err(format!("sample: no location {}", location.0));
        }
    }
    Ok(())
}
