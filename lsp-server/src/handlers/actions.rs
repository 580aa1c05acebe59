//! `textDocument/codeAction`: what lenses and hints offer, for editors without them.

use lsp_types::{CodeActionOrCommand, Command, Range};

use super::places;
use crate::state::Snapshot;

/// What can be done at a place, most useful first. Nothing where there is no cost.
pub fn actions(snapshot: &Snapshot, range: Range) -> Vec<CodeActionOrCommand> {
    at_line(snapshot, range.start.line).into_iter().map(CodeActionOrCommand::Command).collect()
}

/// The commands that make sense at a line of the document (from 0).
pub fn at_line(snapshot: &Snapshot, line: u32) -> Vec<Command> {
    let is_costly = places::costly_line(snapshot, line).is_some();
    let is_function = places::function_at(snapshot, line).is_some();
    if !is_costly && !is_function {
        return Vec::new();
    }
    let here = |of: &str| serde_json::json!({ "file": snapshot.document.uri, "line": line + 1, "of": of });
    let command = |title: &str, name: &str, arguments: Vec<serde_json::Value>| Command {
        title: format!("perflens: {title}"),
        command: format!("perflens.{name}"),
        arguments: Some(arguments),
    };
    let mut commands = Vec::new();
    if is_costly {
        commands.push(command("callers and callees of this line", "showCallers", vec![here("line")]));
    }
    if places::function_around(snapshot, line).is_some() {
        commands.push(command("callers and callees of this function", "showCallers", vec![here("function")]));
    }
    commands.push(command("next hot spot", "nextHotspot", Vec::new()));
    commands.push(command("all hot spots", "showHotspots", Vec::new()));
    let is_comparing = snapshot.view.as_ref().is_some_and(|view| view.comparison.is_some());
    if is_comparing {
        commands.push(command("stop comparing", "stopComparing", Vec::new()));
    }
    commands.push(command("other value type", "selectValueType", Vec::new()));
    commands.push(command(
        "explain what is shown",
        "explain",
        vec![serde_json::json!({ "file": snapshot.document.uri })],
    ));
    commands
}
