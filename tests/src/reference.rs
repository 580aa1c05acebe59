//! A second, deliberately dumb computation of every number of a report, to compare with.
//!
//! It reads a pprof message with generated structs, turns it into one list of frames with
//! text per sample, and adds up in maps, one loop per question. It knows the product's words
//! (flat, cumulative, accounting, reach) from their definitions, not from the program: there
//! is no shared code, no table of ids, no clever pass.
//!
//! What is not here: speed, other formats than pprof, what a path means in a workspace,
//! demangling (profiles of tests use names that need none), and the order of rows.

use std::collections::{BTreeMap, BTreeSet};

use crate::cli::Report;
use crate::pprof;

/// A profile as a list of samples.
#[derive(Clone, Debug)]
pub struct Samples {
    value_types: Vec<(String, String)>,
    default_type: usize,
    /// Σ|v| by value type, before any filter.
    unfiltered: Vec<i128>,
    rows: Vec<Sample>,
}

#[derive(Clone, Debug)]
struct Sample {
    /// Leaf first; within a location the innermost inlined frame first.
    stack: Vec<Frame>,
    values: Vec<i64>,
    labels: Vec<(String, String)>,
}

#[derive(Clone, Debug, Default)]
struct Frame {
    name: String,
    system_name: String,
    /// Lexically clean.
    file: String,
    line: Option<i64>,
    binary: String,
}

/// Every number of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Σ|v| of kept samples.
    pub total: i64,
    /// Σv of kept samples.
    pub net: i64,
    /// Σ|v| of all samples.
    pub total_unfiltered: i64,
    /// Kept samples whose value is not 0.
    pub records: u64,
    /// Σ|v| of those in the type that counts samples, if the profile has it.
    pub samples: Option<i64>,
    /// By file and line.
    pub lines: BTreeMap<(String, i64), Cost>,
    /// Names of the functions on each line.
    pub functions_of_lines: BTreeMap<(String, i64), BTreeSet<String>>,
    /// By name and file.
    pub functions: BTreeMap<(String, String), Cost>,
    /// By file.
    pub files: BTreeMap<String, Cost>,
    /// By what the leaf has.
    pub accounting: Buckets,
    /// By what the best frame has.
    pub reach: Buckets,
}

/// The cost of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Σv of samples whose leaf is there.
    pub flat: i64,
    /// Σv of samples that have it anywhere.
    pub cumulative: i64,
}

/// Σ|v| by how much is known about a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buckets {
    /// A file and a valid line.
    pub with_line: i64,
    /// A file, but no line.
    pub no_line: i64,
    /// A name only.
    pub no_file: i64,
    /// Nothing.
    pub unresolved: i64,
}

/// How much is known about a frame; more is greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Known {
    Nothing,
    Name,
    File,
    Line,
}

impl Samples {
    /// Reads a message.
    pub fn read(profile: &pprof::Profile) -> Self {
        let text = |index: i64| -> String {
            usize::try_from(index)
                .ok()
                .and_then(|index| profile.string_table.get(index))
                .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
                .unwrap_or_default()
        };
        let value_types: Vec<_> = profile.sample_type.iter().map(|t| (text(t.r#type), text(t.unit))).collect();
        let default = text(profile.default_sample_type);
        let default_type = value_types.iter().position(|t| t.0 == default).unwrap_or(value_types.len() - 1);
        let is_function_level = is_function_level(profile, &value_types, &text);

        let frames_of = |location_id: u64| -> Vec<Frame> {
            let Some(location) = profile.location.iter().find(|location| location.id == location_id) else {
                return vec![Frame::default()];
            };
            let mapping = profile.mapping.iter().find(|mapping| mapping.id == location.mapping_id);
            let binary = mapping.map(|mapping| text(mapping.filename)).unwrap_or_default();
            let unknown = Frame { binary: binary.clone(), ..Frame::default() };
            if location.line.is_empty() {
                return vec![unknown];
            }
            let frame = |line: &pprof::Line| {
                let Some(function) = profile.function.iter().find(|function| function.id == line.function_id) else {
                    return unknown.clone();
                };
                Frame {
                    name: text(function.name),
                    system_name: text(function.system_name),
                    file: clean(&text(function.filename)),
                    line: if is_function_level { None } else { valid_line(line.line) },
                    binary: binary.clone(),
                }
            };
            location.line.iter().map(frame).collect()
        };

        let drop = anchored(&text(profile.drop_frames));
        let keep = anchored(&text(profile.keep_frames));
        let rows: Vec<Sample> = profile
            .sample
            .iter()
            .filter(|sample| sample.value.len() == value_types.len())
            .map(|sample| {
                let mut stack: Vec<Frame> = sample.location_id.iter().flat_map(|&id| frames_of(id)).collect();
                prune(&mut stack, drop.as_ref(), keep.as_ref());
                let labels = sample.label.iter().map(|label| {
                    let value = if label.str == 0 { label.num.to_string() } else { text(label.str) };
                    (text(label.key), value)
                });
                Sample { stack, values: sample.value.clone(), labels: labels.collect() }
            })
            .collect();
        let unfiltered = (0..value_types.len()).map(|column| total(&rows, column)).collect();
        Self { value_types, default_type, unfiltered, rows }
    }

    /// Index of the value type with this name; the default one without.
    pub fn value_type(&self, name: Option<&str>) -> usize {
        let Some(name) = name else { return self.default_type };
        self.value_types.iter().position(|t| t.0 == name).unwrap_or_else(|| panic!("no value type {name}"))
    }

    /// Number of value types.
    pub fn type_count(&self) -> usize {
        self.value_types.len()
    }

    /// The name of a value type, as `--type` takes it.
    pub fn type_name(&self, value_type: usize) -> String {
        let (kind, unit) = &self.value_types[value_type];
        format!("{kind}/{unit}")
    }

    /// Applies a filter, `[frame.]FIELD OP VALUE`.
    #[must_use]
    pub fn filtered(mut self, filter: &str) -> Self {
        let (is_frame_filter, filter) = filter.strip_prefix("frame.").map_or((false, filter), |rest| (true, rest));
        let at = filter.find(['=', '~', '^', '!']).expect("an operator");
        let (field, rest) = filter.split_at(at);
        let (is_negated, rest) = rest.strip_prefix('!').map_or((false, rest), |rest| (true, rest));
        let (op, wanted) = rest.split_at(1);
        let wanted = wanted.to_ascii_lowercase();
        let is_match = |value: &str| {
            let value = value.to_ascii_lowercase();
            match op {
                "=" => value == wanted,
                "~" => value.contains(&wanted),
                "^" => value.starts_with(&wanted),
                _ => panic!("unknown operator in {filter}"),
            }
        };
        let frame_matches = |frame: &Frame| match field {
            "fn" => is_match(&frame.name),
            "sn" => is_match(&frame.system_name),
            "file" => is_match(&frame.file),
            "bin" => is_match(&frame.binary),
            "line" => frame.line.is_some_and(|line| is_match(&line.to_string())),
            _ => panic!("unknown field in {filter}"),
        };
        if is_frame_filter {
            for sample in &mut self.rows {
                sample.stack.retain(|frame| frame_matches(frame) != is_negated);
            }
            return self;
        }
        let key = if field == "thread" { Some("thread") } else { field.strip_prefix("label.") };
        self.rows.retain(|sample| {
            let is_any = match key {
                Some(key) => sample.labels.iter().any(|(k, value)| k == key && is_match(value)),
                None => sample.stack.iter().any(frame_matches),
            };
            is_any != is_negated
        });
        self
    }

    /// Multiplies each value with net of the base ÷ own net, rounded half away from zero.
    #[must_use]
    pub fn normalized_to(mut self, base: &Self, value_type: usize) -> Self {
        let (own, base) = (net(&self.rows, value_type), net(&base.rows, value_type));
        for sample in &mut self.rows {
            let value = &mut sample.values[value_type];
            let (dividend, divisor) = (i128::from(*value) * base, own);
            let magnitude = (2 * dividend.abs() + divisor.abs()) / (2 * divisor.abs());
            let sign = dividend.signum() * divisor.signum();
            *value = i64::try_from(magnitude * sign).expect("a scaled value fits");
        }
        self
    }

    /// Everything about one value type.
    pub fn numbers(&self, value_type: usize) -> Numbers {
        let value = |sample: &Sample| sample.values[value_type];
        let kept: Vec<&Sample> = self.rows.iter().filter(|sample| value(sample) != 0).collect();
        let count_type =
            self.value_types.iter().position(|(kind, unit)| (kind == "samples" || kind == "sample") && unit == "count");

        let mut numbers = Numbers {
            total: fit(total(&self.rows, value_type)),
            net: fit(net(&self.rows, value_type)),
            total_unfiltered: fit(self.unfiltered[value_type]),
            records: kept.len() as u64,
            samples: count_type.map(|column| kept.iter().map(|sample| sample.values[column].abs()).sum()),
            ..Numbers::default()
        };
        for sample in kept {
            let v = value(sample);
            let leaf = sample.stack.first();

            numbers.accounting.add(leaf.map_or(Known::Nothing, known), v.abs());
            numbers.reach.add(sample.stack.iter().map(known).max().unwrap_or(Known::Nothing), v.abs());

            let lines: BTreeSet<_> = sample.stack.iter().filter_map(line_key).collect();
            for key in lines {
                numbers.lines.entry(key).or_default().cumulative += v;
            }
            let functions: BTreeSet<_> = sample.stack.iter().filter_map(function_key).collect();
            for key in functions {
                numbers.functions.entry(key).or_default().cumulative += v;
            }
            let files: BTreeSet<_> = sample.stack.iter().filter_map(file_key).collect();
            for key in files {
                numbers.files.entry(key).or_default().cumulative += v;
            }
            for frame in &sample.stack {
                if let Some(key) = line_key(frame) {
                    let names = numbers.functions_of_lines.entry(key).or_default();
                    if !frame.name.is_empty() {
                        names.insert(frame.name.clone());
                    }
                }
            }
            if let Some(key) = leaf.and_then(line_key) {
                numbers.lines.entry(key).or_default().flat += v;
            }
            if let Some(key) = leaf.and_then(function_key) {
                numbers.functions.entry(key).or_default().flat += v;
            }
            if let Some(key) = leaf.and_then(file_key) {
                numbers.files.entry(key).or_default().flat += v;
            }
        }
        numbers
    }
}

impl Numbers {
    /// The numbers of a report.
    ///
    /// # Panics
    /// When the report has two rows with one key, or `filtered` is not what is missing to
    /// everything.
    pub fn of_report(report: &Report) -> Self {
        let profile = &report.profile;
        let accounting = &report.accounting;
        assert_eq!(accounting.total, profile.total);
        assert_eq!(accounting.filtered, profile.total_unfiltered - profile.total);
        let cost = |costs: &crate::cli::Costs| Cost { flat: costs.flat, cumulative: costs.cumulative };
        let numbers = Self {
            total: profile.total,
            net: profile.net,
            total_unfiltered: profile.total_unfiltered,
            records: profile.records,
            samples: profile.samples,
            lines: report.lines.iter().map(|row| ((row.file.clone(), row.line), cost(&row.costs))).collect(),
            functions_of_lines: report
                .lines
                .iter()
                .map(|row| ((row.file.clone(), row.line), row.functions.iter().cloned().collect()))
                .collect(),
            functions: report
                .functions
                .iter()
                .map(|row| ((row.name.clone(), row.file.clone().unwrap_or_default()), cost(&row.costs)))
                .collect(),
            files: report.files.iter().map(|row| (row.file.clone(), cost(&row.costs))).collect(),
            accounting: Buckets {
                with_line: accounting.with_line,
                no_line: accounting.no_line,
                no_file: accounting.no_file,
                unresolved: accounting.unresolved,
            },
            reach: Buckets {
                with_line: accounting.reach.with_line,
                no_line: accounting.reach.no_line,
                no_file: accounting.reach.no_file,
                unresolved: accounting.reach.unresolved,
            },
        };
        assert_eq!(numbers.lines.len(), report.lines.len(), "two rows for one line");
        assert_eq!(numbers.functions.len(), report.functions.len(), "two rows for one function");
        assert_eq!(numbers.files.len(), report.files.len(), "two rows for one file");
        numbers
    }
}

impl Buckets {
    fn add(&mut self, known: Known, value: i64) {
        *match known {
            Known::Line => &mut self.with_line,
            Known::File => &mut self.no_line,
            Known::Name => &mut self.no_file,
            Known::Nothing => &mut self.unresolved,
        } += value;
    }

    /// All four together.
    pub fn sum(self) -> i64 {
        self.with_line + self.no_line + self.no_file + self.unresolved
    }
}

fn total(rows: &[Sample], column: usize) -> i128 {
    rows.iter().map(|sample| i128::from(sample.values[column]).abs()).sum()
}

fn net(rows: &[Sample], column: usize) -> i128 {
    rows.iter().map(|sample| i128::from(sample.values[column])).sum()
}

fn fit(sum: i128) -> i64 {
    i64::try_from(sum).expect("the profile's total fits")
}

fn known(frame: &Frame) -> Known {
    if frame.name.is_empty() && frame.file.is_empty() {
        Known::Nothing
    } else if is_pseudo(&frame.file) {
        Known::Name
    } else if frame.line.is_none() {
        Known::File
    } else {
        Known::Line
    }
}

fn line_key(frame: &Frame) -> Option<(String, i64)> {
    file_key(frame).zip(frame.line)
}

fn function_key(frame: &Frame) -> Option<(String, String)> {
    (!frame.name.is_empty()).then(|| (frame.name.clone(), frame.file.clone()))
}

fn file_key(frame: &Frame) -> Option<String> {
    (!is_pseudo(&frame.file)).then(|| frame.file.clone())
}

fn is_pseudo(file: &str) -> bool {
    file.is_empty()
        || (file.starts_with('<') && file.ends_with('>'))
        || (file.starts_with('[') && file.ends_with(']'))
        || file.starts_with("node:")
        || ["~", "?", "??", "Unknown"].contains(&file)
}

fn clean(path: &str) -> String {
    if is_pseudo(path) {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|&last| last != "..") => drop(parts.pop()),
            ".." if path.starts_with('/') => {}
            _ => parts.push(part),
        }
    }
    format!("{}{}", if path.starts_with('/') { "/" } else { "" }, parts.join("/"))
}

fn valid_line(line: i64) -> Option<i64> {
    let valid = 1..=i64::from(i32::MAX);
    let low_half = line & 0xffff_ffff;
    if valid.contains(&line) {
        Some(line)
    } else if line > 1 << 32 && valid.contains(&low_half) {
        Some(low_half)
    } else {
        None
    }
}

/// The marks of the Rust crate `pprof`, whose lines are those of each function's first sample.
fn is_function_level(
    profile: &pprof::Profile,
    value_types: &[(String, String)],
    text: &impl Fn(i64) -> String,
) -> bool {
    let types: Vec<String> = value_types.iter().map(|(kind, unit)| format!("{kind}/{unit}")).collect();
    types == ["samples/count", "cpu/nanoseconds"]
        && profile.mapping.is_empty()
        && !profile.location.is_empty()
        && profile.location.len() == profile.function.len()
        && profile.location.iter().all(|l| l.line.len() == 1 && l.line[0].function_id == l.id)
        && profile.sample.iter().flat_map(|s| &s.label).any(|label| text(label.key) == "thread")
}

fn anchored(pattern: &str) -> Option<regex::Regex> {
    (!pattern.is_empty()).then(|| regex::Regex::new(&format!("^(?:{pattern})$")).expect("a valid pattern"))
}

/// Cuts a stack at the first frame, seen from the root, that is to be dropped and follows one
/// that is not.
fn prune(stack: &mut Vec<Frame>, drop: Option<&regex::Regex>, keep: Option<&regex::Regex>) {
    let Some(drop) = drop else { return };
    let is_dropped = |frame: &Frame| drop.is_match(&frame.name) && !keep.is_some_and(|keep| keep.is_match(&frame.name));
    let mut has_kept = false;
    for i in (0..stack.len()).rev() {
        if !is_dropped(&stack[i]) {
            has_kept = true;
        } else if has_kept {
            stack.drain(..=i);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mini::Mini;

    fn numbers(text: &str) -> Numbers {
        Samples::read(&Mini::parse(text).profile).numbers(0)
    }

    #[test]
    fn counts_by_hand() {
        let numbers = numbers(
            "
            cpu/ns
            a.rs:1 main; ./a.rs:1 main; x/../a.rs:2 f > b.rs:7 g = 10
            a.rs:1 main; 0x10 = -4
            a.rs:1 main; <auto>:3 h = 2
            ? i; a.rs:-1 main = 1
            = 5
            a.rs:1 main = 0
            ",
        );
        assert_eq!((numbers.total, numbers.net, numbers.records), (22, 14, 5));
        let line = |file: &str, line| numbers.lines[&(file.to_owned(), line)];
        assert_eq!(line("a.rs", 1), Cost { flat: 0, cumulative: 8 });
        assert_eq!(line("a.rs", 2), Cost { flat: 0, cumulative: 10 });
        assert_eq!(line("b.rs", 7), Cost { flat: 10, cumulative: 10 });
        assert_eq!(numbers.lines.len(), 3);
        assert_eq!(numbers.files["a.rs"], Cost { flat: 1, cumulative: 9 });
        assert_eq!(numbers.accounting, Buckets { with_line: 10, no_line: 1, no_file: 2, unresolved: 9 });
        assert_eq!(numbers.reach, Buckets { with_line: 16, no_line: 1, no_file: 0, unresolved: 5 });
    }

    #[test]
    fn packed_columns_and_wild_line_numbers() {
        for (line, want) in [
            (1, Some(1)),
            (2_147_483_647, Some(2_147_483_647)),
            (2_147_483_648, None),
            (0, None),
            (-1, None),
            (1 << 40, None),
            ((7 << 32) + 12, Some(12)),
            ((7 << 32) + 0xffff_ffff, None),
            (i64::MIN, None),
        ] {
            assert_eq!(valid_line(line), want, "{line}");
        }
    }

    #[test]
    fn filters_and_dropped_frames() {
        let profile = Mini::parse(
            "
            cpu/ns
            !drop alloc.*|free
            !keep alloc_keep
            a.rs:1 main; b.rs:2 Alloc; b.rs:3 allocate; c.rs:4 sbrk = 1 {k=X}
            a.rs:1 main; b.rs:3 alloc_keep = 2
            b.rs:3 allocate = 4
            ",
        )
        .profile;
        let samples = Samples::read(&profile);
        let flat = |samples: &Samples| -> Vec<(String, i64)> {
            let numbers = samples.numbers(0);
            numbers.functions.iter().map(|((name, _), cost)| (name.clone(), cost.flat)).collect()
        };
        let row = |name: &str, value| (name.to_owned(), value);
        assert_eq!(flat(&samples), [row("Alloc", 1), row("alloc_keep", 2), row("allocate", 4), row("main", 0)]);
        for (filter, total) in [
            ("fn=MAIN", 3),
            ("fn!=main", 4),
            ("fn~LLOC", 7),
            ("fn^alloc", 7),
            ("fn!^alloc_", 5),
            ("line=2", 1),
            ("file!~b", 0),
            ("label.k=x", 1),
            ("label.k!=x", 6),
        ] {
            assert_eq!(samples.clone().filtered(filter).numbers(0).total, total, "{filter}");
        }
        assert_eq!(flat(&samples.filtered("frame.fn!~alloc")), [row("main", 3)]);
    }
}
