//! `textDocument/inlayHint`, and its tooltips.

use lsp_types::{InlayHint, InlayHintLabel, InlayHintTooltip, MarkupContent, MarkupKind, Range};
use profiler_core::cancel::CancelFlag;
use serde::{Deserialize, Serialize};

use super::hover;
use crate::state::Snapshot;

/// What a tooltip is made from later.
#[derive(Debug, Serialize, Deserialize)]
pub struct HintData {
    /// The document.
    pub uri: lsp_types::Url,
    /// Its version at that time.
    pub version: i32,
    /// The line of the profile, from 1.
    pub line: u32,
}

/// The hints of a range. Ranges past the end of the document are cut.
pub fn hints(snapshot: &Snapshot, range: Range) -> Vec<InlayHint> {
    let Some(settings) = super::settings(&snapshot.config) else { return Vec::new() };
    let Some(view) = &snapshot.view else { return Vec::new() };
    let Some(file) = view.file(&snapshot.file) else { return Vec::new() };
    let document = &snapshot.document;
    let last = (range.end.line as usize).min(document.text.line_count() - 1);
    let hints = view.hints(file, &settings);
    (range.start.line as usize..=last)
        .filter_map(|line| {
            let (profiled, is_doubtful) = document.map.found(line)?;
            let hint = &hints[hints.binary_search_by_key(&profiled, |hint| hint.line).ok()?];
            let data = HintData { uri: document.uri.clone(), version: document.version, line: hint.line };
            Some(InlayHint {
                position: document.text.end_of_line(line, snapshot.capabilities.encoding),
                label: InlayHintLabel::String(if is_doubtful { hint.doubtful.clone() } else { hint.label.clone() }),
                kind: None,
                text_edits: None,
                tooltip: None,
                padding_left: Some(true),
                padding_right: None,
                data: snapshot.capabilities.resolves_hint_tooltips.then(|| serde_json::to_value(data).ok()).flatten(),
            })
        })
        .collect()
}

/// Adds the tooltip. A hint of a version that is gone comes back as it was.
pub fn resolve(mut hint: InlayHint, data: &HintData, snapshot: &Snapshot, cancel: &CancelFlag) -> InlayHint {
    if snapshot.document.version != data.version {
        return hint;
    }
    if let Some(text) = hover::line_text(snapshot, data.line, cancel) {
        hint.tooltip = Some(InlayHintTooltip::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value: text }));
    }
    hint
}
