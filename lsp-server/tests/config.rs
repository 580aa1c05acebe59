//! Configuration and trust from outside: files on disk, what an editor sends, what applies.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use expect_test::{Expect, expect, expect_file};
use perflens::config::places::Places;
use perflens::config::toml_file::{TomlFile, WORKSPACE_FILE, WorkspaceFile};
use perflens::config::trust::{Allowance, Trust, TrustStore};
use perflens::config::{Config, HintMode, Layers, Resolved, docs, schema};
use perflens::{commands, extensions};
use serde_json::{Value, json};

/// The variables that lead to the user's files, on any system.
const HOMES: [&str; 2] = ["HOME", "LOCALAPPDATA"];

/// A folder with a workspace and a home, for one test.
struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new(perflens_toml: &str) -> Self {
        let scene = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        fs::create_dir_all(scene.root().join("src")).expect("a new folder");
        fs::create_dir_all(scene.path("home")).expect("a new folder");
        scene.write(perflens_toml);
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("the folder exists").join(name)
    }

    fn root(&self) -> PathBuf {
        self.path("workspace")
    }

    fn write(&self, perflens_toml: &str) {
        fs::write(self.root().join(WORKSPACE_FILE), perflens_toml).expect("a written file");
    }

    fn file(&self) -> WorkspaceFile {
        WorkspaceFile::read(&self.root()).expect("the scene has a file")
    }

    fn store(&self) -> TrustStore {
        let variable = |name: &str| HOMES.contains(&name).then(|| self.path("home").into_os_string());
        TrustStore::new(Places::new(std::env::consts::OS, variable).trust)
    }

    fn layers(&self) -> Layers {
        Layers { workspace_file: Some(self.file()), ..Layers::default() }
    }

    fn trust(&self) -> Trust {
        Trust::of(Some(&self.file()), false, &self.store())
    }

    /// A copy of the workspace's file in another folder.
    fn copy(&self, name: &str) -> PathBuf {
        let copy = self.path(name);
        fs::create_dir(&copy).expect("a new folder");
        fs::copy(self.root().join(WORKSPACE_FILE), copy.join(WORKSPACE_FILE)).expect("a copied file");
        copy
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_perflens"))
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .envs(HOMES.iter().map(|name| (name, self.path("home"))))
            .output()
            .expect("the program starts")
    }

    /// What a command prints, with the folder of this test as `$`.
    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.plain(&output.stdout)
    }

    fn plain(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        text.replace(&*self.path("").to_string_lossy(), "$/")
    }
}

fn of_editor(settings: Value) -> Resolved {
    Layers { editor: settings, ..Layers::default() }.resolve(Trust::Untrusted)
}

/// Everything that is not as by default, and everything that was refused.
#[expect(clippy::needless_pass_by_value, reason = "reads better at the many calls")]
fn check(resolved: &Resolved, expected: Expect) {
    let mut text = String::new();
    differences("", &to_json(&Config::default()), &to_json(&resolved.config), &mut text);
    for issue in &resolved.issues {
        writeln!(text, "! {issue}").expect("a string takes all");
    }
    for withheld in &resolved.withheld {
        writeln!(text, "withheld {withheld}").expect("a string takes all");
    }
    expected.assert_eq(&text);
}

fn to_json(config: &Config) -> Value {
    serde_json::to_value(config).expect("settings are JSON")
}

fn differences(pointer: &str, default: &Value, value: &Value, text: &mut String) {
    if let (Value::Object(defaults), Value::Object(values)) = (default, value) {
        for (key, value) in values {
            differences(
                format!("{pointer}.{key}").trim_start_matches('.'),
                defaults.get(key).unwrap_or(&Value::Null),
                value,
                text,
            );
        }
    } else if default != value {
        writeln!(text, "{pointer} = {value}").expect("a string takes all");
    }
}

#[test]
fn later_layers_win_setting_by_setting() {
    let scene = Scene::new("[hints]\nperFile = 2\nglyphs = 'ascii'\nminShare = 2\n[lens]\nminShare = 2\n");
    let user = scene.path("home/config.toml");
    fs::write(&user, "[hints]\nperFile = 1\nlead = true\n[refresh]\nwatch = false\n").unwrap();
    let mut layers = Layers {
        user_file: TomlFile::read(&user),
        initialization_options: json!({"hints": {"glyphs": "unicode", "mode": "off", "minShare": 3}, "lens": {"minShare": 3}}),
        editor: json!({"hints": {"minShare": 4}, "lens": {"minShare": 4}}),
        ..scene.layers()
    };
    layers.set_for_session("lens.minShare", json!(5));
    check(
        &layers.resolve(Trust::Untrusted),
        expect![[r#"
            hints.lead = true
            hints.minShare = 4.0
            hints.mode = "off"
            hints.perFile = 2
            lens.minShare = 5.0
            refresh.watch = false
        "#]],
    );
}

#[test]
fn what_a_session_sets_can_be_taken_back() {
    let mut layers = Layers { editor: json!({"hints": {"mode": "hot"}}), ..Layers::default() };
    layers.set_for_session("hints.mode", json!("off"));
    assert_eq!(layers.resolve(Trust::Untrusted).config.hints.mode, HintMode::Off);
    assert_eq!(layers.session_value("hints.mode"), Some(&json!("off")));
    layers.set_for_session("hints.mode", Value::Null);
    assert_eq!(layers.resolve(Trust::Untrusted).config.hints.mode, HintMode::Hot);
    assert_eq!(layers.session_value("hints.mode"), None);
}

#[test]
fn lists_are_replaced() {
    let layers = Layers {
        initialization_options: json!({"query": {"filters": ["fn~a", "fn~b"]}}),
        editor: json!({"query": {"filters": ["fn = c"]}}),
        ..Layers::default()
    };
    check(
        &layers.resolve(Trust::Untrusted),
        expect![[r#"
        query.filters = ["fn=c"]
    "#]],
    );
}

#[test]
fn editors_may_send_the_section_or_what_has_it() {
    for settings in [json!({"hints": {"perFile": 7}}), json!({"perflens": {"hints": {"perFile": 7}}, "rust": {}})] {
        let at_start = Layers { initialization_options: settings.clone(), ..Layers::default() };
        for layers in [at_start, Layers { editor: settings, ..Layers::default() }] {
            let resolved = layers.resolve(Trust::Untrusted);
            assert_eq!((resolved.config.hints.per_file.get(), resolved.issues), (7, vec![]));
        }
    }
}

#[test]
fn what_editors_mean_by_nothing_is_nothing() {
    for nothing in [
        json!(null),
        json!({}),
        json!([]),
        json!({"perflens": null}),
        json!({"hints": null}),
        json!({"hints": []}),
        json!({"hints": {"mode": null}}),
        json!({"source": {"file": ""}}),
    ] {
        assert_eq!(of_editor(nothing), Resolved::default());
    }
    assert_eq!(of_editor(json!({"hints": {"perFile": 50.0}})).config.hints.per_file.get(), 50);
}

#[test]
fn a_mistake_costs_one_setting() {
    let layers = Layers {
        initialization_options: json!({"hints": {"perFile": 9, "mode": "hot"}}),
        editor: json!({
            "hints": {"perFile": 0, "mode": "al", "minShare": 100.5, "lead": "yes", "glyphs": "ascii"},
            "query": {"filters": ["fn~a", "nonsense"], "type": 5},
            "paths": {"rules": [{"from": "/build", "too": "."}], "roots": "/"},
            "lens": true,
            "limits": {"profileMebibytes": -1, "workspaceFiles": 1.5},
        }),
        ..Layers::default()
    };
    check(
        &layers.resolve(Trust::Untrusted),
        expect![[r#"
            hints.glyphs = "ascii"
            hints.mode = "hot"
            hints.perFile = 9
            ! the editor's settings: `hints.lead` takes `true` or `false`, not `"yes"`
            ! the editor's settings: `hints.minShare` takes a number from 0 to 100, not `100.5`
            ! the editor's settings: `hints.mode` takes `all`, `hot` or `off`, not `"al"`; did you mean `all`?
            ! the editor's settings: `hints.perFile` takes a whole number from 1 to 100000, not `0`
            ! the editor's settings: `lens` is a group of settings, not `true`
            ! the editor's settings: `limits.profileMebibytes` takes a whole number from 1 to 65536, not `-1`
            ! the editor's settings: `limits.workspaceFiles` takes a whole number from 1 to 10000000, not `1.5`
            ! the editor's settings: `paths.roots` takes a list of texts, not `"/"`
            ! the editor's settings: `paths.rules`: unknown field `too`, expected `from` or `to`
            ! the editor's settings: `query.filters`: filter `nonsense` has no operator; write FIELD=VALUE, or one of != ~ !~ ^ !^ for =
            ! the editor's settings: `query.type` takes a text, not `5`
        "#]],
    );
}

#[test]
fn unknown_settings_are_told_with_what_was_meant() {
    let settings = json!({
        "hint": {"mode": "off"},
        "hints": {"min_share": 1, "perfile": 1, "colour": "red"},
        "minShare": 1,
        "watch": false,
        "nonsense": 1,
        "evil\u{202e}": 1,
    });
    check(
        &of_editor(settings),
        expect![[r#"
        ! the editor's settings: there is no setting `evil\u{202e}`
        ! the editor's settings: there is no setting `hint`; did you mean `hints`?
        ! the editor's settings: there is no setting `hints.colour`
        ! the editor's settings: there is no setting `hints.min_share`; did you mean `hints.minShare`?
        ! the editor's settings: there is no setting `hints.perfile`; did you mean `hints.perFile`?
        ! the editor's settings: there is no setting `minShare`; did you mean `hints.minShare`?
        ! the editor's settings: there is no setting `nonsense`
        ! the editor's settings: there is no setting `watch`; did you mean `refresh.watch`?
    "#]],
    );
}

#[test]
fn what_is_no_settings_at_all_is_told() {
    check(
        &of_editor(json!("hot")),
        expect![[r#"
        ! the editor's settings: settings are an object, not `"hot"`
    "#]],
    );
    let resolved = Scene::new("[hints\n").layers().resolve(Trust::Trusted);
    assert_eq!(resolved.config, Config::default());
    let problem = resolved.issues[0].to_string();
    assert!(problem.contains("perflens.toml is ignored: line 1: "), "{problem}");
}

/// Numbers that JSON does not have, and dates, which no setting is.
#[test]
fn values_that_only_toml_has_are_refused_by_name() {
    let scene = Scene::new("[hints]\nminShare = nan\nperFile = 2026-07-01\nmode = 'hot'\n");
    check(
        &scene.layers().resolve(Trust::Trusted),
        expect![[r#"
        hints.mode = "hot"
        ! perflens.toml: `hints.minShare` takes a number from 0 to 100, not `"NaN"`
        ! perflens.toml: `hints.perFile` takes a whole number from 1 to 100000, not `"2026-07-01"`
    "#]],
    );
}

/// A value that can't be read must not bring back another file that a lower layer names.
#[test]
fn which_files_are_read_fails_closed() {
    let layers = Layers {
        initialization_options: json!({
            "source": {"file": "a"}, "query": {"base": "b"}, "paths": {"roots": ["c"]}, "hints": {"perFile": 3}
        }),
        editor: json!({
            "source": {"file": false}, "query": {"base": 0}, "paths": {"roots": "d"}, "hints": {"perFile": false}
        }),
        ..Layers::default()
    };
    check(
        &layers.resolve(Trust::Trusted),
        expect![[r#"
        hints.perFile = 3
        ! the editor's settings: `hints.perFile` takes a whole number from 1 to 100000, not `false`
        ! the editor's settings: `paths.roots` takes a list of texts, not `"d"`
        ! the editor's settings: `query.base` takes a text, not `0`
        ! the editor's settings: `source.file` takes a text, not `false`
    "#]],
    );
}

/// Every setting, each with another value than its default.
const EVERYTHING: &str = r#"
[source]
file = "/etc/passwd"
address = "https://thief.example"
kind = "pyroscope"
transport = "grpc"
atStart = true
keepAnswer = true
refreshSeconds = 60
project = "p"
tenant = "t"
user = "u"
headers = ["X-Key: k"]
caFile = "ca.pem"
certificateFile = "c.pem"
keyFile = "k.pem"
verifyTls = false
[query]
type = "cpu"
selector = "a:b:c:d:e"
range = "1h"
filters = ["fn~a"]
base = "base.pb.gz"
normalize = true
[hints]
mode = "hot"
minShare = 1
perFile = 1
glyphs = "ascii"
lead = true
[lens]
profileThis = false
enabled = false
minShare = 1
[hover]
enabled = false
[diagnostics]
enabled = true
[paths]
rules = [{ from = "/build", to = "src" }, { from = "/usr", to = "/usr" }]
roots = ["/"]
commit = "v1"
commitLabels = ["built_from"]
[symbols]
debugDirs = ["/"]
[limits]
profileMebibytes = 60000
workspaceFiles = 1
copyKibibytes = 1
[otlp]
enabled = true
grpcPort = 1
httpPort = 2
windowMinutes = 3
memoryMebibytes = 64
[refresh]
watch = false
autoLoad = false
[[service]]
folder = "a"
name = "b"
matchers = ["service=b", "label.zone ~ x"]
profile = "/etc/passwd"
[tasks.sums]
file = "sums.c"
function = "test_sums"
build = ["make"]
run = ["./sums"]
folder = "build"

[presets.safe]
title = "Safe"
type = "cpu"
filters = ["fn~a"]
[presets.opens]
profile = "/etc/passwd"
base = "/etc/shadow"
"#;

#[test]
fn an_untrusted_file_sets_looks_and_rules_into_the_workspace() {
    check(
        &Scene::new(EVERYTHING).layers().resolve(Trust::Untrusted),
        expect![[r#"
            hints.glyphs = "ascii"
            hints.lead = true
            hints.minShare = 1.0
            hints.mode = "hot"
            hints.perFile = 1
            hover.enabled = false
            lens.enabled = false
            lens.minShare = 1.0
            lens.profileThis = false
            paths.rules = [{"from":"/build","to":"src"}]
            presets.safe = {"base":null,"filters":["fn~a"],"profile":null,"title":"Safe","type":"cpu"}
            withheld diagnostics.enabled = true
            withheld limits.copyKibibytes = 1
            withheld limits.profileMebibytes = 60000
            withheld limits.workspaceFiles = 1
            withheld otlp.enabled = true
            withheld otlp.grpcPort = 1
            withheld otlp.httpPort = 2
            withheld otlp.memoryMebibytes = 64
            withheld otlp.windowMinutes = 3
            withheld paths.commit = "v1"
            withheld paths.commitLabels = ["built_from"]
            withheld paths.roots = ["/"]
            withheld paths.rules = {"from":"/usr","to":"/usr"}
            withheld presets.opens = {"base":"/etc/shadow","profile":"/etc/passwd"}
            withheld query.base = "base.pb.gz"
            withheld query.filters = ["fn~a"]
            withheld query.normalize = true
            withheld query.range = "1h"
            withheld query.selector = "a:b:c:d:e"
            withheld query.type = "cpu"
            withheld refresh.autoLoad = false
            withheld refresh.watch = false
            withheld service = [{"folder":"a","matchers":["service=b","label.zone ~ x"],"name":"b","profile":"/etc/passwd"}]
            withheld source.address = "https://thief.example"
            withheld source.atStart = true
            withheld source.caFile = "ca.pem"
            withheld source.certificateFile = "c.pem"
            withheld source.file = "/etc/passwd"
            withheld source.headers = ["X-Key: k"]
            withheld source.keepAnswer = true
            withheld source.keyFile = "k.pem"
            withheld source.kind = "pyroscope"
            withheld source.project = "p"
            withheld source.refreshSeconds = 60
            withheld source.tenant = "t"
            withheld source.transport = "grpc"
            withheld source.user = "u"
            withheld source.verifyTls = false
            withheld symbols.debugDirs = ["/"]
            withheld tasks.sums = {"build":["make"],"file":"sums.c","folder":"build","function":"test_sums","run":["./sums"]}
        "#]],
    );
}

#[test]
fn a_trusted_file_sets_everything() {
    let resolved = Scene::new(EVERYTHING).layers().resolve(Trust::Trusted);
    assert_eq!((resolved.issues, resolved.withheld), (vec![], vec![]));
    let (default, config) = (to_json(&Config::default()), to_json(&resolved.config));
    for setting in schema::groups().into_iter().flat_map(|group| group.settings) {
        let pointer = format!("/{}", setting.pointer.replace('.', "/"));
        let group = format!("/{}", setting.pointer.split('.').next().unwrap());
        // What there can be several of is set as a whole.
        let pointer = if default.pointer(&pointer).is_some() { pointer } else { group };
        let is_set = default.pointer(&pointer) != config.pointer(&pointer);
        assert!(is_set, "{} is missing in EVERYTHING, or is not obeyed", setting.pointer);
    }
}

/// A setting that is added must be thought about: whoever puts one on the list of what
/// untrusted files may set has to come by here.
#[test]
fn what_untrusted_files_may_set_is_a_closed_list() {
    let allowed = schema::groups()
        .into_iter()
        .flat_map(|group| group.settings)
        .filter(|setting| setting.allowance != Allowance::Nothing)
        .fold(String::new(), |text, setting| text + &setting.pointer + "\n");
    expect![[r#"
        hints.glyphs
        hints.lead
        hints.minShare
        hints.mode
        hints.perFile
        hover.enabled
        lens.enabled
        lens.minShare
        lens.profileThis
        paths.rules
        presets.base
        presets.filters
        presets.profile
        presets.title
        presets.type
    "#]]
    .assert_eq(&allowed);
}

#[test]
fn only_the_workspace_file_is_bound_by_trust() {
    let scene = Scene::new("");
    let user = scene.path("home/config.toml");
    fs::write(&user, "paths.roots = ['/other']").unwrap();
    let layers = Layers {
        user_file: TomlFile::read(&user),
        initialization_options: json!({"source": {"file": "a.pb"}, "refresh": {"watch": false}}),
        ..scene.layers()
    };
    check(
        &layers.resolve(Trust::Untrusted),
        expect![[r#"
            paths.roots = ["/other"]
            refresh.watch = false
            source.file = "a.pb"
        "#]],
    );
}

#[cfg(unix)]
#[test]
fn rules_of_an_untrusted_file_stay_inside_on_disk_as_well() {
    use std::os::unix::fs::symlink;
    let scene = Scene::new("");
    symlink("/", scene.root().join("link")).unwrap();
    symlink("/nowhere", scene.root().join("dangling")).unwrap();
    symlink("src", scene.root().join("alias")).unwrap();
    symlink(scene.root(), scene.path("way in")).unwrap();
    let root = scene.root().to_string_lossy().into_owned();
    for (to, is_inside) in [
        (".", true),
        ("src", true),
        ("not/there/yet", true),
        ("alias", true),
        (&root, true),
        (&format!("{root}/src"), true),
        (&scene.path("way in").to_string_lossy(), true),
        ("/", false),
        (&format!("{root}2"), false),
        ("..", false),
        ("src/../../other", false),
        ("gone/../../other", false),
        ("link", false),
        ("link/etc", false),
        ("dangling", false),
    ] {
        scene.write(&format!("[[paths.rules]]\nfrom = '/build'\nto = '{to}'\n"));
        let resolved = scene.layers().resolve(Trust::Untrusted);
        assert_eq!(resolved.config.paths.rules.len(), usize::from(is_inside), "{to}");
        assert_eq!(resolved.withheld.len(), usize::from(!is_inside), "{to}");
    }
}

#[test]
fn trust_is_for_one_folder_and_one_content() {
    let scene = Scene::new("source.file = 'a'");
    assert_eq!(scene.trust(), Trust::Untrusted);
    scene.store().trust(&scene.file()).unwrap();
    assert_eq!(scene.trust(), Trust::Trusted);

    scene.write("source.file = 'b'");
    assert_eq!(scene.trust(), Trust::Untrusted, "a changed file");
    scene.write("source.file = 'a'");
    assert_eq!(scene.trust(), Trust::Trusted, "the trusted content again");
    let elsewhere = WorkspaceFile::read(&scene.copy("copy")).unwrap();
    assert!(!scene.store().trusts(&elsewhere), "the same file in another folder");

    assert!(scene.store().distrust(&scene.root()).unwrap());
    assert_eq!(scene.trust(), Trust::Untrusted);
    assert!(!scene.store().distrust(&scene.root()).unwrap());
}

#[cfg(unix)]
#[test]
fn trust_is_for_the_real_folder() {
    use std::os::unix::fs::symlink;
    let scene = Scene::new("source.file = 'a'");
    let link = scene.path("link");
    symlink(scene.root(), &link).unwrap();
    scene.store().trust(&WorkspaceFile::read(&link).unwrap()).unwrap();
    assert_eq!(scene.trust(), Trust::Trusted);
    // The link leads elsewhere now, to a file that says the same.
    fs::remove_file(&link).unwrap();
    symlink(scene.copy("other"), &link).unwrap();
    assert!(!scene.store().trusts(&WorkspaceFile::read(&link).unwrap()));
}

#[test]
fn editors_give_trust_by_true_and_nothing_else() {
    let scene = Scene::new("source.file = 'a'");
    for (options, is_trusted) in [
        (json!({"workspaceTrusted": true}), true),
        (json!({"workspaceTrusted": true, "perflens": {}}), true),
        (json!({"workspaceTrusted": false}), false),
        (json!({"workspaceTrusted": "true"}), false),
        (json!({"workspaceTrusted": 1}), false),
        (json!({"perflens": {"workspaceTrusted": true}}), false),
        (json!({}), false),
        (json!(null), false),
    ] {
        let layers = Layers { initialization_options: options.clone(), ..scene.layers() };
        let trust = Trust::of(layers.workspace_file.as_ref(), layers.is_trusted_by_editor(), &scene.store());
        assert_eq!(trust == Trust::Trusted, is_trusted, "{options}");
        assert_eq!(layers.resolve(trust).config.source.file.is_some(), is_trusted, "{options}");
    }
    let in_words = Layers { initialization_options: json!({"workspaceTrusted": "true"}), ..Layers::default() };
    check(
        &in_words.resolve(Trust::Untrusted),
        expect![[r#"
        ! initializationOptions: `workspaceTrusted` takes `true` or `false`, not "true": not trusted
    "#]],
    );
}

/// Settings that travel with a repository, in whatever form, can't give trust.
#[test]
fn trust_is_no_setting() {
    let scene = Scene::new("workspaceTrusted = true\nsource.file = 'a'");
    let layers = Layers { editor: json!({"workspaceTrusted": true}), ..scene.layers() };
    assert!(!layers.is_trusted_by_editor());
    check(
        &layers.resolve(Trust::Untrusted),
        expect![[r#"
        ! perflens.toml: `workspaceTrusted` counts only at the top of initializationOptions; otherwise run `perflens trust` in the workspace
        ! the editor's settings: `workspaceTrusted` counts only at the top of initializationOptions; otherwise run `perflens trust` in the workspace
        withheld source.file = "a"
    "#]],
    );
}

#[test]
fn a_damaged_store_trusts_nobody_and_can_be_written_again() {
    let scene = Scene::new("source.file = 'a'");
    let store = scene.store();
    let path = store.path().unwrap().to_owned();
    store.trust(&scene.file()).unwrap();
    let good = fs::read_to_string(&path).unwrap();
    for damaged in ["", "{", "[]", "{\"workspaces\": []}", &good[..good.len() / 2], "\u{0}\u{1}"] {
        fs::write(&path, damaged).unwrap();
        assert_eq!(scene.trust(), Trust::Untrusted, "{damaged:?}");
    }
    store.trust(&scene.file()).unwrap();
    assert_eq!(scene.trust(), Trust::Trusted);

    // One entry is damaged; the others count.
    let partly = good.replace("\"workspaces\": {", "\"later\": 1, \"workspaces\": {\"/x\": 5,");
    fs::write(&path, partly).unwrap();
    assert_eq!(scene.trust(), Trust::Trusted);
}

#[test]
fn what_could_not_be_read_is_not_trusted() {
    let scene = Scene::new("source.file =");
    assert!(scene.store().trust(&scene.file()).unwrap_err().to_string().contains("line 1"));
    assert_eq!(scene.store().roots().unwrap(), Vec::<PathBuf>::new());

    scene.write("source.file = 'a'");
    let nowhere = TrustStore::new(None);
    assert!(!nowhere.trusts(&scene.file()));
    assert!(nowhere.trust(&scene.file()).is_err());
}

#[cfg(unix)]
#[test]
fn the_store_is_the_users_alone() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new("source.file = 'a'");
    scene.store().trust(&scene.file()).unwrap();
    let path = scene.store().path().unwrap().to_owned();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let files = fs::read_dir(path.parent().unwrap()).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["trust.json", "trust.lock"], "no temporary file stays");

    let set_mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    for open in [0o620, 0o602, 0o666] {
        set_mode(open);
        assert_eq!(scene.trust(), Trust::Untrusted, "{open:o}");
        assert!(scene.store().trust(&scene.file()).unwrap_err().to_string().contains("chmod 600"));
    }
    set_mode(0o600);
    assert_eq!(scene.trust(), Trust::Trusted);
}

#[cfg(target_os = "linux")]
#[test]
fn folders_without_an_exact_name_are_not_trusted() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let scene = Scene::new("");
    let read = |name: &[u8]| {
        let folder = scene.root().with_file_name(OsStr::from_bytes(name));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join(WORKSPACE_FILE), "source.file = 'a'").unwrap();
        WorkspaceFile::read(&folder).unwrap()
    };
    let inexact = read(b"caf\xe9");
    assert!(scene.store().trust(&inexact).is_err());
    // What the name looks like when it is written down in a hurry.
    scene.store().trust(&read("caf\u{fffd}".as_bytes())).unwrap();
    assert!(!scene.store().trusts(&inexact));
}

#[cfg(unix)]
#[test]
fn a_pipe_as_a_file_stops_nobody() {
    let scene = Scene::new("");
    let path = scene.root().join(WORKSPACE_FILE);
    fs::remove_file(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(TomlFile::read(&path)));
    let read = receiver.recv_timeout(std::time::Duration::from_secs(20)).expect("reading ends").unwrap();
    assert_eq!(read.problem.as_deref(), Some("it is no regular file"));
}

#[test]
fn the_command_lists_before_it_trusts() {
    let scene = Scene::new("[source]\nfile = \"a\\u001B[2J\\u202E\"\n[hints]\nmode = 'hot'\n[lenss]\n");
    expect![[r#"
        Trusted, tests, benchmarks and programs of the workspace may be built and run when you ask for it.

        Trusted, $/workspace/perflens.toml may set:

          source.file = "a\u001b[2J\u{202e}"

        perflens.toml: there is no setting `lenss`; did you mean `lens`?
        The workspace is trusted until the file changes.
        To take it back: perflens trust --remove $/workspace
    "#]]
    .assert_eq(&scene.ok(&["trust", "workspace"]));
    assert_eq!(scene.trust(), Trust::Trusted);
    expect![[r#"
        $/workspace
    "#]]
    .assert_eq(&scene.ok(&["trust", "--list"]));

    scene.write("source.file = 'b'");
    expect![[r#"
        $/workspace, not any more: its perflens.toml has changed
    "#]]
    .assert_eq(&scene.ok(&["trust", "--list"]));
    expect![[r#"
        workspace is not trusted any more.
    "#]]
    .assert_eq(&scene.ok(&["trust", "--remove", "workspace"]));
    scene.write("[hints]\nmode = 'hot'");
    expect![[r#"
        Trusted, tests, benchmarks and programs of the workspace may be built and run when you ask for it.

        Nothing in $/workspace/perflens.toml needs trust.
        The workspace is trusted until the file changes.
        To take it back: perflens trust --remove $/workspace
    "#]]
    .assert_eq(&scene.ok(&["trust", "workspace"]));
    fs::remove_dir_all(scene.root()).unwrap();
    expect![[r#"
        $/workspace, which is gone
    "#]]
    .assert_eq(&scene.ok(&["trust", "--list"]));
    // A folder that is gone can still be taken off the list.
    scene.ok(&["trust", "--remove", &scene.root().to_string_lossy()]);
    expect![[r#"
        No workspace is trusted.
    "#]]
    .assert_eq(&scene.ok(&["trust", "--list"]));
}

/// Nothing hides from whoever is asked to trust: no value is shortened.
#[test]
fn the_command_shows_values_in_full() {
    let long = format!("{}/secret", "x".repeat(500));
    let scene = Scene::new(&format!("source.file = '{long}'"));
    assert!(scene.ok(&["trust", "workspace"]).contains(&long));
}

/// When nobody can read what would be allowed, nothing is.
#[cfg(target_os = "linux")]
#[test]
fn the_command_trusts_nothing_that_it_could_not_print() {
    let scene = Scene::new("source.file = 'a'");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_perflens"))
        .args(["trust", "workspace"])
        .current_dir(scene.folder.path())
        .env("HOME", scene.path("home"))
        .env_remove("XDG_STATE_HOME")
        .stdout(full)
        .status()
        .unwrap();
    assert!(!status.success());
    assert_eq!(scene.trust(), Trust::Untrusted);
}

/// Programs are run of trusted workspaces only, whether they have settings or not.
#[test]
fn a_workspace_without_a_file_can_be_trusted_until_it_has_one() {
    let scene = Scene::new("");
    fs::remove_file(scene.root().join(WORKSPACE_FILE)).unwrap();
    let trust = || {
        let file = WorkspaceFile::or_none(&scene.root());
        Trust::of(file.as_ref(), false, &scene.store())
    };
    assert_eq!(trust(), Trust::Untrusted);
    expect![[r#"
        Trusted, tests, benchmarks and programs of the workspace may be built and run when you ask for it.

        There is no perflens.toml in it.
        The workspace is trusted until the file changes.
        To take it back: perflens trust --remove $/workspace
    "#]]
    .assert_eq(&scene.ok(&["trust", "workspace"]));
    assert_eq!(trust(), Trust::Trusted);
    scene.write("[source]\nfile = 'a'\n");
    assert_eq!(trust(), Trust::Untrusted);
}

#[test]
fn the_command_says_why_it_does_not_trust() {
    let scene = Scene::new("x =");
    let mut text = String::new();
    for arguments in [&["trust", "workspace"][..], &["trust", "nowhere"], &["trust", "--remove", "workspace"]] {
        let output = scene.run(arguments);
        assert_eq!(output.status.code(), Some(1));
        text += &scene.plain(&output.stderr);
    }
    expect![[r#"
        perflens: $/workspace/perflens.toml: line 1: string values must be quoted, expected literal string
        perflens: nowhere: there is no such folder
        perflens: workspace: it was not trusted
    "#]]
    .assert_eq(&text);
    for arguments in [&["trust"][..], &["trust", "--list", "workspace"]] {
        assert_eq!(scene.run(arguments).status.code(), Some(2));
    }
}

#[test]
fn schemas_are_json_and_name_every_setting() {
    let scene = Scene::new("");
    let schema: Value = serde_json::from_str(&scene.ok(&["schema"])).unwrap();
    assert_eq!(&schema, schema::json());
    for (pointer, want) in [
        ("/$schema", json!("http://json-schema.org/draft-07/schema#")),
        ("/additionalProperties", json!(false)),
        ("/properties/hints/additionalProperties", json!(false)),
        ("/properties/hints/properties/minShare/maximum", json!(100)),
        ("/properties/hints/properties/minShare/default", json!(0.1)),
        ("/properties/query/properties/filters/items/type", json!("string")),
    ] {
        assert_eq!(schema.pointer(pointer), Some(&want), "{pointer}");
    }
    let commands: Value = serde_json::from_str(&scene.ok(&["schema", "commands"])).unwrap();
    assert_eq!(commands["commands"].as_array().unwrap().len(), commands::COMMANDS.len());
    let extensions: Value = serde_json::from_str(&scene.ok(&["schema", "extensions"])).unwrap();
    assert_eq!(extensions["requests"][0]["method"], extensions::EXTENSIONS[0].method);
    assert_eq!(scene.ok(&["schema", "--markdown"]), docs::markdown());
}

#[test]
fn every_setting_is_documented() {
    for group in schema::groups() {
        assert!(!group.doc.is_empty(), "{}", group.name);
        for setting in group.settings {
            assert!(!setting.doc.is_empty(), "{}", setting.pointer);
        }
    }
}

#[test]
fn the_example_in_the_documentation_is_right() {
    let page = docs::markdown();
    let example = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let resolved = Scene::new(example).layers().resolve(Trust::Trusted);
    assert_eq!(resolved.issues, []);
    let file = resolved.config.source_file(Path::new("workspace"));
    assert_eq!(file.as_deref(), Some(Path::new("workspace/profiles/cpu.pb.gz")));
}

#[test]
fn pages_are_what_the_tables_say() {
    expect_file!["../../docs/configuration.md"].assert_eq(&docs::markdown());
    expect_file!["../../docs/commands.md"].assert_eq(&commands::markdown());
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/lsp-extensions.md")).unwrap();
    let table = extensions::markdown();
    let write = "perflens schema extensions --markdown";
    assert!(page.contains(&table), "docs/lsp-extensions.md lacks the table that `{write}` prints:\n{table}");
}

/// Each process reads the store, adds its own, and writes it.
#[test]
fn workspaces_that_are_trusted_at_once_are_all_trusted() {
    let scene = Scene::new("hints.mode = 'hot'");
    let files: Vec<WorkspaceFile> = (0..24)
        .map(|number| {
            let copy = scene.copy(&format!("copy{number}"));
            WorkspaceFile::read(&copy).unwrap()
        })
        .collect();
    std::thread::scope(|scope| {
        for file in &files {
            scope.spawn(|| scene.store().trust(file).unwrap());
        }
    });
    assert_eq!(scene.store().roots().unwrap().len(), files.len());
    std::thread::scope(|scope| {
        for file in &files[1..] {
            scope.spawn(|| assert!(scene.store().distrust(&file.root).unwrap()));
        }
    });
    assert_eq!(scene.store().roots().unwrap(), [files[0].root.clone()]);
}

#[test]
#[cfg(unix)]
fn a_store_that_others_can_write_is_told_by_doctor() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new("hints.mode = 'hot'");
    scene.store().trust(&scene.file()).unwrap();
    assert_eq!(scene.store().problem(), None);
    let store = scene.store();
    fs::set_permissions(store.path().unwrap(), fs::Permissions::from_mode(0o620)).unwrap();
    let problem = scene.store().problem().unwrap();
    assert!(problem.contains("others can write it"), "{problem}");
    let doctor = scene.run(&["doctor"]);
    let told = String::from_utf8_lossy(&doctor.stdout);
    assert!(!doctor.status.success() && told.contains("others can write it"), "{told}");
}
