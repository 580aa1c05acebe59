//! cProfile, Austin in both forms, and Scalene.

use profiler_core::decode::DecodeErrorKind;
use profiler_core::profile::LineDetail;
use serde_json::json;

use crate::{Costs, assert_has, assert_note, bytes, functions, labels, lines, oracle, profile, read, text, types};

#[test]
fn cprofile_knows_functions_and_their_time_with_calls() {
    let profile = profile(bytes("made/python/demo.pstats"));
    let expected = crate::json("made/oracle/demo.pstats.json");
    assert_eq!(types(&profile), ["calls/count", "time/nanoseconds"]);
    let (time, calls) = (functions(&profile, 1), functions(&profile, 0));
    for row in expected["rows"].as_array().unwrap() {
        let name = row[2].as_str().unwrap();
        let ns = |value: &serde_json::Value| (value.as_f64().unwrap() * 1e9).round() as i64;
        assert_eq!(time[name], (ns(&row[5]), ns(&row[6])), "{row}");
        assert_eq!(calls[name].0, row[4].as_i64().unwrap(), "{row}");
    }
    assert!(lines(&profile, 1).is_empty());
    assert_eq!(profile.meta().line_detail, LineDetail::FunctionOnly);
    assert_note(&profile, "function level");
}

#[test]
fn shared_values_of_pstats_take_no_memory_of_their_own() {
    // A tuple of two references to the tuple before, and so on: 2^40 values if copied.
    let mut file = vec![b'{' | 0x80, b')' | 0x80, 3, b'z' | 0x80, 1, b'a'];
    for depth in 0u8..20 {
        let _ = depth;
        file.extend([b')' | 0x80, 2, b'r', 2, 0, 0, 0, b'r', 2, 0, 0, 0]);
    }
    assert!(read(&file).is_err());
    let nested: Vec<u8> = [vec![b'{', b')', 3], vec![b')'; 200]].concat();
    assert!(read(&nested).is_err());
}

#[test]
fn austins_text_and_binary_read_like_the_independent_reader_says() {
    for (name, format) in [("demo.austin.txt", "austin"), ("demo.mojo", "mojo")] {
        let profile = profile(bytes(&format!("made/python/{name}")));
        let expected = crate::json(&format!("made/oracle/{name}.json"));
        assert_eq!(profile.format(), format);
        assert_eq!(types(&profile), ["wall/nanoseconds"]);
        assert_eq!(profile.sum(0).total, expected["total"].as_i64().unwrap() * 1000, "{name}");
        assert_eq!(profile.samples().len() as i64, expected["samples"].as_i64().unwrap(), "{name}");
        let listed: Costs =
            oracle(&expected["lines"], 1000.0).into_iter().filter(|(line, _)| !line.starts_with('<')).collect();
        assert_has(&lines(&profile, 0), &listed, name);
        let mut named = oracle(&expected["functions"], 1000.0);
        // Every module has one of these.
        named.remove("<module>");
        assert_has(&functions(&profile, 0), &named, name);
        assert_eq!(profile.meta().period, 5_000_000);
        let duration: i64 = expected["meta"]["duration"].as_str().unwrap().parse().unwrap();
        assert_eq!(profile.meta().duration_ns, Some(duration * 1000), "{name}");
        assert!(labels(&profile, 0)[0].starts_with("process="), "{:?}", labels(&profile, 0));
        assert_eq!(profile.notes(), [""; 0], "{name}");
    }
}

#[test]
fn austin_is_known_without_its_head_and_with_other_metrics() {
    let headless: String = text("made/python/demo.austin.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(|line| [line, "\n"])
        .collect();
    assert_eq!(profile(headless).format(), "austin");
    let full = profile("# austin: 3.7.0\n# mode: full\n\nP1;T0:7;a.py:f:3 10,0,512\nP1;T0:7;a.py:f:4;:GC: 5,1,-64\n");
    assert_eq!(types(&full), ["wall/nanoseconds", "cpu/nanoseconds", "memory/bytes"]);
    assert_eq!(lines(&full, 1), Costs::from([("a.py:3".into(), (10_000, 10_000))]));
    assert_eq!(full.sum(2).net, 448);
    assert_eq!(functions(&full, 0)["GC"], (5_000, 5_000));
    let memory = profile("# austin: 3.7.0\n# mode: memory\n\nP1;T0:7;a.py:f:3 4096\n");
    assert_eq!(types(&memory), ["memory/bytes"]);
}

#[test]
fn a_recording_of_mojo_that_is_cut_off_keeps_whole_stacks() {
    let whole = bytes("made/python/demo.mojo");
    let mut noted = 0;
    for length in 6_000..6_020 {
        let cut = profile(&whole[..length]);
        assert!(cut.samples().len() > 50 && cut.samples().len() < 246);
        noted += usize::from(cut.notes().iter().any(|note| note.starts_with("the file is incomplete")));
    }
    // Between two events no byte is missing.
    assert!(noted > 10);
    let mut newer = whole;
    newer[3] = 9;
    assert_eq!(read(newer).unwrap_err().kind(), DecodeErrorKind::Unsupported);
}

#[test]
fn scalene_knows_what_lines_cost_themselves() {
    let line = |number: i64, python: f64, native: f64, malloc: f64| {
        json!({"lineno": number, "line": "x = 1", "n_cpu_percent_python": python, "n_cpu_percent_c": native,
               "n_sys_percent": 0, "n_malloc_mb": malloc})
    };
    let file = json!({"elapsed_time_sec": 2.0, "alloc_samples": 3, "files": {
        "/srv/app.py": {"functions": [], "lines": [line(1, 0.0, 0.0, 0.0), line(12, 40.0, 10.0, 1.5), line(13, 25.5, 0.0, 0.0)]}}});
    let profile = profile(file.to_string());
    assert_eq!(
        lines(&profile, 0),
        Costs::from([
            ("/srv/app.py:12".into(), (1_000_000_000, 1_000_000_000)),
            ("/srv/app.py:13".into(), (510_000_000, 510_000_000)),
        ])
    );
    assert_eq!(lines(&profile, 4)["/srv/app.py:12"].0, 1_572_864);
    assert_eq!(profile.meta().line_detail, LineDetail::FlatOnly);
}
