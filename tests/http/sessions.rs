//! Sessions: list, create, switch, label, reset, history, delete, search, cleanup (spec 1 and 2, Sessions).

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::until;

fn new_session(daemon: &Daemon, agent: &str, body: &Value) -> String {
    text(&daemon.post(&format!("/api/agents/{agent}/sessions"), body).expect(201)["session_id"])
}

fn rows(daemon: &Daemon, agent: &str) -> Vec<Value> {
    let body = daemon.get(&format!("/api/agents/{agent}/sessions")).expect(200);
    assert_eq!(body["total"], body["sessions"].as_array().unwrap().len(), "{body}");
    body["sessions"].as_array().unwrap().clone()
}

#[test]
fn a_new_agent_has_one_empty_current_session() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let current = text(&daemon.detail(&agent)["session_id"]);
    let session = daemon.get(&format!("/api/agents/{agent}/session")).expect(200);
    assert_eq!(session["session_id"], current.as_str());
    assert_eq!(session["agent_id"], agent.as_str());
    assert_eq!(session["message_count"], 0);
    assert!(session["context_window_tokens"].is_u64(), "{session}");
    assert_eq!(session["messages"], json!([]));
    let rows = rows(&daemon, &agent);
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0]["session_id"], &rows[0]["current"]), (&json!(current), &json!(true)));
}

#[test]
fn a_conversation_is_kept_in_order() {
    let mut daemon = Daemon::start();
    let agent = daemon.agent("a");
    let answers: Vec<_> = ["one", "two", "three"].map(|m| text(&daemon.say(&agent, m)["response"])).into();
    let session = daemon.get(&format!("/api/agents/{agent}/session")).expect(200);
    assert_eq!(session["message_count"], 6);
    let expected: Vec<_> = ["one", "two", "three"]
        .iter()
        .zip(&answers)
        .flat_map(|(m, a)| [("User".to_owned(), (*m).to_owned()), ("Assistant".to_owned(), a.clone())])
        .collect();
    let id = text(&session["session_id"]);
    assert_eq!(daemon.transcript(&id), expected);
    daemon.restart();
    assert_eq!(daemon.transcript(&id), expected);
    assert_eq!(daemon.get(&format!("/api/agents/{agent}/session")).expect(200)["messages"], session["messages"]);
}

#[test]
fn create_label_find_and_switch() {
    let mut daemon = Daemon::start();
    let agent = daemon.agent("a");
    let first = text(&daemon.detail(&agent)["session_id"]);
    let work = new_session(&daemon, &agent, &json!({ "label": "work" }));
    let bare = text(&daemon.poke(&format!("/api/agents/{agent}/sessions")).expect(201)["session_id"]);
    assert_eq!(daemon.detail(&agent)["session_id"], first.as_str(), "creating does not switch");

    let found = daemon.get(&format!("/api/agents/{agent}/sessions/by-label/work")).expect(200);
    assert_eq!(found["session_id"], work.as_str());
    daemon.get(&format!("/api/agents/{agent}/sessions/by-label/play")).refused(404);

    let reply = daemon.poke(&format!("/api/agents/{agent}/sessions/{work}/switch")).expect(200);
    assert_eq!(reply["status"], "switched");
    daemon.say(&agent, "to work");
    assert_eq!(daemon.transcript(&work).len(), 2);
    assert!(daemon.transcript(&first).is_empty() && daemon.transcript(&bare).is_empty());

    daemon.restart();
    assert_eq!(daemon.detail(&agent)["session_id"], work.as_str());
    let rows = rows(&daemon, &agent);
    assert_eq!(rows.len(), 3);
    for row in &rows {
        assert_eq!(row["current"], row["session_id"] == work.as_str(), "{row}");
        assert_eq!(row["agent_id"], agent.as_str());
        assert!(row["created_at"].is_string() && row["updated_at"].is_string(), "{row}");
        assert_eq!(row["message_count"], if row["session_id"] == work.as_str() { 2 } else { 0 });
    }
}

#[test]
fn a_branch_has_the_turns_up_to_there_and_goes_its_own_way() {
    let mut daemon = Daemon::start();
    let agent = daemon.agent("a");
    let session = text(&daemon.detail(&agent)["session_id"]);
    for message in ["one", "two", "three"] {
        daemon.say(&agent, message);
    }
    let path = format!("/api/sessions/{session}/branch");
    let branch = daemon.post(&path, &json!({ "turns": 1, "label": " other way " })).expect(201);
    assert_eq!((&branch["branched_from"], &branch["turns"]), (&json!(session), &json!(1)));
    assert_eq!((&branch["agent_id"], &branch["label"]), (&json!(agent), &json!("other way")));
    let branch = text(&branch["session_id"]);
    assert_eq!(daemon.detail(&agent)["session_id"], session.as_str(), "branching does not switch");
    let original = daemon.transcript(&session);
    assert_eq!(daemon.transcript(&branch), original[..2]);
    let body = json!({ "message": "another two", "session_id": branch });
    daemon.post(&format!("/api/agents/{agent}/message"), &body).expect(200);
    daemon.restart();
    assert_eq!(daemon.transcript(&branch).len(), 4);
    assert_eq!(daemon.transcript(&branch)[2].1, "another two");
    assert_eq!(daemon.transcript(&session), original, "the original stays");
    // Without a number all turns are copied, with 0 none.
    let whole = text(&daemon.poke(&path).expect(201)["session_id"]);
    assert_eq!(daemon.transcript(&whole), original);
    let none = text(&daemon.post(&path, &json!({ "turns": 0 })).expect(201)["session_id"]);
    assert!(daemon.transcript(&none).is_empty());
    // Usage was counted once.
    let messages = daemon.get(&format!("/api/sessions/{whole}/messages")).expect(200);
    assert!(messages["messages"].as_array().unwrap().iter().all(|message| message.get("usage").is_none()));
}

#[test]
fn a_branch_costs_by_what_it_copies() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let session = text(&daemon.detail(&agent)["session_id"]);
    daemon.say(&agent, &"long ".repeat(12_000));
    let path = format!("/api/sessions/{session}/branch");
    daemon.poke(&path).expect(201);
    let slower = json!({ "path": "rate_limit_per_second", "value": 2 });
    daemon.post("/api/config/set", &slower).expect(200);
    daemon.post(&path, &json!({ "turns": 0 })).expect(201);
    let refused = daemon.poke(&path);
    assert!(refused.header("retry-after").is_some(), "{}", refused.text());
    assert_eq!(refused.expect(429)["code"], "rate_limited");
    let sessions = until("it may ask again", || {
        let list = daemon.get(&format!("/api/agents/{agent}/sessions"));
        (list.status == 200).then(|| list.expect(200)["total"].clone())
    });
    assert_eq!(sessions, 3, "nothing was copied");
}

#[test]
fn a_branch_of_what_is_not_there_is_refused() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let session = text(&daemon.detail(&agent)["session_id"]);
    daemon.say(&agent, "one");
    let path = format!("/api/sessions/{session}/branch");
    daemon.post(&path, &json!({ "turns": 2 })).refused_field(400, "turns");
    daemon.post(&path, &json!({ "turns": -1 })).refused_field(400, "turns");
    daemon.post(&path, &json!({ "label": "x".repeat(300) })).refused_field(400, "label");
    new_session(&daemon, &agent, &json!({ "label": "taken" }));
    daemon.post(&path, &json!({ "label": "taken" })).refused_field(409, "label");
    daemon.poke(&format!("/api/sessions/{}/branch", uuid::Uuid::nil())).refused(404);
    assert_eq!(rows(&daemon, &agent).len(), 2, "nothing was created");
}

#[test]
fn switch_and_label_refuse_what_is_not_there() {
    let daemon = Daemon::start();
    let (one, two) = (daemon.agent("one"), daemon.agent("two"));
    let foreign = text(&daemon.detail(&two)["session_id"]);
    let ghost = uuid::Uuid::nil();
    daemon.poke(&format!("/api/agents/{one}/sessions/{ghost}/switch")).refused(404);
    daemon.poke(&format!("/api/agents/{one}/sessions/{foreign}/switch")).refused(403);
    daemon.poke(&format!("/api/agents/{one}/sessions/nonsense/switch")).refused(400);
    daemon.put(&format!("/api/sessions/{ghost}/label"), &json!({ "label": "x" })).refused(404);
    let path = format!("/api/sessions/{foreign}/label");
    daemon.put(&path, &json!({})).refused_field(400, "label");
    daemon.put(&path, &json!({ "label": 1 })).refused_field(400, "label");
    daemon.put(&path, &json!({ "label": "x".repeat(257) })).refused_field(400, "label");
    daemon.put(&path, &json!({ "label": "a\u{0}b" })).refused_field(400, "label");
    assert_ne!(daemon.detail(&one)["session_id"], foreign.as_str());
}

#[test]
fn labels_survive_and_can_be_changed() {
    let mut daemon = Daemon::start();
    let agent = daemon.agent("a");
    let session = text(&daemon.detail(&agent)["session_id"]);
    daemon.put(&format!("/api/sessions/{session}/label"), &json!({ "label": "first" })).expect(200);
    daemon.put(&format!("/api/sessions/{session}/label"), &json!({ "label": "zweite Spur ☂" })).expect(200);
    daemon.restart();
    assert_eq!(daemon.get(&format!("/api/sessions/{session}")).expect(200)["label"], "zweite Spur ☂");
    daemon.get(&format!("/api/agents/{agent}/sessions/by-label/first")).refused(404);
    let encoded = "zweite%20Spur%20%E2%98%82";
    let found = daemon.get(&format!("/api/agents/{agent}/sessions/by-label/{encoded}")).expect(200);
    assert_eq!(found["session_id"], session.as_str());
}

#[test]
fn reset_gives_a_fresh_session() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    daemon.say(&agent, "to be forgotten");
    let old = text(&daemon.detail(&agent)["session_id"]);
    let reply = daemon.poke(&format!("/api/agents/{agent}/session/reset")).expect(200);
    assert_eq!((&reply["status"], &reply["agent_id"]), (&json!("reset"), &json!(agent)));
    let new = text(&reply["new_session_id"]);
    assert_ne!(new, old);
    assert_eq!(daemon.detail(&agent)["session_id"], new.as_str());
    assert!(daemon.transcript(&new).is_empty());
}

#[test]
fn history_delete_keeps_the_session() {
    let mut daemon = Daemon::start();
    let agent = daemon.agent("a");
    let session = text(&daemon.detail(&agent)["session_id"]);
    let side = new_session(&daemon, &agent, &json!({}));
    daemon.say(&agent, "one");
    daemon.say_in(&agent, &side, "two");
    daemon.delete(&format!("/api/agents/{agent}/history")).expect(200);
    let count = rows(&daemon, &agent).len();
    daemon.restart();
    assert_eq!(rows(&daemon, &agent).len(), count, "no session is created");
    assert_eq!(daemon.detail(&agent)["session_id"], session.as_str());
    assert!(daemon.transcript(&session).is_empty());
    daemon.say(&agent, "again");
    assert_eq!(daemon.transcript(&session).len(), 2);
}

#[test]
fn sessions_of_all_agents_list_read_and_delete() {
    let mut daemon = Daemon::start();
    let agent = daemon.agent("owner");
    let session = new_session(&daemon, &agent, &json!({ "label": "l" }));
    daemon.say_in(&agent, &session, "hello there");
    let list = daemon.get("/api/sessions").expect(200);
    let row = list["sessions"].as_array().unwrap().iter().find(|s| s["id"] == session.as_str()).unwrap().clone();
    assert_eq!((&row["agent_id"], &row["agent_name"]), (&json!(agent), &json!("owner")));
    assert_eq!(row["message_count"], 2);
    assert!(row["created_at"].is_string());

    let full = daemon.get(&format!("/api/sessions/{session}")).expect(200);
    assert_eq!((&full["session_id"], &full["agent_id"]), (&json!(session), &json!(agent)));
    assert_eq!((&full["message_count"], &full["label"]), (&json!(2), &json!("l")));

    let reply = daemon.delete(&format!("/api/sessions/{session}")).expect(200);
    assert_eq!((&reply["status"], &reply["session_id"]), (&json!("deleted"), &json!(session)));
    daemon.restart();
    daemon.get(&format!("/api/sessions/{session}")).refused(404);
    daemon.delete(&format!("/api/sessions/{session}")).refused(404);
    daemon.get("/api/sessions/nonsense").refused(400);
}

#[test]
fn deleting_the_current_session_leaves_a_usable_agent() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    daemon.say(&agent, "old");
    let old = text(&daemon.detail(&agent)["session_id"]);
    daemon.delete(&format!("/api/sessions/{old}")).expect(200);
    let new = text(&daemon.detail(&agent)["session_id"]);
    assert_ne!(old, new);
    daemon.say(&agent, "new");
    assert_eq!(daemon.transcript(&new).len(), 2);
}

#[test]
fn search_finds_by_agent_and_label() {
    let daemon = Daemon::start();
    let (one, two) = (daemon.agent("one"), daemon.agent("two"));
    let hit = new_session(&daemon, &one, &json!({ "label": "quarterly report" }));
    new_session(&daemon, &two, &json!({ "label": "other" }));
    let found = |query: &str| {
        let body = daemon.get(&format!("/api/sessions/search?{query}")).expect(200);
        let mut ids: Vec<_> = body["sessions"].as_array().unwrap().iter().map(|s| text(&s["id"])).collect();
        ids.sort();
        ids
    };
    assert_eq!(found("label=quarterly%20report"), std::slice::from_ref(&hit));
    let of_one = found(&format!("agent_id={one}"));
    assert!(of_one.len() == 2 && of_one.contains(&hit), "{of_one:?}");
    assert!(found("label=nothing-like-this").is_empty());
    daemon.get("/api/sessions/search?agent_id=nonsense").refused_field(400, "agent_id");
    daemon.get("/api/sessions/search?limit=many").refused_field(400, "limit");
}

#[test]
fn cleanup_spares_current_and_used_sessions() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let current = text(&daemon.detail(&agent)["session_id"]);
    let used = new_session(&daemon, &agent, &json!({}));
    daemon.say_in(&agent, &used, "keep me");
    let reply = daemon.poke("/api/sessions/cleanup").expect(200);
    assert!(reply.is_object(), "{reply}");
    daemon.get(&format!("/api/sessions/{current}")).expect(200);
    assert_eq!(daemon.transcript(&used).len(), 2);
}

#[test]
fn a_label_names_one_session_of_an_agent() {
    let daemon = Daemon::start();
    let (one, two) = (daemon.agent("one"), daemon.agent("two"));
    let first = new_session(&daemon, &one, &json!({ "label": "same" }));
    daemon.post(&format!("/api/agents/{one}/sessions"), &json!({ "label": "same" })).refused(409);
    new_session(&daemon, &two, &json!({ "label": "same" }));
    let current = text(&daemon.detail(&one)["session_id"]);
    daemon.put(&format!("/api/sessions/{current}/label"), &json!({ "label": "same" })).refused(409);
    daemon.put(&format!("/api/sessions/{first}/label"), &json!({ "label": "same" })).expect(200);
}
