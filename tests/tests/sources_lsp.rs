//! Profiling servers in an editor: what can be asked is offered, what is asked is shown on the
//! lines, and a workspace that is not trusted causes no request.

use std::fmt::Write as _;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use expect_test::expect;
use perflens_tests::cli::{commands_of, run_line};
use perflens_tests::lsp::{Answer, Client, DEMO, DEMO_HINTS, Scene, Start, editor};
use perflens_tests::parca::FakeParca;
use serde_json::{Value, json};

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta";

fn parca() -> FakeParca {
    let parca = FakeParca::start();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    let now = i64::try_from(since.as_nanos()).expect("it is before 2262");
    let profile = DEMO.replace("!default cpu", "!duration 10_000_000_000");
    parca.parca().store("process_cpu", &[("job", "a")], now - 60_000_000_000, &profile);
    parca
}

fn options(parca: &FakeParca, more: &Value) -> Value {
    let mut options = json!({
        "workspaceTrusted": true,
        "source": { "address": parca.http.url("") },
    });
    if let (Some(options), Some(more)) = (options.as_object_mut(), more.as_object()) {
        options.extend(more.clone());
    }
    options
}

fn start(scene: &Scene, parca: &FakeParca, more: &Value) -> Start {
    scene.without_profile(editor("neovim 0.11")).options(options(parca, more))
}

fn shows_the_demo(client: &mut Client, uri: &str) {
    assert_eq!(client.hints_soon(uri).len(), DEMO_HINTS.len());
}

#[test]
fn what_the_server_has_is_offered_and_shown() {
    let (scene, parca) = (Scene::demo(), parca());
    let dialogs = |method: &str, params: &Value| {
        let is_question = method == "window/showMessageRequest" && params["message"].as_str()?.contains("for what?");
        is_question.then(|| Answer::Result(json!({ "title": "on-CPU 1h" })))
    };
    let mut client = start(&scene, &parca, &json!({})).answers(dialogs).start();
    let uri = client.open(&scene.path("src/main.rs"));
    let offered = client.command("perflens.query", json!([]));
    assert_eq!(offered["choices"][0], "on-CPU 15m");
    shows_the_demo(&mut client, &uri);
    assert_eq!(parca.calls(), ["ProfileTypes", "Query"]);
    // Other files and filters are no new query; another time is.
    let lib = client.open(&scene.path("src/lib.rs"));
    assert!(!client.hints(&lib).is_empty());
    client.command("perflens.setTimeRange", json!(["24h"]));
    client.until("it is asked again", |_| (parca.calls().len() == 3).then_some(()));
    let link = client.command("perflens.copyLink", json!([uri, 8]));
    let link = link.as_str().expect("it is an address");
    assert!(link.contains("time_selection_a=absolute") && link.contains("source_filename=src%2Fmain.rs"), "{link}");
    // The page of it shows the same.
    client.command("perflens.importUrl", json!([link]));
    client.until("it is asked for these times", |_| (parca.calls().len() == 4).then_some(()));
    shows_the_demo(&mut client, &uri);
}

#[test]
fn a_query_with_labels_is_asked_as_it_is_written() {
    let (scene, parca) = (Scene::demo(), parca());
    let mut client = start(&scene, &parca, &json!({})).start();
    let uri = client.open(&scene.path("src/main.rs"));
    client.command("perflens.query", json!([format!("{CPU}{{job=~\"a|b\"}}"), "1h"]));
    shows_the_demo(&mut client, &uri);
    client.command("perflens.query", json!([format!("{CPU}{{job=\"nobody\"}}")]));
    let told = client.until("the failure is told", |client| {
        let told = client.received("window/showMessage");
        told.into_iter().map(|it| it["message"].to_string()).find(|text| text.contains("has no data for this"))
    });
    assert!(told.contains("nobody"), "{told}");
    shows_the_demo(&mut client, &uri);
    let refused =
        client.refused("workspace/executeCommand", json!({ "command": "perflens.query", "arguments": ["nonsense"] }));
    assert!(refused["message"].to_string().contains("is no profile type"), "{refused}");
}

/// What an assistant is told to run: with the same server in the user's settings it has the same sum.
#[test]
fn the_command_that_measures_again_does() {
    let (scene, parca) = (Scene::demo(), parca());
    let mut client = start(&scene, &parca, &json!({})).start();
    let uri = client.open(&scene.path("src/main.rs"));
    client.command("perflens.query", json!([format!("{CPU}{{job=\"a\"}}"), "1h"]));
    shows_the_demo(&mut client, &uri);
    client.command("perflens.setFilter", json!([["fn!~check"]]));
    let text = client.until("a copy", |client| {
        let text = client.command("perflens.copyForAI", json!([{ "scope": "workspace" }])).as_str()?.to_owned();
        text.contains("**2.07s**").then_some(text)
    });
    assert!(!text.contains("127.0.0.1"), "{text}");
    let home = tempfile::tempdir().expect("a folder");
    let config = home.path().join("config/perflens");
    fs::create_dir_all(&config).expect("a folder");
    fs::write(config.join("config.toml"), format!("[source]\naddress = \"{}\"\n", parca.http.url(""))).expect("a file");
    let commands = commands_of(&text);
    assert_eq!(commands.len(), 2, "{text}");
    let outputs = commands.iter().map(|command| run_line(command, &scene.path(""), home.path()));
    let printed: Vec<String> = outputs
        .inspect(|output| assert_eq!(output.code, Some(0), "{text}: {}", output.stderr))
        .map(|output| output.stdout)
        .collect();
    assert!(printed[1].contains("2.07s"), "{}", printed[1]);
}

#[test]
fn the_settings_query_is_fetched_at_start_only_when_that_is_asked_for() {
    let (scene, parca) = (Scene::demo(), parca());
    let query = json!({ "query": { "selector": CPU } });
    let mut client = start(&scene, &parca, &query).start();
    let uri = client.open(&scene.path("src/main.rs"));
    assert_eq!((client.hints(&uri).len(), parca.calls().len()), (0, 0));
    client.command("perflens.refresh", json!([]));
    shows_the_demo(&mut client, &uri);
    drop(client);
    let asks = json!({ "query": { "selector": CPU }, "source": { "address": parca.http.url(""), "atStart": true } });
    let mut client = start(&scene, &parca, &asks).start();
    let uri = client.open(&scene.path("src/main.rs"));
    shows_the_demo(&mut client, &uri);
}

#[test]
fn a_workspace_that_is_not_trusted_causes_no_request() {
    let (scene, parca) = (Scene::demo(), parca());
    let text = format!(
        "[source]\naddress = \"{}\"\natStart = true\nverifyTls = false\n[query]\nselector = \"{CPU}\"\n",
        parca.http.url("")
    );
    scene.write("perflens.toml", text);
    let mut client = scene.without_profile(editor("neovim 0.11")).options(json!({})).start();
    let uri = client.open(&scene.path("src/main.rs"));
    assert_eq!(client.hints(&uri).len(), 0);
    client.command("perflens.refresh", json!([]));
    let refused =
        client.refused("workspace/executeCommand", json!({ "command": "perflens.query", "arguments": [CPU] }));
    assert!(refused["message"].to_string().contains("no profiling server is set"), "{refused}");
    assert_eq!(parca.http.asked().len(), 0);
}

#[test]
fn another_time_and_the_version_before_are_bases() {
    const MINUTE: i64 = 60_000_000_000;
    let (scene, parca) = (Scene::demo(), FakeParca::start());
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    let now = i64::try_from(since.as_nanos()).expect("it is before 2262");
    let profile = DEMO.replace("!default cpu", "!duration 10_000_000_000");
    for (version, minutes) in [("1.10.0", 1), ("1.9.0", 2), ("1.8.0", 24 * 60 + 3)] {
        let labels = [("job", "a"), ("service_version", version)];
        parca.parca().store("process_cpu", &labels, now - minutes * MINUTE, &profile);
    }
    let dialogs = |method: &str, params: &Value| {
        let is_question = method == "window/showMessageRequest" && params["message"].as_str()?.contains("with what?");
        is_question.then(|| Answer::Result(json!({ "title": "same hour yesterday" })))
    };
    let mut client = start(&scene, &parca, &json!({})).answers(dialogs).start();
    let uri = client.open(&scene.path("src/main.rs"));
    client.command("perflens.query", json!([CPU, "15m"]));
    shows_the_demo(&mut client, &uri);
    let compared = |client: &mut Client, title: &str| {
        client.until("the comparison", |client| {
            let status = client.command("perflens.showStatus", json!([]));
            status[0]["text"].as_str().is_some_and(|text| text.ends_with(&format!(" vs {title}"))).then_some(())
        });
    };
    // Asked for without words, it is one of the choices.
    let offered = client.command("perflens.compareWith", json!([]));
    let bases: Vec<&Value> = offered["choices"].as_array().expect("a list").iter().map(|it| &it["base"]).collect();
    assert_eq!(bases, ["yesterday:", "version:"], "{offered:#}");
    compared(&mut client, "same hour yesterday");
    // How to have the same numbers: the new side alone would be others.
    let copied = client.command("perflens.copyForAI", json!([{ "scope": "comparison" }]));
    let copied = copied.as_str().expect("a text");
    let again = "`perflens report profile.pb.gz --workspace . --base base.pb.gz`, its base by `perflens fetch \
                 'process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{}' --range 15m@1d -o base.pb.gz`";
    assert!(copied.contains(again), "{copied}");
    client.command("perflens.compareWith", json!(["version:"]));
    compared(&mut client, "service_version 1.9.0");
    client.command("perflens.compareWith", json!(["version:1.8.0"]));
    compared(&mut client, "service_version 1.8.0");
    for (base, why) in
        [("version:0.1", "service_version is never 0.1"), ("edit:", "what is shown is no recording of this machine")]
    {
        let call = json!({ "command": "perflens.compareWith", "arguments": [base] });
        let refused = client.refused("workspace/executeCommand", call);
        assert!(refused["message"].to_string().contains(why), "{refused}");
    }
}

#[test]
fn two_hundred_opened_files_are_one_request() {
    const FILES: usize = 200;
    let mut profile = "cpu/nanoseconds\n!period cpu/nanoseconds 10_000_000\n!duration 10_000_000_000\n".to_owned();
    let mut sources = String::new();
    for file in 0..FILES {
        let _ = writeln!(profile, "src/f{file}.rs:2 f{file} #1 = 10_000_000");
        let _ = writeln!(sources, "//- /src/f{file}.rs\nfn f{file}() {{\n    work();\n}}");
    }
    let (scene, parca) = (Scene::new(&(profile.clone() + &sources)), FakeParca::start());
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    let now = i64::try_from(since.as_nanos()).expect("it is before 2262");
    parca.parca().store("process_cpu", &[], now - 60_000_000_000, &profile);
    let mut client = start(&scene, &parca, &json!({})).start();
    client.command("perflens.query", json!([CPU, "15m"]));
    let first = client.open(&scene.path("src/f0.rs"));
    assert_eq!(client.hints_soon(&first).len(), 1);
    for file in 1..FILES {
        let uri = client.open(&scene.path(&format!("src/f{file}.rs")));
        assert_eq!(client.hints(&uri).len(), 1, "{file}");
        assert_eq!(client.lenses(&uri).len(), 1, "{file}");
        assert!(client.hover(&uri, 1, 4).contains("10.0ms"), "{file}");
    }
    // Whole, filtered and of another value type, it is the same answer.
    client.command("perflens.setFilter", json!(["fn=f7"]));
    client.until("only what is left is shown", |client| client.hints(&first).is_empty().then_some(()));
    assert_eq!(parca.calls(), ["Query"]);
    // Asked for anew, it is one more.
    client.command("perflens.refresh", json!([]));
    client.until("it is asked again", |_| (parca.calls().len() > 1).then_some(()));
    assert_eq!(parca.calls(), ["Query", "Query"]);
}

/// A scene with a profile open, in an editor that answers the question about sending it.
fn pushing(parca: &FakeParca, answer: &'static str) -> (Scene, Client) {
    let scene = Scene::demo();
    let dialogs = move |method: &str, params: &Value| {
        let is_question =
            method == "window/showMessageRequest" && params["message"].as_str()?.contains("perflens: send");
        is_question.then(|| {
            if answer.is_empty() { Answer::Result(Value::Null) } else { Answer::Result(json!({ "title": answer })) }
        })
    };
    let options = options(parca, &json!({ "source": { "address": parca.http.url(""), "file": "p.pb.gz" } }));
    let mut client = scene.without_profile(editor("neovim 0.11")).options(options).answers(dialogs).start();
    let uri = client.open(&scene.path("src/main.rs"));
    shows_the_demo(&mut client, &uri);
    (scene, client)
}

fn told(client: &mut Client, part: &str) -> String {
    client.until("it is told", |client| {
        let told = client.received("window/showMessage");
        told.into_iter().filter_map(|it| it["message"].as_str().map(str::to_owned)).find(|text| text.contains(part))
    })
}

#[test]
fn what_is_open_is_pushed_once_somebody_has_agreed() {
    let parca = FakeParca::start();
    for (answer, stored) in [("Keep it here", 0), ("", 0), ("Send it", 1)] {
        let (_scene, mut client) = pushing(&parca, answer);
        let offered = client.command("perflens.pushProfile", json!([]));
        assert_eq!(offered["choices"], json!(["Send it", "Keep it here"]));
        let question =
            client.until("it is asked", |client| client.received("window/showMessageRequest").into_iter().next());
        let question = question["message"].as_str().expect("it is a text").replace(&parca.http.address(), "SERVER");
        expect!["perflens: send p.pb.gz to SERVER, as perflens:samples:count:cpu:nanoseconds, perflens:cpu:nanoseconds:cpu:nanoseconds? Still in it: 6 names of functions; folders src, /rustc/0123; binaries none; labels none. Left out: addresses, comments, labels none."].assert_eq(&question);
        if stored > 0 {
            told(&mut client, "sent to");
        }
        // Whatever it would have sent was sent before this is answered.
        client.command("perflens.showStatus", json!([]));
        assert_eq!(parca.parca().stored().len(), stored, "{answer}");
    }
    let (labels, profile) = parca.parca().stored().pop().expect("it is there");
    assert_eq!(labels["__name__"], "perflens");
    assert_eq!(profile.sample.iter().map(|sample| sample.value[1]).sum::<i64>(), 3_520_000_000);
    // Named, it is not asked.
    let (_scene, mut client) = pushing(&parca, "");
    client.command("perflens.pushProfile", json!(["local"]));
    assert!(told(&mut client, "sent to").contains("local:cpu:nanoseconds"));
    assert_eq!(client.count("window/showMessageRequest"), 0);
    let call = json!({ "command": "perflens.pushProfile", "arguments": ["a-b"] });
    let refused = client.refused("workspace/executeCommand", call);
    assert!(refused["message"].to_string().contains("is no name for a server"), "{refused}");
    client.command("perflens.clear", json!([]));
    client.until("it is closed", |client| {
        let call = json!({ "command": "perflens.pushProfile", "arguments": ["local"] });
        let id = client.send("workspace/executeCommand", call);
        client.response(id).err().filter(|it| it["message"].to_string().contains("no profile is open"))
    });
}

#[test]
fn a_profile_is_pushed_nowhere_that_an_untrusted_workspace_names() {
    let (scene, parca) = (Scene::demo(), FakeParca::start());
    scene.write("perflens.toml", format!("[source]\naddress = \"{}\"\n", parca.http.url("")));
    let mut client = scene.without_profile(editor("neovim 0.11")).options(json!({})).start();
    client.command("perflens.openProfile", json!(["p.pb.gz"]));
    let uri = client.open(&scene.path("src/main.rs"));
    shows_the_demo(&mut client, &uri);
    let call = json!({ "command": "perflens.pushProfile", "arguments": ["local"] });
    let refused = client.refused("workspace/executeCommand", call);
    assert!(refused["message"].to_string().contains("no profiling server is set"), "{refused}");
    assert_eq!(parca.http.asked().len(), 0);
}
