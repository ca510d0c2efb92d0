//! The bytes of a WebSocket message that is not whole yet, counted as they arrive.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::tungstenite::Message;

use crate::http::permit::{Permit, Permits};

/// Bytes of the shortest header of a frame that a client sends, with its mask.
const FRAME_HEADER_BYTES: usize = 6;

/// The connection below a WebSocket. Bytes that were read and belong to no whole message take memory permits; a read without a
/// permit fails with [`io::ErrorKind::OutOfMemory`].
///
/// What is read ahead of a message belongs to the next one. It is less than one read buffer, and not counted.
pub(super) struct Metered<S> {
    pub(super) io: S,
    permits: Arc<Permits>,
    /// For what was read since the last whole message, without control frames.
    unfinished: Permit,
}

impl<S> Metered<S> {
    pub(super) fn new(io: S, permits: Arc<Permits>) -> Self {
        Self { io, unfinished: Permit::nothing(&permits), permits }
    }

    /// Is there a message that is not whole?
    pub(super) const fn is_unfinished(&self) -> bool {
        self.unfinished.bytes() > 0
    }

    /// A message or a control frame is whole. Gives the permit for a message; that of a control frame, which may have come between
    /// the fragments of a message, is given back.
    pub(super) fn finish(&mut self, message: &Message) -> Permit {
        let mut permit = Permit::nothing(&self.permits);
        if message.is_text() || message.is_binary() {
            std::mem::swap(&mut permit, &mut self.unfinished);
            permit.shrink_to(message.len());
        } else {
            let frame_bytes = FRAME_HEADER_BYTES + message.len();
            self.unfinished.shrink_to(self.unfinished.bytes().saturating_sub(frame_bytes));
        }
        permit
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(cx, buf))?;
        let taken = self.unfinished.take(buf.filled().len() - before);
        Poll::Ready(taken.map_err(|_| io::ErrorKind::OutOfMemory.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
