//! The one filter grammar of every surface: `[frame.]FIELD OP VALUE`.
//!
//! A filter without `frame.` keeps or drops whole samples; with it, it keeps or drops single
//! frames of a stack. Several filters must all hold. Comparison ignores ASCII case.
//!
//! | field | of | compares |
//! |---|---|---|
//! | `fn` | frame | function name, demangled |
//! | `sn` | frame | name as the linker knows it |
//! | `file` | frame | path as the profile has it, cleaned |
//! | `bin` | frame | path or base name of the binary |
//! | `addr` | frame | address, `0x…` in hex |
//! | `line` | frame | line number |
//! | `thread` | sample | any label that names a thread |
//! | `label.KEY` | sample | the label `KEY` |
//!
//! Operators: `=` `!=` equal, `~` `!~` contains, `^` `!^` starts with. A negated filter of
//! samples holds when *no* frame (no such label) matches.

use std::fmt;
use std::str::FromStr;

/// Labels by which producers name the thread of a sample.
pub(super) const THREAD_LABELS: &[&str] = &["thread", "thread.name", "thread_name", "thread.id", "thread_id", "tid"];

/// One condition. Parsed from text by [`FromStr`]; displays as that text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Filter {
    scope: Scope,
    field: Field,
    operator: Operator,
    is_negated: bool,
    value: String,
}

/// What a filter keeps or drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Whole samples.
    Samples,
    /// Single frames.
    Frames,
}

/// What a filter looks at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// A property of a frame.
    Frame(FrameField),
    /// Labels that name the thread.
    Thread,
    /// The label of this name.
    Label(String),
}

/// A property of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameField {
    /// Demangled function name.
    Function,
    /// Linker name.
    SystemName,
    /// Cleaned source path.
    File,
    /// Binary or library.
    Binary,
    /// Address in hex.
    Address,
    /// Line number.
    Line,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Operator {
    Equal,
    Contains,
    StartsWith,
}

/// A filter that does not follow the grammar; displays as a sentence with what would.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// No operator in it.
    #[error("filter `{0}` has no operator; write FIELD=VALUE, or one of != ~ !~ ^ !^ for =")]
    NoOperator(String),
    /// No such field.
    #[error("filter `{filter}`: no field `{field}`; there are fn, sn, file, bin, addr, line, thread and label.KEY")]
    UnknownField {
        /// The whole filter.
        filter: String,
        /// The field it names.
        field: String,
    },
    /// `frame.` before a field of samples.
    #[error("filter `{0}`: a thread or label belongs to the whole sample; leave out `frame.`")]
    NotAFrameField(String),
}

impl Filter {
    /// Whether it is about samples or frames.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// What it looks at.
    pub fn field(&self) -> &Field {
        &self.field
    }

    /// Whether it asks for what does *not* match.
    pub fn is_negated(&self) -> bool {
        self.is_negated
    }

    /// How it compares: `=`, `~` or `^`, with a `!` before it when negated.
    pub fn operator(&self) -> &'static str {
        match (self.is_negated, self.operator) {
            (false, Operator::Equal) => "=",
            (false, Operator::Contains) => "~",
            (false, Operator::StartsWith) => "^",
            (true, Operator::Equal) => "!=",
            (true, Operator::Contains) => "!~",
            (true, Operator::StartsWith) => "!^",
        }
    }

    /// What it compares with.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Whether the label of a sample is one this filter looks at.
    pub fn looks_at_label(&self, key: &str) -> bool {
        match &self.field {
            Field::Thread => THREAD_LABELS.contains(&key),
            Field::Label(name) => name == key,
            Field::Frame(_) => false,
        }
    }

    /// Compares, without regard to negation.
    pub fn matches(&self, candidate: &str) -> bool {
        let (candidate, value) = (candidate.as_bytes(), self.value.as_bytes());
        match self.operator {
            Operator::Equal => candidate.eq_ignore_ascii_case(value),
            Operator::StartsWith => candidate.get(..value.len()).is_some_and(|start| start.eq_ignore_ascii_case(value)),
            Operator::Contains => {
                value.is_empty() || candidate.windows(value.len()).any(|part| part.eq_ignore_ascii_case(value))
            }
        }
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        // Keys of labels may hold dots and dashes, but none of the operators' characters.
        let at = text.find(['=', '!', '~', '^']).ok_or_else(|| FilterError::NoOperator(text.to_owned()))?;
        let (name, rest) = text.split_at(at);
        let (is_negated, rest) = match rest.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let (operator, value) = if let Some(value) = rest.strip_prefix('=') {
            (Operator::Equal, value)
        } else if let Some(value) = rest.strip_prefix('~') {
            (Operator::Contains, value)
        } else if let Some(value) = rest.strip_prefix('^') {
            (Operator::StartsWith, value)
        } else {
            return Err(FilterError::NoOperator(text.to_owned()));
        };
        let name = name.trim();
        let (scope, name) = match name.strip_prefix("frame.") {
            Some(name) => (Scope::Frames, name),
            None => (Scope::Samples, name),
        };
        let field = match name {
            "fn" => Field::Frame(FrameField::Function),
            "sn" => Field::Frame(FrameField::SystemName),
            "file" => Field::Frame(FrameField::File),
            "bin" => Field::Frame(FrameField::Binary),
            "addr" => Field::Frame(FrameField::Address),
            "line" => Field::Frame(FrameField::Line),
            "thread" => Field::Thread,
            _ => match name.strip_prefix("label.") {
                Some(key) if !key.is_empty() => Field::Label(key.to_owned()),
                _ => return Err(FilterError::UnknownField { filter: text.to_owned(), field: name.to_owned() }),
            },
        };
        if scope == Scope::Frames && !matches!(field, Field::Frame(_)) {
            return Err(FilterError::NotAFrameField(text.to_owned()));
        }
        Ok(Self { scope, field, operator, is_negated, value: value.trim().to_owned() })
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scope == Scope::Frames {
            f.write_str("frame.")?;
        }
        match &self.field {
            Field::Frame(FrameField::Function) => f.write_str("fn")?,
            Field::Frame(FrameField::SystemName) => f.write_str("sn")?,
            Field::Frame(FrameField::File) => f.write_str("file")?,
            Field::Frame(FrameField::Binary) => f.write_str("bin")?,
            Field::Frame(FrameField::Address) => f.write_str("addr")?,
            Field::Frame(FrameField::Line) => f.write_str("line")?,
            Field::Thread => f.write_str("thread")?,
            Field::Label(key) => write!(f, "label.{key}")?,
        }
        f.write_str(self.operator())?;
        f.write_str(&self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_read_and_print_alike() {
        for text in ["fn=main", "frame.fn!~std::", "file^src/", "label.phase=main", "thread!=worker-1", "addr!^0x7f"] {
            assert_eq!(text.parse::<Filter>().unwrap().to_string(), text);
        }
        assert_eq!("fn = main.main".parse::<Filter>().unwrap().to_string(), "fn=main.main");
    }

    #[test]
    fn wrong_filters_are_named() {
        for (text, want) in [
            ("main", "no operator"),
            ("fn!main", "no operator"),
            ("function=x", "no field `function`"),
            ("label.=x", "no field `label.`"),
            ("frame.thread=x", "leave out `frame.`"),
        ] {
            let message = text.parse::<Filter>().unwrap_err().to_string();
            assert!(message.contains(want), "{message}");
        }
    }

    #[test]
    fn comparison_ignores_case() {
        let matches = |filter: &str, text: &str| filter.parse::<Filter>().unwrap().matches(text);
        assert!(matches("fn=MAIN", "main"));
        assert!(matches("fn~ai", "mAIn"));
        assert!(matches("fn^ma", "Main"));
        assert!(!matches("fn=mai", "main"));
        assert!(matches("fn~", "anything"));
        assert!(!matches("fn^main", "ma"));
    }
}
