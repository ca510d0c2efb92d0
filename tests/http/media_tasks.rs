//! Media tasks are listed, deleted with their files, backed up, and carried over kills in every phase.

use std::thread;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::backup_house::{backup, restore};
use crate::media::{answered, config, image, png, tasks, wav};
use crate::people::person;
use crate::support::daemon::{Daemon, text};
use crate::support::model_server::{Gate, ModelServer, Received, Reply};
use crate::support::until;

const KEY: &str = "the-key-of-the-configuration";

fn start() -> (ModelServer, Daemon) {
    let server = ModelServer::start();
    let daemon = Daemon::with(&config(&server));
    (server, daemon)
}

fn uploads_bytes(daemon: &Daemon) -> String {
    let metrics = daemon.get("/api/metrics").text();
    metrics.lines().find_map(|line| line.strip_prefix("agentsvc_uploads_bytes ")).expect("the metric").to_owned()
}

fn listed(daemon: &Daemon, query: &str) -> Vec<Value> {
    daemon.get(&format!("/api/media/tasks?{query}")).expect(200)["tasks"].as_array().expect("a list").clone()
}

fn kinds(tasks: &[Value]) -> Vec<&str> {
    tasks.iter().map(|task| task["kind"].as_str().expect("a word")).collect()
}

#[test]
fn tasks_are_listed_by_kind_status_and_agent_and_deleted_with_their_files() {
    let (server, daemon) = start();
    let agent = daemon.agent("painter");
    server.push(image());
    let made = daemon.post("/api/media/image", &json!({ "prompt": "a cat", "agent_id": agent })).expect(200);
    server.push(Reply::raw(200, &[("content-type", "audio/wav")], &wav()));
    daemon.post("/api/media/speech", &json!({ "text": "hello" })).expect(200);
    server.push(Reply::raw(400, &[("content-type", "application/json")], "{\"error\": {\"message\": \"no\"}}"));
    daemon.post("/api/media/image", &json!({ "prompt": "a dog" })).refused(400);
    assert_eq!(kinds(&listed(&daemon, "")), ["image", "speech", "image"]);
    let newest = listed(&daemon, "order=newest");
    assert_eq!(newest.iter().map(|task| &task["prompt"]).collect::<Vec<_>>(), ["a dog", "hello", "a cat"]);
    assert_eq!(kinds(&listed(&daemon, "kind=speech&order=newest")), ["speech"]);
    assert_eq!(listed(&daemon, "status=failed")[0]["reason"], "refused");
    assert_eq!(listed(&daemon, &format!("agent_id={agent}"))[0]["id"], newest[2]["id"]);
    let first = daemon.get("/api/media/tasks?order=newest&limit=2").expect(200);
    let rest = listed(&daemon, &format!("order=newest&limit=2&cursor={}", text(&first["next_cursor"])));
    assert_eq!((first["total"].as_u64(), kinds(&rest)), (Some(3), vec!["image"]));
    for (query, field) in
        [("kind=film", "kind"), ("status=done", "status"), ("order=up", "order"), ("agent_id=x", "agent_id")]
    {
        daemon.get(&format!("/api/media/tasks?{query}")).refused_field(400, field);
    }

    let (url, path) = (text(&made["images"][0]["url"]), format!("/api/media/tasks/{}", text(&newest[2]["id"])));
    assert_eq!(uploads_bytes(&daemon), (png().len() + wav().len()).to_string());
    assert_eq!(daemon.delete(&path).status, 204);
    assert_eq!((daemon.get(&url).status, daemon.get(&path).status, daemon.delete(&path).status), (404, 404, 404));
    assert_eq!(uploads_bytes(&daemon), wav().len().to_string());
    assert!(daemon.get("/api/audit/recent").text().contains("media_deleted"));
    let gate = Gate::default();
    server.push(answered(&json!({ "task_id": "t1" })).gated(&gate));
    let begun = daemon.post("/api/media/video", &json!({ "prompt": "x" })).expect(202);
    let open = daemon.delete(&format!("/api/media/tasks/{}", text(&begun["task_id"])));
    open.refused(409);
    assert!(open.text().contains("media_task_open"), "{}", open.text());
    daemon.delete(&format!("/api/media/tasks/{}", Uuid::from_u128(5))).refused(404);
    gate.open();
}

#[test]
fn only_the_owner_of_the_agent_deletes_a_task() {
    let server = ModelServer::start();
    let mut daemon = Daemon::with(&format!("api_key = \"{KEY}\"\n{}", config(&server)));
    daemon.use_key(KEY);
    let ((ann_id, ann), (_, ben), (vic_id, vic)) =
        (person(&daemon, "ann", "user"), person(&daemon, "ben", "user"), person(&daemon, "vic", "viewer"));
    let agent = daemon.agent("painter");
    let give =
        |user: &str| drop(daemon.put(&format!("/api/agents/{agent}/owner"), &json!({ "user_id": user })).expect(200));
    server.push(image());
    let made = daemon.post("/api/media/image", &json!({ "prompt": "x", "agent_id": agent })).expect(200);
    let path = format!("/api/media/tasks/{}", text(&tasks(&daemon)[0]["id"]));
    give(&vic_id);
    vic.delete(&path).refused(403);
    give(&ann_id);
    ben.delete(&path).refused(404);
    assert_eq!(daemon.get(&text(&made["images"][0]["url"])).status, 200);
    assert_eq!(ann.delete(&path).status, 204);
    assert!(tasks(&daemon).is_empty());
}

#[test]
fn a_backup_has_the_tasks_of_agents_with_their_files() {
    let (server, daemon) = start();
    let agent = daemon.agent("painter");
    server.push(image());
    let made = daemon.post("/api/media/image", &json!({ "prompt": "a cat", "agent_id": agent })).expect(200);
    let gate = Gate::default();
    server.push(answered(&json!({ "task_id": "t1" })).gated(&gate));
    daemon.post("/api/media/video", &json!({ "prompt": "x", "agent_id": agent })).expect(202);
    server.wait_for_requests(2);
    let before = tasks(&daemon).remove(0);
    let filename = backup(&daemon);
    assert_eq!(daemon.delete(&format!("/api/media/tasks/{}", text(&before["id"]))).status, 204);
    restore(&daemon, &json!({ "filename": filename, "components": ["agents"] }));
    let after = tasks(&daemon);
    assert_eq!(after[0], before, "the task is back");
    assert_eq!(daemon.get(&text(&made["images"][0]["url"])).body, png());
    // The provider may have taken it since the backup: it is not asked again.
    assert_eq!((&after[1]["status"], &after[1]["reason"]), (&json!("failed"), &json!("unknown")));
    gate.open();
    restore(&daemon, &json!({ "filename": filename, "components": ["data"] }));
    restore(&daemon, &json!({ "filename": filename }));
    until("every task has ended", || tasks(&daemon).iter().all(|task| !task["ended_at"].is_null()).then_some(()));
    let paid = server.requests().iter().filter(|request| request.path == "/v1/video_generation").count();
    assert_eq!(paid, 1);
}

/// Behind four requests that are out, others wait: their provider was not asked, and is asked once after the start.
#[test]
fn a_kill_before_a_request_is_sent_sends_it_once() {
    let (server, mut daemon) = start();
    let gate = Gate::default();
    let waits = gate.clone();
    server.respond(move |_| answered(&json!({ "task_id": "t" })).gated(&waits));
    let ids: Vec<String> = (0..6)
        .map(|_| text(&daemon.post("/api/media/video", &json!({ "prompt": "x" })).expect(202)["task_id"]))
        .collect();
    server.wait_for_requests(4);
    daemon.kill();
    server.respond(|request| match request.path.as_str() {
        "/v1/video_generation" => answered(&json!({ "task_id": "t", "base_resp": { "status_code": 0 } })),
        _ => answered(&json!({ "status": "Fail", "base_resp": { "status_code": 0 } })),
    });
    gate.open();
    daemon.restart();
    until("every task has ended", || tasks(&daemon).iter().all(|task| !task["ended_at"].is_null()).then_some(()));
    let reasons: Vec<Value> =
        ids.iter().map(|id| daemon.get(&format!("/api/media/tasks/{id}")).expect(200)["reason"].clone()).collect();
    assert_eq!(reasons, ["unknown", "unknown", "unknown", "unknown", "provider", "provider"]);
    let paid = server.requests().iter().filter(|request| request.path == "/v1/video_generation").count();
    assert_eq!(paid, 6, "each once");
}

#[test]
fn a_kill_behind_a_stored_result_leaves_it_as_it_is() {
    let (server, mut daemon) = start();
    server.push(image());
    let made = daemon.post("/api/media/image", &json!({ "prompt": "a cat" })).expect(200);
    let before = tasks(&daemon);
    daemon.kill();
    daemon.restart();
    assert_eq!(tasks(&daemon), before);
    assert_eq!(daemon.get(&text(&made["images"][0]["url"])).body, png());
    daemon.settle();
    assert_eq!(server.requests().len(), 1);
    let spent = daemon.get("/api/budget").expect(200);
    assert!(spent.to_string().contains("0.25"), "{spent}");
}

/// Killed again and again while results are made, polled for, fetched and stored: no request is paid twice.
#[test]
fn kills_at_any_moment_pay_nothing_twice() {
    const ROUNDS: usize = 12;
    let (server, mut daemon) = start();
    let link = format!("http://{}/image", server.address());
    server.respond(move |request| match request.path.as_str() {
        "/v1/image_generation" => {
            answered(&json!({ "data": { "image_urls": [link] }, "base_resp": { "status_code": 0 } }))
        }
        _ => Reply::raw(200, &[("content-type", "image/gif")], "GIF89a\x10\0\x20\0"),
    });
    for round in 0..ROUNDS {
        let client = daemon.client();
        // A task of an earlier round may ask for its file meanwhile: only what comes after this round's prompt counts.
        let behind_prompt = |more: usize| {
            let is_own = |request: &Received| request.body["prompt"] == json!(round.to_string());
            until("the server is asked", || {
                let requests = server.requests();
                let own = requests.iter().position(is_own)?;
                (requests.len() > own + more).then_some(())
            });
        };
        thread::scope(|scope| {
            let prompt = json!({ "prompt": format!("{round}"), "provider": "minimax" }).to_string();
            let headers = [("content-type", "application/json")];
            scope.spawn(move || drop(client.try_send("POST", "/api/media/image", &headers, Some(prompt.as_bytes()))));
            // Each round a phase later: asked, asked for the file, stored.
            match round % 3 {
                0 => behind_prompt(0),
                1 => behind_prompt(1),
                _ => until("the result", || {
                    let is_there =
                        |task: &Value| task["prompt"] == json!(round.to_string()) && !task["ended_at"].is_null();
                    tasks(&daemon).iter().any(is_there).then_some(())
                }),
            }
            daemon.kill();
        });
        daemon.restart();
    }
    until("every task has ended", || tasks(&daemon).iter().all(|task| !task["ended_at"].is_null()).then_some(()));
    let mut paid: Vec<String> = server
        .requests()
        .iter()
        .filter(|request| request.path == "/v1/image_generation")
        .map(|request| text(&request.body["prompt"]))
        .collect();
    let count = paid.len();
    paid.sort();
    paid.dedup();
    assert_eq!(paid.len(), count, "a prompt was paid twice");
    assert_eq!(count, ROUNDS);
    let completed = tasks(&daemon).iter().filter(|task| task["status"] == "completed").count();
    assert!(completed >= ROUNDS / 3, "{completed} of {ROUNDS}");
}
