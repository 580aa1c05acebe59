//! `perflens report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use profiler_core::view::hotspots::{self, By, Options};
use profiler_core::view::{compare, report};

use super::load::Input;
use super::output::{self, Format};
use super::{Baseline, Failure, Selection, explain_command};

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
  perflens report heap.pb.gz --type alloc_objects --format json --top 0
      every row, exact, for a program")]
pub(super) struct Arguments {
    /// The profile: a file, an address like `http://localhost:6060/debug/pprof/heap`, or - for
    /// standard input
    #[arg(value_name = "PROFILE")]
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
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
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
    let document = match compared {
        Some((compared, base)) => compare::comparison(&analysis, compared, &base.origin, &options),
        None => hotspots::hotspots(&analysis, &options),
    };
    match arguments.format {
        Format::Markdown => output::markdown(&document),
        Format::Text | Format::Json => output::text(&document),
    }
}
