//! One recording, from the wish to everything that was taken.
//!
//! ```text
//! command held ─▶ recorder in place ─▶ command let go ─▶ messages added up ─▶ end of command, time or wish
//! ```
//!
//! Messages are read on a thread of their own, so that making a profile in between holds nothing up.

use std::fmt::Write as _;
use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use profiler_ebpf::protocol::{EndReason, EventKind, FailureKind, Method, Start, VERSION, event};

use super::held::{self, CommandLine, Held, Running};
use super::helper::{self, Chances, Elevation, Missing, Recorder, Way, method_in_words};
use super::stacks::Stacks;
use super::tools::{self, Preparation};

/// How long a recorder may take until it has begun. Whoever types a password needs longer.
const PATIENCE: Duration = Duration::from_secs(20);
const PATIENCE_WITH_PASSWORD: Duration = Duration::from_mins(2);

/// How long the last messages may take after a stop.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// How long a command may take to end when it is asked to.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// Messages that may wait.
const QUEUE: usize = 20_000;

/// What to record.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) target: Target,
    pub(crate) duration: Option<Duration>,
    /// Samples per second and CPU.
    pub(crate) frequency: u32,
    pub(crate) events: Vec<EventKind>,
    pub(crate) elevation: Elevation,
    /// Only this method.
    pub(crate) method: Option<Method>,
    /// Root only: also processes of others.
    pub(crate) any_user: bool,
    /// What the command reads and writes.
    pub(crate) streams: Streams,
}

/// What a command reads and writes.
#[derive(Clone, Debug)]
pub(crate) enum Streams {
    /// What we do.
    Ours,
    /// Nothing: what it writes is for nobody.
    Nothing,
    /// These.
    Given { input: Arc<OwnedFd>, output: Arc<OwnedFd> },
}

/// Whom to record.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Command(CommandLine),
    Processes(Vec<u32>),
}

/// Whoever watches a recording.
pub(crate) trait Observer {
    /// It has begun, in this way.
    fn begun(&mut self, how: &str, events: &[EventKind]);
    /// It goes on: called a few times a second.
    fn progress(&mut self, elapsed: Duration, stacks: &Stacks);
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) stacks: Stacks,
    /// How it was recorded, in one line.
    pub(crate) how: String,
    /// What was sampled: not always what was asked for.
    pub(crate) events: Vec<EventKind>,
    /// How the command ended; `None` for processes that were there before.
    pub(crate) status: Option<ExitStatus>,
    /// Whether the command was ended by us.
    pub(crate) was_ended: bool,
    /// Why the recording may be shorter than it should be.
    pub(crate) cut_off: Option<String>,
}

/// Records. `stop` ends it early; what was taken until then counts.
pub(crate) fn record(
    request: &Request,
    preparation: &Preparation,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Outcome, String> {
    let mut chances = helper::chances(request.elevation);
    if let Some(method) = request.method {
        chances.ways.retain(
            |way| !matches!(way, Way::Own(own) if (*own == Method::StackCopies) != (method == Method::StackCopies)),
        );
        if method == Method::StackCopies {
            chances.ways = vec![Way::Own(Method::StackCopies)];
        }
    }
    let (held, pids) = match &request.target {
        Target::Command(command) => {
            let (input, output) = match &request.streams {
                Streams::Ours => (held::own_input(), Ok(None)),
                Streams::Nothing => (held::no_input(), held::no_output().map(Some)),
                Streams::Given { input, output } => (input.try_clone(), output.try_clone().map(Some)),
            };
            let fail = |error: std::io::Error| format!("starting the command: {error}");
            let held = Held::start(command, &input.map_err(fail)?, output.map_err(fail)?).map_err(fail)?;
            let pid = held.pid();
            (Some(held), vec![pid])
        }
        Target::Processes(pids) => (None, pids.clone()),
    };
    let pidfds = match helper::pidfds(&pids) {
        Ok(pidfds) => pidfds,
        Err(why) => {
            held.into_iter().for_each(Held::abandon);
            return Err(why);
        }
    };
    let begun = match begin(request, preparation, &chances, &pids, &pidfds, held.is_some()) {
        Ok(begun) => begun,
        Err(why) => {
            held.into_iter().for_each(Held::abandon);
            return Err(why);
        }
    };
    observer.begun(&begun.how, &begun.events);
    follow(begun, held, stop, observer)
}

/// A recorder that has answered.
struct Begun {
    recorder: Recorder,
    messages: Receiver<Message>,
    stacks: Stacks,
    how: String,
    events: Vec<EventKind>,
}

/// What the reading thread hands over.
enum Message {
    Said(event::Kind),
    /// There is no more; with what was wrong, if something was.
    Over(Option<String>),
}

/// Tries the ways there are until one begins.
fn begin(
    request: &Request,
    preparation: &Preparation,
    chances: &Chances,
    pids: &[u32],
    pidfds: &[OwnedFd],
    is_held: bool,
) -> Result<Begun, String> {
    let mut refused: Vec<String> = Vec::new();
    let mut missing = chances.missing.clone();
    for way in &chances.ways {
        for events in event_choices(&request.events) {
            let start = Start {
                version: VERSION,
                targets: pids.to_vec(),
                frequency: request.frequency,
                events: events.iter().map(|&event| event.into()).collect(),
                duration_ns: request
                    .duration
                    .map_or(0, |duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)),
                children: true,
                kernel: true,
                off_cpu_threshold_ns: 1_000_000,
                any_user: request.any_user,
                method: request.method.unwrap_or(Method::Unknown).into(),
                programs: programs(&request.target),
            };
            let mut stacks = Stacks::default();
            stacks.leave_out(preparation.left_out, preparation.leaves_out_first.then(|| pids[0]));
            stacks.removes_maps(preparation.removes_maps);
            if is_held {
                stacks.hold(pids[0]);
            }
            match try_way(way, &start, pidfds, &mut stacks) {
                Ok((recorder, messages)) => {
                    let hello = stacks.hello.clone().unwrap_or_default();
                    let better = if hello.limited_because.is_empty() {
                        refused.last().cloned().or_else(|| missing.as_ref().map(Missing::in_words))
                    } else {
                        Some(helper::clause(&hello.limited_because))
                    };
                    let mut how = format!("with {}", method_in_words(hello.method()));
                    if let Some(better) = better {
                        let _ = write!(how, "; eBPF is not used: {better}");
                    }
                    if events != request.events {
                        how.push_str("; page faults instead of allocations: they tell who touches new memory first");
                    }
                    return Ok(Begun { recorder, messages, stacks, how, events });
                }
                // No other way would help.
                Err(Refused { why, is_final: true }) => return Err(why),
                Err(Refused { why, .. }) => {
                    if !refused.contains(&why) {
                        refused.push(why);
                    }
                }
            }
        }
    }
    let mut why = if refused.is_empty() { "this method is not possible here".to_owned() } else { refused.join("; ") };
    if let Some(missing) = missing.take() {
        let _ = write!(why, "; {}", missing.in_words());
    }
    Err(why)
}

/// The program that a held command will be, and what it loads by itself, so that the recorder can get ready for it.
fn programs(target: &Target) -> Vec<String> {
    let Target::Command(command) = target else { return Vec::new() };
    let program = super::find_program(&command.program, command.folder.as_deref());
    let program = program.and_then(|program| std::path::absolute(program).ok());
    let later = program.as_deref().and_then(tools::loaded_later);
    program.into_iter().chain(later).filter_map(|path| path.into_os_string().into_string().ok()).collect()
}

/// What to ask for, and what instead where that is impossible.
fn event_choices(wanted: &[EventKind]) -> Vec<Vec<EventKind>> {
    let mut choices = vec![wanted.to_vec()];
    if wanted.contains(&EventKind::Alloc) {
        choices.push(vec![EventKind::PageFault]);
    }
    choices
}

impl Missing {
    /// As part of a sentence.
    pub(crate) fn in_words(&self) -> String {
        if self.remedy.is_empty() {
            self.why.clone()
        } else {
            format!("{}; this grants it once: {}", self.why, self.remedy)
        }
    }
}

/// Why a way did not begin.
struct Refused {
    why: String,
    /// Whether the target is at fault, and not the way.
    is_final: bool,
}

fn try_way(
    way: &Way,
    start: &Start,
    pidfds: &[OwnedFd],
    stacks: &mut Stacks,
) -> Result<(Recorder, Receiver<Message>), Refused> {
    let start_failed = |error| Refused { why: format!("starting the recorder: {error}"), is_final: false };
    let (recorder, stdout) = Recorder::start(way).map_err(start_failed)?;
    let (sender, messages) = sync_channel(QUEUE);
    std::thread::spawn(move || read(stdout, &sender));
    let sent = recorder.send_start(start.clone(), &helper::borrowed(pidfds));
    let patience = match way {
        Way::Elevated { by: "pkexec", .. } => PATIENCE_WITH_PASSWORD,
        _ => PATIENCE,
    };
    let deadline = Instant::now() + patience;
    let mut is_final = false;
    // A recorder that was refused its rights says so, or just ends.
    let why = loop {
        match messages.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Message::Said(kind)) => {
                stacks.take(kind);
                if let Some(failure) = stacks.failure.take() {
                    is_final = failure.kind() == FailureKind::Target;
                    break helper::in_words(&failure);
                }
                if stacks.is_attached() {
                    return Ok((recorder, messages));
                }
            }
            Ok(Message::Over(error)) => {
                break error.or_else(|| sent.err().map(|error| error.to_string())).unwrap_or_else(|| match way {
                    Way::Elevated { by: "sudo", .. } => {
                        "sudo did not start the recorder; it asks for no password here: sudo -v before it".to_owned()
                    }
                    Way::Elevated { by, .. } => format!("{by} did not start the recorder"),
                    _ => "the recorder ended at once".to_owned(),
                });
            }
            Err(_) => break "the recorder did not answer".to_owned(),
        }
    };
    recorder.finish(Duration::from_secs(1));
    Err(Refused { why, is_final })
}

/// The reading thread.
fn read(stdout: std::process::ChildStdout, to: &SyncSender<Message>) {
    let over = match helper::events(stdout) {
        // Nothing was said, or what is no word of a recorder's: whoever tried knows why that may be.
        Err(_) => None,
        Ok(mut events) => loop {
            match helper::next(&mut events) {
                Ok(Some(kind)) => {
                    if to.send(Message::Said(kind)).is_err() {
                        return;
                    }
                }
                Ok(None) => break None,
                Err(error) => break Some(format!("the recorder's words: {error}")),
            }
        },
    };
    let _ = to.send(Message::Over(over));
}

/// Adds up what comes until the end.
fn follow(begun: Begun, held: Option<Held>, stop: &AtomicBool, observer: &mut dyn Observer) -> Result<Outcome, String> {
    let Begun { recorder, messages, mut stacks, how, events } = begun;
    let mut running: Option<Running> = match held.map(Held::release) {
        None => None,
        Some(Ok(running)) => Some(running),
        Some(Err(why)) => {
            recorder.finish(Duration::from_secs(1));
            return Err(why);
        }
    };
    let stopper = recorder.stopper().map_err(|error| format!("the recorder: {error}"))?;
    let start = Instant::now();
    let mut shown = Instant::now();
    let mut stopped: Option<Instant> = None;
    let mut cut_off = None;
    loop {
        match messages.recv_timeout(Duration::from_millis(50)) {
            Ok(Message::Said(kind)) => stacks.take(kind),
            Ok(Message::Over(error)) => {
                if stacks.end.is_none() {
                    cut_off = Some(error.unwrap_or_else(|| "the recorder ended before its time".to_owned()));
                }
                break;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if stopped.is_none() && stop.load(Ordering::Relaxed) {
            stopped = Some(Instant::now());
            stopper.stop();
        }
        if stopped.is_some_and(|stopped| stopped.elapsed() > LAST_WORDS) {
            cut_off = Some("the recorder did not stop".to_owned());
            break;
        }
        if shown.elapsed() >= Duration::from_millis(200) {
            shown = Instant::now();
            observer.progress(start.elapsed(), &stacks);
        }
    }
    drop(stopper);
    recorder.finish(Duration::from_secs(2));
    let (status, was_ended) = end_command(running.take(), &stacks, cut_off.is_some(), stop);
    Ok(Outcome { stacks, how, events, status, was_ended, cut_off })
}

/// What was started only to be measured ends with the recording, unless the recorder broke down.
fn end_command(
    running: Option<Running>,
    stacks: &Stacks,
    has_broken_down: bool,
    stop: &AtomicBool,
) -> (Option<ExitStatus>, bool) {
    let Some(mut running) = running else { return (None, false) };
    while has_broken_down && !stop.load(Ordering::Relaxed) {
        if let Ok(Some(status)) = running.wait_for(Duration::from_millis(100)) {
            return (Some(status), false);
        }
    }
    // Ctrl-C in a terminal has told it already.
    let has_ended = stacks.end.as_ref().is_some_and(|end| end.reason() == EndReason::TargetsEnded);
    let patience = Duration::from_millis(if has_ended { 1000 } else { 200 });
    match running.wait_for(patience) {
        Ok(Some(status)) => (Some(status), false),
        _ => (running.end(END_PATIENCE).ok(), true),
    }
}
