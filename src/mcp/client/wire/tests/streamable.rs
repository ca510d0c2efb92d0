//! Streamable HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use agentsvc_systems::mcp::limits::MCP_MESSAGE_BYTES_MAX;
use futures_util::future::BoxFuture;

use super::*;
use crate::mcp::client::wire::Authorize;

/// A server that answers calls as the test wants, and all else soundly.
async fn server(answer: impl Fn(&Seen, &str) -> Reply + Send + Sync + 'static) -> Server {
    Server::start(move |seen| match sound(seen) {
        Some(reply) if seen.method == "POST" => reply,
        other => {
            let reply = answer(seen, seen.body["params"]["name"].as_str().unwrap_or_default());
            if seen.method == "POST" { reply } else { other.unwrap_or(reply) }
        }
    })
    .await
}

fn done(seen: &Seen) -> Reply {
    Reply::json(&seen.result(json!({ "content": [] })))
}

#[tokio::test]
async fn a_session_begins_is_kept_and_ends() {
    let server = server(|seen, _| done(seen)).await;
    let (connection, carry) = begun(Transport::Http(endpoint(&server.url))).await;
    let tools = session::list(&connection).await.unwrap();
    assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["a"]);
    assert_eq!(call(&connection, "a", PATIENCE).await, Ok(json!({ "content": [] })));
    carry.abort();
    let ended = server.until(|seen| seen.method == "DELETE").await;
    assert_eq!((ended.header("mcp-session-id"), ended.header("x-key")), (Some("s-1"), Some("k1")));
    let seen = server.seen();
    let posts: Vec<_> = seen.iter().filter(|seen| seen.method == "POST").collect();
    assert_eq!((posts[0].rpc(), posts[1].rpc()), ("initialize", "notifications/initialized"));
    for (at, post) in posts.iter().enumerate() {
        assert_eq!(post.header("accept"), Some("application/json, text/event-stream"));
        assert_eq!((post.header("content-type"), post.header("x-key")), (Some("application/json"), Some("k1")));
        let expected = if at == 0 { (None, None) } else { (Some("s-1"), Some("2025-06-18")) };
        assert_eq!((post.header("mcp-session-id"), post.header("mcp-protocol-version")), expected, "{}", post.rpc());
    }
    let called = posts.iter().find(|post| post.rpc() == "tools/call").unwrap();
    assert_eq!(called.body["params"]["_meta"]["progressToken"], called.body["id"]);
}

#[tokio::test]
async fn a_call_that_hangs_holds_no_other_and_is_cancelled() {
    let server = server(|seen, tool| if tool == "hang" { Reply::Hang } else { done(seen) }).await;
    let (connection, _carry) = begun(Transport::Http(endpoint(&server.url))).await;
    let hung = {
        let connection = connection.clone();
        tokio::spawn(async move { call(&connection, "hang", SHORT).await })
    };
    let id = server.until(|seen| seen.rpc() == "tools/call").await.body["id"].clone();
    assert!(call(&connection, "other", PATIENCE).await.is_ok());
    assert_eq!(hung.await.unwrap(), unanswered("it did not answer within 0 seconds"));
    let told = server.until(|seen| seen.rpc() == "notifications/cancelled").await;
    assert_eq!(told.body["params"]["requestId"], id);
}

#[tokio::test]
async fn a_call_is_sent_once_however_it_fails() {
    let server = server(|seen, tool| match tool {
        "close" => Reply::Close,
        "status" => Reply::status(503),
        "nothing" => Reply::events(&[]),
        "garbage" => Reply::Plain(200, "", "application/json", "{\"jsonrpc".to_owned()),
        "page" => Reply::Plain(200, "", "text/html", "<p>".to_owned()),
        "other" => Reply::json(&json!({ "jsonrpc": "2.0", "id": 4_711, "result": {} })),
        "refused" => {
            let error = json!({ "jsonrpc": "2.0", "id": seen.body["id"], "error": { "code": -1, "message": "no" } });
            Reply::Plain(400, "", "application/json", error.to_string())
        }
        _ => done(seen),
    })
    .await;
    let (connection, _carry) = begun(Transport::Http(endpoint(&server.url))).await;
    for (tool, why) in [
        ("status", "it answered with status 503"),
        ("nothing", "its answer ended too early"),
        ("garbage", "its answer is not valid JSON"),
        ("page", "its answer is neither JSON nor a stream of events"),
        ("other", "its answer is that of another request"),
    ] {
        assert_eq!(call(&connection, tool, PATIENCE).await, unanswered(why), "{tool}");
    }
    assert_eq!(call(&connection, "refused", PATIENCE).await, Err(Failure::Refused("no".to_owned())));
    let closed = call(&connection, "close", PATIENCE).await;
    assert!(matches!(&closed, Err(Failure::Unanswered(why)) if why.contains("could not be fetched")), "{closed:?}");
    assert!(call(&connection, "good", PATIENCE).await.is_ok());
    assert_eq!(server.count("tools/call"), 8);
}

#[tokio::test]
async fn floods_end_the_call_and_nothing_else() {
    let server = server(|seen, tool| match tool {
        "body" => Reply::Flood("application/json", "x".repeat(64 << 10)),
        "event" => Reply::Flood("text/event-stream", format!("data: {}", "x".repeat(64 << 10))),
        "events" => {
            let notice = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "data": "x" } });
            Reply::Flood("text/event-stream", format!("data: {notice}\n\n"))
        }
        _ => done(seen),
    })
    .await;
    let (connection, _carry) = begun(Transport::Http(endpoint(&server.url))).await;
    let too_long = format!("it sent a message of more than {MCP_MESSAGE_BYTES_MAX} bytes");
    for tool in ["body", "event"] {
        assert_eq!(call(&connection, tool, PATIENCE).await, unanswered(&too_long), "{tool}");
    }
    assert_eq!(call(&connection, "events", SHORT).await, unanswered("it did not answer within 0 seconds"));
    assert!(call(&connection, "good", PATIENCE).await.is_ok());
}

#[tokio::test]
async fn redirects_and_private_hosts_are_not_followed() {
    let elsewhere = Server::start(|_| Reply::status(200)).await;
    let location: &'static str = Box::leak(format!("location: {}\r\n", elsewhere.url).into_boxed_str());
    let server = server(move |seen, tool| match tool {
        "away" => Reply::Plain(307, location, "text/plain", String::new()),
        _ => done(seen),
    })
    .await;
    let (connection, _carry) = begun(Transport::Http(endpoint(&server.url))).await;
    let why = "it answered with a redirect, which is not followed (status 307)";
    assert_eq!(call(&connection, "away", PATIENCE).await, unanswered(why));
    assert!(elsewhere.seen().is_empty());
    let untrusted = Endpoint { trusted: false, ..endpoint(&server.url) };
    for transport in [Transport::Http(untrusted.clone()), Transport::Sse(untrusted)] {
        let why = open("s", transport, &means()).await.err().unwrap_or_default();
        assert!(why.contains("not public"), "{why}");
    }
}

#[tokio::test]
async fn a_session_that_ended_begins_anew_without_a_second_call() {
    let begun_so_far = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&begun_so_far);
    let server = Server::start(move |seen| {
        let number = counted.fetch_add(usize::from(seen.rpc() == "initialize"), Ordering::Relaxed);
        // The session ends with the first call.
        let is_over = number < 2 && matches!(seen.rpc(), "tools/call" | "ping");
        match (is_over, sound(seen)) {
            (true, _) => Reply::status(404),
            (false, Some(Reply::Plain(200, _, kind, body))) if number == 1 => {
                Reply::Plain(200, "Mcp-Session-Id: s-2\r\n", kind, body)
            }
            (false, Some(reply)) => reply,
            (false, None) => done(seen),
        }
    })
    .await;
    let (connection, _carry) = begun(Transport::Http(endpoint(&server.url))).await;
    let why = "its session had ended, so that it did not accept the call; a new session has begun";
    assert_eq!(call(&connection, "a", PATIENCE).await, unanswered(why));
    assert_eq!((server.count("tools/call"), server.count("initialize")), (1, 2));
    connection.tools_changed().await;
    assert!(call(&connection, "a", PATIENCE).await.is_ok());
    let calls: Vec<_> = server.seen().into_iter().filter(|seen| seen.rpc() == "tools/call").collect();
    assert_eq!(calls[1].header("mcp-session-id"), Some("s-2"));
}

#[tokio::test]
async fn a_stream_that_breaks_off_goes_on_without_a_second_call() {
    let server = Server::start(|seen| match (seen.method.as_str(), seen.header("last-event-id")) {
        ("GET", Some("7")) => {
            let answer = json!({ "jsonrpc": "2.0", "id": 2, "result": { "content": [] } });
            Reply::Events(format!("id: 8\ndata: {answer}\n\n"), true)
        }
        _ => sound(seen).unwrap_or_else(|| Reply::Events("id: 7\ndata:\n\n".to_owned(), true)),
    })
    .await;
    let (connection, _carry) = begun(Transport::Http(endpoint(&server.url))).await;
    assert_eq!(call(&connection, "a", PATIENCE).await, Ok(json!({ "content": [] })));
    assert_eq!(server.count("tools/call"), 1);
}

#[tokio::test]
async fn what_the_server_says_by_itself_is_heard_and_answered() {
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    let asked = json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" });
    let is_first = AtomicBool::new(true);
    let server = Server::start(move |seen| match seen.method.as_str() {
        // Once it has no time: it is asked again.
        "GET" if is_first.swap(false, Ordering::Relaxed) => Reply::status(429),
        "GET" => Reply::Events(format!("data: {changed}\n\ndata: {asked}\n\n"), false),
        _ => sound(seen).unwrap_or_else(|| Reply::status(202)),
    })
    .await;
    let (connection, _carry) = begun(Transport::Http(endpoint(&server.url))).await;
    connection.tools_changed().await;
    let answer = server.until(|seen| seen.body["id"] == "p").await;
    assert_eq!(answer.body, json!({ "jsonrpc": "2.0", "id": "p", "result": {} }));
}

#[tokio::test]
async fn a_server_of_the_newest_version_needs_no_session() {
    let server = Server::start(|seen| match seen.rpc() {
        "initialize" => {
            let error = json!({ "code": -32_601, "message": "method not found" });
            let answer = json!({ "jsonrpc": "2.0", "id": seen.body["id"], "error": error });
            Reply::Plain(404, "", "application/json", answer.to_string())
        }
        "server/discover" => Reply::json(&seen.result(json!({
            "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} }, "resultType": "complete",
        }))),
        "tools/call" if seen.body["params"]["name"] == "hang" => Reply::Hang,
        _ => sound(seen).unwrap_or_else(|| done(seen)),
    })
    .await;
    let (connection, _carry) = begun(Transport::Http(endpoint(&server.url))).await;
    assert_eq!(session::list(&connection).await.unwrap().len(), 1);
    assert!(call(&connection, "grüße", PATIENCE).await.is_ok());
    assert!(call(&connection, "hang", SHORT).await.is_err());
    assert!(call(&connection, "plain", PATIENCE).await.is_ok());
    let seen = server.seen();
    assert!(seen.iter().all(|seen| seen.method == "POST" && !seen.rpc().starts_with("notifications/")));
    for seen in &seen[1..] {
        let meta = &seen.body["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
        assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(seen.header("mcp-method"), Some(seen.rpc()));
    }
    let names: Vec<_> = seen.iter().filter_map(|seen| seen.header("mcp-name")).collect();
    assert_eq!(names, ["=?base64?Z3LDvMOfZQ==?=", "hang", "plain"]);
}

#[tokio::test]
async fn a_server_that_is_not_there_ends_the_connection() {
    let url = {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        format!("http://{}/mcp?key=secret", listener.local_addr().unwrap())
    };
    let (connection, carry) = connected(Transport::Http(endpoint(&url))).await;
    let failure = session::initialize(&connection).await.unwrap_err();
    let why = carry.await.unwrap();
    assert!(why.contains("127.0.0.1 could not be fetched") && !why.contains("secret"), "{why}");
    assert_eq!(failure, Failure::Unanswered(why));
    assert_eq!(call(&connection, "a", PATIENCE).await, unanswered("it has ended"));
}

/// Has one token after the other.
struct Tokens(AtomicUsize, usize);

impl Authorize for Tokens {
    fn token(&self) -> BoxFuture<'_, Option<Secret>> {
        let number = self.0.load(Ordering::Relaxed);
        Box::pin(async move { Some(Secret::new(format!("t{number}"))) })
    }

    fn accepted(&self, token: &Secret) {
        assert_eq!(token.expose(), "t1");
    }

    fn refused(&self, token: Option<Secret>, challenge: Option<String>) -> BoxFuture<'_, bool> {
        assert!(token.is_some() && challenge.as_deref() == Some("Bearer error=\"invalid_token\""));
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { number < self.1 })
    }
}

#[tokio::test]
async fn a_token_that_is_refused_is_replaced_once() {
    for (good, is_answered) in [("Bearer t1", true), ("Bearer t9", false)] {
        let server = Server::start(move |seen| match seen.header("authorization") {
            Some(value) if value == good => sound(seen).unwrap_or_else(|| done(seen)),
            _ => Reply::Plain(401, "WWW-Authenticate: Bearer error=\"invalid_token\"\r\n", "text/plain", String::new()),
        })
        .await;
        let authorization: Option<Arc<dyn Authorize>> = Some(Arc::new(Tokens(AtomicUsize::new(0), 9)));
        let (connection, _carry) =
            connected(Transport::Http(Endpoint { authorization, ..endpoint(&server.url) })).await;
        let begun = session::initialize(&connection).await;
        assert_eq!(begun.is_ok(), is_answered, "{begun:?}");
        assert_eq!(server.count("initialize"), 2);
        if !is_answered {
            assert_eq!(begun.unwrap_err(), Failure::Unanswered("it asks for a sign-in (status 401)".to_owned()));
        }
    }
}

#[tokio::test]
async fn marked_arguments_stand_in_headers_of_the_newest_version() {
    for version in ["2026-07-28", "2025-11-25"] {
        let server = Server::start(move |seen| match seen.rpc() {
            "initialize" if version == "2026-07-28" => {
                let error = json!({ "code": -32_601, "message": "method not found" });
                Reply::json(&json!({ "jsonrpc": "2.0", "id": seen.body["id"], "error": error }))
            }
            "initialize" => Reply::json(&seen.result(json!({ "protocolVersion": version, "capabilities": {} }))),
            "server/discover" => {
                Reply::json(&seen.result(json!({ "supportedVersions": [version], "capabilities": { "tools": {} } })))
            }
            "tools/list" => {
                let marked = |mark: &str| json!({ "type": "string", "x-mcp-header": mark });
                let tool = |name: &str, a: Value| {
                    json!({ "name": name, "inputSchema": { "type": "object", "properties": { "a": a } } })
                };
                let tools = [tool("marked", marked("Region")), tool("wrong", marked("a b"))];
                Reply::json(&seen.result(json!({ "tools": tools })))
            }
            _ => sound(seen).unwrap_or_else(|| done(seen)),
        })
        .await;
        let (connection, _carry) = begun(Transport::Http(endpoint(&server.url))).await;
        let tools = session::list(&connection).await.unwrap();
        let is_newest = version == "2026-07-28";
        assert_eq!(tools.len(), if is_newest { 1 } else { 2 }, "a mark that is not valid: {version}");
        let arguments = json!({ "a": "grüße" }).as_object().cloned().unwrap();
        let called =
            crate::mcp::client::call::call(&connection, &tools[0], arguments, Default::default(), PATIENCE).await;
        assert!(called.is_ok(), "{called:?}");
        let seen = server.seen();
        let last = seen.iter().rfind(|seen| seen.rpc() == "tools/call").unwrap();
        assert_eq!(last.header("mcp-param-region"), is_newest.then_some("=?base64?Z3LDvMOfZQ==?="), "{version}");
    }
}
