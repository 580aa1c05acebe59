//! Reading a repository without running anything that it names.
//!
//! Only plumbing is asked, which knows no pager, signature, text conversion or filter; hooks,
//! file system monitors and transports are off, and so are the configurations of the user and the
//! machine. Missing objects are not fetched. Everything has a deadline and a limit.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// How long one question may take.
const DEADLINE: Duration = Duration::from_secs(10);
/// Most bytes of an answer that is no file.
const MAX_ANSWER: u64 = 64 << 10;
/// A larger file is not read.
const MAX_FILE: u64 = 4 << 20;

/// A repository.
#[derive(Debug)]
pub(crate) struct Repository {
    /// Its working tree, without links.
    pub(crate) top: PathBuf,
    objects: Option<Objects>,
}

impl Repository {
    /// The one around a folder.
    pub(crate) fn around(folder: &Path) -> Option<Self> {
        let top = ask(folder, &["rev-parse", "--show-toplevel"])?;
        let top = PathBuf::from(top).canonicalize().ok()?;
        Some(Self { top, objects: None })
    }

    /// The commit that a name means: a branch, tag, hash or the beginning of one.
    pub(crate) fn commit(&self, name: &str) -> Option<String> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._/-+".contains(c);
        if name.is_empty() || name.len() > 200 || name.starts_with('-') || !name.chars().all(is_name) {
            return None;
        }
        let commit = format!("{name}^{{commit}}");
        ask(&self.top, &["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]).filter(|it| is_id(it))
    }

    /// The branch that is checked out, if one is.
    pub(crate) fn branch(&self) -> Option<String> {
        ask(&self.top, &["symbolic-ref", "--quiet", "--short", "HEAD"])
    }

    /// The branch that others leave and come back to: what the remote says, or what such are called.
    pub(crate) fn main_branch(&self) -> Option<String> {
        let of_remote = ask(&self.top, &["symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD"]);
        let names = ["main", "master", "trunk", "origin/main", "origin/master"].map(str::to_owned);
        of_remote.into_iter().chain(names).find(|name| self.commit(name).is_some())
    }

    /// The commit where one name left the other.
    pub(crate) fn merge_base(&self, one: &str, other: &str) -> Option<String> {
        let (one, other) = (self.commit(one)?, self.commit(other)?);
        ask(&self.top, &["merge-base", &one, &other]).filter(|it| is_id(it))
    }

    /// The newest commit of what is checked out that was made by then, in seconds since 1970.
    pub(super) fn newest_before(&self, seconds: i64) -> Option<String> {
        let before = format!("--before=@{seconds}");
        ask(&self.top, &["rev-list", "--max-count=1", &before, "HEAD", "--"]).filter(|it| is_id(it))
    }

    /// The text of a file in a commit; its path is relative to the working tree.
    pub(crate) fn text(&mut self, commit: &str, path: &str) -> Option<String> {
        if path.contains('\n') {
            return None;
        }
        if self.objects.is_none() {
            self.objects = Objects::open(&self.top);
        }
        let text = self.objects.as_mut()?.read(&format!("{commit}:{path}"));
        if text.is_err() {
            // Out of step; another process may still answer.
            self.objects = None;
        }
        text.ok().flatten()
    }
}

fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
        .envs([
            ("LC_ALL", "C"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ALLOW_PROTOCOL", ""),
        ])
        .args(["--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"])
        .args(["-c", "core.sshCommand=false", "-c", "core.alternateRefsCommand=false"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .stdout(Stdio::piped());
    command
}

/// The first line of an answer.
fn ask(folder: &Path, arguments: &[&str]) -> Option<String> {
    let mut child = git(folder).args(arguments).spawn().ok()?;
    let output = child.stdout.take()?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        BufReader::new(output.take(MAX_ANSWER)).read_line(&mut text).ok()?;
        Some(text.trim_end_matches('\n').to_owned())
    });
    let is_good = wait(&mut child);
    // It is gone, so its pipe has ended.
    let text = reader.join().ok().flatten()?;
    (is_good && !text.is_empty()).then_some(text)
}

/// Waits for the end, and brings it about when it takes too long.
fn wait(child: &mut Child) -> bool {
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if begin.elapsed() < DEADLINE => std::thread::sleep(Duration::from_millis(2)),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}

/// A process that gives out objects.
#[derive(Debug)]
struct Objects {
    child: Child,
    output: BufReader<ChildStdout>,
}

/// It did not answer as it should.
struct OutOfStep;

impl Objects {
    fn open(folder: &Path) -> Option<Self> {
        let mut child = git(folder).args(["cat-file", "--batch"]).stdin(Stdio::piped()).spawn().ok()?;
        let output = BufReader::new(child.stdout.take()?);
        Some(Self { child, output })
    }

    fn read(&mut self, name: &str) -> Result<Option<String>, OutOfStep> {
        let input = self.child.stdin.as_mut().ok_or(OutOfStep)?;
        writeln!(input, "{name}").and_then(|()| input.flush()).map_err(|_| OutOfStep)?;
        let mut head = String::new();
        self.output.by_ref().take(MAX_ANSWER).read_line(&mut head).map_err(|_| OutOfStep)?;
        let words: Vec<&str> = head.split_whitespace().collect();
        let [_, kind, size] = words[..] else {
            // `NAME missing`; a name with blanks has more words, and is missing as well.
            return if head.ends_with("missing\n") { Ok(None) } else { Err(OutOfStep) };
        };
        let size: u64 = size.parse().map_err(|_| OutOfStep)?;
        if size > MAX_FILE {
            // Reading on would mean reading all of it.
            return Err(OutOfStep);
        }
        let mut content = Vec::new();
        let read = self.output.by_ref().take(size + 1).read_to_end(&mut content).map_err(|_| OutOfStep)?;
        if read as u64 != size + 1 {
            return Err(OutOfStep);
        }
        content.pop();
        Ok((kind == "blob").then(|| String::from_utf8_lossy(&content).into_owned()))
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        // The end of its input is the end of it; should it not be, it is ended.
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
