//! What turns did: traces, metrics, deliveries and log lines of an agent (spec 1, Other agent routes).

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::until;

fn traces(client: &Client, agent: &str, query: &str) -> Value {
    client.get(&format!("/api/agents/{agent}/traces{query}")).expect(200)
}

fn deliveries(client: &Client, agent: &str) -> Value {
    client.get(&format!("/api/agents/{agent}/deliveries")).expect(200)
}

fn metrics(client: &Client, agent: &str) -> Value {
    client.get(&format!("/api/agents/{agent}/metrics")).expect(200)
}

fn logs(client: &Client, agent: &str, query: &str) -> Vec<Value> {
    client.get(&format!("/api/agents/{agent}/logs{query}")).expect(200)["logs"].as_array().unwrap().clone()
}

fn items(body: &Value, key: &str) -> Vec<Value> {
    body[key].as_array().unwrap().clone()
}

#[test]
fn a_trace_tells_model_and_tool_calls() {
    let model = Model::start();
    let mut daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "[capabilities]\ntools = [\"system_time\"]\n");
    assert_eq!(traces(&daemon, &agent, "")["traces"], json!([]));
    model.script([Reply::calls(&[("c1", "system_time", "{}")]), Reply::text("noon")]);
    let answer = daemon.say(&agent, "what time is it");
    daemon.restart();
    let body = traces(&daemon, &agent, "");
    assert_eq!((&body["total"], &body["running"]), (&json!(1), &json!([])));
    let trace = &body["traces"][0];
    assert_eq!(trace["turn_id"], answer["turn_id"]);
    assert_eq!(trace["session_id"], answer["session_id"]);
    assert_eq!((&trace["status"], &trace["origin"]), (&json!("done"), &json!("api")));
    assert_eq!((&trace["iterations"], &trace["tool_calls"]), (&json!(2), &json!(1)));
    assert_eq!((&trace["input_tokens"], &trace["output_tokens"]), (&json!(22), &json!(14)));
    let steps: Vec<_> = items(trace, "steps").iter().map(|step| (text(&step["kind"]), text(&step["name"]))).collect();
    let expected = [("model", "openai/echo-1"), ("tool", "system_time"), ("model", "openai/echo-1")];
    assert_eq!(steps, expected.map(|(kind, name)| (kind.to_owned(), name.to_owned())));
    assert!(items(trace, "steps").iter().all(|step| step["status"] == "ok" && step["duration_ms"].is_u64()));
}

#[test]
fn pages_go_back_in_time_and_sessions_are_told_apart() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let side = text(&daemon.poke(&format!("/api/agents/{agent}/sessions")).expect(201)["session_id"]);
    let mut turns = Vec::new();
    for n in 0..5 {
        turns.push(daemon.say(&agent, &format!("m{n}"))["turn_id"].clone());
        daemon.say_in(&agent, &side, "aside");
    }
    turns.reverse();
    let mut seen = Vec::new();
    let mut cursor = String::new();
    for _ in 0..4 {
        let body = traces(&daemon, &agent, &format!("?limit=3{cursor}"));
        seen.extend(items(&body, "traces"));
        match body["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), 10);
    let mine: Vec<_> = seen.iter().filter(|t| t["session_id"] != side.as_str()).map(|t| t["turn_id"].clone()).collect();
    assert_eq!(mine, turns, "newest first");
    let aside = traces(&daemon, &agent, &format!("?session_id={side}&limit=2"));
    assert_eq!(items(&aside, "traces").len(), 2);
    assert!(aside["next_cursor"].is_string());
    assert_eq!(items(&traces(&daemon, &agent, &format!("?session_id={side}")), "traces").len(), 5);
    for (bad, field) in [("limit=0", "limit"), ("cursor=x", "cursor"), ("session_id=x", "session_id")] {
        daemon.get(&format!("/api/agents/{agent}/traces?{bad}")).refused_field(400, field);
        daemon.get(&format!("/api/agents/{agent}/deliveries?{bad}")).refused_field(400, field);
    }
}

#[test]
fn turns_under_way_are_shown() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    model.hold();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (client, agent) = (daemon.client(), &agent);
            scope.spawn(move || client.say(agent, "hello"));
        }
        let running = until("one turn runs and one waits", || {
            let running = items(&traces(&daemon, &agent, ""), "running");
            (running.len() == 2 && running.iter().any(|turn| turn["state"] == "calling")).then_some(running)
        });
        assert!(running.iter().any(|turn| turn["state"] == "queued"), "{running:?}");
        let statuses: Vec<_> =
            items(&deliveries(&daemon, &agent), "deliveries").iter().map(|d| text(&d["status"])).collect();
        assert_eq!(statuses, ["queued", "running"]);
        assert_eq!(metrics(&daemon, &agent)["turns"]["open"], 2);
        model.release();
    });
    assert_eq!(traces(&daemon, &agent, "")["running"], json!([]));
}

#[test]
fn deliveries_tell_what_became_of_messages() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    let answered = daemon.say(&agent, "one");
    model.fail(400);
    daemon.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "two" })).refused(500);
    let body = deliveries(&daemon, &agent);
    assert_eq!(body["total"], 2);
    let [failed, first] = &items(&body, "deliveries")[..] else { panic!("two deliveries: {body}") };
    assert_eq!((&first["status"], &first["channel"]), (&json!("answered"), &json!("api")));
    assert_eq!((&first["turn_id"], &first["session_id"]), (&answered["turn_id"], &answered["session_id"]));
    assert_eq!((&failed["status"], &failed["code"]), (&json!("failed"), &json!("provider_refused")));
    assert!(failed["received_at"].is_string() && failed["answered_at"].is_string());
}

#[test]
fn metrics_count_turns_errors_and_times() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "[capabilities]\ntools = [\"system_time\"]\n");
    let none = metrics(&daemon, &agent);
    assert_eq!((&none["window"]["turns"], &none["error_rate"]), (&json!(0), &json!(0.0)));
    model.script([Reply::calls(&[("c1", "system_time", "{}"), ("c2", "no_such_tool", "{}")]), Reply::text("noon")]);
    daemon.say(&agent, "one");
    daemon.say(&agent, "two");
    daemon.say(&agent, "three");
    model.fail(400);
    daemon.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "four" })).refused(500);
    let body = metrics(&daemon, &agent);
    assert_eq!(body["tokens"], json!({ "input": 44, "output": 28, "total": 72 }));
    assert_eq!((&body["window"]["turns"], &body["window"]["turns_max"]), (&json!(4), &json!(1_000)));
    assert_eq!((&body["turns"]["done"], &body["turns"]["failed"]), (&json!(3), &json!(1)));
    assert_eq!(body["error_rate"], 0.25);
    assert_eq!((&body["tool_calls"]["total"], &body["tool_calls"]["errors"]), (&json!(2), &json!(1)));
    for key in ["p50", "p95", "p99", "max"] {
        assert!(body["latency_ms"][key].is_u64(), "{key}: {body}");
    }
    assert!(body["latency_ms"]["avg"].as_f64().is_some_and(|avg| avg >= 0.0));
}

#[test]
fn logs_are_of_this_agent_and_outlive_a_restart() {
    let model = Model::start();
    let mut daemon = Daemon::with(&model.config());
    let (agent, other) = (daemon.agent_with("a", ""), daemon.agent_with("b", ""));
    daemon.say(&agent, "hello");
    let lines = logs(&daemon, &agent, "");
    assert!(lines.iter().all(|line| line["agent"] == agent.as_str()), "{lines:?}");
    assert!(lines.iter().any(|line| line["kind"] == "agent_spawned"), "{lines:?}");
    assert_eq!(lines[0]["message"], "turn done");
    assert!(logs(&daemon, &other, "").iter().all(|line| line["agent"] == other.as_str()));
    model.fail(400);
    daemon.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "x" })).refused(500);
    daemon.restart();
    let failed = logs(&daemon, &agent, "?level=warn");
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert!(text(&failed[0]["message"]).starts_with("turn failed: "));
    assert_eq!(logs(&daemon, &agent, "?limit=1").len(), 1);
    daemon.get(&format!("/api/agents/{agent}/logs?level=loud")).refused_field(400, "level");
    daemon.get(&format!("/api/agents/{agent}/logs?limit=0")).refused_field(400, "limit");
}

#[test]
fn an_unknown_agent_has_none_of_these() {
    let daemon = Daemon::start();
    let nobody = "018f0000-0000-7000-8000-00000000dead";
    for what in ["traces", "metrics", "deliveries", "logs"] {
        daemon.get(&format!("/api/agents/{nobody}/{what}")).refused(404);
        daemon.get(&format!("/api/agents/nonsense/{what}")).refused_field(400, "id");
    }
}
