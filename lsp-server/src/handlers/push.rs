//! Sends what is open to a profiling server. It leaves the machine, so what is still in it is listed
//! before anybody is asked; whoever names it by an argument has decided.

use std::sync::Arc;

use lsp_types::{Command, MessageType};
use profiler_core::encode::share::Remains;
use profiler_core::view::data;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::Error;

use super::commands::folder;
use super::invalid;
use crate::cli::convert;
use crate::lsp::client::CannotAsk;
use crate::push::{NAME, Parcel, is_name, parcel};
use crate::session::Session;
use crate::source::{Connection, settings};

const SEND: &str = "Send it";
const KEEP: &str = "Keep it here";
/// Most characters of a list in a question.
const MAX_LIST: usize = 300;

pub(super) async fn push_profile(session: &Arc<Session>, name: Option<String>) -> Result<Value, Error> {
    let asks = name.is_none();
    let name = name.unwrap_or_else(|| NAME.to_owned());
    if !is_name(&name) {
        return Err(invalid(format!("`{name}` is no name for a server: those are of letters, digits and _")));
    }
    let (connection, origin, profile) = {
        let state = session.state();
        let own = &state.folders[folder(&state, None)?];
        let connection = settings::required_connection(&own.config().source, &own.root);
        let connection = connection.map_err(|error| invalid(error.to_string()))?;
        let view = own.view().ok_or_else(|| invalid("no profile is open"))?;
        (connection, view.origin.clone(), Arc::clone(&view.analysis.profile))
    };
    let kind = connection.kind;
    let made = tokio::task::spawn_blocking(move || parcel(&profile, kind, &name, &[], &convert::private(Vec::new())));
    let parcel = made.await.map_err(|_| Error::internal_error())?;
    let parcel = parcel.map_err(|why| invalid(format!("{origin}: {why}")))?;
    if !asks {
        let session = Arc::clone(session);
        tokio::spawn(async move { send(&session, &connection, parcel).await });
        return Ok(Value::Null);
    }
    let what = question(&origin, &connection, &parcel);
    let session = Arc::clone(session);
    tokio::spawn(async move {
        match session.editor.choose(what, vec![SEND.to_owned(), KEEP.to_owned()]).await {
            Ok(Some(answer)) if answer == SEND => send(&session, &connection, parcel).await,
            Ok(_) => {}
            Err(CannotAsk) => session.state().offers = vec![offer(&origin, &connection)],
        }
    });
    Ok(json!({ "choices": [SEND, KEEP], "example": format!("perflens.pushProfile {NAME}") }))
}

fn question(origin: &str, connection: &Connection, parcel: &Parcel) -> String {
    let Remains { functions, folders, binaries, labels, left_out, .. } = &parcel.remains;
    let names = |items: &[(String, usize)]| list(items.iter().map(|(name, _)| name.as_str()));
    format!(
        "perflens: send {} to {}, as {}? Still in it: {functions} names of functions; folders {}; binaries {}; labels {}. \
         Left out: addresses, comments, labels {}.",
        data::shown(origin),
        connection.server(),
        data::shown_within(&parcel.types.join(", "), MAX_LIST),
        names(folders),
        list(binaries.iter().map(String::as_str)),
        names(labels),
        list(left_out.iter().map(String::as_str)),
    )
}

/// `none`, or as many as there is room for.
fn list<'a>(items: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<&str> = items.collect();
    if all.is_empty() { "none".to_owned() } else { data::shown_within(&all.join(", "), MAX_LIST).into_owned() }
}

fn offer(origin: &str, connection: &Connection) -> Command {
    Command {
        title: format!("perflens: send {} to {}", data::shown(origin), connection.server()),
        command: "perflens.pushProfile".to_owned(),
        arguments: Some(vec![json!(NAME)]),
    }
}

async fn send(session: &Arc<Session>, connection: &Connection, parcel: Parcel) {
    let Parcel { push, types, .. } = parcel;
    let work = async {
        let sent = match session.sources().source(connection) {
            Ok(source) => source.push(push).await,
            Err(error) => Err(error),
        };
        Some(sent)
    };
    match session.shown(work, format!("Sending to {}", connection.server())).await {
        Some(Ok(())) => {
            let types = data::shown_within(&types.join(", "), MAX_LIST).into_owned();
            session.editor.say(MessageType::INFO, format!("perflens: sent to {} as {types}", connection.server()));
        }
        Some(Err(error)) => session.editor.say(MessageType::ERROR, format!("perflens: {error}")),
        None => {}
    }
}
