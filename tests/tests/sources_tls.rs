//! TLS with profiling servers: what is believed, what is not, and the sentence that says why. Each
//! over gRPC-web, against the server of `perflens_tests::parca`, and over gRPC itself, against the
//! real one where it is to answer.

use std::path::Path;

use expect_test::{Expect, expect};
use perflens_tests::cli::{Output, Run};
use perflens_tests::fetch::seconds_ago;
use perflens_tests::mini::Mini;
use perflens_tests::parca::{FakeParca, RealParca, wait_for};
use perflens_tests::tls::{Authority, Certificate, Front, Holds};
use tempfile::TempDir;

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta";
const PROFILE: &str = "
    cpu/nanoseconds
    !period cpu/nanoseconds 10_000_000
    !duration 10_000_000_000
    main.go:10 main.main; work.go:4 work.do = 40_000_000
";

/// A machine with its settings.
struct Machine(TempDir);

impl Machine {
    /// Trusts an authority if there is one, and has a certificate of its own if there is one.
    fn new(address: &str, trusts: Option<&Authority>, shows: Option<&Certificate>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut config = format!("[source]\naddress = \"{address}\"\n");
        let mut set = |name: &str, path: &Path| {
            config.extend([name, " = \"", path.to_str().expect("it is text"), "\"\n"]);
        };
        if let Some(authority) = trusts {
            set("caFile", &authority.write_to(folder.path()));
        }
        if let Some(certificate) = shows {
            let [certificate, key] = certificate.write_to(folder.path());
            set("certificateFile", &certificate);
            set("keyFile", &key);
        }
        std::fs::write(folder.path().join("config.toml"), config).expect("writing a file");
        Self(folder)
    }

    fn add(&self, line: &str) {
        let path = self.0.path().join("config.toml");
        let text = std::fs::read_to_string(&path).expect("reading a file") + line + "\n";
        std::fs::write(path, text).expect("writing a file");
    }

    fn fetch(&self, more: &[&str]) -> Output {
        Run::new(["fetch", CPU, "-o", "out.pb.gz"])
            .args(more.iter().copied())
            .env("PERFLENS_CONFIG", self.0.path().join("config.toml"))
            .output()
    }

    fn succeeds(&self, more: &[&str]) {
        let output = self.fetch(more);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
    }
}

/// What is said by each transport, without ports.
fn said(machine: &Machine) -> String {
    let without_port = |text: &str| {
        let (before, rest) = text.split_once("127.0.0.1:").expect("it names the server");
        format!("{before}127.0.0.1:PORT{}", rest.trim_start_matches(|character: char| character.is_ascii_digit()))
    };
    let mut said = String::new();
    for (name, more) in [("gRPC-web", &[][..]), ("gRPC", &["--grpc"][..])] {
        let output = machine.fetch(more);
        assert_eq!(output.code, Some(1), "{name}: {}", output.stdout);
        said.extend([name, ": ", &without_port(&output.stderr)]);
    }
    said
}

fn fails(machine: &Machine, expect: &Expect) {
    expect.assert_eq(&said(machine));
}

fn https(front: &Front) -> String {
    format!("https://{}", front.address())
}

fn parca() -> FakeParca {
    let parca = FakeParca::start();
    parca.parca().store("process_cpu", &[], seconds_ago(60), PROFILE);
    parca
}

/// The fake one speaks HTTP/1.1 alone, and nobody gets as far as to ask it over gRPC.
const BOTH: &[&str] = &["http/1.1", "h2"];
const WEB: &[&str] = &["http/1.1"];

#[test]
fn the_right_certificates_succeed() {
    let (authority, parca) = (Authority::new("ours"), parca());
    let server = authority.issue(&["127.0.0.1", "localhost"], Holds::Now);
    let front = Front::start(&parca.http.address(), &server, None, WEB);
    Machine::new(&https(&front), Some(&authority), None).succeeds(&[]);
    // The option does what the setting does; another address has no settings.
    let machine = Machine::new("https://elsewhere.example", Some(&authority), None);
    let ca = machine.0.path().join("ca.pem");
    machine.succeeds(&["--server", &https(&front), "--ca-file", ca.to_str().expect("it is text")]);
    let by_name = https(&front).replace("127.0.0.1", "localhost");
    Machine::new(&by_name, Some(&authority), None).succeeds(&[]);
    // Who wants to know us gets to know us.
    let people = Authority::new("people");
    let front = Front::start(&parca.http.address(), &server, Some(&people), WEB);
    let own = people.issue(&["me"], Holds::Now);
    Machine::new(&https(&front), Some(&authority), Some(&own)).succeeds(&[]);
}

#[test]
fn the_right_certificates_succeed_with_the_real_server() {
    let Some(parca) = RealParca::start(&[]) else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("pushed.pb.gz");
    Mini::parse(&PROFILE.replace("!period", &format!("!time {}\n!period", seconds_ago(60)))).write_to(&file);
    let push = ["push", file.to_str().expect("it is text"), "--server", &parca.url(), "--name", "process_cpu"];
    let output = Run::new(push).output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);

    let (authority, people) = (Authority::new("ours"), Authority::new("people"));
    let server = authority.issue(&["127.0.0.1"], Holds::Now);
    let own = people.issue(&["me"], Holds::Now);
    let behind = parca.url().replace("http://", "");
    for (wants, shows) in [(None, None), (Some(&people), Some(&own))] {
        let front = Front::start(&behind, &server, wants, BOTH);
        let machine = Machine::new(&https(&front), Some(&authority), shows);
        wait_for("what was pushed is there", &|| machine.fetch(&[]).code == Some(0));
        machine.succeeds(&["--grpc"]);
    }
}

#[test]
fn certificates_that_are_not_believed_are_told_apart() {
    let (authority, parca) = (Authority::new("ours"), parca());
    let behind = parca.http.address();
    let front = |names: &[&str], holds| Front::start(&behind, &authority.issue(names, holds), None, BOTH);
    let good = front(&["127.0.0.1"], Holds::Now);
    fails(
        &Machine::new(&https(&good), None, None),
        &expect![[r#"
        gRPC-web: perflens: 127.0.0.1:PORT and TLS: its certificate is from an authority that is not known here; if it is yours, set source.caFile to the authority's own certificate
        gRPC: perflens: 127.0.0.1:PORT and TLS: its certificate is from an authority that is not known here; if it is yours, set source.caFile to the authority's own certificate
    "#]],
    );
    // Another authority of the same name.
    fails(
        &Machine::new(&https(&good), Some(&Authority::new("ours")), None),
        &expect![[r#"
            gRPC-web: perflens: 127.0.0.1:PORT and TLS: its certificate is from an authority that is not known here; if it is yours, set source.caFile to the authority's own certificate
            gRPC: perflens: 127.0.0.1:PORT and TLS: its certificate is from an authority that is not known here; if it is yours, set source.caFile to the authority's own certificate
        "#]],
    );
    let trusting = |front: &Front| Machine::new(&https(front), Some(&authority), None);
    fails(
        &trusting(&front(&["127.0.0.1"], Holds::Before)),
        &expect![[r#"
        gRPC-web: perflens: 127.0.0.1:PORT and TLS: its certificate has expired, at 2021-01-01T00:00:00Z; whoever runs it has to renew it, unless the clock of this machine is wrong
        gRPC: perflens: 127.0.0.1:PORT and TLS: its certificate has expired, at 2021-01-01T00:00:00Z; whoever runs it has to renew it, unless the clock of this machine is wrong
    "#]],
    );
    fails(
        &trusting(&front(&["127.0.0.1"], Holds::Later)),
        &expect![[r#"
        gRPC-web: perflens: 127.0.0.1:PORT and TLS: its certificate is not valid before 2100-01-01T00:00:00Z; is the clock of this machine right?
        gRPC: perflens: 127.0.0.1:PORT and TLS: its certificate is not valid before 2100-01-01T00:00:00Z; is the clock of this machine right?
    "#]],
    );
    fails(
        &trusting(&front(&["parca.example", "10.0.0.7"], Holds::Now)),
        &expect![[r#"
        gRPC-web: perflens: 127.0.0.1:PORT and TLS: its certificate is for parca.example, 10.0.0.7, not for 127.0.0.1; use a name that it is for
        gRPC: perflens: 127.0.0.1:PORT and TLS: its certificate is for parca.example, 10.0.0.7, not for 127.0.0.1; use a name that it is for
    "#]],
    );
    // Nobody was asked anything.
    assert_eq!(parca.http.asked().len(), 0);
}

#[test]
fn a_server_that_wants_a_certificate_says_so() {
    let (authority, people, parca) = (Authority::new("ours"), Authority::new("people"), parca());
    let server = authority.issue(&["127.0.0.1"], Holds::Now);
    let front = Front::start(&parca.http.address(), &server, Some(&people), BOTH);
    let machine = |shows: Option<&Certificate>| Machine::new(&https(&front), Some(&authority), shows);
    fails(
        &machine(None),
        &expect![[r#"
            gRPC-web: perflens: 127.0.0.1:PORT and TLS: it wants a certificate of yours; set source.certificateFile and source.keyFile
            gRPC: perflens: 127.0.0.1:PORT and TLS: it wants a certificate of yours; set source.certificateFile and source.keyFile
        "#]],
    );
    fails(
        &machine(Some(&authority.issue(&["me"], Holds::Now))),
        &expect![[r#"
            gRPC-web: perflens: 127.0.0.1:PORT and TLS: it does not believe the certificate of source.certificateFile (UnknownCA); ask for another one
            gRPC: perflens: 127.0.0.1:PORT and TLS: it does not believe the certificate of source.certificateFile (UnknownCA); ask for another one
        "#]],
    );
    fails(
        &machine(Some(&people.issue(&["me"], Holds::Before))),
        &expect![[r#"
            gRPC-web: perflens: 127.0.0.1:PORT and TLS: it does not believe the certificate of source.certificateFile (CertificateExpired); ask for another one
            gRPC: perflens: 127.0.0.1:PORT and TLS: it does not believe the certificate of source.certificateFile (CertificateExpired); ask for another one
        "#]],
    );
    assert_eq!(parca.http.asked().len(), 0);
}

#[test]
fn plain_against_tls_and_back() {
    let (authority, parca) = (Authority::new("ours"), parca());
    let server = authority.issue(&["127.0.0.1"], Holds::Now);
    let front = Front::start(&parca.http.address(), &server, None, BOTH);
    fails(
        &Machine::new(&format!("http://{}", front.address()), None, None),
        &expect![[r#"
        gRPC-web: perflens: 127.0.0.1:PORT and TLS: it speaks TLS or no HTTP at all, the address says plain HTTP; try https
        gRPC: perflens: 127.0.0.1:PORT and TLS: it speaks TLS or no HTTP at all, the address says plain HTTP; try https
    "#]],
    );
    fails(
        &Machine::new(&format!("https://{}", parca.http.address()), None, None),
        &expect![[r#"
        gRPC-web: perflens: 127.0.0.1:PORT and TLS: it speaks plain HTTP, the address says TLS; write http instead of https, or use another port
        gRPC: perflens: 127.0.0.1:PORT and TLS: it speaks plain HTTP, the address says TLS; write http instead of https, or use another port
    "#]],
    );
    // A server of gRPC-web alone.
    let front = Front::start(&parca.http.address(), &server, None, WEB);
    let output = Machine::new(&https(&front), Some(&authority), None).fetch(&["--grpc"]);
    assert!(output.stderr.contains("it has no HTTP/2"), "{}", output.stderr);
}

#[test]
fn nothing_is_checked_only_where_that_was_set() {
    let (authority, parca) = (Authority::new("ours"), parca());
    let server = authority.issue(&["other.example"], Holds::Before);
    let front = Front::start(&parca.http.address(), &server, None, WEB);
    let machine = Machine::new(&https(&front), None, None);
    assert_eq!(machine.fetch(&[]).code, Some(1));
    machine.add("verifyTls = false");
    machine.succeeds(&[]);
    let output = machine.fetch(&["--grpc"]);
    assert!(output.stderr.contains("certificates can be left unchecked over gRPC-web only"), "{}", output.stderr);
}

#[test]
fn files_that_are_no_certificates_are_named() {
    let (authority, parca) = (Authority::new("ours"), parca());
    let machine = Machine::new(&format!("https://{}", parca.http.address()), None, None);
    let folder = machine.0.path().to_str().expect("it is text").to_owned();
    let said = |machine: &Machine| said_without(machine, &folder);
    machine.add(&format!("caFile = \"{folder}/none.pem\""));
    expect![[r#"
        perflens: FOLDER/none.pem: No such file or directory (os error 2)
    "#]]
    .assert_eq(&said(&machine));
    std::fs::write(machine.0.path().join("none.pem"), "nothing").expect("writing a file");
    expect![[r#"
        perflens: FOLDER/none.pem: it holds no certificates in PEM
    "#]]
    .assert_eq(&said(&machine));
    authority.write_to(machine.0.path());
    let machine_of = |line: &str| {
        let machine = Machine::new(&format!("https://{}", parca.http.address()), None, None);
        machine.add(line);
        machine
    };
    let alone = machine_of(&format!("certificateFile = \"{folder}/ca.pem\""));
    expect![[r#"
        perflens: source.certificateFile and source.keyFile need each other
    "#]]
    .assert_eq(&said(&alone));
    let without_key = machine_of(&format!("certificateFile = \"{folder}/ca.pem\"\nkeyFile = \"{folder}/ca.pem\""));
    expect![[r#"
        perflens: FOLDER/ca.pem: it is no certificate with a key in PEM
    "#]]
    .assert_eq(&said(&without_key));
    assert_eq!(parca.http.asked().len(), 0);
}

fn said_without(machine: &Machine, folder: &str) -> String {
    let output = machine.fetch(&[]);
    assert_eq!(output.code, Some(1), "{}", output.stdout);
    output.stderr.replace(folder, "FOLDER")
}
