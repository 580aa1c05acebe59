//! Which file a path of the profile was matched with, why, and the user's own word on it.

use std::sync::Arc;

use profiler_core::attribute::Place;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::Error;

use super::commands::{folder, to_path};
use super::{invalid, status};
use crate::config::PathRule;
use crate::session::{Cause, Session};
use crate::state::folder::Shown;

/// Why a file shows what it shows; without a file, where the value of the profile went.
pub(super) fn explain(session: &Arc<Session>, file: Option<&str>) -> Result<Value, Error> {
    let state = session.state();
    let Some(file) = file else {
        let folder = state.latest_folder().ok_or_else(|| invalid("no folder and no document is open"))?;
        return Ok(json!(status::explanation(folder)));
    };
    let path = to_path(file);
    let folder = state.view_of(&path).ok_or_else(|| invalid("no folder and no document is open"))?;
    let Shown::View(view, workspace) = &folder.shown else { return Ok(json!(status::explanation(folder))) };
    let own = workspace.file_at(&path).map_or(path, |file| file.path);
    Ok(json!(if let Some(costs) = view.file(&own) {
        let placement = view.analysis.groups.get(costs.file).placement.as_ref();
        let evidence = placement.map_or("", |placement| placement.evidence.as_str());
        format!("{} has costs in {}; it was found by: {evidence}.", own.display(), view.origin)
    } else {
        let name = own.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let refused = view.unmatched(&name);
        if refused.is_empty() {
            format!("{} names no file called {name}.", view.origin)
        } else {
            format!("{} names files called {name}, but: {}.", view.origin, refused.join("; "))
        }
    }))
}

/// Settles what a path means, by a rule for the session.
pub(super) fn choose(session: &Arc<Session>, path: Option<String>, file: Option<String>) -> Result<Value, Error> {
    let at = folder(&session.state(), None)?;
    let (Some(path), Some(file)) = (path, file) else {
        let state = session.state();
        let Some(view) = state.folders[at].view() else {
            return Err(invalid("no profile is open; run perflens.openProfile first"));
        };
        let open: Vec<Value> = view
            .analysis
            .groups
            .all()
            .iter()
            .filter_map(|group| {
                let placement = group.placement.as_ref()?;
                matches!(placement.place, Place::Ambiguous | Place::NoMatch).then(|| {
                    let path = group.files.first().map(|&file| view.analysis.profile.path(file));
                    json!({ "path": path, "why": placement.evidence })
                })
            })
            .take(100)
            .collect();
        return Ok(json!({ "open": open, "example": "perflens.chooseMatch PATH FILE" }));
    };
    let file = to_path(&file);
    {
        let mut state = session.state();
        let own = &mut state.folders[at];
        let file = own.root.join(file);
        let inside = file.strip_prefix(&own.root).map(|inside| inside.to_string_lossy().into_owned());
        let to = inside.map_err(|_| invalid(format!("{} is not in this workspace", file.display())))?;
        // Beside those of the settings, which may change.
        own.chosen.rules.retain(|rule| rule.from != path);
        own.chosen.rules.push(PathRule { from: path, to });
    }
    session.load(at, Cause::Command);
    Ok(Value::Null)
}
