//! Tools as a model uses them: parallel calls, malformed arguments, long results, the loop guard, owner notices,
//! agents that ask agents, and interrupts (spec 1, Limits, Owner notice, Interrupting a turn).

use std::thread;

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::{Gate, Reply};
use crate::support::until;

const ALL: &str = "[capabilities]\ntools = [\"*\"]\nagent_spawn = true\n";

fn harness() -> (Model, Daemon) {
    let model = Model::start();
    let daemon = Daemon::with(&format!("rate_limit_per_second = 1000000\n{}", model.config()));
    (model, daemon)
}

/// The tool results that the model read in its last request, oldest first.
fn results(model: &Model) -> Vec<String> {
    let request = model.requests().pop().expect("the model was asked");
    let messages = request["messages"].as_array().expect("messages").clone();
    messages.iter().filter(|message| message["role"] == "tool").map(|message| text(&message["content"])).collect()
}

fn trace(daemon: &Daemon, agent: &str) -> Value {
    daemon.get(&format!("/api/agents/{agent}/traces")).expect(200)["traces"][0].clone()
}

#[test]
fn parallel_calls_come_back_in_order_and_bad_ones_are_explained() {
    let (model, daemon) = harness();
    let agent = daemon.agent_with("a", ALL);
    model.script([Reply::calls(&[
        ("1", "system_time", r#"{"format":"weekday"}"#),
        ("2", "system_time", "{\"format\":"),
        ("3", "no_such_tool", "{}"),
        ("4", "system_time", r#"{"format":"noon"}"#),
        ("5", "system_time", ""),
    ])]);
    let answer = daemon.say(&agent, "look");
    assert_eq!(answer["iterations"], 2);
    let results = results(&model);
    assert_eq!(results.len(), 5);
    assert!(results[0].ends_with("day"), "{results:?}");
    assert!(results[1].contains("not valid JSON"));
    assert!(results[2].starts_with("There is no tool named \"no_such_tool\""));
    assert!(results[3].contains("unknown variant `noon`"));
    assert!(results[4].contains("\"unix_seconds\""));
}

#[test]
fn a_tool_that_is_not_granted_does_not_run() {
    let (model, daemon) = harness();
    let agent = daemon.agent_with("a", "tool_blocklist = [\"system_*\"]\n[capabilities]\ntools = [\"*\"]\n");
    model.script([Reply::calls(&[("1", "system_time", "{}"), ("2", "agent_spawn", r#"{"name":"b"}"#)])]);
    daemon.say(&agent, "look");
    let results = results(&model);
    assert!(
        results.iter().all(|result| result.starts_with("This agent is not allowed to call the tool")),
        "{results:?}"
    );
    assert_eq!(daemon.get("/api/agents?name=b").expect(200).as_array().map(Vec::len), Some(0));
    let offered = model.requests()[0]["tools"].to_string();
    assert!(!offered.contains("system_time") && !offered.contains("agent_spawn") && offered.contains("agent_list"));
}

#[test]
fn the_loop_guard_warns_refuses_and_breaks() {
    let (model, daemon) = harness();
    let agent = daemon.agent_with("a", ALL);
    let same = || Reply::calls(&[("1", "notify_owner", r#"{ "message": "again" }"#)]);
    model.script([same(), same(), same(), same()]);
    let answer = daemon.say(&agent, "go");
    let read = results(&model);
    assert_eq!((&*read[0], &*read[1]), ("Noted.", "Noted."));
    assert!(read[2].contains("[Loop guard: "), "{read:?}");
    assert!(read[3].starts_with("Refused by the loop guard"), "{read:?}");
    assert_eq!(answer["owner_notice"], "again\nagain\nagain");

    let calls: Vec<(String, String)> = (0..31).map(|n| (format!("c{n}"), format!("{{\"query\":\"q{n}\"}}"))).collect();
    let calls: Vec<_> = calls.iter().map(|(id, input)| (&**id, "tool_search", &**input)).collect();
    model.script([Reply::calls(&calls)]);
    let asked = model.requests().len();
    let failed = daemon.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "search" })).expect(500);
    assert_eq!(failed["code"], "tool_circuit_breaker");
    assert_eq!(model.requests().len(), asked + 1, "the model is not asked again");
    let trace = trace(&daemon, &agent);
    let steps = trace["steps"].as_array().expect("steps").clone();
    assert_eq!(steps.iter().filter(|step| step["status"] == "refused").count(), 1, "{trace}");
    assert_eq!(steps.iter().filter(|step| step["kind"] == "tool" && step["status"] == "ok").count(), 30);
}

#[test]
fn an_owner_notice_comes_with_the_answer_and_right_before_done() {
    let (model, daemon) = harness();
    let agent = daemon.agent_with("a", ALL);
    let calls = || {
        Reply::calls(&[("1", "notify_owner", r#"{"message":"one"}"#), ("2", "notify_owner", r#"{"message":"two"}"#)])
    };
    model.script([calls()]);
    assert_eq!(daemon.say(&agent, "go")["owner_notice"], "one\ntwo");
    model.script([calls()]);
    let reply = daemon.post(&format!("/api/agents/{agent}/message/stream"), &json!({ "message": "go" }));
    let events: Vec<String> =
        reply.text().lines().filter_map(|line| line.strip_prefix("event: ")).map(str::to_owned).collect();
    assert_eq!(events[events.len() - 2..], ["owner_notice", "done"], "{events:?}");
    assert!(reply.text().contains(r#"{"text":"one\ntwo"}"#));
    assert!(daemon.say(&agent, "nothing")["owner_notice"].is_null());
    model.script([Reply::calls(&[("1", "notify_owner", r#"{"message":" "}"#)])]);
    assert!(daemon.say(&agent, "empty")["owner_notice"].is_null());
}

#[test]
fn a_long_result_is_stored_and_read_on() {
    let (model, daemon) = harness();
    // Agents with long names and tags make a long list.
    for n in 0..100 {
        let model_name = format!("{}-{n}", "m".repeat(700));
        daemon.agent_with(&format!("filler-{n}"), &format!("[model]\nmodel = \"{model_name}\"\n"));
    }
    let agent = daemon.agent_with("reader", ALL);
    model.script([Reply::calls(&[("1", "agent_list", r#"{"limit":100}"#)])]);
    daemon.say(&agent, "list them");
    let stub = results(&model).pop().expect("a result");
    assert!(
        stub.len() < 12_000 && stub.contains("Read on with result_read, result \"0.2\", from offset 8192"),
        "{stub}"
    );
    model.script([
        Reply::calls(&[("1", "result_read", r#"{"result":"0.2","offset":8192,"length":100}"#)]),
        Reply::calls(&[("1", "result_read", r#"{"result":"0.9"}"#), ("2", "result_read", r#"{"result":"x"}"#)]),
    ]);
    daemon.say(&agent, "read on");
    let read = results(&model);
    let piece = &read[read.len() - 3];
    assert!(piece.contains("continue from offset 8292"), "{piece}");
    assert!(read[read.len() - 2].starts_with("Truncated result") && read[read.len() - 1].contains("look like"));
}

#[test]
fn agents_spawn_ask_and_kill_others_within_their_own_rights() {
    let (model, daemon) = harness();
    let agent = daemon.agent_with("boss", ALL);
    model.script([
        Reply::calls(&[
            ("1", "agent_spawn", r#"{"name":"intern","system_prompt":"Count.","tools":["system_time"]}"#),
            ("2", "agent_spawn", r#"{"manifest_toml":"name = \"spy\"\n[capabilities]\nshell = [\"*\"]"}"#),
        ]),
        Reply::calls(&[("1", "agent_send", r#"{"agent":"intern","message":"one two"}"#)]),
        Reply::text("three"),
        Reply::calls(&[("1", "agent_kill", r#"{"agent":"intern"}"#), ("2", "agent_kill", r#"{"agent":"boss"}"#)]),
    ]);
    let answer = daemon.say(&agent, "go");
    assert_eq!(answer["response"], "echo: go");
    let read = results(&model);
    assert!(read[0].contains("\"name\":\"intern\""), "{read:?}");
    assert!(read[1].contains("capabilities.shell"), "{read:?}");
    assert_eq!(read[2], "three");
    assert!(read[3].starts_with("Killed intern") && read[4].contains("only delete its own descendants"), "{read:?}");
    let asked = &model.requests()[2];
    assert_eq!(asked["messages"][0]["content"], "Count.");
    assert_eq!(asked["messages"][1]["content"], "one two");
}

#[test]
fn a_stop_ends_the_asked_agent_too() {
    let (model, daemon) = harness();
    let (boss, worker) = (daemon.agent_with("boss", ALL), daemon.agent_with("worker", ALL));
    let gate = Gate::default();
    model.script([
        Reply::calls(&[("1", "agent_send", r#"{"agent":"worker","message":"long work"}"#)]),
        Reply::text("never read").gated(&gate),
    ]);
    let (client, path) = (daemon.client(), format!("/api/agents/{boss}/message"));
    let asked = thread::spawn(move || client.post(&path, &json!({ "message": "delegate" })));
    model.server.wait_for_requests(2);
    daemon.poke(&format!("/api/agents/{boss}/stop")).expect(200);
    let reply = asked.join().expect("no panic").expect(200);
    assert_eq!(reply["stopped"], true);
    let ended = until("the worker's turn ends", || {
        let trace = trace(&daemon, &worker);
        (!trace.is_null()).then_some(trace)
    });
    assert_eq!(ended["status"], "stopped");
    gate.open();
}

#[test]
fn an_interrupt_is_accepted_at_any_time_and_acts_at_the_next_tool_call() {
    let (model, daemon) = harness();
    let agent = daemon.agent_with("a", ALL);
    let session = text(&daemon.detail(&agent)["session_id"]);
    let path = format!("/api/agents/{agent}/sessions/{session}/interrupt");
    assert_eq!(daemon.poke(&path).status, 204, "idle");
    assert_eq!(daemon.say(&agent, "a new message clears it")["response"], "echo: a new message clears it");
    let gate = Gate::default();
    model.script([Reply::calls(&[("1", "system_time", "{}")]).saying("so far").gated(&gate)]);
    let asked_before = model.requests().len();
    let (client, message) = (daemon.client(), format!("/api/agents/{agent}/message"));
    let asked = thread::spawn(move || client.post(&message, &json!({ "message": "work" })));
    model.server.wait_for_requests(asked_before + 1);
    assert_eq!(daemon.poke(&path).status, 204);
    gate.open();
    let reply = asked.join().expect("no panic").expect(200);
    assert_eq!((&reply["response"], &reply["interrupted"]), (&json!("so far"), &json!(true)), "{reply}");
    assert_eq!(trace(&daemon, &agent)["status"], "interrupted");
    assert_eq!(daemon.say(&agent, "and on")["response"], "echo: and on");
    let other = daemon.agent("b");
    daemon.poke(&format!("/api/agents/{other}/sessions/{session}/interrupt")).expect(403);
    let nobody = "01900000-0000-7000-8000-000000000000";
    daemon.poke(&format!("/api/agents/{agent}/sessions/{nobody}/interrupt")).expect(404);
    daemon.poke(&format!("/api/agents/{nobody}/sessions/{session}/interrupt")).expect(404);
    daemon.poke(&format!("/api/agents/{agent}/sessions/x/interrupt")).expect(400);
}

#[test]
fn fifty_sessions_use_tools_side_by_side() {
    let (model, daemon) = harness();
    let agent = daemon.agent_with("a", ALL);
    model.server.respond(|request| {
        let last = request.messages().last().cloned().unwrap_or_default();
        match last["role"].as_str() {
            Some("user") => Reply::calls(&[("1", "system_time", "{}"), ("2", "system_time", r#"{"format":"date"}"#)]),
            _ => Reply::text(format!("answered {}", request.last_user())),
        }
    });
    let asked: Vec<_> = (0..50_u128)
        .map(|n| {
            let session = uuid::Uuid::from_u128(0x5050_0000 + n).to_string();
            let (client, path) = (daemon.client(), format!("/api/agents/{agent}/message"));
            thread::spawn(move || {
                let body = json!({ "message": format!("question {n}"), "session_id": session });
                let reply = client.post(&path, &body).expect(200);
                assert_eq!(reply["response"], format!("answered question {n}"));
                assert_eq!(reply["iterations"], 2);
            })
        })
        .collect();
    asked.into_iter().for_each(|asked| asked.join().expect("every session is answered"));
}
