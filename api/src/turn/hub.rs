//! The stream hub: what a turn says goes from its producer straight to everyone who watches its session, past the
//! world (spec 1, Attach).
//!
//! Each subscriber has a bounded queue of its own. A slow one loses its oldest frames, ends of turns last of all, and
//! is told how many; the producer never waits. Nobody listening costs the producer one atomic load.

use agentsvc_components::ErrorCode;
use agentsvc_components::kernel::error_codes;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::Deref;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use agentsvc_components::turn::stream::{StreamEvent, StreamItem};
use agentsvc_components::{SessionId, TurnId};
use bytes::Bytes;
use futures_util::Stream;
use inbox::Inbox;
use parking_lot::{Mutex, RwLock};
use said::Said;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::http::api::Api;
use crate::http::domain::Queue;
use crate::http::metrics::MetricsText;
use crate::http::sse;

mod inbox;
mod said;
#[cfg(test)]
mod tests;

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
    text: OnceLock<Option<Utf8Bytes>>,
}

impl Frame {
    fn new(turn: TurnId, event: StreamEvent) -> Self {
        let (sse, text) = (OnceLock::new(), OnceLock::new());
        Self(Arc::new(Shared { turn, last: event.is_last(), event, sse, text }))
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

    /// The event as `write` says it, written once: every caller names the same function. `None` where that says nothing.
    pub(crate) fn text(&self, write: fn(&StreamEvent) -> Option<Utf8Bytes>) -> Option<Utf8Bytes> {
        self.text.get_or_init(|| write(&self.event)).clone()
    }
}

/// What a watcher is told when another world takes the place of the one that was watched.
pub(crate) const BROKEN_OFF: &str = "the world was restored from a copy; read the session and send the message again";

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
    /// Sessions of this shard with an entry; read without the lock by producers.
    watched: AtomicUsize,
    sessions: RwLock<HashMap<SessionId, Watched>>,
}

/// A session that is watched, or whose running turn was.
#[derive(Default)]
struct Watched {
    /// Of those who listen to every turn.
    inboxes: Vec<Arc<Inbox>>,
    /// Of those who listen to one turn only, so that many who wait in one session cost each other nothing.
    of_turns: HashMap<TurnId, Vec<Arc<Inbox>>>,
    said: Mutex<Said>,
}

impl Watched {
    /// Does anyone watch it?
    fn is_watched(&self) -> bool {
        !self.inboxes.is_empty() || !self.of_turns.is_empty()
    }

    /// Nobody watches it, and there is nothing to tell to one who comes.
    fn is_idle(&self) -> bool {
        !self.is_watched() && self.said.lock().is_empty()
    }
}

impl Watched {
    /// Takes out the inbox of one who listens to `turn`, or to all when that is `None`.
    fn remove(&mut self, turn: Option<TurnId>, inbox: &Arc<Inbox>) {
        let Some(turn) = turn else { return self.inboxes.retain(|other| !Arc::ptr_eq(other, inbox)) };
        if let Some(inboxes) = self.of_turns.get_mut(&turn) {
            inboxes.retain(|other| !Arc::ptr_eq(other, inbox));
            if inboxes.is_empty() {
                self.of_turns.remove(&turn);
            }
        }
    }
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
        let Some(watched) = sessions.get(&item.session) else { return };
        watched.said.lock().add(item.turn, &item.event);
        let frame = Frame::new(item.turn, item.event);
        for inbox in watched.inboxes.iter().chain(watched.of_turns.get(&frame.turn).into_iter().flatten()) {
            inbox.push(frame.clone());
        }
        let is_over = frame.last && !watched.is_watched();
        drop(sessions);
        if is_over {
            shard.tidy(item.session);
        }
    }

    /// Does anyone watch `session`, or did in the turn that runs, so that what it says is kept for who comes back?
    #[must_use]
    pub fn is_followed(&self, session: SessionId) -> bool {
        let shard = self.shard(session);
        shard.watched.load(Ordering::Acquire) != 0 && shard.sessions.read().contains_key(&session)
    }

    /// Watches `session` from now on, until the subscription is dropped.
    #[must_use]
    pub fn subscribe(self: &Arc<Self>, session: SessionId) -> Subscription {
        self.watch(session, false)
    }

    /// The same, beginning with what the running turn has said since it was first watched. Pieces of text that followed
    /// each other are one.
    #[must_use]
    pub fn subscribe_from_start(self: &Arc<Self>, session: SessionId) -> Subscription {
        self.watch(session, true)
    }

    fn watch(self: &Arc<Self>, session: SessionId, from_start: bool) -> Subscription {
        let inbox = Arc::new(Inbox::default());
        let shard = self.shard(session);
        let mut sessions = shard.sessions.write();
        let watched = sessions.entry(session).or_default();
        if from_start {
            // Producers wait for the lock: nothing falls between what was said and what follows.
            let said = watched.said.lock();
            let (missed, frames) = said.told();
            inbox.begin(missed, frames);
        }
        watched.inboxes.push(inbox.clone());
        shard.watched.store(sessions.len(), Ordering::Release);
        Subscription { hub: self.clone(), session, turn: None, is_posting: false, inbox }
    }

    /// Ends every watch behind what it has not read yet: the world goes, and its turns speak no more.
    pub fn break_off(&self) {
        for shard in &self.shards {
            let mut sessions = shard.sessions.write();
            for watched in sessions.values() {
                watched.said.lock().break_off();
                let inboxes = watched.inboxes.iter().chain(watched.of_turns.values().flatten());
                inboxes.for_each(|inbox| inbox.break_off());
            }
            sessions.retain(|_, watched| !watched.is_idle());
            shard.watched.store(sessions.len(), Ordering::Release);
        }
    }

    /// Sessions that are watched now.
    #[must_use]
    pub fn watched(&self) -> usize {
        let of = |shard: &Shard| shard.sessions.read().values().filter(|watched| watched.is_watched()).count();
        self.shards.iter().filter(|shard| shard.watched.load(Ordering::Relaxed) > 0).map(of).sum()
    }

    fn leave(&self, gone: &Subscription) {
        let shard = self.shard(gone.session);
        if let Some(watched) = shard.sessions.write().get_mut(&gone.session) {
            if gone.is_posting {
                watched.said.get_mut().end_post(None);
            }
            watched.remove(gone.turn, &gone.inbox);
        }
        shard.tidy(gone.session);
    }
}

impl Shard {
    /// Forgets a session that nobody watches once its turn is over.
    fn tidy(&self, session: SessionId) {
        let mut sessions = self.sessions.write();
        if sessions.get(&session).is_some_and(Watched::is_idle) {
            sessions.remove(&session);
        }
        if sessions.len() * 4 < sessions.capacity() {
            sessions.shrink_to_fit();
        }
        self.watched.store(sessions.len(), Ordering::Release);
    }
}

/// A watch on one session: an endless stream of [`Delivery`]. Dropping it ends the watch.
pub struct Subscription {
    hub: Arc<StreamHub>,
    session: SessionId,
    /// The only turn that is listened to; all when `None`.
    turn: Option<TurnId>,
    /// Its watcher posts a message; given back with what came of it.
    is_posting: bool,
    inbox: Arc<Inbox>,
}

impl Subscription {
    /// Listens to `turn` alone from here on; what others have said is forgotten. Ends [`expect_turn`](Self::expect_turn).
    #[must_use]
    pub fn only(mut self, turn: TurnId) -> Self {
        if let Some(watched) = self.hub.shard(self.session).sessions.write().get_mut(&self.session) {
            if std::mem::take(&mut self.is_posting) {
                // It may have spoken, or even ended, before its poster heard of it. Producers wait for the lock.
                watched.said.get_mut().end_post(Some(turn).filter(|turn| self.inbox.awaits(*turn)));
            }
            watched.remove(self.turn, &self.inbox);
            watched.of_turns.entry(turn).or_default().push(Arc::clone(&self.inbox));
        }
        self.turn = Some(turn);
        self.inbox.keep_only(turn);
        self
    }

    /// This watcher posts a message, before it reads anything. What the turn says that comes of it is kept from its beginning
    /// on, even when this watcher leaves before that, once [`only`](Self::only) says which turn it is; when this is dropped
    /// before, none came of it.
    pub fn expect_turn(&mut self) {
        if let Some(watched) = self.hub.shard(self.session).sessions.write().get_mut(&self.session)
            && !std::mem::replace(&mut self.is_posting, true)
        {
            watched.said.get_mut().begin_post();
        }
    }

    /// What comes next; waits for it. May be cancelled without loss.
    pub async fn next(&mut self) -> Delivery {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    /// What comes next, as a poll.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Delivery> {
        self.inbox.poll(cx)
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
        self.hub.leave(self);
    }
}

impl Delivery {
    /// The delivery in the wire form of server-sent events; a lag is the event `lagged` with `{"missed": n}`.
    #[must_use]
    pub fn wire(self) -> Bytes {
        match self {
            Self::Frame(frame) => frame.sse(),
            Self::Lagged(missed) => sse::event("lagged", &Lagged { missed }),
            Self::BrokenOff => sse::event("error", &Failure { error: BROKEN_OFF, code: error_codes::EXCHANGING }),
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
        StreamEvent::Error { error, code } => sse::event("error", &Failure { error, code: *code }),
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
    code: ErrorCode,
}

/// Its share of `/api/metrics`.
pub(crate) fn gather(api: &Api, out: &mut MetricsText) {
    let watched = api.state::<StreamHub>().watched();
    out.gauge("agentsvc_stream_sessions_watched", "Sessions with stream subscribers.", watched);
}

/// Its queues.
pub(crate) fn queues(api: &Api) -> Vec<Queue> {
    vec![Queue::new("sessions_watched", "sessions", api.state::<StreamHub>().watched(), None)]
}
