//! Monorepos whose folders have costs of their own, questions under a name, whose a cost is and
//! how old: what a profile's labels, value types and times become in an editor.

use perflens_tests::lsp::{Answer, Client, Scene, Start, editor, hint_label};
use perflens_tests::mini::Mini;
use serde_json::{Value, json};

/// Two services and a library. Both services name their files alike, as builds do.
const MONOREPO: &str = "
    cpu/nanoseconds alloc_space/bytes
    !default cpu
    src/main.rs:1 main = 40_000_000, 0 {service=cart}
    src/main.rs:2 main; lib/shared.rs:1 shared = 20_000_000, 1048576 {service=cart}
    src/main.rs:1 main = 30_000_000, 0 {service=checkout}
    src/main.rs:2 main; lib/shared.rs:1 shared = 10_000_000, 1048576 {service=checkout}
    //- /services/cart/src/main.rs
    fn main() { a(); }
    fn more() {}
    //- /services/checkout/src/main.rs
    fn main() { b(); }
    fn more() {}
    //- /lib/shared.rs
    fn shared() {}
";

const BY_LABEL: &str = r#"
    [source]
    file = "p.pb.gz"
    [[service]]
    folder = "services/cart"
    matchers = ["service=cart"]
    [[service]]
    name = "till"
    folder = "services/checkout/"
    matchers = ["label.service = checkout"]
"#;

const CART: [&str; 2] = ["█ 66.7% 40.0ms", "█ 33.3% 20.0ms"];
const CHECKOUT: [&str; 2] = ["█ 75.0% 30.0ms", "▆ 25.0% 10.0ms"];

fn trusted(scene: &Scene) -> Start {
    scene.without_profile(editor("vscode"))
}

/// Labels of a document, without what they say of the line itself.
fn labels(client: &mut Client, uri: &str) -> Vec<String> {
    let hints = client.raw_hints(uri);
    hints.iter().map(|hint| hint_label(hint).trim_end_matches(" here").to_owned()).collect()
}

fn await_labels(client: &mut Client, uri: &str, expected: &[&str]) {
    let mut last = Vec::new();
    client.until(&format!("{expected:?} in {uri}"), |client| {
        last = labels(client, uri);
        (last == expected).then_some(())
    });
}

fn statuses(client: &mut Client) -> Vec<Value> {
    client.request("perflens/status", json!({})).as_array().expect("a list").clone()
}

#[test]
fn files_of_a_service_show_its_costs_and_shared_files_the_sum() {
    let scene = Scene::new(MONOREPO);
    scene.write("perflens.toml", BY_LABEL);
    let mut client = trusted(&scene).start();
    let cart = client.open(&scene.path("services/cart/src/main.rs"));
    let checkout = client.open(&scene.path("services/checkout/src/main.rs"));
    let shared = client.open(&scene.path("lib/shared.rs"));
    // One path of the profile is two files; each service means its own.
    await_labels(&mut client, &cart, &CART);
    await_labels(&mut client, &checkout, &CHECKOUT);
    await_labels(&mut client, &shared, &["█ 30.0% 30.0ms"]);
    let hover = client.hover(&shared, 0, 4);
    assert!(hover.contains("By service: cart 20.0%, till 10.0%."), "{hover}");
    assert!(!client.hover(&cart, 0, 4).contains("By service"), "it is all of one");
    let rows: Vec<(Value, Value)> =
        statuses(&mut client).iter().map(|row| (row["service"].clone(), row["total"].clone())).collect();
    let expected =
        [(Value::Null, json!(100_000_000)), (json!("cart"), json!(60_000_000)), (json!("till"), json!(40_000_000))];
    assert_eq!(rows, expected);
}

#[test]
fn commands_are_about_the_service_whose_file_was_opened() {
    let scene = Scene::new(MONOREPO);
    scene.write("perflens.toml", BY_LABEL);
    let mut client = trusted(&scene).start();
    let checkout = client.open(&scene.path("services/checkout/src/main.rs"));
    await_labels(&mut client, &checkout, &CHECKOUT);
    let cart = client.open(&scene.path("services/cart/src/main.rs"));
    await_labels(&mut client, &cart, &CART);
    client.command("perflens.setFilter", json!(["fn=shared"]));
    await_labels(&mut client, &cart, &["█ 100% 20.0ms"]);
    assert_eq!(labels(&mut client, &checkout), CHECKOUT, "each has a view of its own");
    client.command("perflens.clear", json!([]));
    // Without a view of its own, what is around it; there both services' paths are one.
    await_labels(&mut client, &cart, &[]);
    assert_eq!(labels(&mut client, &checkout), CHECKOUT);
}

#[test]
fn services_come_and_go_with_the_settings() {
    let scene = Scene::new(MONOREPO);
    scene.write("perflens.toml", "[source]\nfile = \"p.pb.gz\"\n");
    let mut client = trusted(&scene).start();
    let cart = client.open(&scene.path("services/cart/src/main.rs"));
    let shared = client.open(&scene.path("lib/shared.rs"));
    await_labels(&mut client, &shared, &["█ 30.0% 30.0ms"]);
    assert_eq!(labels(&mut client, &cart), [""; 0], "it could be either service's");
    scene.write("perflens.toml", BY_LABEL);
    await_labels(&mut client, &cart, &CART);
    // What the services took the path for is nothing to go by once there are none.
    scene.write("perflens.toml", "[source]\nfile = \"p.pb.gz\"\n");
    await_labels(&mut client, &cart, &[]);
    assert_eq!(statuses(&mut client).len(), 1);
}

#[test]
fn services_with_profiles_of_their_own_are_added_up() {
    let scene = Scene::new(MONOREPO);
    let profile = |service: &str, nanoseconds: u64| {
        let text = format!(
            "cpu/nanoseconds\nsrc/main.rs:1 main; lib/shared.rs:1 shared = {nanoseconds}\n//- /none\n{service}\n"
        );
        scene.write(&format!("{service}.pb.gz"), Mini::parse(&text).gzip());
    };
    profile("cart", 10_000_000);
    profile("checkout", 20_000_000);
    scene.write(
        "perflens.toml",
        r#"
        service = [
            { folder = "services/cart", profile = "cart.pb.gz" },
            { folder = "./services/../services/checkout", profile = "checkout.pb.gz" },
            { folder = "../outside", profile = "checkout.pb.gz" },
            { folder = ".", profile = "checkout.pb.gz" },
        ]
        "#,
    );
    let mut client = trusted(&scene).start();
    let shared = client.open(&scene.path("lib/shared.rs"));
    await_labels(&mut client, &shared, &["█ 100% 30.0ms"]);
    let hover = client.hover(&shared, 0, 4);
    assert!(hover.contains("By service: checkout 66.7%, cart 33.3%."), "{hover}");
    let cart = client.open(&scene.path("services/cart/src/main.rs"));
    await_labels(&mut client, &cart, &["█ 100% 10.0ms"]);
    // Written again, both the service's view and the sum follow.
    profile("cart", 40_000_000);
    await_labels(&mut client, &cart, &["█ 100% 40.0ms"]);
    await_labels(&mut client, &shared, &["█ 100% 60.0ms"]);
}

#[test]
fn profiles_that_have_nothing_in_common_are_not_added_up() {
    let scene = Scene::new(MONOREPO);
    scene.write("cart.pb.gz", Mini::parse("cpu/nanoseconds\nsrc/main.rs:1 main = 10\n").gzip());
    scene.write("checkout.pb.gz", Mini::parse("space/bytes\nsrc/main.rs:1 main = 10\n").gzip());
    let services = json!([
        { "folder": "services/cart", "profile": "cart.pb.gz" },
        { "folder": "services/checkout", "profile": "checkout.pb.gz" },
    ]);
    let mut client = trusted(&scene).options(json!({ "workspaceTrusted": true, "service": services })).start();
    let told = client.incoming("window/showMessage")["message"].to_string();
    assert!(told.contains("no value type in common"), "{told}");
    let cart = client.open(&scene.path("services/cart/src/main.rs"));
    await_labels(&mut client, &cart, &["█ 100% 10ns"]);
}

#[test]
fn an_untrusted_workspace_has_no_services_and_only_presets_that_open_nothing() {
    let scene = Scene::new(MONOREPO);
    scene.write(
        "perflens.toml",
        format!("{BY_LABEL}\n[presets.ours]\nfilters = [\"fn=shared\"]\n[presets.other]\nprofile = \"p.pb.gz\"\n"),
    );
    let mut client = Start::new(editor("helix 25.07")).folder(&scene.path("")).start();
    client.command("perflens.openProfile", json!(["p.pb.gz"]));
    let shared = client.open(&scene.path("lib/shared.rs"));
    await_labels(&mut client, &shared, &["█ 30.0% 30.0ms"]);
    let rows = statuses(&mut client);
    assert_eq!(rows.len(), 1, "{rows:#?}");
    let ignored = rows[0]["ignored"].to_string();
    for setting in ["service = ", "presets.other = ", "source.file = "] {
        assert!(ignored.contains(setting), "{setting}: {ignored}");
    }
    let choices = client.command("perflens.selectPreset", json!([]))["choices"].clone();
    assert_eq!(choices, json!(["ours", "cpu", "allocatedBytes"]));
}

// Presets.

#[test]
fn presets_that_can_be_answered_are_offered_and_asked() {
    let scene = Scene::new(MONOREPO);
    scene.write("base.pb.gz", Mini::parse("cpu/nanoseconds\nlib/shared.rs:1 shared = 28_000_000\n").gzip());
    let presets = json!({
        "shared": { "title": "Shared code", "type": "cpu", "filters": ["fn=shared"] },
        "before": { "base": "base.pb.gz", "filters": ["fn=shared"] },
        "missing": { "profile": "missing.pb.gz" },
        "wrong": { "type": "goroutine" },
        "heap": { "title": "Not built in", "type": "alloc_space/bytes" },
    });
    let options = json!({ "workspaceTrusted": true, "source": { "file": "p.pb.gz" }, "presets": presets });
    let mut client = trusted(&scene)
        .options(options)
        .answers(|method, params| {
            (method == "window/showMessageRequest").then(|| {
                let actions = params["actions"].as_array().expect("choices");
                let chosen = actions.iter().find(|action| action["title"] == "Allocations, bytes");
                Answer::Result(chosen.cloned().unwrap_or_default())
            })
        })
        .start();
    let shared = client.open(&scene.path("lib/shared.rs"));
    await_labels(&mut client, &shared, &["█ 30.0% 30.0ms"]);
    let choices = client.command("perflens.selectPreset", json!([]))["choices"].clone();
    assert_eq!(choices, json!(["before", "heap", "shared", "cpu", "allocatedBytes"]));
    // The user took one.
    await_labels(&mut client, &shared, &["█ 100% 2.00MiB"]);
    client.command("perflens.selectPreset", json!(["shared"]));
    await_labels(&mut client, &shared, &["█ 100% 30.0ms"]);
    client.command("perflens.selectPreset", json!([{ "name": "before" }]));
    await_labels(&mut client, &shared, &["▲ +7.1pp 28.0ms→30.0ms"]);
    // A whole question: neither filter nor base of the last one stays.
    client.command("perflens.selectPreset", json!(["cpu"]));
    await_labels(&mut client, &shared, &["█ 30.0% 30.0ms"]);
    for (name, expected) in [
        ("wrong", "can't answer"),
        ("missing", "can't answer"),
        ("gpu", "can't answer"),
        ("shard", "did you mean shared?"),
    ] {
        let call = json!({ "command": "perflens.selectPreset", "arguments": [name] });
        let told = client.refused("workspace/executeCommand", call)["message"].to_string();
        assert!(told.contains(expected), "{name}: {told}");
    }
    assert_eq!(labels(&mut client, &shared), ["█ 30.0% 30.0ms"]);
}

#[test]
fn presets_of_the_workspace_are_added_to_the_users() {
    let scene = Scene::new(MONOREPO);
    let user = scene.path("user.toml");
    scene.write("user.toml", "[presets.mine]\ntype = \"cpu\"\n[presets.both]\nfilters = [\"fn=main\"]\n");
    scene.write(
        "perflens.toml",
        "[presets.\"a.b\"]\n[presets.both]\nfilters = [\"fn=shared\"]\n[presets.odd]\ntyp = 1\n",
    );
    let mut client = scene.editor(editor("vscode")).env("PERFLENS_CONFIG", user).start();
    let shared = client.open(&scene.path("lib/shared.rs"));
    await_labels(&mut client, &shared, &["█ 30.0% 30.0ms"]);
    let told = client.incoming("window/showMessage")["message"].to_string();
    assert!(told.contains("presets.odd") && told.contains("typ"), "{told}");
    let choices = client.command("perflens.selectPreset", json!([]))["choices"].clone();
    assert_eq!(choices, json!(["a.b", "both", "mine", "cpu", "allocatedBytes"]));
    client.command("perflens.selectPreset", json!(["both"]));
    await_labels(&mut client, &shared, &["█ 100% 30.0ms"]);
}

// Whose, and how old.

#[test]
fn a_hover_is_split_by_thread_and_by_function_where_there_are_several() {
    let scene = Scene::new(
        "
        cpu/nanoseconds
        src/main.rs:1 main #1; src/main.rs:3 sort::<u64> #2 = 50 {thread=main}
        src/main.rs:1 main #1; src/main.rs:3 sort::<u8> #2 = 20 {thread=worker-1}
        src/main.rs:1 main #1; src/main.rs:3 sort::<u8> #2 = 10 {thread=worker-2}
        src/main.rs:1 main #1; src/main.rs:3 sort::<u8> #2 = 15 {thread=worker-3}
        src/main.rs:1 main #1; src/main.rs:3 sort::<u8> #2 = 5 {tid=7}
        //- /src/main.rs
        fn main() {}
        fn sort() {
        }
        ",
    );
    let (mut client, uri) = scene.open(editor("neovim 0.11"), "src/main.rs");
    let threads = "By thread: main 50.0%, `worker-1` 20.0%, `worker-3` 15.0% and 2 more.";
    let functions = "By function: ";
    for line in [1, 2] {
        let hover = client.hover(&uri, line, 3);
        assert!(hover.contains(threads) || line == 1, "a line is of all of them: {hover}");
        assert!(hover.contains(functions) && hover.contains("`sort::<u8>` 50.0%"), "{line}: {hover}");
        assert!(hover.contains("`sort::<u64>` 50.0%"), "{line}: {hover}");
    }
    let hover = client.hover(&uri, 0, 3);
    assert!(!hover.contains(functions) && hover.contains(threads), "{hover}");
}

#[test]
fn hover_and_status_say_when_it_was_measured() {
    let scene = Scene::new(
        "
        cpu/nanoseconds
        !time 1_600_000_000_000_000_000
        !duration 900_000_000_000
        src/main.rs:1 main = 50
        //- /src/main.rs
        fn main() {}
        ",
    );
    let mut client = scene.editor(editor("vscode")).env("TZ", "Asia/Tokyo").start();
    let uri = client.open(&scene.path("src/main.rs"));
    client.hints_soon(&uri);
    let measured = "2020-09-13 21:26–21:41, ";
    let hover = client.hover(&uri, 0, 3);
    assert!(hover.contains(measured) && hover.contains(" days ago"), "{hover}");
    let status = statuses(&mut client)[0]["details"].to_string();
    assert!(status.contains(&format!("Measured {measured}")), "{status}");
    // A profile that does not say: its file's age, and said to be that.
    scene.rewrite("cpu/nanoseconds\nsrc/main.rs:1 main = 60\n");
    client.until("the new profile", |client| (statuses(client)[0]["total"] == 60).then_some(()));
    let status = statuses(&mut client)[0]["details"].to_string();
    assert!(status.contains("its file was written just now"), "{status}");
}

// Code of others.

#[test]
fn code_of_others_shows_costs_only_in_the_very_version_and_leads_with_ones_own_lines() {
    let registry = "registry/src/index.crates.io-6f17d22bba15001f";
    let scene = Scene::new(&format!(
        "
        cpu/nanoseconds
        src/main.rs:2 main; /ci/.cargo/{registry}/fastjson-1.2.0/src/lib.rs:1 parse; /ci/.cargo/{registry}/fastjson-1.2.0/src/lib.rs:2 token = 30
        src/main.rs:3 main; /ci/.cargo/{registry}/fastjson-1.2.0/src/lib.rs:2 token = 10
        src/main.rs:3 main; /usr/lib/python3/dist-packages/yaml/reader.py:1 read = 10
        //- /src/main.rs
        fn main() {{
            parse();
            token();
        }}
        "
    ));
    let home = tempfile::tempdir().unwrap();
    let local = |name: &str| {
        let path = home.path().join(format!("cargo/{registry}-other/{name}/src/lib.rs"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "pub fn parse() { token() }\npub fn token() {}\n").unwrap();
        path
    };
    let (mut client, main) = scene.open(editor("neovim 0.11"), "src/main.rs");
    assert_eq!(labels(&mut client, &main), ["█ 60.0% 30ns", "█ 40.0% 20ns"]);
    let same = client.open(&local("fastjson-1.2.0"));
    assert_eq!(labels(&mut client, &same), ["█ 60.0% 30ns", "█ 80.0% 40ns"]);
    let hover = client.hover(&same, 1, 4);
    let rows: Vec<&str> = hover.lines().filter(|line| line.contains("main.rs")).collect();
    assert_eq!(
        rows,
        ["called by   60.0%     30ns  main  src/main.rs:2", "            20.0%     10ns  main  src/main.rs:3"],
        "{hover}"
    );
    for other in ["fastjson-1.2.1", "fastjson-1.2", "slowjson-1.2.0"] {
        let other = client.open(&local(other));
        assert_eq!(labels(&mut client, &other), [""; 0], "{other}");
        assert_eq!(client.hover(&other, 1, 4), "");
    }
    // The path is the same, but nothing tells whether the version is.
    client.open_text("file:///usr/lib/python3/dist-packages/yaml/reader.py", "def read(): pass\n");
    assert_eq!(client.hints("file:///usr/lib/python3/dist-packages/yaml/reader.py"), [""; 0]);
    // A profile that is counted anew finds the files again.
    client.command("perflens.setFilter", json!(["line=3"]));
    await_labels(&mut client, &same, &["█ 50.0% 10ns"]);
}
