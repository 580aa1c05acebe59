//! What is shown compared with something else: a base that is named, or one of those that there are.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lsp_types::{Command, MessageType};
use profiler_core::view::data::{shown, shown_within};
use serde_json::{Value, json};
use tower_lsp::jsonrpc::Error;

use super::commands::folder;
use super::{invalid, on_pool};
use crate::bases::{self, Found, Offer, Which};
use crate::loader::Input;
use crate::lsp::client::CannotAsk;
use crate::session::{Cause, Session};
use crate::source::query::{MatchOperator, Matcher, TimeRange};
use crate::source::{Freshness, ProfileQuery, Progress, Request, Sources};

/// As many choices as a dialog can hold.
const CHOICES: usize = 8;
/// Most characters of what is told of a choice.
const MAX_DETAIL: usize = 60;

const DAY: Duration = Duration::from_hours(24);
/// How far back versions are looked for.
const WEEK: Duration = Duration::from_hours(7 * 24);

/// Labels by which services name their version, as servers store them, the plainest first.
const VERSION_LABELS: &[&str] = &[
    "service_version",
    "service.version",
    "version",
    "app_version",
    "app_kubernetes_io_version",
    "service_git_ref",
    "git_ref",
    "commit",
    "revision",
];

/// What is compared with what.
struct Sides {
    /// Instead of what is shown, where that is too much: of this version only.
    new: Option<Input>,
    base: Input,
    title: Option<String>,
    detail: String,
}

/// Compares what is shown with a base; offers bases when none is named.
pub(super) async fn compare_with(
    session: &Arc<Session>,
    base: Option<PathBuf>,
    normalize: bool,
) -> Result<Value, Error> {
    let (at, scope) = {
        let state = session.state();
        let at = folder(&state, None)?;
        if !state.folders[at].has_profile() {
            return Err(invalid("no profile is open to compare; run perflens.openProfile first"));
        }
        (at, state.folders[at].scope().to_owned())
    };
    let Some(base) = base else { return offer(session, at, scope, normalize).await };
    let sides = if let Some(which) = base.to_str().and_then(Which::read) {
        let found = resolve(session, at, &which).await;
        found.map_err(|why| invalid(format!("{} can't be compared with: {why}", which.title())))?
    } else {
        let state = session.state();
        let own = &state.folders[at];
        let base = Input::of_user(&base, &own.root, own.config()).map_err(|error| invalid(error.to_string()))?;
        Sides { new: None, base, title: None, detail: String::new() }
    };
    Ok(show(session, &scope, sides, normalize))
}

/// Shows the comparison in a folder, known by its scope, as others may have come and gone while somebody chose or a
/// server answered; and says with what.
fn show(session: &Arc<Session>, scope: &Path, sides: Sides, normalize: bool) -> Value {
    let Sides { new, base, title, detail } = sides;
    let name = base.name();
    let at = {
        let mut state = session.state();
        let state = &mut *state;
        let Some(at) = state.folders.iter().position(|own| own.scope() == scope) else { return Value::Null };
        let own = &mut state.folders[at];
        if let Some(new) = new {
            own.chosen.profile = Some(Some(new));
        }
        own.chosen.title = title.clone().map(|title| (base.clone(), title));
        own.chosen.base = Some(Some(base));
        own.layers.set_for_session("query.normalize", json!(normalize));
        own.read_settings(&state.trust);
        at
    };
    session.load(at, Cause::Command);
    let Some(title) = title else { return Value::Null };
    let words = [shown(&name).into_owned(), detail.clone()].into_iter().filter(|words| !words.is_empty());
    let words = words.collect::<Vec<_>>().join(", ");
    session.editor.say(MessageType::INFO, format!("perflens: compared with {title}: {words}"));
    json!({ "base": title, "profile": name, "detail": detail })
}

/// What the shown profile is, as far as a base depends on it.
enum ShownAs {
    Recording { recordings: Option<PathBuf>, root: PathBuf, path: PathBuf },
    Query(Box<Request>, ProfileQuery),
    Other,
}

fn shown_as(session: &Session, at: usize) -> ShownAs {
    let state = session.state();
    let own = &state.folders[at];
    match own.profile() {
        Some(Input::File(path)) => {
            ShownAs::Recording { recordings: state.recordings.clone(), root: own.root.clone(), path }
        }
        Some(Input::Remote(request)) => match request.query.clone() {
            Some(query) => ShownAs::Query(request, query),
            None => ShownAs::Other,
        },
        Some(Input::Received) | None => ShownAs::Other,
    }
}

/// Finds what is meant; else why it can't be had, a clause.
async fn resolve(session: &Arc<Session>, at: usize, which: &Which) -> Result<Sides, String> {
    let shown = shown_as(session, at);
    match (which, shown) {
        (Which::Edit | Which::MergeBase | Which::Branch(_), ShownAs::Recording { recordings, root, path }) => {
            let which = which.clone();
            let found = on_pool(move |_| bases::find(&which, recordings.as_deref(), &root, &path)).await;
            found.map_err(|error| error.message.into_owned())?.map(of_recording)
        }
        (Which::Edit | Which::MergeBase | Which::Branch(_), _) => {
            Err("what is shown is no recording of this machine".to_owned())
        }
        (Which::Yesterday, ShownAs::Query(request, query)) => Ok(yesterday(&request, &query)),
        (Which::Version(named), ShownAs::Query(request, query)) => {
            version(session.sources(), &request, &query, named.as_deref()).await
        }
        (Which::Version(_) | Which::Yesterday, _) => {
            Err("what is shown is not from a server that can be asked".to_owned())
        }
    }
}

fn of_recording(found: Found) -> Sides {
    Sides { new: None, base: Input::File(found.path), title: Some(found.title), detail: found.detail }
}

fn with_query(request: &Request, query: ProfileQuery) -> Input {
    Input::Remote(Box::new(Request { query: Some(query), ..request.clone() }))
}

fn yesterday(request: &Request, query: &ProfileQuery) -> Sides {
    let base = ProfileQuery { range: query.range.earlier(DAY), ..query.clone() };
    Sides { new: None, base: with_query(request, base), title: Some(Which::Yesterday.title()), detail: String::new() }
}

/// This version and the one before it, or one that is named.
async fn version(
    sources: &Sources,
    request: &Request,
    query: &ProfileQuery,
    named: Option<&str>,
) -> Result<Sides, String> {
    let source = sources.source(&request.connection).map_err(|error| error.to_string())?;
    let labels = source.labels(query).await.map_err(|error| error.to_string())?;
    let label = VERSION_LABELS.iter().find(|label| labels.iter().any(|there| there == *label));
    let label = *label.ok_or_else(|| format!("no label names a version, such as {}", VERSION_LABELS[0]))?;
    let of_all = without_label(query, label);
    let asked = query.selector.matchers.iter().find(|matcher| {
        matcher.label == label && matcher.operator == MatchOperator::Equal && !matcher.value.is_empty()
    });
    let now = source.values(label, &of_all).await.map_err(|error| error.to_string())?;
    let before = ProfileQuery { range: TimeRange::Last(WEEK), ..of_all.clone() };
    let all = source.values(label, &before).await.map_err(|error| error.to_string())?;
    let current = asked.map(|matcher| matcher.value.clone());
    let (current, base) = versions(current, &now, &all, named).map_err(|why| format!("{label} {why}"))?;
    let of = |value: &str, range: TimeRange| {
        let mut query = ProfileQuery { range, ..of_all.clone() };
        query.selector.matchers.push(Matcher::equal(label, value));
        with_query(request, query)
    };
    // A version that ran before only is asked for the time in which it did. Servers may name values of any time, so
    // it is asked; what comes is kept for the load.
    let same = of(&base, query.range);
    let has_samples = match same.request() {
        Some(request) => sources
            .fetch(request, Freshness::Kept, &Progress::default())
            .await
            .is_ok_and(|fetched| fetched.parts.iter().any(|part| !part.is_empty())),
        None => false,
    };
    Ok(Sides {
        new: Some(of(&current, query.range)),
        base: if has_samples { same } else { of(&base, TimeRange::Last(WEEK)) },
        title: Some(format!("{label} {}", shown_within(&base, MAX_DETAIL))),
        detail: format!("against {}", shown_within(&current, MAX_DETAIL)),
    })
}

fn without_label(query: &ProfileQuery, label: &str) -> ProfileQuery {
    let mut query = query.clone();
    query.selector.matchers.retain(|matcher| matcher.label != label);
    query
}

/// The version that runs now and its base. `now` are those of the time that is shown, `all` those of long before
/// as well. The error ends a sentence that begins with the label.
fn versions(
    asked: Option<String>,
    now: &[String],
    all: &[String],
    named: Option<&str>,
) -> Result<(String, String), String> {
    let is_ordered = now.iter().chain(all).all(|value| numbers(value).is_some());
    let newest = |values: &[String]| match values {
        [only] => Some(only.clone()),
        values if is_ordered => values.iter().max_by_key(|value| numbers(value)).cloned(),
        _ => None,
    };
    let listed = |values: &[String]| {
        let few: Vec<String> = values.iter().take(CHOICES).map(|value| shown_within(value, 20).into_owned()).collect();
        few.join(", ")
    };
    let without = |values: &[String], value: Option<&str>| -> Vec<String> {
        values.iter().filter(|other| Some(other.as_str()) != value).cloned().collect()
    };
    let current = asked.or_else(|| newest(&without(now, named)));
    let current = current.ok_or_else(|| {
        if now.is_empty() {
            "has no value in the time that is shown".to_owned()
        } else {
            format!("has values without an order ({}); ask for one of them first", listed(now))
        }
    })?;
    if let Some(named) = named {
        let is_there = now.iter().chain(all).any(|value| value == named);
        let none = || format!("is never {} in the last week; there are {}", shown_within(named, 20), listed(all));
        return if is_there { Ok((current, named.to_owned())) } else { Err(none()) };
    }
    let mut others = without(all, Some(&current));
    others.extend(without(now, Some(&current)).into_iter().filter(|value| !all.contains(value)));
    if is_ordered {
        others.retain(|value| numbers(value) < numbers(&current));
    }
    newest(&others).map(|base| (current.clone(), base)).ok_or_else(|| {
        if others.is_empty() {
            format!("was nothing before {} in the last week", shown_within(&current, 20))
        } else {
            format!("has values without an order; name one, as version:{}", shown_within(&others[0], 20))
        }
    })
}

/// A version as numbers that have an order: `v1.12.0` is 1, 12, 0. `None` for a commit and the like.
fn numbers(version: &str) -> Option<Vec<u64>> {
    let version = version.strip_prefix('v').unwrap_or(version);
    let numbers: Option<Vec<u64>> = version.split(['.', '-']).map(|part| part.parse().ok()).collect();
    numbers.filter(|_| version.len() <= 40)
}

/// Offers what there is.
async fn offer(session: &Arc<Session>, at: usize, scope: PathBuf, normalize: bool) -> Result<Value, Error> {
    let mut offers: Vec<(Which, Sides)> = Vec::new();
    let mut missing: Vec<(Which, String)> = Vec::new();
    match shown_as(session, at) {
        ShownAs::Recording { recordings, root, path } => {
            let all = on_pool(move |_| bases::offers(recordings.as_deref(), &root, &path)).await?;
            for Offer { which, found } in all {
                match found {
                    Ok(found) => offers.push((which, of_recording(found))),
                    Err(why) => missing.push((which, why)),
                }
            }
        }
        ShownAs::Query(request, query) => {
            offers.push((Which::Yesterday, yesterday(&request, &query)));
            match resolve(session, at, &Which::Version(None)).await {
                Ok(sides) => offers.push((Which::Version(None), sides)),
                Err(why) => missing.push((Which::Version(None), why)),
            }
        }
        ShownAs::Other => {}
    }
    offers.truncate(CHOICES);
    let titles: Vec<String> = offers.iter().map(|(_, sides)| title(sides)).collect();
    let result = json!({
        "choices": offers.iter().zip(&titles).map(|((which, sides), title)| json!({
            "base": which.word(), "title": sides.title, "label": title, "detail": sides.detail,
            "profile": sides.base.name(),
        })).collect::<Vec<_>>(),
        "notOffered": missing.iter().map(|(which, why)| json!({
            "base": which.word(), "title": which.title(), "why": why,
        })).collect::<Vec<_>>(),
        "example": "perflens.compareWith edit:",
    });
    // A client that shows answers itself has dialogs of its own, with a file among the choices.
    if session.state().capabilities.shows_answers {
        return Ok(result);
    }
    if offers.is_empty() {
        let why: Vec<String> = missing.iter().map(|(which, why)| format!("{}: {why}", which.title())).collect();
        let why = if why.is_empty() { String::new() } else { format!(" ({})", why.join("; ")) };
        return Err(invalid(format!("name a base, as in perflens.compareWith old.pb.gz{why}")));
    }
    let session = Arc::clone(session);
    tokio::spawn(async move {
        match session.editor.choose("perflens: compare with what?".to_owned(), titles.clone()).await {
            Ok(Some(choice)) => {
                let Some(row) = titles.iter().position(|title| *title == choice) else { return };
                show(&session, &scope, offers.swap_remove(row).1, normalize);
            }
            Ok(None) => {}
            Err(CannotAsk) => {
                let commands = titles.iter().zip(&offers).map(|(title, (which, _))| Command {
                    title: format!("perflens: compare with {title}"),
                    command: "perflens.compareWith".to_owned(),
                    arguments: Some(vec![json!(which.word()), json!(normalize)]),
                });
                session.state().offers = commands.collect();
            }
        }
    });
    Ok(result)
}

/// `before my edit (12min ago, at 1a2b3c4d5e)`.
fn title(sides: &Sides) -> String {
    let title = sides.title.as_deref().unwrap_or_default();
    match sides.detail.as_str() {
        "" => title.to_owned(),
        detail => format!("{title} ({})", shown_within(detail, MAX_DETAIL)),
    }
}

/// The base's title where a recording of a test is compared with the one before it.
pub(crate) fn title_of_before(base: &Path) -> (Input, String) {
    (Input::File(base.to_owned()), "the recording before".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_version_before_is_by_number_or_the_only_other_one() {
        let check = |asked: Option<&str>, now: &str, all: &str, named: Option<&str>| {
            versions(asked.map(str::to_owned), &words(now), &words(all), named)
        };
        let is = |current: &str, base: &str| Ok((current.to_owned(), base.to_owned()));
        assert_eq!(check(None, "1.10.0", "1.10.0 1.9.0 1.2.0", None), is("1.10.0", "1.9.0"));
        assert_eq!(check(None, "v2 v1", "v1 v2", None), is("v2", "v1"));
        // Whoever looks at an old one means what was before that.
        assert_eq!(check(Some("1.9.0"), "1.10.0 1.9.0", "1.10.0 1.9.0 1.2.0", None), is("1.9.0", "1.2.0"));
        assert_eq!(check(None, "fe12", "fe12 ab34", None), is("fe12", "ab34"));
        assert_eq!(check(None, "fe12", "fe12 ab34 cd56", Some("cd56")), is("fe12", "cd56"));
        for (now, all, named, why) in [
            ("", "1.0", None, "has no value"),
            ("fe12 ab34", "fe12 ab34", None, "ask for one of them first"),
            ("fe12", "fe12 ab34 cd56", None, "name one, as version:ab34"),
            ("1.0", "1.0 2.0", None, "was nothing before 1.0"),
            ("1.0", "1.0", Some("0.9"), "is never 0.9"),
        ] {
            let error = check(None, now, all, named).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
