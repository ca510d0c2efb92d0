//! Triggers fire: events, outcomes, sessions, cascades and kills (spec 1, Triggers, rule 3; States and transitions).

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::model::Model;
use crate::support::until;
use crate::triggers::{body, create, patch, trigger, with};

#[track_caller]
fn fires(client: &Client, id: &str) -> Value {
    client.get(&format!("/api/triggers/{id}/fires")).expect(200)
}

/// Waits until so many matches of a trigger ended so.
#[track_caller]
fn ended(client: &Client, id: &str, outcome: &str, count: u64) -> Value {
    until(&format!("{count} times {outcome}"), || {
        let now = fires(client, id);
        (now["outcomes"][outcome] == count).then_some(now)
    })
}

/// A daemon with a model that says back what it heard.
fn harness(more: &str) -> (Model, Daemon) {
    let model = Model::start();
    let daemon = Daemon::with(&format!("{}{more}", model.config()));
    (model, daemon)
}

/// What an agent heard in its current session, once it has heard so much.
fn heard(client: &Client, agent: &str, count: usize) -> Vec<String> {
    let session = text(&client.detail(agent)["session_id"]);
    until("the messages come and are answered", || {
        let said = client.transcript(&session);
        let answers = said.iter().filter(|(role, _)| role == "Assistant").count();
        let heard: Vec<String> = said.into_iter().filter(|(role, _)| role == "User").map(|(_, text)| text).collect();
        (heard.len() >= count && answers >= count).then_some(heard)
    })
}

#[test]
fn an_event_wakes_the_owner_with_the_event_in_the_message() {
    let (_model, daemon) = harness("");
    let watcher = daemon.agent_with("watcher", "");
    let id = create(&daemon, &body(&watcher, &json!({ "agent_spawned": { "name_pattern": "web-*" } })));
    let web = daemon.agent("web-1");
    daemon.agent("other");
    let said = heard(&daemon, &watcher, 1);
    let event = format!(r#"{{"kind":"agent_spawned","agent_id":"{web}","name":"web-1"}}"#);
    assert_eq!(said, [format!("Look: {event}")], "the compact JSON, and only of what matches");
    // Rule 3: nobody called, and the answer is there all the same.
    let session = text(&daemon.detail(&watcher)["session_id"]);
    assert_eq!(daemon.transcript(&session)[1].1, format!("echo: Look: {event}"));
    let done = ended(&daemon, &id, "fired", 1);
    assert_eq!((&done["last_outcome"], &done["total"]), (&json!("fired"), &json!(1)));
    assert_eq!(trigger(&daemon, &id)["fire_count"], 1);
    let fire = until("the fire is done", || {
        let fire = fires(&daemon, &id)["fires"][0].clone();
        (fire["status"] == "done").then_some(fire)
    });
    assert_eq!((&fire["event"], &fire["agent_id"]), (&json!("agent_spawned"), &json!(watcher)));
    assert_eq!(fire["session_id"], json!(session));
    daemon.settle();
    let traces = daemon.get(&format!("/api/agents/{watcher}/traces")).expect(200);
    assert!(traces.to_string().contains(&text(&fire["turn_id"])), "{traces}");
}

#[test]
fn agents_that_go_and_lifecycles_are_events_too() {
    let (_model, daemon) = harness("");
    let watcher = daemon.agent_with("watcher", "");
    let gone = create(&daemon, &body(&watcher, &json!({ "agent_terminated": {} })));
    let named = create(&daemon, &body(&watcher, &json!({ "agent_terminated": { "name_pattern": "b*" } })));
    let life = create(&daemon, &body(&watcher, &json!({ "lifecycle": {} })));
    let a = daemon.agent("a");
    daemon.post("/api/agents/bulk/stop", &json!({ "agent_ids": [a] })).expect(200);
    daemon.post("/api/agents/bulk/start", &json!({ "agent_ids": [a] })).expect(200);
    daemon.patch(&format!("/api/agents/{a}"), &json!({ "description": "x" })).expect(200);
    daemon.delete(&format!("/api/agents/{a}")).expect(200);
    ended(&daemon, &life, "fired", 5);
    ended(&daemon, &gone, "fired", 1);
    assert_eq!(trigger(&daemon, &named)["fire_count"], 0);
    let events: Vec<_> =
        fires(&daemon, &life)["fires"].as_array().unwrap().iter().map(|f| f["event"].clone()).collect();
    let expected = ["agent_terminated", "agent_updated", "agent_started", "agent_stopped", "agent_spawned"];
    assert_eq!(events, expected, "the backups, newest first");
}

#[test]
fn words_in_messages_and_answers_are_found() {
    let (_model, daemon) = harness("");
    let (watcher, worker) = (daemon.agent_with("watcher", ""), daemon.agent_with("worker", ""));
    let pattern = json!({ "content_match": { "substring": "Straße 7" } });
    let found = create(&daemon, &with(body(&watcher, &pattern), &json!({ "prompt_template": "seen", "max_fires": 2 })));
    let turns = create(&daemon, &body(&watcher, &json!({ "turn_completed": { "name_pattern": "work*" } })));
    daemon.say(&worker, "nothing of note");
    daemon.say(&worker, "it is in STRASSE 7, or straße 7");
    // In the message, and in the answer that says it back.
    ended(&daemon, &found, "fired", 2);
    ended(&daemon, &turns, "fired", 2);
    assert!(heard(&daemon, &watcher, 4).iter().any(|said| said.contains(r#""text":"echo: nothing of note""#)));
}

#[test]
fn a_trigger_cools_down_and_is_used_up() {
    let (_model, daemon) = harness("[triggers]\ndefault_cooldown_secs = 3600\n");
    let watcher = daemon.agent_with("watcher", "");
    let pattern = json!({ "agent_spawned": {} });
    let cooling = create(&daemon, &with(body(&watcher, &pattern), &json!({ "cooldown_secs": null })));
    let twice = create(&daemon, &with(body(&watcher, &pattern), &json!({ "max_fires": 2 })));
    let own = create(&daemon, &with(body(&watcher, &pattern), &json!({ "cooldown_secs": 600 })));
    let off = create(&daemon, &with(body(&watcher, &pattern), &json!({ "enabled": false })));
    for n in 0..3 {
        daemon.agent(&format!("n{n}"));
    }
    let log = ended(&daemon, &cooling, "cooling_down", 2);
    assert_eq!((&log["outcomes"]["fired"], &log["last_outcome"]), (&json!(1), &json!("cooling_down")));
    assert!(log["last_matched_at"].as_str() > log["last_fired_at"].as_str());
    assert_eq!(ended(&daemon, &own, "cooling_down", 2)["total"], 1);
    assert_eq!(ended(&daemon, &twice, "exhausted", 1)["total"], 2);
    assert_eq!(ended(&daemon, &off, "disabled", 3)["total"], 0);
    assert_eq!(trigger(&daemon, &twice)["fire_count"], 2);
    patch(&daemon, &twice, &json!({ "max_fires": 0 }));
    patch(&daemon, &off, &json!({ "enabled": true }));
    patch(&daemon, &cooling, &json!({ "cooldown_secs": 0 }));
    daemon.agent("n3");
    for (id, count) in [(&twice, 3), (&off, 1), (&cooling, 2)] {
        ended(&daemon, id, "fired", count);
    }
    until("the page of metrics knows", || {
        let page = daemon.get("/api/metrics").text();
        let has = |line: &str| page.lines().any(|l| l == line);
        (has("agentsvc_trigger_outcomes_total{outcome=\"disabled\"} 3")
            && has("agentsvc_trigger_outcomes_total{outcome=\"fired\"} 7")
            && has("agentsvc_trigger_outcomes_total{outcome=\"too_deep\"} 0")
            && has("agentsvc_triggers 4"))
        .then_some(())
    });
}

#[test]
fn the_target_hears_it_in_the_session_that_is_wanted() {
    let (_model, daemon) = harness("");
    let (owner, target) = (daemon.agent_with("owner", ""), daemon.agent_with("target", ""));
    let fresh = daemon.agent_with("fresh", "session_mode = \"new\"\n");
    let route = |to: &str| with(body(&owner, &json!({ "agent_spawned": {} })), &json!({ "target_agent_id": to }));
    let persistent = create(&daemon, &route(&target));
    let by_manifest = create(&daemon, &route(&fresh));
    let overridden = create(&daemon, &with(route(&fresh), &json!({ "session_mode": "persistent" })));
    daemon.agent("a");
    daemon.agent("b");
    let session_of = |id: &str| {
        let log = ended(&daemon, id, "fired", 2);
        [0, 1].map(|at| text(&log["fires"][at]["session_id"]))
    };
    let current = |agent: &str| text(&daemon.detail(agent)["session_id"]);
    assert_eq!(session_of(&persistent), [current(&target), current(&target)]);
    assert_eq!(session_of(&overridden), [current(&fresh), current(&fresh)]);
    let [one, two] = session_of(&by_manifest);
    assert!(one != two && one != current(&fresh) && two != current(&fresh));
    let sessions = daemon.get(&format!("/api/agents/{fresh}/sessions")).expect(200);
    assert!(sessions.to_string().contains(&one), "a fire's session stays: {sessions}");
    assert_eq!(heard(&daemon, &target, 2).len(), 2);
    assert!(daemon.transcript(&current(&owner)).is_empty(), "the owner is not disturbed");
}

#[test]
fn a_stopped_agent_is_left_alone_and_a_removed_one_leaves_nothing() {
    let (_model, mut daemon) = harness("");
    let (owner, other) = (daemon.agent_with("owner", ""), daemon.agent_with("other", ""));
    let pattern = json!({ "agent_spawned": {} });
    let own = create(&daemon, &body(&other, &pattern));
    let routed = create(&daemon, &with(body(&owner, &pattern), &json!({ "target_agent_id": other })));
    daemon.post("/api/agents/bulk/stop", &json!({ "agent_ids": [other] })).expect(200);
    daemon.agent("a");
    for id in [&own, &routed] {
        ended(&daemon, id, "agent_stopped", 1);
    }
    daemon.post("/api/agents/bulk/start", &json!({ "agent_ids": [other] })).expect(200);
    daemon.agent("b");
    ended(&daemon, &own, "fired", 1);
    daemon.delete(&format!("/api/agents/{other}")).expect(200);
    for _ in 0..2 {
        daemon.get(&format!("/api/triggers/{own}")).refused(404);
        let left = trigger(&daemon, &routed);
        assert_eq!((&left["enabled"], &left["target_agent_id"]), (&json!(false), &json!(null)));
        daemon.restart();
    }
}

#[test]
fn triggers_of_a_manifest_come_and_go_with_each_agent_of_it() {
    let (_model, daemon) = harness("");
    let toml = "[[triggers]]\npattern = { agent_spawned = { name_pattern = \"web-*\" } }\n\
        prompt_template = \"New: {{event}}\"\nmax_fires = 3\ncooldown_secs = 0\n\
        [[triggers]]\npattern = { lifecycle = {} }\nprompt_template = \"x\"\nenabled = false\n";
    let agent = daemon.agent_with("watcher", toml);
    let of = |agent: &str| daemon.get(&format!("/api/triggers?agent_id={agent}")).expect(200);
    let made = of(&agent);
    assert_eq!(made.as_array().unwrap().len(), 2);
    assert_eq!(
        (&made[0]["max_fires"], &made[0]["enabled"], &made[0]["cooldown_secs"]),
        (&json!(3), &json!(true), &json!(0))
    );
    assert_eq!((&made[1]["pattern"], &made[1]["enabled"]), (&json!({ "lifecycle": {} }), &json!(false)));
    daemon.agent("web-1");
    assert!(heard(&daemon, &agent, 1)[0].starts_with("New: {"));
    daemon.patch(&format!("/api/agents/{agent}"), &json!({ "description": "changed" })).expect(200);
    let clone = text(&daemon.poke(&format!("/api/agents/{agent}/clone")).expect(201)["agent_id"]);
    assert_eq!(of(&clone).as_array().unwrap().len(), 2);
    daemon.delete(&format!("/api/agents/{agent}")).expect(200);
    assert_eq!(daemon.get("/api/triggers").expect(200).as_array().unwrap().len(), 2);
    for (bad, word) in [
        ("[[triggers]]\npattern = { never = {} }\nprompt_template = \"x\"\n", "triggers[0].pattern"),
        ("[[triggers]]\npattern = \"all\"\n", "triggers[0].prompt_template"),
        ("triggers = 3\n", "triggers"),
    ] {
        let text = format!("name = \"bad\"\n{bad}");
        let said = daemon.post("/api/agents", &json!({ "manifest_toml": text })).refused(400);
        assert!(said.contains(word), "{said}");
    }
}

#[test]
fn agents_that_wake_themselves_come_to_an_end_that_is_seen() {
    let (_model, daemon) = harness("[triggers]\nmax_depth = 3\ncascade_per_minute = 4\n");
    let deep = daemon.agent_with("deep", "");
    let row = create(&daemon, &body(&deep, &json!({ "turn_completed": { "name_pattern": "deep" } })));
    daemon.say(&deep, "go");
    let log = ended(&daemon, &row, "too_deep", 1);
    assert_eq!(log["outcomes"]["fired"], 3);
    daemon.say(&deep, "go");
    // Two of the first row and two of this one came from fired turns.
    let log = ended(&daemon, &row, "too_deep", 2);
    assert_eq!((&log["outcomes"]["fired"], &log["outcomes"]["rate_limited"]), (&json!(6), &json!(0)));
    daemon.say(&deep, "go");
    let log = ended(&daemon, &row, "rate_limited", 1);
    assert_eq!(log["outcomes"]["fired"], 7);
}

#[test]
fn nothing_of_a_trigger_is_lost_over_a_kill() {
    let (model, mut daemon) = harness("");
    let watcher = daemon.agent_with("watcher", "");
    let id = create(&daemon, &body(&watcher, &json!({ "agent_spawned": {} })));
    model.hold();
    for n in 0..3 {
        daemon.agent(&format!("n{n}"));
    }
    ended(&daemon, &id, "fired", 3);
    daemon.restart();
    model.release();
    assert_eq!(heard(&daemon, &watcher, 3).len(), 3);
    let log = until("every fire is done", || {
        let log = fires(&daemon, &id);
        let open = log["fires"].as_array().unwrap().iter().any(|fire| fire["status"] == "open");
        (!open).then_some(log)
    });
    assert_eq!((&log["total"], log["fires"].as_array().unwrap().len()), (&json!(3), 3));
}

#[test]
fn a_match_without_budget_is_on_record_and_the_next_one_fires() {
    let prices = "[prices.\"openai/*\"]\ninput_per_m = 1.0\n[budget]\ndaily_limit_usd = 0.000001\n";
    let (_model, daemon) = harness(prices);
    let watcher = daemon.agent_with("watcher", "");
    let id = create(&daemon, &body(&watcher, &json!({ "agent_spawned": { "name_pattern": "web-*" } })));
    // It begins a turn, which ends for that; the next one does not begin.
    for (count, name) in [(1, "web-1"), (2, "web-2")] {
        daemon.agent(name);
        let over = ended(&daemon, &id, "over_budget", count);
        assert_eq!((&over["last_outcome"], &over["outcomes"]["fired"]), (&json!("over_budget"), &json!(0)), "{over}");
    }
    daemon.put("/api/budget", &json!({ "daily_limit_usd": 0 })).expect(200);
    daemon.agent("web-3");
    ended(&daemon, &id, "fired", 1);
    assert!(heard(&daemon, &watcher, 1).last().is_some_and(|said| said.contains("web-3")));
}
