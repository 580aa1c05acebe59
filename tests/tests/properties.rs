//! Laws that hold for every profile, tried on random ones: the program's numbers are those of
//! the reference, spelling and order change nothing, and sums add up.
//!
//! The library is called instead of the program, which would take longer to start than to
//! count. A few profiles go through the program as well.

use std::collections::BTreeMap;

use perflens_tests::cli::report_bytes;
use perflens_tests::pprof::{self, Builder, Line};
use perflens_tests::reference::{Buckets, Cost, Numbers, Samples};
use profiler_core::attribute::accounting::Bucket;
use profiler_core::attribute::{Costs, FileGroups, Filter, Place, Placement, Query, attribute};
use profiler_core::cancel::CancelFlag;
use profiler_core::decode::{Limits, decode};
use profiler_core::profile::{LabelValue, LocId, Profile};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn load(bytes: &[u8]) -> Profile {
    decode(bytes, &Limits::default(), &CancelFlag::default()).expect("it is a profile")
}

fn costs(profile: &Profile, groups: &FileGroups, value_type: usize, filters: &[Filter]) -> Costs {
    let query = Query { value_type, filters, scale: None };
    attribute(profile, groups, &query, &CancelFlag::default()).expect("nobody cancels it")
}

/// The numbers of the library, under the names of the reference.
fn numbers(profile: &Profile, value_type: usize, filters: &[Filter]) -> Numbers {
    let groups = FileGroups::by_path(profile);
    let costs = costs(profile, &groups, value_type, filters);
    let path = |file| groups.path(profile, file).to_owned();
    let cost = |cost: profiler_core::attribute::Cost| Cost { flat: cost.flat, cumulative: cost.cumulative };
    let numbers = Numbers {
        total: costs.total,
        net: costs.net,
        total_unfiltered: profile.sum(value_type).total,
        records: costs.records,
        samples: costs.samples,
        lines: costs.lines.iter().map(|row| ((path(row.file), i64::from(row.line.0)), cost(row.cost))).collect(),
        functions_of_lines: costs
            .lines
            .iter()
            .map(|row| {
                let names = row.functions.iter().map(|&function| costs.functions[function].name.clone());
                ((path(row.file), i64::from(row.line.0)), names.collect())
            })
            .collect(),
        functions: costs.functions.iter().map(|row| ((row.name.clone(), path(row.file)), cost(row.cost))).collect(),
        files: costs.files.iter().map(|row| (path(row.file), cost(row.cost))).collect(),
        accounting: buckets(|bucket| costs.accounting.leaf_bucket(bucket)),
        reach: buckets(|bucket| costs.accounting.reach_bucket(bucket)),
    };
    assert_eq!(numbers.lines.len(), costs.lines.len(), "two rows for one line");
    assert_eq!(numbers.functions.len(), costs.functions.len(), "two rows for one function");
    assert_eq!(numbers.files.len(), costs.files.len(), "two rows for one file");
    assert_eq!(numbers.total + costs.accounting.filtered.value, numbers.total_unfiltered);
    numbers
}

fn buckets(value: impl Fn(Bucket) -> i64) -> Buckets {
    Buckets {
        with_line: value(Bucket::WithLine),
        no_line: value(Bucket::NoLine),
        no_file: value(Bucket::NoFile),
        unresolved: value(Bucket::Unresolved),
    }
}

/// Everything a profile holds, as text, sample by sample.
fn spell(profile: &Profile) -> Vec<String> {
    let samples = profile.samples();
    let spell_label = |label: &profiler_core::profile::Label| {
        let value = match label.value {
            LabelValue::Text(text) => profile.text(text).to_owned(),
            LabelValue::Number(number, unit) => format!("{number} {}", profile.text(unit)),
        };
        format!("{}={value}", profile.text(label.key))
    };
    let spell_location = |id: LocId| {
        let locations = profile.locations();
        let mapping = profile.mapping(locations.mapping(id));
        let (file, build_id) = (profile.text(mapping.file), profile.text(mapping.build_id));
        let memory = (mapping.memory_start, mapping.memory_limit, mapping.file_offset);
        let lines: Vec<String> = locations
            .lines(id)
            .iter()
            .map(|line| {
                let function = profile.function(line.function);
                let names = (profile.text(function.name), profile.text(function.system_name));
                let place = (profile.path(function.file), function.start_line, line.line, line.column);
                format!("{names:?} {place:?}")
            })
            .collect();
        format!("{:x} in {file} {build_id} {memory:x?}: {lines:?}", locations.address(id))
    };
    (0..samples.len())
        .map(|row| {
            let values: Vec<i64> = (0..profile.value_types().len()).map(|at| samples.values(at)[row]).collect();
            let labels: Vec<String> = samples.labels(row).iter().map(spell_label).collect();
            let stack: Vec<String> = samples.stack(row).iter().map(|&id| spell_location(id)).collect();
            format!("{values:?} {labels:?} {stack:?}")
        })
        .collect()
}

/// The numbers of all value types, for comparing whole files.
fn all_numbers(bytes: &[u8]) -> Vec<Numbers> {
    let profile = load(bytes);
    (0..profile.value_types().len()).map(|value_type| numbers(&profile, value_type, &[])).collect()
}

const NAMES: &[&str] = &["main", "work", "fib", "even", "odd", "alloc", "Vec<T>::push", "a.b(*T).c", ""];
/// Spellings of few files, so that they meet in one stack, and what is no file.
const FILES: &[&str] = &[
    "a.rs",
    "./a.rs",
    "x/../a.rs",
    "/src//b.rs",
    "/src/b.rs",
    "/src/../src/b.rs",
    "../c.rs",
    "src\\win.rs",
    "src/win.rs",
    "",
    "<autogenerated>",
    "[kernel.kallsyms]",
    "??",
    "~",
    "node:fs",
    "Unknown",
];
const LINES: &[i64] = &[
    0,
    1,
    2,
    3,
    10,
    -1,
    -134_217_728,
    1 << 40,
    (7 << 32) | 2,
    (1 << 31) - 1,
    1 << 31,
    1 << 32,
    (1 << 32) | 1,
    i64::MIN,
    i64::MAX,
];

/// Value types of a profile.
const TYPES: &[&[(&str, &str)]] = &[
    &[("cpu", "nanoseconds")],
    &[("samples", "count"), ("cpu", "nanoseconds")],
    &[("sample", "count"), ("wall", "nanoseconds"), ("cpu", "nanoseconds")],
    &[("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("space", "bytes")],
];

/// A line of a location, as indexes into the tables above.
#[derive(Clone, Debug)]
struct SourcePlace {
    name: usize,
    file: usize,
    line: usize,
}

/// What a random profile consists of.
#[derive(Clone, Debug)]
struct Spec {
    types: usize,
    /// Lines of each location, innermost first, none for an address without symbols; and its
    /// binary, which may be missing from the file.
    locations: Vec<(Vec<SourcePlace>, Option<usize>)>,
    /// Locations leaf first, values for up to four types, which labels.
    samples: Vec<(Vec<usize>, Vec<i64>, usize)>,
}

fn value(signed: bool) -> BoxedStrategy<i64> {
    let positive = prop_oneof![3 => 1..100_i64, 1 => Just(0), 1 => 1..(1_i64 << 50)];
    if signed { prop_oneof![2 => positive, 1 => -1000..1000_i64].boxed() } else { positive.boxed() }
}

fn spec(signed: bool) -> impl Strategy<Value = Spec> {
    let place = (0..NAMES.len(), 0..FILES.len(), 0..LINES.len()).prop_map(|(name, file, line)| SourcePlace {
        name,
        file,
        line,
    });
    let location = (prop::collection::vec(place, 0..4), prop::option::of(0..3_usize));
    let locations = prop::collection::vec(location, 1..12);
    let sample = (prop::collection::vec(0..12_usize, 0..10), prop::collection::vec(value(signed), 4), 0..6_usize);
    (0..TYPES.len(), locations, prop::collection::vec(sample, 0..25)).prop_map(|(types, locations, samples)| Spec {
        types,
        locations,
        samples,
    })
}

fn build(spec: &Spec) -> pprof::Profile {
    let types = TYPES[spec.types];
    let mut builder = Builder::new(types);
    let binaries: Vec<u64> = ["/bin/app", "libc.so"].iter().map(|binary| builder.mapping(binary)).collect();
    let ids: Vec<u64> = spec
        .locations
        .iter()
        .enumerate()
        .map(|(i, (places, binary))| {
            let lines: Vec<Line> = places
                .iter()
                .map(|place| {
                    let function_id = builder.function(NAMES[place.name], FILES[place.file], 0);
                    Line { function_id, line: LINES[place.line], column: 0 }
                })
                .collect();
            // The third binary is one that the table of mappings doesn't have.
            let binary = binary.map_or(0, |binary| binaries.get(binary).copied().unwrap_or(77));
            builder.location(binary, 0x1000 + i as u64, &lines)
        })
        .collect();
    for (stack, values, label) in &spec.samples {
        let stack: Vec<u64> = stack.iter().map(|&location| ids[location % ids.len()]).collect();
        let labels = match label {
            1 => vec![builder.text_label("thread", "Worker-1")],
            2 => vec![builder.text_label("thread", "main"), builder.number_label("size", 48, "bytes")],
            3 => vec![builder.text_label("phase", "init"), builder.text_label("phase", "run")],
            _ => Vec::new(),
        };
        builder.sample(&stack, &values[..types.len()]).label = labels;
    }
    builder.profile
}

fn reference(profile: &pprof::Profile) -> Vec<Numbers> {
    let samples = Samples::read(profile);
    (0..samples.type_count()).map(|value_type| samples.numbers(value_type)).collect()
}

const FILTERS: &[&[&str]] = &[
    &["fn=MAIN"],
    &["fn!=main"],
    &["fn~b("],
    &["sn^wo"],
    &["file~src/b"],
    &["file!^/"],
    &["line=2"],
    &["line!^1"],
    &["bin~LIBC"],
    &["bin!~app"],
    &["thread^worker"],
    &["thread!=main"],
    &["label.phase=run"],
    &["label.phase!=init"],
    &["label.size=48"],
    &["fn=main", "fn!~fib", "thread=main"],
    &["frame.fn!~a"],
    &["frame.file~.rs"],
    &["frame.file!=a.rs", "frame.line!=1"],
    &["frame.fn=main"],
    &["frame.fn=nothing"],
];

/// The same cases in every run, so that a failure is one of the change at hand. Other ones:
/// `PROPTEST_RNG_SEED=7 PROPTEST_CASES=10000`.
fn config() -> ProptestConfig {
    let given = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_RNG_SEED").is_some() {
        return given;
    }
    ProptestConfig { cases: 250, rng_seed: RngSeed::Fixed(1), ..given }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_program_counts_like_the_reference(spec in spec(true)) {
        let profile = build(&spec);
        prop_assert_eq!(all_numbers(&pprof::raw(&profile)), reference(&profile));
    }

    #[test]
    fn writing_a_profile_keeps_all_of_it(spec in spec(true)) {
        let bytes = pprof::raw(&build(&spec));
        let mut written = Vec::new();
        profiler_core::encode::pprof::write(&load(&bytes), &mut written).expect("memory takes bytes");
        prop_assert_eq!(all_numbers(&written), all_numbers(&bytes));
        let (first, again) = (load(&bytes), load(&written));
        prop_assert_eq!(first.meta(), again.meta());
        prop_assert_eq!(spell(&first), spell(&again));
    }

    #[test]
    fn filters_keep_what_the_reference_keeps(spec in spec(true), filters in prop::sample::select(FILTERS)) {
        let profile = build(&spec);
        let parsed: Vec<Filter> = filters.iter().map(|filter| filter.parse().unwrap()).collect();
        let samples = filters.iter().fold(Samples::read(&profile), |samples, filter| samples.filtered(filter));
        let loaded = load(&pprof::raw(&profile));
        for value_type in 0..samples.type_count() {
            prop_assert_eq!(numbers(&loaded, value_type, &parsed), samples.numbers(value_type), "{:?}", filters);
        }
    }

    #[test]
    fn ids_and_the_order_of_tables_and_samples_mean_nothing(spec in spec(true), seed: u64) {
        let profile = build(&spec);
        let other = pprof::permuted(&profile, seed);
        prop_assert_eq!(all_numbers(&pprof::raw(&other)), all_numbers(&pprof::raw(&profile)));
    }

    #[test]
    fn the_order_and_packing_of_fields_mean_nothing(spec in spec(true), seed: u64) {
        let profile = build(&spec);
        let plain = all_numbers(&pprof::raw(&profile));
        prop_assert_eq!(&all_numbers(&pprof::unpacked(&profile)), &plain);
        prop_assert_eq!(&all_numbers(&pprof::scrambled(&profile, seed)), &plain);
    }

    #[test]
    fn sums_add_up(spec in spec(true)) {
        for numbers in all_numbers(&pprof::raw(&build(&spec))) {
            prop_assert_eq!(numbers.accounting.sum(), numbers.total);
            prop_assert_eq!(numbers.reach.sum(), numbers.total);
            prop_assert!(numbers.net.abs() <= numbers.total);
            // The best frame is never worse than the leaf.
            prop_assert!(numbers.reach.with_line >= numbers.accounting.with_line);
            prop_assert!(numbers.reach.unresolved <= numbers.accounting.unresolved);
            for cost in numbers.lines.values().chain(numbers.functions.values()).chain(numbers.files.values()) {
                prop_assert!(cost.cumulative.abs() <= numbers.total);
                prop_assert!(cost.flat.abs() <= numbers.total);
            }
        }
    }

    #[test]
    fn without_negative_values_flat_adds_up_to_what_has_a_line(spec in spec(false)) {
        for numbers in all_numbers(&pprof::raw(&build(&spec))) {
            let flat = |costs: &mut dyn Iterator<Item = &Cost>| costs.map(|cost| cost.flat).sum::<i64>();
            prop_assert_eq!(flat(&mut numbers.lines.values()), numbers.accounting.with_line);
            let with_file = numbers.accounting.with_line + numbers.accounting.no_line;
            prop_assert_eq!(flat(&mut numbers.files.values()), with_file);
            prop_assert_eq!(numbers.net, numbers.total);
            for cost in numbers.lines.values().chain(numbers.functions.values()) {
                prop_assert!(0 <= cost.flat && cost.flat <= cost.cumulative);
            }
        }
    }

    #[test]
    fn the_workspace_adds_up(spec in spec(true), places in prop::collection::vec(0..7_usize, FILES.len())) {
        let profile = load(&pprof::raw(&build(&spec)));
        // Any file may be anything to a workspace, several paths one file included.
        let groups = FileGroups::placed(&profile, |file| {
            let place = [
                Place::Workspace, Place::Workspace, Place::Ambiguous, Place::Generated,
                Place::Dependency, Place::Toolchain, Place::NoMatch,
            ][places[file.0 as usize % places.len()]];
            let is_found = matches!(place, Place::Workspace | Place::Generated);
            Some(Placement {
                place,
                workspace_file: is_found.then(|| format!("{place:?}/{}.rs", file.0 % 3)),
                path: None,
                evidence: String::new(),
                package: None,
            })
        });
        for value_type in 0..profile.value_types().len() {
            let costs = costs(&profile, &groups, value_type, &[]);
            let workspace = costs.accounting.workspace.expect("there is a workspace");
            prop_assert_eq!(workspace.iter().map(|weight| weight.value).sum::<i64>(), costs.total);
            prop_assert_eq!(workspace.iter().map(|weight| weight.records).sum::<u64>(), costs.records);
            let shown = costs.accounting.shown().expect("there is a workspace");
            let unplaced: i64 = costs.accounting.unplaced.iter().map(|(_, weight)| weight.value).sum();
            prop_assert_eq!(shown + unplaced, costs.total);
            let values = profile.samples().values(value_type);
            if values.iter().all(|&value| value >= 0) {
                let direct: i64 = costs.lines.iter().map(|row| row.cost.direct).sum();
                prop_assert_eq!(direct, shown);
            }
            // Only hand-written files have direct costs.
            for row in &costs.files {
                let place = groups.get(row.file).placement.as_ref().map(|placement| placement.place);
                prop_assert!(row.cost.direct == 0 || place == Some(Place::Workspace));
            }
        }
    }
}

/// A fixed profile that has a bit of everything.
fn example() -> pprof::Profile {
    let place = |name, file, line| SourcePlace { name, file, line };
    build(&Spec {
        types: 1,
        locations: vec![
            (vec![place(0, 0, 1)], Some(0)),
            (vec![place(1, 1, 1), place(0, 2, 4)], Some(1)),
            (vec![], Some(2)),
            (vec![place(2, 10, 3)], None),
            (vec![place(3, 4, 5)], None),
        ],
        samples: vec![
            (vec![0, 1, 0], vec![3, 30, 0, 0], 1),
            (vec![2, 1], vec![1, -10, 0, 0], 2),
            (vec![3, 4], vec![1, 10, 0, 0], 3),
            (vec![], vec![2, 20, 0, 0], 0),
            (vec![4, 0], vec![0, 0, 0, 0], 0),
        ],
    })
}

#[test]
fn gzip_members_may_be_cut_anywhere() {
    let raw = pprof::raw(&example());
    let whole = all_numbers(&raw);
    assert_eq!(all_numbers(&pprof::gzip(&raw)), whole);
    for cut in 0..=raw.len() {
        assert_eq!(all_numbers(&pprof::gzip_members(&raw, &[cut])), whole, "cut at {cut}");
    }
    let every_byte: Vec<usize> = (0..raw.len()).collect();
    assert_eq!(all_numbers(&pprof::gzip_members(&raw, &every_byte)), whole);
}

#[test]
fn the_program_reports_the_numbers_of_the_reference() {
    let profile = example();
    let samples = Samples::read(&profile);
    for (value_type, name) in ["samples", "cpu"].into_iter().enumerate() {
        let want = samples.numbers(value_type);
        for bytes in [pprof::raw(&profile), pprof::gzip(&pprof::scrambled(&profile, 3))] {
            assert_eq!(Numbers::of_report(&report_bytes(bytes, &["--type", name])), want);
        }
        let filtered = samples.clone().filtered("frame.fn!=work").filtered("thread!=main").numbers(value_type);
        let args = ["--type", name, "--filter", "frame.fn!=work", "--filter", "thread!=main"];
        assert_eq!(Numbers::of_report(&report_bytes(pprof::raw(&profile), &args)), filtered);
    }
}

#[test]
fn normalizing_scales_each_sample_like_the_reference() {
    let base = Samples::read(&example());
    let mut other = example();
    for (sample, value) in other.sample.iter_mut().zip([7, -3, 11, 1, 1]) {
        sample.value = vec![value, value * 3];
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("base.pb");
    std::fs::write(&path, pprof::raw(&example())).unwrap();
    for (value_type, name) in ["samples", "cpu"].into_iter().enumerate() {
        let args = ["--type", name, "--base", path.to_str().unwrap(), "--normalize"];
        let report = report_bytes(pprof::raw(&other), &args);
        let scaled = Samples::read(&other).normalized_to(&base, value_type).numbers(value_type);
        let base = base.numbers(value_type);
        let diff = |new: Option<&Cost>, old: Option<&Cost>| {
            let (new, old) = (new.copied().unwrap_or_default(), old.copied().unwrap_or_default());
            (new.flat - old.flat, new.cumulative - old.cumulative)
        };
        let got: BTreeMap<_, _> = report
            .lines
            .iter()
            .map(|row| {
                let costs = row.costs;
                assert_eq!(costs.diff_flat, Some(costs.flat - costs.base_flat.unwrap()), "of scaled values");
                ((row.file.clone(), row.line), (costs.diff_flat.unwrap(), costs.diff_cumulative.unwrap()))
            })
            .collect();
        let want: BTreeMap<_, _> = scaled
            .lines
            .keys()
            .chain(base.lines.keys())
            .map(|key| (key.clone(), diff(scaled.lines.get(key), base.lines.get(key))))
            .collect();
        assert_eq!(got, want, "{name}");
    }
}
