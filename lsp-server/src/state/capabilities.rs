//! What the editor can do, asked once. Read from the raw message: the typed one loses what is
//! newer than the library, and knows one key by another name than the protocol.

use serde_json::Value;

use super::text::Encoding;

/// The editor's abilities, under names that say what they are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the protocol has that many")]
pub struct Capabilities {
    /// What columns of positions count.
    pub encoding: Encoding,
    /// Hints are asked for again when we say so.
    pub refreshes_hints: bool,
    /// Lenses are asked for again when we say so.
    pub refreshes_lenses: bool,
    /// Tooltips of hints are asked for one by one.
    pub resolves_hint_tooltips: bool,
    /// Settings can be asked for.
    pub has_configuration: bool,
    /// Progress that we start is shown.
    pub shows_progress: bool,
    /// Documents are shown when we ask.
    pub shows_documents: bool,
    /// Links in hovers may run commands.
    pub runs_links: bool,
    /// Changed settings are announced when we ask for it.
    pub registers_configuration: bool,
    /// Answers of commands are shown by the client itself.
    pub shows_answers: bool,
    /// It has dialogs of its own for what can be asked of servers and recorded.
    pub has_dialogs: bool,
    /// `perflens/changed` is understood.
    pub follows_changes: bool,
}

impl Capabilities {
    /// Reads the parameters of `initialize`.
    pub fn read(initialize: &Value) -> Self {
        let client = &initialize["capabilities"];
        let is = |value: &Value| value.as_bool() == Some(true);
        let workspace = &client["workspace"];
        let hint = &client["textDocument"]["inlayHint"];
        let encodings: Vec<String> = client["general"]["positionEncodings"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect();
        Self {
            encoding: Encoding::negotiate(&encodings),
            refreshes_hints: is(&workspace["inlayHint"]["refreshSupport"]),
            refreshes_lenses: is(&workspace["codeLens"]["refreshSupport"]),
            resolves_hint_tooltips: hint["resolveSupport"]["properties"]
                .as_array()
                .is_some_and(|properties| properties.iter().any(|property| property == "tooltip")),
            has_configuration: is(&workspace["configuration"]),
            shows_progress: is(&client["window"]["workDoneProgress"]),
            shows_documents: is(&client["window"]["showDocument"]["support"]),
            runs_links: is(&initialize["initializationOptions"]["trustedMarkdown"]),
            registers_configuration: is(&workspace["didChangeConfiguration"]["dynamicRegistration"]),
            shows_answers: is(&client["experimental"]["perflens"]["showsAnswers"]),
            has_dialogs: is(&client["experimental"]["perflens"]["hasDialogs"]),
            follows_changes: is(&client["experimental"]["perflens"]["followsChanges"]),
        }
    }
}
