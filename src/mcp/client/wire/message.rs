//! Messages as text: read within a bound of memory, off the threads that serve others where they are long.

use agentsvc_api::http::json::memory_bytes;
use agentsvc_systems::mcp::limits::MCP_MESSAGE_MEMORY_BYTES_MAX;
use serde_json::Value;

/// Bytes of a message from which it is not read on the threads that serve others.
const LARGE_BYTES: usize = 256 << 10;

/// What a text is.
#[derive(Debug, PartialEq)]
pub(super) enum Parsed {
    /// A message, or several.
    Messages(Value),
    /// No JSON.
    Noise,
    /// A few bytes can become six hundred in memory; these would be too many.
    TooLarge,
}

/// Why a message that is too large is not read.
pub(super) fn too_large() -> String {
    format!("it sent a message that takes more than {MCP_MESSAGE_MEMORY_BYTES_MAX} bytes of memory")
}

/// Reads a text.
pub(super) async fn parsed(text: Vec<u8>) -> Parsed {
    if text.len() < LARGE_BYTES {
        return read(&text);
    }
    tokio::task::spawn_blocking(move || read(&text)).await.unwrap_or(Parsed::Noise)
}

fn read(text: &[u8]) -> Parsed {
    if memory_bytes(text) > MCP_MESSAGE_MEMORY_BYTES_MAX {
        return Parsed::TooLarge;
    }
    serde_json::from_slice(text).map_or(Parsed::Noise, Parsed::Messages)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_message_takes_bounded_memory() {
        assert_eq!(parsed(b"{\"a\": [1]}".to_vec()).await, Parsed::Messages(json!({ "a": [1] })));
        assert_eq!(parsed(b"some words".to_vec()).await, Parsed::Noise);
        let text = format!("\"{}\"", "x".repeat(15 << 20));
        assert!(matches!(parsed(text.into_bytes()).await, Parsed::Messages(_)), "a picture is no danger");
        let nested = format!("[{}]", vec!["{\"\":{}}"; 1 << 20].join(","));
        assert_eq!(parsed(nested.into_bytes()).await, Parsed::TooLarge);
    }
}
