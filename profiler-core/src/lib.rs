//! From bytes of a profile to the cost of every line.
//!
//! ```text
//! bytes ──decode──▶ Profile ──resolve paths──▶ attribute ──▶ view
//! ```
//!
//! * [`decode`] turns the bytes of any supported format into a [`profile::Profile`],
//!   an immutable table of samples, locations and functions.
//! * [`symbolize`] names the addresses of profiles that came without names or lines.
//! * [`encode`] writes a profile in the formats that other tools read.
//! * [`paths`] decides which workspace file a path of the profile means, with evidence.
//! * [`anchor`] finds the lines of a measured text in today's.
//! * [`attribute`] makes one pass over the samples and yields exact costs of lines,
//!   functions and files, and the accounting of every sample.
//! * [`view`] turns costs into plain data and text for people and machines.
//! * [`measure`] is the only place that formats numbers.
//!
//! What is not here: no network, no async runtime, no editor protocol, no clock. The only
//! input besides arguments is the file system, and only [`paths`], [`symbolize`] and the readers
//! handed in by the caller touch it. The same input gives the same output, byte for byte.

pub mod anchor;
pub mod attribute;
pub mod cancel;
mod cycles;
pub mod decode;
pub mod demangle;
pub mod encode;
pub mod measure;
pub mod paths;
pub mod profile;
pub mod symbolize;
pub mod view;
