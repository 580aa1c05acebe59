//! Heap profiles of DHAT and jemalloc.

use serde_json::json as object;

use crate::{Costs, bytes, json, lines, profile, types};

#[test]
fn dhat_reads_like_the_independent_reader_says() {
    for (name, oracle) in [("made/c/dhat.json", "dhat.json"), ("made/rust/dhat-heap.json", "dhat-heap.json")] {
        let profile = profile(bytes(name));
        let expected = json(&format!("made/oracle/{oracle}.json"));
        let kinds = ["peak_objects", "peak_space", "inuse_objects", "inuse_space", "alloc_objects", "alloc_space"];
        let found: Vec<&str> = profile.value_types().iter().map(|kind| &*kind.kind).collect();
        assert_eq!(found, kinds, "{name}");
        for (column, key) in [(1, "at_gmax_bytes"), (3, "at_end_bytes"), (4, "total_blocks"), (5, "total_bytes")] {
            assert_eq!(profile.sum(column).total, expected[key].as_i64().unwrap(), "{name}: {key}");
        }
        let ours = lines(&profile, 5);
        for row in expected["lines_total_bytes"].as_array().unwrap().iter().filter(|row| row[1] != 0) {
            let line = format!("{}:{}", row[0].as_str().unwrap(), row[1]);
            assert_eq!(ours[&line].1, row[2].as_i64().unwrap(), "{name}: {line}");
        }
    }
}

#[test]
fn dhat_of_events_counts_units() {
    let file = object!({"dhatFileVersion": 2, "mode": "ad-hoc", "verb": "Occurred", "bklt": false, "bu": "unit", "bksu": "events",
        "pps": [{"tb": 12, "tbk": 3, "fs": [1, 2]}], "ftbl": ["[root]", "0x1: hot (a.rs:3:1)", "0x2: main (a.rs:9:1)"]});
    let profile = profile(file.to_string());
    assert_eq!(types(&profile), ["events/events", "units/unit"]);
    assert_eq!(lines(&profile, 1), Costs::from([("a.rs:3".into(), (12, 12)), ("a.rs:9".into(), (0, 12))]));
}

const JEMALLOC: &str = "heap_v2/524288\n  t*: 28106: 56637512 [0: 0]\n  t0: 352: 16777344 [0: 0]\n\
@ 0x55e0c1a2 0x55e0c0ff\n  t*: 13: 6688 [0: 0]\n  t3: 13: 6688 [0: 0]\n\
@ 0x55e0c1a2\n  t*: 1: 1048576 [0: 0]\n\n\
MAPPED_LIBRARIES:\n55e0c000-55e0d000 r-xp 00001000 08:01 42                     /usr/bin/app\n";

#[test]
fn jemalloc_holds_what_was_sampled_of_addresses_in_binaries() {
    let profile = profile(JEMALLOC);
    assert_eq!(types(&profile), ["inuse_objects/count", "inuse_space/bytes"]);
    // 13 objects of 514 bytes are seen once in 1020 times each; 1 MiB with 86 in 100.
    let estimate = |objects: f64, bytes: f64| {
        let factor = 1.0 / (1.0 - (-bytes / objects / 524_288.0).exp());
        ((objects * factor) as i64, (bytes * factor) as i64)
    };
    let expected = [estimate(13.0, 6688.0), estimate(1.0, 1_048_576.0)];
    for (sample, (objects, bytes)) in expected.into_iter().enumerate() {
        assert_eq!(profile.samples().values(0)[sample], objects);
        assert_eq!(profile.samples().values(1)[sample], bytes);
    }
    let leaf = profile.samples().stack(0)[0];
    // Addresses are where calls return to.
    assert_eq!(profile.locations().address(leaf), 0x55e0_c1a1);
    assert_eq!(profile.text(profile.mapping(profile.locations().mapping(leaf)).file), "/usr/bin/app");
    assert!(profile.notes().iter().any(|note| note.contains("naming them takes the binary: /usr/bin/app")));
}

#[test]
fn jemalloc_may_have_allocations_as_well() {
    let profile = profile(JEMALLOC.replace("6688 [0: 0]", "6688 [20: 9000]"));
    assert_eq!(
        types(&profile),
        ["alloc_objects/count", "alloc_space/bytes", "inuse_objects/count", "inuse_space/bytes"]
    );
    assert!(profile.samples().values(1)[0] > profile.samples().values(3)[0]);
    assert_eq!(profile.samples().values(0)[1], 0);
}
