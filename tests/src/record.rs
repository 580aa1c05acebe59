//! Programs to record, and recordings of them.
//!
//! Programs are compiled by each test that needs them, from `tests/programs`, into a folder that any
//! user may read, since a recording is also made as an ordinary one.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::cli::{LineRow, Output, Report, binary, isolate, report_bytes, wait_for};

/// The number of the user that owns nothing.
const NOBODY: &str = "65534";

/// Whether the tests run as root, which recording with eBPF needs. Elsewhere it is said that what needs it is not run;
/// where `CI` is set all must run, and this fails.
pub fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("`id` is everywhere");
    let is_root = output.stdout.starts_with(b"0\n");
    if !is_root {
        assert!(std::env::var_os("CI").is_none(), "continuous integration runs the tests as root");
        // Past the harness, which keeps what tests print.
        let _ = writeln!(std::io::stderr(), "not run: recording with eBPF, and all of other users, needs root");
    }
    is_root
}

/// A folder with a program, its source, and a home of its own.
#[derive(Debug)]
pub struct Ground {
    folder: tempfile::TempDir,
}

impl Ground {
    /// An empty one.
    #[expect(clippy::new_without_default, reason = "it makes a folder")]
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // Whoever records may be somebody else, and writes only below `home`.
        open_to_all(folder.path(), 0o755);
        let ground = Self { folder };
        for part in ["home", "work"] {
            std::fs::create_dir(ground.path().join(part)).expect("a folder");
        }
        open_to_all(&ground.home(), 0o777);
        open_to_all(&ground.work(), 0o777);
        let program = ground.path().join("perflens");
        // The build's folder may be closed to others.
        if std::fs::hard_link(binary(), &program).is_err() {
            std::fs::copy(binary(), &program).expect("copying the program");
        }
        ground
    }

    /// With a C program, built as distributions do.
    pub fn c(name: &str) -> (Self, PathBuf) {
        Self::built(name, "c", "gcc", &["-O2", "-g", "-fomit-frame-pointer"])
    }

    /// With a Rust program, built as `cargo build --release` does with line tables.
    pub fn rust(name: &str) -> (Self, PathBuf) {
        Self::built(name, "rs", "rustc", &["-O", "-C", "debuginfo=line-tables-only", "--edition", "2024"])
    }

    /// With a Go program.
    pub fn go(name: &str) -> (Self, PathBuf) {
        Self::built(name, "go", "go", &["build"])
    }

    /// With a C++ program.
    pub fn cpp(name: &str) -> (Self, PathBuf) {
        Self::built(name, "cpp", "g++", &["-O2", "-g", "-fomit-frame-pointer"])
    }

    fn built(name: &str, ending: &str, compiler: &str, flags: &[&str]) -> (Self, PathBuf) {
        let ground = Self::new();
        let program = ground.compile(&format!("{name}.{ending}"), name, compiler, flags);
        (ground, program)
    }

    /// Builds a program in the project from a source file of `tests/programs`.
    pub fn compile(&self, source: &str, name: &str, compiler: &str, flags: &[&str]) -> PathBuf {
        let (source, program) = (self.source(source), self.work().join(name));
        let output = Command::new(compiler)
            .args(flags)
            .arg("-o")
            .arg(&program)
            .arg(source.file_name().expect("it is a file"))
            .current_dir(self.work())
            .env("GOFLAGS", "-buildvcs=false")
            .output()
            .unwrap_or_else(|error| panic!("{compiler}, which tests need: {error}"));
        assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
        program
    }

    /// Puts a source file of `tests/programs` into the project.
    pub fn source(&self, name: &str) -> PathBuf {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(name);
        let to = self.work().join(name);
        std::fs::copy(from, &to).expect("the source is there");
        to
    }

    /// Everything is below this.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The project.
    pub fn work(&self) -> PathBuf {
        self.path().join("work")
    }

    /// The home of whoever records.
    pub fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    /// The profile that recordings of this ground are written to.
    pub fn profile(&self) -> PathBuf {
        self.home().join("out.pb.gz")
    }

    /// A command of perflens, in the project.
    pub fn perflens(&self, user: User) -> Command {
        self.perflens_at(&self.path().join("perflens"), user)
    }

    /// The same by a program that is installed somewhere.
    pub fn perflens_at(&self, program: &Path, user: User) -> Command {
        let mut command = match user {
            User::Same => Command::new(program),
            User::Ordinary => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"]).arg(program);
                command
            }
        };
        isolate(&mut command, &self.home());
        command.current_dir(self.work());
        command
    }

    /// `perflens record ARGS` to its end, within the deadline.
    pub fn record<A: AsRef<OsStr>>(&self, user: User, args: impl IntoIterator<Item = A>) -> Output {
        let mut command = self.perflens(user);
        command.arg("record").args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("starting the program");
        wait_for(child, Duration::from_mins(2))
    }

    /// The report of the recorded profile, with the project as the workspace.
    pub fn report(&self, args: &[&str]) -> Report {
        let bytes = std::fs::read(self.profile()).expect("the profile was written");
        let work = self.work();
        let args: Vec<&str> =
            ["--workspace", work.to_str().expect("a plain path")].iter().chain(args).copied().collect();
        report_bytes(bytes, &args)
    }

    /// What the recorded profile says of itself: how it was made, what is missing.
    pub fn comments(&self) -> Vec<String> {
        let packed = std::fs::File::open(self.profile()).expect("the profile was written");
        let mut bytes = Vec::new();
        flate2::read::MultiGzDecoder::new(packed).read_to_end(&mut bytes).expect("it is packed");
        let profile = <crate::pprof::Profile as prost::Message>::decode(&*bytes).expect("it is a profile");
        let texts = profile.comment.iter().map(|&at| &profile.string_table[usize::try_from(at).expect("an index")]);
        texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect()
    }

    /// Asserts that no sample is missing for a reason of ours. A machine whose host takes its CPUs away has fewer
    /// strokes of the clock, which is said as well.
    #[track_caller]
    pub fn assert_nothing_lost(&self) {
        let comments = self.comments();
        let is_ours = |note: &String| note.contains(" lost ") && !note.contains("the kernel held sampling back");
        assert!(!comments.is_empty() && !comments.iter().any(is_ours), "{comments:?}");
    }

    /// Asserts that so many in a hundred stacks are whole, but for the first ones of each process.
    #[track_caller]
    pub fn assert_whole(&self, report: &Report, percent: i64, processes: i64) {
        /// Samples of a process's first moments, whose stacks may end early.
        const FIRST: i64 = 5;
        let comments = self.comments();
        let note = comments.iter().find_map(|note| {
            let (complete, rest) = note.split_once(" of ")?;
            let (all, _) = rest.split_once(" stacks are complete")?;
            Some((complete.parse::<i64>().ok()?, all.parse::<i64>().ok()?))
        });
        let samples = report.profile.samples.expect("samples are counted");
        let (complete, all) = note.unwrap_or((samples, samples));
        assert!(all >= 100, "{all} samples");
        assert!(all - complete <= all * (100 - percent) / 100 + FIRST * processes, "{comments:?}");
    }

    /// The row of a line of a source file.
    ///
    /// # Panics
    /// When the report has none.
    pub fn row<'r>(&self, report: &'r Report, file: &str, text: &str) -> &'r LineRow {
        let line = self.line(file, text);
        let found = report.lines.iter().find(|row| row.line == line && row.file.ends_with(file));
        found.unwrap_or_else(|| panic!("no row of {file}:{line}: {:#?}", report.line_costs()))
    }

    /// The number of the line of a source file that has this text.
    pub fn line(&self, file: &str, text: &str) -> i64 {
        let source = std::fs::read_to_string(self.work().join(file)).expect("the source is there");
        let at = source.lines().position(|line| line.contains(text)).expect("the line is there");
        i64::try_from(at).expect("it is small") + 1
    }
}

/// Who records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// Whoever runs the tests.
    Same,
    /// Somebody without any right; needs root.
    Ordinary,
}

impl User {
    /// Somebody without any right, whoever runs the tests.
    pub fn ordinary() -> Self {
        if is_root() { Self::Ordinary } else { Self::Same }
    }
}

/// The share of a part in percent.
pub fn percent(part: i64, whole: i64) -> f64 {
    100.0 * part as f64 / whole as f64
}

fn open_to_all(folder: &Path, mode: u32) {
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).expect("it is ours");
}

/// Numbers of processes below one, as `/proc` has them now.
pub fn descendants(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut at = 0;
    while let Some(&parent) = all.get(at) {
        let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            all.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
        at += 1;
    }
    all.split_off(1)
}

/// Waits until something is so.
///
/// # Panics
/// When it is not so within half a minute.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: not within half a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a process is there, and not just as a zombie.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// What a child has printed, up to a text.
pub fn read_until(from: &mut impl Read, text: &str) -> String {
    let mut all = Vec::new();
    let mut byte = [0];
    while !String::from_utf8_lossy(&all).contains(text) {
        match from.read(&mut byte) {
            Ok(1) => all.push(byte[0]),
            _ => panic!("it ended before {text:?}: {}", String::from_utf8_lossy(&all)),
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}
