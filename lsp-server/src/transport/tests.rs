//! What no client can make the real server do: handlers that panic. The service here does
//! nothing else but count.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lsp_types::{
    DidChangeTextDocumentParams, Hover, HoverParams, InitializeParams, InitializeResult, InlayHint, InlayHintParams,
};
use serde_json::{Value, json};
use tower_lsp::jsonrpc::Result;
use tower_lsp::{LanguageServer, LspService};
use tracing_subscriber::filter::LevelFilter;

use super::{End, serve};

/// Counts calls, and panics while it holds what counts them.
#[derive(Default)]
struct Faulty {
    calls: Arc<Mutex<u64>>,
}

impl Faulty {
    fn count(&self) -> std::sync::MutexGuard<'_, u64> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        *calls += 1;
        calls
    }
}

#[tower_lsp::async_trait]
impl LanguageServer for Faulty {
    async fn initialize(&self, _: InitializeParams) -> Result<InitializeResult> {
        Ok(InitializeResult::default())
    }

    async fn shutdown(&self) -> Result<()> {
        Ok(())
    }

    async fn did_change(&self, _: DidChangeTextDocumentParams) {
        let calls = self.count();
        panic!("in notification {calls}");
    }

    async fn hover(&self, _: HoverParams) -> Result<Option<Hover>> {
        let calls = self.count();
        panic!("at once,\nin call {calls}");
    }

    async fn inlay_hint(&self, _: InlayHintParams) -> Result<Option<Vec<InlayHint>>> {
        tokio::task::yield_now().await;
        let calls = self.count();
        panic!("later, in call {calls}");
    }
}

/// Input that a test feeds, message by message.
struct Feed {
    messages: Receiver<Vec<u8>>,
    rest: VecDeque<u8>,
}

impl Read for Feed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            // Without a sender it is the end of input.
            self.rest.extend(self.messages.recv().unwrap_or_default());
        }
        self.rest.read(buffer)
    }
}

/// Bytes that are sent on as they come.
#[derive(Clone)]
struct Bytes(Sender<Vec<u8>>);

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn frame(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// The messages in what was written.
fn replies(written: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(written);
    text.split("Content-Length: ")
        .filter_map(|frame| serde_json::from_str(frame.split_once("\r\n\r\n")?.1).ok())
        .collect()
}

/// Runs a session of these messages; the last comes once all others are answered. Its end, the
/// replies by id, and the lines of the log.
fn session(messages: &[Value]) -> (End, Vec<Value>, Vec<String>) {
    let (log, logged) = channel();
    let log = tracing_subscriber::fmt()
        .with_writer(Mutex::new(Bytes(log)))
        .with_ansi(false)
        .without_time()
        .with_max_level(LevelFilter::WARN)
        .finish();
    let logging = tracing::subscriber::set_default(log);
    // Panics of other tests are theirs.
    let (own, others) = (std::thread::current().id(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() == own {
            crate::log::panicked(panic);
        } else {
            others(panic);
        }
    }));

    let (feed, input) = channel();
    let (output, written) = channel();
    let questions = messages.iter().filter(|message| message["id"].is_u64()).count();
    let messages: Vec<Vec<u8>> = messages.iter().map(frame).collect();
    let client = std::thread::spawn(move || {
        let (last, first) = messages.split_last().unwrap();
        for message in first {
            feed.send(message.clone()).unwrap();
        }
        let mut all = Vec::new();
        while replies(&all).len() < questions {
            all.extend(written.recv_timeout(Duration::from_secs(30)).expect("all are answered"));
        }
        feed.send(last.clone()).unwrap();
        all.extend(written.iter().flatten());
        replies(&all)
    });
    let calls = Arc::new(Mutex::new(0));
    let (service, socket) = LspService::build(|_| Faulty { calls: Arc::clone(&calls) })
        .custom_method("calls", async |faulty: &Faulty| {
            Ok(*faulty.calls.lock().unwrap_or_else(PoisonError::into_inner))
        })
        .finish();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let input = Feed { messages: input, rest: VecDeque::new() };
    let end = runtime.block_on(serve(service, socket, input, Bytes(output), |_| {}));
    drop(runtime);
    drop(logging);
    drop(std::panic::take_hook());
    let mut replies = client.join().unwrap();
    replies.sort_by_key(|reply| reply["id"].as_u64());
    let log = String::from_utf8(logged.try_iter().flatten().collect()).unwrap();
    (end, replies, log.lines().map(str::to_owned).collect())
}

#[test]
fn a_handler_that_panics_is_one_reply_and_one_line() {
    let place = json!({ "textDocument": { "uri": "file:///a.rs" }, "position": { "line": 0, "character": 0 } });
    let start = json!({ "line": 0, "character": 0 });
    let range = json!({ "textDocument": { "uri": "file:///a.rs" }, "range": { "start": start, "end": start } });
    let change = json!({ "textDocument": { "uri": "file:///a.rs", "version": 2 }, "contentChanges": [] });
    let call = |id: u64, method: &str, params: &Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let tell = |method: &str, params: &Value| json!({ "jsonrpc": "2.0", "method": method, "params": params });
    let (end, replies, log) = session(&[
        call(1, "initialize", &json!({ "capabilities": {} })),
        call(2, "textDocument/hover", &place),
        tell("textDocument/didChange", &change),
        call(3, "textDocument/hover", &place),
        call(4, "textDocument/inlayHint", &range),
        json!({ "jsonrpc": "2.0", "id": 5, "method": "calls" }),
        call(6, "textDocument/hover", &place),
        json!({ "jsonrpc": "2.0", "id": 7, "method": "calls" }),
        json!({ "jsonrpc": "2.0", "id": 8, "method": "shutdown" }),
        tell("exit", &Value::Null),
    ]);
    assert_eq!(end, End::Orderly);
    let ids: Vec<&Value> = replies.iter().map(|reply| &reply["id"]).collect();
    assert_eq!(ids, [1, 2, 3, 4, 5, 6, 7, 8], "each once: {replies:#?}");
    for (id, method) in [(2, "hover"), (3, "hover"), (4, "inlayHint"), (6, "hover")] {
        let error = &replies[id - 1]["error"];
        assert_eq!(error["code"], -32603, "{error}");
        assert_eq!(error["message"], format!("textDocument/{method} failed inside perflens"));
    }
    // Every call was counted, though each left the lock poisoned.
    assert!([3, 4].contains(&replies[4]["result"].as_u64().unwrap()), "{}", replies[4]);
    assert!([4, 5].contains(&replies[6]["result"].as_u64().unwrap()), "{}", replies[6]);
    assert!(replies[7]["error"].is_null(), "{}", replies[7]);
    let mut lines: Vec<&str> = log
        .iter()
        .filter_map(|line| line.split_once("a bug in perflens: ")?.1.split_once(" (at "))
        .map(|it| it.0)
        .collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), log.len(), "nothing but that: {log:#?}");
    assert_eq!(lines.len(), 5, "{log:#?}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("at once, in call ")).count(), 3, "{log:#?}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("in notification ")).count(), 1, "{log:#?}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("later, in call ")).count(), 1, "{log:#?}");
}
