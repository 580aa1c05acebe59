//! `perflens explain`.

use std::path::PathBuf;

use clap::Args;
use profiler_core::view::explain;

use super::load::Input;
use super::{Baseline, Failure, Selection, output};

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The profile: a file, or - for standard input
    #[arg(value_name = "PROFILE")]
    profile: PathBuf,

    #[command(flatten)]
    selection: Selection,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let alone = Baseline::default();
    let input = Input::load(&arguments.profile, &alone)?;
    let (analysis, _) = input.analyze(&arguments.selection, &alone)?;
    output::text(&explain::explain(&input.new.origin, &analysis))
}
