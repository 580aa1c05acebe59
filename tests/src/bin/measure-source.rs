//! Measures what a profiling server's answer takes until it is on the lines of an editor, from
//! outside: `tests/measure-source` builds the release program and runs this.
//!
//! Timed is from the command that asks the server to the first answer with hints, with a server that
//! has the answer ready: what it would take to make one is its own matter. The same profile is opened
//! as a file in turns with that, so that what the way over the server costs can be seen; beside them
//! stand the floors, reading the answer and inflating it, and Go's own tool, which reads the same file
//! for one list.

#![expect(clippy::print_stdout, reason = "the table is the point")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use perflens_tests::http::HttpServer;
use perflens_tests::large_profile;
use perflens_tests::lsp::{Client, Start, editor};
use perflens_tests::parca;
use perflens_tests::pprof::{self, Profile};
use serde_json::{Value, json};

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta";
/// What a server sends of this many samples has about 20 MB.
const SAMPLES: u32 = 390_000;
const ROUNDS: usize = 5;

fn main() {
    let samples = std::env::args().nth(1).map_or(SAMPLES, |text| text.parse().expect("a number of samples"));
    let mut raw = Vec::new();
    large_profile::write(&mut raw, samples).expect("writing to memory");
    let profile = as_merged(pprof::read(&raw).expect("it is a profile"));
    let raw = pprof::raw(&profile);
    let packed = pprof::gzip(&raw);
    println!(
        "{} samples, {} files, {:.1} MB as sent, {:.1} MB inflated",
        profile.sample.len(),
        files(&profile).len(),
        packed.len() as f64 / 1e6,
        raw.len() as f64 / 1e6
    );

    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("p.pb.gz");
    std::fs::write(&file, &packed).expect("writing a file");
    let paths = workspace(folder.path(), &profile);
    drop((profile, raw));
    let answer = parca::answer(packed);
    let server = HttpServer::start(move |_| answer.clone());

    let mut rows: BTreeMap<&str, Vec<Round>> = BTreeMap::new();
    for _ in 0..ROUNDS {
        rows.entry("1 from the server to hints").or_default().push(ask(folder.path(), &paths[0], &server));
        rows.entry("2 from a file to hints").or_default().push(open(folder.path(), &paths[0]));
        rows.entry("3 reading the answer alone").or_default().push(Round::of(|| read_all(&server)));
        rows.entry("4 gzip -dc").or_default().extend(run(Command::new("gzip").arg("-dc").arg(&file)));
    }
    if let Some(pprof) = go_pprof() {
        let lines = ["-symbolize=none", "-lines", "-top", "-nodecount=0"];
        rows.entry("5 go tool pprof -lines -top").or_default().extend(run(Command::new(pprof).args(lines).arg(&file)));
    }
    println!("{:<30} {:>10} {:>10} {:>12} {:>12} {:>12}", "", "wall", "CPU", "idle", "at most", "afterwards");
    for (name, mut rounds) in rows {
        rounds.sort_by_key(|round| round.wall);
        let median = &rounds[rounds.len() / 2];
        let [idle, peak, after] = median.memory;
        println!(
            "{:<30} {:>10} {:>10} {:>12} {:>12} {:>12}",
            &name[2..],
            seconds(median.wall),
            median.processor.map(seconds).unwrap_or_default(),
            mebibytes(idle),
            mebibytes(peak),
            mebibytes(after)
        );
    }
}

/// As a server merges: values of one type, a header that says nothing.
fn as_merged(mut profile: Profile) -> Profile {
    profile.sample_type.remove(0);
    for sample in &mut profile.sample {
        sample.value.remove(0);
        sample.label.clear();
    }
    (profile.period, profile.duration_nanos, profile.time_nanos) = (0, 0, i64::MIN + 4_711);
    profile
}

/// What a file of the profile has to have: its last line, and the functions that start in it.
#[derive(Default)]
struct Needed {
    last: i64,
    starts: BTreeMap<i64, String>,
}

/// Files of the profile.
fn files(profile: &Profile) -> BTreeMap<String, Needed> {
    let text =
        |row: i64| String::from_utf8_lossy(&profile.string_table[usize::try_from(row).expect("a row")]).into_owned();
    let mut files: BTreeMap<String, Needed> = BTreeMap::new();
    for line in profile.location.iter().flat_map(|location| &location.line) {
        let function = &profile.function[usize::try_from(line.function_id - 1).expect("tables are in order")];
        let needed = files.entry(text(function.filename)).or_default();
        needed.last = needed.last.max(line.line).max(function.start_line);
        let name = text(function.name);
        let last = name.rsplit('.').next().unwrap_or_default().to_owned();
        needed.starts.insert(function.start_line, last);
    }
    files
}

/// Writes the files, each with the lines that it has costs on; functions start where the profile says, or the file
/// would not be the one that was measured.
fn workspace(folder: &Path, profile: &Profile) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for (name, needed) in files(profile) {
        let Some((_, below)) = name.split_once("/shop/") else { continue };
        let path = folder.join(below);
        std::fs::create_dir_all(path.parent().expect("it is in the folder")).expect("creating a folder");
        let line = |at: i64| match needed.starts.get(&at) {
            Some(name) => format!("func {name}() {{\n"),
            None => format!("// line {at}\n"),
        };
        let lines: Vec<String> = (1..=needed.last).map(line).collect();
        std::fs::write(&path, lines.concat()).expect("writing a file");
        paths.push(path);
    }
    paths
}

struct Round {
    wall: Duration,
    processor: Option<Duration>,
    /// Before, at most, after; in KiB, 0 where nobody knows.
    memory: [u64; 3],
}

impl Round {
    fn of(work: impl FnOnce()) -> Self {
        let start = Instant::now();
        work();
        Self { wall: start.elapsed(), processor: None, memory: [0; 3] }
    }
}

fn ask(folder: &Path, file: &Path, server: &HttpServer) -> Round {
    let options = json!({ "source": { "address": server.url("") } });
    to_hints(folder, file, &options, |client| drop(client.command("perflens.query", json!([CPU, "15m"]))))
}

fn open(folder: &Path, file: &Path) -> Round {
    to_hints(folder, file, &json!({}), |client| drop(client.command("perflens.openProfile", json!(["p.pb.gz"]))))
}

fn start(folder: &Path, options: &Value) -> Client {
    let mut options = options.clone();
    options["workspaceTrusted"] = true.into();
    // No line of so many costs much.
    options["hints"] = json!({ "minShare": 0 });
    Start::new(editor("neovim 0.11")).folder(folder).options(options).start()
}

fn to_hints(folder: &Path, file: &Path, options: &Value, begin: impl FnOnce(&mut Client)) -> Round {
    let mut client = start(folder, options);
    let uri = client.open(file);
    assert!(client.hints(&uri).is_empty(), "nothing is open yet");
    // What starting takes is not what is measured.
    std::thread::sleep(Duration::from_secs(1));
    let process = client.pid();
    let idle = memory(process, "VmRSS:");
    let (before, start) = (processor_time(process), Instant::now());
    begin(&mut client);
    client.hints_soon(&uri);
    let wall = start.elapsed();
    let processor = before.zip(processor_time(process)).map(|(before, after)| after.saturating_sub(before));
    let peak = memory(process, "VmHWM:");
    std::thread::sleep(Duration::from_secs(1));
    Round { wall, processor, memory: [idle, peak, memory(process, "VmRSS:")] }
}

fn read_all(server: &HttpServer) {
    let mut stream = TcpStream::connect(server.address()).expect("it listens");
    write!(stream, "POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n").expect("it reads");
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("it answers");
}

/// Go's tool itself: `go` would be another process around it.
fn go_pprof() -> Option<PathBuf> {
    let output = Command::new("go").args(["tool", "-n", "pprof"]).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    output.status.success().then_some(path)
}

/// Runs a program whose output nobody reads; `None` where there is none.
fn run(command: &mut Command) -> Option<Round> {
    let start = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
    let (mut peak, mut processor) = (0, None);
    while child.try_wait().expect("it is ours").is_none() {
        peak = peak.max(memory(child.id(), "VmHWM:"));
        processor = processor_time(child.id()).or(processor);
        std::thread::sleep(Duration::from_millis(5));
    }
    Some(Round { wall: start.elapsed(), processor, memory: [0, peak, 0] })
}

/// User and system time of a process.
fn processor_time(process: u32) -> Option<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    // There are a hundred a second on every Linux.
    Some(Duration::from_millis(ticks * 10))
}

fn memory(process: u32, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(what));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

fn mebibytes(kibibytes: u64) -> String {
    if kibibytes == 0 { String::new() } else { format!("{:.0} MiB", kibibytes as f64 / 1024.0) }
}
