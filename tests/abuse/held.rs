//! Places that are held: whoever waits in them for long keeps others out only up to the bound, and they are told so.

use std::cell::RefCell;
use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use serde_json::{Value, json};

use super::harness::{Memory, Neighbour, PATIENCE, harness, wait};
use super::wire::request;
use crate::support::daemon::{Daemon, text};
use crate::support::http::{Client, Reply};
use crate::support::model::Model;
use crate::support::model_server::Received;
use crate::support::stream::Events;

/// Sends a request from a thread of its own.
fn aside(client: &Client, path: &str, body: Value) -> JoinHandle<Reply> {
    let (client, path) = (client.clone(), path.to_owned());
    std::thread::spawn(move || client.post(&path, &body))
}

/// Asks until this status comes, for the places are taken one after the other.
#[track_caller]
fn full(what: &str, status: u16, ask: impl Fn() -> Option<Reply>) -> Value {
    let reply = wait(what, || ask().filter(|reply| reply.status == status));
    reply.refused(status);
    reply.expect(status)
}

#[test]
fn streams_of_the_world_and_of_queries_beyond_their_places() {
    let daemon = harness("");
    let neighbour = Neighbour::of(&daemon);
    let memory = Memory::of(&daemon);
    let open = |path: &str| Events::open(&daemon, "GET", path, None);
    let events: Vec<Events> = (0..32).map(|_| open("/api/world/events")).collect();
    let signs: Vec<Events> = (0..32).map(|_| open("/api/world/stream")).collect();
    for path in ["/api/world/events", "/api/world/stream"] {
        assert_eq!(daemon.get(path).expect(429)["code"], "too_many", "{path}");
    }
    let query = "/api/world/query/stream?q=agents%20select%20name&every=3600s";
    let queries: Vec<Events> = (0..32).map(|_| open(query)).collect();
    assert_eq!(daemon.get(query).expect(429)["code"], "too_many");
    memory.is_flat(&daemon, "streams that are held");
    drop((events, signs, queries));
    // A place is free when the daemon has seen that its client left.
    for path in ["/api/world/events", query] {
        wait("there is room again", || {
            let opened = daemon.open("GET", path, &[], None).ok()?;
            (opened.0.status == 200).then_some(())
        });
    }
    neighbour.leave();
}

#[test]
fn uploads_beyond_their_places() {
    let daemon = harness("");
    let (agent, neighbour) = (daemon.agent("a"), Neighbour::of(&daemon));
    let begin = || {
        let head = format!(
            "POST /api/agents/{agent}/upload HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 1000000\r\n\
             content-type: multipart/form-data; boundary=b\r\n\r\n--b\r\ncontent-disposition: form-data; name=\"file\"; \
             filename=\"f\"\r\n\r\nsome of it"
        );
        let stream = daemon.connect().unwrap();
        (&stream).write_all(head.as_bytes()).unwrap();
        stream
    };
    let held = RefCell::new((0..63).map(|_| begin()).collect::<Vec<TcpStream>>());
    let refused = full("no place is left", 503, || {
        // One that was asked in between may have had the last place.
        held.borrow_mut().push(begin());
        let path = format!("/api/agents/{agent}/files/f");
        daemon.try_send("PUT", &path, &[], Some(b"whole")).ok()
    });
    assert!(text(&refused["error"]).contains("too many concurrent uploads"), "{refused}");
    drop(held);
    wait("there is room again", || {
        let reply = daemon.upload_as(&agent, "f", None, b"whole");
        (reply.status == 201).then_some(())
    });
    neighbour.leave();
}

#[test]
fn large_bodies_beyond_their_room() {
    let daemon = harness("");
    let (neighbour, memory) = (Neighbour::of(&daemon), Memory::of(&daemon));
    let most = vec![b' '; 1_990_000];
    let begin = || {
        let head =
            "POST /api/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 2000000\r\n\r\n";
        let stream = daemon.connect().unwrap();
        // One that is refused may be closed before all is written.
        let _ = (&stream).write_all(head.as_bytes()).and_then(|()| (&stream).write_all(&most));
        stream
    };
    let large = || daemon.try_send("POST", "/api/events", &[], Some(&most)).ok();
    let held = RefCell::new((0..130).map(|_| begin()).collect::<Vec<TcpStream>>());
    let refused = full("no room is left", 503, || {
        // Those that came first may have been given up in between.
        held.borrow_mut().extend((0..10).map(|_| begin()));
        large()
    });
    assert_eq!(refused["code"], "bodies_full");
    neighbour.is_served();
    // Twice as much, because a body that grows is moved to a larger place.
    assert!(memory.growth(&daemon) < 768 << 20, "{} bytes more in memory", memory.growth(&daemon));
    drop(held);
    wait("there is room again", || (large()?.status == 400).then_some(()));
    neighbour.leave();
}

#[test]
fn those_who_wait_for_a_summary_and_for_a_test_of_a_provider() {
    let model = Model::start();
    let spare =
        format!("[providers.spare]\nbase_url = \"{}\"\napi_key_env = \"TEST_MODEL_KEY\"\n", model.server.base_url());
    let daemon = harness(&(model.config() + &spare));
    let agent = daemon.agent_with("a", "");
    for n in 0..14 {
        daemon.say(&agent, &format!("message {n}"));
    }
    model.hold();
    let path = format!("/api/agents/{agent}/session/compact");
    let waiting: Vec<_> = (0..64).map(|_| aside(&daemon, &path, json!({}))).collect();
    // What the model waits with counts turns alone.
    wait("the model is asked", || model.server.requests().iter().any(Received::wants_summary).then_some(()));
    // Those that came in time wait; the next is told so. It may come before the last of them.
    let (told, refusal) = channel();
    std::thread::scope(|scope| {
        for _ in 0..40 {
            let (told, daemon, path) = (told.clone(), &daemon, &path);
            scope.spawn(move || {
                let reply = daemon.poke(path);
                if reply.status == 429 {
                    let _ = told.send(reply);
                }
            });
        }
        refusal.recv_timeout(PATIENCE).expect("some are refused").refused(429);
        model.release();
    });
    let summaries = waiting.into_iter().map(|asked| asked.join().unwrap().status);
    assert!(summaries.filter(|status| *status == 200).count() > 20);
    model.hold();
    let test = "/api/providers/spare/test?model=one";
    let tests: Vec<_> = (0..4).map(|_| aside(&daemon, test, json!({}))).collect();
    wait("all places are taken", || (model.waiting() >= 4).then_some(()));
    daemon.poke(test).refused(429);
    model.release();
    tests.into_iter().for_each(|test| drop(test.join().unwrap().expect(200)));
    daemon.poke(test).expect(200);
}

#[test]
fn runs_of_workflows_beyond_their_places() {
    let model = Model::start();
    let daemon = harness(&model.config());
    let neighbour = Neighbour::of(&daemon);
    let agent = daemon.agent_with("a", "");
    // Two minutes, as a step has them otherwise, may be over before a slow machine has begun all runs.
    let steps = json!([{ "agent_id": agent, "prompt": "{{input}}", "timeout_secs": 3_600 }]);
    let made = daemon.post("/api/workflows", &json!({ "name": "w", "steps": steps })).expect(201);
    let path = format!("/api/workflows/{}/run", text(&made["workflow_id"]));
    let memory = Memory::of(&daemon);
    model.hold();
    let body = json!({ "input": "i".repeat(2_000), "async": true });
    let answers = super::wire::flood(&daemon, 0..10_050, |_| request("POST", &path, Some(&body)));
    assert_eq!((answers[&202].0, answers[&429].0), (10_000, 50), "{answers:?}");
    answers[&429].1.refused(429);
    memory.is_flat(&daemon, "10,000 runs that wait");
    neighbour.is_served();
    model.release();
    wait("they come to their end", || {
        let world = daemon.get("/api/world").expect(200);
        let open =
            world["queues"].as_array()?.iter().find(|queue| queue["name"] == "turns_open")?["length"].as_u64()?;
        (open < 100).then_some(())
    });
    daemon.post(&path, &body).expect(202);
    neighbour.leave();
}

/// The world's rehearsals, snapshots and backups: one at a time.
#[test]
fn what_goes_over_the_whole_world_goes_one_at_a_time() {
    let daemon: Daemon = harness("");
    let neighbour = Neighbour::of(&daemon);
    let memory = Memory::of(&daemon);
    for (path, body, statuses) in [
        ("/api/world/snapshots", json!({}), [201, 409]),
        ("/api/backup", json!({}), [200, 409]),
        ("/api/world/rehearsals", json!({ "for": "1h" }), [202, 409]),
    ] {
        let asked: Vec<_> = (0..24).map(|_| aside(&daemon, path, body.clone())).collect();
        let replies: Vec<Reply> = asked.into_iter().map(|one| one.join().unwrap()).collect();
        for reply in &replies {
            assert!(statuses.contains(&reply.status), "{path}: {} {}", reply.status, reply.text());
        }
        assert!(replies.iter().any(|reply| reply.status == statuses[0]), "{path}: nobody had it");
    }
    memory.is_flat(&daemon, "many that want the whole world");
    neighbour.leave();
}
