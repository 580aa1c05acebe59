//! What changed against a base, and whether that is more than chance.

use profiler_core::view::compare::{self, ChangedRow};
use profiler_core::view::hotspots;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Tool;
use crate::mcp::Refusal;
use crate::mcp::answer::{Page, Row};
use crate::mcp::arguments::Question;
use crate::mcp::desk::Desk;
use crate::mcp::seen::Seen;
use crate::mcp::turn::Turn;

/// See [`Tool::DESCRIPTION`].
pub(super) struct Compare;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(super) struct Arguments {
    /// What to compare with: a profile file, `recording:NAME` or a `profile_id`. Leave it out where the user's
    /// editor compares already.
    base: Option<String>,
    /// What a row is. Usually `function`.
    #[serde(default)]
    by: By,
    /// Bring the new values to the base's sum first, for profiles of different length.
    normalize: Option<bool>,
    #[serde(flatten)]
    question: Question,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum By {
    Line,
    #[default]
    Function,
    File,
}

impl From<By> for hotspots::By {
    fn from(by: By) -> Self {
        match by {
            By::Line => Self::Line,
            By::Function => Self::Function,
            By::File => Self::File,
        }
    }
}

#[derive(Serialize)]
struct Change {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<String>,
    /// In a word.
    verdict: &'static str,
    cumulative: i64,
    base_cumulative: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    direct: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_direct: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_samples: Option<i64>,
    text: String,
}

impl Tool for Compare {
    type Arguments = Arguments;
    const NAME: &'static str = "compare";
    const TITLE: &'static str = "What changed";
    const DESCRIPTION: &'static str = "Compares a profile with a base, the largest change first, and says of each row \
        whether it is more than chance: `improved`, `regressed`, `unchanged`, `inconclusive` where more samples or runs \
        would tell, or `unknown` where samples are not counted. \
        Example: {\"base\": \"recording:20261129-175100-app.pb.gz\"} compares what the editor shows with that recording, \
        {\"profile\": \"new.pb.gz\", \"base\": \"old.pb.gz\", \"by\": \"line\"} two files. Next: `code` of a row.";

    fn answer(desk: &Desk, arguments: &Arguments, turn: &Turn) -> Result<Page, Refusal> {
        let seen =
            desk.open_compared(&arguments.question, arguments.base.as_deref(), arguments.normalize, &turn.cancel)?;
        let cursor = seen.cursor(Self::NAME, arguments)?;
        let analysis = seen.analysis();
        let Some(comparison) = &seen.view.comparison else {
            return Err(Refusal::Failed("there is nothing to compare".to_owned()));
        };
        let changes = compare::changes(analysis, &comparison.compared, arguments.by.into());
        let rows = &changes.rows;
        let small = match changes.small {
            0 => String::new(),
            small => format!(" {small} more changed by less than 0.1pp."),
        };
        let summary =
            format!("{} {} {} changed.{small}", seen.private.clean(&changes.how), rows.len(), arguments.by.noun());
        Page::new(Some(seen.about()), seen.about_base(), summary)
            .notes(seen.notes())
            .next("code {\"function\": …} shows the source of a row")
            .rows(&cursor, rows.len(), |at| row(&seen, &rows[at]))
    }
}

/// A row as it is answered.
pub(super) fn row<'a>(seen: &'a Seen, changed: &ChangedRow<'a>) -> Result<Row<'a>, Refusal> {
    let ChangedRow { words, file, line, function, pair, judged, text } = changed;
    let has_direct = seen.analysis().groups.has_workspace();
    let change = Change {
        file: seen.file(words, *file),
        line: line.is_known().then_some(line.0),
        function: function.map(|function| seen.text(function)),
        verdict: judged.map_or("unknown", |judged| judged.verdict.word()),
        cumulative: pair.new.cost.cumulative,
        base_cumulative: pair.base.cost.cumulative,
        direct: has_direct.then_some(pair.new.cost.direct),
        base_direct: has_direct.then_some(pair.base.cost.direct),
        samples: pair.new.samples,
        base_samples: pair.base.samples,
        text: text.clone(),
    };
    Row::new(&change, Some(seen.named(words, *file)))
}

impl By {
    fn noun(self) -> &'static str {
        match self {
            Self::Line => "lines",
            Self::Function => "functions",
            Self::File => "files",
        }
    }
}
