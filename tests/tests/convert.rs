//! `perflens convert`: what other programs make of what it writes, and what a shared profile
//! does not say any more.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use expect_test::expect;
use perflens_tests::cli::Run;
use perflens_tests::pprof::{self, Builder, Line};

fn profile(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("data/go/profiles/{name}.pb.gz"))
}

/// Converts and says what was printed beside the result.
fn convert(from: &Path, to: &Path, args: &[&str]) -> String {
    let output = Run::new(["convert".as_ref(), from.as_os_str(), to.as_os_str()]).args(args).output();
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), ""), "{}", output.stderr);
    output.stderr
}

fn inflated(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).expect("it was written");
    flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).expect("it is gzip");
    bytes
}

/// Rows of `go tool pprof -top -lines`, without its head.
fn go_top(path: &Path, kind: &str) -> Vec<String> {
    let output = Command::new("go")
        .args(["tool", "pprof", "-top", "-lines", "-nodecount=0", "-symbolize=none", &format!("-sample_index={kind}")])
        .arg(path)
        .env("PPROF_BINARY_PATH", "/nowhere")
        .output()
        .expect("Go is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    text.lines().skip_while(|line| !line.contains("flat%")).map(str::to_owned).collect()
}

#[test]
fn pprof_reads_what_was_written_as_it_reads_the_original() {
    let folder = tempfile::tempdir().unwrap();
    for (name, kind) in [("cpu", "cpu"), ("heap", "inuse_space"), ("mutex", "delay"), ("trim-cpu", "samples")] {
        let written = folder.path().join(format!("{name}.pb.gz"));
        convert(&profile(name), &written, &[]);
        let expected = go_top(&profile(name), kind);
        assert!(expected.len() > 3, "{name}: {expected:?}");
        assert_eq!(go_top(&written, kind), expected, "{name}");
    }
}

#[test]
fn viewers_formats_keep_value_and_lines() {
    let folder = tempfile::tempdir().unwrap();
    let expected = Run::report(&profile("cpu")).args(["--type", "samples"]).json();
    for name in ["cpu.folded", "cpu.speedscope.json"] {
        let written = folder.path().join(name);
        convert(&profile("cpu"), &written, &["--type", "samples"]);
        let report = Run::report(&written).json();
        assert_eq!(report.profile.total, expected.profile.total, "{name}");
        let lines = |report: &perflens_tests::cli::Report| -> Vec<(String, i64, i64, i64)> {
            let mut lines: Vec<_> = report
                .lines
                .iter()
                .map(|row| (row.file.clone(), row.line, row.costs.flat, row.costs.cumulative))
                .collect();
            lines.sort();
            lines
        };
        assert_eq!(lines(&report), lines(&expected), "{name}");
    }
}

#[test]
fn a_shared_profile_has_nothing_private_and_says_what_is_left() {
    let mut builder = Builder::new(&[("cpu", "nanoseconds")]);
    let app = builder.mapping("/home/ada/bin/app");
    let work = builder.function("ada::work", "/home/ada/src/app/work.rs", 1);
    let main = builder.function("main", "/usr/src/ada/main.rs", 1);
    let work = builder.location(app, 0x7f00_1234, &[Line { function_id: work, line: 3, column: 0 }]);
    let main = builder.location(app, 0x7f00_5678, &[Line { function_id: main, line: 1, column: 0 }]);
    let labels = [("thread", "ada-worker"), ("token", "s3cret"), ("route", "/x")];
    let labels = labels.map(|(key, value)| builder.text_label(key, value)).to_vec();
    builder.sample(&[work, main], &[7]).label = labels;
    let comment = builder.string("made by ada");
    builder.profile.comment.push(comment);
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("in.pb"), folder.path().join("out.pb"));
    std::fs::write(&from, pprof::raw(&builder.profile)).unwrap();
    let output = Run::new(["convert".as_ref(), from.as_os_str(), to.as_os_str()])
        .args(["--share", "--keep-label", "route"])
        .env("HOME", "/home/ada")
        .env("USER", "ada")
        .output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    expect![[r#"
        What is still in it; look through it before you share it:
          functions: 2 names
          folders of source files: /usr/src (1), ~/src (1)
          binaries, with their build ids: app
          labels: route (1), thread (1)
        Left out: addresses, comments, labels token
    "#]]
    .assert_eq(&output.stderr);
    let written = String::from_utf8_lossy(&inflated(&to)).into_owned();
    for word in ["ada", "s3cret", "token", "/home"] {
        assert!(!written.contains(word), "{word} is still in it");
    }
    let report = Run::report(&to).json();
    expect![[r#"
        [
            "/usr/src/user/main.rs:1 0 7",
            "~/src/app/work.rs:3 7 7",
        ]
    "#]]
    .assert_debug_eq(&report.line_costs());
}

#[test]
fn a_name_that_says_no_format_is_asked_about() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("cpu");
    let output = Run::new(["convert".as_ref(), profile("cpu").as_os_str(), to.as_os_str()]).output();
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("which format is that?"), "{}", output.stderr);
    assert!(!to.exists());
}

/// Before anything is read, built or run for nothing.
#[test]
fn a_bad_target_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("cpu.folded");
    std::fs::write(&profile, "main;work 5\n").unwrap();
    let marker = folder.path().join("ran");
    let touch = format!("touch {}", marker.display());
    let (here, nowhere) = (folder.path().to_str().unwrap(), folder.path().join("none/p.pb.gz"));
    let (profile, nowhere) = (profile.to_str().unwrap(), nowhere.to_str().unwrap());
    for (arguments, sentence) in [
        (vec!["convert", profile, nowhere], "there is no such folder"),
        (vec!["convert", profile, here, "--format", "pprof"], "it is a folder"),
        (vec!["convert", profile, profile], "replaced by its own copy"),
        (vec!["record", "-o", nowhere, "--", "sh", "-c", &touch], "there is no such folder"),
        (vec!["otlp", "--for", "600s", "-o", nowhere], "there is no such folder"),
    ] {
        let output = Run::new(arguments.clone()).output();
        assert_eq!(output.code, Some(1), "{arguments:?}");
        assert!(output.stderr.contains(sentence), "{arguments:?}: {}", output.stderr);
    }
    assert!(!marker.exists(), "the program ran");
    assert_eq!(std::fs::read_to_string(profile).unwrap(), "main;work 5\n");
}
