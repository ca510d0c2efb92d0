//! Server-sent events: framing, keep-alive, and an end on shutdown.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use serde::Serialize;
use tokio::time::{Instant, Sleep};

use crate::http::reply::{self, Body, BrokenOff, Response};
use crate::http::shutdown::Shutdown;

/// Silence after which a comment is sent, so that proxies and clients know the stream is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The comment that is sent then; clients ignore it.
const KEEP_ALIVE_WIRE: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// The first bytes of every stream: they make clients and proxies see the stream open at once.
const OPEN_WIRE: Bytes = Bytes::from_static(b": open\n\n");

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream; charset=utf-8");

const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// `event: <name>` and `data: <json>` as one frame. JSON has no line breaks of its own, so one data line is enough.
pub fn event<T: Serialize + ?Sized>(name: &str, value: &T) -> Bytes {
    let mut wire = Vec::with_capacity(128);
    wire.extend_from_slice(b"event: ");
    wire.extend_from_slice(name.as_bytes());
    wire.extend_from_slice(b"\ndata: ");
    write_json(&mut wire, value);
    wire.extend_from_slice(b"\n\n");
    wire.into()
}

/// `data: <json>` without a name, as the OpenAI-compatible streams want it.
pub fn data<T: Serialize + ?Sized>(value: &T) -> Bytes {
    let mut wire = b"data: ".to_vec();
    write_json(&mut wire, value);
    wire.extend_from_slice(b"\n\n");
    wire.into()
}

fn write_json<T: Serialize + ?Sized>(wire: &mut Vec<u8>, value: &T) {
    let start = wire.len();
    if let Err(error) = serde_json::to_writer(&mut *wire, value) {
        // Only a map with keys that are not text can fail; what a stream says has none.
        tracing::error!(%error, "an event could not be written");
        wire.truncate(start);
        wire.extend_from_slice(b"null");
    }
}

/// Answers with `events`, each already framed, until they end or the daemon stops. On a stop `farewell` is sent
/// last, where there is one.
pub fn response(
    shutdown: &Shutdown,
    events: impl Stream<Item = Bytes> + Send + 'static,
    farewell: Option<Bytes>,
) -> Response {
    let pieces = Events {
        events: Some(Box::pin(events)),
        farewell,
        opened: false,
        stop: Box::pin(shutdown.wait()),
        quiet: Box::pin(tokio::time::sleep(KEEP_ALIVE)),
    };
    let mut response = reply::stream(StatusCode::OK, EVENT_STREAM, Box::pin(pieces));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response.headers_mut().insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// The same response; if it is an event stream, one that also ends when `end` is triggered.
pub(crate) fn end_on(end: &Shutdown, mut response: Response) -> Response {
    let is_events = response.headers().get(CONTENT_TYPE) == Some(&EVENT_STREAM);
    if let Body::Stream(pieces) = response.body_mut()
        && is_events
    {
        let events = std::mem::replace(pieces, Box::pin(stream::empty()));
        *pieces = Box::pin(events.take_until(end.wait()));
    }
    response
}

/// The body: events, with comments in between when they are rare.
struct Events<S> {
    /// `None` once the stream has ended.
    events: Option<Pin<Box<S>>>,
    farewell: Option<Bytes>,
    opened: bool,
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
    quiet: Pin<Box<Sleep>>,
}

impl<S: Stream<Item = Bytes>> Stream for Events<S> {
    type Item = Result<Bytes, BrokenOff>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(events) = &mut this.events else { return Poll::Ready(None) };
        if !this.opened {
            this.opened = true;
            return Poll::Ready(Some(Ok(OPEN_WIRE)));
        }
        match events.as_mut().poll_next(cx) {
            Poll::Ready(Some(event)) => {
                this.quiet.as_mut().reset(Instant::now() + KEEP_ALIVE);
                return Poll::Ready(Some(Ok(event)));
            }
            Poll::Ready(None) => {
                this.events = None;
                return Poll::Ready(None);
            }
            Poll::Pending => {}
        }
        if this.stop.as_mut().poll(cx).is_ready() {
            this.events = None;
            return Poll::Ready(this.farewell.take().map(Ok));
        }
        if this.quiet.as_mut().poll(cx).is_ready() {
            this.quiet.as_mut().reset(Instant::now() + KEEP_ALIVE);
            // Polled once more so that the new deadline wakes this task.
            let _ = this.quiet.as_mut().poll(cx);
            return Poll::Ready(Some(Ok(KEEP_ALIVE_WIRE)));
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn events_are_sent_until_they_end() {
        let events = stream::iter([event("chunk", &"a\nb"), data(&1)]);
        let response = response(&Shutdown::new(), events, None);
        assert_eq!(response.headers()[CACHE_CONTROL], "no-cache");
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        assert_eq!(reply::text(response).await, ": open\n\nevent: chunk\ndata: \"a\\nb\"\n\ndata: 1\n\n");
    }

    #[tokio::test]
    async fn a_stop_ends_the_stream_with_a_farewell() {
        let shutdown = Shutdown::new();
        let response = response(&shutdown, stream::pending(), Some(event("error", &"bye")));
        let reads = tokio::spawn(reply::text(response));
        tokio::task::yield_now().await;
        shutdown.trigger();
        assert_eq!(reads.await.unwrap(), ": open\n\nevent: error\ndata: \"bye\"\n\n");
    }

    #[tokio::test]
    async fn an_event_stream_can_be_ended_without_a_farewell_and_other_bodies_cannot() {
        let end = Shutdown::new();
        let events = response(&Shutdown::new(), stream::pending(), Some(event("error", &"bye")));
        let reads = tokio::spawn(reply::text(end_on(&end, events)));
        tokio::task::yield_now().await;
        end.trigger();
        assert_eq!(reads.await.unwrap(), ": open\n\n");
        let pieces = stream::iter([Ok(Bytes::from_static(b"whole"))]);
        let file = reply::stream(StatusCode::OK, reply::TEXT, Box::pin(pieces));
        assert_eq!(reply::text(end_on(&end, file)).await, "whole");
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_filled_with_comments() {
        let shutdown = Shutdown::new();
        let response = response(&shutdown, stream::pending(), None);
        let stop = async {
            tokio::time::sleep(KEEP_ALIVE * 2 + KEEP_ALIVE / 2).await;
            shutdown.trigger();
        };
        let (text, ()) = tokio::join!(reply::text(response), stop);
        assert_eq!(text, ": open\n\n: keep-alive\n\n: keep-alive\n\n");
    }
}
