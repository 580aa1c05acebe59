//! The `perflens` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    perflens::cli::main()
}
