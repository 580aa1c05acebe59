use std::path::Path;

use expect_test::expect;
use profiler_core::attribute::FileGroups;
use profiler_core::profile::Profile;
use profiler_core::view::annotate::{self, Subject, Wanted};
use profiler_core::view::source::Source;
use profiler_core::view::text;

use crate::profiles::{analyze, compare, placed, profile};

fn sample() -> Profile {
    profile(&[
        ("parse src/a.rs:2 < run src/a.rs:6 < main src/main.rs:5", 30),
        ("trim std/str.rs:8 < parse src/a.rs:3 < run src/a.rs:6", 60),
        ("run src/a.rs:5", 1),
        ("tick dep/timer.rs:3", 9),
    ])
}

fn find(profile: &Profile, path: &str) -> Result<String, String> {
    let analysis = analyze(profile, placed(profile), &[]);
    let is_at = |other: &Path| other == Path::new(path);
    annotate::find(&analysis, &Wanted { path, is_at: &is_at })
        .map(|group| analysis.groups.display(profile, group).to_owned())
        .map_err(|error| error.to_string())
}

fn annotated(source: &[u8], width: Option<usize>) -> String {
    let profile = sample();
    let analysis = analyze(&profile, placed(&profile), &[]);
    let is_at = |path: &Path| path == Path::new("src/a.rs");
    let file = annotate::find(&analysis, &Wanted { path: "src/a.rs", is_at: &is_at }).unwrap();
    let source = Source::new(source);
    let subject = Subject { origin: "cpu.pb.gz", base_origin: "", file, source: &source };
    text::plain(&annotate::annotate(&analysis, None, &subject), width)
}

#[test]
fn costs_stand_beside_their_lines() {
    let source = b"fn parse(line: &str) {\n\tlet level = next(line);\n\t\ttrim(line) // \xe2\x86\x92 done\n}\nfn run() {\n    parse(\"x\")\n}\n";
    expect![[r#"
        cpu.pb.gz · cpu 1.00s · 100 samples over 4.00s · 91% placed in the workspace

        src/a.rs: 91% of 1.00s cpu with calls, 91% here · 2 functions · matched: exact path
            with calls   here
                               1 │ fn parse(line: &str) {
        █ 30.0%  300ms  30.0%  2 │     let level = next(line);
        █ 60.0%  600ms  60.0%  3 │         trim(line) // → done
                               4 │ }
        ▂  1.0% 10.0ms   1.0%  5 │ fn run() {
        █ 90.0%  900ms         6 │     parse("x")
                               7 │ }
    "#]]
    .assert_eq(&annotated(source, None));
}

#[test]
fn any_bytes_are_shown_on_their_line() {
    let source = b"one\r\ntwo \x1b[31m\r\nthree \xff\r\nfour \rstill four\r\nfive \xe2\x80\xaeevil\r\nsix 012345678901234567890123456789012345678901234567890123456789";
    expect![[r#"
        cpu.pb.gz · cpu 1.00s · 100 samples over 4.00s · 91% placed
        in the workspace

        src/a.rs: 91% of 1.00s cpu with calls, 91% here · 2
        functions · matched: exact path
            with calls   here
                               1 │ one
        █ 30.0%  300ms  30.0%  2 │ two \u{1b}[31m
        █ 60.0%  600ms  60.0%  3 │ three �
                               4 │ four \rstill four
        ▂  1.0% 10.0ms   1.0%  5 │ five \u{202e}evil
        █ 90.0%  900ms         6 │ six 0123456789012345678901234567…
    "#]]
    .assert_eq(&annotated(source, Some(60)));
}

#[test]
fn lines_end_as_compilers_count_them() {
    let lines = |text: &[u8]| {
        let source = Source::new(text);
        (1..=source.len()).map(|line| source.line(line).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(lines(b""), [] as [&str; 0]);
    assert_eq!(lines(b"\n"), [""]);
    assert_eq!(lines(b"a"), ["a"]);
    assert_eq!(lines(b"a\nb\n"), ["a", "b"]);
    assert_eq!(lines(b"a\r\nb\r\n\r\n"), ["a", "b", ""]);
    assert_eq!(lines(b"a\rb\r"), ["a", "b"]);
    assert_eq!(lines(b"a\rb\nc"), ["a\rb", "c"]);
    assert_eq!(lines(b"\xef\xbb\xbfa\n"), ["a"]);
}

#[test]
fn a_shorter_file_has_changed_since() {
    let text = annotated(b"fn parse(line: &str) {\n", None);
    let last = text.trim_end().lines().last().unwrap();
    assert_eq!(
        last,
        "4 lines of the profile are past the end of this file: it has changed since, so the costs above may stand on wrong lines."
    );
}

#[test]
fn nothing_to_show_has_its_reason() {
    let profile = sample();
    assert_eq!(find(&profile, "src/a.rs"), Ok("src/a.rs".to_owned()));
    let errors = ["other/str.rs", "src/new.rs"].map(|path| find(&profile, path).unwrap_err()).join("\n");
    expect![[r#"
        the profile's std/str.rs was not taken for it: elsewhere
        the profile names no file like it; it spends most in src/a.rs, std/str.rs, src/main.rs"#]]
    .assert_eq(&errors);

    let silent = crate::profiles::profile(&[("parse src/a.rs:2", 0), ("main src/main.rs:5", 1)]);
    expect!["the profile names it, but holds nothing of type cpu there"]
        .assert_eq(&find(&silent, "src/a.rs").unwrap_err());
}

#[test]
fn a_comparison_stands_beside_the_lines() {
    let new = profile(&[("parse src/a.rs:2", 100), ("run src/a.rs:3", 300)]);
    let base = profile(&[("parse src/a.rs:2", 200), ("run src/a.rs:4", 200)]);
    let (analysis, compared) = compare(&new, &base, false);
    let file = annotate::find(&analysis, &Wanted { path: "src/a.rs", is_at: &|_| false }).unwrap();
    let source = Source::new(b"a\nb\nc\nd\n");
    let subject = Subject { origin: "new.pb", base_origin: "base.pb", file, source: &source };
    expect![[r#"
        new.pb against base.pb (base)
        cpu 4.00s against 4.00s · 400 samples over 4.00s against 400 samples over 4.00s
        By value: changes are percentage points of the base's 4.00s cpu.

        src/a.rs: 100% of 4.00s cpu with calls, 100% self · 2 functions
           change   base→new
                                1 │ a
        ▼ −25.0pp  2.00s→1.00s  2 │ b
        ▲ +75.0pp    new 3.00s  3 │ c
        ▼ −50.0pp   gone 2.00s  4 │ d
    "#]]
    .assert_eq(&text::plain(&annotate::annotate(&analysis, Some(&compared), &subject), None));
    let groups = FileGroups::by_path(&new);
    assert!(!groups.has_workspace());
}
