//! Approvals: tool calls that wait for a person, also over a kill, and what clients ask for (spec 3, Approvals).

use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::daemon::{Daemon, text};
use crate::support::http::{Client, Reply as Answer};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::until;

const TOOLS: &str = "[capabilities]\ntools = [\"*\"]\n";
const WRITE: &str = r#"{"path": "out.txt", "content": "line\n", "mode": "append"}"#;

fn harness(approval: &str) -> (Model, Daemon) {
    let model = Model::start();
    let daemon = Daemon::with(&format!("rate_limit_per_second = 1000000\n[approval]\n{approval}\n{}", model.config()));
    (model, daemon)
}

/// Sends a message that will wait for a person.
fn ask(daemon: &Daemon, agent: &str) -> JoinHandle<Option<Answer>> {
    let (client, path) = (daemon.client(), format!("/api/agents/{agent}/message"));
    let body = json!({ "message": "go" }).to_string();
    thread::spawn(move || client.try_send("POST", &path, &[], Some(body.as_bytes())).ok())
}

fn answered(asked: JoinHandle<Option<Answer>>) -> Value {
    asked.join().expect("no panic").expect("an answer").expect(200)
}

fn list(client: &Client, query: &str) -> Vec<Value> {
    client.get(&format!("/api/approvals?{query}")).expect(200)["approvals"].as_array().expect("approvals").clone()
}

/// The approvals that wait, once there are `count`.
fn pending(client: &Client, count: usize) -> Vec<Value> {
    until("calls wait for a person", || Some(list(client, "status=pending")).filter(|found| found.len() == count))
}

fn decide(client: &Client, approval: &Value, how: &str, body: &Value) -> Answer {
    client.post(&format!("/api/approvals/{}/{how}", text(&approval["id"])), body)
}

fn request(client: &Client, agent: &str, action: &str) -> Value {
    let body = json!({ "agent_id": agent, "action": action, "description": "for people", "payload": { "n": 1 } });
    client.post("/api/approvals", &body).expect(201)
}

fn written(daemon: &Daemon) -> PathBuf {
    daemon.home().join("workspaces/a/out.txt")
}

/// The last tool result that the model read.
fn told(model: &Model) -> String {
    let requests = model.requests();
    let messages =
        requests.iter().rev().find_map(|request| request["messages"].as_array().cloned()).unwrap_or_default();
    let result = messages.iter().rev().find(|message| message["role"] == "tool");
    text(&result.expect("a result")["content"])
}

/// What the audit trail has of approvals, the oldest first: what happened, who did it, and its details.
fn noted(client: &Client) -> Vec<(String, String, Value)> {
    let entries = client.get("/api/audit/recent?limit=500").expect(200)["entries"].clone();
    let of_approvals = entries.as_array().expect("entries").iter().rev().filter_map(|entry| {
        let details = serde_json::from_str(&text(&entry["details"])).expect("details are JSON");
        let kind = text(&entry["event_type"]);
        kind.starts_with("approval_").then(|| (kind, text(&entry["actor"]), details))
    });
    of_approvals.collect()
}

#[test]
fn a_gated_call_waits_and_what_was_approved_runs_once() {
    let (model, daemon) = harness("require_approval = [\"file_wr*\"]");
    let agent = daemon.agent_with("a", TOOLS);
    model.script([Reply::calls(&[("1", "file_write", WRITE), ("2", "system_time", "{}")])]);
    let asked = ask(&daemon, &agent);
    let [item] = &pending(&daemon, 1)[..] else { panic!("one approval") };
    assert_eq!((&item["action"], &item["agent_id"]), (&json!("file_write"), &json!(agent)));
    assert_eq!(item["payload"], serde_json::from_str::<Value>(WRITE).unwrap());
    assert!(text(&item["description"]).contains("file_write"));
    let hash = Sha256::digest([b"file_write\0", WRITE.as_bytes()].concat());
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(item["call_hash"], hash);
    assert!(item["turn_id"].is_string() && item["decided_at"].is_null() && item["reason"].is_null());
    assert!(text(&item["expires_at"]) > text(&item["created_at"]));
    assert!(!asked.is_finished() && !written(&daemon).exists());
    assert_eq!(daemon.get("/api/approvals/count").expect(200)["count"], 1);
    let approved = decide(&daemon, item, "approve", &json!({ "reason": "go on" })).expect(200);
    assert_eq!((&approved["status"], &approved["reason"]), (&json!("approved"), &json!("go on")));
    assert_eq!(answered(asked)["response"], "echo: go");
    assert_eq!(std::fs::read_to_string(written(&daemon)).unwrap(), "line\n");
    for how in ["approve", "reject"] {
        let again = decide(&daemon, item, how, &json!({}));
        again.refused(409);
        assert_eq!(again.expect(409)["code"], "approval_decided");
    }
    let read = daemon.get(&format!("/api/approvals/{}", text(&item["id"]))).expect(200);
    assert_eq!(read, approved);
    let counts = daemon.get("/api/approvals/count").expect(200);
    assert_eq!((&counts["pending"], &counts["decided"]), (&json!(0), &json!(1)));
    assert_eq!(daemon.get("/api/approvals/audit").expect(200), json!({ "approvals": [approved], "total": 1 }));
    let turn = format!("agent:{agent}/turn:{}", text(&item["turn_id"]));
    let asked = json!({ "approval": item["id"], "action": "file_write" });
    let mut decided = asked.clone();
    decided["decision"] = json!("approved");
    let [requested, of_person] = ["approval_requested", "approval_decided"].map(ToOwned::to_owned);
    assert_eq!(noted(&daemon), [(requested, turn, asked), (of_person, "api".to_owned(), decided)]);
}

#[test]
fn a_rejection_and_its_reason_reach_the_model() {
    let (model, daemon) = harness("require_approval = [\"file_write\"]");
    let agent = daemon.agent_with("a", TOOLS);
    model.script([Reply::calls(&[("1", "file_write", WRITE)])]);
    let asked = ask(&daemon, &agent);
    let item = pending(&daemon, 1).remove(0);
    let rejected = decide(&daemon, &item, "reject", &json!({ "reason": "not on a Friday" })).expect(200);
    assert_eq!(rejected["status"], "rejected");
    assert_eq!(answered(asked)["response"], "echo: go");
    let told = told(&model);
    assert!(told.contains("rejected") && told.contains("not on a Friday"), "{told}");
    assert!(!written(&daemon).exists());
}

#[test]
fn nobody_decides_in_time() {
    let (model, daemon) = harness("require_approval = [\"file_write\"]\ntimeout_secs = 1");
    let agent = daemon.agent_with("a", TOOLS);
    model.script([Reply::calls(&[("1", "file_write", WRITE)])]);
    assert_eq!(answered(ask(&daemon, &agent))["response"], "echo: go");
    assert!(told(&model).contains("no decision was made in time"));
    let [item] = &list(&daemon, "status=expired")[..] else { panic!("one approval") };
    assert!(item["decided_at"].is_string() && item["reason"] == "no decision was made in time");
    decide(&daemon, item, "approve", &json!({})).refused(409);
    assert!(!written(&daemon).exists());
    let (kind, actor, details) = noted(&daemon).pop().expect("an entry");
    assert_eq!((&*kind, &*actor, &details["approval"]), ("approval_decided", "system", &item["id"]));
    assert_eq!(
        (&details["decision"], &details["reason"]),
        (&json!("expired"), &json!("no decision was made in time")),
        "that nobody decided is a decision too"
    );
}

#[test]
fn a_manifest_gates_too_and_a_stop_ends_the_wait() {
    let (model, daemon) = harness("");
    let agent = daemon.agent_with("a", &format!("require_approval = [\"file_*\"]\n{TOOLS}"));
    model.script([Reply::calls(&[("1", "file_write", WRITE)])]);
    let asked = ask(&daemon, &agent);
    let item = pending(&daemon, 1).remove(0);
    daemon.poke(&format!("/api/agents/{agent}/stop")).expect(200);
    answered(asked);
    until("the approval ends", || list(&daemon, "status=pending").is_empty().then_some(()));
    decide(&daemon, &item, "approve", &json!({})).refused(409);
    assert!(!written(&daemon).exists());
}

#[test]
fn a_call_parked_over_kills_runs_once() {
    let (model, mut daemon) = harness("require_approval = [\"file_write\"]");
    let agent = daemon.agent_with("a", TOOLS);
    let session = text(&daemon.detail(&agent)["session_id"]);
    model.script([Reply::calls(&[("1", "file_write", WRITE)])]);
    let asked = ask(&daemon, &agent);
    let item = pending(&daemon, 1).remove(0);
    daemon.settle();
    for _ in 0..2 {
        daemon.restart();
        assert_eq!(list(&daemon, "status=pending"), std::slice::from_ref(&item), "it waits on");
        assert!(!written(&daemon).exists());
    }
    assert!(asked.join().expect("no panic").is_none(), "the caller went with the daemon");
    decide(&daemon, &item, "approve", &json!({})).expect(200);
    let answer = || daemon.transcript(&session).into_iter().find(|(_, said)| said == "echo: go");
    until("the turn ends", answer);
    assert_eq!(std::fs::read_to_string(written(&daemon)).unwrap(), "line\n");
    assert_eq!(model.requests().len(), 2, "the model is asked once for the call, and once after it");
    daemon.restart();
    let read = daemon.get(&format!("/api/approvals/{}", text(&item["id"]))).expect(200);
    assert_eq!(read["status"], "approved");
    assert_eq!(std::fs::read_to_string(written(&daemon)).unwrap(), "line\n");
}

#[test]
fn a_kill_right_behind_the_decision_does_not_repeat_the_call() {
    let (model, mut daemon) = harness("require_approval = [\"file_write\"]");
    let agent = daemon.agent_with("a", TOOLS);
    let session = text(&daemon.detail(&agent)["session_id"]);
    model.script([Reply::calls(&[("1", "file_write", WRITE)])]);
    let asked = ask(&daemon, &agent);
    let item = pending(&daemon, 1).remove(0);
    decide(&daemon, &item, "approve", &json!({})).expect(200);
    daemon.restart();
    let _gone_or_answered = asked.join().expect("no panic");
    until("the turn ends", || daemon.transcript(&session).into_iter().find(|(_, said)| said == "echo: go"));
    let lines = std::fs::read_to_string(written(&daemon)).unwrap_or_default();
    let told = told(&model);
    // It ran, or nobody knows and the model was told so; twice it never ran.
    assert!(lines == "line\n" || (lines.is_empty() && told.starts_with("Unknown: ")), "{lines:?} {told}");
}

#[test]
fn clients_ask_for_approvals_and_look_at_them() {
    let mut daemon = Daemon::start();
    let (agent, other) = (daemon.agent("a"), daemon.agent("b"));
    let asked: Vec<Value> = (0..5).map(|n| request(&daemon, &agent, &format!("action-{n}"))).collect();
    let of_other = request(&daemon, &other, "elsewhere");
    assert!(asked[0]["turn_id"].is_null() && asked[0]["call_hash"].is_null());
    assert_eq!((&asked[0]["status"], &asked[0]["payload"]), (&json!("pending"), &json!({ "n": 1 })));
    // In the order of their ids: two decisions of one millisecond are in that order, too.
    decide(&daemon, &asked[1], "approve", &json!({})).expect(200);
    decide(&daemon, &asked[3], "reject", &json!({})).expect(200);
    daemon.restart();
    let actions = |items: &[Value]| items.iter().map(|item| text(&item["action"])).collect::<Vec<_>>();
    let all = ["action-0", "action-2", "action-4", "elsewhere", "action-3", "action-1"];
    assert_eq!(
        actions(&list(&daemon, "")),
        all,
        "those that wait, the oldest first, then the others, the last decision first"
    );
    assert_eq!(daemon.get("/api/approvals").expect(200)["total"], 6);
    assert_eq!(actions(&list(&daemon, "status=approved")), ["action-1"]);
    assert_eq!(actions(&list(&daemon, "status=rejected")), ["action-3"]);
    assert!(list(&daemon, "status=expired").is_empty());
    assert_eq!(actions(&list(&daemon, &format!("agent_id={other}"))), ["elsewhere"]);
    let (mut paged, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = daemon.get(&format!("/api/approvals?limit=2{cursor}")).expect(200);
        paged.extend(actions(page["approvals"].as_array().unwrap()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(paged, all);
    let audit = daemon.get(&format!("/api/approvals/audit?agent_id={agent}&limit=1")).expect(200);
    assert_eq!(actions(audit["approvals"].as_array().unwrap()), ["action-3"]);
    assert_eq!(daemon.get(&format!("/api/approvals/{}", text(&of_other["id"]))).expect(200), of_other);
    daemon.delete(&format!("/api/agents/{other}")).expect(200);
    assert_eq!(actions(&list(&daemon, "status=expired")), ["elsewhere"], "nobody needs it any more");
}

#[test]
fn a_batch_is_all_or_nothing() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let ids: Vec<Value> = (0..4).map(|_| request(&daemon, &agent, "act")["id"].clone()).collect();
    let batch = |ids: &[&Value], decision: &str| {
        daemon.post("/api/approvals/batch", &json!({ "ids": ids, "decision": decision, "reason": "all" }))
    };
    let nobody = json!("00000000-0000-7000-8000-000000000000");
    batch(&[&ids[0], &nobody], "approve").refused(404);
    batch(&[&ids[0], &nobody], "reject").refused(404);
    assert_eq!(list(&daemon, "status=pending").len(), 4, "nothing has changed");
    let done = batch(&[&ids[0], &ids[1], &ids[0]], "approve").expect(200);
    assert_eq!(done["approvals"].as_array().unwrap().len(), 2);
    assert!(done["approvals"].as_array().unwrap().iter().all(|item| item["status"] == "approved"));
    for decision in ["approve", "reject"] {
        batch(&[&ids[2], &ids[1]], decision).refused(409);
    }
    assert_eq!(list(&daemon, "status=pending").len(), 2);
    assert_eq!(batch(&[&ids[2], &ids[3]], "reject").expect(200)["approvals"][1]["status"], "rejected");
    for (body, field) in [
        (json!({ "ids": [], "decision": "approve" }), "ids"),
        (json!({ "ids": ["x"], "decision": "approve" }), "ids[0]"),
        (json!({ "ids": [ids[0]], "decision": "perhaps" }), "decision"),
        (json!({ "ids": vec![nobody; 1_001], "decision": "approve" }), "ids"),
        (json!({ "decision": "approve" }), "ids"),
    ] {
        daemon.post("/api/approvals/batch", &body).refused_field(400, field);
    }
}

#[test]
fn what_is_wrong_is_named() {
    let daemon = Daemon::with("api_key = \"k\"\n");
    for path in ["/api/approvals", "/api/approvals/count", "/api/approvals/audit", "/api/approvals/totp/status"] {
        daemon.get(path).refused(401);
    }
    let client = daemon.keyed("k");
    let agent = client.agent("a");
    for (body, field) in [
        (json!({ "agent_id": "x", "action": "act" }), "agent_id"),
        (json!({ "agent_id": agent }), "action"),
        (json!({ "agent_id": agent, "action": " " }), "action"),
        (json!({ "agent_id": agent, "action": "a".repeat(129) }), "action"),
        (json!({ "agent_id": agent, "action": "act", "payload": [1] }), "payload"),
        (json!({ "agent_id": agent, "action": "act", "payload": { "a": "x".repeat(70_000) } }), "payload"),
        (json!({ "agent_id": agent, "action": "act", "description": "d".repeat(5_000) }), "description"),
    ] {
        client.post("/api/approvals", &body).refused_field(400, field);
    }
    let nobody = "00000000-0000-7000-8000-000000000000";
    client.post("/api/approvals", &json!({ "agent_id": nobody, "action": "act" })).refused(404);
    client.get(&format!("/api/approvals/{nobody}")).refused(404);
    client.get("/api/approvals/x").refused_field(400, "id");
    for how in ["approve", "reject"] {
        client.poke(&format!("/api/approvals/{nobody}/{how}")).refused(404);
        client.poke(&format!("/api/approvals/x/{how}")).refused_field(400, "id");
    }
    let item = request(&client, &agent, "act");
    decide(&client, &item, "reject", &json!({ "reason": "r".repeat(5_000) })).refused_field(400, "reason");
    for (query, field) in
        [("status=done", "status"), ("agent_id=x", "agent_id"), ("cursor=x", "cursor"), ("limit=0", "limit")]
    {
        client.get(&format!("/api/approvals?{query}")).refused_field(400, field);
    }
    // No body is needed to decide.
    let decided = client.poke(&format!("/api/approvals/{}/approve", text(&item["id"]))).expect(200);
    assert_eq!(decided["status"], "approved");
    let item = request(&client, &agent, "act");
    let decided = client.poke(&format!("/api/approvals/{}/reject", text(&item["id"]))).expect(200);
    assert_eq!(decided["status"], "rejected");
}
