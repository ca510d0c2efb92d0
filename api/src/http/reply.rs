//! Responses: one body type for everything the daemon answers, and the constructors that routes use.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use hyper::StatusCode;
use hyper::body::{Frame, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use serde::Serialize;

use crate::http::error::Error;

/// What every route answers with.
pub type Response = hyper::Response<Body>;

/// `content-type` of JSON bodies.
pub const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// `content-type` of plain text bodies.
pub const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// Pieces of a body that is made while it is sent. An error breaks the connection off, so that a client never takes
/// half a body for a whole one.
pub type Pieces = Pin<Box<dyn Stream<Item = Result<Bytes, BrokenOff>> + Send>>;

/// A streamed body could not be finished; the reason is in the log.
#[derive(Debug, thiserror::Error)]
#[error("the request body ended early: {0}")]
pub struct BrokenOff(pub String);

/// A response body.
pub enum Body {
    /// Known as a whole. Bytes that others refer to as well are taken for ones that the daemon keeps anyway, such as the
    /// files of the page.
    Full(Bytes),
    /// Made while it is sent: pages of a list, server-sent events.
    Stream(Pieces),
}

impl Body {
    /// No body at all.
    #[must_use]
    pub const fn empty() -> Self {
        Self::Full(Bytes::new())
    }

    /// Bytes that are in memory for this answer alone, and for as long as it is. None of a stream, whose pieces are made one by
    /// one, and none of what is shared.
    pub(crate) fn own_bytes(&self) -> usize {
        match self {
            Self::Full(bytes) if bytes.is_unique() => bytes.len(),
            _ => 0,
        }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        match &mut *self {
            Self::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Stream(pieces) => pieces.as_mut().poll_next(cx).map(|piece| piece.map(|p| p.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Full(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// `value` as JSON.
///
/// # Errors
/// 500 when `value` cannot be written as JSON, such as a map with keys that are not strings.
pub fn json<T: Serialize + ?Sized>(status: StatusCode, value: &T) -> Result<Response, Error> {
    let body =
        serde_json::to_vec(value).map_err(|e| Error::internal(format!("the response cannot be serialized: {e}")))?;
    Ok(bytes(status, JSON, body))
}

/// `value` as JSON with status 200; errors as [`json`].
pub fn ok<T: Serialize + ?Sized>(value: &T) -> Result<Response, Error> {
    json(StatusCode::OK, value)
}

/// `value` as JSON with status 201; errors as [`json`].
pub fn created<T: Serialize + ?Sized>(value: &T) -> Result<Response, Error> {
    json(StatusCode::CREATED, value)
}

/// 204 without a body.
#[must_use]
pub fn no_content() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// A whole body of the given type.
pub fn bytes(status: StatusCode, content_type: HeaderValue, body: impl Into<Bytes>) -> Response {
    with_body(status, content_type, Body::Full(body.into()))
}

/// A body that is made while it is sent.
pub fn stream(status: StatusCode, content_type: HeaderValue, pieces: Pieces) -> Response {
    with_body(status, content_type, Body::Stream(pieces))
}

fn with_body(status: StatusCode, content_type: HeaderValue, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    // Room for the headers that every response gets, so that the map grows once.
    response.headers_mut().reserve(12);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// The whole body of `response` as text; tests only.
#[cfg(test)]
pub(crate) async fn text(response: Response) -> String {
    use http_body_util::BodyExt;
    let bytes = response.into_body().collect().await.expect("a whole body").to_bytes();
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// The whole body of `response` as JSON; tests only.
#[cfg(test)]
pub(crate) async fn collect(response: Response) -> serde_json::Value {
    serde_json::from_str(&text(response).await).expect("JSON")
}
