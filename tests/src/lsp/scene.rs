//! A workspace with a profile in it, ready to be opened.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Client, Editor, Start, uri};
use crate::mini::Mini;

/// A folder with the files of a [`Mini`] and its profile, `p.pb.gz`.
pub struct Scene {
    folder: TempDir,
}

impl Scene {
    /// Writes the workspace and the profile of a text in the [small language](crate::mini).
    pub fn new(text: &str) -> Self {
        let mini = Mini::parse(text);
        let scene = Self { folder: mini.workspace() };
        mini.write_to(&scene.path("p.pb.gz"));
        scene
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
