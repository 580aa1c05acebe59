//! A document as lines of text, for terminals, pipes and files.
//!
//! Spans keep their roles, so that the caller can colour them; without colours nothing is
//! lost, as heat and direction have glyphs too.

use unicode_width::UnicodeWidthStr;

use super::document::{Block, Document, Role, Sentence, Span};

/// The lines of a document. With a width, paragraphs wrap and names in tables are cut to it;
/// without one every paragraph is a line and nothing is cut.
pub fn lay_out(document: &Document, width: Option<usize>) -> Vec<Vec<Span>> {
    let mut lines = Vec::new();
    for block in &document.blocks {
        if !lines.is_empty() {
            lines.push(Vec::new());
        }
        match block {
            Block::Paragraph(sentences) => lines.extend(sentences.iter().flat_map(|sentence| wrap(sentence, width))),
            Block::Table { caption, table, footers } => {
                lines.extend(wrap(caption, width));
                lines.extend(table.lay_out(width));
                lines.extend(footers.iter().flat_map(|footer| wrap(footer, width)));
            }
        }
    }
    lines
}

/// The document as plain text.
pub fn plain(document: &Document, width: Option<usize>) -> String {
    plain_lines(&lay_out(document, width))
}

pub(super) fn plain_lines(lines: &[Vec<Span>]) -> String {
    let mut text = String::new();
    for line in lines {
        text.extend(line.iter().map(|span| span.text.as_str()));
        text.push('\n');
    }
    text
}

/// Breaks lines at blanks, but not inside data and commands: those are found and copied whole.
/// The blanks that a sentence starts with are repeated on its further lines.
fn wrap(sentence: &Sentence, width: Option<usize>) -> Vec<Vec<Span>> {
    let Some(width) = width else { return vec![sentence.spans.clone()] };
    let first = sentence.spans.first().map_or("", |span| &span.text);
    let indent = first.len() - first.trim_start_matches(' ').len();
    let mut lines: Vec<Vec<Span>> = Vec::new();
    let mut line: Vec<Span> = Vec::new();
    let mut used = 0;
    for word in words(sentence) {
        let length: usize = word.iter().map(|span| span.text.width()).sum();
        let blank = word.last().map_or(0, |span| span.text.len() - span.text.trim_end_matches(' ').len());
        if used > indent && used + length - blank > width {
            lines.push(std::mem::take(&mut line));
            line.push(Span::new(" ".repeat(indent), Role::Plain));
            used = indent;
        }
        used += length;
        line.extend(word);
    }
    lines.push(line);
    lines.iter_mut().for_each(trim_end);
    lines
}

/// What may not be torn apart, each with the blanks behind it.
fn words(sentence: &Sentence) -> Vec<Vec<Span>> {
    let mut words = Vec::new();
    let mut word = Vec::new();
    for span in &sentence.spans {
        if matches!(span.role, Role::Data | Role::Command) {
            word.push(span.clone());
            continue;
        }
        for piece in span.text.split_inclusive(' ') {
            word.push(Span::new(piece, span.role));
            if piece.ends_with(' ') {
                words.push(std::mem::take(&mut word));
            }
        }
    }
    words.push(word);
    words
}

fn trim_end(line: &mut Vec<Span>) {
    while let Some(last) = line.last_mut() {
        last.text.truncate(last.text.trim_end_matches(' ').len());
        if !last.text.is_empty() {
            break;
        }
        line.pop();
    }
}
