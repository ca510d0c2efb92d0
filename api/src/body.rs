//! Request bodies: read whole within a bound of bytes and a bound of time, or thrown away.

use std::pin::pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::Body;
use hyper::header::EXPECT;
use hyper::http::request::Parts;

use crate::error::Error;

/// Bytes of an unwanted body that are read and thrown away. A client that still writes would otherwise see a reset
/// connection instead of the answer.
const DISCARD_BYTES_MAX: u64 = 32 << 20;

/// The longest time spent on that.
const DISCARD_TIME_MAX: Duration = Duration::from_secs(2);

/// Reads the whole body.
///
/// # Errors
/// 413 over `max` bytes, 408 after `time`, 400 when the client breaks off.
pub(crate) async fn read<B>(parts: &Parts, body: B, max: usize, time: Duration) -> Result<Bytes, Error>
where
    B: Body<Data = Bytes>,
{
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let too_large = || {
        Error::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {max} bytes"))
            .with("limit_bytes", max as u64)
    };
    let mut body = pin!(body);
    if body.size_hint().lower() > max as u64 {
        discard(parts, body).await;
        return Err(too_large());
    }
    match tokio::time::timeout(time, read_within(body.as_mut(), max)).await {
        Ok(Ok(Some(bytes))) => Ok(bytes),
        Ok(Ok(None)) => {
            discard(parts, body).await;
            Err(too_large())
        }
        Ok(Err(())) => Err(Error::bad_request("the body broke off")),
        Err(_) => {
            let secs = time.as_secs();
            Err(Error::new(StatusCode::REQUEST_TIMEOUT, format!("the body did not arrive within {secs} seconds")))
        }
    }
}

/// The body; `None` when it is larger than `max`.
async fn read_within<B: Body<Data = Bytes> + Unpin>(mut body: B, max: usize) -> Result<Option<Bytes>, ()> {
    // Most bodies come in one piece, which is passed on as it is.
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(|_| ())?.into_data() else { continue };
        if first.len() + joined.len() + piece.len() > max {
            return Ok(None);
        }
        if joined.is_empty() && first.is_empty() {
            first = piece;
            continue;
        }
        if joined.is_empty() {
            joined.extend_from_slice(&std::mem::take(&mut first));
        }
        joined.extend_from_slice(&piece);
    }
    Ok(Some(if joined.is_empty() { first } else { joined.freeze() }))
}

/// Reads what is left of a body that nobody wants, within bounds.
pub(crate) async fn discard<B: Body<Data = Bytes>>(parts: &Parts, body: B) {
    // A client that asks before it sends is simply not told to go on.
    if body.is_end_stream() || parts.headers.contains_key(EXPECT) || body.size_hint().lower() > DISCARD_BYTES_MAX {
        return;
    }
    let mut body = pin!(body);
    let read = async {
        let mut seen = 0;
        while let Some(Ok(frame)) = body.frame().await {
            seen += frame.data_ref().map_or(0, |piece| piece.len() as u64);
            if seen > DISCARD_BYTES_MAX {
                return;
            }
        }
    };
    // In time or not, the answer goes out now.
    let _ = tokio::time::timeout(DISCARD_TIME_MAX, read).await;
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream};
    use http_body_util::{Full, StreamBody};
    use hyper::Request;
    use hyper::body::Frame;

    use super::*;

    fn parts() -> Parts {
        Request::new(()).into_parts().0
    }

    fn pieces(pieces: &'static [&'static str]) -> impl Body<Data = Bytes> {
        let frame =
            |piece: &&'static str| Ok::<_, std::convert::Infallible>(Frame::data(Bytes::from_static(piece.as_bytes())));
        StreamBody::new(stream::iter(pieces.iter().map(frame)))
    }

    async fn status(body: impl Body<Data = Bytes>, max: usize) -> u16 {
        read(&parts(), body, max, Duration::from_secs(1)).await.map_or_else(|e| e.status().as_u16(), |_| 200)
    }

    #[tokio::test]
    async fn pieces_are_joined_up_to_the_bound() {
        let body = read(&parts(), pieces(&["ab", "", "c", "d"]), 4, Duration::from_secs(1)).await.unwrap();
        assert_eq!(body, "abcd");
        assert_eq!(status(pieces(&["ab", "c", "de"]), 4).await, 413);
        assert_eq!(status(Full::new(Bytes::from_static(b"abcde")), 4).await, 413);
        assert_eq!(status(Full::new(Bytes::from_static(b"abcd")), 4).await, 200);
        assert_eq!(status(Full::new(Bytes::new()), 0).await, 200);
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
}
