//! The audit trail over HTTP (spec 3, Audit and security): what is on it, its limits, and that it is whole after kills
//! and after tampering is not.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::until;

fn recent(client: &Client, limit: usize) -> Vec<Value> {
    let body = client.get(&format!("/api/audit/recent?limit={limit}")).expect(200);
    body["entries"].as_array().expect("entries").clone()
}

fn verify(client: &Client) -> Value {
    client.get("/api/audit/verify").expect(200)
}

/// How many entries there are.
fn total(client: &Client) -> u64 {
    client.get("/api/audit/recent?limit=1").expect(200)["total"].as_u64().expect("a total")
}

/// The details of the newest entry of a kind.
#[track_caller]
fn details(client: &Client, event_type: &str) -> Value {
    let entries = recent(client, 500);
    let entry = entries.iter().find(|entry| entry["event_type"] == event_type);
    let entry = entry.unwrap_or_else(|| panic!("no {event_type} in {entries:?}"));
    serde_json::from_str(&text(&entry["details"])).expect("details are JSON")
}

/// The hash of an entry, made from what the API shows of it as `docs/audit.md` says.
fn recomputed(entry: &Value) -> String {
    let at = chrono::DateTime::parse_from_rfc3339(&text(&entry["timestamp"])).expect("a moment").timestamp_millis();
    let prev_hash = text(&entry["prev_hash"]);
    let mut bytes = vec![1];
    bytes.extend_from_slice(&entry["id"].as_u64().expect("an id").to_be_bytes());
    bytes.extend_from_slice(&at.to_be_bytes());
    bytes.extend((0..64).step_by(2).map(|at| u8::from_str_radix(&prev_hash[at..at + 2], 16).expect("hex")));
    for key in ["event_type", "agent_id", "actor", "details"] {
        let value = entry[key].as_str().unwrap_or_default();
        bytes.extend_from_slice(&u32::try_from(value.len()).expect("short").to_be_bytes());
        bytes.extend_from_slice(value.as_bytes());
    }
    Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn actions_of_the_api_are_on_it_newest_first() {
    let daemon = Daemon::start();
    let agent = daemon.agent("scout");
    let path = |rest: &str| format!("/api/agents/{agent}{rest}");
    daemon.put(&path("/update"), &json!({ "description": "d" })).expect(200);
    daemon.put(&path("/model"), &json!({ "provider": "builtin", "model": "other" })).expect(200);
    daemon.put(&path("/mode"), &json!({ "mode": "Stable" })).expect(200);
    daemon.put(&path("/tools"), &json!({ "tools": ["file_*"] })).expect(200);
    daemon.post("/api/agents/bulk/stop", &json!({ "agent_ids": [agent] })).expect(200);
    daemon.post("/api/agents/bulk/start", &json!({ "agent_ids": [agent] })).expect(200);
    let copy = text(&daemon.post(&path("/clone"), &json!({ "name": "copy" })).expect(201)["agent_id"]);
    daemon.put(&format!("/api/memory/agents/{agent}/kv/k"), &json!({ "value": 1 })).expect(200);
    daemon.delete(&format!("/api/memory/agents/{agent}/kv/k")).expect(200);
    let import = json!({ "entries": [{ "key": "a", "value": 1 }, { "key": "b", "value": 2 }] });
    daemon.post(&path("/memory/import"), &import).expect(200);
    daemon.send("PUT", &path("/files/a.txt"), &[], Some(b"four")).expect(201);
    daemon.delete(&path("/files/a.txt")).expect(200);
    let session = text(&daemon.post(&path("/sessions"), &json!({})).expect(201)["session_id"]);
    daemon.delete(&format!("/api/sessions/{session}")).expect(200);
    daemon.poke(&path("/session/reset")).expect(200);
    daemon.delete(&path("/history")).expect(200);
    daemon.delete(&format!("/api/agents/{copy}")).expect(200);

    let entries = recent(&daemon, 500);
    let kinds: Vec<String> = entries.iter().rev().map(|entry| text(&entry["event_type"])).collect();
    let expected = [
        "agent_spawned",
        "agent_updated",
        "agent_model_changed",
        "agent_mode_changed",
        "agent_tools_changed",
        "agent_stopped",
        "agent_started",
        "agent_spawned",
        "agent_cloned",
        "memory_written",
        "memory_deleted",
        "memory_written",
        "file_written",
        "file_deleted",
        "session_removed",
        "session_reset",
        "history_cleared",
        "agent_terminated",
    ];
    let from = kinds.iter().position(|kind| kind == "agent_updated").expect("an update") - 1;
    assert_eq!(kinds[from..], expected);
    assert!(kinds[..from].contains(&"daemon_started".to_owned()), "{kinds:?}");
    assert_eq!(details(&daemon, "file_written"), json!({ "filename": "a.txt", "bytes": 4 }));
    assert_eq!(details(&daemon, "memory_written"), json!({ "entries": 2, "keys": ["a", "b"] }));
    assert_eq!(details(&daemon, "agent_cloned"), json!({ "of": agent }));
    for (newer, older) in entries.iter().zip(&entries[1..]) {
        assert_eq!(newer["prev_hash"], older["hash"]);
        assert_eq!(newer["hash"], recomputed(newer), "docs/audit.md says how");
        assert_eq!(newer["id"].as_u64(), older["id"].as_u64().map(|id| id + 1));
        assert!(text(&newer["timestamp"]) >= text(&older["timestamp"]));
    }
    let newest = &entries[0];
    assert_eq!((&newest["agent_id"], &newest["actor"]), (&json!(copy), &json!("api")));
    assert_eq!((text(&newest["hash"]).len(), text(&entries[entries.len() - 1]["prev_hash"])), (64, "0".repeat(64)));

    let verdict = verify(&daemon);
    assert_eq!((&verdict["status"], &verdict["chain_length"]), (&json!("valid"), &json!(entries.len())));
    assert_eq!(
        (&verdict["last_entry"], &verdict["first_entry"]),
        (&newest["timestamp"], &entries[entries.len() - 1]["timestamp"])
    );
}

#[test]
fn an_upload_is_on_it_with_its_hash() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let file = daemon.upload(&agent, "note.txt", b"hello");
    let details = details(&daemon, "file_uploaded");
    assert_eq!((&details["file_id"], &details["bytes"]), (&json!(file), &json!(5)));
    assert_eq!(details["sha256"], "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
}

#[test]
fn limits_are_those_of_the_specification() {
    let daemon = Daemon::with("rate_limit_per_second = 1000000\n");
    let agents: Vec<_> = (0..600).map(|n| json!({ "manifest_toml": format!("name = \"n{n}\"") })).collect();
    daemon.post("/api/agents/bulk", &json!({ "agents": agents }));
    let count = |query: &str| {
        let body = daemon.get(&format!("/api/audit/recent{query}")).expect(200);
        (body["entries"].as_array().expect("entries").len(), body["total"].as_u64().expect("a total"))
    };
    let total = count("").1;
    assert!(total > 600);
    for (query, expected) in [("", 50), ("?limit=1", 1), ("?limit=500", 500), ("?limit=501", 500)] {
        assert_eq!(count(query), (expected, total), "{query}");
    }
    assert_eq!(count("?limit=18446744073709551615").0, 500);
    for bad in ["0", "-1", "ten", "1.5", ""] {
        daemon.get(&format!("/api/audit/recent?limit={bad}")).refused_field(400, "limit");
    }
}

/// However far back: a filter goes over the whole log, page by page.
#[test]
fn entries_are_found_by_type_agent_and_text_and_read_page_by_page() {
    let daemon = Daemon::with("rate_limit_per_second = 1000000\n");
    let first = daemon.agent("first-of-all");
    let agents: Vec<_> = (0..600).map(|n| json!({ "manifest_toml": format!("name = \"n{n}\"") })).collect();
    daemon.post("/api/agents/bulk", &json!({ "agents": agents }));
    let page = |query: &str| daemon.get(&format!("/api/audit/recent?{query}")).expect(200);
    let ids = |page: &Value| -> Vec<u64> {
        page["entries"].as_array().expect("entries").iter().map(|entry| entry["id"].as_u64().expect("an id")).collect()
    };
    for query in [
        "q=FIRST-of",
        &format!("agent_id={first}"),
        &format!("agent_id={first}&event_type=agent_spawned&q=agent%20spawned"),
    ] {
        let found = page(query);
        assert_eq!(ids(&found).len(), 1, "{query}: {found}");
        assert_eq!((text(&found["entries"][0]["agent_id"]), &found["next_before"]), (first.clone(), &Value::Null));
    }
    assert_eq!(ids(&page("q=nothing%20has%20this")), Vec::<u64>::new());
    // All pages together are the whole log, each entry once.
    let (mut all, mut next) = (Vec::new(), None);
    loop {
        let before = next.map_or(String::new(), |next: u64| format!("&before={next}"));
        let found = page(&format!("limit=250{before}"));
        all.extend(ids(&found));
        next = found["next_before"].as_u64();
        if next.is_none() {
            break;
        }
    }
    let total = total(&daemon);
    assert_eq!(all, (1..=total).rev().collect::<Vec<_>>());
    assert_eq!(ids(&page("before=1")), Vec::<u64>::new());
    daemon.get(&format!("/api/audit/recent?q={}", "x".repeat(201))).refused_field(400, "q");
    daemon.get("/api/audit/recent?agent_id=7").refused_field(400, "agent_id");
    daemon.get("/api/audit/recent?before=-1").refused_field(400, "before");
}

#[test]
fn what_agents_do_is_on_it_as_theirs() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent =
        daemon.agent_with("a", "[capabilities]\ntools = [\"system_time\", \"agent_spawn\"]\nagent_spawn = true\n");
    model.script([Reply::calls(&[
        ("1", "system_time", "{}"),
        ("2", "shell_exec", r#"{"command":"secret-word"}"#),
        ("3", "no_such_tool", "{}"),
        ("4", "agent_spawn", r#"{"name":"child"}"#),
    ])]);
    daemon.say(&agent, "go");
    let actor = format!("agent:{agent}/turn:");
    let entries: Vec<_> =
        recent(&daemon, 500).into_iter().filter(|entry| text(&entry["actor"]).starts_with(&actor)).collect();
    let kinds: Vec<String> = entries.iter().map(|entry| text(&entry["event_type"])).collect();
    let of = |kind: &str| kinds.iter().filter(|found| *found == kind).count();
    assert_eq!((of("tool_called"), of("tool_refused"), of("agent_spawned")), (4, 2, 1), "{kinds:?}");
    let all = entries.iter().map(ToString::to_string).collect::<String>();
    assert!(!all.contains("secret-word"), "inputs are named by their hash only");
    assert!(all.contains("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"), "that of {{}}");
    assert_eq!(details(&daemon, "tool_refused")["reason"], "not_granted");
    assert_eq!(verify(&daemon)["status"], "valid");
}

#[test]
fn a_flood_without_the_key_leaves_one_entry_at_once() {
    let mut daemon = Daemon::with("api_key = \"right\"\n");
    for _ in 0..200 {
        daemon.get("/api/agents").refused(401);
    }
    daemon.use_key("right");
    let failed = || {
        let entries = recent(&daemon, 500);
        entries.into_iter().filter(|entry| entry["event_type"] == "auth_failed").collect::<Vec<_>>()
    };
    let entry = until("the failure is on record", || failed().pop());
    assert_eq!(failed().len(), 1);
    let details: Value = serde_json::from_str(&text(&entry["details"])).expect("JSON");
    assert_eq!(details, json!({ "failures": 1, "peers": ["127.0.0.1"], "route": "/api/agents" }));
    assert!(daemon.get("/api/metrics").text().contains("agentsvc_auth_failures_total 200\n"));
}

#[test]
fn the_trail_is_whole_after_kills_and_what_was_answered_is_on_it() {
    let mut daemon = Daemon::with("rate_limit_per_second = 1000000\n");
    let mut made = BTreeSet::new();
    for round in 0..4 {
        let (client, from) = (daemon.client(), total(&daemon));
        let busy = std::thread::spawn(move || {
            let mut made = Vec::new();
            // All rounds together fit one answer.
            for n in 0..100 {
                let body = json!({ "manifest_toml": format!("name = \"r{round}-{n}\"") });
                let Ok(reply) = client.try_send("POST", "/api/agents", &[], Some(body.to_string().as_bytes())) else {
                    return made;
                };
                if reply.status == 201 {
                    made.push(text(&reply.expect(201)["agent_id"]));
                }
            }
            made
        });
        until("some agents are there", || (total(&daemon) > from + 20).then_some(()));
        daemon.kill();
        made.extend(busy.join().expect("the client ends"));
        daemon.restart();
        let verdict = verify(&daemon);
        assert_eq!(verdict["status"], "valid", "{verdict}");
    }
    let entries = recent(&daemon, 500);
    let ids: BTreeSet<String> = entries
        .iter()
        .filter(|entry| entry["event_type"] == "agent_spawned")
        .map(|entry| text(&entry["agent_id"]))
        .collect();
    assert!(made.is_subset(&ids), "an acknowledged action is not on the trail");
    assert_eq!(entries.iter().filter(|entry| entry["event_type"] == "daemon_started").count(), 5);
}

#[test]
fn a_stop_is_on_it_and_signed() {
    let mut daemon = Daemon::start();
    daemon.agent("a");
    daemon.poke("/api/shutdown").expect(200);
    daemon.wait();
    daemon.restart();
    let kinds: Vec<String> = recent(&daemon, 3).iter().rev().map(|entry| text(&entry["event_type"])).collect();
    assert_eq!(kinds, ["shutdown_requested", "daemon_stopped", "daemon_started"]);
    let verdict = until("the start is signed", || {
        let verdict = verify(&daemon);
        (verdict["signed_up_to"] == verdict["chain_length"]).then_some(verdict)
    });
    assert_eq!((&verdict["status"], text(&verdict["public_key"]).len()), (&json!("valid"), 64));
}

/// What the status of the security systems says of the trail.
fn proof(client: &Client) -> String {
    text(&client.get("/api/security").expect(200)["security_systems"]["merkle_audit_trail"])
}

#[test]
fn a_trail_that_was_set_back_is_broken() {
    let mut daemon = Daemon::start();
    assert_eq!(proof(&daemon), "active");
    daemon.poke("/api/shutdown").expect(200);
    daemon.wait();
    let (world, earlier) = (daemon.home().join("data/world"), daemon.home().join("earlier"));
    copy(&world, &earlier);
    daemon.restart();
    let last = recent(&daemon, 1)[0]["id"].as_u64().expect("an id");
    daemon.agent("forgotten");
    daemon.poke("/api/shutdown").expect(200);
    daemon.wait();
    fs::remove_dir_all(&world).unwrap();
    copy(&earlier, &world);
    daemon.restart();
    // What cannot be signed any more is in force no more, before anyone has walked over it.
    until("the trail is said to be no proof", || (proof(&daemon) == "inactive").then_some(()));
    let health = daemon.get("/api/health").expect(200);
    assert_eq!(health["status"], "degraded", "records are missing: {health}");
    let verdict = verify(&daemon);
    assert_eq!((&verdict["status"], proof(&daemon)), (&json!("broken"), "inactive".to_owned()), "{verdict}");
    assert!(verdict["broken_at"].as_u64() > Some(last), "{verdict}");
    assert!(text(&verdict["reason"]).contains("signed") && verdict["chain_length"].is_u64(), "{verdict}");
    // A vault whose checkpoint was deleted has not forgotten that there was one.
    let accept = ["audit", "accept", "--reason", "an older copy was put back", "--json"];
    assert!(!daemon.cli(&accept).status.success(), "the daemon runs");
    daemon.poke("/api/shutdown").expect(200);
    daemon.wait();
    fs::remove_file(daemon.home().join("vault/audit.checkpoint")).unwrap();
    daemon.restart();
    let verdict = verify(&daemon);
    assert!(text(&verdict["reason"]).contains("the vault's checkpoint is missing"), "{verdict}");
    daemon.poke("/api/shutdown").expect(200);
    daemon.wait();
    let accepted = daemon.cli(&accept);
    assert!(accepted.status.success(), "{}", String::from_utf8_lossy(&accepted.stderr));
    let accepted: Value = serde_json::from_slice(&accepted.stdout).unwrap();
    daemon.restart();
    assert_eq!(verify(&daemon)["status"], "valid");
    assert_eq!(daemon.get("/api/health").expect(200)["status"], "ok");
    let noted = details(&daemon, "audit_accepted");
    assert_eq!((&noted["entry"], &noted["hash"]), (&accepted["accepted"], &accepted["hash"]));
    assert_eq!((&noted["reason"], &noted["signed"]), (&json!("an older copy was put back"), &Value::Null));
    assert!(text(&noted["user"]).contains("uid "), "{noted}");
    assert!(!daemon.cli(&accept).status.success(), "there is nothing to accept");
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn the_key_is_private_and_asked_for() {
    use std::os::unix::fs::PermissionsExt;
    let daemon = Daemon::with("api_key = \"k\"\n");
    for path in ["/api/audit/recent", "/api/audit/verify"] {
        daemon.get(path).refused(401);
    }
    let mode = |name: &str| fs::metadata(daemon.home().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("vault"), mode("vault/audit.key")), (0o700, 0o600));
}
