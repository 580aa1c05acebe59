//! Documents as the language server follows them: line ends, columns, edits in every form,
//! sizes, and addresses that are no files.
//!
//! The text of a document can't be asked for. But each hint stands behind the last character of
//! its line, so the hints tell where lines are and how long; and lines that were edited have
//! none. What is not here: the labels ([`lsp`](../lsp/index.html)).

use perflens_tests::lsp::{
    Client, DEMO_HINTS, Document, Encoding, Scene, Start, editor, hint_params, lines, notification, position_params,
};
use perflens_tests::mini::Mini;
use serde_json::{Value, json};

/// A workspace with one file of this text, all lines of which cost the same; but for the empty
/// one behind the last line end, which no compiler counts.
fn evenly_hot(text: &str) -> Scene {
    let samples = (1..=code_lines(text)).map(|line| format!("src/main.rs:{line} ? = 10_000_000"));
    let scene = Scene::new(&[vec!["cpu/nanoseconds".to_owned()], samples.collect()].concat().join("\n"));
    scene.write("src/main.rs", text);
    scene
}

fn code_lines(text: &str) -> usize {
    let lines = lines(text);
    lines.len() - usize::from(lines.last().is_some_and(|last| last.is_empty()))
}

/// A document of which all lines have a hint, until they are edited.
struct Buffer {
    _scene: Scene,
    client: Client,
    document: Document,
    /// For each line, whether it is one of the profiled text.
    is_original: Vec<bool>,
}

impl Buffer {
    fn open(text: &str, encoding: Encoding) -> Self {
        let scene = evenly_hot(text);
        let mut client = scene.editor(editor("neovim 0.11")).encoding(encoding).start();
        let document = client.open_document(&scene.path("src/main.rs"));
        client.hints_soon(&document.uri);
        let is_original = (0..lines(text).len()).map(|line| line < code_lines(text)).collect();
        let mut buffer = Self { _scene: scene, client, document, is_original };
        buffer.check("as it was opened");
        buffer
    }

    /// Where hints have to be: behind each line of the profiled text.
    fn expected(&self) -> Vec<(u32, u32)> {
        (0..)
            .zip(&self.is_original)
            .filter(|(_, is)| **is)
            .map(|(line, _)| (line, self.document.end_of_line(line)))
            .collect()
    }

    fn seen(&mut self) -> Vec<(u32, u32)> {
        let uri = self.document.uri.clone();
        positions(&self.client.raw_hints(&uri))
    }

    fn check(&mut self, what: &str) {
        assert_eq!(lines(&self.document.text).len(), self.is_original.len(), "the test knows all lines");
        let expected = self.expected();
        assert_eq!(self.seen(), expected, "{what}\n{:?}", self.document.text);
    }

    fn edit(&mut self, from: (u32, u32), to: (u32, u32), text: &str) {
        self.client.edit(&mut self.document, from, to, text);
    }
}

fn positions(hints: &[Value]) -> Vec<(u32, u32)> {
    let number = |value: &Value| u32::try_from(value.as_u64().expect("a number")).expect("a small one");
    hints.iter().map(|hint| (number(&hint["position"]["line"]), number(&hint["position"]["character"]))).collect()
}

// Lines and columns.

/// hudson-trading/slang-server#509
#[test]
fn hints_are_behind_the_last_character_in_every_encoding() {
    for encoding in Encoding::ALL {
        Buffer::open("let a = 1; // héllo 🔥\n// °C 𝄞𝄞\n日本語\n\n\u{feff}x\u{200d}\ne\u{301}", encoding);
    }
}

/// jeapostrophe/racket-langserver#32
#[test]
fn windows_line_ends_are_no_part_of_lines() {
    let mut buffer = Buffer::open("fn a() {\r\n    b();\r\n}\r\n", Encoding::Utf16);
    assert_eq!(buffer.seen(), [(0, 8), (1, 8), (2, 1)]);
}

/// atusy/kakehashi#710
#[test]
fn a_lone_carriage_return_is_a_line_end_in_the_editor_but_not_in_the_profile() {
    let text = "hello\rworld\nsecond\r\nthird\n";
    let scene = Scene::new(
        "
        cpu/nanoseconds
        src/main.rs:1 ? = 10_000_000
        src/main.rs:2 ? = 20_000_000
        src/main.rs:3 ? = 30_000_000
        ",
    );
    scene.write("src/main.rs", text);
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    let seen = client.hints(&uri);
    // The compiler's line 1 is the editor's 0 and 1; its line 2 is the editor's 2. Wherever
    // line 1 is shown, the others have to be right.
    assert!(["0:5 ▆ 16.7% 10.0ms here", "1:5 ▆ 16.7% 10.0ms here"].contains(&seen[0].as_str()), "{seen:?}");
    assert_eq!(seen[1..], ["2:6 █ 33.3% 20.0ms here", "3:5 █ 50.0% 30.0ms here"]);
}

#[test]
fn a_last_line_without_end_has_its_hint() {
    let mut buffer = Buffer::open("a\nlast", Encoding::Utf16);
    assert_eq!(buffer.seen(), [(0, 1), (1, 4)]);
}

/// barrettruth/vimdoc-language-server#26
#[test]
fn the_end_of_a_line_is_counted_in_utf_16_unless_agreed_otherwise() {
    let scene = evenly_hot("let x = \"😀\";\n");
    let (mut client, uri) = scene.open(editor("bare"), "src/main.rs");
    assert_eq!(positions(&client.raw_hints(&uri)), [(0, 13)]);
}

// Edits.

/// neovim/neovim#39772
#[test]
fn a_hint_is_never_past_the_end_of_a_line_that_became_shorter() {
    let scene = Scene::demo();
    let mut client = scene.editor(editor("neovim 0.11")).start();
    let mut document = client.open_document(&scene.path("src/main.rs"));
    let uri = document.uri.clone();
    client.hints_soon(&uri);
    for line in [1, 7, 8] {
        let end = document.end_of_line(line);
        client.edit(&mut document, (line, 4), (line, end), "");
        for (line, character) in positions(&client.raw_hints(&uri)) {
            assert!(character <= document.end_of_line(line), "{line}:{character}");
        }
    }
}

/// neovim/neovim#36318
#[test]
fn every_request_between_edits_is_answered_also_with_nothing() {
    let scene = Scene::demo();
    let mut client = scene.editor(editor("neovim 0.12")).start();
    let mut document = client.open_document(&scene.path("src/main.rs"));
    let uri = document.uri.clone();
    client.hints_soon(&uri);
    for step in 0..50 {
        client.edit(&mut document, (step % 10, 0), (step % 10, 0), "x");
        assert!(client.request("textDocument/inlayHint", hint_params(&uri, (0, 0), (99, 0))).is_array());
    }
    assert_eq!(client.request("textDocument/inlayHint", hint_params(&uri, (0, 0), (99, 0))), json!([]));
}

#[test]
fn lines_move_with_edits_above_them() {
    let mut buffer = Buffer::open("one\ntwo\nthree\nfour\n", Encoding::Utf16);
    buffer.edit((1, 0), (1, 0), "new\n");
    buffer.is_original.insert(1, false);
    buffer.check("a line before another, as Neovim sends it");
    buffer.edit((0, 3), (0, 3), "\nnew");
    buffer.is_original.insert(1, false);
    buffer.check("a line behind another, as VS Code sends it");
    buffer.edit((3, 0), (4, 0), "");
    buffer.is_original.remove(3);
    buffer.check("a line less");
    buffer.edit((0, 3), (2, 3), "");
    buffer.is_original.drain(1..3);
    buffer.check("up to the end of another line");
    buffer.edit((0, 0), (0, 0), "a\nb\nc\n");
    buffer.is_original.splice(0..0, [false; 3]);
    buffer.check("three lines at the beginning");
}

#[test]
fn an_edited_line_has_no_hint_at_once() {
    for (name, from, to, text) in [
        ("inserted", (1, 1), (1, 1), "x"),
        ("appended", (1, 3), (1, 3), "x"),
        ("prepended", (1, 0), (1, 0), "x"),
        ("deleted", (1, 0), (1, 1), ""),
        ("replaced", (1, 0), (1, 3), "owt"),
    ] {
        let mut buffer = Buffer::open("one\ntwo\nthree\n", Encoding::Utf16);
        buffer.edit(from, to, text);
        buffer.is_original[1] = false;
        buffer.check(name);
    }
}

#[test]
fn a_line_cut_in_two_or_joined_is_no_longer_the_profiled_one() {
    let mut buffer = Buffer::open("one\ntwo\nthree\nfour\n", Encoding::Utf16);
    buffer.edit((1, 1), (1, 1), "\n");
    buffer.is_original[1] = false;
    buffer.is_original.insert(2, false);
    buffer.check("cut");
    buffer.edit((3, 5), (4, 0), "");
    buffer.is_original[3] = false;
    buffer.is_original.remove(4);
    buffer.check("joined");
}

/// rome/tools#4094
#[test]
fn changes_of_one_message_apply_one_after_the_other() {
    // As a tool sends it that takes both ends of a comment away.
    let mut buffer = Buffer::open("a /* b\nc */ d\ne\n", Encoding::Utf16);
    let changes = [
        buffer.document.edit((0, 2), (0, 5), ""),
        buffer.document.edit((1, 2), (1, 5), ""),
        buffer.document.edit((2, 0), (2, 0), "new\n"),
        buffer.document.edit((2, 3), (2, 3), " line"),
    ];
    buffer.client.change(&buffer.document, &changes);
    assert_eq!(buffer.document.text, "a b\nc d\nnew line\ne\n");
    buffer.is_original = vec![false, false, false, true, false];
    buffer.check("all four");
    // And on each other's result: the second range is not in the old text at all.
    let changes = [buffer.document.edit((0, 0), (0, 0), "1\n2\n3\n"), buffer.document.edit((5, 0), (6, 0), "")];
    buffer.client.change(&buffer.document, &changes);
    buffer.is_original = vec![false, false, false, false, false, true, false];
    buffer.check("on each other's result");
}

#[test]
fn ranges_beyond_lines_and_text_are_clamped() {
    let mut buffer = Buffer::open("one\ntwo\nthree", Encoding::Utf16);
    buffer.edit((0, 1), (0, 999), "X");
    buffer.is_original[0] = false;
    buffer.check("beyond the line");
    buffer.edit((2, 2), (999, 999), "Y");
    buffer.is_original[2] = false;
    buffer.check("beyond the text");
    buffer.edit((777, 7), (888, 8), "\nend");
    buffer.is_original.push(false);
    buffer.check("wholly beyond the text");
    buffer.edit((u32::MAX, u32::MAX), (u32::MAX, u32::MAX), "!");
    buffer.check("as far as numbers go");
}

#[test]
fn a_new_text_as_a_whole_keeps_the_lines_that_did_not_change() {
    let mut buffer = Buffer::open("one\ntwo\nthree\nfour\n", Encoding::Utf16);
    let change = buffer.document.replace("one\ntwo\nnew\nthree!\nfour\n");
    buffer.client.change(&buffer.document, &[change]);
    buffer.is_original = vec![true, true, false, false, true, false];
    buffer.check("some of them differ");
    let change = buffer.document.replace("");
    buffer.client.change(&buffer.document, &[change]);
    assert_eq!(buffer.seen().iter().filter(|(line, column)| (*line, *column) != (0, 0)).count(), 0);
}

#[test]
fn characters_of_all_widths_can_be_edited_in_every_encoding() {
    for encoding in Encoding::ALL {
        let text = "é🔥é!\nplain\n// héllo 🔥 𝄞\nlast\n";
        let mut buffer = Buffer::open(text, encoding);
        let (before, after) = (encoding.columns("é"), encoding.columns("é🔥"));
        buffer.edit((0, before), (0, after), "🔥\né");
        buffer.is_original[0] = false;
        buffer.is_original.insert(1, false);
        buffer.check("the middle of a line");
        let end = buffer.document.end_of_line(3);
        buffer.edit((3, end), (3, end), "\n🔥");
        buffer.is_original.insert(4, false);
        buffer.check("behind the last character");
    }
}

#[test]
fn carriage_returns_may_meet_line_feeds() {
    let mut buffer = Buffer::open("a\nb\nc\n", Encoding::Utf16);
    // `b\r` + `\n`: one line end, not two.
    buffer.edit((1, 1), (1, 1), "\r");
    let seen = buffer.seen();
    assert_eq!(lines(&buffer.document.text).len(), 4);
    assert!(seen.contains(&(0, 1)) && seen.contains(&(2, 1)), "{seen:?}");
    assert_eq!(buffer.seen().iter().filter(|(line, _)| *line > 2).count(), 0);
    // And part again.
    let mut buffer = Buffer::open("a\r\nb\r\nc\r\n", Encoding::Utf16);
    buffer.edit((0, 1), (0, 1), "\n");
    let seen = buffer.seen();
    assert_eq!(lines(&buffer.document.text).len(), 5);
    assert!(seen.contains(&(2, 1)) && seen.contains(&(3, 1)), "{seen:?}");
}

/// Numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).expect("64 bit") % sides.max(1)
    }
}

/// ebkalderon/tower-lsp#284
#[test]
fn a_thousand_fast_edits_leave_the_same_text_on_both_sides() {
    for (encoding, seed) in Encoding::ALL.into_iter().zip([11, 22, 33]) {
        a_thousand_edits(encoding, seed);
    }
}

fn a_thousand_edits(encoding: Encoding, seed: u64) {
    let text =
        (0..120).map(|line| format!("line {line} // {}\n", &"é🔥x𝄞".repeat(1 + line % 4))).collect::<Vec<_>>().concat();
    let mut buffer = Buffer::open(&text, encoding);
    let mut dice = Dice(seed);
    let mut messages = Vec::new();
    let mut asked = Vec::new();
    for _ in 0..1000 {
        let count = buffer.is_original.len();
        let line = dice.roll(count - 1);
        let at = u32::try_from(line).expect("a line");
        let change = match dice.roll(4) {
            0 => {
                buffer.is_original.insert(line, false);
                buffer.document.edit((at, 0), (at, 0), ["new 🔥\n", "\n", "é\n"][dice.roll(3)])
            }
            1 if count > 40 => {
                buffer.is_original.remove(line);
                buffer.document.edit((at, 0), (at + 1, 0), "")
            }
            2 => {
                buffer.is_original[line] = false;
                let first = lines(&buffer.document.text)[line].chars().next().map(String::from).unwrap_or_default();
                let text = ["é", "🔥", "ab", "\u{301}"][dice.roll(4)];
                buffer.document.edit((at, 0), (at, encoding.columns(&first)), text)
            }
            _ => {
                buffer.is_original[line] = false;
                let end = buffer.document.end_of_line(at);
                buffer.document.edit((at, end), (at, end), [";", "𝄞", " // é"][dice.roll(3)])
            }
        };
        messages.push(notification(
            "textDocument/didChange",
            json!({
                "textDocument": { "uri": buffer.document.uri, "version": buffer.document.version },
                "contentChanges": [change],
            }),
        ));
        if dice.roll(3) == 0 {
            let (id, request) = buffer
                .client
                .new_request("textDocument/inlayHint", hint_params(&buffer.document.uri, (0, 0), (9999, 0)));
            messages.push(request);
            asked.push((id, buffer.expected()));
        }
        if dice.roll(10) == 0 {
            let method = ["textDocument/codeLens", "textDocument/hover", "perflens/status"][dice.roll(3)];
            let (id, request) = buffer.client.new_request(method, position_params(&buffer.document.uri, at, 0));
            messages.push(request);
            if dice.roll(2) == 0 {
                messages.push(notification("$/cancelRequest", json!({ "id": id })));
            }
        }
        if dice.roll(20) == 0 {
            buffer.client.messages(&std::mem::take(&mut messages));
        }
    }
    buffer.client.messages(&messages);
    for (id, expected) in asked {
        match buffer.client.response(id) {
            Ok(hints) => assert_eq!(positions(hints.as_array().expect("hints")), expected),
            // A result that is out of date by now may be withheld.
            Err(error) => assert_eq!(error["code"], -32801, "{error}"),
        }
    }
    buffer.check("in the end");
    // Every request was answered, which the client checks when it goes.
}

// Lenses, hovers and actions follow as well.

#[test]
fn everything_else_moves_with_the_lines_too() {
    let scene = Scene::demo();
    let mut client = scene.editor(editor("vscode")).start();
    let mut document = client.open_document(&scene.path("src/main.rs"));
    let uri = document.uri.clone();
    client.hints_soon(&uri);
    let (lenses, hover) = (client.lenses(&uri), client.hover(&uri, 7, 4));
    client.edit(&mut document, (4, 0), (4, 0), "// new\n\n");
    assert!(lenses[1].starts_with("5 ") && client.lenses(&uri)[1].starts_with("7 "), "{lenses:?}");
    assert_eq!(client.lenses(&uri)[0], lenses[0]);
    let moved = client.hover(&uri, 9, 4);
    assert!(moved.contains("34.1%") && hover.contains("34.1%"), "{moved}");
    assert_eq!(client.hover(&uri, 5, 0), "", "a new line");
    // The line itself is another one now: what was measured is said to be from before.
    client.edit(&mut document, (9, 4), (9, 4), "x");
    let edited = client.hover(&uri, 9, 4);
    assert!(edited.is_empty() || edited.contains("edit"), "{edited}");
}

// Documents that differ from what was profiled.

#[test]
fn a_document_that_differs_from_the_profiled_file_is_said_to_differ() {
    let scene = Scene::demo();
    let text = std::fs::read_to_string(scene.path("src/main.rs")).unwrap();
    let mut client = scene.editor(editor("vscode")).start();
    let same = client.open(&scene.path("src/main.rs"));
    client.hints_soon(&same);
    assert!(!mentions_difference(&client.hover(&same, 7, 4)), "{}", client.hover(&same, 7, 4));
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": same } }));
    // Opened with changes that were never saved, as editors restore them.
    client.open_text(&same, &text.replace("println!", "// new\n    println!"));
    let hints = client.hints(&same);
    assert!(hints.iter().any(|hint| hint.starts_with("1:44 ")), "lines above are the same: {hints:?}");
    assert!(
        hints.iter().any(|hint| hint.starts_with("8:") && hint.contains("34.1%")),
        "lines below have moved: {hints:?}"
    );
    assert!(!hints.iter().any(|hint| hint.starts_with("2:")), "the new line has none: {hints:?}");
    assert!(mentions_difference(&client.hover(&same, 8, 4)), "{}", client.hover(&same, 8, 4));
}

fn mentions_difference(hover: &str) -> bool {
    ["differs", "changed", "edited", "your edit", "moved"].iter().any(|word| hover.contains(word))
}

#[test]
fn a_file_that_was_only_touched_does_not_differ() {
    let scene = Scene::demo();
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    let hover = client.hover(&uri, 7, 4);
    let text = std::fs::read(scene.path("src/main.rs")).unwrap();
    scene.write("src/main.rs", text);
    client.notify("textDocument/didSave", json!({ "textDocument": { "uri": uri } }));
    std::thread::sleep(std::time::Duration::from_millis(400));
    assert_eq!(client.hover(&uri, 7, 4), hover);
    assert_eq!(client.hints(&uri).len(), DEMO_HINTS.len());
}

// Addresses.

/// oxalica/nil#58
#[test]
fn documents_that_are_no_files_have_no_costs() {
    let scene = Scene::demo();
    let (mut client, _) = scene.open(editor("vscode"), "src/main.rs");
    let text = std::fs::read_to_string(scene.path("src/main.rs")).unwrap();
    let path = scene.path("src/main.rs").to_str().unwrap().to_owned();
    for uri in [
        "untitled:Untitled-1".to_owned(),
        "untitled:main.rs".to_owned(),
        format!("git:{path}?%7B%22ref%22%3A%22HEAD%22%7D"),
        format!("vscode-notebook-cell:{path}#W0"),
        "vscode-vfs://github/owner/repo/src/main.rs".to_owned(),
        "output:extension-output-1".to_owned(),
        "file://".to_owned(),
        "file:///".to_owned(),
        "file://otherhost/src/main.rs".to_owned(),
        "zipfile:///a.zip::src/main.rs".to_owned(),
        "data:text/plain,x".to_owned(),
    ] {
        client.open_text(&uri, &text);
        assert_eq!(client.hints(&uri), [""; 0], "{uri}");
        assert_eq!(client.lenses(&uri), [""; 0], "{uri}");
        assert_eq!(client.hover(&uri, 7, 4), "", "{uri}");
        client.notify(
            "textDocument/didChange",
            json!({ "textDocument": { "uri": uri, "version": 2 }, "contentChanges": [{ "text": "" }] }),
        );
        client.notify("textDocument/didSave", json!({ "textDocument": { "uri": uri } }));
        client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    }
}

#[test]
fn documents_that_were_never_opened_get_an_answer() {
    let scene = Scene::demo();
    let (mut client, _) = scene.open(editor("vscode"), "src/main.rs");
    for name in ["src/lib.rs", "src/none.rs", "../outside.rs"] {
        let uri = scene.uri(name);
        let context = json!({ "diagnostics": [] });
        for method in [
            "textDocument/inlayHint",
            "textDocument/codeLens",
            "textDocument/hover",
            "textDocument/codeAction",
            "textDocument/prepareCallHierarchy",
        ] {
            let mut params = hint_params(&uri, (0, 0), (99, 0));
            params["position"] = json!({ "line": 0, "character": 0 });
            params["context"] = context.clone();
            let result = client.request(method, params);
            assert!(result.is_null() || result == json!([]), "{method} {name}: {result}");
        }
    }
}

/// microsoft/vscode-languageserver-node#1105
#[test]
fn a_change_before_opening_is_ignored() {
    let scene = Scene::demo();
    let (mut client, _) = scene.open(editor("vscode"), "src/main.rs");
    let library = scene.uri("src/lib.rs");
    client.notify(
        "textDocument/didChange",
        json!({ "textDocument": { "uri": library, "version": 2 }, "contentChanges": [{ "text": "nonsense" }] }),
    );
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": library } }));
    client.open(&scene.path("src/lib.rs"));
    assert_eq!(client.hints(&library).len(), 3);
}

/// microsoft/vscode-languageserver-node#1280
#[test]
fn one_file_is_one_document_however_its_address_is_written() {
    let scene = Scene::new(
        "
        cpu/nanoseconds
        src/a:b.rs:1 a = 30_000_000
        ",
    );
    scene.write("src/a:b.rs", "fn a() {}\n");
    let mut client = scene.editor(editor("vscode")).start();
    let plain = format!("file://{}", scene.path("src/a:b.rs").display());
    let escaped = plain.replace("a:b", "a%3Ab");
    let lower = plain.replace("a:b", "a%3ab");
    let more = plain.replace("src", "%73rc");
    client.open_text(&escaped, "fn a() {}\n");
    let hints = client.hints_soon(&escaped);
    assert_eq!(hints, ["0:9 █ 100% 30.0ms here"]);
    for uri in [&plain, &lower, &more] {
        assert_eq!(client.hints(uri), hints, "{uri}");
    }
    client.notify(
        "textDocument/didChange",
        json!({ "textDocument": { "uri": lower, "version": 2 }, "contentChanges": [{ "text": "\nfn a() {}\n" }] }),
    );
    assert_eq!(client.hints(&plain), ["1:9 █ 100% 30.0ms here"]);
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": more } }));
    assert_eq!(client.hints(&escaped), [""; 0]);
}

#[test]
fn spaces_and_letters_of_all_scripts_in_paths() {
    let scene = Scene::new(
        "
        cpu/nanoseconds
        \"a b/héllo 🔥.rs\":1 a = 30_000_000
        ",
    );
    scene.write("a b/héllo 🔥.rs", "fn a() {}\n");
    let (mut client, uri) = scene.open(editor("vscode"), "a b/héllo 🔥.rs");
    assert!(uri.contains("%20") && uri.contains("%F0%9F%94%A5"), "{uri}");
    assert_eq!(client.hints(&uri), ["0:9 █ 100% 30.0ms here"]);
}

// Sizes.

#[test]
fn a_hundred_thousand_lines_are_no_matter() {
    let count = 100_000;
    let text = (1..=count).map(|line| format!("let x{line} = {line};\n")).collect::<Vec<_>>().concat();
    let scene = Scene::new(&format!(
        "
        cpu/nanoseconds
        src/big.rs:1 ? = 10_000_000
        src/big.rs:50000 ? = 10_000_000
        src/big.rs:{count} ? = 10_000_000
        "
    ));
    scene.write("src/big.rs", &text);
    let mut client = scene.editor(editor("vscode")).start();
    let mut document = client.open_document(&scene.path("src/big.rs"));
    let uri = document.uri.clone();
    assert_eq!(client.hints_soon(&uri).len(), 3);
    for step in 0..200 {
        client.edit(&mut document, (10, 0), (10, 0), "// new\n");
        let middle = 49_999 + step + 1;
        assert_eq!(positions(&client.raw_hints_in(&uri, (middle - 20, 0), (middle + 20, 0))), [(middle, 19)]);
    }
    client.edit(&mut document, (0, 0), (99_000, 0), "");
    assert_eq!(positions(&client.raw_hints(&uri)), [(1199, document.end_of_line(1199))]);
}

#[test]
fn a_line_of_a_million_characters_is_no_matter() {
    let scene = Scene::new("cpu/nanoseconds\nsrc/long.rs:1 ? = 10_000_000");
    let text = "é🔥".repeat(500_000);
    scene.write("src/long.rs", &text);
    let (mut client, uri) = scene.open(editor("vscode"), "src/long.rs");
    assert_eq!(positions(&client.raw_hints(&uri)), [(0, 1_500_000)]);
}

#[test]
fn many_open_documents_are_no_matter() {
    let scene = Scene::demo();
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    for n in 0..2000 {
        client.open_text(&scene.uri(&format!("src/file{n}.rs")), "fn f() {}\n");
    }
    assert_eq!(client.hints(&uri).len(), DEMO_HINTS.len());
    assert_eq!(client.hints(&scene.uri("src/file7.rs")), [""; 0]);
}

#[test]
fn without_a_workspace_a_file_with_the_profiles_own_path_has_costs() {
    let scene = Scene::new("cpu/nanoseconds\nx.rs:1 f = 1");
    let file = scene.path("alone.rs");
    scene.write("alone.rs", "fn a() {}\n");
    let profile = Mini::parse(&format!("cpu/nanoseconds\n{}:1 a = 30_000_000", file.display()));
    profile.write_to(&scene.path("alone.pb.gz"));
    let mut client = Start::new(editor("helix 25.07")).param("rootUri", Value::Null).start();
    let uri = client.open(&file);
    client.command("perflens.openProfile", json!([scene.path("alone.pb.gz")]));
    let hints = client.hints_soon(&uri);
    assert_eq!(hints.len(), 1, "{hints:?}");
}

/// Versions are the client's; nothing is promised about their order, and some send none.
#[test]
fn odd_versions_lose_no_edit() {
    let scene = evenly_hot("a();\nb();\n");
    let (mut client, uri) = scene.open(editor("vscode"), "src/main.rs");
    let insert = |line: u32| json!({ "range": perflens_tests::lsp::range((line, 0), (line, 0)), "text": "new();\n" });
    let versions = [
        json!(7),
        json!(7),
        json!(3),
        json!(-1),
        json!(i32::MAX),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(2.0),
        json!("9"),
        json!("x"),
        json!([]),
        Value::Null,
    ];
    let lines = |client: &mut Client| -> Vec<u64> {
        client.raw_hints(&uri).iter().filter_map(|hint| hint["position"]["line"].as_u64()).collect()
    };
    for (round, version) in (1..).zip(versions) {
        let document = json!({ "uri": uri, "version": version });
        client.notify("textDocument/didChange", json!({ "textDocument": document, "contentChanges": [insert(0)] }));
        assert_eq!(lines(&mut client), [round, round + 1], "{version}");
    }
    let round = 13;
    client.notify("textDocument/didChange", json!({ "textDocument": { "uri": uri }, "contentChanges": [insert(0)] }));
    assert_eq!(lines(&mut client), [round, round + 1], "without a version");
    let hint = client.raw_hints(&uri)[0].clone();
    assert!(client.request("inlayHint/resolve", hint)["tooltip"].is_object(), "it is of this text");
    // Opened again without a version.
    let text = std::fs::read_to_string(scene.path("src/main.rs")).unwrap();
    client
        .notify("textDocument/didOpen", json!({ "textDocument": { "uri": uri, "languageId": "rust", "text": text } }));
    assert_eq!(lines(&mut client), [0, 1]);
}

/// The folder, a file in it, and a folder in it may each be reached by a link.
#[test]
#[cfg(unix)]
fn links_lead_to_one_file_each_under_its_own_address() {
    use std::os::unix::fs::symlink;
    let scene = Scene::new(
        "
        cpu/nanoseconds
        real/src/main.rs:1 main = 30_000_000
        //- /real/src/main.rs\nfn main() {}\n",
    );
    symlink(scene.path("real"), scene.path("link")).unwrap();
    symlink(scene.path("real/src"), scene.path("real/linked")).unwrap();
    symlink(scene.path("real/src/main.rs"), scene.path("real/alias.rs")).unwrap();
    let profile = json!({ "source": { "file": "../p.pb.gz" }, "workspaceTrusted": true });
    for root in ["real", "link"] {
        let mut client = Start::new(editor("vscode")).folder(&scene.path(root)).options(profile.clone()).start();
        for path in [
            "real/src/main.rs",
            "link/src/main.rs",
            "real/linked/main.rs",
            "link/linked/main.rs",
            "real/alias.rs",
            "link/alias.rs",
        ] {
            let uri = client.open(&scene.path(path));
            assert_eq!(client.hints_soon(&uri), ["0:12 █ 100% 30.0ms here"], "{path} below {root}");
            assert!(client.hover(&uri, 0, 4).contains("100%"), "{path} below {root}");
        }
        // Each is a document of its own: an edit of one moves nothing in the others.
        let edited = scene.uri("link/src/main.rs");
        client.notify(
            "textDocument/didChange",
            json!({ "textDocument": { "uri": edited, "version": 2 }, "contentChanges": [{ "text": "\nfn main() {}\n" }] }),
        );
        assert_eq!(client.hints(&edited), ["1:12 █ 100% 30.0ms here"]);
        assert_eq!(client.hints(&scene.uri("real/src/main.rs")), ["0:12 █ 100% 30.0ms here"]);
    }
}
