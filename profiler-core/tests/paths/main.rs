//! Paths of profiles against workspaces on disk, through the front door.
//!
//! A workspace is written as text: `//- /ws/src/a.rs` starts a file, `//- /ws/lib -> /ws/src`
//! is a link, and all of it lives below a temporary folder that is written `$T`. A profile is
//! one path a line, followed by what it knows of the file:
//!
//! ```text
//! /build/src/a.rs | work@10:12 | max 40 | in /usr/bin/demo
//! ```
//!
//! are a function with its first line and a sampled one, the greatest line, and the binary.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]
#![expect(clippy::needless_raw_string_hashes, reason = "the tool that updates expectations writes them")]

mod cases;
mod ecosystems;
mod evidence;
mod laws;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use expect_test::Expect;
use profiler_core::cancel::CancelFlag;
use profiler_core::paths::clean::clean;
use profiler_core::paths::{
    Case, FunctionEvidence, PathQuery, Resolution, Rule, Workspace, WorkspaceFile, WorkspaceOptions,
};
use profiler_core::profile::LineNo;
use tempfile::TempDir;

struct Fixture {
    folder: TempDir,
    roots: Vec<PathBuf>,
    options: WorkspaceOptions,
}

/// Files and links below a new folder; the workspace is `/ws` in it.
fn files(text: &str) -> Fixture {
    let folder = TempDir::new().unwrap();
    let real = folder.path().canonicalize().unwrap();
    let mut file: Option<(PathBuf, String)> = None;
    let write = |file: Option<(PathBuf, String)>| {
        if let Some((path, text)) = file {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    };
    for line in text.lines().map(str::trim_start) {
        if let Some(header) = line.strip_prefix("//- ") {
            write(file.take());
            match header.split_once(" -> ") {
                Some((link, target)) => make_link(&below(&real, link), &below(&real, target)),
                None => file = Some((below(&real, header), String::new())),
            }
        } else if let Some((_, text)) = &mut file {
            writeln!(text, "{line}").unwrap();
        }
    }
    write(file);
    std::fs::create_dir_all(real.join("ws")).unwrap();
    Fixture {
        roots: vec![real.join("ws")],
        folder,
        options: WorkspaceOptions { case: Case::Sensitive, ..Default::default() },
    }
}

fn below(folder: &Path, path: &str) -> PathBuf {
    folder.join(path.trim_start_matches('/'))
}

#[cfg(unix)]
fn make_link(link: &Path, target: &Path) {
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(target, link).unwrap();
}

impl Fixture {
    fn folder(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn roots(mut self, roots: &[&str]) -> Self {
        self.roots = roots.iter().map(|root| below(&self.folder(), root)).collect();
        self
    }

    fn case(mut self, case: Case) -> Self {
        self.options.case = case;
        self
    }

    fn rule(mut self, from: &str, to: &str) -> Self {
        self.options.rules.push(Rule { from: from.to_owned(), to: to.to_owned() });
        self
    }

    fn prefer(mut self, folder: &str) -> Self {
        self.options.preferred = Some(below(&self.folder(), folder));
        self
    }

    fn open(&self) -> Workspace {
        Workspace::open(&self.roots, &self.options, &CancelFlag::new())
    }

    /// Every path of the profile with what it is resolved to, in the given order.
    fn check(&self, profile: &str, want: &Expect) {
        let workspace = self.open();
        assert_eq!(workspace.notes(), []);
        want.assert_eq(&self.show(&workspace, profile));
    }

    /// What one path is resolved to when the profile holds no other.
    fn resolve(&self, path: &str) -> String {
        self.show(&self.open(), path)
    }

    fn show(&self, workspace: &Workspace, profile: &str) -> String {
        let folder = self.folder();
        let folder = folder.to_str().unwrap();
        let lines: Vec<&str> = profile.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let paths: Vec<String> = lines
            .iter()
            .map(|line| clean(&line.split(" | ").next().unwrap().replace("$T", folder)).into_owned())
            .collect();
        let queries: Vec<PathQuery<'_>> =
            lines.iter().zip(&paths).map(|(line, path)| query(path, line.split(" | ").skip(1))).collect();
        let resolutions = workspace.resolve(&queries);
        let mut backwards: Vec<PathQuery<'_>> = queries.clone();
        backwards.reverse();
        let mut again = workspace.resolve(&backwards);
        again.reverse();
        assert_eq!(resolutions, again, "the order of the queries must not matter");
        let mut text = String::new();
        for (line, resolution) in lines.iter().zip(&resolutions) {
            let path = line.split(" | ").next().unwrap();
            writeln!(text, "{path} → {}", self.tell(resolution)).unwrap();
        }
        text.replace(folder, "$T")
    }

    fn tell(&self, resolution: &Resolution) -> String {
        let list = |files: &[WorkspaceFile]| files.iter().map(|file| self.name(file)).collect::<Vec<_>>().join(", ");
        match resolution {
            Resolution::File { file, how, score, generated } => {
                assert_eq!(file.path, self.roots[file.root].join(&file.relative));
                let generated = if *generated { ", generated" } else { "" };
                format!("{} ({how}, {score}{generated})", self.name(file))
            }
            Resolution::Ambiguous { candidates } => format!("ambiguous: {}", list(candidates)),
            Resolution::Outside { kind, file } => {
                let file = file.as_ref().map(|file| format!(" at {}", file.display())).unwrap_or_default();
                format!("outside: {kind}{file}")
            }
            Resolution::NoMatch { reason, possible } if possible.is_empty() => format!("no match: {reason}"),
            Resolution::NoMatch { reason, possible } => format!("no match: {reason}; possible: {}", list(possible)),
        }
    }

    fn name(&self, file: &WorkspaceFile) -> String {
        if self.roots.len() == 1 { file.relative.clone() } else { format!("{}:{}", file.root, file.relative) }
    }
}

fn query<'a>(path: &'a str, facts: impl Iterator<Item = &'a str>) -> PathQuery<'a> {
    let mut query = PathQuery { path, ..PathQuery::default() };
    for fact in facts {
        if let Some(line) = fact.strip_prefix("max ") {
            query.max_line = line.parse().unwrap();
        } else if let Some(binary) = fact.strip_prefix("in ") {
            query.binary = Some(binary);
        } else {
            let (name, lines) = fact.rsplit_once('@').unwrap();
            let (start, line) = lines.split_once(':').unwrap();
            let line_no = |text: &str| LineNo(text.parse().unwrap());
            query.functions.push(FunctionEvidence { name, start_line: line_no(start), line: line_no(line) });
        }
    }
    query
}
