//! Profiles at an address: `perflens report http://…/debug/pprof/profile`, and the same in an
//! editor.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use expect_test::{Expect, expect};
use perflens_tests::cli::{Output, Run};
use perflens_tests::http::{Does, HttpServer};
use perflens_tests::lsp::{DEMO, DEMO_HINTS, Scene, editor};
use perflens_tests::mini::Mini;
use serde_json::json;

const PPROF: &str = "application/octet-stream";

fn profile() -> Vec<u8> {
    Mini::parse(DEMO).gzip()
}

fn report(address: &str) -> Output {
    Run::new(["report", address, "--format", "json", "--top", "0"]).output()
}

/// The sentence of a run that fails, with the server's port taken out.
fn failure(address: &str) -> String {
    let output = report(address);
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{}", output.stderr);
    let port = address.split("127.0.0.1:").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    output.stderr.replace(port, "PORT")
}

fn check(does: Does, expect: &Expect) {
    let server = HttpServer::start(move |_| does.clone());
    expect.assert_eq(&failure(&server.url("/debug/pprof/heap")));
}

#[test]
fn a_profile_is_reported_from_its_address() {
    let server = HttpServer::start(|_| Does::ok(PPROF, profile()));
    let report = Run::new(["report", &server.url("/debug/pprof/profile?seconds=1"), "--format", "json"]).json();
    assert_eq!(report.profile.total, 3_520_000_000);
    assert_eq!(report.profile.origin, format!("{}/profile", server.address()));
    let asked = server.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].method.as_str(), asked[0].target.as_str()), ("GET", "/debug/pprof/profile?seconds=1"));
    assert!(!asked[0].headers.contains_key("authorization"), "{:?}", asked[0].headers);
}

#[test]
fn the_index_stands_for_ten_seconds_of_cpu() {
    for path in ["/debug/pprof", "/debug/pprof/"] {
        let server = HttpServer::start(|_| Does::ok(PPROF, profile()));
        assert_eq!(report(&server.url(path)).code, Some(0));
        assert_eq!(server.asked()[0].target, "/debug/pprof/profile?seconds=10");
    }
}

#[test]
fn two_addresses_are_compared() {
    let server = HttpServer::start(|_| Does::ok(PPROF, profile()));
    let run = Run::new(["report", &server.url("/new"), "--base", &server.url("/old"), "--format", "json"]);
    let report = run.json();
    assert_eq!(report.profile.base.expect("there is a base").total, 3_520_000_000);
    assert_eq!(server.paths(), ["/new", "/old"]);
}

#[test]
fn every_failure_is_a_sentence() {
    check(
        Does::status(404, "text/plain", "404 page not found\n"),
        &expect![[r#"
        perflens: 127.0.0.1:PORT has nothing at this address: 404 (404 page not found)
    "#]],
    );
    check(
        Does::status(500, "text/plain", "Could not enable CPU profiling: cpu profiling already in use\n"),
        &expect![[r#"
        perflens: 127.0.0.1:PORT failed: 500 (Could not enable CPU profiling: cpu profiling already in use)
    "#]],
    );
    check(
        Does::ok("text/html; charset=utf-8", "<html><title>My app\n&amp; more</title></html>"),
        &expect![[r#"
        perflens: 127.0.0.1:PORT does not answer as such a server does: it sent a web page titled “My app &amp; more”, not a profile
    "#]],
    );
    check(
        Does::status(302, "text/html", "").header("location", "https://login.example/?next=x"),
        &expect![[r#"
        perflens: 127.0.0.1:PORT does not answer as such a server does: it sends us to https://login.example/?next=x, and redirects are not followed; give that address if it is right
    "#]],
    );
    check(
        Does::ok(PPROF, ""),
        &expect![[r#"
        perflens: 127.0.0.1:PORT does not answer as such a server does: it sent nothing
    "#]],
    );
    check(
        Does::Half(profile()),
        &expect![[r#"
        perflens: 127.0.0.1:PORT can't be reached: end of file before message length reached
    "#]],
    );
    check(
        Does::Endless(1 << 40),
        &expect![[r#"
        perflens: the answer of 127.0.0.1:PORT is too large: more than 65 MiB; choose a shorter time, or more labels
    "#]],
    );
    check(
        Does::status(429, "text/plain", "slow down").header("retry-after", "30"),
        &expect![[r#"
        perflens: 127.0.0.1:PORT is too busy: 429 (slow down); it wants to be asked again in 30 s
    "#]],
    );
    check(
        Does::ok(PPROF, "no profile at all"),
        &expect![[r#"
            perflens: 127.0.0.1:PORT/heap: no known profile format; `perflens report --help` lists those that are
        "#]],
    );
    check(
        Does::Bytes(b"\x15\x03\x01\x00\x02\x02\x46".to_vec()),
        &expect![[r#"
        perflens: 127.0.0.1:PORT and TLS: it speaks TLS or no HTTP at all, the address says plain HTTP; try https
    "#]],
    );
    check(
        Does::status(400, "text/plain", "Client sent an HTTP request to an HTTPS server.\n"),
        &expect![[r#"
        perflens: 127.0.0.1:PORT and TLS: it speaks TLS, the address says plain HTTP; write https instead of http
    "#]],
    );
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    expect![[r#"
        perflens: 127.0.0.1:PORT can't be reached: Connection refused (os error 111)
    "#]]
    .assert_eq(&failure(&format!("http://{free}/debug/pprof/heap")));
}

#[test]
fn tls_against_a_plain_server_is_told() {
    let server = HttpServer::start(|_| Does::ok(PPROF, profile()));
    expect![[r#"
        perflens: 127.0.0.1:PORT and TLS: it speaks plain HTTP, the address says TLS; write http instead of https, or use another port
    "#]]
    .assert_eq(&failure(&server.url("/debug/pprof/heap").replace("http:", "https:")));
}

#[test]
fn what_is_no_address_of_a_profile_is_refused_without_a_request() {
    let server = HttpServer::start(|_| Does::ok(PPROF, profile()));
    let sentence = failure(&server.url(""));
    assert!(sentence.contains("names a server but no profile"), "{sentence}");
    let secret = failure(&server.url("/debug/pprof/heap").replace("127.0.0.1", "me:hunter2@127.0.0.1"));
    assert!(secret.contains("does not belong into an address") && !secret.contains("hunter2"), "{secret}");
    assert!(failure("ftp://127.0.0.1:1/x").contains("is no address of a server"));
    assert_eq!(server.asked().len(), 0);
}

#[test]
fn an_editor_opens_an_address_and_asks_once_for_all_files() {
    let scene = Scene::demo();
    let server = HttpServer::start(|_| Does::ok(PPROF, profile()));
    let mut client = scene.without_profile(editor("neovim 0.11")).start();
    let main = client.open(&scene.path("src/main.rs"));
    let lib = client.open(&scene.path("src/lib.rs"));
    client.command("perflens.openProfile", json!([server.url("/debug/pprof/profile?seconds=1")]));
    assert_eq!(client.hints_soon(&main).len(), DEMO_HINTS.len());
    assert!(!client.hints(&lib).is_empty());
    // Another value type, a filter and a file that is opened later are no new request.
    client.command("perflens.selectValueType", json!(["samples"]));
    client.command("perflens.setFilter", json!(["fn~parse"]));
    client.until("the filter holds", |client| {
        let hints = client.hints(&main);
        (hints.len() == 2).then_some(())
    });
    client.open(&scene.path("src/quiet.rs"));
    assert_eq!(server.asked().len(), 1);
    client.command("perflens.refresh", json!([]));
    client.until("it is asked for again", |_| (server.asked().len() == 2).then_some(()));
}

#[test]
fn a_server_that_hangs_holds_up_nothing_and_can_be_cancelled() {
    let scene = Scene::demo();
    let server = HttpServer::start(|_| Does::Hang);
    let (mut client, main) = scene.open(editor("neovim 0.11"), "src/main.rs");
    client.command("perflens.openProfile", json!([server.url("/debug/pprof/profile?seconds=1")]));
    client.until("it is asked", |_| (server.asked().len() == 1).then_some(()));
    // What is shown stays, and answers come.
    assert_eq!(client.hints(&main).len(), DEMO_HINTS.len());
    let token = client.until("progress is shown", |client| {
        let begun = client.received("$/progress").into_iter().rev().find(|it| it["value"]["kind"] == "begin")?;
        Some(begun["token"].clone())
    });
    client.notify("window/workDoneProgress/cancel", json!({ "token": token }));
    client.until("progress ends", |client| {
        let ended = client.received("$/progress");
        ended.iter().any(|it| it["token"] == token && it["value"]["kind"] == "end").then_some(())
    });
    assert_eq!(client.hints(&main).len(), DEMO_HINTS.len());
}

#[test]
fn a_server_that_fails_leaves_what_is_shown() {
    let scene = Scene::demo();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let server = HttpServer::start(move |_| match counted.fetch_add(1, Ordering::SeqCst) {
        0 => Does::ok(PPROF, profile()),
        _ => Does::After(Duration::from_millis(10), Box::new(Does::status(503, "text/plain", "down"))),
    });
    let mut client = scene.without_profile(editor("neovim 0.11")).start();
    let main = client.open(&scene.path("src/main.rs"));
    client.command("perflens.openProfile", json!([server.url("/debug/pprof/heap")]));
    client.hints_soon(&main);
    client.command("perflens.refresh", json!([]));
    let message = client.until("the failure is told", |client| {
        let told = client.received("window/showMessage");
        told.into_iter().map(|it| it["message"].to_string()).find(|text| text.contains("too busy"))
    });
    assert!(message.contains("503 (down)"), "{message}");
    assert_eq!(client.hints(&main).len(), DEMO_HINTS.len());
}
