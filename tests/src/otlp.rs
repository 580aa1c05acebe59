//! Senders of OpenTelemetry profiles: requests made from profiles of pprof, and clients for HTTP
//! and gRPC that can also misbehave. And the receiver in a terminal, `perflens otlp`.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cli::{Output, binary, isolate, wait_for};
use crate::pprof::Profile;

/// The content type of protobuf over HTTP.
pub const PROTOBUF: &str = "application/x-protobuf";
/// The content type of JSON.
pub const JSON: &str = "application/json";
/// The path over HTTP.
pub const PATH: &str = "/v1development/profiles";
/// The path over gRPC.
pub const METHOD: &str = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";

/// How long anything may take before the test fails.
const DEADLINE: Duration = Duration::from_mins(1);

/// A profile of pprof as a request in JSON, in the newest version of the protocol. `resource` are
/// attributes of what was measured.
pub fn request(profile: &Profile, resource: &[(&str, &str)]) -> Value {
    // Row 0 is nothing.
    let rows = |ids: Vec<u64>| -> HashMap<u64, usize> { ids.into_iter().zip(1..).chain([(0, 0)]).collect() };
    let locations = rows(profile.location.iter().map(|it| it.id).collect());
    let mappings = rows(profile.mapping.iter().map(|it| it.id).collect());
    let functions = rows(profile.function.iter().map(|it| it.id).collect());
    let text = |text: &[u8]| String::from_utf8(text.to_vec()).expect("tests write UTF-8");
    let kind = |kind: &crate::pprof::ValueType| json!({ "typeStrindex": kind.r#type, "unitStrindex": kind.unit });
    let mut attributes = vec![json!({})];
    let mut attribute = |it: &crate::pprof::Label| {
        let value = if it.str == 0 {
            json!({ "intValue": it.num.to_string() })
        } else {
            let text = &profile.string_table[usize::try_from(it.str).expect("an index")];
            json!({ "stringValue": String::from_utf8_lossy(text) })
        };
        attributes.push(json!({ "keyStrindex": it.key, "value": value, "unitStrindex": it.num_unit }));
        attributes.len() - 1
    };
    let labels: Vec<Vec<usize>> =
        profile.sample.iter().map(|sample| sample.label.iter().map(&mut attribute).collect()).collect();
    let samples = |column: usize| -> Vec<Value> {
        let sample = |(at, sample): (usize, &crate::pprof::Sample)| {
            let value = sample.value[column].to_string();
            json!({ "stackIndex": at + 1, "values": [value], "attributeIndices": labels[at] })
        };
        profile.sample.iter().enumerate().map(sample).collect()
    };
    let profiles: Vec<Value> = (0..profile.sample_type.len())
        .map(|column| {
            json!({
                "sampleType": kind(&profile.sample_type[column]),
                "samples": samples(column),
                "timeUnixNano": profile.time_nanos.to_string(),
                "durationNano": profile.duration_nanos.to_string(),
                "periodType": profile.period_type.as_ref().map(kind).unwrap_or(json!({})),
                "period": profile.period.to_string(),
            })
        })
        .collect();
    let attribute = |(key, value): &(&str, &str)| json!({ "key": key, "value": { "stringValue": value } });
    let after_nothing = |rows: Vec<Value>| [vec![json!({})], rows].concat();
    json!({
        "resourceProfiles": [{
            "resource": { "attributes": resource.iter().map(attribute).collect::<Vec<_>>() },
            "scopeProfiles": [{ "scope": { "name": "test" }, "profiles": profiles }],
        }],
        "dictionary": {
            "stringTable": profile.string_table.iter().map(|it| text(it)).collect::<Vec<_>>(),
            "mappingTable": after_nothing(profile.mapping.iter().map(|it| json!({
                "memoryStart": it.memory_start.to_string(), "memoryLimit": it.memory_limit.to_string(),
                "fileOffset": it.file_offset.to_string(), "filenameStrindex": it.filename,
            })).collect()),
            "functionTable": after_nothing(profile.function.iter().map(|it| json!({
                "nameStrindex": it.name, "systemNameStrindex": it.system_name, "filenameStrindex": it.filename,
                "startLine": it.start_line.to_string(),
            })).collect()),
            "locationTable": after_nothing(profile.location.iter().map(|it| json!({
                "mappingIndex": mappings[&it.mapping_id], "address": it.address.to_string(),
                "lines": it.line.iter().map(|line| json!({
                    "functionIndex": functions[&line.function_id], "line": line.line.to_string(),
                    "column": line.column.to_string(),
                })).collect::<Vec<_>>(),
            })).collect()),
            "stackTable": after_nothing(profile.sample.iter().map(|it| json!({
                "locationIndices": it.location_id.iter().map(|&id| locations[&id]).collect::<Vec<_>>(),
            })).collect()),
            "attributeTable": attributes,
            "linkTable": [{}],
        },
    })
}

/// What came back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The status of HTTP; 0 when there was none.
    pub status: u16,
    /// Headers and trailers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// The status of gRPC.
    pub fn grpc_status(&self) -> Option<&str> {
        self.headers.get("grpc-status").map(String::as_str)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Sends a request over HTTP/1.1. `headers` are added to `Host` and the length, or replace them.
///
/// # Panics
/// When nobody listens, or nobody answers.
pub fn http(port: u16, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    let has = |name: &str| headers.iter().any(|(key, _)| key.eq_ignore_ascii_case(name));
    let mut lines = vec![format!("{method} {path} HTTP/1.1")];
    if !has("host") {
        lines.push(format!("Host: 127.0.0.1:{port}"));
    }
    if !has("content-length") && !has("transfer-encoding") {
        lines.push(format!("Content-Length: {}", body.len()));
    }
    lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
    let mut stream = connect(port);
    stream.write_all((lines.join("\r\n") + "\r\n\r\n").as_bytes()).expect("sending the head");
    // It may be refused before all of it is read.
    let _ = stream.write_all(body);
    read_reply(&mut stream)
}

/// Sends a profile over HTTP.
pub fn post(port: u16, content_type: &str, body: &[u8]) -> Reply {
    http(port, "POST", PATH, &[("Content-Type", content_type)], body)
}

/// A connection to a port of this machine.
///
/// # Panics
/// When nobody listens.
pub fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("somebody listens");
    stream.set_read_timeout(Some(DEADLINE)).expect("setting a time-out");
    stream.set_write_timeout(Some(DEADLINE)).expect("setting a time-out");
    stream
}

/// Reads one reply of HTTP/1.1.
///
/// # Panics
/// When it is none.
pub fn read_reply(stream: &mut TcpStream) -> Reply {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).expect("there is a reply");
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{line:?}"));
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("the head goes on");
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length: usize = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("the body comes");
    Reply { status, headers, body }
}

/// A message as gRPC frames it.
pub fn framed(message: &[u8], is_compressed: bool) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("it is below 4 GiB").to_be_bytes();
    [&[u8::from(is_compressed)][..], &length, message].concat()
}

/// Calls a method over gRPC. The body is sent as it is, frame and all.
///
/// # Panics
/// When nobody listens, or what answers is no HTTP/2.
pub fn grpc(port: u16, method: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Reply {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let call = async {
        let stream = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("somebody listens");
        let (mut client, connection) = h2::client::handshake(stream).await.expect("it speaks HTTP/2");
        let connection = tokio::spawn(connection);
        let has = |name: &str| headers.iter().any(|(key, _)| *key == name);
        let authority = headers.iter().find(|(name, _)| *name == ":authority").map(|(_, value)| (*value).to_owned());
        let authority = authority.unwrap_or_else(|| format!("localhost:{port}"));
        let mut request = http::Request::post(format!("http://{authority}{method}")).header("te", "trailers");
        if !has("content-type") {
            request = request.header("content-type", "application/grpc");
        }
        for (name, value) in headers.iter().filter(|(name, _)| !name.starts_with(':')) {
            request = request.header(*name, *value);
        }
        let (response, mut sending) =
            client.send_request(request.body(()).expect("a request"), false).expect("sending the head");
        let send = async {
            let mut rest = bytes(body);
            while !rest.is_empty() {
                sending.reserve_capacity(rest.len());
                let Some(Ok(room)) = std::future::poll_fn(|context| sending.poll_capacity(context)).await else {
                    return;
                };
                let part = rest.split_to(room.min(rest.len()));
                if sending.send_data(part, false).is_err() {
                    return;
                }
            }
            let _ = sending.send_data(bytes(Vec::new()), true);
        };
        let receive = async {
            let Ok(response) = response.await else { return Reply::default() };
            let mut reply = Reply { status: response.status().as_u16(), ..Reply::default() };
            let mut take = |headers: &http::HeaderMap| {
                for (name, value) in headers {
                    let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
                    reply.headers.insert(name.as_str().to_owned(), value);
                }
            };
            take(response.headers());
            let mut body = response.into_body();
            let mut content = Vec::new();
            while let Some(Ok(data)) = body.data().await {
                content.extend_from_slice(&data);
                let _ = body.flow_control().release_capacity(data.len());
            }
            if let Ok(Some(trailers)) = body.trailers().await {
                take(&trailers);
            }
            reply.body = content;
            reply
        };
        let reply = tokio::select! {
            reply = receive => reply,
            () = async { send.await; std::future::pending::<()>().await } => unreachable!("it never ends"),
        };
        connection.abort();
        reply
    };
    runtime.block_on(async { tokio::time::timeout(DEADLINE, call).await }).expect("an answer in time")
}

fn bytes(bytes: Vec<u8>) -> prost::bytes::Bytes {
    bytes.into()
}

/// Sends a profile over gRPC, not compressed.
pub fn export(port: u16, request: &[u8]) -> Reply {
    grpc(port, METHOD, &[], framed(request, false))
}

/// `perflens otlp` at work, on ports that are free.
#[derive(Debug)]
pub struct Receiver {
    child: Option<Child>,
    folder: TempDir,
    /// The port for gRPC.
    pub grpc: u16,
    /// The port for HTTP.
    pub http: u16,
}

impl Receiver {
    /// Starts it with further arguments.
    ///
    /// # Panics
    /// When it does not say where it listens.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_with(["--grpc-port", "0", "--http-port", "0"].iter().chain(arguments).map(OsString::from))
            .unwrap_or_else(|output| panic!("it ended: {output:?}"))
    }

    /// Starts it with these arguments; what is left of it when it ends at once.
    ///
    /// # Panics
    /// When it can't be run.
    pub fn start_with(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, Output> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new(binary());
        command.arg("otlp").args(arguments).arg("-o").arg(folder.path().join("window.pb.gz"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).current_dir(folder.path());
        isolate(&mut command, folder.path());
        let mut child = command.spawn().expect("running perflens");
        let stderr = child.stderr.as_mut().expect("it is piped");
        let mut line = Vec::new();
        let mut byte = [0];
        while stderr.read(&mut byte).expect("reading a pipe") == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        let line = String::from_utf8(line).expect("it prints UTF-8");
        let port = |before: &str| -> Option<u16> {
            let rest = line.split_once(before)?.1;
            rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
        };
        if let Some((grpc, http)) = port("on 127.0.0.1:").zip(port("http://127.0.0.1:")) {
            return Ok(Self { child: Some(child), folder, grpc, http });
        }
        let rest = wait_for(child, DEADLINE);
        Err(Output { stderr: format!("{line}\n{}", rest.stderr), ..rest })
    }

    /// The number of the process.
    ///
    /// # Panics
    /// When it has ended.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// Where it writes its window at the end.
    pub fn written(&self) -> std::path::PathBuf {
        self.folder.path().join("window.pb.gz")
    }

    /// A folder that lives as long as this.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Ends it as a terminal does, and waits.
    ///
    /// # Panics
    /// When it does not end.
    pub fn end(&mut self) -> Output {
        let child = self.child.take().expect("it ends once");
        let ended = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("running kill");
        assert!(ended.success());
        wait_for(child, DEADLINE)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
