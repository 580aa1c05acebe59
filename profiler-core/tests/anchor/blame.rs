//! What git says of a history: `git blame`, over a commit per edit.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::histories::History;
use crate::history::File;

/// Lines of today's text that git tracks back to the measured one: their number now, and then.
pub fn lines(history: &History) -> Vec<(u32, u32)> {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &["init", "-q", "-b", "main"], None);
    let mut stream = Vec::new();
    let mut before: Option<&File> = None;
    for (at, file) in std::iter::once(&history.measured).chain(&history.later).enumerate() {
        let (text, mark) = (file.text(), at + 1);
        writeln!(stream, "commit refs/heads/main\nmark :{mark}\ncommitter a <a@example.com> {} +0000", 1000 + at)
            .unwrap();
        write!(stream, "data 1\nx\n").unwrap();
        if at > 0 {
            writeln!(stream, "from :{at}").unwrap();
        }
        if let Some(before) = before.filter(|before| before.path != file.path) {
            writeln!(stream, "R {} {}", before.path, file.path).unwrap();
        }
        writeln!(stream, "M 100644 inline {}\ndata {}", file.path, text.len()).unwrap();
        writeln!(stream, "{text}").unwrap();
        before = Some(file);
    }
    run(folder.path(), &["fast-import", "--quiet", "--force"], Some(&stream));
    let root = run(folder.path(), &["rev-list", "--max-parents=0", "main"], None);
    let path = &history.later.last().unwrap().path;
    let blame = run(folder.path(), &["blame", "--porcelain", "-w", "-M", "main", "--", path], None);
    let mut found = Vec::new();
    for line in blame.lines() {
        // `COMMIT THEN NOW [COUNT]` stands before each line, whose text begins with a tab.
        let Some(rest) = line.strip_prefix(root.trim()) else { continue };
        let numbers: Vec<u32> = rest.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        if let [then, now, ..] = numbers[..] {
            found.push((now, then));
        }
    }
    found
}

fn run(folder: &Path, arguments: &[&str], input: Option<&[u8]>) -> String {
    let mut child = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git is installed");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.unwrap_or_default()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "git {arguments:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
