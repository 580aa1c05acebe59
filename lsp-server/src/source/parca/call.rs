//! One unary call, over gRPC-web or gRPC.
//!
//! gRPC-web is done by hand over the HTTP client that everything uses: a frame there, frames and
//! a trailer back, below any path, through any proxy. gRPC itself is tonic's.

use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use prost::bytes::{Buf, BufMut, Bytes, BytesMut};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::{AsciiMetadataKey, MetadataMap, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic_prost::ProstCodec;

use super::super::connection::{Connection, Kind, Transport, may_carry_secrets};
use super::super::error::{SourceError, SourceErrorKind};
use super::super::http::{self, Http, MAX_REPLY};
use super::super::progress::Progress;
use super::super::{Credentials, Pass};
use super::status;
use crate::grpc_status;

/// Content types of gRPC-web; servers answer with the one they were asked in.
const WEB: &str = "application/grpc-web+proto";
/// Bit of a frame's flags: it holds trailers.
const TRAILER: u8 = 0x80;
/// Flags and length.
const FRAME_HEAD: usize = 5;

/// Calls a server.
#[derive(Debug)]
pub(super) struct Caller {
    connection: Connection,
    credentials: Arc<dyn Credentials>,
    http: Http,
    channel: Option<Channel>,
}

impl Caller {
    pub(super) fn new(connection: &Connection, credentials: Arc<dyn Credentials>) -> Result<Self, SourceError> {
        let http = Http::new(connection)?;
        let channel = match connection.transport {
            Transport::GrpcWeb => None,
            Transport::Grpc => Some(channel(connection)?),
        };
        Ok(Self { connection: connection.clone(), credentials, http, channel })
    }

    pub(super) fn server(&self) -> &str {
        self.http.server()
    }

    pub(super) fn error(&self, kind: SourceErrorKind, detail: impl Into<String>) -> SourceError {
        self.http.error(kind, detail)
    }

    /// Calls a method. What was refused for want of a better token is tried once more with one.
    pub(super) async fn call<Q, A>(
        &self,
        method: &'static str,
        request: &Q,
        deadline: Duration,
        progress: &Progress,
    ) -> Result<A, SourceError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let pass = self.credentials.authorization(&self.connection).await?;
        let first = self.call_as(method, request, pass.as_ref(), deadline, progress).await;
        match (first, pass) {
            (Err(error), Some(pass))
                if error.kind == SourceErrorKind::SignIn && self.credentials.renew(&self.connection, &pass).await? =>
            {
                let pass = self.credentials.authorization(&self.connection).await?;
                self.call_as(method, request, pass.as_ref(), deadline, progress).await
            }
            (result, _) => result,
        }
    }

    async fn call_as<Q, A>(
        &self,
        method: &'static str,
        request: &Q,
        pass: Option<&Pass>,
        deadline: Duration,
        progress: &Progress,
    ) -> Result<A, SourceError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        if pass.is_some() {
            may_carry_secrets(&self.connection.address)?;
        }
        match &self.channel {
            None => self.call_web(method, request, pass, deadline, progress).await,
            Some(channel) => {
                let work = self.call_native(channel.clone(), method, request, pass, deadline);
                tokio::time::timeout(deadline, work)
                    .await
                    .unwrap_or_else(|_| Err(self.error(SourceErrorKind::Timeout, format!("{} s", deadline.as_secs()))))
            }
        }
    }

    async fn call_web<Q, A>(
        &self,
        method: &'static str,
        request: &Q,
        pass: Option<&Pass>,
        deadline: Duration,
        progress: &Progress,
    ) -> Result<A, SourceError>
    where
        Q: Message,
        A: Message + Default,
    {
        let mut body = BytesMut::with_capacity(FRAME_HEAD + request.encoded_len());
        body.put_u8(0);
        body.put_u32(u32::try_from(request.encoded_len()).unwrap_or(u32::MAX));
        // A buffer that grows has room for everything.
        let _ = request.encode(&mut body);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(WEB));
        headers.insert(ACCEPT, HeaderValue::from_static(WEB));
        headers.insert("x-grpc-web", HeaderValue::from_static("1"));
        headers.insert("grpc-timeout", HeaderValue::from(deadline.as_secs()));
        if let Ok(timeout) = HeaderValue::from_str(&format!("{}S", deadline.as_secs())) {
            headers.insert("grpc-timeout", timeout);
        }
        for (name, value) in self.metadata(pass) {
            if let (Ok(name), Ok(mut value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
        let url = self.connection.below(method);
        let request = self.http.client().post(url).headers(headers).body(body.freeze());
        let reply = self.http.send(request, deadline, progress).await?;
        let is_grpc = |headers: &HeaderMap| {
            let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
            kind.is_some_and(|kind| kind.starts_with("application/grpc"))
        };
        if let Some(status) = status_of(&reply.headers) {
            self.check(&status, deadline)?;
        }
        if let Some(refusal) = self.http.refusal(&reply) {
            return Err(refusal);
        }
        if !is_grpc(&reply.headers) {
            let words = http::words(&reply);
            let got = if words.is_empty() { "no gRPC-web".to_owned() } else { words };
            return Err(
                self.error(SourceErrorKind::Protocol, format!("it sent {got}; is the address that of its API?"))
            );
        }
        let frames = frames(reply.body)
            .ok_or_else(|| self.error(SourceErrorKind::Network, "its answer was cut off in the middle"))?;
        if let Some(status) = &frames.status {
            self.check(status, deadline)?;
        } else if status_of(&reply.headers).is_none() {
            return Err(self.error(SourceErrorKind::Network, "its answer was cut off before the end"));
        }
        let message = frames.message.unwrap_or_default();
        A::decode(message).map_err(|_| self.error(SourceErrorKind::Protocol, "its answer is no message of this call"))
    }

    fn check(&self, status: &Status, deadline: Duration) -> Result<(), SourceError> {
        if status.code == 0 {
            Ok(())
        } else {
            Err(status::failure_with(self.server(), (status.code, &status.message), &status.details, deadline))
        }
    }

    async fn call_native<Q, A>(
        &self,
        channel: Channel,
        method: &'static str,
        request: &Q,
        pass: Option<&Pass>,
        deadline: Duration,
    ) -> Result<A, SourceError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let mut client = tonic::client::Grpc::new(channel).max_decoding_message_size(MAX_REPLY);
        let in_words = |error: &(dyn std::error::Error + 'static)| self.http.attempt().failure(false, error);
        client.ready().await.map_err(|error| in_words(&error))?;
        let mut request = tonic::Request::new(request.clone());
        request.set_timeout(deadline);
        let metadata: &mut MetadataMap = request.metadata_mut();
        for (name, value) in self.metadata(pass).into_iter().chain(self.connection.headers.iter().cloned()) {
            if let (Ok(name), Ok(mut value)) =
                (AsciiMetadataKey::from_bytes(name.to_ascii_lowercase().as_bytes()), MetadataValue::try_from(value))
            {
                value.set_sensitive(true);
                metadata.insert(name, value);
            }
        }
        let codec = ProstCodec::<Q, A>::default();
        match client.unary(request, PathAndQuery::from_static(method), codec).await {
            Ok(response) => Ok(response.into_inner()),
            Err(status) => {
                // A status without a server behind it is about the connection.
                if let Some(source) = std::error::Error::source(&status) {
                    return Err(in_words(source));
                }
                let code = u32::try_from(i32::from(status.code())).unwrap_or(2);
                Err(status::failure_with(self.server(), (code, status.message()), status.details(), deadline))
            }
        }
    }

    /// What goes with every call, names in lower case.
    fn metadata(&self, pass: Option<&Pass>) -> Vec<(String, String)> {
        let mut metadata = Vec::new();
        if let Some(pass) = pass {
            metadata.push((AUTHORIZATION.as_str().to_owned(), pass.header.0.clone()));
        }
        let chosen = pass.and_then(|pass| pass.project.as_ref());
        if self.connection.kind == Kind::PolarSignals
            && let Some(project) = self.connection.project.as_ref().or(chosen)
        {
            metadata.push(("projectid".to_owned(), project.clone()));
        }
        metadata
    }
}

/// A channel of gRPC; connects when it is first used.
pub(in crate::source) fn channel(connection: &Connection) -> Result<Channel, SourceError> {
    http::install_ring();
    let wrong = |error: tonic::transport::Error| {
        let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        SourceError::input(format!("the connection can't be set up: {cause}"))
    };
    let mut address = connection.address.clone();
    if !matches!(address.path(), "" | "/") {
        return Err(SourceError::input(format!(
            "gRPC has no paths, so `{}` can't be reached by it; leave the path out, or use gRPC-web",
            connection.address
        )));
    }
    address.set_query(None);
    let mut endpoint = Endpoint::from_shared(address.to_string())
        .map_err(wrong)?
        .connect_timeout(Duration::from_secs(10))
        .user_agent(concat!("perflens/", env!("CARGO_PKG_VERSION")))
        .map_err(wrong)?;
    if address.scheme() == "https" {
        let tls = &connection.tls;
        if !tls.is_verified {
            return Err(SourceError::input("certificates can be left unchecked over gRPC-web only"));
        }
        let mut config = ClientTlsConfig::new().with_native_roots();
        if let Some(path) = &tls.ca_file {
            config = config.ca_certificate(Certificate::from_pem(http::pem(path)?));
        }
        if let (Some(certificate), Some(key)) = (&tls.certificate_file, &tls.key_file) {
            config = config.identity(Identity::from_pem(http::pem(certificate)?, http::pem(key)?));
        }
        endpoint = endpoint.tls_config(config).map_err(wrong)?;
    }
    Ok(endpoint.connect_lazy())
}

/// What a server says about how a call went.
struct Status {
    code: u32,
    message: String,
    /// More about it, as a message.
    details: Vec<u8>,
}

impl Status {
    fn read(code: u32, value: impl Fn(&str) -> Option<String>) -> Self {
        let message = grpc_status::decode_message(&value("grpc-message").unwrap_or_default());
        let details = grpc_status::decode_details(&value("grpc-status-details-bin").unwrap_or_default());
        Self { code, message, details }
    }
}

/// The status in headers, where servers put it when there is nothing else to say.
fn status_of(headers: &HeaderMap) -> Option<Status> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let code = text("grpc-status")?.trim().parse().unwrap_or(2);
    Some(Status::read(code, text))
}

#[derive(Default)]
struct Frames {
    message: Option<Bytes>,
    status: Option<Status>,
}

/// Takes an answer of gRPC-web apart; `None` when it ends inside a frame.
fn frames(mut body: Bytes) -> Option<Frames> {
    let mut frames = Frames::default();
    while body.has_remaining() {
        if body.remaining() < FRAME_HEAD {
            return None;
        }
        let flags = body.get_u8();
        let length = usize::try_from(body.get_u32()).ok()?;
        if body.remaining() < length {
            return None;
        }
        let content = body.split_to(length);
        if flags & TRAILER != 0 {
            frames.status = Some(trailer(&content));
        } else {
            frames.message.get_or_insert(content);
        }
    }
    Some(frames)
}

fn trailer(content: &[u8]) -> Status {
    let text = String::from_utf8_lossy(content);
    let value = |name: &str| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.trim().eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    // A trailer without a status is one that went well, to be forgiving.
    let code = value("grpc-status").map_or(0, |code| code.parse().unwrap_or(2));
    Status::read(code, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(flags: u8, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len()).unwrap().to_be_bytes();
        [&[flags][..], &length, content].concat()
    }

    #[test]
    fn frames_are_taken_apart() {
        let body = [frame(0, b"abc"), frame(TRAILER, b"Grpc-Status: 5\r\ngrpc-message: not%20here\r\n")].concat();
        let taken = frames(body.clone().into()).unwrap();
        let status = taken.status.unwrap();
        assert_eq!(taken.message.unwrap(), &b"abc"[..]);
        assert_eq!((status.code, status.message.as_str()), (5, "not here"));
        // Wherever it is cut, that is seen: as a frame that ends early, or as no status.
        for end in 1..body.len() {
            let cut = frames(Bytes::copy_from_slice(&body[..end]));
            assert!(cut.is_none_or(|cut| cut.status.is_none()), "{end}");
        }
        assert!(frames(Bytes::new()).unwrap().message.is_none());
        assert!(frames(frame(0, &[]).into()).unwrap().message.unwrap().is_empty());
        assert!(frames(vec![0, 0xff, 0xff, 0xff, 0xff, 1].into()).is_none());
    }
}
