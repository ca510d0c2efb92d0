//! Bulk routes: many agents in one request, each item answered for itself (decisions, Agents).

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};

fn manifests(names: &[&str]) -> Value {
    let items: Vec<_> = names.iter().map(|n| json!({ "manifest_toml": format!("name = \"{n}\"") })).collect();
    json!({ "agents": items })
}

/// The results, the count checked.
#[track_caller]
fn results(body: &Value, count: usize) -> Vec<Value> {
    let results = body["results"].as_array().cloned().unwrap_or_default();
    assert_eq!(results.len(), count, "{body}");
    results
}

#[test]
fn one_bad_item_does_not_stop_the_others() {
    let mut daemon = Daemon::start();
    let before = daemon.get("/api/agents").expect(200).as_array().unwrap().len();
    let mut body = manifests(&["one", "two", "one"]);
    let items = body["agents"].as_array_mut().unwrap();
    items.push(json!({ "manifest_toml": "name = " }));
    items.push(json!({ "manifest_toml": "name = \"three\"" }));
    let reply = daemon.post("/api/agents/bulk", &body);
    assert!(matches!(reply.status, 200 | 201 | 207), "{}", reply.text());
    let results = results(&reply.expect(reply.status), 5);
    for (row, good) in results.iter().zip([true, true, false, false, true]) {
        assert_eq!(row.get("error").is_none_or(Value::is_null), good, "{row}");
    }
    daemon.restart();
    assert_eq!(daemon.get("/api/agents").expect(200).as_array().unwrap().len(), before + 3);
}

#[test]
fn bulk_stop_start_and_delete() {
    let daemon = Daemon::start();
    let (one, two) = (daemon.agent("one"), daemon.agent("two"));
    let ghost = uuid::Uuid::nil().to_string();

    let rows =
        results(&daemon.post("/api/agents/bulk/stop", &json!({ "agent_ids": [one, ghost, two] })).expect(200), 3);
    assert!(rows[0].get("error").is_none_or(Value::is_null), "{rows:?}");
    assert!(rows[1]["error"].is_string(), "{rows:?}");
    assert_eq!(daemon.detail(&one)["state"], "Stopped");
    assert_eq!(daemon.detail(&two)["state"], "Stopped");
    daemon.post(&format!("/api/agents/{one}/message"), &json!({ "message": "hi" })).refused(409);

    daemon.post("/api/agents/bulk/start", &json!({ "ids": [one] })).expect(200);
    assert_eq!(daemon.detail(&one)["state"], "Running");
    daemon.post("/api/agents/bulk/start", &json!([two])).expect(200);
    daemon.say(&two, "awake?");

    let body = json!({ "agent_ids": [one, two, ghost] }).to_string();
    let reply = daemon.send("DELETE", "/api/agents/bulk", &[], Some(body.as_bytes())).expect(200);
    let rows = results(&reply, 3);
    assert!(rows[2]["error"].is_string(), "{rows:?}");
    daemon.get(&format!("/api/agents/{one}")).refused(404);
    daemon.get(&format!("/api/agents/{two}")).refused(404);
}

#[test]
fn a_stopped_agent_stays_stopped_over_a_restart() {
    let mut daemon = Daemon::start();
    let id = daemon.agent("sleeper");
    daemon.post("/api/agents/bulk/stop", &json!({ "agent_ids": [id] })).expect(200);
    daemon.restart();
    assert_eq!(daemon.detail(&id)["state"], "Stopped");
    daemon.post(&format!("/api/agents/{id}/message"), &json!({ "message": "hi" })).refused(409);
    daemon.post("/api/agents/bulk/start", &json!({ "agent_ids": [id] })).expect(200);
    daemon.say(&id, "good morning");
}

#[test]
fn bulk_bodies_are_checked() {
    let daemon = Daemon::start();
    let before = daemon.get("/api/agents").expect(200);
    daemon.post("/api/agents/bulk", &json!({})).refused_field(400, "agents");
    daemon.post("/api/agents/bulk", &json!({ "agents": "x" })).refused_field(400, "agents");
    daemon.post("/api/agents/bulk/stop", &json!({})).refused_field(400, "agent_ids");
    daemon.post("/api/agents/bulk/start", &json!({ "agent_ids": 3 })).refused_field(400, "agent_ids");
    daemon.send("DELETE", "/api/agents/bulk", &[], Some(b"{}")).refused_field(400, "agent_ids");
    let many: Vec<_> = (0..10_001).map(|_| uuid::Uuid::nil().to_string()).collect();
    daemon.post("/api/agents/bulk/stop", &json!({ "agent_ids": many })).refused(400);
    assert_eq!(daemon.get("/api/agents").expect(200), before);
}

#[test]
fn a_thousand_agents_in_one_request() {
    let daemon = Daemon::start();
    let names: Vec<_> = (0..1000).map(|n| format!("crowd-{n}")).collect();
    let reply = daemon.post("/api/agents/bulk", &manifests(&names.iter().map(String::as_str).collect::<Vec<_>>()));
    let rows = results(&reply.expect(reply.status), 1000);
    let last = text(&rows[999]["id"]);
    assert_eq!(daemon.detail(&last)["name"], "crowd-999");
}
