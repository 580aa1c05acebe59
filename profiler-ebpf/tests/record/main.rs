//! Records real programs with the built recorder and the real kernel.
//!
//! They need root and a kernel with BTF. Where both are, or where `CI` is set, they must run; elsewhere
//! each says why it did not.
#![cfg(target_os = "linux")]

mod ending;
mod events;
mod jit;
mod lifecycle;
mod native;
mod privilege;
mod python;
mod recording;
