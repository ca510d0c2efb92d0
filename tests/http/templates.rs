//! Agent types over HTTP (spec 2, Agent type and Agent types, rules 1 to 5), and agents made from them.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, command, text};
use crate::support::http::Reply;

/// Every key that must survive an edit, with comments (spec 2, Agent type).
const WRITTEN: &str = r#"# A careful worker.
name = "worker"
description = "Works" # for now
system_prompt = "Work."
max_history_messages = 40
session_mode = "new"
tool_allowlist = ["file_*"] # only files
mcp_servers = ["github"]
channels = ["slack"]
fallback_models = ["openai/gpt-4o-mini"]

# Who answers.
[model]
provider = "builtin"
model = "builtin"

[capabilities]
tools = ["file_read"]

[compaction]
threshold = 3

[workspaces]
shared = "x"

[exec_policy]
mode = "deny"

[[triggers]]
pattern = "all"
prompt_template = "{{event}}"
"#;

fn put_file(daemon: &Daemon, name: &str, content: &[u8]) {
    fs::write(daemon.home().join(format!("agent-types/{name}.toml")), content).unwrap();
}

fn stored(daemon: &Daemon, name: &str) -> String {
    fs::read_to_string(daemon.home().join(format!("agent-types/{name}.toml"))).unwrap()
}

#[track_caller]
fn coded(reply: &Reply, status: u16, code: &str) {
    let sentence = reply.refused(status);
    assert_eq!(reply.expect(status)["code"], code, "{}", reply.text());
    assert!(!code.starts_with("template_") || status != 409 || code == "template_broken" || sentence.contains(code));
}

fn rows(daemon: &Daemon) -> Vec<Value> {
    daemon.get("/api/templates").expect(200)["templates"].as_array().expect("templates").clone()
}

#[test]
fn one_is_made_read_changed_and_deleted() {
    let daemon = Daemon::start();
    let made = daemon.post(
        "/api/templates",
        &json!({
            "name": "scout",
            "description": "Looks ahead",
            "system_prompt": "Look.\nSay what you see.",
            "provider": "builtin",
            "model": "builtin",
            "tools": ["web_*", "file_read"],
            "skills": ["maps"],
        }),
    );
    let made = made.expect(201);
    assert_eq!(
        (&made["name"], &made["source"], &made["editable"]),
        (&json!("scout"), &json!("agent-type"), &json!(true))
    );
    let spec = json!({
        "name": "scout",
        "description": "Looks ahead",
        "system_prompt": "Look.\nSay what you see.",
        "provider": "builtin",
        "model": "builtin",
        "tools": ["web_*", "file_read"],
        "skills": ["maps"],
    });
    assert_eq!(made["spec"], spec);
    assert_eq!(made["manifest"]["capabilities"]["tools"], json!(["web_*", "file_read"]));
    assert_eq!(made["manifest_toml"], stored(&daemon, "scout"));
    assert_eq!(daemon.get("/api/templates/scout").expect(200), made);
    let toml = daemon.get("/api/templates/scout/toml");
    assert_eq!(
        (toml.status, toml.text(), toml.header("content-type")),
        (200, stored(&daemon, "scout"), Some("application/toml"))
    );

    let changed = daemon.put("/api/templates/scout", &json!({ "name": "other", "tools": [] })).expect(200);
    assert_eq!((&changed["name"], &changed["spec"]["tools"]), (&json!("scout"), &json!([])));
    assert_eq!(changed["spec"]["system_prompt"], spec["system_prompt"], "a key that is not sent keeps its value");
    daemon.get("/api/templates/other").refused(404);

    let name = "scout";
    let deleted = daemon.delete(&format!("/api/templates/{name}")).expect(200);
    assert_eq!(deleted, json!({ "deleted": true, "name": name }));
    for reply in [daemon.get("/api/templates/scout"), daemon.get("/api/templates/scout/toml")] {
        coded(&reply, 404, "template_not_found");
    }
    coded(&daemon.delete("/api/templates/scout"), 404, "template_not_found");
    coded(&daemon.put("/api/templates/scout", &json!({})), 404, "template_not_found");
    let audit = daemon.get("/api/audit/recent?limit=100").expect(200).to_string();
    for kind in ["template_created", "template_updated", "template_deleted"] {
        assert!(audit.contains(kind), "{kind}");
    }
}

#[test]
fn names_that_are_in_use_are_refused() {
    let daemon = Daemon::start();
    daemon.agent("alive");
    daemon.post("/api/templates", &json!({ "name": "kept" })).expect(201);
    // Rule 1.
    coded(&daemon.post("/api/templates", &json!({ "name": "kept", "model": "x" })), 409, "template_exists");
    coded(&daemon.post("/api/templates", &json!({ "name": "alive" })), 409, "template_name_taken");
    assert!(!stored(&daemon, "kept").contains("model"));
    // Rule 4.
    coded(&daemon.put("/api/templates/alive", &json!({ "model": "x" })), 409, "template_not_editable");
    coded(&daemon.delete("/api/templates/alive"), 409, "template_not_editable");
    // A live agent is read as one.
    let agent = daemon.get("/api/templates/alive").expect(200);
    assert_eq!((&agent["source"], &agent["editable"]), (&json!("agent"), &json!(false)));
    assert_eq!(agent["spec"]["model"], "builtin");
    assert!(daemon.get("/api/templates/alive/toml").text().starts_with("name = \"alive\""));
    // A type and an agent of one name: the name means the type.
    put_file(&daemon, "alive", b"name = \"alive\"\ndescription = \"the type\"\n");
    assert_eq!(daemon.get("/api/templates/alive").expect(200)["source"], "agent-type");
    assert!(daemon.get("/api/templates/alive/toml").text().contains("the type"));
    let of_agent = daemon.get("/api/templates/alive/toml?source=agent").text();
    assert!(of_agent.starts_with("name = \"alive\"") && !of_agent.contains("the type"), "{of_agent}");
    assert!(daemon.get("/api/templates/alive/toml?source=type").text().contains("the type"));
    daemon.agent("only-alive");
    coded(&daemon.get("/api/templates/only-alive/toml?source=type"), 404, "template_not_found");
    daemon.get("/api/templates/alive/toml?source=disk").refused_field(400, "source");
    let id = daemon.get("/api/agents?name=alive").expect(200)[0]["id"].clone();
    daemon.patch(&format!("/api/agents/{}", text(&id)), &json!({ "description": "changed later" })).expect(200);
    let changed = daemon.get("/api/templates/alive/toml?source=agent").text();
    assert!(changed.contains("description = \"changed later\""), "{changed}");
    daemon.put("/api/templates/alive", &json!({ "description": "x" })).expect(200);
    let both: Vec<Value> = rows(&daemon).into_iter().filter(|row| row["name"] == "alive").collect();
    let sources: Vec<&Value> = both.iter().map(|row| &row["source"]).collect();
    assert_eq!(sources, ["agent-type", "agent"]);
}

#[test]
fn an_edit_keeps_comments_and_every_other_key() {
    let daemon = Daemon::start();
    put_file(&daemon, "worker", WRITTEN.as_bytes());
    daemon.put("/api/templates/worker", &json!({})).expect(200);
    assert_eq!(stored(&daemon, "worker"), WRITTEN, "nothing sent, nothing changed");
    // Rule 2.
    let patch = json!({ "system_prompt": "", "model": "other", "tools": ["file_read", "file_list"] });
    let changed = daemon.put("/api/templates/worker", &patch).expect(200);
    let expected = WRITTEN
        .replace("\"Work.\"", "\"\"")
        .replace("model = \"builtin\"\n\n[", "model = \"other\"\n\n[")
        .replace("tools = [\"file_read\"]", "tools = [\"file_read\", \"file_list\"]");
    assert_eq!(stored(&daemon, "worker"), expected);
    assert_eq!(changed["manifest_toml"], expected);
    assert_eq!((&changed["spec"]["system_prompt"], &changed["spec"]["description"]), (&json!(""), &json!("Works")));
    for key in ["triggers", "compaction", "max_history_messages", "mcp_servers", "tool_allowlist"] {
        assert!(!changed["manifest"][key].is_null(), "{key}");
    }
    for key in ["session_mode", "workspaces", "channels", "exec_policy", "fallback_models"] {
        assert!(!changed["manifest"][key].is_null(), "{key}");
    }
    let left: Vec<_> = fs::read_dir(daemon.home().join("agent-types")).unwrap().flatten().collect();
    assert!(left.iter().all(|entry| entry.file_name().to_string_lossy().ends_with(".toml")), "nothing half written");
}

#[test]
fn wrong_bodies_and_names_change_nothing() {
    let daemon = Daemon::start();
    put_file(&daemon, "worker", WRITTEN.as_bytes());
    let put = |body: Value| daemon.put("/api/templates/worker", &body);
    // Rule 3.
    for key in ["temperature", "manifest_toml", "session_mode", "Model"] {
        put(json!({ "model": "x", key: "y" })).refused_field(422, key);
    }
    put(json!({ "model": 3 })).refused_field(400, "model");
    put(json!({ "tools": "all" })).refused_field(400, "tools");
    put(json!({ "tools": ["a", 1] })).refused_field(400, "tools[1]");
    put(json!({ "system_prompt": "x".repeat(300 << 10) })).refused(400);
    put(json!([])).refused(400);
    assert_eq!(stored(&daemon, "worker"), WRITTEN);

    daemon.post("/api/templates", &json!({ "description": "x" })).refused_field(400, "name");
    for name in ["", ".", "..", "../x", "a/b", "a\\b", "a\nb", " a", "a ", &"x".repeat(129)] {
        daemon.post("/api/templates", &json!({ "name": name })).refused_field(400, "name");
    }
    for name in ["%2e%2e%2fconfig", "..%2f..%2fconfig", "a%5Cb", "%2e%2e"] {
        for verb in ["GET", "PUT", "DELETE"] {
            let body = (verb == "PUT").then_some(&b"{}"[..]);
            daemon.send(verb, &format!("/api/templates/{name}"), &[], body).refused_field(400, "name");
        }
    }
    assert!(daemon.home().join("config.toml").exists());
    let long = daemon.post("/api/templates", &json!({ "name": "long", "system_prompt": "x".repeat(300 << 10) }));
    long.refused(400);
    daemon.get("/api/templates/long").refused(404);
    let odd = daemon.post("/api/templates", &json!({ "name": "odd", "temperature": 1 }));
    assert!(odd.status == 201 && odd.header("warning").is_some_and(|warning| warning.contains("temperature")));
    let name = "Zoë & \u{6f22} 100%";
    daemon.post("/api/templates", &json!({ "name": name, "model": "m" })).expect(201);
    let path = "/api/templates/Zo%C3%AB%20%26%20%E6%BC%A2%20100%25";
    assert_eq!(daemon.get(path).expect(200)["name"], name);
    daemon.delete(path).expect(200);
}

#[test]
fn a_broken_file_is_listed_with_its_error_and_stops_nothing() {
    let daemon = Daemon::start();
    put_file(&daemon, "b-syntax", b"name = \"b\nmodel = ");
    put_file(&daemon, "b-type", b"name = \"b\"\n[model]\ntemperature = 9\n");
    put_file(&daemon, "b-bytes", b"\xff\xfe\x00");
    put_file(&daemon, "good", b"name = \"good\"\ndescription = \"Good\"\n");
    let rows = rows(&daemon);
    let named = |name: &str| rows.iter().find(|row| row["name"] == name).cloned().unwrap_or_default();
    assert_eq!(named("good")["description"], "Good");
    assert!(named("good").get("error").is_none());
    assert!(text(&named("b-type")["error"]).contains("temperature"));
    for name in ["b-syntax", "b-type", "b-bytes"] {
        assert!(!text(&named(name)["error"]).is_empty() && named(name)["editable"] == true);
        let shown = daemon.get(&format!("/api/templates/{name}")).expect(200);
        assert!(shown["spec"].is_null() && !text(&shown["error"]).is_empty());
        coded(&daemon.put(&format!("/api/templates/{name}"), &json!({ "model": "x" })), 409, "template_broken");
    }
    assert_eq!(stored(&daemon, "b-type"), "name = \"b\"\n[model]\ntemperature = 9\n");
    daemon.delete("/api/templates/b-bytes").expect(200);
}

#[test]
fn the_list_is_sorted_and_paged() {
    let daemon = Daemon::with("rate_limit_per_second = 1000000\n");
    let manifests: Vec<Value> =
        (0..60).map(|n| json!({ "manifest_toml": format!("name = \"agent-{:02}\"", (n * 37) % 60) })).collect();
    daemon.post("/api/agents/bulk", &json!({ "agents": manifests })).expect(200);
    daemon.agent("coder");
    daemon.agent("Über");
    let whole = daemon.get("/api/templates").expect(200);
    let all = whole["templates"].as_array().unwrap().clone();
    assert_eq!(whole["total"], all.len());
    let name = |row: &Value| (text(&row["name"]), text(&row["source"]) == "agent");
    let names: Vec<(String, bool)> = all.iter().map(name).collect();
    let mut sorted = names.clone();
    sorted.sort();
    assert_eq!(names, sorted);
    for expected in [("agent-00", true), ("coder", false), ("coder", true), ("researcher", false), ("Über", true)] {
        assert!(names.contains(&(expected.0.to_owned(), expected.1)), "{expected:?}");
    }
    let row = all.iter().find(|row| row["name"] == "Über").unwrap();
    let expected = json!({ "name": "Über", "description": "", "provider": "builtin", "model": "builtin",
        "source": "agent", "editable": false });
    assert_eq!(row, &expected);
    for limit in [1, 7, 1_000] {
        let (mut paged, mut cursor) = (Vec::new(), String::new());
        loop {
            let reply = daemon.get(&format!("/api/templates?limit={limit}{cursor}"));
            let page = reply.expect(200);
            let items = page["templates"].as_array().unwrap().clone();
            assert!(items.len() <= limit && page["total"] == all.len());
            paged.extend(items);
            assert_eq!(page["next_cursor"].as_str(), reply.header("x-next-cursor"));
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(paged, all, "limit {limit}");
    }
    daemon.get("/api/templates?limit=0").refused_field(400, "limit");
    daemon.get("/api/templates?cursor=nonsense").refused_field(400, "cursor");
}

#[test]
fn a_long_list_is_whole_and_in_order() {
    // More agents than one pass over them finds.
    const AGENTS: usize = 8_100;
    let daemon = Daemon::with("rate_limit_per_second = 1000000\n");
    let manifests: Vec<Value> = (0..AGENTS)
        .map(|n| json!({ "manifest_toml": format!("name = \"agent-{:04}\"", (n * 7_919) % AGENTS) }))
        .collect();
    daemon.post("/api/agents/bulk", &json!({ "agents": manifests })).expect(200);
    let whole = daemon.get("/api/templates").expect(200);
    let names: Vec<String> = whole["templates"].as_array().unwrap().iter().map(|row| text(&row["name"])).collect();
    assert_eq!(whole["total"], names.len());
    assert!(names.is_sorted());
    let agents = names.iter().filter(|name| name.starts_with("agent-")).count();
    assert_eq!(agents, AGENTS);
    let last = daemon.get("/api/templates?limit=1000&cursor=a6167656e742d38303930").expect(200);
    assert_eq!(last["templates"][0]["name"], "agent-8091");
}

#[test]
fn changes_at_once_are_all_kept() {
    let daemon = Daemon::with("rate_limit_per_second = 1000000\n");
    daemon.post("/api/templates", &json!({ "name": "busy" })).expect(201);
    let keys = ["description", "system_prompt", "provider", "model"];
    std::thread::scope(|scope| {
        for key in keys {
            let client = daemon.client();
            scope.spawn(move || {
                for n in 0..10 {
                    client.put("/api/templates/busy", &json!({ key: format!("{key}-{n}") })).expect(200);
                }
            });
        }
    });
    let spec = daemon.get("/api/templates/busy").expect(200)["spec"].clone();
    for key in keys {
        assert_eq!(spec[key], format!("{key}-9"), "no change was lost");
    }
}

#[test]
fn those_that_come_with_the_daemon_are_there_once_and_make_agents() {
    let mut daemon = Daemon::start();
    let found: BTreeMap<String, Value> = rows(&daemon)
        .into_iter()
        .filter(|row| row["source"] == "agent-type")
        .map(|row| (text(&row["name"]), row))
        .collect();
    assert!(found.len() >= 12, "{found:?}");
    for (name, row) in &found {
        assert!(row.get("error").is_none() && !text(&row["description"]).is_empty(), "{row}");
        let toml = daemon.get(&format!("/api/templates/{name}/toml")).text();
        let mine = toml.replacen(&format!("name = \"{name}\""), &format!("name = \"my-{name}\""), 1);
        daemon.post("/api/agents", &json!({ "manifest_toml": mine })).expect(201);
    }
    // Rule 5.
    daemon.delete("/api/templates/researcher").expect(200);
    let agent = daemon.get("/api/agents?name=my-researcher").expect(200)[0].clone();
    assert_eq!(agent["state"], "Running");
    put_file(&daemon, "coder", b"# mine\nname = \"coder\"\n");
    daemon.restart();
    daemon.get("/api/templates/researcher").refused(404);
    assert_eq!(stored(&daemon, "coder"), "# mine\nname = \"coder\"\n", "an existing file is never touched");
}

#[test]
fn init_writes_those_that_are_missing() {
    let home = tempfile::tempdir().unwrap();
    let init = || {
        let output = command(home.path()).args(["init", "--json"]).output().unwrap();
        assert!(output.status.success());
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    assert!(init()["agent_types_created"].as_u64().unwrap() >= 12);
    assert_eq!(init()["agent_types_created"], 0);
    fs::write(home.path().join("agent-types/coder.toml"), "# mine\n").unwrap();
    fs::remove_file(home.path().join("agent-types/tutor.toml")).unwrap();
    assert_eq!(init()["agent_types_created"], 1);
    assert_eq!(fs::read_to_string(home.path().join("agent-types/coder.toml")).unwrap(), "# mine\n");
}

#[test]
fn the_command_line_makes_agents_from_them() {
    let daemon = Daemon::start();
    let run = |arguments: &[&str]| daemon.cli(arguments);
    assert!(run(&["agent", "new", "coder"]).status.success());
    let made = daemon.get("/api/agents?name=coder").expect(200)[0].clone();
    let detail = daemon.detail(&text(&made["id"]));
    assert!(text(&detail["system_prompt"]).contains("software engineer"), "{detail}");
    let named = run(&["agent", "new", "coder", "--name", "my coder", "--model", "m1", "--json"]);
    assert!(named.status.success(), "{}", String::from_utf8_lossy(&named.stderr));
    let agent = daemon.get("/api/agents?name=my%20coder").expect(200)[0].clone();
    assert_eq!(agent["model_name"], "m1");
    assert_eq!(run(&["agent", "new", "coder"]).status.code(), Some(6), "the name is already taken");
    let unknown = run(&["agent", "new", "no-such-type"]);
    assert_eq!(unknown.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("no-such-type"));
    assert!(!run(&["agent", "new", "./no-such.toml"]).status.success());
}
