//! Agents: create, read, change, remove (spec 1, Agents; decisions, Agents).

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};

const MANIFEST: &str = r#"name = "scribe"
version = "1.2.0"
description = "Writes things down"
author = "someone"
module = "builtin:chat"
tags = ["office", "fast"]
favourite_colour = "green"

[model]
provider = "builtin"
model = "builtin"

[capabilities]
tools = ["system_time"]
network = ["example.org"]
memory_read = ["*"]
agent_spawn = false
"#;

#[test]
fn created_agent_reads_back_as_documented() {
    let daemon = Daemon::start();
    let made = daemon.post("/api/agents", &json!({ "manifest_toml": MANIFEST })).expect(201);
    assert_eq!(made["name"], "scribe");
    let id = text(&made["agent_id"]);

    let detail = daemon.get(&format!("/api/agents/{id}")).expect(200);
    assert_eq!(detail["id"], id.as_str());
    assert_eq!(detail["name"], "scribe");
    assert_eq!(detail["state"], "Running");
    assert_eq!(detail["description"], "Writes things down");
    assert_eq!(detail["tags"], json!(["office", "fast"]));
    assert_eq!(detail["model"]["provider"], "builtin");
    assert_eq!(detail["capabilities"]["tools"], json!(["system_time"]));
    assert_eq!(detail["capabilities"]["network"], json!(["example.org"]));
    uuid::Uuid::try_parse(&text(&detail["session_id"])).unwrap();
    let created = text(&detail["created_at"]);
    assert!(created.ends_with('Z') && created.contains('.') && created.len() == 24, "{created}");

    let list = daemon.get("/api/agents").expect(200);
    let row = list.as_array().unwrap().iter().find(|row| row["id"] == id.as_str()).unwrap().clone();
    assert_eq!(row["name"], "scribe");
    assert_eq!(row["state"], "Running");
    assert_eq!(row["created_at"], detail["created_at"]);
    assert_eq!(row["model_provider"], "builtin");
    assert_eq!(row["model_name"], detail["model"]["model"]);
}

#[test]
fn a_manifest_survives_restart_with_unknown_keys() {
    let mut daemon = Daemon::start();
    let id = text(&daemon.post("/api/agents", &json!({ "manifest_toml": MANIFEST })).expect(201)["agent_id"]);
    let before = daemon.detail(&id);
    daemon.restart();
    assert_eq!(daemon.detail(&id), before);
    // A clone is made from the text as written; it must not trip over keys nobody knows.
    daemon.poke(&format!("/api/agents/{id}/clone")).expect(201);
}

#[test]
fn bad_manifests_name_line_and_key() {
    let daemon = Daemon::start();
    let create = |toml: &str| daemon.post("/api/agents", &json!({ "manifest_toml": toml }));
    let before = daemon.get("/api/agents").expect(200);
    let sentence = create("name = \"a\"\n[model\nprovider = 1\n").refused(400);
    assert!(sentence.contains("line 2"), "{sentence}");
    let sentence = create("name = \"a\"\n\n[model]\nprovider = 1\n").refused(400);
    assert!(sentence.contains("line 4") && sentence.contains("provider"), "{sentence}");
    let sentence = create("description = \"no name\"\n").refused(400);
    assert!(sentence.contains("name"), "{sentence}");
    for name in ["", "   ", "a\\u0000b", "a/b", "../up", "a\\\\b", &"x".repeat(129)] {
        let sentence = create(&format!("name = \"{name}\"\n")).refused(400);
        assert!(sentence.contains("name"), "{name}: {sentence}");
    }
    create(&format!("name = \"big\"\ndescription = \"{}\"\n", "x".repeat(300 << 10))).refused(400);
    assert_eq!(daemon.get("/api/agents").expect(200), before, "nothing was created");
}

#[test]
fn names_are_unique_among_live_agents() {
    let daemon = Daemon::start();
    let first = daemon.agent("twin");
    let again = daemon.post("/api/agents", &json!({ "manifest_toml": "name = \"twin\"" }));
    assert!(again.refused(409).contains("twin"));
    daemon.delete(&format!("/api/agents/{first}")).expect(200);
    let second = daemon.agent("twin");
    assert_ne!(first, second, "an id is never minted again");
}

#[test]
fn a_deleted_agent_is_gone_with_its_sessions() {
    let mut daemon = Daemon::start();
    let id = daemon.agent("mortal");
    daemon.say(&id, "hello");
    let session = text(&daemon.detail(&id)["session_id"]);
    let reply = daemon.delete(&format!("/api/agents/{id}")).expect(200);
    assert_eq!(reply, json!({ "status": "killed", "agent_id": id }));
    let gone = |daemon: &Daemon| {
        daemon.get(&format!("/api/agents/{id}")).refused(404);
        daemon.delete(&format!("/api/agents/{id}")).refused(404);
        daemon.get(&format!("/api/sessions/{session}")).refused(404);
        daemon.post(&format!("/api/agents/{id}/message"), &json!({ "message": "hi" })).refused(404);
    };
    gone(&daemon);
    daemon.restart();
    gone(&daemon);
}

#[test]
fn update_and_patch_change_only_what_is_sent() {
    let mut daemon = Daemon::start();
    let id = text(&daemon.post("/api/agents", &json!({ "manifest_toml": MANIFEST })).expect(201)["agent_id"]);
    let body = json!({ "description": "new words", "tags": ["one"], "system_prompt": "Be brief." });
    let reply = daemon.put(&format!("/api/agents/{id}/update"), &body).expect(200);
    assert_eq!(reply, json!({ "status": "updated", "agent_id": id }));
    let detail = daemon.detail(&id);
    assert_eq!(detail["description"], "new words");
    assert_eq!(detail["tags"], json!(["one"]));
    assert_eq!(detail["name"], "scribe");
    assert_eq!(detail["capabilities"]["tools"], json!(["system_time"]));

    daemon.patch(&format!("/api/agents/{id}"), &json!({ "name": "writer", "tags": [] })).expect(200);
    let detail = daemon.detail(&id);
    assert_eq!((&detail["name"], &detail["tags"]), (&json!("writer"), &json!([])));
    assert_eq!(detail["description"], "new words");
    daemon.restart();
    assert_eq!(daemon.detail(&id), detail);
}

#[test]
fn patch_refuses_taken_and_bad_names() {
    let daemon = Daemon::start();
    let (first, second) = (daemon.agent("first"), daemon.agent("second"));
    let path = format!("/api/agents/{second}");
    daemon.patch(&path, &json!({ "name": "first" })).refused(409);
    daemon.patch(&path, &json!({ "name": "" })).refused_field(400, "name");
    daemon.patch(&path, &json!({ "name": 7 })).refused_field(400, "name");
    daemon.patch(&path, &json!({ "tags": "x" })).refused_field(400, "tags");
    daemon.patch(&path, &json!({ "description": 3 })).refused_field(400, "description");
    assert_eq!(daemon.detail(&second)["name"], "second");
    daemon.patch(&path, &json!({ "name": "second" })).expect(200);
    daemon.delete(&format!("/api/agents/{first}")).expect(200);
    daemon.patch(&path, &json!({ "name": "first" })).expect(200);
    assert_eq!(daemon.detail(&second)["name"], "first");
}

#[test]
fn mode_pins_the_model_and_gives_it_back() {
    let mut daemon = Daemon::start();
    let id = daemon.agent_with("steady", "");
    let pinned = daemon.detail(&id)["model"].clone();
    let path = format!("/api/agents/{id}/mode");
    let reply = daemon.put(&format!("/api/agents/{id}/mode"), &json!({ "mode": "Stable" })).expect(200);
    assert_eq!(reply, json!({ "status": "updated", "mode": "Stable", "agent_id": id }));
    daemon.restart();
    assert_eq!(daemon.detail(&id)["model"], pinned);
    let reply = daemon.put(&path, &json!({ "mode": "Normal" })).expect(200);
    assert_eq!(reply["mode"], "Normal");
    for bad in [json!({ "mode": "stable" }), json!({ "mode": 1 }), json!({}), json!({ "mode": null })] {
        daemon.put(&path, &bad).refused_field(400, "mode");
    }
}

#[test]
fn model_can_be_switched() {
    let daemon = Daemon::start();
    let id = daemon.agent("switch");
    let path = format!("/api/agents/{id}/model");
    let reply = daemon.put(&format!("/api/agents/{id}/model"), &json!({ "model": "other-model" })).expect(200);
    assert_eq!((&reply["status"], &reply["model"]), (&json!("updated"), &json!("other-model")));
    assert_eq!(daemon.detail(&id)["model"]["model"], "other-model");
    daemon.put(&path, &json!({})).refused_field(400, "model");
    daemon.put(&path, &json!({ "model": 5 })).refused_field(400, "model");
    daemon.put(&path, &json!({ "model": "" })).refused_field(400, "model");
    assert_eq!(daemon.detail(&id)["model"]["model"], "other-model");
}

#[test]
fn identity_and_config_answer_the_detail() {
    let mut daemon = Daemon::start();
    let id = daemon.agent("face");
    let body = json!({ "name": "visage", "avatar": "https://example.org/a.png", "persona": "dry wit" });
    let detail = daemon.patch(&format!("/api/agents/{id}/identity"), &body).expect(200);
    assert_eq!(detail["name"], "visage");
    let read = detail.to_string();
    assert!(read.contains("dry wit") && read.contains("https://example.org/a.png"), "{read}");
    let detail = daemon.patch(&format!("/api/agents/{id}/config"), &json!({ "description": "set" })).expect(200);
    assert_eq!((&detail["id"], &detail["description"]), (&json!(id), &json!("set")));
    daemon.patch(&format!("/api/agents/{id}/identity"), &json!({ "avatar": [] })).refused_field(400, "avatar");
    daemon.patch(&format!("/api/agents/{id}/config"), &json!([])).refused(400);
    let detail = daemon.detail(&id);
    daemon.restart();
    assert_eq!(daemon.detail(&id), detail);
}

#[test]
fn clones_get_a_fresh_session_and_a_free_name() {
    let daemon = Daemon::start();
    let id = text(&daemon.post("/api/agents", &json!({ "manifest_toml": MANIFEST })).expect(201)["agent_id"]);
    daemon.say(&id, "remember this");
    let path = format!("/api/agents/{id}/clone");
    let first = daemon.poke(&path).expect(201);
    assert_eq!(first["name"], "scribe-copy");
    assert_eq!(daemon.post(&path, &json!({})).expect(201)["name"], "scribe-copy-2");
    assert_eq!(daemon.post(&path, &json!({ "name": "heir" })).expect(201)["name"], "heir");
    assert_eq!(daemon.post(&path, &json!({ "new_name": "heiress" })).expect(201)["name"], "heiress");
    daemon.post(&path, &json!({ "name": "heir" })).refused(409);
    daemon.post(&path, &json!({ "name": 4 })).refused_field(400, "name");
    let (one, two) = (daemon.detail(&id), daemon.detail(&text(&first["agent_id"])));
    assert_ne!(one["session_id"], two["session_id"]);
    assert_eq!(one["tags"], two["tags"]);
    assert_eq!(one["capabilities"], two["capabilities"]);
    let session = daemon.get(&format!("/api/agents/{}/session", text(&first["agent_id"]))).expect(200);
    assert_eq!(session["message_count"], 0);
}

#[test]
fn tool_skill_and_server_lists_are_stored() {
    let mut daemon = Daemon::start();
    let id = daemon.agent("lists");
    let put = |kind: &str, body: &Value| match kind {
        "tools" => daemon.put(&format!("/api/agents/{id}/tools"), body),
        "skills" => daemon.put(&format!("/api/agents/{id}/skills"), body),
        _ => daemon.put(&format!("/api/agents/{id}/mcp_servers"), body),
    };
    for kind in ["tools", "skills", "mcp_servers"] {
        put(kind, &json!({ kind: ["alpha", "beta"] })).expect(200);
        put(kind, &json!({ kind: "alpha" })).refused_field(400, kind);
        put(kind, &json!({ kind: [1] })).refused_field(400, kind);
        put(kind, &json!({})).refused_field(400, kind);
    }
    daemon.restart();
    for (kind, body) in [
        ("tools", daemon.get(&format!("/api/agents/{id}/tools")).expect(200)),
        ("skills", daemon.get(&format!("/api/agents/{id}/skills")).expect(200)),
        ("mcp_servers", daemon.get(&format!("/api/agents/{id}/mcp_servers")).expect(200)),
    ] {
        assert_eq!(body[kind], json!(["alpha", "beta"]), "{kind}: {body}");
    }
    assert_eq!(daemon.detail(&id)["capabilities"]["tools"], json!(["alpha", "beta"]));
}

#[test]
fn a_fresh_home_has_the_assistant() {
    let daemon = Daemon::start();
    let list = daemon.get("/api/agents").expect(200);
    let names: Vec<_> = list.as_array().unwrap().iter().map(|a| text(&a["name"])).collect();
    assert_eq!(names, ["assistant"]);
    let assistant = text(&list[0]["id"]);
    let answer = daemon.say(&assistant, "hello");
    assert!(!text(&answer["response"]).is_empty());
    let answer = daemon.say(&assistant, "/tool system_time {}");
    assert!(text(&answer["response"]).contains("system_time"), "it has the tools of its type: {answer}");
    assert!(!text(&answer["response"]).contains("no tool"), "{answer}");
}
