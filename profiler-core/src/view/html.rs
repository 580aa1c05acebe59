//! Pieces of a document as HTML.
//!
//! Everything is text: no name, path or line of source can become an element, an attribute or a
//! script, since all of it passes [`escaped`]. Classes say what a piece is; styles are the page's.

use super::document::{Block, Document, Role, Sentence, Span};
use super::table::{Column, Table};

/// Writes HTML. Texts pass `clean` first, which may leave things out; source lines do not, as they
/// are shown as they are in their file.
pub struct Writer<'a> {
    /// What has been written.
    pub out: String,
    clean: &'a dyn Fn(&str) -> String,
}

/// What a row of a table is besides its cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowLinks {
    /// Its name in the page, for addresses that lead to it.
    pub id: Option<String>,
    /// The name in the page that its last cell leads to.
    pub target: Option<String>,
}

impl<'a> Writer<'a> {
    /// A writer that has written nothing.
    pub fn new(clean: &'a dyn Fn(&str) -> String) -> Self {
        Self { out: String::new(), clean }
    }

    /// Writes all blocks.
    pub fn document(&mut self, document: &Document) {
        for block in &document.blocks {
            self.block(block, |_| RowLinks::default());
        }
    }

    /// Writes a block; `links` is asked for every row of a table by its position.
    pub fn block(&mut self, block: &Block, links: impl Fn(usize) -> RowLinks) {
        match block {
            Block::Paragraph(sentences) => self.paragraphs(sentences),
            Block::Table { caption, table, footers } => {
                self.caption(caption);
                self.table(table, links);
                self.paragraphs(footers);
            }
        }
    }

    /// Writes sentences, each as a paragraph.
    pub fn paragraphs<'s>(&mut self, sentences: impl IntoIterator<Item = &'s Sentence>) {
        for sentence in sentences {
            self.paragraph(sentence);
        }
    }

    /// Writes a sentence as a paragraph.
    pub fn paragraph(&mut self, sentence: &Sentence) {
        self.out.push_str("<p>");
        self.sentence(sentence);
        self.out.push_str("</p>\n");
    }

    /// Writes what stands above a table.
    pub fn caption(&mut self, caption: &Sentence) {
        if !caption.is_empty() {
            self.out.push_str("<p class=\"caption\">");
            self.sentence(caption);
            self.out.push_str("</p>\n");
        }
    }

    /// Writes a sentence.
    pub fn sentence(&mut self, sentence: &Sentence) {
        for span in &sentence.spans {
            self.span(span);
        }
    }

    /// Writes text.
    pub fn text(&mut self, text: &str) {
        let text = escaped(&(self.clean)(text));
        self.out.push_str(&text);
    }

    fn span(&mut self, span: &Span) {
        let class = match span.role {
            Role::Plain => return self.text(&span.text),
            Role::Strong => "strong",
            Role::Faint => "faint",
            Role::Data => "data",
            Role::Command => "command",
            Role::MuchMore => "much-more",
            Role::More => "more",
            Role::Less => "less",
            Role::Heat(heat) => ["heat0", "heat1", "heat2", "heat3", "heat4"][usize::from(heat.level()).min(4)],
        };
        self.out.push_str("<span class=\"");
        self.out.push_str(class);
        self.out.push_str("\">");
        self.text(&span.text);
        self.out.push_str("</span>");
    }

    /// Writes a table; `links` is asked for every row by its position.
    pub fn table(&mut self, table: &Table, links: impl Fn(usize) -> RowLinks) {
        self.out.push_str("<table>\n");
        if table.columns.iter().any(|column| !column.heading().is_empty()) {
            self.headings(&table.columns);
        }
        self.out.push_str("<tbody>\n");
        for (at, row) in table.rows.iter().enumerate() {
            let RowLinks { id, target } = links(at);
            self.out.push_str("<tr");
            if let Some(id) = id {
                self.out.extend([" id=\"", &escaped(&id), "\""]);
            }
            self.out.push('>');
            let last = row.len().saturating_sub(1);
            for (at, (column, cell)) in table.columns.iter().zip(row).enumerate() {
                self.cell(column, cell, target.as_deref().filter(|_| at == last));
            }
            self.out.push_str("</tr>\n");
        }
        self.out.push_str("</tbody></table>\n");
    }

    /// A heading of numbers reaches over the columns without one to its left.
    fn headings(&mut self, columns: &[Column]) {
        self.out.push_str("<thead><tr>");
        let mut pending = 0;
        for column in columns {
            if column.heading().is_empty() && column.is_number() {
                pending += 1;
                continue;
            }
            if column.heading().is_empty() || !column.is_number() {
                self.out.push_str(&"<th></th>".repeat(std::mem::take(&mut pending)));
            }
            let class = if column.is_number() { " class=\"number\"" } else { "" };
            let span = (std::mem::take(&mut pending) + 1).to_string();
            self.out.extend(["<th", class, " colspan=\"", &span, "\">"]);
            self.text(column.heading());
            self.out.push_str("</th>");
        }
        self.out.push_str(&"<th></th>".repeat(pending));
        self.out.push_str("</tr></thead>\n");
    }

    fn cell(&mut self, column: &Column, cell: &Span, target: Option<&str>) {
        if column.is_code() {
            self.out.extend(["<td class=\"code\">", &escaped(&cell.text), "</td>"]);
            return;
        }
        self.out.push_str(if column.is_number() { "<td class=\"number\">" } else { "<td>" });
        if let Some(target) = target {
            self.out.extend(["<a href=\"#", &escaped(target), "\">"]);
        }
        self.span(cell);
        if target.is_some() {
            self.out.push_str("</a>");
        }
        self.out.push_str("</td>");
    }
}

/// The text, so that a browser shows it as it is, between tags and in quoted attributes.
///
/// ```
/// use profiler_core::view::html::escaped;
/// assert_eq!(escaped("</script><img onerror='x'>"), "&lt;/script&gt;&lt;img onerror=&#39;x&#39;&gt;");
/// ```
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
