//! The ways to servers over HTTP, over real sockets, against servers that behave and servers that do not.

mod compat;
mod server;
mod sse;
mod streamable;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use self::server::{Reply, Seen, Server};
use super::{Endpoint, Means, Transport, open};
use crate::kernel::config::Secret;
use crate::kernel::egress::Web;
use crate::kernel::sandbox::Commands;
use crate::mcp::client::connection::{Connection, Failure};
use crate::mcp::client::session;

/// Time for what ends by itself.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time for what does not.
const SHORT: Duration = Duration::from_millis(300);

fn means() -> Means {
    let commands = Commands::new(crate::kernel::sandbox::config::ExecPolicy::default(), Vec::new(), Vec::new());
    Means { commands, web: Web::default() }
}

fn endpoint(url: &str) -> Endpoint {
    let headers = vec![("X-Key".into(), Secret::new("k1"))];
    Endpoint { url: url.to_owned(), headers, trusted: true, authorization: None }
}

async fn connected(transport: Transport) -> (Connection, JoinHandle<String>) {
    let opened = open("s", transport, &means()).await.unwrap_or_else(|why| panic!("{why}"));
    (opened.connection, tokio::spawn(opened.carry))
}

/// A connection whose session has begun.
async fn begun(transport: Transport) -> (Connection, JoinHandle<String>) {
    let (connection, carry) = connected(transport).await;
    session::initialize(&connection).await.unwrap();
    (connection, carry)
}

async fn call(connection: &Connection, tool: &str, time_max: Duration) -> Result<Value, Failure> {
    connection.request("tools/call", json!({ "name": tool, "arguments": {} }), time_max).await
}

fn unanswered(why: &str) -> Result<Value, Failure> {
    Err(Failure::Unanswered(why.to_owned()))
}

/// What a sound server answers at the beginning; `None` for calls.
fn sound(seen: &Seen) -> Option<Reply> {
    match (seen.method.as_str(), seen.rpc()) {
        ("POST", "initialize") => {
            let said = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": { "listChanged": true } } });
            let answer = seen.result(said).to_string();
            Some(Reply::Plain(200, "Mcp-Session-Id: s-1\r\n", "application/json", answer))
        }
        ("POST", rpc) if rpc.starts_with("notifications/") => Some(Reply::Plain(202, "", "text/plain", String::new())),
        ("POST", "tools/list") => {
            let tool = json!({ "name": "a", "inputSchema": { "type": "object" } });
            Some(Reply::events(&[seen.result(json!({ "tools": [tool] }))]))
        }
        ("GET" | "DELETE", _) => Some(Reply::status(405)),
        _ => None,
    }
}
