//! `perflens annotate`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use profiler_core::paths::clean::clean;
use profiler_core::view::annotate::{self, Subject, Wanted};
use profiler_core::view::source::Source;

use super::load::Input;
use super::output::{self, Format};
use super::{Baseline, Failure, Selection, roots};

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  perflens annotate src/main.rs --profile cpu.pb.gz
  perflens annotate src/main.rs --profile new.pb.gz --base old.pb.gz
      what changed on each line

Without --workspace, the workspace is the current folder if FILE is in it, else the project
around FILE.")]
pub(super) struct Arguments {
    /// The source file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The profile: a file, or - for standard input
    #[arg(long, value_name = "PROFILE")]
    profile: PathBuf,

    #[command(flatten)]
    selection: Selection,

    #[command(flatten)]
    baseline: Baseline,

    /// How to print it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Most bytes of a file that is annotated; bundles and generated tables are far smaller.
const MAX_SOURCE: u64 = 256 << 20;

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let name = arguments.file.display().to_string();
    let fail = |what: &str| Failure::Input(format!("{name}: {what}"));
    let path = fs::canonicalize(&arguments.file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => fail("no such file"),
        _ => fail(&error.to_string()),
    })?;
    if path.is_dir() {
        return Err(fail("it is a folder; give a source file"));
    }
    let metadata = fs::metadata(&path).map_err(|error| fail(&error.to_string()))?;
    // A pipe would have to be waited for.
    if !metadata.is_file() {
        return Err(fail("it is no regular file; give a source file"));
    }
    if metadata.len() > MAX_SOURCE {
        return Err(fail("it is too large for a source file"));
    }
    let mut selection = arguments.selection.clone();
    if selection.workspace.is_empty() {
        selection.workspace.push(workspace_around(&arguments.file, &path));
    }
    if !may_be_read(&path, &selection.workspace) {
        return Err(fail("it is outside of the workspace; give the folder of its project as --workspace"));
    }

    let input = Input::load(&arguments.profile, &arguments.baseline)?;
    let (analysis, compared) = input.analyze(&selection, &arguments.baseline)?;
    let is_at =
        |other: &Path| other.file_name() == path.file_name() && fs::canonicalize(other).is_ok_and(|it| it == path);
    let wanted = Wanted { path: &path.to_string_lossy().replace('\\', "/"), is_at: &is_at };
    let file = annotate::find(&analysis, &wanted)
        .map_err(|reason| Failure::Input(format!("{}: no costs for {name}: {reason}", input.new.origin)))?;
    let source = Source::new(&fs::read(&path).map_err(|error| fail(&error.to_string()))?);
    let subject = Subject {
        origin: &input.new.origin,
        base_origin: input.base.as_ref().map_or("", |base| &base.origin),
        file,
        source: &source,
    };
    match arguments.format {
        Format::Json => output::json(&annotate::annotation(&analysis, compared.as_ref(), &subject)),
        Format::Markdown => output::markdown(&annotate::annotate(&analysis, compared.as_ref(), &subject)),
        Format::Text => output::text(&annotate::annotate(&analysis, compared.as_ref(), &subject)),
    }
}

/// The workspace of a file when none is given: the current folder if the file is in it, be it
/// by a link that leads elsewhere, else the project around the file, else its folder. The root
/// of the disk and the home folder are where a shell happens to start, not a workspace.
fn workspace_around(given: &Path, real: &Path) -> PathBuf {
    let folder = real.parent().unwrap_or(real);
    let current = std::env::current_dir().and_then(fs::canonicalize).ok();
    let is_below = |current: &Path| real.starts_with(current) || is_below_by_name(given, current);
    let is_chosen = |current: &PathBuf| {
        is_below(current) && current.parent().is_some() && Some(current) != std::env::home_dir().as_ref()
    };
    current.filter(is_chosen).unwrap_or_else(|| roots::project(folder).map_or(folder, |(folder, _)| folder).to_owned())
}

/// Whether a path stays below the current folder, links not followed.
fn is_below_by_name(given: &Path, current: &Path) -> bool {
    let text = given.to_string_lossy();
    let cleaned = clean(&text);
    let cleaned = Path::new(&*cleaned);
    if cleaned.is_absolute() { cleaned.starts_with(current) } else { !cleaned.starts_with("..") }
}

/// Files are read inside the workspace, and where dependencies and toolchains keep theirs;
/// a link that leads elsewhere is not followed.
fn may_be_read(real: &Path, workspace: &[PathBuf]) -> bool {
    let foreign = roots::foreign();
    let mut roots = workspace.iter().map(PathBuf::as_path).chain(foreign.iter().map(|root| root.path.as_path()));
    roots.any(|root| fs::canonicalize(root).is_ok_and(|root| real.starts_with(root)))
}
