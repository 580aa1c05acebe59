//! Says so when a notification can't be read: the library drops those without a word, and
//! then nobody knows why costs stand still. What is odd but clear is mended before that.

use lsp_types::notification::{
    DidChangeConfiguration, DidChangeTextDocument, DidChangeWorkspaceFolders, DidCloseTextDocument,
    DidOpenTextDocument, Notification,
};
use serde_json::{Map, Value};

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

/// Makes a number of the version of a document, whatever was sent: nothing depends on its order,
/// and an edit that is dropped can't be made up for.
pub(super) fn mend_version(message: &mut Map<String, Value>) {
    let method = message.get("method").and_then(Value::as_str);
    if !matches!(method, Some(DidOpenTextDocument::METHOD | DidChangeTextDocument::METHOD)) {
        return;
    }
    let document = message.get_mut("params").and_then(|params| params.get_mut("textDocument"));
    let Some(document) = document.and_then(Value::as_object_mut) else { return };
    let version = document.get("version").unwrap_or(&Value::Null);
    if version.as_i64().is_none_or(|version| i32::try_from(version).is_err()) {
        let number = version.as_f64().or_else(|| version.as_str()?.parse().ok()).unwrap_or(0.0);
        #[expect(clippy::cast_possible_truncation, reason = "what is too large is as large as can be")]
        document.insert("version".to_owned(), Value::from(number as i32));
    }
}

fn problem<N: Notification>(parameters: Option<&Value>) -> Option<String> {
    let parameters = parameters.cloned().unwrap_or_default();
    serde_json::from_value::<N::Params>(parameters).err().map(|error| error.to_string())
}
