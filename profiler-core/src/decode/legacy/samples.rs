//! Samples as these files have them, stacks of addresses, and how they become a profile once
//! the binaries and names behind them have been read.

use rustc_hash::FxHashMap;

use super::super::{Context, DecodeError, DecodeErrorKind};
use super::maps::Maps;
use crate::profile::{Label, LabelValue, Line, LineNo, LocId, MapId, Mapping, Profile, ProfileBuilder, StrId};

/// Stacks of addresses, leaf first, each with the same number of values.
#[derive(Default)]
pub(super) struct Samples {
    addresses: Vec<u64>,
    ends: Vec<usize>,
    values: Vec<i64>,
    /// Size of one object in bytes, one per sample; empty when that makes no sense.
    sizes: Vec<i64>,
    /// Text labels, each with the index of its sample, in the order of the samples.
    labels: Vec<(usize, String, String)>,
}

impl Samples {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Appends a sample.
    pub(super) fn push(&mut self, stack: &[u64], values: &[i64], context: &Context<'_>) -> Result<(), DecodeError> {
        if self.ends.len().is_multiple_of(4096) {
            context.cancel.check()?;
        }
        if self.addresses.len() + stack.len() > context.limits.max_frames {
            let message = format!("it holds more than {} frames", context.limits.max_frames);
            return Err(DecodeError::new(DecodeErrorKind::Limit, message));
        }
        self.addresses.extend_from_slice(stack);
        self.ends.push(self.addresses.len());
        self.values.extend_from_slice(values);
        Ok(())
    }

    /// Appends values of the samples in order, for formats that decide late which there are.
    pub(super) fn add_values(&mut self, values: &[i64]) {
        self.values.extend_from_slice(values);
    }

    /// Says how large the objects of the last sample are.
    pub(super) fn set_size(&mut self, bytes: i64) {
        self.sizes.push(bytes);
    }

    /// Attaches a text to the last sample.
    pub(super) fn add_label(&mut self, key: String, value: String) {
        if let Some(last) = self.ends.len().checked_sub(1) {
            self.labels.push((last, key, value));
        }
    }

    /// Counts the last sample once more. Only for samples with one value.
    pub(super) fn repeat_last(&mut self) {
        if let Some(value) = self.values.last_mut() {
            *value = value.saturating_add(1);
        }
    }

    pub(super) fn last_stack(&self) -> &[u64] {
        self.ends.len().checked_sub(1).map_or(&[], |last| self.stack(last))
    }

    pub(super) fn stack(&self, sample: usize) -> &[u64] {
        let start = if sample == 0 { 0 } else { self.ends[sample - 1] };
        &self.addresses[start..self.ends[sample]]
    }

    /// Takes the frame above the leaf out of every stack `is_odd` says yes to; stacks that
    /// have no such frame are not asked.
    pub(super) fn remove_caller_of_leaf(&mut self, is_odd: impl Fn(&[u64]) -> bool) {
        let mut start = 0;
        let mut kept = 0;
        for end in &mut self.ends {
            let stack = &self.addresses[start..*end];
            let removes = stack.len() > 1 && is_odd(stack);
            for at in start..*end {
                if !(removes && at == start + 1) {
                    self.addresses[kept] = self.addresses[at];
                    kept += 1;
                }
            }
            start = *end;
            *end = kept;
        }
        self.addresses.truncate(kept);
    }

    /// Removes the second copy of the leaf: a signal handler sees it twice, from the signal's
    /// registers and, less one, as if it were a return address.
    pub(super) fn remove_doubled_leaves(&mut self) {
        self.remove_caller_of_leaf(|stack| stack[0] == stack[1].wrapping_add(1));
    }
}

/// What an address stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) function: String,
    /// Empty when unknown.
    pub(super) file: String,
    pub(super) line: LineNo,
}

/// Names of addresses that the file itself tells.
#[derive(Default)]
pub(super) struct Names {
    /// Innermost first where calls were inlined.
    pub(super) of: FxHashMap<u64, Vec<Name>>,
    /// The addresses are numbers of methods, not places in memory.
    pub(super) are_method_numbers: bool,
}

/// Everything but the samples.
#[derive(Default)]
pub(super) struct Surroundings {
    pub(super) names: Names,
    pub(super) maps: Maps,
    /// For the user.
    pub(super) notes: Vec<String>,
}

impl Samples {
    /// Makes the profile. `builder` has the header already.
    pub(super) fn into_profile(
        self,
        mut builder: ProfileBuilder,
        mut around: Surroundings,
        context: &Context<'_>,
    ) -> Result<Profile, DecodeError> {
        let mut region_of: FxHashMap<u64, Option<usize>> = FxHashMap::default();
        for &address in &self.addresses {
            region_of.entry(address).or_insert_with(|| around.maps.region_of(address));
        }
        context.cancel.check()?;
        let binaries = push_binaries(&mut builder, &around.maps)?;
        let map_of = |address: u64| region_of[&address].map_or(MapId::NONE, |region| binaries[region]);

        let size_key = if self.sizes.is_empty() { StrId::NONE } else { builder.string("bytes")? };
        let width = builder.profile.value_types.len();
        let mut locations: FxHashMap<u64, LocId> = FxHashMap::default();
        let mut stack = Vec::new();
        let mut labels = Vec::new();
        let mut texts = self.labels.iter().peekable();
        for sample in 0..self.len() {
            stack.clear();
            for &address in self.stack(sample) {
                let location = if let Some(&known) = locations.get(&address) {
                    known
                } else {
                    let new = push_location(&mut builder, &around.names, map_of(address), address)?;
                    locations.insert(address, new);
                    new
                };
                stack.push(location);
            }
            labels.clear();
            if let Some(&size) = self.sizes.get(sample) {
                labels.push(Label { key: size_key, value: LabelValue::Number(size, StrId::NONE) });
            }
            while let Some((_, key, value)) = texts.next_if(|label| label.0 == sample) {
                labels.push(Label { key: builder.string(key)?, value: LabelValue::Text(builder.string(value)?) });
            }
            builder.push_sample(&stack, &self.values[sample * width..][..width], &labels)?;
            if sample.is_multiple_of(4096) {
                context.cancel.check()?;
            }
        }

        around.notes.extend(around.maps.notes());
        around.notes.extend(Self::nameless_note(&around, &region_of));
        for note in around.notes {
            builder.note(note);
        }
        if builder.sample_count() == 0 {
            builder.note("the profile holds 0 samples");
        }
        Ok(builder.finish()?)
    }

    /// How much has no name, and what would give it one.
    fn nameless_note(around: &Surroundings, region_of: &FxHashMap<u64, Option<usize>>) -> Option<String> {
        let mut of_region = vec![0usize; around.maps.regions().len()];
        let mut unmapped = 0;
        for (_, &region) in region_of.iter().filter(|(address, _)| !around.names.of.contains_key(address)) {
            match region {
                Some(region) => of_region[region] += 1,
                None => unmapped += 1,
            }
        }
        let nameless = unmapped + of_region.iter().sum::<usize>();
        if nameless == 0 {
            return None;
        }
        let mut wanted: Vec<(usize, String)> = around
            .maps
            .regions()
            .iter()
            .zip(of_region)
            .filter(|(region, count)| *count > 0 && !region.file.is_empty())
            .map(|(region, count)| match region.build_id.as_str() {
                "" => (count, format!("{} ({count})", region.file)),
                id => (count, format!("{} with build id {id} ({count})", region.file)),
            })
            .collect();
        wanted.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let more = wanted.len().saturating_sub(MOST_NAMED);
        let mut list: Vec<String> = wanted.into_iter().take(MOST_NAMED).map(|(_, text)| text).collect();
        if more > 0 {
            list.push(format!("{more} more"));
        }
        let how = if list.is_empty() {
            "the file does not say which binary they are from".to_owned()
        } else {
            format!("naming them takes the binary: {}", list.join(", "))
        };
        let outside =
            if unmapped > 0 && !list.is_empty() { format!("; in no binary: {unmapped}") } else { String::new() };
        Some(format!("only addresses: {nameless} of {} distinct frames; {how}{outside}", region_of.len()))
    }
}

/// A note lists this many binaries at most.
const MOST_NAMED: usize = 3;

fn push_binaries(builder: &mut ProfileBuilder, maps: &Maps) -> Result<Vec<MapId>, DecodeError> {
    let mut rows = Vec::with_capacity(maps.regions().len());
    for region in maps.regions() {
        let mapping = Mapping {
            memory_start: region.start,
            memory_limit: region.limit,
            file_offset: region.offset,
            file: builder.string(&region.file)?,
            build_id: builder.string(&region.build_id)?,
        };
        rows.push(builder.push_mapping(mapping)?);
    }
    Ok(rows)
}

fn push_location(
    builder: &mut ProfileBuilder,
    names: &Names,
    mapping: MapId,
    address: u64,
) -> Result<LocId, DecodeError> {
    let Some(names_here) = names.of.get(&address) else {
        return Ok(builder.push_location(mapping, address, &[])?);
    };
    let mut lines = Vec::with_capacity(names_here.len());
    for name in names_here {
        let function = builder.function(&name.function, "", &name.file, LineNo::UNKNOWN)?;
        lines.push(Line { function, line: name.line, column: 0 });
    }
    let address = if names.are_method_numbers { 0 } else { address };
    Ok(builder.push_location(mapping, address, &lines)?)
}
