//! `perflens doctor`: what works on this machine, and what to do about the rest.
//!
//! One fact per line, with a mark: `ok`, `–` for what is missing and may well be, `!` for
//! what should work and does not. Only the last makes the command fail.

use std::env;
use std::fs;

use profiler_core::decode::FORMATS;
use profiler_core::measure::Scale;
use profiler_core::view::document::{Document, Role, Sentence, Span};
use profiler_core::view::table::{Column, Table};

use super::{Failure, demo, output, roots, version};
use crate::config::places::Places;
use crate::config::trust::{TrustError, TrustStore};

struct Fact {
    mark: Mark,
    what: &'static str,
    finding: Span,
    /// What to do, or what it is good for.
    advice: Span,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Fine,
    Missing,
    Broken,
}

impl Fact {
    fn new(mark: Mark, what: &'static str, finding: &str) -> Self {
        Self { mark, what, finding: Span::data(finding), advice: Span::default() }
    }

    fn fine(what: &'static str, finding: &str) -> Self {
        Self::new(Mark::Fine, what, finding)
    }

    fn missing(what: &'static str, finding: &str) -> Self {
        Self::new(Mark::Missing, what, finding)
    }

    fn command(self, advice: &'static str) -> Self {
        Self { advice: Span::new(advice, Role::Command), ..self }
    }

    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn command_of(self, advice: String) -> Self {
        Self { advice: Span::new(advice, Role::Command), ..self }
    }

    fn hint(self, advice: impl Into<String>) -> Self {
        Self { advice: Span::new(advice, Role::Faint), ..self }
    }

    fn cells(self) -> Vec<Span> {
        let mark = match self.mark {
            Mark::Fine => Span::new("ok", Role::Less),
            Mark::Missing => Span::new("–", Role::Faint),
            Mark::Broken => Span::new("!", Role::MuchMore),
        };
        vec![mark, Span::new(self.what, Role::Plain), self.finding, self.advice]
    }
}

pub(super) fn run() -> Result<(), Failure> {
    let mut facts = vec![bundled_profile(), terminal(), characters(), project()];
    facts.extend(sources());
    facts.extend([trust(), processors()]);
    facts.extend(memory());
    facts.extend(recording());
    let broken = facts.iter().filter(|fact| fact.mark == Mark::Broken).count();

    let mut table =
        Table::new(vec![Column::words("").after(2), Column::words(""), Column::name(""), Column::words("")]);
    table.rows = facts.into_iter().map(Fact::cells).collect();
    let formats: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    let mut document = Document::default();
    document.table(Sentence::default().strong(format!("perflens {}", version())), table, Vec::new());
    document.paragraph([Sentence::new(format!(
        "Reads profiles in these formats, packed with gzip or zstd as well: {}.",
        formats.join(", ")
    ))]);
    output::text(&document)?;
    match broken {
        0 => Ok(()),
        _ => Err(Failure::Input(format!("{broken} of the above should work and does not"))),
    }
}

fn bundled_profile() -> Fact {
    match demo::bundled_profile() {
        Ok(_) => Fact::fine("bundled profile", "can be read").command("perflens demo"),
        Err(failure) => Fact::new(Mark::Broken, "bundled profile", &failure.to_string()),
    }
}

fn terminal() -> Fact {
    let Some(width) = output::width() else {
        return Fact::missing("terminal", "the output is none").hint("nothing is cut, no colours");
    };
    let colours = if output::has_colours() { "colours" } else { "no colours" };
    Fact::fine("terminal", &format!("{width} columns, {colours}"))
}

/// What recording can do here, found out by recording ourselves for a moment.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn recording() -> Vec<Fact> {
    use crate::record::helper::{Elevation, chances, method_in_words, probe};
    let chances = chances(Elevation::None);
    let mut facts = Vec::new();
    for tried in probe(&chances) {
        match tried {
            Ok(method) => {
                let fact = Fact::fine("recording", method_in_words(method));
                facts.push(match &chances.missing {
                    // What is granted once is worth a line of its own.
                    Some(_) => fact.hint("perflens record -- ./app"),
                    None => fact.command("perflens record -- ./app"),
                });
            }
            Err(why) => facts.push(Fact::missing("recording", &why)),
        }
    }
    facts.extend(
        chances.missing.map(|missing| Fact::missing("recording, all of it", &missing.why).command_of(missing.remedy)),
    );
    facts
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn recording() -> Vec<Fact> {
    vec![Fact::missing("recording", "works on Linux with x86-64").hint("use your language's profiler")]
}

/// The first of the variables that is set decides, as in the C library.
fn characters() -> Fact {
    const NAME: &str = "characters";
    let set =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| env::var(name).ok().filter(|it| !it.is_empty()));
    match set {
        Some(value) if value.to_lowercase().replace('-', "").contains("utf8") => {
            Fact::fine(NAME, "UTF-8").hint("as in ▂▄▆█ ▲▼≈ →")
        }
        None if cfg!(windows) => Fact::fine(NAME, "UTF-8"),
        Some(value) => Fact::missing(NAME, &format!("{value}, not UTF-8")).command("export LC_ALL=C.UTF-8"),
        None => Fact::missing(NAME, "no locale is set").command("export LC_ALL=C.UTF-8"),
    }
}

fn project() -> Fact {
    let Ok(current) = env::current_dir() else {
        return Fact::new(Mark::Broken, "project", "the current folder can't be read");
    };
    match roots::project(&current) {
        Some((folder, marker)) => Fact::fine("project", &folder.to_string_lossy()).hint(format!("by its {marker}")),
        None => Fact::missing("project", "none around this folder").command("--workspace DIR"),
    }
}

fn sources() -> impl Iterator<Item = Fact> {
    roots::foreign().into_iter().map(|root| {
        if root.path.is_dir() {
            Fact::fine(root.name, &root.path.to_string_lossy())
        } else {
            Fact::missing(root.name, "not found").command(root.advice)
        }
    })
}

/// Whom the user trusts; broken when that can't be known.
fn trust() -> Fact {
    const NAME: &str = "trusted workspaces";
    let store = TrustStore::new(Places::of_this_process().trust);
    match store.roots() {
        Ok(roots) => Fact::fine(NAME, &roots.len().to_string()).command("perflens trust --list"),
        Err(error @ TrustError::NoFolder) => Fact::missing(NAME, &error.to_string()),
        Err(error) => Fact::new(Mark::Broken, NAME, &error.to_string()),
    }
}

fn processors() -> Fact {
    match std::thread::available_parallelism() {
        Ok(number) => Fact::fine("processors", &number.to_string()),
        Err(error) => Fact::missing("processors", &error.to_string()),
    }
}

/// Memory that programs can still get; nothing where the system doesn't say it in a file.
fn memory() -> Option<Fact> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    let bytes = i128::from(kibibytes) * 1024;
    Some(Fact::fine("memory", &format!("{} available", Scale::of_unit("bytes").quantity(bytes))))
}
