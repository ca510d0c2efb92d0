//! Triggers: routes and patterns (spec 1, Trigger, Triggers, rules 1 and 2).

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;

const NOBODY: &str = "018f0000-0000-7000-8000-00000000dead";

pub(crate) fn body(agent: &str, pattern: &Value) -> Value {
    json!({ "agent_id": agent, "pattern": pattern, "prompt_template": "Look: {{event}}", "cooldown_secs": 0 })
}

/// `body` with more keys, or others.
pub(crate) fn with(mut body: Value, more: &Value) -> Value {
    more.as_object().unwrap().iter().for_each(|(key, value)| body[key] = value.clone());
    body
}

#[track_caller]
pub(crate) fn create(client: &Client, body: &Value) -> String {
    text(&client.post("/api/triggers", body).expect(201)["trigger_id"])
}

#[track_caller]
pub(crate) fn trigger(client: &Client, id: &str) -> Value {
    client.get(&format!("/api/triggers/{id}")).expect(200)
}

#[track_caller]
pub(crate) fn patch(client: &Client, id: &str, change: &Value) -> Value {
    client.patch(&format!("/api/triggers/{id}"), change).expect(200)
}

#[test]
fn a_trigger_is_created_read_listed_and_deleted() {
    let mut daemon = Daemon::start();
    let (a, b) = (daemon.agent("a"), daemon.agent("b"));
    let made = daemon.post("/api/triggers", &body(&a, &json!({ "lifecycle": {} }))).expect(201);
    let id = text(&made["trigger_id"]);
    assert_eq!(made, json!({ "trigger_id": id, "agent_id": a }));
    let plain = json!({ "agent_id": b, "pattern": { "all": {} }, "prompt_template": "x" });
    let other = create(&daemon, &plain);
    let read = trigger(&daemon, &other);
    let expected = json!({
        "id": other, "agent_id": b, "pattern": { "all": {} }, "prompt_template": "x", "enabled": true, "fire_count": 0,
        "max_fires": 0, "created_at": read["created_at"], "cooldown_secs": null, "session_mode": null,
        "target_agent_id": null
    });
    assert_eq!(read, expected);
    assert!(text(&read["created_at"]).ends_with('Z'));
    let ids = |path: &str| {
        let list = daemon.get(path).expect(200);
        list.as_array().expect("an array").iter().map(|item| text(&item["id"])).collect::<Vec<_>>()
    };
    assert_eq!(ids("/api/triggers"), [id.clone(), other.clone()]);
    assert_eq!(ids(&format!("/api/triggers?agent_id={b}")), vec![other.clone()]);
    assert!(ids(&format!("/api/triggers?agent_id={NOBODY}")).is_empty());
    let page = daemon.get("/api/triggers?limit=1");
    assert_eq!(page.header("x-next-cursor"), Some(&*id));
    assert_eq!(ids(&format!("/api/triggers?limit=1&cursor={id}")), vec![other.clone()]);
    daemon.get("/api/triggers?agent_id=b").refused_field(400, "agent_id");
    daemon.restart();
    assert_eq!(trigger(&daemon, &other), expected);
    let gone = daemon.delete(&format!("/api/triggers/{other}")).expect(200);
    assert_eq!(gone, json!({ "status": "removed", "trigger_id": other }));
    for path in [format!("/api/triggers/{other}"), format!("/api/triggers/{other}/fires")] {
        daemon.get(&path).refused(404);
    }
    daemon.delete(&format!("/api/triggers/{other}")).refused(404);
    daemon.patch(&format!("/api/triggers/{other}"), &json!({ "enabled": true })).refused(404);
    daemon.get("/api/triggers/nonsense").refused_field(400, "id");
    daemon.restart();
    assert_eq!(daemon.get("/api/triggers").expect(200).as_array().unwrap().len(), 1);
}

#[test]
fn what_is_not_sent_stays_and_null_restores_the_default() {
    let daemon = Daemon::start();
    let (a, b) = (daemon.agent("a"), daemon.agent("b"));
    let more = json!({ "max_fires": 7, "cooldown_secs": 60, "session_mode": "new", "target_agent_id": b });
    let id = create(&daemon, &with(body(&a, &json!({ "all": {} })), &more));
    let before = trigger(&daemon, &id);
    assert_eq!((&before["session_mode"], &before["target_agent_id"]), (&json!("new"), &json!(b)));
    assert_eq!(patch(&daemon, &id, &json!({})), before);
    for (key, value) in [
        ("prompt_template", json!("other")),
        ("enabled", json!(false)),
        ("max_fires", json!(9)),
        ("cooldown_secs", json!(0)),
        ("session_mode", json!("persistent")),
        ("target_agent_id", json!(a)),
        ("cooldown_secs", json!(null)),
        ("session_mode", json!(null)),
        ("target_agent_id", json!(null)),
    ] {
        let expected = with(trigger(&daemon, &id), &json!({ key: value }));
        assert_eq!(patch(&daemon, &id, &json!({ key: value })), expected, "{key}");
        assert_eq!(trigger(&daemon, &id), expected, "{key}");
    }
    let before = trigger(&daemon, &id);
    let path = format!("/api/triggers/{id}");
    for (change, status, field) in [
        (json!({ "prompt_template": null }), 400, "prompt_template"),
        (json!({ "prompt_template": "" }), 400, "prompt_template"),
        (json!({ "enabled": null }), 400, "enabled"),
        (json!({ "enabled": "yes" }), 400, "enabled"),
        (json!({ "max_fires": null }), 400, "max_fires"),
        (json!({ "max_fires": -1 }), 400, "max_fires"),
        (json!({ "cooldown_secs": -1 }), 400, "cooldown_secs"),
        (json!({ "session_mode": "old" }), 400, "session_mode"),
        (json!({ "target_agent_id": "bob" }), 400, "target_agent_id"),
        (json!({ "target_agent_id": NOBODY, "max_fires": 1 }), 404, "target_agent_id"),
    ] {
        daemon.patch(&path, &change).refused_field(status, field);
    }
    assert!(daemon.patch(&path, &json!({ "pattern": { "all": {} } })).header("warning").is_some());
    assert_eq!(trigger(&daemon, &id), before);
}

#[test]
fn every_pattern_is_taken_and_shown_as_it_was_sent() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let kinds = [
        "all",
        "lifecycle",
        "system",
        "agent_spawned",
        "agent_started",
        "agent_stopped",
        "agent_updated",
        "agent_terminated",
        "message_received",
        "turn_started",
        "turn_completed",
        "turn_failed",
        "tool_called",
        "task_posted",
        "task_claimed",
        "task_completed",
        "task_failed",
        "schedule_fired",
        "cron_fired",
        "workflow_started",
        "workflow_completed",
        "workflow_failed",
        "approval_requested",
        "approval_resolved",
        "budget_warning",
        "budget_exceeded",
        "memory_updated",
        "knowledge_updated",
        "custom",
    ];
    let patterns = kinds.map(|kind| json!({ kind: {} }));
    let more = [
        json!({ "agent_spawned": { "name_pattern": "web-*" } }),
        json!({ "agent_terminated": { "name_pattern": "*-[0-9]" } }),
        json!({ "turn_completed": { "name_pattern": "?" } }),
        json!({ "task_posted": { "assignee_match": "self" } }),
        json!({ "task_posted": { "assignee_match": "unassigned" } }),
        json!({ "task_posted": { "assignee_match": "any" } }),
        json!({ "custom": { "event_type": "deploy.done" } }),
        json!({ "content_match": { "substring": "HELP" } }),
    ];
    for pattern in patterns.iter().chain(&more) {
        let id = create(&daemon, &with(body(&agent, pattern), &json!({ "enabled": false })));
        assert_eq!(trigger(&daemon, &id)["pattern"], *pattern);
    }
    let id = create(&daemon, &body(&agent, &json!({ "task_posted": { "assignee_match": null } })));
    assert_eq!(trigger(&daemon, &id)["pattern"], json!({ "task_posted": {} }));
}

#[test]
fn what_is_wrong_is_named() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let before = daemon.get("/api/triggers").expect(200);
    for pattern in [
        json!("nonsense"),
        json!([]),
        json!(null),
        json!({}),
        json!({ "all": {}, "lifecycle": {} }),
        json!({ "all": null }),
        json!({ "nonsense": {} }),
        json!({ "agent_spawned": { "name": "x" } }),
        json!({ "agent_spawned": { "name_pattern": "" } }),
        json!({ "agent_spawned": { "name_pattern": "[a-" } }),
        json!({ "agent_spawned": { "name_pattern": "a".repeat(300) } }),
        json!({ "agent_spawned": { "name_pattern": 3 } }),
        json!({ "content_match": {} }),
        json!({ "content_match": { "substring": "" } }),
        json!({ "task_posted": { "assignee_match": "" } }),
        json!({ "custom": { "event_type": 1 } }),
    ] {
        daemon.post("/api/triggers", &body(&agent, &pattern)).refused_field(400, "pattern");
    }
    let good = || body(&agent, &json!({ "all": {} }));
    for (change, status, field) in [
        (json!({ "agent_id": NOBODY }), 404, "agent"),
        (json!({ "agent_id": "bob" }), 400, "agent_id"),
        (json!({ "target_agent_id": NOBODY }), 404, "target_agent_id"),
        (json!({ "target_agent_id": 7 }), 400, "target_agent_id"),
        (json!({ "prompt_template": "  " }), 400, "prompt_template"),
        (json!({ "prompt_template": "x".repeat(65 << 10) }), 400, "prompt_template"),
        (json!({ "max_fires": -1 }), 400, "max_fires"),
        (json!({ "cooldown_secs": 1.5 }), 400, "cooldown_secs"),
        (json!({ "session_mode": "other" }), 400, "session_mode"),
    ] {
        daemon.post("/api/triggers", &with(good(), &change)).refused_field(status, field);
    }
    for key in ["agent_id", "pattern", "prompt_template"] {
        let mut body = good();
        body.as_object_mut().unwrap().remove(key);
        daemon.post("/api/triggers", &body).refused_field(400, key);
    }
    assert_eq!(daemon.get("/api/triggers").expect(200), before);
}
