//! A client for the language server, over the pipes of a real process.
//!
//! It takes nothing on trust: what comes back has to be frames and nothing else, each request
//! has to be answered exactly once, and the process has to end when it is told to, without a
//! panic in its log. A [`Client`] that goes out of scope checks all of that, so every test of a
//! feature is also a test of the life cycle. Waiting has a deadline, far beyond anything that
//! is expected, and the failure shows what went back and forth.
//!
//! ```no_run
//! # use perflens_tests::lsp::{Scene, editor};
//! let scene = Scene::new("
//!     cpu/nanoseconds
//!     main.rs:1 main = 30_000_000
//!     //- /main.rs
//!     fn main() {}
//! ");
//! let (mut client, uri) = scene.open(editor("neovim 0.11"), "main.rs");
//! assert_eq!(client.hints(&uri), ["0:12 █ 100% 30.0ms here"]);
//! ```
//!
//! What is not here: a protocol library. Messages are plain JSON, because half of the tests send
//! what no library would.

mod document;
mod editors;
mod scene;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tempfile::TempDir;

pub use document::{Document, Encoding, lines};
pub use editors::{EDITORS, Editor, editor};
pub use scene::{DEMO, DEMO_HINTS, Scene};

use crate::cli::{binary, isolate};

/// How long anything may take before the test fails. Only a hang gets there, also on a machine
/// that is busy with something else.
pub const DEADLINE: Duration = Duration::from_secs(40);

/// What the client does with a request of the server.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Answers with this.
    Result(Value),
    /// Says that it doesn't know the method.
    Refuse,
    /// Says nothing, until the test does so with [`Client::respond`].
    Never,
}

/// What the client does with the server's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// Reads it.
    Read,
    /// Leaves it in the pipe, until that is full.
    Leave,
    /// Closes the pipe.
    Close,
}

type Answers = Box<dyn Fn(&str, &Value) -> Option<Answer> + Send>;

/// How to start the server.
pub struct Start {
    editor: Editor,
    params: Map<String, Value>,
    folders: Vec<PathBuf>,
    encoding: Encoding,
    args: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
    answers: Answers,
    log: Log,
}

impl Start {
    /// As this editor would, without a workspace.
    pub fn new(editor: Editor) -> Self {
        Self {
            editor,
            params: Map::new(),
            folders: Vec::new(),
            encoding: editor.expected_encoding(),
            args: vec!["lsp".into()],
            environment: Vec::new(),
            answers: Box::new(|_, _| None),
            log: Log::Read,
        }
    }

    /// Adds a workspace folder. The first is also where the server runs.
    #[must_use]
    pub fn folder(mut self, folder: &Path) -> Self {
        self.folders.push(folder.to_owned());
        self
    }

    /// Sets a field of the parameters of `initialize`, whatever else would be there.
    #[must_use]
    pub fn param(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.params.insert(name.to_owned(), value.into());
        self
    }

    /// Sets `initializationOptions`.
    #[must_use]
    pub fn options(self, options: Value) -> Self {
        self.param("initializationOptions", options)
    }

    /// Offers only this position encoding.
    #[must_use]
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        let mut capabilities = self.editor.capabilities();
        capabilities["general"] = json!({ "positionEncodings": [encoding.name()] });
        self.encoding = encoding;
        self.param("capabilities", capabilities)
    }

    /// Adds an argument to `perflens lsp`.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// Answers requests of the server; where it says `None`, the editor's way counts.
    #[must_use]
    pub fn answers(mut self, answers: impl Fn(&str, &Value) -> Option<Answer> + Send + 'static) -> Self {
        self.answers = Box::new(answers);
        self
    }

    /// What to do with the server's log.
    #[must_use]
    pub fn log(mut self, log: Log) -> Self {
        self.log = log;
        self
    }

    /// The parameters of `initialize`.
    pub fn initialize_params(&self) -> Value {
        let folders: Vec<Value> =
            self.folders.iter().map(|folder| json!({ "uri": uri(folder), "name": folder.file_name().map(OsString::from).unwrap_or_default().to_string_lossy() })).collect();
        let mut params = json!({
            "processId": std::process::id(),
            "clientInfo": { "name": self.editor.name, "version": self.editor.version },
            "rootUri": self.folders.first().map(|folder| uri(folder)),
            "workspaceFolders": if folders.is_empty() { Value::Null } else { folders.into() },
            "capabilities": self.editor.capabilities(),
        });
        for (name, value) in &self.params {
            params[name] = value.clone();
        }
        params
    }

    /// Starts the process and says nothing to it.
    pub fn spawn(self) -> Client {
        let home = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new(binary());
        isolate(&mut command, home.path());
        command
            .args(&self.args)
            .current_dir(self.folders.first().map_or(home.path(), PathBuf::as_path))
            .envs(self.environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("starting the server");
        let shared = Arc::new(Shared::default());

        let (to_server, messages) = channel::<Option<Vec<u8>>>();
        let mut stdin = child.stdin.take().expect("it is piped");
        std::thread::spawn(move || {
            while let Ok(Some(bytes)) = messages.recv() {
                if stdin.write_all(&bytes).and_then(|()| stdin.flush()).is_err() {
                    break;
                }
            }
        });
        let stdout = child.stdout.take().expect("it is piped");
        let reader =
            Reader { shared: shared.clone(), to_server: to_server.clone(), editor: self.editor, answers: self.answers };
        std::thread::spawn(move || reader.run(stdout));
        let stderr = child.stderr.take().expect("it is piped");
        let unread_log = match self.log {
            Log::Read => {
                shared.read_log(stderr);
                None
            }
            Log::Leave => Some(stderr),
            Log::Close => None,
        };
        shared.lock().log_closed = self.log != Log::Read;
        Client {
            child,
            shared,
            to_server,
            last_id: 0,
            encoding: self.encoding,
            server: Value::Null,
            has_ended: false,
            may_end: false,
            _unread_log: unread_log,
            home,
        }
    }

    /// Starts the process and initializes the session.
    pub fn start(self) -> Client {
        let params = self.initialize_params();
        let mut client = self.spawn();
        client.server = client.request("initialize", params);
        client.notify("initialized", json!({}));
        client
    }
}

/// A running server, and everything that it said.
pub struct Client {
    child: Child,
    shared: Arc<Shared>,
    to_server: Sender<Option<Vec<u8>>>,
    last_id: i64,
    /// The position encoding that was agreed on.
    pub encoding: Encoding,
    /// The answer to `initialize`.
    pub server: Value,
    /// Whether its end was seen.
    has_ended: bool,
    /// Whether the test has given it a reason to end.
    may_end: bool,
    _unread_log: Option<ChildStderr>,
    home: TempDir,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// What the reader of the server's output does.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Reading {
    #[default]
    On,
    Paused,
    Stopped,
}

#[derive(Default)]
struct State {
    /// Every request that was sent, and its answer.
    answers: BTreeMap<String, Option<Value>>,
    /// Answers to nothing in particular: errors whose id is null.
    orphans: Vec<Value>,
    /// Notifications and requests of the server that no test has taken yet.
    incoming: Vec<Value>,
    /// How often the server sent each method.
    counts: BTreeMap<String, usize>,
    /// Both directions, shortened, for people.
    trace: Vec<String>,
    /// The first thing that no server may do.
    fault: Option<String>,
    /// The output ended within a message, which is a fault unless the end was abrupt.
    is_cut: bool,
    stdout_closed: bool,
    reading: Reading,
    stderr: Vec<u8>,
    log_closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A test that failed while it held the lock has said what is wrong.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn read_log(self: &Arc<Self>, mut stderr: ChildStderr) {
        let shared = self.clone();
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut chunk) {
                shared.lock().stderr.extend_from_slice(&chunk[..count]);
            }
            shared.lock().log_closed = true;
            shared.changed.notify_all();
        });
    }
}

impl State {
    fn note(&mut self, direction: &str, message: &str) {
        let mut short: String = message.chars().take(400).collect();
        if short.len() < message.len() {
            short.push('…');
        }
        self.trace.push(format!("{direction} {short}"));
    }

    fn fault(&mut self, fault: String) {
        self.fault.get_or_insert(fault);
    }

    fn describe(&self) -> String {
        let skipped = self.trace.len().saturating_sub(40);
        format!(
            "{}{}\nstderr: {}",
            if skipped > 0 { format!("… {skipped} messages before\n") } else { String::new() },
            self.trace[skipped..].join("\n"),
            String::from_utf8_lossy(&self.stderr)
        )
    }
}

/// Reads what the server sends, and answers its requests.
struct Reader {
    shared: Arc<Shared>,
    to_server: Sender<Option<Vec<u8>>>,
    editor: Editor,
    answers: Answers,
}

impl Reader {
    fn run(self, stdout: ChildStdout) {
        let mut stdout = BufReader::new(stdout);
        let fault = loop {
            match read_frame(&mut stdout) {
                Ok(Output::Message(message)) => self.take(message),
                Ok(Output::End) => break None,
                Ok(Output::Cut) => {
                    self.shared.lock().is_cut = true;
                    break None;
                }
                Err(fault) => break Some(fault),
            }
            let mut state = self.shared.lock();
            while state.reading == Reading::Paused {
                state = self.shared.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
            }
            if state.reading == Reading::Stopped {
                break None;
            }
        };
        let mut state = self.shared.lock();
        if let Some(fault) = fault {
            state.fault(fault);
        }
        state.stdout_closed = true;
        drop(stdout);
        self.shared.changed.notify_all();
    }

    fn take(&self, message: Value) {
        let mut state = self.shared.lock();
        state.note("←", &message.to_string());
        if message["jsonrpc"] != "2.0" {
            state.fault(format!("no JSON-RPC 2.0: {message}"));
        }
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some(method), id) => {
                *state.counts.entry(method.to_owned()).or_default() += 1;
                if let Some(id) = id {
                    let answer = (self.answers)(method, &message["params"])
                        .unwrap_or_else(|| self.editor.answer(method, &message["params"]));
                    if let Some(response) = response_to(id, answer) {
                        state.note("→", &response.to_string());
                        // Fails when the pipe is closed already.
                        let _ = self.to_server.send(Some(frame(&response)));
                    }
                }
                state.incoming.push(message);
            }
            (None, None | Some(Value::Null)) => state.orphans.push(message),
            (None, Some(id)) => {
                let is_one = message.get("result").is_some() != message.get("error").is_some();
                if !is_one {
                    state.fault(format!("neither result nor error, or both: {message}"));
                }
                match state.answers.get(&id.to_string()) {
                    Some(None) => {
                        state.answers.insert(id.to_string(), Some(message));
                    }
                    Some(Some(_)) => state.fault(format!("answered twice: {message}")),
                    None => state.fault(format!("answer to nothing that was asked: {message}")),
                }
            }
        }
        drop(state);
        self.shared.changed.notify_all();
    }
}

fn response_to(id: &Value, answer: Answer) -> Option<Value> {
    match answer {
        Answer::Result(result) => Some(json!({ "jsonrpc": "2.0", "id": id, "result": result })),
        Answer::Refuse => {
            Some(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "unknown method" } }))
        }
        Answer::Never => None,
    }
}

/// What comes out next.
enum Output {
    Message(Value),
    End,
    /// The end, within a frame.
    Cut,
}

/// Reads what comes next, or tells what is wrong with it.
fn read_frame(stdout: &mut impl BufRead) -> Result<Output, String> {
    let mut length = None;
    loop {
        let mut line = Vec::new();
        match stdout.read_until(b'\n', &mut line) {
            Ok(0) if length.is_none() => return Ok(Output::End),
            Ok(0) => return Ok(Output::Cut),
            Ok(_) => {}
            Err(error) => return Err(format!("reading the output: {error}")),
        }
        let line = String::from_utf8_lossy(&line).into_owned();
        match line.strip_suffix("\r\n") {
            Some("") => break,
            Some(header) => match header.strip_prefix("Content-Length: ").map(str::parse::<usize>) {
                Some(Ok(value)) => length = Some(value),
                _ => return Err(format!("not a frame on stdout: {line:?}")),
            },
            None if "Content-Length: ".starts_with(&line) || line.starts_with("Content-Length: ") => {
                return Ok(Output::Cut);
            }
            None => return Err(format!("not a frame on stdout: {line:?}")),
        }
    }
    let mut body = vec![0; length.ok_or("a header without length")?];
    if stdout.read_exact(&mut body).is_err() {
        return Ok(Output::Cut);
    }
    serde_json::from_slice(&body)
        .map(Output::Message)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&body)))
}

/// A message as it goes over the pipe.
pub fn frame(message: &Value) -> Vec<u8> {
    frame_text(message.to_string())
}

/// Any bytes as the body of a frame.
pub fn frame_text(body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    [format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

/// The `file:` address of a path, as most clients write it.
pub fn uri(path: &Path) -> String {
    let hex = |digit: u8| char::from(b"0123456789ABCDEF"[usize::from(digit)]);
    let mut uri = String::from("file://");
    for byte in path.to_str().expect("a path in UTF-8").bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => uri.push(char::from(byte)),
            _ => uri.extend(['%', hex(byte >> 4), hex(byte & 15)]),
        }
    }
    uri
}

impl Client {
    /// Sends bytes as they are.
    pub fn raw(&self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref().to_vec();
        self.shared.lock().note("→ raw", &String::from_utf8_lossy(&bytes));
        let _ = self.to_server.send(Some(bytes));
    }

    /// Sends a message. A request is waited for when the client goes out of scope.
    pub fn message(&self, message: &Value) {
        self.messages(std::slice::from_ref(message));
    }

    /// Sends messages in one write.
    pub fn messages(&self, messages: &[Value]) {
        let mut bytes = Vec::new();
        let mut state = self.shared.lock();
        for message in messages {
            if let (Some(id), true) = (message.get("id"), message.get("method").is_some()) {
                let earlier = state.answers.insert(id.to_string(), None);
                assert!(earlier.is_none(), "the id {id} is used twice");
            }
            state.note("→", &message.to_string());
            bytes.extend(frame(message));
        }
        drop(state);
        // Fails when the server is gone, which whoever waits for the answer finds out.
        let _ = self.to_server.send(Some(bytes));
    }

    /// Says that a request with this id is on its way, though it is sent by [`Self::raw`].
    pub fn expect_answer(&self, id: impl Into<Value>) {
        self.shared.lock().answers.insert(id.into().to_string(), None);
    }

    /// A request with the next id, not yet sent. Without parameters when they are null.
    pub fn new_request(&mut self, method: &str, params: Value) -> (i64, Value) {
        self.last_id += 1;
        let mut message = json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method });
        if !params.is_null() {
            message["params"] = params;
        }
        (self.last_id, message)
    }

    /// Sends a request and doesn't wait for the answer.
    pub fn send(&mut self, method: &str, params: Value) -> i64 {
        let (id, message) = self.new_request(method, params);
        self.message(&message);
        id
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: Value) {
        self.message(&notification(method, params));
    }

    /// Cancels a request.
    pub fn cancel(&self, id: i64) {
        self.notify("$/cancelRequest", json!({ "id": id }));
    }

    /// Sends a request and takes its result.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.response(id).unwrap_or_else(|error| panic!("{method} failed: {error}\n{}", self.shared.lock().describe()))
    }

    /// Sends a request that has to fail, and takes the error.
    pub fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        match self.response(id) {
            Ok(result) => panic!("{method} did not fail: {result}\n{}", self.shared.lock().describe()),
            Err(error) => error,
        }
    }

    /// The answer to a request, result or error.
    pub fn response(&self, id: impl Into<Value>) -> Result<Value, Value> {
        let key = id.into().to_string();
        let message =
            self.wait(&format!("the answer to request {key}"), |state| state.answers.get(&key).cloned().flatten());
        match message.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(message["result"].clone()),
        }
    }

    /// The error that answers nothing in particular, if there is one.
    pub fn try_orphan(&self) -> Option<Value> {
        let mut state = self.shared.lock();
        if state.orphans.is_empty() { None } else { Some(state.orphans.remove(0)["error"].clone()) }
    }

    /// Every error so far that answers nothing in particular.
    pub fn take_orphans(&self) -> Vec<Value> {
        std::iter::from_fn(|| self.try_orphan()).collect()
    }

    /// Doesn't wait for the answer to this any more.
    pub fn forget_answer(&self, id: impl Into<Value>) {
        self.shared.lock().answers.remove(&id.into().to_string());
    }

    /// Whether the request is answered already.
    pub fn is_answered(&self, id: i64) -> bool {
        self.shared.lock().answers.get(&id.to_string()).is_some_and(Option::is_some)
    }

    /// The error that answers nothing in particular.
    pub fn orphan(&self) -> Value {
        let message = self.wait("an error without id", |state| {
            if state.orphans.is_empty() { None } else { Some(state.orphans.remove(0)) }
        });
        message["error"].clone()
    }

    /// The parameters of the next notification, or request, of that method.
    pub fn incoming(&self, method: &str) -> Value {
        self.incoming_message(method)["params"].clone()
    }

    /// The next request of that method, with its id.
    pub fn incoming_message(&self, method: &str) -> Value {
        self.wait(method, |state| {
            let index = state.incoming.iter().position(|message| message["method"] == method)?;
            Some(state.incoming.remove(index))
        })
    }

    /// Every message of that method so far that was not taken: their parameters.
    pub fn received(&self, method: &str) -> Vec<Value> {
        let state = self.shared.lock();
        state.incoming.iter().filter(|message| message["method"] == method).map(|m| m["params"].clone()).collect()
    }

    /// How often the server sent that method.
    pub fn count(&self, method: &str) -> usize {
        self.shared.lock().counts.get(method).copied().unwrap_or_default()
    }

    /// The methods that the server sent, and how often.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        self.shared.lock().counts.clone()
    }

    /// Answers a request of the server that has no answer yet.
    pub fn respond(&self, id: &Value, answer: Answer) {
        self.message(&response_to(id, answer).expect("an answer"));
    }

    /// The server's log so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.shared.lock().stderr).into_owned()
    }

    /// The folder that the server takes for the user's home.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Repeats until the closure has a value.
    pub fn until<T>(&mut self, what: &str, mut look: impl FnMut(&mut Self) -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            assert!(start.elapsed() < DEADLINE, "waited in vain for {what}\n{}", self.shared.lock().describe());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn wait<T>(&self, what: &str, mut look: impl FnMut(&mut State) -> Option<T>) -> T {
        let start = Instant::now();
        let mut state = self.shared.lock();
        loop {
            if let Some(found) = look(&mut state) {
                return found;
            }
            assert!(state.fault.is_none(), "{}\n{}", state.fault.clone().unwrap_or_default(), state.describe());
            assert!(!state.stdout_closed, "the server is gone, without {what}\n{}", state.describe());
            let left = DEADLINE.saturating_sub(start.elapsed());
            assert!(!left.is_zero(), "waited in vain for {what}\n{}", state.describe());
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }

    /// Closes the server's input, after everything that was sent.
    pub fn close_stdin(&self) {
        let _ = self.to_server.send(None);
    }

    /// Closes the reading end of the server's output.
    pub fn close_stdout(&mut self) {
        self.shared.lock().reading = Reading::Stopped;
        // The answer wakes the reader up.
        let id = self.send("$/wake-up", Value::Null);
        let start = Instant::now();
        while !self.shared.lock().stdout_closed {
            assert!(start.elapsed() < DEADLINE, "no answer to {id}");
            std::thread::sleep(Duration::from_millis(5));
        }
        self.may_end = true;
    }

    /// Reads nothing more than one message before [`Self::resume_reading`].
    pub fn pause_reading(&self) {
        self.shared.lock().reading = Reading::Paused;
    }

    /// Reads on.
    pub fn resume_reading(&self) {
        let mut state = self.shared.lock();
        if state.reading == Reading::Paused {
            state.reading = Reading::On;
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Kills the process.
    pub fn kill(&mut self) {
        self.child.kill().expect("killing the server");
        self.may_end = true;
        self.exit_code();
    }

    /// Waits for the end of the process: its exit code, `None` when a signal ended it.
    pub fn exit_code(&mut self) -> Option<i32> {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("waiting for the server") {
                break status;
            }
            if start.elapsed() > DEADLINE {
                let seen = self.shared.lock().describe();
                let _ = self.child.kill();
                let _ = self.child.wait();
                self.has_ended = true;
                panic!("the server does not end\n{seen}");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        self.has_ended = true;
        self.may_end = true;
        status.code()
    }

    /// Whether the process is alive.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("waiting for the server").is_none()
    }

    /// Ends the session as the protocol wants it.
    fn finish(&mut self) {
        if !self.has_ended && !self.may_end {
            self.request("shutdown", Value::Null);
            let unanswered = |state: &State| state.answers.values().filter(|answer| answer.is_none()).count();
            self.wait("the answers to all requests", |state| (unanswered(state) == 0).then_some(()));
            self.notify("exit", Value::Null);
        }
        if !self.has_ended {
            let any_code = self.may_end;
            let code = self.exit_code();
            assert!(any_code || code == Some(0), "the exit code is {code:?}");
        }
        self.resume_reading();
        let start = Instant::now();
        let mut state = self.shared.lock();
        while !(state.stdout_closed && state.log_closed) && start.elapsed() < DEADLINE {
            let left = Duration::from_millis(100);
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
        let log = String::from_utf8_lossy(&state.stderr).into_owned();
        assert!(state.stdout_closed && state.log_closed, "something keeps the pipes of the server open: {log}");
        assert!(!log.contains("panicked at"), "{log}");
        let is_orderly = self.child.try_wait().ok().flatten().is_some_and(|status| status.success());
        assert!(!(state.is_cut && is_orderly), "the output ends within a message\n{}", state.describe());
        assert!(state.fault.is_none(), "{}\n{}", state.fault.clone().unwrap_or_default(), state.describe());
        assert!(state.orphans.is_empty(), "errors that nobody expected: {:?}\n{}", state.orphans, state.describe());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let finished = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.finish()));
            if let Err(failure) = finished {
                let _ = self.child.kill();
                let _ = self.child.wait();
                std::panic::resume_unwind(failure);
            }
        }
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A notification. Without parameters when they are null.
pub fn notification(method: &str, params: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "method": method });
    if !params.is_null() {
        message["params"] = params;
    }
    message
}

/// What editors do with documents.
impl Client {
    /// Opens a file as it is on disk.
    pub fn open(&self, path: &Path) -> String {
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let uri = uri(path);
        self.open_text(&uri, &text);
        uri
    }

    /// Opens a document with this text.
    pub fn open_text(&self, uri: &str, text: &str) {
        let language = match uri.rsplit_once('.').map(|(_, ending)| ending) {
            Some("rs") => "rust",
            Some("go") => "go",
            Some("py") => "python",
            _ => "plaintext",
        };
        self.notify(
            "textDocument/didOpen",
            json!({ "textDocument": { "uri": uri, "languageId": language, "version": 1, "text": text } }),
        );
    }

    /// Opens a document whose text the test changes.
    pub fn open_document(&self, path: &Path) -> Document {
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let document = Document::new(uri(path), text, self.encoding);
        self.open_text(&document.uri, &document.text);
        document
    }

    /// Replaces a range, given as line and character of both ends.
    pub fn edit(&self, document: &mut Document, from: (u32, u32), to: (u32, u32), text: &str) {
        let change = document.edit(from, to, text);
        self.change(document, &[change]);
    }

    /// Sends changes that the document has already.
    pub fn change(&self, document: &Document, changes: &[Value]) {
        self.notify(
            "textDocument/didChange",
            json!({
                "textDocument": { "uri": document.uri, "version": document.version },
                "contentChanges": changes,
            }),
        );
    }

    /// The hints of the whole document, as the server sends them.
    pub fn raw_hints(&mut self, uri: &str) -> Vec<Value> {
        self.raw_hints_in(uri, (0, 0), (1_000_000, 0))
    }

    /// The hints of a range, as the server sends them. Null counts as none.
    pub fn raw_hints_in(&mut self, uri: &str, from: (u32, u32), to: (u32, u32)) -> Vec<Value> {
        let result = self.request("textDocument/inlayHint", hint_params(uri, from, to));
        result.as_array().cloned().unwrap_or_default()
    }

    /// The hints of the whole document: `line:character label`, lines from 0.
    pub fn hints(&mut self, uri: &str) -> Vec<String> {
        self.raw_hints(uri).iter().map(describe_hint).collect()
    }

    /// The hints of a range: `line:character label`, lines from 0.
    pub fn hints_in(&mut self, uri: &str, from: (u32, u32), to: (u32, u32)) -> Vec<String> {
        self.raw_hints_in(uri, from, to).iter().map(describe_hint).collect()
    }

    /// The hints as soon as there are any.
    pub fn hints_soon(&mut self, uri: &str) -> Vec<String> {
        self.until("hints", |client| Some(client.hints(uri)).filter(|hints| !hints.is_empty()))
    }

    /// The titles of the lenses: `line title`, lines from 0.
    pub fn lenses(&mut self, uri: &str) -> Vec<String> {
        let lenses = self.request("textDocument/codeLens", json!({ "textDocument": { "uri": uri } }));
        lenses
            .as_array()
            .into_iter()
            .flatten()
            .map(|lens| {
                format!("{} {}", lens["range"]["start"]["line"], lens["command"]["title"].as_str().unwrap_or("?"))
            })
            .collect()
    }

    /// The text of a hover; empty when there is none.
    pub fn hover(&mut self, uri: &str, line: u32, character: u32) -> String {
        let hover = self.request("textDocument/hover", position_params(uri, line, character));
        let contents = &hover["contents"];
        contents["value"].as_str().or_else(|| contents.as_str()).unwrap_or_default().to_owned()
    }

    /// Runs a command and takes its result.
    pub fn command(&mut self, command: &str, arguments: impl Into<Value>) -> Value {
        self.request("workspace/executeCommand", json!({ "command": command, "arguments": arguments.into() }))
    }
}

/// The parameters of `textDocument/inlayHint`.
pub fn hint_params(uri: &str, from: (u32, u32), to: (u32, u32)) -> Value {
    json!({ "textDocument": { "uri": uri }, "range": range(from, to) })
}

/// The parameters of requests about a place in a document.
pub fn position_params(uri: &str, line: u32, character: u32) -> Value {
    json!({ "textDocument": { "uri": uri }, "position": { "line": line, "character": character } })
}

/// A range, from line and character of both ends.
pub fn range(from: (u32, u32), to: (u32, u32)) -> Value {
    let position = |(line, character): (u32, u32)| json!({ "line": line, "character": character });
    json!({ "start": position(from), "end": position(to) })
}

/// The label of a hint, whether it is text or parts.
pub fn hint_label(hint: &Value) -> String {
    match &hint["label"] {
        Value::String(label) => label.clone(),
        parts => parts.as_array().into_iter().flatten().filter_map(|part| part["value"].as_str()).collect(),
    }
}

fn describe_hint(hint: &Value) -> String {
    format!("{}:{} {}", hint["position"]["line"], hint["position"]["character"], hint_label(hint))
}
