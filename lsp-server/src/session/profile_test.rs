//! "Profile this": a test, a benchmark or a program of the file that is looked at, built, run and shown.
//!
//! What may be run is decided here: nothing of a workspace that is not trusted. The work is done by a child,
//! as with any recording ([`recording`](super::recording)); it is given the order on its input.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lsp_types::{Command, MessageType};
use serde_json::{Value, json};

use super::recording::Target;
use super::{Cause, Session};
use crate::commands::{RecordedEvent, Subject};
use crate::config::trust::Trust;
use crate::handlers::bases::title_of_before;
use crate::handlers::{hotspots, on_pool};
use crate::loader::Input;
use crate::lsp::client::CannotAsk;
use crate::runnable::{Offer, Order, Work};
use crate::state::folder::Folder;
use crate::watched::Tested;

/// How long the last load of a recording is waited for, to tell what it shows.
const LOAD_PATIENCE: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Hot spots in other files that are told.
const ELSEWHERE: usize = 3;

/// Whether a file is below a folder, links followed.
fn is_inside(file: &Path, root: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(file).zip(real(root)).is_some_and(|(file, root)| file.starts_with(root))
}

/// A test that is being profiled.
#[derive(Clone, Debug)]
pub(super) struct Profiled {
    pub(super) order: Order,
    /// The recording of it before this one.
    before: Option<PathBuf>,
}

/// What was ordered by what is offered for a file.
pub(super) struct Ordered {
    pub(super) order: Order,
    /// The recording of it before this one.
    before: Option<PathBuf>,
}

impl Session {
    /// What is ordered by what is offered for a file, if the workspace is trusted.
    pub(super) async fn ordered(&self, file: &Path, offer: Offer) -> Result<Ordered, String> {
        let (root, recordings, document) = {
            let state = self.state();
            let own = &state.folders[state.folder_of(file).ok_or("no folder is open")?];
            if let Some(why) = not_trusted(own) {
                return Err(why);
            }
            (own.root.clone(), state.recordings.clone(), state.documents.at(file).cloned())
        };
        let mut order =
            Order { root, file: file.to_owned(), runnable: offer.runnable, task: offer.task, work: None, turn: None };
        // What is on disk may be slow to tell.
        let looked = on_pool(move |_| {
            let (file, root) = (&order.file, &order.root);
            // Trust in a folder says nothing about files elsewhere, be they reached by a link in it.
            if !is_inside(file, root) {
                return Err(format!(
                    "{} is outside of {}, whose trust does not reach there",
                    file.display(),
                    root.display()
                ));
            }
            let on_disk = std::fs::read_to_string(file).ok();
            let is_unsaved =
                document.zip(on_disk).is_some_and(|(document, on_disk)| document.text.content() != on_disk);
            let (before, work) = newest(recordings.as_deref(), &order).unzip();
            order.work = work;
            Ok((order, before, is_unsaved))
        });
        let (order, before, is_unsaved) = looked.await.map_err(|error| error.to_string())??;
        if is_unsaved {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            self.editor
                .say(MessageType::INFO, format!("perflens: {name} has changes that are not saved; they are not run"));
        }
        Ok(Ordered { order, before })
    }

    /// Profiles what is offered for a file.
    pub async fn profile_test(self: &Arc<Self>, file: &Path, offer: Offer) -> Result<(), String> {
        let Ordered { order, before } = self.ordered(file, offer).await?;
        let is_same = self.has_base_of(file, &order.key()).await;
        let (root, target) = (order.root.clone(), Target::Test(Box::new(order.clone())));
        self.begin_recording(root, &target, None, RecordedEvent::Cpu, Some(Profiled { order, before }))?;
        self.ask_anew(file, is_same);
        Ok(())
    }

    /// Whether what the folder of a file is compared with is a recording of the same.
    pub(super) async fn has_base_of(&self, file: &Path, key: &str) -> bool {
        let (recordings, base) = {
            let state = self.state();
            let base = state.folder_of(file).and_then(|at| state.folders[at].base());
            (state.recordings.clone(), base.and_then(|base| base.file().map(Path::to_owned)))
        };
        let Some(base) = base else { return false };
        let key = key.to_owned();
        let is_same = move || test_of(recordings.as_deref(), &base).is_some_and(|test| test == key);
        on_pool(move |_| is_same()).await.unwrap_or(false)
    }

    /// A whole question: no filter of the one before stays, and no base that is of something else.
    pub(super) fn ask_anew(&self, file: &Path, is_base_of_same: bool) {
        let mut state = self.state();
        let state = &mut *state;
        let Some(at) = state.folder_of(file) else { return };
        let own = &mut state.folders[at];
        if own.base().is_some() && !is_base_of_same {
            own.chosen.base = Some(None);
        }
        own.layers.set_for_session("query.filters", json!([]));
        own.layers.set_for_session("query.type", Value::Null);
        own.read_settings(&state.trust);
    }

    /// Only what a test itself costs is shown.
    pub(super) fn show_under(self: &Arc<Self>, root: &Path, filter: &str) {
        let mut state = self.state();
        let state = &mut *state;
        for own in state.folders.iter_mut().filter(|folder| folder.root == root) {
            own.layers.set_for_session("query.filters", json!([filter]));
            own.read_settings(&state.trust);
        }
    }

    /// Tells what came of it, and offers what it can be compared with.
    pub(super) async fn tell_tested(self: &Arc<Self>, order: &Order, tested: &Tested, done: Recorded<'_>) {
        let at = {
            let state = self.state();
            state.folders.iter().position(|folder| folder.root == order.root)
        };
        let Some(at) = at else { return };
        self.wait_for_load(at).await;
        let name = &order.runnable.name;
        let seconds = done.elapsed_ms as f64 / 1000.0;
        let runs = if tested.runs == 1 { "1 run".to_owned() } else { format!("{} runs", tested.runs) };
        let counted = if tested.under.is_some() { tested.samples_under } else { done.samples };
        let mut said = match &tested.failure {
            Some(failure) => format!("perflens: {failure}. Until then: "),
            None => format!("perflens: {name}: "),
        };
        // Writing to a string can't fail.
        let _ = write!(said, "{counted} samples in {runs}, {seconds:.1} s, {}", done.how);
        let left_out = done.samples.saturating_sub(counted);
        if tested.under.is_some() && done.samples > 0 {
            let percent = left_out as f64 * 100.0 / done.samples as f64;
            let _ = write!(said, "; {percent:.0}% of all samples are set-up and left out (an empty filter shows them)");
        } else if order.runnable.kind != crate::runnable::Kind::Main && done.samples > 0 {
            said += "; set-up is in it, as the test's own function was not seen on the stacks";
        }
        for note in done.notes {
            said += "; ";
            said += note;
        }
        said += &self.elsewhere(at, order);
        let kind = if tested.failure.is_some() { MessageType::WARNING } else { MessageType::INFO };
        self.editor.say(kind, said);
    }

    pub(super) async fn wait_for_load(&self, at: usize) {
        let loaded = async {
            while self.state().folders.get(at).is_some_and(|folder| folder.load.is_some()) {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let _ = tokio::time::timeout(LOAD_PATIENCE, loaded).await;
    }

    /// What costs most in other files.
    fn elsewhere(&self, at: usize, order: &Order) -> String {
        let state = self.state();
        let Some(view) = state.folders.get(at).and_then(|folder| folder.view()) else { return String::new() };
        let is_elsewhere = |uri: Option<&lsp_types::Url>| {
            uri.and_then(crate::state::documents::file_path).is_some_and(|path| path != order.file)
        };
        let rows = hotspots::list(&state, view, Subject::Line, 100);
        let rows = rows.iter().filter(|row| is_elsewhere(row.uri.as_ref())).take(ELSEWHERE);
        let rows: Vec<String> = rows.map(|row| row.label.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        if rows.is_empty() { String::new() } else { format!("; elsewhere: {}", rows.join(" | ")) }
    }

    /// Offers the recording before as the base, unless it is that already.
    pub(super) fn offer_base(self: &Arc<Self>, profiled: &Profiled) {
        let Some(before) = profiled.before.clone() else { return };
        let is_comparing = {
            let state = self.state();
            let own = state.folders.iter().find(|folder| folder.root == profiled.order.root);
            own.is_none_or(|folder| folder.base().is_some())
        };
        if is_comparing {
            return;
        }
        let session = Arc::clone(self);
        let (root, name) = (profiled.order.root.clone(), profiled.order.runnable.name.clone());
        tokio::spawn(async move {
            let question = format!("perflens: compare {name} with its recording before this one?");
            let choices = vec!["Compare".to_owned(), "Don't".to_owned()];
            match session.editor.choose(question, choices).await {
                Ok(Some(choice)) if choice == "Compare" => session.compare_in(&root, before),
                Ok(_) => {}
                Err(CannotAsk) => {
                    let offer = Command {
                        title: format!("perflens: compare {name} with its recording before"),
                        command: "perflens.compareWith".to_owned(),
                        arguments: Some(vec![json!(before)]),
                    };
                    session.state().offers.push(offer);
                }
            }
        });
    }

    fn compare_in(self: &Arc<Self>, root: &Path, base: PathBuf) {
        let at = {
            let mut state = self.state();
            let at = state.folders.iter().position(|folder| folder.root == root);
            if let Some(at) = at {
                state.folders[at].chosen.title = Some(title_of_before(&base));
                state.folders[at].chosen.base = Some(Some(Input::File(base)));
            }
            at
        };
        if let Some(at) = at {
            self.load(at, Cause::Command);
        }
    }
}

/// Why nothing of a folder runs, and what to do about it.
pub fn not_trusted(folder: &Folder) -> Option<String> {
    let root = folder.root.display();
    (folder.trust != Trust::Trusted).then(|| {
        format!(
            "{root} is not trusted, so nothing of it is built or run; perflens.trustWorkspace trusts it, or in a \
             terminal: perflens trust {root}"
        )
    })
}

/// What is told of any recording.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recorded<'a> {
    pub(super) samples: u64,
    pub(super) elapsed_ms: u64,
    pub(super) how: &'a str,
    pub(super) notes: &'a [String],
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn newest(recordings: Option<&Path>, order: &Order) -> Option<(PathBuf, Work)> {
    crate::record::store::newest_of_test(recordings?, &order.root, &order.key())
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn newest(_: Option<&Path>, _: &Order) -> Option<(PathBuf, Work)> {
    None
}

/// The test that a recording is of.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn test_of(recordings: Option<&Path>, profile: &Path) -> Option<String> {
    profile
        .starts_with(recordings?)
        .then(|| crate::record::store::About::read(profile))
        .flatten()
        .map(|about| about.test)
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn test_of(_: Option<&Path>, _: &Path) -> Option<String> {
    None
}
