//! What a fuzz target does with bytes of MCP servers: a whole conversation over pipes.

use std::future::pending;
use std::time::Duration;

use agentsvc_systems::injection::InjectionPolicy;
use agentsvc_systems::mcp::limits::{MCP_SERVER_TOOLS_MAX, MCP_TOOL_NAME_BYTES_MAX};
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};

use super::call::{Caller, call};
use super::connection::Connection;
use super::review::judge;
use super::session;
use super::tools::told;
use super::wire::lines;

/// Bytes that are on their way at once.
const PIPE_BYTES: usize = 64 << 10;
/// Tools that are called.
const CALLS_MAX: usize = 8;
/// Tools that a server can have beside those that it lists: for its resources and prompts.
const OWN_TOOLS_MAX: usize = 4;
/// Time that a call may take.
const CALL_TIME_MAX: Duration = Duration::from_secs(30);

/// Talks with a server that answers each request with the next line of `script`; gives how many tools may be offered.
pub(crate) async fn converse(script: &[u8]) -> usize {
    let (ours, theirs) = duplex(PIPE_BYTES);
    let (connection, carry) = lines("fuzzed", ours);
    tokio::select! {
        tools = talk(&connection) => tools,
        // The end of the server ends what waits for its answers.
        () = async { tokio::join!(carry, serve(theirs, script)); pending().await } => 0,
    }
}

/// The server. It ends with the script.
async fn serve(stream: DuplexStream, script: &[u8]) {
    let (from, mut to) = tokio::io::split(stream);
    let mut asked = BufReader::new(from).lines();
    let mut answers = script.split(|byte| *byte == b'\n');
    while let Ok(Some(line)) = asked.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        if message["method"].is_null() || message["id"].is_null() {
            continue;
        }
        let Some(answer) = answers.next() else { return };
        if to.write_all(answer).await.is_err() || to.write_all(b"\n").await.is_err() {
            return;
        }
    }
}

/// All that the daemon asks a server.
async fn talk(connection: &Connection) -> usize {
    let Ok(features) = session::initialize(connection).await else { return 0 };
    let Ok(described) = session::describe(connection, features).await else { return 0 };
    let listing = judge("fuzzed", described, InjectionPolicy::Mark);
    let listed = listing.listed();
    assert!(listed.len() <= MCP_SERVER_TOOLS_MAX + OWN_TOOLS_MAX, "{} tools", listed.len());
    let is_plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_';
    let is_name = |name: &str| !name.is_empty() && name.len() <= MCP_TOOL_NAME_BYTES_MAX && name.bytes().all(is_plain);
    assert!(listed.iter().all(|tool| is_name(&tool.name)), "{listed:?}");
    assert!(listed.is_sorted_by(|a, b| a.name < b.name), "each is there once");
    for tool in listing.tools.iter().take(CALLS_MAX) {
        assert!(tool.schema.get().starts_with('{'), "{tool:?}");
        let called = call(connection, &tool.described, Map::new(), Caller::default(), CALL_TIME_MAX).await;
        // A model reads something, whatever came.
        let _read = told("fuzzed", called);
    }
    listed.len()
}
