//! Editors as the server sees them: what each announces in `initialize`, and how it answers
//! requests, as it was seen on the wire of the real ones.
//!
//! Only the parts that a server of this kind looks at; what an editor doesn't announce is
//! missing, as it is in its own message.

use serde_json::{Value, json};

use super::{Answer, Encoding};

/// What an editor can do.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, clippy::struct_excessive_bools, reason = "a table of what is announced")]
pub struct Editor {
    pub name: &'static str,
    pub version: &'static str,
    /// In its order; empty when it doesn't speak of it.
    pub encodings: &'static [&'static str],
    pub hints: bool,
    pub hint_resolve: bool,
    pub hint_refresh: bool,
    pub lenses: bool,
    pub lens_refresh: bool,
    pub diagnostic_refresh: bool,
    pub show_document: bool,
    /// `window/showMessageRequest`: yes, no, or not before the user comes round to it.
    pub choices: Option<bool>,
    pub progress: bool,
    pub configuration: bool,
    pub watches_files: bool,
    pub literal_actions: bool,
    pub hierarchy: bool,
}

const NOTHING: Editor = Editor {
    name: "bare",
    version: "0",
    encodings: &[],
    hints: false,
    hint_resolve: false,
    hint_refresh: false,
    lenses: false,
    lens_refresh: false,
    diagnostic_refresh: false,
    show_document: false,
    choices: Some(false),
    progress: false,
    configuration: false,
    watches_files: false,
    literal_actions: false,
    hierarchy: false,
};

const NEOVIM: Editor = Editor {
    name: "Neovim",
    version: "0.11.4",
    encodings: &["utf-8", "utf-16", "utf-32"],
    hints: true,
    hint_resolve: true,
    hint_refresh: true,
    lenses: true,
    lens_refresh: false,
    diagnostic_refresh: false,
    show_document: true,
    choices: Some(true),
    progress: true,
    configuration: true,
    watches_files: false,
    literal_actions: true,
    hierarchy: true,
};

const HELIX: Editor = Editor {
    name: "helix",
    version: "25.07.1",
    encodings: &["utf-8", "utf-32", "utf-16"],
    hints: true,
    configuration: true,
    watches_files: true,
    progress: true,
    choices: Some(true),
    literal_actions: true,
    ..NOTHING
};

/// Every editor, by the name that [`editor`] takes.
pub const EDITORS: &[(&str, Editor)] = &[
    ("bare", NOTHING),
    (
        "vscode",
        Editor {
            name: "Visual Studio Code",
            version: "1.139.1",
            encodings: &["utf-16"],
            lens_refresh: true,
            diagnostic_refresh: true,
            watches_files: true,
            ..NEOVIM
        },
    ),
    ("neovim 0.10", Editor { version: "0.10.4", encodings: &["utf-16"], ..NEOVIM }),
    ("neovim 0.11", NEOVIM),
    ("neovim 0.12", Editor { version: "0.12.4", lens_refresh: true, diagnostic_refresh: true, ..NEOVIM }),
    ("helix 25.01", Editor { version: "25.01.1", choices: Some(false), ..HELIX }),
    ("helix 25.07", Editor { diagnostic_refresh: true, ..HELIX }),
    (
        "eglot",
        Editor {
            name: "Eglot",
            version: "1.17.30",
            encodings: &["utf-32", "utf-8", "utf-16"],
            show_document: true,
            ..HELIX
        },
    ),
    (
        "kakoune",
        Editor {
            name: "kakoune-lsp",
            version: "22.0.0",
            encodings: &["utf-8", "utf-16"],
            hint_refresh: true,
            lenses: true,
            lens_refresh: true,
            hierarchy: true,
            choices: None,
            watches_files: false,
            ..HELIX
        },
    ),
];

/// The editor of that name in [`EDITORS`].
///
/// # Panics
/// When there is none.
pub fn editor(name: &str) -> Editor {
    EDITORS.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no editor {name:?}")).1
}

impl Editor {
    /// What it announces.
    pub fn capabilities(&self) -> Value {
        let mut all = json!({
            "textDocument": {
                "synchronization": { "didSave": true },
                "hover": { "contentFormat": ["markdown", "plaintext"] },
                "publishDiagnostics": { "relatedInformation": true },
            },
            "workspace": { "workspaceFolders": true, "executeCommand": {}, "applyEdit": true },
            "window": {},
        });
        if !self.encodings.is_empty() {
            all["general"] = json!({ "positionEncodings": self.encodings });
        }
        let document = &mut all["textDocument"];
        if self.hints {
            document["inlayHint"] = json!({});
        }
        if self.hint_resolve {
            document["inlayHint"]["resolveSupport"] =
                json!({ "properties": ["textEdits", "tooltip", "label.tooltip", "label.location", "label.command"] });
        }
        if self.lenses {
            document["codeLens"] = json!({ "dynamicRegistration": false });
        }
        if self.hierarchy {
            document["callHierarchy"] = json!({ "dynamicRegistration": false });
        }
        document["codeAction"] = if self.literal_actions {
            json!({ "codeActionLiteralSupport": { "codeActionKind": { "valueSet": ["", "quickfix", "refactor", "source"] } } })
        } else {
            json!({})
        };
        let workspace = &mut all["workspace"];
        if self.hint_refresh {
            workspace["inlayHint"] = json!({ "refreshSupport": true });
        }
        if self.lens_refresh {
            workspace["codeLens"] = json!({ "refreshSupport": true });
        }
        if self.diagnostic_refresh {
            // Helix writes the key that an old library reads.
            let key = if self.name == "helix" { "diagnostic" } else { "diagnostics" };
            workspace[key] = json!({ "refreshSupport": true });
        }
        if self.configuration {
            workspace["configuration"] = true.into();
            workspace["didChangeConfiguration"] = json!({ "dynamicRegistration": true });
        }
        workspace["didChangeWatchedFiles"] = json!({ "dynamicRegistration": self.watches_files });
        let window = &mut all["window"];
        if self.progress {
            window["workDoneProgress"] = true.into();
        }
        if self.show_document {
            window["showDocument"] = json!({ "support": true });
        }
        if self.choices != Some(false) {
            window["showMessage"] = json!({ "messageActionItem": { "additionalPropertiesSupport": false } });
        }
        all
    }

    /// The encoding that it and a server that knows all three agree on.
    pub fn expected_encoding(&self) -> Encoding {
        match self.encodings.first() {
            Some(&"utf-8") => Encoding::Utf8,
            Some(&"utf-32") => Encoding::Utf32,
            _ => Encoding::Utf16,
        }
    }

    /// How it answers a request of the server.
    pub fn answer(&self, method: &str, params: &Value) -> Answer {
        let yes_or_no = |yes: bool, result: Value| if yes { Answer::Result(result) } else { Answer::Refuse };
        match method {
            "workspace/configuration" if self.configuration => {
                let asked = params["items"].as_array().map_or(0, Vec::len);
                Answer::Result(vec![Value::Null; asked].into())
            }
            "workspace/inlayHint/refresh" => yes_or_no(self.hint_refresh, Value::Null),
            "workspace/codeLens/refresh" => yes_or_no(self.lens_refresh, Value::Null),
            "workspace/diagnostic/refresh" => yes_or_no(self.diagnostic_refresh, Value::Null),
            "window/workDoneProgress/create" => yes_or_no(self.progress, Value::Null),
            // Helix shows documents without announcing it.
            "window/showDocument" => yes_or_no(self.show_document || self.name == "helix", json!({ "success": true })),
            "window/showMessageRequest" => match self.choices {
                Some(yes) => yes_or_no(yes, Value::Null),
                None => Answer::Never,
            },
            "client/registerCapability" | "client/unregisterCapability" => Answer::Result(Value::Null),
            "workspace/applyEdit" => Answer::Result(json!({ "applied": true })),
            _ => Answer::Refuse,
        }
    }
}
