//! Triggers on tasks and on custom events (spec 1, Triggers, rules 4 and 5).

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::until;
use crate::triggers::{body, create, trigger, with};

/// Triggers of `patterns`, which only count: they are off.
fn counting(daemon: &Daemon, owner: &str, patterns: &[Value]) -> Vec<String> {
    let off = json!({ "enabled": false });
    patterns.iter().map(|pattern| create(daemon, &with(body(owner, pattern), &off))).collect()
}

/// How often each matched.
fn matches(daemon: &Daemon, triggers: &[String]) -> Vec<u64> {
    let count = |id: &String| {
        let fires = daemon.get(&format!("/api/triggers/{id}/fires")).expect(200);
        fires["outcomes"]["disabled"].as_u64().expect("a count")
    };
    triggers.iter().map(count).collect()
}

#[test]
fn posted_tasks_are_matched_by_their_assignee() {
    let daemon = Daemon::start();
    let (owner, any) = (daemon.agent("owner"), daemon.agent("any"));
    let on = |value: &str| json!({ "task_posted": { "assignee_match": value } });
    let null = json!({ "task_posted": { "assignee_match": null } });
    let triggers =
        counting(&daemon, &owner, &[on("self"), on("unassigned"), json!({ "task_posted": {} }), null, on("any")]);
    for (assignee, expected) in [
        (json!(owner), [1, 0, 1, 1, 0]),
        // By name it is the same agent.
        (json!("owner"), [1, 0, 1, 1, 0]),
        // `any` is no keyword: it is the agent that is called so.
        (json!("any"), [0, 0, 1, 1, 1]),
        (json!(any), [0, 0, 1, 1, 0]),
        (json!(null), [0, 1, 1, 1, 0]),
        (json!(""), [0, 1, 1, 1, 0]),
    ] {
        let before = matches(&daemon, &triggers);
        daemon.post("/api/tasks", &json!({ "title": "t", "assignee": assignee })).expect(201);
        let more: Vec<u64> = matches(&daemon, &triggers).iter().zip(before).map(|(now, before)| now - before).collect();
        assert_eq!(more, expected, "{assignee}");
    }
}

#[test]
fn a_claim_that_is_released_by_the_sweep_wakes_nobody() {
    let daemon = Daemon::with("[queue]\nclaim_timeout_secs = 1\n");
    let owner = daemon.agent("owner");
    let on = json!({ "task_posted": { "assignee_match": "unassigned" } });
    let ended = [json!({ "task_claimed": {} }), json!({ "task_completed": {} }), json!({ "task_failed": {} })];
    let triggers = counting(&daemon, &owner, &[&[on, json!({ "task_posted": {} })][..], &ended].concat());
    let task = text(&daemon.post("/api/tasks", &json!({ "title": "t" })).expect(201)["id"]);
    let claim = || daemon.post(&format!("/api/tasks/{task}/claim"), &json!({ "agent_id": owner })).expect(200);
    claim();
    assert_eq!(matches(&daemon, &triggers), [1, 1, 1, 0, 0]);
    until("the claim is released", || {
        (daemon.get(&format!("/api/tasks/{task}")).expect(200)["status"] == "pending").then_some(())
    });
    assert_eq!(matches(&daemon, &triggers), [1, 1, 1, 0, 0], "no event");
    // On a slow machine a second may be over before the claim is ended.
    let mut claims = 1;
    until("a claim is ended in its time", || {
        claim();
        claims += 1;
        let ended = json!({ "agent_id": owner, "result": "done" });
        let ended = daemon.post(&format!("/api/tasks/{task}/complete"), &ended);
        if ended.status == 409 {
            until("the claim is released", || {
                (daemon.get(&format!("/api/tasks/{task}")).expect(200)["status"] == "pending").then_some(())
            });
        }
        (ended.status == 200).then_some(())
    });
    assert_eq!(matches(&daemon, &triggers), [1, 1, claims, 1, 0]);
}

#[test]
fn custom_events_wake_by_their_type_and_by_their_words() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    let typed = create(&daemon, &body(&agent, &json!({ "custom": { "event_type": "deploy.done" } })));
    let patterns =
        [json!({ "custom": {} }), json!({ "content_match": { "substring": "ROLLED back" } }), json!({ "all": {} })];
    let counted = counting(&daemon, &agent, &patterns);
    daemon.post("/api/events", &json!({ "event_type": "deploy.begun", "payload": { "n": 1 } })).expect(200);
    assert_eq!(matches(&daemon, &counted), [1, 0, 1]);
    assert_eq!(trigger(&daemon, &typed)["fire_count"], 0);
    let event = json!({ "event_type": "deploy.done", "payload": { "note": "it was Rolled Back {{event}}" } });
    daemon.post("/api/events", &event).expect(200);
    let session = text(&daemon.detail(&agent)["session_id"]);
    let said = until("the message comes", || daemon.transcript(&session).first().cloned());
    let form: Value = serde_json::from_str(said.1.strip_prefix("Look: ").expect("the template")).expect("JSON");
    assert_eq!((&form["kind"], &form["event_type"]), (&json!("custom"), &json!("deploy.done")));
    assert!(text(&form["payload"]).contains("{{event}}"), "what is put in is not expanded");
    let found = matches(&daemon, &counted);
    assert!(found[0] == 2 && found[1] >= 1, "the message that it became holds the words too: {found:?}");
}
