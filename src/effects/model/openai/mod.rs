//! The driver for OpenAI-compatible chat completions, streamed or whole.
//!
//! | the provider | the call ends as |
//! |---|---|
//! | cannot be reached | `ProviderUnreachable`, may pass |
//! | is silent for too long | `ProviderTimeout` |
//! | answers 401, 403 | `ProviderAuth` |
//! | answers 429 | `ProviderRateLimited`, may pass unless the quota is used up |
//! | answers 408, 5xx, or breaks off | `ProviderError` (408: `ProviderTimeout`), may pass |
//! | answers another 4xx | `ProviderRefused` |
//! | answers what is no chat completion | `ProviderProtocol` |
//!
//! What may pass is tried again by [`super::retry`], unless a piece of the answer was already given out.

mod answer;
mod failure;
mod request;

use std::time::Duration;

use agentsvc_components::limit;
use futures_util::future::BoxFuture;
use reqwest::{Response, Url, header};

use super::draft::Draft;
use super::error::CallError;
use super::http::{Clients, Timeouts};
use super::{Driver, Request};
use crate::sse;

/// Bytes of one event of a stream. An answer may come in one event, and JSON escapes make it longer.
const EVENT_BYTES_MAX: usize = 2 * limit::ANSWER_BYTES_MAX;
/// Bytes of a whole answer's JSON: the answer, its escapes and the provider's additions.
const BODY_BYTES_MAX: usize = 4 * limit::ANSWER_BYTES_MAX;
/// How long to wait, after the last event, for the end of the body that frees the connection for the next call.
const BODY_END_WAIT: Duration = Duration::from_millis(20);

/// The driver.
#[derive(Debug)]
pub struct OpenAi {
    clients: Clients,
}

impl OpenAi {
    /// A driver that has not opened anything yet.
    #[must_use]
    pub const fn new(timeouts: Timeouts) -> Self {
        Self { clients: Clients::new(timeouts) }
    }

    async fn ask(&self, request: &Request<'_>, draft: &mut Draft) -> Result<(), CallError> {
        let target = request.target;
        let url = endpoint(&target.base_url).ok_or_else(|| failure::bad_url(target))?;
        let mut post = self.clients.get(&url)?.post(url).header(header::CONTENT_TYPE, "application/json");
        if let Some(key) = &target.key {
            post = post.bearer_auth(key.expose());
        }
        let sent = post.body(request::body(request)).send().await;
        let response = sent.map_err(|error| failure::transport(target, &error, false))?;
        if !response.status().is_success() {
            return Err(failure::status(target, response).await);
        }
        if is_event_stream(&response, request.streaming) {
            read_stream(request, response, draft).await
        } else {
            read_whole(request, response, draft).await
        }
    }
}

impl Driver for OpenAi {
    fn call<'a>(&'a self, request: &'a Request<'a>, draft: &'a mut Draft) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(self.ask(request, draft))
    }
}

/// Where completions are asked: `base_url` with `chat/completions` after its path, its query kept.
fn endpoint(base_url: &str) -> Option<Url> {
    let mut url = Url::parse(base_url.trim()).ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    if !url.path().trim_end_matches('/').ends_with("/chat/completions") {
        url.path_segments_mut().ok()?.pop_if_empty().extend(["chat", "completions"]);
    }
    Some(url)
}

/// Some servers ignore what was asked and answer whole or streamed as they like; their header tells.
fn is_event_stream(response: &Response, streaming: bool) -> bool {
    match response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()) {
        Some(kind) if kind.starts_with("text/event-stream") => true,
        Some(kind) if kind.contains("json") => false,
        _ => streaming,
    }
}

async fn read_whole(request: &Request<'_>, mut response: Response, draft: &mut Draft) -> Result<(), CallError> {
    let target = request.target;
    let mut first = next_piece(request, &mut response).await?.unwrap_or_default();
    // One piece is the rule; then nothing is copied.
    let mut joined = Vec::new();
    while let Some(piece) = next_piece(request, &mut response).await? {
        if joined.is_empty() {
            joined.extend_from_slice(&first);
            first.clear();
        }
        joined.extend_from_slice(&piece);
        if joined.len() > BODY_BYTES_MAX {
            return Err(failure::protocol(target, "it is too long"));
        }
    }
    let body = if joined.is_empty() { &first[..] } else { &joined[..] };
    answer::read_whole(target, body, draft)
}

async fn read_stream(request: &Request<'_>, mut response: Response, draft: &mut Draft) -> Result<(), CallError> {
    let target = request.target;
    let mut parser = sse::Parser::new(EVENT_BYTES_MAX);
    let mut state = Ok(answer::Progress::More);
    while let Some(piece) = next_piece(request, &mut response).await? {
        let fed = parser.feed(&piece, |event| {
            if matches!(state, Ok(answer::Progress::More)) {
                state = answer::read_event(target, event.data, draft);
            }
        });
        match std::mem::replace(&mut state, Ok(answer::Progress::More))? {
            answer::Progress::More => {}
            answer::Progress::Full => return Ok(()),
            answer::Progress::Done => {
                let _ = tokio::time::timeout(BODY_END_WAIT, response.chunk()).await;
                return Ok(());
            }
        }
        fed.map_err(|error| failure::protocol(target, &error.to_string()))?;
    }
    // Some servers close without `[DONE]`; the finish reason tells a whole answer from a broken one.
    if draft.has_stopped() { Ok(()) } else { Err(failure::broken_off(target)) }
}

async fn next_piece(request: &Request<'_>, response: &mut Response) -> Result<Option<bytes::Bytes>, CallError> {
    response.chunk().await.map_err(|error| failure::transport(request.target, &error, true))
}

#[cfg(test)]
mod tests {
    use super::endpoint;

    #[test]
    fn endpoints() {
        let at = |base: &str| endpoint(base).map(String::from);
        let whole = Some("http://h:1/v1/chat/completions".to_owned());
        assert_eq!(at("http://h:1/v1"), whole);
        assert_eq!(at(" http://h:1/v1/ "), whole);
        assert_eq!(at("http://h:1/v1/chat/completions"), whole);
        assert_eq!(at("https://h/x?api-version=1"), Some("https://h/x/chat/completions?api-version=1".to_owned()));
        assert_eq!(at("https://h"), Some("https://h/chat/completions".to_owned()));
        assert_eq!((at("ftp://h"), at("nonsense"), at("")), (None, None, None));
    }
}
