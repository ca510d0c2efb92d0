//! What the drivers over HTTP share: one request, and its answer read whole or frame by frame.
//!
//! | the provider | the call ends as |
//! |---|---|
//! | cannot be reached | `ProviderUnreachable`, may pass |
//! | is silent for too long | `ProviderTimeout` |
//! | answers 401, 403 | `ProviderAuth` |
//! | answers 429 | `ProviderRateLimited`, may pass unless the quota is used up |
//! | answers 408, 5xx, or breaks off | `ProviderError` (408: `ProviderTimeout`), may pass |
//! | answers another 4xx | `ProviderRefused` |
//! | answers what its protocol does not know | `ProviderProtocol` |
//!
//! What may pass is tried again by [`super::retry`], unless a piece of the answer was already given out.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::http::json::memory_bytes;
use agentsvc_components::kernel::limit;
use agentsvc_components::turn::outcome::FailureCode;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, Url};

use super::draft::Draft;
use super::error::CallError;
use super::failure;
use super::frames::{Frame, Framer, Framing};
use super::http::Clients;
use super::provider::{Target, extra_headers};
use super::{Driver, Request, names};

/// Bytes of one frame of a stream. An answer may come in one frame, and JSON escapes make it longer.
const FRAME_BYTES_MAX: usize = 2 * limit::ANSWER_BYTES_MAX;
/// Bytes of a whole answer's JSON: the answer, its escapes and the provider's additions.
const BODY_BYTES_MAX: usize = 4 * limit::ANSWER_BYTES_MAX;
/// Bytes of memory that a frame or a whole body may take when it is read: nested values take a hundred times their text.
const READ_BYTES_MAX: usize = 16 * limit::ANSWER_BYTES_MAX;
/// A text of this size takes no more, whatever it says.
const READ_UNCOUNTED_BYTES: usize = READ_BYTES_MAX / 256;
/// How long to wait, after the last frame, for the end of the body that frees the connection for the next call.
const BODY_END_WAIT: Duration = Duration::from_millis(20);

/// Bytes of a stream that may have no content: what a provider repeats of the request, and what keeps the connection open.
const STREAM_BYTES_FREE: usize = 64 << 20;
/// Beyond them, bytes of a stream for each byte of content.
const STREAM_BYTES_PER_BYTE: usize = 512;
/// Frames and network pieces of a stream that may have no content, such as those that only say that the model thinks. Beyond
/// them there may be two for each byte of content.
const STREAM_FRAMES_FREE: usize = 200_000;

/// What has come of a stream. One with hardly any content would keep a turn, and a core, busy until its time is over.
#[derive(Debug, Default)]
struct Received {
    bytes: usize,
    /// Frames and network pieces.
    frames: usize,
}

impl Received {
    /// May so much have come for an answer of which so many bytes are written?
    const fn is_fair(&self, written: usize) -> bool {
        self.bytes <= STREAM_BYTES_FREE + STREAM_BYTES_PER_BYTE * written
            && self.frames <= STREAM_FRAMES_FREE + 2 * written
    }
}

/// How far a streamed answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More is to come.
    More,
    /// The provider said that it is done.
    Done,
    /// The answer is as long as it may be.
    Full,
}

impl Progress {
    /// What follows from `draft`: full, or more to come.
    pub(crate) const fn of(draft: &Draft) -> Self {
        if draft.is_full() { Self::Full } else { Self::More }
    }
}

/// One request, ready to be sent.
#[derive(Debug)]
pub(crate) struct Post {
    /// Where it goes.
    pub(crate) url: Url,
    /// Its headers beside `content-type`, which is JSON; the key among them, marked as sensitive.
    pub(crate) headers: HeaderMap,
    /// The JSON body.
    pub(crate) body: Vec<u8>,
}

impl Post {
    /// A request without headers.
    pub(crate) fn new(url: Url, body: Vec<u8>) -> Self {
        Self { url, headers: HeaderMap::new(), body }
    }

    /// With a header that is no secret.
    pub(crate) fn header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.insert(name, HeaderValue::from_static(value));
        self
    }

    /// With the key of `target` in a header, behind `prefix` (such as `Bearer `), where there is a key.
    pub(crate) fn key(mut self, target: &Target, name: HeaderName, prefix: &str) -> Result<Self, CallError> {
        if let Some(key) = &target.key {
            let text = format!("{prefix}{}", key.expose());
            let mut value = HeaderValue::from_str(&text).map_err(|_| failure::bad_key(target))?;
            value.set_sensitive(true);
            self.headers.insert(name, value);
        }
        Ok(self)
    }
}

/// A place below `base_url`: `tail` after its path, unless it ends with that already; its query is kept.
pub(crate) fn endpoint(target: &Target, tail: &[&str]) -> Result<Url, CallError> {
    below(&target.base_url, tail).ok_or_else(|| failure::bad_url(target))
}

fn below(base_url: &str, tail: &[&str]) -> Option<Url> {
    let mut url = Url::parse(base_url.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let segments: Vec<&str> = url.path().split('/').filter(|segment| !segment.is_empty()).collect();
    if !segments.ends_with(tail) {
        url.path_segments_mut().ok()?.pop_if_empty().extend(tail);
    }
    Some(url)
}

/// One wire protocol: how a request is written and how an answer is read.
pub(crate) trait Wire: Debug + Send + Sync + 'static {
    /// Reads one answer.
    type Answer: Answer;

    /// How its streams are cut into frames where the answer's content type does not say.
    const FRAMING: Framing = Framing::Events;

    /// The request.
    ///
    /// # Errors
    /// The target cannot be asked: a bad URL, a key that is no key of this provider.
    fn post(&self, request: &Request<'_>) -> Result<Post, CallError>;
}

/// Reads one answer, and remembers from frame to frame what it has to.
pub(crate) trait Answer: Default + Send {
    /// Takes one frame of a streamed answer.
    fn frame(&mut self, target: &Target, frame: Frame<'_>, draft: &mut Draft) -> Result<Progress, CallError>;

    /// Takes a whole answer.
    fn whole(&mut self, target: &Target, body: &[u8], draft: &mut Draft) -> Result<(), CallError>;
}

/// The driver of a wire protocol.
#[derive(Debug)]
pub(crate) struct HttpDriver<W> {
    wire: W,
    clients: Arc<Clients>,
}

impl<W: Wire> HttpDriver<W> {
    /// A driver that has not opened anything yet.
    pub(crate) const fn new(wire: W, clients: Arc<Clients>) -> Self {
        Self { wire, clients }
    }

    async fn ask(&self, request: &Request<'_>, draft: &mut Draft) -> Result<(), CallError> {
        let target = request.target;
        let Post { url, headers, body } = self.wire.post(request)?;
        let post = self.clients.get(&url)?.post(url).header(header::CONTENT_TYPE, "application/json");
        let more = extra_headers(&target.provider).iter();
        let post = more.fold(post, |post, (name, value)| post.header(*name, *value));
        draft.note_sent(request.sent(body.len()));
        let sent = post.headers(headers).body(body).send().await;
        let response = sent.map_err(|error| failure::transport(target, &error, false))?;
        self.clients.pace().learn(target, response.headers());
        if !response.status().is_success() {
            return Err(failure::status(target, response).await);
        }
        let read = self.take(target, response, request.streaming, draft).await;
        names::restore(draft, request.tools);
        read
    }

    async fn take(
        &self,
        target: &Target,
        response: Response,
        streaming: bool,
        draft: &mut Draft,
    ) -> Result<(), CallError> {
        match framing(&response, streaming.then_some(W::FRAMING)) {
            Some(framing) => self.read_frames(framing, target, response, draft).await,
            None => self.read_whole(target, response, draft).await,
        }
    }

    async fn read_whole(&self, target: &Target, mut response: Response, draft: &mut Draft) -> Result<(), CallError> {
        let mut first = next_piece(target, &mut response).await?.unwrap_or_default();
        // One piece is the rule; then nothing is copied.
        let mut joined = Vec::new();
        while let Some(piece) = next_piece(target, &mut response).await? {
            if joined.is_empty() {
                joined.extend_from_slice(&first);
                first.clear();
            }
            joined.extend_from_slice(&piece);
            if joined.len() > BODY_BYTES_MAX {
                return Err(unread(failure::protocol(target, "it is too long"), joined.len(), draft));
            }
        }
        let body = if joined.is_empty() { &first[..] } else { &joined[..] };
        let read = check_memory(target, body).and_then(|()| W::Answer::default().whole(target, body, draft));
        read.map_err(|error| unread(error, body.len(), draft))
    }

    async fn read_frames(
        &self,
        framing: Framing,
        target: &Target,
        mut response: Response,
        draft: &mut Draft,
    ) -> Result<(), CallError> {
        let mut framer = Framer::new(framing, FRAME_BYTES_MAX);
        let mut answer = W::Answer::default();
        let (mut read, mut received) = (Ok(Progress::More), Received::default());
        loop {
            let piece = next_piece(target, &mut response).await?;
            let mut take = |frame: Frame<'_>| {
                received.frames += 1;
                if matches!(read, Ok(Progress::More)) {
                    let fits = check_memory(target, frame.data.as_bytes());
                    read = fits.and_then(|()| answer.frame(target, frame, draft));
                }
            };
            let fed = match &piece {
                Some(piece) => framer.feed(piece, &mut take),
                None => framer.finish(&mut take),
            };
            match std::mem::replace(&mut read, Ok(Progress::More)) {
                Ok(Progress::More) => {}
                // What stands behind the last whole frame is half of one.
                Err(error) if piece.is_none() && error.code == FailureCode::ProviderProtocol => {}
                Err(error) => return Err(unread(error, piece.map_or(0, |piece| piece.len()), draft)),
                Ok(Progress::Full) => return Ok(()),
                Ok(Progress::Done) => {
                    let _ = tokio::time::timeout(BODY_END_WAIT, response.chunk()).await;
                    return Ok(());
                }
            }
            let bytes = piece.as_ref().map_or(0, Bytes::len);
            fed.map_err(|why| unread(failure::protocol(target, &why), bytes, draft))?;
            if piece.is_none() {
                break;
            }
            (received.bytes, received.frames) = (received.bytes + bytes, received.frames + 1);
            if !received.is_fair(draft.written()) {
                return Err(failure::protocol(target, "the stream has almost no content"));
            }
        }
        // Some servers close without a last frame; the reason to stop tells a whole answer from a broken one.
        if draft.has_stopped() { Ok(()) } else { Err(failure::broken_off(target)) }
    }
}

/// Refuses JSON that takes too much memory when it is read.
fn check_memory(target: &Target, json: &[u8]) -> Result<(), CallError> {
    if json.len() > READ_UNCOUNTED_BYTES && memory_bytes(json) > READ_BYTES_MAX {
        return Err(failure::protocol(target, "it is too deeply nested for its size"));
    }
    Ok(())
}

impl<W: Wire> Driver for HttpDriver<W> {
    fn call<'a>(&'a self, request: &'a Request<'a>, draft: &'a mut Draft) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(self.ask(request, draft))
    }

    fn read<'a>(
        &'a self,
        target: &'a Target,
        response: Response,
        streaming: bool,
        draft: &'a mut Draft,
    ) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(self.take(target, response, streaming, draft))
    }
}

/// How the answer is cut, `None` when it is whole. Some servers ignore what was asked and answer whole or streamed as
/// they like; their header tells.
fn framing(response: &Response, asked: Option<Framing>) -> Option<Framing> {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.map_or(asked, |kind| Framing::of_content_type(kind).unwrap_or(asked))
}

/// An answer of so many bytes came and is none of the protocol: it is billed all the same.
fn unread(error: CallError, bytes: usize, draft: &mut Draft) -> CallError {
    if error.code == FailureCode::ProviderProtocol {
        draft.note_unread(bytes);
    }
    error
}

async fn next_piece(target: &Target, response: &mut Response) -> Result<Option<Bytes>, CallError> {
    response.chunk().await.map_err(|error| failure::transport(target, &error, true))
}

#[cfg(test)]
mod tests {
    use super::{Received, STREAM_BYTES_FREE, STREAM_FRAMES_FREE, below, check_memory, limit};
    use crate::model::provider::DriverKind;
    use crate::model::testing;

    #[test]
    fn endpoints() {
        let at = |base: &str| below(base, &["chat", "completions"]).map(String::from);
        let whole = Some("http://h:1/v1/chat/completions".to_owned());
        assert_eq!(at("http://h:1/v1"), whole);
        assert_eq!(at(" http://h:1/v1/ "), whole);
        assert_eq!(at("http://h:1/v1/chat/completions"), whole);
        assert_eq!(at("https://h/x?api-version=1"), Some("https://h/x/chat/completions?api-version=1".to_owned()));
        assert_eq!(at("https://h"), Some("https://h/chat/completions".to_owned()));
        assert_eq!((at("ftp://h"), at("nonsense"), at("")), (None, None, None));
    }

    #[test]
    fn a_stream_has_some_content() {
        let received = |bytes, frames| Received { bytes, frames };
        assert!(received(STREAM_BYTES_FREE, STREAM_FRAMES_FREE).is_fair(0));
        assert!(!received(STREAM_BYTES_FREE + 1, 1).is_fair(0) && !received(1, STREAM_FRAMES_FREE + 1).is_fair(0));
        // A token in each frame, with a wrapper of some hundred bytes.
        assert!(received(400 * limit::ANSWER_BYTES_MAX, limit::ANSWER_BYTES_MAX).is_fair(limit::ANSWER_BYTES_MAX));
    }

    #[test]
    fn what_is_nested_deeply_for_its_size_is_not_read() {
        let target = testing::target(DriverKind::OpenAi, "http://127.0.0.1");
        let check = |json: String| check_memory(&target, json.as_bytes()).map_err(|error| error.message);
        assert_eq!(check(format!("\"{}\"", "x".repeat(8 << 20))), Ok(()));
        assert_eq!(check(format!("[{}0]", "[[0]],".repeat(1 << 10))), Ok(()));
        assert!(check(format!("[{}0]", r#"{"":{}},"#.repeat(1 << 17))).unwrap_err().contains("nested"));
    }
}
