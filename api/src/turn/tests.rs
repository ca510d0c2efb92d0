//! Messages, streams, attach and stop over their routes.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::reply;
use crate::testing::daemon::TestDaemon;
use crate::turn::hub::StreamHub;

/// Names and data of the events of a stream.
fn events(text: &str) -> Vec<(String, Value)> {
    let frames = text.split("\n\n").filter(|frame| frame.starts_with("event: "));
    let split = frames.map(|frame| frame.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap());
    split.map(|(name, data)| (name.to_owned(), serde_json::from_str(data).unwrap())).collect()
}

#[tokio::test]
async fn a_message_is_answered_in_its_session() {
    let daemon = TestDaemon::new();
    let id = daemon.agent("one").await;
    let answer = daemon.ok(&format!("POST /api/agents/{id}/message"), json!({"message": "hello"})).await;
    assert_eq!((&answer["response"], &answer["iterations"]), (&json!("echo: hello"), &json!(1)));
    assert_eq!((&answer["input_tokens"], &answer["output_tokens"]), (&json!(10), &json!(5)));
    assert!(answer.get("stopped").is_none());
    let session = daemon.ok(&format!("GET /api/agents/{id}/session"), Value::Null).await;
    assert_eq!(session["session_id"], answer["session_id"]);
    let own = Uuid::from_u128(42).to_string();
    let other = json!({"message": "hi", "session_id": own, "attachments": []});
    assert_eq!(daemon.ok(&format!("POST /api/agents/{id}/message"), other).await["session_id"], json!(own));
}

#[tokio::test]
async fn bad_messages_are_refused_by_field() {
    let daemon = TestDaemon::new();
    let (id, other) = (daemon.agent("one").await, daemon.agent("two").await);
    let theirs = daemon.ok(&format!("GET /api/agents/{other}/session"), Value::Null).await["session_id"].clone();
    for kind in ["message", "message/stream"] {
        let path = format!("POST /api/agents/{id}/{kind}");
        for (status, body, field) in [
            (400, json!({}), "message"),
            (400, json!({"message": ""}), "message"),
            (400, json!({"message": " \n"}), "message"),
            (400, json!({"message": 5}), "message"),
            (400, json!({"message": "x".repeat((1 << 20) + 1)}), "message"),
            (400, json!({"message": "x", "session_id": "7"}), "session_id"),
            (400, json!({"message": "x", "attachments": [{"file_id": "f"}]}), "attachments[0].file_id"),
            (400, json!({"message": "x", "attachments": [{}]}), "attachments[0].file_id"),
            (400, json!({"message": "x", "attachments": "f"}), "attachments"),
            (400, json!({"attachments": []}), "message"),
            (400, json!({"message": "x", "attachments": vec![json!({"file_id": Uuid::nil()}); 33]}), "attachments"),
            (404, json!({"attachments": [{"file_id": Uuid::nil()}]}), "attachments[0].file_id"),
            (403, json!({"message": "x", "session_id": theirs}), "session_id"),
        ] {
            let error = daemon.refused(status, &path, body).await;
            assert_eq!(error["field"], field, "{error}");
        }
        let nobody = format!("POST /api/agents/{}/{kind}", Uuid::nil());
        daemon.refused(404, &nobody, json!({"message": "x"})).await;
        // The length comes first: nothing is asked, read or scanned for what is refused anyway.
        let long = json!({"message": "x".repeat((1 << 20) + 1), "channel_type": "w:1"});
        assert_eq!(daemon.refused(400, &nobody, long).await["field"], "message");
    }
    let count = daemon.ok(&format!("GET /api/agents/{id}/session"), Value::Null).await["message_count"].clone();
    assert_eq!(count, json!(0));
}

#[tokio::test]
async fn a_stream_has_the_whole_turn() {
    let daemon = TestDaemon::new();
    let id = daemon.agent("one").await;
    let response = daemon.respond(&format!("POST /api/agents/{id}/message/stream"), br#"{"message": "hi"}"#).await;
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/event-stream"));
    let seen = events(&reply::text(response).await);
    let usage = json!({"done": true, "usage": {"input_tokens": 10, "output_tokens": 5}});
    assert_eq!(
        seen,
        [("chunk".to_owned(), json!({"content": "echo: hi", "done": false})), ("done".to_owned(), usage),]
    );
    assert_eq!(daemon.api.state::<StreamHub>().watched(), 0);
}

#[tokio::test]
async fn attach_follows_the_turn_in_flight_or_the_next() {
    let mut daemon = TestDaemon::new();
    daemon.hold_model();
    let id = daemon.agent("one").await;
    let attach = format!("GET /api/agents/{id}/attach");
    let early = daemon.respond(&attach, b"").await;
    let posted = daemon.respond(&format!("POST /api/agents/{id}/message/stream"), br#"{"message": "a"}"#).await;
    let behind = daemon.respond(&format!("POST /api/agents/{id}/message/stream"), br#"{"message": "b"}"#).await;
    let late = daemon.respond(&attach, b"").await;
    for text in ["first", "second"] {
        let call = daemon.model_call().await;
        daemon.answer(&call, text);
    }
    let chunk = |text: &str| events(text)[0].1["content"].clone();
    for (response, content) in [(early, "first"), (posted, "first"), (late, "first"), (behind, "second")] {
        let text = reply::text(response).await;
        assert_eq!((chunk(&text), events(&text).len()), (json!(content), 2));
    }
    let (agent, session) = (daemon.agent("two").await, Uuid::nil());
    daemon.refused(404, &format!("GET /api/agents/{agent}/attach?session_id={session}"), Value::Null).await;
    let theirs = daemon.ok(&format!("GET /api/agents/{id}/session"), Value::Null).await["session_id"].clone();
    let theirs = theirs.as_str().unwrap();
    daemon.refused(403, &format!("GET /api/agents/{agent}/attach?session_id={theirs}"), Value::Null).await;
    daemon.refused(400, &format!("GET /api/agents/{agent}/attach?session_id=x"), Value::Null).await;
}

#[tokio::test]
async fn stop_ends_the_running_turn() {
    let mut daemon = TestDaemon::new();
    daemon.hold_model();
    let id = daemon.agent("one").await;
    let idle = daemon.ok(&format!("POST /api/agents/{id}/stop"), Value::Null).await;
    assert_eq!(idle, json!({"status": "stopped", "message": "no turn was running"}));
    let stream = daemon.respond(&format!("POST /api/agents/{id}/message/stream"), br#"{"message": "a"}"#).await;
    daemon.model_call().await;
    let elsewhere = daemon.ok(&format!("POST /api/agents/{id}/sessions"), Value::Null).await["session_id"].clone();
    let none = daemon.ok(&format!("POST /api/agents/{id}/stop"), json!({"session_id": elsewhere})).await;
    assert_eq!(none["message"], "no turn was running");
    let stopped = daemon.ok(&format!("POST /api/agents/{id}/stop"), Value::Null).await;
    assert_eq!(stopped["message"], "the running turn was stopped");
    let seen = events(&reply::text(stream).await);
    assert_eq!((seen[0].0.as_str(), &seen[0].1["stopped"]), ("done", &json!(true)));
}

#[tokio::test]
async fn a_turn_goes_on_when_its_client_goes() {
    let mut daemon = TestDaemon::new();
    daemon.hold_model();
    let id = daemon.agent("one").await;
    let path = format!("POST /api/agents/{id}/message/stream");
    drop(daemon.respond(&path, br#"{"message": "a"}"#).await);
    let call = daemon.model_call().await;
    let behind = daemon.respond(&path, br#"{"message": "b"}"#).await;
    daemon.answer(&call, "for nobody");
    let call = daemon.model_call().await;
    daemon.answer(&call, "second");
    reply::text(behind).await;
    let session = daemon.ok(&format!("GET /api/agents/{id}/session"), Value::Null).await;
    let said: Vec<_> = session["messages"].as_array().unwrap().iter().map(|m| m["content"].clone()).collect();
    assert_eq!(said, ["a", "for nobody", "b", "second"]);
}

#[tokio::test]
async fn a_shutdown_says_farewell_to_streams() {
    let daemon = TestDaemon::new();
    let id = daemon.agent("one").await;
    let attached = daemon.respond(&format!("GET /api/agents/{id}/attach"), b"").await;
    daemon.api.shutdown.trigger();
    let seen = events(&reply::text(attached).await);
    assert_eq!((seen.len(), seen[0].0.as_str(), &seen[0].1["code"]), (1, "error", &json!("shutting_down")));
}

#[tokio::test(start_paused = true)]
async fn attach_ends_when_its_session_is_gone() {
    let daemon = TestDaemon::new();
    let id = daemon.agent("one").await;
    let attached = daemon.respond(&format!("GET /api/agents/{id}/attach"), b"").await;
    daemon.ok(&format!("POST /api/agents/{id}/session/reset"), Value::Null).await;
    let seen = events(&reply::text(attached).await);
    assert_eq!((seen[0].0.as_str(), &seen[0].1["code"]), ("error", &json!("session_removed")));
}
