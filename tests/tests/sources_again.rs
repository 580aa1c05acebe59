//! What a server answered, later: fetched again by itself where settings want that and somebody sees it,
//! and kept on disk where settings want that.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use perflens_tests::cli::Run;
use perflens_tests::http::Does;
use perflens_tests::lsp::{Client, DEMO, DEMO_HINTS, Scene, editor};
use perflens_tests::parca::FakeParca;
use serde_json::{Value, json};

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta";

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    i64::try_from(since.as_nanos()).expect("it is before 2262")
}

fn parca() -> FakeParca {
    let parca = FakeParca::start();
    store(&parca);
    parca
}

fn store(parca: &FakeParca) {
    let profile = DEMO.replace("!default cpu", "!duration 10_000_000_000");
    parca.parca().store("process_cpu", &[("job", "a")], now() - 60_000_000_000, &profile);
}

/// An editor with settings of the source.
fn start(scene: &Scene, parca: &FakeParca, state: &Path, source: &Value) -> Client {
    let mut options = json!({
        "workspaceTrusted": true,
        "source": { "address": parca.http.url("") },
        "query": { "selector": CPU },
    });
    for (name, value) in source.as_object().expect("an object") {
        options["source"][name] = value.clone();
    }
    scene.without_profile(editor("neovim 0.11")).options(options).env("XDG_STATE_HOME", state).start()
}

fn queries(parca: &FakeParca) -> usize {
    parca.calls().iter().filter(|call| *call == "Query").count()
}

fn shows_the_demo(client: &mut Client, uri: &str) {
    assert_eq!(client.hints_soon(uri).len(), DEMO_HINTS.len());
}

fn warnings(client: &Client, part: &str) -> usize {
    let told = client.received("window/showMessage");
    told.iter().filter(|it| it["message"].as_str().is_some_and(|text| text.contains(part))).count()
}

/// The least interval, as no test has a clock of its own; all cases wait at the same time.
const INTERVAL: Duration = Duration::from_secs(30);

#[test]
fn what_is_seen_is_fetched_again_by_itself() {
    let cases: [fn(&Scene, &FakeParca, &Path); 5] = [
        an_open_file_has_it_fetched_again,
        nothing_that_shows_it_is_open,
        a_time_that_is_over_has_one_answer,
        nobody_who_types_is_disturbed,
        a_server_that_fails_is_told_once,
    ];
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(move || {
                let state = tempfile::tempdir().expect("a folder");
                case(&Scene::demo(), &parca(), state.path());
            });
        }
    });
}

fn an_open_file_has_it_fetched_again(scene: &Scene, parca: &FakeParca, state: &Path) {
    let mut client = start(scene, parca, state, &json!({ "refreshSeconds": 30 }));
    let uri = client.open(&scene.path("src/main.rs"));
    client.command("perflens.refresh", json!([]));
    shows_the_demo(&mut client, &uri);
    let total = |client: &mut Client| client.command("perflens.showStatus", json!([]))[0]["total"].as_i64();
    let before = total(&mut client).expect("it is open");
    assert_eq!(queries(parca), 1);
    // There is more by then.
    store(parca);
    let shown = Instant::now();
    client.until("it is fetched again", |client| (total(client)? == 2 * before).then_some(()));
    assert!(shown.elapsed() > INTERVAL / 2, "that was by itself, and not at once");
    assert_eq!(queries(parca), 2);
}

fn nothing_that_shows_it_is_open(scene: &Scene, parca: &FakeParca, state: &Path) {
    let mut client = start(scene, parca, state, &json!({ "refreshSeconds": 30, "atStart": true }));
    client.until("it is fetched", |_| (queries(parca) == 1).then_some(()));
    std::thread::sleep(INTERVAL + INTERVAL / 4);
    assert_eq!(queries(parca), 1);
    // Whoever opens a file sees what there is by now.
    let uri = client.open(&scene.path("src/main.rs"));
    client.until("it is fetched again", |_| (queries(parca) == 2).then_some(()));
    shows_the_demo(&mut client, &uri);
}

fn a_time_that_is_over_has_one_answer(scene: &Scene, parca: &FakeParca, state: &Path) {
    let mut client = start(scene, parca, state, &json!({ "refreshSeconds": 30 }));
    let uri = client.open(&scene.path("src/main.rs"));
    client.command("perflens.query", json!([CPU, "2020-01-01T00:00:00Z/2100-01-01T00:00:00Z"]));
    shows_the_demo(&mut client, &uri);
    std::thread::sleep(INTERVAL + INTERVAL / 4);
    assert_eq!(queries(parca), 1);
}

fn nobody_who_types_is_disturbed(scene: &Scene, parca: &FakeParca, state: &Path) {
    let mut client = start(scene, parca, state, &json!({ "refreshSeconds": 30 }));
    let mut document = client.open_document(&scene.path("src/main.rs"));
    client.command("perflens.refresh", json!([]));
    shows_the_demo(&mut client, &document.uri.clone());
    let begun = Instant::now();
    while begun.elapsed() < INTERVAL + INTERVAL / 4 {
        client.edit(&mut document, (0, 0), (0, 0), " ");
        std::thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(queries(parca), 1);
    client.until("it is fetched again", |_| (queries(parca) == 2).then_some(()));
}

fn a_server_that_fails_is_told_once(scene: &Scene, parca: &FakeParca, state: &Path) {
    let mut client = start(scene, parca, state, &json!({ "refreshSeconds": 30 }));
    let uri = client.open(&scene.path("src/main.rs"));
    client.command("perflens.refresh", json!([]));
    shows_the_demo(&mut client, &uri);
    // It does not get better by asking at once.
    parca.parca().faults.extend(std::iter::repeat_n(Does::status(500, "text/plain", "no disk"), 2));
    client.until("it is told", |client| {
        (warnings(client, "what is shown could not be fetched again") == 1).then_some(())
    });
    shows_the_demo(&mut client, &uri);
    let status = client.command("perflens.showStatus", json!([]));
    assert!(status[0]["details"].to_string().contains("what there was before"), "{status:#}");
    // Asked for, it is told as ever; and when it went well, it is forgotten.
    client.command("perflens.refresh", json!([]));
    client.until("it is told", |client| (warnings(client, "no disk") == 2).then_some(()));
    client.command("perflens.refresh", json!([]));
    client.until("it is fetched", |client| {
        let status = client.command("perflens.showStatus", json!([]));
        (queries(parca) == 4 && !status[0]["details"].to_string().contains("before")).then_some(())
    });
    assert_eq!(warnings(&client, "what is shown could not be fetched again"), 1);
}

#[test]
fn an_interval_is_not_too_short() {
    let (scene, parca, state) = (Scene::demo(), parca(), tempfile::tempdir().expect("a folder"));
    let mut client = start(&scene, &parca, state.path(), &json!({ "refreshSeconds": 5 }));
    client.until("it is told", |client| {
        (warnings(client, "takes 0, or a whole number from 30 to 86400, not `5`") == 1).then_some(())
    });
}

fn kept(state: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(state.join("perflens/answers")).into_iter().flatten();
    entries.map(|entry| entry.expect("it can be read").path()).collect()
}

#[test]
fn the_last_answer_is_shown_when_the_user_comes_back() {
    let (scene, parca, state) = (Scene::demo(), parca(), tempfile::tempdir().expect("a folder"));
    let keeps = json!({ "keepAnswer": true });
    let is_kept = |client: &mut Client| client.until("it is kept", |_| (kept(state.path()).len() == 1).then_some(()));
    let mut client = start(&scene, &parca, state.path(), &keeps);
    let uri = client.open(&scene.path("src/main.rs"));
    assert!(client.hints(&uri).is_empty());
    client.command("perflens.query", json!([format!("{CPU}{{job=\"a\"}}"), "1h"]));
    shows_the_demo(&mut client, &uri);
    is_kept(&mut client);
    drop(client);

    // No request, and its age.
    let mut client = start(&scene, &parca, state.path(), &keeps);
    let uri = client.open(&scene.path("src/main.rs"));
    shows_the_demo(&mut client, &uri);
    assert_eq!(queries(&parca), 1);
    let status = client.command("perflens.showStatus", json!([]));
    let details = status[0]["details"].to_string();
    assert!(details.contains("kept on disk since; perflens.refresh asks again"), "{details}");
    assert!(details.contains("Measured "), "{details}");
    // Filters are answered from it as well; asked for anew, it is fetched.
    client.command("perflens.setFilter", json!([["fn=nobody"]]));
    client.until("nothing is left", |client| client.hints(&uri).is_empty().then_some(()));
    assert_eq!(queries(&parca), 1);
    client.command("perflens.refresh", json!([]));
    client.until("it is fetched", |client| {
        let status = client.command("perflens.showStatus", json!([]));
        (!status[0]["details"].to_string().contains("kept on disk")).then_some(())
    });
    assert_eq!(queries(&parca), 2);
    drop(client);

    // Fetched at start, it is shown until the server has answered, which it does not here.
    parca.parca().faults.push_back(Does::Hang);
    let mut client = start(&scene, &parca, state.path(), &json!({ "keepAnswer": true, "atStart": true }));
    let uri = client.open(&scene.path("src/main.rs"));
    shows_the_demo(&mut client, &uri);
    client.until("it is asked", |_| (queries(&parca) == 3).then_some(()));
    shows_the_demo(&mut client, &uri);
    drop(client);

    // Of another server, it is not what is asked for.
    let other = FakeParca::start();
    let mut client = start(&scene, &other, state.path(), &keeps);
    let uri = client.open(&scene.path("src/main.rs"));
    assert!(client.hints(&uri).is_empty());
    assert_eq!(
        (client.command("perflens.showStatus", json!([]))[0]["state"].clone(), queries(&other)),
        (json!("none"), 0)
    );
    drop(client);

    // Nobody wants it any more.
    let mut client = start(&scene, &parca, state.path(), &json!({}));
    client.until("it is removed", |_| kept(state.path()).is_empty().then_some(()));
    assert_eq!(queries(&parca), 3);
}

#[test]
fn an_answer_that_is_damaged_causes_no_request() {
    let (scene, parca, state) = (Scene::demo(), parca(), tempfile::tempdir().expect("a folder"));
    let keeps = json!({ "keepAnswer": true });
    let mut client = start(&scene, &parca, state.path(), &keeps);
    client.command("perflens.refresh", json!([]));
    client.until("it is kept", |_| (kept(state.path()).len() == 1).then_some(()));
    drop(client);
    let path = kept(state.path()).pop().expect("it is there");
    let content = fs::read(&path).expect("it can be read");
    fs::write(&path, &content[..content.len() - 1]).expect("it can be written");
    let mut client = start(&scene, &parca, state.path(), &keeps);
    client.until("it is told", |client| (warnings(client, "perflens.refresh asks the server") == 1).then_some(()));
    assert_eq!(queries(&parca), 1);
}

#[test]
fn nothing_is_kept_unless_that_is_asked_for_nor_after_signing_out() {
    let (scene, parca, state) = (Scene::demo(), parca(), tempfile::tempdir().expect("a folder"));
    let mut client = start(&scene, &parca, state.path(), &json!({}));
    let uri = client.open(&scene.path("src/main.rs"));
    client.command("perflens.refresh", json!([]));
    shows_the_demo(&mut client, &uri);
    client.command("perflens.showStatus", json!([]));
    drop(client);
    assert_eq!(kept(state.path()).len(), 0);
    // A file of a workspace that nobody trusts can't want it.
    scene.write("perflens.toml", "[source]\nkeepAnswer = true\nrefreshSeconds = 30\n");
    let options = json!({ "source": { "address": parca.http.url("") }, "query": { "selector": CPU } });
    let untrusted = scene.without_profile(editor("neovim 0.11")).options(options).env("XDG_STATE_HOME", state.path());
    let mut client = untrusted.start();
    let uri = client.open(&scene.path("src/main.rs"));
    client.command("perflens.refresh", json!([]));
    shows_the_demo(&mut client, &uri);
    let status = client.command("perflens.showStatus", json!([]));
    let ignored = status[0]["ignored"].to_string();
    assert!(ignored.contains("keepAnswer") && ignored.contains("refreshSeconds"), "{ignored}");
    drop(client);
    assert_eq!(kept(state.path()).len(), 0);

    let mut client = start(&scene, &parca, state.path(), &json!({ "keepAnswer": true }));
    client.command("perflens.refresh", json!([]));
    client.until("it is kept", |_| (kept(state.path()).len() == 1).then_some(()));
    drop(client);
    let output = Run::new(["logout", "--server", &parca.http.url("")]).env("XDG_STATE_HOME", state.path()).output();
    assert!(output.stderr.contains("nobody is signed in"), "{}", output.stderr);
    assert_eq!(kept(state.path()).len(), 0);
}
