//! Callers of inbound hooks that mean harm: without the token, with it and too often, with bodies and keys without end. Agents
//! beside them, and the operator, are served all the while.

use std::io::Write;

use serde_json::{Value, json};

use super::harness::{Memory, Neighbour, metric, wait};
use super::wire::{Wire, count, drain, flood};
use crate::support::daemon::Daemon;
use crate::support::http::Client;
use crate::support::model::Model;

const TOKEN: &str = "a-token-of-hooks-with-32-bytes-or-more";
/// Calls of a flood.
const CALLS: usize = 2_000;
/// Calls whose turns may be open at once.
const OPEN: usize = 256;
/// Calls that are kept.
const KEPT: usize = 5_000;

/// A daemon whose hooks may be called so often in a minute.
fn daemon(rate: u32, config: &str) -> Daemon {
    let config = format!(
        "rate_limit_per_second = 10000000\n{config}[webhook_triggers]\nenabled = true\ntoken_env = \"HOOK_TOKEN\"\n\
         rate_limit_per_minute = {rate}\n"
    );
    Daemon::with_env(&config, &[("HOOK_TOKEN", TOKEN)])
}

/// A call that leaves the connection open.
fn call(path: &str, token: &str, key: Option<&str>, body: &Value) -> Vec<u8> {
    let (body, key) = (body.to_string(), key.map_or_else(String::new, |key| format!("idempotency-key: {key}\r\n")));
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n{key}content-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

fn once(client: &Client, path: &str, key: Option<&str>, body: &Value) -> crate::support::http::Reply {
    let mut wire = Wire::open(client).unwrap();
    wire.send(&call(path, TOKEN, key, body)).unwrap();
    wire.reply().unwrap()
}

#[test]
fn callers_without_the_token_take_nothing_of_those_who_have_it() {
    let daemon = daemon(10, "");
    let (agent, neighbour) = (daemon.agent("a"), Neighbour::of(&daemon));
    let memory = Memory::of(&daemon);
    let long = "x".repeat(4_000);
    let body = json!({ "message": "m".repeat(16_000), "agent": agent });
    let tokens = ["", "wrong", &TOKEN[1..], &long];
    let path = |n: usize| if n.is_multiple_of(2) { "/api/hooks/agent" } else { "/hooks/wake" };
    let answers = flood(&daemon, 0..CALLS, |n| call(path(n), tokens[n % tokens.len()], Some("k"), &body));
    assert_eq!(count(&answers, 401), CALLS, "{answers:?}");
    let refused = &answers[&401].1;
    assert!(refused.text().contains("webhook_invalid_token") && !refused.text().contains(TOKEN));
    memory.is_flat(&daemon, "2,000 calls with wrong tokens");
    neighbour.is_served();
    // They are not counted: the calls of this minute are still there.
    for n in 0..10 {
        let body = json!({ "message": format!("hello {n}"), "agent": agent });
        assert_eq!(once(&daemon, "/api/hooks/agent", None, &body).expect(200)["status"], "completed");
    }
    let ended = || metric(&daemon, "agentsvc_hook_calls{state=\"ended\"}");
    wait("the calls are counted", || ended().filter(|ended| *ended >= 10.0));
    assert_eq!(ended(), Some(10.0), "nobody else was let in");
    neighbour.leave();
}

#[test]
fn a_caller_with_the_token_has_its_rate_and_no_more() {
    let daemon = daemon(50, "");
    let (agent, neighbour) = (daemon.agent("a"), Neighbour::of(&daemon));
    let memory = Memory::of(&daemon);
    let body = json!({ "text": "t".repeat(4_000), "agent": agent, "mode": "now" });
    let answers = flood(&daemon, 0..CALLS, |_| call("/api/hooks/wake", TOKEN, None, &body));
    let (taken, refused) = (count(&answers, 200), count(&answers, 429));
    assert_eq!(taken + refused, CALLS, "{answers:?}");
    // A minute may end meanwhile on a slow machine.
    assert!(taken >= 50 && refused > CALLS / 2, "{taken} were let in");
    let one = &answers[&429].1;
    one.refused(429);
    assert!(one.text().contains("webhook_rate_limited") && one.header("retry-after").is_some());
    memory.is_flat(&daemon, "2,000 calls above the rate");
    daemon.say(&agent, "hello");
    neighbour.leave();
}

#[test]
fn open_calls_have_a_bound_and_are_answered_in_the_end() {
    let model = Model::start();
    let daemon = daemon(1_000_000, &model.config());
    let (hooked, neighbour) = (daemon.agent_with("hooked", ""), Neighbour::of(&daemon));
    let memory = Memory::of(&daemon);
    model.hold();
    let body = json!({ "text": "the build is red", "agent": hooked });
    let answers = flood(&daemon, 0..CALLS, |_| call("/api/hooks/wake", TOKEN, None, &body));
    assert_eq!((count(&answers, 200), count(&answers, 429)), (OPEN, CALLS - OPEN), "{answers:?}");
    assert!(answers[&429].1.text().contains("hook_calls_full"));
    // Wakes that wait for a heartbeat have a bound of their own.
    let body = json!({ "text": "later", "agent": hooked, "mode": "next_heartbeat" });
    let answers = flood(&daemon, 0..CALLS, |_| call("/api/hooks/wake", TOKEN, None, &body));
    assert_eq!((count(&answers, 200), count(&answers, 429)), (100, CALLS - 100), "{answers:?}");
    memory.is_flat(&daemon, "calls that are open");
    neighbour.is_served();
    model.release();
    wait("all turns have ended", || (metric(&daemon, "agentsvc_hook_calls{state=\"running\"}")? < 1.0).then_some(()));
    once(&daemon, "/api/hooks/wake", None, &json!({ "text": "and now?", "agent": hooked })).expect(200);
    neighbour.leave();
}

#[test]
fn bodies_without_end_are_refused_before_they_are_there() {
    let daemon = daemon(1_000_000, "");
    let neighbour = Neighbour::of(&daemon);
    let memory = Memory::of(&daemon);
    let head = |length: &str| {
        format!(
            "POST /api/hooks/agent HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\n{length}\r\n\r\n"
        )
    };
    let piece = vec![b' '; 64 << 10];
    let declared = |stream: &mut std::net::TcpStream| {
        // The other side may be gone before all is written.
        let _ = stream.write_all(head("content-length: 1000000000").as_bytes());
        let _ = stream.write_all(&piece).and_then(|()| stream.write_all(&piece));
    };
    let chunked = |stream: &mut std::net::TcpStream| {
        let _ = stream.write_all(head("transfer-encoding: chunked").as_bytes());
        for _ in 0..4 {
            let chunk = format!("{:x}\r\n", piece.len());
            let _ = stream.write_all(chunk.as_bytes()).and_then(|()| stream.write_all(&piece));
            let _ = stream.write_all(b"\r\n");
        }
    };
    let ways: [&(dyn Fn(&mut std::net::TcpStream) + Sync); 2] = [&declared, &chunked];
    std::thread::scope(|scope| {
        for n in 0..64 {
            let (daemon, way) = (&daemon, ways[n % 2]);
            scope.spawn(move || {
                let mut stream = daemon.connect().unwrap();
                way(&mut stream);
                let answer = drain(&mut stream);
                let said = String::from_utf8_lossy(&answer);
                // A reset may eat the answer, as the client still writes.
                assert!(said.is_empty() || said.starts_with("HTTP/1.1 413 "), "{said}");
            });
        }
    });
    memory.is_flat(&daemon, "64 bodies without end");
    assert_eq!(metric(&daemon, "agentsvc_hook_calls{state=\"ended\"}"), Some(0.0), "no agent was asked");
    neighbour.leave();
}

#[test]
fn keys_without_end_push_out_the_oldest_and_no_more() {
    let daemon = daemon(1_000_000, "");
    let agents: Vec<String> = (0..24).map(|n| daemon.agent(&format!("a{n}"))).collect();
    let neighbour = Neighbour::of(&daemon);
    let memory = Memory::of(&daemon);
    let body = |n: usize| json!({ "message": format!("m{n}"), "agent": agents[n % agents.len()] });
    let key = |n: usize| format!("{n:x>255}");
    let most = KEPT + 500;
    let answers = flood(&daemon, 0..most, |n| call("/api/hooks/agent", TOKEN, Some(&key(n)), &body(n)));
    assert_eq!(count(&answers, 200), most, "{answers:?}");
    let kept = metric(&daemon, "agentsvc_hook_calls{state=\"ended\"}").unwrap();
    assert!(kept <= KEPT as f64 && kept > KEPT as f64 - 100.0, "{kept} calls are kept");
    memory.is_flat(&daemon, "5,500 idempotency keys");
    // The newest is known: its repetition is no second turn.
    let last = once(&daemon, "/api/hooks/agent", Some(&key(most - 1)), &body(most - 1)).expect(200);
    let again = once(&daemon, "/api/hooks/agent", Some(&key(most - 1)), &body(most - 1)).expect(200);
    assert_eq!(last["turn_id"], again["turn_id"]);
    // One key with many messages at once is one call, and the others are told so.
    let answers = flood(&daemon, 0..500, |n| call("/api/hooks/agent", TOKEN, Some("one"), &body(n)));
    assert_eq!((count(&answers, 200), count(&answers, 409)), (1, 499), "{answers:?}");
    neighbour.leave();
}
