//! `docs/configuration.md`, made from the settings themselves.
//!
//! Only what holds for all settings is written here; what one setting means is said at its
//! field of [`Config`](super::Config).

use std::fmt::Write as _;

use serde_json::Value;

use super::schema::{self, Setting};
use super::trust::Allowance;

const HEAD: &str = include_str!("configuration.md");

/// The page.
pub fn markdown() -> String {
    let mut page = HEAD.to_owned();
    for group in schema::groups() {
        // Writing to a string can't fail.
        let _ = write!(page, "\n## {}\n\n{}\n\n", group.name, group.doc.replace('\n', " "));
        page.push_str("| setting | takes | default | meaning | untrusted |\n|---|---|---|---|---|\n");
        for setting in &group.settings {
            let _ = writeln!(
                page,
                "| `{}` | {} | {} | {} | {} |",
                setting.pointer,
                cell(&setting.takes.words),
                cell(&default(setting)),
                cell(&setting.doc),
                allowance(setting.allowance),
            );
        }
    }
    page
}

fn default(setting: &Setting) -> String {
    match &setting.default {
        Value::Null => "none".to_owned(),
        Value::String(text) => format!("`{text}`"),
        value => format!("`{value}`"),
    }
}

fn allowance(allowance: Allowance) -> &'static str {
    match allowance {
        Allowance::All => "yes",
        Allowance::InsideWorkspace => "inside",
        Allowance::WithoutSource => "without files",
        Allowance::Nothing => "no",
    }
}

/// Text in a cell of a table; bars would end it even in code.
pub(crate) fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
