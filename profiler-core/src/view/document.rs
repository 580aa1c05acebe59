//! What a view says, before anyone knows where it will be read.
//!
//! A [`Document`] is paragraphs and tables made of [`Span`]s, each with a [`Role`]. One
//! renderer lays it out for terminals and plain files ([`text`](super::text)), another for
//! places that read markdown ([`markdown`](super::markdown)); views write it once.
//!
//! What is not here: colours, widths, escapes of any output format.

use super::data;
use super::table::Table;
use crate::measure::Heat;

/// A text in blocks, from top to bottom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// The blocks; a blank line apart.
    pub blocks: Vec<Block>,
}

/// One block of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// Sentences, each starting on a line of its own.
    Paragraph(Vec<Sentence>),
    /// A table with what belongs to it.
    Table {
        /// Says what the numbers are of; stands above.
        caption: Sentence,
        /// The rows.
        table: Table,
        /// Stand below, each on a line of its own.
        footers: Vec<Sentence>,
    },
}

impl Document {
    /// Adds a paragraph, unless there is nothing in it.
    pub fn paragraph(&mut self, sentences: impl IntoIterator<Item = Sentence>) {
        let sentences: Vec<_> = sentences.into_iter().filter(|sentence| !sentence.spans.is_empty()).collect();
        if !sentences.is_empty() {
            self.blocks.push(Block::Paragraph(sentences));
        }
    }

    /// Adds a table.
    pub fn table(&mut self, caption: Sentence, table: Table, footers: Vec<Sentence>) {
        self.blocks.push(Block::Table { caption, table, footers });
    }
}

/// What a piece of text is, so that a renderer can decide how it looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Words of ours.
    #[default]
    Plain,
    /// What the eye should find first.
    Strong,
    /// What it may skip.
    Faint,
    /// From a profile: a name, a path, a label.
    Data,
    /// To be typed into a shell or a file.
    Command,
    /// A number, as hot as this.
    Heat(Heat),
    /// A cost that grew much.
    MuchMore,
    /// A cost that grew.
    More,
    /// A cost that shrank.
    Less,
}

/// A piece of text on one line; holds no control characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The text.
    pub text: String,
    /// What it is.
    pub role: Role,
}

impl Span {
    /// Text that this program wrote.
    pub fn new(text: impl Into<String>, role: Role) -> Self {
        Self { text: text.into(), role }
    }

    /// Text that a profile or a path brought: made harmless, and at most
    /// [`data::MAX_CHARS`] long.
    pub fn data(text: &str) -> Self {
        Self { text: data::shown(text).into_owned(), role: Role::Data }
    }

    /// The text with words of ours right behind it.
    #[must_use]
    pub fn followed_by(mut self, words: &str) -> Self {
        self.text.push_str(words);
        self
    }

    /// The same text in another role.
    #[must_use]
    pub fn with_role(self, role: Role) -> Self {
        Self { role, ..self }
    }
}

/// Spans one after the other.
///
/// ```
/// use profiler_core::view::document::Sentence;
/// let sentence = Sentence::new("in ").data("src/main.rs").text(".");
/// assert_eq!(sentence.to_string(), "in src/main.rs.");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sentence {
    /// The pieces.
    pub spans: Vec<Span>,
}

impl Sentence {
    /// A sentence that starts with these words.
    pub fn new(text: impl Into<String>) -> Self {
        Self::default().text(text)
    }

    /// Goes on with words of ours.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.span(Span::new(text, Role::Plain))
    }

    /// Goes on with what the eye should find first.
    #[must_use]
    pub fn strong(self, text: impl Into<String>) -> Self {
        self.span(Span::new(text, Role::Strong))
    }

    /// Goes on with what the eye may skip.
    #[must_use]
    pub fn faint(self, text: impl Into<String>) -> Self {
        self.span(Span::new(text, Role::Faint))
    }

    /// Goes on with text from a profile.
    #[must_use]
    pub fn data(self, text: &str) -> Self {
        self.span(Span::data(text))
    }

    /// Goes on with something to type.
    #[must_use]
    pub fn command(self, text: &str) -> Self {
        self.span(Span::data(text).with_role(Role::Command))
    }

    /// Goes on with a piece.
    #[must_use]
    pub fn span(mut self, span: Span) -> Self {
        if !span.text.is_empty() {
            self.spans.push(span);
        }
        self
    }

    /// Goes on with all pieces of another sentence.
    #[must_use]
    pub fn then(mut self, other: Self) -> Self {
        self.spans.extend(other.spans);
        self
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }
}

impl std::fmt::Display for Sentence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.spans.iter().try_for_each(|span| f.write_str(&span.text))
    }
}
