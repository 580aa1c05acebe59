//! A profiling server for editors to ask: prints its address, and serves until its input ends. It has profiles
//! of the workspace that `tests/editors/workspace` makes, of two services and two pods each.

use std::io::{Read, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use perflens_tests::pyroscope::FakePyroscope;

/// 100 ms in `measure`.
const PROFILE: &str = "
    samples/count cpu/nanoseconds
    !period cpu/nanoseconds 10_000_000
    !duration 15_000_000_000
    /build/words/src/main.rs:6 words::main #4; /build/words/src/main.rs:22 words::measure #21 = 10, 100_000_000
";
const MINUTE_NS: i64 = 60_000_000_000;

fn main() {
    let server = FakePyroscope::start();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    let now = i64::try_from(since.as_nanos()).expect("it is before 2262");
    // What is older than an hour shows whether the time was asked for.
    for (age_minutes, service, pod) in
        [(5, "api", "api-1"), (5, "api", "api-2"), (5, "web", "web-1"), (5, "jobs", "jobs-1"), (100, "api", "api-1")]
    {
        let labels = [("service_name", service), ("pod", pod)];
        server.pyroscope().store("process_cpu", &labels, now - age_minutes * MINUTE_NS, PROFILE);
    }
    writeln!(std::io::stdout(), "{}", server.http.url("")).expect("whoever starts it reads");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
