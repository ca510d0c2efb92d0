//! One agent that is asked for more than it can ever answer.

use serde_json::json;

use super::frames::{ACK, DATA, END_HEADERS, END_STREAM, HEADERS, Http2, SETTINGS, is_ok, post};
use super::harness::{Memory, Neighbour, harness, metric, wait};
use crate::support::model::Model;

/// Turns that may wait in one session.
const INBOX: usize = 16_384;
/// Messages of one connection, as many as it may have streams.
const STREAMS: usize = 256;
/// Messages beyond the bound.
const BEYOND: usize = 2 * STREAMS;

#[test]
fn an_inbox_has_a_bound_and_other_agents_are_answered_before_it_is_empty() {
    let model = Model::start();
    let daemon = harness(&model.config());
    let hog = daemon.agent_with("hog", "");
    let neighbour = daemon.agent_with("neighbour", "");
    let memory = Memory::of(&daemon);
    model.hold();
    let path = format!("/api/agents/{hog}/message/stream");
    let body = json!({ "message": "m".repeat(200) }).to_string();
    let mut lines = Vec::new();
    let (mut taken, mut refused) = (0, 0);
    while taken + refused < INBOX + BEYOND {
        let mut http = Http2::open(&daemon).unwrap();
        for n in 0..u32::try_from(STREAMS).unwrap() {
            http.send(HEADERS, END_HEADERS, 2 * n + 1, &post(&path)).unwrap();
            http.send(DATA, END_STREAM, 2 * n + 1, body.as_bytes()).unwrap();
        }
        let mut answered = 0;
        while answered < STREAMS {
            let frame = http.read().expect("every message is answered");
            match frame.kind {
                HEADERS if is_ok(&frame) => (taken, answered) = (taken + 1, answered + 1),
                HEADERS => (refused, answered) = (refused + 1, answered + 1),
                SETTINGS if frame.flags & ACK == 0 => http.send(SETTINGS, ACK, 0, &[]).unwrap(),
                _ => {}
            }
        }
        lines.push(http);
    }
    assert_eq!((taken, refused), (INBOX, BEYOND));
    let reply = daemon.post(&format!("/api/agents/{hog}/message"), &json!({ "message": "one more" }));
    reply.refused(429);
    assert!(reply.header("retry-after").is_some());
    memory.is_flat(&daemon, "16,384 messages that wait");
    // From here on it works off what waits, one message after the other; its neighbour asks the same model.
    model.release();
    let neighbour = Neighbour::with(&daemon, neighbour);
    neighbour.is_served();
    neighbour.is_served();
    daemon.delete(&format!("/api/agents/{hog}")).expect(200);
    wait("all streams have ended", || (metric(&daemon, "agentsvc_http_requests_in_flight")? <= 4.0).then_some(()));
    drop(lines);
    neighbour.leave();
}
