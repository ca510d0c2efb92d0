//! The end of what a server says on its stderr, in bounded memory.

use std::collections::VecDeque;

use agentsvc_systems::mcp::limits::MCP_LOG_BYTES_MAX;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes that one read takes.
const PIECE_BYTES: usize = 4 << 10;

/// What was said last, over all runs of a server.
#[derive(Debug, Default)]
pub(super) struct Tail(Mutex<VecDeque<u8>>);

impl Tail {
    /// Takes everything that comes, until it ends or breaks.
    pub(super) async fn fill(&self, mut from: impl AsyncRead + Unpin) {
        let mut buffer = [0; PIECE_BYTES];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            self.add(&buffer[..count]);
        }
    }

    /// Takes these bytes.
    pub(super) fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock();
        kept.extend(bytes);
        let over = kept.len().saturating_sub(MCP_LOG_BYTES_MAX);
        kept.drain(..over);
    }

    /// The text; what is not UTF-8 is replaced.
    pub(super) fn text(&self) -> String {
        let kept: Vec<u8> = self.0.lock().iter().copied().collect();
        String::from_utf8_lossy(&kept).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{MCP_LOG_BYTES_MAX, Tail};

    #[tokio::test]
    async fn the_end_is_kept() {
        let tail = Tail::default();
        tail.fill(&b"one\n"[..]).await;
        tail.fill(&b"two\xff\n"[..]).await;
        assert_eq!(tail.text(), "one\ntwo\u{fffd}");
        let tail = Tail::default();
        tail.fill(&[&[b'x'; 100_000][..], b"end"].concat()[..]).await;
        let text = tail.text();
        assert!(text.len() == MCP_LOG_BYTES_MAX && text.ends_with("xend"));
    }
}
