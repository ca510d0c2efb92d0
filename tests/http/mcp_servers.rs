//! The managed set of MCP servers (spec 3, MCP servers): a scripted server in Python, added, changed, ended and restarted.

use std::fs;

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::{routes, until};

/// Everything may run, as clients' commands need it.
const FULL: &str = "[exec_policy]\nmode = \"full\"\n";
const PYTHON: &str = "/usr/bin/python3";

fn script() -> String {
    fs::read_to_string(routes::root().join("tests/http/mcp_server.py")).unwrap()
}

/// The body of a server that runs the script in this mode. As an argument: its file is not readable in the sandbox.
fn raw(name: &str, mode: &str) -> Value {
    json!({ "name": name, "transport": "stdio", "command": PYTHON, "args": ["-c", script(), mode] })
}

/// A catalog entry that runs the script.
fn install_entry(daemon: &Daemon, id: &str) {
    let catalog = daemon.home().join("mcp/catalog");
    fs::create_dir_all(&catalog).unwrap();
    let entry = format!(
        "id = \"{id}\"\nname = \"Notes\"\ndescription = \"d\"\ncategory = \"new\"\n[transport]\ntype = \"stdio\"\n\
         command = \"{PYTHON}\"\nargs = [\"-c\", {:?}, \"$HOME\"]\n[[required_env]]\nname = \"TOKEN\"\nis_secret = true\n\
         [health_check]\ninterval_secs = 60\nsetup_instructions = \"Sign in.\"\n",
        script()
    );
    fs::write(catalog.join(format!("{id}.toml")), entry).unwrap();
}

#[track_caller]
fn connected(daemon: &Daemon, name: &str) -> Value {
    until("the server is connected", || {
        let reply = daemon.get(&format!("/api/mcp/servers/{name}"));
        (reply.status == 200).then(|| reply.expect(200)).filter(|server| server["connected"] == true)
    })
}

#[track_caller]
fn disconnected(daemon: &Daemon, name: &str) -> Value {
    until("the server is not connected", || {
        Some(daemon.get(&format!("/api/mcp/servers/{name}")).expect(200)).filter(|it| it["status"] == "disconnected")
    })
}

#[test]
fn a_server_is_added_listed_changed_and_removed() {
    let daemon = Daemon::with(FULL);
    let mut body = raw("files", "");
    body["env"] = json!({ "TOKEN": "secret-value" });
    let added = daemon.post("/api/mcp/servers", &body).expect(201);
    assert_eq!((&added["status"], &added["name"], &added["reload"]), (&json!("added"), &json!("files"), &json!("reloaded")));
    let server = connected(&daemon, "files");
    assert_eq!(server["env"], json!(["TOKEN"]));
    assert_eq!(server["tools"][0]["name"], "mcp_files_echo");
    let list = daemon.get("/api/mcp/servers").expect(200);
    assert_eq!((&list["total"], &list["connected"], &list["total_connected"]), (&json!(1), &json!(["files"]), &json!(1)));
    assert!(!list.to_string().contains("secret-value"), "{list}");
    assert_eq!(daemon.post("/api/mcp/servers", &raw("Files", "")).expect(409)["code"], "mcp_server_exists");
    let health = &daemon.get("/api/mcp/health").expect(200)["health"][0];
    assert_eq!((&health["status"], &health["consecutive_failures"]), (&json!("connected"), &json!(0)));
    // A value that is left out is kept; the log does not show it.
    let changed = daemon.put("/api/mcp/servers/files", &json!({ "env": ["TOKEN"], "timeout_secs": 9 })).expect(200);
    assert_eq!((&changed["status"], &changed["timeout_secs"]), (&json!("updated"), &json!(9)));
    connected(&daemon, "files");
    let log = text(&daemon.get("/api/mcp/servers/files/logs").expect(200)["log"]);
    assert!(log.contains("started with ***") && !log.contains("secret-value"), "{log}");
    let again = daemon.post("/api/mcp/servers/files/reconnect", &json!({})).expect(200);
    assert_eq!((&again["status"], &again["tool_count"]), (&json!("connected"), &json!(5)));
    assert_eq!(daemon.delete("/api/mcp/servers/files").status, 204);
    daemon.get("/api/mcp/servers/files").refused(404);
    assert_eq!(daemon.get("/api/tools/mcp_files_echo").status, 404);
}

#[test]
fn commands_of_clients_do_not_start_unless_everything_may_run() {
    let daemon = Daemon::start();
    let added = daemon.post("/api/mcp/servers", &raw("files", "")).expect(201);
    assert_eq!(added["connected"], false);
    assert!(text(&added["error"]).contains("[exec_policy] mode"), "{added}");
    assert_eq!(daemon.get("/api/mcp/servers/files/logs").expect(200)["log"], "");
    daemon.post("/api/mcp/servers/files/reconnect", &json!({})).refused(502);
}

#[test]
fn a_server_that_cannot_start_or_floods_is_there_with_its_reason() {
    let daemon = Daemon::with(FULL);
    daemon.post("/api/mcp/servers", &raw("exits", "exit")).expect(201);
    let server = disconnected(&daemon, "exits");
    assert!(text(&server["error"]).contains("exit code 3"), "{server}");
    assert!(text(&daemon.get("/api/mcp/servers/exits/logs").expect(200)["log"]).contains("it cannot start"));
    daemon.post("/api/mcp/servers", &raw("floods", "flood")).expect(201);
    let server = disconnected(&daemon, "floods");
    assert!(text(&server["error"]).contains("message of more than"), "{server}");
}

#[test]
fn the_catalog_installs_with_credentials_and_survives_a_kill() {
    let mut daemon = Daemon::start();
    install_entry(&daemon, "notes");
    let entry = daemon.get("/api/mcp/catalog/notes").expect(200);
    assert_eq!((&entry["setup_instructions"], &entry["installed"]), (&json!("Sign in."), &json!(false)));
    daemon.get("/api/mcp/catalog/none").refused(404);
    daemon.post("/api/mcp/servers", &json!({ "template_id": "none" })).refused(404);
    let wrong = json!({ "template_id": "notes", "credentials": { "LD_PRELOAD": "x" } });
    daemon.post("/api/mcp/servers", &wrong).refused_field(400, "credentials");
    let added = daemon.post("/api/mcp/servers", &json!({ "template_id": "notes" })).expect(201);
    assert_eq!(added["error"], "it needs a value for TOKEN");
    daemon.put("/api/mcp/servers/notes", &json!({ "credentials": { "TOKEN": "secret-value" } })).expect(200);
    assert_eq!(connected(&daemon, "notes")["template_id"], "notes");
    assert_eq!(daemon.get("/api/mcp/catalog").expect(200)["entries"][0]["installed"], true);
    daemon.kill();
    daemon.restart();
    connected(&daemon, "notes");
    assert_eq!(daemon.post("/api/mcp/reload", &json!({})).expect(200)["status"], "reloaded");
}

#[test]
fn servers_of_the_configuration_follow_its_reload() {
    let daemon = Daemon::start();
    let config = daemon.home().join("config.toml");
    let before = fs::read_to_string(&config).unwrap();
    let list = format!(
        "{before}\n[[mcp_servers]]\nname = \"mine\"\n[mcp_servers.transport]\ntype = \"stdio\"\ncommand = \"{PYTHON}\"\n\
         args = [\"-c\", {:?}]\n",
        script()
    );
    fs::write(&config, list).unwrap();
    daemon.post("/api/config/reload", &json!({})).expect(200);
    assert_eq!(connected(&daemon, "mine")["source"], "config");
    assert_eq!(daemon.put("/api/mcp/servers/mine", &json!({})).expect(409)["code"], "mcp_server_configured");
    daemon.delete("/api/mcp/servers/mine").refused(409);
    fs::write(&config, before).unwrap();
    daemon.post("/api/config/reload", &json!({})).expect(200);
    until("the server is gone", || (daemon.get("/api/mcp/servers/mine").status == 404).then_some(()));
}
