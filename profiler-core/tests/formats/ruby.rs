//! Ruby's stackprof.

use serde_json::json;

use crate::{Costs, bytes, functions, lines, profile, types};

#[test]
fn lines_have_what_passes_and_what_ends() {
    let profile = profile(bytes("public/simple.stackprof.json"));
    let expected = crate::json("public/oracle/simple.stackprof.json.json");
    let ours = lines(&profile, 0);
    let listed = expected["lines_total_self"].as_array().unwrap();
    for row in listed {
        let line = format!("{}:{}", row[1].as_str().unwrap(), row[2]);
        let (total, own) = (row[3].as_i64().unwrap(), row[4].as_i64().unwrap());
        // Two functions share line 37.
        let others: i64 =
            listed.iter().filter(|other| other[2] == row[2] && *other != row).map(|o| o[3].as_i64().unwrap()).sum();
        assert_eq!(ours[&line], (own, total + others), "{row}");
    }
    for row in expected["functions"].as_array().unwrap() {
        let (total, own) = (row[3].as_i64().unwrap(), row[4].as_i64().unwrap());
        assert_eq!(functions(&profile, 0)[row[0].as_str().unwrap()], (own, total), "{row}");
    }
    assert_eq!(profile.sum(0).total, 489);
    assert_eq!(types(&profile), ["samples/count"]);
    assert_eq!(profile.meta().period, 1_000_000);
}

#[test]
fn stacks_with_lines_are_samples() {
    let frame =
        |name: &str, line: i64| json!({"name": name, "file": "a.rb", "line": line, "total_samples": 3, "samples": 0});
    let file = json!({"version": 1.2, "mode": "wall", "interval": 500, "samples": 5, "gc_samples": 0, "missed_samples": 2,
        "frames": {"10": frame("main", 1), "20": frame("work", 5)},
        "raw": [2, 10, 20, 3, 1, 10, 2], "raw_lines": [2, 2, 6, 3, 1, 3, 2]});
    let profile = profile(file.to_string());
    assert_eq!(
        lines(&profile, 0),
        Costs::from([("a.rb:2".into(), (0, 3)), ("a.rb:3".into(), (2, 2)), ("a.rb:6".into(), (3, 3)),])
    );
    assert_eq!(functions(&profile, 0)["main"], (2, 5));
    crate::assert_note(&profile, "2 samples were missed");
}
