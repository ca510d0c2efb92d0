//! Schedules (spec 1, Schedules): the records, the rules and their refusals, runs by slot and by hand, restarts, and the
//! tools of agents.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agentsvc_components::Timestamp;
use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::model::Model;
use crate::support::model_server::{Gate, Reply};
use crate::support::until;

const NOBODY: &str = "018f0000-0000-7000-8000-00000000dead";

fn create(client: &Client, body: &Value) -> Value {
    client.post("/api/schedules", body).expect(201)
}

fn get(client: &Client, id: &str) -> Value {
    client.get(&format!("/api/schedules/{id}")).expect(200)
}

/// A harness with the scripted model, and one agent.
fn harness() -> (Model, Daemon, String) {
    let model = Model::start();
    let daemon = Daemon::with(&format!("rate_limit_per_second = 1000000\n{}", model.config()));
    let agent = daemon.agent_with("a", "[capabilities]\ntools = [\"schedule_*\"]\n");
    (model, daemon, agent)
}

#[test]
fn an_orderly_stop_settles_the_calls_of_schedules() {
    let model = Model::start();
    let prices = "[prices.\"openai/echo-1\"]\ninput_per_m = 1000.0\noutput_per_m = 1000.0\n";
    let mut daemon = Daemon::with(&format!("{}[budget]\ndaily_limit_usd = 1000000\n{prices}", model.config()));
    let agent = daemon.agent_with("a", "");
    let gate = Gate::default();
    model.script([Reply::text("the report").usage(Some((10, 5))).gated(&gate)]);
    // By its slot, so that no client waits for it.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    let soon = Timestamp(i64::try_from(now).expect("before the end of time")).plus_ms(2_000);
    let body = json!({ "agent_id": agent, "cron": format!("at {soon}"), "prompt": "report", "session_mode": "new" });
    let id = text(&create(&daemon, &body)["id"]);
    until("the model was asked", || (model.requests().len() == 1).then_some(()));
    daemon.poke("/api/shutdown").expect(200);
    until("the daemon takes no more connections", || daemon.connect().is_err().then_some(()));
    assert!(daemon.outlives(Duration::from_secs(1)), "it waits for the call");
    gate.open();
    assert!(daemon.wait().success());
    daemon.restart();
    let budget = daemon.get("/api/budget").expect(200);
    assert_eq!((&budget["today_spent_usd"], &budget["reserved_usd"]), (&json!(0.015), &json!(0.0)));
    assert_eq!(get(&daemon, &id)["last_result"]["status"], "completed", "{}", get(&daemon, &id));
    assert_eq!(model.requests().len(), 1, "it was not asked again");
}

#[test]
fn a_schedule_is_created_read_changed_listed_and_deleted() {
    let (_model, mut daemon, agent) = harness();
    let body = json!({ "agent_id": agent, "cron": "30 9 * * MON-FRI", "prompt": "report", "enabled": true });
    let made = create(&daemon, &body);
    let id = text(&made["schedule_id"]);
    assert_eq!((&made["id"], &made["agent_id"], &made["cron"]), (&json!(id), &json!(agent), &body["cron"]));
    assert_eq!((&made["prompt"], &made["enabled"], &made["timezone"]), (&json!("report"), &json!(true), &json!("UTC")));
    assert_eq!((&made["missed_policy"], &made["overlap_policy"]), (&json!("one"), &json!("queue")));
    assert_eq!((&made["last_run"], &made["last_result"], &made["run_count"]), (&json!(null), &json!(null), &json!(0)));
    assert!(text(&made["next_run"]).ends_with("T09:30:00.000Z"), "{made}");
    let change = json!({ "cron": "0 30 9 * * *", "timezone": "Asia/Kolkata", "prompt": "sum up", "enabled": true,
        "missed_policy": "skip", "overlap_policy": "parallel", "session_mode": "new" });
    let changed = daemon.put(&format!("/api/schedules/{id}"), &change).expect(200);
    for (key, value) in change.as_object().unwrap() {
        assert_eq!(&changed[key], value, "{key}");
    }
    assert!(text(&changed["next_run"]).ends_with("T04:00:00.000Z"), "{changed}");
    let cleared = daemon.put(&format!("/api/schedules/{id}"), &json!({ "session_mode": null })).expect(200);
    assert_eq!(cleared["session_mode"], json!(null));
    let other = create(&daemon, &json!({ "agent_id": agent, "cron": "every 5m", "prompt": "x", "enabled": false }));
    assert_eq!((&other["enabled"], &other["next_run"]), (&json!(false), &json!(null)));
    daemon.restart();
    assert_eq!(get(&daemon, &id), cleared);
    let list = daemon.get("/api/schedules").expect(200);
    assert_eq!((list["schedules"].as_array().unwrap().len(), &list["total"]), (2, &json!(2)));
    let page = daemon.get(&format!("/api/schedules?limit=1&agent_id={agent}")).expect(200);
    let next = text(&page["next_cursor"]);
    let page = daemon.get(&format!("/api/schedules?limit=1&cursor={next}")).expect(200);
    assert_eq!(page["schedules"][0]["id"], other["id"]);
    let gone = daemon.delete(&format!("/api/schedules/{id}")).expect(200);
    assert_eq!((&gone["status"], &gone["schedule_id"]), (&json!("removed"), &json!(id)));
    daemon.get(&format!("/api/schedules/{id}")).refused(404);
    daemon.delete(&format!("/api/agents/{agent}")).expect(200);
    assert_eq!(daemon.get("/api/schedules").expect(200)["total"], 0, "they go with their agent");
}

#[test]
fn what_is_wrong_is_named_and_changes_nothing() {
    let (_model, daemon, agent) = harness();
    let good = json!({ "agent_id": agent, "cron": "@daily", "prompt": "p", "enabled": true });
    let with = |key: &str, value: Value| {
        let mut body = good.clone();
        body[key] = value;
        body
    };
    for (key, value) in [
        ("cron", json!("0 25 * * *")),
        ("cron", json!("every 0s")),
        ("cron", json!("at 2001-01-01T00:00Z")),
        ("cron", json!(5)),
        ("timezone", json!("Mars/Olympus")),
        ("prompt", json!("")),
        ("enabled", json!("yes")),
        ("missed_policy", json!("sometimes")),
        ("overlap_policy", json!("never")),
        ("session_mode", json!("old")),
        ("agent_id", json!("nonsense")),
    ] {
        daemon.post("/api/schedules", &with(key, value)).refused_field(400, key);
    }
    let error = daemon.post("/api/schedules", &with("cron", json!("0 9 * * MOX"))).expect(400);
    assert_eq!((&error["column"], &error["field"]), (&json!(9), &json!("cron")));
    assert!(text(&error["error"]).contains("column 9, day of week"), "{error}");
    for key in ["agent_id", "cron", "prompt"] {
        let mut body = good.clone();
        body.as_object_mut().unwrap().remove(key);
        daemon.post("/api/schedules", &body).refused_field(400, key);
    }
    daemon.post("/api/schedules", &with("agent_id", json!(NOBODY))).refused(404);
    daemon.get(&format!("/api/schedules?agent_id={NOBODY}")).refused(404);
    daemon.get("/api/schedules?cursor=x").refused_field(400, "cursor");
    assert_eq!(daemon.get("/api/schedules").expect(200)["total"], 0);
    let id = text(&create(&daemon, &good)["id"]);
    let before = get(&daemon, &id);
    for (key, value) in [("cron", json!("x")), ("timezone", json!("x")), ("prompt", json!("")), ("name", json!(""))] {
        daemon.put(&format!("/api/schedules/{id}"), &json!({ key: value, "enabled": false })).refused_field(400, key);
    }
    daemon.put(&format!("/api/schedules/{id}"), &json!({ "agent_id": NOBODY })).refused(404);
    assert_eq!(get(&daemon, &id), before);
    daemon.get(&format!("/api/cron/jobs/{id}")).refused(404);
}

#[test]
fn a_preview_shows_the_next_times() {
    let (_model, daemon, _) = harness();
    let preview = |query: &str| daemon.get(&format!("/api/schedules/preview?{query}"));
    let body = preview("cron=0%209%20*%20*%20*&timezone=Europe/Berlin&count=3").expect(200);
    let runs = body["next_runs"].as_array().unwrap();
    assert_eq!((runs.len(), &body["timezone"]), (3, &json!("Europe/Berlin")));
    assert!(runs.iter().all(|run| text(run).contains("T07:00:00") || text(run).contains("T08:00:00")), "{body}");
    assert_eq!(preview("cron=every%201h").expect(200)["next_runs"].as_array().unwrap().len(), 5);
    preview("count=3").refused_field(400, "cron");
    preview("cron=1%202").refused_field(400, "cron");
    preview("cron=@daily&timezone=x").refused_field(400, "timezone");
    preview("cron=@daily&count=0").refused_field(400, "count");
}

#[test]
fn slots_fire_and_a_restart_neither_loses_nor_repeats_one() {
    let (_model, mut daemon, agent) = harness();
    let body = json!({ "agent_id": agent, "cron": "every 1s", "prompt": "tick", "enabled": true });
    let id = text(&create(&daemon, &body)["id"]);
    let once = json!({ "agent_id": agent, "cron": "in 1s", "prompt": "once", "enabled": true });
    let once = text(&create(&daemon, &once)["id"]);
    let settled = until("three slots have fired", || {
        let now = get(&daemon, &id);
        (now["outcomes"]["completed"].as_u64()? >= 3).then_some(now)
    });
    assert_eq!(settled["last_result"]["status"], "completed");
    assert_eq!(settled["last_result"]["text"], "echo: tick");
    daemon.restart();
    let created = text(&settled["created_at"]);
    let now = until("it goes on", || {
        let now = get(&daemon, &id);
        (now["outcomes"]["completed"].as_u64()? >= 5).then_some(now)
    });
    daemon.put(&format!("/api/schedules/{id}"), &json!({ "enabled": false })).expect(200);
    // Every slot up to the last run has one outcome.
    let last = until("nothing waits", || {
        let now = get(&daemon, &id);
        (now["open_runs"] == 0 && now["waiting"] == 0).then_some(now)
    });
    let count = |key: &str| last["outcomes"][key].as_u64().unwrap();
    let slots = count("fired") + count("missed") + count("overlapped") + count("refused");
    let ms = |text: &str| chrono::DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis();
    let upto = (ms(&text(&last["last_run"])) - ms(&created)) / 1_000;
    assert!(slots.cast_signed() >= upto && slots.cast_signed() <= upto + 2, "{slots} slots, {upto} s: {last}");
    assert_eq!(count("fired"), count("completed"));
    assert!(now["run_count"].as_u64() >= Some(5));
    let once = get(&daemon, &once);
    assert_eq!((&once["enabled"], &once["run_count"], &once["next_run"]), (&json!(false), &json!(1), &json!(null)));
    let metrics = daemon.get("/api/metrics").text();
    assert!(metrics.contains("agentsvc_schedule_outcomes_total{outcome=\"fired\"}"));
    assert!(metrics.contains("agentsvc_schedules 2"));
}

#[test]
fn a_run_by_hand_ignores_the_rule() {
    let (model, daemon, agent) = harness();
    let body = json!({ "agent_id": agent, "cron": "0 0 1 1 *", "prompt": "now", "enabled": false });
    let id = text(&create(&daemon, &body)["id"]);
    let started = daemon.poke(&format!("/api/schedules/{id}/run")).expect(200);
    assert_eq!((&started["status"], &started["schedule_id"]), (&json!("started"), &json!(id)));
    let done = until("it has run", || Some(get(&daemon, &id)).filter(|now| now["last_result"] != json!(null)));
    assert_eq!((&done["run_count"], &done["enabled"], &done["next_run"]), (&json!(1), &json!(false), &json!(null)));
    assert_eq!((&done["outcomes"]["fired"], &done["outcomes"]["completed"]), (&json!(0), &json!(1)));
    // What the world shows need not be stored yet, and a trace is read from the store.
    daemon.settle();
    let trace = daemon.get(&format!("/api/agents/{agent}/traces")).expect(200)["traces"][0].clone();
    assert_eq!((&trace["origin"], &trace["turn_id"]), (&json!("schedule"), &started["turn_id"]));
    model.fail(400);
    daemon.poke(&format!("/api/schedules/{id}/run")).expect(200);
    let failed = until("it has failed", || Some(get(&daemon, &id)).filter(|now| now["outcomes"]["failed"] == 1));
    assert_eq!(failed["last_result"]["status"], "failed");
    daemon.post("/api/agents/bulk/stop", &json!({ "agent_ids": [agent] })).expect(200);
    let refused = daemon.poke(&format!("/api/schedules/{id}/run")).expect(409);
    assert_eq!(refused["code"], "agent_not_running");
    daemon.poke(&format!("/api/schedules/{NOBODY}/run")).refused(404);
}

#[test]
fn agents_keep_schedules_of_their_own() {
    let (model, daemon, agent) = harness();
    let other = daemon.agent("b");
    let foreign = json!({ "agent_id": other, "cron": "@daily", "prompt": "p", "enabled": true });
    let foreign = text(&create(&daemon, &foreign)["id"]);
    let call = |tool: &str, input: Value| {
        model.script([Reply::calls(&[("c1", tool, &input.to_string())]), Reply::text("done")]);
        daemon.say(&agent, "go");
        let request = model.requests().pop().unwrap();
        let result = request["messages"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(result["role"], "tool", "{result}");
        text(&result["content"])
    };
    let made = call("schedule_create", json!({ "cron": "every 2h", "prompt": "look again" }));
    let made: Value = serde_json::from_str(&made).expect(&made);
    let id = text(&made["id"]);
    assert_eq!(get(&daemon, &id)["agent_id"], json!(agent));
    assert!(call("schedule_create", json!({ "cron": "0 9 * *", "prompt": "p" })).contains("5 or 6 fields"));
    let listed = call("schedule_list", json!({}));
    assert!(listed.contains(&id) && !listed.contains(&foreign), "{listed}");
    assert!(call("schedule_delete", json!({ "id": foreign })).contains("not found"));
    assert!(call("schedule_delete", json!({ "id": id })).starts_with("Deleted"));
    daemon.get(&format!("/api/schedules/{id}")).refused(404);
    get(&daemon, &foreign);
}
