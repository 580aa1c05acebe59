//! Symbolising, tried on programs that are built here, with the compilers that users have.
//!
//! Needs gcc, g++, rustc, Go, binutils, llvm-symbolizer; `tests/run` installs them.

mod forms;
mod oracle;
mod programs;
