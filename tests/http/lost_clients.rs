//! Clients that go away in the middle of a request: what was begun is carried out whole, and nothing is left behind.

use std::io::Write;

use serde_json::json;

use super::people::daemon;
use crate::support::daemon::text;
use crate::support::http::Client;
use crate::support::until;

/// Sends a request and goes away without having read anything, while so many others are answered.
fn send_and_go(client: &Client, head: &str, body: &[u8], others: usize) {
    let mut stream = client.connect().expect("a connection");
    stream.write_all(head.as_bytes()).expect("the head is sent");
    if let Some((last, first)) = body.split_last() {
        stream.write_all(first).expect("the body is sent");
        client.get("/api/health").expect(200);
        stream.write_all(&[*last]).expect("the body is sent");
    }
    for _ in 0..others {
        client.get("/api/health").expect(200);
    }
}

fn key(client: &Client, name: &str) -> (String, String) {
    let made = client.post("/api/keys", &json!({ "name": name })).expect(201);
    (text(&made["id"]), text(&made["key"]))
}

#[test]
fn a_key_that_is_gone_from_the_list_is_refused_though_its_revocation_lost_its_client() {
    let daemon = daemon();
    // Wrong keys slow the key of the configuration down, and no named one.
    let (_, own) = key(&daemon, "own");
    let admin = daemon.keyed(&own);
    for at in 0..40 {
        let (id, made) = key(&admin, &format!("k{at}"));
        let client = daemon.keyed(&made);
        client.get("/api/agents").expect(200);
        let head = format!(
            "DELETE /api/keys/{id} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {own}\r\ncontent-length: 0\r\n\r\n"
        );
        send_and_go(&daemon, &head, &[], at % 4);
        if admin.get(&format!("/api/keys/{id}")).status == 404 {
            until("the key is refused", || (client.get("/api/agents").status != 200).then_some(()));
        }
    }
}

#[test]
fn a_person_who_was_demoted_stays_so_though_the_client_is_gone() {
    let daemon = daemon();
    for at in 0..10 {
        let (user, client) = super::people::person(&daemon, &format!("p{at}"), "admin");
        client.get("/api/keys").expect(200);
        let body = br#"{"role":"viewer"}"#;
        let head = format!(
            "PATCH /api/users/{user} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer the-key-of-the-configuration\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        send_and_go(&daemon, &head, body, at % 4);
        if daemon.get(&format!("/api/users/{user}")).expect(200)["role"] == "viewer" {
            until("the person is a viewer", || (client.get("/api/keys").status == 403).then_some(()));
        }
    }
}

#[test]
fn a_recording_whose_client_is_gone_is_not_kept() {
    let daemon = daemon();
    let recording = [0; 40_000];
    let head = format!(
        "POST /api/media/transcribe HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer the-key-of-the-configuration\r\n\
         content-type: audio/wav\r\ncontent-length: {}\r\n\r\n",
        recording.len()
    );
    for at in 0..24 {
        send_and_go(&daemon, &head, &recording, at % 6);
    }
    until("nothing is kept", || daemon.get("/api/metrics").text().contains("agentsvc_uploads_bytes 0\n").then_some(()));
    until("nothing is on the disk", || {
        let left = std::fs::read_dir(daemon.home().join("uploads")).expect("uploads").count();
        (left == 0).then_some(())
    });
}
