//! perflens: the cost of every line of code, on that line.
//!
//! This library is the program `perflens` without its `main`; it exists so that tests and
//! the program share one code. All knowledge about profiles is in `profiler-core`.

pub mod anchor;
pub mod auth;
pub mod bases;
pub mod cli;
pub mod commands;
pub mod config;
pub mod current;
pub mod extensions;
mod grpc_status;
pub mod handlers;
pub mod loader;
pub mod log;
pub mod lsp;
pub mod mcp;
mod nearest;
pub mod otlp;
pub mod presets;
pub mod push;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod record;
pub mod runnable;
pub mod server;
pub mod session;
mod shell;
pub mod source;
pub mod state;
pub mod symbols;
pub mod transport;
pub mod turns;
pub mod watched;
mod when;
