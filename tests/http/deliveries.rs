//! What leaves the daemon for people: answers of hooks into channels.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::channel_process::{OPEN, Stage, send_ended};
use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::{ModelServer, Reply};
use crate::support::until;

const TOKEN: &str = "a-token-of-hooks-with-32-bytes-or-more";
const BEARER: (&str, &str) = ("authorization", "Bearer a-token-of-hooks-with-32-bytes-or-more");
const JSON: (&str, &str) = ("content-type", "application/json");

/// A daemon with an agent `scout`, a channel and hooks.
fn daemon_with(model: &Model, channels: &str) -> (Daemon, String) {
    let hooks = "[webhook_triggers]\nenabled = true\ntoken_env = \"HOOK_TOKEN\"\n";
    let daemon = Daemon::with_env(&format!("{}{hooks}{channels}", model.config()), &[("HOOK_TOKEN", TOKEN)]);
    let scout = daemon.agent_with("scout", "");
    (daemon, scout)
}

fn hook(daemon: &Daemon, key: &str, body: &Value) -> Value {
    let headers = [BEARER, JSON, ("idempotency-key", key)];
    daemon.send("POST", "/api/hooks/agent", &headers, Some(body.to_string().as_bytes())).expect(200)
}

#[test]
fn the_answer_to_a_hook_goes_into_its_channel_once() {
    let (model, stage) = (Model::start(), Stage::new());
    let entry = stage.entry("bot", &format!("{OPEN}\ndefault_conversation = \"ops\""));
    let allow = "[channels]\nallow_send_to = [\"bot:ann\"]\n";
    let (mut daemon, _) = daemon_with(&model, &format!("{allow}{entry}"));
    let mut adapter = stage.ready(&[]);
    let body = json!({ "message": "one", "agent": "scout", "deliver": true, "channel": "bot" });
    assert_eq!(hook(&daemon, "k1", &body)["response"], "echo: one");
    let send = adapter.next_of("send");
    assert_eq!((&send["channel_id"], &send["text"]), (&json!("ops"), &json!("echo: one")));
    // The same call again has the same answer, and the channel has it already.
    assert_eq!(hook(&daemon, "k1", &body)["response"], "echo: one");
    send_ended(&daemon, "bot", 1);
    daemon.restart();
    let mut adapter = stage.ready(&[]);
    let to_ann = json!({ "message": "two", "agent": "scout", "deliver": true, "channel": "bot", "recipient": "ann" });
    hook(&daemon, "k2", &to_ann);
    let send = adapter.next_of("send");
    assert_eq!((&send["channel_id"], &send["text"]), (&json!("ann"), &json!("echo: two")), "and nothing of before");
    send_ended(&daemon, "bot", 2);
    let unknown = json!({ "message": "x", "agent": "scout", "deliver": true, "channel": "nope" });
    let headers = [BEARER, JSON];
    let refused = daemon.send("POST", "/api/hooks/agent", &headers, Some(unknown.to_string().as_bytes()));
    refused.refused_field(400, "channel");
}

/// A schedule that fires only when it is run.
fn schedule(daemon: &Daemon, agent: &str, prompt: &str) -> String {
    let body = json!({ "agent_id": agent, "cron": "0 0 1 1 *", "prompt": prompt, "name": "Report" });
    text(&daemon.post("/api/schedules", &body).expect(201)["id"])
}

fn outcomes(daemon: &Daemon, path: &str, count: usize) -> Vec<Value> {
    until("the deliveries have ended", || {
        let all = daemon.get(path).expect(200)["deliveries"].as_array().unwrap().clone();
        (all.len() == count && all.iter().all(|it| it["status"] != "queued")).then_some(all)
    })
}

#[test]
fn answers_of_a_schedule_go_to_chats_webhooks_and_files() {
    let (model, stage, receiver) = (Model::start(), Stage::new(), ModelServer::start());
    receiver.respond(|_| Reply::raw(200, &[], "thanks"));
    let entry = stage.entry("bot", OPEN);
    let allow = format!("[web.fetch]\nssrf_allowed_hosts = [\"{}\"]\n", receiver.address());
    let (mut daemon, scout) = daemon_with(&model, &format!("{allow}{entry}"));
    let mut adapter = stage.ready(&[]);
    let id = schedule(&daemon, &scout, "report");
    let path = format!("/api/schedules/{id}/targets");
    let url = format!("http://{}/hook?key=1", receiver.address());
    let body = json!({ "delivery_targets": [
        { "type": "channel", "channel_type": "bot", "recipient": "ann" },
        { "type": "webhook", "url": url, "secret": "s3cret-of-mine", "auth_header": "Bearer t0ken-of-mine" },
        { "type": "local_file", "path": "reports/log.md", "append": true },
    ] });
    let set = daemon.put(&path, &body).expect(200);
    let hook = &set["delivery_targets"][1];
    assert_eq!((&hook["has_secret"], &hook["has_auth_header"]), (&json!(true), &json!(true)));
    assert!(!set.to_string().contains("of-mine"), "{set}");
    daemon.restart();
    drop(adapter);
    adapter = stage.ready(&[]);
    assert_eq!(daemon.get(&path).expect(200), set);
    // Left out, the secrets of the same address stay.
    let mut again = body.clone();
    again["delivery_targets"][1] = json!({ "type": "webhook", "url": url });
    assert_eq!(daemon.put(&path, &again).expect(200), set);
    daemon.poke(&format!("/api/schedules/{id}/run")).expect(200);
    let send = adapter.next_of("send");
    assert_eq!((&send["channel_id"], &send["text"]), (&json!("ann"), &json!("echo: report")));
    let all = outcomes(&daemon, &path, 3);
    let of = |kind: &str| all.iter().find(|it| it["type"] == kind).unwrap().clone();
    assert_eq!(of("channel")["status"], "sent");
    assert_eq!((&of("webhook")["status"], &of("webhook")["tries"]), (&json!("acknowledged"), &json!(1)));
    assert_eq!(of("local_file")["status"], "acknowledged");
    let received = receiver.requests().pop().unwrap();
    let header = |name: &str| received.headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
    assert_eq!(header("x-webhook-id"), text(&of("webhook")["id"]));
    assert_eq!(header("authorization"), "Bearer t0ken-of-mine");
    assert!(header("x-webhook-signature").starts_with("sha256="));
    let posted = &received.body;
    assert_eq!((&posted["text"], &posted["source"]["name"]), (&json!("echo: report"), &json!("Report")));
    let file = daemon.home().join("workspaces/scout/reports/log.md");
    let written = std::fs::read_to_string(file).unwrap();
    assert!(written.starts_with("<!-- delivery ") && written.contains("echo: report"), "{written}");
    let list = daemon.get(&format!("/api/agents/{scout}/deliveries")).expect(200);
    assert_eq!((&list["agent_id"], &list["count"]), (&json!(scout), &json!(3)));
    let mut words: Vec<String> = list["receipts"].as_array().unwrap().iter().map(|it| text(&it["status"])).collect();
    words.sort();
    assert_eq!(words, ["acknowledged", "acknowledged", "sent"]);
    assert!(!daemon.stderr().contains("of-mine") && !daemon.stderr().contains("key=1"));
}

#[test]
fn a_delivery_that_a_kill_interrupts_comes_again_under_its_id_and_a_target_that_fails_says_why() {
    let (model, receiver) = (Model::start(), ModelServer::start());
    let (release, held) = channel::<()>();
    let (asked, held) = (Arc::new(AtomicUsize::new(0)), Mutex::new(held));
    let count = Arc::clone(&asked);
    receiver.respond(move |_| {
        // The first one hangs until the daemon was killed.
        if count.fetch_add(1, Ordering::SeqCst) == 0 {
            let _ = held.lock().unwrap().recv();
        }
        Reply::raw(200, &[], "thanks")
    });
    let allow = format!("[web.fetch]\nssrf_allowed_hosts = [\"{}\"]\n", receiver.address());
    let (mut daemon, scout) = daemon_with(&model, &allow);
    let id = schedule(&daemon, &scout, "report");
    let path = format!("/api/schedules/{id}/targets");
    let url = format!("http://{}/hook", receiver.address());
    let targets = json!({ "delivery_targets": [
        { "type": "webhook", "url": url },
        { "type": "local_file", "path": "out.md" },
        { "type": "last_channel" },
    ] });
    daemon.put(&path, &targets).expect(200);
    daemon.poke(&format!("/api/schedules/{id}/run")).expect(200);
    until("the receiver is asked", || (asked.load(Ordering::SeqCst) == 1).then_some(()));
    daemon.kill();
    drop(release);
    daemon.restart();
    let all = outcomes(&daemon, &path, 3);
    let of = |kind: &str| all.iter().find(|it| it["type"] == kind).unwrap().clone();
    assert_eq!(of("webhook")["status"], "acknowledged");
    assert_eq!(of("last_channel")["status"], "refused");
    assert!(of("last_channel")["reason"].is_string());
    let ids: BTreeSet<String> = receiver
        .requests()
        .iter()
        .map(|it| it.headers.get("x-webhook-id").unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), 1, "one delivery, whatever the tries");
    assert_eq!(of("local_file")["status"], "acknowledged");
}

#[test]
fn wrong_targets_are_named() {
    let model = Model::start();
    let (daemon, scout) = daemon_with(&model, "");
    let path = format!("/api/schedules/{}/targets", schedule(&daemon, &scout, "x"));
    let put = |target: Value| daemon.put(&path, &json!({ "delivery_targets": [target] }));
    daemon.put(&path, &json!({})).refused_field(400, "delivery_targets");
    put(json!({})).refused_field(400, "delivery_targets[0].type");
    put(json!({ "type": "pigeon" })).refused_field(400, "delivery_targets[0].type");
    put(json!({ "type": "channel", "channel_type": "nope" })).refused_field(400, "delivery_targets[0].channel_type");
    put(json!({ "type": "local_file", "path": "../x" })).refused_field(400, "delivery_targets[0].path");
    put(json!({ "type": "webhook", "url": "http://10.0.0.1/" })).refused_field(400, "delivery_targets[0].url");
    put(json!({ "type": "webhook", "url": "x".repeat(3_000) })).refused_field(400, "delivery_targets[0].url");
    put(json!({ "type": "email", "to": "ann@example.com" })).refused_field(400, "delivery_targets[0].account_id");
    let many: Vec<Value> = (0..17).map(|_| json!({ "type": "local_file", "path": "a" })).collect();
    daemon.put(&path, &json!({ "delivery_targets": many })).refused_field(400, "delivery_targets");
    let (none, nothing) = ("00000000-0000-4000-8000-000000000000", json!({ "delivery_targets": [] }));
    daemon.get(&format!("/api/schedules/{none}/targets")).refused(404);
    daemon.put(&format!("/api/schedules/{none}/targets"), &nothing).refused(404);
    daemon.get(&format!("/api/cron/jobs/{none}/targets")).refused(404);
    daemon.put(&format!("/api/cron/jobs/{none}/targets"), &nothing).refused(404);
    daemon.get(&format!("/api/triggers/{none}/targets")).refused(404);
    daemon.put(&format!("/api/triggers/{none}/targets"), &nothing).refused(404);
    daemon.get(&format!("/api/workflows/{none}/targets")).refused(404);
    daemon.put(&format!("/api/workflows/{none}/targets"), &nothing).refused(404);
    assert_eq!(daemon.get(&path).expect(200), json!({ "delivery_targets": [], "deliveries": [] }));
}
