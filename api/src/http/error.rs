//! What goes wrong on the way of a request, as the client sees it: a status and `{"error": "<one sentence>", ...}`
//! (spec 1, Errors).

use std::borrow::Cow;

use agentsvc_components::kernel::refusal::Detail;
use agentsvc_components::{ErrorCode, Refusal, RefusalKind};
use hyper::header::{ALLOW, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{HeaderMap, StatusCode};
use serde_json::{Map, Value};

use crate::http::error_codes;
use crate::http::reply::{self, Response};

/// The content store could not be read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ContentError {
    /// The disk failed, or what is on it makes no sense.
    #[error("the content store could not be read: {0}")]
    Failed(String),
    /// One world is taking the place of another; trying again helps.
    #[error("a restore is in progress")]
    Exchanging,
}

/// An error response before it is rendered. `?` turns a [`Refusal`] of the world into one.
#[derive(Debug, thiserror::Error)]
#[error("{}: {}", .0.status, .0.message)]
pub struct Error(Box<Inner>);

/// Boxed, so that results stay small on the way of the many requests that succeed.
#[derive(Debug)]
struct Inner {
    status: StatusCode,
    message: Cow<'static, str>,
    headers: HeaderMap,
    /// Keys that stand beside `error`: `field`, `code` and those of a single route.
    beside: Map<String, Value>,
}

impl Error {
    /// An error with `status` whose body is `{"error": message}`.
    pub fn new(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Self {
        let (headers, beside) = (HeaderMap::new(), Map::new());
        Self(Box::new(Inner { status, message: message.into(), headers, beside }))
    }

    /// An error with `code` and its usual status.
    pub fn of(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self::new(status, message).code(code)
    }

    /// 400: the request itself is wrong.
    pub fn bad_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// 400: the value of the parameter or body key `field` is wrong.
    pub fn bad_field(field: &str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::bad_request(message).with("field", field)
    }

    /// 401 with the challenge that RFC 6750 asks for.
    #[must_use]
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "missing or invalid bearer token; send 'Authorization: Bearer <api_key>'")
            .header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    /// 403.
    pub fn forbidden(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    /// 404: there is no such thing.
    pub fn not_found(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// 405 with the methods that the path does take, such as `GET, HEAD, OPTIONS`.
    #[must_use]
    pub fn method_not_allowed(allow: HeaderValue) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method not allowed on this path").header(ALLOW, allow)
    }

    /// 409: the state of the world forbids it.
    pub fn conflict(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    /// 500: something of ours failed. The message holds no secrets and no paths.
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// 503: not ready or full; try again after `retry_after_secs` seconds.
    pub fn unavailable(message: impl Into<Cow<'static, str>>, retry_after_secs: u32) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message).retry_after(retry_after_secs)
    }

    /// 429: `most` of `what` are there already, and no more may be at once.
    #[must_use]
    pub fn too_many(what: &str, most: usize) -> Self {
        Self::of(error_codes::TOO_MANY, format!("{most} {what}")).retry_after(1)
    }

    /// The same error with `key` beside `error` in the body.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.beside.insert(key.to_owned(), value.into());
        self
    }

    /// The same error with a stable word for programs in `code`.
    #[must_use]
    pub fn code(self, code: ErrorCode) -> Self {
        self.with("code", code.as_str())
    }

    /// The same error with `Retry-After: secs`; at least 1.
    #[must_use]
    pub fn retry_after(self, secs: u32) -> Self {
        self.header(RETRY_AFTER, HeaderValue::from(secs.max(1)))
    }

    /// The same error with one more header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.insert(name, value);
        self
    }

    /// The same error with `key` beside `error` in the body, unless something stands there already.
    #[must_use]
    pub(crate) fn or_with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.beside.entry(key).or_insert(value.into());
        self
    }

    /// What stands beside `error` under `key`.
    pub(crate) fn beside(&self, key: &str) -> Option<&Value> {
        self.0.beside.get(key)
    }

    /// The status the client will see.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// The sentence the client will see.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Seconds after which the client may try again, where that is said.
    #[must_use]
    pub fn retry_after_secs(&self) -> Option<u32> {
        self.0.headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()
    }

    /// Renders the response.
    #[must_use]
    pub fn into_response(self) -> Response {
        let Inner { status, message, headers, beside } = *self.0;
        let mut body = Map::with_capacity(1 + beside.len());
        body.insert("error".to_owned(), Value::String(message.into_owned()));
        body.extend(beside);
        let mut response = reply::bytes(status, reply::JSON, Value::Object(body).to_string());
        response.headers_mut().extend(headers);
        response
    }
}

/// The one place where a class of refusal becomes a status.
const fn status_of(kind: RefusalKind) -> StatusCode {
    match kind {
        RefusalKind::BadRequest => StatusCode::BAD_REQUEST,
        RefusalKind::Forbidden => StatusCode::FORBIDDEN,
        RefusalKind::NotFound => StatusCode::NOT_FOUND,
        RefusalKind::Conflict => StatusCode::CONFLICT,
        RefusalKind::TooMany => StatusCode::TOO_MANY_REQUESTS,
        RefusalKind::Busy => StatusCode::SERVICE_UNAVAILABLE,
        RefusalKind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        RefusalKind::NoRoom => StatusCode::INSUFFICIENT_STORAGE,
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let mut error = Self::new(status_of(refusal.kind), refusal.message);
        if let Some(field) = refusal.field {
            error = error.with("field", field);
        }
        if let Some(code) = refusal.code {
            error = error.code(code);
            if *code == *error_codes::OUTCOME_UNKNOWN {
                error.0.status = StatusCode::BAD_GATEWAY;
            }
        }
        for (key, value) in refusal.details {
            error = match value {
                Detail::Text(text) => error.with(&key, text),
                Detail::Count(count) => error.with(&key, count),
                Detail::Money(micros) => error.with(&key, micros.usd()),
            };
        }
        // 429 and 503 always say when to come back (decisions, Process).
        match (refusal.retry_after_secs, refusal.kind) {
            (Some(secs), _) => error.retry_after(secs),
            (None, RefusalKind::TooMany | RefusalKind::Busy) => error.retry_after(1),
            (None, _) => error,
        }
    }
}

impl From<ContentError> for Error {
    fn from(error: ContentError) -> Self {
        if matches!(error, ContentError::Exchanging) {
            return crate::http::bridge::exchanging().into();
        }
        tracing::error!(%error, "stored content could not be read");
        Self::internal("the content store could not be read")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_map_to_statuses() {
        let kinds = [
            (RefusalKind::BadRequest, 400),
            (RefusalKind::Forbidden, 403),
            (RefusalKind::NotFound, 404),
            (RefusalKind::Conflict, 409),
            (RefusalKind::TooMany, 429),
            (RefusalKind::Busy, 503),
            (RefusalKind::Failed, 500),
            (RefusalKind::NoRoom, 507),
        ];
        for (kind, status) in kinds {
            assert_eq!(Error::from(Refusal::new(kind, "x")).status().as_u16(), status);
        }
    }

    #[tokio::test]
    async fn body_has_error_and_what_stands_beside_it() {
        let refusal = Refusal { retry_after_secs: Some(0), ..Refusal::bad_field("name", "too long") }
            .with_code(error_codes::HOST);
        let response = Error::from(refusal).into_response();
        assert_eq!(response.headers()[RETRY_AFTER], "1");
        let body = reply::collect(response).await;
        assert_eq!(body, serde_json::json!({"error": "too long", "field": "name", "code": "host"}));
    }

    #[test]
    fn busy_and_too_many_always_say_when_to_come_back() {
        for kind in [RefusalKind::TooMany, RefusalKind::Busy] {
            assert_eq!(Error::from(Refusal::new(kind, "x")).into_response().headers()[RETRY_AFTER], "1");
        }
    }
}
