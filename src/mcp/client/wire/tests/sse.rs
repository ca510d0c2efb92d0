//! HTTP with server-sent events.

use parking_lot::Mutex;
use tokio::sync::mpsc::unbounded_channel;

use super::*;

/// An event that names an endpoint.
fn named(endpoint: &str) -> String {
    format!("event: endpoint\ndata: {endpoint}\n\n")
}

#[tokio::test]
async fn messages_go_to_the_endpoint_and_answers_come_over_the_stream() {
    let (answers, stream) = unbounded_channel();
    let stream = Mutex::new(Some(stream));
    let server = Server::start(move |seen| match (seen.method.as_str(), seen.rpc()) {
        ("GET", _) => Reply::Live(named("/messages?session=1"), stream.lock().take().unwrap()),
        (_, "tools/call") if seen.body["params"]["name"] == "refuse" => Reply::status(500),
        (_, "tools/call") if seen.body["params"]["name"] == "hang" => Reply::status(202),
        (_, rpc) => {
            let result = match rpc {
                "initialize" => json!({ "protocolVersion": "2024-11-05", "capabilities": { "tools": {} } }),
                "tools/list" => json!({ "tools": [{ "name": "a", "inputSchema": { "type": "object" } }] }),
                _ => json!({ "content": [] }),
            };
            if seen.body["id"].is_u64() {
                answers.send(seen.result(result)).unwrap();
            }
            Reply::status(202)
        }
    })
    .await;
    let (connection, _carry) = begun(Transport::Sse(endpoint(&server.url))).await;
    assert_eq!(session::list(&connection).await.unwrap().len(), 1);
    assert_eq!(call(&connection, "a", PATIENCE).await, Ok(json!({ "content": [] })));
    assert_eq!(call(&connection, "refuse", PATIENCE).await, unanswered("it answered with status 500"));
    assert_eq!(call(&connection, "hang", SHORT).await, unanswered("it did not answer within 0 seconds"));
    server.until(|seen| seen.rpc() == "notifications/cancelled").await;
    let seen = server.seen();
    let posts: Vec<_> = seen.iter().filter(|seen| seen.method == "POST").collect();
    assert!(posts.iter().all(|post| post.path == "/messages?session=1" && post.header("x-key") == Some("k1")));
    assert_eq!(server.count("tools/call"), 3);
}

#[tokio::test]
async fn messages_are_posted_at_the_server_alone() {
    let elsewhere = Server::start(|_| Reply::status(202)).await;
    let away = elsewhere.url.clone();
    let server = Server::start(move |_| Reply::Events(named(&away), false)).await;
    let (connection, carry) = connected(Transport::Sse(endpoint(&server.url))).await;
    assert!(session::initialize(&connection).await.is_err());
    assert_eq!(carry.await.unwrap(), "its endpoint is at another host");
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn streams_that_are_none_end_the_connection() {
    for (reply, why) in [
        ("status", "it answered with status 404"),
        ("json", "its answer is no stream of events"),
        ("empty", "its stream ended"),
        ("short", "its stream ended"),
    ] {
        let server = Server::start(move |_| match reply {
            "status" => Reply::status(404),
            "json" => Reply::json(&json!({})),
            "empty" => Reply::events(&[]),
            _ => Reply::Events(named("/messages"), true),
        })
        .await;
        let (connection, carry) = connected(Transport::Sse(endpoint(&server.url))).await;
        assert_eq!(carry.await.unwrap(), why, "{reply}");
        assert_eq!(call(&connection, "a", PATIENCE).await, unanswered("it has ended"));
    }
}
