//! Records a test, a benchmark or a program of the workspace, and tells what costs most in it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Tool;
use super::hot_spots::{By, rows, spot};
use crate::mcp::Refusal;
use crate::mcp::answer::{Cursor, Page, Row};
use crate::mcp::arguments::Question;
use crate::mcp::desk::Desk;
use crate::mcp::laboratory::{self, Outcome};
use crate::mcp::running;
use crate::mcp::turn::Turn;
use crate::runnable::Order;

/// Hot spots of an answer; `hot_spots` has the rest.
const SPOTS: usize = 15;

/// See [`Tool::DESCRIPTION`].
pub(super) struct Record;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(super) struct Arguments {
    /// The test, benchmark, program or task, such as `tests::parses`, or the end of its name. Leave it out
    /// for a list of what there is.
    name: Option<String>,
    /// The source file that it is in, such as `src/lib.rs`, where several have the name.
    file: Option<String>,
    /// `next_cursor` of the list before, with all other arguments unchanged.
    cursor: Option<String>,
}

/// Something that can be recorded.
#[derive(Serialize)]
struct Offered<'a> {
    name: &'a str,
    file: &'a str,
    line: u32,
    is: &'static str,
}

impl Tool for Record {
    type Arguments = Arguments;
    const NAME: &'static str = "record";
    const TITLE: &'static str = "Profile a test";
    const DESCRIPTION: &'static str = "Builds and runs a test, benchmark or program of this workspace, records it for at \
        most 30 s, and lists its hottest lines; set-up is left out. Runs only what was detected there, and only if the \
        user trusts the workspace. Example: {\"name\": \"tests::parses\"}; {} lists what there is. Next: change the code, \
        then `verify` with this profile_id as `base`.";
    const ACTS: bool = true;

    fn answer(desk: &Desk, arguments: &Arguments, turn: &Turn) -> Result<Page, Refusal> {
        let root = desk.workspace();
        let folder = desk.folder(&root);
        let tasks = &folder.config().tasks;
        // First: the tasks of a workspace that is not trusted are not even known.
        if arguments.name.is_some() {
            laboratory::check(desk, &root, &folder)?;
        }
        let all = running::all(&root, arguments.file.as_deref(), tasks, &turn.cancel)?;
        let Some(name) = &arguments.name else {
            let cursor = Cursor::of(Self::NAME, arguments, &[])?;
            let summary = format!("{} tests, benchmarks, programs and tasks can be recorded.", all.len());
            return Page::new(None, None, summary).next("record {\"name\": …, \"file\": …} records one of them").rows(
                &cursor,
                all.len(),
                |at| {
                    let found = &all[at];
                    let is = found.offer.runnable.kind.word();
                    let (name, file) = (found.name(), found.file.as_str());
                    Row::new(&Offered { name, file, line: found.offer.runnable.line + 1, is }, None)
                },
            );
        };
        let found = running::named(&all, name, tasks)?;
        let order = found.order(&root);
        let order = Order { work: desk.newest_work(&root, &order.key()), ..order };
        let outcome = laboratory::record(desk, &found, order, None, turn)?;
        let recording = match outcome {
            Outcome::Failed(page) => return Ok(page),
            Outcome::Recorded(recording) => recording,
        };
        let question = Question { profile: Some(recording.name()), ..Question::default() };
        let seen = desk.open(&question, &turn.cancel)?;
        let spots = rows(&seen, By::Line);
        let summary = format!(
            "{}{}",
            recording.in_words(),
            if spots.is_empty() {
                " No line of this workspace was seen: `explain` says why."
            } else {
                " The hottest lines:"
            }
        );
        Page::new(Some(seen.about()), None, summary)
            .notes(recording.notes().chain(seen.notes()))
            .recording(&recording.content(desk))?
            .next("code {\"file\": …, \"profile\": …} shows the source; after a change, verify {\"base\": profile_id}")
            .some_rows(spots.len(), SPOTS, |at| spot(&seen, at, spots[at]))
    }
}
