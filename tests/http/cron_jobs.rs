//! Cron jobs (spec 1, Cron jobs): the records, the toggle, the status, and the tools of agents.

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::until;

const NOBODY: &str = "018f0000-0000-7000-8000-00000000dead";

fn create(client: &Client, agent: &str, name: &str, schedule: &str) -> Value {
    let body = json!({ "name": name, "schedule": schedule, "agent_id": agent, "prompt": "work", "enabled": true });
    client.post("/api/cron/jobs", &body).expect(201)
}

fn harness() -> (Model, Daemon, String) {
    let model = Model::start();
    let daemon = Daemon::with(&format!("rate_limit_per_second = 1000000\n{}", model.config()));
    let agent = daemon.agent_with("a", "[capabilities]\ntools = [\"cron_*\"]\n");
    (model, daemon, agent)
}

#[test]
fn a_job_is_created_read_changed_listed_and_deleted() {
    let (_model, mut daemon, agent) = harness();
    let other = daemon.agent("b");
    let made = create(&daemon, &agent, "nightly", "0 3 * * *");
    let id = text(&made["job_id"]);
    assert_eq!((&made["id"], &made["name"], &made["schedule"]), (&json!(id), &json!("nightly"), &json!("0 3 * * *")));
    assert!(text(&made["next_run"]).ends_with("T03:00:00.000Z") && made.get("cron").is_none(), "{made}");
    let change = json!({ "name": "noon", "schedule": "0 0 12 * * ?", "agent_id": other, "prompt": "eat" });
    let changed = daemon.put(&format!("/api/cron/jobs/{id}"), &change).expect(200);
    for (key, value) in change.as_object().unwrap() {
        assert_eq!(&changed[key], value, "{key}");
    }
    daemon.restart();
    assert_eq!(daemon.get(&format!("/api/cron/jobs/{id}")).expect(200), changed);
    create(&daemon, &agent, "second", "every 1h");
    let list = daemon.get("/api/cron/jobs").expect(200);
    assert_eq!(
        (&list["jobs"][0]["id"], &list["jobs"][1]["name"], &list["total"]),
        (&json!(id), &json!("second"), &json!(2))
    );
    assert_eq!(daemon.get("/api/schedules").expect(200)["total"], 0, "the families are apart");
    let own = daemon.get(&format!("/api/cron/jobs?agent_id={other}")).expect(200);
    assert_eq!((own["jobs"].as_array().unwrap().len(), &own["total"]), (1, &json!(1)));
    let gone = daemon.delete(&format!("/api/cron/jobs/{id}")).expect(200);
    assert_eq!((&gone["status"], &gone["job_id"]), (&json!("removed"), &json!(id)));
    daemon.get(&format!("/api/cron/jobs/{id}")).refused(404);
    daemon.delete(&format!("/api/cron/jobs/{id}")).refused(404);
}

#[test]
fn what_is_wrong_is_named() {
    let (_model, daemon, agent) = harness();
    let good = json!({ "name": "n", "schedule": "@daily", "agent_id": agent, "prompt": "p", "enabled": true });
    for (key, value) in [
        ("schedule", json!("61 * * * *")),
        ("schedule", json!("* * 31 2 *")),
        ("name", json!("")),
        ("name", json!("n".repeat(200))),
        ("prompt", json!(" ")),
        ("timezone", json!("Nowhere")),
        ("agent_id", json!("x")),
    ] {
        let mut body = good.clone();
        body[key] = value;
        daemon.post("/api/cron/jobs", &body).refused_field(400, key);
    }
    for key in ["name", "schedule", "agent_id", "prompt"] {
        let mut body = good.clone();
        body.as_object_mut().unwrap().remove(key);
        daemon.post("/api/cron/jobs", &body).refused_field(400, key);
    }
    let mut body = good;
    body["agent_id"] = json!(NOBODY);
    daemon.post("/api/cron/jobs", &body).refused(404);
    let id = text(&create(&daemon, &agent, "n", "@daily")["id"]);
    daemon.put(&format!("/api/cron/jobs/{id}/enable"), &json!({})).refused_field(400, "enabled");
    daemon.put(&format!("/api/cron/jobs/{id}/enable"), &json!({ "enabled": 1 })).refused_field(400, "enabled");
    daemon.put(&format!("/api/cron/jobs/{NOBODY}/enable"), &json!({ "enabled": true })).refused(404);
    daemon.get(&format!("/api/cron/jobs/{NOBODY}/status")).refused(404);
    daemon.get("/api/cron/jobs/nonsense/status").refused_field(400, "id");
    daemon.get("/api/cron/preview?schedule=x").refused_field(400, "schedule");
    let preview = daemon.get("/api/cron/preview?schedule=@hourly&count=2").expect(200);
    assert_eq!(preview["next_runs"].as_array().unwrap().len(), 2);
}

#[test]
fn the_toggle_and_the_status() {
    let (_model, daemon, agent) = harness();
    let id = text(&create(&daemon, &agent, "yearly", "@yearly")["id"]);
    let status = || daemon.get(&format!("/api/cron/jobs/{id}/status")).expect(200);
    let enable = |on: bool| daemon.put(&format!("/api/cron/jobs/{id}/enable"), &json!({ "enabled": on })).expect(200);
    let first = status();
    assert_eq!((&first["job_id"], &first["last_result"], &first["last_run"]), (&json!(id), &json!(null), &json!(null)));
    assert!(text(&first["next_run"]).ends_with("-01-01T00:00:00.000Z"), "{first}");
    let off = enable(false);
    assert_eq!((&off["enabled"], &off["next_run"]), (&json!(false), &json!(null)));
    assert_eq!(enable(true)["next_run"], first["next_run"]);
    let started = daemon.poke(&format!("/api/cron/jobs/{id}/run")).expect(200);
    assert_eq!((&started["status"], &started["job_id"]), (&json!("started"), &json!(id)));
    let done = until("it has run", || Some(status()).filter(|now| now["last_result"] != json!(null)));
    assert_eq!(
        (&done["last_result"]["status"], &done["last_result"]["text"]),
        (&json!("completed"), &json!("echo: work"))
    );
    assert_eq!((&done["next_run"], &done["run_count"]), (&first["next_run"], &json!(1)));
}

#[test]
fn a_stopped_agent_s_slots_are_counted() {
    let (_model, daemon, agent) = harness();
    let id = text(&create(&daemon, &agent, "ticks", "* * * * * *")["id"]);
    let status = || daemon.get(&format!("/api/cron/jobs/{id}/status")).expect(200);
    until("it ticks", || status()["outcomes"]["completed"].as_u64().filter(|count| *count > 0));
    daemon.post("/api/agents/bulk/stop", &json!({ "agent_ids": [agent] })).expect(200);
    let stopped = until("a slot finds nobody", || Some(status()).filter(|now| now["outcomes"]["agent_stopped"] != 0));
    assert_eq!(stopped["last_result"]["status"], "agent_stopped");
    daemon.delete(&format!("/api/agents/{agent}")).expect(200);
    daemon.get(&format!("/api/cron/jobs/{id}/status")).refused(404);
}

#[test]
fn agents_keep_jobs_of_their_own() {
    let (model, daemon, agent) = harness();
    let other = daemon.agent("b");
    let foreign = text(&create(&daemon, &other, "foreign", "@daily")["id"]);
    let call = |tool: &str, input: Value| {
        model.script([Reply::calls(&[("c1", tool, &input.to_string())]), Reply::text("done")]);
        daemon.say(&agent, "go");
        let request = model.requests().pop().unwrap();
        text(&request["messages"].as_array().unwrap().last().unwrap()["content"])
    };
    let made = call("cron_create", json!({ "name": "mine", "schedule": "0 9 * * MON", "prompt": "plan" }));
    let made: Value = serde_json::from_str(&made).expect(&made);
    let id = text(&made["id"]);
    let listed = call("cron_list", json!({ "limit": 5 }));
    assert!(listed.contains(&id) && listed.contains("\"schedule\":\"0 9 * * MON\"") && !listed.contains(&foreign));
    assert!(call("cron_cancel", json!({ "id": foreign })).contains("not found"));
    assert!(call("cron_cancel", json!({ "id": id })).starts_with("Deleted"));
    daemon.get(&format!("/api/cron/jobs/{id}")).refused(404);
    assert!(call("cron_create", json!({ "name": "", "schedule": "@daily", "prompt": "p" })).contains("name"));
}
