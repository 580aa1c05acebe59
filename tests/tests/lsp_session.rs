//! What changes while the language server runs: profiles, value types, comparisons, settings,
//! trust and folders; and what the server tells the editor by itself.
//!
//! What is not here: what the surfaces look like ([`lsp`](../lsp/index.html)), and edits
//! ([`lsp_documents`](../lsp_documents/index.html)).

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use perflens_tests::lsp::{
    Answer, Client, DEMO, DEMO_HINTS, EDITORS, Scene, Start, editor, frame_text, hint_label, hint_params, range, uri,
};
use perflens_tests::mini::Mini;
use serde_json::{Value, json};

fn demo() -> (Scene, Client, String) {
    let scene = Scene::demo();
    let (client, uri) = scene.open(editor("vscode"), "src/main.rs");
    (scene, client, uri)
}

fn labels(client: &mut Client, uri: &str) -> Vec<String> {
    client.raw_hints(uri).iter().map(hint_label).collect()
}

fn demo_labels() -> Vec<String> {
    DEMO_HINTS.iter().map(|(_, label)| (*label).to_owned()).collect()
}

/// Waits until the document has these labels.
fn await_labels(client: &mut Client, uri: &str, expected: &[&str]) {
    let mut seen = Vec::new();
    client.until(&format!("the labels {expected:?}"), |client| {
        seen = labels(client, uri);
        (seen == expected).then_some(())
    });
}

fn await_demo(client: &mut Client, uri: &str) {
    await_labels(client, uri, &DEMO_HINTS.map(|(_, label)| label));
}

/// Long enough for anything that the server does by itself to be seen.
fn settle() {
    std::thread::sleep(Duration::from_millis(700));
}

/// What a command or the status says, in whatever form.
fn all_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(all_text).collect::<Vec<_>>().join("\n"),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| format!("{key} {}", all_text(value))).collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}

fn status(client: &mut Client) -> String {
    all_text(&client.request("perflens/status", Value::Null))
}

const OTHER: &str = "
    cpu/nanoseconds
    src/main.rs:3 main #1 = 30_000_000
    src/main.rs:8 run #6 = 90_000_000
";
const OTHER_LABELS: [&str; 2] = ["▆ 25.0% 30.0ms here", "█ 75.0% 90.0ms here"];

// Opening profiles.

#[test]
fn a_profile_can_be_opened_by_object_by_position_and_relative_to_the_folder() {
    let scene = Scene::demo();
    scene.write("other.pb.gz", Mini::parse(OTHER).gzip());
    let mut client = scene.without_profile(editor("helix 25.07")).start();
    let uri = client.open(&scene.path("src/main.rs"));
    for arguments in [
        json!([{ "path": scene.path("other.pb.gz") }]),
        json!([{ "path": "other.pb.gz" }]),
        json!([{ "path": "other.pb.gz", "type": "cpu" }]),
        json!(["other.pb.gz"]),
        json!(["other.pb.gz", "cpu"]),
        json!(["other.pb.gz", "cpu/nanoseconds"]),
        json!(["other.pb.gz", null]),
        json!([{ "path": "./src/../other.pb.gz", "type": null }]),
    ] {
        client.command("perflens.clear", json!([]));
        await_labels(&mut client, &uri, &[]);
        client.command("perflens.openProfile", arguments.clone());
        await_labels(&mut client, &uri, &OTHER_LABELS);
    }
}

#[test]
fn calls_that_make_no_sense_are_refused_with_a_sentence_that_names_what_is_wrong() {
    let (_scene, mut client, uri) = demo();
    let table = [
        ("perflens.openProfil", json!([]), "perflens.openProfile"),
        ("perflens.", json!([]), "perflens."),
        ("other.command", json!([]), "other.command"),
        ("perflens.openProfile", json!([7]), "path"),
        ("perflens.openProfile", json!([""]), "path"),
        ("perflens.openProfile", json!([{ "path": ["a"] }]), "path"),
        ("perflens.openProfile", json!([{ "pth": "p.pb.gz" }]), "path"),
        ("perflens.openProfile", json!(["p.pb.gz", "cpu", "more"]), "path, type"),
        ("perflens.toggleHints", json!(["loud"]), "loud"),
        ("perflens.toggleHints", json!([{ "mode": 7 }]), "mode"),
        ("perflens.setFilter", json!(["what is this"]), "what is this"),
        ("perflens.compareWith", json!(["p.pb.gz", "perhaps"]), "normalize"),
        ("perflens.showHotspots", json!([{ "top": 0 }]), "top"),
        ("perflens.showCallers", json!([uri, 0]), "line"),
        ("perflens.showCallers", json!([uri, -1]), "line"),
        ("perflens.showCallers", json!([uri, 1e30]), "line"),
        ("perflens.showActions", json!([]), "file"),
    ];
    for (command, arguments, named) in table {
        let error = client.refused("workspace/executeCommand", json!({ "command": command, "arguments": arguments }));
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains(named), "{command} {arguments}: {message}");
        assert!(!message.contains("panicked") && !message.contains('\n'), "{message}");
    }
    assert_eq!(labels(&mut client, &uri), demo_labels(), "what was shown is still shown");
}

#[test]
fn what_cannot_be_loaded_is_told_once_and_leaves_no_trace() {
    let table = [
        ("perflens.openProfile", json!(["none.pb.gz"]), "none.pb.gz"),
        ("perflens.openProfile", json!(["src"]), "src"),
        ("perflens.openProfile", json!(["src/main.rs"]), "main.rs"),
        ("perflens.openProfile", json!(["p.pb.gz", "no_such_type"]), "no_such_type"),
        ("perflens.selectValueType", json!(["no_such_type"]), "no_such_type"),
        ("perflens.compareWith", json!(["none.pb.gz"]), "none.pb.gz"),
    ];
    for (command, arguments, named) in table {
        let (scene, mut client, uri) = demo();
        refused_or_told(&mut client, command, &arguments, named);
        assert_eq!(labels(&mut client, &uri), demo_labels(), "what was shown is still shown");
        // And what was shown goes on to be followed.
        scene.rewrite(OTHER);
        client.until(&format!("the new costs, after {command} {arguments}"), |client| {
            (labels(client, &uri) == OTHER_LABELS).then_some(())
        });
    }
}

/// The failure of a command, which comes as its answer or as a message, but not as both.
fn refused_or_told(client: &mut Client, command: &str, arguments: &Value, named: &str) {
    let id = client.send("workspace/executeCommand", json!({ "command": command, "arguments": arguments }));
    let sentence = match client.response(id) {
        Err(error) => {
            settle();
            error["message"].as_str().expect("a message").to_owned()
        }
        Ok(_) => client.incoming("window/showMessage")["message"].as_str().expect("a message").to_owned(),
    };
    assert!(sentence.contains(named), "{command} {arguments}: {sentence}");
    assert_eq!(client.received("window/showMessage"), [Value::Null; 0]);
}

#[test]
fn every_command_survives_being_run_without_arguments_before_and_after_a_load() {
    let scene = Scene::demo();
    let mut client = scene.without_profile(editor("vscode")).start();
    let commands = client.server["capabilities"]["executeCommandProvider"]["commands"].clone();
    for round in 0..2 {
        for command in commands.as_array().expect("commands") {
            for params in [json!({ "command": command }), json!({ "command": command, "arguments": [] })] {
                let id = client.send("workspace/executeCommand", params);
                if let Err(error) = client.response(id) {
                    assert!(error["message"].as_str().is_some_and(|message| message.len() > 10), "{command}: {error}");
                }
            }
        }
        if round == 0 {
            client.command("perflens.openProfile", json!(["p.pb.gz"]));
        }
    }
}

#[test]
fn a_command_without_arguments_offers_at_most_eight_choices() {
    let types: Vec<String> = (0..12).map(|n| format!("type{n}/count")).collect();
    let values: Vec<String> = (0..12).map(|n| (100 + n).to_string()).collect();
    let scene = Scene::new(&format!(
        "
        {}
        !default type3
        src/main.rs:1 a = {}
        //- /src/main.rs
        fn a() {{}}
        ",
        types.join(" "),
        values.join(", ")
    ));
    let mut client = scene
        .editor(editor("vscode"))
        .answers(|method, _| (method == "window/showMessageRequest").then_some(Answer::Never))
        .start();
    let uri = client.open(&scene.path("src/main.rs"));
    assert_eq!(client.hints_soon(&uri), ["0:17 █ 100% 103 here"]);
    let asked = client.send("workspace/executeCommand", json!({ "command": "perflens.selectValueType" }));
    let question = client.incoming_message("window/showMessageRequest");
    let choices = question["params"]["actions"].as_array().expect("choices").clone();
    assert!((2..=8).contains(&choices.len()), "{choices:?}");
    let choice = choices.iter().find(|choice| choice["title"].as_str().is_some_and(|title| title.contains("type5")));
    client.respond(&question["id"], Answer::Result(choice.expect("type5 is one of the first eight").clone()));
    client.response(asked).expect("it went well");
    await_labels(&mut client, &uri, &["█ 100% 105 here"]);
    // A user who chooses nothing changes nothing.
    let asked = client.send("workspace/executeCommand", json!({ "command": "perflens.selectValueType" }));
    let question = client.incoming_message("window/showMessageRequest");
    client.respond(&question["id"], Answer::Result(Value::Null));
    client.response(asked).expect("it went well");
    settle();
    assert_eq!(labels(&mut client, &uri), ["█ 100% 105 here"]);
}

#[test]
fn editors_that_cannot_ask_get_the_choices_as_code_actions() {
    let scene = Scene::demo();
    let (mut client, uri) = scene.open(editor("helix 25.01"), "src/main.rs");
    let _ = client.command("perflens.selectValueType", json!([]));
    let params = json!({
        "textDocument": { "uri": uri },
        "range": range((7, 2), (7, 2)),
        "context": { "diagnostics": [] },
    });
    let choice = client.until("the choices", |client| {
        let actions = client.request("textDocument/codeAction", params.clone());
        actions
            .as_array()?
            .iter()
            .find(|action| action["title"].as_str().is_some_and(|title| title.contains("samples")))
            .cloned()
    });
    let command = if choice["command"].is_object() { &choice["command"] } else { &choice };
    assert_eq!(command["command"], "perflens.selectValueType");
    client.command("perflens.selectValueType", command["arguments"].clone());
    client.until("counts", |client| labels(client, &uri).iter().any(|label| label.contains("120")).then_some(()));
}

/// A trace of two processes is one file, and each of them is a choice.
#[test]
fn processes_of_a_trace_are_offered_and_the_chosen_one_is_shown() {
    let scene = Scene::demo();
    let span = |pid: u32, line: u32, length: u32| {
        let args = json!({ "file": "src/main.rs", "line": line });
        json!({ "name": "run", "ph": "X", "pid": pid, "tid": 1, "ts": 0, "dur": length, "args": args })
    };
    let name = |pid: u32, name: &str| json!({ "name": "process_name", "ph": "M", "pid": pid, "tid": 1, "args": { "name": name } });
    let trace = json!([name(7, "Browser"), name(8, "Renderer"), span(7, 3, 3000), span(8, 8, 5000)]);
    scene.write("trace.json", trace.to_string().into_bytes());
    let (mut client, uri) = scene.open(editor("helix 25.01"), "src/main.rs");
    client.command("perflens.openProfile", json!(["trace.json"]));
    let both = client.until("both processes", |client| {
        let labels = labels(client, &uri);
        (labels.len() == 2 && labels[0].contains("37.5%")).then_some(labels)
    });
    let offered = client.command("perflens.setFilter", json!([]));
    assert!(all_text(&offered).contains("process Browser: leaves out 63%"), "{offered}");
    client.command("perflens.setFilter", json!(["label.process=Browser"]));
    client.until("one process", |client| {
        let labels = labels(client, &uri);
        (labels.len() == 1 && labels[0].contains("100%")).then_some(())
    });
    let told = status(&mut client);
    assert!(told.contains("label.process=Browser"), "the selection is part of what is shown: {told}");
    client.command("perflens.setFilter", json!([""]));
    client.until("both again", |client| (labels(client, &uri) == both).then_some(()));
}

// Modes, types, filters.

#[test]
fn hints_can_be_all_hot_and_off() {
    let (_scene, mut client, uri) = demo();
    let mut labels_in = |mode: Value| {
        client.command("perflens.toggleHints", mode);
        labels(&mut client, &uri)
    };
    assert_eq!(labels_in(json!(["off"])), [""; 0]);
    let hot = labels_in(json!([{ "mode": "hot" }]));
    assert!(
        hot.iter().any(|label| label.contains("34.1%")) && !hot.iter().any(|label| label.contains("0.1%")),
        "{hot:?}"
    );
    assert_eq!(labels_in(json!(["all"])), demo_labels());
    assert_eq!(labels_in(json!([])), [""; 0], "off, when they are shown");
    assert_eq!(labels_in(json!([])), demo_labels(), "and back");
}

#[test]
fn turning_hints_off_leaves_everything_else() {
    let (_scene, mut client, uri) = demo();
    let (lenses, hover) = (client.lenses(&uri), client.hover(&uri, 7, 4));
    let before = client.count("workspace/inlayHint/refresh");
    client.command("perflens.toggleHints", json!(["off"]));
    client.until("a refresh", |client| (client.count("workspace/inlayHint/refresh") > before).then_some(()));
    assert_eq!(client.lenses(&uri), lenses);
    assert_eq!(client.hover(&uri, 7, 4), hover);
}

#[test]
fn another_value_type_is_another_set_of_costs() {
    let (_scene, mut client, uri) = demo();
    for arguments in [json!(["samples"]), json!([{ "type": "samples/count" }])] {
        client.command("perflens.selectValueType", arguments);
        await_labels(&mut client, &uri, &["█ 99.1% 349", "0.9% 3 here", "█ 34.1% 120 · here 11%", "█ 41.2% 145"]);
        client.command("perflens.selectValueType", json!(["cpu"]));
        await_demo(&mut client, &uri);
    }
}

#[test]
fn filters_count_only_what_matches() {
    let (_scene, mut client, uri) = demo();
    for arguments in [json!([{ "filters": ["fn=parse"] }]), json!(["fn=parse"]), json!(["fn=parse", "fn=run"])] {
        client.command("perflens.setFilter", arguments);
        await_labels(&mut client, &uri, &["█ 100% 800ms", "█ 100% 800ms"]);
        client.command("perflens.setFilter", json!([""]));
        await_demo(&mut client, &uri);
    }
}

// Comparing.

const BASE: &str = "
    samples/count cpu/nanoseconds
    !default cpu
    src/main.rs:2 main #1; src/main.rs:8 run #6 = 40, 400_000_000
    src/main.rs:2 main #1; src/main.rs:8 run #6; src/lib.rs:2 parse #1 = 20, 200_000_000
    src/main.rs:2 main #1; src/main.rs:9 run #6; src/lib.rs:6 check #5 = 205, 2_050_000_000
    src/main.rs:2 main #1; src/lib.rs:10 other #9 = 81, 803_480_000
    src/main.rs:2 main #1; src/main.rs:7 run #6 = 0, 3_000_000
    src/main.rs:2 main #1; src/main.rs:10 run #6 = 0, 3_520_000
    src/main.rs:3 main #1 = 6, 60_000_000
";

#[test]
fn a_comparison_shows_differences_and_their_direction() {
    let (scene, mut client, uri) = demo();
    scene.write("base.pb.gz", Mini::parse(BASE).gzip());
    let library = client.open(&scene.path("src/lib.rs"));
    for arguments in [json!(["base.pb.gz"]), json!([{ "path": scene.path("base.pb.gz"), "normalize": false }])] {
        client.command("perflens.compareWith", arguments);
        client.until("the comparison", |client| {
            labels(client, &uri).iter().any(|label| label.starts_with('▲')).then_some(())
        });
        let hints = client.hints(&uri);
        let of_line = |line: &str| {
            hints.iter().find(|hint| hint.starts_with(line)).map(|hint| hint.split_once(' ').expect("a label").1)
        };
        assert_eq!(of_line("7:"), Some("▲ +17.0pp 600ms→1.20s"), "{hints:?}");
        assert_eq!(of_line("8:"), Some("▼ −17.0pp 2.05s→1.45s"), "{hints:?}");
        assert_eq!(of_line("9:"), None, "no change is no hint: {hints:?}");
        for hint in &hints {
            let label = hint.split_once(' ').expect("a label").1;
            assert!(label.starts_with(['▲', '▼', '≈']) && label.chars().count() <= 27, "{label}");
        }
        // Three samples more or less of eighty are noise.
        let others = labels(&mut client, &library);
        assert!(others.contains(&"≈ +0.9pp 803ms→833ms".to_owned()), "{others:?}");
        assert!(others.contains(&"▲ +17.0pp 200ms→800ms".to_owned()), "{others:?}");
        let lenses = client.lenses(&library);
        assert!(lenses.contains(&"0 function ▲ +17.0pp ±5.6 200ms→800ms".to_owned()), "{lenses:?}");
        assert!(status(&mut client).contains("base.pb.gz"), "{}", status(&mut client));
        client.command("perflens.stopComparing", json!([]));
        await_demo(&mut client, &uri);
    }
}

#[test]
fn profiles_of_different_types_are_not_compared() {
    let (scene, mut client, uri) = demo();
    scene.write("heap.pb.gz", Mini::parse("inuse_space/bytes\nsrc/main.rs:3 main = 30").gzip());
    refused_or_told(&mut client, "perflens.compareWith", &json!(["heap.pb.gz"]), "heap.pb.gz");
    assert_eq!(labels(&mut client, &uri), demo_labels());
}

// Hot spots.

#[test]
fn hot_spots_are_gone_through_from_the_hottest() {
    let scene = Scene::demo();
    let mut client = scene.editor(editor("vscode")).start();
    let uri = client.open(&scene.path("src/main.rs"));
    client.hints_soon(&uri);
    let mut go = |command: &str| {
        client.command(command, json!([]));
        let shown = client.incoming("window/showDocument");
        let name = shown["uri"].as_str().expect("an address").rsplit('/').next().expect("a name").to_owned();
        assert_ne!(shown["external"], true, "{shown}");
        (name, shown["selection"]["start"]["line"].as_u64().expect("a line"))
    };
    let main = |line| ("main.rs".to_owned(), line);
    let library = |line| ("lib.rs".to_owned(), line);
    assert_eq!(go("perflens.nextHotspot"), library(5));
    assert_eq!(go("perflens.nextHotspot"), library(9));
    assert_eq!(go("perflens.nextHotspot"), library(1));
    assert_eq!(go("perflens.nextHotspot"), main(7));
    assert_eq!(go("perflens.previousHotspot"), library(1));
}

#[test]
fn editors_that_show_no_document_get_the_hot_spot_as_a_result() {
    for name in ["kakoune", "bare"] {
        let scene = Scene::demo();
        let mut client = scene.editor(editor(name)).start();
        let uri = client.open(&scene.path("src/main.rs"));
        client.hints_soon(&uri);
        let result = client.command("perflens.nextHotspot", json!([]));
        assert!(all_text(&result).contains("src/lib.rs"), "{name}: {result}");
    }
}

#[test]
fn the_hot_spot_list_is_by_direct_cost() {
    let (_scene, mut client, _) = demo();
    let list = all_text(&client.command("perflens.showHotspots", json!([])));
    let place = |name: &str| list.find(name).unwrap_or_else(|| panic!("{name} is missing: {list}"));
    assert!(place("src/lib.rs:6") < place("src/lib.rs:10") && place("src/lib.rs:10") < place("src/lib.rs:2"), "{list}");
    assert!(list.contains("41.2%") && list.contains("1.45s"), "{list}");
    let functions = all_text(&client.command("perflens.showHotspots", json!(["function", 1])));
    assert!(functions.contains("check") && !functions.contains("parse"), "{functions}");
}

// Text for an assistant.

#[test]
fn costs_are_copied_for_an_assistant_in_every_scope() {
    let (scene, mut client, uri) = demo();
    let at = |scope: &str| json!([{ "scope": scope, "file": uri, "line": 8, "endLine": 9 }]);
    for (scope, expected) in [
        ("line", &["src/main.rs", "with calls", "called by"][..]),
        ("function", &["src/main.rs", "with calls"]),
        ("file", &["src/main.rs", "│"]),
        ("selection", &["src/main.rs", "8 │", "Who calls"]),
        ("workspace", &["src/lib.rs:6", "check"]),
    ] {
        let text = client.command("perflens.copyForAI", at(scope));
        let text = text.as_str().unwrap_or_else(|| panic!("{scope}: {text}"));
        let always = ["3.52s", "data from a program", "?", "`perflens report p.pb.gz --workspace .`"];
        for words in expected.iter().chain(&always) {
            assert!(text.contains(words), "{scope} lacks {words}: {text}");
        }
        let folder = scene.path("").display().to_string();
        assert!(!text.contains(&folder), "{scope} tells where the workspace is: {text}");
    }
    let backwards = json!([{ "scope": "selection", "file": uri, "line": 9, "endLine": 8 }]);
    for refused in [json!([]), json!([{ "scope": "line" }]), json!(["comparison"]), json!(["everything"]), backwards] {
        client.refused("workspace/executeCommand", json!({ "command": "perflens.copyForAI", "arguments": refused }));
    }
}

/// An action does it everywhere; where answers are not shown, the text is opened, and else it is said where it is.
#[test]
fn a_copy_is_an_action_and_opens_where_answers_are_not_shown() {
    for can_show in [true, false] {
        let scene = Scene::demo();
        let shows = move |method: &str, _: &Value| {
            let is_asked = method == "window/showDocument";
            is_asked.then(|| if can_show { Answer::Result(json!({ "success": true })) } else { Answer::Refuse })
        };
        let mut client = scene.editor(editor("helix 25.07")).answers(shows).start();
        let uri = client.open(&scene.path("src/main.rs"));
        await_demo(&mut client, &uri);
        let at = json!({ "start": { "line": 7, "character": 0 }, "end": { "line": 7, "character": 0 } });
        let params = json!({ "textDocument": { "uri": uri }, "range": at, "context": { "diagnostics": [] } });
        let actions = client.request("textDocument/codeAction", params);
        let copy = actions.as_array().expect("actions").iter().find(|action| action["command"] == "perflens.copyForAI");
        let copy = copy.unwrap_or_else(|| panic!("{actions}")).clone();
        assert_eq!(copy["title"], "perflens: copy this function for an assistant");
        client.command("perflens.copyForAI", copy["arguments"].clone());
        let path = client.home().join("state/perflens/for-assistant.md");
        let address = perflens_tests::lsp::uri(&path);
        client.until("it is shown or told", |client| {
            let shown = client.received("window/showDocument").iter().any(|it| it["uri"] == address);
            let told =
                client.received("window/showMessage").iter().any(|it| it.to_string().contains("for-assistant.md"));
            (shown && told != can_show).then_some(())
        });
        let text = std::fs::read_to_string(&path).expect("a text");
        assert!(text.contains("3.52s") && text.ends_with("?\n"), "{text}");
    }
}

#[test]
fn a_copy_is_as_short_as_the_settings_say() {
    let scene = Scene::demo();
    let (mut client, uri) = scene.open(editor("bare"), "src/main.rs");
    await_demo(&mut client, &uri);
    let settings = json!({ "perflens": { "limits": { "copyKibibytes": 1 } } });
    client.notify("workspace/didChangeConfiguration", json!({ "settings": settings }));
    let file = json!([{ "scope": "file", "file": uri }]);
    let short = client.until("a short text", |client| {
        let text = client.command("perflens.copyForAI", file.clone()).as_str().unwrap_or_default().to_owned();
        (text.len() <= 1024).then_some(text)
    });
    assert!(short.contains("Left out for want of room: the list of hot lines"), "{short}");
    assert!(short.contains("3.52s") && short.contains("data from a program"), "{short}");
}

// Requests of our own.

#[test]
fn requests_of_our_own_are_announced_and_answer() {
    let (_scene, mut client, uri) = demo();
    let announced = client.server["capabilities"]["experimental"]["perflens"].clone();
    assert_eq!(announced["version"], 1, "{announced}");
    let heat = client.request("perflens/heat", json!({ "textDocument": { "uri": uri } }));
    let heat = all_text(&heat);
    assert!(!heat.is_empty(), "{heat}");
    let hotspots = all_text(&client.request("perflens/hotspots", json!({})));
    assert!(hotspots.contains("lib.rs") && hotspots.contains("check"), "{hotspots}");
    let callers = all_text(&client.request("perflens/callers", json!({ "textDocument": { "uri": uri }, "line": 7 })));
    assert!(callers.contains("main") && callers.contains("parse"), "{callers}");
    let status = status(&mut client);
    assert!(status.contains("p.pb.gz") && status.contains("3.52s") && status.contains("icon flame"), "{status}");
    let files = client.request("perflens/files", Value::Null);
    let hottest = files.as_array().unwrap().iter().max_by_key(|file| file["level"].as_u64()).unwrap();
    assert!(hottest["uri"].as_str().unwrap().ends_with("/src/lib.rs"), "{files}");
    let flame = client.request("perflens/flamegraph", json!({}));
    let name = |each: &Value| flame["functions"][usize::try_from(each["function"].as_u64().unwrap()).unwrap()].clone();
    let boxes = flame["boxes"].as_array().unwrap();
    assert_eq!((name(&boxes[0])["name"].as_str(), &boxes[0]["parent"]), (Some("main"), &Value::Null), "{flame}");
    assert!(boxes.iter().any(|each| name(each)["isOwn"] == true && each["parent"] == 0), "{flame}");
    let few = client.request("perflens/flamegraph", json!({ "top": 1 }));
    assert_eq!(few["boxes"].as_array().unwrap().len(), 1, "{few}");
}

#[test]
fn a_client_that_follows_changes_is_told_of_them_and_shows_answers_itself() {
    let scene = Scene::demo();
    let mut capabilities = editor("vscode").capabilities();
    capabilities["experimental"] = json!({ "perflens": { "followsChanges": true, "showsAnswers": true } });
    let mut client = scene.without_profile(editor("vscode")).param("capabilities", capabilities).start();
    client.open(&scene.path("src/main.rs"));
    client.command("perflens.openProfile", json!(["p.pb.gz"]));
    client.until("it is told", |client| (client.count("perflens/changed") > 0).then_some(()));
    client.until("the profile is there", |client| status(client).contains("3.52s").then_some(()));
    client.command("perflens.showStatus", json!([]));
    let presets = client.command("perflens.selectPreset", json!([]));
    let first = &presets["choices"][0];
    assert!(first["name"].is_string() && first["title"].is_string(), "{presets}");
    settle();
    assert_eq!((client.count("window/showMessage"), client.count("window/showMessageRequest")), (0, 0));
}

#[test]
fn requests_of_our_own_that_need_no_parameters_take_any() {
    let (_scene, mut client, _) = demo();
    let methods = ["status", "hotspots", "packages", "files", "flamegraph", "query"];
    for method in methods.map(|name| format!("perflens/{name}")) {
        for params in [None, Some(Value::Null), Some(json!({})), Some(json!([]))] {
            let mut message = json!({ "jsonrpc": "2.0", "id": format!("{method} {params:?}"), "method": method });
            if let Some(params) = params.clone() {
                message["params"] = params;
            }
            client.message(&message);
            let answer = client.response(message["id"].clone());
            assert!(answer.is_ok(), "{method} {params:?}: {answer:?}");
        }
    }
    for params in [Value::Null, json!({}), json!([]), json!({ "textDocument": { "uri": "file:///none.rs" } })] {
        for method in ["perflens/heat", "perflens/callers"] {
            let id = client.send(method, params.clone());
            if let Err(error) = client.response(id) {
                assert_eq!(error["code"], -32602, "{method} {params}: {error}");
            }
        }
    }
}

#[test]
fn heat_levels_are_those_of_the_blocks() {
    let (_scene, mut client, uri) = demo();
    let heat = client.request("perflens/heat", json!({ "textDocument": { "uri": uri } }));
    let levels: BTreeMap<u64, u64> = heat["lines"]
        .as_array()
        .unwrap_or_else(|| panic!("{heat}"))
        .iter()
        .map(|line| (line["line"].as_u64().expect("a line"), line["level"].as_u64().expect("a level")))
        .filter(|(_, level)| *level > 0)
        .collect();
    assert_eq!(levels, BTreeMap::from([(1, 4), (7, 4), (8, 4)]));
}

#[test]
fn the_status_says_what_is_open_and_how_much_of_it_is_here() {
    let scene = Scene::new(
        "
        samples/count cpu/nanoseconds
        !default cpu
        !time 1_700_000_000_000_000_000
        !duration 10_000_000_000
        src/main.rs:1 a = 30, 300_000_000
        /usr/src/other.c:1 other = 70, 700_000_000
        //- /src/main.rs
        fn a() {}
        ",
    );
    let (mut client, _) = scene.open(editor("vscode"), "src/main.rs");
    let status = status(&mut client);
    assert!(status.contains("30%") && status.contains("1.00s"), "{status}");
    let shown = all_text(&client.command("perflens.showStatus", json!([])));
    let explained = all_text(&client.command("perflens.explain", json!([])));
    assert!(explained.contains("70") && explained.contains("300ms"), "{explained}");
    let messages = all_text(&client.received("window/showMessage").into());
    assert!((shown + &messages).contains("30%"), "the command says it to people as well");
}

// What the server says by itself.

const REFRESHES: [&str; 3] =
    ["workspace/inlayHint/refresh", "workspace/codeLens/refresh", "workspace/diagnostic/refresh"];

/// rust-lang/rust-analyzer#13369
#[test]
fn a_load_is_followed_by_one_refresh_of_each_kind_that_the_editor_knows() {
    for (name, editor) in EDITORS {
        let scene = Scene::demo();
        let mut client = scene.editor(*editor).start();
        let uri = client.open(&scene.path("src/main.rs"));
        client.hints_soon(&uri);
        settle();
        let counts = client.counts();
        let count = |method: &str| counts.get(method).copied().unwrap_or_default();
        assert_eq!(count(REFRESHES[0]), usize::from(editor.hint_refresh), "{name}: {counts:?}");
        assert_eq!(count(REFRESHES[1]), usize::from(editor.lens_refresh), "{name}: {counts:?}");
        // Diagnostics are pushed: nothing to ask for again.
        assert_eq!(count(REFRESHES[2]), 0, "{name}: {counts:?}");
        assert_eq!(count("window/showMessage") + count("window/showMessageRequest"), 0, "{name}: {counts:?}");
        if !editor.progress {
            assert_eq!(count("$/progress") + count("window/workDoneProgress/create"), 0, "{name}: {counts:?}");
        }
        if !editor.configuration {
            assert_eq!(count("workspace/configuration"), 0, "{name}: {counts:?}");
        }
        if !editor.watches_files {
            let watched = client.received("client/registerCapability");
            assert!(!all_text(&watched.into()).contains("didChangeWatchedFiles"), "{name}");
        }
        for method in counts.keys() {
            let known =
                ["window/", "workspace/", "client/", "textDocument/publishDiagnostics", "$/progress", "$/logTrace"];
            assert!(known.iter().any(|known| method.starts_with(known)), "{name}: {method} is not standard");
        }
    }
}

#[test]
fn a_refresh_that_is_never_answered_stops_no_later_update() {
    let scene = Scene::demo();
    let mut client = scene
        .editor(editor("vscode"))
        .answers(|method, _| method.ends_with("/refresh").then_some(Answer::Never))
        .start();
    let uri = client.open(&scene.path("src/main.rs"));
    client.hints_soon(&uri);
    client.incoming("workspace/inlayHint/refresh");
    scene.rewrite(OTHER);
    await_labels(&mut client, &uri, &OTHER_LABELS);
    settle();
    assert!(client.count("workspace/inlayHint/refresh") <= 2, "at most one is outstanding");
}

#[test]
fn many_loads_at_once_end_with_the_last_one() {
    let (scene, mut client, uri) = demo();
    for n in 1..=20 {
        scene.write(
            &format!("{n}.pb.gz"),
            Mini::parse(&format!("cpu/nanoseconds\nsrc/main.rs:3 main = {n}_000_000")).gzip(),
        );
    }
    let before = client.count("workspace/inlayHint/refresh");
    let loads: Vec<i64> = (1..=20)
        .map(|n| {
            let arguments = json!([format!("{n}.pb.gz")]);
            client
                .send("workspace/executeCommand", json!({ "command": "perflens.openProfile", "arguments": arguments }))
        })
        .collect();
    for load in loads {
        // Those that were overtaken may say so.
        let _ = client.response(load);
    }
    await_labels(&mut client, &uri, &["█ 100% 20.0ms here"]);
    settle();
    assert_eq!(labels(&mut client, &uri), ["█ 100% 20.0ms here"]);
    let refreshes = client.count("workspace/inlayHint/refresh") - before;
    assert!((1..=20).contains(&refreshes), "{refreshes}");
}

#[test]
fn a_long_load_shows_progress_after_a_while_and_ends_it() {
    let (scene, mut client, uri) = demo();
    let pipe = scene.pipe("slow.pb.gz");
    let start = Instant::now();
    let load = client.send(
        "workspace/executeCommand",
        json!({ "command": "perflens.openProfile", "arguments": [{ "path": pipe }] }),
    );
    let token = client.incoming("window/workDoneProgress/create")["token"].clone();
    assert!(start.elapsed() > Duration::from_millis(250), "what is over soon shows no progress");
    assert!(token.is_string(), "{token}");
    let begin = client.incoming("$/progress");
    assert_eq!((&begin["token"], &begin["value"]["kind"]), (&token, &json!("begin")));
    assert!(begin["value"]["title"].as_str().is_some_and(|title| !title.is_empty()), "{begin}");
    assert_eq!(begin["value"]["cancellable"], true, "{begin}");
    assert_eq!(labels(&mut client, &uri), demo_labels(), "the old costs stay meanwhile");
    fs::OpenOptions::new().write(true).open(&pipe).unwrap().write_all(&Mini::parse(OTHER).gzip()).unwrap();
    client.response(load).expect("it is loaded");
    await_labels(&mut client, &uri, &OTHER_LABELS);
    loop {
        let progress = client.incoming("$/progress");
        assert_eq!(progress["token"], token);
        if progress["value"]["kind"] == "end" {
            break;
        }
        assert_eq!(progress["value"]["kind"], "report");
    }
    settle();
    assert_eq!(client.received("$/progress"), [Value::Null; 0], "nothing behind the end");
}

#[test]
fn progress_that_is_cancelled_ends_and_changes_nothing() {
    let (scene, mut client, uri) = demo();
    let pipe = scene.pipe("slow.pb.gz");
    let load = client.send(
        "workspace/executeCommand",
        json!({ "command": "perflens.openProfile", "arguments": [{ "path": pipe }] }),
    );
    let token = client.incoming("window/workDoneProgress/create")["token"].clone();
    client.notify("window/workDoneProgress/cancel", json!({ "token": token }));
    client.until("the end of the progress", |client| {
        client.received("$/progress").iter().any(|progress| progress["value"]["kind"] == "end").then_some(())
    });
    let _ = client.response(load);
    assert_eq!(labels(&mut client, &uri), demo_labels());
    // Tokens that nobody gave out.
    for token in [json!("nothing"), json!(7), Value::Null] {
        client.notify("window/workDoneProgress/cancel", json!({ "token": token }));
    }
}

#[test]
fn diagnostics_come_only_when_they_are_wanted() {
    let scene = Scene::demo();
    let (mut client, _) = scene.open(editor("eglot"), "src/main.rs");
    settle();
    let published = client.received("textDocument/publishDiagnostics");
    assert!(published.iter().all(|params| params["diagnostics"] == json!([])), "{published:?}");
    drop(client);

    let mut options = scene.options();
    options["diagnostics"] = json!({ "enabled": true });
    client = scene.editor(editor("eglot")).options(options).start();
    let uri = client.open(&scene.path("src/main.rs"));
    let params = client.until("diagnostics", |client| {
        let all = client.received("textDocument/publishDiagnostics");
        all.into_iter().find(|params| params["uri"] == uri && params["diagnostics"] != json!([]))
    });
    for diagnostic in params["diagnostics"].as_array().expect("a list") {
        assert_eq!(diagnostic["severity"], 3, "information: {diagnostic}");
        assert_eq!(diagnostic["source"], "perflens", "{diagnostic}");
        assert!(diagnostic["message"].as_str().is_some_and(|message| message.contains('%')), "{diagnostic}");
    }
    let lines: Vec<&Value> =
        params["diagnostics"].as_array().into_iter().flatten().map(|d| &d["range"]["start"]["line"]).collect();
    assert!(lines.contains(&&json!(5)), "`run` is hot: {lines:?}");
    client.command("perflens.clear", json!([]));
    client.until("they go with the profile", |client| {
        let all = client.received("textDocument/publishDiagnostics");
        all.last().is_some_and(|params| params["diagnostics"] == json!([])).then_some(())
    });
}

// Profiles that change on disk.

#[test]
fn a_profile_that_is_written_again_is_shown_again_without_the_editor_watching() {
    for name in ["neovim 0.11", "helix 25.07", "bare"] {
        let scene = Scene::demo();
        let (mut client, uri) = scene.open(editor(name), "src/main.rs");
        scene.rewrite(OTHER);
        await_labels(&mut client, &uri, &OTHER_LABELS);
        // In place, too, as other tools do it.
        fs::write(scene.path("p.pb.gz"), Mini::parse(DEMO).gzip()).unwrap();
        await_demo(&mut client, &uri);
        // And after it was away.
        fs::remove_file(scene.path("p.pb.gz")).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        scene.rewrite(OTHER);
        await_labels(&mut client, &uri, &OTHER_LABELS);
        if editor(name).hint_refresh {
            assert!(client.count("workspace/inlayHint/refresh") >= 2, "{name}");
        }
    }
}

#[test]
fn a_profile_that_is_written_slowly_is_shown_once_it_is_whole() {
    let (scene, mut client, uri) = demo();
    let bytes = Mini::parse(OTHER).gzip();
    let mut file = fs::File::create(scene.path("p.pb.gz")).unwrap();
    for chunk in bytes.chunks(bytes.len() / 6 + 1) {
        file.write_all(chunk).unwrap();
        std::thread::sleep(Duration::from_millis(120));
    }
    drop(file);
    await_labels(&mut client, &uri, &OTHER_LABELS);
}

#[test]
fn a_profile_that_vanishes_or_breaks_is_told_once() {
    for harm in ["gone", "empty", "nonsense", "cut"] {
        let (scene, mut client, uri) = demo();
        let whole = fs::read(scene.path("p.pb.gz")).unwrap();
        match harm {
            "gone" => fs::remove_file(scene.path("p.pb.gz")).unwrap(),
            "empty" => scene.write("p.pb.gz", ""),
            "nonsense" => scene.write("p.pb.gz", "this is no profile"),
            _ => scene.write("p.pb.gz", &whole[..whole.len() / 2]),
        }
        if harm != "gone" {
            let said = client.incoming("window/showMessage");
            assert!(said["message"].as_str().is_some_and(|message| message.contains("p.pb.gz")), "{harm}: {said}");
        }
        settle();
        // A file that is gone may be about to come back.
        let more = client.received("window/showMessage").len();
        assert!(more <= usize::from(harm == "gone"), "{harm}: {:?}", client.received("window/showMessage"));
        let seen = labels(&mut client, &uri);
        assert!(seen == demo_labels() || seen.is_empty(), "{harm}: the old costs or none: {seen:?}");
        scene.rewrite(OTHER);
        await_labels(&mut client, &uri, &OTHER_LABELS);
    }
}

#[test]
fn a_profile_that_is_not_there_at_the_start_is_told_and_taken_when_it_comes() {
    let scene = Scene::demo();
    fs::remove_file(scene.path("p.pb.gz")).unwrap();
    let mut client = scene.editor(editor("vscode")).start();
    let uri = client.open(&scene.path("src/main.rs"));
    client.until("a reason", |client| status(client).contains("p.pb.gz").then_some(()));
    scene.rewrite(OTHER);
    await_labels(&mut client, &uri, &OTHER_LABELS);
}

// Settings.

#[test]
fn settings_change_while_the_server_runs() {
    let scene = Scene::demo();
    let (mut client, uri) = scene.open(editor("bare"), "src/main.rs");
    for settings in [json!({ "perflens": { "hints": { "mode": "off" } } }), json!({ "hints": { "mode": "off" } })] {
        client.notify("workspace/didChangeConfiguration", json!({ "settings": settings }));
        await_labels(&mut client, &uri, &[]);
        let all = json!({ "perflens": { "hints": { "mode": "all" } } });
        client.notify("workspace/didChangeConfiguration", json!({ "settings": all }));
        await_demo(&mut client, &uri);
    }
    for settings in [Value::Null, json!({}), json!([]), json!(7), json!({ "perflens": 7 })] {
        client.notify("workspace/didChangeConfiguration", json!({ "settings": settings }));
    }
    await_demo(&mut client, &uri);
}

#[test]
fn settings_are_asked_for_where_the_editor_has_them() {
    let scene = Scene::demo();
    let least = Arc::new(AtomicU64::new(30));
    let said = least.clone();
    let start = scene.editor(editor("vscode")).answers(move |method, params| {
        (method == "workspace/configuration").then(|| {
            let items = params["items"].as_array().map_or(0, Vec::len);
            let settings = json!({ "hints": { "minShare": said.load(Ordering::Relaxed) } });
            Answer::Result(vec![settings; items].into())
        })
    });
    let mut client = start.start();
    let uri = client.open(&scene.path("src/main.rs"));
    await_labels(&mut client, &uri, &["█ 99.1% 3.49s", "█ 34.1% 1.20s · here 11%", "█ 41.2% 1.45s"]);
    let asked = client.incoming("workspace/configuration");
    assert!(all_text(&asked).contains("perflens"), "{asked}");
    // They say that something has changed, and not what.
    least.store(90, Ordering::Relaxed);
    client.notify("workspace/didChangeConfiguration", json!({ "settings": null }));
    await_labels(&mut client, &uri, &["█ 99.1% 3.49s"]);
}

#[test]
fn settings_that_do_not_exist_are_told_with_a_suggestion() {
    let scene = Scene::demo();
    let mut options = scene.options();
    options["hints"] = json!({ "minshare": 30, "mode": "hott" });
    let mut client = scene.editor(editor("vscode")).options(options).start();
    let uri = client.open(&scene.path("src/main.rs"));
    assert_eq!(client.hints_soon(&uri).len(), DEMO_HINTS.len(), "the rest applies");
    let told = status(&mut client) + &all_text(&client.received("window/showMessage").into());
    assert!(told.contains("hints.minShare") && told.contains("hints.minshare"), "{told}");
    assert!(told.contains("hott"), "{told}");
}

// Trust.

#[test]
fn an_untrusted_workspace_sets_nothing_that_opens_files() {
    let scene = Scene::demo();
    scene.write("perflens.toml", "[source]\nfile = \"p.pb.gz\"\n\n[hints]\nminShare = 30\n");
    let mut client = Start::new(editor("vscode")).folder(&scene.path("")).start();
    let uri = client.open(&scene.path("src/main.rs"));
    settle();
    assert_eq!(labels(&mut client, &uri), [""; 0]);
    let status = status(&mut client);
    assert!(status.contains("source.file"), "what is ignored is listed: {status}");
    // What is harmless applies.
    client.command("perflens.openProfile", json!(["p.pb.gz"]));
    await_labels(&mut client, &uri, &["█ 99.1% 3.49s", "█ 34.1% 1.20s · here 11%", "█ 41.2% 1.45s"]);
    // Anything but `true` is no.
    for trusted in [json!(false), json!("true"), json!(1), Value::Null] {
        let options = json!({ "workspaceTrusted": trusted });
        let mut client = Start::new(editor("vscode")).folder(&scene.path("")).options(options).start();
        let uri = client.open(&scene.path("src/main.rs"));
        settle();
        assert_eq!(labels(&mut client, &uri), [""; 0], "{trusted}");
    }
    let mut client = scene.without_profile(editor("vscode")).start();
    let uri = client.open(&scene.path("src/main.rs"));
    await_labels(&mut client, &uri, &["█ 99.1% 3.49s", "█ 34.1% 1.20s · here 11%", "█ 41.2% 1.45s"]);
}

#[test]
fn trusting_a_workspace_lists_what_that_allows_and_holds_until_the_file_changes() {
    let scene = Scene::demo();
    scene.write("perflens.toml", "[source]\nfile = \"p.pb.gz\"\n");
    let mut client = Start::new(editor("vscode"))
        .folder(&scene.path(""))
        .answers(|method, params| {
            let first = params["actions"][0].clone();
            (method == "window/showMessageRequest").then_some(Answer::Result(first))
        })
        .start();
    let uri = client.open(&scene.path("src/main.rs"));
    let result = client.command("perflens.trustWorkspace", json!([]));
    let asked = client.received("window/showMessageRequest");
    let listed =
        all_text(&result) + &all_text(&asked.into()) + &all_text(&client.received("window/showMessage").into());
    assert!(listed.contains("source.file"), "{listed}");
    await_demo(&mut client, &uri);
    scene.write("perflens.toml", "[source]\nfile = \"p.pb.gz\"\n# changed\n");
    client.until("it is another file now", |client| status(client).contains("source.file").then_some(()));
}

/// A rule for one path must not hide those for others, whenever they come.
#[test]
fn a_chosen_match_and_rules_that_are_allowed_later_both_count() {
    let scene = Scene::new(
        "
        cpu/nanoseconds
        /ci/a/one.rs:1 one = 10_000_000
        /ci/b/two.rs:1 two = 20_000_000
        //- /src/one.rs
        fn one() {}
        //- /other/one.rs
        fn one() {}
        ",
    );
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::write(elsewhere.path().join("two.rs"), "fn two() {}\n").unwrap();
    let folder = elsewhere.path().display();
    scene.write(
        "perflens.toml",
        format!("[paths]\nroots = [\"{folder}\"]\n[[paths.rules]]\nfrom = \"/ci/b\"\nto = \"{folder}\"\n"),
    );
    let mut client = Start::new(editor("vscode")).folder(&scene.path("")).start();
    client.command("perflens.openProfile", json!(["p.pb.gz"]));
    let one = client.open(&scene.path("src/one.rs"));
    let two = client.open(&elsewhere.path().join("two.rs"));
    client.command("perflens.chooseMatch", json!(["/ci/a/one.rs", "src/one.rs"]));
    await_labels(&mut client, &one, &["█ 33.3% 10.0ms here"]);
    assert_eq!(labels(&mut client, &two), [""; 0]);
    client.command("perflens.trustWorkspace", json!(["."]));
    await_labels(&mut client, &two, &["█ 66.7% 20.0ms here"]);
    assert_eq!(labels(&mut client, &one), ["█ 33.3% 10.0ms here"]);
}

#[test]
#[cfg(unix)]
fn a_trust_store_that_others_can_write_trusts_nobody_and_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::demo();
    scene.write("perflens.toml", "[source]\nfile = \"p.pb.gz\"\n");
    let mut client = Start::new(editor("helix 25.07")).folder(&scene.path("")).start();
    client.command("perflens.trustWorkspace", json!(["."]));
    let uri = client.open(&scene.path("src/main.rs"));
    await_demo(&mut client, &uri);
    assert!(!status(&mut client).contains("chmod"), "it is fine");
    let store = client.home().join("state/perflens/trust.json");
    std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o666)).unwrap();
    let told = status(&mut client);
    assert!(told.contains("trust.json: others can write it") && told.contains("chmod 600"), "{told}");
}

// Folders.

/// astral-sh/ruff#15392
#[test]
fn folders_come_and_go() {
    let (scene, other) = (
        Scene::new("cpu/nanoseconds\nlib/x.rs:1 x = 30_000_000\nlib/y.rs:1 y = 30_000_000\n//- /lib/x.rs\nfn x() {}\n"),
        Scene::new("cpu/nanoseconds\n= 1\n//- /lib/y.rs\nfn y() {}\n"),
    );
    let (mut client, first) = scene.open(editor("vscode"), "lib/x.rs");
    let second = client.open(&other.path("lib/y.rs"));
    assert_eq!(labels(&mut client, &first), ["█ 50.0% 30.0ms here"]);
    let folder = json!({ "uri": uri(&other.path("")), "name": "other" });
    client.notify("workspace/didChangeWorkspaceFolders", json!({ "event": { "added": [folder], "removed": [] } }));
    // It is a folder of its own, with a view of its own.
    settle();
    assert_eq!(labels(&mut client, &first), ["█ 50.0% 30.0ms here"]);
    client.notify("workspace/didChangeWorkspaceFolders", json!({ "event": { "added": [], "removed": [folder] } }));
    for uri in ["file://", "file:///", "untitled:x", "file:///no/such/folder", "%", ""] {
        let odd = json!({ "uri": uri, "name": "odd" });
        client.notify("workspace/didChangeWorkspaceFolders", json!({ "event": { "added": [odd], "removed": [] } }));
        client.notify("workspace/didChangeWorkspaceFolders", json!({ "event": { "added": [], "removed": [odd] } }));
    }
    assert_eq!(labels(&mut client, &first), ["█ 50.0% 30.0ms here"]);
    assert_eq!(labels(&mut client, &second), [""; 0]);
}

#[test]
fn fifty_folders_are_fine() {
    let scenes: Vec<Scene> = (0..50)
        .map(|n| {
            Scene::new(&format!(
                "
                cpu/nanoseconds
                src/f{n}.rs:1 f = 30_000_000
                //- /src/f{n}.rs
                fn f() {{}}
                "
            ))
        })
        .collect();
    let start = scenes.iter().fold(Start::new(editor("vscode")), |start, scene| start.folder(&scene.path("")));
    let mut client = start.options(json!({ "workspaceTrusted": true })).start();
    let uris: Vec<String> =
        scenes.iter().enumerate().map(|(n, scene)| client.open(&scene.path(&format!("src/f{n}.rs")))).collect();
    for n in [0, 49, 25] {
        client.command("perflens.openProfile", json!([scenes[n].path("p.pb.gz")]));
        client.until("its costs", |client| (labels(client, &uris[n]) == ["█ 100% 30.0ms here"]).then_some(()));
    }
}

#[test]
fn folders_within_folders_count_files_once() {
    let scene = Scene::demo();
    let start = Start::new(editor("vscode")).folder(&scene.path("")).folder(&scene.path("src")).folder(&scene.path(""));
    let mut client = start.options(scene.options()).start();
    let uri = client.open(&scene.path("src/main.rs"));
    let hints = client.hints_soon(&uri);
    assert_eq!(hints.len(), DEMO_HINTS.len(), "{hints:?}");
}

/// artempyanykh/marksman#66, clojure-lsp/clojure-lsp#1815
#[test]
fn without_folders_the_root_counts_and_without_root_nothing() {
    let scene = Scene::demo();
    let root = uri(&scene.path(""));
    for folders in [Value::Null, json!([])] {
        let start =
            Start::new(editor("vscode")).param("workspaceFolders", folders.clone()).param("rootUri", root.as_str());
        let mut client = start.options(scene.options()).start();
        let uri = client.open(&scene.path("src/main.rs"));
        assert_eq!(client.hints_soon(&uri).len(), DEMO_HINTS.len(), "{folders}");
    }
    let mut params = Start::new(editor("bare")).options(scene.options()).initialize_params();
    params.as_object_mut().unwrap().remove("workspaceFolders");
    params["rootUri"] = root.into();
    let mut client = Start::new(editor("bare")).spawn();
    client.request("initialize", params);
    client.notify("initialized", json!({}));
    let uri = client.open(&scene.path("src/main.rs"));
    assert_eq!(client.hints_soon(&uri).len(), DEMO_HINTS.len(), "missing");
    // Single files, as Helix opens them outside of repositories.
    let mut client = Start::new(editor("helix 25.07")).param("rootUri", Value::Null).start();
    let uri = client.open(&scene.path("src/main.rs"));
    assert_eq!(client.hints(&uri), [""; 0]);
    client.command("perflens.openProfile", json!([scene.path("p.pb.gz")]));
    let _ = client.hints(&uri);
    assert!(status(&mut client).contains("p.pb.gz"));
}

/// Creates so many files below a folder.
fn fill(folder: &Path, files: usize) {
    for n in 0..files {
        if n % 500 == 0 {
            fs::create_dir_all(folder.join(format!("d{}", n / 500))).unwrap_or_else(|error| panic!("{error}"));
        }
        let path = folder.join(format!("d{}/f{n}.rs", n / 500));
        fs::File::create(path).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// helix-editor/helix#4436
#[test]
fn initialize_does_not_wait_for_a_large_workspace() {
    // Fewer with `PERFLENS_TEST_FILES`, for a quick look.
    let files = std::env::var("PERFLENS_TEST_FILES").ok().and_then(|files| files.parse().ok()).unwrap_or(200_000);
    let scene = Scene::in_memory(DEMO);
    fill(&scene.path("many"), files);
    let start = Instant::now();
    let mut client = scene.editor(editor("vscode")).start();
    let answered = start.elapsed();
    let uri = client.open(&scene.path("src/main.rs"));
    assert_eq!(client.hints(&uri), [""; 0], "answered while the files are listed");
    let asked = start.elapsed();
    client.hints_soon(&uri);
    let listed = start.elapsed();
    assert_eq!(client.hints(&uri).len(), DEMO_HINTS.len());
    assert!(answered < listed && asked < listed, "{answered:?} {asked:?} {listed:?}");
}

#[test]
fn a_large_workspace_is_left_as_fast_as_any() {
    let scene = Scene::in_memory(DEMO);
    fill(&scene.path("many"), 20_000);
    let mut client = scene.editor(editor("vscode")).start();
    client.notify("exit", Value::Null);
    assert_eq!(client.exit_code(), Some(1), "while it lists files");
    let mut client = scene.editor(editor("vscode")).start();
    client.raw(frame_text("nonsense"));
    assert_eq!(client.orphan()["code"], -32700);
    let uri = scene.uri("src/main.rs");
    client.request("textDocument/inlayHint", hint_params(&uri, (0, 0), (9, 0)));
}

#[test]
fn files_that_come_into_the_workspace_are_found() {
    let scene = Scene::new(
        "
        cpu/nanoseconds
        src/main.rs:1 a = 30_000_000
        src/later.rs:1 later = 30_000_000
        //- /src/main.rs
        fn a() {}
        ",
    );
    let (mut client, _) = scene.open(editor("neovim 0.11"), "src/main.rs");
    scene.write("src/later.rs", "fn later() {}\n");
    let later = client.open(&scene.path("src/later.rs"));
    await_labels(&mut client, &later, &["█ 50.0% 30.0ms here"]);
}

#[test]
fn what_was_edited_stays_edited_when_the_same_profile_is_counted_anew() {
    let scene = Scene::new(
        "
        cpu/nanoseconds
        src/main.rs:2 main = 30_000_000
        src/main.rs:3 main = 10_000_000
        //- /src/main.rs
        fn main() {
            a();
            b();
        }
        ",
    );
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    let hints = client.hints_soon(&uri);
    assert_eq!(hints.len(), 2, "{hints:?}");
    // Edited, saved, and counted again under another filter.
    let change = json!({ "range": perflens_tests::lsp::range((1, 0), (1, 0)), "text": "    new();\n" });
    client.notify(
        "textDocument/didChange",
        json!({ "textDocument": { "uri": uri, "version": 2 }, "contentChanges": [change] }),
    );
    let text = "fn main() {\n    new();\n    a();\n    b();\n}\n";
    scene.write("src/main.rs", text);
    client.command("perflens.setFilter", json!(["fn=main"]));
    client.incoming("workspace/inlayHint/refresh");
    settle();
    let lines: Vec<u64> = client.raw_hints(&uri).iter().filter_map(|hint| hint["position"]["line"].as_u64()).collect();
    assert_eq!(lines, [2, 3], "both lines have moved");
}

#[test]
fn a_file_that_comes_later_is_found() {
    let scene = Scene::new(
        "
        cpu/nanoseconds
        src/late.rs:1 late = 30_000_000
        //- /src/main.rs
        fn main() {}
        ",
    );
    let mut client = scene.editor(editor("vscode")).start();
    client.until("the profile", |client| {
        (client.request("perflens/status", json!({}))[0]["total"] == 30_000_000).then_some(())
    });
    settle();
    scene.write("src/late.rs", "fn late() {}\n");
    client.until("the new file", |client| {
        (client.request("perflens/status", json!({}))[0]["placed"] == 30_000_000).then_some(())
    });
}

// Answers in words.

/// Editors show one line of a message, and some of them not all of that.
#[test]
fn what_commands_answer_begins_with_what_matters() {
    let scene = Scene::demo();
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    client.received("window/showMessage");
    let mut said = |command: &str, arguments: Value| {
        client.command(command, arguments);
        client.incoming("window/showMessage")["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(said("perflens.showCallers", json!([uri, 9])), "by main 41.2% | calls check 41.2%");
    assert_eq!(
        said("perflens.showHotspots", json!(["function", 2])),
        "41.2% check src/lib.rs:5 | 23.7% other src/lib.rs:9"
    );
    let status = said("perflens.showStatus", json!([]));
    assert!(status.starts_with("100% of 3.52s cpu is in this workspace"), "{status}");
    for text in [said("perflens.explain", json!([])), status] {
        assert!(!text.contains('\n') || text.lines().next().unwrap().len() < 100, "{text}");
    }
}

/// After a load that shows nothing where one is looking, what to look at is said, once.
#[test]
fn a_load_with_nothing_in_the_open_files_says_where_to_look() {
    let scene = Scene::demo();
    let mut client = scene.without_profile(editor("helix 25.07")).start();
    let quiet = client.open(&scene.path("src/quiet.rs"));
    client.command("perflens.openProfile", json!(["p.pb.gz"]));
    let said = client.incoming("window/showMessage")["message"].as_str().unwrap().to_owned();
    assert_eq!(said, "hottest: 41.2% check src/lib.rs:6 | 23.7% other src/lib.rs:10 | 22.7% parse src/lib.rs:2");
    assert_eq!(labels(&mut client, &quiet), [""; 0]);
    scene.rewrite(DEMO);
    settle();
    assert_eq!(client.received("window/showMessage"), [Value::Null; 0], "written again is no news");
    client.open(&scene.path("src/main.rs"));
    client.command("perflens.refresh", json!([]));
    client.command("perflens.openProfile", json!(["p.pb.gz"]));
    settle();
    assert_eq!(client.received("window/showMessage"), [Value::Null; 0], "there is something to see");
}
