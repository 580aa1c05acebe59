//! Profiles on their way to a receiver of OTLP: a collector, a server, or another perflens.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use prost::bytes::Bytes;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use tonic::codegen::http::uri::PathAndQuery;
use tonic_prost::ProstCodec;

use super::connection::Connection;
use super::error::{SourceError, SourceErrorKind as Kind};
use super::http::{self, Http, Reply};
use super::parca::{channel, failure};
use super::progress::Progress;
use super::unreached::Attempt;
use crate::otlp::ExportResponse;

/// The path of profiles, where an address has none.
const HTTP_PATH: &str = "/v1development/profiles";
const METHOD: &str = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";
const PROTOBUF: &str = "application/x-protobuf";
/// How long sending and its answer may take.
const DEADLINE: Duration = Duration::from_mins(1);
/// What receivers of OTLP take at most.
const MAX_BYTES: usize = 64 << 20;

/// How a receiver is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// gRPC.
    Grpc,
    /// HTTP with protobuf.
    Http,
}

/// A request, its parts as they are written.
#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    resource_profiles: Vec<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    dictionary: Option<Bytes>,
}

/// How failures are told over HTTP.
#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
}

/// Sends an export request. What the receiver has to say though it took it is returned.
pub async fn export(
    connection: &Connection,
    protocol: Protocol,
    request: Vec<u8>,
) -> Result<Option<String>, SourceError> {
    if request.len() > MAX_BYTES {
        return Err(SourceError::input(format!(
            "the profile is {} MiB as an OTLP request, and receivers take {} MiB",
            request.len() >> 20,
            MAX_BYTES >> 20
        )));
    }
    let http = Http::new(connection)?;
    let response = match protocol {
        Protocol::Http => over_http(&http, connection, &request).await?,
        Protocol::Grpc => {
            let work = over_grpc(connection, request.into());
            let late = |_| Err(http.error(Kind::Timeout, format!("{} s", DEADLINE.as_secs())));
            tokio::time::timeout(DEADLINE, work).await.unwrap_or_else(late)?
        }
    };
    let said = response.partial_success.filter(|partial| partial.rejected != 0 || !partial.message.is_empty());
    match said {
        Some(partial) if partial.rejected > 0 => {
            let detail = format!("it left out {} profiles: {}", partial.rejected, partial.message);
            Err(http.error(Kind::Server, detail))
        }
        said => Ok(said.map(|partial| partial.message)),
    }
}

async fn over_http(http: &Http, connection: &Connection, request: &[u8]) -> Result<ExportResponse, SourceError> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    let packed = packed.write_all(request).and_then(|()| packed.finish());
    let packed = packed.map_err(|error| SourceError::input(format!("the profile can't be packed: {error}")))?;
    let url = match connection.address.path() {
        "" | "/" => connection.below(HTTP_PATH),
        _ => connection.address.clone(),
    };
    let request = http
        .client()
        .post(url)
        .header(CONTENT_TYPE, HeaderValue::from_static(PROTOBUF))
        .header(CONTENT_ENCODING, HeaderValue::from_static("gzip"))
        .body(packed);
    let reply = http.send(request, DEADLINE, &Progress::default()).await?;
    if let Some(mut refusal) = http.refusal(&reply) {
        if is_protobuf(&reply)
            && let Ok(status) = Status::decode(reply.body.clone())
            && !status.message.is_empty()
        {
            refusal.detail = format!("{} ({})", reply.status.as_u16(), status.message);
        }
        return Err(refusal);
    }
    if !is_protobuf(&reply) && !reply.body.is_empty() {
        let words = http::words(&reply);
        let got = if words.is_empty() { "something else".to_owned() } else { words };
        return Err(http.error(Kind::Protocol, format!("it answers {got}, so it is no receiver of OTLP")));
    }
    ExportResponse::decode(reply.body).map_err(|_| http.error(Kind::Protocol, "its answer is no message of OTLP"))
}

fn is_protobuf(reply: &Reply) -> bool {
    let kind = reply.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with(PROTOBUF))
}

async fn over_grpc(connection: &Connection, request: Bytes) -> Result<ExportResponse, SourceError> {
    let attempt = Attempt::at(connection);
    let in_words = |error: &(dyn std::error::Error + 'static)| attempt.failure(false, error);
    // Cut into its parts, without copying them.
    let request = Request::decode(request).map_err(|error| SourceError::input(error.to_string()))?;
    let mut client = tonic::client::Grpc::new(channel(connection)?);
    client.ready().await.map_err(|error| in_words(&error))?;
    let codec = ProstCodec::<Request, ExportResponse>::default();
    match client.unary(tonic::Request::new(request), PathAndQuery::from_static(METHOD), codec).await {
        Ok(response) => Ok(response.into_inner()),
        Err(status) => {
            // A status without a server behind it is about the connection.
            if let Some(source) = std::error::Error::source(&status) {
                return Err(in_words(source));
            }
            let code = u32::try_from(i32::from(status.code())).unwrap_or(2);
            Err(failure(&attempt.server, code, status.message(), DEADLINE))
        }
    }
}
