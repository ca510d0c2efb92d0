//! Comms over HTTP (spec 3, Comms): the graph, the events, the stream, messages and tasks.

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::stream::Events;

const NOBODY: &str = "018f0000-0000-7000-8000-00000000dead";

fn events(daemon: &Daemon) -> Vec<Value> {
    daemon.get("/api/comms/events").expect(200)["events"].as_array().unwrap().clone()
}

/// A stream that goes on behind the event `seen`.
fn stream(daemon: &Daemon, seen: Option<&str>) -> Events {
    let headers: Vec<_> = seen.map(|seen| ("last-event-id", seen)).into_iter().collect();
    Events::open_with(daemon, "GET", "/api/comms/events/stream", &headers, None)
}

#[test]
fn agents_that_write_to_each_other_are_seen_also_after_a_kill() {
    let model = Model::start();
    let mut daemon = Daemon::with(&model.config());
    let a = daemon.agent_with("a", "[capabilities]\ntools = [\"agent_*\"]\nagent_spawn = true\n");
    let mut live = stream(&daemon, None);
    let spawn = json!({ "name": "kid", "system_prompt": "help" }).to_string();
    let send = json!({ "agent": "kid", "message": "hello kid" }).to_string();
    model.script([
        Reply::calls(&[("1", "agent_spawn", &spawn)]),
        Reply::calls(&[("2", "agent_send", &send)]),
        Reply::text("hello parent"),
        Reply::text("done"),
    ]);
    daemon.say(&a, "go");
    let spawned = live.next().unwrap();
    assert_eq!((spawned.name.as_str(), &spawned.data["kind"]), ("message", &json!("agent_spawned")));
    assert_eq!((&spawned.data["source_name"], &spawned.data["target_name"]), (&json!("kid"), &json!("a")));
    let sent = live.next().unwrap().data;
    assert_eq!(
        (&sent["kind"], &sent["source_id"], &sent["detail"]),
        (&json!("agent_message"), &json!(a), &json!("hello kid"))
    );
    let topology = daemon.get("/api/comms/topology").expect(200);
    let kid = text(&spawned.data["source_id"]);
    let edge = |kind: &str| json!({ "from": a, "to": kid, "kind": kind });
    assert_eq!(topology["edges"], json!([edge("parent_child"), edge("peer")]));
    let node = topology["nodes"].as_array().unwrap().iter().find(|node| node["name"] == "kid").unwrap();
    assert_eq!((&node["state"], &node["address"]), (&json!("Running"), &json!(format!("agent:{kid}"))));
    assert_eq!((&topology["total"], &topology["truncated"]), (&json!(3), &json!(false)));
    let before = events(&daemon);
    assert_eq!(before[0], sent, "newest first");
    drop(live);
    daemon.restart();
    assert_eq!(events(&daemon), before);
    assert_eq!(daemon.get("/api/comms/topology").expect(200), topology);
    // One that comes back after the restart gets what it missed, and then what is new.
    let mut again = stream(&daemon, Some(&text(&spawned.data["id"])));
    assert_eq!(again.next().unwrap().data, sent);
    daemon.post("/api/comms/task", &json!({ "title": "count" })).expect(201);
    assert_eq!(again.next().unwrap().data["kind"], "task_posted");
    let kill = json!({ "agent": "kid" }).to_string();
    model.script([Reply::calls(&[("3", "agent_kill", &kill)]), Reply::text("done")]);
    daemon.say(&a, "go");
    let gone = again.next().unwrap().data;
    assert_eq!(
        (&gone["kind"], &gone["source_name"], &gone["target_id"]),
        (&json!("agent_terminated"), &json!("kid"), &json!(a))
    );
}

#[test]
fn a_message_in_the_name_of_an_agent_takes_both_shapes() {
    let daemon = Daemon::start();
    let (a, b) = (daemon.agent("a"), daemon.agent("b"));
    let spec = json!({ "from": format!("agent:{a}"), "to": format!("agent:{b}"), "content": "one" });
    let sent = daemon.post("/api/comms/send", &spec).expect(200);
    assert_eq!(sent["ok"], true);
    assert!(!text(&sent["response"]).is_empty() && sent["output_tokens"].as_u64().is_some());
    let thread = "018f0000-0000-7000-8000-000000000abc";
    let real =
        json!({ "from_agent_id": a, "to_agent_id": b, "message": "two", "thread_id": thread, "attachments": [] });
    let sent = daemon.post("/api/comms/send", &real).expect(200);
    assert_eq!(sent["session_id"], thread);
    let seen: Vec<_> = events(&daemon).into_iter().filter(|event| event["kind"] == "agent_message").collect();
    assert_eq!((seen.len(), &seen[0]["detail"], &seen[1]["detail"]), (2, &json!("two"), &json!("one")));
    assert_eq!((&seen[0]["source_name"], &seen[0]["target_name"]), (&json!("a"), &json!("b")));
    for (body, status, field) in [
        (json!({}), 400, "from"),
        (json!({ "from": a, "content": "x" }), 400, "to"),
        (json!({ "from": "a", "to": b, "content": "x" }), 400, "from"),
        (json!({ "from": a, "to": b }), 400, "content"),
        (json!({ "from": a, "to": b, "content": " " }), 400, "content"),
        (json!({ "from_agent_id": NOBODY, "to_agent_id": b, "message": "x" }), 404, "from_agent_id"),
        (json!({ "from": a, "to": format!("agent:{NOBODY}"), "content": "x" }), 404, "to"),
        (json!({ "from": a, "to": b, "content": "x", "thread_id": 7 }), 400, "thread_id"),
    ] {
        daemon.post("/api/comms/send", &body).refused_field(status, field);
    }
    let count = events(&daemon).iter().filter(|event| event["kind"] == "agent_message").count();
    assert_eq!(count, 2, "what is refused leaves no event");
}

#[test]
fn a_task_goes_its_way() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let body = json!({ "title": "count", "description": "the sheep", "assigned_to": format!("agent:{agent}") });
    let posted = daemon.post("/api/comms/task", &body).expect(201);
    assert_eq!(posted["ok"], true);
    let task = text(&posted["task_id"]);
    assert_eq!(daemon.get(&format!("/api/tasks/{task}")).expect(200)["assignee"], agent);
    daemon.post(&format!("/api/tasks/{task}/claim"), &json!({ "agent_id": agent })).expect(200);
    daemon.poke(&format!("/api/tasks/{task}/complete")).expect(200);
    let kinds: Vec<_> = events(&daemon).iter().take(3).map(|event| text(&event["kind"])).collect();
    assert_eq!(kinds, ["task_completed", "task_claimed", "task_posted"]);
    assert_eq!(events(&daemon)[2]["target_name"], "a");
    daemon.post("/api/comms/task", &json!({})).refused_field(400, "title");
    let long = json!({ "title": "t", "assigned_to": "x".repeat(300) });
    daemon.post("/api/comms/task", &long).refused_field(400, "assigned_to");
}

#[test]
fn events_are_bounded() {
    let daemon = Daemon::with("rate_limit_per_second = 1000000\n");
    for n in 0..510 {
        daemon.post("/api/comms/task", &json!({ "title": format!("t{n}") })).expect(201);
    }
    assert_eq!(events(&daemon).len(), 100);
    let list = |limit: &str| daemon.get(&format!("/api/comms/events?limit={limit}"));
    assert_eq!(list("2").expect(200)["events"].as_array().unwrap().len(), 2);
    assert_eq!(list("9999").expect(200)["events"].as_array().unwrap().len(), 500);
    list("0").refused_field(400, "limit");
    list("x").refused_field(400, "limit");
}

#[test]
fn streams_are_bounded_and_take_the_id_of_an_event() {
    let daemon = Daemon::start();
    let streams: Vec<_> = (0..64).map(|_| stream(&daemon, None)).collect();
    daemon.get("/api/comms/events/stream").refused(429);
    let metrics = daemon.get("/api/metrics").text();
    assert!(metrics.contains("agentsvc_comms_streams 64\n"));
    drop(streams);
    let headers = [("last-event-id", "7")];
    daemon.send("GET", "/api/comms/events/stream", &headers, None).refused_field(400, "Last-Event-ID");
}
