//! One profile out of several that measure different things: what a window of live data, or a
//! file with many profiles, is shown as. Parts that measure the same are what
//! [`Profile::merge`] is for.
//!
//! Samples stay samples; only the tables they refer to are shared. A value type is the same
//! if both its words are, and a profile that lacks a type has no value of it. So several
//! measurements of the same thing add up, and different ones stand side by side.

use super::{
    BuildError, FuncId, Label, LabelValue, Line, LocId, MapId, Mapping, Profile, ProfileBuilder, StrId, ValueType,
};
use rustc_hash::{FxHashMap, FxHashSet};

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
            if notes.insert(note.as_str()) {
                merged.note(note.as_str());
            }
        }
        let columns: Vec<usize> = profile
            .value_types()
            .iter()
            .map(|kind| types.iter().position(|known| known == kind).unwrap_or(0))
            .collect();
        Copy::new(profile).samples(&mut merged, &mut mappings, &columns, &mut values)?;
    }
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
        mut self,
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
            values.fill(0);
            for (own, &column) in columns.iter().enumerate() {
                values[column] = values[column].saturating_add(samples.values(own)[sample]);
            }
            merged.push_sample(&stack, values, &labels)?;
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
        let mapping = self.profile.mapping(locations.mapping(id));
        let mapping = Mapping {
            file: self.string(mapping.file, merged)?,
            build_id: self.string(mapping.build_id, merged)?,
            ..mapping
        };
        let mapping = if mapping == Mapping::default() {
            MapId::NONE
        } else if let Some(&known) = mappings.get(&mapping) {
            known
        } else {
            let row = merged.push_mapping(mapping)?;
            mappings.insert(mapping, row);
            row
        };
        let row = merged.location(mapping, locations.address(id), &lines)?;
        self.locations[id.index()] = Some(row);
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
        self.functions[id.index()] = Some(row);
        Ok(row)
    }
}
