//! What is open, how much of it is in this workspace, and which settings are ignored: for
//! `perflens.showStatus`, `perflens/status` and `perflens.explain`.

use std::collections::BTreeMap;
use std::time::Instant;

use profiler_core::view::document::{Document, Sentence};
use profiler_core::view::status::{Status as Words, whose};
use profiler_core::view::{explain, summary, text};
use serde::Serialize;

use super::received;
use crate::state::folder::{Folder, Shown};
use crate::state::view::View;
use crate::state::{Receiving, State};
use crate::when;

/// The status of a folder.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The folder.
    pub folder: String,
    /// The service, where this is the view of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// `none`, `loading`, `loaded`, `comparing` or `error`.
    pub state: &'static str,
    /// For a status bar: two facts at most.
    pub text: String,
    /// Its icon, by its name among the codicons of VS Code.
    pub icon: &'static str,
    /// Sentences with the rest.
    pub details: Vec<String>,
    /// The profile's name.
    pub origin: Option<String>,
    /// Σ|v| of what is counted, in the unit of the value type.
    pub total: Option<i64>,
    /// Of that, what is placed in the workspace.
    pub placed: Option<i64>,
    /// The value type.
    pub value_type: Option<String>,
    /// All value types of the profile.
    pub value_types: Vec<String>,
    /// Settings of an untrusted `perflens.toml` that are ignored.
    pub ignored: Vec<String>,
    /// Open documents that are not what was profiled.
    pub differing: Vec<String>,
    /// What came by OTLP, where it is received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<Received>,
}

/// What came by OTLP since the receiver was started.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Received {
    /// The port for gRPC.
    pub grpc_port: u16,
    /// The port for HTTP.
    pub http_port: u16,
    /// Requests that were taken.
    pub requests: u64,
    /// Samples in them.
    pub samples: u64,
    /// Samples that are kept.
    pub kept: u64,
    /// Bytes of memory that they take.
    pub bytes: usize,
    /// Samples that had to go before their time.
    pub dropped: u64,
    /// Profiles that were left out.
    pub rejected: u64,
    /// Requests that were refused, by reason.
    pub refused: BTreeMap<&'static str, u64>,
}

/// The status of every folder.
pub fn all(state: &State) -> Vec<Status> {
    state.folders.iter().map(|folder| of(state, folder)).collect()
}

/// The status of one folder.
pub fn of(state: &State, folder: &Folder) -> Status {
    let ignored: Vec<String> = folder.resolved.withheld.iter().map(ToString::to_string).collect();
    let mut status = Status {
        folder: folder.scope().display().to_string(),
        service: folder.service.as_ref().map(|service| service.name.clone()),
        state: "none",
        text: Words::NoProfile.text(),
        icon: Words::NoProfile.icon(),
        details: Vec::new(),
        origin: None,
        total: None,
        placed: None,
        value_type: None,
        value_types: Vec::new(),
        differing: Vec::new(),
        ignored,
        received: None,
    };
    match &folder.shown {
        Shown::Nothing => {
            status.details.push(
                "No profile is open. Run perflens.openProfile with a file, or set source.file in perflens.toml."
                    .to_owned(),
            );
        }
        Shown::Loading { origin } => {
            status.state = "loading";
            status.text = format!("opening {origin}");
            status.icon = Words::Loading(origin).icon();
        }
        Shown::Failed { why } => {
            status.state = "error";
            "no profile: see status".clone_into(&mut status.text);
            status.icon = Words::Failed(why).icon();
            status.details.push(why.clone());
        }
        Shown::View(view, _) => {
            let analysis = &view.analysis;
            let name = format!("{} {}", analysis.selected().kind, subject(&view.origin));
            let words = match view.base_title.as_ref().or(view.base_origin.as_ref()) {
                Some(base) => Words::Comparing(&name, base),
                None => Words::Loaded(&analysis.selected().kind, analysis),
            };
            status.state = if view.comparison.is_some() { "comparing" } else { "loaded" };
            status.text = words.text();
            status.icon = words.icon();
            status.details.push(plain(&whose(analysis, view.narrowing.as_ref())));
            status.details.extend(summary::filters(analysis).map(|filters| format!("{}.", plain(&filters))));
            status.details.push(format!("{}: {}", view.origin, summary::amount(analysis)));
            status.details.extend(age(view));
            status.details.extend(
                folder
                    .following
                    .problem
                    .as_ref()
                    .map(|why| format!("It could not be fetched again, so this is what there was before: {why}.")),
            );
            status.details.extend(compared(view));
            status.details.extend(view.notes.iter().cloned());
            status.origin = Some(view.origin.clone());
            status.total = Some(analysis.costs.total);
            status.placed = analysis.costs.accounting.shown();
            status.value_type = Some(analysis.selected().to_string());
            status.value_types = analysis.profile.value_types().iter().map(ToString::to_string).collect();
            status.differing = state
                .documents
                .iter()
                .filter(|document| document.map.differs() && view.file(&document.file).is_some())
                .map(|document| document.path.display().to_string())
                .collect();
            for path in &status.differing {
                status.details.push(format!(
                    "{path} differs from the text that was profiled; lines that were edited show nothing"
                ));
            }
        }
    }
    if let Some(words) = state.recording.as_ref().and_then(|recording| recording.in_words(&folder.root)) {
        let words = Words::Recording(&words);
        status.text = words.text();
        status.icon = words.icon();
        status.details.push("A recording is under way; perflens.stopRecording ends it.".to_owned());
    }
    if folder.service.is_none() && folder.config().otlp.enabled {
        receiving(&state.receiving, &mut status);
    }
    // Where nobody can be trusted, that is why settings are ignored.
    if folder.service.is_none()
        && folder.layers.workspace_file.is_some()
        && let Some(problem) = state.trust.problem()
    {
        status.details.push(problem);
    }
    for setting in &status.ignored {
        status.details.push(format!("ignored until this workspace is trusted: {setting}"));
    }
    status
}

/// What is received, where from, and what is not.
fn receiving(receiving: &Receiving, status: &mut Status) {
    let (grpc_port, http_port, window) = match receiving {
        Receiving::Off => return,
        Receiving::Failed(why) => return status.details.push(why.clone()),
        Receiving::On { grpc_port, http_port, window } => (*grpc_port, *http_port, window),
    };
    let (counts, extent) = (window.counts(), window.extent(Instant::now()));
    status.details.extend(received::words(grpc_port, http_port, window.length(), &counts, extent));
    status.received = Some(Received {
        grpc_port,
        http_port,
        requests: counts.requests,
        samples: counts.samples,
        kept: extent.samples,
        bytes: extent.bytes,
        dropped: counts.dropped,
        rejected: counts.rejected,
        refused: counts.refused,
    });
}

/// What a recording of ours is of, by the name of its file, `20261130-011034-test_sums.pb.gz`; others by theirs. There
/// is little room where it stands.
fn subject(origin: &str) -> &str {
    let is_number = |text: &str, digits: usize| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = origin.splitn(3, '-');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(date), Some(time), Some(rest)) if is_number(date, 8) && is_number(time, 6) => {
            rest.strip_suffix(".pb.gz").unwrap_or(rest)
        }
        _ => origin,
    }
}

/// What it is compared with.
fn compared(view: &View) -> Option<String> {
    let (base, comparison) = view.base_origin.as_ref().zip(view.comparison.as_ref())?;
    let title = view.base_title.as_ref().map_or_else(String::new, |title| format!("{title}: "));
    let amount = summary::amount(&comparison.compared.base);
    Some(format!("Compared with {title}{base}: {amount}."))
}

/// How old the data is.
fn age(view: &View) -> Option<String> {
    let now = when::now();
    if let Some(measured) = when::measured(view.analysis.profile.meta(), &now) {
        return Some(format!("Measured {measured}."));
    }
    let written = when::written(view.written?, &now)?;
    Some(format!("The profile does not say when it was measured; its file was written {written}."))
}

/// Where the value of a folder's profile went, in words.
pub fn explanation(folder: &Folder) -> String {
    match &folder.shown {
        Shown::View(view, _) => text::plain(&explain::explain(&view.origin, &view.analysis), Some(100)),
        Shown::Failed { why } => why.clone(),
        Shown::Loading { origin } => format!("{origin} is being opened."),
        Shown::Nothing => "No profile is open. Run perflens.openProfile with a file.".to_owned(),
    }
}

fn plain(sentence: &Sentence) -> String {
    let mut document = Document::default();
    document.paragraph([sentence.clone()]);
    text::plain(&document, None).trim_end().to_owned()
}
