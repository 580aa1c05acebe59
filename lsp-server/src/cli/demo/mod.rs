//! `perflens demo`: the first minute of a new user.
//!
//! Builds a small program that comes with this one and records it, with the best method that this
//! machine allows. Where that can't be done it says why, and shows a profile that comes along as
//! well (see `demo/README.md`). What is written is gone when it ends.

mod bundled;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod recorded;

use profiler_core::attribute::analysis::Analysis;
use profiler_core::view::annotate::{self, Subject};
use profiler_core::view::document::{Block, Document, Sentence};
use profiler_core::view::hotspots::{self, By, Options};
use profiler_core::view::source::Source;

pub(super) use bundled::profile as bundled_profile;

use super::{Failure, output};

/// Rows of the table.
const ROWS: usize = 8;

/// What is shown.
struct Demo {
    analysis: Analysis,
    /// The program, and its file.
    source: Source,
    source_name: &'static str,
    /// How the profile came about.
    origin: Vec<Sentence>,
    /// How one's own program is recorded.
    next: Sentence,
}

pub(super) fn run() -> Result<(), Failure> {
    let demo = recorded().or_else(|why| bundled::demo(&why))?;
    output::text(&document(&demo))
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn recorded() -> Result<Demo, String> {
    recorded::demo()
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn recorded() -> Result<Demo, String> {
    Err("recording is for Linux on x86-64".to_owned())
}

fn document(demo: &Demo) -> Document {
    let mut document = Document::default();
    let what = Sentence::default().strong("A small program that groups request logs, and where its time goes.");
    document.paragraph([what].into_iter().chain(demo.origin.iter().cloned()));
    let options = Options { origin: demo.source_name, by: By::Line, top: ROWS, explain: None };
    if let Some(Block::Table { caption, table, .. }) = hotspots::table(&demo.analysis, &options) {
        // The footer tells of an option that this command doesn't have.
        document.table(caption, table, Vec::new());
    }
    document.blocks.extend(hottest_function(demo));
    document.paragraph([
        Sentence::default().strong("The same for your program"),
        demo.next.clone(),
        Sentence::new("  ").command("perflens report cpu.pb.gz --workspace ."),
        Sentence::new("  ").command("perflens annotate FILE --profile cpu.pb.gz"),
    ]);
    document.paragraph([
        Sentence::default().strong("Beside the code, in your editor").text(": for Neovim 0.11, in init.lua"),
        Sentence::new("  ").command("vim.lsp.config('perflens', { cmd = { 'perflens', 'lsp' },"),
        Sentence::new("  ").command("  root_markers = { 'perflens.toml', '.git' },"),
        Sentence::new("  ").command("  init_options = { source = { file = 'cpu.pb.gz' } } })"),
        Sentence::new("  ").command("vim.lsp.enable('perflens')"),
        Sentence::new("  ").command("vim.lsp.inlay_hint.enable(true)"),
        Sentence::new("Helix, VS Code, Emacs and others are in docs/editors.md."),
    ]);
    document
}

/// The text of the function that is to blame for most.
fn hottest_function(demo: &Demo) -> Option<Block> {
    let Demo { analysis, source, source_name, .. } = demo;
    let function = analysis.costs.functions.first()?;
    let start = usize::try_from(function.start_line.0).ok()?;
    let end = (start..=source.len()).find(|&line| source.line(line) == Some("}"))?;
    let subject = Subject { origin: source_name, base_origin: "", file: function.file, source };
    Some(annotate::listing(analysis, None, &subject, start..=end))
}
