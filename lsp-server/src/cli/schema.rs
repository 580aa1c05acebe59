//! `perflens schema`.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use serde_json::json;

use super::{Failure, output};
use crate::{commands, config, extensions};

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  perflens schema > perflens.schema.json
      for editors that check perflens.toml by a JSON schema
  perflens schema commands
      what editors can ask the server to do, for a program that makes menus of it")]
pub(super) struct Arguments {
    /// What to describe
    #[arg(value_enum, default_value_t = Subject::Settings)]
    subject: Subject,

    /// Print the documentation instead, as markdown
    #[arg(long)]
    markdown: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Subject {
    /// The settings, as a JSON schema
    Settings,
    /// The commands of the server
    Commands,
    /// Its requests beyond the protocol
    Extensions,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.markdown {
        let page = match arguments.subject {
            Subject::Settings => config::docs::markdown(),
            Subject::Commands => commands::markdown(),
            Subject::Extensions => extensions::markdown(),
        };
        io::stdout().lock().write_all(page.as_bytes())?;
        return Ok(());
    }
    match arguments.subject {
        Subject::Settings => output::json(config::schema::json()),
        Subject::Commands => output::json(&json!({ "commands": commands::COMMANDS })),
        Subject::Extensions => {
            output::json(&json!({ "version": extensions::VERSION, "requests": extensions::EXTENSIONS }))
        }
    }
}
