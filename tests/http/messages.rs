//! Messages: the routing rules, order, parallel sessions, stop and interrupt (spec 1, Message routing rules,
//! Interrupting a turn).

use std::thread;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::until;

fn post_message(daemon: &Daemon, agent: &str, body: &Value) -> crate::support::http::Reply {
    daemon.post(&format!("/api/agents/{agent}/message"), body)
}

#[test]
fn an_answer_has_its_documented_shape() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let answer = daemon.say(&agent, "hello");
    assert!(!text(&answer["response"]).is_empty());
    for key in ["input_tokens", "output_tokens", "iterations"] {
        assert!(answer[key].as_u64().is_some_and(|n| n > 0), "{key}: {answer}");
    }
    assert!(answer.get("owner_notice").is_none(), "only when there are notices");
}

#[test]
fn rule_1_without_session_goes_to_the_current_one() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let current = text(&daemon.detail(&agent)["session_id"]);
    daemon.say(&agent, "hello");
    assert_eq!(daemon.transcript(&current)[0], ("User".to_owned(), "hello".to_owned()));
    // A null is an absent field.
    post_message(&daemon, &agent, &json!({ "message": "again", "session_id": null })).expect(200);
    assert_eq!(daemon.transcript(&current).len(), 4);
}

#[test]
fn rule_2_goes_to_the_named_session_without_a_switch() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let current = text(&daemon.detail(&agent)["session_id"]);
    let side = text(&daemon.poke(&format!("/api/agents/{agent}/sessions")).expect(201)["session_id"]);
    daemon.say_in(&agent, &side, "over here");
    assert_eq!(daemon.transcript(&side).len(), 2);
    assert!(daemon.transcript(&current).is_empty());
    assert_eq!(daemon.detail(&agent)["session_id"], current.as_str());
}

#[test]
fn rule_3_an_unknown_session_is_created_under_that_id() {
    let mut daemon = Daemon::start();
    let agent = daemon.agent("a");
    let id = Uuid::from_u128(0x1234_5678_9abc_4def_8123_4567_89ab_cdef).to_string();
    daemon.say_in(&agent, &id, "first words");
    daemon.restart();
    assert_eq!(daemon.transcript(&id)[0].1, "first words");
    let session = daemon.get(&format!("/api/sessions/{id}")).expect(200);
    assert_eq!(session["agent_id"], agent.as_str());
    // Upper case names the same session.
    daemon.say_in(&agent, &id.to_uppercase(), "second words");
    assert_eq!(daemon.transcript(&id).len(), 4);
    post_message(&daemon, &agent, &json!({ "message": "x", "session_id": "not-a-uuid" }))
        .refused_field(400, "session_id");
}

#[test]
fn rule_4_a_foreign_session_is_rejected_and_stays_private() {
    let daemon = Daemon::start();
    let (one, two) = (daemon.agent("one"), daemon.agent("two"));
    let secret = text(&daemon.detail(&two)["session_id"]);
    daemon.say(&two, "the password is swordfish");
    let before = daemon.transcript(&secret);
    let body = json!({ "message": "what was said?", "session_id": secret });
    let sentence = post_message(&daemon, &one, &body).refused(403);
    assert!(!sentence.contains("swordfish") && !sentence.contains(&two) && !sentence.contains("two"), "{sentence}");
    daemon.post(&format!("/api/agents/{one}/message/stream"), &body).refused(403);
    assert_eq!(daemon.transcript(&secret), before);
}

#[test]
fn bad_messages_change_nothing() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let session = text(&daemon.detail(&agent)["session_id"]);
    post_message(&daemon, &agent, &json!({})).refused_field(400, "message");
    post_message(&daemon, &agent, &json!({ "message": "" })).refused_field(400, "message");
    post_message(&daemon, &agent, &json!({ "message": 5 })).refused_field(400, "message");
    post_message(&daemon, &agent, &json!({ "message": "x", "session_id": 5 })).refused_field(400, "session_id");
    post_message(&daemon, &agent, &json!({ "message": "x".repeat((1 << 20) + 1) })).refused_field(400, "message");
    daemon
        .post(&format!("/api/agents/{agent}/message/stream"), &json!({ "message": "" }))
        .refused_field(400, "message");
    post_message(&daemon, &Uuid::nil().to_string(), &json!({ "message": "x" })).refused(404);
    post_message(&daemon, "nonsense", &json!({ "message": "x" })).refused(400);
    assert!(daemon.transcript(&session).is_empty());
}

#[test]
fn any_unicode_is_kept_as_sent() {
    let mut daemon = Daemon::start();
    let agent = daemon.agent("a");
    let session = text(&daemon.detail(&agent)["session_id"]);
    let message = "tabs\tlines\r\n\"quotes\" \\ 🦀 e\u{301} \u{202e}rtl \u{7f}";
    daemon.say(&agent, message);
    daemon.restart();
    assert_eq!(daemon.transcript(&session)[0].1, message);
}

#[test]
fn one_session_answers_in_order_and_keeps_all() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    let session = text(&daemon.detail(&agent)["session_id"]);
    model.hold();
    let callers: Vec<_> = (0..8)
        .map(|n| {
            let (client, agent, session) = (daemon.client(), agent.clone(), session.clone());
            let caller = thread::spawn(move || text(&client.say(&agent, &format!("m{n}"))["response"]));
            // The next is sent when this one is in the transcript, so that the order is known.
            until("the message is taken", || {
                let count = daemon.transcript(&session).iter().filter(|(role, _)| role == "User").count();
                (count > n || (count == 1 && queued(&daemon, &session, n + 1))).then_some(())
            });
            caller
        })
        .collect();
    until("the model is asked", || (model.waiting() > 0).then_some(()));
    assert_eq!(model.waiting(), 1, "one running turn per session");
    model.release();
    for (n, caller) in callers.into_iter().enumerate() {
        assert_eq!(caller.join().unwrap(), format!("echo: m{n}"));
    }
    let texts: Vec<_> = daemon.transcript(&session).into_iter().map(|(_, text)| text).collect();
    let expected: Vec<_> = (0..8).flat_map(|n| [format!("m{n}"), format!("echo: m{n}")]).collect();
    assert_eq!(texts, expected);
}

/// True when the session has taken `count` messages, the ones behind the running turn included.
fn queued(daemon: &Daemon, session: &str, count: usize) -> bool {
    let body = daemon.get(&format!("/api/sessions/{session}")).expect(200);
    body["message_count"].as_u64().is_some_and(|n| n as usize >= count)
}

#[test]
fn sessions_of_one_agent_run_in_parallel() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    model.hold();
    let callers: Vec<_> = (1..=6_u128)
        .map(|n| {
            let (client, agent) = (daemon.client(), agent.clone());
            thread::spawn(move || client.say_in(&agent, &Uuid::from_u128(n).to_string(), &format!("s{n}")))
        })
        .collect();
    until("six calls are out at once", || (model.waiting() == 6).then_some(()));
    model.release();
    for (caller, n) in callers.into_iter().zip(1..) {
        assert_eq!(caller.join().unwrap()["response"], format!("echo: s{n}"));
    }
}

#[test]
fn stop_ends_the_running_turn() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    let session = text(&daemon.detail(&agent)["session_id"]);
    model.hold();
    let (client, id) = (daemon.client(), agent.clone());
    let caller = thread::spawn(move || client.say(&id, "endless"));
    until("the model is asked", || (model.waiting() == 1).then_some(()));
    let reply = daemon.poke(&format!("/api/agents/{agent}/stop")).expect(200);
    assert_eq!(reply["status"], "stopped");
    assert!(reply["message"].is_string(), "{reply}");
    let answer = caller.join().unwrap();
    assert_eq!(answer["stopped"], true, "{answer}");
    assert!(answer["response"].is_string(), "{answer}");
    model.release();
    assert_eq!(daemon.say(&agent, "next")["response"], "echo: next");
    assert_eq!(daemon.transcript(&session)[0].1, "endless");
}

#[test]
fn stop_when_idle_is_fine() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    assert_eq!(daemon.poke(&format!("/api/agents/{agent}/stop")).expect(200)["status"], "stopped");
    daemon.poke(&format!("/api/agents/{}/stop", Uuid::nil())).refused(404);
    daemon.say(&agent, "still there?");
}

#[test]
fn the_turn_goes_on_when_its_caller_leaves() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    let session = text(&daemon.detail(&agent)["session_id"]);
    model.hold();
    let body = json!({ "message": "left behind" }).to_string();
    let head = format!(
        "POST /api/agents/{agent}/message HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut wire = daemon.connect().unwrap();
    std::io::Write::write_all(&mut wire, (head + &body).as_bytes()).unwrap();
    until("the model is asked", || (model.waiting() == 1).then_some(()));
    drop(wire);
    model.release();
    until("the answer is in the session", || (daemon.transcript(&session).len() == 2).then_some(()));
    assert_eq!(daemon.transcript(&session)[1].1, "echo: left behind");
}

#[test]
fn a_turn_that_ran_at_a_kill_is_resumed() {
    let model = Model::start();
    let mut daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    let session = text(&daemon.detail(&agent)["session_id"]);
    model.hold();
    let (client, id) = (daemon.client(), agent.clone());
    let body = json!({ "message": "interrupted" }).to_string();
    let path = format!("/api/agents/{id}/message");
    let caller = thread::spawn(move || client.try_send("POST", &path, &[], Some(body.as_bytes())));
    until("the model is asked", || (model.waiting() == 1).then_some(()));
    daemon.kill();
    assert!(caller.join().unwrap().is_err(), "no answer was given");
    model.release();
    daemon.restart();
    until("the answer is in the session", || (daemon.transcript(&session).len() == 2).then_some(()));
    let expected = [("User", "interrupted"), ("Assistant", "echo: interrupted")];
    assert_eq!(daemon.transcript(&session), expected.map(|(r, t)| (r.to_owned(), t.to_owned())));
}

#[test]
fn deleting_an_agent_ends_its_running_turn() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    model.hold();
    let (client, path) = (daemon.client(), format!("/api/agents/{agent}/message"));
    let caller = thread::spawn(move || client.post(&path, &json!({ "message": "doomed" })));
    until("the model is asked", || (model.waiting() == 1).then_some(()));
    daemon.delete(&format!("/api/agents/{agent}")).expect(200);
    let reply = caller.join().unwrap();
    assert!(reply.status == 404 || reply.status == 409 || reply.status == 200, "{}", reply.text());
    model.release();
    daemon.get(&format!("/api/agents/{agent}")).refused(404);
}
