//! `perflens login`, `logout` and `status`: who we are, for a profiling server.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;
use profiler_core::view::data;

use super::server::Server;
use super::{Failure, remote};
use crate::auth::keeper::From;
use crate::auth::signin::{self, Way};
use crate::auth::store::Place;
use crate::auth::{Grant, Keeper, oauth};
use crate::config::places::Places;
use crate::source::answers::Answers;
use crate::source::{Connection, Progress, Project, SourceError};

#[derive(Args, Debug)]
#[command(after_long_help = "\
A browser signs you in; where there is none, --paste shows an address to open anywhere and takes the
code it ends with, and --device a code to enter anywhere. Servers behind a proxy, and service
accounts, take a token: perflens login --server https://parca.example.com --token < FILE

What is kept belongs to the server's scheme, host and port, and is sent nowhere else. It is kept in
the system's secret store, or else in a file that only you can read; which one is said.")]
pub(super) struct Arguments {
    #[command(flatten)]
    server: Server,

    /// Show an address, and take the code it ends with
    #[arg(long, conflicts_with_all = ["device", "token"])]
    paste: bool,

    /// Show a code to enter on another device
    #[arg(long, conflicts_with = "token")]
    device: bool,

    /// Read a token or password from standard input
    #[arg(long)]
    token: bool,

    /// The port the browser comes back to [default: one that is free]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,

    /// The client id to sign in as
    #[arg(long, value_name = "ID", default_value = oauth::CLIENT_ID)]
    client_id: String,
}

pub(super) fn login(arguments: &Arguments) -> Result<(), Failure> {
    let connection = arguments.server.connection()?;
    let keeper = Keeper::of_this_process();
    let grant = if arguments.token {
        let token = read_line("the token: ")?;
        if token.is_empty() {
            return Err(Failure::Input("there is no token on standard input".to_owned()));
        }
        Grant { access_token: token, ..Grant::default() }
    } else {
        let way = if arguments.paste {
            Way::Paste
        } else if arguments.device {
            Way::Device
        } else {
            Way::Browser { port: arguments.port }
        };
        let work = signin::sign_in(&connection, arguments.client_id.clone(), way, &Terminal);
        remote::wait(work)??
    };
    let place = keep(&keeper, &connection, &grant)?;
    say(&format!("signed in to {}", connection.origin()))?;
    say(&match place {
        Place::System => "the sign-in is kept in the system's secret store".to_owned(),
        Place::File => format!(
            "there is no secret store here that answers, so the sign-in is kept in {}, which only you can read",
            keeper.store().path().unwrap_or(std::path::Path::new("")).display()
        ),
    })?;
    choose_project(&keeper, &connection, &grant)
}

struct Terminal;

impl signin::Asks for Terminal {
    fn show(&self, words: &str) {
        let _ = writeln!(anstream::stderr(), "{}", data::shown_within(words, 4000));
    }

    fn code(&self) -> Result<String, SourceError> {
        read_line("the code: ").map_err(|failure| SourceError::input(failure.to_string()))
    }
}

fn keep(keeper: &Keeper, connection: &Connection, grant: &Grant) -> Result<Place, Failure> {
    let store = keeper.store();
    let lock = store.lock()?;
    Ok(store.set(&lock, &connection.origin(), grant)?)
}

/// Where there are projects, the only one is taken; among several somebody has to choose.
fn choose_project(keeper: &Keeper, connection: &Connection, grant: &Grant) -> Result<(), Failure> {
    let projects = remote::ask(connection, async |source| source.projects().await)?;
    let wanted = connection.project.as_ref();
    match projects.as_slice() {
        [] if connection.kind == crate::source::Kind::PolarSignals => Err(Failure::Input(format!(
            "there is no project in your account at {}; make one there, then sign in again",
            connection.server()
        ))),
        [] => Ok(()),
        [only] if wanted.is_none_or(|wanted| *wanted == only.id) => {
            let grant = Grant { project: Some(only.id.clone()), ..grant.clone() };
            keep(keeper, connection, &grant)?;
            say(&format!("project {}", name(only)))
        }
        several => match wanted {
            Some(wanted) => match several.iter().find(|project| project.id == *wanted || project.name == *wanted) {
                Some(project) => {
                    keep(keeper, connection, &Grant { project: Some(project.id.clone()), ..grant.clone() })?;
                    say(&format!("project {}", name(project)))
                }
                None => Err(Failure::Input(format!(
                    "there is no project `{wanted}` in your account; there are {}",
                    names(several)
                ))),
            },
            None => say(&format!("choose a project with perflens login --project ID: {}", names(several))),
        },
    }
}

fn name(project: &Project) -> String {
    format!("{} of {} ({})", project.name, project.organization, project.id)
}

fn names(projects: &[Project]) -> String {
    projects.iter().map(name).collect::<Vec<_>>().join(", ")
}

#[derive(Args, Debug)]
pub(super) struct LogoutArguments {
    #[command(flatten)]
    server: Server,
}

pub(super) fn logout(arguments: &LogoutArguments) -> Result<(), Failure> {
    let connection = arguments.server.connection()?;
    let origin = connection.origin();
    let keeper = Keeper::of_this_process();
    let removed = {
        let store = keeper.store();
        let lock = store.lock()?;
        store.remove(&lock, &origin)?
    };
    Answers::new(Places::of_this_process().answers()).remove_all();
    let Some(grant) = removed else { return Err(Failure::Input(format!("nobody is signed in to {origin}"))) };
    say(&format!("signed out of {origin}"))?;
    match remote::wait(oauth::revoke(&connection, &grant))? {
        Ok(true) => say("the server has ended the sign-in as well"),
        Ok(false) => Ok(()),
        Err(error) => say(&format!("the server could not be told: {error}")),
    }
}

#[derive(Args, Debug)]
pub(super) struct StatusArguments {
    #[command(flatten)]
    server: Server,
}

pub(super) fn status(arguments: &StatusArguments) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    let mut line = |words: &str| writeln!(out, "{}", data::shown_within(words, 1000));
    let Some(connection) = arguments.server.connection_if_any()? else {
        line("no profiling server is set; set source.address in perflens.toml or your config.toml")?;
        return Ok(());
    };
    let keeper = Keeper::of_this_process();
    line(&format!("server   {}", connection.address))?;
    let who = match keeper.grant(&connection.origin()) {
        None => "nobody is signed in".to_owned(),
        Some((grant, _)) if grant.is_dead => "the sign-in has ended; run perflens login".to_owned(),
        Some((_, From::Environment)) => "the token of PERFLENS_TOKEN".to_owned(),
        Some((_, From::Psctl)) => "the login of psctl, while it is valid".to_owned(),
        Some((_, From::Store)) => match keeper.store().place() {
            Some(Place::System) => "signed in, kept in the system's secret store".to_owned(),
            _ => "signed in, kept in a file that only you can read".to_owned(),
        },
    };
    line(&format!("sign-in  {who}"))?;
    let project = keeper.grant(&connection.origin()).and_then(|(grant, _)| grant.project);
    if let Some(project) = connection.project.as_ref().or(project.as_ref()) {
        line(&format!("project  {project}"))?;
    }
    let (description, types) = remote::ask(&connection, async |source| {
        let types = source.profile_types(&Progress::default()).await?;
        Ok((source.describe(), types))
    })?;
    line(&format!("answers  {} with {} profile types", description.kind, types.len()))?;
    Ok(())
}

fn read_line(prompt: &str) -> Result<String, Failure> {
    if io::stdin().is_terminal() {
        let mut out = anstream::stderr();
        write!(out, "{prompt}")?;
        out.flush()?;
    }
    let mut text = String::new();
    io::stdin().lock().read_line(&mut text).map_err(|error| Failure::Input(format!("standard input: {error}")))?;
    Ok(text.trim().to_owned())
}

fn say(words: &str) -> Result<(), Failure> {
    writeln!(anstream::stderr(), "{}", data::shown_within(words, 2000))?;
    Ok(())
}
