//! Limits: rate, slow clients, and what a full world says (spec 1, Limits).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::people::{CONFIG, person};
use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::socket::Socket;
use crate::support::until;

#[test]
fn a_client_over_its_rate_gets_429_and_recovers() {
    // A slow machine asks but seldom: the bucket must be small to run dry there too.
    let daemon = Daemon::with("rate_limit_per_second = 1\n");
    let refused = until("the bucket runs dry", || {
        let reply = daemon.get("/api/agents");
        (reply.status != 200).then_some(reply)
    });
    refused.refused(429);
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert!(refused.header("x-request-id").is_some() && refused.header("x-frame-options").is_some());
    until("the bucket fills again", || (daemon.get("/api/agents").status == 200).then_some(()));
}

#[test]
fn messages_cost_more_than_reads() {
    let spent = |path: &str, body: Option<&[u8]>| {
        let daemon = Daemon::with("rate_limit_per_second = 5\n");
        let method = if body.is_some() { "POST" } else { "GET" };
        // What the start has taken out of the bucket is back after two seconds.
        let started = Instant::now();
        until("the bucket is full", || (started.elapsed() >= Duration::from_secs(2)).then_some(()));
        let begun = Instant::now();
        // A machine too slow to empty it with reads ends there, too.
        let count = (0..30).take_while(|_| daemon.send(method, path, &[], body).status != 429).count();
        // What the bucket gained while it was emptied does not count.
        (count as f64, begun.elapsed().as_secs_f64() * 5.0)
    };
    let message = format!("/api/agents/{}/message", uuid::Uuid::nil());
    let (reads, gained) = spent("/api/agents/00000000-0000-0000-0000-000000000000", None);
    let (messages, _) = spent(&message, Some(br#"{"message":"x"}"#));
    assert!(messages * 4.0 < reads - gained.min(reads / 2.0), "{messages} messages, {reads} reads");
}

#[test]
fn a_slow_head_is_cut_off() {
    let daemon = Daemon::start();
    let mut wire = daemon.connect().unwrap();
    wire.write_all(b"GET /api/health HTTP/1.1\r\nhost: localhost\r\nx-slow: ").unwrap();
    // No more comes: the daemon closes within its time for heads, and serves others meanwhile.
    daemon.get("/api/health").expect(200);
    let mut answer = Vec::new();
    let ended = wire.read_to_end(&mut answer);
    assert!(ended.is_ok() || ended.is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset));
    let text = String::from_utf8_lossy(&answer);
    assert!(text.is_empty() || text.starts_with("HTTP/1.1 408"), "{text}");
}

#[test]
fn many_idle_connections_do_not_keep_others_out() {
    let daemon = Daemon::start();
    let idle: Vec<_> = (0..500).map(|_| daemon.connect().unwrap()).collect();
    daemon.get("/api/health").expect(200);
    daemon.post("/api/agents", &json!({ "manifest_toml": "name = \"x\"" })).expect(201);
    drop(idle);
}

#[test]
fn the_texts_of_a_manifest_have_a_bound_that_changes_respect_too() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let path = format!("/api/agents/{agent}");
    let long = "x".repeat(200 << 10);
    daemon.patch(&path, &json!({ "description": long })).expect(200);
    let before = daemon.detail(&agent);
    let said = daemon.patch(&path, &json!({ "system_prompt": long, "name": "b" })).refused(400);
    assert!(said.contains("manifest") && said.contains("the limit is 262144"), "{said}");
    assert_eq!(daemon.detail(&agent), before, "nothing changed");
    daemon.patch(&path, &json!({ "system_prompt": long, "description": "short" })).expect(200);
}

#[test]
fn a_long_message_is_taken_up_to_its_bound() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let message = "y".repeat(1 << 20);
    daemon.say(&agent, &message);
    let session = crate::support::daemon::text(&daemon.detail(&agent)["session_id"]);
    assert_eq!(daemon.transcript(&session)[0].1.len(), 1 << 20);
}

#[test]
fn tokens_beyond_what_is_counted_are_no_limit() {
    let daemon = Daemon::start();
    let most = i64::MAX as u64;
    assert_eq!(
        daemon.put("/api/budget", &json!({ "hourly_token_limit": most })).expect(200)["hourly_token_limit"],
        most
    );
    daemon.put("/api/budget", &json!({ "hourly_token_limit": most + 1 })).refused_field(400, "hourly_token_limit");
    assert_eq!(daemon.get("/api/budget").expect(200)["hourly_token_limit"], most);
}

/// Asks on a new connection that stays open; gives the connection where it was served, and what was said.
fn ask(client: &Client) -> (Option<TcpStream>, String) {
    let mut wire = client.connect().unwrap();
    let key = client.key.as_deref().unwrap();
    let request = format!("GET /api/whoami HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\r\n");
    wire.write_all(request.as_bytes()).unwrap();
    let (mut said, mut piece) = (String::new(), [0; 4_096]);
    while !said.ends_with('}') {
        let read = wire.read(&mut piece).unwrap();
        assert!(read > 0, "closed after: {said}");
        said.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    (said.starts_with("HTTP/1.1 200 ").then_some(wire), said)
}

#[test]
fn one_user_holds_no_more_connections_than_their_share_and_none_with_a_key_that_was_revoked() {
    // Half of the open files may be connections: 512. Three eighths are for users with a limited role, 48 for each.
    let mut daemon = Daemon::launched(&["prlimit", "--nofile=1024:1024"], CONFIG, &[]);
    daemon.use_key("the-key-of-the-configuration");
    let (user, other) = person(&daemon, "ann", "user");
    let (_, bob) = person(&daemon, "bob", "viewer");
    let made = daemon.post("/api/keys", &json!({ "name": "second", "user_id": user })).expect(201);
    let (ann, id) = (daemon.keyed(&text(&made["key"])), text(&made["id"]));
    let manifest = json!({ "manifest_toml": "name = \"anns\"\n[model]\nsystem_prompt = \"x\"\n" });
    let agent = text(&ann.post("/api/agents", &manifest).expect(201)["agent_id"]);
    // A socket holds a connection as any other.
    let mut sockets: Vec<Socket> = (0..8).map(|_| Socket::open(&ann, &agent)).collect();
    let mut held = Vec::new();
    let refused = loop {
        match ask(&ann) {
            (Some(wire), _) => held.push(wire),
            (None, said) => break said,
        }
        assert!(held.len() <= 48, "there is no end");
    };
    // Connections that asked before may still be closing.
    assert!((30..=40).contains(&held.len()), "{}", held.len());
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("\r\nretry-after: 1\r\n"), "{refused}");
    assert!(refused.contains("\"code\":\"connections\""), "{refused}");
    until("her share is used up", || {
        ask(&other).0.map_or(Some(()), |wire| {
            held.push(wire);
            None
        })
    });
    assert_eq!(other.get("/api/whoami").status, 503);
    let path = format!("/api/agents/{agent}/ws");
    assert_eq!(Socket::ask(&ann, &path, &[]).err().map(|refused| refused.status), Some(503));
    bob.get("/api/whoami").expect(200);
    daemon.get("/api/status").expect(200);
    // What the key has opened ends with it, or counts for nobody.
    daemon.delete(&format!("/api/keys/{id}")).expect(204);
    assert!(sockets.iter_mut().all(|socket| socket.closed() == 1008));
    // More than the sockets held: the other connections count for nobody, too.
    let mut again = Vec::new();
    until("there is room for her other key", || {
        again.push(Socket::ask(&other, &path, &[]).ok()?);
        (again.len() == 20).then_some(())
    });
    daemon.get("/api/status").expect(200);
    ann.get("/api/whoami").refused(401);
}
