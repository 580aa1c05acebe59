//! `perflens check`, and comparisons of what did the same work.

use std::path::{Path, PathBuf};

use expect_test::expect;
use perflens_tests::cli::{Output, Run};
use perflens_tests::mini::Mini;

/// A profile of 10 ms samples: `parse`, `print`, and what the profile says of its work.
fn write(folder: &Path, name: &str, parse: i64, print: i64, work: Option<&str>) -> PathBuf {
    let comment = work.map(|work| format!("!comment {work}\n")).unwrap_or_default();
    let text = format!(
        "samples/count cpu/nanoseconds
         !period cpu/nanoseconds 10_000_000
         !duration {}
         {comment}
         main.rs:5 main; main.rs:20 parse = {parse}, {}
         main.rs:6 main; main.rs:30 print = {print}, {}
        ",
        (parse + print) * 10_000_000,
        parse * 10_000_000,
        print * 10_000_000,
    );
    let path = folder.join(name);
    Mini::parse(&text).write_to(&path);
    path
}

fn check(profiles: &[&PathBuf], arguments: &[&str]) -> Output {
    Run::new(["check"]).args(profiles.iter().map(|path| path.as_os_str())).args(arguments.iter().copied()).output()
}

fn text(profiles: &[&PathBuf], arguments: &[&str]) -> String {
    let output = check(profiles, &[&["--format", "text"], arguments].concat());
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    output.stdout
}

#[test]
fn twice_as_fast_is_improved_there_and_unchanged_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let base = write(folder.path(), "base.pb.gz", 1000, 1000, None);
    let new = write(folder.path(), "new.pb.gz", 500, 1010, None);
    expect![[r#"
        new.pb.gz against base.pb.gz (base)
        cpu 15.1s against 20.0s · 1.51k samples over 15.1s against 2.00k samples over 20.0s
        By value, of the same work on both sides: changes are percentage points of the base's 20.0s cpu.

        Everything: 20.0s → 15.1s ±1.16s, improved. Functions: 2 improved, 1 unchanged.

        Functions by change of cost with calls, of base
           change    ±   base→new    verdict    function  place
        ▼ −25.0pp  3.8  10.0s→5.00s  improved   parse     main.rs
        ▼ −24.5pp  5.8  20.0s→15.1s  improved   main      main.rs
        ≈  +0.5pp  4.4  10.0s→10.1s  unchanged  print     main.rs

        ± is the 95 % confidence interval, by the numbers of samples: what is beyond it is a change; what is not is unchanged, or inconclusive where ± is more than 10pp.
    "#]]
    .assert_eq(&text(&[&base, &new], &["--same-work"]));
    // Without knowing that the work is the same, only shares compare.
    expect![[r#"
        new.pb.gz against base.pb.gz (base)
        cpu 15.1s against 20.0s · 1.51k samples over 15.1s against 2.00k samples over 20.0s
        By share, as the totals differ by more than 10 %: each side counts as shares of its own total, changes are percentage points between them.

        Functions: 1 regressed, 1 improved, 1 unchanged.

        Functions by change of cost with calls, share of each side's total
           change    ±   base→new    verdict    function  place
        ▼ −16.9pp  4.2  50.0%→33.1%  improved   parse     main.rs
        ▲ +16.9pp  5.2  50.0%→66.9%  regressed  print     main.rs

        ± is the 95 % confidence interval, by the numbers of samples: what is beyond it is a change; what is not is unchanged, or inconclusive where ± is more than 10pp.
    "#]].assert_eq(&text(&[&base, &new], &[]));
}

#[test]
fn recordings_that_tell_their_work_need_no_word() {
    let folder = tempfile::tempdir().unwrap();
    let base = write(folder.path(), "base.pb.gz", 1000, 1000, Some("work: 30 × lib.rs sums"));
    let same = write(folder.path(), "same.pb.gz", 500, 1000, Some("work: 30 × lib.rs sums"));
    let more = write(folder.path(), "more.pb.gz", 1000, 2000, Some("work: 60 × lib.rs sums"));
    let other = write(folder.path(), "other.pb.gz", 500, 1000, Some("work: 30 × lib.rs other"));
    for (new, words, change) in [
        (&same, "By value, of the same work on both sides", "−25.0pp"),
        (&more, "By value, brought to the base's amount of work", "−25.0pp"),
        (&other, "By share, as the totals differ", "−16.7pp"),
    ] {
        let text = text(&[&base, new], &[]);
        assert!(text.contains(words) && text.contains(change), "{text}");
        // A report compares them alike.
        let report = Run::new(["report"]).arg(new.as_os_str()).arg("--base").arg(base.as_os_str()).output();
        assert!(report.stdout.contains(words) && report.stdout.contains(change), "{}", report.stdout);
    }
}

#[test]
fn runs_in_turns_tell_a_change_from_a_moody_machine() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, parse| write(folder.path(), name, parse, 1000, None);
    let (b1, n1) = (file("b1.pb.gz", 1000), file("n1.pb.gz", 1300));
    let (b2, n2, m2) = (file("b2.pb.gz", 1010), file("n2.pb.gz", 1320), file("m2.pb.gz", 1000));
    let steady = text(&[&b1, &n1, &b2, &n2], &["--same-work"]);
    assert!(steady.lines().any(|line| line.contains("regressed") && line.contains("parse")), "{steady}");
    let moody = text(&[&b1, &n1, &b2, &m2], &["--same-work", "--matters", "5"]);
    assert!(moody.lines().any(|line| line.contains("inconclusive") && line.contains("parse")), "{moody}");
}

#[test]
fn it_fails_on_request_only_and_only_for_what_every_pair_shows() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, parse| write(folder.path(), name, parse, 1000, None);
    let (base, worse, slightly) = (file("b.pb.gz", 1000), file("w.pb.gz", 1500), file("s.pb.gz", 1120));
    assert_eq!(check(&[&base, &worse], &["--same-work"]).code, Some(0));
    let failed = check(&[&base, &worse], &["--same-work", "--fail-above", "5"]);
    assert_eq!(failed.code, Some(3));
    assert_eq!(failed.stderr, "perflens: dearer by 5 points or more: main, parse\n");
    assert_eq!(check(&[&base, &worse], &["--same-work", "--fail-above", "50"]).code, Some(0));
    // Beyond chance on the whole, but not in each pair.
    let pairs = [&base, &worse, &base, &slightly];
    let judged = check(&pairs, &["--same-work", "--format", "json"]).stdout;
    assert!(judged.contains("\"in_every_pair\": true"), "{judged}");
    assert_eq!(check(&[&base, &slightly], &["--same-work", "--fail-above", "20"]).code, Some(0));
    assert_eq!(check(&[&worse, &base], &["--same-work", "--fail-above", "0"]).code, Some(0));
}

#[test]
fn wrong_words_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let base = write(folder.path(), "b.pb.gz", 10, 10, None);
    let odd = check(&[&base, &base, &base], &[]);
    assert_eq!(odd.code, Some(2));
    assert!(odd.stderr.contains("BASE NEW BASE NEW"), "{}", odd.stderr);
    assert_eq!(check(&[&base, &base], &["--matters", "-1"]).code, Some(2));
    // Without counts of samples nothing is known of chance, and nothing is called unchanged.
    let heap = folder.path().join("heap.pb.gz");
    Mini::parse("inuse_space/bytes\nmain.rs:5 main = 1000").write_to(&heap);
    let uncounted = check(&[&heap, &heap], &[]);
    assert_eq!(uncounted.code, Some(1));
    assert!(uncounted.stderr.contains("don't count samples"), "{}", uncounted.stderr);
    assert_eq!(check(&[&base, &folder.path().join("none")], &[]).code, Some(1));
}

#[test]
fn the_report_is_markdown_for_a_pull_request() {
    let folder = tempfile::tempdir().unwrap();
    let base = write(folder.path(), "base.pb.gz", 1000, 1000, None);
    let new = write(folder.path(), "new.pb.gz", 500, 1010, None);
    let output = check(&[&base, &new], &["--same-work"]);
    expect![[r#"
        **new.pb.gz** against **base.pb.gz** (base)

        `cpu` 15.1s against 20.0s · 1.51k samples over 15.1s against 2.00k samples over 20.0s

        By value, of the same work on both sides: changes are percentage points of the base's 20.0s `cpu`.

        Everything: **20.0s → 15.1s ±1.16s, improved**. Functions: 2 improved, 1 unchanged.

        **Functions by change of cost with calls**, of base

        ```text
           change    ±   base→new    verdict    function  place
        ▼ −25.0pp  3.8  10.0s→5.00s  improved   parse     main.rs
        ▼ −24.5pp  5.8  20.0s→15.1s  improved   main      main.rs
        ≈  +0.5pp  4.4  10.0s→10.1s  unchanged  print     main.rs
        ```

        ± is the 95 % confidence interval, by the numbers of samples: what is beyond it is a change; what is not is unchanged, or inconclusive where ± is more than 10pp.
    "#]]
    .assert_eq(&output.stdout);
}
