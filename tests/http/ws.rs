//! The WebSocket of an agent: the way in, and every message of both sides (spec 1, Events, WebSocket).

use std::collections::BTreeSet;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::socket::Socket;
use crate::support::until;

fn types(messages: &[Value]) -> Vec<String> {
    messages.iter().map(|message| text(&message["type"])).collect()
}

fn keys(message: &Value) -> BTreeSet<&str> {
    message.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn a_message_is_thinking_deltas_then_the_response() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let mut socket = Socket::open(&daemon, &agent);
    socket.say("hello");
    let messages = socket.until("response");
    let (response, before) = messages.split_last().unwrap();
    assert_eq!(before[0], json!({ "type": "thinking" }));
    let deltas = &before[1..];
    assert!(!deltas.is_empty() && deltas.iter().all(|m| m["type"] == "text_delta" && keys(m).len() == 2), "{before:?}");
    let written: String = deltas.iter().map(|delta| text(&delta["content"])).collect();
    assert_eq!(text(&response["content"]), written);
    let fields = ["type", "content", "input_tokens", "output_tokens", "iterations", "cost_usd"];
    assert_eq!(keys(response), BTreeSet::from(fields));
    assert!(response["input_tokens"].as_u64() > Some(0) && response["output_tokens"].as_u64() > Some(0), "{response}");
    assert_eq!((&response["iterations"], response["cost_usd"].as_f64()), (&json!(1), Some(0.0)));
    let session = text(&daemon.detail(&agent)["session_id"]);
    let said = daemon.transcript(&session);
    assert_eq!(said, [("User".to_owned(), "hello".to_owned()), ("Assistant".to_owned(), written)]);
}

#[test]
fn plain_text_is_a_message() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let mut socket = Socket::open(&daemon, &agent);
    for plain in ["hello there", "{not json", "über \"alles\"\nzwei"] {
        socket.send(plain);
        socket.until("response");
    }
    let session = text(&daemon.detail(&agent)["session_id"]);
    let said: Vec<_> = daemon.transcript(&session).into_iter().filter(|(role, _)| role == "User").collect();
    assert_eq!(
        said.iter().map(|(_, said)| said.as_str()).collect::<Vec<_>>(),
        ["hello there", "{not json", "über \"alles\"\nzwei"]
    );
}

#[test]
fn ping_is_answered_and_what_is_wrong_is_named() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let mut socket = Socket::open(&daemon, &agent);
    socket.send(r#"{"type":"ping"}"#);
    assert_eq!(socket.next(), json!({ "type": "pong" }));
    for (wrong, word) in [
        ("[1]", "array"),
        ("42", "number"),
        ("{}", "type"),
        (r#"{"type":"shout","content":"x"}"#, "shout"),
        (r#"{"type":"message"}"#, "content"),
        (r#"{"type":"message","content":["x"]}"#, "content"),
        (r#"{"type":"message","content":""}"#, "empty"),
        (r#"{"type":"message","content":"x","session_id":"7"}"#, "session_id"),
        (r#"{"type":"message","content":"x","attachments":"7"}"#, "attachments"),
        ("  ", "empty"),
    ] {
        let sentence = socket.error(wrong);
        assert!(sentence.contains(word), "{wrong}: {sentence}");
    }
    assert!(!socket.answer("still here").is_empty());
}

#[test]
fn messages_are_answered_in_order() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    let mut socket = Socket::open(&daemon, &agent);
    model.hold();
    for word in ["one", "two", "three"] {
        socket.say(word);
    }
    until("the model is asked", || (model.waiting() > 0).then_some(()));
    socket.send(r#"{"type":"ping"}"#);
    assert_eq!(types(&socket.until("pong")), ["thinking", "pong"], "a ping is answered while a turn runs");
    model.release();
    for word in ["one", "two", "three"] {
        let messages = socket.until("response");
        assert_eq!(messages.last().unwrap()["content"], format!("echo: {word}"));
        assert_eq!(messages.iter().filter(|m| m["type"] == "thinking").count(), usize::from(word != "one"));
    }
}

#[test]
fn a_message_can_name_its_session_and_turns_of_others_are_not_shown() {
    let daemon = Daemon::start();
    let (agent, other) = (daemon.agent("a"), daemon.agent("b"));
    let mut socket = Socket::open(&daemon, &agent);
    let session = Uuid::from_u128(77).to_string();
    let message =
        |session: &str| json!({ "type": "message", "content": "in there", "session_id": session }).to_string();
    socket.send(message(&session));
    socket.until("response");
    assert_eq!(daemon.transcript(&session)[0].1, "in there");
    let foreign = text(&daemon.detail(&other)["session_id"]);
    assert!(socket.error(&message(&foreign)).contains("session"));
    daemon.say_in(&agent, &session, "from elsewhere");
    daemon.say(&agent, "from elsewhere");
    socket.send(r#"{"type":"ping"}"#);
    assert_eq!(types(&socket.until("pong")), ["pong"]);
}

#[test]
fn a_message_can_have_attachments() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    let form = "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"note.txt\"\r\n\
                content-type: text/plain\r\n\r\nthe attached words\r\n--b--\r\n";
    let headers = [("content-type", "multipart/form-data; boundary=b")];
    let made = daemon.send("POST", &format!("/api/agents/{agent}/upload"), &headers, Some(form.as_bytes()));
    let file = text(&made.expect(201)["file_id"]);
    let mut socket = Socket::open(&daemon, &agent);
    let with =
        |file: &str| json!({ "type": "message", "content": "read", "attachments": [{ "file_id": file }] }).to_string();
    socket.send(with(&file));
    let answer = socket.until("response").pop().unwrap();
    assert!(text(&answer["content"]).contains("the attached words"), "{answer}");
    assert!(socket.error(&with(&Uuid::nil().to_string())).contains("attachments"));
}

#[test]
fn two_sockets_of_one_session_see_their_own_turns() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let (mut one, mut two) = (Socket::open(&daemon, &agent), Socket::open(&daemon, &agent));
    one.say("first");
    two.say("second");
    for (socket, word) in [(&mut one, "first"), (&mut two, "second")] {
        let messages = socket.until("response");
        assert_eq!(messages[0]["type"], "thinking");
        assert!(text(&messages.last().unwrap()["content"]).contains(word), "{messages:?}");
    }
}

#[test]
fn a_tool_call_is_told_when_it_starts() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "[capabilities]\ntools = [\"system_time\"]\n");
    let mut socket = Socket::open(&daemon, &agent);
    model.script([Reply::calls(&[("call_1", "system_time", "{}")])]);
    socket.say("what time is it?");
    let messages = socket.until("response");
    let tool = messages.iter().find(|message| message["type"] == "tool_start");
    assert_eq!(tool, Some(&json!({ "type": "tool_start", "tool": "system_time" })), "{messages:?}");
    assert_eq!(messages.last().unwrap()["iterations"], 2);
}

#[test]
fn a_failing_model_is_an_error_and_the_connection_stays() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    let mut socket = Socket::open(&daemon, &agent);
    model.script([Reply::error(400, "scripted")]);
    socket.say("hello");
    let messages = socket.until("error");
    assert_eq!(keys(messages.last().unwrap()), BTreeSet::from(["type", "content"]));
    assert_eq!(socket.answer("again"), "echo: again");
    daemon.post("/api/agents/bulk/stop", &json!({ "agent_ids": [agent] })).expect(200);
    assert!(socket.error("while stopped").contains("not running"));
    daemon.delete(&format!("/api/agents/{agent}")).expect(200);
    assert!(socket.error("to nobody").contains("agent"));
}

#[test]
fn the_way_in_is_checked() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let path = format!("/api/agents/{agent}/ws");
    daemon.get("/api/agents/nonsense/ws").refused_field(400, "id");
    daemon.get(&format!("/api/agents/{}/ws", Uuid::nil())).refused(404);
    let plain = daemon.get(&path);
    assert!(plain.refused(426).contains("WebSocket"));
    assert_eq!((plain.header("upgrade"), plain.header("sec-websocket-version")), (Some("websocket"), Some("13")));
    for (path, status) in
        [("/api/agents/nonsense/ws".to_owned(), 400), (format!("/api/agents/{}/ws", Uuid::nil()), 404)]
    {
        assert_eq!(Socket::ask(&daemon, &path, &[]).err().unwrap().status, status);
    }
    let version = Socket::ask(&daemon, &path, &[("sec-websocket-version", "8")]).err().unwrap();
    assert_eq!(version.status, 426);
    assert!(version.headers.contains(&("sec-websocket-version".into(), "13".into())), "{version:?}");
    assert_eq!(Socket::ask(&daemon, &path, &[("sec-websocket-key", "short")]).err().unwrap().status, 400);
}

#[test]
fn foreign_pages_are_refused() {
    let daemon = Daemon::with("cors_origin = [\"https://chat.example.org\"]\n");
    let agent = daemon.agent("a");
    let path = format!("/api/agents/{agent}/ws");
    let port = daemon.addr.port();
    let own = [format!("http://localhost:{port}"), format!("http://127.0.0.1:{port}"), format!("http://[::1]:{port}")];
    for origin in own.iter().map(String::as_str).chain(["https://chat.example.org"]) {
        assert!(Socket::ask(&daemon, &path, &[("origin", origin)]).is_ok(), "{origin}");
    }
    // Addressed by another literal address, as behind a port that is handed on.
    let there = [("origin", "http://192.0.2.7:8080"), ("host", "192.0.2.7:8080")];
    assert!(Socket::ask(&daemon, &path, &there).is_ok());
    for origin in ["https://evil.example", "http://localhost:1", "null", "http://192.0.2.7:8080", "http://127.0.0.1"] {
        assert_eq!(Socket::ask(&daemon, &path, &[("origin", origin)]).err().unwrap().status, 403, "{origin}");
    }
    let named = [("origin", "http://evil.example:4545"), ("host", "evil.example:4545")];
    assert_eq!(Socket::ask(&daemon, &path, &named).err().unwrap().status, 403);
}

#[test]
fn the_key_is_asked_for_and_comes_in_three_ways() {
    let mut daemon = Daemon::with("api_key = \"s3cret\"\n");
    let stranger = daemon.client();
    daemon.use_key("s3cret");
    let agent = daemon.agent("a");
    let path = format!("/api/agents/{agent}/ws");
    assert_eq!(Socket::ask(&stranger, &path, &[]).err().unwrap().status, 401);
    assert_eq!(Socket::ask(&daemon.keyed("wrong"), &path, &[]).err().unwrap().status, 401);
    assert_eq!(Socket::ask(&stranger, &format!("{path}?token=wrong"), &[]).err().unwrap().status, 401);
    let wrong = [("sec-websocket-protocol", "bearer, wrong")];
    assert_eq!(Socket::ask(&stranger, &path, &wrong).err().unwrap().status, 401);
    Socket::open(&daemon, &agent);
    let protocol = Socket::ask(&stranger, &path, &[("sec-websocket-protocol", "bearer, s3cret")]);
    assert_eq!(protocol.unwrap().next()["type"], "connected");
    let query = Socket::ask(&stranger, &format!("{path}?token=s3cret"), &[]);
    assert_eq!(query.unwrap().next()["type"], "connected");
    assert!(!daemon.stderr().contains("s3cret"), "the key is not logged");
    // A page of a foreign origin is refused even with the key.
    let foreign = [("origin", "https://evil.example"), ("sec-websocket-protocol", "bearer, s3cret")];
    assert_eq!(Socket::ask(&stranger, &path, &foreign).err().unwrap().status, 403);
}
