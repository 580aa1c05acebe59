//! Measures what a profiling server's answer takes until it is on the lines of an editor, from
//! outside: `tests/measure-source` builds the release program and runs this.
//!
//! Timed is from the command that asks the server to the first answer with hints, with a server that
//! has the answer ready: what it would take to make one is its own matter. The same profile is opened
//! as a file in turns with that, so that what the way over the server costs can be seen; beside them
//! stand the floors, reading the answer and inflating it. Then files of the workspace are opened, one
//! after the other, and the requests to the server are counted.

#![expect(clippy::print_stdout, reason = "the table is the point")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use perflens_tests::http::HttpServer;
use perflens_tests::large_profile;
use perflens_tests::lsp::{Client, Start, editor, uri};
use perflens_tests::parca;
use perflens_tests::pprof::{self, Profile};
use serde_json::{Value, json};

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta";
/// What a server sends of this many samples has about 20 MB.
const SAMPLES: u32 = 330_000;
const ROUNDS: usize = 5;
const FILES: usize = 200;

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
    std::fs::write(folder.path().join("p.pb.gz"), &packed).expect("writing a file");
    let paths = workspace(folder.path(), &profile);
    drop((profile, raw));
    let answer = parca::answer(packed.clone());
    let server = HttpServer::start(move |_| answer.clone());

    let mut rows: BTreeMap<&str, Vec<Round>> = BTreeMap::new();
    for _ in 0..ROUNDS {
        rows.entry("1 from the server to hints").or_default().push(ask(folder.path(), &paths[0], &server));
        rows.entry("2 from a file to hints").or_default().push(open(folder.path(), &paths[0]));
        rows.entry("3 reading the answer alone").or_default().push(Round::of(|| read_all(&server)));
        rows.entry("4 inflating it alone").or_default().push(Round::of(|| inflate(&packed)));
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
    many_files(folder.path(), &paths, &server);
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

/// Files of the profile, and their last line.
fn files(profile: &Profile) -> Vec<(String, i64)> {
    let mut last: BTreeMap<i64, i64> = BTreeMap::new();
    for line in profile.location.iter().flat_map(|location| &location.line) {
        let at = usize::try_from(line.function_id - 1).expect("tables are in order");
        let end = last.entry(profile.function[at].filename).or_default();
        *end = (*end).max(line.line);
    }
    let name =
        |row: i64| String::from_utf8_lossy(&profile.string_table[usize::try_from(row).expect("a row")]).into_owned();
    last.into_iter().map(|(file, end)| (name(file), end)).collect()
}

/// Writes the files, each with the lines that it has costs on.
fn workspace(folder: &Path, profile: &Profile) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for (name, last) in files(profile) {
        let (_, below) = name.split_once("/shop/").expect("all are of one repository");
        let path = folder.join(below);
        std::fs::create_dir_all(path.parent().expect("it is in the folder")).expect("creating a folder");
        let lines: Vec<String> = (1..=last).map(|line| format!("// line {line}\n")).collect();
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

fn many_files(folder: &Path, paths: &[PathBuf], server: &HttpServer) {
    let mut client = start(folder, &json!({ "source": { "address": server.url("") } }));
    let before = server.asked().len();
    client.command("perflens.query", json!([CPU, "15m"]));
    let first = client.open(&paths[0]);
    client.hints_soon(&first);
    let opened = &paths[1..FILES.min(paths.len())];
    let start = Instant::now();
    let with_hints = opened.iter().filter(|path| {
        client.open(path);
        !client.hints(&uri(path)).is_empty()
    });
    let with_hints = with_hints.count();
    println!(
        "{} files opened one after the other, {} with hints: {} requests to the server, {} ms a file",
        opened.len() + 1,
        with_hints + 1,
        server.asked().len() - before,
        start.elapsed().as_millis() / u128::try_from(opened.len().max(1)).expect("it is a small number")
    );
}

fn read_all(server: &HttpServer) {
    let mut stream = TcpStream::connect(server.address()).expect("it listens");
    write!(stream, "POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n").expect("it reads");
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("it answers");
}

fn inflate(packed: &[u8]) {
    let mut out = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut out).expect("it is whole");
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
