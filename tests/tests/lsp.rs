//! What the language server shows, each feature in the words that an editor gets.
//!
//! The texts are those that were chosen by looking at them in editors; a failure here is a
//! change of what people see. What is not here: documents that change ([`lsp_documents`]),
//! profiles and settings that change ([`lsp_session`]), starting and ending ([`lifecycle`]).
//!
//! [`lsp_documents`]: ../lsp_documents/index.html
//! [`lsp_session`]: ../lsp_session/index.html
//! [`lifecycle`]: ../lifecycle/index.html

use std::collections::BTreeSet;

use perflens_tests::lsp::{
    Client, DEMO, DEMO_HINTS, EDITORS, Encoding, Scene, Start, editor, hint_label, lines, position_params, range,
};
use regex::Regex;
use serde_json::{Value, json};

fn demo() -> (Scene, Client, String) {
    let scene = Scene::demo();
    let (client, uri) = scene.open(editor("vscode"), "src/main.rs");
    (scene, client, uri)
}

/// The hints that the demo has in its text as it is, in an encoding.
fn demo_hints(text: &str, encoding: Encoding) -> Vec<String> {
    let lines = lines(text);
    DEMO_HINTS
        .iter()
        .map(|&(line, label)| format!("{line}:{} {label}", encoding.columns(lines[line as usize])))
        .collect()
}

/// Places where a message has `null`.
fn nulls(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Null => found.push(path.to_owned()),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                nulls(item, &format!("{path}/{at}"), found);
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                nulls(value, &format!("{path}/{key}"), found);
            }
        }
        _ => {}
    }
}

/// Columns as a terminal draws them, for the characters that are used.
fn width(text: &str) -> usize {
    text.chars().count()
}

// Initialize.

#[test]
fn initialize_announces_what_there_is_and_nothing_as_null() {
    for (name, editor) in EDITORS {
        let client = Start::new(*editor).start();
        let mut found = Vec::new();
        nulls(&client.server, "", &mut found);
        assert_eq!(found, [""; 0], "{name}: editors stumble over null");
        assert_eq!(client.server["serverInfo"]["name"], "perflens");
        assert!(client.server["serverInfo"]["version"].is_string());
        let capabilities = &client.server["capabilities"];
        for provider in
            ["inlayHintProvider", "codeLensProvider", "hoverProvider", "codeActionProvider", "callHierarchyProvider"]
        {
            assert!(capabilities[provider] == true || capabilities[provider].is_object(), "{name}: {provider}");
        }
        assert_eq!(capabilities["inlayHintProvider"]["resolveProvider"], true, "{name}");
        assert_ne!(capabilities["codeLensProvider"]["resolveProvider"], true, "{name}: lenses come complete");
        assert!(capabilities.get("diagnosticProvider").is_none(), "{name}: pushed, or editors show them twice");
        assert_eq!(capabilities["textDocumentSync"]["openClose"], true, "{name}");
        assert_eq!(capabilities["textDocumentSync"]["change"], 2, "{name}: incremental");
        assert_eq!(capabilities["workspace"]["workspaceFolders"]["supported"], true, "{name}");
        let extensions = &capabilities["experimental"]["perflens"];
        assert_eq!(extensions["version"], 1, "{name}");
    }
}

#[test]
fn the_position_encoding_is_the_clients_first_that_is_known() {
    for (name, editor) in EDITORS {
        let client = Start::new(*editor).start();
        let expected = editor.expected_encoding().name();
        assert_eq!(client.server["capabilities"]["positionEncoding"], expected, "{name}");
    }
    for (offered, expected) in [
        (json!([]), "utf-16"),
        (json!(["utf-7", "utf-32"]), "utf-32"),
        (json!(["utf-7"]), "utf-16"),
        (json!(["UTF-8", "utf-16"]), "utf-16"),
        (json!(["utf-32", "utf-16", "utf-8"]), "utf-32"),
        (Value::Null, "utf-16"),
    ] {
        let capabilities = json!({ "general": { "positionEncodings": offered } });
        let client = Start::new(editor("bare")).param("capabilities", capabilities).start();
        assert_eq!(client.server["capabilities"]["positionEncoding"], expected, "{offered}");
    }
}

#[test]
fn commands_that_are_announced_are_the_servers_own() {
    let client = Start::new(editor("vscode")).start();
    let commands = client.server["capabilities"]["executeCommandProvider"]["commands"].as_array().expect("commands");
    let ids: BTreeSet<&str> = commands.iter().map(|id| id.as_str().expect("a text")).collect();
    assert_eq!(ids.len(), commands.len(), "each once");
    for id in &ids {
        // `perflens.ui.` is the editor plug-in's.
        assert!(id.starts_with("perflens.") && !id.starts_with("perflens.ui."), "{id}");
    }
    for name in [
        "openProfile",
        "selectValueType",
        "setFilter",
        "refresh",
        "clear",
        "compareWith",
        "stopComparing",
        "nextHotspot",
        "previousHotspot",
        "showHotspots",
        "showActions",
        "showCallers",
        "explain",
        "chooseMatch",
        "trustWorkspace",
        "showStatus",
        "toggleHints",
    ] {
        assert!(ids.contains(format!("perflens.{name}").as_str()), "{name} is missing");
    }
}

// Hints.

#[test]
fn hints_say_share_value_and_what_the_line_itself_costs() {
    let (scene, mut client, uri) = demo();
    let text = std::fs::read_to_string(scene.path("src/main.rs")).unwrap();
    assert_eq!(client.hints(&uri), demo_hints(&text, Encoding::Utf16));
    let library = client.open(&scene.path("src/lib.rs"));
    assert_eq!(
        client.hints(&library),
        ["1:19 ▆ 22.7% 800ms here", "5:23 █ 41.2% 1.45s here", "9:33 ▆ 23.7% 833ms here"]
    );
    let quiet = client.open(&scene.path("src/quiet.rs"));
    assert_eq!(client.hints(&quiet), [""; 0]);
}

#[test]
fn hints_have_a_pad_and_no_kind() {
    let (_scene, mut client, uri) = demo();
    for hint in client.raw_hints(&uri) {
        assert_eq!(hint["paddingLeft"], true, "{hint}");
        assert!(hint.get("kind").is_none(), "{hint}");
        assert!(hint.get("textEdits").is_none(), "{hint}: a double click must not edit");
        let mut found = Vec::new();
        nulls(&hint, "", &mut found);
        assert_eq!(found, [""; 0]);
    }
}

#[test]
fn every_editor_gets_the_same_hints_in_its_own_columns() {
    for (name, editor) in EDITORS {
        let scene = Scene::demo();
        let text = std::fs::read_to_string(scene.path("src/main.rs")).unwrap();
        let (mut client, uri) = scene.open(*editor, "src/main.rs");
        assert_eq!(client.hints(&uri), demo_hints(&text, editor.expected_encoding()), "{name}");
    }
    let columns = |encoding: Encoding| encoding.columns("    let total = run() + other(); // héllo 🔥");
    assert_eq!(Encoding::ALL.map(columns), [47, 44, 43], "the encodings differ on the line");
}

#[test]
fn heat_is_of_what_is_placed_and_shares_are_of_the_total() {
    // Nine tenths are in a program that isn't here.
    let scene = Scene::new(
        "
        cpu/nanoseconds
        src/main.rs:1 a = 40_000_000
        src/main.rs:2 b = 60_000_000
        /usr/src/other.c:1 other = 900_000_000
        //- /src/main.rs
        fn a() {}
        fn b() {}
        ",
    );
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    let labels: Vec<String> = client.raw_hints(&uri).iter().map(hint_label).collect();
    assert_eq!(labels, ["█ 4.0% 40.0ms here", "█ 6.0% 60.0ms here"]);
}

#[test]
fn units_follow_the_value_type() {
    let scene = Scene::new(
        "
        alloc_objects/count alloc_space/bytes
        src/main.rs:1 a = 1_940, 6_406_799
        src/main.rs:2 b; src/lib.rs:1 lib = 44_000, 140_000_000
        src/main.rs:3 c = 60, 6_000_000
        //- /src/main.rs
        fn a() {}
        fn b() {}
        fn c() {}
        //- /src/lib.rs
        fn lib() {}
        ",
    );
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    for (kind, expected) in [
        ("alloc_space", ["▄ 4.2% 6.11MiB here", "█ 91.9% 134MiB", "▄ 3.9% 5.72MiB here"]),
        ("alloc_objects/count", ["▄ 4.2% 1.94k here", "█ 95.7% 44.0k", "0.1% 60 here"]),
    ] {
        client.command("perflens.selectValueType", json!([{ "type": kind }]));
        client.until(kind, |client| {
            let labels: Vec<String> = client.raw_hints(&uri).iter().map(hint_label).collect();
            (labels == expected).then_some(())
        });
    }
}

/// rust-lang/rust-analyzer#13372
#[test]
fn a_range_gets_its_own_hints_only() {
    let (_scene, mut client, uri) = demo();
    let mut lines_of = |from, to| -> Vec<u64> {
        client
            .raw_hints_in(&uri, from, to)
            .iter()
            .map(|hint| hint["position"]["line"].as_u64().expect("a line"))
            .collect()
    };
    assert_eq!(lines_of((0, 0), (3, 0)), [1, 2]);
    assert_eq!(lines_of((7, 0), (7, 999)), [7]);
    assert_eq!(lines_of((2, 0), (8, 999)), [2, 7, 8]);
    assert_eq!(lines_of((3, 0), (6, 999)), [0; 0]);
    // Beyond the text, in any way.
    let most = i32::MAX.unsigned_abs();
    assert_eq!(lines_of((8, 0), (99_999, 0)), [8, 9]);
    assert_eq!(lines_of((0, 0), (most, most)), [1, 2, 7, 8, 9]);
    assert_eq!(lines_of((500, 0), (600, 0)), [0; 0]);
    assert_eq!(lines_of((most, most), (most, most)), [0; 0]);
    assert_eq!(lines_of((u32::MAX, u32::MAX), (u32::MAX, u32::MAX)), [0; 0]);
    // An editor that mixes up the ends gets an answer.
    lines_of((8, 0), (2, 0));
}

#[test]
fn resolving_a_hint_adds_what_the_hover_says() {
    let (_scene, mut client, uri) = demo();
    let hint = client.raw_hints(&uri).into_iter().find(|hint| hint["position"]["line"] == 7).expect("the mixed line");
    let resolved = client.request("inlayHint/resolve", hint.clone());
    let tooltip = resolved["tooltip"]["value"].as_str().or_else(|| resolved["tooltip"].as_str()).expect("a tooltip");
    assert!(tooltip.contains("with calls") && tooltip.contains("parse"), "{tooltip}");
    assert_eq!(tooltip, client.hover(&uri, 7, 4));
    assert_eq!((&resolved["label"], &resolved["position"]), (&hint["label"], &hint["position"]));
}

#[test]
fn resolving_what_is_out_of_date_gives_the_item_back() {
    let (scene, mut client, uri) = demo();
    let hint = client.raw_hints(&uri).remove(0);
    let resolved = |client: &mut Client, hint: &Value| client.request("inlayHint/resolve", hint.clone());
    for data in [json!(null), json!(7), json!({}), json!([1, "x"]), json!({ "line": -1 }), json!("…")] {
        let mut odd = hint.clone();
        odd["data"] = data.clone();
        let answer = resolved(&mut client, &odd);
        assert_eq!(hint_label(&answer), hint_label(&hint), "{data}");
    }
    scene.rewrite(
        "
        cpu/nanoseconds
        src/main.rs:3 main = 30_000_000
    ",
    );
    client.until("the new hints", |client| (client.hints(&uri).len() == 1).then_some(()));
    assert_eq!(hint_label(&resolved(&mut client, &hint)), hint_label(&hint));
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    assert_eq!(hint_label(&resolved(&mut client, &hint)), hint_label(&hint));
    client.command("perflens.clear", json!([]));
    assert_eq!(hint_label(&resolved(&mut client, &hint)), hint_label(&hint));
}

#[test]
fn hints_can_be_few_ascii_and_further_from_the_code() {
    let table = [
        (json!({ "minShare": 1 }), vec!["█ 99.1% 3.49s", "█ 34.1% 1.20s · here 11%", "█ 41.2% 1.45s"]),
        (json!({ "perFile": 2 }), vec!["█ 99.1% 3.49s", "█ 41.2% 1.45s"]),
        (json!({ "mode": "off" }), vec![]),
        (json!({ "glyphs": "ascii", "minShare": 1 }), vec!["99.1% 3.49s", "34.1% 1.20s | here 11%", "41.2% 1.45s"]),
        (
            json!({ "lead": true, "minShare": 1 }),
            vec!["\u{a0}█ 99.1% 3.49s", "\u{a0}█ 34.1% 1.20s · here 11%", "\u{a0}█ 41.2% 1.45s"],
        ),
    ];
    for (hints, expected) in table {
        let scene = Scene::demo();
        let mut options = scene.options();
        options["hints"] = hints.clone();
        let mut client = scene.editor(editor("vscode")).options(options).start();
        let uri = client.open(&scene.path("src/main.rs"));
        // The lenses tell when it is loaded, also with hints off.
        client.until("lenses", |client| client.lenses(&uri).iter().any(|lens| lens.contains("function")).then_some(()));
        let labels: Vec<String> = client.raw_hints(&uri).iter().map(hint_label).collect();
        assert_eq!(labels, expected, "{hints}");
    }
}

// Lenses.

#[test]
fn lenses_say_what_functions_cost_and_are_complete() {
    let (scene, mut client, uri) = demo();
    let library = client.open(&scene.path("src/lib.rs"));
    let lenses = client.lenses(&uri);
    assert_eq!(lenses.len(), 3, "{lenses:?}");
    // Nothing to speak of is spent in `main` itself; its rank may be said all the same.
    assert!(["0 function 100% 3.52s", "0 function 100% 3.52s (#5)"].contains(&lenses[0].as_str()), "{lenses:?}");
    assert_eq!(lenses[1], "5 function 75.5% 2.66s · here 12% (#4)");
    assert_eq!(lenses[2], "0 profile this program");
    assert_eq!(
        client.lenses(&library),
        ["0 function 22.7% 800ms here (#3)", "4 function 41.2% 1.45s here (#1)", "8 function 23.7% 833ms here (#2)"]
    );
    let quiet = client.open(&scene.path("src/quiet.rs"));
    assert_eq!(client.lenses(&quiet), [""; 0]);
}

#[test]
fn a_click_on_a_lens_runs_a_command_that_works() {
    let (_scene, mut client, uri) = demo();
    let lenses = client.request("textDocument/codeLens", json!({ "textDocument": { "uri": uri } }));
    let is_cost = |lens: &&Value| lens["command"]["command"] != "perflens.profileTest";
    for lens in lenses.as_array().expect("lenses").iter().filter(is_cost) {
        assert_eq!(lens["command"]["command"], "perflens.showActions", "{lens}");
        client.command("perflens.showActions", lens["command"]["arguments"].clone());
    }
}

/// An editor keeps the lenses that it has drawn for a moment after an edit above them.
#[test]
fn a_click_on_a_lens_is_about_its_function_after_its_line_has_moved() {
    let scene = Scene::demo();
    for shows_answers in [false, true] {
        let mut capabilities = editor("vscode").capabilities();
        capabilities["experimental"] = json!({ "perflens": { "showsAnswers": shows_answers } });
        let mut client = scene.editor(editor("vscode")).param("capabilities", capabilities).start();
        let mut document = client.open_document(&scene.path("src/main.rs"));
        let uri = document.uri.clone();
        client.until("lenses", |client| client.lenses(&uri).iter().any(|lens| lens.contains("function")).then_some(()));
        let lenses = client.request("textDocument/codeLens", json!({ "textDocument": { "uri": uri } }));
        let drawn = lenses.as_array().expect("lenses").iter().find(|lens| lens["range"]["start"]["line"] == 5);
        let arguments = drawn.expect("a lens")["command"]["arguments"].clone();
        client.edit(&mut document, (0, 0), (0, 0), "// one\n// two\n// three\n");

        let answer = client.command("perflens.showActions", arguments);
        let commands = if shows_answers { &answer["choices"] } else { &answer };
        if shows_answers {
            assert_eq!(answer["line"], 9, "from 1, as it is now");
        }
        let callers = commands.as_array().expect("commands").iter().find(|each| {
            each["title"].as_str().is_some_and(|title| title.ends_with("callers and callees of this function"))
        });
        assert_eq!(callers.expect("callers")["arguments"][0]["line"], 9, "{answer}");

        let gone = json!([{ "file": uri, "line": 6, "name": "none" }]);
        let error =
            client.refused("workspace/executeCommand", json!({ "command": "perflens.showActions", "arguments": gone }));
        assert_eq!(error["message"], "main.rs shows no cost of none any more");
    }
}

#[test]
fn functions_of_few_samples_say_so() {
    let scene = Scene::new(
        "
        samples/count cpu/nanoseconds
        !default cpu
        src/main.rs:1 few #1 = 8, 80_000_000
        src/main.rs:2 many #2 = 1000, 900_000_000
        //- /src/main.rs
        fn few() {}
        fn many() {}
        ",
    );
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    assert_eq!(
        client.lenses(&uri),
        ["0 function 8.2% 80.0ms here (#2) · 8 samples", "1 function 91.8% 900ms here (#1)"]
    );
}

// Hover.

#[test]
fn a_hover_is_a_narrow_table_and_a_line_of_prose() {
    let (_scene, mut client, uri) = demo();
    let hover = client.hover(&uri, 7, 6);
    let (fence, prose) = fence_and_prose(&hover);
    assert!(fence.len() <= 8 && fence.iter().all(|line| !line.trim().is_empty()), "{hover}");
    assert!(fence.iter().all(|line| width(line) <= 80), "{hover}");
    let head = fence[0];
    assert!(head.starts_with("run:8 "), "{hover}");
    for (heading, end) in [("with calls", 26), ("here", 42), ("self", 58)] {
        let at = head.find(heading).unwrap_or_else(|| panic!("{heading} is missing: {hover}"));
        assert_eq!(at + heading.len(), end, "{hover}");
    }
    assert_eq!(fence[1], "cpu         34.1%    1.20s  11.4%    400ms  11.4%    400ms");
    let calls = fence.iter().find(|line| line.starts_with("calls")).unwrap_or_else(|| panic!("{hover}"));
    assert_eq!(*calls, "calls       22.7%    800ms  parse");
    let callers = fence.iter().find(|line| line.starts_with("called by")).unwrap_or_else(|| panic!("{hover}"));
    assert_eq!(*callers, "called by   34.1%    1.20s  main");
    assert!(prose.contains("3.52s cpu") && prose.contains("352 samples"), "{hover}");
    assert!(!hover.contains("command:") && !hover.contains('\u{1b}') && !hover.contains('<'), "{hover}");
}

#[test]
fn columns_of_a_hover_hold_whatever_the_numbers() {
    let scene = Scene::new(
        "
        samples/count cpu/nanoseconds wall/nanoseconds alloc_objects/count alloc_space/bytes
        !default cpu
        src/main.rs:1 a_function_with_a_long_name = 1, 1, 1, 1, 999
        src/main.rs:2 f; src/lib.rs:1 g1 = 20, 999_400_000, 0, 123_456_789, 1
        src/main.rs:2 f; src/lib.rs:2 g2 = 20, 99_940, 0, 123_456_789, 1
        src/main.rs:2 f; src/lib.rs:3 g3 = 20, 99_940, 0, 123_456_789, 1
        src/main.rs:2 f; src/lib.rs:4 g4 = 20, 99_940, 0, 123_456_789, 1
        src/main.rs:2 f; src/lib.rs:5 <alloc::vec::Vec<core::option::Option<alloc::string::String>> as core::iter::Extend<T>>::extend_with_more = 900, 9_000_000_000, 0, 1, 1
        src/x.rs:1 c1; src/main.rs:2 f = 1, 10, 1, 1, 1_000_000_000_000
        src/x.rs:2 c2; src/main.rs:2 f = 1, 10, 1, 1, 1
        src/x.rs:3 c3; src/main.rs:2 f = 1, 10, 1, 1, 1
        //- /src/main.rs
        fn a_function_with_a_long_name() {}
        fn f() {}
        //- /src/lib.rs
        1
        2
        3
        4
        5
        ",
    );
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    let numbers = Regex::new(r"^(.{0,11} *) (.{0,5})([ ]+)(\S+)").unwrap();
    for line in 0..2 {
        let hover = client.hover(&uri, line, 0);
        let (fence, _) = fence_and_prose(&hover);
        assert!(fence.len() <= 8, "{hover}");
        for row in fence {
            assert!(width(row) <= 80, "{hover}");
            assert!(numbers.is_match(row), "{row:?} in {hover}");
        }
    }
    let hover = client.hover(&uri, 0, 0);
    assert!(hover.contains("line 1") && hover.contains("a_function_with_a_long_name"), "{hover}");
    let hover = client.hover(&uri, 1, 0);
    let (fence, _) = fence_and_prose(&hover);
    assert!(fence.iter().any(|row| row.contains('…')), "the long name is cut: {hover}");
    let kinds: Vec<&str> = fence[1..].iter().map_while(|row| row.split_whitespace().next()).take(3).collect();
    assert_eq!(kinds[0], "cpu", "the selected type comes first: {hover}");
}

fn fence_and_prose(hover: &str) -> (Vec<&str>, &str) {
    let (fence, prose) =
        hover.strip_prefix("```text\n").and_then(|rest| rest.split_once("\n```")).unwrap_or_else(|| panic!("{hover}"));
    (fence.lines().collect(), prose.trim())
}

#[test]
fn there_is_no_hover_where_there_is_no_cost() {
    let (scene, mut client, uri) = demo();
    let quiet = client.open(&scene.path("src/quiet.rs"));
    for (uri, line) in [(&uri, 4), (&uri, 9999), (&uri, u32::MAX), (&quiet, 0)] {
        assert_eq!(client.request("textDocument/hover", position_params(uri, line, 0)), Value::Null, "{uri}:{line}");
    }
}

#[test]
fn names_from_a_profile_are_data() {
    let scene = Scene::new(
        "
        cpu/nanoseconds
        src/main.rs:1 a; src/lib.rs:1 ``````</pre><a>[x](command:evil)\u{202e}\u{7}\u{1b}[31m = 30_000_000
        src/main.rs:1 a; src/lib.rs:2 ![](http://example.com/x.png) = 20_000_000
        //- /src/main.rs
        fn a() {}
        ",
    );
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    let hover = client.hover(&uri, 0, 0);
    let fences: Vec<&str> = hover.lines().filter(|line| line.trim_start().starts_with("```")).collect();
    let longest_run = |text: &str| text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = longest_run(fences[0]);
    assert_eq!(fences.len(), 2, "{hover}");
    let inside = hover.lines().skip(1).take_while(|line| longest_run(line) < fence).count();
    assert!(inside >= 3, "the names are in the fence, which is longer than any run of theirs: {hover}");
    assert!(!hover.contains(['\u{202e}', '\u{7}', '\u{1b}']), "{hover:?}");
}

// Actions.

#[test]
fn code_actions_offer_commands_that_work() {
    let (_scene, mut client, uri) = demo();
    for (line, least) in [(7, 2), (5, 1), (4, 0)] {
        let actions = actions(&mut client, &uri, line);
        assert!(actions.len() >= least, "{line}: {actions:?}");
        if least == 0 {
            assert_eq!(actions, [Value::Null; 0], "a line without costs");
        }
        for action in actions {
            assert!(action["title"].as_str().is_some_and(|title| !title.is_empty()), "{action}");
            assert!(action.get("edit").is_none(), "{action}");
            run_action(&mut client, &action);
        }
    }
}

fn actions(client: &mut Client, uri: &str, line: u32) -> Vec<Value> {
    let params = json!({
        "textDocument": { "uri": uri },
        "range": range((line, 2), (line, 2)),
        "context": { "diagnostics": [] },
    });
    client.request("textDocument/codeAction", params).as_array().cloned().unwrap_or_default()
}

fn run_action(client: &mut Client, action: &Value) {
    let command = if action["command"].is_object() { &action["command"] } else { action };
    let announced = &client.server["capabilities"]["executeCommandProvider"]["commands"];
    assert!(announced.as_array().expect("commands").contains(&command["command"]), "{action}");
    let arguments = command.get("arguments").cloned().unwrap_or_else(|| json!([]));
    client.command(command["command"].as_str().expect("an id"), arguments);
}

#[test]
fn editors_that_know_commands_only_get_commands_for_actions() {
    let scene = Scene::demo();
    let (mut client, uri) = scene.open(editor("bare"), "src/main.rs");
    let actions = actions(&mut client, &uri, 7);
    assert!(!actions.is_empty());
    for action in actions {
        assert!(action["command"].is_string(), "{action}");
        run_action(&mut client, &action);
    }
}

#[test]
fn code_actions_of_other_kinds_are_not_offered() {
    let (_scene, mut client, uri) = demo();
    let params = json!({
        "textDocument": { "uri": uri },
        "range": range((7, 0), (7, 0)),
        "context": { "diagnostics": [], "only": ["source.organizeImports"] },
    });
    let result = client.request("textDocument/codeAction", params);
    assert!(result.is_null() || result == json!([]), "{result}");
}

// Call hierarchy.

#[test]
fn the_call_hierarchy_has_callers_and_callees_with_costs() {
    let (scene, mut client, uri) = demo();
    let items = client.request("textDocument/prepareCallHierarchy", position_params(&uri, 7, 6));
    let item = &items[0];
    assert_eq!(item["name"], "run", "{items}");
    assert_eq!(item["uri"], json!(uri));
    for end in ["start", "end"] {
        let line = item["selectionRange"][end]["line"].as_u64().expect("a line");
        let first = item["range"]["start"]["line"].as_u64().expect("a line");
        let last = item["range"]["end"]["line"].as_u64().expect("a line");
        assert!((first..=last).contains(&line), "the selection is within the range: {item}");
    }
    let incoming = client.request("callHierarchy/incomingCalls", json!({ "item": item }));
    assert_eq!(names_of_calls(&incoming, "from"), ["main"]);
    let main = &incoming[0]["from"];
    assert_eq!(main["uri"], json!(uri));
    assert!(main["detail"].as_str().is_some_and(|detail| detail.contains("75.5%")), "{main}");
    assert!(incoming[0]["fromRanges"].is_array());
    let outgoing = client.request("callHierarchy/outgoingCalls", json!({ "item": item }));
    assert_eq!(names_of_calls(&outgoing, "to"), ["check", "parse"], "the larger first");
    let check = &outgoing[0]["to"];
    assert_eq!(check["uri"], json!(scene.uri("src/lib.rs")));
    assert_eq!(check["selectionRange"]["start"]["line"], 4);
    assert!(check["detail"].as_str().is_some_and(|detail| detail.contains("41.2%")), "{check}");
    // One can go on from there.
    let further = client.request("callHierarchy/incomingCalls", json!({ "item": check }));
    assert_eq!(names_of_calls(&further, "from"), ["run"]);
    let none = client.request("textDocument/prepareCallHierarchy", position_params(&uri, 4, 0));
    assert!(none.is_null() || none == json!([]), "{none}");
}

fn names_of_calls(calls: &Value, end: &str) -> Vec<String> {
    let name = |call: &Value| call[end]["name"].as_str().expect("a name").to_owned();
    calls.as_array().expect("calls").iter().map(name).collect()
}

#[test]
fn call_hierarchy_items_that_are_out_of_date_have_no_calls() {
    let (_scene, mut client, uri) = demo();
    let items = client.request("textDocument/prepareCallHierarchy", position_params(&uri, 7, 6));
    let mut item = items[0].clone();
    for data in [Value::Null, json!(7), json!({ "function": 1_000_000 }), json!("…")] {
        item["data"] = data;
        for method in ["callHierarchy/incomingCalls", "callHierarchy/outgoingCalls"] {
            client.request(method, json!({ "item": item }));
        }
    }
    client.command("perflens.clear", json!([]));
    for method in ["callHierarchy/incomingCalls", "callHierarchy/outgoingCalls"] {
        let calls = client.request(method, json!({ "item": items[0] }));
        assert!(calls.is_null() || calls == json!([]), "{calls}");
    }
}

// Without anything to show.

#[test]
fn without_a_profile_every_request_says_nothing() {
    let scene = Scene::demo();
    let mut client = scene.without_profile(editor("vscode")).start();
    let uri = client.open(&scene.path("src/main.rs"));
    assert_eq!(client.hints(&uri), [""; 0]);
    assert_eq!(client.lenses(&uri), ["0 profile this program"], "but what there is to profile");
    assert_eq!(client.hover(&uri, 7, 4), "");
    let items = client.request("textDocument/prepareCallHierarchy", position_params(&uri, 7, 6));
    assert!(items.is_null() || items == json!([]), "{items}");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(client.count("workspace/inlayHint/refresh"), 0, "nothing has changed");
    assert_eq!(client.count("window/showMessage"), 0, "and nobody asked");
}

/// microsoft/vscode#205708
#[test]
fn labels_are_short_whatever_the_numbers() {
    let (share, value) = ("1_234_567_890_123", "999_499_999");
    let scene = Scene::new(&format!(
        "
        cpu/nanoseconds
        src/main.rs:1 ?; src/lib.rs:1 ? = {share}
        src/main.rs:1 ? = 200_000_000_000
        src/main.rs:2 ? = {value}
        src/main.rs:3 ?; src/lib.rs:1 ? = 59_950_000_000
        src/main.rs:3 ? = 20_000_000_000
        src/main.rs:4 ? = -90_000_000_000
        src/main.rs:4 ?; src/lib.rs:1 ? = -100_000_000_000
        //- /src/main.rs
        1
        2
        3
        4
        //- /src/lib.rs
        1
        "
    ));
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    let labels: Vec<String> = client.raw_hints(&uri).iter().map(hint_label).collect();
    assert!(labels.len() >= 3, "{labels:?}");
    let shape =
        Regex::new(r"^([▂▄▆█] )?~?(<?−?\d+(\.\d)?%|100%) −?\d[\d.]*[a-zA-Zµ]*( here| · here −?\d+%)?$").unwrap();
    for label in labels {
        assert!(width(&label) <= 27, "{label}");
        assert!(shape.is_match(&label), "{label}");
    }
    assert!(DEMO_HINTS.iter().all(|(_, label)| shape.is_match(label)), "the pattern knows the usual labels");
    assert!(DEMO.contains("héllo"));
}
