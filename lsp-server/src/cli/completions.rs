//! `perflens completions`.

use std::io::{self, Write};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, Failure};

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The shell to complete in
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    // Into memory first: the generator takes a closed pipe for a bug.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "perflens", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(())
}
