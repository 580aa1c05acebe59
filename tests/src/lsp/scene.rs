//! A workspace with a profile in it, ready to be opened.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Client, Editor, Start, uri};
use crate::mini::Mini;

/// One profile for most tests: 352 samples of 10 ms, all of them placed in the workspace. In
/// `src/main.rs` there is each kind of line: one that only calls, one that is hot itself and
/// calls, a cool one, one at the threshold of 0.1 %, and one below it. Line 2 has characters
/// that count differently in each encoding.
pub const DEMO: &str = "
    samples/count cpu/nanoseconds
    !default cpu
    !period cpu/nanoseconds 10_000_000
    src/main.rs:2 main #1; src/main.rs:8 run #6 = 40, 400_000_000
    src/main.rs:2 main #1; src/main.rs:8 run #6; src/lib.rs:2 parse #1 = 80, 800_000_000
    src/main.rs:2 main #1; src/main.rs:9 run #6; src/lib.rs:6 check #5 = 145, 1_450_000_000
    src/main.rs:2 main #1; src/lib.rs:10 other #9; /rustc/0123/library/core/src/fmt.rs:5 core::fmt::write #1 = 84, 833_480_000
    src/main.rs:2 main #1; src/main.rs:7 run #6 = 0, 3_000_000
    src/main.rs:2 main #1; src/main.rs:10 run #6 = 0, 3_520_000
    src/main.rs:3 main #1 = 3, 30_000_000
    //- /src/main.rs
fn main() {
    let total = run() + other(); // héllo 🔥
    println!(\"{total}\");
}

fn run() -> u64 {
    let mut sum = 0;
    sum += parse() * 2;
    sum += check();
    sum
}
//- /src/lib.rs
fn parse() -> u64 {
    (0..1000).sum()
}

fn check() -> u64 {
    (0..1000).product()
}

fn other() -> u64 {
    format!(\"{}\", 1).len() as u64
}
//- /src/quiet.rs
fn quiet() {}
";

/// The hints of `src/main.rs` in [`DEMO`]: line, from 0, and label.
pub const DEMO_HINTS: [(u32, &str); 5] = [
    (1, "█ 99.1% 3.49s"),
    (2, "0.9% 30.0ms here"),
    (7, "█ 34.1% 1.20s · here 11%"),
    (8, "█ 41.2% 1.45s"),
    (9, "0.1% 3.52ms here"),
];

/// A folder with the files of a [`Mini`] and its profile, `p.pb.gz`.
pub struct Scene {
    folder: TempDir,
}

impl Scene {
    /// Writes the workspace and the profile of a text in the [small language](crate::mini).
    pub fn new(text: &str) -> Self {
        Self::fill(text, tempfile::tempdir().expect("a temporary folder"))
    }

    /// The same, in memory where there is such a place: for many files.
    pub fn in_memory(text: &str) -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Self::fill(text, folder.expect("a temporary folder"))
    }

    fn fill(text: &str, folder: TempDir) -> Self {
        let mini = Mini::parse(text);
        let scene = Self { folder };
        for (name, text) in &mini.files {
            scene.write(name, text);
        }
        mini.write_to(&scene.path("p.pb.gz"));
        scene
    }

    /// [`DEMO`] in a new folder.
    pub fn demo() -> Self {
        Self::new(DEMO)
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The address of a file in the folder.
    pub fn uri(&self, name: &str) -> String {
        uri(&self.path(name))
    }

    /// Writes a file, in one step, as tools do that want no half file to be seen.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it is in the folder")).expect("creating a folder");
        let draft = self.path(".draft");
        fs::write(&draft, bytes).expect("writing a file");
        fs::rename(&draft, path).expect("putting a file in its place");
    }

    /// Writes the profile of another text over `p.pb.gz`.
    pub fn rewrite(&self, text: &str) {
        self.write("p.pb.gz", Mini::parse(text).gzip());
    }

    /// Options with which the profile is loaded at the start.
    pub fn options(&self) -> Value {
        json!({ "source": { "file": "p.pb.gz" }, "workspaceTrusted": true })
    }

    /// An editor that has opened the folder and loads the profile at the start.
    pub fn editor(&self, editor: Editor) -> Start {
        Start::new(editor).folder(self.folder.path()).options(self.options())
    }

    /// An editor that has opened the folder, without a profile.
    pub fn without_profile(&self, editor: Editor) -> Start {
        Start::new(editor).folder(self.folder.path()).options(json!({ "workspaceTrusted": true }))
    }

    /// Starts the server as an editor with the profile loaded, and opens a file: the client and
    /// the address of the file. Waits for the first hint.
    pub fn open(&self, editor: Editor, name: &str) -> (Client, String) {
        let mut client = self.editor(editor).start();
        let uri = client.open(&self.path(name));
        client.hints_soon(&uri);
        (client, uri)
    }

    /// A pipe in the folder. Whoever reads it waits until the test writes to it.
    pub fn pipe(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        let status = std::process::Command::new("mkfifo").arg(&path).status().expect("running mkfifo");
        assert!(status.success(), "mkfifo failed");
        path
    }
}
