//! What pprof files do in the field, each case reduced to the smallest profile that shows it.
//! The comments name where another tool got it wrong.

use perflens_tests::cli::{Report, Run, report_bytes};
use perflens_tests::mini::Mini;
use perflens_tests::pprof;
use perflens_tests::reference::Numbers;
use profiler_core::cancel::CancelFlag;
use profiler_core::decode::{Limits, decode};

fn report(text: &str) -> Report {
    report_bytes(Mini::parse(text).gzip(), &[])
}

const THREE_FRAMES: &str = "
    cpu/nanoseconds
    src/main.rs:10 main; src/lib.rs:20 work; src/lib.rs:30 inner = 5
";
const THREE_LINES: [&str; 3] = ["src/lib.rs:20 0 5", "src/lib.rs:30 5 5", "src/main.rs:10 0 5"];

/// google/pprof#120
#[test]
fn lines_are_used_when_there_is_no_mapping_at_all() {
    let mini = Mini::parse(THREE_FRAMES);
    assert_eq!(mini.profile.mapping, []);
    let report = report_bytes(mini.gzip(), &[]);
    assert_eq!(report.line_costs(), THREE_LINES);
    assert_eq!(report.profile.notes, [""; 0], "it is nothing odd");
}

/// grafana-cold-storage/phlare#339
#[test]
fn mapping_id_0_means_none_in_an_uncompressed_file() {
    let mut mini = Mini::parse(THREE_FRAMES);
    mini.profile.mapping = vec![pprof::Mapping { id: 1, memory_limit: 1 << 40, ..Default::default() }];
    assert!(mini.profile.location.iter().all(|location| location.mapping_id == 0));
    assert_eq!(report_bytes(mini.raw(), &[]).line_costs(), THREE_LINES);
}

/// grafana/pyroscope#2092
#[test]
fn mapping_ids_that_point_at_nothing_are_counted_in_a_note() {
    let mut mini = Mini::parse(THREE_FRAMES);
    mini.profile.location.iter_mut().for_each(|location| location.mapping_id = 7);
    let report = report_bytes(mini.gzip(), &[]);
    assert_eq!(report.line_costs(), THREE_LINES);
    assert_eq!(report.profile.notes.len(), 1, "{:?}", report.profile.notes);
    assert!(report.profile.notes[0].contains('3'), "{:?}", report.profile.notes);
}

/// google/pprof#624
#[test]
fn lines_are_used_for_addresses_outside_of_every_mapping() {
    let mut mini = Mini::parse(THREE_FRAMES);
    let mapping = pprof::Mapping { id: 1, memory_start: 0x40_0000, memory_limit: 0x50_0000, ..Default::default() };
    mini.profile.mapping = vec![mapping];
    mini.profile.location.iter_mut().for_each(|location| location.mapping_id = 1);
    assert!(mini.profile.location.iter().all(|location| location.address == 0));
    assert_eq!(report_bytes(mini.gzip(), &[]).line_costs(), THREE_LINES);
}

/// Go writes `has_functions` only, although files and lines are there.
#[test]
fn flags_of_mappings_are_not_believed() {
    let mut mini = Mini::parse("cpu/ns\napp@0x10 a.rs:1 f = 5");
    let mapping = &mut mini.profile.mapping[0];
    (mapping.has_functions, mapping.has_filenames, mapping.has_line_numbers) = (false, false, false);
    assert_eq!(report_bytes(mini.gzip(), &[]).line_costs(), ["a.rs:1 5 5"]);
}

/// parca-dev/parca#2076
#[test]
fn compression_makes_no_difference() {
    let mini = Mini::parse(THREE_FRAMES);
    let zlib = {
        use std::io::Write;
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&mini.raw()).unwrap();
        encoder.finish().unwrap()
    };
    let raw = report_bytes(mini.raw(), &[]);
    for bytes in [mini.gzip(), zlib, zstd(&mini.raw())] {
        let compressed = report_bytes(bytes, &[]);
        assert_eq!(Numbers::of_report(&compressed), Numbers::of_report(&raw));
        assert_eq!(compressed.profile.notes, raw.profile.notes);
    }
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// rust-lang/flate2-rs#61, for zstd: tools that compress in parallel write many frames.
#[test]
fn all_frames_of_zstd_are_read() {
    let mini = Mini::parse(THREE_FRAMES);
    let (raw, whole) = (mini.raw(), report_bytes(mini.raw(), &[]));
    let skippable = b"\x5a\x2a\x4d\x18\x03\0\0\0abc";
    for cut in (0..=raw.len()).step_by(5) {
        let (one, two) = (zstd(&raw[..cut]), zstd(&raw[cut..]));
        for bytes in [[&one[..], &two].concat(), [&skippable[..], &one, skippable, &two, skippable].concat()] {
            let profile = decode(&bytes[..], &Limits::default(), &CancelFlag::new()).unwrap();
            assert_eq!(profile.samples().len(), mini.profile.sample.len(), "cut at {cut}");
        }
    }
    let split = [zstd(&raw[..9]), zstd(&raw[9..])].concat();
    assert_eq!(Numbers::of_report(&report_bytes(split, &[])), Numbers::of_report(&whole));
}

/// firefox-devtools/profiler#5214
#[test]
fn gzip_is_read_at_every_door() {
    let source = format!("{}fn work() {{\n    fn inner() {{}}\n{}}}\n", "\n".repeat(18), "\n".repeat(20));
    let mini = Mini::parse(&format!("{THREE_FRAMES}//- /src/lib.rs\n{source}"));
    let workspace = mini.workspace();
    // The name says nothing about the content.
    let path = workspace.path().join("profile.data");
    mini.write_to(&path);
    let path = path.to_str().unwrap();

    let file = Run::new(["report", path, "--format", "json", "--top", "0"]).json();
    assert_eq!(file.line_costs(), THREE_LINES);
    let stdin = Run::new(["report", "-", "--format", "json", "--top", "0"]).stdin(mini.gzip()).json();
    assert_eq!(stdin.line_costs(), THREE_LINES);
    let base = Run::new(["report", path, "--base", path, "--format", "json", "--top", "0"]).json();
    assert_eq!(base.profile.base.unwrap().total, 5);
    for args in [&["annotate", "src/lib.rs", "--profile", path][..], &["explain", path], &["report", path]] {
        let output = Run::new(args).folder(workspace.path()).output();
        assert_eq!(output.code, Some(0), "{args:?}: {}", output.stderr);
        assert_ne!(output.stdout, "", "{args:?}");
    }
}

/// rust-lang/flate2-rs#61
#[test]
fn every_gzip_member_is_read() {
    let raw = Mini::parse(THREE_FRAMES).raw();
    let report = report_bytes(pprof::gzip_members(&raw, &[raw.len() / 2]), &[]);
    assert_eq!(report.line_costs(), THREE_LINES);
    assert_eq!(report.profile.notes, [""; 0], "several members are nothing odd");
}

/// sile/libflate#75
#[test]
fn bytes_after_the_last_member_are_ignored_with_one_note() {
    for trailer in [&[0; 512][..], b"junk"] {
        let report = report_bytes([&Mini::parse(THREE_FRAMES).gzip(), trailer].concat(), &[]);
        assert_eq!(report.line_costs(), THREE_LINES);
        assert_eq!(report.profile.notes.len(), 1, "{:?}", report.profile.notes);
    }
}

/// jlfwong/speedscope#370
#[test]
fn negative_values_are_summed_with_their_sign() {
    let report = report("space/bytes\na.go:1 f = -4096\na.go:1 f = 8192");
    assert_eq!(report.line_costs(), ["a.go:1 4096 4096"]);
    assert_eq!((report.profile.total, report.profile.net), (12288, 4096), "shares are of Σ|v|");
    assert_eq!(report.accounting.with_line, 12288);
}

#[test]
fn a_line_whose_values_cancel_is_still_a_row() {
    let report = report("space/bytes\na.go:1 f = -5\na.go:1 f = 5\na.go:2 f = 0");
    assert_eq!(report.line_costs(), ["a.go:1 0 0"]);
    assert_eq!(report.function_costs(), ["f 0 0"]);
    assert_eq!((report.profile.total, report.profile.net, report.profile.records), (10, 0, 2));
}

/// grafana/pyroscope#3336
#[test]
fn line_numbers_below_1_count_for_the_function_only() {
    let mini = Mini::parse("cpu/ns\na.py:-1 f = 5\na.py:0 f = 6\na.py:18446744 f = 7");
    let varint = pprof::raw(&mini.profile);
    assert!(varint.windows(10).any(|bytes| bytes == [255, 255, 255, 255, 255, 255, 255, 255, 255, 1]), "2^64 - 1");
    let report = report_bytes(varint, &[]);
    assert_eq!(report.line_costs(), ["a.py:18446744 7 7"]);
    assert_eq!(report.function_costs(), ["f 18 18"]);
    assert_eq!(report.accounting.no_line, 11);
    assert!(
        report
            .accounting
            .reasons
            .iter()
            .any(|reason| { reason.bucket == "no_line" && reason.value == 11 && reason.records == 2 })
    );
}

/// golang/go#20214
#[test]
fn underflowed_line_and_empty_file_are_unknown() {
    let report = report("cpu/ns\nmain.go:3 main; \"\":-134217728 __tsan_read = 5");
    assert_eq!(report.line_costs(), ["main.go:3 0 5"]);
    assert_eq!(report.function_costs(), ["__tsan_read 5 5", "main 0 5"]);
    assert_eq!((report.accounting.no_file, report.accounting.reach.with_line), (5, 5));
}

/// Node packs the column into the high half of the line.
#[test]
fn column_in_the_high_half_of_the_line_is_split_off() {
    let packed = (7_i64 << 32) + 12;
    let report = report(&format!("wall/ns\na.js:{packed} f = 5\na.js:12 f = 1\na.js:{} f = 1", 1_i64 << 31));
    assert_eq!(report.line_costs(), ["a.js:12 6 6"]);
    assert_eq!(report.accounting.no_line, 1);
}

#[test]
fn pseudo_files_have_no_lines() {
    let names = ["<autogenerated>", "[kernel.kallsyms]", "~", "??", "node:fs", "Unknown"];
    let samples = names.map(|file| format!("main.go:1 main; {file}:1 f = 2")).join("\n");
    let report = report(&format!("cpu/ns\n{samples}"));
    assert_eq!(report.line_costs(), ["main.go:1 0 12"]);
    assert_eq!(report.files.len(), 1);
    assert_eq!(report.accounting.no_file, 12);
}

#[test]
fn a_file_whose_name_merely_looks_odd_has_lines() {
    let report = report("cpu/ns\n\"<b\":1 f = 1\n[id].tsx:2 f = 2\n~/c.rs:3 f = 3\n?.rs:4 f = 4");
    assert_eq!(report.line_costs(), ["?.rs:4 4 4", "~/c.rs:3 3 3", "[id].tsx:2 2 2", "<b:1 1 1"]);
}

#[test]
fn addresses_without_symbols_are_unresolved_and_their_callers_keep_the_cost() {
    let report = report("cpu/ns\nmain.rs:10 main; libc.so@0x1f00 = 7\nlibc.so@0x1f00 = 1");
    assert_eq!(report.line_costs(), ["main.rs:10 0 7"]);
    assert_eq!(report.function_costs(), ["main 0 7"], "an address is no function");
    assert_eq!((report.accounting.unresolved, report.accounting.reach.unresolved), (8, 1));
}

/// What gives the Rust crate `pprof` away is that it has *all* of its marks: no mappings, one
/// location per function under the same id, its two value types, a label `thread`.
#[test]
fn only_the_crate_that_keeps_one_line_per_function_loses_its_lines() {
    let marked = "samples/count cpu/nanoseconds\na.rs:1 main; b.rs:2 work = 1, 10 {thread=t}";
    let legacy = report(marked);
    assert_eq!(legacy.line_costs(), [""; 0]);
    assert_eq!(legacy.function_costs(), ["main 0 10", "work 10 10"]);
    for (what, text) in [
        ("a mapping", marked.replace("b.rs:2", "app@0x10 b.rs:2")),
        ("no such label", marked.replace("thread", "route")),
        ("other types", marked.replace("cpu", "wall")),
        ("two lines of a function", marked.replace("b.rs:2 work", "b.rs:2 work; b.rs:3 work")),
        ("an inlined line", marked.replace("; b.rs", " > b.rs")),
    ] {
        let report = report(&text);
        assert_eq!(report.line("a.rs", 1).costs.cumulative, 10, "{what}");
        assert_eq!(report.accounting.no_line, 0, "{what}");
    }
}

#[test]
fn an_empty_stack_is_unresolved() {
    let report = report("cpu/ns\n= 3\na.rs:1 f = 4");
    assert_eq!((report.profile.total, report.accounting.unresolved, report.accounting.reach.unresolved), (7, 3, 3));
}

#[test]
fn samples_with_the_wrong_number_of_values_are_counted_in_a_note() {
    let mut mini = Mini::parse("samples/count cpu/ns\na.rs:1 f = 1, 10\na.rs:2 f = 1, 10\na.rs:3 f = 1, 10");
    mini.profile.sample[1].value.pop();
    let report = report_bytes(mini.gzip(), &[]);
    assert_eq!(report.line_costs(), ["a.rs:1 10 10", "a.rs:3 10 10"]);
    assert!(report.profile.notes.iter().any(|note| note.contains('1')), "{:?}", report.profile.notes);
}

#[test]
fn sample_with_a_location_that_is_not_there_is_said() {
    let mut mini = Mini::parse("cpu/ns\na.rs:1 f = 10\na.rs:2 g = 5");
    mini.profile.sample[1].location_id = vec![999];
    let report = report_bytes(mini.gzip(), &[]);
    assert_eq!(report.line_costs(), ["a.rs:1 10 10"]);
    assert_ne!(report.profile.notes, [""; 0]);
}

#[test]
fn the_default_type_is_the_one_that_is_named_else_the_last() {
    let selected = |text: &str| report(text).profile.selected.kind;
    assert_eq!(selected("a/count b/bytes\nx.rs:1 f = 1, 2"), "b");
    assert_eq!(selected("a/count b/bytes\n!default a\nx.rs:1 f = 1, 2"), "a");
    assert_eq!(selected("a/count b/bytes\n!default nothing\nx.rs:1 f = 1, 2"), "b");
}

#[test]
fn dropped_frames_are_cut_with_all_they_call() {
    let report = report(
        "
        space/bytes
        !drop alloc|.*malloc
        !keep keep_.*
        a.c:1 main; a.c:2 f; m.c:3 malloc; m.c:4 mmap = 4
        m.c:3 malloc; a.c:5 g = 2
        a.c:1 main; m.c:6 keep_malloc = 1
        a.c:1 main; m.c:7 alloc_x = 1
        ",
    );
    assert_eq!(
        report.line_costs(),
        ["a.c:1 0 6", "a.c:2 4 4", "a.c:5 2 2", "m.c:3 0 2", "m.c:6 1 1", "m.c:7 1 1"],
        "the expression matches whole names; nothing is cut before a frame that stays"
    );
}

#[test]
fn a_total_beyond_64_bits_is_refused_by_the_name_of_its_type() {
    let half = i64::MAX / 2 + 1;
    let mini = Mini::parse(&format!("samples/count big/bytes\na.rs:1 f = 1, {half}\na.rs:1 f = 1, {half}"));
    let output = Run::new(["report", "-", "--format", "json"]).stdin(mini.gzip()).output();
    assert_eq!((output.code, &*output.stdout), (Some(1), ""));
    assert!(output.stderr.contains("big"), "{}", output.stderr);

    let fits = Mini::parse(&format!("big/bytes\na.rs:1 f = {}\na.rs:2 f = -1", i64::MAX - 1));
    assert_eq!(report_bytes(fits.gzip(), &[]).profile.total, i64::MAX);
}

#[test]
fn the_smallest_number_is_refused_and_not_made_positive() {
    let mini = Mini::parse(&format!("big/bytes\na.rs:1 f = {}", i64::MIN));
    let output = Run::new(["report", "-", "--format", "json"]).stdin(mini.gzip()).output();
    assert_eq!((output.code, &*output.stdout), (Some(1), ""), "{}", output.stderr);
}

#[test]
fn a_profile_without_samples_says_so() {
    let report = report("cpu/ns");
    assert_eq!((report.profile.total, report.profile.records), (0, 0));
    assert!(report.profile.notes.iter().any(|note| note.contains("0 samples")), "{:?}", report.profile.notes);
    let text = Run::new(["report", "-"]).stdin(Mini::parse("cpu/ns").gzip()).output();
    assert_eq!(text.code, Some(0));
    assert!(text.stdout.contains("0 samples"), "not silence: {}", text.stdout);
}

#[test]
fn joined_profiles_are_refused() {
    let mini = Mini::parse("cpu/ns\n!time 7\na.rs:1 f = 1");
    let output = Run::new(["report", "-"]).stdin([mini.raw(), mini.raw()].concat()).output();
    assert_eq!((output.code, &*output.stdout), (Some(1), ""), "{}", output.stderr);
}

#[test]
fn fields_of_a_later_version_are_skipped() {
    // Field 16 with text, before and after the rest.
    let unknown = [0x82, 0x01, 3, b'n', b'e', b'w'];
    let raw = Mini::parse(THREE_FRAMES).raw();
    assert_eq!(report_bytes([&raw[..], &unknown].concat(), &[]).line_costs(), THREE_LINES);
    assert_eq!(report_bytes([&unknown[..], &raw].concat(), &[]).line_costs(), THREE_LINES);
    let gzip = pprof::gzip(&[&unknown[..], &raw].concat());
    assert_eq!(report_bytes(gzip, &[]).line_costs(), THREE_LINES);
}
