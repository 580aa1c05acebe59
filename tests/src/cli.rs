//! Runs the built program and reads what it prints.
//!
//! The program is built once per test binary, or taken from `PERFLENS_BIN`. Every run has a
//! deadline, an empty home folder, and its input and output on pipes, so no test hangs, reads
//! the developer's settings, or draws colours and progress on a terminal.
//!
//! What is not here: what the numbers should be.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde::Deserialize;

/// The program under test.
///
/// # Panics
/// When it can't be built.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match std::env::var_os("PERFLENS_BIN") {
        Some(path) => path.into(),
        None => build("perflens"),
    })
}

/// The program that is given privileges; where `PERFLENS_BIN` is set, that beside it.
///
/// # Panics
/// When it can't be built.
pub fn recorder() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let beside = std::env::var_os("PERFLENS_BIN").map(|path| Path::new(&path).with_file_name("perflens-record"));
        beside.filter(|path| path.is_file()).unwrap_or_else(|| build("perflens-record"))
    })
}

/// Builds a program with the whole workspace chosen, as the tests are: another choice has other features, and
/// would build half of the dependencies again.
fn build(program: &str) -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--workspace", "--bin", program, "--message-format", "json-render-diagnostics"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .expect("running cargo");
    assert!(output.status.success(), "building {program} failed");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == program)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .expect("cargo says where the program is")
}

/// A program that `tests/peers/build` makes; says so where it is not there.
///
/// # Panics
/// When this is not in the repository.
pub fn peer(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("it is there");
    let path = root.join("target/peers").join(name);
    if path.exists() {
        return Some(path);
    }
    // Past the harness, which keeps what tests print.
    let _ = writeln!(std::io::stderr(), "not run: {name} is not built; run tests/peers/build");
    None
}

/// A process that is killed when the test is over.
#[derive(Debug)]
pub struct Guard(pub Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port of the loopback that nobody listens on.
///
/// # Panics
/// When there is none.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").expect("it is there").local_addr().expect("it is there").port()
}

/// Lets a command see nothing of the developer's settings.
pub fn isolate(command: &mut Command, home: &Path) {
    for colours in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        command.env_remove(colours);
    }
    command
        .env("HOME", home)
        .env("XDG_CONFIG_HOME", home.join("config"))
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env("XDG_DATA_HOME", home.join("data"))
        .env("XDG_STATE_HOME", home.join("state"));
}

/// Runs a command as it stands in a text, such as `perflens report "a b.pb.gz"`, with a shell. More words may
/// follow it.
///
/// # Panics
/// When it is of another program, or takes more than a minute.
pub fn run_line(line: &str, folder: &Path, home: &Path) -> Output {
    let words = line.strip_prefix("perflens ").unwrap_or_else(|| panic!("{line} is of another program"));
    let mut shell = Command::new("timeout");
    shell.args(["60", "sh", "-c"]).arg(format!("exec \"$0\" {words}")).arg(binary()).current_dir(folder);
    isolate(&mut shell, home);
    let output = shell.stdin(Stdio::null()).output().expect("a shell is everywhere");
    assert_ne!(output.status.code(), Some(124), "{line} takes too long");
    Output {
        code: output.status.code(),
        signal: signal(output.status),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The commands in a text for an assistant that would measure again.
pub fn commands_of(text: &str) -> Vec<&str> {
    let mut lines =
        text.lines().filter(|line| line.starts_with("To measure it again: ") || line.starts_with("For the same"));
    lines.next().unwrap_or_default().split('`').skip(1).step_by(2).collect()
}

/// One run of the program.
///
/// ```no_run
/// # use perflens_tests::cli::Run;
/// let output = Run::new(["report", "-", "--format", "json"]).stdin(b"no profile").output();
/// assert_eq!(output.code, Some(1));
/// ```
#[derive(Clone, Debug)]
pub struct Run {
    args: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
    stdin: Vec<u8>,
    folder: Option<PathBuf>,
    deadline: Duration,
    memory: Option<u64>,
}

/// What a run left behind.
#[derive(Clone, Debug)]
pub struct Output {
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Everything on standard output.
    pub stdout: String,
    /// Everything on standard error.
    pub stderr: String,
}

impl Run {
    /// A run with these arguments and nothing on standard input.
    pub fn new<A: Into<OsString>>(args: impl IntoIterator<Item = A>) -> Self {
        Self {
            args: args.into_iter().map(Into::into).collect(),
            environment: Vec::new(),
            stdin: Vec::new(),
            folder: None,
            deadline: Duration::from_mins(1),
            memory: None,
        }
    }

    /// `report FILE --format json --top 0`, to which [`arg`](Self::arg) adds.
    pub fn report(profile: &Path) -> Self {
        Self::new([OsStr::new("report"), profile.as_os_str(), "--format".as_ref(), "json".as_ref()])
            .arg("--top")
            .arg("0")
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// What the program finds on standard input. It may stop reading at any time.
    #[must_use]
    pub fn stdin(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.stdin = bytes.as_ref().to_vec();
        self
    }

    /// The folder to run in; without, an empty one.
    #[must_use]
    pub fn folder(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// How long it may take before it is killed and the test fails. The default is a minute,
    /// far beyond anything that is expected, for machines that do much else.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Bounds the address space, in MiB, as `ulimit -v` does.
    #[must_use]
    pub fn memory(mut self, mebibytes: u64) -> Self {
        self.memory = Some(mebibytes);
        self
    }

    /// Runs the program to its end.
    ///
    /// # Panics
    /// When the deadline passes.
    pub fn output(self) -> Output {
        let home = tempfile::tempdir().expect("a temporary folder");
        let mut command = match self.memory {
            Some(mebibytes) => {
                let mut command = Command::new("sh");
                command.args(["-c", &format!("ulimit -v {} && exec \"$0\" \"$@\"", mebibytes << 10)]).arg(binary());
                command
            }
            None => Command::new(binary()),
        };
        isolate(&mut command, home.path());
        command
            .args(&self.args)
            .current_dir(self.folder.as_deref().unwrap_or(home.path()))
            .envs(self.environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("starting the program");
        let mut stdin = child.stdin.take().expect("it is piped");
        let bytes = self.stdin;
        // Fails when the program has read enough, which is its right.
        std::thread::spawn(move || drop(stdin.write_all(&bytes)));
        wait_for(child, self.deadline)
    }

    /// Runs to the end and reads the report.
    ///
    /// # Panics
    /// When the run fails or prints something else.
    pub fn json(self) -> Report {
        let output = self.output();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}\n{}", output.stdout))
    }
}

/// Reports a profile that is handed over as bytes, with further arguments.
///
/// # Panics
/// When the run fails.
pub fn report_bytes(bytes: impl AsRef<[u8]>, args: &[&str]) -> Report {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("test.pb");
    std::fs::write(&path, bytes).expect("writing the profile");
    Run::report(&path).args(args).json()
}

/// Waits for a program whose output is piped, and reads all of it.
///
/// # Panics
/// When the deadline passes.
pub fn wait_for(mut child: Child, deadline: Duration) -> Output {
    let stdout = drain(child.stdout.take().expect("it is piped"));
    let stderr = drain(child.stderr.take().expect("it is piped"));
    let status = wait(&mut child, deadline);
    let output = |reader: std::thread::JoinHandle<Vec<u8>>| {
        String::from_utf8(reader.join().expect("reading a pipe")).expect("the program prints UTF-8")
    };
    let (stdout, stderr) = (output(stdout), output(stderr));
    let Some(status) = status else {
        panic!("it did not end within {deadline:?}; it said {stderr:?}");
    };
    Output { code: status.code(), signal: signal(status), stdout, stderr }
}

fn drain(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("reading a pipe");
        bytes
    })
}

/// `None` when it had to be killed.
fn wait(child: &mut Child, deadline: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("waiting for the program") {
            return Some(status);
        }
        if start.elapsed() > deadline {
            // It may have ended in this very moment; either way it is gone after this.
            let _ = child.kill();
            child.wait().expect("waiting for a killed program");
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<i32> {
    None
}

/// The JSON of `report`. Fields that appear only with some options are optional here.
#[derive(Clone, Debug, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the JSON, which the product documents")]
pub struct Report {
    pub schema: u32,
    pub profile: ProfileInfo,
    pub lines: Vec<LineRow>,
    pub functions: Vec<FunctionRow>,
    pub files: Vec<FileRow>,
    pub accounting: Accounting,
}

/// What the report says about the profile as a whole.
#[derive(Clone, Debug, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the JSON, which the product documents")]
pub struct ProfileInfo {
    pub origin: String,
    pub format: String,
    pub value_types: Vec<TypeInfo>,
    pub selected: TypeInfo,
    pub records: u64,
    pub samples: Option<i64>,
    pub total: i64,
    pub net: i64,
    pub total_unfiltered: i64,
    pub duration_ns: Option<i64>,
    pub time_ns: Option<i64>,
    pub period: Option<i64>,
    pub period_type: Option<TypeInfo>,
    pub notes: Vec<String>,
    pub base: Option<BaseInfo>,
}

/// A value type.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the JSON, which the product documents")]
pub struct TypeInfo {
    #[serde(rename = "type")]
    pub kind: String,
    pub unit: String,
}

/// What a comparison says about its base.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the JSON, which the product documents")]
pub struct BaseInfo {
    pub origin: String,
    pub total: i64,
    pub net: i64,
    pub records: u64,
    pub samples: Option<i64>,
}

/// The numbers of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the JSON, which the product documents")]
pub struct Costs {
    pub flat: i64,
    pub cumulative: i64,
    pub direct: Option<i64>,
    pub base_flat: Option<i64>,
    pub base_cumulative: Option<i64>,
    pub samples: Option<i64>,
    pub base_samples: Option<i64>,
    pub diff_flat: Option<i64>,
    pub diff_cumulative: Option<i64>,
}

/// Where a row is in the workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the JSON, which the product documents")]
pub struct Place {
    pub workspace_file: Option<String>,
    #[serde(rename = "match")]
    pub matched: Option<serde_json::Value>,
    pub aliases: Option<Vec<String>>,
}

/// A row of `lines`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the JSON, which the product documents")]
pub struct LineRow {
    pub file: String,
    pub line: i64,
    #[serde(flatten)]
    pub costs: Costs,
    pub functions: Vec<String>,
    #[serde(flatten)]
    pub place: Place,
}

/// A row of `functions`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the JSON, which the product documents")]
pub struct FunctionRow {
    pub name: String,
    /// Empty or null when the profile names none.
    pub file: Option<String>,
    pub start_line: Option<i64>,
    #[serde(flatten)]
    pub costs: Costs,
    #[serde(flatten)]
    pub place: Place,
}

/// A row of `files`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the JSON, which the product documents")]
pub struct FileRow {
    pub file: String,
    #[serde(flatten)]
    pub costs: Costs,
    #[serde(flatten)]
    pub place: Place,
}

/// Where the total went.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the JSON, which the product documents")]
pub struct Accounting {
    pub total: i64,
    pub with_line: i64,
    pub no_line: i64,
    pub no_file: i64,
    pub unresolved: i64,
    pub filtered: i64,
    pub reach: Reach,
    /// Value by bucket.
    pub workspace: Option<std::collections::BTreeMap<String, i64>>,
    pub reasons: Vec<Reason>,
}

/// What the best frame of each sample has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the JSON, which the product documents")]
pub struct Reach {
    pub with_line: i64,
    pub no_line: i64,
    pub no_file: i64,
    pub unresolved: i64,
}

/// Why value is in a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the JSON, which the product documents")]
pub struct Reason {
    pub bucket: String,
    pub reason: String,
    pub value: i64,
    pub records: u64,
}

impl Report {
    /// The lines as text, in the order of the report: `file:line flat cumulative`.
    pub fn line_costs(&self) -> Vec<String> {
        self.lines
            .iter()
            .map(|row| format!("{}:{} {} {}", row.file, row.line, row.costs.flat, row.costs.cumulative))
            .collect()
    }

    /// The functions as text, in the order of the report: `name flat cumulative`.
    pub fn function_costs(&self) -> Vec<String> {
        self.functions.iter().map(|row| format!("{} {} {}", row.name, row.costs.flat, row.costs.cumulative)).collect()
    }

    /// The row of a line.
    ///
    /// # Panics
    /// When there is none.
    pub fn line(&self, file: &str, line: i64) -> &LineRow {
        self.lines
            .iter()
            .find(|row| row.file == file && row.line == line)
            .unwrap_or_else(|| panic!("no row {file}:{line} in {:#?}", self.line_costs()))
    }

    /// The row of a function, by its name.
    ///
    /// # Panics
    /// When there is none.
    pub fn function(&self, name: &str) -> &FunctionRow {
        self.functions
            .iter()
            .find(|row| row.name == name)
            .unwrap_or_else(|| panic!("no row {name} in {:#?}", self.function_costs()))
    }
}
