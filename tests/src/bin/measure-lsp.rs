//! Measures the language server from outside, over its pipes, next to the budgets that are set
//! for it. `tests/measure-lsp` builds the release program and runs this.
//!
//! What is timed is from the first byte of a request to the last byte of its answer. The client
//! is as thin as it can be, since its own work would count; the full one, which checks
//! everything, is `perflens_tests::lsp`. A missed budget is visible in the table and is no
//! failure: other work on the machine shifts figures. What the server's processor time per
//! request is stands beside them, since that is shifted least.

#![expect(clippy::print_stdout, reason = "the table is the point")]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use perflens_tests::cli::binary;
use perflens_tests::lsp::{frame, uri};
use perflens_tests::mini::Mini;
use serde_json::{Value, json};

/// Lines of the file that the budget is stated for.
const LINES: usize = 5_000;
/// Lines that an editor shows at a time.
const WINDOW: usize = 60;
const ROUNDS: usize = 2_000;
const STARTS: usize = 50;

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("main.rs");
    std::fs::write(&file, source(LINES)).expect("writing a file");
    Mini::parse(&profile(LINES)).write_to(&folder.path().join("p.pb.gz"));

    println!("{:<58} {:>10} {:>10} {:>10} {:>10}   budget", "", "p50", "p99", "max", "CPU");
    let (from_start, from_write) = starts(folder.path());
    row("start of the process to the answer to initialize", from_start.into(), "");
    row("initialize to its answer", from_write.into(), "20 ms");
    println!("{:<58} {:>10} {:>32}   25 MiB", "memory when idle, without a profile (VmRSS)", idle(folder.path()), "");

    for (limit, per_file) in [("", 200), (", no limit of hints", 100_000)] {
        let mut server = Server::start(folder.path(), json!({ "hints": { "perFile": per_file, "minShare": 0 } }));
        server.open(&file, LINES);
        row(
            &format!("a request that asks nothing{limit}"),
            server.time(ROUNDS, |_| ("perflens-tests/none", json!({}))),
            "",
        );
        let address = uri(&file);
        let window = |round: usize| {
            let first = round * 7919 % (LINES - WINDOW);
            ("textDocument/inlayHint", hint_params(&address, first, first + WINDOW))
        };
        row(
            &format!("hints, {WINDOW} of {LINES} lines, all of them hot{limit}"),
            server.time(ROUNDS, window),
            "p99 2 ms",
        );
        let whole = |_| ("textDocument/inlayHint", hint_params(&address, 0, LINES));
        row(&format!("hints, all of {LINES} lines{limit}"), server.time(ROUNDS / 4, whole), "p99 2 ms");
        row(&format!("an edit and hints of {WINDOW} lines{limit}"), server.edits(&address, ROUNDS), "");
        row(&format!("an edit, of a hundred in a row{limit}"), server.edits_in_a_row(&address, 50), "1 ms");
        if per_file == 200 {
            let lenses = |_| ("textDocument/codeLens", json!({ "textDocument": { "uri": address } }));
            row("lenses", server.time(ROUNDS / 4, lenses), "");
            let hover = |round: usize| {
                let position = json!({ "line": 3001 + round % 40, "character": 4 });
                ("textDocument/hover", json!({ "textDocument": { "uri": address }, "position": position }))
            };
            assert!(
                server.call("textDocument/hover", &hover(0).1).contains("with calls"),
                "there is something to hover"
            );
            row("a hover", server.time(ROUNDS / 4, hover), "");
            println!("{:<58} {:>10}", "memory with that profile", mebibytes(server.child.id()));
        }
    }
    let large = 100_000;
    let big = folder.path().join("big.rs");
    std::fs::write(&big, source(large)).expect("writing a file");
    let mini = profile(LINES).replace("main.rs", "big.rs");
    Mini::parse(&mini).write_to(&folder.path().join("p.pb.gz"));
    let mut server = Server::start(folder.path(), json!({}));
    server.open(&big, large);
    let address = uri(&big);
    row(&format!("an edit and hints of {WINDOW} lines, file of {large} lines"), server.edits(&address, ROUNDS / 4), "");
    row(&format!("an edit, of a hundred in a row, file of {large} lines"), server.edits_in_a_row(&address, 10), "1 ms");
    mapped_lines(folder.path());
}

/// Lines that all have a cost and none of which is where it was measured.
const MAPPED: usize = 50_000;

fn mapped_lines(folder: &Path) {
    let file = folder.join("mapped.rs");
    let text = source(MAPPED);
    let hash = record(folder, &text);
    // A line more before every thousandth.
    let later: Vec<String> = (0..)
        .zip(text.lines())
        .map(|(at, line)| if at % 1000 == 0 { format!("// new {at}\n{line}\n") } else { format!("{line}\n") })
        .collect();
    std::fs::write(&file, later.concat()).expect("writing a file");
    Mini::parse(&profile(MAPPED).replace("main.rs", &file.display().to_string())).write_to(&folder.join("p.pb.gz"));
    let files = json!([{ "path": "mapped.rs", "hash": hash, "isKept": true }]);
    let about = json!({ "workspace": folder, "files": files });
    std::fs::write(folder.join("p.json"), about.to_string()).expect("writing a file");
    let mut server = Server::start(folder, json!({ "hints": { "perFile": 100_000, "minShare": 0 } }));
    let lines = MAPPED + MAPPED / 1000;
    server.open(&file, lines);
    let address = uri(&file);
    let hints = server.call("textDocument/inlayHint", &hint_params(&address, 0, lines)).matches("label").count();
    let name = format!("{hints} mapped lines");
    row(&format!("an edit and hints of {WINDOW} lines, {name}"), server.edits(&address, ROUNDS / 4), "");
    row(&format!("an edit, of a hundred in a row, {name}"), server.edits_in_a_row(&address, 50), "1 ms");
    let heat = |_| ("perflens/heat", json!({ "textDocument": { "uri": address } }));
    row(&format!("heat of all, {name}"), server.time(20, heat), "");
}

/// Keeps a text as the store of recordings does; its hash.
fn record(folder: &Path, text: &str) -> String {
    let draft = folder.join("text");
    std::fs::write(&draft, text).expect("writing a file");
    let output = Command::new("sha256sum").arg(&draft).output().expect("sha256sum is there");
    let hash = String::from_utf8_lossy(&output.stdout)[..64].to_owned();
    std::fs::create_dir_all(folder.join("texts")).expect("creating a folder");
    std::fs::rename(&draft, folder.join("texts").join(&hash)).expect("keeping it");
    hash
}

fn source(lines: usize) -> String {
    let mut text = String::new();
    for line in 1..=lines {
        // Writing to a string can't fail.
        let _ = match line % 50 {
            1 => writeln!(text, "fn f{}() {{", line / 50),
            0 => writeln!(text, "}}"),
            _ => writeln!(text, "    let x{line} = {line}; // héllo 🔥"),
        };
    }
    text
}

/// Every line costs something, also by calling the next function.
fn profile(lines: usize) -> String {
    let mut text = String::from("samples/count cpu/nanoseconds\n!default cpu\n");
    for line in (1..=lines).filter(|line| line % 50 > 1) {
        let (function, start) = (line / 50, line / 50 * 50 + 1);
        let (callee, call) = ((function + 1) * 50 + 2, (function + 1) * 50 + 1);
        let _ = writeln!(text, "main.rs:{line} f{function} #{start} = 20, {}_000_000", 200 + line % 97);
        if callee <= lines {
            let frame = format!("main.rs:{line} f{function} #{start}; main.rs:{callee} f{} #{call}", function + 1);
            let _ = writeln!(text, "{frame} = 10, 100_000_000");
        }
    }
    text
}

fn hint_params(address: &str, first: usize, last: usize) -> Value {
    let position = |line: usize| json!({ "line": line, "character": 0 });
    json!({ "textDocument": { "uri": address }, "range": { "start": position(first), "end": position(last) } })
}

/// What a kind of request took.
struct Timing {
    /// Each, from outside.
    times: Vec<Duration>,
    /// Processor time of the server, of all its threads, for one of them; `None` where the
    /// system doesn't tell.
    processor: Option<Duration>,
}

impl From<Vec<Duration>> for Timing {
    fn from(times: Vec<Duration>) -> Self {
        Self { times, processor: None }
    }
}

fn row(name: &str, Timing { mut times, processor }: Timing, budget: &str) {
    times.sort_unstable();
    let at = |percent: usize| milliseconds(times[(times.len() - 1) * percent / 100]);
    let processor = processor.map(milliseconds).unwrap_or_default();
    println!("{name:<58} {:>10} {:>10} {:>10} {processor:>10}   {budget}", at(50), at(99), at(100));
}

/// Processor time of all threads of a process so far. Threads that have ended don't count,
/// and none ends while it is measured.
fn processor_time(process: u32) -> Option<Duration> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let nanoseconds = threads.flatten().filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Some(Duration::from_nanos(nanoseconds.sum()))
}

fn milliseconds(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

fn mebibytes(process: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    match resident.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok()) {
        Some(kibibytes) => format!("{:.1} MiB", kibibytes / 1024.0),
        None => "unknown".to_owned(),
    }
}

fn starts(folder: &Path) -> (Vec<Duration>, Vec<Duration>) {
    (0..STARTS)
        .map(|_| {
            let start = Instant::now();
            let mut server = Server::spawn(folder);
            let written = Instant::now();
            server.call("initialize", &initialize_params(folder, &json!({})));
            (start.elapsed(), written.elapsed())
        })
        .unzip()
}

fn idle(folder: &Path) -> String {
    let mut server = Server::spawn(folder);
    server.call("initialize", &initialize_params(folder, &json!({})));
    server.notify("initialized", &json!({}));
    std::thread::sleep(Duration::from_secs(2));
    mebibytes(server.child.id())
}

fn initialize_params(folder: &Path, options: &Value) -> Value {
    json!({
        "processId": std::process::id(),
        "rootUri": uri(folder),
        "capabilities": {},
        "initializationOptions": options,
    })
}

/// The server, and the thinnest client that there can be.
struct Server {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    last_id: u64,
    version: u64,
}

impl Server {
    fn spawn(folder: &Path) -> Self {
        let mut child = Command::new(binary())
            .arg("lsp")
            .env("HOME", folder)
            .env("XDG_CONFIG_HOME", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("starting the server");
        let stdin = child.stdin.take().expect("it is piped");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, stdin, stdout, last_id: 0, version: 1 }
    }

    fn start(folder: &Path, mut options: Value) -> Self {
        options["source"] = json!({ "file": "p.pb.gz" });
        options["workspaceTrusted"] = true.into();
        let mut server = Self::spawn(folder);
        server.call("initialize", &initialize_params(folder, &options));
        server.notify("initialized", &json!({}));
        server
    }

    /// Opens the file and waits for its costs.
    fn open(&mut self, file: &Path, lines: usize) {
        let text = std::fs::read_to_string(file).expect("reading the file");
        let document = json!({ "uri": uri(file), "languageId": "rust", "version": 1, "text": text });
        self.notify("textDocument/didOpen", &json!({ "textDocument": document }));
        let start = Instant::now();
        while !self.call("textDocument/inlayHint", &hint_params(&uri(file), 0, lines)).contains("label") {
            assert!(start.elapsed() < Duration::from_mins(1), "the file has no costs");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn notify(&mut self, method: &str, params: &Value) {
        let message = frame(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
        self.stdin.write_all(&message).expect("writing to the server");
    }

    fn request(&mut self, method: &str, params: &Value) -> Vec<u8> {
        self.last_id += 1;
        frame(&json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params }))
    }

    fn call(&mut self, method: &str, params: &Value) -> String {
        let message = self.request(method, params);
        self.send(&message)
    }

    /// Sends bytes that end with a request, and reads up to the end of its answer.
    fn send(&mut self, bytes: &[u8]) -> String {
        self.stdin.write_all(bytes).expect("writing to the server");
        // Bodies begin or end with it, as the library happens to write them.
        let id = format!("\"id\":{}", self.last_id);
        loop {
            let body = self.read();
            if !body.contains("\"method\":") && body.contains(&id) {
                return body;
            }
        }
    }

    fn read(&mut self) -> String {
        let mut length = 0;
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            assert!(self.stdout.read_line(&mut line).expect("reading from the server") > 0, "the server is gone");
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut body = vec![0; length];
        self.stdout.read_exact(&mut body).expect("reading from the server");
        String::from_utf8(body).expect("UTF-8")
    }

    /// Times a request, again and again.
    fn time<'a>(&mut self, rounds: usize, request: impl Fn(usize) -> (&'a str, Value)) -> Timing {
        let time = |server: &mut Self, round: usize| {
            let (method, params) = request(round);
            let message = server.request(method, &params);
            let start = Instant::now();
            server.send(&message);
            start.elapsed()
        };
        for round in 0..rounds / 10 {
            time(self, round);
        }
        self.measured(rounds, 1, time)
    }

    /// Runs rounds of so many requests each, and what one of these took.
    fn measured(
        &mut self,
        rounds: usize,
        per_round: u32,
        mut round: impl FnMut(&mut Self, usize) -> Duration,
    ) -> Timing {
        let process = self.child.id();
        let before = processor_time(process);
        let times: Vec<Duration> = (0..rounds).map(|number| round(self, number) / per_round).collect();
        let used = before.zip(processor_time(process)).and_then(|(before, after)| after.checked_sub(before));
        let requests = u32::try_from(rounds).unwrap_or(u32::MAX).saturating_mul(per_round).max(1);
        Timing { times, processor: used.map(|used| used / requests) }
    }

    /// A change of one character, at different places.
    fn edit(&mut self, address: &str, round: usize) -> Vec<u8> {
        self.version += 1;
        let position = json!({ "line": 100 + round % 2000, "character": 4 });
        let text = if round.is_multiple_of(20) { "\n" } else { "x" };
        let change = json!({ "range": { "start": position, "end": position }, "text": text });
        let document = json!({ "uri": address, "version": self.version });
        let params = json!({ "textDocument": document, "contentChanges": [change] });
        frame(&json!({ "jsonrpc": "2.0", "method": "textDocument/didChange", "params": params }))
    }

    fn edits(&mut self, address: &str, rounds: usize) -> Timing {
        self.measured(rounds, 1, |server, round| {
            let mut bytes = server.edit(address, round);
            let first = 100 + round % 2000;
            bytes.extend(server.request("textDocument/inlayHint", &hint_params(address, first, first + WINDOW)));
            let start = Instant::now();
            server.send(&bytes);
            start.elapsed()
        })
    }

    /// The share of one edit in the time of a hundred.
    fn edits_in_a_row(&mut self, address: &str, rounds: usize) -> Timing {
        self.measured(rounds, 100, |server, round| {
            let mut bytes: Vec<u8> = (0..100).flat_map(|edit| server.edit(address, round * 100 + edit)).collect();
            bytes.extend(server.request("perflens-tests/none", &json!({})));
            let start = Instant::now();
            server.send(&bytes);
            start.elapsed()
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
