//! One terminal over one WebSocket: one task, which waits for the next thing that happens on either side.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::host::Terminal;
use super::message::{self, Message};
use super::output::Output;
use crate::http::api::Api;
use crate::http::connection::Activity;
use crate::http::shutdown::Shutdown;
use crate::http::socket::{End, LOOK_PERIOD, Pipe};

/// Bytes of output that are read at once.
const PIECE_BYTES: usize = 8 << 10;
/// How long the shell may take to be gone when its terminal has ended.
const END_TIME_MAX: Duration = Duration::from_secs(15);
/// Messages in a row that are refused before the client is.
const REFUSED_MAX: u32 = 16;

/// A terminal and its client.
pub(super) struct Session<S> {
    pipe: Pipe<S>,
    terminal: Box<dyn Terminal>,
    output: Output,
    /// Input that the terminal has not taken yet: that of one message.
    input: VecDeque<u8>,
    /// When the client typed last.
    typed_at: Instant,
    refused: u32,
}

/// How a terminal has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    /// In a word.
    pub(super) reason: &'static str,
    /// The exit code of the shell, where it ended by itself.
    pub(super) code: Option<i32>,
}

/// Why the loop is left.
enum Left {
    /// The shell has ended.
    Shell,
    /// The client or the daemon ends it.
    Socket(End, &'static str),
}

/// What a session is made of.
pub(super) struct Start {
    pub(super) terminal: Box<dyn Terminal>,
    pub(super) output: Output,
    pub(super) activity: Arc<Activity>,
    /// Triggered when the key that let the client in is no longer in force.
    pub(super) key_changed: Shutdown,
    pub(super) idle_time_max: Duration,
    /// What the client is told first.
    pub(super) greeting: Option<tokio_tungstenite::tungstenite::Utf8Bytes>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    /// Carries a terminal until one side ends it.
    pub(super) async fn hold(api: &Api, start: Start, io: S) -> Ended {
        let (permits, message_time_max) = (Arc::clone(&api.permits), api.settings.limits.body_time_max);
        let Start { terminal, output, activity, key_changed, idle_time_max, greeting } = start;
        let mut session = Self {
            pipe: Pipe::new(io, activity, permits, message_time_max).await,
            terminal,
            output,
            input: VecDeque::new(),
            typed_at: Instant::now(),
            refused: 0,
        };
        if let Some(greeting) = greeting {
            session.pipe.outbox.push(greeting);
        }
        let left = session.run(api, &key_changed, idle_time_max).await;
        session.end(left).await
    }

    async fn run(&mut self, api: &Api, key_changed: &Shutdown, idle_time_max: Duration) -> Left {
        let mut stop = pin!(api.shutdown.wait());
        let mut key_changed = pin!(key_changed.wait());
        let mut looks = interval(LOOK_PERIOD);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let idle = self.typed_at + idle_time_max;
            tokio::select! {
                biased;
                () = &mut stop => {
                    return Left::Socket(End::Close(CloseCode::Away, "the daemon is shutting down"), "shutdown");
                }
                () = &mut key_changed => {
                    return Left::Socket(End::Close(CloseCode::Policy, "the API key has changed"), "key_changed");
                }
                () = sleep_until(idle) => {
                    self.pipe.outbox.push(self.output.error("the terminal was idle for too long"));
                    return Left::Socket(End::Close(CloseCode::Policy, "the terminal was idle for too long"), "idle");
                }
                now = looks.tick() => if self.pipe.is_dead(now, api.settings.limits.stall_time_max) {
                    api.metrics.unread.sockets.fetch_add(1, Ordering::Relaxed);
                    return Left::Socket(End::Gone, "client_gone");
                },
                left = std::future::poll_fn(|cx| self.poll(cx)) => if let Some(left) = left {
                    return left;
                },
            }
        }
    }

    /// Does one thing that can be done now. Neither side is read while the other one does not take what was read before.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Left>> {
        let gone = |end| Some(Left::Socket(end, if end == End::Answer { "closed" } else { "client_gone" }));
        if let Poll::Ready(Err(end)) = self.pipe.poll_send(cx) {
            return Poll::Ready(gone(end));
        }
        if !self.input.is_empty() {
            let (front, _) = self.input.as_slices();
            match Pin::new(&mut *self.terminal).poll_write(cx, front) {
                Poll::Ready(Ok(written)) => {
                    self.input.drain(..written);
                    return Poll::Ready(None);
                }
                Poll::Ready(Err(_)) => self.input.clear(),
                Poll::Pending => {}
            }
        }
        if !self.pipe.outbox.is_full() {
            let mut piece = [0; PIECE_BYTES];
            let mut into = ReadBuf::new(&mut piece);
            match Pin::new(&mut *self.terminal).poll_read(cx, &mut into) {
                Poll::Ready(Ok(())) if !into.filled().is_empty() => {
                    if let Some(text) = self.output.piece(into.filled()) {
                        self.pipe.outbox.push(text);
                    }
                    return Poll::Ready(None);
                }
                Poll::Ready(_) => return Poll::Ready(Some(Left::Shell)),
                Poll::Pending => {}
            }
        }
        if !self.input.is_empty() {
            self.pipe.pause();
            return Poll::Pending;
        }
        self.pipe.poll_read(cx).map(|read| match read {
            Ok((frame, _permit)) => self.hear(frame),
            Err(end) => gone(end),
        })
    }

    /// Takes in one message of the client.
    fn hear(&mut self, frame: Frame) -> Option<Left> {
        let message = match frame {
            Frame::Text(text) => message::read(&text),
            Frame::Binary(bytes) if bytes.len() <= message::MESSAGE_BYTES_MAX => Ok(Message::Input(bytes.to_vec())),
            Frame::Binary(_) => Err(format!("the message is longer than {} bytes", message::MESSAGE_BYTES_MAX)),
            _ => return None,
        };
        match message {
            Ok(Message::Input(bytes)) => {
                (self.typed_at, self.refused) = (Instant::now(), 0);
                self.input.extend(bytes);
            }
            Ok(Message::Resize(size)) => {
                // One that is gone ends with the next read.
                let _gone = self.terminal.resize(size);
            }
            Ok(Message::Close) => return Some(Left::Socket(End::Close(CloseCode::Normal, "closed"), "closed")),
            Err(why) => {
                self.refused += 1;
                if self.refused >= REFUSED_MAX {
                    let end = End::Close(CloseCode::Policy, "too many messages that are not valid");
                    return Some(Left::Socket(end, "refused"));
                }
                self.pipe.outbox.push(self.output.error(&why));
            }
        }
        None
    }

    /// Says goodbye. Everything that the shell started is killed before the client is told, if it had not ended by itself.
    async fn end(mut self, left: Left) -> Ended {
        let ended = match left {
            Left::Shell => {
                let code = timeout(END_TIME_MAX, self.terminal.ended()).await.unwrap_or(None);
                for text in [self.output.rest(), self.output.exit(code)].into_iter().flatten() {
                    self.pipe.outbox.push(text);
                }
                (End::Close(CloseCode::Normal, "the shell has ended"), Ended { reason: "exit", code })
            }
            Left::Socket(end, reason) => (end, Ended { reason, code: None }),
        };
        drop(self.terminal);
        self.pipe.finish(ended.0).await;
        ended.1
    }
}
