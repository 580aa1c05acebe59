//! What may come in: who is let in, and how much of it is read.

use std::io::Read;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::http::uri::Authority;
use hyper::{Method, Request, Version};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The largest request, compressed or not.
pub(super) const MAX_BYTES: usize = 64 << 20;
/// How long a body may take to come.
const PATIENCE: Duration = Duration::from_secs(30);
/// Flag and length.
const FRAME_HEAD: usize = 5;
/// Permits of the memory for bodies are of this many bytes.
pub(super) const PERMIT: usize = 1 << 10;

const GRPC_PATH: &str = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";
/// The path of the protocol, and the one its first descriptions had.
const HTTP_PATHS: [&str; 2] = ["/v1development/profiles", "/v1/profiles"];

/// How a request is written, and so its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Grpc,
    Protobuf,
    Json,
}

/// Why a request is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// A web page sent it.
    Origin,
    /// It is meant for another machine.
    Host,
    Path,
    Method,
    ContentType,
    Encoding,
    TooLarge,
    /// It did not come within the time.
    Slow,
    /// There is too much to do, or no memory left for more of it.
    Busy,
    /// It is no request, or breaks off; a clause about it.
    Damaged(String),
}

impl Refusal {
    /// For counting.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Origin => "from a web page",
            Self::Host => "for another host",
            Self::Path | Self::Method => "not for profiles",
            Self::ContentType => "of another content type",
            Self::Encoding => "of another compression",
            Self::TooLarge => "too large",
            Self::Slow => "too slow",
            Self::Busy => "too many at a time",
            Self::Damaged(_) => "damaged",
        }
    }

    /// For the sender.
    pub(super) fn sentence(&self) -> String {
        match self {
            Self::Origin => "requests of web pages are refused".to_owned(),
            Self::Host => "this receiver is for localhost alone".to_owned(),
            Self::Path => format!("only profiles are received here, at {} or by gRPC", HTTP_PATHS[0]),
            Self::Method => "profiles are sent with POST".to_owned(),
            Self::ContentType => {
                "the content type is none of application/grpc (on HTTP/2), application/x-protobuf and application/json"
                    .to_owned()
            }
            Self::Encoding => "of compressions only gzip is known".to_owned(),
            Self::TooLarge => format!("the request is larger than {} MiB", MAX_BYTES >> 20),
            Self::Slow => format!("the request did not come within {} s", PATIENCE.as_secs()),
            Self::Busy => "too many requests at a time; try again".to_owned(),
            Self::Damaged(why) => format!("the request can't be read: {why}"),
        }
    }
}

/// Decides by the head of a request.
pub(super) fn admit(request: &Request<Incoming>) -> Result<Form, (Form, Refusal)> {
    let headers = request.headers();
    let is_http2 = request.version() == Version::HTTP_2;
    let form = form(headers, is_http2);
    let shown = form.unwrap_or(Form::Protobuf);
    let refuse = |refusal| Err((shown, refusal));
    if headers.contains_key(ORIGIN) {
        return refuse(Refusal::Origin);
    }
    let hosts = headers.get_all(HOST).iter().map(|host| host.to_str().ok().and_then(|host| host.parse().ok()));
    let mut names = request.uri().authority().cloned().map(Some).into_iter().chain(hosts).peekable();
    if names.peek().is_none() || !names.all(|name| name.is_some_and(|name| is_this_machine(&name))) {
        return refuse(Refusal::Host);
    }
    let path = request.uri().path();
    let is_known = if form == Some(Form::Grpc) { path == GRPC_PATH } else { HTTP_PATHS.contains(&path) };
    if !is_known {
        return refuse(Refusal::Path);
    }
    if request.method() != Method::POST {
        return refuse(Refusal::Method);
    }
    form.ok_or((shown, Refusal::ContentType))
}

fn form(headers: &HeaderMap, is_http2: bool) -> Option<Form> {
    let mut kinds = headers.get_all(CONTENT_TYPE).iter();
    let (Some(kind), None) = (kinds.next(), kinds.next()) else { return None };
    let kind = kind.to_str().ok()?.split(';').next()?.trim().to_ascii_lowercase();
    match kind.as_str() {
        "application/grpc" | "application/grpc+proto" if is_http2 => Some(Form::Grpc),
        "application/x-protobuf" => Some(Form::Protobuf),
        "application/json" => Some(Form::Json),
        _ => None,
    }
}

fn is_this_machine(name: &Authority) -> bool {
    let host = name.host().trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The body of a request, as it was sent; its memory is held until it is dropped.
#[derive(Debug)]
pub(super) struct Received {
    bytes: Vec<u8>,
    is_gzip: bool,
    _memory: OwnedSemaphorePermit,
}

/// Reads the body. Memory grows with what has come, never with what was announced.
pub(super) async fn read(request: Request<Incoming>, form: Form, memory: &Arc<Semaphore>) -> Result<Received, Refusal> {
    let name = if form == Form::Grpc { "grpc-encoding" } else { CONTENT_ENCODING.as_str() };
    let encodings: Vec<&[u8]> = request.headers().get_all(name).iter().map(HeaderValue::as_bytes).collect();
    let has_gzip = match encodings[..] {
        [] => false,
        [one] if one.eq_ignore_ascii_case(b"gzip") => true,
        [one] if one.is_empty() || one.eq_ignore_ascii_case(b"identity") => false,
        _ => return Err(Refusal::Encoding),
    };
    let body = request.into_body();
    let most = if form == Form::Grpc { MAX_BYTES + FRAME_HEAD } else { MAX_BYTES };
    if body.size_hint().lower() > most as u64 {
        return Err(Refusal::TooLarge);
    }
    let work = receive(body, form, most, memory);
    let (bytes, memory) = tokio::time::timeout(PATIENCE, work).await.unwrap_or(Err(Refusal::Slow))?;
    let mut received = Received { bytes, is_gzip: has_gzip, _memory: memory };
    if form == Form::Grpc {
        let damaged = || Refusal::Damaged("its frame is not one message".to_owned());
        let head: [u8; FRAME_HEAD] = *received.bytes.first_chunk().ok_or_else(damaged)?;
        if frame_length(head) != received.bytes.len() - FRAME_HEAD {
            return Err(damaged());
        }
        received.is_gzip = match head[0] {
            0 => false,
            1 if has_gzip => true,
            1 => return Err(Refusal::Encoding),
            _ => return Err(damaged()),
        };
        received.bytes.drain(..FRAME_HEAD);
    }
    Ok(received)
}

fn frame_length(head: [u8; FRAME_HEAD]) -> usize {
    let [_, length @ ..] = head;
    u32::from_be_bytes(length) as usize
}

async fn receive(
    mut body: Incoming,
    form: Form,
    most: usize,
    memory: &Arc<Semaphore>,
) -> Result<(Vec<u8>, OwnedSemaphorePermit), Refusal> {
    let mut bytes = Vec::new();
    let mut held = Arc::clone(memory).try_acquire_owned().map_err(|_| Refusal::Busy)?;
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|_| Refusal::Damaged("it breaks off".to_owned()))?;
        let Ok(chunk) = frame.into_data() else { continue };
        take(&mut bytes, &chunk, most, memory, &mut held)?;
        // What announces too much is not waited for.
        if form == Form::Grpc
            && let Some(head) = bytes.first_chunk()
            && frame_length(*head) > MAX_BYTES
        {
            return Err(Refusal::TooLarge);
        }
    }
    Ok((bytes, held))
}

fn take(
    bytes: &mut Vec<u8>,
    chunk: &Bytes,
    most: usize,
    memory: &Arc<Semaphore>,
    held: &mut OwnedSemaphorePermit,
) -> Result<(), Refusal> {
    let length = bytes.len() + chunk.len();
    if length > most {
        return Err(Refusal::TooLarge);
    }
    if length > bytes.capacity() {
        let capacity = length.max(bytes.capacity() * 2).min(most);
        let more = capacity.div_ceil(PERMIT).saturating_sub(held.num_permits());
        let more = u32::try_from(more).map_err(|_| Refusal::Busy)?;
        held.merge(Arc::clone(memory).try_acquire_many_owned(more).map_err(|_| Refusal::Busy)?);
        bytes.reserve_exact(capacity - bytes.len());
    }
    bytes.extend_from_slice(chunk);
    Ok(())
}

impl Received {
    /// The request, decompressed. Blocks.
    pub(super) fn inflated(self) -> Result<Vec<u8>, Refusal> {
        if !self.is_gzip {
            return Ok(self.bytes);
        }
        let mut plain = Vec::new();
        let read = MultiGzDecoder::new(&self.bytes[..]).take(MAX_BYTES as u64 + 1).read_to_end(&mut plain);
        if plain.len() > MAX_BYTES {
            return Err(Refusal::TooLarge);
        }
        read.map_err(|_| Refusal::Damaged("its gzip is damaged".to_owned()))?;
        Ok(plain)
    }
}
