//! Sessions and their search over their routes.

use agentsvc_components::SessionId;
use agentsvc_components::session::message::{Block, Role, ToolCall};
use agentsvc_systems::session::GetSession;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::reply;
use crate::testing::daemon::TestDaemon;

async fn say(daemon: &TestDaemon, agent: &str, session: Option<&str>, text: &str) -> Value {
    let body = json!({"message": text, "session_id": session});
    daemon.ok(&format!("POST /api/agents/{agent}/message"), body).await
}

fn text(text: &str) -> Vec<Block> {
    vec![Block::Text { text: text.to_owned() }]
}

#[tokio::test]
async fn the_session_object_shows_what_was_said() {
    let daemon = TestDaemon::new();
    let id = daemon.agent("one").await;
    let empty = daemon.ok(&format!("GET /api/agents/{id}/session"), Value::Null).await;
    assert_eq!((&empty["messages"], &empty["context_window_tokens"]), (&json!([]), &json!(0)));
    say(&daemon, &id, None, "hello").await;
    let session = daemon.ok(&format!("GET /api/agents/{id}/session"), Value::Null).await;
    let messages = json!([{"role": "User", "content": "hello"}, {"role": "Assistant", "content": "echo: hello"}]);
    assert_eq!(session["messages"], messages);
    assert_eq!((&session["message_count"], &session["context_window_tokens"]), (&json!(2), &json!(4 + 2 + 4 + 3)));
    assert_eq!((&session["agent_id"], &session["label"]), (&json!(id), &Value::Null));
    let by_id = format!("GET /api/sessions/{}", session["session_id"].as_str().unwrap());
    assert_eq!(daemon.ok(&by_id, Value::Null).await, session);
    daemon.refused(404, &format!("GET /api/sessions/{}", Uuid::nil()), Value::Null).await;
    daemon.refused(400, "GET /api/sessions/7", Value::Null).await;
}

#[tokio::test]
async fn long_sessions_are_sent_in_chunks_and_pages() {
    let daemon = TestDaemon::new();
    let id = daemon.agent("one").await;
    let session = daemon.ok(&format!("GET /api/agents/{id}/session"), Value::Null).await["session_id"].clone();
    let session: Uuid = session.as_str().unwrap().parse().unwrap();
    let log = daemon.api.bridge.ask(GetSession::ById(SessionId(session))).await.unwrap().log;
    let call = ToolCall { id: "1".into(), name: "t".into(), input: "{}".into() };
    for ordinal in 0..300 {
        daemon.put_row(log, ordinal, 0, Role::User, text(&format!("q{ordinal} {}", "x".repeat(3_000))));
        daemon.put_row(log, ordinal, 1, Role::Assistant, vec![Block::ToolCall(call.clone())]);
        daemon.put_row(log, ordinal, 2, Role::Tool, text("hidden"));
        daemon.put_row(log, ordinal, 3, Role::Assistant, text("a"));
    }
    let whole = daemon.ok(&format!("GET /api/sessions/{session}"), Value::Null).await;
    let messages = whole["messages"].as_array().unwrap();
    assert_eq!((messages.len(), &whole["next_cursor"]), (600, &Value::Null));
    assert!(messages[598]["content"].as_str().unwrap().starts_with("q299 "));

    let (mut path, mut pages) = (format!("GET /api/sessions/{session}?limit=250"), Vec::new());
    loop {
        let page = daemon.ok(&path, Value::Null).await;
        pages.extend(page["messages"].as_array().unwrap().iter().cloned());
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("GET /api/sessions/{session}?limit=250&cursor={cursor}");
    }
    assert_eq!(&pages, messages);
    daemon.refused(400, &format!("GET /api/sessions/{session}?cursor=1-2"), Value::Null).await;
}

#[tokio::test]
async fn sessions_are_created_switched_labelled_and_deleted() {
    let daemon = TestDaemon::new();
    let (id, other) = (daemon.agent("one").await, daemon.agent("two").await);
    let (status, made) = daemon.send(&format!("POST /api/agents/{id}/sessions"), json!({"label": " a b/c "})).await;
    assert_eq!((status, &made["label"]), (201, &json!("a b/c")));
    let session = made["session_id"].as_str().unwrap();
    daemon.refused(409, &format!("POST /api/agents/{id}/sessions"), json!({"label": "a b/c"})).await;
    daemon.ok(&format!("POST /api/agents/{id}/sessions"), Value::Null).await;

    let switched = daemon.ok(&format!("POST /api/agents/{id}/sessions/{session}/switch"), Value::Null).await;
    assert_eq!(switched, json!({"status": "switched", "agent_id": id, "session_id": session}));
    daemon.refused(403, &format!("POST /api/agents/{other}/sessions/{session}/switch"), Value::Null).await;
    let nobody = Uuid::nil();
    daemon.refused(404, &format!("POST /api/agents/{id}/sessions/{nobody}/switch"), Value::Null).await;
    daemon.refused(400, &format!("POST /api/agents/{id}/sessions/x/switch"), Value::Null).await;
    let found = daemon.ok(&format!("GET /api/agents/{id}/sessions/by-label/a%20b%2Fc"), Value::Null).await;
    assert_eq!((&found["session_id"], &found["current"]), (&json!(session), &json!(true)));
    daemon.refused(404, &format!("GET /api/agents/{other}/sessions/by-label/a%20b%2Fc"), Value::Null).await;

    let labelled = daemon.ok(&format!("PUT /api/sessions/{session}/label"), json!({"label": "new"})).await;
    assert_eq!(labelled, json!({"status": "updated", "session_id": session, "label": "new"}));
    daemon.refused(400, &format!("PUT /api/sessions/{session}/label"), json!({})).await;
    daemon.refused(400, &format!("PUT /api/sessions/{session}/label"), json!({"label": "a\u{0}"})).await;
    let cleared = daemon.ok(&format!("PUT /api/sessions/{session}/label"), json!({"label": ""})).await;
    assert_eq!(cleared["label"], Value::Null);

    let gone = daemon.ok(&format!("DELETE /api/sessions/{session}"), Value::Null).await;
    assert_eq!((&gone["status"], &gone["session_id"]), (&json!("deleted"), &json!(session)));
    let agent = daemon.ok(&format!("GET /api/agents/{id}"), Value::Null).await;
    assert_eq!(gone["new_session_id"], agent["session_id"]);
    daemon.refused(404, &format!("DELETE /api/sessions/{session}"), Value::Null).await;
}

#[tokio::test]
async fn sessions_are_listed_and_paged() {
    let daemon = TestDaemon::new();
    let (one, two) = (daemon.agent("one").await, daemon.agent("two").await);
    for _ in 0..2 {
        daemon.ok(&format!("POST /api/agents/{one}/sessions"), Value::Null).await;
    }
    let all = daemon.ok("GET /api/sessions", Value::Null).await;
    assert_eq!((all["sessions"].as_array().unwrap().len(), &all["total"]), (4, &json!(4)));
    let count =
        |key: &str, value: Value| all["sessions"].as_array().unwrap().iter().filter(|s| s[key] == value).count();
    assert_eq!((count("agent_name", json!("one")), count("current", json!(true))), (3, 2));
    assert_eq!(all["sessions"][0]["id"], all["sessions"][0]["session_id"]);

    let mine = daemon.ok(&format!("GET /api/agents/{one}/sessions"), Value::Null).await;
    assert_eq!((mine["sessions"].as_array().unwrap().len(), &mine["total"]), (3, &json!(3)));
    assert_eq!(daemon.ok(&format!("GET /api/sessions?agent_id={one}"), Value::Null).await, mine);
    let (mut path, mut seen) = ("GET /api/sessions?limit=1".to_owned(), Vec::new());
    loop {
        let page = daemon.ok(&path, Value::Null).await;
        seen.extend(page["sessions"].as_array().unwrap().iter().cloned());
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("GET /api/sessions?limit=1&cursor={cursor}");
    }
    assert_eq!(json!(seen), all["sessions"]);
    let response = daemon.respond(&format!("GET /api/agents/{two}/sessions?limit=5"), b"").await;
    assert_eq!(response.headers()["x-total-count"], "1");
    assert_eq!(reply::collect(response).await["next_cursor"], Value::Null);
    daemon.refused(404, &format!("GET /api/agents/{}/sessions", Uuid::nil()), Value::Null).await;
    daemon.refused(400, "GET /api/sessions?agent_id=x", Value::Null).await;
}

#[tokio::test]
async fn history_is_cleared_and_sessions_are_reset_and_cleaned_up() {
    let daemon = TestDaemon::new();
    let id = daemon.agent("one").await;
    let first = say(&daemon, &id, None, "hello").await["session_id"].clone();
    let cleared = daemon.ok(&format!("DELETE /api/agents/{id}/history"), Value::Null).await;
    assert_eq!((&cleared["status"], &cleared["messages_removed"]), (&json!("cleared"), &json!(2)));
    let session = daemon.ok(&format!("GET /api/agents/{id}/session"), Value::Null).await;
    assert_eq!((&session["session_id"], &session["messages"]), (&first, &json!([])));
    let reset = daemon.ok(&format!("POST /api/agents/{id}/session/reset"), Value::Null).await;
    assert_eq!((&reset["status"], &reset["agent_id"]), (&json!("reset"), &json!(id)));
    assert_ne!(reset["new_session_id"], first);

    daemon.ok(&format!("POST /api/agents/{id}/sessions"), Value::Null).await;
    daemon.ok(&format!("POST /api/agents/{id}/sessions"), json!({"label": "kept"})).await;
    let cleaned = daemon.ok("POST /api/sessions/cleanup", json!({"older_than_days": 100_000})).await;
    assert_eq!(cleaned, json!({"status": "cleaned", "removed": 0}));
    assert_eq!(daemon.ok("POST /api/sessions/cleanup", Value::Null).await["removed"], 1);
    assert_eq!(daemon.ok("GET /api/sessions", Value::Null).await["total"], 2);
    daemon.refused(400, "POST /api/sessions/cleanup", json!({"older_than_days": -1})).await;
}

#[tokio::test]
async fn search_finds_labels_names_and_messages() {
    let daemon = TestDaemon::new();
    let (one, two) = (daemon.agent("heron").await, daemon.agent("two").await);
    daemon.ok(&format!("POST /api/agents/{two}/sessions"), json!({"label": "Heron trip"})).await;
    say(&daemon, &two, None, "I saw a HERON today").await;
    let found = daemon.ok("GET /api/sessions/search?q=heron", Value::Null).await;
    let hits = found["sessions"].as_array().unwrap();
    let mut why: Vec<_> = hits.iter().map(|hit| hit["matched"].as_str().unwrap()).collect();
    why.sort_unstable();
    assert_eq!(why, ["agent_name", "label", "message"]);
    let said = hits.iter().find(|hit| hit["matched"] == "message").unwrap();
    assert_eq!(said["excerpt"], "I saw a HERON today");
    assert_eq!((&found["total"], &found["truncated"]), (&json!(3), &json!(false)));

    let only = daemon.ok(&format!("GET /api/sessions/search?q=heron&agent_id={one}"), Value::Null).await;
    assert_eq!(only["total"], 1);
    assert_eq!(daemon.ok("GET /api/sessions/search?label=TRIP", Value::Null).await["total"], 1);
    assert_eq!(daemon.ok("GET /api/sessions/search?q=stork", Value::Null).await["total"], 0);
    let (mut path, mut total) = ("GET /api/sessions/search?q=heron&limit=1".to_owned(), 0);
    loop {
        let page = daemon.ok(&path, Value::Null).await;
        total += page["total"].as_u64().unwrap();
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("GET /api/sessions/search?q=heron&limit=1&cursor={cursor}");
    }
    assert_eq!(total, 3);
    daemon.refused(400, "GET /api/sessions/search?cursor=7~", Value::Null).await;
}

#[tokio::test]
async fn a_search_in_a_huge_session_goes_on_amid_it() {
    let daemon = TestDaemon::new();
    let id = daemon.agent("one").await;
    let session = say(&daemon, &id, None, "first").await["session_id"].as_str().unwrap().to_owned();
    let log = daemon.api.bridge.ask(GetSession::ById(session.parse().unwrap())).await.unwrap().log;
    for ordinal in 1..25_000 {
        daemon.put_row(log, ordinal, 0, Role::User, text(if ordinal == 24_000 { "needle" } else { "hay" }));
    }
    let first = daemon.ok("GET /api/sessions/search?q=needle", Value::Null).await;
    assert_eq!((&first["total"], &first["truncated"]), (&json!(0), &json!(true)));
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = daemon.ok(&format!("GET /api/sessions/search?q=needle&cursor={cursor}"), Value::Null).await;
    assert_eq!((&second["total"], &second["sessions"][0]["id"]), (&json!(1), &json!(session)));
    assert_eq!(second["truncated"], json!(false));
}

#[tokio::test]
async fn a_summary_that_is_on_its_way_to_the_disk_is_waited_for() {
    let daemon = TestDaemon::new();
    let id = daemon.agent("one").await;
    for n in 0..9 {
        say(&daemon, &id, None, &format!("m{n}")).await;
    }
    daemon.ok(&format!("POST /api/agents/{id}/session/compact"), Value::Null).await;
    let shown = daemon.ok(&format!("GET /api/agents/{id}/session"), Value::Null).await;
    let messages = shown["messages"].as_array().unwrap();
    assert!(messages[0]["content"].as_str().unwrap().ends_with("they spoke"), "{shown}");
    assert_eq!(shown["message_count"], messages.len());
    // The world knows of a summary before the store has it.
    daemon.memory.hold_summaries_back(1);
    assert_eq!(daemon.ok(&format!("GET /api/agents/{id}/session"), Value::Null).await, shown);
}
