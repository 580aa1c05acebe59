//! An HTTP server that does what a test says, faults included.
//!
//! One thread per connection, one request per connection, on an address of the loopback that the
//! system chooses. It knows nothing of what it serves; who was asked what is kept.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
}

impl Asked {
    /// The path without the query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// A parameter of the query, or of a form in the body, decoded.
    pub fn parameter(&self, name: &str) -> Option<String> {
        let body = String::from_utf8_lossy(&self.body).into_owned();
        let query = self.target.split_once('?').map(|(_, query)| query.to_owned()).unwrap_or_default();
        [query, body].iter().flat_map(|text| text.split('&')).find_map(|pair| {
            let (key, value) = pair.split_once('=')?;
            (key == name).then(|| decoded(value))
        })
    }
}

fn decoded(text: &str) -> String {
    let text = text.replace('+', " ");
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let hex = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        if let (b'%', Some(high), Some(low)) = (bytes[at], hex(at + 1), hex(at + 2)) {
            out.push(u8::try_from(high * 16 + low).expect("two digits are a byte"));
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// What the server does.
#[derive(Clone, Debug)]
pub enum Does {
    /// Answers.
    Answer {
        /// The status.
        status: u16,
        /// Headers besides the length.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
    },
    /// Answers with half of that, and closes.
    Half(Vec<u8>),
    /// Writes these bytes and closes: no HTTP, if it pleases.
    Bytes(Vec<u8>),
    /// Announces a body of this size, and sends zeros until somebody has enough.
    Endless(u64),
    /// Says nothing until the test ends.
    Hang,
    /// Waits, then does something else.
    After(Duration, Box<Does>),
}

impl Does {
    /// Answers 200 with a body of a type.
    pub fn ok(kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::status(200, kind, body)
    }

    /// Answers with a status and a body of a type.
    pub fn status(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::Answer { status, headers: vec![("content-type".to_owned(), kind.to_owned())], body: body.into() }
    }

    /// The same with another header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Self::Answer { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }
}

#[derive(Debug, Default)]
struct End {
    is_over: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

impl End {
    fn wait(&self, at_most: Duration) {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let is_on = |(): &mut ()| !self.is_over.load(Ordering::SeqCst);
        drop(self.changed.wait_timeout_while(guard, at_most, is_on));
    }
}

/// A server; ends with the value.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    end: Arc<End>,
}

impl HttpServer {
    /// Starts to serve.
    pub fn start(does: impl Fn(&Asked) -> Does + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0", does)
    }

    /// Starts to serve at an address.
    pub fn start_at(address: &str, does: impl Fn(&Asked) -> Does + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).expect("listening on the loopback");
        let address = listener.local_addr().expect("it has an address");
        let (asked, end) = (Arc::<Mutex<Vec<Asked>>>::default(), Arc::<End>::default());
        let (kept, over) = (Arc::clone(&asked), Arc::clone(&end));
        let does = Arc::new(does);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if over.is_over.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let (kept, over, does) = (Arc::clone(&kept), Arc::clone(&over), Arc::clone(&does));
                std::thread::spawn(move || {
                    let Some(request) = read(&stream) else { return };
                    kept.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
                    // Whoever asked may be gone by now.
                    let _ = act(&stream, does(&request), &over);
                });
            }
        });
        Self { address, asked, end }
    }

    /// `127.0.0.1:12345`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What it was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The paths of it.
    pub fn paths(&self) -> Vec<String> {
        self.asked().iter().map(|asked| asked.path().to_owned()).collect()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.end.is_over.store(true, Ordering::SeqCst);
        self.end.changed.notify_all();
        // It looks up when somebody comes.
        drop(TcpStream::connect(self.address));
    }
}

fn read(stream: &TcpStream) -> Option<Asked> {
    stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    // What is no text ends at once.
    if reader.read_line(&mut line).is_err() {
        line.clear();
    }
    if !line.contains(" HTTP/1.") {
        // As servers do that are spoken to in TLS.
        let _ = (&mut &*stream).write_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n400 Bad Request");
        return None;
    }
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body).ok()?;
    Some(Asked { method, target, headers, body })
}

fn act(mut stream: &TcpStream, does: Does, end: &End) -> std::io::Result<()> {
    match does {
        Does::Answer { status, headers, body } => {
            let more: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let (length, more) = (body.len(), more.concat());
            let head =
                format!("HTTP/1.1 {status} Status\r\ncontent-length: {length}\r\nconnection: close\r\n{more}\r\n");
            stream.write_all(head.as_bytes())?;
            stream.write_all(&body)
        }
        Does::Half(body) => {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            stream.write_all(head.as_bytes())?;
            stream.write_all(&body[..body.len() / 2])
        }
        Does::Bytes(bytes) => stream.write_all(&bytes),
        Does::Endless(length) => {
            stream.write_all(format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").as_bytes())?;
            let zeros = vec![0; 64 << 10];
            loop {
                stream.write_all(&zeros)?;
            }
        }
        Does::Hang => {
            end.wait(Duration::from_mins(2));
            Ok(())
        }
        Does::After(time, does) => {
            end.wait(time);
            act(stream, *does, end)
        }
    }
}
