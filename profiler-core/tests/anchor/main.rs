//! Lines of a measured text in a later one, against what is known to be true.

#![allow(clippy::unwrap_used, unreachable_pub, reason = "it is a test, in several files")]
#![allow(clippy::print_stdout, reason = "how lines came out is worth reading")]
#![allow(clippy::format_collect, reason = "short, and fast enough here")]

mod blame;
mod cases;
mod histories;
mod history;
