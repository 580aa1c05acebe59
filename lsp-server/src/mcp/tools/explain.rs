//! Where everything went, and why there is little on the lines of the workspace.

use profiler_core::view::data::shown_within;
use profiler_core::view::{explain, text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Tool;
use crate::mcp::Refusal;
use crate::mcp::answer::{Page, Row};
use crate::mcp::arguments::Question;
use crate::mcp::desk::Desk;
use crate::mcp::turn::Turn;

/// Most characters of a line.
const MAX_LINE: usize = 600;

/// See [`Tool::DESCRIPTION`].
pub(super) struct Explain;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(super) struct Arguments {
    #[serde(flatten)]
    question: Question,
}

impl Tool for Explain {
    type Arguments = Arguments;
    const NAME: &'static str = "explain";
    const TITLE: &'static str = "Where everything went";
    const DESCRIPTION: &'static str = "Accounts for every sample: how much is on lines of this workspace, how much is in \
        libraries, without lines or without names, why, and what to do about it. Use it when `hot_spots` lists little or \
        nothing. Example: {}. Next: what its sentences advise, such as measuring with debug information.";

    fn answer(desk: &Desk, arguments: &Arguments, turn: &Turn) -> Result<Page, Refusal> {
        let seen = desk.open(&arguments.question, &turn.cancel)?;
        let cursor = seen.cursor(Self::NAME, arguments)?;
        let name = seen.about().name;
        let document = explain::explain(&name, seen.analysis());
        let lines: Vec<String> = text::lay_out(&document, None)
            .iter()
            .map(|line| line.iter().map(|span| span.text.as_str()).collect::<String>())
            .filter(|line| !line.trim().is_empty())
            .map(|line| shown_within(&seen.private.clean(&line), MAX_LINE).into_owned())
            .collect();
        let summary =
            "Every sample, in counted buckets, with reasons and advice; rows are lines of one text.".to_owned();
        Page::new(Some(seen.about()), None, summary).rows(&cursor, lines.len(), |at| Row::new(&lines[at], None))
    }
}
