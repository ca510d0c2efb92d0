//! Server-sent events: message/stream and attach (spec 1, Attach, SSE on message/stream; decisions, Agents).

use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::stream::{Event, Events, text_of};
use crate::support::until;

/// Reads a stream on a thread of its own and hands each event on.
fn follow(events: Events) -> (mpsc::Receiver<Event>, thread::JoinHandle<()>) {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || events.for_each(|event| sender.send(event).unwrap_or_default()));
    (receiver, thread)
}

#[test]
fn a_stream_is_chunks_then_done() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let stream = Events::message(&daemon, &agent, &json!({ "message": "hello" }));
    assert!(stream.head.header("x-request-id").is_some());
    assert!(stream.head.header("cache-control").is_some_and(|c| c.contains("no-")), "{:?}", stream.head.headers);
    let events = stream.all();
    let (last, chunks) = events.split_last().unwrap();
    assert!(!chunks.is_empty() && chunks.iter().all(|e| e.name == "chunk" && e.data["done"] == false), "{events:?}");
    assert_eq!((last.name.as_str(), &last.data["done"]), ("done", &json!(true)));
    for key in ["input_tokens", "output_tokens"] {
        assert!(last.data["usage"][key].as_u64().is_some_and(|n| n > 0), "{last:?}");
    }
    let session = text(&daemon.detail(&agent)["session_id"]);
    assert_eq!(daemon.transcript(&session)[1].1, text_of(&events), "the stream and the record agree");
}

#[test]
fn chunks_arrive_while_the_model_writes() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    model.hold_after_first_word();
    let (events, reader) = follow(Events::message(&daemon, &agent, &json!({ "message": "b c d" })));
    let first = events.recv_timeout(crate::support::PATIENCE).unwrap();
    assert_eq!(first.name, "chunk");
    assert_eq!(model.waiting(), 1, "the model still writes");
    model.release();
    reader.join().unwrap();
    let mut all = vec![first];
    all.extend(events.try_iter());
    assert_eq!(text_of(&all), "echo: b c d");
    assert_eq!(all.last().unwrap().name, "done");
}

#[test]
fn attach_waits_for_the_next_turn_and_copies_it() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let (first, one) = follow(Events::attach(&daemon, &agent));
    let (second, two) = follow(Events::attach(&daemon, &agent));
    assert!(first.try_recv().is_err(), "nothing before the turn");
    let told = Events::message(&daemon, &agent, &json!({ "message": "hello all" })).all();
    one.join().unwrap();
    two.join().unwrap();
    assert_eq!(first.try_iter().collect::<Vec<_>>(), told);
    assert_eq!(second.try_iter().collect::<Vec<_>>(), told);
}

#[test]
fn attach_sees_a_turn_that_nobody_streams() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let (events, reader) = follow(Events::attach(&daemon, &agent));
    let answer = daemon.say(&agent, "hello");
    reader.join().unwrap();
    let events: Vec<_> = events.try_iter().collect();
    assert_eq!(events.last().unwrap().name, "done");
    assert_eq!(text_of(&events), text(&answer["response"]));
}

#[test]
fn attach_in_the_middle_of_a_turn_sees_its_end() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    model.hold_after_first_word();
    let (told, teller) = follow(Events::message(&daemon, &agent, &json!({ "message": "b c d" })));
    told.recv_timeout(crate::support::PATIENCE).unwrap();
    let (events, reader) = follow(Events::attach(&daemon, &agent));
    model.release();
    teller.join().unwrap();
    reader.join().unwrap();
    let events: Vec<_> = events.try_iter().collect();
    assert_eq!(events.last().unwrap().name, "done");
    assert!("echo: b c d".ends_with(&text_of(&events)), "{events:?}");
}

#[test]
fn attach_follows_only_the_current_session() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let (events, reader) = follow(Events::attach(&daemon, &agent));
    daemon.say_in(&agent, &Uuid::from_u128(77).to_string(), "elsewhere");
    daemon.say(&agent, "here");
    reader.join().unwrap();
    let session = text(&daemon.detail(&agent)["session_id"]);
    assert_eq!(text_of(&events.try_iter().collect::<Vec<_>>()), daemon.transcript(&session)[1].1);
}

#[test]
fn a_subscriber_that_does_not_read_slows_nobody() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    // Opened and never read: its socket buffer fills, its backlog is dropped.
    let idle: Vec<_> = (0..8).map(|_| Events::attach(&daemon, &agent)).collect();
    let long = "word ".repeat(20_000);
    let events = Events::message(&daemon, &agent, &json!({ "message": long })).all();
    assert_eq!(events.last().unwrap().name, "done");
    for subscriber in idle {
        let events = subscriber.all();
        let missed: u64 = events.iter().filter(|e| e.name == "lagged").map(|e| missed_of(&e.data)).sum();
        assert!(events.last().is_some_and(|e| e.name == "done" || e.name == "lagged"), "{:?}", events.last());
        let chunks = events.iter().filter(|e| e.name == "chunk").count() as u64;
        assert!(chunks + missed > 0, "told of what it missed");
    }
}

/// The count in a `lagged` event, whatever its key.
fn missed_of(data: &Value) -> u64 {
    data.as_object().and_then(|map| map.values().find_map(Value::as_u64)).unwrap_or_default()
}

#[test]
fn a_failing_model_ends_the_stream_with_an_error_event() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    model.fail(400);
    let events = Events::message(&daemon, &agent, &json!({ "message": "hello" })).all();
    let last = events.last().unwrap();
    assert_eq!(last.name, "error");
    assert!(last.data["error"].as_str().is_some_and(|s| !s.is_empty()), "{last:?}");
}

#[test]
fn stop_ends_a_stream_with_done_and_stopped() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    model.hold_after_first_word();
    let (events, reader) = follow(Events::message(&daemon, &agent, &json!({ "message": "b c d" })));
    let first = events.recv_timeout(crate::support::PATIENCE).unwrap();
    daemon.poke(&format!("/api/agents/{agent}/stop")).expect(200);
    reader.join().unwrap();
    let last = events.try_iter().last().unwrap();
    assert_eq!((last.name.as_str(), &last.data["stopped"]), ("done", &json!(true)), "{last:?}");
    model.release();
    let session = text(&daemon.detail(&agent)["session_id"]);
    until("the partial answer is recorded", || (daemon.transcript(&session).len() == 2).then_some(()));
    assert_eq!(Some(daemon.transcript(&session)[1].1.as_str()), first.data["content"].as_str());
}

#[test]
fn attach_refuses_what_is_not_there() {
    let daemon = Daemon::start();
    daemon.get(&format!("/api/agents/{}/attach", Uuid::nil())).refused(404);
    daemon.get("/api/agents/nonsense/attach").refused(400);
    daemon.post(&format!("/api/agents/{}/message/stream", Uuid::nil()), &json!({ "message": "x" })).refused(404);
}

#[test]
fn many_subscribers_all_see_the_same() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let readers: Vec<_> = (0..100).map(|_| follow(Events::attach(&daemon, &agent))).collect();
    let told = Events::message(&daemon, &agent, &json!({ "message": "to everyone" })).all();
    for (events, reader) in readers {
        reader.join().unwrap();
        assert_eq!(events.try_iter().collect::<Vec<_>>(), told);
    }
}
