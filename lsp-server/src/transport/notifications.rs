//! Says so when a notification can't be read: the library drops those without a word, and
//! then nobody knows why costs stand still.

use lsp_types::notification::{
    DidChangeConfiguration, DidChangeTextDocument, DidChangeWorkspaceFolders, DidCloseTextDocument,
    DidOpenTextDocument, Notification,
};
use serde_json::Value;

/// Logs what is wrong with the parameters of a notification that we act on.
pub(super) fn check(method: &str, parameters: Option<&Value>) {
    let problem = match method {
        DidOpenTextDocument::METHOD => problem::<DidOpenTextDocument>(parameters),
        DidCloseTextDocument::METHOD => problem::<DidCloseTextDocument>(parameters),
        DidChangeConfiguration::METHOD => problem::<DidChangeConfiguration>(parameters),
        DidChangeWorkspaceFolders::METHOD => problem::<DidChangeWorkspaceFolders>(parameters),
        // One per keystroke: only its shape is looked at, not the text.
        DidChangeTextDocument::METHOD => {
            let has_shape = parameters.is_some_and(|parameters| {
                parameters["textDocument"]["uri"].is_string() && parameters["contentChanges"].is_array()
            });
            (!has_shape).then(|| "it names no document or no changes".to_owned())
        }
        _ => None,
    };
    if let Some(problem) = problem {
        tracing::warn!("{method} was ignored: {problem}");
    }
}

fn problem<N: Notification>(parameters: Option<&Value>) -> Option<String> {
    let parameters = parameters.cloned().unwrap_or_default();
    serde_json::from_value::<N::Params>(parameters).err().map(|error| error.to_string())
}
