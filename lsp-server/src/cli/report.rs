//! `perflens report`.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{Args, ValueEnum};
use profiler_core::attribute::analysis::{Analysis, ComparedTo};
use profiler_core::attribute::{GroupId, Place};
use profiler_core::cancel::CancelFlag;
use profiler_core::decode::FORMATS;
use profiler_core::view::assistant::{self, Scope, Wanted};
use profiler_core::view::hotspots::{self, By, Options};
use profiler_core::view::page::{self, Content};
use profiler_core::view::source::Source;
use profiler_core::view::{compare, report};

use super::load::Input;
use super::{Baseline, Failure, Selection, convert, explain_command, output};

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  perflens report cpu.pb.gz --workspace .
      what the lines of this project cost, libraries they call included
  perflens report 'http://localhost:6060/debug/pprof/profile?seconds=10' --workspace .
      the same of a Go program that is running, for ten seconds
  perflens report cpu.pb.gz --by function --filter 'label.route=/search'
      functions, for the requests of one route
  perflens report new.pb.gz --base old.pb.gz --workspace .
      what has changed since, and whether it is more than noise
  perflens report cpu.pb.gz --workspace . --format html > cpu.html
      one page for a browser: flame graph, lines and their source; nothing private
  perflens report heap.pb.gz --type alloc_objects --format json --top 0
      every row, exact, for a program")]
pub(super) struct Arguments {
    /// The profile: a file, an address like `http://localhost:6060/debug/pprof/heap`, or - for
    /// standard input
    #[arg(value_name = "PROFILE", long_help = profile_help())]
    profile: PathBuf,

    #[command(flatten)]
    selection: Selection,

    #[command(flatten)]
    baseline: Baseline,

    /// What a row of the table is; JSON has all three
    #[arg(long, value_enum, default_value_t = Rows::Line)]
    by: Rows,

    /// How to print it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Rows of each table; 0 means all
    #[arg(long, value_name = "N", default_value_t = 20, allow_negative_numbers = true)]
    top: usize,
}

/// What a profile may be.
fn profile_help() -> &'static str {
    static HELP: LazyLock<String> = LazyLock::new(|| {
        let mut formats: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        formats.sort_unstable();
        format!(
            "The profile: a file, an address like `http://localhost:6060/debug/pprof/heap`, or - for standard input\n\n\
             Formats: {}; told by the content, compressed or not",
            formats.join(", ")
        )
    });
    &HELP
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables for people
    Text,
    /// Exact numbers for programs
    Json,
    /// The tables with all it takes to read them, for chats and assistants
    Markdown,
    /// One page with flame graph and source, for a browser
    Html,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Rows {
    Line,
    Function,
    File,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let input = Input::load(&arguments.profile, &arguments.baseline)?;
    let (analysis, compared) = input.analyze(&arguments.selection, &arguments.baseline)?;
    let compared = compared.as_ref().zip(input.base.as_ref());
    if arguments.format == Format::Json {
        return output::json(&match compared {
            Some((compared, base)) => {
                report::comparison(&input.new.origin, &base.origin, &analysis, compared, arguments.top)
            }
            None => report::report(&input.new.origin, &analysis, arguments.top),
        });
    }
    // What came through a pipe can't be read again.
    let is_file = arguments.profile.as_os_str() != "-";
    let explain = is_file.then(|| explain_command(&arguments.profile, &arguments.selection));
    let options = Options {
        origin: &input.new.origin,
        by: match arguments.by {
            Rows::Line => By::Line,
            Rows::Function => By::Function,
            Rows::File => By::File,
        },
        top: arguments.top,
        explain: explain.as_deref(),
    };
    if arguments.format == Format::Html {
        return html(&arguments.selection, &input, &analysis, compared.map(|(compared, _)| compared), options);
    }
    if arguments.format == Format::Markdown {
        let wanted = Wanted {
            origin: &input.new.origin,
            base_origin: input.base.as_ref().map_or("", |base| &base.origin),
            scope: Scope::Workspace { by: options.by, top: options.top, explain: options.explain },
            again: None,
            // Its user says with --top how long it may be.
            max_bytes: usize::MAX,
        };
        return output::plain(&assistant::markdown(&analysis, compared.map(|(compared, _)| compared), &wanted));
    }
    let document = match compared {
        Some((compared, base)) => compare::comparison(&analysis, compared, &base.origin, &options),
        None => hotspots::hotspots(&analysis, &options),
    };
    output::text(&document)
}

/// Most bytes of a file whose source is shown.
const MAX_SOURCE: u64 = 16 << 20;

/// Writes the page, which may leave the machine.
fn html(
    selection: &Selection,
    input: &Input,
    analysis: &Analysis,
    compared: Option<&ComparedTo>,
    options: Options<'_>,
) -> Result<(), Failure> {
    let private = convert::private(Vec::new());
    let roots: Vec<PathBuf> = selection.workspace.iter().filter_map(|root| fs::canonicalize(root).ok()).collect();
    let content = Content {
        origins: (&input.new.origin, input.base.as_ref().map_or("", |base| &base.origin)),
        compared,
        options,
        source: &|file| source(analysis, &roots, file),
        clean: &|text| private.clean(text),
    };
    let page =
        page::page(analysis, &content, &CancelFlag::new()).map_err(|_| Failure::Input("cancelled".to_owned()))?;
    output::plain(&page)
}

/// The text of a file of the workspace; of no other, and of none that a link leads out of it to.
fn source(analysis: &Analysis, roots: &[PathBuf], file: GroupId) -> Option<Source> {
    let placement = analysis.groups.get(file).placement.as_ref()?;
    let real = fs::canonicalize(placement.path.as_ref().filter(|_| placement.place == Place::Workspace)?).ok()?;
    let metadata = fs::metadata(&real).ok()?;
    let may_be_read = metadata.is_file() && metadata.len() <= MAX_SOURCE;
    let is_inside = roots.iter().any(|root| real.starts_with(root));
    (may_be_read && is_inside).then(|| fs::read(&real).ok().map(|bytes| Source::new(&bytes)))?
}
