//! A document as markdown, for pull requests, chats and assistants.
//!
//! Tables are fenced text: markdown tables show as raw pipes in many places that say they
//! read markdown, and everything lines up in a fence. Text from a profile stands in code
//! spans and fences only, so it can neither format, link nor mention anything.

use super::document::{Block, Document, Role, Sentence, Span};

/// The document as markdown. Nothing is cut; lines of sentences are not wrapped.
pub fn render(document: &Document) -> String {
    let mut blocks = Vec::new();
    for block in &document.blocks {
        match block {
            Block::Paragraph(sentences) => blocks.extend(sentences.iter().map(inline)),
            Block::Table { caption, table, footers } => {
                blocks.extend((!caption.is_empty()).then(|| inline(caption)));
                blocks.push(fenced(&super::text::plain_lines(&table.lay_out(None))));
                blocks.extend(footers.iter().map(inline));
            }
        }
    }
    blocks.iter().map(|block| format!("{block}\n")).collect::<Vec<_>>().join("\n")
}

/// The text in a fence that nothing in it can close. It ends in a line feed.
pub fn fenced(text: &str) -> String {
    let fence = "`".repeat((longest_run(text) + 1).max(3));
    format!("{fence}text\n{text}{fence}")
}

/// The text in a code span that nothing in it can close.
///
/// ```
/// use profiler_core::view::markdown::code_span;
/// assert_eq!(code_span("a`b"), "``a`b``");
/// ```
pub fn code_span(text: &str) -> String {
    let ticks = "`".repeat(longest_run(text) + 1);
    // Readers take one blank off both ends; without it a tick at an end would join the others.
    let blank = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{ticks}{blank}{text}{blank}{ticks}")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

pub(super) fn inline(sentence: &Sentence) -> String {
    sentence.spans.iter().map(span).collect()
}

fn span(span: &Span) -> String {
    match span.role {
        Role::Data | Role::Command => code_span(&span.text),
        // Stars next to a blank are only stars.
        Role::Strong => {
            let words = span.text.trim();
            let (before, after) = span.text.split_once(words).unwrap_or_default();
            format!("{before}**{}**{after}", escaped(words))
        }
        _ => escaped(&span.text),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if "\\`*_[]<>#|~&!".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
