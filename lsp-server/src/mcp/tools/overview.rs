//! What there is: the profile, its value types, and recordings of the workspace.

use profiler_core::attribute::accounting::Standing;
use profiler_core::measure::Scale;
use profiler_core::view::hotspots::By;
use profiler_core::view::{hot_list, summary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Tool;
use crate::mcp::Refusal;
use crate::mcp::answer::{Cursor, Page, Row};
use crate::mcp::arguments::Question;
use crate::mcp::desk::Desk;
use crate::mcp::turn::Turn;

/// Recordings and hot spots that are told.
const SOME: usize = 5;

/// See [`Tool::DESCRIPTION`].
pub(super) struct Overview;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(super) struct Arguments {
    #[serde(flatten)]
    question: Question,
}

#[derive(Serialize)]
struct ValueType<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    unit: &'a str,
    total: i64,
    total_text: String,
    is_selected: bool,
}

#[derive(Serialize)]
struct Recording<'a> {
    recording: &'a str,
}

impl Tool for Overview {
    type Arguments = Arguments;
    const NAME: &'static str = "overview";
    const TITLE: &'static str = "What was measured";
    const DESCRIPTION: &'static str = "Start here. Says which profile the user is looking at in their editor, what it \
        measures, its value types with totals, how much of it is in this workspace, the hottest lines, and which \
        recordings there are. Example: {} for the editor's view, {\"profile\": \"recording:latest\"} or \
        {\"profile\": \"cpu.pb.gz\"} for another. Next: `hot_spots`, then `code` for a file or function of it.";

    fn answer(desk: &Desk, arguments: &Arguments, turn: &Turn) -> Result<Page, Refusal> {
        let question = &arguments.question;
        let root = desk.workspace();
        let recordings = desk.recording_names(&root);
        let current = desk.current(&root);
        if question.profile.is_none() && current.is_none() {
            let cursor = Cursor::of(Self::NAME, arguments, &[])?;
            let summary = "No editor has shown a profile of this workspace yet. Name one as `profile`: a file, or one of \
                           these recordings.";
            return Page::new(None, None, summary.to_owned())
                .next("overview {\"profile\": \"recording:latest\"}")
                .rows(&cursor, recordings.len(), |at| Row::new(&Recording { recording: &recordings[at] }, None));
        }
        let seen = desk.open(question, &turn.cancel)?;
        let analysis = seen.analysis();
        let numbers = seen.numbers();
        let mut words = vec![format!(
            "{}: {} {}, {}",
            seen.about().name,
            numbers.value(analysis.costs.total),
            seen.text(&analysis.selected().kind),
            summary::amount(analysis)
        )];
        if let Some(standings) = &analysis.costs.accounting.workspace {
            let shown = standings[Standing::Shown as usize].value;
            words.push(format!("{} of it is in this workspace or called from there", numbers.whole_percent(shown)));
        }
        let hottest = hot_list::hot_spots(analysis, By::Line, SOME);
        if !hottest.is_empty() {
            let rows = hottest.iter().map(|spot| {
                let place = spot.place.as_ref().map(|place| seen.text(&place.to_string())).unwrap_or_default();
                format!("{} {place} ({})", spot.share, seen.text(&spot.name))
            });
            words.push(format!("hottest lines: {}", rows.collect::<Vec<_>>().join(", ")));
        }
        if let Some(base) = current.filter(|_| question.profile.is_none()).and_then(|current| current.base) {
            words.push(format!("the editor compares it with {}: `compare` {{}}", seen.text(&base.name())));
        }
        let types = analysis.profile.value_types();
        let cursor = seen.cursor(Self::NAME, arguments)?;
        Page::new(Some(seen.about()), None, words.join("; ") + ".")
            .notes(seen.notes())
            .next("hot_spots {} lists what costs most; a `recording` is a value of `profile` or `base`")
            .rows(&cursor, types.len() + recordings.len(), |at| match types.get(at) {
                Some(value_type) => {
                    let total = analysis.profile.sum(at).total;
                    let scale = Scale::for_people(types, analysis.profile.meta(), at);
                    let row = ValueType {
                        kind: &seen.text(&value_type.kind),
                        unit: &seen.text(&value_type.unit),
                        total,
                        total_text: scale.quantity(total).to_string(),
                        is_selected: at == analysis.value_type,
                    };
                    Row::new(&row, None)
                }
                None => Row::new(&Recording { recording: &recordings[at - types.len()] }, None),
            })
    }
}
