//! Profiles from Pyroscope: the whole client against a server that follows what is published.

use expect_test::{Expect, expect};
use perflens_tests::cli::{Run, peer};
use perflens_tests::fetch::{failure, fetch, report, seconds_ago};
use perflens_tests::http::Does;
use perflens_tests::pyroscope::FakePyroscope;

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
const IN_USE: &str = "memory:inuse_space:bytes:space:bytes";
const KIND: &[&str] = &["--kind", "pyroscope"];

const PROFILE: &str = "
    samples/count cpu/nanoseconds
    !period cpu/nanoseconds 10_000_000
    !duration 15_000_000_000
    main.go:10 main.main; work.go:4 work.do = 3, 30_000_000
    main.go:11 main.main = 1, 10_000_000
";

const HEAP: &str = "
    inuse_objects/count inuse_space/bytes
    !period space/bytes 524288
    main.go:10 main.main; cache.go:4 cache.fill = 2, 600
    main.go:10 main.main; other.go:7 other.load = 1, 40
";

fn with(arguments: &[&'static str]) -> Vec<&'static str> {
    [KIND, arguments].concat()
}

fn check(does: Vec<Does>, expect: &Expect) {
    let server = FakePyroscope::start();
    server.pyroscope().faults.extend(does);
    expect.assert_eq(&failure(&server.http.url(""), &with(&[CPU, "-o", "out.pb.gz"])));
}

/// What judges the server in `perflens_tests::pyroscope` can't be built, see `tests/peers/README.md`. Where that is no
/// longer so, it is to be run here.
#[test]
fn there_is_no_real_server_to_agree_with() {
    assert!(peer("pyroscope").is_none(), "there is a real one now, and no test has the client talk to it");
}

#[test]
fn a_time_is_one_request() {
    let server = FakePyroscope::start();
    for (app, age) in [("a", 60), ("b", 50), ("a", 3000)] {
        server.pyroscope().store("process_cpu", &[("service_name", app)], seconds_ago(age), PROFILE);
    }
    let (whole, notes) = report(&server.http.url(""), &with(&[CPU]));
    assert_eq!((whole.profile.total, whole.line("work.go", 4).costs.flat), (80_000_000, 60_000_000));
    assert_eq!(server.calls(), ["SelectMergeProfile"]);
    assert!(notes.contains(": the time from 20"), "{notes}");
    assert_eq!(whole.profile.duration_ns, Some(15 * 60 * 1_000_000_000));
    let (longer, _) = report(&server.http.url("/any/prefix/"), &with(&[CPU, "--range", "2h"]));
    assert_eq!(longer.profile.total, 120_000_000);
}

#[test]
fn all_matchers_and_awkward_values_arrive() {
    let server = FakePyroscope::start();
    let odd = "say \"hi\"\\\nthere {a,b}";
    server.pyroscope().store("process_cpu", &[("service_name", odd), ("pod", "web-1")], seconds_ago(60), PROFILE);
    server.pyroscope().store("process_cpu", &[("service_name", "plain")], seconds_ago(60), PROFILE);
    for (matchers, total) in [
        (r#"{service_name="say \"hi\"\\\nthere {a,b}"}"#, 40_000_000),
        (r#"{service_name!="plain"}"#, 40_000_000),
        // Regular expressions match the whole value here.
        (r#"{pod=~"web"}"#, 0),
        (r#"{pod=~"w.b-[0-9]"}"#, 40_000_000),
        (r#"{pod!~"web.*"}"#, 40_000_000),
        ("{}", 80_000_000),
    ] {
        let query = format!("{CPU}{matchers}");
        if total == 0 {
            let words = failure(&server.http.url(""), &[KIND, &[&query, "-o", "out.pb.gz"]].concat());
            assert!(words.contains("no samples"), "{matchers}: {words}");
            continue;
        }
        let (report, _) = report(&server.http.url(""), &[KIND, &[&query]].concat());
        assert_eq!(report.profile.total, total, "{matchers}");
    }
}

#[test]
fn a_quarter_of_an_hour_of_heap_is_one_snapshot_of_each_instance() {
    let server = FakePyroscope::start();
    for age in 1..50 {
        server.pyroscope().store("memory", &[("service_name", "api"), ("pod", "a")], seconds_ago(age * 15), HEAP);
        server.pyroscope().store("memory", &[("service_name", "api"), ("pod", "b")], seconds_ago(age * 15 - 7), HEAP);
        if age > 9 {
            server.pyroscope().store("memory", &[("service_name", "api"), ("pod", "c")], seconds_ago(age * 15), HEAP);
        }
    }
    let (whole, notes) = report(&server.http.url(""), &with(&[IN_USE]));
    assert_eq!((whole.profile.total, whole.line("cache.go", 4).costs.flat), (1280, 1200));
    assert!(notes.contains("the newest snapshots of 2 instances: b ("), "{notes}");
    assert!(notes.contains("; 1 instance ended meanwhile and left out"), "{notes}");
    assert_eq!(server.calls(), ["LabelNames", "SelectSeries", "SelectMergeProfile", "SelectMergeProfile"]);
}

/// Two processes of a program that does not say which is which.
#[test]
fn processes_are_told_apart_by_what_the_server_has_of_them() {
    let server = FakePyroscope::start();
    for age in 1..10 {
        for session in ["1f", "2e"] {
            let labels = [("service_name", "api"), ("__session_id__", session)];
            server.pyroscope().store("memory", &labels, seconds_ago(age * 15 - i64::from(session == "2e") * 4), HEAP);
        }
    }
    let (whole, notes) = report(&server.http.url(""), &with(&[IN_USE]));
    assert_eq!(whole.profile.total, 1280);
    assert!(notes.contains("2 instances"), "{notes}");
}

#[test]
fn what_there_is_can_be_listed() {
    let server = FakePyroscope::start();
    server.pyroscope().store("process_cpu", &[("service_name", "api"), ("pod", "a")], seconds_ago(60), PROFILE);
    server.pyroscope().store("memory", &[("service_name", "api")], seconds_ago(60), HEAP);
    let list = |arguments: &[&'static str]| fetch(&server.http.url(""), &with(arguments)).stdout;
    let all = list(&["--list"]);
    assert!(all.contains(CPU) && all.contains(IN_USE), "{all}");
    let labels = list(&["--list", CPU]);
    assert!(labels.contains("pod") && labels.contains("service_name") && !labels.contains("__"), "{labels}");
    assert_eq!(list(&["--values", "pod", CPU]).trim(), "a");
}

#[test]
fn a_tenant_sees_what_is_its_own() {
    let server = FakePyroscope::start();
    server.pyroscope().tenant = Some("team".to_owned());
    server.pyroscope().store("process_cpu", &[("service_name", "api")], seconds_ago(60), PROFILE);
    let (own, _) = report(&server.http.url(""), &with(&["--tenant", "team", CPU]));
    assert_eq!(own.profile.total, 40_000_000);
    let others = failure(&server.http.url(""), &with(&["--tenant", "another", CPU, "-o", "out.pb.gz"]));
    assert!(others.contains("no samples"), "{others}");
}

/// A user and a password as a proxy in front wants them; the password is in no argument.
#[test]
fn basic_authentication_is_for_a_proxy_in_front() {
    let server = FakePyroscope::start();
    // "user:secret" in base64.
    server.pyroscope().authorization = Some("Basic dXNlcjpzZWNyZXQ=".to_owned());
    server.pyroscope().store("process_cpu", &[("service_name", "api")], seconds_ago(60), PROFILE);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("cpu.pb.gz");
    let output = Run::new(["fetch", "--server", &server.http.url(""), "--user", "user", "-o"])
        .arg(&file)
        .args(with(&[CPU]))
        .env("PERFLENS_TOKEN", "secret")
        .env("PERFLENS_TOKEN_FOR", server.http.url(""))
        .output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let refused = failure(&server.http.url(""), &with(&[CPU, "-o", "out.pb.gz"]));
    assert!(!refused.is_empty(), "{refused}");
}

#[test]
fn every_failure_is_a_sentence() {
    let json = |status, code: &str, message: &str| {
        let body = format!(r#"{{"code":"{code}","message":"{message}"}}"#);
        Does::status(status, "application/json", body)
    };
    check(
        vec![],
        &expect![[r#"
        perflens: 127.0.0.1:PORT has no data for this: no samples of process_cpu:cpu:nanoseconds:cpu:nanoseconds{} in the last 15m; choose a longer time, or fewer labels
    "#]],
    );
    check(
        vec![json(400, "invalid_argument", "parse error")],
        &expect![[r#"
        perflens: 127.0.0.1:PORT can't make sense of the query: parse error
    "#]],
    );
    check(
        vec![json(429, "resource_exhausted", "the query is too large")],
        &expect![[r#"
        perflens: the answer of 127.0.0.1:PORT is too large: the query is too large; choose a shorter time, or more labels
    "#]],
    );
    check(
        vec![json(404, "unimplemented", "unknown method")],
        &expect![[r#"
        perflens: 127.0.0.1:PORT does not answer as such a server does: unknown method
    "#]],
    );
    check(
        vec![Does::status(401, "text/plain", "Unauthorized\n")],
        &expect![[r#"
        perflens: 127.0.0.1:PORT wants you to sign in: 401 (Unauthorized); run perflens login
    "#]],
    );
    check(
        vec![Does::status(200, "text/html", "<html><title>Sign in</title></html>")],
        &expect![[r#"
        perflens: 127.0.0.1:PORT does not answer as such a server does: it sent a web page titled “Sign in”
    "#]],
    );
    check(
        vec![Does::ok("application/proto", "no profile")],
        &expect![[r#"
        perflens: process_cpu cpu 15m: no known profile format; `perflens report --help` lists those that are
    "#]],
    );
    check(
        vec![Does::Half(vec![7; 1000]); 4],
        &expect![[r#"
        perflens: 127.0.0.1:PORT can't be reached: end of file before message length reached
    "#]],
    );
    check(
        vec![Does::Endless(1 << 40)],
        &expect![[r#"
        perflens: the answer of 127.0.0.1:PORT is too large: more than 65 MiB; choose a shorter time, or more labels
    "#]],
    );
    check(
        vec![Does::status(302, "text/plain", "").header("location", "http://elsewhere.example/login")],
        &expect![[r#"
            perflens: 127.0.0.1:PORT does not answer as such a server does: it sends us to http://elsewhere.example/login, and redirects are not followed; give that address if it is right
        "#]],
    );
}

#[test]
fn a_profile_is_pushed_without_what_is_private() {
    let server = FakePyroscope::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("cpu.folded");
    std::fs::write(&file, "main;/home/someone/app/lib.py:work:3 5\n").expect("it can be written");
    let output = Run::new(["push", "--server", &server.http.url(""), "--kind", "pyroscope"])
        .args([file.to_str().expect("it is text")])
        .output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert_eq!(server.calls(), ["Push"]);
    let (labels, profile) = server.pyroscope().stored().remove(0);
    assert!(labels.contains_key("service_name"), "{labels:?}");
    let texts: Vec<String> = profile.string_table.iter().map(|it| String::from_utf8_lossy(it).into_owned()).collect();
    assert!(!texts.iter().any(|text| text.contains("someone")), "{texts:?}");
}
