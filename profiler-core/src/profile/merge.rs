//! Several profiles as one, for what comes in parts: the instances of a service, each with a
//! snapshot of its own; and for the services of a whole, whose samples then say whose they are.
//!
//! Every sample of every part is a sample of the whole, so totals add up exactly; tables are
//! shared as far as their rows are equal.

use rustc_hash::FxHashMap;

use super::{BuildError, FuncId, Label, LabelValue, Line, LineDetail, LocId, MapId, Mapping, Profile};
use super::{ProfileBuilder, StrId, ValueType, Work};
use crate::cancel::{CancelFlag, Cancelled};

/// Profiles can't be added up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// They don't measure the same.
    #[error("its parts measure different things: {0} and {1}")]
    ValueTypes(String, String),
    /// No value type is in all of them.
    #[error("they have no value type in common")]
    NothingInCommon,
    /// Someone stopped it.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// Together they are too much.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl Profile {
    /// Adds profiles up; `None` without any.
    ///
    /// What the first says about itself holds for the whole, but for times: it begins with the
    /// earliest part, lasts as long as the longest, and has a period if all have the same; its work is
    /// that of all, or unknown.
    pub fn merge(parts: Vec<Self>) -> Result<Option<Self>, MergeError> {
        let mut parts = parts.into_iter();
        let Some(first) = parts.next() else { return Ok(None) };
        let rest: Vec<Self> = parts.collect();
        if rest.is_empty() {
            return Ok(Some(first));
        }
        let mut builder = ProfileBuilder::new(first.format, first.value_types.clone());
        *builder.meta() = first.meta.clone();
        let work = Work::sum(std::iter::once(&first).chain(&rest).map(|part| part.meta.work()));
        let comments = &mut builder.meta().comments;
        comments.retain(|comment| Work::of_comment(comment).is_none());
        comments.extend(work.map(|work| work.to_string()));
        for part in std::iter::once(&first).chain(&rest) {
            if part.value_types != first.value_types {
                return Err(MergeError::ValueTypes(first.list_value_types(), part.list_value_types()));
            }
            let meta = builder.meta();
            meta.time_ns = [meta.time_ns, part.meta.time_ns].into_iter().flatten().min();
            meta.duration_ns = meta.duration_ns.max(part.meta.duration_ns);
            if !part.has_period_of(&first) {
                (meta.period, meta.period_type) = (0, None);
            }
            let columns: Vec<usize> = (0..part.value_types.len()).collect();
            append(&mut builder, part, &columns, None, &CancelFlag::new())?;
            for note in &part.notes {
                if !builder.profile.notes.contains(note) {
                    builder.note(note.clone());
                }
            }
        }
        Ok(Some(builder.finish()?))
    }

    /// Adds up profiles that need not be alike, each with the text that its samples get as the
    /// label `key`. The value types are those that all of them have, in the order of the first.
    pub fn labelled_sum(parts: &[(&Self, &str)], key: &str, cancel: &CancelFlag) -> Result<Self, MergeError> {
        let Some((&(first, _), rest)) = parts.split_first() else { return Err(MergeError::NothingInCommon) };
        let is_common = |value_type: &&ValueType| rest.iter().all(|(other, _)| other.value_types.contains(value_type));
        let common: Vec<ValueType> = first.value_types.iter().filter(is_common).cloned().collect();
        if common.is_empty() {
            return Err(MergeError::NothingInCommon);
        }
        let mut builder = ProfileBuilder::new(first.format, common.clone());
        let key = builder.string(key)?;
        for &(part, name) in parts {
            let owner = Label { key, value: LabelValue::Text(builder.string(name)?) };
            let column = |value_type: &ValueType| part.value_types.iter().position(|own| own == value_type);
            let columns: Vec<usize> = common.iter().filter_map(column).collect();
            append(&mut builder, part, &columns, Some(owner), cancel)?;
        }
        describe(&mut builder, first, rest, &common);
        Ok(builder.finish()?)
    }

    /// Says when the profile was taken, and over what time, for a source that knows better than
    /// the file.
    #[must_use]
    pub fn with_times(mut self, time_ns: Option<i64>, duration_ns: Option<i64>) -> Self {
        self.meta.time_ns = time_ns;
        self.meta.duration_ns = duration_ns;
        self
    }

    /// Says how far apart samples are on average, in nanoseconds of whatever its profiler's clock counts.
    #[must_use]
    pub fn with_period(mut self, nanoseconds: i64, clock: &str) -> Self {
        self.meta.set_average_period(nanoseconds, clock);
        self
    }

    /// Whether its samples stand for as much: a period that differs turns no count into a time.
    fn has_period_of(&self, other: &Self) -> bool {
        self.meta.period == other.meta.period && self.meta.period_type == other.meta.period_type
    }

    /// Says that a server has looked up its addresses, and gives the lines that functions start on.
    #[must_use]
    pub fn with_looked_up_lines(mut self) -> Self {
        self.meta.has_looked_up_lines = true;
        self
    }

    /// Adds to the comments of its producer.
    #[must_use]
    pub fn with_comment(mut self, comment: String) -> Self {
        self.meta.comments.push(comment);
        self
    }

    /// Adds to what is to be known about the profile: sentences for the user.
    #[must_use]
    pub fn with_notes(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.notes.extend(notes);
        self
    }
}

/// What the sum says about itself.
fn describe(builder: &mut ProfileBuilder, first: &Profile, rest: &[(&Profile, &str)], common: &[ValueType]) {
    let all = || std::iter::once(first).chain(rest.iter().map(|(part, _)| *part));
    let meta = first.meta();
    let default = &first.value_types()[meta.default_value_type];
    let is_same = |same: &dyn Fn(&Profile) -> bool| all().all(same);
    let end = |part: &Profile| Some(part.meta().time_ns?.saturating_add(part.meta().duration_ns.unwrap_or(0)));
    let time_ns = all().map(|part| part.meta().time_ns).min().flatten();
    let own = builder.meta();
    if let Some(at) = common.iter().position(|value_type| value_type == default) {
        own.default_value_type = at;
    }
    own.time_ns = time_ns;
    own.duration_ns = match (time_ns, all().filter_map(end).max()) {
        (Some(start), Some(end)) => Some(end.saturating_sub(start)),
        _ => all().filter_map(|part| part.meta().duration_ns).max(),
    };
    if is_same(&|part| part.has_period_of(first)) {
        own.period = meta.period;
        own.period_type.clone_from(&meta.period_type);
    }
    let prunes_alike =
        is_same(&|part| part.meta().drop_frames == meta.drop_frames && part.meta().keep_frames == meta.keep_frames);
    if prunes_alike {
        own.drop_frames.clone_from(&meta.drop_frames);
        own.keep_frames.clone_from(&meta.keep_frames);
    }
    if all().any(|part| part.meta().line_detail == LineDetail::FunctionOnly) {
        own.line_detail = LineDetail::FunctionOnly;
    }
    own.has_looked_up_lines = all().any(|part| part.meta().has_looked_up_lines);
    if !prunes_alike {
        builder.note("the profiles leave out different frames; the sum has all of them");
    }
    let dropped: Vec<String> =
        first.value_types().iter().filter(|it| !common.contains(it)).map(ToString::to_string).collect();
    if !dropped.is_empty() {
        builder.note(format!("not all of the profiles have {}", dropped.join(", ")));
    }
    for part in all() {
        for note in part.notes() {
            builder.note(note.clone());
        }
    }
}

/// Adds the samples of a part, with these of its values, and with a label for all of them.
fn append(
    builder: &mut ProfileBuilder,
    part: &Profile,
    columns: &[usize],
    owner: Option<Label>,
    cancel: &CancelFlag,
) -> Result<(), MergeError> {
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
        if id.0.is_multiple_of(4096) {
            cancel.check()?;
        }
        lines.clear();
        let own = part.locations.lines(id);
        lines.extend(own.iter().map(|line| Line { function: functions[line.function.index()], ..*line }));
        let mapping = mappings[part.locations.mapping(id).index()];
        locations.push(builder.location(mapping, part.locations.address(id), &lines)?);
    }
    let (mut stack, mut values, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    let calls = part.calls();
    for call in 0..calls.len() {
        values.clear();
        values.extend(columns.iter().map(|&column| calls.values(column)[call]));
        let of = |location: LocId| locations[location.index()];
        builder.push_call(of(calls.caller(call)), of(calls.callee(call)), &values)?;
    }
    for sample in 0..part.samples.len() {
        if sample % 4096 == 0 {
            cancel.check()?;
        }
        stack.clear();
        stack.extend(part.samples.stack(sample).iter().map(|id| locations[id.index()]));
        values.clear();
        values.extend(columns.iter().map(|&column| part.samples.values[column][sample]));
        labels.clear();
        labels.extend(owner);
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
    fn the_work_of_all_is_their_sum_or_unknown() {
        let of = |comment: &str| part("ns", 3, 5).with_comment(comment.to_owned());
        for (comments, sum) in [
            (&["work: 3 × a", "work: 4 × a", "work: 5 × a"][..], Some("work: 12 × a")),
            (&["work: 3 × a", "work: 4 × b"], None),
            (&["work: 3 × a", "of something"], None),
            (&["of something", "work: 3 × a"], None),
            (&["work: 18446744073709551615 × a", "work: 1 × a"], None),
        ] {
            let whole = Profile::merge(comments.iter().map(|comment| of(comment)).collect()).unwrap().unwrap();
            assert_eq!(whole.meta().work().map(|work| work.to_string()).as_deref(), sum, "{comments:?}");
        }
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

    fn labelled(types: &[(&str, &str)], path: &str, value: i64, drop_frames: &str) -> Profile {
        let types: Vec<ValueType> = types.iter().map(|(kind, unit)| ValueType::new(*kind, *unit)).collect();
        let count = types.len();
        let mut builder = ProfileBuilder::new("test", types);
        builder.meta().time_ns = Some(value.saturating_mul(1_000));
        builder.meta().duration_ns = Some(500);
        drop_frames.clone_into(&mut builder.meta().drop_frames);
        let key = builder.string("route").unwrap();
        let text = builder.string("/search").unwrap();
        let mapping = Mapping { file: builder.string("app").unwrap(), ..Mapping::default() };
        let mapping = builder.push_mapping(mapping).unwrap();
        let function = builder.function("f", "_f", path, LineNo(1)).unwrap();
        let line = Line { function, line: LineNo(3), column: 0 };
        let location = builder.location(mapping, 16, &[line]).unwrap();
        let values: Vec<i64> = (0i64..).map(|column| value + column).take(count).collect();
        builder.push_sample(&[location], &values, &[Label { key, value: LabelValue::Text(text) }]).unwrap();
        builder.finish().unwrap()
    }

    const CPU: (&str, &str) = ("cpu", "nanoseconds");
    const WALL: (&str, &str) = ("wall", "nanoseconds");
    const SPACE: (&str, &str) = ("space", "bytes");

    #[test]
    fn samples_are_added_up_and_say_whose_they_are() {
        let (a, b) = (labelled(&[WALL, SPACE, CPU], "./x.rs", 10, ""), labelled(&[CPU, WALL], "x.rs", 20, ""));
        let sum = Profile::labelled_sum(&[(&a, "one"), (&b, "two")], "owner", &CancelFlag::new()).unwrap();
        assert_eq!(
            sum.value_types().iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["wall/nanoseconds", "cpu/nanoseconds"]
        );
        assert_eq!([sum.sum(0).total, sum.sum(1).total], [10 + 21, 12 + 20]);
        assert_eq!((sum.meta().time_ns, sum.meta().duration_ns), (Some(10_000), Some(10_500)));
        assert_eq!(sum.meta().default_value_type, 1);
        assert_eq!(sum.files().len(), 2, "one file, and none");
        assert_eq!(sum.notes(), ["not all of the profiles have space/bytes"]);
        for (sample, owner) in ["one", "two"].into_iter().enumerate() {
            let labels = sum.samples().labels(sample).iter().map(|label| {
                let LabelValue::Text(text) = label.value else { panic!("it is text") };
                (sum.text(label.key), sum.text(text))
            });
            assert_eq!(labels.collect::<Vec<_>>(), [("owner", owner), ("route", "/search")]);
            let [location] = sum.samples().stack(sample) else { panic!("one frame") };
            let line = sum.locations().lines(*location)[0];
            let function = sum.function(line.function);
            assert_eq!((sum.text(function.name), sum.path(function.file), line.line.0), ("f", "x.rs", 3));
            assert_eq!(sum.text(sum.mapping(sum.locations().mapping(*location)).file), "app");
        }
    }

    #[test]
    fn what_can_not_be_added_up_is_refused_or_told() {
        let merge = |parts: &[(&Profile, &str)]| Profile::labelled_sum(parts, "owner", &CancelFlag::new());
        let (a, b) = (labelled(&[CPU], "x.rs", 10, "drop"), labelled(&[SPACE], "x.rs", 20, ""));
        assert_eq!(merge(&[]).unwrap_err(), MergeError::NothingInCommon);
        assert_eq!(merge(&[(&a, "a"), (&b, "b")]).unwrap_err(), MergeError::NothingInCommon);
        let c = labelled(&[CPU], "x.rs", i64::MAX - 5, "");
        assert!(matches!(merge(&[(&a, "a"), (&c, "c")]), Err(MergeError::Build(_))));
        let d = labelled(&[CPU], "y.rs", 5, "");
        let sum = merge(&[(&a, "a"), (&d, "d")]).unwrap();
        assert_eq!((sum.meta().drop_frames.as_str(), sum.notes().len()), ("", 1), "{:?}", sum.notes());
        let stopped = CancelFlag::new();
        stopped.cancel();
        assert!(matches!(Profile::labelled_sum(&[(&a, "a")], "owner", &stopped), Err(MergeError::Cancelled(_))));
    }
}
