//! How what is shown would be measured again, for whoever reads it elsewhere.
//!
//! It goes to assistants, so it tells no more than they may know: of a recorded command the program without its
//! arguments, of files their path in the workspace or their name, of servers the query, and no host but this one.

use std::path::Path;

use profiler_core::paths::clean::clean;
use profiler_core::view::data;
use profiler_core::view::document::{Role, Sentence, Span};

use crate::bases::{self, Ran};
use crate::loader::{Input, Wish};
use crate::shell;
use crate::source::Request;
use crate::source::connection::is_loopback;
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
            Some(ran) => recorded(&ran),
            None => says("For the same numbers: ", &report(wish, &file(path, root), root)),
        },
        Input::Remote(request) => match &request.query {
            Some(query) => {
                let (selector, range) = (query.selector.to_string(), query.range.to_string());
                let words = ["perflens", "fetch", &selector, "--range", &range, "-o", "profile.pb.gz"];
                says("To measure it again: ", &words.map(shell::word).join(" "))
            }
            None => says("To measure it again: ", &report(wish, &address(request)?, root)),
        },
        Input::Received => says("To receive it again: ", "perflens otlp"),
    }
}

fn recorded(ran: &Ran) -> Option<Sentence> {
    match ran {
        Ran::Test(key) => {
            let said =
                Sentence::new("To measure it again: ").command("perflens.profileTest").text(" in the editor, of ");
            Some(said.data(key).text("."))
        }
        Ran::Program(name) => {
            let said = says("To measure it again: ", &format!("perflens record -- {}", shell::word(name)))?;
            Some(said.text(", with the arguments that it had, which are not told here."))
        }
        Ran::Processes => {
            says("To measure it again: ", "perflens record -p PID").map(|said| said.text(" of a process that runs."))
        }
    }
}

fn says(words: &str, command: &str) -> Option<Sentence> {
    let command = data::escaped(command);
    let is_short = command.len() <= MAX_COMMAND;
    is_short.then(|| Sentence::new(words).span(Span::new(command.into_owned(), Role::Command)))
}

/// The report of a profile, as it is shown.
fn report(wish: &Wish, profile: &str, root: &Path) -> String {
    let mut words = vec!["perflens", "report", profile, "--workspace", "."];
    words.extend(wish.value_type.iter().flat_map(|value_type| ["--type", value_type]));
    let filters: Vec<String> = wish.filters.iter().map(ToString::to_string).collect();
    words.extend(filters.iter().flat_map(|filter| ["--filter", filter]));
    let base = wish.base.as_ref().and_then(Input::file).map(|base| file(base, root));
    words.extend(base.iter().flat_map(|base| ["--base", base]));
    words.extend((base.is_some() && wish.normalize).then_some("--normalize"));
    words.into_iter().map(shell::word).collect::<Vec<_>>().join(" ")
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
