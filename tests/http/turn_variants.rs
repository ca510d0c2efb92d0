//! Turns that answer the same message again (`repeats` of a message).

use std::thread;

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Reply as Response;
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::until;

fn say(daemon: &Daemon, agent: &str, body: &Value) -> Response {
    daemon.post(&format!("/api/agents/{agent}/message"), body)
}

/// Says `message` and scripts what the model answers; gives the turn.
fn answered(daemon: &Daemon, model: &Model, agent: &str, body: &Value, answer: &str) -> String {
    model.script([Reply::text(answer)]);
    let reply = say(daemon, agent, body).expect(200);
    assert_eq!(reply["response"], answer);
    text(&reply["turn_id"])
}

/// The turns of the history: their ids, what they repeat, and what the model answered.
fn history(daemon: &Daemon, session: &str) -> Vec<(String, Value, String)> {
    let page = daemon.get(&format!("/api/sessions/{session}/messages")).expect(200);
    let messages = page["messages"].as_array().unwrap();
    let turns = messages.chunk_by(|one, next| one["turn"] == next["turn"]);
    turns
        .map(|turn| (text(&turn[0]["turn_id"]), turn[0]["repeats"].clone(), text(&turn.last().unwrap()["content"])))
        .collect()
}

/// The messages of the last prompt, without the system text.
fn prompt(model: &Model) -> Vec<String> {
    let requests = model.requests();
    let messages = requests.last().unwrap()["messages"].as_array().unwrap();
    messages.iter().filter(|message| message["role"] != "system").map(|message| text(&message["content"])).collect()
}

#[test]
fn answers_to_one_message_are_stored_and_the_newest_counts() {
    let model = Model::start();
    let mut daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    let session = text(&daemon.detail(&agent)["session_id"]);
    answered(&daemon, &model, &agent, &json!({ "message": "hello" }), "hi");
    let first = answered(&daemon, &model, &agent, &json!({ "message": "why?" }), "because");
    let again = json!({ "message": "why?", "repeats": first, "session_id": session });
    let second = answered(&daemon, &model, &agent, &again, "it depends");
    assert_eq!(prompt(&model), ["hello", "hi", "why?"], "the answer that is repeated is not in the prompt");
    // Each of the turns that answer the message names them all.
    let third = answered(&daemon, &model, &agent, &json!({ "message": "why?", "repeats": second }), "nobody knows");
    // Killed, and started again.
    daemon.restart();
    let known = history(&daemon, &session);
    let repeated: Vec<_> = known.iter().map(|(id, repeats, answer)| (id, repeats, &**answer)).skip(1).collect();
    let expected = [
        (&first, &Value::Null, "because"),
        (&second, &json!(first), "it depends"),
        (&third, &json!(first), "nobody knows"),
    ];
    assert_eq!(repeated, expected);
    let trajectory = daemon.get(&format!("/api/agents/{agent}/sessions/{session}/trajectory")).expect(200);
    let repeats: Vec<_> =
        trajectory["messages"].as_array().unwrap().iter().filter(|line| line["repeats"] == json!(first)).collect();
    assert_eq!((repeats.len(), &repeats[0]["role"]), (2, &json!("User")));
    // What follows has the newest answer alone, also after the kill.
    answered(&daemon, &model, &agent, &json!({ "message": "and?" }), "that is all");
    assert_eq!(prompt(&model), ["hello", "hi", "why?", "nobody knows", "and?"]);
    // A branch has what counts at its place.
    let path = format!("/api/sessions/{session}/branch");
    let whole = daemon.poke(&path).expect(201);
    assert_eq!(whole["turns"], 3);
    let said: Vec<_> = daemon.transcript(&text(&whole["session_id"])).into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["hello", "hi", "why?", "nobody knows", "and?", "that is all"]);
    let earlier = text(&daemon.post(&path, &json!({ "turns": 3 })).expect(201)["session_id"]);
    let said: Vec<_> = daemon.transcript(&earlier).into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["hello", "hi", "why?", "it depends"]);
}

#[test]
fn an_answer_counts_until_another_one_is_there() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    let session = text(&daemon.detail(&agent)["session_id"]);
    let first = answered(&daemon, &model, &agent, &json!({ "message": "why?" }), "because");
    let again = json!({ "message": "why?", "repeats": first });
    model.script([Reply::error(400, "scripted")]);
    assert!(say(&daemon, &agent, &again).status >= 400);
    assert_eq!(history(&daemon, &session).len(), 2);
    let next = text(&say(&daemon, &agent, &json!({ "message": "and?" })).expect(200)["turn_id"]);
    assert_eq!(prompt(&model), ["why?", "because", "and?"]);
    // An open turn is not repeated.
    model.hold();
    let (client, id) = (daemon.client(), agent.clone());
    let held = thread::spawn(move || client.say(&id, "slowly"));
    until("the model is asked", || (model.waiting() == 1).then_some(()));
    let open = history(&daemon, &session).last().unwrap().0.clone();
    say(&daemon, &agent, &json!({ "message": "why?", "repeats": open })).refused_field(409, "repeats");
    say(&daemon, &agent, &json!({ "message": "why?", "repeats": next })).refused_field(400, "repeats");
    model.release();
    held.join().unwrap();
    assert_eq!(history(&daemon, &session).len(), 4);
}

#[test]
fn what_cannot_be_repeated_is_refused_and_changes_nothing() {
    let daemon = Daemon::with("rate_limit_per_second = 100000\n");
    let (agent, other) = (daemon.agent("a"), daemon.agent("b"));
    let session = text(&daemon.detail(&agent)["session_id"]);
    let first = text(&daemon.say(&agent, "one")["turn_id"]);
    let second = text(&daemon.say(&agent, "two")["turn_id"]);
    let foreign = text(&daemon.say(&other, "three")["turn_id"]);
    let before = (history(&daemon, &session), daemon.get("/api/sessions").expect(200));
    let (nil, unknown) = (uuid::Uuid::nil(), uuid::Uuid::from_u128(0x1234_5678_9abc_4def_8123_4567_89ab_cdef));
    for path in ["message", "message/stream"] {
        let path = format!("/api/agents/{agent}/{path}");
        for repeats in [json!(first), json!(foreign), json!(nil), json!("last"), json!(7), json!([second])] {
            daemon.post(&path, &json!({ "message": "x", "repeats": repeats })).refused_field(400, "repeats");
        }
        let body = json!({ "message": "x", "repeats": second, "session_id": unknown });
        daemon.post(&path, &body).refused_field(400, "repeats");
        let body = json!({ "message": "x", "repeats": foreign, "session_id": daemon.detail(&other)["session_id"] });
        daemon.post(&path, &body).refused(403);
    }
    assert_eq!((history(&daemon, &session), daemon.get("/api/sessions").expect(200)), before);
    // A message has 32 answers at most.
    for _ in 1..32 {
        say(&daemon, &agent, &json!({ "message": "two", "repeats": second })).expect(200);
    }
    say(&daemon, &agent, &json!({ "message": "two", "repeats": second })).refused_field(400, "repeats");
    assert_eq!(history(&daemon, &session).len(), 33);
}
