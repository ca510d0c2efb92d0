//! Agents over their routes.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::reply;
use crate::testing::daemon::TestDaemon;

const MANIFEST: &str = r#"
name = "scout"
version = "1.2"
author = "A. Writer"
description = "Looks around"
tags = ["eyes", "legs"]
system_prompt = "Look."
skills = ["walk"]
mcp_servers = ["map"]

[model]
provider = "builtin"
model = "builtin"
temperature = 0.7

[capabilities]
tools = ["system_time"]
network = ["example.org"]
"#;

#[tokio::test]
async fn an_agent_is_created_read_and_killed() {
    let daemon = TestDaemon::new();
    let (status, created) = daemon.send("POST /api/agents", json!({"manifest_toml": MANIFEST})).await;
    assert_eq!((status, &created["name"]), (201, &json!("scout")));
    let id = created["agent_id"].as_str().unwrap();
    let agent = daemon.ok(&format!("GET /api/agents/{id}"), Value::Null).await;
    for (key, value) in [
        ("id", json!(id)),
        ("name", json!("scout")),
        ("state", json!("Running")),
        ("mode", json!("Normal")),
        ("description", json!("Looks around")),
        ("tags", json!(["eyes", "legs"])),
        ("system_prompt", json!("Look.")),
        ("skills", json!(["walk"])),
        ("mcp_servers", json!(["map"])),
        ("version", json!("1.2")),
        ("author", json!("A. Writer")),
        ("module", json!("builtin:chat")),
        ("message_count", json!(0)),
        ("input_tokens", json!(0)),
        ("identity", json!({"avatar": "", "persona": ""})),
        ("model", json!({"provider": "builtin", "model": "builtin", "temperature": 0.7})),
    ] {
        assert_eq!(agent[key], value, "{key}");
    }
    assert_eq!(agent["capabilities"]["tools"], json!(["system_time"]));
    assert_eq!(agent["capabilities"]["network"], json!(["example.org"]));
    assert!(agent["session_id"].as_str().unwrap().parse::<Uuid>().is_ok());
    assert!(agent["created_at"].as_str().unwrap().ends_with('Z'));

    let killed = daemon.ok(&format!("DELETE /api/agents/{id}"), Value::Null).await;
    assert_eq!(killed, json!({"status": "killed", "agent_id": id}));
    daemon.refused(404, &format!("GET /api/agents/{id}"), Value::Null).await;
    daemon.refused(404, &format!("DELETE /api/agents/{id}"), Value::Null).await;
}

#[tokio::test]
async fn bad_agents_are_refused_by_name() {
    let daemon = TestDaemon::new();
    daemon.agent("one").await;
    daemon.refused(409, "POST /api/agents", json!({"manifest_toml": "name = \"one\""})).await;
    let error = daemon.refused(400, "POST /api/agents", json!({"manifest_toml": "name = \"x\"\ntags = 5"})).await;
    assert_eq!((&error["field"], &error["line"], &error["key"]), (&json!("manifest_toml"), &json!(2), &json!("tags")));
    let error = daemon.refused(400, "POST /api/agents", json!({})).await;
    assert_eq!(error["field"], "manifest_toml");
    daemon.refused(400, "GET /api/agents/7", Value::Null).await;
    daemon.refused(400, "GET /api/agents?state=Sleeping", Value::Null).await;
    daemon.refused(400, "GET /api/agents?cursor=x", Value::Null).await;
    daemon.refused(400, "GET /api/agents?limit=0", Value::Null).await;
    let list = daemon.ok("GET /api/agents", Value::Null).await;
    assert_eq!(list.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn agents_are_listed_filtered_and_paged() {
    let daemon = TestDaemon::new();
    let agents: Vec<_> = (0..1_203).map(|n| json!({"manifest_toml": format!("name = \"a{n}\"")})).collect();
    let made = daemon.ok("POST /api/agents/bulk", json!({"agents": agents})).await;
    assert_eq!((&made["total"], &made["succeeded"], &made["failed"]), (&json!(1_203), &json!(1_203), &json!(0)));

    let response = daemon.respond("GET /api/agents", b"").await;
    assert_eq!(response.headers()["x-total-count"], "1203");
    let all = reply::collect(response).await;
    let names: Vec<_> = all.as_array().unwrap().iter().map(|a| a["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names, (0..1_203).map(|n| format!("a{n}")).collect::<Vec<_>>());
    assert_eq!(all[0]["model_provider"], "builtin");
    assert_eq!(all[0].as_object().unwrap().len(), 6);

    let response = daemon.respond("GET /api/agents?limit=2&q=A10", b"").await;
    let cursor = response.headers()["x-next-cursor"].to_str().unwrap().to_owned();
    let page = reply::collect(response).await;
    assert_eq!((&page[0]["name"], &page[1]["name"]), (&json!("a10"), &json!("a100")));
    let next = daemon.ok(&format!("GET /api/agents?limit=1&q=a10&cursor={cursor}"), Value::Null).await;
    assert_eq!(next[0]["name"], "a101");

    let exact = daemon.ok("GET /api/agents?name=a7", Value::Null).await;
    assert_eq!((exact.as_array().unwrap().len(), &exact[0]["name"]), (1, &json!("a7")));
    daemon.agent("tagged").await;
    let tagged = daemon.ok("GET /api/agents?tag=t-tagged&state=running", Value::Null).await;
    assert_eq!((tagged.as_array().unwrap().len(), &tagged[0]["name"]), (1, &json!("tagged")));
}

#[tokio::test]
async fn fields_change_one_by_one() {
    let daemon = TestDaemon::new();
    let id = daemon.agent("one").await;
    let at = |verb: &str, rest: &str| format!("{verb} /api/agents/{id}{rest}");
    let agent = daemon.ok(&at("PATCH", ""), json!({"name": "uno", "tags": ["x"], "model": "m", "provider": "p"})).await;
    assert_eq!((&agent["name"], &agent["tags"]), (&json!("uno"), &json!(["x"])));
    assert_eq!(agent["model"], json!({"provider": "p", "model": "m"}));
    let updated = daemon.ok(&at("PUT", "/update"), json!({"description": "new", "system_prompt": "sp"})).await;
    assert_eq!(updated, json!({"status": "updated", "agent_id": id}));
    let config = json!({
        "model": {"model": "n", "temperature": 0.5, "max_tokens": 99}, "capabilities": {"tools": ["*"]},
        "max_history_messages": 7, "tool_blocklist": ["shell_*"],
    });
    let agent = daemon.ok(&at("PATCH", "/config"), config).await;
    assert_eq!(agent["model"], json!({"provider": "p", "model": "n", "temperature": 0.5, "max_tokens": 99}));
    assert_eq!((&agent["description"], &agent["capabilities"]["tools"]), (&json!("new"), &json!(["*"])));
    assert_eq!((&agent["max_history_messages"], &agent["tool_blocklist"]), (&json!(7), &json!(["shell_*"])));
    let rights = json!({"network": ["*.example.com"], "shell": ["git"], "agent_spawn": true, "file_system": false});
    let agent = daemon.ok(&at("PATCH", ""), json!({ "capabilities": rights })).await;
    for key in ["network", "shell", "agent_spawn", "file_system"] {
        assert_eq!(agent["capabilities"][key], rights[key], "{key}");
    }
    assert_eq!(agent["capabilities"]["tools"], json!(["*"]), "what is not named stays");
    let agent = daemon.ok(&at("PATCH", "/config"), json!({"temperature": null})).await;
    assert_eq!(agent["model"], json!({"provider": "p", "model": "n", "max_tokens": 99}));
    let agent = daemon.ok(&at("PATCH", "/identity"), json!({"avatar": "🦉", "persona": "dry", "name": "eins"})).await;
    assert_eq!((&agent["identity"]["avatar"], &agent["name"]), (&json!("🦉"), &json!("eins")));
    let set = daemon.ok(&at("PUT", "/model"), json!({"model": "q"})).await;
    assert_eq!((&set["status"], &set["model"], &set["provider"]), (&json!("updated"), &json!("q"), &json!("p")));
}

#[tokio::test]
async fn bad_fields_change_nothing() {
    let daemon = TestDaemon::new();
    let id = daemon.agent("one").await;
    daemon.agent("two").await;
    let before = daemon.ok(&format!("GET /api/agents/{id}"), Value::Null).await;
    for (path, body, field) in [
        ("", json!({"name": "a/b"}), "name"),
        ("", json!({"name": "nul\u{0}"}), "name"),
        ("", json!({"tags": ["ok", ""]}), "tags[1]"),
        ("", json!({"description": 5}), "description"),
        ("/config", json!({"temperature": 3}), "model.temperature"),
        ("/config", json!({"model": {"max_tokens": -1}}), "model.max_tokens"),
        ("/config", json!({"model": 7}), "model"),
        ("/identity", json!({"avatar": "x".repeat(70_000)}), "avatar"),
        ("/identity", json!({"name": ".."}), "name"),
    ] {
        let error = daemon.refused(400, &format!("PATCH /api/agents/{id}{path}"), body).await;
        assert_eq!(error["field"], field, "{error}");
    }
    let taken = daemon.refused(409, &format!("PATCH /api/agents/{id}"), json!({"name": "two", "tags": []})).await;
    assert_eq!(taken["field"], "name");
    for body in [json!({}), json!({"mode": "stable"}), json!({"mode": null})] {
        let error = daemon.refused(400, &format!("PUT /api/agents/{id}/mode"), body).await;
        assert_eq!(error["field"], "mode");
    }
    daemon.refused(400, &format!("PUT /api/agents/{id}/model"), json!({"model": " "})).await;
    assert_eq!(daemon.ok(&format!("GET /api/agents/{id}"), Value::Null).await, before);
}

#[tokio::test]
async fn stable_pins_model_and_skills() {
    let daemon = TestDaemon::new();
    let id = daemon.agent("one").await;
    let mode = daemon.ok(&format!("PUT /api/agents/{id}/mode"), json!({"mode": "Stable"})).await;
    assert_eq!(mode, json!({"status": "updated", "mode": "Stable", "agent_id": id}));
    let refused = daemon.refused(409, &format!("PUT /api/agents/{id}/model"), json!({"model": "m"})).await;
    assert_eq!(refused["code"], "agent_stable");
    daemon.refused(409, &format!("PUT /api/agents/{id}/skills"), json!(["s"])).await;
    daemon.ok(&format!("PUT /api/agents/{id}/mode"), json!({"mode": "Normal"})).await;
    daemon.ok(&format!("PUT /api/agents/{id}/model"), json!({"model": "m"})).await;
}

#[tokio::test]
async fn lists_are_read_and_replaced() {
    let daemon = TestDaemon::new();
    let id = daemon.agent("one").await;
    for key in ["tools", "skills", "mcp_servers"] {
        let path = format!("/api/agents/{id}/{key}");
        let set = daemon.ok(&format!("PUT {path}"), json!({key: ["a", "b"]})).await;
        assert_eq!(set[key], json!(["a", "b"]));
        daemon.ok(&format!("PUT {path}"), json!(["c"])).await;
        assert_eq!(daemon.ok(&format!("GET {path}"), Value::Null).await[key], json!(["c"]));
        let error = daemon.refused(400, &format!("PUT {path}"), json!({})).await;
        assert_eq!(error["field"], key);
        daemon.refused(400, &format!("PUT {path}"), json!({key: "c"})).await;
        daemon.refused(400, &format!("PUT {path}"), json!(["x\ny"])).await;
    }
    let tools = format!("/api/agents/{id}/tools");
    daemon.ok(&format!("PUT {tools}"), json!({"tool_allowlist": ["a"], "tool_blocklist": ["b"]})).await;
    let read = daemon.ok(&format!("GET {tools}"), Value::Null).await;
    assert_eq!(read, json!({"tools": ["c"], "tool_allowlist": ["a"], "tool_blocklist": ["b"]}));
}

#[tokio::test]
async fn a_clone_has_the_manifest_and_a_name_of_its_own() {
    let daemon = TestDaemon::new();
    let id = daemon.agent("one").await;
    let (status, clone) = daemon.send(&format!("POST /api/agents/{id}/clone"), Value::Null).await;
    assert_eq!((status, &clone["name"]), (201, &json!("one-copy")));
    let second = daemon.ok(&format!("POST /api/agents/{id}/clone"), json!({"name": "twin"})).await;
    assert_eq!(second["name"], "twin");
    let twin = second["agent_id"].as_str().unwrap();
    let detail = daemon.ok(&format!("GET /api/agents/{twin}"), Value::Null).await;
    assert_eq!((&detail["tags"], &detail["description"]), (&json!(["t-one"]), &json!("d")));
    daemon.refused(409, &format!("POST /api/agents/{id}/clone"), json!({"name": "one"})).await;
    daemon.refused(400, &format!("POST /api/agents/{id}/clone"), json!({"name": ""})).await;
    daemon.refused(404, &format!("POST /api/agents/{}/clone", Uuid::nil()), Value::Null).await;
}

#[tokio::test]
async fn bulk_items_stand_alone() {
    let daemon = TestDaemon::new();
    let items =
        json!([{"manifest_toml": "name = \"a\""}, {"manifest_toml": "nonsense"}, 7, {"manifest_toml": "name = \"a\""}]);
    let made = daemon.ok("POST /api/agents/bulk", json!({"agents": items})).await;
    assert_eq!((&made["succeeded"], &made["failed"]), (&json!(1), &json!(3)));
    let results = made["results"].as_array().unwrap();
    assert_eq!((&results[0]["status"], &results[0]["name"]), (&json!("created"), &json!("a")));
    assert!(results[1..].iter().all(|item| item["error"].is_string() && item.get("status").is_none()));
    let (id, nobody) = (results[0]["agent_id"].as_str().unwrap(), Uuid::nil().to_string());

    let stopped = daemon.ok("POST /api/agents/bulk/stop", json!({"agent_ids": [id, "x", nobody]})).await;
    let results = stopped["results"].as_array().unwrap();
    assert_eq!(results[0], json!({"index": 0, "agent_id": id, "id": id, "status": "stopped"}));
    assert_eq!((&results[1]["agent_id"], results[2]["error"].is_string()), (&json!("x"), true));
    assert_eq!(daemon.ok(&format!("GET /api/agents/{id}"), Value::Null).await["state"], "Stopped");
    daemon.refused(409, &format!("POST /api/agents/{id}/message"), json!({"message": "hi"})).await;
    let started = daemon.ok("POST /api/agents/bulk/start", json!({"ids": [id]})).await;
    assert_eq!(started["results"][0]["status"], "started");
    let killed = daemon.ok("DELETE /api/agents/bulk", json!([id])).await;
    assert_eq!(killed["results"][0]["status"], "killed");
    let many = vec![id; agentsvc_components::kernel::limit::BULK_ITEMS_MAX + 1];
    daemon.refused(400, "DELETE /api/agents/bulk", json!({"agent_ids": many})).await;
    daemon.refused(400, "DELETE /api/agents/bulk", json!({"agent_ids": [7]})).await;
}
