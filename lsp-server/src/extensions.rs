//! Requests that the language server protocol does not have: one table.
//!
//! Standard requests carry everything that they can; these carry the rest, for our own editor
//! plug-ins. A client that knows none of them loses nothing else. Their parameters and results
//! are types of the protocol side, described in `docs/lsp-extensions.md`; a test holds that page
//! against this table.

use std::fmt::Write as _;

use serde::Serialize;

use crate::config::docs::cell;

/// The version in `capabilities.experimental.perflens`: counts up when a request changes so
/// that an older client would misread it.
pub const VERSION: u32 = 1;

/// A request of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Extension {
    /// Its method.
    pub method: &'static str,
    /// What it returns, for the documentation.
    pub doc: &'static str,
}

/// All of them.
pub const EXTENSIONS: &[Extension] = &[
    Extension { method: "perflens/heat", doc: "The heat of the lines of a document: bars, signs and rulers." },
    Extension { method: "perflens/hotspots", doc: "What costs most in the workspace, by direct cost." },
    Extension { method: "perflens/callers", doc: "Callers and callees of a line or function, with costs." },
    Extension { method: "perflens/status", doc: "What is open, how old it is, how much of it is in the workspace." },
    Extension { method: "perflens/query", doc: "The profile, value type, filters and base that the costs are of." },
];

/// The table of `docs/lsp-extensions.md`.
pub fn markdown() -> String {
    let mut table = "| request | returns |\n|---|---|\n".to_owned();
    for Extension { method, doc } in EXTENSIONS {
        // Writing to a string can't fail.
        let _ = writeln!(table, "| `{method}` | {} |", cell(doc));
    }
    table
}
