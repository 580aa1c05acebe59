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
                 value: string, function?: string }[] }",
    },
    Extension {
        method: "perflens/files",
        doc: "What the files of the workspace folders cause, for badges in a list of files: `level` 0 to 4, `percent` of \
              the total. Nothing in a comparison.",
        parameters: "none",
        result: "{ uri: URI, level: number, percent: string, label: string }[]",
    },
    Extension {
        method: "perflens/hotspots",
        doc: "What costs most in the workspace, by direct cost; in a comparison what changed most. `range` is where that \
              is now, `line` the line of the profile, from 1; values are in the unit of the value type, and absent in a \
              comparison.",
        parameters: "{ by?: \"line\" | \"function\", top?: number }",
        result: "{ rank: number, function: string, file: string, uri?: URI, range: Range, line: number, \
                 direct?: number, cumulative?: number, title: string, description: string, label: string }[]",
    },
    Extension {
        method: "perflens/packages",
        doc: "What no line of the workspace causes, a row for each package or binary.",
        parameters: "{ top?: number }",
        result: "{ title: string, description: string }[]",
    },
    Extension {
        method: "perflens/flamegraph",
        doc: "The widest boxes of a flame graph, callers before callees, of the folder that was opened last; widths are \
              magnitudes. `parent` and `function` are positions in the lists; `line` is where a function starts now, \
              from 0. In a comparison boxes have the widths of the new profile and say how they changed, `level` and \
              `isBetter` as in heat; what is gone has no box.",
        parameters: "{ top?: number }",
        result: "null | { title: string, origin: string, total: number, omitted: number, functions: { name: string, \
                 place: string, uri?: URI, line?: number, isOwn: boolean }[], boxes: { parent?: number, \
                 function: number, value: number, label: string, change?: { level: number, isBetter: boolean } }[] }",
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
        doc: "What is open in each workspace folder and each service, how much of it is in the workspace, and which settings are ignored \
              until the workspace is trusted. `text` is for a status bar, `details` are sentences.",
        parameters: "none",
        result: "{ folder: string, service?: string, state: \"none\" | \"loading\" | \"loaded\" | \"comparing\" | \
                 \"error\", text: string, icon: string, details: string[], origin?: string, total?: number, \
                 placed?: number, valueType?: string, \
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
