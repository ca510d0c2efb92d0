//! A turn as a streamed chat completion: chunks, the end, `[DONE]`.

use agentsvc_components::ErrorCode;
use agentsvc_components::kernel::error_codes::EXCHANGING;
use agentsvc_components::turn::error_codes::{SHUTTING_DOWN, STREAM_LAGGED};
use std::collections::VecDeque;

use agentsvc_components::turn::stream::StreamEvent;
use agentsvc_components::{SessionId, TurnId};
use agentsvc_systems::turn::StopConversation;
use bytes::Bytes;
use futures_util::{Stream, stream};
use serde::Serialize;

use super::answer::{Chunk, Delta, Head, finish_reason};
use super::image::Stored;
use crate::Api;
use crate::http::bridge::Bridge;
use crate::http::reply::Response;
use crate::http::sse;
use crate::turn::hub::{BROKEN_OFF, Delivery, Subscription};

/// What ends every stream that went well.
const DONE: Bytes = Bytes::from_static(b"data: [DONE]\n\n");
/// What stands between the texts of two answers of one turn.
const BETWEEN_ANSWERS: &str = "\n\n";

/// Stops the turn of a hidden session when its only reader goes: nobody would ever read the answer. The images of the
/// request go when the turn has ended, or is told to.
pub(crate) struct Reader {
    bridge: Bridge,
    /// `None` once the turn has ended, and for sessions that stay.
    session: Option<SessionId>,
    /// `None` once the turn has ended.
    images: Option<Stored>,
    stays: bool,
}

impl Reader {
    /// The reader of the hidden `session`; of a session that stays when `None`.
    pub(crate) const fn new(bridge: Bridge, session: Option<SessionId>, images: Stored) -> Self {
        Self { bridge, session, images: Some(images), stays: session.is_none() }
    }

    /// The message was taken.
    pub(crate) fn taken(&mut self) {
        if let Some(images) = self.images.as_mut().filter(|_| self.stays) {
            images.keep();
        }
    }

    /// The turn has ended, or never began; `is_kept` says that its message is in the session.
    pub(crate) fn done(&mut self, is_kept: bool) {
        if is_kept {
            self.taken();
        }
        (self.session, self.images) = (None, None);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if self.stays {
            // The turn goes on, with its images.
            self.taken();
        }
        let (session, images) = (self.session.take(), self.images.take());
        let Some(session) = session else { return };
        // Outside of a runtime the daemon is ending; the next start removes the session.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let bridge = self.bridge.clone();
        drop(runtime.spawn(async move {
            if let Err(refusal) = bridge.ask(StopConversation(session)).await {
                tracing::debug!(%refusal, "a turn without a reader goes on to its end");
            }
            drop(images);
        }));
    }
}

/// Answers with the chunks of `turn`, which was posted after the subscription began.
pub(crate) fn response(api: &Api, subscription: Subscription, turn: TurnId, head: Head, reader: Reader) -> Response {
    let farewell = error("the daemon is shutting down", SHUTTING_DOWN);
    sse::response(&api.shutdown, chunks(subscription, turn, head, reader), Some(farewell))
}

fn chunks(subscription: Subscription, turn: TurnId, head: Head, reader: Reader) -> impl Stream<Item = Bytes> + Send {
    let follower = Follower {
        subscription,
        turn,
        head,
        reader,
        ready: VecDeque::new(),
        has_begun: false,
        said: String::new(),
        is_new_answer: false,
        is_incomplete: false,
        has_ended: false,
    };
    stream::unfold(follower, async |mut follower| {
        let wire = follower.next().await?;
        Some((wire, follower))
    })
}

/// One reader on its way through one turn.
struct Follower {
    subscription: Subscription,
    turn: TurnId,
    head: Head,
    reader: Reader,
    /// Chunks that wait to be sent.
    ready: VecDeque<Bytes>,
    /// A chunk was made: the role is named.
    has_begun: bool,
    /// What was sent of the present answer; at most what one answer may hold.
    said: String,
    /// Tools ran since the last text: the next text belongs to another answer.
    is_new_answer: bool,
    /// The reader was too slow, and pieces of text are lost to it until the turn's end brings the whole.
    is_incomplete: bool,
    has_ended: bool,
}

impl Follower {
    /// The next chunk; `None` after the last. May be cancelled without loss.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(wire) = self.ready.pop_front() {
                return Some(wire);
            }
            if self.has_ended {
                return None;
            }
            match self.subscription.next().await {
                Delivery::Lagged(_) => self.is_incomplete = true,
                Delivery::BrokenOff => self.fail(BROKEN_OFF, EXCHANGING),
                Delivery::Frame(frame) if frame.turn < self.turn => {}
                // One turn at a time: a later one speaks only when this one has ended, unheard.
                Delivery::Frame(frame) if frame.turn > self.turn => self.fail(LAGGED, STREAM_LAGGED),
                Delivery::Frame(frame) => self.take(&frame.event),
            }
        }
    }

    fn take(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Chunk { content } if !self.is_incomplete => self.text(content),
            StreamEvent::ToolUse { .. } => self.is_new_answer = true,
            StreamEvent::Done { .. } => self.end(event),
            StreamEvent::Error { error, code } => self.fail(error, *code),
            StreamEvent::Chunk { .. } | StreamEvent::ToolResult { .. } | StreamEvent::OwnerNotice { .. } => {}
        }
    }

    fn text(&mut self, content: &str) {
        if std::mem::take(&mut self.is_new_answer) {
            if self.has_begun {
                self.piece(Delta::text(BETWEEN_ANSWERS, false));
            }
            self.said.clear();
        }
        self.said.push_str(content);
        let is_first = !self.has_begun;
        self.piece(Delta::text(content, is_first));
    }

    fn piece(&mut self, delta: Delta<'_>) {
        self.has_begun = true;
        self.ready.push_back(sse::data(&Chunk::piece(&self.head, delta)));
    }

    fn end(&mut self, event: &StreamEvent) {
        let StreamEvent::Done { usage, stop, response, tool_calls, .. } = event else { return };
        if self.is_incomplete {
            let said = if self.is_new_answer { "" } else { self.said.as_str() };
            match response.as_deref().unwrap_or_default().strip_prefix(said) {
                Some("") => {}
                Some(rest) => self.text(rest),
                None => return self.fail(LAGGED, STREAM_LAGGED),
            }
        }
        if !self.has_begun && tool_calls.is_empty() {
            self.piece(Delta::text(response.as_deref().unwrap_or_default(), true));
        }
        for (index, call) in tool_calls.iter().enumerate() {
            let is_first = !self.has_begun;
            self.piece(Delta::call(index, call, is_first));
        }
        let reason = finish_reason(*stop, tool_calls);
        self.ready.push_back(sse::data(&Chunk::last(&self.head, reason, *usage)));
        self.ready.push_back(DONE);
        self.has_ended = true;
        self.reader.done(true);
    }

    fn fail(&mut self, message: &str, code: ErrorCode) {
        self.ready.push_back(error(message, code));
        self.has_ended = true;
        self.reader.done(true);
    }
}

/// What a reader is told that lost pieces of the text for good.
const LAGGED: &str = "the client read too slowly; part of the response was dropped";

/// An error in the middle of a stream, in OpenAI's shape: clients of theirs raise it with its message.
fn error(message: &str, code: ErrorCode) -> Bytes {
    #[derive(Serialize)]
    struct Failure<'a> {
        error: Inner<'a>,
    }

    #[derive(Serialize)]
    struct Inner<'a> {
        message: &'a str,
        #[serde(rename = "type")]
        kind: &'static str,
        param: Option<()>,
        code: ErrorCode,
    }

    sse::data(&Failure { error: Inner { message, kind: "server_error", param: None, code } })
}
