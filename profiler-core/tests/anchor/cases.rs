//! Single changes, and what they mean.

use expect_test::expect;
use profiler_core::anchor::{Fate, LineMap};

/// Both texts beside each other: where each old line is.
fn check(old: &str, new: &str) -> String {
    let map = LineMap::between(old, new);
    let line = |(number, line): (usize, &str)| {
        let mapped = map.get(u32::try_from(number).unwrap());
        let what = match mapped.fate {
            Fate::Exact => "=".to_owned(),
            Fate::Shifted => format!("{}", mapped.line),
            Fate::Uncertain(doubt) => format!("~{} ({doubt})", mapped.line),
            Fate::Gone => "gone".to_owned(),
        };
        format!("{:<24}{what}\n", line.trim_end())
    };
    (1..).zip(old.lines()).map(line).collect()
}

const OLD: &str = "\
fn one() {
    alpha(1);
    beta(2, 3);
}

fn two() {
    gamma(4);
    beta(2, 3);
}
";

#[test]
fn nothing_has_changed() {
    assert!(LineMap::between(OLD, OLD).is_same());
    assert!(LineMap::between(OLD, &OLD.replace('\n', "\r\n")).is_same());
    assert!(LineMap::between(OLD, &format!("\u{feff}{OLD}")).is_same());
    assert!(!LineMap::between(OLD, &format!("{OLD}// more\n")).is_same());
}

#[test]
fn lines_above() {
    expect![[r#"
        fn one() {              3
            alpha(1);           4
            beta(2, 3);         5
        }                       6
                                7
        fn two() {              8
            gamma(4);           9
            beta(2, 3);         10
        }                       11
    "#]]
    .assert_eq(&check(OLD, &format!("// licence\n//\n{OLD}")));
}

#[test]
fn a_line_that_repeats_is_marked_where_it_could_be_either() {
    expect![[r#"
        fn one() {              =
            alpha(1);           =
            beta(2, 3);         =
        }                       =
                                =
        fn two() {              =
            gamma(4);           =
            beta(2, 3);         ~8 (other lines nearby read the same)
        }                       ~9 (other lines nearby read the same)
    "#]]
    .assert_eq(&check(OLD, &OLD.replace("    gamma(4);\n", "    gamma(4);\n    beta(2, 3);\n}\n\nfn three() {\n")));
}

#[test]
fn functions_change_places() {
    let (one, two) = OLD.split_once("\n\n").unwrap();
    expect![[r#"
        fn one() {              ~6 (a line like it stands in another place now)
            alpha(1);           ~7 (a line like it stands in another place now)
            beta(2, 3);         ~3 (other lines nearby read the same)
        }                       ~4 (other lines nearby read the same)
                                ~5 (other lines nearby read the same)
        fn two() {              ~1 (a line like it stands in another place now)
            gamma(4);           ~2 (a line like it stands in another place now)
            beta(2, 3);         ~8 (other lines nearby read the same)
        }                       ~9 (other lines nearby read the same)
    "#]]
    .assert_eq(&check(OLD, &format!("{two}\n{one}\n")));
}

#[test]
fn edited_broken_and_deleted_lines() {
    let new = OLD.replace("alpha(1)", "alpha(12)").replace("    gamma(4);\n", "    gamma(\n        4,\n    );\n");
    let new = new.replacen("    beta(2, 3);\n", "", 1);
    expect![[r#"
        fn one() {              =
            alpha(1);           ~2 (the line itself was edited)
            beta(2, 3);         gone
        }                       3
                                4
        fn two() {              5
            gamma(4);           ~6 (the code was broken into other lines)
            beta(2, 3);         9
        }                       10
    "#]]
    .assert_eq(&check(OLD, &new));
}

#[test]
fn one_change_after_another() {
    let middle = format!("// top\n{OLD}");
    let new = middle.replace("    gamma(4);\n", "    delta(0);\n    gamma(4);\n");
    let chain = LineMap::between(OLD, &middle).then(&LineMap::between(&middle, &new));
    assert_eq!(chain, LineMap::between(OLD, &new));
    let there_and_back = LineMap::between(OLD, &middle).then(&LineMap::between(&middle, OLD));
    assert!(there_and_back.iter().all(|(_, mapped)| mapped.fate == Fate::Exact));
}

#[test]
fn nothing_is_assumed_of_texts() {
    for (old, new) in
        [("", ""), ("", "a"), ("a", ""), ("\n", "\n\n"), ("a\rb\rc", "a\nb\nc"), ("\u{0}\n\u{0}", "\u{0}")]
    {
        let map = LineMap::between(old, new);
        for (_, mapped) in map.iter() {
            assert_eq!(mapped.line == 0, mapped.fate == Fate::Gone, "{old:?} {new:?}");
        }
        assert_eq!(map.get(0), map.get(u32::MAX));
    }
    // Longer than what is compared line by line: still right where it begins and ends.
    let long: String = (0..210_000).map(|line| format!("{line}\n")).collect();
    let map = LineMap::between(&long, &format!("new\n{long}"));
    assert_eq!(map.get(200_000).line, 200_001);
    let repeated = "}\n".repeat(150_000);
    let map = LineMap::between(&repeated, &format!("{repeated}x\n"));
    assert!(map.iter().all(|(_, mapped)| mapped.line > 0));
}
