use expect_test::expect;
use profiler_core::decode::DecodeErrorKind;
use profiler_core::profile::{LabelValue, Profile};

use crate::raw::{self, Names};
use crate::{assert_note, bytes, error, functions, json, lines, oracle, profile, read, text};

#[test]
fn files_read_like_pprof_reads_them() {
    for (file, oracle, format, names) in [
        ("public/cppbench.cpu", "public/oracle/cppbench.cpu.pprof-raw.txt", "legacy-cpu", Names::Shown),
        ("public/cppbench.heap", "public/oracle/cppbench.heap.pprof-raw.txt", "legacy-heap", Names::Shown),
        (
            "public/cppbench.contention",
            "public/oracle/cppbench.contention.pprof-raw.txt",
            "legacy-contention",
            Names::Shown,
        ),
        ("public/gobench.heap", "public/oracle/gobench.heap.pprof-raw.txt", "legacy-heap", Names::Shown),
        ("public/java.cpu", "public/oracle/java.cpu.pprof-raw.txt", "legacy-cpu", Names::Shown),
        // pprof does not read the names in comments.
        ("go/profiles/heap.debug1.txt", "go/oracle/heap.debug1.raw.txt", "legacy-heap", Names::Hidden),
        ("go/profiles/goroutine.debug1.txt", "go/oracle/goroutine.debug1.raw.txt", "go-text", Names::Hidden),
    ] {
        let profile = profile(bytes(file));
        assert_eq!(profile.format(), format, "{file}");
        let (ours, theirs) = (raw::dump(&profile, names), text(oracle));
        for (number, (our, their)) in ours.lines().zip(theirs.lines()).enumerate() {
            assert_eq!(our, their, "{file}, line {} of the dump", number + 1);
        }
        assert_eq!(ours, theirs, "{file}");
    }
}

#[test]
fn kinds_without_a_recorded_file_read_like_pprof_reads_them() {
    for (file, expected) in [
        (
            "--- threadz 1 ---\n\n--- Thread 7f794ab90940 (name: main/14748) stack: ---\n  PC: 0x40be31\n  0x40be31 0x40c5d8\n\
             --- Thread 7f7949a7f940 (name: worker/14749) stack: ---\n    [same as previous thread]\n\
             --- Thread 7f7949a7f941 (name: other/14750) stack: ---\n  0x40be39\n  0x40c5d9\n\
             --- Memory map: ---\n  00400000-00fcb000: /home/threads\n",
            expect![[r"
                PeriodType: thread count
                Period: 1
                Samples:
                thread/count
                          2: 1 2 
                          1: 3 4 
                Locations
                     1: 0x40be31 M=1 
                     2: 0x40c5d7 M=1 
                     3: 0x40be39 M=1 
                     4: 0x40c5d8 M=1 
                Mappings
                1: 0x400000/0xfcb000/0x0 /home/threads  
            "]],
        ),
        (
            "heap profile: 2: 20 [2: 20] @ growthz\n 1: 10 [1: 10] @ 0x10 0x20\n 1: 10 [1: 10] @ 0x10 0x30\n",
            expect![[r"
                PeriodType: space bytes
                Period: 1
                Samples:
                objects/count space/bytes
                          1         10: 1 2 
                                bytes:[10]
                          1         10: 1 3 
                                bytes:[10]
                Locations
                     1: 0xf M=1 
                     2: 0x1f M=1 
                     3: 0x2f M=1 
                Mappings
                1: 0x0/0xffffffffffffffff/0x0   
            "]],
        ),
        (
            "--- heapz 1 ---\nformat = java\nresolution = bytes\n  2048 2 @ 0x3 0x6\n 0x3 GC\n\
             0x6 com.example.Main.run (Main.java:12)\n",
            expect![[r"
                Period: 0
                Samples:
                inuse_objects/count inuse_space/bytes
                       1025    1049600: 1 2 
                                bytes:[1024]
                Locations
                     1: 0x0 M=1 GC :0:0 s=0
                     2: 0x0 M=1 com.example.Main.run Main.java:12:0 s=0
                Mappings
                1: 0x0/0x0/0x0   
            "]],
        ),
        (
            "--- contentionz 1 ---\nformat = java\nresolution = microseconds\nsampling period = 100\n\
             ms since reset = 6019923\n 5 2 @ 0x3\n\n0x3 read (/lib/x/libc.so.6)\n",
            expect![[r"
                PeriodType: contentions count
                Period: 100
                Duration: 1h40
                Samples:
                contentions/count delay/microseconds
                        200        500: 1 
                Locations
                     1: 0x0 M=1 read libc.so.6:0:0 s=0
                Mappings
                1: 0x0/0x0/0x0   
            "]],
        ),
    ] {
        expected.assert_eq(&raw::dump(&profile(file), Names::Shown));
    }
}

/// The text and the binary form of one heap hold the same values; the text hides frames of
/// the runtime at the leaf that the binary form does not have in the first place.
#[test]
fn names_in_comments_give_the_lines_of_the_binary_form() {
    for (file, other) in [("heap", "heap"), ("mutex", "mutex")] {
        let profile = profile(bytes(&format!("go/profiles/{file}.debug1.txt")));
        let values = &json(&format!("go/oracle/{other}.lines.json"))["values"];
        for (value_type, expected) in values.as_array().unwrap().iter().enumerate() {
            assert_eq!(profile.value_types()[value_type].kind, expected["type"]);
            assert_eq!(profile.sum(value_type).net, expected["total"].as_i64().unwrap());
            assert_eq!(lines(&profile, value_type), oracle(&expected["lines"], 1.0), "{file} {}", expected["type"]);
        }
        assert_eq!(profile.notes(), [""; 0]);
    }
}

#[test]
fn goroutines_have_lines_where_comments_name_them() {
    let profile = profile(bytes("go/profiles/goroutine.debug1.txt"));
    let lines = lines(&profile, 0);
    assert_eq!(lines["/home/dev/src/demo/main.go:109"], (0, 7));
    assert_eq!(lines["/home/dev/src/demo/main.go:154"], (0, 1));
    let functions = functions(&profile, 0);
    // The writer hides the runtime's functions at the leaf and says so to nobody else.
    assert_eq!(functions["runtime.<hidden>"], (8, 8));
    assert_eq!(functions["runtime.goexit"], (0, 8));
    assert_eq!(functions["main.waiter"], (0, 7));
}

#[test]
fn labels_of_goroutines_are_read() {
    let profile = profile(
        "goroutine profile: total 3\n2 @ 0x10 0x20\n# labels: {\"route\":\"/a b\", \"n\":\"1\"}\n\
         #\t0xf\tmain.f+0x1\t/src/a.go:3\n#\t0x1f\tmain.g[...]+0x2\t/src/a b.go:7\n\n1 @ 0x20\n",
    );
    let label = |sample: usize| -> Vec<(&str, &str)> {
        let labels = profile.samples().labels(sample).iter();
        labels.map(|label| (profile.text(label.key), as_text(&profile, label.value))).collect()
    };
    assert_eq!(label(0), [("n", "1"), ("route", "/a b")]);
    assert_eq!(label(1), []);
    assert_eq!(lines(&profile, 0)["/src/a b.go:7"], (1, 3));
    assert_eq!(functions(&profile, 0)["main.g[...]"], (1, 3));
}

fn as_text(profile: &Profile, value: LabelValue) -> &str {
    match value {
        LabelValue::Text(text) => profile.text(text),
        LabelValue::Number(..) => panic!("a number"),
    }
}

#[test]
fn several_comments_for_one_address_are_inlined_calls() {
    // As Go before 1.12 wrote them.
    let profile = profile(
        "goroutine profile: total 1\n1 @ 0x10 0x20 0x30\n#\t0xf\tmain.inner+0x1\t/src/a.go:3\n\
         #\t0xf\tmain.outer+0x1\t/src/a.go:9\n#\t0x1f\tmain.main+0x2\t/src/a.go:20\n",
    );
    let leaf = profile.samples().stack(0)[0];
    let names: Vec<&str> =
        profile.locations().lines(leaf).iter().map(|line| profile.text(profile.function(line.function).name)).collect();
    assert_eq!(names, ["main.inner", "main.outer"]);
    assert_eq!(lines(&profile, 0)["/src/a.go:20"], (0, 1));
    assert_eq!(functions(&profile, 0)["runtime.goexit"], (0, 1));
}

#[test]
fn old_text_heap_is_read_and_named() {
    let ten_lines: String = text("public/cppbench.heap").lines().take(10).flat_map(|line| [line, "\n"]).collect();
    let profile = profile(ten_lines);
    assert_eq!(profile.format(), "legacy-heap");
    assert_eq!(profile.samples().len(), 9);
}

#[test]
fn a_header_without_rows_holds_0_samples() {
    let maps = "\nMAPPED_LIBRARIES:\n00400000-00fcb000 r-xp 00000000 00:00 1 /bin/server\n";
    for (file, types) in [
        (format!("heap profile:      0:        0 [     0:        0] @ heapprofile{maps}"), 2),
        (format!("heap profile: 0: 0 [12: 4096] @ heap/1048576{maps}"), 4),
        ("goroutine profile: total 0\n".to_owned(), 1),
        ("--- mutex:\ncycles/second=1000\nsampling period=1\n".to_owned(), 2),
        ("--- contentionz 1 ---\n".to_owned(), 2),
        ("--- threadz 1 ---\n".to_owned(), 1),
    ] {
        let profile = profile(&file);
        assert_eq!(profile.value_types().len(), types, "{file}");
        assert_eq!(profile.samples().len(), 0, "{file}");
        assert_eq!(profile.notes(), ["the profile holds 0 samples"], "{file}");
    }
}

#[test]
fn a_memory_map_that_is_cut_off_leaves_addresses_unresolved() {
    let whole = text("public/cppbench.heap");
    let cut = whole.find("7f47a542f000-7f47a54").unwrap() + "7f47a542f000-7f47a54".len();
    let profile = profile(&whole[..cut]);
    assert_note(&profile, "the memory map ends inside a line");
    assert_note(&profile, "in no binary: 1");
    let unmapped: Vec<u64> = profile
        .locations()
        .ids()
        .filter(|&id| profile.locations().mapping(id).is_none())
        .map(|id| profile.locations().address(id))
        .collect();
    assert_eq!(unmapped, [0x7f47_a543_60fd]);
    assert_eq!(profile.sum(0).total, crate::profile(whole).sum(0).total);
}

#[test]
fn the_map_of_the_file_is_used_and_not_our_own() {
    let file = "heap profile: 1: 8 [1: 8] @ heapprofile\n1: 8 [1: 8] @ 0x401010 0x7f0000001234 0x99\n\n\
                MAPPED_LIBRARIES:\n00400000-00500000 r-xp 00000000 08:01 42 /bin/a program\n\
                00500000-00600000 rw-p 00000000 08:01 42 /bin/a program\n\
                7f0000001000-7f0000002000 r-xs 00001000 08:01 43   /lib/libx-1.so.2 (deleted)\n";
    let first = profile(file);
    let mappings: Vec<(&str, u64)> =
        first.mappings().iter().map(|mapping| (first.text(mapping.file), mapping.memory_start)).collect();
    assert_eq!(mappings, [("", 0), ("/bin/a program", 0x40_0000), ("/lib/libx-1.so.2", 0x7f00_0000_1000)]);
    assert_note(&first, "only addresses: 3 of 3 distinct frames");
    assert_note(&first, "/bin/a program (1), /lib/libx-1.so.2 (1); in no binary: 1");
    assert_eq!(raw::dump(&first, Names::Shown), raw::dump(&profile(file), Names::Shown));
}

#[test]
fn maps_may_be_brief_have_variables_and_log_prefixes() {
    let profile = profile(
        "heap profile: 1: 8 [1: 8] @ heapprofile\n1: 8 [1: 8] @ 0x1010\n--- Memory map: ---\n\
         src=/home/x\nsrcdir=$src/bin\nI1 12:00 map.cc:7] 0x1000-0x2000 r-xp $srcdir/server (@ff00) abc123456\n\
         2000-3000: $other/$src/lib.so\nnonsense\n",
    );
    let regions: Vec<_> = profile.mappings()[1..]
        .iter()
        .map(|m| (profile.text(m.file), m.memory_start, m.memory_limit, m.file_offset, profile.text(m.build_id)))
        .collect();
    assert_eq!(
        regions,
        [("/home/x/bin/server", 0x1000, 0x2000, 0xff00, "abc123456"), ("$other//home/x/lib.so", 0x2000, 0x3000, 0, ""),]
    );
    assert_note(&profile, "lines of the memory map that can't be read: 1");
    assert_note(&profile, "/home/x/bin/server with build id abc123456 (1)");
}

#[test]
fn variables_that_hold_each_other_do_not_explode() {
    let doubling: String = (0..60).flat_map(|i| [format!("a{}=$a{i}$a{i}$a{i}\n", i + 1)]).collect();
    let file = format!("heap profile: 0: 0 [0: 0] @ heap/1\n--- Memory map: ---\na0=xxxxxxxx\n{doubling}1-2 $a60\n");
    assert_eq!(profile(file).samples().len(), 0);
}

#[test]
fn heaps_of_a_difference_have_negative_rows() {
    let profile = profile(
        "heap profile: 1: 4096 [0: 0] @ heapprofile\n-1: -4096 [0: 0] @ 0x10 0x20\n2: 8192 [0: 0] @ 0x10 0x20\n",
    );
    assert_eq!((profile.sum(1).net, profile.sum(1).total), (4096, 12288));
}

#[test]
fn rows_that_do_not_parse_are_left_out_and_counted() {
    let profile = profile(
        "heap profile: 2: 16 [2: 16] @ heapprofile\n1: 8 [1: 8] @ 0x10\n0: 8 [1: 8] @ 0x10\nrubbish\n1: 8 [1: 8] @ 0x20\n",
    );
    assert_eq!(profile.samples().len(), 2);
    assert_note(&profile, "rows left out because they can't be read: 2, the first is line 3");
    assert_eq!(
        error("heap profile: 1: 8 [1: 8] @ heapprofile\nrubbish\n"),
        "no row of it can be read, from line 2 on (read as legacy-heap)"
    );
}

#[test]
fn what_is_not_a_profile_of_these_is_refused_with_a_reason() {
    for (file, kind, part) in [
        (text("go/profiles/goroutine.debug2.txt"), DecodeErrorKind::NotAProfile, "goroutine dump (debug=2)"),
        ("heap profile: 1: 2 [3: 4] @ heap_v9/1\n".to_owned(), DecodeErrorKind::Unsupported, "`heap_v9`"),
        ("heap profile: what\n".to_owned(), DecodeErrorKind::Invalid, "header is damaged"),
    ] {
        let error = read(&file).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
}

/// Words of a CPU profile.
fn cpu(words: &[u64], width: usize, is_big_endian: bool, text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in words {
        let word = if is_big_endian { word.to_be_bytes() } else { word.to_le_bytes() };
        bytes.extend_from_slice(if is_big_endian { &word[8 - width..] } else { &word[..width] });
    }
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

#[test]
fn cpu_profiles_have_words_of_either_size_and_order() {
    let words = [0, 3, 0, 10_000, 0, 2, 2, 0x1010, 0x2020, 1, 2, 0x1010, 0x3030, 0, 1, 0];
    for (width, is_big_endian) in [(4, false), (4, true), (8, false), (8, true)] {
        let profile = profile(cpu(&words, width, is_big_endian, "1000-2000 r-xp 0 08:01 1 /bin/x\n"));
        assert_eq!(profile.sum(0).total, 3);
        assert_eq!(profile.sum(1).total, 30_000_000);
        assert_eq!(profile.locations().ids().count(), 3);
    }
}

#[test]
fn a_cpu_profile_that_is_cut_off_keeps_whole_samples() {
    let words = [0, 3, 0, 10_000, 0, 2, 2, 0x1010, 0x2020, 1, 2, 0x1010, 0x3030];
    let file = cpu(&words, 8, false, "");
    let missing_end = profile(&file);
    assert_eq!(missing_end.sum(0).total, 3);
    assert_note(&missing_end, "before its end marker");
    let cut = profile(&file[..file.len() - 3]);
    assert_eq!(cut.sum(0).total, 2);
    assert_note(&cut, "before its end marker");
    assert_eq!(read(&file[..8 * 7]).unwrap_err().kind(), DecodeErrorKind::Truncated);
}
