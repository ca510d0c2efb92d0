//! Bindings of the web chat, its commands, and profiles of tools (spec 2, UI bindings and commands, System).

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;

fn list(client: &Client) -> Vec<Value> {
    let body = client.get("/api/bindings").expect(200);
    let bindings = body["bindings"].as_array().expect("bindings").clone();
    assert_eq!(body["total"], bindings.len());
    for (at, binding) in bindings.iter().enumerate() {
        assert_eq!(binding["index"], at);
    }
    bindings
}

#[test]
fn bindings_are_added_and_removed_and_outlive_the_daemon() {
    let mut daemon = Daemon::start();
    let first = list(&daemon);
    assert!(first.len() > 3 && first.iter().any(|binding| binding["key"] == "Mod+K" && binding["command"] == "search"));
    let added = daemon.post("/api/bindings", &json!({ "key": "shift+ctrl+u", "command": "/usage" })).expect(201);
    assert_eq!((&added["key"], &added["event"]), (&json!("Ctrl+Shift+U"), &json!("key")));
    assert_eq!(added["index"], first.len());
    let noted = json!({ "event": "done", "command": "scroll_end", "description": "follow" });
    let noted = daemon.post("/api/bindings", &noted).expect(201);
    assert!(noted["key"].is_null() && noted["description"] == "follow");
    let removed = daemon.delete("/api/bindings/0").expect(200);
    assert_eq!((&removed["status"], &removed["binding"]["key"]), (&json!("removed"), &first[0]["key"]));
    let now = list(&daemon);
    assert_eq!(now.len(), first.len() + 1);
    assert_eq!(now[0]["key"], first[1]["key"], "those behind it moved up");
    daemon.kill();
    daemon.restart();
    assert_eq!(list(&daemon), now);
    while !list(&daemon).is_empty() {
        daemon.delete("/api/bindings/0").expect(200);
    }
    daemon.restart();
    assert!(list(&daemon).is_empty(), "the defaults do not come back");
    let audit = daemon.get("/api/audit/recent?limit=100").expect(200).to_string();
    assert!(audit.contains("binding_added") && audit.contains("binding_removed"));
}

#[test]
fn wrong_bindings_name_the_field_and_change_nothing() {
    let daemon = Daemon::start();
    let before = list(&daemon);
    for (body, field) in [
        (json!({ "key": "Mod+J" }), "command"),
        (json!({ "command": "search" }), "key"),
        (json!({ "key": "j", "command": "search" }), "key"),
        (json!({ "key": "Hyper+J", "command": "search" }), "key"),
        (json!({ "key": "Mod+J", "command": "serach" }), "command"),
        (json!({ "key": "Mod+J", "command": "/nothing" }), "command"),
        (json!({ "key": "Mod+J", "command": "/stop now" }), "command"),
        (json!({ "key": "Mod+J", "command": "/new x".repeat(100) }), "command"),
        (json!({ "key": "Mod+J", "event": "done", "command": "search" }), "key"),
        (json!({ "key": "Mod+J", "event": "click", "command": "search" }), "event"),
        (json!({ "key": "Mod+J", "command": "search", "description": "x".repeat(300) }), "description"),
    ] {
        daemon.post("/api/bindings", &body).refused_field(400, field);
    }
    let taken = daemon.post("/api/bindings", &json!({ "key": "ctrl+x", "command": "search" }));
    taken.expect(201);
    let again = daemon.post("/api/bindings", &json!({ "key": "Ctrl+X", "command": "reload" }));
    again.refused(409);
    assert_eq!(again.expect(409)["code"], "binding_exists");
    daemon.delete(&format!("/api/bindings/{}", before.len())).expect(200);
    daemon.delete("/api/bindings/99").refused(404);
    for index in ["x", "-1", "1.5", "99999999999999999999999"] {
        daemon.delete(&format!("/api/bindings/{index}")).refused_field(400, "index");
    }
    assert_eq!(list(&daemon), before);
}

#[test]
fn the_page_and_its_parts_are_served() {
    let daemon = Daemon::start();
    let page = daemon.get("/").text();
    let version = page.split("assets/").nth(1).and_then(|rest| rest.split('/').next()).unwrap().to_owned();
    let file = |path: &str| daemon.get(&format!("/assets/{version}/{path}"));
    let script = file("lib/bindings.js");
    assert_eq!(script.status, 200);
    assert!(script.text().contains("api/bindings"));
    let actions = daemon.get("/api/bindings").expect(200)["actions"].clone();
    let page = file("pages/chat/actions.js").text();
    for action in actions.as_array().unwrap() {
        assert!(page.contains(&format!("  {}: ", text(&action["name"]))), "{action}");
    }
}

#[test]
fn the_commands_of_the_chat_are_listed() {
    let daemon = Daemon::start();
    let body = daemon.get("/api/commands").expect(200);
    let commands = body["commands"].as_array().unwrap();
    assert_eq!(body["total"], commands.len());
    for command in commands {
        let name = text(&command["name"]);
        assert_eq!(command["command"], format!("/{name}"));
        assert!(!text(&command["description"]).is_empty());
        for written in [name.clone(), format!("%2F{name}"), name.to_uppercase()] {
            assert_eq!(&daemon.get(&format!("/api/commands/{written}")).expect(200), command);
        }
    }
    let new = daemon.get("/api/commands/new").expect(200);
    assert_eq!(new["argument"], "[label]");
    assert_eq!(daemon.get("/api/commands/compact").expect(200)["slow"], true);
    daemon.get("/api/commands/nothing").refused(404);
}

#[test]
fn profiles_say_what_they_grant() {
    let daemon = Daemon::start();
    let body = daemon.get("/api/profiles").expect(200);
    let profiles = body["profiles"].as_array().unwrap();
    let names: Vec<String> = profiles.iter().map(|profile| text(&profile["name"])).collect();
    assert_eq!(names, ["minimal", "messaging", "research", "automation", "coding", "full"]);
    let known = daemon.get("/api/tools").expect(200)["tools"].clone();
    for profile in profiles {
        let mut keys: Vec<&String> = profile.as_object().unwrap().keys().collect();
        keys.sort();
        assert_eq!(keys, ["description", "name", "tier"]);
        let name = text(&profile["name"]);
        let detail = daemon.get(&format!("/api/profiles/{name}")).expect(200);
        assert_eq!(detail["tools"], detail["capabilities"]["tools"]);
        for tool in detail["tools"].as_array().unwrap() {
            assert!(tool == "*" || known.as_array().unwrap().contains(tool), "{name}: {tool}");
        }
        let agent = daemon.agent_with(&name, &text(&detail["manifest_toml"]));
        assert_eq!(daemon.detail(&agent)["capabilities"]["tools"], detail["tools"]);
    }
    let unknown = daemon.get("/api/profiles/none").refused(404);
    assert!(unknown.contains("minimal"), "{unknown}");
}
