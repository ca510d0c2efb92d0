//! The stream hub: what a turn says goes from its producer straight to everyone who watches its session, past the
//! world (spec 1, Attach).
//!
//! Each subscriber has a bounded queue of its own. A slow one loses its oldest frames, ends of turns last of all, and
//! is told how many; the producer never waits. Nobody listening costs the producer one atomic load.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::ops::Deref;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use agentsvc_components::stream::{StreamEvent, StreamItem};
use agentsvc_components::{SessionId, TurnId, limit};
use bytes::Bytes;
use futures_util::Stream;
use parking_lot::{Mutex, RwLock};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::{socket, sse};

/// Parts of the map of sessions, so that producers of different sessions seldom meet.
const SHARDS: usize = 64;

/// One event as subscribers get it, shared by all of them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Frame(Arc<Shared>);

/// What a [`Frame`] holds. Each wire form is written once, by the first subscriber that wants it: the producer
/// writes none, and however many subscribers there are, they share the bytes.
#[derive(Debug)]
pub struct Shared {
    /// The turn that speaks.
    pub turn: TurnId,
    /// The last frame of the turn.
    pub last: bool,
    /// The event itself.
    pub event: StreamEvent,
    sse: OnceLock<Bytes>,
    socket: OnceLock<Option<Utf8Bytes>>,
}

impl Frame {
    fn new(turn: TurnId, event: StreamEvent) -> Self {
        let (sse, socket) = (OnceLock::new(), OnceLock::new());
        Self(Arc::new(Shared { turn, last: event.is_last(), event, sse, socket }))
    }
}

impl Deref for Frame {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl PartialEq for Frame {
    fn eq(&self, other: &Self) -> bool {
        (self.turn, &self.event) == (other.turn, &other.event)
    }
}

impl Eq for Frame {}

impl Shared {
    /// The event in the wire form of server-sent events.
    #[must_use]
    pub fn sse(&self) -> Bytes {
        self.sse.get_or_init(|| wire_of(&self.event)).clone()
    }

    /// The event as a message of the agent WebSocket; `None` where that has no such message.
    pub(crate) fn socket(&self) -> Option<Utf8Bytes> {
        self.socket.get_or_init(|| socket::wire::of_event(&self.event)).clone()
    }
}

/// What a watcher is told when another world takes the place of the one that was watched.
pub(crate) const BROKEN_OFF: &str = "the world was exchanged for another; read the session and ask again";

/// What a subscriber gets next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// An event.
    Frame(Frame),
    /// This subscriber was too slow: so many events are lost to it.
    Lagged(u64),
    /// Another world takes the place of the one that was watched: nothing more comes.
    BrokenOff,
}

/// Everyone who watches a session. Shared by the model drivers (producers) and the routes (subscribers).
pub struct StreamHub {
    shards: Vec<Shard>,
    hasher: RandomState,
}

#[derive(Default)]
struct Shard {
    /// Watched sessions in this shard; read without the lock by producers.
    watched: AtomicUsize,
    sessions: RwLock<HashMap<SessionId, Vec<Arc<Inbox>>>>,
}

impl Default for StreamHub {
    fn default() -> Self {
        Self::new()
    }
}

impl StreamHub {
    /// A hub that nobody watches.
    #[must_use]
    pub fn new() -> Self {
        Self { shards: std::iter::repeat_with(Shard::default).take(SHARDS).collect(), hasher: RandomState::new() }
    }

    fn shard(&self, session: SessionId) -> &Shard {
        &self.shards[self.hasher.hash_one(session) as usize % SHARDS]
    }

    /// Gives `item` to everyone who watches its session now. Never blocks on a subscriber.
    pub fn publish(&self, item: StreamItem) {
        let shard = self.shard(item.session);
        if shard.watched.load(Ordering::Acquire) == 0 {
            return;
        }
        let sessions = shard.sessions.read();
        let Some(inboxes) = sessions.get(&item.session) else { return };
        let frame = Frame::new(item.turn, item.event);
        for inbox in inboxes {
            inbox.push(frame.clone());
        }
    }

    /// Does anyone watch `session`?
    #[must_use]
    pub fn has_subscribers(&self, session: SessionId) -> bool {
        let shard = self.shard(session);
        shard.watched.load(Ordering::Acquire) != 0 && shard.sessions.read().contains_key(&session)
    }

    /// Watches `session` from now on, until the subscription is dropped.
    #[must_use]
    pub fn subscribe(self: &Arc<Self>, session: SessionId) -> Subscription {
        let inbox = Arc::new(Inbox::default());
        let shard = self.shard(session);
        let mut sessions = shard.sessions.write();
        sessions.entry(session).or_default().push(inbox.clone());
        shard.watched.store(sessions.len(), Ordering::Release);
        Subscription { hub: self.clone(), session, inbox }
    }

    /// Ends every watch behind what it has not read yet: the world goes, and its turns speak no more.
    pub fn break_off(&self) {
        for shard in &self.shards {
            shard.sessions.read().values().flatten().for_each(|inbox| inbox.break_off());
        }
    }

    /// Sessions that are watched now.
    #[must_use]
    pub fn watched(&self) -> usize {
        self.shards.iter().map(|shard| shard.watched.load(Ordering::Relaxed)).sum()
    }

    fn leave(&self, session: SessionId, inbox: &Arc<Inbox>) {
        let shard = self.shard(session);
        let mut sessions = shard.sessions.write();
        if let Some(inboxes) = sessions.get_mut(&session) {
            inboxes.retain(|other| !Arc::ptr_eq(other, inbox));
            if inboxes.is_empty() {
                sessions.remove(&session);
            }
        }
        if sessions.len() * 4 < sessions.capacity() {
            sessions.shrink_to_fit();
        }
        shard.watched.store(sessions.len(), Ordering::Release);
    }
}

/// One subscriber's queue.
#[derive(Default)]
struct Inbox(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    frames: VecDeque<Frame>,
    missed: u64,
    is_broken_off: bool,
    waker: Option<Waker>,
}

impl Inbox {
    fn push(&self, frame: Frame) {
        let mut queue = self.0.lock();
        if queue.frames.len() == limit::STREAM_BACKLOG_MAX {
            // Ends of turns go last: whoever missed one would wait for it.
            let oldest = queue.frames.iter().position(|frame| !frame.last).unwrap_or(0);
            queue.frames.remove(oldest);
            queue.missed += 1;
        }
        queue.frames.push_back(frame);
        let waker = queue.waker.take();
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn break_off(&self) {
        let mut queue = self.0.lock();
        queue.is_broken_off = true;
        let waker = queue.waker.take();
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// A watch on one session: an endless stream of [`Delivery`]. Dropping it ends the watch.
pub struct Subscription {
    hub: Arc<StreamHub>,
    session: SessionId,
    inbox: Arc<Inbox>,
}

impl Subscription {
    /// What comes next; waits for it. May be cancelled without loss.
    pub async fn next(&mut self) -> Delivery {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    /// What comes next, as a poll.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Delivery> {
        let mut queue = self.inbox.0.lock();
        if queue.missed > 0 {
            return Poll::Ready(Delivery::Lagged(std::mem::take(&mut queue.missed)));
        }
        if let Some(frame) = queue.frames.pop_front() {
            return Poll::Ready(Delivery::Frame(frame));
        }
        if queue.is_broken_off {
            return Poll::Ready(Delivery::BrokenOff);
        }
        queue.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Stream for Subscription {
    type Item = Delivery;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Delivery>> {
        self.poll(cx).map(Some)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.hub.leave(self.session, &self.inbox);
    }
}

impl Delivery {
    /// The delivery in the wire form of server-sent events; a lag is the event `lagged` with `{"missed": n}`.
    #[must_use]
    pub fn wire(self) -> Bytes {
        match self {
            Self::Frame(frame) => frame.sse(),
            Self::Lagged(missed) => sse::event("lagged", &Lagged { missed }),
            Self::BrokenOff => sse::event("error", &Failure { error: BROKEN_OFF, code: "exchanging" }),
        }
    }
}

#[derive(Serialize)]
struct Lagged {
    missed: u64,
}

/// The names and data of spec 1, SSE on POST message/stream.
fn wire_of(event: &StreamEvent) -> Bytes {
    match event {
        StreamEvent::Chunk { content } => sse::event("chunk", &Chunk { content, done: false }),
        StreamEvent::ToolUse { tool } => sse::event("tool_use", &ToolUse { tool }),
        StreamEvent::ToolResult { tool, input } => {
            // The model may have written arguments that are no JSON; they are shown as the text they are.
            match serde_json::from_str::<&RawValue>(input) {
                // A raw value may hold line breaks, which would end the data line of the event.
                Ok(raw) if !raw.get().contains(['\n', '\r']) => {
                    sse::event("tool_result", &ToolResult { tool, input: raw })
                }
                Ok(_) => {
                    let value: serde_json::Value = serde_json::from_str(input).unwrap_or_default();
                    sse::event("tool_result", &ToolResult { tool, input: value })
                }
                Err(_) => sse::event("tool_result", &ToolResult { tool, input: RawText { raw: input } }),
            }
        }
        StreamEvent::OwnerNotice { text } => sse::event("owner_notice", &OwnerNotice { text }),
        StreamEvent::Done { usage, stopped, .. } => {
            let usage = DoneUsage { input_tokens: usage.input_tokens, output_tokens: usage.output_tokens };
            sse::event("done", &Done { done: true, usage, stopped: *stopped })
        }
        StreamEvent::Error { error, code } => sse::event("error", &Failure { error, code }),
    }
}

#[derive(Serialize)]
struct Chunk<'a> {
    content: &'a str,
    done: bool,
}

#[derive(Serialize)]
struct ToolUse<'a> {
    tool: &'a str,
}

#[derive(Serialize)]
struct ToolResult<'a, I> {
    tool: &'a str,
    input: I,
}

#[derive(Serialize)]
struct RawText<'a> {
    raw: &'a str,
}

#[derive(Serialize)]
struct OwnerNotice<'a> {
    text: &'a str,
}

/// Tokens as the specification has them: no more than these.
#[derive(Serialize)]
struct DoneUsage {
    input_tokens: u64,
    output_tokens: u64,
}

#[derive(Serialize)]
struct Done {
    done: bool,
    usage: DoneUsage,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stopped: bool,
}

#[derive(Serialize)]
struct Failure<'a> {
    error: &'a str,
    code: &'a str,
}

#[cfg(test)]
mod tests {
    use agentsvc_components::message::Usage;
    use futures_util::FutureExt;
    use uuid::Uuid;

    use super::*;

    const SESSION: SessionId = SessionId(Uuid::from_u128(7));

    fn chunk(content: impl Into<String>) -> StreamItem {
        StreamItem {
            session: SESSION,
            turn: TurnId(Uuid::from_u128(1)),
            event: StreamEvent::Chunk { content: content.into() },
        }
    }

    fn wire(event: StreamEvent) -> String {
        String::from_utf8(wire_of(&event).to_vec()).unwrap()
    }

    #[tokio::test]
    async fn every_subscriber_gets_the_same_bytes() {
        let hub = Arc::new(StreamHub::new());
        assert!(!hub.has_subscribers(SESSION));
        hub.publish(chunk("nobody hears this"));
        let (mut a, mut b) = (hub.subscribe(SESSION), hub.subscribe(SESSION));
        hub.publish(chunk("hi"));
        let (one, two) = (a.next().await.wire(), b.next().await.wire());
        assert_eq!(one, two);
        assert_eq!(one.as_ptr(), two.as_ptr());
        assert_eq!(one, "event: chunk\ndata: {\"content\":\"hi\",\"done\":false}\n\n");
        drop(a);
        assert!(hub.has_subscribers(SESSION));
        drop(b);
        assert!(!hub.has_subscribers(SESSION));
        assert_eq!(hub.watched(), 0);
    }

    #[tokio::test]
    async fn a_watch_that_is_broken_off_ends_behind_what_was_said() {
        let hub = Arc::new(StreamHub::new());
        let mut old = hub.subscribe(SESSION);
        hub.publish(chunk("last words"));
        hub.break_off();
        assert!(matches!(old.next().await, Delivery::Frame(_)));
        let end = String::from_utf8(old.next().await.wire().to_vec()).unwrap();
        assert!(end.starts_with("event: error\n") && end.contains("\"code\":\"exchanging\""), "{end}");
        assert_eq!(old.next().await, Delivery::BrokenOff);
        let mut new = hub.subscribe(SESSION);
        assert!(new.next().now_or_never().is_none(), "the next world is watched anew");
    }

    #[tokio::test]
    async fn a_waiting_subscriber_is_woken() {
        let hub = Arc::new(StreamHub::new());
        let mut subscription = hub.subscribe(SESSION);
        let waits = tokio::spawn(async move { subscription.next().await });
        tokio::task::yield_now().await;
        hub.publish(chunk("now"));
        assert!(matches!(waits.await.unwrap(), Delivery::Frame(_)));
    }

    #[tokio::test]
    async fn a_slow_subscriber_is_told_what_it_missed_and_gets_the_newest() {
        let hub = Arc::new(StreamHub::new());
        let mut slow = hub.subscribe(SESSION);
        for n in 0..limit::STREAM_BACKLOG_MAX + 3 {
            hub.publish(chunk(n.to_string()));
        }
        assert_eq!(slow.next().await, Delivery::Lagged(3));
        for n in 3..limit::STREAM_BACKLOG_MAX + 3 {
            let Delivery::Frame(frame) = slow.next().await else { panic!("a frame") };
            assert_eq!(frame.event, StreamEvent::Chunk { content: n.to_string() });
        }
        assert!(slow.next().now_or_never().is_none());
        assert_eq!(Delivery::Lagged(3).wire(), "event: lagged\ndata: {\"missed\":3}\n\n");
    }

    #[test]
    fn wire_forms_are_those_of_the_specification() {
        let usage = Usage::of(3, 4);
        let tool = || "web".to_owned();
        let result = |input: &str| StreamEvent::ToolResult { tool: tool(), input: input.to_owned() };
        assert_eq!(wire(StreamEvent::ToolUse { tool: tool() }), "event: tool_use\ndata: {\"tool\":\"web\"}\n\n");
        assert_eq!(wire(result("{\"q\":1}")), "event: tool_result\ndata: {\"tool\":\"web\",\"input\":{\"q\":1}}\n\n");
        assert_eq!(
            wire(result("{\n\"q\":\r\n1}")),
            "event: tool_result\ndata: {\"tool\":\"web\",\"input\":{\"q\":1}}\n\n"
        );
        assert_eq!(
            wire(result("{oops\n")),
            "event: tool_result\ndata: {\"tool\":\"web\",\"input\":{\"raw\":\"{oops\\n\"}}\n\n"
        );
        assert_eq!(
            wire(StreamEvent::OwnerNotice { text: "psst".to_owned() }),
            "event: owner_notice\ndata: {\"text\":\"psst\"}\n\n"
        );
        assert_eq!(
            wire(StreamEvent::done(usage, false)),
            "event: done\ndata: {\"done\":true,\"usage\":{\"input_tokens\":3,\"output_tokens\":4}}\n\n"
        );
        assert_eq!(
            wire(StreamEvent::Error { error: "no".to_owned(), code: "x".to_owned() }),
            "event: error\ndata: {\"error\":\"no\",\"code\":\"x\"}\n\n"
        );
    }
}
