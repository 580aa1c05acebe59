//! The receiver of OpenTelemetry profiles from outside: every version of the protocol through
//! every door, what is refused and how, and what no sender can do to it.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use expect_test::{Expect, expect};
use perflens_tests::cli::{Guard, Report, Run, free_port, peer};
use perflens_tests::http::{Does, HttpServer};
use perflens_tests::mini::Mini;
use perflens_tests::otlp::{
    JSON, METHOD, PATH, PROTOBUF, Receiver, Reply, connect, export, framed, grpc, http, post, read_reply, request,
};
use perflens_tests::pprof;
use prost::Message;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(data(name)).expect("the file is there")
}

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut plain).expect("it is gzip");
    plain
}

/// What does not depend on the way a profile came.
fn answer(report: &Report) -> (Vec<String>, Vec<String>, [i64; 5], u64, Option<i64>) {
    let account = &report.accounting;
    let sums = [account.total, account.with_line, account.no_line, account.no_file, account.unresolved];
    (report.line_costs(), report.function_costs(), sums, report.profile.records, report.profile.samples)
}

/// What the receiver wrote after it was sent something.
fn received(send: impl FnOnce(&Receiver)) -> Report {
    let mut receiver = Receiver::start(&[]);
    send(&receiver);
    let output = receiver.end();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    Run::report(&receiver.written()).args(["--type", "cpu"]).json()
}

fn accepted(reply: &Reply) {
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.grpc_status().is_none_or(|status| status == "0"), "{reply:?}");
}

type Door<'a> = &'a dyn Fn(&Receiver);

#[test]
fn every_version_gives_the_same_through_every_door() {
    let expected = answer(&Run::report(&data("go/profiles/cpu.pb.gz")).json());
    for version in ["1.7", "1.8", "1.9", "1.10"] {
        let name = format!("otlp/cpu.v{version}.otlp.pb");
        let request = bytes(&name);
        let file = answer(&Run::report(&data(&name)).args(["--type", "cpu"]).json());
        assert_eq!(file.0, expected.0, "{version}");
        let doors: [(&str, Door<'_>); 4] = [
            ("gRPC", &|to| accepted(&export(to.grpc, &request))),
            ("HTTP", &|to| accepted(&post(to.http, PROTOBUF, &request))),
            ("gRPC, packed", &|to| {
                let body = framed(&pprof::gzip(&request), true);
                accepted(&grpc(to.grpc, METHOD, &[("grpc-encoding", "gzip")], body));
            }),
            ("HTTP, packed, the other port and path", &|to| {
                let headers = [("Content-Type", PROTOBUF), ("Content-Encoding", "gzip")];
                accepted(&http(to.grpc, "POST", "/v1/profiles", &headers, &pprof::gzip(&request)));
            }),
        ];
        for (door, send) in doors {
            assert_eq!(answer(&received(send)), file, "{version} through {door}");
        }
    }
    let profile = pprof::Profile::decode(&gunzip(&bytes("go/profiles/cpu.pb.gz"))[..]).expect("it is pprof");
    let json = request(&profile, &[]).to_string();
    let through_json = received(|to| {
        let reply = post(to.http, JSON, json.as_bytes());
        accepted(&reply);
        assert_eq!((reply.headers["content-type"].as_str(), reply.text().as_str()), (JSON, "{}"));
    });
    assert_eq!(answer(&through_json), expected);
}

#[test]
fn an_original_in_json_is_read_where_lines_were_lost() {
    let mini = Mini::parse("cpu/nanoseconds\n src/main.rs:10 main = 30");
    let mut lost = Mini::parse("cpu/nanoseconds\n ? main = 30").profile;
    lost.location[0].line[0].line = 0;
    let mut json = request(&lost, &[]);
    let profile = &mut json["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0];
    profile["originalPayloadFormat"] = "pprof".into();
    profile["originalPayload"] = base64(&mini.gzip()).into();
    let report = received(|to| accepted(&post(to.http, JSON, json.to_string().as_bytes())));
    assert_eq!(report.line_costs(), ["src/main.rs:10 30 30"]);
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let of = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = of(0) << 16 | of(1) << 8 | of(2);
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= chunk.len() { letter.into() } else { '=' });
        }
    }
    text
}

fn small() -> Vec<u8> {
    bytes("otlp/mutex.v1.9.otlp.pb")
}

/// What a reply tells, without what is the same in all of them.
fn told(reply: &Reply) -> String {
    let header = |name: &str| reply.headers.get(name).map(|value| format!(" {name}={value}")).unwrap_or_default();
    let body: String = reply.text().chars().filter(|letter| !letter.is_control()).collect();
    let grpc = ["grpc-status", "grpc-message", "grpc-accept-encoding", "allow"].map(header).concat();
    let body = if reply.grpc_status().is_some() { String::new() } else { format!(" {body}") };
    format!("{}{grpc}{body}\n", reply.status)
}

fn check(told: &str, expect: &Expect) {
    expect.assert_eq(told);
}

#[test]
fn what_is_not_meant_for_it_is_refused_over_http() {
    let mut receiver = Receiver::start(&[]);
    let port = receiver.http;
    let ask = |method, path, headers: &[(&str, &str)], body: &[u8]| told(&http(port, method, path, headers, body));
    let kind = ("Content-Type", PROTOBUF);
    let small = small();
    let mut all = String::new();
    for (headers, body) in [
        (&[kind, ("Origin", "http://localhost:3000")][..], &small[..]),
        (&[kind, ("Origin", "null")], &small),
        (&[kind, ("Host", "evil.example")], &small),
        (&[kind, ("Host", "127.0.0.1.evil.example:4318")], &small),
        (&[("Content-Type", "text/plain")], &small),
        (&[("Content-Type", "application/x-www-form-urlencoded")], &small),
        (&[("Content-Type", "application/grpc")], &small),
        (&[], &small),
        (&[kind, ("Content-Type", JSON)], &small),
        (&[kind, ("Content-Encoding", "br")], &small),
        (&[kind, ("Content-Encoding", "gzip")], &small),
        (&[kind, ("Content-Length", "67108865")], b""),
        (&[kind, ("Content-Length", "18446744073709551615")], b""),
        (&[kind], b"garbage"),
        (&[("Content-Type", JSON)], b"garbage"),
        (&[("Content-Type", JSON)], &small),
    ] {
        all += &ask("POST", PATH, headers, body);
    }
    all += &ask("GET", PATH, &[], b"");
    all += &ask("OPTIONS", PATH, &[("Access-Control-Request-Method", "POST")], b"");
    all += &ask("POST", "/v1/traces", &[kind], b"");
    check(
        &all,
        &expect![[r#"
        403 !requests of web pages are refused
        403 !requests of web pages are refused
        403 $this receiver is for localhost alone
        403 $this receiver is for localhost alone
        415 {"code":3,"message":"the content type is none of application/grpc (on HTTP/2), application/x-protobuf and application/json"}
        415 {"code":3,"message":"the content type is none of application/grpc (on HTTP/2), application/x-protobuf and application/json"}
        415 {"code":3,"message":"the content type is none of application/grpc (on HTTP/2), application/x-protobuf and application/json"}
        415 {"code":3,"message":"the content type is none of application/grpc (on HTTP/2), application/x-protobuf and application/json"}
        415 {"code":3,"message":"the content type is none of application/grpc (on HTTP/2), application/x-protobuf and application/json"}
        415 "of compressions only gzip is known
        400 .the request can't be read: its gzip is damaged
        413 !the request is larger than 64 MiB
        431 
        400 Bthe request can't be read: it ends inside a message (read as otlp)
        400 {"code":3,"message":"the request can't be read: its JSON is not what it should be: expected value at line 1 column 1 (read as otlp)"}
        400 {"code":3,"message":"the request can't be read: its JSON is not what it should be: expected value at line 2 column 1 (read as otlp)"}
        405 allow=POST profiles are sent with POST
        405 allow=POST profiles are sent with POST
        404 Fonly profiles are received here, at /v1development/profiles or by gRPC
    "#]],
    );
    // It still takes what is meant for it, under every name of this machine.
    for host in ["localhost", "LOCALHOST:4318", "127.0.0.1", "[::1]:1"] {
        accepted(&http(port, "POST", PATH, &[("Content-Type", "application/x-protobuf; x=y"), ("Host", host)], &small));
    }
    accepted(&post(port, PROTOBUF, b""));
    let output = receiver.end();
    check(
        &output.stderr.lines().filter(|line| line.contains("refused")).collect::<String>(),
        &expect![
            "Requests that were refused: 4 damaged, 2 for another host, 2 from a web page, 3 not for profiles, 1 of another compression, 5 of another content type, 1 too large."
        ],
    );
}

#[test]
fn what_is_not_meant_for_it_is_refused_over_grpc() {
    let receiver = Receiver::start(&[]);
    let port = receiver.grpc;
    let frame = framed(&small(), false);
    let mut all = String::new();
    let mut ask = |method: &str, headers: &[(&str, &str)], body: &[u8]| {
        all += &told(&grpc(port, method, headers, body.to_vec()));
    };
    ask(METHOD, &[("origin", "http://localhost")], &frame);
    ask(METHOD, &[(":authority", "evil.example:4317")], &frame);
    ask("/opentelemetry.proto.collector.trace.v1.TraceService/Export", &[], &frame);
    ask(METHOD, &[("grpc-encoding", "br")], &frame);
    // Compressed, it says, but not how.
    ask(METHOD, &[], &framed(&small(), true));
    ask(METHOD, &[("grpc-encoding", "gzip")], &framed(b"no gzip", true));
    // It announces more than may come, or something else than comes.
    ask(METHOD, &[], &[0, 0x04, 0, 0, 1, 0]);
    ask(METHOD, &[], &frame[..frame.len() - 1]);
    ask(METHOD, &[], &[&frame[..], &frame[..]].concat());
    ask(METHOD, &[], b"");
    ask(METHOD, &[], &framed(b"garbage", false));
    ask(METHOD, &[("content-type", "application/grpc+json")], &frame);
    check(
        &all,
        &expect![[r#"
        200 grpc-status=7 grpc-message=requests of web pages are refused
        200 grpc-status=7 grpc-message=this receiver is for localhost alone
        200 grpc-status=12 grpc-message=only profiles are received here, at /v1development/profiles or by gRPC
        200 grpc-status=12 grpc-message=of compressions only gzip is known grpc-accept-encoding=identity,gzip
        200 grpc-status=12 grpc-message=of compressions only gzip is known grpc-accept-encoding=identity,gzip
        200 grpc-status=3 grpc-message=the request can't be read: its gzip is damaged
        200 grpc-status=8 grpc-message=the request is larger than 64 MiB
        200 grpc-status=3 grpc-message=the request can't be read: its frame is not one message
        200 grpc-status=3 grpc-message=the request can't be read: its frame is not one message
        200 grpc-status=3 grpc-message=the request can't be read: its frame is not one message
        200 grpc-status=3 grpc-message=the request can't be read: it ends inside a message (read as otlp)
        404 Fonly profiles are received here, at /v1development/profiles or by gRPC
    "#]],
    );
    accepted(&export(port, &small()));
    // HTTP/2 without gRPC is HTTP.
    accepted(&grpc(receiver.http, PATH, &[("content-type", PROTOBUF)], small()));
}

/// The most memory that a process has held, in MiB.
#[cfg(target_os = "linux")]
fn peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("the system says it");
    let kibibytes: u64 = line.split_whitespace().nth(1).and_then(|it| it.parse().ok()).expect("a number");
    kibibytes >> 10
}

#[cfg(target_os = "linux")]
#[test]
fn bombs_and_floods_of_bytes_are_bounded() {
    let receiver = Receiver::start(&[]);
    let bomb = pprof::gzip(&vec![0; 512 << 20]);
    assert!(bomb.len() < 1 << 20);
    let headers = [("Content-Type", PROTOBUF), ("Content-Encoding", "gzip")];
    let reply = http(receiver.http, "POST", PATH, &headers, &bomb);
    assert_eq!(reply.status, 413, "{reply:?}");
    let reply = grpc(receiver.grpc, METHOD, &[("grpc-encoding", "gzip")], framed(&bomb, true));
    assert_eq!(reply.grpc_status(), Some("8"), "{reply:?}");
    // Without a length, it is counted as it comes.
    let mut stream = connect(receiver.http);
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {PROTOBUF}\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mebibyte = vec![b'x'; 1 << 20];
    for _ in 0..80 {
        if stream
            .write_all(b"100000\r\n")
            .and_then(|()| stream.write_all(&mebibyte))
            .and_then(|()| stream.write_all(b"\r\n"))
            .is_err()
        {
            break;
        }
    }
    assert_eq!(status_of(stream), 413);
    // The largest there may be, full of nothing.
    let within = |field: u8, body: Vec<u8>| {
        let mut message = vec![field];
        prost::encoding::encode_varint(body.len() as u64, &mut message);
        [message, body].concat()
    };
    let empty = || b"\x0a\x00".repeat(31 << 20);
    for content in [
        vec![0; 64 << 20],
        empty(),
        // Scopes, attributes of a resource, entries of tables, lines of a location.
        within(0x0a, b"\x12\x00".repeat(31 << 20)),
        within(0x0a, within(0x0a, empty())),
        within(0x12, empty()),
        within(0x12, within(0x12, b"\x1a\x00".repeat(31 << 20))),
        // A list of nothing in the value of an attribute.
        within(0x12, within(0x32, within(0x12, within(0x2a, empty())))),
    ] {
        let reply = post(receiver.http, PROTOBUF, &content);
        assert_eq!(reply.status, 400, "{reply:?}");
    }
    let peak = peak(receiver.pid());
    assert!(peak < 600, "{peak} MiB");
    accepted(&export(receiver.grpc, &small()));
}

/// The status; that of what was refused when the connection was closed so hard that it got lost.
fn status_of(mut stream: std::net::TcpStream) -> u16 {
    let mut first = [0];
    if matches!(stream.peek(&mut first), Ok(1)) { read_reply(&mut stream).status } else { 413 }
}

#[test]
fn those_that_send_nothing_keep_nobody_waiting() {
    let receiver = Receiver::start(&[]);
    let silent: Vec<_> = (0..40).map(|_| connect(receiver.http)).collect();
    let slow: Vec<_> = (0..40)
        .map(|at| {
            let mut stream = connect(receiver.http);
            let head = format!("POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {PROTOBUF}\r\n");
            let half = ["PR", "POST /v1", head.as_str(), &format!("{head}Content-Length: 60000000\r\n\r\nabc")][at % 4]
                .to_owned();
            stream.write_all(half.as_bytes()).unwrap();
            stream
        })
        .collect();
    accepted(&export(receiver.grpc, &small()));
    accepted(&post(receiver.http, PROTOBUF, &small()));
    // Bytes of all kinds are no reason to stop.
    let mut random = pprof::Random(7);
    for _ in 0..50 {
        let mut stream = connect(receiver.grpc);
        let bytes: Vec<u8> = (0..200).flat_map(|_| random.next_u64().to_le_bytes()).collect();
        let _ = stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").and_then(|()| stream.write_all(&bytes));
    }
    accepted(&export(receiver.grpc, &small()));
    // After a while those that never said anything are closed.
    let mut waits = silent.into_iter().next().expect("there are some");
    let mut nothing = [0];
    assert_eq!(waits.read(&mut nothing).expect("it is closed, and in time"), 0);
    drop(slow);
}

#[test]
fn too_many_connections_are_closed_until_there_is_room() {
    let receiver = Receiver::start(&[]);
    let held: Vec<_> = (0..256).map(|_| connect(receiver.http)).collect();
    let mut one_more = connect(receiver.http);
    let mut nothing = [0];
    assert!(matches!(one_more.read(&mut nothing), Ok(0) | Err(_)));
    drop(held);
    let reply = loop {
        let mut stream = connect(receiver.http);
        let head =
            format!("POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {PROTOBUF}\r\nContent-Length: 0\r\n\r\n");
        let mut first = [0];
        if stream.write_all(head.as_bytes()).is_ok() && matches!(stream.peek(&mut first), Ok(1)) {
            break read_reply(&mut stream);
        }
    };
    assert_eq!(reply.status, 200);
}

#[test]
fn a_port_that_is_in_use_is_told_in_a_sentence() {
    let receiver = Receiver::start(&[]);
    let port = receiver.http.to_string();
    let taken = Receiver::start_with(["--grpc-port", "0", "--http-port", &port].map(Into::into));
    let output = taken.expect_err("it can't listen there");
    assert_eq!(output.code, Some(1));
    check(
        &output.stderr.trim().replace(&port, "PORT"),
        &expect![
            "perflens: port PORT for OTLP is in use, perhaps by another window or a collector, so no profiles are received here; close that, or set another --grpc-port and --http-port"
        ],
    );
    // When the first one ends, its ports are free at once.
    drop(receiver);
    let again = Receiver::start_with(["--grpc-port", "0", "--http-port", &port].map(Into::into));
    assert_eq!(again.expect("it is free").http.to_string(), port);
}

fn one(service: &str, function: &str, value: i64) -> Vec<u8> {
    let mini = Mini::parse(&format!("samples/count\n src/main.rs:10 {function} = {value}"));
    request(&mini.profile, &[("service.name", service), ("process.pid", service)]).to_string().into_bytes()
}

#[test]
fn many_small_requests_add_up() {
    let mut receiver = Receiver::start(&[]);
    let (http_port, grpc_port) = (receiver.http, receiver.grpc);
    std::thread::scope(|scope| {
        for sender in 0..4 {
            scope.spawn(move || {
                for at in 0..100 {
                    accepted(&post(http_port, JSON, &one(&format!("s{sender}"), &format!("f{}", at % 10), 1)));
                }
            });
        }
        scope.spawn(move || {
            for _ in 0..50 {
                accepted(&export(grpc_port, &small()));
            }
        });
    });
    let output = receiver.end();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let report = Run::report(&receiver.written()).args(["--type", "samples"]).json();
    assert_eq!(report.profile.total, 400);
    for function in 0..10 {
        assert_eq!(report.function(&format!("f{function}")).costs.flat, 40);
    }
    // Service and process tell samples apart, as labels do everywhere.
    let filters = ["--type", "samples", "--filter", "label.service.name=s2", "--filter", "label.process.pid=s2"];
    assert_eq!(Run::report(&receiver.written()).args(filters).json().profile.total, 100);
    let single = Run::report(&data("otlp/mutex.v1.9.otlp.pb")).json();
    let type_of = &single.profile.selected.kind;
    let fifty = Run::report(&receiver.written()).args(["--type", type_of]).json();
    assert_eq!(fifty.profile.total, 50 * single.profile.total);
}

#[test]
fn processes_without_end_are_counted_within_bounds() {
    const PROCESSES: usize = 10_000;
    let mut receiver = Receiver::start(&[]);
    let mut all: serde_json::Value = serde_json::from_slice(&one("0", "main", 1)).unwrap();
    let resource = all["resourceProfiles"][0].clone();
    let of = |at: usize| {
        let mut resource = resource.clone();
        for attribute in resource["resource"]["attributes"].as_array_mut().unwrap() {
            attribute["value"] = serde_json::json!({ "stringValue": format!("service-{at}") });
        }
        resource
    };
    all["resourceProfiles"] = (0..PROCESSES).map(of).collect::<Vec<_>>().into();
    accepted(&post(receiver.http, JSON, all.to_string().as_bytes()));
    let output = receiver.end();
    assert_eq!(Run::report(&receiver.written()).json().profile.total, 10_000);
    let one = Run::report(&receiver.written()).args(["--filter", "label.service.name=service-77"]).json();
    assert_eq!(one.profile.total, 1);
    assert!(
        output.stdout.contains("10000 records from ") && output.stdout.contains(" and others"),
        "{}",
        output.stdout
    );
    assert!(output.stdout.len() < 500, "{}", output.stdout);
}

#[test]
fn the_oldest_goes_when_memory_runs_out() {
    const SENT: i64 = 60;
    let mut receiver = Receiver::start(&["--memory", "16"]);
    let text = |at: i64| {
        use std::fmt::Write as _;
        let mut text = "samples/count\n".to_owned();
        for row in 0..3_000 {
            let _ =
                writeln!(text, "src/main.rs:10 main; src/part{at}.rs:{row} a_function_with_a_long_name_{at}_{row} = 1");
        }
        text
    };
    for at in 0..SENT {
        let json = request(&Mini::parse(&text(at)).profile, &[]).to_string();
        accepted(&post(receiver.http, JSON, json.as_bytes()));
    }
    let output = receiver.end();
    let dropped: i64 = output
        .stderr
        .lines()
        .find_map(|line| line.split_once(" records were dropped")?.0.parse().ok())
        .unwrap_or_else(|| panic!("{}", output.stderr));
    let report = Run::report(&receiver.written()).json();
    assert_eq!(report.profile.total + dropped, SENT * 3_000);
    assert!(dropped > 0 && report.profile.total >= 3_000, "{dropped}");
    let newest = Run::report(&receiver.written()).args(["--filter", &format!("file=src/part{}.rs", SENT - 1)]).json();
    assert_eq!(newest.profile.total, 3_000);
}

#[test]
fn what_there_is_no_room_for_is_told_to_its_sender() {
    let mut receiver = Receiver::start(&[]);
    let of = |kind: &str, value: i64| {
        let mini = Mini::parse(&format!("{kind}/count\n src/main.rs:10 main = {value}"));
        request(&mini.profile, &[]).to_string().into_bytes()
    };
    for at in 0..32 {
        accepted(&post(receiver.http, JSON, &of(&format!("kind{at}"), 1)));
    }
    let reply = post(receiver.http, JSON, &of("onetoomany", 1));
    check(
        &reply.text(),
        &expect![[
            r#"{"partialSuccess":{"errorMessage":"more different value types came than can be shown at a time","rejectedProfiles":"1"}}"#
        ]],
    );
    let reply = post(receiver.http, JSON, &of("kind0", i64::MAX / 2));
    check(
        &reply.text(),
        &expect![[
            r#"{"partialSuccess":{"errorMessage":"the values add up to more than can be counted","rejectedProfiles":"1"}}"#
        ]],
    );
    let output = receiver.end();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stderr.contains("2 profiles were left out"), "{}", output.stderr);
}

#[test]
fn it_ends_by_itself_and_says_when_nothing_came() {
    let output = Run::new(["otlp", "--grpc-port", "0", "--http-port", "0", "--for", "1s", "-o", "w.pb.gz"]).output();
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.ends_with("perflens: w.pb.gz: nothing came, so it was not written\n"), "{}", output.stderr);
    let output = Run::new(["otlp", "--for", "2d"]).output();
    assert_eq!(output.code, Some(2), "{}", output.stderr);
}

#[test]
fn what_is_pushed_is_without_what_is_private() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.pb.gz");
    let mini = Mini::parse(
        "samples/count cpu/nanoseconds
         !default cpu
         !period cpu/nanoseconds 1000
         !comment secret
         /home/eve/app/main.rs:10 main #3; app@0x1f00 = 1, 1000 {thread=worker, user_email=eve}
         /home/eve/app/main.rs:10 main #3; /home/eve/app/lib.rs:4 work > /home/eve/app/lib.rs:9 inlined = 2, 2000",
    );
    mini.write_to(&file);
    for (grpc, arguments) in [(false, &[][..]), (true, &["--grpc"])] {
        let mut receiver = Receiver::start(&[]);
        let port = if grpc { receiver.grpc } else { receiver.http };
        let address = format!("http://localhost:{port}");
        let push = Run::new(["push".as_ref(), file.as_os_str()])
            .args(["--otlp", &address, "--name", "shop"])
            .args(arguments.iter().copied())
            .output();
        assert_eq!(push.code, Some(0), "{}", push.stderr);
        assert!(push.stderr.contains("labels: thread (1)"), "{}", push.stderr);
        assert!(push.stderr.contains("Left out: addresses, comments, labels user_email"), "{}", push.stderr);
        assert!(push.stderr.contains(&format!("sent to localhost:{port} as profiles of shop")), "{}", push.stderr);
        receiver.end();
        let report = Run::report(&receiver.written()).json();
        assert_eq!(report.profile.selected.kind, "cpu");
        assert_eq!((report.profile.total, report.profile.records, report.profile.samples), (3000, 2, Some(3)));
        assert_eq!(report.profile.period, Some(1000));
        assert_eq!(
            report.line_costs(),
            ["~/app/main.rs:10 0 3000", "~/app/lib.rs:4 0 2000", "~/app/lib.rs:9 2000 2000"]
        );
        assert_eq!(report.function("main").start_line, Some(3));
        for (filter, total) in [("label.user_email=eve", 0), ("thread=worker", 1000), ("label.service.name=shop", 3000)]
        {
            let report = Run::report(&receiver.written()).args(["--filter", filter]).json();
            assert_eq!(report.profile.total, total, "{filter}");
        }
    }
}

#[test]
fn a_push_that_fails_says_why() {
    let file = data("go/profiles/cpu.pb.gz");
    let push = |address: &str, more: &[&str]| {
        let output =
            Run::new(["push".as_ref(), file.as_os_str()]).args(["--otlp", address]).args(more.iter().copied()).output();
        assert_ne!(output.code, Some(0), "{address}");
        output.stderr
    };
    let receiver = Receiver::start(&[]);
    let mut all = push(&format!("http://localhost:{}/v1/traces", receiver.http), &[]);
    all += &push("http://localhost:1", &[]);
    all += &push("http://localhost:1", &["--grpc"]);
    all += &push("ftp://localhost", &[]);
    check(
        &all.replace(&receiver.http.to_string(), "PORT"),
        &expect![[r#"
        perflens: localhost:PORT has nothing at this address: 404 (only profiles are received here, at /v1development/profiles or by gRPC)
        perflens: localhost:1 can't be reached: Connection refused (os error 111)
        perflens: localhost:1 can't be reached: Connection refused (os error 111)
        perflens: `ftp://localhost` is no address of a server; write one like http://localhost:7070
    "#]],
    );
    let both = push("http://localhost:1", &["--server", "http://localhost:2"]);
    assert!(both.contains("cannot be used with"), "{both}");
}

#[test]
fn a_receiver_that_wants_to_be_asked_later_is_told_about() {
    let file = data("go/profiles/cpu.pb.gz");
    for (status, said) in [(503, "is too busy"), (429, "is too busy")] {
        let server = HttpServer::start(move |_| Does::status(status, "text/plain", "no").header("Retry-After", "7"));
        let output = Run::new(["push".as_ref(), file.as_os_str()]).args(["--otlp", &server.address()]).output();
        assert_eq!(output.code, Some(1), "{status}: {}", output.stderr);
        assert!(output.stderr.contains(said), "{status}: {}", output.stderr);
        assert!(output.stderr.contains("asked again in 7 s"), "{status}: {}", output.stderr);
        assert_eq!(server.asked().len(), 1, "nobody is pressed");
    }
}

#[test]
fn a_profile_that_names_its_service_is_pushed_as_that() {
    let folder = tempfile::tempdir().unwrap();
    let pushed = |text: &str, more: &[&str]| {
        let file = folder.path().join("cpu.pb.gz");
        std::fs::write(&file, Mini::parse(text).gzip()).unwrap();
        let mut receiver = Receiver::start(&[]);
        let address = format!("http://localhost:{}", receiver.http);
        let output = Run::new(["push".as_ref(), file.as_os_str()])
            .args(["--otlp", &address])
            .args(more.iter().copied())
            .output();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        receiver.end();
        let filter = |name: &str| {
            let filter = format!("label.service.name={name}");
            Run::report(&receiver.written()).args(["--filter", &filter]).json().profile.total
        };
        (filter("cart"), filter("perflens"), filter("other"))
    };
    let one = "samples/count\n a.rs:1 a = 5 {service.name=cart}\n a.rs:2 a = 2 {service.name=cart}";
    assert_eq!(pushed(one, &[]), (7, 0, 0));
    assert_eq!(pushed(one, &["--name", "other"]), (0, 0, 7));
    assert_eq!(pushed("samples/count\n a.rs:1 a = 5", &[]), (0, 5, 0));
}

/// What is pushed goes through a collector, by gRPC, HTTP and a file, and is the same behind it.
#[test]
fn a_real_collector_takes_ours_and_forwards_it_to_us() {
    let Some(collector) = peer("collector") else { return };
    let mut behind = [Receiver::start(&[]), Receiver::start(&[])];
    let (grpc_port, http_port) = (free_port(), free_port());
    let folder = tempfile::tempdir().unwrap();
    let (config, file, log) = (folder.path().join("c.yaml"), folder.path().join("out.json"), folder.path().join("log"));
    let text = format!(
        "receivers:
  otlp:
    protocols:
      grpc: {{ endpoint: '127.0.0.1:{grpc_port}' }}
      http: {{ endpoint: '127.0.0.1:{http_port}' }}
exporters:
  otlp_grpc: {{ endpoint: '127.0.0.1:{}', tls: {{ insecure: true }} }}
  otlp_http: {{ endpoint: 'http://127.0.0.1:{}' }}
  file: {{ path: '{}' }}
service:
  telemetry: {{ metrics: {{ level: none }} }}
  pipelines:
    profiles: {{ receivers: [otlp], exporters: [otlp_grpc, otlp_http, file] }}
",
        behind[0].grpc,
        behind[1].http,
        file.display()
    );
    std::fs::write(&config, text).unwrap();
    let run = Command::new(collector)
        .args(["--feature-gates", "service.profilesSupport", "--config"])
        .arg(format!("file:{}", config.display()))
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn();
    let collector = Guard(run.unwrap());
    let profile = data("go/profiles/cpu.pb.gz");
    let start = Instant::now();
    let pushed = |port: u16, more: &[&str]| loop {
        let address = format!("http://127.0.0.1:{port}");
        let push = Run::new(["push".as_ref(), profile.as_os_str(), "--otlp".as_ref(), address.as_ref()])
            .args(["--keep-label", "phase", "--keep-label", "route"])
            .args(more.iter().copied());
        let output = push.output();
        if output.code == Some(0) {
            return;
        }
        let said = std::fs::read_to_string(&log).unwrap();
        assert!(start.elapsed() < Duration::from_mins(1), "{} {said}", output.stderr);
        std::thread::sleep(Duration::from_millis(100));
    };
    pushed(http_port, &[]);
    pushed(grpc_port, &["--grpc"]);
    let single = Run::report(&profile).json();
    let is_all = |path: &Path| {
        let report = Run::report(path).args(["--type", "cpu"]).output();
        let report: Option<Report> = serde_json::from_str(&report.stdout).ok();
        report.is_some_and(|report| report.profile.total == 2 * single.profile.total)
    };
    while !is_all(&file) {
        assert!(start.elapsed() < Duration::from_mins(1), "{}", std::fs::read_to_string(&log).unwrap());
        std::thread::sleep(Duration::from_millis(100));
    }
    // Everything is sent before it ends.
    assert!(Command::new("kill").args(["-INT", &collector.0.id().to_string()]).status().unwrap().success());
    let mut collector = collector;
    assert!(collector.0.wait().unwrap().success());
    let from_file = Run::report(&file).args(["--type", "cpu"]).json();
    assert_eq!(from_file.lines.len(), single.lines.len());
    for receiver in &mut behind {
        let output = receiver.end();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        let report = Run::report(&receiver.written()).args(["--type", "cpu"]).json();
        assert_eq!(answer(&report), answer(&from_file));
        assert_eq!(report.profile.total, 2 * single.profile.total);
    }
}
