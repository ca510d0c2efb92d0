//! Requests to providers of media, and their answers, read whole within bounds.

use std::time::Duration;

use agentsvc_components::media::MediaFault;
use reqwest::header::{self, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode};
use serde_json::Value;

use super::failed::Failed;
use super::wire::form::Form;
use crate::model::failure;
use crate::model::http::{Clients, Timeouts};
use crate::model::provider::{DriverKind, Target, extra_headers};
use crate::model::wire::{Post, endpoint};

/// How long a provider may take: less than a try of the job.
const TIMEOUTS: Timeouts =
    Timeouts { connect: Duration::from_secs(10), read: Duration::from_secs(280), total: Duration::from_secs(290) };
/// The header of keys of Gemini.
const GEMINI_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");
/// The header of keys of ElevenLabs.
const ELEVENLABS_KEY: HeaderName = HeaderName::from_static("xi-api-key");
/// The header in which Stability says why the work ended.
const FINISH_REASON: &str = "finish-reason";
/// Answers of any type.
const ANY: &str = "*/*";
/// Bytes of an answer that holds no files.
pub(super) const TEXT_BYTES_MAX: u64 = 4 << 20;

/// Asks providers.
#[derive(Debug)]
pub(super) struct Http(Clients);

/// One request.
pub(super) struct Ask<'a> {
    pub(super) target: &'a Target,
    pub(super) method: Method,
    /// Below the base URL.
    pub(super) path: &'a [&'a str],
    pub(super) query: &'a [(&'a str, &'a str)],
    /// The content type and the body.
    pub(super) body: Option<(HeaderValue, Vec<u8>)>,
    /// What the answer may be.
    pub(super) accept: &'static str,
    /// Bytes of the answer at most.
    pub(super) bytes_max: u64,
}

impl<'a> Ask<'a> {
    /// A question.
    pub(super) const fn get(target: &'a Target, path: &'a [&'a str], query: &'a [(&'a str, &'a str)]) -> Self {
        Self { target, method: Method::GET, path, query, body: None, accept: ANY, bytes_max: TEXT_BYTES_MAX }
    }

    /// A request with a JSON body.
    pub(super) fn post(target: &'a Target, path: &'a [&'a str], body: &Value, bytes_max: u64) -> Self {
        let body = Some((HeaderValue::from_static("application/json"), body.to_string().into_bytes()));
        Self { target, method: Method::POST, path, query: &[], body, accept: ANY, bytes_max }
    }

    /// A request with a form, of which the answer is a text.
    pub(super) fn form(target: &'a Target, path: &'a [&'a str], form: Form) -> Result<Self, Failed> {
        let (content_type, body) = form.finish();
        let wrong = |_| protocol(target, "the form has no boundary");
        let body = Some((HeaderValue::from_str(&content_type).map_err(wrong)?, body));
        Ok(Self { target, method: Method::POST, path, query: &[], body, accept: ANY, bytes_max: TEXT_BYTES_MAX })
    }
}

/// An answer.
pub(super) struct Answer {
    pub(super) content_type: String,
    /// Why the work ended, where a header says it.
    pub(super) finish_reason: String,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn is_json(&self) -> bool {
        self.content_type.starts_with("application/json")
    }
}

impl Http {
    /// Nothing is opened yet.
    pub(super) fn new() -> Self {
        Self::within(TIMEOUTS)
    }

    /// For providers that take no longer than this.
    pub(super) fn within(timeouts: Timeouts) -> Self {
        Self(Clients::new(timeouts))
    }

    /// Sends a request. What fails once the provider has it may have been charged, unless its status says that it was refused.
    pub(super) async fn ask(&self, ask: Ask<'_>) -> Result<Answer, Failed> {
        let Ask { target, method, path, query, body, accept, bytes_max } = ask;
        let mut url = endpoint(target, path)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let (name, prefix) = match target.driver {
            DriverKind::Gemini => (GEMINI_KEY, ""),
            _ if *target.provider == *"elevenlabs" => (ELEVENLABS_KEY, ""),
            _ => (header::AUTHORIZATION, "Bearer "),
        };
        let Post { url, headers, .. } = Post::new(url, Vec::new()).key(target, name, prefix)?;
        let mut request = self.0.get(&url)?.request(method, url).headers(headers).header(header::ACCEPT, accept);
        for (name, value) in extra_headers(&target.provider) {
            request = request.header(*name, *value);
        }
        if let Some((content_type, body)) = body {
            request = request.header(header::CONTENT_TYPE, content_type).body(body);
        }
        let response = request.send().await.map_err(|error| {
            let failed = Failed::from(failure::transport(target, &error, false));
            if error.is_connect() || error.is_builder() { failed } else { failed.charged() }
        })?;
        if !response.status().is_success() {
            return Err(refused(target, response).await);
        }
        let said = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let content_type = said(header::CONTENT_TYPE.as_str()).to_ascii_lowercase();
        let finish_reason = said(FINISH_REASON).to_owned();
        Ok(Answer { content_type, finish_reason, body: whole(target, response, bytes_max).await? })
    }

    /// Sends a request of which the answer is a file. Some providers and gateways send an error with status 200.
    pub(super) async fn file(&self, ask: Ask<'_>) -> Result<Vec<u8>, Failed> {
        let target = ask.target;
        let answer = self.ask(ask).await?;
        if answer.is_json() {
            json_of(target, &answer.body)?;
            return Err(protocol(target, "it is JSON instead of a file"));
        }
        Ok(answer.body)
    }

    /// Sends a request, and reads the answer as JSON.
    pub(super) async fn json(&self, ask: Ask<'_>) -> Result<Value, Failed> {
        let target = ask.target;
        json_of(target, &self.ask(ask).await?.body)
    }
}

/// The JSON of an answer, unless it says that it is an error.
pub(super) fn json_of(target: &Target, body: &[u8]) -> Result<Value, Failed> {
    let value: Value = serde_json::from_slice(body).map_err(|error| {
        // The message of the parser could repeat texts of the answer.
        protocol(target, &format!("it is not JSON (line {}, column {})", error.line(), error.column()))
    })?;
    // Some say with each answer that there were no errors.
    let says_something = |error: &&Value| match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    };
    match ["error", "errors", "detail"].iter().find_map(|name| value.get(name).filter(says_something)) {
        Some(error) => Err(in_answer(target, error)),
        None => Ok(value),
    }
}

/// The answer is not what was asked for; it was charged.
pub(super) fn protocol(target: &Target, what: &str) -> Failed {
    Failed::from(failure::protocol(target, what)).charged()
}

/// An error in an answer with status 200: nothing was made.
pub(super) fn in_answer(target: &Target, error: &Value) -> Failed {
    let failed = Failed::from(failure::in_answer(target, error));
    let code = error.get("code").and_then(Value::as_str).unwrap_or_default();
    if is_filter(code) { Failed { fault: MediaFault::Filtered, ..failed } } else { failed }
}

/// Does a code say that a content filter stopped the request?
fn is_filter(code: &str) -> bool {
    ["moderation_blocked", "content_policy_violation", "content_filter"].contains(&code)
}

/// A status that is no success: nothing was made. A 5xx may have come after the work was done, so that it is not repeated.
async fn refused(target: &Target, response: Response) -> Failed {
    let status = response.status();
    let mut failed = Failed::from(failure::status(target, response).await);
    if status.is_server_error() {
        return failed.charged();
    }
    // The credit is used up: it helps neither to ask again nor to ask for something else.
    if status == StatusCode::PAYMENT_REQUIRED {
        failed.fault = MediaFault::RateLimited;
    }
    // Some answer 403, as they do to a key that may not do it.
    if matches!(failed.fault, MediaFault::Refused | MediaFault::Auth)
        && ["moderation", "content policy", "content_policy", "safety system", "content filter"]
            .iter()
            .any(|words| failed.message.to_ascii_lowercase().contains(words))
    {
        failed.fault = MediaFault::Filtered;
    }
    failed
}

/// The body of an answer, which must be whole, and not longer than this.
async fn whole(target: &Target, mut response: Response, most: u64) -> Result<Vec<u8>, Failed> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(piece)) if (body.len() + piece.len()) as u64 > most => {
                return Err(protocol(target, &format!("it is longer than {most} bytes")));
            }
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Ok(None) => return Ok(body),
            Err(error) => return Err(Failed::from(failure::transport(target, &error, true)).charged()),
        }
    }
}
