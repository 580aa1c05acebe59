//! The one way to standard output: documents for a terminal of some width and colours or for
//! a pipe, markdown, JSON.
//!
//! | | terminal | pipe or file |
//! |---|---|---|
//! | width | names are cut to it, sentences wrap | nothing is cut |
//! | colour | unless `NO_COLOR`, `CLICOLOR=0` or `TERM=dumb` | only with `CLICOLOR_FORCE` |
//!
//! Colours are the sixteen that every terminal has and every theme fits to its background:
//! bold red, red and yellow for the three upper levels of heat, none below. The finer scale
//! of the editor would be unreadable on half of the backgrounds it can't see. Nothing is told
//! by colour alone.

use std::fmt::Write as _;
use std::io::{self, BufWriter, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use profiler_core::view::document::{Document, Role, Span};
use profiler_core::view::{markdown, text};
use serde::Serialize;

use super::Failure;

/// For terminals that don't tell their width.
const USUAL_WIDTH: usize = 80;

/// How a command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Tables for people
    Text,
    /// Exact numbers for programs
    Json,
    /// The tables for pull requests, chats and assistants
    Markdown,
}

/// Prints plain data, exact and unscaled.
pub(super) fn json(data: &impl Serialize) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, data)?;
    writeln!(out)?;
    out.flush()?;
    Ok(())
}

/// Prints a document as markdown.
pub(super) fn markdown(document: &Document) -> Result<(), Failure> {
    plain(&markdown::render(document))
}

/// Prints text as it is.
pub(super) fn plain(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints a document for people.
pub(super) fn text(document: &Document) -> Result<(), Failure> {
    let lines = text::lay_out(document, width());
    let stdout = io::stdout();
    let mut out = AutoStream::auto(stdout.lock());
    // One write for all of it: the lock's own buffer is emptied at every line.
    out.write_all(painted(&lines).as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Columns of the terminal that standard output is; `None` when it is none.
pub(super) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let told = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)).filter(|&width| width > 0);
    let set = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|&width| width > 0);
    Some(told.or_else(set).unwrap_or(USUAL_WIDTH))
}

/// Whether documents are printed in colour.
pub(super) fn has_colours() -> bool {
    AutoStream::choice(&io::stdout()) != ColorChoice::Never
}

fn painted(lines: &[Vec<Span>]) -> String {
    let mut out = String::new();
    for line in lines {
        for span in line {
            let style = style(span.role);
            // Writing to a string can't fail.
            let _ = write!(out, "{style}{}{style:#}", span.text);
        }
        out.push('\n');
    }
    out
}

fn style(role: Role) -> Style {
    let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
    match role {
        Role::Plain | Role::Data => Style::new(),
        Role::Strong => Style::new().bold(),
        Role::Faint => Style::new().dimmed(),
        Role::Command | Role::Less => colour(AnsiColor::Cyan),
        Role::MuchMore => colour(AnsiColor::Red).bold(),
        Role::More => colour(AnsiColor::Yellow),
        Role::Heat(heat) => match heat.level() {
            4 => colour(AnsiColor::Red).bold(),
            3 => colour(AnsiColor::Red),
            2 => colour(AnsiColor::Yellow),
            _ => Style::new(),
        },
    }
}
