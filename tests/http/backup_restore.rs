//! Restores: as a whole and in parts, into the running daemon and into an empty home (spec 2, Backup and restore, rules 1 to
//! 5).

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use super::backup_house::{COMPONENTS, backup, daemon, done, entries, furnish, manifest, picture, restore};
use crate::support::daemon::{Daemon, command, text};
use crate::support::until;

/// Takes away what the first furnishing has put there.
fn clear(daemon: &Daemon) {
    for agent in daemon.get("/api/agents").expect(200).as_array().unwrap() {
        daemon.delete(&format!("/api/agents/{}", text(&agent["id"]))).expect(200);
    }
    for (list, items, path) in [
        ("/api/cron/jobs", "jobs", "/api/cron/jobs"),
        ("/api/workflows", "", "/api/workflows"),
        ("/api/tasks", "tasks", "/api/tasks"),
    ] {
        let listed = daemon.get(list).expect(200);
        for item in listed.as_array().or(listed[items].as_array()).unwrap() {
            daemon.delete(&format!("{path}/{}", text(&item["id"]))).expect(200);
        }
    }
    daemon.delete("/api/models/custom/model-first").expect(200);
    fs::remove_dir_all(daemon.home().join("skills")).unwrap();
    fs::remove_file(daemon.home().join("agent-types/type-first.toml")).unwrap();
}

type Picture = BTreeMap<&'static str, Value>;

/// What is to be seen after the restore of `component` alone.
fn expected_after(component: &'static str, before: &Picture, after: &Picture, done: &Value, seen: &Picture) -> Picture {
    let mut expected = after.clone();
    let covered: &[&'static str] = match component {
        "data" => &["data", "cron_jobs", "hand_state", "custom_models"],
        other => &[other],
    };
    for name in covered.iter().chain(&["other"]) {
        expected.insert(name, before[name].clone());
    }
    match component {
        // Jobs whose agents are not there are left out, and it is said.
        "agents" | "cron_jobs" | "data" => {
            expected.insert("cron_jobs", json!([]));
            assert!(done["warnings"].to_string().contains("1 schedules and cron jobs were skipped"), "{done}");
        }
        _ => assert_eq!(done["warnings"], json!([])),
    }
    // An alias of a model that is not there any more is none.
    if component == "custom_models" {
        expected.insert("data", seen["data"].clone());
    }
    expected
}

#[test]
fn each_component_alone_restores_only_itself() {
    let mut daemon = daemon();
    furnish(&daemon, "first");
    let first = backup(&daemon);
    let before = picture(&daemon);
    clear(&daemon);
    furnish(&daemon, "second");
    let second = backup(&daemon);
    let after = picture(&daemon);
    for (component, seen) in &after {
        assert_ne!(seen, &before[component], "{component}");
    }
    for component in COMPONENTS {
        let wanted = json!({ "filename": first, "components": [component] });
        let dry = restore(&daemon, &json!({ "filename": first, "components": [component], "dry_run": true }));
        assert_eq!(dry["status"], "dry_run");
        assert_eq!(picture(&daemon), after, "a dry run of {component} changes nothing");
        let done = restore(&daemon, &wanted);
        assert_eq!((&done["status"], &done["components"]), (&json!("restored"), &dry["components"]), "{component}");
        let seen = picture(&daemon);
        let expected = expected_after(component, &before, &after, &done, &seen);
        for (name, seen) in &seen {
            assert_eq!(seen, &expected[name], "{name} after the restore of {component}");
        }
        let takes_a_pause = ["agents", "cron_jobs", "hand_state", "workflows", "data"].contains(&component);
        assert_eq!(done["pause_ms"].as_u64().unwrap() > 0, takes_a_pause, "{component}");
        daemon.restart();
        assert_eq!(picture(&daemon), seen, "{component} after a restart");
        let back = restore(&daemon, &json!({ "filename": second }));
        assert_eq!(picture(&daemon), after, "{component}: {back}");
    }
    let both = restore(&daemon, &json!({ "filename": first, "components": ["agents", "cron_jobs"] }));
    assert_eq!(both["warnings"], json!([]));
    assert_eq!(picture(&daemon)["cron_jobs"], before["cron_jobs"]);
    let all = restore(&daemon, &json!({ "filename": first }));
    assert_eq!(picture(&daemon), before, "{all}");
    assert_eq!(daemon.get("/api/audit/verify").expect(200)["status"], "valid");
    let trail = daemon.get("/api/audit/recent?limit=500").expect(200);
    let restored = trail["entries"].as_array().unwrap().iter().filter(|entry| entry["event_type"] == "backup_restored");
    assert_eq!(restored.count(), 2 * COMPONENTS.len() + 2, "the trail goes on through all of it");
}

#[test]
fn a_kept_configuration_stays() {
    let daemon = daemon();
    furnish(&daemon, "first");
    let first = backup(&daemon);
    daemon.post("/api/config/set", &json!({ "path": "log_level", "value": "debug" })).expect(200);
    let mine = fs::read_to_string(daemon.home().join("config.toml")).unwrap();
    let done = restore(&daemon, &json!({ "filename": first, "keep_config": true }));
    assert_eq!(done["components"].get("config"), None, "{done}");
    assert_eq!(fs::read_to_string(daemon.home().join("config.toml")).unwrap(), mine);
    assert_eq!(daemon.get("/api/config").expect(200)["log_level"], "debug");
    let done = restore(&daemon, &json!({ "filename": first }));
    assert_eq!(done["components"]["config"]["files"]["replaced"], 1);
    assert_eq!(daemon.get("/api/config").expect(200)["log_level"], "info", "it is in force at once");
}

#[test]
fn a_restore_over_the_api_keeps_what_clients_may_not_set() {
    let weak = "rate_limit_per_second = 1000000\nlog_level = \"debug\"\n[exec_policy]\nmode = \"full\"\n\
        [uploads]\nretention_days = 3\n[prices.\"a/b\"]\ninput_per_m = 1\n[mcp_servers.evil]\ncommand = \"/bin/sh\"\n";
    let mut daemon = Daemon::with(weak);
    let first = backup(&daemon);
    let path = daemon.home().join("config.toml");
    let weak = fs::read_to_string(&path).unwrap();
    let strong = "api_listen = \"127.0.0.1:0\" # mine\napi_key = \"0123456789abcdef0123456789abcdef\"\n\
        [exec_policy]\nmode = \"deny\"\n[prices.\"c/d\"]\ninput_per_m = 2\n";
    fs::write(&path, strong).unwrap();
    daemon.post("/api/config/reload", &json!({})).expect(200);
    daemon.use_key("0123456789abcdef0123456789abcdef");
    for dry_run in [true, false] {
        let done = restore(&daemon, &json!({ "filename": first, "dry_run": dry_run }));
        assert_eq!(done["config_kept"], json!(["api_key", "exec_policy.mode", "mcp_servers.evil.command"]));
    }
    let now = fs::read_to_string(&path).unwrap();
    let table: toml::Table = now.parse().unwrap();
    assert!(now.starts_with("api_listen = \"127.0.0.1:0\" # mine\napi_key = \"0123456789abcdef"), "{now}");
    assert_eq!(table["exec_policy"]["mode"].as_str(), Some("deny"));
    assert!(table.get("mcp_servers").is_none(), "{now}");
    assert_eq!(
        (table["log_level"].as_str(), table["uploads"]["retention_days"].as_integer()),
        (Some("debug"), Some(3))
    );
    assert!(table["prices"].get("c/d").is_none() && table["prices"].get("a/b").is_some(), "{now}");
    let shown = daemon.get("/api/config").expect(200);
    assert_eq!((&shown["log_level"], &shown["exec_policy"]["mode"]), (&json!("debug"), &json!("deny")));
    daemon.keyed("another").get("/api/agents").expect(401);
    let trail = daemon.get("/api/audit/recent?limit=20").expect(200);
    let is_named = |entry: &Value| text(&entry["details"]).contains("exec_policy.mode");
    assert!(trail["entries"].as_array().unwrap().iter().any(is_named), "{trail}");
    // The operator, who can edit the file, restores all of it.
    daemon.kill();
    done(&command(daemon.home()).args(["restore", &first]).output().unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), weak);
}

#[test]
fn an_empty_home_becomes_the_same_world() {
    let mut daemon = daemon();
    for name in ["a", "b"] {
        furnish(&daemon, name);
    }
    let seen = picture(&daemon);
    let filename = backup(&daemon);
    let archive = daemon.home().join("backups").join(&filename);
    let home = tempfile::tempdir().unwrap();
    let cli = |arguments: &[&str]| command(home.path()).args(arguments).output().unwrap();
    let path = archive.to_str().unwrap();
    let dry = done(&cli(&["restore", path, "--dry-run"]));
    assert!(dry.contains("dry run") && !home.path().join("config.toml").exists(), "{dry}");
    let said = done(&cli(&["restore", path]));
    assert!(said.contains("restored") && said.contains("agents (rows)"), "{said}");
    // Without a daemon: exactly the rows of the archive, but for the signatures of another home's key.
    let made: Value = serde_json::from_str(&done(&cli(&["backup", "--json"]))).unwrap();
    let again = manifest(&home.path().join("backups").join(text(&made["filename"])));
    let first = manifest(&archive);
    let hashes = |manifest: &Value| -> Vec<(String, Value, Value)> {
        let entries = manifest["entries"].as_array().unwrap().clone();
        let compared = entries.into_iter().filter(|entry| entry["name"] != "audit/trail.rows");
        compared.map(|entry| (text(&entry["name"]), entry["sha256"].clone(), entry["rows"].clone())).collect()
    };
    assert_eq!(hashes(&again), hashes(&first));
    assert_eq!((&again["counts"], &again["audit"]), (&first["counts"], &first["audit"]));
    daemon.kill();
    // The daemon of the new home shows the same, and its trail can be verified.
    let mut moved = Daemon::on(home);
    assert_eq!(picture(&moved), seen);
    let trail = moved.get("/api/audit/recent?limit=500").expect(200);
    let entries = trail["entries"].as_array().unwrap();
    let restored = until("the restore is on record", || {
        let trail = moved.get("/api/audit/recent?limit=9").expect(200);
        trail["entries"].as_array().unwrap().iter().find(|entry| entry["event_type"] == "backup_restored").cloned()
    });
    assert!(text(&restored["details"]).contains(&filename), "{restored}");
    let spawned = entries.iter().filter(|entry| entry["event_type"] == "agent_spawned").count();
    assert_eq!(spawned, 3, "the archive's trail came along, with the assistant and both agents: {trail}");
    assert_eq!(moved.get("/api/audit/verify").expect(200)["status"], "valid");
    moved.restart();
    assert_eq!(moved.get("/api/audit/verify").expect(200)["status"], "valid");
}

#[test]
fn secrets_go_sealed_and_come_back_where_their_key_is() {
    let daemon = daemon();
    daemon.post("/api/providers/openai/key", &json!({ "api_key": "sk-first-key-of-the-test" })).expect(200);
    let filename = backup(&daemon);
    let archive = daemon.home().join("backups").join(&filename);
    let found = entries(&archive);
    let leaks = |content: &[u8]| content.windows(12).any(|window| window == b"sk-first-key");
    assert!(found.iter().all(|(_, content)| !leaks(content)));
    let sealed: Vec<&String> = found.iter().map(|(name, _)| name).filter(|name| name.starts_with("vault/")).collect();
    assert_eq!(sealed.len(), 1, "{sealed:?}");
    daemon.delete("/api/providers/openai/key").expect(200);
    let source = |daemon: &Daemon| daemon.get("/api/providers/openai").expect(200)["key_source"].clone();
    let without = source(&daemon);
    restore(&daemon, &json!({ "filename": filename, "keep_config": true }));
    assert_eq!(source(&daemon), without, "keep_config keeps the secrets, too");
    let done = restore(&daemon, &json!({ "filename": filename, "components": ["config"] }));
    assert_eq!((&done["pause_ms"], &done["warnings"]), (&json!(0), &json!([])));
    assert_ne!(source(&daemon), without, "it is used at once");
    // Another home has another key.
    let home = tempfile::tempdir().unwrap();
    let output = command(home.path()).args(["restore", archive.to_str().unwrap()]).output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot decrypt it"), "{output:?}");
    assert!(!home.path().join(sealed[0]).exists());
}
