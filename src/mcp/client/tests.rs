//! Servers that do what they must not, over a pipe in memory and in virtual time.

use std::time::Duration;

use agentsvc_systems::mcp::limits::{MCP_MESSAGE_BYTES_MAX, MCP_SERVER_REQUESTS_MAX, MCP_SERVER_TOOLS_MAX};
use futures_util::FutureExt;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::task::JoinHandle;

use super::connection::{Connection, Failure};
use super::session;
use super::wire;

const SECOND: Duration = Duration::from_secs(1);

/// The other side.
struct Peer(BufReader<DuplexStream>);

impl Peer {
    async fn next(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn send(&mut self, line: &str) {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Answers what was asked last.
    async fn answer(&mut self, method: &str, result: Value) -> Value {
        let asked = self.next().await;
        assert_eq!(asked["method"], method, "{asked}");
        self.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }).to_string()).await;
        asked["params"].clone()
    }
}

fn connected() -> (Connection, JoinHandle<String>, Peer) {
    let (ours, theirs) = duplex(64 << 10);
    let (connection, carry) = wire::lines("s", ours);
    (connection, tokio::spawn(carry), Peer(BufReader::new(theirs)))
}

/// A request under way.
fn asking(connection: &Connection, method: &'static str) -> JoinHandle<Result<Value, Failure>> {
    let connection = connection.clone();
    tokio::spawn(async move { connection.request(method, json!({}), SECOND * 9).await })
}

fn unanswered(why: &str) -> Result<Value, Failure> {
    Err(Failure::Unanswered(why.to_owned()))
}

#[tokio::test(start_paused = true)]
async fn answers_find_who_asked() {
    let (connection, _carry, mut peer) = connected();
    let (one, two) = (asking(&connection, "one"), asking(&connection, "two"));
    let (first, second) = (peer.next().await, peer.next().await);
    peer.send("some words for people").await;
    peer.send("{\"jsonrpc\": \"2.0\", \"id\": 99, \"result\": 0}").await;
    let said = json!({ "jsonrpc": "2.0", "id": second["id"], "error": { "code": -1, "message": "no" } });
    peer.send(&json!([said, { "jsonrpc": "2.0", "id": first["id"], "result": { "a": 1 } }]).to_string()).await;
    assert_eq!(one.await.unwrap(), Ok(json!({ "a": 1 })));
    assert_eq!(two.await.unwrap(), Err(Failure::Refused("no".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_holds_a_call_no_longer_than_its_time_and_learns_of_it() {
    let (connection, _carry, mut peer) = connected();
    let call = asking(&connection, "tools/call");
    let id = peer.next().await["id"].clone();
    assert_eq!(call.await.unwrap(), unanswered("it did not answer within 9 seconds"));
    let told = peer.next().await;
    assert_eq!((&told["method"], &told["params"]["requestId"]), (&json!("notifications/cancelled"), &id));
    // An answer that comes too late is nobody's.
    peer.send(&json!({ "jsonrpc": "2.0", "id": id, "result": 1 }).to_string()).await;
    let next = asking(&connection, "ping");
    peer.answer("ping", json!(2)).await;
    assert_eq!(next.await.unwrap(), Ok(json!(2)));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_is_cancelled() {
    let (connection, _carry, mut peer) = connected();
    let call = asking(&connection, "tools/call");
    let id = peer.next().await["id"].clone();
    call.abort();
    assert_eq!(peer.next().await["params"]["requestId"], id);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_reads_nothing_holds_nothing_up() {
    let (connection, _carry, _peer) = connected();
    let large = json!({ "text": "x".repeat(1 << 20) });
    let calls = (0..MCP_SERVER_REQUESTS_MAX).map(|_| connection.request("tools/call", large.clone(), SECOND));
    let mut calls = Box::pin(join_all(calls));
    assert!((&mut calls).now_or_never().is_none());
    let one_more = connection.request("tools/call", json!({}), SECOND).await;
    assert_eq!(one_more, unanswered("it has 64 calls under way"));
    assert!(calls.await.iter().all(|call| *call == unanswered("it did not answer within 1 seconds")));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_server_ends_its_calls() {
    let (connection, carry, mut peer) = connected();
    let call = asking(&connection, "tools/call");
    peer.next().await;
    drop(peer);
    assert_eq!(call.await.unwrap(), unanswered("it ended before it answered"));
    assert_eq!(carry.await.unwrap(), "it closed its output");
    assert_eq!(connection.request("ping", json!({}), SECOND).await, unanswered("it has ended"));
}

#[tokio::test(start_paused = true)]
async fn a_message_without_an_end_ends_the_connection() {
    let (connection, carry, mut peer) = connected();
    let call = asking(&connection, "tools/call");
    peer.next().await;
    let flood = tokio::spawn(async move {
        let piece = [b'x'; 1 << 16];
        while peer.0.get_mut().write_all(&piece).await.is_ok() {}
    });
    assert_eq!(carry.await.unwrap(), format!("it sent a message of more than {MCP_MESSAGE_BYTES_MAX} bytes"));
    assert_eq!(call.await.unwrap(), unanswered("it ended before it answered"));
    flood.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_a_server_asks_is_answered() {
    let (_connection, _carry, mut peer) = connected();
    peer.send("{\"jsonrpc\": \"2.0\", \"id\": \"p\", \"method\": \"ping\"}").await;
    assert_eq!(peer.next().await, json!({ "jsonrpc": "2.0", "id": "p", "result": {} }));
    peer.send("{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"sampling/createMessage\"}").await;
    assert_eq!(peer.next().await["error"]["code"], -32_601);
}

#[tokio::test(start_paused = true)]
async fn versions_are_agreed_on() {
    for (version, is_known) in [("2024-11-05", true), ("2025-11-25", true), ("1999-01-01", false)] {
        let (connection, _carry, mut peer) = connected();
        let begin = tokio::spawn(async move { session::initialize(&connection).await });
        let said = json!({ "protocolVersion": version, "capabilities": { "tools": {} } });
        assert_eq!(peer.answer("initialize", said).await["protocolVersion"], "2025-11-25");
        if is_known {
            assert_eq!(peer.next().await["method"], "notifications/initialized");
        }
        assert_eq!(begin.await.unwrap().is_ok(), is_known, "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn pages_of_tools_come_to_an_end() {
    let (connection, _carry, mut peer) = connected();
    let list = |connection: &Connection| {
        let connection = connection.clone();
        tokio::spawn(async move { session::list(&connection).await })
    };
    let listed = list(&connection);
    let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    peer.answer("tools/list", json!({ "tools": [tool("a"), 7], "nextCursor": "2" })).await;
    assert_eq!(peer.answer("tools/list", json!({ "tools": [tool("b")] })).await, json!({ "cursor": "2" }));
    let names: Vec<_> = listed.await.unwrap().unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["a", "b"]);

    let many = list(&connection);
    let page: Vec<_> = (0..MCP_SERVER_TOOLS_MAX - 1).map(|at| tool(&at.to_string())).collect();
    for _ in 0..2 {
        peer.answer("tools/list", json!({ "tools": page, "nextCursor": "x" })).await;
    }
    assert_eq!(many.await.unwrap().unwrap().len(), MCP_SERVER_TOOLS_MAX);

    let endless = list(&connection);
    for _ in 0..MCP_SERVER_TOOLS_MAX {
        peer.answer("tools/list", json!({ "tools": [], "nextCursor": "x" })).await;
    }
    assert_eq!(endless.await.unwrap(), Ok(Vec::new()));
    let liar = list(&connection);
    peer.answer("tools/list", json!({ "tools": "all" })).await;
    assert_eq!(liar.await.unwrap(), Err(Failure::Unanswered("its list of tools is none".to_owned())));
}
