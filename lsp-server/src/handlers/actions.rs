//! `textDocument/codeAction`: what lenses and hints offer, for editors without them.

use lsp_types::{CodeActionOrCommand, Command, Range};
use profiler_core::view::data;

use super::{filters, places};
use crate::runnable::{self, Offer};
use crate::state::Snapshot;

/// What can be done at a place, most useful first. Nothing where there is no cost.
pub fn actions(snapshot: &Snapshot, range: Range) -> Vec<CodeActionOrCommand> {
    at_line(snapshot, range.start.line).into_iter().map(CodeActionOrCommand::Command).collect()
}

/// The commands that make sense at a line of the document (from 0).
pub fn at_line(snapshot: &Snapshot, line: u32) -> Vec<Command> {
    let is_costly = places::costly_line(snapshot, line).is_some();
    let is_function = places::function_at(snapshot, line).is_some();
    let profile = if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        runnable::at_line(&snapshot.offers(), line).map(|offer| profile_this(snapshot, offer))
    } else {
        None
    };
    if !is_costly && !is_function {
        return profile.into_iter().collect();
    }
    let here = |of: &str| serde_json::json!({ "file": snapshot.document.uri, "line": line + 1, "of": of });
    let command = |title: &str, name: &str, arguments: Vec<serde_json::Value>| Command {
        title: format!("perflens: {title}"),
        command: format!("perflens.{name}"),
        arguments: Some(arguments),
    };
    let mut commands: Vec<Command> = profile.into_iter().collect();
    let view = snapshot.view.as_ref();
    if let (Some(profile), true) = (commands.first().cloned(), view.is_some_and(|view| view.is_recording)) {
        commands.push(Command {
            title: "perflens: run base and new in turns".to_owned(),
            command: "perflens.profileInTurns".to_owned(),
            ..profile
        });
    }
    if is_costly {
        commands.push(command("callers and callees of this line", "showCallers", vec![here("line")]));
    }
    if places::function_around(snapshot, line).is_some() {
        commands.push(command("callers and callees of this function", "showCallers", vec![here("function")]));
    }
    let scope = if places::function_around(snapshot, line).is_some() { "function" } else { "line" };
    let place = serde_json::json!({ "scope": scope, "file": snapshot.document.uri, "line": line + 1 });
    commands.push(command(&format!("copy this {scope} for an assistant"), "copyForAI", vec![place]));
    commands.push(command("next hot spot", "nextHotspot", Vec::new()));
    commands.push(command("all hot spots", "showHotspots", Vec::new()));
    if let Some(view) = view {
        commands.extend(filters::at_function(view, places::function_around(snapshot, line)));
    }
    let is_comparing = view.is_some_and(|view| view.comparison.is_some());
    if is_comparing {
        commands.push(command("stop comparing", "stopComparing", Vec::new()));
    }
    if view.is_some_and(|view| view.may_have_bases()) {
        commands.push(command("compare with …", "compareWith", Vec::new()));
    }
    commands.push(command("other value type", "selectValueType", Vec::new()));
    commands.push(command(
        "explain what is shown",
        "explain",
        vec![serde_json::json!({ "file": snapshot.document.uri })],
    ));
    commands
}

/// Profiles what is offered.
pub(super) fn profile_this(snapshot: &Snapshot, offer: &Offer) -> Command {
    let Offer { runnable, .. } = offer;
    let arguments =
        serde_json::json!({ "file": snapshot.document.uri, "line": runnable.line + 1, "name": runnable.name });
    Command {
        title: format!("perflens: profile this {} ({})", runnable.kind.word(), data::shown(&runnable.name)),
        command: "perflens.profileTest".to_owned(),
        arguments: Some(vec![arguments]),
    }
}
