//! Several profiles as one, for what comes in parts: the instances of a service, each with a
//! snapshot of its own.
//!
//! Every sample of every part is a sample of the whole, so totals add up exactly; tables are
//! shared as far as their rows are equal.

use rustc_hash::FxHashMap;

use super::{BuildError, FuncId, Label, LabelValue, Line, LocId, MapId, Mapping, Profile, ProfileBuilder, StrId};

/// Profiles can't be added up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// They don't measure the same.
    #[error("its parts measure different things: {0} and {1}")]
    ValueTypes(String, String),
    /// Together they are too much.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl Profile {
    /// Adds profiles up; `None` without any.
    ///
    /// What the first says about itself holds for the whole, but for times: it begins with the
    /// earliest part, and lasts as long as the longest.
    pub fn merge(parts: Vec<Self>) -> Result<Option<Self>, MergeError> {
        let mut parts = parts.into_iter();
        let Some(first) = parts.next() else { return Ok(None) };
        let rest: Vec<Self> = parts.collect();
        if rest.is_empty() {
            return Ok(Some(first));
        }
        let mut builder = ProfileBuilder::new(first.format, first.value_types.clone());
        *builder.meta() = first.meta.clone();
        for part in std::iter::once(&first).chain(&rest) {
            if part.value_types != first.value_types {
                return Err(MergeError::ValueTypes(first.list_value_types(), part.list_value_types()));
            }
            let meta = builder.meta();
            meta.time_ns = [meta.time_ns, part.meta.time_ns].into_iter().flatten().min();
            meta.duration_ns = meta.duration_ns.max(part.meta.duration_ns);
            append(&mut builder, part)?;
            for note in &part.notes {
                if !builder.profile.notes.contains(note) {
                    builder.note(note.clone());
                }
            }
        }
        Ok(Some(builder.finish()?))
    }

    /// Says when the profile was taken, and over what time, for a source that knows better than
    /// the file.
    #[must_use]
    pub fn with_times(mut self, time_ns: Option<i64>, duration_ns: Option<i64>) -> Self {
        self.meta.time_ns = time_ns;
        self.meta.duration_ns = duration_ns;
        self
    }

    /// Adds to what is to be known about the profile: sentences for the user.
    #[must_use]
    pub fn with_notes(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.notes.extend(notes);
        self
    }
}

fn append(builder: &mut ProfileBuilder, part: &Profile) -> Result<(), BuildError> {
    let strings: Vec<StrId> = {
        let mut rows = Vec::with_capacity(part.strings.len());
        for row in 0..part.strings.len() {
            rows.push(builder.string(part.text(StrId(u32::try_from(row).unwrap_or(u32::MAX))))?);
        }
        rows
    };
    let text = |id: StrId| strings[id.index()];
    let mut known: FxHashMap<Mapping, MapId> = FxHashMap::default();
    for (row, &mapping) in builder.profile.mappings.iter().enumerate() {
        known.entry(mapping).or_insert(MapId(u32::try_from(row).unwrap_or(u32::MAX)));
    }
    let mut mappings = vec![MapId::NONE];
    for mapping in part.mappings.iter().skip(1) {
        let mapping = Mapping { file: text(mapping.file), build_id: text(mapping.build_id), ..*mapping };
        let row = match known.get(&mapping) {
            Some(&row) => row,
            None => builder.push_mapping(mapping)?,
        };
        known.insert(mapping, row);
        mappings.push(row);
    }
    let mut functions = vec![FuncId::NONE];
    for function in part.functions.iter().skip(1) {
        functions.push(builder.function(
            part.text(function.name),
            part.text(function.system_name),
            part.path(function.file),
            function.start_line,
        )?);
    }
    let mut locations = vec![LocId::NONE];
    let mut lines: Vec<Line> = Vec::new();
    for id in part.locations.ids() {
        lines.clear();
        let own = part.locations.lines(id);
        lines.extend(own.iter().map(|line| Line { function: functions[line.function.index()], ..*line }));
        let mapping = mappings[part.locations.mapping(id).index()];
        locations.push(builder.location(mapping, part.locations.address(id), &lines)?);
    }
    let (mut stack, mut values, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    for sample in 0..part.samples.len() {
        stack.clear();
        stack.extend(part.samples.stack(sample).iter().map(|id| locations[id.index()]));
        values.clear();
        values.extend(part.samples.values.iter().map(|column| column[sample]));
        labels.clear();
        labels.extend(part.samples.labels(sample).iter().map(|label| Label {
            key: text(label.key),
            value: match label.value {
                LabelValue::Text(value) => LabelValue::Text(text(value)),
                LabelValue::Number(number, unit) => LabelValue::Number(number, text(unit)),
            },
        }));
        builder.push_sample(&stack, &values, &labels)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{LineNo, ValueType};

    fn part(unit: &str, line: u32, value: i64) -> Profile {
        let mut builder = ProfileBuilder::new("test", vec![ValueType::new("cpu", unit)]);
        let mapping = builder.string("/bin/a").unwrap();
        let mapping = builder.push_mapping(Mapping { file: mapping, ..Mapping::default() }).unwrap();
        let function = builder.function("main", "", "./src/main.rs", LineNo(1)).unwrap();
        let location = builder.location(mapping, 0, &[Line { function, line: LineNo(line), column: 0 }]).unwrap();
        let (key, text) = (builder.string("thread").unwrap(), builder.string("worker").unwrap());
        builder.push_sample(&[location], &[value], &[Label { key, value: LabelValue::Text(text) }]).unwrap();
        builder.note("odd");
        builder.finish().unwrap().with_times(Some(i64::from(line)), Some(value))
    }

    #[test]
    fn totals_add_up_and_equal_rows_are_one() {
        let whole = Profile::merge(vec![part("ns", 3, 5), part("ns", 3, 7), part("ns", 4, 1)]).unwrap().unwrap();
        assert_eq!((whole.sum(0).total, whole.samples().len()), (13, 3));
        assert_eq!((whole.functions().len(), whole.mappings().len(), whole.locations().len()), (2, 2, 3));
        assert_eq!((whole.meta().time_ns, whole.meta().duration_ns), (Some(3), Some(7)));
        assert_eq!(whole.notes(), ["odd"]);
        let label = whole.samples().labels(2)[0];
        let LabelValue::Text(value) = label.value else { panic!("it is a text") };
        assert_eq!((whole.text(label.key), whole.text(value)), ("thread", "worker"));
    }

    #[test]
    fn one_part_stays_as_it_is_and_none_is_none() {
        assert_eq!(Profile::merge(vec![part("ns", 3, 5)]).unwrap().unwrap().sum(0).total, 5);
        assert!(Profile::merge(Vec::new()).unwrap().is_none());
    }

    #[test]
    fn what_measures_something_else_is_refused() {
        let error = Profile::merge(vec![part("ns", 3, 5), part("bytes", 3, 5)]).unwrap_err();
        assert_eq!(error.to_string(), "its parts measure different things: cpu/ns and cpu/bytes");
        let error = Profile::merge(vec![part("ns", 3, i64::MAX), part("ns", 3, 1)]).unwrap_err();
        assert!(matches!(error, MergeError::Build(BuildError::TotalOverflow(_))));
    }
}
