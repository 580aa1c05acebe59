//! The language server as a process: how it starts and ends, in every order; what it makes of
//! input that no client should send; and that nothing waits for something slow.
//!
//! Most of these are faults that other servers on the same library have. The client behind the
//! tests ([`perflens_tests::lsp`]) checks on its own that each request is answered exactly once,
//! that only frames come out, and that the process ends.
//!
//! What is not here: panics in handlers, which can't be caused from outside and are tested beside
//! the transport; and any speed.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use perflens_tests::lsp::{
    Answer, Client, DEADLINE, Log, Scene, Start, editor, frame, frame_text, hint_params, notification, position_params,
    uri,
};
use perflens_tests::mini::Mini;
use serde_json::{Value, json};

const SCENE: &str = "
    cpu/nanoseconds wall/nanoseconds
    src/main.rs:2 main; src/main.rs:6 work = 90_000_000, 100_000_000
    src/main.rs:3 main = 10_000_000, 20_000_000
    //- /src/main.rs
fn main() {
    work();
    rest();
}
fn work() {
    spin();
}
fn rest() {}
";

const INVALID_REQUEST: i64 = -32600;
const UNKNOWN_METHOD: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const PARSE_ERROR: i64 = -32700;
const NOT_INITIALIZED: i64 = -32002;
const CANCELLED: i64 = -32800;

fn scene() -> Scene {
    Scene::new(SCENE)
}

fn code(error: &Value) -> i64 {
    error["code"].as_i64().unwrap_or_else(|| panic!("an error without code: {error}"))
}

/// A request that each server answers at once, and its answer is looked at.
fn assert_answers(client: &mut Client) {
    assert_eq!(code(&client.refused("perflens-tests/unknown", Value::Null)), UNKNOWN_METHOD);
}

/// A server with the profile and the file loaded, whose questions nobody answers.
fn with_questions_open(scene: &Scene) -> (Client, String) {
    let mut client = scene
        .editor(editor("vscode"))
        .answers(|method, _| (method == "window/showMessageRequest").then_some(Answer::Never))
        .start();
    let uri = client.open(&scene.path("src/main.rs"));
    client.hints_soon(&uri);
    (client, uri)
}

/// A command that asks the user to choose.
fn ask(client: &mut Client) -> i64 {
    client.send("workspace/executeCommand", json!({ "command": "perflens.selectValueType", "arguments": [] }))
}

/// A command that reads a pipe nobody writes to.
fn load_for_ever(client: &mut Client, pipe: &Path) -> i64 {
    client
        .send("workspace/executeCommand", json!({ "command": "perflens.openProfile", "arguments": [{ "path": pipe }] }))
}

// Order.

#[test]
fn a_request_sees_exactly_the_edits_before_it() {
    let scene = scene();
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    let mut messages = Vec::new();
    let mut asked = Vec::new();
    for version in 2..202 {
        let change = json!({ "range": perflens_tests::lsp::range((0, 0), (0, 0)), "text": "// new\n" });
        messages.push(notification(
            "textDocument/didChange",
            json!({ "textDocument": { "uri": uri, "version": version }, "contentChanges": [change] }),
        ));
        let (id, request) = client.new_request("textDocument/inlayHint", hint_params(&uri, (0, 0), (9999, 0)));
        messages.push(request);
        asked.push((id, version - 1));
    }
    client.messages(&messages);
    for (id, added) in asked {
        let hints = client.response(id).expect("hints");
        let lines: Vec<_> =
            hints.as_array().into_iter().flatten().map(|hint| hint["position"]["line"].clone()).collect();
        assert_eq!(lines, [1 + added, 2 + added, 5 + added], "after {added} edits");
    }
}

#[test]
fn opening_closing_and_opening_again_stays_in_order() {
    let scene = scene();
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    let text = std::fs::read_to_string(scene.path("src/main.rs")).unwrap();
    let close = notification("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    let open = notification(
        "textDocument/didOpen",
        json!({ "textDocument": { "uri": uri, "languageId": "rust", "version": 1, "text": text } }),
    );
    let mut messages = Vec::new();
    let mut asked = Vec::new();
    for round in 0..60 {
        let is_open = round % 2 == 1;
        messages.push(if is_open { open.clone() } else { close.clone() });
        let (id, request) = client.new_request("textDocument/inlayHint", hint_params(&uri, (0, 0), (9999, 0)));
        messages.push(request);
        asked.push((id, is_open));
    }
    client.messages(&messages);
    for (id, is_open) in asked {
        let hints = client.response(id).expect("hints");
        assert_eq!(hints.as_array().map_or(0, Vec::len), if is_open { 3 } else { 0 }, "open: {is_open}");
    }
}

// Slow handlers, slow clients.

/// oxc-project/oxc#24955, bitwisecook/tcl-lsp#1334
#[test]
fn questions_that_nobody_answers_hold_up_nothing() {
    let scene = scene();
    let (mut client, uri) = with_questions_open(&scene);
    let asking: Vec<i64> = (0..12).map(|_| ask(&mut client)).collect();
    let first = client.incoming_message("window/showMessageRequest");
    // More than any queue holds, in one write, with the answers behind it.
    let mut messages = Vec::new();
    let mut asked = Vec::new();
    for version in 2..402 {
        messages.push(notification(
            "textDocument/didChange",
            json!({ "textDocument": { "uri": uri, "version": version }, "contentChanges": [] }),
        ));
        let (id, request) = client.new_request("textDocument/inlayHint", hint_params(&uri, (0, 0), (9999, 0)));
        messages.push(request);
        asked.push(id);
    }
    client.messages(&messages);
    client.respond(&first["id"], Answer::Result(Value::Null));
    for id in asked {
        assert_eq!(client.response(id).expect("hints").as_array().map(Vec::len), Some(3));
    }
    for id in asking {
        client.cancel(id);
    }
}

#[test]
fn loads_that_do_not_end_hold_up_nothing() {
    let scene = scene();
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    let loads: Vec<i64> = (0..8).map(|n| load_for_ever(&mut client, &scene.pipe(&format!("{n}.pb.gz")))).collect();
    for _ in 0..200 {
        assert_eq!(client.hints(&uri).len(), 3, "the costs of the loaded profile stay");
    }
    assert!(client.hover(&uri, 1, 4).contains("90.0%"), "also what takes longer to work out");
    for id in loads {
        client.cancel(id);
        // It may have been answered when the load began, or when a newer one took its place.
        if let Err(error) = client.response(id) {
            assert_eq!(code(&error), CANCELLED);
        }
    }
}

#[test]
fn a_client_that_does_not_read_for_a_while_gets_everything_later() {
    let scene = scene();
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    client.pause_reading();
    let asked: Vec<i64> =
        (0..3000).map(|_| client.send("textDocument/inlayHint", hint_params(&uri, (0, 0), (9999, 0)))).collect();
    std::thread::sleep(Duration::from_millis(300));
    client.resume_reading();
    for id in asked {
        assert_eq!(client.response(id).expect("hints").as_array().map(Vec::len), Some(3));
    }
}

#[test]
fn a_log_that_nobody_reads_holds_up_nothing() {
    for log in [Log::Leave, Log::Close] {
        let scene = scene();
        let mut client = scene.editor(editor("vscode")).log(log).start();
        let uri = client.open(&scene.path("src/main.rs"));
        client.hints_soon(&uri);
        // Each of them is worth a line in the log.
        for _ in 0..3000 {
            client.raw(frame_text("this is no JSON, and it says so at some length, for the pipe to be full"));
        }
        assert_answers(&mut client);
        for _ in 0..3000 {
            assert_eq!(code(&client.orphan()), PARSE_ERROR);
        }
        assert_eq!(client.hints(&uri).len(), 3, "{log:?}");
    }
}

// Cancelling.

#[test]
fn cancelling_is_immediate_while_everything_else_is_stuck() {
    let scene = scene();
    let (mut client, uri) = with_questions_open(&scene);
    let stuck: Vec<i64> = (0..20).map(|_| ask(&mut client)).collect();
    let load = load_for_ever(&mut client, &scene.pipe("slow.pb.gz"));
    client.hints(&uri);
    let open: Vec<i64> = stuck.iter().copied().chain([load]).filter(|&id| !client.is_answered(id)).collect();
    if let Some((&last, others)) = open.split_last() {
        client.cancel(last);
        assert_eq!(code(&client.response(last).expect_err("it is cancelled")), CANCELLED);
        for &id in others {
            assert!(!client.is_answered(id), "the others go on");
            client.cancel(id);
            assert_eq!(code(&client.response(id).expect_err("it is cancelled")), CANCELLED);
        }
    }
    assert_eq!(client.hints(&uri).len(), 3);
}

#[test]
fn two_hundred_cancelled_requests_are_answered_once_each() {
    let scene = scene();
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    let mut messages = Vec::new();
    let mut asked = Vec::new();
    for round in 0..200 {
        let method = ["textDocument/inlayHint", "textDocument/codeLens", "textDocument/hover"][round % 3];
        let mut params = hint_params(&uri, (0, 0), (9999, 0));
        params["position"] = json!({ "line": 1, "character": 4 });
        let (id, request) = client.new_request(method, params);
        messages.push(request);
        messages.push(notification("$/cancelRequest", json!({ "id": id })));
        asked.push(id);
    }
    client.messages(&messages);
    for id in asked {
        if let Err(error) = client.response(id) {
            assert_eq!(code(&error), CANCELLED);
        }
    }
    assert_eq!(client.hints(&uri).len(), 3);
}

/// There are fewer threads for slow work than requests; what waits for one can be cancelled as
/// well, and what runs lets go of it.
#[test]
fn cancelling_is_immediate_while_all_hands_are_busy() {
    use std::fmt::Write as _;
    let mut text = String::from("cpu/nanoseconds\n");
    for sample in 0..60_000 {
        writeln!(text, "src/main.rs:2 main; src/main.rs:6 work; src/main.rs:{} rest = 10", 1 + sample % 9).unwrap();
    }
    text += "//- /src/main.rs\n";
    text += &"fn main() {}\nfn work() {}\nfn rest() {}\n".repeat(3);
    let scene = Scene::new(&text);
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    let hovers: Vec<i64> =
        (0..60).map(|round| client.send("textDocument/hover", position_params(&uri, round % 9, 3))).collect();
    for &id in hovers.iter().rev() {
        client.cancel(id);
    }
    let hints = client.hints(&uri).len();
    assert_eq!(hints, 9);
    let cancelled =
        hovers.iter().filter(|&&id| client.response(id).is_err_and(|error| code(&error) == CANCELLED)).count();
    assert!(cancelled > hovers.len() / 2, "{cancelled} of {}", hovers.len());
    assert!(!client.hover(&uri, 1, 3).is_empty(), "hands are free again");
}

#[test]
fn cancelling_what_is_over_or_never_was_is_ignored() {
    let scene = scene();
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    let id = client.send("textDocument/inlayHint", hint_params(&uri, (0, 0), (9999, 0)));
    client.response(id).expect("hints");
    client.cancel(id);
    client.cancel(id);
    client.cancel(987_654);
    for params in [json!({ "id": "name" }), json!({ "id": null }), json!({}), json!([1]), Value::Null] {
        client.notify("$/cancelRequest", params);
    }
    assert_answers(&mut client);
}

/// ebkalderon/tower-lsp#417
#[test]
fn late_answers_to_dropped_questions_kill_nobody() {
    let scene = scene();
    let (mut client, uri) = with_questions_open(&scene);
    let asked = ask(&mut client);
    let question = client.incoming_message("window/showMessageRequest");
    client.cancel(asked);
    let _ = client.response(asked);
    client.respond(&question["id"], Answer::Result(json!({ "title": "wall" })));
    // Once more, and to things that nobody asked.
    client.respond(&question["id"], Answer::Result(Value::Null));
    client.respond(&question["id"], Answer::Refuse);
    for id in [json!(987_654), json!("nothing"), Value::Null] {
        client.respond(&id, Answer::Result(Value::Null));
        client.respond(&id, Answer::Refuse);
    }
    client.message(
        &json!({ "jsonrpc": "2.0", "id": question["id"], "result": 1, "error": { "code": 1, "message": "" } }),
    );
    assert_answers(&mut client);
    assert_eq!(client.hints(&uri).len(), 3);
}

#[test]
fn answers_that_make_no_sense_are_survived() {
    for nonsense in [json!(7), json!([]), json!({ "title": 7 }), json!({ "title": "no such choice" }), json!("x")] {
        let scene = scene();
        let answer = nonsense.clone();
        let mut client =
            scene.editor(editor("vscode")).answers(move |_, _| Some(Answer::Result(answer.clone()))).start();
        let uri = client.open(&scene.path("src/main.rs"));
        client.hints_soon(&uri);
        let asked = ask(&mut client);
        // Whatever the command says to that.
        let _ = client.response(asked);
        assert_answers(&mut client);
    }
}

// The end.

/// Barnett-Studios/cxpak#114
#[test]
fn exit_ends_the_process_while_its_input_stays_open() {
    for (shutdown, expected) in [(true, 0), (false, 1)] {
        let scene = scene();
        let (mut client, _) = scene.open(editor("helix 25.07"), "src/main.rs");
        if shutdown {
            assert_eq!(client.request("shutdown", Value::Null), Value::Null);
        }
        client.notify("exit", Value::Null);
        assert_eq!(client.exit_code(), Some(expected), "shutdown: {shutdown}");
    }
}

#[test]
fn exit_before_initialize_ends_the_process() {
    let mut client = Start::new(editor("vscode")).spawn();
    client.notify("exit", Value::Null);
    assert_eq!(client.exit_code(), Some(1));
}

/// ebkalderon/tower-lsp#399, ebkalderon/tower-lsp#424
#[test]
fn messages_behind_exit_change_nothing() {
    let mut client = Start::new(editor("vscode")).start();
    client.request("shutdown", Value::Null);
    let mut bytes = frame(&notification("exit", Value::Null));
    for _ in 0..500 {
        bytes.extend(frame(&notification("textDocument/didClose", json!({ "textDocument": { "uri": "file:///a" } }))));
    }
    bytes.extend(frame(&notification("exit", Value::Null)));
    bytes.extend(b"Content-Length: 99");
    client.raw(bytes);
    assert_eq!(client.exit_code(), Some(0));
}

#[test]
fn the_end_of_input_ends_the_process() {
    let mut starting = Start::new(editor("vscode")).spawn();
    starting.close_stdin();
    assert_eq!(starting.exit_code(), Some(1), "before initialize");

    let mut running = Start::new(editor("vscode")).start();
    running.close_stdin();
    assert_eq!(running.exit_code(), Some(1), "in a session");

    let mut cut = Start::new(editor("vscode")).start();
    cut.raw(&frame_text("{}")[..10]);
    cut.close_stdin();
    assert_eq!(cut.exit_code(), Some(1), "within a header");

    let mut cut = Start::new(editor("vscode")).start();
    cut.raw(b"Content-Length: 1000\r\n\r\n{");
    cut.close_stdin();
    assert_eq!(cut.exit_code(), Some(1), "within a message");

    let mut shut_down = Start::new(editor("vscode")).start();
    shut_down.request("shutdown", Value::Null);
    shut_down.close_stdin();
    // Whether that is an orderly end, nobody says.
    assert!(shut_down.exit_code().is_some(), "after shutdown");
}

#[test]
fn the_end_of_input_does_not_wait_for_handlers_or_answers() {
    let scene = scene();
    let (mut client, _) = with_questions_open(&scene);
    for _ in 0..5 {
        ask(&mut client);
    }
    load_for_ever(&mut client, &scene.pipe("slow.pb.gz"));
    client.incoming("window/showMessageRequest");
    client.close_stdin();
    assert_eq!(client.exit_code(), Some(1));
}

#[test]
fn the_end_of_input_does_not_wait_for_a_client_that_reads_nothing() {
    let scene = scene();
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    client.pause_reading();
    for _ in 0..3000 {
        client.send("textDocument/inlayHint", hint_params(&uri, (0, 0), (9999, 0)));
    }
    client.close_stdin();
    assert_eq!(client.exit_code(), Some(1));
}

#[test]
fn a_closed_output_ends_the_process() {
    let scene = scene();
    let (mut client, _) = scene.open(editor("vscode"), "src/main.rs");
    client.close_stdout();
    client.send("perflens-tests/unknown", Value::Null);
    client.exit_code();
}

#[test]
fn the_end_of_the_editor_ends_the_process_though_the_pipes_stay_open() {
    let mut editor_process = sleeper();
    let mut client = Start::new(editor("vscode")).param("processId", editor_process.id()).start();
    assert_answers(&mut client);
    editor_process.kill().unwrap();
    editor_process.wait().unwrap();
    assert_eq!(client.exit_code(), Some(1));
}

#[test]
fn an_editor_that_is_a_zombie_is_gone() {
    let mut editor_process = sleeper();
    let mut client = Start::new(editor("vscode")).param("processId", editor_process.id()).start();
    assert_answers(&mut client);
    editor_process.kill().unwrap();
    // Not waited for until the server is gone.
    assert_eq!(client.exit_code(), Some(1));
    editor_process.wait().unwrap();
}

#[test]
fn an_editor_that_cannot_be_seen_is_not_dead() {
    // As it is when the server runs in a container and the editor does not.
    let mut gone = sleeper();
    gone.kill().unwrap();
    gone.wait().unwrap();
    for process in [json!(gone.id()), json!(4_194_304), json!(0), Value::Null] {
        let mut client = Start::new(editor("vscode")).param("processId", process.clone()).start();
        std::thread::sleep(Duration::from_millis(1500));
        assert!(client.is_running(), "{process}");
        assert_answers(&mut client);
    }
}

fn sleeper() -> Child {
    Command::new("sleep").arg("1000").spawn().expect("starting sleep")
}

/// Run by the next test as a process of its own.
#[test]
#[ignore = "it is the client that is killed in another test"]
fn client_to_be_killed() {
    let Some(note) = std::env::var_os("CLIENT_TO_BE_KILLED") else { return };
    let scene = scene();
    let (client, _) = scene.open(editor("vscode"), "src/main.rs");
    std::fs::write(note, format!("{}.", client.pid())).unwrap();
    std::thread::sleep(DEADLINE * 2);
}

/// ebkalderon/tower-lsp#328
#[test]
#[cfg(target_os = "linux")]
fn a_killed_client_leaves_no_server_behind() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("server");
    let mut client = Command::new(std::env::current_exe().unwrap())
        .args(["client_to_be_killed", "--exact", "--ignored"])
        .env("CLIENT_TO_BE_KILLED", &note)
        // Built here, and not by the other process.
        .env("PERFLENS_BIN", perflens_tests::cli::binary())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let server: u32 = loop {
        let noted = std::fs::read_to_string(&note).unwrap_or_default();
        if let Some(server) = noted.strip_suffix('.') {
            break server.parse().unwrap();
        }
        assert!(start.elapsed() < DEADLINE, "the client does not start the server");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(is_alive(server));
    client.kill().unwrap();
    client.wait().unwrap();
    let killed = Instant::now();
    while is_alive(server) {
        assert!(killed.elapsed() < DEADLINE, "the server outlives its client");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(target_os = "linux")]
fn is_alive(process: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}

/// wgsl-analyzer/wgsl-analyzer#96, denoland/deno#20700
#[test]
fn shutdown_waits_for_nothing_and_ends_nothing() {
    let scene = scene();
    let (mut client, _) = with_questions_open(&scene);
    for _ in 0..5 {
        ask(&mut client);
    }
    load_for_ever(&mut client, &scene.pipe("slow.pb.gz"));
    assert_eq!(client.request("shutdown", Value::Null), Value::Null);
    std::thread::sleep(Duration::from_millis(300));
    assert!(client.is_running(), "it waits for exit");
    client.notify("exit", Value::Null);
    assert_eq!(client.exit_code(), Some(0));
}

/// tower-lsp-community/tower-lsp-server#40
#[test]
fn shutdown_takes_any_parameters() {
    for params in [None, Some(Value::Null), Some(json!({})), Some(json!([]))] {
        let mut client = Start::new(editor("eglot")).start();
        let mut message = json!({ "jsonrpc": "2.0", "id": "end", "method": "shutdown" });
        let mut exit = json!({ "jsonrpc": "2.0", "method": "exit" });
        if let Some(params) = params.clone() {
            message["params"] = params.clone();
            exit["params"] = params;
        }
        client.message(&message);
        assert_eq!(client.response("end"), Ok(Value::Null), "{params:?}");
        client.message(&exit);
        assert_eq!(client.exit_code(), Some(0), "{params:?}");
    }
}

// States.

#[test]
fn before_initialize_requests_are_refused_and_notifications_dropped() {
    let scene = scene();
    let start = scene.editor(editor("vscode"));
    let params = start.initialize_params();
    let mut client = start.spawn();
    client.open(&scene.path("src/main.rs"));
    client.notify("initialized", json!({}));
    for method in ["textDocument/inlayHint", "workspace/executeCommand", "perflens/status"] {
        let params = hint_params(&scene.uri("src/main.rs"), (0, 0), (9, 0));
        assert_eq!(code(&client.refused(method, params)), NOT_INITIALIZED, "{method}");
    }
    let result = client.request("initialize", params.clone());
    assert!(result["capabilities"].is_object());
    client.notify("initialized", json!({}));
    assert_eq!(code(&client.refused("initialize", params)), INVALID_REQUEST, "once is enough");
    assert_answers(&mut client);
    let uri = client.open(&scene.path("src/main.rs"));
    assert_eq!(client.hints_soon(&uri).len(), 3);
}

#[test]
fn everything_in_one_write_is_handled() {
    let scene = scene();
    let start = scene.editor(editor("vscode"));
    let params = start.initialize_params();
    let mut client = start.spawn();
    let uri = scene.uri("src/main.rs");
    let text = std::fs::read_to_string(scene.path("src/main.rs")).unwrap();
    let (initialize, first) = client.new_request("initialize", params);
    let (hints, second) = client.new_request("textDocument/inlayHint", hint_params(&uri, (0, 0), (99, 0)));
    client.messages(&[
        first,
        notification("initialized", json!({})),
        notification(
            "textDocument/didOpen",
            json!({ "textDocument": { "uri": uri, "languageId": "rust", "version": 1, "text": text } }),
        ),
        second,
    ]);
    assert!(client.response(initialize).expect("capabilities")["capabilities"].is_object());
    client.response(hints).expect("hints, or none yet, but no refusal");
    assert_eq!(client.hints_soon(&uri).len(), 3, "the document was opened");
}

#[test]
fn after_shutdown_every_request_is_refused() {
    let scene = scene();
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    client.request("shutdown", Value::Null);
    for method in ["textDocument/inlayHint", "workspace/executeCommand", "perflens/status", "initialize", "shutdown"] {
        let error = client.refused(method, hint_params(&uri, (0, 0), (9, 0)));
        assert_eq!(code(&error), INVALID_REQUEST, "{method}");
    }
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    client.notify("exit", Value::Null);
    assert_eq!(client.exit_code(), Some(0));
}

#[test]
fn a_session_whose_editor_forgets_initialized_is_served() {
    let scene = scene();
    let start = scene.editor(editor("bare"));
    let params = start.initialize_params();
    let mut client = start.spawn();
    client.request("initialize", params);
    let uri = client.open(&scene.path("src/main.rs"));
    client.hints(&uri);
    client.command("perflens.openProfile", json!(["p.pb.gz"]));
    assert_eq!(client.hints_soon(&uri).len(), 3);
}

// Messages that no client should send.

#[test]
fn what_is_no_message_is_refused_and_reading_goes_on() {
    let table: &[(&str, i64)] = &[
        ("", PARSE_ERROR),
        ("{", PARSE_ERROR),
        ("nonsense", PARSE_ERROR),
        (r#"{"jsonrpc":"2.0","method":"#, PARSE_ERROR),
        (r#"{"jsonrpc":"2.0","method":"a"} x"#, PARSE_ERROR),
        ("[]", INVALID_REQUEST),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"shutdown"}]"#, INVALID_REQUEST),
        ("7", INVALID_REQUEST),
        ("null", INVALID_REQUEST),
        ("\"text\"", INVALID_REQUEST),
        ("{}", INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0"}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","method":7}"#, INVALID_REQUEST),
    ];
    let scene = scene();
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    for &(body, expected) in table {
        client.raw(frame_text(body));
        assert_eq!(code(&client.orphan()), expected, "{body:?}");
        assert_eq!(client.hints(&uri).len(), 3, "after {body:?}");
    }
    // With an id, the error may name it.
    for body in [json!({ "jsonrpc": "2.0", "id": 1000 }), json!({ "jsonrpc": "2.0", "id": 1001, "params": {} })] {
        client.expect_answer(body["id"].clone());
        client.raw(frame(&body));
        let id = body["id"].clone();
        let error = client.until("a refusal", |client| {
            if client.is_answered(id.as_i64().unwrap()) {
                client.response(id.clone()).err()
            } else {
                client.try_orphan()
            }
        });
        assert_eq!(code(&error), INVALID_REQUEST, "{body}");
        client.forget_answer(id.clone());
        assert_eq!(client.hints(&uri).len(), 3, "after {body}");
    }
}

#[test]
fn nesting_without_end_is_refused() {
    let mut client = Start::new(editor("vscode")).start();
    let depth = 100_000;
    client.raw(frame_text("[".repeat(depth) + &"]".repeat(depth)));
    assert_eq!(code(&client.orphan()), PARSE_ERROR);
    let deep = "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth);
    client.raw(frame_text(format!(r#"{{"jsonrpc":"2.0","method":"$/x","params":{deep}}}"#)));
    assert_eq!(code(&client.orphan()), PARSE_ERROR);
    assert_answers(&mut client);
}

#[test]
fn invalid_utf_8_is_read_as_well_as_it_can() {
    let scene = scene();
    let (mut client, uri) = scene.open(editor("neovim 0.11"), "src/main.rs");
    // Half a character, as Neovim sends it when a plug-in edits by bytes.
    let change = format!(
        r#"{{"jsonrpc":"2.0","method":"textDocument/didChange","params":{{"textDocument":{{"uri":"{uri}","version":2}},
        "contentChanges":[{{"range":{{"start":{{"line":0,"character":0}},"end":{{"line":0,"character":0}}}},"text":"// h?llo\n"}}]}}}}"#
    );
    let mut body = change.into_bytes();
    let half = body.iter().position(|&byte| byte == b'?').unwrap();
    body[half] = 0xc3;
    client.raw(frame_text(body));
    let lines: Vec<String> =
        client.hints(&uri).iter().map(|hint| hint.split(':').next().unwrap_or_default().to_owned()).collect();
    assert_eq!(lines, ["2", "3", "6"]);
}

#[test]
fn ids_are_numbers_or_text() {
    let client = Start::new(editor("vscode")).start();
    for id in [json!("a"), json!(""), json!("1"), json!(0), json!(-7), json!(2_147_483_648_u64), json!("ü🔥")] {
        client.message(&json!({ "jsonrpc": "2.0", "id": id, "method": "perflens-tests/unknown" }));
        assert_eq!(code(&client.response(id.clone()).expect_err("it is unknown")), UNKNOWN_METHOD, "{id}");
    }
}

/// chipsalliance/verible#1987
#[test]
fn headers_come_in_every_form() {
    let mut client = Start::new(editor("bare")).start();
    for header in [
        "Content-Length: #\r\n\r\n",
        "content-length: #\r\n\r\n",
        "CONTENT-LENGTH: #\r\n\r\n",
        "Content-Length:#\r\n\r\n",
        "Content-Length:   #  \r\n\r\n",
        "Content-Length: #\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n",
        "Content-Type: application/vscode-jsonrpc; charset=utf8\r\nContent-Length: #\r\n\r\n",
        "Content-Type: application/vscode-jsonrpc\r\nContent-Length: #\r\n\r\n",
        "content-type: text\r\nX-A: 1\r\nx-b: 2\r\nX-C:\r\nCONTENT-length: #\r\nX-D: a: b\r\n\r\n",
    ] {
        let (id, message) = client.new_request("perflens-tests/unknown", Value::Null);
        let body = message.to_string();
        client.expect_answer(id);
        client.raw(header.replace('#', &body.len().to_string()) + &body);
        assert_eq!(code(&client.response(id).expect_err("it is unknown")), UNKNOWN_METHOD, "{header:?}");
    }
}

#[test]
fn a_frame_may_be_cut_anywhere() {
    let mut client = Start::new(editor("bare")).start();
    let (id, message) = client.new_request("perflens-tests/unknown", json!({ "text": "é🔥" }));
    client.expect_answer(id);
    for byte in frame(&message) {
        client.raw([byte]);
        std::thread::sleep(Duration::from_micros(500));
    }
    assert_eq!(code(&client.response(id).expect_err("it is unknown")), UNKNOWN_METHOD);
    // And several frames may come as one.
    let mut bytes = Vec::new();
    let ids: Vec<i64> = (0..50)
        .map(|_| {
            let (id, message) = client.new_request("perflens-tests/unknown", Value::Null);
            client.expect_answer(id);
            bytes.extend(frame(&message));
            id
        })
        .collect();
    client.raw(bytes);
    for id in ids {
        assert_eq!(code(&client.response(id).expect_err("it is unknown")), UNKNOWN_METHOD);
    }
}

#[test]
fn headers_that_say_nothing_useful_are_survived() {
    for header in ["Content-Length: x\r\n\r\n", "Content-Length: -1\r\n\r\n", "X-Only: 1\r\n\r\n"] {
        let mut client = Start::new(editor("bare")).start();
        client.raw(header);
        assert_eq!(code(&client.orphan()), PARSE_ERROR, "{header:?}");
        assert_answers(&mut client);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_length_beyond_all_reason_is_refused_at_once_and_takes_no_memory() {
    for length in ["99999999999999", "18446744073709551615", "4000000000"] {
        let mut client = Start::new(editor("bare")).start();
        client.raw(format!("Content-Length: {length}\r\n\r\n{{}}"));
        assert_eq!(code(&client.orphan()), PARSE_ERROR, "{length}");
        assert_answers(&mut client);
        let peak = peak_kib(client.pid());
        assert!(peak < 200 << 10, "{length}: {peak} KiB");
        client.close_stdin();
        assert_eq!(client.exit_code(), Some(1), "{length}");
    }
}

#[cfg(target_os = "linux")]
fn peak_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says the peak");
    peak.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn unknown_requests_are_refused_and_unknown_notifications_ignored() {
    let mut client = Start::new(editor("vscode")).start();
    for method in ["textDocument/unknown", "$/unknown", "perflens/unknown", "", "ü"] {
        for params in [Value::Null, json!({}), json!([]), json!({ "a": [1] })] {
            client.notify(method, params.clone());
            assert_eq!(code(&client.refused(method, params)), UNKNOWN_METHOD, "{method:?}");
        }
    }
    client.notify("$/setTrace", json!({ "value": "verbose" }));
    client.notify("$/progress", json!({ "token": 1, "value": {} }));
    client.notify("workspace/didChangeConfiguration", json!({ "settings": null }));
    client.notify("workspace/didChangeWatchedFiles", json!({ "changes": [] }));
    client.notify("textDocument/didSave", json!({ "textDocument": { "uri": "file:///nowhere.rs" } }));
    assert_answers(&mut client);
}

#[test]
fn parameters_of_the_wrong_shape_are_refused_in_requests_and_survived_in_notifications() {
    let scene = scene();
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    for params in
        [Value::Null, json!({}), json!([]), json!({ "textDocument": 7 }), json!({ "textDocument": { "uri": "%" } })]
    {
        for method in
            ["textDocument/inlayHint", "textDocument/hover", "textDocument/codeLens", "workspace/executeCommand"]
        {
            let error = client.refused(method, params.clone());
            assert_eq!(code(&error), INVALID_PARAMS, "{method} {params}: {error}");
        }
        for method in ["textDocument/didOpen", "textDocument/didChange", "textDocument/didClose"] {
            client.notify(method, params.clone());
        }
    }
    assert_eq!(client.hints(&uri).len(), 3);
    let log = client.stderr();
    assert!(log.contains("textDocument/didOpen"), "what is thrown away is in the log: {log}");
}

#[test]
fn initialize_with_odd_parameters_is_answered() {
    let bare = json!({ "capabilities": {} });
    let table = [
        bare.clone(),
        json!({ "capabilities": {}, "processId": null, "rootUri": null, "workspaceFolders": null }),
        json!({ "capabilities": {}, "workspaceFolders": [] }),
        json!({ "capabilities": {}, "rootPath": null, "initializationOptions": null, "trace": "off", "locale": "de" }),
        json!({ "capabilities": {}, "initializationOptions": {}, "unknown": { "a": 1 } }),
        json!({ "capabilities": { "general": { "positionEncodings": [] }, "unknown": true } }),
        json!({ "capabilities": {}, "rootUri": "untitled:Untitled-1", "workspaceFolders": [{ "uri": "vscode-vfs://github/a/b", "name": "b" }] }),
        json!({ "capabilities": {}, "rootUri": "file://", "workspaceFolders": [{ "uri": "file://", "name": "" }, { "uri": "file:///", "name": "" }] }),
    ];
    for params in table {
        let mut client = Start::new(editor("bare")).spawn();
        let result = client.request("initialize", params.clone());
        assert!(result["capabilities"].is_object(), "{params}");
        client.notify("initialized", json!({}));
        assert_answers(&mut client);
    }
    // Options that are wrong cost the options, not the session.
    for options in [json!(7), json!("text"), json!([]), json!({ "source": 7 }), json!({ "hints": { "mode": "loud" } })]
    {
        let mut client = Start::new(editor("vscode")).options(options.clone()).start();
        assert!(client.server["capabilities"].is_object(), "{options}");
        assert_answers(&mut client);
    }
}

/// roc-lang/roc#6744
#[test]
fn nothing_but_frames_comes_out_however_much_is_logged() {
    for level in ["off", "warn", "trace"] {
        let scene = scene();
        let mut client = scene.editor(editor("vscode")).arg("--log").arg(level).env("RUST_LOG", "trace").start();
        let uri = client.open(&scene.path("src/main.rs"));
        client.hints_soon(&uri);
        client.notify("$/setTrace", json!({ "value": "verbose" }));
        client.raw(frame_text("nonsense"));
        assert_eq!(code(&client.orphan()), PARSE_ERROR);
        client.command("perflens.openProfile", json!([{ "path": scene.path("p.pb.gz") }]));
        client.hints_soon(&uri);
    }
}

#[test]
fn the_old_way_to_ask_for_pipes_is_accepted() {
    let scene = scene();
    let mut client = scene.editor(editor("vscode")).arg("--stdio").start();
    let uri = client.open(&scene.path("src/main.rs"));
    assert_eq!(client.hints_soon(&uri).len(), 3);
}

#[test]
fn a_profile_may_come_and_go_while_the_session_ends() {
    let scene = scene();
    for round in 0..5 {
        let start = scene.editor(editor("vscode"));
        let params = start.initialize_params();
        let mut client = start.spawn();
        client.request("initialize", params);
        client.notify("initialized", json!({}));
        client.open(&scene.path("src/main.rs"));
        scene.write("p.pb.gz", Mini::parse(SCENE).gzip());
        std::thread::sleep(Duration::from_millis(round * 20));
        assert_eq!(client.request("shutdown", Value::Null), Value::Null);
        client.notify("exit", Value::Null);
        assert_eq!(client.exit_code(), Some(0));
    }
    assert!(uri(&scene.path("a b")).ends_with("/a%20b"));
}

/// What is written there is what went wrong; nothing did.
#[test]
fn a_session_without_trouble_leaves_an_empty_log() {
    for (name, editor) in perflens_tests::lsp::EDITORS {
        let scene = scene();
        let (mut client, uri) = scene.open(*editor, "src/main.rs");
        client.hover(&uri, 1, 4);
        client.lenses(&uri);
        client.command("perflens.showStatus", json!([]));
        client.notify(
            "textDocument/didChange",
            json!({ "textDocument": { "uri": uri, "version": 2 }, "contentChanges": [{ "text": "fn main() {}\n" }] }),
        );
        client.notify("textDocument/didSave", json!({ "textDocument": { "uri": uri } }));
        client.notify("workspace/didChangeWatchedFiles", json!({ "changes": [] }));
        client.notify("$/setTrace", json!({ "value": "off" }));
        client.hints(&uri);
        client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
        client.request("shutdown", Value::Null);
        client.notify("exit", Value::Null);
        assert_eq!(client.exit_code(), Some(0), "{name}");
        assert_eq!(client.stderr(), "", "{name}");
    }
}
