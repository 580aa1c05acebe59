//! `perflens demo`: the first minute of a new user.
//!
//! Shows a real profile of a small program, both built in (see `demo/README.md`), so that it
//! works at once and everywhere: nothing is recorded, read or written.

use std::sync::Arc;

use profiler_core::attribute::analysis::Analysis;
use profiler_core::attribute::{FileGroups, Place, Placement};
use profiler_core::cancel::CancelFlag;
use profiler_core::decode::{Limits, decode};
use profiler_core::profile::{FileId, Profile};
use profiler_core::view::annotate::{self, Subject};
use profiler_core::view::document::{Block, Document, Sentence};
use profiler_core::view::hotspots::{self, By, Options};
use profiler_core::view::source::Source;
use profiler_core::view::summary;

use super::{Failure, output};

const PROFILE: &[u8] = include_bytes!("../../demo/profile.pb.gz");
const SOURCE: &str = include_str!("../../demo/logstats.go");
const SOURCE_NAME: &str = "logstats.go";
/// What paths of the program start with in the profile.
const MODULE: &str = "example.com/logstats/";
/// Rows of the table.
const ROWS: usize = 8;

pub(super) fn run() -> Result<(), Failure> {
    let profile = bundled_profile()?;
    output::text(&document(&analyze(profile)?))
}

/// Decodes the bundled profile, which says whether decoding works at all.
pub(super) fn bundled_profile() -> Result<Profile, Failure> {
    decode(PROFILE, &Limits::default(), &CancelFlag::new()).map_err(|error| broken(&error))
}

fn analyze(profile: Profile) -> Result<Analysis, Failure> {
    let groups = FileGroups::placed(&profile, |file| Some(placement(&profile, file)));
    let value_type = profile.meta().default_value_type;
    Analysis::new(Arc::new(profile), groups, value_type, &[], &CancelFlag::new()).map_err(|error| broken(&error))
}

fn broken(error: &dyn std::fmt::Display) -> Failure {
    Failure::Input(format!("the bundled profile: {error}"))
}

/// The program is the workspace; everything else in the profile came with Go.
fn placement(profile: &Profile, file: FileId) -> Placement {
    let path = profile.path(file);
    let own = path.strip_prefix(MODULE).map(str::to_owned);
    Placement {
        place: if own.is_some() { Place::Workspace } else { Place::Toolchain },
        evidence: String::new(),
        package: own.is_none().then(|| "Go's library and runtime".to_owned()),
        path: None,
        workspace_file: own,
    }
}

fn document(analysis: &Analysis) -> Document {
    let mut document = Document::default();
    document.paragraph([
        Sentence::default().strong("A small program that groups request logs, and where its time goes."),
        Sentence::new(format!(
            "Both are bundled; the profile was recorded with Go's own profiler: {}.",
            summary::amount(analysis)
        )),
    ]);
    let options = Options { origin: SOURCE_NAME, by: By::Line, top: ROWS, explain: None };
    if let Some(Block::Table { caption, table, .. }) = hotspots::table(analysis, &options) {
        // The footer tells of an option that this command doesn't have.
        document.table(caption, table, Vec::new());
    }
    document.blocks.extend(hottest_function(analysis));
    document.paragraph([
        Sentence::default().strong("The same for your program"),
        Sentence::new("  ").command("go test -bench . -cpuprofile cpu.pb.gz").faint("  or any other way to a profile"),
        Sentence::new("  ").command("perflens report cpu.pb.gz --workspace ."),
        Sentence::new("  ").command("perflens annotate FILE --profile cpu.pb.gz"),
    ]);
    document.paragraph([
        Sentence::default().strong("Beside the code, in your editor").text(": for Neovim 0.11, in init.lua"),
        Sentence::new("  ").command("vim.lsp.config('perflens', { cmd = { 'perflens', 'lsp' },"),
        Sentence::new("  ").command("  init_options = { source = { file = 'cpu.pb.gz' } } })"),
        Sentence::new("  ").command("vim.lsp.enable('perflens')"),
        Sentence::new("Helix, VS Code, Emacs and others are in docs/editors.md."),
    ]);
    document
}

/// The text of the function that is to blame for most.
fn hottest_function(analysis: &Analysis) -> Option<Block> {
    let source = Source::new(SOURCE.as_bytes());
    let function = analysis.costs.functions.first()?;
    let start = usize::try_from(function.start_line.0).ok()?;
    let end = (start..=source.len()).find(|&line| source.line(line) == Some("}"))?;
    let subject = Subject { origin: SOURCE_NAME, base_origin: "", file: function.file, source: &source };
    Some(annotate::listing(analysis, None, &subject, start..=end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_is_of_the_bundled_source() {
        let profile = bundled_profile().unwrap();
        let analysis = analyze(profile).unwrap();
        let lines: Vec<&str> = SOURCE.lines().collect();
        for row in &analysis.costs.functions {
            let name = row.name.strip_prefix("example.com/logstats.").unwrap_or_default();
            if analysis.groups.workspace_file(row.file) == Some(SOURCE_NAME) && !name.contains('.') {
                let declaration = lines[row.start_line.0 as usize - 1];
                assert!(declaration.starts_with(&format!("func {name}(")), "{name}: {declaration}");
            }
        }
        assert!(hottest_function(&analysis).is_some());
    }
}
