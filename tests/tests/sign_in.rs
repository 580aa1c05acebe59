//! Signing in, staying signed in, and being told why not: the command line against a cloud that
//! is as strict as such clouds are.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use expect_test::{Expect, expect};
use perflens_tests::cli::{Output, Run, binary};
use perflens_tests::http::{Does, HttpServer};
use perflens_tests::parca::{FakeParca, Identity};
use tempfile::TempDir;

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta";
const PROFILE: &str = "
    cpu/nanoseconds
    !period cpu/nanoseconds 10_000_000
    !duration 10_000_000_000
    main.go:11 main.main = 40_000_000
";

/// A cloud with one project, and a machine to sign in from.
struct Cloud {
    cloud: FakeParca,
    home: TempDir,
}

impl Cloud {
    fn start() -> Self {
        let cloud = FakeParca::start();
        let url = cloud.http.url("");
        {
            let mut parca = cloud.parca();
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_nanos();
            parca.store("process_cpu", &[], i64::try_from(now).expect("it is before 2262") - 60_000_000_000, PROFILE);
            parca.projects = vec![("p-1".to_owned(), "shop".to_owned())];
            parca.project = Some("p-1".to_owned());
            let mut identity = Identity::default();
            identity.url = url;
            identity.lasts = Some(3600);
            parca.identity = Some(identity);
        }
        Self { cloud, home: tempfile::tempdir().expect("a temporary folder") }
    }

    fn identity<T>(&self, change: impl FnOnce(&mut Identity) -> T) -> T {
        change(self.cloud.parca().identity.as_mut().expect("it signs people in"))
    }

    fn address(&self) -> String {
        self.cloud.http.url("/api")
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.run_at(&self.address(), arguments)
    }

    fn run_at(&self, address: &str, arguments: &[&str]) -> Output {
        Run::new(arguments.iter().copied())
            .args(["--server", address, "--kind", "polar-signals"])
            .env("XDG_STATE_HOME", self.home.path())
            .env("BROWSER", env!("CARGO_BIN_EXE_fake-browser"))
            .env("DBUS_SESSION_BUS_ADDRESS", "")
            .output()
    }

    fn fetch(&self) -> Output {
        self.run(&["fetch", CPU, "-o", "out.pb.gz"])
    }

    fn secrets(&self) -> PathBuf {
        self.home.path().join("perflens/secrets.json")
    }

    /// Standard error without what differs from run to run.
    fn said(&self, output: &Output) -> String {
        let port = self.cloud.http.address().rsplit(':').next().expect("a port").to_owned();
        let text = output.stderr.replace(&port, "PORT").replace(self.home.path().to_str().expect("it is text"), "HOME");
        let lines: Vec<&str> = text.lines().filter(|line| !line.contains("/login/cli?")).collect();
        lines.join("\n") + "\n"
    }

    fn signed_in() -> Self {
        let cloud = Self::start();
        let output = cloud.run(&["login"]);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        cloud
    }

    /// Lets the sign-in end in a moment, by the clock of this machine.
    fn ends_soon(&self) {
        self.change_secrets(|grant| grant["expires_at"] = serde_json::json!(1));
    }

    fn change_secrets(&self, change: impl FnOnce(&mut serde_json::Value)) {
        let mut content: serde_json::Value =
            serde_json::from_slice(&std::fs::read(self.secrets()).expect("reading secrets")).expect("they are JSON");
        let origin = self.cloud.http.url("");
        change(&mut content["origins"][&origin]);
        std::fs::write(self.secrets(), content.to_string()).expect("writing secrets");
    }
}

fn fails(cloud: &Cloud, output: &Output, expect: &Expect) {
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    expect.assert_eq(&cloud.said(output));
}

#[test]
fn the_first_sign_in_brings_a_project_and_data() {
    let cloud = Cloud::start();
    fails(
        &cloud,
        &cloud.fetch(),
        &expect![[r#"
        perflens: 127.0.0.1:PORT wants you to sign in: invalid token; run perflens login
    "#]],
    );
    let output = cloud.run(&["login"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    expect![[r#"
        signed in to http://127.0.0.1:PORT
        there is no secret store here that answers, so the sign-in is kept in HOME/perflens/secrets.json, which only you can read
        project shop of Acme (p-1)
    "#]]
    .assert_eq(&cloud.said(&output));
    assert_eq!(cloud.fetch().code, Some(0));
    let status = cloud.run(&["status"]);
    assert!(
        status.stdout.contains("signed in, kept in a file") && status.stdout.contains("project  p-1"),
        "{}",
        status.stdout
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(cloud.secrets()).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // Nothing secret is printed, and no other origin gets it: another port is another server.
    let other = FakeParca::start();
    let output = cloud.run_at(&other.http.url("/api"), &["fetch", CPU, "-o", "out.pb.gz"]);
    assert!(!output.stderr.contains("access-") && !status.stdout.contains("access-"));
    assert!(!other.http.asked().is_empty());
    assert!(other.http.asked().iter().all(|asked| !asked.headers.contains_key("authorization")));
}

#[test]
fn a_redirect_to_another_origin_gets_no_token() {
    let cloud = Cloud::signed_in();
    let thief = HttpServer::start(|_| Does::ok("text/plain", ""));
    let to = thief.url("/");
    cloud.cloud.parca().faults.push_back(Does::status(307, "text/plain", "").header("location", &to));
    let output = cloud.fetch();
    assert!(output.stderr.contains("redirects are not followed"), "{}", output.stderr);
    assert_eq!(thief.asked().len(), 0);
}

#[test]
fn a_token_that_ends_is_refreshed_once_and_rotated() {
    let cloud = Cloud::signed_in();
    let before = std::fs::read_to_string(cloud.secrets()).unwrap();
    cloud.ends_soon();
    assert_eq!(cloud.fetch().code, Some(0));
    assert_eq!(cloud.identity(|it| it.refreshes), 1);
    assert_ne!(std::fs::read_to_string(cloud.secrets()).unwrap(), before);
    assert_eq!(cloud.fetch().code, Some(0));
    assert_eq!(cloud.identity(|it| it.refreshes), 1);
}

#[test]
fn processes_that_refresh_at_once_do_it_once() {
    let cloud = Cloud::signed_in();
    cloud.ends_soon();
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..6).map(|_| scope.spawn(|| cloud.fetch())).collect();
        for run in runs {
            let output = run.join().unwrap();
            assert_eq!(output.code, Some(0), "{}", output.stderr);
        }
    });
    assert_eq!(cloud.identity(|it| it.refreshes), 1);
}

#[test]
fn a_dead_grant_is_asked_for_once() {
    let cloud = Cloud::signed_in();
    cloud.identity(Identity::revoke_all);
    cloud.ends_soon();
    fails(
        &cloud,
        &cloud.fetch(),
        &expect![[r#"
        perflens: 127.0.0.1:PORT wants you to sign in: the sign-in has ended (invalid_grant); run perflens login
    "#]],
    );
    for _ in 0..3 {
        fails(
            &cloud,
            &cloud.fetch(),
            &expect![[r#"
            perflens: 127.0.0.1:PORT wants you to sign in: the sign-in has ended; run perflens login
        "#]],
        );
    }
    assert_eq!(cloud.identity(|it| it.refreshes), 1);
    assert_eq!(cloud.run(&["login"]).code, Some(0));
    assert_eq!(cloud.fetch().code, Some(0));
}

#[test]
fn a_token_that_is_refused_is_refreshed_and_tried_once_more() {
    // As after the server's clock, or its mind, has changed.
    let cloud = Cloud::signed_in();
    cloud.identity(Identity::forget_access);
    assert_eq!(cloud.fetch().code, Some(0));
    assert_eq!(cloud.identity(|it| it.refreshes), 1);
}

#[test]
fn a_server_that_does_not_say_how_long_is_believed_until_it_refuses() {
    let cloud = Cloud::start();
    cloud.identity(|it| it.lasts = None);
    assert_eq!(cloud.run(&["login"]).code, Some(0));
    assert_eq!((cloud.fetch().code, cloud.identity(|it| it.refreshes)), (Some(0), 0));
    cloud.identity(Identity::forget_access);
    assert_eq!((cloud.fetch().code, cloud.identity(|it| it.refreshes)), (Some(0), 1));
}

#[test]
fn a_clock_that_is_behind_the_servers_throws_no_fresh_token_away() {
    for ahead in [120, 100_000] {
        let cloud = Cloud::start();
        cloud.identity(|it| it.clock_ahead = ahead);
        assert_eq!(cloud.run(&["login"]).code, Some(0));
        assert_eq!((cloud.fetch().code, cloud.identity(|it| it.refreshes)), (Some(0), 0));
        // Nor one that has just been refreshed.
        cloud.ends_soon();
        assert_eq!((cloud.fetch().code, cloud.identity(|it| it.refreshes)), (Some(0), 1));
        assert_eq!((cloud.fetch().code, cloud.identity(|it| it.refreshes)), (Some(0), 1));
    }
}

#[test]
fn what_a_proxy_says_is_no_dead_grant() {
    let cloud = Cloud::signed_in();
    cloud.ends_soon();
    cloud.identity(|it| it.token_answer = Some(Does::status(502, "text/html", "<title>Bad gateway</title>")));
    fails(
        &cloud,
        &cloud.fetch(),
        &expect![[r#"
        perflens: 127.0.0.1:PORT is too busy: 502 (a web page titled “Bad gateway”); try again later
    "#]],
    );
    cloud.identity(|it| it.token_answer = None);
    assert_eq!(cloud.fetch().code, Some(0));
}

#[test]
fn the_wrong_project_and_no_project_are_told() {
    let cloud = Cloud::signed_in();
    fails(
        &cloud,
        &cloud.run(&["fetch", CPU, "-o", "out.pb.gz", "--project", "p-2"]),
        &expect![[r#"
        perflens: 127.0.0.1:PORT does not let you see this: no access to this project; check the project and what your account or token may do
    "#]],
    );
    let output = cloud.run(&["login", "--project", "p-2"]);
    assert!(
        output.stderr.contains("there is no project `p-2` in your account; there are shop of Acme (p-1)"),
        "{}",
        output.stderr
    );
    cloud.cloud.parca().projects.push(("p-3".to_owned(), "other".to_owned()));
    let output = cloud.run(&["login"]);
    assert!(output.stderr.contains("choose a project with perflens login --project ID"), "{}", output.stderr);
    cloud.cloud.parca().projects.clear();
    let output = cloud.run(&["login"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("there is no project in your account"), "{}", output.stderr);
}

#[test]
fn every_way_in_that_ends_badly_is_a_sentence() {
    let login = |change: &dyn Fn(&mut Identity), arguments: &[&str], expect: &Expect| {
        let cloud = Cloud::start();
        cloud.identity(change);
        fails(&cloud, &cloud.run(&[&["login"], arguments].concat()), expect);
        assert!(!cloud.secrets().exists());
    };
    login(
        &|it| it.denies = Some("you <b>said</b> no".to_owned()),
        &[],
        &expect![[r#"
        perflens: the sign-in page wants you to sign in: you <b>said</b> no; run perflens login
    "#]],
    );
    login(
        &|it| it.token_answer = Some(Does::ok("application/json", "{}")),
        &[],
        &expect![[r#"
        perflens: 127.0.0.1:PORT does not answer as such a server does: its answer holds no token
    "#]],
    );
    login(
        &|it| it.token_answer = Some(Does::status(400, "text/plain", "nope")),
        &[],
        &expect![[r#"
        perflens: 127.0.0.1:PORT does not answer as such a server does: its answer holds no token
    "#]],
    );
    login(
        &|it| it.token_answer = Some(Does::ok("text/html", "<title>Corp</title>")),
        &[],
        &expect![[r#"
        perflens: 127.0.0.1:PORT does not answer as such a server does: it sent a web page titled “Corp”
    "#]],
    );
    // Metadata that leads in the open to another machine is not obeyed.
    login(
        &|it| it.url = "http://identity.example".to_owned(),
        &[],
        &expect![[r#"
        perflens: a token is not sent to identity.example in the open; use an https address, or remove the token
    "#]],
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let cloud = Cloud::start();
    let output = cloud.run(&["login", "--port", &port]);
    assert!(output.stderr.contains("can't be listened on for the browser"), "{}", output.stderr);
    let plain = FakeParca::start();
    let output = cloud.run_at(&plain.http.url(""), &["login"]);
    assert!(output.stderr.contains("it does not say how to sign in"), "{}", output.stderr);
}

#[test]
fn a_code_can_be_pasted() {
    let cloud = Cloud::start();
    let mut command = Command::new(binary());
    command
        .args(["login", "--paste", "--server", &cloud.address(), "--kind", "polar-signals"])
        .env("XDG_STATE_HOME", cloud.home.path())
        .env("HOME", cloud.home.path())
        .env("DBUS_SESSION_BUS_ADDRESS", "");
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let shown = lines.next().unwrap().unwrap();
    let url = shown.split_whitespace().last().unwrap();
    let code = get(url);
    writeln!(child.stdin.take().unwrap(), "{code}").unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(child.wait().unwrap().success(), "{rest:?}");
    assert_eq!(cloud.fetch().code, Some(0));
}

/// The body at an address.
fn get(url: &str) -> String {
    use std::io::Read;
    let (host, path) =
        url.strip_prefix("http://").expect("the cloud answers").split_once('/').expect("the cloud answers");
    let mut stream = std::net::TcpStream::connect(host).expect("the cloud answers");
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("the cloud answers");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the cloud answers");
    answer.split("\r\n\r\n").nth(1).expect("the cloud answers").to_owned()
}

#[test]
fn another_device_can_sign_in() {
    let cloud = Cloud::start();
    let output = cloud.run(&["login", "--device"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stderr.contains("on any device and enter WDJB-MJHT"), "{}", output.stderr);
    assert_eq!(cloud.fetch().code, Some(0));
}

#[test]
fn service_tokens_come_from_standard_input_or_the_environment() {
    let cloud = Cloud::start();
    let token = cloud.identity(Identity::service_token);
    let base = |arguments: &[&str]| {
        Run::new(arguments.iter().copied())
            .args(["--server", &cloud.address(), "--kind", "polar-signals", "--project", "p-1"])
            .env("XDG_STATE_HOME", cloud.home.path())
            .env("DBUS_SESSION_BUS_ADDRESS", "")
    };
    let fetch = || base(&["fetch", CPU, "-o", "out.pb.gz"]);
    // The environment's is for the cloud itself unless it says for whom.
    let output = fetch().env("PERFLENS_TOKEN", &token).output();
    assert!(output.stderr.contains("wants you to sign in"), "{}", output.stderr);
    let output = fetch().env("PERFLENS_TOKEN", &token).env("PERFLENS_TOKEN_FOR", cloud.cloud.http.url("")).output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let output = base(&["login", "--token"]).stdin(format!("{token}\n")).output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert_eq!(fetch().output().code, Some(0));
    // A token that is refused can't be refreshed, and nobody tries.
    cloud.identity(Identity::forget_access);
    let output = fetch().output();
    assert!(output.stderr.contains("wants you to sign in: invalid token"), "{}", output.stderr);
    assert_eq!(cloud.identity(|it| it.refreshes), 0);
}

#[test]
fn signing_out_removes_and_revokes() {
    let cloud = Cloud::signed_in();
    let output = cloud.run(&["logout"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stderr.contains("the server has ended the sign-in as well"), "{}", output.stderr);
    assert_eq!(cloud.identity(|it| it.revoked.len()), 1);
    assert!(!std::fs::read_to_string(cloud.secrets()).unwrap().contains("access-"));
    assert_eq!(cloud.run(&["logout"]).code, Some(1));
    assert!(cloud.fetch().stderr.contains("wants you to sign in"));
}

#[cfg(unix)]
#[test]
fn secrets_that_others_can_read_are_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let cloud = Cloud::signed_in();
    std::fs::set_permissions(cloud.secrets(), std::fs::Permissions::from_mode(0o644)).unwrap();
    let output = cloud.fetch();
    assert!(output.stderr.contains("wants you to sign in"), "{}", output.stderr);
    let output = cloud.run(&["login"]);
    assert!(output.stderr.contains("others can read"), "{}", output.stderr);
}

#[test]
fn a_damaged_store_is_an_empty_one() {
    let cloud = Cloud::signed_in();
    write_private(&cloud.secrets(), "{");
    assert!(cloud.fetch().stderr.contains("wants you to sign in"));
    assert_eq!(cloud.run(&["login"]).code, Some(0));
    assert_eq!(cloud.fetch().code, Some(0));
}

fn write_private(path: &Path, text: &str) {
    std::fs::write(path, text).expect("writing a file");
}
