//! Recording programs on this machine, as seen by the rest of perflens.
//!
//! # The boundary
//! * The recorder is a separate process. It is the only program ever given privileges, it
//!   never opens the network, writes no file and never starts a program.
//! * The unprivileged parent starts the command as the user, held on a pipe until the
//!   recorder is attached, and hands over a `pidfd`.
//! * The recorder streams length-prefixed, versioned messages over its inherited pipe
//!   ([`protocol`]): mappings (build id, path, load bias, range), samples (addresses only), thread
//!   names, losses and errors. The parent aggregates, symbolises and writes the profile.
//! * What a process's stack means is decided in the kernel, by tables made from its files ([`unwind_table`]).
//! * Every way of losing a sample has a counter of its own; nothing is dropped uncounted.

#[cfg(target_os = "linux")]
mod children;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod copies;
#[cfg(target_os = "linux")]
pub mod mapped_file;
pub mod preload;
#[cfg(target_os = "linux")]
pub mod privilege;
pub mod protocol;
#[cfg(target_os = "linux")]
pub mod recorder;
#[cfg(target_os = "linux")]
pub mod sampler;
pub mod unwind_table;
