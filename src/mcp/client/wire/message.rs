//! Messages as text: read within bounds of memory, off the threads that serve others where they are long.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use agentsvc_api::http::json::memory_bytes;
use agentsvc_systems::mcp::limits::{
    MCP_MEMORY_BYTES_MAX, MCP_MEMORY_UNCOUNTED_BYTES, MCP_MEMORY_WAIT_SECS, MCP_MESSAGE_MEMORY_BYTES_MAX,
};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of a message from which it is not read on the threads that serve others.
const LARGE_BYTES: usize = 256 << 10;
/// Memory of all servers is counted in pieces of this many bytes.
const PIECE_BYTES: usize = 1 << 10;

/// The memory of the messages of all servers: of two servers none knows how much the other one has sent.
static ALL: LazyLock<Memories> = LazyLock::new(|| Memories::new(MCP_MEMORY_BYTES_MAX));

/// What a text is.
#[derive(Debug)]
pub(super) enum Parsed {
    /// A message, or several, and the memory that they take.
    Messages(Value, Memory),
    /// No JSON.
    Noise,
    /// It is not read; a sentence without an end.
    Refused(String),
}

/// Memory that a message takes until the last copy of this is dropped.
#[derive(Clone, Debug, Default)]
pub(in crate::mcp::client) struct Memory {
    _permit: Option<Arc<OwnedSemaphorePermit>>,
}

/// Memory for messages, shared by those that read them.
struct Memories(Arc<Semaphore>);

impl Memories {
    fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes / PIECE_BYTES)))
    }

    /// Waits for memory, as long as it may take. Small messages do not wait: what is under way bounds their number.
    async fn take(&self, bytes: usize) -> Result<Memory, String> {
        if bytes > MCP_MESSAGE_MEMORY_BYTES_MAX {
            return Err(format!(
                "it sent a message that takes more than {MCP_MESSAGE_MEMORY_BYTES_MAX} bytes of memory"
            ));
        }
        if bytes <= MCP_MEMORY_UNCOUNTED_BYTES {
            return Ok(Memory::default());
        }
        let pieces = u32::try_from(bytes.div_ceil(PIECE_BYTES)).unwrap_or(u32::MAX);
        let taking = Arc::clone(&self.0).acquire_many_owned(pieces);
        match tokio::time::timeout(Duration::from_secs(MCP_MEMORY_WAIT_SECS), taking).await {
            Ok(Ok(permit)) => Ok(Memory { _permit: Some(Arc::new(permit)) }),
            Ok(Err(_)) | Err(_) => Err(format!(
                "its message waited {MCP_MEMORY_WAIT_SECS} seconds for memory: those of all MCP servers may take \
                 {MCP_MEMORY_BYTES_MAX} bytes at once"
            )),
        }
    }

    async fn parsed(&self, text: Vec<u8>) -> Parsed {
        let (is_large, length) = (text.len() >= LARGE_BYTES, text.len());
        let (text, bytes) = aside(is_large, move || {
            let bytes = memory_bytes(&text);
            (text, bytes)
        })
        .await
        .unwrap_or_default();
        if text.len() != length {
            return Parsed::Noise;
        }
        let memory = match self.take(bytes).await {
            Ok(memory) => memory,
            Err(why) => return Parsed::Refused(why),
        };
        let read = aside(is_large, move || serde_json::from_slice(&text).ok()).await.flatten();
        read.map_or(Parsed::Noise, |messages| Parsed::Messages(messages, memory))
    }
}

/// Does something at once, or on a thread of its own where it takes long. `None` when that thread failed.
async fn aside<T: Send + 'static>(is_large: bool, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    if is_large { tokio::task::spawn_blocking(work).await.ok() } else { Some(work()) }
}

/// Reads a text once there is memory for it.
pub(super) async fn parsed(text: Vec<u8>) -> Parsed {
    ALL.parsed(text).await
}

/// Memory for a text that is no JSON.
///
/// # Errors
/// It waited too long; a sentence without an end.
pub(in crate::mcp::client) async fn memory_for(bytes: usize) -> Result<Memory, String> {
    ALL.take(bytes).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_message_takes_bounded_memory() {
        let is = |parsed, expected: Value| matches!(parsed, Parsed::Messages(value, _) if value == expected);
        assert!(is(parsed(b"{\"a\": [1]}".to_vec()).await, json!({ "a": [1] })));
        assert!(matches!(parsed(b"some words".to_vec()).await, Parsed::Noise));
        let text = format!("\"{}\"", "x".repeat(15 << 20));
        assert!(matches!(parsed(text.into_bytes()).await, Parsed::Messages(..)), "a picture is no danger");
        let nested = format!("[{}]", vec!["{\"\":{}}"; 1 << 20].join(","));
        assert!(matches!(parsed(nested.into_bytes()).await, Parsed::Refused(why) if why.contains("of memory")));
    }

    #[tokio::test(start_paused = true)]
    async fn messages_of_all_servers_share_memory() {
        let memories = Memories::new(1 << 20);
        let text = || format!("\"{}\"", "x".repeat(600 << 10)).into_bytes();
        let Parsed::Messages(_, first) = memories.parsed(text()).await else { panic!("there is memory") };
        assert!(matches!(memories.parsed(b"[1]".to_vec()).await, Parsed::Messages(..)), "what is small does not wait");
        let Parsed::Refused(why) = memories.parsed(text()).await else { panic!("there is none for two") };
        assert!(why.contains("waited") && why.contains("all MCP servers"), "{why}");
        let copy = first.clone();
        drop(first);
        assert!(matches!(memories.parsed(text()).await, Parsed::Refused(_)), "a batch holds it to its last message");
        let (waiting, ()) = tokio::join!(memories.parsed(text()), async { drop(copy) });
        assert!(matches!(waiting, Parsed::Messages(..)));
        assert_eq!(memories.0.available_permits(), (1 << 20) / PIECE_BYTES - 601);
        drop(waiting);
        assert_eq!(memories.0.available_permits(), (1 << 20) / PIECE_BYTES);
    }
}
