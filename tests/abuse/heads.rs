//! Heads and bodies that are too much: each is told so with the status that `docs/api.md` has for it.

use std::io::{ErrorKind, Write};

use super::harness::{Memory, Neighbour, harness};
use crate::support::daemon::Daemon;
use crate::support::http::Reply;

/// Asserts that this is one of our errors, with one of these statuses.
#[track_caller]
fn refused(reply: &Reply, statuses: &[u16]) {
    assert!(statuses.contains(&reply.status), "{} {}", reply.status, reply.text());
    assert!(!reply.refused(reply.status).is_empty());
}

fn raw(daemon: &Daemon, head: &str) -> Reply {
    daemon.raw(format!("{head}\r\nhost: localhost\r\nconnection: close\r\n\r\n").as_bytes()).expect("an answer")
}

#[test]
fn heads_beyond_their_bounds_are_refused() {
    let daemon = harness("");
    let memory = Memory::of(&daemon);
    for kib in [17, 63, 65, 256, 1_024] {
        let long = "x".repeat(kib << 10);
        refused(&raw(&daemon, &format!("GET /api/health HTTP/1.1\r\nx-long: {long}")), &[431]);
        refused(&raw(&daemon, &format!("GET /api/health HTTP/1.1\r\n{long}: y")), &[400, 431]);
        refused(&raw(&daemon, &format!("GET /api/health?{long} HTTP/1.1")), &[414, 431]);
        refused(&raw(&daemon, &format!("{long} /api/health HTTP/1.1")), &[400, 405, 431]);
    }
    for count in [101, 1_000, 20_000] {
        let many: Vec<String> = (0..count).map(|n| format!("x-{n}: y")).collect();
        refused(&raw(&daemon, &format!("GET /api/health HTTP/1.1\r\n{}", many.join("\r\n"))), &[431]);
    }
    // Requests that two programs could read in two ways are none.
    for head in [
        "POST /api/events HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6",
        "POST /api/events HTTP/1.1\r\ncontent-length: -1",
        "POST /api/events HTTP/1.1\r\ncontent-length: 99999999999999999999999",
        "POST /api/events HTTP/1.1\r\ntransfer-encoding: gzip",
        "GET /api/health HTTP/9.9",
        "GET /api/health HTTP/1.1\r\nx y: z",
        "GET /api/health HTTP/1.1\r\nx: \u{0}",
    ] {
        let reply = raw(&daemon, head);
        assert!((400..500).contains(&reply.status), "{head:?}: {}", reply.status);
        reply.refused(reply.status);
    }
    memory.is_flat(&daemon, "huge heads");
    daemon.get("/api/health").expect(200);
}

#[test]
fn bodies_beyond_their_bounds_are_refused_and_one_without_end_has_one() {
    let daemon = harness("");
    let neighbour = Neighbour::of(&daemon);
    let agent = daemon.agent("a");
    let memory = Memory::of(&daemon);
    let message = format!("/api/agents/{agent}/message");
    for path in ["/api/events", "/api/tasks", "/api/goals", &message] {
        let long = format!("{{\"title\": \"{}\"}}", "x".repeat(3 << 20));
        let reply = daemon.send("POST", path, &[], Some(long.as_bytes()));
        refused(&reply, &[413]);
        assert_eq!(reply.expect(413)["limit_bytes"], 2 << 20, "{path}");
    }
    // A body in pieces that never ends: 8 at once, each until the daemon has had enough.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let stream = daemon.connect().unwrap();
                let head = "POST /api/events HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
                let piece = format!("{:x}\r\n{}\r\n", 64 << 10, "y".repeat(64 << 10));
                (&stream).write_all(head.as_bytes()).unwrap();
                let mut sent: u64 = 0;
                loop {
                    match (&stream).write(piece.as_bytes()) {
                        Ok(count) => sent += count as u64,
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        Err(_) => break,
                    }
                    assert!(sent < 4 << 30, "it is read on and on");
                }
                assert!(sent > 1 << 20);
            });
        }
    });
    memory.is_flat(&daemon, "bodies without end");
    neighbour.leave();
}
