//! Commands about profiling servers: what to ask them, signing in, addresses of their pages.

use std::path::Path;
use std::sync::Arc;

use lsp_types::{Command, MessageType};
use serde_json::{Value, json};
use tower_lsp::jsonrpc::Error;
use url::Url;

use super::commands::folder;
use super::invalid;
use crate::auth::oauth::{self, CLIENT_ID};
use crate::auth::signin::{self, Asks, Way};
use crate::auth::{Grant, Keeper};
use crate::loader::Input;
use crate::lsp::client::{CannotAsk, Editor};
use crate::session::{Cause, Session};
use crate::source::presets::{self, Preset};
use crate::source::query::TimeRange;
use crate::source::{Connection, Progress, Project, Request, SourceError, links, settings};
use crate::state::State;

/// As many choices as a dialog can hold.
const CHOICES: usize = 8;
/// Most labels or values of one that are listed.
const MAX_LABELS: usize = 10_000;
/// What is offered for a time, the most usual first.
const RANGES: [&str; 6] = ["15m", "1h", "24h", "5m", "7d", "30d"];

#[expect(clippy::needless_pass_by_value, reason = "it stands where a failure is mapped")]
fn in_words(error: SourceError) -> Error {
    invalid(error.to_string())
}

fn connection(state: &State, at: usize) -> Result<Connection, Error> {
    let own = &state.folders[at];
    settings::required_connection(&own.config().source, &own.root).map_err(in_words)
}

/// Asks the server, or offers what it can be asked.
pub(super) async fn query(
    session: &Arc<Session>,
    selector: Option<String>,
    range: Option<String>,
) -> Result<Value, Error> {
    let at = folder(&session.state(), None)?;
    let Some(selector) = selector else { return offer_queries(session, at).await };
    let request = {
        let state = session.state();
        let range = range.unwrap_or_else(|| state.folders[at].config().query.range.clone());
        let query = settings::query(&selector, &range).map_err(in_words)?;
        Request { connection: connection(&state, at)?, query: Some(query) }
    };
    ask(session, at, request, None);
    Ok(Value::Null)
}

/// Shows what a server answers, instead of what is shown.
fn ask(session: &Arc<Session>, at: usize, request: Request, base: Option<TimeRange>) {
    {
        let mut state = session.state();
        let Some(own) = state.folders.get_mut(at) else { return };
        let base = base.zip(request.query.clone()).map(|(range, mut query)| {
            query.range = range;
            Input::Remote(Box::new(Request { query: Some(query), ..request.clone() }))
        });
        own.chosen.profile = Some(Some(Input::Remote(Box::new(request))));
        own.chosen.base = Some(base);
    }
    session.load(at, Cause::Command);
}

async fn offer_queries(session: &Arc<Session>, at: usize) -> Result<Value, Error> {
    let connection = connection(&session.state(), at)?;
    let source = session.sources().source(&connection).map_err(in_words)?;
    let types = source.profile_types(&Progress::default()).await.map_err(in_words)?;
    let mut offered = presets::offered(connection.kind, &types, &[]);
    if offered.is_empty() && types.is_empty() {
        return Err(invalid(format!("{} has no profiles of the last hour", connection.server())));
    }
    let all: Vec<String> = types.iter().map(ToString::to_string).collect();
    if session.state().capabilities.has_dialogs {
        // With what it is to be compared, a dialog of its own asks.
        let alone = offered.iter().filter(|preset| preset.base.is_none());
        let choices: Vec<Value> = alone
            .map(|Preset { title, query, .. }| {
                json!({ "title": title, "selector": query.selector.to_string(), "range": query.range.to_string() })
            })
            .collect();
        return Ok(json!({ "choices": choices, "profileTypes": all, "ranges": RANGES }));
    }
    offered.truncate(CHOICES);
    let choices: Vec<&str> = offered.iter().map(|preset| preset.title.as_str()).collect();
    let result = json!({
        "choices": choices, "profileTypes": all, "example": "perflens.query 'TYPE{LABEL=\"VALUE\"}' 15m"
    });
    let session = Arc::clone(session);
    tokio::spawn(async move {
        let titles = offered.iter().map(|preset| preset.title.clone()).collect();
        match session.editor.choose(format!("perflens: ask {} for what?", connection.server()), titles).await {
            Ok(Some(title)) => {
                if let Some(preset) = offered.into_iter().find(|preset| preset.title == title) {
                    let request = Request { connection, query: Some(preset.query) };
                    ask(&session, at, request, preset.base);
                }
            }
            Ok(None) => {}
            Err(CannotAsk) => session.state().offers = offered.iter().map(query_offer).collect(),
        }
    });
    Ok(result)
}

/// What a query can be narrowed by: names of labels, or the values of one.
pub(super) async fn labels(
    session: &Arc<Session>,
    selector: &str,
    label: Option<&str>,
    range: Option<String>,
) -> Result<Value, Error> {
    let at = folder(&session.state(), None)?;
    let (connection, query) = {
        let state = session.state();
        let range = range.unwrap_or_else(|| state.folders[at].config().query.range.clone());
        (connection(&state, at)?, settings::query(selector, &range).map_err(in_words)?)
    };
    let source = session.sources().source(&connection).map_err(in_words)?;
    let mut found = match label {
        Some(label) => source.values(label, &query).await,
        None => source.labels(&query).await,
    }
    .map_err(in_words)?;
    found.truncate(MAX_LABELS);
    Ok(json!(found))
}

fn query_offer(preset: &Preset) -> Command {
    Command {
        title: format!("perflens: show {}", preset.title),
        command: "perflens.query".to_owned(),
        arguments: Some(vec![json!(preset.query.selector.to_string()), json!(preset.query.range.to_string())]),
    }
}

/// Asks for the same of another time.
pub(super) fn set_time_range(session: &Arc<Session>, range: Option<&str>) -> Result<Value, Error> {
    let at = folder(&session.state(), None)?;
    let request = remote(&session.state(), at)?;
    let Some(range) = range else {
        if session.state().capabilities.has_dialogs {
            return Ok(json!({ "choices": RANGES }));
        }
        let session = Arc::clone(session);
        tokio::spawn(async move {
            let choices = RANGES.map(str::to_owned).to_vec();
            match session.editor.choose("perflens: show which time?".to_owned(), choices).await {
                Ok(Some(range)) => drop(set_time_range(&session, Some(&range))),
                Ok(None) => {}
                Err(CannotAsk) => session.state().offers = RANGES.map(range_offer).to_vec(),
            }
        });
        return Ok(json!({ "choices": RANGES, "example": "perflens.setTimeRange 15m" }));
    };
    let mut request = request;
    if let Some(query) = &mut request.query {
        query.range = range.parse().map_err(|error: crate::source::query::QueryError| invalid(error.to_string()))?;
    }
    ask(session, at, request, None);
    Ok(Value::Null)
}

fn range_offer(range: &str) -> Command {
    Command {
        title: format!("perflens: show the last {range}"),
        command: "perflens.setTimeRange".to_owned(),
        arguments: Some(vec![json!(range)]),
    }
}

/// What is shown of a server.
fn remote(state: &State, at: usize) -> Result<Request, Error> {
    let shown = state.folders[at].profile();
    let request = shown.as_ref().and_then(Input::request).filter(|request| request.query.is_some());
    request.cloned().ok_or_else(|| invalid("what is shown is not from a server that can be asked; run perflens.query"))
}

/// Shows what the page of an address shows.
pub(super) fn import(session: &Arc<Session>, address: &str) -> Result<Value, Error> {
    let at = folder(&session.state(), None)?;
    let url = Url::parse(address.trim()).map_err(|_| invalid(format!("{address} is no address")))?;
    let link = {
        let state = session.state();
        let own = &state.folders[at];
        let configured = settings::connection(&own.config().source, &own.root).map_err(in_words)?;
        links::parse(&url, configured.as_ref()).map_err(in_words)?
    };
    let link = link.ok_or_else(|| {
        invalid("this is no address of a page that shows a profile of Parca, Polar Signals Cloud or Pyroscope")
    })?;
    {
        let mut state = session.state();
        let state = &mut *state;
        let own = &mut state.folders[at];
        let filters: Vec<String> = link.filters.iter().map(ToString::to_string).collect();
        own.layers.set_for_session("query.filters", json!(filters));
        own.read_settings(&state.trust);
    }
    let words = link.request.name();
    let source = link.source.clone();
    ask(session, at, link.request, None);
    Ok(json!({
        "query": words,
        "file": source.as_ref().map(|(file, _)| file),
        "line": source.as_ref().and_then(|(_, line)| *line),
    }))
}

/// The address of the page that shows what is shown here, with fixed times.
pub(super) fn link(session: &Session, file: Option<&str>, line: Option<u32>) -> Result<Url, Error> {
    let state = session.state();
    let at = folder(&state, None)?;
    let own = &state.folders[at];
    let shown = own.profile();
    let request = shown
        .as_ref()
        .and_then(Input::request)
        .ok_or_else(|| invalid("what is shown is not from a server, so there is no page of it"))?;
    let fetched = session.sources().kept_of(request);
    let times = fetched.and_then(|fetched| fetched.times);
    let times =
        times.or_else(|| request.query.as_ref().map(|query| query.range.at(crate::source::time::Instant::now())));
    let times = times.unwrap_or((crate::source::time::Instant(0), crate::source::time::Instant(0)));
    let path = file.map(super::commands::to_path);
    let name = path.as_deref().and_then(|path| name_in_profile(&state, at, path));
    let place = name.as_deref().zip(line);
    links::build(request, times, &own.config().query.filters, place)
        .ok_or_else(|| invalid("there is no page of this: no project is set"))
}

/// What the profile calls a file.
fn name_in_profile(state: &State, at: usize, path: &Path) -> Option<String> {
    let own = &state.folders[at];
    let view = own.view()?;
    let path = if path.is_relative() { own.root.join(path) } else { path.to_owned() };
    let file = view.file(&path)?;
    let group = view.analysis.groups.get(file.file);
    Some(view.analysis.profile.path(*group.files.first()?).to_owned())
}

/// Opens that page.
pub(super) fn open(session: &Arc<Session>, file: Option<&str>, line: Option<u32>) -> Result<Value, Error> {
    let url = link(session, file, line)?;
    let (session, page) = (Arc::clone(session), url.clone());
    tokio::spawn(async move {
        if !session.editor.open(page.clone()).await && !signin::open_browser(&page) {
            session.editor.say(MessageType::INFO, format!("perflens: open {page}"));
        }
    });
    Ok(json!(url))
}

struct Shows(Editor);

impl Asks for Shows {
    fn show(&self, words: &str) {
        self.0.say(MessageType::INFO, format!("perflens: {words}"));
    }

    fn code(&self) -> Result<String, SourceError> {
        Err(SourceError::input("a code can be pasted in a terminal: perflens login --paste"))
    }
}

/// Signs in to the server of the settings.
pub(super) fn sign_in(session: &Arc<Session>, with_device: bool) -> Result<Value, Error> {
    let at = folder(&session.state(), None)?;
    let connection = connection(&session.state(), at)?;
    let session = Arc::clone(session);
    tokio::spawn(async move {
        let way = if with_device { Way::Device } else { Way::Browser { port: 0 } };
        let shows = Shows(session.editor.clone());
        let title = format!("Signing in to {}", connection.server());
        let work = async { Some(signin::sign_in(&connection, CLIENT_ID.to_owned(), way, &shows).await) };
        let Some(result) = session.shown(work, title).await else { return };
        let result = match result {
            Ok(grant) => signed_in(&session, &connection, grant).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(words) => {
                session.editor.say(MessageType::INFO, format!("perflens: {words}"));
                session.load(at, Cause::Refresh);
            }
            Err(error) => session.editor.say(MessageType::ERROR, format!("perflens: {error}")),
        }
    });
    Ok(Value::Null)
}

async fn keep(connection: &Connection, grant: Grant) -> Result<(), SourceError> {
    let origin = connection.origin();
    let kept = tokio::task::spawn_blocking(move || {
        let keeper = Keeper::of_this_process();
        let lock = keeper.store().lock()?;
        keeper.store().set(&lock, &origin, &grant).map(|_| ())
    });
    kept.await.unwrap_or_else(|_| Err(SourceError::input("the sign-in can't be kept")))
}

async fn signed_in(session: &Arc<Session>, connection: &Connection, grant: Grant) -> Result<String, SourceError> {
    keep(connection, grant.clone()).await?;
    let projects = session.sources().source(connection)?.projects().await?;
    let server = connection.server();
    match projects.as_slice() {
        [] if connection.kind == crate::source::Kind::PolarSignals => {
            Err(SourceError::input(format!("there is no project in your account at {server}; make one there")))
        }
        [] => Ok(format!("signed in to {server}")),
        [only] => {
            keep(connection, Grant { project: Some(only.id.clone()), ..grant }).await?;
            Ok(format!("signed in to {server}, project {}", only.name))
        }
        several => {
            offer_projects(session, connection.clone(), several.to_vec());
            Ok(format!("signed in to {server}; choose a project"))
        }
    }
}

/// Signs out of the server of the settings.
pub(super) async fn sign_out(session: &Arc<Session>) -> Result<Value, Error> {
    let at = folder(&session.state(), None)?;
    let connection = connection(&session.state(), at)?;
    let origin = connection.origin();
    let removed = tokio::task::spawn_blocking(move || {
        let keeper = Keeper::of_this_process();
        let lock = keeper.store().lock()?;
        keeper.store().remove(&lock, &origin)
    });
    let removed = removed.await.map_err(|_| Error::internal_error())?.map_err(in_words)?;
    session.forget_answers();
    let Some(grant) = removed else { return Err(invalid(format!("nobody is signed in to {}", connection.origin()))) };
    let told = match oauth::revoke(&connection, &grant).await {
        Ok(true) => ", and the server has ended the sign-in",
        Ok(false) => "",
        Err(_) => "; the server could not be told",
    };
    Ok(json!(format!("signed out of {}{told}", connection.server())))
}

/// Chooses a project, or offers those that there are.
pub(super) async fn switch_project(session: &Arc<Session>, wanted: Option<&str>) -> Result<Value, Error> {
    let at = folder(&session.state(), None)?;
    let connection = connection(&session.state(), at)?;
    let source = session.sources().source(&connection).map_err(in_words)?;
    let projects = source.projects().await.map_err(in_words)?;
    if projects.is_empty() {
        return Err(invalid(format!("{} has no projects to choose from", connection.server())));
    }
    let Some(wanted) = wanted else {
        let choices: Vec<String> = projects.iter().map(|project| project.name.clone()).collect();
        offer_projects(session, connection, projects);
        return Ok(json!({ "choices": choices, "example": "perflens.switchProject NAME" }));
    };
    let project = projects
        .iter()
        .find(|project| project.id == wanted || project.name == wanted)
        .ok_or_else(|| invalid(format!("there is no project {wanted}")))?;
    take_project(session, &connection, project).await.map_err(in_words)?;
    Ok(Value::Null)
}

fn offer_projects(session: &Arc<Session>, connection: Connection, projects: Vec<Project>) {
    let session = Arc::clone(session);
    tokio::spawn(async move {
        let names: Vec<String> = projects.iter().map(|project| project.name.clone()).take(CHOICES).collect();
        match session.editor.choose("perflens: which project?".to_owned(), names.clone()).await {
            Ok(Some(name)) => {
                if let Some(project) = projects.iter().find(|project| project.name == name)
                    && let Err(error) = take_project(&session, &connection, project).await
                {
                    session.editor.say(MessageType::ERROR, format!("perflens: {error}"));
                }
            }
            Ok(None) => {}
            Err(CannotAsk) => {
                let offer = |name: &String| Command {
                    title: format!("perflens: use the project {name}"),
                    command: "perflens.switchProject".to_owned(),
                    arguments: Some(vec![json!(name)]),
                };
                session.state().offers = names.iter().map(offer).collect();
            }
        }
    });
}

async fn take_project(session: &Arc<Session>, connection: &Connection, project: &Project) -> Result<(), SourceError> {
    let keeper = Keeper::of_this_process();
    let Some((grant, _)) = keeper.grant(&connection.origin()) else {
        return Err(SourceError::input(format!("nobody is signed in to {}", connection.origin())));
    };
    keep(connection, Grant { project: Some(project.id.clone()), ..grant }).await?;
    let count = session.state().folders.len();
    for at in 0..count {
        let is_remote = session.state().folders[at].profile().is_some_and(|input| input.request().is_some());
        if is_remote {
            session.load(at, Cause::Refresh);
        }
    }
    Ok(())
}
