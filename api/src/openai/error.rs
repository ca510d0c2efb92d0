//! Errors as OpenAI's clients look for them.

use super::error_codes;
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use serde_json::Value;

use crate::http::error::Error;

/// Tells OpenAI's clients whether to try again by themselves.
const X_SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// The same error with what OpenAI's clients look for beside `error`: `message`, `type`, `param` and `code`.
///
/// `error` stays a sentence, as everywhere (decisions, Process). A 409 or 500 also says that trying again is of no use:
/// those clients would repeat a turn whose model was asked again already and whose tools may have run.
#[must_use]
pub(crate) fn for_openai(error: Error) -> Error {
    let status = error.status();
    let kind = match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    let code =
        if status == StatusCode::UNAUTHORIZED { error_codes::INVALID_API_KEY.as_str().into() } else { Value::Null };
    let param = error.beside("field").cloned().unwrap_or_default();
    let message = error.message().to_owned();
    let is_over_budget = error.beside("reset_at").is_some();
    let error = error.or_with("message", message).or_with("type", kind).or_with("param", param).or_with("code", code);
    if is_over_budget || matches!(status, StatusCode::CONFLICT | StatusCode::INTERNAL_SERVER_ERROR) {
        return error.header(X_SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    error
}
