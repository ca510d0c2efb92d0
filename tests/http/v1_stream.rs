//! Streamed chat completions, clients that leave, and what a kill leaves of hidden sessions.

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::stream::Events;
use crate::support::until;
use crate::v1::{gauge, no_hidden_session};

fn ask(content: &str) -> Value {
    json!({ "model": "ada", "stream": true, "stream_options": { "include_usage": true },
        "messages": [{ "role": "user", "content": content }] })
}

fn open(daemon: &Daemon, body: &Value) -> Events {
    Events::open(daemon, "POST", "/v1/chat/completions", Some(body))
}

/// The data of every event.
fn all(events: Events) -> Vec<Value> {
    let events = events.all();
    assert!(events.iter().all(|event| event.name == "message"), "events have no names: {events:?}");
    events.into_iter().map(|event| event.data).collect()
}

fn harness() -> (Model, Daemon) {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    daemon.agent_with("ada", "[capabilities]\ntools = [\"system_time\"]\n");
    (model, daemon)
}

fn content(chunks: &[Value]) -> String {
    chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect()
}

#[test]
fn a_stream_is_chunks_a_last_one_and_done() {
    let (_model, daemon) = harness();
    let events = all(open(&daemon, &ask("b c d")));
    let (done, chunks) = events.split_last().unwrap();
    assert_eq!(*done, json!("[DONE]"));
    let (last, pieces) = chunks.split_last().unwrap();
    assert_eq!(content(pieces), "echo: b c d");
    assert!(pieces.len() > 1, "{pieces:?}");
    assert_eq!(pieces[0]["choices"][0]["delta"]["role"], "assistant");
    assert!(pieces[0]["choices"][0]["delta"]["content"].as_str().is_some_and(|text| !text.is_empty()));
    assert!(pieces[1..].iter().all(|chunk| chunk["choices"][0]["delta"].get("role").is_none()));
    assert!(pieces.iter().all(|chunk| chunk["choices"][0]["finish_reason"].is_null() && chunk.get("usage").is_none()));
    assert_eq!(last["choices"], json!([{ "index": 0, "delta": {}, "finish_reason": "stop" }]));
    assert_eq!(last["usage"], json!({ "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18 }));
    for chunk in chunks {
        assert_eq!((&chunk["object"], &chunk["model"]), (&json!("chat.completion.chunk"), &json!("ada")));
        assert_eq!((&chunk["id"], &chunk["created"]), (&last["id"], &last["created"]));
    }
    assert!(text(&last["id"]).starts_with("chatcmpl-"));
    no_hidden_session(&daemon);
}

#[test]
fn other_ends_are_named() {
    let (model, daemon) = harness();
    for (reason, named) in [("length", "length"), ("content_filter", "content_filter")] {
        model.script([Reply::text("cut").finish(reason)]);
        let events = all(open(&daemon, &ask("x")));
        assert_eq!(events[events.len() - 2]["choices"][0]["finish_reason"], named);
        model.script([Reply::text("cut").finish(reason)]);
        let whole = json!({ "model": "ada", "messages": [{ "role": "user", "content": "x" }] });
        assert_eq!(daemon.post("/v1/chat/completions", &whole).expect(200)["choices"][0]["finish_reason"], named);
    }
    model.script([Reply::text("")]);
    let events = all(open(&daemon, &ask("x")));
    assert_eq!(events[0]["choices"][0]["delta"], json!({ "role": "assistant", "content": "" }));
}

#[test]
fn texts_around_the_agents_own_tools_are_parted() {
    let (model, daemon) = harness();
    model.script([Reply::calls(&[("c1", "system_time", "{}")]).saying("Let me see."), Reply::text("It is late.")]);
    let events = all(open(&daemon, &ask("time?")));
    assert_eq!(content(&events), "Let me see.\n\nIt is late.");
}

#[test]
fn an_error_in_the_middle_is_an_error_object() {
    let (model, daemon) = harness();
    model.script([Reply::text("one two three four").break_after(3)]);
    let events = all(open(&daemon, &ask("x")));
    let error = &events.last().unwrap()["error"];
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{events:?}");
    assert_eq!((&error["code"], &error["type"]), (&json!("provider_error"), &json!("server_error")));
    no_hidden_session(&daemon);
}

#[test]
fn a_client_that_leaves_stops_its_turn() {
    let (model, daemon) = harness();
    model.hold_after_first_word();
    let mut events = open(&daemon, &ask("b c d"));
    assert!(events.next().is_some());
    drop(events);
    until("the model's answer is given up", || (model.server.given_up() == 1).then_some(()));
    no_hidden_session(&daemon);

    model.hold();
    let whole = json!({ "model": "ada", "messages": [{ "role": "user", "content": "x" }] }).to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{whole}",
        whole.len()
    );
    let wire = daemon.connect().unwrap();
    std::io::Write::write_all(&mut &wire, head.as_bytes()).unwrap();
    until("the model is asked", || (model.waiting() == 1).then_some(()));
    drop(wire);
    until("this one is given up too", || (model.server.given_up() == 2).then_some(()));
    no_hidden_session(&daemon);
}

#[test]
fn a_kept_session_goes_on_when_its_client_leaves() {
    let (model, daemon) = harness();
    model.hold_after_first_word();
    let mut body = ask("b c d");
    body["user"] = json!("tom");
    let mut events = open(&daemon, &body);
    let session = events.head.header("x-agentsvc-session").unwrap().to_owned();
    assert!(events.next().is_some());
    drop(events);
    model.release();
    until("the answer is stored", || (daemon.transcript(&session).len() == 2).then_some(()));
    assert_eq!(daemon.transcript(&session)[1].1, "echo: b c d");
}

#[test]
fn a_stream_in_a_busy_session_is_of_its_own_turn() {
    let (model, daemon) = harness();
    model.hold();
    let mut body = ask("one");
    body["user"] = json!("tom");
    let first = open(&daemon, &body);
    until("the model is asked", || (model.waiting() == 1).then_some(()));
    body["messages"][0]["content"] = json!("two");
    let second = open(&daemon, &body);
    model.release();
    assert_eq!(content(&all(first)), "echo: one");
    assert_eq!(content(&all(second)), "echo: two");
}

#[test]
fn a_kill_leaves_no_hidden_session() {
    let (model, mut daemon) = harness();
    let before = daemon.get("/api/sessions").expect(200);
    model.hold();
    let client = daemon.client();
    let asked = std::thread::spawn(move || {
        let body = json!({ "model": "ada", "messages": [{ "role": "user", "content": "x" }] }).to_string();
        client.try_send("POST", "/v1/chat/completions", &[], Some(body.as_bytes())).is_ok()
    });
    let _stream = open(&daemon, &ask("y"));
    until("both are asked", || (model.waiting() == 2).then_some(()));
    daemon.restart();
    assert!(!asked.join().unwrap(), "the answer went with the daemon");
    until("nothing is under way", || (gauge(&daemon, "agentsvc_turns_open") == 0.0).then_some(()));
    assert_eq!(gauge(&daemon, "agentsvc_sessions_hidden") as u64, 0);
    let sessions = before["total"].as_u64().unwrap();
    until("the sessions are counted", || (gauge(&daemon, "agentsvc_sessions") as u64 == sessions).then_some(()));
    assert_eq!(daemon.get("/api/sessions").expect(200), before);
    assert_eq!(model.waiting(), 2, "nobody reads the answer, so the model is not asked again");
    model.release();
}

#[test]
fn images_reach_the_model_and_leave_nothing_behind() {
    const PIXEL: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
    let (model, daemon) = harness();
    let url = format!("data:image/png;base64,{PIXEL}");
    let parts = json!([{ "type": "text", "text": "what?" }, { "type": "image_url", "image_url": { "url": url } }]);
    let ask = json!({ "model": "ada", "messages": [{ "role": "user", "content": parts }] });
    daemon.post("/v1/chat/completions", &ask).expect(200);
    let content = model.requests()[0]["messages"][1]["content"].clone();
    assert_eq!((&content[0]["text"], &content[1]["image_url"]["url"]), (&json!("what?"), &json!(url)));
    until("the upload of the hidden session is gone", || (stored_files(&daemon) == 0).then_some(()));

    let mut kept = ask.clone();
    kept["user"] = json!("tom");
    daemon.post("/v1/chat/completions", &kept).expect(200);
    assert!(stored_files(&daemon) > 0, "the session that stays keeps its image");
    let liar = json!([{ "type": "image_url", "image_url": { "url": "data:image/png;base64,aGVsbG8gd29ybGQ=" } }]);
    let ask = json!({ "model": "ada", "messages": [{ "role": "user", "content": liar }] });
    daemon.post("/v1/chat/completions", &ask).refused_field(400, "messages[0].content[0].image_url.url");
}

/// Files below the uploads of a home.
fn stored_files(daemon: &Daemon) -> usize {
    fn below(folder: &std::path::Path) -> usize {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| if entry.path().is_dir() { below(&entry.path()) } else { 1 }).sum()
    }
    below(&daemon.home().join("uploads"))
}
