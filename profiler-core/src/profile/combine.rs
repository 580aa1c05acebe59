//! One profile out of several that measure different things: what a window of live data, or a
//! file with many profiles, is shown as. Parts that measure the same are what
//! [`Profile::merge`] is for.
//!
//! Samples stay samples; only the tables they refer to are shared. A value type is the same
//! if both its words are, and a profile that lacks a type has no value of it. So several
//! measurements of the same thing add up, and different ones stand side by side. What calls
//! cost and what is said about binaries comes along.

use super::{
    BinaryNote, BuildError, FuncId, Label, LabelValue, Line, LocId, MapId, Mapping, Profile, ProfileBuilder, StrId,
    ValueType,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Most notes that are kept of all profiles: many may say nearly the same.
const MAX_NOTES: usize = 32;

/// Puts profiles together as one of the given format.
///
/// What a profile says about itself is kept where all agree: a period that they don't share
/// is left out with a note. The default value type is that of the first.
///
/// ```
/// use profiler_core::profile::{ProfileBuilder, ValueType, combine::combine};
/// # fn main() -> Result<(), profiler_core::profile::BuildError> {
/// let one = |kind: &str, value| {
///     let mut builder = ProfileBuilder::new("example", vec![ValueType::new(kind, "count")]);
///     builder.push_sample(&[], &[value], &[])?;
///     builder.finish()
/// };
/// let merged = combine("example", &[one("events", 2)?, one("faults", 3)?, one("events", 5)?])?;
/// assert_eq!(merged.value_types().len(), 2);
/// assert_eq!(merged.sum(0).total, 7);
/// # Ok(()) }
/// ```
pub fn combine<'p>(
    format: &'static str,
    profiles: impl IntoIterator<Item = &'p Profile> + Clone,
) -> Result<Profile, BuildError> {
    let mut types: Vec<ValueType> = Vec::new();
    for kind in profiles.clone().into_iter().flat_map(super::Profile::value_types) {
        if !types.contains(kind) {
            types.push(kind.clone());
        }
    }
    let mut merged = ProfileBuilder::new(format, types.clone());
    let mut mappings: FxHashMap<Mapping, MapId> = FxHashMap::default();
    let mut notes = FxHashSet::default();
    let mut values = vec![0; types.len()];
    let mut is_first = true;
    let (mut start, mut end) = (None, None);
    let mut has_other_period = false;
    let mut binaries: Vec<BinaryNote> = Vec::new();
    for profile in profiles {
        let meta = profile.meta();
        if is_first {
            let default = profile.value_types().get(meta.default_value_type);
            let default = default.and_then(|default| types.iter().position(|kind| kind == default));
            *merged.meta() = super::Meta { time_ns: None, duration_ns: None, ..meta.clone() };
            merged.meta().default_value_type = default.unwrap_or(0);
            is_first = false;
        }
        let own = merged.meta();
        has_other_period |= own.period != meta.period || own.period_type != meta.period_type;
        if let Some(time) = meta.time_ns {
            start = Some(start.map_or(time, |start: i64| start.min(time)));
            let its_end = time.saturating_add(meta.duration_ns.unwrap_or(0));
            end = Some(end.map_or(its_end, |end: i64| end.max(its_end)));
        }
        for note in profile.notes() {
            if notes.len() < MAX_NOTES && notes.insert(note.as_str()) {
                merged.note(note.as_str());
            }
        }
        let columns: Vec<usize> = profile
            .value_types()
            .iter()
            .map(|kind| types.iter().position(|known| known == kind).unwrap_or(0))
            .collect();
        let mut copy = Copy::new(profile);
        copy.samples(&mut merged, &mut mappings, &columns, &mut values)?;
        copy.calls(&mut merged, &mut mappings, &columns, &mut values)?;
        for note in profile.binary_notes() {
            let mapping = copy.mapping(note.mapping, &mut merged, &mut mappings)?;
            if !binaries.iter().any(|known| known.mapping == mapping) {
                binaries.push(BinaryNote { mapping, ..note.clone() });
            }
        }
    }
    merged.set_binary_notes(binaries);
    if has_other_period {
        merged.meta().period = 0;
        merged.meta().period_type = None;
        merged.note("its profiles have different periods, so samples are not shown as time");
    }
    merged.meta().time_ns = start;
    merged.meta().duration_ns = start.zip(end).map(|(start, end)| end - start).filter(|&duration| duration > 0);
    merged.finish()
}

/// Rows of one profile, as rows of another.
struct Copy<'p> {
    profile: &'p Profile,
    strings: FxHashMap<StrId, StrId>,
    functions: Vec<Option<FuncId>>,
    locations: Vec<Option<LocId>>,
}

impl<'p> Copy<'p> {
    fn new(profile: &'p Profile) -> Self {
        Self {
            profile,
            strings: FxHashMap::default(),
            functions: vec![None; profile.functions().len()],
            locations: vec![None; profile.locations().len()],
        }
    }

    fn samples(
        &mut self,
        merged: &mut ProfileBuilder,
        mappings: &mut FxHashMap<Mapping, MapId>,
        columns: &[usize],
        values: &mut [i64],
    ) -> Result<(), BuildError> {
        let samples = self.profile.samples();
        let (mut stack, mut labels) = (Vec::new(), Vec::new());
        for sample in 0..samples.len() {
            stack.clear();
            for &location in samples.stack(sample) {
                stack.push(self.location(location, merged, mappings)?);
            }
            labels.clear();
            for label in samples.labels(sample) {
                let key = self.string(label.key, merged)?;
                let value = match label.value {
                    LabelValue::Text(text) => LabelValue::Text(self.string(text, merged)?),
                    LabelValue::Number(number, unit) => LabelValue::Number(number, self.string(unit, merged)?),
                };
                labels.push(Label { key, value });
            }
            spread(values, columns, |own| samples.values(own)[sample]);
            merged.push_sample(&stack, values, &labels)?;
        }
        Ok(())
    }

    fn calls(
        &mut self,
        merged: &mut ProfileBuilder,
        mappings: &mut FxHashMap<Mapping, MapId>,
        columns: &[usize],
        values: &mut [i64],
    ) -> Result<(), BuildError> {
        let calls = self.profile.calls();
        for call in 0..calls.len() {
            let caller = self.location(calls.caller(call), merged, mappings)?;
            let callee = self.location(calls.callee(call), merged, mappings)?;
            spread(values, columns, |own| calls.values(own)[call]);
            merged.push_call(caller, callee, values)?;
        }
        Ok(())
    }

    fn string(&mut self, id: StrId, merged: &mut ProfileBuilder) -> Result<StrId, BuildError> {
        if let Some(&known) = self.strings.get(&id) {
            return Ok(known);
        }
        let row = merged.string(self.profile.text(id))?;
        self.strings.insert(id, row);
        Ok(row)
    }

    fn location(
        &mut self,
        id: LocId,
        merged: &mut ProfileBuilder,
        mappings: &mut FxHashMap<Mapping, MapId>,
    ) -> Result<LocId, BuildError> {
        if id.is_none() {
            return Ok(id);
        }
        if let Some(known) = self.locations[id.index()] {
            return Ok(known);
        }
        let locations = self.profile.locations();
        let mut lines = Vec::new();
        for line in locations.lines(id) {
            lines.push(Line { function: self.function(line.function, merged)?, ..*line });
        }
        let mapping = self.mapping(locations.mapping(id), merged, mappings)?;
        let row = merged.location(mapping, locations.address(id), &lines)?;
        self.locations[id.index()] = Some(row);
        Ok(row)
    }

    fn mapping(
        &mut self,
        id: MapId,
        merged: &mut ProfileBuilder,
        mappings: &mut FxHashMap<Mapping, MapId>,
    ) -> Result<MapId, BuildError> {
        let mapping = self.profile.mapping(id);
        let mapping = Mapping {
            file: self.string(mapping.file, merged)?,
            build_id: self.string(mapping.build_id, merged)?,
            ..mapping
        };
        if mapping == Mapping::default() {
            return Ok(MapId::NONE);
        }
        if let Some(&known) = mappings.get(&mapping) {
            return Ok(known);
        }
        let row = merged.push_mapping(mapping)?;
        mappings.insert(mapping, row);
        Ok(row)
    }

    fn function(&mut self, id: FuncId, merged: &mut ProfileBuilder) -> Result<FuncId, BuildError> {
        if id.is_none() {
            return Ok(id);
        }
        if let Some(known) = self.functions[id.index()] {
            return Ok(known);
        }
        let function = self.profile.function(id);
        let text = |id| self.profile.text(id);
        let row = merged.function(
            text(function.name),
            text(function.system_name),
            self.profile.path(function.file),
            function.start_line,
        )?;
        merged.set_start_column(row, self.profile.start_column(id));
        self.functions[id.index()] = Some(row);
        Ok(row)
    }
}

/// Values of one profile in the columns of another; two of the same type add up.
fn spread(values: &mut [i64], columns: &[usize], own: impl Fn(usize) -> i64) {
    values.fill(0);
    for (index, &column) in columns.iter().enumerate() {
        values[column] = values[column].saturating_add(own(index));
    }
}
