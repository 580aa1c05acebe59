//! `workspace/executeCommand`: what each command does. Arguments were read and checked by
//! [`commands`](crate::commands).

use std::path::PathBuf;
use std::sync::Arc;

use lsp_types::{Command, MessageType, Url};
use profiler_core::view::data::shown_within;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::Error;

use super::ext::{Callers, Neighbour};
use super::hotspots::Hotspot;
use super::{
    actions, bases, calls, copy, ext, filters, hotspots, invalid, lenses, matches, on_pool, places, push, remote,
    status,
};
use crate::commands::{CommandCall, RecordedEvent, Subject};
use crate::config::HintMode;
use crate::loader::{Input, RECEIVED};
use crate::lsp::client::CannotAsk;
use crate::nearest::nearest;
use crate::presets;
use crate::runnable::{self, Offer};
use crate::session::profile_test::not_trusted;
use crate::session::recording::{self, Target};
use crate::session::turns;
use crate::session::{Cause, Session};
use crate::state::documents::file_path;
use crate::state::folder::Chosen;
use crate::state::view::View;
use crate::state::{Snapshot, State};

/// As many choices as a dialog can hold.
const CHOICES: usize = 8;
/// Most processes in a list of a client's own.
const MAX_PROCESSES: usize = 200;

/// Runs a command. What needs an answer of the user runs on without the caller.
pub async fn run(session: &Arc<Session>, call: CommandCall) -> Result<Value, Error> {
    session.state().offers.clear();
    match call {
        CommandCall::OpenProfile { path, value_type } => {
            let folder = folder(&session.state(), Some(&path))?;
            session.open_profile(folder, &path, value_type).map_err(|error| invalid(error.to_string()))?;
        }
        CommandCall::SelectValueType { value_type: Some(value_type) } => {
            set(session, "query.type", json!(value_type))?;
        }
        CommandCall::SelectValueType { value_type: None } => return offer_value_types(session),
        CommandCall::SelectPreset { name: Some(name) } => select_preset(session, &name)?,
        CommandCall::SelectPreset { name: None } => return offer_presets(session),
        CommandCall::SetFilter { filters } => return filters::set_filter(session, filters).await,
        CommandCall::Query { selector, range } => return remote::query(session, selector, range).await,
        CommandCall::SetTimeRange { range } => return remote::set_time_range(session, range.as_deref()),
        CommandCall::ListLabels { selector, label, range } => {
            return remote::labels(session, &selector, label.as_deref(), range).await;
        }
        CommandCall::ImportUrl { url } => return remote::import(session, &url),
        CommandCall::CopyLink { file, line } => {
            return remote::link(session, file.as_deref(), line).map(|url| json!(url));
        }
        CommandCall::OpenInBrowser { file, line } => return remote::open(session, file.as_deref(), line),
        CommandCall::SignIn { device } => return remote::sign_in(session, device),
        CommandCall::SignOut {} => return remote::sign_out(session).await,
        CommandCall::SwitchProject { project } => return remote::switch_project(session, project.as_deref()).await,
        CommandCall::PushProfile { name } => return push::push_profile(session, name).await,
        CommandCall::Refresh {} => {
            let count = session.state().folders.len();
            for folder in 0..count {
                session.ask_for_settings(folder).map_err(|error| invalid(error.to_string()))?;
                session.load(folder, Cause::Refresh);
            }
        }
        CommandCall::Clear {} => {
            let folder = folder(&session.state(), None)?;
            session.state().folders[folder].chosen =
                Chosen { profile: Some(None), base: Some(None), ..Chosen::default() };
            session.load(folder, Cause::Command);
        }
        CommandCall::Record { target, seconds, event } => return record(session, target, seconds, event),
        CommandCall::ProfileTest { file, line, name } => {
            return profile_test(session, file, line, name.as_deref()).await;
        }
        CommandCall::ProfileInTurns { file, line, name, pairs } => {
            let (path, offers, file) = offers(session, file)?;
            let offer = offer_at(&offers, line.unwrap_or(1), name.as_deref(), &file)?;
            let result = json!({ "name": offer.runnable.name, "kind": offer.runnable.kind });
            let pairs = pairs.unwrap_or(turns::PAIRS);
            session.profile_in_turns(&path, offer.clone(), pairs).await.map_err(invalid)?;
            return Ok(result);
        }
        CommandCall::StopRecording {} => {
            if !session.stop_recording() {
                return Err(invalid("nothing is being recorded"));
            }
        }
        CommandCall::CompareWith { path, normalize } => return bases::compare_with(session, path, normalize).await,
        CommandCall::StopComparing {} => {
            let folder = folder(&session.state(), None)?;
            session.state().folders[folder].chosen.base = Some(None);
            session.load(folder, Cause::Command);
        }
        CommandCall::NextHotspot { file, line } => return Ok(go(session, file, line, true)),
        CommandCall::PreviousHotspot { file, line } => return Ok(go(session, file, line, false)),
        CommandCall::ShowHotspots { by, top } => {
            let rows = ext::hotspots(&session.state(), &ext::HotspotsParams { by, top });
            return Ok(json!(rows));
        }
        CommandCall::ShowActions { file, line, name } => return show_actions(session, &file, line, name.as_deref()),
        CommandCall::ShowCallers { file, line, of } => {
            let of = of.unwrap_or(Subject::Line);
            let snapshot = snapshot(&session.state(), &file)?;
            return callers(session, snapshot, line.saturating_sub(1), of).await.map(|callers| json!(callers));
        }
        CommandCall::CopyForAI { scope, file, line, end_line } => {
            let copied = copy::copy(session, scope, file.as_deref(), (line, end_line)).await?;
            let result = json!(copied);
            if !session.state().capabilities.shows_answers {
                copy::open(session, copied);
            }
            return Ok(result);
        }
        CommandCall::Explain { file } => return matches::explain(session, file.as_deref()),
        CommandCall::ChooseMatch { path, file } => return matches::choose(session, path, file),
        CommandCall::TrustWorkspace { folder: name } => return trust(session, name.as_deref()),
        CommandCall::ShowStatus {} => return Ok(json!(status::all(&session.state()))),
        CommandCall::ToggleHints { mode } => {
            toggle_hints(session, mode);
            session.look_again();
        }
    }
    Ok(Value::Null)
}

/// The folder a command is about: the one a path is in, else the one opened last.
pub(super) fn folder(state: &State, path: Option<&PathBuf>) -> Result<usize, Error> {
    let of_path = path.filter(|path| path.is_absolute()).and_then(|path| state.folder_of(path));
    of_path
        .or(state.latest)
        .or((!state.folders.is_empty()).then_some(0))
        .ok_or_else(|| invalid("no folder and no document is open"))
}

/// Sets a setting for the session in the folder opened last, and loads again.
pub(super) fn set(session: &Arc<Session>, pointer: &str, value: Value) -> Result<(), Error> {
    let at = folder(&session.state(), None)?;
    {
        let mut state = session.state();
        let state = &mut *state;
        let own = &mut state.folders[at];
        own.layers.set_for_session(pointer, value);
        own.read_settings(&state.trust);
    }
    session.load(at, Cause::Command);
    Ok(())
}

fn toggle_hints(session: &Session, mode: Option<HintMode>) {
    let mut state = session.state();
    let state = &mut *state;
    for folder in &mut state.folders {
        let value = match mode {
            Some(mode) => json!(mode),
            // Back to what the settings say.
            None if folder.config().hints.mode == HintMode::Off => Value::Null,
            None => json!(HintMode::Off),
        };
        folder.layers.set_for_session("hints.mode", value);
        folder.read_settings(&state.trust);
        if mode.is_none() && folder.config().hints.mode == HintMode::Off && !is_off_by_user(folder) {
            folder.layers.set_for_session("hints.mode", json!(HintMode::All));
            folder.read_settings(&state.trust);
        }
    }
}

/// Whether this session's own word is that hints are off.
fn is_off_by_user(folder: &crate::state::folder::Folder) -> bool {
    folder.layers.session_value("hints.mode") == Some(&json!(HintMode::Off))
}

/// Seconds for a process when none are named.
const PROCESS_SECONDS: u32 = 10;

/// Records what is named; offers what there is to record when nothing is.
fn record(
    session: &Arc<Session>,
    target: Option<String>,
    seconds: Option<u32>,
    event: RecordedEvent,
) -> Result<Value, Error> {
    let root = {
        let state = session.state();
        state.folders[folder(&state, None)?].root.clone()
    };
    let Some(text) = target else { return offer_processes(session, root, seconds, event) };
    let target = Target::read(&text).map_err(|why| invalid(format!("perflens.record: `target`: {why}")))?;
    let seconds = seconds.or(matches!(target, Target::Process(_)).then_some(PROCESS_SECONDS));
    session.record(root, &target, seconds, event).map_err(invalid)?;
    Ok(Value::Null)
}

/// What a file, else the one that is looked at, has to be run; with its path and name.
fn offers(session: &Arc<Session>, file: Option<String>) -> Result<(PathBuf, Vec<Offer>, String), Error> {
    let (path, offers, not_trusted) = {
        let state = session.state();
        let file = file.or_else(|| Some(state.picked.as_ref()?.to_string_lossy().into_owned()));
        let file = file.ok_or_else(|| invalid("no document is open; name a file"))?;
        let snapshot = snapshot(&state, &file)?;
        let path = snapshot.document.path.clone();
        // Of a workspace that is not trusted, nobody knows the tasks.
        let not_trusted = state.folder_of(&path).and_then(|at| not_trusted(&state.folders[at]));
        (path, snapshot.offers(), not_trusted)
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if let Some(why) = not_trusted.filter(|_| offers.is_empty()) {
        return Err(invalid(why));
    }
    if offers.is_empty() {
        return Err(invalid(format!(
            "{name} has no test, benchmark or program that is known; [tasks] in perflens.toml can name a command for it"
        )));
    }
    Ok((path, offers, name))
}

/// The one at a line, or of a name that is near it: what was shown for a line may be clicked after that has moved.
fn offer_at<'o>(offers: &'o [Offer], line: u32, named: Option<&str>, file: &str) -> Result<&'o Offer, Error> {
    let at = line.saturating_sub(1);
    let found = match named {
        Some(named) => offers
            .iter()
            .filter(|offer| offer.runnable.name == named)
            .min_by_key(|offer| offer.runnable.line.abs_diff(at)),
        None => runnable::at_line(offers, at),
    };
    found.ok_or_else(|| {
        let wanted = match named {
            Some(named) => format!("{file} has no {} any more", shown_within(named, 60)),
            None => format!("line {line} of {file} is in no test, benchmark or program"),
        };
        let there: Vec<String> = offers.iter().take(CHOICES).map(titled).collect();
        invalid(format!("{wanted}; there are: {}", there.join(", ")))
    })
}

/// What can be run, with its line.
fn titled(Offer { runnable, .. }: &Offer) -> String {
    format!("{} (line {})", shown_within(&runnable.name, 60), runnable.line + 1)
}

/// Profiles what is at a line or of a name; offers what the file has when none is named.
async fn profile_test(
    session: &Arc<Session>,
    file: Option<String>,
    line: Option<u32>,
    named: Option<&str>,
) -> Result<Value, Error> {
    let (path, offers, name) = offers(session, file)?;
    if line.is_some() || named.is_some() {
        let offer = offer_at(&offers, line.unwrap_or(1), named, &name)?;
        let result = json!({ "name": offer.runnable.name, "kind": offer.runnable.kind });
        session.profile_test(&path, offer.clone()).await.map_err(invalid)?;
        return Ok(result);
    }
    let offers: Vec<Offer> = offers.into_iter().take(CHOICES).collect();
    let titles: Vec<String> = offers.iter().map(titled).collect();
    let result =
        json!({ "choices": titles, "example": format!("perflens.profileTest {name} {}", offers[0].runnable.line + 1) });
    let session = Arc::clone(session);
    tokio::spawn(async move {
        match session.editor.choose("perflens: profile what?".to_owned(), titles.clone()).await {
            Ok(Some(choice)) => {
                let Some(row) = titles.iter().position(|title| *title == choice) else { return };
                if let Err(why) = session.profile_test(&path, offers[row].clone()).await {
                    session.editor.say(MessageType::ERROR, format!("perflens: {why}"));
                }
            }
            Ok(None) => {}
            Err(CannotAsk) => {
                let offers = titles.iter().zip(&offers).map(|(title, offer)| Command {
                    title: format!("perflens: profile {title}"),
                    command: "perflens.profileTest".to_owned(),
                    arguments: Some(vec![json!(path), json!(offer.runnable.line + 1)]),
                });
                session.state().offers = offers.collect();
            }
        }
    });
    Ok(result)
}

fn offer_processes(
    session: &Arc<Session>,
    root: PathBuf,
    seconds: Option<u32>,
    event: RecordedEvent,
) -> Result<Value, Error> {
    let example = "perflens.record './target/release/app'";
    if session.state().capabilities.has_dialogs {
        let found = recording::candidates(&root, MAX_PROCESSES).into_iter();
        let choices: Vec<Value> = found
            .map(|found| json!({ "title": shown_within(&found.name, 60), "target": found.pid.to_string() }))
            .collect();
        return Ok(json!({ "choices": choices, "example": example }));
    }
    let found = recording::candidates(&root, CHOICES);
    if found.is_empty() {
        return Err(invalid(format!("no process of this workspace runs; name a command, like {example}")));
    }
    let seconds = seconds.unwrap_or(PROCESS_SECONDS);
    let titles: Vec<String> =
        found.iter().map(|candidate| format!("{} s of {} ({})", seconds, candidate.name, candidate.pid)).collect();
    let result = json!({ "choices": titles, "example": example });
    let session = Arc::clone(session);
    tokio::spawn(async move {
        match session.editor.choose("perflens: record which process?".to_owned(), titles.clone()).await {
            Ok(Some(choice)) => {
                let Some(row) = titles.iter().position(|title| *title == choice) else { return };
                let target = Target::Process(found[row].pid);
                if let Err(why) = session.record(root, &target, Some(seconds), event) {
                    session.editor.say(MessageType::ERROR, format!("perflens: {why}"));
                }
            }
            Ok(None) => {}
            Err(CannotAsk) => {
                let offers = titles.iter().zip(&found).map(|(title, candidate)| Command {
                    title: format!("perflens: record {title}"),
                    command: "perflens.record".to_owned(),
                    arguments: Some(vec![json!(candidate.pid.to_string()), json!(seconds), json!(event.word())]),
                });
                session.state().offers = offers.collect();
            }
        }
    });
    Ok(result)
}

fn offer_value_types(session: &Arc<Session>) -> Result<Value, Error> {
    let choices: Vec<String> = {
        let state = session.state();
        let Some(view) = state.latest_folder().and_then(|folder| folder.view()) else {
            return Err(invalid("no profile is open; run perflens.openProfile first"));
        };
        view.analysis.profile.value_types().iter().map(ToString::to_string).take(CHOICES).collect()
    };
    let offered = choices.clone();
    let session = Arc::clone(session);
    tokio::spawn(async move {
        match session.editor.choose("perflens: count which value type?".to_owned(), offered.clone()).await {
            Ok(Some(choice)) => drop(set(&session, "query.type", json!(choice))),
            Ok(None) => {}
            Err(CannotAsk) => session.state().offers = offered.iter().map(|choice| value_type_offer(choice)).collect(),
        }
    });
    Ok(json!({ "choices": choices, "example": "perflens.selectValueType TYPE" }))
}

/// The presets that can be answered in the folder that commands are about.
fn presets(state: &State) -> Result<(usize, Vec<presets::Offer>), Error> {
    let at = folder(state, None)?;
    let own = &state.folders[at];
    let profile = own.view().map(|view| &*view.analysis.profile);
    let mut offered = presets::offered(own.config(), &own.root, profile);
    let newest = state.recordings.as_deref().and_then(|all| recording::newest_recording(all, &own.root));
    offered.extend(newest.map(|(path, _)| presets::last_recording(path)));
    offered.extend(state.receiving.window().map(|_| presets::received()));
    Ok((at, offered))
}

fn select_preset(session: &Arc<Session>, name: &str) -> Result<(), Error> {
    let at = {
        let mut state = session.state();
        let state = &mut *state;
        let (at, offered) = presets(state)?;
        let own = &mut state.folders[at];
        let Some(preset) = offered.into_iter().find(|preset| preset.name == name) else {
            if presets::names(own.config()).any(|known| known == name) {
                return Err(invalid(format!("what is open can't answer the preset {name}")));
            }
            let meant = nearest(name, presets::names(own.config()));
            let meant = meant.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
            return Err(invalid(format!("there is no preset {name}{meant}")));
        };
        // A whole question: nothing of the one before stays.
        let filters: Vec<String> = preset.filters.iter().map(ToString::to_string).collect();
        own.layers.set_for_session("query.type", json!(preset.value_type));
        own.layers.set_for_session("query.filters", json!(filters));
        if let Some(profile) = preset.profile {
            let is_received = profile.as_os_str() == RECEIVED;
            own.chosen.profile = Some(Some(if is_received { Input::Received } else { Input::File(profile) }));
        }
        own.chosen.base = Some(preset.base.map(Input::File));
        own.read_settings(&state.trust);
        at
    };
    session.load(at, Cause::Command);
    Ok(())
}

fn offer_presets(session: &Arc<Session>) -> Result<Value, Error> {
    let (_, mut offered) = presets(&session.state())?;
    if offered.is_empty() {
        return Err(invalid("no preset can be answered; run perflens.openProfile first"));
    }
    // A client that shows answers itself has lists of any length.
    if session.state().capabilities.shows_answers {
        let choices: Vec<Value> =
            offered.iter().map(|preset| json!({ "name": preset.name, "title": preset.title })).collect();
        return Ok(json!({ "choices": choices }));
    }
    offered.truncate(CHOICES);
    let choices: Vec<&str> = offered.iter().map(|preset| preset.name.as_str()).collect();
    let result = json!({ "choices": choices, "example": "perflens.selectPreset NAME" });
    let session = Arc::clone(session);
    tokio::spawn(async move {
        let titles = offered.iter().map(|preset| preset.title.clone()).collect();
        match session.editor.choose("perflens: show what?".to_owned(), titles).await {
            Ok(Some(title)) => {
                if let Some(preset) = offered.iter().find(|preset| preset.title == title) {
                    drop(select_preset(&session, &preset.name));
                }
            }
            Ok(None) => {}
            Err(CannotAsk) => session.state().offers = offered.iter().map(preset_offer).collect(),
        }
    });
    Ok(result)
}

fn preset_offer(preset: &presets::Offer) -> Command {
    Command {
        title: format!("perflens: show {}", preset.title),
        command: "perflens.selectPreset".to_owned(),
        arguments: Some(vec![json!(preset.name)]),
    }
}

fn value_type_offer(choice: &str) -> Command {
    Command {
        title: format!("perflens: count {choice}"),
        command: "perflens.selectValueType".to_owned(),
        arguments: Some(vec![json!(choice)]),
    }
}

fn show_actions(session: &Arc<Session>, file: &str, line: u32, named: Option<&str>) -> Result<Value, Error> {
    let (commands, line, shows_answers) = {
        let state = session.state();
        let snapshot = snapshot(&state, file)?;
        let at = line.saturating_sub(1);
        let at = match named {
            Some(named) => lenses::line_of(&snapshot, named, at).ok_or_else(|| {
                let file = snapshot.document.path.file_name().unwrap_or_default().to_string_lossy();
                invalid(format!("{file} shows no cost of {} any more", shown_within(named, 60)))
            })?,
            None => at,
        };
        (actions::at_line(&snapshot, at), at + 1, state.capabilities.shows_answers)
    };
    if shows_answers {
        return Ok(json!({ "line": line, "choices": commands }));
    }
    let titles: Vec<String> = commands
        .iter()
        .map(|command| command.title.trim_start_matches("perflens: ").to_owned())
        .take(CHOICES)
        .collect();
    let result = json!(commands);
    if titles.is_empty() {
        return Ok(result);
    }
    let session = Arc::clone(session);
    tokio::spawn(async move {
        // Where there are no dialogs, they are code actions anyway.
        let Ok(Some(choice)) = session.editor.choose("perflens".to_owned(), titles.clone()).await else { return };
        let Some(command) = titles.iter().position(|title| *title == choice).and_then(|at| commands.get(at)) else {
            return;
        };
        let arguments = command.arguments.clone().unwrap_or_default();
        let Ok(call) = crate::commands::parse(&command.command, &arguments) else { return };
        // Boxed, since one command runs another.
        match Box::pin(run(&session, call)).await {
            Ok(result) => {
                if let Some(words) = in_words(&result) {
                    session.editor.say(MessageType::INFO, words);
                }
            }
            Err(error) => session.editor.say(MessageType::WARNING, error.message),
        }
    });
    Ok(result)
}

/// The result of a command as a message: most editors show nothing of results. One line, as some
/// have no more room, and what matters first: VS Code shows about fifty characters of it.
pub fn in_words(result: &Value) -> Option<String> {
    let words = match result {
        Value::String(text) => text.clone(),
        Value::Array(rows) if rows.iter().any(|row| row.get("rank").is_some()) => {
            let place = |row: &Value| format!("{}:{}", row["file"].as_str().unwrap_or_default(), row["line"]);
            few(rows, |row| format!("{} {} {}", share(row), name(&row["function"]), place(row))).join(" | ")
        }
        Value::Array(names) if names.iter().any(Value::is_string) => few(names, name).join(", "),
        Value::Array(folders) => {
            let details = |folder: &Value| -> Vec<String> {
                let details = folder["details"].as_array().into_iter().flatten();
                // Details say all that the text does, once there is something.
                let text = folder["text"].as_str().filter(|_| folder["state"] != "loaded");
                text.into_iter().chain(details.filter_map(Value::as_str)).map(str::to_owned).collect()
            };
            folders.iter().flat_map(details).collect::<Vec<_>>().join(" | ")
        }
        Value::Object(_) => [("by", "callers"), ("calls", "callees")]
            .into_iter()
            .filter_map(|(heading, key)| {
                let rows = few(result[key].as_array()?, |row| format!("{} {}", name(&row["name"]), share(row)));
                (!rows.is_empty()).then(|| format!("{heading} {}", rows.join(", ")))
            })
            .collect::<Vec<_>>()
            .join(" | "),
        _ => String::new(),
    };
    (!words.is_empty()).then_some(words)
}

/// The first rows of a result.
fn few(rows: &[Value], words: impl Fn(&Value) -> String) -> Vec<String> {
    const ROWS: usize = 5;
    rows.iter().take(ROWS).map(words).collect()
}

/// A foreign name, short enough to leave room for others.
fn name(value: &Value) -> String {
    const MAX_CHARS: usize = 20;
    shown_within(value.as_str().filter(|name| !name.is_empty()).unwrap_or("(no name)"), MAX_CHARS).into_owned()
}

/// The share that a label begins with, as all do.
fn share(row: &Value) -> String {
    let mut words = row["label"].as_str().unwrap_or_default().split_whitespace();
    words.find(|word| word.ends_with('%') || word.ends_with("pp")).unwrap_or_default().to_owned()
}

/// Callers and callees of a place; looks through the samples.
pub async fn callers(session: &Arc<Session>, snapshot: Snapshot, line: u32, of: Subject) -> Result<Callers, Error> {
    let view = snapshot.view.clone().ok_or_else(|| invalid("no profile is open; run perflens.openProfile first"))?;
    let target = match of {
        Subject::Line => calls::line_target(&snapshot, line),
        Subject::Function => {
            places::function_around(&snapshot, line).map(|function| places::target_of(&view, function))
        }
    };
    let Some(target) = target else { return Ok(Callers::default()) };
    let samples = Arc::clone(&view);
    let found = on_pool(move |cancel| samples.analysis.calls(&target, cancel))
        .await?
        .map_err(|_| Error::request_cancelled())?;
    let state = session.state();
    let numbers = profiler_core::view::summary::Numbers::of(&view.analysis);
    let row = |neighbour: &profiler_core::attribute::calls::Neighbour| {
        let analysis = &view.analysis;
        let file = analysis.groups.display(&analysis.profile, neighbour.file).to_owned();
        let uri = places::path_of(&view, neighbour.file).and_then(|path| places::uri_of(&state, &path));
        let (share, value) = (numbers.share(neighbour.value), numbers.value(neighbour.value));
        Neighbour {
            label: format!("{share}  {value}  {}", neighbour.name),
            name: neighbour.name.clone(),
            file,
            uri,
            line: neighbour.line.is_known().then_some(neighbour.line.0),
            value: neighbour.value,
        }
    };
    Ok(Callers {
        cumulative: found.cumulative,
        callers: found.callers.iter().map(row).collect(),
        callees: found.callees.iter().map(row).collect(),
    })
}

/// Trusts a folder that is named; asks first, with what it allows, when none is.
fn trust(session: &Arc<Session>, name: Option<&str>) -> Result<Value, Error> {
    let (at, allowed) = {
        let state = session.state();
        let at = folder(&state, name.map(to_path).as_ref())?;
        (at, status::of(&state, &state.folders[at]).ignored)
    };
    let result = json!({ "allowed": allowed });
    if name.is_some() {
        session.trust(at).map_err(invalid)?;
        return Ok(result);
    }
    let runs = "its tests, benchmarks and programs are built and run when you ask for it".to_owned();
    let what = std::iter::once(runs).chain(allowed).collect::<Vec<_>>().join("; ");
    let question = format!("perflens: trust this workspace? It would allow: {what}");
    let session = Arc::clone(session);
    tokio::spawn(async move {
        match session.editor.choose(question, vec!["Trust".to_owned(), "Don't".to_owned()]).await {
            Ok(Some(answer)) if answer == "Trust" => {
                if let Err(why) = session.trust(at) {
                    session.editor.say(MessageType::ERROR, format!("perflens: {why}"));
                }
            }
            Ok(_) => {}
            Err(CannotAsk) => {
                let mut state = session.state();
                let root = state.folders.get(at).map(|folder| json!(folder.root));
                state.offers = vec![Command {
                    title: format!("perflens: trust this workspace ({what})"),
                    command: "perflens.trustWorkspace".to_owned(),
                    arguments: root.map(|root| vec![root]),
                }];
            }
        }
    });
    Ok(result)
}

/// Goes to a hot spot; its row is the result, for editors that can't be sent anywhere.
fn go(session: &Arc<Session>, file: Option<String>, line: Option<u32>, is_next: bool) -> Value {
    let (row, can_show): (Option<Hotspot>, bool) = {
        let mut state = session.state();
        let view: Option<Arc<View>> = state.latest_folder().and_then(|folder| folder.view()).cloned();
        let from = file.map(|file| to_path(&file)).zip(line);
        let row = view.and_then(|view| hotspots::neighbour(&mut state, &view, from, is_next));
        // Some editors show documents without saying that they can; asking does no harm.
        (row, true)
    };
    if let Some(row) = &row
        && let (true, Some(uri)) = (can_show, row.uri.clone())
    {
        let (session, range) = (Arc::clone(session), row.range);
        tokio::spawn(async move { session.editor.show(uri, range).await });
    }
    json!(row)
}

/// A `file:` address or a path.
pub(super) fn to_path(text: &str) -> PathBuf {
    Url::parse(text).ok().and_then(|url| file_path(&url)).unwrap_or_else(|| PathBuf::from(text))
}

/// The snapshot of an open document named by a command.
pub(super) fn snapshot(state: &State, file: &str) -> Result<Snapshot, Error> {
    let path = to_path(file);
    let absolute = match state.latest_folder() {
        Some(folder) if path.is_relative() => folder.root.join(&path),
        _ => path,
    };
    state
        .documents
        .at(&absolute)
        .and_then(|document| state.snapshot(&document.uri))
        .ok_or_else(|| invalid(format!("{file} is not open")))
}
