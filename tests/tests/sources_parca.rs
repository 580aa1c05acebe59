//! Profiles from Parca: the whole client against a server with faults on demand, and against
//! the real one.

use std::process::{Command, Stdio};

use expect_test::{Expect, expect};
use perflens_tests::cli::{Guard, Run, free_port, peer};
use perflens_tests::fetch::{failure, fetch, report, seconds_ago};
use perflens_tests::http::{Does, HttpServer};
use perflens_tests::parca::{FakeParca, RealParca, frame, wait_for};

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta";
const WEB: &str = "application/grpc-web+proto";

fn check(does: impl IntoIterator<Item = Does>, expect: &Expect) {
    let parca = FakeParca::start();
    parca.parca().faults.extend(does);
    expect.assert_eq(&failure(&parca.http.url(""), &[CPU, "-o", "out.pb.gz"]));
}

const HEAP: &str = "
    inuse_objects/count inuse_space/bytes
    !period space/bytes 524288
    main.go:10 main.main; cache.go:4 cache.fill = 2, 600
    main.go:10 main.main; other.go:7 other.load = 1, 40
";

const PROFILE: &str = "
    samples/count cpu/nanoseconds
    !period cpu/nanoseconds 10_000_000
    !duration 10_000_000_000
    main.go:10 main.main; work.go:4 work.do = 3, 30_000_000
    main.go:11 main.main = 1, 10_000_000
";

#[test]
fn a_time_is_one_request_and_its_times_are_the_querys() {
    let parca = FakeParca::start();
    parca.parca().store("process_cpu", &[("job", "a")], seconds_ago(60), PROFILE);
    parca.parca().store("process_cpu", &[("job", "b")], seconds_ago(50), PROFILE);
    parca.parca().store("process_cpu", &[("job", "a")], seconds_ago(3000), PROFILE);
    let (whole, notes) = report(&parca.http.url(""), &[CPU]);
    assert_eq!((whole.profile.total, whole.line("work.go", 4).costs.flat), (80_000_000, 60_000_000));
    assert_eq!(parca.calls(), ["Query"]);
    assert!(notes.contains(": the time from 20"), "{notes}");
    // The server's own header says 1677 and nothing of a duration.
    let time = whole.profile.time_ns.expect("the query has a time");
    assert!((seconds_ago(16 * 60)..seconds_ago(14 * 60)).contains(&time), "{time}");
    assert_eq!(whole.profile.duration_ns, Some(15 * 60 * 1_000_000_000));
    let (longer, _) = report(&parca.http.url("/any/prefix/"), &[CPU, "--range", "2h"]);
    assert_eq!(longer.profile.total, 120_000_000);
}

#[test]
fn all_matchers_and_awkward_values_arrive() {
    let parca = FakeParca::start();
    let odd = "say \"hi\"\\\nthere {a,b}";
    parca.parca().store("process_cpu", &[("job", odd), ("pod", "web-1")], seconds_ago(60), PROFILE);
    parca.parca().store("process_cpu", &[("job", "b")], seconds_ago(60), PROFILE);
    let total = |labels: &str| report(&parca.http.url(""), &[&format!("{CPU}{labels}")]).0.profile.total;
    for (labels, expected) in [
        (r#"{job="say \"hi\"\\\nthere {a,b}"}"#, 40_000_000),
        (r#"{job!="b"}"#, 40_000_000),
        (r#"{pod=~"w.b"}"#, 40_000_000),
        (r#"{pod!~"w.b"}"#, 40_000_000),
        (r#"{pod=""}"#, 40_000_000),
        (r#"{pod!="",job!=""}"#, 40_000_000),
        ("{}", 80_000_000),
    ] {
        assert_eq!(total(labels), expected, "{labels}");
    }
}

#[test]
fn the_unit_is_the_answers_whether_the_server_multiplies_or_not() {
    let samples = "process_cpu:samples:count:cpu:nanoseconds:delta";
    for never_scales in [false, true] {
        let parca = FakeParca::start();
        parca.parca().never_scales = never_scales;
        parca.parca().store("process_cpu", &[], seconds_ago(60), PROFILE);
        let (report, _) = report(&parca.http.url(""), &[samples]);
        let selected = (report.profile.selected.kind.as_str(), report.profile.selected.unit.as_str());
        let expected = if never_scales { (("samples", "count"), 4) } else { (("cpu", "nanoseconds"), 40_000_000) };
        assert_eq!((selected, report.profile.total), expected);
    }
}

#[test]
fn a_quarter_of_an_hour_of_heap_is_one_snapshot() {
    let parca = FakeParca::start();
    for age in (5..900).step_by(10) {
        parca.parca().store("memory", &[("instance", "one")], seconds_ago(age), HEAP);
    }
    let (report, notes) = report(&parca.http.url(""), &["heap in use now"]);
    assert_eq!(report.profile.total, 640);
    assert_eq!(parca.calls(), ["ProfileTypes", "QueryRange", "Query"]);
    assert!(notes.contains("the newest snapshots of 1 instance: one ("), "{notes}");
}

#[test]
fn staggered_instances_are_their_sum_and_those_that_ended_are_left_out() {
    let parca = FakeParca::start();
    let base = seconds_ago(0);
    let at = |seconds: i64| base - seconds * 1_000_000_000;
    for scrape in 0..20 {
        parca.parca().store("memory", &[("instance", "one")], at(6 + 10 * scrape), HEAP);
        parca.parca().store("memory", &[("instance", "two"), ("pod", "p")], at(1 + 10 * scrape), HEAP);
        // Has a point at the newest time of the first, which is not its own newest.
        parca.parca().store("memory", &[("instance", "three")], at(6 + 5 * scrape - 5), HEAP);
        parca.parca().store("memory", &[("instance", "ended")], at(300 + 10 * scrape), HEAP);
    }
    let query = "memory:inuse_space:bytes:space:bytes";
    let (report, notes) = report(&parca.http.url(""), &[query]);
    assert_eq!(report.profile.total, 3 * 640);
    assert_eq!(report.line("cache.go", 4).costs.flat, 3 * 600);
    assert!(notes.contains("the newest snapshots of 3 instances") && notes.contains("1 instance ended"), "{notes}");
    assert_eq!(report.profile.duration_ns, None);
}

#[test]
fn what_there_is_can_be_listed() {
    let parca = FakeParca::start();
    parca.parca().store("process_cpu", &[("job", "a"), ("pod", "x\ty")], seconds_ago(60), PROFILE);
    let server = parca.http.url("");
    expect![[r#"
        on-CPU 15m
        on-CPU 1h
        on-CPU 24h
        process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta
        process_cpu:samples:count:cpu:nanoseconds:delta
    "#]]
    .assert_eq(&fetch(&server, &["--list"]).stdout);
    assert_eq!(fetch(&server, &[CPU, "--list"]).stdout, "job\npod\n");
    let values = fetch(&server, &[CPU, "--values", "pod"]).stdout;
    assert!(values.starts_with('x') && !values.contains('\t'), "{values}");
    assert!(failure(&server, &["nonsense"]).contains("the server has no such preset; it has on-CPU 15m"));
}

#[test]
fn every_failure_is_a_sentence() {
    let refused = |code: &str, words: &str| Does::ok(WEB, "").header("grpc-status", code).header("grpc-message", words);
    check(
        [],
        &expect![[r#"
        perflens: 127.0.0.1:PORT has no data for this: no samples of process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{} in the last 15m; choose a longer time, or fewer labels
    "#]],
    );
    check(
        [refused("3", "failed%20to%20parse%20query")],
        &expect![[r#"
        perflens: 127.0.0.1:PORT can't make sense of the query: failed to parse query
    "#]],
    );
    check(
        [refused("16", "no%20token")],
        &expect![[r#"
        perflens: 127.0.0.1:PORT wants you to sign in: no token; run perflens login
    "#]],
    );
    check(
        [refused("7", "wrong%20project")],
        &expect![[r#"
        perflens: 127.0.0.1:PORT does not let you see this: wrong project; check the project and what your account or token may do
    "#]],
    );
    check(
        [refused("8", "grpc: received message larger than max (174243321 vs. 67108864)")],
        &expect![[r#"
        perflens: the answer of 127.0.0.1:PORT is too large: grpc: received message larger than max (174243321 vs. 67108864); choose a shorter time, or more labels
    "#]],
    );
    check(
        [refused("12", "unknown%20service")],
        &expect![[r#"
        perflens: 127.0.0.1:PORT does not answer as such a server does: it does not know this call (unknown service); is it the right server and path?
    "#]],
    );
    check(
        [refused("13", "runtime%20error")],
        &expect![[r#"
        perflens: 127.0.0.1:PORT failed: runtime error
    "#]],
    );
    check(
        [Does::ok("text/html", "<title>Sign in to Corp Proxy</title>")],
        &expect![[r#"
        perflens: 127.0.0.1:PORT does not answer as such a server does: it sent a web page titled “Sign in to Corp Proxy”; is the address that of its API?
    "#]],
    );
    check(
        [Does::status(302, "text/html", "").header("location", "https://login.example/")],
        &expect![[r#"
        perflens: 127.0.0.1:PORT does not answer as such a server does: it sends us to https://login.example/, and redirects are not followed; give that address if it is right
    "#]],
    );
    check(
        std::iter::repeat_n(Does::ok(WEB, frame(0, b"\x32\x01")), 3),
        &expect![[r#"
        perflens: 127.0.0.1:PORT can't be reached: its answer was cut off before the end
    "#]],
    );
    check(
        [Does::Endless(100 << 20)],
        &expect![[r#"
        perflens: the answer of 127.0.0.1:PORT is too large: more than 65 MiB; choose a shorter time, or more labels
    "#]],
    );
    let broken = [frame(0, b"\xff\xff\xff"), frame(0x80, b"grpc-status: 0\r\n")].concat();
    check(
        [Does::ok(WEB, broken)],
        &expect![[r#"
        perflens: 127.0.0.1:PORT does not answer as such a server does: its answer is no message of this call
    "#]],
    );
}

#[test]
fn what_passes_is_tried_again_and_not_for_ever() {
    let busy = || Does::ok(WEB, "").header("grpc-status", "14").header("grpc-message", "restarting");
    let parca = FakeParca::start();
    parca.parca().store("process_cpu", &[], seconds_ago(60), PROFILE);
    parca.parca().faults.extend([busy(), Does::Half(vec![0; 64])]);
    assert_eq!(report(&parca.http.url(""), &[CPU]).0.profile.total, 40_000_000);
    assert_eq!(parca.calls().len(), 3);
    check(
        std::iter::repeat_with(busy).take(10),
        &expect![[r#"
        perflens: 127.0.0.1:PORT is too busy: restarting; try again later
    "#]],
    );
    // What the server has refused is not asked twice.
    let parca = FakeParca::start();
    parca.parca().faults.push_back(Does::ok(WEB, "").header("grpc-status", "3"));
    failure(&parca.http.url(""), &[CPU, "-o", "out.pb.gz"]);
    assert_eq!(parca.calls().len(), 1);
}

#[test]
fn a_server_that_says_when_to_come_back_is_asked_then_or_not_at_all() {
    // Statuses with a `google.rpc.RetryInfo` of a second and of a minute.
    const SECOND: &str = "CA4aMAoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIECgIIAQ";
    const MINUTE: &str = "CA4aMAoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIECgIIPA";
    let busy = |code: &str, details: &str| {
        Does::ok(WEB, "")
            .header("grpc-status", code)
            .header("grpc-message", "quota")
            .header("grpc-status-details-bin", details)
    };
    let parca = FakeParca::start();
    parca.parca().store("process_cpu", &[], seconds_ago(60), PROFILE);
    // In the headers, and in the trailer behind a message.
    let trailer = format!("grpc-status: 14\r\ngrpc-message: quota\r\ngrpc-status-details-bin: {SECOND}\r\n");
    parca.parca().faults.extend([busy("8", SECOND), Does::ok(WEB, frame(0x80, trailer.as_bytes()))]);
    assert_eq!(report(&parca.http.url(""), &[CPU]).0.profile.total, 40_000_000);
    assert_eq!(parca.calls().len(), 3);
    check(
        [busy("8", MINUTE)],
        &expect![[r#"
        perflens: 127.0.0.1:PORT is too busy: quota; it wants to be asked again in 60 s
    "#]],
    );
}

/// A profile that nobody can pack into less, and the sum of its values.
fn six_mebibytes() -> (String, i64) {
    let mut profile = "cpu/nanoseconds\n!period cpu/nanoseconds 1\n!duration 1\n".to_owned();
    let mut state = 1u64;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state
    };
    for line in 0..3_000 {
        let name: Vec<String> = (0..256).map(|_| format!("{:x}", word())).collect();
        profile.extend(["f.go:1 n", &name.concat(), " = ", &line.to_string(), "\n"]);
    }
    (profile, (0..3_000).sum())
}

#[test]
fn an_answer_of_six_mebibytes_is_taken() {
    let parca = FakeParca::start();
    let (profile, total) = six_mebibytes();
    parca.parca().store("process_cpu", &[], seconds_ago(60), &profile);
    let (report, _) = report(&parca.http.url(""), &[CPU]);
    assert_eq!(report.profile.total, total);
}

#[test]
fn a_profile_is_pushed_without_what_is_private() {
    let parca = FakeParca::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.pb.gz");
    let text = "
        samples/count cpu/nanoseconds
        !period cpu/nanoseconds 10_000_000
        !time 1700000000000000000
        !duration 10_000_000_000
        !comment secret
        /home/somebody/app/main.go:10 main.main; work.go:4 work.do = 3, 30_000_000 {thread=t1, customer=acme}
    ";
    perflens_tests::mini::Mini::parse(text).write_to(&file);
    let server = parca.http.url("");
    let output =
        Run::new(["push", file.to_str().unwrap(), "--server", &server, "--name", "local", "--label", "version=2"])
            .output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stderr.contains("local:cpu:nanoseconds:cpu:nanoseconds:delta"), "{}", output.stderr);
    let stored = parca.parca().stored();
    let (labels, profile) = &stored[0];
    assert_eq!(labels.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>(), ["__name__=local", "version=2"]);
    let texts: Vec<String> =
        profile.string_table.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect();
    for private in ["somebody", "acme", "customer", "secret"] {
        assert!(!texts.iter().any(|text| text.contains(private)), "{private}: {texts:?}");
    }
    assert_eq!(profile.time_nanos, 1_700_000_000_000_000_000);
    let refused = Run::new(["push", file.to_str().unwrap(), "--server", &server, "--name", "a-b"]).output();
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
}

// The real server.

/// One test, as starting it and waiting for it to scrape takes its time.
#[test]
fn the_real_server_agrees() {
    let Some(scraped) = peer("scraped") else { return };
    let folder = tempfile::tempdir().unwrap();
    let targets = [free_port(), free_port()];
    let _targets: Vec<Guard> = targets
        .iter()
        .map(|port| {
            Guard(Command::new(&scraped).arg(format!("127.0.0.1:{port}")).stdout(Stdio::null()).spawn().unwrap())
        })
        .collect();
    let Some(parca) = RealParca::start(&targets) else { return };
    let server = parca.url();

    // Pushed: totals to the last digit, by both transports, at the time that was pushed.
    let file = folder.path().join("pushed.pb.gz");
    let pushed = PROFILE.replace("!period", &format!("!time {}\n    !period", seconds_ago(30)));
    perflens_tests::mini::Mini::parse(&pushed).write_to(&file);
    for (name, grpc) in [("web", None), ("native", Some("--grpc"))] {
        let run = Run::new(["push", file.to_str().unwrap(), "--server", &server, "--name", name]);
        let output = run.args(grpc).output();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        for (kind, total) in [("cpu:nanoseconds", 40_000_000), ("samples:count", 40_000_000)] {
            let query = format!("{name}:{kind}:cpu:nanoseconds:delta");
            let arguments: Vec<&str> = [query.as_str()].into_iter().chain(grpc).collect();
            wait_for("what was pushed is there", &|| {
                fetch(&server, &[&arguments[..], &["-o", "out.pb.gz"]].concat()).code == Some(0)
            });
            let (report, _) = report(&server, &arguments);
            assert_eq!(report.profile.total, total, "{query}");
            assert_eq!(report.profile.selected.unit, "nanoseconds", "samples come back as time");
            assert_eq!(report.line("work.go", 4).costs.flat, 30_000_000);
        }
    }

    // Libraries of gRPC refuse more than 4 MiB where nobody says otherwise.
    let (large, total) = six_mebibytes();
    let large = large.replacen("!period", &format!("!time {}\n!period", seconds_ago(30)), 1);
    perflens_tests::mini::Mini::parse(&large).write_to(&file);
    let output = Run::new(["push", file.to_str().unwrap(), "--server", &server, "--name", "large"]).output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    for grpc in [None, Some("--grpc")] {
        let arguments: Vec<&str> = ["large:cpu:nanoseconds:cpu:nanoseconds:delta"].into_iter().chain(grpc).collect();
        wait_for("what was pushed is there", &|| {
            fetch(&server, &[&arguments[..], &["-o", "out.pb.gz"]].concat()).code == Some(0)
        });
        assert_eq!(report(&server, &arguments).0.profile.total, total);
    }

    // Scraped: two instances are their sum, a quarter of an hour is one snapshot of each.
    let heap = r#"memory:inuse_space:bytes:space:bytes{job="demo"}"#;
    wait_for("both instances are scraped", &|| {
        fetch(&server, &[heap, "--values", "instance"]).stdout.lines().count() == 2
    });
    wait_for("both have a heap", &|| report(&server, &[heap]).1.contains("of 2 instances"));
    // It goes on scraping, and what sampling makes of a heap differs from one time to the next: all of
    // these ask for the same time.
    let time = |nanoseconds: i64| jiff::Timestamp::from_nanosecond(nanoseconds.into()).expect("a time");
    let last_hour = format!("{}/{}", time(seconds_ago(3600)), time(seconds_ago(0)));
    let both = |arguments: &[&str]| report(&server, &[&[heap, "--range", &last_hour], arguments].concat());
    for grpc in [None, Some("--grpc")] {
        let arguments: Vec<&str> = grpc.into_iter().collect();
        let (sum, notes) = both(&arguments);
        assert!(notes.contains("of 2 instances"), "{notes}");
        // What is held by name: 4 MiB each, give or take what sampling makes of it.
        let held = sum.function("main.hold").costs.cumulative;
        let alone: i64 = targets
            .iter()
            .map(|port| {
                let one = format!(r#"memory:inuse_space:bytes:space:bytes{{job="demo",instance="127.0.0.1:{port}"}}"#);
                let arguments = [&[one.as_str(), "--range", &last_hour], &arguments[..]].concat();
                report(&server, &arguments).0.function("main.hold").costs.cumulative
            })
            .sum();
        assert_eq!(held, alone);
        assert!(held > 0);
    }
    // Regular expressions match anywhere; absent labels are empty.
    let finds = |labels: &str| {
        fetch(&server, &[&format!("memory:inuse_space:bytes:space:bytes{labels}"), "-o", "out.pb.gz"]).code == Some(0)
    };
    assert!(finds(r#"{job=~"em"}"#) && finds(r#"{job!~"^em$",nosuch=""}"#) && finds(r#"{job!="x"}"#));
    assert!(!finds(r#"{job=~"^em$"}"#) && !finds(r#"{nosuch!=""}"#));
    let sentence = failure(&server, &[r#"memory:inuse_space:bytes:space:bytes{job=~"("}"#, "-o", "out.pb.gz"]);
    assert!(sentence.contains("can't make sense of the query"), "{sentence}");
    let nothing = failure(&server, &["nosuch:cpu:nanoseconds:cpu:nanoseconds:delta", "-o", "out.pb.gz"]);
    assert!(nothing.contains("has no data for this"), "{nothing}");
    for grpc in [None, Some("--grpc")] {
        let arguments: Vec<&str> = ["--list"].into_iter().chain(grpc).collect();
        let wrong = failure(&server.replace("http:", "https:"), &arguments);
        assert!(wrong.contains("it speaks plain HTTP, the address says TLS"), "{wrong}");
    }
}

#[test]
fn grpc_against_something_else_is_a_sentence() {
    let page = HttpServer::start(|_| Does::ok("text/html", "<title>x</title>"));
    let sentence = failure(&page.url(""), &["--grpc", "--list"]);
    assert!(sentence.starts_with("perflens: 127.0.0.1:PORT "), "{sentence}");
}
