//! Providers and clients of media that do their worst: what is endless, too much, or not what it says it is.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::media::{answered, config, image, png, tasks, wav};
use crate::support::daemon::{Daemon, text};
use crate::support::model_server::{Gate, ModelServer, Reply};
use crate::support::until;

/// With uploads of at most so many bytes.
fn start(bytes_max: usize, total_max: usize) -> (ModelServer, Daemon) {
    let server = ModelServer::start();
    let uploads = format!("[uploads]\nmax_bytes = {bytes_max}\nmax_total_bytes = {total_max}\n");
    let daemon = Daemon::with(&format!("rate_limit_per_second = 100000\n{}{uploads}", config(&server)));
    (server, daemon)
}

fn keeps_nothing(daemon: &Daemon) {
    assert!(daemon.get("/api/metrics").text().contains("agentsvc_uploads_bytes 0\n"), "something was kept");
}

#[test]
fn a_result_that_is_too_large_is_not_kept_and_the_quota_of_uploads_holds() {
    let (server, daemon) = start(20_000, 20_000);
    let audio = |bytes: usize| {
        let file = format!("{}{}", wav(), "0".repeat(bytes));
        Reply::raw(200, &[("content-type", "audio/wav")], &file)
    };
    server.push(audio(100_000));
    let refused = daemon.post("/api/media/speech", &json!({ "text": "x" }));
    refused.refused(502);
    assert!(refused.text().contains("longer than 20000 bytes"), "{}", refused.text());
    keeps_nothing(&daemon);
    server.push(audio(6_000));
    daemon.post("/api/media/speech", &json!({ "text": "x" })).expect(200);
    server.push(audio(6_000));
    let full = daemon.post("/api/media/speech", &json!({ "text": "x" }));
    full.refused(507);
    assert!(full.text().contains("task_id"), "{}", full.text());
    // A deleted result makes room.
    assert_eq!(daemon.delete(&format!("/api/media/tasks/{}", text(&tasks(&daemon)[1]["id"]))).status, 204);
    server.push(audio(6_000));
    daemon.post("/api/media/speech", &json!({ "text": "x" })).expect(200);
    assert_eq!(server.requests().len(), 4, "nothing was repeated");
}

#[test]
fn more_results_than_were_asked_for_are_left_out() {
    let (server, daemon) = start(1 << 20, 1 << 24);
    let item = json!({ "b64_json": STANDARD.encode(png()) });
    server.push(answered(&json!({ "data": vec![item; 50] })));
    let made = daemon.post("/api/media/image", &json!({ "prompt": "x", "count": 2 })).expect(200);
    assert_eq!(made["images"].as_array().map(Vec::len), Some(2));
    let links: Vec<String> = (0..500).map(|n| format!("http://{}/{n}", server.address())).collect();
    server.push(answered(&json!({ "data": { "image_urls": links }, "base_resp": { "status_code": 0 } })));
    server.respond(|_| Reply::raw(200, &[], "GIF89a\x10\0\x20\0"));
    let made = daemon.post("/api/media/image", &json!({ "prompt": "x", "provider": "minimax" })).expect(200);
    assert!((1..=4).contains(&made["images"].as_array().map_or(0, Vec::len)), "{made}");
    assert!(server.requests().len() <= 6, "{} requests", server.requests().len());
}

#[test]
fn ids_texts_and_structures_of_providers_are_bounded() {
    let (server, daemon) = start(1 << 20, 1 << 24);
    let video = |server: &ModelServer, id: &Value| {
        server.push(answered(&json!({ "task_id": id, "base_resp": { "status_code": 0 } })));
        let id = text(&daemon.post("/api/media/video", &json!({ "prompt": "x" })).expect(202)["task_id"]);
        let path = format!("/api/media/tasks/{id}");
        until("the end", || Some(daemon.get(&path).expect(200)).filter(|task| !task["ended_at"].is_null()))
    };
    for id in [json!("x".repeat(10_000)), json!(""), json!({ "a": 1 }), Value::Null] {
        let ended = video(&server, &id);
        assert_eq!(ended["reason"], "protocol", "{ended}");
    }
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    server.push(Reply::raw(200, &[("content-type", "application/json")], &nested));
    daemon.post("/api/media/image", &json!({ "prompt": "x" })).refused(502);
    server.push(answered(&json!({ "base_resp": { "status_code": 2013, "status_msg": "m".repeat(100_000) } })));
    let refused = daemon.post("/api/media/image", &json!({ "prompt": "x", "provider": "minimax" }));
    refused.refused(400);
    assert!(refused.body.len() < 2_000, "{} bytes", refused.body.len());
    let prompted = json!({ "b64_json": STANDARD.encode(png()), "revised_prompt": "p".repeat(1 << 20) });
    server.push(answered(&json!({ "data": [prompted] })));
    let made = daemon.post("/api/media/image", &json!({ "prompt": "x" })).expect(200);
    assert_eq!(text(&made["revised_prompt"]).len(), 256 << 10);
}

/// A page that begins like a picture is served as a picture that runs nothing.
#[test]
fn a_file_of_two_kinds_is_never_a_page() {
    let (server, daemon) = start(1 << 20, 1 << 24);
    let both = [&b"GIF89a\x10\0\x20\0<html><script>alert(1)</script>"[..]].concat();
    server.push(answered(&json!({ "data": [{ "b64_json": STANDARD.encode(both) }] })));
    let made = daemon.post("/api/media/image", &json!({ "prompt": "x" })).expect(200);
    let file = daemon.get(&text(&made["images"][0]["url"]));
    assert_eq!(
        (file.header("content-type"), file.header("x-content-type-options")),
        (Some("image/gif"), Some("nosniff"))
    );
    assert!(file.header("content-security-policy").is_some_and(|policy| policy.contains("sandbox")));
    server.push(answered(&json!({ "data": [{ "b64_json": STANDARD.encode("<svg onload=alert(1)>") }] })));
    daemon.post("/api/media/image", &json!({ "prompt": "x" })).refused(502);
}

#[test]
fn a_link_that_leads_on_to_a_private_place_is_not_followed() {
    let (server, daemon) = start(1 << 20, 1 << 24);
    let link = format!("http://{}/image", server.address());
    server.respond(move |request| match request.path.as_str() {
        "/v1/image_generation" => {
            answered(&json!({ "data": { "image_urls": [link] }, "base_resp": { "status_code": 0 } }))
        }
        _ => Reply::raw(302, &[("location", "http://169.254.169.254/latest/meta-data")], ""),
    });
    let refused = daemon.post("/api/media/image", &json!({ "prompt": "x", "provider": "minimax" }));
    refused.refused(502);
    keeps_nothing(&daemon);
}

#[test]
fn clients_that_ask_for_too_much_are_refused_and_others_are_not() {
    let (server, daemon) = start(1 << 20, 1 << 24);
    let gate = Gate::default();
    let waits = gate.clone();
    server.respond(move |_| answered(&json!({ "base_resp": { "status_code": 2013 } })).gated(&waits));
    let video = || daemon.post("/api/media/video", &json!({ "prompt": "x" }));
    for _ in 0..64 {
        video().expect(202);
    }
    let full = video();
    full.refused(429);
    assert!(full.text().contains("media_tasks_full") && full.header("retry-after").is_some(), "{}", full.text());
    let agent = daemon.agent("other");
    daemon.post("/api/media/video", &json!({ "prompt": "x", "agent_id": agent })).expect(202);
    gate.open();
    until("all have ended", || tasks(&daemon).iter().all(|task| !task["ended_at"].is_null()).then_some(()));
    video().expect(202);
}

#[test]
fn the_result_of_a_client_that_has_gone_is_kept() {
    let (server, daemon) = start(1 << 20, 1 << 24);
    let gate = Gate::default();
    server.push(image().gated(&gate));
    let stream = daemon.client().connect().expect("the daemon listens");
    let body = "{\"prompt\": \"x\"}";
    let head = "POST /api/media/image HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
    write!(&stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).expect("it is sent");
    server.wait_for_requests(1);
    drop(stream);
    gate.open();
    until("the result", || (tasks(&daemon).first()?["status"] == "completed").then_some(()));
    assert_eq!(server.requests().len(), 1);
}
