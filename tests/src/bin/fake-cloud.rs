//! The cloud of tests as a process of its own, for editors: it wants a sign-in, has one project and
//! one profile, which is a minute old when it starts, and does what it is told.
//!
//! Usage: `fake-cloud PROFILE`. Prints its address, then an answer to each line of its input:
//!
//! ```text
//! stop         nobody answers at the address any more, and what is under way breaks off
//! start        somebody does again, who knows what was known before
//! hang N       the next N requests for profiles get no answer
//! forget       tokens hold no longer
//! calls        the requests for profiles so far, and how often a token was refreshed
//! ```
//!
//! Ends with its input.

use std::fmt::Write as _;
use std::io::{BufRead, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use perflens_tests::http::Does;
use perflens_tests::parca::{FakeParca, Identity};
use perflens_tests::pprof;

fn main() {
    let path = std::env::args_os().nth(1).expect("the profile is an argument");
    let packed = std::fs::read(path).expect("reading the profile");
    let profile = pprof::read(&packed).expect("it is a profile");
    let mut cloud = FakeParca::start();
    let address = cloud.http.address();
    {
        let mut parca = cloud.parca();
        parca.projects = vec![("p-1".to_owned(), "shop".to_owned())];
        parca.project = Some("p-1".to_owned());
        let mut identity = Identity::default();
        identity.url = cloud.http.url("");
        identity.lasts = Some(3600);
        parca.identity = Some(identity);
        let labels = [("job", "words")];
        parca.store_profile("process_cpu", &labels, minute_ago(), profile);
    }
    say(&cloud.http.url("/api"));
    let mut calls = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("reading a command");
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("stop", _) => {
                calls.extend(cloud.calls());
                cloud.move_to("127.0.0.1:0");
            }
            ("start", _) => cloud.move_to(&address),
            ("hang", count) => {
                let count = count.parse().expect("it is a number");
                cloud.parca().faults.extend(std::iter::repeat_n(Does::Hang, count));
            }
            ("forget", _) => cloud.parca().identity.as_mut().expect("it has one").forget_access(),
            ("calls", _) => {
                let mut answer = String::new();
                for call in calls.iter().chain(&cloud.calls()) {
                    let _ = write!(answer, "{call} ");
                }
                let refreshes = cloud.parca().identity.as_ref().expect("it has one").refreshes;
                say(&format!("{answer}refreshes={refreshes}"));
                continue;
            }
            _ => panic!("{line} is no command"),
        }
        say("done");
    }
}

fn minute_ago() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    i64::try_from(now.as_nanos()).expect("it is before 2262") - 60_000_000_000
}

fn say(words: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{words}").and_then(|()| out.flush()).expect("somebody reads it");
}
