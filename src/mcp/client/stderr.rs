//! The end of what a server says on its stderr, in bounded memory.

use std::collections::VecDeque;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes that are kept.
const KEPT_BYTES_MAX: usize = 4 << 10;

/// What was said last.
#[derive(Debug, Default)]
pub(super) struct Tail(VecDeque<u8>);

impl Tail {
    /// Takes everything that comes, until it ends or breaks.
    pub(super) async fn fill(&mut self, mut from: impl AsyncRead + Unpin) {
        let mut buffer = [0; KEPT_BYTES_MAX];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            self.0.extend(&buffer[..count]);
            let over = self.0.len().saturating_sub(KEPT_BYTES_MAX);
            self.0.drain(..over);
        }
    }

    /// The text; what is not UTF-8 is replaced.
    pub(super) fn into_text(self) -> String {
        String::from_utf8_lossy(&Vec::from(self.0)).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT_BYTES_MAX, Tail};

    #[tokio::test]
    async fn the_end_is_kept() {
        let mut tail = Tail::default();
        tail.fill(&b"one\n"[..]).await;
        tail.fill(&b"two\xff\n"[..]).await;
        assert_eq!(tail.into_text(), "one\ntwo\u{fffd}");
        let mut tail = Tail::default();
        tail.fill(&[&[b'x'; 100_000][..], b"end"].concat()[..]).await;
        let text = tail.into_text();
        assert!(text.len() == KEPT_BYTES_MAX && text.ends_with("xend"));
    }
}
