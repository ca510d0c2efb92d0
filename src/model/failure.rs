//! From what went wrong on the wire to the classes of failure, in words that help and hold no secrets.

use agentsvc_components::turn::outcome::FailureCode;
use std::error::Error as _;
use std::time::{Duration, SystemTime};

use reqwest::header::{self, HeaderMap};
use reqwest::{Response, StatusCode};
use serde_json::Value;

use super::error::{CallError, provider_words};
use super::provider::{DriverKind, Target};
use crate::kernel::egress::retry_after;
use crate::kernel::host::host_of;

/// Bytes of an error's body that are read for the provider's own words.
const ERROR_BODY_BYTES_MAX: usize = 64 << 10;
/// The header that names the error of an AWS API.
const AWS_ERROR_TYPE: &str = "x-amzn-errortype";
/// The header of those who ask for less than a second.
const RETRY_AFTER_MS: &str = "retry-after-ms";

/// The endpoint cannot be used.
pub(crate) fn bad_url(target: &Target) -> CallError {
    let message = format!("The base_url of provider {} is not an http or https URL.", target.provider);
    CallError::last(FailureCode::ProviderRefused, message)
}

/// The key holds what no header may hold.
pub(crate) fn bad_key(target: &Target) -> CallError {
    let message = format!(
        "The key of provider {} cannot be sent: it contains line breaks or other control characters.",
        target.provider
    );
    CallError::last(FailureCode::ProviderAuth, message)
}

/// The answer is not what the protocol says.
pub(crate) fn protocol(target: &Target, what: &str) -> CallError {
    let message = format!("The response of provider {} is not valid: {what}.", target.provider);
    CallError::last(FailureCode::ProviderProtocol, message)
}

/// The stream ended before the answer did.
pub(crate) fn broken_off(target: &Target) -> CallError {
    let message = format!("Provider {} closed the connection in the middle of its response.", target.provider);
    CallError::passing(FailureCode::ProviderError, message)
}

/// The connection failed, before the answer or (`answering`) during it.
pub(crate) fn transport(target: &Target, error: &reqwest::Error, answering: bool) -> CallError {
    let provider = &target.provider;
    let host = host_of(&target.base_url).unwrap_or_default();
    if error.is_builder() {
        return bad_url(target);
    }
    if error.is_connect() {
        let cause = if error.is_timeout() { "connection timed out".to_owned() } else { root_cause(error) };
        let message = format!("Provider {provider} at {host} is unreachable: {cause}.");
        return CallError::passing(FailureCode::ProviderUnreachable, message);
    }
    if error.is_timeout() {
        let message = format!("Provider {provider} at {host} did not respond in time.");
        return CallError::last(FailureCode::ProviderTimeout, message);
    }
    if answering {
        return broken_off(target);
    }
    let message = format!("Provider {provider} at {host} closed the connection without a response.");
    CallError::passing(FailureCode::ProviderError, message)
}

/// The innermost cause, such as `Connection refused (os error 111)`. The outer ones would repeat the URL, which may
/// hold credentials.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(inner) = cause.and_then(std::error::Error::source) {
        cause = Some(inner);
    }
    let words = cause.map_or_else(|| "no connection".to_owned(), |cause| provider_words(&cause.to_string(), None));
    // What resolvers say names system calls, and differs from system to system.
    if words.starts_with("failed to lookup address") { "DNS lookup failed".to_owned() } else { words }
}

/// The provider answered with another status than success.
pub(crate) async fn status(target: &Target, mut response: Response) -> CallError {
    let status = response.status();
    let kind = response.headers().get(AWS_ERROR_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    // `ThrottlingException:http://...` from some of them.
    let kind = kind.split(':').next().unwrap_or_default().to_owned();
    let asked = asked_wait(response.headers());
    let mut body = Vec::new();
    while body.len() < ERROR_BODY_BYTES_MAX {
        // A body that breaks off leaves the status, which is what counts.
        let Ok(Some(piece)) = response.chunk().await else { break };
        body.extend_from_slice(&piece);
    }
    let error = serde_json::from_slice::<Value>(&body).ok();
    let words = match &error {
        Some(error) => own_message(error).unwrap_or_default().to_owned(),
        // A page of HTML says nothing to a person who reads one line.
        None if body.trim_ascii_start().starts_with(b"<") => String::new(),
        None => String::from_utf8_lossy(&body).into_owned(),
    };
    let words = if kind.is_empty() { words } else { format!("{kind}: {words}") };
    let quota_used_up = error.as_ref().is_some_and(is_quota_used_up);
    let asked = asked.or_else(|| error.as_ref().and_then(retry_delay));
    match error.as_ref().and_then(|error| special(target, error, &words)) {
        Some(special) => CallError { retry_after: asked, ..special },
        None => CallError { retry_after: asked, ..of_status(target, status, &words, quota_used_up) },
    }
}

/// How long the provider asks to be left alone, by its headers.
fn asked_wait(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let ms = text(RETRY_AFTER_MS).and_then(|value| value.trim().parse::<f64>().ok());
    let exact = ms.and_then(|ms| Duration::try_from_secs_f64(ms / 1_000.0).ok());
    exact.or_else(|| retry_after(text(header::RETRY_AFTER.as_str())?, SystemTime::now()))
}

/// How long the provider asks to be left alone, by a `RetryInfo` among the details of an error of Google's.
fn retry_delay(error: &Value) -> Option<Duration> {
    let delay = details(error).find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let secs = delay.strip_suffix('s')?.parse::<f64>().ok()?;
    Duration::try_from_secs_f64(secs).ok()
}

/// The details of an error of Google's.
fn details(error: &Value) -> impl Iterator<Item = &Value> {
    let error = error.get(0).unwrap_or(error);
    let inner = error.get("error").unwrap_or(error);
    inner.get("details").and_then(Value::as_array).into_iter().flatten()
}

/// Errors whose status says less than their words: a wrong key that is called a wrong request (Google), a tool call that
/// the model wrote wrongly and that it may write rightly the next time (Groq), a prompt that a filter stopped (Azure).
fn special(target: &Target, error: &Value, words: &str) -> Option<CallError> {
    let provider = &target.provider;
    if details(error).any(|detail| detail.get("reason").and_then(Value::as_str) == Some("API_KEY_INVALID")) {
        let message = format!("Provider {provider} refused the key{}", colon(target, words));
        return Some(CallError::last(FailureCode::ProviderAuth, message));
    }
    let inner = error.get("error")?;
    match inner.get("code").and_then(Value::as_str)? {
        "tool_use_failed" => {
            let message =
                format!("The model of provider {provider} wrote a malformed tool call{}", colon(target, words));
            Some(CallError::passing(FailureCode::ProviderProtocol, message))
        }
        "content_filter" => {
            let found = filters(inner);
            let found = if found.is_empty() { String::new() } else { format!(" ({})", found.join(", ")) };
            let message =
                format!("A content filter of provider {provider} stopped the prompt{found}{}", colon(target, words));
            Some(CallError::last(FailureCode::ProviderRefused, message))
        }
        _ => None,
    }
}

/// What a filter of Azure's found.
fn filters(error: &Value) -> Vec<&str> {
    let results = error.pointer("/innererror/content_filter_result").and_then(Value::as_object);
    let found = results.into_iter().flatten().filter(|(_, result)| result["filtered"] == true);
    found.map(|(name, _)| name.as_str()).collect()
}

/// An `error` object in place of an answer, which some gateways send with status 200.
pub(crate) fn in_answer(target: &Target, error: &Value) -> CallError {
    let words = error.as_str().or_else(|| own_message(error)).unwrap_or_default();
    let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let asked = retry_delay(error);
    let error = match code.and_then(|code| StatusCode::from_u16(code).ok()).filter(|status| !status.is_success()) {
        Some(status) => of_status(target, status, words, is_quota_used_up(error)),
        None => {
            let message = format!("Provider {} returned an error{}", target.provider, colon(target, words));
            CallError::last(FailureCode::ProviderError, message)
        }
    };
    CallError { retry_after: asked, ..error }
}

/// An error in the middle of an answer, whose name stands for `status`.
pub(crate) fn as_status(target: &Target, status: u16, error: &Value) -> CallError {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    of_status(target, status, own_message(error).unwrap_or_default(), is_quota_used_up(error))
}

fn of_status(target: &Target, status: StatusCode, words: &str, quota_used_up: bool) -> CallError {
    let reason = status.canonical_reason().map(|reason| format!(" {reason}")).unwrap_or_default();
    let (number, words) = (status.as_u16(), colon(target, words));
    let message = format!("Provider {} answered {number}{reason}{words}", target.provider);
    match status.as_u16() {
        401 if quota_used_up => CallError::last(FailureCode::ProviderRateLimited, message),
        401 | 403 => CallError::last(FailureCode::ProviderAuth, message),
        408 => CallError::passing(FailureCode::ProviderTimeout, message),
        429 if quota_used_up => CallError::last(FailureCode::ProviderRateLimited, message),
        429 => CallError::passing(FailureCode::ProviderRateLimited, message),
        // Bedrock: the model behind it failed.
        424 => CallError::passing(FailureCode::ProviderError, message),
        500.. => CallError::passing(FailureCode::ProviderError, message),
        400..500 => CallError::last(FailureCode::ProviderRefused, message),
        // A redirect is not followed: a key must not wander. The base_url should name the real place.
        _ => CallError::last(FailureCode::ProviderProtocol, message),
    }
}

/// The provider's own words after a colon, or the full stop.
fn colon(target: &Target, words: &str) -> String {
    let key = target.key.as_ref().map(super::provider::Secret::expose);
    // Credentials of AWS are several, with colons between; its errors repeat what was signed.
    let parts = key.filter(|_| target.driver == DriverKind::Bedrock).into_iter().flat_map(|key| key.split(':'));
    let words = parts.filter(|part| !part.is_empty()).fold(words.to_owned(), |words, part| words.replace(part, "***"));
    let words = provider_words(&words, key);
    if words.is_empty() { ".".to_owned() } else { format!(": {words}") }
}

/// `error.message`, `error`, `message`, `detail`, `detail.message` or the first of `errors`, at top level or in the first item of
/// a list.
fn own_message(error: &Value) -> Option<&str> {
    let error = error.get(0).unwrap_or(error);
    let inner = error.get("error").unwrap_or(error);
    let places = [Some(inner), inner.get("detail"), inner.get("errors").and_then(|errors| errors.get(0))];
    places.into_iter().flatten().find_map(|place| place.as_str().or_else(|| place.get("message")?.as_str()))
}

/// 429 also says that the money, or the day's share, is gone; waiting does not bring it back.
fn is_quota_used_up(error: &Value) -> bool {
    let inner = error.get("error").unwrap_or(error);
    let violations = details(error).filter_map(|detail| detail.get("violations")?.as_array()).flatten();
    let quotas = violations.filter_map(|violation| violation.get("quotaId")?.as_str());
    if quotas.into_iter().any(|quota| quota.contains("PerDay")) {
        return true;
    }
    // ElevenLabs says so with 401.
    let status = error.pointer("/detail/status").and_then(Value::as_str);
    status == Some("quota_exceeded")
        || ["code", "type"].iter().any(|key| inner.get(key).and_then(Value::as_str) == Some("insufficient_quota"))
}

#[cfg(test)]
mod tests {
    use agentsvc_components::turn::outcome::FailureCode;
    use std::time::Duration;

    use reqwest::header::{HeaderMap, HeaderValue};
    use serde_json::json;

    use super::{asked_wait, is_quota_used_up, own_message, retry_delay, special};
    use crate::model::provider::DriverKind;
    use crate::model::testing::target;

    #[test]
    fn the_own_words_of_many_servers() {
        for error in [
            json!({"error": {"message": "no", "type": "x"}}),
            json!({"error": "no"}),
            json!({"object": "error", "message": "no"}),
            json!({"detail": "no"}),
            json!({"detail": {"status": "x", "message": "no"}}),
            json!({"id": "i", "name": "x", "errors": ["no", "more"]}),
            json!([{"error": {"message": "no"}}]),
            json!({"message": "no", "code": 7}),
        ] {
            assert_eq!(own_message(&error), Some("no"), "{error}");
        }
        assert_eq!(own_message(&json!({"error": {}})), None);
        assert_eq!(own_message(&json!("no")), Some("no"));
    }

    #[test]
    fn quota() {
        assert!(is_quota_used_up(&json!({"error": {"message": "x", "code": "insufficient_quota"}})));
        assert!(is_quota_used_up(&json!({"detail": {"status": "quota_exceeded", "message": "x"}})));
        assert!(!is_quota_used_up(&json!({"error": {"code": "rate_limit_exceeded"}})));
        let google = |quota: &str| json!({"error": {"code": 429, "details": [{"violations": [{"quotaId": quota}]}]}});
        assert!(is_quota_used_up(&google("GenerateRequestsPerDayPerProjectPerModel-FreeTier")));
        assert!(!is_quota_used_up(&google("GenerateRequestsPerMinutePerProjectPerModel-FreeTier")));
    }

    #[test]
    fn waits_that_are_asked_for() {
        let mut headers = HeaderMap::new();
        assert_eq!(asked_wait(&headers), None);
        headers.insert("retry-after", HeaderValue::from_static("2"));
        assert_eq!(asked_wait(&headers), Some(Duration::from_secs(2)));
        headers.insert("retry-after-ms", HeaderValue::from_static("1500"));
        assert_eq!(asked_wait(&headers), Some(Duration::from_millis(1_500)));
        let error = json!({"error": {"code": 429, "details": [{"@type": "x"}, {"retryDelay": "34.5s"}]}});
        assert_eq!(retry_delay(&error), Some(Duration::from_millis(34_500)));
        assert_eq!(retry_delay(&json!([error])), Some(Duration::from_millis(34_500)));
        assert_eq!(retry_delay(&json!({"error": {"details": [{"retryDelay": "soon"}]}})), None);
    }

    #[test]
    fn errors_whose_words_say_more() {
        let of = |error: &serde_json::Value| {
            special(&target(DriverKind::Azure, "http://h"), error, "why").map(|e| (e.code, e.retryable, e.message))
        };
        let key = json!({"error": {"code": 400, "details": [{"reason": "API_KEY_INVALID"}]}});
        let (code, retryable, _) = of(&key).unwrap();
        assert_eq!((code, retryable), (FailureCode::ProviderAuth, false));
        let call = json!({"error": {"code": "tool_use_failed", "failed_generation": "x"}});
        assert_eq!(
            of(&call).map(|(code, retryable, _)| (code, retryable)),
            Some((FailureCode::ProviderProtocol, true))
        );
        let results = json!({"hate": {"filtered": true, "severity": "high"}, "violence": {"filtered": false}});
        let inner = json!({"code": "ResponsibleAIPolicyViolation", "content_filter_result": results});
        let (code, _, message) = of(&json!({"error": {"code": "content_filter", "innererror": inner}})).unwrap();
        assert_eq!(code, FailureCode::ProviderRefused);
        assert!(message.ends_with("stopped the prompt (hate): why"), "{message}");
        assert_eq!(of(&json!({"error": {"code": "other"}})), None);
    }
}
