//! The command line. One file per subcommand; this one has their arguments and exit codes.
//!
//! Machine output goes to stdout and nothing else does; a failure is one sentence on stderr.

mod annotate;
mod check;
mod completions;
pub(crate) mod convert;
mod demo;
mod doctor;
mod explain;
mod fetch;
mod load;
mod login;
mod lsp;
mod mcp;
mod otlp;
mod output;
mod push;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod record;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod recorder;
mod remote;
mod report;
pub(crate) mod roots;
mod schema;
mod server;
mod signals;
mod trust;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, Parser, Subcommand};
use profiler_core::attribute::Filter;
use profiler_core::attribute::analysis::Compare;
use profiler_core::view::data;

use crate::shell;

/// The cost of every line of code, on that line.
#[derive(Parser, Debug)]
#[command(name = "perflens", version = version(), about, max_term_width = 100, after_help = "\
Start with: perflens demo
Then:       perflens report PROFILE --workspace .")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Record a small program, and show what that gives
    Demo,
    /// Show what lines, functions and files cost
    Report(report::Arguments),
    /// Show a source file with the cost of every line beside it
    Annotate(annotate::Arguments),
    /// Tell where the value of a profile went, why, and what to do about it
    Explain(explain::Arguments),
    /// Judge what a change did to every function, for a pull request
    Check(check::Arguments),
    /// Write a profile in another format, or without what is private
    Convert(convert::Arguments),
    /// Run the language server, for editors
    Lsp(lsp::Arguments),
    /// Run the tool server, for assistants
    Mcp(mcp::Arguments),
    /// Fetch a profile from a server into a file, or list what it has
    Fetch(fetch::Arguments),
    /// Send a profile to a server, without what is private
    Push(push::Arguments),
    /// Receive OpenTelemetry profiles of programs on this machine
    Otlp(otlp::Arguments),
    /// Sign in to a server
    Login(login::Arguments),
    /// Sign out of a server
    Logout(login::LogoutArguments),
    /// Tell which server is asked, as whom, and whether it answers
    Status(login::StatusArguments),
    /// Tell what works on this machine, and what to do about the rest
    Doctor,
    /// Trust the perflens.toml of a workspace, after listing what that allows
    Trust(trust::Arguments),
    /// Print what can be set and what the server can be asked, for programs
    Schema(schema::Arguments),
    /// Print a script that completes commands in a shell
    Completions(completions::Arguments),
    /// Record a program, and show what its lines cost
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    Record(record::Arguments),
    /// Becomes the command of a recording
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    #[command(name = "__launch", hide = true)]
    Launch(record::Launch),
    /// Becomes a command that ends with whoever started it
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    #[command(name = "__tie", hide = true)]
    Tie(record::Launch),
    /// Runs a command again and again
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    #[command(name = "__repeat", hide = true)]
    Repeat(record::Repeat),
    /// The recorder, for the parent that starts it
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    #[command(name = "__recorder", hide = true)]
    Recorder(recorder::Arguments),
}

/// What every command that reads a profile takes.
#[derive(Args, Clone, Debug)]
pub(crate) struct Selection {
    /// Value type to count, as TYPE or TYPE/UNIT [default: the profile's own choice]
    #[arg(long = "type", value_name = "TYPE[/UNIT]")]
    value_type: Option<String>,

    /// Keep samples that match, as [frame.]FIELD OP VALUE: `fn~parse`, `label.route=/spin`
    ///
    /// FIELD is fn, sn, file, bin, addr, line, thread or label.KEY; OP is = != ~ !~ ^ !^ (equal,
    /// contains, starts with, and their negations). With `frame.` it keeps single frames. Several
    /// filters must all hold.
    #[arg(long = "filter", value_name = "FILTER")]
    filters: Vec<Filter>,

    /// Match the profile's paths with the files of this folder; may be given several times
    #[arg(long, value_name = "DIR")]
    workspace: Vec<PathBuf>,

    /// Look here as well for binaries and debug info of what the profile has only addresses for
    #[arg(long = "debug-dir", value_name = "DIR")]
    debug_dirs: Vec<PathBuf>,
}

/// What commands take that can compare two profiles.
#[derive(Args, Debug, Default)]
pub(crate) struct Baseline {
    /// Compare with this profile: new − base for every row
    #[arg(long, value_name = "PROFILE")]
    base: Option<PathBuf>,

    /// Bring the values to the base's sum before comparing
    #[arg(long, requires = "base")]
    normalize: bool,

    /// Both did the same work, as two runs of one test do: compare values, however much the sums
    /// differ
    #[arg(long, requires = "base", conflicts_with = "normalize")]
    same_work: bool,
}

impl Baseline {
    fn how(&self) -> Compare {
        match (self.normalize, self.same_work) {
            (true, _) => Compare::Normalized,
            (false, true) => Compare::SameWork,
            (false, false) => Compare::AsRecorded,
        }
    }
}

/// Why a command failed; displays as one sentence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The input is at fault.
    #[error("{0}")]
    Input(String),
    /// The arguments are.
    #[error("{0}")]
    Usage(String),
    /// A check that was asked for did not hold.
    #[error("{0}")]
    Check(String),
    /// Nobody reads the output any more.
    #[error("the output was closed")]
    OutputClosed,
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            Self::OutputClosed
        } else {
            Self::Input(format!("writing the output failed: {error}"))
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        std::io::Error::from(error).into()
    }
}

/// Version and system, so that a report of a fault needs no second question.
fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        format!("{} ({} {})", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH)
    });
    &VERSION
}

/// The command that explains where the value of a profile went, as it would be typed.
fn explain_command(profile: &Path, selection: &Selection) -> String {
    let mut words = vec!["perflens explain".to_owned(), shell::word(&profile.to_string_lossy())];
    if let Some(value_type) = &selection.value_type {
        words.extend(["--type".to_owned(), shell::word(value_type)]);
    }
    for root in &selection.workspace {
        words.extend(["--workspace".to_owned(), shell::word(&root.to_string_lossy())]);
    }
    for filter in &selection.filters {
        words.extend(["--filter".to_owned(), shell::word(&filter.to_string())]);
    }
    words.join(" ")
}

/// Most characters of a sentence about a failure: names in it may be of any length.
const MAX_SENTENCE: usize = 1000;

/// Arguments that make no command, or ask for help.
fn misused(mut error: clap::Error) -> ExitCode {
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && Path::new(word).is_file()
    {
        let sentence =
            format!("{word} is a file and no command; perflens report {} reads a profile", shell::word(word));
        let _ = writeln!(anstream::stderr(), "perflens: {}", data::shown_within(&sentence, MAX_SENTENCE));
        return ExitCode::from(2);
    }
    // Commands that perflens calls itself by are no advice.
    let advised = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(names)) => names.iter().filter(|name| !name.starts_with("__")).cloned().collect(),
        _ => Vec::new(),
    };
    if !advised.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(advised));
    }
    // Nobody may be reading it.
    let _ = error.print();
    ExitCode::from(u8::from(error.use_stderr()) * 2)
}

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return misused(error),
    };
    let result = match cli.command {
        Command::Demo => demo::run(),
        Command::Report(arguments) => report::run(&arguments),
        Command::Annotate(arguments) => annotate::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Convert(arguments) => convert::run(&arguments),
        Command::Lsp(arguments) => lsp::run(&arguments),
        Command::Mcp(arguments) => mcp::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Fetch(arguments) => fetch::run(&arguments),
        Command::Otlp(arguments) => otlp::run(&arguments),
        Command::Push(arguments) => push::run(&arguments),
        Command::Login(arguments) => login::login(&arguments),
        Command::Logout(arguments) => login::logout(&arguments),
        Command::Status(arguments) => login::status(&arguments),
        Command::Doctor => doctor::run(),
        Command::Trust(arguments) => trust::run(&arguments),
        Command::Schema(arguments) => schema::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        Command::Record(arguments) => record::run(&arguments),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        Command::Launch(arguments) => return record::launch(&arguments),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        Command::Tie(arguments) => return record::tie(&arguments),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        Command::Repeat(arguments) => return record::repeat(&arguments),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        Command::Recorder(arguments) => return recorder::run(&arguments),
    };
    match result {
        // Whoever closed the pipe has seen enough; that is no failure.
        Ok(()) | Err(Failure::OutputClosed) => ExitCode::SUCCESS,
        Err(failure) => {
            // It may quote names of files and types, which are data.
            let sentence = failure.to_string();
            let _ = writeln!(anstream::stderr(), "perflens: {}", data::shown_within(&sentence, MAX_SENTENCE));
            ExitCode::from(match failure {
                Failure::Usage(_) => 2,
                Failure::Check(_) => 3,
                Failure::Input(_) | Failure::OutputClosed => 1,
            })
        }
    }
}
