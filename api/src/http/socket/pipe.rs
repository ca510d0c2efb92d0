//! The WebSocket itself: frames in, frames out, and the goodbye.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use agentsvc_components::kernel::limit;
use futures_util::{Sink, SinkExt, Stream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, Sleep, sleep};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Bytes, Message};

use super::Outbox;
use super::metered::Metered;
use crate::http::connection::{Activity, Stall};
use crate::http::permit::{Permit, Permits};

/// Bytes read at once, kept for the life of a connection.
pub(super) const READ_BUFFER_BYTES: usize = 4 << 10;

/// Bytes joined into one write.
const WRITE_BUFFER_BYTES: usize = 16 << 10;

/// Pings that are answered before the client must have taken the answers: till then nothing is read.
const PONGS_MAX: u32 = 16;

/// Time for a client to take what still waits and to answer the close frame.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(2);

/// Time between two looks at whether the client still reads and lives.
pub(crate) const LOOK_PERIOD: Duration = Duration::from_secs(10);

const SILENCE_MAX: Duration = Duration::from_secs(limit::SOCKET_SILENCE_SECS_MAX);

/// A WebSocket and what waits to be sent on it.
pub(crate) struct Pipe<S> {
    stream: WebSocketStream<Metered<S>>,
    /// What waits.
    pub(crate) outbox: Outbox,
    ping_due: bool,
    /// Bytes given to the stream since it was last flushed.
    unflushed: usize,
    dirty: bool,
    /// Pings of the client since then.
    pings: u32,
    activity: Arc<Activity>,
    stall: Stall,
    heard_at: Instant,
    pinged: bool,
    /// Time for a client to send a message.
    message_time_max: Duration,
    /// Ends the time of the message that is not whole yet; `None` while all is read that was begun.
    message_time: Option<Pin<Box<Sleep>>>,
    /// Nothing is read since then, which is not the client's fault.
    paused_at: Option<Instant>,
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The client said goodbye; its close frame is answered.
    Answer,
    /// The client is gone, or takes or says nothing any more: no goodbye would reach it.
    Gone,
    /// We say goodbye, for this reason.
    Close(CloseCode, &'static str),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Pipe<S> {
    /// The server's end of a WebSocket over `io`, past the handshake; `activity` is what its connection does. What it reads takes
    /// `permits`, and a message must come within `message_time_max`.
    pub(crate) async fn new(io: S, activity: Arc<Activity>, permits: Arc<Permits>, message_time_max: Duration) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(WRITE_BUFFER_BYTES)
            .max_message_size(Some(limit::SOCKET_MESSAGE_BYTES_MAX))
            .max_frame_size(Some(limit::SOCKET_MESSAGE_BYTES_MAX));
        let stream = WebSocketStream::from_raw_socket(Metered::new(io, permits), Role::Server, Some(config)).await;
        let (outbox, stall, heard_at) = (Outbox::default(), Stall::default(), Instant::now());
        let (ping_due, unflushed, dirty, pings, pinged) = (false, 0, false, 0, false);
        let (message_time, paused_at) = (None, None);
        Self {
            stream,
            outbox,
            ping_due,
            unflushed,
            dirty,
            pings,
            activity,
            stall,
            heard_at,
            pinged,
            message_time_max,
            message_time,
            paused_at,
        }
    }

    /// Has the client stopped reading, or did it not even answer a ping? One look; pings a client that is silent.
    pub(crate) fn is_dead(&mut self, now: Instant, stall_time_max: Duration) -> bool {
        let silence = now.saturating_duration_since(self.heard_at);
        if silence >= SILENCE_MAX && !self.pinged {
            (self.pinged, self.ping_due) = (true, true);
        }
        silence >= SILENCE_MAX * 2 || self.stall.look(&self.activity, now, stall_time_max)
    }

    /// Sends what waits, as far as the client takes it. Ready with `Ok` when nothing waits any more.
    pub(crate) fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        loop {
            while self.unflushed < WRITE_BUFFER_BYTES {
                // A message is taken out only when it can be given away.
                ready!(Pin::new(&mut self.stream).poll_ready(cx)).map_err(|_| End::Gone)?;
                let message = if std::mem::take(&mut self.ping_due) {
                    Message::Ping(Bytes::new())
                } else if let Some(text) = self.outbox.pop() {
                    Message::Text(text)
                } else {
                    break;
                };
                self.unflushed += message.len();
                self.dirty = true;
                Pin::new(&mut self.stream).start_send(message).map_err(|_| End::Gone)?;
            }
            if !self.dirty {
                return Poll::Ready(Ok(()));
            }
            ready!(Pin::new(&mut self.stream).poll_flush(cx)).map_err(|_| End::Gone)?;
            (self.unflushed, self.dirty, self.pings) = (0, false, 0);
        }
    }

    /// Nothing is read for now: the time of a message that is not whole stands still.
    pub(crate) fn pause(&mut self) {
        if self.message_time.is_some() {
            self.paused_at.get_or_insert_with(Instant::now);
        }
    }

    /// The next message of the client, and the permit for its bytes. Pings are answered on the way.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(Message, Permit), End>> {
        if self.pings >= PONGS_MAX {
            let Poll::Ready(flushed) = Pin::new(&mut self.stream).poll_flush(cx) else {
                self.pause();
                return Poll::Pending;
            };
            flushed.map_err(|_| End::Gone)?;
            (self.unflushed, self.dirty, self.pings) = (0, false, 0);
        }
        if let Some((paused_at, time)) = self.paused_at.take().zip(self.message_time.as_mut()) {
            let deadline = time.deadline() + paused_at.elapsed();
            time.as_mut().reset(deadline);
        }
        let polled = self.poll_message(cx);
        if !self.stream.get_ref().is_unfinished() {
            self.message_time = None;
        } else if polled.is_pending() {
            let time = self.message_time.get_or_insert_with(|| Box::pin(sleep(self.message_time_max)));
            ready!(time.as_mut().poll(cx));
            return Poll::Ready(Err(End::Close(CloseCode::Policy, "the message was not received in time")));
        }
        match ready!(polled) {
            Some(Ok((Message::Close(_), _))) => Poll::Ready(Err(End::Answer)),
            Some(Ok(read)) => {
                (self.heard_at, self.pinged) = (Instant::now(), false);
                self.pings += u32::from(matches!(read.0, Message::Ping(_)));
                Poll::Ready(Ok(read))
            }
            Some(Err(error)) => Poll::Ready(Err(end_of(&error))),
            None => Poll::Ready(Err(End::Gone)),
        }
    }

    /// The next message or control frame.
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<tungstenite::Result<(Message, Permit)>>> {
        let polled = Pin::new(&mut self.stream).poll_next(cx);
        polled.map_ok(|message| {
            let permit = self.stream.get_mut().finish(&message);
            (message, permit)
        })
    }

    /// Ends the connection: what waits is sent, then the close frame, then the client may answer it; all within
    /// [`CLOSE_TIME_MAX`].
    pub(crate) async fn finish(mut self, end: End) {
        let goodbye = async {
            match end {
                End::Gone => return Some(()),
                // The answer is waiting inside and goes out with the next look for input.
                End::Answer => {}
                End::Close(code, reason) => {
                    std::future::poll_fn(|cx| self.poll_send(cx)).await.ok()?;
                    let frame = CloseFrame { code, reason: reason.into() };
                    self.stream.send(Message::Close(Some(frame))).await.ok()?;
                }
            }
            while let Some(Ok(_)) = std::future::poll_fn(|cx| self.poll_message(cx)).await {}
            // After a frame that could not be read the rest cannot be either. It is thrown away: unread input would
            // turn the end into a reset that eats the close frame.
            let io = &mut self.stream.get_mut().io;
            io.shutdown().await.ok()?;
            let mut piece = [0; READ_BUFFER_BYTES];
            while io.read(&mut piece).await.ok()? > 0 {}
            Some(())
        };
        // It took it or it did not; either way it goes.
        let _ = tokio::time::timeout(CLOSE_TIME_MAX, goodbye).await;
    }
}

/// How a connection ends after a frame that cannot be read.
fn end_of(error: &tungstenite::Error) -> End {
    match error {
        tungstenite::Error::Capacity(_) => End::Close(CloseCode::Size, "the message is too large"),
        tungstenite::Error::Io(error) if error.kind() == std::io::ErrorKind::OutOfMemory => {
            End::Close(CloseCode::Again, "the messages of all clients take too much memory; try again later")
        }
        tungstenite::Error::Utf8(_) => End::Close(CloseCode::Invalid, "the text is not UTF-8"),
        tungstenite::Error::Protocol(tungstenite::error::ProtocolError::ResetWithoutClosingHandshake) => End::Gone,
        tungstenite::Error::Protocol(_) => End::Close(CloseCode::Protocol, "the frame breaks the protocol"),
        _ => End::Gone,
    }
}
