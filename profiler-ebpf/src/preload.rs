//! The library that lets allocations be seen, for whoever starts the program to put in front of it (`LD_PRELOAD`).
//!
//! `preload/alloc.c` says how it works. The recorder knows it by its symbols and puts probes on them.

/// Its bytes; empty on systems that it wasn't built for.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub static LIBRARY: &[u8] = include_bytes!("../preload/prebuilt/libperflens_alloc.x86_64.so");
/// Its bytes; empty on systems that it wasn't built for.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub static LIBRARY: &[u8] = &[];

/// A name for its file.
pub const FILE_NAME: &str = "libperflens_alloc.so";
