//! `perflens report`.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use profiler_core::view::report;

use super::load::Input;
use super::{Failure, Selection};

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The profile: a file, or - for standard input
    #[arg(value_name = "PROFILE")]
    profile: PathBuf,

    #[command(flatten)]
    selection: Selection,

    /// How to print it
    #[arg(long, value_enum, default_value_t = Format::Json)]
    format: Format,

    /// Rows of each table; 0 means all
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// Exact numbers for programs
    Json,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let input = Input::load(&arguments.profile, &arguments.selection)?;
    let (analysis, compared) = input.analyze(&arguments.selection)?;
    let report = match (&compared, &input.base) {
        (Some(compared), Some(base)) => {
            report::comparison(&input.new.origin, &base.origin, &analysis, compared, arguments.top)
        }
        _ => report::report(&input.new.origin, &analysis, arguments.top),
    };
    let mut out = BufWriter::new(io::stdout().lock());
    match arguments.format {
        Format::Json => {
            serde_json::to_writer_pretty(&mut out, &report)?;
            writeln!(out)?;
        }
    }
    out.flush()?;
    Ok(())
}
