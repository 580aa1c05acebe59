//! How what is shown would be measured again, for whoever reads it elsewhere.
//!
//! It goes to assistants, so it tells no more than they may know: of a recorded command the program without its
//! arguments, of programs and files their path in the workspace or their name, of servers the query, and no host
//! but this one.

use std::path::Path;

use profiler_core::paths::clean::clean;
use profiler_core::view::data;
use profiler_core::view::document::{Role, Sentence, Span};

use crate::bases::{self, Ran};
use crate::loader::{Input, Wish};
use crate::shell;
use crate::source::connection::is_loopback;
use crate::source::{ProfileQuery, Request};
use crate::state::view::View;

/// Longer commands are no help.
const MAX_COMMAND: usize = 1000;

/// The sentence; `None` where it is not known, or not to be told. Reads the disk.
pub(super) fn again(view: &View, root: &Path, recordings: Option<&Path>) -> Option<Sentence> {
    let wish = view.wish.as_ref()?;
    if wish.parts.len() > 1 {
        return None;
    }
    match &wish.profile {
        Input::File(path) => match bases::ran(recordings, path) {
            Some(ran) => recorded(&ran, view, root),
            None => reported(Sentence::new("For the same numbers: "), wish, &file(path, root), root),
        },
        Input::Remote(request) => match &request.query {
            Some(query) => {
                let said = says("To measure it again: ", &fetch(query, FETCHED))?.text(", and then ");
                reported(said, wish, FETCHED, root)
            }
            None => reported(Sentence::new("To measure it again: "), wish, &address(request)?, root),
        },
        Input::Received => says("To receive it again: ", "perflens otlp"),
    }
}

fn recorded(ran: &Ran, view: &View, root: &Path) -> Option<Sentence> {
    let event = event(view).map_or_else(String::new, |event| format!(" --event {event}"));
    match ran {
        Ran::Test(key) => {
            let said =
                Sentence::new("To measure it again: ").command("perflens.profileTest").text(" in the editor, of ");
            Some(said.data(key).text("."))
        }
        Ran::Program(program) => {
            let program = shell::word(&named(program, root));
            let said = says("To measure it again: ", &format!("perflens record{event} -- {program}"))?;
            Some(said.text(", with the arguments that it had, which are not told here."))
        }
        Ran::Processes => says("To measure it again: ", &format!("perflens record{event} -p PID"))
            .map(|said| said.text(" of a process that runs.")),
    }
}

/// What has to be asked for to have the value types of a recording; `None` for those that it has by itself.
fn event(view: &View) -> Option<&'static str> {
    let has = |kind: &str| view.analysis.profile.value_types().iter().any(|value_type| value_type.kind == kind);
    let events = [("off_cpu", "off-cpu"), ("alloc_space", "alloc")];
    events.iter().find(|(kind, _)| has(kind)).map(|(_, event)| *event)
}

/// A program as it can be named in the workspace: by its path there, else by its name, wherever it is.
fn named(program: &str, root: &Path) -> String {
    let last = || Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !program.contains('/') {
        return program.to_owned();
    }
    let whole = root.join(program);
    match Path::new(&*clean(&whole.to_string_lossy())).strip_prefix(root) {
        Ok(inside) if whole.is_file() => format!("./{}", inside.display()),
        _ => last(),
    }
}

fn says(words: &str, line: &str) -> Option<Sentence> {
    Some(Sentence::new(words).span(command(line)?))
}

fn command(line: &str) -> Option<Span> {
    let line = data::escaped(line);
    let is_short = line.len() <= MAX_COMMAND;
    is_short.then(|| Span::new(line.into_owned(), Role::Command))
}

/// What a query of a server is written to.
const FETCHED: &str = "profile.pb.gz";
const FETCHED_BASE: &str = "base.pb.gz";

fn fetch(query: &ProfileQuery, into: &str) -> String {
    let (selector, range) = (query.selector.to_string(), query.range.to_string());
    ["perflens", "fetch", &selector, "--range", &range, "-o", into].map(shell::word).join(" ")
}

/// The report of a profile, as it is shown, and where its base is from. `None` beside a base that can't be had
/// again: the numbers would be others.
fn reported(said: Sentence, wish: &Wish, profile: &str, root: &Path) -> Option<Sentence> {
    let (base, query) = match &wish.base {
        None => (None, None),
        Some(Input::File(path)) => (Some(file(path, root)), None),
        Some(Input::Remote(request)) => (Some(FETCHED_BASE.to_owned()), Some(request.query.as_ref()?)),
        Some(Input::Received) => return None,
    };
    let mut words = vec!["perflens", "report", profile, "--workspace", "."];
    words.extend(wish.value_type.iter().flat_map(|value_type| ["--type", value_type]));
    let filters: Vec<String> = wish.filters.iter().map(ToString::to_string).collect();
    words.extend(filters.iter().flat_map(|filter| ["--filter", filter]));
    words.extend(base.iter().flat_map(|base| ["--base", base]));
    words.extend((base.is_some() && wish.normalize).then_some("--normalize"));
    let said = said.span(command(&words.into_iter().map(shell::word).collect::<Vec<_>>().join(" "))?);
    match query {
        Some(query) => Some(said.text(", its base by ").span(command(&fetch(query, FETCHED_BASE))?)),
        None => Some(said),
    }
}

/// A file by its path in the workspace; of others only the name.
fn file(path: &Path, root: &Path) -> String {
    let whole = path.to_string_lossy();
    let cleaned = clean(&whole);
    match Path::new(&*cleaned).strip_prefix(root) {
        Ok(inside) => inside.to_string_lossy().into_owned(),
        Err(_) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    }
}

/// An address of this machine without what could be secret in it.
fn address(request: &Request) -> Option<String> {
    let mut address = request.connection.address.clone();
    if !is_loopback(&address) {
        return None;
    }
    let seconds = address.query_pairs().find(|(key, _)| key == "seconds").map(|(_, value)| value.into_owned());
    let seconds = seconds.filter(|seconds| seconds.bytes().all(|byte| byte.is_ascii_digit()));
    address.set_query(seconds.map(|seconds| format!("seconds={seconds}")).as_deref());
    address.set_fragment(None);
    // Addresses that were read have a host, so both can be taken away.
    let _ = address.set_username("");
    let _ = address.set_password(None);
    Some(address.to_string())
}
