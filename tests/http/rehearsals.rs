//! Rehearsals: a copy of the world runs ahead in virtual time, and the live one does not notice (issue 7, Fork and
//! rehearsal).

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use chrono::{Timelike, Utc};
use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::{clear_of_the_hour, until};

const NOBODY: &str = "018f0000-0000-7000-8000-00000000dead";
/// A context of 1,000 tokens and answers of 100, a dollar for a million of each.
const CONFIG: &str = "[providers.openai]\ncontext_tokens = 1000\n[prices.\"openai/echo-1\"]\ninput_per_m = 1.0\n\
                      output_per_m = 1.0\n[budget]\nanswer_tokens_max = 100\n";

fn harness() -> (Model, Daemon) {
    // What is compared has the moments in it at which budgets begin anew.
    clear_of_the_hour(Duration::from_secs(60));
    let model = Model::start();
    let daemon = Daemon::with(&format!("rate_limit_per_second = 1000000\n{}{CONFIG}", model.config()));
    (model, daemon)
}

fn schedule(client: &Client, agent: &str, cron: &str) -> String {
    let body = json!({ "agent_id": agent, "cron": cron, "prompt": "look around", "enabled": true });
    text(&client.post("/api/schedules", &body).expect(201)["id"])
}

/// A minute of the hour that is a third of an hour away: what fires then does not fire while a test runs.
fn far_minute() -> u32 {
    (Utc::now().minute() + 20) % 60
}

/// Begins a rehearsal and waits for its end.
fn rehearse(client: &Client, body: &Value) -> Value {
    let begun = client.post("/api/world/rehearsals", body);
    let place = begun.header("location").unwrap_or_default().to_owned();
    let id = text(&begun.expect(202)["id"]);
    assert_eq!(place, format!("/api/world/rehearsals/{id}"));
    ended(client, &id)
}

fn ended(client: &Client, id: &str) -> Value {
    until("the rehearsal has ended", || {
        let found = client.get(&format!("/api/world/rehearsals/{id}")).expect(200);
        (found["state"] != "running").then_some(found)
    })
}

fn fires(client: &Client, id: &Value, query: &str) -> Vec<Value> {
    let list = client.get(&format!("/api/world/rehearsals/{}/fires{query}", text(id))).expect(200);
    list["fires"].as_array().unwrap().clone()
}

/// All that clients see of the live world.
fn world(client: &Client) -> BTreeMap<&'static str, Value> {
    let paths =
        ["/api/agents", "/api/schedules", "/api/triggers", "/api/sessions", "/api/usage/summary", "/api/budget"];
    paths.into_iter().map(|path| (path, client.get(path).expect(200))).collect()
}

#[test]
fn two_days_are_rehearsed_and_the_live_world_does_not_notice() {
    let (model, daemon) = harness();
    let (busy, spender) = (daemon.agent("busy"), daemon.agent_with("spender", "[limits]\ndaily_limit_usd = 0.002\n"));
    let (first, second) = (far_minute(), (far_minute() + 10) % 60);
    let even = schedule(&daemon, &busy, &format!("{first} */2 * * *"));
    let often = schedule(&daemon, &spender, &format!("{second} * * * *"));
    let trigger = json!({ "agent_id": busy, "pattern": { "turn_completed": { "name_pattern": "spender" } },
        "prompt_template": "{{event}}", "cooldown_secs": 7_000 });
    let trigger = text(&daemon.post("/api/triggers", &trigger).expect(201)["trigger_id"]);
    let before = world(&daemon);
    let found = rehearse(&daemon, &json!({ "for": "2d" }));
    assert_eq!(
        (&found["state"], &found["from"], &found["model"]),
        (&json!("completed"), &json!("now"), &json!("builtin"))
    );
    assert_eq!(found["progress"]["share"], 1.0);
    let all = fires(&daemon, &found["id"], "");
    let slots = |id: &str| -> Vec<String> {
        all.iter().filter(|fire| fire["id"] == id).map(|fire| text(&fire["nominal_at"])).collect()
    };
    // Exactly the slots that the previews say.
    for (id, rule) in [(&even, format!("{first}%20*/2%20*%20*%20*")), (&often, format!("{second}%20*%20*%20*%20*"))] {
        let preview = daemon.get(&format!("/api/schedules/preview?cron={rule}&count=60")).expect(200);
        let until = text(&found["until"]);
        let expected: Vec<String> =
            preview["next_runs"].as_array().unwrap().iter().map(text).filter(|at| *at < until).collect();
        assert!(expected.len() >= 24);
        assert_eq!(slots(id), expected);
    }
    let report = &found["report"];
    let count = |outcome: &str| all.iter().filter(|fire| fire["outcome"] == outcome).count();
    assert_eq!(report["outcomes"]["fired"], count("fired"));
    assert_eq!(report["fires_listed"], all.len());
    assert!(count("over_budget") > 0 && count("cooling_down") > 0, "{report}");
    assert!(
        all.iter().any(|fire| fire["id"] == trigger && fire["outcome"] == "fired" && fire["event"] == "turn_completed")
    );
    let out_of_money: Vec<&Value> =
        report["budgets"].as_array().unwrap().iter().filter(|line| line["event"] == "exceeded").collect();
    assert!(!out_of_money.is_empty(), "{report}");
    assert_eq!(
        (&out_of_money[0]["agent_name"], &out_of_money[0]["period"], &out_of_money[0]["limit_usd"]),
        (&json!("spender"), &json!("daily"), &json!(0.002))
    );
    assert_eq!(report["cost"]["agents_estimated"], 2);
    assert!(report["cost"]["rehearsed_usd"].as_f64().unwrap() > 0.0);
    let buckets = report["timeline"]["buckets"].as_array().unwrap();
    assert_eq!(buckets.iter().map(|bucket| bucket["fires"].as_u64().unwrap()).sum::<u64>(), count("fired") as u64);
    assert_eq!(
        report["sources"].as_array().unwrap().iter().filter(|source| source["id"] == even).count(),
        1,
        "{report}"
    );
    // Nothing left the copy.
    assert_eq!(world(&daemon), before);
    assert!(model.requests().is_empty(), "no model was asked");
    // The same again is the same again: the world did not change, and neither did the seed.
    let until_then = json!({ "until": found["until"], "seed": 1 });
    let again = rehearse(&daemon, &until_then);
    let keep = |fire: &Value| (text(&fire["id"]), text(&fire["nominal_at"]), text(&fire["outcome"]));
    let (one, other): (Vec<_>, Vec<_>) =
        (all.iter().map(keep).collect(), fires(&daemon, &again["id"], "").iter().map(keep).collect());
    assert_eq!(one, other);
}

#[test]
fn pages_filters_and_csv_are_the_same_list() {
    let (_model, daemon) = harness();
    let agent = daemon.agent("=danger()");
    let job = json!({ "agent_id": agent, "name": "+job, \"x\"", "schedule": "every 10m", "prompt": "p" });
    daemon.post("/api/cron/jobs", &job).expect(201);
    let found = rehearse(&daemon, &json!({ "for": "1d" }));
    let (id, all) = (text(&found["id"]), fires(&daemon, &found["id"], ""));
    assert!((143..=144).contains(&all.len()), "{}", all.len());
    let (mut paged, mut query) = (Vec::new(), "?limit=50".to_owned());
    loop {
        let page = daemon.get(&format!("/api/world/rehearsals/{id}/fires{query}")).expect(200);
        assert_eq!(page["total"], all.len());
        paged.extend(page["fires"].as_array().unwrap().clone());
        let Some(next) = page["next_cursor"].as_str() else { break };
        query = format!("?limit=50&cursor={next}");
    }
    assert_eq!(paged, all);
    assert_eq!(fires(&daemon, &found["id"], "?outcome=fired").len(), all.len());
    assert!(fires(&daemon, &found["id"], "?outcome=missed").is_empty());
    daemon.get(&format!("/api/world/rehearsals/{id}/fires?outcome=lost")).refused_field(400, "outcome");
    daemon.get(&format!("/api/world/rehearsals/{id}/fires?cursor=x")).refused_field(400, "cursor");
    let csv = daemon.get(&format!("/api/world/rehearsals/{id}/fires.csv"));
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
    let csv = csv.text();
    let lines: Vec<&str> = csv.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), all.len() + 1);
    assert!(lines[0].starts_with("number,kind,id,name,agent_id,agent_name,nominal_at,fired_at,outcome"));
    assert!(lines[1].starts_with("1,cron,") && lines[1].contains("\"'+job, \"\"x\"\"\""), "{}", lines[1]);
    assert!(lines[1].contains("\"'=danger()\""), "{}", lines[1]);
    // The command line sees the same.
    let file = daemon.home().join("fires.csv");
    let output = daemon.cli(&["rehearse", "--for", "1d", "--csv", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("completed from ") && said.contains(" fired"), "{said}");
    // It begins a moment later: a slot more or less.
    let count = fs::read_to_string(file).unwrap().split_terminator("\r\n").count();
    assert!(count.abs_diff(lines.len()) <= 1, "{count} and {}", lines.len());
    let output = daemon.cli(&["--json", "rehearse", "--for", "1h"]);
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["state"], "completed");
    assert!(!daemon.cli(&["rehearse", "--for", "never"]).status.success());
}

#[test]
fn what_is_injected_happens_in_the_copy_alone() {
    let (model, daemon) = harness();
    let agent = daemon.agent("a");
    let trigger =
        json!({ "agent_id": agent, "pattern": { "custom": { "event_type": "alarm" } }, "prompt_template": "go" });
    daemon.post("/api/triggers", &trigger).expect(201);
    let before = world(&daemon);
    let until = rehearse(&daemon, &json!({ "for": "1h" }));
    let from = chrono::DateTime::parse_from_rfc3339(&text(&until["ended_at"])).unwrap();
    let at = |minutes: i64| (from + chrono::Duration::minutes(minutes)).to_rfc3339();
    let events = json!([
        { "at": at(90), "kind": "custom", "event_type": "alarm", "payload": { "level": 3 } },
        { "at": at(30), "kind": "message", "agent_id": agent, "message": "hello" },
        { "at": at(40), "kind": "message", "agent_id": NOBODY, "message": "hello" },
        { "at": at(50), "kind": "custom", "event_type": "Bad Type" },
    ]);
    let found = rehearse(&daemon, &json!({ "for": "3h", "events": events }));
    let report = &found["report"];
    assert_eq!(report["events"]["told"], 2);
    let refused = report["events"]["refused"].as_array().unwrap();
    assert_eq!(refused.iter().map(|line| line["number"].as_u64().unwrap()).collect::<Vec<_>>(), [2, 3]);
    let all = fires(&daemon, &found["id"], "");
    assert_eq!((all.len(), &all[0]["outcome"], &all[0]["event"]), (1, &json!("fired"), &json!("custom")));
    assert_eq!(report["turns"]["completed"], 2);
    assert_eq!(world(&daemon), before);
    assert!(model.requests().is_empty());
}

#[test]
fn recorded_turns_come_back_with_their_tokens_and_their_cost() {
    let (model, daemon) = harness();
    let agent = daemon.agent_with("a", "");
    for _ in 0..4 {
        model.script([Reply::text("well").usage(Some((500, 40)))]);
        daemon.say(&agent, "x");
    }
    let asked = model.requests().len();
    schedule(&daemon, &agent, &format!("{} * * * *", far_minute()));
    let found = rehearse(&daemon, &json!({ "for": "1d", "model": "recorded", "seed": 7 }));
    let report = &found["report"];
    let turns = report["turns"]["completed"].as_u64().unwrap();
    assert_eq!(turns, 24);
    assert_eq!((&report["tokens"]["input"], &report["tokens"]["output"]), (&json!(500 * turns), &json!(40 * turns)));
    let line = &report["agents"][0];
    assert_eq!((&line["basis"], &line["history_turns"]), (&json!("history"), &json!(4)));
    let expected = 540.0e-6 * turns as f64;
    for key in ["forecast_usd", "low_usd", "high_usd", "rehearsed_usd"] {
        let usd = report["cost"][key].as_f64().unwrap();
        assert!((usd - expected).abs() < 1e-9, "{key} {usd}: all turns cost the same, so that the interval is a point");
    }
    assert_eq!(model.requests().len(), asked);
}

#[test]
fn what_is_wrong_is_named() {
    let (_model, daemon) = harness();
    for (body, field) in [
        (json!({}), "for"),
        (json!({ "for": "7" }), "for"),
        (json!({ "for": "0d" }), "for"),
        (json!({ "for": "367d" }), "for"),
        (json!({ "for": 7 }), "for"),
        (json!({ "for": "1d", "until": "2099-01-01T00:00:00Z" }), "until"),
        (json!({ "until": "tomorrow" }), "until"),
        (json!({ "until": "2001-01-01T00:00:00Z" }), "until"),
        (json!({ "until": "2999-01-01T00:00:00Z" }), "until"),
        (json!({ "for": "1d", "from": "yesterday" }), "from"),
        (json!({ "for": "1d", "model": "gpt" }), "model"),
        (json!({ "for": "1d", "seed": -1 }), "seed"),
        (json!({ "for": "1d", "seed": 9_007_199_254_740_993_u64 }), "seed"),
        (json!({ "for": "1d", "events": [{ "at": "x", "kind": "custom" }] }), "events[0].at"),
        (
            json!({ "for": "1d", "events": [{ "at": "2001-01-01T00:00:00Z", "kind": "custom", "event_type": "a" }] }),
            "events[0].at",
        ),
        (
            json!({ "for": "1d", "events": [{ "at": "2099-01-01T00:00:00Z", "kind": "custom" }] }),
            "events[0].event_type",
        ),
        (json!({ "for": "1d", "events": [{ "at": "2099-01-01T00:00:00Z", "kind": "message" }] }), "events[0].message"),
        (json!({ "for": "1d", "events": [{ "at": "2099-01-01T00:00:00Z", "kind": "bang" }] }), "events[0].kind"),
        (
            json!({ "for": "1d", "events": vec![json!({ "at": "2099-01-01T00:00:00Z", "kind": "custom" }); 1_001] }),
            "events",
        ),
    ] {
        daemon.post("/api/world/rehearsals", &body).refused_field(400, field);
    }
    daemon.post("/api/world/rehearsals", &json!({ "for": "1d", "from": NOBODY })).refused(404);
    assert_eq!(daemon.get("/api/world/rehearsals").expect(200), json!({ "rehearsals": [] }), "nothing began");
    daemon.get(&format!("/api/world/rehearsals/{NOBODY}")).refused(404);
    daemon.get(&format!("/api/world/rehearsals/{NOBODY}/fires")).refused(404);
    daemon.get(&format!("/api/world/rehearsals/{NOBODY}/fires.csv")).refused(404);
    daemon.delete(&format!("/api/world/rehearsals/{NOBODY}")).refused(404);
    daemon.get("/api/world/rehearsals/x").refused_field(400, "id");
}

/// A rehearsal that takes long: a schedule of every second, for a year.
fn long(daemon: &Daemon) -> String {
    let agent = daemon.agent("restless");
    schedule(daemon, &agent, "every 1s");
    // The first slots of the live world come soon; they do not matter here.
    text(&daemon.post("/api/world/rehearsals", &json!({ "for": "366d" })).expect(202)["id"])
}

#[test]
fn one_runs_at_a_time_and_can_be_cancelled() {
    let (_model, daemon) = harness();
    let id = long(&daemon);
    until("it is under way", || {
        let found = daemon.get(&format!("/api/world/rehearsals/{id}")).expect(200);
        assert_eq!(found["state"], "running");
        (found["progress"]["fires"].as_u64()? > 0).then_some(())
    });
    let is_told = |sample: &str| daemon.get("/api/metrics").text().lines().any(|line| line == sample);
    assert!(is_told("agentsvc_rehearsals_running 1"));
    for reply in [
        daemon.post("/api/world/rehearsals", &json!({ "for": "1d" })),
        daemon.get(&format!("/api/world/rehearsals/{id}/fires")),
        daemon.get(&format!("/api/world/rehearsals/{id}/fires.csv")),
    ] {
        assert_eq!(reply.expect(409)["code"], "rehearsal_running");
    }
    assert_eq!(daemon.delete(&format!("/api/world/rehearsals/{id}")).expect(202)["status"], "cancelling");
    let found = ended(&daemon, &id);
    assert_eq!(found["state"], "cancelled");
    let share = found["progress"]["share"].as_f64().unwrap();
    assert!(share > 0.0 && share < 1.0, "{share}");
    assert!(found["report"]["outcomes"]["fired"].as_u64().unwrap() > 0);
    let file = daemon.home().join(format!("data/rehearsals/{id}.fires"));
    assert!(file.is_file(), "its fires are there as far as it came");
    assert!(!fires(&daemon, &found["id"], "?limit=5").is_empty());
    assert_eq!(daemon.delete(&format!("/api/world/rehearsals/{id}")).status, 204);
    assert!(!file.exists());
    daemon.get(&format!("/api/world/rehearsals/{id}")).refused(404);
    // Another may run now; the oldest go when there are many.
    for _ in 0..12 {
        rehearse(&daemon, &json!({ "for": "1s" }));
    }
    let kept = daemon.get("/api/world/rehearsals").expect(200)["rehearsals"].as_array().unwrap().len();
    assert_eq!(kept, 10);
    until("all of them are counted", || is_told("agentsvc_rehearsals_running 0").then_some(()));
    assert!(is_told("agentsvc_rehearsals_total{outcome=\"cancelled\"} 1"));
    assert!(is_told("agentsvc_rehearsals_total{outcome=\"completed\"} 12"));
    assert_eq!(fs::read_dir(daemon.home().join("data/rehearsals")).unwrap().count(), 10);
}

#[test]
fn a_kill_leaves_nothing_of_it_behind() {
    let (_model, mut daemon) = harness();
    let id = long(&daemon);
    let dir = daemon.home().join("data/rehearsals");
    until("its list of fires is there", || dir.join(format!("{id}.fires")).is_file().then_some(()));
    daemon.kill();
    assert!(dir.join(format!("{id}.fires")).is_file(), "a kill tidies nothing up");
    daemon.restart();
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0, "the start does");
    assert_eq!(daemon.get("/api/world/rehearsals").expect(200), json!({ "rehearsals": [] }));
    daemon.get(&format!("/api/world/rehearsals/{id}")).refused(404);
    rehearse(&daemon, &json!({ "for": "1m" }));
}
