//! Custom events over HTTP and by the tool `event_publish`.

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::until;

/// Waits until so many custom events are counted.
#[track_caller]
fn published(daemon: &Daemon, count: usize) {
    let line = format!("agentsvc_events_custom_total {count}\n");
    until("the events are counted", || daemon.get("/api/metrics").text().contains(&line).then_some(()));
}

#[test]
fn a_client_publishes_events() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let body = json!({ "event_type": "report.ready", "payload": { "pages": [1, 2] }, "agent_id": agent });
    let answer = daemon.post("/api/events", &body).expect(200);
    assert_eq!(answer, json!({ "status": "published", "event_type": "report.ready" }));
    daemon.post("/api/events", &json!({ "event_type": "bare" })).expect(200);
    published(&daemon, 2);
}

#[test]
fn what_is_no_event_names_the_field() {
    let daemon = Daemon::start();
    for (body, status, field) in [
        (json!({}), 400, "event_type"),
        (json!({ "event_type": "" }), 400, "event_type"),
        (json!({ "event_type": "With Space" }), 400, "event_type"),
        (json!({ "event_type": "t".repeat(129) }), 400, "event_type"),
        (json!({ "event_type": 7 }), 400, "event_type"),
        (json!({ "event_type": "t", "payload": "p".repeat(17_000) }), 400, "payload"),
        (json!({ "event_type": "t", "agent_id": "x" }), 400, "agent_id"),
        (json!({ "event_type": "t", "agent_id": "018f0000-0000-7000-8000-00000000dead" }), 404, "agent_id"),
    ] {
        daemon.post("/api/events", &body).refused_field(status, field);
    }
    published(&daemon, 0);
}

#[test]
fn an_agent_publishes_events() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "[capabilities]\ntools = [\"event_publish\"]\n");
    let ask = |input: Value| {
        model.script([Reply::calls(&[("c1", "event_publish", &input.to_string())]), Reply::text("done")]);
        daemon.say(&agent, "go");
        let request = model.requests().pop().unwrap();
        text(&request["messages"].as_array().unwrap().last().unwrap()["content"])
    };
    assert_eq!(ask(json!({ "event_type": "report.ready", "payload": { "pages": 3 } })), "Published.");
    assert!(ask(json!({ "event_type": "No!" })).contains("event_type must contain only"));
    published(&daemon, 1);
}
