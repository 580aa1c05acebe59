//! `perflens mcp`: the tool server for assistants on standard input and output, and the consent to give them
//! what profiling servers say.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use profiler_core::view::data::escaped;
use profiler_core::view::document::{Document, Role, Sentence, Span};
use tracing_subscriber::filter::LevelFilter;

use super::{Failure, output};
use crate::config::places::Places;
use crate::current;
use crate::log::{Lossy, log_panics};
use crate::mcp::consent::Consents;
use crate::mcp::{self, Options};
use crate::shell;

#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_long_help = "\
An assistant starts it; docs/assistants.md has the lines to write for each. It reads what your editor
shows of this workspace, profiles in the workspace, and its recordings. Nothing else, unless you allow
it here. What a profiling server gave needs your consent: perflens mcp consent ."
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    /// The workspace folder [default: that of your editor or project around the current folder]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    /// Let profiles be read from here as well, a file or a folder; may be given several times
    #[arg(long, value_name = "PATH")]
    allow: Vec<PathBuf>,

    /// Leave out tools that run or change something
    #[arg(long)]
    read_only: bool,

    /// How much to write to the log on standard error
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    log: LevelFilter,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Let assistants have what profiling servers gave for a workspace
    Consent(Consent),
}

#[derive(Args, Debug)]
struct Consent {
    /// The workspace folder
    #[arg(value_name = "DIR", required_unless_present = "list")]
    folder: Option<PathBuf>,

    /// Take it back
    #[arg(long)]
    remove: bool,

    /// List the workspaces that it was given for
    #[arg(long, conflicts_with_all = ["folder", "remove"])]
    list: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(Command::Consent(consent)) = &arguments.command {
        return consent.run();
    }
    let log = Lossy::stderr();
    tracing_subscriber::fmt().with_writer(move || log.clone()).with_ansi(false).with_max_level(arguments.log).init();
    log_panics();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(4)
        .enable_all()
        .build()
        .map_err(|error| Failure::Input(format!("the server can't start: {error}")))?;
    let options = Options {
        workspace: arguments.workspace.clone(),
        allow: arguments.allow.iter().map(|path| absolute(path)).collect(),
        is_read_only: arguments.read_only,
    };
    let end = runtime.block_on(mcp::serve(options));
    // A call that still loads something must not hold up the end.
    runtime.shutdown_background();
    end.map_err(Failure::Input)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

impl Consent {
    fn run(&self) -> Result<(), Failure> {
        let places = Places::of_this_process();
        let consents = Consents::new(places.consents());
        let fail = |error: std::io::Error| {
            let place = consents.path().map_or_else(String::new, |path| format!("{}: ", path.display()));
            Failure::Input(format!("{place}{error}"))
        };
        let mut document = Document::default();
        let Some(folder) = &self.folder else {
            let roots = consents.roots().map_err(fail)?;
            if roots.is_empty() {
                document.paragraph([Sentence::new("Assistants get no data of profiling servers.")]);
            }
            document.paragraph(roots.iter().map(|root| {
                let name = escaped(&root.to_string_lossy()).into_owned();
                Sentence::default().span(Span::new(name, Role::Data))
            }));
            return output::text(&document);
        };
        let name = folder.to_string_lossy().into_owned();
        if self.remove {
            if !consents.set(folder, false).map_err(fail)? {
                return Err(Failure::Input(format!("{name}: there was no consent for it")));
            }
            if let Some(shown) = places.shown() {
                current::forget_server_data(&shown, folder);
            }
            document.paragraph([Sentence::new("Assistants get no more data of profiling servers for ").data(&name)]);
            return output::text(&document);
        }
        if !folder.is_dir() {
            return Err(Failure::Input(format!("{name}: there is no such folder")));
        }
        consents.set(folder, true).map_err(fail)?;
        let undo = format!("perflens mcp consent --remove {}", shell::word(&name));
        document.paragraph([
            Sentence::new("What a profiling server gives for ").data(&name).text(
                ", and your editor shows, is now given to assistants that run perflens mcp there: names of functions and \
                 files, costs, and labels that you filter by.",
            ),
            Sentence::new("To take it back: ").command(&undo),
        ]);
        output::text(&document)
    }
}
