//! Recording from the editor: a program of the user's, or a process that runs.
//!
//! The work is done by `perflens record --watch`, a child of ours: what it holds of debug info goes
//! when it ends, and it ends with us however we end, since its standard input does. What it has so
//! far it writes again and again; the file is opened like any other profile, so costs appear while
//! the program still runs.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lsp_types::MessageType;
use tokio::sync::mpsc;

use super::profile_test::{Profiled, Recorded};
use super::{Cause, Session};
use crate::commands::RecordedEvent;
use crate::loader::Stop;
use crate::runnable::Order;
use crate::state::under_way::UnderWay;
use crate::watched::{Done, Line, QUEUE, follow};

/// How often recordings of others are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What to record.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A process.
    Process(u32),
    /// A command with its arguments.
    Command(Vec<String>),
    /// A test, a benchmark or a program of a source file.
    Test(Box<Order>),
}

impl Target {
    /// Reads a number as a process, anything else as a command as a shell would be given it.
    pub fn read(text: &str) -> Result<Self, String> {
        if let Ok(pid) = text.trim().parse() {
            return Ok(Self::Process(pid));
        }
        let words = words(text)?;
        if words.is_empty() { Err("it names no command".to_owned()) } else { Ok(Self::Command(words)) }
    }

    /// For titles: without arguments, which may be secret.
    fn title(&self) -> String {
        match self {
            Self::Process(pid) => format!("process {pid}"),
            Self::Command(words) => {
                let program = Path::new(words.first().map_or("", String::as_str));
                program.file_name().unwrap_or_default().to_string_lossy().into_owned()
            }
            Self::Test(order) => order.runnable.name.clone(),
        }
    }
}

/// Splits a command into words: quotes and backslashes as in a shell, nothing else.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(letters.next()),
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".to_owned());
    }
    words.extend(word);
    Ok(words)
}

/// A recording that is under way.
struct Watched {
    root: PathBuf,
    title: String,
    profiled: Option<Profiled>,
}

/// What a child tells, line by line, read on a thread of its own.
pub(super) fn lines_of(mut child: Child, output: ChildStdout) -> mpsc::Receiver<Line> {
    let (sender, lines) = mpsc::channel(QUEUE);
    std::thread::spawn(move || {
        // When nobody reads any more, the end is all that is waited for.
        follow(output, |line| drop(sender.blocking_send(line)));
        // No zombie stays, whatever became of the session.
        let _ = child.wait();
    });
    lines
}

impl Session {
    /// Starts a recording for the folder of this root. There is one at a time.
    pub fn record(
        self: &Arc<Self>,
        root: PathBuf,
        target: &Target,
        seconds: Option<u32>,
        event: RecordedEvent,
    ) -> Result<(), String> {
        self.begin_recording(root, target, seconds, event, None)
    }

    /// The same, also of a test.
    pub(super) fn begin_recording(
        self: &Arc<Self>,
        root: PathBuf,
        target: &Target,
        seconds: Option<u32>,
        event: RecordedEvent,
        profiled: Option<Profiled>,
    ) -> Result<(), String> {
        {
            let mut state = self.state();
            if state.recording.is_some() {
                return Err("a recording is under way; perflens.stopRecording ends it".to_owned());
            }
            state.recording = Some(UnderWay::new(root.clone(), event.word()));
        }
        match spawn(&root, target, seconds, event) {
            Ok((child, input, output)) => {
                let session = Arc::clone(self);
                let verb = if profiled.is_some() { "Profiling" } else { "Recording" };
                let title = format!("{verb} {}", target.title());
                let about = Watched { root, title, profiled };
                tokio::spawn(async move { session.watch_recording(about, child, input, output).await });
                Ok(())
            }
            Err(error) => {
                self.state().recording = None;
                Err(format!("starting the recorder: {error}"))
            }
        }
    }

    /// Ends the recording; whether there was one.
    pub fn stop_recording(&self) -> bool {
        let recording = self.state().recording.clone();
        if let Some(recording) = &recording {
            recording.stop.stop();
        }
        recording.is_some()
    }

    async fn watch_recording(self: Arc<Self>, about: Watched, child: Child, input: ChildStdin, output: ChildStdout) {
        let Watched { root, title, profiled } = about;
        let stop = self.state().recording.as_ref().map(|recording| recording.stop.clone()).unwrap_or_default();
        let mut lines = lines_of(child, output);
        let token = self.show_recording(title, &stop).await;
        let mut input = Some(input);
        let mut shown: Option<PathBuf> = None;
        let mut end = None;
        loop {
            let line = tokio::select! {
                line = lines.recv() => line,
                () = stop.stopped(), if input.is_some() => {
                    // The end of its input is how the child is told.
                    input = None;
                    continue;
                }
            };
            let Some(line) = line else { break };
            match line {
                Line::Note(sentence) => self.editor.say(MessageType::INFO, format!("perflens: {sentence}")),
                Line::Building(command) => self.report(token.as_deref(), format!("building: {command}")).await,
                Line::Begun(how) => {
                    tracing::info!("recording {how}");
                    self.recording_begins();
                }
                Line::Progress { elapsed_ms, samples } => {
                    self.report(token.as_deref(), format!("{} s, {samples} samples", elapsed_ms / 1000)).await;
                }
                Line::Written(path) => {
                    let is_new = shown.as_ref() != Some(&path);
                    self.show_recorded(&root, &path, is_new);
                    shown = Some(path);
                }
                Line::Under(filter) => self.show_under(&root, &filter),
                // It is told again with the end.
                Line::Ended(_) => {}
                Line::Done(done) => {
                    self.state().recordings_seen.insert(done.path.clone());
                    end = Some(Ok(done));
                }
                Line::Failed(why) => end = Some(Err(why)),
            }
        }
        // Whoever is told may begin the next one at once.
        {
            let mut state = self.state();
            state.recording = None;
            if let Some(token) = &token {
                state.progress.remove(token);
            }
        }
        self.tell_changed();
        if let Some(token) = token {
            self.editor.end_progress(&token, None).await;
        }
        self.tell_end(end, profiled.as_ref()).await;
    }

    /// Tells what came of a recording.
    async fn tell_end(self: &Arc<Self>, end: Option<Result<Done, String>>, profiled: Option<&Profiled>) {
        match end {
            Some(Ok(Done { how, notes, samples, elapsed_ms, program, status, tested, .. })) => {
                if let (Some(profiled), Some(tested)) = (profiled, &tested) {
                    let recorded = Recorded { samples, elapsed_ms, how: &how, notes: &notes };
                    self.tell_tested(&profiled.order, tested, recorded).await;
                    self.offer_base(profiled);
                    return;
                }
                let seconds = elapsed_ms as f64 / 1000.0;
                let mut said = format!("perflens: {program}: {samples} samples in {seconds:.1} s, {how}");
                if let Some(status) = status {
                    said += "; it ended with ";
                    said += &status;
                }
                for note in notes {
                    said += "; ";
                    said += &note;
                }
                self.editor.say(MessageType::INFO, said);
            }
            Some(Err(why)) => self.editor.say(MessageType::ERROR, format!("perflens: {why}")),
            None => {
                let broke_off = "perflens: the recording broke off; what was written of it is kept";
                self.editor.say(MessageType::ERROR, broke_off);
            }
        }
    }

    /// What is under way measures from now on.
    pub(super) fn recording_begins(&self) {
        if let Some(recording) = &mut self.state().recording {
            recording.begin();
        }
        self.tell_changed();
    }

    /// Shows progress, with a button that stops the recording; `None` where the editor has none.
    pub(super) async fn show_recording(&self, title: String, stop: &Stop) -> Option<String> {
        if !self.state().capabilities.shows_progress {
            self.editor.say(MessageType::INFO, format!("perflens: {title}; perflens.stopRecording ends it"));
            return None;
        }
        let token = self.new_token();
        self.state().progress.insert(token.clone(), stop.clone());
        self.editor.begin_progress(&token, title).await.then_some(token)
    }

    pub(super) async fn report(&self, token: Option<&str>, message: String) {
        if let Some(token) = token {
            self.editor.report_progress(token, message).await;
        }
    }

    /// Shows what was written: opens it the first time, then reads it again.
    fn show_recorded(self: &Arc<Self>, root: &Path, path: &Path, is_new: bool) {
        let at = self.state().folders.iter().position(|folder| folder.root == root);
        let Some(at) = at else { return };
        if is_new {
            if let Err(error) = self.open_profile(at, path, None) {
                tracing::warn!("{}: {error}", path.display());
            }
        } else if self.state().folders[at].files().any(|file| file == path) {
            self.load(at, Cause::Written);
        }
    }

    /// Opens recordings of the session's folders that others make from now on, as a terminal does.
    pub(super) fn follow_recordings(self: &Arc<Self>) {
        let Some(recordings) = self.places.recordings.clone() else { return };
        let weak = Arc::downgrade(self);
        let start = SystemTime::now();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                let Some(session) = weak.upgrade() else { return };
                session.look_for_recordings(&recordings, start).await;
            }
        });
    }

    async fn look_for_recordings(self: &Arc<Self>, recordings: &Path, start: SystemTime) {
        let roots: Vec<PathBuf> = {
            let state = self.state();
            // What is being recorded here is opened as it comes.
            if state.recording.is_some() {
                return;
            }
            let wanted = state.folders.iter().filter(|folder| folder.config().refresh.auto_load);
            wanted.map(|folder| folder.root.clone()).collect()
        };
        for root in roots {
            let recordings = recordings.to_owned();
            let found = {
                let root = root.clone();
                tokio::task::spawn_blocking(move || newest_recording(&recordings, &root)).await
            };
            let Ok(Some((path, time))) = found else { continue };
            let is_new = time >= start && self.state().recordings_seen.insert(path.clone());
            if is_new {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                self.show_recorded(&root, &path, true);
                self.editor.say(MessageType::INFO, format!("perflens: opened the new recording {name}"));
            }
        }
    }
}

/// The newest recording that is complete, and when it was written.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub fn newest_recording(recordings: &Path, root: &Path) -> Option<(PathBuf, SystemTime)> {
    use crate::record::store::{About, Store};
    let all = Store::new(recordings, root).list();
    // What belongs to a recording is written last.
    all.into_iter().find(|(path, _)| About::read(path).is_some_and(|about| !about.is_base_run))
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub fn newest_recording(_: &Path, _: &Path) -> Option<(PathBuf, SystemTime)> {
    None
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(super) fn spawn(
    root: &Path,
    target: &Target,
    seconds: Option<u32>,
    event: RecordedEvent,
) -> std::io::Result<(Child, ChildStdin, ChildStdout)> {
    let mut command = Command::new(crate::record::held::THIS_PROGRAM);
    command.args(["record", "--watch", "--event", event.word(), "--workspace"]).arg(root);
    let mut order = None;
    if let Some(seconds) = seconds {
        command.arg("--duration").arg(format!("{seconds}s"));
    }
    match target {
        Target::Process(pid) => command.arg("--pid").arg(pid.to_string()),
        Target::Command(words) => command.arg("--").args(words),
        Target::Test(ordered) => {
            order = Some(serde_json::to_string(ordered)? + "\n");
            command.arg("--order")
        }
    };
    let mut child =
        command.current_dir(root).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let pipes = child.stdin.take().zip(child.stdout.take());
    let (mut input, output) = pipes.ok_or_else(|| std::io::Error::other("no pipes"))?;
    if let Some(order) = order {
        // Less than a pipe holds.
        input.write_all(order.as_bytes())?;
    }
    Ok((child, input, output))
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub(super) fn spawn(
    _: &Path,
    _: &Target,
    _: Option<u32>,
    _: RecordedEvent,
) -> std::io::Result<(Child, ChildStdin, ChildStdout)> {
    let _ = Command::new("");
    let _ = Stdio::null();
    Err(std::io::Error::other(
        "recording works on Linux with x86-64; here use your language's profiler and open its file",
    ))
}

/// A process of this user's that has to do with a folder, for a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

/// Processes that run in a folder or from it, the youngest first.
pub fn candidates(root: &Path, most: usize) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let link = |name: &str| std::fs::read_link(entry.path().join(name)).ok();
            let is_here = [link("exe"), link("cwd")].into_iter().flatten().any(|path| path.starts_with(root));
            let name = std::fs::read_to_string(entry.path().join("comm")).ok()?.trim_end().to_owned();
            (is_here && pid != std::process::id()).then_some(Candidate { pid, name })
        })
        .collect();
    all.sort_by_key(|candidate| std::cmp::Reverse(candidate.pid));
    all.truncate(most);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_split_as_shells_do() {
        for (text, expected) in [
            ("./app --fast 3", &["./app", "--fast", "3"][..]),
            ("  a  b ", &["a", "b"]),
            (r#"a "b c" 'd "e"' f\ g"#, &["a", "b c", r#"d "e""#, "f g"]),
            (r#"a "" x"y"z"#, &["a", "", "xyz"]),
            ("", &[]),
        ] {
            assert_eq!(words(text).unwrap(), expected, "{text}");
        }
        assert!(words("a 'b").is_err());
        assert_eq!(Target::read(" 12 "), Ok(Target::Process(12)));
        assert!(Target::read("").is_err());
    }
}
