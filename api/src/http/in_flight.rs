//! Answers on their way out. An answer counts as in flight until the client has taken its last byte, wherever the bytes
//! wait in between, and each has a clock of its own: what a client does not take is given up.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use agentsvc_components::kernel::limit;
use bytes::{Buf, Bytes};
use futures_util::future::{AbortHandle, Abortable};
use hyper::Version;
use hyper::body::{Frame, SizeHint};
use hyper::http::request::Parts;
use hyper::rt::Executor;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::http::access::{Policy, Shown};
use crate::http::api::Api;
use crate::http::connection::{Activity, Stall};
use crate::http::elsewhere::Site;
use crate::http::peer::{Peer, Place};
use crate::http::reply::{Body, BrokenOff};
use crate::http::route::Auth;

tokio::task_local! {
    /// Cuts off the HTTP/2 stream that the task serves.
    static STREAM: AbortHandle;
}

/// Runs the streams of HTTP/2 connections, each so that it can be cut off alone.
#[derive(Clone)]
pub(crate) struct Streams;

impl<F> Executor<F> for Streams
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let (handle, registration) = AbortHandle::new_pair();
        tokio::spawn(STREAM.scope(handle, Abortable::new(stream, registration)));
    }
}

/// Counts a request as in flight until it is dropped: with the last byte of its answer, or when the client leaves.
pub(crate) struct InFlight {
    api: Arc<Api>,
    activity: Arc<Activity>,
    peer: Arc<Peer>,
    /// Its HTTP/2 stream; not set where the connection has one answer at a time.
    stream: OnceLock<AbortHandle>,
    /// Whose share it takes; set when the answer is made.
    place: OnceLock<Place>,
    /// Pieces of the answer that the client has not taken whole.
    pieces: AtomicUsize,
    /// How often the client took some of it.
    taken: AtomicU64,
    stall: Mutex<Stall>,
}

impl InFlight {
    pub(crate) fn begin(api: &Arc<Api>, activity: &Arc<Activity>, peer: &Arc<Peer>, version: Version) -> Arc<Self> {
        activity.begin(version == Version::HTTP_2);
        peer.begin();
        api.metrics.in_flight.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self {
            api: Arc::clone(api),
            activity: Arc::clone(activity),
            peer: Arc::clone(peer),
            stream: OnceLock::new(),
            place: OnceLock::new(),
            pieces: AtomicUsize::new(0),
            taken: AtomicU64::new(0),
            stall: Mutex::default(),
        })
    }

    /// To be called in the task that makes the answer, before it does: from then on it can be cut off.
    pub(crate) fn enter(self: &Arc<Self>) {
        if let Ok(stream) = STREAM.try_with(AbortHandle::clone) {
            let _ = self.stream.set(stream);
            self.activity.answers.lock().push(Arc::downgrade(self));
        }
    }

    /// Is this stream one too many for its client? Those of a connection that has shown no valid key are few. While an
    /// address leaves much unread, a connection that does so has no further ones: each may leave one, as connections have
    /// that speak no HTTP/2, so that clients that read are served.
    pub(crate) fn is_too_many(&self, policy: &Policy, parts: &Parts) -> bool {
        if self.stream.get().is_none() {
            return false;
        }
        if self.activity.unread.load(Ordering::Relaxed) > 0 && self.peer.reads_too_little() {
            return true;
        }
        if self.peer.has_key() || self.activity.in_flight() <= limit::STREAMS_KEYLESS_MAX {
            return false;
        }
        if self.api.elsewhere.site() != Site::Here {
            // Its keys are known elsewhere, which said of none that it is right.
            return true;
        }
        let seen = policy.look(parts, Auth::Bearer, self.peer.ip);
        seen.shown != Shown::Right || self.peer.show(&seen.principal(), seen.ended(policy)).is_err()
    }

    /// Whose share it takes until the client has taken it whole.
    pub(crate) fn keep(&self, place: Place) {
        let _ = self.place.set(place);
    }

    /// Closes the connection when the answers that are under way have been taken.
    pub(crate) fn finish_connection(&self) {
        self.activity.finish.notify_one();
    }

    /// The answer begins, or ceases, to wait for the client.
    fn waits(&self, waits: bool) {
        let (Some(_), Some(place)) = (self.stream.get(), self.place.get()) else { return };
        if waits {
            self.activity.unread.fetch_add(1, Ordering::Relaxed);
            self.peer.wait(place.holder());
        } else {
            self.activity.unread.fetch_sub(1, Ordering::Relaxed);
            self.peer.take(place.holder());
        }
    }

    /// Has the client taken nothing of what is ready for `time_max`? One look.
    pub(crate) fn is_stalled(&self, now: Instant, time_max: Duration) -> bool {
        let waits = self.pieces.load(Ordering::Relaxed) > 0;
        self.stall.lock().progress(self.taken.load(Ordering::Relaxed), waits, now, time_max)
    }

    /// Cuts off the stream; false when that was tried before, as when the whole answer is in the connection's buffer.
    pub(crate) fn cut(&self) -> bool {
        let Some(stream) = self.stream.get().filter(|stream| !stream.is_aborted()) else { return false };
        tracing::debug!(peer = %self.peer.ip, "a stream whose client reads nothing is cut off");
        stream.abort();
        self.api.metrics.unread.streams.fetch_add(1, Ordering::Relaxed);
        true
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.stream.get().is_some() {
            self.activity.answers.lock().retain(|answer| answer.strong_count() > 0);
        }
        self.activity.end();
        self.peer.end();
        self.api.metrics.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A response body that keeps its request in flight.
pub(crate) struct Tracked {
    body: Body,
    answer: Arc<InFlight>,
}

impl Tracked {
    pub(crate) const fn new(body: Body, answer: Arc<InFlight>) -> Self {
        Self { body, answer }
    }
}

impl hyper::body::Body for Tracked {
    type Data = Piece;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        polled.map(|frame| frame.map(|frame| frame.map(|frame| frame.map_data(|data| Piece::new(data, &self.answer)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Bytes of an answer that say when some of them are taken.
pub(crate) struct Piece {
    bytes: Bytes,
    /// How many of them count towards what all clients have not read.
    held: usize,
    answer: Arc<InFlight>,
}

impl Piece {
    fn new(bytes: Bytes, answer: &Arc<InFlight>) -> Self {
        if answer.pieces.fetch_add(1, Ordering::Relaxed) == 0 {
            answer.waits(true);
        }
        // Of larger ones, those of its own address count; a connection without streams has one answer at a time.
        let is_held = answer.stream.get().is_some() && bytes.len() <= limit::ANSWER_SMALL_BYTES && bytes.is_unique();
        let held = if is_held { bytes.len() } else { 0 };
        if is_held {
            answer.peer.hold(held);
        }
        Self { bytes, held, answer: Arc::clone(answer) }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.answer.taken.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if self.held > 0 {
            self.answer.peer.give_back(self.held);
        }
        if self.answer.pieces.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.answer.waits(false);
        }
    }
}
