//! The kernel program from outside: loading it, filling its tables, reading what it sends.
//!
//! Nothing here knows the messages of the recorder, opens a file of a target, or decides who may be
//! recorded. The kernel program itself is `bpf/sampler.bpf.c`.

pub mod kallsyms;
mod kernel;
mod layout;
mod memory;
mod tables;

pub use kernel::{Clock, Counters, Kernel, KernelError, Settings, Sources, Unwinding};
pub use layout::{Event, FileNumbers, Notice, NoticeKind, PythonFrame, Record, SampleRecord};
pub use tables::{Full, Placed, Slice, Tables};
