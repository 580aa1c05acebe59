//! OpenTelemetry profiles in an editor: they are shown as they come, but never while somebody
//! types, and only where the user wants them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use perflens_tests::lsp::{Answer, Client, DEMO, DEMO_HINTS, Scene, Start, editor};
use perflens_tests::mini::Mini;
use perflens_tests::otlp::{JSON, export, post, request};
use serde_json::{Value, json};

/// Half of [`DEMO`]: one of its stacks.
const MORE: &str = "
    samples/count cpu/nanoseconds
    !default cpu
    !period cpu/nanoseconds 10_000_000
    src/main.rs:2 main #1; src/main.rs:8 run #6 = 352, 3_520_000_000
";

fn message(text: &str, service: &str) -> Vec<u8> {
    request(&Mini::parse(text).profile, &[("service.name", service)]).to_string().into_bytes()
}

fn settings(more: &Value) -> Value {
    let mut options = json!({
        "workspaceTrusted": true,
        "otlp": { "enabled": true, "grpcPort": 0, "httpPort": 0 },
        "query": { "type": "cpu" },
    });
    if let (Some(options), Some(more)) = (options.as_object_mut(), more.as_object()) {
        options.extend(more.clone());
    }
    options
}

fn start(scene: &Scene, more: &Value) -> Start {
    scene.without_profile(editor("neovim 0.11")).options(settings(more))
}

fn received(client: &mut Client) -> Option<Value> {
    let status = client.command("perflens.showStatus", json!([]));
    status[0].get("received").cloned()
}

/// The port for HTTP, once it listens.
fn port(client: &mut Client) -> u16 {
    let received = client.until("it listens", received);
    u16::try_from(received["httpPort"].as_u64().expect("a number")).expect("a port")
}

fn send(port: u16, text: &str, service: &str) {
    let reply = post(port, JSON, &message(text, service));
    assert_eq!(reply.status, 200, "{reply:?}");
}

fn details(client: &mut Client) -> String {
    client.command("perflens.showStatus", json!([]))[0]["details"].to_string()
}

#[test]
fn lines_show_what_comes_as_it_comes() {
    let scene = Scene::demo();
    let mut client = start(&scene, &json!({})).start();
    let uri = client.open(&scene.path("src/main.rs"));
    let port = port(&mut client);
    assert!(details(&mut client).contains("nothing has come yet"));
    assert_eq!(client.hints(&uri).len(), 0);
    send(port, DEMO, "shop");
    let hints = client.hints_soon(&uri);
    assert_eq!(hints.len(), DEMO_HINTS.len());
    for (hint, (line, label)) in hints.iter().zip(DEMO_HINTS) {
        assert!(hint.starts_with(&format!("{line}:")) && hint.ends_with(label), "{hint}");
    }
    // As much again, all of it on line 8: the shares are others, and the editor is asked to look.
    let before = client.count("workspace/inlayHint/refresh");
    send(port, MORE, "cart");
    client.until("the hints follow", |client| {
        client.hints(&uri).iter().any(|hint| hint.contains("67.0% 4.72s")).then_some(())
    });
    assert!(client.count("workspace/inlayHint/refresh") > before);
    let told = details(&mut client);
    assert!(told.contains("8 records in the last 15 min from shop, cart"), "{told}");
    let counts = received(&mut client).expect("it receives");
    assert_eq!((counts["requests"].as_u64(), counts["dropped"].as_u64()), (Some(2), Some(0)), "{counts}");
    // A service alone, and then nothing of it.
    client.command("perflens.setFilter", json!(["label.service.name=cart"]));
    client.until("one service", |client| client.hints(&uri).iter().any(|hint| hint.contains("100%")).then_some(()));
    client.command("perflens.clear", json!([]));
    client.until("it is closed", |client| client.hints(&uri).is_empty().then_some(()));
    // What comes now opens nothing by itself, but can be asked for.
    send(port, MORE, "cart");
    std::thread::sleep(Duration::from_secs(3));
    let hints = client.hints(&uri);
    assert!(hints.is_empty(), "{hints:?} {}", details(&mut client));
    client.command("perflens.setFilter", json!([""]));
    client.command("perflens.selectPreset", json!(["otlp"]));
    client.hints_soon(&uri);
}

#[test]
fn nothing_changes_while_somebody_types() {
    let scene = Scene::demo();
    let mut client = start(&scene, &json!({})).start();
    let mut document = client.open_document(&scene.path("src/main.rs"));
    let uri = document.uri.clone();
    let port = port(&mut client);
    send(port, DEMO, "shop");
    let shown = client.hints_soon(&uri);
    // Whoever asks at the right moment has hints before being told to ask.
    let told = |client: &Client| client.count("workspace/inlayHint/refresh");
    let before = client.until("it is told that there are hints", |client| Some(told(client)).filter(|&told| told > 0));
    let start = Instant::now();
    let mut typed = 0;
    while start.elapsed() < Duration::from_secs(6) {
        // At the end, so that no line moves.
        client.edit(&mut document, (10, 1), (10, 1), " ");
        if typed % 5 == 0 {
            send(port, MORE, "shop");
        }
        typed += 1;
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(told(&client), before);
    assert_eq!(client.hints(&uri), shown);
    client.until("then they follow", |client| (client.hints(&uri) != shown).then_some(()));
}

#[test]
fn a_second_window_does_without_and_says_so() {
    let scene = Scene::demo();
    let mut first = start(&scene, &json!({})).start();
    let port = port(&mut first);
    let options = json!({ "otlp": { "enabled": true, "grpcPort": 0, "httpPort": port } });
    let is_off = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&is_off);
    let answers = move |method: &str, _: &Value| {
        let settings =
            json!([if asked.load(Ordering::SeqCst) { json!({ "otlp": { "enabled": false } }) } else { json!({}) }]);
        (method == "workspace/configuration").then_some(Answer::Result(settings))
    };
    let mut second = start(&scene, &options).answers(answers).start();
    let told = second.until("it is told", |client| {
        let told = client.received("window/showMessage");
        told.into_iter().map(|it| it["message"].to_string()).find(|text| text.contains("in use"))
    });
    assert!(told.contains(&format!("port {port} for OTLP is in use")), "{told}");
    assert!(details(&mut second).contains("is in use"));
    assert_eq!(received(&mut second), None);
    // It works all the same.
    second.command("perflens.openProfile", json!(["p.pb.gz"]));
    let uri = second.open(&scene.path("src/main.rs"));
    assert_eq!(second.hints_soon(&uri).len(), DEMO_HINTS.len());
    // When the settings want it elsewhere, it receives as well; where nothing is wanted, the port is free.
    drop(first);
    let changed = |client: &Client| client.notify("workspace/didChangeConfiguration", json!({ "settings": null }));
    changed(&second);
    second.until("it receives", received);
    send(port, DEMO, "shop");
    is_off.store(true, Ordering::SeqCst);
    changed(&second);
    second.until("the port is free", |_| std::net::TcpListener::bind(("127.0.0.1", port)).ok());
}

#[test]
fn a_workspace_that_is_not_trusted_opens_no_port() {
    let scene = Scene::demo();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    scene.write("perflens.toml", format!("[otlp]\nenabled = true\nhttpPort = {port}\ngrpcPort = 0\n"));
    let mut client = scene.without_profile(editor("neovim 0.11")).options(json!({})).start();
    let uri = client.open(&scene.path("src/main.rs"));
    assert_eq!(client.hints(&uri).len(), 0);
    let status = client.command("perflens.showStatus", json!([]));
    assert_eq!(status[0].get("received"), None);
    assert!(status[0]["ignored"].to_string().contains("otlp.enabled"), "{status}");
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn a_flood_leaves_the_editor_alone() {
    let scene = Scene::demo();
    let mut client = start(&scene, &json!({})).start();
    let uri = client.open(&scene.path("src/main.rs"));
    let port = port(&mut client);
    send(port, DEMO, "shop");
    client.hints_soon(&uri);
    let grpc = received(&mut client).expect("it receives")["grpcPort"].as_u64().expect("a number");
    let grpc = u16::try_from(grpc).expect("a port");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for at in 0..300 {
                send(port, MORE, &format!("s{at}"));
            }
        });
        scope.spawn(|| {
            for _ in 0..100 {
                assert_eq!(export(grpc, b"garbage").grpc_status(), Some("3"));
            }
        });
        for _ in 0..100 {
            assert!(!client.hints(&uri).is_empty(), "what was shown goes away");
        }
    });
    let counts = received(&mut client).expect("it receives");
    assert_eq!(counts["requests"].as_u64(), Some(301), "{counts}");
    assert_eq!(counts["refused"]["damaged"].as_u64(), Some(100), "{counts}");
    client.until("all of it is shown", |client| {
        let status = client.command("perflens.showStatus", json!([]));
        (status[0]["total"].as_i64() == Some(3_520_000_000 * 301)).then_some(())
    });
}
