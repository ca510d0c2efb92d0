//! More of a thing than there may be, through the front door: the bound holds, what is beyond is told so with the status
//! and the code of `docs/api.md`, and what was there stays.

use serde_json::{Value, json};

use super::harness::{Memory, Neighbour, harness, wait};
use super::wire::{Answers, count, flood, request};
use crate::support::daemon::{Daemon, text};
use crate::support::http::Reply;

/// Requests beyond the bound.
const BEYOND: usize = 60;

/// Fills something up to `most` and goes on; `make` gives the request of a number, `taken` is the status of one that is
/// taken. Gives an answer of those beyond, whose status must be `status`.
#[track_caller]
fn fill(
    daemon: &Daemon,
    most: usize,
    (taken, status): (u16, u16),
    make: impl Fn(usize) -> Vec<u8> + Sync,
) -> (Answers, Value) {
    let memory = Memory::of(daemon);
    let answers = flood(daemon, 0..most + BEYOND, make);
    assert_eq!((count(&answers, taken), count(&answers, status)), (most, BEYOND), "{answers:?}");
    memory.is_flat(daemon, &format!("{most} and {BEYOND} beyond"));
    let refused: &Reply = &answers[&status].1;
    refused.refused(status);
    let body = refused.expect(status);
    (answers, body)
}

#[test]
fn approvals_beyond_ten_thousand() {
    let daemon = harness("");
    let neighbour = Neighbour::of(&daemon);
    let body = |agent: &str| json!({ "agent_id": agent, "action": "act", "description": "d".repeat(1_000) });
    for n in 0..10 {
        let body = body(&daemon.agent(&format!("a{n}")));
        let (_, refused) = fill(&daemon, 1_000, (201, 429), |_| request("POST", "/api/approvals", Some(&body)));
        let all = n == 9;
        let said =
            if all { "10000 pending approvals" } else { "too many calls of this agent wait for approval (1000)" };
        assert!(text(&refused["error"]).contains(said), "{refused}");
    }
    assert_eq!(daemon.get("/api/approvals/count").expect(200)["pending"], 10_000);
    let body = body(&daemon.agent("late"));
    daemon.post("/api/approvals", &body).refused(429);
    // There is room again when somebody decides.
    let one = daemon.get("/api/approvals?status=pending&limit=1").expect(200)["approvals"][0]["id"].clone();
    daemon.post(&format!("/api/approvals/{}/reject", text(&one)), &json!({})).expect(200);
    daemon.post("/api/approvals", &body).expect(201);
    daemon.post("/api/approvals", &body).refused(429);
    neighbour.leave();
}

#[test]
fn approvals_beyond_their_bytes() {
    let daemon = harness("");
    let neighbour = Neighbour::of(&daemon);
    // 59,996 bytes as JSON and 4 more: with 140 of them there are more than 8 MiB, with 1,119 more than 64 MiB.
    let payload = json!({ "p": "p".repeat(59_988) });
    for (n, most) in [140; 7].into_iter().chain([139]).enumerate() {
        let agent = daemon.agent(&format!("a{n}"));
        let body = json!({ "agent_id": agent, "action": "act", "description": "d", "payload": payload });
        let (_, refused) = fill(&daemon, most, (201, 429), |_| request("POST", "/api/approvals", Some(&body)));
        let said = if most == 139 { "1119 pending approvals" } else { "calls of this agent wait for approval (140)" };
        assert!(text(&refused["error"]).contains(said), "{refused}");
    }
    neighbour.leave();
}

#[test]
fn workflows_beyond_ten_thousand() {
    let daemon = harness("");
    let (agent, neighbour) = (daemon.agent("a"), Neighbour::of(&daemon));
    let step = json!({ "agent_id": agent, "prompt": "p".repeat(500) });
    let make = |n: usize| request("POST", "/api/workflows", Some(&json!({ "name": format!("w{n}"), "steps": [step] })));
    let (_, refused) = fill(&daemon, 10_000, (201, 429), make);
    assert!(text(&refused["error"]).contains("10000 workflows"), "{refused}");
    neighbour.leave();
}

#[test]
fn memory_beyond_its_bytes_and_its_entries() {
    let daemon = harness("");
    let (one, other, neighbour) = (daemon.agent("a"), daemon.agent("b"), Neighbour::of(&daemon));
    // 63,998 bytes as JSON and a key of 2: 262 fit into 16 MiB.
    let value = "v".repeat(63_996);
    let make = |n: usize| {
        let path = format!(
            "/api/memory/agents/{one}/kv/{}{}",
            (b'a' + (n / 26) as u8) as char,
            (b'a' + (n % 26) as u8) as char
        );
        request("PUT", &path, Some(&json!({ "value": value })))
    };
    let (_, refused) = fill(&daemon, 262, (200, 409), make);
    assert_eq!(refused["code"], "memory_full");
    let make = |n: usize| request("PUT", &format!("/api/memory/agents/{other}/kv/k{n}"), Some(&json!({ "value": n })));
    let (_, refused) = fill(&daemon, 10_000, (200, 409), make);
    assert_eq!(refused["code"], "memory_full");
    neighbour.leave();
}

#[test]
fn knowledge_beyond_its_entities() {
    let daemon = harness("");
    let (agent, neighbour) = (daemon.agent("a"), Neighbour::of(&daemon));
    let path = format!("/api/memory/agents/{agent}/relations");
    let make = |n: usize| {
        let entity = |of: usize| json!({ "name": format!("n{n} {of}"), "entity_type": "thing" });
        request("POST", &path, Some(&json!({ "entities": (0..1_000).map(entity).collect::<Vec<_>>() })))
    };
    let (_, refused) = fill(&daemon, 10, (200, 409), make);
    assert_eq!(refused["code"], "knowledge_full");
    neighbour.leave();
}

#[test]
fn custom_models_and_aliases_beyond_a_thousand() {
    let daemon = harness("");
    let make = |n: usize| {
        let body = json!({ "id": format!("m{n}"), "provider": "openai", "context_window": 1_000 });
        request("POST", "/api/models/custom", Some(&body))
    };
    let (_, refused) = fill(&daemon, 1_000, (201, 429), make);
    assert_eq!(refused["code"], "catalog_full");
    let known = daemon.get("/api/models?provider=openai").expect(200)["models"][0]["id"].clone();
    let make = |n: usize| {
        request("POST", "/api/models/aliases", Some(&json!({ "alias": format!("alias-{n}"), "model_id": known })))
    };
    let (_, refused) = fill(&daemon, 1_000, (201, 429), make);
    assert_eq!(refused["code"], "catalog_full");
    daemon.get("/api/health").expect(200);
}

#[test]
fn agent_types_beyond_a_thousand_and_bindings_beyond_a_hundred() {
    let daemon = harness("");
    let there = std::fs::read_dir(daemon.home().join("agent-types")).map_or(0, |entries| entries.count());
    let make = |n: usize| request("POST", "/api/templates", Some(&json!({ "name": format!("type-{n}") })));
    let (_, refused) = fill(&daemon, 1_000 - there, (201, 409), make);
    assert_eq!(refused["code"], "templates_full");
    let there = daemon.get("/api/bindings").expect(200)["bindings"].as_array().unwrap().len();
    let make =
        |n: usize| request("POST", "/api/bindings", Some(&json!({ "event": "done", "command": format!("/new {n}") })));
    let (_, refused) = fill(&daemon, 100 - there, (201, 409), make);
    assert_eq!(refused["code"], "bindings_full");
}

#[test]
fn prompt_versions_beyond_a_hundred_and_experiments_beyond_twenty() {
    let daemon = harness("[prompt_intelligence]\nenabled = true\n");
    let neighbour = Neighbour::of(&daemon);
    let agent = daemon.agent("a");
    let path = format!("/api/agents/{agent}/prompts/versions");
    let body = json!({ "system_prompt": "p".repeat(1_000) });
    let (_, refused) = fill(&daemon, 100, (201, 429), |_| request("POST", &path, Some(&body)));
    assert_eq!(refused["code"], "prompt_versions_full");
    let list = daemon.get(&path).expect(200);
    assert_eq!(list["total"], 100);
    let variant = json!({ "prompt_version_id": list["versions"][0]["id"] });
    let other = json!({ "name": "other", "prompt_version_id": list["versions"][1]["id"] });
    let body = json!({ "name": "tone", "variants": [variant, other] });
    let path = format!("/api/agents/{agent}/prompts/experiments");
    let (_, refused) = fill(&daemon, 20, (201, 429), |_| request("POST", &path, Some(&body)));
    assert_eq!(refused["code"], "prompt_experiments_full");
    // Another agent has room of its own.
    let late = daemon.agent("late");
    daemon.post(&format!("/api/agents/{late}/prompts/versions"), &json!({ "system_prompt": "p" })).expect(201);
    neighbour.leave();
}

#[test]
fn codes_of_a_channel_beyond_sixteen() {
    let daemon = harness("[[sidecar_channels]]\nname = \"bot\"\ncommand = \"/nowhere/adapter\"\nrestart = false\n");
    let neighbour = Neighbour::of(&daemon);
    let body = json!({ "channel": "bot" });
    // The world learns of its channels a moment after the start.
    let first = wait("the world knows the channel", || {
        let offer = daemon.post("/api/channels/pairings", &body);
        (offer.status == 201).then(|| text(&offer.expect(201)["id"]))
    });
    assert_eq!(daemon.delete(&format!("/api/channels/pairings/{first}")).status, 204);
    let (_, refused) = fill(&daemon, 16, (201, 429), |_| request("POST", "/api/channels/pairings", Some(&body)));
    assert_eq!(refused["code"], "pairings_full");
    assert_eq!(daemon.get("/api/channels/pairings").expect(200)["pairings"].as_array().map(Vec::len), Some(16));
    neighbour.leave();
}

#[test]
fn what_one_request_may_hold() {
    let daemon = harness("");
    let agent = daemon.agent("a");
    let ids = vec![agent.clone(); 10_001];
    for path in ["/api/agents/bulk/start", "/api/agents/bulk/stop"] {
        daemon.post(path, &json!({ "agent_ids": ids })).refused_field(400, "agent_ids");
    }
    let ids = json!({ "ids": vec![agent.clone(); 1_001], "decision": "reject" });
    daemon.post("/api/approvals/batch", &ids).refused_field(400, "ids");
    let files: Vec<_> = (0..33).map(|_| json!({ "file_id": agent })).collect();
    let body = json!({ "message": "m", "attachments": files });
    daemon.post(&format!("/api/agents/{agent}/message"), &body).refused_field(400, "attachments");
    let body = json!({ "message": "m".repeat((1 << 20) + 1) });
    daemon.post(&format!("/api/agents/{agent}/message"), &body).refused_field(400, "message");
    let steps = vec![json!({ "agent_id": agent, "prompt": "p" }); 65];
    daemon.post("/api/workflows", &json!({ "name": "w", "steps": steps })).refused_field(400, "steps");
    let entries: Vec<_> = (0..10_001).map(|n| json!({ "key": format!("k{n}"), "value": n })).collect();
    let path = format!("/api/agents/{agent}/memory/import");
    let reply = daemon.post(&path, &json!({ "entries": entries }));
    assert!(matches!(reply.status, 400 | 409), "{}", reply.text());
    reply.refused(reply.status);
    daemon.post("/api/events", &json!({ "event_type": "e".repeat(129) })).refused_field(400, "event_type");
    let payload = json!({ "event_type": "e", "payload": "p".repeat(16 << 10) });
    daemon.post("/api/events", &payload).refused_field(400, "payload");
    let prompt = "p".repeat((64 << 10) + 1);
    let body = json!({ "agent_id": agent, "pattern": { "all": {} }, "prompt_template": prompt });
    daemon.post("/api/triggers", &body).refused_field(400, "prompt_template");
    let body = json!({ "agent_id": agent, "cron": "every 1h", "prompt": prompt });
    daemon.post("/api/schedules", &body).refused_field(400, "prompt");
}
