//! What goes back, in the form in which the request came: how much was taken, or why nothing.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use prost::Message;
use serde_json::json;

use super::request::{Form, Refusal};
use super::window::Added;
use crate::grpc_status::{Any, Status, encode_message};

/// When to come again, for those that came at a bad time.
const RETRY_SECONDS: i64 = 2;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const GRPC_ACCEPT: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// A body of one piece, and what comes behind it.
#[derive(Debug, Default)]
pub(super) struct Content {
    data: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = self.data.take().filter(|data| !data.is_empty()).map(Frame::data);
        Poll::Ready(data.or_else(|| self.trailers.take().map(Frame::trailers)).map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.data.as_ref().is_none_or(Bytes::is_empty) && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.data.as_ref().map_or(0, Bytes::len) as u64)
    }
}

/// The answer to a request that was taken, at least in part.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExportResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) partial_success: Option<PartialSuccess>,
}

/// What of it was not.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PartialSuccess {
    /// How many profiles.
    #[prost(int64, tag = "1")]
    pub(crate) rejected: i64,
    /// Why.
    #[prost(string, tag = "2")]
    pub(crate) message: String,
}

/// The reply to a request that was taken.
pub(super) fn taken(form: Form, added: Added) -> Response<Content> {
    let rejected = i64::try_from(added.rejected).unwrap_or(i64::MAX);
    let why = added.why.unwrap_or_default();
    if form == Form::Json {
        let body = match added.rejected {
            0 => json!({}),
            _ => json!({ "partialSuccess": { "rejectedProfiles": rejected.to_string(), "errorMessage": why } }),
        };
        return with(StatusCode::OK, form, body.to_string().into());
    }
    let partial_success = (rejected > 0).then(|| PartialSuccess { rejected, message: why.to_owned() });
    let message = ExportResponse { partial_success }.encode_to_vec();
    if form == Form::Protobuf {
        return with(StatusCode::OK, form, message.into());
    }
    let length = u32::try_from(message.len()).unwrap_or(0).to_be_bytes();
    let frame = [&[0][..], &length, &message].concat();
    let mut reply = with(StatusCode::OK, form, frame.into());
    let mut trailers = HeaderMap::new();
    trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
    reply.body_mut().trailers = Some(trailers);
    reply
}

/// The reply to a request that was not taken.
pub(super) fn refused(form: Form, refusal: &Refusal) -> Response<Content> {
    let (status, code) = codes(refusal);
    let message = refusal.sentence();
    let is_later = *refusal == Refusal::Busy;
    if *refusal == Refusal::ContentType {
        // In whatever form it came, it is none of these.
        return with(status, Form::Json, json!({ "code": code, "message": message }).to_string().into());
    }
    let details = if is_later { vec![Any::retry(RETRY_SECONDS)] } else { Vec::new() };
    if form == Form::Grpc {
        let mut reply = with(StatusCode::OK, form, Bytes::new());
        let headers = reply.headers_mut();
        headers.insert(GRPC_STATUS, HeaderValue::from(code));
        if let Ok(text) = HeaderValue::from_str(&encode_message(&message)) {
            headers.insert(GRPC_MESSAGE, text);
        }
        if *refusal == Refusal::Encoding {
            headers.insert(GRPC_ACCEPT, HeaderValue::from_static("identity,gzip"));
        }
        if is_later {
            let status = Status { code, message, details };
            if let Ok(text) = HeaderValue::from_str(&status.header()) {
                headers.insert(GRPC_DETAILS, text);
            }
        }
        return reply;
    }
    let body: Bytes = match form {
        Form::Json => json!({ "code": code, "message": message }).to_string().into(),
        _ => Status { code, message, details }.encode_to_vec().into(),
    };
    let mut reply = with(status, form, body);
    if is_later {
        reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS));
    }
    if *refusal == Refusal::Method {
        reply.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    }
    reply
}

/// The statuses of HTTP and gRPC. Senders repeat what is told to come too often, and nothing else.
fn codes(refusal: &Refusal) -> (StatusCode, i32) {
    match refusal {
        Refusal::Origin | Refusal::Host => (StatusCode::FORBIDDEN, 7),
        Refusal::Path => (StatusCode::NOT_FOUND, 12),
        Refusal::Method => (StatusCode::METHOD_NOT_ALLOWED, 12),
        Refusal::ContentType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, 3),
        Refusal::Encoding => (StatusCode::UNSUPPORTED_MEDIA_TYPE, 12),
        Refusal::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, 8),
        Refusal::Slow => (StatusCode::REQUEST_TIMEOUT, 4),
        Refusal::Busy => (StatusCode::SERVICE_UNAVAILABLE, 14),
        Refusal::Damaged(_) => (StatusCode::BAD_REQUEST, 3),
    }
}

fn with(status: StatusCode, form: Form, body: Bytes) -> Response<Content> {
    let kind = match form {
        Form::Grpc => "application/grpc",
        Form::Protobuf => "application/x-protobuf",
        Form::Json => "application/json",
    };
    let mut reply = Response::new(Content { data: Some(body), trailers: None });
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}

/// A reply on HTTP/1 after which nothing more is read: the rest of the body is not wanted.
pub(super) fn closing(mut reply: Response<Content>) -> Response<Content> {
    reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    reply
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::grpc_status::decode_details;

    /// By this senders know that the same request may be taken later, and others not.
    #[test]
    fn who_comes_at_a_bad_time_is_told_when_to_come_again() {
        let body = |reply: &Response<Content>| reply.body().data.clone().unwrap_or_default();
        for form in [Form::Json, Form::Protobuf] {
            let reply = refused(form, &Refusal::Busy);
            assert_eq!(reply.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(reply.headers()[RETRY_AFTER], "2");
            if form == Form::Protobuf {
                assert_eq!(Status::decode(body(&reply)).unwrap().retry_delay(), Some(Duration::from_secs(2)));
            }
        }
        let reply = refused(Form::Grpc, &Refusal::Busy);
        assert_eq!((reply.status(), &reply.headers()[GRPC_STATUS]), (StatusCode::OK, &HeaderValue::from_static("14")));
        let details = decode_details(reply.headers()[GRPC_DETAILS].to_str().unwrap());
        let status = Status::decode(&*details).unwrap();
        assert_eq!((status.code, status.retry_delay()), (14, Some(Duration::from_secs(2))));

        for refusal in [Refusal::TooLarge, Refusal::Slow, Refusal::Damaged("x".to_owned()), Refusal::Origin] {
            let reply = refused(Form::Protobuf, &refusal);
            assert!(!reply.headers().contains_key(RETRY_AFTER), "{refusal:?}");
            assert_eq!(Status::decode(body(&reply)).unwrap().retry_delay(), None, "{refusal:?}");
            assert!(!refused(Form::Grpc, &refusal).headers().contains_key(GRPC_DETAILS), "{refusal:?}");
        }
    }
}
