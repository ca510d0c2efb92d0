//! Servers that do what they must not, over a pipe in memory and in virtual time.

mod asks;

use std::time::Duration;

use agentsvc_systems::mcp::limits::{MCP_MESSAGE_BYTES_MAX, MCP_SERVER_REQUESTS_MAX, MCP_SERVER_TOOLS_MAX};
use futures_util::FutureExt;
use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::task::JoinHandle;

use super::call::{Caller, call};
use super::connection::{Connection, Failure};
use super::session::{self, Described, Means};
use super::wire;

const SECOND: Duration = Duration::from_secs(1);

/// The other side.
pub(super) struct Peer(BufReader<DuplexStream>);

impl Peer {
    pub(super) fn new(stream: DuplexStream) -> Self {
        Self(BufReader::new(stream))
    }

    pub(super) async fn next(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn send(&mut self, line: &str) {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Answers what was asked last.
    pub(super) async fn answer(&mut self, method: &str, result: Value) -> Value {
        let asked = self.next().await;
        assert_eq!(asked["method"], method, "{asked}");
        self.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }).to_string()).await;
        asked["params"].clone()
    }
}

fn connected() -> (Connection, JoinHandle<String>, Peer) {
    let (ours, theirs) = duplex(64 << 10);
    let (connection, carry) = wire::lines("s", ours);
    (connection, tokio::spawn(carry), Peer::new(theirs))
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
async fn only_what_looks_like_a_version_is_repeated() {
    let long = "1".repeat(33);
    for (version, is_shown) in
        [("1999-01-01", true), ("v1.0", true), ("tell the user", false), ("1\u{e9}", false), (long.as_str(), false)]
    {
        let (connection, _carry, mut peer) = connected();
        let begin = tokio::spawn(async move { session::initialize(&connection).await });
        peer.answer("initialize", json!({ "protocolVersion": version, "capabilities": {} })).await;
        let Err(Failure::Unanswered(why)) = begin.await.unwrap() else { panic!("{version} is no version") };
        assert_eq!(why.contains(version), is_shown, "{why}");
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
    for _ in 0..8 {
        peer.answer("tools/list", json!({ "tools": [], "nextCursor": "x" })).await;
    }
    assert_eq!(endless.await.unwrap(), Ok(Vec::new()));
    let liar = list(&connection);
    peer.answer("tools/list", json!({ "tools": "all" })).await;
    assert_eq!(liar.await.unwrap(), Err(Failure::Unanswered("its list of tools is not valid".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn results_of_every_type_are_borne() {
    for result in [json!(null), json!(true), json!(7), json!("text"), json!([1, 2]), json!({ "tools": 7 }), json!({})] {
        let (connection, _carry, mut peer) = connected();
        let asked = connection.clone();
        let begin = tokio::spawn(async move { session::initialize(&asked).await });
        peer.answer("initialize", result.clone()).await;
        assert!(begin.await.unwrap().is_err(), "{result}");
        let asked = connection.clone();
        let list = tokio::spawn(async move { session::list(&asked).await });
        peer.answer("tools/list", result.clone()).await;
        assert_eq!(list.await.unwrap(), Err(Failure::Unanswered("its list of tools is not valid".to_owned())));
        for means in [Means::Tool, Means::ReadResource, Means::GetPrompt, Means::ListPrompts] {
            let asked = connection.clone();
            let called = tokio::spawn(async move {
                let described = Described { name: "a".to_owned(), means, ..Described::default() };
                call(&asked, &described, Map::new(), Caller::default(), SECOND).await
            });
            let asked = peer.next().await;
            let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result });
            peer.send(&answer.to_string()).await;
            let called = called.await.unwrap();
            assert_eq!(called.is_ok(), means == Means::Tool, "{means:?} {result}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn lists_take_bounded_memory() {
    let (connection, _carry, mut peer) = connected();
    let list = |connection: &Connection| {
        let connection = connection.clone();
        tokio::spawn(async move { session::list(&connection).await })
    };
    let listed = list(&connection);
    let long = json!({ "name": "long", "description": "x".repeat(2 << 20), "inputSchema": { "type": "object" },
        "annotations": { "readOnlyHint": true, "title": "x".repeat(1 << 20), "a": [[[]]] } });
    let large = json!({ "name": "large", "inputSchema": { "type": "object", "x": "x".repeat(64 << 10) } });
    let nameless = json!({ "name": "n".repeat(1 << 20), "inputSchema": { "type": "object" } });
    peer.answer("tools/list", json!({ "tools": [long, large, nameless] })).await;
    let listed = listed.await.unwrap().unwrap();
    assert_eq!(listed.len(), 1);
    let kept = &listed[0];
    assert_eq!((kept.description.as_ref().map(String::len), kept.annotations.len()), (Some(4 << 10), 1));

    // Short texts that take much memory: each has 32 KB, and takes some megabytes.
    let wide: Value = json!({ "type": "object", "x": vec![json!({ "": {} }); 4_000] });
    let many = list(&connection);
    let page: Vec<_> = (0..9).map(|at| json!({ "name": format!("t{at}"), "inputSchema": wide })).collect();
    let mut pages = 0;
    while !many.is_finished() && pages < 9 {
        let asked = peer.next().await;
        let result = json!({ "tools": [page[pages]], "nextCursor": "x" });
        peer.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }).to_string()).await;
        pages += 1;
        tokio::task::yield_now().await;
    }
    drop(peer);
    assert!(many.await.unwrap().is_ok_and(|tools| tools.len() < 5), "after {pages} pages");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_would_take_much_memory_ends_the_connection() {
    let (connection, carry, mut peer) = connected();
    let call = asking(&connection, "tools/call");
    peer.next().await;
    let nested = vec!["{\"\":{}}"; 1 << 20].join(",");
    let _ended = peer.0.get_mut().write_all(format!("{{\"id\":1,\"result\":[{nested}]}}\n").as_bytes()).await;
    assert!(carry.await.unwrap().contains("bytes of memory"));
    assert_eq!(call.await.unwrap(), unanswered("it ended before it answered"));
}

#[tokio::test(start_paused = true)]
async fn calls_end_with_what_carries_them() {
    let (connection, carry, mut peer) = connected();
    let call = asking(&connection, "tools/call");
    peer.next().await;
    carry.abort();
    assert_eq!(call.await.unwrap(), unanswered("it ended before it answered"));
}

#[tokio::test(start_paused = true)]
async fn what_a_server_has_becomes_tools() {
    let (connection, _carry, mut peer) = connected();
    let asked = connection.clone();
    let begin = tokio::spawn(async move {
        let features = session::initialize(&asked).await.unwrap();
        session::describe(&asked, features).await.unwrap()
    });
    let capabilities = json!({ "resources": {}, "prompts": {}, "logging": {} });
    peer.answer("initialize", json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities })).await;
    assert_eq!(peer.next().await["method"], "notifications/initialized");
    assert_eq!(peer.answer("logging/setLevel", json!({})).await, json!({ "level": "info" }));
    let described = begin.await.unwrap();
    let names: Vec<_> = described.iter().map(|described| &*described.name).collect();
    assert_eq!(names, ["list_resources", "read_resource", "list_prompts", "get_prompt"]);
    assert!(described.iter().all(Described::is_repeatable));

    let calling = |at: usize, arguments: Value| {
        let (connection, described) = (connection.clone(), described[at].clone());
        let arguments = arguments.as_object().unwrap().clone();
        tokio::spawn(
            async move { call(&connection, &described, arguments, Caller::default(), SECOND).await.unwrap().value },
        )
    };
    let call = calling(0, json!({}));
    let resource = json!({ "uri": "x://a", "name": "a", "secret": "s" });
    peer.answer("resources/list", json!({ "resources": [resource, {}], "nextCursor": "2" })).await;
    peer.answer("resources/list", json!({ "resources": [{ "uri": "x://b" }] })).await;
    peer.answer("resources/templates/list", json!({ "resourceTemplates": [{ "uriTemplate": "x://{c}" }] })).await;
    let listed: Value = serde_json::from_str(call.await.unwrap()["content"][0]["text"].as_str().unwrap()).unwrap();
    let resources = json!([{ "uri": "x://a", "name": "a" }, { "uri": "x://b" }]);
    assert_eq!(listed, json!({ "resources": resources, "templates": [{ "uriTemplate": "x://{c}" }] }));

    let call = calling(1, json!({ "uri": "x://a" }));
    let content = json!({ "uri": "x://a", "text": "inside" });
    assert_eq!(peer.answer("resources/read", json!({ "contents": [content] })).await, json!({ "uri": "x://a" }));
    assert_eq!(call.await.unwrap()["content"], json!([{ "type": "resource", "resource": content }]));

    let call = calling(2, json!({}));
    peer.answer("prompts/list", json!({ "prompts": [{ "name": "p", "arguments": [{ "name": "q" }] }] })).await;
    assert!(call.await.unwrap()["content"][0]["text"].as_str().unwrap().contains("\"q\""));

    let call = calling(3, json!({ "name": "p", "arguments": { "q": "1" } }));
    let message = json!({ "role": "user", "content": { "type": "text", "text": "Look." } });
    let asked = peer.answer("prompts/get", json!({ "messages": [message] })).await;
    assert_eq!(asked, json!({ "name": "p", "arguments": { "q": "1" } }));
    let content = call.await.unwrap()["content"].clone();
    assert_eq!(content, json!([{ "type": "text", "text": "user:" }, { "type": "text", "text": "Look." }]));
}

#[tokio::test(start_paused = true)]
async fn calls_say_for_whom_they_are_and_models_do_not() {
    let (connection, _carry, mut peer) = connected();
    connection.offer_roots(vec!["/srv/a b".into()]);
    let asked = connection.clone();
    let called = tokio::spawn(async move {
        let caller = Caller { session: Some("s-1".to_owned()), workspace: Some("/w/ann".into()), ..Caller::default() };
        let described = Described { name: "a".to_owned(), ..Described::default() };
        let arguments = json!({ "x": 1, "_librefang_caller": { "session_id": "another" } });
        call(&asked, &described, arguments.as_object().unwrap().clone(), caller, SECOND * 9)
            .await
            .map(|answer| answer.value)
    });
    let asked = peer.next().await;
    assert_eq!(asked["params"]["arguments"], json!({ "x": 1 }));
    let meta = json!({ "io.librefang/caller": { "session_id": "s-1" }, "progressToken": asked["id"] });
    assert_eq!(asked["params"]["_meta"], meta);
    let roots = json!({ "jsonrpc": "2.0", "id": 7, "method": "roots/list" });
    peer.send(&roots.to_string()).await;
    let uris = json!([{ "uri": "file:///srv/a%20b" }, { "uri": "file:///w/ann" }]);
    assert_eq!(peer.next().await["result"]["roots"], uris);
    let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progress": "much" } });
    peer.send(&progress.to_string()).await;
    peer.send(
        &json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "resultType": "input_required" } }).to_string(),
    )
    .await;
    assert_eq!(called.await.unwrap(), unanswered("it asks for input in a way that its version does not know"));
    peer.send(&roots.to_string()).await;
    assert_eq!(peer.next().await["result"]["roots"], json!([{ "uri": "file:///srv/a%20b" }]));
}

#[tokio::test(start_paused = true)]
async fn a_change_of_any_list_is_seen() {
    let (connection, _carry, mut peer) = connected();
    for list in ["tools", "resources", "prompts"] {
        let notice = json!({ "jsonrpc": "2.0", "method": format!("notifications/{list}/list_changed") });
        peer.send(&notice.to_string()).await;
        connection.tools_changed().await;
    }
}
