//! Symbolising, tried on programs that are built here, with the compilers that users have.
//!
//! Needs gcc, g++, rustc, Go, binutils, llvm-symbolizer; `tests/run` installs them.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]
#![allow(clippy::print_stdout, reason = "what failed, among many like it; shown when a test fails")]

mod forms;
mod go;
mod hostile;
mod jit;
mod oracle;
mod programs;
