//! What is asked of a profiling server: a profile type, matchers of labels, a time.
//!
//! The text form is the servers' own, so that a query can be copied from and to their pages:
//! `process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{job="api",pod=~"web-.*"}`. Regular
//! expressions are the server's matter; here they are texts.

use std::fmt;
use std::iter::Peekable;
use std::str::{Chars, FromStr};
use std::time::Duration;

use profiler_core::attribute::{Field, Filter};

use super::time::{self, Instant};

/// What to fetch from a server. Equality is of the whole query.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProfileQuery {
    /// Which samples.
    pub selector: Selector,
    /// Of which time.
    pub range: TimeRange,
}

impl ProfileQuery {
    /// `no samples of process_cpu:…{} in the last 15m`.
    pub(super) fn no_samples(&self) -> String {
        let range = match self.range {
            TimeRange::Last(length) => format!("in the last {}", time::length(length)),
            other => format!("in {other}"),
        };
        format!("no samples of {} {range}", self.selector)
    }
}

/// A profile type and matchers; all must hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selector {
    /// The profile type.
    pub profile_type: ProfileType,
    /// The matchers.
    pub matchers: Vec<Matcher>,
}

/// What a server stores under one name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProfileType {
    /// Who measured: `process_cpu`, `parca_agent`.
    pub name: String,
    /// What: `cpu`.
    pub sample_type: String,
    /// In which unit.
    pub sample_unit: String,
    /// What a sample stands for.
    pub period_type: String,
    /// In which unit.
    pub period_unit: String,
    /// Whether the server says that each profile covers a time of its own, so that they add up.
    pub is_delta: bool,
}

impl ProfileType {
    /// Whether each profile is the state of a moment, so that adding up those of a range counts
    /// everything many times. `deltas_are_marked` is whether the server marks what adds up.
    pub fn is_snapshot(&self, deltas_are_marked: bool) -> bool {
        if deltas_are_marked {
            return !self.is_delta;
        }
        let of_a_moment = ["inuse_space", "inuse_objects", "goroutine", "goroutines", "threadcreate"];
        of_a_moment.contains(&self.sample_type.as_str())
    }
}

/// A condition on a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Matcher {
    /// The label.
    pub label: String,
    /// How it is compared.
    pub operator: MatchOperator,
    /// With what. An empty value is what absent labels have.
    pub value: String,
}

impl Matcher {
    /// The label has this value.
    pub fn equal(label: impl Into<String>, value: impl Into<String>) -> Self {
        Self { label: label.into(), operator: MatchOperator::Equal, value: value.into() }
    }

    /// What a filter of labels asks of a server; `None` for other filters.
    pub fn of_filter(filter: &Filter) -> Option<Self> {
        let Field::Label(label) = filter.field() else { return None };
        let text = filter.to_string();
        let rest = text.strip_prefix("label.")?.strip_prefix(label.as_str())?;
        let written = ["!=", "!~", "!^", "=", "~", "^"].into_iter().find(|written| rest.starts_with(written))?;
        let value = &rest[written.len()..];
        let (operator, value) = match written {
            "=" => (MatchOperator::Equal, value.to_owned()),
            "!=" => (MatchOperator::NotEqual, value.to_owned()),
            "~" => (MatchOperator::Matches, format!(".*{}.*", literal(value))),
            "!~" => (MatchOperator::MatchesNot, format!(".*{}.*", literal(value))),
            "^" => (MatchOperator::Matches, format!("^{}.*", literal(value))),
            _ => (MatchOperator::MatchesNot, format!("^{}.*", literal(value))),
        };
        Some(Self { label: label.clone(), operator, value })
    }
}

/// A text as a regular expression that matches it.
fn literal(text: &str) -> String {
    let escaped = |character: char| {
        if r"\.+*?()|[]{}^$".contains(character) { format!("\\{character}") } else { character.into() }
    };
    text.chars().map(escaped).collect()
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatchOperator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`, a regular expression.
    Matches,
    /// `!~`, a regular expression.
    MatchesNot,
}

impl MatchOperator {
    const ALL: [(Self, &'static str); 4] =
        [(Self::Matches, "=~"), (Self::MatchesNot, "!~"), (Self::NotEqual, "!="), (Self::Equal, "=")];

    /// As it is written.
    pub fn text(self) -> &'static str {
        Self::ALL.iter().find(|(operator, _)| *operator == self).map_or("=", |(_, text)| text)
    }
}

/// When.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeRange {
    /// As long as this, until now.
    Last(Duration),
    /// As long as this, until so long ago.
    Ago {
        /// How long.
        length: Duration,
        /// Since when.
        ago: Duration,
    },
    /// From one point to another, both included.
    Between(Instant, Instant),
}

impl TimeRange {
    /// What queries use that name no time.
    pub const DEFAULT: Self = Self::Last(Duration::from_mins(15));

    /// Begin and end, when it is `now`.
    pub fn at(self, now: Instant) -> (Instant, Instant) {
        match self {
            Self::Last(length) => (now.before(length), now),
            Self::Ago { length, ago } => (now.before(ago).before(length), now.before(ago)),
            Self::Between(start, end) => (start, end),
        }
    }

    /// As long a time, earlier.
    #[must_use]
    pub fn earlier(self, by: Duration) -> Self {
        match self {
            Self::Last(length) => Self::Ago { length, ago: by },
            Self::Ago { length, ago } => Self::Ago { length, ago: ago.saturating_add(by) },
            Self::Between(start, end) => Self::Between(start.before(by), end.before(by)),
        }
    }
}

/// A text that is no query; displays as one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// Not five words, or a sixth that is not `delta`.
    #[error(
        "`{0}` is no profile type; one is name:sample_type:sample_unit:period_type:period_unit, with :delta behind it \
         where a server shows that"
    )]
    ProfileType(String),
    /// The part in braces.
    #[error("the labels of the query can't be read at `{at}`: {problem}")]
    Labels {
        /// Where it goes wrong.
        at: String,
        /// What is expected there.
        problem: &'static str,
    },
    /// Neither `15m` nor two times.
    #[error(
        "`{0}` is no time range; write one like 15m, 24h, 7d, 1h@24h for an hour that ended a day ago, or \
         2026-01-31T12:00:00Z/2026-01-31T13:00:00Z"
    )]
    Range(String),
}

impl fmt::Display for ProfileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, sample_type, sample_unit, period_type, period_unit, is_delta } = self;
        write!(f, "{name}:{sample_type}:{sample_unit}:{period_type}:{period_unit}")?;
        if *is_delta { f.write_str(":delta") } else { Ok(()) }
    }
}

impl FromStr for ProfileType {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, QueryError> {
        let parts: Vec<&str> = text.split(':').collect();
        let is_word = |part: &&str| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
        };
        let (words, is_delta) = match parts[..] {
            [ref words @ .., "delta"] if words.len() == 5 => (words, true),
            ref words => (words, false),
        };
        match *words {
            [name, sample_type, sample_unit, period_type, period_unit] if words.iter().all(is_word) => Ok(Self {
                name: name.to_owned(),
                sample_type: sample_type.to_owned(),
                sample_unit: sample_unit.to_owned(),
                period_type: period_type.to_owned(),
                period_unit: period_unit.to_owned(),
                is_delta,
            }),
            _ => Err(QueryError::ProfileType(text.to_owned())),
        }
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}\"", self.label, self.operator.text())?;
        for character in self.value.chars() {
            match character {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                other => write!(f, "{other}")?,
            }
        }
        f.write_str("\"")
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.profile_type, braces(&self.matchers))
    }
}

/// Matchers as servers read them: `{a="b",c!="d"}`.
pub fn braces(matchers: &[Matcher]) -> String {
    let texts: Vec<String> = matchers.iter().map(ToString::to_string).collect();
    format!("{{{}}}", texts.join(","))
}

impl FromStr for Selector {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, QueryError> {
        let text = text.trim();
        let (name, labels) = text.split_at(text.find('{').unwrap_or(text.len()));
        let mut matchers = if labels.is_empty() { Vec::new() } else { parse_matchers(labels)? };
        // `{__name__="…"}` names the type as well.
        let named = matchers.iter().position(|it| it.label == "__name__" && it.operator == MatchOperator::Equal);
        let profile_type = match (name.trim(), named) {
            ("", Some(at)) => matchers.remove(at).value.parse()?,
            (name, _) => name.parse()?,
        };
        Ok(Self { profile_type, matchers })
    }
}

/// Reads matchers in braces, with nothing behind them.
pub fn parse_matchers(text: &str) -> Result<Vec<Matcher>, QueryError> {
    let mut rest = text.chars().peekable();
    let fail = |rest: &Peekable<Chars<'_>>, problem| QueryError::Labels {
        at: rest.clone().take(20).collect::<String>(),
        problem,
    };
    let mut matchers = Vec::new();
    if rest.next() != Some('{') {
        return Err(fail(&rest, "they are in braces"));
    }
    loop {
        skip_space(&mut rest);
        if rest.next_if_eq(&'}').is_some() {
            break;
        }
        let mut label = String::new();
        while let Some(character) =
            rest.next_if(|it| it.is_ascii_alphanumeric() || *it == '_' || (*it == '.' && !label.is_empty()))
        {
            label.push(character);
        }
        if label.is_empty() || label.starts_with(|first: char| first.is_ascii_digit()) {
            return Err(fail(&rest, "a label begins with a letter"));
        }
        skip_space(&mut rest);
        let ahead: String = rest.clone().take(2).collect();
        let Some((operator, written)) = MatchOperator::ALL.into_iter().find(|(_, text)| ahead.starts_with(text)) else {
            return Err(fail(&rest, "one of = != =~ !~ comes after a label"));
        };
        for _ in 0..written.len() {
            rest.next();
        }
        skip_space(&mut rest);
        let before = rest.clone();
        let value = quoted(&mut rest).ok_or_else(|| fail(&before, "a value is in quotes, which have to be closed"))?;
        matchers.push(Matcher { label, operator, value });
        skip_space(&mut rest);
        if rest.next_if_eq(&',').is_none() && rest.peek() != Some(&'}') {
            return Err(fail(&rest, "a comma or a brace comes after a value"));
        }
    }
    skip_space(&mut rest);
    if rest.peek().is_some() { Err(fail(&rest, "nothing comes after the braces")) } else { Ok(matchers) }
}

fn skip_space(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(|it| it.is_whitespace()).is_some() {}
}

/// A text in double quotes, single quotes or backquotes; the last have no escapes.
fn quoted(rest: &mut Peekable<Chars<'_>>) -> Option<String> {
    let quote = rest.next().filter(|quote| matches!(quote, '"' | '\'' | '`'))?;
    let mut value = String::new();
    loop {
        match rest.next()? {
            character if character == quote => return Some(value),
            '\\' if quote != '`' => value.push(match rest.next()? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                same @ ('\\' | '"' | '\'') => same,
                _ => return None,
            }),
            '\n' if quote != '`' => return None,
            character => value.push(character),
        }
    }
}

impl fmt::Display for TimeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Last(length) => f.write_str(&time::length(*length)),
            Self::Ago { length, ago } => write!(f, "{}@{}", time::length(*length), time::length(*ago)),
            Self::Between(start, end) => write!(f, "{start}/{end}"),
        }
    }
}

impl FromStr for TimeRange {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, QueryError> {
        let wrong = || QueryError::Range(text.to_owned());
        match text.split_once('/') {
            None => match text.split_once('@') {
                None => time::parse_length(text.trim()).map(Self::Last),
                Some((length, ago)) => time::parse_length(length.trim())
                    .zip(time::parse_length(ago.trim()))
                    .map(|(length, ago)| Self::Ago { length, ago }),
            }
            .ok_or_else(wrong),
            Some((start, end)) => {
                let point = |text: &str| text.trim().parse::<Instant>().map_err(|_| wrong());
                let (start, end) = (point(start)?, point(end)?);
                if end < start { Err(wrong()) } else { Ok(Self::Between(start, end)) }
            }
        }
    }
}

/// For people, short: `process_cpu{job="api"} 15m`.
impl fmt::Display for ProfileQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Selector { profile_type, matchers } = &self.selector;
        write!(f, "{} {}", profile_type.name, profile_type.sample_type)?;
        if !matchers.is_empty() {
            f.write_str(&braces(matchers))?;
        }
        write!(f, " {}", self.range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta";

    #[test]
    fn queries_survive_being_written_and_read() {
        for text in [
            CPU.to_owned() + "{}",
            "memory:inuse_space:bytes:space:bytes{}".to_owned(),
            CPU.to_owned() + r#"{job="api",pod!="",path=~"/a|/b.*",user!~"\\d+"}"#,
            CPU.to_owned() + r#"{quote="say \"hi\"\n\\"}"#,
        ] {
            assert_eq!(text.parse::<Selector>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn other_ways_to_write_the_same() {
        let same = CPU.to_owned() + r#"{a="b",c="d\\e"}"#;
        for text in [format!("{CPU}{{ a = 'b' , c = `d\\e`, }}"), format!("{{__name__=\"{CPU}\", a=\"b\",c='d\\\\e'}}")]
        {
            assert_eq!(text.parse::<Selector>().unwrap().to_string(), same, "{text}");
        }
    }

    #[test]
    fn what_is_no_query_is_refused_with_the_place() {
        let error = |text: &str| text.parse::<Selector>().unwrap_err().to_string();
        assert!(error("cpu").contains("`cpu` is no profile type"));
        assert!(error("a:b:c:d:e:f").contains("is no profile type"));
        assert!(error("a:b:c:d:e{").contains("a label begins with a letter"));
        assert!(error("a:b:c:d:e{x=y}").contains("at `y}`: a value is in quotes"));
        assert!(error("a:b:c:d:e{x=\"y}").contains("at `\"y}`: a value is in quotes"));
        assert!(error("a:b:c:d:e{x\"y\"}").contains("one of = != =~ !~"));
        assert!(error("a:b:c:d:e{x=\"y\"} z").contains("nothing comes after the braces"));
    }

    #[test]
    fn ranges_survive_being_written_and_read() {
        for text in ["15m", "1h", "1h@1d", "2026-01-31T12:00:00Z/2026-01-31T13:00:00Z"] {
            assert_eq!(text.parse::<TimeRange>().unwrap().to_string(), text);
        }
        for text in ["", "now", "15", "2026-01-31T13:00:00Z/2026-01-31T12:00:00Z"] {
            assert!(text.parse::<TimeRange>().is_err(), "{text}");
        }
    }

    #[test]
    fn filters_of_labels_are_asked_of_the_server() {
        for (filter, matcher) in [
            ("label.job=a", Some(r#"job="a""#)),
            ("label.job!=a", Some(r#"job!="a""#)),
            ("label.job~a.b", Some(r#"job=~".*a\\.b.*""#)),
            ("label.job!~a", Some(r#"job!~".*a.*""#)),
            ("label.job^a", Some(r#"job=~"^a.*""#)),
            ("label.job!^a", Some(r#"job!~"^a.*""#)),
            ("fn=a", None),
            ("thread=a", None),
        ] {
            let found = Matcher::of_filter(&filter.parse().unwrap());
            assert_eq!(found.map(|it| it.to_string()).as_deref(), matcher, "{filter}");
        }
    }

    #[test]
    fn snapshots_are_told_from_what_adds_up() {
        let is_snapshot = |text: &str, marked| text.parse::<ProfileType>().unwrap().is_snapshot(marked);
        assert!(!is_snapshot(CPU, true));
        assert!(is_snapshot("memory:alloc_space:bytes:space:bytes", true));
        assert!(!is_snapshot("memory:alloc_space:bytes:space:bytes", false));
        assert!(is_snapshot("memory:inuse_space:bytes:space:bytes", false));
        assert!(is_snapshot("goroutines:goroutine:count:goroutine:count", false));
    }
}
