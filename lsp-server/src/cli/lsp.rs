//! `perflens lsp`: the server on standard input and output.

use std::io::{IsTerminal, Write};

use clap::Args;
use tracing_subscriber::filter::LevelFilter;

use super::Failure;
use crate::log::{Lossy, log_panics};
use crate::{server, transport};

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Talk over standard input and output; there is no other way, and editors like to say it
    #[arg(long)]
    stdio: bool,

    /// How much to write to the log on standard error
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    log: LevelFilter,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if std::io::stdin().is_terminal() {
        // An editor never is one; whoever types this would wait for ever.
        let _ = writeln!(
            std::io::stderr(),
            "perflens: this is the language server, which editors start; docs/editors.md says how. It waits for messages on \
             its input; Ctrl-C ends it"
        );
    }
    let log = Lossy::stderr();
    tracing_subscriber::fmt().with_writer(move || log.clone()).with_ansi(false).with_max_level(arguments.log).init();
    log_panics();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(8)
        .enable_all()
        .build()
        .map_err(|error| Failure::Input(format!("the server can't start: {error}")))?;
    let end = runtime.block_on(async {
        let (service, socket, session) = server::service();
        let input = std::io::stdin();
        let output = std::io::stdout();
        transport::serve(service, socket, input, output, |parameters| session.initialize(parameters)).await
    });
    // Dropping the runtime would wait for a thread that waits for input.
    #[expect(clippy::exit, reason = "the protocol wants this exit code, and a blocked reader must not delay it")]
    std::process::exit(end.code())
}
