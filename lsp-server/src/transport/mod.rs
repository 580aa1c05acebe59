//! The loop between the editor and tower-lsp's service.
//!
//! tower-lsp routes requests, decodes parameters, keeps the protocol's states and the book of
//! cancellations. Its own `Server` is not used: it runs everything in four shared slots, so
//! that cancelling waits for what it should cancel; it stops at the first message it can't
//! read; and it does not end on `exit` while the pipe stays open. Here instead:
//!
//! * **Order.** Messages are taken one by one. Each handler is polled once on the spot before
//!   the next message is looked at. *Law 1: notification handlers finish in that poll. Law 2:
//!   request handlers take their snapshot before their first await.* So a request sees exactly
//!   the edits that came before it, and `initialize` is effective before what follows it.
//! * **No slots.** A handler that is not ready becomes a task of its own; cancellation,
//!   edits and replies never wait for it.
//! * **No panic spreads.** A handler that panics becomes one error reply; the log line about it
//!   is the panic's own ([`log_panics`](crate::log::log_panics)).
//! * **Nothing is fatal but the end.** What can't be read is answered as JSON-RPC says.
//! * **One writer** owns stdout, so that messages never mix and progress keeps its order.
//! * **The end comes promptly**: after `exit`, at the end of input, when nobody reads the
//!   output any more, and when the editor's process is gone.

mod framing;
mod notifications;
mod parent;
#[cfg(test)]
mod tests;

use std::io::{Read, Write};
use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{FutureExt, SinkExt, StreamExt};
use serde_json::Value;
use tokio::sync::mpsc;
use tower_lsp::jsonrpc::{Error, ErrorCode, Id, Request, Response};
use tower_lsp::{ClientSocket, LanguageServer, LspService};
use tower_service::Service;

use framing::Frame;

/// How a session ended, as a process's exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// `exit` after `shutdown`.
    Orderly,
    /// Anything else.
    Abrupt,
}

impl End {
    /// What the protocol wants the process to exit with.
    pub fn code(self) -> i32 {
        i32::from(self == Self::Abrupt)
    }
}

/// How long the last messages may take to leave.
const FLUSH: Duration = Duration::from_millis(500);

/// Serves one session. `on_initialize` gets the raw parameters of `initialize` before the
/// handler does, since the typed ones lose what is newer than the library.
pub async fn serve<S: LanguageServer>(
    mut service: LspService<S>,
    socket: ClientSocket,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    mut on_initialize: impl FnMut(&Value),
) -> End {
    let mut frames = read_frames(input);
    let (out, written, mut output_closed) = write_frames(output);
    let (mut requests, replies) = socket.split();
    let forward = out.clone();
    // Everything the server asks or tells the client by itself.
    let asking = tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            send(&forward, &request);
        }
    });
    let mut replies = Replies { sink: replies };
    let (parent_gone, mut gone) = mpsc::channel(1);
    let mut is_shut_down = false;
    let end = loop {
        let frame = tokio::select! {
            biased;
            _ = output_closed.recv() => break End::Abrupt,
            Some(()) = gone.recv() => break End::Abrupt,
            frame = frames.recv() => frame,
        };
        let body = match frame {
            Some(Frame::Body(body)) => body,
            Some(Frame::Unreadable(why)) => {
                refuse(&out, ErrorCode::ParseError, &why);
                continue;
            }
            None => break End::Abrupt,
        };
        match Message::read(&body) {
            Ok(Message::Call(call)) => {
                let method = call.method().to_owned();
                match method.as_str() {
                    "exit" => break if is_shut_down { End::Orderly } else { End::Abrupt },
                    "initialize" => {
                        let parameters = call.params().cloned().unwrap_or_default();
                        if let Some(process) = parameters["processId"].as_u64() {
                            parent::watch(process, parent_gone.clone());
                        }
                        on_initialize(&parameters);
                    }
                    "shutdown" => is_shut_down = true,
                    _ => notifications::check(&method, call.params()),
                }
                dispatch(&mut service, call, &out).await;
            }
            Ok(Message::Reply(reply)) => replies.deliver(reply).await,
            Err((code, why)) => refuse(&out, code, &why),
        }
    };
    // Tasks end with the process; only what is already said still leaves.
    asking.abort();
    drop(out);
    let _ = tokio::time::timeout(FLUSH, tokio::task::spawn_blocking(move || written.recv())).await;
    end
}

/// A message from the editor.
enum Message {
    Call(Request),
    Reply(Response),
}

impl Message {
    fn read(body: &[u8]) -> Result<Self, (ErrorCode, String)> {
        // Some editors cut characters in half; what they meant around that still counts.
        let text = String::from_utf8_lossy(body);
        let mut value: Value = serde_json::from_str(&text)
            .map_err(|error| (ErrorCode::ParseError, format!("the message is not JSON: {error}")))?;
        let Some(object) = value.as_object_mut() else {
            return Err((ErrorCode::InvalidRequest, "the message is no JSON-RPC object".to_owned()));
        };
        let is_call = object.contains_key("method");
        if is_call {
            let takes_none = matches!(object["method"].as_str(), Some("shutdown" | "exit"));
            if takes_none || object.get("params").is_some_and(Value::is_null) {
                object.remove("params");
            }
            notifications::mend_version(object);
            // Our own requests have parameters by name only, all of which may be left out.
            let is_ours = object["method"].as_str().is_some_and(|method| method.starts_with("perflens/"));
            if is_ours && object.get("params").is_none_or(|params| params == &Value::Array(Vec::new())) {
                object.insert("params".to_owned(), serde_json::json!({}));
            }
        }
        let invalid = |error: serde_json::Error| (ErrorCode::InvalidRequest, format!("no valid message: {error}"));
        if is_call {
            serde_json::from_value(value).map(Self::Call).map_err(invalid)
        } else if object.contains_key("result") || object.contains_key("error") {
            serde_json::from_value(value).map(Self::Reply).map_err(invalid)
        } else {
            Err((ErrorCode::InvalidRequest, "the message is neither a request nor a reply".to_owned()))
        }
    }
}

/// Starts a handler, and finishes it here when it is ready at once.
async fn dispatch<S: LanguageServer>(service: &mut LspService<S>, call: Request, out: &Out) {
    let id = call.id().cloned();
    let method = call.method().to_owned();
    if futures_util::future::poll_fn(|context| service.poll_ready(context)).await.is_err() {
        return;
    }
    let Ok(handler) = std::panic::catch_unwind(AssertUnwindSafe(|| service.call(call))) else {
        return answer_panic(out, id, &method);
    };
    let mut handler = Box::pin(AssertUnwindSafe(handler).catch_unwind());
    let finish = {
        let out = out.clone();
        move |result: std::thread::Result<Result<Option<Response>, _>>| match result {
            Ok(Ok(Some(response))) => send(&out, &response),
            Ok(Ok(None)) => {
                // The library ignores what starts with `$/`, but a request wants an answer.
                if let Some(id) = id {
                    send(&out, &Response::from_error(id, Error::method_not_found()));
                }
            }
            Ok(Err(tower_lsp::ExitedError { .. })) => {}
            Err(_) => answer_panic(&out, id, &method),
        }
    };
    // The waker of this poll wakes nobody; the task below polls again and registers its own.
    match handler.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop())) {
        Poll::Ready(result) => finish(result),
        Poll::Pending => {
            tokio::spawn(async move { finish(handler.await) });
        }
    }
}

fn answer_panic(out: &Out, id: Option<Id>, method: &str) {
    if let Some(id) = id {
        let mut error = Error::internal_error();
        error.message = format!("{method} failed inside perflens").into();
        send(out, &Response::from_error(id, error));
    }
}

/// Hands replies of the editor to whoever asked.
struct Replies<S> {
    sink: S,
}

impl<S: futures_util::Sink<Response> + Unpin> Replies<S> {
    async fn deliver(&mut self, reply: Response) {
        // The library panics when the one who asked is gone.
        let delivered = AssertUnwindSafe(self.sink.send(reply)).catch_unwind().await;
        if delivered.is_err() {
            tracing::debug!("a reply came for a question nobody waits for");
        }
    }
}

type Out = Sender<Vec<u8>>;

fn send(out: &Out, message: &impl serde::Serialize) {
    match serde_json::to_vec(message) {
        // Nobody reads any more: the loop learns of it by itself.
        Ok(body) => drop(out.send(body)),
        Err(error) => tracing::error!("a message could not be written: {error}"),
    }
}

fn refuse(out: &Out, code: ErrorCode, why: &str) {
    tracing::warn!("{why}");
    let error = Error { code, message: why.to_owned().into(), data: None };
    send(out, &Response::from_error(Id::Null, error));
}

/// Reads on a thread of its own: a blocked read must not hold up the end of the process.
fn read_frames(input: impl Read + Send + 'static) -> mpsc::Receiver<Frame> {
    let (frames, received) = mpsc::channel(64);
    std::thread::spawn(move || {
        let mut reader = framing::Reader::new(input);
        while let Some(frame) = reader.next() {
            if frames.blocking_send(frame).is_err() {
                return;
            }
        }
    });
    received
}

/// Writes on a thread of its own. Returns where to send bodies, what ends when all are
/// written, and what speaks up when nobody reads them.
fn write_frames(mut output: impl Write + Send + 'static) -> (Out, Receiver<()>, mpsc::Receiver<()>) {
    let (out, bodies) = channel::<Vec<u8>>();
    let (done, written) = channel();
    let (closed, output_closed) = mpsc::channel(1);
    std::thread::spawn(move || {
        // Dropped at the end, whichever way it comes.
        let _done = done;
        while let Ok(body) = bodies.recv() {
            let header = format!("Content-Length: {}\r\n\r\n", body.len());
            let result = output
                .write_all(header.as_bytes())
                .and_then(|()| output.write_all(&body))
                .and_then(|()| output.flush());
            if result.is_err() {
                let _ = closed.blocking_send(());
                return;
            }
        }
    });
    (out, written, output_closed)
}
