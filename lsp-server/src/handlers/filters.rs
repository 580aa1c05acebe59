//! Which samples count: filters that are named, or those that can be chosen from, each with what it leaves out.

use std::sync::Arc;

use lsp_types::Command;
use profiler_core::attribute::choices::ChoiceKind;
use profiler_core::attribute::{Filter, MAX_FILTERS, Stacks};
use profiler_core::cancel::{CancelFlag, Cancelled};
use profiler_core::view::data::shown_within;
use profiler_core::view::filters::{self as words, Offer};
use serde_json::{Value, json};
use tower_lsp::jsonrpc::Error;

use super::commands::set;
use super::{invalid, on_pool};
use crate::lsp::client::CannotAsk;
use crate::session::Session;
use crate::state::view::View;

/// As many choices as a dialog can hold.
const CHOICES: usize = 8;
/// Most services whose share is counted, each by a pass over the samples.
const MAX_SERVICES: usize = 8;
/// Most characters of a filter in a title.
const MAX_FILTER: usize = 60;

/// Counts only what matches all filters, instead of the present ones; without any, offers some.
pub(super) async fn set_filter(session: &Arc<Session>, filters: Option<Vec<Filter>>) -> Result<Value, Error> {
    let Some(filters) = filters else { return offer(session).await };
    if filters.len() > MAX_FILTERS {
        return Err(invalid(format!("there may be no more than {MAX_FILTERS} filters")));
    }
    take(session, &filters)?;
    Ok(Value::Null)
}

fn take(session: &Arc<Session>, filters: &[Filter]) -> Result<(), Error> {
    let texts: Vec<String> = filters.iter().map(ToString::to_string).collect();
    set(session, "query.filters", json!(texts))
}

/// A choice: its title, and all filters that then apply.
struct Choice {
    kind: &'static str,
    title: String,
    adds: Vec<Filter>,
    filters: Vec<Filter>,
}

async fn offer(session: &Arc<Session>) -> Result<Value, Error> {
    let (view, applied) = {
        let state = session.state();
        let folder = state.latest_folder();
        let view = folder.and_then(|folder| folder.view()).cloned();
        let view = view.ok_or_else(|| invalid("no profile is open; run perflens.openProfile first"))?;
        let applied = folder.map(|folder| folder.config().query.filters.clone()).unwrap_or_default();
        (view, applied)
    };
    let all = {
        let (view, applied) = (Arc::clone(&view), applied.clone());
        on_pool(move |cancel| choices(&view, &applied, cancel)).await?
    };
    let mut all = all.map_err(|_| Error::request_cancelled())?;
    let result = json!({
        "choices": all.iter().map(|choice| json!({
            "kind": choice.kind, "title": choice.title, "adds": texts(&choice.adds), "filters": texts(&choice.filters),
        })).collect::<Vec<_>>(),
        "applied": texts(&applied),
        "example": "perflens.setFilter fn~parse",
    });
    if session.state().capabilities.shows_answers {
        return Ok(result);
    }
    // What is taken back must be among what fits.
    all.sort_by_key(|choice| choice.kind != "less");
    all.truncate(CHOICES);
    if all.is_empty() {
        return Err(invalid(
            "the samples have no labels to choose from; name a filter, as in perflens.setFilter fn~parse",
        ));
    }
    let titles: Vec<String> = all.iter().map(|choice| choice.title.clone()).collect();
    let session = Arc::clone(session);
    tokio::spawn(async move {
        match session.editor.choose("perflens: count only what?".to_owned(), titles.clone()).await {
            Ok(Some(title)) => {
                if let Some(row) = titles.iter().position(|other| *other == title) {
                    drop(take(&session, &all[row].filters));
                }
            }
            Ok(None) => {}
            Err(CannotAsk) => {
                let commands = all.iter().map(|choice| command(&choice.title, &choice.filters));
                session.state().offers = commands.collect();
            }
        }
    });
    Ok(result)
}

fn texts(filters: &[Filter]) -> Vec<String> {
    filters.iter().map(ToString::to_string).collect()
}

/// The command that counts only what matches all of these.
fn command(title: &str, filters: &[Filter]) -> Command {
    Command {
        title: format!("perflens: {title}"),
        command: "perflens.setFilter".to_owned(),
        arguments: Some(vec![json!({ "filters": texts(filters) })]),
    }
}

fn choices(view: &View, applied: &[Filter], cancel: &CancelFlag) -> Result<Vec<Choice>, Cancelled> {
    let mut offers = services(view, cancel)?;
    for offer in words::offers(&view.analysis, cancel)? {
        if !offers.iter().any(|(_, other)| other.filters == offer.filters) {
            let kind = match offer.kind {
                ChoiceKind::Service => "service",
                ChoiceKind::Thread => "thread",
                ChoiceKind::Label => "label",
                ChoiceKind::Executors => "executors",
            };
            offers.push((kind, offer));
        }
    }
    let more = offers.into_iter().filter(|(_, offer)| applied.len() + offer.filters.len() <= MAX_FILTERS);
    let more = more.map(|(kind, offer)| Choice {
        kind,
        title: offer.title,
        filters: applied.iter().chain(&offer.filters).cloned().collect(),
        adds: offer.filters,
    });
    Ok(more.chain(less(applied)).collect())
}

/// The services of the settings.
fn services(view: &View, cancel: &CancelFlag) -> Result<Vec<(&'static str, Offer)>, Cancelled> {
    let analysis = &view.analysis;
    let mut offers = Vec::new();
    for owner in view.services.iter().take(MAX_SERVICES) {
        let filters: Vec<Filter> = analysis.filters.iter().chain(&owner.matchers).cloned().collect();
        if filters.len() > MAX_FILTERS {
            continue;
        }
        let stacks = Stacks::new(&analysis.profile, &analysis.groups, &filters);
        let kept = stacks.costs(&analysis.profile, &analysis.groups, analysis.value_type, None, cancel)?.total;
        let title = words::named(analysis, &format!("service {}", owner.name), kept);
        offers.push(("service", Offer { kind: ChoiceKind::Service, title, filters: owner.matchers.clone() }));
    }
    Ok(offers)
}

/// What takes back filters that apply.
fn less(applied: &[Filter]) -> Vec<Choice> {
    let without = |at: usize| -> Vec<Filter> {
        applied.iter().enumerate().filter(|&(other, _)| other != at).map(|(_, filter)| filter.clone()).collect()
    };
    let taken_back = |title: String, filters: Vec<Filter>| Choice { kind: "less", title, adds: Vec::new(), filters };
    let mut less: Vec<Choice> = Vec::new();
    if applied.len() > 1 {
        less.push(taken_back("count everything".to_owned(), Vec::new()));
    }
    less.extend(applied.iter().enumerate().map(|(at, filter)| {
        let name = shown_within(&filter.to_string(), MAX_FILTER).into_owned();
        taken_back(format!("take back {name}"), without(at))
    }));
    less
}

/// What can be done at a function: count only what is under it; and take back what applies.
pub(super) fn at_function(view: &View, function: Option<usize>) -> Vec<Command> {
    let applied = &view.analysis.filters;
    let under = function.and_then(|function| words::under(&view.analysis, function));
    let under = under.filter(|_| applied.len() < MAX_FILTERS).map(|offer| {
        let filters: Vec<Filter> = applied.iter().chain(&offer.filters).cloned().collect();
        command(&offer.title, &filters)
    });
    let everything = (!applied.is_empty()).then(|| command("count everything again, without filters", &[]));
    under.into_iter().chain(everything).collect()
}
