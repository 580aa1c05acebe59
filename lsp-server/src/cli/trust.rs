//! `perflens trust`: lets `perflens.toml` of a workspace set everything.
//!
//! What that allows is printed first, in full; if nobody can read it, nothing is trusted.

use std::path::{Path, PathBuf};

use clap::Args;
use profiler_core::view::data::escaped;
use profiler_core::view::document::{Document, Role, Sentence, Span};

use super::{Failure, output};
use crate::config::Layers;
use crate::config::places::Places;
use crate::config::toml_file::{WORKSPACE_FILE, WorkspaceFile};
use crate::config::trust::{Trust, TrustError, TrustStore};
use crate::shell;

/// What trust allows besides settings.
const RUNS: &str = "Trusted, tests, benchmarks and programs of the workspace may be built and run when you ask for it.";

#[derive(Args, Debug)]
#[command(after_long_help = "\
Nothing of a workspace is built or run for a profile until it is trusted. A perflens.toml that came with a repository may only set how costs look, until its workspace is
trusted. Trust is for the folder and for what the file says now: when the file changes, it has to
be trusted again.")]
pub(super) struct Arguments {
    /// The workspace folder
    #[arg(value_name = "DIR", required_unless_present = "list")]
    folder: Option<PathBuf>,

    /// Don't trust it any more
    #[arg(long)]
    remove: bool,

    /// List the workspaces that are trusted
    #[arg(long, conflicts_with_all = ["folder", "remove"])]
    list: bool,
}

impl From<TrustError> for Failure {
    fn from(error: TrustError) -> Self {
        Self::Input(error.to_string())
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let store = TrustStore::new(Places::of_this_process().trust);
    match &arguments.folder {
        Some(folder) if arguments.remove => remove(&store, folder),
        Some(folder) => trust(&store, folder),
        None => list(&store),
    }
}

fn trust(store: &TrustStore, folder: &Path) -> Result<(), Failure> {
    let name = folder.display();
    if !folder.is_dir() {
        return Err(Failure::Input(format!("{name}: there is no such folder")));
    }
    let Some(workspace) = WorkspaceFile::or_none(folder) else {
        return Err(Failure::Input(format!("{name}: it can't be looked into")));
    };
    let path = workspace.file.path.to_string_lossy().into_owned();
    let layers = Layers { workspace_file: Some(workspace.clone()), ..Layers::default() };
    let resolved = layers.resolve(Trust::Untrusted);

    let mut document = Document::default();
    document.paragraph([Sentence::new(RUNS)]);
    if !Path::new(&path).is_file() {
        document.paragraph([Sentence::new("There is no ").data(WORKSPACE_FILE).text(" in it.")]);
    } else if resolved.withheld.is_empty() {
        document.paragraph([Sentence::new("Nothing in ").data(&path).text(" needs trust.")]);
    } else {
        document.paragraph([Sentence::new("Trusted, ").data(&path).text(" may set:")]);
        let whole = |text: String| Sentence::default().span(Span::new(text, Role::Data));
        document.paragraph(resolved.withheld.iter().map(|withheld| whole(format!("  {withheld}"))));
    }
    document.paragraph(resolved.issues.iter().map(|issue| Sentence::new(issue.to_string())));
    output::text(&document)?;

    store.trust(&workspace)?;
    let undo = format!("perflens trust --remove {}", shell::word(&workspace.root.to_string_lossy()));
    let mut document = Document::default();
    document.paragraph([
        Sentence::new("The workspace is trusted until the file changes."),
        Sentence::new("To take it back: ").command(&undo),
    ]);
    output::text(&document)
}

fn remove(store: &TrustStore, folder: &Path) -> Result<(), Failure> {
    if !store.distrust(folder)? {
        return Err(Failure::Input(format!("{}: it was not trusted", folder.display())));
    }
    let mut document = Document::default();
    document.paragraph([Sentence::default().data(&folder.to_string_lossy()).text(" is not trusted any more.")]);
    output::text(&document)
}

fn list(store: &TrustStore) -> Result<(), Failure> {
    let state = |root: &Path| match WorkspaceFile::or_none(root) {
        None => ", which is gone",
        Some(workspace) if store.trusts(&workspace) => "",
        Some(workspace) if !workspace.file.path.exists() => ", not any more: its perflens.toml is gone",
        Some(_) => ", not any more: its perflens.toml has changed",
    };
    let roots = store.roots()?;
    let mut document = Document::default();
    if roots.is_empty() {
        document.paragraph([Sentence::new("No workspace is trusted.")]);
    }
    document.paragraph(roots.iter().map(|root| {
        let name = escaped(&root.to_string_lossy()).into_owned();
        Sentence::default().span(Span::new(name, Role::Data)).faint(state(root))
    }));
    output::text(&document)
}
