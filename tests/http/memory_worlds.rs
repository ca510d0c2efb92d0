//! Memory entries, the knowledge graph and consolidation over backups, snapshots and rehearsals.

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::until;

fn harness() -> (Model, Daemon) {
    let model = Model::start();
    let config = "rate_limit_per_second = 1000000\n";
    let dreams = "[auto_dream]\nenabled = true\nmax_calls_per_run = 6\n";
    let daemon = Daemon::with(&format!("{config}{}{dreams}", model.config()));
    (model, daemon)
}

/// An agent with entries of which a run has read the first hundred, and with a graph.
fn furnished(model: &Model, daemon: &Daemon) -> String {
    let agent = daemon.agent_with("scout", "auto_dream_enabled = true\n");
    let many: Vec<Value> = (0..120).map(|n| json!({ "content": format!("fact {n}"), "taint": ["web"] })).collect();
    daemon.post(&format!("/api/memory/agents/{agent}/import"), &json!({ "memories": many })).expect(200);
    let tea = json!({ "agent_id": agent, "content": "likes tea", "user_id": "ana" });
    let id = text(&daemon.post("/api/memory", &tea).expect(201)["id"]);
    daemon.put(&format!("/api/memory/items/{id}"), &json!({ "content": "likes green tea" })).expect(200);
    let triple = json!({ "subject": "Ana", "subject_type": "person", "relation": "works_at", "object": "Acme",
        "object_type": "company" });
    daemon.post(&format!("/api/memory/agents/{agent}/relations"), &json!([triple])).expect(200);
    consolidate(model, daemon, &agent);
    agent
}

/// A run that reads the first page it is given.
fn consolidate(model: &Model, daemon: &Daemon, agent: &str) {
    let before = dream(daemon, agent)["last_run"].clone();
    model.script([Reply::calls(&[("a", "memory_search", "{}")]), Reply::text("done")]);
    daemon.post(&format!("/api/auto-dream/agents/{agent}/trigger"), &json!({})).expect(202);
    until("the run has ended", || {
        let shown = dream(daemon, agent);
        (shown["progress"].is_null() && shown["last_run"] != before).then_some(())
    });
}

fn dream(daemon: &Daemon, agent: &str) -> Value {
    let all = daemon.get("/api/auto-dream/status").expect(200);
    let found = all["agents"].as_array().unwrap().iter().find(|shown| shown["agent_id"] == agent);
    found.cloned().unwrap_or_default()
}

/// The contents of the entries that the model read in its last run.
fn read_last(model: &Model) -> Vec<String> {
    let request = model.requests().pop().unwrap();
    let messages = request["messages"].as_array().unwrap();
    let result = messages.iter().rfind(|message| message["role"] == "tool").unwrap();
    let page: Value = serde_json::from_str(result["content"].as_str().unwrap()).unwrap();
    page["entries"].as_array().unwrap().iter().map(|entry| text(&entry["content"])).collect()
}

/// All that there is of an agent's memory.
fn picture(daemon: &Daemon, agent: &str) -> Value {
    let mut export = daemon.get(&format!("/api/agents/{agent}/memory/export")).expect(200);
    export["exported_at"] = Value::Null;
    let mut dream = dream(daemon, agent);
    dream["hours_since_last"] = Value::Null;
    json!({
        "export": export,
        "dream": dream,
        "stats": daemon.get("/api/memory/stats").expect(200),
        "user": daemon.get("/api/memory/user/ana").expect(200),
        "entities": daemon.get(&format!("/api/memory/agents/{agent}/entities")).expect(200),
    })
}

/// Changes all of it.
fn spoil(model: &Model, daemon: &Daemon, agent: &str) {
    daemon.delete(&format!("/api/memory/agents/{agent}")).expect(200);
    daemon.delete(&format!("/api/memory/agents/{agent}/relations?source=Ana")).expect(200);
    daemon.post("/api/memory", &json!({ "agent_id": agent, "content": "later" })).expect(201);
    consolidate(model, daemon, agent);
}

#[test]
fn a_backup_brings_back_entries_graph_and_where_consolidation_was() {
    let (model, mut daemon) = harness();
    let agent = furnished(&model, &daemon);
    let (before, read) = (picture(&daemon, &agent), read_last(&model));
    let name = text(&daemon.post("/api/backup", &json!({})).expect(200)["filename"]);
    spoil(&model, &daemon, &agent);
    assert_ne!(picture(&daemon, &agent), before);
    daemon.post("/api/restore", &json!({ "filename": name })).expect(200);
    assert_eq!(picture(&daemon, &agent), before);
    daemon.kill();
    daemon.restart();
    assert_eq!(picture(&daemon, &agent), before, "after a kill");
    let found = daemon.get(&format!("/api/memory/agents/{agent}/search?q=green")).expect(200);
    assert_eq!(found["memories"][0]["content"], "likes green tea");
    consolidate(&model, &daemon, &agent);
    let next = read_last(&model);
    assert!(!next.is_empty() && next.iter().all(|fact| !read.contains(fact)), "it goes on behind {read:?}: {next:?}");
}

#[test]
fn a_rehearsal_leaves_entries_alone_and_a_snapshot_brings_them_back() {
    let (model, daemon) = harness();
    let agent = furnished(&model, &daemon);
    let before = picture(&daemon, &agent);
    let snapshot = text(&daemon.post("/api/world/snapshots", &json!({ "label": "x" })).expect(201)["id"]);
    let asked = model.requests().len();
    let begun = daemon.post("/api/world/rehearsals", &json!({ "for": "3d" })).expect(202);
    let path = format!("/api/world/rehearsals/{}", text(&begun["id"]));
    let ended = until("the rehearsal has ended", || {
        let found = daemon.get(&path).expect(200);
        (found["state"] != "running").then_some(found)
    });
    assert_eq!(ended["state"], "completed", "{ended}");
    assert_eq!((picture(&daemon, &agent), model.requests().len()), (before.clone(), asked));
    spoil(&model, &daemon, &agent);
    daemon.poke(&format!("/api/world/snapshots/{snapshot}/restore")).expect(200);
    assert_eq!(picture(&daemon, &agent), before);
}
