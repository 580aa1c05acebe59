//! What the program prints for people, as a whole: the views themselves have their snapshots
//! in `profiler-core`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use expect_test::expect;
use perflens_tests::cli::{Output, Run, binary};
use perflens_tests::mini::Mini;

const ESCAPE: char = '\u{1b}';

fn go(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/go").join(path)
}

fn go_text(path: &str) -> String {
    go(path).into_os_string().into_string().expect("a path in UTF-8")
}

fn cpu() -> String {
    go_text("profiles/cpu.pb.gz")
}

fn ok(run: Run) -> String {
    let Output { code, stdout, stderr, .. } = run.output();
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    stdout
}

/// Every command that prints text, with arguments that make it print much.
fn commands() -> Vec<Vec<String>> {
    let (cpu, heavy) = (cpu(), go_text("profiles/heavy-cpu.pb.gz"));
    let (workspace, main) = (go_text("src/demo"), go_text("src/demo/main.go"));
    [
        vec!["report", &cpu],
        vec!["report", &cpu, "--workspace", &workspace, "--by", "function"],
        vec!["report", &cpu, "--base", &heavy, "--workspace", &workspace],
        vec!["annotate", &main, "--profile", &cpu],
        vec!["explain", &cpu, "--workspace", &workspace],
        vec!["demo"],
        vec!["doctor"],
    ]
    .into_iter()
    .map(|args| args.into_iter().map(str::to_owned).collect())
    .collect()
}

fn without_escapes(text: &str) -> String {
    regex::Regex::new("\u{1b}\\[[0-9;]*m").expect("it is an expression").replace_all(text, "").into_owned()
}

/// A text without the line that says how much memory is free, which is another amount at every look.
fn lasting(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.contains("memory ")).collect()
}

#[test]
fn colours_are_for_terminals_and_add_nothing() {
    for args in commands() {
        // Without a compiler the demo shows a profile that is always the same.
        let run = || Run::new(args.clone()).env("PATH", "");
        // Doctor speaks of the colours.
        let speaks_of_colours = args == ["doctor"];
        let plain = ok(run());
        assert!(!plain.contains(ESCAPE), "{args:?}");
        assert_eq!(lasting(&ok(run().env("NO_COLOR", "1"))), lasting(&plain));
        let coloured = ok(run().env("CLICOLOR_FORCE", "1"));
        assert!(coloured.contains(ESCAPE), "{args:?}");
        assert!(speaks_of_colours || without_escapes(&coloured) == plain, "{args:?}\n{coloured}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let mut child = Command::new(binary())
        .args(["report", &cpu(), "--top", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn a_report_names_its_totals_and_the_next_step() {
    let text = ok(Run::new(["report", &cpu(), "--top", "3"]));
    expect![[r#"
        cpu.pb.gz · cpu 1.86s · 186 samples over 4.02s

        Lines by cost with calls, shares of 1.86s cpu
           with calls self  function         place
        █ 79.0% 1.47s  0 0  runtime.main     /usr/local/go/src/runtime/proc.go:302
        █ 56.5% 1.05s  0 0  main.main        /home/dev/src/demo/main.go:132
        █ 56.5% 1.05s  0 0  main.main.func1  /home/dev/src/demo/main.go:133
        … 137 more lines (--top 0 shows all)

        No workspace was given: add --workspace DIR to see what the lines of your own code cost.
    "#]]
    .assert_eq(&text);
    let text = ok(Run::new(["report", &cpu(), "--top", "3", "--workspace", "."]).folder(&go("src/demo")));
    expect![[r#"
        cpu.pb.gz · cpu 1.86s · 186 samples over 4.02s · 89% placed in the workspace

        Lines by cost here, shares of 1.86s cpu
                 here   with calls  function                              place
        ▆ 23.7% 440ms  23.7% 440ms  main.spin                             main.go:36
        ▆ 13.4% 250ms  13.4% 250ms  main.spin                             main.go:37
        ▆ 10.8% 200ms  10.8% 200ms  example.com/demo/internal/work.twice  internal/work/work.go:51
        … 25 more lines (--top 0 shows all)

        Elsewhere: 11% of 1.86s cpu that no line of the workspace causes, by package or binary
        ▆ 11.3% 210ms  go

        89% of 1.86s cpu is in lines of the workspace or called from there; 11% (210ms) in the toolchain.
        For the reasons: perflens explain cpu.pb.gz --workspace .
    "#]]
    .assert_eq(&text.replace(&cpu(), "cpu.pb.gz"));
}

#[test]
fn the_explain_command_of_a_report_can_be_pasted() {
    let folder = tempfile::tempdir().unwrap();
    let name = "my app's.pb";
    std::fs::copy(go("profiles/cpu.pb.gz"), folder.path().join(name)).unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    let filter = "fn!=no one";
    let report = ok(Run::new(["report", name, "--filter", filter, "--workspace", "src"]).folder(folder.path()));
    let command = report.lines().find_map(|line| line.strip_prefix("For the reasons: perflens ")).expect(&report);
    let pasted = Command::new("sh")
        .args(["-c", &format!("\"$0\" {command}")])
        .arg(binary())
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(pasted.status.success(), "{command}: {}", String::from_utf8_lossy(&pasted.stderr));
    assert!(String::from_utf8_lossy(&pasted.stdout).contains(filter));
}

#[test]
fn annotate_finds_the_file_from_anywhere() {
    let mini = Mini::parse(
        "cpu/ns\n/build/app/src/main.rs:2 main; /build/app/src/lib.rs:2 work = 40\n//- /src/lib.rs\nfn work() {\n    spin();\n}\n//- /src/main.rs\nfn main() {\n    work();\n}\n//- /Cargo.toml\n[package]\nname = \"app\"\n",
    );
    let workspace = mini.workspace();
    let root = workspace.path();
    mini.write_to(&root.join("cpu.pb"));
    let profile = root.join("cpu.pb");
    let from_root = ok(Run::new(["annotate", "src/lib.rs", "--profile", "cpu.pb"]).folder(root));
    let below =
        ok(Run::new(["annotate", "lib.rs", "--profile", "../cpu.pb", "--workspace", ".."]).folder(&root.join("src")));
    let elsewhere = ok(Run::new([
        "annotate".as_ref(),
        root.join("src/lib.rs").as_os_str(),
        "--profile".as_ref(),
        profile.as_os_str(),
    ]));
    for text in [&from_root, &below, &elsewhere] {
        assert!(text.contains("█ 100% 40ns  100%  2 │     spin();"), "{text}");
    }
}

#[test]
fn annotate_says_in_one_sentence_why_there_is_nothing() {
    let (cpu, workspace) = (cpu(), go_text("src/demo"));
    for (file, more, want) in [
        ("missing.go", &[][..], "missing.go: no such file"),
        (".", &[], "it is a folder"),
        ("go.mod", &[], "names no file like it; it spends most in"),
        ("../hashdep/mix/mix.go", &["--workspace", "."], "it is outside of the workspace"),
        ("main.go", &["--filter", "fn=nobody"], "holds nothing of type cpu there, under these filters"),
    ] {
        let run = Run::new(["annotate", file, "--profile", &cpu]).args(more.iter().copied());
        let output = run.folder(Path::new(&workspace)).output();
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{file}: {}", output.stderr);
        assert!(output.stderr.contains(want), "{file}: {}", output.stderr);
        assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
    }
}

#[test]
fn annotate_names_the_path_that_was_not_taken() {
    let mini = Mini::parse(
        "cpu/ns
/srv/one/util.py:5 elsewhere = 40
//- /two/util.py
def here():
    pass
//- /three/util.py
def there():
    pass
",
    );
    let workspace = mini.workspace();
    mini.write_to(&workspace.path().join("cpu.pb"));
    let output = Run::new(["annotate", "two/util.py", "--profile", "cpu.pb"]).folder(workspace.path()).output();
    expect![[r#"
        perflens: cpu.pb: no costs for two/util.py: the profile's /srv/one/util.py was not taken for it: only the file name agrees (possible: three/util.py, two/util.py)
    "#]].assert_eq(&output.stderr);
    assert_eq!(output.code, Some(1));
}

#[cfg(unix)]
#[test]
fn annotate_follows_no_link_out_of_the_workspace() {
    let secret = tempfile::tempdir().unwrap();
    std::fs::write(secret.path().join("lib.rs"), "a secret\n").unwrap();
    let mini = Mini::parse("cpu/ns\nsrc/lib.rs:1 work = 40\n//- /src/main.rs\nfn main() {}\n");
    let workspace = mini.workspace();
    mini.write_to(&workspace.path().join("cpu.pb"));
    std::os::unix::fs::symlink(secret.path().join("lib.rs"), workspace.path().join("src/lib.rs")).unwrap();
    let run = Run::new(["annotate", "src/lib.rs", "--profile", "cpu.pb", "--workspace", "."]);
    let output = run.folder(workspace.path()).output();
    assert_eq!(output.code, Some(1), "{}", output.stdout);
    assert!(
        !output.stdout.contains("secret") && output.stderr.contains("outside of the workspace"),
        "{}",
        output.stderr
    );
}

/// The same without being told the workspace: the folder one is in is it, wherever a link in it
/// leads.
#[cfg(unix)]
#[test]
fn annotate_takes_no_link_for_the_way_to_another_workspace() {
    let secret = tempfile::tempdir().unwrap();
    std::fs::write(secret.path().join("lib.rs"), "a secret\n").unwrap();
    let mini = Mini::parse("cpu/ns\nsrc/lib.rs:1 work = 40\n//- /src/main.rs\nfn main() {}\n");
    let workspace = mini.workspace();
    mini.write_to(&workspace.path().join("cpu.pb"));
    std::os::unix::fs::symlink(secret.path().join("lib.rs"), workspace.path().join("src/lib.rs")).unwrap();
    std::os::unix::fs::symlink(secret.path(), workspace.path().join("linked")).unwrap();
    for file in ["src/lib.rs", "linked/lib.rs"] {
        let output = Run::new(["annotate", file, "--profile", "cpu.pb"]).folder(workspace.path()).output();
        assert_eq!(output.code, Some(1), "{}", output.stdout);
        assert!(output.stderr.contains("outside of the workspace"), "{}", output.stderr);
    }
}

#[cfg(unix)]
#[test]
fn annotate_waits_for_no_pipe() {
    let mini = Mini::parse("cpu/ns\nsrc/lib.rs:1 work = 40\n//- /src/main.rs\nfn main() {}\n");
    let workspace = mini.workspace();
    let pipe = workspace.path().join("src/lib.rs");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let path = workspace.path().canonicalize().unwrap().join("src/lib.rs");
    Mini::parse(&format!("cpu/ns\n{}:1 work = 40", path.display())).write_to(&workspace.path().join("cpu.pb"));
    let run = Run::new(["annotate", "src/lib.rs", "--profile", "cpu.pb"]).folder(workspace.path());
    let output = run.deadline(std::time::Duration::from_secs(20)).output();
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    assert!(output.stderr.contains("no regular file"), "{}", output.stderr);
}

#[test]
fn annotate_reads_no_file_that_fills_the_memory() {
    let mini = Mini::parse("cpu/ns\nsrc/lib.rs:1 work = 40\n//- /src/lib.rs\nfn work() {}\n");
    let workspace = mini.workspace();
    mini.write_to(&workspace.path().join("cpu.pb"));
    std::fs::File::create(workspace.path().join("src/lib.rs")).unwrap().set_len(1 << 40).unwrap();
    let run = Run::new(["annotate", "src/lib.rs", "--profile", "cpu.pb"]).folder(workspace.path());
    let output = run.memory(1500).output();
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    assert!(output.stderr.contains("too large"), "{}", output.stderr);
}

#[test]
fn annotate_prints_json_and_markdown() {
    let run = || Run::new(["annotate", &go_text("src/demo/main.go"), "--profile", &cpu()]);
    let json: serde_json::Value = serde_json::from_str(&ok(run().args(["--format", "json"]))).unwrap();
    let lines: Vec<_> = json["lines"].as_array().unwrap().iter().map(|line| line["line"].as_u64().unwrap()).collect();
    assert!(lines.is_sorted() && lines.contains(&36), "{lines:?}");
    assert_eq!(json["file"]["workspace_file"], "main.go");
    assert_eq!(json["profile"]["total"], 1_860_000_000);
    assert_eq!(json["past_end"], 0);
    let markdown = ok(run().args(["--format", "markdown"]));
    assert_eq!(markdown.lines().filter(|line| line.starts_with("```")).count(), 2, "{markdown}");
}

#[test]
fn the_demo_needs_nothing_and_shows_source() {
    let folder = tempfile::tempdir().unwrap();
    let text = ok(Run::new(["demo"]).env("PATH", "").folder(folder.path()));
    for want in ["840 samples", "no C compiler", "regexp.MustCompile", "█ 50.6%  4.25s", "perflens report"] {
        assert!(text.contains(want), "{want}: {text}");
    }
    assert!(text.lines().all(|line| !line.contains("/tmp") && !line.contains("/root")), "{text}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "demo wrote something");
}

/// Where there are a compiler and Linux, it is recorded for real.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn the_demo_records_its_program() {
    let folder = tempfile::tempdir().unwrap();
    let text = ok(Run::new(["demo"]).folder(folder.path()).env("TMPDIR", folder.path().as_os_str()));
    for want in ["Built and recorded just now, with", "regexec(&pattern, line", "perflens record -o cpu.pb.gz"] {
        assert!(text.contains(want), "{want}: {text}");
    }
    let hottest = text.lines().find(|line| line.contains("logstats.c:")).unwrap_or_default();
    assert!(hottest.contains("parse     logstats.c:24") && hottest.starts_with('█'), "{text}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "demo left something");
}

#[test]
fn shells_complete_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = ok(Run::new(["completions", shell]));
        for command in ["report", "annotate", "explain", "demo", "doctor"] {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
}

#[test]
fn help_has_examples_and_the_version_its_system() {
    for command in ["report", "annotate"] {
        assert!(ok(Run::new([command, "--help"])).contains(&format!("Examples:\n  perflens {command} ")));
    }
    let version = ok(Run::new(["--version"]));
    assert_eq!(
        version,
        format!("perflens {} ({} {})\n", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH)
    );
}

#[test]
fn slips_are_told_with_what_would_do() {
    let folder = tempfile::tempdir().unwrap();
    let profile = "cpu/nanoseconds\nmain.rs:1 main = 10 {route=/a}\nmain.rs:1 main = 10 {route=/b}\n//- /none\n.\n";
    std::fs::write(folder.path().join("cpu.pb.gz"), Mini::parse(profile).gzip()).unwrap();
    std::fs::write(folder.path().join("notes.txt"), "what I found\n").unwrap();
    std::fs::write(folder.path().join("empty"), "").unwrap();
    let mut said = String::new();
    for words in [
        "cpu.pb.gz",
        "reprot cpu.pb.gz",
        "repeat",
        "report notes.txt",
        "report empty",
        "report cpu.pb.gz --top -1",
        "report cpu.pb.gz --filter label.route=/c",
        "report cpu.pb.gz --filter label.path=/a",
        "convert cpu.pb.gz notes.txt",
        "record -- notes.txt",
    ] {
        let output = Run::new(words.split(' ')).folder(folder.path()).output();
        // Its first and last words: tables and usage have tests of their own.
        let first = |text: &str| text.lines().filter(|line| !line.is_empty()).take(2).collect::<Vec<_>>().join(" ");
        let shown = if output.stderr.is_empty() {
            output.stdout.lines().last().unwrap_or_default().to_owned()
        } else {
            first(&output.stderr)
        };
        said.extend([words, "\n  ", &output.code.unwrap_or(-1).to_string(), " ", &shown, "\n"]);
    }
    expect![[r#"
        cpu.pb.gz
          2 perflens: cpu.pb.gz is a file and no command; perflens report cpu.pb.gz reads a profile
        reprot cpu.pb.gz
          2 error: unrecognized subcommand 'reprot'   tip: a similar subcommand exists: 'report'
        repeat
          2 error: unrecognized subcommand 'repeat'   tip: a similar subcommand exists: 'report'
        report notes.txt
          1 perflens: notes.txt: no known profile format; `perflens report --help` lists those that are
        report empty
          1 perflens: empty: it holds no bytes; whatever was to write it has not
        report cpu.pb.gz --top -1
          2 error: invalid value '-1' for '--top <N>': invalid digit found in string For more information, try '--help'.
        report cpu.pb.gz --filter label.route=/c
          0 Values of route: /a, /b.
        report cpu.pb.gz --filter label.path=/a
          0 No sample has the label path; there are route.
        convert cpu.pb.gz notes.txt
          1 perflens: notes.txt: it is there already and is no profile; name another file, or remove it first
        record -- notes.txt
          1 perflens: notes.txt: there is no such program; a file of this name is here: ./notes.txt runs it, or give what runs it before it
    "#]].assert_eq(&said);
    assert_eq!(std::fs::read_to_string(folder.path().join("notes.txt")).unwrap(), "what I found\n");
}

/// A page goes to others: it has no labels, also where a filter that looks at them leaves nothing.
#[test]
fn a_page_tells_no_labels() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cpu.pb.gz");
    let profile = "cpu/nanoseconds\nmain.go:1 main = 10 {customer=acme}\nmain.go:2 main = 10 {customer=initech}";
    perflens_tests::mini::Mini::parse(profile).write_to(&file);
    for format in ["html", "markdown"] {
        let words = ["report", file.to_str().unwrap(), "--format", format, "--filter", "label.customer=nobody"];
        let output = Run::new(words).output();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        assert!(output.stdout.contains("The filters left nothing of 20ns "), "{}", output.stdout);
        assert!(!output.stdout.contains("acme") && !output.stdout.contains("initech"), "{}", output.stdout);
    }
}
