//! pprof messages for tests: to write profiles, also in the unusual ways that the format
//! allows, and to read them for the [`reference`](mod@crate::reference).
//!
//! The messages are plain prost structs, so what they accept and write is protobuf's own
//! idea of it, not ours. Strings are bytes, because a hostile file may hold any.
//!
//! What is not here: checks. A test may build any nonsense.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use prost::Message;

use crate::stored::inflate;

pub use messages::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};

/// The messages of `perftools.profiles`. Names, numbers and meaning are those of
/// `profile.proto`; an `i64` that names text is an index into `string_table`.
#[expect(
    missing_docs,
    clippy::struct_excessive_bools,
    reason = "the fields are those of profile.proto, described there"
)]
mod messages {
    /// A whole file.
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Profile {
        #[prost(message, repeated, tag = "1")]
        pub sample_type: Vec<ValueType>,
        #[prost(message, repeated, tag = "2")]
        pub sample: Vec<Sample>,
        #[prost(message, repeated, tag = "3")]
        pub mapping: Vec<Mapping>,
        #[prost(message, repeated, tag = "4")]
        pub location: Vec<Location>,
        #[prost(message, repeated, tag = "5")]
        pub function: Vec<Function>,
        #[prost(bytes = "vec", repeated, tag = "6")]
        pub string_table: Vec<Vec<u8>>,
        #[prost(int64, tag = "7")]
        pub drop_frames: i64,
        #[prost(int64, tag = "8")]
        pub keep_frames: i64,
        #[prost(int64, tag = "9")]
        pub time_nanos: i64,
        #[prost(int64, tag = "10")]
        pub duration_nanos: i64,
        #[prost(message, optional, tag = "11")]
        pub period_type: Option<ValueType>,
        #[prost(int64, tag = "12")]
        pub period: i64,
        #[prost(int64, repeated, tag = "13")]
        pub comment: Vec<i64>,
        #[prost(int64, tag = "14")]
        pub default_sample_type: i64,
        #[prost(int64, tag = "15")]
        pub doc_url: i64,
    }

    /// What a value counts.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
    pub struct ValueType {
        #[prost(int64, tag = "1")]
        pub r#type: i64,
        #[prost(int64, tag = "2")]
        pub unit: i64,
    }

    /// A stack, leaf first, with one value per value type.
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Sample {
        #[prost(uint64, repeated, tag = "1")]
        pub location_id: Vec<u64>,
        #[prost(int64, repeated, tag = "2")]
        pub value: Vec<i64>,
        #[prost(message, repeated, tag = "3")]
        pub label: Vec<Label>,
    }

    /// A label of a sample: text or a number.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
    pub struct Label {
        #[prost(int64, tag = "1")]
        pub key: i64,
        #[prost(int64, tag = "2")]
        pub str: i64,
        #[prost(int64, tag = "3")]
        pub num: i64,
        #[prost(int64, tag = "4")]
        pub num_unit: i64,
    }

    /// A binary.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
    pub struct Mapping {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(uint64, tag = "2")]
        pub memory_start: u64,
        #[prost(uint64, tag = "3")]
        pub memory_limit: u64,
        #[prost(uint64, tag = "4")]
        pub file_offset: u64,
        #[prost(int64, tag = "5")]
        pub filename: i64,
        #[prost(int64, tag = "6")]
        pub build_id: i64,
        #[prost(bool, tag = "7")]
        pub has_functions: bool,
        #[prost(bool, tag = "8")]
        pub has_filenames: bool,
        #[prost(bool, tag = "9")]
        pub has_line_numbers: bool,
        #[prost(bool, tag = "10")]
        pub has_inline_frames: bool,
    }

    /// A place in a binary; its lines innermost first.
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Location {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(uint64, tag = "2")]
        pub mapping_id: u64,
        #[prost(uint64, tag = "3")]
        pub address: u64,
        #[prost(message, repeated, tag = "4")]
        pub line: Vec<Line>,
        #[prost(bool, tag = "5")]
        pub is_folded: bool,
    }

    /// A place in the source.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
    pub struct Line {
        #[prost(uint64, tag = "1")]
        pub function_id: u64,
        #[prost(int64, tag = "2")]
        pub line: i64,
        #[prost(int64, tag = "3")]
        pub column: i64,
    }

    /// A function.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
    pub struct Function {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(int64, tag = "2")]
        pub name: i64,
        #[prost(int64, tag = "3")]
        pub system_name: i64,
        #[prost(int64, tag = "4")]
        pub filename: i64,
        #[prost(int64, tag = "5")]
        pub start_line: i64,
    }
}

/// Fills a [`Profile`] and keeps its tables free of duplicates, as real writers do.
///
/// ```
/// use perflens_tests::pprof::{Builder, Line};
/// let mut builder = Builder::new(&[("cpu", "nanoseconds")]);
/// let main = builder.function("main", "src/main.rs", 1);
/// let leaf = builder.location(0, 0, &[Line { function_id: main, line: 3, column: 0 }]);
/// builder.sample(&[leaf], &[30]);
/// assert_eq!(builder.profile.sample.len(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    /// What has been built so far; free to be changed by hand.
    pub profile: Profile,
    strings: HashMap<Vec<u8>, i64>,
    functions: HashMap<(i64, i64, i64), u64>,
    locations: HashMap<(u64, u64, Vec<Line>), u64>,
    mappings: HashMap<String, u64>,
}

impl Builder {
    /// A profile without samples, with these value types (type, unit).
    pub fn new(value_types: &[(&str, &str)]) -> Self {
        let mut builder = Self {
            profile: Profile { string_table: vec![Vec::new()], ..Profile::default() },
            strings: HashMap::from([(Vec::new(), 0)]),
            functions: HashMap::new(),
            locations: HashMap::new(),
            mappings: HashMap::new(),
        };
        for (kind, unit) in value_types {
            let value_type = builder.value_type(kind, unit);
            builder.profile.sample_type.push(value_type);
        }
        builder
    }

    /// Index of a text in the string table.
    pub fn string(&mut self, text: impl AsRef<[u8]>) -> i64 {
        let table = &mut self.profile.string_table;
        *self.strings.entry(text.as_ref().to_vec()).or_insert_with_key(|text| {
            table.push(text.clone());
            as_i64(table.len() - 1)
        })
    }

    /// A value type from its two words.
    pub fn value_type(&mut self, kind: &str, unit: &str) -> ValueType {
        ValueType { r#type: self.string(kind), unit: self.string(unit) }
    }

    /// Id of a function. The system name is the name.
    pub fn function(&mut self, name: &str, file: &str, start_line: i64) -> u64 {
        let (name, filename) = (self.string(name), self.string(file));
        let table = &mut self.profile.function;
        *self.functions.entry((name, filename, start_line)).or_insert_with(|| {
            let id = table.len() as u64 + 1;
            table.push(Function { id, name, system_name: name, filename, start_line });
            id
        })
    }

    /// Id of a location; `lines` innermost first.
    pub fn location(&mut self, mapping_id: u64, address: u64, lines: &[Line]) -> u64 {
        let table = &mut self.profile.location;
        *self.locations.entry((mapping_id, address, lines.to_vec())).or_insert_with(|| {
            let id = table.len() as u64 + 1;
            table.push(Location { id, mapping_id, address, line: lines.to_vec(), is_folded: false });
            id
        })
    }

    /// Id of the mapping of a binary, which covers 1 GiB of its own.
    pub fn mapping(&mut self, binary: &str) -> u64 {
        if let Some(&id) = self.mappings.get(binary) {
            return id;
        }
        let filename = self.string(binary);
        let id = self.profile.mapping.len() as u64 + 1;
        self.profile.mapping.push(Mapping {
            id,
            memory_start: id << 30,
            memory_limit: (id + 1) << 30,
            filename,
            has_functions: true,
            ..Mapping::default()
        });
        self.mappings.insert(binary.to_owned(), id);
        id
    }

    /// Appends a sample; `stack` holds location ids, leaf first.
    pub fn sample(&mut self, stack: &[u64], values: &[i64]) -> &mut Sample {
        self.profile.sample.push(Sample { location_id: stack.to_vec(), value: values.to_vec(), label: Vec::new() });
        self.profile.sample.last_mut().expect("a sample was just pushed")
    }

    /// A label with text.
    pub fn text_label(&mut self, key: &str, value: &str) -> Label {
        Label { key: self.string(key), str: self.string(value), ..Label::default() }
    }

    /// A label with a number; an empty unit is none.
    pub fn number_label(&mut self, key: &str, value: i64, unit: &str) -> Label {
        Label { key: self.string(key), num: value, num_unit: self.string(unit), ..Label::default() }
    }
}

fn as_i64(index: usize) -> i64 {
    i64::try_from(index).expect("tables of tests are small")
}

/// The plain bytes of a profile: fields in order, integers packed.
pub fn raw(profile: &Profile) -> Vec<u8> {
    profile.encode_to_vec()
}

/// Reads a profile, packed or not; `None` when it is none.
pub fn read(bytes: &[u8]) -> Option<Profile> {
    Profile::decode(&inflate(bytes)[..]).ok()
}

/// One gzip member.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("writing to memory");
    encoder.finish().expect("writing to memory")
}

/// Several gzip members in a row, cut before each of the offsets.
pub fn gzip_members(bytes: &[u8], cuts: &[usize]) -> Vec<u8> {
    let mut cuts: Vec<usize> = cuts.iter().map(|&cut| cut.min(bytes.len())).collect();
    cuts.sort_unstable();
    let ends = cuts.iter().copied().chain([bytes.len()]);
    let starts = [0].into_iter().chain(cuts.iter().copied());
    starts.zip(ends).flat_map(|(start, end)| gzip(&bytes[start..end])).collect()
}

/// The bytes of a profile with every repeated integer as a field of its own.
pub fn unpacked(profile: &Profile) -> Vec<u8> {
    wire(profile, &mut Style { random: None })
}

/// The bytes of a profile with everything shuffled that protobuf lets a writer choose: the
/// order of fields, packed or unpacked integers (also mixed in one message), unknown fields
/// in between, non-minimal variable-length numbers.
pub fn scrambled(profile: &Profile, seed: u64) -> Vec<u8> {
    wire(profile, &mut Style { random: Some(Random(seed)) })
}

/// The same profile under other ids: tables, samples and strings in another order, ids sparse.
pub fn permuted(profile: &Profile, seed: u64) -> Profile {
    let mut random = Random(seed);
    let mut out = profile.clone();

    let mut order: Vec<usize> = (1..profile.string_table.len()).collect();
    random.shuffle(&mut order);
    let mut new_index = vec![0; profile.string_table.len()];
    for (i, &old) in order.iter().enumerate() {
        new_index[old] = as_i64(i + 1);
        out.string_table[i + 1].clone_from(&profile.string_table[old]);
    }
    let string = |index: &mut i64| {
        if let Some(&new) = usize::try_from(*index).ok().and_then(|i| new_index.get(i)) {
            *index = new;
        }
    };
    let functions = random.new_ids(profile.function.iter().map(|f| f.id));
    let locations = random.new_ids(profile.location.iter().map(|l| l.id));
    let mappings = random.new_ids(profile.mapping.iter().map(|m| m.id));
    let id = |table: &HashMap<u64, u64>, id: &mut u64| {
        // An id that points at nothing must go on pointing at nothing.
        *id = table.get(id).copied().unwrap_or(if *id == 0 { 0 } else { u64::MAX });
    };

    for value_type in out.sample_type.iter_mut().chain(&mut out.period_type) {
        string(&mut value_type.r#type);
        string(&mut value_type.unit);
    }
    for index in [&mut out.drop_frames, &mut out.keep_frames, &mut out.default_sample_type, &mut out.doc_url] {
        string(index);
    }
    out.comment.iter_mut().for_each(string);
    for mapping in &mut out.mapping {
        id(&mappings, &mut mapping.id);
        string(&mut mapping.filename);
        string(&mut mapping.build_id);
    }
    for function in &mut out.function {
        id(&functions, &mut function.id);
        string(&mut function.name);
        string(&mut function.system_name);
        string(&mut function.filename);
    }
    for location in &mut out.location {
        id(&locations, &mut location.id);
        id(&mappings, &mut location.mapping_id);
        location.line.iter_mut().for_each(|line| id(&functions, &mut line.function_id));
    }
    for sample in &mut out.sample {
        sample.location_id.iter_mut().for_each(|location| id(&locations, location));
        for label in &mut sample.label {
            string(&mut label.key);
            string(&mut label.str);
            string(&mut label.num_unit);
        }
    }
    random.shuffle(&mut out.mapping);
    random.shuffle(&mut out.function);
    random.shuffle(&mut out.location);
    random.shuffle(&mut out.sample);
    out
}

/// A small generator of pseudo-random numbers (splitmix64), so that a seed is all a failure
/// needs to be repeated.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next_u64() % bound as u64).expect("it is below a usize")
    }

    /// Puts items into another order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }

    fn new_ids(&mut self, old: impl Iterator<Item = u64>) -> HashMap<u64, u64> {
        // Random above, counted below: sparse, distinct, and never 0 or `u64::MAX`.
        old.enumerate().map(|(i, old)| (old, ((self.next_u64() >> 1) & !0xf_ffff) | (i as u64 + 1))).collect()
    }
}

/// How [`wire`] writes; `None` is plain and unpacked.
struct Style {
    random: Option<Random>,
}

/// The fields of one message under way, by number.
#[derive(Default)]
struct Fields(BTreeMap<u32, Vec<Vec<u8>>>);

impl Style {
    fn coin(&mut self) -> bool {
        self.random.as_mut().is_some_and(|random| random.next_u64() & 1 == 1)
    }

    fn varint(&mut self, mut value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        while value >= 0x80 {
            out.push(u8::try_from(value & 0x7f).expect("7 bits") | 0x80);
            value >>= 7;
        }
        let last = u8::try_from(value).expect("7 bits");
        // A number may carry empty groups at its end; ten bytes are the most.
        if out.len() < 9 && self.random.as_mut().is_some_and(|random| random.next_u64().is_multiple_of(16)) {
            out.extend([last | 0x80, 0]);
        } else {
            out.push(last);
        }
        out
    }

    fn field(&mut self, number: u32, wire_type: u64, payload: Vec<u8>) -> Vec<u8> {
        // Tags stay minimal: a raw pprof file is recognised by its first one.
        let mut out = Style { random: None }.varint((u64::from(number) << 3) | wire_type);
        if wire_type == 2 {
            out.extend(self.varint(payload.len() as u64));
        }
        out.extend(payload);
        out
    }

    fn bytes(&mut self, fields: &mut Fields, number: u32, payload: Vec<u8>) {
        let field = self.field(number, 2, payload);
        fields.0.entry(number).or_default().push(field);
    }

    fn unsigned(&mut self, fields: &mut Fields, number: u32, value: u64) {
        if value != 0 || self.coin() {
            let payload = self.varint(value);
            let field = self.field(number, 0, payload);
            fields.0.entry(number).or_default().push(field);
        }
    }

    fn signed(&mut self, fields: &mut Fields, number: u32, value: i64) {
        self.unsigned(fields, number, value.cast_unsigned());
    }

    fn repeated(&mut self, fields: &mut Fields, number: u32, values: &[u64]) {
        let mut rest = values;
        while let Some((&first, tail)) = rest.split_first() {
            if self.coin() {
                let n = 1 + self.random.as_mut().map_or(0, |random| random.below(rest.len()));
                let packed: Vec<u8> = rest[..n].iter().flat_map(|&value| self.varint(value)).collect();
                self.bytes(fields, number, packed);
                rest = &rest[n..];
            } else {
                let payload = self.varint(first);
                let field = self.field(number, 0, payload);
                fields.0.entry(number).or_default().push(field);
                rest = tail;
            }
        }
    }

    /// Joins fields. Those of one number keep their order, which has a meaning.
    fn join(&mut self, fields: Fields) -> Vec<u8> {
        self.join_with(fields, true)
    }

    fn join_with(&mut self, fields: Fields, with_unknown: bool) -> Vec<u8> {
        let mut numbers: Vec<u32> = fields.0.iter().flat_map(|(&n, list)| list.iter().map(move |_| n)).collect();
        let mut queues: BTreeMap<u32, _> = fields.0.into_iter().map(|(n, list)| (n, list.into_iter())).collect();
        if let Some(random) = &mut self.random {
            random.shuffle(&mut numbers);
        }
        let mut out = Vec::new();
        for number in numbers {
            out.extend(queues.get_mut(&number).and_then(Iterator::next).expect("one field per number"));
            if with_unknown && self.random.as_mut().is_some_and(|random| random.next_u64().is_multiple_of(32)) {
                out.extend(self.field(1000, 2, b"unknown".to_vec()));
                out.extend(self.field(1001, 5, vec![1, 2, 3, 4]));
                out.extend(self.field(1002, 1, vec![1, 2, 3, 4, 5, 6, 7, 8]));
            }
        }
        out
    }

    fn value_type(&mut self, value_type: ValueType) -> Vec<u8> {
        let mut fields = Fields::default();
        self.signed(&mut fields, 1, value_type.r#type);
        self.signed(&mut fields, 2, value_type.unit);
        // By its value types a raw pprof file is told apart from an OTLP one.
        self.join_with(fields, false)
    }
}

fn wire(profile: &Profile, style: &mut Style) -> Vec<u8> {
    let mut top = Fields::default();
    for &value_type in &profile.sample_type {
        let payload = style.value_type(value_type);
        style.bytes(&mut top, 1, payload);
    }
    for sample in &profile.sample {
        let mut fields = Fields::default();
        let values: Vec<u64> = sample.value.iter().map(|value| value.cast_unsigned()).collect();
        style.repeated(&mut fields, 1, &sample.location_id);
        style.repeated(&mut fields, 2, &values);
        for label in &sample.label {
            let mut inner = Fields::default();
            style.signed(&mut inner, 1, label.key);
            style.signed(&mut inner, 2, label.str);
            style.signed(&mut inner, 3, label.num);
            style.signed(&mut inner, 4, label.num_unit);
            let payload = style.join(inner);
            style.bytes(&mut fields, 3, payload);
        }
        let payload = style.join(fields);
        style.bytes(&mut top, 2, payload);
    }
    for mapping in &profile.mapping {
        let mut fields = Fields::default();
        style.unsigned(&mut fields, 1, mapping.id);
        style.unsigned(&mut fields, 2, mapping.memory_start);
        style.unsigned(&mut fields, 3, mapping.memory_limit);
        style.unsigned(&mut fields, 4, mapping.file_offset);
        style.signed(&mut fields, 5, mapping.filename);
        style.signed(&mut fields, 6, mapping.build_id);
        style.unsigned(&mut fields, 7, u64::from(mapping.has_functions));
        style.unsigned(&mut fields, 8, u64::from(mapping.has_filenames));
        style.unsigned(&mut fields, 9, u64::from(mapping.has_line_numbers));
        style.unsigned(&mut fields, 10, u64::from(mapping.has_inline_frames));
        let payload = style.join(fields);
        style.bytes(&mut top, 3, payload);
    }
    for location in &profile.location {
        let mut fields = Fields::default();
        style.unsigned(&mut fields, 1, location.id);
        style.unsigned(&mut fields, 2, location.mapping_id);
        style.unsigned(&mut fields, 3, location.address);
        for line in &location.line {
            let mut inner = Fields::default();
            style.unsigned(&mut inner, 1, line.function_id);
            style.signed(&mut inner, 2, line.line);
            style.signed(&mut inner, 3, line.column);
            let payload = style.join(inner);
            style.bytes(&mut fields, 4, payload);
        }
        style.unsigned(&mut fields, 5, u64::from(location.is_folded));
        let payload = style.join(fields);
        style.bytes(&mut top, 4, payload);
    }
    for function in &profile.function {
        let mut fields = Fields::default();
        style.unsigned(&mut fields, 1, function.id);
        style.signed(&mut fields, 2, function.name);
        style.signed(&mut fields, 3, function.system_name);
        style.signed(&mut fields, 4, function.filename);
        style.signed(&mut fields, 5, function.start_line);
        let payload = style.join(fields);
        style.bytes(&mut top, 5, payload);
    }
    for text in &profile.string_table {
        style.bytes(&mut top, 6, text.clone());
    }
    style.signed(&mut top, 7, profile.drop_frames);
    style.signed(&mut top, 8, profile.keep_frames);
    style.signed(&mut top, 9, profile.time_nanos);
    style.signed(&mut top, 10, profile.duration_nanos);
    if let Some(period_type) = profile.period_type {
        let payload = style.value_type(period_type);
        style.bytes(&mut top, 11, payload);
    }
    style.signed(&mut top, 12, profile.period);
    let comments: Vec<u64> = profile.comment.iter().map(|comment| comment.cast_unsigned()).collect();
    style.repeated(&mut top, 13, &comments);
    style.signed(&mut top, 14, profile.default_sample_type);
    style.signed(&mut top, 15, profile.doc_url);
    style.join(top)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Profile {
        let mut builder = Builder::new(&[("samples", "count"), ("cpu", "nanoseconds")]);
        let bin = builder.mapping("/bin/app");
        let main = builder.function("main", "src/main.rs", 1);
        let work = builder.function("work", "src/lib.rs", 0);
        let line = |function_id, line| Line { function_id, line, column: 0 };
        let root = builder.location(bin, 0x10, &[line(main, 10)]);
        let leaf = builder.location(bin, 0x20, &[line(work, -1), line(main, 1 << 40)]);
        let label = builder.text_label("thread", "worker");
        builder.sample(&[leaf, root, root], &[-3, i64::MAX]).label.push(label);
        builder.sample(&[], &[1, 2]);
        builder.profile.comment = vec![1, 2, 3];
        builder.profile.period_type = Some(builder.value_type("cpu", "nanoseconds"));
        builder.profile
    }

    #[test]
    fn every_way_of_writing_reads_back_as_the_same_profile() {
        let profile = example();
        assert_eq!(Profile::decode(&*raw(&profile)).unwrap(), profile);
        assert_eq!(Profile::decode(&*unpacked(&profile)).unwrap(), profile);
        assert_ne!(unpacked(&profile), raw(&profile));
        for seed in 0..50 {
            assert_eq!(Profile::decode(&*scrambled(&profile, seed)).unwrap(), profile, "seed {seed}");
        }
    }

    #[test]
    fn permuting_keeps_what_is_said() {
        let profile = example();
        let permuted = permuted(&profile, 7);
        assert_ne!(permuted, profile);
        let name = |profile: &Profile, id: u64| {
            let function = profile.function.iter().find(|f| f.id == id).unwrap();
            profile.string_table[usize::try_from(function.name).unwrap()].clone()
        };
        let stack = |profile: &Profile| -> Vec<(Vec<u8>, i64)> {
            let sample = profile.sample.iter().find(|s| !s.location_id.is_empty()).unwrap();
            let location = |id: &u64| profile.location.iter().find(|l| l.id == *id).unwrap().clone();
            let lines = sample.location_id.iter().flat_map(|id| location(id).line);
            lines.map(|line| (name(profile, line.function_id), line.line)).collect()
        };
        assert_eq!(stack(&permuted), stack(&profile));
    }

    #[test]
    fn members_join_to_the_whole() {
        use std::io::Read;
        let mut joined = Vec::new();
        let members = gzip_members(b"hello world", &[6, 3, 99]);
        flate2::read::MultiGzDecoder::new(&*members).read_to_end(&mut joined).unwrap();
        assert_eq!(joined, b"hello world");
    }
}
