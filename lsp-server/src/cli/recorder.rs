//! `perflens __recorder`: the recorder as a child of this program. Hidden, since only a parent that
//! speaks its protocol has a use for it.

use std::ffi::OsString;
use std::io::{self, BufWriter};
use std::os::fd::AsFd;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// How stacks are taken
    #[arg(long, value_enum)]
    method: Method,

    /// What it would be told in a shell, instead of orders from a parent
    #[arg(last = true)]
    words: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Method {
    /// In the kernel
    Bpf,
    /// Copied and unwound here
    Copies,
}

/// Records until the parent says stop.
pub(super) fn run(arguments: &Arguments) -> ExitCode {
    match arguments.method {
        Method::Bpf => profiler_ebpf::recorder::main(arguments.words.iter().cloned()),
        Method::Copies => {
            let Ok(commands) = io::stdin().as_fd().try_clone_to_owned() else { return ExitCode::FAILURE };
            // The parent reads as fast as it can; without the buffer each message would be a call of its own.
            let events = BufWriter::with_capacity(64 << 10, io::stdout().lock());
            match profiler_ebpf::copies::run(commands, events) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            }
        }
    }
}
