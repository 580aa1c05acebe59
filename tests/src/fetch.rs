//! `perflens fetch` against servers of this machine.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::cli::{Output, Report, Run, binary};

/// The time, in nanoseconds since 1970. Asking for it builds the program first: that may take longer than
/// a snapshot lives.
pub fn now() -> i64 {
    binary();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    i64::try_from(since.as_nanos()).expect("it is before 2262")
}

/// Some seconds before that.
pub fn seconds_ago(seconds: i64) -> i64 {
    now() - seconds * 1_000_000_000
}

/// Runs `perflens fetch`.
pub fn fetch(server: &str, arguments: &[&str]) -> Output {
    Run::new(["fetch", "--server", server]).args(arguments.iter().copied()).output()
}

/// Fetches; the report of what was written, and what was said.
pub fn report(server: &str, arguments: &[&str]) -> (Report, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("p.pb.gz");
    let path = file.to_str().expect("it is text");
    let output = fetch(server, &[arguments, &["-o", path]].concat());
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    (Run::report(&file).json(), output.stderr)
}

/// The sentence of a fetch that fails, without the port.
pub fn failure(server: &str, arguments: &[&str]) -> String {
    let output = fetch(server, arguments);
    assert_eq!(output.code, Some(1), "{}", output.stdout);
    let port = server.split("127.0.0.1:").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    output.stderr.replace(port, "PORT")
}
