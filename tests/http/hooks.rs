//! Hooks over HTTP: tokens, rates, fields, idempotency also over a kill (spec 3, Webhooks).

use std::thread;

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Reply;
use crate::support::model::Model;
use crate::support::until;

const TOKEN: &str = "a-token-of-hooks-with-32-bytes-or-more";
const BEARER: (&str, &str) = ("authorization", "Bearer a-token-of-hooks-with-32-bytes-or-more");
const JSON: (&str, &str) = ("content-type", "application/json");

/// A daemon whose hooks have a token of their own.
fn daemon(model: &Model, more: &str) -> Daemon {
    let config = format!(
        "rate_limit_per_second = 100000\n{}[webhook_triggers]\nenabled = true\ntoken_env = \"HOOK_TOKEN\"\n{more}",
        model.config()
    );
    Daemon::with_env(&config, &[("HOOK_TOKEN", TOKEN)])
}

fn call(daemon: &Daemon, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
    let headers: Vec<_> = headers.iter().copied().chain([JSON]).collect();
    daemon.send("POST", path, &headers, Some(body.to_string().as_bytes()))
}

fn hook(daemon: &Daemon, path: &str, body: &Value) -> Reply {
    call(daemon, path, &[BEARER], body)
}

#[test]
fn hooks_are_off_unless_the_configuration_wants_them() {
    let daemon = Daemon::start();
    for path in ["/api/hooks/wake", "/api/hooks/agent", "/hooks/wake", "/hooks/agent"] {
        let reply = hook(&daemon, path, &json!({ "text": "x", "message": "x" }));
        reply.refused(404);
        assert!(reply.text().contains("webhook_triggers_off"), "{}", reply.text());
    }
}

#[test]
fn only_the_token_lets_callers_in() {
    let model = Model::start();
    // The agent of a fresh home answers: it is the only one.
    let daemon = daemon(&model, "");
    for headers in [&[][..], &[("authorization", "Bearer wrong")], &[("authorization", "Basic eDp5")]] {
        let reply = call(&daemon, "/api/hooks/agent", headers, &json!({ "message": "x" }));
        reply.refused(401);
        assert!(reply.header("www-authenticate").is_some_and(|it| it.starts_with("Bearer realm=\"")));
        assert!(reply.text().contains("webhook_invalid_token") && !reply.text().contains(TOKEN));
    }
    assert_eq!(hook(&daemon, "/hooks/agent", &json!({ "message": "x" })).expect(200)["status"], "completed");
    assert!(!daemon.stderr().contains(TOKEN));
}

#[test]
fn without_a_token_of_their_own_hooks_want_the_key_of_the_api() {
    let model = Model::start();
    let key = "k".repeat(32);
    let config = format!("api_key = \"{key}\"\n{}[webhook_triggers]\nenabled = true\n", model.config());
    let mut daemon = Daemon::with(&config);
    daemon.use_key(&key);
    let body = json!({ "message": "x" });
    let with_key = format!("Bearer {key}");
    assert_eq!(call(&daemon, "/api/hooks/agent", &[("authorization", &with_key)], &body).status, 200);
    let bare = daemon.keyed("");
    let headers = [JSON, ("authorization", "Bearer no")];
    bare.send("POST", "/api/hooks/agent", &headers, Some(body.to_string().as_bytes())).refused(401);
}

#[test]
fn a_token_that_is_too_short_lets_no_one_in() {
    let model = Model::start();
    let config = format!("{}[webhook_triggers]\nenabled = true\ntoken_env = \"HOOK_TOKEN\"\n", model.config());
    let daemon = Daemon::with_env(&config, &[("HOOK_TOKEN", "short")]);
    let reply = call(&daemon, "/api/hooks/agent", &[("authorization", "Bearer short")], &json!({ "message": "x" }));
    assert!(reply.refused(503).contains("token") && reply.text().contains("webhook_token_unusable"));
    assert!(daemon.stderr().contains("HOOK_TOKEN"));
}

#[test]
fn an_agent_answers_in_a_session_of_its_hooks() {
    let model = Model::start();
    let daemon = daemon(&model, "");
    let agent = daemon.agent_with("scout", "");
    let current = text(&daemon.detail(&agent)["session_id"]);
    let answer = hook(&daemon, "/api/hooks/agent", &json!({ "message": "hello", "agent": "scout" })).expect(200);
    assert_eq!((&answer["status"], &answer["agent_id"]), (&json!("completed"), &json!(agent)));
    assert_eq!(answer["response"], "echo: hello");
    assert!(answer["usage"]["input_tokens"].is_u64() && answer["usage"]["output_tokens"].is_u64());
    assert!(text(&answer["session_id"]) != current);
    let again = hook(&daemon, "/hooks/agent", &json!({ "message": "more", "agent": "scout" })).expect(200);
    assert_eq!(again["session_id"], answer["session_id"], "one conversation of all hooks");
    assert_eq!(hook(&daemon, "/hooks/agent", &json!({ "message": "x", "agent": agent })).status, 200);
    let trail = daemon.get("/api/audit/recent?n=50").expect(200).to_string();
    assert!(trail.contains("hook_called"));
}

#[test]
fn wrong_fields_are_named_and_change_nothing() {
    let model = Model::start();
    let daemon = daemon(&model, "rate_limit_per_minute = 1000\n");
    let agent = |body: Value| hook(&daemon, "/api/hooks/agent", &body);
    agent(json!({})).refused_field(400, "message");
    agent(json!({ "message": " " })).refused_field(400, "message");
    agent(json!({ "message": "x".repeat(16_385) })).refused_field(400, "message");
    for secs in [0, 9, 601] {
        agent(json!({ "message": "x", "timeout_secs": secs })).refused_field(400, "timeout_secs");
    }
    agent(json!({ "message": "x", "model": "no-such-model" })).refused_field(400, "model");
    agent(json!({ "message": "x", "deliver": true })).refused_field(400, "channel");
    agent(json!({ "message": "x", "deliver": true, "channel": "ops" })).refused_field(400, "channel");
    agent(json!({ "message": "x", "channel": "c".repeat(65) })).refused_field(400, "channel");
    agent(json!({ "message": "x", "agent": "no-such-agent" })).refused_field(404, "agent");
    agent(json!({ "message": "x".repeat(70_000) })).refused(413);
    let wake = |body: Value| hook(&daemon, "/api/hooks/wake", &body);
    wake(json!({})).refused_field(400, "text");
    wake(json!({ "text": "x".repeat(4_097) })).refused_field(400, "text");
    wake(json!({ "text": "a\u{7}b" })).refused_field(400, "text");
    wake(json!({ "text": "x", "mode": "later" })).refused_field(400, "mode");
    let long = "k".repeat(256);
    let keyed = call(&daemon, "/api/hooks/agent", &[BEARER, ("idempotency-key", &long)], &json!({ "message": "x" }));
    keyed.refused_field(400, "Idempotency-Key");
    assert_eq!(model.requests().len(), 0);
    daemon.agent_with("b", "");
    agent(json!({ "message": "x" })).refused_field(400, "agent");
    wake(json!({ "text": "x" })).refused_field(400, "agent");
}

#[test]
fn calls_of_a_minute_are_bounded() {
    let model = Model::start();
    let daemon = daemon(&model, "rate_limit_per_minute = 2\n");
    for _ in 0..2 {
        hook(&daemon, "/api/hooks/wake", &json!({ "text": "x", "mode": "next_heartbeat" })).expect(200);
    }
    let refused = hook(&daemon, "/api/hooks/agent", &json!({ "message": "x" }));
    refused.refused(429);
    assert!(refused.text().contains("webhook_rate_limited") && refused.header("retry-after").is_some());
}

#[test]
fn a_repetition_gets_the_first_answer_also_after_a_kill() {
    let model = Model::start();
    let mut daemon = daemon(&model, "rate_limit_per_minute = 1000\n");
    let body = json!({ "message": "once" });
    let key = [BEARER, ("idempotency-key", "delivery-1")];
    let first = call(&daemon, "/api/hooks/agent", &key, &body).expect(200);
    assert_eq!(call(&daemon, "/hooks/agent", &key, &body).expect(200), first);
    daemon.restart();
    assert_eq!(call(&daemon, "/api/hooks/agent", &key, &body).expect(200), first);
    let other = call(&daemon, "/api/hooks/agent", &key, &json!({ "message": "other" }));
    assert!(other.refused(409).contains("key") && other.text().contains("hook_key_reused"));
    assert_eq!(model.requests().len(), 1, "one turn");
}

#[test]
fn a_call_that_a_kill_interrupts_is_answered_once_to_its_repetition() {
    let model = Model::start();
    let mut daemon = daemon(&model, "rate_limit_per_minute = 1000\n");
    let agent = daemon.agent_with("a", "");
    model.hold();
    let key = [("authorization", BEARER.1), JSON, ("idempotency-key", "k")];
    let body = json!({ "message": "once", "agent": "a" }).to_string();
    let (client, sent) = (daemon.client(), body.clone());
    let asked = thread::spawn(move || client.try_send("POST", "/api/hooks/agent", &key, Some(sent.as_bytes())).is_ok());
    until("the model is asked", || (model.waiting() == 1).then_some(()));
    daemon.kill();
    assert!(!asked.join().expect("the asker ends"), "it heard no answer");
    model.release();
    daemon.restart();
    let answer = daemon.send("POST", "/api/hooks/agent", &key, Some(body.as_bytes())).expect(200);
    assert_eq!(answer["response"], "echo: once");
    let session = text(&answer["session_id"]);
    let path = format!("/api/agents/{agent}/sessions/{session}/trajectory?format=jsonl");
    let said = daemon.get(&path).text();
    assert_eq!(said.matches("\"role\":\"User\"").count(), 1, "{said}");
}

#[test]
fn a_wake_begins_a_turn_now_or_with_the_next_heartbeat() {
    let model = Model::start();
    let mut daemon = daemon(&model, "rate_limit_per_minute = 1000\n");
    let agent = daemon.agent_with("a", "");
    let now = hook(&daemon, "/api/hooks/wake", &json!({ "text": "the build\nis red", "agent": "a" })).expect(200);
    assert_eq!(now, json!({ "status": "accepted", "mode": "now" }));
    until("the agent is asked", || (model.requests().len() == 1).then_some(()));
    daemon.settle();
    for word in ["one", "two"] {
        let body = json!({ "text": word, "mode": "next_heartbeat", "agent_id": agent });
        assert_eq!(hook(&daemon, "/api/hooks/wake", &body).expect(200)["mode"], "next_heartbeat");
    }
    daemon.restart();
    assert_eq!(model.requests().len(), 1, "nobody was woken");
    let schedule = json!({ "agent_id": agent, "cron": "0 0 1 1 *", "prompt": "look around" });
    let schedule = daemon.post("/api/schedules", &schedule).expect(201);
    daemon.poke(&format!("/api/schedules/{}/run", text(&schedule["id"]))).expect(200);
    // The first turn may have been out when the daemon stopped: then it is asked again, too.
    let told = |text: &str| {
        let requests = model.server.requests();
        let says = |last: &Value| last["content"].as_str().is_some_and(|said| said.contains(text));
        requests.iter().any(|request| request.messages().last().is_some_and(says)).then_some(())
    };
    until("the schedule is told", || told("look around"));
    until("both wakes are told in one turn", || told("one\n\ntwo"));
}

#[test]
fn a_turn_that_fails_is_a_502_with_its_cause() {
    let model = Model::start();
    let daemon = daemon(&model, "rate_limit_per_minute = 1000\n");
    daemon.agent_with("a", "");
    model.fail(400);
    let reply = hook(&daemon, "/api/hooks/agent", &json!({ "message": "x", "agent": "a" }));
    reply.refused(502);
    assert!(reply.text().contains("hook_turn_failed") && reply.text().contains("cause"), "{}", reply.text());
}
