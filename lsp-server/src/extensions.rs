//! Requests that the language server protocol does not have: one table.
//!
//! Standard requests carry everything that they can; these carry the rest, for our own editor
//! plug-ins. A client that knows none of them loses nothing else. Their parameters and results
//! are types of the protocol side, described in `docs/lsp-extensions.md`; a test holds that page
//! against this table.

use std::fmt::Write as _;

use serde::Serialize;

/// The version in `capabilities.experimental.perflens`: counts up when a request changes so
/// that an older client would misread it.
pub const VERSION: u32 = 1;

/// A request of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Extension {
    /// Its method.
    pub method: &'static str,
    /// What it is for, for the documentation.
    pub doc: &'static str,
    /// Its parameters, in TypeScript's notation.
    pub parameters: &'static str,
    /// Its result, in TypeScript's notation.
    pub result: &'static str,
}

/// All of them. The types are in [`handlers`](crate::handlers), in the modules of the names.
pub const EXTENSIONS: &[Extension] = &[
    Extension {
        method: "perflens/heat",
        doc: "The heat of the lines of a document: bars, signs and rulers. Lines count from 0, as they are now; `level` \
              is 0 to 4; in a comparison `isBetter` says that a line became less.",
        parameters: "{ textDocument: TextDocumentIdentifier }",
        result: "{ version: number, lines: { line: number, level: number, isBetter: boolean, share: string, \
                 value: string }[] }",
    },
    Extension {
        method: "perflens/hotspots",
        doc: "What costs most in the workspace, by direct cost; in a comparison what changed most. `range` is where that \
              is now, `line` the line of the profile, from 1; values are in the unit of the value type, and absent in a \
              comparison.",
        parameters: "{ by?: \"line\" | \"function\", top?: number }",
        result: "{ rank: number, function: string, file: string, uri?: URI, range: Range, line: number, \
                 direct?: number, cumulative?: number, label: string }[]",
    },
    Extension {
        method: "perflens/callers",
        doc: "Callers and callees of a line (from 0) or of the function it is in, each with the value of the samples in \
              which they meet, counted once per sample; `line` is a line of the profile, from 1.",
        parameters: "{ textDocument: TextDocumentIdentifier, line: number, of?: \"line\" | \"function\" }",
        result: "{ cumulative: number, callers: Neighbour[], callees: Neighbour[] } where Neighbour = { name: string, \
                 file: string, uri?: URI, line?: number, value: number, label: string }",
    },
    Extension {
        method: "perflens/status",
        doc: "What is open in each workspace folder, how much of it is in the workspace, and which settings are ignored \
              until the workspace is trusted. `text` is for a status bar, `details` are sentences.",
        parameters: "none",
        result: "{ folder: string, state: \"none\" | \"loading\" | \"loaded\" | \"comparing\" | \"error\", text: string, \
                 details: string[], origin?: string, total?: number, placed?: number, valueType?: string, \
                 valueTypes: string[], ignored: string[], differing: string[] }[]",
    },
    Extension {
        method: "perflens/query",
        doc: "The profile, base, value type and filters that the costs are of, of the folder that was opened last.",
        parameters: "none",
        result: "{ profile?: string, base?: string, valueType?: string, filters: string[] }",
    },
];

/// What `docs/lsp-extensions.md` says of each.
pub fn markdown() -> String {
    let mut page = String::new();
    for Extension { method, doc, parameters, result } in EXTENSIONS {
        // Writing to a string can't fail.
        let _ = writeln!(page, "## `{method}`\n\n{doc}\n\n```ts\nparameters: {parameters}\nresult: {result}\n```\n");
    }
    page.trim_end().to_owned() + "\n"
}
