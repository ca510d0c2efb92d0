//! Frames of OFP/1: a length of four bytes, JSON, and after the handshake the 64 hexadecimal digits of an HMAC-SHA256 over the
//! JSON, which the length includes. The messages are readable by all on the way; the HMAC says who wrote them.

use std::io;

use agentsvc_systems::peer::limits::{
    PEER_FRAME_BYTES_MAX, PEER_FRAME_MS, PEER_FRAMES_BYTES_MAX, PEER_HELLO_BYTES_MAX,
};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout, timeout_at};

use super::crypto::{MAC_BYTES, SessionKey};
use super::message::NotAMessage;

/// Bytes of the length of a frame.
const LENGTH_BYTES: usize = 4;
/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;

/// What large frames take beyond their first 64 KiB, in KiB.
static LARGE: Semaphore = Semaphore::const_new(PEER_FRAMES_BYTES_MAX >> 10);

/// Why a connection cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    /// The system says so.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    /// It was closed.
    #[error("the peer closed the connection")]
    Closed,
    /// It took too long.
    #[error("the peer did not respond in time")]
    Slow,
    /// A frame is longer than is allowed.
    #[error("a frame of {0} bytes is too long")]
    TooLong(usize),
    /// A frame was changed on the way, or is not the peer's.
    #[error("a frame was altered or has no valid HMAC")]
    Altered,
    /// It is no message.
    #[error(transparent)]
    Malformed(#[from] NotAMessage),
}

/// A frame without an HMAC.
pub(crate) fn plain(json: &[u8]) -> Vec<u8> {
    framed(&[json])
}

/// A frame with its HMAC.
pub(crate) fn sealed(json: &[u8], key: &SessionKey) -> Vec<u8> {
    framed(&[json, key.mac(json).as_bytes()])
}

fn framed(parts: &[&[u8]]) -> Vec<u8> {
    // Frames that are written here are far shorter.
    let length = u32::try_from(parts.iter().map(|part| part.len()).sum::<usize>()).unwrap_or(u32::MAX);
    let mut frame = length.to_be_bytes().to_vec();
    parts.iter().for_each(|part| frame.extend_from_slice(part));
    frame
}

/// The JSON of the content of a frame with an HMAC.
///
/// # Errors
/// [`WireError::Altered`].
pub(crate) fn opened<'a>(content: &'a [u8], key: &SessionKey) -> Result<&'a [u8], WireError> {
    let at = content.len().checked_sub(MAC_BYTES).ok_or(WireError::Altered)?;
    let (json, mac) = content.split_at(at);
    if key.verifies(json, mac) { Ok(json) } else { Err(WireError::Altered) }
}

/// Takes frames out of bytes as they come.
#[derive(Debug)]
pub(crate) struct Frames {
    bytes: Vec<u8>,
    /// Bytes that the content of a frame may have.
    most: usize,
}

impl Frames {
    /// Frames before the handshake has ended.
    pub(crate) fn new() -> Self {
        Self { bytes: Vec::new(), most: PEER_HELLO_BYTES_MAX }
    }

    /// From here on frames may be as long as after the handshake.
    pub(crate) fn widen(&mut self) {
        self.most = PEER_FRAME_BYTES_MAX;
    }

    /// Adds bytes that have come.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes of the content of the frame that has begun; nothing while its length is not there.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    fn length(&self) -> Result<Option<usize>, WireError> {
        let Some(length) = self.bytes.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > self.most { Err(WireError::TooLong(length)) } else { Ok(Some(length)) }
    }

    /// The content of the first frame, when all of it is there.
    ///
    /// # Errors
    /// [`WireError::TooLong`], before its content has come.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>, WireError> {
        let Some(length) = self.length()? else { return Ok(None) };
        let end = LENGTH_BYTES + length;
        if self.bytes.len() < end {
            return Ok(None);
        }
        let rest = self.bytes.split_off(end);
        let mut frame = std::mem::replace(&mut self.bytes, rest);
        frame.drain(..LENGTH_BYTES);
        Ok(Some(frame))
    }
}

/// Reads frames from a connection.
pub(crate) struct FrameReader<R> {
    from: R,
    frames: Frames,
    /// Since when the frame is awaited whose first byte is there.
    begun: Option<Instant>,
    /// Held from when a large frame begins to come until [`release`](FrameReader::release).
    large: Option<SemaphorePermit<'static>>,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Reads frames of a handshake.
    pub(crate) fn new(from: R) -> Self {
        Self { from, frames: Frames::new(), begun: None, large: None }
    }

    /// From here on frames may be as long as after the handshake.
    pub(crate) fn widen(&mut self) {
        self.frames.widen();
    }

    /// The last frame has been read and is no longer kept.
    pub(crate) fn release(&mut self) {
        self.large = None;
    }

    /// The content of the next frame. Nothing is lost when it is not waited for to the end, also not the time that it took.
    ///
    /// # Errors
    /// [`WireError`]: the connection has ended, or must.
    pub(crate) async fn next(&mut self) -> Result<Vec<u8>, WireError> {
        loop {
            if let Some(frame) = self.frames.next()? {
                self.begun = None;
                return Ok(frame);
            }
            if !self.frames.bytes.is_empty() {
                self.begun.get_or_insert_with(Instant::now);
            }
            self.make_room().await?;
            let end = self.begun.map(|begun| begun + Duration::from_millis(PEER_FRAME_MS));
            let read = self.read();
            let count = match end {
                Some(end) => timeout_at(end, read).await.map_err(|_| WireError::Slow)??,
                None => read.await?,
            };
            if count == 0 {
                return Err(WireError::Closed);
            }
        }
    }

    async fn read(&mut self) -> Result<usize, WireError> {
        let mut piece = [0; READ_BYTES];
        let count = self.from.read(&mut piece).await?;
        self.frames.feed(&piece[..count]);
        Ok(count)
    }

    /// A large frame has its share of the memory before more of it is read.
    async fn make_room(&mut self) -> Result<(), WireError> {
        let beyond = self.frames.length()?.unwrap_or(0).saturating_sub(PEER_HELLO_BYTES_MAX);
        if beyond == 0 || self.large.is_some() {
            return Ok(());
        }
        let share = u32::try_from(beyond >> 10).unwrap_or(u32::MAX).max(1);
        let permit = timeout(Duration::from_millis(PEER_FRAME_MS), LARGE.acquire_many(share)).await;
        self.large = permit.map_err(|_| WireError::Slow)?.ok();
        // The peer does not pay for the time that the memory was taken by others.
        self.begun = Some(Instant::now());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::peer::message::Message;

    fn key() -> SessionKey {
        SessionKey::of_secret("s", "a", "b")
    }

    #[test]
    fn a_length_that_is_too_great_is_refused_before_its_content_comes() {
        let mut frames = Frames::new();
        let length = |bytes: usize| u32::try_from(bytes).unwrap().to_be_bytes();
        frames.feed(&length(PEER_HELLO_BYTES_MAX + 1));
        assert!(matches!(frames.next(), Err(WireError::TooLong(_))));
        frames.widen();
        assert!(matches!(frames.next(), Ok(None)));
        let mut frames = Frames::new();
        frames.widen();
        frames.feed(&length(PEER_FRAME_BYTES_MAX + 1));
        assert!(matches!(frames.next(), Err(WireError::TooLong(_))));
    }

    #[tokio::test]
    async fn a_connection_that_ends_within_a_frame_is_closed() {
        let mut reader = FrameReader::new(&b"\0\0\0\x02{"[..]);
        assert!(matches!(reader.next().await, Err(WireError::Closed)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_that_stops_within_is_given_up() {
        let (mut to, from) = tokio::io::duplex(64);
        let mut reader = FrameReader::new(from);
        tokio::io::AsyncWriteExt::write_all(&mut to, b"\0\0\0\x02{").await.unwrap();
        assert!(matches!(reader.next().await, Err(WireError::Slow)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_that_comes_in_drips_is_given_up() {
        let (mut to, from) = tokio::io::duplex(64);
        let mut reader = FrameReader::new(from);
        let half = Duration::from_millis(PEER_FRAME_MS / 2);
        let mut drips = 0;
        let end = loop {
            let piece: &[u8] = if drips == 0 { b"\0\0\0\x20" } else { b" " };
            tokio::io::AsyncWriteExt::write_all(&mut to, piece).await.unwrap();
            drips += 1;
            if let Ok(end) = timeout(half, reader.next()).await {
                break end;
            }
        };
        assert!(matches!(end, Err(WireError::Slow)) && drips <= 3, "{drips} pieces");
    }

    proptest! {
        #[test]
        fn what_is_framed_comes_out_again_however_it_is_cut(
            texts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 1..6),
            cuts in proptest::collection::vec(1_usize..40, 1..40),
        ) {
            let key = key();
            let mut wire: Vec<u8> = texts.iter().flat_map(|text| sealed(text, &key)).collect();
            let (mut frames, mut found, mut cuts) = (Frames::new(), Vec::new(), cuts.into_iter().cycle());
            while !wire.is_empty() {
                let rest = wire.split_off(cuts.next().unwrap_or(1).min(wire.len()));
                frames.feed(&std::mem::replace(&mut wire, rest));
                while let Some(frame) = frames.next().unwrap() {
                    found.push(opened(&frame, &key).unwrap().to_vec());
                }
            }
            prop_assert_eq!(found, texts);
        }

        #[test]
        fn a_frame_that_was_altered_is_refused(text in proptest::collection::vec(any::<u8>(), 0..100), at in any::<usize>(), bit in 0..8) {
            let key = key();
            let frame = sealed(&text, &key);
            let mut content = frame[LENGTH_BYTES..].to_vec();
            let at = at % content.len();
            let before = content[at];
            content[at] ^= 1_u8 << bit;
            // The digits of the HMAC may be of either case.
            let is_case = at >= text.len() && before.eq_ignore_ascii_case(&content[at]);
            prop_assert_eq!(opened(&content, &key).is_ok(), is_case);
        }

        #[test]
        fn any_bytes_are_frames_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let mut frames = Frames::new();
            frames.feed(&bytes);
            while let Ok(Some(frame)) = frames.next() {
                let _message = Message::read(&frame);
                prop_assert!(opened(&frame, &key()).is_err());
            }
        }
    }
}
