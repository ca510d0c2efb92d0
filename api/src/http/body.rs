//! Request bodies: read whole within a bound of bytes and a bound of time, given out piece by piece, or thrown away.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use agentsvc_components::kernel::limit;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::StatusCode;
use hyper::body::{Body, Frame};
use hyper::header::EXPECT;
use hyper::http::request::Parts;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::http::error::Error;
use crate::http::permit::{Permit, Permits};
use crate::http::shutdown::Shutdown;

/// Bytes of an unwanted body that are read and thrown away. A client that still writes would otherwise see a reset
/// connection instead of the answer.
const DISCARD_BYTES_MAX: u64 = 32 << 20;

/// The longest time spent on that.
const DISCARD_TIME_MAX: Duration = Duration::from_secs(2);

/// Reads the whole body. What it takes of the room is held as long as the second value lives; nothing where it is `None`.
///
/// # Errors
/// 413 over `max` bytes, 408 after `time`, 400 when the client breaks off or sends too many small pieces, 503 when there is no
/// room for it.
pub(crate) async fn read<B>(
    parts: &Parts,
    body: B,
    max: usize,
    time: Duration,
    permits: &Arc<Permits>,
) -> Result<(Bytes, Option<Permit>), Error>
where
    B: Body<Data = Bytes>,
{
    if body.is_end_stream() {
        return Ok((Bytes::new(), None));
    }
    let mut body = pin!(body);
    if body.size_hint().lower() > max as u64 {
        discard(expects(parts), body).await;
        return Err(too_large(max as u64));
    }
    let mut permit = Permit::nothing(permits);
    match tokio::time::timeout(time, read_within(body.as_mut(), max, &mut permit)).await {
        Ok(Ok(bytes)) => Ok((bytes, Some(permit))),
        Ok(Err(Stop::Unwanted(error))) => {
            drop(permit);
            discard(expects(parts), body).await;
            Err(error)
        }
        Ok(Err(Stop::BrokenOff)) => Err(broken_off()),
        Err(_) => Err(too_slow(time)),
    }
}

/// Why a body is not read to its end.
enum Stop {
    /// The client sends no more of it.
    BrokenOff,
    /// It is not taken, for this reason.
    Unwanted(Error),
}

/// How finely a body is cut. A client that sends it byte by byte costs far more than its bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Pieces {
    count: u64,
    bytes: u64,
}

impl Pieces {
    /// Counts one, which may be empty.
    ///
    /// # Errors
    /// 400 when there are too many.
    fn add(&mut self, frame: &Frame<Bytes>) -> Result<(), Error> {
        self.count += 1;
        self.bytes += frame.data_ref().map_or(0, |piece| piece.len() as u64);
        if self.count <= limit::BODY_PIECES_FREE + self.bytes / limit::BODY_PIECE_BYTES {
            return Ok(());
        }
        let least = limit::BODY_PIECE_BYTES;
        Err(Error::bad_request(format!(
            "the request body comes in too many small pieces; send at least {least} bytes at a time"
        )))
    }
}

fn broken_off() -> Error {
    Error::bad_request("the request body ended early")
}

fn too_slow(time: Duration) -> Error {
    let text = format!("the request body was not received within {} seconds", time.as_secs());
    Error::new(StatusCode::REQUEST_TIMEOUT, text)
}

/// The body, which is larger neither than `max` nor than there is room.
async fn read_within<B>(mut body: B, max: usize, permit: &mut Permit) -> Result<Bytes, Stop>
where
    B: Body<Data = Bytes> + Unpin,
{
    // Most bodies come in one piece, which is passed on as it is.
    let mut first = Bytes::new();
    let (mut joined, mut pieces) = (BytesMut::new(), Pieces::default());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Stop::BrokenOff)?;
        pieces.add(&frame).map_err(Stop::Unwanted)?;
        let Ok(piece) = frame.into_data() else { continue };
        if first.len() + joined.len() + piece.len() > max {
            return Err(Stop::Unwanted(too_large(max as u64)));
        }
        permit.take(piece.len()).map_err(Stop::Unwanted)?;
        if joined.is_empty() && first.is_empty() {
            first = piece;
            continue;
        }
        if joined.is_empty() {
            joined.extend_from_slice(&std::mem::take(&mut first));
        }
        joined.extend_from_slice(&piece);
    }
    Ok(if joined.is_empty() { first } else { joined.freeze() })
}

/// Does the client wait for a word before it sends the body?
pub(crate) fn expects(parts: &Parts) -> bool {
    parts.headers.contains_key(EXPECT)
}

/// The error of a body over `max` bytes.
pub(crate) fn too_large(max: u64) -> Error {
    Error::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the request body is larger than {max} bytes"))
        .with("limit_bytes", max)
}

/// Reads what is left of a body that nobody wants, within bounds.
///
/// A client that asks before it sends (`expects`) is simply not told to go on.
pub(crate) async fn discard<B: Body<Data = Bytes>>(expects: bool, body: B) {
    if body.is_end_stream() || expects || body.size_hint().lower() > DISCARD_BYTES_MAX {
        return;
    }
    let mut body = pin!(body);
    let read = async {
        let mut pieces = Pieces::default();
        while let Some(Ok(frame)) = body.frame().await {
            if pieces.add(&frame).is_err() || pieces.bytes > DISCARD_BYTES_MAX {
                return;
            }
        }
    };
    // In time or not, the answer goes out now.
    let _ = tokio::time::timeout(DISCARD_TIME_MAX, read).await;
}

/// The body of a [`streamed`](crate::http::route::Route::streamed) route, piece by piece.
///
/// Each piece must come in time, and the whole within [`limit::UPLOAD_SECS_MAX`]. What the route does not read is thrown
/// away when it has answered.
#[derive(Clone)]
pub struct BodyStream {
    rest: Arc<Mutex<Rest>>,
    piece_time_max: Duration,
    deadline: Instant,
    /// Those that have come.
    pieces: Pieces,
    /// Bytes that may be given out.
    max: u64,
    /// Ends it: what let the client in has changed.
    ended: Option<Shutdown>,
}

/// What is left of a streamed body.
#[derive(Default)]
struct Rest {
    /// `None` while a piece is waited for, and after the end.
    body: Option<UnsyncBoxBody<Bytes, ()>>,
    /// The client still waits for a word before it sends.
    expects: bool,
}

impl BodyStream {
    pub(crate) fn new<B>(parts: &Parts, body: B, piece_time_max: Duration) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let body = (!body.is_end_stream()).then(|| body.map_err(drop).boxed_unsync());
        Self {
            rest: Arc::new(Mutex::new(Rest { body, expects: expects(parts) })),
            piece_time_max,
            deadline: Instant::now() + Duration::from_secs(limit::UPLOAD_SECS_MAX),
            pieces: Pieces::default(),
            max: u64::MAX,
            ended: None,
        }
    }

    /// The same, until `key_changed`: a body may take long to come.
    pub(crate) fn until(self, key_changed: &Shutdown) -> Self {
        Self { ended: Some(key_changed.clone()), ..self }
    }

    /// A body that has nothing more to give.
    pub(crate) fn ended() -> Self {
        let now = Instant::now();
        Self {
            rest: Arc::default(),
            piece_time_max: Duration::ZERO,
            deadline: now,
            pieces: Pieces::default(),
            max: 0,
            ended: None,
        }
    }

    /// Bounds the whole body. Without it nothing does.
    ///
    /// # Errors
    /// 413 when the client announced more.
    pub fn bound(&mut self, max: u64) -> Result<(), Error> {
        self.max = max;
        let announced = self.rest.lock().body.as_ref().map_or(0, |body| body.size_hint().lower());
        if announced > max { Err(too_large(max)) } else { Ok(()) }
    }

    /// The next piece; `None` after the last.
    ///
    /// # Errors
    /// 413 over the bound, 408 when a piece or the whole takes too long, 400 when the client breaks off or sends too many small
    /// pieces, 401 when its key is not valid any more.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let mut body = {
            let mut rest = self.rest.lock();
            let Some(body) = rest.body.take() else { return Ok(None) };
            rest.expects = false;
            body
        };
        let until = self.deadline.min(Instant::now() + self.piece_time_max);
        let ended = self.ended.clone();
        let mut ended = pin!(async move {
            match ended {
                Some(ended) => ended.wait().await,
                None => pending().await,
            }
        });
        loop {
            let next = tokio::select! {
                biased;
                () = &mut ended => return Err(Error::unauthorized()),
                next = tokio::time::timeout_at(until, body.frame()) => next,
            };
            let frame = match next {
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(()))) => return Err(broken_off()),
                Ok(None) => return Ok(None),
                Err(_) => return Err(too_slow(self.piece_time_max)),
            };
            self.pieces.add(&frame)?;
            let Ok(piece) = frame.into_data() else { continue };
            if piece.is_empty() {
                continue;
            }
            self.rest.lock().body = Some(body);
            return if self.pieces.bytes > self.max { Err(too_large(self.max)) } else { Ok(Some(piece)) };
        }
    }

    /// Throws away what was not read.
    pub(crate) async fn discard(self) {
        let Rest { body, expects } = std::mem::take(&mut *self.rest.lock());
        if let Some(body) = body {
            discard(expects, body).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream};
    use http_body_util::{Full, StreamBody};
    use hyper::Request;

    use super::*;

    fn parts() -> Parts {
        Request::new(()).into_parts().0
    }

    fn pieces(pieces: &'static [&'static str]) -> impl Body<Data = Bytes> {
        let frame =
            |piece: &&'static str| Ok::<_, std::convert::Infallible>(Frame::data(Bytes::from_static(piece.as_bytes())));
        StreamBody::new(stream::iter(pieces.iter().map(frame)))
    }

    /// Room for eight bytes.
    fn room() -> Arc<Permits> {
        Arc::new(Permits::new(8, 0))
    }

    async fn status(body: impl Body<Data = Bytes>, max: usize) -> u16 {
        let read = read(&parts(), body, max, Duration::from_secs(1), &room()).await;
        read.map_or_else(|error| error.status().as_u16(), |_| 200)
    }

    #[tokio::test]
    async fn pieces_are_joined_up_to_the_bound() {
        let body = read(&parts(), pieces(&["ab", "", "c", "d"]), 4, Duration::from_secs(1), &room()).await.unwrap();
        assert_eq!(body.0, "abcd");
        assert_eq!(status(pieces(&["ab", "c", "de"]), 4).await, 413);
        assert_eq!(status(Full::new(Bytes::from_static(b"abcde")), 4).await, 413);
        assert_eq!(status(Full::new(Bytes::from_static(b"abcd")), 4).await, 200);
        assert_eq!(status(Full::new(Bytes::new()), 0).await, 200);
    }

    #[tokio::test]
    async fn a_body_that_comes_byte_by_byte_is_given_up() {
        let body = |pieces: u64, bytes: usize| {
            let piece = Bytes::from(vec![b'x'; bytes]);
            StreamBody::new(stream::iter((0..pieces).map(move |_| Ok::<_, ()>(Frame::data(piece.clone())))))
        };
        let room = Arc::new(Permits::new(1 << 20, 1 << 20));
        let status = async |pieces, bytes| {
            let read = read(&parts(), body(pieces, bytes), 1 << 20, Duration::from_secs(9), &room).await;
            read.map_or_else(|error| error.status().as_u16(), |_| 200)
        };
        let (free, bytes) = (limit::BODY_PIECES_FREE, limit::BODY_PIECE_BYTES as usize);
        assert_eq!((status(free, 1).await, status(free + 100, 1).await), (200, 400));
        assert_eq!((status(2 * free, bytes).await, status(free + 1, 0).await), (200, 400));
        let mut streamed = BodyStream::new(&parts(), body(2 * free, 1), Duration::from_secs(9));
        let mut taken = 0;
        let error = loop {
            match streamed.next().await {
                Ok(piece) => taken += piece.expect("it does not end").len() as u64,
                Err(error) => break error,
            }
        };
        assert_eq!((error.status().as_u16(), taken >= free), (400, true));
    }

    #[tokio::test]
    async fn bodies_are_taken_while_there_is_room_for_them_together() {
        let room = room();
        let ask = |sent: &'static [&'static str]| {
            let room = Arc::clone(&room);
            async move { read(&parts(), pieces(sent), 100, Duration::from_secs(1), &room).await }
        };
        let first = ask(&["ab", "cde"]).await.unwrap();
        assert_eq!(room.bytes(), 5);
        let refused = ask(&["abc", "d", "e"]).await.err().unwrap();
        assert_eq!((refused.status().as_u16(), refused.retry_after_secs()), (503, Some(1)));
        assert_eq!(room.bytes(), 5, "it holds nothing of what was refused");
        let second = ask(&["abc"]).await.unwrap();
        assert!(ask(&[]).await.is_ok(), "no body needs no room");
        drop(first);
        drop(ask(&["abcde"]).await.unwrap());
        assert_eq!(room.bytes(), 3);
        drop(second);
        // Neither does what broke off, or took too long or too much.
        let broken = stream::iter([Ok(Frame::data(Bytes::from_static(b"a"))), Err(())]);
        assert!(read(&parts(), StreamBody::new(broken), 100, Duration::from_secs(1), &room).await.is_err());
        assert_eq!(room.bytes(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_is_given_up() {
        let slow = StreamBody::new(
            stream::iter([Ok::<_, ()>(Frame::data(Bytes::from_static(b"a")))]).chain(stream::pending()),
        );
        assert_eq!(status(slow, 4).await, 408);
    }

    #[tokio::test]
    async fn a_broken_body_is_a_bad_request() {
        let broken = StreamBody::new(stream::iter([Err::<Frame<Bytes>, ()>(())]));
        assert_eq!(status(broken, 4).await, 400);
    }

    #[tokio::test]
    async fn a_stream_gives_pieces_within_its_bound() {
        let stream = |max| {
            let mut stream = BodyStream::new(&parts(), pieces(&["ab", "", "cd"]), Duration::from_secs(1));
            stream.bound(max).unwrap();
            stream
        };
        let mut whole = stream(4);
        assert_eq!(whole.next().await.unwrap().unwrap(), "ab");
        assert_eq!(whole.next().await.unwrap().unwrap(), "cd");
        assert!(whole.next().await.unwrap().is_none() && whole.next().await.unwrap().is_none());
        let mut cut = stream(3);
        cut.next().await.unwrap();
        assert_eq!(cut.next().await.unwrap_err().status().as_u16(), 413);
        let announced = Full::new(Bytes::from_static(b"abcde"));
        let mut announced = BodyStream::new(&parts(), announced, Duration::from_secs(1));
        assert_eq!(announced.bound(4).unwrap_err().status().as_u16(), 413);
        assert!(BodyStream::ended().next().await.unwrap().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_stalls_is_given_up_and_the_rest_is_thrown_away() {
        let first = stream::iter([Ok::<_, ()>(Frame::data(Bytes::from_static(b"a")))]);
        let body = StreamBody::new(first.chain(stream::pending()));
        let mut stalled = BodyStream::new(&parts(), body, Duration::from_secs(30));
        let rest = stalled.clone();
        stalled.next().await.unwrap();
        assert_eq!(stalled.next().await.unwrap_err().status().as_u16(), 408);
        rest.discard().await;
        let unread = BodyStream::new(&parts(), pieces(&["ab", "cd"]), Duration::from_secs(1));
        unread.clone().discard().await;
        assert!(unread.clone().next().await.unwrap().is_none());
    }
}
